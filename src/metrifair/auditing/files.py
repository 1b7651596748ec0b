"""``audit_file(...)``: the audit of scores in files of any size."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metrifair.auditing.asking import metric_names, requested, threshold_asked
from metrifair.auditing.audit import Audit, audit
from metrifair.auditing.decisions import DEFAULT_THRESHOLD, Threshold
from metrifair.auditing.inputs import given, groups_allowed
from metrifair.auditing.large.cellwise import Cells, left_out_notes
from metrifair.auditing.large.coding import Roles, decoded, levels_for, numbers
from metrifair.auditing.large.rows import Rows, check_finite, usable
from metrifair.auditing.large.streaming import check_metrics, streamed
from metrifair.auditing.reading import Source, opened
from metrifair.auditing.remarks import summary_of
from metrifair.checks import check_switches, seed_of
from metrifair.errors import DataError
from metrifair.problem.cells import Contrast
from metrifair.problem.criteria import Criterion

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
    criteria: Sequence[str | Criterion] | str | Criterion | None = None,
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
    format: str | None = None,  # noqa: A002
    separator: str | None = None,
    in_memory_rows: int = IN_MEMORY_ROWS,
) -> Audit:
    """``audit`` of the columns of a file: csv, tsv, parquet, arrow, ndjson, a pattern of such files, or "-".

    Rows without a score, label, weight or any group are left out and counted. Up to ``in_memory_rows`` rows are held in
    memory. More are counted in a few passes with bounded memory: the Kolmogorov distance is exact, every other one
    comes with a proven bracket no wider than ``tolerance``, a share of the range of the scores (in their unit, as the
    metric); intervals and p-values are those of the counts. "-" is standard input.

    Parameters
    ----------
    path : a file, a pattern such as "scores/*.parquet", or "-"
    score, group, label, control, weight : names of columns; several for ``group`` (attributes) and ``control``
    format : "csv", "tsv", "parquet", "arrow" or "ndjson", where the ending does not tell; "-" is csv by default
    separator : of the columns of a text file, where it is neither "," in csv nor a tab in tsv

    The other parameters are those of ``audit``.

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
    roles = Roles(score, _names("group", group), label, _names("control", control), weight)
    options = {
        "criteria": criteria,
        "metrics": metrics,
        "threshold": threshold,
        "confidence": confidence,
        "contrast": contrast,
        "score_range": score_range,
        "resamples": resamples,
        "permutations": permutations,
    }
    meaning = {"intersectional": intersectional, "pos_label": pos_label, "loss": loss, "most_groups": most_groups}
    groups_allowed(most_groups)
    check_switches(intersectional=intersectional)
    if not (isinstance(tolerance, int | float) and 0 <= tolerance < float("inf")):
        raise DataError(f"tolerance must be a number from 0 upwards, got {tolerance!r}")
    generator = np.random.default_rng(seed_of(random_state))
    with opened(path, format=format, separator=separator) as source:
        _check_columns(source, roles)
        head = _head(source, roles, in_memory_rows)
        if head is not None:
            return _held(source, roles, head, {**options, **meaning, "random_state": generator})
        return _counted(source, roles, options, meaning, generator, tolerance=tolerance)


def _head(source: Source, roles: Roles, most: int) -> pl.DataFrame | None:
    """All rows, or None where there are more than ``most``."""
    if (source.rows() or 0) > most:
        return None
    head = source.head(roles.columns, most + 1)
    if len(head) == 0:
        raise DataError(f"{source.name} has no rows")
    return head if len(head) <= most else None


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
    source.check(score=roles.score, label=roles.label, weight=roles.weight)
    for name in roles.groups:
        source.check(group=name)
    for name in roles.controls:
        source.check(control=name)


def _positive(pos_label: object, labels: Any) -> object:
    """The label that was meant: text that names a number is that number, as it is in a file of text."""
    if pos_label is None or labels is None or pos_label in labels:
        return pos_label
    return next((value for value in dict.fromkeys(labels.tolist()) if str(value) == str(pos_label)), pos_label)


def _held(source: Source, roles: Roles, table: pl.DataFrame, options: Mapping[str, Any]) -> Audit:
    """The audit of rows that are held in memory."""
    scores = numbers("score", roles.score, table[roles.score])
    weight = None if roles.weight is None else numbers("weight", roles.weight, table[roles.weight])
    levels = levels_for(roles, most=len(table))
    codes = [level.codes(table[level.name]) for level in levels]
    used = usable(roles, scores, codes, weight)
    left_out = 0
    if used is not None:
        left_out = len(scores) - int(used.sum())
        scores, codes, weight = scores[used], [code[used] for code in codes], None if weight is None else weight[used]
    _check_some(source, roles, len(scores))
    check_finite(roles, scores.min(), scores.max(), weight)
    columns = decoded(roles, levels, codes, is_text=source.is_text)
    pos_label = _positive(options["pos_label"], columns["y_true"])
    found = audit(scores, **columns, sample_weight=weight, **{**options, "pos_label": pos_label})
    if not left_out:
        return found
    record = found.record
    notes = [*left_out_notes(left_out), *record.notes]
    summary = summary_of(
        record.findings, record.decisions, notes, record.confidence, permutations=options["permutations"]
    )
    return Audit(replace(record, left_out=record.left_out + left_out, notes=notes, summary=summary))


def _check_some(source: Source, roles: Roles, rows: int) -> None:
    if rows == 0:
        raise DataError(
            f"no row of {source.name} has a score in {roles.score!r} and a value in every other column asked for"
        )


def _counted(
    source: Source,
    roles: Roles,
    options: Mapping[str, Any],
    meaning: Mapping[str, Any],
    generator: np.random.Generator,
    *,
    tolerance: float,
) -> Audit:
    """The audit of rows that are too many to hold."""
    check_metrics(metric_names(options["metrics"]))
    threshold = threshold_asked(options["threshold"])
    most = groups_allowed(meaning["most_groups"])
    rows = Rows(source, roles, most)
    survey, tally = rows.surveyed(threshold if isinstance(threshold, float) else DEFAULT_THRESHOLD)
    _check_some(source, roles, survey.rows)
    codes = list(np.array(rows.cells).T)
    columns = decoded(roles, rows.levels, codes, is_text=source.is_text)
    ends = np.full(len(rows.cells), survey.low)
    ends[-1] = survey.high  # all that is asked of the predictions is their range
    pos_label = _positive(meaning["pos_label"], columns["y_true"])
    data = given(ends, **columns, **{**meaning, "pos_label": pos_label, "most_groups": most})
    request = requested(data, **options)
    cells = Cells(data, tally, roles.weight is not None)
    return Audit(streamed(rows, cells, survey, request, generator, tolerance=tolerance))
