"""Post-processing of class probabilities to equal rates in all groups (Xian et al. 2023)."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state

from metrifair.checks import check_switches
from metrifair.errors import DataError
from metrifair.estimators import FairClassifier
from metrifair.methods.inputs import Floats, Integers, check_number
from metrifair.methods.parity import Assignment, assignment, binary_assignment, offsets, threshold
from metrifair.methods.wrapping import asked, checked_groups, fitted_base, with_base_tags
from metrifair.problem.tables import Table


class XianPostprocessor(ClassifierMixin, BaseEstimator):
    """Decisions with rates that differ by at most alpha between groups, at the least expected error.

    The rates are those of the rows the post-processor is fitted on; new rows need their groups to be decided. Two
    classes take O(n log n), more a linear program. Statistical parity only.

    Parameters
    ----------
    estimator : a classifier with ``predict_proba``; None is our network, ``FairClassifier(0)``.
    alpha : largest difference of the rates; infinity leaves the estimator's decisions as they are.
    randomized : draw the label of a row on the margin, so that rates are met exactly where scores are tied. Each call
        of ``predict`` draws on, whether it is given one row or all: a row may get another label the next time.
    prefit : the estimator is fitted already; ``fit`` then needs no labels.
    holdout : share of the rows that the estimator does not see and the post-processor is fitted on; 0: both see all.
    random_state : seed of the default network, of the rows held out and of the labels drawn since ``fit``.

    Attributes
    ----------
    thresholds_ : two classes: the score of the later class above which each group is accepted.
    offsets_ : more classes: what is added to twice the probabilities, by group, before the largest is taken.
    rates_ : rate of each class by group, on the rows fitted on; cost_ : expected error there.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y, sex = np.arange(8.0)[:, None], [0, 0, 1, 0, 1, 1, 1, 1], list("ffffmmmm")
    >>> [XianPostprocessor(LogisticRegression(), alpha=alpha).fit(X, y, sensitive_features=sex)
    ...     .predict(X, sensitive_features=sex).tolist() for alpha in (1, 0.25, 0)]
    [[0, 0, 0, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 0, 1, 1, 1]]
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        alpha: float = 0.0,
        randomized: bool = False,
        prefit: bool = False,
        holdout: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.randomized = randomized
        self.prefit = prefit
        self.holdout = holdout
        self.random_state = random_state

    def fit(self, X: Table, y: Table | None = None, *, sensitive_features: Table) -> Self:
        """Fit the estimator, unless it is fitted already, and then what its probabilities need."""
        if self.alpha != inf:
            check_number("alpha", self.alpha, low=0)
        check_switches(randomized=self.randomized)
        default = partial(FairClassifier, 0.0, random_state=self.random_state)
        base, rows, their_features, group = fitted_base(self, default, X, y, sensitive_features)
        scores = probabilities(asked(base.predict_proba, rows, their_features))
        self._calibrate(scores, group)
        self.base_, self.classes_ = base, base.classes_
        self.generator_ = check_random_state(self.random_state)
        return self

    def _calibrate(self, scores: Floats, group: Integers) -> None:
        """Decide how groups are to be treated, from the scores of rows of known groups."""
        codes = range(len(self.groups_))
        two = scores.shape[1] == 2
        free = _favourites(scores)
        self.rates_ = np.stack([free[group == code].mean(0) for code in codes])
        self.offsets_ = np.zeros(self.rates_.shape)
        self.thresholds_ = np.full(len(codes), 0.5)
        self.cost_ = float((free * (1 - scores)).sum() / len(scores))
        self.drawn_: dict[tuple[int, ...], Floats] = {}
        if np.ptp(self.rates_, axis=0).max() <= self.alpha:
            return
        found: Assignment = (
            binary_assignment(scores[:, 1], group, self.alpha) if two else assignment(scores, group, self.alpha)
        )
        _, self.rates_, self.cost_ = found
        for code in codes:
            own, chance = scores[group == code], found.probability[group == code]
            if two:
                self.thresholds_[code] = threshold(own[:, 1], chance[:, 1])
            else:
                self.offsets_[code] = offsets(own, chance)
            for row in np.flatnonzero(chance.max(1) < 1):
                self.drawn_[_key(code, own[row])] = chance[row]

    def predict(self, X: Table, *, sensitive_features: Table) -> NDArray[Any]:
        """The class of each row, which depends on its group; with ``randomized``, drawn anew at the margin."""
        group = checked_groups(self, X, sensitive_features)
        scores = probabilities(asked(self.base_.predict_proba, X, sensitive_features))
        if scores.shape[1] == 2:
            chosen = (scores[:, 1] > self.thresholds_[group]).astype(int)
        else:
            chosen = (2 * scores + self.offsets_[group]).argmax(1)
        if self.randomized and self.drawn_:
            chosen = self._redrawn(chosen, scores, group)
        predicted: NDArray[Any] = self.classes_[chosen]
        return predicted

    def score(
        self, X: Table, y: Table, *, sensitive_features: Table = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Accuracy of the predictions, for which the groups are needed.

        A search by cross-validation hands them on where metadata routing is enabled and
        ``set_score_request(sensitive_features=True)`` has asked for them.
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = with_base_tags(super().__sklearn_tags__(), self.estimator)
        tags.non_deterministic = bool(self.randomized)
        return tags

    def _redrawn(self, chosen: NDArray[Any], scores: Floats, group: Integers) -> NDArray[Any]:
        """Labels with those of rows on the margin replaced by a draw."""
        drawn = chosen.copy()
        for row, (code, score) in enumerate(zip(group.tolist(), scores, strict=True)):
            chance = self.drawn_.get(_key(code, score))
            if chance is not None:
                drawn[row] = self.generator_.choice(len(chance), p=chance)
        return drawn


def probabilities(found: NDArray[Any]) -> Floats:
    """Class probabilities (n, classes) from what ``predict_proba`` gave; one column is that of the later class."""
    scores = np.asarray(found, dtype=np.float64)
    if scores.ndim == 1:
        scores = np.stack([1 - scores, scores], axis=1)
    if not np.isfinite(scores).all() or scores.min() < 0 or scores.max() > 1:
        raise DataError("the estimator's predict_proba must give probabilities from 0 to 1")
    if np.abs(scores.sum(1) - 1).max() > 1e-6:
        raise DataError("the rows of the estimator's predict_proba must sum to one")
    return np.ascontiguousarray(scores)


def _key(code: int, score: Floats) -> tuple[int, ...]:
    """A name for rows of one group and score, the same whichever rows are scored together."""
    return (code, *(score * 1e9).round().astype(int).tolist())


def _favourites(scores: Floats) -> Floats:
    """One for the class each row would get without any constraint: of two, the later where it has more than half."""
    chosen = (scores[:, 1] > 0.5).astype(int) if scores.shape[1] == 2 else scores.argmax(1)
    favourites: Floats = np.eye(scores.shape[1])[chosen]
    return favourites
