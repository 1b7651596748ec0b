"""What counts in bins prove about the distance of two distributions: a lower and an upper bound.

Let D = F0 - F1, and look at one bin whose rows lie in [a, b]. The counts give D just below a, and at b; in between

    u = D(below a) + share of side 0 in the bin,    l = D(below a) - share of side 1 in the bin

bound D, since at most all rows of one side come before those of the other. Integration by parts gives its mean over
[a, b], mu, from the sums of the scores: the integral of F - F(below a) is (b x rows - sum of scores) / all rows.

- Kolmogorov: |D| at the ends is attained; nothing in the bin exceeds max(u, -l). Rows of one side only, or of one
  distinct score, leave nothing in between: the ends are all there is.
- Integral of phi(D) over [a, b], phi convex (Wasserstein: |D|; Cramer: D^2): at least (b - a) phi(mu), by Jensen; at
  most (b - a) times the chord of phi from l to u, taken at mu, since phi lies below its chord. The two agree for |D|
  unless D may change its sign in the bin, and differ by at most (b - a)(u - l)^2 / 4 for D^2.
- Total variation: at least |share 0 - share 1| / 2, for merging scores brings distributions closer; at most their
  sum / 2, and the former again for one distinct score.

Between bins D is constant, so its integrals there are exact. So are they between the distinct scores of rows that are
held in memory: steps prove one value, not two. Bounds hold up to rounding, about 1e-13 of the range.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from metrifair.auditing.large.counting import Bins
from metrifair.auditing.large.grids import Floats, Integers, Scale
from metrifair.auditing.large.steps import Steps
from metrifair.metrics.registry import Convex

Sum: TypeAlias = "Convex | Literal['atoms']"
"""What is added up over bins: the integral of a convex function, or the differences at distinct scores."""


class Sides(NamedTuple):
    """The cells on either side of a comparison, and how many rows (or how much weight) they hold in all."""

    left: Integers
    right: Integers
    totals: tuple[float, float]


class Bounds(NamedTuple):
    """Of one comparison, by bin: the shares up to its end, what |D| may reach in it, and bounds of the sums."""

    score: Floats  # the end of the bin
    upto: tuple[Floats, Floats]
    reachable: Floats
    low: dict[Sum, Floats]
    high: dict[Sum, Floats]

    @property
    def attained(self) -> Floats:
        """|D| at the end of each bin; what holds below a bin was attained in the bin before it."""
        return np.abs(self.upto[0] - self.upto[1])


class _Course(NamedTuple):
    """The difference of the distribution functions within each bin."""

    least: Floats
    most: Floats
    mean: Floats
    length: Floats


def bounds(bins: Bins, sides: Sides, scale: Scale, sums: Collection[Sum]) -> Bounds:
    """What every bin proves; sums are on the scale of the positions."""
    share, upto, course = _course(bins, sides, scale)
    after = upto[0] - upto[1]
    plain = bins.single | (share[0] == 0) | (share[1] == 0)
    low: dict[Sum, Floats] = {}
    high: dict[Sum, Floats] = {}
    for one in sums:
        if one == "atoms":
            low[one] = np.abs(share[0] - share[1]) / 2
            high[one] = np.where(bins.single, low[one], (share[0] + share[1]) / 2)
            continue
        between = one(after) * bins.gap
        low[one] = course.length * one(course.mean) + between
        high[one] = np.maximum(course.length * _chord(one, course) + between, low[one])
    reachable = np.where(plain, np.abs(after), np.maximum(course.most, -course.least))
    return Bounds(bins.high, upto, reachable, low, high)


def exact(steps: Steps, sides: Sides, sums: Collection[Sum]) -> Bounds:
    """What rows held in memory prove: both bounds are the value."""
    counts = [steps.counts(cells) for cells in sides[:2]]
    left, right = (
        steps.upto(cells, own) / total for cells, own, total in zip(sides[:2], counts, sides.totals, strict=True)
    )
    after = left - right
    values: dict[Sum, Floats] = {one: one(after) * steps.gap for one in sums if one != "atoms"}
    if "atoms" in sums:
        values["atoms"] = np.abs(counts[0] / sides.totals[0] - counts[1] / sides.totals[1]) / 2
    return Bounds(steps.score, (left, right), np.abs(after), values, values)


def _course(bins: Bins, sides: Sides, scale: Scale) -> tuple[list[Floats], tuple[Floats, Floats], _Course]:
    """The shares of both sides in each bin and up to its end, and the course of the difference through it."""
    end, start = scale.positions(bins.high), scale.positions(bins.low)
    share, below, upto, area = [], [], [], []
    for cells, total in zip(sides[:2], sides.totals, strict=True):
        counts, before = bins.total("counts", cells), bins.total("before", cells)
        share.append(counts / total)
        below.append(before / total)
        upto.append((before + counts) / total)
        area.append((end * counts - bins.total("moments", cells)) / total)
    before, length = below[0] - below[1], end - start
    least, most = before - share[1], before + share[0]
    mean = before + (area[0] - area[1]) / np.where(length > 0, length, 1.0)
    return share, (upto[0], upto[1]), _Course(least, most, np.clip(mean, least, most), length)


def _chord(convex: Convex, course: _Course) -> Floats:
    """The line through phi at both bounds of D, at its mean."""
    spread = course.most - course.least
    weight = np.divide(course.mean - course.least, spread, out=np.zeros_like(spread), where=spread > 0)
    return (1 - weight) * convex(course.least) + weight * convex(course.most)
