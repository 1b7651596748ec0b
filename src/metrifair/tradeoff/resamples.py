"""The figures of all configurations on resamples of the rows, and on the rows that each resample
leaves out.

A choice is repeated on the one and evaluated on the other: bootstrap bias-corrected
cross-validation (Tsamardinos, Greasidou and Borboudakis, 2018). No model is trained for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import hypot, sqrt
from typing import NamedTuple

import numpy as np

from metrifair.errors import TooFewSamples
from metrifair.figures.fold_gaps import (
    BRIDGE,
    FEWEST_IN_FOLD,
    DrawnShares,
    FoldSides,
    SquaredDistances,
    corrected_squares,
    gap_without_chance,
)
from metrifair.figures.intervals import Interval
from metrifair.support.arrays import Floats, Integers
from metrifair.support.special import normal_quantile

TAILS = (0.025, 0.975)  # of 95 % intervals
_WIDTH = normal_quantile(TAILS[1])
_BESIDE_GAP = 0.4  # what the noise alone adds to the variance of a squared gap; see below
FEWEST_RESAMPLES = 50
MOST_RESAMPLES = 200
_MOST_WORK = 500_000_000  # scores of resampled rows, of all configurations and comparisons
# times the number of resamples: rows that leave no group out cannot be resampled
_MOST_DRAWN_AGAIN = 50


@dataclass(frozen=True, eq=False)
class ResampledGaps:
    """The squared gap of each configuration without chance, which may be negative; and on
    resamples.
    """

    squares: Floats  # (configurations,)
    drawn: Floats  # on resampled rows: (resamples, configurations)
    left_out: Floats  # on the rows that each resample leaves out
    # how much the gaps of fold models differ, beyond the differences of their rows
    training_errors: Floats  # (configurations,)
    # the gap that chance alone explains: the root of its mean square, of the worst comparison
    noise: float

    @cached_property
    def gaps(self) -> Floats:
        """The gap of each configuration."""
        return roots(self.squares)

    @cached_property
    def sampling_errors(self) -> Floats:
        """The standard error of each configuration's gap with these fold models."""
        errors: Floats = roots(self.drawn).std(axis=0, ddof=1)
        return errors

    @cached_property
    def errors(self) -> Floats:
        """The standard error of each gap: of these rows, and of training on other rows."""
        errors: Floats = np.hypot(self.sampling_errors, self.training_errors)
        return errors

    @cached_property
    def errors_of_squares(self) -> Floats:
        """The standard error of each squared gap: of these rows, and of training on other rows.

        A squared gap of D has the variance 4 s (D^2 + c v), where v is its mean for equal
        distributions, s the variance of one difference of shares, and c is 0.33 for continuous
        scores and 0.5 for decisions. On resamples, D^2 has grown by the sample's own v.
        """
        squares = np.maximum(self.squares, 0.0)
        noise = self.noise**2
        own = squares + _BESIDE_GAP * noise
        of_resamples = np.maximum(own + noise, np.finfo(float).tiny)
        sampling = self._spreads * np.sqrt(own / of_resamples)
        errors: Floats = np.hypot(sampling, self._training_errors_of_squares)
        return errors

    @cached_property
    def _spreads(self) -> Floats:
        """The standard deviation of each squared gap on resamples."""
        spreads: Floats = self.drawn.std(axis=0, ddof=1)
        return spreads

    @property
    def _training_errors_of_squares(self) -> Floats:
        return 2 * np.maximum(self.gaps, self.noise / 2) * self.training_errors

    @cached_property
    def errors_of_differences(self) -> Floats:
        """The standard error of the difference in gap of every two configurations."""
        return _errors_of_differences(roots(self.drawn))

    def interval(self, configuration: int, expected: float | None = None) -> Interval:
        """The 95 % interval of a configuration's gap.

        ``expected`` is the square that is expected on new rows, where the same rows chose the
        configuration; None: they did not. A gap that cannot be distinguished from 0 has an upper
        end only, which the whole spread of the resamples determines.
        """
        square = float(self.squares[configuration])
        if expected is None:
            expected = square
        largest = max(square, expected)
        smallest = min(square, expected)
        error = float(self.errors_of_squares[configuration])
        lower = root(smallest - _WIDTH * error)
        upper = root(largest + _WIDTH * error)
        if root(expected) < self.noise:
            sampling = float(self._spreads[configuration])
            training = float(self._training_errors_of_squares[configuration])
            spread = hypot(sampling, training)
            lower = 0.0
            upper = max(root(largest + _WIDTH * spread), self.noise)
        return Interval(lower, min(1.0, upper))


