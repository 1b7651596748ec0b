"""Evidence of an audit: write it as one folder or archive, and verify one that somebody else wrote."""

from __future__ import annotations

import json
import os
import platform
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from metrifair import __version__, report
from metrifair.api.audit_result import FINDING_COLUMNS, Audit, FrameColumns
from metrifair.api.compare import read_audit
from metrifair.api.state import AuditState, count_file
from metrifair.auditing.columns import Roles
from metrifair.auditing.evidence import (
    AUDIT,
    COUNTS,
    KIND,
    MANIFEST,
    PAGE,
    PRINT,
    README,
    SIGNATURE,
    VERSION,
    Check,
    Files,
    Manifest,
    count_figures,
    different_values,
    hashes_of,
    manifest_bytes,
    manifest_in,
    read_files,
    write_files,
)
from metrifair.auditing.files import matching
from metrifair.auditing.formats import ReadOptions
from metrifair.auditing.notes import release_notes
from metrifair.auditing.record import record_of_rates
from metrifair.auditing.request import AuditOptions, Request
from metrifair.auditing.state_file import Value, content_of, plain
from metrifair.auditing.suppression import with_rounded_scores, without_small_cells
from metrifair.errors import DataError, MissingBrowser
from metrifair.problem.values import canonical
from metrifair.saving.modelfile import from_bytes, to_bytes
from metrifair.support.checks import check_integer, names_of
from metrifair.support.files import csv_bytes
from metrifair.support.provenance import source_files
from metrifair.support.ssh_signatures import is_signed_by, sign
from metrifair.wording.crosswalks import crosswalk_named
from metrifair.wording.evidence import check_text, readme_text, suppression_checks, verdict_text

PathLike = str | os.PathLike[str]

_OF_ROWS = ("cuts", "loss", "score_range", "in_memory_rows")  # what counting rows takes, not auditing counts
_OF_COUNTS = ("criteria", "metrics", "pos_label", "favorable", "intersectional")
_OF_RATES = ("standard", "reference", "min_group_share")
_DATES = rb"/(?:Creation|Mod)Date \([^)]*\)"  # in a PDF file
_PRINTED_BY = rb"/(?:Creator|Producer) \([^)]*\)"


def write_evidence(
    audit: Audit,
    path: PathLike,
    *,
    min_cell: int = 1,
    score_digits: int | None = None,
    crosswalks: str | Sequence[str] = (),
    sign_with: PathLike | None = None,
    pdf: bool = True,
) -> Audit:
    """Write the counts of an audit, their audit, and all that is derived from both; return the audit of the counts."""
    if audit.rows is None:
        raise DataError("this audit was copied or read from a file, without its rows; write evidence where it is made")
    check_integer("min_cell", min_cell, least=1)
    if score_digits is not None:
        check_integer("score_digits", score_digits, least=0)
    names = names_of("crosswalks", crosswalks)
    for name in names:
        crosswalk_named(name)
    state, suppressed = _released(AuditState.of_rows(audit.rows), min_cell, score_digits)
    manifest = Manifest(
        kind=KIND,
        version=VERSION,
        files={},
        parameters=_parameters(audit.rows.request, state),
        provenance=audit.provenance,
        platform=platform.platform(),
        crosswalks=list(names),
        min_cell=min_cell,
        score_digits=score_digits,
        suppressed=suppressed,
    )
    counted = _audit_counts(state, manifest)
    manifest = msgspec.structs.replace(manifest, provenance=counted.provenance)
    files = {COUNTS: to_bytes(content_of(state)), AUDIT: f"{counted.to_json()}\n".encode()}
    if pdf:
        with suppress(MissingBrowser):
            files[PRINT] = _printed(_read(files[AUDIT]))
    files |= _derived(_read(files[AUDIT]), state, manifest, printed=PRINT in files)
    files[MANIFEST] = manifest_bytes(msgspec.structs.replace(manifest, files=hashes_of(files)))
    if sign_with is not None:
        files[SIGNATURE] = sign(files[MANIFEST], sign_with)
    write_files(Path(path), files)
    return counted


