"""Methods before training: labels or weights are changed, and the learner that they wrap is trained on them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from metrifair.checks import seed_of
from metrifair.errors import DataError
from metrifair.estimators import FairClassifier
from metrifair.methods.network import StackedEstimator, fit_weighted
from metrifair.methods.training_data import (
    Floats,
    Integers,
    TrainingData,
    features_at_predict,
)
from metrifair.problem.tables import Table


def check_learner(estimator: object, kind: Literal["classifier", "regressor"], *, name: str = "estimator") -> None:
    """Raise a DataError unless it is a scikit-learn estimator of that kind, or of none that it tells.

    >>> from sklearn.linear_model import LinearRegression
    >>> check_learner(LinearRegression(), "classifier")
    Traceback (most recent call last):
    metrifair.errors.DataError: estimator must be a scikit-learn classifier, got LinearRegression(), a regressor
    """
    if isinstance(estimator, type):
        raise DataError(f"{name} must be an instance, got the class {estimator.__name__}; call it first")
    told = None
    if all(hasattr(estimator, method) for method in ("get_params", "fit", "__sklearn_tags__")):
        told = get_tags(estimator).estimator_type  # asked first: some have predict only once they are fitted
        if told is None and (hasattr(estimator, "predict") or hasattr(estimator, "predict_proba")):
            told = kind
    if told != kind:
        but = f", a {told}" if told else ""
        raise DataError(f"{name} must be a scikit-learn {kind}, got {estimator!r}{but}")


def groups_if_asked(method: Callable[..., Any], groups: Any) -> dict[str, Any]:
    """The groups as an argument of a method that has one for them.

    >>> groups_if_asked(FairClassifier().fit, ["f", "m"])
    {'sensitive_features': ['f', 'm']}
    """
    return {"sensitive_features": groups} if "sensitive_features" in inspect.signature(method).parameters else {}


# --- before training: labels or weights are changed, and the base learner is trained on them ------------------------


def _fitted_has(name: str) -> Callable[[Any], bool]:
    """Whether the base learner, fitted or yet to be, has that method; a network does."""
    return lambda self: hasattr(getattr(self, "estimator_", None) or self.estimator or FairClassifier, name)


class Preprocessor(ClassifierMixin, StackedEstimator):
    """Predictions of the base learner that ``fit`` kept in ``estimator_``, which knows classes by their codes."""

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
        predicted: NDArray[Any] = self.classes_[np.asarray(self.estimator_.predict(x), dtype=np.int64)]
        return predicted

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
        probability: Floats = self.estimator_.predict_proba(x)
        return probability

    @available_if(_fitted_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Table) -> Floats:
        """What the base learner's decision is made of; only where it tells.

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
        decision: Floats = self.estimator_.decision_function(x)
        return decision


def fit_learners(
    estimator: Any,
    data: TrainingData,
    *,
    seeds: Sequence[int],
    rows: Sequence[Integers],
    weights: Sequence[Floats],
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
    seeds = list(seeds) if own is None else [seed_of(own)] * len(seeds)
    if _is_plain_network(base):
        return fit_weighted(base, data, seeds=seeds, rows=rows, weights=weights, earlier=earlier)
    fitted = []
    for place, (seed, part, weight) in enumerate(zip(seeds, rows, weights, strict=True)):
        learner = deepcopy(earlier[place]).set_params(warm_start=True) if earlier else clone(base)
        if "random_state" in learner.get_params() and not earlier:
            learner.set_params(random_state=seed)
        weighs = has_fit_parameter(learner, "sample_weight")
        drawn = part
        if not weighs and np.ptp(weight) > 0:
            drawn = np.random.default_rng(seed).choice(part, len(part), p=weight / weight.sum())
        named = {"sample_weight": weight} if weighs else {}
        named |= groups_if_asked(learner.fit, data.group[drawn])
        fitted.append(learner.fit(data.x[drawn], data.y[drawn], **named))
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
