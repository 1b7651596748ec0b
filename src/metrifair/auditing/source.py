"""Sources of an audit: rows in memory or out of core; and ``audit_source``, which audits any of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from metrifair.auditing.bins import BinnedScores
from metrifair.auditing.brackets import check_brackets
from metrifair.auditing.columns import (
    ColumnLevels,
    ManyNumbers,
    Roles,
    check_favorable,
    check_some,
    decode_columns,
    levels_for,
    numbers,
    score_precision,
    scores_in,
    used_rows,
)
from metrifair.auditing.decisions import at_or_above, number_or_default, selection_for
from metrifair.auditing.distribution import count_cells
from metrifair.auditing.record import audit_record
from metrifair.auditing.records import AuditRecord
from metrifair.auditing.request import MOST_LEVELS, Request, check_groups, groups_allowed
from metrifair.auditing.sample import AuditSample, problem_for_scores, scores_by_class
from metrifair.errors import DataError
from metrifair.problem.attributes import group_codes
from metrifair.problem.bands import BANDS, in_bands
from metrifair.problem.predictions import read_predictions
from metrifair.problem.problem import Inputs, Problem, check_labels, problem_by_membership
from metrifair.problem.proxies import GroupProbabilities
from metrifair.problem.tables import Table, columns
from metrifair.support.arrays import Floats, Integers
from metrifair.support.provenance import made_now

if TYPE_CHECKING:
    import polars as pl

MOST_CELLS = 2**18


class AuditSource(Protocol):
    """Rows that can be audited: in memory, in a file, in a table or in a state."""

    def counts(self, request: Request) -> AuditSample:
        """The units of the rows and counts of their scores, with the counter that can refine their bins."""


class AuditedRows(NamedTuple):
    """The rows, or their counts, and the request."""

    sample: AuditSample
    request: Request
    origin: object = None  # the call they were passed to: audits of one call share their rows
    ordered: bool = True  # whether rows are in memory, in the order in which they were passed
    source: AuditSource | None = None  # of the rows, for evidence


class AuditWithRows(Protocol):
    """An audit, and its rows if they are still available."""

    @property
    def record(self) -> AuditRecord:
        """The findings."""

    @property
    def rows(self) -> AuditedRows | None:
        """The rows."""


def audit_source(
    source: AuditSource,
    request: Request,
    generator: np.random.Generator,
    /,
    *,
    origin: object = None,
    ordered: bool = True,
    **provenance: Any,
) -> tuple[AuditRecord, AuditedRows]:
    """The audit of the rows of any source, with the facts of its provenance."""
    sample = source.counts(request)
    request = request.completed(sample.problem, *sample.ends, probabilities=sample.probabilities)
    record = audit_record(sample, request, generator, selection_for(sample, request))
    record = replace(record, provenance=replace(record.provenance, **provenance, **made_now()))
    return record, AuditedRows(sample, request, origin, ordered and sample.binned is None, source)


@dataclass(frozen=True, eq=False)
class MemorySource:
    """Rows in memory, as a user passes them."""

    y_pred: Table
    sensitive_features: Table | GroupProbabilities
    y_true: Table | None = None
    control_features: Table | None = None
    sample_weight: Table | None = None
    precision: np.dtype[Any] | None = None  # of the column that the scores were read from; None: that of y_pred
    left_out: Mapping[str, int] = field(default_factory=dict)  # excluded rows, by reason

    def counts(self, request: Request) -> AuditSample:
        """Each row is a unit, and its score is not binned."""
        rows = {"y_pred": self.y_pred, "y_true": self.y_true}
        inputs = Inputs(
            self.y_true, self.sensitive_features, self.control_features, self.sample_weight, rows, label="y_true"
        )
        problem, crossed = _problems(inputs, request)
        scored = problem_for_scores(problem, request.favorable)
        prediction, classes, precision = read_predictions(self.y_pred, scored, pos_label=request.pos_label)
        weight, order, exponent = problem.weight, None, 0
        if weight is not None:
            # Multiplying by a power of two changes no ratio of weights, and keeps sums from overflowing.
            exponent = 0 if self.sample_weight is None else int(np.frexp(weight.max())[1])
            weight = np.ldexp(weight, -exponent)
        if weight is not None and problem.members is None:
            # Sums of weights are rounded, and resamples are drawn by place: neither may depend on the rows' order.
            # Where groups have probabilities, there are several times as many entries, too many to sort.
            scores = [prediction] if prediction.ndim == 1 else list(prediction.T)
            others = [codes for codes in (problem.labels, problem.strata) if codes is not None]
            order = np.lexsort([*others, *problem.groups.T, *scores, weight])
            weight, prediction = weight[order], prediction[order]
            problem = replace(problem.take(order), weight=weight)
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
            rows=None if problem.members is None else problem.members.share,
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

    ``scores`` names one column for each model. Rows without a score of every model are excluded from all audits.
    """

    name: str
    roles: Roles
    table: pl.DataFrame
    scores: Sequence[str]
    is_text: bool = False

    def counts(self, request: Request) -> AuditSample:
        """The sample of the usable rows."""
        return self.in_memory().counts(request)

    def in_memory(self) -> MemorySource:
        """The usable rows, as arrays."""
        roles, table = self.roles, self.table
        if len(self.scores) > 1:
            missing = [np.isnan(scores_in(roles, table[score])) for score in self.scores]
            table = table.filter(~np.any(missing, axis=0))
        # An attribute with too many groups is an error here: naming a million of them takes a minute.
        levels = levels_for(roles, max_values=len(table), max_groups=MOST_LEVELS)
        rows = None
        while rows is None:
            try:
                rows = used_rows(roles, levels, table)
            except ManyNumbers as many:  # each number is a level, looked up by value and not by name
                values = np.unique(numbers("group", many.level.name, table[many.level.name]))
                values = values[~np.isnan(values)]
                many.level.cut_at(values[:-1], float(values[-1]))
        check_some(self.name, roles, len(rows.scores))
        check_favorable(roles, rows.scores.max(), table[roles.score])
        arguments = decode_columns(roles, levels, rows.codes, is_text=self.is_text)
        if rows.proxy is not None:
            arguments["sensitive_features"] = rows.proxy
        return MemorySource(
            rows.scores,
            **arguments,
            sample_weight=rows.weight,
            precision=score_precision([table[roles.score].dtype]),
            left_out=rows.left_out + Counter({"missing_other_score": len(self.table) - len(table)}),
        )


