"""Predicted groups: calibrated probabilities of the group given the features, and group-blind
predictions.

These probabilities replace the group if it must not be used at prediction (Xian and Zhao, 2024):
the rates of a group are means over all rows weighted by its probability, and the best rule is
linear in the probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit, log_softmax, softmax

from metrifair.postprocessing.postprocessor import TrainingRows, out_of_fold, overfits
from metrifair.postprocessing.rates import parity_program
from metrifair.problem.tables import Table, take_rows, unmasked
from metrifair.support.arrays import Floats, Integers
from metrifair.support.reuse import reused

_LEAST = 1e-12  # probability
# values that a score may be moved to; 33 take five times as long and are no fairer on new rows
_LEVELS = 17
_LARGEST = 1e150  # score whose products with levels are finite
_MOST_ROWS = 10_000  # to compute prices of levels on
_MARGIN = 1e-7  # difference of gains within which rows are equal
_RAMP = 0.01  # width of the ramp of decisions, in spans of the price
_PARTS = (1.0, 0.75, 0.5, 0.25, 0.0, 1.25, 1.5, 2.0)  # of the prices, tried in this order


class Correction(NamedTuple):
    """A calibration of probabilities: slope and bias of their logarithms."""

    slope: float
    bias: Floats  # (classes,)

    @classmethod
    def fit(cls, chances: Floats, code: Integers, weight: Floats) -> Correction:
        """Fit the correction of probabilities (n, classes) to known classes, by maximum
        likelihood.
        """
        logs = _logs(chances)
        share = weight / weight.sum()
        rows = np.arange(len(code))

        def loss(parameters: Floats) -> tuple[float, Floats]:
            slope = parameters[0]
            bias = parameters[1:]
            corrected = slope * logs + bias
            log_probabilities = log_softmax(corrected, axis=1)
            off = np.exp(log_probabilities)
            off[rows, code] -= 1
            products = off * logs
            of_slope = (share @ products).sum()
            of_bias = share @ off
            likelihood = share @ log_probabilities[rows, code]
            slopes = np.append(of_slope, of_bias)
            return -float(likelihood), slopes

        classes = chances.shape[1]
        no_bias = np.zeros(classes)
        start = np.append(1.0, no_bias)
        free = [(None, None)] * classes
        bounds = [(0.0, 10.0), *free]
        best = _minimizer(loss, start, bounds=bounds)
        bias = best[1:]
        slope = float(best[0])
        return cls(slope, bias - bias.mean())

    def __call__(self, chances: Floats) -> Floats:
        """The calibrated probabilities."""
        logs = _logs(chances)
        corrected = self.slope * logs + self.bias
        return softmax(corrected, axis=1)


def _logs(chances: Floats) -> Floats:
    positive = np.maximum(chances, _LEAST)
    return np.log(positive)


class GroupModel(NamedTuple):
    """A classifier of groups (or of groups and labels), and the calibration of its
    probabilities.
    """

    model: Any
    correction: Correction

    def chances(self, X: Table) -> Floats:
        """The probability of each cell given the features, (n, cells)."""
        X = unmasked(X, as_numbers=True)
        predicted = reused(lambda: self.model.predict_proba(X), self.model, X)
        cells = len(self.correction.bias)
        complete = _all_cells(self.model, predicted, cells)
        return self.correction(complete)


def _minimizer(
    function: Callable[[Floats], tuple[float, Floats]], start: Floats, **settings: Any
) -> Floats:
    """The minimizer of a smooth function, which returns its value and its gradient."""
    solution = minimize(function, start, jac=True, method="L-BFGS-B", **settings)
    minimizer: Floats = solution.x
    return minimizer


def fit_group_model(
    features: TrainingRows, template: Any, *, cells: int, weight: Floats, folds: Integers
) -> tuple[GroupModel, Floats]:
    """The group model, and probabilities of these rows that are distributed as those of new rows.

    They are calibrated on out-of-fold rows, because a classifier can be overconfident on its
    training rows. The optimization of a rule must use the inputs of prediction: the model's
    probabilities, unless it overfits its rows.
    """

    def predict(model: Any, rows: Integers) -> Floats:
        X = take_rows(features.X, rows)
        predicted = model.predict_proba(X)
        return _all_cells(model, predicted, cells)

    fit = partial(features.fit, template)
    cell = np.asarray(features.y)
    all_rows = np.arange(len(cell))
    model = fit(all_rows)
    in_sample = predict(model, all_rows)
    held_out = in_sample
    if folds.max() > 0:
        held_out = out_of_fold(fit, predict, folds)
    correction = Correction.fit(held_out, cell, weight)
    truth = np.eye(cells)[cell]
    chances = in_sample
    if overfits(in_sample, held_out, truth, weight):
        chances = held_out
    return GroupModel(model, correction), correction(chances)


def _all_cells(model: Any, predicted: Floats, cells: int) -> Floats:
    """Probabilities (n, cells); a model may have been fitted without rows of a cell."""
    shape = (len(predicted), cells)
    probabilities = np.full(shape, _LEAST)
    fitted = np.asarray(model.classes_).astype(int)
    probabilities[:, fitted] = np.maximum(predicted, _LEAST)
    return probabilities


# --- scores
# ---------------------------------------------------------------------------------------------------------


class BlindMap(NamedTuple):
    """Scores moved so that their distributions agree in all groups, as far as features predict
    the groups.
    """

    levels: Floats  # (levels,): where scores are moved to
    prices: Floats  # (levels, groups): of a level for one of that group
    shares: Floats  # (groups,)
    width: float  # distance of levels within which a score spreads

    def __call__(self, score: Floats, chances: Floats) -> Floats:
        """The fair scores: means of the levels over which each score is spread."""
        away = chances / self.shares - 1
        priced = away @ self.prices.T
        # Minus the squared distance, but for the squared score, which all levels share: that of a
        # score far away would be infinite.
        center = self.levels.mean()
        place = (score - center)[:, None]
        place = np.clip(place, -_LARGEST, _LARGEST)
        level = self.levels - center
        closeness = (2 * place - level) * level
        inside = (closeness - priced) / self.width**2
        spread = softmax(inside, axis=1)
        moved: Floats = spread @ self.levels
        return moved


def blind_map(score: Floats, chances: Floats, weight: Floats) -> BlindMap:
    """The map to equal distributions that moves scores least, in squared distance.

    Each score is spread over levels so that every level has the same share of all groups, which are
    counted by their probabilities. That is optimal transport with a little entropy; its dual, the
    price of each level for each group, is smooth and convex and has few variables.
    """
    step = math.ceil(len(score) / _MOST_ROWS)
    score = score[::step]
    chances = chances[::step]
    weight = weight[::step]
    low, high = np.quantile(score, [0.001, 0.999])
    span = float(high - low) or 1.0
    levels = np.linspace(low, high, _LEVELS)
    share = weight / weight.sum()
    shares = share @ chances
    away = chances / shares - 1
    width = 1 / (_LEVELS - 1)
    distance = score[:, None] - levels
    closeness = -((distance / span) ** 2)

    def dual(flat_prices: Floats) -> tuple[float, Floats]:
        prices = flat_prices.reshape(_LEVELS, -1)
        priced = away @ prices.T
        inside = (closeness - priced) / width**2
        top = inside.max(1, keepdims=True)
        spread = np.exp(inside - top)
        sums = spread.sum(1)
        logs = top[:, 0] + np.log(sums)
        value = float(share @ logs) * width**2
        spread = spread / sums[:, None]
        spread *= share[:, None]
        slopes = -(spread.T @ away)
        return value, slopes.ravel()

    groups = chances.shape[1]
    start = np.zeros(_LEVELS * groups)
    options = {"maxiter": 1_000, "gtol": 1e-4}
    prices = _minimizer(dual, start, options=options) * span**2
    prices = prices.reshape(_LEVELS, groups)
    return BlindMap(levels, prices, shares, width * span)


# --- decisions
# ------------------------------------------------------------------------------------------------------


class BlindRule(NamedTuple):
    """Accept a row if its gain, less the prices of its probable cells, is at least ``least``."""

    prices: Floats  # (cells,)
    least: float
    width: float  # of the ramp of randomized decisions; 0: not randomized

    def __call__(self, price: Floats, cells: Floats) -> Floats:
        """The probability that each row is accepted."""
        price_of_cells = cells @ self.prices
        gain = -price - price_of_cells - self.least
        if self.width:
            return expit(gain / self.width)
        return (gain >= 0).astype(np.float64)


def blind_coin(
    price: Floats, cells: Floats, weight: Floats, sets: Integers, tolerance: float
) -> BlindRule:
    """The cheapest randomized rule whose rates differ by at most the tolerance between the groups
    of each set.

    ``price`` (n,) is the loss of accepting a row, ``cells`` (n, cells) the probability of each
    cell, ``sets`` the set that a cell belongs to, within which rates are compared. A little entropy
    replaces the step, on whose edge many equal rows could lie, by a ramp: its dual, the price of
    each difference of two rates, is smooth.
    """
    share = weight / weight.sum()
    mass = share @ cells
    normalized = cells / mass
    span = float(np.ptp(price)) or 1.0
    width = _RAMP * span
    same_set = sets[:, None] == sets
    np.fill_diagonal(same_set, val=False)
    first, second = np.nonzero(same_set)
    unit = np.eye(len(sets))
    differences = unit[first] - unit[second]  # (pairs, cells)

    def dual(prices: Floats) -> tuple[float, Floats]:
        prices_of_cells = prices @ differences
        gain = -price - normalized @ prices_of_cells
        gain /= width
        softplus = np.logaddexp(0, gain)
        value = width * float(share @ softplus) + tolerance * prices.sum()
        accepted = share * expit(gain)
        rates = accepted @ normalized
        return value, tolerance - differences @ rates

    pairs = len(first)
    options = {"maxiter": 5_000, "maxfun": 20_000, "gtol": 1e-7, "ftol": 0}
    not_negative = [(0, None)] * pairs
    start = np.zeros(pairs)
    prices = _minimizer(dual, start, bounds=not_negative, options=options)
    prices_of_cells = prices @ differences
    return BlindRule(prices_of_cells / mass, 0.0, width)


def blind_cut(
    price: Floats, cells: Floats, weight: Floats, sets: Integers, tolerance: float
) -> BlindRule:
    """The same without randomization: a step, beyond the tolerance by no more than one row for each
    cell.

    A linear program computes the prices; it splits at most one row per constraint, unless many are
    equal. Then no step at these prices may be within the tolerance: a search finds the step and a
    factor of the prices. Accepting no row, or all rows, is always within it.
    """
    mass = weight @ cells
    total = weight.sum()
    rates = weight[:, None] * cells / mass
    losses = weight * price
    count = int(sets.max()) + 1
    unit = np.eye(count)
    window = csr_array(unit[sets])
    variables = csr_array(rates.T)
    program = parity_program(losses / total, variables, window, tolerance)
    marginals = -program.ineqlin.marginals
    upper, lower = np.split(marginals, 2)
    prices = (upper - lower) * total / mass
    rule = BlindRule(prices, np.inf, 0.0)
    cheapest = np.inf
    of_a_row = rates.max()
    limit = tolerance + len(sets) * of_a_row
    for part in _PARTS:
        scaled = part * prices
        gain = -price - cells @ scaled
        order = np.argsort(-gain)
        gains = np.concatenate([[np.inf], gain[order], [-np.inf]])
        falls = -np.diff(gains)
        counts = np.flatnonzero(falls > _MARGIN)  # possible numbers of accepted rows
        loss = _sums_of_first(losses[order], counts)
        reached = _sums_of_first(rates[order], counts)
        gap = _largest_gap(reached, sets)
        loss[gap > limit] = np.inf
        best = int(loss.argmin())
        if loss[best] < cheapest:
            cheapest = loss[best]
            count = counts[best]
            above = gains[count]
            below = gains[count + 1]
            threshold = (above + below) / 2
            rule = BlindRule(scaled, float(threshold), 0.0)
    return rule


def _sums_of_first(values: Floats, counts: Integers) -> Floats:
    """Sums of the first rows, of so many rows each."""
    none = np.zeros_like(values[:1])
    sums = np.cumsum(values, axis=0)
    sums = np.concatenate([none, sums])
    return sums[counts]


def _largest_gap(rates: Floats, sets: Integers) -> Floats:
    """The largest difference of two rates (columns) of a set, in each row."""
    gaps = []
    for number in np.unique(sets):
        rates_of_set = rates[:, sets == number]
        gap = np.ptp(rates_of_set, axis=1)
        gaps.append(gap)
    largest: Floats = np.max(gaps, axis=0)
    return largest
