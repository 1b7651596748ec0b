"""Exact tails of the hits of a group, given its rows and the hits of all rows: Fisher's test.

The hits are hypergeometric if the group and the other rows have the same odds. At other odds, each
probability is multiplied by a power of the odds ratio. All tables are computed together; each needs
only the places around its mode and around its own hits, where probabilities follow from ratios of
neighbors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from metrifair.support.arrays import Booleans, Floats, Integers

_DEVIATIONS = 9.0  # beyond, probabilities are 0 beside that of the mode
_MARGIN = 40  # places that skewed distributions with a small deviation need more
_PLACES_AT_ONCE = 2_000_000
_STEPS = 60  # of Newton's method, which needs about eight
_CLOSE = 1e-6  # logarithms of tails


@dataclass(frozen=True)
class TwoByTwoTables:
    """Two-by-two tables, one for each entry: a group among all rows, and hits among both."""

    hits: Integers
    rows: Integers
    all_hits: Integers
    all_rows: Integers

    @classmethod
    def of(
        cls,
        hits: ArrayLike,
        rows: ArrayLike,
        all_hits: ArrayLike,
        all_rows: ArrayLike,
    ) -> TwoByTwoTables:
        """The tables of these counts, which are broadcast.

        >>> TwoByTwoTables.of([3, 4], [5, 6], 9, 20).all_hits
        array([9, 9])
        """
        counts = np.broadcast_arrays(
            hits,
            rows,
            all_hits,
            all_rows,
        )
        return cls(*(np.asarray(count, np.int64) for count in counts))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def fewest(self) -> Integers:
        """The smallest number of hits that a group with these margins can have."""
        return np.asarray(np.maximum(0, self.rows + self.all_hits - self.all_rows))

    @property
    def most(self) -> Integers:
        """The largest number of hits that a group with these margins can have."""
        return np.minimum(self.rows, self.all_hits)

    def at(
        self,
        places: Integers | Booleans,
    ) -> TwoByTwoTables:
        """Some of the tables."""
        return TwoByTwoTables(
            self.hits[places],
            self.rows[places],
            self.all_hits[places],
            self.all_rows[places],
        )


def log_tails(
    tables: TwoByTwoTables,
    log_odds: Floats | float = 0.0,
) -> Floats:
    """The logarithm of the probability of at least so many hits, at this logarithm of the odds
    ratio.

    >>> np.exp(log_tails(TwoByTwoTables.of([3, 2], [3, 3], 4, 8))).round(4)
    array([0.0714, 0.5   ])
    """
    ratios = np.broadcast_to(np.asarray(log_odds, np.float64), (len(tables),))
    return _tails_and_slopes(tables, ratios)[0]


def lower_log_odds(
    tables: TwoByTwoTables,
    levels: Floats,
) -> Floats:
    """Lower bounds of the logarithms of odds ratios, each at its own level.

    The odds ratio is below its bound with a probability of at most the level. The logarithm of the
    tail is a concave and increasing function of that of the ratio; therefore, Newton's method
    converges from below, and each of its values is a bound.

    >>> lower_log_odds(TwoByTwoTables.of([8], [10], 10, 40), np.array([0.05])).round(3)
    array([1.895])
    """
    bounds = np.full(len(tables), -np.inf)
    open_places = np.flatnonzero(tables.hits > tables.fewest)
    targets = np.log(levels)[open_places]
    values = _starts(tables.at(open_places), targets)
    for _ in range(_STEPS):
        if not len(open_places):
            break
        tails, slopes = _tails_and_slopes(tables.at(open_places), values)
        distances = targets - tails
        from_below = distances >= 0
        bounds[open_places[from_below]] = values[from_below]
        moving = ~(from_below & (distances < _CLOSE))
        values = (values + distances / slopes)[moving]
        targets = targets[moving]
        open_places = open_places[moving]
    return bounds


def attainable_tails(
    rows: Integers,
    all_hits: int,
    all_rows: int,
) -> Floats:
    """The logarithms of all tails that groups of these sizes can have, in descending order: one row
    for each size.

    They begin near the mode; tails beyond the range are -inf.

    >>> np.exp(attainable_tails(np.array([3]), 4, 8))[0, :4].round(4)
    array([1.    , 0.9286, 0.5   , 0.0714])
    """
    zeros = np.zeros(len(rows))
    without_hits = TwoByTwoTables.of(
        0,
        rows,
        all_hits,
        all_rows,
    )
    tables = replace(without_hits, hits=_modes(without_hits, zeros))
    starts, widths = _windows(tables, zeros)
    logs = _log_weights(tables, zeros, starts, int(widths.max(initial=1)))[1]
    from_right = np.logaddexp.accumulate(logs[:, ::-1], axis=1)[:, ::-1]
    tails: Floats = np.minimum(0.0, from_right - from_right[:, :1])
    return tails


def _starts(
    tables: TwoByTwoTables,
    log_levels: Floats,
) -> Floats:
    """Approximate bounds: of a normal distribution of the logarithm, with half a row more in each
    cell.
    """
    cells = (
        tables.hits,
        tables.all_rows - tables.rows - tables.all_hits + tables.hits,
        tables.rows - tables.hits,
        tables.all_hits - tables.hits,
    )
    like, unlike = (np.log(cells[at] + 0.5) + np.log(cells[at + 1] + 0.5) for at in (0, 2))
    deviation = np.sqrt(sum(1 / (cell + 0.5) for cell in cells))
    squares = -2 * log_levels
    quantiles = np.sqrt(np.maximum(squares - np.log1p(squares) - 1, 0.0))
    starts: Floats = like - unlike - quantiles * deviation
    return starts


def _tails_and_slopes(
    tables: TwoByTwoTables,
    log_odds: Floats,
) -> tuple[Floats, Floats]:
    """The logarithms of the tails, and their derivatives by the logarithm of the odds ratio."""
    tails = np.zeros(len(tables))
    slopes = np.zeros(len(tables))
    starts, widths = _windows(tables, log_odds)
    for places, width in _batches(widths):
        batch = tables.at(places)
        hits, logs = _log_weights(
            batch,
            log_odds[places],
            starts[places],
            width,
        )
        weights = np.exp(logs - logs.max(1, keepdims=True))
        in_tail = hits >= batch.hits[:, None]
        tail_logs = np.where(in_tail, logs, -np.inf)
        highest = tail_logs.max(1, keepdims=True)
        tail_weights = np.exp(tail_logs - highest)
        total = weights.sum(1)
        tail_total = tail_weights.sum(1)
        lift = (highest - logs.max(1, keepdims=True))[:, 0]
        tails[places] = np.minimum(0.0, lift + np.log(tail_total) - np.log(total))
        mean = (weights * hits).sum(1) / total
        tail_mean = (tail_weights * hits).sum(1) / tail_total
        slopes[places] = np.maximum(tail_mean - mean, np.finfo(float).tiny)
    return tails, slopes


def _windows(
    tables: TwoByTwoTables,
    log_odds: Floats,
) -> tuple[Integers, Integers]:
    """The first place of each table that is computed, and the number of places."""
    mode = _modes(tables, log_odds)
    cells = (
        mode,
        tables.rows - mode,
        tables.all_hits - mode,
        tables.all_rows - tables.rows - tables.all_hits + mode,
    )
    deviation = 1 / np.sqrt(sum(1 / (cell + 1.0) for cell in cells))
    room = np.ceil(_DEVIATIONS * deviation).astype(np.int64) + _MARGIN
    first = np.maximum(tables.fewest, mode - room)
    last = np.minimum(tables.most, np.maximum(mode, tables.hits) + room)
    first = np.minimum(first, np.maximum(tables.hits, tables.fewest))
    return first, last - first + 1


def _modes(
    tables: TwoByTwoTables,
    log_odds: Floats,
) -> Integers:
    """The numbers of hits at which neighbors are equally probable, up to rounding: a root of a
    quadratic equation.
    """
    odds = np.exp(np.clip(log_odds, -200.0, 200.0))
    rows_and_one = tables.rows + 1.0
    hits_and_one = tables.all_hits + 1.0
    inside = odds * rows_and_one * hits_and_one
    linear = (
        odds * (tables.rows + tables.all_hits + 2.0)
        + tables.all_rows
        - tables.rows
        - tables.all_hits
    )
    root = np.sqrt(np.maximum(linear**2 - 4 * (odds - 1) * inside, 0.0))
    modes = 2 * inside / (linear + root)
    return np.asarray(np.clip(modes.astype(np.int64), tables.fewest, tables.most))


def _batches(widths: Integers) -> Iterator[tuple[Integers, int]]:
    """TwoByTwoTables of similar widths, few enough to be computed at once."""
    order = np.argsort(widths, kind="stable")
    start = 0
    while start < len(order):
        step = max(1, _PLACES_AT_ONCE // int(widths[order[start]]))
        places = order[start : start + step]
        near = widths[places] <= 2 * widths[places[0]]
        places = places[near]
        start += len(places)
        yield places, int(widths[places[-1]])


def _log_weights(
    tables: TwoByTwoTables, log_odds: Floats, starts: Integers, width: int
) -> tuple[Integers, Floats]:
    """Numbers of hits, and the logarithms of their probabilities up to a constant of each table."""
    hits = starts[:, None] + np.arange(width)
    before = hits[:, :-1]
    rows = tables.rows[:, None]
    all_hits = tables.all_hits[:, None]
    outside = tables.all_rows[:, None] - rows - all_hits
    misses = np.maximum(rows - before, 0)
    other_hits = np.maximum(all_hits - before, 0)
    other_misses = np.maximum(outside + before + 1.0, 1.0)
    upper = misses * other_hits.astype(np.float64)
    lower = (before + 1.0) * other_misses
    with np.errstate(divide="ignore"):
        steps = np.log(upper / lower) + log_odds[:, None]
    logs = np.zeros(hits.shape)
    np.cumsum(steps, axis=1, out=logs[:, 1:])
    return hits, logs
