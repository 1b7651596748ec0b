"""A fitted fair classifier or regressor <-> its record and arrays.

Nothing in a file is taken on trust: a part that does not fit the others is a ModelFileError. Cells are compiled from
the record, never stored; a learner's state is whole, so that a stream goes on bit by bit the same.
"""

from __future__ import annotations

import copy
import reprlib
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import sklearn
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from metrifair.errors import DataError, ModelFileError
from metrifair.metrics.registry import METRICS
from metrifair.problem.criteria import criterion_named
from metrifair.problem.losses import REGRESSION_LOSSES
from metrifair.saving.learner import learner_of, learner_parts, moment_parts, moments_of, tensor_of
from metrifair.saving.modelfile import Content, under
from metrifair.saving.records import (
    Arrays,
    EstimatorRecord,
    Features,
    ModuleRecord,
    NetworkRecord,
    file_errors,
    in_one_line,
    plain,
    record_of,
    value_of,
)
from metrifair.saving.scheme import classes_of, classes_record, scheme_of, scheme_record
from metrifair.saving.scoring import network_arrays, outputs_of, scaling_arrays
from metrifair.support.checks import check_known
from metrifair.training import Predictor, Scaling
from metrifair.training.models import Model, Network, StackedModule

KIND = "estimator"  # of the file; which one it is, the record says

_METHODS = ("fit", "partial_fit", "score")  # those that take metadata


# Writing


def content_of(estimator: BaseEstimator) -> Content:
    """What the file of a fitted estimator holds; many estimators can share a file, their arrays ``prefixed``.

    >>> from metrifair.estimators import FairRegressor
    >>> model = FairRegressor(0.0, model="linear", standardize=False).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> sorted(content_of(model).arrays)
    ['parameters/bias0', 'parameters/weight0', 'scaling/mean', 'scaling/scale']
    """
    kind = type(estimator)
    check_own_class(kind)
    check_is_fitted(estimator, ["predictor_", "scheme_"])
    content = _taken_apart(estimator)
    module = getattr(estimator.predictor_.model, "module", None)
    if module is None and isinstance(estimator.model, torch.nn.Module):
        module = estimator.model
    try:
        estimator_of(kind, content, module)  # what could not be read again is not written
    except ModelFileError as error:
        raise DataError(f"this {kind.__name__} cannot be saved: {error}") from error
    return content


def check_own_class(kind: type) -> None:
    """Raise a DataError where the class is one that a loader would not find."""
    if not kind.__module__.startswith("metrifair."):
        raise DataError(
            f"{kind.__name__} is a class of your own, and a model file holds no code; save its parts yourself"
        )


def _taken_apart(estimator: BaseEstimator) -> Content:
    fitted, predictor = vars(estimator), estimator.predictor_
    tensors: dict[str, Tensor] = {f"parameters/{name}": value for name, value in predictor.parameters.items()}
    tensors |= {f"scaling/{name}": part for name, part in predictor.scaling._asdict().items()}
    model: NetworkRecord | ModuleRecord
    if isinstance(predictor.model, Network):
        model = NetworkRecord(hidden=[int(units) for units in predictor.model.hidden])
    elif isinstance(predictor.model, StackedModule):
        buffers = dict(predictor.model.module.named_buffers())
        tensors |= {f"buffers/{name}": value for name, value in buffers.items()}
        called = type(predictor.model.module).__name__
        model = ModuleRecord(module=called, names=list(predictor.parameters), buffers=list(buffers))
    else:
        raise DataError(f"a model of type {type(predictor.model).__name__} cannot be saved")
    moments = fitted.get("moments_")
    if moments is not None:
        tensors |= moment_parts(moments)
    learner = None
    if "learner_" in fitted:
        learner, state = learner_parts(estimator.learner_)
        tensors |= {f"learner/{name}": part for name, part in state.items()}
    scaling = fitted.get("target_scaling_")
    record = EstimatorRecord(
        **shared_fields(estimator),
        target_scaling=None if scaling is None else tuple(map(float, scaling)),  # type: ignore[arg-type]
        iterations=fitted.get("n_iter_"),
        moments=moments is not None,
        scheme=scheme_record(estimator.scheme_),
        model=model.as_json(),
        learner=learner,
        left_out=list(fitted.get("left_out_", ())),
    )
    return Content(KIND, record.as_json(), {name: part.detach().cpu().numpy() for name, part in tensors.items()})


