"""Reweighing (Kamiran and Calders, 2012): weights under which label and group are independent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from metrifair.errors import DataError
from metrifair.methods.meta_estimator import Preprocessor, fit_learners
from metrifair.methods.network import FitGrid, Fitted
from metrifair.methods.training_data import Floats, Integers, TrainingData
from metrifair.problem.tables import Table


def independence_weights(y: Integers, group: Integers, weight: Floats | None = None) -> Floats:
    """Expected over observed frequency of each row's label and group, times the weight it had before.

    >>> independence_weights(np.array([1, 0, 0, 0, 1, 1, 1, 1, 0, 0]), np.array([0] * 4 + [1] * 6)).round(4)
    array([2.    , 0.6667, 0.6667, 0.6667, 0.75  , 0.75  , 0.75  , 0.75  ,
           1.5   , 1.5   ])
    """
    weight = np.ones(len(y)) if weight is None else weight
    counts = np.zeros((int(y.max()) + 1, int(group.max()) + 1))
    np.add.at(counts, (y, group), weight)
    if not counts.all():
        label, code = np.argwhere(counts == 0)[0]
        raise DataError(f"no row has label {label} in group {code}; weights would be infinite")
    ratio = counts.sum(1, keepdims=True) * counts.sum(0) / (counts.sum() * counts)
    weighted: Floats = weight * ratio[y, group]
    return weighted


@dataclass(kw_only=True, eq=False, repr=False)
class ReweighingClassifier(Preprocessor):
    """Any classifier, trained with weights under which the label does not depend on the group.

    The weighted rate of each class is then the same in all groups, for any number of groups and classes. That is a
    property of the training labels: a classifier may still tell groups apart by the features. Predicting needs no
    groups.

    Parameters
    ----------
    estimator : classifier, default=None
        What is trained; None is a network, ``FairClassifier(strength=0)``. One that takes no ``sample_weight`` is
        trained on rows drawn in proportion to the weights.
    random_state : int, NumPy generator or None, default=None
        Seed of the base learner, where that has none of its own.

    Attributes
    ----------
    estimator_ : classifier
        The fitted base learner, which knows classes by their codes.
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

    def fit(self, X: Table, y: Table, *, sensitive_features: Table, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the weights and train.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as numbers.
        y : array-like of shape (n_samples,)
            Labels, of two or more classes.
        sensitive_features : array-like of shape (n_samples,)
            The group of each sample, in one column without missing values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that the rows had before; the computed ones multiply them.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sensitive_features, sample_weight)

    def _fits(self, data: TrainingData, grid: FitGrid) -> list[list[Fitted]]:
        seeds, rows, _ = grid
        parts = [data.take(own) for own in rows]
        for part in parts:
            part.check_cells(range(len(self.classes_)))
        weights = [independence_weights(part.y, part.group, part.weight) for part in parts]
        learners = fit_learners(self.estimator, data, seeds=seeds, rows=rows, weights=weights)
        return [
            [{"estimator_": learner, "weights_": weight}] for learner, weight in zip(learners, weights, strict=True)
        ]