def _released(state: AuditState, min_cell: int, score_digits: int | None) -> tuple[AuditState, dict[str, list[Value]]]:
    """The counts that are handed out, and the groups and strata that were suppressed for it, by column."""
    return without_small_cells(state if score_digits is None else with_rounded_scores(state, score_digits), min_cell)


def _parameters(request: Request, state: AuditState) -> dict[str, Any]:
    """All parameters of an audit as JSON values."""
    given = {one.name: getattr(request, one.name) for one in fields(Request) if one.name != "in_memory_rows"}
    given |= {"score_range": state.score_range, "threshold": state.threshold}
    given["criteria"] = [criterion.name for criterion in request.named_criteria()]
    given["pos_label"], given["favorable_decision"] = map(canonical, (request.pos_label, request.favorable_decision))
    if isinstance(request.reference, Mapping):
        given["reference"] = {name: plain(value) for name, value in request.reference.items()}
    found: dict[str, Any] = json.loads(json.dumps(given))
    return found


def _audit_counts(state: AuditState, manifest: Manifest) -> Audit:
    """The audit of the counts, with the parameters and the provenance of the manifest."""
    parameters, provenance = manifest.parameters, manifest.provenance
    names = {one.name for one in fields(AuditOptions)}.difference(_OF_ROWS)
    options = AuditOptions(**{name: parameters[name] for name in names})
    audit = state.audit(
        **{name: parameters[name] for name in _OF_COUNTS}, random_state=provenance.seed, options=options
    )
    if audit.rows is None:  # never: it was audited just now
        return audit
    request = replace(audit.rows.request, **{name: parameters[name] for name in ("cuts", "favorable_decision")})
    request = request.by_standard(**{name: parameters[name] for name in _OF_RATES})
    record = record_of_rates(audit.record, audit.rows.sample, request)
    rows = {name: getattr(record.provenance, name) for name in ("rows_read", "left_out")}
    notes = [*release_notes(manifest.suppressed, manifest.min_cell, manifest.score_digits), *record.notes]
    return Audit(replace(record, notes=notes, provenance=replace(provenance, **rows)))


def _read(content: bytes) -> Audit:
    """The audit that an audit.json holds."""
    with tempfile.TemporaryDirectory(prefix="metrifair-") as folder:
        file = Path(folder, AUDIT)
        file.write_bytes(content)
        return read_audit(file)


def _derived(audit: Audit, state: AuditState, manifest: Manifest, *, printed: bool) -> dict[str, bytes]:
    """The files that state the figures of audit.json in other forms."""
    rates, columns = audit.rates().rows_and_columns()
    files = {
        PAGE: _page(audit).encode(),
        "tables/findings.csv": csv_bytes(_columns(audit.findings, FINDING_COLUMNS)),
        "tables/rates.csv": csv_bytes(_columns(rates, columns)),
        "tables/by_group.csv": csv_bytes(audit.by_group().columns()),
    }
    for name in manifest.crosswalks:
        items = crosswalk_named(name).items
        table = {column: [item[column] for item in items] for column in ("item", "figure", "place")}
        files[f"tables/crosswalk-{name}.csv"] = csv_bytes(table)
    names = [*files, AUDIT, COUNTS, *([PRINT] if printed else [])]
    entries = np.zeros(0) if state.counts is None else state.counts.rows
    single = int((entries == 1).sum()), len(entries)
    return files | {README: readme_text(audit.record, manifest, names, single).encode()}


def _columns(rows: Sequence[Any], columns: FrameColumns) -> dict[str, list[object]]:
    return {name: [value(row) for row in rows] for name, (_, value) in columns.items()}


def _page(audit: Audit) -> str:
    return report.audit_html(audit.record, title=audit.provenance.title or "Fairness audit")


def _printed(audit: Audit) -> bytes:
    with tempfile.TemporaryDirectory(prefix="metrifair-") as folder:
        return report.print_pdf(audit.to_html, Path(folder, PRINT)).read_bytes()


