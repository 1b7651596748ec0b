"""``audit_file(...)`` and ``audit_table(...)``: the audit of scores in columns, of files or of
tables of any size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np

from metrifair.api.audit import audit, only_or_comparison
from metrifair.api.audit_result import Audit
from metrifair.auditing.audit_record import AuditSource, audit_source
from metrifair.auditing.records import Favorable
from metrifair.auditing.request import (
    AuditArguments,
    AuditOptions,
    Criteria,
    Request,
    RequestArguments,
    ThresholdChoice,
    groups_allowed,
)
from metrifair.auditing.sources.column_roles import (
    ColumnArguments,
    FurtherColumns,
    Roles,
    roles_by_score,
)
from metrifair.auditing.sources.column_values import (
    SAMPLED_ROWS,
    check_favorable,
    check_models,
    not_models,
)
from metrifair.auditing.sources.connections import DatabaseTable
from metrifair.auditing.sources.file_formats import AS_USUAL, ReadOptions
from metrifair.auditing.sources.file_tables import FileTable, open_files
from metrifair.auditing.sources.memory import ColumnSource, repeated_ids
from metrifair.errors import DataError
from metrifair.problem.clusters import is_id_name
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.predictions import ROUNDING
from metrifair.problem.tables import table_library
from metrifair.saving.modelfile import PathLike
from metrifair.support.checks import make_seed
from metrifair.support.provenance import call_text, read_score_origin, source_files
from metrifair.support.signatures import as_in

if TYPE_CHECKING:
    import polars as pl

    from metrifair.api.compare import AuditDifference
    from metrifair.auditing.sources.table_rows import TableRows


class _ColumnArguments(AuditArguments, FurtherColumns, total=False):
    pass


class _FileArguments(_ColumnArguments, total=False):
    reading: ReadOptions


class _TableArguments(_ColumnArguments, total=False):
    missing: str | Sequence[str]


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
    group: str | Sequence[str] | GroupProbabilities,
    label: str | None = None,
    control: str | Sequence[str] | None = None,
    weight: str | None = None,
    clusters: str | None = None,
    criteria: Criteria = None,
    metrics: Sequence[str] | str | None = None,
    threshold: ThresholdChoice = "auto",
    pos_label: object = None,
    favorable: Favorable = "high",
    favorable_decision: object = None,
    intersectional: bool = False,
    random_state: Any = 0,
    options: AuditOptions | None = None,
    reading: ReadOptions = AS_USUAL,
) -> Audit | AuditDifference:
    """Audit the columns of a file: csv, tsv, parquet, arrow, ndjson, Excel, a pattern of such
    files, or "-".

    Files of any size are audited in bounded memory. Beyond ``AuditOptions.in_memory_rows`` rows,
    scores are counted in bins and every distance has a bracket. Rows without a score, label, weight
    or any group are left out and counted.

    Parameters
    ----------
    path : str or path-like
        The file, a pattern such as ``"scores/*.parquet"``, or "-" for standard input.
    score : str or sequence of str
        The score column. Several columns are the scores of several models; each is compared with
        the first.
    group : str, sequence of str or GroupProbabilities
        The columns of the protected attributes. Where groups are not in the data, the columns of
        their probabilities.
    label : str, default=None
        The outcome column.
    control : str or sequence of str, default=None
        The columns of the strata.
    weight : str, default=None
        The weight column.
    clusters : str, default=None
        The column of the cluster of each row, such as the id of a person. Intervals and p-values
        then allow for dependent rows of a cluster. Needs rows in memory.
    criteria, metrics, threshold : as in audit
    pos_label : object, default=None
        The positive label; by default the last one in ascending order. Text that names a number is
        that number.
    favorable, favorable_decision, intersectional, random_state, options : as in audit
    reading : ReadOptions, default=ReadOptions()
        How the file is read. Example: ``ReadOptions(encoding="cp1252", missing=["N/A"])``.

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
    columns = ColumnArguments(
        score=score,
        group=group,
        label=label,
        control=control,
        weight=weight,
        clusters=clusters,
    )
    measured = RequestArguments(
        criteria=criteria,
        metrics=metrics,
        threshold=threshold,
        pos_label=pos_label,
        favorable=favorable,
        favorable_decision=favorable_decision,
        intersectional=intersectional,
    )
    request = Request.of(options, **measured)
    roles_by_name = roles_by_score(request, **columns)
    call = call_text(audit_file, path, **columns, **measured, options=options, reading=reading)
    seed = make_seed(random_state)
    with open_files(path, reading) as source:
        sources = _file_sources(source, roles_by_name, request, group=group)
        files = source_files(source.paths, source.name if source.is_copy else None)
        origin = None
        if not reading.replace:
            origin = read_score_origin(path, files)
        facts = {
            "call": call,
            "seed": seed,
            "files": files,
            "score_origin": origin,
        }
        facts["reading"] = reading.changed
        return _audit_columns(sources, roles_by_name, request, **facts)


