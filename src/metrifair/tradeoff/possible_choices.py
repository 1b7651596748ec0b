"""The choices that the rule of ``tradeoff.choice`` can make when figures are known within bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrifair.support.arrays import Booleans, Floats, Integers

ROUNDED = 6e-4
"""Recorded numbers are rounded to four digits: the relative error, with some room for rounding."""
_SLACK = 2 * ROUNDED  # of standard errors
FIGURE_ROUNDING = 1e-9  # by which figures differ that are computed in another order


@dataclass(frozen=True, eq=False)
class BoundedFigures:
    """What configurations need and how good they are, each between two bounds.

    The fields are those of ``choose``. ``limit`` is what may be needed at most; None: the least
    that any configuration needs.
    """

    needed_low: Floats
    needed_high: Floats
    quality_low: Floats
    quality_high: Floats
    errors: Floats  # of the difference in quality of every two configurations
    simplicity: Integers
    tier: Integers
    allowed: Booleans
    limit: float | None

    def _limits(self) -> tuple[float, float]:
        """The smallest and the largest possible limit."""
        if self.limit is not None:
            return self.limit, self.limit
        # squares below 0 are no smaller gaps
        ends = [
            max(0.0, float(part[self.allowed].min()))
            for part in (self.needed_low, self.needed_high)
        ]
        return ends[0], ends[1]

    def possible(self) -> Booleans:
        """The configurations that are chosen for some figures between the bounds."""
        least, most = self._limits()
        slack = FIGURE_ROUNDING
        may_do = self.allowed & (self.needed_low <= most + slack)
        surely_does = self.allowed & (self.needed_high <= least - slack)
        found = np.zeros(len(self.allowed), bool)
        for place in np.flatnonzero(may_do):
            found[place] = self._may_be_chosen(int(place), may_do, surely_does)
        return found

    def _may_be_chosen(self, place: int, may_do: Booleans, surely_does: Booleans) -> bool:
        """Whether a configuration that may be feasible is chosen beside some best one."""
        if (surely_does & (self.tier < self.tier[place])).any():
            return False
        rivals = may_do & (self.tier == self.tier[place])
        sure = surely_does & rivals
        floor = float(np.max(self.quality_low[sure], initial=-np.inf))
        return any(
            self._is_chosen_beside(place, int(best), floor, sure) for best in np.flatnonzero(rivals)
        )

    def _is_chosen_beside(self, place: int, best: int, floor: float, sure: Booleans) -> bool:
        """Whether a configuration is within one standard error of a best one, and no simpler one
        certainly is.

        All others have the least quality, which puts the fewest of them near the best one.
        """
        wide = self.errors[best] * (1 + _SLACK) + FIGURE_ROUNDING
        narrow = self.errors[best] * (1 - _SLACK) - FIGURE_ROUNDING
        quality = self.quality_high[best]
        if best != place:
            if self.simplicity[best] < self.simplicity[place]:
                return False
            quality = min(quality, self.quality_high[place] + wide[place])
            if quality < self.quality_low[place] - FIGURE_ROUNDING:
                return False
        if quality < max(floor, float(self.quality_low[best])) - FIGURE_ROUNDING:
            return False
        simpler = sure & (self.simplicity < self.simplicity[place])
        simpler[best] = False
        return not (simpler & (self.quality_low >= quality - narrow)).any()
