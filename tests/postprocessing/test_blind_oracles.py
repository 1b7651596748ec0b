"""Post-processors that guess the group: against linear programs over all rows, and rows that
are repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils import get_tags

from metrifair import BarycenterPostprocessor, ThresholdPostprocessor
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.seams.postprocessing import blind_cut, blind_map, check_learner


def rows_with_uneven_weights(seed: int, cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Prices, probabilities of cells that go with them, and weights that differ a lot, and by
    cell.
    """
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.full(cells, 0.7), 400)
    price = np.clip(rng.normal(0.1, 0.4, 400) - 1.2 * chances[:, 0] + 0.8 * chances[:, 1], -1, 1)
    return (
        price,
        chances,
        np.where(chances[:, 0] > 0.5, 0.1, 2.0) * np.where(rng.random(400) < 0.5, 0.1, 3.0),
    )


@pytest.mark.parametrize("sets", [(0, 0), (0, 0, 0), (0, 0, 1, 1)])
@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_a_step_without_groups_loses_no_more_than_any_decision(
    sets: tuple[int, ...], tolerance: float, seed: int
) -> None:
    """The linear program accepts rows in part.

    A step does not, and may miss the tolerance by one row for each cell.
    """
    price, cells, weight = rows_with_uneven_weights(seed, len(sets))
    shares = weight[:, None] * cells / (weight @ cells)
    pairs = [
        (a, b) for a in range(len(sets)) for b in range(len(sets)) if a != b and sets[a] == sets[b]
    ]
    differences = np.array([shares[:, a] - shares[:, b] for a, b in pairs])
    best = linprog(
        weight * price, A_ub=differences, b_ub=np.full(len(pairs), tolerance), bounds=(0, 1)
    ).fun
    step = blind_cut(price, cells, weight, np.array(sets), tolerance)(price, cells)
    assert set(np.unique(step)) <= {0.0, 1.0}
    assert (differences @ step).max() <= tolerance + len(sets) * shares.max()
    assert -0.03 < ((weight * price) @ step - best) / weight.sum() < 0.003
    assert best < -0.01 * weight.sum()  # or accepting nobody would do


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize(("offset", "unit"), [(0.0, 1.0), (-40.0, 25.0)])
def test_scores_without_groups_are_moved_as_little_as_any_transport_can(
    groups: int, offset: float, unit: float
) -> None:
    """The linear program over all ways to spread rows over levels that have the same share of
    every group.
    """
    rng = np.random.default_rng(groups)
    chances = rng.dirichlet(np.full(groups, 0.8), 60)
    score = offset + unit * (0.5 * chances[:, 0] + 0.5 * rng.random(60))
    weight = np.where(score > np.median(score), 4.0, 1.0) * rng.uniform(0.5, 1.5, 60)
    found, share = blind_map(score, chances, weight), weight / weight.sum()
    np.testing.assert_allclose(found.shares, share @ chances)
    cost = (score[:, None] - found.levels) ** 2
    moved = -cost - (chances / found.shares - 1) @ found.prices.T
    spread = np.exp((moved - moved.max(1, keepdims=True)) / found.width**2)
    spread /= spread.sum(1, keepdims=True)
    np.testing.assert_allclose(found(score, chances), spread @ found.levels)
    by_group = (share[:, None] * chances / found.shares).T @ spread  # (groups, levels)
    assert np.abs(by_group - by_group.mean(0)).max() < 0.001
    count = len(found.levels)
    away = share[:, None] * (chances / found.shares - 1)
    balance = [
        np.outer(away[:, a], np.eye(count)[level]).ravel()
        for a in range(groups)
        for level in range(count)
    ]
    sums = np.kron(np.eye(60), np.ones(count))
    best = linprog(
        (share[:, None] * cost).ravel(),
        A_eq=np.vstack([sums, balance]),
        b_eq=np.append(np.ones(60), np.zeros(groups * count)),
    ).fun
    blur = found.width**2  # what entropy may cost
    assert -0.01 * blur < (share[:, None] * cost * spread).sum() - best < 0.6 * blur
    assert best > 2.5 * blur  # or leaving the scores where they are would do


