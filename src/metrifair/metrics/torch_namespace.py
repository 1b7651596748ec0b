"""Torch's side of the namespace: the operations of ``numpy_namespace`` on tensors of one device,
with gradients.

It is the only file of this package that imports torch, and it is imported for the first tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

_static: Any = staticmethod


class TorchNamespace:
    """The operations of ``numpy_namespace`` for tensors; see there for their definitions."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.is_host = device.type == "cpu"
        self.arange = partial(torch.arange, device=device)
        numbers: dict[str, Any] = {"dtype": torch.float64, "device": device}
        self.array = partial(torch.tensor, **numbers)
        self.full = partial(torch.full, **numbers)
        self.empty, self.ones, self.zeros = (
            partial(make, **numbers) for make in (torch.empty, torch.ones, torch.zeros)
        )

    amax, isinf, where = map(_static, (torch.amax, torch.isinf, torch.where))
    exp, log, rsqrt, sign, sqrt = map(
        _static, (torch.exp, torch.log, torch.rsqrt, torch.sign, torch.sqrt)
    )
    at_least, at_most = map(_static, (torch.clamp_min, torch.clamp_max))
    broadcast_shapes, broadcast_to = map(_static, (torch.broadcast_shapes, torch.broadcast_to))
    concat, einsum, meshgrid, stack = map(
        _static, (torch.cat, torch.einsum, torch.meshgrid, torch.stack)
    )
    zeros_like, expand_dims = map(_static, (torch.zeros_like, torch.unsqueeze))
    moveaxis, promote_types = map(_static, (torch.moveaxis, torch.promote_types))
    astype, double, integers, detach = map(
        _static, (Tensor.to, Tensor.double, Tensor.long, Tensor.detach)
    )
    logcumsumexp = staticmethod(lambda x: torch.logcumsumexp(x, -1))
    no_grad = torch.no_grad

    def eye(self, count: int, dtype: type = float) -> Tensor:
        return torch.eye(
            count, dtype=torch.long if dtype is int else torch.float64, device=self.device
        )

    # --- between tensors and arrays

    @staticmethod
    def asarray(x: Any) -> Tensor:
        if isinstance(x, Tensor):
            return x
        return torch.as_tensor(np.require(x, requirements=["C", "W"]))

    def to_device(self, x: Any) -> Tensor:
        return self.asarray(x).to(self.device)

    @staticmethod
    def host_array(x: Tensor) -> NDArray[Any] | None:
        """The values as an array; None on an accelerator, or inside a torch.func transform."""
        try:
            return x.detach().numpy()
        except (RuntimeError, TypeError):
            return None

    from_host = staticmethod(torch.from_numpy)

    @classmethod
    def on_arrays(cls, function: Callable[..., Tensor]) -> Callable[..., NDArray[Any]]:
        """A caller's function of tensors, for arrays."""

        def on_arrays(*arrays: NDArray[Any], **keywords: NDArray[Any]) -> NDArray[Any]:
            tensors = {name: cls.asarray(array) for name, array in keywords.items()}
            return function(*map(cls.asarray, arrays), **tensors).detach().numpy()

        return on_arrays

    # --- operations along the last axis

    @staticmethod
    def extent(x: Tensor) -> tuple[float, float]:
        low, high = x.detach().aminmax()
        return low.item(), high.item()

    @staticmethod
    def sum_of_squares(x: Tensor) -> float:
        flat = x.detach() if x.ndim == 1 else x.detach().flatten()
        return torch.dot(flat, flat).item()

    @staticmethod
    def gather(x: Tensor, places: Tensor) -> Tensor:
        return x.gather(-1, places)

    @staticmethod
    def take(x: Tensor, places: Tensor) -> Tensor:
        return x.index_select(-1, places)

    @staticmethod
    def scattered(values: Tensor, places: Tensor) -> Tensor:
        return torch.empty_like(values).scatter_(-1, places.expand_as(values), values)

    @staticmethod
    def put(x: Tensor, places: Tensor, values: Tensor) -> Tensor:
        return x.index_copy_(-1, places, values)

    @staticmethod
    def add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
        total.addcmul_(a, b)

    @staticmethod
    def pad(
        x: Tensor,
        before: int,
        after: int,
        value: float = 0,
    ) -> Tensor:
        return functional.pad(x, (before, after), value=value)

    @staticmethod
    def flip(x: Tensor) -> Tensor:
        return x.flip(-1)

    @staticmethod
    def cummax(x: Tensor) -> Tensor:
        return x.cummax(-1).values

    @staticmethod
    def cummin(x: Tensor) -> Tensor:
        return x.cummin(-1).values

    @staticmethod
    def argsort(x: Tensor, *, stable: bool = False) -> Tensor:
        return x.argsort(dim=-1, stable=stable)

    @staticmethod
    def searchsorted(points: Tensor, values: Tensor, *, right: bool = False) -> Tensor:
        return torch.searchsorted(points.contiguous(), values.contiguous(), right=right)

    @staticmethod
    def sums_by_code(columns: Tensor, codes: Tensor, levels: int) -> Tensor:
        return columns.new_zeros(*columns.shape[:-1], levels).scatter_add_(-1, codes, columns)

    @staticmethod
    def vecdot(a: Tensor, b: Tensor) -> Tensor:
        return torch.dot(a, b) if a.ndim == b.ndim == 1 else torch.linalg.vecdot(a, b)

    # --- precision, gradients, and device versions of NumPy code

    def full_precision(self) -> AbstractContextManager[Any]:
        """A context in which autocast rounds nothing to half precision."""
        kind = self.device.type
        if torch.is_autocast_enabled(kind):
            return torch.autocast(kind, enabled=False)
        return nullcontext()

    @staticmethod
    def is_differentiated(x: Tensor) -> bool:
        return torch.is_grad_enabled() and x.requires_grad

    @staticmethod
    def value_and_slope(function: Callable[[Tensor], Tensor], at: Tensor) -> tuple[Tensor, Tensor]:
        """The value of a function, as a constant, and its gradient."""
        with torch.enable_grad():
            point = at.clone().requires_grad_()
            value = function(point)
        if value.requires_grad:
            slope = torch.autograd.grad(value.sum(), point)[0]
        else:
            slope = torch.zeros_like(point)
        return value.detach(), slope

    @staticmethod
    def sort(x: Tensor) -> tuple[Tensor, Tensor]:
        """Rows in ascending order, and the places that their entries had."""
        points, order = x.detach().sort(-1)
        return points, order


def random_directions(
    slices: int,
    dimension: int,
    generator: torch.Generator,
    *,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Independent uniform points of the unit sphere, (slices, dimension), on the generator's
    device.
    """
    normal = torch.randn(
        slices, dimension, generator=generator, dtype=dtype, device=generator.device
    )
    return functional.normalize(normal, dim=-1)
