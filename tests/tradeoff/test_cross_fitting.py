"""Test folds: no row is scored, or chosen for, by anything that saw it; pooled figures are those computed directly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score

from metrifair import BarycenterPostprocessor, FairClassifier, FairRegressor, SearchOptions, audit, frontier, load
from metrifair.errors import DataError, Diverged, TooFewSamples
from metrifair.tradeoff.points import Point

RNG = np.random.default_rng(8)
N = 300
A = np.where(RNG.random(N) < 0.4, "f", "m")
X = RNG.normal(size=(N, 2)) + (A == "m")[:, None]
Y = (X.sum(1) + RNG.normal(size=N) > 1).astype(int)
ROWS = np.column_stack([np.arange(N), X])
FIVE = SearchOptions(test_folds=5)


class Recorder(ClassifierMixin, BaseEstimator):
    """A logistic regression that records which rows, by the number in the first column, it saw and scored."""

    calls: ClassVar[list[tuple[str, float, frozenset[int], frozenset[int]]]] = []

    def __init__(self, strength: float = 0.0, *, without: int = -1) -> None:
        self.strength, self.without = strength, without

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Recorder:
        self.seen_ = frozenset(X[:, 0].astype(int).tolist())
        if self.strength > 0 and self.without in self.seen_:
            raise Diverged("a row is not wanted")
        self.classes_ = np.array([0, 1])
        kept = X[:, 1:] * [1.0, 1 / (1 + self.strength)]
        self.model_ = LogisticRegression().fit(kept, y)
        return self

    def predict_proba(self, X: Any) -> Any:
        self.calls.append(("score", self.strength, self.seen_, frozenset(X[:, 0].astype(int).tolist())))
        found: Any = self.model_.predict_proba(X[:, 1:] * [1.0, 1 / (1 + self.strength)])
        return found

    def predict(self, X: Any) -> Any:
        return (self.model_.predict_proba(X[:, 1:] * [1.0, 1 / (1 + self.strength)])[:, 1] >= 0.5).astype(int)


def front_of(estimator: Any = None, features: Any = X, **more: Any) -> Any:
    given = {"sensitive_features": {"sex": A}, "strengths": [0.0, 1.0, 8.0], "random_state": 0, "search": FIVE}
    return frontier(estimator or FairClassifier(model="linear"), features, Y, **{**given, **more})


@pytest.fixture
def calls() -> Iterator[list[Any]]:
    Recorder.calls.clear()
    yield Recorder.calls
    Recorder.calls.clear()


@pytest.mark.parametrize("folds", [None, 3])
def test_no_row_is_scored_by_a_model_that_saw_it_but_for_training_figures(calls: list[Any], folds: int | None) -> None:
    front_of(Recorder(), ROWS, search=SearchOptions(test_folds=5, folds=folds))
    everyone = frozenset(range(N))
    apart = [(seen, scored) for _, _, seen, scored in calls if seen != everyone]
    assert all(not seen & scored for seen, scored in apart)
    assert any(seen == everyone for _, _, seen, _ in calls)  # the models to use


@pytest.mark.parametrize("folds", [None, 3])
def test_every_row_is_a_test_row_once_for_every_strength(calls: list[Any], folds: int | None) -> None:
    front = front_of(Recorder(), ROWS, search=SearchOptions(test_folds=5, folds=folds))
    rows = [frozenset(fold.rows.tolist()) for fold in front.source.folds]
    assert sorted(row for fold in rows for row in fold) == list(range(N))
    for fold in rows:
        for strength in (0.0, 1.0, 8.0):
            (seen,) = {seen for _, value, seen, scored in calls if scored == fold and value == strength}
            assert not seen & fold
    # Whoever is validated for a fold was trained without it too, and on rows other than it.
    for fold in front.source.folds:
        inside = set(fold.rows.tolist())
        assert not inside & set(np.asarray(fold.evaluator.validation.X)[:, 0].astype(int).tolist())


def test_a_frame_marks_the_chosen_model() -> None:
    """Its figures are not those of the choice, which other models have."""
    front = front_of(Recorder(), ROWS)
    for limit in (0.55, 0.7, 1.0):
        model = front.select(max_unfairness=limit)
        frame = front.to_frame("pandas")
        assert frame["strength"][frame["chosen"]].tolist() == [model.strength]


def test_the_choice_of_a_fold_does_not_depend_on_its_rows() -> None:
    """Other features in one fold change the choice of the other folds at most; its own choice stays."""
    front = front_of(Recorder(), ROWS)
    fold = front.source.folds[0].rows
    features = ROWS.copy()
    features[fold, 1:] = RNG.normal(size=(len(fold), 2))
    other = frontier(
        Recorder(),
        features,
        Y,
        sensitive_features={"sex": A},
        strengths=[0.0, 1.0, 8.0],
        random_state=0,
        search=FIVE,
    )
    assert np.array_equal(other.source.folds[0].rows, fold)
    for limit in (0.55, 0.6, 0.7, 1.0):
        for one in (front, other):
            one.select(max_unfairness=limit)
        assert other.fold_choices[0] == front.fold_choices[0]
    mine, theirs = (one.source.folds[0].outcomes for one in (front, other))
    assert [one.validation for one in mine] == [one.validation for one in theirs]


@pytest.mark.extended
def test_pooled_figures_are_those_of_all_rows() -> None:
    front = front_of()
    for point in front.points:
        scores = np.full(N, np.nan)
        for fold in front.source.folds:
            places = [int(np.flatnonzero((row == X).all(1))[0]) for row in fold.evaluator.training.X]
            model = FairClassifier(point.strength, model="linear", random_state=0)
            model.fit(X[places], Y[places], sensitive_features=A[places])
            scores[fold.rows] = model.predict_proba(X[fold.rows])[:, 1]
        assert point.unfairness == pytest.approx(ks_2samp(scores[A == "f"], scores[A == "m"]).statistic, abs=1e-9)
        assert point.accuracy == pytest.approx(accuracy_score(Y, scores >= 0.5))
        assert point.more["auc"] == pytest.approx(roc_auc_score(Y, scores))
        assert point.intervals["unfairness"].low < point.unfairness < point.intervals["unfairness"].high


@pytest.mark.extended
def test_figures_of_the_choice_are_those_of_its_held_out_scores() -> None:
    front = front_of(utility="auc")
    model = front.select(max_unfairness=0.4)
    held_out = front.held_out("pandas")
    assert held_out["row"].tolist() == list(range(N))
    score, label, sex = held_out["probability"], held_out["label"], held_out["sex"]
    assert front.chosen.more["auc"] == pytest.approx(roc_auc_score(label, score))
    gap = ks_2samp(score[sex == "f"], score[sex == "m"]).statistic
    assert front.chosen.unfairness == pytest.approx(gap)
    (finding,) = (
        one
        for one in audit(None, score, sensitive_features=sex, metrics=["kolmogorov"], random_state=0).findings
        if one.metric == "kolmogorov"
    )
    assert finding.value == pytest.approx(gap)
    none = front.points[0]
    assert front.change.utility == pytest.approx(front.chosen.more["auc"] - none.more["auc"])
    assert front.change.unfairness == pytest.approx(gap - none.unfairness)
    whole = FairClassifier(model.strength, model="linear", random_state=0).fit(X, Y, sensitive_features=A)
    assert model.predict_proba(X) == pytest.approx(whole.predict_proba(X), abs=1e-6)
    assert front.refit().predict_proba(X) == pytest.approx(model.predict_proba(X), abs=1e-6)


@pytest.mark.extended
def test_intervals_cover_the_distance_between_the_populations() -> None:
    """Scores of two models on two halves: the truth is the distance of the mixtures, known by 200,000 rows."""
    from metrifair.figures.utility import Predictions  # noqa: PLC0415
    from metrifair.tradeoff.evaluate import Evaluator, resampled_interval  # noqa: PLC0415
    from metrifair.tradeoff.split import data_set  # noqa: PLC0415

    def drawn(rng: Any, rows: int) -> tuple[Any, Any, Any]:
        group, fold = np.arange(rows) % 4 == 0, np.arange(rows) // 4 % 2
        score = rng.normal(size=rows) * (1 + 0.3 * fold) + 0.5 * group + 0.2 * fold * group
        return group.astype(int), fold, 1 / (1 + np.exp(-score))

    group, _, score = drawn(np.random.default_rng(0), 200_000)
    truth = ks_2samp(score[group == 0], score[group == 1]).statistic
    covered, tries = 0, 100
    for seed in range(1, tries + 1):
        rng = np.random.default_rng(seed)
        group, fold, score = drawn(rng, 400)
        label = (rng.random(400) < score).astype(int)
        data = data_set(
            score[:, None], label, group, None, regression=False, criterion="statistical_parity", contrast="pairs"
        )
        part = data.held_out(np.arange(400))
        found = Predictions(score, (score >= 0.5).astype(int), "probability")
        resampled = Evaluator(part, part, part, part, test_fold=fold).resampled(found)
        interval = resampled_interval(resampled, ks_2samp(score[group == 0], score[group == 1]).statistic)
        covered += interval.low <= truth <= interval.high
    assert covered >= 93


@pytest.mark.extended
def test_automatic_folds_are_for_groups_of_few_test_rows() -> None:
    few = front_of(search=None)
    assert few.test_folds == 5
    assert few.points == front_of().points
    assert front_of(search=None, test=0.25).test_folds == 0
    assert front_of(search=None, strengths="auto").test_folds == 0
    rng = np.random.default_rng(0)
    sex, x = np.arange(1700) % 2, rng.normal(size=(1700, 1))
    y = (x[:, 0] > 0).astype(int)
    fair = FairClassifier(model="linear", weight_decay=1e-3)
    given = {"strengths": [0.0], "random_state": 0}
    assert frontier(fair, x, y, sensitive_features=sex, **given).test_folds == 0
    assert frontier(fair, x[:1500], y[:1500], sensitive_features=sex[:1500], **given).test_folds == 5


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"test": 0.25}, "^test cannot be combined with test_folds: .* not both; leave test or test_folds out$"),
        ({"strengths": "auto"}, "^strengths cannot be combined with test_folds: 'auto' adds strengths"),
        (
            {"search": SearchOptions(test_folds=5, ledger="runs.db")},
            "^ledger cannot be combined with test_folds: a ledger",
        ),
        ({"validation": 0.9}, "^validation must be a share above 0 that leaves rows for training and test folds"),
        ({"validation": 0.0}, "^validation must be a share above 0"),
    ],
)
def test_what_test_folds_cannot_do_is_refused_in_words(more: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        front_of(**more)


@pytest.mark.extended
def test_other_refusals_name_what_to_do() -> None:
    with pytest.raises(DataError, match=r"^test_folds needs models to train, .*; leave test_folds out$"):
        front_of([LogisticRegression().fit(X, Y)])
    with pytest.raises(TooFewSamples, match=r"^test_folds must be at most .* as every fold needs rows of every label"):
        front_of(search=SearchOptions(test_folds=200))
    front = front_of()
    with pytest.raises(DataError, match=r"^certified needs one split, .*; make the frontier with test=0.25$"):
        front.select(max_unfairness=0.9, certified=True)


@pytest.mark.extended
def test_seeds_families_folds_weights_and_numbers_work(tmp_path: Path) -> None:
    linear = FairClassifier(model="linear")
    families = {"linear": linear, "moved": BarycenterPostprocessor(linear)}
    search = SearchOptions(test_folds=2, tolerances=[0.0, 1.0])
    several = front_of(families, strengths=[0.0, 3.0], search=search)
    assert several.select(max_unfairness=0.9, needs_group=True).tolerance in (0.0, 1.0)
    assert several.chosen.needs_group
    assert several.held_out("pandas").shape[0] == N
    seeds = front_of(FairClassifier(epochs=2), search=SearchOptions(test_folds=2, seeds=2), strengths=[0.0])
    assert [point.seed for point in seeds.points] == [0, 1]
    weighted = front_of(sample_weight=np.where(np.arange(N) % 3, 1.0, 2.0), search=SearchOptions(test_folds=2))
    weighted.select(max_unfairness=0.9)
    assert not weighted.chosen.intervals
    assert not weighted.change.intervals
    number = frontier(
        FairRegressor(model="linear"),
        X,
        X.sum(1) + RNG.normal(size=N),
        sensitive_features=A,
        strengths=[0.0, 0.1],
        random_state=0,
        search=SearchOptions(test_folds=3),
    )
    number.select(max_unfairness=1.0, utility="mean_absolute_error")
    assert number.chosen.more["mean_absolute_error"] > 0
    front = front_of()
    front.select(max_unfairness=0.5)
    front.save(tmp_path / "front.metrifair")
    again = load(tmp_path / "front.metrifair")
    kept = ("points", "chosen", "change", "fold_choices", "test_folds")
    assert [getattr(again, name) for name in kept] == [getattr(front, name) for name in kept]
    assert again.summary() == front.summary()


def test_a_model_that_fails_without_one_fold_is_a_failed_point() -> None:
    front = front_of(Recorder(without=0), ROWS)
    assert [point.failed for point in front.points] == [False, True, True]
    assert front.select(max_unfairness=1.0).strength == 0.0


@pytest.mark.extended
def test_a_choice_by_costs_is_made_in_every_fold_too() -> None:
    costs = [[0.0, 1.0], [1.1, 0.0]]
    late = front_of()
    late.select(max_unfairness=1.0, utility=costs)
    early = front_of(utility=costs)
    early.select(max_unfairness=1.0)
    assert late.fold_choices == early.fold_choices
    assert late.chosen.more["expected_cost"] == pytest.approx(early.chosen.more["expected_cost"])


@pytest.mark.extended
def test_page_and_summary_say_that_the_model_is_fitted_on_all_rows(tmp_path: Path) -> None:
    front = front_of()
    front.select(max_unfairness=0.5)
    front.to_html(tmp_path / "page.html")
    said = "The models to use were fitted on all rows."
    assert said in front.summary()
    assert said in (tmp_path / "page.html").read_text()
    model, choice, verdict = front.summary().splitlines()[:3]
    assert model.startswith("Chosen: strength ")
    assert "compared with no penalty, accuracy is " in choice
    assert verdict.startswith("The choice ")
    assert isinstance(front.chosen, Point)
