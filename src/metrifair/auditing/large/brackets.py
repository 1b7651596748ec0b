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

Between bins D is constant, so its integrals there are exact. Bounds hold up to rounding, about 1e-13 of the range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from metrifair.auditing.large.counting import Bins
from metrifair.auditing.large.grids import Floats, Integers, Scale

Convex: TypeAlias = Callable[[Floats], Floats]
INTEGRALS: dict[str, Convex] = {"wasserstein": np.abs, "cramer": np.square}
SUMS = (*INTEGRALS, "total_variation")
"""Distances that are sums over bins; the others are the maximum, and functions of these."""


class Sides(NamedTuple):
    """The cells on either side of a comparison, and how many rows (or how much weight) they hold in all."""

    left: Integers
    right: Integers
    totals: tuple[float, float]


class Bounds(NamedTuple):
    """Of one comparison, by bin: |D| that is attained, what it may reach, and bounds of the sums."""

    attained: Floats
    reachable: Floats
    low: dict[str, Floats]
    high: dict[str, Floats]


class _Course(NamedTuple):
    """The difference of the distribution functions within each bin."""

    after: Floats  # at the end of the bin
    least: Floats
    most: Floats
    mean: Floats
    length: Floats


def bounds(bins: Bins, sides: Sides, scale: Scale) -> Bounds:
    """What every bin proves; sums are on the scale of the positions."""
    share, course = _course(bins, sides, scale)
    attained = np.abs(course.after)  # what holds below a bin was attained in the bin before it
    plain = bins.single | (share[0] == 0) | (share[1] == 0)
    low, high = {}, {}
    for name, convex in INTEGRALS.items():
        between = convex(course.after) * bins.gap
        low[name] = course.length * convex(course.mean) + between
        high[name] = np.maximum(course.length * _chord(convex, course) + between, low[name])
    low["total_variation"] = np.abs(share[0] - share[1]) / 2
    high["total_variation"] = np.where(bins.single, low["total_variation"], (share[0] + share[1]) / 2)
    return Bounds(attained, np.where(plain, attained, np.maximum(course.most, -course.least)), low, high)


def _course(bins: Bins, sides: Sides, scale: Scale) -> tuple[list[Floats], _Course]:
    """The shares of both sides in each bin, and the course of the difference through it."""
    end, start = scale.positions(bins.high), scale.positions(bins.low)
    share, below, upto, area = [], [], [], []
    for cells, total in zip((sides.left, sides.right), sides.totals, strict=True):
        counts, before = bins.total("counts", cells), bins.total("before", cells)
        share.append(counts / total)
        below.append(before / total)
        upto.append((before + counts) / total)
        area.append((end * counts - bins.total("moments", cells)) / total)
    before, after, length = below[0] - below[1], upto[0] - upto[1], end - start
    least, most = before - share[1], before + share[0]
    mean = before + (area[0] - area[1]) / np.where(length > 0, length, 1.0)
    return share, _Course(after, least, most, np.clip(mean, least, most), length)


def _chord(convex: Convex, course: _Course) -> Floats:
    """The line through phi at both bounds of D, at its mean."""
    spread = course.most - course.least
    weight = np.divide(course.mean - course.least, spread, out=np.zeros_like(spread), where=spread > 0)
    return (1 - weight) * convex(course.least) + weight * convex(course.most)
