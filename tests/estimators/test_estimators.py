"""The estimators: exact optima, every option, and everything that scikit-learn does with an
estimator.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from experiments.populations import Example1, Normal, normal_distances
from experiments.populations.synthetic import OffsetRegression
from metrifair import AuditOptions, PenaltyOptions, audit, unfairness
from metrifair.criteria import EQUALIZED_ODDS, Criterion
from metrifair.errors import DataError, MetrifairWarning
from metrifair.estimators import FairClassifier, FairRegressor, fit_stack
from metrifair.metrics import energy_distance
from tests.flat_options import with_penalty
from tests.seams.metrics import METRICS

Floats = NDArray[np.float64]

N = 240
RNG = np.random.default_rng(0)
A = RNG.integers(2, size=N)
REGION = RNG.integers(2, size=N)
X = RNG.normal(size=(N, 3)) + 0.8 * A[:, None] + 0.4 * REGION[:, None]
Y = (X.sum(1) + RNG.normal(size=N) > 1.5).astype(int)
LEVEL = np.digitize(X.sum(1) + RNG.normal(size=N), [0.5, 2.5])
AMOUNT = X.sum(1) + RNG.normal(size=N)
_OWN = np.random.default_rng(7)
# one feature tells the group: fairness leaves the others
SKILL = _OWN.normal(size=(N, 3)) + np.outer(A, [1.5, 0, 0])
HIRED = (SKILL.sum(1) + _OWN.normal(size=N) > 0.75).astype(int)
RANK = np.digitize(SKILL.sum(1) + _OWN.normal(size=N), [0.0, 1.5])
QUICK: dict[str, Any] = {"model": "linear", "epochs": 80, "learning_rate": 0.08, "random_state": 0}


def score(model: FairClassifier, rows: Floats = X) -> Floats:
    return model.predict_proba(rows)[:, 1]


# --- exact optima
# -----------------------------------------------------------------------------------------------

EXACT: dict[str, Any] = {
    "model": "linear",
    "standardize": False,
    "epochs": 300,
    "learning_rate": 0.1,
    "learning_rate_decay": 0.98,
    "random_state": 0,
}


def coefficients(model: FairRegressor) -> Floats:
    """Slopes, and the intercept last: the outputs at the unit vectors and at 0."""
    width = model.n_features_in_
    at_zero, *at_units = model.predict(np.vstack([np.zeros(width), np.eye(width)]))
    return np.array([*(np.array(at_units) - at_zero), at_zero])


def offset_point(
    population: OffsetRegression, model: FairRegressor
) -> tuple[Normal, Normal, float]:
    """Distribution of the predictions in the two groups of the population, and their risk
    there; all exact.
    """
    *slopes, at_one, intercept = coefficients(model)
    found = [Normal(mean, math.hypot(*slopes)) for mean in (intercept, intercept + at_one)]
    off = [intercept - population.delta, intercept + at_one]
    risk = (1 - population.p1) * off[0] ** 2 + population.p1 * off[1] ** 2
    return found[0], found[1], risk + float(np.square(np.subtract(slopes, population.theta)).sum())


STRENGTHS = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)


@pytest.mark.extended
@pytest.mark.parametrize("strength", STRENGTHS)
def test_offset_regression_is_solved_exactly_on_an_ideal_sample(strength: float) -> None:
    """1,000 normal quantiles in each group, taken as a population, stand for the true one: c and s
    within 5e-3.

    The objective is flat at its minimum: errors of this size cost less than 1e-4 of it.
    """
    population = OffsetRegression(delta=1.0)
    grid = torch.distributions.Normal(0, 1).icdf((torch.arange(1000).double() + 0.5) / 1000).numpy()
    features = np.column_stack([np.tile(grid, 2), np.repeat([0, 1], 1000)])
    y, a = population.optimal_prediction(features), features[:, 1].astype(int)
    model = FairRegressor(strength, batch_size=2000, **with_penalty(**EXACT)).fit(
        features, y, sensitive_features=a
    )
    left, right, risk = offset_point(population, model)
    exact = population.tradeoff(strength)
    assert left.mean - right.mean == pytest.approx(exact.parameters["c"], abs=5e-3)
    assert left.deviation == pytest.approx(exact.parameters["s"], abs=5e-3)
    excess = risk + strength * normal_distances(left, right).energy - exact.objective
    assert -1e-9 < excess < 1e-4


@pytest.mark.extended
@pytest.mark.parametrize(("p1", "strength"), [(0.5, 0.5), (0.5, 2.0), (0.2, 1.0)])
def test_offset_regression_is_solved_from_a_random_sample(p1: float, strength: float) -> None:
    """5,000 rows move c and s by their sampling error, about 0.03; the objective, flat there,
    by less than 0.004.
    """
    population = OffsetRegression(theta=(0.6, 0.8), delta=1.0, p1=p1)
    features, y, a = population.sample(5000, seed=1)
    model = FairRegressor(strength, batch_size=5000, **with_penalty(**EXACT)).fit(
        features, y, sensitive_features=a
    )
    left, right, risk = offset_point(population, model)
    excess = (
        risk
        + strength * normal_distances(left, right).energy
        - population.tradeoff(strength).objective
    )
    assert -1e-9 < excess < 0.004


@pytest.mark.extended
@pytest.mark.parametrize("strength", [0.05, 0.25, 1.0])
def test_hidden_experience_is_solved_up_to_the_sign_of_a_slope(strength: float) -> None:
    """Slopes within 0.06: three standard errors of a slope fitted to 2,500 rows of noise;
    objective within 0.004.
    """
    population = Example1(p1=0.5)
    raw, y, a = population.sample(5000, seed=2)
    features = np.column_stack([raw, raw[:, 0] * raw[:, 1]])
    longer = EXACT | {"epochs": 500, "learning_rate": 0.2, "learning_rate_decay": 0.99}
    model = FairRegressor(strength, batch_size=5000, **with_penalty(**longer)).fit(
        features, y, sensitive_features=a
    )
    slope, at_one, extra, intercept = coefficients(model)
    exact = population.tradeoff(strength)
    assert abs(slope) == pytest.approx(exact.parameters["s0"], abs=0.06)
    assert slope + extra == pytest.approx(exact.parameters["s1"], abs=0.06)
    centers = intercept + slope / 2 - 0.5, intercept + at_one + (slope + extra) / 2 - 0.5
    risk = population.linear_risk(slope, slope + extra) + (centers[0] ** 2 + centers[1] ** 2) / 2
    grid = (np.arange(2000) + 0.5) / 2000 - 0.5
    apart = energy_distance(centers[0] + slope * grid, centers[1] + (slope + extra) * grid)
    assert -1e-5 < risk + strength * apart - exact.objective < 0.004


# --- criteria, metrics, options
# ---------------------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("batch_size", ["auto", 60], ids=["full batch", "minibatch"])
@pytest.mark.parametrize(
    ("criterion", "others"),
    [
        ("statistical_parity", {}),
        ("equal_opportunity", {}),
        ("predictive_equality", {}),
        ("equalized_odds", {}),
        ("risk_parity", {"loss": "log_loss"}),
        ("conditional_statistical_parity", {"control_features": REGION}),
    ],
)
def test_every_criterion_lowers_its_own_unfairness(
    criterion: str, others: dict[str, Any], batch_size: Any
) -> None:
    """And still ranks people nearly as well: the model that predicts the same for everyone
    would lower anything.
    """
    rng = np.random.default_rng(99)
    rows = {"control_features": REGION} if "control_features" in others else {}
    # harder in 0
    labels = (
        np.where(A == 1, HIRED, rng.permutation(HIRED)) if criterion == "risk_parity" else HIRED
    )

    def reached(strength: float) -> tuple[float, float]:
        model = FairClassifier(
            strength, criterion=criterion, batch_size=batch_size, **with_penalty(**QUICK)
        )
        said = score(model.fit(SKILL, labels, sensitive_features=A, **rows), SKILL)
        asked = {"criterion": criterion, "metric": "energy", "reduce": "sum", **others}
        return unfairness(labels, said, sensitive_features=A, **asked), roc_auc_score(labels, said)

    (before, plain), (after, fair) = reached(0.0), reached(2.0)
    assert after < 0.4 * before
    assert fair > plain - 0.15


def test_criteria_are_different_things() -> None:
    """Groups that differ within one label only: asking for parity within the other does not
    mend it.
    """
    rng = np.random.default_rng(3)
    label = rng.integers(2, size=N)
    features = rng.normal(size=(N, 1)) + 1.5 * (label * (1 + A))[:, None]

    def left(y: Floats, trained: str, measured: str) -> float:
        model = FairClassifier(2.0, criterion=trained, **with_penalty(**QUICK)).fit(
            features, y, sensitive_features=A
        )
        return unfairness(
            y, score(model, features), sensitive_features=A, criterion=measured, metric="energy"
        )

    for y, asked, other in (
        (label, "equal_opportunity", "predictive_equality"),
        (1 - label, "predictive_equality", "equal_opportunity"),
    ):
        assert left(y, asked, asked) < 0.75 * left(y, other, asked)


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_can_be_trained_on(metric: str) -> None:
    """Kolmogorov and total variation have poor gradients: for them it is enough that the energy
    falls.
    """
    strength = {"kolmogorov": 0.7, "total_variation": 0.7}.get(metric, 1.0)
    fair, plain = (
        FairClassifier(value, metric=metric, **with_penalty(**QUICK)).fit(
            SKILL, HIRED, sensitive_features=A
        )
        for value in (strength, 0.0)
    )
    measured = "energy" if metric in ("kolmogorov", "total_variation") else metric
    values = [
        unfairness(None, score(model, SKILL), sensitive_features=A, metric=measured)
        for model in (fair, plain)
    ]
    assert 0 < values[0] < 0.75 * values[1]


def mean_gap(
    u: Tensor, v: Tensor, *, u_weights: Tensor | None = None, v_weights: Tensor | None = None
) -> Tensor:
    """A metric of the user's own: the squared difference of the means."""

    def mean(z: Tensor, w: Tensor | None) -> Tensor:
        return z.mean(-1) if w is None else (w * z).sum(-1) / w.sum(-1)

    return (mean(u, u_weights) - mean(v, v_weights)).square()


