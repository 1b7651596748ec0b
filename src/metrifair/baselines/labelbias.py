"""Label-bias correction (Jiang and Nachum, 2020): rows re-weighted, round by round, until the
classifier is fair.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.baselines.baseline import CONDITIONED_ON, Fitted, TrainingData, TwoClassMixin
from metrifair.baselines.network import Preprocessor, check_continues, fit_learner
from metrifair.errors import DataError
from metrifair.problem.criteria import usual_name
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.checks import check_integer, check_known, check_number, check_switches


def tilted_weights(
    y: Integers, member: Booleans, multipliers: Floats, *, scale: float = 2.0
) -> Floats:
    """Weights that undo an exponential tilt of the labels, before they are scaled to mean 1.

    ``member`` (n, groups) may overlap; ``multipliers`` (2, groups) are for rows with label 1 and
    with label 0.

    >>> tilted_weights(np.array([1, 0, 1]), np.array([[True], [True], [False]]), np.full((2, 1), np.log(3) / 2))
    array([0.75, 0.25, 0.5 ])
    """
    exponent = scale * (member @ multipliers.T)  # (n, 2)
    of_positive = exponent[:, 0]
    of_negative = exponent[:, 1]
    signed = np.where(y == 1, of_positive, -of_negative)
    weights: Floats = np.exp(-np.logaddexp(0.0, -signed))  # the logistic function, without overflow
    return weights.clip(min=1e-12)


def violations(
    predicted: NDArray[Any],
    y: Integers,
    member: Booleans,
    criterion: str,
    weight: Floats | None = None,
) -> Floats:
    """The rate of all rows less that of each group, (2, groups), which changes the multipliers of
    each label.

    >>> violations(np.array([1, 1, 0, 0]), np.ones(4, int), np.array([[True], [False], [True], [True]]),
    ...            "statistical_parity").round(4)
    array([[0.1667],
           [0.1667]])
    """
    if weight is None:
        weight = np.ones(len(y))
    all_rows = np.ones(len(y), dtype=bool)
    among = {
        "statistical_parity": (all_rows, all_rows),
        "equal_opportunity": (y == 1, y == 1),
        "equalized_odds": (y == 1, y == 0),
    }[criterion]

    def rate(rows: Booleans) -> float:
        if not rows.any():
            raise DataError(f"a group has no row that {criterion} compares")
        return float(np.average(predicted[rows], weights=weight[rows]))

    by_label = []
    for rows in among:
        overall = rate(rows)
        by_label.append([overall - rate(rows & group) for group in member.T])
    return np.array(by_label)


class Round(NamedTuple):
    """A fitted learner, the multipliers of its fit, and its figures on the training rows."""

    violation: float  # the largest
    error: float
    violations: Floats  # (2, groups)
    multipliers: Floats  # (2, groups)
    learner: Any


@dataclass(kw_only=True, eq=False, repr=False)
class LabelBiasClassifier(TwoClassMixin, Preprocessor):
    """Any classifier, trained in rounds with weights that correct the unfairness of the previous
    round.

    If a group's selection rate is below the overall rate, its positive rows gain weight and its
    negative rows lose it. The method takes any number of groups. It has little effect if the group
    is not a feature. Prediction needs no groups.

    Parameters
    ----------
    estimator : classifier, default=None
        Estimator to use: a classifier. None is a network,
        ``FairClassifier(strength=0, model="mlp")``. An
        estimator without ``sample_weight`` is trained on rows drawn in proportion to the weights.
    criterion : {"statistical_parity", "equal_opportunity", "equalized_odds"}, default="statistical_parity"
        Fairness criterion: which rates are made equal.
    rounds : int, default=20
        Number of fits; 0 or 1 is one fit without weights.
    step : float, default=1.0
        Step size of the multipliers, in units of the violation.
    scale : float, default=2.0
        Scale of the exponent: 2 in the authors' code, 1 in their text; it only rescales the step.
    keep : {"last", "best"}, default="last"
        The last round's classifier, or the best by violation, then by error.
    warm_start : bool, default=False
        Go on from the round before, for networks and for learners that have ``warm_start``.
    variant : {"method", "reference"}, default="method"
        Variant of the method. The reference follows the authors' notebooks. It does not scale
        weights to mean 1. Except for statistical parity, it starts with weights of 1 and updates
        them one round late.
    random_state : int, NumPy generator or None, default=None
        Seed of the estimator, the same in every round, if it has none of its own.

    Attributes
    ----------
    estimator_ : classifier
        The base learner of the round that is kept, whose classes are codes.
    multipliers_ : ndarray of shape (2, n_groups)
        With which it was fitted, for the labels 1 and 0.
    violation_ : float
        The largest violation of the criterion on the training rows.
    classes_, groups_ : ndarray, tuple
        The classes and the groups that ``fit`` saw.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=1000)
    >>> X = np.c_[generator.normal(size=(1000, 2)) + 0.8 * a[:, None], a]
    >>> y = (X[:, :2].sum(1) + generator.normal(size=1000) > 1).astype(int)
    >>> for rounds in (0, 20):
    ...     model = LabelBiasClassifier(LogisticRegression(), rounds=rounds).fit(X, y, sensitive_features=a)
    ...     print(round(model.violation_, 2))
    0.23
    0.0
    """

    estimator: Any = field(default=None, kw_only=False)
    criterion: str = "statistical_parity"
    rounds: int = 20
    step: float = 1.0
    scale: float = 2.0
    keep: Literal["last", "best"] = "last"
    warm_start: bool = False
    variant: Literal["method", "reference"] = "method"
    random_state: Any = None

    def _fit_data(self, data: TrainingData, seed: int) -> Fitted:
        self._check()
        criterion = usual_name(self.criterion)
        data.check_cells(CONDITIONED_ON[criterion])
        lagging = self.variant == "reference" and criterion != "statistical_parity"
        multipliers = np.zeros((2, len(data.groups)))
        weights = data.weight
        learner = None
        results: list[Round] = []  # the one to keep
        for _ in range(max(1, self.rounds)):
            tilted = self._weights(data, multipliers)
            weights = weights if lagging else tilted
            earlier = learner if self.warm_start else None
            learner = fit_learner(self.estimator, data, seed, weights, earlier=earlier)
            weights = tilted
            current = self._evaluate(data, learner, multipliers)
            results = [*results, current] if self.keep == "best" else [current]
            results = [min(results, key=lambda round_: round_[:2])]
            multipliers = multipliers + self.step * current.violations
        (kept,) = results
        return {
            "estimator_": kept.learner,
            "multipliers_": kept.multipliers,
            "violation_": kept.violation,
        }

    def _weights(self, data: TrainingData, multipliers: Floats) -> Floats:
        if not self.rounds:
            return data.weight
        member = _member(data)
        factors = tilted_weights(data.y, member, multipliers, scale=self.scale)
        tilted = data.weight * factors
        if self.variant == "reference":
            return tilted
        scaled: Floats = tilted * (data.weight.sum() / tilted.sum())
        return scaled

    def _evaluate(self, data: TrainingData, learner: Any, multipliers: Floats) -> Round:
        predicted = np.asarray(learner.predict(data.x))
        constraint_violations = violations(
            predicted, data.y, _member(data), usual_name(self.criterion), data.weight
        )
        is_wrong = predicted != data.y
        error = np.average(is_wrong, weights=data.weight)
        largest = np.abs(constraint_violations).max()
        return Round(
            violation=float(largest),
            error=float(error),
            violations=constraint_violations,
            multipliers=multipliers,
            learner=learner,
        )

    def _check(self) -> None:
        check_known("criterion", usual_name(self.criterion), CONDITIONED_ON)
        check_known("keep", self.keep, ("last", "best"))
        check_switches(warm_start=self.warm_start)
        check_number("step", self.step, low=0)
        check_number("scale", self.scale, low=0, low_open=True)
        check_integer("rounds", self.rounds, least=0)
        if self.warm_start:
            check_continues(self.estimator)


def _member(data: TrainingData) -> Booleans:
    """(n, groups)"""
    codes = np.arange(len(data.groups))
    return np.equal.outer(data.group, codes)
