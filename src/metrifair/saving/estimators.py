"""A fitted fair classifier or regressor <-> its record and arrays.

Every part of a file is validated: one that does not fit the others is a ModelFileError. Cells are
compiled from the record, never stored. A learner's state is complete, so that a stream continues
bit by bit the same.
"""

from __future__ import annotations

import copy
import reprlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from metrifair.errors import DataError, ModelFileError
from metrifair.metrics.registry import METRICS
from metrifair.problem.criteria import criterion_named
from metrifair.problem.losses import REGRESSION_LOSSES
from metrifair.saving.modelfile import Content
from metrifair.saving.records import (
    Arrays,
    EstimatorRecord,
    Features,
    ModuleRecord,
    NetworkRecord,
    classes_record,
    file_errors,
    plain,
    read_classes,
    read_record,
    read_scheme,
    read_value,
    scheme_record,
)
from metrifair.saving.scoring import network_arrays, output_count, scaling_arrays
from metrifair.support.checks import check_known
from metrifair.training import Predictor, Scaling
from metrifair.training.models import Model, Moments, Network, StackedModule

ESTIMATOR = "estimator"  # of the file; the record names the estimator

# Writing


def make_content(estimator: BaseEstimator) -> Content:
    """The content of a fitted estimator's file; many estimators can share a file, their arrays
    ``prefixed``.

    >>> from metrifair import FairRegressor, PenaltyOptions
    >>> options = PenaltyOptions(standardize=False)
    >>> model = FairRegressor(0.0, model="linear", penalty=options).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> sorted(make_content(model).arrays)
    ['parameters/bias0', 'parameters/weight0', 'scaling/mean', 'scaling/scale']
    """
    kind = type(estimator)
    check_own_class(kind)
    check_is_fitted(estimator, ["predictor_", "scheme_"])
    content = _content(estimator)
    module = getattr(estimator.predictor_.model, "module", None)
    if module is None and isinstance(estimator.model, torch.nn.Module):
        module = estimator.model
    try:
        read_estimator(kind, content, module)  # what could not be read again is not written
    except ModelFileError as error:
        raise DataError(f"this {kind.__name__} cannot be saved: {error}") from error
    return content


def check_own_class(kind: type) -> None:
    """Raise a DataError if the class is one that a loader would not find."""
    if not kind.__module__.startswith("metrifair."):
        raise DataError(
            f"{kind.__name__} is a class of your own, and a model file contains no code; save its "
            "parts yourself"
        )


def file_name(kind: type) -> str:
    """The name of a class in a file: a class of the user's own with its module.

    >>> from metrifair.estimators import FairRegressor
    >>> file_name(FairRegressor), file_name(BaseEstimator)
    ('FairRegressor', 'sklearn.base.BaseEstimator')
    """
    if kind.__module__.startswith("metrifair."):
        return kind.__name__
    return f"{kind.__module__}.{kind.__qualname__}"


def _content(estimator: BaseEstimator) -> Content:
    fitted = vars(estimator)
    predictor = estimator.predictor_
    tensors: dict[str, Tensor] = {
        f"parameters/{name}": value for name, value in predictor.parameters.items()
    }
    tensors |= {f"scaling/{name}": part for name, part in predictor.scaling._asdict().items()}
    model: NetworkRecord | ModuleRecord
    if isinstance(predictor.model, Network):
        model = NetworkRecord(hidden=[int(units) for units in predictor.model.hidden])
    elif isinstance(predictor.model, StackedModule):
        buffers = dict(predictor.model.module.named_buffers())
        tensors |= {f"buffers/{name}": value for name, value in buffers.items()}
        module_name = type(predictor.model.module).__name__
        model = ModuleRecord(
            module=module_name, names=list(predictor.parameters), buffers=list(buffers)
        )
    else:
        raise DataError(f"a model of type {type(predictor.model).__name__} cannot be saved")
    moments = fitted.get("moments_")
    if moments is not None:
        tensors |= moment_parts(moments)
    scaling = fitted.get("target_scaling_")
    record = EstimatorRecord(
        **shared_fields(estimator),
        target_scaling=None if scaling is None else tuple(map(float, scaling)),  # type: ignore[arg-type]
        iterations=fitted.get("n_iter_"),
        moments=moments is not None,
        scheme=scheme_record(estimator.scheme_),
        model=model.as_json(),
        updates=fitted.get("n_updates_"),
        left_out=list(fitted.get("left_out_", ())),
    )
    return Content(
        ESTIMATOR,
        record.as_json(),
        {name: part.detach().cpu().numpy() for name, part in tensors.items()},
    )


