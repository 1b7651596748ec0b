"""Families of models on one frontier: what each is called, and by which parameter it trades accuracy for fairness."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from math import inf
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from metrifair.errors import DataError

DEFAULT_STRENGTHS = (0.0, *np.geomspace(0.03, 1_000, 21).round(3).tolist(), 1e4, 1e5, 1e6)
"""Where trade-offs move on all our data sets, and the last ones where models end at a constant; docs/defaults.md."""
DEFAULT_TOLERANCES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
Values: TypeAlias = Any


class Family(NamedTuple):
    """An estimator to train at many values of one parameter; the only family of a frontier has no name."""

    name: str
    estimator: Any
    parameter: str

    def values(self, given: Values, argument: str = "strengths") -> Sequence[float]:
        """The values to train at: those that were given, or the usual ones of this parameter."""
        if given is None or (isinstance(given, str) and given == "auto"):
            return DEFAULT_TOLERANCES if self.parameter == "tolerance" else DEFAULT_STRENGTHS
        values: list[Any] = [] if isinstance(given, str) else list(given)
        least = 0.0 if self.parameter == "strength" else -inf
        if not values or not all(isinstance(value, Real) and least <= float(value) < inf for value in values):
            lowest = " from 0 upwards" if self.parameter == "strength" else ""
            raise DataError(f"{argument} must be None, 'auto', or a list of finite numbers{lowest}, got {given!r}")
        return values

    def told(self, name: str, value: object) -> Family:
        """With a parameter of the estimator, and of those that it wraps, wherever one has it."""
        own = [key for key in self.estimator.get_params() if key == name or key.endswith(f"__{name}")]
        return self._replace(estimator=clone(self.estimator).set_params(**dict.fromkeys(own, value)))


def needs_group(model: Any) -> bool:
    """Whether a model, fitted or not, asks for the group when it predicts.

    >>> from metrifair import BarycentrePostprocessor, FairClassifier
    >>> needs_group(FairClassifier()), needs_group(BarycentrePostprocessor())
    (False, True)
    >>> needs_group(BarycentrePostprocessor(needs_group=False))
    False
    """
    told = getattr(model, "needs_group", None)
    if isinstance(told, bool):
        return told
    return "sensitive_features" in inspect.signature(model.predict).parameters if hasattr(model, "predict") else False


def families_of(given: Any, parameter: str | None) -> tuple[Family, ...] | None:
    """The families to train; None where fitted models were handed over, to be judged as they are.

    >>> from metrifair import BarycentrePostprocessor, FairClassifier
    >>> for family in families_of([FairClassifier(model="linear"), BarycentrePostprocessor()], None):
    ...     print(family.name, family.parameter)
    FairClassifier (linear) strength
    BarycentrePostprocessor tolerance
    """
    if not isinstance(given, (list, tuple, Mapping)):
        return (Family("", given, parameter or _knob_of(given)),)
    named = dict(given) if isinstance(given, Mapping) else _named(given, parameter)
    if named is None:
        return None
    if not named or not all(isinstance(name, str) and name for name in named):
        raise DataError(f"families are estimators by their names, which are text, got {list(named)}")
    if len({is_regressor(one) for one in named.values()}) > 1:
        raise DataError("some of these families classify and some predict numbers; one frontier is of one task")
    return tuple(Family(name, one, parameter or _knob_of(one)) for name, one in named.items())


def _named(given: Sequence[Any], parameter: str | None) -> dict[str, Any] | None:
    """Estimators by names of their own; None where none of them is waiting to be fitted at values of its knob."""
    if not given:
        raise DataError("the list of models is empty; pass at least one, fitted or to be trained")
    others = [one for one in given if not _is_to_be_swept(one, parameter)]
    if len(others) == len(given):
        return None
    if others:
        raise DataError(
            f"some of these estimators are to be trained, but {others[0]!r} is fitted already, or has no parameter "
            f"{parameter or 'strength or tolerance'} that trades accuracy for fairness; judge fitted models by "
            "themselves, and wrap plain ones, as in BarycentrePostprocessor(model)"
        )
    named: dict[str, Any] = {}
    for one in given:
        name = _name_of(one)
        same = sum(other == name or other.startswith(f"{name} #") for other in named)
        named[f"{name} #{same + 1}" if same else name] = one
    return named


def _is_to_be_swept(model: Any, parameter: str | None) -> bool:
    if not hasattr(model, "fit") or not hasattr(model, "get_params"):
        return False
    if (parameter or _knob_of(model)) not in model.get_params():
        return False
    try:
        check_is_fitted(model)
    except NotFittedError:
        return True
    return False


def _knob_of(estimator: Any) -> str:
    """The parameter that trades accuracy for fairness, as ours call it."""
    known = estimator.get_params() if hasattr(estimator, "get_params") else {}
    return "tolerance" if "tolerance" in known and "strength" not in known else "strength"


def _name_of(estimator: Any) -> str:
    name, parameters = type(estimator).__name__, estimator.get_params(deep=False)
    if isinstance(parameters.get("model"), str):
        return f"{name} ({parameters['model']})"
    wrapped = parameters.get("estimator")
    inner = f" of {_name_of(wrapped)}" if hasattr(wrapped, "get_params") else ""
    return f"{name}{inner}" + (", without groups" if parameters.get("needs_group") is False else "")