@pytest.mark.parametrize("weighted", [False, True])
def test_a_function_can_be_the_metric(weighted: bool) -> None:
    rng = np.random.default_rng(99)
    weight = rng.integers(1, 4, N) if weighted else None
    given = {"sensitive_features": A, "sample_weight": weight}
    fair = score(
        FairClassifier(100.0, metric=mean_gap, **with_penalty(**QUICK)).fit(SKILL, HIRED, **given),
        SKILL,
    )
    means = [
        np.average(fair[a == A], weights=None if weight is None else weight[a == A]) for a in (0, 1)
    ]
    assert means[0] == pytest.approx(means[1], abs=2e-2)
    assert roc_auc_score(HIRED, fair) > 0.7
    plain = score(FairClassifier(0.0, **with_penalty(**QUICK)).fit(SKILL, HIRED, **given), SKILL)
    assert abs(plain[A == 0].mean() - plain[A == 1].mean()) > 0.2


@pytest.mark.parametrize(
    ("penalize", "other"), [("prediction", "output"), ("output", "prediction")]
)
def test_what_is_compared_is_what_becomes_alike(penalize: Any, other: Any) -> None:
    """With the outputs compared the penalty is on their scale; a strength that acts on one is
    not that of the other.
    """

    def gaps(which: Any) -> dict[str, float]:
        model = FairClassifier(
            0.3, penalty=PenaltyOptions(penalize=which), **with_penalty(**QUICK)
        ).fit(X, Y, sensitive_features=A)
        seen = {"prediction": score(model), "output": model.decision_function(X)}
        return {
            name: unfairness(None, z, sensitive_features=A, metric="energy")
            for name, z in seen.items()
        }

    def objective(which: Any) -> float:
        model = FairClassifier(
            0.3, penalty=PenaltyOptions(penalize=which), **with_penalty(**QUICK)
        ).fit(X, Y, sensitive_features=A)
        z = model.decision_function(X)
        seen = score(model) if penalize == "prediction" else z
        apart = energy_distance(seen[A == 0], seen[A == 1])
        return float(np.mean(np.logaddexp(0, z) - Y * z) + 0.3 * apart)

    assert objective(penalize) < objective(other) - 1e-3
    assert gaps("output")["output"] < gaps("prediction")["output"]


