"""``audit_table(...)``: the audit of scores in a table that lives elsewhere, of which only counts are fetched; and rows
of a table or file counted into an audit state."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack, overload

import narwhals.stable.v2 as nw
import numpy as np

from metrifair.api.audit import audit
from metrifair.api.audit_file import audit_file
from metrifair.api.audit_result import Audit
from metrifair.api.compare import AuditDifference, one_or_compared
from metrifair.api.state import AuditState
from metrifair.auditing.decisions import number_or_default
from metrifair.auditing.out_of_core.bins import FINE, MOST_ATOMS, StateCounts, StateGrid
from metrifair.auditing.out_of_core.columns import (
    IN_MEMORY_ROWS,
    ColumnLevels,
    Roles,
    levels_for,
    not_models,
    roles_by_score,
    sum_to_one,
    used_rows,
)
from metrifair.auditing.out_of_core.connections import Connected
from metrifair.auditing.out_of_core.files import opened
from metrifair.auditing.out_of_core.formats import AS_USUAL, FileOptions
from metrifair.auditing.out_of_core.rows import check_some
from metrifair.auditing.out_of_core.tables import TableRows
from metrifair.auditing.request import AuditOptions, ColumnOptions, Request, groups_allowed
from metrifair.auditing.source import AuditSource, BinnedSource, ColumnSource, audit_source
from metrifair.auditing.state_file import Shape, Value, check_within, plain
from metrifair.errors import DataError, Remedy
from metrifair.problem.predictions import ROUNDING
from metrifair.problem.tables import library_of
from metrifair.problem.values import band_names
from metrifair.support.arrays import Integers
from metrifair.support.checks import seed_of
from metrifair.support.provenance import source_files
from metrifair.support.signatures import as_in


@overload
def audit_table(table: Any, *, score: str, group: str | Sequence[str], **options: Unpack[ColumnOptions]) -> Audit: ...
@overload
def audit_table(
    table: Any, *, score: Sequence[str], group: str | Sequence[str], **options: Unpack[ColumnOptions]
) -> Audit | AuditDifference: ...
@as_in(audit, audit_file)
def audit_table(
    table: Any,
    *,
    score: str | Sequence[str],
    group: str | Sequence[str],
    label: str | None = None,
    control: str | Sequence[str] | None = None,
    weight: str | None = None,
    tolerance: float = 1e-5,
    missing: str | Sequence[str] = (),
    in_memory_rows: int = IN_MEMORY_ROWS,
    **options: Unpack[AuditOptions],
) -> Audit | AuditDifference:
    """The audit of the columns of a table where it is: polars, pandas, DuckDB, Dask, Spark, or any SQL through Ibis.

    Only counts leave the table's engine. Of up to ``in_memory_rows`` rows those that are equal are counted, and the
    audit is that of the rows themselves. More are counted by cell (group, stratum and label) and bin of the score, and
    bins that matter are looked into: the Kolmogorov distance is exact, every other one comes with a proven bracket no
    wider than ``tolerance``; intervals and p-values are those of the counts. Findings are those of ``audit_file``.

    Rows without a score, label, weight or any group are left out and counted.

    Parameters
    ----------
    table : polars, pandas or pyarrow table, polars LazyFrame, DuckDB relation, Ibis table, Dask or Spark data frame
        The rows; anything that narwhals knows. It must not change while it is counted.
    score, group, label, control, weight : as in audit_file
    criteria, metrics, threshold, confidence, random_state : as in audit
    tolerance : as in audit_file
    contrast, intersectional, continuous, cuts, pos_label : as in audit
    loss : {"log_loss", "squared_error", "absolute_error", "huber"}, default=None
        The loss that the criterion ``risk_parity`` compares; not for tables too large to hold.
    score_range, resamples, permutations, max_groups, min_group_size, vc_dimension : as in audit
    standard, reference, favorable, min_group_share, title, about : as in audit
    missing : str or sequence of str, default=()
        What stands for a missing value in any column, besides null, such as "N/A" or "-9"; whatever its case.
    in_memory_rows : int, default=2000000
        Up to so many rows are audited as they are; 0: none.

    Returns
    -------
    Audit
        As that of ``audit``; distances of counted rows have a ``bracket``. Of several scores an ``AuditDifference``.

    Raises
    ------
    DataError
        Where the table cannot be read, or an argument not be used as it is.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.LazyFrame({"p": [0.2, 0.8, 0.4, 0.9, None], "sex": list("ffmmm"), "y": [0, 1, 1, 1, 1]})
    >>> found = audit_table(table, score="p", group="sex", label="y", random_state=0)
    >>> found.record.rows, found.record.left_out, found.worst(criterion="statistical_parity").value
    (4, 1, 0.5)
    """
    given = {**locals(), **options}
    request = Request.of(audit_table, options)
    seed = seed_of(request.random_state)
    every = roles_by_score(score, request, tolerance, group=group, label=label, control=control, weight=weight)
    generator = np.random.default_rng(seed)
    place = table if isinstance(table, Connected) else Connected("the table", table)
    files = [] if place.file is None else source_files([place.file])
    source = place.name if place.file is None else place.name.replace(place.file, files[0].name)
    library = library_of(place.table)
    most, scores = groups_allowed(request.max_groups), tuple(every)
    rows = {
        name: TableRows.of(
            place.table,
            roles,
            name=place.name,
            max_groups=most,
            secrets=place.secrets,
            beside=scores[1:] if name == scores[0] else (),
            missing=missing,
        )
        for name, roles in every.items()
    }
    first = rows[scores[0]]
    if first.rows == 0:
        raise DataError(f"{place.name} has no rows")
    # All scores in one answer: each in an order of its own would pair the scores of different rows.
    held = first.all_rows() if first.rows <= in_memory_rows else None
    if len(scores) > 1 and (first.sum_to_one(ROUNDING) if held is None else sum_to_one(held, scores)):
        raise not_models(scores)
    audits = {}
    for name, roles in every.items():
        counted: AuditSource = BinnedSource(rows[name], tolerance)
        found = audit_source(
            counted if held is None else ColumnSource(place.name, roles, held, scores), request, generator
        )
        if len(scores) == 1:  # rows in the order of their scores, which no other audit's are in
            found = replace(found, rows=None)
        origin = {"seed": seed, "columns": roles.by_role, "files": files, "source": source}
        found = found.with_provenance(audit_table, given, **origin)
        audits[name] = Audit(found.record, found.rows, library)
    return one_or_compared(audits)


def count_file(state: AuditState, path: str | os.PathLike[str], roles: Roles, options: FileOptions = AS_USUAL) -> None:
    """Add the rows of a file of any size to a state, in one pass; rows that miss something are left out and counted."""
    with opened(path, options) as source:
        source.check(roles.by_role)
        shape = Shape(roles.groups, roles.controls, roles.label, roles.weight is not None, source.is_text)
        levels = levels_for(roles)
        before, precision = state.rows, source.precision(roles.score)
        for batch in source.batches(roles.columns):
            used = used_rows(roles, levels, batch)
            left_out = used.left_out.total()
            if used.weight is not None and not used.weight.all():
                used = used.only(used.weight != 0)
            coded = [(_values(level), code.astype("int64") - 1) for level, code in zip(levels, used.codes, strict=True)]
            state._add_coded(shape, coded, used.scores, used.weight, precision=precision, left_out=left_out)
        check_some(source.name, roles, state.rows - before)


def count_table(state: AuditState, place: Connected, roles: Roles, *, missing: str | Sequence[str] = ()) -> None:
    """Add the rows of a table to a state, counted by the engine that has them: what a file of these rows would add."""
    rows = TableRows.of(place.table, roles, name=place.name, secrets=place.secrets, missing=missing)
    cells = rows.survey(number_or_default(state.threshold))
    check_within(np.array(cells.ends), state.range)
    grid = StateGrid.between(*state.range)
    for level in rows.levels:
        if level.cuts is not None and level.name not in roles.cuts:
            raise DataError(
                f"the column {level.name!r} has more values than a state holds",
                remedy=Remedy("cuts", {level.name: ...}, ", the ends of the bands in which it is counted"),
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
