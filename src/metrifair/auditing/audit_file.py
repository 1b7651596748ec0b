"""``audit_file(...)``: the audit of scores in files of any size."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from metrifair.auditing.audit import Audit, audit_of_rows
from metrifair.auditing.decisions import DEFAULT_THRESHOLD, are_decisions, threshold_for
from metrifair.auditing.distribution import Integers, counted_cells
from metrifair.auditing.out_of_core.brackets import CellSides, check_brackets, measured
from metrifair.auditing.out_of_core.counting import bins_for, counted, grid_of
from metrifair.auditing.out_of_core.files import Source, opened
from metrifair.auditing.out_of_core.tables import FileRows, Roles, decoded, levels_for, used_rows
from metrifair.auditing.record import Proven, record_of
from metrifair.auditing.request import MOST_LEVELS, Criteria, Request, Threshold, check_groups, groups_allowed
from metrifair.auditing.sample import AuditSample, Compared, sample_in_memory
from metrifair.checks import seed_of
from metrifair.errors import DataError
from metrifair.problem.cells import Contrast
from metrifair.problem.problem import Given, problem_of

if TYPE_CHECKING:
    import polars as pl

IN_MEMORY_ROWS = 2_000_000


def audit_file(
    path: str | os.PathLike[str],
    *,
    score: str,
    group: str | Sequence[str],
    label: str | None = None,
    control: str | Sequence[str] | None = None,
    weight: str | None = None,
    criteria: Criteria = None,
    metrics: Sequence[str] | str | None = None,
    threshold: Threshold = "auto",
    confidence: float = 0.95,
    random_state: Any = None,
    tolerance: float = 1e-5,
    contrast: Contrast = "pairs",
    intersectional: bool = False,
    pos_label: object = None,
    loss: str | None = None,
    score_range: tuple[float, float] | None = None,
    resamples: int = 500,
    permutations: int = 999,
    most_groups: int | None = None,
    vc_dimension: int | None = None,
    format: str | None = None,  # noqa: A002
    separator: str | None = None,
    in_memory_rows: int = IN_MEMORY_ROWS,
) -> Audit:
    """The audit of the columns of a file: csv, tsv, parquet, arrow, ndjson, a pattern of such files, or "-".

    Rows without a score, label, weight or any group are left out and counted. Up to ``in_memory_rows`` rows are held in
    memory. More are counted in a few passes with bounded memory: the Kolmogorov distance is exact, every other one
    comes with a proven bracket no wider than ``tolerance``; intervals and p-values are those of the counts.

    Parameters
    ----------
    path : str or path-like
        A file, a pattern such as "scores/*.parquet", or "-" for standard input.
    score : str
        The column of the scores.
    group : str or sequence of str
        The column of the groups; several are several attributes.
    label : str, default=None
        The column of the outcomes.
    control : str or sequence of str, default=None
        The columns of the strata.
    weight : str, default=None
        The column of the weights.
    criteria : str, Criterion or sequence of them, default=None
        What is compared; by default what the columns allow, as in ``audit``.
    metrics : str or sequence of str, default=None
        How distributions are compared; by default kolmogorov, wasserstein and energy.
    threshold : float, "auto" or None, default="auto"
        Scores from here on are decisions for, as in ``audit``.
    confidence : float, default=0.95
        Of intervals and certified bounds.
    random_state : int, Generator, RandomState or None, default=None
        What resampling draws from.
    tolerance : float, default=1e-5
        How wide the bracket of a distance may be: a share of the range of the scores (in their unit, as the metric).
    contrast : {"pairs", "rest"}, default="pairs"
        Compare all pairs of groups, or each group with the rest.
    intersectional : bool, default=False
        Cross several columns of groups into one.
    pos_label : object, default=None
        The positive label; by default the last one in ascending order. Text that names a number is that number.
    loss : {"log_loss", "squared_error", "absolute_error", "huber"}, default=None
        The loss that the criterion ``risk_parity`` compares; not for files too large to hold.
    score_range : tuple of float, default=None
        Lowest and highest score that can occur; [0, 1] for probabilities.
    resamples : int, default=500
        How many, for intervals; 0: none.
    permutations : int, default=999
        How many, for p-values; 0: none.
    most_groups : int, default=None
        Groups that a column may have, as in ``audit``.
    vc_dimension : int, default=None
        Where these rows trained the model, as in ``audit``.
    format : {"csv", "tsv", "parquet", "arrow", "ndjson"}, default=None
        Where the ending does not tell; "-" is csv by default.
    separator : str, default=None
        Of the columns of a text file, where it is neither "," in csv nor a tab in tsv.
    in_memory_rows : int, default=2000000
        Up to so many rows are held in memory.

    Returns
    -------
    Audit
        As that of ``audit``; distances of counted rows have a ``bracket``.

    Raises
    ------
    DataError
        Where the file cannot be read, or an argument not be used as it is.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "scores.csv")
    ...     _ = file.write_text("p,sex,y\\n0.2,f,0\\n0.8,f,1\\n0.4,m,1\\n0.9,m,1\\n,m,1\\n")
    ...     found = audit_file(file, score="p", group="sex", label="y", random_state=0)
    >>> found.record.rows, found.record.left_out, found.worst(criterion="statistical_parity").value
    (4, 1, 0.5)
    """
    request = Request.among(locals())
    roles = Roles(score, _names("group", group), label, _names("control", control), weight)
    if not (isinstance(tolerance, int | float) and 0 <= tolerance < float("inf")):
        raise DataError(f"tolerance must be a number from 0 upwards, got {tolerance!r}")
    generator = np.random.default_rng(seed_of(random_state))
    with opened(path, format=format, separator=separator) as source:
        _check_columns(source, roles)
        head = _head(source, roles, in_memory_rows)
        if head is not None:
            return _held(source, roles, head, request, generator)
        return _counted(source, roles, request, generator, tolerance=tolerance)


def _names(role: str, given_names: str | Sequence[str] | None) -> tuple[str, ...]:
    names = () if given_names is None else (given_names,) if isinstance(given_names, str) else tuple(given_names)
    if role == "group" and not names:
        raise DataError("group must name at least one column, got none")
    if len(set(names)) < len(names):
        raise DataError(f"{role} must name different columns, got {list(names)}")
    return names


def _check_columns(source: Source, roles: Roles) -> None:
    for role, name in (("label", roles.label), ("weight", roles.weight)):
        if name == roles.score:
            raise DataError(f"score and {role} both name the column {name!r}; they must be two columns")
    one = {"score": roles.score, "label": roles.label, "weight": roles.weight}
    named: dict[str, Sequence[str]] = {role: [name] for role, name in one.items() if name is not None}
    source.check(named | {"group": roles.groups, "control": roles.controls})


def _head(source: Source, roles: Roles, most: int) -> pl.DataFrame | None:
    """All rows, or None where there are more than ``most``."""
    if (source.rows() or 0) > most:
        return None
    head = source.head(roles.columns, most + 1)
    if len(head) == 0:
        raise DataError(f"{source.name} has no rows")
    return head if len(head) <= most else None


def _check_some(source: Source, roles: Roles, rows: int) -> None:
    if rows == 0:
        raise DataError(
            f"no row of {source.name} has a score in {roles.score!r} and a value in every other column asked for"
        )


def _as_read(request: Request, labels: Any) -> Request:
    """With the positive label that was meant: text that names a number is that number, as it is in a file of text."""
    wanted = request.pos_label
    if wanted is None or labels is None or wanted in labels:
        return request
    meant = next((value for value in dict.fromkeys(labels.tolist()) if str(value) == str(wanted)), wanted)
    return replace(request, pos_label=meant)


def _held(source: Source, roles: Roles, table: pl.DataFrame, request: Request, generator: np.random.Generator) -> Audit:
    """The audit of rows that are held in memory."""
    # An attribute of more groups than may be told apart is refused here: naming a million of them takes a minute.
    levels = levels_for(roles, most=len(table), most_groups=MOST_LEVELS)
    rows = used_rows(roles, levels, table)
    _check_some(source, roles, len(rows.scores))
    columns = decoded(roles, levels, rows.codes, is_text=source.is_text)
    request = _as_read(request, columns["y_true"])
    sample = sample_in_memory(rows.scores, request, sample_weight=rows.weight, **columns)
    return audit_of_rows(replace(sample, left_out=rows.left_out), request, generator)


def _counted(
    source: Source, roles: Roles, request: Request, generator: np.random.Generator, *, tolerance: float
) -> Audit:
    """The audit of rows that are too many to hold: counted in bins, by cell."""
    metrics = request.named_metrics()
    check_brackets("metrics", metrics)
    most, weighted = groups_allowed(request.most_groups), roles.weight is not None
    rows = FileRows(source, roles, most)
    asked = request.threshold
    survey, tally = rows.surveyed(asked if isinstance(asked, int | float) else DEFAULT_THRESHOLD)
    _check_some(source, roles, survey.rows)
    if not isfinite(survey.high - survey.low):
        raise DataError(f"the column {roles.score!r} spans more than floating-point numbers can; scale the scores down")
    columns = decoded(roles, rows.levels, list(np.array(rows.cells).T), is_text=source.is_text)
    request = _as_read(request, columns["y_true"])
    problem = problem_of(
        Given(columns["y_true"], columns["sensitive_features"], columns["control_features"], label="y_true"),
        intersectional=request.intersectional,
        pos_label=None if roles.label is None else request.pos_label,
        compared=False,
    )
    check_groups(problem, tally.rows, most)
    grid = grid_of(survey.sample, survey.low, survey.high, bins_for(len(rows.cells)))
    base = counted(rows.read, grid, len(rows.cells), weighted=weighted)
    sample = AuditSample(
        problem,
        (survey.low, survey.high),
        counted=counted_cells(base.high, base.counts),
        rows=tally.rows,
        weight=tally.weight if weighted else None,
        weighted=weighted,
        left_out=rows.left_out,
    )
    request = request.completed(problem, *sample.ends, probabilities=sample.probabilities)
    binary = bool(base.single.all()) and are_decisions(base.high)
    threshold = threshold_for(asked, decisions=binary, probabilities=sample.probabilities)
    selected = base.counts[base.high == 1].sum(0) if binary else tally.selected

    def prove(compared: Sequence[Compared]) -> tuple[Sequence[Proven], bool]:
        def total(units: Integers) -> float:
            return float(tally.weight[units].sum())

        sides = [CellSides(left, right, (total(left), total(right))) for left, right in (one.sides for one in compared)]
        found = measured(rows.read, grid, base, sides, metrics, tolerance=tolerance)
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
