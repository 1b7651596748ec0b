"""How much many scores depend on an attribute, by counting: scores on a grid, the attribute in levels."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from metrifair.errors import MetrifairWarning
from metrifair.metrics.dependence import covariance_form
from metrifair.metrics.namespaces import namespace_for
from metrifair.metrics.registry import Estimate
from metrifair.problem.cells import Sides
from metrifair.support.arrays import Floats

LEVELS = 256
MANY = 2**17  # rows from which on counting is faster
_PLACES = 2**13  # of the grid: tables of places x levels


class LeveledDependence(NamedTuple):
    """What does not change from round to round. Within levels the attribute is its mean, which is exact for names."""

    level: NDArray[np.int64]  # (n,) of each row
    distance: Floats  # (levels, levels)
    weight: Floats | None  # (n,), summing to 1; None: each row counts 1
    factors: tuple[float, float, float]  # of pairs, triples and quadruples; see metrics.covariance
    scale: float

    def at(self, scores: NDArray[np.floating[Any]]) -> tuple[float, Floats]:
        """The dependence of scores (n,), moved to the nearest place of a grid, and its slopes."""
        lowest, highest = float(scores.min()), float(scores.max())
        width = (highest - lowest) / (_PLACES - 1) or 1.0
        place = np.minimum(((scores - lowest) / width + 0.5).astype(np.int64), _PLACES - 1)
        levels = len(self.distance)
        cell = place * levels + self.level
        counts = np.bincount(cell, self.weight, minlength=_PLACES * levels).reshape(_PLACES, levels).astype(np.float64)
        total = counts.sum(0)
        signed = 2 * np.cumsum(counts, 0) - counts - total  # below less above each place, by level
        sums = self.distance @ total
        pairs, triples, quadruples = self.factors
        plain = signed.sum(1, keepdims=True)
        inside = pairs * (signed @ self.distance) + quadruples * float(total @ sums) * plain
        inside += triples / 2 * (sums * plain + (signed @ sums)[:, None])
        slopes = 2 * self.scale * inside.reshape(-1)[cell]
        if self.weight is not None:
            slopes *= self.weight
        return width * float(slopes @ (place - float(place.mean()))), slopes


def leveled_dependence(side: Sides, values: Tensor, estimate: Estimate) -> LeveledDependence:
    """For the rows of a side; a number with too many different values is cut, and a warning says so."""
    one = side.dependence
    if one is None or one.scale is None:
        raise ValueError("the side has no dependence, or its scale is not known")
    own = values[side.rows, one.column].numpy()
    weight = None if side.weights is None else side.weights.double().numpy()
    found, level = np.unique(own, return_inverse=True)
    if len(found) > LEVELS:
        warnings.warn(
            f"{one.attribute} is cut into {LEVELS} levels of about equal size: there are {len(own):,} rows, and "
            f"{len(found):,} different values",
            MetrifairWarning,
            stacklevel=2,
        )
        upto = np.cumsum(np.bincount(level, weight))
        level = np.minimum(LEVELS - 1, (upto / upto[-1] * LEVELS * (1 - 1e-12)).astype(np.int64))[level]
        level = np.unique(level, return_inverse=True)[1]
        sums = np.bincount(level, own if weight is None else weight * own)
        found = sums / np.bincount(level, weight)
    apart = np.abs(found[:, None] - found) if not one.levels else (found[:, None] != found).astype(np.float64)
    form = covariance_form(side, estimate, namespace_for(values))
    factors = tuple(float(part.reshape(())) for part in (form.pairs, form.triples, form.quadruples))
    share = None if weight is None else weight / weight.sum()
    return LeveledDependence(level, apart, share, factors, one.scale)  # type: ignore[arg-type]
