"""Post-processing of class probabilities to (nearly) equal rates in all groups, at least cost
(Xian et al. 2023).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
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
from metrifair.support.arrays import AnyFloats, Floats, Integers
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
        Seed of the default model, the folds and the labels drawn since ``fit``.

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
        classes = scores.shape[1]
        two = classes == 2
        unconstrained = _most_probable(scores)
        each_class = np.eye(classes)
        free = each_class[unconstrained]
        by_group = [free[group == code] for code in codes]
        rates = [part.mean(0) for part in by_group]
        self.rates_ = np.stack(rates)
        self.offsets_ = np.zeros_like(self.rates_)
        self.thresholds_ = np.full(len(codes), 0.5)
        self.cost_ = _cost(scores, free)
        self.drawn_: dict[tuple[int, ...], Floats] = {}
        differences = np.ptp(self.rates_, axis=0)
        if differences.max() <= self.alpha:
            return
        if two:
            assigned = binary_assignment(scores[:, 1], group, self.alpha)
        else:
            assigned = assignment(scores, group, self.alpha)
        self.rates_ = assigned.rates
        self.cost_ = assigned.cost
        for code in codes:
            in_group = group == code
            part = scores[in_group]
            chance = assigned.probability[in_group]
            if two:
                later_score = part[:, 1]
                later_chance = chance[:, 1]
                self.thresholds_[code] = threshold(later_score, later_chance)
            else:
                self.offsets_[code] = offsets(part, chance)
            largest_chance = chance.max(1)
            on_margin = np.flatnonzero(largest_chance < 1)
            for row in on_margin:
                key = _key(code, part[row])
                self.drawn_[key] = chance[row]

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
            thresholds = self.thresholds_[group]
            is_accepted = scores[:, 1] > thresholds
            codes = is_accepted.astype(int)
        else:
            row_offsets = self.offsets_[group]
            shifted = 2 * scores + row_offsets
            codes = shifted.argmax(1)
        if self.randomized and self.drawn_:
            self._draw_at_margin(codes, group, scores)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def _draw_at_margin(self, codes: Integers, group: Integers, scores: Floats) -> None:
        """Replace the codes of rows on the margin by random ones."""
        for row, code in enumerate(group.tolist()):
            key = _key(code, scores[row])
            chance = self.drawn_.get(key)
            if chance is not None:
                codes[row] = self.generator_.choice(len(chance), p=chance)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = bool(self.randomized)
        return tags


def _most_probable(scores: Floats) -> Integers:
    """The class of each row; of two, the later if its probability is above one half."""
    if scores.shape[1] > 2:
        largest: Integers = scores.argmax(1)
        return largest
    is_later = scores[:, 1] > 0.5
    return is_later.astype(int)


def _key(code: int, score: Floats) -> tuple[int, ...]:
    """A key for rows of one group and score, independent of other rows."""
    scaled = score * 1e9
    rounded = scaled.round()
    return (code, *rounded.astype(int).tolist())


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
    favored = []  # the cheapest shares
    rates = []
    costs = []
    sizes = np.bincount(group)
    for code, count in enumerate(sizes):
        part = score[group == code]
        is_favored = part > 0.5
        favored.append(float(is_favored.mean()))
        accepted_rows = np.arange(count + 1)
        rates.append(accepted_rows / count)
        ascending = np.sort(part)
        descending = ascending[::-1]
        changes = np.cumsum(1 - 2 * descending)
        changes_from_none = np.append(0.0, changes)
        total = part.sum() + changes_from_none
        costs.append(total / count)
    shares = sizes / len(group)
    cheapest = np.array(favored)
    return cheapest_rates(rates, costs, shares, cheapest, alpha)


def accepted(score: Floats, rate: float) -> Floats:
    """Probability of acceptance if the best ``rate`` of the rows are accepted: equal scores
    share the rest.
    """
    _, place, counts = np.unique(-score, return_inverse=True, return_counts=True)
    before = np.cumsum(counts) - counts
    places = rate * len(score)
    left = places - before
    share = left / counts
    whole = share.round()
    difference = np.abs(share - whole)
    near = difference < 1e-9  # a rate of k / n accepts k rows whole
    share = np.where(near, whole, share)
    chance = share.clip(0, 1)
    return chance[place]


def threshold(score: Floats, probability: Floats) -> float:
    """Midpoint of the largest score rejected and the smallest accepted; one that is both is the
    threshold.
    """
    inside = score[probability > 0]
    outside = score[probability < 1]
    if not len(outside):
        return -np.inf
    if not len(inside):
        return np.inf
    smallest_accepted = float(inside.min())
    largest_rejected = float(outside.max())
    return (smallest_accepted + largest_rejected) / 2


def binary_assignment(score: Floats, group: Integers, alpha: float) -> Assignment:
    """The optimal randomized decisions for two classes, in O(n log n)."""
    rates = binary_rates(score, group, alpha)
    probability = np.empty(len(score))
    for code, rate in enumerate(rates):
        in_group = group == code
        part = score[in_group]
        probability[in_group] = accepted(part, rate)
    by_class = _of_two_classes(probability)
    scores = _of_two_classes(score)
    return Assignment(
        probability=by_class,
        rates=_of_two_classes(rates),
        cost=_cost(scores, by_class),
    )


def _of_two_classes(later: Floats) -> Floats:
    """Probabilities of both classes, from those of the later one."""
    earlier = 1 - later
    return np.stack([earlier, later], axis=1)


def assignment(scores: Floats, group: Integers, alpha: float) -> Assignment:
    """The optimal randomized decisions for any number of classes, by a linear program over the
    distinct rows.
    """
    n, classes = scores.shape
    groups = int(group.max()) + 1
    rows = np.column_stack([group, scores])
    atoms, place, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    atom_codes = atoms[:, 0]
    atom_group = atom_codes.astype(int)
    atom_scores = atoms[:, 1:]
    m = len(atoms)
    numbers = np.arange(m)
    sizes = np.bincount(group)
    group_size = sizes[atom_group]
    mass = counts / group_size
    positions = (atom_group, numbers)
    mean_by_group = coo_array((mass, positions), shape=(groups, m))
    each_class = np.eye(classes)
    rates = kron(mean_by_group, each_class)
    class_by_group = np.tile(each_class, (groups, 1))
    window = coo_array(class_by_group)
    variables = m * classes
    places = np.arange(variables)
    ones = np.ones(variables)
    atom_of_place = np.repeat(numbers, classes)
    sums = coo_array((ones, (atom_of_place, places)))
    errors = 1 - atom_scores
    losses = counts[:, None] * errors
    loss = losses.ravel() / n
    solution = parity_program(loss, rates, window, alpha, sums=sums)
    assigned = solution.x[:variables]
    solved = assigned.reshape(m, classes)
    solved = np.where(solved > _TIE, solved, 0.0)
    solved /= solved.sum(1, keepdims=True)
    atom_of_row = place.ravel()
    probability = solved[atom_of_row]
    return Assignment(
        probability=probability,
        rates=mean_by_group @ solved,
        cost=_cost(scores, probability),
    )


def offsets(scores: Floats, probability: Floats) -> Floats:
    """Offsets of the classes such that the largest 2 x score + offset is the class assigned; -inf
    for unused classes.

    Each row requires that its class beat the others; among all offsets that achieve it, those of
    least squared slack.
    """
    is_assigned = probability > 0
    is_used = is_assigned.any(0)
    used = np.flatnonzero(is_used)
    values = np.full(scores.shape[1], -np.inf)
    values[used] = 0.0
    if len(used) < 2:
        return values
    bounds = []
    differences = []
    for won, lost in permutations(used, 2):
        margin = scores[:, lost] - scores[:, won]
        rows = is_assigned[:, won]
        required = margin[rows]
        bounds.append(required.max())
        is_lost = (used == lost).astype(float)
        is_won = (used == won).astype(float)
        differences.append(is_lost - is_won)
    levels = _levels(np.array(differences), np.array(bounds))
    values[used] = 2 * (levels[0] - levels)
    return values


def _levels(differences: Floats, bounds: Floats) -> AnyFloats:
    """Levels whose differences are at least the bounds, with least squared slack."""
    count = len(bounds)
    every_pair = np.eye(count)
    inverse = np.linalg.pinv(differences)
    projection = differences @ inverse
    beyond = every_pair - projection
    # Slacks s >= 0 with bounds + s a difference of levels; the small weight picks the shortest of
    # them.
    shortest = 1e-6 * every_pair
    equations = np.vstack([beyond, shortest])
    required = -beyond @ bounds
    zeros = np.zeros(count)
    results = np.append(required, zeros)
    slack, _ = nnls(equations, results)
    reached = bounds + slack
    levels, *_ = np.linalg.lstsq(differences, reached, rcond=None)
    return levels


def _cost(scores: Floats, probability: Floats) -> float:
    """The expected error of drawing classes with these probabilities."""
    errors = probability * (1 - scores)
    total = errors.sum()
    return float(total / len(scores))
