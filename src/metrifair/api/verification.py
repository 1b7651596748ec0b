"""Verify evidence of an audit: recompute every figure from its counts, and compare every file."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from metrifair import __version__
from metrifair.api.audit_tables import audit_fields
from metrifair.api.evidence_writer import (
    derived_files,
    is_joint,
    printed_page,
    recomputed_record,
    record_in,
    released_error,
)
from metrifair.api.pages import Summarized
from metrifair.api.search_file import search_cuts, search_file
from metrifair.api.search_folder import SearchManifest
from metrifair.api.search_verification import (
    check_model,
    check_scores,
    check_search,
    is_search,
)
from metrifair.auditing.groups.counts_file import counts_content, read_counts
from metrifair.auditing.groups.search_counts import SearchCounts
from metrifair.auditing.records import GridError
from metrifair.auditing.release.evidence_format import (
    AUDIT_FILE,
    ERRORS_OF_FORGED_FILES,
    GROUPS,
    MANIFEST,
    PAGE,
    PRINT,
    SIGNATURE,
    TOLERANCE,
    Check,
    Files,
    Manifest,
    check_derived,
    check_same_text,
    check_underived,
    count_figures,
    counts_files,
    counts_names,
    different_values,
    file_hashes,
    in_common,
    manifest_in,
    parse_json,
    read_files,
    unusable,
)
from metrifair.auditing.release.suppression import released_counts
from metrifair.auditing.sources.column_roles import Roles
from metrifair.auditing.sources.file_formats import ReadOptions
from metrifair.auditing.sources.file_tables import matching_files
from metrifair.auditing.sources.state_file import read_parts
from metrifair.auditing.sources.state_parts import StateParts
from metrifair.auditing.sources.state_rows import count_file
from metrifair.errors import DataError, MissingBrowser
from metrifair.problem.values import canonical
from metrifair.saving.modelfile import PathLike, from_bytes
from metrifair.saving.records import in_one_line
from metrifair.support.arrays import Floats
from metrifair.support.files import write_json
from metrifair.support.provenance import Provenance, source_files
from metrifair.support.ssh_signatures import is_signed_by
from metrifair.wording.evidence import check_text, suppression_checks, verdict_text

_MOST_DRAWS = 100_000  # resamples or permutations that a verification repeats
_DATES = rb"/(?:Creation|Mod)Date \([^)]*\)"  # in a PDF file
# characters of a line that differs, and those before the difference
_LONGEST = 80
_BEFORE = 20
_PRINTED_BY = rb"/(?:Creator|Producer) \([^)]*\)"


@dataclass(frozen=True, eq=False, repr=False)
class Verification(Summarized):
    """The result of verifying evidence; ``verify`` returns it.

    Parameters
    ----------
    checks : sequence of Check
        The checks, each with its outcome.

    Examples
    --------
    >>> from metrifair.auditing.release.evidence_format import Check
    >>> Verification([Check("files", "agrees", {"files": 7}), Check("missing_file", "differs", {"name": "audit.json"})])
    1 of the 2 checks found a difference.
    agrees: 7 files have the sha256 that the manifest lists.
    DIFFERS: audit.json is missing.
    """

    checks: Sequence[Check]

    @property
    def agrees(self) -> bool | None:
        """True if all checks agree, False if one found a difference, None if one could not be
        completed.
        """
        outcomes = {check.outcome for check in self.checks}
        if "differs" in outcomes:
            return False
        if "unchecked" in outcomes:
            return None
        return True

    @property
    def summary(self) -> str:
        """The result in one sentence, then one line for each check."""
        return "\n".join([verdict_text(self.checks), *map(check_text, self.checks)])


def verify(
    path: PathLike,
    *,
    data: PathLike | None = None,
    key: PathLike | None = None,
    scores: PathLike | None = None,
    model: PathLike | None = None,
) -> Verification:
    """Verify evidence that ``Audit.to_evidence``, ``Frontier.to_evidence``, ``metrifair evidence``
    or ``metrifair frontier --evidence`` wrote.

    Every file is compared with the manifest. Every figure is recomputed from the counts, with a
    relative tolerance of 1e-9. The report, the tables and the README are generated again from the
    figures and compared. Of a search, the choice is made again from the figures and the recorded
    standard errors. Without a signature, this detects accidents and careless edits. Only ``data``,
    ``scores`` or ``key`` detects counts and files that were rewritten consistently.

    Parameters
    ----------
    path : str or path-like
        The folder of evidence, or a .zip file.
    data : str or path-like, default=None
        The audited file. Its sha256 is compared with the manifest, and its rows are counted again.
    key : str or path-like, default=None
        The public key (.pub) of the expected signer of the manifest.
    scores : str or path-like, default=None
        The file of out-of-fold scores of a search. Counts, standard errors, the choice and its
        expected figures are recomputed from it; with ``data``, its rows are compared with the data.
    model : str or path-like, default=None
        The model file that a search delivered. Its sha256 is compared; with ``data`` and
        ``scores``, also the scores of the model.

    Returns
    -------
    Verification
        The checks. ``agrees`` is True, False, or None if a check could not be completed.

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
    if is_search(files):
        return Verification(_search_checks(files, data, key, scores, model))
    for name, value in {"scores": scores, "model": model}.items():
        if value is not None:
            raise DataError("applies to the evidence of a search", argument=name)
    manifest = manifest_in(files, Manifest)
    checks = [*_check_hashes(files, manifest.files), *_check_figures(files, manifest)]
    checks += _check_signature(files, key)
    if data is not None:
        checks += _check_data(files, manifest, data)
    return Verification([*checks, *suppression_checks(manifest, _grid_error(files, manifest))])


