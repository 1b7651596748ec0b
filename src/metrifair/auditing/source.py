"""Where the scores of an audit come from, rows in memory or rows out of core; and the one audit of any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from metrifair.auditing.decisions import at_or_above, number_or_default, selection_of
from metrifair.auditing.distribution import counted_cells
from metrifair.auditing.out_of_core.brackets import check_brackets
from metrifair.auditing.out_of_core.columns import (
    ManyNumbers,
    Roles,
    check_favorable,
    decoded,
    levels_for,
    numbers,
    precision_of,
    scores_in,
    used_rows,
)
from metrifair.auditing.out_of_core.rows import BinnedRows, Tally, check_some
from metrifair.auditing.record import audit_record
from metrifair.auditing.records import AuditRecord
from metrifair.auditing.request import MOST_LEVELS, Request, check_groups, groups_allowed
from metrifair.auditing.sample import AuditSample, problem_of_scores, scores_by_class
from metrifair.problem.attributes import group_codes
from metrifair.problem.bands import BANDS, in_bands
from metrifair.problem.predictions import predictions_of
from metrifair.problem.problem import Given, Problem, problem_of
from metrifair.problem.tables import Table, columns
from metrifair.support.provenance import call_text, made_now

if TYPE_CHECKING:
    import polars as pl


class AuditSource(Protocol):
    """Rows that can be audited, wherever they are."""

    def counts(self, request: Request) -> AuditSample:
        """The units of the rows and counts of their scores, with whoever can refine the bins of these."""


class AuditedRows(NamedTuple):
    """The rows, or their counts, and what was asked of them."""

    sample: AuditSample
    request: Request
    origin: object = None  # the call they were passed to: audits of one call share their rows
    ordered: bool = True  # whether rows are in memory, in the order in which they were passed


@dataclass(frozen=True, eq=False)
class AuditResult:
    """The record of an audit, and its rows."""

    record: AuditRecord
    rows: AuditedRows | None = None

    @property
    def ordered_rows(self) -> AuditedRows | None:
        """The rows, where another audit of the same rows can be paired with them."""
        return self.rows if self.rows is not None and self.rows.ordered else None

    def with_provenance(self, function: Callable[..., Any], arguments: Mapping[str, Any], **facts: Any) -> AuditResult:
        """Add the call, the versions, the time and further ``facts`` to the record's provenance."""
        provenance = replace(
            self.record.provenance,
            call=call_text(function, arguments),
            **facts,
            **made_now(),
        )
        return replace(self, record=replace(self.record, provenance=provenance))


def audit_source(
    source: AuditSource, request: Request, generator: np.random.Generator, origin: object = None
) -> AuditResult:
    """The audit of the rows of any source."""
    sample = source.counts(request)
    request = request.completed(sample.problem, *sample.ends, probabilities=sample.probabilities)
    record = audit_record(sample, request, generator, selection_of(sample, request))
    return AuditResult(record, AuditedRows(sample, request, origin, ordered=sample.binned is None))


@dataclass(frozen=True, eq=False)
class MemorySource:
    """Rows in memory, as a user passes them."""

    y_pred: Table
    sensitive_features: Table
    y_true: Table | None = None
    control_features: Table | None = None
    sample_weight: Table | None = None
    precision: np.dtype[Any] | None = None  # of the column that the scores were read from; None: that of y_pred
    left_out: Mapping[str, int] = field(default_factory=dict)  # rows that are not here, by why

    def counts(self, request: Request) -> AuditSample:
        """Each row is a unit, and its score is counted as it is."""
        rows = {"y_pred": self.y_pred, "y_true": self.y_true}
        given = Given(
            self.y_true, self.sensitive_features, self.control_features, self.sample_weight, rows, label="y_true"
        )
        problem, crossed = _interpreted(given, request)
        scored = problem_of_scores(problem, request.favorable)
        prediction, classes, precision = predictions_of(self.y_pred, scored, pos_label=request.pos_label)
        weight, order, exponent = problem.weight, None, 0
        if weight is not None:
            # Sums of weights are rounded, and resamples are drawn by place: neither may depend on how rows were handed
            # over. Multiplying by a power of two changes no ratio of weights, and keeps sums from overflowing.
            scores = [prediction] if prediction.ndim == 1 else list(prediction.T)
            others = [one for one in (problem.labels, problem.strata) if one is not None]
            order = np.lexsort([*others, *problem.groups.T, *scores, weight])
            exponent = int(np.frexp(weight.max())[1])
            weight = np.ldexp(weight, -exponent)[order]
            problem, prediction = replace(problem.take(order), weight=weight), prediction[order]
            crossed = None if crossed is None else replace(crossed.take(order), weight=weight)
        selected = np.zeros(len(prediction))
        if prediction.ndim == 1:
            above = at_or_above(prediction, number_or_default(request.threshold), self.precision or precision)
            selected = above * (1.0 if weight is None else weight)
        return AuditSample(
            problem,
            (float(prediction.min()), float(prediction.max())),
            scores_by_class(prediction, classes, weight),
            selected,
            weight=weight,
            weighted=weight is not None,
            weight_exponent=exponent,
            left_out=self.left_out,
            crossed=crossed,
            favorable=request.favorable,
            classes=classes,
            order=order,
        )