@pytest.mark.parametrize(("contrast", "comparisons"), [("pairs", 6), ("rest", 4)])
def test_four_groups_become_alike(contrast: Any, comparisons: int) -> None:
    groups = np.digitize(X[:, 0], [-0.3, 0.6, 1.5])
    values = []
    for strength in (0.0, 5.0):
        model = FairClassifier(
            strength, penalty=PenaltyOptions(contrast=contrast), **with_penalty(**QUICK)
        ).fit(X, Y, sensitive_features=groups)
        values.append(
            unfairness(
                None, score(model), sensitive_features=groups, metric="energy", contrast=contrast
            )
        )
        assert len(model.scheme_.comparisons) == comparisons
    assert values[1] < 0.2 * values[0]


def test_several_attributes_together_and_crossed() -> None:
    """Both single attributes become fair; only their crossing makes the intersections fair too."""
    rng = np.random.default_rng(4)
    sex, old = rng.integers(2, size=(2, N))
    # skill sits in the crossing
    features = np.column_stack([rng.normal(size=(N, 2)), sex == old, sex, old])
    y = (features[:, 0] + 2 * features[:, 2] + rng.normal(size=N) > 1).astype(int)
    table = pd.DataFrame({"sex": np.array(["f", "m"])[sex], "old": old})

    def left(intersectional: bool, strength: float = 10.0) -> tuple[float, float]:
        model = FairClassifier(strength, intersectional=intersectional, **with_penalty(**QUICK))
        predicted = score(model.fit(features, y, sensitive_features=table), features)
        options: dict[str, Any] = {"sensitive_features": table, "metric": "energy"}
        return unfairness(None, predicted, **options), unfairness(
            None, predicted, **options, intersectional=True
        )

    plain, apart, crossed = left(False, 0.0), left(False), left(True)
    assert apart[0] < plain[0]
    assert apart[1] > 0.5 * plain[1]
    assert crossed[1] < 0.1 * plain[1]
    assert crossed[0] < 0.01


