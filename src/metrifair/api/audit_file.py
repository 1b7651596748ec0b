"""``audit_file(...)``: the audit of scores in files of any size."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack, overload

import numpy as np

from metrifair.api.audit import audit
from metrifair.api.audit_result import Audit
from metrifair.api.compare import AuditDifference, one_or_compared
from metrifair.auditing.out_of_core.columns import IN_MEMORY_ROWS, LOOKED_AT, not_models, roles_by_score, sum_to_one
from metrifair.auditing.out_of_core.counting import FileRows
from metrifair.auditing.out_of_core.files import FileTable, opened
from metrifair.auditing.out_of_core.formats import FileOptions
from metrifair.auditing.request import AuditOptions, ColumnOptions, Request, groups_allowed
from metrifair.auditing.source import AuditSource, BinnedSource, ColumnSource, audit_source
from metrifair.errors import DataError
from metrifair.support.checks import seed_of
from metrifair.support.provenance import source_files
from metrifair.support.signatures import as_in

if TYPE_CHECKING:
    import polars as pl


class _FileOptions(ColumnOptions, total=False):
    format: str | None
    separator: str | None
    decimal: str
    encoding: str | None
    header: bool
    day_first: bool
    sheet: str | None
    replace: Mapping[str, object] | None


@overload
def audit_file(
    path: str | os.PathLike[str], *, score: str, group: str | Sequence[str], **options: Unpack[_FileOptions]
) -> Audit: ...
@overload
def audit_file(
    path: str | os.PathLike[str], *, score: Sequence[str], group: str | Sequence[str], **options: Unpack[_FileOptions]
) -> Audit | AuditDifference: ...
@as_in(audit)
def audit_file(
    path: str | os.PathLike[str],
    *,
    score: str | Sequence[str],
    group: str | Sequence[str],
    label: str | None = None,
    control: str | Sequence[str] | None = None,
    weight: str | None = None,
    tolerance: float = 1e-5,
    format: str | None = None,  # noqa: A002
    separator: str | None = None,
    decimal: str = ".",
    encoding: str | None = None,
    header: bool = True,
    day_first: bool = False,
    sheet: str | None = None,
    missing: str | Sequence[str] = (),
    replace: Mapping[str, object] | None = None,
    in_memory_rows: int = IN_MEMORY_ROWS,
    **options: Unpack[AuditOptions],
) -> Audit | AuditDifference:
    """The audit of the columns of a file: csv, tsv, parquet, arrow, ndjson, Excel, a pattern of such files, or "-".

    Rows without a score, label, weight or any group are left out and counted. Up to ``in_memory_rows`` rows are held in
    memory. More are counted in a few passes with bounded memory: the Kolmogorov distance is exact, every other one
    comes with a proven bracket no wider than ``tolerance``; intervals and p-values are those of the counts.

    Parameters
    ----------
    path : str or path-like
        A file, a pattern such as ``"scores/*.parquet"``, or "-" for standard input.
    score : str or sequence of str
        The column of the scores; several are the scores of several models, each audited and compared with the first.
    group : str or sequence of str
        The column of the groups; several are several attributes.
    label : str, default=None
        The column of the outcomes.
    control : str or sequence of str, default=None
        The columns of the strata.
    weight : str, default=None
        The column of the weights.
    criteria, metrics, threshold, confidence, random_state : as in audit
    tolerance : float, default=1e-5
        How wide the bracket of a distance may be: a share of the range of the scores (in their unit, as the metric).
    contrast, intersectional, continuous, cuts : as in audit
    pos_label : object, default=None
        The positive label; by default the last one in ascending order. Text that names a number is that number.
    loss : {"log_loss", "squared_error", "absolute_error", "huber"}, default=None
        The loss that the criterion ``risk_parity`` compares; not for files too large to hold.
    score_range, resamples, permutations, max_groups, min_group_size, vc_dimension : as in audit
    standard, reference, favorable, min_group_share, title, about : as in audit
    format : {"csv", "tsv", "parquet", "arrow", "ndjson", "excel"}, default=None
        Where the ending does not tell; "-" is csv by default.
    separator : str, default=None
        Of the columns of a text file; by default "," in csv (";" where ``decimal`` is a comma), and a tab in tsv.
    decimal : {".", ","}, default="."
        The decimal sign of numbers that are written as text.
    encoding : str, default=None
        Of a text file, such as "cp1252" or "utf-16"; by default UTF-8.
    header : bool, default=True
        Whether the first row of a csv, tsv or Excel file names the columns; if not, their names are "1", "2", ...
    day_first : bool, default=False
        Whether dates written as text begin with the day, such as 31.12.2026 or 31/12/2026; then they are 2026-12-31.
    sheet : str, default=None
        Of an Excel file; not needed where it has one sheet.
    missing : str or sequence of str, default=()
        What stands for a missing value, besides an empty cell, in all columns, whatever its case: such as "N/A" or
        "-9". In scores, weights and labels "NA", "N/A", "NaN", "null", "none" and "?" do so anyway; of groups, they
        are names.
    replace : dict of str to object, default=None
        What is read in place of which text, in all columns of text, such as ``{"Approved": 1, "Declined": 0}``;
        booleans are read as 1 and 0. A column of another kind that holds such a value is an error.
    in_memory_rows : int, default=2000000
        Up to so many rows are held in memory.

    Returns
    -------
    Audit
        As that of ``audit``; distances of counted rows have a ``bracket``. Of several scores an ``AuditDifference``.

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
    given = {**locals(), **options}
    request = Request.of(audit_file, options)
    seed = seed_of(request.random_state)
    every = roles_by_score(score, request, tolerance, group=group, label=label, control=control, weight=weight)
    generator = np.random.default_rng(seed)
    reading = FileOptions(format, separator, decimal, encoding, header, day_first, sheet, missing, replace)
    with opened(path, reading) as source:
        for roles in every.values():
            source.check(roles.by_role)
        head = _head(
            source, tuple(dict.fromkeys(name for one in every.values() for name in one.columns)), in_memory_rows
        )
        scores = list(every)
        if len(scores) > 1 and sum_to_one(source.head(scores, LOOKED_AT) if head is None else head, scores):
            raise not_models(scores)
        files = source_files(source.paths, source.name if source.is_copy else None)
        audits = {}
        for name, roles in every.items():
            rows: AuditSource = BinnedSource(FileRows(source, roles, groups_allowed(request.max_groups)), tolerance)
            if head is not None:
                rows = ColumnSource(source.name, roles, head, scores, source.is_text)
            found = audit_source(rows, request, generator)
            found = found.with_provenance(audit_file, given, seed=seed, columns=roles.by_role, files=files)
            audits[name] = Audit(found.record, found.rows)
    return one_or_compared(audits)


def _head(source: FileTable, columns: Sequence[str], most: int) -> pl.DataFrame | None:
    """All rows, or None where there are more than ``most``."""
    if (source.rows() or 0) > most:
        return None
    head = source.head(columns, most + 1)
    if len(head) == 0:
        raise DataError(f"{source.name} has no rows")
    return head if len(head) <= most else None
