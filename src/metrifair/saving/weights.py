"""A trained predictor <-> arrays + JSON. A module of the user's own leaves its weights, never its code."""

from __future__ import annotations

import reprlib
from itertools import pairwise
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.errors import DataError, ModelFileError
from metrifair.saving.modelfile import Json
from metrifair.saving.plain import Arrays, Fields
from metrifair.training import Predictor, Scaling
from metrifair.training.models import Model, Network, StackedModule

Shapes = dict[str, tuple[int, ...]]


def predictor_parts(predictor: Predictor) -> tuple[Json, dict[str, NDArray[Any]]]:
    """Parameters, scaling, and the buffers of a module."""
    tensors = {f"parameters/{name}": value for name, value in predictor.parameters.items()}
    tensors |= {f"scaling/{name}": part for name, part in predictor.scaling._asdict().items()}
    meta: Json
    if isinstance(predictor.model, Network):
        meta = {"hidden": [int(units) for units in predictor.model.hidden]}
    elif isinstance(predictor.model, StackedModule):
        module = predictor.model.module
        tensors |= {f"buffers/{name}": value for name, value in module.named_buffers()}
        meta = {
            "module": type(module).__name__,
            "names": list(predictor.parameters),
            "buffers": [name for name, _ in module.named_buffers()],
        }
    else:
        raise DataError(f"a model of type {type(predictor.model).__name__} cannot be saved")
    return meta, {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def restored_predictor(
    meta: Fields, arrays: Arrays, *, features: int, outputs: int, module: torch.nn.Module | None
) -> Predictor:
    """The predictor that ``predictor_parts`` took apart; a module's buffers are set in place."""
    mean, scale = (arrays.take(f"scaling/{name}", (1, features)) for name in ("mean", "scale"))
    if bool((scale <= 0).any()):
        raise ModelFileError("array 'scaling/scale' must be positive")
    model: Model
    if "hidden" in meta.values:
        hidden = meta.only("hidden").items("hidden")
        widths = [Fields({"units": units}, "a hidden layer").whole("units", least=1) for units in hidden]
        model = Network(features, tuple(widths), outputs)
        shapes = _network_shapes(model)
    else:
        own = given(module, meta.only("module", "names", "buffers").get("module"))
        shapes = _module_shapes(meta, own)
        _set_buffers(meta, own, arrays)
        model = StackedModule(own, outputs)
    parameters = {name: arrays.take(f"parameters/{name}", (1, 1, *shape)) for name, shape in shapes.items()}
    return Predictor(model, parameters, Scaling(mean, scale))


def given(module: torch.nn.Module | None, name: Json) -> torch.nn.Module:
    """The module that the caller must have passed.

    >>> given(None, "MyModule")
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: the model is your own module 'MyModule', of which the file holds the weights, not
    the code; pass it, as in load(path, module=MyModule())
    """
    if module is None:
        called = name if isinstance(name, str) and name.isidentifier() and len(name) < 80 else "..."
        raise ModelFileError(
            f"the model is your own module {called!r}, of which the file holds the weights, not the code; pass it, as "
            f"in load(path, module={called}())"
        )
    return module


def _network_shapes(network: Network) -> Shapes:
    shapes: Shapes = {}
    for layer, (before, after) in enumerate(pairwise(network.widths)):
        shapes |= {f"weight{layer}": (after, before), f"bias{layer}": (after, 1)}
    return shapes


def _module_shapes(meta: Fields, module: torch.nn.Module) -> Shapes:
    """Shapes of the module's parameters, in the order of the file, which the learner's vector has too."""
    own = {name: tuple(value.shape) for name, value in module.named_parameters()}
    names = meta.texts("names")
    _check_names("parameters", names, own, module)
    return {name: own[name] for name in names}


def _set_buffers(meta: Fields, module: torch.nn.Module, arrays: Arrays) -> None:
    own: dict[str, Tensor] = dict(module.named_buffers())
    _check_names("buffers", meta.texts("buffers"), own, module)
    for name, buffer in own.items():
        dtype = str(buffer.dtype).removeprefix("torch.")
        buffer.copy_(arrays.take(f"buffers/{name}", buffer.shape, dtype, finite=False))


def _check_names(what: str, saved: list[str], own: dict[str, Any], module: torch.nn.Module) -> None:
    if sorted(saved) != sorted(own):
        raise ModelFileError(
            f"{type(module).__name__} has the {what} {reprlib.repr(sorted(own))}, the file has "
            f"{reprlib.repr(sorted(saved))}; pass a module like the one that was fitted"
        )
