"""The usable rows of a file or table: scores, codes of the key columns, weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.sources.column_levels import ColumnLevels
from metrifair.auditing.sources.column_roles import Roles
from metrifair.auditing.sources.column_values import (
    check_values,
    numbers,
    scores_in,
)
from metrifair.auditing.sources.file_formats import polars
from metrifair.errors import DataError
from metrifair.problem.memberships import (
    GroupProbabilities,
    with_values,
)
from metrifair.problem.tables import ColumnArray
from metrifair.support.arrays import Booleans, Floats
from metrifair.support.checks import rows_or_none

if TYPE_CHECKING:
    import polars as pl


def probabilities_in(proxy: GroupProbabilities, table: pl.DataFrame) -> GroupProbabilities:
    """The group probabilities in the columns of a table, with the further columns about these
    groups.
    """
    return with_values(
        proxy,
        lambda name: numbers("group", name, table[name]),
        lambda name: np.array(table[name].to_list(), dtype=object),
    )


class UsedRows(NamedTuple):
    """Usable rows: scores, codes of the key columns and weights; and the number of other rows."""

    scores: Floats
    codes: list[NDArray[Any]]
    weight: Floats | None
    left_out: Counter[str]  # by reason
    proxy: GroupProbabilities | None = None  # None: groups are among the key columns
    clusters: ColumnArray | None = None  # the value of each row

    def only(self, mask: Booleans) -> UsedRows:
        """Some of the rows."""
        weight, clusters = (rows_or_none(column, mask) for column in (self.weight, self.clusters))
        proxy = None
        if self.proxy is not None:
            proxy = self.proxy.at_rows(mask)
        return UsedRows(
            self.scores[mask],
            [code[mask] for code in self.codes],
            weight,
            self.left_out,
            proxy,
            clusters,
        )


def used_rows(roles: Roles, levels: Sequence[ColumnLevels], table: pl.DataFrame) -> UsedRows:
    """The rows of a table with a score, and with a label and a weight if requested; groups may
    be missing.
    """
    scores = scores_in(roles, table[roles.score])
    weight = None
    if roles.weight is not None:
        weight = numbers("weight", roles.weight, table[roles.weight])
    codes = [level.codes(table[level.name]) for level in levels]
    clusters = None
    if roles.cluster is not None:
        clusters = cluster_values(table[roles.cluster])
    rows = UsedRows(scores, codes, weight, Counter(), clusters=clusters)
    if len(scores) == 0:
        return rows
    complete = all(int(code.min()) > 0 for code in codes) and not np.isnan(scores.min())
    if not complete or (weight is not None and np.isnan(weight.min())):
        used, left_out = _complete_rows(rows, has_label=roles.label is not None)
        rows = rows.only(used)._replace(left_out=left_out)
        if roles.proxy is not None:
            table = table.filter(used)
    if len(rows.scores):
        weight = rows.weight
        check_values(
            roles,
            (float(rows.scores.min()), float(rows.scores.max())),
            None if weight is None else (float(weight.min()), float(weight.max())),
        )
    if roles.proxy is None:
        return rows
    return rows._replace(proxy=probabilities_in(roles.proxy, table))


def _complete_rows(rows: UsedRows, *, has_label: bool) -> tuple[Booleans, Counter[str]]:
    """Mask of the rows that lack nothing, and the number of others by reason."""
    has = {"missing_score": ~np.isnan(rows.scores)}
    if rows.weight is not None:
        has["missing_weight"] = ~np.isnan(rows.weight)
    if has_label:
        has["missing_label"] = rows.codes[-1] > 0
    used = np.ones(len(rows.scores), np.bool_)
    left_out = Counter[str]()
    for why, present in has.items():  # a row that lacks several is counted once
        left_out[why] = int(np.count_nonzero(used & ~present))
        used &= present
    return used, +left_out


def cluster_values(column: pl.Series) -> ColumnArray:
    """The values of a cluster column; empty text is missing, as in groups.

    >>> import polars as pl
    >>> cluster_values(pl.Series(["ann", " ", None])).tolist()
    ['ann', None, None]
    """
    if column.dtype == polars().String:
        column = column.str.strip_chars()
        column = column.set(column == "", None)
    return np.array(column.to_list(), dtype=object)


def check_some(name: str, roles: Roles, rows: int) -> None:
    """Raise a DataError unless there are usable rows."""
    if rows == 0:
        raise DataError(
            f"no row of {name} has a score in {roles.score!r} and a value in every other column"
        )


def used_codes(roles: Roles, codes: Sequence[NDArray[Any]]) -> Booleans:
    """Mask of the rows with a label, if one is requested."""
    if roles.label is None:
        return np.ones(len(codes[0]), np.bool_)
    return codes[-1] > 0
