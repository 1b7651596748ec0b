"""Methods that change labels or weights before training, around any classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from metrifair.baselines.network import fit_weighted
from metrifair.baselines.stacked import FitGrid, TrainingData, WeightedEstimator, features_at_predict
from metrifair.errors import DataError
from metrifair.estimators import FairClassifier
from metrifair.postprocessing.postprocessor import check_learner
from metrifair.problem.tables import Table
from metrifair.support.arrays import Floats
from metrifair.support.checks import groups_if_asked, seed_of


def _fitted_has(name: str) -> Callable[[Any], bool]:
    """Whether the base learner, fitted or yet to be, has that method; a network does."""
    return lambda self: hasattr(getattr(self, "estimator_", None) or self.estimator or FairClassifier, name)


class Preprocessor(ClassifierMixin, WeightedEstimator):
    """Predictions of the base learner that ``fit`` stores in ``estimator_``; its classes are codes."""

    def predict(self, X: Table) -> NDArray[Any]:
        """The class of each sample.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        x = features_at_predict(self, X, "estimator_")
        return self.classes_[np.asarray(self.estimator_.predict(x), dtype=np.int64)]

    @available_if(_fitted_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table) -> Floats:
        """Probabilities of the classes; only where the base learner has them.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        x = features_at_predict(self, X, "estimator_")
        return class_probabilities(self.estimator_, x)

    @available_if(_fitted_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Table) -> Floats:
        """The decision function of the base learner; only where it has one.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The base learner's decision function.
        """
        x = features_at_predict(self, X, "estimator_")
        return np.asarray(self.estimator_.decision_function(x))


def class_probabilities(learner: Any, x: Floats) -> Floats:
    """Probabilities (n, classes) in ascending order of the classes, whatever order the learner has them in."""
    probability = np.asarray(learner.predict_proba(x))
    return probability[:, np.argsort(getattr(learner, "classes_", range(probability.shape[1])))]


def fit_learners(
    estimator: Any,
    data: TrainingData,
    grid: FitGrid,
    weights: Sequence[Floats],
    *,
    earlier: Sequence[Any] = (),
    name: str = "estimator",
) -> list[Any]:
    """The base learner fitted for each seed on its own rows of the data, with weights.

    None is a network; networks without a penalty are trained all at once. A learner whose ``random_state`` is None
    gets the seed; one that takes no weights gets rows drawn in proportion to them; one that takes groups gets these,
    too. ``earlier`` are fitted learners to go on from, for those that can; they stay as they are. ``name`` is the
    learner's in messages.
    """
    base = _checked_base(estimator, name)
    own = getattr(base, "random_state", None)
    seeds = grid.seeds if own is None else [seed_of(own)] * len(grid.seeds)
    if _is_plain_network(base):
        return fit_weighted(base, data, FitGrid(seeds, grid.rows, [0.0]), weights, earlier)
    fitted = []
    for place, (seed, part, weight) in enumerate(zip(seeds, grid.rows, weights, strict=True)):
        learner = deepcopy(earlier[place]).set_params(warm_start=True) if earlier else clone(base)
        if "random_state" in learner.get_params() and not earlier:
            learner.set_params(random_state=seed)
        weighs = has_fit_parameter(learner, "sample_weight")
        drawn = part
        if not weighs and np.ptp(weight) > 0:
            drawn = np.random.default_rng(seed).choice(part, len(part), p=weight / weight.sum())
        options = {"sample_weight": weight} if weighs else {}
        options |= groups_if_asked(learner.fit, data.group[drawn])
        fitted.append(learner.fit(data.x[drawn], data.y[drawn], **options))
    return fitted


def check_continues(estimator: Any) -> None:
    """Raise a DataError unless a fit of the base learner can go on from an earlier one."""
    base = _checked_base(estimator, "estimator")
    if not _is_plain_network(base) and "warm_start" not in base.get_params():
        raise DataError(
            f"warm_start=True goes on from the round before, which {base!r} cannot; set warm_start=False, or take a "
            "network or a learner that has warm_start"
        )


def _checked_base(estimator: Any, name: str) -> Any:
    if estimator is None:
        return FairClassifier(0.0)
    check_learner(estimator, "classifier", name=name)
    return estimator


def _is_plain_network(base: Any) -> bool:
    return isinstance(base, FairClassifier) and base.strength == 0
