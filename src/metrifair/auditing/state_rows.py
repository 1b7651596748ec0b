"""Rows that are counted into a state, from memory, files and tables; and the audit of the counts."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metrifair.auditing.bins import FINE, MOST_ATOMS, StateCounts, StateGrid
from metrifair.auditing.columns import ColumnLevels, Roles, check_favorable, check_some
from metrifair.auditing.connections import DatabaseTable
from metrifair.auditing.counting import FileRows
from metrifair.auditing.decisions import at_or_above, number_or_default
from metrifair.auditing.files import open_files
from metrifair.auditing.formats import AS_USUAL, ReadOptions
from metrifair.auditing.records import AuditRecord
from metrifair.auditing.request import AuditOptions, Request
from metrifair.auditing.source import AuditedRows, ColumnSource, MemorySource, audit_source
from metrifair.auditing.state_file import (
    ProxyShape,
    Shape,
    StateParts,
    StateRows,
    Value,
    check_few,
    check_positive_label,
    check_within,
    merge_counts,
    plain,
)
from metrifair.errors import DataError, Remedy
from metrifair.problem.predictions import read_predictions
from metrifair.problem.problem import Inputs, problem_with_shares
from metrifair.problem.proxies import GroupProbabilities, Memberships, RowProbabilities, row_probabilities
from metrifair.problem.tables import codes, columns, levels
from metrifair.problem.values import band_names
from metrifair.support.arrays import Floats, Integers

if TYPE_CHECKING:
    from metrifair.auditing.tables import TableRows


def add_rows(parts: StateParts, source: MemorySource) -> None:
    """Count rows in memory."""
    y_true, y_pred, sensitive_features = source.y_true, source.y_pred, source.sensitive_features
    control_features, proxy, probabilities = source.control_features, None, None
    if isinstance(sensitive_features, GroupProbabilities):
        probabilities = row_probabilities(sensitive_features)
        proxy = ProxyShape.of(sensitive_features, probabilities.groups)
    rows = {"y_pred": y_pred, "y_true": y_true}
    inputs = Inputs(y_true, sensitive_features, control_features, source.sample_weight, rows, "y_true")
    problem = problem_with_shares(inputs, continuous=False, compared=False)
    score, _, precision = read_predictions(y_pred, problem)
    if score.ndim > 1:
        raise DataError(
            f"y_pred must be one score for each row, got {score.shape[1]} columns; count one class at a time"
        )
    groups = {} if probabilities is not None else columns("sensitive_features", sensitive_features)
    controls = {} if control_features is None else columns("control_features", control_features)
    labels = {} if y_true is None else columns("y_true", y_true)
    shape = Shape(
        groups=tuple(groups) if proxy is None else (proxy.column,),
        controls=tuple(controls),
        label=next(iter(labels), None),
        weighted=problem.weight is not None,
        of_last=len(columns("y_pred", y_pred)) == 2,
        proxy=proxy,
    )
    coded = []
    for name, column in (*groups.items(), *controls.items(), *labels.items()):
        distinct = levels(name, column)
        coded.append(([plain(value) for value in distinct], problem.kept_rows(codes(name, column, distinct))))
    if probabilities is not None and problem.kept is not None:
        probabilities = probabilities.take(problem.kept)
    coded_rows = _CodedRows(coded, score, problem.weight, probabilities, source.precision or precision)
    _add_coded(parts, shape, coded_rows, left_out=sum(source.left_out.values()))


class _CodedRows(NamedTuple):
    """Rows whose groups, controls and labels are levels and codes (-1: missing)."""

    coded: Sequence[tuple[Sequence[Value], Integers]]  # without the group if it has probabilities
    scores: Floats
    weight: Floats | None
    probabilities: RowProbabilities | None
    precision: np.dtype[Any]  # of the scores as they were passed


def _add_coded(parts: StateParts, shape: Shape, rows: _CodedRows, *, left_out: int) -> None:
    """Count rows; ``left_out`` were unusable."""
    check_within(rows.scores, parts.score_range)
    if len(rows.scores):
        add_counts(parts, shape, *_counts_by_cell(parts, rows))
    parts.left_out += left_out


def _counts_by_cell(parts: StateParts, rows: _CodedRows) -> tuple[list[tuple[Value, ...]], Floats, StateCounts]:
    """The cells, their selected amounts, and their counts. With probabilities, a row counts in several cells."""
    coded, scores, weight = rows.coded, rows.scores, rows.weight
    by_probability: dict[str, Any] = {}
    if rows.probabilities is not None:
        members = Memberships.of(rows.probabilities)
        coded = [(rows.probabilities.groups, members.group), *((values, code[members.row]) for values, code in coded)]
        scores, share = scores[members.row], members.share
        amounts = np.nan_to_num(rows.probabilities.values) * (1.0 if weight is None else weight[:, None])
        weight = share if weight is None else share * weight[members.row]
        by_probability = {"share": share, "products": _products(weight, amounts[members.row])}
    cells, cell = _combinations(coded)
    check_few(len(cells))
    threshold = number_or_default(parts.threshold)
    selected = at_or_above(scores, threshold, rows.precision) * (1.0 if weight is None else weight)
    grid = StateGrid.between(*parts.score_range)
    counts = StateCounts.of_rows(grid, scores + 0.0, cell, weight, **by_probability)
    return cells, np.bincount(cell, selected, len(cells)).astype(np.float64), counts


def _combinations(coded: Sequence[tuple[Sequence[Value], Integers]]) -> tuple[list[tuple[Value, ...]], Integers]:
    """The combinations of values that rows have, and the combination of each row.

    >>> _combinations([(["f", "m"], np.array([1, 0, 1, 0])), ([3, 7], np.array([-1, 1, -1, 0]))])
    ([('f', 3), ('f', 7), ('m', None)], array([2, 1, 2, 0]))
    """
    cells, place = list[tuple[Value, ...]]([()]), np.zeros(len(coded[0][1]), np.int64)
    for values, code in coded:
        size = len(values) + 1
        numbers = place * size + code + 1
        distinct = np.unique(numbers)
        place = np.searchsorted(distinct, numbers)
        cells = [(*cells[at // size], None if at % size == 0 else values[at % size - 1]) for at in distinct.tolist()]
    return cells, place


def _products(weight: Floats, amounts: Floats) -> Floats:
    """The weight of each entry times those of its row in all groups; a DataError if they overflow."""
    with np.errstate(over="ignore"):
        products = weight[:, None] * amounts
    if not np.isfinite(products).all():
        raise DataError(
            "has squares beyond the range of floating-point numbers",
            argument="sample_weight",
            remedy="divide all weights by a constant",
        )
    return products


def add_counts(
    parts: StateParts, shape: Shape, cells: Sequence[tuple[Value, ...]], selected: Floats, counts: StateCounts
) -> None:
    """Add counts of cells."""
    if len(set(shape.roles.keys)) < len(shape.roles.keys):
        raise DataError(
            "must name different columns",
            argument=("sensitive_features", "control_features", "y_true"),
            received=list(shape.roles.keys),
        )
    parts.shape = shape if parts.shape is None else shape.merged(parts.shape)
    existing = [] if parts.counts is None else [(parts.cells, parts.selected, parts.counts)]
    parts.cells, parts.selected, parts.counts = merge_counts([*existing, (cells, selected, counts)])


def parts_of_rows(rows: AuditedRows, score_digits: int | None = None, *, coarse: bool = False) -> StateParts:
    """The counts of the rows of an audit.

    Without ``score_range``, the range of the scores is rounded outwards to ``score_digits``, or to the leading digit of
    its length if ``coarse``.
    """
    source, request = rows.source, rows.request
    if rows.sample.problem.members is not None:
        raise DataError(
            "the groups of this audit are probabilities: each row counts in several cells, and suppressing small cells "
            "would not hide it",
            remedy="write the report with to_html or to_json",
        )
    if isinstance(source, StateRows):
        return source.parts
    if isinstance(source, ColumnSource):
        source = source.in_memory()
    if not isinstance(source, MemorySource):
        raise DataError(
            "the rows of this audit are not in memory",
            remedy="count them with AuditState or metrifair count, or use metrifair evidence, which counts files",
        )
    if request.threshold is None or request.threshold == "median":
        raise DataError(
            "does not apply to counts",
            argument="threshold",
            received=request.threshold,
            remedy=Remedy("threshold", detail=", a number; a standard such as 'll144' uses the median itself"),
        )
    low, high = request.score_range or rows.sample.ends
    if request.score_range is None:
        low, high = _rounded_outwards(low, high, _leading_digit(high - low) if coarse else score_digits)
    parts = StateParts(None, (low, high if low < high else low + 1.0), request.threshold)
    add_rows(parts, source)
    return parts


def _leading_digit(length: float) -> int | None:
    """The place of the first digit of a number after the decimal point; None for 0.

    >>> _leading_digit(0.034), _leading_digit(342.0)
    (2, -2)
    """
    return -math.floor(math.log10(length)) if length > 0 else None


def _rounded_outwards(low: float, high: float, digits: int | None) -> tuple[float, float]:
    """Round both ends outwards to ``digits``, because the smallest and the largest score belong to single rows.

    >>> _rounded_outwards(411.386, 753.301, 1), _rounded_outwards(0.5, 2.0, 0)
    ((411.3, 753.4), (0.0, 2.0))
    """
    if digits is None:
        return low, high
    unit, start, end = 10.0**-digits, round(low, digits), round(high, digits)
    return (
        start if start <= low else round(start - unit, digits),
        end if end >= high else round(end + unit, digits),
    )


def audit_counts(parts: StateParts, request: Request, seed: int, **facts: Any) -> tuple[AuditRecord, AuditedRows]:
    """The audit of all rows that were counted, with facts of its provenance."""
    shape, counts = parts.shape, parts.counts
    if shape is None or counts is None or not parts.cells:
        raise DataError("this state contains no rows; add some, or merge it with others")
    check_positive_label(parts, request)
    label = [] if shape.label is None else [shape.label]
    facts = {"columns": {"group": list(shape.groups), "control": list(shape.controls), "label": label}, **facts}
    request = replace(request, score_range=parts.score_range)
    return audit_source(StateRows(parts, shape, counts), request, np.random.default_rng(seed), seed=seed, **facts)


def count_file(state: StateParts, path: str | os.PathLike[str], roles: Roles, options: ReadOptions = AS_USUAL) -> None:
    """Add the rows of a file of any size to a state, in one pass. Rows with missing values are only counted."""
    with open_files(path, options) as source:
        source.check(roles.by_role)
        shape = Shape.of(roles, is_text=source.is_text)
        rows, before, precision = FileRows(source, roles), state.rows, source.precision(roles.score)
        for used in rows.batches():
            row_codes = [code.astype(np.int64) - 1 for code in used.codes]
            coded = list(zip(map(_values, rows.levels), row_codes, strict=True))
            probabilities = None if used.proxy is None else row_probabilities(used.proxy)
            coded_rows = _CodedRows(coded, used.scores, used.weight, probabilities, precision)
            _add_coded(state, shape, coded_rows, left_out=used.left_out.total())
        check_some(source.name, roles, state.rows - before)


def count_table(state: StateParts, source: DatabaseTable, roles: Roles, *, missing: str | Sequence[str] = ()) -> None:
    """Add the rows of a table to a state, as those of a file. The database counts them."""
    from metrifair.auditing.tables import TableRows  # noqa: PLC0415 (files need no narwhals)

    rows = TableRows.of(source, roles, missing=missing)
    if roles.proxy is not None:
        _count_in_memory(state, source.name, rows)
        return
    cells = rows.survey(number_or_default(state.threshold))
    check_within(np.array(cells.ends), state.score_range)
    grid = StateGrid.between(*state.score_range)
    for level in rows.levels:
        if level.cuts is not None and level.name not in roles.cuts:
            raise DataError(
                f"the column {level.name!r} has more values than a state can store",
                remedy=Remedy("cuts", {level.name: ...}, ", the ends of the bands in which it is counted"),
            )
    values = [[None, *_values(level)] for level in rows.levels]
    keys = [tuple(column[code] for column, code in zip(values, codes, strict=True)) for codes in rows.cells]
    add_counts(state, Shape.of(roles), keys, cells.selected, _counts(rows, grid))
    state.left_out += sum(cells.left_out.values())


def _count_in_memory(state: StateParts, name: str, rows: TableRows) -> None:
    """Add the rows of a table with group probabilities."""
    if rows.rows > (max_rows := AuditOptions().in_memory_rows):
        raise DataError(
            f"{name} has more than {max_rows:,} rows, and group probabilities of a table are counted in memory",
            remedy="count the table in parts, and merge the counts",
        )
    roles, table = rows.roles, rows.all_rows()
    check_favorable(roles, float((table[roles.score] == 1).sum()))  # the engine made 0 and 1 of decisions
    roles = roles._replace(favorable_decision=None)
    add_rows(state, ColumnSource(name, roles, table, [roles.score]).in_memory())


def _values(level: ColumnLevels) -> list[Value]:
    return [plain(value) for value in (level.values if level.cuts is None else band_names(level.cuts))]


def _counts(rows: TableRows, grid: StateGrid) -> StateCounts:
    """Entries by distinct score, or by bin of the state's grid if there are many scores."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415 (as above)

    frame, sums = rows.counting, {"rows": nw.len()}
    scaled = (nw.col("score") * grid.scale.inverse - grid.scale.low * grid.scale.inverse) * float(2.0**grid.power)
    few = len(rows.run(frame.select("score").unique().head(MOST_ATOMS + 1))) <= MOST_ATOMS
    if rows.weighted:
        sums["total"] = nw.col("weight").sum()
    if few:
        entries, cell = rows.sums_by_cell(frame, ["score"], sums)
        low = high = entries["score"].to_numpy() + 0.0
        number, within = grid.places(low)
        within = within * entries["rows"].to_numpy()
    else:
        fine = ((scaled - scaled.floor()) * float(2**FINE) + 0.5).floor()
        frame = frame.with_columns(number=scaled.floor().cast(nw.Int64), fine=fine.cast(nw.Int64))
        sums |= {"low": nw.col("score").min(), "high": nw.col("score").max(), "within": nw.col("fine").sum()}
        if rows.weighted:
            frame = frame.with_columns(moment=scaled * nw.col("weight"))
            sums["moment"] = nw.col("moment").sum()
        entries, cell = rows.sums_by_cell(frame, ["number"], sums)
        low, high = (entries[name].to_numpy() + 0.0 for name in ("low", "high"))
        number, within = (entries[name].to_numpy().astype(np.int64) for name in ("number", "within"))
    weight = moment = np.zeros(0)
    if rows.weighted:
        weight = entries["total"].to_numpy().astype(np.float64)
        moment = weight * grid.scale.positions(low) if few else np.ldexp(entries["moment"].to_numpy(), -grid.power)
    row_counts: Integers = entries["rows"].to_numpy().astype(np.int64)
    return StateCounts(cell, number, low, high, row_counts, within.astype(np.int64), weight, moment, few).grouped()
