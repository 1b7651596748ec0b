"""The report on a frontier as one HTML file, and how any report is written."""

from __future__ import annotations

import os
from pathlib import Path

from metrifair.report.content import page_content
from metrifair.report.document import Part, document, part_of
from metrifair.report.markup import Markup, element, joined
from metrifair.report.saving import save
from metrifair.report.view import FrontierView
from metrifair.report.words import glossary, summary

_UNSCRIPTED = "This report is drawn by its own script: allow JavaScript for this file to see it."


def frontier_html(view: FrontierView) -> str:
    r"""The report on a frontier: a page with a slider over the strength. It needs nothing but a browser.

    Examples
    --------
    >>> from metrifair.results import Point
    >>> page = frontier_html(FrontierView([Point(0, 0, 0.9, 0.4)], title="<script>alert(1)</script>"))
    >>> "alert(1)" in page, "<script>alert(1)" in page
    (True, False)
    """
    return document(
        title=view.title,
        about="accuracy and fairness",
        head=frontier_head(view),
        unscripted=_UNSCRIPTED,
        parts=[frontier_part(view)],
        words=glossary(view),
    )


def frontier_head(view: FrontierView) -> Markup:
    """What was found, in words: the summary and the notes."""
    return joined(
        element("p", " ".join(summary(view)), id="summary", class_="summary"),
        element("ul", *(element("li", note) for note in view.notes), id="notes", class_="notes"),
    )


def frontier_part(view: FrontierView, *, most_numbers: int = 120_000) -> Part:
    """The drawing of a frontier with its slider; ``most_numbers`` bounds the curves, and so the size of the page."""
    content = page_content(view, most_numbers=most_numbers)
    return Part(Markup(part_of("frontier.html")), "data", content, ("frontier.js", "panels.js"))


def write_html(path: str | os.PathLike[str], text: str) -> Path:
    """Write a page under this path, in one step, and return the path.

    Raises
    ------
    DataError
        If the folder is missing or nothing can be written there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_html(Path(folder, "report.html"), "<!doctype html>").name
    'report.html'
    """
    return save(path, text.encode(errors="replace"))  # names read from a file of another encoding may hold half signs