def shared_fields(model: Any, besides: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a ModelRecord; the record of a parameter ``besides`` is elsewhere."""
    parameters = model.get_params(deep=False).items()
    names, classes = (getattr(model, name, None) for name in ("feature_names_in_", "classes_"))
    if names is not None:
        names = list(map(str, names))
    return {
        "kind": file_name(type(model)),
        "parameters": {
            name: _parameter(name, value) for name, value in parameters if name not in besides
        },
        "features": Features(count=int(model.n_features_in_), names=names),
        "classes": None if classes is None else classes_record(classes),
    }


def _parameter(name: str, value: object) -> Any:
    if name == "random_state" and isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, torch.nn.Module):
        return {"module": type(value).__name__}
    return plain(
        name, value.tolist() if isinstance(value, np.ndarray) and value.ndim > 1 else value
    )


# Reading


# from the checks of a user's own arguments
@file_errors("the file does not describe a model", DataError)
def read_estimator(
    kind: type[BaseEstimator], content: Content, module: torch.nn.Module | None = None
) -> BaseEstimator:
    """The estimator of this class in the content of a file; parts that do not fit are a
    ModelFileError.
    """
    record = read_record(EstimatorRecord, content.meta)
    module = copy.deepcopy(module)
    estimator = _construct(kind, record.parameters, module)
    if module is not None and estimator.model is not module and "module" not in record.model:
        raise ModelFileError("the model needs no module; leave module out")
    estimator.n_features_in_ = count = record.features.count
    if record.features.names is not None:
        estimator.feature_names_in_ = np.array(record.features.names, dtype=object)
    classes = None
    if hasattr(kind, "predict_proba"):
        estimator.classes_ = classes = read_classes(record.classes)
    elif record.target_scaling is None:
        raise ModelFileError("the file does not describe a model: target_scaling is missing")
    else:
        estimator.target_scaling_ = record.target_scaling
    estimator.scheme_ = read_scheme(record.scheme, classes)
    arrays = Arrays(content.arrays)
    estimator.predictor_ = _predictor(record, arrays, output_count(classes), module)
    estimator.moments_ = read_moments(arrays, count) if record.moments else None
    if record.iterations is not None:
        estimator.n_iter_ = record.iterations
        estimator.left_out_ = tuple(record.left_out)
    if record.updates is not None:
        estimator.n_updates_ = record.updates
    arrays.check_all_taken()
    return estimator


def _construct(
    kind: type[BaseEstimator], stored: Mapping[str, Any], module: torch.nn.Module | None
) -> BaseEstimator:
    """An estimator with these parameters; those the file does not have keep their default."""
    defaults = kind().get_params(deep=False)
    values: dict[str, Any] = {}
    for name, json in stored.items():
        check_known("a parameter", name, defaults)
        if isinstance(json, dict) and "module" in json:
            values["model"] = _require_module(module, json["module"])
        else:
            values[name] = read_value(name, json)
    estimator = kind(**values)
    estimator._check_parameters()
    criterion_named(estimator.criterion)
    check_known("metric", estimator.metric, METRICS)
    if "loss" in defaults:
        check_known("loss", estimator.loss, REGRESSION_LOSSES)
    if not isinstance(estimator.model, torch.nn.Module):
        check_known("model", estimator.model, ("linear", "mlp"))
    state = estimator.random_state
    hidden = estimator.hidden
    fits = {
        "device": isinstance(estimator.device, str),
        "random_state": state is None or isinstance(state, int),
        "hidden": hidden is None
        or (isinstance(hidden, (list, tuple)) and all(isinstance(u, int) for u in hidden)),
    }
    for name in (name for name, good in fits.items() if not good):
        raise ModelFileError(f"{name} cannot be {reprlib.repr(getattr(estimator, name))}")
    return estimator


def _require_module(module: torch.nn.Module | None, name: object) -> torch.nn.Module:
    """The module that the caller must have passed."""
    if module is None:
        title = name if isinstance(name, str) and name.isidentifier() and len(name) < 80 else "..."
        raise ModelFileError(
            f"the model is your own module {title!r}, of which the file contains the weights, not "
            "the code; pass "
            "one with the same layers as at fit, as load(path, module=...)"
        )
    return module


def _predictor(
    record: EstimatorRecord, arrays: Arrays, outputs: int, module: torch.nn.Module | None
) -> Predictor:
    """The predictor; a module's buffers are set in place."""
    mean, scale = map(torch.from_numpy, scaling_arrays(arrays, record.features.count))
    model: Model
    if "hidden" in record.model:
        model = Network(
            record.features.count, tuple(read_record(NetworkRecord, record.model).hidden), outputs
        )
        weights = {
            name: torch.from_numpy(array)
            for name, array in network_arrays(record, arrays, outputs).items()
        }
    else:
        saved = read_record(ModuleRecord, record.model)
        user_module = _require_module(module, saved.module)
        parameters = dict(user_module.named_parameters())
        buffers = dict(user_module.named_buffers())
        for kind, names, present in (
            ("parameters", saved.names, parameters),
            ("buffers", saved.buffers, buffers),
        ):
            if sorted(names) != sorted(present):
                raise ModelFileError(
                    f"{type(user_module).__name__} has the {kind} {reprlib.repr(sorted(present))}, "
                    "the file has "
                    f"{reprlib.repr(sorted(names))}; pass a module like the one that was fitted"
                )
        for name, buffer in buffers.items():
            dtype = str(buffer.dtype).removeprefix("torch.")
            buffer.copy_(
                torch.from_numpy(arrays.take(f"buffers/{name}", buffer.shape, dtype, finite=False))
            )
        weights = {
            name: read_tensor(arrays, f"parameters/{name}", (1, 1, *parameters[name].shape))
            for name in saved.names
        }
        model = StackedModule(user_module, outputs)
    return Predictor(model, weights, Scaling(mean, scale))


def read_tensor(
    arrays: Arrays, name: str, shape: Sequence[int | None], dtype: str = "float64"
) -> Tensor:
    """An array of the file as a tensor."""
    return torch.from_numpy(arrays.take(name, shape, dtype))


def moment_parts(moments: Moments) -> dict[str, Tensor]:
    """The running moments of the features, as ``read_moments`` reads them."""
    return {
        f"moments/{name}": torch.as_tensor(np.asarray(part))
        for name, part in moments._asdict().items()
    }


def read_moments(arrays: Arrays, features: int) -> Moments:
    """The running moments of the features."""
    shapes: dict[str, tuple[int, ...]] = {"weight": (), "mean": (features,), "squares": (features,)}
    weight, mean, squares = (
        arrays.take(f"moments/{name}", shape) for name, shape in shapes.items()
    )
    if weight < 0 or (squares < 0).any():
        raise ModelFileError("the running moments of the features are negative")
    return Moments(float(weight), mean, squares)
