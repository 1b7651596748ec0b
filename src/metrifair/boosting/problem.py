"""From a user's labels, groups and weights to what a booster's objective sees; the features stay untouched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples, assert_all_finite

from metrifair.boosting.objective import Floats, PenalisedRisk, on_grid
from metrifair.checks import check_known, check_switches
from metrifair.errors import DataError
from metrifair.estimators.fitting import Problem, Scheme, scheme_for
from metrifair.estimators.settings import Aim, check_range
from metrifair.problem.samples import Batch, Samples, sides_of
from metrifair.problem.tables import Table, same_length, same_rows
from metrifair.problem.tasks import BINARY, regression
from metrifair.training import weighted_moments
from metrifair.training.objective import Objective

OWN = ("strength", "criterion", "metric", "unbiased", "compare", "contrast", "intersectional", "pos_label")
"""Parameters that are ours; all others go to the booster."""


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Rows as the user gave them: those to train on, or an evaluation set."""

    X: Table
    y: Table
    sensitive_features: Table | None
    control_features: Table | None = None
    sample_weight: ArrayLike | None = None
    name: str = ""  # "" for the rows to train on; begins the names of the arguments of others

    def __post_init__(self) -> None:
        names = ("X", "y", "sensitive_features", "control_features", "sample_weight")
        same_rows(**{f"{self.name}{name}": getattr(self, name) for name in names})


def is_penalised(booster: Any) -> bool:
    """True where the strength is not 0; a parameter of ours that is out of range is a DataError."""
    check_range("strength", booster.strength)
    check_known("compare", booster.compare, ("prediction", "output"))
    check_known("contrast", booster.contrast, ("pairs", "rest"))
    check_switches(unbiased=booster.unbiased, intersectional=booster.intersectional)
    return bool(booster.strength > 0)


@dataclass(frozen=True, eq=False)
class BoostingProblem:
    """What is compared, fixed by the training rows; makes the objective of these and of evaluation sets."""

    booster: Aim
    training: Problem  # the rows to train on
    scheme: Scheme
    centre: float
    spread: float

    @property
    def start(self) -> float:
        """The best constant output: the log-odds of the mean label, or the mean of the target."""
        if not self.training.classes:
            return self.centre
        share = float(np.average(self.training.targets, weights=self.training.weight))
        if not 0 < share < 1:
            raise DataError("all samples with a sample_weight above 0 are of one class; boosting needs both")
        return math.log(share / (1 - share))

    def objective_of(self, problem: Problem, risk_weight: Floats | None = None) -> PenalisedRisk:
        """The objective for the rows of a problem; ``risk_weight`` multiplies what each counts in the risk."""
        weight, total = problem.weight, float(problem.weight.sum())
        comparisons, booster = self.scheme.comparisons, self.booster
        unnamed = 1 + max((max(one.left + one.right) for one in comparisons), default=0)
        cell = np.full(len(weight), unnamed)  # rows without weight are compared with none
        cell[weight > 0] = self.scheme.samples(problem.counted()).cell.numpy()
        in_risk = weight if risk_weight is None else weight * risk_weight
        target = (problem.targets - self.centre) / self.spread if not problem.classes else problem.targets
        # Places on a grid need no more than single precision. Other scores do: a target with one value far out, once
        # standardised, has all others so close together that single precision would tie them.
        precision = torch.float32 if on_grid(problem.task, len(weight)) else torch.float64
        samples = Samples(
            torch.zeros(len(weight), 0),
            torch.as_tensor(target, dtype=precision),
            torch.as_tensor(cell),
            torch.as_tensor(in_risk * (len(weight) / total), dtype=precision),
        )
        uneven = None if (weight == weight[0]).all() else torch.as_tensor(weight)
        objective = Objective(
            problem.task,
            comparisons,
            self.scheme.criterion,
            booster.metric,
            unbiased=booster.unbiased,
            compare=booster.compare,
        )
        batch = Batch(samples, sides_of(comparisons, samples.cell, uneven))
        return PenalisedRisk(objective, batch, total, self.centre, self.spread)


