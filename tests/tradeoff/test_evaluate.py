"""A model's figures on held-out data, against scikit-learn, fairlearn and SciPy."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from fairlearn.metrics import demographic_parity_difference, demographic_parity_ratio
from scipy.stats import binomtest, ks_2samp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)

from metrifair.criteria import Criterion, criterion_named
from metrifair.errors import DataError, TooFewSamples
from tests.expected_errors import Refusals
from tests.seams.figures import Interval
from tests.seams.tradeoff import data_set, make_point, predict, score_curves

N = 240


class Scorer:
    """Says of each row what stands in it."""

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.stack([1 - X[:, 0], X[:, 0]], axis=1) if X.shape[1] == 1 else X

    def predict(self, X: np.ndarray) -> np.ndarray:
        return Scorer.predict_proba(self, X).argmax(1)


class Margin:
    """Has no probabilities."""

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return 6 * X[:, 0] - 3

    def predict(self, X: np.ndarray) -> np.ndarray:
        return (X[:, 0] > 0.5).astype(int)


class Decider:
    """Has nothing but decisions."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        return (X[:, 0] > 0.5).astype(int)


class Line:
    def predict(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0]


def part(
    *,
    classes: int = 2,
    groups: int = 2,
    criterion: str | Criterion = "statistical_parity",
    regression: bool = False,
    n: int = N,
    seed: int = 0,
    digits: int = 2,
    **more: Any,
) -> Any:
    """Groups of unequal size whose scores differ; scores have few digits, so that there are
    ties.
    """
    rng = np.random.default_rng(seed)
    group = np.minimum(rng.integers(groups + 1, size=n), groups - 1)
    raw = rng.beta(1.5 + group[:, None], 2, size=(n, 1 if classes == 2 else classes)).round(digits)
    X = raw if classes == 2 else raw / raw.sum(1, keepdims=True)
    if regression:
        y: Any = X[:, 0] + 0.2 * rng.normal(size=n)
    elif classes == 2:
        y = (X[:, 0] + 0.3 * rng.normal(size=n) > 0.5).astype(int)
    else:
        y = np.where(rng.random(n) < 0.6, X.argmax(1), rng.integers(classes, size=n))
    data = data_set(
        X,
        y,
        more.pop("sensitive_features", group),
        more.pop("control_features", None),
        regression=regression,
        criterion=criterion_named(criterion),
        contrast=more.pop("contrast", "pairs"),
        **more,
    )
    return data.held_out(np.arange(n))


def judged(model: Any, data: Any) -> Any:
    return make_point(predict(model, data), data, strength=0.5, seed=3)


def codes_of(data: Any) -> np.ndarray:
    return data.problem.groups[:, 0]


def worst(values: np.ndarray, data: Any, among: np.ndarray | None = None) -> float:
    among = np.ones(len(values), bool) if among is None else among
    own = [values[among & member] for groups in data.members.values() for member in groups.values()]
    return max(ks_2samp(u, v).statistic for u, v in combinations(own, 2))


@pytest.mark.oracle("Point.accuracy", "Point.unfairness", "Point.decision_unfairness")
@pytest.mark.parametrize("seed", range(3))
def test_a_classifiers_figures_are_those_of_the_libraries(seed: int) -> None:
    data = part(seed=seed)
    point, score = judged(Scorer(), data), data.X[:, 0]
    decision = score > 0.5
    assert (point.strength, point.seed, point.failed) == (0.5, 3, False)
    assert point.accuracy == pytest.approx(accuracy_score(data.problem.values, decision))
    assert point.more["auc"] == pytest.approx(roc_auc_score(data.problem.values, score))
    assert point.more["log_loss"] == pytest.approx(log_loss(data.problem.values, score))
    assert point.unfairness == pytest.approx(
        ks_2samp(score[codes_of(data) == 0], score[codes_of(data) == 1]).statistic
    )
    known = {"y_pred": decision, "sensitive_features": codes_of(data)}
    assert point.decision_unfairness == pytest.approx(
        demographic_parity_difference(data.problem.values, **known)
    )
    assert point.more["four_fifths"] == pytest.approx(
        demographic_parity_ratio(data.problem.values, **known)
    )


