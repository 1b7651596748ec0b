"""Messages of commands as sentences of the page, without options of the command line and
without folders.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

FIELDS = {
    "separator": "Separator",
    "decimal": "Decimal separator",
    "encoding": "Encoding",
    "sheet": "Sheet",
    "missing": "Missing values",
    "replace": "Replacements",
    "day-first": "Dates start with the day",
    "score": "Score or decision",
    "favorable-decision": "Favorable decision",
    "label": "Label (true outcome)",
    "positive": "Positive label",
    "weight": "Weight of the row",
    "id": "Identifier of the row",
    "group": "Groups",
    "ignore": "Excluded from training",
    "intersectional": "Intersections",
    "criterion": "Criterion",
    "standard": "Tables of a standard",
    "reference": "Reference group",
    "threshold": "Threshold",
    "find-groups": "Look for groups",
    "among": "Conditions on",
    "utility": "What the model is for",
    "max-unfairness": "Unfairness limit",
    "budget": "Time budget in minutes",
    "families": "Model families",
    "min-cell": "Minimum rows in a cell",
}
"""The fields of the page, by the options that they set."""

# A value in quotes, which stays as it is, or an option.
_QUOTED_OR_OPTION = re.compile(
    r"""(?P<named>\b(?:value\ for|[Oo]ption)\ )'--(?P<quoted_option>[a-z][a-z-]*)'
    |(?P<value>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|“[^”]*”)
    |(?<![\w-])--(?P<option>[a-z][a-z-]*)(?P<equals>=?)""",
    re.VERBOSE,
)
_CLAUSES = re.compile(r"(; |\. |, or )")


def page_text(message: str, places: Iterable[Path] = ()) -> str:
    """A message for the page: options as fields, files without their folders.

    A remedy that needs an option without a field is left out: people cannot follow it on the page.

    >>> page_text("There is no column 'x'; use --label COLUMN")
    "There is no column 'x'; use “Label (true outcome)” COLUMN"
    >>> page_text("There are 900 groups; merge small groups, or use --max-groups 900")
    'There are 900 groups; merge small groups'
    >>> page_text("Cannot read /tmp/studio/upload-3/a.csv", [Path("/tmp/studio/upload-3")])
    'Cannot read a.csv'
    """
    text = _without_places(message, places)
    first, *rest = _CLAUSES.split(text)
    clauses = [first]
    for mark, clause in zip(rest[::2], rest[1::2], strict=True):
        if not set(_options(clause)) - FIELDS.keys():
            clauses += [mark, clause]
    return _QUOTED_OR_OPTION.sub(_as_field, "".join(clauses)).strip()


def _without_places(text: str, places: Iterable[Path]) -> str:
    """The text with the names of files only; of folders within folders, the longest goes first."""
    known = [*places, Path(tempfile.gettempdir()), Path.home(), Path(sys.prefix)]
    folders = {str(form) for place in known for form in (place, place.absolute(), place.resolve())}
    for folder in sorted(folders - {os.sep, "."}, key=len, reverse=True):
        text = re.sub(
            rf"{re.escape(folder)}(?:{re.escape(os.sep)}(?:[\w.-]+{re.escape(os.sep)})*)?", "", text
        )
    return text


def _options(text: str) -> Iterator[str]:
    """The options that a text names."""
    for match in _QUOTED_OR_OPTION.finditer(text):
        if match["value"] is None:
            yield match["quoted_option"] or match["option"]


def _as_field(match: re.Match[str]) -> str:
    """A value as it is; an option as its field, or in words."""
    if match["value"] is not None:
        return match["value"]
    option = match["quoted_option"] or match["option"]
    field = f"“{FIELDS[option]}”" if option in FIELDS else option.replace("-", " ")
    return f"{match['named'] or ''}{field}{' ' if match['equals'] else ''}"
