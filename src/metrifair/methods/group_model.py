"""The group of a row, guessed from its features: calibrated probabilities, and predictions that ask for nothing else.

Where the group must not be asked for, its probability given the features takes its place (Xian and Zhao, 2024): the
rates of a group are means over all rows by that probability, and the best rule is linear in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_array, hstack, vstack
from scipy.special import log_softmax, softmax

from metrifair.estimators import FairClassifier
from metrifair.methods.training_data import Floats, Integers
from metrifair.problem.tables import Table

_LEAST = 1e-12  # probability
_LEVELS = 17  # values that a score may be moved to; 33 take five times as long and are no fairer on new rows
_MOST_ROWS = 10_000  # that prices of levels are found on
_EXACT = 1e-10  # feasibility of the linear program
_MARGIN = 1e-7  # of the score of a rule below which a row is on its margin

Fitted = Callable[[Integers], Any]
"""Numbers of rows -> a model that has learned from these."""
Told = Callable[[Any, Integers], Floats]
"""A fitted model and numbers of rows -> what it says of these."""


class GroupModel(NamedTuple):
    """A classifier of groups (or of groups and labels), and what makes its probabilities calibrated."""

    model: Any
    slope: float
    bias: Floats  # (cells,)

    def chances(self, X: Table) -> Floats:
        """The probability of each cell given the features, (n, cells)."""
        said = np.asarray(self.model.predict_proba(X))
        return _corrected(_of_all_cells(self.model, said, len(self.bias)), self.slope, self.bias)


def default_group_model(seed: int) -> FairClassifier:
    """A logistic regression of ours, so that it can be saved."""
    return FairClassifier(0.0, model="linear", random_state=seed)


def fitted_group_model(
    fitted: Fitted, probable: Told, cell: Integers, weight: Floats, folds: Integers
) -> tuple[GroupModel, Floats]:
    """The model, and the probabilities of these rows by models that have not seen them.

    Slope and bias of the logarithms are fitted to these, by maximum likelihood: so the probabilities are calibrated on
    rows that were not learned from, however sure of itself the classifier is of its own.
    """
    cells = int(cell.max()) + 1
    apart = out_of_fold(fitted, lambda model, rows: _of_all_cells(model, probable(model, rows), cells), folds)
    logs, share = np.log(apart), weight / weight.sum()

    def loss(at: Floats) -> tuple[float, Floats]:
        found = log_softmax(at[0] * logs + at[1:], axis=1)
        off = np.exp(found)
        off[np.arange(len(cell)), cell] -= 1
        slopes = np.append((share @ (off * logs)).sum(), share @ off)
        return -float(share @ found[np.arange(len(cell)), cell]), slopes

    best = minimize(
        loss, np.append(1.0, np.zeros(cells)), jac=True, method="L-BFGS-B", bounds=[(0, 10)] + [(None, None)] * cells
    )
    slope, bias = float(best.x[0]), best.x[1:] - best.x[1:].mean()
    return GroupModel(fitted(np.arange(len(cell))), slope, bias), _corrected(apart, slope, bias)


def out_of_fold(fitted: Fitted, told: Told, folds: Integers) -> Floats:
    """What models say of rows that they have not seen; with one fold, of those that they have.

    >>> out_of_fold(lambda rows: rows.sum(), lambda model, rows: model + 0.1 * rows, np.array([0, 1, 0]))
    array([1. , 2.1, 1.2])
    """
    parts = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
    rest = [np.flatnonzero(folds != fold) if len(parts) > 1 else parts[0] for fold in range(len(parts))]
    said = [told(fitted(others), own) for others, own in zip(rest, parts, strict=True)]
    found: Floats = np.concatenate(said)[np.argsort(np.concatenate(parts))]
    return found


def _of_all_cells(model: Any, said: Floats, cells: int) -> Floats:
    """Probabilities (n, cells); a fold may have lacked a cell."""
    found = np.full((len(said), cells), _LEAST)
    found[:, np.asarray(model.classes_).astype(int)] = np.maximum(said, _LEAST)
    return found


def _corrected(chances: Floats, slope: float, bias: Floats) -> Floats:
    found: Floats = softmax(slope * np.log(chances) + bias, axis=1)
    return found


# --- scores ---------------------------------------------------------------------------------------------------------


class BlindMap(NamedTuple):
    """Scores moved so that they are distributed alike in all groups, as far as features tell these."""

    levels: Floats  # (levels,): where scores are moved to
    prices: Floats  # (levels, groups): of a level for one of that group
    shares: Floats  # (groups,)
    width: float  # distance of levels within which a score spreads

    def __call__(self, score: Floats, chances: Floats) -> Floats:
        """The fair scores."""
        return self._spread(score, chances) @ self.levels

    def _spread(self, score: Floats, chances: Floats) -> Floats:
        """How much of each level a score becomes, (n, levels)."""
        priced = (chances / self.shares - 1) @ self.prices.T
        found: Floats = softmax((-((score[:, None] - self.levels) ** 2) - priced) / self.width**2, axis=1)
        return found


def blind_map(score: Floats, chances: Floats, weight: Floats) -> BlindMap:
    """The map to equal distributions that moves scores least, in squared distance.

    Each score is spread over levels so that every level has the same share of all groups, which are counted by their
    probabilities. That is optimal transport with a little entropy; its dual, the price of each level for each group, is
    smooth and convex and has few variables.
    """
    some = slice(None, None, -(-len(score) // _MOST_ROWS))
    score, chances, weight = score[some], chances[some], weight[some]
    low, high = np.quantile(score, [0.001, 0.999])
    span = float(high - low) or 1.0
    levels, share = np.linspace(low, high, _LEVELS), weight / weight.sum()
    shares = share @ chances
    away, width = (chances / shares - 1), 1 / (_LEVELS - 1)
    cost = -(((score[:, None] - levels) / span) ** 2)

    def dual(at: Floats) -> tuple[float, Floats]:
        inside = (cost - away @ at.reshape(_LEVELS, -1).T) / width**2
        top = inside.max(1, keepdims=True)
        spread = np.exp(inside - top)
        sums = spread.sum(1)
        value = float(share @ (top[:, 0] + np.log(sums)))
        slopes = -((spread / sums[:, None] * share[:, None]).T @ away)
        return value * width**2, slopes.ravel()

    found = minimize(
        dual,
        np.zeros(_LEVELS * chances.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1_000, "gtol": 1e-4},
    )
    return BlindMap(levels, found.x.reshape(_LEVELS, -1) * span**2, shares, width * span)


# --- decisions ------------------------------------------------------------------------------------------------------


class BlindRule(NamedTuple):
    """Accept a row where what it gains, less the prices of its probable cells, is above 0."""

    prices: Floats  # (cells,)
    chance: float  # of a row on the margin


def blind_rule(price: Floats, cells: Floats, weight: Floats, sets: Integers, tolerance: float) -> BlindRule:
    """The cheapest rule whose rates differ by at most the tolerance between the groups of each set.

    ``price`` (n,) is what accepting a row loses, ``cells`` (n, cells) the probability of each cell, ``sets`` the set
    that a cell belongs to, within which rates are compared. A linear program with few constraints: their prices are the
    rule's.
    """
    mass = weight @ cells
    rates = csr_array((weight[:, None] * cells / mass).T)
    window = csr_array(np.eye(int(sets.max()) + 1)[sets])
    found = linprog(  # type: ignore[call-overload]  # the stubs know of no sparse matrices
        np.append(weight * price / weight.sum(), np.zeros(window.shape[1])),
        A_ub=vstack([hstack([rates, -window]), hstack([-rates, window])]),
        b_ub=np.repeat([tolerance, 0.0], len(sets)),
        bounds=(0, 1),
        options={"primal_feasibility_tolerance": _EXACT, "dual_feasibility_tolerance": _EXACT},
    )
    if found.status != 0:
        raise RuntimeError(f"the linear program ended with: {found.message}")
    upper, lower = np.split(-found.ineqlin.marginals, 2)
    prices = (upper - lower) * weight.sum() / mass
    on_margin = np.abs(price + cells @ prices) <= _MARGIN
    accepted = found.x[: len(price)][on_margin]
    return BlindRule(prices, float(np.average(accepted, weights=weight[on_margin])) if on_margin.any() else 1.0)


def blind_scores(rule: BlindRule, price: Floats, cells: Floats) -> Floats:
    """What each row gains by being accepted: 1 above the margin, 0 below it, and between them the chance on it."""
    gain = -price - cells @ rule.prices
    found: Floats = np.where(np.abs(gain) <= _MARGIN, rule.chance, (gain > 0).astype(np.float64))
    return found
