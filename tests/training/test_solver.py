"""Linear models by the solver: its slopes, its optimum, and that nothing but the distinct rows
counts.
"""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression

from metrifair import PenaltyOptions, SearchOptions, load
from metrifair.errors import DataError
from metrifair.estimators import FairClassifier, FairRegressor, fit_stack
from metrifair.metrics import energy_distance
from tests.flat_options import with_penalty
from tests.one_split import frontier
from tests.seams.batches import Samples, tensor_sides
from tests.seams.estimators import is_solved, objective_for
from tests.seams.metrics import penalty_options
from tests.seams.training import Network, Objective, solver

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

RNG = np.random.default_rng(3)
N = 600
A = RNG.choice(3, N, p=[0.5, 0.3, 0.2])
TWO = A > 0
X = RNG.normal(size=(N, 4)) * [1.0, 20.0, 0.1, 1.0] + np.array([0.0, 1.0, -0.5])[A][:, None] * [
    0.7,
    10.0,
    0.05,
    0.0,
]
SIGNAL = X @ [1.0, 0.05, 5.0, -1.0] + RNG.normal(size=N)
AMOUNT = 100 + 30 * SIGNAL
Y = (SIGNAL > 0.3).astype(int)
Y3 = np.digitize(SIGNAL, [-0.5, 1.0])
MANY = A, X, Y, Y3, AMOUNT  # few rows have more local minima
N = 100
A, TWO, X, Y, Y3, AMOUNT = (part[:N] for part in (A, TWO, X, Y, Y3, AMOUNT))
WEIGHT = RNG.integers(1, 5, N).astype(float)

KINDS: dict[str, tuple[Any, NDArray[Any]]] = {
    "binary": (FairClassifier, Y),
    "three classes": (FairClassifier, Y3),
    "squared_error": (FairRegressor, AMOUNT),
    "huber": (FairRegressor, AMOUNT),
}


def linear(kind: str, strength: float = 1.0, **settings: Any) -> Any:
    estimator, _ = KINDS[kind]
    loss = {"loss": kind} if estimator is FairRegressor else {}
    return estimator(strength, model="linear", **(with_penalty(**(loss | settings))))


def outputs(model: Any, features: NDArray[Any] = X) -> NDArray[Any]:
    found = (
        model.decision_function(features)
        if hasattr(model, "decision_function")
        else model.predict(features)
    )
    return np.asarray(found)


def problem_of(
    model: Any,
    y: NDArray[Any],
    weight: Any = None,
    *,
    x: NDArray[Any] = X,
    groups: NDArray[Any] = A,
) -> tuple[Any, Samples, Objective]:
    data = model._training_data(x, y, groups, None, weight)
    objective = objective_for(model, data.problem.scheme, data.task)
    network = Network(X.shape[1], (), data.outputs)
    problem = solver._problem(
        data.samples(),
        network,
        objective,
        weight_decay=model.weight_decay,
        standardize=penalty_options(model).standardize,
    )
    return problem, data.samples(), objective


def height(model: Any, x: NDArray[Any], y: NDArray[Any], groups: NDArray[Any]) -> float:
    """The solver's objective at a fitted model."""
    problem, _, _ = problem_of(type(model)(**model.get_params()), y, x=x, groups=groups)
    own, scaling = model.predictor_, problem.scaling
    weight = own.parameters["weight0"][0, 0] / own.scaling.scale
    bias = own.parameters["bias0"][0, 0, :, 0] - weight @ own.scaling.mean[0]
    vector = torch.cat(
        [(weight * scaling.scale).reshape(-1), bias + weight @ scaling.mean[0]]
    ).numpy()
    value: float = problem.objective_at(model.strength)(vector)[0]
    return value


# --- value and slopes
# ---------------------------------------------------------------------------------------------

ASKED: dict[str, dict[str, Any]] = {
    "parity": {},
    "odds": {"criterion": "equalized_odds"},
    "risk": {"criterion": "risk_parity"},
    "rest": {"contrast": "rest", "combine": "sum"},
    "wasserstein": {"metric": "wasserstein"},
    "mmd": {"metric": "mmd", "weight_decay": 0.1},
    "output": {"penalize": "output", "standardize": False},
}


