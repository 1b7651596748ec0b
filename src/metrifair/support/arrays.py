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
