"""Numeric attributes cut into bands, for figures by group and the worst cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError
from metrifair.problem.cells import Attribute
from metrifair.problem.problem import Problem
from metrifair.problem.values import band_names
from metrifair.support.arrays import Floats
from metrifair.support.checks import rows_or_none

LEAST_SIDE = 0.05  # the share of rows that a cut leaves on each side
MOST_CUTS = 100
BANDS = 5  # in figures by group


def candidate_cuts(
    values: Floats, weight: Floats | None = None, *, most: int = MOST_CUTS
) -> Floats:
    """Numbers to cut at (≤ and >): quantiles, or every value, that leave enough rows on each side.

    If none does, as with two values and a rare one, the cut with most rows on its smaller side.

    >>> (candidate_cuts(np.array([20.0, 30.0, 30.0, 40.0])),
    ...  candidate_cuts(np.arange(1000.0), most=4))
    (array([20., 30.]), array([ 49., 349., 649., 949.]))
    """
    distinct, place = np.unique(values, return_inverse=True)
    share = np.bincount(place, weight)
    upto = np.cumsum(share)[:-1] / share.sum()
    inside = np.flatnonzero(
        (upto >= LEAST_SIDE * (1 - 1e-9)) & (upto <= 1 - LEAST_SIDE * (1 - 1e-9))
    )
    if not len(inside) and len(upto):
        inside = np.abs(upto - 0.5).argmin(keepdims=True)
    if len(inside) > most:
        targets = np.linspace(upto[inside[0]], upto[inside[-1]], most)
        nearest = np.searchsorted(upto[inside], targets * (1 - 1e-12))
        inside = inside[np.unique(np.minimum(nearest, len(inside) - 1))]
    return np.asarray(distinct[inside])


def quantile_cuts(
    values: Floats,
    weight: Floats | None,
    bands: int,
    *,
    rows: NDArray[Any] | None = None,
    least: float = 1,
) -> Floats:
    """Numbers that cut rows into ``bands`` of about equal weight, or fewer, so that each has at
    least ``least`` rows.

    ``rows`` is the number of rows of each value. If two bands cannot have enough, the cut nearest
    to it.

    >>> quantile_cuts(np.arange(10.0), None, 5), quantile_cuts(np.arange(10.0), None, 5, least=3)
    (array([1., 3., 5., 7.]), array([3., 6.]))
    """
    distinct, place = np.unique(values, return_inverse=True)
    share = np.bincount(place, weight)
    below = np.cumsum(np.bincount(place, rows))
    upto = np.cumsum(share) / share.sum()
    bands = int(np.clip(below[-1] // least, 2, bands))
    cuts = [-1]
    done = 0  # rows up to the last cut
    for at in np.unique(np.searchsorted(upto, np.arange(1, bands) / bands * (1 - 1e-12))):
        if below[at] - done >= least and below[-1] - below[at] >= least:
            cuts.append(at)
            done = below[at]
    if len(cuts) == 1 and len(distinct) > 1:
        cuts.append(np.minimum(below, below[-1] - below).argmax())
    return np.asarray(distinct[cuts[1:]])


def in_bands(
    problem: Problem,
    bands: int | None = None,
    *,
    weight: Floats | None = None,
    rows: NDArray[Any] | None = None,
    least: float = 1,
) -> Problem:
    """Cut numeric attributes into groups: ``bands`` of about equal weight, or one band between all
    candidate cuts.

    Rows up to a cut are compared with all rows above it, and groups in pairs. If rows were counted,
    ``weight`` and ``rows`` are the totals of each value. Each of ``bands`` has at least ``least``
    rows if possible.

    >>> from metrifair.problem.problem import Inputs, make_problem
    >>> ages = make_problem(Inputs(sensitive_features={"age": [20, 30, 30, 40]}), continuous=True)
    >>> [str(comparison) for comparison in in_bands(ages).comparisons]
    ["age '≤20' against '>20', everyone", "age '≤30' against '>30', everyone"]
    """
    if problem.numbers is None:
        return problem
    groups = problem.groups.copy()
    attributes = list(problem.scheme.attributes)
    if weight is None:
        weight = problem.weight
    for place, attribute in enumerate(attributes):
        if not attribute.is_number:
            continue
        present = groups[:, place] >= 0
        values = problem.numbers[present, place]
        weights, counts = (rows_or_none(part, present) for part in (weight, rows))
        if bands is None:
            cuts = candidate_cuts(values, weights)
        else:
            cuts = quantile_cuts(values, weights, bands, rows=counts, least=least)
        if not len(cuts):
            raise DataError(f"all values of {attribute.name} are equal; leave it out")
        groups[present, place] = np.searchsorted(cuts, values)
        attributes[place] = Attribute(
            attribute.name, band_names(cuts.tolist()), cuts=tuple(cuts.tolist())
        )
    scheme = replace(problem.scheme, attributes=tuple(attributes))
    return replace(problem, scheme=scheme.for_groups(groups), groups=groups, numbers=None)
