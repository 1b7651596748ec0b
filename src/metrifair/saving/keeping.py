"""A fitted estimator <-> arrays + JSON metadata: what ``save`` writes, and ``load`` makes an estimator of."""

from __future__ import annotations

import copy
import reprlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from metrifair.checks import check_known
from metrifair.errors import DataError, ModelFileError
from metrifair.estimators.settings import check_settings
from metrifair.metrics.registry import METRICS
from metrifair.problem.criteria import criterion_named
from metrifair.problem.tasks import REGRESSION_LOSSES
from metrifair.saving.codebook import classes_meta, classes_of, scheme_meta, scheme_of
from metrifair.saving.modelfile import Content, Json, PathLike, prefixed, under, write
from metrifair.saving.plain import Arrays, Fields, plain, value_of
from metrifair.saving.requests import requests_meta, restore_requests
from metrifair.saving.streamstate import Setting, learner_parts, restored_learner, restored_moments
from metrifair.saving.weights import given, predictor_parts, restored_predictor

_FIELDS = (
    "kind",
    "parameters",
    "features",
    "classes",
    "target_scaling",
    "iterations",
    "moments",
    "scheme",
    "model",
    "learner",
)
_REQUESTS = "requests"  # only where there are any: older files have no such field
KIND = "estimator"  # of the file; which one it is, its meta says

_SWITCHES = ("unbiased", "intersectional", "standardize")
_LONGEST_MESSAGE = 500


class Parts(NamedTuple):
    """An estimator taken apart."""

    meta: dict[str, Json]
    arrays: dict[str, NDArray[Any]]


def save(estimator: BaseEstimator, path: PathLike) -> None:
    """Write a fitted estimator to one file."""
    meta, arrays = to_parts(estimator)
    write(path, Content(KIND, meta, arrays))


def to_parts(estimator: BaseEstimator) -> Parts:
    """What the file of a fitted estimator holds; many estimators can share a file, their arrays ``prefixed``.

    >>> from metrifair.estimators import FairRegressor
    >>> model = FairRegressor(0.0, model="linear").fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> sorted(to_parts(model).arrays)
    ['parameters/bias0', 'parameters/weight0', 'scaling/mean', 'scaling/scale']
    """
    kind = type(estimator)
    if not kind.__module__.startswith("metrifair."):
        raise DataError(
            f"{kind.__name__} is a class of your own, and a model file holds no code; save its parts yourself"
        )
    check_is_fitted(estimator, ["predictor_", "scheme_"])
    parts = _taken_apart(estimator)
    module = getattr(estimator.predictor_.model, "module", None)
    if module is None and isinstance(estimator.model, torch.nn.Module):
        module = estimator.model
    try:
        rebuilt(kind, *parts, module=module)  # what could not be read again is not written
    except ModelFileError as error:
        raise DataError(f"this {kind.__name__} cannot be saved: {error}") from error
    return parts


def _taken_apart(estimator: BaseEstimator) -> Parts:
    fitted, predictor = vars(estimator), estimator.predictor_
    classes, names = fitted.get("classes_"), fitted.get("feature_names_in_")
    model, arrays = predictor_parts(predictor)
    moments = fitted.get("moments_")
    if moments is not None:
        arrays |= {f"moments/{name}": np.asarray(part) for name, part in moments._asdict().items()}
    learner: Json = None
    if "learner_" in fitted:
        learner, state = learner_parts(estimator.learner_)
        arrays |= prefixed("learner/", state)
    meta: dict[str, Json] = {
        "kind": type(estimator).__name__,
        "parameters": {name: _parameter(name, value) for name, value in estimator.get_params(deep=False).items()},
        "features": {
            "count": int(estimator.n_features_in_),
            "names": None if names is None else [str(name) for name in names],
        },
        "classes": None if classes is None else classes_meta(classes),
        "target_scaling": plain("y", [float(part) for part in fitted["target_scaling_"]]) if classes is None else None,
        "iterations": plain("epochs", fitted.get("n_iter_")),
        "moments": moments is not None,
        "scheme": scheme_meta(estimator.scheme_),
        "model": model,
        "learner": learner,
    }
    if requests := requests_meta(estimator):
        meta[_REQUESTS] = requests
    return Parts(meta, arrays)


def _parameter(name: str, value: object) -> Json:
    if name == "random_state" and isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, torch.nn.Module):
        return {"module": type(value).__name__}
    return plain(name, value)


