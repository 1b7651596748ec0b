"""Many fitted estimators at once: every seed and every strength, by steps or by the solver."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from metrifair.estimators.settings import (
    Trainable,
    device_of,
    is_solved,
    model_for,
    objective_for,
    schedule_for,
    trainable,
)
from metrifair.problem.cells import Samples
from metrifair.problem.tables import Table
from metrifair.training import train
from metrifair.training.lbfgs import MOST_ITERATIONS, Minimum
from metrifair.training.models import Moments, Network
from metrifair.training.solver import solved

if TYPE_CHECKING:
    from metrifair.estimators.estimator import FairEstimator, FitData

Estimator = TypeVar("Estimator", bound="FairEstimator")

_ASIDE = 0.1  # of the rows, where training is stopped early


def trained_stack(
    estimator: Any, data: FitData, *, strengths: Sequence[float], seeds: Sequence[int]
) -> list[dict[str, Any] | None]:
    """Fitted attributes for every seed and, within it, every strength, trained at once; None where it diverged."""
    scheme, samples = data.problem.scheme, data.samples()
    model, schedule = model_for(estimator, data.x.shape[1], data.outputs), schedule_for(estimator, len(samples))
    found = trainable(estimator, data.problem) if any(strengths) else Trainable(())
    objective = objective_for(estimator, scheme, data.task, found.comparisons, class_weight=data.class_weight)
    if isinstance(model, Network) and is_solved(estimator, *data.x.shape):
        trained, ends, certain = solved(
            samples,
            model,
            objective,
            strengths=strengths,
            weight_decay=estimator.weight_decay,
            standardize=estimator.standardize,
        )
        names = getattr(estimator, "feature_names_in_", [f"column {place} of X" for place in range(data.x.shape[1])])
        _warn_of_solutions(strengths, ends, [str(names[place]) for place in certain])
        places, own = [0] * len(seeds), [samples] * len(seeds)  # the same for all
    else:
        share = _ASIDE if estimator.early_stopping is True else float(estimator.early_stopping)
        parts = [_parts(samples, share, seed, classes=bool(scheme.classes)) for seed in seeds] if share else []
        trained = train(
            samples,
            model,
            objective,
            strengths=strengths,
            seeds=seeds,
            schedule=schedule,
            rows=[rows for rows, _ in parts] or None,
            validation=[aside for _, aside in parts] or None,
            standardize=estimator.standardize,
            device=device_of(estimator.device),
            verbose=estimator.verbose,
        )
        places, own = list(range(len(seeds))), [samples.take(rows) for rows, _ in parts] or [samples] * len(seeds)
    moments = {id(rows): Moments.of_samples(rows) if estimator.standardize else None for rows in own}
    return [
        None
        if bool(trained.failed[place, k])
        else {
            "scheme_": scheme,
            "left_out_": found.left_out,
            "moments_": moments[id(rows)],
            "predictor_": trained.predictor(place, k),
            "n_iter_": int(trained.epochs[place, k]),
        }
        for place, rows in zip(places, own, strict=True)
        for k in range(len(strengths))
    ]


def _parts(samples: Samples, share: float, seed: int, *, classes: bool) -> tuple[Tensor, Tensor]:
    """Rows to train on, and rows to judge by: this share of each cell (and class), two of each if it has six."""
    kind = samples.cell * (1 + int(samples.y.max())) + samples.y.long() if classes else samples.cell
    generator, aside = torch.Generator().manual_seed(seed), torch.zeros(len(samples), dtype=torch.bool)
    for one in kind.unique():
        own = torch.nonzero(kind == one)[:, 0]
        count = max(round(share * len(own)), min(2, len(own) // 3))
        aside[own[torch.randperm(len(own), generator=generator)[:count]]] = True
    return torch.nonzero(~aside)[:, 0], torch.nonzero(aside)[:, 0]


def _warn_of_solutions(strengths: Sequence[float], ends: Sequence[Minimum], certain: Sequence[str]) -> None:
    """Of strengths whose search was not over, and of features whose weights have no end."""
    unfinished = [f"{strength:g}" for strength, end in zip(strengths, ends, strict=True) if not end.converged]
    if unfinished:
        warnings.warn(
            f"the solver had not converged after {MOST_ITERATIONS} iterations at strength {', '.join(unfinished)}; "
            "scale X (standardize=True), or add some weight_decay",
            ConvergenceWarning,
            stacklevel=4,
        )
    if certain:
        more = f" and {len(certain) - 5} others" if len(certain) > 5 else ""
        warnings.warn(
            f"the labels of some rows follow from {', '.join(certain[:5])}{more} without exception, so their weights "
            "grow without end and stand where the search stopped; add some weight_decay, or leave them out",
            ConvergenceWarning,
            stacklevel=4,
        )


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
    fits = trained_stack(template, data, strengths=strengths, seeds=seeds)
    models: list[Estimator | None] = []
    for (seed, strength), fitted in zip(product(seeds, strengths), fits, strict=True):
        if fitted is None:
            models.append(None)
            continue
        model = clone(template).set_params(strength=strength, random_state=seed)
        model.__dict__.update({name: value for name, value in vars(template).items() if name.endswith("_")} | fitted)
        models.append(model)
    return models
