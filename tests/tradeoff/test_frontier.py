"""The whole trade-off: who sees which rows, which strengths are tried, which model is chosen, and what is proven."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import ks_2samp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score

from metrifair import FairClassifier, FairRegressor, SearchOptions, audit, load, unfairness
from metrifair.api.frontier import Frontier
from metrifair.errors import DataError, MetrifairWarning, TooFewSamples
from metrifair.figures.certificates import dkw_radius
from metrifair.figures.curves import Curves
from metrifair.figures.intervals import Interval
from metrifair.problem.criteria import EQUAL_OPPORTUNITY, PREDICTIVE_EQUALITY, criterion_named
from metrifair.report.frontier import page_content
from metrifair.tradeoff import sweep
from metrifair.tradeoff.evaluate import make_point, predict, score_curves, small_groups_note, unfairness_by_chance
from metrifair.tradeoff.points import FrontierNote, Job, Outcome, Point, area, pareto
from metrifair.tradeoff.split import data_set
from metrifair.tradeoff.sweep import DEFAULT_STRENGTHS
from metrifair.wording.frontier import glossary, note_text
from metrifair.wording.provenance import provenance_lines
from tests.one_split import frontier

pytestmark = pytest.mark.filterwarnings("ignore:(the model predicts|Models predict) the same")  # trained for a moment

RNG = np.random.default_rng(0)
N = 200
A = RNG.integers(2, size=N)
X = RNG.normal(size=(N, 3)) + A[:, None]
Y = (X.sum(1) + RNG.normal(size=N) > 1.5).astype(int)
T = X[:, 0] - X[:, 1] + RNG.normal(size=N)
PARITY = criterion_named("statistical_parity")


def parts(
    random_state: int = 0,
    *,
    y: Any = Y,
    regression: bool = False,
    train: bool = True,
    criterion: Any = "statistical_parity",
) -> tuple[Any, Any, Any, Any]:
    data = data_set(X, y, A, None, regression=regression, criterion=criterion, contrast="pairs")
    return data, *data.split(0.25, 0.25, random_state, train=train)


class Numbered(ClassifierMixin, BaseEstimator):
    """Remembers the rows it is shown, whose numbers stand in the first column."""

    fitted: ClassVar[list[tuple[float, tuple[int, ...]]]] = []
    judged: ClassVar[list[tuple[int, ...]]] = []

    def __init__(self, strength: float = 0.0) -> None:
        self.strength = strength

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any, *, sensitive_features: Any, sample_weight: Any = None) -> Numbered:
        rows = X[:, 0].astype(int)
        assert (y == Y[rows]).all()
        assert (sensitive_features == A[rows]).all()
        assert sample_weight is None or (sample_weight == rows).all()
        self.fitted.append((self.strength, tuple(rows)))
        return self

    def predict(self, X: Any) -> Any:
        self.judged.append(tuple(X[:, 0].astype(int)))
        return (X[:, 1] > 0.5).astype(int)


@pytest.fixture
def numbered() -> Any:
    Numbered.fitted, Numbered.judged = [], []
    return np.column_stack([np.arange(N), X])


# --- who sees which rows ----------------------------------------------------------------------------------------


def test_models_never_see_what_they_are_judged_on(numbered: Any) -> None:
    frontier(
        Numbered(),
        numbered,
        Y,
        sensitive_features=A,
        strengths=[0, 1],
        sample_weight=np.arange(N),
        random_state=0,
        search=SearchOptions(seeds=2),
    )
    (trained,) = {rows for _, rows in Numbered.fitted}
    seen = set(Numbered.judged)
    assert len(seen) == 3
    validation, test, own = sorted(seen, key=Numbered.judged.index)
    assert own == trained
    assert sorted([*trained, *validation, *test]) == list(range(1, N))  # the first row has no weight
    assert [strength for strength, _ in Numbered.fitted] == [0, 1, 0, 1]


def test_the_parts_are_those_of_the_split(numbered: Any) -> None:
    front = frontier(Numbered(), numbered, Y, sensitive_features=A, strengths=[0], random_state=3)
    _, train, validation, test = parts(3)
    assert Numbered.fitted[0][1] == tuple(train)
    assert Numbered.judged == [tuple(validation), tuple(test), tuple(train)]  # each part once
    assert front.sizes == {"0": int((A[test] == 0).sum()), "1": int((A[test] == 1).sum())}
    assert front.notes[0] == FrontierNote("split", {"training": 100, "validation": 50, "test": 50, "folds": 0})


def test_seeds_change_models_and_not_the_split() -> None:
    front = frontier(
        FairClassifier(epochs=5),
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0],
        random_state=0,
        search=SearchOptions(seeds=[1, 2]),
    )
    again = frontier(
        FairClassifier(epochs=5),
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0],
        random_state=0,
        search=SearchOptions(seeds=[2]),
    )
    assert front.points[0].more["log_loss"] != front.points[1].more["log_loss"]
    assert again.points[0].more["log_loss"] == pytest.approx(front.points[1].more["log_loss"])
    assert [model.random_state for model in front.models] == [1, 2]


@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_the_frontier_is_that_of_models_trained_separately(kind: Any) -> None:
    y, regression = (Y, False) if kind is FairClassifier else (T, True)
    front = frontier(
        kind(epochs=20),
        X,
        y,
        sensitive_features=A,
        strengths=[0.0, 0.5, 5.0],
        random_state=0,
        search=SearchOptions(seeds=2),
    )
    data, train, validation, test = parts(y=y, regression=regression)
    for outcome in front.outcomes:
        strength, seed, _ = outcome.job
        own = kind(strength, epochs=20, random_state=seed).fit(X[train], y[train], sensitive_features=A[train])
        for rows, found in ((validation, outcome.validation), (test, outcome.test)):
            part = data.held_out(rows)
            expected = make_point(predict(own, part), part, strength=strength, seed=seed)
            assert (found.strength, found.seed) == (strength, seed)
            assert (found.accuracy, found.unfairness) == pytest.approx((expected.accuracy, expected.unfairness))
            assert dict(found.more) == pytest.approx(dict(expected.more))
    assert front.pareto == pareto(front.points)
    assert front.area == pytest.approx(area(front.points))


@pytest.mark.parametrize("table", ["pandas", "polars", "lists"])
def test_any_kind_of_table_gives_the_same_points(table: str) -> None:
    frame = pd.DataFrame(X, columns=list("abc"))
    x, y, groups = {
        "pandas": (frame.set_index(np.arange(N) + 1000), pd.Series(Y), pd.Series(A)),
        "polars": (pl.DataFrame({name: X[:, k] for k, name in enumerate("abc")}), pl.Series(Y), pl.Series(A)),
        "lists": (X.tolist(), Y.tolist(), A.tolist()),
    }[table]
    made = FairClassifier(epochs=3)
    found = frontier(made, x, y, sensitive_features=groups, strengths=[0, 1], random_state=0)
    assert found.points == frontier(made, X, Y, sensitive_features=A, strengths=[0, 1], random_state=0).points


def test_groups_can_be_a_dictionary_of_attributes() -> None:
    """As for FairClassifier.fit."""
    made = FairClassifier(epochs=3)
    found = frontier(made, X, Y, sensitive_features={"sex": A}, strengths=[1.0], random_state=0)
    assert found.points == frontier(made, X, Y, sensitive_features=A, strengths=[1.0], random_state=0).points


@pytest.mark.parametrize("name", ["X", "sample_weight"])
@pytest.mark.parametrize("rows", [N - 60, N + 60])
def test_a_table_of_another_length_is_refused(name: str, rows: int) -> None:
    given: dict[str, Any] = {"X": X, "sample_weight": np.ones(N)}
    given[name] = np.resize(given[name], (rows, *given[name].shape[1:]))
    with pytest.raises(DataError, match=f"one length.*{name} {rows}"):
        frontier(FairClassifier(epochs=2), y=Y, sensitive_features=A, strengths=[0], random_state=0, **given)


# --- models that are fitted already -----------------------------------------------------------------------------


def test_fitted_models_are_only_judged(numbered: Any) -> None:
    models = [Numbered(), LogisticRegression().fit(numbered, Y)]
    front = frontier(models, numbered, Y, sensitive_features=A, random_state=0)
    assert Numbered.fitted == []
    assert list(front.models) == models
    assert [(point.strength, point.seed) for point in front.points] == [(1.0, 0), (2.0, 0)]  # their numbers
    _, train, validation, test = parts(train=False)
    assert len(train) == 0
    assert Numbered.judged == [tuple(validation), tuple(test)]
    assert front.notes[0] == FrontierNote("split", {"training": 0, "validation": 100, "test": 100, "folds": 0})
    assert front.points[1].accuracy == pytest.approx(models[1].score(numbered[test], Y[test]))
    assert front.select(min_accuracy=0.0) in models


def test_fitted_models_are_called_by_their_own_strengths() -> None:
    fitted = [FairClassifier(value, model="linear").fit(X, Y, sensitive_features=A) for value in (10, 0, 1)]
    front = frontier(fitted, X, Y, sensitive_features=A, random_state=0)
    assert [(point.strength, model.strength) for point, model in zip(front.points, front.models, strict=True)] == [
        (10.0, 10),
        (0.0, 0),
        (1.0, 1),
    ]
    front.select(max_unfairness=1.0)
    assert front.chosen is not None
    assert front.summary().startswith(f"Chosen: strength {front.chosen.strength:g}, ")
    assert front.change is not None
    assert front.change.reference == front.points[1]


@pytest.mark.parametrize("other", [FairClassifier(0.1, model="linear"), FairClassifier(1, hidden=(4,))])
def test_fitted_models_without_strengths_that_compare_are_called_by_their_numbers(other: Any) -> None:
    fitted = [model.fit(X, Y, sensitive_features=A) for model in (FairClassifier(0.1, model="linear"), other)]
    front = frontier(fitted, X, Y, sensitive_features=A, random_state=0)
    chosen = front.select(max_unfairness=1.0)
    number = fitted.index(chosen) + 1
    assert front.summary().startswith(f"Chosen: model {number}, ")
    assert dict(glossary(front.view()))["model"] == "The number of the model in the list of fitted models."
    assert front.change is None


def test_no_models_at_all_are_refused() -> None:
    with pytest.raises(DataError):
        frontier([], X, Y, sensitive_features=A, random_state=0)


@pytest.mark.parametrize("given", [False, True], ids=["trained", "fitted"])
def test_an_estimator_that_needs_groups_to_predict_receives_them(given: bool) -> None:
    class Aware(ClassifierMixin, BaseEstimator):
        def __init__(self, strength: float = 0.0) -> None:
            self.strength = strength

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Aware:
            return self

        def predict(self, X: Any, *, sensitive_features: Any) -> Any:
            assert len(sensitive_features) == len(X)
            return np.asarray(sensitive_features)

    made = [Aware(), Aware()] if given else Aware()
    front = frontier(made, X, Y, sensitive_features=A, strengths=[0, 1], random_state=0)
    assert [point.unfairness for point in front.points] == [1.0, 1.0]
    assert [point.decision_unfairness for point in front.points] == [1.0, 1.0]


# --- strengths --------------------------------------------------------------------------------------------------


def bending(strength: float) -> tuple[float, float]:
    """Unfairness and accuracy all change between strengths 0.9 and 1.3."""
    share = float(np.clip((strength - 0.9) / 0.4, 0, 1))
    return 0.5 - 0.4 * share, 0.9 - 0.2 * share


def faked(monkeypatch: pytest.MonkeyPatch, lost: Sequence[float] = ()) -> list[float]:
    """A sweep whose figures are known, and the strengths it was asked for."""
    asked: list[float] = []

    def known(estimator: Any, material: Any, jobs: Sequence[Job], *_: Any, **__: Any) -> list[Outcome]:
        asked.extend(job.value for job in jobs if job.value not in asked)
        points = [Point(job.value, job.seed, *bending(job.value)[::-1], failed=job.value in lost) for job in jobs]
        return [Outcome(job, point, point) for job, point in zip(jobs, points, strict=True)]

    monkeypatch.setattr("metrifair.tradeoff.frontier.sweep", known)
    return asked


def test_the_default_is_zero_and_24_strengths_on_a_logarithmic_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = faked(monkeypatch)
    frontier(FairClassifier(), X, Y, sensitive_features=A, random_state=0)
    assert asked[0] == 0
    assert asked[1:22] == pytest.approx(np.geomspace(0.03, 1_000, 21), rel=0.02)
    assert asked[22:] == [1e4, 1e5, 1e6]


@pytest.mark.parametrize("strengths", [[-5, 0], ["x", 0], [float("nan")], [float("inf")], [], "all"])
def test_strengths_that_are_none_are_refused(strengths: Any) -> None:
    with pytest.raises(DataError, match=r"strengths must be None, 'auto', or a list of finite numbers from 0 upwards"):
        frontier(FairClassifier(), X, Y, sensitive_features=A, strengths=strengths, random_state=0)


def test_strengths_may_be_an_array() -> None:
    front = frontier(FairClassifier(epochs=2), X, Y, sensitive_features=A, strengths=np.array([0, 1]), random_state=0)
    assert [point.strength for point in front.points] == [0.0, 1.0]


def test_auto_adds_strengths_where_the_curve_bends(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = faked(monkeypatch)
    front = frontier(
        FairClassifier(), X, Y, sensitive_features=A, strengths="auto", random_state=0, search=SearchOptions(seeds=2)
    )
    added = asked[len(DEFAULT_STRENGTHS) :]
    assert 1 <= len(added) <= 8
    assert asked[: len(DEFAULT_STRENGTHS)] == list(DEFAULT_STRENGTHS)
    edges = sorted(DEFAULT_STRENGTHS)
    place = np.searchsorted(edges, 0.9) - 1
    low, high = edges[place : place + 2]
    assert any(value == pytest.approx(math.sqrt(low * high), rel=1e-6) for value in added)
    values = [outcome.job.value for outcome in front.outcomes]
    assert len(set(values)) == len(DEFAULT_STRENGTHS) + len(added)
    assert values[: len(values) // 2] == values[len(values) // 2 :] == sorted(set(values))


def test_auto_looks_past_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = faked(monkeypatch, lost=DEFAULT_STRENGTHS[5:])
    frontier(FairClassifier(), X, Y, sensitive_features=A, strengths="auto", random_state=0)
    assert max(asked[len(DEFAULT_STRENGTHS) :]) < DEFAULT_STRENGTHS[4]


def test_auto_of_nothing_but_failures_is_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch, lost=DEFAULT_STRENGTHS)
    front = frontier(FairClassifier(), X, Y, sensitive_features=A, strengths="auto", random_state=0)
    assert all(point.failed for point in front.points)


def test_auto_trains_no_strength_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[float] = []
    real = sweep.fit_stack

    def counted(*args: Any, **named: Any) -> Any:
        done.extend(named["strengths"])
        return real(*args, **named)

    monkeypatch.setattr(sweep, "fit_stack", counted)
    frontier(FairClassifier(epochs=1, model="linear"), X, Y, sensitive_features=A, strengths="auto", random_state=0)
    assert sorted(done) == sorted(set(done))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"unfairness_of": "labels"}, "unfairness_of must be"),
        ({"criterion": "parity"}, "criterion must be"),
        ({"test": 0.9}, "validation and test"),
        ({"test": "0.2"}, "validation and test"),
        ({"validation": True}, "validation and test"),
        ({"validation": math.nan}, "validation and test"),
        ({"validation": 4}, r"pass search=SearchOptions\(folds=5\)"),
        ({"search": {"folds": 4}}, r"^search must be None or SearchOptions\(\.\.\.\), got \{'folds': 4\}"),
        (
            {"search": SearchOptions(ledger="runs.db"), "random_state": None},
            "^random_state must be given with a ledger",
        ),
        ({"random_state": "0"}, "^random_state must be None, an integer"),
        ({"utility": None}, "^utility must be"),
    ],
)
def test_arguments_that_mean_nothing_are_refused_before_training(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], words: str
) -> None:
    monkeypatch.setattr("metrifair.tradeoff.frontier.sweep", None)
    with pytest.raises(DataError, match=words):
        frontier(FairClassifier(), X, Y, **{"sensitive_features": A, "random_state": 0, **arguments})


# --- the same question, the same number --------------------------------------------------------------------------


@pytest.mark.parametrize("positive", ["no", "yes"])
def test_the_four_fifths_ratio_is_that_of_the_positive_class(positive: str) -> None:
    """As ``audit`` of the same model on the same rows has it, and as ``unfairness`` has the distance."""
    rng = np.random.default_rng(1)
    hired = np.where(X.sum(1) + rng.normal(size=N) > 2.5, "yes", "no")
    made = FairClassifier(0.0, epochs=200, pos_label=positive)
    front = frontier(made, X, hired, sensitive_features=A, strengths=[0.0], random_state=0)
    *_, test = parts(y=hired)
    model, point = front.models[0], front.points[0]
    score = model.predict_proba(X[test])[:, int(positive == "yes")]
    found = audit(hired[test], score, sensitive_features=A[test], pos_label=positive)
    assert point.more["four_fifths"] == pytest.approx(found.decisions[0].selection_ratio)
    assert point.unfairness == pytest.approx(unfairness(hired[test], score, sensitive_features=A[test]))
    assert point.more["auc"] == pytest.approx(roc_auc_score(hired[test] == positive, score))
    assert point.decision_unfairness == pytest.approx(found.decisions[0].selection_difference)
    curves = front.outcomes[0].curves
    assert curves is not None
    share = (score[A[test] == 0] <= curves.grid[50]).mean()
    assert curves.cumulative["0"][50] == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("criterion", [EQUAL_OPPORTUNITY, PREDICTIVE_EQUALITY])
@pytest.mark.parametrize("bins", [(0.0,), (-0.5, 0.5)])
def test_a_regressor_is_judged_within_the_bins_of_its_criterion(criterion: Any, bins: tuple[float, ...]) -> None:
    """The positive bin is the last, however many there are."""
    made = FairRegressor(criterion=replace(criterion, bins=bins), epochs=3)
    front = frontier(made, X, T, sensitive_features=A, strengths=[0.5], random_state=0)
    *_, test = parts(y=T, regression=True, criterion=made.criterion)
    within = (T[test] >= bins[-1]) == (criterion is EQUAL_OPPORTUNITY)
    scores = front.models[0].predict(X[test])
    u, v = (scores[within & (A[test] == group)] for group in (0, 1))
    assert front.points[0].unfairness == pytest.approx(ks_2samp(u, v).statistic)


# --- weights -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classes", "several", "numbers"])
def test_a_row_of_weight_two_counts_like_two_rows(kind: str) -> None:
    """In every figure of a model; what is proven does not hold for weighted samples, so there is no interval."""
    y: Any = {"classes": Y, "several": np.digitize(X.sum(1), [0.5, 2.5]), "numbers": T}[kind]
    model = (LinearRegression() if kind == "numbers" else LogisticRegression(max_iter=500)).fit(X, y)
    weight = 1 + np.random.default_rng(0).integers(3, size=N)
    rows = np.repeat(np.arange(N), weight)
    options: dict[str, Any] = {"regression": kind == "numbers", "criterion": PARITY, "contrast": "pairs"}
    weighted = data_set(X, y, A, None, sample_weight=weight, **options).held_out(np.arange(N))
    repeated = data_set(X[rows], y[rows], A[rows], None, **options).held_out(np.arange(len(rows)))
    one, other = (make_point(predict(model, part), part, strength=0.0, seed=0) for part in (weighted, repeated))
    for name in ("accuracy", "unfairness", "decision_unfairness"):
        assert getattr(one, name) == pytest.approx(getattr(other, name))
    assert dict(one.more) == pytest.approx(dict(other.more))
    assert (bool(one.intervals), bool(other.intervals)) == (False, True)
    first, second = (score_curves(predict(model, part), part) for part in (weighted, repeated))
    for group in ("0", "1"):
        assert first.cumulative[group] == pytest.approx(second.cumulative[group], abs=1e-4)


@pytest.mark.filterwarnings("ignore:The chosen model")  # few rows and epochs: no better than a constant
def test_a_weighted_frontier_says_so_and_certifies_nothing() -> None:
    weight = np.random.default_rng(0).random(N)
    front = frontier(
        FairClassifier(epochs=3), X, Y, sensitive_features=A, strengths=[0.0], sample_weight=weight, random_state=0
    )
    assert FrontierNote("weighted") in front.notes
    assert "Rows count by their sample weights." in front.summary()
    assert front.points[0].intervals == {}
    assert front.select(max_unfairness=1.0) is front.models[0]
    with pytest.raises(DataError, match="certified needs one split, unweighted rows and known groups"):
        front.select(max_unfairness=0.9, certified=True)


def test_equal_weights_are_none_and_rows_without_weight_are_not_there() -> None:
    model = LogisticRegression().fit(X, Y)
    plain = frontier([model], X, Y, sensitive_features=A, random_state=0)
    assert (
        frontier([model], X, Y, sensitive_features=A, sample_weight=np.full(N, 2.0), random_state=0).points
        == plain.points
    )
    more = np.concatenate([X, 100 * np.ones((30, 3))]), np.append(Y, np.zeros(30, int)), np.append(A, np.zeros(30, int))
    weight = np.append(np.ones(N), np.zeros(30))
    without = frontier([model], *more[:2], sensitive_features=more[2], sample_weight=weight, random_state=0)
    assert without.points == plain.points


# --- groups that are too small -----------------------------------------------------------------------------------


def test_rows_that_lack_a_group_are_refused_before_anything_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metrifair.tradeoff.frontier.sweep", lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(TooFewSamples, match="the held-out data have"):
        frontier(FairClassifier(), X, Y, sensitive_features=np.arange(N) == 0, random_state=0)


# --- choosing ---------------------------------------------------------------------------------------------------


def made(*figures: tuple[float, float], unfairness_of: str = "scores", n: int = 2000, **more: Any) -> Frontier:
    """Models called 0, 1, ... with these (unfairness, accuracy) on validation data, and quite others on test data."""
    radius = 2 * dkw_radius(n)
    outcomes = []
    for k, (gap, accuracy) in enumerate(figures):
        interval = Interval(max(0.0, gap - radius), min(1.0, gap + radius))
        validation = Point(k, 0, accuracy, gap, 1 - gap, intervals={"unfairness": interval})
        outcomes.append(Outcome(Job(k, 0), validation, Point(k, 0, 1 - accuracy, 1 - gap, gap), None, f"model {k}"))
    return Frontier(outcomes, unfairness_of, "accuracy", ("a", "b"), {"a": n, "b": n}, **more)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"max_unfairness": "0.1"}, "max_unfairness must be a finite number, got '0.1'"),
        ({"max_unfairness": math.nan}, "max_unfairness must be a finite number, got nan"),
        ({"min_accuracy": True}, "min_accuracy must be a finite number, got True"),
        ({"max_unfairness": 0.9, "certified": "no"}, "certified must be True or False, got 'no'"),
    ],
)
def test_a_choice_that_means_nothing_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as caught:
        made(*SOME).select(**asked)
    assert str(caught.value) == message


SOME = ((0.5, 0.90), (0.3, 0.88), (0.2, 0.874), (0.1, 0.80), (0.25, 0.70))


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ({"max_unfairness": 1.0}, 0),
        ({"max_unfairness": 0.5}, 0),
        ({"max_unfairness": 0.49}, 1),
        ({"max_unfairness": 0.25}, 2),
        ({"max_unfairness": 0.1}, 3),
        ({"min_accuracy": 0.9}, 0),
        ({"min_accuracy": 0.875}, 1),
        ({"min_accuracy": 0.5}, 3),
        ({"min_accuracy": 0.0}, 3),
        ({"rule": "donini"}, 2),  # 97 % of 0.9 is 0.873
    ],
)
def test_the_best_model_within_the_limit_is_chosen_on_validation_data(wish: dict[str, Any], expected: int) -> None:
    front = made(*SOME)
    assert front.chosen is None
    assert front.select(**wish) == f"model {expected}"
    assert front.chosen is front.points[expected]
    assert front.view().chosen is front.points[expected]


def test_ties_go_to_the_better_other_figure() -> None:
    assert made((0.3, 0.8), (0.2, 0.8)).select(max_unfairness=0.5) == "model 1"
    assert made((0.2, 0.7), (0.2, 0.8)).select(min_accuracy=0.5) == "model 1"


def test_decisions_can_be_what_is_limited() -> None:
    assert made(*SOME, unfairness_of="decisions").select(max_unfairness=0.75) == "model 0"
    assert made(*SOME, unfairness_of="decisions").select(max_unfairness=0.5) == "model 0"
    assert made((0.4, 0.9), (0.6, 0.5), unfairness_of="decisions").select(max_unfairness=0.5) == "model 1"


def test_failed_models_are_never_chosen() -> None:
    front = made(*SOME)
    lost = Point(9, 0, 0.99, 0.0, failed=True)
    front.outcomes = [Outcome(Job(9, 0), lost, lost), *front.outcomes]
    assert front.select(max_unfairness=1.0) == "model 0"
    assert front.select(rule="donini") == "model 2"
    front.outcomes = front.outcomes[:1]
    with pytest.raises(DataError) as refusal:
        front.select(max_unfairness=1.0)
    assert str(refusal.value) == ("no model to select from: training failed at every strength; lower the learning rate")


@pytest.mark.parametrize(("accuracy", "expected"), [(0.9701, 1), (0.9699, 0)])
def test_the_rule_of_donini_gives_up_three_percent(accuracy: float, expected: int) -> None:
    assert made((0.5, 1.0), (0.1, accuracy)).select(rule="donini") == f"model {expected}"


def test_the_rule_holds_for_the_worst_regressors_too() -> None:
    """97 % of a negative R2 is more than the best one has."""
    assert made((0.5, -0.1), (0.2, -0.9)).select(rule="donini") == "model 0"


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({}, "select needs exactly one of max_unfairness, min_accuracy and rule"),
        (
            {"max_unfairness": 0.1, "min_accuracy": 0.5},
            "select needs exactly one of max_unfairness, min_accuracy and rule",
        ),
        (
            {"max_unfairness": 0.1, "rule": "donini"},
            "select needs exactly one of max_unfairness, min_accuracy and rule",
        ),
        ({"certified": True}, "select needs exactly one of max_unfairness, min_accuracy and rule"),
        (
            {"max_unfairness": 0.05},
            (
                "no model has unfairness at most 0.05 on validation data; it ranges from 0.1000 to 0.5000: "
                "raise the limit, train with larger strengths, or hold more data out"
            ),
        ),
        (
            {"min_accuracy": 0.95},
            "no model has accuracy at least 0.95 on validation data; it ranges from 0.7000 to 0.9000",
        ),
        ({"rule": "best"}, "rule must be one of 'donini', got 'best'"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused_with_what_can(wish: dict[str, Any], message: str) -> None:
    front = made(*SOME)
    with pytest.raises(DataError) as refusal:
        front.select(**wish)
    assert str(refusal.value) == message
    assert front.chosen is None


def test_certified_applies_to_a_limit_of_unfairness_only() -> None:
    with pytest.raises(DataError, match="certified"):
        made(*SOME).select(min_accuracy=0.5, certified=True)


@pytest.mark.filterwarnings("ignore:The chosen model")  # few rows and epochs: no better than a constant
def test_a_real_choice_predicts_and_is_judged_anew() -> None:
    front = frontier(
        FairClassifier(epochs=60, hidden=(4,)), X, Y, sensitive_features=A, strengths=[0.0, 0.5, 20.0], random_state=0
    )
    limit = sorted(point.unfairness for point in front.validation_points)[1]
    model = front.select(max_unfairness=limit)
    data, _, validation, test = parts()
    for rows, expected in ((test, front.chosen), (validation, front.validation_points[front.models.index(model)])):
        part = data.held_out(rows)
        found = make_point(predict(model, part), part, strength=model.strength, seed=0)
        assert (found.accuracy, found.unfairness) == pytest.approx((expected.accuracy, expected.unfairness))
    assert set(model.predict(X)) <= {0, 1}


# --- what is proven ---------------------------------------------------------------------------------------------


def bound(gap: float, n: int, models: int) -> float:
    """Method.md 9: two distribution functions for each model, all within their radius at once."""
    return gap + 2 * math.sqrt(math.log(2 * 2 * models / 0.05) / (2 * n))


@pytest.mark.parametrize("models", [1, 2, 7])
def test_a_certified_choice_counts_the_functions_of_all_models(models: int) -> None:
    front = made(*[(0.3, 0.8)] * models, n=2000)
    limit = bound(0.3, 2000, models)
    assert limit > 0.3
    assert front.select(max_unfairness=limit + 1e-9, certified=True) == "model 0"
    with pytest.raises(DataError) as refusal:
        front.select(max_unfairness=limit - 1e-9, certified=True)
    assert str(refusal.value) == (
        f"no model has certified unfairness at most {limit:g} on validation data; it ranges from {limit:.4f} to "
        f"{limit:.4f}: raise the limit, train with larger strengths, or hold more data out"
    )


def certified_range(front: Frontier) -> tuple[float, float]:
    with pytest.raises(DataError, match="certified unfairness") as refusal:
        front.select(max_unfairness=-1.0, certified=True)
    words = str(refusal.value).split("ranges from ")[1].split()
    return float(words[0]), float(words[2].strip(".:"))


def test_more_models_prove_less() -> None:
    lows = [certified_range(made(*[(0.3, 0.8)] * models))[0] for models in (1, 2, 4, 8, 32)]
    assert lows == sorted(set(lows))


@pytest.mark.parametrize("gap", [0.0, 0.02, 0.3, 0.6, 0.97])
def test_the_bound_does_not_depend_on_where_the_interval_is_cut(gap: float) -> None:
    assert certified_range(made((gap, 0.8), n=2000))[0] == pytest.approx(min(bound(gap, 2000, 1), 1.0), abs=0.09)
    assert certified_range(made((gap, 0.8), n=2000))[0] >= min(bound(gap, 2000, 1), 1.0) - 1e-4


@pytest.mark.parametrize("gap", [0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("n", [2, 5, 8])
def test_a_handful_of_samples_proves_nothing(gap: float, n: int) -> None:
    """The interval is then [0, 1]: a bound below 1 is no bound."""
    assert certified_range(made((gap, 0.8), n=n)) == (1.0, 1.0)  # no distance of shares is larger
    for limit, said in ((0.5, "1 certifies nothing: no unfairness is larger"), (1.0, "max_unfairness=1 has no effect")):
        with pytest.raises(DataError, match=said):
            made((gap, 0.8), n=n).select(max_unfairness=limit, certified=True)


def test_a_real_certificate_is_the_formula() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(2, size=4000)
    x = rng.normal(size=(4000, 2)) + 0.5 * a[:, None]
    y = (x.sum(1) + rng.normal(size=4000) > 0.5).astype(int)
    front = frontier(
        FairClassifier(epochs=10),
        x,
        y,
        sensitive_features=a,
        strengths=[0.0, 0.5],
        random_state=0,
        search=SearchOptions(seeds=2),
    )
    data = data_set(x, y, a, None, regression=False, criterion=PARITY, contrast="pairs")
    counts = np.bincount(a[data.split(0.25, 0.25, 0).validation])
    radius = sum(math.sqrt(math.log(2 * 2 * 4 / 0.05) / (2 * n)) for n in counts)
    gaps = [point.unfairness for point in front.validation_points]
    assert certified_range(front) == pytest.approx((min(gaps) + radius, max(gaps) + radius), abs=6e-5)


@pytest.mark.parametrize(("groups", "classes"), [(3, 2), (2, 3)])
def test_a_certificate_counts_the_functions_of_all_groups_and_classes(groups: int, classes: int) -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(groups, size=6000)
    x = rng.normal(size=(6000, 2))
    y = np.digitize(x[:, 0] + rng.normal(size=6000), [0.0, 1.0][: classes - 1])
    front = frontier(FairClassifier(epochs=3), x, y, sensitive_features=a, strengths=[0.0, 5.0], random_state=0)
    data = data_set(x, y, a, None, regression=False, criterion=PARITY, contrast="pairs")
    counts = np.sort(np.bincount(a[data.split(0.25, 0.25, 0).validation]))[:2]
    functions = 2 * math.comb(groups, 2) * (1 if classes == 2 else classes)
    radius = sum(math.sqrt(math.log(2 * functions * 2 / 0.05) / (2 * n)) for n in counts)
    low = min(point.unfairness for point in front.validation_points)
    assert certified_range(front)[0] == pytest.approx(low + radius, abs=6e-5)


# --- what the rows cannot tell ----------------------------------------------------------------------------------


class Echo:
    """Scores a row by its first column."""

    def predict_proba(self, X: Any) -> Any:
        return np.stack([1 - X[:, 0], X[:, 0]], axis=1)

    def predict(self, X: Any) -> Any:
        return (X[:, 0] > 0.5).astype(int)


def held_out(score: Any, groups: dict[str, Any], y: Any = None, criterion: str = "statistical_parity") -> Any:
    labels = np.arange(len(score)) % 2 if y is None else y
    named = criterion_named(criterion)
    data = data_set(score[:, None], labels, groups, None, regression=False, criterion=named, contrast="pairs")
    return data.held_out(np.arange(len(score)))


def test_chance_is_the_mean_of_the_largest_of_all_comparisons_when_scores_are_dealt_out_anew() -> None:
    rng = np.random.default_rng(1)
    sex, region = np.arange(160) % 2, np.searchsorted([60, 100, 130], np.arange(160), side="right")
    pairs = [(column == a, column == b) for column in (sex, region) for a, b in combinations(np.unique(column), 2)]
    assert len(pairs) == 7
    worst = []
    for _ in range(60):
        dealt = rng.permutation(160)
        worst.append(max(ks_2samp(dealt[left], dealt[right], method="asymp").statistic for left, right in pairs))
    part = held_out(np.linspace(0, 1, 160), {"sex": sex, "region": region})
    found = unfairness_by_chance(part)
    assert found == pytest.approx(np.mean(worst), rel=0.08)
    assert found == unfairness_by_chance(part)
    assert unfairness_by_chance(held_out(np.linspace(0, 1, 160), {"sex": sex})) < 0.75 * found
    assert unfairness_by_chance(part, "decisions") < found


def test_the_curves_are_those_of_the_attribute_that_the_unfairness_is_about() -> None:
    rng = np.random.default_rng(2)
    sex, region = rng.integers(2, size=200), rng.integers(3, size=200)
    part = held_out((0.3 * rng.random(200) + 0.3 * region).clip(0, 1), {"sex": sex, "region": region})
    said = predict(Echo(), part)
    curves, point = score_curves(said, part), make_point(said, part, strength=0.0, seed=0)
    assert list(curves.cumulative) == ["region: 0", "region: 1", "region: 2"]
    shares = np.array(list(curves.cumulative.values()))
    assert (shares.max(0) - shares.min(0)).max() == pytest.approx(point.unfairness, abs=1e-7)


@pytest.mark.parametrize("criterion", ["statistical_parity", "equal_opportunity"])
def test_the_page_has_one_figure_for_the_gap_of_a_model(criterion: str) -> None:
    """Of the curves and of the table; where the criterion compares other rows than the curves, a note says so."""
    model = LogisticRegression(C=1e-5).fit(X, Y)  # its scores lie between few points of a grid from 0 to 1
    front = frontier([model], X, Y, sensitive_features=A, criterion=criterion, random_state=0)
    drawn: Any = page_content(front.view())["distributions"]
    score, test = model.predict_proba(X)[:, 1], parts(train=False, criterion=criterion)[3]
    exact = ks_2samp(score[test][A[test] == 0], score[test][A[test] == 1]).statistic
    assert drawn["rows"][0]["gap"]["text"].startswith(f"Largest gap {exact:.3f}, at score ")
    same = front.points[0].unfairness == pytest.approx(exact)
    assert same == (criterion == "statistical_parity")
    assert ("This gap can differ from the unfairness" in drawn["note"]) != same


def test_small_groups_are_named_with_their_rows_and_what_to_do() -> None:
    def said(tribe: Any, criterion: str = "statistical_parity", rows: int = 200) -> str:
        note = small_groups_note({"test": held_out(scores[:rows], {"tribe": tribe[:rows]}, None, criterion)})
        return "" if note is None else note_text(note)

    scores, tribe = np.linspace(0, 1, 200), np.where(np.arange(200) < 4, "few", "many")
    first = "Fewer than 30 samples say little about a group: “few” of tribe (4 in test rows). "
    last = " Merge small groups, mark them as missing, or hold more rows out."
    nothing = "There are no larger groups to compare, so that chance alone may explain the unfairness."
    assert said(tribe) == f"{first}{nothing}{last}"
    left_out = (
        "Unfairness excludes them, and the four-fifths ratio excludes groups with fewer than 30 rows in all. "
        "Tables by group "
    )
    tribe[100:] = "others"
    assert said(tribe) == f"{first}{left_out}show them.{last}"
    assert "“few” of tribe (2 in test rows, label=1)" in said(tribe, "equal_opportunity")
    assert said(np.arange(200) % 2) == ""
    assert "“1” of tribe (20 in test rows)" in said(np.arange(200) % 2, rows=40)


def test_a_choice_that_small_groups_rule_out_blames_them() -> None:
    with pytest.raises(DataError) as caught:
        made(*SOME, all_small=True).select(max_unfairness=0.05)
    assert str(caught.value).endswith(
        "from 0.1000 to 0.5000: raise the limit, merge small groups, mark them as missing, or hold more data out"
    )


def test_a_frontier_says_what_chance_would_show_and_which_groups_are_small() -> None:
    front = frontier(FairClassifier(epochs=2), X, Y, sensitive_features=A, strengths=[0.0], random_state=0)
    _, _, small, chance = front.notes
    assert front.notes[1] == FrontierNote("positive_label", {"labels": [0, 1], "positive": 1})  # which needs no words
    assert (small.kind, chance.kind) == ("small_groups", "chance")
    first = {"group": "0", "attribute": "sensitive_features", "part": "test", "within": "everyone"}
    assert small.facts["groups"][0] == {**first, "rows": front.sizes["0"]}
    assert chance.facts == {"unfairness": front.floor, "comparisons": 1, "unfairness_of": "scores"}
    assert front.view().floor == front.floor
    assert f"({front.sizes['0']} in test rows)" in front.view().notes[1]
    assert f"of about {front.floor:.3f} by chance" in front.view().notes[2]
    assert front.all_small


def test_a_frontier_says_once_where_models_predict_the_same_for_everyone() -> None:
    line, given = FairClassifier(model="linear"), {"sensitive_features": A}
    front = frontier(
        line, X, Y, strengths=[0.0, 0.01, 300.0, 1e5], random_state=0, **given, search=SearchOptions(seeds=2)
    )
    (note,) = [note for note in front.notes if note.kind == "constant_models"]
    assert note.facts == {"family": "", "strengths": [0.0, 0.01, 300.0, 1e5], "constant": [300.0, 1e5]}
    assert note_text(note).startswith(
        "Models predict the same for everyone from strength 300 on (2 of 4 strengths): training "
    )
    assert not front.models[1].predictor_.is_constant
    with pytest.warns(MetrifairWarning, match="Models predict the same for everyone at strength 300 .1 of 2"):
        frontier(line, X, Y, strengths=[0.0, 300.0], random_state=0, **given)
    assert "predict the same" not in frontier(line, X, Y, strengths=[0.0], random_state=0, **given).summary()


def test_a_limit_is_remembered_even_where_no_model_keeps_it() -> None:
    front = made(*SOME)
    front.select(max_unfairness=0.3)
    assert (front.limit, front.view().limit) == (0.3, 0.3)
    with pytest.raises(DataError):
        front.select(max_unfairness=0.05)
    assert (front.limit, front.chosen) == (0.05, None)
    front.select(min_accuracy=0.8)
    assert front.limit is None


# --- keeping ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The chosen model")  # few rows and epochs: no better than a constant
@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_a_saved_frontier_comes_back_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    real = sweep.fit_stack

    def diverging(*args: Any, **named: Any) -> Any:
        return [None if model.strength == 9.0 else model for model in real(*args, **named)]

    monkeypatch.setattr(sweep, "fit_stack", diverging)
    y = Y if kind is FairClassifier else T
    front = frontier(kind(epochs=5), X, y, sensitive_features=A, strengths=[0.0, 1.0, 9.0], random_state=0)
    front.select(max_unfairness=1.0)
    told = dict(provenance_lines(front.provenance))
    assert (
        told["Call"]
        == f"frontier({kind.__name__}(epochs=5), ..., ..., sensitive_features=..., strengths=[0.0, 1.0, 9.0], "
        "test=0.25)"
    )
    assert (told["Rows"], told["Seed"], told["Columns"]) == (f"{len(X)} read", "0", "group: sensitive_features")
    front.save(tmp_path / "front.metrifair")
    again = load(tmp_path / "front.metrifair")
    assert again.points == front.points
    assert dict(provenance_lines(again.provenance)) == told
    assert again.validation_points == front.validation_points
    assert [one.curves for one in again.outcomes] == [one.curves for one in front.outcomes]
    assert (again.chosen, again.limit, again.floor, again.all_small, again.sizes, again.notes, again.groups) == (
        front.chosen,
        1.0,
        front.floor,
        front.all_small,
        front.sizes,
        front.notes,
        front.groups,
    )
    assert repr(again) == repr(front)
    assert again.models[2] is None
    for one, other in zip(again.models[:2], front.models[:2], strict=True):
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
    limit = min(sum(certified_range(front)) / 2, 1.0)
    assert certified_range(again) == certified_range(front)
    assert again.select(max_unfairness=limit).strength == front.select(max_unfairness=limit).strength


# --- showing ----------------------------------------------------------------------------------------------------


def test_a_frontier_tells_what_it_reaches() -> None:
    assert repr(made((0.5, 0.1), (0.3, 0.25))) == (
        "Frontier(2 models: accuracy up to 0.900, unfairness of scores down to 0.500, area 0.450)"
    )


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_a_frame_has_a_row_for_each_point(backend: Any) -> None:
    front = made((0.5, 0.1), (0.3, 0.25))
    front.outcomes = [*front.outcomes, Outcome(Job(7, 0), *[Point(7, 0, 0.0, 1.0, failed=True)] * 2)]
    front.select(max_unfairness=0.3)
    found = front.to_frame(backend)
    assert type(found).__module__.startswith(backend)
    assert found["strength"].to_list() == [0.0, 1.0, 7.0]
    assert found["unfairness"].to_list()[:2] == [point.unfairness for point in front.points[:2]]
    assert found["chosen"].to_list() == [False, True, False]
    assert found["failed"].to_list() == [False, False, True]


def test_a_view_shows_one_seeds_distributions_for_each_strength() -> None:
    front = frontier(
        FairClassifier(epochs=3),
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0, 1.0],
        unfairness_of="decisions",
        random_state=0,
        search=SearchOptions(seeds=2),
    )
    view = front.view("Who is hired")
    assert (view.title, view.unfairness_of, view.accuracy_name, view.chosen) == (
        "Who is hired",
        "decisions",
        "accuracy",
        None,
    )
    assert tuple(view.points) == front.points
    assert dict(view.curves) == {outcome.job.value: outcome.curves for outcome in front.outcomes[:2]}
    assert all(isinstance(curves, Curves) for curves in view.curves.values())


def test_a_parameter_of_another_name_is_called_by_it() -> None:
    assert made(*SOME, parameter="C").view().label("strength") == "C"
    assert made(*SOME).view().label("strength") == "Strength"


def test_a_regressors_accuracy_is_called_r2() -> None:
    front = frontier(FairRegressor(epochs=3), X, T, sensitive_features=A, strengths=[0.0], random_state=0)
    assert front.accuracy_name == "R2"
    with pytest.raises(DataError, match=r"^no model has R2 at least 2 on validation data; it ranges from "):
        front.select(min_accuracy=2)


def test_pages_and_pictures_are_written(tmp_path: Path) -> None:
    front = frontier(FairClassifier(epochs=3), X, Y, sensitive_features=A, strengths=[0.0, 1.0], random_state=0)
    front.to_html(tmp_path / "page.html", title="Who is hired")
    front.to_picture(tmp_path / "front.png")
    assert "Who is hired" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    assert front.plot().to_dict()["$schema"]


# --- training rows and others -----------------------------------------------------------------------------------


class Memory(ClassifierMixin, BaseEstimator):
    """Fair on rows that it knows, whose scores it makes equal by rank, and unfair on others."""

    def __init__(self, strength: float = 0.0) -> None:
        self.strength = strength

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Memory:
        self.classes_ = np.unique(y)
        ranks = np.empty(len(X))
        for group in (0, 1):
            own = np.flatnonzero(np.asarray(sensitive_features) == group)
            ranks[own[np.argsort(X[own, 0])]] = (np.arange(len(own)) + 0.5) / len(own)
        self.known_ = dict(zip(map(tuple, X.tolist()), ranks.tolist(), strict=True))
        return self

    def predict_proba(self, X: Any) -> Any:
        usual = 1 / (1 + np.exp(-2 * X[:, 0]))
        score = np.array([self.known_.get(tuple(row), own) for row, own in zip(X.tolist(), usual, strict=True)])
        if self.strength == 0:
            score = usual
        return np.stack([1 - score, score], axis=1)

    def predict(self, X: Any) -> Any:
        return self.classes_[(self.predict_proba(X)[:, 1] >= 0.5).astype(int)]


def test_unfairness_that_is_learnt_row_by_row_is_shown_and_warned_of() -> None:
    """The issue's case: Kolmogorov 0.018 on training rows, 0.170 on test rows, and nothing told the user."""
    generator = np.random.default_rng(1)
    groups = generator.integers(2, size=800)
    features = generator.normal(size=(800, 2)) + 0.8 * groups[:, None]
    labels = (features[:, 0] + generator.normal(size=800) > 0.4).astype(int)
    front = frontier(Memory(), features, labels, sensitive_features=groups, strengths=[0, 1], random_state=0)
    plain, memory = front.outcomes
    assert plain.training is not None
    assert memory.training is not None
    assert memory.training.unfairness < 0.02
    assert (plain.test.overfit, memory.test.overfit) == (False, True)
    (note,) = (note for note in front.notes if note.kind == "overfit")
    assert note.facts == {
        "models": 1,
        "trained": 2,
        "family": "",
        "parameter": "strength",
        "value": 1.0,
        "training": memory.training.unfairness,
        "validation": memory.validation.unfairness,
        "test": memory.test.unfairness,
    }
    said = note_text(note)
    assert f"for 1 of 2 models (most at strength 1: {memory.training.unfairness:.3f} on training rows, " in said
    assert f"{memory.test.unfairness:.3f} on test rows)" in said
    assert "A simpler model, more rows or a larger strength can help." in said
    assert note_text(FrontierNote("overfit", {**note.facts, "parameter": "tolerance"})) == (
        said.replace("strength 1", "tolerance 1").replace("larger strength", "smaller tolerance")
    )
    table = front.to_frame("pandas")
    assert table["overfit"].tolist() == [False, True]
    assert table["training_unfairness"].tolist() == [plain.training.unfairness, memory.training.unfairness]
    assert table["validation_unfairness"].tolist() == [point.unfairness for point in front.validation_points]
    row = front.view().rows[1]
    assert {name: figure.value for name, figure in row.parts.items()} == {
        "training": memory.training.unfairness,
        "validation": memory.validation.unfairness,
    }


