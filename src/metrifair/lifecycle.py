"""What every estimator does: check its input, train, learn on from a stream, predict.

An estimator here is a scikit-learn object with the parameters of ``fitting.Settings``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from metrifair.batches import Coverage
from metrifair.errors import Diverged
from metrifair.fitting import (
    Declared,
    Problem,
    check_settings,
    device_of,
    model_for,
    objective_for,
    schedule_for,
    scheme_for,
    seed_of,
)
from metrifair.online import Learner, Moments
from metrifair.tables import Table
from metrifair.training import Predictor, train

Floats = NDArray[np.float64]

STREAM_BATCH = 32  # samples a batch of a stream has at least, where that is left to us


def validated(
    estimator: Any, X: Table, y: Table, sample_weight: ArrayLike | None, *, reset: bool = True
) -> tuple[Floats, NDArray[Any], Floats]:
    """Features, targets and weights as arrays, checked; ``reset`` notes the features' number and names."""
    check_settings(estimator)
    numeric = is_regressor(estimator)
    x, y = validate_data(estimator, X, y, dtype=np.float64, y_numeric=numeric, reset=reset)
    weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    return x, np.require(y, requirements="W"), np.require(weight, requirements="W")


def fit(estimator: Any, problem: Problem) -> None:
    """Train, and keep what predicting and learning on need."""
    for name in ("learner_", "predictor_", "scheme_"):  # a fit that fails leaves no model of other data behind
        estimator.__dict__.pop(name, None)
    seed = seed_of(estimator.random_state)
    (fitted,) = trained_stack(estimator, problem, strengths=[estimator.strength], seeds=[seed])
    if fitted is None:
        raise Diverged(
            f"training diverged at strength {estimator.strength}; lower learning_rate (now {estimator.learning_rate}), "
            "or check the scale of X and y"
        )
    for name, value in fitted.items():
        setattr(estimator, name, value)


def trained_stack(
    estimator: Any, problem: Problem, *, strengths: Sequence[float], seeds: Sequence[int]
) -> list[dict[str, Any] | None]:
    """Fitted attributes for every seed and, within it, every strength, trained at once; None where it diverged."""
    problem = problem.counted()
    scheme = scheme_for(estimator, problem, penalised=any(strengths))
    samples = scheme.samples(problem)
    schedule = schedule_for(estimator, len(samples))
    trained = train(
        samples,
        model_for(estimator, problem.x.shape[1], problem.outputs),
        objective_for(estimator, scheme, problem.task),
        strengths=strengths,
        seeds=seeds,
        schedule=schedule,
        standardize=estimator.standardize,
        device=device_of(estimator.device),
        verbose=estimator.verbose,
    )
    shared = {"scheme_": scheme, "n_iter_": schedule.epochs, "weight_seen_": float(samples.weight.sum())}
    return [
        None if bool(trained.failed[s, k]) else shared | {"predictor_": trained.predictor(s, k)}
        for s in range(len(seeds))
        for k in range(len(strengths))
    ]


def learn(estimator: Any, problem: Problem, groups: Declared | None) -> None:
    """Take the next samples of a stream in."""
    problem = problem.counted()
    scheme = getattr(estimator, "scheme_", None)
    if scheme is None:
        scheme = scheme_for(estimator, problem, penalised=estimator.strength > 0, groups=groups)
    samples = scheme.samples(problem)
    estimator.scheme_ = scheme
    if not hasattr(estimator, "learner_"):
        estimator.learner_ = _learner(estimator, problem)
    estimator.learner_.learn(samples)
    estimator.predictor_ = estimator.learner_.predictor(problem.x.shape[1])


def _learner(estimator: Any, problem: Problem) -> Learner:
    """A learner at its start, or where ``fit`` ended."""
    scheme, seed = estimator.scheme_, seed_of(estimator.random_state)
    rule = Coverage(
        scheme.comparisons,
        size=STREAM_BATCH if estimator.batch_size == "auto" else estimator.batch_size,
        least=2 if estimator.unbiased else 1,
    )
    fitted: Predictor | None = getattr(estimator, "predictor_", None)
    learner = Learner(
        model_for(estimator, problem.x.shape[1], problem.outputs),
        objective_for(estimator, scheme, problem.task),
        rule,
        strength=estimator.strength,
        seed=seed,
        learning_rate=estimator.learning_rate,
        weight_decay=estimator.weight_decay,
        standardize=estimator.standardize,
        start=None if fitted is None else fitted.parameters,
    )
    if fitted is not None:
        learner.moments = Moments.of(fitted.scaling, estimator.weight_seen_)
    return learner


def output_of(estimator: Any, X: Table) -> Floats:
    """What the fitted model returns for each row, before any link."""
    check_is_fitted(estimator, "predictor_")
    x = validate_data(estimator, X, dtype=np.float64, reset=False)
    predictor: Predictor = estimator.predictor_
    return predictor.output(np.require(x, requirements=["C", "W"]))  # torch warns of memory it may not write to
