"""Parameters documented once, and shown everywhere they are accepted: by ``help``, in
notebooks, on the site.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_LINE = re.compile(r"^( *)(\w+(?:, \w+)*) : as in [\w.]+$", re.MULTILINE)
_SECTION = re.compile(
    r"(?:Parameters|Attributes)\n-{10}\n(.*?)(?=\n\n\w[\w ]*\n-+\n|\Z)", re.DOTALL
)
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \w+)*)(?: : .*)?(?:\n(?: +.*)?$)*", re.MULTILINE)


def as_in(*sources: Callable[..., Any]) -> Callable[[T], T]:
    """A decorator that completes a docstring with parameters documented in other functions or
    classes.

    In the docstring, ``names : as in NAME`` is replaced by the entries of these names in the
    parameters or attributes section of the first of ``sources`` that has them. A function that
    accepts them as ``**options`` shows them in its signature.

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
        entries = {
            name: text for source in reversed(sources) for name, text in _entries(source).items()
        }

        def in_full(line: re.Match[str]) -> str:
            texts = "\n".join(dict.fromkeys(entries[name] for name in line[2].split(", ")))
            return "\n".join(line[1] + text if text else text for text in texts.split("\n"))

        target.__doc__ = _LINE.sub(in_full, target.__doc__)
        if not inspect.isclass(target):
            target.__signature__ = _signature(target, sources)
        return target

    return completed


def _entries(source: Callable[..., Any]) -> dict[str, str]:
    """The entries of the parameters and attributes in the docstring of a function or class, by
    name.
    """
    sections = _SECTION.findall(inspect.getdoc(source) or "")
    entries = (entry for section in sections for entry in _ENTRY.finditer(section))
    return {name: entry[0].rstrip() for entry in entries for name in entry[1].split(", ")}


def _signature(
    function: Callable[..., Any], sources: tuple[Callable[..., Any], ...]
) -> inspect.Signature:
    """The signature of the function, with the documented parameters in place of ``**options``."""
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
    missing = [name for name in _entries(function) if name not in signature.parameters]
    keywords = [documented[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in missing]
    order = {name: place for place, name in enumerate(_entries(function))}
    parameters = [
        parameter for parameter in signature.parameters.values() if parameter not in options
    ]
    first = [parameter for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
    rest = [*(parameter for parameter in parameters if parameter not in first), *keywords]
    rest.sort(key=lambda parameter: order[parameter.name])
    return signature.replace(parameters=[*first, *rest])
