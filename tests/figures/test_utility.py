"""Utilities against scikit-learn, their errors against repetition, and the constant model as
the one to beat.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn import metrics
from sklearn.metrics import make_scorer

from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.seams.figures import (
    UTILITIES,
    Predictions,
    Utility,
    as_utility,
    constant_mark,
    constant_model,
    utilities_for,
)
from tests.seams.problem import Inputs, make_problem

N = 300


def rows(
    y: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    numbers: bool = False,
    pos_label: object = None,
) -> Any:
    groups = np.arange(len(y)) % 2
    given = Inputs(y, sensitive_features=groups, sample_weight=weight)
    return make_problem(given, target="numbers" if numbers else "labels", pos_label=pos_label)


def binary(
    seed: int, *, count: int = N, signal: float = 1.5, base: float = 0.0
) -> tuple[np.ndarray, Predictions]:
    """Labels, and what a model says that knows something of them."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=count)
    y = (signal * x + generator.logistic(size=count) + base > 0).astype(int)
    score = 1 / (1 + np.exp(-(signal * x + base)))
    return y, Predictions(score, (score >= 0.5).astype(int), "probability")


ORACLES = {
    "accuracy": lambda y, f, w: metrics.accuracy_score(y, f.decision, sample_weight=w),
    "balanced_accuracy": lambda y, f, w: metrics.balanced_accuracy_score(
        y, f.decision, sample_weight=w
    ),
    "auc": lambda y, f, w: metrics.roc_auc_score(y, f.score, sample_weight=w),
    "log_loss": lambda y, f, w: metrics.log_loss(y, f.score, sample_weight=w),
    "brier": lambda y, f, w: metrics.brier_score_loss(y, f.score, sample_weight=w),
    "r2": lambda y, f, w: metrics.r2_score(y, f.score, sample_weight=w),
    "mean_absolute_error": lambda y, f, w: metrics.mean_absolute_error(y, f.score, sample_weight=w),
    "mean_squared_error": lambda y, f, w: metrics.mean_squared_error(y, f.score, sample_weight=w),
}


def sample(name: str, seed: int, *, count: int = N) -> tuple[np.ndarray, Predictions, bool]:
    numbers = UTILITIES[name].needs == "numbers"
    if not numbers:
        return *binary(seed, count=count), False
    generator = np.random.default_rng(seed)
    x = generator.normal(size=count)
    return x + generator.normal(size=count), Predictions(x, x, "number"), True


@pytest.mark.oracle("Point.more")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ORACLES)
def test_every_utility_is_that_of_scikit_learn(name: str, weighted: bool) -> None:
    y, found, numbers = sample(name, 1)
    weight = np.random.default_rng(2).uniform(0.2, 3, N) if weighted else None
    measured = UTILITIES[name].of(found, rows(y, weight, numbers=numbers))
    assert measured is not None
    assert measured.value == pytest.approx(ORACLES[name](y, found, weight), abs=1e-9)


def test_the_table_of_utilities_is_complete() -> None:
    assert set(ORACLES) == set(UTILITIES)
    assert utilities_for(("no", "yes"))[0].name == "accuracy"
    assert utilities_for(())[0].name == "r2"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ORACLES)
def test_the_standard_error_is_the_spread_over_repeated_samples(name: str, weighted: bool) -> None:
    """Errors of 400 samples of 300 rows: their mean is within a sixth of the spread of the
    values.
    """
    values, errors = [], []
    first, _, numbers = sample(name, 0)
    scheme = rows(first, numbers=numbers)
    for seed in range(400):
        y, found, _ = sample(name, 1000 + seed)
        weight = np.random.default_rng(seed).uniform(0.2, 3, N) if weighted else None
        problem = replace(scheme, labels=y, weight=weight)
        measured = UTILITIES[name].of(found, problem)
        assert measured is not None
        values.append(measured.value)
        errors.append(measured.error(problem))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=1 / 6)


def test_several_classes() -> None:
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(N, 3))
    probability = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    y = np.array([generator.choice(3, p=own) for own in probability])
    problem, found = rows(y), Predictions(probability, probability.argmax(1), "probability")

    def value(name: str) -> float:
        measured = UTILITIES[name].of(found, problem)
        assert measured is not None
        return measured.value

    assert value("auc") == pytest.approx(metrics.roc_auc_score(y, probability, multi_class="ovr"))
    assert value("log_loss") == pytest.approx(metrics.log_loss(y, probability))
    assert value("brier") == pytest.approx(((probability - np.eye(3)[y]) ** 2).sum(1).mean())
    assert value("balanced_accuracy") == pytest.approx(
        metrics.balanced_accuracy_score(y, found.decision)
    )
    assert UTILITIES["auc"].of(found._replace(kind="decision"), problem) is None
    constant = constant_model(problem).predictions(N)
    assert constant.score.shape == (N, 3)
    assert constant.score[0] == pytest.approx(np.bincount(y) / N)


