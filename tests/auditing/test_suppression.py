"""What is released: no small cell, no linear combination that gives one, and no score of few
rows.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.random import Generator

from metrifair import AuditOptions, AuditState, audit, audit_file
from metrifair.errors import DataError
from metrifair.evidence import verify
from tests.expected_errors import Refusals
from tests.seams.auditing import released_counts, spread, with_rounded_scores

KEYS = ("sex", "race", "region", "y", "selected")


def table_of(rng: Generator, rows: int, *, strata: bool, missing: bool) -> pl.DataFrame:
    """People of common and of rare groups, some of no known race."""
    race = rng.choice(
        ["a", "b", "c", "d", "e", "f"], rows, p=[0.5, 0.3, 0.1, 0.05, 0.03, 0.02]
    ).astype(object)
    race[rng.random(rows) < (0.05 if missing else 0.0)] = None
    columns = {
        "p": rng.random(rows).round(3),
        "sex": rng.choice(["f", "m"], rows),
        "race": race.tolist(),
        "region": rng.choice(["north", "south", "isle"], rows, p=[0.5, 0.47, 0.03])
        if strata
        else ["all"] * rows,
        "y": rng.integers(0, 2, rows),
    }
    return pl.DataFrame(columns)


def counted(table: pl.DataFrame) -> AuditState:
    return AuditState().add(
        table["y"],
        table["p"],
        sensitive_features=table[["sex", "race"]],
        control_features=table[["region"]],
    )


def sizes(state: Any) -> dict[tuple[Any, ...], int]:
    """The rows of each cell that are selected, and those that are not."""
    rows = np.bincount(state.counts.cell, state.counts.rows, len(state.cells))
    sides = zip(
        state.cells, state.selected.astype(int).tolist(), rows.astype(int).tolist(), strict=True
    )
    found = {
        (*cell, side): size
        for cell, some, every in sides
        for side, size in ((1, some), (0, every - some))
    }
    return {cell: size for cell, size in found.items() if size}


def rows_by_cell(state: Any) -> dict[tuple[Any, ...], int]:
    rows = np.bincount(state.counts.cell, state.counts.rows, len(state.cells)).astype(int)
    return dict(zip(state.cells, rows.tolist(), strict=True))


def derivable(known: np.ndarray) -> np.ndarray:
    """Which unknowns every solution of the equations with these coefficients has in common."""
    _, values, directions = np.linalg.svd(known, full_matrices=True)
    free = directions[int((values > 1e-9).sum()) :]  # along which solutions differ
    return np.abs(free).max(axis=0, initial=0.0) < 1e-9


SETTINGS = list(product(range(6), [False, True], [False, True], [False, True]))


@pytest.mark.parametrize(("seed", "strata", "missing", "joint"), SETTINGS)
def test_no_suppressed_cell_can_be_derived(
    seed: int, strata: bool, missing: bool, joint: bool
) -> None:
    """Neither a cell that is withheld, nor a small intersection of attributes that are compared
    one by one.
    """
    table = table_of(np.random.default_rng(seed), 1500, strata=strata, missing=missing)
    before = counted(table)
    release = released_counts(before, 10, None, joint=joint)
    assert len(release.tables) == (1 if joint else 2)
    cells, amounts = zip(*rows_by_cell(before).items(), strict=True)
    equations = []
    for place, state in enumerate(release.tables):
        keys = [cell if joint else (cell[place], *cell[2:]) for cell in cells]
        for into, size in rows_by_cell(state).items():
            equations.append([float(key == into) for key in keys])
            assert size >= 10
        released = sum(rows_by_cell(state).values())
        assert state.withheld >= len(table) - released
        assert state.withheld in (0, 16, 32, 64, 128, 256, 512, 1024)
    shown = np.array(equations).any(0)
    is_small = np.array(amounts) < 10
    assert is_small.any()
    assert not derivable(np.array(equations))[is_small & shown].any()


def test_a_cell_that_stands_alone_would_be_derived() -> None:
    """The oracle above sees what the suppression of single cells would give away."""
    assert derivable(np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])).tolist() == [True, False, False]
    assert derivable(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])).tolist() == [False, False, True]


def test_rows_of_a_suppressed_group_are_in_no_table() -> None:
    """Otherwise, the total of another attribute would give their number."""
    table = table_of(np.random.default_rng(0), 700, strata=False, missing=False)
    release = released_counts(counted(table), 10, None, joint=False)
    assert set(release.suppressed) == {"race, region"}
    sex, race = release.tables
    assert sex.rows == race.rows < 700
    kept = {cell[0] for cell in race.cells}
    assert sex.rows == table.filter(pl.col("race").is_in(kept)).height


def test_groups_that_are_counted_in_longer_intervals_do_not_seem_to_differ() -> None:
    """30 rows and 4,000 rows of the same distribution: at the mean of each count, their gap
    would be large.
    """
    rng = np.random.default_rng(0)
    scores, groups = rng.random(4030), np.repeat(["few", "many"], [30, 4000])
    release = released_counts(
        AuditState().add(None, scores, sensitive_features=groups), 10, None, joint=True
    )
    (table,), (ends,) = release.tables, release.grid

    def gap(counts: Any) -> float:
        shares = [
            np.bincount(
                counts.bin[counts.cell == cell], counts.rows[counts.cell == cell], 2**16 + 1
            )
            for cell in (0, 1)
        ]
        functions = [np.cumsum(share) / share.sum() for share in shares]
        return float(np.abs(functions[0] - functions[1]).max())

    true = np.abs(
        np.searchsorted(np.sort(scores[:30]), grid := np.sort(scores), side="right") / 30
        - np.searchsorted(np.sort(scores[30:]), grid, side="right") / 4000
    ).max()
    assert gap(table.counts) > true + 0.1
    assert gap(spread(table, ends).counts) < true + 0.02


def test_where_no_two_groups_would_be_left_the_number_is_refused(refused: Refusals) -> None:
    state = AuditState().add(
        [0, 1] * 8, np.linspace(0, 1, 16), sensitive_features=["f"] * 13 + ["m"] * 3
    )
    with refused(DataError) as refused:
        released_counts(state, 5, None, joint=True)
    assert "(sensitive_features=m, y_true=0), number of rows: 1" in str(refused.value)


@pytest.mark.parametrize("digits", [0, 1, 2, 9])
def test_rounded_scores_are_counted_as_rounded_rows_are(digits: int) -> None:
    rng = np.random.default_rng(0)
    scores, sex, weight = rng.random(500), rng.choice(["f", "m"], 500), rng.random(500)
    for weights in (None, weight):
        state = AuditState().add(None, scores, sensitive_features=sex, sample_weight=weights)
        rounded = with_rounded_scores(state, digits)
        same = AuditState().add(
            None, scores.round(digits), sensitive_features=sex, sample_weight=weights
        )
        assert rounded.selected.tolist() == state.selected.tolist()
        for name in ("cell", "bin", "low", "high", "rows", "within", "weight", "moment"):
            np.testing.assert_allclose(
                getattr(rounded.counts, name), getattr(same.counts, name), rtol=1e-12
            )


@pytest.mark.parametrize("digits", [2, 9])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_score_of_a_cell_has_few_rows(digits: int, weighted: bool) -> None:
    """Few and many distinct scores: the released ones are means of neighbors in one interval of
    the grid.
    """
    rng = np.random.default_rng(0)
    scores, sex = (
        rng.beta(2, 3, 6000).round(digits),
        rng.choice(["f", "m", "x"], 6000, p=[0.6, 0.38, 0.02]),
    )
    weight = rng.lognormal(0, 1, 6000) if weighted else None
    state = AuditState(threshold=0.4).add(
        None, scores, sensitive_features=sex, sample_weight=weight
    )
    release = released_counts(state, 10, None, joint=True)
    (table,), (ends,) = release.tables, release.grid
    counts = table.counts
    assert counts.rows.min() >= 10
    assert counts.rows.sum() == 6000
    for number, (group,) in enumerate(table.cells):
        inside = counts.cell == number
        intervals = [end for end, used in zip(ends, inside, strict=True) if used]
        chosen = [
            (scores >= low) & ((scores < high) | (high >= 1)) & (sex == group)
            for low, high in intervals
        ]
        assert [int(rows.sum()) for rows in chosen] == counts.rows[inside].tolist()
        means = [scores[rows].mean() for rows in chosen]
        np.testing.assert_allclose(counts.low[inside], means, atol=2.0**-7)
        if weighted:
            np.testing.assert_allclose(
                counts.weight[inside], [weight[rows].sum() for rows in chosen], rtol=1e-9
            )
        low, high = np.array(intervals).T
        sure = [rows for rows, is_above in zip(chosen, low >= 0.4, strict=True) if is_above]
        split = [
            rows
            for rows, is_split in zip(chosen, (low < 0.4) & (high > 0.4), strict=True)
            if is_split
        ]
        amount = np.ones(6000) if weight is None else weight
        above = sum(amount[rows].sum() for rows in sure)
        assert (
            above - 1e-6
            <= table.selected[number]
            <= above + sum(amount[rows].sum() for rows in split) + 1e-6
        )


def test_decisions_stay_decisions() -> None:
    scores, sex = (
        np.repeat([0.0, 1.0, 0.0, 1.0], [40, 60, 12, 30]),
        np.repeat(["f", "m"], [100, 42]),
    )
    (table,) = released_counts(
        AuditState().add(None, scores, sensitive_features=sex), 10, None, joint=True
    ).tables
    assert table.counts.low.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert table.counts.rows.tolist() == [40, 60, 12, 30]
    assert table.selected.tolist() == [60.0, 30.0]


def test_evidence_without_scores_of_few_rows_agrees_with_its_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    table = pl.DataFrame(
        {"p": rng.random(2000), "sex": rng.choice(["f", "m"], 2000), "w": rng.lognormal(3, 2, 2000)}
    )
    table.write_csv(tmp_path / "scores.csv")
    options = AuditOptions(resamples=0, permutations=0)
    for name, weight in (("rows", None), ("weighted", "w")):
        made = audit_file(
            tmp_path / "scores.csv",
            score="p",
            group="sex",
            weight=weight,
            options=options,
            random_state=0,
        )
        made.to_evidence(tmp_path / name, min_cell=10, pdf=False, again=True)
        found = verify(tmp_path / name, data=tmp_path / "scores.csv")
        assert found.agrees is True, str(found)
        state = AuditState.load(tmp_path / name / "counts.state")
        assert state.counts.rows.min() >= 10
        written = [one.value for one in state.audit(options=options, random_state=0).findings]
        assert written == pytest.approx([one.value for one in made.findings], abs=0.02)


def test_what_is_suppressed_is_said_on_every_page_and_by_verify(tmp_path: Path) -> None:
    table = table_of(np.random.default_rng(1), 1500, strata=False, missing=False)
    options = AuditOptions(resamples=20, permutations=0)
    made = audit(
        table["y"],
        table["p"],
        sensitive_features=table[["sex", "race"]],
        options=options,
        random_state=0,
    )
    made.to_evidence(tmp_path / "evidence", min_cell=10, score_digits=2, pdf=False)
    found = verify(tmp_path / "evidence")
    assert found.agrees is True
    withheld = [check for check in found.checks if check.outcome == "withheld"]
    assert [(check.kind, check.facts.get("column")) for check in withheld] == [
        ("suppressed", "race"),
        ("merged_scores", None),
        ("distances_on_grid", "sex"),
        ("distances_on_grid", "race"),
    ]
    assert "withheld: Cannot be recomputed: figures of race " in found.summary
    for name in ("README.txt", "report.html"):
        text = (tmp_path / "evidence" / name).read_text()
        assert "Suppressed: race" in " ".join(text.split())
        assert "scores rounded to 2 digits" in " ".join(text.split())
        assert "until each count has at least 10 rows" in " ".join(text.split())
    state = AuditState.load(tmp_path / "evidence" / "counts.state")
    assert min(sizes(state).values()) >= 10
    assert set(state.counts.low.tolist()) <= {round(number / 100, 2) for number in range(101)}


def test_the_range_of_rounded_scores_gives_no_score_away(tmp_path: Path) -> None:
    """The smallest and the largest score are those of single people."""
    scores = np.random.default_rng(0).normal(600, 50, 300)
    options = AuditOptions(resamples=20, permutations=0)
    made = audit(
        None,
        scores,
        sensitive_features=["f", "m"] * 150,
        threshold=600,
        options=options,
        random_state=0,
    )
    for digits in (0, 1, None):
        folder = tmp_path / str(digits)
        protected = {"min_cell": 10} if digits is None else {"score_digits": digits}
        made.to_evidence(folder, **protected, pdf=False, again=True)
        assert verify(folder).agrees is True
        state = AuditState.load(folder / "counts.state")
        np.testing.assert_array_equal(
            state.score_range, np.round(state.score_range, -2 if digits is None else digits)
        )
        if digits is not None:
            for shown in (state.counts.low, state.counts.high):
                np.testing.assert_array_equal(shown, np.round(shown, digits))
        assert state.score_range[0] <= scores.min() < scores.max() <= state.score_range[1]
        text = "".join(
            path.read_text()
            for path in folder.rglob("*")
            if path.suffix in {".json", ".txt", ".csv"}
        )
        assert str(scores.min()) not in text
        assert str(scores.max()) not in text