@pytest.mark.pairwise
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["even", "weighted"])
@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        *(("binary", asked) for asked in ASKED),
        *((kind, asked) for kind in [*KINDS][1:] for asked in ("parity", "risk")),
    ],
)
def test_the_gradient_is_that_of_the_objective(
    kind: str, asked: str, weight: NDArray[Any] | None
) -> None:
    """Against central differences; and value and gradient against autograd through the
    objective, row by row.
    """
    model, y = linear(kind, **ASKED[asked]), KINDS[kind][1]
    problem, samples, objective = problem_of(model, y, weight=weight)
    rng = np.random.default_rng(0)
    at = rng.normal(size=sum(problem.sizes)) * (0.3 if penalty_options(model).standardize else 0.01)
    value = problem.objective_at(2.0)
    found, gradient = value(at)
    for _ in range(3):
        way = rng.normal(size=len(at)) * np.exp(-6)
        ahead, behind = (value(at + sign * 1e-6 * way)[0] for sign in (1, -1))
        assert (ahead - behind) / 2e-6 == pytest.approx(gradient @ way, rel=2e-3, abs=1e-8)
    if kind == "three classes" and asked == "parity":
        return  # projections are drawn once here, anew there
    vector = torch.tensor(at, requires_grad=True)
    weights, bias = vector.split(problem.sizes)
    scaled = problem.scaling.apply(samples.x.unsqueeze(0))[0]
    output = scaled @ weights.view(problem.model.outputs, -1).T + bias
    share = samples.weight / samples.weight.mean()
    batch = solver.Batch(
        Samples(samples.x, samples.y, samples.cell, share),
        tensor_sides(objective.comparisons, samples.cell, share),
    )
    plain = solver.replace(objective, estimate="batch")
    terms = plain(output if problem.model.outputs > 1 else output.squeeze(-1), batch)
    total = terms.risk + 2.0 * terms.unfairness + model.weight_decay / 2 * vector.square().sum()
    total.backward()
    assert found == pytest.approx(total.item(), rel=1e-12)
    np.testing.assert_allclose(gradient, vector.grad, rtol=1e-9, atol=1e-13)


def test_rows_that_agree_in_everything_are_one_row() -> None:
    some = np.round(X[:60], 0) + 0.0
    groups, labels = TWO[:60], Y[:60]
    twice = np.concatenate([some, -0.0 + some[::-1]])
    data = FairClassifier(model="linear")._training_data(
        twice,
        np.concatenate([labels, labels[::-1]]),
        np.concatenate([groups, groups[::-1]]),
        None,
        None,
    )
    objective = objective_for(FairClassifier(model="mlp"), data.problem.scheme, data.task)
    problem = solver._problem(
        data.samples(), Network(4), objective, weight_decay=0.0, standardize=True
    )
    distinct = {(*row, a, y) for row, a, y in zip(some.tolist(), groups, labels, strict=False)}
    assert len(problem.rows.samples) == len(distinct)
    assert len(problem.x) == len(np.unique(some, axis=0))
    assert problem.count.sum() == 120


# --- the optimum
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["even", "weighted"])
def test_without_strength_it_is_logistic_regression(weight: NDArray[Any] | None) -> None:
    for y in (Y, Y3):
        model = FairClassifier(0.0, model="linear").fit(X, y, sample_weight=weight)
        scaled = (X - X.mean(0)) / X.std(0)
        theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(
            scaled, y, sample_weight=weight
        )
        np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(scaled), atol=1e-6)
    binary = FairClassifier(0.0, model="linear").fit(X, Y, sample_weight=weight)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(
        scaled, Y, sample_weight=weight
    )
    np.testing.assert_allclose(binary.coef_, theirs.coef_ / X.std(0), rtol=1e-5)
    assert binary.coef_.shape == theirs.coef_.shape
    assert binary.intercept_.shape == theirs.intercept_.shape


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["even", "weighted"])
@pytest.mark.parametrize("standardize", [True, False])
def test_without_strength_it_is_least_squares(
    weight: NDArray[Any] | None, standardize: bool
) -> None:
    model = FairRegressor(0.0, model="linear", penalty=PenaltyOptions(standardize=standardize)).fit(
        X, AMOUNT, sample_weight=weight
    )
    theirs = LinearRegression().fit(X, AMOUNT, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-6)
    assert model.intercept_ == pytest.approx(theirs.intercept_, rel=1e-7)
    np.testing.assert_allclose(X @ model.coef_ + model.intercept_, model.predict(X), rtol=1e-12)


