"""The canonical values behind the names in a record: groups, conditions and settings, by which audits match."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

from metrifair.auditing.decisions import Selection
from metrifair.auditing.records import AuditRecord, Conditions, Settings
from metrifair.auditing.request import Request
from metrifair.auditing.sample import AuditSample
from metrifair.figures.selection_rates import HIGHEST
from metrifair.problem.cells import Attribute
from metrifair.problem.criteria import EVERYONE, STATISTICAL_PARITY, Criterion, sets_of
from metrifair.problem.problem import Scheme
from metrifair.problem.values import Value, canonical, canonical_values

_OF_CLASS = "probability of "


def with_values(record: AuditRecord, sample: AuditSample, request: Request, selection: Selection | None) -> AuditRecord:
    """Add the group values, conditions and settings to the record of an audit."""
    scheme, rated = sample.problem.scheme, (sample.rated or sample.problem).scheme
    groups = {one.name: group_values(one) for one in (*scheme.attributes, *rated.attributes)}
    sets: dict[str, Conditions] = {EVERYONE.names[0]: ()}
    for criterion in (*request.named_criteria(), STATISTICAL_PARITY):
        sets |= conditions_by_set(criterion, scheme)
    predicted = [name for name in sample.predicted if name]
    classes = dict(zip(predicted, canonical_values([one.removeprefix(_OF_CLASS) for one in predicted]), strict=True))

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
    """
    return dict(zip(map(str, attribute.groups), canonical_values(attribute.values), strict=True))


def conditions_by_set(criterion: Criterion, scheme: Scheme) -> dict[str, Conditions]:
    """The conditions that each set of a criterion stands for, by its name, within strata where there are some."""
    sets, strata = sets_of(criterion, scheme.classes, scheme.positive), scheme.strata or EVERYONE
    found: dict[str, tuple[tuple[str, object], ...]] = {}
    for (name, of_label), (stratum, of_stratum) in product(
        zip(sets.names, sets.conditions, strict=True), zip(strata.names, strata.conditions, strict=True)
    ):
        names = [one for one in (name, stratum) if one not in EVERYONE.names]
        found[",".join(names) or EVERYONE.names[0]] = of_label + of_stratum
    # Values that coincide in canonical form keep their text, as those of groups do.
    alike = Counter(_canonical(conditions) for conditions in found.values())
    return {
        name: _canonical(conditions)
        if alike[_canonical(conditions)] == 1
        else tuple((column, str(value)) for column, value in conditions)
        for name, conditions in found.items()
    }


def _canonical(conditions: tuple[tuple[str, object], ...]) -> Conditions:
    return tuple((column, canonical(value)) for column, value in conditions)
