"""The directive ``picture``: a chart, a figure or a report made of a page's own examples while
the site is built.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
from pathlib import Path
from typing import Any, ClassVar

import matplotlib.pyplot as plt
from docutils import nodes
from docutils.parsers.rst import directives
from extension import drawing_style
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

DENSITY = 1.5  # dots of a picture for each pixel of the page
SHOWN_LINES = 3  # longer programs are folded below their picture
FOLD = '<details class="mf-code"><summary>Show the code of this picture</summary>'


class Picture(SphinxDirective):
    """Run the examples of the page up to here and then the content, whose last expression is shown.

    The expression is a figure of matplotlib, a display that has one, or an audit or frontier,
    whose page is shown in a frame.
    """

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Make the picture and the nodes that show it."""
        code, alt = "\n".join(self.content), self.options["alt"]
        number = self.env.temp_data["pictures"] = self.env.temp_data.get("pictures", 0) + 1
        name = f"{self.env.docname.replace('/', '-')}-{number}"
        try:
            value = self._value(code, alt)
        except Exception as error:
            raise self.error(f"the code of a picture fails: {error!r}") from error
        finally:
            plt.close("all")
        listing = nodes.literal_block(code, code, language="python")
        value = getattr(value, "figure_", value)
        if value.__class__.__module__.startswith("metrifair"):
            return [listing, self._framed(value, name, alt)]
        path = self._drawn(value, name)
        # of a PNG
        width = int.from_bytes((Path(self.env.srcdir) / path).read_bytes()[16:20], "big")
        image = nodes.image(
            uri=f"/{path}", alt=alt, width=f"{width / DENSITY:.0f}px", classes=["mf-drawn"]
        )
        if len(self.content) <= SHOWN_LINES:
            return [listing, image]
        return [
            image,
            nodes.raw("", FOLD, format="html"),
            listing,
            nodes.raw("", "</details>", format="html"),
        ]

    def _value(self, code: str, alt: str) -> Any:
        """Run what the page has shown so far, once for all its pictures, then the code."""
        text = Path(self.env.doc2path(self.env.docname)).read_text(encoding="utf-8")
        examples = doctest.DocTestParser().get_examples(text[: text.index(f"{alt}\n{code}")])
        names, done = self.env.temp_data.get("examples", ({"__name__": "page"}, 0))
        drawing_style({}, "")
        *statements, last = ast.parse(code).body
        with contextlib.redirect_stdout(io.StringIO()):
            for example in examples[done:]:
                exec(compile(example.source, self.env.docname, "exec"), names)
            exec(compile(ast.Module(statements, []), self.env.docname, "exec"), names)
            value = eval(compile(ast.Expression(last.value), self.env.docname, "eval"), names)  # type: ignore[attr-defined]
        self.env.temp_data["examples"] = names, len(examples)
        return value

    def _drawn(self, value: Any, name: str) -> str:
        """Save a figure; its path in the folder of the pages."""
        path = Path("_build") / "pictures" / f"{name}.png"
        whole = Path(self.env.srcdir) / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        value.savefig(whole)
        return path.as_posix()

    def _framed(self, value: Any, name: str, alt: str) -> nodes.Node:
        """Save the page that a value writes, and show it in a frame."""
        path = Path("_static") / "reports" / f"{name}.html"
        whole = Path(self.env.app.outdir) / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        value.to_html(whole)
        address = "../" * self.env.docname.count("/") + path.as_posix()
        frame = f'<iframe class="mf-report" src="{address}" title="{alt}" loading="lazy"></iframe>'
        link = f'<p class="mf-whole"><a href="{address}">Open this page by itself</a></p>'
        return nodes.raw("", frame + link, format="html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