def test_strata_confine_the_criterion() -> None:
    """Parity within regions leaves the difference between regions, also where booleans name the
    regions.
    """
    mask = REGION == 1

    def left(**rows: Any) -> dict[str, float]:
        model = FairClassifier(5.0, criterion="conditional_statistical_parity", model="linear")
        predicted = score(model.fit(X, Y, sensitive_features=A, **rows))
        return {
            name: unfairness(None, predicted[inside], sensitive_features=A[inside], metric="energy")
            for name, inside in (("there", mask), ("elsewhere", ~mask))
        }

    both = left(control_features=REGION)
    assert max(both.values()) < 0.03
    assert left(control_features=mask) == both


def test_a_regression_target_is_cut_by_bins() -> None:
    odds = replace(EQUALIZED_ODDS, bins=(float(np.median(AMOUNT)),))
    values = []
    for strength in (0.0, 20.0):
        model = FairRegressor(strength, criterion=odds, **with_penalty(**QUICK)).fit(
            X, AMOUNT, sensitive_features=A
        )
        values.append(
            unfairness(
                AMOUNT, model.predict(X), sensitive_features=A, criterion=odds, metric="energy"
            )
        )
    assert values[1] < 0.3 * values[0]


def test_a_criterion_of_one_s_own() -> None:
    calibration = Criterion("residuals", score=lambda prediction, y: prediction - y)
    values = []
    for strength in (0.0, 20.0):
        model = FairRegressor(
            strength,
            criterion=calibration,
            penalty=PenaltyOptions(standardize=False),
            **with_penalty(**QUICK),
        )
        residual = model.fit(X, AMOUNT + 2 * A, sensitive_features=A).predict(X) - AMOUNT - 2 * A
        values.append(energy_distance(residual[A == 0], residual[A == 1]))
    assert values[1] < 0.2 * values[0]


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
def test_every_loss_of_a_regressor_fits_and_is_made_fair(loss: str) -> None:
    plain, fair = (
        FairRegressor(s, loss=loss, **with_penalty(**QUICK)).fit(X, AMOUNT, sensitive_features=A)
        for s in (0.0, 10.0)
    )
    assert plain.score(X, AMOUNT) > 0.6
    gaps = [
        unfairness(None, model.predict(X), sensitive_features=A, metric="energy")
        for model in (plain, fair)
    ]
    assert gaps[1] < 0.1 * gaps[0]


def test_a_regressor_s_strength_means_the_same_on_every_scale() -> None:
    base = (
        FairRegressor(1.0, **with_penalty(**QUICK)).fit(X, AMOUNT, sensitive_features=A).predict(X)
    )
    scaled = (
        FairRegressor(1.0, **with_penalty(**QUICK))
        .fit(X, 1e6 * AMOUNT - 5e6, sensitive_features=A)
        .predict(X)
    )
    np.testing.assert_allclose(scaled, 1e6 * base - 5e6, rtol=1e-6, atol=1e-2)


# --- classes
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["energy", "mmd", "wasserstein"])
def test_three_classes_become_alike_as_vectors(metric: str) -> None:
    values = []
    for strength in (0.0, 1.0 if metric == "wasserstein" else 10.0):
        model = FairClassifier(strength, metric=metric, **with_penalty(**QUICK)).fit(
            SKILL, RANK, sensitive_features=A
        )
        probability = model.predict_proba(SKILL)
        np.testing.assert_allclose(probability.sum(1), 1, rtol=1e-12)
        values.append(unfairness(None, probability, sensitive_features=A, metric=metric))
        assert model.decision_function(X).shape == (N, 3)
    assert 0 < values[1] < 0.5 * values[0]


@pytest.mark.parametrize("classes", [2, 3])
def test_labels_may_be_words(classes: int) -> None:
    codes = Y if classes == 2 else LEVEL
    words = np.array(["high", "low", "middle"])[codes]
    by_code, by_word = (
        FairClassifier(1.0, **with_penalty(**QUICK)).fit(X, y, sensitive_features=A)
        for y in (codes, words)
    )
    np.testing.assert_array_equal(by_word.predict_proba(X), by_code.predict_proba(X))
    np.testing.assert_array_equal(
        by_word.predict(X), np.array(["high", "low", "middle"])[by_code.predict(X)]
    )
    assert by_word.classes_.tolist() == ["high", "low", "middle"][:classes]


