"""Convex fair regression (Berk et al. 2017): least squares, and a penalty on pairs across groups."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal, NamedTuple

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

PenaltyForm = Literal["individual", "group"]
LossForm = Literal["pooled", "group_balanced"]

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
    penalty: PenaltyForm = "individual"
    loss: LossForm = "pooled"
    ridge: float = 0.0
    variant: Literal["method", "reference"] = "method"

    def _fit_data(self, data: TrainingData, seed: int) -> Fitted:  # noqa: ARG002
        quadratics = self._quadratics(data)
        return self._solution(quadratics)

    def _quadratics(self, data: TrainingData) -> Quadratics:
        check_known("penalty", self.penalty, ("individual", "group"))
        check_known("loss", self.loss, ("pooled", "group_balanced"))
        loss = self.loss
        if self.variant == "reference":
            loss = "group_balanced"
        return Quadratics.of(data, self.penalty, loss)

    def _solution(self, quadratics: Quadratics) -> Fitted:
        check_number("ridge", self.ridge, low=0)
        check_number("strength", self.strength, low=0)
        intercept, *coefficients = quadratics.minimizer(self.strength, self.ridge)
        return {
            "intercept_": float(intercept),
            "coef_": np.array(coefficients),
        }

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
    def of(cls, data: TrainingData, penalty: PenaltyForm, loss: LossForm) -> Quadratics:
        """The quadratic forms of checked data."""
        ones = np.ones(len(data))
        design = np.column_stack([ones, data.x])
        totals = data.weight.sum()
        if loss == "group_balanced":
            by_group = np.bincount(data.group, data.weight)
            totals = by_group[data.group]
        shares = data.weight / totals
        scale = np.sqrt(shares)
        scaled = design * scale[:, None]
        scaled_target = data.y * scale
        left, values, right = np.linalg.svd(scaled, full_matrices=False)
        precision = np.finfo(np.float64)
        rounding = max(design.shape) * precision.eps
        counts = values > values[0] * rounding
        singular_values = values[counts]
        rows = left.T[counts]
        basis = right[counts].T
        root = penalty_root(data, penalty)
        without_intercept = np.zeros((len(root), 1))
        full_root = np.hstack([without_intercept, root])
        return cls(
            basis=basis,
            loss=np.diag(singular_values),
            target=rows @ scaled_target,
            penalty=full_root @ basis,
        )

    def minimizer(self, strength: float, ridge: float) -> Floats:
        """(intercept, coefficients); of several minimizers the one of least norm."""
        size = len(self.loss)
        identity = np.eye(size)
        shrinking = np.sqrt(ridge) * identity
        penalty = np.sqrt(strength) * self.penalty
        rows = np.vstack([self.loss, penalty, shrinking])
        targets = np.zeros(len(rows))
        targets[:size] = self.target
        solution, *_ = np.linalg.lstsq(rows, targets, rcond=None)
        beta: Floats = self.basis @ solution
        return beta


def penalty_root(data: TrainingData, penalty: PenaltyForm) -> Floats:
    """A matrix K whose |K coef|^2 is the penalty, summed over all pairs of groups."""
    codes = range(len(data.groups))
    pairs = []
    for left, right in combinations(codes, 2):
        moments = pair_moments(data, left, right)
        pairs.append(moments)
    if not any(pair.similarity for pair in pairs):
        warn_user(
            "the targets of different groups are so far apart that no pair is similar: the penalty "
            "is zero; rescale y",
            UserWarning,
        )
    if penalty == "group":
        differences = [pair.difference for pair in pairs]
        return np.stack(differences)
    total = sum(pair.product for pair in pairs)
    values, vectors = np.linalg.eigh(total)
    squares = values.clip(min=0)
    lengths = np.sqrt(squares)
    root: Floats = lengths[:, None] * vectors.T
    return root


class PairMoments(NamedTuple):
    """Means over pairs of rows across two groups, weighted by the similarity D of their targets."""

    product: Floats  # of D (x_i - x_j)(x_i - x_j)^T
    difference: Floats  # of D (x_i - x_j)
    similarity: float  # of D


def pair_moments(data: TrainingData, left: int, right: int) -> PairMoments:
    """The moments of pairs across two groups."""
    # differences do not change; less is lost when the products are subtracted
    x = data.x - data.x.mean(0)
    centered = replace(data, x=x)
    x1, y1, w1 = _rows_of_group(centered, left)
    x0, y0, w0 = _rows_of_group(centered, right)
    _, features = x.shape
    cross = np.zeros((features, features))
    row_sums = np.empty(len(y1))
    column_sums = np.zeros(len(y0))
    step = max(1, _BLOCK // len(y0))
    for start in range(0, len(y1), step):
        block = slice(start, start + step)
        distance = y1[block, None] - y0
        kernel = np.exp(-(distance**2))
        similarity = kernel * w1[block, None] * w0
        row_sums[block] = similarity.sum(1)
        column_sums += similarity.sum(0)
        similar_rows = similarity @ x0
        cross += x1[block].T @ similar_rows
    weighted1 = x1.T * row_sums
    squares1 = weighted1 @ x1
    weighted0 = x0.T * column_sums
    squares0 = weighted0 @ x0
    sum1 = x1.T @ row_sums
    sum0 = x0.T @ column_sums
    similarity_sum = row_sums.sum()
    return PairMoments(
        product=squares1 + squares0 - cross - cross.T,
        difference=sum1 - sum0,
        similarity=float(similarity_sum),
    )


def _rows_of_group(data: TrainingData, code: int) -> tuple[Floats, Floats, Floats]:
    """Features, targets and shares of the weight of a group's rows."""
    in_group = np.flatnonzero(data.group == code)
    rows = data.take(in_group)
    shares = rows.weight / rows.weight.sum()
    return rows.x, rows.y, shares
