"""The canonical values behind the names in a record: groups, conditions and settings, by which audits match."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from metrifair.auditing.decisions import Selection
from metrifair.auditing.records import AuditRecord, Conditions, Settings
from metrifair.auditing.request import Request
from metrifair.auditing.sample import AuditSample
from metrifair.figures.selection_rates import HIGHEST
from metrifair.problem.cells import Attribute
from metrifair.problem.criteria import EVERYONE, STATISTICAL_PARITY, Criterion, sets_of
from metrifair.problem.problem import Problem
from metrifair.problem.values import Value, canonical_values

# A part of an intersection, in quotes where the part itself contains the separator.
_PART = re.compile(r'(?:^| x )("(?:[^"\\]|\\.)*"|.*?)(?= x |$)')


def with_values(record: AuditRecord, sample: AuditSample, request: Request, selection: Selection | None) -> AuditRecord:
    """Add the group values, conditions and settings to the record of an audit."""
    scheme, rated = sample.problem.scheme, (sample.rated or sample.problem).scheme
    groups = {one.name: group_values(one) for one in (*scheme.attributes, *rated.attributes)}
    sets: dict[str, Conditions] = {EVERYONE.names[0]: ()}
    for criterion in (*request.named_criteria(), STATISTICAL_PARITY):
        sets |= conditions_by_set(criterion, sample.problem)
    classes = {f"probability of {name}": value for name, value in _class_values(sample).items()}

    def conditions(within: str) -> Conditions:
        name, _, of_class = within.rpartition(", ")
        return (*sets[name], ("probability", classes[of_class])) if of_class in classes else sets[within]

    findings = [
        replace(
            one,
            group_values=tuple(groups[one.attribute].get(name) for name in one.groups),
            conditions=conditions(one.within),
        )
        for one in record.findings
    ]
    decisions = [replace(one, conditions=sets[one.within]) for one in record.decisions]
    by_group = [
        replace(
            table,
            conditions=sets[table.within],
            groups=[replace(one, group_value=groups[table.attribute][one.group]) for one in table.groups],
        )
        for table in record.by_group
    ]
    rules = {} if selection is None else selection.rules
    settings = Settings(
        threshold=request.threshold,
        selected_by=None if selection is None else selection.by,
        reference={name: groups[name][one.reference] for name, one in rules.items() if one.reference != HIGHEST},
        least_count=request.least_count,
        least_share=request.least_share,
        favourable=request.favourable,
        pos_label=canonical_values(scheme.classes)[scheme.positive] if scheme.classes else None,
        criteria=[one.name for one in request.named_criteria()],
        metrics=request.named_metrics(),
        contrast=request.contrast,
        intersectional=request.intersectional,
        standard=request.standard,
        loss=request.loss,
    )
    return replace(record, findings=findings, decisions=decisions, by_group=by_group, settings=settings)


def group_values(attribute: Attribute) -> dict[str, Value]:
    """The canonical value of each group by its name; an intersection is the tuple of its parts.

    >>> group_values(Attribute("member", (False, True)))
    {'False': False, 'True': True}
    >>> group_values(Attribute("sex x old", ('f x true', '"a x b" x 0')))
    {'f x true': ('f', True), '"a x b" x 0': ('a x b', 0)}
    """
    values: Sequence[object] = attribute.groups
    if " x " in attribute.name and all(isinstance(value, str) for value in values):
        values = [_parts(str(value)) for value in values]
    return dict(zip(map(str, attribute.groups), canonical_values(values), strict=True))


def _parts(name: str) -> tuple[str, ...]:
    """The parts of the name of an intersection, as ``problem.attributes`` writes it."""
    return tuple(json.loads(part) if part.startswith('"') else part for part in _PART.findall(name))


def conditions_by_set(criterion: Criterion, problem: Problem) -> dict[str, Conditions]:
    """The conditions that the name of each set of a criterion states, with strata where there are some.

    A set that is no single value, such as a bin of the outcome, is a condition of its own.
    """
    scheme = problem.scheme
    known = {f"y = {name}": ("y", value) for name, value in _label_values(scheme.classes).items()}
    strata = scheme.strata or EVERYONE
    if strata.values is not None:
        for name, value, level in zip(strata.names, canonical_values(strata.values), strata.values, strict=True):
            known[name] = name.removesuffix(f" = {level}"), value
    found = {}
    for pair in product(sets_of(criterion, scheme.classes, scheme.positive).names, strata.names):
        names = [name for name in pair if name not in EVERYONE.names]
        found[" and ".join(names) or EVERYONE.names[0]] = tuple(known.get(name, (name, True)) for name in names)
    return found


def _label_values(classes: Sequence[object]) -> Mapping[str, Value]:
    return dict(zip(map(str, classes), canonical_values(classes), strict=True))


def _class_values(sample: AuditSample) -> Mapping[str, Value]:
    """The value of each class whose probability was predicted; of classes that are not known, their places."""
    names = [name.removeprefix("probability of ") for name in sample.predicted if name]
    return dict(zip(names, canonical_values(names), strict=True))