def _search_checks(
    files: Files,
    data: PathLike | None,
    key: PathLike | None,
    scores: PathLike | None,
    model: PathLike | None,
) -> list[Check]:
    """The checks of the evidence of a search."""
    manifest = manifest_in(files, SearchManifest)
    checks = [*_check_hashes(files, manifest.files), *check_search(files, manifest)]
    checks += _check_signature(files, key)
    if data is not None:
        checks += _check_inputs(manifest.provenance, data)
    if scores is not None:
        checks += check_scores(files, manifest, scores, data)
    if model is not None:
        checks += check_model(files, manifest, model, scores, data)
    return checks


def _grid_error(files: Files, manifest: Manifest) -> GridError | None:
    """The largest differences that the grid of the scores can make; None if they cannot be
    computed.
    """
    try:
        return released_error(_read_tables(files), manifest)
    except ERRORS_OF_FORGED_FILES:
        return None


def _check_hashes(files: Files, listed: Mapping[str, str]) -> Iterator[Check]:
    hashes = file_hashes(files)
    problems = {
        "missing_file": sorted(listed.keys() - hashes.keys()),
        "unlisted_file": sorted(hashes.keys() - listed.keys()),
        "changed_file": [
            name for name in hashes if name in listed and hashes[name] != listed[name]
        ],
    }
    for kind, names in problems.items():
        for name in names:
            yield Check(kind, "differs", {"name": name})
    if hashes == listed:
        yield Check("files", "agrees", {"files": len(hashes)})


def _check_figures(files: Files, manifest: Manifest) -> Iterator[Check]:
    """The figures against the counts, and all other files against the figures."""
    try:
        parse_json(files[MANIFEST])
        _check_draws(manifest)
        published = parse_json(files[AUDIT_FILE])
        record = record_in(files[AUDIT_FILE])
        tables = _read_tables(files)
        recomputed = audit_fields(
            recomputed_record(tables, manifest, _read_search(files, manifest))
        )
        derived = derived_files(record, tables, manifest, printed=PRINT in files)
    except ERRORS_OF_FORGED_FILES as error:
        yield unusable(error)
        return
    yield from _check_values(published, json.loads(write_json(recomputed)), manifest)
    check_file = partial(_check_text, manifest=manifest)
    yield from check_derived(files, derived, manifest.files, check_file)
    known = {*derived, AUDIT_FILE, *_counted_files(tables, manifest), PRINT}
    yield from check_underived(manifest.files, known)
    if PRINT in files:
        yield _check_print(files[PRINT], derived[PAGE].decode(), manifest)


def _check_draws(manifest: Manifest) -> None:
    """Raise a DataError for parameters with which a verification would take very long."""
    for name in ("resamples", "permutations"):
        draws = manifest.parameters[name]
        if not isinstance(draws, int) or draws > _MOST_DRAWS:
            raise DataError(
                f"the manifest has {in_one_line(draws)} {name}; at most {_MOST_DRAWS:,} are "
                "repeated"
            )


def _read_tables(files: Files) -> list[StateParts]:
    """The counts: of all attributes together, or of each attribute."""
    return [read_parts(from_bytes(content)) for content in counts_files(files)]


def _counted_files(tables: Sequence[StateParts], manifest: Manifest) -> list[str]:
    """The names of the files of counts: of rows, and of the groups of a search."""
    names = counts_names(len(tables))
    return [*names, GROUPS] if manifest.search == "counted" else names


