"""Least-cost decisions at (nearly) equal rates in all groups (Xian et al. 2023), from scores alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog, nnls
from scipy.sparse import coo_array, hstack, kron, vstack
from scipy.sparse import eye_array as identity

from metrifair.methods.inputs import Floats, Integers

_TIE = 1e-9  # probability below which a linear program's assignment counts as none


class Assignment(NamedTuple):
    """Who gets which class with what probability, the rates this leads to, and its expected error."""

    probability: Floats  # (n, classes)
    rates: Floats  # (groups, classes)
    cost: float


@dataclass(frozen=True, eq=False)
class Acceptance:
    """What it costs to accept a share of one group, the best first: a convex, piecewise linear curve."""

    rates: Floats  # share accepted when the first k rows are, k = 0, ..., n
    costs: Floats  # mean error expected then
    favoured: float  # the cheapest share: those with more than one half

    @classmethod
    def of(cls, score: Floats) -> Acceptance:
        """The curve of one group."""
        ordered = np.sort(score)[::-1]
        n = len(score)
        costs = (score.sum() + np.append(0.0, np.cumsum(1 - 2 * ordered))) / n
        return cls(np.arange(n + 1) / n, costs, float((score > 0.5).mean()))

    def cost(self, rate: Floats) -> Floats:
        """Cost of accepting the best ``rate`` of the rows, fractionally at the margin."""
        return np.interp(rate, self.rates, self.costs)


def binary_rates(score: Floats, group: Integers, alpha: float) -> Floats:
    """Each group's rate of acceptance: the cheapest that differ by at most alpha.

    >>> score, group = np.array([0.9, 0.6, 0.3, 0.1, 0.8, 0.7, 0.55, 0.2]), np.repeat([0, 1], 4)
    >>> binary_rates(score, group, 0.1)
    array([0.5, 0.6])
    """
    curves = [Acceptance.of(score[group == code]) for code in range(group.max() + 1)]
    favoured = np.array([curve.favoured for curve in curves])
    if np.ptp(favoured) <= alpha:
        return favoured
    starts = np.concatenate([shifted for curve in curves for shifted in (curve.rates, curve.rates - alpha)])
    starts = np.unique(np.append(starts[(starts > 0) & (starts < 1 - alpha)], [0.0, 1 - alpha]))
    total = sum(
        (group == code).mean() * curve.cost(np.clip(curve.favoured, starts, starts + alpha))
        for code, curve in enumerate(curves)
    )
    start = starts[np.argmin(total)]
    rates: Floats = np.clip(favoured, start, start + alpha)
    return rates


def accepted(score: Floats, rate: float) -> Floats:
    """Probability of acceptance when the best ``rate`` of the rows are: equal scores share what is left for them."""
    _, place, counts = np.unique(-score, return_inverse=True, return_counts=True)
    before = np.cumsum(counts) - counts
    share = (rate * len(score) - before) / counts
    near = np.abs(share - share.round()) < 1e-9  # a rate of k / n accepts k rows whole
    share = np.where(near, share.round(), share)
    found: Floats = share.clip(0, 1)[place]
    return found


def threshold(score: Floats, probability: Floats) -> float:
    """Midpoint of the largest score rejected and the smallest accepted; one that is both is the threshold."""
    inside, outside = score[probability > 0], score[probability < 1]
    if not len(outside):
        return -np.inf
    return float((inside.min() + outside.max()) / 2) if len(inside) else np.inf


def binary_assignment(score: Floats, group: Integers, alpha: float) -> Assignment:
    """The optimal randomised decisions for two classes, in O(n log n)."""
    rates = binary_rates(score, group, alpha)
    probability = np.empty(len(score))
    for code, rate in enumerate(rates):
        own = group == code
        probability[own] = accepted(score[own], rate)
    both = np.stack([1 - probability, probability], axis=1)
    return Assignment(both, np.stack([1 - rates, rates], axis=1), _cost(np.stack([1 - score, score], axis=1), both))


def assignment(scores: Floats, group: Integers, alpha: float) -> Assignment:
    """The optimal randomised decisions for any number of classes, by a linear program over the distinct rows."""
    (n, classes), groups = scores.shape, int(group.max()) + 1
    atoms, place, counts = np.unique(np.column_stack([group, scores]), axis=0, return_inverse=True, return_counts=True)
    place, own, m = place.ravel(), atoms[:, 0].astype(int), len(atoms)
    mass = counts / np.bincount(group)[own]
    mean_by_group = coo_array((mass, (own, np.arange(m))), shape=(groups, m))
    rates = kron(mean_by_group, identity(classes))
    centre = kron(np.ones((groups, 1)), identity(classes))
    free = coo_array((m, classes))
    found = linprog(  # type: ignore[call-overload]  # the stubs know of no sparse matrices
        np.append((counts[:, None] * (1 - atoms[:, 1:])).ravel() / n, np.zeros(classes)),
        A_eq=hstack([kron(identity(m), np.ones((1, classes))), free]),
        b_eq=np.ones(m),
        A_ub=vstack([hstack([rates, -centre]), hstack([-rates, centre])]),
        b_ub=np.full(2 * groups * classes, alpha / 2),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.status != 0:
        raise RuntimeError(f"the linear program ended with: {found.message}")
    solved = found.x[: m * classes].reshape(m, classes)
    solved = np.where(solved > _TIE, solved, 0.0)
    solved /= solved.sum(1, keepdims=True)
    probability = solved[place]
    return Assignment(probability, mean_by_group @ solved, _cost(scores, probability))


def offsets(scores: Floats, probability: Floats) -> Floats:
    """Offsets of the classes such that the largest 2 x score + offset is the class assigned; -inf for unused classes.

    Each row asks that the class it got beat the others; among all offsets that do, those of least squared slack.
    """
    used = np.flatnonzero((probability > 0).any(0))
    pairs = [(i, j) for i in used for j in used if i != j]
    found = np.full(scores.shape[1], -np.inf)
    found[used] = 0.0
    if not pairs:
        return found
    bounds = np.array([(scores[:, j] - scores[:, i])[probability[:, i] > 0].max() for i, j in pairs])
    differences = np.array([(used == j).astype(float) - (used == i).astype(float) for i, j in pairs])
    beyond = np.eye(len(pairs)) - differences @ np.linalg.pinv(differences)
    # Slacks s >= 0 with bounds + s a difference of levels; the small weight picks the shortest of them.
    slack, _ = nnls(np.vstack([beyond, 1e-6 * np.eye(len(pairs))]), np.append(-beyond @ bounds, np.zeros(len(pairs))))
    levels = np.linalg.lstsq(differences, bounds + slack)[0]
    found[used] = 2 * (levels[0] - levels)
    return found


def _cost(scores: Floats, probability: Floats) -> float:
    return float((probability * (1 - scores)).sum() / len(scores))
