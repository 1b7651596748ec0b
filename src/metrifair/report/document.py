"""What all pages share: skeleton, style, drawing code, policy. Nothing is loaded from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template

from metrifair.report.drawable import Json
from metrifair.report.markup import Markup, element, joined

# In JSON these are legal unescaped; in HTML < and & could end the element that holds it.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
_DRAWING = ("draw.js", "curves.js", "table.js")


@dataclass(frozen=True)
class Part:
    """A stretch of a page: its markup, the values it shows, and the scripts that place them."""

    body: Markup
    data: str  # id of the JSON block that holds the values
    content: Json
    scripts: tuple[str, ...]


def document(
    *, title: str, about: str, head: Markup, unscripted: str, parts: Sequence[Part], words: Sequence[tuple[str, str]]
) -> str:
    """A page: a head, parts, a glossary.

    What comes from the data stands escaped in the markup, or in a JSON block from where a script takes it as text;
    the page's policy allows no script but its own, no other style and no request.
    """
    style = part_of("page.css")
    # Each part's scripts are a block of their own, so that their names cannot clash.
    script = "".join(part_of(name) for name in _DRAWING) + "".join(
        f"{{\n{''.join(part_of(name) for name in part.scripts)}}}\n" for part in parts
    )
    policy = (
        f"default-src 'none'; script-src {_allowed(script)}; style-src {_allowed(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return Template(part_of("page.html")).substitute(
        policy=policy,
        style=style,
        title=joined(f"{title} \N{EN DASH} metrifair"),
        about=joined(about),
        heading=element("h1", title, id="title"),
        head=head,
        unscripted=joined(unscripted),
        body=joined(*(part.body for part in parts)),
        words=joined(*(joined(element("dt", word), element("dd", meaning)) for word, meaning in words)),
        data="\n".join(_data_block(part) for part in parts),
        script=script,
    )


def embedded_json(content: Json) -> str:
    """JSON that may stand inside a script element: no sign in it can end the element or begin markup.

    >>> print(embedded_json({"name": "</script>"}))
    {"name":"\\u003c/script\\u003e"}
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def part_of(name: str) -> str:
    """Text of a file that stands beside this one."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _data_block(part: Part) -> str:
    return f'<script type="application/json" id="{part.data}">{embedded_json(part.content)}</script>'


def _allowed(text: str) -> str:
    """How a policy names one inline element: by the hash of its text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
