"""From a user's labels, groups and weights to the rows that a booster's objective sees; the features stay untouched."""

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

from metrifair.boosting.objective import MANY, Floats, PenalisedRisk
from metrifair.choices import check_known, check_switches
from metrifair.errors import DataError
from metrifair.fitting import Aim, Problem, Scheme, check_range, scheme_for
from metrifair.objective import Objective
from metrifair.samples import Batch, Samples, sides_of
from metrifair.tables import Table, same_length
from metrifair.tasks import BINARY, regression
from metrifair.training import weighted_moments

OWN = ("strength", "criterion", "metric", "unbiased", "compare", "contrast", "intersectional", "pos_label")
"""Parameters that are ours; all others go to the booster."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows as the user gave them: those to train on, or an evaluation set."""

    X: Table
    y: Table
    sensitive_features: Table | None
    control_features: Table | None = None
    sample_weight: ArrayLike | None = None
    name: str = ""  # "" for the rows to train on; begins the names of the arguments of others


def is_penalised(booster: Any) -> bool:
    """True where the strength is not 0; a parameter of ours that is out of range is a DataError."""
    check_range("strength", booster.strength)
    check_known("compare", booster.compare, ("prediction", "output"))
    check_known("contrast", booster.contrast, ("pairs", "rest"))
    check_switches(unbiased=booster.unbiased, intersectional=booster.intersectional)
    return bool(booster.strength > 0)


@dataclass(frozen=True, eq=False)
class Rows:
    """What is compared, fixed by the training rows; makes the objective of these and of evaluation sets."""

    booster: Aim
    problem: Problem  # of the training rows
    scheme: Scheme
    centre: float
    spread: float

    @property
    def start(self) -> float:
        """The best constant output: the log-odds of the mean label, or the mean of the target."""
        if not self.problem.classes:
            return self.centre
        share = float(np.average(self.problem.targets, weights=self.problem.weight))
        if not 0 < share < 1:
            raise DataError("all samples with a sample_weight above 0 are of one class; boosting needs both")
        return math.log(share / (1 - share))

    def objective_of(self, problem: Problem, risk_weight: Floats | None = None) -> PenalisedRisk:
        """The objective for the rows of a problem; ``risk_weight`` multiplies what each counts in the risk."""
        weight, total = problem.weight, float(problem.weight.sum())
        counted = problem.counted()
        cell = np.full(len(weight), -1)  # rows without weight are compared with none
        cell[weight > 0] = self.scheme.samples(counted).cell.numpy()
        in_risk = weight if risk_weight is None else weight * risk_weight
        target = (problem.targets - self.centre) / self.spread if not problem.classes else problem.targets
        # Boosters take slopes in single precision.
        precision = torch.float32 if len(weight) >= MANY else torch.float64
        samples = Samples(
            torch.zeros(len(weight), 0),
            torch.as_tensor(target, dtype=precision),
            torch.as_tensor(cell),
            torch.as_tensor(in_risk * (len(weight) / total), dtype=precision),
        )
        uneven = None if (weight == weight[0]).all() else torch.as_tensor(weight)
        comparisons, booster = self.scheme.comparisons, self.booster
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


def classification_rows(booster: Any, part: Part) -> Rows:
    """The rows of a classifier of two classes."""
    labels = _labels(part)
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
    problem = _problem(part, np.searchsorted(classes, labels), task=BINARY, classes=tuple(known), positive=positive)
    return Rows(booster, problem, scheme_for(booster, problem.counted(), penalised=True), 0.0, 1.0)


def regression_rows(booster: Any, part: Part) -> Rows:
    """The rows of a regressor; the objective sees their target standardised, as FairRegressor does."""
    if booster.pos_label is not None:
        raise DataError(f"pos_label is for classifiers; leave it out of a regressor, got {booster.pos_label!r}")
    problem = _problem(part, _target(part), task=regression())
    moments = weighted_moments(torch.as_tensor(problem.targets).unsqueeze(1), torch.as_tensor(problem.weight))
    centre, spread = (moment.item() for moment in moments)
    return Rows(booster, problem, scheme_for(booster, problem.counted(), penalised=True), centre, spread)


def evaluation_problem(rows: Rows, part: Part) -> Problem:
    """An evaluation set, with the classes of the training rows."""
    classes = rows.problem.classes
    if not classes:
        return _problem(part, _target(part), task=rows.problem.task)
    labels, known = _labels(part), np.asarray(classes)
    found = np.searchsorted(known, labels).clip(max=1)
    strange = known[found] != labels
    if strange.any():
        raise DataError(f"eval_set holds the label {labels[strange][0]!r}, which is none of {list(classes)}")
    return _problem(part, found, task=BINARY, classes=classes, positive=rows.problem.positive)


def evaluation_parts(eval_set: Sequence[tuple[Table, Table]], **lists: Sequence[Any] | None) -> list[Part]:
    """Evaluation sets with their groups, strata and weights: three lists with one entry for each set."""
    for name, given in lists.items():
        if given is not None and (not isinstance(given, (list, tuple)) or len(given) != len(eval_set)):
            counted = f"{len(given)}" if isinstance(given, (list, tuple)) else f"a {type(given).__name__}"
            raise DataError(
                f"{name} must be a list with one entry for each of {len(eval_set)} eval sets, got {counted}"
            )
    if lists["eval_sensitive_features"] is None:
        raise DataError(
            "eval_set is judged by risk + strength x unfairness; pass eval_sensitive_features, a list with the groups "
            "of each eval set"
        )
    entries = [list(given) if given is not None else [None] * len(eval_set) for given in lists.values()]
    return [
        Part(X, y, groups, strata, weight, "eval_")
        for (X, y), groups, strata, weight in zip(eval_set, *entries, strict=True)
    ]


def class_weights(class_weight: Any, rows: Rows) -> Floats | None:
    """What scikit-learn's ``class_weight`` multiplies the loss of each row by."""
    if class_weight is None:
        return None
    labels = np.asarray(rows.problem.classes)[rows.problem.labels]
    found: Floats = compute_sample_weight(class_weight, labels)
    return found


def _labels(part: Part) -> NDArray[Any]:
    y: NDArray[Any] = column_or_1d(part.y)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return y


def _target(part: Part) -> Floats:
    y: Floats = column_or_1d(part.y, dtype=np.float64)
    assert_all_finite(y, input_name="y")
    return y


def _problem(part: Part, labels: NDArray[Any], **meaning: Any) -> Problem:
    count = _num_samples(part.X)
    same_length(**{f"{part.name}X": range(count), f"{part.name}y": labels})
    no_features = np.zeros((count, 0))
    weight = _check_sample_weight(part.sample_weight, no_features, dtype=np.float64, ensure_non_negative=True)
    return Problem(
        no_features,
        labels,
        labels.astype(np.float64),
        weight,
        sensitive_features=part.sensitive_features,
        control_features=part.control_features,
        **meaning,
    )
