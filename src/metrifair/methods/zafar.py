"""Logistic regression with a bound on the covariance of group and decision boundary (Zafar et al. 2017)."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import null_space
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.base import BaseEstimator

from metrifair.checks import check_known, check_switches, require
from metrifair.errors import DataError
from metrifair.methods.inputs import (
    Floats,
    Rows,
    TwoClasses,
    check_cells,
    check_number,
    classification_rows,
    features,
)
from metrifair.methods.logistic import ColumnScale, Logistic
from metrifair.methods.mistreatment import CRITERIA, Mistreatment, mistreatment_fit, solve
from metrifair.problem.tables import Table


class ZafarClassifier(TwoClasses, BaseEstimator):
    """Logistic regression whose decision boundary hardly covaries with the group.

    Give ``tau`` or ``gamma``, not both; without either no covariance is left (``tau`` 0). That does not imply equal
    rates of the decisions.

    Parameters
    ----------
    gamma : share of the least possible loss that may be lost: the least covariance with at most 1 + gamma times that
        loss. Statistical parity and two groups only.
    tau : bound on the absolute covariance: the least loss within it.
    criterion : ``"statistical_parity"`` bounds the covariance of group and score, with several groups that of each
        group's indicator. ``"equal_opportunity"``, ``"predictive_equality"`` and ``"equalized_odds"`` bound that of
        group and wrong side of the boundary among positives, negatives, both; two groups, found by a
        convex-concave procedure that may end at a local optimum.
    fit_intercept : whether the score has an intercept.
    ridge : weight of half the squared coefficients of the scaled features; for classes that are separable.
    variant : ``"reference"`` is what the published comparison ran: no intercept, whatever ``fit_intercept`` says.

    Attributes
    ----------
    coef_, intercept_ : the score.
    covariance_ : what is bounded, at the solution: one number per group compared or per error rate.
    unconstrained_covariance_ : the same without any bound; fractions of it make a grid of ``tau``.
    constraint_violation_ : by how much the bound is missed.

    Examples
    --------
    >>> X, y, a = [[-1.0], [0.0], [1.0], [2.0]], [0, 1, 0, 1], [0, 0, 1, 1]
    >>> model = ZafarClassifier(tau=0.1).fit(X, y, sensitive_features=a)
    >>> round(model.intercept_, 4), model.coef_.round(4), model.covariance_.round(4)
    (-0.1, array([0.2]), array([0.1]))
    """

    def __init__(
        self,
        *,
        gamma: float | None = None,
        tau: float | None = None,
        criterion: str = "statistical_parity",
        fit_intercept: bool = True,
        ridge: float = 0.0,
        variant: Literal["method", "reference"] = "method",
    ) -> None:
        self.gamma = gamma
        self.tau = tau
        self.criterion = criterion
        self.fit_intercept = fit_intercept
        self.ridge = ridge
        self.variant = variant

    def fit(self, X: Table, y: Table, *, sensitive_features: Table, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to labels 0 and 1, -1 and 1, or booleans; a row of weight two counts as two rows."""
        _check_parameters(self)
        rows = classification_rows(
            self, X, y, sensitive_features, sample_weight=sample_weight, two_groups=self.criterion in CRITERIA
        )
        scaling = ColumnScale.of(rows, intercept=self.fit_intercept and self.variant != "reference")
        loss = Logistic.of(rows, scaling, self.ridge)
        if self.criterion == "statistical_parity":
            w = self._covariance_fit(rows, loss)
        else:
            w = self._mistreatment_fit(rows, loss)
        loss.warn_of_far_scores(w)
        self.intercept_, self.coef_ = scaling.unscaled(w)
        return self

    def _covariance_fit(self, rows: Rows, loss: Logistic) -> Floats:
        c = covariances(rows, loss.design)
        if self.gamma is not None and len(c) > 1:
            raise DataError(f"gamma is defined for two groups, got {len(rows.groups)}; give tau instead")
        w0 = loss.unconstrained()
        if self.gamma is not None:
            w = within_loss(loss, c[0], w0, self.gamma)
        elif len(c) == 1:
            w = within(loss, c[0], w0, self._bound)
        else:
            w = within_all(loss, c, w0, self._bound)
        self._note(c @ w0, c @ w)
        return w

    def _mistreatment_fit(self, rows: Rows, loss: Logistic) -> Floats:
        labels = CRITERIA[self.criterion]
        check_cells(rows, labels)
        measures = [Mistreatment.of(rows, loss, label) for label in labels]
        w0 = loss.unconstrained()
        w = mistreatment_fit(loss, measures, w0, self._bound)
        self._note(*(np.array([measure.covariance(weights) for measure in measures]) for weights in (w0, w)))
        return w

    @property
    def _bound(self) -> float:
        if self.gamma is not None:
            return inf
        return 0.0 if self.tau is None else float(self.tau)

    def _note(self, unconstrained: Floats, reached: Floats) -> None:
        self.unconstrained_covariance_, self.covariance_ = unconstrained, reached
        self.constraint_violation_ = max(0.0, float(np.abs(reached).max()) - self._bound)

    def decision_function(self, X: Table) -> Floats:
        """The score: log-odds of the later class."""
        return features(self, X) @ self.coef_ + self.intercept_

    def predict_proba(self, X: Table) -> Floats:
        """Probabilities of the two classes, (n, 2)."""
        probability = expit(self.decision_function(X))
        return np.stack([1 - probability, probability], axis=1)

    def predict(self, X: Table) -> NDArray[Any]:
        """The later class where the score is above zero."""
        accepted = self.decision_function(X) > 0
        predicted: NDArray[Any] = self.classes_[accepted.astype(int)]
        return predicted


