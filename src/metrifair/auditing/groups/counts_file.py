"""The counts of a search for groups as a file, from which its claims can be recomputed."""

from __future__ import annotations

import reprlib

import numpy as np

from metrifair.auditing.groups.counting import MOST_GROUPS, NONE, CountedGroups
from metrifair.auditing.groups.search_counts import ConditionColumn, SearchCounts
from metrifair.auditing.search_records import Condition, SearchedOutcome, SearchSettings
from metrifair.errors import ModelFileError
from metrifair.saving.modelfile import Content
from metrifair.saving.records import Amount, Arrays, Count, Record, read_record
from metrifair.support.arrays import Integers

GROUP_COUNTS = "group counts"
_QUANTITIES = 5
_ROUNDED_UP = 1 + 1e-9  # of sums
_MOST_ROWS = 2.0**53


class ColumnRecord(Record):
    """A column with its conditions, and the levels that meet each of them."""

    name: str
    conditions: list[Condition]
    members: list[list[bool]]


class SearchCountsRecord(Record):
    """The description of the counts of a search."""

    outcome: SearchedOutcome
    higher_is_worse: bool
    settings: SearchSettings
    columns: list[ColumnRecord]
    largest: Amount
    is_exact: bool
    weighted: bool
    clusters: Count | None
    search_rows: Count | None


def counts_content(counts: SearchCounts) -> Content:
    """The content of the file: sums of groups, which are named by the numbers of their
    conditions.
    """
    columns = [
        ColumnRecord(
            name=column.name,
            conditions=list(column.conditions),
            members=column.members.tolist(),
        )
        for column in counts.columns
    ]
    record = SearchCountsRecord(
        outcome=counts.outcome,
        higher_is_worse=counts.higher_is_worse,
        settings=counts.settings,
        columns=columns,
        largest=counts.largest,
        is_exact=counts.is_exact,
        weighted=counts.weighted,
        clusters=counts.clusters,
        search_rows=counts.search_rows,
    )
    arrays = {
        **counts.groups._asdict(),
        "whole": counts.whole,
    }
    return Content(GROUP_COUNTS, record.as_json(), arrays)


def read_counts(content: Content) -> SearchCounts:
    """The counts in the content of a file; a ModelFileError if they are impossible."""
    if content.kind != GROUP_COUNTS:
        raise ModelFileError(
            f"it contains a {reprlib.repr(content.kind)}, not the counts of a search for groups"
        )
    record = read_record(SearchCountsRecord, content.meta, "the counts of a search for groups")
    arrays = Arrays(content.arrays)
    conditions = arrays.take("conditions", (None, None), "int64")
    count = len(conditions)
    groups = CountedGroups(
        conditions,
        arrays.take("sums", (count, _QUANTITIES)),
        arrays.take("largest", (count,)),
        arrays.take("parents", (count, None), "int64"),
    )
    whole = arrays.take("whole", (_QUANTITIES,))
    arrays.check_all_taken()
    columns = [_column(column) for column in record.columns]
    _check_places(conditions, sum(len(column.conditions) for column in columns))
    _check_places(groups.parents, count)
    if (groups.parents == np.arange(count)[:, None]).any():
        raise ModelFileError("a group is a parent of itself")
    if record.is_exact and (record.weighted or record.clusters is not None):
        raise ModelFileError("exact tests need rows without weights and clusters")
    if not 0 < count <= MOST_GROUPS or whole.max() > _MOST_ROWS:
        raise ModelFileError("no search has so many groups or rows")
    if not ((groups.sums >= 0).all() and (groups.sums <= whole * _ROUNDED_UP).all()):
        raise ModelFileError("a group has fewer than no rows, or more than all rows")
    return SearchCounts(
        record.outcome,
        record.higher_is_worse,
        record.settings,
        columns,
        groups,
        whole,
        record.largest,
        record.is_exact,
        record.weighted,
        record.clusters,
        record.search_rows,
    )


def _column(record: ColumnRecord) -> ConditionColumn:
    members = np.array(record.members, dtype=bool)
    if members.ndim != 2 or len(members) != len(record.conditions) or not len(members):
        raise ModelFileError("a column does not have the levels of each of its conditions")
    return ConditionColumn(record.name, record.conditions, members)


def _check_places(numbers: Integers, count: int) -> None:
    """Raise a ModelFileError for numbers of conditions or groups that there are not."""
    if numbers.size and not (numbers.min() >= NONE and numbers.max() < count):
        raise ModelFileError("the file names a condition or a group that it does not contain")
