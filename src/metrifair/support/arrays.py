"""Types of arrays, by their elements."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
AnyFloats: TypeAlias = NDArray[np.floating[Any]]
"""Floats of any precision."""
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]


def sums_upto(values: NDArray[Any]) -> NDArray[Any]:
    """0, the first value, the sum of the first two, and so on to the sum of all.

    >>> sums_upto(np.array([1.0, 2.0]))
    array([0., 1., 3.])
    """
    return np.append(0, np.cumsum(values))


def distinct_codes(values: NDArray[Any], *, axis: int | None = None) -> Integers:
    """The place of each value among the distinct ones, which ascend.

    >>> distinct_codes(np.array(["b", "a", "b"]))
    array([1, 0, 1])
    """
    return np.unique(values, axis=axis, return_inverse=True)[1].reshape(-1)
