"""Pages: HTML from values, the common parts of all pages, and writing.

Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import (
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from metrifair.support.files import write_file
from metrifair.support.provenance import Provenance
from metrifair.wording.page_texts import PAGE_TEXTS
from metrifair.wording.provenance import provenance_lines
from metrifair.wording.tables import Column

PageJson = None | bool | int | float | str | Sequence["PageJson"] | Mapping[str, "PageJson"]

# In JSON these are legal unescaped; in HTML < and & could end the element that contains it.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
_DRAWING = ("draw.js", "curves.js", "table.js")


class Markup(str):
    """Text that is HTML already; any other text is escaped before it becomes part of it."""

    __slots__ = ()


def element(
    name: str,
    *inside: str,
    **attributes: str,
) -> Markup:
    """An HTML element; an attribute that is a word of Python ends in an underscore, other
    underscores become hyphens.

    >>> print(element("p", "a < b, ", element("b", "c"), class_="hint"))
    <p class="hint">a &lt; b, <b>c</b></p>
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{pairs}>{joined(*inside)}</{name}>")


def joined(*parts: str) -> Markup:
    """Several pieces as one, plain text among them escaped.

    >>> print(joined(element("b", "a"), " & ", element("b", "c")))
    <b>a</b> &amp; <b>c</b>
    """
    return Markup(
        "".join(part if isinstance(part, Markup) else html.escape(part) for part in parts)
    )


def with_small(text: str, small: str) -> Markup:
    """Text, with an optional remark in small print."""
    return joined(text, element("small", small)) if small else joined(text)


def table_head(headings: Iterable[str]) -> Markup:
    """The head of a table."""
    return element("thead", element("tr", *(element("th", text, scope="col") for text in headings)))


def table_row(
    heading: str,
    cells: Iterable[str],
    **attributes: str,
) -> Markup:
    """A row of a table."""
    return element(
        "tr",
        element("th", heading, scope="row"),
        *(element("td", cell) for cell in cells),
        **attributes,
    )


def column_row(columns: Sequence[Column], row: Any, **attributes: str) -> Markup:
    """A row of a table with these columns; the first one is its heading."""
    first, *cells = (column.cell(row) for column in columns)
    return table_row(first.text, (with_small(*cell) for cell in cells), **attributes)


def table_region(
    table: Markup,
    class_: str = "scroll",
    **label: str,
) -> Markup:
    """A table that scrolls sideways where it is too wide, also by keyboard."""
    return element("div", table, class_=class_, tabindex="0", role="region", **label)


def item_list(texts: Iterable[str], **attributes: str) -> Markup:
    """A list of texts."""
    return element("ul", *(element("li", text) for text in texts), **attributes)


def fact_list(facts: Iterable[tuple[str, str]]) -> Markup:
    """Names and values."""
    items = (element("div", element("dt", name), element("dd", text)) for name, text in facts)
    return element("dl", *items, class_="facts")


def summary_head(sentences: Sequence[str], *more: Markup) -> Markup:
    """The head of a page: a summary, whose first sentence leads, and the content below it."""
    first, *rest = sentences
    lead = element("p", first, id="audit-summary", class_="summary lead")
    items = [item_list(rest, class_="sentences")] if rest else []
    return joined(lead, *items, *more)


def card(
    name: str,
    title: str,
    *inside: str,
) -> Markup:
    """A section of a page with its heading, by which readers of the screen find it."""
    heading = element("h2", title, id=f"{name}-title")
    return element(
        "section", heading, *inside, id=name, class_="card", aria_labelledby=f"{name}-title"
    )


def word_list(words: Iterable[tuple[str, str]]) -> Markup:
    """Words and their meanings, as the inside of a list."""
    return joined(*(joined(element("dt", word), element("dd", meaning)) for word, meaning in words))


