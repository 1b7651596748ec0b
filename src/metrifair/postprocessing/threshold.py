"""Decisions of any model by thresholds of the groups, as near to parity as requested, at the
least loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from metrifair.errors import DataError, ModelFileError
from metrifair.figures.utility import UtilityLike, expected_cost
from metrifair.postprocessing.calibration import Calibration, ScorePostprocessor
from metrifair.postprocessing.group_model import BlindRule, Correction, blind_coin, blind_cut
from metrifair.postprocessing.rates import Mixture, best_mixtures, best_thresholds, rate_curve
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.problem.problem import Problem
from metrifair.problem.tables import UNKNOWN
from metrifair.saving.records import Arrays
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.checks import check_known

_LABELS: dict[str | None, tuple[int, ...]] = {
    None: (),
    "negative": (0,),
    "positive": (1,),
    "every": (0, 1),
}


@dataclass(kw_only=True, eq=False, repr=False)
class ThresholdPostprocessor(ScorePostprocessor):
    """Post-processing of a binary classifier: thresholds with rates that differ by at most a
    tolerance.

    ``fit`` selects the thresholds, one per group, with the smallest loss on held-out rows (Hardt et
    al. 2016, with the relaxation of Cruz and Hardt 2024). With randomization between thresholds
    this is a linear program on the convex hulls of the groups' ROC curves. Prediction needs the
    groups, unless ``needs_group=False``.

    Parameters
    ----------
    estimator : classifier, default=None
        Estimator to use: a classifier with ``predict_proba``. None is a linear model,
        ``FairClassifier(0)``.
    tolerance : float, default=0.0
        Allowed unfairness: the largest difference between the rates of two groups that the
        criterion compares, on the training rows. 1 selects the best threshold of each group.
    needs_group : bool, default=True
        Whether prediction needs the group. If False, the rule is linear in the calibrated score and
        the predicted probabilities of the groups (Xian and Zhao 2024). Rates computed with these
        probabilities differ on the training rows by at most the tolerance, and without
        randomization by at most one more row per rate. If many rows are equal, one decision for all
        rows may be the only such rule. Rates computed with the true groups, ``rates_``, differ as
        far as the probabilities are wrong. Groups that are passed are ignored.
    group_model : classifier, default=None
        Classifier that predicts the group (and label), for ``needs_group=False``. It is calibrated
        on held-out rows. None is a logistic regression.
    randomized : bool, default=False
        Whether predictions are randomized. If True, decisions are drawn between thresholds if that
        is better: rates are exact, but equal rows may receive different decisions, and every call
        of ``predict`` draws new ones. If False, rates of the best single thresholds may differ by
        one row more than the tolerance.
    prefit : bool, default=False
        Whether the estimator is already fitted, preferably on other rows. Clones share it.
    folds : int, default=5
        Number of cross-validation folds that score held-out rows; the estimator itself is fitted on
        all rows. Rows to which the estimator assigns the same score count as tied, unless it
        memorizes its training rows. 1 selects thresholds on the scores of the training rows.
    random_state : int, NumPy generator or None, default=None
        Seed of the default model, the folds and the draws.
    criterion : str or Criterion, default="statistical_parity"
        Fairness criterion. "statistical_parity" compares selection rates, "equal_opportunity" true
        positive rates, "predictive_equality" false positive rates, and "equalized_odds" both.
    utility : {"accuracy", "balanced_accuracy"} or table of costs, default="accuracy"
        Measure of quality to maximize. A table of costs is by label and decision, in ascending
        order of the classes.
    pos_label : object, default=None
        The positive label: the class of accepted rows. By default the last class.

    Attributes
    ----------
    base_ : classifier
        The fitted estimator.
    groups_ : tuple
        The groups that ``fit`` saw; of several attributes, their combinations. Rows whose group is
        missing, or a combination that was not seen, are decided by the best threshold of all;
        another value is an error.
    classes_ : ndarray
        The two classes.
    thresholds_ : tuple of Mixture
        For each group, then for rows of unknown groups: thresholds, and the probability of each.
    rates_ : ndarray of shape (n_groups, n_sets)
        Rates of acceptance that are expected, on the rows fitted on, by the scores of ``folds``.
        With ``GroupProbabilities``, rows count for each group by its probability.
    blind_rule_ : BlindRule
        With ``needs_group=False``: the price of each probability, beside the loss of accepting a
        row.
    correction_ : Correction
        With ``needs_group=False``: the calibration of the scores.
    group_model_ : GroupModel
        With ``needs_group=False``: the fitted group model, and its calibration.

    See Also
    --------
    BarycenterPostprocessor : Scores instead of decisions.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y, sex = np.arange(8.0)[:, None], [0, 0, 1, 1, 1, 1, 0, 1], list("ffffmmmm")
    >>> for tolerance in (0, 1):
    ...     model = ThresholdPostprocessor(LogisticRegression(), tolerance=tolerance, randomized=True, folds=1)
    ...     model.fit(X, y, sensitive_features=sex).rates_.ravel()
    array([0.5, 0.5])
    array([0.5, 1. ])
    """

    criterion: str | Criterion = "statistical_parity"
    utility: UtilityLike = "accuracy"
    pos_label: object = None

    decides: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        kind = criterion_named(self.criterion)
        if (
            kind.score != "prediction"
            or kind.bins is not None
            or kind.sets is not None
            or kind.strata
        ):
            raise DataError(
                f"criterion {kind.name!r} does not compare rates of decisions",
                remedy="use statistical_parity, equal_opportunity, predictive_equality or "
                "equalized_odds",
            )
        if isinstance(self.utility, str):
            check_known(
                "utility",
                self.utility,
                ("accuracy", "balanced_accuracy"),
                otherwise="a table of costs",
            )

    @property
    def _labels(self) -> tuple[int, ...]:
        labels = criterion_named(self.criterion).labels
        return _LABELS[labels]

    def calibrate(self, rows: Calibration) -> None:
        """Choose thresholds, or the rule of ``needs_group=False``.

        Parameters
        ----------
        rows : Calibration
            As in ``ScorePostprocessor.calibrate``.
        """
        problem = rows.problem
        self.prices_ = _prices(self.utility, problem)
        sets = list(self._sets(problem).values())
        members = np.stack(sets, axis=1)
        if rows.cells is None:
            chances = self._cut(rows, members)
        else:
            chances = self._blind_cut(rows, rows.cells)
        row, group, weight = rows.memberships()
        weights = members[row] * weight[:, None]
        chances = chances[row]
        rates = []
        for in_group in self._rows_of_groups(group):
            weights_in_group = weights[in_group]
            accepted = chances[in_group] @ weights_in_group
            rates.append(accepted / weights_in_group.sum(0))
        self.rates_ = np.stack(rates)

    def _rows_of_groups(self, group: Integers) -> list[Booleans]:
        count = len(self.groups_)
        return [group == code for code in range(count)]

    def _blind_cut(self, rows: Calibration, chances: Floats) -> Floats:
        """Compute the rule without groups; the probability that it accepts each row."""
        is_positive = np.asarray(rows.problem.is_positive)
        positive = is_positive.astype(np.int64)
        chances_of_labels = _of_both_classes(rows.score)
        self.correction_ = Correction.fit(chances_of_labels, positive, rows.weight)
        price = self._expected_price(rows.score)
        compared = self._compared_cells()
        cells = chances[:, compared]
        groups = len(self.groups_)
        set_of_cell = np.arange(len(compared)) // groups
        best_rule = blind_cut
        if self.randomized:
            best_rule = blind_coin
        self.blind_rule_ = best_rule(price, cells, rows.weight, set_of_cell, self.tolerance)
        return self.blind_rule_(price, cells)

    def _cut(self, rows: Calibration, members: Booleans) -> Floats:
        """Choose the groups' thresholds; return the probability that each row is accepted."""
        negative_price, positive_price = self.prices_
        positive = np.asarray(rows.problem.is_positive)
        price = np.where(positive, positive_price, negative_price)
        price *= rows.weight / rows.weight.sum()
        weight = rows.weight[:, None]
        sets = members * weight
        curves = []
        smallest = np.inf  # number of rows of a set of a group
        for in_group in self._rows_of_groups(rows.group):
            score = rows.score[in_group]
            curve = rate_curve(score, sets[in_group], price[in_group])
            curves.append(curve)
            sizes = members[in_group].sum(0)
            smallest = min(smallest, sizes.min())
        if self.randomized:
            mixtures = best_mixtures(curves, self.tolerance)
        else:
            # Thresholds cannot be more exact than one row of the smallest set.
            tolerance = self.tolerance + 1 / smallest
            cuts = best_thresholds(curves, min(1.0, tolerance))
            mixtures = [_single(cut) for cut in cuts]
        curve = rate_curve(rows.score, weight, price)
        best = curve.loss.argmin()
        best_cut = curve.threshold[best]
        self.thresholds_ = (*mixtures, _single(best_cut))
        return self.adjust(rows.score, rows.group)

    def _compared_cells(self) -> Integers:
        """Cells of each group that the criterion compares: the group, or the group with each of
        the labels.
        """
        groups = np.arange(len(self.groups_))
        first_cells = self._cells_per_group * groups
        labels = self._labels or (0,)
        return np.concatenate([first_cells + label for label in labels])

    def state(self) -> dict[str, Floats]:
        """The arrays that ``save`` writes.

        Returns
        -------
        dict of ndarrays
            Losses, rates, and the thresholds or the rule.
        """
        prices = np.array(self.prices_)
        arrays = {"prices": prices, "rates": self.rates_}
        if not self.needs_group:
            rule = self.blind_rule_
            arrays |= {
                "rule": rule.prices,
                "least": np.array([rule.least]),
                "width": np.array([rule.width]),
                "score_slope": np.array([self.correction_.slope]),
                "score_bias": self.correction_.bias,
            }
            return arrays
        for place, threshold in enumerate(self.thresholds_):
            arrays |= {
                f"threshold{place}": threshold.threshold,
                f"probability{place}": threshold.probability,
            }
        return arrays

    def restore(self, arrays: Arrays) -> None:
        """Set the fitted attributes from the arrays of ``state``.

        Parameters
        ----------
        arrays : Arrays
            As in ``ScorePostprocessor.restore``.
        """
        negative, positive = arrays.take("prices", (2,)).tolist()
        self.prices_ = (negative, positive)
        groups = len(self.groups_)
        compared = len(self._compared_cells())
        self.rates_ = arrays.take("rates", (groups, compared // groups))
        if self.needs_group:
            mixtures = [_restored_mixture(arrays, place) for place in range(groups + 1)]
            self.thresholds_ = tuple(mixtures)
            return
        rule = arrays.take("rule", (compared,))
        least = arrays.number("least", finite=False)
        width = arrays.number("width")
        if np.isnan(least) or width < 0:
            raise ModelFileError("the file does not describe a model: its rule has no step")
        self.blind_rule_ = BlindRule(rule, least, width)
        slope = arrays.number("score_slope")
        bias = arrays.take("score_bias", (2,))
        self.correction_ = Correction(slope, bias)

    def _expected_price(self, score: Floats) -> Floats:
        """The expected loss of accepting rows with these scores, by calibrated probabilities."""
        chances = self.correction_(_of_both_classes(score))
        prices = np.array(self.prices_)
        price: Floats = chances @ prices
        return price

    def adjust(self, scores: Floats, groups: Integers) -> Floats:
        """The probability of the positive decision.

        Parameters
        ----------
        scores, groups : ndarray of shape (n_samples,)
            As in ``ScorePostprocessor.adjust``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Probabilities, 0 or 1 unless ``randomized``.
        """
        accepted = np.empty(len(scores))
        # the last thresholds are those of unknown groups
        for code in (*range(len(self.groups_)), UNKNOWN):
            in_group = groups == code
            thresholds, chances = self.thresholds_[code]
            score = scores[in_group, None]
            passed = score >= thresholds
            accepted[in_group] = passed @ chances
        return accepted

    def adjust_blind(self, scores: Floats, probabilities: Floats) -> Floats:
        """The probability of the positive decision, by predicted groups.

        Parameters
        ----------
        scores, probabilities : ndarray
            As in ``ScorePostprocessor.adjust_blind``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Probabilities.
        """
        cells = probabilities[:, self._compared_cells()]
        price = self._expected_price(scores)
        return self.blind_rule_(price, cells)


def _of_both_classes(score: Floats) -> Floats:
    """Probabilities (n, 2) of the negative and the positive class."""
    return np.stack([1 - score, score], axis=1)


def _single(threshold: float) -> Mixture:
    """One threshold, without randomization."""
    thresholds = np.array([threshold])
    return Mixture(thresholds, np.ones(1))


def _restored_mixture(arrays: Arrays, place: int) -> Mixture:
    """The thresholds of a group, from a file."""
    threshold = arrays.take(f"threshold{place}", (None,), finite=False)
    probability = arrays.take(f"probability{place}", (len(threshold),))
    off = abs(probability.sum() - 1)
    is_positive = (probability >= 0).all()
    is_distribution = is_positive and off <= 1e-6
    if np.isnan(threshold).any() or not is_distribution:
        raise ModelFileError(
            "the file does not describe a model: its thresholds have no probabilities"
        )
    return Mixture(threshold, probability)


def _prices(utility: UtilityLike, problem: Problem) -> tuple[float, float]:
    """The loss added by accepting a row of the negative and of the positive class."""
    positive = problem.is_positive
    weight = problem.weight
    if isinstance(utility, str) and utility == "accuracy":
        return 1.0, -1.0
    if isinstance(utility, str):
        is_positive = np.asarray(positive)
        mean = np.average(is_positive, weights=weight)
        share = float(mean)
        return 0.5 / (1 - share), -0.5 / share
    expected_cost(utility, problem.scheme.classes)  # type: ignore[arg-type]  # validates the table of costs
    costs = np.asarray(utility, dtype=np.float64)
    yes = problem.scheme.positive
    no = 1 - yes
    accepted = costs[:, yes]
    rejected = costs[:, no]
    prices = (accepted - rejected).tolist()
    return prices[no], prices[yes]
