"""The attributes whose rates an audit compares, and the reference of each for impact ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.request import Reference, Request
from metrifair.errors import DataError, Remedy
from metrifair.figures.selection_rates import (
    HIGHEST,
    STANDARDS,
    RatioRule,
)
from metrifair.problem.cells import Attribute
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
    if STANDARDS[request.standard or ""].named:
        _check_named(attributes, request)
    for attribute in attributes:
        category = _category(attribute, reference)
        names = [str(group) for group in attribute.groups]
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
                f"must be 'highest' or one of the groups of {_listed_groups(attribute)}",
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


def _category(attribute: Attribute, reference: Reference) -> object:
    """The reference of an attribute, as it was named."""
    if isinstance(reference, Mapping):
        return reference.get(attribute.name, HIGHEST)
    return reference


def _check_named(attributes: Sequence[Attribute], request: Request) -> None:
    """Raise a DataError that names every attribute without a reference."""
    named = {attribute.name: _category(attribute, request.reference) for attribute in attributes}
    lacking = [attribute for attribute in attributes if named[attribute.name] == HIGHEST]
    if not lacking:
        return
    value: object = ...
    if len(attributes) > 1:
        value = {name: ... if group == HIGHEST else group for name, group in named.items()}
    groups = "; of ".join(map(_listed_groups, lacking))
    raise DataError(
        "compares with a reference group",
        argument="standard",
        received=request.standard,
        remedy=Remedy("reference", value, detail=f", one of the groups of {groups}"),
    )


def _listed_groups(attribute: Attribute) -> str:
    """An attribute with the names of its groups, for a message."""
    names = [repr(str(group)) for group in attribute.groups]
    return f"{attribute.name}: {shortlist(names, _LISTED)}"
