"""Models chosen by folds: whoever says something of a row has not seen it, and the figures are those made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from metrifair import FairClassifier, SearchOptions
from metrifair.errors import DataError, Diverged, TooFewSamples
from metrifair.tradeoff.split import data_set, split_in_folds
from tests.one_split import frontier

RNG = np.random.default_rng(3)
N = 160
A = RNG.integers(2, size=N)
X = RNG.normal(size=(N, 2)) + A[:, None]
Y = (X.sum(1) + RNG.normal(size=N) > 1).astype(int)
ROWS = np.column_stack([np.arange(N), X])
DATA = data_set(X, Y, A, None, regression=False, criterion="statistical_parity", contrast="pairs")


class ByHeart(ClassifierMixin, BaseEstimator):
    """Knows the labels of the rows that it was shown, whose numbers stand in the first column; else it says no."""

    fits: ClassVar[list[frozenset[int]]] = []

    def __init__(self, strength: float = 0.0, *, needs: int = -1) -> None:
        self.strength, self.needs = strength, needs

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> ByHeart:
        self.known_ = dict(zip(X[:, 0].astype(int), y, strict=True))
        self.fits.append(frozenset(self.known_))
        if self.needs >= 0 and self.strength > 0 and self.needs not in self.known_:
            raise Diverged("a row is missing")
        return self

    def predict(self, X: Any) -> Any:
        return np.array([self.known_.get(int(row), 0) for row in X[:, 0]])


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_folds_are_apart_alike_and_all_rows_but_those_of_the_test(count: int, seed: int) -> None:
    split, folds = split_in_folds(DATA, count, 0.25, seed)
    assert len(folds) == count
    assert np.array_equal(np.concatenate(folds), split.validation)
    assert np.array_equal(np.sort(split.validation), split.train)
    assert sorted([*split.train, *split.test]) == list(range(N))
    for kind in ((a == A) & (y == Y) for a in (0, 1) for y in (0, 1)):
        numbers = [int(kind[fold].sum()) for fold in folds]
        assert max(numbers) - min(numbers) <= 1
    assert not np.array_equal(split_in_folds(DATA, count, 0.25, seed + 1)[0].validation, split.validation)


def test_no_model_says_anything_of_a_row_that_it_was_trained_on() -> None:
    ByHeart.fits.clear()
    front = frontier(
        ByHeart(), ROWS, Y, sensitive_features=A, strengths=[0.0, 1.0], random_state=0, search=SearchOptions(folds=4)
    )
    split, folds = split_in_folds(DATA, 4, 0.25, 0)
    rest = set(split.train.tolist())
    assert ByHeart.fits == [rest - set(fold.tolist()) for fold in folds for _ in range(2)] + [rest] * 2
    for point, seen in zip(front.validation_points, front.outcomes, strict=True):
        assert point.accuracy == pytest.approx(np.mean(Y[split.train] == 0))
        assert seen.training is not None
        assert seen.training.accuracy == 1.0
    assert front.notes[0].facts == {"training": 120, "validation": 120, "test": 40, "folds": 4}
    assert front.view().notes[0] == ("120 training rows, 4-fold cross-validation to choose a model, 40 test rows.")


@pytest.mark.extended
def test_figures_are_those_of_all_folds_together() -> None:
    fair = FairClassifier(model="linear")
    front = frontier(
        fair, X, Y, sensitive_features=A, strengths=[0.0, 3.0], random_state=0, search=SearchOptions(folds=3)
    )
    split, folds = split_in_folds(DATA, 3, 0.25, 0)
    for point, test in zip(front.validation_points, front.points, strict=True):
        model = FairClassifier(point.strength, model="linear", random_state=point.seed)
        said = np.empty(N)
        for fold in folds:
            others = np.setdiff1d(split.train, fold)
            model.fit(X[others], Y[others], sensitive_features=A[others])
            said[fold] = model.predict_proba(X[fold])[:, 1]
        model.fit(X[split.train], Y[split.train], sensitive_features=A[split.train])
        said[split.test] = model.predict_proba(X[split.test])[:, 1]
        for found, rows in ((point, split.train), (test, split.test)):
            own, score = A[rows], said[rows]
            assert found.unfairness == pytest.approx(ks_2samp(score[own == 0], score[own == 1]).statistic, abs=1e-9)
            assert found.accuracy == pytest.approx(np.mean((score >= 0.5) == Y[rows]))
        assert not point.intervals
        assert test.intervals
    costs = [[0.0, 1.0], [1.1, 0.0]]
    chosen = front.select(max_unfairness=1.0, utility=costs)
    asked = frontier(
        fair,
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0, 3.0],
        utility=costs,
        random_state=0,
        search=SearchOptions(folds=3),
    )
    assert asked.select(max_unfairness=1.0).strength == chosen.strength
    assert [one.more for one in asked.validation_points] == [one.more for one in front.validation_points]


def test_a_ledger_keeps_what_folds_told_and_other_folds_are_another_run(tmp_path: Path) -> None:
    def swept(folds: int, seeds: int) -> Any:
        return frontier(
            ByHeart(),
            ROWS,
            Y,
            sensitive_features=A,
            strengths=[0.0, 1.0],
            random_state=0,
            search=SearchOptions(seeds=seeds, folds=folds, ledger=tmp_path / "ledger.db"),
        )

    ByHeart.fits.clear()
    first = swept(2, 1)
    assert len(ByHeart.fits) == 6
    assert swept(2, 1).validation_points == first.validation_points
    assert len(ByHeart.fits) == 6
    assert swept(2, 2).validation_points[:2] == first.validation_points
    assert len(ByHeart.fits) == 12
    swept(3, 1)
    assert len(ByHeart.fits) == 20
    fair = FairClassifier(model="linear")
    search = SearchOptions(folds=2, ledger=tmp_path / "ours.db")
    more = {"sensitive_features": A, "strengths": [0.0], "search": search}
    frontier(fair, X, Y, random_state=0, **more)
    again = frontier(fair, X, Y, random_state=0, **more)
    with pytest.raises(DataError, match="the ledger stores figures of folds, not scores; make the frontier with this"):
        again.select(max_unfairness=1.0, utility=[[0.0, 1.0], [1.1, 0.0]])


def test_a_model_that_fails_on_one_fold_is_not_chosen() -> None:
    needed = int(split_in_folds(DATA, 3, 0.25, 0)[0].train[0])
    front = frontier(
        ByHeart(needs=needed),
        ROWS,
        Y,
        sensitive_features=A,
        strengths=[0.0, 1.0],
        random_state=0,
        search=SearchOptions(folds=3),
    )
    assert [point.failed for point in front.validation_points] == [False, True]


def test_what_folds_do_not_give_is_refused() -> None:
    front = frontier(
        FairClassifier(model="linear"),
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0],
        random_state=0,
        search=SearchOptions(folds=2),
    )
    with pytest.raises(DataError, match=r"certified needs one split, .* without folds, weights"):
        front.select(max_unfairness=0.9, certified=True)
    with pytest.raises(DataError, match=r"^folds needs models to train, and these are fitted; leave folds out$"):
        frontier(
            [LogisticRegression().fit(X, Y)], X, Y, sensitive_features=A, random_state=0, search=SearchOptions(folds=3)
        )
    with pytest.raises(
        TooFewSamples, match=r"^folds must be at most \d+, as every fold needs rows of every label, got 100"
    ):
        frontier(FairClassifier(), X, Y, sensitive_features=A, random_state=0, search=SearchOptions(folds=100))
    with pytest.raises(DataError, match=r"^test must be a share above 0 that leaves rows for training, got 1.0$"):
        frontier(FairClassifier(), X, Y, sensitive_features=A, test=1.0, random_state=0, search=SearchOptions(folds=3))