def _read_search(files: Files, manifest: Manifest) -> SearchCounts | None:
    """The counts of the search for groups; None without a search."""
    if manifest.search != "counted":
        return None
    if GROUPS not in files:
        raise DataError(f"there is no {GROUPS}")
    return read_counts(from_bytes(files[GROUPS]))


def _check_values(
    published: dict[str, Any], recomputed: dict[str, Any], manifest: Manifest
) -> Iterator[Check]:
    """The values of audit.json against those of the manifest and the counts; of another
    version, the common fields.
    """
    summary, expected = (
        json.dumps(content.pop("summary", None), indent=1).encode()
        for content in (published, recomputed)
    )
    origin = published.get("provenance")
    stated = json.loads(json.dumps(msgspec.to_builtins(manifest.provenance)))
    if (version := _written_by(manifest)) != __version__:
        origin, stated, _ = in_common(origin, stated)
        published, recomputed, lacking = in_common(published, recomputed)
        if lacking:
            yield Check(
                "fields", "unchecked", {"places": lacking, "theirs": version, "ours": __version__}
            )
    figures = {"figures": f"{count_figures(published):,}"}
    for kind, pair, facts in (
        ("provenance", (origin, stated), {}),
        ("figures", (published, recomputed), figures),
    ):
        differences = sorted(different_values(*pair), key=itemgetter(0))
        places = [place for place, *_ in differences]
        values = [values for _, *values in differences]
        yield Check(
            kind, "differs" if places else "agrees", {"places": places, "values": values, **facts}
        )
    # another version may use other words
    yield _check_text(f"the summary in {AUDIT_FILE}", summary, expected, manifest=manifest)


def _written_by(manifest: Manifest) -> str:
    """The version of metrifair that wrote the evidence."""
    return manifest.provenance.versions.get("metrifair", "")


def _check_text(name: str, published: bytes, derived: bytes, *, manifest: Manifest) -> Check:
    """Whether a text follows from the figures; if not, with its first line that differs."""
    check = check_same_text("page", name, published, derived, manifest.provenance)
    if check.outcome != "differs":
        return check
    lines = zip_longest(published.splitlines(), derived.splitlines(), fillvalue=b"")
    at, pair = next((at, pair) for at, pair in enumerate(lines, 1) if pair[0] != pair[1])
    same = next(
        (place for place, (one, other) in enumerate(zip(*pair, strict=False)) if one != other), 0
    )
    start = max(0, same - _BEFORE)  # long lines may differ at their end only
    text, expected = (line[start : start + _LONGEST].decode(errors="replace") for line in pair)
    return Check("page", "differs", {"name": name, "line": at, "text": text, "expected": expected})


def _check_print(published: bytes, page: str, manifest: Manifest) -> Check:
    """Print the page again: but for the dates, the same browser gives the same file."""
    try:
        again = printed_page(page)
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
    yield from _check_inputs(manifest.provenance, data)
    try:
        yield _check_counts(files, manifest, data)
        yield from _check_group_search(files, manifest, data)
    except DataError:
        raise
    except ERRORS_OF_FORGED_FILES as error:
        yield unusable(error)


def _check_inputs(provenance: Provenance, data: PathLike) -> Iterator[Check]:
    """Whether the sha256 of the data is that of an input."""
    inputs = {file.sha256 for file in provenance.files}
    for file in source_files(matching_files(os.fspath(data)) or [data]):
        about = {"name": file.name, "sha256": file.sha256, "expected": sorted(inputs)}
        yield Check("data", "agrees" if file.sha256 in inputs else "differs", about)


def _check_counts(files: Files, manifest: Manifest, data: PathLike) -> Check:
    """Whether the rows of the data give the counts."""
    published = _read_tables(files)
    parameters = manifest.parameters
    release = released_counts(
        _recount(manifest, data),
        manifest.min_cell,
        manifest.score_digits,
        joint=is_joint(parameters["intersectional"], parameters["standard"]),
    )
    recounted = release.tables[0]
    ours = _counts_by_cell(release.tables)
    theirs = _counts_by_cell(published)
    cells = sum(
        not _same_counts(ours.get(cell), theirs.get(cell)) for cell in ours.keys() | theirs.keys()
    )
    grid = dict(zip(counts_names(len(release.tables)), release.grid, strict=False))
    same = not cells and recounted.left_out == published[0].left_out and grid == manifest.grid
    same = same and release.suppressed == manifest.suppressed
    facts = {
        "name": Path(data).name,
        "rows": recounted.rows,
        "left_out": recounted.left_out,
        "cells": cells,
    }
    facts |= {
        "their_rows": published[0].rows,
        "their_left_out": published[0].left_out,
        "their_cells": len(theirs),
    }
    return Check("recount", "agrees" if same else "differs", facts)


