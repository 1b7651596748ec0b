"""Checks of what a user typed: a name among those that exist, a switch that is on or off, an extra that is there."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType

from metrifair.errors import DataError, MissingExtra


def check_known(what: str, value: object, known: Iterable[str], *, otherwise: str = "") -> None:
    """Raise a DataError that lists what exists, and the nearest of it, unless ``value`` is among it.

    ``otherwise`` names what else the caller would have taken.

    >>> check_known("target", "heroin", ["heroin", "cannabis"])
    >>> check_known("target", "heroine", ["heroin", "cannabis"])
    Traceback (most recent call last):
    metrifair.errors.DataError: target must be one of 'heroin', 'cannabis', got 'heroine'; did you mean 'heroin'?
    """
    known = list(known)
    if isinstance(value, str) and value in known:
        return
    near = difflib.get_close_matches(value, known, n=1) if isinstance(value, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(map(repr, known)) + (f" or {otherwise}" if otherwise else "")
    raise DataError(f"{what} must be one of {listed}, got {value!r}{hint}")


def check_switches(**switches: object) -> None:
    """Raise a DataError unless every value is True or False: "no" would otherwise count as true.

    >>> check_switches(violent=True)
    >>> check_switches(violent="no")
    Traceback (most recent call last):
    metrifair.errors.DataError: violent must be True or False, got 'no'
    """
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise DataError(f"{name} must be True or False, got {value!r}")


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """The module, or a MissingExtra with the command that installs it.

    >>> require("json", extra="datasets", purpose="this example").__name__
    'json'
    >>> require("no_such_module", extra="datasets", purpose="this example")
    Traceback (most recent call last):
    metrifair.errors.MissingExtra: this example needs no_such_module: pip install "metrifair[datasets]"
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(f'{purpose} needs {module}: pip install "metrifair[{extra}]"') from error
