"""Estimators that fit several seeds and strengths at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from metrifair.baselines.training_data import TrainingData, training_data
from metrifair.errors import DataError, Diverged
from metrifair.problem.tables import Table
from metrifair.support.arrays import Integers
from metrifair.support.checks import check_known, seed_of

Fitted = dict[str, Any] | None
"""The attributes of a fitted estimator; None where training diverged."""

DIVERGED = "training diverged; lower learning_rate (now {}), or check the scale of X"


class FitGrid(NamedTuple):
    """The fits of a stack: every strength of every seed, on the seed's own rows of the data."""

    seeds: Sequence[int]
    rows: Sequence[Integers]
    strengths: Sequence[float]


class StackedEstimator(BaseEstimator):
    """An estimator that fits several seeds, and strengths where it has one, as one stack of models."""

    _two_groups = False
    _two_classes = True
    classes_: NDArray[Any]

    def fit(self, X: Table, y: Table, *, sensitive_features: Table) -> Self:
        """Fit on these samples, from scratch.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as numbers.
        y : array-like of shape (n_samples,)
            Labels, or a regression target. A method for two classes takes 0 and 1, -1 and 1, or booleans.
        sensitive_features : array-like of shape (n_samples,)
            The group of each sample, in one column without missing values.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sensitive_features)

    @abstractmethod
    def _fits(self, data: TrainingData, grid: FitGrid) -> list[list[Fitted]]:
        """The fitted attributes of each seed and, within it, each strength."""

    def _data(self, X: Table, y: Table, groups: Table, weight: ArrayLike | None = None) -> TrainingData:
        if hasattr(self, "variant"):
            check_known("variant", self.variant, ("method", "reference"))
        return training_data(
            self, X, y, groups, sample_weight=weight, two_groups=self._two_groups, two_classes=self._two_classes
        )

    def _fit(self, X: Table, y: Table, groups: Table, weight: ArrayLike | None = None) -> Self:
        for name in ("predictor_", "estimator_", "coef_"):  # a fit that fails leaves no model of other data behind
            self.__dict__.pop(name, None)
        data = self._data(X, y, groups, weight)
        strength, seed = getattr(self, "strength", 0.0), seed_of(getattr(self, "random_state", 0))
        ((fitted,),) = self._fits(data, FitGrid([seed], [np.arange(len(data))], [strength]))
        if fitted is None:
            raise Diverged(DIVERGED.format(self.learning_rate))
        self.__dict__.update(fitted)
        return self


class WeightedEstimator(StackedEstimator):
    """The same with weights of the samples."""

    def fit(self, X: Table, y: Table, *, sensitive_features: Table, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on these samples, from scratch.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as numbers.
        y : array-like of shape (n_samples,)
            Labels, or a regression target. A method for two classes takes 0 and 1, -1 and 1, or booleans.
        sensitive_features : array-like of shape (n_samples,)
            The group of each sample, in one column without missing values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample. A sample of weight two counts as two samples. Weights of the method itself multiply
            it.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sensitive_features, sample_weight)


def fit_stack(
    estimator: StackedEstimator,
    X: Table,
    y: Table,
    sensitive_features: Table,
    *,
    seeds: Sequence[int] = (0,),
    strengths: Sequence[float] | None = None,
    rows: Sequence[ArrayLike] | None = None,
) -> list[Any]:
    """Fitted copies for every seed and, within it, every strength, trained at once; None where training diverged.

    They equal ``fit`` with that strength and ``random_state``. ``rows`` are the training rows of each seed. Without
    ``strengths`` all copies have the estimator's own strength, if it has one.

    >>> from metrifair.baselines import BerkRegressor
    >>> X, y, a = [[0.0], [1.0], [1.0], [3.0], [2.0]], [0.0, 1.0, 1.0, 2.0, 0.0], [0, 0, 1, 1, 1]
    >>> [float(model.coef_[0].round(4)) for model in fit_stack(BerkRegressor(), X, y, a, strengths=[0, 1, 1e9])]
    [0.4615, 0.2284, 0.0]
    """
    template = clone(estimator)
    data = template._data(X, y, sensitive_features)
    if rows is not None and len(rows) != len(seeds):
        raise DataError(f"rows must hold the training rows of each of the {len(seeds)} seeds, got {len(rows)}")
    # copies: torch takes no reversed views
    own = [np.arange(len(data))] * len(seeds) if rows is None else [np.array(part, dtype=np.int64) for part in rows]
    values = [getattr(template, "strength", 0.0)] if strengths is None else strengths
    shared = {name: value for name, value in vars(template).items() if name.endswith("_")}
    models: list[Any] = []
    for seed, fits in zip(seeds, template._fits(data, FitGrid(seeds, own, values)), strict=True):
        for strength, fitted in zip(values, fits, strict=True):
            changed = {"random_state": seed, "strength": strength}
            model = clone(template)
            model.set_params(**{name: value for name, value in changed.items() if hasattr(model, name)})
            model.__dict__.update(shared | (fitted or {}))
            models.append(None if fitted is None else model)
    return models