@pytest.mark.parametrize("groups", [3, 4])
def test_of_several_groups_the_worst_pair_counts(groups: int) -> None:
    data = part(groups=groups)
    point, decision = judged(Scorer(), data), data.X[:, 0] > 0.5
    known = {"y_pred": decision, "sensitive_features": codes_of(data)}
    assert point.unfairness == pytest.approx(worst(data.X[:, 0], data))
    assert point.decision_unfairness == pytest.approx(
        demographic_parity_difference(data.problem.values, **known)
    )
    assert point.more["four_fifths"] == pytest.approx(
        demographic_parity_ratio(data.problem.values, **known)
    )


def test_each_group_can_be_compared_with_the_rest() -> None:
    data = part(groups=3, contrast="rest")
    score = data.X[:, 0]
    expected = max(
        ks_2samp(score[codes_of(data) == k], score[codes_of(data) != k]).statistic for k in range(3)
    )
    assert judged(Scorer(), data).unfairness == pytest.approx(expected)


@pytest.mark.parametrize(
    ("criterion", "labels"),
    [("equal_opportunity", [1]), ("predictive_equality", [0]), ("equalized_odds", [0, 1])],
)
def test_criteria_compare_within_their_labels(criterion: str, labels: list[int]) -> None:
    data = part(criterion=criterion, n=2 * N)  # enough rows of every group and label
    point, score = judged(Scorer(), data), data.X[:, 0]
    assert point.unfairness == pytest.approx(
        max(worst(score, data, data.problem.values == label) for label in labels)
    )
    decided = (score > 0.5).astype(float)
    assert point.decision_unfairness == pytest.approx(
        max(worst(decided, data, data.problem.values == label) for label in labels)
    )


def test_risk_parity_compares_losses_and_errors() -> None:
    data = part(criterion="risk_parity", digits=9)
    score = data.X[:, 0]
    loss = -np.log(np.where(data.problem.values == 1, score, 1 - score).clip(1e-12))
    point = judged(Scorer(), data)
    assert point.unfairness == pytest.approx(worst(loss, data))
    assert point.decision_unfairness == pytest.approx(
        worst(((score > 0.5) != data.problem.values).astype(float), data)
    )


def test_risk_parity_of_margins_compares_the_losses_of_margins() -> None:
    """A margin is an output, not a probability: its loss is softplus(-margin) or
    softplus(margin).
    """
    data = part(criterion="risk_parity", digits=9)
    margin = 6 * data.X[:, 0] - 3
    loss = np.logaddexp(0, np.where(data.problem.values == 1, -margin, margin))
    assert judged(Margin(), data).unfairness == pytest.approx(worst(loss, data))


def test_control_features_are_strata_of_the_comparison() -> None:
    stratum = np.arange(N) % 2
    data = part(criterion="conditional_statistical_parity", control_features=stratum)
    expected = max(worst(data.X[:, 0], data, stratum == value) for value in (0, 1))
    assert judged(Scorer(), data).unfairness == pytest.approx(expected)


def test_several_classes_are_compared_one_by_one() -> None:
    data = part(classes=3, groups=3)
    point, decision = judged(Scorer(), data), data.X.argmax(1)
    assert point.accuracy == pytest.approx(accuracy_score(data.problem.values, decision))
    assert point.more["auc"] == pytest.approx(
        roc_auc_score(data.problem.values, data.X, multi_class="ovr")
    )
    assert point.more["log_loss"] == pytest.approx(log_loss(data.problem.values, data.X))
    assert point.unfairness == pytest.approx(max(worst(data.X[:, k], data) for k in range(3)))
    assert point.decision_unfairness == pytest.approx(
        max(worst((decision == k) * 1.0, data) for k in range(3))
    )
    assert "four_fifths" not in point.more


@pytest.mark.parametrize("seed", range(2))
def test_a_regressors_figures_are_those_of_the_libraries(seed: int) -> None:
    data = part(regression=True, seed=seed)
    point = judged(Line(), data)
    assert point.accuracy == pytest.approx(r2_score(data.problem.values, data.X[:, 0]))
    assert point.more == {
        "mean_absolute_error": pytest.approx(
            mean_absolute_error(data.problem.values, data.X[:, 0])
        ),
        "mean_squared_error": pytest.approx(mean_squared_error(data.problem.values, data.X[:, 0])),
    }
    assert point.unfairness == pytest.approx(worst(data.X[:, 0], data))
    assert point.decision_unfairness is None