def _check_group_search(files: Files, manifest: Manifest, data: PathLike) -> Iterator[Check]:
    """Whether a search of the data counts the same groups; nothing without a search."""
    published = _read_search(files, manifest)
    if published is None:
        return
    facts = {"name": Path(data).name, "groups": len(published.groups)}
    if published.search_rows is not None:
        yield Check("search_recount", "unchecked", facts)
        return
    recounted = _search_again(published, manifest, data)
    same = _same_search(recounted, published)
    yield Check("search_recount", "agrees" if same else "differs", facts)


def _search_again(published: SearchCounts, manifest: Manifest, data: PathLike) -> SearchCounts:
    """The counts of a search of a file, by the columns and parameters of the manifest."""
    columns = manifest.provenance.columns
    parameters = manifest.parameters
    alone: dict[str, Any] = {
        role: next(iter(columns.get(role, ())), None) for role in ("label", "weight")
    }
    settings = published.settings
    search = search_file(
        data,
        ReadOptions(**manifest.provenance.reading),
        score=columns["score"][0],
        among=columns.get("among", ()),
        protected=columns["group"],
        **alone,
        favorable_decision=parameters["favorable_decision"],
        outcome=published.outcome,
        threshold=parameters["threshold"],
        pos_label=parameters["pos_label"],
        cuts=search_cuts(parameters["cuts"], columns["group"]),
        max_conditions=settings.max_conditions,
        min_rows=settings.min_rows,
        confidence=settings.confidence,
    )
    if search.counts is None:
        raise DataError("the search has no counts")
    return search.counts


def _same_search(old: SearchCounts, new: SearchCounts) -> bool:
    """Whether two searches have the same groups and sums, which may differ by rounding."""
    _, meta, arrays = counts_content(old)
    _, new_meta, new_arrays = counts_content(new)
    if any(different_values(meta, new_meta)):
        return False
    return all(
        array.shape == new_arrays[name].shape
        and np.allclose(array, new_arrays[name], rtol=TOLERANCE, atol=0)
        for name, array in arrays.items()
    )


def _recount(manifest: Manifest, data: PathLike) -> StateParts:
    """The counts of a file, by the columns and parameters of the manifest."""
    columns = manifest.provenance.columns
    parameters = manifest.parameters
    if not columns.get("score"):
        raise DataError(
            "cannot be counted again: this evidence is of rows in memory, and names no columns",
            argument="data",
        )
    alone: dict[str, Any] = {
        role: next(iter(columns.get(role, ())), None) for role in ("label", "weight")
    }
    roles = Roles.from_names(
        score=columns["score"][0],
        group=columns["group"],
        control=columns.get("control") or None,
        **alone,
        **{name: parameters[name] for name in ("cuts", "favorable_decision")},
    )
    low, high = parameters["score_range"]
    state = StateParts(None, (low, high), parameters["threshold"])
    count_file(state, data, roles, ReadOptions(**manifest.provenance.reading))
    return state


def _counts_by_cell(tables: Sequence[StateParts]) -> dict[tuple[object, ...], list[Floats]]:
    """The counts of each cell, by its table and the canonical values of its groups, strata and
    label.
    """
    by_cell = dict[tuple[object, ...], list[Floats]]()
    for number, state in enumerate(tables):
        if (counts := state.counts) is None:
            continue
        parts = (
            counts.bin,
            counts.low,
            counts.high,
            counts.rows,
            counts.within,
            counts.weight,
            counts.moment,
        )
        for place, (cell, selected) in enumerate(zip(state.cells, state.selected, strict=True)):
            inside = counts.cell == place
            entries = [part[inside].astype(np.float64) for part in parts if len(part)]
            by_cell[number, *map(canonical, cell)] = [np.array([selected]), *entries]
    return by_cell


def _same_counts(old: Sequence[Floats] | None, new: Sequence[Floats] | None) -> bool:
    """Whether a cell has the same counts; sums of weights differ by rounding, since rows may be
    added in any order.
    """
    if old is None or new is None or len(old) != len(new):
        return False
    pairs = zip(old, new, strict=True)
    return all(len(x) == len(y) and np.allclose(x, y, rtol=TOLERANCE, atol=0) for x, y in pairs)