@dataclass(frozen=True, eq=False, repr=False)
class Verification:
    """What a verification of evidence found; ``verify`` returns it.

    Parameters
    ----------
    checks : sequence of Check
        Each thing that was verified, with its outcome.
    """

    checks: Sequence[Check]

    @property
    def agrees(self) -> bool | None:
        """True if every check was made and agrees, False if one found a difference, None if one could not be made."""
        outcomes = {check.outcome for check in self.checks}
        return False if "differs" in outcomes else None if "unchecked" in outcomes else True

    @property
    def summary(self) -> Sequence[str]:
        """The result in one sentence, then one line for each check."""
        return [verdict_text(self.checks), *map(check_text, self.checks)]

    def __repr__(self) -> str:
        return "\n".join(self.summary)


def verify(path: PathLike, *, data: PathLike | None = None, key: PathLike | None = None) -> Verification:
    """Verify evidence that ``Audit.to_evidence`` or ``metrifair evidence`` wrote.

    Every file is compared with the manifest. Every figure is recomputed from the counts, with a relative tolerance of
    1e-9, and the report, the tables and the README are compared with the figures. Without a signature this finds
    accidents and careless changes: counts and files that were rewritten consistently are found only with ``data`` or
    ``key``.

    Parameters
    ----------
    path : str or path-like
        The folder or .zip file.
    data : str or path-like, default=None
        The audited file. Its sha256 is compared with the manifest, and its rows are counted again.
    key : str or path-like, default=None
        The public key (.pub) of whoever should have signed the manifest.

    Returns
    -------
    Verification
        The checks; ``agrees`` is True, False, or None if a check could not be made.

    Raises
    ------
    DataError
        If the evidence, the data or the key cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from metrifair import audit
    >>> result = audit(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "evidence.zip")
    ...     result.to_evidence(path, pdf=False)
    ...     verify(path).agrees
    True
    """
    files = read_files(path)
    manifest = manifest_in(files)
    checks = [*_check_hashes(files, manifest), *_check_figures(files, manifest)]
    checks += _check_signature(files, key)
    if data is not None:
        checks += _check_data(files, manifest, data)
    return Verification([*checks, *suppression_checks(manifest)])


def _check_hashes(files: Files, manifest: Manifest) -> Iterator[Check]:
    found, stated = hashes_of(files), manifest.files
    problems = {
        "missing_file": sorted(stated.keys() - found.keys()),
        "unlisted_file": sorted(found.keys() - stated.keys()),
        "changed_file": [name for name in found if name in stated and found[name] != stated[name]],
    }
    for kind, names in problems.items():
        for name in names:
            yield Check(kind, "differs", {"name": name})
    if found == stated:
        yield Check("files", "agrees", {"files": len(found)})


def _check_figures(files: Files, manifest: Manifest) -> Iterator[Check]:
    """The figures against the counts, and all other files against the figures."""
    try:
        published = json.loads(files[AUDIT])
        audit = _read(files[AUDIT])
        state = AuditState.of_content(from_bytes(files[COUNTS]))
        recomputed = _audit_counts(state, manifest)
        derived = _derived(audit, state, manifest, printed=PRINT in files)
    except (DataError, KeyError, TypeError, ValueError) as error:
        yield Check("unusable", "differs", {"problem": str(error)})
        return
    stated = msgspec.to_builtins(manifest.provenance)
    places = sorted(different_values(published.get("provenance"), json.loads(json.dumps(stated))))
    yield _compared("provenance", places)
    places = sorted(different_values(published, json.loads(recomputed.to_json())))
    yield _compared("figures", places, figures=f"{count_figures(published):,}")
    for name, content in derived.items():
        if name in files:
            yield _check_text(name, files[name], content, manifest)
    if PRINT in files:
        yield _check_print(files[PRINT], audit, manifest)


def _compared(kind: str, places: Sequence[str], **facts: Any) -> Check:
    return Check(kind, "differs" if places else "agrees", {"places": places, **facts})


