"""One sample of scores as every metric takes it, from whatever the caller holds, and back to a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from metrifair.errors import DataError
from metrifair.problem.tables import array_of

Values: TypeAlias = "Tensor | ArrayLike"
"""Scores as a caller may hold them: a tensor, an array, a list, a column of any data frame."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two samples of scores, one after the other, with what is known of how they were drawn."""

    values: Tensor  # (..., n), or (..., n, d) for vector scores: the left sample, then the right one
    left: tuple[int, ...]  # sizes of consecutive blocks, drawn with fixed counts, of the left sample
    right: tuple[int, ...]
    weights: Tensor | None = None  # (..., n)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of all blocks."""
        return self.left + self.right

    @property
    def samples(self) -> tuple[int, int]:
        """Sizes of the two samples."""
        return sum(self.left), sum(self.right)


Metric: TypeAlias = Callable[[Pair], Tensor]
"""How far apart two samples of scores are: a tensor of the leading (model) axes."""

Floats: TypeAlias = NDArray[np.float64]

Utility: TypeAlias = Callable[[Floats], Floats]
"""What a score is worth: a function of an array of scores."""

Bound: TypeAlias = "Callable[[float, float, float | None], float | None]"
"""An upper bound of a distance, from its value, from the radius within which both distribution functions together are
known, and from the length of the interval that holds all scores, None where that is not known; None: no bound."""


def paired(u: Values, v: Values, u_weights: Values | None, v_weights: Values | None, *, vector: bool = False) -> Pair:
    """Both samples, checked, in one dtype and on one device."""
    axis = -2 if vector else -1
    samples = [_scores("u", u, vector), _scores("v", v, vector)]
    if samples[0].device != samples[1].device:
        raise DataError(f"u and v must be on one device, got {samples[0].device} and {samples[1].device}; move one")
    if vector and samples[0].shape[-1] != samples[1].shape[-1]:
        raise DataError(
            f"u and v must hold vectors of one length, got {samples[0].shape[-1]} and {samples[1].shape[-1]}"
        )
    n, m = (sample.shape[axis] for sample in samples)
    weights = None
    if u_weights is not None or v_weights is not None:
        both = _weights("u", u_weights, n), _weights("v", v_weights, m)
        # Each sample counts once, however large its weights are.
        weights = joined(*((weight / weight.sum(-1, keepdim=True)).to(samples[0].device) for weight in both))
    dtype = torch.promote_types(samples[0].dtype, samples[1].dtype)
    values = joined(*(sample.to(dtype) for sample in samples), axis=axis)
    if weights is not None:
        values = values.expand(*torch.broadcast_shapes(values.shape[:axis], weights.shape[:-1]), *values.shape[axis:])
    return Pair(values, (n,), (m,), weights)


def joined(u: Tensor, v: Tensor, *, axis: int = -1) -> Tensor:
    """One after the other along an axis counted from the end, axes before it broadcast."""
    lead = torch.broadcast_shapes(u.shape[:axis], v.shape[:axis])
    return torch.cat([part.expand(*lead, *part.shape[axis:]) for part in (u, v)], axis)


def result(value: Tensor, *inputs: Values | None) -> Any:
    """The value as the caller expects it: a tensor where tensors came in, else a float."""
    return value if any(isinstance(given, Tensor) for given in inputs) else value.item()


def _scores(name: str, values: Values, vector: bool) -> Tensor:
    scores = _tensor(name, values, least_dimensions=2 if vector else 1)
    if scores.shape[-2 if vector else -1] == 0:
        raise DataError(f"{name} holds no scores; pass at least one")
    return scores


def _weights(name: str, weights: Values | None, count: int) -> Tensor:
    if weights is None:
        return torch.ones(count, dtype=torch.float64)
    weight = _tensor(f"{name}_weights", weights, least_dimensions=1).double()
    if weight.shape[-1] != count:
        raise DataError(
            f"{name} holds {count} scores and {name}_weights {weight.shape[-1]} weights; pass one per score"
        )
    if weight.device.type == "cpu" and (bool((weight < 0).any()) or not bool((weight.sum(-1) > 0).all())):
        raise DataError(f"{name}_weights must not be negative and must have a positive sum")
    return weight


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
        tensor = torch.as_tensor(np.require(array, np.float64, ["C", "W"]))
    if tensor.ndim < least_dimensions:
        raise DataError(f"{name} must have at least {least_dimensions} dimension(s), got shape {tuple(tensor.shape)}")
    # On an accelerator this check would make every training step wait for the device.
    if tensor.device.type == "cpu" and not _finite(tensor):
        raise DataError(f"{name} holds NaN or infinite values; remove or replace them")
    return tensor


def _finite(tensor: Tensor) -> bool:
    """One pass, where torch.isfinite takes five."""
    if not tensor.numel():
        return True
    low, high = tensor.detach().aminmax()
    return isfinite(low.item()) and isfinite(high.item())
