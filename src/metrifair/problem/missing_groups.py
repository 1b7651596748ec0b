"""Rows whose group is missing: how many, and what training and prediction do with them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import MetrifairWarning
from metrifair.problem.problem import COUNTS_AS_POSITIVE, Problem
from metrifair.problem.unknown_names import no_warnings_of_unknown_names, unknown_name_warnings
from metrifair.support.user_warnings import warn_user

_IS_MISSING = "is missing in"
_USE = "They are used for training, and comparisons of"
_PREDICTED = "They are predicted by the rule for all groups together"


class MissingGroups(NamedTuple):
    """The rows without a group of an attribute, of all rows."""

    attribute: str
    rows: int
    of: int


def missing_groups_in(
    problem: Problem, rows: NDArray[Any] | None = None
) -> Iterator[MissingGroups]:
    """Each attribute that some rows lack.

    ``rows`` is the number of rows behind each row of the problem; None: one.
    """
    if problem.probabilities is not None:
        return
    size = np.ones(len(problem)) if rows is None else rows
    for attribute, code in zip(problem.scheme.attributes, problem.groups.T, strict=True):
        if (code < 0).any():
            missing = round(float(size[code < 0].sum()))
            yield MissingGroups(attribute.name, missing, round(float(size.sum())))


def missing_groups_text(attribute: str, rows: int, of: int) -> str:
    """The fact behind every note and warning about rows without a group in training.

    >>> missing_groups_text("sex", 20, 6000)
    'sex is missing in 20 of 6,000 rows. They are used for training, and comparisons of sex exclude them.'
    """
    return f"{attribute} {_IS_MISSING} {rows:,} of {of:,} rows. {_USE} {attribute} exclude them."


_NOTED: ContextVar[bool] = ContextVar("noted", default=False)


@contextmanager
def missing_groups_noted() -> Iterator[None]:
    """Within this block, and in this thread, prediction does not warn of missing groups: the caller
    notes them. A filter of warnings would hold for all threads.
    """
    token = _NOTED.set(True)
    try:
        yield
    finally:
        _NOTED.reset(token)


def warn_of_missing_at_prediction(problem: Problem) -> None:
    """Warn of rows that a model which needs groups predicts without one."""
    if _NOTED.get():
        return
    for attribute, rows, of in missing_groups_in(problem):
        warn_user(f"{attribute} {_IS_MISSING} {rows:,} of {of:,} rows. {_PREDICTED}")


def warn_of_groups(problem: Problem, rows: NDArray[Any] | None = None) -> bool:
    """Warn of rows without a group, and of groups whose names say that they are not known.

    Returns whether there are any.
    """
    of_missing = [missing_groups_text(*found) for found in missing_groups_in(problem, rows)]
    texts = [*unknown_name_warnings(problem, rows), *of_missing]
    for text in texts:
        warn_user(text.removesuffix("."))
    return bool(texts)


@contextmanager
def no_warnings_of_groups() -> Iterator[None]:
    """Within this block, training and prediction warn neither of missing groups nor of unknown
    names or a positive label: the caller has done so for all rows.
    """
    with no_warnings_of_unknown_names(), missing_groups_noted():
        message = rf"(?s).* {_IS_MISSING} .* rows\. {_USE}"
        for text in (message, f".* {COUNTS_AS_POSITIVE}"):
            warnings.filterwarnings("ignore", text, MetrifairWarning)
        yield
