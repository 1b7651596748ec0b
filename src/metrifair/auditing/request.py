"""The options of an audit: validated names and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

import numpy as np

from metrifair.auditing.records import Favorable
from metrifair.errors import DataError, Remedy
from metrifair.figures.certificates import check_confidence
from metrifair.figures.intervals import FEW
from metrifair.figures.selection_rates import (
    HIGHEST,
    MIN_GROUP_SHARE,
    STANDARDS,
    StandardName,
)
from metrifair.metrics.registry import METRICS, USUAL_METRICS
from metrifair.problem.attributes import Continuous, Cuts
from metrifair.problem.cells import CONTRASTS, Attribute, Contrast
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.problem.problem import Problem
from metrifair.problem.unknown_names import means_unknown
from metrifair.support.checks import (
    as_names,
    check_integer,
    check_known,
    check_number,
    check_switches,
    is_integer,
    is_number,
)

MAX_GROUPS = 1_000  # by default: a column with more values was mostly picked by mistake
MOST_LEVELS = 10_000  # that can be distinguished
MOST_PAIRED = 30
"""Up to so many groups of an attribute are compared in pairs, more of them each with the rest."""

_FEW_GROUPS = 30  # up to this number, groups may have any size
_FEWEST_RESAMPLES = 20

ThresholdChoice: TypeAlias = float | Literal["auto", "median"] | None
"""Scores at or above it are positive decisions.

