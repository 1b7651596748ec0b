"""Parameters documented once, and shown everywhere they are accepted: by ``help``, in notebooks, on the site."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_LINE = re.compile(r"^( *)(\w+(?:, \w+)*) : as in [\w.]+$", re.MULTILINE)
_SECTION = re.compile(r"(?:Parameters|Attributes)\n-{10}\n(.*?)(?=\n\n\w[\w ]*\n-+\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \w+)*)(?: : .*)?(?:\n(?: +.*)?$)*", re.MULTILINE)


def as_in(*sources: Callable[..., Any]) -> Callable[[T], T]:
    """A decorator: what a docstring says to be ``as in`` other functions or classes is said there in full.

    In the docstring, ``names : as in NAME`` stands for what the parameters or attributes section of the first of
    ``sources`` that knows them says of each of the names. A function that takes them as ``**options`` shows them in its
    signature.

    >>> def audit(rows, *, threshold=0.5):
    ...     '''An audit.
    ...
    ...     Parameters
    ...     ----------
    ...     rows : list
    ...         Rows.
    ...     threshold : float, default=0.5
    ...         Scores at or above the threshold count as positive decisions.
    ...     '''
    >>> @as_in(audit)
    ... def audit_file(path, **options):
    ...     '''An audit of a file.
    ...
    ...     Parameters
    ...     ----------
    ...     path : str
    ...         The file.
    ...     threshold : as in audit
    ...     '''
    >>> inspect.signature(audit_file)
    <Signature (path, *, threshold=0.5)>
    >>> print(inspect.getdoc(audit_file).partition("file.")[2].strip())
    Parameters
    ----------
    path : str
        The file.
    threshold : float, default=0.5
        Scores at or above the threshold count as positive decisions.
    """

    def completed(target: Any) -> Any:
        if target.__doc__ is None:  # python -OO
            return target
        words = {name: text for one in reversed(sources) for name, text in _entries(one).items()}

        def in_full(line: re.Match[str]) -> str:
            texts = "\n".join(dict.fromkeys(words[name] for name in line[2].split(", ")))
            return "\n".join(line[1] + one if one else one for one in texts.split("\n"))

        target.__doc__ = _LINE.sub(in_full, target.__doc__)
        if not inspect.isclass(target):
            target.__signature__ = _signature(target, sources)
        return target

    return completed


def _entries(source: Callable[..., Any]) -> dict[str, str]:
    """What the docstring of a function or class says of each of its parameters and attributes."""
    sections = _SECTION.findall(inspect.getdoc(source) or "")
    entries = (one for section in sections for one in _ENTRY.finditer(section))
    return {name: one[0].rstrip() for one in entries for name in one[1].split(", ")}


def _signature(function: Callable[..., Any], sources: tuple[Callable[..., Any], ...]) -> inspect.Signature:
    """That of the function, with all that its docstring names in place of ``**options``."""
    signature = inspect.signature(function)
    options = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is parameter.VAR_KEYWORD and parameter.name == "options"
    ]
    if not options:
        return signature
    documented = {
        name: parameter
        for source in reversed(sources)
        for name, parameter in inspect.signature(source).parameters.items()
    }
    named = [name for name in _entries(function) if name not in signature.parameters]
    keywords = [documented[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in named]
    order = {name: place for place, name in enumerate(_entries(function))}
    ours = [parameter for parameter in signature.parameters.values() if parameter not in options]
    first = [one for one in ours if one.kind is not one.KEYWORD_ONLY]
    rest = sorted([*(one for one in ours if one not in first), *keywords], key=lambda one: order[one.name])
    return signature.replace(parameters=[*first, *rest])