def _check_parameters(estimator: ZafarClassifier) -> None:
    check_known("criterion", estimator.criterion, ("statistical_parity", *CRITERIA))
    check_known("variant", estimator.variant, ("method", "reference"))
    check_switches(fit_intercept=estimator.fit_intercept)
    check_number("ridge", estimator.ridge, low=0)
    for name, value in (("gamma", estimator.gamma), ("tau", estimator.tau)):
        if value is not None:
            check_number(name, value, low=0)
    if estimator.gamma is None:
        return
    if estimator.tau is not None:
        raise DataError(f"give gamma or tau, not both, got gamma={estimator.gamma!r} and tau={estimator.tau!r}")
    if estimator.criterion in CRITERIA:
        raise DataError(f"gamma is defined for statistical_parity, not for {estimator.criterion}; give tau instead")


def covariances(rows: Rows, design: Floats) -> Floats:
    """The vectors c whose c w is the covariance of group and score: one for two groups, else one for each group."""
    shares = rows.weight / rows.weight.sum()
    codes = [1] if len(rows.groups) == 2 else range(len(rows.groups))
    members = np.stack([rows.group == code for code in codes]).astype(np.float64)
    centred = members - (members @ shares)[:, None]
    found: Floats = (centred * shares) @ design
    # Rounding must not pass for a covariance: a vector this short is zero.
    noise = 1e-14 * (np.abs(centred) * shares) @ np.abs(design)
    return np.where(np.abs(found) <= noise, 0.0, found)


def within(loss: Logistic, c: Floats, w0: Floats, tau: float, start: Floats | None = None) -> Floats:
    """The least loss with \\|c w\\| at most tau, where w0 is the least of all."""
    reached = float(c @ w0)
    if abs(reached) <= tau:
        return w0
    near = w0 if start is None else start
    aim = np.sign(reached) * tau
    feasible = near + c * (aim - c @ near) / (c @ c)
    return loss.minimised(feasible, null_space(c[None]))


def within_loss(loss: Logistic, c: Floats, w0: Floats, gamma: float) -> Floats:
    """The least \\|c w\\| with a loss of at most 1 + gamma times the least; of several such the one of least loss."""
    least, widest = loss.value(w0), abs(float(c @ w0))
    fairest = within(loss, c, w0, 0.0)
    if gamma == 0 or loss.value(fairest) <= (1 + gamma) * least:
        return w0 if gamma == 0 else fairest
    latest = fairest

    def excess(tau: float) -> float:
        """Root of the loss lost, less the root of what may be lost: nearly a line in tau."""
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
    found: Floats = w.value
    return found
