"""The columns of a file or table by role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Required, Self, TypedDict, Unpack

from metrifair.auditing.request import Request
from metrifair.errors import DataError
from metrifair.problem.attributes import Continuous, Cuts, cuts_by_column
from metrifair.problem.memberships import (
    GroupProbabilities,
    further_columns,
    probability_columns,
    proxy_columns,
)
from metrifair.support.checks import as_names

_APART = [
    *(("score", role) for role in ("group", "control", "label", "weight", "clusters")),
    ("label", "group"),
    ("weight", "group"),
    ("clusters", "label"),
    ("clusters", "weight"),
]
"""Roles that one column cannot have both."""


def _different(role: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """The columns of a role, each once; else a DataError."""
    names = as_names(role, value)
    if len(set(names)) < len(names):
        raise DataError("must name different columns", argument=role, received=list(names))
    return names


def _at_most_one(role: str, name: str | None) -> tuple[str, ...]:
    """The column of a role, or none."""
    if name is None:
        return ()
    if not isinstance(name, str):
        raise DataError("must be the name of a column", argument=role, received=name)
    return (name,)


class Roles(NamedTuple):
    """The columns of a file or table by role."""

    score: str
    groups: tuple[str, ...]
    label: str | None = None
    controls: tuple[str, ...] = ()
    weight: str | None = None
    cuts: Mapping[str, tuple[float, ...]] = {}  # that make groups of numbers, by column
    continuous: Continuous = False  # which of the groups are numbers
    # the value of the score column that counts as 1, any other as 0; None: numbers
    favorable_decision: object = None
    proxy: GroupProbabilities | None = None  # columns of probabilities in place of groups
    cluster: str | None = None  # the column whose values rows of one cluster share

    @classmethod
    def from_names(
        cls,
        *,
        score: str,
        group: str | Sequence[str] | GroupProbabilities,
        label: str | None = None,
        control: str | Sequence[str] | None = None,
        weight: str | None = None,
        cuts: Cuts = None,
        continuous: Continuous = False,
        favorable_decision: object = None,
        clusters: str | None = None,
    ) -> Self:
        """The columns that a user named; a DataError if one has two roles."""
        proxy = None
        if isinstance(group, GroupProbabilities):
            proxy = group
            group = proxy_columns(group)
        groups = _different("group", group)
        if not groups:
            raise DataError("must name at least one column, got none", argument="group")
        columns = {
            "score": (score,),
            "group": groups,
            "control": _different("control", () if control is None else control),
            "label": _at_most_one("label", label),
            "weight": _at_most_one("weight", weight),
            "clusters": _at_most_one("clusters", clusters),
        }
        for first, second in _APART:
            shared = {*columns[first]} & {*columns[second]}
            if shared:
                raise DataError(
                    f"both name the column {min(shared)!r}",
                    argument=(first, second),
                    remedy="name two columns",
                )
        if proxy is not None:
            groups = ()
        return cls(
            score,
            groups,
            label,
            columns["control"],
            weight,
            cuts_by_column(cuts, groups),
            continuous,
            favorable_decision,
            proxy,
            clusters,
        )

    @property
    def by_role(self) -> dict[str, Sequence[str]]:
        """The columns of each role."""
        single = {
            "score": self.score,
            "label": self.label,
            "weight": self.weight,
            "cluster": self.cluster,
        }
        columns: dict[str, Sequence[str]] = {
            role: [name] for role, name in single.items() if name is not None
        }
        if self.proxy is None:
            return columns | {"group": self.groups, "control": self.controls}
        further = {role: [name] for role, name in further_columns(self.proxy).items()}
        return (
            columns
            | {
                "group": [*probability_columns(self.proxy).values()],
                "control": self.controls,
            }
            | further
        )

    @property
    def probabilities(self) -> tuple[str, ...]:
        """The columns of group probabilities, and further columns about these groups."""
        if self.proxy is None:
            return ()
        return proxy_columns(self.proxy)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns whose combinations are cells: groups, then controls, then the label."""
        return (
            *self.groups,
            *self.controls,
            *([] if self.label is None else [self.label]),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        weight = []
        if self.weight is not None:
            weight = [self.weight]
        return (
            *self.keys,
            self.score,
            *weight,
            *self.probabilities,
            *self.further,
        )

    @property
    def further(self) -> tuple[str, ...]:
        """Columns whose values are read as they are: that of the clusters."""
        if self.cluster is None:
            return ()
        return (self.cluster,)

    def is_number(self, name: str) -> bool | None:
        """Whether a column of groups is numeric; None: its values decide."""
        if isinstance(self.continuous, bool | str):
            if self.continuous == "auto":
                return None
            return bool(self.continuous)
        return name in self.continuous


class FurtherColumns(TypedDict, total=False):
    """The names of the columns beside the scores, as an audit takes them."""

    group: Required[str | Sequence[str] | GroupProbabilities]
    label: str | None
    control: str | Sequence[str] | None
    weight: str | None
    clusters: str | None


class ColumnArguments(FurtherColumns):
    """The names of all columns."""

    score: str | Sequence[str]


def roles_by_score(
    request: Request, *, score: str | Sequence[str], **others: Unpack[FurtherColumns]
) -> dict[str, Roles]:
    """The roles of the columns for each score column, validated; several score columns are
    several models.
    """
    names = as_names("score", score)
    if not names or len(set(names)) < len(names):
        raise DataError(
            "must name one column, or several different ones",
            argument="score",
            received=score,
        )
    return {
        name: Roles.from_names(
            score=name,
            cuts=request.cuts,
            continuous=request.numbers,
            favorable_decision=request.favorable_decision,
            **others,
        )
        for name in names
    }
