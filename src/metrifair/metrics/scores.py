"""One sample of scores as every metric takes it, from whatever the caller holds, and back to a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from metrifair.errors import DataError

Values: TypeAlias = "Tensor | ArrayLike"
"""Scores as a caller may hold them: a tensor, an array, a list, a column of any data frame."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of one side, with what is known of how they were drawn."""

    values: Tensor  # (..., n), or (..., n, d) for vector scores
    weights: Tensor | None = None  # (..., n)
    strata: tuple[int, ...] | None = None  # sizes of consecutive blocks drawn with fixed counts


Metric: TypeAlias = Callable[[Scores, Scores], Tensor]
"""How far apart two samples of scores are: a tensor of the leading (model) axes."""


def two_samples(
    u: Values, v: Values, u_weights: Values | None, v_weights: Values | None, *, vector: bool = False
) -> tuple[Scores, Scores]:
    """Both samples, checked, in one dtype and on one device."""
    left, right = _sample("u", u, u_weights, vector), _sample("v", v, v_weights, vector)
    if left.values.device != right.values.device:
        raise DataError(
            f"u and v must be on one device, got {left.values.device} and {right.values.device}; move one of them"
        )
    if vector and left.values.shape[-1] != right.values.shape[-1]:
        raise DataError(
            f"u and v must hold vectors of one length, got {left.values.shape[-1]} and {right.values.shape[-1]}"
        )
    dtype = torch.promote_types(left.values.dtype, right.values.dtype)
    return _in_dtype(left, dtype), _in_dtype(right, dtype)


def result(value: Tensor, *inputs: Values | None) -> Any:
    """The value as the caller expects it: a tensor where tensors came in, else a float."""
    return value if any(isinstance(given, Tensor) for given in inputs) else value.item()


def array_of(name: str, values: Values) -> np.ndarray[Any, np.dtype[Any]]:
    """A NumPy array of what the caller holds: a list, an array, or a column of any data frame."""
    column = nw.from_native(values, series_only=True, pass_through=True)
    array = column.to_numpy() if isinstance(column, nw.Series) else np.asarray(values)
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise DataError(f"{name} must hold numbers, got {array.dtype} values such as {_first(array)}") from None
    return array


def _first(array: np.ndarray[Any, np.dtype[Any]]) -> str:
    return repr(array.flat[0]) if array.size else "nothing"


def _sample(name: str, values: Values, weights: Values | None, vector: bool) -> Scores:
    scores = _tensor(name, values, least_dimensions=2 if vector else 1)
    count = scores.shape[-2] if vector else scores.shape[-1]
    if count == 0:
        raise DataError(f"{name} holds no scores; pass at least one")
    if weights is None:
        return Scores(scores)
    weight = _tensor(f"{name}_weights", weights, least_dimensions=1).to(scores.device)
    if weight.shape[-1] != count:
        raise DataError(
            f"{name} holds {count} scores and {name}_weights {weight.shape[-1]} weights; pass one per score"
        )
    if weight.device.type == "cpu" and (bool((weight < 0).any()) or not bool((weight.sum(-1) > 0).all())):
        raise DataError(f"{name}_weights must not be negative and must have a positive sum")
    return Scores(scores, weight)


def _tensor(name: str, values: Values, least_dimensions: int) -> Tensor:
    if isinstance(values, Tensor):
        tensor = values if values.is_floating_point() else values.to(torch.float64)
    else:
        array = array_of(name, values)
        if array.ndim > least_dimensions:
            raise DataError(
                f"{name} must have {least_dimensions} dimension(s), got an array of shape {array.shape}; "
                "vector scores: energy_distance or mmd_squared with vector=True; many models at once: torch tensors"
            )
        tensor = torch.as_tensor(np.ascontiguousarray(array, dtype=np.float64))
    if tensor.ndim < least_dimensions:
        raise DataError(f"{name} must have at least {least_dimensions} dimension(s), got shape {tuple(tensor.shape)}")
    # On an accelerator this check would make every training step wait for the device.
    if tensor.device.type == "cpu" and not bool(torch.isfinite(tensor).all()):
        raise DataError(f"{name} holds NaN or infinite values; remove or replace them")
    return tensor


def _in_dtype(scores: Scores, dtype: torch.dtype) -> Scores:
    return Scores(scores.values.to(dtype), scores.weights, scores.strata)
