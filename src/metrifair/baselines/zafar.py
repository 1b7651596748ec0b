"""Logistic regression with a bound on the covariance of group and decision boundary (Zafar et al.
2017).

Statistical parity bounds the covariance of group and score (AISTATS 2017); error rates are made
equal by proxy, in a penalty convex-concave procedure over convex programs (WWW 2017).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from metrifair.baselines.baseline import (
    Fitted,
    LogOddsMixin,
    TrainingData,
    WeightedEstimator,
    linear_scores,
)
from metrifair.errors import DataError
from metrifair.problem.criteria import usual_name
from metrifair.problem.tables import Table
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_known, check_number, check_switches, require
from metrifair.support.user_warnings import warn_user

Found: TypeAlias = tuple[Floats, Floats, Callable[[Floats], Floats]]
"""Weights without a bound and within it, and a function that computes the bounded quantity."""

MISTREATED = {"equal_opportunity": (1,), "predictive_equality": (0,), "equalized_odds": (1, 0)}
"""The labels among which the groups' errors are compared."""

FIRST_PRICE = 5.0
GROWTH = 1.2
HIGHEST_PRICE = 1e10
ROUNDS = 50
CLOSE = 1e-6
STILL = 1e-9
# the first makes weights exact, not only values; it is not always attainable
TOLERANCES = (1e-10, 1e-8)
_MANY = 50_000  # rows: with more, a first-order solver is used


@dataclass(kw_only=True, eq=False, repr=False)
class ZafarClassifier(LogOddsMixin, WeightedEstimator):
    """Logistic regression with a bound on the covariance between group and decision boundary.

    Pass ``tau`` or ``gamma``, not both. Without either the covariance is 0 (``tau=0``). That does
    not imply equal selection rates.

    Parameters
    ----------
    gamma : float, default=None
        Share of the least possible loss that may be lost: the least covariance with at most 1 +
        gamma times that loss. Statistical parity and two groups only.
    tau : float, default=None
        Bound on the absolute covariance: the least loss within it.
    criterion : str, default="statistical_parity"
        Fairness criterion. ``"statistical_parity"`` bounds the covariance between group and score;
        with several groups, that of each group's indicator. ``"equal_opportunity"``,
        ``"predictive_equality"`` and ``"equalized_odds"`` bound the covariance between group and
        misclassification among positives, negatives or both. They take two groups, and their
        convex-concave procedure may end at a local optimum.
    fit_intercept : bool, default=True
        Whether the score has an intercept.
    ridge : float, default=0.0
        L2 regularization: the weight of half the squared coefficients of the scaled features, for
        separable classes.
    variant : {"method", "reference"}, default="method"
        Variant of the method. The reference is the version of the published comparison: no
        intercept, for any value of ``fit_intercept``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the score.
    intercept_ : float
        Its intercept.
    covariance_ : ndarray
        The bounded quantity at the solution: one number per group compared or per error rate.
    unconstrained_covariance_ : ndarray
        The same without any bound; fractions of it make a grid of ``tau``.
    constraint_violation_ : float
        By how much the bound is missed.
    classes_, groups_ : ndarray, tuple
        The classes and the groups that ``fit`` saw.

    Examples
    --------
    >>> X, y, a = [[-1.0], [0.0], [1.0], [2.0]], [0, 1, 0, 1], [0, 0, 1, 1]
    >>> model = ZafarClassifier(tau=0.1).fit(X, y, sensitive_features=a)
    >>> round(model.intercept_, 4), model.coef_.round(4), model.covariance_.round(4)
    (-0.1, array([0.2]), array([0.1]))
    """

    gamma: float | None = None
    tau: float | None = None
    criterion: str = "statistical_parity"
    fit_intercept: bool = True
    ridge: float = 0.0
    variant: Literal["method", "reference"] = "method"

    @property
    def _two_groups(self) -> bool:  # type: ignore[override]
        return usual_name(self.criterion) != "statistical_parity"

    def _fit_data(self, data: TrainingData, seed: int) -> Fitted:  # noqa: ARG002
        self._check()
        scaling = ColumnScale.of(data, intercept=self.fit_intercept and self.variant != "reference")
        loss = Logistic.of(data, scaling, self.ridge)
        bound = 0.0 if self.tau is None else float(self.tau)
        if self.gamma is not None:
            bound = inf
        fit = self._mistreatment_fit if self._two_groups else self._covariance_fit
        w0, w, covariance = fit(data, loss, bound)
        loss.warn_of_far_scores(w)
        intercept, coefficients = scaling.unscaled(w)
        return {
            "intercept_": intercept,
            "coef_": coefficients,
            "unconstrained_covariance_": covariance(w0),
            "covariance_": covariance(w),
            "constraint_violation_": max(0.0, float(np.abs(covariance(w)).max()) - bound),
        }

    def _covariance_fit(self, data: TrainingData, loss: Logistic, bound: float) -> Found:
        c = covariances(data, loss.design)
        if self.gamma is not None and len(c) > 1:
            raise DataError(
                f"gamma is defined for two groups, got {len(data.groups)}; give tau instead"
            )
        w0 = loss.unconstrained()
        if self.gamma is not None:
            w = within_loss(loss, c[0], w0, self.gamma)
        elif len(c) == 1:
            w = within(loss, c[0], w0, bound)
        else:
            w = within_all(loss, c, w0, bound)
        return w0, w, lambda weights: c @ weights

    def _mistreatment_fit(self, data: TrainingData, loss: Logistic, bound: float) -> Found:
        labels = MISTREATED[usual_name(self.criterion)]
        data.check_cells(labels)
        measures = [Mistreatment.of(data, loss, label) for label in labels]
        w0 = loss.unconstrained()
        w = mistreatment_fit(loss, measures, w0, bound)
        return (
            w0,
            w,
            lambda weights: np.array([measure.covariance(weights) for measure in measures]),
        )

    def _check(self) -> None:
        check_known("criterion", usual_name(self.criterion), ("statistical_parity", *MISTREATED))
        check_switches(fit_intercept=self.fit_intercept)
        check_number("ridge", self.ridge, low=0)
        for name, value in (("gamma", self.gamma), ("tau", self.tau)):
            if value is not None:
                check_number(name, value, low=0)
        if self.gamma is not None and self.tau is not None:
            raise DataError(
                f"give gamma or tau, not both, got gamma={self.gamma!r} and tau={self.tau!r}"
            )
        if self.gamma is not None and usual_name(self.criterion) in MISTREATED:
            raise DataError(
                f"gamma is defined for statistical_parity, not for {self.criterion}; give tau "
                "instead"
            )

    def _log_odds(self, X: Table) -> Floats:
        return linear_scores(self, X)

    def _accepted(self, X: Table) -> NDArray[np.bool_]:
        return self._log_odds(X) > 0  # as the authors decide


