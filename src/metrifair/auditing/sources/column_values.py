"""Columns of a file or table as numbers: scores, weights, and messages about other values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metrifair.auditing.sources.column_roles import Roles
from metrifair.auditing.sources.file_formats import polars, present_text
from metrifair.errors import DataError, Remedies, Remedy
from metrifair.problem.predictions import (
    ROUNDING,
    are_probabilities,
    check_one_spelling,
    look_like_decisions,
    value_counts,
)
from metrifair.problem.spelling import COMMA
from metrifair.problem.tables import EXACT, check_exact
from metrifair.problem.values import place_among
from metrifair.support.arrays import Floats

if TYPE_CHECKING:
    import polars as pl

SAMPLED_ROWS = 10_000  # rows that decide whether columns are models, if not all are in memory
_WORDS = 10  # that an error lists
_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"  # a comma that may be either sign


def numbers(role: str, name: str, column: pl.Series) -> Floats:
    """A column as numbers, NaN for missing values; a DataError shows the first value that is
    neither.
    """
    pl = polars()
    if column.dtype == pl.String:
        text = present_text(column)
        column = text.cast(pl.Float64, strict=False)
        invalid = text.filter(column.is_null() & text.is_not_null())
        if len(invalid):
            raise DataError(
                f"the {role} column {name!r} must contain numbers",
                received=invalid[0],
                remedy=_number_remedy(role, text, invalid),
            )
        integers = text.filter((column.abs() >= EXACT).fill_null(value=False)).str.extract(
            r"^([+-]?\d+)$", 1
        )
        check_exact(
            f"the {role} column {name!r}",
            np.array(list(map(int, integers.drop_nulls())), dtype=object),
        )
    original = column
    column = column.cast(pl.Float64)
    if original.dtype.is_integer():
        long = original.filter((column.abs() >= EXACT).fill_null(value=False))
        check_exact(
            f"the {role} column {name!r}",
            np.array(long.to_list(), dtype=object),
        )
    return np.asarray(
        column.fill_null(float("nan")).to_numpy() if column.null_count() else column.to_numpy()
    )


def score_precision(kinds: Iterable[object]) -> np.dtype[Any]:
    """The precision of scores whose columns, of one or several files, have these types of polars or
    narwhals.

    >>> score_precision(["Float32"]), score_precision(["Float32", "Float64"])
    (dtype('float32'), dtype('float64'))
    """
    return np.result_type(
        *(
            {"Float16": np.float16, "Float32": np.float32}.get(str(kind), np.float64)
            for kind in kinds
        )
    )


def _number_remedy(role: str, column: pl.Series, invalid: pl.Series) -> Remedies:
    """The remedies for invalid text in a numeric column; only the user can state the number of
    a word.
    """
    first = str(invalid[0])
    if re.match(COMMA, first, re.ASCII):
        if not invalid.str.contains(_THOUSANDS).all():
            return Remedy("decimal", ",")
        return [
            "write numbers without a sign between thousands",
            Remedy("decimal", detail=" if it is the comma"),
        ]
    if first.endswith("%"):
        return "write shares as numbers, such as 0.25 for 25%"
    if role == "score" and look_like_decisions(column.drop_nulls().unique().to_list()):
        return Remedy(
            "favorable_decision",
            detail=f" if these values are decisions: {_counts_in(invalid)}",
        )
    words = invalid.unique(maintain_order=True).to_list()[:_WORDS]
    if role == "score":
        return [
            "correct these values",
            Remedy("missing", detail=" if they mark missing values"),
        ]
    return Remedy("replace", dict.fromkeys(words, ...), " with the number of each")


def scores_in(roles: Roles, column: pl.Series) -> Floats:
    """A column of scores as numbers; of decisions, 1 where the decision is the favorable one, 0 for
    any other.

    >>> import polars as pl
    >>> roles = Roles("d", ("sex",), favorable_decision="yes")
    >>> scores_in(roles, pl.Series("d", ["yes", "no", None, " yes"]))
    array([ 1.,  0., nan,  1.])
    """
    if roles.favorable_decision is None:
        return numbers("score", column.name, column)
    if column.dtype == polars().String:
        column = present_text(column)
    values = column.drop_nulls().unique(maintain_order=True).to_list()
    place = place_among(roles.favorable_decision, values)
    check_one_spelling(roles.favorable_decision, values)
    favorable = np.zeros(len(column))
    if place is not None:
        favorable = (column == values[place]).fill_null(value=False).to_numpy()
    return np.where(column.is_null().to_numpy(), np.nan, favorable)


def _counts_in(column: pl.Series) -> str:
    """The values of a column with their counts, equal counts in the order of the values."""
    return value_counts(
        sorted(
            column.drop_nulls().value_counts().iter_rows(),
            key=lambda pair: str(pair[0]),
        )
    )


def check_favorable(roles: Roles, selected: float, decisions: pl.Series | None = None) -> None:
    """Raise a DataError if no row has the favorable decision."""
    if roles.favorable_decision is not None and selected == 0:
        raise DataError(
            f"is no value of the column {roles.score!r}",
            argument="favorable_decision",
            received=roles.favorable_decision,
            remedy=None if decisions is None else f"its values are {_counts_in(decisions)}",
        )


def check_range(name: str, kind: Any, scores: Iterable[Any]) -> None:
    """Raise a DataError for integer scores between these ends that were cast to floating-point
    numbers and rounded.
    """
    if (
        kind.is_integer()
        and max((abs(end) for end in scores if end is not None), default=0.0) >= EXACT
    ):
        raise DataError(
            f"the score column {name!r} contains integers beyond 2^53, which floating-point "
            "numbers do not distinguish",
            remedy="subtract a constant from all of them, or round them yourself",
        )


def check_values(
    roles: Roles,
    scores: tuple[float, float],
    weights: tuple[float, float] | None,
) -> None:
    """Raise a DataError unless scores and weights between these ends can be used."""
    if not np.isfinite(scores).all():
        raise DataError(
            f"the score column {roles.score!r} contains an infinite value; replace it or leave the "
            "row out"
        )
    if weights is not None and not (weights[0] >= 0 and weights[1] < np.inf):
        raise DataError(
            f"the weight column {roles.weight!r} must contain finite numbers that are not negative"
        )


def check_models(table: pl.DataFrame, scores: Sequence[str]) -> None:
    """Raise a DataError if numeric columns can be probabilities of one model's classes, not
    several models.
    """
    values = np.stack([numbers("score", score, table[score]) for score in scores], -1)
    values = values[np.isfinite(values).all(1)]
    if (
        len(values) > 0
        and float(np.ptp(values[:, 0])) > 0
        and are_probabilities(values, rounding=ROUNDING)
    ):
        raise not_models(scores)


def not_models(scores: Sequence[str]) -> DataError:
    """The error for columns that are one model's class probabilities, not the scores of several
    models.
    """
    return DataError(
        f"the scores {', '.join(map(repr, scores))} add up to 1 in every row: they are one model's "
        "probabilities of "
        "classes, not several models to compare",
        remedy=[
            Remedy("pos_label", detail=" and audit the column of that class"),
            "audit each by itself and compare the audits if they are several models",
        ],
    )
