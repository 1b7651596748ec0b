"""Numbers as JSON that the page draws: few digits, nothing that is not a number, axes, the groups' curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from metrifair.report.distributions import Gap, widest_gap
from metrifair.report.scales import Axis, axis, number_text
from metrifair.results import Curves

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

_MOST_SCORES = 240
_FEWEST_SCORES = 24


def short(value: float | None, *, digits: int = 6) -> float | None:
    """The value with few digits, as the page needs no more; None where it is not a number.

    >>> short(0.123456789), short(float("nan"))
    (0.123457, None)
    """
    rounded = math.nan if value is None else float(f"{value:.{digits}g}")
    return rounded if math.isfinite(rounded) else None


def axis_json(found: Axis) -> Json:
    """An axis as the page draws it."""
    return {"low": found.low, "high": found.high, "ticks": [[at, text] for at, text in found.ticks]}


def score_axis(scores: Iterable[float]) -> Axis:
    """Scores end where their grids end: probabilities get no air beyond 0 and 1.

    >>> score_axis([0.0, 1.0]).high
    1.0
    """
    ends = list(scores)
    found = axis(ends, least_span=0.0)
    low, high = (min(ends), max(ends)) if max(ends) > min(ends) else (found.low, found.high)
    return Axis(low, high, tuple(tick for tick in found.ticks if low <= tick[0] <= high))


def scores_kept(curves: int, most_numbers: int) -> int:
    """On how many scores so many curves are drawn, to make at most about ``most_numbers`` numbers.

    >>> scores_kept(4, 120_000), scores_kept(1200, 120_000)
    (240, 100)
    """
    return max(_FEWEST_SCORES, min(_MOST_SCORES, most_numbers // max(curves, 1)))


def curves_json(curves: Curves, groups: Sequence[str]) -> dict[str, Any]:
    """Densities and shares below each score, one list per group, None for a group that has none."""
    tops = [value for values in curves.density.values() for value in values if math.isfinite(value)]
    return {
        "grid": grid_json(curves.grid),
        "top": axis_json(axis([0.0, *tops], from_zero=True, count=4, least_span=0.0)),
        "density": [_values(curves.density.get(name)) for name in groups],
        "cumulative": [_values(curves.cumulative.get(name)) for name in groups],
        "gap": gap_json(widest_gap(curves)),
    }


def grid_json(grid: Sequence[float]) -> list[float | None]:
    """Scores with as many digits as it takes to tell them apart.

    >>> grid_json([0.0, 1 / 3]), grid_json([1e9 + 0.25, 1e9 + 0.5])
    ([0.0, 0.333333], [1000000000.25, 1000000000.5])
    """
    size, span = max(map(abs, grid)), max(grid) - min(grid)
    more = math.ceil(math.log10(size / span)) if 0 < span < size else 0
    return [short(score, digits=min(6 + more, 17)) for score in grid]


def gap_json(gap: Gap | None) -> Json:
    """Where a gap is marked, and the sentence about it."""
    if gap is None:
        return None
    ends: dict[str, Json] = {"x": short(gap.score), "low": short(gap.low), "high": short(gap.high)}
    return {**ends, "text": gap.text, "size": number_text(gap.size)}


def _values(values: Sequence[float] | None) -> Json:
    return None if values is None else [short(value, digits=4) for value in values]