def covariances(data: TrainingData, design: Floats) -> Floats:
    """The vectors c whose c w is the covariance of group and score: one for two groups, else
    one for each group.
    """
    shares = data.weight / data.weight.sum()
    codes = [1] if len(data.groups) == 2 else range(len(data.groups))
    members = np.stack([data.group == code for code in codes]).astype(np.float64)
    centered = members - (members @ shares)[:, None]
    result: Floats = (centered * shares) @ design
    # A vector this short is rounding error, not a covariance.
    noise = 1e-14 * (np.abs(centered) * shares) @ np.abs(design)
    return np.where(np.abs(result) <= noise, 0.0, result)


def within(
    loss: Logistic, c: Floats, w0: Floats, tau: float, start: Floats | None = None
) -> Floats:
    """The least loss with \\|c w\\| at most tau, where w0 is the least of all."""
    reached = float(c @ w0)
    if abs(reached) <= tau:
        return w0
    near = w0 if start is None else start
    aim = np.sign(reached) * tau
    feasible = near + c * (aim - c @ near) / (c @ c)
    return loss.minimize(feasible, null_space(c[None]))


def within_loss(loss: Logistic, c: Floats, w0: Floats, gamma: float) -> Floats:
    """The least \\|c w\\| with a loss of at most 1 + gamma times the least; of several such the
    one of least loss.
    """
    least = loss.value(w0)
    widest = abs(float(c @ w0))
    fairest = within(loss, c, w0, 0.0)
    if gamma == 0 or loss.value(fairest) <= (1 + gamma) * least:
        return w0 if gamma == 0 else fairest
    latest = fairest

    def excess(tau: float) -> float:
        """Root of the increase of the loss, less the root of the allowed increase: nearly
        linear in tau.
        """
        nonlocal latest
        if tau == widest:
            return -sqrt(gamma * least)
        latest = within(loss, c, w0, tau, latest)
        return sqrt(max(0.0, loss.value(latest) - least)) - sqrt(gamma * least)

    tau = brentq(excess, 0.0, widest, xtol=1e-13 * widest, rtol=1e-13)
    return within(loss, c, w0, tau, latest)


def within_all(loss: Logistic, c: Floats, w0: Floats, tau: float) -> Floats:
    """The least loss with every \\|c_k w\\| at most tau, as a conic program."""
    if (np.abs(c @ w0) <= tau).all():
        return w0
    cp = require("cvxpy", extra="baselines", purpose="ZafarClassifier with more than two groups")
    w = cp.Variable(len(w0))
    solve(cp.Problem(cp.Minimize(loss.convex(cp, w)), [cp.abs(c @ w) <= tau]), len(loss.sign))
    return np.asarray(w.value)


