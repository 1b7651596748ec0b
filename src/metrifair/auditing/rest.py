"""Each of many groups against the rest, in time linear in rows and groups: what all of them share is counted once.

With c the distribution function of everyone and F that of a group of n of the N rows, that of the rest is
(N c - n F) / (N - n), so that D = F - rest = (F - c) N / (N - n). Between two scores of the group F is constant and c
rises: D falls there. So the largest gap lies beside one of the group's own scores; and the integrals of |D| and D^2
over such a stretch follow from running integrals of 1, c and c^2, which are those of everyone, whatever the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from metrifair.auditing.distribution import (
    CountedScores,
    LargestGap,
    TwoSamples,
    bins,
    coarsened,
    distances_of,
    largest_gap,
)
from metrifair.auditing.resampling import RESOLUTION
from metrifair.errors import DataError
from metrifair.metrics.pair import TOO_FAR
from metrifair.metrics.registry import Convex, Integral, facts
from metrifair.support.arrays import Floats, Integers

SCORES = 16 * RESOLUTION  # that resampling and curves begin with, however many distinct scores there are
_LARGE = 16  # a group of more than one in so many distinct scores is measured score by score: there are few of these


class Stretch(NamedTuple):
    """Scores between two of the group's own, and what the running integrals grow by there."""

    share: Floats  # of the group at or below
    length: Floats
    mean: Floats  # integral of c
    square: Floats  # integral of c^2


class OneOfMany(NamedTuple):
    """One group and the rest: their scores, at most ``SCORES`` of them told apart, and what is known exactly."""

    found: TwoSamples
    own: tuple[Floats, Floats]  # the group's scores, all told apart, and how many rows it has at each
    gap: LargestGap
    values: dict[str, float]


class Everyone:
    """The rows of all groups of an attribute within a part, unweighted."""

    def __init__(self, scores: CountedScores, units: Integers, codes: Integers) -> None:
        count: Integers = scores.at(units).astype(np.int64)
        used = count > 0
        self.values, self._count = scores.values[used], count[used]
        self._place = (np.cumsum(used) - 1)[scores.place[units]]
        self._order = np.argsort(codes, kind="stable")
        self._starts = np.searchsorted(codes[self._order], np.arange(codes.max() + 2))
        self._upto = np.cumsum(self._count)
        self._share = self._upto / len(units)
        gaps = np.append(np.diff(self.values), 0.0)
        # Small differences of them are taken: where a processor has more digits, they are added up in those.
        sums = (np.cumsum(gaps * self._share**power, dtype=np.longdouble) for power in range(3))
        self._running = [np.append(0.0, one.astype(np.float64)) for one in sums]
        everyone = TwoSamples(self.values, *[self._count.astype(np.float64)] * 2)
        self._bin_of = bins(everyone, SCORES)
        self._few = coarsened(everyone, self._bin_of)

    def against_rest(self, group: int, metrics: Sequence[str]) -> OneOfMany:
        """One group and all others."""
        rows = self._order[self._starts[group] : self._starts[group + 1]]
        place, count = np.unique(self._place[rows], return_counts=True)
        left: Floats = np.bincount(self._bin_of[place], count, len(self._few.values)).astype(np.float64)
        found = TwoSamples(self._few.values, left, self._few.right - left)
        own = self.values[place], count.astype(np.float64)
        if _LARGE * len(place) > len(self.values):
            counts: Floats = np.zeros(len(self.values))
            counts[place] = count
            both = TwoSamples(self.values, counts, self._count.astype(np.float64) - counts)
            values = {name: float(value) for name, value in distances_of(*both, metrics).items()}
            return OneOfMany(found, own, largest_gap(both), values)
        return OneOfMany(found, own, *self._measured(place, count, metrics))

    def _measured(
        self, place: Integers, count: Integers, metrics: Sequence[str]
    ) -> tuple[LargestGap, dict[str, float]]:
        size, rest = int(count.sum()), len(self._order) - int(count.sum())
        # Stretches begin at the lowest score of all and at each of the group's own; the last ends beyond all scores.
        first = place[0] == 0
        below = np.cumsum(count) if first else np.append(0, np.cumsum(count))
        start = place if first else np.append(0, place)
        end = np.append(start[1:], len(self.values))
        share = below / size

        at, under = np.stack([start, end - 1], 1).ravel(), np.repeat(below, 2)
        left, right = under / size, (self._upto[at] - under) / rest
        height = np.abs(left - right)
        lowest = int((height >= height.max() - 1e-12).argmax())
        gap = LargestGap(float(self.values[at[lowest]]), (float(left[lowest]), float(right[lowest])))

        def stretch(start: Integers, end: Integers) -> Stretch:
            return Stretch(share, *(running[end] - running[start] for running in self._running))

        middle = np.clip(np.searchsorted(self._share, share), start, end)  # D is positive before, negative from here on
        up, down, scale = stretch(start, middle), stretch(middle, end), (size + rest) / rest
        values = {}
        for metric in metrics:
            known, most = facts(metric).bracket, facts(metric).most
            if isinstance(known, Integral):
                integral = _INTEGRALS[known.convex]
                value = known.factor * max(0.0, integral(up, down, scale))
                values[metric] = float(min(most, value**known.power))
            elif known == "atoms":
                others = self._count[place] - count
                apart = np.abs(count / size - others / rest).sum() + (rest - others.sum()) / rest
                values[metric] = float(min(most, apart / 2))
            else:
                values[metric] = float(height.max())
        if not np.isfinite(list(values.values())).all():
            raise DataError(TOO_FAR)
        return gap, values


_Integral: TypeAlias = Callable[[Stretch, Stretch, float], float]


def _of_absolute(up: Stretch, down: Stretch, scale: float) -> float:
    return float(scale * sum((sign * (one.share * one.length - one.mean)).sum() for sign, one in ((1, up), (-1, down))))


def _of_square(up: Stretch, down: Stretch, scale: float) -> float:
    parts = (one.share**2 * one.length - 2 * one.share * one.mean + one.square for one in (up, down))
    return float(scale**2 * sum(part.sum() for part in parts))


_INTEGRALS: dict[Convex, _Integral] = {np.abs: _of_absolute, np.square: _of_square}


def is_known(metric: str) -> bool:
    """Whether a metric follows from running integrals."""
    known = facts(metric).bracket
    return known is not None and (not isinstance(known, Integral) or known.convex in _INTEGRALS)
