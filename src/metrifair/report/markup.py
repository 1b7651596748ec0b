"""HTML made of values: what came from the data is escaped, because only `element` makes markup."""

from __future__ import annotations

import html


class Markup(str):
    """Text that is HTML already; any other text is escaped before it becomes part of it."""

    __slots__ = ()


def element(name: str, *inside: str, **attributes: str) -> Markup:
    """An HTML element; an attribute that is a word of Python ends in an underscore.

    >>> print(element("p", "a < b, ", element("b", "c"), class_="hint"))
    <p class="hint">a &lt; b, <b>c</b></p>
    """
    given = "".join(f' {key.rstrip("_")}="{html.escape(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{joined(*inside)}</{name}>")


def joined(*parts: str) -> Markup:
    """Several pieces as one, plain text among them escaped.

    >>> print(joined(element("b", "a"), " & ", element("b", "c")))
    <b>a</b> &amp; <b>c</b>
    """
    return Markup("".join(part if isinstance(part, Markup) else html.escape(part) for part in parts))