@dataclass(frozen=True, eq=False)
class ResampledUtilities:
    """The utility of each configuration, larger for better ones, and on the same resamples.

    A configuration without a utility has minus infinity.
    """

    values: Floats  # (configurations,)
    drawn: Floats  # (resamples, configurations)
    left_out: Floats

    @cached_property
    def errors_of_differences(self) -> Floats:
        """The standard error of the difference in utility of every two configurations."""
        known = np.isfinite(self.values)
        return _errors_of_differences(np.where(known, self.drawn, 0.0))


def number_of_resamples(scores: Floats, sides: FoldSides) -> int:
    """200; fewer for scores (configurations, lines, n) of many rows, comparisons or models, but at
    least 50.

    >>> sides = FoldSides(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), np.array([0, 0]))
    >>> number_of_resamples(np.zeros((3, 1, 2)), sides)
    200
    """
    lines: int = scores.shape[0] * scores.shape[1]
    work = lines * max(1, int(sides.compared.sum()))
    return min(MOST_RESAMPLES, max(FEWEST_RESAMPLES, _MOST_WORK // work))


def draw_rows(sides: FoldSides, seed: int, count: int = MOST_RESAMPLES) -> Integers:
    """How often each resample has each row: (count, n). Rows of one cluster are drawn together.

    A resample that has, or leaves out, fewer than 5 rows on a side of a comparison is drawn again.
    """
    units = int(sides.units.max()) + 1
    amounts = np.concatenate([sides.left, sides.right])
    on_side = (amounts > 0).astype(np.float32)
    generator = np.random.default_rng(seed)
    accepted: list[Integers] = []
    for _ in range(_MOST_DRAWN_AGAIN * count):
        chosen = generator.integers(0, units, units)
        times = np.bincount(chosen, minlength=units)
        drawn = times[sides.units]
        inside = on_side @ (drawn > 0).astype(np.float32)
        outside = on_side.sum(axis=1) - inside
        fewest = np.minimum(inside, outside).min(initial=np.inf)
        if fewest >= FEWEST_IN_FOLD:
            accepted.append(drawn)
        if len(accepted) == count:
            return np.array(accepted)
    raise TooFewSamples(
        "groups have too few rows to choose a model by: resamples have, or leave out, fewer than "
        f"{FEWEST_IN_FOLD}",
        remedy="merge small groups, or mark them as missing",
    )


def resampled_gaps(scores: Floats, sides: FoldSides, drawn: Integers) -> ResampledGaps:
    """The gaps of scores (configurations, lines, n), each of its worst line and comparison.

    ``drawn`` says how often each resample has each row.
    """
    factors = _factors(scores, sides)
    explained = _explained(scores, sides)
    gaps = []
    for place in range(len(sides.left)):
        side = _only(sides, place)
        gaps_of_side = _gaps_of_comparison(
            scores, side, drawn, factors[..., place], explained[..., place]
        )
        gaps.append(gaps_of_side)
    worst = _largest(gaps)
    return ResampledGaps(
        squares=worst.squares,
        drawn=worst.drawn,
        left_out=worst.left_out,
        training_errors=np.sqrt(worst.training_variances),
        noise=noise_of(scores, sides),
    )


def noise_of(scores: Floats, sides: FoldSides) -> float:
    """The gap that chance alone explains in scores (configurations, lines, n)."""
    return _noise(sides, _factors(scores, sides).max(axis=(0, 1)))


def noise_of_any_scores(sides: FoldSides) -> float:
    """The gap that chance alone explains in scores of more than two values, whatever they are.

    >>> sides = FoldSides(np.eye(2).repeat(50, axis=1)[:1], np.eye(2).repeat(50, axis=1)[1:],
    ...     np.zeros(100, dtype=int))
    >>> 0.15 < noise_of_any_scores(sides) == noise_of(np.arange(100.0)[None, None], sides) < 0.2
    True
    """
    return _noise(sides, np.full(len(sides.left), BRIDGE))


def _noise(sides: FoldSides, factors: Floats) -> float:
    """The gap that chance explains in the worst comparison; ``factors`` are one for each."""
    squares = sides.mean_squares(sides.shares_squared(), factors)
    return sqrt(float(squares.pooled.max()))


def _factors(scores: Floats, sides: FoldSides) -> Floats:
    """The factors of chance: (configurations, lines, comparisons)."""
    return np.array([[sides.bridge_factors(line) for line in lines] for lines in scores])


def _explained(scores: Floats, sides: FoldSides) -> Floats:
    """The shares of variance that labels explain: (configurations, lines, comparisons)."""
    return np.array([[sides.explained_by_labels(line) for line in lines] for lines in scores])


def gaps_without_chance(scores: Floats, sides: FoldSides) -> Floats:
    """The gap of each configuration's scores (configurations, lines, n), without resamples."""
    return np.array([gap_without_chance(lines, sides) for lines in scores])


def _only(sides: FoldSides, comparison: int) -> FoldSides:
    """The same rows with one of the comparisons."""
    place = slice(comparison, comparison + 1)
    return replace(sides, left=sides.left[place], right=sides.right[place])


class _Gaps(NamedTuple):
    """The figures of all configurations, of their worst lines, in one comparison."""

    squares: Floats
    drawn: Floats
    left_out: Floats
    training_variances: Floats


def _gaps_of_comparison(
    scores: Floats, sides: FoldSides, drawn: Integers, factors: Floats, explained: Floats
) -> _Gaps:
    """The gaps in the only comparison of these sides; ``factors`` (configurations, lines) are those
    of chance, ``explained`` the shares of variance that labels explain.

    In a resample, chance counts twice: for the noise of the sample and of the resample. The
    resample has no equal shares of labels in its folds, the sample has.
    """
    count = len(drawn)
    is_left_out = drawn == 0
    once = np.ones((1, len(sides.fold)))
    all_rows = DrawnShares(sides, 0, once)
    weights = np.concatenate([drawn, is_left_out])
    resamples = DrawnShares(sides, 0, weights.astype(np.float32))
    shares = sides.shares_squared()
    shares_left_out = sides.shares_squared(is_left_out.astype(np.float64))
    by_configuration = []
    for place, lines in enumerate(scores):
        by_line = []
        for line, factor, share in zip(lines, factors[place], explained[place], strict=True):
            chance = sides.mean_squares(shares, factor[None])
            less = share * chance.beyond_all_rows()
            own = chance.less_within(less)
            on_left_out = sides.mean_squares(shares_left_out, factor[None])
            both = chance.doubled().repeated(count).followed_by(on_left_out)
            of_resamples = both.less_within(less)
            found = all_rows.squared_distances(line)
            on_resamples = resamples.squared_distances(line)
            squares = corrected_squares(on_resamples, of_resamples, sides)
            gaps = _Gaps(
                corrected_squares(found, own, sides),
                squares[:count],
                squares[count:],
                _training_variance(found, on_resamples.within[:, :count], sides),
            )
            by_line.append(gaps)
        by_configuration.append(_largest(by_line))
    of_all_rows, inside, outside, variances = zip(*by_configuration, strict=True)
    return _Gaps(
        np.concatenate(of_all_rows),
        np.stack(inside, axis=1),
        np.stack(outside, axis=1),
        np.concatenate(variances),
    )


def _largest(gaps: Sequence[_Gaps]) -> _Gaps:
    """The largest of each figure."""
    return _Gaps(*(np.max(figures, axis=0) for figures in zip(*gaps, strict=True)))


def _training_variance(found: SquaredDistances, within: Floats, sides: FoldSides) -> Floats:
    """The variance of the gaps of fold models, less that of their rows: (1,).

    ``within`` are the squared distances on resampled rows, by fold.
    """
    if sides.folds < 2 or not sides.has_within[0]:
        return np.zeros(1)
    among_models = np.sqrt(found.within[:, 0]).var(axis=1, ddof=1)
    on_resamples = np.nanvar(np.sqrt(within), axis=1, ddof=1)
    of_rows = np.nanmean(on_resamples, axis=1)
    variance: Floats = np.maximum(0.0, among_models - of_rows)
    return variance


def resampled_utilities(
    values: Floats, influence: Floats, weight: Floats, drawn: Integers
) -> ResampledUtilities:
    """The utilities of all configurations on resamples, from the influence of each row.

    ``influence`` (configurations, n) says what each row adds: the utility of some of the rows is
    the utility of all plus their mean influence, exactly for means over rows such as accuracy and
    to first order for others.
    """
    inside = _weighted_means(influence, drawn * weight)
    outside = _weighted_means(influence, (drawn == 0) * weight)
    return ResampledUtilities(values, values + inside, values + outside)


def _weighted_means(influence: Floats, weights: Floats) -> Floats:
    """The mean influence of the rows for each draw of weights: (draws, configurations)."""
    shares = weights / weights.sum(axis=1, keepdims=True)
    means: Floats = shares @ influence.T
    return means


def root(square: float) -> float:
    """The root of a square that chance was taken out of; 0 of a negative one."""
    return sqrt(max(0.0, square))


def roots(squares: Floats) -> Floats:
    """The roots of several such squares."""
    found: Floats = np.sqrt(np.maximum(squares, 0.0))
    return found


def _errors_of_differences(draws: Floats) -> Floats:
    """The standard error of the difference of every two columns of draws."""
    count = draws.shape[1]
    covariance = np.cov(draws, rowvar=False).reshape(count, count)
    variance = np.diag(covariance)
    variances = variance[:, None] + variance - 2 * covariance
    return roots(variances)
