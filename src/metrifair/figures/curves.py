"""Score distributions of groups, ready to be drawn: the one density estimate of audits and
frontiers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.figures.intervals import FEW
from metrifair.support.arrays import Floats, sums_upto

_GRID = 101
_MOST_POINTS = 2_000


@dataclass(frozen=True)
class Curves:
    """Score distributions of the groups under one model: densities and distribution functions
    on one grid.
    """

    grid: Sequence[float]
    density: Mapping[str, Sequence[float]]  # by group
    cumulative: Mapping[str, Sequence[float]]


def make_curves(
    values: Floats,
    weights: Mapping[str, NDArray[Any]],
    sizes: Mapping[str, int],
    score_range: tuple[float, float],
    *,
    marked: Sequence[float] = (),
) -> Curves:
    """Densities (Gaussian kernel estimates) and distribution functions of groups with weights (k,)
    at ``values``.

    Groups of few rows have no density. The grid includes the ``marked`` scores.

    >>> curves = make_curves(np.array([0.0, 1.0]), {"a": np.array([1.0, 3.0])}, {"a": 4}, (0.0,
    ...     1.0))
    >>> curves.cumulative["a"][0], curves.cumulative["a"][-1], len(curves.grid)
    (0.25, 1.0, 101)
    """
    low, high = score_range
    if high <= low:
        high = low + max(1.0, 1e-9 * abs(low))
    # In few digits; far from 0 (times in seconds) it takes more to distinguish equal steps.
    largest = max(abs(low), abs(high))
    steps = max(1.0, largest / (high - low))
    digits = min(17, 9 + int(np.log10(steps)))
    rounded = [float(f"{score:.{digits}g}") for score in np.linspace(low, high, _GRID)]
    grid = np.unique([*rounded, *marked])
    # marked: shown as a figure
    decimals = 8 if marked else 5
    density = {}
    cumulative = {}
    for name, weight in weights.items():
        positive = weight > 0
        points = values[positive]
        share = weight[positive] / weight.sum()
        upto = sums_upto(share)
        places = np.searchsorted(points, grid, side="right")
        below = np.minimum(upto[places], 1.0)
        cumulative[name] = below.round(decimals).tolist()
        # the bumps of fewer scores show where those are, not how scores are distributed
        if sizes[name] >= FEW:
            density[name] = _density(
                points,
                share,
                sizes[name],
                grid,
            )
    return Curves(grid.tolist(), density, cumulative)


def row_curves(
    score: Floats,
    members: Mapping[str, NDArray[Any]],
    ends: tuple[float, float],
    weight: Floats | None = None,
) -> Curves:
    """The same from one score for each row, and the membership of each row in each group (boolean
    or a probability).

    Groups without rows are left out. The grid includes the score at which the groups' shares below
    differ most.
    """
    values, place = np.unique(score, return_inverse=True)
    weights = {}
    sizes = {}
    for name, share in members.items():
        if share.any():
            sizes[name] = round(float(share.sum()))
            amount = share if weight is None else share * weight
            weights[name] = np.bincount(place, amount, len(values))
    below = [np.cumsum(amounts) / amounts.sum() for amounts in weights.values()]
    widest = np.ptp(below, axis=0).argmax()
    return make_curves(values, weights, sizes, ends, marked=[float(values[widest])])


def _density(
    points: Floats,
    share: Floats,
    size: int,
    grid: Floats,
) -> list[float]:
    """Bumps of the width of Scott's rule; many points are thinned to their quantiles.

    As scipy's gaussian_kde, which is not used: it rejects equal points, and does not subsample a
    million of them.
    """
    length = float(grid[-1] - grid[0])
    away = (points - float(share @ points)) / length  # squares of huge scores would overflow
    spread = float(np.sqrt(share @ away**2))
    step = length / (_GRID - 1)
    width = max(length * spread * size**-0.2, step / 2)
    if len(points) > _MOST_POINTS:
        levels = (np.arange(_MOST_POINTS) + 0.5) / _MOST_POINTS
        places = np.searchsorted(np.cumsum(share), levels)
        last = len(points) - 1
        points = points[np.minimum(places, last)]
        share = np.full(_MOST_POINTS, 1.0 / _MOST_POINTS)
    distances = (grid[:, None] - points) / width
    bumps = np.exp(-(distances**2) / 2) @ share
    heights = bumps / (width * np.sqrt(2 * np.pi))
    return [float(f"{height:.5g}") for height in heights]
