"""Label-bias correction (Jiang and Nachum, 2020): rows re-weighted, round by round, until the classifier is fair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from metrifair.checks import check_known, check_switches, seed_of
from metrifair.errors import DataError
from metrifair.methods.inputs import (
    Floats,
    Integers,
    Rows,
    TwoClasses,
    check_cells,
    check_number,
    check_whole,
    classification_rows,
)
from metrifair.methods.learners import Delegating, check_continues, fit_learners
from metrifair.methods.networks import fitted_copy, own_rows, subset
from metrifair.problem.tables import Table

_LABELS: dict[str, tuple[int, ...]] = {"statistical_parity": (), "equal_opportunity": (1,), "equalized_odds": (0, 1)}
_SMALLEST_WEIGHT = 1e-12


def tilted_weights(y: Integers, member: NDArray[np.bool_], multipliers: Floats, *, scale: float = 2.0) -> Floats:
    """Weights that undo an exponential tilt of the labels, before they are scaled to mean 1.

    ``member`` (n, groups) may overlap; ``multipliers`` (2, groups) are for rows with label 1 and with label 0.

    >>> tilted_weights(np.array([1, 0, 1]), np.array([[True], [True], [False]]), np.full((2, 1), np.log(3) / 2))
    array([0.75, 0.25, 0.5 ])
    """
    exponent = scale * (member @ multipliers.T)  # (n, 2)
    signed = np.where(y == 1, exponent[:, 0], -exponent[:, 1])
    weights: Floats = np.exp(-np.logaddexp(0.0, -signed))  # the logistic function, without overflow
    return weights.clip(min=_SMALLEST_WEIGHT)


def violations(
    predicted: NDArray[Any], y: Integers, member: NDArray[np.bool_], criterion: str, weight: Floats | None = None
) -> Floats:
    """How far the rate of each group lies below that of all, (2, groups): what moves the multipliers of each label.

    >>> violations(np.array([1, 1, 0, 0]), np.ones(4, int), np.array([[True], [False], [True], [True]]),
    ...            "statistical_parity").round(4)
    array([[0.1667],
           [0.1667]])
    """
    weight = np.ones(len(y)) if weight is None else weight
    everyone = np.ones(len(y), dtype=bool)
    among = {
        "statistical_parity": (everyone, everyone),
        "equal_opportunity": (y == 1, y == 1),
        "equalized_odds": (y == 1, y == 0),
    }[criterion]

    def rate(rows: NDArray[np.bool_]) -> float:
        if not rows.any():
            raise DataError(f"a group has no row where {criterion} compares")
        return float(np.average(predicted[rows], weights=weight[rows]))

    return np.array([[rate(rows) - rate(rows & group) for group in member.T] for rows in among])


class Round(NamedTuple):
    """A fitted learner, the multipliers with which it was fitted, and how it does on the training rows."""

    learner: Any
    multipliers: Floats  # (2, groups)
    violations: Floats  # (2, groups)
    error: float

    @property
    def violation(self) -> float:
        """The largest one."""
        return float(np.abs(self.violations).max())


class LabelBiasClassifier(TwoClasses, Delegating):
    """Any classifier, trained anew each round with weights that make up for the unfairness of the round before.

    A group that is accepted less often than all has its positive rows weighted up and its negative ones down. Any
    number of groups. It can do little where the group is not among the features. Predicting needs no groups.

    Parameters
    ----------
    estimator : a scikit-learn classifier; None is a network, ``FairClassifier(strength=0)``. One that takes no
        ``sample_weight`` is trained on rows drawn in proportion to the weights.
    criterion : ``statistical_parity``, ``equal_opportunity`` or ``equalized_odds``.
    rounds : fits; 0 or 1 is one fit without weights.
    step : of the multipliers, in units of the violation.
    scale : of the exponent: 2 in the authors' code, 1 in their text; it only rescales the step.
    keep : the ``"last"`` round's classifier, or the ``"best"`` by violation, then by error.
    warm_start : go on from the round before, for networks and for learners that have ``warm_start``.
    variant : ``"reference"`` does not scale weights to mean 1 and, but for statistical parity, starts with weights 1
        and lets them lag one round behind, as the authors' notebooks do.
    random_state : seed of the base learner, the same in every round, where that has none of its own.

    Examples
    --------
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

    def __init__(
        self,
        estimator: Any = None,
        *,
        criterion: str = "statistical_parity",
        rounds: int = 20,
        step: float = 1.0,
        scale: float = 2.0,
        keep: Literal["last", "best"] = "last",
        warm_start: bool = False,
        variant: Literal["method", "reference"] = "method",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.criterion = criterion
        self.rounds = rounds
        self.step = step
        self.scale = scale
        self.keep = keep
        self.warm_start = warm_start
        self.variant = variant
        self.random_state = random_state

    def fit(self, X: Table, y: Table, *, sensitive_features: Table, sample_weight: ArrayLike | None = None) -> Self:
        """Train for all rounds; ``sample_weight`` are weights that the rows had before."""
        rows = classification_rows(self, X, y, sensitive_features, sample_weight=sample_weight, two_groups=False)
        (kept,) = _corrected(self, rows, [seed_of(self.random_state)], [np.arange(len(rows))])
        self.__dict__.update(_attributes(kept))
        return self


def fit_stack(
    estimator: LabelBiasClassifier,
    X: Table,
    y: Table,
    sensitive_features: Table,
    *,
    seeds: Sequence[int],
    rows: Sequence[ArrayLike] | None = None,
) -> list[LabelBiasClassifier]:
    """Fitted copies for every seed, each round's networks trained at once; ``rows`` are each seed's training rows."""
    template = clone(estimator)
    table = classification_rows(template, X, y, sensitive_features, two_groups=False)
    found = _corrected(template, table, seeds, own_rows(len(table), seeds, rows))
    return [
        fitted_copy(template, {"random_state": seed}, _attributes(kept))
        for seed, kept in zip(seeds, found, strict=True)
    ]


def _attributes(kept: Round) -> dict[str, Any]:
    return {"estimator_": kept.learner, "multipliers_": kept.multipliers, "violation_": kept.violation}


def _corrected(
    estimator: LabelBiasClassifier, table: Rows, seeds: Sequence[int], own: Sequence[Integers]
) -> list[Round]:
    """The round that is kept, for each seed."""
    _check(estimator)
    parts = [subset(table, part) for part in own]
    for part in parts:
        check_cells(part, _LABELS[estimator.criterion])
    lagging = estimator.variant == "reference" and estimator.criterion != "statistical_parity"
    multipliers = [np.zeros((2, len(table.groups)))] * len(parts)
    weights = [part.weight for part in parts]
    learners: list[Any] = []
    kept: list[Round] = []
    for _ in range(max(1, estimator.rounds)):
        tilted = [_weights(estimator, part, now) for part, now in zip(parts, multipliers, strict=True)]
        weights = weights if lagging else tilted
        earlier = learners if estimator.warm_start else []
        learners = fit_learners(estimator.estimator, table, seeds=seeds, rows=own, weights=weights, earlier=earlier)
        weights = tilted
        seen = [_judged(estimator, *each) for each in zip(parts, learners, multipliers, strict=True)]
        kept = [_better(estimator, *pair) for pair in zip(kept, seen, strict=True)] if kept else seen
        multipliers = [one.multipliers + estimator.step * one.violations for one in seen]
    return kept


def _weights(estimator: LabelBiasClassifier, rows: Rows, multipliers: Floats) -> Floats:
    if not estimator.rounds:
        return rows.weight
    tilted = rows.weight * tilted_weights(rows.y, _member(rows), multipliers, scale=estimator.scale)
    return tilted if estimator.variant == "reference" else tilted * (rows.weight.sum() / tilted.sum())


def _member(rows: Rows) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = rows.group[:, None] == np.arange(len(rows.groups))
    return inside


def _judged(estimator: LabelBiasClassifier, rows: Rows, learner: Any, multipliers: Floats) -> Round:
    predicted = np.asarray(learner.predict(rows.x))
    found = violations(predicted, rows.y, _member(rows), estimator.criterion, rows.weight)
    return Round(learner, multipliers, found, float(np.average(predicted != rows.y, weights=rows.weight)))


def _better(estimator: LabelBiasClassifier, old: Round, new: Round) -> Round:
    best = estimator.keep == "best" and (old.violation, old.error) <= (new.violation, new.error)
    return old if best else new


def _check(estimator: LabelBiasClassifier) -> None:
    check_known("criterion", estimator.criterion, _LABELS)
    check_known("keep", estimator.keep, ("last", "best"))
    check_known("variant", estimator.variant, ("method", "reference"))
    check_switches(warm_start=estimator.warm_start)
    check_number("step", estimator.step, low=0)
    check_number("scale", estimator.scale, low=0, low_open=True)
    check_whole("rounds", estimator.rounds, least=0)
    if estimator.warm_start:
        check_continues(estimator.estimator)
