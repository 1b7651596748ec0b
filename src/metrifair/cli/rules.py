"""Limits of an audit (``--fail-above`` and similar options), and its tables of rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from metrifair.cli.options import METRIC_NAMES, combine_options, gather_options
from metrifair.errors import DataError, Remedy
from metrifair.support.checks import check_known

if TYPE_CHECKING:
    from metrifair.api.audit_result import Audit
    from metrifair.api.compare import AuditDifference
    from metrifair.auditing.records import AuditRecord, Decisions, Finding
    from metrifair.figures.selection_rates import StandardName


GAPS = (
    "selection_difference",
    "true_positive_difference",
    "false_positive_difference",
    "accuracy_difference",
)
RATIOS = ("selection_ratio",)
_GAP = "gap"  # the word of sentences for the Kolmogorov distance
_AT_MOST_1 = ("kolmogorov", "total_variation", *GAPS, *RATIOS)
_LIMIT_ROUNDING = 1e-12  # as floats, 0.4 - 0.3 is a little above 0.1
_META_KEY = "metrifair.limits"
_SHOWN = 12  # lines for one limit


class Limit(NamedTuple):
    """The largest value of a metric that passes, or the smallest; ``certain``: it limits
    bounds, not values.
    """

    metric: str
    value: float
    above: bool = True
    certain: bool = False
    written: str | None = None  # the user's word for the metric, if it is another

    @property
    def name(self) -> str:
        """The metric in messages: the user's word for it."""
        return self.written or self.metric

    @property
    def option(self) -> str:
        """The option that sets it."""
        side = "above" if self.above else "below"
        return f"--fail-certain-{side}" if self.certain else f"--fail-{side}"


