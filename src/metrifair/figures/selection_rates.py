"""Selection rates by category and their ratios to a reference, and the tables of them that rules
require, as data.

All rates, four-fifths ratios and impact ratios are computed here: for audits, frontiers, reports.
Each table is named by its content. None of them states whether a law is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from metrifair.figures.intervals import FEW, Interval
from metrifair.support.arrays import Floats, sums_upto
from metrifair.support.special import beta_quantile, normal_quantile

_Compared = TypeVar("_Compared")

HIGHEST = "highest"
"""The reference that is not named: the category of the highest rate."""

MIN_GROUP_SHARE = 0.02
FOUR_FIFTHS = 0.8
_LAST_DIGITS = 1e-12  # a ratio of exactly four fifths is not below them, despite rounding
_FEWEST_SAMPLES = 2  # samples of a category, for an interval of its ratio
_TIES = 1e-7  # tables that are as likely as the one at hand, up to rounding
_FAR = 40.0  # standard deviations: beyond, no double is small enough for the probability


Exclusion: TypeAlias = Literal[
    "",
    "unknown_group",
    "unknown_name",
    "missing_or_unknown_name",
    "small_share",
    "reference_small_share",
    "reference_absent",
]
"""Why a group has no ratio: it is missing, or its name says that it is not known (or either), or it
or the reference has too small a share of the rows, or none.
"""


@dataclass(frozen=True)
class GroupRates:
    """Decisions about one group, a category of an attribute; None if no sample could show it.

    The selection rate is divided by the rate of the reference, and tested against it.
    """

    group: str
    size: int
    selection_rate: float
    accuracy: float | None = None
    true_positive_rate: float | None = None
    false_positive_rate: float | None = None
    selected: int | None = None  # number of selected rows; None: rows have weights
    share: float | None = None  # of all rows of the table, including those with a missing group
    interval: Interval | None = None  # of the selection rate, Wilson's
    ratio: float | None = None  # of the selection rate to the reference's
    ratio_interval: Interval | None = None
    # Fisher's exact, against the reference; None below the minimum group size
    p_value: float | None = None
    # number of further selections that would bring the group to the reference's rate
    shortfall: int | None = None
    left_out: Exclusion = ""  # the reason why the group has no ratio
    few: bool = False  # below the minimum group size
    # of scores from the reference's, in standard deviations of all scores
    mean_difference: float | None = None
    # the ratio if all rows beyond each decile of the score were selected
    decile_ratios: Sequence[float | None] = ()
    clusters: int | None = None  # of the rows; None: rows are independent

    @property
    def independent_size(self) -> int:
        """The independent observations, which the minimum group size counts: clusters or rows."""
        if self.clusters is None:
            return self.size
        return self.clusters


def is_below(ratio: float) -> bool:
    """Whether a ratio is below four fifths.

    >>> is_below(0.79), is_below(0.8), is_below(0.7999999999999999)
    (True, False, False)
    """
    return ratio < FOUR_FIFTHS * (1 - _LAST_DIGITS)


def headline_groups(groups: Sequence[_Compared], few: Iterable[bool]) -> Sequence[_Compared]:
    """The groups of a headline: those with enough rows, if there are two; otherwise all.

    >>> (headline_groups(["a", "b", "c"], [False, False, True]),
    ...  headline_groups(["b", "c"], [False, True]))
    (['a', 'b'], ['b', 'c'])
    """
    enough = [group for group, small in zip(groups, few, strict=True) if not small]
    if len(enough) > 1:
        return enough
    return groups


def enough_rows(smaller: Mapping[_Compared, float], least: int = FEW) -> list[_Compared]:
    """The comparisons of a headline, by rows of the smaller group: those with enough rows; if there
    are none, with any.

    >>> (enough_rows({"a and b": 90, "a and c": 4, "a and d": 0}),
    ...  enough_rows({"a and c": 4, "a and d": 0}))
    (['a and b'], ['a and c'])
    """
    return [key for key, rows in smaller.items() if rows >= least] or [
        key for key, rows in smaller.items() if rows
    ]


def wilson_interval(share: float, count: float, confidence: float) -> Interval:
    """Wilson's interval of a share among so many samples, or as many as weighted ones are worth.

    >>> wilson_interval(0.5, 100, 0.95)  # doctest: +ELLIPSIS
    Interval(low=0.4038..., high=0.5961...)
    """
    spread = normal_quantile((1 + confidence) / 2) ** 2 / count
    center = share + spread / 2
    margin = sqrt(spread * (share * (1 - share) + spread / 4))
    return Interval(
        max(0.0, (center - margin) / (1 + spread)), min(1.0, (center + margin) / (1 + spread))
    )


def fisher_p(
    selected: int,
    rows: int,
    other_selected: int,
    other_rows: int,
) -> float:
    """Fisher's exact p-value, two-sided: the probability of all tables with these margins that are
    at most as likely.

    >>> fisher_p(1, 10, 9, 10)  # doctest: +ELLIPSIS
    0.00109...
    """
    all_selected = selected + other_selected
    all_rows = rows + other_rows
    mean = rows * all_selected / all_rows
    deviation = sqrt(mean * (1 - all_selected / all_rows) * other_rows / max(1, all_rows - 1))
    low = max(0, all_selected - other_rows)
    high = min(all_selected, rows)
    low = max(low, int(mean - _FAR * deviation) - 1)
    high = min(high, int(mean + _FAR * deviation) + 2)
    if not low <= selected <= high:
        return 0.0
    # each with the likelihood of one more, relative to its own
    x = np.arange(low, high, dtype=np.float64)
    steps = np.log(
        (rows - x) * (all_selected - x) / ((x + 1) * (other_rows - all_selected + x + 1))
    )
    likelihood = sums_upto(steps)
    likelihood -= likelihood.max()
    as_likely = likelihood <= likelihood[selected - low] + _TIES
    return float(min(1.0, np.exp(likelihood[as_likely]).sum() / np.exp(likelihood).sum()))


@dataclass(frozen=True)
class RatioRule:
    """The reference of impact ratios, and the minimum share and size of groups."""

    reference: str = HIGHEST  # or the name of a category
    min_group_share: float = MIN_GROUP_SHARE  # of all rows: categories below it are in no ratio
    min_group_size: int = FEW  # rows; smaller groups are reported separately
    confidence: float = 0.95
    # of groups that are in no ratio: their name says they are not known
    unknown_names: frozenset[str] = frozenset()


class Ratios(NamedTuple):
    """The ratio of each category to the reference or the reason for none; and the place of the
    reference.
    """

    reference: int | None
    values: list[float | None]
    left_out: list[Exclusion]

    @property
    def used(self) -> list[int]:
        """The categories that are in ratios."""
        return [place for place, why in enumerate(self.left_out) if not why]

    @property
    def smallest(self) -> float | None:
        """The four-fifths ratio: the smallest of all."""
        return min((value for value in self.values if value is not None), default=None)

    def headline(self, few: Sequence[bool]) -> Sequence[int]:
        """The categories of the smallest ratio: those with enough rows where the reference is
        one, otherwise all.
        """
        groups = headline_groups(self.used, [few[place] for place in self.used])
        if self.reference in groups:
            return groups
        return self.used


def impact_ratios(
    counts: Floats,
    rows: Sequence[int],
    all_rows: int,
    rule: RatioRule,
    names: Sequence[str] = (),
) -> Ratios:
    """Ratios of rates, from (categories, 2) counts or weights: not selected, selected.

    ``all_rows`` includes rows with a missing category. Ratios are computed by fractions, so that
    4/5 is exactly 0.8.

    >>> impact_ratios(np.array([[4.0, 6.0], [5.0, 15.0]]), [10, 20], 30, RatioRule())
    Ratios(reference=1, values=[0.8, 1.0], left_out=['', ''])
    """
    least = Fraction(str(rule.min_group_share)) * all_rows
    left_out: list[Exclusion] = [
        "" if Fraction(share) >= least else "small_share" for share in rows
    ]
    for place, name in enumerate(names):
        if name in rule.unknown_names:
            left_out[place] = "unknown_name"
    rates = [Fraction(table[1]) / (Fraction(table[0]) + Fraction(table[1])) for table in counts]
    used = [place for place, why in enumerate(left_out) if not why]
    if rule.reference != HIGHEST:
        is_present = rule.reference in names
        reference: int | None = list(names).index(rule.reference) if is_present else None
        if reference is None or left_out[reference]:
            absent: Exclusion = "reference_small_share" if is_present else "reference_absent"
            left_out = [why or absent for why in left_out]
            reference = None
    else:
        reference = max(used, key=lambda place: rates[place], default=None)
    base = Fraction(0) if reference is None else rates[reference]
    if not base:
        return Ratios(None, [None] * len(rates), left_out)
    return Ratios(
        reference,
        [float(rates[at] / base) if not why else None for at, why in enumerate(left_out)],
        left_out,
    )


def effective_counts(weights: Floats, squares: NDArray[Any]) -> Floats:
    """Effective counts (groups, 2) of equal samples, from sums of weights and of their squares.

    >>> effective_counts(np.array([[1.0, 2.0], [1e-200, 0.0]]), np.array([3.0, 0.0]))
    array([[1., 2.],
           [1., 0.]])
    """
    total = weights.sum(1)
    # those of tiny weights are 0
    size = np.divide(
        total**2,
        squares,
        out=np.ones(len(total)),
        where=squares > 0,
    )
    return np.asarray(weights / total[:, None] * size[:, None])


def ratio_intervals(
    counts: Floats,
    ratios: Sequence[float],
    *,
    confidence: float,
    reference: int | None = None,
    correlations: Floats | None = None,
) -> tuple[list[Interval | None], Interval | None]:
    """Bounds of the ratio of each category, and of the smallest ratio; None if a category has a
    single sample.

    ``counts`` are (categories, 2): not selected, selected; ``ratios`` those of the sample, which
    lie within the bounds. Without a named ``reference``, the highest rate is the divisor, and it
    was selected because it is high. Therefore every pair has simultaneous bounds, and the smallest
    lower and the smallest upper ones are used. The ends of each rate are quantiles of the beta
    distribution of Jeffreys: unlike resamples, it allows for a positive rate if none of few is
    selected. The errors of the logarithms of two rates are combined separately below and above: as
    independent ones, or with the ``correlations`` of the rates (categories, categories).
    """
    size = len(counts)
    alone: list[Interval | None] = [None] * size
    if size < 2 or counts.sum(1).min() < _FEWEST_SAMPLES:
        return alone, None
    yes = counts[:, 1] + 0.5
    no = counts[:, 0] + 0.5
    center = np.log(yes / (yes + no))
    # the lower end of a rate of 0 may underflow: its logarithm is -inf
    with np.errstate(divide="ignore"):
        ends = np.log([beta_quantile(yes, no, (1 + sign * confidence) / 2) for sign in (-1, 1)])
    below, above = np.maximum([center - ends[0], ends[1] - center], 0.0)
    logs = center[:, None] - center[None, :]  # each category (row) over each other one (column)
    down, up = (
        _combined(first[:, None], second[None, :], correlations)
        for first, second in ((below, above), (above, below))
    )
    columns = [reference] if reference is not None else range(size)

    def bounds(at: int, pairs: float) -> Interval:
        against = [column for column in columns if column != at]
        alone, jointly = (
            normal_quantile(1 - (1 - confidence) / (2 * number)) for number in (1, pairs)
        )
        wider = jointly / alone
        low = float(np.exp((logs[at] - wider * down[at])[against].min()))
        high = float(np.exp((logs[at] + wider * up[at])[against].min()))
        if reference is None:
            high = min(1.0, high)
        return Interval(min(low, ratios[at]), max(high, ratios[at]))

    compared = [at for at in range(size) if at != reference]
    for at in compared:
        alone[at] = bounds(at, 1 if reference is not None else size - 1)
    jointly = [
        bounds(at, size - 1 if reference is not None else size * (size - 1) / 2) for at in compared
    ]
    smallest = min(ratios)
    low = min(interval.low for interval in jointly)
    high = min(interval.high for interval in jointly)
    return alone, Interval(
        min(low, smallest), max(high if reference is None else min(high, 1.0), smallest)
    )


def _combined(first: Floats, second: Floats, correlations: Floats | None) -> Floats:
    """The error of a difference, from those of both terms."""
    if correlations is None:
        return np.hypot(first, second)
    with np.errstate(invalid="ignore"):  # infinite errors
        squares = first**2 + second**2 - 2 * correlations * first * second
    return np.sqrt(np.where(np.isnan(squares), np.inf, np.maximum(squares, 0.0)))


class ClusteredRates(NamedTuple):
    """What rates of rows in clusters are worth."""

    counts: Sequence[int]  # clusters of each category
    sizes: Floats  # of each category, the number of independent rows whose rate is as exact
    # (categories, categories): of the rates, through clusters with rows of both
    correlations: Floats


def _effective(
    counts: Floats,
    squares: NDArray[Any] | None,
    clustered: ClusteredRates | None,
    *,
    weighted: bool,
) -> Floats | None:
    """Counts of as many independent rows as the rates are worth; None if the squares of weights
    are not known.
    """
    if clustered is not None:
        return np.asarray(counts / counts.sum(1, keepdims=True) * clustered.sizes[:, None])
    if not weighted:
        return counts
    if squares is None:
        return None
    return effective_counts(counts, squares)


class ComparedRates(NamedTuple):
    """The categories of a table with the figures of their counts, and the figures of the whole
    table.
    """

    rates: list[GroupRates]
    reference: str | None
    ratio: float | None  # the smallest, of categories with enough rows where the reference is one
    interval: Interval | None


def compare_rates(
    rates: Sequence[GroupRates],
    counts: Floats,
    *,
    all_rows: int,
    rule: RatioRule,
    squares: NDArray[Any] | None = None,
    weighted: bool = False,
    clustered: ClusteredRates | None = None,
) -> ComparedRates:
    """Categories with shares, intervals, ratios, p-values and shortfalls.

    ``counts`` are (categories, 2) rows, or weights: not selected, selected. For weights,
    ``squares`` are the sums of their squares; without them there are no intervals. Weighted rows
    have no counts and no p-values. Rows in clusters have no p-values, as Fisher's test needs
    independent rows.
    """
    if clustered is not None:
        rates = [
            replace(rate, clusters=count)
            for rate, count in zip(rates, clustered.counts, strict=True)
        ]
    names = [rate.group for rate in rates]
    few = [rate.independent_size < rule.min_group_size for rate in rates]
    ratios = impact_ratios(counts, [rate.size for rate in rates], all_rows, rule, names)
    effective = _effective(
        counts,
        squares if weighted else None,
        clustered,
        weighted=weighted,
    )
    compared = ratios.headline(few)
    separate, interval = _intervals_of_ratios(ratios.used, ratios, effective, rule, clustered)
    alone = dict(zip(ratios.used, separate, strict=True))
    if compared != ratios.used:
        interval = _intervals_of_ratios(compared, ratios, effective, rule, clustered)[1]
    reference = counts[ratios.reference or 0].astype(np.int64).tolist()
    rows = []
    for at, (rate, (no, yes)) in enumerate(zip(rates, counts.tolist(), strict=True)):
        figures: dict[str, Any] = {}
        if not weighted:
            figures["selected"] = int(yes)
        if effective is not None:
            size = float(effective[at].sum())
            figures["interval"] = wilson_interval(yes / (no + yes), size, rule.confidence)
        if ratios.values[at] is not None and not weighted and at != ratios.reference:
            tested = clustered is None and not few[at] and not few[ratios.reference or 0]
            figures |= _against_reference(int(yes), rate.size, reference, tested=tested)
        rows.append(
            replace(
                rate,
                share=rate.size / all_rows,
                ratio=ratios.values[at],
                ratio_interval=alone.get(at),
                left_out=ratios.left_out[at],
                few=few[at],
                **figures,
            )
        )
    if ratios.reference is None:
        return ComparedRates(rows, None, None, interval)
    smallest = min(ratios.values[at] or 0.0 for at in compared)
    return ComparedRates(rows, names[ratios.reference], smallest, interval)


def _intervals_of_ratios(
    places: Sequence[int],
    ratios: Ratios,
    effective: Floats | None,
    rule: RatioRule,
    clustered: ClusteredRates | None,
) -> tuple[list[Interval | None], Interval | None]:
    """The intervals of the ratios at these places, and that of the smallest of them."""
    if effective is None or ratios.reference is None:
        return [None] * len(places), None
    reference = None
    if rule.reference != HIGHEST:
        reference = places.index(ratios.reference)
    correlations = None
    if clustered is not None:
        correlations = clustered.correlations[np.ix_(places, places)]
    return ratio_intervals(
        effective[list(places)],
        [ratios.values[place] or 0.0 for place in places],
        confidence=rule.confidence,
        reference=reference,
        correlations=correlations,
    )


def _against_reference(
    selected: int, size: int, reference: Sequence[int], *, tested: bool
) -> dict[str, Any]:
    """The shortfall of a category to the reference (rows not selected, and selected), and the
    p-value of the same rate.
    """
    total = sum(reference)
    short = size * reference[1] - selected * total
    figures: dict[str, Any] = {"shortfall": max(0, -(-short // total))}
    if tested:
        figures["p_value"] = fisher_p(selected, size, reference[1], total)
    return figures


StandardName: TypeAlias = Literal["ll144", "four-fifths", "credit"]

_USUAL = (
    "group",
    "rows",
    "share",
    "selected",
    "rate",
    "ratio",
    "true_positive_rate",
    "false_positive_rate",
    "fisher_p",
    "shortfall",
)


@dataclass(frozen=True)
class Standard:
    """The tables that a rule requires. Their words are in ``wording.rates``."""

    columns: tuple[str, ...] = _USUAL
    # also the intersection of all attributes, and each attribute of an intersection
    crossed: bool = False
    # scores above the median are selected, unless decisions or a threshold are given
    by_median: bool = False
    named: bool = False  # the reference must be named
    four_fifths: bool = True  # whether ratios are compared with four fifths
    scores: bool = False  # also mean scores, and ratios at every decile
    imputed: bool = True  # whether groups may be known by their probabilities only


STANDARDS: dict[str, Standard] = {
    "": Standard(),  # by default
    "ll144": Standard(
        columns=("group", "rows", "share", "selected", "rate", "ratio"),
        crossed=True,
        by_median=True,
        four_fifths=False,
        imputed=False,
    ),
    "four-fifths": Standard(
        columns=(
            "group",
            "rows",
            "share",
            "selected",
            "rate",
            "ratio",
            "below",
            "fisher_p",
            "standard_deviations",
            "odds_ratio",
            "shortfall",
        ),
    ),
    "credit": Standard(
        columns=(
            "group",
            "rows",
            "share",
            "selected",
            "rate",
            "ratio",
            "fisher_p",
            "standard_deviations",
            "odds_ratio",
            "shortfall",
            "mean_difference",
        ),
        named=True,
        four_fifths=False,
        scores=True,
    ),
}
"""The standards by name."""
