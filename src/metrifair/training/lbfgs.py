"""L-BFGS with a preconditioner, and a line search that gets along with kinks."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Value: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""A function of a vector: its value and its gradient."""
Preconditioner: TypeAlias = Callable[[Floats], Floats]
"""A symmetric, positive semidefinite matrix times a vector: about the inverse of the second derivative."""

MOST_ITERATIONS = 2_000
_MEMORY = 30  # steps remembered
_WINDOW = 10  # iterations that must have gained something together
_DECREASE, _CURVATURE = 1e-4, 0.9  # of the line search: sufficient decrease, and slope left over
_MOST_HALVINGS = 30


class Minimum(NamedTuple):
    """Where the search ended."""

    at: Floats
    value: float
    iterations: int
    converged: bool


def minimum(value: Value, start: Floats, preconditioner: Preconditioner, *, tolerance: float) -> Minimum:
    """A local minimum near ``start``, no higher than there; found when ten iterations gain less than ``tolerance``.

    The line search asks for the weak Wolfe conditions by doubling and halving, which ends at the kinks of a piecewise
    smooth function too, and where L-BFGS keeps what a kink looks like in its memory (Lewis and Overton 2013).

    >>> found = minimum(lambda x: (float(abs(x).sum()), np.sign(x)), np.array([3.0, -1.0]), lambda g: g, tolerance=1e-9)
    >>> found.converged, bool(found.value < 1e-8)
    (True, True)
    """
    at, memory = start, _Memory(preconditioner)
    now, gradient = value(at)
    values = [now]
    for iteration in range(MOST_ITERATIONS):
        direction = memory.direction(gradient)
        slope = float(gradient @ direction)
        if not -slope / 2 > tolerance / _WINDOW * max(1.0, abs(now)):  # what a parabola still promises
            return Minimum(at, now, iteration, converged=True)
        found = _line_search(value, at, now, slope, direction)
        if found is None and memory.steps:  # what was remembered misleads: once more without it
            memory.steps.clear()
            direction = memory.direction(gradient)
            found = _line_search(value, at, now, float(gradient @ direction), direction)
        if found is None:  # no way down, but for rounding
            return Minimum(at, now, iteration, converged=True)
        length, now, slopes = found
        memory.add(length * direction, slopes - gradient)
        at, gradient = at + length * direction, slopes
        values.append(now)
        if len(values) > _WINDOW and values[-1 - _WINDOW] - now <= tolerance * max(1.0, abs(now)):
            return Minimum(at, now, iteration + 1, converged=True)
    return Minimum(at, now, MOST_ITERATIONS, converged=False)


def _line_search(
    value: Value, at: Floats, now: float, slope: float, direction: Floats
) -> tuple[float, float, Floats] | None:
    """How far to go, the value there and its gradient; None where nothing lower was found."""
    length, low, high = 1.0, 0.0, inf
    lower: tuple[float, float, Floats] | None = None
    for _ in range(_MOST_HALVINGS):
        there, gradient = value(at + length * direction)
        if not isfinite(there) or there > now + _DECREASE * length * slope:
            high = length
        else:
            if there < now and (lower is None or there < lower[1]):
                lower = length, there, gradient
            if float(gradient @ direction) >= _CURVATURE * slope:
                break
            low = length
        length = 2 * low if high == inf else (low + high) / 2
    return lower


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
