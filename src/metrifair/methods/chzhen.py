"""Fair regression by moving each group's predictions to their common barycentre (Chzhen et al. 2020)."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state

from metrifair.checks import check_switches
from metrifair.errors import DataError, TooFewSamples
from metrifair.estimators import FairRegressor
from metrifair.methods.inputs import Floats, Integers, check_number
from metrifair.methods.wrapping import asked, checked_groups, fitted_base, with_base_tags
from metrifair.problem.tables import Table


class ChzhenPostprocessor(RegressorMixin, BaseEstimator):
    """A regressor's predictions mapped so that they are distributed alike in all groups.

    A prediction is replaced by the mean, over groups weighted by size, of the predictions that hold its rank there: the
    best predictor, in squared error, with statistical parity. New rows need their groups.

    Parameters
    ----------
    estimator : a regressor; None is our network, ``FairRegressor(0)``.
    t : how far to go from the estimator's predictions (0) to the fair ones (1). Between lies an extension of the
        method: unfairness, as Wasserstein distance, shrinks in proportion to 1 - t.
    sigma : predictions are ranked after adding a draw between -sigma and sigma, so that equal ones are told apart.
    split : rank with one half of each group's rows and take values from the other, for guarantees without assumptions.
    prefit : the estimator is fitted already; ``fit`` then needs no targets.
    holdout : share of the rows that the estimator does not see and the map is fitted on; 0: both see all.
    random_state : seed of the default network, of the rows held out, of the halves and of the draws.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> y, a = np.array([1.0, 2.0, 3.0, 4.0, 3.0, 4.0, 5.0, 6.0]), np.repeat([0, 1], 4)
    >>> model = ChzhenPostprocessor(LinearRegression()).fit(y[:, None], y, sensitive_features=a)
    >>> model.predict(y[:, None], sensitive_features=a).round(6)
    array([2., 3., 4., 5., 2., 3., 4., 5.])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        t: float = 1.0,
        sigma: float = 0.0,
        split: bool = False,
        prefit: bool = False,
        holdout: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.t = t
        self.sigma = sigma
        self.split = split
        self.prefit = prefit
        self.holdout = holdout
        self.random_state = random_state

    def fit(self, X: Table, y: Table | None = None, *, sensitive_features: Table) -> Self:
        """Fit the estimator, unless it is fitted already, and then the map of its predictions."""
        check_number("t", self.t, low=0, high=1)
        check_number("sigma", self.sigma, low=0)
        check_switches(split=self.split)
        default = partial(FairRegressor, 0.0, random_state=self.random_state)
        base, rows, their_features, group = fitted_base(self, default, X, y, sensitive_features)
        generator = check_random_state(self.random_state)
        values = _jittered(_predicted(base, rows, their_features), self.sigma, generator)
        members = [generator.permutation(values[group == code]) for code in range(len(self.groups_))]
        if self.split and min(map(len, members)) < 2:
            raise TooFewSamples("split=True needs two rows of each group to calibrate on")
        cut = [len(own) // 2 if self.split else 0 for own in members]
        self.ranked_ = [np.sort(own[:half] if self.split else own) for own, half in zip(members, cut, strict=True)]
        self.valued_ = [np.sort(own[half:]) for own, half in zip(members, cut, strict=True)]
        self.shares_ = np.bincount(group) / len(group)
        self.base_ = base
        return self

    def predict(self, X: Table, *, sensitive_features: Table) -> Floats:
        """Predictions, on the scale of y, which depend on the group of each row."""
        group = checked_groups(self, X, sensitive_features)
        plain = _predicted(self.base_, X, sensitive_features)
        jittered = _jittered(plain, self.sigma, check_random_state(self.random_state))
        fair = np.empty(len(plain))
        for code, ranked in enumerate(self.ranked_):
            own = group == code
            fair[own] = barycentre(jittered[own], ranked, self.valued_, self.shares_)
        return (1 - self.t) * plain + self.t * fair

    def score(
        self, X: Table, y: Table, *, sensitive_features: Table = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """R² of the predictions, for which the groups are needed.

        A search by cross-validation hands them on where metadata routing is enabled and
        ``set_score_request(sensitive_features=True)`` has asked for them.
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        return with_base_tags(super().__sklearn_tags__(), self.estimator)


def barycentre(values: Floats, ranked: Floats, valued: list[Floats], shares: Floats) -> Floats:
    """The mean, over groups, of the values that hold the ranks which ``values`` have among ``ranked`` (all sorted).

    >>> barycentre(np.array([2.5]), np.arange(1.0, 5), [np.arange(1.0, 5), np.array([10.0, 20.0])], [2 / 3, 1 / 3])
    array([4.66666667])
    """
    # A model may predict a row differently in the last digits when other rows are predicted along with it.
    rounding = 1e-9 * np.abs(ranked).max()
    rank: Integers = np.searchsorted(ranked, values + rounding, side="right").clip(min=1)
    # Order statistic ceil(rank / m x m'), in integers: in floating point 7 / 25 x 25 is more than 7.
    found: Floats = sum(
        share * own[-(-rank * len(own) // len(ranked)) - 1] for share, own in zip(shares, valued, strict=True)
    )
    return found


def _predicted(base: Any, X: Table, sensitive_features: Table) -> Floats:
    values = asked(base.predict, X, sensitive_features).astype(np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise DataError("the estimator must predict one finite number for each row")
    return values


def _jittered(values: Floats, sigma: float, generator: Any) -> Floats:
    jittered: Floats = values + generator.uniform(-sigma, sigma, len(values))
    return jittered
