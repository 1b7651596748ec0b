"""Frontiers with probabilities of groups: figures weight each row by them, and known groups are
shown beside them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrifair import (
    FairClassifier,
    FairRegressor,
    GroupProbabilities,
    frontier,
    load,
    unfairness,
)
from tests.frontier_parts import outcomes_of, source_of
from tests.seams.tradeoff import data_set

RANDOM = np.random.default_rng(11)
ROWS = 1200
Z = RANDOM.normal(size=ROWS)
X = np.c_[Z, RANDOM.normal(size=(ROWS, 2))]
P = 1 / (1 + np.exp(-2 * Z))
RACE = (RANDOM.uniform(size=ROWS) < P).astype(int)
Y = (X.sum(1) + RANDOM.logistic(size=ROWS) > 0).astype(int)
KNOWN = np.where(RANDOM.uniform(size=ROWS) < 0.6, RACE.astype(str), None)


def race(share: Any = P, **further: Any) -> GroupProbabilities:
    return GroupProbabilities({"0": 1.0 - share, "1": 1.0 * share}, attribute="race", **further)


def swept(groups: Any, **more: Any) -> Any:
    shared: dict[str, Any] = {"strengths": [0.0, 3.0], "test": 0.25, "random_state": 0} | more
    return frontier(FairClassifier(model="linear"), X, Y, sensitive_features=groups, **shared)


def mean_square(shares: float) -> float:
    """The mean squared distance by chance, from the sum of the squared shares of the rows."""
    return np.pi**2 / 12 * shares / (1 + 0.22 * np.sqrt(shares)) ** 2


def test_figures_weight_rows_by_probabilities_and_show_known_groups() -> None:
    front = swept(race(known_groups=KNOWN))
    model = front.select(max_unfairness=1.0)
    source = source_of(front)
    test = source.test_rows
    point = front.chosen
    score = model.predict_proba(X[test])[:, 1]
    distance = unfairness(None, score, sensitive_features=race(P[test]))
    # what chance explains is taken out
    shares = [share / share.sum() for share in (1 - P[test], P[test])]
    chance = mean_square(sum((share**2).sum() for share in shares))
    assert point.unfairness == pytest.approx(np.sqrt(distance**2 - chance), abs=1e-9)
    has_group = KNOWN[test] != None  # noqa: E711
    known = unfairness(None, score[has_group], sensitive_features=KNOWN[test][has_group])
    by_chance = mean_square(
        sum(1 / (KNOWN[test] == name).sum() for name in set(KNOWN[test][has_group]))
    )
    assert point.more["known_unfairness"] == pytest.approx(np.sqrt(known**2 - by_chance), abs=1e-9)
    selected = (score >= 0.5).astype(float)
    rates = [np.average(selected, weights=share) for share in (1 - P[test], P[test])]
    assert point.more["four_fifths"] == pytest.approx(min(rates) / max(rates), abs=1e-12)
    assert point.accuracy == pytest.approx((selected == Y[test]).mean())
    assert "accuracy" in point.intervals
    assert front.points[1].unfairness < 0.5 * front.points[0].unfairness
    assert sum(front.record.sizes.values()) == pytest.approx(len(source.rows), abs=1)
    curve = outcomes_of(front)[0].curves.cumulative["1"]
    grid = np.array(outcomes_of(front)[0].curves.grid)
    score = source.predictions[outcomes_of(front)[0].job].score
    expected = [np.average(score <= at, weights=P[source.rows]) for at in grid]
    np.testing.assert_allclose(curve, expected, atol=1e-5)


def test_probabilities_of_0_and_1_give_the_frontier_of_groups() -> None:
    found, expected = (swept(groups).points for groups in (race(RACE), RACE.astype(str)))
    assert [vars(point) for point in found] == [vars(point) for point in expected]


TAKE_PROBABILITIES = {"small_trees", "network", "linear"}


@pytest.mark.parametrize(
    "options",
    [{"folds": 3}, {"test": None}, {"clusters": np.arange(ROWS) // 2}],
    ids=["folds", "all rows", "clusters"],
)
def test_every_way_of_holding_rows_out_takes_probabilities(options: dict[str, Any]) -> None:
    front = swept(race(), **options)
    assert front.points[1].unfairness < 0.6 * front.points[0].unfairness
    assert front.select(max_unfairness=0.2) is not None


def test_auto_pipelines_regressors_and_files_take_probabilities(tmp_path: Any) -> None:
    front = frontier(
        "auto", X, Y, sensitive_features=race(), strengths=[3.0], random_state=0, test=0.25
    )
    assert {point.family for point in front.points} <= TAKE_PROBABILITIES
    front.save(tmp_path / "front")
    assert [vars(point) for point in load(tmp_path / "front").points] == [
        vars(point) for point in front.points
    ]
    front.to_html(tmp_path / "front.html")
    assert "by P(race)" in (tmp_path / "front.html").read_text(encoding="utf-8")
    model = make_pipeline(StandardScaler(), FairRegressor(model="linear"))
    numbers = frontier(
        model,
        X,
        X @ [1.0, 1.0, 2.0],
        sensitive_features=race(),
        strengths=[0.0, 30.0],
        random_state=0,
    )
    assert numbers.points[1].unfairness < 0.7 * numbers.points[0].unfairness


def test_groups_are_small_by_their_expected_rows() -> None:
    data = data_set(
        X,
        Y,
        race(np.full(ROWS, 0.01)),
        None,
        regression=False,
        criterion="statistical_parity",
        contrast="pairs",
    )
    part = data.held_out(np.arange(ROWS))
    assert part.small_groups == {("P(race)", "1")}
    (comparison,) = part.all_comparisons
    assert part.side_sizes(comparison) == pytest.approx((0.99 * ROWS, 0.01 * ROWS))


def test_a_confidence_holds_for_probabilities_too() -> None:
    front = swept(race())
    plain, sure = (
        front.select(max_unfairness=0.9, confidence=confidence) for confidence in (None, 0.9)
    )
    assert plain is sure


@pytest.mark.extended
def test_families_of_certain_probabilities_are_those_that_take_probabilities() -> None:
    """They are trained on the groups, but estimators still receive probabilities."""
    front = frontier(
        "auto",
        X[:300],
        Y[:300],
        sensitive_features=race(RACE[:300]),
        strengths=[0.0, 1.0],
        random_state=0,
    )
    assert {family.name for family in source_of(front).families} <= TAKE_PROBABILITIES
