"""The energy distance of many scores without sorting them: on a fine grid, where counting is enough.

Scores are moved to the nearest of 16,384 places between the smallest and the largest one. The result is the exact value
of the moved scores, and its slopes, which metrics/quadratic.py derives from the counts below each place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.metrics.quadratic import energy_slopes

PLACES = 2**14  # their tables stay in the processor's nearest cache


def gridded_energy(
    scores: NDArray[np.floating[Any]], left: NDArray[np.int64], right: NDArray[np.int64], *, unbiased: bool
) -> tuple[float, NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """The energy distance between the scores in two lists of rows, and its slopes by these and by those.

    >>> rows = np.array([0, 1]), np.array([2, 3])
    >>> gridded_energy(np.array([0.0, 1.0, 1.0, 3.0]), *rows, unbiased=False)
    (1.5, array([-0.5, -1. ]), array([1. , 0.5]))
    """
    lowest, highest = float(scores.min()), float(scores.max())
    width = (highest - lowest) / (PLACES - 1) or 1.0
    place = ((scores - scores.dtype.type(lowest)) * scores.dtype.type(1 / width) + 0.5).astype(np.int32)
    np.minimum(place, PLACES - 1, out=place)
    places = place[left], place[right]
    counts = [np.bincount(own, minlength=PLACES) for own in places]
    n, m = len(left), len(right)
    a, b = (2 * np.cumsum(count) - count - float(size) for count, size in zip(counts, (n, m), strict=True))
    slopes = energy_slopes(a, b, n, m, unbiased=unbiased)
    grid = np.arange(PLACES) - PLACES // 2  # slopes sum to 0 over all scores: any centre gives the same value
    value = width * float((counts[0] * slopes[0] + counts[1] * slopes[1]) @ grid)
    return value, *(table.astype(scores.dtype)[own] for table, own in zip(slopes, places, strict=True))
