"""The rows that are selected: by a threshold, by the median or by decisions themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.measure.bins import Bins
from metrifair.auditing.measure.reference_groups import rules_for
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.records import SelectedBy
from metrifair.auditing.request import Request
from metrifair.errors import DataError, Remedy
from metrifair.figures.selection_rates import (
    STANDARDS,
    RatioRule,
)
from metrifair.support.arrays import Floats

DEFAULT_THRESHOLD = 0.5  # of probabilities
SUM_ROUNDING = 1e-12  # of sums of weights


class Selection(NamedTuple):
    """The selected rows: the threshold, its source, and the selected amount of each unit."""

    threshold: float
    by: SelectedBy
    amount: NDArray[Any]  # rows, or weight, of each unit
    rules: Mapping[str, RatioRule]  # the reference of impact ratios, by attribute
    # bounds of the median, if counts do not determine it
    between: tuple[float, float] | None = None


def threshold_for(
    request: Request, *, decisions: bool, probabilities: bool
) -> tuple[float | Literal["median"], SelectedBy] | None:
    """The threshold of decisions, and its source; None without decisions.

    ``decisions`` is True if the scores are 0 and 1, decisions themselves.

    >>> threshold_for(Request(), decisions=False, probabilities=True)
    (0.5, 'threshold')
    >>> threshold_for(Request(standard="ll144"), decisions=False, probabilities=True)
    ('median', 'median')
    """
    threshold = request.threshold
    if decisions and (
        threshold == "auto" or (not isinstance(threshold, str | None) and 0 < threshold <= 1)
    ):
        return DEFAULT_THRESHOLD, "decisions"
    if threshold == "auto" and STANDARDS[request.standard or ""].by_median:
        threshold = "median"
    if threshold == "auto":
        threshold = None
        if probabilities:
            threshold = DEFAULT_THRESHOLD
    if threshold is None and request.standard:
        why = "these scores are not probabilities"
        if request.threshold is None:
            why = "there is no threshold"
        raise DataError(
            f"compares selection rates, and {why}",
            argument="standard",
            received=request.standard,
            remedy=Remedy(
                "threshold",
                detail=", the lowest score that is selected, or 'median'",
            ),
        )
    if threshold is None:
        return None
    return (threshold, "median" if threshold == "median" else "threshold")


def number_or_default(threshold: float | str | None) -> float:
    """The threshold that a first pass over the rows uses; a default unless the user passed a
    number.
    """
    if threshold is None or isinstance(threshold, str):
        return DEFAULT_THRESHOLD
    return threshold


def at_or_above(scores: Any, threshold: float, precision: np.dtype[Any]) -> Any:
    """Mask of the scores at or above the threshold, compared in the precision of the original
    scores.

    Scores are an array or a column expression. A float32 score of 0.7 is slightly less than 0.7 as
    a float64, so the threshold is rounded as the scores were.

    >>> at_or_above(np.float32([0.6, 0.7]).astype(np.float64), 0.7, np.dtype(np.float32))
    array([False,  True])
    """
    with np.errstate(over="ignore"):  # beyond the largest float16, nothing is selected
        return scores >= float(precision.type(threshold))


def quantile_places(
    upto: NDArray[Any], share: float = 0.5, total: float | None = None
) -> tuple[int, int]:
    """The two places between which a quantile lies; ``upto`` is the number of rows, or the weight,
    up to each place.

    The median is at the first place, or half way between both.

    >>> [quantile_places(np.array(upto)) for upto in ([1, 2, 3], [1, 2, 3, 4], [1, 4])]
    [(1, 1), (1, 2), (1, 1)]
    """
    if total is None:
        total = float(upto[-1])
    target = share * total
    rounding = SUM_ROUNDING * total
    return int(np.searchsorted(upto, target - rounding)), int(
        np.searchsorted(upto, target + rounding, side="right")
    )


def selection_for(sample: AuditSample, request: Request) -> Selection | None:
    """The selected rows of an audit; None without decisions."""
    if sample.problem.members is not None and not STANDARDS[request.standard or ""].imputed:
        raise DataError(
            "does not permit imputed groups: it requires the categories that people reported",
            argument="standard",
            received=request.standard,
            remedy="pass the reported groups, or another standard",
        )
    if None not in sample.scores.by_class:
        if request.standard:
            raise DataError(
                "needs one score for each row",
                argument="standard",
                received=request.standard,
                remedy="audit one class at a time",
            )
        return None
    exact = sample.scores.binned is None or bool(sample.scores.binned.bins.single.all())
    decisions = exact and sample.scores.by_class[None].are_decisions
    source = threshold_for(request, decisions=decisions, probabilities=sample.probabilities)
    if source is None:
        return None
    (threshold, by) = source
    low = request.favorable == "low"
    between = None
    if threshold == "median":
        threshold, amount, between = _beyond_median(sample, low=low)
    else:
        amount = sample.units.amount - sample.scores.selected if low else sample.scores.selected
    return Selection(threshold, by, amount, rules_for(sample, request), between)


def _beyond_median(
    sample: AuditSample, *, low: bool
) -> tuple[float, Floats, tuple[float, float] | None]:
    """The median, the amount of each unit above it (``low``: below), and its bounds if bins do
    not determine it.
    """
    if sample.scores.binned is not None:
        threshold, amount, between = median_cut(sample.scores.binned.bins, low=low)
        return threshold, np.clip(amount, 0, sample.units.amount), between
    scores = sample.scores.by_class[None]
    first, last = quantile_places(np.cumsum(scores.at(np.arange(scores.units))))
    selected = scores.place < last if low else scores.place > first
    return (
        float(scores.values[first] / 2 + scores.values[last] / 2),
        selected * sample.units.amount,
        None,
    )


def median_cut(
    bins: Bins, *, low: bool = False
) -> tuple[float, NDArray[Any], tuple[float, float] | None]:
    """The median, the amount of each cell above it (``low``: below), and its bounds if counts do
    not determine it.

    In that case, the nearer end of its bin replaces the median.
    """
    upto = bins.before + bins.counts
    total = upto[-1]
    first, last = quantile_places(upto.sum(1), total=float(total.sum()))
    if first != last or bins.single[first]:
        median = float(bins.high[first] / 2 + bins.low[last] / 2)
        return median, bins.before[last] if low else total - upto[first], None
    ends = float(bins.low[first]), float(bins.high[first])
    at_top = upto[first].sum() - total.sum() / 2 <= total.sum() / 2 - bins.before[first].sum()
    below = upto[first] if at_top else bins.before[first]
    return ends[int(at_top)], below if low else total - below, ends
