"""Bins of a table's scores, counted by the engine that has them.

The number of a bin is an expression that every engine knows: the largest integer below (score - base) x a power of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import frexp
from typing import TYPE_CHECKING, Any, ClassVar

import narwhals.stable.v2 as nw
import numpy as np

from metrifair.auditing.out_of_core.bins import Bins, Counter, Entries, Scale, Steps, bins_for, joined, steps_of
from metrifair.support.arrays import Booleans, Floats, Integers

if TYPE_CHECKING:
    from metrifair.auditing.out_of_core.tables import TableRows

_MOST_BINS = 2**14  # engines group by few keys faster than by many, and few bins have to be looked into
_MANY_ROWS = 2**24  # beyond, there are twice as many: too many rows to hold would lie in those that matter
_MOST_RANGES = 512  # stretches of scores that one query looks into
_MOST_CUT = 1024  # bins that are cut at a time
_HEAVY = 2**-10  # of the rows: a bin with more of them shows too little of a distribution, and is cut at once
_HEAVY_PASSES = 4
_LARGEST_POWER = 1000  # of two, that numbers bins
_LARGEST_NUMBER = 62  # of a bin, as a power of two


@dataclass(frozen=True, eq=False)
class TableBins:
    """The rows of a table that was surveyed, in bins of equal width and in parts of some of them."""

    table: TableRows
    most_held: ClassVar[int] = 2**22  # engines find few rows faster than they count many of them once more

    @property
    def most(self) -> int:
        """How many bins there may be."""
        return min(_MOST_BINS << (self.table.used > _MANY_ROWS), bins_for(len(self.table.cells)))

    @cached_property
    def scale(self) -> Scale:
        """On which positions are."""
        return Scale.between(*self.table.ends)

    def counted(self) -> Bins:
        """All rows in bins of equal width; those that hold a large share of the rows are cut until none does."""
        low, high = self.table.ends
        width, rows = np.array([high - low]), np.array([self.table.used])
        bins = self._bins(self.table.counting, low, _power(self.most, width, rows, high - low))
        for _ in range(_HEAVY_PASSES):
            heavy = ~bins.single & (bins.rows > _HEAVY * bins.rows.sum())
            if not heavy.any():
                break
            bins = joined(bins[~heavy], self.recount(bins[heavy], self.most))
        return bins

    def recount(self, parents: Bins, most: int) -> Bins:
        """The rows of some bins in about ``most`` finer ones of equal width: bins that are too narrow for it stay."""
        heaviest = np.argsort(-parents.rows * ~parents.single, kind="stable")[: min(_MOST_CUT, max(1, most // 2))]
        chosen = np.sort(heaviest)
        lowest = float(parents.low[chosen[0]])
        width = parents.high[chosen] - parents.low[chosen]
        power = _power(most, width, parents.rows[chosen], float(parents.high[chosen[-1]]) - lowest)
        cut = np.zeros(len(parents), np.bool_)
        cut[chosen[np.ldexp(width, power) >= 0.5]] = True
        if not cut.any():
            return parents
        some = np.array_split(np.flatnonzero(cut), -(-int(cut.sum()) // _MOST_RANGES))
        parts = [self._bins(self._under(parents[own]), lowest, power, parents[own]) for own in some]
        return reduce(joined, parts, parents[~cut])

    def held(self, parents: Bins) -> Steps:
        """The rows of some bins, counted at each of their distinct scores."""
        found = [
            self.table.by_cell(self._under(parents[some]), ["score"], self._sums(moments=False))
            for some in np.array_split(np.arange(len(parents)), -(-len(parents) // _MOST_RANGES))
        ]
        scores, amount = (
            np.concatenate([table[name].to_numpy() for table, _ in found])
            for name in ("score", "total" if self.table.weighted else "rows")
        )
        rows = sum(int(table["rows"].sum()) for table, _ in found)
        if rows != int(parents.rows.sum()):
            raise self.table.changed()
        cell = np.concatenate([own for _, own in found])
        return steps_of(scores + 0.0, cell, amount, parents, self.scale)

    def _bins(self, frame: nw.LazyFrame[Any], base: float, power: int, parents: Bins | None = None) -> Bins:
        """The rows of a frame by number; with parents, those of each of them apart."""
        scaled = (nw.col("score") - base) * float(np.ldexp(1.0, power))
        # Cut off before it is cast: casting rounds in some engines.
        position = nw.col("score") * self.scale.inverse - self.scale.low * self.scale.inverse
        position = position * nw.col("weight") if self.table.weighted else position
        frame = frame.with_columns(number=scaled.floor().cast(nw.Int64), position=position)
        by = ["number"]
        if parents is not None:
            leaves = [nw.lit(own) for own in range(len(parents))]
            frame = frame.with_columns(parent=first_upto(nw.col("score"), parents.high, leaves))
            by.append("parent")
        found, cell = self.table.by_cell(frame, by, self._sums(moments=True))
        keys = np.array([found[name].to_numpy().astype(np.int64) for name in reversed(by)])
        distinct, number = np.unique(keys, axis=1, return_inverse=True)
        number = number.ravel()
        rows, low, high, moment, *weight = (found[name].to_numpy() for name in self._sums(moments=True))
        counter = Counter(distinct.shape[1], len(self.table.cells), weighted=self.table.weighted)
        counter.add_counted(number, cell, Entries(rows.astype(np.int64), low + 0.0, high + 0.0, moment, *weight))
        if parents is None:
            return counter.bins(self.scale)
        parent: Integers = distinct[0]
        if not np.array_equal(np.bincount(parent[number], rows, len(parents)), parents.rows):
            raise self.table.changed()
        return counter.bins(self.scale, parents, parent)

    def _sums(self, *, moments: bool) -> dict[str, nw.Expr]:
        found = {"rows": nw.len()}
        if moments:
            score = nw.col("score")
            found |= {"low": score.min(), "high": score.max(), "moment": nw.col("position").sum()}
        return found | ({"total": nw.col("weight").sum()} if self.table.weighted else {})

    def _under(self, parents: Bins) -> nw.LazyFrame[Any]:
        """The rows that lie in some bins. Neighbors are one stretch."""
        apart = ~_is_next(parents, self.scale)
        low, high = parents.low[np.append(True, apart)], parents.high[np.append(apart, True)]
        score = nw.col("score")
        # First from end to end: most rows need no closer look.
        between = self.table.counting.filter((score >= float(low[0])) & (score <= float(high[-1])))
        return between.filter(first_upto(score, high, [score >= float(one) for one in low]))


def first_upto(value: nw.Expr, high: Floats, leaves: Sequence[nw.Expr]) -> nw.Expr:
    """The leaf of the first stretch that ends at the value or above it.

    A tree of questions: an engine asks few of them of each row, and follows no expression down very far.
    """
    middle = len(leaves) // 2
    if middle == 0:
        return leaves[0]
    upper, lower = (first_upto(value, high[part], leaves[part]) for part in (slice(middle, None), slice(middle)))
    return nw.when(value > float(high[middle - 1])).then(upper).otherwise(lower)


def _is_next(parents: Bins, scale: Scale) -> Booleans:
    """Whether no row lies between a bin and the one that follows: (bins - 1,)."""
    if not parents.weighted:
        upto = parents.before[:-1] + parents.counts[:-1]
        found: Booleans = (upto == parents.before[1:]).all(1)
        return found
    between: Floats = scale.positions(parents.low[1:]) - scale.positions(parents.high[:-1])
    return np.equal(between, parents.gap[:-1])


def _power(most: int, width: Floats, rows: Integers, span: float) -> int:
    """The largest power of two that cuts bins of these widths into at most so many that hold rows.

    All of them lie in a stretch of length ``span``: numbers of bins must remain integers of 64 bits.
    """
    largest = min(_LARGEST_POWER, _LARGEST_NUMBER - frexp(span)[1])
    low, high = -_LARGEST_POWER - 100, largest
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(np.ldexp(width, middle), rows).sum() <= most:
            low = middle
        else:
            high = middle - 1
    return low