class Limited(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """METRIC=VALUE: the largest value of a metric or of a gap between decisions, or the
    smallest of a ratio.
    """

    name = "metric=value"

    def __init__(self, kind: Limit) -> None:
        self.kind = kind

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Limit:
        """The limit, or a usage error."""
        if isinstance(value, Limit):
            return value
        name, sign, number = str(value).partition("=")
        name = name.strip()
        metric = "kolmogorov" if name == _GAP else name
        try:
            limit = float(number)
        except ValueError:
            limit = math.nan
        if not sign or not name or not (0 <= limit < math.inf):
            example = f"{self.kind.name}={self.kind.value:g}"
            self.fail(
                f"{value!r} is not METRIC=VALUE with a number from 0 upwards, such as {example}",
                param,
                ctx,
            )
        opposite = RATIOS if self.kind.above else (*METRIC_NAMES, *GAPS)
        if metric in opposite:
            turned = self.kind._replace(above=not self.kind.above).option
            self.fail(
                f"{name} is better when it is "
                f"{'larger' if self.kind.above else 'smaller'}: use {turned}",
                param,
                ctx,
            )
        known = RATIOS
        if self.kind.above:
            known = (_GAP, *METRIC_NAMES, *(() if self.kind.certain else GAPS))
        check_known(self.kind.option, name, known)
        if limit > 1 and metric in _AT_MOST_1:
            never = "never" if self.kind.above else "always"
            self.fail(
                f"{value!r} is {never} broken, as this figure is at most 1; {limit:g} percent is "
                f"{limit / 100:g}",
                param,
                ctx,
            )
        return self.kind._replace(metric=metric, value=limit, written=name)


LIMITS = combine_options(
    *(
        click.option(
            kind.option,
            multiple=True,
            type=Limited(kind),
            expose_value=False,
            callback=lambda ctx, _param, value: ctx.meta.setdefault(_META_KEY, []).extend(value),
            help=f"Exit with code 1 if {what}, such as {kind.name}={kind.value:g}. Repeatable.",
        )
        for kind, what in (
            (
                Limit("kolmogorov", 0.1, written=_GAP),
                "the gap, another distance or a difference between rates exceeds this value",
            ),
            (
                Limit("kolmogorov", 0.1, certain=True, written=_GAP),
                "the lower end of a joint confidence interval exceeds this value",
            ),
            (Limit("selection_ratio", 0.8, above=False), "a ratio is below this value"),
            (
                Limit("selection_ratio", 0.8, above=False, certain=True),
                "the upper end of a confidence interval of a ratio is below this value",
            ),
        )
    )
)
"""Conditions under which an audit fails; ``typed_limits`` returns them."""


def typed_limits(ctx: click.Context) -> list[Limit]:
    """The limits of this command."""
    limits: list[Limit] = ctx.meta.get(_META_KEY, [])
    return limits


class LimitCheck(NamedTuple):
    """A limit, and a line for each figure that breaks it; ``model`` names one of several audits.

    A figure by group probabilities breaks a limit if both of its ends do. ``possible`` are those of
    which one end does.
    """

    limit: Limit
    lines: Sequence[str]
    model: str | None = None
    possible: Sequence[str] = ()

    @property
    def content(self) -> dict[str, object]:
        """The limit, and whether it is broken, for JSON."""
        model = {} if self.model is None else {"model": self.model}
        limit = {
            "option": self.limit.option,
            "metric": self.limit.metric,
            "value": self.limit.value,
        }
        return {
            **model,
            **limit,
            "broken": bool(self.lines),
            "possibly_broken": bool(self.possible),
        }


def check_limits(result: Audit | AuditDifference, limits: Iterable[Limit]) -> list[LimitCheck]:
    """The limits of an audit, or of each audit of a comparison."""
    from metrifair.api.audit_result import Audit

    if isinstance(result, Audit):
        return [
            LimitCheck(
                limit,
                broken_figures(result.record, limit),
                possible=possibly_broken(result.record, limit),
            )
            for limit in limits
        ]
    return [
        LimitCheck(check.limit, _of_model(name, check.lines), name, _of_model(name, check.possible))
        for name, audit in result.audits.items()
        for check in check_limits(audit, limits)
    ]


def _of_model(name: str, lines: Iterable[str]) -> list[str]:
    return [f"{name}: {line}" for line in lines]


def broken_figures(record: AuditRecord, limit: Limit) -> list[str]:
    """A line for each figure that breaks the limit, the worst first; of many, the number of
    further ones.
    """
    figures = _limited_figures(record, limit)
    undefined = [decision for decision in record.decisions if decision.selection_ratio is None]
    if not figures and not record.findings:
        raise DataError(
            f"{limit.option} {limit.name}: nothing could be compared, so there is no such "
            "figure; each "
            "comparison needs two groups with rows"
        )
    if not figures and limit.metric in RATIOS and undefined:
        from metrifair.wording.rates import ratio_text

        why = f"{undefined[0].attribute}, {undefined[0].within}: {ratio_text(undefined[0], record.settings)}"
        raise DataError(f"{limit.option} {limit.name}: the audit has no such figure. For {why}")
    if not figures and limit.certain:
        raise DataError(
            f"{limit.option} {limit.name}: it has no bounds that are valid for all comparisons "
            "at once; use "
            f"{limit._replace(certain=False).option}, or rows without weights and groups of more "
            "rows"
        )
    if (
        not figures
        and limit.metric in METRIC_NAMES
        and any(one.metric == limit.metric for one in record.findings)
    ):
        raise DataError(
            f"{limit.option} {limit.name}: every comparison has a group with a name that says it "
            "is not known",
            remedy=Remedy("known_names", detail=" if it is a real group"),
        )
    if not figures:
        needed = (
            "decisions: use --threshold" if not record.decisions else "labels that --label names"
        )
        raise DataError(
            f"{limit.option} {limit.name}: the audit has no such figure, as it needs {needed}"
        )
    return _lines(
        [(figure.mild, figure.where) for figure in figures if _breaks(figure.mild, limit)], limit
    )


def possibly_broken(record: AuditRecord, limit: Limit) -> list[str]:
    """A line for each figure by group probabilities of which only the more severe end breaks
    the limit.
    """
    beyond = [
        (figure.severe, figure.where)
        for figure in _limited_figures(record, limit)
        if _breaks(figure.severe, limit) and not _breaks(figure.mild, limit)
    ]
    return [f"at one of its two ends, {line}" for line in _lines(beyond, limit)]


def _breaks(value: float, limit: Limit) -> bool:
    sign = 1 if limit.above else -1
    return sign * (value - limit.value) > limit.value * _LIMIT_ROUNDING


def _lines(beyond: Sequence[tuple[float, str]], limit: Limit) -> list[str]:
    """A line for each of the worst figures beyond a limit, and the number of the others."""
    from metrifair.wording.numbers import count_text

    side = "above" if limit.above else "below"
    figure = ""
    if limit.certain:
        figure = "at least " if limit.above else "at most "
    lines = [
        f"{limit.name} is {figure}{value:.4g}, {side} {limit.value:g}: {where}"
        for value, where in sorted(beyond, reverse=limit.above)[:_SHOWN]
    ]
    if len(beyond) > _SHOWN:
        more = count_text(len(beyond) - _SHOWN, "more comparison")
        lines.append(f"{limit.name} is {side} {limit.value:g} in {more}")
    return lines


class _Limited(NamedTuple):
    """A limited figure: its end that breaks the limit later, the one that breaks it sooner, and
    where it is.

    Both are equal, unless groups have probabilities and nothing decides between the ends.
    """

    mild: float
    severe: float
    where: str


def _limited_figures(record: AuditRecord, limit: Limit) -> list[_Limited]:
    """The figures of a limit, values or bounds, each with the name of its comparison or table."""
    from metrifair.auditing.ranking import lowest_rate

    figures: list[tuple[float | None, float | None, str]] = []
    if limit.metric in METRIC_NAMES:
        for finding in record.findings:
            if finding.metric != limit.metric or finding.unknown_name:
                continue
            values = _distance_ends(finding, record, certain=limit.certain)
            few = "" if finding.enough else "; too few rows"
            left, right = finding.groups
            where = f"{left} against {right} ({finding.attribute}, {finding.criterion}, {finding.within}{few})"
            figures.append((*values, where))
    else:
        for decisions in record.decisions:
            values = _rate_ends(decisions, record, limit)
            where = f"{decisions.attribute}, {decisions.within}"
            if limit.metric in RATIOS and (lowest := lowest_rate(decisions)) is not None:
                few = "; too few rows" if lowest.few else ""
                where = f"{lowest.group} against {decisions.reference} ({where}{few})"
            figures.append((*values, where))
    return [
        _both_ends(weighted, divided, where, limit)
        for weighted, divided, where in figures
        if weighted is not None
    ]


def _both_ends(weighted: float, divided: float | None, where: str, limit: Limit) -> _Limited:
    ends = weighted, weighted if divided is None else divided
    low, high = min(ends), max(ends)
    return _Limited(low, high, where) if limit.above else _Limited(high, low, where)


def _distance_ends(
    finding: Finding, record: AuditRecord, *, certain: bool
) -> tuple[float | None, float | None]:
    """The distance or its lower joint bound, and the same divided by R2 if it is shown beside."""
    from metrifair.auditing.measure.r2_correction import gap_bracket

    divided = None if gap_bracket(finding, record) is None else finding.divided
    if not certain:
        return finding.value, None if divided is None else divided.value
    bounds = finding.joint_interval, None if divided is None else divided.joint_interval
    low, divided_low = (None if interval is None else interval.low for interval in bounds)
    return low, divided_low


def _rate_ends(
    decisions: Decisions, record: AuditRecord, limit: Limit
) -> tuple[float | None, float | None]:
    """A difference of rates, a ratio, or its upper bound; and the same divided by R2 if it is
    shown beside.
    """
    from metrifair.auditing.measure.r2_correction import ratio_bracket

    divided = None if ratio_bracket(decisions, record) is None else decisions.divided
    if not limit.certain:
        return getattr(decisions, limit.metric), getattr(divided, limit.metric, None)
    bounds = (
        table if table is None else table.selection_ratio_interval for table in (decisions, divided)
    )
    high, divided_high = (None if interval is None else interval.high for interval in bounds)
    return high, divided_high


SEVERAL_RATES = "--rates is the table of one audit; name one --score, got several"


class Rates(NamedTuple):
    """The options of rates and ratios."""

    standard: StandardName | None
    references: tuple[str, ...]
    min_group_share: float
    details: bool


RATES_OPTIONS = gather_options("standard", Rates, Rates._fields)
"""A command gets the options of rates and ratios as ``standard``."""


def with_rates(
    result: Audit | AuditDifference, rates: Rates, columns: Sequence[str]
) -> Audit | AuditDifference:
    """The audit of these columns, or the comparison of several, with the rates of the options."""
    from metrifair.api.audit import only_or_comparison
    from metrifair.api.audit_result import Audit

    reference = reference_argument(rates.references, columns)
    options: dict[str, Any] = {"reference": reference, "min_group_share": rates.min_group_share}
    audits_by_name = {"": result} if isinstance(result, Audit) else result.audits
    audits = {
        name: audit.rates(rates.standard, **options).audit for name, audit in audits_by_name.items()
    }
    return only_or_comparison(audits, several=not isinstance(result, Audit))


def reference_argument(references: Sequence[str], columns: Sequence[str]) -> str | dict[str, str]:
    """The reference group, as an argument of an audit of these columns.

    >>> reference_argument(["sex=male"], ["sex", "race"]), reference_argument(["a=b"], ["sex"])
    ({'sex': 'male'}, 'a=b')
    >>> reference_argument([], ["sex"])
    'highest'
    """
    parts = [reference.partition("=") for reference in references]
    by_column = {
        name: rest for name, sign, rest in parts if sign and name in (*columns, " x ".join(columns))
    }
    if not by_column and len(references) <= 1:
        return references[0] if references else "highest"
    if len(by_column) < len(references):
        raise DataError(
            "--reference must be COLUMN=CATEGORY for each of several columns, got "
            f"{list(references)}"
        )
    return by_column