def test_the_positive_label_is_what_equal_opportunity_speaks_of() -> None:
    same = FairClassifier(
        1.0, criterion="equal_opportunity", pos_label=0, **with_penalty(**QUICK)
    ).fit(X, Y, sensitive_features=A)
    other = FairClassifier(1.0, criterion="predictive_equality", **with_penalty(**QUICK)).fit(
        X, Y, sensitive_features=A
    )
    np.testing.assert_array_equal(score(same), score(other))
    by_default = FairClassifier(1.0, criterion="equal_opportunity", **with_penalty(**QUICK)).fit(
        X, Y, sensitive_features=A
    )
    assert not np.array_equal(score(same), score(by_default))


def test_probabilities_outputs_and_labels_agree() -> None:
    model = FairClassifier(1.0, **with_penalty(**QUICK)).fit(X, Y, sensitive_features=A)
    output = model.decision_function(X)
    np.testing.assert_allclose(score(model), 1 / (1 + np.exp(-output)), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(1))
    assert model.score(X, Y) == np.mean(model.predict(X) == Y)


# --- groups that are not known, weights
# -------------------------------------------------------------------------


@pytest.mark.extended
def test_rows_of_unknown_group_count_for_the_risk_and_not_for_the_unfairness() -> None:
    """The fit minimizes mean loss over all rows + strength x energy of the known ones: no other
    fit does better.
    """
    rng = np.random.default_rng(5)
    hidden = rng.random(N) < 0.5
    known = np.where(hidden, np.nan, A)
    settings: dict[str, Any] = QUICK | {"epochs": 300, "learning_rate_decay": 0.99}

    def objective(model: FairClassifier) -> float:
        z = model.decision_function(X)
        p = 1 / (1 + np.exp(-z))
        apart = energy_distance(p[known == 0], p[known == 1])
        return float(np.mean(np.logaddexp(0, z) - Y * z) + 2 * apart)

    partly = FairClassifier(2.0, **with_penalty(**settings)).fit(X, Y, sensitive_features=known)
    without = FairClassifier(2.0, **with_penalty(**settings)).fit(
        X[~hidden], Y[~hidden], sensitive_features=A[~hidden]
    )
    everyone = FairClassifier(2.0, **with_penalty(**settings)).fit(X, Y, sensitive_features=A)
    assert objective(partly) < objective(without) - 1e-3  # the hidden rows' losses count
    assert objective(partly) < objective(everyone) - 1e-4  # their groups do not


@pytest.mark.extended
@pytest.mark.parametrize("batch_size", ["auto", 60], ids=["full batch", "minibatch"])
def test_weights_act(batch_size: Any) -> None:
    """Rows of group 1 count ten times: their loss falls, that of group 0 rises, without a
    penalty and with one.
    """
    labels = np.where(A == 1, Y, 1 - Y)  # what is right for one group is wrong for the other
    weight = np.where(A == 1, 10.0, 1.0)
    for strength in (0.0, 0.5):
        settings = QUICK | {"strength": strength, "batch_size": batch_size}
        even = FairClassifier(**with_penalty(**settings)).fit(X, labels, sensitive_features=A)
        tilted = FairClassifier(**with_penalty(**settings)).fit(
            X, labels, sensitive_features=A, sample_weight=weight
        )
        losses = [-np.log(np.where(labels, score(m), 1 - score(m))) for m in (even, tilted)]
        assert losses[1][A == 1].mean() < losses[0][A == 1].mean() - 0.05
        assert losses[1][A == 0].mean() > losses[0][A == 0].mean() + 0.05


@pytest.mark.extended
def test_weights_of_the_unfairness_are_those_of_the_rows() -> None:
    """In a full batch the penalty compares weighted distributions: what is lowered is the
    weighted objective.
    """
    uneven, even = np.where(X[:, 1] > 0.5, 5.0, 1.0), np.ones(N)
    settings: dict[str, Any] = QUICK | {"epochs": 300, "learning_rate_decay": 0.99}
    fits = [
        FairClassifier(2.0, **with_penalty(**settings)).fit(
            X, Y, sensitive_features=A, sample_weight=w
        )
        for w in (uneven, even)
    ]

    def objective(model: FairClassifier, weight: Any) -> float:
        z = model.decision_function(X)
        apart = unfairness(
            None, score(model), sensitive_features=A, sample_weight=weight, metric="energy"
        )
        return float(np.average(np.logaddexp(0, z) - Y * z, weights=weight) + 2 * apart)

    for weight, own, other in ((uneven, *fits), (even, *reversed(fits))):
        assert objective(own, weight) < objective(other, weight) - 1e-3


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_only_ratios_of_weights_matter(scale: float) -> None:
    rng = np.random.default_rng(99)
    weight = rng.uniform(0.5, 2, N)
    one, other = (
        FairClassifier(1.0, **with_penalty(**QUICK)).fit(
            X, Y, sensitive_features=A, sample_weight=w
        )
        for w in (weight, scale * weight)
    )
    np.testing.assert_allclose(score(one), score(other), rtol=1e-8)


# --- modules
# ----------------------------------------------------------------------------------------------------