def test_features_that_repeat_each_other_share_their_weight() -> None:
    model = FairRegressor(0.0, model="linear").fit(
        np.hstack([X, X[:, :1], np.ones((N, 1))]), AMOUNT
    )
    theirs = LinearRegression().fit(X, AMOUNT)
    assert model.coef_[0] == pytest.approx(theirs.coef_[0] / 2)
    assert model.coef_[4] == pytest.approx(theirs.coef_[0] / 2)
    assert model.coef_[5] == pytest.approx(0, abs=1e-9)


def test_many_features_are_scaled_one_by_one() -> None:
    rng = np.random.default_rng(0)
    wide = np.hstack([X, rng.normal(size=(N, 600)) * 1e-3])
    model = FairRegressor(0.0, model="linear", weight_decay=0.5).fit(wide, AMOUNT)
    x, y = (wide - wide.mean(0)) / wide.std(0), (AMOUNT - AMOUNT.mean()) / AMOUNT.std()
    best = np.linalg.solve(2 * x.T @ x / N + 0.5 * np.eye(604), 2 * x.T @ y / N)
    np.testing.assert_allclose(model.coef_ * wide.std(0) / AMOUNT.std(), best, atol=1e-6)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("kind", "asked", "strength"),
    [
        pytest.param("binary", "parity", 0.3, marks=pytest.mark.slow),
        pytest.param("binary", "parity", 10.0, marks=pytest.mark.slow),
        ("binary", "odds", 3.0),
        pytest.param("binary", "risk", 3.0, marks=pytest.mark.slow),
        pytest.param("binary", "wasserstein", 0.3, marks=pytest.mark.slow),
        pytest.param("squared_error", "parity", 1.0, marks=pytest.mark.slow),
        pytest.param("squared_error", "rest", 1.0, marks=pytest.mark.slow),
        ("huber", "risk", 0.3),
        pytest.param("three classes", "parity", 0.3, marks=pytest.mark.slow),
    ],
)
def test_it_ends_lower_than_steps_do(kind: str, asked: str, strength: float) -> None:
    a, x, *targets = MANY
    y = targets[{"binary": 0, "three classes": 1}.get(kind, 2)]
    exact, steps = (
        linear(kind, strength, random_state=0, solver=name, **ASKED[asked]).fit(
            x, y, sensitive_features=a
        )
        for name in ("lbfgs", "sgd")
    )
    assert height(exact, x, y, a) <= height(steps, x, y, a) + 1e-4


@pytest.mark.parametrize("kind", ["binary", "squared_error"])
def test_a_large_strength_ends_at_the_constant_model(kind: str) -> None:
    y = KINDS[kind][1]
    model = linear(kind, 1e5).fit(X, y, sensitive_features=A)
    found = outputs(model)
    assert np.ptp(found, axis=0) == pytest.approx(0, abs=1e-9)
    if kind == "binary":
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], Y.mean(), rtol=1e-6)
    if kind == "squared_error":
        np.testing.assert_allclose(found, AMOUNT.mean(), rtol=1e-6)


