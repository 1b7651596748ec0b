"""The number of rows that an audit needs: the power of its tests, in closed form, and the results.

Rates: the two-sided test of equal rates, by the normal approximation. Scores: the two-sided
Kolmogorov test, where the gap between the distribution functions is largest at the median and falls
to 0 on both sides in straight lines. The difference of the empirical distribution functions is then
a Brownian bridge with a drift, whose probability to cross a level is known.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, exp, log, sqrt
from typing import Literal, NamedTuple, TypeAlias, get_args

from metrifair.errors import DataError
from metrifair.figures.certificates import check_confidence
from metrifair.support.checks import check_integer, check_known, check_number
from metrifair.support.signatures import as_in
from metrifair.support.special import normal_probability, normal_quantile

PlannedMetric: TypeAlias = Literal["rate", "kolmogorov"]

_MOST_ROWS = 2**40
_HALVINGS = 50  # of an interval: the rest is rounding
_FAR = 8.0  # a drift with which every sample crosses


def rows_needed(
    gap: float,
    *,
    metric: PlannedMetric = "rate",
    rate: float = 0.5,
    ratio: float = 1.0,
    power: float = 0.8,
    confidence: float = 0.95,
    comparisons: int = 1,
) -> tuple[int, int]:
    """How many rows of each of two groups detect a gap with a given probability.

    Parameters
    ----------
    gap : float
        The true gap in the population: the difference between two rates, or the Kolmogorov distance
        between two score distributions.
    metric : {"rate", "kolmogorov"}, default="rate"
        The compared quantity: rates of decisions, or score distributions.
    rate : float, default=0.5
        Mean of both rates. 0.5 needs the most rows. Ignored for scores.
    ratio : float, default=1.0
        Rows of the larger group for each row of the smaller one.
    power : float, default=0.8
        Probability that the test of the gap is statistically significant.
    confidence : float, default=0.95
        Confidence level of the audit.
    comparisons : int, default=1
        Number of comparisons for which the audit adjusts its significance level (Bonferroni).

    Returns
    -------
    tuple of int
        Rows of the smaller and of the larger group.

    Raises
    ------
    DataError
        If an argument cannot be used.

    Examples
    --------
    >>> rows_needed(0.1), rows_needed(0.1, metric="kolmogorov", ratio=2)
    ((412, 412), (355, 710))
    """
    check_number(
        "gap",
        gap,
        low=0,
        high=1,
    )
    check_number("ratio", ratio, low=1)
    plan = _Plan.of(
        metric,
        rate,
        power,
        confidence,
        comparisons,
    )
    if gap > plan.largest_gap:
        raise DataError(
            f"must be at most {plan.largest_gap:g} at rate {rate:g}", argument="gap", received=gap
        )
    low = 1
    high = 2
    while plan.power_at(gap, high, ratio * high) < power:
        low = high
        high = 2 * high
        if high > _MOST_ROWS:
            raise DataError(
                "is too small to be detected with any number of rows", argument="gap", received=gap
            )
    while high - low > 1:
        middle = (low + high) // 2
        if plan.power_at(gap, middle, ratio * middle) >= power:
            high = middle
        else:
            low = middle
    return high, ceil(ratio * high)


@as_in(rows_needed)
def detectable_gap(
    rows: int,
    other_rows: int,
    *,
    metric: PlannedMetric = "rate",
    rate: float = 0.5,
    power: float = 0.8,
    confidence: float = 0.95,
    comparisons: int = 1,
) -> float | None:
    """The smallest gap that rows of two groups detect with a given probability.

    Parameters
    ----------
    rows : int
        Rows of one group.
    other_rows : int
        Rows of the other group.
    metric, rate, power, confidence, comparisons : as in rows_needed

    Returns
    -------
    float or None
        The gap; None if the rows are too few to detect any gap with this probability.

    Raises
    ------
    DataError
        If an argument cannot be used.

    Examples
    --------
    >>> round(detectable_gap(200, 200), 3), round(detectable_gap(200, 200, metric="kolmogorov"), 3)
    (0.145, 0.154)
    """
    for name, value in (("rows", rows), ("other_rows", other_rows)):
        check_integer(name, value, least=1)
    return _smallest_gap(
        _Plan.of(
            metric,
            rate,
            power,
            confidence,
            comparisons,
        ),
        rows,
        other_rows,
        power,
    )


@lru_cache(maxsize=1024)  # an audit compares many groups of one size
def _smallest_gap(
    plan: _Plan,
    rows: int,
    other_rows: int,
    power: float,
) -> float | None:
    low = 0.0
    high = plan.largest_gap
    if plan.power_at(high, rows, other_rows) < power:
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if plan.power_at(middle, rows, other_rows) >= power:
            high = middle
        else:
            low = middle
    return high


class _Plan(NamedTuple):
    """The test whose power is computed."""

    metric: PlannedMetric
    rate: float
    level: float

    @classmethod
    def of(
        cls,
        metric: PlannedMetric,
        rate: float,
        power: float,
        confidence: float,
        comparisons: int,
    ) -> _Plan:
        check_known("metric", metric, get_args(PlannedMetric))
        for name, value in (("rate", rate), ("power", power), ("confidence", confidence)):
            check_confidence(value, name)
        check_integer("comparisons", comparisons, least=1)
        return cls(metric, rate, (1 - confidence) / comparisons)

    @property
    def largest_gap(self) -> float:
        """That rates with this mean can have."""
        if self.metric == "rate":
            return 2 * min(self.rate, 1 - self.rate)
        return 1.0

    def power_at(
        self,
        gap: float,
        rows: float,
        other_rows: float,
    ) -> float:
        """The probability that the test is significant."""
        if self.metric == "rate":
            return _rate_power(
                gap,
                rows,
                other_rows,
                self.rate,
                self.level,
            )
        return _kolmogorov_power(
            gap,
            rows,
            other_rows,
            self.level,
        )


def _rate_power(
    gap: float,
    rows: float,
    other_rows: float,
    rate: float,
    level: float,
) -> float:
    """The power by the normal approximation, less half a row of either group for the
    discreteness of exact tests.
    """
    low = rate - gap / 2
    high = rate + gap / 2
    pooled = (rows * low + other_rows * high) / (rows + other_rows)
    equal = sqrt(pooled * (1 - pooled) * (1 / rows + 1 / other_rows))
    error = sqrt(low * (1 - low) / rows + high * (1 - high) / other_rows)
    beyond = gap - (1 / rows + 1 / other_rows) / 2 - normal_quantile(1 - level / 2) * equal
    if error == 0:
        return float(beyond > 0)
    return normal_probability(beyond / error)


def _kolmogorov_power(
    gap: float,
    rows: float,
    other_rows: float,
    level: float,
) -> float:
    """The probability that a Brownian bridge with a drift up to the middle and down again crosses
    the critical value.

    Between its ends and a given value in the middle, the bridge stays below a straight line with a
    probability that is an exponential function of the distances; its mean over the value in the
    middle is one of normal integrals.
    """
    drift = gap * sqrt(rows * other_rows / (rows + other_rows))  # in the middle
    if drift > _FAR:
        return 1.0
    critical = sqrt(-log(level / 2) / 2)
    below = critical - drift
    stays = (
        normal_probability(2 * below)
        - 2
        * exp(2 * critical * (critical - 2 * below))
        * normal_probability(2 * (below - critical))
        + exp(8 * critical * (critical - below)) * normal_probability(2 * (below - 2 * critical))
    )
    return 1 - stays
