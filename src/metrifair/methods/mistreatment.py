"""Equal error rates by proxy (Zafar et al. 2017, WWW): a penalty convex-concave procedure over convex programs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from metrifair.checks import require
from metrifair.methods.inputs import Floats, Rows
from metrifair.methods.logistic import Logistic, merged

CRITERIA = {"equal_opportunity": (1,), "predictive_equality": (0,), "equalized_odds": (1, 0)}
"""The labels among which groups are compared."""

FIRST_PRICE, GROWTH, HIGHEST_PRICE = 5.0, 1.2, 1e10
ROUNDS = 50
CLOSE, STILL = 1e-6, 1e-9
TOLERANCES = (1e-10, 1e-8)  # at the first weights, and not only values, are certain; it cannot always be reached
_MANY = 50_000  # rows beyond which a first-order solver takes over


@dataclass(frozen=True, eq=False)
class Mistreatment:
    """Covariance of group and wrong side of the boundary among the rows of one label."""

    margins: tuple[Floats, Floats]  # sign x design of each group's rows with that label
    shares: tuple[Floats, Floats]  # of the rows in their cell; sum to one
    balance: float  # share of one group among these rows x that of the other

    @classmethod
    def of(cls, rows: Rows, loss: Logistic, label: int) -> Mistreatment:
        """The measure for one label; each group must have rows with it."""
        cells = [(rows.y == label) & (rows.group == code) for code in (0, 1)]
        totals = [float(loss.weight[cell].sum()) for cell in cells]
        signed = loss.sign[:, None] * loss.design
        (margins0, weight0), (margins1, weight1) = (merged(signed[cell], loss.weight[cell]) for cell in cells)
        balance = totals[0] * totals[1] / sum(totals) ** 2
        return cls((margins0, margins1), (weight0 / totals[0], weight1 / totals[1]), balance)

    def mean(self, group: int, w: Floats) -> float:
        """Mean of the margin where it is negative, counting as zero where it is not: concave in w."""
        return float(self.shares[group] @ np.minimum(0, self.margins[group] @ w))

    def covariance(self, w: Floats) -> float:
        """What the criterion bounds."""
        return self.balance * (self.mean(1, w) - self.mean(0, w))

    def tangent(self, group: int, w: Floats) -> Floats:
        """The vector whose product with v is the tangent at w of the mean: exact at w, nowhere below."""
        wrong = self.margins[group] @ w < 0
        slope: Floats = (self.shares[group] * wrong) @ self.margins[group]
        return slope


def mistreatment_fit(loss: Logistic, measures: Sequence[Mistreatment], w0: Floats, bound: float) -> Floats:
    """The least loss found with every covariance within the bound, starting from the least loss of all."""
    if all(abs(measure.covariance(w0)) <= bound for measure in measures):
        return w0
    rounds = Rounds.of(loss, measures, bound)
    w, price = w0, FIRST_PRICE
    for _ in range(ROUNDS):
        moved, slack = rounds.next(w, price)
        # A solver may leave weights less certain than the step asked for, but then the loss stands still.
        still = np.linalg.norm(moved - w) <= CLOSE or abs(loss.value(moved) / loss.value(w) - 1) <= STILL
        w = moved
        if still and slack <= CLOSE:
            return w
        price = min(GROWTH * price, HIGHEST_PRICE)
    excess = max(0.0, max(abs(measure.covariance(w)) for measure in measures) - bound)
    warnings.warn(
        f"the convex-concave procedure did not settle in {ROUNDS} rounds; the bound is exceeded by {excess:.3g}",
        ConvergenceWarning,
        stacklevel=2,
    )
    return w


@dataclass(frozen=True, eq=False)
class Rounds:
    """The convex program of one round; only the tangents and the price of slack change between rounds."""

    problem: Any
    w: Any
    slack: Any
    price: Any
    tangents: tuple[tuple[Mistreatment, int, Any], ...]
    rows: int

    @classmethod
    def of(cls, loss: Logistic, measures: Sequence[Mistreatment], bound: float) -> Rounds:
        """min mean loss + price x slack, the concave mean on the larger side replaced by its tangent.

        Written for the sum of losses instead of their mean, which the solver finds easier.
        """
        cp = require("cvxpy", extra="baselines", purpose="ZafarClassifier with this criterion")
        w, price = cp.Variable(loss.design.shape[1]), cp.Parameter(nonneg=True)
        sides = [(measure, group, cp.Parameter(loss.design.shape[1])) for measure in measures for group in (0, 1)]
        slack = cp.Variable(len(sides), nonneg=True)
        limits = [
            measure.balance * (tangent @ w + measure.shares[1 - group] @ cp.pos(-measure.margins[1 - group] @ w))
            <= bound + slack[k]
            for k, (measure, group, tangent) in enumerate(sides)
        ]
        objective = loss.convex(cp, w) + loss.weight.sum() * price * cp.sum(slack)
        return cls(cp.Problem(cp.Minimize(objective), limits), w, slack, price, tuple(sides), len(loss.sign))

    def next(self, w: Floats, price: float) -> tuple[Floats, float]:
        """The program's solution with tangents at w, and its largest slack."""
        self.price.value = price
        for measure, group, tangent in self.tangents:
            tangent.value = measure.tangent(group, w)
        solve(self.problem, self.rows)
        return self.w.value, float(self.slack.value.max())


def solve(problem: Any, rows: int) -> None:
    """Solve a convex program in place; RuntimeError with the solver's word where it finds no solution."""
    cp = require("cvxpy", extra="baselines", purpose="a convex program")
    many = rows > _MANY
    for tolerance in TOLERANCES[-1:] if many else TOLERANCES:
        names = ("eps_abs", "eps_rel") if many else ("tol_gap_abs", "tol_gap_rel", "tol_feas")
        status = _status(problem, cp, solver=cp.SCS if many else cp.CLARABEL, **dict.fromkeys(names, tolerance))
        if status == cp.OPTIMAL:
            return
    if status != cp.OPTIMAL_INACCURATE:
        raise RuntimeError(f"the convex solver found no solution: {status}")
    warnings.warn("the convex solver stopped short of its tolerance", ConvergenceWarning, stacklevel=2)


def _status(problem: Any, cp: Any, **options: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of inaccuracy, which the status says as well
        try:
            problem.solve(warm_start=False, **options)  # or the tolerances of the attempt before would stay
        except cp.SolverError as error:
            return str(error)
    return str(problem.status)
