"""The rows of a file that can be used, pass by pass: scores, and cells (combinations of groups, strata and label)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.inputs import MOST_LEVELS
from metrifair.auditing.large.coding import Levels, Roles, levels_for, numbers
from metrifair.auditing.large.counting import Block, Booleans
from metrifair.auditing.large.grids import Floats, Integers
from metrifair.auditing.large.passes import Survey
from metrifair.auditing.reading import Source
from metrifair.errors import DataError

_TABLE = 2**16  # combinations of levels that a table holds; more are looked up among those there are
_MOST_CELLS = 2**18
_MOST_COMBINATIONS = 2**63 - 1


class Tally(NamedTuple):
    """What each cell holds: rows, their weight and its squares, and the weight of those that are selected."""

    rows: Integers
    weight: Floats
    squares: Floats
    selected: Floats


def _sums(place: NDArray[Any], selected: Booleans, weight: Floats | None) -> Floats:
    """Rows, weight, squared weight and selected weight at each place: (4, places)."""
    split = place.astype(np.int64) * 2 + selected

    def sums(weights: Floats | None) -> NDArray[Any]:
        return np.bincount(split, weights, 2 * int(place.max()) + 2).reshape(-1, 2)

    rows = sums(None)
    if weight is None:
        return np.stack([rows.sum(1), rows.sum(1), rows.sum(1), rows[:, 1]]).astype(np.float64)
    weights = sums(weight)
    return np.stack([rows.sum(1), weights.sum(1), sums(weight**2).sum(1), weights[:, 1]])


@dataclass
class Rows:
    """The rows of a file that can be used, as scores and cells."""

    source: Source
    roles: Roles
    most_groups: int = MOST_LEVELS
    levels: list[Levels] = field(default_factory=list)
    cells: list[tuple[int, ...]] = field(default_factory=list)  # codes of the key columns
    left_out: int = 0

    def __post_init__(self) -> None:
        self.levels = levels_for(self.roles, most_groups=self.most_groups)

    def surveyed(self, threshold: float) -> tuple[Survey, Tally]:
        """Read all rows once: the cells there are, what they hold, and a sample of the scores."""
        survey, tally = Survey(), dict[tuple[int, ...], Floats]()
        self.left_out = 0
        for scores, codes, weight, missed in self._batches():
            self.left_out += missed
            if len(scores) == 0:
                continue
            survey.add(scores)
            check_finite(self.roles, survey.low, survey.high, weight)
            sizes = self._sizes()
            numbers_met, place = _met(_radix(codes, sizes), prod(sizes))
            sums = _sums(place, scores >= threshold, weight)
            met = np.flatnonzero(sums[0])
            keys = zip(*(code.tolist() for code in np.unravel_index(numbers_met[met], sizes)), strict=True)
            for key, new in zip(keys, sums[:, met].T, strict=True):
                tally[key] = tally.get(key, 0.0) + new
            if len(tally) > _MOST_CELLS:
                raise self._too_many()
        self.cells = sorted(tally)
        found = np.array([tally[key] for key in self.cells]).reshape(-1, 4).T
        return survey, Tally(found[0].astype(np.int64), *found[1:])

    def _sizes(self) -> list[int]:
        sizes = [len(level.values) + 1 for level in self.levels]
        if prod(sizes) > _MOST_COMBINATIONS:
            raise self._too_many()
        return sizes

    def _too_many(self) -> DataError:
        listed = ", ".join(map(repr, self.roles.keys))
        return DataError(
            f"the columns {listed} have more than {_MOST_CELLS:,} combinations of values, too many to count in a file "
            "too large to hold; audit fewer of these columns at a time, or make their values coarser"
        )

    def read(self) -> Iterator[Block]:
        """Read all rows once more, as blocks of scores and cells."""
        sizes = self._sizes()
        known = np.ravel_multi_index(tuple(np.array(self.cells).T), sizes)  # ascending, as the cells are
        combinations = prod(sizes)
        cell_at = np.searchsorted(known, np.arange(combinations)) if combinations <= _TABLE else None
        for scores, codes, weight, _ in self._batches():
            number = _radix(codes, sizes)
            yield Block(scores, np.searchsorted(known, number) if cell_at is None else cell_at.take(number), weight)

    def _batches(self) -> Iterator[tuple[Floats, list[NDArray[Any]], Floats | None, int]]:
        """Scores, codes and weights of the rows that can be used, and how many rows cannot."""
        name = self.roles.weight
        for batch in self.source.batches(self.roles.columns):
            scores = numbers("score", self.roles.score, batch[self.roles.score])
            weight = None if name is None else numbers("weight", name, batch[name])
            codes = [level.codes(batch[level.name]) for level in self.levels]
            used = usable(self.roles, scores, codes, weight)
            if used is None:
                yield scores, codes, weight, 0
            else:
                some = None if weight is None else weight[used]
                yield scores[used], [code[used] for code in codes], some, len(used) - int(used.sum())


def check_finite(roles: Roles, low: float, high: float, weight: Floats | None = None) -> None:
    """Raise a DataError for infinite scores, and for weights that are infinite or negative."""
    if not np.isfinite([low, high]).all():
        raise DataError(f"the score column {roles.score!r} holds an infinite value; replace it or leave the row out")
    if weight is not None and not (weight.min() >= 0 and weight.max() < np.inf):
        raise DataError(f"the weight column {roles.weight!r} must hold finite numbers that are not negative")


def usable(roles: Roles, scores: Floats, codes: Sequence[NDArray[Any]], weight: Floats | None) -> Booleans | None:
    """True for rows with a score, a label and a weight, where asked for, and a known group; None: all rows."""
    if len(scores) == 0:
        return None
    whole = all(int(code.min()) > 0 for code in codes) and not np.isnan(scores.min())
    if whole and (weight is None or not np.isnan(weight.min())):
        return None
    used = ~np.isnan(scores)
    if weight is not None:
        used &= ~np.isnan(weight)
    if roles.label is not None:
        used &= codes[-1] > 0
    known: Booleans = np.any([code > 0 for code in codes[: len(roles.groups)]], axis=0)
    return used & known


def _met(number: NDArray[Any], combinations: int) -> tuple[Integers, NDArray[Any]]:
    """Numbers of combinations that hold all those met, and the place of each row's number among them."""
    if combinations <= _TABLE:
        return np.arange(combinations), number
    return np.unique(number, return_inverse=True)


def _radix(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[Any]:
    """One number for each combination of codes."""
    place = codes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        place = place.astype(np.int64, copy=False) * size + code
    return place
