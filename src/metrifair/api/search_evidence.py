"""Evidence of a search: counts of the out-of-fold scores of every configuration, the figures that
follow from them, and the files that state both.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import msgspec

from metrifair.api.evidence_writer import released_provenance
from metrifair.api.search_counts import SearchRows, search_facts
from metrifair.api.search_figures import DELIVERED, Scoring, count_files, search_figures
from metrifair.api.search_folder import (
    FACTS,
    FIGURES_FILE,
    SearchManifest,
    derived_search_files,
)
from metrifair.auditing.release.evidence_format import (
    MANIFEST,
    SIGNATURE,
    check_place,
    file_hashes,
    record_bytes,
    write_files,
)
from metrifair.auditing.release.releases import ReleaseEntry, record_release, scores_hash
from metrifair.auditing.release.suppression import Release, released_together
from metrifair.auditing.sources.state_file import state_content
from metrifair.errors import DataError
from metrifair.saving.modelfile import PathLike, to_bytes
from metrifair.support.archives import check_bounds
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_integer, check_switches
from metrifair.support.files import csv_bytes, error_reason, write_file
from metrifair.support.provenance import Provenance
from metrifair.support.ssh_signatures import sign as signature_of
from metrifair.tradeoff.result import TradeOff
from metrifair.tradeoff.search_facts import (
    ModelFacts,
    SearchFacts,
)


def write_search_evidence(
    trade_off: TradeOff,
    path: PathLike,
    *,
    reason: str,
    model: PathLike | None = None,
    scores: PathLike | None = None,
    numbers: Integers | None = None,
    min_cell: int = 1,
    sign_with: PathLike | None = None,
    again: bool = False,
) -> None:
    """Write the search of a frontier with a chosen model; see ``Frontier.to_evidence``.

    ``numbers`` are those of the rows in their file, from 0; None: all rows of the file are used.
    """
    source = trade_off.source
    if source is None:
        raise DataError(
            "a frontier from a file keeps no rows; write the evidence where the frontier was made"
        )
    if trade_off.record.chosen is None:
        raise DataError("evidence states why a model was chosen; call select first")
    check_switches(again=again)
    check_request(path, reason, min_cell)
    rows = SearchRows(source, trade_off.chosen_by or trade_off.utility)
    rows.check()
    named = counted_scores(trade_off, rows)
    model_facts = None if model is None else model_file_facts(model)
    facts = search_facts(
        trade_off, rows, named[DELIVERED], reason=reason.strip(), model=model_facts
    )
    releases = released_together(
        [rows.parts(item) for item in named.values()], min_cell, joint=rows.joint
    )
    by_name = dict(zip(named, releases, strict=True))
    files, manifest = _files(facts, by_name, trade_off.record.provenance, min_cell)
    if sign_with is not None:
        files[SIGNATURE] = signature_of(files[MANIFEST], sign_with)
    check_bounds(map(len, files.values()))
    hashes = {
        *(file.sha256 for file in manifest.provenance.files),
        *map(scores_hash, named.values()),
    }
    entry = ReleaseEntry(
        rows=sorted(hashes),
        name=Path(path).name,
        time=manifest.provenance.time,
        parameters={"min_cell": min_cell, "columns": list(rows.columns), "search": True},
    )
    # first: a release that was not listed could not be refused later
    record_release(Path(path), entry, again=again)
    write_files(Path(path), files)
    if scores is not None:
        write_file(scores, scores_table(rows, named, numbers))


def check_request(path: PathLike, reason: object, min_cell: object) -> None:
    """Raise a DataError for arguments that are wrong whatever the search is."""
    if not isinstance(reason, str) or not reason.strip():
        raise DataError("must be a sentence that says why", argument="reason", received=reason)
    check_integer("min_cell", min_cell, least=1)
    check_place(Path(path))


def counted_scores(trade_off: TradeOff, rows: SearchRows) -> dict[str, Floats]:
    """The scores of every configuration by its number, and those of the delivered model."""
    source = rows.context
    chosen = trade_off.record.chosen
    assert chosen is not None
    needs_decisions = rows.utility.needs == "decisions"
    goal = trade_off.record.goal
    if goal is not None and goal.min_accuracy is not None:
        needs_decisions = True
    found = {}
    for number, outcome in enumerate(trade_off.outcomes, 1):
        predictions = source.predictions.get(outcome.job)
        if predictions is None:
            continue
        name = f"configuration {number} ({outcome.job.name})"
        if needs_decisions:
            rows.check_decisions(predictions, name)
        found[str(number)] = rows.score(predictions, name)
    delivered = next(item for item in trade_off.outcomes if item.job == chosen.job)
    predictions = source.predictions_of(delivered.job, delivered.model, source.part)
    if needs_decisions:
        rows.check_decisions(predictions, "the delivered model")
    found[DELIVERED] = rows.score(predictions, "the delivered model")
    return found


def model_file_facts(path: PathLike) -> ModelFacts:
    """The name and the hash of a model file."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error_reason(error)}", argument="model") from None
    return ModelFacts(name=Path(path).name, sha256=sha256(content).hexdigest())


def scores_table(rows: SearchRows, named: Mapping[str, Floats], numbers: Integers | None) -> bytes:
    """The out-of-fold scores as a csv file: row, columns of the counts, one column of scores
    each.
    """
    places = rows.context.rows
    if numbers is not None:
        places = numbers[places]
    table: dict[str, Sequence[object]] = {"row": places.tolist()}
    for name, values in zip(rows.columns, rows.values, strict=True):
        table[f"{name} (counted)"] = values
    for name, scores in named.items():
        table[f"score {name}"] = scores.tolist()
    return csv_bytes(table)


def _files(
    facts: SearchFacts, releases: Mapping[str, Release], provenance: Provenance, min_cell: int
) -> tuple[dict[str, bytes], SearchManifest]:
    """All files of the folder but the signature, and the manifest."""
    files: dict[str, bytes] = {}
    grid: dict[str, list[tuple[float, float]]] = {}
    scorings: dict[str, Scoring] = {}
    for name, release in releases.items():
        names = count_files(name, len(release.tables))
        for file, table, ends in zip(names, release.tables, release.grid, strict=True):
            files[file] = to_bytes(state_content(table))
            grid[file] = list(ends)
        scorings[name] = list(zip(release.tables, release.grid, strict=True))
    suppressed = next(iter(releases.values())).suppressed
    figures = search_figures(facts, scorings)
    provenance = released_provenance(provenance, suppressed)
    if suppressed:
        provenance = replace(provenance, rows_read=None, left_out={})
    manifest = SearchManifest(
        kind="metrifair search evidence",
        version=1,
        files={},
        provenance=provenance,
        platform=platform.platform(),
        min_cell=min_cell,
        suppressed=suppressed,
        grid=grid,
    )
    files[FACTS] = record_bytes(facts)
    files[FIGURES_FILE] = record_bytes(figures)
    files |= derived_search_files(facts, figures, manifest, scorings)
    manifest = msgspec.structs.replace(manifest, files=file_hashes(files))
    files[MANIFEST] = record_bytes(manifest)
    return files, manifest
