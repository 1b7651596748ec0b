"""Boosters with probabilities of groups: each row counts for every group in proportion to its
probability.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from metrifair import (
    FairLGBMClassifier,
    FairLGBMRegressor,
    FairXGBClassifier,
    FairXGBRegressor,
    GroupProbabilities,
    unfairness,
)
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.flat_options import with_penalty
from tests.seams.boosting import _parts, boosting_problem
from tests.seams.problem import Inputs

RANDOM = np.random.default_rng(3)
ROWS = 240
X = RANDOM.normal(size=(ROWS, 3))
P = 1 / (1 + np.exp(-2 * X[:, 0]))
TABLE = np.stack([(1 - P) * 0.8, P, (1 - P) * 0.2], 1)
GROUP = np.array([RANDOM.choice([*"abc"], p=row) for row in TABLE])
LABEL = (X.sum(1) + RANDOM.logistic(size=ROWS) > 0).astype(int)
NUMBER = X @ [1.0, 2.0, -1.0] + RANDOM.normal(size=ROWS)
WEIGHT = RANDOM.integers(0, 4, ROWS).astype(float)

SMALL = {"n_estimators": 30, "learning_rate": 0.1, "n_jobs": 1, "random_state": 0}
BOOSTERS: dict[str, tuple[Any, Any]] = {
    "lightgbm": (FairLGBMClassifier(4.0, **SMALL, verbose=-1), LABEL),
    "lightgbm, numbers": (FairLGBMRegressor(4.0, **SMALL, verbose=-1), NUMBER),
    "lightgbm, three classes": (
        FairLGBMClassifier(4.0, **SMALL, verbose=-1),
        np.digitize(NUMBER, [-1.0, 1.0]),
    ),
    "xgboost": (FairXGBClassifier(4.0, **SMALL), LABEL),
    "xgboost, numbers": (FairXGBRegressor(4.0, **SMALL), NUMBER),
}


def race(table: Any = TABLE, names: str = "abc", **further: Any) -> GroupProbabilities:
    return GroupProbabilities(
        dict(zip(names, np.asarray(table).T, strict=True)), attribute="race", **further
    )


def scores(model: Any) -> Any:
    return model.predict_proba(X)[:, -1] if hasattr(model, "predict_proba") else model.predict(X)


def fitted(name: str, groups: Any, **given: Any) -> Any:
    model, y = BOOSTERS[name]
    return type(model)(**model.get_params()).fit(X, y, sensitive_features=groups, **given)


def rows_of(criterion: str = "statistical_parity", **changes: Any) -> Any:
    """The parameters that rows are prepared with, without a booster."""
    fixed = {
        "strength": 1.0,
        "metric": "energy",
        "estimate": "rows",
        "combine": "mean",
        "small_groups": "error",
    }
    shared = {
        "penalize": "prediction",
        "contrast": "pairs",
        "intersectional": False,
        "continuous": False,
    }
    own = {"criterion": criterion, "pos_label": None, "predict_proba": None}
    return SimpleNamespace(**with_penalty(**(fixed | shared | own | changes)))


@pytest.mark.parametrize("criterion", ["statistical_parity", "equal_opportunity"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_value_and_slopes_are_those_of_signed_weights(criterion: str, weight: Any) -> None:
    """Against sums over all pairs of rows: - c' D c, and -2 c_i sum_j c_j sign(s_i - s_j)."""
    given = Inputs(LABEL, race(with_labels="included"), sample_weight=weight, rows={"X": X})
    problem = boosting_problem(rows_of(criterion), given)
    output = RANDOM.normal(size=ROWS)
    found = problem.make_objective(problem.training).at(output)
    score = 1 / (1 + np.exp(-output))
    counted = np.ones(ROWS) if weight is None else weight
    inside = TABLE * (counted * (LABEL if criterion == "equal_opportunity" else 1))[:, None]
    side = inside / inside.sum(0)
    value, slope = 0.0, np.zeros(ROWS)
    for left, right in ((0, 1), (0, 2), (1, 2)):
        signed = side[:, left] - side[:, right]
        value -= signed @ np.abs(score[:, None] - score) @ signed / 3
        slope -= 2 * signed * (np.sign(score[:, None] - score) @ signed) / 3
    assert found.unfairness == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(
        found.unfairness_slope, slope * score * (1 - score) * counted.sum(), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("name", BOOSTERS)
def test_a_booster_lowers_the_unfairness_by_probabilities(name: str) -> None:
    model, y = BOOSTERS[name]
    plain = type(model)(**model.get_params() | {"strength": 0.0}).fit(X, y)
    gaps = [
        unfairness(None, scores(one), sensitive_features=race())
        for one in (fitted(name, race()), plain)
    ]
    assert gaps[0] < 0.6 * gaps[1]


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_probabilities_of_0_and_1_are_groups(name: str) -> None:
    group = np.where(np.arange(ROWS) % 20 == 0, None, GROUP)
    table = np.stack([np.where(np.equal(group, None), np.nan, group == one) for one in "abc"], 1)
    found, expected = (
        scores(fitted(name, groups, sample_weight=WEIGHT)) for groups in (race(table), group)
    )
    assert np.array_equal(found, expected)


def test_an_evaluation_set_has_probabilities_or_groups() -> None:
    """By probabilities of 0 and 1, by groups, and with columns in another order: the same
    figures in every round.
    """
    certain = np.stack([one == GROUP for one in "abc"], 1).astype(float)
    evaluated = [race(certain), GROUP, race(), race(TABLE[:, ::-1], "cba")]
    sets = {"eval_set": [(X, LABEL)] * 4, "eval_sensitive_features": evaluated}
    model = fitted("lightgbm", race(), **sets)
    rounds = [figures["penalized_risk"] for figures in model.evals_result_.values()]
    assert rounds[0] == rounds[1] != rounds[2]
    assert rounds[2] == pytest.approx(rounds[3], rel=1e-12)


def test_an_evaluation_set_of_other_groups_is_refused(refused: Refusals) -> None:
    sets: dict[str, Any] = {
        "eval_set": [(X, LABEL)],
        "eval_sensitive_features": [race(names="abd")],
    }
    with refused(DataError):
        fitted("lightgbm", race(), **sets)


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ({"estimate": "population"}, "'population' needs the group of each row"),
        (
            {"criterion": "equal_opportunity"},
            r"uses labels, which needs a further assumption about P\(race\)",
        ),
    ],
    ids=str,
)
def test_what_needs_groups_is_refused_in_words(further: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        FairLGBMClassifier(1.0, **SMALL, verbose=-1, **with_penalty(**further)).fit(
            X, LABEL, sensitive_features=race()
        )


def test_a_cluster_refuses_probabilities(refused: Refusals) -> None:
    array = pytest.importorskip("dask.array")
    with refused(DataError):
        _parts("", array.from_array(X), array.from_array(LABEL), race(), None, None)


def test_trees_are_as_fair_to_the_true_groups_of_other_rows_as_if_groups_were_known() -> None:
    """P(group | x) is known.

    The most probable groups in place of the probabilities leave more of the distance.
    """

    def drawn(rows: int, seed: int) -> tuple[Any, Any, Any, Any]:
        random = np.random.default_rng(seed)
        features = random.normal(size=(rows, 3))
        share = 1 / (1 + np.exp(-1.7 * features[:, 0]))
        chance = 1 / (1 + np.exp(-features @ [1.0, 1.2, 0.8]))
        return (
            features,
            (random.uniform(size=rows) < chance).astype(int),
            share,
            random.uniform(size=rows) < share,
        )

    features, y, share, true = drawn(6000, 0)
    test, _, _, test_true = drawn(10_000, 1)
    proxy = GroupProbabilities({"no": 1 - share, "yes": share}, attribute="group")
    gaps = {}
    for name, strength, groups in (
        ("plain", 0.0, true),
        ("true", 5.0, true),
        ("proxy", 5.0, proxy),
        ("cut", 5.0, share > 0.5),
    ):
        model = FairLGBMClassifier(strength, **SMALL | {"n_estimators": 60}, verbose=-1)
        score = model.fit(features, y, sensitive_features=groups).predict_proba(test)[:, 1]
        gaps[name] = unfairness(None, score, sensitive_features=test_true)
    assert gaps["plain"] > 0.22
    assert gaps["proxy"] < 0.07
    assert abs(gaps["proxy"] - gaps["true"]) < 0.02
    assert gaps["cut"] > gaps["proxy"] + 0.015
