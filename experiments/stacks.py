"""Baselines of other authors at many seeds and strengths, trained at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from metrifair.baselines.stacked import FitGrid, StackedEstimator
from metrifair.errors import DataError
from metrifair.problem.tables import Table


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
    """Fitted copies for every seed and, within it, every strength, trained at once; None where
    training diverged.

    They equal ``fit`` with that strength and ``random_state``. ``rows`` are the training rows of
    each seed. Without ``strengths`` all copies have the estimator's own strength, if it has one.

    >>> from metrifair.baselines import BerkRegressor
    >>> X, y, a = [[0.0], [1.0], [1.0], [3.0], [2.0]], [0.0, 1.0, 1.0, 2.0, 0.0], [0, 0, 1, 1, 1]
    >>> [float(model.coef_[0].round(4)) for model in fit_stack(BerkRegressor(), X, y, a, strengths=[0, 1, 1e9])]
    [0.4615, 0.2284, 0.0]
    """
    template = clone(estimator)
    data = template._data(X, y, sensitive_features)
    if rows is not None and len(rows) != len(seeds):
        raise DataError(
            f"rows must contain the training rows of each of the {len(seeds)} seeds, got "
            f"{len(rows)}"
        )
    # copies: torch takes no reversed views
    own = (
        [np.arange(len(data))] * len(seeds)
        if rows is None
        else [np.array(part, dtype=np.int64) for part in rows]
    )
    values = [getattr(template, "strength", 0.0)] if strengths is None else strengths
    shared = {name: value for name, value in vars(template).items() if name.endswith("_")}
    models: list[Any] = []
    for seed, fits in zip(seeds, template._fits(data, FitGrid(seeds, own, values)), strict=True):
        for strength, fitted in zip(values, fits, strict=True):
            changed = {"random_state": seed, "strength": strength}
            model = clone(template)
            model.set_params(
                **{name: value for name, value in changed.items() if hasattr(model, name)}
            )
            model.__dict__.update(shared | (fitted or {}))
            models.append(None if fitted is None else model)
    return models
