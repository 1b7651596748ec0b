"""Evidence of an audit: counts, their audit, and all that is derived from both, as the files of
a folder or archive.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from metrifair import report
from metrifair.api.audit_tables import audit_fields
from metrifair.auditing.audit_record import AuditedRows, audit_counts, record_with_rates
from metrifair.auditing.group_measures import audited_by_group
from metrifair.auditing.groups.counts_file import counts_content
from metrifair.auditing.groups.same_rows import check_same_rows
from metrifair.auditing.groups.search import GroupFinder
from metrifair.auditing.groups.search_counts import SearchCounts
from metrifair.auditing.measure.sample import WITHHELD
from metrifair.auditing.measure.selection import DEFAULT_THRESHOLD
from metrifair.auditing.notes import release_notes, released_note
from metrifair.auditing.records import AuditRecord, GridError
from metrifair.auditing.release.evidence_format import (
    AUDIT_FILE,
    GROUPS,
    MANIFEST,
    PAGE,
    PRINT,
    README,
    SIGNATURE,
    Manifest,
    check_place,
    counts_names,
    file_hashes,
    record_bytes,
    write_files,
)
from metrifair.auditing.release.released_rows import parts_of_rows
from metrifair.auditing.release.releases import ReleaseEntry, record_release, row_hashes
from metrifair.auditing.release.suppression import (
    grid_error,
    joined,
    released_counts,
    spread,
    without_groups,
)
from metrifair.auditing.request import Request
from metrifair.auditing.sources.state_file import state_content
from metrifair.auditing.sources.state_parts import StateParts, StateValue, state_value
from metrifair.errors import DataError, MissingBrowser
from metrifair.figures.selection_rates import STANDARDS
from metrifair.problem.values import canonical
from metrifair.saving.modelfile import to_bytes
from metrifair.support.checks import as_names, check_integer, check_switches, make_seed
from metrifair.support.files import csv_bytes, write_json
from metrifair.support.json_bounds import check_json
from metrifair.support.provenance import Provenance
from metrifair.support.ssh_signatures import sign
from metrifair.wording.crosswalks import crosswalk_named
from metrifair.wording.evidence import readme_text
from metrifair.wording.groups import group_table
from metrifair.wording.tables import FrameColumns, finding_table, metric_frame, rate_frame

_SHOWN = ("threshold", "score_range", "cuts", "favorable_decision", "intersectional", "standard")
WITHHELD_ROUNDED = "withheld_rounded"  # rows, as a power of two


def write_evidence(
    record: AuditRecord,
    rows: AuditedRows | None,
    path: str | os.PathLike[str],
    *,
    min_cell: int = 1,
    score_digits: int | None = None,
    crosswalks: str | Sequence[str] = (),
    sign_with: str | os.PathLike[str] | None = None,
    pdf: bool = True,
    again: bool = False,
    counted_by: Mapping[str, Any] | None = None,
    search_counts: SearchCounts | None = None,
) -> AuditRecord:
    """Write the counts of an audit, their audit, and all that is derived from both; return the
    audit of the counts.

    ``again`` permits other parameters than those of an earlier release of the same rows.
    ``counted_by`` are the parameters with which a file was counted; an audit of counts does not
    contain them. A search for groups is withheld if cells have a minimum: its groups overlap, so
    that differences of their counts would show smaller cells.
    """
    rows = _rows_for_evidence(record, rows, search_counts)
    check_integer("min_cell", min_cell, least=1)
    check_switches(again=again)
    if score_digits is not None:
        check_integer("score_digits", score_digits, least=0)
    names = as_names("crosswalks", crosswalks)
    for name in names:
        crosswalk_named(name)
    request = replace(rows.request, **counted_by or {})
    parts = parts_of_rows(rows, score_digits, coarse=min_cell > 1)
    release = released_counts(
        parts, min_cell, score_digits, joint=is_joint(request.intersectional, request.standard)
    )
    counts = counts_names(len(release.tables))
    manifest = Manifest(
        kind="metrifair evidence",
        version=1,
        files={},
        parameters=_parameters(request, parts),
        provenance=released_provenance(record.provenance, release.suppressed),
        platform=platform.platform(),
        crosswalks=list(names),
        min_cell=min_cell,
        score_digits=score_digits,
        suppressed=release.suppressed,
        grid=dict(zip(counts, map(list, release.grid), strict=False)),
        search=_search_state(search_counts, min_cell),
    )
    released_search = search_counts if manifest.search == "counted" else None
    recounted = recomputed_record(release.tables, manifest, released_search)
    manifest = msgspec.structs.replace(manifest, provenance=recounted.provenance)
    contents = [to_bytes(state_content(table)) for table in release.tables]
    files = dict(zip(counts, contents, strict=True))
    if released_search is not None:
        files[GROUPS] = to_bytes(counts_content(released_search))
    files[AUDIT_FILE] = f"{write_json(audit_fields(recounted))}\n".encode()
    published = record_in(files[AUDIT_FILE])
    if pdf:
        with suppress(MissingBrowser):
            files[PRINT] = printed_page(report_page(published, manifest))
    files |= derived_files(published, release.tables, manifest, printed=PRINT in files)
    files[MANIFEST] = record_bytes(msgspec.structs.replace(manifest, files=file_hashes(files)))
    if sign_with is not None:
        files[SIGNATURE] = sign(files[MANIFEST], sign_with)
    check_place(Path(path))
    shown = _shown_parameters(manifest, parts, released_search)
    hashes = row_hashes(rows, parts, [file.sha256 for file in record.provenance.files])
    entry = ReleaseEntry(
        rows=hashes, name=Path(path).name, time=recounted.provenance.time, parameters=shown
    )
    # first: a release that was not listed could not be refused later
    record_release(Path(path), entry, again=again)
    write_files(Path(path), files)
    return recounted


def _rows_for_evidence(
    record: AuditRecord, rows: AuditedRows | None, search_counts: SearchCounts | None
) -> AuditedRows:
    """The rows; a DataError if figures cannot be recomputed from counts of them."""
    if rows is None:
        raise DataError(
            "this audit was copied or read from a file, without its rows; audit the rows again"
        )
    if record.group_search is not None and search_counts is None:
        raise DataError("the search for groups of this audit was copied, without its counts")
    if rows.sample.problem.clusters is not None:
        raise DataError(
            "evidence contains counts of scores, from which intervals of rows in clusters cannot "
            "be recomputed",
            remedy="write the audit with to_json or to_html",
        )
    return rows


def _search_state(
    search_counts: SearchCounts | None, min_cell: int
) -> Literal["", "counted", "withheld"]:
    if search_counts is None:
        return ""
    return "counted" if min_cell == 1 else "withheld"


def _shown_parameters(
    manifest: Manifest, parts: StateParts, search_counts: SearchCounts | None
) -> dict[str, Any]:
    """The parameters that decide what a release shows of its rows; others change only the
    figures.
    """
    shape = None
    if parts.shape is not None:
        shape = parts.shape.as_json()
    of_rows = {name: manifest.parameters[name] for name in _SHOWN}
    released = {
        "min_cell": manifest.min_cell,
        "score_digits": manifest.score_digits,
        "columns": shape,
    }
    score = {"score": list(manifest.provenance.columns.get("score", ()))}
    searched: dict[str, Any] = {}
    if search_counts is not None:
        columns = [column.name for column in search_counts.columns]
        searched = {"search": [search_counts.outcome, asdict(search_counts.settings), columns]}
    shown = {**of_rows, **released, **score, **searched}
    parameters: dict[str, Any] = json.loads(json.dumps(shown))
    return parameters


def is_joint(intersectional: bool, standard: str | None) -> bool:
    """Whether an audit compares intersections of attributes, so that its cells are those of all
    attributes together.
    """
    return intersectional or STANDARDS[standard or ""].crossed


def released_provenance(
    provenance: Provenance, suppressed: Mapping[str, Sequence[StateValue]]
) -> Provenance:
    """The provenance without the sizes of files, if they could give the number of withheld rows."""
    if not suppressed:
        return provenance
    return replace(provenance, files=[replace(file, size=None) for file in provenance.files])


def _parameters(request: Request, parts: StateParts) -> dict[str, Any]:
    """All parameters of an audit as JSON values."""
    values = {
        field.name: getattr(request, field.name)
        for field in fields(Request)
        if field.name != "in_memory_rows"
    }
    values |= {"score_range": parts.score_range, "threshold": parts.threshold}
    values["criteria"] = [criterion.name for criterion in request.named_criteria()]
    values["pos_label"], values["favorable_decision"] = map(
        canonical, (request.pos_label, request.favorable_decision)
    )
    if isinstance(request.reference, Mapping):
        values["reference"] = {
            name: state_value(value) for name, value in request.reference.items()
        }
    parameters: dict[str, Any] = json.loads(json.dumps(values))
    return parameters


def recomputed_record(
    tables: Sequence[StateParts], manifest: Manifest, search_counts: SearchCounts | None
) -> AuditRecord:
    """The record of an audit of the counts, with the parameters and the provenance of the
    manifest; and its search for groups, from the counts of these.
    """
    parameters = dict(manifest.parameters)
    provenance = manifest.provenance
    of_rates = {name: parameters.pop(name) for name in ("standard", "reference", "min_group_share")}
    of_rows = {name: parameters.pop(name) for name in ("cuts", "favorable_decision")}
    error = released_error(tables, manifest)
    if error is not None:
        names = counts_names(len(tables))
        spreads = [
            spread(table, manifest.grid[name]) for table, name in zip(tables, names, strict=True)
        ]
        tables = without_groups(spreads, error.unresolved)
    parts = joined(tables)
    request = Request(**parameters | {"threshold": parts.threshold, "score_range": None}).checked()
    record, rows = audit_counts(parts, request, make_seed(provenance.seed))
    request = replace(rows.request, **of_rows).by_standard(**of_rates)
    record = record_with_rates(record, rows.sample, request)
    hidden = {*manifest.suppressed, *(() if error is None else error.unresolved)}
    released = release_notes(
        manifest.suppressed,
        manifest.min_cell,
        manifest.score_digits,
        error,
        without_search=manifest.search == "withheld",
    )
    notes = [*released, *(released_note(note, hidden) for note in record.notes)]
    group_search = None
    if search_counts is not None:
        group_search = GroupFinder(search_counts).record()
        check_same_rows(record, group_search)
    return replace(
        record,
        notes=notes,
        group_search=group_search,
        provenance=replace(provenance, **_row_counts(record, manifest)),
    )


def _row_counts(record: AuditRecord, manifest: Manifest) -> dict[str, Any]:
    """The numbers of rows: of those that are withheld, only a power of two that is not smaller."""
    read = record.provenance.rows_read
    left_out = dict(record.provenance.left_out)
    if not manifest.suppressed:
        return {"rows_read": read, "left_out": left_out}
    return {"rows_read": None, "left_out": left_out | {WITHHELD_ROUNDED: left_out.pop(WITHHELD, 0)}}


def released_error(tables: Sequence[StateParts], manifest: Manifest) -> GridError | None:
    """The largest differences that the grid of the released scores can make; None if scores are
    not on a grid.
    """
    if not manifest.grid:
        return None
    names = counts_names(len(tables))
    sizes = [0 if table.counts is None else len(table.counts.rows) for table in tables]
    if [len(manifest.grid.get(name, ())) for name in names] != sizes:
        raise DataError("the manifest does not list one interval of scores for each count")
    smallest = [
        table.counts.rows.min(initial=manifest.min_cell)
        for table in tables
        if table.counts is not None
    ]
    if min(smallest, default=manifest.min_cell) < manifest.min_cell:
        raise DataError(
            f"a count has fewer than {manifest.min_cell:,} rows, the minimum that the manifest "
            "states"
        )
    return grid_error(
        tables, [manifest.grid[name] for name in names], _threshold(tables[0], manifest)
    )


def _threshold(parts: StateParts, manifest: Manifest) -> float | None:
    """The threshold of the decisions; None if there are none, or if it is computed from the
    scores.
    """
    if isinstance(parts.threshold, int | float):
        return parts.threshold
    low, high = parts.score_range
    is_median = STANDARDS[manifest.parameters["standard"] or ""].by_median
    if low >= 0 and high <= 1 and not is_median:
        return DEFAULT_THRESHOLD
    return None


def record_in(content: bytes) -> AuditRecord:
    """The record in an audit.json."""
    check_json(content)
    return msgspec.json.decode(content, type=AuditRecord)


def report_page(record: AuditRecord, manifest: Manifest) -> str:
    """The report: the figures, and the crosswalks that the manifest names."""
    title = record.provenance.title or "Fairness audit"
    crosswalks = map(crosswalk_named, manifest.crosswalks)
    return report.audit_html(record, title=title, crosswalks=list(crosswalks))


def derived_files(
    record: AuditRecord, tables: Sequence[StateParts], manifest: Manifest, *, printed: bool
) -> dict[str, bytes]:
    """The files that state the figures of audit.json in other forms."""
    files = {
        PAGE: report_page(record, manifest).encode(),
        "tables/findings.csv": _table(record.findings, finding_table(record).frame()),
        "tables/rates.csv": _table(*rate_frame(record)),
        "tables/by_group.csv": _table(*metric_frame(audited_by_group(record))),
    }
    search = record.group_search
    if search is not None:
        files["tables/groups.csv"] = _table(search.worse, group_table(search).frame())
    for name in manifest.crosswalks:
        items = crosswalk_named(name).items
        table = {column: [item[column] for item in items] for column in ("item", "figure", "place")}
        files[f"tables/crosswalk-{name}.csv"] = csv_bytes(table)
    names = [*files, AUDIT_FILE, *counts_names(len(tables)), *([PRINT] if printed else [])]
    if manifest.search == "counted":
        names.append(GROUPS)
    entries = np.concatenate(
        [np.zeros(0) if table.counts is None else table.counts.rows for table in tables]
    )
    single = int((entries == 1).sum()), len(entries)
    return files | {README: readme_text(record, manifest, names, single).encode()}


def _table(rows: Sequence[Any], columns: FrameColumns) -> bytes:
    return csv_bytes({name: [value(row) for row in rows] for name, (_, value) in columns.items()})


def printed_page(page: str) -> bytes:
    """A page as a PDF file; a MissingBrowser error where no browser can print it."""
    with tempfile.TemporaryDirectory(prefix="metrifair-") as folder:
        return report.print_pdf(
            lambda path: report.write_html(path, page), Path(folder, PRINT)
        ).read_bytes()
