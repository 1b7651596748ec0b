"""A closed pipe, as in ``metrifair audit ...

| head``: nothing more is printed, and the command writes its files.
"""

from __future__ import annotations

import os
import sys

import click

_DISCARDING = "metrifair: output is discarded"  # a key of the context


def discard_output(ctx: click.Context) -> None:
    """Discard all further output, also what is buffered, so that Python's last flush does not
    fail either.
    """
    ctx.meta[_DISCARDING] = True
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


def is_discarding(ctx: click.Context) -> bool:
    """Whether output of the command is discarded."""
    return _DISCARDING in ctx.meta
