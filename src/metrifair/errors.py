"""Errors and warnings that carry their parts: the argument at fault, the problem, what was received, and a remedy.

Parts are values. ``str(error)`` names arguments as Python does; ``error.text("option")`` names the options of the
command line.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "DataError",
    "Diverged",
    "MetrifairWarning",
    "MissingExtra",
    "MissingModelFile",
    "ModelFileError",
    "Remedy",
    "TooFewSamples",
]

Style = Literal["python", "option"]
"""How arguments are written: ``separator=';'``, or ``--separator ';'``."""

# The options of the command line that stand for arguments, by the placeholder of their value.
_OPTIONS = {
    "": "day-first intersectional no-header",
    "CATEGORY": "reference",
    "CLASS": "positive",
    "COLUMN": "continuous control group keep label score weight",
    "COLUMN=NUMBERS": "cuts",
    "KEY=VALUE": "about",
    "LOW HIGH": "range",
    "NAME": "combine contrast criterion encoding estimate format loss metric model sheet standard table utility",
    "NUMBER": "least-count max-unfairness most-groups seed seeds threshold tolerance vc-dimension",
    "NUMBERS": "strengths",
    "OLD=NEW": "replace",
    "SHARE": "confidence least-share",
    "SIGN": "decimal separator",
    "TEXT": "title",
    "VALUE": "missing",
    "high|low": "favourable",
}
_PLACEHOLDERS = {option: placeholder for placeholder, options in _OPTIONS.items() for option in options.split()}
# Arguments whose option has another name; any other option is spelled as its argument.
_RENAMED = {
    "control_features": "control",
    "criteria": "criterion",
    "header": "no-header",
    "metrics": "metric",
    "pos_label": "positive",
    "random_state": "seed",
    "sample_weight": "weight",
    "sensitive_features": "group",
    "y": "label",
    "y_pred": "score",
    "y_true": "label",
}


@dataclass(frozen=True)
class Remedy:
    """An argument to pass, with a value or a placeholder, or one to leave out; ``detail`` says when, or how to choose.

    A value is never one that decides what the data mean: ``...`` marks what only the user can know.

    Parameters
    ----------
    argument : str
        The name of the argument in Python.
    value : object, default=...
        The value to pass. The default marks a value that only the user knows.
    detail : str, default=""
        The text that follows, such as the condition under which the remedy helps.
    leave_out : bool, default=False
        Whether to leave the argument out in place of passing it.

    Examples
    --------
    >>> for remedy in (Remedy("separator", ";"), Remedy("replace", {"Approved": ...}), Remedy("sheet", leave_out=True)):
    ...     print(remedy_text(remedy), "|", remedy_text(remedy, "option"))
    pass separator=';' | use --separator ';'
    pass replace={'Approved': ...} | use --replace Approved=NEW
    leave sheet out | leave --sheet out
    """

    argument: str
    value: object = ...
    detail: str = ""
    leave_out: bool = False


Remedies: TypeAlias = Remedy | str | Sequence[Remedy | str]
"""One remedy, or alternatives; text is for what is done to the data, and names no argument."""


def remedy_text(remedy: Remedies, style: Style = "python") -> str:
    """The remedy, or the alternatives, as the end of a sentence.

    >>> remedy_text(["merge small groups", Remedy("continuous", ["age"])], "option")
    'merge small groups, or use --continuous age'
    """
    if isinstance(remedy, str):
        return remedy
    if not isinstance(remedy, Remedy):
        return ", or ".join(remedy_text(alternative, style) for alternative in remedy)
    if remedy.leave_out:
        return f"leave {argument_text(remedy.argument, style)} out{remedy.detail}"
    verb = "pass" if style == "python" else "use"
    return f"{verb} {value_text(remedy.argument, remedy.value, style)}{remedy.detail}"


def argument_text(argument: str | Sequence[str], style: Style = "python") -> str:
    """The name of an argument, or of its option where it has one; several are joined.

    >>> argument_text("y_true", "option"), argument_text(("score", "label"), "option"), argument_text("gamma", "option")
    ('--label', '--score and --label', 'gamma')
    """
    if not isinstance(argument, str):
        return " and ".join(argument_text(name, style) for name in argument)
    option = _RENAMED.get(argument, argument.replace("_", "-"))
    return f"--{option}" if style == "option" and option in _PLACEHOLDERS else argument


def value_text(argument: str, value: object, style: Style = "python") -> str:
    """An argument with its value, as people type it in Python or in a shell.

    >>> value_text("continuous", False), value_text("continuous", False, "option")
    ('continuous=False', '--continuous none')
    """
    option = argument_text(argument, style)
    if not option.startswith("--"):
        pairs = value.items() if isinstance(value, Mapping) else ()
        listed = ", ".join(f"{key!r}: {'...' if new is ... else repr(new)}" for key, new in pairs)
        return f"{argument}={'...' if value is ... else f'{{{listed}}}' if pairs else repr(value)}"
    if value is ...:
        words = [_PLACEHOLDERS[option.removeprefix("--")]]
    elif isinstance(value, bool):
        words = ["none" if argument == "continuous" and not value else ""]
    elif isinstance(value, Mapping):
        open_value = _PLACEHOLDERS[option.removeprefix("--")].rpartition("=")[2]
        words = [shlex.quote(f"{key}={open_value if new is ... else new}") for key, new in value.items()]
    else:
        values = value if isinstance(value, list | tuple) else [value]
        texts = map(str, values)
        words = [shlex.quote(text) if text.isprintable() else repr(text) for text in texts]  # a tab is typed as '\\t'
    return " ".join(f"{option} {word}".rstrip() for word in words)


class _Explained(Exception):
    """What is wrong, in parts; with an argument, ``problem`` is the rest of the sentence that its name begins."""

    def __init__(
        self,
        problem: str,
        *,
        argument: str | Sequence[str] | None = None,
        received: object = ...,
        remedy: Remedies | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem, self.argument, self.received, self.remedy = problem, argument, received, remedy

    def text(self, style: Style = "python") -> str:
        """The whole message.

        Parameters
        ----------
        style : {"python", "option"}
            Whether arguments are named as in Python, or as options of the command line.

        Returns
        -------
        str
            Argument, problem, received value and remedy, in this order.
        """
        subject = "" if self.argument is None else f"{argument_text(self.argument, style)} "
        received = "" if self.received is ... else f", got {self.received!r}"
        remedy = "" if self.remedy is None else f"; {remedy_text(self.remedy, style)}"
        return f"{subject}{self.problem}{received}{remedy}"

    def __str__(self) -> str:
        return self.text()


class DataError(_Explained, ValueError):
    """An argument or a file that cannot be used as it is.

    >>> error = DataError("must be one character", argument="separator", received="ab", remedy=Remedy("separator", ";"))
    >>> print(error)
    separator must be one character, got 'ab'; pass separator=';'
    >>> print(error.text("option"))
    --separator must be one character, got 'ab'; use --separator ';'
    """


class TooFewSamples(DataError):
    """A quantity that needs more samples than it was given."""


class Diverged(DataError):
    """Training whose parameters grew beyond all bounds."""


class ModelFileError(DataError):
    """A model file that is damaged, hostile, or written by a later version."""


class MissingModelFile(ModelFileError, FileNotFoundError):
    """A model file that does not exist."""


class MissingExtra(ImportError):
    """A function that needs an optional dependency which is not installed."""


class MetrifairWarning(_Explained, UserWarning):
    """A request that could not be met as it was; the work goes on without it."""
