"""Logistic loss of a linear score, minimized by Newton's method, on all weights or along some directions only."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from metrifair.baselines.training_data import TrainingData
from metrifair.support.arrays import Floats

_STEPS = 100
_SMALL = 1e-10  # relative decrease of the loss at which the step just taken was the last one
_FAR = 200.0  # log-odds that no loss can tell from infinity
_SEPARATED = 1e-6  # mean loss, or 1 / norm of weights, below which the classes can be told apart exactly


@dataclass(frozen=True, eq=False)
class ColumnScale:
    """Columns brought to one scale, with a column of ones in front where there is an intercept.

    Without an intercept columns are not centered: that would change the problem.
    """

    center: Floats
    spread: Floats
    intercept: bool

    @classmethod
    def of(cls, data: TrainingData, *, intercept: bool) -> ColumnScale:
        """Mean and standard deviation, or zero and root mean square; columns without spread stay as they are."""
        shares = data.weight / data.weight.sum()
        center = shares @ data.x if intercept else np.zeros(data.x.shape[1])
        spread = np.sqrt(shares @ (data.x - center) ** 2)
        rounding = 1e-12 * np.abs(data.x).max(0)
        return cls(center, np.where(spread > rounding, spread, 1.0), intercept)

    def design(self, x: Floats) -> Floats:
        """What weights in the scaled problem are multiplied with."""
        scaled = (x - self.center) / self.spread
        return np.column_stack([np.ones(len(x)), scaled]) if self.intercept else scaled

    def unscaled(self, w: Floats) -> tuple[float, Floats]:
        """Intercept and coefficients for the columns as they were."""
        coef = w[self.intercept :] / self.spread
        return (float(w[0] - coef @ self.center) if self.intercept else 0.0), coef


@dataclass(frozen=True, eq=False)
class Logistic:
    """sum of weight x log(1 + exp(-sign x design w)) + ridge / 2 x |w without the intercept|^2."""

    design: Floats  # (n, d)
    sign: Floats  # -1 or 1
    weight: Floats
    shrinkage: Floats  # (d,) ridge of each weight

    @classmethod
    def of(cls, data: TrainingData, scaling: ColumnScale, ridge: float) -> Logistic:
        """The loss of checked data."""
        design = scaling.design(data.x)
        shrinkage = np.full(design.shape[1], float(ridge))
        shrinkage[: int(scaling.intercept)] = 0.0
        return cls(design, 2.0 * data.y - 1, data.weight, shrinkage)

    def value(self, w: Floats) -> float:
        """The loss at w."""
        losses = np.logaddexp(0, -self.sign * (self.design @ w))
        return float(self.weight @ losses + self.shrinkage @ w**2 / 2)

    def convex(self, cp: Any, w: Any) -> Any:
        """The loss as an expression of cvxpy; equal rows make one term."""
        signed, weight = merged(self.sign[:, None] * self.design, self.weight)
        return weight @ cp.logistic(-(signed @ w)) + cp.sum(cp.multiply(self.shrinkage / 2, w**2))

    def derivatives(self, w: Floats) -> tuple[Floats, Floats]:
        """Gradient and Hessian at w."""
        wrong = expit(-self.sign * (self.design @ w))
        gradient = -self.design.T @ (self.weight * self.sign * wrong) + self.shrinkage * w
        hessian = (self.design.T * (self.weight * wrong * (1 - wrong))) @ self.design + np.diag(self.shrinkage)
        return gradient, hessian

    def minimized(self, start: Floats, directions: Floats | None = None) -> Floats:
        """The minimizer among start + directions u (all of space where there are none), by damped Newton steps."""
        w, value = start, self.value(start)
        for _ in range(_STEPS):
            gradient, hessian = self.derivatives(w)
            # Least-norm solutions, for columns may depend on each other.
            along = np.eye(len(w)) if directions is None else directions
            step = along @ np.linalg.lstsq(along.T @ hessian @ along, -along.T @ gradient, rcond=None)[0]
            decrease = -float(gradient @ step)
            w, value = self._searched(w, step, value, decrease)
            if decrease <= _SMALL * value or self._separates(w, value):
                return w
        warn_unconverged(f"the logistic fit did not converge in {_STEPS} Newton steps; scale X, or give a ridge")
        return w

    def unconstrained(self) -> Floats:
        """The minimizer; warns where the classes can be separated, so that there is none."""
        w = self.minimized(np.zeros(self.design.shape[1]))
        if self._separates(w, self.value(w)):
            warn_unconverged(
                "a linear score separates the classes exactly: the unpenalized fit has no optimum; give a ridge"
            )
        return w

    def warn_of_far_scores(self, w: Floats) -> None:
        """A feature that separates a few rows exactly can carry them anywhere at no loss, and so meet any bound."""
        farthest = float(np.abs(self.design @ w).max())
        if farthest > _FAR:
            warn_unconverged(
                f"some rows get scores as far out as {farthest:.0f}: a feature separates them exactly, and the bound "
                "is met by moving them at no loss; raise ridge, or leave that feature out"
            )

    def _searched(self, w: Floats, step: Floats, value: float, decrease: float) -> tuple[Floats, float]:
        """The longest of the steps 1, 1/2, 1/4, ... that takes the loss down by a fair share of what it promises."""
        length = 1.0
        while length > 1e-12:
            moved = w + length * step
            reached = self.value(moved)
            if reached <= value - 1e-4 * length * decrease + 1e-15 * value:
                return moved, reached
            length /= 2
        return w, value

    def _separates(self, w: Floats, value: float) -> bool:
        return value < _SEPARATED * self.weight.sum() or float(np.linalg.norm(w)) > 1 / _SEPARATED


def warn_unconverged(message: str) -> None:
    """Warn, at the caller of the function that calls this one."""
    warnings.warn(message, ConvergenceWarning, stacklevel=3)


def merged(rows: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """The distinct rows, and the sum of each one's weights."""
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    sums: Floats = np.bincount(place.ravel(), weight).astype(np.float64)
    return distinct, sums
