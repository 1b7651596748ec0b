"""``audit_file(...)``: the audit of scores in files of any size."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Required, TypeAlias, Unpack, overload

import numpy as np

from metrifair.api.audit import audit, one_or_compared
from metrifair.api.audit_result import Audit
from metrifair.auditing.out_of_core.columns import LOOKED_AT, check_models, roles_by_score
from metrifair.auditing.out_of_core.counting import FileRows
from metrifair.auditing.out_of_core.files import FileTable, opened
from metrifair.auditing.out_of_core.formats import AS_USUAL, ReadOptions
from metrifair.auditing.records import Favorable
from metrifair.auditing.request import AuditArguments, AuditOptions, Criteria, Request, Threshold, groups_allowed
from metrifair.auditing.source import AuditSource, BinnedSource, ColumnSource, audit_source
from metrifair.errors import DataError
from metrifair.support.checks import seed_of
from metrifair.support.provenance import read_score_origin, source_files
from metrifair.support.signatures import as_in

if TYPE_CHECKING:
    import polars as pl

    from metrifair.api.compare import AuditDifference

PathLike: TypeAlias = "str | os.PathLike[str]"


class _FileArguments(AuditArguments, total=False):
    group: Required[str | Sequence[str]]
    label: str | None
    control: str | Sequence[str] | None
    weight: str | None
    reading: ReadOptions


@overload
def audit_file(path: PathLike, *, score: str, **others: Unpack[_FileArguments]) -> Audit: ...
@overload
def audit_file(
    path: PathLike, *, score: Sequence[str], **others: Unpack[_FileArguments]
) -> Audit | AuditDifference: ...
@as_in(audit)
def audit_file(
    path: PathLike,
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
    reading: ReadOptions = AS_USUAL,
) -> Audit | AuditDifference:
    """Audit the columns of a file: csv, tsv, parquet, arrow, ndjson, Excel, a pattern of such files, or "-".

    Files of any size are audited in bounded memory. Beyond ``AuditOptions.in_memory_rows`` rows, the Kolmogorov
    distance is exact up to rounding and every other distance has a bracket. Rows without a score, label, weight or any
    group are left out and counted.

    Parameters
    ----------
    path : str or path-like
        The file, a pattern such as ``"scores/*.parquet"``, or "-" for standard input.
    score : str or sequence of str
        The score column. Several columns are the scores of several models; each is compared with the first.
    group : str or sequence of str
        The columns of the protected attributes.
    label : str, default=None
        The outcome column.
    control : str or sequence of str, default=None
        The columns of the strata.
    weight : str, default=None
        The weight column.
    criteria, metrics, threshold : as in audit
    pos_label : object, default=None
        The positive label; by default the last one in ascending order. Text that names a number is that number.
    favorable, favorable_decision, intersectional, random_state, options : as in audit
    reading : ReadOptions, default=ReadOptions()
        How the file is read, such as ``ReadOptions(encoding="cp1252", missing=["N/A"])``.

    Returns
    -------
    Audit or AuditDifference
        The result of ``audit``. Distances computed out of core have a ``bracket``.

    Raises
    ------
    DataError
        If the file cannot be read, or an argument cannot be used.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "scores.csv")
    ...     _ = file.write_text("p,sex,y\\n0.2,f,0\\n0.8,f,1\\n0.4,m,1\\n0.9,m,1\\n,m,1\\n")
    ...     result = audit_file(file, score="p", group="sex", label="y", random_state=0)
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
    with opened(path, reading) as source:
        for roles in roles_by_name.values():
            source.check(roles.by_role)
        columns = tuple(dict.fromkeys(name for roles in roles_by_name.values() for name in roles.columns))
        head = _head(source, columns, request.in_memory_rows)
        scores = list(roles_by_name)
        if len(scores) > 1 and favorable_decision is None:
            check_models(source.head(scores, LOOKED_AT) if head is None else head, scores)
        files = source_files(source.paths, source.name if source.is_copy else None)
        origin = None if reading.replace else read_score_origin(path, files)
        audits = {}
        for name, roles in roles_by_name.items():
            rows: AuditSource = BinnedSource(FileRows(source, roles, groups_allowed(request.max_groups)))
            if head is not None:
                rows = ColumnSource(source.name, roles, head, scores, source.is_text)
            result = audit_source(rows, request, generator)
            scored = origin if origin is not None and roles.score in origin.columns else None
            facts = {"seed": seed, "columns": roles.by_role, "files": files, "score_origin": scored}
            result = result.with_provenance(audit_file, arguments, **facts)
            audits[name] = Audit(result.record, result.rows)
    return one_or_compared(audits, several=len(audits) > 1)


def _head(source: FileTable, columns: Sequence[str], most: int) -> pl.DataFrame | None:
    """All rows, or None where there are more than ``most``."""
    if (source.rows() or 0) > most:
        return None
    head = source.head(columns, most + 1)
    if len(head) == 0:
        raise DataError(f"{source.name} has no rows")
    return head if len(head) <= most else None
