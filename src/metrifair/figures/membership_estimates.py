"""Selection rates and energy distances by group probabilities: estimates, corrections, bounds.

To first order, an estimate is a sum of the influences of the rows, so that sums of estimates of the
same rows keep their correlation. The amount of a row in a group is its weight times the probability
of the group. Amounts may be negative, where observed groups are corrected for errors.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import NamedTuple

import numpy as np

from metrifair.figures.intervals import Interval
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.special import student_quantile

CELL_ROWS = 50  # of a cell that bounds rates: within fewer, shares are too noisy to be bounds


class SampleEstimate(NamedTuple):
    """A figure, the influence of each row on it, and what noise adds to its value and to its
    variance.

    The squared influences on a figure that is ``quadratic`` in the differences of distributions
    grow as it does: they are those at this value.
    """

    value: float
    influence: Floats  # (n,)
    bias: float = 0.0
    variance: float = 0.0
    quadratic: float = 0.0  # 0: the figure is a mean

    def __add__(self, other: SampleEstimate) -> SampleEstimate:  # type: ignore[override]
        return SampleEstimate(
            self.value + other.value,
            self.influence + other.influence,
            self.bias + other.bias,
            self.variance + other.variance,
            self.quadratic + other.quadratic,
        )

    def __neg__(self) -> SampleEstimate:
        return SampleEstimate(
            -self.value,
            -self.influence,
            -self.bias,
            self.variance,
            -self.quadratic,
        )

    @property
    def unbiased(self) -> SampleEstimate:
        """The same without what noise adds to the value."""
        return self._replace(value=self.value - self.bias, bias=0.0)

    def over(self, other: SampleEstimate) -> SampleEstimate:
        """The ratio of two estimates of the same rows."""
        ratio = self.value / other.value
        influence = self.influence - ratio * other.influence
        return SampleEstimate(ratio, influence / other.value)

    def of_rows(self, inside: Booleans) -> SampleEstimate:
        """The same estimate among more rows: ``inside`` marks its own."""
        influence = np.zeros(len(inside))
        influence[inside] = self.influence
        return self._replace(influence=influence)

    def interval(self, confidence: float) -> Interval:
        """Student's interval; degrees of freedom are the effective number of rows, less one.

        That of a quadratic figure has all values whose own error reaches the estimate, as Wilson's
        of a share has.

        >>> SampleEstimate(0.5, np.full(4, 0.1)).interval(0.95)  # doctest: +ELLIPSIS
        Interval(low=-0.234..., high=1.234...)
        """
        squares = float((self.influence**2).sum())
        fourth = float((self.influence**4).sum())
        freedom = 1.0
        if fourth > 0:
            freedom = max(1.0, squares**2 / fourth - 1)
        quantile = student_quantile(freedom, (1 + confidence) / 2)
        linear = quantile**2 * squares * (freedom + 1) / freedom
        further = quantile**2 * self.variance
        shift = 0.0
        if self.quadratic > 0:
            shift = linear / self.quadratic / 2
        if shift:
            half = sqrt(shift**2 + 2 * shift * max(0.0, self.value) + further)
        else:
            half = sqrt(linear + further)
        center = self.value + shift
        return Interval(center - half, center + half)


def rate_estimate(selected: Floats, amount: Floats) -> SampleEstimate:
    """The share of a group's amount that is selected; ``selected`` is 0 or 1.

    >>> rate_estimate(np.array([1.0, 0.0]), np.array([0.9, 0.3])).value
    0.75
    """
    total = amount.sum()
    rate = float(amount @ selected / total)
    return SampleEstimate(rate, amount * (selected - rate) / total)


def energy_estimate(scores: Floats, left: Floats, right: Floats) -> SampleEstimate:
    """The energy distance of two groups, from the amount of each row in both.

    Noise adds to it the sum of the energies of every row's influence on the difference of the
    distributions. Near a distance of 0 there is only noise: the square of twice that sum bounds its
    variance.

    >>> energy_estimate(np.array([0.0, 1.0, 1.0, 3.0]), np.array([1.0, 1, 0, 0]), np.array([0.0,
    ...     0, 1, 1])).value
    1.5
    """
    left = left / left.sum()
    right = right / right.sum()
    order = np.argsort(scores)
    to_left = _mean_distances(scores, order, left)
    to_right = _mean_distances(scores, order, right)
    within_left = float(left @ to_left)
    between = float(left @ to_right)
    within_right = float(right @ to_right)
    witness = to_right - to_left
    of_left = left * (witness - left @ witness)
    of_right = right * (witness - right @ witness)
    influence = 2 * (of_left - of_right)
    bias = (
        left**2 @ (2 * to_left - within_left)
        + right**2 @ (2 * to_right - within_right)
        - 2 * (left * right) @ (to_left + to_right - between)
    )
    value = 2 * between - within_left - within_right
    return SampleEstimate(
        value,
        influence,
        float(bias),
        2 * float(bias) ** 2,
        quadratic=value,
    )


def _mean_distances(scores: Floats, order: Integers, weight: Floats) -> Floats:
    """The weighted sum of distances from each score to all scores."""
    points = scores[order]
    weights = weight[order]
    upto = np.cumsum(weights)
    moment = np.cumsum(weights * points)
    weight_below = 2 * upto - upto[-1]  # less that above
    moment_below = 2 * moment - moment[-1]
    distances = np.empty(len(scores))
    distances[order] = points * weight_below - moment_below
    return distances


class RateBounds(NamedTuple):
    """The smallest and the largest selection rate that a group can have, estimated.

    Noise brings them nearer to each other: each cell takes the smaller, or the larger, of two noisy
    shares. The bias is at least as large as that on average, so that unbiased estimates are no
    narrower than the bounds.
    """

    lowest: SampleEstimate
    highest: SampleEstimate
    cells: int  # that were used

    def interval(self, confidence: float) -> Interval:
        """From the lower end of the lower bound's interval to the upper end of the upper one's."""
        low = self.lowest.unbiased.interval(confidence).low
        high = self.highest.unbiased.interval(confidence).high
        return Interval(max(0.0, low), min(1.0, high))


def rate_bounds(
    selected: Floats,
    probability: Floats,
    weight: Floats,
    cells: Integers,
) -> RateBounds:
    """Bounds of a group's selection rate, for any dependence between score and group within cells.

    In a cell of selection rate p and group share q, the share that is both lies between max(0, p +
    q - 1) and min(p, q). Cells of few rows are merged first.

    >>> half = np.tile([1.0, 0.0], 50)
    >>> bounds = rate_bounds(half, np.full(100, 0.75), np.ones(100), np.zeros(100, int))
    >>> round(bounds.lowest.value, 3), round(bounds.highest.value, 3)
    (0.333, 0.667)
    """
    cell = merged_cells(cells, probability)
    total = np.bincount(cell, weight)
    share = np.bincount(cell, weight * probability) / total
    rate = np.bincount(cell, weight * selected) / total
    overlap = (share + rate > 1)[cell] * (probability + selected - 1)
    larger = np.where((rate < share)[cell], selected, probability)
    error = _errors(
        share,
        rate,
        np.bincount(cell, weight * probability**2) / total,
        np.bincount(cell, weight**2) / total**2,
    )
    amount = weight * probability
    expected = amount.sum()

    def bound(joint: Floats) -> SampleEstimate:
        value = float(weight @ joint / expected)
        return SampleEstimate(value, (weight * joint - value * amount) / expected)

    def bias(gap: Floats) -> float:
        return float(total @ _bias(gap, error) / expected)

    lowest = bound(overlap)._replace(bias=bias(share + rate - 1))
    highest = bound(larger)._replace(bias=-bias(rate - share))
    return RateBounds(lowest, highest, len(total))


def _errors(
    share: Floats,
    rate: Floats,
    squares: Floats,
    per_row: Floats,
) -> Floats:
    """Largest standard errors of the sum and the difference of both shares in cells, of few
    selected rows too.
    """
    rows = 1 / per_row
    added = (rows * rate + 2) / (rows + 4)  # Agresti and Coull: no rate of some rows is certain
    of_rate = np.sqrt(added * (1 - added))
    of_share = np.sqrt(np.maximum(0.0, squares - share**2))
    spread = of_rate + of_share
    return np.asarray(np.sqrt(per_row) * spread)


def _bias(gap: Floats, error: Floats) -> Floats:
    """Upper bound of the mean bias of the smaller of two shares with this gap and error.

    It is below error times the normal density of their true distance in errors. This has a larger
    mean over noise.
    """
    deviations = gap / error
    density = np.exp(-(deviations**2) / 2)
    return np.asarray(error / sqrt(pi) * density)


def merged_cells(cells: Integers, probability: Floats, least: int = CELL_ROWS) -> Integers:
    """Cells of at least so many rows, as far as there are so many: neighbors by mean probability
    are merged.

    >>> merged_cells(np.array([0, 1, 2, 3]), np.array([0.1, 0.9, 0.2, 0.8]), least=2)
    array([0, 1, 0, 1])
    """
    rows = np.bincount(cells)
    used = np.flatnonzero(rows)
    mean = np.bincount(cells, probability)[used] / rows[used]
    order = used[np.argsort(mean, kind="stable")]
    upto = np.cumsum(rows[order])
    starts = [0]
    done = 0  # rows before the last start
    while done + 2 * least <= upto[-1]:
        after = int(np.searchsorted(upto, done + least)) + 1
        if after >= len(order) or upto[-1] - upto[after - 1] < least:
            break
        starts.append(after)
        done = upto[after - 1]
    merged = np.zeros(len(rows), np.int64)
    merged[order] = np.searchsorted(starts, np.arange(len(order)), side="right") - 1
    return merged[cells]
