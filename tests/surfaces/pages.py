"""The texts of the pages of audits and frontiers: what the HTML shows, and what its script draws."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from metrifair import audit, compare, find_groups, monitor
from tests.surfaces.frontiers import made
from tests.surfaces.origins import without_origin
from tests.surfaces.rows import QUICK, people

INLINE = {"a", "abbr", "b", "code", "em", "i", "label", "mark", "small", "span", "strong", "sub"}
HIDDEN = {"script", "style"}
CELLS = {"td", "th", "dt"}


class VisibleText(HTMLParser):
    """The text of a page, one line for each block."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in HIDDEN
        self._break(tag)
        for name, value in attrs:
            if name in ("title", "placeholder", "aria-label") and value:
                self.parts.append(f"[{value}] ")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in HIDDEN
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(re.sub(r"\s+", " ", data))

    def _break(self, tag: str) -> None:
        """End a cell or a block."""
        if tag in CELLS:
            self.parts.append(" ")
        elif tag not in INLINE:
            self.parts.append("\n")

    def lines(self) -> list[str]:
        """The lines that have text."""
        lines = (re.sub(r" +", " ", line).strip() for line in "".join(self.parts).split("\n"))
        return [line for line in lines if line]


def drawn(page: str) -> list[str]:
    """The texts that the scripts of a page draw, once each: those of several words."""
    blocks = re.findall(
        r'<script type="application/json" id="(.+?)">(.*?)</script>', page, re.DOTALL
    )
    contents = [json.loads(content) for _, content in blocks]
    texts = (re.sub(r"\s+", " ", text).strip() for text in words(contents))
    return list(dict.fromkeys(text for text in texts if re.search(r"[A-Za-z]", text)))


def words(value: Any) -> list[str]:
    """The strings of several words in a value of JSON."""
    if isinstance(value, dict):
        return [text for part in value.values() for text in words(part)]
    if isinstance(value, list):
        return [text for part in value for text in words(part)]
    return [value] if isinstance(value, str) and " " in value else []


def page_of(result: Any, **options: Any) -> str:
    """The page that a result writes."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "page.html")
        result.to_html(path, **options)
        return path.read_text(encoding="utf-8")


def shown(page: str) -> str:
    """What the HTML of a page shows."""
    return without_origin("\n".join(VisibleText(page).lines()))


def drawn_only(page: str) -> str:
    """What the script of a page draws, and the HTML does not show."""
    shown_lines = set(VisibleText(page).lines())
    return "\n".join(text for text in drawn(page) if text not in shown_lines)


def audit_texts() -> dict[str, str]:
    """The page of an audit, and those of results that come from audits."""
    rows = people()
    sex = {"sex": rows.sex}
    result = audit(rows.outcome, rows.score, sensitive_features=sex, options=QUICK)
    fairer = audit(rows.outcome, rows.score / 2, sensitive_features=sex, options=QUICK)
    table = {"sex": rows.sex, "region": rows.region}
    found = find_groups(rows.outcome, rows.score, table)
    page = page_of(result, title="Hiring", about={"purpose": "yearly review"})
    return {
        "audit": shown(page),
        "audit: drawn by scripts": drawn_only(page),
        "rates": shown(page_of(result.rates("ll144"))),
        "comparison": shown(page_of(compare(result, fairer))),
        "monitoring": shown(page_of(monitor([result, fairer], options=QUICK))),
        "search for groups": shown(page_of(found)),
    }


def frontier_texts() -> dict[str, str]:
    """The page of a frontier before and after a choice."""
    front = made()
    before = page_of(front)
    front.select(max_unfairness=0.25)
    after = page_of(front, title="Hiring")
    page_texts = set(drawn(page_of(audit(None, [0, 1], sensitive_features=["a", "b"]))))
    own = [line for line in drawn_only(after).splitlines() if line not in page_texts]
    return {
        "before a choice": shown(before),
        "after a choice": shown(after),
        "after a choice: drawn by scripts": "\n".join(own),
    }