@dataclass(frozen=True, eq=False)
class Mistreatment:
    """Covariance of group and wrong side of the boundary among the rows of one label."""

    margins: tuple[Floats, Floats]  # sign x design of each group's rows with that label
    shares: tuple[Floats, Floats]  # of the rows in their cell; sum to one
    balance: float  # share of one group among these rows x that of the other

    @classmethod
    def of(cls, data: TrainingData, loss: Logistic, label: int) -> Mistreatment:
        """The measure for one label; each group must have rows with it."""
        cells = [(data.y == label) & (data.group == code) for code in (0, 1)]
        totals = [float(loss.weight[cell].sum()) for cell in cells]
        signed = loss.sign[:, None] * loss.design
        (margins0, weight0), (margins1, weight1) = (
            merged(signed[cell], loss.weight[cell]) for cell in cells
        )
        balance = totals[0] * totals[1] / sum(totals) ** 2
        return cls((margins0, margins1), (weight0 / totals[0], weight1 / totals[1]), balance)

    def mean(self, group: int, w: Floats) -> float:
        """Mean of the margin where it is negative, counting as zero where it is not: concave in
        w.
        """
        return float(self.shares[group] @ np.minimum(0, self.margins[group] @ w))

    def covariance(self, w: Floats) -> float:
        """The quantity that the criterion bounds."""
        return self.balance * (self.mean(1, w) - self.mean(0, w))

    def tangent(self, group: int, w: Floats) -> Floats:
        """The vector whose product with v is the tangent at w of the mean: exact at w, nowhere
        below.
        """
        wrong = self.margins[group] @ w < 0
        return (self.shares[group] * wrong) @ self.margins[group]


def mistreatment_fit(
    loss: Logistic, measures: Sequence[Mistreatment], w0: Floats, bound: float
) -> Floats:
    """The least loss found with every covariance within the bound, starting from the least loss
    of all.
    """
    if all(abs(measure.covariance(w0)) <= bound for measure in measures):
        return w0
    solution = convex_round(loss, measures, bound)
    w = w0
    price = FIRST_PRICE
    for _ in range(ROUNDS):
        moved, slack = solution(w, price)
        # A solver may return less exact weights than requested, but then the loss is constant.
        is_settled = (
            np.linalg.norm(moved - w) <= CLOSE
            or abs(loss.value(moved) / loss.value(w) - 1) <= STILL
        )
        w = moved
        if is_settled and slack <= CLOSE:
            return w
        price = min(GROWTH * price, HIGHEST_PRICE)
    excess = max(0.0, max(abs(measure.covariance(w)) for measure in measures) - bound)
    warn_user(
        f"the convex-concave procedure did not converge in {ROUNDS} rounds; the bound is exceeded "
        f"by {excess:.3g}",
        ConvergenceWarning,
    )
    return w


def convex_round(
    loss: Logistic, measures: Sequence[Mistreatment], bound: float
) -> Callable[[Floats, float], tuple[Floats, float]]:
    """The convex program of a round, as a function of the weights before it and the price of slack.

    Returns the minimizer of mean loss + price x slack, the concave mean on the larger side replaced
    by its tangent at these weights, and the largest slack. Written for the sum of losses, which the
    solver finds easier.
    """
    cp = require("cvxpy", extra="baselines", purpose="ZafarClassifier with this criterion")
    w = cp.Variable(loss.design.shape[1])
    price = cp.Parameter(nonneg=True)
    sides = [
        (measure, group, cp.Parameter(loss.design.shape[1]))
        for measure in measures
        for group in (0, 1)
    ]
    slack = cp.Variable(len(sides), nonneg=True)
    limits = [
        measure.balance
        * (tangent @ w + measure.shares[1 - group] @ cp.pos(-measure.margins[1 - group] @ w))
        <= bound + slack[k]
        for k, (measure, group, tangent) in enumerate(sides)
    ]
    problem = cp.Problem(
        cp.Minimize(loss.convex(cp, w) + loss.weight.sum() * price * cp.sum(slack)), limits
    )

    def solution(before: Floats, at_price: float) -> tuple[Floats, float]:
        price.value = at_price
        for measure, group, tangent in sides:
            tangent.value = measure.tangent(group, before)
        solve(problem, len(loss.sign))
        return w.value, float(slack.value.max())

    return solution


