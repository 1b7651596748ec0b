"""What metadata scikit-learn is asked to route to a model <-> JSON: ``set_fit_request`` and its like."""

from __future__ import annotations

import reprlib

import sklearn
from sklearn.base import BaseEstimator

from metrifair.errors import ModelFileError
from metrifair.saving.modelfile import Json
from metrifair.saving.plain import Fields

_METHODS = ("fit", "partial_fit", "score")  # those that take metadata


def requests_meta(estimator: BaseEstimator) -> dict[str, Json]:
    """For each method the metadata that it asked for, or asked not to get; empty where nothing was said."""
    asked: dict[str, Json] = {}
    for method, known in _requests(estimator).items():
        said: dict[str, Json] = {name: alias for name, alias in known.items() if alias is not None}
        if said:
            asked[method] = said
    return asked


def restore_requests(estimator: BaseEstimator, meta: Fields) -> None:
    """Ask again for what ``requests_meta`` found."""
    known = _requests(estimator)
    for method in meta.values:
        said = meta.inner(method).values
        for name, alias in said.items():
            named = isinstance(alias, str) and alias.isidentifier()
            if name not in known.get(method, ()) or not (named or isinstance(alias, bool)):
                raise ModelFileError(f"{meta.where}.{method} cannot ask for {reprlib.repr({name: alias})}")
        with sklearn.config_context(enable_metadata_routing=True):  # else nothing may be asked for
            getattr(estimator, f"set_{method}_request")(**said)


def _requests(estimator: BaseEstimator) -> dict[str, dict[str, bool | str | None]]:
    routing = estimator.get_metadata_routing()
    return {method: getattr(routing, method).requests for method in _METHODS}
