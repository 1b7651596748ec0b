"""Scores of any model moved towards the barycenter of the groups' distributions, by as much as
a tolerance requires.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import wasserstein_distance
from sklearn.base import is_regressor

from metrifair.errors import ModelFileError
from metrifair.postprocessing.calibration import Calibration, ScorePostprocessor
from metrifair.postprocessing.group_model import BlindMap, blind_map
from metrifair.postprocessing.rates import EmpiricalDistribution, barycenter
from metrifair.problem.tables import UNKNOWN
from metrifair.saving.records import Arrays
from metrifair.support.arrays import Floats, Integers
from metrifair.support.user_warnings import warn_user

_LEFT = 0.1  # share of the distance between groups from which fit warns that it is left


@dataclass(kw_only=True, eq=False, repr=False)
class BarycenterPostprocessor(ScorePostprocessor):
    """Post-processing of a classifier or regressor: scores with the same distribution in all
    groups.

    A score is replaced by the mean, over groups weighted by their shares, of the scores of the same
    rank. Of all scores with statistical parity these are nearest to the model's in squared distance
    (Chzhen et al. 2020; Gouic et al. 2020). ``tolerance`` interpolates toward the model's scores,
    and the Wasserstein distance between groups is proportional to it. Prediction needs the groups,
    unless ``needs_group=False``.

    Parameters
    ----------
    estimator : classifier or regressor, default=None
        Estimator to use: a classifier of two classes or a regressor. None is a linear model,
        ``FairClassifier(0)``.
    tolerance : float, default=0.0
        Allowed unfairness, from 0 (parity) to 1 (the estimator's scores). Parity is exact if no
        scores are tied. Equal scores of a group stay equal unless ``randomized``; ``fit`` warns if
        the remaining distance is large.
    needs_group : bool, default=True
        Whether prediction needs the group. If False, scores are moved by the predicted
        probabilities of the groups given the features. Groups that are passed are then ignored.
    group_model : classifier, default=None
        Classifier that predicts the group, for ``needs_group=False``. It is calibrated on held-out
        rows. None is a logistic regression.
    randomized : bool, default=False
        Whether predictions are randomized. If True, tied scores receive random ranks, so that
        parity is exact; every call of ``predict`` draws new ones. If False, tied scores of a group
        move to the mean over their ranks. With ``needs_group=False`` nothing is drawn.
    prefit : bool, default=False
        Whether the estimator is already fitted, preferably on other rows. ``fit`` then needs no
        labels, and clones share the estimator.
    folds : int, default=5
        Number of cross-validation folds that score held-out rows; the estimator itself is fitted on
        all rows. Rows to which the estimator assigns the same score count as tied, unless it
        memorizes its training rows. 1 ranks scores among those of the training rows.
    random_state : int, NumPy generator or None, default=None
        Seed of the default model, the folds and the draws.

    Attributes
    ----------
    base_ : classifier or regressor
        The fitted estimator.
    groups_ : tuple
        The groups that ``fit`` saw; of several attributes, their combinations. Rows whose group is
        missing, or a combination that was not seen, are ranked among all; another value is an
        error.
    classes_ : ndarray
        The classes, of a classifier.
    shares_ : ndarray of shape (n_groups,)
        Shares of the groups.
    distributions_ : tuple of EmpiricalDistribution
        Scores of each group in ascending order, then those of all, with how much weight lies up to
        each.
    group_model_ : GroupModel
        With ``needs_group=False``: the fitted group model, and what calibrates it.

    See Also
    --------
    ThresholdPostprocessor : Decisions instead of scores, and other criteria.
    ChzhenPostprocessor : The published method for regression.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> y, a = np.array([1.0, 2.0, 3.0, 4.0, 3.0, 4.0, 5.0, 6.0]), np.repeat([0, 1], 4)
    >>> for tolerance in (0, 0.5, 1):
    ...     model = BarycenterPostprocessor(LinearRegression(), tolerance=tolerance, folds=1)
    ...     model.fit(y[:, None], y, sensitive_features=a).predict(y[:, None], sensitive_features=a).round(6)
    array([2., 3., 4., 5., 2., 3., 4., 5.])
    array([1.5, 2.5, 3.5, 4.5, 2.5, 3.5, 4.5, 5.5])
    array([1., 2., 3., 4., 3., 4., 5., 6.])
    """

    def learn(self, rows: Calibration) -> None:
        """Compute the map of the scores, which is the same for all tolerances.

        Parameters
        ----------
        rows : Calibration
            As in ``ScorePostprocessor.learn``.
        """
        row, group, weight = rows.memberships()
        weight_of_groups = np.bincount(group, weight)
        self.shares_ = weight_of_groups / weight.sum()
        score = rows.score[row]
        distributions = []
        for code in range(len(self.groups_)):
            member = group == code
            distribution = EmpiricalDistribution.of(score[member], weight[member])
            distributions.append(distribution)
        of_all = EmpiricalDistribution.of(rows.score, rows.weight)
        self.distributions_ = (*distributions, of_all)
        if rows.cells is not None:
            self.blind_map_ = blind_map(rows.score, rows.cells, rows.weight)
        elif not self.randomized and self.tolerance < 1:
            self._warn_of_ties(rows)

    def _warn_of_ties(self, rows: Calibration) -> None:
        weight = rows.weight

        def farthest(score: Floats) -> float:
            distances = []
            for code in range(len(self.groups_)):
                part = rows.group == code
                distance = wasserstein_distance(score[part], score, weight[part], weight)
                distances.append(distance)
            return max(distances)

        fair = self._fair(rows.score, rows.group)
        after = farthest(fair)
        before = farthest(rows.score)
        # Groups of different sizes differ by a row even where nothing is tied.
        sizes = np.bincount(rows.group)
        smallest = sizes.min()
        span = float(np.ptp(rows.score))
        of_a_row = 2 * span / smallest
        if after > _LEFT * before + of_a_row:
            warn_user(
                f"scores are tied, so {after / before:.0%} of the distance between groups is left; "
                "randomized=True draws the ranks of equal scores"
            )

    def state(self) -> dict[str, Floats]:
        """The arrays that ``save`` writes.

        Returns
        -------
        dict of ndarrays
            Shares and distributions of the groups, and the map of ``needs_group=False``.
        """
        arrays = {"shares": self.shares_}
        for place, distribution in enumerate(self.distributions_):
            arrays[f"values{place}"] = distribution.values
            arrays[f"upto{place}"] = distribution.upto
        if not self.needs_group:
            levels, prices, shares, width = self.blind_map_
            arrays |= {
                "levels": levels,
                "prices": prices,
                "guessed_shares": shares,
                "width": np.array([width]),
            }
        return arrays

    def restore(self, arrays: Arrays) -> None:
        """Set the fitted attributes from the arrays of ``state``.

        Parameters
        ----------
        arrays : Arrays
            As in ``ScorePostprocessor.restore``.
        """
        groups = len(self.groups_)
        self.shares_ = arrays.take("shares", (groups,))
        off = abs(self.shares_.sum() - 1)
        is_positive = (self.shares_ > 0).all()
        if not is_positive or off > 1e-6:
            raise ModelFileError("the file does not describe a model: shares of groups add up to 1")
        distributions = [_restored_distribution(arrays, place) for place in range(groups + 1)]
        self.distributions_ = tuple(distributions)
        scores = [distribution.values for distribution in distributions]
        if not self.needs_group:
            self.blind_map_ = _restored_map(arrays, groups)
            scores.append(self.blind_map_.levels)
        if is_regressor(self):
            return
        values = np.concatenate(scores)
        if values.min() < 0 or values.max() > 1:
            raise ModelFileError(
                "the file does not describe a model: scores of a classifier are probabilities"
            )

    def adjust(self, scores: Floats, groups: Integers) -> Floats:
        """The mean of each score and the fair score, weighted by the tolerance.

        Parameters
        ----------
        scores, groups : ndarray of shape (n_samples,)
            As in ``ScorePostprocessor.adjust``.

        Returns
        -------
        ndarray of shape (n_samples,)
            The final scores.
        """
        if self.tolerance == 1:
            return scores
        fair = self._fair(scores, groups)
        return self._toward_fair(scores, fair)

    def adjust_blind(self, scores: Floats, probabilities: Floats) -> Floats:
        """The mean of each score and the fair score, by predicted groups.

        Parameters
        ----------
        scores, probabilities : ndarray
            As in ``ScorePostprocessor.adjust_blind``.

        Returns
        -------
        ndarray of shape (n_samples,)
            The final scores.
        """
        if self.tolerance == 1:
            return scores
        fair = self.blind_map_(scores, probabilities)
        return self._toward_fair(scores, fair)

    def _toward_fair(self, scores: Floats, fair: Floats) -> Floats:
        """The mean of both, weighted by the tolerance."""
        return self.tolerance * scores + (1 - self.tolerance) * fair

    def _fair(self, plain: Floats, group: Integers) -> Floats:
        """The fair scores, with tolerance 0."""
        below = np.empty(len(plain))
        upto = np.empty(len(plain))
        for code in (*range(len(self.groups_)), UNKNOWN):  # the last distribution is that of all
            in_group = group == code
            score = plain[in_group]
            first, last = self.distributions_[code].ranks(score)
            if self.randomized:
                draws = self.generator_.uniform(size=len(score))
                first = first + draws * (last - first)
                last = first
            below[in_group] = first
            upto[in_group] = last
        groups = self.distributions_[:-1]
        return barycenter(below, upto, groups, self.shares_)


def _restored_distribution(arrays: Arrays, place: int) -> EmpiricalDistribution:
    """The scores of a group, from a file."""
    values = arrays.take(f"values{place}", (None,))
    upto = arrays.take(f"upto{place}", (len(values),))
    steps = np.diff(values)
    weights = np.diff(upto, prepend=0.0)
    ascends = (steps >= 0).all()
    has_weight = (weights > 0).all()
    if not (len(values) and ascends and has_weight):
        raise ModelFileError("the file does not describe a model: its scores do not ascend")
    return EmpiricalDistribution(values, upto)


def _restored_map(arrays: Arrays, groups: int) -> BlindMap:
    """The map of scores without groups, from a file."""
    levels = arrays.take("levels", (None,))
    prices = arrays.take("prices", (len(levels), groups))
    shares = arrays.take("guessed_shares", (groups,))
    width = arrays.number("width")
    has_groups = (shares > 0).all()
    if not (len(levels) and width > 0 and has_groups):
        raise ModelFileError(
            "the file does not describe a model: its levels are not those of scores"
        )
    return BlindMap(levels, prices, shares, width)