def test_a_module_of_one_s_own_is_trained() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    values = []
    for strength in (0.0, 10.0):
        model = FairClassifier(strength, **(with_penalty(**(QUICK | {"model": module})))).fit(
            X, Y, sensitive_features=A
        )
        assert model.score(X, Y) > 0.55
        values.append(unfairness(None, score(model), sensitive_features=A, metric="energy"))
    assert values[1] < 0.1 * values[0]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(score(again), score(model))
    assert clone(model).model is not None


def test_a_module_with_one_output_per_class() -> None:
    model = FairClassifier(1.0, **(with_penalty(**(QUICK | {"model": nn.Linear(3, 3)})))).fit(
        X, LEVEL, sensitive_features=A
    )
    assert model.predict_proba(X).shape == (N, 3)


def test_running_statistics_are_refused_at_fit() -> None:
    module = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1))
    with pytest.raises(DataError) as caught:
        FairClassifier(model=module).fit(X, Y, sensitive_features=A)
    assert str(caught.value) == (
        "layer 0 (BatchNorm1d) keeps running statistics, which a stack of models cannot share; use "
        "LayerNorm or "
        "GroupNorm"
    )


@pytest.mark.parametrize(
    ("module", "target"),
    [
        (nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()), Y),
        (nn.Sequential(nn.Linear(3, 3), nn.Softmax(-1)), LEVEL),
    ],
)
def test_a_module_that_returns_probabilities_raises_a_warning(
    module: nn.Sequential, target: Floats
) -> None:
    options = QUICK | {"model": module, "epochs": 2}
    message = (
        "model returns numbers between 0 and 1 for all rows, which are used as log-odds and not as "
        "probabilities; "
        "remove its last layer if that is Sigmoid or Softmax"
    )
    with pytest.warns(MetrifairWarning) as caught:
        FairClassifier(1.0, **with_penalty(**options)).fit(X, target, sensitive_features=A)
    assert [str(warning.message) for warning in caught] == [message]
    assert caught[0].filename == __file__
    FairClassifier(1.0, **with_penalty(**(options | {"model": module[:1]}))).fit(
        X, target, sensitive_features=A
    )


class OwnLayer(nn.Module):
    """A linear layer that begins at 0 and has no reset_parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(3, 1)), nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight + self.bias


@pytest.mark.extended
@pytest.mark.parametrize("layer", [nn.Linear(3, 1), OwnLayer()], ids=["Linear", "own"])
def test_log_odds_between_0_and_1_raise_no_warning(layer: nn.Module) -> None:
    """A large strength leaves little else than the base rate, 5 of 8 here, whose log-odds are
    0.5.
    """
    common = (np.arange(N) % 8 < 5).astype(int)
    model = FairClassifier(
        300.0, **with_penalty(**(QUICK | {"model": nn.Sequential(layer), "epochs": 300}))
    )
    output = model.fit(X, common, sensitive_features=A).decision_function(X)
    assert output.min() > 0
    assert output.max() < 1


def test_dropout_is_for_training_only() -> None:
    module = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    model = FairClassifier(1.0, **(with_penalty(**(QUICK | {"model": module, "epochs": 5})))).fit(
        X, Y, sensitive_features=A
    )
    np.testing.assert_array_equal(score(model), score(model))


# --- seeds, stacks, divergence
# ----------------------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
@pytest.mark.parametrize("batch_size", ["auto", 60], ids=["full batch", "minibatch"])
def test_the_seed_decides_every_bit(
    kind: type[FairClassifier | FairRegressor], batch_size: Any
) -> None:
    def fitted(seed: Any) -> FairClassifier | FairRegressor:
        model = kind(1.0, model="mlp", batch_size=batch_size, epochs=10, random_state=seed)
        return model.fit(X, LEVEL, sensitive_features=A)

    def bits(model: FairClassifier | FairRegressor) -> bytes:
        return b"".join(value.numpy().tobytes() for value in model.predictor_.parameters.values())

    assert bits(fitted(0)) == bits(fitted(0)) == bits(fitted(0).fit(X, LEVEL, sensitive_features=A))
    assert bits(fitted(0)) != bits(fitted(1))
    assert bits(fitted(None)) != bits(fitted(None))
    assert bits(fitted(np.random.RandomState(3))) == bits(fitted(np.random.RandomState(3)))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("batch_size", ["auto", 60], ids=["full batch", "minibatch"])
def test_a_stack_of_estimators_is_each_of_them(batch_size: Any, classes: int) -> None:
    y = Y if classes == 2 else LEVEL
    model = FairClassifier(
        hidden=(4,), epochs=8, batch_size=batch_size, learning_rate=0.02, model="mlp"
    )
    stack = fit_stack(model, X, y, strengths=[0.0, 2.0], seeds=[3, 4], sensitive_features=A)
    for found, (seed, strength) in zip(
        stack, [(3, 0.0), (3, 2.0), (4, 0.0), (4, 2.0)], strict=True
    ):
        alone = (
            clone(model)
            .set_params(strength=strength, random_state=seed)
            .fit(X, y, sensitive_features=A)
        )
        assert found.get_params() == alone.get_params()
        assert found.classes_.tolist() == alone.classes_.tolist()
        tolerance = 1e-9 if batch_size == "auto" else 1e-4
        np.testing.assert_allclose(
            found.decision_function(X), alone.decision_function(X), atol=tolerance
        )


def test_a_stack_has_none_where_training_diverged() -> None:
    model = FairRegressor(model="linear", epochs=3, learning_rate=1e300)
    assert fit_stack(model, X, AMOUNT, strengths=[0.0, 1.0], seeds=[0], sensitive_features=A) == [
        None,
        None,
    ]


@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_a_fit_that_diverges_says_so(kind: type[FairClassifier | FairRegressor]) -> None:
    with pytest.raises(DataError) as caught:
        kind(0.25, model="mlp", learning_rate=1e300, epochs=3).fit(X, Y, sensitive_features=A)
    assert str(caught.value) == (
        "training diverged at strength 0.25; lower learning_rate (now 1e+300), or check the scale "
        "of X and y"
    )


def test_batches_grow_with_rare_groups_and_say_so() -> None:
    rare = np.where(np.arange(N) < 4, 2, A)
    with pytest.warns(UserWarning, match="batches hold 6 samples instead of 5") as caught:
        FairClassifier(batch_size=5, epochs=1, model="mlp").fit(X, Y, sensitive_features=rare)
    assert [str(one.message) for one in caught] == [
        "batches hold 6 samples instead of 5, so that each has 2 of every group that is compared"
    ]


# --- tables of every library
# ------------------------------------------------------------------------------------


@pytest.fixture
def every_warning() -> Iterator[None]:
    """PyTorch says some things once in a process: here, whenever it has reason to."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


