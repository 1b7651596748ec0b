"""The values of a page are read: by its scripts, or as places in the texts that they show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from audits import demo_record
from frontiers import demo_view

from tests.seams.report import audit_content, page_content, resource
from tests.seams.wording import PAGE_TEXTS

DRAWING = ("draw.js", "curves.js", "table.js")
PAGES = {
    "audit": (audit_content(demo_record()), ("audit.js", "auditviews.js", "findings.js")),
    "frontier": (page_content(demo_view()), ("frontier.js", "panels.js")),
}


def keys(content: Any) -> Iterator[str]:
    """The names of all values; rows and pairs of groups are numbers."""
    if isinstance(content, dict):
        yield from (key for key in content if re.fullmatch(r"[A-Za-z]\w*", key))
        content = list(content.values())
    if isinstance(content, list | tuple):
        for part in content:
            yield from keys(part)


@pytest.mark.parametrize("page", PAGES)
def test_every_value_of_a_page_is_read(page: str) -> None:
    content, scripts = PAGES[page]
    script = "\n".join(map(resource, (*scripts, *DRAWING)))
    # a property, a name that is taken from an object, or the text of a name
    read = set(re.findall(r'(?:\.|[{,"] *)([A-Za-z]\w*)', script))
    placed = {place for text in PAGE_TEXTS.values() for place in re.findall(r"{(\w+)}", text)}
    names = set(keys(content))
    assert len(names) > 20
    assert names - read - placed == set()
