"""Zafar's classifiers: worked numbers, a conic solver as oracle, properties, the convex-concave
procedure.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from metrifair.baselines import ZafarClassifier
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.seams.baselines import (
    MISTREATED,
    ColumnScale,
    Logistic,
    Mistreatment,
    TrainingData,
    convex_round,
    covariances,
    solve,
    within_all,
    zafar,
)

X = np.array([[-1.0], [0.0], [1.0], [2.0]])
Y = np.array([0, 1, 0, 1])
A = np.array([0, 0, 1, 1])


def some_data(
    seed: int, n: int = 200, d: int = 3, groups: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, groups, n)
    x = rng.normal(size=(n, d)) + 0.7 * a[:, None]
    y = (x.sum(1) - 1 + rng.logistic(size=n) > 0).astype(int)
    return x, y, a


def loss_of(model: ZafarClassifier, x: np.ndarray, y: np.ndarray) -> float:
    return float(np.logaddexp(0, -(2 * y - 1) * model.decision_function(x)).sum())


def covariance(f: np.ndarray, a: np.ndarray) -> float:
    return float(((a - a.mean()) * f).mean())


def fitted(x: np.ndarray, y: np.ndarray, a: np.ndarray, **options: Any) -> ZafarClassifier:
    return ZafarClassifier(**options).fit(x, y, sensitive_features=a)


@pytest.mark.parametrize(
    ("options", "w", "loss"),
    [
        ({"tau": 1.0}, (-0.454092, 0.908184), 2.347487),
        ({"tau": 0.0}, (0.0, 0.0), 4 * np.log(2)),
        ({"tau": 0.1}, (-0.1, 0.2), 2.597504),
        ({"tau": 0.2}, (-0.2, 0.4), 2.471254),
        ({"gamma": 0.0}, (-0.454092, 0.908184), 2.347487),
        ({"gamma": 0.106504}, (-0.1, 0.2), 2.597504),
        ({"gamma": 0.181089}, (0.0, 0.0), 4 * np.log(2)),
        ({"gamma": 10.0}, (0.0, 0.0), 4 * np.log(2)),
    ],
)
def test_the_worked_solutions(
    options: dict[str, float], w: tuple[float, float], loss: float
) -> None:
    model = fitted(X, Y, A, **options)
    assert [model.intercept_, *model.coef_] == pytest.approx(w, abs=2e-6)
    assert loss_of(model, X, Y) == pytest.approx(loss, abs=2e-6)
    assert model.covariance_.tolist() == pytest.approx([w[1] / 2], abs=1e-6)
    assert model.unconstrained_covariance_.tolist() == pytest.approx([0.454092], abs=1e-6)


@given(seed=st.integers(0, 10**6), share=st.floats(0, 1), intercept=st.booleans())
@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_a_conic_solver_agrees(seed: int, share: float, intercept: bool) -> None:
    x, y, a = some_data(seed, n=60)
    free = fitted(x, y, a, tau=1e9, fit_intercept=intercept)
    tau = share * abs(free.covariance_[0])
    model = fitted(x, y, a, tau=tau, fit_intercept=intercept)
    design = np.column_stack([np.full(60, float(intercept)), x])
    w = cp.Variable(4)
    c = (a - a.mean()) @ design / 60
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.logistic(-cp.multiply(2 * y - 1, design @ w)))),
        [cp.abs(c @ w) <= tau],
    )
    problem.solve(solver=cp.CLARABEL)
    assume(problem.status == cp.OPTIMAL)  # an oracle that gave up says nothing
    assert loss_of(model, x, y) == pytest.approx(problem.value, rel=1e-5)
    assert loss_of(model, x, y) <= problem.value * (1 + 1e-6)
    assert abs(covariance(model.decision_function(x), a)) <= tau + 1e-9
    assert model.constraint_violation_ <= 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_the_covariance_is_the_scaled_gap_of_mean_scores(seed: int) -> None:
    x, y, a = some_data(seed)
    model = fitted(x, y, a, tau=0.05)
    f = model.decision_function(x)
    gap = a.mean() * (1 - a.mean()) * (f[a == 1].mean() - f[a == 0].mean())
    assert model.covariance_[0] == pytest.approx(gap, abs=1e-10) == pytest.approx(0.05, abs=1e-10)


def test_without_a_bound_it_is_logistic_regression() -> None:
    x, y, a = some_data(1)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = ZafarClassifier(tau=10.0).fit(x, y, sensitive_features=a, sample_weight=weight)
    plain = LogisticRegression(C=np.inf, tol=1e-10).fit(x, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, plain.coef_[0], atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(x), plain.predict_proba(x), atol=1e-5)
    np.testing.assert_array_equal(model.predict(x), plain.predict(x))


def test_no_covariance_means_equal_mean_scores() -> None:
    x, y, a = some_data(2)
    f = fitted(x, y, a, tau=0.0).decision_function(x)
    assert f[a == 1].mean() == pytest.approx(f[a == 0].mean(), abs=1e-10)


@pytest.mark.parametrize(
    ("criterion", "groups"),
    [("statistical_parity", 2), ("statistical_parity", 3), *((one, 2) for one in MISTREATED)],
)
def test_without_gamma_and_tau_no_covariance_is_left(criterion: str, groups: int) -> None:
    x, y, a = some_data(4, groups=groups)
    model = fitted(x, y, a, criterion=criterion)
    assert np.abs(model.unconstrained_covariance_).max() > 0.01
    assert np.abs(model.covariance_).max() < 1e-4
    np.testing.assert_array_equal(model.coef_, fitted(x, y, a, criterion=criterion, tau=0.0).coef_)


def test_a_looser_bound_never_costs_loss_and_gamma_finds_the_same_models() -> None:
    x, y, a = some_data(3)
    free = fitted(x, y, a, tau=1e9)
    taus = np.linspace(0, 1, 11) * abs(free.covariance_[0])
    models = [fitted(x, y, a, tau=tau) for tau in taus]
    losses = [loss_of(model, x, y) for model in models]
    assert all(later < earlier for earlier, later in pairwise(losses))
    for tau, loss in zip(taus[1:-1], losses[1:-1], strict=True):
        by_loss = fitted(x, y, a, gamma=loss / losses[-1] - 1)
        assert by_loss.covariance_[0] == pytest.approx(tau, rel=1e-6)
        assert loss_of(by_loss, x, y) == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize("options", [{"tau": 0.05}, {"gamma": 0.01}])
def test_names_and_order_of_groups_do_not_matter(options: dict[str, float]) -> None:
    x, y, a = some_data(4)
    one = fitted(x, y, a, **options)
    other = fitted(x, y, np.where(a == 0, "z", "b"), **options)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6)
    assert one.covariance_[0] == pytest.approx(-other.covariance_[0])


@pytest.mark.parametrize(
    ("options", "certain"),
    [
        ({"tau": 0.05}, 1e-5),
        ({"gamma": 0.01}, 1e-5),
        # The procedure ends where the loss stands still; near its least a change of the weights is
        # the root of that of the loss. Ten times as much leaves room for other machines.
        ({"tau": 0.01, "criterion": "equal_opportunity"}, 10 * zafar.STILL**0.5),
    ],
)
def test_weights_are_repetitions(options: dict[str, Any], certain: float) -> None:
    x, y, a = some_data(5, n=60)
    times = np.random.default_rng(1).integers(0, 3, 60)
    one = ZafarClassifier(**options).fit(x, y, sensitive_features=a, sample_weight=times)
    repeated = tuple(np.repeat(part, times, axis=0) for part in (x, y, a))
    other = fitted(*repeated, **options)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=certain)
    assert loss_of(one, *repeated[:2]) == pytest.approx(loss_of(other, *repeated[:2]), rel=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_scale_of_features_does_not_matter(intercept: bool) -> None:
    x, y, a = some_data(6)
    scale = np.array([1e5, 1.0, 1e-4])
    one = fitted(x, y, a, tau=0.03, fit_intercept=intercept)
    other = fitted(x * scale, y, a, tau=0.03, fit_intercept=intercept)
    np.testing.assert_allclose(one.coef_, other.coef_ * scale, rtol=1e-6)


def test_columns_that_depend_on_each_other() -> None:
    x, y, a = some_data(7)
    one = fitted(x, y, a, gamma=0.01)
    other = fitted(np.column_stack([x, x[:, 0] + 1, np.ones(len(x))]), y, a, gamma=0.01)
    np.testing.assert_allclose(
        one.decision_function(x),
        other.decision_function(np.column_stack([x, x[:, 0] + 1, np.ones(len(x))])),
        atol=1e-6,
    )


def test_groups_with_equal_mean_features_need_nothing() -> None:
    x, y, a = np.repeat(X, 2, axis=0), np.repeat(Y, 2), np.tile([0, 1], 4)
    free = fitted(x, y, a, tau=1.0)
    for options in ({"tau": 0.0}, {"gamma": 0.5}):
        model = fitted(x, y, a, **options)
        assert model.covariance_.tolist() == [0.0]
        np.testing.assert_array_equal(model.coef_, free.coef_)


def test_separable_classes_are_told_and_a_ridge_helps() -> None:
    x, a = np.array([[-2.0], [-1.0], [1.0], [2.0]]), [0, 1, 0, 1]
    with pytest.warns(ConvergenceWarning, match="separates"):
        model = ZafarClassifier(tau=1e9).fit(x, [0, 0, 1, 1], sensitive_features=a)
    assert np.isfinite(model.coef_).all()
    ridged = ZafarClassifier(tau=1e9, ridge=1.0).fit(x, [0, 0, 1, 1], sensitive_features=a)
    spread = x.std()
    plain = LogisticRegression(tol=1e-10).fit(x / spread, [0, 0, 1, 1])
    assert ridged.coef_[0] * spread == pytest.approx(plain.coef_[0, 0], rel=1e-4)


def test_a_feature_that_separates_a_few_rows_and_so_meets_any_bound_is_told() -> None:
    x, y, a = some_data(17, n=1000)
    rare = np.zeros((len(x), 1))
    rare[np.flatnonzero((a == 0) & (y == 1))[:1]] = 1.0
    with pytest.warns(ConvergenceWarning, match="ridge"):
        model = fitted(np.column_stack([x, rare]), y, a, gamma=1e-4)
    assert abs(model.covariance_[0]) < 1e-9 < abs(fitted(x, y, a, gamma=1e-4).covariance_[0])
    ridged = fitted(np.column_stack([x, rare]), y, a, gamma=1e-4, ridge=1.0)
    assert abs(ridged.covariance_[0]) > 0.05


def test_a_fit_that_stops_too_early_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zafar, "_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="Newton"):
        fitted(*some_data(8), tau=1e9)


def test_the_reference_has_no_intercept() -> None:
    x, y, a = some_data(9)
    model = fitted(x, y, a, gamma=0.01, variant="reference")
    assert model.intercept_ == 0.0
    np.testing.assert_array_equal(
        model.coef_, fitted(x, y, a, gamma=0.01, fit_intercept=False).coef_
    )
    tie = model.predict(np.zeros((1, 3)))
    assert tie.tolist() == [0]


def test_several_groups_are_bounded_each() -> None:
    x, y, a = some_data(10, groups=3)
    free = fitted(x, y, a, tau=1e9)
    model = fitted(x, y, a, tau=0.02)
    members = np.eye(3)[a]
    found = (members - members.mean(0)).T @ model.decision_function(x) / len(x)
    np.testing.assert_allclose(found, model.covariance_, atol=1e-9)
    assert np.abs(free.covariance_).max() > 0.1
    assert np.abs(found).max() == pytest.approx(0.02, abs=1e-6)
    assert model.constraint_violation_ < 1e-6
    assert loss_of(free, x, y) < loss_of(model, x, y)


def test_two_groups_as_a_conic_program_give_the_same() -> None:
    x, y, a = some_data(11)
    rows = TrainingData(x, y, a, (0, 1), np.ones(len(x)))
    scaling = ColumnScale.of(rows, intercept=True)
    loss = Logistic.of(rows, scaling, 0.5)
    w = within_all(loss, covariances(rows, loss.design), loss.unconstrained(), 0.05)
    np.testing.assert_allclose(
        scaling.unscaled(w)[1], fitted(x, y, a, tau=0.05, ridge=0.5).coef_, atol=1e-5
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0.1, "tau": 0.1}, "gamma or tau, not both"),
        ({"gamma": 0.1, "tau": 0.1, "criterion": "equal_opportunity"}, "gamma or tau, not both"),
        ({"gamma": -0.1}, "gamma"),
        ({"tau": np.nan}, "tau"),
        ({"tau": 0.1, "criterion": "parity"}, "criterion"),
        ({"gamma": 0.1, "criterion": "equal_opportunity"}, "tau instead"),
        ({"tau": 0.1, "ridge": -1}, "ridge"),
        ({"tau": 0.1, "fit_intercept": "no"}, "fit_intercept"),
        ({"tau": 0.1, "variant": "paper"}, "variant"),
    ],
)
def test_parameters_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        fitted(X, Y, A, **options)


def test_what_is_not_defined_for_several_groups() -> None:
    x, y, a = some_data(12, groups=3)
    with pytest.raises(DataError, match="tau instead"):
        fitted(x, y, a, gamma=0.1)
    with pytest.raises(DataError, match="two groups"):
        fitted(x, y, a, tau=0.1, criterion="equal_opportunity")


def test_a_group_without_positives_has_no_equal_opportunity(refused: Refusals) -> None:
    with refused(DataError):
        fitted(X, np.array([0, 0, 0, 1]), A, tau=0.1, criterion="equal_opportunity")


def four_points(label: int) -> Mistreatment:
    rows = TrainingData(X, Y, A, (0, 1), np.ones(4))
    design = np.column_stack([np.ones(4), X])
    return Mistreatment.of(rows, Logistic(design, 2.0 * Y - 1, np.ones(4), np.zeros(2)), label)


def test_the_worked_mistreatment() -> None:
    measure, w = four_points(1), np.array([-0.5, 0.3])
    assert (measure.mean(0, w), measure.mean(1, w)) == pytest.approx((-0.5, 0.0))
    assert measure.balance == 0.25
    assert measure.covariance(w) == pytest.approx(0.125)


@given(seed=st.integers(0, 10**6), label=st.integers(0, 1), group=st.integers(0, 1))
@settings(max_examples=50, deadline=None)
def test_the_tangent_touches_and_is_nowhere_below(seed: int, label: int, group: int) -> None:
    rng = np.random.default_rng(seed)
    x, y, a = some_data(seed, n=40)
    rows = TrainingData(x, y, a, (0, 1), np.ones(40))
    measure = Mistreatment.of(
        rows, Logistic.of(rows, ColumnScale.of(rows, intercept=True), 0.0), label
    )
    here, there = rng.normal(size=(2, 4))
    tangent = measure.tangent(group, here)
    assert tangent @ here == pytest.approx(measure.mean(group, here))
    assert tangent @ there >= measure.mean(group, there) - 1e-12


def test_the_measures_are_those_of_the_definition() -> None:
    x, y, a = some_data(13)
    model = fitted(x, y, a, tau=1e9, criterion="equalized_odds")
    f, found = model.decision_function(x), []
    for label, sign in ((1, 1), (0, -1)):
        wrong = np.minimum(0, sign * f)
        cells = [(y == label) & (a == code) for code in (0, 1)]
        balance = cells[0].sum() * cells[1].sum() / (y == label).sum() ** 2
        found.append(balance * (wrong[cells[1]].mean() - wrong[cells[0]].mean()))
    assert model.covariance_.tolist() == pytest.approx(found)


@pytest.mark.parametrize("criterion", MISTREATED)
def test_mistreatment_is_bounded_at_a_small_loss(criterion: str) -> None:
    x, y, a = some_data(14, n=120)
    free = fitted(x, y, a, tau=1e9, criterion=criterion)
    plain = fitted(x, y, a, tau=1e9)
    np.testing.assert_array_equal(free.coef_, plain.coef_)
    tau = 0.3 * np.abs(free.covariance_).max()
    model = fitted(x, y, a, tau=tau, criterion=criterion)
    # where it ends, but for the solver's tolerance
    assert np.abs(model.covariance_).max() <= tau + 2 * zafar.CLOSE
    assert model.constraint_violation_ <= 2 * zafar.CLOSE
    assert loss_of(plain, x, y) < loss_of(model, x, y) < len(y) * np.log(2)


def test_at_a_fixed_price_the_objective_never_rises() -> None:
    x, y, a = some_data(15, n=80)
    rows = TrainingData(x, y, a, (0, 1), np.ones(80))
    loss = Logistic.of(rows, ColumnScale.of(rows, intercept=True), 0.0)
    measure = Mistreatment.of(rows, loss, 1)
    bound = 0.2 * abs(measure.covariance(loss.unconstrained()))
    solution, w, values = convex_round(loss, [measure], bound), loss.unconstrained(), []
    for _ in range(6):
        excess = max(0.0, measure.covariance(w) - bound) + max(0.0, -measure.covariance(w) - bound)
        values.append(loss.value(w) / 80 + 5.0 * excess)
        w, _ = solution(w, 5.0)
    assert all(later <= earlier + 1e-7 for earlier, later in pairwise(values))
    assert values[-1] < values[0] - 1e-3


def test_a_procedure_that_does_not_settle_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zafar, "ROUNDS", 1)
    monkeypatch.setattr(zafar, "FIRST_PRICE", 1e-3)
    x, y, a = some_data(16, n=80)
    with pytest.warns(ConvergenceWarning, match="exceeded by"):
        model = fitted(x, y, a, tau=0.0, criterion="equal_opportunity")
    assert model.constraint_violation_ == pytest.approx(abs(model.covariance_[0]))
    assert model.constraint_violation_ > 1e-3


def test_a_program_without_a_solution_is_an_error() -> None:
    w = cp.Variable()
    with pytest.raises(RuntimeError, match="infeasible"):
        solve(cp.Problem(cp.Minimize(w), [w >= 1, w <= 0]), 1)
