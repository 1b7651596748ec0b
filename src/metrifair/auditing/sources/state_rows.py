"""Rows that are counted into a state, from memory, files and tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metrifair.auditing.measure.selection import at_or_above, number_or_default
from metrifair.auditing.request import MOST_LEVELS, AuditOptions
from metrifair.auditing.sources.column_levels import ColumnLevels, levels_for
from metrifair.auditing.sources.column_roles import Roles
from metrifair.auditing.sources.column_values import check_favorable
from metrifair.auditing.sources.connections import DatabaseTable
from metrifair.auditing.sources.file_formats import AS_USUAL, ReadOptions
from metrifair.auditing.sources.file_tables import open_files
from metrifair.auditing.sources.memory import ColumnSource, MemorySource
from metrifair.auditing.sources.state_counts import (
    FINE,
    MOST_ATOMS,
    StateCounts,
    StateGrid,
)
from metrifair.auditing.sources.state_parts import (
    ProxyShape,
    Shape,
    StateParts,
    StateValue,
    check_few,
    check_within,
    merge_counts,
    state_value,
)
from metrifair.auditing.sources.used_rows import check_some, used_rows
from metrifair.errors import DataError, Remedy
from metrifair.problem.memberships import (
    GroupProbabilities,
    Memberships,
    RowProbabilities,
    row_probabilities,
)
from metrifair.problem.predictions import read_predictions
from metrifair.problem.problem import Inputs, Problem, problem_with_probabilities
from metrifair.problem.tables import CodedColumn, coded_columns, columns
from metrifair.problem.values import band_names
from metrifair.support.arrays import Floats, Integers

if TYPE_CHECKING:
    from metrifair.auditing.sources.table_rows import TableRows


def add_rows(parts: StateParts, source: MemorySource) -> None:
    """Count rows in memory."""
    y_true = source.y_true
    y_pred = source.y_pred
    sensitive_features = source.sensitive_features
    control_features = source.control_features
    proxy = None
    probabilities = None
    if isinstance(sensitive_features, GroupProbabilities):
        probabilities = row_probabilities(sensitive_features)
        proxy = ProxyShape.of(sensitive_features, probabilities.groups)
    rows = {"y_pred": y_pred, "y_true": y_true}
    inputs = Inputs(
        y_true,
        sensitive_features,
        control_features,
        source.sample_weight,
        rows,
        "y_true",
    )
    problem = problem_with_probabilities(inputs, continuous=False, compared=False)
    score, _, precision = read_predictions(y_pred, problem)
    if score.ndim > 1:
        raise DataError(
            f"y_pred must be one score for each row, got {score.shape[1]} columns; count one class "
            "at a time"
        )
    attributes = problem.scheme.attributes
    groups = tuple(attribute.name for attribute in attributes)
    coded: list[tuple[Sequence[object], Integers]] = []
    if proxy is None:
        coded = list(zip((one.groups for one in attributes), problem.groups.T, strict=True))
    else:
        groups = (proxy.column,)
    controls = {}
    if control_features is not None:
        controls = coded_columns("control_features", control_features)
    coded += [_kept_codes(column, problem) for column in controls.values()]
    label = None
    if y_true is not None:
        ((label, column),) = columns("y_true", y_true).items()
        coded.append((problem.scheme.classes, np.asarray(problem.labels)))
        if not problem.scheme.classes:
            coded[-1] = _kept_codes(CodedColumn(label, column), problem)
    shape = Shape(
        groups=groups,
        controls=tuple(controls),
        label=label,
        weighted=problem.weight is not None,
        of_last=len(columns("y_pred", y_pred)) == 2,
        proxy=proxy,
    )
    if probabilities is not None and problem.kept is not None:
        probabilities = probabilities.take(problem.kept)
    coded_rows = _CodedRows(
        [(list(map(state_value, values)), codes) for values, codes in coded],
        score,
        problem.weight,
        probabilities,
        source.precision or precision,
    )
    _add_coded(parts, shape, coded_rows, left_out=sum(source.left_out.values()))


def _kept_codes(column: CodedColumn, problem: Problem) -> tuple[Sequence[object], Integers]:
    """The levels of a column of the input, and the codes of the rows that remain."""
    distinct = column.levels()
    return distinct, problem.kept_rows(column.places(distinct))


class _CodedRows(NamedTuple):
    """Rows whose groups, controls and labels are levels and codes (-1: missing)."""

    coded: Sequence[
        tuple[Sequence[StateValue], Integers]
    ]  # without the group if it has probabilities
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


def _counts_by_cell(
    parts: StateParts, rows: _CodedRows
) -> tuple[list[tuple[StateValue, ...]], Floats, StateCounts]:
    """The cells, their selected amounts, and their counts.

    With probabilities, a row counts in several cells.
    """
    coded = rows.coded
    scores = rows.scores
    weight = rows.weight
    by_probability: dict[str, Any] = {}
    if rows.probabilities is not None:
        members = Memberships.of(rows.probabilities)
        coded = [
            (rows.probabilities.groups, members.group),
            *((values, code[members.row]) for values, code in coded),
        ]
        scores = scores[members.row]
        share = members.share
        amounts = np.nan_to_num(rows.probabilities.values) * (
            1.0 if weight is None else weight[:, None]
        )
        by_probability["share"] = share
        if weight is not None:
            by_probability["overlaps"] = share[:, None] * amounts[members.row]
        weight = share if weight is None else share * weight[members.row]
        by_probability["products"] = _products(weight, amounts[members.row])
    cells, cell = _combinations(coded)
    check_few(len(cells))
    threshold = number_or_default(parts.threshold)
    selected = at_or_above(scores, threshold, rows.precision) * (1.0 if weight is None else weight)
    grid = StateGrid.between(*parts.score_range)
    counts = StateCounts.of_rows(grid, scores + 0.0, cell, weight, **by_probability)
    return (
        cells,
        np.bincount(cell, selected, len(cells)).astype(np.float64),
        counts,
    )


def _combinations(
    coded: Sequence[tuple[Sequence[StateValue], Integers]],
) -> tuple[list[tuple[StateValue, ...]], Integers]:
    """The combinations of values that rows have, and the combination of each row.

    >>> _combinations([(["f", "m"], np.array([1, 0, 1, 0])), ([3, 7], np.array([-1, 1, -1, 0]))])
    ([('f', 3), ('f', 7), ('m', None)], array([2, 1, 2, 0]))
    """
    cells = list[tuple[StateValue, ...]]([()])
    place = np.zeros(len(coded[0][1]), np.int64)
    for values, code in coded:
        size = len(values) + 1
        numbers = place * size + code + 1
        distinct = np.unique(numbers)
        place = np.searchsorted(distinct, numbers)
        cells = [
            (
                *cells[at // size],
                None if at % size == 0 else values[at % size - 1],
            )
            for at in distinct.tolist()
        ]
    return cells, place


def _products(weight: Floats, amounts: Floats) -> Floats:
    """The weight of each entry times those of its row in all groups; a DataError if they
    overflow.
    """
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
    parts: StateParts,
    shape: Shape,
    cells: Sequence[tuple[StateValue, ...]],
    selected: Floats,
    counts: StateCounts,
) -> None:
    """Add counts of cells."""
    if len(set(shape.roles.keys)) < len(shape.roles.keys):
        raise DataError(
            "must name different columns",
            argument=("sensitive_features", "control_features", "y_true"),
            received=list(shape.roles.keys),
        )
    parts.shape = shape if parts.shape is None else shape.merged(parts.shape)
    existing = []
    if parts.counts is not None:
        existing = [(parts.cells, parts.selected, parts.counts)]
    parts.cells, parts.selected, parts.counts = merge_counts([*existing, (cells, selected, counts)])


def count_file(
    state: StateParts,
    path: str | os.PathLike[str],
    roles: Roles,
    options: ReadOptions = AS_USUAL,
) -> None:
    """Add the rows of a file of any size to a state, in one pass.

    Rows with missing values are only counted.
    """
    with open_files(path, options) as source:
        source.check(roles.by_role)
        shape = Shape.of(roles, is_text=source.is_text)
        column_levels = levels_for(roles, max_groups=MOST_LEVELS)
        before = state.rows
        precision = source.precision(roles.score)
        for batch in source.batches(roles.columns):
            used = used_rows(roles, column_levels, batch)
            if used.weight is not None and not used.weight.all():
                used = used.only(used.weight != 0)
            row_codes = [code.astype(np.int64) - 1 for code in used.codes]
            coded = list(zip(map(_values, column_levels), row_codes, strict=True))
            probabilities = None
            if used.proxy is not None:
                probabilities = row_probabilities(used.proxy)
            coded_rows = _CodedRows(coded, used.scores, used.weight, probabilities, precision)
            _add_coded(state, shape, coded_rows, left_out=used.left_out.total())
        check_some(source.name, roles, state.rows - before)


def count_table(
    state: StateParts,
    source: DatabaseTable,
    roles: Roles,
    *,
    missing: str | Sequence[str] = (),
) -> None:
    """Add the rows of a table to a state, as those of a file. The database counts them."""
    from metrifair.auditing.sources.table_rows import TableRows  # noqa: PLC0415 (files need no narwhals)

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
                remedy=Remedy(
                    "cuts",
                    {level.name: ...},
                    ", the ends of the bands in which it is counted",
                ),
            )
    values = [[None, *_values(level)] for level in rows.levels]
    keys = [
        tuple(column[code] for column, code in zip(values, codes, strict=True))
        for codes in rows.cells
    ]
    add_counts(state, Shape.of(roles), keys, cells.selected, _counts(rows, grid))
    state.left_out += sum(cells.left_out.values())


def _count_in_memory(state: StateParts, name: str, rows: TableRows) -> None:
    """Add the rows of a table with group probabilities."""
    if rows.rows > (max_rows := AuditOptions().in_memory_rows):
        raise DataError(
            f"{name} has more than {max_rows:,} rows, and group probabilities of a table are "
            "counted in memory",
            remedy="count the table in parts, and merge the counts",
        )
    roles = rows.roles
    table = rows.all_rows()
    # the engine made 0 and 1 of decisions
    check_favorable(roles, float((table[roles.score] == 1).sum()))
    roles = roles._replace(favorable_decision=None)
    add_rows(state, ColumnSource(name, roles, table, [roles.score]).in_memory())


def _values(level: ColumnLevels) -> list[StateValue]:
    return [
        state_value(value)
        for value in (level.values if level.cuts is None else band_names(level.cuts))
    ]


def _counts(rows: TableRows, grid: StateGrid) -> StateCounts:
    """Entries by distinct score, or by bin of the state's grid if there are many scores."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415 (as above)

    frame = rows.counting
    sums = {"rows": nw.len()}
    scaled = (nw.col("score") * grid.scale.inverse - grid.scale.low * grid.scale.inverse) * float(
        2.0**grid.power
    )
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
        sums |= {
            "low": nw.col("score").min(),
            "high": nw.col("score").max(),
            "within": nw.col("fine").sum(),
        }
        if rows.weighted:
            frame = frame.with_columns(moment=scaled * nw.col("weight"))
            sums["moment"] = nw.col("moment").sum()
        entries, cell = rows.sums_by_cell(frame, ["number"], sums)
        low, high = (entries[name].to_numpy() + 0.0 for name in ("low", "high"))
        number, within = (
            entries[name].to_numpy().astype(np.int64) for name in ("number", "within")
        )
    weight = moment = np.zeros(0)
    if rows.weighted:
        weight = entries["total"].to_numpy().astype(np.float64)
        if few:
            moment = weight * grid.scale.positions(low)
        else:
            moment = np.ldexp(entries["moment"].to_numpy(), -grid.power)
    row_counts: Integers = entries["rows"].to_numpy().astype(np.int64)
    return StateCounts(
        cell,
        number,
        low,
        high,
        row_counts,
        within.astype(np.int64),
        weight,
        moment,
        few,
    ).grouped()
