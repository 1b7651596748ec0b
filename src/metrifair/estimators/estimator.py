"""What every estimator does: check its input, train, learn on from a stream, predict.

An estimator here is a scikit-learn object with the parameters of ``fitting.Settings``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from metrifair.batches import Coverage, small_groups_named
from metrifair.checks import seed_of
from metrifair.errors import DataError, Diverged
from metrifair.estimators.fitting import Declared, Problem, scheme_for
from metrifair.estimators.settings import check_settings, device_of, model_for, objective_for, schedule_for
from metrifair.problem.tables import Table, columns, group_codes, is_missing, same_rows, wrapped
from metrifair.training import Predictor, train
from metrifair.training.online import Learner, Moments

Floats = NDArray[np.float64]

STREAM_BATCH = 32  # samples a batch of a stream has at least, where that is left to us
_LISTED = 5


def validated(
    estimator: Any,
    X: Table,
    y: Table,
    *,
    sensitive_features: Table | None,
    control_features: Table | None,
    sample_weight: ArrayLike | None,
    reset: bool = True,
) -> tuple[Floats, NDArray[Any], Floats]:
    """Features, targets and weights as arrays, checked; ``reset`` notes the features' number and names."""
    check_settings(estimator)
    if is_regressor(estimator):
        _check_target(y)
    with _explained(estimator, X):
        x, target = validate_data(estimator, X, y, dtype=np.float64, y_numeric=is_regressor(estimator), reset=reset)
    weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    same_rows(
        X=X,
        y=y,
        sensitive_features=sensitive_features,
        control_features=control_features,
        sample_weight=sample_weight,
    )
    return x, np.require(target, requirements="W"), np.require(weight, requirements="W")


def _check_target(y: Table) -> None:
    values = np.asarray(y)
    if values.dtype.kind in "USO":
        text = next((value for value in values.ravel().tolist() if isinstance(value, str)), None)
        if text is not None:
            raise DataError(f"y must hold numbers, got text such as {text!r}; FairClassifier predicts classes")


@contextmanager
def _explained(estimator: Any, X: Table) -> Iterator[None]:
    """Where features are no numbers, the error says which, and what to do about it."""
    try:
        yield
    except ValueError as error:
        name, found = type(estimator).__name__, _no_numbers(X)
        if not found:
            raise
        raise DataError(
            f"X holds {found}; encode it first with make_pipeline(TableEncoder(), {name}()), fitted with "
            f"{name.lower()}__sensitive_features=..., or train on the file with 'metrifair train'"
        ) from error


def _no_numbers(X: Table) -> str:
    """The columns of a data frame that hold anything but numbers; "" where there are none, or have no names."""
    if not isinstance(wrapped("X", X), nw.DataFrame):
        return ""
    found = [_in_words(column, values) for column, values in columns("X", X).items()]
    few = [text for text in found if text]
    return ", ".join(few[:_LISTED]) + (f" and {len(few) - _LISTED} more columns" if len(few) > _LISTED else "")


def _in_words(name: str, values: NDArray[Any]) -> str:
    missing = is_missing(values)
    if missing.any():
        values = values[~missing]
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return f"{values[0]!r} in {name!r}"
    return f"missing values (NaN) in {name!r}" if missing.any() else ""


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
    with small_groups_named(scheme.comparisons, lambda: samples.cell):
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
        if groups is None and problem.sensitive_features is not None:
            _check_groups(problem.sensitive_features, intersectional=estimator.intersectional)
        scheme = scheme_for(estimator, problem, penalised=estimator.strength > 0, groups=groups)
    samples = scheme.samples(problem)
    estimator.scheme_ = scheme
    if not hasattr(estimator, "learner_"):
        estimator.learner_ = _learner(estimator, problem)
    try:
        estimator.learner_.learn(samples)
    finally:  # an error leaves out the samples that led to it: what was learnt before them stands
        estimator.predictor_ = estimator.learner_.predictor(problem.x.shape[1])


def _check_groups(sensitive_features: Table, *, intersectional: bool) -> None:
    for name, groups in group_codes(sensitive_features, intersectional=intersectional).attributes:
        if len(groups) < 2:
            raise DataError(
                f"the stream begins with the group {list(groups)} of {name} only; pass groups=, a list of all groups, "
                "to the first partial_fit"
            )


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
    with _explained(estimator, X):
        x = validate_data(estimator, X, dtype=np.float64, reset=False)
    predictor: Predictor = estimator.predictor_
    return predictor.output(np.require(x, requirements=["C", "W"]))  # torch warns of memory it may not write to
