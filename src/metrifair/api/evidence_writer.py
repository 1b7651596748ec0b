"""Evidence of an audit: counts, their audit, and all that is derived from both, as the files of a folder or archive."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from metrifair import report
from metrifair.auditing.evidence import (
    AUDIT,
    COUNTS,
    MANIFEST,
    PAGE,
    PRINT,
    README,
    SIGNATURE,
    Manifest,
    file_hashes,
    manifest_bytes,
    write_files,
)
from metrifair.auditing.notes import release_notes, released_note
from metrifair.auditing.record import record_with_rates
from metrifair.auditing.records import AuditRecord
from metrifair.auditing.request import Request
from metrifair.auditing.state_file import StateParts, Value, plain, state_content
from metrifair.auditing.state_rows import audit_counts, parts_of_rows
from metrifair.auditing.suppression import with_merged_scores, with_rounded_scores, without_small_cells
from metrifair.errors import DataError, MissingBrowser
from metrifair.problem.values import canonical
from metrifair.saving.modelfile import to_bytes
from metrifair.support.checks import as_names, check_integer, make_seed
from metrifair.support.files import csv_bytes
from metrifair.support.ssh_signatures import sign
from metrifair.wording.crosswalks import crosswalk_named
from metrifair.wording.evidence import readme_text

if TYPE_CHECKING:  # which writes evidence of itself
    from metrifair.api.audit_result import Audit, FrameColumns


def write_evidence(
    audit: Audit,
    path: str | os.PathLike[str],
    *,
    min_cell: int = 1,
    score_digits: int | None = None,
    crosswalks: str | Sequence[str] = (),
    sign_with: str | os.PathLike[str] | None = None,
    pdf: bool = True,
    counted_by: Mapping[str, Any] | None = None,
) -> Audit:
    """Write the counts of an audit, their audit, and all that is derived from both; return the audit of the counts.

    ``counted_by`` are the parameters with which a file was counted; an audit of counts does not contain them.
    """
    if audit.rows is None:
        raise DataError("this audit was copied or read from a file, without its rows; audit the rows again")
    check_integer("min_cell", min_cell, least=1)
    if score_digits is not None:
        check_integer("score_digits", score_digits, least=0)
    names = as_names("crosswalks", crosswalks)
    for name in names:
        crosswalk_named(name)
    parts, suppressed = released_counts(
        parts_of_rows(audit.rows, score_digits, coarse=min_cell > 1), min_cell, score_digits
    )
    manifest = Manifest(
        kind="metrifair evidence",
        version=1,
        files={},
        parameters=_parameters(replace(audit.rows.request, **counted_by or {}), parts),
        provenance=audit.provenance,
        platform=platform.platform(),
        crosswalks=list(names),
        min_cell=min_cell,
        score_digits=score_digits,
        suppressed=suppressed,
    )
    recounted = replace(audit, record=recomputed_record(parts, manifest), rows=None)
    manifest = msgspec.structs.replace(manifest, provenance=recounted.provenance)
    files = {COUNTS: to_bytes(state_content(parts)), AUDIT: f"{recounted.to_json()}\n".encode()}
    published = replace(recounted, record=record_in(files[AUDIT]))
    if pdf:
        with suppress(MissingBrowser):
            files[PRINT] = printed_page(report_page(published, manifest))
    files |= derived_files(published, parts, manifest, printed=PRINT in files)
    files[MANIFEST] = manifest_bytes(msgspec.structs.replace(manifest, files=file_hashes(files)))
    if sign_with is not None:
        files[SIGNATURE] = sign(files[MANIFEST], sign_with)
    write_files(Path(path), files)
    return recounted


def released_counts(
    parts: StateParts, min_cell: int, score_digits: int | None
) -> tuple[StateParts, dict[str, list[Value]]]:
    """The counts that are released, and the groups and strata that were suppressed, by column."""
    released, suppressed = without_small_cells(parts, min_cell)
    released = with_merged_scores(released, min_cell)  # first: rounding can give selected and other rows one score
    return released if score_digits is None else with_rounded_scores(released, score_digits), suppressed


def _parameters(request: Request, parts: StateParts) -> dict[str, Any]:
    """All parameters of an audit as JSON values."""
    values = {field.name: getattr(request, field.name) for field in fields(Request) if field.name != "in_memory_rows"}
    values |= {"score_range": parts.score_range, "threshold": parts.threshold}
    values["criteria"] = [criterion.name for criterion in request.named_criteria()]
    values["pos_label"], values["favorable_decision"] = map(canonical, (request.pos_label, request.favorable_decision))
    if isinstance(request.reference, Mapping):
        values["reference"] = {name: plain(value) for name, value in request.reference.items()}
    parameters: dict[str, Any] = json.loads(json.dumps(values))
    return parameters


def recomputed_record(parts: StateParts, manifest: Manifest) -> AuditRecord:
    """The record of an audit of the counts, with the parameters and the provenance of the manifest."""
    parameters, provenance = dict(manifest.parameters), manifest.provenance
    of_rates = {name: parameters.pop(name) for name in ("standard", "reference", "min_group_share")}
    of_rows = {name: parameters.pop(name) for name in ("cuts", "favorable_decision")}
    request = Request(**parameters | {"threshold": parts.threshold, "score_range": None}).checked()
    record, rows = audit_counts(parts, request, make_seed(provenance.seed))
    request = replace(rows.request, **of_rows).by_standard(**of_rates)
    record = record_with_rates(record, rows.sample, request)
    released = release_notes(manifest.suppressed, manifest.min_cell, manifest.score_digits)
    notes = [*released, *(released_note(note, manifest.suppressed) for note in record.notes)]
    row_counts = {name: getattr(record.provenance, name) for name in ("rows_read", "left_out")}
    return replace(record, notes=notes, provenance=replace(provenance, **row_counts))


def record_in(content: bytes) -> AuditRecord:
    """The record in an audit.json."""
    return msgspec.json.decode(content, type=AuditRecord)


def report_page(audit: Audit, manifest: Manifest) -> str:
    """The report: the figures, and the crosswalks that the manifest names."""
    title, crosswalks = audit.provenance.title or "Fairness audit", map(crosswalk_named, manifest.crosswalks)
    return report.audit_html(audit.record, title=title, crosswalks=list(crosswalks))


def derived_files(audit: Audit, parts: StateParts, manifest: Manifest, *, printed: bool) -> dict[str, bytes]:
    """The files that state the figures of audit.json in other forms."""
    files = {
        PAGE: report_page(audit, manifest).encode(),
        "tables/findings.csv": _table(*audit.rows_and_columns()),
        "tables/rates.csv": _table(*audit.rates().rows_and_columns()),
        "tables/by_group.csv": csv_bytes(audit.by_group().columns()),
    }
    for name in manifest.crosswalks:
        items = crosswalk_named(name).items
        table = {column: [item[column] for item in items] for column in ("item", "figure", "place")}
        files[f"tables/crosswalk-{name}.csv"] = csv_bytes(table)
    names = [*files, AUDIT, COUNTS, *([PRINT] if printed else [])]
    entries = np.zeros(0) if parts.counts is None else parts.counts.rows
    single = int((entries == 1).sum()), len(entries)
    return files | {README: readme_text(audit.record, manifest, names, single).encode()}


def _table(rows: Sequence[Any], columns: FrameColumns) -> bytes:
    return csv_bytes({name: [value(row) for row in rows] for name, (_, value) in columns.items()})


def printed_page(page: str) -> bytes:
    """A page as a PDF file; a MissingBrowser error where no browser can print it."""
    with tempfile.TemporaryDirectory(prefix="metrifair-") as folder:
        return report.print_pdf(lambda path: report.write_html(path, page), Path(folder, PRINT)).read_bytes()