@pytest.mark.usefixtures("every_warning")
def test_data_frames_give_names_and_the_same_results() -> None:
    names = ["income", "age", "debt"]
    base = FairClassifier(1.0, **with_penalty(**QUICK)).fit(X, Y, sensitive_features=A)
    frame, polars_frame = pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)
    tables = [
        (frame, pd.Series(Y), pd.Series(A, name="sex")),
        (polars_frame, pl.Series(Y), pl.Series("sex", A)),
        (polars_frame, Y, pl.DataFrame({"sex": A})),
    ]
    for features, labels, groups in tables:
        model = FairClassifier(1.0, **with_penalty(**QUICK)).fit(
            features, labels, sensitive_features=groups
        )
        assert model.feature_names_in_.tolist() == names
        assert model.scheme_.attributes[0].name == "sex"
        # sums differ
        np.testing.assert_allclose(model.predict_proba(features), base.predict_proba(X), rtol=1e-9)
    assert not hasattr(base, "feature_names_in_")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"age": "agee"}))


@pytest.mark.usefixtures("every_warning")
@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_arrays_that_may_not_be_written_to_are_taken(
    kind: type[FairClassifier | FairRegressor],
) -> None:
    """As pandas hands them out; the weights too."""
    fixed = [part.copy() for part in (X, Y, A, np.ones(N))]
    for part in fixed:
        part.flags.writeable = False
    features, y, groups, weight = fixed
    model = kind(1.0, model="mlp", epochs=2).fit(
        features, y, sensitive_features=groups, sample_weight=weight
    )
    model.partial_fit(features, y, sensitive_features=groups, sample_weight=weight)
    assert model.predict(features).shape == (N,)


# --- what scikit-learn does with an estimator
# -------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_parameters_are_stored_as_given_and_cloned(
    kind: type[FairClassifier | FairRegressor],
) -> None:
    changed = {
        "strength": "odd",
        "hidden": [1, 2],
        "metric": mean_gap,
        "epochs": -1,
        "criterion": EQUALIZED_ODDS,
    }
    model = kind(**with_penalty(**changed))
    assert model.get_params() == kind().get_params() | changed
    assert model.hidden is changed["hidden"]
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
@pytest.mark.parametrize("learning", ["fit", "partial_fit"])
def test_a_pickle_predicts_the_same_and_holds_no_rows(
    kind: type[FairClassifier | FairRegressor], learning: str
) -> None:
    rng = np.random.default_rng(0)
    features, groups = rng.normal(size=(5000, 100)), rng.integers(2, size=5000)
    y = (features[:, 0] + groups > 0).astype(int)
    model = kind(1.0, model="mlp", epochs=2, random_state=0)
    getattr(model, learning)(features, y, sensitive_features=groups)
    stored = pickle.dumps(model)
    assert len(stored) < 100_000  # the rows take 4,000,000 bytes
    np.testing.assert_array_equal(pickle.loads(stored).predict(features), model.predict(features))


