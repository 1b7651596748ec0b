"""What people read, one approved text for each surface, in ``tests/approved``.

A change of a sentence changes its file, which a reviewer reads as a diff. ``make approve`` writes the
files anew.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

from tests.surfaces import (
    audits,
    commands,
    errors,
    evidence,
    frontiers,
    notes,
    pages,
    results,
    words,
)

FOLDER = Path(__file__).parent / "approved"
HOW_TO_APPROVE = "If every change is meant, run `make approve` and commit the files."

SURFACES: dict[str, Callable[[], dict[str, str]]] = {
    "audits": audits.texts,
    "audit-notes": notes.audit_texts,
    "audit-page": pages.audit_texts,
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


def rendered(texts: dict[str, str]) -> str:
    """The texts of a surface as one document, each below its title.

    >>> print(rendered({"no rows": "Nothing to compare. \\nPass rows."}), end="")
    ===== no rows
    Nothing to compare.
    Pass rows.
    """
    parts = [f"===== {title}\n{text.strip()}\n" for title, text in texts.items()]
    lines = "\n".join(parts).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def path_of(surface: str) -> Path:
    """The file with the approved text of a surface."""
    return FOLDER / f"{surface}.txt"


def approved(surface: str) -> str:
    """The approved text of a surface; empty before the first approval."""
    path = path_of(surface)
    return path.read_text(encoding="utf-8") if path.exists() else ""


def difference(surface: str, text: str) -> str:
    """How a text differs from the approved one, and how to approve it; empty if it does not."""
    lines = difflib.unified_diff(
        approved(surface).splitlines(),
        text.splitlines(),
        f"tests/approved/{surface}.txt",
        "what this code says",
        lineterm="",
        n=2,
    )
    changes = "\n".join(lines)
    return changes and f"{changes}\n\n{HOW_TO_APPROVE}"


def approve() -> None:
    """Write the files of all surfaces, and delete those of former ones."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        if path.stem not in SURFACES:
            path.unlink()
    for surface, texts in SURFACES.items():
        path_of(surface).write_text(rendered(texts()), encoding="utf-8")


if __name__ == "__main__":
    approve()
