"""Reweighing (Kamiran and Calders, 2012): weights under which label and group are independent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from metrifair.checks import seed_of
from metrifair.errors import DataError
from metrifair.methods.inputs import Floats, Integers, check_cells, classification_rows
from metrifair.methods.learners import Delegating, fit_learners
from metrifair.methods.networks import fitted_copy, own_rows, subset
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


class ReweighingClassifier(Delegating):
    """Any classifier, trained with weights under which the label does not depend on the group.

    The weighted rate of each class is then the same in all groups, for any number of groups and classes. That is a
    property of the training labels: a classifier may still tell groups apart by the features. Predicting needs no
    groups.

    Parameters
    ----------
    estimator : a scikit-learn classifier; None is a network, ``FairClassifier(strength=0)``. One that takes no
        ``sample_weight`` is trained on rows drawn in proportion to the weights.
    random_state : seed of the base learner, where that has none of its own.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y, a = [[0.0], [1.0], [2.0], [3.0], [2.0], [1.0]], [0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1]
    >>> model = ReweighingClassifier(LogisticRegression()).fit(X, y, sensitive_features=a)
    >>> model.weights_
    array([0.75, 0.75, 1.5 , 0.75, 0.75, 1.5 ])
    """

    def __init__(self, estimator: Any = None, *, random_state: Any = None) -> None:
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, X: Table, y: Table, *, sensitive_features: Table, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the weights and train; ``sample_weight`` are weights that the rows had before."""
        rows = classification_rows(
            self, X, y, sensitive_features, sample_weight=sample_weight, two_groups=False, two_classes=False
        )
        check_cells(rows, range(len(self.classes_)))
        self.weights_ = independence_weights(rows.y, rows.group, rows.weight)
        everyone = [np.arange(len(rows))]
        seeds = [seed_of(self.random_state)]
        (self.estimator_,) = fit_learners(self.estimator, rows, seeds=seeds, rows=everyone, weights=[self.weights_])
        return self


def fit_stack(
    estimator: ReweighingClassifier,
    X: Table,
    y: Table,
    sensitive_features: Table,
    *,
    seeds: Sequence[int],
    rows: Sequence[ArrayLike] | None = None,
) -> list[ReweighingClassifier]:
    """Fitted copies for every seed, networks trained at once; ``rows`` are the training rows of each seed."""
    template = clone(estimator)
    table = classification_rows(template, X, y, sensitive_features, two_groups=False, two_classes=False)
    own = own_rows(len(table), seeds, rows)
    parts = [subset(table, part) for part in own]
    for part in parts:
        check_cells(part, range(len(template.classes_)))
    weights = [independence_weights(part.y, part.group, part.weight) for part in parts]
    learners = fit_learners(template.estimator, table, seeds=seeds, rows=own, weights=weights)
    return [
        fitted_copy(template, {"random_state": seed}, {"estimator_": learner, "weights_": weight})
        for seed, learner, weight in zip(seeds, learners, weights, strict=True)
    ]
