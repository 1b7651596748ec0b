"""Attacks on a series of releases of the same rows: none gives an exact score, nor a count
below the minimum.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from metrifair import AuditOptions, AuditState, audit
from metrifair.errors import DataError
from metrifair.evidence import verify
from tests.seams.auditing import suppression

OPTIONS = AuditOptions(resamples=0, permutations=0)
WIDTH = 2.0**-8
"""The width of a cell of the public grid of scores in [0, 1]."""

Cells = Mapping[tuple[Any, ...], list[tuple[float, int]]]


def people(rows: int = 2400, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], rows)
    y = rng.integers(0, 2, rows)
    score = np.clip(rng.beta(2, 2, rows) * 0.9 + 0.05 * (sex == "m") + 0.03 * y, 0, 1)
    region = rng.choice(["n", "s", "e"], rows)
    race = rng.choice(["a", "b", "c", "d"], rows, p=[0.5, 0.3, 0.15, 0.05])
    return pl.DataFrame({"p": score, "sex": sex, "race": race, "region": region, "y": y})


def release(
    table: pl.DataFrame, folder: Path, *, columns: Sequence[str] = ("sex",), **options: Any
) -> Path:
    """Evidence of the rows, by sex and label."""
    asked = {"threshold": options.pop("threshold")} if "threshold" in options else {}
    made = audit(
        table["y"],
        table["p"],
        sensitive_features=table[list(columns)],
        control_features=options.pop("control", None),
        options=OPTIONS,
        random_state=0,
        **asked,
    )
    try:
        made.to_evidence(folder, pdf=False, again=True, **options)
    except TypeError:  # a version without a ledger
        made.to_evidence(folder, pdf=False, **options)
    return folder


def states(folder: Path) -> list[AuditState]:
    return [
        AuditState.load(path)
        for path in sorted(folder.glob("counts*.state"), key=lambda path: len(path.name))
    ]


def counts_in(folder: Path) -> Cells:
    """Score and rows of each count, by cell, as anybody can read them from the released files."""
    found = defaultdict(list)
    for number, state in enumerate(states(folder)):
        counts = state.counts
        for cell, low, high, rows in zip(
            counts.cell, counts.low, counts.high, counts.rows, strict=True
        ):
            found[number, *state.cells[cell]].append((float(low + high) / 2, int(rows)))
    return found


def points(counts: Sequence[tuple[float, int]]) -> list[tuple[int, float]]:
    """Numbers of rows up to each count, and the sums of their scores."""
    rows = np.cumsum([0, *(rows for _, rows in counts)])
    sums = np.cumsum([0.0, *(score * rows for score, rows in counts)])
    return list(zip(rows.tolist(), sums.tolist(), strict=True))


def selected_in(folder: Path) -> dict[tuple[Any, ...], float]:
    return {
        (number, *cell): float(selected)
        for number, state in enumerate(states(folder))
        for cell, selected in zip(state.cells, state.selected, strict=True)
    }


def recovered_by_two_minima(table: pl.DataFrame, folder: Path) -> tuple[int, int]:
    """Exact scores that follow from releases with 10 and with 11 rows; and counts below 10 rows
    that follow.
    """
    cells = [counts_in(release(table, folder / str(least), min_cell=least)) for least in (10, 11)]
    true, exact, few = np.sort(table["p"].to_numpy()), set(), 0
    for cell in cells[0].keys() & cells[1].keys():
        known = sorted({*points(cells[0][cell]), *points(cells[1][cell])})
        for (rows, total), (more, more_total) in pairwise(known):
            few += 0 < more - rows < 10
            if more - rows == 1:
                at = np.searchsorted(true, more_total - total)
                near = true[max(0, at - 1) : at + 1]
                exact |= {
                    float(score) for score in near if abs(score - (more_total - total)) < 1e-7
                }
    return len(exact), few


def test_two_minima_give_no_score_and_no_small_count(tmp_path: Path) -> None:
    """On the code before, 51 scores."""
    assert recovered_by_two_minima(people(), tmp_path) == (0, 0)


def test_two_thresholds_give_no_small_count(tmp_path: Path) -> None:
    """On the code before, in 20 of 24 cells."""
    table = people(2400)
    asked = {"columns": ["sex", "race"], "min_cell": 10, "control": table[["region"]]}
    found = [
        selected_in(release(table, tmp_path / str(t), threshold=t, **asked))
        for t in (0.5, 0.51, 0.52)
    ]
    assert len(found[0]) >= 12
    for one, other in combinations(found, 2):
        moved = [abs(one[cell] - other[cell]) for cell in one.keys() & other.keys()]
        assert not any(0 < rows < 10 for rows in moved)


@pytest.mark.parametrize("score", [0.3123456, 0.5, 0.7654321])
def test_one_more_person_gives_no_score(score: float, tmp_path: Path) -> None:
    """On the code before, the sums of her cell differ by her score."""
    table = people()
    her = pl.DataFrame(
        {"p": [score], "sex": ["f"], "race": ["a"], "region": ["n"], "y": [1]}, schema=table.schema
    )
    before = counts_in(release(table, tmp_path / "before", min_cell=10))
    after = counts_in(release(pl.concat([table, her]), tmp_path / "after", min_cell=10))
    totals = [sum(score * rows for score, rows in cells[0, "f", 1]) for cells in (before, after)]
    sizes = [sum(rows for _, rows in cells[0, "f", 1]) for cells in (before, after)]
    assert sizes[1] - sizes[0] == 1
    if score != 0.5:
        assert abs(totals[1] - totals[0] - score) > 1e-4
    same = {score + shift for shift in (WIDTH * 0.01, WIDTH * 0.001)}
    assert len({int(one / WIDTH) for one in (*same, score)}) == 1
    for number, other in enumerate(sorted(same)):
        moved = pl.concat([table, her.with_columns(p=pl.lit(other))])
        assert counts_in(release(moved, tmp_path / f"{number}", min_cell=10)) == after


@pytest.mark.parametrize("columns", [["sex"], ["sex", "race"]])
def test_releases_are_functions_of_the_public_grid(columns: list[str], tmp_path: Path) -> None:
    """Scores anywhere in the same grid cells give the same files: no series of releases shows
    more than the cells.
    """
    table = people(900)
    rng = np.random.default_rng(1)
    moved = (np.floor(table["p"].to_numpy() / WIDTH) + rng.uniform(0.05, 0.95, len(table))) * WIDTH
    other = table.with_columns(p=pl.Series(moved))
    for number, (least, threshold) in enumerate(product([5, 10], [0.5, 0.437])):
        asked = {"columns": columns, "min_cell": least, "threshold": threshold}
        folders = [
            release(rows, tmp_path / f"{number}-{at}", **asked)
            for at, rows in enumerate((table, other))
        ]
        files = [path.relative_to(folders[0]) for path in folders[0].rglob("*") if path.is_file()]
        names = [
            name
            for name in files
            if name.name != "MANIFEST.json" and name.suffix in (".state", ".csv")
        ]
        assert len(names) >= 4
        for name in names:
            assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
        grids = [json.loads((folder / "MANIFEST.json").read_text())["grid"] for folder in folders]
        assert grids[0] == grids[1]


def intervals(folder: Path) -> dict[tuple[Any, ...], dict[tuple[float, float], int]]:
    """Rows by cell and interval of the grid."""
    grid = json.loads((folder / "MANIFEST.json").read_text())["grid"]
    found = defaultdict(dict)
    for number, state in enumerate(states(folder)):
        name = "counts.state" if number == 0 else f"counts-{number + 1}.state"
        for cell, rows, ends in zip(state.counts.cell, state.counts.rows, grid[name], strict=True):
            found[number, *state.cells[cell]][tuple(ends)] = int(rows)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_counts_of_a_larger_minimum_are_sums_of_those_of_a_smaller_one(
    seed: int, tmp_path: Path
) -> None:
    table = people(1500, seed)
    fine, coarse = (
        intervals(release(table, tmp_path / str(least), columns=["race"], min_cell=least))
        for least in (10, 17)
    )
    assert coarse.keys() <= fine.keys()
    for cell, counts in coarse.items():
        for (low, high), rows in counts.items():
            inside = {
                ends: size
                for ends, size in fine[cell].items()
                if ends[0] >= low and ends[1] <= high
            }
            assert sum(inside.values()) == rows >= 17
            assert min(inside.values()) >= 10
        assert sum(counts.values()) == sum(fine[cell].values())


def test_grids_of_other_ranges_have_the_same_ends(tmp_path: Path) -> None:
    """Otherwise, two declared ranges would give the rows between their ends."""
    table = people(1200)
    ends = []
    for high in (1.0, 1.5, 3.0):
        made = audit(
            table["y"],
            table["p"],
            sensitive_features=table[["sex"]],
            options=AuditOptions(resamples=0, permutations=0, score_range=(0.0, high)),
            threshold=0.5,
            random_state=0,
        )
        made.to_evidence(tmp_path / str(high), min_cell=10, pdf=False, again=True)
        ends.append(intervals(tmp_path / str(high)))
    for cell in ends[0]:
        for one, other in combinations(ends, 2):
            for (low, high), (start, stop) in product(one[cell], other[cell]):
                apart = high <= start or stop <= low
                assert apart or (low >= start and high <= stop) or (start >= low and stop <= high)


def smallest_derivable(found: Mapping[tuple[Any, ...], Mapping[tuple[float, float], int]]) -> float:
    """The fewest rows of a group in an interval of scores that follow from the tables of all
    attributes.

    Unknowns are the rows of each cell between neighboring ends of intervals. All tables count the
    same rows.
    """
    fewest = np.inf
    for label in (0, 1):
        cells = [cell for cell in found if cell[-1] == label]
        ends = sorted({end for cell in cells for interval in found[cell] for end in interval})
        pieces = list(pairwise(ends))
        number = {key: at for at, key in enumerate(product(cells, pieces))}
        equations, totals = [], []

        def add(places: Sequence[int], total: int, signs: Sequence[int] | int = 1) -> None:
            row = np.zeros(len(number))  # noqa: B023
            row[list(places)] = signs
            equations.append(row)  # noqa: B023
            totals.append(total)  # noqa: B023

        for cell in cells:
            covered = set()
            for (low, high), rows in found[cell].items():
                inside = [piece for piece in pieces if low <= piece[0] and piece[1] <= high]
                covered |= set(inside)
                add([number[cell, piece] for piece in inside], rows)
            for piece in set(pieces) - covered:
                add([number[cell, piece]], 0)
        for piece in pieces:
            signs = [1 if cell[0] == 0 else -1 for cell in cells]
            add([number[cell, piece] for cell in cells], 0, signs)
        solution = np.linalg.lstsq(np.array(equations), np.array(totals, float), rcond=None)[0]
        _, scale, directions = np.linalg.svd(np.array(equations), full_matrices=True)
        free = directions[int((scale > 1e-9).sum()) :]
        for cell, (first, last) in product(cells, combinations(range(len(pieces) + 1), 2)):
            places = [number[cell, piece] for piece in pieces[first:last]]
            rows = solution[places].sum()
            if rows > 0.5 and np.abs(free[:, places].sum(1)).max(initial=0.0) < 1e-8:
                fewest = min(fewest, rows)
    return fewest


@pytest.mark.parametrize("seed", range(6))
def test_totals_of_one_attribute_give_no_small_count_of_another(seed: int, tmp_path: Path) -> None:
    table = people(700, seed)
    found = intervals(release(table, tmp_path / "a", columns=["sex", "race"], min_cell=10))
    assert 10 - 1e-6 < smallest_derivable(found) < np.inf


def test_cells_that_are_merged_alone_would_give_small_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oracle above sees what two tables give away if each cell is merged without regard to
    the totals.
    """
    linked = suppression._table_nodes
    monkeypatch.setattr(
        suppression, "_table_nodes", lambda *rows, linked: table_nodes(*rows, linked=False)
    )
    table_nodes = linked
    found = intervals(release(people(700), tmp_path / "a", columns=["sex", "race"], min_cell=10))
    assert smallest_derivable(found) < 9


