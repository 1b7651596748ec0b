"""Convex fair regression (Berk et al. 2017): least squares, and a penalty on pairs across groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

import numpy as np
from sklearn.base import RegressorMixin

from metrifair.baselines.baseline import (
    Fitted,
    TrainingData,
    WeightedEstimator,
    linear_scores,
)
from metrifair.problem.tables import Table
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_known, check_number
from metrifair.support.user_warnings import warn_user

Penalty = Literal["individual", "group"]
Loss = Literal["pooled", "group_balanced"]

_BLOCK = 1 << 21  # similarities in memory at a time


@dataclass(kw_only=True, eq=False, repr=False)
class BerkRegressor(RegressorMixin, WeightedEstimator):
    """Linear regression with similar predictions for rows of different groups that have similar
    targets.

    ``fit`` minimizes squared error + strength x penalty + ridge x (squared intercept and
    coefficients), in closed form. The penalty weights each pair across groups by the similarity
    ``exp(-(y_i - y_j)^2)`` of its targets. The similarity depends on the scale of y.

    Parameters
    ----------
    strength : float, default=1.0
        Penalty strength, at least 0.
    penalty : {"individual", "group"}, default="individual"
        The mean squared difference of the predictions of a pair. "group" is the square of their
        mean difference. More than two groups: the sum over pairs of groups (not in the paper).
    loss : {"pooled", "group_balanced"}, default="pooled"
        Loss: the mean over all rows, or the sum of the groups' means.
    ridge : float, default=0.0
        L2 regularization: the weight of the squared coefficients, including the intercept.
    variant : {"method", "reference"}, default="method"
        Variant of the method. The reference is the version of the published comparison: the
        group-balanced loss, for any value of ``loss``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the features.
    intercept_ : float
        The intercept.
    groups_ : tuple
        The groups that ``fit`` saw.

    Examples
    --------
    >>> X, y, a = [[0.0], [1.0], [1.0], [3.0], [2.0]], [0.0, 1.0, 1.0, 2.0, 0.0], [0, 0, 1, 1, 1]
    >>> model = BerkRegressor(1.0, penalty="group").fit(X, y, sensitive_features=a)
    >>> round(model.intercept_, 4), model.coef_.round(4)
    (0.315, array([0.3465]))
    """

    strength: float = field(default=1.0, kw_only=False)
    penalty: Penalty = "individual"
    loss: Loss = "pooled"
    ridge: float = 0.0
    variant: Literal["method", "reference"] = "method"

    def _fit_data(self, data: TrainingData, seed: int) -> Fitted:  # noqa: ARG002
        return self._solution(self._quadratics(data))

    def _quadratics(self, data: TrainingData) -> Quadratics:
        check_known("penalty", self.penalty, ("individual", "group"))
        check_known("loss", self.loss, ("pooled", "group_balanced"))
        loss: Loss = "group_balanced" if self.variant == "reference" else self.loss
        return Quadratics.of(data, self.penalty, loss)

    def _solution(self, quadratics: Quadratics) -> Fitted:
        check_number("ridge", self.ridge, low=0)
        check_number("strength", self.strength, low=0)
        beta = quadratics.minimizer(self.strength, self.ridge)
        return {"intercept_": float(beta[0]), "coef_": beta[1:]}

    def predict(self, X: Table) -> Floats:
        """The predictions, on the scale of y.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        return linear_scores(self, X)


@dataclass(frozen=True, eq=False)
class Quadratics:
    """Square roots of the loss and the penalty, on the span of the rows, in which the minimizer
    of least norm lies: forming the matrices would square the condition number.
    """

    basis: Floats  # (1 + features, k)
    loss: Floats  # (k, k)
    target: Floats  # (k,)
    penalty: Floats  # (rows of the root, k)

    @classmethod
    def of(cls, data: TrainingData, penalty: Penalty, loss: Loss) -> Quadratics:
        """The quadratic forms of checked data."""
        design = np.column_stack([np.ones(len(data)), data.x])
        totals = data.weight.sum()
        if loss == "group_balanced":
            totals = np.bincount(data.group, data.weight)[data.group]
        scale = np.sqrt(data.weight / totals)
        left, values, right = np.linalg.svd(design * scale[:, None], full_matrices=False)
        counts = values > values[0] * max(design.shape) * np.finfo(np.float64).eps
        target = left.T[counts] @ (data.y * scale)
        basis = right[counts].T
        penalized = np.pad(penalty_root(data, penalty), ((0, 0), (1, 0))) @ basis
        return cls(basis, np.diag(values[counts]), target, penalized)

    def minimizer(self, strength: float, ridge: float) -> Floats:
        """(intercept, coefficients); of several minimizers the one of least norm."""
        shrinking = np.sqrt(ridge) * np.eye(len(self.loss))
        rows = np.vstack([self.loss, np.sqrt(strength) * self.penalty, shrinking])
        zeros = np.zeros(len(rows) - len(self.loss))
        solution: Floats = np.linalg.lstsq(rows, np.append(self.target, zeros), rcond=None)[0]
        return self.basis @ solution


def penalty_root(data: TrainingData, penalty: Penalty) -> Floats:
    """A matrix K whose |K coef|^2 is the penalty, summed over all pairs of groups."""
    pairs = [
        pair_moments(data, left, right) for left, right in combinations(range(len(data.groups)), 2)
    ]
    if all(similar == 0 for *_, similar in pairs):
        warn_user(
            "the targets of different groups are so far apart that no pair is similar: the penalty "
            "is zero; rescale y",
            UserWarning,
        )
    if penalty == "group":
        return np.stack([v for _, v, _ in pairs])
    values, vectors = np.linalg.eigh(sum(m for m, *_ in pairs))
    root: Floats = np.sqrt(values.clip(min=0))[:, None] * vectors.T
    return root


def pair_moments(data: TrainingData, left: int, right: int) -> tuple[Floats, Floats, float]:
    """Means over pairs across two groups of D (x_i - x_j)(x_i - x_j)^T, of D (x_i - x_j) and of
    D, the similarity.
    """
    # differences do not change; less is lost when the products are subtracted
    x = data.x - data.x.mean(0)
    (x1, y1, w1), (x0, y0, w0) = (
        (x[in_group], data.y[in_group], data.weight[in_group] / data.weight[in_group].sum())
        for in_group in (data.group == left, data.group == right)
    )
    cross = np.zeros((x.shape[1], x.shape[1]))
    row_sums = np.empty(len(y1))
    column_sums = np.zeros(len(y0))
    step = max(1, _BLOCK // len(y0))
    for start in range(0, len(y1), step):
        block = slice(start, start + step)
        similarity = np.exp(-((y1[block, None] - y0) ** 2)) * w1[block, None] * w0
        row_sums[block] = similarity.sum(1)
        column_sums += similarity.sum(0)
        cross += x1[block].T @ (similarity @ x0)
    second = (x1.T * row_sums) @ x1 + (x0.T * column_sums) @ x0 - cross - cross.T
    return second, x1.T @ row_sums - x0.T @ column_sums, float(row_sums.sum())
