"""L-BFGS with a preconditioner, and a line search that gets along with kinks."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import nnls

from metrifair.support.arrays import Floats

Value: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""A function of a vector: its value and its gradient."""
Preconditioner: TypeAlias = Callable[[Floats], Floats]
"""A symmetric, positive semidefinite matrix times a vector: about the inverse of the second derivative."""

MOST_ITERATIONS = 2_000
_MEMORY = 30  # steps remembered
_WINDOW = 10  # iterations that must have gained something together, and after which curvature is looked at anew
_DECREASE, _CURVATURE = 1e-4, 0.9  # of the line search: sufficient decrease, and slope left over
_LONGEST, _NARROW = 1e12, 1e-3  # of the line search: when to give up doubling, and halving
_MOST_SIDES = 20  # of a kink, that are looked at
_HEAVY = 1e3


class Minimum(NamedTuple):
    """Where the search ended."""

    at: Floats
    value: float
    iterations: int
    converged: bool


def minimum(
    value: Value,
    start: Floats,
    preconditioner: Preconditioner,
    *,
    tolerance: float,
    renewed: Callable[[Floats], Preconditioner] | None = None,
) -> Minimum:
    """A local minimum near ``start``, no higher than there; found when ten iterations gain less than ``tolerance``.

    The line search asks for the weak Wolfe conditions by doubling and halving, which ends at the kinks of a piecewise
    smooth function too, and where L-BFGS keeps what a kink looks like in its memory (Lewis and Overton 2013).
    ``renewed`` gives the preconditioner of where the search stands, and is asked for it every ten iterations.

    >>> found = minimum(lambda x: (float(abs(x).sum()), np.sign(x)), np.array([3.0, -1.0]), lambda g: g, tolerance=1e-9)
    >>> found.converged, bool(found.value < 1e-8)
    (True, True)
    """
    at, memory = start, _Memory(preconditioner)
    now, gradient = value(at)
    values = [now]
    for iteration in range(MOST_ITERATIONS):
        enough = tolerance / _WINDOW * max(1.0, abs(now))
        if renewed is not None and iteration and iteration % _WINDOW == 0:
            memory.preconditioner = renewed(at)
        direction = memory.direction(gradient)
        slope = float(gradient @ direction)
        if not -slope / 2 > enough:  # what a parabola still promises
            return Minimum(at, now, iteration, converged=True)
        step = _line_search(value, at, direction, now=now, slope=slope, enough=enough)
        if not step.length:
            direction, step = _off_the_kink(
                value, at, [gradient, step.gradient], memory.preconditioner, now=now, enough=enough
            )
        if not step.length:  # no way down, but for rounding
            return Minimum(at, now, iteration, converged=True)
        memory.add(step.length * direction, step.gradient - gradient)
        at, now, gradient = at + step.length * direction, step.value, step.gradient
        values.append(now)
        if len(values) > _WINDOW and values[-1 - _WINDOW] - now <= tolerance * max(1.0, abs(now)):
            return Minimum(at, now, iteration + 1, converged=True)
    return Minimum(at, now, MOST_ITERATIONS, converged=False)


class _Step(NamedTuple):
    """How far to go, and what is found there; length 0: nowhere, and the gradient is one from close by."""

    length: float
    value: float
    gradient: Floats


def _line_search(value: Value, at: Floats, direction: Floats, *, now: float, slope: float, enough: float) -> _Step:
    """Doubling and halving, until nothing worth it can be gained."""
    length, low, high = 1.0, 0.0, inf
    best = nearest = _Step(0.0, now, direction)
    while high * -slope > enough and length < _LONGEST:
        there, gradient = value(at + length * direction)
        if not isfinite(there) or there > now + _DECREASE * length * slope:
            high = length
            nearest = _Step(0.0, now, gradient) if isfinite(there) else nearest
        else:
            if there < best.value:
                best = _Step(length, there, gradient)
            if float(gradient @ direction) >= _CURVATURE * slope:
                break
            low = length
        length = 2 * low if high == inf else (low + high) / 2
        if low and high - low < _NARROW * high:
            break
    return best if best.length else nearest


def _off_the_kink(
    value: Value, at: Floats, sides: list[Floats], preconditioner: Preconditioner, *, now: float, enough: float
) -> tuple[Floats, _Step]:
    """A way down from where gradients differ from side to side: against the shortest of their mixtures.

    Each direction that fails shows the gradient of one more side; when the shortest mixture is 0, there is no way down.
    """
    direction, step = sides[0], _Step(0.0, now, sides[0])
    for _ in range(_MOST_SIDES):
        mixture = _shortest_mixture(np.stack(sides), preconditioner)
        direction = -preconditioner(mixture)
        slope = float(mixture @ direction)
        if not -slope / 2 > enough:
            break
        step = _line_search(value, at, direction, now=now, slope=slope, enough=enough)
        if step.length:
            break
        sides = [*sides, step.gradient]
    return direction, step


def _shortest_mixture(sides: Floats, preconditioner: Preconditioner) -> Floats:
    """Of all weighted means of these vectors the one closest to 0, in the preconditioner's metric."""
    products = sides @ np.stack([preconditioner(side) for side in sides]).T
    size = float(np.trace(products)) / len(products)
    sizes, axes = np.linalg.eigh(products / size)
    root = (axes * np.sqrt(np.clip(sizes, 0.0, None))).T
    # Shares from 0 upwards of which the last equation, a heavy one, asks that they sum to 1.
    shares, _ = nnls(np.vstack([root, np.full(len(sides), _HEAVY)]), np.append(np.zeros(len(sides)), _HEAVY))
    mixture: Floats = shares @ sides / shares.sum()
    return mixture


class _Memory:
    """The last steps and what the gradient did along them."""

    def __init__(self, preconditioner: Preconditioner) -> None:
        self.preconditioner = preconditioner
        self.steps: list[tuple[Floats, Floats]] = []

    def add(self, step: Floats, change: Floats) -> None:
        """Remember a step, unless the function bends the wrong way along it."""
        if float(step @ change) > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self.steps = [*self.steps, (step, change)][-_MEMORY:]

    def direction(self, gradient: Floats) -> Floats:
        """Down the gradient, in the metric that the steps suggest (the two-loop recursion)."""
        rest, shares = gradient.copy(), []
        for step, change in reversed(self.steps):
            share = float(step @ rest) / float(step @ change)
            shares.append(share)
            rest -= share * change
        found = self.preconditioner(rest)
        if self.steps:
            step, change = self.steps[-1]
            found *= float(step @ change) / float(change @ self.preconditioner(change))
        for (step, change), share in zip(self.steps, reversed(shares), strict=True):
            found += (share - float(change @ found) / float(step @ change)) * step
        return -found
