"""NumPy's side of the namespace: the operations by the names that the formulas use.

Operations along one axis use the last axis. Arrays that are created here have double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from metrifair.support.arrays import Floats

device = "cpu"
is_host = True  # values can be read without waiting for a device

arange = np.arange
asarray = np.asarray
empty = np.empty
eye = np.eye
full = np.full
ones = np.ones
zeros = np.zeros
amax = np.amax
isinf = np.isinf
where = np.where
zeros_like = np.zeros_like
exp = np.exp
sign = np.sign
sqrt = np.sqrt
at_least = np.maximum
at_most = np.minimum
broadcast_shapes = np.broadcast_shapes
broadcast_to = np.broadcast_to
expand_dims = np.expand_dims
moveaxis = np.moveaxis
concat = np.concatenate
einsum = np.einsum
meshgrid = np.meshgrid
stack = np.stack
promote_types = np.promote_types


def array(numbers: Any) -> Floats:
    """Numbers in double precision."""
    return np.array(numbers, np.float64)


def astype(x: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """The same numbers in another precision."""
    return x.astype(dtype, copy=False)


double = partial(astype, dtype=np.float64)
integers = partial(astype, dtype=np.int64)


def detach(x: NDArray[Any]) -> NDArray[Any]:
    """The array itself: arrays carry no gradients, and NumPy has one device."""
    return x


# torch's host_array is None if values are on an accelerator
to_device = from_host = host_array = detach
no_grad = full_precision = nullcontext


def is_differentiated(_: NDArray[Any]) -> bool:
    """False: arrays carry no gradients."""
    return False


def on_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """A caller's function of arrays, as it is."""
    return function


def extent(x: NDArray[Any]) -> tuple[float, float]:
    """The least and the largest number."""
    return float(x.min()), float(x.max())


def sum_of_squares(x: NDArray[Any]) -> float:
    """The sum over all entries."""
    return float(np.vdot(x, x))


def gather(x: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """Each row of x read at the places of its row."""
    if x.ndim == places.ndim == 1:
        return x.take(places)
    return np.take_along_axis(x, places, -1)


def take(x: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """All rows of x read at the same places."""
    return x.take(places, -1)


def scattered(values: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """Values moved to their places, each place once: it undoes ``gather``."""
    result = np.empty_like(values)
    if values.ndim == 1:
        result[places] = values
    else:
        np.put_along_axis(
            result,
            np.broadcast_to(places, values.shape),
            values,
            -1,
        )
    return result


def put(x: NDArray[Any], places: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """All rows of x overwritten at the same places."""
    x[..., places] = values
    return x


def add_product(total: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> None:
    """Add a b to the total, in place."""
    total += a * b


def pad(
    x: NDArray[Any],
    before: int,
    after: int,
    value: float = 0,
) -> NDArray[Any]:
    """So many more entries before and after each row."""
    count = x.shape[-1]
    result = np.empty((*x.shape[:-1], before + count + after), x.dtype)
    result[..., :before] = value
    result[..., before : before + count] = x
    result[..., before + count :] = value
    return result


cummax = partial(np.maximum.accumulate, axis=-1)
cummin = partial(np.minimum.accumulate, axis=-1)
# logarithms of running sums of exponentials
logcumsumexp = partial(np.logaddexp.accumulate, axis=-1)
flip = partial(np.flip, axis=-1)


def argsort(x: NDArray[Any], *, stable: bool = False) -> NDArray[np.int64]:
    """The order that sorts each row."""
    return np.argsort(x, -1, kind="stable" if stable else None)


def searchsorted(
    points: NDArray[Any], values: NDArray[Any], *, right: bool = False
) -> NDArray[Any]:
    """The positions of the values of each row among its ascending points."""
    side: Literal["left", "right"] = "right" if right else "left"
    if points.ndim == 1:
        return np.searchsorted(points, values, side)
    rows = zip(
        points.reshape(-1, points.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True
    )
    return np.stack([np.searchsorted(row, some, side) for row, some in rows]).reshape(values.shape)


def sums_by_code(columns: NDArray[Any], codes: NDArray[Any], levels: int) -> NDArray[Any]:
    """The sum of each row's entries by their code, (..., levels)."""
    rows = zip(
        columns.reshape(-1, columns.shape[-1]), codes.reshape(-1, codes.shape[-1]), strict=True
    )
    return np.stack([np.bincount(code, row, levels) for row, code in rows]).reshape(
        *columns.shape[:-1], levels
    )


def vecdot(a: NDArray[Any], b: NDArray[Any]) -> Any:
    """The inner products of rows."""
    if a.ndim == b.ndim == 1:
        return a @ b
    return (a[..., None, :] @ b[..., :, None])[..., 0, 0]


def log(x: NDArray[Any]) -> Any:
    """The logarithm, minus infinity at 0."""
    with np.errstate(divide="ignore"):
        return np.log(x)


def rsqrt(x: NDArray[Any]) -> Any:
    """One over the square root."""
    return 1 / np.sqrt(x)