def test_a_group_of_six_rows_leaves_alone(tmp_path: Path) -> None:
    """Before, a group of 1,000 rows left with it to protect the total."""
    rng = np.random.default_rng(0)
    sex = np.repeat(["a", "b", "z"], [1000, 1500, 6])
    made = audit(
        None, rng.random(2506), sensitive_features={"sex": sex}, options=OPTIONS, random_state=0
    )
    made.to_evidence(tmp_path / "e", min_cell=10, pdf=False)
    groups = {
        group
        for finding in json.loads((tmp_path / "e/audit.json").read_text())["findings"]
        for group in finding["groups"]
    }
    assert groups == {"a", "b"}
    assert verify(tmp_path / "e").agrees is True
    for path in (tmp_path / "e").rglob("*"):
        if path.suffix in (".json", ".txt", ".csv", ".html"):
            assert not re.search(r"\b2,?506\b(?!\.)", path.read_text().replace("0.2506", ""))
    (state,) = states(tmp_path / "e")
    assert state.left_out == 16


def test_1500_rows_of_sex_race_and_label_are_released(tmp_path: Path) -> None:
    table = people(1500)
    release(table, tmp_path / "e", columns=["sex", "race"], min_cell=10)
    verified = verify(tmp_path / "e")
    assert verified.agrees is True, verified
    findings = json.loads((tmp_path / "e/audit.json").read_text())["findings"]
    assert {finding["attribute"] for finding in findings} == {"sex", "race"}
    assert {group for finding in findings for group in finding["groups"]} == {
        "f",
        "m",
        "a",
        "b",
        "c",
        "d",
    }
    for counts in counts_in(tmp_path / "e").values():
        assert min(rows for _, rows in counts) >= 10