def test_rows_of_one_class_rank_nothing() -> None:
    y, found = binary(0)
    problem = make_problem(Inputs(y, sensitive_features=y)).take(np.flatnonzero(y == 1))
    some = Predictions(found.score[y == 1], found.decision[y == 1], "probability")
    assert UTILITIES["auc"].of(some, problem) is None


def test_costs_by_label_and_decision() -> None:
    y, found = binary(3)
    cost = as_utility([[0, 2], [7, -1]], classes=(0, 1))
    matrix = metrics.confusion_matrix(y, found.decision)
    measured = cost.of(found, rows(y))
    assert measured is not None
    assert measured.value == pytest.approx((2 * matrix[0, 1] + 7 * matrix[1, 0] - matrix[1, 1]) / N)
    assert not cost.larger_is_better


def test_the_constant_of_costs_is_the_cheapest_decision() -> None:
    y = np.array([0] * 80 + [1] * 20)
    assert constant_model(rows(y)).decision == 0
    # 0.8 against 1.0
    assert constant_model(rows(y), as_utility([[0, 1], [5, 0]], classes=(0, 1))).decision == 1


def test_the_constant_of_numbers_is_the_mean_or_the_median() -> None:
    y = np.array([0.0, 0.0, 1.0, 9.0])
    assert constant_model(rows(y, numbers=True)).decision == 2.5
    assert constant_model(rows(y, numbers=True), UTILITIES["mean_absolute_error"]).decision == 0.0
    weighted = rows(y, np.array([1.0, 1.0, 1.0, 5.0]), numbers=True)
    assert constant_model(weighted, UTILITIES["mean_absolute_error"]).decision == 9.0
    assert constant_model(weighted).decision == 46 / 8


@pytest.mark.parametrize("pos_label", [0, 1])
@pytest.mark.parametrize(
    "scorer", ["f1", "roc_auc", "neg_log_loss", "neg_brier_score", "precision"]
)
def test_scorers_of_scikit_learn_are_asked_about_what_was_predicted(
    scorer: str, pos_label: int
) -> None:
    y, found = binary(4)
    expected = {
        "f1": metrics.f1_score(y, found.decision, pos_label=pos_label),
        "roc_auc": metrics.roc_auc_score(y, found.score),
        "neg_log_loss": -metrics.log_loss(y, found.score),
        "neg_brier_score": -metrics.brier_score_loss(y, found.score),
        "precision": metrics.precision_score(y, found.decision, pos_label=pos_label),
    }
    own = found if pos_label else found._replace(score=1 - found.score)
    measured = as_utility(scorer, classes=(0, 1)).of(
        own, rows(y, pos_label=pos_label), np.zeros((N, 1))
    )
    assert measured is not None
    assert measured.value == pytest.approx(expected[scorer])


def test_scorers_of_ones_own_and_of_margins_and_numbers(refused: Refusals) -> None:
    y, found = binary(5)
    weight = np.random.default_rng(5).uniform(0.2, 3, N)
    scorer = make_scorer(metrics.fbeta_score, beta=2)
    own = as_utility(scorer, classes=(0, 1))
    assert own.name == "fbeta_score"
    measured = own.of(found, rows(y, weight))
    assert measured is not None
    assert measured.value == pytest.approx(
        metrics.fbeta_score(y, found.decision, beta=2, sample_weight=weight)
    )
    margin = Predictions(np.log(found.score / (1 - found.score)), found.decision, "output")
    ranked = as_utility("roc_auc", classes=(0, 1)).of(margin, rows(y))
    assert ranked is not None
    assert ranked.value == pytest.approx(metrics.roc_auc_score(y, found.score))
    with refused(DataError):
        as_utility("neg_log_loss", classes=(0, 1)).of(margin, rows(y))
    target, numbers, _ = sample("r2", 5)
    error = as_utility("neg_max_error").of(numbers, rows(target, numbers=True))
    assert error is not None
    assert error.value == pytest.approx(-metrics.max_error(target, numbers.score))


