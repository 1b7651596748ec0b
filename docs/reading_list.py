"""The file ``llms.txt`` of the site: its pages with their first sentences, for programs that read
documentation.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

_SENTENCE = "metrifair measures and trains fair scores: fairness as a distance between groups."
_LEFT_OUT = ("reference/generated/", "gallery/", "_")
_MOST_CHARACTERS = 200


def _first_paragraph(page: nodes.document) -> str:
    """The first sentence or two of a page, in plain text."""
    for paragraph in page.findall(nodes.paragraph):
        in_table = isinstance(paragraph.parent, nodes.entry | nodes.list_item)
        text = " ".join(paragraph.astext().split())
        if text and not in_table:
            return text
    return ""


def _shortened(text: str) -> str:
    if len(text) <= _MOST_CHARACTERS:
        return text
    return text[:_MOST_CHARACTERS].rsplit(" ", 1)[0] + " ..."


def _lines(app: Sphinx, pages: Iterable[str]) -> list[str]:
    """One line a page: its title, its address and what it begins with."""
    lines = []
    for name in pages:
        title = app.env.titles[name].astext()
        summary = _shortened(_first_paragraph(app.env.get_doctree(name)))
        address = app.builder.get_target_uri(name)
        lines.append(f"- [{title}]({address}): {summary}" if summary else f"- [{title}]({address})")
    return lines


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    pages = sorted(name for name in app.env.titles if not name.startswith(_LEFT_OUT))
    text = ["# metrifair", "", f"> {_SENTENCE}", "", "## Pages", "", *_lines(app, pages)]
    Path(app.outdir, "llms.txt").write_text("\n".join(text) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the file when all pages are."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
