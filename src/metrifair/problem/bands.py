"""Attributes that are numbers, cut into bands for what needs groups: figures of held-out rows, the worst cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError
from metrifair.problem.attributes import band_names
from metrifair.problem.cells import Attribute
from metrifair.problem.problem import Floats, Problem

LEAST_SIDE = 0.05  # the share of people that a cut leaves on either side
MOST_CUTS = 100


def cuts_of(values: Floats, weight: Floats | None = None, *, most: int = MOST_CUTS) -> Floats:
    """Numbers to cut at, "up to" and "above": quantiles, or every value, that leave enough people on either side.

    Where none does, as with two values of which one is rare, the cut that leaves most on its smaller side.

    >>> cuts_of(np.array([20.0, 30.0, 30.0, 40.0])), cuts_of(np.arange(1000.0), most=4)
    (array([20., 30.]), array([ 49., 349., 649., 949.]))
    """
    found, place = np.unique(values, return_inverse=True)
    share = np.bincount(place, weight)
    upto = np.cumsum(share)[:-1] / share.sum()
    inside = np.flatnonzero((upto >= LEAST_SIDE * (1 - 1e-9)) & (upto <= 1 - LEAST_SIDE * (1 - 1e-9)))
    if not len(inside) and len(upto):
        inside = np.abs(upto - 0.5).argmin(keepdims=True)
    if len(inside) > most:
        wanted = np.linspace(upto[inside[0]], upto[inside[-1]], most)
        nearest = np.searchsorted(upto[inside], wanted * (1 - 1e-12))
        inside = inside[np.unique(np.minimum(nearest, len(inside) - 1))]
    cuts: Floats = found[inside]
    return cuts


def quantile_cuts(values: Floats, weight: Floats | None, bands: int) -> Floats:
    """Numbers that cut the rows into so many bands of about equal size, or fewer.

    >>> quantile_cuts(np.arange(10.0), None, 5)
    array([1., 3., 5., 7.])
    """
    found, place = np.unique(values, return_inverse=True)
    share = np.bincount(place, weight)
    upto = np.cumsum(share) / share.sum()
    at = np.searchsorted(upto, np.arange(1, bands) / bands * (1 - 1e-12))
    cuts: Floats = found[np.unique(at[at < len(found) - 1])]
    return cuts


def in_bands(problem: Problem, bands: int | None = None, rows: NDArray[Any] | None = None) -> Problem:
    """The same rows with groups where attributes are numbers: so many bands of equal size, or one between all cuts.

    What is compared is everybody up to a cut with everybody above it, and groups in pairs. ``rows`` says how many rows
    each row stands for.

    >>> from metrifair.problem.problem import Given, problem_of
    >>> ages = problem_of(Given(sensitive_features={"age": [20, 30, 30, 40]}), continuous=True)
    >>> [str(one) for one in in_bands(ages).comparisons]
    ["age 'up to 20' against 'above 20', everyone", "age 'up to 30' against 'above 30', everyone"]
    """
    independence = problem.scheme.contrast == "independence"
    if problem.numbers is None and not (independence and bands):
        return problem
    groups, attributes = problem.groups.copy(), list(problem.scheme.attributes)
    for place, attribute in enumerate(attributes):
        if problem.numbers is None or not attribute.is_number:
            continue
        known = groups[:, place] >= 0
        counts = problem.weight if rows is None else rows.astype(np.float64)
        values, weight = problem.numbers[known, place], None if counts is None else counts[known]
        cuts = cuts_of(values, weight) if bands is None else quantile_cuts(values, weight, bands)
        if not len(cuts):
            raise DataError(f"all values of {attribute.name} are equal; leave it out")
        groups[known, place] = np.searchsorted(cuts, values)
        attributes[place] = Attribute(attribute.name, band_names(cuts), cuts=tuple(cuts.tolist()))
    contrast = "pairs" if independence else problem.scheme.contrast
    scheme = replace(problem.scheme, attributes=tuple(attributes), contrast=contrast)
    return replace(problem, scheme=scheme, groups=groups, numbers=None)
