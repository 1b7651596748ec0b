"""The audit of columns of a file or table: held in memory, or counted where they are, by cell and bin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.decisions import (
    Selection,
    are_decisions,
    middle_of,
    number_or_default,
    rules_for,
    threshold_for,
)
from metrifair.auditing.distribution import Integers, counted_cells
from metrifair.auditing.out_of_core.bins import Bins, Finer
from metrifair.auditing.out_of_core.brackets import CellSides, check_brackets, measured
from metrifair.auditing.out_of_core.columns import (
    ManyNumbers,
    Roles,
    decoded,
    levels_for,
    numbers,
    precision_of,
    used_rows,
)
from metrifair.auditing.out_of_core.rows import CountedRows, Tally, check_some
from metrifair.auditing.record import audit_record
from metrifair.auditing.request import MOST_LEVELS, Request, check_groups, groups_allowed
from metrifair.auditing.result import AuditResult, audit_rows
from metrifair.auditing.sample import AuditSample, Compared, Proven, favoured, rated_by, sample_in_memory, with_bands
from metrifair.errors import DataError
from metrifair.problem.predictions import ROUNDING, are_probabilities
from metrifair.problem.problem import Given, problem_of
from metrifair.support.checks import names_of

if TYPE_CHECKING:
    import polars as pl

IN_MEMORY_ROWS = 2_000_000
LOOKED_AT = 10_000  # rows that tell whether columns are models, where not all are held
_MOST_LOOKS = 8  # into the bin of the median


def roles_by_score(score: str | Sequence[str], request: Request, tolerance: float, **columns: Any) -> dict[str, Roles]:
    """What columns are, by that of the scores; several are those of several models. Checked, as is the tolerance."""
    names = names_of("score", score)
    if not names or len(set(names)) < len(names):
        raise DataError(f"score must name one column, or several different ones, got {score!r}")
    found = {one: Roles.named(score=one, **columns, cuts=request.cuts, continuous=request.numbers) for one in names}
    if not (isinstance(tolerance, int | float) and 0 <= tolerance < float("inf")):
        raise DataError(f"tolerance must be a number from 0 upwards, got {tolerance!r}")
    return found


def sum_to_one(table: pl.DataFrame, scores: Sequence[str]) -> bool:
    """Whether the columns, in rows where none is missing, can be probabilities of one model's classes."""
    values = np.stack([numbers("score", one, table[one]) for one in scores], -1)
    values = values[np.isfinite(values).all(1)]
    return len(values) > 0 and float(np.ptp(values[:, 0])) > 0 and are_probabilities(values, rounding=ROUNDING)


def not_models(scores: Sequence[str]) -> DataError:
    """What is wrong with columns that are not the scores of several models but one model's, of all classes."""
    return DataError(
        f"the scores {', '.join(map(repr, scores))} add up to 1 in every row: they are one model's probabilities of "
        "classes, not several models to compare; audit one class at a time, with its name as pos_label (if they are "
        "several models nonetheless, audit each by itself, and compare the audits)"
    )


def audit_of_columns(
    name: str,
    roles: Roles,
    table: pl.DataFrame,
    request: Request,
    generator: np.random.Generator,
    *,
    is_text: bool,
    scores: Sequence[str] = (),
) -> AuditResult:
    """The audit of the columns of all rows of a file or table, which are held in memory.

    Of several ``scores``, of as many models, rows that lack one are left out of every audit: all are of the same rows.
    """
    every = len(table)
    if len(scores) > 1:
        table = table.filter(~np.any([np.isnan(numbers("score", one, table[one])) for one in scores], axis=0))
    # An attribute of more groups than may be told apart is refused here: naming a million of them takes a minute.
    levels = levels_for(roles, most=len(table), most_groups=MOST_LEVELS)
    rows = None
    while rows is None:
        try:
            rows = used_rows(roles, levels, table)
        except ManyNumbers as many:  # each of them a level, found by its place and not by its name
            values = np.unique(numbers("group", many.level.name, table[many.level.name]))
            values = values[~np.isnan(values)]
            many.level.cut_at(values[:-1], float(values[-1]))
    check_some(name, roles, len(rows.scores))
    columns = decoded(roles, levels, rows.codes, is_text=is_text)
    precision = precision_of([table[roles.score].dtype])
    request = _as_read(request, columns["y_true"])
    sample = sample_in_memory(rows.scores, request, sample_weight=rows.weight, precision=precision, **columns)
    left_out = rows.left_out + Counter({"without the score of another model": every - len(table)})
    return audit_rows(replace(sample, left_out=left_out), request, generator)