class CellTable(NamedTuple):
    """The result of the first pass: the cells, their counts, and the range of the scores."""

    columns: dict[str, Any]  # groups, strata and labels of each cell, as arguments of an audit
    rows: Integers  # in each cell
    weight: Floats  # of each cell
    selected: Floats  # weight at or above the threshold
    ends: tuple[float, float]
    left_out: Mapping[str, int]  # rows, by reason
    levels: Mapping[str, int] = {}  # number of levels of numeric columns that were cut


class BinnedSource(ABC):
    """Rows out of core, which a file, a table or a state counts by cell and bin."""

    @property
    @abstractmethod
    def weighted(self) -> bool:
        """True if rows have weights."""

    @abstractmethod
    def survey(self, threshold: float) -> CellTable:
        """Read all rows once; scores at or above the threshold are selected."""

    @abstractmethod
    def count(self) -> BinnedScores:
        """Read all rows again, and count them in bins."""

    def counts(self, request: Request) -> AuditSample:
        """Each cell (group, stratum and label) is a unit, and its scores are counted in bins."""
        check_brackets("metrics", request.named_metrics())
        cells = self.survey(number_or_default(request.threshold))
        columns = cells.columns
        inputs = Inputs(columns["y_true"], columns["sensitive_features"], columns["control_features"], label="y_true")
        problem, crossed = _problems(inputs, request, cells)
        binned = replace(self.count(), precision=request.precision)
        return AuditSample(
            problem,
            cells.ends,
            {None: count_cells(binned.bins.high, binned.bins.counts)},
            cells.selected,
            binned,
            rows=cells.rows,
            weight=cells.weight if self.weighted else None,
            weighted=self.weighted,
            left_out=cells.left_out,
            levels=cells.levels,
            crossed=crossed,
            favorable=request.favorable,
        )


