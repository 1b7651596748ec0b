"""Berk's regression: worked numbers, a conic solver as oracle, properties."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from experiments.stacks import berk_path
from metrifair import datasets
from metrifair.baselines import BerkRegressor
from metrifair.errors import DataError
from metrifair.metrics import kolmogorov_distance
from tests.raw_data import require_raw_data
from tests.seams.baselines import TrainingData, berk, pair_moments, penalty_root

X = np.array([[0.0], [1.0], [1.0], [3.0], [2.0]])
Y = np.array([0.0, 1.0, 1.0, 2.0, 0.0])
A = np.array([0, 0, 1, 1, 1])
PENALTIES = ("individual", "group")


def some_rows(seed: int, n: int = 30, d: int = 3, groups: int = 2) -> TrainingData:
    rng = np.random.default_rng(seed)
    group = np.append(np.arange(groups), rng.integers(0, groups, n - groups))
    x = rng.normal(size=(n, d)) + group[:, None] * rng.normal(size=d)
    return TrainingData(
        x, x @ rng.normal(size=d) + rng.normal(size=n), group, tuple(range(groups)), np.ones(n)
    )


def fitted(rows: TrainingData, strength: float, **options: Any) -> BerkRegressor:
    return BerkRegressor(strength, **options).fit(
        rows.x, rows.y, sensitive_features=rows.group, sample_weight=rows.weight
    )


def brute_force(theta: np.ndarray, rows: TrainingData, penalty: str) -> float:
    total = 0.0
    for left in range(len(rows.groups)):
        for right in range(left):
            i, j = np.flatnonzero(rows.group == left), np.flatnonzero(rows.group == right)
            similar = np.exp(-((rows.y[i, None] - rows.y[j]) ** 2)) / (len(i) * len(j))
            gaps = (rows.x[i] @ theta)[:, None] - rows.x[j] @ theta
            total += (
                (similar * gaps**2).sum()
                if penalty == "individual"
                else (similar * gaps).sum() ** 2
            )
    return float(total)


def test_the_worked_moments() -> None:
    rows = TrainingData(X, Y, A, (0, 1), np.ones(5))
    second, first, similar = pair_moments(rows, 1, 0)
    assert second.item() == pytest.approx(1.062020, abs=1e-6)
    assert first.item() == pytest.approx(0.587744, abs=1e-6)
    assert similar == pytest.approx((3 * 0.367879 + 2 + 0.018316) / 6, abs=1e-6)


@pytest.mark.parametrize(
    ("loss", "penalty", "strength", "b", "theta"),
    [
        *(("pooled", penalty, 0, 2 / 13, 6 / 13) for penalty in PENALTIES),
        ("pooled", "individual", 1, 0.480307, 0.228352),
        ("pooled", "group", 1, 0.314957, 0.346460),
        *(("group_balanced", penalty, 0, 8 / 49, 23 / 49) for penalty in PENALTIES),
        ("group_balanced", "individual", 1, 0.364034, 0.308773),
        ("group_balanced", "group", 1, 0.248173, 0.401462),
    ],
)
def test_the_worked_solutions(
    loss: Any, penalty: Any, strength: float, b: float, theta: float
) -> None:
    model = BerkRegressor(strength, penalty=penalty, loss=loss).fit(X, Y, sensitive_features=A)
    assert [model.intercept_, *model.coef_] == pytest.approx([b, theta], abs=1e-6)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["pooled", "group_balanced"])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_a_conic_solver_agrees(penalty: Any, loss: Any, groups: int, ridge: float) -> None:
    rows = some_rows(3, groups=groups)
    b, theta = cp.Variable(), cp.Variable(3)
    counts = np.bincount(rows.group)
    weight = np.full(30, 1 / 30) if loss == "pooled" else 1 / counts[rows.group]
    objective = weight @ cp.square(rows.y - b - rows.x @ theta) + ridge * (
        b**2 + cp.sum_squares(theta)
    )
    for left in range(groups):
        for right in range(left):
            i, j = np.flatnonzero(rows.group == left), np.flatnonzero(rows.group == right)
            i, j = np.repeat(i, len(j)), np.tile(j, len(i))
            similar = np.exp(-((rows.y[i] - rows.y[j]) ** 2)) / len(i)
            gaps = (rows.x[i] - rows.x[j]) @ theta
            objective += 2.0 * (
                similar @ cp.square(gaps) if penalty == "individual" else cp.square(similar @ gaps)
            )
    cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    model = fitted(rows, 2.0, penalty=penalty, loss=loss, ridge=ridge)
    assert [model.intercept_, *model.coef_] == pytest.approx(
        [float(b.value), *theta.value], abs=1e-5
    )


@given(seed=st.integers(0, 10**6), groups=st.integers(2, 3))
@settings(max_examples=25, deadline=None)
def test_the_root_is_that_of_the_penalty(seed: int, groups: int) -> None:
    rows = some_rows(seed, n=12, groups=groups)
    theta = np.random.default_rng(seed).normal(size=3)
    for penalty in PENALTIES:
        value = (penalty_root(rows, penalty) @ theta) ** 2
        assert value.sum() == pytest.approx(brute_force(theta, rows, penalty), rel=1e-9, abs=1e-12)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_the_group_penalty_is_at_most_the_individual_one(seed: int) -> None:
    rows = some_rows(seed, n=12)
    theta = np.random.default_rng(seed + 1).normal(size=3)
    similar = pair_moments(rows, 1, 0)[2]
    individual, group = (
        ((penalty_root(rows, penalty) @ theta) ** 2).sum() for penalty in PENALTIES
    )
    assert group <= similar * individual + 1e-12 <= individual + 2e-12


@pytest.mark.parametrize("penalty", PENALTIES)
def test_more_strength_less_penalty_more_loss(penalty: Any) -> None:
    rows = some_rows(5)
    models = berk_path(
        BerkRegressor(penalty=penalty), rows.x, rows.y, rows.group, np.logspace(-2, 5, 20)
    )
    alone = fitted(rows, models[7].strength, penalty=penalty)
    np.testing.assert_array_equal(models[7].coef_, alone.coef_)
    penalties = [brute_force(model.coef_, rows, penalty) for model in models]
    losses = [((model.predict(rows.x) - rows.y) ** 2).mean() for model in models]
    assert all(later < earlier for earlier, later in pairwise(penalties))
    assert all(later > earlier for earlier, later in pairwise(losses))


def test_the_limits_of_strength() -> None:
    rows = some_rows(6)
    flat = fitted(rows, 1e12, penalty="individual", loss="group_balanced")
    means = [rows.y[rows.group == code].mean() for code in (0, 1)]
    assert np.abs(flat.coef_).max() < 1e-9
    assert flat.intercept_ == pytest.approx(np.mean(means))
    level = fitted(rows, 1e12, penalty="group")
    assert abs(pair_moments(rows, 1, 0)[1] @ level.coef_) < 1e-9
    assert np.abs(level.coef_).max() > 0.1


def test_strength_zero_is_least_squares() -> None:
    rows = some_rows(7)
    weighted = TrainingData(
        rows.x, rows.y, rows.group, rows.groups, np.random.default_rng(0).uniform(0.5, 2, 30)
    )
    model = fitted(weighted, 0.0)
    plain = LinearRegression().fit(rows.x, rows.y, sample_weight=weighted.weight)
    np.testing.assert_allclose(model.predict(rows.x), plain.predict(rows.x), rtol=1e-10)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_names_of_groups_and_the_level_of_y_do_not_matter(penalty: Any) -> None:
    rows = some_rows(8)
    model = fitted(rows, 3.0, penalty=penalty)
    swapped = BerkRegressor(3.0, penalty=penalty).fit(
        rows.x, rows.y, sensitive_features=1 - rows.group
    )
    shifted = BerkRegressor(3.0, penalty=penalty).fit(
        rows.x, rows.y + 100, sensitive_features=rows.group
    )
    np.testing.assert_allclose(swapped.coef_, model.coef_, rtol=1e-9)
    np.testing.assert_allclose(shifted.coef_, model.coef_, rtol=1e-9)
    assert shifted.intercept_ == pytest.approx(model.intercept_ + 100)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["pooled", "group_balanced"])
@pytest.mark.parametrize("d", [3, 40])  # more columns than rows: many minimizers, one of least norm
def test_weights_are_repetitions(penalty: Any, loss: Any, d: int) -> None:
    rows = some_rows(9, d=d)
    times = np.random.default_rng(1).integers(0, 3, 30)
    weighted = TrainingData(rows.x, rows.y, rows.group, rows.groups, times.astype(float))
    repeated = TrainingData(
        *(np.repeat(part, times, axis=0) for part in (rows.x, rows.y, rows.group)),
        (0, 1),
        np.ones(times.sum()),
    )
    one, other = (fitted(some, 2.0, penalty=penalty, loss=loss) for some in (weighted, repeated))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)


@pytest.mark.parametrize(("penalty", "published"), [("individual", 0.357), ("group", 0.502)])
def test_the_reference_reaches_the_published_areas_on_communities(
    penalty: Any, published: float
) -> None:
    data = datasets.load(
        "communities", data_home=require_raw_data(), task="regression", include_protected=False
    )
    X, y, a = (part.to_numpy() for part in (data.X, data.y, data.group_codes))
    areas = []
    for seed in range(10):
        train, test = data.split(seed)
        reference = BerkRegressor(penalty=penalty, variant="reference")
        models = berk_path(reference, X[train], y[train], a[train], np.logspace(-2, 5, 50))
        found = [model.predict(X[test]) for model in models]
        gaps = [float(kolmogorov_distance(p[a[test] == 0], p[a[test] == 1])) for p in found]
        scores = [max(0.0, 1 - ((p - y[test]) ** 2).mean() / y[test].var()) for p in found]
        order = np.argsort(gaps)
        u, r2 = np.array(gaps)[order], np.array(scores)[order]
        areas.append(np.trapezoid([0.0, *r2, r2.max()], [u[0], *u, 1.0]))
    assert np.mean(areas) == pytest.approx(published, abs=2e-3)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = some_rows(10)
    whole = fitted(rows, 2.0, ridge=0.1)
    monkeypatch.setattr(berk, "_BLOCK", 7)
    np.testing.assert_allclose(fitted(rows, 2.0, ridge=0.1).coef_, whole.coef_, rtol=1e-9)


def test_the_reference_balances_the_groups() -> None:
    rows = some_rows(11)
    reference = fitted(rows, 1.0, variant="reference")
    np.testing.assert_array_equal(reference.coef_, fitted(rows, 1.0, loss="group_balanced").coef_)
    assert not np.allclose(reference.coef_, fitted(rows, 1.0).coef_)


def test_columns_that_depend_on_each_other_take_the_least_norm() -> None:
    rows = some_rows(12)
    doubled = TrainingData(
        np.column_stack([rows.x, rows.x]), rows.y, rows.group, rows.groups, rows.weight
    )
    model = fitted(doubled, 1.0)
    np.testing.assert_allclose(model.coef_[:3], model.coef_[3:], rtol=1e-8)
    np.testing.assert_allclose(
        model.predict(doubled.x), fitted(rows, 1.0).predict(rows.x), rtol=1e-8
    )


def test_targets_too_far_apart_for_any_similarity_are_told() -> None:
    with pytest.warns(UserWarning, match="rescale y"):
        model = BerkRegressor(1.0).fit(X, Y + 1000 * A, sensitive_features=A)
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, Y + 1000 * A).coef_)


def test_one_row_in_each_group() -> None:
    model = BerkRegressor(1e9).fit([[0.0], [1.0]], [0.0, 1.0], sensitive_features=[0, 1])
    assert model.predict([[5.0]]) == pytest.approx([0.5], abs=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"strength": -1},
        {"strength": np.nan},
        {"ridge": -1},
        {"penalty": "hybrid"},
        {"loss": "mean"},
        {"variant": "paper"},
    ],
)
def test_parameters_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=next(iter(options))):
        BerkRegressor(**options).fit(X, Y, sensitive_features=A)


@pytest.mark.parametrize("y", [["a", "b", "c", "d", "e"], np.zeros((5, 2)), [0, 1, np.nan, 2, 3]])
def test_targets_that_cannot_be_used(y: Any) -> None:
    with pytest.raises(ValueError, match=r"y|string|NaN"):
        BerkRegressor().fit(X, y, sensitive_features=A)