def test_another_release_of_the_same_rows_is_refused(tmp_path: Path) -> None:
    table = people(600)

    def write(
        name: str, columns: Sequence[str] = ("sex",), order: Any = None, **options: Any
    ) -> None:
        rows = table if order is None else table[order]
        again = {"again": options.pop("again")} if "again" in options else {}
        threshold = options.pop("threshold", "auto")
        made = audit(
            rows["y"], rows["p"], sensitive_features=rows[list(columns)], threshold=threshold, options=OPTIONS,
            random_state=options.pop("seed", 0),
        )  # fmt: skip
        made.to_evidence(tmp_path / name, pdf=False, **options, **again)

    write("first", min_cell=10)
    write("same", min_cell=10, title="Again", seed=1)
    write("archive.zip", min_cell=10)
    shuffled = np.random.default_rng(0).permutation(600)
    others: list[dict[str, Any]] = [
        {"min_cell": 11},
        {"min_cell": 1},
        {"min_cell": 10, "score_digits": 2},
        {"min_cell": 10, "threshold": 0.6},
        {"min_cell": 10, "columns": ["race"]},
        {"min_cell": 11, "order": shuffled},
    ]
    for asked, name in product(others, ("other", "other.zip")):
        with pytest.raises(
            DataError, match=r"the same rows were released as .* with other parameters .*again=True"
        ):
            write(name, **asked)
        assert not (tmp_path / name).exists()
    write("other", min_cell=11, again=True)
    write("repeated", min_cell=10)  # nothing that "first" does not show
    with pytest.raises(DataError, match="the same rows were released"):
        write("third", min_cell=12)
    table = people(600, seed=1)
    write("others", min_cell=11)
    ledger = json.loads((tmp_path / "metrifair-releases.json").read_text())
    assert [entry["name"] for entry in ledger["releases"]] == ["first", "other", "others"]
    (tmp_path / "metrifair-releases.json").write_text("[")
    with pytest.raises(DataError, match="the list of earlier releases"):
        write("more", min_cell=10)
