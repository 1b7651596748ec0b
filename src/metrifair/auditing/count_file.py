"""The rows of a file or table, counted into an audit state."""

from __future__ import annotations

import os

import narwhals.stable.v2 as nw
import numpy as np

from metrifair.auditing.decisions import DEFAULT_THRESHOLD
from metrifair.auditing.distribution import Integers
from metrifair.auditing.out_of_core.columns import ColumnLevels, Roles, levels_for, used_rows
from metrifair.auditing.out_of_core.connections import Connected
from metrifair.auditing.out_of_core.files import opened
from metrifair.auditing.out_of_core.formats import AS_USUAL, FileOptions
from metrifair.auditing.out_of_core.rows import check_some
from metrifair.auditing.out_of_core.tables import TableRows
from metrifair.auditing.state import AuditState
from metrifair.auditing.state_counts import FINE, MOST_ATOMS, StateCounts, StateGrid
from metrifair.auditing.state_file import Shape, Value, check_within, plain
from metrifair.errors import DataError
from metrifair.problem.attributes import band_names


def count_file(state: AuditState, path: str | os.PathLike[str], roles: Roles, options: FileOptions = AS_USUAL) -> None:
    """Add the rows of a file of any size to a state, in one pass; rows that miss something are left out and counted."""
    with opened(path, options) as source:
        source.check(roles.by_role)
        shape = Shape(roles.groups, roles.controls, roles.label, roles.weight is not None, source.is_text)
        levels = levels_for(roles)
        before = state.rows
        for batch in source.batches(roles.columns):
            used = used_rows(roles, levels, batch)
            left_out = used.left_out.total()
            if used.weight is not None and not used.weight.all():
                used = used.only(used.weight != 0)
            coded = [(_values(level), code.astype("int64") - 1) for level, code in zip(levels, used.codes, strict=True)]
            state._add_coded(shape, coded, used.scores, used.weight, left_out=left_out)
        check_some(source.name, roles, state.rows - before)


def count_table(state: AuditState, place: Connected, roles: Roles) -> None:
    """Add the rows of a table to a state, counted by the engine that has them: what a file of these rows would add."""
    rows = TableRows.of(place.table, roles, name=place.name, secrets=place.secrets)
    threshold = state.threshold if isinstance(state.threshold, float) else DEFAULT_THRESHOLD
    cells = rows.surveyed(threshold)
    check_within(np.array(cells.ends), state.range)
    grid = StateGrid.between(*state.range)
    for level in rows.levels:
        if level.cuts is not None and level.name not in roles.cuts:
            raise DataError(
                f"the column {level.name!r} has more values than a state holds; pass cuts, the ends of the bands that "
                "it is to be counted in"
            )
    values = [[None, *_values(level)] for level in rows.levels]
    named = [tuple(own[code] for own, code in zip(values, codes, strict=True)) for codes in rows.cells]
    shape = Shape(roles.groups, roles.controls, roles.label, rows.weighted)
    state._take(shape, named, cells.tally.selected, _counts(rows, grid))
    state.left_out += sum(cells.left_out.values())


def _values(level: ColumnLevels) -> list[Value]:
    return [plain(value) for value in (level.values if level.cuts is None else band_names(level.cuts))]


def _counts(rows: TableRows, grid: StateGrid) -> StateCounts:
    """Entries by distinct score, or by bin of the state's grid where there are many."""
    frame, sums = rows.counting, {"rows": nw.len()}
    scaled = (nw.col("score") * grid.scale.inverse - grid.scale.low * grid.scale.inverse) * float(2.0**grid.power)
    few = len(rows.answer(frame.select("score").unique().head(MOST_ATOMS + 1))) <= MOST_ATOMS
    if rows.weighted:
        sums["total"] = nw.col("weight").sum()
    if few:
        found, cell = rows.by_cell(frame, ["score"], sums)
        low = high = found["score"].to_numpy() + 0.0
        number, within = grid.places(low)
        within = within * found["rows"].to_numpy()
    else:
        fine = ((scaled - scaled.floor()) * float(2**FINE) + 0.5).floor()
        frame = frame.with_columns(number=scaled.floor().cast(nw.Int64), fine=fine.cast(nw.Int64))
        sums |= {"low": nw.col("score").min(), "high": nw.col("score").max(), "within": nw.col("fine").sum()}
        if rows.weighted:
            frame = frame.with_columns(moment=scaled * nw.col("weight"))
            sums["moment"] = nw.col("moment").sum()
        found, cell = rows.by_cell(frame, ["number"], sums)
        low, high = (found[name].to_numpy() + 0.0 for name in ("low", "high"))
        number, within = (found[name].to_numpy().astype(np.int64) for name in ("number", "within"))
    weight = moment = np.zeros(0)
    if rows.weighted:
        weight = found["total"].to_numpy().astype(np.float64)
        moment = weight * grid.scale.positions(low) if few else np.ldexp(found["moment"].to_numpy(), -grid.power)
    counted: Integers = found["rows"].to_numpy().astype(np.int64)
    return StateCounts(cell, number, low, high, counted, within.astype(np.int64), weight, moment, few).grouped()
