"""The audit of columns of a file or table: held in memory, or counted where they are, by cell and bin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metrifair.auditing.audit import audit_of_rows
from metrifair.auditing.decisions import DEFAULT_THRESHOLD, are_decisions, threshold_for
from metrifair.auditing.distribution import Integers, counted_cells
from metrifair.auditing.out_of_core.brackets import CellSides, check_brackets, measured
from metrifair.auditing.out_of_core.columns import Roles, decoded, levels_for, used_rows
from metrifair.auditing.out_of_core.rows import CountedRows, check_some
from metrifair.auditing.record import Proven, record_of
from metrifair.auditing.request import MOST_LEVELS, Request, check_groups, groups_allowed
from metrifair.auditing.result import Audit
from metrifair.auditing.sample import AuditSample, Compared, sample_in_memory, with_bands
from metrifair.errors import DataError
from metrifair.problem.problem import Given, problem_of

if TYPE_CHECKING:
    import polars as pl

IN_MEMORY_ROWS = 2_000_000


def check_tolerance(tolerance: float) -> None:
    """Raise a DataError unless this can be the width of a bracket."""
    if not (isinstance(tolerance, int | float) and 0 <= tolerance < float("inf")):
        raise DataError(f"tolerance must be a number from 0 upwards, got {tolerance!r}")


def audit_of_columns(
    name: str, roles: Roles, table: pl.DataFrame, request: Request, generator: np.random.Generator, *, is_text: bool
) -> Audit:
    """The audit of the columns of all rows of a file or table, which are held in memory."""
    # An attribute of more groups than may be told apart is refused here: naming a million of them takes a minute.
    levels = levels_for(roles, most=len(table), most_groups=MOST_LEVELS)
    rows = used_rows(roles, levels, table)
    check_some(name, roles, len(rows.scores))
    columns = decoded(roles, levels, rows.codes, is_text=is_text)
    request = _as_read(request, columns["y_true"])
    sample = sample_in_memory(rows.scores, request, sample_weight=rows.weight, **columns)
    return audit_of_rows(replace(sample, left_out=rows.left_out), request, generator)


def audit_of_counts(rows: CountedRows, request: Request, generator: np.random.Generator, *, tolerance: float) -> Audit:
    """The audit of rows that are too many to hold: counted in bins, by cell."""
    metrics = request.named_metrics()
    check_brackets("metrics", metrics)
    asked = request.threshold
    cells = rows.surveyed(asked if isinstance(asked, int | float) else DEFAULT_THRESHOLD)
    columns, tally = cells.columns, cells.tally
    request = _as_read(request, columns["y_true"])
    problem = problem_of(
        Given(columns["y_true"], columns["sensitive_features"], columns["control_features"], label="y_true"),
        intersectional=request.intersectional,
        continuous=request.numbers,
        counted=int(tally.rows.sum()),
        pos_label=None if columns["y_true"] is None else request.pos_label,
        compared=False,
    )
    problem = with_bands(problem, tally.rows)
    check_groups(problem, tally.rows, groups_allowed(request.most_groups))
    base, scale, finer = rows.counted()
    sample = AuditSample(
        problem,
        cells.ends,
        counted=counted_cells(base.high, base.counts),
        rows=tally.rows,
        weight=tally.weight if rows.weighted else None,
        weighted=rows.weighted,
        left_out=cells.left_out,
        withheld=cells.withheld,
    )
    request = request.completed(problem, *sample.ends, probabilities=sample.probabilities)
    binary = bool(base.single.all()) and are_decisions(base.high)
    threshold = threshold_for(asked, decisions=binary, probabilities=sample.probabilities)
    selected = base.counts[base.high == 1].sum(0) if binary else tally.selected

    def prove(compared: Sequence[Compared]) -> tuple[Sequence[Proven], bool]:
        def total(units: Integers) -> float:
            return float(tally.weight[units].sum())

        sides = [CellSides(left, right, (total(left), total(right))) for left, right in (one.sides for one in compared)]
        found = measured(base, scale, sides, metrics, finer=finer, tolerance=tolerance)
        brackets = ({metric: one.bracket(metric, found.scale) for metric in metrics} for one in found.found)
        return [Proven(one.gap, own) for one, own in zip(found.found, brackets, strict=True)], found.complete

    return Audit(
        record_of(
            sample,
            request,
            generator,
            threshold=threshold,
            selected=None if threshold is None else selected,
            prove=prove,
        )
    )


def _as_read(request: Request, labels: Any) -> Request:
    """With the positive label that was meant: text that names a number is that number, as it is in a file of text."""
    wanted = request.pos_label
    if wanted is None or labels is None or wanted in labels:
        return request
    meant = next((value for value in dict.fromkeys(labels.tolist()) if str(value) == str(wanted)), wanted)
    return replace(request, pos_label=meant)
