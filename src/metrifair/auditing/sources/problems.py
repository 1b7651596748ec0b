"""The problem of the rows or cells of an audit, also by each attribute and their intersection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metrifair.auditing.request import Request, check_groups, groups_allowed
from metrifair.problem.attributes import group_codes
from metrifair.problem.bands import BANDS, in_bands
from metrifair.problem.problem import (
    Inputs,
    Problem,
    check_labels,
    problem_by_membership,
)
from metrifair.support.arrays import Floats, Integers


def audited_problems(
    inputs: Inputs,
    request: Request,
    *,
    rows: Integers | None = None,
    weight: Floats | None = None,
) -> tuple[Problem, Problem | None]:
    """The problem of rows, or of cells with their counts; and the same by attributes and their
    intersection.
    """
    max_groups = request.max_groups
    row_count = None
    if rows is not None:
        max_groups = groups_allowed(max_groups)
        row_count = int(rows.sum())
    problem = problem_by_membership(
        inputs,
        intersectional=request.intersectional,
        continuous=request.numbers,
        row_count=row_count,
        pos_label=None if inputs.y is None else request.pos_label,
        compared=False,
    )
    if problem.members is not None:
        criteria = () if request.criteria is None else request.named_criteria()
        check_labels(problem.members.rows, criteria)
    if problem.numbers is not None:
        # Numeric attributes become bands of about equal weight, for decisions by group. The numbers
        # stay.
        bands = in_bands(
            problem,
            BANDS,
            weight=weight,
            rows=rows,
            least=request.min_group_size,
        )
        problem = replace(bands, numbers=problem.numbers)
    if (
        request.favorable == "low"
        and request.pos_label is None
        and len(problem.scheme.classes) == 2
    ):
        problem = replace(problem, scheme=replace(problem.scheme, positive=0))
    check_groups(problem, rows, max_groups)
    return problem, _crossed_problem(problem, inputs, request)


def _crossed_problem(problem: Problem, inputs: Inputs, request: Request) -> Problem | None:
    """The same rows by each attribute and by the intersection of those that are not numeric;
    None of one attribute.
    """
    if problem.members is not None:
        return None
    features = inputs.group_columns or {}
    if len(features) < 2:
        return None
    attributes = list(problem.scheme.attributes)
    groups = [problem.groups]
    categorical = {
        name: features[name]
        for name in features
        if not any(attribute.cuts for attribute in attributes if attribute.name == name)
    }
    if request.intersectional:
        separate = group_codes(categorical)
        attributes = [*separate.attributes, *attributes]
        groups = [problem.kept_rows(separate.codes), *groups]
    elif len(categorical) > 1:
        separate = group_codes(categorical, intersectional=True)
        attributes = [*attributes, *separate.attributes]
        groups = [*groups, problem.kept_rows(separate.codes)]
    scheme = replace(problem.scheme, attributes=tuple(attributes), intersectional=False)
    return replace(
        problem,
        scheme=scheme,
        groups=np.concatenate(groups, axis=1),
        numbers=None,
    )