@pytest.mark.parametrize("needs_group", [True, False])
@pytest.mark.parametrize("kind", ["numbers", "scores", "decisions", "randomized"])
def test_weights_are_repeated_rows(kind: str, needs_group: bool) -> None:
    rng = np.random.default_rng(5)
    group = rng.integers(0, 3, 240)
    X = rng.normal(size=(240, 2)) + np.outer(group, [0.8, -0.3])
    y = (X.sum(1) + rng.normal(size=240) > 0.5).astype(int)
    weight = np.where(group == y, 1, rng.integers(2, 5, 240))
    options: dict[str, Any] = {"needs_group": needs_group, "folds": 1, "random_state": 0}
    model: Any
    if kind in ("numbers", "scores"):
        model = BarycenterPostprocessor(
            LinearRegression() if kind == "numbers" else LogisticRegression(), **options
        )
    else:
        model = ThresholdPostprocessor(
            LogisticRegression(),
            tolerance=0.1,
            criterion="equal_opportunity",
            randomized=kind == "randomized",
            **options,
        )
    if not needs_group:
        model.set_params(group_model=LogisticRegression(C=1e3, tol=1e-10, max_iter=2_000))
    asked = {"sensitive_features": group} if needs_group else {}
    found = []
    for rows, given in (
        (np.arange(240), weight),
        (np.repeat(np.arange(240), weight), None),
        (np.arange(240), None),
    ):
        fitted = model.fit(X[rows], y[rows], sensitive_features=group[rows], sample_weight=given)
        found.append(
            fitted.predict_proba(X, **asked) if kind == "scores" else fitted.predict(X, **asked)
        )
    if kind in ("numbers", "scores"):
        # the range of the levels ignores weights
        np.testing.assert_allclose(found[0], found[1], atol=0.01)
        assert np.abs(found[0] - found[2]).max() > 0.04
    else:
        assert np.mean(found[0] != found[1]) <= 0.01
        assert np.mean(found[0] != found[2]) > 0.02


class WithoutKind(BaseEstimator):
    """An estimator whose tags state no kind."""

    def fit(self, X: Any, y: Any) -> WithoutKind:
        return self


class Predicts(WithoutKind):
    """It has predict alone."""

    def predict(self, X: Any) -> Any:
        return X


class PredictsChances(WithoutKind):
    """It has predict_proba alone."""

    def predict_proba(self, X: Any) -> Any:
        return X


@pytest.mark.parametrize("estimator", [Predicts(), PredictsChances()])
def test_an_estimator_that_states_no_kind_needs_one_way_to_predict(
    estimator: BaseEstimator,
    refused: Refusals,
) -> None:
    check_learner(estimator, "classifier")
    check_learner(estimator, "regressor")
    with refused(DataError):
        check_learner(WithoutKind(), "classifier")


def test_tags_say_who_takes_sparse_features_and_who_throws_a_coin() -> None:
    def tags(**options: Any) -> Any:
        return get_tags(ThresholdPostprocessor(LogisticRegression(), **options))

    assert tags().input_tags.sparse
    assert tags(needs_group=False, group_model=LogisticRegression()).input_tags.sparse
    assert not tags(needs_group=False).input_tags.sparse  # our own model of the group
    assert tags(randomized=True).non_deterministic
    assert not tags().non_deterministic


@pytest.mark.parametrize("far", [1e80, -1e80, 1e200])
def test_a_score_far_away_is_moved_to_the_nearer_end(far: float) -> None:
    generator = np.random.default_rng(5)
    group = generator.integers(0, 2, 400)
    features = generator.normal(size=(400, 2)) + group[:, None]
    target = features.sum(1) + generator.normal(size=400)
    model = BarycenterPostprocessor(LinearRegression(), needs_group=False, random_state=0)
    model.fit(features, target, sensitive_features=group)
    usual = model.predict(features)
    (moved,) = model.predict(np.full((1, 2), far))
    assert np.isfinite(moved)
    assert (moved >= usual.max()) if far > 0 else (moved <= usual.min())
