"""Which model is chosen: by any utility, never a constant in silence, and by its ranking where noise leaves a tie."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer

from metrifair import DataError, FairClassifier, FairRegressor, SearchOptions, audit, load
from metrifair.api.frontier import Frontier
from metrifair.errors import MetrifairWarning
from metrifair.figures.certificates import dkw_radius
from metrifair.figures.intervals import Interval
from metrifair.figures.utility import CONSTANT, NO_BETTER, UTILITIES
from metrifair.tradeoff.points import FrontierNote, Job, Outcome, Point
from tests.one_split import frontier

N = 400
RNG = np.random.default_rng(5)
A = RNG.integers(2, size=N)
X = RNG.normal(size=(N, 3)) + 0.7 * A[:, None]
Y = (X.sum(1) + RNG.normal(size=N) > 1.0).astype(int)
T = X[:, 0] - X[:, 1] + RNG.normal(size=N)


def made(*validation: dict[str, Any], **more: Any) -> Frontier:
    """Models 0, 1, ... with these figures on validation data: accuracy, gap, and others by name."""
    outcomes = []
    for at, own in enumerate(validation):
        given = dict(own)
        marks = {"accuracy": given.pop("mark")} if "mark" in given else {}
        errors, family = {"accuracy": given.pop("error", 0.0)}, given.pop("family", "")
        point = Point(
            at, 0, given.pop("accuracy"), given.pop("gap"), more=given, errors=errors, marks=marks, family=family
        )
        outcomes.append(Outcome(Job(at, 0, family), point, point, model=at))
    return Frontier(outcomes, "scores", "accuracy", ("a", "b"), {"a": 100, "b": 100}, **more)


# ---- the case -------------------------------------------------------------------------------------------


def test_among_models_at_the_base_rate_the_one_that_ranks_is_chosen_and_named() -> None:
    """`frontier --max-unfairness 0.1` chose the first: its accuracy is larger by noise."""
    front = made(
        {"accuracy": 0.7004, "gap": 0.08, "auc": 0.547, "error": 0.02, "mark": CONSTANT},
        {"accuracy": 0.7, "gap": 0.08, "auc": 0.639, "error": 0.02, "mark": CONSTANT},
        {"accuracy": 0.82, "gap": 0.3, "auc": 0.8, "error": 0.02},
    )
    with pytest.warns(
        UserWarning, match=r"The chosen model decides the same for everyone \(on test rows\): allow more"
    ):
        assert front.select(max_unfairness=0.1) == 1


def test_a_marked_model_is_chosen_only_where_no_other_suits() -> None:
    front = made(
        {"accuracy": 0.71, "gap": 0.01, "auc": 0.7, "mark": NO_BETTER},
        {"accuracy": 0.70, "gap": 0.09, "auc": 0.6},
    )
    for wish in ({"max_unfairness": 0.1}, {"min_accuracy": 0.6}, {"rule": "donini"}):
        assert front.select(**wish) == 1  # warnings are errors here
    with pytest.warns(
        UserWarning, match=r"is not significantly better than .* \(by accuracy on test rows, within its 95 % interval\)"
    ):
        assert front.select(max_unfairness=0.05) == 0


def test_a_model_that_is_marked_on_validation_rows_only_is_named_too() -> None:
    seen = Point(0, 0, 0.7, 0.1, marks={"accuracy": NO_BETTER})
    front = Frontier([Outcome(Job(0, 0), seen, Point(0, 0, 0.8, 0.1), model=0)], "scores", "accuracy", (), {})
    with pytest.warns(UserWarning, match="by accuracy on validation rows"):
        front.select(max_unfairness=0.2)


def test_equal_is_what_lies_within_a_standard_error() -> None:
    def front(error: float) -> Frontier:
        return made(
            {"accuracy": 0.80, "gap": 0.1, "auc": 0.7, "error": error},
            {"accuracy": 0.79, "gap": 0.1, "auc": 0.8, "error": error},
        )

    assert front(0.02).select(max_unfairness=0.2) == 1
    assert front(0.005).select(max_unfairness=0.2) == 0


def test_without_scores_the_log_loss_or_the_squared_error_ranks() -> None:
    front = made(
        {"accuracy": 0.80, "gap": 0.1, "log_loss": 0.6, "error": 0.02},
        {"accuracy": 0.79, "gap": 0.1, "log_loss": 0.5, "error": 0.02},
    )
    assert front.select(max_unfairness=0.2) == 1
    same = {"accuracy": 0.5, "gap": 0.1, "mean_absolute_error": 1.0}
    numbers = made({**same, "mean_squared_error": 3.0}, {**same, "mean_squared_error": 2.0}, utility=UTILITIES["r2"])
    assert numbers.select(max_unfairness=0.2, utility="mean_absolute_error") == 1


def test_below_what_chance_shows_all_are_as_fair() -> None:
    some = ({"accuracy": 0.8, "gap": 0.01, "auc": 0.7}, {"accuracy": 0.8, "gap": 0.04, "auc": 0.8})
    assert made(*some).select(min_accuracy=0.7) == 0
    assert made(*some, floor=0.05).select(min_accuracy=0.7) == 1


def test_a_family_is_chosen_only_if_its_best_model_is_equal_to_the_best_of_all() -> None:
    """Decisions reach smaller limits than probabilities, but at this one probabilities are better beyond noise."""

    def front(error: float, **more: Any) -> Frontier:
        return made(
            {"accuracy": 0.5, "gap": 0.0, "family": "constant"},
            {"accuracy": 0.65, "gap": 0.02, "family": "decisions", "error": error, **more},
            {"accuracy": 0.7, "gap": 0.09, "family": "probabilities", "error": error},
            {"accuracy": 0.71, "gap": 0.12, "family": "probabilities", "error": error},
        )

    assert front(0.06).select(max_unfairness=0.1) == 1
    assert front(0.06, mark=NO_BETTER).select(max_unfairness=0.1) == 2
    assert front(0.02).select(max_unfairness=0.1) == 2
    assert front(0.02).select(min_accuracy=0.6) == 1


# ---- utilities --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def front() -> Frontier:
    return frontier(
        FairClassifier(epochs=40),
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0, 0.3, 1.0, 3.0],
        random_state=0,
        search=SearchOptions(seeds=2),
    )


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "auc", "log_loss", "brier"])
def test_every_utility_chooses_its_best(front: Frontier, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = front.select(max_unfairness=1.0, utility=name)
    utility = UTILITIES[name]
    own = front.validation_points[front.models.index(model)]
    worths = [utility.quality(point.figure(name) or 0.0) for point in front.validation_points]
    assert utility.quality(own.figure(name) or 0.0) >= max(worths) - own.errors[utility.key]
    if utility.needs == "scores":  # it ranks by itself
        assert utility.quality(own.figure(name) or 0.0) == max(worths)
    assert front.chosen_by is utility
    assert front.view().utility is utility


def test_costs_and_scorers_can_be_asked_for_later(front: Frontier) -> None:
    part = front.source.evaluator.validation if front.source else None
    assert part is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = front.select(max_unfairness=1.0, utility=[[0, 1], [20, 0]])
        costs = [point.more["expected_cost"] for point in front.validation_points]
        decided, label = model.predict(part.X), part.labels
        assert costs[front.models.index(model)] == pytest.approx(np.array([[0, 1], [20, 0]])[label, decided].mean())
        front.select(max_unfairness=1.0, utility=[[0, 20], [1, 0]])  # other costs are not those of before
        assert [point.more["expected_cost"] for point in front.validation_points] != costs
        model = front.select(max_unfairness=1.0, utility=make_scorer(f1_score))
        view = front.view()
    assert view.baseline is not None  # the constant that is best by this score
    test = front.source.evaluator.test.labels if front.source else np.zeros(0)
    assert view.value(view.baseline) == pytest.approx(f1_score(test, np.ones(len(test))))
    assert view.constant_value == 1
    scores = [f1_score(label, one.predict(part.X)) for one in front.models]
    assert [point.more["f1_score"] for point in front.validation_points] == pytest.approx(scores)
    assert scores[front.models.index(model)] == pytest.approx(max(scores))


def test_a_frontier_is_made_by_a_utility() -> None:
    made_by = frontier(
        FairRegressor(epochs=20),
        X,
        T,
        sensitive_features=A,
        strengths=[0.0, 1.0],
        utility="mean_absolute_error",
        random_state=0,
    )
    assert made_by.utility.name == "mean_absolute_error"
    test = made_by.source.evaluator.test.labels if made_by.source else np.zeros(0)
    assert made_by.constant is not None
    constant = made_by.constant.more["mean_absolute_error"]
    train = (
        made_by.source.evaluator.training.labels
        if made_by.source and made_by.source.evaluator.training
        else np.zeros(0)
    )
    middle = np.sort(train)[(len(train) - 1) // 2]
    assert constant == pytest.approx(np.abs(test - middle).mean())
    best = min(point.more["mean_absolute_error"] for point in made_by.points)
    fairest = {point.unfairness: 1 - point.more["mean_absolute_error"] / constant for point in made_by.points}
    assert 0 < made_by.area <= 1 - best / constant  # what is saved of the constant's error
    assert max(fairest.values()) == pytest.approx(1 - best / constant)
    assert f"Mean absolute error down to {best:.3f}" in repr(made_by)


@pytest.mark.filterwarnings("ignore:The chosen model")
def test_a_file_keeps_the_utility_and_the_constant(tmp_path: Path) -> None:
    made_by = frontier(
        FairClassifier(epochs=20),
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0, 1.0],
        utility=[[0, 1], [3, 0]],
        random_state=0,
    )
    made_by.select(max_unfairness=1.0)
    made_by.save(tmp_path / "f")
    again = load(tmp_path / "f")
    assert again.constant == made_by.constant
    assert again.constant_value == made_by.constant_value
    assert again.training_points == made_by.training_points
    assert (again.utility, again.chosen_by) == (made_by.utility, made_by.chosen_by)
    assert again.area_with_constant == made_by.area_with_constant
    assert again.view().label("expected_cost") == "Expected cost"
    assert again.select(max_unfairness=1.0).strength == made_by.select(max_unfairness=1.0).strength
    again.select(max_unfairness=1.0, utility="auc")
    with pytest.raises(DataError, match=r"this frontier's points have no utility 'f1', but 'auc', .*; make it anew"):
        again.select(max_unfairness=1.0, utility="f1")
    again.select(max_unfairness=1.0)
    for wish in (again.held_out, again.refit):
        with pytest.raises(DataError, match="a frontier from a file keeps no rows"):
            wish()


# ---- the constant model -----------------------------------------------------------------------------------------


def test_the_constant_model_is_a_point_of_every_frontier(front: Frontier) -> None:
    assert front.constant is not None
    assert front.source is not None
    train, test = front.source.evaluator.training, front.source.evaluator.test
    assert train is not None
    most = np.bincount(train.labels).argmax()
    assert front.constant_value == most
    assert front.constant.accuracy == pytest.approx((test.labels == most).mean())
    assert (front.constant.unfairness, front.constant.decision_unfairness) == (0.0, 0.0)
    assert front.constant.marks["accuracy"] == CONSTANT
    least = min(point.unfairness for point in front.points)
    assert front.area_with_constant >= front.area + 0.99 * least * front.constant.accuracy


def test_a_constant_has_unequal_losses() -> None:
    """Risk parity compares losses: those of a constant are the base rates."""
    rng = np.random.default_rng(99)
    unequal = (A + rng.random(N) > 1.1).astype(int)
    found = frontier(
        FairClassifier(epochs=2, criterion="risk_parity"),
        X,
        unequal,
        sensitive_features=A,
        strengths=[0],
        random_state=0,
    )
    assert found.constant is not None
    assert found.constant.unfairness > 0.5


def test_fitted_models_have_a_constant_too() -> None:
    models = [LogisticRegression().fit(X, Y)]
    found = frontier(models, X, Y, sensitive_features=A, random_state=0)
    assert found.constant is not None
    assert found.training_points == (None,)
    found.select(max_unfairness=1.0)
    assert found.held_out("pandas").shape == (N // 2, 5)
    with pytest.raises(DataError, match="the models were passed fitted"):
        found.refit()


# ---- held-out rows, and all rows --------------------------------------------------------------------------------


def test_held_out_predictions_are_those_of_the_test_rows_and_can_be_audited(front: Frontier) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = front.select(max_unfairness=1.0)
    table = front.held_out("pandas")
    assert list(table.columns) == ["row", "sensitive_features", "label", "prediction", "probability"]
    rows = table["row"].to_numpy()
    assert front.source is not None
    assert set(rows) == set(front.source.test)
    assert (table["label"] == Y[rows]).all()
    assert (table["sensitive_features"] == A[rows]).all()
    assert table["probability"].to_numpy() == pytest.approx(model.predict_proba(X[rows])[:, 1])
    found = audit(None, table["probability"], sensitive_features=table["sensitive_features"], metrics=["kolmogorov"])
    assert front.chosen is not None
    assert found.findings[0].value == pytest.approx(front.chosen.unfairness)


def test_a_choice_is_trained_on_all_rows(front: Frontier) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = front.select(max_unfairness=0.99, certified=True)
    assert front.certified
    again = front.refit()
    assert not front.certified  # it was proven of another model
    own = FairClassifier(model.strength, epochs=40, random_state=model.random_state).fit(X, Y, sensitive_features=A)
    assert again.predict_proba(X) == pytest.approx(own.predict_proba(X), abs=1e-6)
    assert np.abs(again.predict_proba(X) - model.predict_proba(X)).max() > 1e-3
    front.chosen = None
    with pytest.raises(DataError, match="no model is chosen; call select first"):
        front.refit()


# ---- what is proven ---------------------------------------------------------------------------------------------


def test_a_certificate_counts_the_strengths_that_could_have_been_added() -> None:
    """Three models were trained of seven that might have been: their number is that of the rows for choosing."""
    gap, rows = 0.3, 2000
    interval = {"unfairness": Interval(gap - 2 * dkw_radius(rows), gap + 2 * dkw_radius(rows))}
    point = Point(1.0, 0, 0.8, gap, intervals=interval)
    outcomes = [Outcome(Job(at, 0), point, point, model=at) for at in range(3)]
    trained, possible = (gap + 2 * dkw_radius(rows, cdfs=2 * models) for models in (3, 7))
    assert trained < possible - 1e-3
    certain = Frontier(outcomes, "scores", "accuracy", ("a", "b"), {}, tried=7)
    with pytest.raises(DataError, match="no model has certified unfairness"):
        certain.select(max_unfairness=(trained + possible) / 2, certified=True)
    certain.select(max_unfairness=possible + 1e-9, certified=True)
    Frontier(outcomes, "scores", "accuracy", ("a", "b"), {}).select(
        max_unfairness=(trained + possible) / 2, certified=True
    )


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore:Models predict the same")  # after one epoch
def test_strengths_that_are_added_are_counted_with_those_that_are_not() -> None:
    found = frontier(
        FairClassifier(epochs=1, hidden=(2,)),
        X,
        Y,
        sensitive_features=A,
        strengths="auto",
        random_state=0,
        search=SearchOptions(seeds=2),
    )
    first = 25
    assert len(found.outcomes) == 2 * (first + 8)
    assert found.tried == 2 * (first + first - 1)
    fixed = frontier(FairClassifier(epochs=1, hidden=(2,)), X, Y, sensitive_features=A, strengths=[0], random_state=0)
    assert fixed.tried is None


def test_a_model_that_ranks_but_decides_alike_is_told_whatever_the_utility() -> None:
    """Nine of ten are positive: the model ranks them, and says yes to everyone."""
    rng = np.random.default_rng(0)
    a, skill = rng.integers(2, size=1200), rng.normal(size=1200)
    y = (rng.random(1200) < 1 / (1 + np.exp(-(2.9 + 0.7 * skill)))).astype(int)
    front = frontier(
        FairClassifier(model="linear"),
        np.c_[skill, a],
        y,
        sensitive_features=a,
        strengths=[0.0, 1.0],
        utility="auc",
        random_state=0,
    )
    assert all(point.marks.get("accuracy") == CONSTANT and "auc" not in point.marks for point in front.points)
    assert FrontierNote("same_decisions", {"models": 2, "of": 2}) in front.notes
    assert "2 of 2 models decide the same for everyone at their threshold" in front.summary()
    with pytest.warns(MetrifairWarning, match="ranks people, but decides the same for everyone"):
        front.select(max_unfairness=1.0)
    # By scikit-learn's own AUC it is no constant either, as by ours.
    with pytest.warns(MetrifairWarning, match="ranks people, but decides the same for everyone"):
        front.select(max_unfairness=1.0, utility="roc_auc")
    assert front.chosen is not None
    assert "roc_auc" not in front.chosen.marks
    assert front.chosen.more["roc_auc"] == pytest.approx(front.chosen.more["auc"])
    with pytest.warns(MetrifairWarning, match="decides the same for everyone"):
        front.select(max_unfairness=1.0, utility="f1")  # which looks at decisions
    assert front.chosen.marks["f1"] == CONSTANT
