"""Types of arrays, by their elements, and some rows of arrays that may be absent."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
AnyFloats: TypeAlias = NDArray[np.floating[Any]]
"""Floats of any precision."""
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]

_Array = TypeVar("_Array", bound=Any)  # an array or a tensor


def take_rows(array: _Array | None, rows: Any) -> _Array | None:
    """Some rows of an array or tensor, by number, slice or mask; None where there is no array.

    >>> take_rows(np.array([3, 5, 7]), [0, 2]), take_rows(None, [0, 2])
    (array([3, 7]), None)
    """
    if array is None:
        return None
    return array[rows]  # type: ignore[no-any-return]
