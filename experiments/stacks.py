"""Baselines of other authors at many seeds and strengths, each seed on rows of its own."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from metrifair.baselines import BerkRegressor, FairKDEClassifier
from metrifair.baselines.baseline import PublishedEstimator
from metrifair.baselines.network import Continued
from metrifair.errors import DataError, Diverged
from metrifair.estimators import FairClassifier
from metrifair.training.models import Model


@dataclass(kw_only=True, eq=False, repr=False)
class FairKDEPath(FairKDEClassifier):
    """Fair KDE whose training begins at the weights of ``before``, as along the strengths of the
    published runs.
    """

    before: FairKDEClassifier | None = None

    def _model(self, network: FairClassifier, features: int) -> Model:
        model = super()._model(network, features)
        if self.before is None:
            return model
        return Continued(model, self.before.predictor_.parameters)


def berk_path(
    estimator: BerkRegressor,
    X: ArrayLike,
    y: ArrayLike,
    sensitive_features: ArrayLike,
    strengths: Sequence[float],
) -> list[BerkRegressor]:
    """Fitted copies at these strengths, which share one pass over the pairs of rows.

    >>> X, y, a = [[0.0], [1.0], [1.0], [3.0], [2.0]], [0.0, 1.0, 1.0, 2.0, 0.0], [0, 0, 1, 1, 1]
    >>> [float(model.coef_[0].round(4)) for model in berk_path(BerkRegressor(), X, y, a, [0, 1, 1e9])]
    [0.4615, 0.2284, 0.0]
    """
    first = clone(estimator)
    quadratics = first._quadratics(first._data(X, y, sensitive_features))
    models = [copy(first).set_params(strength=strength) for strength in strengths]
    for model in models:
        model.__dict__.update(model._solution(quadratics))
    return models


def fit_stack(
    estimator: PublishedEstimator,
    X: ArrayLike,
    y: ArrayLike,
    sensitive_features: ArrayLike,
    *,
    seeds: Sequence[int] = (0,),
    strengths: Sequence[float] | None = None,
    rows: Sequence[ArrayLike] | None = None,
) -> list[Any]:
    """Fitted copies for every seed and, within it, every strength; None where training diverged.

    ``rows`` are the training rows of each seed. Without ``strengths`` all copies have the
    estimator's own strength, if it has one. A ``FairKDEPath`` continues from each strength to the
    next one.
    """
    tables = [np.asarray(table) for table in (X, y, sensitive_features)]
    if rows is None:
        rows = [np.arange(len(tables[0]))] * len(seeds)
    if len(rows) != len(seeds):
        raise DataError(
            f"rows must contain the training rows of each of the {len(seeds)} seeds, got "
            f"{len(rows)}"
        )
    grid = [{}] if strengths is None else [{"strength": strength} for strength in strengths]
    models: list[Any] = []
    for seed, part in zip(seeds, rows, strict=True):
        training = [table[np.asarray(part)] for table in tables]
        template = clone(estimator)
        if hasattr(template, "random_state"):
            template.set_params(random_state=seed)
        before = None
        for options in grid:
            model = clone(template).set_params(**options)
            if isinstance(model, FairKDEPath):
                model.before = before
            fitted = _fitted(model, *training)
            models.append(fitted)
            before = fitted or before
    return models


def _fitted(model: Any, X: Any, y: Any, groups: Any) -> Any:
    """The model after its fit; None if training diverged."""
    try:
        return model.fit(X, y, sensitive_features=groups)
    except Diverged:
        return None
