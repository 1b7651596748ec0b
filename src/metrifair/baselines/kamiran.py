"""Kamiran and Calders (2012): reweighing, under which label and group are independent; and
massaging, which changes the least certain labels until both groups have the same rate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.naive_bayes import GaussianNB

from metrifair.baselines.baseline import (
    Fitted,
    PublishedEstimator,
    TrainingData,
    TwoClassMixin,
)
from metrifair.baselines.network import Preprocessor, class_probabilities, fit_learner
from metrifair.errors import DataError
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_known
from metrifair.support.user_warnings import warn_user


def independence_weights(y: Integers, group: Integers, weight: Floats | None = None) -> Floats:
    """Expected over observed frequency of each row's label and group, times the weight it had
    before.

    >>> independence_weights(np.array([1, 0, 0, 0, 1, 1, 1, 1, 0, 0]), np.array([0] * 4 + [1] * 6)).round(4)
    array([2.    , 0.6667, 0.6667, 0.6667, 0.75  , 0.75  , 0.75  , 0.75  ,
           1.5   , 1.5   ])
    """
    if weight is None:
        weight = np.ones(len(y))
    labels = int(y.max()) + 1
    groups = int(group.max()) + 1
    counts = np.zeros((labels, groups))
    np.add.at(counts, (y, group), weight)
    if not counts.all():
        label, code = np.argwhere(counts == 0)[0]
        raise DataError(f"no row has label {label} in group {code}; weights would be infinite")
    by_label = counts.sum(1, keepdims=True)
    by_group = counts.sum(0)
    expected = by_label * by_group
    ratio: Floats = expected / (counts.sum() * counts)
    return weight * ratio[y, group]


@dataclass(kw_only=True, eq=False, repr=False)
class ReweighingClassifier(Preprocessor):
    """Any classifier, trained with weights under which the label does not depend on the group.

    The weighted rate of each class is then the same in all groups, for any number of groups and
    classes. That is a property of the training labels: predictions may still differ between groups
    through the features. Prediction needs no groups.

    Parameters
    ----------
    estimator : classifier, default=None
        Estimator to use: a classifier. None is a network,
        ``FairClassifier(strength=0, model="mlp")``. An
        estimator without ``sample_weight`` is trained on rows drawn in proportion to the weights.
    random_state : int, NumPy generator or None, default=None
        Seed of the estimator, if it has none of its own.

    Attributes
    ----------
    estimator_ : classifier
        The fitted base learner, whose classes are codes.
    weights_ : ndarray of shape (n_samples,)
        The weights of the rows, those of weight 0 left out.
    classes_, groups_ : ndarray, tuple
        The classes and the groups that ``fit`` saw.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y, a = [[0.0], [1.0], [2.0], [3.0], [2.0], [1.0]], [0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1]
    >>> model = ReweighingClassifier(LogisticRegression()).fit(X, y, sensitive_features=a)
    >>> model.weights_
    array([0.75, 0.75, 1.5 , 0.75, 0.75, 1.5 ])
    """

    _two_classes = False

    estimator: Any = field(default=None, kw_only=False)
    random_state: Any = None

    def _fit_data(self, data: TrainingData, seed: int) -> Fitted:
        data.check_cells(range(len(self.classes_)))
        weights = independence_weights(data.y, data.group, data.weight)
        return {
            "estimator_": fit_learner(self.estimator, data, seed, weights),
            "weights_": weights,
        }


class Changes(NamedTuple):
    """Rows whose label is changed: to positive in the deprived group, to negative in the
    favored one.
    """

    promoted: Integers
    demoted: Integers


def rows_to_relabel(
    y: Integers, deprived: ArrayLike, score: Floats, *, rounding: str = "nearest"
) -> Changes:
    """The rows to change so that the rate of positive labels is the same inside and outside the
    deprived group.

    As many are promoted (by decreasing score) as demoted (by increasing score); of equal scores the
    earlier row goes first. ``rounding``: ``"nearest"`` leaves the smallest difference,
    ``"ceiling"`` none to the deprived group's harm.

    >>> y, deprived = np.array([1, 0, 0, 0, 1, 1, 1, 1, 0, 0]), np.array([1] * 4 + [0] * 6)
    >>> rows_to_relabel(y, deprived, np.array([0.9, 0.1, 0.4, 0.2, 0.9, 0.8, 0.6, 0.7, 0.3, 0.2]))
    Changes(promoted=array([2]), demoted=array([6]))
    """
    check_known("rounding", rounding, ("nearest", "ceiling"))
    inside = np.asarray(deprived, dtype=bool)
    n = len(y)
    deprived_rows = int(inside.sum())
    deprived_positive = int(y[inside].sum())
    favored_positive = int(y[~inside].sum())
    excess = deprived_rows * favored_positive - (n - deprived_rows) * deprived_positive
    pairs = (2 * excess + n) // (2 * n)
    if rounding == "ceiling":
        pairs = -(-excess // n)
    pairs = max(0, pairs)
    negative = np.flatnonzero(inside & (y == 0))
    likeliest = np.argsort(-score[negative], kind="stable")
    positive = np.flatnonzero(~inside & (y == 1))
    unlikeliest = np.argsort(score[positive], kind="stable")
    return Changes(
        promoted=negative[likeliest[:pairs]],
        demoted=positive[unlikeliest[:pairs]],
    )


@dataclass(kw_only=True, eq=False, repr=False)
class MassagingClassifier(TwoClassMixin, Preprocessor):
    """Any classifier, trained on labels of which some were changed so that both groups have the
    same positive rate.

    A ranker scores the rows; the deprived group's likeliest negatives become positive and as many
    of the favored group's unlikeliest positives negative. That is a property of the training
    labels: the classifier may still tell groups apart by the features. Predicting needs no groups.

    Parameters
    ----------
    estimator : classifier, default=None
        Estimator to use: a classifier. None is a network,
        ``FairClassifier(strength=0, model="mlp")``.
    ranker : classifier or "estimator", default=None
        A classifier with ``predict_proba``, or ``"estimator"`` for the base learner; None is
        Gaussian naive Bayes.
    deprived : object, default=None
        The group with too few positive labels; None takes the one with the lower rate.
    rounding : {"nearest", "ceiling"}, default="nearest"
        Number of changes: the nearest integer, or the one above, which leaves no discrimination.
    random_state : int, NumPy generator or None, default=None
        Seed of the estimator and the ranker, if they have none of their own.

    Attributes
    ----------
    estimator_ : classifier
        The fitted base learner, whose classes are codes.
    changes_ : Changes
        The rows that were ``promoted`` and those that were ``demoted``.
    classes_, groups_ : ndarray, tuple
        The classes and the groups that ``fit`` saw.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = [[0.9], [0.1], [0.4], [0.2], [0.9], [0.8], [0.6], [0.7], [0.3], [0.2]]
    >>> y, a = [1, 0, 0, 0, 1, 1, 1, 1, 0, 0], ["d"] * 4 + ["f"] * 6
    >>> MassagingClassifier(LogisticRegression()).fit(X, y, sensitive_features=a).changes_
    Changes(promoted=array([2]), demoted=array([6]))
    """

    _two_groups = True

    estimator: Any = field(default=None, kw_only=False)
    ranker: Any = None
    deprived: object = None
    rounding: Literal["nearest", "ceiling"] = "nearest"
    random_state: Any = None

    fit = PublishedEstimator.fit  # type: ignore[assignment]  # without weights

    def _fit_data(self, data: TrainingData, seed: int) -> Fitted:
        even = np.ones(len(data))
        ranker = GaussianNB() if self.ranker is None else self.ranker
        if isinstance(ranker, str):
            check_known("ranker", ranker, ("estimator",), otherwise="a classifier")
            ranker = self.estimator
        if ranker is not None and not hasattr(ranker, "predict_proba"):
            raise DataError(
                f"ranker must have predict_proba, which {ranker!r} lacks; pass another one, or None"
            )
        fitted_ranker = fit_learner(ranker, data, seed, even, name="ranker")
        changes = self._changes(data, fitted_ranker)
        labels = data.y.copy()
        labels[changes.promoted] = 1
        labels[changes.demoted] = 0
        massaged = replace(data, y=labels)
        learner = fit_learner(self.estimator, massaged, seed, even)
        return {"estimator_": learner, "changes_": changes}

    def _changes(self, data: TrainingData, ranker: Any) -> Changes:
        labels_by_group = [data.y[data.group == code] for code in (0, 1)]
        rates = [float(labels.mean()) for labels in labels_by_group]
        code = int(np.argmin(rates))
        if self.deprived is not None:
            if self.deprived not in data.groups:
                raise DataError(
                    f"deprived must be one of the groups {list(data.groups)}, got {self.deprived!r}"
                )
            code = data.groups.index(self.deprived)
            if rates[code] >= rates[1 - code]:
                warn_user(
                    f"group {self.deprived!r} is not deprived: its positive rate is "
                    f"{rates[code]:.3f}, that of the "
                    f"other {rates[1 - code]:.3f}; no label is changed",
                    UserWarning,
                )
        probabilities = class_probabilities(ranker, data.x)
        score = probabilities[:, 1]
        return rows_to_relabel(data.y, data.group == code, score, rounding=self.rounding)
