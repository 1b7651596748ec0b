"""Charts of an audit's page: the groups' distributions with the gap of each pair marked, witnesses,
and decisions.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from metrifair.auditing.records import (
    Distribution,
    Finding,
    WitnessCurve,
)
from metrifair.errors import DataError
from metrifair.figures.curves import Curves
from metrifair.metrics.registry import is_largest_gap
from metrifair.report.charts import (
    Axis,
    Gap,
    Line,
    LineChart,
    axis,
    axis_json,
    check_curve,
    curves_json,
    gap_json,
    grid_json,
    score_axis,
    short,
    thin_curves,
    widest_gap,
)
from metrifair.report.html import PageJson
from metrifair.wording.glossary import witness_text
from metrifair.wording.numbers import name_text

_MAX_GROUPS = 12
_MOST_SCORES = 160
_SHARE_ROUNDING = 1e-3  # of shares that were drawn or binned
_SHARE_AXIS = axis([0.0, 1.0], from_zero=True, top=1.0, count=5)

OTHER_SCORES = frozenset({"risk_parity"})
"""Criteria that compare something else than the prediction."""

GroupNumber = Callable[[str, str], int]  # attribute, group -> its place among the colors


def distribution_json(
    distribution: Distribution, findings: Sequence[Finding], number: GroupNumber
) -> PageJson:
    """The score distributions of the groups of one set; None if the scores are too far apart to
    draw.

    ``findings`` are those of the set, the worst first: of very many groups, those that they name
    are drawn.
    """
    check_curve(
        distribution.curves, f"of {distribution.attribute!r} within {distribution.within!r}"
    )
    grid = distribution.curves.grid
    if not _drawable(grid):
        return None
    members = _members(distribution, findings)
    gaps = {
        f"{number(distribution.attribute, finding.groups[0])},{number(distribution.attribute, finding.groups[1])}": gap
        for finding in findings
        if is_largest_gap(finding.metric)
        and set(finding.groups) <= set(members)
        and (gap := pair_gap(distribution.curves, finding)) is not None
    }
    return {
        **curves_json(thin_curves(_only(distribution.curves, members), _MOST_SCORES), members),
        "x": axis_json(score_axis([grid[0], grid[-1]])),
        "members": [number(distribution.attribute, name) for name in members],
        "left_out": len(distribution.curves.cumulative) - len(members),
        "gaps": {pair: gap_json(gap) for pair, gap in gaps.items()},
    }


def _drawable(grid: Sequence[float]) -> bool:
    """Whether an axis for these scores fits into floating-point numbers."""
    return (
        len(grid) > 1
        and math.isfinite(2 * (grid[-1] - grid[0]))
        and math.isfinite(2 * max(map(abs, grid)))
    )


def cumulative_chart(distribution: Distribution, y_title: str) -> LineChart:
    """The share of each group below each score."""
    grid = distribution.curves.grid
    lines = [
        Line(name_text(name), color, list(zip(grid, values, strict=True)))
        for color, (name, values) in enumerate(distribution.curves.cumulative.items())
    ]
    return distribution_chart(distribution, lines, y_title, _SHARE_AXIS)


def distribution_chart(
    distribution: Distribution, lines: Sequence[Line], y_title: str, y: Axis
) -> LineChart:
    """A chart over the scores of a distribution."""
    grid = distribution.curves.grid
    where = f"{distribution.attribute}, {distribution.within}"
    return LineChart(where, score_axis([grid[0], grid[-1]]), y, lines, "Score", y_title)


def _members(distribution: Distribution, findings: Iterable[Finding]) -> list[str]:
    """The groups that are drawn, in their own order."""
    groups = list(distribution.curves.cumulative)
    compared = dict.fromkeys(
        name for finding in findings for name in finding.groups if name in groups
    )
    selected = set(list(dict.fromkeys([*compared, *groups]))[:_MAX_GROUPS])
    return [name for name in groups if name in selected]


def _only(curves: Curves, members: Sequence[str]) -> Curves:
    return Curves(
        curves.grid,
        {name: curves.density[name] for name in members if name in curves.density},
        {name: curves.cumulative[name] for name in members},
    )


def pair_gap(curves: Curves, finding: Finding) -> Gap | None:
    """The largest gap between the two groups of a Kolmogorov finding: where its witness drops, else
    by the curves.

    A group's expectation of a step is its share below the step, which is exact, while curves are
    drawn on a grid.

    >>> curves = Curves([0, 1, 2], {}, {"a": [0.2, 0.5, 1.0], "b": [0.3, 0.9, 1.0]})
    >>> pair_gap(curves, Finding("sex", "statistical_parity", "everyone", ("a", "b"), (9, 9), "kolmogorov", 0.4)).score
    1
    """
    if not set(finding.groups) <= set(curves.cumulative):
        return None
    drop = None if finding.witness is None else witness_step(finding.witness)
    if finding.witness is None or drop is None:
        return widest_gap(_only(curves, finding.groups))
    shares = dict(zip(finding.groups, finding.witness.expected, strict=True))
    lower, upper = sorted(finding.groups, key=shares.__getitem__)
    return Gap(drop, lower, upper, shares[lower], shares[upper])


def is_about(finding: Finding, curves: Curves) -> bool:
    """Whether a finding can be about the drawn scores: criteria may compare losses, or other
    scores.

    The share below a score lies between those below the scores of the grid on either side.
    """
    if finding.criterion in OTHER_SCORES:
        return False
    gap = pair_gap(curves, finding) if is_largest_gap(finding.metric) else None
    if gap is None:
        return True
    right = bisect_right(curves.grid, gap.score)
    for name, share in ((gap.lower, gap.low), (gap.upper, gap.high)):
        values = curves.cumulative[name]
        least = values[right - 1] if right > 0 else 0.0
        most = values[right] if right < len(values) else 1.0
        if not least - _SHARE_ROUNDING <= share <= most + _SHARE_ROUNDING:
            return False
    return True


def witness_step(witness: WitnessCurve) -> float | None:
    """The last score before a step utility drops; None if it does not.

    >>> witness_step(WitnessCurve([0.1, 0.2, 0.3], [1.0, 1.0, 0.0], (0.5, 0.2)))
    0.2
    """
    before = [
        score for score, utility in zip(witness.grid, witness.utility, strict=True) if utility > 0.5
    ]
    return float(max(before)) if 0 < len(before) < len(witness.grid) else None


def witness_json(finding: Finding) -> PageJson:
    """The witness of a finding with a sentence about it; None if there is none to draw."""
    witness = finding.witness
    if witness is None or not _drawable(witness.grid):
        return None
    if len(witness.utility) != len(witness.grid):
        raise DataError(
            f"the witness of {finding.attribute!r} within {finding.within!r} has "
            f"{len(witness.utility)} values, its "
            f"grid {len(witness.grid)}; give one value per score of the grid"
        )
    at = corners(witness.grid, witness.utility)
    levels = [*(witness.utility[index] for index in at), *witness.expected]
    return {
        "x": axis_json(score_axis([witness.grid[0], witness.grid[-1]])),
        "y": axis_json(
            axis([level for level in levels if math.isfinite(level)], count=4, least_span=0.0)
        ),
        "grid": grid_json([witness.grid[index] for index in at]),
        "utility": [short(witness.utility[index], digits=4) for index in at],
        "expected": [short(level) for level in witness.expected],
        "text": witness_text(finding, witness),
    }


def corners(grid: Sequence[float], values: Sequence[float]) -> list[int]:
    """Places of a curve that a line through the others would miss, at most about a plot's width of
    them.

    >>> corners([0, 1, 2, 3, 4], [1.0, 1.0, 1.0, 0.0, 0.0])
    [0, 2, 3, 4]
    """
    size = max(values) - min(values)
    places = [0]
    for at in range(1, len(grid) - 1):
        share = (grid[at] - grid[at - 1]) / (grid[at + 1] - grid[at - 1])
        on_the_line = values[at - 1] + share * (values[at + 1] - values[at - 1])
        if abs(on_the_line - values[at]) > 1e-9 * size:
            places.append(at)
    places.append(len(grid) - 1)
    every = math.ceil(len(places) / _MOST_SCORES)
    return [*places[:-1:every], places[-1]]
