"""A progress bar of one line, for people only: nothing is written unless standard error is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Self

_WIDTH = 30


def megabytes(amount: int) -> str:
    """A number of bytes for people."""
    return f"{amount / 1e6:.1f} MB"


class Progress:
    """Shows how much of something is done.

    >>> with Progress("adult.data", total=2_000_000, text=megabytes) as progress:  # silent here: no terminal
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
        self.shown = sys.stderr is not None and sys.stderr.isatty()
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\n")

    def line(self, done: int) -> str:
        """The bar as text, after this much."""
        if not self.total:
            return f"{self.label} {self.text(done)}"
        share = min(done / self.total, 1.0)
        bar = "#" * int(share * _WIDTH)
        return f"{self.label} [{bar:<{_WIDTH}}] {share:4.0%} of {self.text(self.total)}"

    def show(self, done: int) -> None:
        """Draw the bar over the last one, where it differs and someone can see it."""
        if not self.shown:
            return
        line = self.line(done)
        if line != self._shown:
            sys.stderr.write(f"\r{line}")
            sys.stderr.flush()
            self._shown = line
