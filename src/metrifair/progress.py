"""A progress bar of one line, for people only: nothing is written unless standard error is a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

_WIDTH = 30


class Progress:
    """Shows how much of a file has come.

    Examples
    --------
    >>> with Progress("adult.data", total=2_000_000) as progress:  # silent here: no terminal
    ...     progress.show(500_000)
    >>> progress.line(500_000)
    'adult.data [#######                       ]  25% of 2.0 MB'
    >>> Progress("adult.zip", total=None).line(1_500_000)
    'adult.zip 1.5 MB'
    """

    def __init__(self, label: str, total: int | None) -> None:
        self.label = label
        self.total = total
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write("\n")

    def line(self, received: int) -> str:
        """The bar as text, after this many bytes."""
        if not self.total:
            return f"{self.label} {received / 1e6:.1f} MB"
        share = min(received / self.total, 1.0)
        bar = "#" * int(share * _WIDTH)
        return f"{self.label} [{bar:<{_WIDTH}}] {share:4.0%} of {self.total / 1e6:.1f} MB"

    def show(self, received: int) -> None:
        """Draw the bar over the last one, where it differs and someone can see it."""
        line = self.line(received)
        if line != self._shown and sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(f"\r{line}")
            sys.stderr.flush()
            self._shown = line