def _check_text(name: str, published: bytes, derived: bytes, manifest: Manifest) -> Check:
    if published == derived:
        return Check("page", "agrees", {"name": name})
    theirs = manifest.provenance.versions.get("metrifair", "")
    if theirs != __version__:
        return Check("page", "unchecked", {"name": name, "theirs": theirs, "ours": __version__})
    lines = zip_longest(published.splitlines(), derived.splitlines(), fillvalue=b"")
    at, text = next((at, one) for at, (one, other) in enumerate(lines, 1) if one != other)
    return Check("page", "differs", {"name": name, "line": at, "text": text[:80].decode(errors="replace")})


def _check_print(published: bytes, audit: Audit, manifest: Manifest) -> Check:
    """Print the page again: but for the dates, the same browser gives the same file."""
    try:
        again = _printed(audit)
    except MissingBrowser:
        return Check("browser", "unchecked")
    if re.sub(_DATES, b"", published) == re.sub(_DATES, b"", again):
        return Check("print", "agrees")
    same_browser = re.findall(_PRINTED_BY, published) == re.findall(_PRINTED_BY, again)
    if same_browser and manifest.platform == platform.platform():
        return Check("print", "differs")
    return Check("print", "unchecked")


def _check_signature(files: Files, key: PathLike | None) -> Iterator[Check]:
    if key is not None:
        signed = SIGNATURE in files and is_signed_by(files[MANIFEST], files[SIGNATURE], key)
        yield Check("signature", "agrees" if signed else "differs", {"name": Path(key).name})
    elif SIGNATURE in files:
        yield Check("signature", "unchecked")


def _check_data(files: Files, manifest: Manifest, data: PathLike) -> Iterator[Check]:
    """The sha256 of the data, and whether its rows give the counts."""
    inputs = {file.sha256 for file in manifest.provenance.files}
    for file in source_files(matching(os.fspath(data)) or [data]):
        known = "agrees" if file.sha256 in inputs else "differs"
        yield Check("data", known, {"name": file.name, "sha256": file.sha256})  # type: ignore[arg-type]
    published = AuditState.of_content(from_bytes(files[COUNTS]))
    recounted, suppressed = _released(_recounted(manifest, data), manifest.min_cell, manifest.score_digits)
    ours, theirs = _counts_by_cell(recounted), _counts_by_cell(published)
    cells = sum(ours.get(cell) != theirs.get(cell) for cell in ours.keys() | theirs.keys())
    same = not cells and recounted.left_out == published.left_out and suppressed == manifest.suppressed
    facts = {"name": Path(data).name, "rows": recounted.rows, "left_out": recounted.left_out, "cells": cells}
    facts |= {"their_rows": published.rows, "their_left_out": published.left_out, "their_cells": len(theirs)}
    yield Check("recount", "agrees" if same else "differs", facts)


def _recounted(manifest: Manifest, data: PathLike) -> AuditState:
    """The counts of a file, by the columns and parameters of the manifest."""
    columns, parameters = manifest.provenance.columns, manifest.parameters
    if not columns.get("score"):
        raise DataError("this evidence is of rows in memory, so it names no columns to count", argument="data")
    alone = {role: next(iter(columns.get(role, ())), None) for role in ("label", "weight")}
    roles = Roles.named(
        score=columns["score"][0],
        group=columns["group"],
        control=columns.get("control") or None,
        **alone,
        **{name: parameters[name] for name in ("cuts", "favorable_decision")},
    )
    state = AuditState(score_range=parameters["score_range"], threshold=parameters["threshold"])
    count_file(state, data, roles, ReadOptions(**manifest.provenance.reading))
    return state


def _counts_by_cell(state: AuditState) -> dict[tuple[Value, ...], list[tuple[float, ...]]]:
    """The counts of each cell, by the canonical values of its groups, strata and label."""
    counts, found = state.counts, dict[tuple[Value, ...], list[tuple[float, ...]]]()
    if counts is None:
        return found
    parts = [counts.bin, counts.low, counts.high, counts.rows, *([counts.weight] if len(counts.weight) else [])]
    for number, (cell, selected) in enumerate(zip(state.cells, state.selected.tolist(), strict=True)):
        inside = np.flatnonzero(counts.cell == number)
        entries = zip(*(np.round(part[inside], 12).tolist() for part in parts), strict=True)
        found[tuple(map(canonical, cell))] = [(selected,), *entries]
    return found