def test_groups_pass_through_a_pipeline() -> None:
    base = FairClassifier(1.0, **with_penalty(**QUICK)).fit(
        StandardScaler().fit_transform(X), Y, sensitive_features=A
    )
    by_name = make_pipeline(StandardScaler(), FairClassifier(1.0, **with_penalty(**QUICK)))
    by_name.fit(X, Y, fairclassifier__sensitive_features=A)
    np.testing.assert_allclose(
        by_name.predict_proba(X), base.predict_proba(StandardScaler().fit_transform(X))
    )
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(
            StandardScaler(),
            FairClassifier(1.0, **with_penalty(**QUICK)).set_fit_request(sensitive_features=True),
        ).fit(X, Y, sensitive_features=A)
    np.testing.assert_array_equal(routed.predict_proba(X), by_name.predict_proba(X))


@pytest.mark.extended
def test_groups_and_weights_are_routed_through_a_grid_search_to_fit_and_scorer() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        fairness = make_scorer(
            unfairness, greater_is_better=False, response_method="predict_proba", metric="energy"
        ).set_score_request(sensitive_features=True)
        model = FairClassifier(**with_penalty(**QUICK)).set_fit_request(
            sensitive_features=True, sample_weight=True
        )
        model = model.set_score_request(sample_weight=True)
        search = GridSearchCV(
            make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model),
            {"fairclassifier__strength": [0.0, 1.0, 3.0]},
            scoring=fairness,
            cv=3,
            error_score="raise",
        )
        search.fit(SKILL, HIRED, sensitive_features=A, sample_weight=np.ones(N))
        assert search.best_params_ == {"fairclassifier__strength": 3.0}
        scores = search.cv_results_["mean_test_score"]
        assert scores[0] < scores[1] < scores[2] <= 0
        assert search.score(SKILL, HIRED, sensitive_features=A) > scores[0]


def test_a_grid_search_over_criteria_and_models_by_accuracy() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = FairClassifier(0.1, **(with_penalty(**(QUICK | {"epochs": 20})))).set_fit_request(
            sensitive_features=True
        )
        grid = {
            "criterion": ["statistical_parity", EQUALIZED_ODDS],
            "model": ["linear", nn.Linear(3, 1)],
        }
        found = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, Y, sensitive_features=A)
    assert found.best_score_ > 0.6


def test_cross_validation_without_routing_takes_params() -> None:
    scores = cross_validate(
        FairRegressor(0.0, **with_penalty(**QUICK)),
        X,
        AMOUNT,
        cv=3,
        params={"sample_weight": np.ones(N)},
        error_score="raise",
    )
    assert scores["test_score"].min() > 0.5


@pytest.mark.parametrize("training", [True, False])
def test_a_users_module_keeps_its_mode_and_its_weights(training: bool) -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1)).train(training)
    before = [value.clone() for value in module.parameters()]
    FairClassifier(model=module, epochs=2, random_state=0).fit(X, Y, sensitive_features=A).predict(
        X
    )
    assert all(part.training is training for part in module.modules())
    assert all(
        torch.equal(one, other) for one, other in zip(before, module.parameters(), strict=True)
    )


@pytest.mark.parametrize("pos_label", [None, 0, 1])
def test_at_an_exact_tie_the_decision_is_for(pos_label: int | None) -> None:
    """As in an audit: a score at the threshold is a decision for the positive class."""
    model = FairClassifier(epochs=1, model="linear", pos_label=pos_label, random_state=0).fit(
        X, Y, sensitive_features=A
    )
    for value in model.predictor_.parameters.values():
        value.zero_()
    assert (model.predict_proba(X) == 0.5).all()
    assert (model.predict(X) == (1 if pos_label is None else pos_label)).all()
    positive = 1 if pos_label is None else pos_label
    found = audit(
        Y,
        model.predict_proba(X)[:, positive],
        sensitive_features=A,
        pos_label=pos_label,
        options=AuditOptions(resamples=0),
    )
    assert [rates.selection_rate for rates in found.decisions[0].rates] == [1.0, 1.0]


def test_strata_of_a_stream_match_by_value() -> None:
    """A column of integers becomes one of floats as soon as a value is missing in a chunk of it."""
    model = FairClassifier(
        0.5, criterion="conditional_statistical_parity", batch_size=16, random_state=0, model="mlp"
    )
    strata = np.arange(len(X)) // 4 % 2
    again = np.where(np.arange(len(X)) == 3, np.nan, strata)
    for control in (strata, again, strata.astype(float)):
        model.partial_fit(X, Y, sensitive_features=A, control_features=control)
    assert model.scheme_.strata.names == ("control_features=0", "control_features=1")
