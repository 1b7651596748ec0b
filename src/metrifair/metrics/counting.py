"""Coefficients of the energy distance by counting: for samples without weights or strata, on the CPU.

With A = 2 (left scores below) - n and B = 2 (right scores below) - m, where equal scores count half, itself among them,
the derivative of the distance by a left score is 2 (B / nm - A / n(n-1)), by a right one 2 (A / nm - B / m(m-1)); the
plug-in has n^2 for n(n-1). Counts are whole numbers, and NumPy's steps cost a fraction of torch's on small batches.
Large samples are worked through in pieces that stay in the processor's cache.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.metrics.order import pieces, sorted_places, tied_runs

Scores: TypeAlias = NDArray[np.floating[Any]]
Counts: TypeAlias = NDArray[Any]  # of whole numbers, as narrow as their size allows


def energy_coefficients(z: Scores, left: int, *, unbiased: bool) -> tuple[Scores, Scores]:
    """The coefficient of each score of (..., n), of which the first ``left`` are one sample, and a middle score.

    >>> coefficients, _ = energy_coefficients(np.array([0.0, 1.0, 1.0, 3.0]), 2, unbiased=False)
    >>> coefficients                       # -1 x 1 + 1 x 1 + 0.5 x 3 = 1.5
    array([-0.5, -1. ,  1. ,  0.5])
    """
    points, places = sorted_places(z)
    below_left, below_all = _twice_below(points, places < left)
    right = z.shape[-1] - left
    found = np.empty_like(z)
    for piece in pieces(z.shape[-1]) if z.ndim == 1 else [slice(None)]:
        place = places[..., piece]
        a = below_left[..., piece] - float(left)
        b = below_all[..., piece] - float(right) - below_left[..., piece]
        coefficients = np.where(place < left, *energy_slopes(a, b, left, right, unbiased=unbiased))
        if z.ndim == 1:
            found[place] = coefficients
        else:
            np.put_along_axis(found, place, coefficients.astype(z.dtype), -1)
    return found, points[..., points.shape[-1] // 2]


def energy_slopes(a: Scores, b: Scores, left: int, right: int, *, unbiased: bool) -> tuple[Scores, Scores]:
    """The derivative by a left score and by a right one, from the counts A and B below each."""
    across = 2 / (left * right)
    within = [2 / (count * (count - 1 if unbiased else count)) for count in (left, right)]
    return across * b - within[0] * a, across * a - within[1] * b


def _twice_below(points: Scores, is_left: NDArray[np.bool_]) -> tuple[Counts, Counts]:
    """Twice the left scores, and twice all scores, below each in ascending order; equal ones count half, itself too."""
    whole: Any = np.int32 if points.shape[-1] < 2**30 else np.int64
    counted = np.cumsum(is_left, axis=-1, dtype=whole)
    everything = np.arange(1, 2 * points.shape[-1], 2, dtype=whole)
    runs = tied_runs(points)
    if runs is None:
        counted *= 2
        counted -= is_left
        return counted, everything
    first, last, tied = runs
    if tied is None:
        through, before = (np.take_along_axis(counted, place, -1) for place in (last, first))
        return through + before - np.take_along_axis(is_left, first, -1), first + last + 1
    through_and_before = counted[last] + counted[first] - is_left[first]
    counted *= 2
    counted -= is_left
    counted[tied], everything[tied] = through_and_before, first + last + 1
    return counted, everything