@dataclass(frozen=True)
class Section:
    """A stretch of a page: its markup, the values it shows, and the scripts that place them."""

    body: Markup
    data: str = ""  # id of the JSON block with the values
    content: PageJson = None
    scripts: tuple[str, ...] = ()  # none: the markup has all values


def document(
    *,
    title: str,
    about: str,
    head: Markup,
    sections: Sequence[Section],
    words: Sequence[tuple[str, str]],
    provenance: Provenance | None = None,
    unscripted: str = "This page needs no script.",
) -> str:
    """A page: a head, sections, a glossary and the provenance.

    Text from the data is escaped in the markup, or in a JSON block from which a script reads it as
    text; the page's policy allows no script but its own, no other style and no request.
    """
    origin = [] if provenance is None else provenance_lines(provenance)
    # Texts of page margins are in the style, with all characters except letters and digits escaped.
    running = (title, "" if provenance is None else provenance.short_hash)
    left, right = (
        "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):06x}" for c in text)
        for text in running
    )
    printed = resource("print.css").replace("RUNNING-TITLE", left).replace("RUNNING-HASH", right)
    style = resource("page.css") + printed
    # Each section has its own script block, so that names cannot clash.
    scripted = [section for section in sections if section.scripts]
    own = [f"{{\n{''.join(map(resource, section.scripts))}}}\n" for section in scripted]
    script = "".join([*map(resource, _DRAWING), *own]) if scripted else ""
    blocks: dict[str, PageJson] = {"texts": dict(PAGE_TEXTS)} if scripted else {}
    blocks |= {section.data: section.content for section in scripted}
    policy = (
        f"default-src 'none'; script-src {_allowed(script)}; style-src {_allowed(style)}; img-src "
        "data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return Template(resource("page.html")).substitute(
        policy=policy,
        style=style,
        title=joined(f"{title} \N{EN DASH} metrifair"),
        about=joined(about),
        heading=element("h1", title, id="title"),
        head=head,
        unscripted=joined(unscripted),
        body=joined(*(section.body for section in sections)),
        words=word_list(words),
        origin=card(
            "origin", "Where this comes from", element("dl", word_list(origin), class_="words")
        )
        if origin
        else "",
        data="\n".join(
            f'<script type="application/json" id="{name}">{embedded_json(content)}</script>'
            for name, content in blocks.items()
        ),
        script=script,
    )


def origin_list(provenance: Provenance, heading: str = "Where this comes from") -> Markup:
    """Where an audit comes from, to unfold; printed in full."""
    lines = provenance_lines(provenance)
    if not lines:
        return Markup("")
    return element(
        "details",
        element("summary", heading),
        element("dl", word_list(lines), class_="words"),
        class_="origin",
    )


def embedded_json(content: PageJson) -> str:
    """JSON for a script element: no character in it can end the element or begin markup.

    >>> print(embedded_json({"name": "</script>"}))
    {"name":"\\u003c/script\\u003e"}
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def resource(name: str) -> str:
    """The text of a file in this folder."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _allowed(text: str) -> str:
    """The name of an inline element in a policy: the hash of its text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def framed(
    page: str,
    *,
    height: int,
    title: str,
) -> str:
    """A page inside another one, such as a notebook's: neither's style or script reaches the other.

    >>> framed("<p>a & b", height=90, title="one")
    '<iframe srcdoc="<p>a &amp; b" sandbox="allow-scripts" title="one" style="...;height:90px;border:0"></iframe>'
    """
    text = page.replace("&", "&amp;").replace('"', "&quot;")
    box = f'style="width:100%;height:{height}px;border:0"'
    return f'<iframe srcdoc="{text}" sandbox="allow-scripts" title="{html.escape(title)}" {box}></iframe>'


def write_html(path: str | os.PathLike[str], text: str) -> Path:
    """Write a page under this path, in one step, and return the path; a DataError if that is not
    possible.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_html(Path(folder, "report.html"), "<!doctype html>").name
    'report.html'
    """
    return write_file(path, text.encode(errors="replace"))  # names may contain lone surrogates