def test_a_bad_regressor_has_a_negative_r2() -> None:
    data = part(regression=True)

    class Away:
        def predict(self, X: np.ndarray) -> np.ndarray:
            return -X[:, 0]

    found = judged(Away(), data).accuracy
    assert found == pytest.approx(r2_score(data.problem.values, -data.X[:, 0]))
    assert found < 0


def test_margins_and_bare_decisions_serve_as_scores() -> None:
    data = part()
    margin, decision = 6 * data.X[:, 0] - 3, data.X[:, 0] > 0.5
    assert judged(Margin(), data).more == {
        "balanced_accuracy": pytest.approx(balanced_accuracy_score(data.problem.values, decision)),
        "auc": pytest.approx(roc_auc_score(data.problem.values, margin)),
        "four_fifths": pytest.approx(
            demographic_parity_ratio(
                data.problem.values, y_pred=decision, sensitive_features=codes_of(data)
            )
        ),
    }
    assert judged(Margin(), data).unfairness == pytest.approx(worst(margin, data))
    assert judged(Decider(), data).unfairness == judged(Decider(), data).decision_unfairness


class Margins3:
    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.log(X + 1e-3)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X.argmax(1)


class Decider3:
    """Bare decisions, at most the given class."""

    def __init__(self, most: int) -> None:
        self.most = most

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X.argmax(1).clip(max=self.most)


@pytest.mark.parametrize(
    "model", [Margins3(), Decider3(2), Decider3(1)], ids=["margins", "decisions", "never the last"]
)
def test_several_classes_need_no_probabilities(model: Any) -> None:
    data = part(classes=3)
    assert judged(model, data).accuracy == pytest.approx(
        accuracy_score(data.problem.values, model.predict(data.X))
    )


@pytest.mark.parametrize("most", [1, 2])
def test_bare_decisions_among_several_classes_have_neither_ranking_nor_likelihood(
    most: int,
) -> None:
    """A class's number is no score: only for two classes is more of one less of the other."""
    assert not {"auc", "log_loss"} & set(judged(Decider3(most), part(classes=3)).more)


@pytest.mark.parametrize("kind", ["text", "bool", "number"])
def test_decisions_are_matched_with_classes_of_any_kind(kind: str) -> None:
    names = {"text": ["no", "yes"], "bool": [False, True], "number": [-1, 7]}[kind]
    rng = np.random.default_rng(0)
    X, group, truth = rng.random((80, 1)), np.arange(80) % 2, rng.integers(2, size=80)

    class Named(Scorer):
        def predict(self, X: np.ndarray) -> np.ndarray:
            return np.array(names)[super().predict(X)]

    data = data_set(
        X,
        np.array(names)[truth],
        group,
        None,
        regression=False,
        criterion=criterion_named("statistical_parity"),
        contrast="pairs",
    ).held_out(np.arange(80))
    decided = predict(Named(), data).decision
    assert decided.tolist() == (X[:, 0] > 0.5).astype(int).tolist()
    assert judged(Named(), data).accuracy == pytest.approx(np.mean((X[:, 0] > 0.5) == truth))


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_groups_are_handed_to_a_method_that_asks_for_them(method: str) -> None:
    data, seen = part(), []

    class Asking(Scorer):
        pass

    def asking(self: Any, X: np.ndarray, *, sensitive_features: Any) -> np.ndarray:
        seen.append(sensitive_features)
        return getattr(Scorer, method)(self, X)

    setattr(Asking, method, asking)
    assert judged(Asking(), data) == judged(Scorer(), data)
    assert seen
    assert all((groups == data.sensitive_features).all() for groups in seen)


def test_samples_of_unknown_group_count_for_accuracy_only() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=N).astype(float)
    group[::7] = np.nan
    data = part(sensitive_features=group)
    point, score = judged(Scorer(), data), data.X[:, 0]
    assert point.accuracy == pytest.approx(np.mean((score > 0.5) == data.problem.values))
    assert point.unfairness == pytest.approx(
        ks_2samp(score[group == 0], score[group == 1]).statistic
    )