def test_the_distance_falls_with_the_strength() -> None:
    models = fit_stack(
        FairClassifier(model="linear"),
        X,
        Y,
        strengths=[0.0, 0.3, 3.0, 30.0],
        seeds=[0],
        sensitive_features=TWO,
    )
    scores = [model.predict_proba(X)[:, 1] for model in models if model is not None]
    apart = [energy_distance(score[TWO], score[~TWO]) for score in scores]
    assert apart == sorted(apart, reverse=True)
    assert apart[0] > 5 * apart[-1]


# --- curvature
# ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [400, 501])  # all products, and squares only
def test_second_moments_are_summed_up_without_a_matrix_for_each_piece(features: int) -> None:
    x = torch.randn(
        20_000, features, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    weight = torch.rand(20_000, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    problem = SimpleNamespace(x=x, model=Network(features))
    tracemalloc.start()
    moments = solver._Problem.moments(problem, weight)  # type: ignore[arg-type]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    table = np.column_stack([x.numpy(), np.ones(len(x))])
    expected = table.T @ (weight.numpy()[:, None] * table)
    np.testing.assert_allclose(
        moments, expected if features == 400 else np.diag(expected), rtol=1e-9, atol=1e-9
    )
    assert peak < 5e6


@pytest.mark.parametrize("kind", ["binary", "squared_error"])
def test_the_curvature_of_the_risk_is_that_of_its_gradient(kind: str) -> None:
    problem, _, _ = problem_of(linear(kind, weight_decay=0.1), KINDS[kind][1], WEIGHT)
    at = np.random.default_rng(0).normal(size=sum(problem.sizes)) * 0.3
    gradient = problem.objective_at(0.0)
    ahead, behind = (
        np.stack([gradient(at + sign * 1e-5 * axis)[1] for axis in problem.axes.T])
        for sign in (1, -1)
    )
    found = (ahead - behind) / 2e-5 @ problem.axes
    np.testing.assert_allclose(problem.risk_curvature(at), found, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("metric", ["energy", "cramer"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_curvature_of_the_penalty_is_that_of_its_values_where_groups_are_alike(
    metric: str, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # of many rows each: the curvature that is left when noise averages
    monkeypatch.setattr(solver, "_MOST_BINS", 12)
    rng, n = np.random.default_rng(0), 20_000
    groups = rng.random(n) < 0.4
    x = rng.normal(size=(n, 4))
    x[:, 0] += 0.5 * groups
    weight = rng.integers(1, 3, n).astype(float) if weighted else None
    y = (x[:, 1] + rng.normal(size=n) > 0).astype(int)
    problem, _, _ = problem_of(linear("binary", metric=metric), y, weight, x=x, groups=groups)
    alike = np.array([0.0, 1.0, 0.0, 0.0, 0.1])  # a feature that does not know of groups
    inverse = np.linalg.pinv(problem.axes)
    for way in ([0.3, 0.0, 0.0, 0.0, 0.0], [0.3, 0.1, -0.2, 0.0, 0.1]):
        step = np.array(way)
        ahead, here, behind = (
            problem.objective_at(1.0)(at)[0] - problem.objective_at(0.0)(at)[0]
            for at in (alike + step, alike, alike - step)
        )
        along = inverse @ step
        assert ahead - 2 * here + behind == pytest.approx(
            along @ problem.penalty_curvature(alike) @ along, rel=0.25
        )


# --- nothing but the rows counts
# ------------------------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.pairwise
@pytest.mark.parametrize("strength", [0.0, 3.0])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repetitions_in_any_order(kind: str, strength: float) -> None:
    y = KINDS[kind][1]
    repeated = np.random.default_rng(0).permutation(np.repeat(np.arange(N), WEIGHT.astype(int)))
    weighted = linear(kind, strength).fit(X, y, sensitive_features=A, sample_weight=WEIGHT)
    rows = linear(kind, strength).fit(X[repeated], y[repeated], sensitive_features=A[repeated])
    assert np.array_equal(outputs(weighted), outputs(rows))


@pytest.mark.extended
@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_holds_single_fits_and_seeds_agree(kind: str) -> None:
    y, strengths = KINDS[kind][1], [0.0, 20.0, 0.5]
    models = fit_stack(linear(kind), X, y, strengths=strengths, seeds=[1, 2], sensitive_features=A)
    for place, model in enumerate(models):
        alone = linear(kind, strengths[place % 3], random_state=99).fit(X, y, sensitive_features=A)
        assert model is not None
        assert model.random_state == 1 + place // 3
        assert np.array_equal(outputs(model), outputs(alone))
        assert model.n_iter_ == alone.n_iter_ >= 1


@pytest.mark.parametrize("ledger", [False, True])
def test_a_frontier_solves_once_for_all_seeds(
    ledger: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    calls: list[int] = []
    real = solver.minimize

    def counted(*given: Any, **named: Any) -> Any:
        calls.append(1)
        return real(*given, **named)

    monkeypatch.setattr(solver, "minimize", counted)
    kept = tmp_path / "ledger" if ledger else None
    found = frontier(
        FairClassifier(model="linear"),
        X,
        Y,
        sensitive_features=TWO,
        strengths=[0.0, 0.5],
        random_state=0,
        search=SearchOptions(seeds=3, ledger=kept),
    )
    assert len(calls) == 5 * 3  # in each fold: the constant, the start and one strength
    assert len({point.accuracy for point in found.points if point.strength == 0.5}) == 1
    assert len(found.points) == 6


def test_a_saved_model_is_the_same(tmp_path: Any) -> None:
    for kind, (_, y) in KINDS.items():
        model = linear(kind, 2.0).fit(X, y, sensitive_features=A)
        model.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert np.array_equal(outputs(model), outputs(again))
        assert np.array_equal(model.coef_, again.coef_)
        assert np.array_equal(model.intercept_, again.intercept_)
        assert (again.penalty, again.learning_rate, again.n_iter_) == (None, "auto", model.n_iter_)


def test_a_stream_goes_on_from_a_solved_model() -> None:
    model = FairClassifier(model="linear", random_state=0).fit(X, Y, sensitive_features=TWO)
    before = model.coef_
    model.partial_fit(X, Y, sensitive_features=TWO)
    assert not np.array_equal(before, model.coef_)
    np.testing.assert_allclose(model.coef_ * X.std(0), before * X.std(0), atol=0.3)


# --- when it is used
# ------------------------------------------------------------------------------------------------

STEPS: dict[str, dict[str, Any]] = {
    "epochs": {"epochs": 3},
    "batch size": {"batch_size": 50},
    "learning rate": {"learning_rate": 0.005},
    "its decay": {"learning_rate_decay": 0.9},
    "population": {"estimate": "population"},
    "kolmogorov": {"metric": "kolmogorov"},
    "total variation": {"metric": "total_variation"},
    "own metric": {"metric": lambda u, v: (u.mean() - v.mean()).square()},
    "asked": {"solver": "sgd"},
    "network": {"model": "mlp"},
    "module": {"model": torch.nn.Linear(4, 1)},
}


@pytest.mark.parametrize("case", STEPS)
def test_steps_are_taken_where_the_solver_does_not_serve(case: str) -> None:
    assert not is_solved(
        FairClassifier(**(with_penalty(**({"model": "linear"} | STEPS[case])))), 1_000, 10
    )
    assert is_solved(FairClassifier(model="linear"), 1_000, 10)


def test_a_network_without_hidden_layers_is_linear() -> None:
    plain = FairClassifier(model="mlp", hidden=()).fit(X, Y, sensitive_features=TWO)
    linear = FairClassifier(model="linear").fit(X, Y, sensitive_features=TWO)
    np.testing.assert_array_equal(plain.coef_, linear.coef_)
    assert is_solved(
        FairClassifier(hidden=(), penalty=PenaltyOptions(solver="lbfgs"), model="mlp"), 10, 1
    )
    assert not is_solved(FairClassifier(hidden=(), epochs=3, model="mlp"), 10, 1)


def test_the_solver_is_for_data_of_a_size_and_losses_that_are_smooth() -> None:
    kernel = FairClassifier(model="linear", metric="mmd")
    assert is_solved(kernel, 2_000, 10)
    assert not is_solved(kernel, 2_001, 10)
    assert is_solved(FairClassifier(model="linear"), 10**6, 100)
    assert not is_solved(FairClassifier(model="linear"), 10**6, 101)
    assert is_solved(
        FairClassifier(model="linear", penalty=PenaltyOptions(solver="lbfgs"), epochs=3), 10**6, 101
    )
    assert not is_solved(FairRegressor(model="linear", loss="absolute_error"), 100, 3)
    assert is_solved(FairRegressor(model="linear", loss="huber"), 100, 3)


@pytest.mark.extended
@pytest.mark.parametrize("metric", ["kolmogorov", lambda u, v: (u.mean() - v.mean()).square()])
def test_asked_for_it_takes_any_metric(metric: Any) -> None:
    plain, fair = (
        FairClassifier(
            strength, metric=metric, model="linear", penalty=PenaltyOptions(solver="lbfgs")
        ).fit(X, Y, sensitive_features=TWO)
        for strength in (0.0, 50.0)
    )
    gaps = [
        abs(np.subtract(*(m.predict_proba(X)[side, 1].mean() for side in (TWO, ~TWO))))
        for m in (plain, fair)
    ]
    assert gaps[1] < gaps[0] / 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"model": "mlp"},
            "solver='lbfgs' fits linear models; set model='linear', or solver='sgd' for a network",
        ),
        (
            {"model": torch.nn.Linear(4, 1)},
            "solver='lbfgs' fits linear models; set model='linear', or solver='sgd' for a network",
        ),
        (
            {"model": "linear", "estimate": "population"},
            (
                "solver='lbfgs' lowers the distance between the rows; leave estimate='rows', or "
                "set "
                "solver='sgd'"
            ),
        ),
    ],
)
def test_what_the_solver_cannot_do_is_said(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as caught:
        FairClassifier(**with_penalty(solver="lbfgs", **settings)).fit(X, Y, sensitive_features=TWO)
    assert str(caught.value) == message


def test_a_network_has_no_coefficients() -> None:
    model = FairClassifier(epochs=1, model="mlp").fit(X, Y, sensitive_features=TWO)
    assert not hasattr(model, "coef_")
    with pytest.raises(
        AttributeError, match="only linear models have intercept_; fit with model='linear'"
    ):
        _ = model.intercept_


def test_an_unfinished_search_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "MOST_ITERATIONS", 2)
    with pytest.warns(ConvergenceWarning, match="iterations at strength 0, 2; scale X"):
        fit_stack(
            FairClassifier(model="linear"),
            X,
            Y,
            strengths=[0.0, 2.0],
            seeds=[0],
            sensitive_features=TWO,
        )


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_columns_that_part_labels_for_good_are_named(strength: float) -> None:
    """Their weights have no end; with some weight decay they do."""
    given_away = (Y == 1) & (np.random.default_rng(0).random(N) < 0.2)
    told = pd.DataFrame({"signal": X[:, 0], "flag": given_away.astype(float), "other": X[:, 1]})
    FairClassifier(strength, model="linear").fit(
        told.drop(columns="flag"), Y, sensitive_features=TWO
    )
    FairClassifier(strength, model="linear", weight_decay=1e-3).fit(told, Y, sensitive_features=TWO)
    with pytest.warns(ConvergenceWarning) as caught:
        FairClassifier(strength, model="linear").fit(told, Y, sensitive_features=TWO)
    (message,) = (str(one.message) for one in caught)
    assert message == (
        "flag separates the classes, so that weights have no optimum; set weight_decay=1e-5"
    )


def test_numbers_whose_squares_overflow_are_refused() -> None:
    with pytest.raises(DataError) as caught:
        FairRegressor(0.0, model="linear", penalty=PenaltyOptions(standardize=False)).fit(
            X * 1e200, AMOUNT
        )
    assert (
        str(caught.value)
        == "X contains numbers so large that their squares are infinite; rescale it"
    )
