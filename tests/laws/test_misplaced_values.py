"""Values at a wrong place: swapped arguments, masks, durations, bytes, and words or dates among
scores.

Every entry point that takes the values treats them alike: a clear error, or missing values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from click.testing import CliRunner
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline

from metrifair import (
    AuditState,
    BarycenterPostprocessor,
    DataError,
    FairClassifier,
    FairLGBMClassifier,
    FairRegressor,
    FairXGBClassifier,
    TableEncoder,
    audit,
    audit_file,
    audit_table,
    compare,
    frontier,
    unfairness,
)
from metrifair.baselines import ZafarClassifier
from metrifair.cli import main
from metrifair.errors import MetrifairWarning
from metrifair.metrics import energy_distance
from metrifair.nn import UnfairnessPenalty
from tests.expected_errors import Refusals
from tests.flat_options import flat

N = 120
RANDOM = np.random.default_rng(8)
GROUP = np.where(RANDOM.random(N) < 0.5, "f", "m")
LABEL = RANDOM.integers(2, size=N)
STRATUM = RANDOM.integers(2, size=N)
SCORE = RANDOM.random(N)
WEIGHT = RANDOM.random(N) + 0.5
GONE = RANDOM.random(N) < 0.2
QUICK: dict[str, Any] = {"resamples": 0, "permutations": 0, "random_state": 0}
COLUMNS: dict[str, Any] = {
    "score": SCORE,
    "group": GROUP,
    "label": LABEL,
    "stratum": STRATUM,
    "weight": WEIGHT,
}


def named(given: dict[str, Any]) -> dict[str, Any]:
    names = {
        "sensitive_features": "group",
        "control_features": "stratum",
        "sample_weight": "weight",
    }
    return {name: given[role] for name, role in names.items()}


def by_audit(given: dict[str, Any]) -> list[float]:
    result = audit(
        given["label"], given["score"], **named(given), **flat(metrics="kolmogorov", **QUICK)
    )
    return sorted(finding.value for finding in result.findings)


def by_state(given: dict[str, Any]) -> list[float]:
    state = AuditState().add(given["label"], given["score"], **named(given))
    return sorted(
        finding.value for finding in state.audit(metrics="kolmogorov", random_state=0).findings
    )


def by_unfairness(given: dict[str, Any]) -> list[float]:
    return [unfairness(given["label"], given["score"], criterion="equalized_odds", **named(given))]


def by_model(given: dict[str, Any]) -> list[float]:
    model = FairClassifier(0.1, model="linear", random_state=0)
    model.fit(np.column_stack([COLUMNS["score"], WEIGHT]), given["label"], **named(given))
    return [float(value) for value in model.coef_.ravel()]


def by_compare(given: dict[str, Any]) -> list[float]:
    """The change from scores that are never misplaced, with these labels, groups and strata."""
    before, after = (
        audit(given["label"], score, **named(given), **flat(metrics="kolmogorov", **QUICK))
        for score in (1 - COLUMNS["score"], given["score"])
    )
    return sorted(one.difference for one in compare(before, after).differences)


def by_two_models(given: dict[str, Any]) -> list[float]:
    """The difference of two models on the same rows."""
    result = audit(
        given["label"],
        {"old": 1 - COLUMNS["score"], "new": given["score"]},
        **named(given),
        **flat(metrics="kolmogorov", **QUICK),
    )
    return sorted(one.difference for one in result.differences)


def by_frontier(given: dict[str, Any]) -> list[float]:
    front = frontier(
        FairClassifier(model="linear", random_state=0),
        np.column_stack([COLUMNS["score"], WEIGHT]),
        given["label"],
        **named(given),
        strengths=[0.0, 0.002],
        folds=2,
        random_state=0,
    )
    return [figure for point in front.points for figure in (point.unfairness, point.accuracy)]


ENTRIES: dict[str, Callable[[dict[str, Any]], list[float]]] = {
    "audit": by_audit,
    "state": by_state,
    "unfairness": by_unfairness,
    "model": by_model,
    "compare": by_compare,
    "two models": by_two_models,
    "frontier": by_frontier,
}
FITS = ("model", "frontier")
"""Entry points that compute their scores themselves."""


def with_none(values: np.ndarray) -> np.ndarray:
    return np.where(GONE, None, values.astype(object))


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("role", ["group", "stratum"])
def test_masked_groups_and_strata_are_missing(role: str, entry: str) -> None:
    masked = np.ma.array(COLUMNS[role], mask=GONE)
    found = ENTRIES[entry](COLUMNS | {role: masked})
    assert found == ENTRIES[entry](COLUMNS | {role: with_none(COLUMNS[role])})
    assert found != ENTRIES[entry](COLUMNS)
    assert ENTRIES[entry](COLUMNS | {role: {role: masked}}) == found


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("role", ["label", "score", "weight"])
def test_masked_labels_scores_and_weights_are_refused_as_missing_ones(
    role: str, entry: str
) -> None:
    if role == "score" and entry in FITS:
        pytest.skip("a model computes its scores")
    masked, missing = (
        COLUMNS | {role: values}
        for values in (np.ma.array(COLUMNS[role], mask=GONE), np.where(GONE, np.nan, COLUMNS[role]))
    )
    with pytest.raises(ValueError, match=r"finite|missing|no value|NaN") as refusal:
        ENTRIES[entry](missing)
    with pytest.raises(DataError, match=r"finite|missing|no value|NaN") as other:
        ENTRIES[entry](masked)
    if role != "label" or entry not in FITS:  # scikit-learn refuses missing floats in its own words
        assert str(other.value) == str(refusal.value)


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_mask_without_masked_values_changes_nothing(entry: str) -> None:
    masked = {role: np.ma.array(values) for role, values in COLUMNS.items()}
    assert ENTRIES[entry](masked) == ENTRIES[entry](COLUMNS)


def test_masks_of_features_distances_and_penalties_are_missing_values() -> None:
    masked = np.ma.array(SCORE, mask=GONE)
    with pytest.raises(DataError, match="NaN"):
        energy_distance(masked, SCORE)
    with pytest.raises((DataError, ValueError), match="NaN"):
        FairClassifier(0.0, model="linear").fit(
            np.ma.array(SCORE[:, None], mask=GONE[:, None]), LABEL
        )
    codes, scores = (GROUP == "f").astype(int), torch.from_numpy(SCORE)
    penalty = UnfairnessPenalty(random_state=0)(scores, np.ma.array(codes, mask=GONE)).item()
    assert penalty == UnfairnessPenalty(random_state=0)(scores, np.where(GONE, -1, codes)).item()
    assert penalty != UnfairnessPenalty(random_state=0)(scores, codes).item()


FEATURES = np.column_stack([SCORE, RANDOM.random(N)])
READERS: dict[str, Callable[[], Any]] = {
    "encoder": lambda: make_pipeline(TableEncoder(), FairClassifier(0.0, model="linear")),
    "LightGBM": lambda: FairLGBMClassifier(0.0, n_estimators=5, min_child_samples=5, verbose=-1),
    "XGBoost": lambda: FairXGBClassifier(0.0, n_estimators=5),
    "postprocessor": lambda: BarycenterPostprocessor(
        HistGradientBoostingClassifier(random_state=0), random_state=0
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_masked_features_are_missing_values_in_fit_and_predict(reader: str) -> None:
    """scikit-learn and boosters ignore the mask of an array."""
    gone = FEATURES > 0.7
    masked, missing = np.ma.array(FEATURES, mask=gone), np.where(gone, np.nan, FEATURES)
    named = {"sensitive_features": GROUP} if reader == "postprocessor" else {}
    models = [READERS[reader]().fit(rows, LABEL, **named) for rows in (masked, missing, FEATURES)]
    expected = models[1].predict_proba(missing, **named)
    assert np.array_equal(models[0].predict_proba(missing, **named), expected)
    assert np.array_equal(models[1].predict_proba(masked, **named), expected)
    decisions = [models[1].predict(rows, **named) for rows in (masked, missing)]
    assert np.array_equal(*decisions)
    assert not np.array_equal(models[1].predict_proba(FEATURES, **named), expected)
    assert not np.array_equal(models[2].predict_proba(missing, **named), expected)


FEATURES_REFUSED: dict[str, Any] = {
    "durations": (FEATURES * 1e6).astype("timedelta64[s]"),
    "dates": (FEATURES * 1e6).astype("datetime64[s]"),
    "bytes": np.char.encode((FEATURES * 9).astype(int).astype(str)),
    "durations as objects": np.array([[np.timedelta64(3, "s"), 1.0]] * N, dtype=object),
    "durations of pandas": pd.DataFrame({"time": pd.to_timedelta(SCORE * 1e9), "x": SCORE}),
    "only durations of pandas": pd.DataFrame({"time": pd.to_timedelta(SCORE * 1e9)}),
    "only dates of pandas": pd.DataFrame({"time": pd.to_datetime(SCORE * 1e9)}),
    "bytes of polars": pl.DataFrame({"code": [b"0", b"1"] * (N // 2), "x": SCORE}),
    "bytes of pandas": pd.DataFrame({"code": [b"0", b"1"] * (N // 2), "x": SCORE}),
}
LEARNERS: dict[str, Callable[[], Any]] = {
    "FairClassifier": lambda: FairClassifier(0.0, model="linear"),
    "FairRegressor": lambda: FairRegressor(0.0, model="linear"),
    "LightGBM": READERS["LightGBM"],
    "XGBoost": READERS["XGBoost"],
    "baseline": ZafarClassifier,
}


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("features", FEATURES_REFUSED)
def test_durations_dates_and_bytes_are_no_features(features: str, learner: str) -> None:
    """Read as numbers, a model of days would predict from nanoseconds."""
    rows = FEATURES_REFUSED[features]
    named = {"sensitive_features": GROUP} if learner == "baseline" else {}
    with pytest.raises(DataError, match=r"got (durations|bytes|dates)|X contains .*(date|Time)"):
        LEARNERS[learner]().fit(rows, LABEL, **named)
    plain = FEATURES[:, : rows.shape[1]]
    fitted = LEARNERS[learner]().fit(plain, LABEL, **named)
    with pytest.raises(DataError, match=r"got (durations|bytes|dates)|X contains .*(date|Time)"):
        fitted.predict(rows)


def test_postprocessors_read_masked_groups_as_missing_ones() -> None:
    outputs = []
    for groups in (np.ma.array(GROUP, mask=GONE), with_none(GROUP)):
        model = BarycenterPostprocessor(random_state=0, needs_group=False)
        model.fit(SCORE[:, None], LABEL, sensitive_features=groups)
        outputs.append(model.predict_proba(SCORE[:, None]))
    assert np.array_equal(*outputs)


REFUSED: dict[str, Any] = {
    "durations": np.arange(N).astype("timedelta64[D]"),
    "durations as objects": np.array([dt.timedelta(days=day) for day in range(N)], dtype=object),
    "durations of polars": pl.Series([dt.timedelta(days=day % 2) for day in range(N)]),
    "bytes": np.array([b"0", b"1"])[LABEL],
    "bytes as objects": np.array([b"0", b"1"], dtype=object)[LABEL],
    "bytes in a list": [[b"0", b"1"][label] for label in LABEL],
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("role", COLUMNS)
@pytest.mark.parametrize("values", REFUSED)
def test_durations_and_bytes_are_refused(values: str, role: str, entry: str) -> None:
    if role == "score" and entry in FITS:
        pytest.skip("a model computes its scores")
    with pytest.raises(DataError, match=r"got (durations|bytes) such as"):
        ENTRIES[entry](COLUMNS | {role: REFUSED[values]})


ROLES = {
    "score": "score",
    "group": "group",
    "label": "label",
    "control": "stratum",
    "weight": "weight",
}
TYPED = {
    "durations": pl.Series([dt.timedelta(days=day % 2) for day in range(N)]),
    "bytes": pl.Series([[b"0", b"1"][label] for label in LABEL]),
}


@pytest.mark.parametrize("in_memory_rows", [10_000, 10])
@pytest.mark.parametrize("role", COLUMNS)
@pytest.mark.parametrize("values", TYPED)
def test_durations_and_bytes_of_files_and_tables_are_refused(
    values: str, role: str, in_memory_rows: int, tmp_path: Path
) -> None:
    rows = pl.DataFrame(COLUMNS | {role: TYPED[values]})
    rows.write_parquet(tmp_path / "rows.parquet")
    options = flat(in_memory_rows=in_memory_rows, **ROLES, **QUICK)
    database = duckdb.sql("select * from rows")
    for entry in (
        lambda: audit_file(tmp_path / "rows.parquet", **options),
        lambda: audit_table(rows.lazy(), **options),
        lambda: audit_table(database, **options),
    ):
        with pytest.raises(DataError, match=f"{role}.* got (durations|bytes)"):
            entry()


# Swapped arguments.
def test_swapped_labels_and_scores_are_named(tmp_path: Path, refused: Refusals) -> None:
    rows = pl.DataFrame({"p": SCORE.round(2), "y": LABEL, "sex": GROUP})
    rows.write_csv(tmp_path / "rows.csv")
    rows.write_parquet(tmp_path / "rows.parquet")
    swapped: dict[str, Any] = {"score": "y", "label": "p", "group": "sex"}
    entries: list[Callable[[], Any]] = [
        lambda: audit(SCORE, LABEL, sensitive_features=GROUP),
        lambda: audit(SCORE[:10], LABEL[:10] == 1, sensitive_features=GROUP[:10]),
        lambda: audit(SCORE.tolist(), {"a": LABEL, "b": 1 - LABEL}, sensitive_features=GROUP),
        lambda: unfairness(SCORE, LABEL, sensitive_features=GROUP),
        lambda: (
            AuditState().add(SCORE.round(2), LABEL, sensitive_features=GROUP).audit(random_state=0)
        ),
        lambda: audit_table(rows.lazy(), **swapped),
    ]
    for ending in ("csv", "parquet"):
        for in_memory_rows in (10_000, 10):
            options = flat(in_memory_rows=in_memory_rows, **swapped)
            entries.append(
                lambda ending=ending, options=options: audit_file(
                    tmp_path / f"rows.{ending}", **options
                )
            )
    for entry in entries:
        with refused(DataError):
            entry()
    done = CliRunner().invoke(
        main,
        ["audit", str(tmp_path / "rows.csv"), "--score", "y", "--label", "p", "--group", "sex"],
    )
    assert done.exit_code != 0
    assert "--label and --score look swapped" in " ".join(done.output.split())


NOT_SWAPPED: dict[str, dict[str, Any]] = {
    "labels and scores": {"y_true": LABEL, "y_pred": SCORE},
    "labels and decisions": {"y_true": LABEL, "y_pred": 1 - LABEL},
    "a target and predictions": {"y_true": SCORE, "y_pred": SCORE**2},
    "a target beyond 1 and decisions": {"y_true": 3 * SCORE, "y_pred": LABEL},
    "a target and a constant": {"y_true": SCORE, "y_pred": np.zeros(N)},
    "no target": {"y_true": None, "y_pred": LABEL},
    "a loss of a numeric target": {"y_true": SCORE, "y_pred": LABEL, "loss": "squared_error"},
}


@pytest.mark.parametrize("case", NOT_SWAPPED)
def test_other_arguments_do_not_look_swapped(case: str) -> None:
    given = dict(NOT_SWAPPED[case])
    y_true, y_pred = given.pop("y_true"), given.pop("y_pred")
    assert audit(y_true, y_pred, sensitive_features=GROUP, **flat(**given, **QUICK)).findings


def test_swapped_scores_and_groups_are_named(refused: Refusals) -> None:
    for scores in (SCORE, SCORE.round(1)):
        with refused(DataError):
            audit(
                LABEL, GROUP, sensitive_features=scores, **flat(continuous=False, max_groups=1_000)
            )
        with refused(DataError):
            unfairness(LABEL, GROUP, sensitive_features=scores, continuous=False)
    with pytest.warns(
        MetrifairWarning, match="'sensitive_features' from 0 to 1 may be scores, not groups"
    ):
        audit(LABEL, SCORE**2, sensitive_features=SCORE, **flat(**QUICK))
    with (
        pytest.warns(MetrifairWarning, match="may be scores, not groups"),
        refused(DataError),
    ):
        audit(LABEL, GROUP, sensitive_features=SCORE)


CODES: dict[str, np.ndarray] = {
    "integers": STRATUM,
    "booleans": STRATUM == 1,
    "floating-point numbers": STRATUM.astype(float),
}


@pytest.mark.filterwarnings("ignore:.*may be scores:metrifair.errors.MetrifairWarning")
@pytest.mark.parametrize("digits", [1, 2, 15])
@pytest.mark.parametrize("codes", CODES)
def test_swapped_scores_and_groups_of_0_and_1_are_named(
    codes: str, digits: int, tmp_path: Path, refused: Refusals
) -> None:
    group, score = CODES[codes], SCORE.round(digits)
    rows = pl.DataFrame({"sex": group, "p": score, "y": LABEL})
    rows.write_parquet(tmp_path / "rows.parquet")
    swapped: dict[str, Any] = {"score": "sex", "label": "y", "group": "p"}
    entries: list[Callable[[], Any]] = [
        lambda: audit(LABEL, group, sensitive_features=score),
        lambda: audit(None, {"a": group, "b": 1 - group}, sensitive_features=score),
        lambda: unfairness(LABEL, group, sensitive_features=score),
        lambda: AuditState().add(LABEL, group, sensitive_features=score).audit(random_state=0),
    ]
    for in_memory_rows in (10_000, 10):
        options = flat(in_memory_rows=in_memory_rows, **swapped)
        entries += [
            lambda options=options: audit_file(tmp_path / "rows.parquet", **options),
            lambda options=options: audit_table(rows.lazy(), **options),
        ]
    for entry in entries:
        with refused(DataError):
            entry()
    roles = ["--score", "sex", "--label", "y", "--group", "p"]
    done = CliRunner().invoke(main, ["audit", str(tmp_path / "rows.parquet"), *roles])
    assert done.exit_code != 0
    assert "--score and --group look swapped" in " ".join(done.output.split())
    assert "--continuous p" in " ".join(done.output.split())


GROUPS_OF_DECISIONS: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
    "shares that are stated to be numbers": (SCORE, {"continuous": True}),
    "shares that are stated to be groups": (SCORE.round(1), {"continuous": False}),
    "shares in bands": (SCORE, {"cuts": [0.5]}),
    "three codes": (RANDOM.integers(3, size=N) / 2, {}),
    "shares and integers above": (3 * SCORE, {}),
}


@pytest.mark.filterwarnings("ignore::metrifair.errors.MetrifairWarning")
@pytest.mark.parametrize("case", GROUPS_OF_DECISIONS)
def test_decisions_and_groups_do_not_look_swapped(case: str) -> None:
    groups, stated = GROUPS_OF_DECISIONS[case]
    assert audit(LABEL, STRATUM, sensitive_features=groups, **flat(**stated, **QUICK)).findings


# A wrong value among scores.
PREDICTION_ENTRIES: dict[str, Callable[[Any], Any]] = {
    "audit": lambda scores: audit(LABEL, scores, sensitive_features=GROUP),
    "unfairness": lambda scores: unfairness(None, scores, sensitive_features=GROUP),
    "state": lambda scores: AuditState().add(None, scores, sensitive_features=GROUP),
}


@pytest.mark.parametrize("entry", PREDICTION_ENTRIES)
@pytest.mark.parametrize("row", [0, 3, N - 1])
def test_one_wrong_value_among_scores_is_named_with_its_row(row: int, entry: str) -> None:
    scores = SCORE.astype(object)
    scores[row] = "?"
    for values in (
        scores,
        scores.tolist(),
        pl.Series(list(map(str, scores))),
        [str(value) for value in scores],
    ):
        with pytest.raises(DataError) as refusal:
            PREDICTION_ENTRIES[entry](values)
        assert f"y_pred must contain numbers, got '?' in row {row}; correct these values" in str(
            refusal.value
        )
        assert "favorable_decision" not in str(refusal.value)


@pytest.mark.parametrize("entry", PREDICTION_ENTRIES)
def test_dates_as_scores_are_no_decisions(entry: str, refused: Refusals) -> None:
    days = np.datetime64("2026-01-01") + np.arange(N)
    for values in (days, days.astype(object), days.astype(str), pl.Series(days)):
        with refused(DataError) as refusal:
            PREDICTION_ENTRIES[entry](values)
        assert "favorable_decision" not in str(refusal.value)


SCORES_OF_FILES: dict[str, tuple[list[Any], str, bool]] = {
    "one word among numbers": ([0.5] * 4 + ["abc"] + [0.25] * 5, "abc", False),
    "dates": ([f"2026-01-{day:02d}" for day in range(1, 11)], "2026-01-01", False),
    "decisions": (["yes", "no"] * 5, "yes", True),
}


@pytest.mark.parametrize("case", SCORES_OF_FILES)
@pytest.mark.parametrize("in_memory_rows", [10_000, 2])
def test_the_favorable_decision_is_a_remedy_of_decisions_only(
    case: str, in_memory_rows: int, tmp_path: Path
) -> None:
    scores, value, are_decisions = SCORES_OF_FILES[case]
    path = tmp_path / "rows.csv"
    path.write_text(
        "p,sex\n" + "".join(f"{score},{'fm'[row % 2]}\n" for row, score in enumerate(scores))
    )
    with pytest.raises(DataError, match=f"must contain numbers, got '{value}'") as refusal:
        audit_file(path, score="p", group="sex", **flat(in_memory_rows=in_memory_rows))
    assert ("favorable_decision" in str(refusal.value)) == are_decisions
    shown = CliRunner().invoke(main, ["audit", str(path), "--score", "p", "--group", "sex"]).output
    assert value in shown
    assert ("--favorable-decision" in shown) == are_decisions
    table = pl.DataFrame({"p": list(map(str, scores)), "sex": ["f", "m"] * 5})
    with pytest.raises(DataError, match="not numbers") as refusal:
        audit_table(table.lazy(), score="p", group="sex")
    assert ("favorable_decision" in str(refusal.value)) == are_decisions


@pytest.mark.parametrize("ending", ["parquet", "table"])
def test_columns_of_dates_are_no_decisions(ending: str, tmp_path: Path) -> None:
    rows = pl.DataFrame(
        {"p": [dt.date(2026, 1, day) for day in (1, 2)] * 5, "sex": ["f", "m", "m", "f", "m"] * 2}
    )
    rows.write_parquet(tmp_path / "rows.parquet")
    entry, source = (
        (audit_file, tmp_path / "rows.parquet")
        if ending == "parquet"
        else (audit_table, rows.lazy())
    )
    with pytest.raises(DataError, match="numbers") as refusal:
        entry(source, score="p", group="sex")
    assert "favorable_decision" not in str(refusal.value)
