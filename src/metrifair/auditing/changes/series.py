"""A series of audits: the distances at each look, and a test for change that is valid for any
number of looks.

Look number k (the first one is number 0) is tested at alpha / (k (k + 1)), shared among the tests
known by then: these levels add up to at most alpha over all looks (Bonferroni). Each distance is
compared with its own baseline, the first looks that have it, pooled until both groups reach the
minimum size.

An alarm needs two p-values. That of the distance follows from intervals, and is approximate. That
of the scores of both groups is exact (``ChangeTest``): it bounds the probability of an alarm if no
scores change, and all distances of two groups share it. Without it, distances share the level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple, TypeAlias

from metrifair.auditing.changes.change_test import NO_TEST, ChangeTest
from metrifair.auditing.changes.differences import (
    FigureChange,
    Key,
    change,
    check_clusters,
    check_settings,
    compared_figures,
)
from metrifair.auditing.measure.r2_correction import r2_of_audits
from metrifair.auditing.records import (
    AuditRecord,
    Baseline,
    ComparedFigure,
    Look,
    SeriesRecord,
    Verdict,
    independent_sizes,
)
from metrifair.errors import DataError
from metrifair.figures.intervals import Interval
from metrifair.metrics.registry import METRICS
from metrifair.support.special import normal_quantile

Pool: TypeAlias = Callable[[int, int], AuditRecord]
"""The audit of the rows of all looks from one number to another, both included."""


def series_record(
    audits: Mapping[str, AuditRecord],
    *,
    confidence: float,
    min_group_size: int,
    pool: Pool | None = None,
    change_test: ChangeTest = NO_TEST,
    clusters: str | None = None,
) -> SeriesRecord:
    """All distances at all looks; without ``pool``, a baseline is the first look that is large
    enough.

    ``clusters`` is the name of the clusters that all audits must have. One cluster may have rows at
    several looks: differences are tested for any correlation.
    """
    check_clusters(audits, clusters)
    clustered = all(record.clusters is not None for record in audits.values())
    names = list(audits)
    records = list(audits.values())
    if any(record.confidence != confidence for record in records):
        raise DataError(
            f"audits must have been made with confidence={confidence}, as their intervals are used"
        )
    series = _figures_by_look(audits)
    known = {key: figures for key, figures in series.items() if not _has_unknown_name(figures)}
    distances = _units(known, len(names), lambda key: key)
    tests = _units(
        known,
        len(names),
        lambda key: key[:-1] if key[:-1] in change_test.compared else key,
    )
    series_tests = _SeriesTests(
        confidence,
        distances,
        tests,
        frozenset(known),
        clustered=clustered,
        # one test for all distances of a comparison
        unchanged=cache(change_test.p_value),
    )
    pooled = None
    if pool is not None:
        pooled = cache(lambda first, last: _distances(pool(first, last)))
    looks: list[Look] = []
    baselines: list[Baseline] = []
    for key, figures in series.items():
        baseline = _pooled(key, figures, min_group_size, pooled)
        tested = _tested(baseline, figures, min_group_size)
        at = {}
        if baseline.enough:
            at = {baseline.last: baseline.figure}
        at |= {number: figures[number] for number in tested}
        for number, figure in at.items():
            look = series_tests.look(key, baseline, number, figure)
            looks.append(replace(look, look=names[number], baseline=len(baselines)))
        record = _baseline_record(baseline, names, tested)
        baselines.append(replace(record, unknown_name=key not in known))
    order = {name: number for number, name in enumerate(names)}
    return SeriesRecord(
        tuple(names),
        [record.rows for record in records],
        confidence,
        min_group_size,
        sorted(looks, key=lambda look: order[look.look]),
        baselines,
        r2=r2_of_audits(records),
        clustered=clustered,
    )


def _has_unknown_name(figures: Mapping[int, ComparedFigure]) -> bool:
    """Whether a distance is about a group whose name says that it is not known: it is shown,
    and not tested.
    """
    return any(figure.unknown_name for figure in figures.values())


def _figures_by_look(
    audits: Mapping[str, AuditRecord],
) -> dict[Key, dict[int, ComparedFigure]]:
    """The distances of all looks that have them, by the number of the look."""
    (first, baseline), *later = audits.items()
    by_look = [_distances(record) for record in audits.values()]
    for (name, record), distances in zip(later, by_look[1:], strict=True):
        check_settings({first: baseline, name: record}, distances)
    series: dict[Key, dict[int, ComparedFigure]] = {}
    for number, distances in enumerate(by_look):
        for key, figure in distances.items():
            series.setdefault(key, {})[number] = figure
    if all(len(figures) < 2 for figures in series.values()):
        raise DataError(
            "the looks have no distance in common",
            remedy="audit the same groups, criteria and metrics in all",
        )
    return series


def _units(
    series: Mapping[Key, Mapping[int, ComparedFigure]],
    looks: int,
    unit: Callable[[Key], object],
) -> list[int]:
    """The number of units with a distance up to each look; ``unit`` maps a distance to its unit."""
    first_looks: dict[object, int] = {}
    for key, figures in series.items():
        first_looks[unit(key)] = min(first_looks.get(unit(key), looks), *figures)
    return [sum(first <= number for first in first_looks.values()) for number in range(looks)]


def _distances(record: AuditRecord) -> dict[Key, ComparedFigure]:
    return {
        key: figure for key, figure in compared_figures(record).items() if figure.metric in METRICS
    }


class _Pooled(NamedTuple):
    """The looks of a baseline, from the first to the last, and the distance in the rows of all
    of them.
    """

    first: int
    last: int
    # of a baseline that is too small: with the sizes so far, and the value of the first look
    figure: ComparedFigure
    enough: bool


def _pooled(
    key: Key,
    figures: Mapping[int, ComparedFigure],
    min_group_size: int,
    pool: Callable[[int, int], Mapping[Key, ComparedFigure]] | None,
) -> _Pooled:
    """The first looks at a distance, until both groups have enough rows; ``figures`` are by the
    number of the look.
    """
    large = [
        number
        for number, figure in figures.items()
        if min(independent_sizes(figure)) >= min_group_size
    ]
    first = min(figures) if pool is not None or not large else large[0]
    last = first
    sizes = (0, 0)
    if pool is None:
        return _Pooled(first, first, figures[first], bool(large))
    for last, figure in figures.items():
        left, right = _aligned_sizes(figure, figures[first])
        sizes = sizes[0] + left, sizes[1] + right
        if min(sizes) >= min_group_size:
            return _Pooled(
                first,
                last,
                figures[first] if last == first else pool(first, last)[key],
                True,
            )
    return _Pooled(first, last, figures[first]._replace(sizes=sizes), False)


def _aligned_sizes(figure: ComparedFigure, other: ComparedFigure) -> tuple[int, int]:
    """The sizes of a figure's groups in the order in which another one has them: 2 and 10, or
    "10" and "2".
    """
    left, right = figure.sizes
    if figure.group_values == other.group_values[::-1] != other.group_values:
        return (right, left)
    return (left, right)


def _baseline_record(baseline: _Pooled, names: list[str], tested: list[int]) -> Baseline:
    later = range(baseline.last + 1, len(names)) if baseline.enough else ()
    return Baseline(
        *baseline.figure.names,
        names[baseline.first : baseline.last + 1],
        baseline.figure.sizes,
        baseline.enough,
        untested=[names[number] for number in later if number not in tested],
        group_values=baseline.figure.group_values,
        conditions=baseline.figure.conditions,
    )


def _tested(
    baseline: _Pooled, figures: Mapping[int, ComparedFigure], min_group_size: int
) -> list[int]:
    """The numbers of the looks after a baseline that have enough rows."""
    if not baseline.enough:
        return []
    return [
        number
        for number, figure in figures.items()
        if number > baseline.last and min(independent_sizes(figure)) >= min_group_size
    ]


class _SeriesTests(NamedTuple):
    """The tests of a series: every look at every distance has a share of the level."""

    confidence: float
    distances: Sequence[int]  # at each look
    tests: Sequence[int]  # at each look
    known: frozenset[Key]  # distances between groups whose names are known
    clustered: bool
    unchanged: Callable[..., float | None]

    def look(self, key: Key, baseline: _Pooled, number: int, figure: ComparedFigure) -> Look:
        """A distance at a look; after the baseline, with the test of a difference from it."""
        look = _look(baseline.figure, number, figure, self.distances[number], self.confidence)
        if number <= baseline.last or key not in self.known:
            return look
        level = (1 - self.confidence) / (number * (number + 1)) / self.tests[number]
        correlation = None if self.clustered else 0.0
        difference = change(baseline.figure, figure, correlation, self.confidence, level)
        p_value = self.unchanged(key[:-1], baseline.first, baseline.last, number)
        return _with_test(look, difference, level, p_value)


def _look(
    before: ComparedFigure,
    number: int,
    now: ComparedFigure,
    distances: int,
    confidence: float,
) -> Look:
    """A distance at the look with this number; so many ``distances`` share its level."""
    interval = now.interval
    if interval is not None:
        # The first look has an interval, but no test.
        share = (1 - confidence) / ((number + 1) * (number + 2)) / distances
        wider = float(-normal_quantile(share / 2) / normal_quantile((1 + confidence) / 2))
        low, high = (now.value + wider * (end - now.value) for end in (interval.low, interval.high))
        interval = Interval(max(0.0, low), high)
    # The worst cut of a number may differ between looks.
    figure = before
    if {*now.group_values} == {None}:
        figure = now
    return Look(
        "",
        *before._replace(groups=figure.groups).names,
        _aligned_sizes(now, before),
        now.value,
        interval,
        now.value - before.value,
        group_values=figure.group_values,
        conditions=before.conditions,
    )


def _with_test(look: Look, difference: FigureChange, level: float, unchanged: float | None) -> Look:
    """Add the test of a difference and, if there is one, the exact test of unchanged scores: an
    alarm needs both.
    """
    look = replace(look, p_value=difference.p_value, level=level, alarm=difference.verdict)
    if unchanged is None or difference.p_value is None:
        return look
    alarm: Verdict = difference.verdict if unchanged <= level else "not_distinguishable"
    return replace(
        look,
        p_value=max(difference.p_value, unchanged),
        alarm=alarm,
        exact=True,
    )
