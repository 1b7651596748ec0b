"""``audit_table(...)``: the audit of scores in a table that lives elsewhere, of which only counts are fetched; and rows
of a table or file counted into an audit state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Required, Unpack, overload

import narwhals.stable.v2 as nw
import numpy as np

from metrifair.api.audit import audit, one_or_compared
from metrifair.api.audit_file import audit_file
from metrifair.api.audit_result import Audit
from metrifair.api.count_file import level_values
from metrifair.api.state import AuditState
from metrifair.auditing.decisions import number_or_default
from metrifair.auditing.out_of_core.bins import FINE, MOST_ATOMS, StateCounts, StateGrid
from metrifair.auditing.out_of_core.columns import (
    Roles,
    check_favorable,
    check_models,
    not_models,
    roles_by_score,
)
from metrifair.auditing.out_of_core.connections import Connected
from metrifair.auditing.out_of_core.tables import TableRows
from metrifair.auditing.records import Favorable
from metrifair.auditing.request import AuditArguments, AuditOptions, Criteria, Request, Threshold, groups_allowed
from metrifair.auditing.source import AuditSource, BinnedSource, ColumnSource, audit_source
from metrifair.auditing.state_file import Shape, check_within
from metrifair.errors import DataError, Remedy
from metrifair.problem.predictions import ROUNDING
from metrifair.problem.tables import library_of
from metrifair.support.arrays import Integers
from metrifair.support.checks import seed_of
from metrifair.support.provenance import source_files
from metrifair.support.signatures import as_in

if TYPE_CHECKING:
    import polars as pl

    from metrifair.api.compare import AuditDifference


class _TableArguments(AuditArguments, total=False):
    group: Required[str | Sequence[str]]
    label: str | None
    control: str | Sequence[str] | None
    weight: str | None
    missing: str | Sequence[str]


@overload
def audit_table(table: Any, *, score: str, **others: Unpack[_TableArguments]) -> Audit: ...
@overload
def audit_table(table: Any, *, score: Sequence[str], **others: Unpack[_TableArguments]) -> Audit | AuditDifference: ...
@as_in(audit, audit_file)
def audit_table(
    table: Any,
    *,
    score: str | Sequence[str],
    group: str | Sequence[str],
    label: str | None = None,
    control: str | Sequence[str] | None = None,
    weight: str | None = None,
    criteria: Criteria = None,
    metrics: Sequence[str] | str | None = None,
    threshold: Threshold = "auto",
    pos_label: object = None,
    favorable: Favorable = "high",
    favorable_decision: object = None,
    intersectional: bool = False,
    random_state: Any = None,
    options: AuditOptions | None = None,
    missing: str | Sequence[str] = (),
) -> Audit | AuditDifference:
    """Audit the columns of a table where it is: polars, pandas, DuckDB, Dask, Spark, or any SQL through Ibis.

    Only counts leave the table's engine. Up to ``AuditOptions.in_memory_rows`` rows, equal rows are counted and the
    audit is exact. Larger tables are counted by cell and bin: the Kolmogorov distance is exact up to rounding and every
    other distance has a bracket. Rows without a score, label, weight or any group are left out and counted.

    Parameters
    ----------
    table : polars, pandas or pyarrow table, polars LazyFrame, DuckDB relation, Ibis table, Dask or Spark data frame
        The rows. They must not change during the audit.
    score, group, label, control, weight : as in audit_file
    criteria, metrics, threshold, pos_label, favorable, favorable_decision : as in audit
    intersectional, random_state, options : as in audit
    missing : str or sequence of str, default=()
        Missing values, besides null, in all columns, in any case: such as "N/A" or "-9".

    Returns
    -------
    Audit or AuditDifference
        The result of ``audit``. Distances computed out of core have a ``bracket``.

    Raises
    ------
    DataError
        If the table cannot be read, or an argument cannot be used.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.LazyFrame({"p": [0.2, 0.8, 0.4, 0.9, None], "sex": list("ffmmm"), "y": [0, 1, 1, 1, 1]})
    >>> result = audit_table(table, score="p", group="sex", label="y", random_state=0)
    >>> result.record.rows, result.record.left_out, result.worst(criterion="statistical_parity").value
    (4, 1, 0.5)
    """
    arguments = dict(locals())
    request = Request.of(
        options,
        criteria=criteria,
        metrics=metrics,
        threshold=threshold,
        pos_label=pos_label,
        favorable=favorable,
        favorable_decision=favorable_decision,
        intersectional=intersectional,
    )
    seed = seed_of(random_state)
    roles_by_name = roles_by_score(score, request, group=group, label=label, control=control, weight=weight)
    generator = np.random.default_rng(seed)
    place = table if isinstance(table, Connected) else Connected("the table", table)
    files = [] if place.file is None else source_files([place.file])
    source = place.name if place.file is None else place.name.replace(place.file, files[0].name)
    library = library_of(place.table)
    max_groups, scores = groups_allowed(request.max_groups), tuple(roles_by_name)
    rows = {
        name: TableRows.of(
            place.table,
            roles,
            name=place.name,
            max_groups=max_groups,
            secrets=place.secrets,
            beside=scores[1:] if name == scores[0] else (),
            missing=missing,
        )
        for name, roles in roles_by_name.items()
    }
    first = rows[scores[0]]
    if first.rows == 0:
        raise DataError(f"{place.name} has no rows")
    # All scores in one answer: each in an order of its own would pair the scores of different rows.
    in_memory = first.all_rows() if first.rows <= request.in_memory_rows else None
    _check_scores(first, in_memory, roles_by_name)
    audits = {}
    for name, roles in roles_by_name.items():
        binned: AuditSource = BinnedSource(rows[name])
        numeric = roles._replace(favorable_decision=None)  # the engine made 0 and 1 of decisions
        source_rows = binned if in_memory is None else ColumnSource(place.name, numeric, in_memory, scores)
        result = audit_source(source_rows, request, generator)
        if len(scores) == 1 and result.rows is not None:  # in the order of their scores, as no other audit's are
            result = replace(result, rows=result.rows._replace(ordered=False))
        origin = {"seed": seed, "columns": roles.by_role, "files": files, "source": source}
        result = result.with_provenance(audit_table, arguments, **origin)
        audits[name] = Audit(result.record, result.rows, library)
    return one_or_compared(audits, several=len(audits) > 1)


def _check_scores(rows: TableRows, in_memory: pl.DataFrame | None, roles_by_name: Mapping[str, Roles]) -> None:
    """Raise a DataError unless the columns hold the favorable decision, or scores that are not one model's classes."""
    if in_memory is not None:
        for roles in roles_by_name.values():
            check_favorable(roles, float((in_memory[roles.score] == 1).sum()))
    scores = [name for name, roles in roles_by_name.items() if roles.favorable_decision is None]
    if len(scores) < 2:
        return
    if in_memory is not None:
        check_models(in_memory, scores)
    elif rows.sum_to_one(ROUNDING):
        raise not_models(scores)


def count_table(state: AuditState, place: Connected, roles: Roles, *, missing: str | Sequence[str] = ()) -> None:
    """Add the rows of a table to a state, counted by the engine that has them: what a file of these rows would add."""
    rows = TableRows.of(place.table, roles, name=place.name, secrets=place.secrets, missing=missing)
    cells = rows.survey(number_or_default(state.threshold))
    check_within(np.array(cells.ends), state.score_range)
    grid = StateGrid.between(*state.score_range)
    for level in rows.levels:
        if level.cuts is not None and level.name not in roles.cuts:
            raise DataError(
                f"the column {level.name!r} has more values than a state holds",
                remedy=Remedy("cuts", {level.name: ...}, ", the ends of the bands in which it is counted"),
            )
    values = [[None, *level_values(level)] for level in rows.levels]
    named = [tuple(own[code] for own, code in zip(values, codes, strict=True)) for codes in rows.cells]
    shape = Shape(roles.groups, roles.controls, roles.label, rows.weighted)
    state._take(shape, named, cells.tally.selected, _counts(rows, grid))
    state.left_out += sum(cells.left_out.values())


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