def _file_sources(
    source: FileTable, roles_by_name: Mapping[str, Roles], request: Request, *, group: object
) -> dict[str, AuditSource]:
    """The rows of a file by the name of their scores: in memory, or counted if there are many."""
    scores = list(roles_by_name)
    first = roles_by_name[scores[0]]
    for roles in roles_by_name.values():
        source.check(roles.by_role)
    used = tuple(dict.fromkeys(name for roles in roles_by_name.values() for name in roles.columns))
    head = _head(source, used, request.in_memory_rows)
    _check_in_memory(source.name, group, first.cluster, request, in_memory=head is not None)
    if len(scores) > 1 and first.favorable_decision is None:
        check_models(source.head(scores, SAMPLED_ROWS) if head is None else head, scores)
    if head is None:
        max_groups = groups_allowed(request.max_groups)
        return {
            name: _file_rows(source, roles, max_groups) for name, roles in roles_by_name.items()
        }
    ids = {}
    if first.cluster is None:
        ids = _ids_of_file(source, used, request.in_memory_rows)
    return {
        name: ColumnSource(source.name, roles, head, scores, source.is_text, ids)
        for name, roles in roles_by_name.items()
    }


def _file_rows(source: FileTable, roles: Roles, max_groups: int) -> AuditSource:
    from metrifair.auditing.sources.file_rows import FileRows  # noqa: PLC0415 (files in memory need no narwhals)

    return FileRows.of_file(source, roles, max_groups)


def _ids_of_file(source: FileTable, used: Sequence[str], rows: int) -> dict[str, tuple[int, int]]:
    """The columns that are named like ids, have no role, and repeat."""
    names = [
        name
        for name in source.columns
        if is_id_name(name) and name not in (*used, *source.repeated)
    ]
    if names:
        return repeated_ids(source.head(names, rows))
    return {}


