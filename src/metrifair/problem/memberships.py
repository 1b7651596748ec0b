"""Groups that are not in the data: the probability of each group in place of the group itself.

A row counts for every group in proportion to its probability: a problem has one entry for each row
and group of positive probability. Its weight is the row's weight times that probability, so that
code for weights needs no change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np

from metrifair.errors import DataError
from metrifair.problem.tables import (
    UNKNOWN,
    ColumnArray,
    Table,
    as_array,
    columns,
    distinct,
    one_column,
    same_rows,
)
from metrifair.problem.values import is_missing_value, place_among
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_known, rows_or_none

Labels: TypeAlias = Literal["included", "independent"]
"""Why figures by label are valid: probabilities use the label too, or the group is independent
of score and label.
"""

Assumption: TypeAlias = Literal["scores", "scores_and_labels", "labels_included", "observed"]
"""The assumption behind group probabilities: given their inputs, the group is independent of the
score, of score and label, or of the score given the label; or the observed group is independent of
the score given the true one.
"""

_ASSUMPTIONS: dict[Labels | None, Assumption] = {
    None: "scores",
    "independent": "scores_and_labels",
    "included": "labels_included",
}
_MATRIX_ROUNDING = 1e-6  # by which the probabilities of a row of a confusion matrix may miss 1
# by which those of a row of the data may: columns with few digits are divided by their sum
_DIGITS = 0.01 + 1e-9
# of a confusion matrix: beyond, errors of the observed groups grow too much
_LARGEST_CONDITION = 20.0


@dataclass(frozen=True, eq=False)
class GroupProbabilities:
    """Probabilities of groups that are not in the data, such as P(race | surname, place).

    Pass it as ``sensitive_features`` to ``unfairness``, ``audit``, ``frontier`` and the ``fit`` of
    ``FairClassifier``, ``FairRegressor``, boosters and group-blind post-processors, to
    ``AuditState.add``, as ``group`` to ``audit_file`` and ``audit_table``, or to
    ``nn.StratifiedBatchSampler``. Each row counts for every group in proportion to its
    probability. The figures are valid for the true groups only if score and group are independent
    given the inputs of the probabilities, as with most places. If score and probabilities are
    independent given the group, as with most surnames, they are too small: an audit also reports
    the figures divided by R2. Reports state both assumptions with the headline. Any other function,
    such as ``unfairness`` and ``frontier``, computes weighted figures only.

    Parameters
    ----------
    table : array-like of shape (n_samples, n_groups), data frame or dict of columns
        One column per group, named after it. The probabilities of a row must sum to 1. Sums between
        0.99 and 1.01 are rounded: the row is divided by its sum. A row of missing values has a
        missing group. For ``audit_file`` and ``audit_table``: the names of the columns, as a list
        or as a dict by group.
    attribute : str
        Name of the protected attribute.
    source : str, default=None
        Source of the probabilities, such as "BISG". Reports show it.
    known_groups : array-like of shape (n_samples,) or str, default=None
        The true groups of a random sample of the rows, missing elsewhere. They correct the
        estimates and show whether the probabilities are calibrated. For files and tables: the name
        of the column.
    cells : array-like of shape (n_samples,) or str, default=None
        The inputs of the probabilities as one column, such as the census tract. They bound
        selection rates without the assumption. For files and tables: the name of the column.
    confusion : array-like of shape (n_groups, n_groups), default=None
        P(observed group | true group), one row per true group, for observed groups that can be
        wrong. ``table`` then contains the observed groups as 0 and 1.
    with_labels : {"included", "independent"}, default=None
        Assumption under which figures that use labels are computed. "included": the probabilities
        are P(group | inputs, label). "independent": score and label together are independent of the
        group given the inputs. By default, such figures are omitted.

    Examples
    --------
    >>> from metrifair import unfairness
    >>> race = GroupProbabilities({"white": [0.9, 0.6, 0.2], "black": [0.1, 0.4, 0.8]},
    ...     attribute="race")
    >>> round(unfairness(None, [0.8, 0.6, 0.3], sensitive_features=race), 3)
    0.498
    """

    table: Any
    attribute: str
    source: str | None = None
    known_groups: Any = None
    cells: Any = None
    confusion: Any = None
    with_labels: Labels | None = None

    def __init__(
        self,
        table: Table | Sequence[str] | Mapping[str, str],
        *,
        attribute: str,
        source: str | None = None,
        known_groups: Table | str | None = None,
        cells: Table | str | None = None,
        confusion: Any = None,
        with_labels: Labels | None = None,
    ) -> None:
        if not isinstance(attribute, str) or not attribute:
            raise DataError(
                "must be the name of the protected attribute",
                argument="attribute",
                received=attribute,
            )
        if with_labels is not None:
            check_known("with_labels", with_labels, ("included", "independent"))
        if known_groups is not None and confusion is not None:
            raise DataError(
                "correct the same figures",
                argument=("known_groups", "confusion"),
                remedy="pass only one of them",
            )
        values = table, attribute, source, known_groups, cells, confusion, with_labels
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)
        names: Any = table if isinstance(table, Mapping) or _column_names(table) else ()
        if repeated := [name for name, count in Counter(map(str, names)).items() if count > 1]:
            raise DataError("must name each column once", argument="table", received=repeated[0])
        if _column_names(table) is None:
            _ = self._rows  # wrong values are refused here, not at their first use

    @cached_property
    def _rows(self) -> RowProbabilities:
        return _checked_rows(self)

    def at_rows(self, rows: Any) -> GroupProbabilities:
        """The same of some rows, by number or by a mask.

        Parameters
        ----------
        rows : array-like
            Rows to keep.

        Returns
        -------
        GroupProbabilities
            Probabilities, known groups and cells of these rows.
        """
        known_groups, cells = (
            None if part is None else one_column(name, part)[rows]
            for name, part in (("known_groups", self.known_groups), ("cells", self.cells))
        )
        table = {name: column[rows] for name, column in columns("table", self.table).items()}
        return replace(self, table=table, known_groups=known_groups, cells=cells)

    def __repr__(self) -> str:
        return f"GroupProbabilities(..., attribute={self.attribute!r})"

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise DataError(
            f"are probabilities of {self.attribute}, which this function does not accept",
            argument="sensitive_features",
            remedy="pass the group of each row, or use what accepts them, such as audit or "
            "FairClassifier.fit",
        )


class RowProbabilities(NamedTuple):
    """Validated group probabilities of rows, with known groups and cells."""

    name: str  # of the attribute, as findings call it
    groups: tuple[str, ...]
    values: Floats  # (n, groups), NaN where a row has none
    known: Integers | None  # (n,): codes of true groups, -1 where they are missing
    cells: Integers | None  # (n,): codes of the inputs
    # of the confusion matrix: observed groups as rows, times it, are weights of the true groups
    inverse: Floats | None
    labels: Labels | None
    source: str | None

    @property
    def assumption(self) -> Assumption:
        """The assumption of figures that are weighted by them."""
        if self.inverse is None:
            return _ASSUMPTIONS[self.labels]
        return "observed"

    def take(self, rows: Any) -> RowProbabilities:
        """Some of the rows."""
        known, cells = (rows_or_none(part, rows) for part in (self.known, self.cells))
        return self._replace(values=self.values[rows], known=known, cells=cells)


@dataclass(frozen=True, eq=False)
class Memberships:
    """The row of each entry of a problem, and the probability of its group."""

    row: Integers  # (entries,), ascending
    group: Integers  # (entries,): codes, -1 where the group is missing
    share: Floats  # (entries,); 1 where the group is missing
    rows: RowProbabilities
    # labels were passed, but no assumption allows probabilities by label
    labels_unused: bool = False

    @classmethod
    def of(cls, rows: RowProbabilities, *, labels_unused: bool = False) -> Memberships:
        """The groups of positive probability of each row, or that its group is missing.

        >>> sex = GroupProbabilities({"f": [0.25, np.nan, 0.0], "m": [0.75, np.nan, 1.0]},
        ...     attribute="sex")
        >>> found = Memberships.of(row_probabilities(sex))
        >>> found.row, found.group, found.share
        (array([0, 0, 1, 2]), array([ 0,  1, -1,  1]), array([0.25, 0.75, 1.  , 1.  ]))
        """
        missing = np.isnan(rows.values[:, 0])
        row, place = np.nonzero(np.column_stack([missing, rows.values > 0]))
        share = np.where(place == 0, 1.0, rows.values[row, place - 1])
        return cls(row, place - 1, share, rows, labels_unused)

    def take(self, entries: Any) -> Memberships:
        """Some of the entries, of the same rows."""
        row, group, share = (part[entries] for part in (self.row, self.group, self.share))
        return replace(self, row=row, group=group, share=share)


def row_probabilities(proxy: GroupProbabilities) -> RowProbabilities:
    """The probabilities of all rows, checked.

    >>> found = row_probabilities(GroupProbabilities({"a": [0.5, np.nan], "b": [0.5, np.nan]},
    ...     attribute="sex"))
    >>> found.name, found.groups, found.values[0]
    ('P(sex)', ('a', 'b'), array([0.5, 0.5]))
    """
    return proxy._rows


def _checked_rows(proxy: GroupProbabilities) -> RowProbabilities:
    same_rows(table=proxy.table, known_groups=proxy.known_groups, cells=proxy.cells)
    table = {
        str(group): as_array(str(group), column)
        for group, column in columns("table", proxy.table).items()
    }
    groups = tuple(table)
    if len(groups) < 2:
        raise DataError(
            f"the probabilities of {proxy.attribute} need a column for each of two groups or more"
        )
    values = np.stack(list(table.values()), -1).astype(np.float64)
    gaps = np.isnan(values)
    present = ~gaps.all(1)
    totals = values[present].sum(1)
    wrong = ~((values[present] >= 0) & (values[present] <= 1)).all(1) | ~(
        np.abs(totals - 1) <= _DIGITS
    )
    if wrong.any():
        place = int(np.flatnonzero(present)[wrong.argmax()])
        rows = "1 row does"
        if wrong.sum() != 1:
            rows = f"{wrong.sum():,} rows do"
        raise DataError(
            f"the probabilities of {proxy.attribute} must lie in [0, 1] with a sum of 1 in each "
            "row "
            f"(within 0.01), or be missing in the whole row, which {rows} not satisfy",
            received=dict(zip(groups, values[place].tolist(), strict=True)),
            remedy="name the column of every group, write percentages as shares, and leave all "
            "columns of a row empty "
            "if its group is unknown",
        )
    values[present] /= totals[:, None]
    inverse = None
    if proxy.confusion is not None:
        if not np.isin(values[present], (0.0, 1.0)).all():
            raise DataError(
                "needs a table of observed groups (0 and 1), and this table has other values",
                argument="confusion",
            )
        inverse = _inverse(proxy.confusion, len(groups))
    known = None
    if proxy.known_groups is not None:
        known = _true_groups(proxy.known_groups, groups)
    cells = None
    if proxy.cells is not None:
        cells = distinct(one_column("cells", proxy.cells))[1]
    return RowProbabilities(
        probability_name(proxy.attribute),
        groups,
        values,
        known,
        cells,
        inverse,
        proxy.with_labels,
        proxy.source,
    )


def probability_name(attribute: str) -> str:
    """How findings call an attribute whose groups have probabilities.

    >>> probability_name("race")
    'P(race)'
    """
    return f"P({attribute})"


def group_columns(sensitive_features: Table | GroupProbabilities) -> dict[str, ColumnArray]:
    """The columns of groups by attribute; or those of their probabilities, and of the groups that
    are known.

    >>> sex = GroupProbabilities({"f": [0.25, 1.0], "m": [0.75, 0.0]}, attribute="sex",
    ...     known_groups=["m", None])
    >>> list(group_columns(sex))
    ['P(sex=f)', 'P(sex=m)', 'sex']
    """
    if not isinstance(sensitive_features, GroupProbabilities):
        return columns("sensitive_features", sensitive_features)
    name = sensitive_features.attribute
    known_groups = sensitive_features.known_groups
    shares = columns("table", sensitive_features.table)
    by_name = {f"P({name}={group})": as_array(group, share) for group, share in shares.items()}
    if known_groups is None:
        return by_name
    return by_name | {name: one_column("known_groups", known_groups)}


def probability_columns(proxy: GroupProbabilities) -> dict[str, str]:
    """The columns of a file or table with the probability of each group; a DataError if they are
    values.

    >>> probability_columns(GroupProbabilities(["p_white", "p_black"], attribute="race"))
    {'p_white': 'p_white', 'p_black': 'p_black'}
    """
    names = _column_names(proxy.table)
    if not names or not all(isinstance(name, str) for name in further_columns(proxy).values()):
        raise DataError(
            "must name columns of the file or table",
            argument="group",
            remedy="name them, as in GroupProbabilities(['p_white', 'p_black'], attribute='race')",
        )
    return names


def _column_names(table: Any) -> dict[str, str] | None:
    """The columns that a list or dict names, by group; None if the table contains values."""
    if isinstance(table, Mapping):
        names = list(table.values())
    elif isinstance(table, list | tuple):
        names = list(table)
    else:
        return None
    if not all(isinstance(name, str) for name in names):
        return None
    return {str(group): name for group, name in zip(table, names, strict=True)}


def proxy_columns(proxy: GroupProbabilities) -> tuple[str, ...]:
    """The columns of a file or table with probabilities, known groups and cells."""
    return *probability_columns(proxy).values(), *further_columns(proxy).values()


def further_columns(proxy: GroupProbabilities) -> dict[str, Any]:
    """The columns with known groups and cells, by the argument that names them."""
    roles = {"known_groups": proxy.known_groups, "cells": proxy.cells}
    return {role: column for role, column in roles.items() if column is not None}


def with_values(
    proxy: GroupProbabilities,
    numbers: Callable[[str], Floats],
    values: Callable[[str], ColumnArray],
) -> GroupProbabilities:
    """The same with the values of its columns: ``numbers`` and ``values`` read a column by name."""
    table = {group: numbers(name) for group, name in probability_columns(proxy).items()}
    further: dict[str, Any] = {role: values(name) for role, name in further_columns(proxy).items()}
    return replace(proxy, table=table, **further)


def _true_groups(known_groups: Table, groups: Sequence[str]) -> Integers:
    """The place of each row's true group, -1 where it is missing."""
    values, inverse = distinct(one_column("known_groups", known_groups))
    places = [
        UNKNOWN if is_missing_value(value) else place_among(value, groups) for value in values
    ]
    if None in places:
        raise DataError(
            f"must be missing or one of the groups {list(groups)}",
            argument="known_groups",
            received=values[places.index(None)],
        )
    return np.array(places, dtype=np.int64)[inverse]


def _inverse(confusion: Any, groups: int) -> Floats:
    """The inverse of a confusion matrix; a DataError where it is none, or amplifies errors too
    much.
    """
    matrix = np.asarray(as_array("confusion", confusion), dtype=np.float64)
    rows_sum = matrix.shape == (groups, groups) and np.allclose(
        matrix.sum(1), 1, rtol=0, atol=_MATRIX_ROUNDING
    )
    if not rows_sum or not (matrix >= 0).all():
        raise DataError(
            f"must contain P(observed group | true group): {groups} rows of {groups} probabilities "
            "with a sum of 1",
            argument="confusion",
            received=matrix.tolist(),
        )
    condition = float(np.linalg.cond(matrix))
    if not condition <= _LARGEST_CONDITION:
        raise DataError(
            f"has condition number {condition:.3g}, above {_LARGEST_CONDITION:g}: the observed "
            "groups are too "
            "unreliable to correct figures",
            argument="confusion",
            remedy="merge groups that are often confused",
        )
    return np.asarray(np.linalg.inv(matrix))
