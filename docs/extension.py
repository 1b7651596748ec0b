"""What the site needs beyond other people's extensions: formulas without scripts, one look for
all pictures.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import matplotlib.pyplot as plt
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

# as in report/page.css; dark pages invert pictures (site.css)
INK, SOFT, GRID = "#1b1b1f", "#5a5a63", "#e3e3e0"
# Okabe and Ito's: distinct with any color vision
SERIES = ("#0072b2", "#d55e00", "#009e73", "#b3578c", "#b07700")


def drawing_style(_gallery: dict[str, Any], _name: str) -> None:
    """Set the look of pictures; sphinx-gallery calls this before each example."""
    plt.rcdefaults()
    plt.rcParams.update(
        {
            "figure.figsize": (7.2, 4.0),
            "figure.constrained_layout.use": True,
            "savefig.dpi": 144,
            "font.size": 11,
            "axes.prop_cycle": plt.cycler(color=SERIES),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.titlelocation": "left",
            "axes.titlesize": 12,
            "axes.titleweight": "bold",
            "axes.titlecolor": INK,
            "axes.edgecolor": SOFT,
            "axes.labelcolor": SOFT,
            "xtick.color": SOFT,
            "ytick.color": SOFT,
            "text.color": INK,
            "grid.color": GRID,
            "legend.frameon": False,
            "lines.linewidth": 2,
        }
    )


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def _of_others(
    _app: Sphinx, _what: str, _name: str, member: Any, skip: bool, _options: Any
) -> bool | None:
    """Leave out members that a base class of another library defines: its own reference
    explains them.
    """
    function = getattr(member, "fget", member)
    module = getattr(getattr(function, "__func__", function), "__module__", None) or ""
    return True if not skip and not module.startswith("metrifair") else None


def _parameters(
    _app: Sphinx,
    what: str,
    _name: str,
    value: Any,
    _options: Any,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Show the parameters of ``__init__`` where a class has a ``__new__`` that only watches for
    words of old.
    """
    if what == "class" and signature and "**given" in signature:
        parameters = list(inspect.signature(value.__init__).parameters.values())[1:]
        bare = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
        signature = str(inspect.Signature(bare))
    return signature, returned


def _without_last_blank(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Take the blank line off that doctest needs at the end of a block, and readers do not."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def _links_to_pages(
    _app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: Any
) -> None:
    """Link listings of source to pages of names; viewcode guesses the place on the page, and
    sometimes wrongly.
    """
    if page.startswith("_modules/"):
        context["body"] = re.sub(
            r'(class="viewcode-back" href="[^"#]*)#[^"]*"', r'\1"', context["body"]
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about all of this."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )
    app.connect("autodoc-process-signature", _parameters)
    app.connect("source-read", _without_last_blank)
    app.connect("autodoc-skip-member", _of_others)
    app.connect("html-page-context", _links_to_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
