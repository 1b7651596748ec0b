"""What is asked of an audit: names and numbers as a user typed them, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metrifair.auditing.decisions import Threshold
from metrifair.auditing.evidence import Plan
from metrifair.auditing.inputs import Given
from metrifair.certificates import check_confidence
from metrifair.checks import check_known, is_number, is_whole
from metrifair.errors import DataError
from metrifair.metrics.registry import METRICS, USUAL
from metrifair.problem.cells import Contrast
from metrifair.problem.criteria import Criterion, criterion_named


@dataclass(frozen=True)
class Request:
    """What a user asked of an audit."""

    criteria: tuple[Criterion, ...]
    plan: Plan
    threshold: Threshold
    contrast: Contrast
    score_range: tuple[float, float] | None  # that holds all scores, seen or not; None: not known


def requested(
    data: Given,
    *,
    criteria: Sequence[str | Criterion] | str | Criterion | None,
    metrics: Sequence[str] | str | None,
    threshold: Threshold,
    confidence: float,
    contrast: Contrast,
    score_range: tuple[float, float] | None,
    resamples: int,
    permutations: int,
) -> Request:
    """The request, checked against the data."""
    check_confidence(confidence)
    check_known("contrast", contrast, ("pairs", "rest"))
    plan = Plan(
        metric_names(metrics),
        confidence,
        whole_number("resamples", resamples, least=20),
        whole_number("permutations", permutations, least=1),
    )
    return Request(
        criteria_of(criteria, data),
        plan,
        threshold_asked(threshold),
        contrast,
        known_range(score_range, data),
    )


def metric_names(metrics: Sequence[str] | str | None) -> tuple[str, ...]:
    """The metrics of an audit, checked."""
    names = USUAL if metrics is None else (metrics,) if isinstance(metrics, str) else tuple(metrics)
    if not names:
        raise DataError("metrics must name at least one metric, got none; leave it out for the usual ones")
    for name in names:
        check_known("metrics", name, METRICS)
    return tuple(dict.fromkeys(names))


def default_criteria(*, classes: int, strata: bool) -> tuple[str, ...]:
    """The criteria that the data allow, no comparison twice; ``classes`` is 0 without labels.

    >>> default_criteria(classes=2, strata=False)
    ('statistical_parity', 'equal_opportunity', 'predictive_equality')
    """
    parity = "conditional_statistical_parity" if strata else "statistical_parity"
    if classes == 2:
        return parity, "equal_opportunity", "predictive_equality"
    return (parity, "equalized_odds") if classes > 2 else (parity,)


def criteria_of(criteria: Sequence[str | Criterion] | str | Criterion | None, data: Given) -> tuple[Criterion, ...]:
    """The criteria asked for, or those that the data allow."""
    if criteria is None:
        criteria = default_criteria(classes=len(data.classes), strata=data.strata is not None)
    several = (criteria,) if isinstance(criteria, str | Criterion) else tuple(criteria)
    if not several:
        raise DataError("criteria must name at least one criterion, got none; leave it out for those the data allow")
    return tuple(criterion_named(criterion) for criterion in dict.fromkeys(several))


def whole_number(name: str, value: int, *, least: int) -> int:
    """0 or a whole number that is large enough."""
    if not is_whole(value, least=0) or 0 < value < least:
        raise DataError(f"{name} must be 0 or a whole number from {least} upwards, got {value!r}")
    return int(value)


def threshold_asked(value: Threshold) -> Threshold:
    """A finite number, "auto" or None."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return value
    if not is_number(value):
        raise DataError(f"threshold must be a finite number, 'auto' or None, got {value!r}")
    return float(value)


def known_range(score_range: tuple[float, float] | None, data: Given) -> tuple[float, float] | None:
    """The interval that holds all scores, seen or not; None where it is not known."""
    if score_range is None:
        return (0.0, 1.0) if data.probabilities else None
    try:
        low, high = (float(end) for end in score_range)
    except (TypeError, ValueError):
        raise DataError(f"score_range must be two numbers, lowest and highest, got {score_range!r}") from None
    if not (np.isfinite(high - low) and low < high):
        raise DataError(f"score_range must be two finite numbers, the lower one first, got {score_range!r}")
    if float(data.prediction.min()) < low or float(data.prediction.max()) > high:
        raise DataError(
            f"score_range must hold all scores, got {score_range!r} for scores from {float(data.prediction.min())} to "
            f"{float(data.prediction.max())}"
        )
    return low, high