def rebuilt(
    kind: type[BaseEstimator],
    meta: Mapping[str, Json],
    arrays: Mapping[str, NDArray[Any]],
    module: torch.nn.Module | None = None,
) -> BaseEstimator:
    """The estimator of this class that ``to_parts`` took apart; parts that do not fit are a ModelFileError."""
    expected = (*_FIELDS, _REQUESTS) if _REQUESTS in meta else _FIELDS
    try:
        return _put_together(kind, Fields(meta, "model file").only(*expected), arrays, copy.deepcopy(module))
    except ModelFileError:
        raise
    except DataError as error:  # from the checks that a user's own arguments go through
        raise ModelFileError(f"the file describes no model: {str(error)[:_LONGEST_MESSAGE]}") from error


def _put_together(
    kind: type[BaseEstimator],
    meta: Fields,
    arrays: Mapping[str, NDArray[Any]],
    module: torch.nn.Module | None,
) -> BaseEstimator:
    estimator = _constructed(kind, meta.inner("parameters"), module)
    if module is not None and estimator.model is not module and "module" not in meta.inner("model").values:
        raise ModelFileError("the model needs no module; leave module out")
    classes = classes_of(meta.inner("classes")) if hasattr(kind, "predict_proba") else None
    features = meta.inner("features").only("count", "names")
    count = features.whole("count")
    own = Arrays({name: array for name, array in arrays.items() if not name.startswith("learner/")})
    state = Arrays(under("learner/", arrays))
    estimator.n_features_in_ = count
    if features.get("names") is not None:
        estimator.feature_names_in_ = np.array(_checked_names(features, count), dtype=object)
    if classes is not None:
        estimator.classes_ = classes
    else:
        estimator.target_scaling_ = _target_scaling(meta)
    estimator.scheme_ = scheme = scheme_of(meta.inner("scheme"), classes)
    outputs = 1 if classes is None or len(classes) == 2 else len(classes)
    estimator.predictor_ = predictor = restored_predictor(
        meta.inner("model"), own, features=count, outputs=outputs, module=module
    )
    if meta.get("iterations") is not None:
        estimator.n_iter_ = meta.whole("iterations", least=1)
    if meta.get("iterations") is not None:
        estimator.moments_ = restored_moments(own, count) if meta.flag("moments") else None
    if meta.get("learner") is not None:
        cells = 1 if scheme.cells is None else scheme.cells.count
        labels = 0 if classes is None else len(classes)
        setting = Setting(
            predictor.model, predictor.parameters, scheme.criterion, scheme.comparisons, cells, count, labels
        )
        estimator.learner_ = restored_learner(meta.inner("learner"), state, setting)
    if _REQUESTS in meta.values:
        restore_requests(estimator, meta.inner(_REQUESTS))
    own.check_all_taken()
    state.check_all_taken()
    return estimator


def _constructed(kind: type[BaseEstimator], meta: Fields, module: torch.nn.Module | None) -> BaseEstimator:
    """An estimator with these parameters; those the file does not have keep their default."""
    known = kind().get_params(deep=False)
    for name in meta.values:
        check_known("a parameter", name, known)
    values = {name: value_of(name, json) for name, json in meta.values.items() if not _names_module(json)}
    if len(values) < len(meta.values):
        values["model"] = given(module, meta.inner("model").get("module"))
    values |= {name: bool(values[name]) for name in _SWITCHES if values.get(name) in (0, 1)}  # as older files may say
    estimator = kind(**values)
    check_settings(estimator)
    criterion_named(estimator.criterion)
    check_known("metric", estimator.metric, METRICS)
    check_known("contrast", estimator.contrast, ("pairs", "rest"))
    if "loss" in known:
        check_known("loss", estimator.loss, REGRESSION_LOSSES)
    if not isinstance(estimator.model, torch.nn.Module):
        check_known("model", estimator.model, ("linear", "mlp"))
    _check_types(estimator)
    return estimator


def _names_module(json: Json) -> bool:
    return isinstance(json, dict) and "module" in json


def _check_types(estimator: BaseEstimator) -> None:
    odd = [] if isinstance(estimator.device, str) else ["device"]
    if not (estimator.random_state is None or isinstance(estimator.random_state, int)):
        odd.append("random_state")
    hidden = estimator.hidden
    if not (hidden is None or (isinstance(hidden, (list, tuple)) and all(isinstance(units, int) for units in hidden))):
        odd.append("hidden")
    for name in odd:
        raise ModelFileError(f"{name} cannot be {reprlib.repr(getattr(estimator, name))}")


def _checked_names(features: Fields, count: int) -> list[str]:
    names = features.texts("names")
    if len(names) != count:
        raise ModelFileError(f"there are {count} features, and {len(names)} names for them")
    return names


def _target_scaling(meta: Fields) -> tuple[float, float]:
    values = [value for value in meta.items("target_scaling") if type(value) is float]
    if len(values) != 2 or values[1] <= 0:
        raise ModelFileError(f"target_scaling must be a centre and a spread, got {reprlib.repr(values)}")
    return values[0], values[1]
