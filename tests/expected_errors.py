"""The messages of errors that tests expect, approved in ``tests/approved/refusals.txt``.

A test names the type of the error; the file has its message, below the name of the test.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from tests.approved_texts import difference, read_sections, write_sections

SURFACE = "refusals"
APPROVE = "METRIFAIR_APPROVE"
"""The variable that `make approve` sets: tests then write the messages that they meet."""

TEMPORARY = re.compile(r"[^\s'\"]*pytest-of-[^/]+/pytest-\d+/(?:popen-gw\d+/)?[^/\s'\"]+")
"""The folder of a test, which has another name in each run."""


@cache
def approved_messages() -> dict[str, str]:
    """The approved messages by the names of tests, one a line."""
    return read_sections(SURFACE)


class Refusals:
    """Expected errors of one test, whose messages are approved.

    The fixture ``refused`` is one: ``with refused(DataError): ...``. A test may meet several
    messages, one for each value of its parameters, say.
    """

    def __init__(self, test: str) -> None:
        self.test = test

    @contextmanager
    def __call__(self, kind: type[Exception]) -> Iterator[pytest.ExceptionInfo[Exception]]:
        """Expect an error of this type with an approved message."""
        with pytest.raises(kind) as caught:
            yield caught
        self.said(f"{type(caught.value).__name__}: {caught.value}")

    def said(self, message: str) -> None:
        """Expect an approved message, such as the line in which a command says why it stopped."""
        line = " ".join(TEMPORARY.sub("FOLDER", message).split())
        known = approved_messages().get(self.test, "").splitlines()
        if line in known:
            return
        if os.environ.get(APPROVE):
            texts = approved_messages()
            texts[self.test] = "\n".join(sorted([*known, line]))
            write_sections(SURFACE, texts)
            return
        changes = difference(SURFACE, "\n".join(known), line, self.test)
        pytest.fail(changes, pytrace=False)