def solve(problem: Any, rows: int) -> None:
    """Solve a convex program in place; RuntimeError with the solver's status if it finds no
    solution.
    """
    cp = require("cvxpy", extra="baselines", purpose="a convex program")
    many = rows > _MANY
    names = ("eps_abs", "eps_rel") if many else ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    for tolerance in TOLERANCES[-1:] if many else TOLERANCES:
        options = {"solver": cp.SCS if many else cp.CLARABEL, **dict.fromkeys(names, tolerance)}
        with warnings.catch_warnings():
            # of inaccuracy, which the status reports too
            warnings.simplefilter("ignore", UserWarning)
            try:
                # or the tolerances of the previous attempt would stay
                problem.solve(warm_start=False, **options)
                status = str(problem.status)
            except cp.SolverError as error:
                status = str(error)
        if status == cp.OPTIMAL:
            return
    if status != cp.OPTIMAL_INACCURATE:
        raise RuntimeError(f"the convex solver found no solution: {status}")
    warn_user("the convex solver stopped short of its tolerance", ConvergenceWarning)


_STEPS = 100
_SMALL = 1e-10  # relative decrease of the loss at which the search stops
_FAR = 200.0  # log-odds that count as infinite
_SEPARATED = 1e-6  # mean loss, or 1 / norm of weights, below which the classes are separable


@dataclass(frozen=True, eq=False)
class ColumnScale:
    """Standardized columns, with a column of ones in front if there is an intercept.

    Without an intercept columns are not centered: that would change the problem.
    """

    center: Floats
    spread: Floats
    intercept: bool

    @classmethod
    def of(cls, data: TrainingData, *, intercept: bool) -> ColumnScale:
        """Mean and standard deviation, or zero and root mean square; columns without spread
        stay as they are.
        """
        shares = data.weight / data.weight.sum()
        center = shares @ data.x if intercept else np.zeros(data.x.shape[1])
        spread = np.sqrt(shares @ (data.x - center) ** 2)
        rounding = 1e-12 * np.abs(data.x).max(0)
        return cls(center, np.where(spread > rounding, spread, 1.0), intercept)

    def design(self, x: Floats) -> Floats:
        """Factors of the weights of the scaled problem."""
        scaled = (x - self.center) / self.spread
        return np.column_stack([np.ones(len(x)), scaled]) if self.intercept else scaled

    def unscaled(self, w: Floats) -> tuple[float, Floats]:
        """Intercept and coefficients for the original columns."""
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
        hessian = (self.design.T * (self.weight * wrong * (1 - wrong))) @ self.design + np.diag(
            self.shrinkage
        )
        return gradient, hessian

    def minimize(self, start: Floats, directions: Floats | None = None) -> Floats:
        """The minimizer among start + directions u (all of space if there are none), by damped
        Newton steps.
        """
        w = start
        value = self.value(start)
        for _ in range(_STEPS):
            gradient, hessian = self.derivatives(w)
            # Least-norm solutions, for columns may depend on each other.
            along = np.eye(len(w)) if directions is None else directions
            step = (
                along
                @ np.linalg.lstsq(along.T @ hessian @ along, -along.T @ gradient, rcond=None)[0]
            )
            decrease = -float(gradient @ step)
            w, value = self._search_step(w, step, value, decrease)
            if decrease <= _SMALL * value or self._separates(w, value):
                return w
        warn_user(
            f"the logistic fit did not converge in {_STEPS} Newton steps; scale X, or give a ridge",
            ConvergenceWarning,
        )
        return w

    def unconstrained(self) -> Floats:
        """The minimizer; warns if the classes can be separated, so that there is none."""
        w = self.minimize(np.zeros(self.design.shape[1]))
        if self._separates(w, self.value(w)):
            warn_user(
                "a linear score separates the classes exactly: the unpenalized fit has no optimum; "
                "give a ridge",
                ConvergenceWarning,
            )
        return w

    def warn_of_far_scores(self, w: Floats) -> None:
        """Warn of features that separate a few rows: they can change scores without loss, and
        so meet any bound.
        """
        farthest = float(np.abs(self.design @ w).max())
        if farthest > _FAR:
            warn_user(
                f"some rows get scores as far out as {farthest:.0f}: a feature separates them "
                "exactly, and the bound "
                "is met by moving them at no loss; raise ridge, or leave that feature out",
                ConvergenceWarning,
            )

    def _search_step(
        self, w: Floats, step: Floats, value: float, decrease: float
    ) -> tuple[Floats, float]:
        """The longest of the steps 1, 1/2, 1/4, ...

        that lowers the loss by a fair share of the predicted decrease.
        """
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


def merged(rows: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """The distinct rows, and the sum of each one's weights."""
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    sums: Floats = np.bincount(place.ravel(), weight).astype(np.float64)
    return distinct, sums