@dataclass(frozen=True, eq=False)
class ColumnSource:
    """All rows of a file or table, whose columns are in memory.

    Of several ``scores``, of as many models, rows that lack one are left out of every audit: all are of the same rows.
    """

    name: str
    roles: Roles
    table: pl.DataFrame
    scores: Sequence[str]
    is_text: bool = False

    def counts(self, request: Request) -> AuditSample:
        """Those of the rows that can be used."""
        roles, table = self.roles, self.table
        if len(self.scores) > 1:
            missing = [np.isnan(scores_in(roles, table[one])) for one in self.scores]
            table = table.filter(~np.any(missing, axis=0))
        # An attribute of more groups than may be told apart is refused here: naming a million of them takes a minute.
        levels = levels_for(roles, most=len(table), max_groups=MOST_LEVELS)
        rows = None
        while rows is None:
            try:
                rows = used_rows(roles, levels, table)
            except ManyNumbers as many:  # each of them a level, found by its place and not by its name
                values = np.unique(numbers("group", many.level.name, table[many.level.name]))
                values = values[~np.isnan(values)]
                many.level.cut_at(values[:-1], float(values[-1]))
        check_some(self.name, roles, len(rows.scores))
        check_favorable(roles, rows.scores.max(), table[roles.score])
        source = MemorySource(
            rows.scores,
            **decoded(roles, levels, rows.codes, is_text=self.is_text),
            sample_weight=rows.weight,
            precision=precision_of([table[roles.score].dtype]),
            left_out=rows.left_out + Counter({"missing_other_score": len(self.table) - len(table)}),
        )
        return source.counts(request)


@dataclass(frozen=True, eq=False)
class BinnedSource:
    """Rows out of core, counted by cell and bin where they are: in a file, a table or a state."""

    rows: BinnedRows

    def counts(self, request: Request) -> AuditSample:
        """Each cell (group, stratum and label) is a unit, and its scores are counted in bins."""
        check_brackets("metrics", request.named_metrics())
        cells = self.rows.survey(number_or_default(request.threshold))
        columns, tally = cells.columns, cells.tally
        given = Given(columns["y_true"], columns["sensitive_features"], columns["control_features"], label="y_true")
        problem, crossed = _interpreted(given, request, tally)
        binned = replace(self.rows.count(), precision=request.precision)
        return AuditSample(
            problem,
            cells.ends,
            {None: counted_cells(binned.bins.high, binned.bins.counts)},
            tally.selected,
            binned,
            rows=tally.rows,
            weight=tally.weight if self.rows.weighted else None,
            weighted=self.rows.weighted,
            left_out=cells.left_out,
            levels=cells.levels,
            crossed=crossed,
            favorable=request.favorable,
        )


def _interpreted(given: Given, request: Request, tally: Tally | None = None) -> tuple[Problem, Problem | None]:
    """The problem of rows, or of cells with what each holds; and the same by attributes and their intersection."""
    rows = None if tally is None else tally.rows
    problem = problem_of(
        given,
        intersectional=request.intersectional,
        continuous=request.numbers,
        counted=None if rows is None else int(rows.sum()),
        pos_label=None if given.y is None else request.pos_label,
        compared=False,
    )
    if problem.numbers is not None:
        # Attributes that are numbers are bands of about equal weight, for decisions by group. The numbers stay.
        weight = None if tally is None else tally.weight
        bands = in_bands(problem, BANDS, weight=weight, rows=rows, least=request.min_group_size)
        problem = replace(bands, numbers=problem.numbers)
    if request.favorable == "low" and request.pos_label is None and len(problem.scheme.classes) == 2:
        problem = replace(problem, scheme=replace(problem.scheme, positive=0))
    check_groups(problem, rows, request.max_groups if rows is None else groups_allowed(request.max_groups))
    return problem, _crossed_problem(problem, given.sensitive_features, request)


def _crossed_problem(problem: Problem, sensitive_features: Any, request: Request) -> Problem | None:
    """The same rows by each attribute and by the intersection of those that are not numeric; None of one attribute."""
    given = columns("sensitive_features", sensitive_features)
    if len(given) < 2:
        return None
    attributes, groups = list(problem.scheme.attributes), [problem.groups]
    named = {name: given[name] for name in given if not any(one.cuts for one in attributes if one.name == name)}
    apart = group_codes(named, intersectional=not request.intersectional)
    if request.intersectional:
        attributes, groups = [*apart.attributes, *attributes], [problem.of_kept(apart.codes), *groups]
    elif len(named) > 1:
        attributes, groups = [*attributes, *apart.attributes], [*groups, problem.of_kept(apart.codes)]
    scheme = replace(problem.scheme, attributes=tuple(attributes), intersectional=False)
    return replace(problem, scheme=scheme, groups=np.concatenate(groups, axis=1), numbers=None)
