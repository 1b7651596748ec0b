"""Warnings that name the line of the user's code, however deep in the library they arise."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from metrifair.errors import MetrifairWarning

# Packages whose code runs between the user's line and ours, such as a pipeline's.
_NOT_THE_USER = frozenset(
    ("metrifair", "contextlib", "functools", "joblib", "lightgbm", "sklearn", "torch", "xgboost")
)


def warn_user(message: str | Warning, category: type[Warning] = MetrifairWarning) -> None:
    """Warn, at the innermost line of the stack that is the user's own.

    ``warnings.warn`` counts frames, which differ from one entry point to the next.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("groups are small")
    >>> print(caught[0].category.__name__, caught[0].message)
    MetrifairWarning groups are small
    """
    frame = _users_frame(sys._getframe(1))
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__"),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _users_frame(frame: FrameType) -> FrameType:
    """The innermost frame of the user's code; the outermost of all in a worker, which has none."""
    while frame.f_back is not None and _package(frame) in _NOT_THE_USER:
        frame = frame.f_back
    return frame


def _package(frame: FrameType) -> str:
    """The top-level package of a frame's module."""
    name: str = frame.f_globals.get("__name__") or ""
    return name.partition(".")[0]
