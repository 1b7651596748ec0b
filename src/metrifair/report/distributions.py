"""Score distributions of the groups: where they are furthest apart, and few enough numbers to draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from metrifair.errors import DataError
from metrifair.report.scales import number_text, percent_text
from metrifair.results import Curves


@dataclass(frozen=True)
class Gap:
    """The largest difference between two groups' shares below a score."""

    score: float
    lower: str  # the group with the smaller share below the score
    upper: str
    low: float
    high: float

    @property
    def size(self) -> float:
        """The difference of the shares."""
        return self.high - self.low

    @property
    def text(self) -> str:
        """The gap as a sentence.

        >>> Gap(0.5, "a", "b", 0.25, 0.75).text
        'Largest gap 0.500, at score 0.500: 75.0% of “b” lie below it, 25.0% of “a”.'
        """
        return (
            f"Largest gap {number_text(self.size)}, at score {number_text(self.score)}: "
            f"{percent_text(self.high)} of “{self.upper}” lie below it, {percent_text(self.low)} of “{self.lower}”."
        )


def widest_gap(curves: Curves) -> Gap | None:
    """Where the distribution functions are furthest apart, on the grid; None for fewer than two groups.

    >>> widest_gap(Curves([0, 1, 2], {}, {"a": [0.2, 0.5, 1.0], "b": [0.3, 0.9, 1.0]}))
    Gap(score=1, lower='a', upper='b', low=0.5, high=0.9)
    """
    best: Gap | None = None
    for at, score in enumerate(curves.grid):
        shares = {name: values[at] for name, values in curves.cumulative.items() if isfinite(values[at])}
        if len(shares) < 2:
            continue
        lower, upper = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
        if best is None or shares[upper] - shares[lower] > best.size:
            best = Gap(score, lower, upper, shares[lower], shares[upper])
    return best


def check_curves(curves: Mapping[float, Curves]) -> None:
    """Raise a DataError where a curve and its grid differ in length: it would be drawn at wrong scores.

    >>> check_curves({0.5: Curves([0, 1], {"a": [1, 1]}, {"a": [0, 1, 1]})})
    Traceback (most recent call last):
    metrifair.errors.DataError: the cumulative curve of group 'a' at strength 0.5 has 3 values, its grid 2; ...
    """
    for strength, found in curves.items():
        check_curve(found, f"at strength {strength!r}")


def check_curve(curves: Curves, where: str) -> None:
    """The same for the curves of one place, which is named in the error."""
    if len(curves.grid) < 2 or any(left >= right for left, right in pairwise(curves.grid)):
        raise DataError(
            f"the grid of the curves {where} must be two or more ascending scores, "
            f"got {len(curves.grid)} scores; sort them and leave out repeated ones"
        )
    for kind, by_group in (("density", curves.density), ("cumulative", curves.cumulative)):
        for name, values in by_group.items():
            if len(values) != len(curves.grid):
                raise DataError(
                    f"the {kind} curve of group {name!r} {where} has {len(values)} values, its "
                    f"grid {len(curves.grid)}; give one value per score of the grid"
                )


def thinned(curves: Curves, most: int) -> Curves:
    """The curves on at most about ``most`` scores of their grid, evenly taken; both ends and the widest gap stay.

    >>> thinned(Curves([0, 1, 2, 3, 4], {"a": [5, 6, 7, 8, 9]}, {}), 3)
    Curves(grid=[0, 2, 4], density={'a': [5, 7, 9]}, cumulative={})
    """
    count = len(curves.grid)
    if count <= most:
        return curves
    kept = {round(step * (count - 1) / (most - 1)) for step in range(most)}
    gap = widest_gap(curves)
    if gap is not None:
        kept.add(list(curves.grid).index(gap.score))
    chosen = sorted(kept)

    def taken(values: Sequence[float]) -> list[float]:
        return [values[at] for at in chosen]

    return Curves(
        taken(curves.grid),
        {name: taken(values) for name, values in curves.density.items()},
        {name: taken(values) for name, values in curves.cumulative.items()},
    )
