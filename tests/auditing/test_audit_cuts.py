"""Numbers that are cut: into groups where that is asked for, into levels where there are too
many values to count.
"""

from __future__ import annotations

import duckdb
import numpy as np
import polars as pl
import pytest

from metrifair import AuditOptions, AuditState, audit, audit_file, audit_table
from metrifair.errors import DataError
from metrifair.metrics import energy_dependence, kolmogorov_distance
from tests.expected_errors import Refusals
from tests.flat_options import flat
from tests.seams.auditing import Roles, count_file, memory
from tests.seams.problem import in_groups

FAST = {"random_state": 0, "permutations": 0, "resamples": 0}
GROUPS = ("≤25", "(25,60]", ">60")


def people(n: int = 3000) -> pl.DataFrame:
    generator = np.random.default_rng(0)
    age = generator.integers(18, 90, n).astype(float)
    income = generator.lognormal(10, 1, n)
    score = np.clip(generator.normal(0.5, 0.15, n) - 0.2 * (age > 60) + 0.02 * np.log(income), 0, 1)
    table = pl.DataFrame({"p": score, "age": age, "income": income, "row": np.arange(n)})
    return table.with_columns(age=pl.when(pl.col("row") % 100 == 0).then(None).otherwise("age"))


def figures(found) -> list[tuple[object, ...]]:
    return [
        (one.groups, one.sizes, one.metric, pytest.approx(one.value, abs=1e-5))
        for one in found.findings
    ]


def test_cuts_make_the_same_groups_wherever_the_rows_are(tmp_path) -> None:
    table = people()
    table.write_parquet(tmp_path / "p.parquet")
    table.write_csv(tmp_path / "p.csv")
    columns, cuts = {"score": "p", "group": "age"}, {"age": [60, 25]}
    held = audit(
        None, table["p"], sensitive_features=table.select("age"), **flat(cuts=[25, 60], **FAST)
    )
    assert {one.groups for one in held.findings} == {
        (GROUPS[0], GROUPS[1]),
        (GROUPS[0], GROUPS[2]),
        GROUPS[1:],
    }
    old, young = (
        table.filter(way)["p"].to_numpy() for way in (pl.col("age") > 60, pl.col("age") <= 25)
    )
    (pair,) = [
        one
        for one in held.findings
        if set(one.groups) == {GROUPS[0], GROUPS[2]} and one.metric == "kolmogorov"
    ]
    assert pair.value == pytest.approx(kolmogorov_distance(young, old), abs=1e-12)
    assert [rate.group for rate in held.decisions[0].rates] == list(GROUPS)
    others = [
        audit_file(tmp_path / name, **flat(cuts=cuts, in_memory_rows=rows, **columns, **FAST))
        for name in ("p.parquet", "p.csv")
        for rows in (10, 10**6)
    ]
    others += [
        audit_table(table, **flat(cuts=cuts, in_memory_rows=rows, **columns, **FAST))
        for rows in (0, 10**6)
    ]
    duck = duckdb.connect()
    duck.register("people", table.to_arrow())
    others.append(
        audit_table(duck.table("people"), **flat(cuts=cuts, in_memory_rows=0, **columns, **FAST))
    )
    state = AuditState()
    count_file(state, tmp_path / "p.csv", Roles.from_names(**columns, cuts=cuts))
    others.append(state.audit(**flat(**FAST)))
    for found in others:
        assert figures(found) == figures(held)


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        ({"pay": [1]}, "cuts names 'pay', which is none of the sensitive features ['age', 'sex']"),
        (
            [25],
            (
                "cuts must name the column that is cut, where there are several, got [25]; "
                "pass options=AuditOptions(cuts=...), with one of the columns 'age', 'sex'"
            ),
        ),
        ({"age": []}, "the cuts of 'age' must be finite numbers, at least one, got []"),
        ({"age": ["x"]}, "the cuts of 'age' must be finite numbers, at least one, got ['x']"),
        (
            {"age": [float("nan")]},
            "the cuts of 'age' must be finite numbers, at least one, got [nan]",
        ),
    ],
)
def test_cuts_that_cannot_be_meant_are_refused(cuts, message: str) -> None:
    with pytest.raises(DataError) as error:
        audit(
            None,
            [0.1, 0.2, 0.3],
            sensitive_features={"age": [20, 30, 40], "sex": list("fmf")},
            options=AuditOptions(cuts=cuts),
        )
    assert str(error.value) == message


def test_names_cannot_be_cut(refused: Refusals) -> None:
    with pytest.raises(DataError, match="sex"):
        in_groups({"sex": np.array(["f", "m"])}, [25])
    with refused(DataError):
        audit_table(
            pl.DataFrame({"p": [0.1, 0.2], "sex": ["f", "m"]}),
            score="p",
            group="sex",
            options=AuditOptions(cuts=[1]),
        )


@pytest.mark.parametrize("place", ["held", "parquet", "csv", "polars", "duckdb"])
def test_a_number_of_very_many_values_is_cut_into_levels_to_be_counted(
    tmp_path, monkeypatch, place: str
) -> None:
    # names that are told apart in memory
    monkeypatch.setattr(memory, "MOST_LEVELS", 1000)
    table = people()
    held = audit(
        None, table["p"], sensitive_features=table.select("income"), continuous=True, **flat(**FAST)
    )
    options = {"score": "p", "group": "income", "continuous": ["income"], **FAST}
    if place in ("held", "parquet", "csv"):
        path = tmp_path / f"s.{'parquet' if place == 'held' else place}"
        (table.write_csv if place == "csv" else table.write_parquet)(path)
        found = audit_file(path, **flat(in_memory_rows=10**6 if place == "held" else 10, **options))
    else:
        duck = duckdb.connect()
        duck.register("people", table.to_arrow())
        found = audit_table(
            table if place == "polars" else duck.table("people"),
            **flat(in_memory_rows=0, **options),
        )
    ours, theirs = ({one.metric: one for one in one.findings} for one in (held, found))
    exact = place == "held"
    assert theirs["kolmogorov"].value == pytest.approx(
        ours["kolmogorov"].value, rel=1e-9 if exact else 0.05
    )
    assert theirs["energy"].value == pytest.approx(
        energy_dependence(table["p"], table["income"]), rel=1e-9 if exact else 0.02
    )
    cut = float(theirs["kolmogorov"].groups[0].removeprefix("≤"))
    # six digits of it
    assert theirs["kolmogorov"].sizes[0] == pytest.approx((table["income"] <= cut).sum(), abs=1)
    assert any("256 levels" in text for text in found.note_texts()) == (not exact)


def test_numbers_of_rows_are_not_measurements(tmp_path, refused: Refusals) -> None:
    people().write_parquet(tmp_path / "s.parquet")
    for rows in (10, 10**6):
        with refused(DataError):
            audit_file(
                tmp_path / "s.parquet", score="p", group="row", **flat(in_memory_rows=rows, **FAST)
            )


def test_numbers_written_with_trailing_zeros_are_numbers(tmp_path) -> None:
    shares = [f"{value:.2f}" for value in np.linspace(0, 1, 60)]
    pl.DataFrame({"p": np.linspace(0, 1, 60), "share": shares}).write_csv(tmp_path / "s.csv")
    found = audit_file(
        tmp_path / "s.csv", score="p", group="share", **flat(continuous=["share"], **FAST)
    )
    assert found.findings[0].cuts
