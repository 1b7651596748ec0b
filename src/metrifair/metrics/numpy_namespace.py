"""NumPy's side of the namespace: the operations by the names that the formulas use.

Where an operation works along one axis, that is the last one. Arrays that are made here are double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from metrifair.support.arrays import Floats

device = "cpu"
is_host = True  # values can be read without waiting for a device

arange, asarray, empty, eye, full, ones, zeros = np.arange, np.asarray, np.empty, np.eye, np.full, np.ones, np.zeros
empty_like, zeros_like = np.empty_like, np.zeros_like
amax, isinf, where = np.amax, np.isinf, np.where
exp, sign, sqrt = np.exp, np.sign, np.sqrt
at_least, at_most = np.maximum, np.minimum
broadcast_shapes, broadcast_to = np.broadcast_shapes, np.broadcast_to
expand_dims, moveaxis = np.expand_dims, np.moveaxis
concat, einsum, meshgrid, stack = np.concatenate, np.einsum, np.meshgrid, np.stack
promote_types = np.promote_types


def array(numbers: Any) -> Floats:
    """Numbers in double precision."""
    return np.array(numbers, np.float64)


def astype(x: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """The same numbers in another precision."""
    return x.astype(dtype, copy=False)


def double(x: NDArray[Any]) -> Floats:
    """The same numbers in double precision."""
    return x.astype(np.float64, copy=False)


def integers(x: NDArray[Any]) -> NDArray[np.int64]:
    """The same numbers as integers."""
    return x.astype(np.int64, copy=False)


def to_device(x: NDArray[Any]) -> NDArray[Any]:
    """The array itself: NumPy has one device."""
    return x


def host_array(x: NDArray[Any]) -> NDArray[Any] | None:
    """The array itself; torch has None where values are on an accelerator."""
    return x


def from_host(x: NDArray[Any]) -> NDArray[Any]:
    """The array itself."""
    return x


def no_grad() -> AbstractContextManager[None]:
    """Nothing: arrays carry no gradients."""
    return nullcontext()


def detach(x: NDArray[Any]) -> NDArray[Any]:
    """The array itself."""
    return x


def is_differentiated(_: NDArray[Any]) -> bool:
    """False: arrays carry no gradients."""
    return False


def on_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """A caller's function of arrays, as it is."""
    return function


def extent(x: NDArray[Any]) -> tuple[float, float]:
    """The least and the largest number."""
    return float(x.min()), float(x.max())


def gather(x: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """Each row of x read at the places of its row."""
    return x.take(places) if x.ndim == places.ndim == 1 else np.take_along_axis(x, places, -1)


def take(x: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """All rows of x read at the same places."""
    return x.take(places, -1)


def scattered(values: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """Values moved to their places, each place once: it undoes ``gather``."""
    whole = np.empty_like(values)
    if values.ndim == 1:
        whole[places] = values
    else:
        np.put_along_axis(whole, np.broadcast_to(places, values.shape), values, -1)
    return whole


def put(x: NDArray[Any], places: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """All rows of x overwritten at the same places."""
    x[..., places] = values
    return x


def add_product(total: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> None:
    """Add a b to the total, in place."""
    total += a * b


def pad(x: NDArray[Any], before: int, after: int, value: float = 0) -> NDArray[Any]:
    """So many more entries before and after each row."""
    count = x.shape[-1]
    whole = np.empty((*x.shape[:-1], before + count + after), x.dtype)
    whole[..., :before] = value
    whole[..., before : before + count] = x
    whole[..., before + count :] = value
    return whole


def flip(x: NDArray[Any]) -> NDArray[Any]:
    """Rows in the opposite order."""
    return x[..., ::-1]


def cummax(x: NDArray[Any]) -> NDArray[Any]:
    """Running maxima."""
    return np.maximum.accumulate(x, -1)


def cummin(x: NDArray[Any]) -> NDArray[Any]:
    """Running minima."""
    return np.minimum.accumulate(x, -1)


def logcumsumexp(x: NDArray[Any]) -> NDArray[Any]:
    """Logarithms of the running sums of exponentials."""
    return np.logaddexp.accumulate(x, -1)


def argsort(x: NDArray[Any], *, stable: bool = False) -> NDArray[np.int64]:
    """The order that sorts each row."""
    return np.argsort(x, -1, kind="stable" if stable else None)


def searchsorted(points: NDArray[Any], values: NDArray[Any], *, right: bool = False) -> NDArray[Any]:
    """Where the values of each row belong among its ascending points."""
    side: Literal["left", "right"] = "right" if right else "left"
    if points.ndim == 1:
        return np.searchsorted(points, values, side)
    rows = zip(points.reshape(-1, points.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True)
    return np.stack([np.searchsorted(row, some, side) for row, some in rows]).reshape(values.shape)


def sums_by_code(columns: NDArray[Any], codes: NDArray[Any], levels: int) -> NDArray[Any]:
    """The sum of each row's entries by their code, (..., levels)."""
    rows = zip(columns.reshape(-1, columns.shape[-1]), codes.reshape(-1, codes.shape[-1]), strict=True)
    return np.stack([np.bincount(code, row, levels) for row, code in rows]).reshape(*columns.shape[:-1], levels)


def vecdot(a: NDArray[Any], b: NDArray[Any]) -> Any:
    """The inner products of rows."""
    return a @ b if a.ndim == b.ndim == 1 else (a[..., None, :] @ b[..., :, None])[..., 0, 0]


def log(x: NDArray[Any]) -> Any:
    """The logarithm, minus infinity at 0."""
    with np.errstate(divide="ignore"):
        return np.log(x)


def rsqrt(x: NDArray[Any]) -> Any:
    """One over the square root."""
    return 1 / np.sqrt(x)


def pair_distances(points: NDArray[Any]) -> Any:
    """Euclidean distances of all pairs of rows, each pair once."""
    first, second = np.triu_indices(len(points), 1)
    return np.sqrt(((points[first] - points[second]) ** 2).sum(-1))


def lower_median(x: NDArray[Any]) -> Any:
    """The middle number, of an even count the lower of the two."""
    middle = (len(x) - 1) // 2
    return np.partition(x, middle)[middle]