class ColumnCells(BinnedSource):
    """The rows of a file or table that can be used, by cell."""

    roles: Roles
    levels: list[ColumnLevels]
    cells: list[tuple[int, ...]]  # codes of the key columns

    @property
    def weighted(self) -> bool:
        """True if rows have weights."""
        return self.roles.weight is not None

    def survey(self, threshold: float) -> CellTable:
        """Read all rows once: the cells, their counts, and the range of the scores.

        A numeric column with very many values raises ManyNumbers, and is then cut into levels.
        """
        while True:
            try:
                return self.survey_once(threshold)
            except ManyNumbers as many:
                self.cut_number(many.level)

    @abstractmethod
    def survey_once(self, threshold: float) -> CellTable:
        """The survey, or ManyNumbers."""

    @abstractmethod
    def cut_number(self, level: ColumnLevels) -> None:
        """Read a numeric column of all rows, and cut it into levels."""

    def cell_table(
        self,
        name: str,
        sums: Sequence[Floats],
        ends: tuple[float, float],
        left_out: Mapping[str, int],
        *,
        is_text: bool = False,
    ) -> CellTable:
        """The cells of the file or table of this name, with sums of rows, weight and selected weight."""
        roles, levels = self.roles, self.levels
        check_some(name, roles, len(self.cells))
        check_favorable(roles, float(sums[2].sum()))
        if not isfinite(ends[1] - ends[0]):
            raise DataError(
                f"the column {roles.score!r} spans more than floating-point numbers can; scale the scores down"
            )
        columns = decode_columns(roles, levels, list(np.array(self.cells).T), is_text=is_text)
        cut = {
            level.name: len(level.values) for level in levels if level.cuts is not None and level.name not in roles.cuts
        }
        return CellTable(columns, sums[0].astype(np.int64), sums[1], sums[2], ends, left_out, cut)

    def check_few(self, cells: int) -> None:
        """Raise a DataError for columns of very many combinations."""
        if cells > MOST_CELLS:
            names = ", ".join(map(repr, self.roles.keys))
            raise DataError(
                f"the columns {names} have more than {MOST_CELLS:,} combinations of values, too many to count in a "
                "file or table larger than memory; audit fewer of these columns at a time, or make their values coarser"
            )


def _problems(inputs: Inputs, request: Request, cells: CellTable | None = None) -> tuple[Problem, Problem | None]:
    """The problem of rows, or of cells with their counts; and the same by attributes and their intersection."""
    rows = None if cells is None else cells.rows
    problem = problem_by_membership(
        inputs,
        intersectional=request.intersectional,
        continuous=request.numbers,
        row_count=None if rows is None else int(rows.sum()),
        pos_label=None if inputs.y is None else request.pos_label,
        compared=False,
    )
    if problem.members is not None:
        check_labels(problem.members.rows, () if request.criteria is None else request.named_criteria())
        if request.contrast == "independence":
            raise DataError(
                "'independence' is not computed from probabilities of groups",
                argument="contrast",
                remedy="compare groups in pairs, or each with the rest",
            )
    if problem.numbers is not None:
        # Numeric attributes become bands of about equal weight, for decisions by group. The numbers stay.
        weight = None if cells is None else cells.weight
        bands = in_bands(problem, BANDS, weight=weight, rows=rows, least=request.min_group_size)
        problem = replace(bands, numbers=problem.numbers)
    if request.favorable == "low" and request.pos_label is None and len(problem.scheme.classes) == 2:
        problem = replace(problem, scheme=replace(problem.scheme, positive=0))
    check_groups(problem, rows, request.max_groups if rows is None else groups_allowed(request.max_groups))
    return problem, _crossed_problem(problem, inputs.sensitive_features, request)


def _crossed_problem(problem: Problem, sensitive_features: Any, request: Request) -> Problem | None:
    """The same rows by each attribute and by the intersection of those that are not numeric; None of one attribute."""
    if problem.members is not None:
        return None
    features = columns("sensitive_features", sensitive_features)
    if len(features) < 2:
        return None
    attributes, groups = list(problem.scheme.attributes), [problem.groups]
    categorical = {
        name: features[name]
        for name in features
        if not any(attribute.cuts for attribute in attributes if attribute.name == name)
    }
    separate = group_codes(categorical, intersectional=not request.intersectional)
    if request.intersectional:
        attributes, groups = [*separate.attributes, *attributes], [problem.kept_rows(separate.codes), *groups]
    elif len(categorical) > 1:
        attributes, groups = [*attributes, *separate.attributes], [*groups, problem.kept_rows(separate.codes)]
    scheme = replace(problem.scheme, attributes=tuple(attributes), intersectional=False)
    return replace(problem, scheme=scheme, groups=np.concatenate(groups, axis=1), numbers=None)