# --- intervals
# --------------------------------------------------------------------------------------------------


@pytest.mark.oracle("Point.intervals")
@pytest.mark.parametrize(("right", "n"), [(0, 20), (1, 20), (37, 50), (50, 50)])
def test_the_interval_of_the_accuracy_is_wilsons(right: int, n: int) -> None:
    group, y = np.arange(n) % 2, np.arange(n) % 3 % 2
    X = np.where(np.arange(n) < right, y, 1 - y)[:, None].astype(float)
    data = data_set(
        X,
        y,
        group,
        None,
        regression=False,
        criterion=criterion_named("statistical_parity"),
        contrast="pairs",
    )
    interval = judged(Decider(), data.held_out(np.arange(n))).intervals["accuracy"]
    expected = binomtest(right, n).proportion_ci(method="wilson")
    assert (interval.low, interval.high) == (
        pytest.approx(expected.low, abs=1e-12),
        pytest.approx(expected.high, abs=1e-12),
    )


@pytest.mark.extended
def test_the_interval_of_r2_holds_the_truth_as_often_as_said() -> None:
    """y = x + noise of a quarter of the variance: the truth is 0.8.

    600 data sets, so 95 % +- 2.7 %.
    """
    rng, group = np.random.default_rng(0), np.arange(150) % 2
    hits = []
    for _ in range(600):
        x = rng.normal(size=150)
        data = data_set(
            x[:, None],
            x + 0.5 * rng.normal(size=150),
            group,
            None,
            regression=True,
            criterion=criterion_named("statistical_parity"),
            contrast="pairs",
        )
        interval = judged(Line(), data.held_out(np.arange(150))).intervals["accuracy"]
        hits.append(interval.low <= 0.8 <= interval.high)
    assert 0.923 < np.mean(hits) < 0.977


def test_a_constant_target_has_r2_zero() -> None:
    group = np.arange(10) % 2
    data = data_set(
        group[:, None] * 1.0,
        np.ones(10),
        group,
        None,
        regression=True,
        criterion=criterion_named("statistical_parity"),
        contrast="pairs",
    )
    point = judged(Line(), data.held_out(np.arange(10)))
    assert (point.accuracy, point.intervals["accuracy"]) == (0.0, Interval(0.0, 0.0))


# --- what cannot be judged
# --------------------------------------------------------------------------------------


def test_a_group_without_held_out_samples_is_refused() -> None:
    data = data_set(
        np.linspace(0, 1, 30)[:, None],
        np.arange(30) % 2,
        np.array(["f"] * 20 + ["m"] * 10),
        None,
        regression=False,
        criterion=criterion_named("statistical_parity"),
        contrast="pairs",
    )
    with pytest.raises(TooFewSamples) as refusal:
        judged(Scorer(), data.held_out(np.arange(20)))
    assert str(refusal.value) == (
        f"comparing {data.problem.comparisons[0]}: the held-out data have 20 and 0 samples; "
        "hold more data out, merge small groups, or mark them as missing"
    )


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_model_that_predicts_no_numbers_has_failed(value: float) -> None:
    class Broken:
        def predict(self, X: np.ndarray) -> np.ndarray:
            return np.full(len(X), value)

    point = judged(Broken(), part(regression=True))
    assert point.failed


def test_a_model_of_other_classes_is_refused(refused: Refusals) -> None:
    data = part()

    class Wide(Scorer):
        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return np.full((len(X), 3), 1 / 3)

    with refused(DataError):
        judged(Wide(), data)


# --- distributions
# ----------------------------------------------------------------------------------------------


