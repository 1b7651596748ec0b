"""Errors and warnings that carry their parts: the argument, the problem, the received value, and a
remedy.

Parts are values. ``str(error)`` names arguments as Python does; ``error.text(names)`` as other
``ArgumentNames`` do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "DataError",
    "Diverged",
    "MetrifairWarning",
    "MissingBrowser",
    "MissingExtra",
    "MissingModelFile",
    "ModelFileError",
    "Remedy",
    "TooFewSamples",
]


def __dir__() -> list[str]:
    return __all__


# Arguments that Python takes as fields of a record.
_RECORDS = {
    "GroupProbabilities": ("cells", "confusion", "known_groups", "with_labels"),
    "options=AuditOptions": ("cuts", "known_names", "loss", "max_groups"),
    "reading=ReadOptions": (
        "decimal",
        "encoding",
        "format",
        "missing",
        "replace",
        "separator",
        "sheet",
    ),
}


class ArgumentNames:
    """How messages name arguments: as Python does.

    The command line names its options in their place.
    """

    verb = "pass"

    def argument(self, argument: str) -> str:
        """The name of an argument."""
        return argument

    def value(self, argument: str, value: object) -> str:
        """An argument with its value, as people type it; a field of a record within the record.

        >>> PYTHON.value("continuous", False), PYTHON.value("replace", {"Approved": ...})
        ('continuous=False', "reading=ReadOptions(replace={'Approved': ...})")
        """
        pairs = value.items() if isinstance(value, Mapping) else ()
        listed = ", ".join(f"{key!r}: {'...' if new is ... else repr(new)}" for key, new in pairs)
        shown = f"{{{listed}}}" if pairs else repr(value)
        text = f"{argument}={'...' if value is ... else shown}"
        record = next((record for record, fields in _RECORDS.items() if argument in fields), None)
        if record is None:
            return text
        return f"{record}({text})"


PYTHON = ArgumentNames()


@dataclass(frozen=True)
class Remedy:
    """An argument to pass, with a value or a placeholder, or one to omit; ``detail`` explains when,
    or how to choose.

    A value never decides the meaning of the data: ``...`` marks a value that only the user can
    supply.

    Parameters
    ----------
    argument : str
        The name of the argument in Python.
    value : object, default=...
        The value to pass. The default marks a value that only the user can supply.
    detail : str, default=""
        The text that follows, such as the condition under which the remedy helps.
    leave_out : bool, default=False
        Whether to leave the argument out in place of passing it.

    Examples
    --------
    >>> replace = Remedy("replace", {"Approved": ...})
    >>> for remedy in (Remedy("separator", ";"), replace, Remedy("sheet", leave_out=True)):
    ...     print(remedy_text(remedy))
    pass reading=ReadOptions(separator=';')
    pass reading=ReadOptions(replace={'Approved': ...})
    leave sheet out
    """

    argument: str
    value: object = ...
    detail: str = ""
    leave_out: bool = False


Remedies: TypeAlias = Remedy | str | Sequence[Remedy | str]
"""One remedy, or alternatives; text describes a change of the data, and names no argument."""


def remedy_text(remedy: Remedies, names: ArgumentNames = PYTHON) -> str:
    """The remedy, or the alternatives, as the end of a sentence.

    >>> remedy_text(["merge small groups", Remedy("continuous", ["age"])])
    "merge small groups, or pass continuous=['age']"
    """
    if isinstance(remedy, str):
        return remedy
    if not isinstance(remedy, Remedy):
        return ", or ".join(remedy_text(alternative, names) for alternative in remedy)
    if remedy.leave_out:
        return f"leave {names.argument(remedy.argument)} out{remedy.detail}"
    return f"{names.verb} {names.value(remedy.argument, remedy.value)}{remedy.detail}"


class _Explained(Exception):
    """A message in parts; with an argument, ``problem`` completes the sentence that its name
    begins.
    """

    def __init__(
        self,
        problem: str,
        *,
        argument: str | Sequence[str] | None = None,
        received: object = ...,
        remedy: Remedies | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.argument = argument
        self.received = received
        self.remedy = remedy

    def text(self, names: ArgumentNames = PYTHON) -> str:
        """The whole message.

        Parameters
        ----------
        names : ArgumentNames
            How arguments are named: as in Python by default.

        Returns
        -------
        str
            Argument, problem, received value and remedy, in this order.
        """
        arguments = [self.argument] if isinstance(self.argument, str) else self.argument or ()
        subject = ""
        if arguments:
            subject = f"{' and '.join(map(names.argument, arguments))} "
        received = "" if self.received is ... else f", got {self.received!r}"
        remedy = "" if self.remedy is None else f"; {remedy_text(self.remedy, names)}"
        return f"{subject}{self.problem}{received}{remedy}"

    def __str__(self) -> str:
        return self.text()


class DataError(_Explained, ValueError):
    """An argument or a file that cannot be used as it is.

    >>> error = DataError("must be one character", argument="separator", received="ab",
    ...     remedy=Remedy("separator", ";"))
    >>> print(error)
    separator must be one character, got 'ab'; pass reading=ReadOptions(separator=';')
    """


class TooFewSamples(DataError):
    """A quantity that needs more samples than it was given."""


class Diverged(DataError):
    """Training whose parameters grew beyond all bounds."""


class ModelFileError(DataError):
    """A model file that is damaged, hostile, or written by a later version."""


class MissingModelFile(ModelFileError, FileNotFoundError):
    """A model file that does not exist."""


class MissingBrowser(DataError):
    """A PDF file that needs a browser, if none is installed."""


class MissingExtra(ImportError):
    """A function that needs an optional dependency which is not installed."""


class MetrifairWarning(_Explained, UserWarning):
    """A request that could not be fulfilled; the work continues without it."""
