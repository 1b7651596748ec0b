"""Where figures come from, as lines of a report."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from metrifair.support.provenance import STATEMENTS, Provenance, ScoreOrigin
from metrifair.wording.numbers import count_text
from metrifair.wording.terms import term_name

_MOST_FILES = 10
_MOST_COLUMNS = 40
# of a README file; addresses stay whole
_WRAPPER = textwrap.TextWrapper(
    100,
    initial_indent="  ",
    subsequent_indent="    ",
    break_on_hyphens=False,
    break_long_words=False,
)

EXCLUDED_ROWS = {
    "unusable": "a missing score, label, weight or group",
    "withheld": "withheld in small cells when the counts were saved",
    "withheld_rounded": "withheld in small cells; rounded up to a power of two",
    "missing_score": "missing score",
    "missing_label": "missing label",
    "missing_weight": "missing weight",
    "missing_group": "missing group",
    "missing_other_score": "missing score of another model",
    "zero_weight": "weight 0",
}
"""Why rows were excluded, by code."""


_SCORED_ROWS = {
    "held_out": "held-out rows",
    "training_file": "rows of the training file",
    "other_file": "rows of another file than the training file",
    "file": "rows",
}


_ROLES = {"known_groups": "known groups", "cells": "inputs of the group probabilities"}


def readme_lines(sentence: object) -> list[str]:
    """The indented lines of a sentence in a README file.

    >>> readme_lines("Rows were held out.")
    ['  Rows were held out.']
    """
    return _WRAPPER.wrap(str(sentence)) or [""]


def score_origin_text(origin: ScoreOrigin) -> str:
    """The rows that were scored, and the model; of folds, how their models were trained.

    >>> score_origin_text(ScoreOrigin("ab12", ["probability"], "cd34", "held_out"))
    'held-out rows, scored by the model with fingerprint cd34'
    >>> score_origin_text(ScoreOrigin("ab12", ["probability"], None, "held_out"))
    'held-out rows, scored by models that were trained without them'
    """
    files = ", ".join(
        f"{source.name} (sha256 {source.sha256[:16]})" for source in origin.sources[:_MOST_FILES]
    )
    place = ""
    if files:
        place = f" of {files}" if origin.rows in ("held_out", "file") else f": {files}"
    scorer = "by models that were trained without them"
    if origin.model is not None:
        scorer = f"by the model with fingerprint {origin.model[:16]}"
    return f"{_SCORED_ROWS[origin.rows]}{place}, scored {scorer}"


def about_lines(about: Mapping[str, str]) -> list[tuple[str, str]]:
    """The user's statements with their names on a page.

    >>> about_lines({"signed by": "A. Auditor", "source": "payroll"})
    [('Signed by', 'A. Auditor'), ('source', 'payroll')]
    """
    return [
        (name.capitalize() if name in STATEMENTS else name, text) for name, text in about.items()
    ]


def unstated_text(about: Mapping[str, str]) -> str:
    """Which statements every report should have are missing; empty if none is.

    >>> unstated_text({"purpose": "yearly review", "data": "payroll", "period": "2026"})
    'Not stated: signed by.'
    """
    missing = [name for name in STATEMENTS if not about.get(name)]
    if not missing:
        return ""
    return f"Not stated: {', '.join(missing)}."


def provenance_lines(provenance: Provenance) -> list[tuple[str, str]]:
    """Names and texts, those that are known.

    >>> from metrifair.support.provenance import SourceFile
    >>> provenance_lines(Provenance(seed=3, files=[SourceFile("scores.csv", 1200, "ab12")]))
    [('File', 'scores.csv, 1,200 bytes, sha256 ab12'), ('Seed', '3')]
    """
    sizes = ["" if file.size is None else f"{file.size:,} bytes, " for file in provenance.files]
    pairs = zip(provenance.files, sizes, strict=True)
    files = [f"{file.name}, {size}sha256 {file.sha256}" for file, size in pairs]
    if len(files) > _MOST_FILES:
        more = [f"the JSON has {count_text(len(files) - _MOST_FILES, 'more file')}"]
    else:
        more = []
    excluded = [
        f"{count:,} excluded ({EXCLUDED_ROWS.get(why, why)})"
        for why, count in provenance.left_out.items()
        if count
    ]
    rows_read = [] if provenance.rows_read is None else [f"{provenance.rows_read:,} read"]
    columns = [
        f"{_ROLES.get(role, role)}: {_listed(names)}"
        for role, names in provenance.columns.items()
        if names
    ]
    scores = ""
    if provenance.score_origin is not None:
        scores = score_origin_text(provenance.score_origin)
    seed = ""
    if provenance.seed is not None:
        seed = str(provenance.seed)
    source = provenance.source
    if files:
        source = ""
    lines = [
        *about_lines(provenance.about),
        ("Files" if len(files) > 1 else "File", "; ".join([*files[:_MOST_FILES], *more])),
        ("Read from", source),
        (term_name("rows"), "; ".join([*rows_read, *excluded])),
        ("Columns", "; ".join(columns)),
        ("Scores", scores),
        ("Call", provenance.call),
        (term_name("seed"), seed),
        ("Versions", ", ".join(f"{name} {number}" for name, number in provenance.versions.items())),
        ("Time", provenance.time),
    ]
    return [(name, text) for name, text in lines if text]


def origin_sentences(provenance: Provenance) -> list[str]:
    """The provenance as sentences of a text file, with the statements that are missing.

    >>> origin_sentences(Provenance(seed=3))
    ['Seed: 3', 'Not stated: signed by, purpose, data, period.']
    """
    lines = [f"{name}: {text}" for name, text in provenance_lines(provenance)]
    return [*lines, *filter(None, [unstated_text(provenance.about)])]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_COLUMNS
    return ", ".join(names[:_MOST_COLUMNS]) + (
        f" and {more:,} more, listed in the JSON" if more > 0 else ""
    )