def test_tables_come_in_the_library_of_the_data_and_notebooks_show_a_frame() -> None:
    X = pd.DataFrame({"x": np.linspace(-1, 1, 400)})
    y = (X["x"] > 0).astype(int)
    for given, library in ((X, pd.DataFrame), (X.to_numpy(), pl.DataFrame)):
        labels = y if library is pd.DataFrame else y.to_numpy()
        front = frontier(
            [LogisticRegression().fit(given, labels)],
            given,
            labels,
            sensitive_features=np.arange(400) % 2,
            random_state=0,
        )
        assert isinstance(front.to_frame(), library)
    shown = front._repr_html_()
    assert shown.startswith('<iframe srcdoc="<!doctype html>')
    assert len(shown) < 600_000


def test_whether_ages_are_a_number_is_decided_once_by_all_rows() -> None:
    """22 ages are a number and 20 would be groups: the rows to train on lack some of them."""
    rng = np.random.default_rng(3)
    age = np.concatenate([np.arange(22), rng.integers(0, 12, 278)]).astype(float)
    features = rng.normal(size=(300, 2)) + age[:, None] / 12
    label = (features.sum(1) + rng.normal(size=300) > 1).astype(int)
    with pytest.warns(MetrifairWarning, match="is taken as a number") as told:
        front = frontier(
            FairClassifier(model="linear"),
            features,
            label,
            sensitive_features={"age": age},
            strengths=[0.1],
            random_state=0,
        )
    assert sum("is taken as a number" in str(one.message) for one in told) == 1
    model = front.select(max_unfairness=1.0)
    assert model.continuous == ["age"]
    assert front.provenance.call.startswith("frontier(FairClassifier(model='linear')")


def test_a_frontier_counts_rows_without_a_group() -> None:
    groups = np.array(["a", "b", None], dtype=object)[np.arange(len(Y)) % 3]
    front = frontier([LogisticRegression().fit(X, Y)], X, Y, sensitive_features={"sex": groups}, random_state=0)
    (facts,) = (note.facts for note in front.notes if note.kind == "missing_groups")
    assert facts == {"attribute": "sex", "rows": len(Y) // 3, "of": len(Y)}
