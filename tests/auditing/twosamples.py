"""Two samples made of rows, for tests of what is done with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.seams.auditing import TwoSamples


def two_samples(
    values: NDArray[Any], on_left: NDArray[np.bool_], weights: np.ndarray | None = None
) -> TwoSamples:
    """Scores of two samples, those of the left one marked."""
    distinct, place = np.unique(values, return_inverse=True)
    left, right = (
        np.bincount(place[side], None if weights is None else weights[side], len(distinct)).astype(
            np.float64
        )
        for side in (on_left, ~on_left)
    )
    return TwoSamples(distinct, left, right)
