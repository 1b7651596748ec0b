"""Base learners of the methods that change labels or weights and leave the learning to another classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from metrifair.estimators import FairClassifier
from metrifair.fitting import seed_of
from metrifair.methods.inputs import Floats, Integers, Rows
from metrifair.methods.networks import fit_weighted
from metrifair.tables import Table


def _fitted_has(name: str) -> Callable[[Any], bool]:
    """Whether the base learner, fitted or yet to be, has that method; a network does."""
    return lambda self: hasattr(getattr(self, "estimator_", None) or self.estimator or FairClassifier, name)


class Delegating(ClassifierMixin, BaseEstimator):
    """Predictions of the base learner that ``fit`` kept in ``estimator_``, which knows classes by their codes."""

    estimator: Any

    def predict(self, X: Table) -> NDArray[Any]:
        """The class of each sample."""
        x = self._features(X)
        predicted: NDArray[Any] = self.classes_[np.asarray(self.estimator_.predict(x), dtype=np.int64)]
        return predicted

    @available_if(_fitted_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table) -> Floats:
        """Probabilities of the classes, (n, classes)."""
        x = self._features(X)
        probability: Floats = self.estimator_.predict_proba(x)
        return probability

    @available_if(_fitted_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Table) -> Floats:
        """What the base learner's decision is made of."""
        x = self._features(X)
        decision: Floats = self.estimator_.decision_function(x)
        return decision

    def _features(self, X: Table) -> Floats:
        check_is_fitted(self, "estimator_")
        x: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        return x


def fit_learners(
    estimator: Any,
    table: Rows,
    *,
    seeds: Sequence[int],
    rows: Sequence[Integers],
    weights: Sequence[Floats],
    earlier: Sequence[Any] = (),
) -> list[Any]:
    """The base learner fitted for each seed on its own rows of the table, with weights.

    None is a network; networks without a penalty are trained all at once. A learner whose ``random_state`` is None
    gets the seed; one that takes no weights gets rows drawn in proportion to them. ``earlier`` are fitted learners to
    go on from, for those that can; they stay as they are.
    """
    base = FairClassifier(0.0) if estimator is None else estimator
    own = getattr(base, "random_state", None)
    seeds = list(seeds) if own is None else [seed_of(own)] * len(seeds)
    if isinstance(base, FairClassifier) and base.strength == 0:
        return fit_weighted(base, table, seeds=seeds, rows=rows, weights=weights, earlier=earlier)
    fitted = []
    for place, (seed, part, weight) in enumerate(zip(seeds, rows, weights, strict=True)):
        learner = deepcopy(earlier[place]).set_params(warm_start=True) if earlier else clone(base)
        if "random_state" in learner.get_params() and not earlier:
            learner.set_params(random_state=seed)
        fitted.append(_fit(learner, table.x[part], table.y[part], weight, seed))
    return fitted


def _fit(learner: Any, x: Floats, y: Integers, weight: Floats, seed: int) -> Any:
    if has_fit_parameter(learner, "sample_weight"):
        return learner.fit(x, y, sample_weight=weight)
    if np.ptp(weight) > 0:
        drawn = np.random.default_rng(seed).choice(len(x), len(x), p=weight / weight.sum())
        return learner.fit(x[drawn], y[drawn])
    return learner.fit(x, y)
