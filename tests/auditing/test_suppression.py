"""What is released: no small cell, no linear combination that gives one, and no score of few rows."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.random import Generator

from metrifair import AuditOptions, AuditState, audit, audit_file
from metrifair.api.evidence import verify
from metrifair.auditing.state_file import Shape
from metrifair.auditing.suppression import (
    suppressed_values,
    with_merged_scores,
    with_rounded_scores,
    without_small_cells,
)
from metrifair.errors import DataError

KEYS = ("sex", "race", "region", "y", "selected")


def table_of(rng: Generator, rows: int, *, strata: bool, missing: bool) -> pl.DataFrame:
    """People of common and of rare groups, some of no known race."""
    race = rng.choice(["a", "b", "c", "d", "e", "f"], rows, p=[0.5, 0.3, 0.1, 0.05, 0.03, 0.02]).astype(object)
    race[rng.random(rows) < (0.05 if missing else 0.0)] = None
    columns = {
        "p": rng.random(rows).round(3),
        "sex": rng.choice(["f", "m"], rows),
        "race": race.tolist(),
        "region": rng.choice(["north", "south", "isle"], rows, p=[0.5, 0.47, 0.03]) if strata else ["all"] * rows,
        "y": rng.integers(0, 2, rows),
    }
    return pl.DataFrame(columns)


def counted(table: pl.DataFrame) -> AuditState:
    return AuditState().add(
        table["y"], table["p"], sensitive_features=table[["sex", "race"]], control_features=table[["region"]]
    )


def sizes(state: Any) -> dict[tuple[Any, ...], int]:
    """The rows of each cell that are selected, and those that are not."""
    rows = np.bincount(state.counts.cell, state.counts.rows, len(state.cells))
    sides = zip(state.cells, state.selected.astype(int).tolist(), rows.astype(int).tolist(), strict=True)
    found = {(*cell, side): size for cell, some, every in sides for side, size in ((1, some), (0, every - some))}
    return {cell: size for cell, size in found.items() if size}


def derivable(known: np.ndarray) -> np.ndarray:
    """Which unknowns every solution of the equations with these coefficients has in common."""
    _, values, directions = np.linalg.svd(known, full_matrices=True)
    free = directions[int((values > 1e-9).sum()) :]  # along which solutions differ
    return np.abs(free).max(axis=0, initial=0.0) < 1e-9


SETTINGS = list(product(range(8), [False, True], [False, True]))


@pytest.mark.parametrize(("seed", "strata", "missing"), SETTINGS)
def test_no_suppressed_cell_can_be_derived(seed: int, strata: bool, missing: bool) -> None:
    table = table_of(np.random.default_rng(seed), 1500, strata=strata, missing=missing)
    before = counted(table)
    after, suppressed = without_small_cells(before, 10)
    cells, released = list(sizes(before)), sizes(after)
    assert min(released.values()) >= 10
    assert sum(released.values()) + after.withheld == len(table)

    # Everything that is released: each cell of the counts, any sum of them, and the number of rows that are withheld.
    def inside(cell: tuple[Any, ...], into: tuple[Any, ...]) -> bool:
        hidden = [value in suppressed.get(name, ()) for name, value in zip(KEYS, cell, strict=True)]
        return not hidden[2] and into == tuple(
            None if gone else value for gone, value in zip(hidden, cell, strict=True)
        )

    equations = [[float(inside(cell, into)) for cell in cells] for into in released]
    withheld = [float(cell[2] in suppressed.get("region", ())) for cell in cells]
    known = np.array([*equations, withheld, [1.0] * len(cells)])
    amounts = np.array([sizes(before)[cell] for cell in cells])
    totals = [*released.values(), after.withheld, len(table)]
    assert (known @ amounts == totals).all()
    found = derivable(known)
    hidden = np.array([any(cell[at] in suppressed.get(name, ()) for at, name in enumerate(KEYS)) for cell in cells])
    assert hidden.any()
    assert (amounts < 10).any()
    assert not found[hidden | (amounts < 10)].any()
    assert found[~hidden & ~np.array([None in cell for cell in cells])].all()  # the others are as they were


def test_a_suppressed_cell_is_not_released_alone_under_another_name() -> None:
    """Rows of a missing group hide the small cell of x, with label 1, but not its large one, with label 0."""
    sizes = {("x", 1): 3, (None, 1): 50, ("x", 0): 40, ("d", 0): 60, ("d", 1): 60, ("f", 0): 90, ("m", 0): 80}
    shape = Shape(groups=("sex",), label="y")
    assert suppressed_values({**sizes, ("f", 1): 70, ("m", 1): 75}, shape, 10) == {"sex": {"x", "d"}}


def test_a_cell_that_stands_alone_would_be_derived() -> None:
    """The oracle above sees what the suppression of single cells would give away."""
    assert derivable(np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])).tolist() == [True, False, False]
    assert derivable(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])).tolist() == [False, False, True]


def test_figures_of_other_attributes_stay_those_of_all_rows() -> None:
    table = table_of(np.random.default_rng(0), 1500, strata=False, missing=False)
    after, suppressed = without_small_cells(counted(table), 10)
    assert set(suppressed) == {"race"}
    options = AuditOptions(resamples=0, permutations=0)
    found = after.audit(options=options, random_state=0)
    whole = counted(table).audit(options=options, random_state=0)

    def by_sex(one: Any) -> dict[Any, float]:
        return {(f.criterion, f.within, f.metric): f.value for f in one.findings if f.attribute == "sex"}

    assert by_sex(found) == by_sex(whole)
    shown = {group for finding in found.findings if finding.attribute == "race" for group in finding.groups}
    assert shown == {"a", "b", "c", "d", "e", "f"} - set(suppressed["race"])


def test_where_no_two_groups_would_be_left_the_number_is_refused() -> None:
    state = AuditState().add([0, 1] * 8, np.linspace(0, 1, 16), sensitive_features=["f"] * 13 + ["m"] * 3)
    with pytest.raises(
        DataError, match="min_cell 5 leaves too few groups or strata of 'sensitive_features'"
    ) as refused:
        without_small_cells(state, 5)
    # Of the three scores of m, 13/15 to 1, the middle one has label 0.
    assert "(sensitive_features=m, y_true=0, selected), number of rows: 1" in str(refused.value)


@pytest.mark.parametrize("digits", [0, 1, 2, 9])
def test_rounded_scores_are_counted_as_rounded_rows_are(digits: int) -> None:
    rng = np.random.default_rng(0)
    scores, sex, weight = rng.random(500), rng.choice(["f", "m"], 500), rng.random(500)
    for weights in (None, weight):
        state = AuditState().add(None, scores, sensitive_features=sex, sample_weight=weights)
        rounded = with_rounded_scores(state, digits)
        same = AuditState().add(None, scores.round(digits), sensitive_features=sex, sample_weight=weights)
        assert rounded.selected.tolist() == state.selected.tolist()
        for name in ("cell", "bin", "low", "high", "rows", "within", "weight", "moment"):
            np.testing.assert_allclose(getattr(rounded.counts, name), getattr(same.counts, name), rtol=1e-12)


@pytest.mark.parametrize("digits", [2, 9])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_score_of_a_cell_has_few_rows(digits: int, weighted: bool) -> None:
    """Few and many distinct scores: the released ones are means of neighbors on one side of the threshold."""
    rng = np.random.default_rng(0)
    scores, sex = rng.beta(2, 3, 6000).round(digits), rng.choice(["f", "m", "x"], 6000, p=[0.6, 0.38, 0.02])
    weight = rng.lognormal(0, 1, 6000) if weighted else None
    state = AuditState(threshold=0.4).add(None, scores, sensitive_features=sex, sample_weight=weight)
    found = with_merged_scores(state, 10)
    counts = found.counts
    assert counts is not None
    assert counts.rows.min() >= 10
    assert found.selected.tolist() == state.selected.tolist()
    for number, (group,) in enumerate(found.cells):
        own, inside = np.sort(scores[sex == group]), counts.cell == number
        ends = np.append(0, np.cumsum(counts.rows[inside]))
        assert ends[-1] == len(own)
        for low, high, start, end in zip(counts.low[inside], counts.high[inside], ends[:-1], ends[1:], strict=True):
            part = own[start:end]
            assert part.min() - 2.0**-16 <= low <= high <= part.max() + 2.0**-16
            assert (part >= 0.4).all() or (part < 0.4).all()
            if counts.exact:
                np.testing.assert_allclose(low, part.mean(), atol=2e-5)
        alone = [score for score, rows in zip(*np.unique(own, return_counts=True), strict=True) if rows >= 10]
        assert digits > 2 or len(set(alone) & set(counts.low[inside].tolist())) >= len(alone) / 3


def test_a_group_with_few_selected_rows_is_suppressed() -> None:
    scores = np.concatenate([np.linspace(0, 1, 400), np.full(97, 0.2), np.full(3, 0.9)])
    groups = ["f", "m", "x", "y"] * 100 + ["few"] * 100
    state = AuditState().add(None, scores, sensitive_features=groups)
    after, suppressed = without_small_cells(state, 10)
    assert "few" in suppressed["sensitive_features"]
    assert min(sizes(after).values()) >= 10


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_selected_within_a_bin_that_the_threshold_splits_are_few(weighted: bool) -> None:
    """More scores than a state keeps apart: the bin at the threshold has rows on both sides of it."""
    rng, threshold = np.random.default_rng(0), 0.61803
    scores, groups = rng.random(20_000), np.arange(20_000) % 5
    few = np.flatnonzero(groups == 4)
    scores[few] = 0.6 * scores[few]
    scores[few[:200]] = threshold - 1e-6 * rng.random(200)
    scores[few[:2]] = threshold + 1e-7
    weight = rng.uniform(0.5, 2, 20_000) if weighted else None
    state = AuditState(threshold=threshold).add(None, scores, sensitive_features=groups, sample_weight=weight)
    assert not state.counts.exact
    assert 0 < state.selected[4] < 5
    after, suppressed = without_small_cells(state, 10)
    assert 4 in suppressed["sensitive_features"]
    assert min(after.selected) > 10


def test_weights_of_other_cells_do_not_move_rows_over_the_threshold() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.random(400), np.repeat(["heavy", "light"], 200)
    weight = np.where(groups == "heavy", 1e9, 1.0) * rng.uniform(0.5, 2, 400)
    state = AuditState(threshold=0.5).add(None, scores, sensitive_features=groups, sample_weight=weight)
    merged = with_merged_scores(state, 10)
    for cell, name in enumerate(["heavy", "light"]):
        inside = merged.counts.cell == cell
        above = merged.counts.rows[inside & (merged.counts.low >= 0.5)].sum()
        assert above == (scores[groups == name] >= 0.5).sum()


def test_evidence_without_scores_of_few_rows_agrees_with_its_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    table = pl.DataFrame({"p": rng.random(2000), "sex": rng.choice(["f", "m"], 2000), "w": rng.lognormal(3, 2, 2000)})
    table.write_csv(tmp_path / "scores.csv")
    options = AuditOptions(resamples=0, permutations=0)
    for name, weight in (("rows", None), ("weighted", "w")):
        made = audit_file(
            tmp_path / "scores.csv", score="p", group="sex", weight=weight, options=options, random_state=0
        )
        made.to_evidence(tmp_path / name, min_cell=10, pdf=False)
        found = verify(tmp_path / name, data=tmp_path / "scores.csv")
        assert found.agrees is True, str(found)
        state = AuditState.load(tmp_path / name / "counts.state")
        assert state.counts.rows.min() >= 10
        written = [one.value for one in state.audit(options=options, random_state=0).findings]
        assert written == pytest.approx([one.value for one in made.findings], abs=0.02)


def test_what_is_suppressed_is_said_on_every_page_and_by_verify(tmp_path: Path) -> None:
    table = table_of(np.random.default_rng(1), 1500, strata=False, missing=False)
    options = AuditOptions(resamples=20, permutations=0)
    made = audit(table["y"], table["p"], sensitive_features=table[["sex", "race"]], options=options, random_state=0)
    made.to_evidence(tmp_path / "evidence", min_cell=10, score_digits=2, pdf=False)
    found = verify(tmp_path / "evidence")
    assert found.agrees is True
    withheld = [check for check in found.checks if check.outcome == "withheld"]
    assert [(check.kind, check.facts.get("column")) for check in withheld] == [
        ("suppressed", "race"),
        ("merged_scores", None),
    ]
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
    made = audit(None, scores, sensitive_features=["f", "m"] * 150, threshold=600, options=options, random_state=0)
    for digits in (0, 1, None):
        folder = tmp_path / str(digits)
        made.to_evidence(folder, **({"min_cell": 10} if digits is None else {"score_digits": digits}), pdf=False)
        assert verify(folder).agrees is True
        state = AuditState.load(folder / "counts.state")
        np.testing.assert_array_equal(state.score_range, np.round(state.score_range, -2 if digits is None else digits))
        if digits is not None:
            for shown in (state.counts.low, state.counts.high):
                np.testing.assert_array_equal(shown, np.round(shown, digits))
        assert state.score_range[0] <= scores.min() < scores.max() <= state.score_range[1]
        text = "".join(path.read_text() for path in folder.rglob("*") if path.suffix in {".json", ".txt", ".csv"})
        assert str(scores.min()) not in text
        assert str(scores.max()) not in text
