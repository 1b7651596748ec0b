"""Bounds of JSON from strangers, checked before it is parsed: parsers recurse, and values need
much memory.
"""

from __future__ import annotations

import re

from metrifair.errors import DataError

MOST_JSON_VALUES = 2**22  # commas and brackets
DEEPEST_JSON = 64  # levels of lists and objects

_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)


def check_json(content: bytes) -> None:
    """Raise a DataError for JSON with too many values or levels; its syntax is not checked.

    >>> check_json(b'{"a": [1, "[[["]}')
    >>> check_json(b"[" * 1000)
    Traceback (most recent call last):
    metrifair.errors.DataError: the JSON nests its values more than 64 levels deep
    """
    import numpy as np  # noqa: PLC0415 (help of the command line does without it)

    if sum(content.count(sign) for sign in (b",", b"[", b"{")) > MOST_JSON_VALUES:
        raise DataError(f"the JSON contains more than {MOST_JSON_VALUES:,} values")
    signs = np.frombuffer(_TEXT.sub(b"", content), np.uint8)
    steps = np.isin(signs, list(b"[{")).astype(np.int32) - np.isin(signs, list(b"]}"))
    if np.cumsum(steps).max(initial=0) > DEEPEST_JSON:
        raise DataError(f"the JSON nests its values more than {DEEPEST_JSON} levels deep")
