"""The folder of the evidence of a search: its manifest, its files of counts, and the files that
follow from both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from metrifair.api.search_figures import DELIVERED, Scoring, count_files
from metrifair.auditing.release.evidence_format import PAGE, README, Files
from metrifair.auditing.sources.state_file import read_parts
from metrifair.auditing.sources.state_parts import StateScalar
from metrifair.errors import DataError
from metrifair.report.search import search_html
from metrifair.saving.modelfile import from_bytes
from metrifair.saving.records import Record
from metrifair.support.files import csv_bytes
from metrifair.support.provenance import Provenance
from metrifair.tradeoff.search_facts import SearchFacts, SearchFigures
from metrifair.wording.search import (
    CONFIGURATION_HEADINGS,
    SearchShown,
    configuration_cells,
    search_readme,
    stated_values,
)

FACTS = "search.json"
FIGURES_FILE = "figures.json"


class SearchManifest(Record):
    """The files of the evidence of a search, and how it was made."""

    kind: Literal["metrifair search evidence"]
    version: Literal[1]
    files: dict[str, str]  # sha256 by name
    provenance: Provenance
    platform: str
    min_cell: int
    suppressed: dict[str, list[StateScalar]]  # groups that were not released, by column
    grid: dict[str, list[tuple[float, float]]]  # intervals of the scores, by file of counts


def derived_search_files(
    facts: SearchFacts,
    figures: SearchFigures,
    manifest: SearchManifest,
    scorings: Mapping[str, Scoring],
) -> dict[str, bytes]:
    """The files that state the facts and the figures in other forms."""
    by_number = {item.number: item for item in figures.configurations}
    rows = [
        configuration_cells(facts, item, by_number.get(item.number))
        for item in facts.configurations
    ]
    table = {
        heading: [row[place] for row in rows]
        for place, heading in enumerate(CONFIGURATION_HEADINGS)
    }
    stated = stated_values(msgspec.to_builtins(facts))
    single = [
        int((table.counts.rows == 1).sum())
        for scoring in scorings.values()
        for table, _ in scoring
        if table.counts is not None
    ]
    shown = SearchShown(
        facts, figures, manifest.provenance, manifest.min_cell, manifest.suppressed, sum(single)
    )
    return {
        PAGE: search_html(shown).encode(),
        README: search_readme(shown).encode(),
        "tables/configurations.csv": csv_bytes(table),
        "tables/facts.csv": csv_bytes(
            {"place": [place for place, _ in stated], "value": [text for _, text in stated]}
        ),
    }


def read_scorings(files: Files, facts: SearchFacts, manifest: SearchManifest) -> dict[str, Scoring]:
    """The counts of every configuration, and of the delivered model; a DataError if some are
    missing.
    """
    scorings: dict[str, Scoring] = {}
    for name in [*(str(item.number) for item in facts.usable), DELIVERED]:
        scoring = []
        for file in count_files(name, facts.tables):
            if file not in files or file not in manifest.grid:
                raise DataError(f"there is no {file}, or the manifest has no intervals of it")
            scoring.append((read_parts(from_bytes(files[file])), manifest.grid[file]))
        scorings[name] = scoring
    return scorings
