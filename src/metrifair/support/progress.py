"""A progress bar of one line for people, written only if standard error is a terminal; lines of
JSON for programs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from time import monotonic
from typing import Self

AS_JSON = "METRIFAIR_PROGRESS"
"""With this environment variable at ``json``, each change is one line of JSON on standard error."""

_WIDTH = 30


def megabytes(amount: int) -> str:
    """A number of bytes for people."""
    return f"{amount / 1e6:.1f} MB"


class Progress:
    """Shows how much of something is done.

    >>> # silent here: no terminal
    >>> with Progress("adult.data", total=2_000_000, text=megabytes) as progress:
    ...     progress.show(500_000)
    >>> progress.line(500_000)
    'adult.data [#######                       ]  25% of 2.0 MB'
    >>> Progress("adult.zip", total=None, text=megabytes).line(1_500_000)
    'adult.zip 1.5 MB'
    """

    def __init__(self, label: str, total: int | None, *, text: Callable[[int], str] = str) -> None:
        self.label = label
        self.total = total
        self.text = text
        self.as_json = os.environ.get(AS_JSON) == "json"
        self.shown = sys.stderr is not None and (self.as_json or sys.stderr.isatty())
        self._shown = ""
        self._done = 0
        self._began = monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown and self.as_json:
            self._write_json(self._done + 1, "")
        elif self._shown:
            sys.stderr.write("\n")

    def line(self, done: int, item: str = "") -> str:
        """The bar as text, after this much; ``item`` is what is being done."""
        label = f"{self.label} {item}" if item else self.label
        if not self.total:
            return f"{label} {self.text(done)}"
        share = min(done / self.total, 1.0)
        bar = "#" * int(share * _WIDTH)
        return f"{label} [{bar:<{_WIDTH}}] {share:4.0%} of {self.text(self.total)}"

    def show(self, done: int, item: str = "") -> None:
        """Draw the bar over the last one, where it differs and someone can see it."""
        if not self.shown or (line := self.line(done, item)) == self._shown:
            return
        self._shown = line
        self._done = done
        if self.as_json:
            self._write_json(done, item.strip())
        else:
            sys.stderr.write(f"\r{line}")
            sys.stderr.flush()

    def _write_json(self, done: int, item: str) -> None:
        event = {"progress": self.label, "item": item, "done": done, "total": self.total}
        sys.stderr.write(
            f"{json.dumps(event | {'seconds': round(monotonic() - self._began, 1)})}\n"
        )
        sys.stderr.flush()