def audit_of_counts(
    rows: CountedRows, request: Request, generator: np.random.Generator, *, tolerance: float
) -> AuditResult:
    """The audit of rows that are too many to hold: counted in bins, by cell."""
    metrics = request.named_metrics()
    check_brackets("metrics", metrics)
    cells = rows.surveyed(number_or_default(request.threshold))
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
    problem = with_bands(problem, request.least_count, weight=tally.weight, rows=tally.rows)
    problem = favoured(problem, request)
    check_groups(problem, tally.rows, groups_allowed(request.most_groups))
    base, scale, finer, position_error = rows.counted()
    sample = AuditSample(
        problem,
        cells.ends,
        counted=counted_cells(base.high, base.counts),
        rows=tally.rows,
        weight=tally.weight if rows.weighted else None,
        weighted=rows.weighted,
        left_out=cells.left_out,
        withheld=cells.withheld,
        levels=cells.levels,
        rated=rated_by(problem, columns["sensitive_features"], request),
        favourable=request.favourable,
    )
    request = request.completed(problem, *sample.ends, probabilities=sample.probabilities)
    selection = _selection(sample, request, tally, base, finer)

    def prove(compared: Sequence[Compared]) -> tuple[Sequence[Proven], bool]:
        def total(units: Integers) -> float:
            return float(tally.weight[units].sum())

        sides = [CellSides(left, right, (total(left), total(right))) for left, right in (one.sides for one in compared)]
        found = measured(base, scale, sides, metrics, finer=finer, tolerance=tolerance, position_error=position_error)
        proven = [
            Proven(
                one.gap,
                {metric: one.value(metric, found.scale) for metric in metrics},
                {metric: one.bracket(metric, found.scale) for metric in metrics},
            )
            for one in found.found
        ]
        return proven, found.complete

    return AuditResult(audit_record(sample, request, generator, selection, prove=prove, lows=base.low))


def _selection(
    sample: AuditSample, request: Request, tally: Tally, base: Bins, finer: Finer | None
) -> Selection | None:
    """Who is selected among rows that were counted; the bin of the median is looked into, where that is possible."""
    binary = bool(base.single.all()) and are_decisions(base.high)
    found = threshold_for(request, decisions=binary, probabilities=sample.probabilities)
    if found is None:
        return None
    (threshold, by), between, low = found, None, request.favourable == "low"
    if threshold == "median":
        threshold, chosen, between = median_cut(base, finer, low=low)
        chosen = np.clip(chosen, 0, tally.weight)
    else:
        above = base.counts[base.high == 1].sum(0) if by == "decisions" else tally.selected
        chosen = tally.weight - above if low else above
    return Selection(threshold, by, chosen, rules_for(sample, request), between)


def median_cut(
    base: Bins, finer: Finer | None, *, low: bool = False
) -> tuple[float, NDArray[Any], tuple[float, float] | None]:
    """The median, how much of each cell lies above it (``low``: below), and where it lies if counts tell no more.

    Then the end of its bin that is nearer stands for it.
    """
    bins, total = base, base.before[-1] + base.counts[-1]
    for looks in range(_MOST_LOOKS + 1):
        upto = bins.before + bins.counts
        first, last = middle_of(upto.sum(1), total=float(total.sum()))
        if first != last or bins.single[first]:
            return (
                float(bins.high[first] / 2 + bins.low[last] / 2),
                bins.before[last] if low else total - upto[first],
                None,
            )
        if finer is None or looks == _MOST_LOOKS:
            break
        bins = finer.recounted(bins[[first]], finer.most)
    ends = float(bins.low[first]), float(bins.high[first])
    at_top = upto[first].sum() - total.sum() / 2 <= total.sum() / 2 - bins.before[first].sum()
    below = upto[first] if at_top else bins.before[first]
    return ends[int(at_top)], below if low else total - below, ends


def _as_read(request: Request, labels: Any) -> Request:
    """With the positive label that was meant: text that names a number is that number, as it is in a file of text."""
    wanted = request.pos_label
    if wanted is None or labels is None or wanted in labels:
        return request
    meant = next((value for value in dict.fromkeys(labels.tolist()) if str(value) == str(wanted)), wanted)
    return replace(request, pos_label=meant)
