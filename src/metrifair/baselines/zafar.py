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
from metrifair.support.arrays import Booleans, Floats
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
        has_intercept = self.fit_intercept and self.variant != "reference"
        scaling = ColumnScale.of(data, intercept=has_intercept)
        loss = Logistic.of(data, scaling, self.ridge)
        bound = float(self.tau or 0.0)
        if self.gamma is not None:
            bound = inf
        fit = self._covariance_fit
        if self._two_groups:
            fit = self._mistreatment_fit
        w0, w, covariance = fit(data, loss, bound)
        loss.warn_of_far_scores(w)
        intercept, coefficients = scaling.unscaled(w)
        reached = covariance(w)
        largest = float(np.abs(reached).max())
        return {
            "intercept_": intercept,
            "coef_": coefficients,
            "unconstrained_covariance_": covariance(w0),
            "covariance_": reached,
            "constraint_violation_": max(0.0, largest - bound),
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

        def covariance(weights: Floats) -> Floats:
            reached = [measure.covariance(weights) for measure in measures]
            return np.array(reached)

        return w0, w, covariance

    def _check(self) -> None:
        criterion = usual_name(self.criterion)
        check_known("criterion", criterion, ("statistical_parity", *MISTREATED))
        check_switches(fit_intercept=self.fit_intercept)
        check_number("ridge", self.ridge, low=0)
        if self.tau is not None:
            check_number("tau", self.tau, low=0)
        if self.gamma is None:
            return
        check_number("gamma", self.gamma, low=0)
        if self.tau is not None:
            raise DataError(
                f"give gamma or tau, not both, got gamma={self.gamma!r} and tau={self.tau!r}"
            )
        if criterion in MISTREATED:
            raise DataError(
                f"gamma is defined for statistical_parity, not for {self.criterion}; give tau "
                "instead"
            )

    def _log_odds(self, X: Table) -> Floats:
        return linear_scores(self, X)

    def _accepted(self, X: Table) -> Booleans:
        return self._log_odds(X) > 0  # as the authors decide


def covariances(data: TrainingData, design: Floats) -> Floats:
    """The vectors c whose c w is the covariance of group and score: one for two groups, else
    one for each group.
    """
    shares = data.weight / data.weight.sum()
    codes = np.arange(len(data.groups))
    if len(codes) == 2:
        codes = codes[1:]
    is_member = np.equal.outer(codes, data.group)
    members = is_member.astype(np.float64)
    means = members @ shares
    centered = members - means[:, None]
    result: Floats = (centered * shares) @ design
    # A vector this short is rounding error, not a covariance.
    sizes = np.abs(centered) * shares
    noise = 1e-14 * sizes @ np.abs(design)
    is_noise = np.abs(result) <= noise
    return np.where(is_noise, 0.0, result)


def within(
    loss: Logistic, c: Floats, w0: Floats, tau: float, start: Floats | None = None
) -> Floats:
    """The least loss with \\|c w\\| at most tau, where w0 is the least of all."""
    reached = float(c @ w0)
    if abs(reached) <= tau:
        return w0
    near = w0 if start is None else start
    aim = np.sign(reached) * tau
    missing = aim - c @ near
    feasible = near + c * missing / (c @ c)
    directions = null_space(c[None])
    return loss.minimize(feasible, directions)


def within_loss(loss: Logistic, c: Floats, w0: Floats, gamma: float) -> Floats:
    """The least \\|c w\\| with a loss of at most 1 + gamma times the least; of several such the
    one of least loss.
    """
    least = loss.value(w0)
    widest = abs(float(c @ w0))
    fairest = within(loss, c, w0, 0.0)
    if gamma == 0:
        return w0
    allowed = (1 + gamma) * least
    if loss.value(fairest) <= allowed:
        return fairest
    allowed_root = sqrt(gamma * least)
    latest = fairest

    def excess(tau: float) -> float:
        """Root of the increase of the loss, less the root of the allowed increase: nearly
        linear in tau.
        """
        nonlocal latest
        if tau == widest:
            return -allowed_root
        latest = within(loss, c, w0, tau, latest)
        increase = loss.value(latest) - least
        return sqrt(max(0.0, increase)) - allowed_root

    precision = 1e-13 * widest
    tau = brentq(excess, 0.0, widest, xtol=precision, rtol=1e-13)
    return within(loss, c, w0, tau, latest)


def within_all(loss: Logistic, c: Floats, w0: Floats, tau: float) -> Floats:
    """The least loss with every \\|c_k w\\| at most tau, as a conic program."""
    reached = np.abs(c @ w0)
    if (reached <= tau).all():
        return w0
    cp = require("cvxpy", extra="baselines", purpose="ZafarClassifier with more than two groups")
    w = cp.Variable(len(w0))
    objective = cp.Minimize(loss.convex(cp, w))
    bounds = [cp.abs(c @ w) <= tau]
    problem = cp.Problem(objective, bounds)
    solve(problem, len(loss.sign))
    return np.asarray(w.value)


@dataclass(frozen=True, eq=False)
class Mistreatment:
    """Covariance of group and wrong side of the boundary among the rows of one label."""

    margins: list[Floats]  # sign x design of each group's rows with that label
    shares: list[Floats]  # of the rows in their cell; sum to one
    balance: float  # share of one group among these rows x that of the other

    @classmethod
    def of(cls, data: TrainingData, loss: Logistic, label: int) -> Mistreatment:
        """The measure for one label; each group must have rows with it."""
        signed = loss.sign[:, None] * loss.design
        margins = []
        shares = []
        totals = []
        for code in (0, 1):
            cell = data.in_cell(label, code)
            weight = loss.weight[cell]
            total = float(weight.sum())
            cell_rows = signed[cell]
            rows, row_weight = merged(cell_rows, weight)
            margins.append(rows)
            shares.append(row_weight / total)
            totals.append(total)
        first, second = totals
        balance = first * second / sum(totals) ** 2
        return cls(margins, shares, balance)

    def mean(self, group: int, w: Floats) -> float:
        """Mean of the margin where it is negative, counting as zero where it is not: concave in
        w.
        """
        margins = self.margins[group] @ w
        negative = np.minimum(0, margins)
        return float(self.shares[group] @ negative)

    def covariance(self, w: Floats) -> float:
        """The quantity that the criterion bounds."""
        earlier = self.mean(0, w)
        later = self.mean(1, w)
        difference = later - earlier
        return self.balance * difference

    def tangent(self, group: int, w: Floats) -> Floats:
        """The vector whose product with v is the tangent at w of the mean: exact at w, nowhere
        below.
        """
        margins = self.margins[group]
        is_wrong = margins @ w < 0
        wrong_shares = self.shares[group] * is_wrong
        return wrong_shares @ margins


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
        distance = np.linalg.norm(moved - w)
        ratio = loss.value(moved) / loss.value(w)
        change = ratio - 1
        is_settled = distance <= CLOSE or abs(change) <= STILL
        w = moved
        if is_settled and slack <= CLOSE:
            return w
        price = min(GROWTH * price, HIGHEST_PRICE)
    largest = max(abs(measure.covariance(w)) for measure in measures)
    excess = max(0.0, largest - bound)
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
    size = loss.design.shape[1]
    w = cp.Variable(size)
    price = cp.Parameter(nonneg=True)
    sides = [(measure, group) for measure in measures for group in (0, 1)]
    slack = cp.Variable(len(sides), nonneg=True)
    tangents = []
    limits = []
    for place, (measure, group) in enumerate(sides):
        tangent = cp.Parameter(size)
        other = 1 - group
        wrong = cp.pos(-measure.margins[other] @ w)
        of_other = measure.shares[other] @ wrong
        covariance = measure.balance * (tangent @ w + of_other)
        tangents.append(tangent)
        limits.append(covariance <= bound + slack[place])
    of_slack = loss.weight.sum() * price * cp.sum(slack)
    objective = cp.Minimize(loss.convex(cp, w) + of_slack)
    problem = cp.Problem(objective, limits)

    def solution(before: Floats, at_price: float) -> tuple[Floats, float]:
        price.value = at_price
        for tangent, (measure, group) in zip(tangents, sides, strict=True):
            tangent.value = measure.tangent(group, before)
        solve(problem, len(loss.sign))
        return w.value, float(slack.value.max())

    return solution


def solve(problem: Any, rows: int) -> None:
    """Solve a convex program in place; RuntimeError with the solver's status if it finds no
    solution.
    """
    cp = require("cvxpy", extra="baselines", purpose="a convex program")
    solver = cp.CLARABEL
    names = ["tol_gap_abs", "tol_gap_rel", "tol_feas"]
    tolerances: tuple[float, ...] = TOLERANCES
    if rows > _MANY:
        solver = cp.SCS
        names = ["eps_abs", "eps_rel"]
        tolerances = TOLERANCES[-1:]
    for tolerance in tolerances:
        options = dict.fromkeys(names, tolerance)
        with warnings.catch_warnings():
            # of inaccuracy, which the status reports too
            warnings.simplefilter("ignore", UserWarning)
            try:
                # or the tolerances of the previous attempt would stay
                problem.solve(solver=solver, warm_start=False, **options)
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
        center = np.zeros(data.features)
        if intercept:
            center = shares @ data.x
        squares = (data.x - center) ** 2
        spread = np.sqrt(shares @ squares)
        rounding = 1e-12 * np.abs(data.x).max(0)
        spread_or_one = np.where(spread > rounding, spread, 1.0)
        return cls(center, spread_or_one, intercept)

    def design(self, x: Floats) -> Floats:
        """Factors of the weights of the scaled problem."""
        scaled = (x - self.center) / self.spread
        if not self.intercept:
            return scaled
        ones = np.ones(len(x))
        return np.column_stack([ones, scaled])

    def unscaled(self, w: Floats) -> tuple[float, Floats]:
        """Intercept and coefficients for the original columns."""
        coef = w[self.intercept :] / self.spread
        if not self.intercept:
            return 0.0, coef
        intercept = w[0] - coef @ self.center
        return float(intercept), coef


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
        sign = 2.0 * data.y - 1
        return cls(design, sign, data.weight, shrinkage)

    def value(self, w: Floats) -> float:
        """The loss at w."""
        scores = self.design @ w
        losses = np.logaddexp(0, -self.sign * scores)
        risk = self.weight @ losses
        penalty = self.shrinkage @ w**2 / 2
        return float(risk + penalty)

    def convex(self, cp: Any, w: Any) -> Any:
        """The loss as an expression of cvxpy; equal rows make one term."""
        margins = self.sign[:, None] * self.design
        signed, weight = merged(margins, self.weight)
        losses = cp.logistic(-(signed @ w))
        risk = weight @ losses
        squares = cp.multiply(self.shrinkage / 2, w**2)
        return risk + cp.sum(squares)

    def derivatives(self, w: Floats) -> tuple[Floats, Floats]:
        """Gradient and Hessian at w."""
        scores = self.design @ w
        wrong = expit(-self.sign * scores)
        columns = self.design.T
        slopes = self.weight * self.sign * wrong
        shrinking = self.shrinkage * w
        gradient = -columns @ slopes + shrinking
        right = 1 - wrong
        curvatures = self.weight * wrong * right
        weighted_columns = columns * curvatures
        hessian = weighted_columns @ self.design
        return gradient, hessian + np.diag(self.shrinkage)

    def minimize(self, start: Floats, directions: Floats | None = None) -> Floats:
        """The minimizer among start + directions u (all of space if there are none), by damped
        Newton steps.
        """
        w = start
        value = self.value(start)
        along = np.eye(len(w)) if directions is None else directions
        for _ in range(_STEPS):
            gradient, hessian = self.derivatives(w)
            curvature = along.T @ hessian @ along
            slope = -along.T @ gradient
            # Least-norm solutions, for columns may depend on each other.
            lengths, *_ = np.linalg.lstsq(curvature, slope, rcond=None)
            step = along @ lengths
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
        _, size = self.design.shape
        start = np.zeros(size)
        w = self.minimize(start)
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
        distances = np.abs(self.design @ w)
        farthest = float(distances.max())
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
            enough = 1e-4 * length * decrease
            if reached <= value - enough + 1e-15 * value:
                return moved, reached
            length /= 2
        return w, value

    def _separates(self, w: Floats, value: float) -> bool:
        least = _SEPARATED * self.weight.sum()
        norm = float(np.linalg.norm(w))
        return value < least or norm > 1 / _SEPARATED


def merged(rows: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """The distinct rows, and the sum of each one's weights."""
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    sums = np.bincount(place.ravel(), weight)
    return distinct, sums.astype(np.float64)