def shared_fields(model: Any, besides: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a ModelRecord; the record of a parameter ``besides`` stands elsewhere."""
    parameters = model.get_params(deep=False).items()
    names, classes = (getattr(model, name, None) for name in ("feature_names_in_", "classes_"))
    return {
        "kind": type(model).__name__,
        "parameters": {name: _parameter(name, value) for name, value in parameters if name not in besides},
        "features": Features(count=int(model.n_features_in_), names=None if names is None else list(map(str, names))),
        "classes": None if classes is None else classes_record(classes),
        "requests": requests_of(model),
    }


def _parameter(name: str, value: object) -> Any:
    if name == "random_state" and isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, torch.nn.Module):
        return {"module": type(value).__name__}
    return plain(name, value.tolist() if isinstance(value, np.ndarray) and value.ndim > 1 else value)


def requests_of(estimator: BaseEstimator) -> dict[str, dict[str, bool | str]]:
    """For each method the metadata that scikit-learn was asked to route to it, or not to; empty where nothing was."""
    routing = estimator.get_metadata_routing()
    said = {method: getattr(routing, method).requests for method in _METHODS}
    given = {method: {name: alias for name, alias in own.items() if alias is not None} for method, own in said.items()}
    return {method: own for method, own in given.items() if own}


# Reading


@file_errors("the file does not describe a model", DataError)  # from the checks of a user's own arguments
def estimator_of(kind: type[BaseEstimator], content: Content, module: torch.nn.Module | None = None) -> BaseEstimator:
    """The estimator of this class that ``content_of`` took apart; parts that do not fit are a ModelFileError."""
    record = record_of(EstimatorRecord, content.meta)
    module = copy.deepcopy(module)
    estimator = _constructed(kind, record.parameters, module)
    if module is not None and estimator.model is not module and "module" not in record.model:
        raise ModelFileError("the model needs no module; leave module out")
    estimator.n_features_in_ = count = record.features.count
    if record.features.names is not None:
        estimator.feature_names_in_ = np.array(record.features.names, dtype=object)
    classes = None
    if hasattr(kind, "predict_proba"):
        estimator.classes_ = classes = classes_of(record.classes)
    elif record.target_scaling is None:
        raise ModelFileError("the file does not describe a model: target_scaling is missing")
    else:
        estimator.target_scaling_ = record.target_scaling
    estimator.scheme_ = scheme_of(record.scheme, classes)
    own = Arrays({name: array for name, array in content.arrays.items() if not name.startswith("learner/")})
    estimator.predictor_ = _predictor(record, own, outputs_of(classes), module)
    if record.iterations is not None:
        estimator.n_iter_ = record.iterations
        estimator.moments_ = moments_of(own, count) if record.moments else None
        estimator.left_out_ = tuple(record.left_out)
    own.check_all_taken()
    state = Arrays(under("learner/", content.arrays))
    if record.learner is not None:
        estimator.learner_ = learner_of(record.learner, state, estimator)
        estimator.n_updates_ = estimator.learner_.updates
    state.check_all_taken()
    restore_requests(estimator, record.requests)
    return estimator


def _constructed(kind: type[BaseEstimator], given: Mapping[str, Any], module: torch.nn.Module | None) -> BaseEstimator:
    """An estimator with these parameters; those the file does not have keep their default."""
    known = kind().get_params(deep=False)
    values: dict[str, Any] = {}
    for name, json in given.items():
        check_known("a parameter", name, known)
        if isinstance(json, dict) and "module" in json:
            values["model"] = _given(module, json["module"])
        else:
            values[name] = value_of(name, json)
    estimator = kind(**values)
    estimator._check_parameters()
    criterion_named(estimator.criterion)
    check_known("metric", estimator.metric, METRICS)
    if "loss" in known:
        check_known("loss", estimator.loss, REGRESSION_LOSSES)
    if not isinstance(estimator.model, torch.nn.Module):
        check_known("model", estimator.model, ("linear", "mlp"))
    state, hidden = estimator.random_state, estimator.hidden
    fits = {
        "device": isinstance(estimator.device, str),
        "random_state": state is None or isinstance(state, int),
        "hidden": hidden is None or (isinstance(hidden, (list, tuple)) and all(isinstance(u, int) for u in hidden)),
    }
    for name in (name for name, good in fits.items() if not good):
        raise ModelFileError(f"{name} cannot be {reprlib.repr(getattr(estimator, name))}")
    return estimator


def _given(module: torch.nn.Module | None, name: object) -> torch.nn.Module:
    """The module that the caller must have passed."""
    if module is None:
        called = name if isinstance(name, str) and name.isidentifier() and len(name) < 80 else "..."
        raise ModelFileError(
            f"the model is your own module {called!r}, of which the file holds the weights, not the code; pass it, as "
            f"in load(path, module={called}())"
        )
    return module


def _predictor(record: EstimatorRecord, arrays: Arrays, outputs: int, module: torch.nn.Module | None) -> Predictor:
    """The predictor; a module's buffers are set in place."""
    mean, scale = map(torch.from_numpy, scaling_arrays(arrays, record.features.count))
    model: Model
    if "hidden" in record.model:
        model = Network(record.features.count, tuple(record_of(NetworkRecord, record.model).hidden), outputs)
        weights = {name: torch.from_numpy(array) for name, array in network_arrays(record, arrays, outputs).items()}
    else:
        saved = record_of(ModuleRecord, record.model)
        own = _given(module, saved.module)
        parameters, buffers = dict(own.named_parameters()), dict(own.named_buffers())
        for what, names, there in (("parameters", saved.names, parameters), ("buffers", saved.buffers, buffers)):
            if sorted(names) != sorted(there):
                raise ModelFileError(
                    f"{type(own).__name__} has the {what} {reprlib.repr(sorted(there))}, the file has "
                    f"{reprlib.repr(sorted(names))}; pass a module like the one that was fitted"
                )
        for name, buffer in buffers.items():
            dtype = str(buffer.dtype).removeprefix("torch.")
            buffer.copy_(torch.from_numpy(arrays.take(f"buffers/{name}", buffer.shape, dtype, finite=False)))
        weights = {  # in the order of the learner's vector
            name: tensor_of(arrays, f"parameters/{name}", (1, 1, *parameters[name].shape)) for name in saved.names
        }
        model = StackedModule(own, outputs)
    return Predictor(model, weights, Scaling(mean, scale))


def restore_requests(estimator: BaseEstimator, requests: Mapping[str, Mapping[str, bool | str]]) -> None:
    """Ask scikit-learn again for the metadata that ``requests_of`` found."""
    routing = estimator.get_metadata_routing()
    for method, said in requests.items():
        known = getattr(routing, method).requests if method in _METHODS else {}
        for name, alias in said.items():
            if name not in known or not (isinstance(alias, bool) or alias.isidentifier()):
                raise ModelFileError(f"the requests of {in_one_line(method)} cannot be {reprlib.repr({name: alias})}")
        with sklearn.config_context(enable_metadata_routing=True):  # else nothing may be asked for
            getattr(estimator, f"set_{method}_request")(**said)
