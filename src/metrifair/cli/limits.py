"""Limits that an audit may not break: ``--fail-above`` and its kin. They judge values, or what is certain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from metrifair.checks import check_known
from metrifair.cli.options import METRIC_NAMES
from metrifair.errors import DataError

if TYPE_CHECKING:
    from metrifair.results import AuditRecord

GAPS = ("selection_difference", "true_positive_difference", "false_positive_difference", "accuracy_difference")
RATIOS = ("selection_ratio",)
_ROUNDING = 1e-12  # as floats, 0.4 - 0.3 is a little above 0.1
_KEPT = "metrifair.limits"


class Limit(NamedTuple):
    """The largest value of a metric that passes, or the smallest; ``certain``: bounds are judged, not values."""

    metric: str
    value: float
    above: bool = True
    certain: bool = False

    @property
    def option(self) -> str:
        """How it is typed."""
        return f"--fail-{'certain-' if self.certain else ''}{'above' if self.above else 'below'}"


class Limited(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """METRIC=VALUE, of a metric or of a gap between decisions; or of a ratio, which is not to be below it."""

    name = "metric=value"

    def __init__(self, kind: Limit) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Limit:
        """The limit, or a usage error."""
        if isinstance(value, Limit):
            return value
        metric, sign, number = str(value).partition("=")
        try:
            limit = float(number)
        except ValueError:
            limit = math.nan
        if not sign or not metric or not (0 <= limit < math.inf):
            such = f"{self.kind.metric}={self.kind.value:g}"
            self.fail(f"{value!r} is not METRIC=VALUE with a number from 0 upwards, such as {such}", param, ctx)
        above = METRIC_NAMES if self.kind.certain else (*METRIC_NAMES, *GAPS)
        check_known(self.kind.option, metric.strip(), above if self.kind.above else RATIOS)
        return self.kind._replace(metric=metric.strip(), value=limit)


def _keep(ctx: click.Context, param: click.Parameter, value: Sequence[Limit]) -> None:  # noqa: ARG001
    ctx.meta.setdefault(_KEPT, []).extend(value)


limit_options = [
    click.option(
        kind.option,
        multiple=True,
        type=Limited(kind),
        expose_value=False,
        callback=_keep,
        help=f"Exit with code 1 where {what}, such as {kind.metric}={kind.value:g}. Repeatable.",
    )
    for kind, what in (
        (Limit("kolmogorov", 0.1), "a distance is larger"),
        (Limit("kolmogorov", 0.1, certain=True), "the lower bound of a distance, all at once, is larger"),
        (Limit("selection_ratio", 0.8, above=False), "a ratio is smaller"),
        (Limit("selection_ratio", 0.8, above=False, certain=True), "the upper bound of a ratio is smaller"),
    )
]
"""What makes an audit fail; ``limits_of`` has all of them."""


def limits_of(ctx: click.Context) -> list[Limit]:
    """The limits that were typed."""
    found: list[Limit] = ctx.meta.get(_KEPT, [])
    return found


def broken(record: AuditRecord, limits: Iterable[Limit]) -> list[str]:
    """One line for each limit that is broken, about its worst finding."""
    found = []
    for limit in limits:
        measured = _measured(record, limit)
        undefined = [one for one in record.decisions if one.selection_ratio is None]
        if not measured and not record.findings:
            raise DataError(
                f"{limit.option} {limit.metric}: nothing could be compared, so there is no such figure; each "
                "comparison needs two groups with rows"
            )
        if not measured and limit.metric in RATIOS and undefined:
            from metrifair.report.audit.glossary import ratio_text

            why = f"{undefined[0].attribute}, {undefined[0].within}: {ratio_text(undefined[0])}"
            raise DataError(f"{limit.option} {limit.metric}: the audit has no such figure. Of {why}")
        if not measured and limit.certain:
            raise DataError(
                f"{limit.option} {limit.metric}: there are no bounds of it that hold for all comparisons at once; use "
                f"{limit._replace(certain=False).option}, or rows without weights and groups of more rows"
            )
        if not measured:
            needed = "decisions: use --threshold" if not record.decisions else "labels that --label names"
            raise DataError(f"{limit.option} {limit.metric}: the audit has no such figure, as it needs {needed}")
        value, where = max(measured) if limit.above else min(measured)
        if (value - limit.value if limit.above else limit.value - value) > limit.value * _ROUNDING:
            figure = ("at least " if limit.above else "at most ") if limit.certain else ""
            side = "above" if limit.above else "below"
            found.append(f"{limit.metric} is {figure}{value:.4g}, {side} {limit.value:g}: {where}")
    return found


def _measured(record: AuditRecord, limit: Limit) -> list[tuple[float, str]]:
    """The figures that a limit is about, values or bounds, each with what it is of."""
    found: list[tuple[float | None, str]] = []
    if limit.metric in METRIC_NAMES:
        for one in (one for one in record.findings if one.metric == limit.metric):
            low = None if one.joint_interval is None else one.joint_interval.low
            few = "" if one.enough else "; too few rows to tell"
            where = f"{one.groups[0]} against {one.groups[1]} ({one.attribute}, {one.criterion}, {one.within}{few})"
            found.append((low if limit.certain else one.value, where))
    else:
        for decisions in record.decisions:
            interval = decisions.selection_ratio_interval
            high = None if interval is None else interval.high
            value = high if limit.certain else getattr(decisions, limit.metric)
            found.append((value, f"{decisions.attribute}, {decisions.within}"))
    return [(value, where) for value, where in found if value is not None]
