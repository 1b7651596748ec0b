"""Verify the evidence of a search: recompute every configuration, the front and the choice from
the counts, and compare every file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np

from metrifair.api.search_contradictions import contradictions, passed_over
from metrifair.api.search_figures import (
    DELIVERED,
    SCORE_RANGE,
    Scoring,
    count_files,
    search_figures,
)
from metrifair.api.search_folder import (
    FACTS,
    FIGURES_FILE,
    SearchManifest,
    derived_search_files,
    read_scorings,
)
from metrifair.auditing.release.evidence_format import (
    ERRORS_OF_FORGED_FILES,
    MANIFEST,
    Check,
    Files,
    check_derived,
    check_same_text,
    check_underived,
    count_figures,
    decoded,
    different_values,
    parse_json,
    unusable,
)
from metrifair.auditing.release.suppression import PublicGrid
from metrifair.errors import DataError, MissingExtra
from metrifair.saving.modelfile import PathLike
from metrifair.support.lazy import missing_extra
from metrifair.tradeoff.search_facts import SearchFacts, SearchFigures


def is_search(files: Files) -> bool:
    """Whether a folder is the evidence of a search; a folder without a readable manifest is not."""
    if MANIFEST not in files or FACTS not in files:
        return False
    try:
        return bool(parse_json(files[MANIFEST]).get("kind") == "metrifair search evidence")
    except ERRORS_OF_FORGED_FILES:
        return False


def check_search(files: Files, manifest: SearchManifest) -> Iterator[Check]:
    """The figures against the counts, the choice against the figures, and all other files against
    both.
    """
    try:
        for name in (FACTS, FIGURES_FILE):
            parse_json(files[name])
        facts: SearchFacts = decoded(files[FACTS], SearchFacts)
        published: SearchFigures = decoded(files[FIGURES_FILE], SearchFigures)
        scorings = read_scorings(files, facts, manifest)
        _check_same_rows(scorings)
        _check_minimum(scorings, manifest.min_cell)
        _check_intervals(scorings, manifest.min_cell)
        recomputed = search_figures(facts, scorings)
        derived = derived_search_files(facts, published, manifest, scorings)
    except ERRORS_OF_FORGED_FILES as error:
        yield unusable(error)
        return
    yield _check_figures(published, recomputed)
    yield _check_front(facts, recomputed)
    yield _check_choice(facts, recomputed)
    yield from _check_facts(facts, recomputed, scorings, withheld=bool(manifest.suppressed))
    check_page = partial(_check_page, manifest=manifest)
    yield from check_derived(files, derived, manifest.files, check_page)
    known = {*derived, FACTS, FIGURES_FILE, *_count_files(facts)}
    yield from check_underived({*manifest.files, *manifest.grid}, known)


def _check_page(name: str, published: bytes, derived: bytes, *, manifest: SearchManifest) -> Check:
    """Whether a page or table follows from the facts and the figures."""
    return check_same_text("search_page", name, published, derived, manifest.provenance)


def _count_files(facts: SearchFacts) -> list[str]:
    names = [*(str(item.number) for item in facts.usable), DELIVERED]
    return [file for name in names for file in count_files(name, facts.tables)]


def _check_same_rows(scorings: Mapping[str, Scoring]) -> None:
    """Raise a DataError unless all configurations score the same rows: their cells are equal."""
    first: list[Any] | None = None
    for name, scoring in scorings.items():
        tables: list[Any] = []
        for table, _ in scoring:
            assert table.counts is not None
            sizes = np.bincount(table.counts.cell, table.counts.rows, len(table.cells))
            tables.append(dict(zip(table.cells, sizes.astype(int).tolist(), strict=True)))
            tables.append((table.withheld, table.left_out))
        if first is None:
            first = tables
        if tables != first:
            raise DataError(f"the counts of {name} are of other rows than those of the first")


def _check_minimum(scorings: Mapping[str, Scoring], minimum: int) -> None:
    for name, scoring in scorings.items():
        for table, _ in scoring:
            if table.counts is not None and int(table.counts.rows.min(initial=minimum)) < minimum:
                raise DataError(
                    f"a count of {name} has fewer than {minimum:,} rows, the minimum that the "
                    "manifest states"
                )


def _check_intervals(scorings: Mapping[str, Scoring], minimum: int) -> None:
    """Raise a DataError unless the intervals are those of the public grid, disjoint in each cell,
    and contain the scores of their counts.
    """
    grid = PublicGrid.between(*SCORE_RANGE)
    for name, scoring in scorings.items():
        for table, ends in scoring:
            counts = table.counts
            if counts is None or len(ends) != len(counts.rows):
                raise DataError(f"the manifest does not list one interval for each count of {name}")
            low, high = np.array(ends).reshape(-1, 2).T / grid.width
            leaf = grid.leaf(counts.low)
            fits = (low == np.floor(low)) & (high == np.floor(high))
            fits &= (low <= leaf) & (leaf < high)
            if minimum == 1:
                fits &= high - low == 1
            follows = (np.diff(counts.cell) != 0) | (low[1:] >= high[:-1])
            if not fits.all() or not follows.all():
                raise DataError(f"an interval of {name} is not one of the public grid")


def _check_figures(published: SearchFigures, recomputed: SearchFigures) -> Check:
    pair = [json.loads(msgspec.json.encode(figures)) for figures in (published, recomputed)]
    differences = sorted(different_values(*pair), key=itemgetter(0))
    facts = {
        "places": [place for place, *_ in differences],
        "values": [values for _, *values in differences],
        "figures": f"{count_figures(pair[0]):,}",
    }
    return Check("search_figures", "differs" if differences else "agrees", facts)


def _check_front(facts: SearchFacts, figures: SearchFigures) -> Check:
    """The front is part of the figures; this states how many configurations are on it."""
    on_front = sum(item.on_front for item in figures.configurations)
    return Check("front", "agrees", {"on_front": on_front, "of": len(facts.usable)})


def _check_choice(facts: SearchFacts, figures: SearchFigures) -> Check:
    """Whether the rule may choose the chosen configuration, given the bounds."""
    possible = [item.number for item in figures.configurations if item.possible]
    about = {"chosen": facts.chosen, "possible": len(possible)}
    if facts.chosen not in possible:
        return Check("choice", "differs", about)
    return Check("choice", "agrees", about)


def _check_facts(
    facts: SearchFacts,
    figures: SearchFigures,
    scorings: Mapping[str, Scoring],
    *,
    withheld: bool,
) -> Iterator[Check]:
    """Whether the facts agree with each other and with the counts; and those that no file shows."""
    try:
        places = contradictions(facts, figures, scorings, withheld=withheld)
    except ERRORS_OF_FORGED_FILES as error:
        yield unusable(error)
        return
    yield Check("search_facts", "differs" if places else "agrees", {"contradictory": places})
    count = passed_over(facts.configurations)
    if count:
        yield Check("unlike_folds", "withheld", {"number": count})


def check_scores(
    files: Files, manifest: SearchManifest, scores: PathLike, data: PathLike | None
) -> Iterator[Check]:
    """The counts, the standard errors, the choice and the expected figures, from the scores."""
    try:
        from metrifair.api.search_recount import check_recount  # noqa: PLC0415  (needs the extra)
    except ModuleNotFoundError as error:
        missing: MissingExtra | None = missing_extra(error, "verify(scores=...)")
        raise missing or error from error
    yield from _guarded(check_recount(files, manifest, scores, data))


def check_model(
    files: Files,
    manifest: SearchManifest,
    model: PathLike,
    scores: PathLike | None,
    data: PathLike | None,
) -> Iterator[Check]:
    """The hash of the model file and, with the scores and the data, the scores of the model."""
    try:
        from metrifair.api.search_recount import check_model_file  # noqa: PLC0415  (as above)
    except ModuleNotFoundError as error:
        missing: MissingExtra | None = missing_extra(error, "verify(model=...)")
        raise missing or error from error
    yield from _guarded(check_model_file(files, manifest, model, scores, data))


def _guarded(checks: Iterator[Check]) -> Iterator[Check]:
    """The checks; forged facts end them with a difference."""
    try:
        yield from checks
    except DataError:
        raise
    except ERRORS_OF_FORGED_FILES as error:
        yield unusable(error)
