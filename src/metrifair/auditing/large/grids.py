"""The score axis cut into bins: a scale on which sums are safe, keys that bisect any scale, a grid that finds bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Keys: TypeAlias = NDArray[np.uint64]

PIECES = 2**18  # of the score axis: the lookup table that finds a score's bin
_SIGN = np.int64(-(2**63))
_SMALLEST_UNIT = -1000  # as a power of two: its inverse is still a number


def ordered_keys(scores: Floats) -> Keys:
    """Integers in the order of the scores: neighbouring floats have neighbouring keys, whatever their scale.

    >>> keys = ordered_keys(np.array([-1e-300, 0.0, 5e-324, 1.0, 1e300]))
    >>> keys[1:] > keys[:-1]
    array([ True,  True,  True,  True])
    """
    bits = (scores + 0.0).view(np.int64)  # + 0.0: one zero only
    return (bits ^ ((bits >> 63) | _SIGN)).view(np.uint64)


def scores_of(keys: Keys) -> Floats:
    """The inverse of ``ordered_keys``.

    >>> scores_of(ordered_keys(np.array([-2.5, 0.0, 1e300])))
    array([-2.5e+000,  0.0e+000,  1.0e+300])
    """
    bits = keys.view(np.int64)
    return (bits ^ (~(bits >> 63) | _SIGN)).view(np.float64)


class Scale(NamedTuple):
    """Scores as positions from 0 to about 1: sums of them neither overflow nor lose what is small beside an offset."""

    low: float
    inverse: float  # of a power of two, the unit

    @classmethod
    def between(cls, low: float, high: float) -> Self:
        """The scale of scores from ``low`` to ``high``.

        >>> Scale.between(10.0, 13.0).positions(np.array([10.0, 13.0]))
        array([0.  , 0.75])
        """
        exponent = int(np.frexp(high / 2 - low / 2)[1]) + 1
        return cls(low, float(np.ldexp(1.0, -max(exponent, _SMALLEST_UNIT))))

    def positions(self, scores: Floats) -> Floats:
        """Where scores lie on the scale; ascending."""
        return scores * self.inverse - self.low * self.inverse


@dataclass(frozen=True, eq=False)
class Grid:
    """Bins of about equal weight: the score axis in equal pieces, each a part of a bin.

    The pieces are equal on the scale of the scores or on that of their keys (about logarithmic), whichever tells more
    of the sample apart. Both maps never decrease, so bins are intervals.
    """

    scale: Scale
    lowest: np.uint64
    shift: np.uint64 | None  # None: equal pieces of the scale; else of the keys
    bin_of: Integers

    def pieces(self, scores: Floats, positions: Floats) -> Integers:
        """The piece that holds each score."""
        if self.shift is None:
            return (positions * (PIECES - 1)).astype(np.int64)
        return ((ordered_keys(scores) - self.lowest) >> self.shift).view(np.int64)


def grid_of(sample: Floats, low: float, high: float, most: int) -> Grid:
    """A grid of at most ``most`` bins for scores between low and high, from a sample of them."""
    scale = Scale.between(low, high)
    first, last = ordered_keys(np.array([low, high]))
    shift = np.uint64(max(0, int(last - first).bit_length() - (PIECES.bit_length() - 1)))
    grids = [Grid(scale, first, kind, np.zeros(0, np.int64)) for kind in (None, shift)]
    distinct, counts = np.unique(sample, return_counts=True)
    places = [grid.pieces(distinct, scale.positions(distinct)) for grid in grids]
    best = int(len(np.unique(places[1])) > 1.5 * len(np.unique(places[0])))
    # A tenth of the bins is spread evenly: the sample may have missed something.
    mass = 0.9 * np.bincount(places[best], counts, PIECES) / counts.sum() + 0.1 / PIECES
    number = np.minimum(((np.cumsum(mass) - mass / 2) * most).astype(np.int64), most - 1)
    return Grid(scale, first, grids[best].shift, np.cumsum(np.diff(number, prepend=number[0]) > 0))
