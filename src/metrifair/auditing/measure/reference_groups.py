"""The attributes whose rates an audit compares, and the reference of each for impact ratios."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.request import Request
from metrifair.errors import DataError, Remedy
from metrifair.figures.selection_rates import (
    HIGHEST,
    STANDARDS,
    RatioRule,
)
from metrifair.problem.problem import Problem
from metrifair.support.checks import shortlist

_LISTED = 10  # groups in a message


def problem_for(sample: AuditSample, standard: str | None) -> Problem:
    """The rows by the attributes whose rates a standard requires."""
    if sample.crossed is not None and STANDARDS[standard or ""].crossed:
        return sample.crossed
    return sample.problem


def rules_for(sample: AuditSample, request: Request) -> dict[str, RatioRule]:
    """The reference of impact ratios by attribute; a DataError if it is none of the groups."""
    attributes = problem_for(sample, request.standard).scheme.attributes
    reference = request.reference
    rules = {}
    if isinstance(reference, Mapping) and (
        strange := set(reference) - {attribute.name for attribute in attributes}
    ):
        names = [attribute.name for attribute in attributes]
        raise DataError(
            f"names {min(strange)!r}, which is none of {names}",
            argument="reference",
            remedy="name a group of each attribute",
        )
    for attribute in attributes:
        category: object = reference
        if isinstance(reference, Mapping):
            category = reference.get(attribute.name, HIGHEST)
        names = [str(group) for group in attribute.groups]
        groups = (
            f"one of the groups of {attribute.name}: {shortlist(list(map(repr, names)), _LISTED)}"
        )
        if category == HIGHEST and STANDARDS[request.standard or ""].named:
            raise DataError(
                "compares with a reference group",
                argument="standard",
                received=request.standard,
                remedy=Remedy("reference", detail=f", {groups}"),
            )
        unknown = [names[place] for place in np.flatnonzero(sample.unknown_names[attribute.name])]
        same = [
            name
            for name, group in zip(names, attribute.groups, strict=True)
            if category in (group, name)
        ]
        if category != HIGHEST and same and same[0] in unknown:
            raise DataError(
                f"names a group of {attribute.name} that is not known, by its name",
                argument="reference",
                received=category,
                remedy=[
                    "name another group",
                    Remedy("known_names", detail=f" if {same[0]!r} is a real group"),
                ],
            )
        if category != HIGHEST and not same:
            raise DataError(
                f"must be 'highest' or {groups}",
                argument="reference",
                received=category,
                remedy="of several attributes, name one for each",
            )
        name = HIGHEST
        if category != HIGHEST:
            name = same[0]
        least = request.min_group_share, request.min_group_size
        rules[attribute.name] = RatioRule(name, *least, request.confidence, frozenset(unknown))
    return rules