"auto": 0.5 for probabilities, none for other scores.
"""
Reference: TypeAlias = "str | Mapping[str, object]"
"""The reference group of impact ratios: "highest", a group, or a group for each attribute."""
Criteria: TypeAlias = Sequence[str | Criterion] | str | Criterion | None


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """Further options of an audit, shared by every function that audits.

    Parameters
    ----------
    contrast : {"pairs", "rest"}, default="pairs"
        Which groups are compared: all pairs, or each group with the rest.
    continuous : "auto", bool or list of str, default="auto"
        Numeric attributes, such as age: the named columns, all (True) or none (False). For a
        numeric attribute, the audit measures the dependence of the scores on it and the worst of up
        to 100 cuts in two; decisions are shown in five bands. "auto" selects numeric columns with
        more than 20 distinct values and warns.
    cuts : dict of lists of float, or list of float, default=None
        Cut points that turn numbers into groups: ``{"age": [25, 60]}`` makes the groups ≤25,
        (25,60] and >60. A list applies to the only attribute.
    confidence : float, default=0.95
        Confidence level of intervals and certified upper bounds.
    loss : {"log_loss", "squared_error", "absolute_error", "huber"}, default=None
        Loss that the criterion ``risk_parity`` compares. It needs rows in memory.
    score_range : tuple of float, default=None
        Smallest and largest possible score; [0, 1] for probabilities. Without a range, only the
        Kolmogorov distance has a certified upper bound.
    resamples : int, default=500
        Number of bootstrap resamples for intervals; 0 computes no intervals.
    permutations : int, default=999
        Maximum number of permutations for p-values; 0 computes no p-values.
    min_group_size : int, default=30
        Minimum group size. Groups with fewer rows are reported separately and excluded from the
        headline.
    max_groups : int, default=None
        Maximum number of groups of an attribute, up to 10,000. By default 1,000, and attributes
        with more than 30 groups need two rows per group on average.
    known_names : str or list of str, default=()
        Names of real groups that say that a group is not known, such as "None" or "Decline to
        state". An audit reports other groups with such a name, but never as the reference group or
        as the headline. Case, spaces and punctuation of names do not count.
    in_memory_rows : int, default=2000000
        Files and tables with up to this many rows are audited in memory, larger ones out of core.

    Examples
    --------
    >>> from metrifair import audit
    >>> options = AuditOptions(resamples=0, permutations=0, min_group_size=2)
    >>> scores = [0.1, 0.4, 0.6, 0.9]
    >>> audit(None, scores, sensitive_features=list("aabb"), options=options).worst().value
    1.0
    """

    contrast: Contrast = "pairs"
    continuous: Continuous = "auto"
    cuts: Cuts = None
    confidence: float = 0.95
    loss: str | None = None
    score_range: tuple[float, float] | None = None
    resamples: int = 500
    permutations: int = 999
    min_group_size: int = FEW
    max_groups: int | None = None
    known_names: Sequence[str] | str = ()
    in_memory_rows: int = 2_000_000


class RequestArguments(TypedDict, total=False):
    """The arguments of an audit that select what is measured, for type checkers."""

    criteria: Criteria
    metrics: Sequence[str] | str | None
    threshold: ThresholdChoice
    pos_label: object
    favorable: Favorable
    favorable_decision: object
    intersectional: bool


class AuditArguments(RequestArguments, total=False):
    """The arguments that all audits of rows share, for type checkers."""

    random_state: Any
    options: AuditOptions | None


@dataclass(frozen=True, kw_only=True)
class Request(AuditOptions):
    """The request of a user: ``checked`` before any data are read, ``completed`` by the data."""

    criteria: Criteria = None
    metrics: Sequence[str] | str | None = None
    threshold: ThresholdChoice = "auto"
    pos_label: object = None
    favorable: Favorable = "high"
    favorable_decision: object = None
    intersectional: bool = False
    standard: StandardName | None = None
    reference: Reference = HIGHEST
    min_group_share: float = MIN_GROUP_SHARE

    @classmethod
    def of(
        cls,
        options: AuditOptions | None,
        *,
        continuous: Continuous | None = None,
        confidence: float | None = None,
        **arguments: Unpack[RequestArguments],
    ) -> Request:
        """The options and the other arguments of a call, checked; None keeps the value of an
        option.
        """
        if options is None:
            options = AuditOptions()
        if not isinstance(options, AuditOptions):
            raise DataError(
                "must be AuditOptions(...)",
                argument="options",
                received=options,
            )
        if continuous is not None:
            options = replace(options, continuous=continuous)
        if confidence is not None:
            options = replace(options, confidence=confidence)
        return cls(**vars(options), **arguments).checked()

    def checked(self) -> Request:
        """The same, or a DataError about values that are invalid for any data."""
        check_confidence(self.confidence)
        check_known("contrast", self.contrast, CONTRASTS)
        check_switches(intersectional=self.intersectional)
        for name, minimum in (
            ("resamples", _FEWEST_RESAMPLES),
            ("permutations", 1),
        ):
            value = getattr(self, name)
            if not is_integer(value, least=0) or 0 < value < minimum:
                raise DataError(
                    f"{name} must be 0 or an integer from {minimum} upwards, got {value!r}"
                )
        if self.threshold not in (None, "auto", "median") and not is_number(self.threshold):
            raise DataError(
                "must be a finite number, 'auto', 'median' or None",
                argument="threshold",
                received=self.threshold,
            )
        check_known("favorable", self.favorable, ("high", "low"))
        if self.favorable_decision is not None and self.favorable == "low":
            raise DataError(
                "names the favorable decision, so high scores are favorable",
                argument="favorable_decision",
                remedy=Remedy("favorable", leave_out=True),
            )
        check_integer("in_memory_rows", self.in_memory_rows, least=0)
        groups_allowed(self.max_groups)
        check_integer("min_group_size", self.min_group_size, least=1)
        return replace(
            self,
            metrics=self.named_metrics(),
            known_names=_checked_names(self.known_names),
        )

    def by_standard(
        self,
        standard: StandardName | None,
        reference: Reference,
        min_group_share: float,
    ) -> Request:
        """The same for the rates of a standard, or a DataError."""
        check_number("min_group_share", min_group_share, low=0, high=1)
        if standard is not None:
            check_known("standard", standard, [name for name in STANDARDS if name])
            if not STANDARDS[standard].named and reference != HIGHEST:
                raise DataError(
                    f"does not go with the standard {standard!r}, which divides by the highest "
                    "rate",
                    argument="reference",
                    received=reference,
                    remedy=Remedy("reference", leave_out=True),
                )
        return replace(
            self,
            standard=standard,
            reference=reference,
            min_group_share=min_group_share,
        )

    def completed(
        self, problem: Problem, low: float, high: float, *, probabilities: bool
    ) -> Request:
        """Add the criteria and the score range, by default those that the data allow; scores
        are from low to high.
        """
        ends = self.score_range
        if self.score_range is None and probabilities:
            ends = (0.0, 1.0)
        if ends is not None:
            ends = range_ends("score_range", ends)
            if low < ends[0] or high > ends[1]:
                bounds = self.score_range or ends
                raise DataError(
                    f"score_range must contain all scores, got {bounds!r} for scores from {low} to "
                    f"{high}"
                )
        criteria = default_criteria(problem) if self.criteria is None else self.named_criteria()
        return replace(self, criteria=criteria, score_range=ends)

    @property
    def numbers(self) -> Continuous:
        """Which attributes are numeric; a maximum number of groups implies groups."""
        if self.max_groups is not None and isinstance(self.continuous, str):
            return False
        return self.continuous

    @property
    def has_numeric_target(self) -> bool:
        """Whether a loss or a criterion with bins says that the outcome is a numeric target;
        once completed.
        """
        if self.loss not in (None, "log_loss"):
            return True
        if self.criteria is None:
            return False
        return any(criterion.bins is not None for criterion in self.named_criteria())

    def named_criteria(self) -> tuple[Criterion, ...]:
        """The criteria that were requested, each once."""
        criteria = () if self.criteria is None else self.criteria
        if not isinstance(criteria, Criterion | Iterable):
            raise DataError(
                "must be a name, or a sequence of names",
                argument="criteria",
                received=criteria,
            )
        several = (criteria,) if isinstance(criteria, str | Criterion) else tuple(criteria)
        _check_not_empty("criteria", several, "criterion", " for all that the data allow")
        return tuple(dict.fromkeys(map(criterion_named, several)))

    def named_metrics(self) -> tuple[str, ...]:
        """The metrics that were requested, each once."""
        names = as_names("metrics", USUAL_METRICS if self.metrics is None else self.metrics)
        _check_not_empty("metrics", names, "metric", " for the default ones")
        for name in names:
            check_known("metrics", name, METRICS)
        return tuple(dict.fromkeys(names))


def _checked_names(known_names: Sequence[str] | str) -> tuple[str, ...]:
    """The names of real groups; a DataError for a name that no audit would take for an unknown
    group.
    """
    names = as_names("known_names", known_names)
    for name in names:
        if not means_unknown(name):
            raise DataError(
                "must be names that say that a group is not known, such as 'Unknown' or 'Decline "
                "to state'",
                argument="known_names",
                received=name,
                remedy="leave it out: any other name is that of a group",
            )
    return names


def _check_not_empty(argument: str, names: Sequence[object], kind: str, default: str) -> None:
    if not names:
        remedy = Remedy(argument, leave_out=True, detail=default)
        raise DataError(
            f"must name at least one {kind}, got none",
            argument=argument,
            remedy=remedy,
        )


@dataclass(frozen=True, kw_only=True)
class Plan(Request):
    """The settings of every comparison: a request, and values that depend on the number of
    comparisons.
    """

    resolution: int = 0  # number of distinct scores in resampling
    witnesses: bool = True  # whether the utilities that show the gaps are drawn
    cdfs: int = 2  # distribution functions of the whole audit
    comparisons: int = 1  # that have enough rows: joint intervals are simultaneous over them

    @property
    def joint_confidence(self) -> float:
        """The confidence of each comparison that makes all intervals simultaneous."""
        return 1 - (1 - self.confidence) / self.comparisons


def default_criteria(problem: Problem) -> tuple[str, ...]:
    """The criteria that the data allow, no comparison twice."""
    parity = "conditional_statistical_parity"
    if problem.strata is None:
        parity = "statistical_parity"
    classes = 0
    if problem.labels is not None:
        classes = len(problem.scheme.classes)
    if classes == 2:
        return parity, "equal_opportunity", "predictive_equality"
    if classes > 2:
        return (parity, "equalized_odds")
    return (parity,)


def range_ends(argument: str, ends: tuple[float, float]) -> tuple[float, float]:
    """Both ends of a range that a user passes as this argument."""
    try:
        low, high = (float(bound) for bound in ends)
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            "must be two numbers, lowest and highest",
            argument=argument,
            received=ends,
        ) from None
    # halves: else the width is too small for bins
    if not (np.isfinite(high - low) and low / 2 < high / 2):
        raise DataError(
            "must be two finite numbers, the lower one first",
            argument=argument,
            received=ends,
        )
    return low, high


def check_groups(
    problem: Problem,
    rows: np.ndarray | None = None,
    max_groups: int | None = None,
) -> None:
    """Raise a DataError unless each attribute has two groups to compare, and not more than allowed.

    ``rows`` is the number of rows behind each row of the problem.
    """
    for attribute, code in zip(problem.scheme.attributes, problem.groups.T, strict=True):
        has_group = code >= 0
        check_attribute(
            attribute,
            int(has_group.sum() if rows is None else rows[has_group].sum()),
            max_groups,
        )


def check_attribute(attribute: Attribute, samples: int, max_groups: int | None = None) -> None:
    """Raise a DataError unless one attribute has two groups to compare, and not more than its
    samples allow.

    An id, a date or a measurement makes a group of each value: there are then very many of them, or
    hardly any has two samples. ``max_groups`` is the limit that the user sets.
    """
    name = attribute.name
    groups = len(attribute.groups)
    if groups < 2:
        raise DataError(
            f"{name} must contain at least two groups, got {groups}; there is no group to compare "
            "with"
        )
    if groups > groups_allowed(max_groups):
        raise too_many_groups(name, f"{groups:,} different values", groups)
    if max_groups is None and groups > _FEW_GROUPS and 2 * groups > samples:
        raise too_many_groups(name, f"{groups:,} different values in {samples:,} samples", groups)


def groups_allowed(limit: int | None) -> int:
    """The maximum number of groups to compare: the user's ``limit``, checked, or a default."""
    if limit is None:
        return MAX_GROUPS
    if not is_integer(limit, least=2) or limit > MOST_LEVELS:
        raise DataError(
            f"must be an integer from 2 to {MOST_LEVELS:,}, or None",
            argument="max_groups",
            received=limit,
        )
    return int(limit)


def too_many_groups(attribute: str, values: str, groups: int) -> DataError:
    """The error for a column with too many groups, with remedies."""
    larger_limit = []
    if groups <= MOST_LEVELS:
        larger_limit = [Remedy("max_groups", groups, " if each value is a group")]
    return DataError(
        f"the groups {attribute!r} have {values}, as an id or a measurement does: too many to "
        "compare",
        remedy=[
            "name another column",
            Remedy("cuts", detail=" to make groups of a number"),
            *larger_limit,
        ],
    )
