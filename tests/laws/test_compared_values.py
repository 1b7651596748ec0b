"""Compared audits match by value: however groups, labels and strata are spelled, and through
whichever entry point.

Each pair of audits has the same scores, so a comparison finds no difference, or refuses with a
clear error.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from metrifair import Audit, AuditDifference, AuditState, DataError, audit, audit_file, compare
from tests.expected_errors import Refusals
from tests.flat_options import flat, flat_audit

N = 400
QUICK: dict[str, Any] = {
    "metrics": ["kolmogorov"],
    "resamples": 20,
    "permutations": 0,
    "random_state": 0,
}
RANDOM = np.random.default_rng(5)
FLAG = RANDOM.random(N) < 0.4
LABEL = RANDOM.random(N) < 0.5
STRATUM = RANDOM.random(N) < 0.5
SEX = np.where(RANDOM.random(N) < 0.5, "f", "m")
SCORE = np.round(RANDOM.random(N) * 0.8 + 0.1 * FLAG + 0.1 * LABEL, 3)

FLAGS: dict[str, Any] = {
    "bool": (False, True),
    "int": (0, 1),
    "float": (0.0, 1.0),
    "text of a bool": ("False", "True"),
    "text of a csv": ("false", "true"),
    "text of an int": ("0", "1"),
    "text of a float": ("0.0", "1.0"),
}
DATES: dict[str, Any] = {
    "date": (date(2024, 5, 1), date(2024, 6, 1)),
    "datetime64": (np.datetime64("2024-05-01"), np.datetime64("2024-06-01")),
    "nanoseconds": (np.datetime64("2024-05-01", "ns"), np.datetime64("2024-06-01", "ns")),
    "text": ("2024-05-01", "2024-06-01"),
    "text with a time": ("2024-05-01 00:00:00", "2024-06-01 00:00:00"),
}


def spelled(flag: np.ndarray, values: tuple[Any, Any]) -> np.ndarray:
    kind = object if isinstance(values[0], date) else None
    return np.where(flag, np.array(values[1], dtype=kind), np.array(values[0], dtype=kind))


def in_memory(columns: dict[str, np.ndarray], folder: Path, **options: Any) -> Audit:
    return flat_audit(
        SCORE,
        y_true=columns["y"],
        sensitive_features={"member": columns["member"]},
        control_features={"region": columns["region"]} if "region" in columns else None,
        **QUICK,
        **options,
    )


def in_file(columns: dict[str, np.ndarray], folder: Path, ending: str, **options: Any) -> Audit:
    path = folder / f"rows.{ending}"
    table = pl.DataFrame(
        {
            "score": SCORE,
            **{
                name: column.tolist() if column.dtype == object else column
                for name, column in columns.items()
            },
        }
    )
    table.write_csv(path) if ending == "csv" else table.write_parquet(path)
    control = "region" if "region" in columns else None
    columns_read = {"score": "score", "group": "member", "label": "y", "control": control}
    return flat_audit(path, audit_file, **columns_read, **QUICK, **options)


def in_csv(columns: dict[str, np.ndarray], folder: Path, **options: Any) -> Audit:
    return in_file(columns, folder, "csv", **options)


def in_parquet(columns: dict[str, np.ndarray], folder: Path, **options: Any) -> Audit:
    return in_file(columns, folder, "parquet", **options)


def out_of_core(columns: dict[str, np.ndarray], folder: Path, **options: Any) -> Audit:
    return in_file(columns, folder, "parquet", in_memory_rows=10, **options)


def in_state(columns: dict[str, np.ndarray], folder: Path, **options: Any) -> Audit:
    threshold = {"threshold": options.pop("threshold")} if "threshold" in options else {}
    control = {"region": columns["region"]} if "region" in columns else None
    state = AuditState(**threshold).add(
        columns["y"],
        SCORE,
        sensitive_features={"member": columns["member"]},
        control_features=control,
    )
    return flat_audit(state, AuditState.audit, **QUICK, **options)


def in_json(columns: dict[str, np.ndarray], folder: Path, **options: Any) -> Path:
    path = folder / f"audit {len(list(folder.iterdir()))}.json"
    in_memory(columns, folder, **options).to_json(path)
    return path


ENTRIES: dict[str, Callable[..., Any]] = {
    "memory": in_memory,
    "csv": in_csv,
    "parquet": in_parquet,
    "out of core": out_of_core,
    "state": in_state,
    "json": in_json,
}


def check_equal(found: AuditDifference) -> None:
    assert found.record.unmatched == 0
    # bins are 1e-5 wide
    assert {round(one.difference, 4) + 0.0 for one in found.differences} == {0.0}
    assert {one.criterion for one in found.differences} >= {
        "decisions",
        "equal_opportunity",
        "predictive_equality",
    }
    assert not {"better", "worse"} & {one.verdict for one in found.differences}


BASE = {"member": FLAG.astype(int), "y": LABEL.astype(int), "region": STRATUM.astype(int)}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("spelling", FLAGS)
def test_flags_match_by_value(spelling: str, entry: str, tmp_path: Path) -> None:
    given = {"member": FLAG, "y": LABEL, "region": STRATUM}
    columns = {name: spelled(flags, FLAGS[spelling]) for name, flags in given.items()}
    before = in_memory(BASE, tmp_path)
    check_equal(compare(before, ENTRIES[entry](columns, tmp_path), paired=False))


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("spelling", DATES)
def test_dates_match_by_value(spelling: str, entry: str, tmp_path: Path) -> None:
    columns = {"member": spelled(FLAG, DATES[spelling]), "y": LABEL}
    before = in_memory({"member": spelled(FLAG, DATES["date"]), "y": LABEL}, tmp_path)
    check_equal(compare(before, ENTRIES[entry](columns, tmp_path), paired=False))


@pytest.mark.parametrize("spelling", [name for name in FLAGS if name != "int"])
def test_intersections_match_part_by_part(spelling: str) -> None:
    parts = [
        {"old": values, "sex": sex}
        for values, sex in ((FLAG.astype(int), SEX), (spelled(FLAG, FLAGS[spelling]), SEX))
    ]
    before, after = (
        audit(LABEL, SCORE, sensitive_features=part, intersectional=True, **flat(**QUICK))
        for part in parts
    )
    check_equal(compare(before, after, paired=False))


def test_rows_pair_by_value() -> None:
    before = audit(LABEL.astype(int), SCORE, sensitive_features=FLAG, **flat(**QUICK))
    after = audit(
        LABEL, SCORE, sensitive_features=spelled(FLAG, ("false", "true")), **flat(**QUICK)
    )
    found = compare(before, after, paired=True)
    assert found.record.pairing == "rows"
    check_equal(found)


def test_values_that_match_several_groups_are_not_compared(refused: Refusals) -> None:
    several = np.where(FLAG, "true", np.where(STRATUM, "True", "false"))
    before = audit(None, SCORE, sensitive_features=several, **flat(**QUICK))
    after = audit(None, SCORE, sensitive_features=FLAG, **flat(**QUICK))
    with refused(DataError):
        compare(before, after)


DIFFERING: dict[str, dict[str, Any]] = {
    "threshold": {"threshold": 0.7},
    "favorable": {"favorable": "low"},
    "pos_label": {"pos_label": 0},
    "reference": {"reference": 0},
    "min_group_share": {"min_group_share": 0.45},
    "confidence": {"confidence": 0.9},
}
VALUES = {
    "threshold": ("0.5", "0.7"),
    "favorable": ("'high'", "'low'"),
    "pos_label": ("1", "0"),
    "reference": ("'highest'", "0"),
    "min_group_share": ("0.02", "0.45"),
    "confidence": ("0.95", "0.9"),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("setting", DIFFERING)
def test_settings_that_change_a_figure_are_refused_by_name(
    setting: str, entry: str, tmp_path: Path
) -> None:
    columns = {"member": BASE["member"], "y": BASE["y"]}
    before = ENTRIES[entry](columns, tmp_path)
    after = ENTRIES[entry](columns, tmp_path, **DIFFERING[setting])
    with pytest.raises(DataError, match=setting) as refused:
        compare(before, after)
    assert all(value in str(refused.value) for value in VALUES[setting])


def test_the_minimum_group_size_is_refused_where_it_moves_the_cuts_of_a_number() -> None:
    options: dict[str, Any] = {
        "sensitive_features": {"age": np.arange(N) % 97},
        "continuous": True,
        **QUICK,
    }
    small, large = (
        audit(None, SCORE, **flat(min_group_size=size, **options)) for size in (10, 120)
    )
    with pytest.raises(DataError, match="min_group_size"):
        compare(small, large)


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0.5},
        {"min_group_size": 5},
        {"standard": "four-fifths"},
        {"contrast": "rest"},
        {"loss": "squared_error"},
        {"resamples": 30},
    ],
)
def test_settings_that_change_no_figure_are_compared(
    options: dict[str, Any], tmp_path: Path
) -> None:
    columns = {"member": BASE["member"], "y": BASE["y"]}
    after = flat_audit(SCORE, y_true=LABEL, sensitive_features={"member": FLAG}, **QUICK | options)
    check_equal(compare(in_memory(columns, tmp_path), after))


def test_decisions_compare_with_scores_at_any_threshold_that_selects_them() -> None:
    decided = (SCORE >= 0.7).astype(int)
    options: dict[str, Any] = {"sensitive_features": FLAG, **QUICK}
    for threshold in (0.5, 0.7):
        found = audit(
            None, {"score": SCORE, "decision": decided}, threshold=threshold, **flat(**options)
        )
        assert isinstance(found, AuditDifference)
        assert compare(
            audit(None, SCORE, threshold=threshold, **flat(**options)),
            audit(None, decided, **flat(**options)),
        ).differences
    with pytest.raises(DataError, match="threshold"):
        compare(
            audit(None, decided, **flat(**options)),
            audit(None, decided, threshold="median", **flat(**options)),
        )
