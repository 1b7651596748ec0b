"""What people read, one approved text for each surface, in ``tests/approved``.

A change of a sentence changes its file, which a reviewer reads as a diff. ``make approve`` writes the
files anew.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.approved_texts import FOLDER, path_of, rendered
from tests.expected_errors import SURFACE as REFUSALS
from tests.surfaces import (
    audits,
    commands,
    comparisons,
    errors,
    evidence,
    frontier_views,
    frontiers,
    notes,
    pages,
    results,
    words,
)

SURFACES: dict[str, Callable[[], dict[str, str]]] = {
    "audits": audits.texts,
    "audit-notes": notes.audit_texts,
    "choices": frontier_views.texts,
    "audit-page": pages.audit_texts,
    "comparisons": comparisons.texts,
    "command-help": commands.help_texts,
    "command-output": commands.output_texts,
    "command-training": commands.training_texts,
    "errors": errors.texts,
    "evidence": evidence.texts,
    "frontiers": frontiers.texts,
    "frontier-notes": notes.frontier_texts,
    "frontier-page": pages.frontier_texts,
    "model-card": frontiers.card_texts,
    "results": results.texts,
    "words": words.texts,
}
"""Surfaces by name: a function that returns the texts of the surface, each with a title."""


def approve() -> None:
    """Write the files of all surfaces, and delete those of former ones.

    Tests write the file of refusals.
    """
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        if path.stem not in {*SURFACES, REFUSALS}:
            path.unlink()
    for surface, texts in SURFACES.items():
        path_of(surface).write_text(rendered(texts()), encoding="utf-8")


if __name__ == "__main__":
    approve()