def _ids_of_table(table: Any, used: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The same of a table in memory; the columns of databases and of lazy tables are not read
    for that.
    """
    import narwhals.stable.v2 as nw  # noqa: PLC0415 (files need no narwhals)

    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return {}
    return repeated_ids(
        frame.select([name for name in frame.columns if is_id_name(name) and name not in used])
    )


def _head(source: FileTable, columns: Sequence[str], most: int) -> pl.DataFrame | None:
    """All rows, or None if there are more than ``most``."""
    if (source.rows() or 0) > most:
        return None
    head = source.head(columns, most + 1)
    if len(head) == 0:
        raise DataError(f"{source.name} has no rows")
    if len(head) <= most:
        return head
    return None


def _check_in_memory(
    name: str, group: object, clusters: str | None, request: Request, *, in_memory: bool
) -> None:
    """Raise a DataError for clusters, and for probabilities of groups, that are out of core."""
    if clusters is not None and not in_memory:
        raise DataError(
            f"needs rows in memory, and {name} has more than {request.in_memory_rows:,} rows",
            argument="clusters",
            received=clusters,
            remedy="raise AuditOptions.in_memory_rows if memory allows, or audit a random sample "
            "of whole clusters",
        )
    if isinstance(group, GroupProbabilities) and not in_memory:
        raise DataError(
            f"{name} has more than {request.in_memory_rows:,} rows, and group probabilities are "
            "audited in memory",
            remedy="count the rows in parts with AuditState or metrifair count, or raise "
            "AuditOptions.in_memory_rows",
        )


@overload
def audit_table(table: Any, *, score: str, **others: Unpack[_TableArguments]) -> Audit: ...
@overload
def audit_table(
    table: Any, *, score: Sequence[str], **others: Unpack[_TableArguments]
) -> Audit | AuditDifference: ...
@as_in(audit, audit_file)
def audit_table(
    table: Any,
    *,
    score: str | Sequence[str],
    group: str | Sequence[str] | GroupProbabilities,
    label: str | None = None,
    control: str | Sequence[str] | None = None,
    weight: str | None = None,
    clusters: str | None = None,
    criteria: Criteria = None,
    metrics: Sequence[str] | str | None = None,
    threshold: ThresholdChoice = "auto",
    pos_label: object = None,
    favorable: Favorable = "high",
    favorable_decision: object = None,
    intersectional: bool = False,
    random_state: Any = 0,
    options: AuditOptions | None = None,
    missing: str | Sequence[str] = (),
) -> Audit | AuditDifference:
    """Audit the columns of a table where it is: polars, pandas, DuckDB, Dask, Spark, or any SQL
    through Ibis.

    Only counts leave the table's engine. Up to ``AuditOptions.in_memory_rows`` rows, equal rows are
    counted and the audit is exact. Larger tables are counted by cell and bin, and every distance
    has a bracket. Rows without a score, label, weight or any group are left out and counted.

    Parameters
    ----------
    table : polars, pandas or pyarrow table, polars LazyFrame, DuckDB relation, Ibis table, Dask or Spark data frame
        The rows. They must not change during the audit.
    score, group, label, control, weight, clusters : as in audit_file
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
    columns = ColumnArguments(
        score=score,
        group=group,
        label=label,
        control=control,
        weight=weight,
        clusters=clusters,
    )
    measured = RequestArguments(
        criteria=criteria,
        metrics=metrics,
        threshold=threshold,
        pos_label=pos_label,
        favorable=favorable,
        favorable_decision=favorable_decision,
        intersectional=intersectional,
    )
    request = Request.of(options, **measured)
    roles_by_name = roles_by_score(request, **columns)
    call = call_text(audit_table, table, **columns, **measured, options=options, missing=missing)
    seed = make_seed(random_state)
    place = table
    if not isinstance(table, DatabaseTable):
        place = DatabaseTable("the table", table)
    files = []
    if place.file is not None:
        files = source_files([place.file])
    source = place.name if place.file is None else place.name.replace(place.file, files[0].name)
    sources = _table_sources(place, roles_by_name, request, group=group, missing=missing)
    # The rows of one score are in its order, as no other audit's are.
    context = {"ordered": len(sources) > 1, "library": table_library(place.table)}
    facts = {
        "call": call,
        "seed": seed,
        "files": files,
        "source": source,
    }
    return _audit_columns(sources, roles_by_name, request, **context, **facts)


def _table_sources(
    place: DatabaseTable,
    roles_by_name: Mapping[str, Roles],
    request: Request,
    *,
    group: object,
    missing: Any,
) -> dict[str, AuditSource]:
    """The rows of a table by the name of their scores: in memory, or counted by the engine if
    there are many.
    """
    from metrifair.auditing.sources.table_rows import TableRows  # noqa: PLC0415 (files need no narwhals)

    max_groups = groups_allowed(request.max_groups)
    scores = tuple(roles_by_name)
    rows = {
        name: TableRows.of(
            place,
            roles,
            max_groups=max_groups,
            beside=scores[1:] if name == scores[0] else (),
            missing=missing,
        )
        for name, roles in roles_by_name.items()
    }
    first = rows[scores[0]]
    if first.rows == 0:
        raise DataError(f"{place.name} has no rows")
    # One query for all scores: separate queries could return rows in different orders and mispair
    # the scores.
    in_memory = None
    if first.rows <= request.in_memory_rows:
        in_memory = first.all_rows()
    _check_in_memory(
        place.name, group, first.roles.cluster, request, in_memory=in_memory is not None
    )
    _check_scores(first, in_memory, roles_by_name)
    if in_memory is None:
        return {**rows}
    # The engine made 0 and 1 of decisions.
    numeric = {
        name: roles._replace(favorable_decision=None) for name, roles in roles_by_name.items()
    }
    ids = {}
    if first.roles.cluster is None:
        ids = _ids_of_table(place.table, in_memory.columns)
    return {
        name: ColumnSource(place.name, roles, in_memory, scores, repeated_ids=ids)
        for name, roles in numeric.items()
    }


def _audit_columns(
    sources: Mapping[str, AuditSource],
    roles_by_name: Mapping[str, Roles],
    request: Request,
    *,
    library: Any = None,
    score_origin: Any = None,
    **facts: Any,
) -> Audit | AuditDifference:
    """The audit of each source by the name of its scores; several are compared with the first."""
    generator = np.random.default_rng(facts["seed"])
    audits = {}
    for name, source in sources.items():
        facts["columns"] = roles_by_name[name].by_role
        facts["score_origin"] = (
            score_origin if score_origin is not None and name in score_origin.columns else None
        )
        audits[name] = Audit(*audit_source(source, request, generator, **facts), library)
    return only_or_comparison(audits, several=len(audits) > 1)


def _check_scores(
    rows: TableRows, in_memory: pl.DataFrame | None, roles_by_name: Mapping[str, Roles]
) -> None:
    """Raise a DataError unless columns contain the favorable decision, or scores that are not
    one model's classes.
    """
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
