"""Post-processing of class probabilities to (nearly) equal rates in all groups, at least cost
(Xian et al. 2023).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.sparse import coo_array, kron
from sklearn.base import ClassifierMixin

from metrifair.baselines.baseline import PublishedPostprocessor
from metrifair.postprocessing.rates import cheapest_rates, parity_program
from metrifair.problem.tables import Table
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_number, check_switches

_TIE = 1e-9  # smaller probabilities in the solution of a linear program count as 0


@dataclass(kw_only=True, eq=False, repr=False)
class XianPostprocessor(ClassifierMixin, PublishedPostprocessor):
    """Post-processing of a classifier: rates that differ by at most alpha between groups, with
    minimum expected error.

    The limit holds on the training rows. Prediction needs the groups. Two classes take O(n log n),
    more classes a linear program. The method supports statistical parity only.

    Parameters
    ----------
    estimator : classifier, default=None
        Estimator to use: a classifier with ``predict_proba``. None is a linear model,
        ``FairClassifier(0)``.
    alpha : float, default=0.0
        Largest difference between rates. Infinity keeps the estimator's decisions.
    randomized : bool, default=False
        Whether predictions are randomized. If True, rows on the margin receive random labels, so
        that rates are exact even if scores are tied. Every call of ``predict`` draws new labels, so
        the label of a row may change.
    prefit : bool, default=False
        Whether the estimator is already fitted. ``fit`` then needs no labels.
    folds : int, default=1
        Number of cross-validation folds that predict held-out rows. 1 uses the estimator's
        probabilities of its training rows.
    random_state : int, NumPy generator or None, default=None
        Seed of the default network, the folds and the labels drawn since ``fit``.

    Attributes
    ----------
    base_ : classifier
        The fitted estimator.
    thresholds_ : ndarray of shape (n_groups,)
        Two classes: the score of the later class above which each group is accepted.
    offsets_ : ndarray of shape (n_groups, n_classes)
        More classes: offsets that are added to twice the probabilities, by group, before the
        largest is taken.
    rates_ : ndarray of shape (n_groups, n_classes)
        Rate of each class by group, on the rows fitted on.
    cost_ : float
        Expected error there.
    classes_, groups_ : ndarray, tuple
        The classes and the groups that ``fit`` saw.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y, sex = np.arange(8.0)[:, None], [0, 0, 1, 0, 1, 1, 1, 1], list("ffffmmmm")
    >>> [XianPostprocessor(LogisticRegression(), alpha=alpha).fit(X, y, sensitive_features=sex)
    ...     .predict(X, sensitive_features=sex).tolist() for alpha in (1, 0.25, 0)]
    [[0, 0, 0, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 0, 1, 1, 1]]
    """

    estimator: Any = field(default=None, kw_only=False)
    alpha: float = 0.0
    randomized: bool = False
    prefit: bool = False
    folds: int = 1
    random_state: Any = None

    score = PublishedPostprocessor.score  # scikit-learn's mixin predicts without groups

    def _check_parameters(self) -> None:
        if self.alpha != inf:
            check_number("alpha", self.alpha, low=0)
        check_switches(randomized=self.randomized)

    def _learn(self, _: Table, scores: Floats, group: Integers) -> None:
        """Compute the decision rule of each group from scores of rows with known groups."""
        codes = range(len(self.groups_))
        two = scores.shape[1] == 2
        # One for the class of each row without a constraint: of two, the later if its probability
        # is above one half.
        free = np.eye(scores.shape[1])[
            (scores[:, 1] > 0.5).astype(int) if two else scores.argmax(1)
        ]
        self.rates_ = np.stack([free[group == code].mean(0) for code in codes])
        self.offsets_ = np.zeros(self.rates_.shape)
        self.thresholds_ = np.full(len(codes), 0.5)
        self.cost_ = float((free * (1 - scores)).sum() / len(scores))
        self.drawn_: dict[tuple[int, ...], Floats] = {}
        if np.ptp(self.rates_, axis=0).max() <= self.alpha:
            return
        assigned = (
            binary_assignment(scores[:, 1], group, self.alpha)
            if two
            else assignment(scores, group, self.alpha)
        )
        _, self.rates_, self.cost_ = assigned
        for code in codes:
            part = scores[group == code]
            chance = assigned.probability[group == code]
            if two:
                self.thresholds_[code] = threshold(part[:, 1], chance[:, 1])
            else:
                self.offsets_[code] = offsets(part, chance)
            for row in np.flatnonzero(chance.max(1) < 1):
                self.drawn_[_key(code, part[row])] = chance[row]

    def predict(self, X: Table, *, sensitive_features: Table) -> NDArray[Any]:
        """The class of each row, which depends on its group; with ``randomized``, drawn at the
        margin at each call.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as the estimator takes them.
        sensitive_features : array-like of shape (n_samples,)
            The group of each sample: one of the groups of the training rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        group = self._groups(X, sensitive_features)
        scores = self._scores(self.base_, X, sensitive_features)
        if scores.shape[1] == 2:
            codes = (scores[:, 1] > self.thresholds_[group]).astype(int)
        else:
            codes = (2 * scores + self.offsets_[group]).argmax(1)
        if self.randomized and self.drawn_:
            for row, (code, score) in enumerate(zip(group.tolist(), scores, strict=True)):
                chance = self.drawn_.get(_key(code, score))
                if chance is not None:  # on the margin
                    codes[row] = self.generator_.choice(len(chance), p=chance)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = bool(self.randomized)
        return tags