def classification_problem(booster: Any, given: GivenRows) -> BoostingProblem:
    """That of a classifier of two classes."""
    labels = _labels(given)
    classes = np.unique(labels)
    if len(classes) != 2:
        raise DataError(
            f"y must hold two classes where strength > 0, got {len(classes)}: {classes.tolist()[:10]}; FairClassifier "
            "takes more than two, and strength=0 leaves the plain booster"
        )
    known = classes.tolist()
    if booster.pos_label is not None and booster.pos_label not in known:
        raise DataError(f"pos_label must be one of the classes {known}, got {booster.pos_label!r}")
    positive = 1 if booster.pos_label is None else known.index(booster.pos_label)
    problem = _problem(given, np.searchsorted(classes, labels), task=BINARY, classes=tuple(known), positive=positive)
    return BoostingProblem(booster, problem, scheme_for(booster, problem.counted(), penalised=True), 0.0, 1.0)


def regression_problem(booster: Any, given: GivenRows) -> BoostingProblem:
    """That of a regressor; the objective sees the target standardised, as FairRegressor does."""
    if booster.pos_label is not None:
        raise DataError(f"pos_label is for classifiers; leave it out of a regressor, got {booster.pos_label!r}")
    problem = _problem(given, _target(given), task=regression())
    moments = weighted_moments(torch.as_tensor(problem.targets).unsqueeze(1), torch.as_tensor(problem.weight))
    centre, spread = (moment.item() for moment in moments)
    return BoostingProblem(booster, problem, scheme_for(booster, problem.counted(), penalised=True), centre, spread)


def evaluation_problem(problem: BoostingProblem, given: GivenRows) -> Problem:
    """An evaluation set, with the classes of the training rows."""
    classes = problem.training.classes
    if not classes:
        return _problem(given, _target(given), task=problem.training.task)
    labels, known = _labels(given), np.asarray(classes)
    found = np.searchsorted(known, labels).clip(max=1)
    strange = known[found] != labels
    if strange.any():
        raise DataError(f"eval_set holds the label {labels[strange][0]!r}, which is none of {list(classes)}")
    return _problem(given, found, task=BINARY, classes=classes, positive=problem.training.positive)


def evaluation_rows(eval_set: Sequence[tuple[Table, Table]], **lists: Sequence[Any] | None) -> list[GivenRows]:
    """Evaluation sets with their groups, strata and weights: three lists with one entry for each set."""
    for name, entries in lists.items():
        if entries is not None and (not isinstance(entries, (list, tuple)) or len(entries) != len(eval_set)):
            counted = f"{len(entries)}" if isinstance(entries, (list, tuple)) else f"a {type(entries).__name__}"
            raise DataError(
                f"{name} must be a list with one entry for each of {len(eval_set)} eval sets, got {counted}"
            )
    if lists["eval_sensitive_features"] is None:
        raise DataError(
            "eval_set is judged by risk + strength x unfairness; pass eval_sensitive_features, a list with the groups "
            "of each eval set"
        )
    columns = [[None] * len(eval_set) if entries is None else list(entries) for entries in lists.values()]
    return [
        GivenRows(X, y, groups, strata, weight, "eval_")
        for (X, y), groups, strata, weight in zip(eval_set, *columns, strict=True)
    ]


def class_weights(class_weight: Any, problem: BoostingProblem) -> Floats | None:
    """What scikit-learn's ``class_weight`` multiplies the loss of each row by."""
    if class_weight is None:
        return None
    labels = np.asarray(problem.training.classes)[problem.training.labels]
    found: Floats = compute_sample_weight(class_weight, labels)
    return found


def _labels(given: GivenRows) -> NDArray[Any]:
    y: NDArray[Any] = column_or_1d(given.y)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return y


def _target(given: GivenRows) -> Floats:
    y: Floats = column_or_1d(given.y, dtype=np.float64)
    assert_all_finite(y, input_name="y")
    return y


def _problem(given: GivenRows, labels: NDArray[Any], **meaning: Any) -> Problem:
    count = _num_samples(given.X)
    same_length(**{f"{given.name}X": range(count), f"{given.name}y": labels})
    no_features = np.zeros((count, 0))
    weight = _check_sample_weight(given.sample_weight, no_features, dtype=np.float64, ensure_non_negative=True)
    return Problem(
        no_features,
        labels,
        labels.astype(np.float64),
        weight,
        sensitive_features=given.sensitive_features,
        control_features=given.control_features,
        **meaning,
    )
