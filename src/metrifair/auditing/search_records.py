"""The results of a search for groups: plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SearchedOutcome = Literal["selected", "missed positives", "false positives", "score", "metric"]


@dataclass(frozen=True)
class Condition:
    """One condition of a group: a column, and the value or the band of numbers that it has."""

    column: str
    value: str
    is_protected: bool = False


@dataclass(frozen=True)
class ParentGroup:
    """A group with a wider band of numbers, or with one condition less."""

    conditions: Sequence[Condition]
    rows: int
    figure: float


@dataclass(frozen=True)
class WorseGroup:
    """A group that is worse than the other rows, jointly with all others of the search.

    Parameters
    ----------
    conditions : sequence of Condition
        All of them hold in the group.
    rows : int
        Rows of the group that the outcome counts, such as those with a positive label.
    figure : float
        The figure of the group, such as its selection rate.
    others : float
        The figure of the other rows.
    gap : float
        How much worse the group is.
    at_least : float
        Lower bound of the gap in the population: at least 0, jointly valid for all groups.
    parents : sequence of ParentGroup
        The group without each of its conditions, and with each wider band of numbers; none if there
        is no such group.
    is_worse_than_parents : bool
        Whether the group is worse than each of its parents, at the same joint confidence.
    is_listed : bool
        Whether it is one of the few that explain the others.
    """

    conditions: Sequence[Condition]
    rows: int
    figure: float
    others: float
    gap: float
    at_least: float
    parents: Sequence[ParentGroup] = ()
    is_worse_than_parents: bool = False
    is_listed: bool = False

    @property
    def is_protected(self) -> bool:
        """Whether a condition is on a protected attribute."""
        return any(condition.is_protected for condition in self.conditions)


@dataclass(frozen=True)
class GapLimit:
    """No group of the search with so many rows is worse by more than ``gap``; None if no group
    has them.
    """

    rows: int
    gap: float
    groups: int


@dataclass(frozen=True)
class SearchSettings:
    """The options of a search, with the values that were used."""

    max_conditions: int
    min_rows: int
    confidence: float
    threshold: float | None = None
    positive: str = ""


@dataclass(frozen=True)
class SearchRecord:
    """A search for groups.

    Parameters
    ----------
    outcome : str
        What was compared.
    higher_is_worse : bool
        Whether a group with a higher figure is worse.
    figure : float
        The figure of all rows that the outcome counts.
    rows : int
        The number of these rows.
    searched : int
        The number of groups that were compared with the other rows.
    worse : sequence of WorseGroup
        All groups that are worse, the largest lower bound first.
    largest_gaps : sequence of GapLimit
        Upper bounds of all gaps, by the number of rows of a group: jointly valid for all groups.
    columns : sequence of str
        The columns of the conditions.
    protected : sequence of str
        Those that are protected attributes.
    settings : SearchSettings
        The options.
    is_exact : bool
        Whether bounds come from exact tests of counts; else from bounds of means, as for weights,
        clusters and scores.
    weighted : bool
        Whether rows have weights.
    clusters : int or None
        The number of clusters; None if rows are independent.
    search_rows : int or None
        Rows that selected the groups to be tested on the others; None if all rows do both.
    repeated : int
        Groups that were not compared because they have nearly the rows of a parent.
    """

    outcome: SearchedOutcome
    higher_is_worse: bool
    figure: float
    rows: int
    searched: int
    worse: Sequence[WorseGroup]
    largest_gaps: Sequence[GapLimit]
    columns: Sequence[str]
    protected: Sequence[str]
    settings: SearchSettings
    is_exact: bool
    weighted: bool = False
    clusters: int | None = None
    search_rows: int | None = None
    repeated: int = 0

    @property
    def listed(self) -> Sequence[WorseGroup]:
        """The few groups that explain the others."""
        return [group for group in self.worse if group.is_listed]