def _key(code: int, score: Floats) -> tuple[int, ...]:
    """A key for rows of one group and score, independent of other rows."""
    return (code, *(score * 1e9).round().astype(int).tolist())


class Assignment(NamedTuple):
    """The probability of each class for each row, the resulting rates, and the expected error."""

    probability: Floats  # (n, classes)
    rates: Floats  # (groups, classes)
    cost: float


def binary_rates(score: Floats, group: Integers, alpha: float) -> Floats:
    """Each group's rate of acceptance: the cheapest that differ by at most alpha.

    The cost of accepting a share of one group, the best first, is a convex, piecewise linear curve.

    >>> score, group = np.array([0.9, 0.6, 0.3, 0.1, 0.8, 0.7, 0.55, 0.2]), np.repeat([0, 1], 4)
    >>> binary_rates(score, group, 0.1)
    array([0.5, 0.6])
    """
    members = [score[group == code] for code in range(group.max() + 1)]
    favored = np.array([float((part > 0.5).mean()) for part in members])  # the cheapest shares
    # share accepted when the first k rows are
    rates = [np.arange(len(part) + 1) / len(part) for part in members]
    costs = [
        (part.sum() + np.append(0.0, np.cumsum(1 - 2 * np.sort(part)[::-1]))) / len(part)
        for part in members
    ]
    return cheapest_rates(rates, costs, np.bincount(group) / len(group), favored, alpha)


def accepted(score: Floats, rate: float) -> Floats:
    """Probability of acceptance if the best ``rate`` of the rows are accepted: equal scores
    share the rest.
    """
    _, place, counts = np.unique(-score, return_inverse=True, return_counts=True)
    before = np.cumsum(counts) - counts
    share = (rate * len(score) - before) / counts
    near = np.abs(share - share.round()) < 1e-9  # a rate of k / n accepts k rows whole
    share = np.where(near, share.round(), share)
    return share.clip(0, 1)[place]


def threshold(score: Floats, probability: Floats) -> float:
    """Midpoint of the largest score rejected and the smallest accepted; one that is both is the
    threshold.
    """
    inside = score[probability > 0]
    outside = score[probability < 1]
    if not len(outside):
        return -np.inf
    return float((inside.min() + outside.max()) / 2) if len(inside) else np.inf


def binary_assignment(score: Floats, group: Integers, alpha: float) -> Assignment:
    """The optimal randomized decisions for two classes, in O(n log n)."""
    rates = binary_rates(score, group, alpha)
    probability = np.empty(len(score))
    for code, rate in enumerate(rates):
        in_group = group == code
        probability[in_group] = accepted(score[in_group], rate)
    by_class = np.stack([1 - probability, probability], axis=1)
    cost = _cost(np.stack([1 - score, score], axis=1), by_class)
    return Assignment(by_class, np.stack([1 - rates, rates], axis=1), cost)


def assignment(scores: Floats, group: Integers, alpha: float) -> Assignment:
    """The optimal randomized decisions for any number of classes, by a linear program over the
    distinct rows.
    """
    n, classes = scores.shape
    groups = int(group.max()) + 1
    atoms, place, counts = np.unique(
        np.column_stack([group, scores]), axis=0, return_inverse=True, return_counts=True
    )
    place = place.ravel()
    atom_group = atoms[:, 0].astype(int)
    m = len(atoms)
    mass = counts / np.bincount(group)[atom_group]
    mean_by_group = coo_array((mass, (atom_group, np.arange(m))), shape=(groups, m))
    rates = kron(mean_by_group, np.eye(classes))
    window = coo_array(np.kron(np.ones((groups, 1)), np.eye(classes)))
    sums = coo_array(
        (np.ones(m * classes), (np.repeat(np.arange(m), classes), np.arange(m * classes)))
    )
    loss = (counts[:, None] * (1 - atoms[:, 1:])).ravel() / n
    solution = parity_program(loss, rates, window, alpha, sums=sums)
    solved = solution.x[: m * classes].reshape(m, classes)
    solved = np.where(solved > _TIE, solved, 0.0)
    solved /= solved.sum(1, keepdims=True)
    probability = solved[place]
    return Assignment(probability, mean_by_group @ solved, _cost(scores, probability))


def offsets(scores: Floats, probability: Floats) -> Floats:
    """Offsets of the classes such that the largest 2 x score + offset is the class assigned; -inf
    for unused classes.

    Each row requires that its class beat the others; among all offsets that achieve it, those of
    least squared slack.
    """
    used = np.flatnonzero((probability > 0).any(0))
    pairs = [(i, j) for i in used for j in used if i != j]
    values = np.full(scores.shape[1], -np.inf)
    values[used] = 0.0
    if not pairs:
        return values
    bounds = np.array(
        [(scores[:, j] - scores[:, i])[probability[:, i] > 0].max() for i, j in pairs]
    )
    differences = np.array(
        [(used == j).astype(float) - (used == i).astype(float) for i, j in pairs]
    )
    beyond = np.eye(len(pairs)) - differences @ np.linalg.pinv(differences)
    # Slacks s >= 0 with bounds + s a difference of levels; the small weight picks the shortest of
    # them.
    slack, _ = nnls(
        np.vstack([beyond, 1e-6 * np.eye(len(pairs))]),
        np.append(-beyond @ bounds, np.zeros(len(pairs))),
    )
    levels = np.linalg.lstsq(differences, bounds + slack, rcond=None)[0]
    values[used] = 2 * (levels[0] - levels)
    return values


def _cost(scores: Floats, probability: Floats) -> float:
    return float((probability * (1 - scores)).sum() / len(scores))
