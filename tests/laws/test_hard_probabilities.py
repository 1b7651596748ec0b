"""Probabilities of 0 and 1 are groups: every point figure of every audit is that of the groups
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from metrifair import (
    AuditOptions,
    GroupProbabilities,
    audit,
    audit_file,
    audit_table,
    compare,
    monitor,
    unfairness,
)
from tests.expected_errors import Refusals
from tests.seams.auditing import AuditRecord
from tests.seams.metrics import METRICS

CLOSE = 1e-12
RANDOM = np.random.default_rng(4)
ROWS = 150
RACE = RANDOM.choice(["a", "b", "c"], ROWS)
LABEL = RANDOM.integers(0, 2, ROWS)
SCORE = np.round(np.clip(RANDOM.normal(0.4 + 0.1 * LABEL + 0.15 * (RACE == "b"), 0.2), 0, 1), 2)
WEIGHT = RANDOM.integers(0, 4, ROWS).astype(float)
REGION = RANDOM.choice(["north", "south"], ROWS)
MISSING = np.where(np.arange(ROWS) % 10 == 0, None, RACE)
OPTIONS = AuditOptions(resamples=20, permutations=0, min_group_size=5)

CRITERIA = (
    "statistical_parity",
    "equal_opportunity",
    "predictive_equality",
    "equalized_odds",
    "risk_parity",
)
# What noise, and rows of one weight, make of the figures.
BESIDE = {
    *(
        "interval",
        "joint_interval",
        "ratio_interval",
        "selection_ratio_interval",
        "p_value",
        "significant",
    ),
    *(
        "tested_by",
        "detectable",
        "unbiased",
        "certified",
        "certified_jointly",
        "selected",
        "shortfall",
    ),
    *("attribute", "notes", "settings", "provenance", "proxy", "permutations"),
}


def probabilities(groups: Any = RACE) -> GroupProbabilities:
    known = np.array([one is not None for one in groups])
    table = {name: np.where(known, (groups == name).astype(float), np.nan) for name in "abc"}
    return GroupProbabilities(table, attribute="race", with_labels="included")


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("contrast", ["pairs", "rest"])
def test_every_distance_is_that_of_groups(criterion: str, metric: str, contrast: Any) -> None:
    loss = "squared_error" if criterion == "risk_parity" else None
    shared: dict[str, Any] = {
        "criterion": criterion,
        "metric": metric,
        "contrast": contrast,
        "loss": loss,
    }
    for further in ({}, {"sample_weight": WEIGHT}, {"control_features": REGION}, {"reduce": "sum"}):
        found, expected = (
            unfairness(LABEL, SCORE, sensitive_features=groups, **shared, **further)
            for groups in (probabilities(MISSING), MISSING)
        )
        assert found == pytest.approx(expected, rel=CLOSE, abs=CLOSE)


def figures(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The point figures below a value: where, and the figure."""
    if is_dataclass(value):
        for one in fields(value):
            if one.name not in BESIDE:
                yield from figures(getattr(value, one.name), f"{path}.{one.name}")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from figures(inner, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from figures(inner, f"{path}.{place}")
    else:
        yield path, value


def different_figures(found: AuditRecord, expected: AuditRecord) -> list[str]:
    """Where two records differ by more than rounding.

    A short list: pytest takes minutes to compare whole records.
    """
    mine, theirs = dict(figures(found)), dict(figures(expected))
    assert len(mine) > 100
    places = sorted(mine.keys() ^ theirs.keys())
    for path in mine.keys() & theirs.keys():
        value, other = mine[path], theirs[path]
        same = (
            other == pytest.approx(value, rel=CLOSE, abs=CLOSE)
            if isinstance(other, float)
            else other == value
        )
        places += [] if same else [path]
    return places[:5]


def assert_same_figures(found: AuditRecord, expected: AuditRecord) -> None:
    assert different_figures(found, expected) == []


CALLS: dict[str, dict[str, Any]] = {
    "everything": {"metrics": list(METRICS)},
    "weights": {"sample_weight": WEIGHT, "metrics": list(METRICS)},
    "strata": {"control_features": {"region": REGION}},
    "low scores": {"favorable": "low"},
    "median": {"threshold": "median"},
    "rest": {
        "options": AuditOptions(contrast="rest", resamples=20, permutations=0, min_group_size=5)
    },
}


@pytest.mark.parametrize("case", CALLS)
def test_every_figure_of_an_audit_is_that_of_groups(case: str) -> None:
    shared = {"options": OPTIONS, "random_state": 0} | CALLS[case]
    found, expected = (
        audit(LABEL, SCORE, sensitive_features=groups, **shared)
        for groups in (probabilities(MISSING), {"race": MISSING})
    )
    assert_same_figures(found.record, expected.record)
    if case == "everything":
        for standard in ("four-fifths", "credit"):
            tables = [
                one.rates(standard, reference="b" if standard == "credit" else "highest")
                for one in (found, expected)
            ]
            assert_same_figures(*(one.audit.record for one in tables))


def test_planted_fault_another_share_is_found() -> None:
    shares = np.where(
        (RACE == "a")[:, None],
        [0.99, 0.01, 0.0],
        np.stack([one == RACE for one in "abc"], -1) * 1.0,
    )
    table = dict(zip("abc", shares.T, strict=True))
    other = GroupProbabilities(table, attribute="race", with_labels="included")
    found, expected = (
        audit(LABEL, SCORE, sensitive_features=groups, options=OPTIONS, random_state=0).record
        for groups in (other, {"race": RACE})
    )
    assert different_figures(found, expected)


def test_every_figure_of_a_file_and_a_table_is_that_of_groups(tmp_path: Path) -> None:
    table = {f"p_{name}": (name == RACE).astype(float) for name in "abc"}
    frame = pl.DataFrame({"p": SCORE, "y": LABEL, "race": RACE, "w": WEIGHT, **table})
    named = {name: f"p_{name}" for name in "abc"}
    race = GroupProbabilities(named, attribute="race", with_labels="included")
    shared: dict[str, Any] = {
        "score": "p",
        "label": "y",
        "weight": "w",
        "options": OPTIONS,
        "random_state": 0,
    }
    for ending in ("csv", "parquet"):
        path = tmp_path / f"scores.{ending}"
        (frame.write_csv if ending == "csv" else frame.write_parquet)(path)
        assert_same_figures(
            *(audit_file(path, group=group, **shared).record for group in (race, "race"))
        )
    assert_same_figures(
        *(audit_table(frame, group=group, **shared).record for group in (race, "race"))
    )


def test_differences_between_audits_are_those_of_groups() -> None:
    models = {"old": SCORE, "new": SCORE**2}
    found, expected = (
        audit(LABEL, models, sensitive_features=groups, options=OPTIONS, random_state=0).record
        for groups in (probabilities(), {"race": RACE})
    )
    assert found.pairing == expected.pairing == "rows"
    for mine, theirs in zip(found.differences, expected.differences, strict=True):
        assert mine.difference == pytest.approx(theirs.difference, abs=CLOSE)
        assert (mine.metric, mine.groups, mine.verdict) == (
            theirs.metric,
            theirs.groups,
            theirs.verdict,
        )
        assert (mine.interval is None) == (theirs.interval is None)
        if mine.interval is not None and theirs.interval is not None:
            assert mine.interval.low == pytest.approx(theirs.interval.low, abs=CLOSE)
            assert mine.interval.high == pytest.approx(theirs.interval.high, abs=CLOSE)


def test_a_series_of_audits_is_that_of_groups() -> None:
    def look(groups: Any, scores: Any) -> Any:
        return audit(LABEL, scores, sensitive_features=groups, options=OPTIONS, random_state=0)

    found, expected = (
        monitor(
            {"may": look(groups, SCORE), "june": look(groups, SCORE**2)}, options=OPTIONS
        ).record
        for groups in (probabilities(), {"race": RACE})
    )
    for mine, theirs in zip(found.series, expected.series, strict=True):
        assert (mine.look, mine.alarm) == (theirs.look, theirs.alarm)
        assert mine.difference == pytest.approx(theirs.difference, abs=CLOSE)


def test_audits_by_probabilities_are_not_compared_with_audits_by_groups(refused: Refusals) -> None:
    audits = [
        audit(None, SCORE, sensitive_features=groups, options=OPTIONS)
        for groups in (probabilities(), RACE)
    ]
    with refused(ValueError):
        compare(*audits)
