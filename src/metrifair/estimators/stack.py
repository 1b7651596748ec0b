"""All strengths and seeds of an estimator, fitted at once."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike
from sklearn.base import clone

from metrifair.estimators.classifier import FairClassifier
from metrifair.estimators.estimator import trained_stack
from metrifair.estimators.regressor import FairRegressor
from metrifair.problem.tables import Table

Estimator = FairClassifier | FairRegressor
BY_NAME: dict[str, type[Estimator]] = {"FairClassifier": FairClassifier, "FairRegressor": FairRegressor}


def fit_stack(
    estimator: Estimator,
    X: Table,
    y: Table,
    *,
    strengths: Sequence[float],
    seeds: Sequence[int],
    sensitive_features: Table | None = None,
    control_features: Table | None = None,
    sample_weight: ArrayLike | None = None,
) -> list[Estimator | None]:
    """Fitted copies of the estimator for every seed and, within it, every strength; None where training diverged.

    They equal ``fit`` with that strength and ``random_state``, but are trained all at once.
    """
    template = clone(estimator)
    data = template._training_data(X, y, sensitive_features, control_features, sample_weight, strengths=strengths)
    fits = iter(trained_stack(template, data, strengths=strengths, seeds=seeds))
    models: list[Estimator | None] = []
    for seed in seeds:
        for strength in strengths:
            fitted = next(fits)
            if fitted is None:
                models.append(None)
                continue
            model = clone(template).set_params(strength=strength, random_state=seed)
            model.__dict__.update({name: value for name, value in vars(template).items() if name.endswith("_")})
            model.__dict__.update(fitted)
            models.append(model)
    return models
