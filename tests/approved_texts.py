"""Files of approved texts: how they are written, read and compared."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "approved"
HOW_TO_APPROVE = "If every change is meant, run `make approve` and commit the files."
TITLE = re.compile(r"^===== (.*)\n", re.MULTILINE)


def path_of(surface: str) -> Path:
    """The file with the approved text of a surface."""
    return FOLDER / f"{surface}.txt"


def approved(surface: str) -> str:
    """The approved text of a surface; empty before the first approval."""
    path = path_of(surface)
    return path.read_text(encoding="utf-8") if path.exists() else ""


def plain(text: str) -> str:
    """A text without spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def rendered(texts: dict[str, str]) -> str:
    """The texts of a surface as one document, each below its title.

    >>> print(rendered({"no rows": "Nothing to compare. \\nPass rows."}), end="")
    ===== no rows
    Nothing to compare.
    Pass rows.
    """
    return "\n".join(f"===== {title}\n{plain(text)}\n" for title, text in texts.items())


def read_sections(surface: str) -> dict[str, str]:
    """The texts of an approved file by their titles."""
    _, *parts = TITLE.split(approved(surface))
    return {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


def write_sections(surface: str, texts: dict[str, str]) -> None:
    """Write the texts of a surface in the order of their titles."""
    path_of(surface).write_text(rendered(dict(sorted(texts.items()))), encoding="utf-8")


def difference(surface: str, old: str, new: str, title: str = "") -> str:
    """How a text differs from the approved one, and how to approve it; empty if it does not."""
    place = f"tests/approved/{surface}.txt {title}".strip()
    lines = difflib.unified_diff(
        plain(old).splitlines(),
        plain(new).splitlines(),
        place,
        "what this code says",
        lineterm="",
        n=2,
    )
    changes = "\n".join(lines)
    return changes and f"{changes}\n\n{HOW_TO_APPROVE}"