@pytest.mark.parametrize(
    ("utility", "classes", "message"),
    [
        (
            "acuracy",
            (0, 1),
            "utility must be one of 'accuracy', .* got 'acuracy'; did you mean 'accuracy'?",
        ),
        ("r2", (0, 1), "utility 'r2' is of numbers, and classes are predicted here"),
        ([[0, 1]], (0, 1), "utility must be 2 rows of 2 finite costs, by label and decision"),
        ([[0, 1], [1, np.nan]], (0, 1), "utility must be 2 rows of 2 finite costs"),
        (7, (0, 1), "utility must be 2 rows of 2 finite costs"),
        ([[0, "a"], [1, 0]], (0, 1), "utility must be a name, a table of costs or a scorer"),
        ([[0, 1], [1, 0]], (), "utility must be a name"),
    ],
)
def test_what_is_no_utility_is_refused(
    utility: object, classes: tuple[int, ...], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        as_utility(utility, classes=classes)  # type: ignore[arg-type]


def test_a_utility_from_a_file_is_a_name_only(refused: Refusals) -> None:
    y, found = binary(6)
    with refused(DataError):
        Utility("profit").of(found, rows(y))


# ---- who is no better than the constant
# -------------------------------------------------------------------------


def mark(found: Predictions, problem: Any, name: str = "accuracy") -> str:
    utility = UTILITIES[name]
    return constant_mark(found, problem, utility=utility, constant=constant_model(problem, utility))


def test_the_same_decision_for_everyone_is_named_though_the_scores_rank() -> None:
    """The issue's case: the base rate's accuracy, whatever the ranking."""
    y, found = binary(7, base=2.0, signal=1.0)
    yes = found._replace(decision=np.ones(N, dtype=int))
    assert mark(yes, rows(y)) == "constant"
    assert constant_mark(yes) == "constant"  # no outcome is needed
    assert mark(yes, rows(y), "auc") == ""  # of its scores the same cannot be said
    level = Predictions(np.full(N, 0.8), np.ones(N, dtype=int), "probability")
    assert mark(level, rows(y), "auc") == "constant"


def test_a_good_model_is_not_marked_by_any_utility() -> None:
    y, found = binary(8, signal=3.0)
    for name in ("accuracy", "balanced_accuracy", "auc", "log_loss", "brier"):
        assert mark(found, rows(y), name) == ""
    target, numbers, _ = sample("r2", 8)
    for name in ("r2", "mean_absolute_error", "mean_squared_error"):
        assert mark(numbers, rows(target, numbers=True), name) == ""


@pytest.mark.oracle("Point.marks")
@pytest.mark.parametrize("name", ORACLES)
def test_a_model_that_knows_nothing_is_marked_nearly_always(name: str) -> None:
    """At the level of a one-sided test: 2.5 % may pass, of 400 at most 22 (the probability of
    more is below 0.1 %).
    """
    numbers, passed = UTILITIES[name].needs == "numbers", 0
    scheme = rows(np.arange(N) % 2, numbers=numbers)
    for seed in range(400):
        generator = np.random.default_rng(seed)
        if numbers:
            y, x = generator.normal(size=N), 0.05 * generator.normal(size=N)
            found = Predictions(x, x, "number")
        else:
            y, score = (
                (generator.random(N) < 0.6).astype(int),
                0.6 + 0.12 * generator.normal(size=N).clip(-3, 3),
            )
            found = Predictions(score, (score >= 0.5).astype(int), "probability")
        passed += mark(found, replace(scheme, labels=y), name) == ""
    assert passed <= 22


def test_two_rows_put_in_order_prove_no_ranking() -> None:
    found = Predictions(np.array([0.2, 0.3]), np.array([0, 0]), "probability")
    assert mark(found, rows(np.array([0, 1])), "auc") == "not_significantly_better"


def test_a_scorer_has_no_interval_and_must_be_better_as_it_stands() -> None:
    y, found = binary(9, signal=3.0)
    problem, scorer = rows(y), as_utility("f1", classes=(0, 1))
    constant = constant_model(problem, scorer)
    assert constant_mark(found, problem, utility=scorer, constant=constant) == ""
    worse = found._replace(decision=1 - found.decision)
    assert (
        constant_mark(worse, problem, utility=scorer, constant=constant)
        == "not_significantly_better"
    )


def test_weights_count() -> None:
    """Twice the weight is twice the rows, up to the noise: a model right on heavy rows only is
    better there.
    """
    y, found = binary(10, signal=3.0)
    wrong = np.arange(N) % 2 == 0
    half = found._replace(decision=np.where(wrong, 1 - y, found.decision))
    assert mark(half, rows(y)) == "not_significantly_better"
    assert mark(half, rows(y, np.where(wrong, 1e-3, 1.0))) == ""


def test_intervals_stay_within_what_is_possible() -> None:
    y, found = binary(11, signal=30.0)
    problem = rows(y)
    for name in ("accuracy", "balanced_accuracy", "auc", "log_loss", "brier"):
        utility = UTILITIES[name]
        measured = utility.of(found, problem)
        assert measured is not None
        interval = utility.interval(measured, problem)
        assert interval is not None
        assert utility.least <= interval.low <= measured.value <= interval.high <= utility.most
    assert replace(UTILITIES["auc"], name="ranking").quality(0.7) == 0.7


@pytest.mark.parametrize("scorer", ["f1", "average_precision", "recall", "roc_auc", "neg_log_loss"])
@pytest.mark.parametrize("pos_label", ["yes", "no"])
def test_scorers_by_name_judge_the_positive_label_whatever_it_is_called(
    scorer: str, pos_label: str
) -> None:
    y, found = binary(5)
    texts = np.array(["no", "yes"])[y]
    own = found if pos_label == "yes" else found._replace(score=1 - found.score)
    named = as_utility(scorer, classes=("no", "yes")).of(
        own, rows(texts, pos_label=pos_label), np.zeros((N, 1))
    )
    positive = (texts == pos_label).astype(int)
    coded = own._replace(decision=(np.array(["no", "yes"])[own.decision] == pos_label).astype(int))
    numbered = as_utility(scorer, classes=(0, 1)).of(
        coded, rows(positive, pos_label=1), np.zeros((N, 1))
    )
    assert named == numbered


def test_costs_by_which_one_decision_is_always_cheapest_are_refused(refused: Refusals) -> None:
    with refused(DataError):
        as_utility([[0, 1], [0, 1]], classes=("no", "yes"))
    assert as_utility([[-3, 0], [5, 4]], classes=("no", "yes")).name == "expected_cost"


def clustered(seed: int, persons: int = 60, each: int = 5) -> tuple[np.ndarray, ...]:
    """Labels, scores that tell nothing of them, and persons, on whom both depend."""
    generator = np.random.default_rng(seed)
    person = np.repeat(np.arange(persons), each)
    score = generator.normal(size=persons)[person] + 0.5 * generator.normal(size=len(person))
    label = generator.normal(size=persons)[person] + 0.5 * generator.normal(size=len(person)) > 0
    return label.astype(int), score, person


def auc_of(y: np.ndarray, score: np.ndarray, clusters: np.ndarray | None) -> Any:
    groups = np.arange(len(y)) % 2
    problem = make_problem(Inputs(y, sensitive_features=groups, clusters=clusters))
    predictions = Predictions(score, (score > 0).astype(int), "output")
    found = UTILITIES["auc"].of(predictions, problem)
    assert found is not None
    return found


def test_the_error_of_an_auc_under_chance_is_that_of_all_orders() -> None:
    """Three positive and four negative rows: all 35 ways to deal seven different scores."""
    values = []
    for chosen in combinations(range(7), 3):
        y = np.isin(np.arange(7), chosen).astype(int)
        values.append(metrics.roc_auc_score(y, np.arange(7)))
    y = np.array([0, 1, 0, 1, 1, 0, 0])
    score = np.linspace(0.1, 0.9, 7)
    assert auc_of(y, score, None).chance == pytest.approx(np.std(values))


def test_the_error_of_an_auc_under_chance_counts_clusters() -> None:
    values, with_clusters, without = [], [], []
    for seed in range(300):
        y, score, person = clustered(seed)
        values.append(auc_of(y, score, person).value)
        with_clusters.append(auc_of(y, score, person).chance)
        without.append(auc_of(y, score, None).chance)
    assert np.mean(with_clusters) == pytest.approx(np.std(values), rel=0.12)
    assert np.mean(without) < 0.7 * np.std(values)


def test_copies_of_rows_add_nothing_to_the_error_of_an_auc_under_chance() -> None:
    """A score that separates the labels of a few persons may do so by chance."""
    y, score = np.tile([0, 1], 10), np.arange(20.0) % 7
    copies = np.repeat(np.arange(20), 5)
    for one in (score, y.astype(float)):
        single = auc_of(y, one, None).chance
        assert auc_of(y[copies], one[copies], copies).chance == pytest.approx(single, rel=0.03)
        assert auc_of(y, one, np.arange(20)).chance == pytest.approx(single)
        assert auc_of(y[copies], one[copies], None).chance < 0.5 * single
