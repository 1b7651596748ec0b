"""What a booster is told in each round: slopes against finite differences, and the two rules of
the descent.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair.criteria import Criterion, criterion_named
from metrifair.errors import DataError, MetrifairWarning, TooFewSamples
from metrifair.metrics import energy_distance
from tests.expected_errors import Refusals
from tests.flat_options import with_penalty
from tests.seams.boosting import (
    PLACES,
    Descent,
    boosting_problem,
    energy_tables,
    grid_places,
    is_penalized,
    objective,
)
from tests.seams.metrics import energy_coefficients, random_directions
from tests.seams.problem import Inputs

WIDEST = 3.0

CRITERIA: dict[str, Any] = {
    "statistical_parity": "statistical_parity",
    "equal_opportunity": "equal_opportunity",
    "predictive_equality": "predictive_equality",
    "equalized_odds": "equalized_odds",
    "risk_parity": "risk_parity",
    "conditional_statistical_parity": "conditional_statistical_parity",
    "log_prediction": Criterion("log parity", score="log_prediction"),
    "own score": Criterion("own", score=lambda prediction, y: prediction.square() + y * prediction),
}
OF_LABELS = ("equal_opportunity", "predictive_equality", "equalized_odds")


def settings_of(**changes: Any) -> Any:
    """The parameters that rows are prepared with, without a booster."""
    defaults = {
        "strength": 2.0,
        "criterion": "statistical_parity",
        "metric": "energy",
        "estimate": "rows",
        "combine": "mean",
        "small_groups": "leave_out",
        "penalize": "prediction",
        "contrast": "pairs",
        "intersectional": False,
        "continuous": False,
        "pos_label": None,
        "expected_groups": False,
    }
    return SimpleNamespace(**with_penalty(**{**defaults, **changes}))


def rows_given(
    seed: int, *, regression: bool, groups: int = 2, n: int = 60, weights: bool = False
) -> Inputs:
    """Random rows: a tenth of unknown group, two strata, every comparison with enough samples."""
    generator = np.random.default_rng(seed)
    a = np.arange(n) % groups
    y = 5 + 3 * generator.normal(size=n) if regression else (np.arange(n) // groups) % 2
    known = np.where(generator.random(n) < 0.1, np.nan, a)
    weight = generator.integers(1, 4, size=n) * 1.0 if weights else None
    return Inputs(y, known, (np.arange(n) // (2 * groups)) % 2, weight)


def penalized(given: Inputs, *, regression: bool, **changes: Any) -> Any:
    kind = {} if regression else {"predict_proba": None}  # which classifiers have
    problem = boosting_problem(settings_of(**changes, **kind), given)
    return problem.make_objective(problem.training)


def outputs(seed: int, n: int, *, regression: bool, ties: bool) -> np.ndarray:
    found = np.random.default_rng(seed + 1).normal(size=n)
    found = found.round(1) if ties else found
    return 5 + 3 * found if regression else found


@pytest.mark.extended
@pytest.mark.extended
@pytest.mark.parametrize("regression", [False, True], ids=["classification", "regression"])
@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize(
    "case", ["plain", "ties", "weights", "three groups", "rest", "output", "population", "summed"]
)
def test_slopes_are_those_of_the_objective(name: str, case: str, regression: bool) -> None:
    criterion = criterion_named(CRITERIA[name])
    if regression and name in OF_LABELS:
        criterion = replace(criterion, bins=(5.0,))
    if regression and name == "log_prediction":
        pytest.skip("predictions of a regressor may be negative")
    changes: dict[str, Any] = {"criterion": criterion}
    if case == "output":
        if name in ("risk_parity", "log_prediction", "own score"):
            pytest.skip("compares no prediction")
        changes["penalize"] = "output"
    changes |= {
        "rest": {"contrast": "rest"},
        "population": {"estimate": "population"},
        "summed": {"combine": "sum"},
    }.get(case, {})
    groups = 3 if case in ("three groups", "rest", "summed") else 2
    rows = rows_given(3, regression=regression, groups=groups, weights=case == "weights")
    if name != "conditional_statistical_parity":
        rows = replace(rows, control_features=None)
    risk = penalized(rows, regression=regression, **changes)
    output = outputs(3, 60, regression=regression, ties=case == "ties")
    # 1 at -f and 0 at f lose the same but for rounding, which no difference can follow
    if name == "risk_parity":
        output = np.abs(output)
    found, strength, step = risk.at(output), 2.0, 1e-6 * risk.spread
    unit = risk.total_weight * (risk.spread**2 / 2 if regression else 1.0)
    differences = [
        unit
        * (risk.value(output + step * one, strength) - risk.value(output - step * one, strength))
        / (2 * step)
        for one in np.eye(len(output))
    ]
    assert found.risk_slope + strength * found.unfairness_slope == pytest.approx(
        differences, rel=1e-4, abs=1e-4
    )
    assert found.risk + strength * found.unfairness == pytest.approx(risk.value(output, strength))
    assert np.abs(found.unfairness_slope).max() > 0


def of_classes(case: str) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Rows of three classes, their objective and outputs (60, 3)."""
    changes: dict[str, Any] = {
        "rest": {"contrast": "rest"},
        "output": {"penalize": "output"},
        "population": {"estimate": "population"},
        "equalized_odds": {"criterion": "equalized_odds"},
        "risk_parity": {"criterion": "risk_parity"},
        "mmd": {"metric": "mmd"},
        "wasserstein": {"metric": "wasserstein"},
    }.get(case, {})
    groups = 3 if case in ("three groups", "rest") else 2
    rows = rows_given(4, regression=False, groups=groups, weights=case == "weights")
    rows = replace(rows, y=(np.arange(60) // groups) % 3, control_features=None)
    output = np.random.default_rng(5).normal(size=(60, 3))
    if case == "ties":
        output[20:30] = output[:10]
    return penalized(rows, regression=False, **changes), output, rows.sample_weight  # type: ignore[return-value]


OF_CLASSES = [
    "plain",
    "ties",
    "weights",
    "three groups",
    "rest",
    "output",
    "population",
]
OF_CLASSES += ["equalized_odds", "risk_parity", "mmd", "wasserstein"]


@pytest.mark.parametrize("case", OF_CLASSES)
def test_slopes_of_several_classes_are_those_of_the_objective(case: str) -> None:
    """Twins of one row part at a kink: their slope is the mean of the two sides', and so is the
    difference.
    """
    risk, output, _ = of_classes(case)
    found, strength, step = risk.at(output), 2.0, 1e-6
    slopes = found.risk_slope + strength * found.unfairness_slope
    assert slopes.shape == found.risk_curvature.shape == (60, 3)
    for place in range(0, 180, 7):
        one = step * np.eye(180)[place].reshape(60, 3)
        difference = (risk.value(output + one, strength) - risk.value(output - one, strength)) / (
            2 * step
        )
        assert slopes.flat[place] == pytest.approx(
            risk.total_weight * difference, rel=1e-3, abs=2e-4
        )
    assert np.abs(found.unfairness_slope).max() > 1e-3
    assert (
        found.unfairness_slope.sum(1) == pytest.approx(np.zeros(60), abs=1e-9) or case == "output"
    )


def test_the_unfairness_of_several_classes_is_that_of_projected_probabilities() -> None:
    """Written down once more, direction by direction; in the mean over directions it is the
    distance of vectors.
    """
    risk, output, _ = of_classes("plain")
    prediction = np.exp(output) / np.exp(output).sum(1, keepdims=True)
    (side,) = risk.batch.sides
    left, right = np.split(prediction[side.rows], [side.counts[0]])
    directions = random_directions(16, 3, torch.Generator().manual_seed(0)).numpy()
    along = [energy_distance(left @ one, right @ one) for one in directions]
    # a projection is half as long, in the mean
    assert risk.at(output).unfairness == pytest.approx(2 * np.mean(along))
    many = replace(risk, objective=replace(risk.objective, slices=4_000))
    assert many.at(output).unfairness == pytest.approx(
        energy_distance(left, right, vector=True), rel=0.05
    )


def test_without_a_penalty_slopes_of_several_classes_are_those_of_softmax() -> None:
    risk, output, given = of_classes("weights")
    found, weight = risk.at(output), np.asarray(given)[:, None]
    prediction = np.exp(output) / np.exp(output).sum(1, keepdims=True)
    assert found.risk_slope == pytest.approx(
        weight * (prediction - np.eye(3)[(np.arange(60) // 2) % 3])
    )
    assert found.risk_curvature == pytest.approx(2 * weight * prediction * (1 - prediction))


def test_several_classes_on_a_grid_have_almost_the_same_slopes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    risk, output, _ = of_classes("three groups")
    exact = risk.at(output)
    monkeypatch.setattr(objective, "MANY", 10)
    gridded = risk.at(output)
    assert gridded.unfairness == pytest.approx(exact.unfairness, rel=1e-3)
    assert np.abs(gridded.unfairness_slope - exact.unfairness_slope).max() < 0.05
    assert (gridded.unfairness_slope != exact.unfairness_slope).any()


@pytest.mark.parametrize("regression", [False, True])
def test_without_a_penalty_slope_and_curvature_are_the_plain_boosters(regression: bool) -> None:
    rows = rows_given(0, regression=regression, weights=True)
    output = outputs(0, 60, regression=regression, ties=False)
    found, weight = (
        penalized(rows, regression=regression).at(output),
        np.asarray(rows.sample_weight),
    )
    prediction = output if regression else 1 / (1 + np.exp(-output))
    assert found.risk_slope == pytest.approx(weight * (prediction - rows.y))
    assert found.risk_curvature == pytest.approx(
        weight if regression else weight * prediction * (1 - prediction)
    )


@pytest.mark.parametrize(
    ("estimate", "within"), [("rows", 30 * 30), ("batch", 30 * 30), ("population", 30 * 29)]
)
def test_the_slope_is_the_closed_form(estimate: str, within: int) -> None:
    """Strength n c p (1 - p) with ranks R and B, as the method writes it; all rows are there:
    the plug-in's c.
    """
    rows = replace(
        rows_given(1, regression=False), control_features=None, sensitive_features=np.arange(60) % 2
    )
    output = outputs(1, 60, regression=False, ties=False)
    p, a = 1 / (1 + np.exp(-output)), np.arange(60) % 2
    c = np.empty(60)
    for i in range(60):
        own, other = p[a == a[i]], p[a != a[i]]
        rank, below = (own <= p[i]).sum(), (other < p[i]).sum()
        c[i] = 2 * (2 * below - 30) / 900 - 2 * (2 * rank - 31) / within
    found = penalized(rows, regression=False, estimate=estimate).at(output)
    assert found.unfairness_slope == pytest.approx(60 * c * p * (1 - p))


def test_rows_without_weight_and_of_unknown_group_feel_no_penalty() -> None:
    rows = replace(rows_given(2, regression=False), control_features=None)
    weight = np.ones(60)
    weight[:7] = 0
    strange = np.asarray(rows.sensitive_features, dtype=object)
    strange[:7] = "only here"  # a group of weightless rows is as if it had never been
    strange[7:] = [f"group {value}" for value in strange[7:]]
    strange[8] = None
    risk = penalized(
        replace(rows, sample_weight=weight, sensitive_features=strange), regression=False
    )
    found = risk.at(outputs(2, 60, regression=False, ties=False))
    assert not found.unfairness_slope[:7].any()
    assert found.unfairness_slope[8] == 0
    assert not found.risk_slope[:7].any()


@pytest.mark.parametrize("regression", [False, True])
@given(st.integers(0, 10_000), st.floats(-2, 3), st.floats(0.1, 30))
@settings(max_examples=25, deadline=None)
def test_the_penalty_moves_no_leaf_beyond_the_limit(
    regression: bool, seed: int, power: float, spread: float
) -> None:
    """And curvatures are positive: for any set of rows the penalty's share of a leaf is at most
    the limit.
    """
    risk = penalized(rows_given(seed, regression=regression), regression=regression)
    descent = Descent(risk, 10**power, rounds=4, learning_rate=0.1)
    generator = np.random.default_rng(seed)
    for _ in range(4):
        output = spread * outputs(
            int(generator.integers(1000)), 60, regression=regression, ties=True
        )
        slope, curvature = descent.step(output)
        assert (curvature > 0).all()
        leaf = generator.random(60) < 0.3
        pull = (slope - risk.at(output).risk_slope)[leaf].sum()
        assert abs(pull) <= descent.limit * risk.spread * curvature[leaf].sum() * (1 + 1e-9)


@given(st.floats(0.001, 1000), st.integers(1, 2000), st.floats(0.001, 1))
@settings(max_examples=60, deadline=None)
def test_the_strength_rises_and_has_risen_by_half_of_the_rounds(
    strength: float, rounds: int, rate: float
) -> None:
    descent = Descent(None, strength, rounds=rounds, learning_rate=rate)  # type: ignore[arg-type]
    course = [descent.strength_at(number) for number in range(rounds)]
    assert all(b >= a for a, b in pairwise(course))
    assert course[-1] == strength or rounds == 1
    assert all(value == strength for value in course[(rounds + 1) // 2 :])
    if descent.warm_up:
        assert course[0] == pytest.approx(0.1)
    else:
        assert course[0] == strength


def test_the_limit_halves_when_the_objective_rose_and_recovers() -> None:
    risk = penalized(
        replace(rows_given(4, regression=False), control_features=None), regression=False
    )
    descent = Descent(risk, 1.0, rounds=2, learning_rate=1.0)
    good = np.where(risk.batch.samples.y == 1, 1.0, -1.0)
    limits = []
    for output in (0 * good, -good, good, good, good):
        descent.step(output)
        limits.append(descent.limit)
    assert limits[:3] == [WIDEST, WIDEST / 2, WIDEST / 2 * 1.05]
    assert limits[2] < limits[3] < limits[4] <= WIDEST


def test_the_report_falls_while_the_strength_rises_and_is_the_penalized_risk_then() -> None:
    risk = penalized(
        replace(rows_given(5, regression=False), control_features=None), regression=False
    )
    descent = Descent(risk, 10.0, rounds=20, learning_rate=0.1)
    output, reports = outputs(5, 60, regression=False, ties=False), []
    for _ in range(20):
        descent.step(output)
        reports.append(descent.report(risk, output))
    first = descent.warm_up - 1
    assert all(b < a for a, b in pairwise(reports[: first + 1]))
    assert reports[first:] == [risk.value(output, 10.0)] * (20 - first)
    found = risk.at(output)
    assert reports[-1] == pytest.approx(found.risk + 10 * found.unfairness)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strength": -1}, "strength must be a finite number from 0 upwards, got -1"),
        ({"strength": "strong"}, "strength must be"),
        ({"strength": float("nan")}, "strength must be"),
        ({"strength": True}, "strength must be"),
        ({"penalize": "scores"}, "penalize must be one of 'prediction', 'output'"),
        ({"contrast": "all"}, "contrast must be one of"),
        ({"estimate": "no"}, "estimate must be one of 'rows', 'population', 'batch'"),
        ({"combine": "max"}, "combine must be one of 'mean', 'sum'"),
        ({"intersectional": 3}, "intersectional must be True or False"),
    ],
)
def test_a_parameter_out_of_range_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        is_penalized(settings_of(**changes))


def test_a_group_of_one_is_left_out_or_refused(refused: Refusals) -> None:
    three = Inputs([0, 1, 0, 1, 0], ["a", "a", "b", "c", "c"])
    problem = boosting_problem(settings_of(predict_proba=None), three)
    with pytest.warns(
        MetrifairWarning,
        match=r"^left out of the penalty, as too small to train on: .* 'b' \(1 row\); ",
    ):
        risk = problem.make_objective(problem.training)
    assert [one.groups for one in risk.objective.comparisons] == [("a", "c")]
    assert np.flatnonzero(risk.at(np.arange(5.0)).unfairness_slope).tolist() == [0, 1, 3, 4]
    for rows, more in (
        (three, {"small_groups": "error"}),
        (Inputs([0, 1, 0, 1, 0], ["a", "a", "b", "a", "a"]), {}),
    ):
        with refused(TooFewSamples):
            penalized(rows, regression=False, **more)


@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize("shift", [0.0, 1e4])
@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
@settings(max_examples=25, deadline=None)
def test_on_a_grid_value_and_slopes_are_those_of_the_moved_scores(
    unbiased: bool, shift: float, seed: int, spread: float
) -> None:
    generator = np.random.default_rng(seed)
    scores = shift + spread * generator.normal(size=300).round(generator.integers(1, 4))
    rows = generator.permutation(300)
    left, right = rows[:120], rows[120:280]
    place, points = grid_places(scores)
    value, *tables = energy_tables(place, points, left, right, fraction=0.0 if unbiased else 1.0)
    slopes = [table[place[own]] for table, own in zip(tables, (left, right), strict=True)]
    step = np.ptp(scores) / (PLACES - 1)
    moved = scores.min() + step * np.round((scores - scores.min()) / step)
    assert np.abs(moved - scores).max() <= 0.51 * step
    exact = energy_distance(scores[left], scores[right], unbiased=unbiased)
    assert value == pytest.approx(exact, abs=4 * step)
    pooled = np.concatenate([moved[left], moved[right]])
    coefficients, _ = energy_coefficients(
        np.round(pooled / step), 120, fractions=(0, 0) if unbiased else (1, 1)
    )
    assert np.concatenate(slopes) == pytest.approx(coefficients, abs=1e-9)


def test_many_probabilities_in_single_precision_have_the_slopes_of_few_in_double(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = replace(rows_given(6, regression=False, n=4_000), control_features=None)
    output = outputs(6, 4_000, regression=False, ties=False)
    exact = penalized(rows, regression=False).at(output)
    monkeypatch.setattr(objective, "MANY", 1_000)
    coarse = penalized(rows, regression=False).at(output)
    assert coarse.unfairness_slope.dtype == np.float32
    assert coarse.unfairness == pytest.approx(exact.unfairness, abs=1e-5)
    assert coarse.risk == pytest.approx(exact.risk, rel=1e-6)
    assert coarse.risk_slope == pytest.approx(exact.risk_slope, abs=1e-6)
    assert coarse.unfairness_slope == pytest.approx(exact.unfairness_slope, abs=2e-3)
    assert np.abs(exact.unfairness_slope).max() > 0.01


def test_many_predictions_of_a_regressor_keep_their_order_beside_one_far_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In single precision all but the one that is far out would be nearly equal, and the slopes
    those of ties.
    """
    rows = replace(rows_given(7, regression=True, n=4_000), control_features=None)
    rows = replace(rows, y=np.concatenate([[1e10], np.asarray(rows.y)[1:]]))
    output = outputs(7, 4_000, regression=True, ties=False)
    few = penalized(rows, regression=True).at(output)
    monkeypatch.setattr(objective, "MANY", 1_000)
    many = penalized(rows, regression=True).at(output)
    assert (many.unfairness_slope == few.unfairness_slope).all()
    assert len(np.unique(few.unfairness_slope)) > 3_000


def own_shares(risk: Any, weight: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """All of each row where it is."""
    found = []
    for one in risk.batch.sides:
        rows, left = np.asarray(one.rows), one.counts[0]
        both = np.zeros((2, len(weight)))
        both[0, rows[:left]], both[1, rows[left:]] = weight[rows[:left]], weight[rows[left:]]
        found.append((both[0], both[1]))
    return tuple(found)


@pytest.mark.parametrize("case", ["plain", "weights", "three groups", "equalized_odds", "mmd"])
def test_rows_of_several_classes_that_are_certain_have_the_slopes_of_their_own_groups(
    case: str,
) -> None:
    known, output, weight = of_classes(case)
    shares = own_shares(known, np.ones(60) if weight is None else np.asarray(weight))
    exact, found = known.at(output), replace(known, shares=shares).at(output)
    noisy = replace(known, shares=shares, label_noise=np.ones(60)).at(output)
    assert noisy.own_slope == pytest.approx(exact.unfairness_slope, rel=1e-4, abs=1e-6)
    assert found.own_slope is None
    assert np.abs(exact.unfairness_slope).max() > 0.01
    assert found.unfairness_slope == pytest.approx(exact.unfairness_slope, rel=5e-3, abs=5e-3)
    assert found.unfairness == pytest.approx(exact.unfairness, abs=1e-3)


CERTAIN = [(name, "plain", "energy") for name in CRITERIA]
CERTAIN += [
    ("equal_opportunity", "plain", metric) for metric in ("cramer", "wasserstein", "lp", "mmd")
]
CERTAIN += [
    ("equalized_odds", case, metric)
    for case in ("weights", "three groups", "rest", "output", "population")
    for metric in ("energy", "mmd")
]


@pytest.mark.parametrize(("name", "case", "metric"), CERTAIN)
def test_rows_that_are_certain_have_the_slopes_of_their_own_groups(
    name: str, case: str, metric: str
) -> None:
    changes: dict[str, Any] = {"criterion": CRITERIA[name], "metric": metric, "predict_proba": None}
    changes |= {
        "rest": {"contrast": "rest"},
        "output": {"penalize": "output"},
        "population": {"estimate": "population"},
    }.get(case, {})
    rows = rows_given(
        3,
        regression=False,
        groups=3 if case in ("three groups", "rest") else 2,
        weights=case == "weights",
    )
    if name != "conditional_statistical_parity":
        rows = replace(rows, control_features=None)
    problem = boosting_problem(settings_of(**changes), rows)
    known = problem.make_objective(problem.training)
    weight = problem.training.weight if case == "weights" else np.ones(60)
    expected = replace(known, shares=own_shares(known, weight))
    output = np.abs(outputs(3, 60, regression=False, ties=False))  # no two losses tie
    exact, found = known.at(output), expected.at(output)
    assert np.abs(exact.unfairness_slope).max() > 0.01
    assert found.unfairness_slope == pytest.approx(exact.unfairness_slope, rel=5e-3, abs=5e-3)
    assert found.unfairness == pytest.approx(exact.unfairness, abs=1e-3)
    assert (found.risk_slope == exact.risk_slope).all()


def test_a_row_ties_with_its_copy_wherever_both_are_computed() -> None:
    """Where vectors are computed in blocks, the same number has another last digit at another
    place.
    """
    rounded = Criterion(
        "rounded", score=lambda p, _: p * (1 + 1e-12 * (torch.arange(p.shape[-1]) % 7).double())
    )
    plain = Criterion("plain", score=lambda p, _: p)
    rows, output = (
        replace(rows_given(3, regression=False), control_features=None),
        outputs(3, 60, regression=False, ties=False),
    )
    found = []
    for criterion in (rounded, plain):
        known = penalized(rows, regression=False, criterion=criterion)
        found.append(
            replace(known, shares=own_shares(known, np.ones(60))).at(output).unfairness_slope
        )
    assert np.abs(found[1]).max() > 0.01
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_slopes_are_means_over_the_sides_by_definition(
    weights: bool, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 (F_other - F_own) / n_own at the row's score, for either side, by their shares: counted
    one by one.
    """
    if many:
        monkeypatch.setattr(objective, "MANY", 10)
    rows = replace(rows_given(5, regression=False, weights=weights), control_features=None)
    problem = boosting_problem(settings_of(predict_proba=None), rows)
    generator = np.random.default_rng(0)
    shares = ((generator.random(60), generator.random(60)),)
    output = outputs(5, 60, regression=False, ties=True)
    found = problem.make_objective(problem.training, shares=shares).at(output).unfairness_slope
    p, w, cell = 1 / (1 + np.exp(-output)), problem.training.weight, problem.training.cell

    def below(group: int, score: float) -> float:
        own = cell == group
        return ((p < score) + 0.5 * (np.abs(p - score) < 1e-12))[own] @ w[own] / w[own].sum()

    for i in range(60):
        gap = 4 * (below(1, p[i]) - below(0, p[i]))
        slope = (
            gap
            * (shares[0][0][i] / w[cell == 0].sum() - shares[0][1][i] / w[cell == 1].sum())
            * w[i]
        )
        expected = w.sum() * slope * p[i] * (1 - p[i])
        # Where slopes are autograd's an added row is counted before or after the one it ties with.
        assert found[i] == pytest.approx(expected, abs=3e-2 if many else 2e-3), i


@pytest.mark.parametrize(
    ("changes", "regression"),
    [
        ({"metric": lambda u, v: (u.mean() - v.mean()).abs()}, False),
        ({"criterion": "risk_parity"}, True),
    ],
)
def test_own_groups_serve_where_nothing_else_can(changes: dict[str, Any], regression: bool) -> None:
    kind = {} if regression else {"predict_proba": None}
    problem = boosting_problem(
        settings_of(**changes, **kind),
        replace(rows_given(0, regression=regression), control_features=None),
    )
    assert problem.shares(lambda *_: 1 / 0, np.random.RandomState(0)) is None  # type: ignore[arg-type,return-value]