@pytest.mark.oracle("Curves.grid", "Curves.density", "Curves.cumulative")
@pytest.mark.parametrize("kind", ["classes", "several", "regression"])
def test_curves_are_the_groups_distribution_functions_and_densities(kind: str) -> None:
    data = part(
        classes=3 if kind == "several" else 2, groups=3, regression=kind == "regression", n=900
    )
    model = Line() if kind == "regression" else Scorer()
    curves = score_curves(predict(model, data), data)
    score, grid = data.X[:, -1], np.array(curves.grid)
    assert list(curves.cumulative) == list(curves.density) == ["0", "1", "2"]
    if kind != "regression":
        assert (grid[0], grid[-1]) == (0.0, 1.0)
    for code in range(3):
        own = score[codes_of(data) == code]
        step = (own <= grid[:, None] + 1e-6).mean(1)
        np.testing.assert_allclose(curves.cumulative[str(code)], step, atol=0.02)
        density = np.array(curves.density[str(code)])
        assert (density >= 0).all()
        assert np.trapezoid(density, grid) == pytest.approx(1, abs=0.1)
        assert grid[density.argmax()] == pytest.approx(np.median(own), abs=0.25)


def test_curves_leave_out_a_group_without_samples_and_bear_a_constant_score() -> None:
    group = np.array(["f"] * 60 + ["m"] * 10)
    data = data_set(
        np.full((70, 1), 3.0),
        np.arange(70.0),
        group,
        None,
        regression=True,
        criterion=criterion_named("statistical_parity"),
        contrast="pairs",
    )
    part = data.held_out(np.arange(60))
    curves = score_curves(predict(Line(), part), part)
    assert list(curves.cumulative) == ["f"]
    assert set(curves.cumulative["f"]) == {1.0}
    assert np.isfinite(curves.density["f"]).all()


# --- whose column is whose
# --------------------------------------------------------------------------------------


class Reversed:
    """A fitted model whose columns come in another order than the labels: ``classes_`` is [1,
    0].
    """

    classes_ = np.array([1, 0])

    def __init__(self, model: Any, *, margins: bool = False) -> None:
        self.model = model
        if margins:
            self.decision_function = lambda X: -model.decision_function(X)
        else:
            self.predict_proba = lambda X: model.predict_proba(X)[:, ::-1]

    def predict(self, X: Any) -> Any:
        return self.model.predict(X)


@pytest.mark.parametrize("margins", [False, True], ids=["probabilities", "margins"])
@pytest.mark.parametrize("positive", [0, 1])
def test_columns_are_read_by_the_classes_of_the_model(margins: bool, positive: int) -> None:
    """By sorted labels, accuracy was 0.885 and AUC 0.034."""
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=400)
    features = rng.normal(size=(400, 2)) + group[:, None]
    label = (features.sum(1) + rng.normal(size=400) > 1).astype(int)
    model = LogisticRegression().fit(features, label)
    data = data_set(
        features,
        label,
        group,
        None,
        regression=False,
        criterion="statistical_parity",
        contrast="pairs",
        pos_label=positive,
    )
    usual = judged(model, data.held_out(np.arange(400)))
    turned = judged(Reversed(model, margins=margins), data.held_out(np.arange(400)))
    assert usual.more["auc"] > 0.8
    assert turned.more["auc"] == pytest.approx(usual.more["auc"])
    assert (turned.accuracy, turned.unfairness) == pytest.approx((usual.accuracy, usual.unfairness))


def test_three_columns_are_read_by_the_classes_of_the_model() -> None:
    rng = np.random.default_rng(1)
    group = rng.integers(2, size=600)
    features = rng.normal(size=(600, 2)) + group[:, None]
    label = np.array(["a", "b", "c"])[np.digitize(features[:, 0], [0.0, 1.0])]
    model = LogisticRegression().fit(features, label)

    class Shuffled:
        classes_ = np.array(["c", "a", "b"])

        def predict_proba(self, X: Any) -> Any:
            return model.predict_proba(X)[:, [2, 0, 1]]

        def predict(self, X: Any) -> Any:
            return model.predict(X)

    named = {"regression": False, "criterion": "statistical_parity", "contrast": "pairs"}
    part = data_set(features, label, group, None, **named).held_out(np.arange(600))
    assert judged(Shuffled(), part) == judged(model, part)


def test_classes_that_are_no_labels_are_refused(refused: Refusals) -> None:
    model = Reversed(None)
    model.classes_ = np.array([1, 7])
    model.predict_proba = lambda X: np.full((len(X), 2), 0.5)
    model.predict = lambda X: np.zeros(len(X), int)  # type: ignore[method-assign]
    with refused(DataError):
        judged(model, part())
