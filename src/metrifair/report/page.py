"""The report as one HTML file: nothing is loaded from elsewhere, and text of the data is never markup."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from importlib import resources
from pathlib import Path
from string import Template

from metrifair.report.content import Json, page_content
from metrifair.report.saving import save
from metrifair.report.view import FrontierView

# In JSON these are legal unescaped; in HTML < and & could end the element that holds it.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def frontier_html(view: FrontierView) -> str:
    r"""The report on a frontier: a page with a slider over the strength.

    It needs nothing but a browser. What comes from the data stands in one JSON block, from where the page's script
    takes it as text; the page's policy allows no other script, no style and no request.

    Examples
    --------
    >>> from metrifair.points import Point
    >>> page = frontier_html(FrontierView([Point(0, 0, 0.9, 0.4)], title="<script>alert(1)</script>"))
    >>> "alert(1)" in page, "<script>alert(1)" in page
    (True, False)
    """
    style, script = _part("page.css"), "".join(_part(name) for name in ("draw.js", "page.js", "panels.js"))
    policy = (
        f"default-src 'none'; script-src {_allowed(script)}; style-src {_allowed(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return Template(_part("page.html")).substitute(
        policy=policy, style=style, data=embedded_json(page_content(view)), script=script
    )


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
    return save(path, text.encode())


def embedded_json(content: Json) -> str:
    """JSON that may stand inside a script element: no sign in it can end the element or begin markup.

    >>> print(embedded_json({"name": "</script>"}))
    {"name":"\\u003c/script\\u003e"}
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _allowed(text: str) -> str:
    """How a policy names one inline element: by the hash of its text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
