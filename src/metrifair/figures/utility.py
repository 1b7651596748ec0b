"""How good a model is: utilities by name, by costs or by a scorer; the constant model, and who is no better than it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.metrics import get_scorer, get_scorer_names

from metrifair.errors import DataError
from metrifair.figures import measures
from metrifair.figures.intervals import Interval
from metrifair.figures.measures import Decided, Floats, Measured, Predicted, Predictions
from metrifair.figures.selection_rates import wilson_interval
from metrifair.problem.problem import Problem
from metrifair.support.checks import check_known

Mark: TypeAlias = Literal["", "decides the same for everyone", "no better than deciding the same for everyone"]
UtilityLike: TypeAlias = "str | Utility | Sequence[Sequence[float]] | Callable[..., float]"
"""A utility's name, costs by label and decision, or a scikit-learn scorer, by name or itself."""

CONFIDENCE = 0.95
ALIKE: Mark = "decides the same for everyone"
NO_BETTER: Mark = "no better than deciding the same for everyone"
_WIDTH = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


Measure: TypeAlias = Callable[[Predictions, Problem, Any], Measured | None]
"""Predictions, the rows they are about and their features -> the utility; None where such rows do not tell it."""


@dataclass(frozen=True)
class Utility:
    """What makes a model good: its name in records, its name for people, which way is better, how it is measured.

    >>> from metrifair.problem.problem import Given, problem_of
    >>> rows = problem_of(Given(["no", "yes", "yes"], sensitive_features=["f", "m", "f"]))
    >>> found = Predictions(np.array([0.2, 0.9, 0.4]), np.array([0, 1, 0]), "probability")
    >>> round(UTILITIES["accuracy"].of(found, rows).value, 3), UTILITIES["auc"].of(found, rows).value
    (0.667, 1.0)
    """

    name: str
    label: str
    larger_is_better: bool = True
    needs: Literal["decisions", "scores", "numbers"] = "decisions"
    least: float = -inf
    most: float = inf
    measure: Measure | None = field(default=None, compare=False, repr=False)  # None: a name from a file

    def of(self, found: Predictions, problem: Problem, X: Any = None) -> Measured | None:
        """The utility of these predictions; None where they do not tell it, as of one class no ranking is known."""
        if self.measure is None:
            raise DataError(f"how {self.label} is measured is not known here; pass the utility itself")
        return self.measure(found, problem, X)

    @property
    def key(self) -> str:
        """Under which name points hold it: accuracy and R2 are the first figure of all."""
        return "accuracy" if self.name == "r2" else self.name

    def share(self, value: float | None, constant: float | None) -> float:
        """What a frontier's area is made of, at most 1: the value; of losses, what is saved of the constant's."""
        if value is None:
            return 0.0
        if self.larger_is_better:
            return value
        return 1 - value / constant if constant is not None and constant > 0 else 0.0

    def worth(self, value: float) -> float:
        """The value, or its negative where less is better: larger is better in any case."""
        return value if self.larger_is_better else -value

    def interval(self, found: Measured, problem: Problem) -> Interval | None:
        """Between which the utility lies, with 95 % confidence.

        Of accuracy Wilson's, of others approximate for many rows.
        """
        count = len(problem)
        if self.name == "accuracy" and problem.weight is None:
            return wilson_interval(found.value, count, CONFIDENCE)
        error = found.error(problem.weight)
        if error is None:
            return None
        margin = _WIDTH * error
        return Interval(max(self.least, found.value - margin), min(self.most, found.value + margin))


def utility_of(utility: UtilityLike, *, classes: Sequence[object] = ()) -> Utility:
    """The utility that was asked for, of a task with these classes (none: a number is predicted).

    >>> utility_of("log_loss", classes=("no", "yes")).larger_is_better
    False
    >>> utility_of([[0, 1], [5, 0]], classes=("no", "yes")).label
    'Expected cost'
    >>> utility_of("f1", classes=(0, 1)).label
    'F1'
    >>> utility_of("auc")
    Traceback (most recent call last):
    metrifair.errors.DataError: utility 'auc' is of classes, and numbers are predicted here; take one of 'r2', ...
    """
    if isinstance(utility, Utility):
        return utility
    if isinstance(utility, str):
        if utility in UTILITIES:
            known = [name for name, own in UTILITIES.items() if (own.needs == "numbers") != bool(classes)]
            if utility not in known:
                of, here = ("numbers", "classes") if classes else ("classes", "numbers")
                raise DataError(
                    f"utility {utility!r} is of {of}, and {here} are predicted here; take one of "
                    f"{', '.join(map(repr, known))}, or a scorer of scikit-learn"
                )
            return UTILITIES[utility]
        if utility not in get_scorer_names():
            check_known("utility", utility, UTILITIES, otherwise="a scorer of scikit-learn, or a table of costs")
        return _scored(utility, get_scorer(utility), coded=True)
    if callable(utility):
        named = getattr(utility, "__name__", None) or getattr(getattr(utility, "_score_func", None), "__name__", None)
        return _scored(named or "score", utility)
    return expected_cost(utility, classes)


def expected_cost(costs: Sequence[Sequence[float]], classes: Sequence[object]) -> Utility:
    """The mean cost of the decisions; ``costs[label][decision]``, by the classes in ascending order."""
    try:
        table = np.array(costs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"utility must be a name, a table of costs or a scorer, got {costs!r}") from error
    if not classes or table.shape != (len(classes), len(classes)) or not np.isfinite(table).all():
        wanted = f"{len(classes)} rows of {len(classes)} finite costs, by label and decision" if classes else "a name"
        raise DataError(f"utility must be {wanted}, got {costs!r}")
    cheapest = (table == table.min(axis=1, keepdims=True)).all(axis=0)
    if cheapest.any():
        decision = classes[int(cheapest.argmax())]
        raise DataError(
            f"costs {table.tolist()!r} make {decision!r} the cheapest decision whatever the label, so that no model is "
            "needed; give costs[label][decision], with a wrong decision costing more than a right one"
        )

    def measure(found: Predictions, problem: Problem, _: Any) -> Measured:
        return measures.mean(table[problem.labels, found.decision], problem)

    return Utility("expected_cost", "Expected cost", larger_is_better=False, measure=measure)


def utilities_for(classes: Sequence[object]) -> tuple[Utility, ...]:
    """All utilities with a name of our own that such a task has; the first is the usual one."""
    return tuple(own for own in UTILITIES.values() if (own.needs == "numbers") != bool(classes))


@dataclass(frozen=True)
class ConstantModel:
    """The model that says the same of everyone: the base rates and the class that is best, or the mean or median.

    >>> from metrifair.problem.problem import Given, problem_of
    >>> rows = problem_of(Given(["no", "yes", "yes"], sensitive_features=["f", "m", "f"]))
    >>> constant = constant_model(rows)
    >>> constant.text, constant.predictions(2).decision
    ('“yes” for everyone', array([1, 1]))
    """

    score: float | Floats
    decision: float
    text: str  # what it says

    def predictions(self, count: int) -> Predictions:
        """What it says about so many rows."""
        if isinstance(self.decision, int):
            score = np.tile(np.asarray(self.score), (count, 1) if np.ndim(self.score) else count)
            return Predictions(score, np.full(count, self.decision), "probability")
        values = np.full(count, float(self.decision))
        return Predictions(values, values, "number")


def constant_model(problem: Problem, utility: Utility | None = None, X: Any = None) -> ConstantModel:
    """The constant that is best on these rows: the mean or the median; the base rates, with the best decision.

    The median is the constant of least absolute error, the mean that of every other utility of numbers. The decision is
    the most frequent class; of costs and scorers, the class for which they are best.
    """
    labels, classes = problem.labels, problem.scheme.classes
    if labels is None:
        raise DataError("what is best for everyone is told by outcomes; pass y")
    weight = np.ones(len(labels)) if problem.weight is None else problem.weight
    if not classes:
        order = np.argsort(labels)
        below = np.cumsum(weight[order])
        absolute = utility is not None and "absolute" in utility.name
        middle = float(labels[order][np.searchsorted(below, below[-1] / 2)])
        value = middle if absolute else float(np.average(labels, weights=weight))
        return ConstantModel(value, value, f"{value:.4g} for everyone")
    shares = np.bincount(labels, weight, minlength=len(classes)) / weight.sum()
    score = shares if len(classes) > 2 else float(shares[problem.scheme.positive])
    constants = [ConstantModel(score, code, f"“{label}” for everyone") for code, label in enumerate(classes)]
    # At a tie the most frequent class; where that is one too, the positive: a score at the threshold is for.
    constants.sort(key=lambda own: (shares[int(own.decision)], own.decision == problem.scheme.positive), reverse=True)
    if utility is None or utility.name in UTILITIES:
        return constants[0]
    found = [utility.of(own.predictions(len(labels)), problem, X) for own in constants]
    return max(
        zip(constants, found, strict=True), key=lambda pair: -inf if pair[1] is None else utility.worth(pair[1].value)
    )[0]


class Rival(NamedTuple):
    """A utility, and the constant model that is best by it: what a trained model has to beat."""

    utility: Utility
    constant: ConstantModel


def rivals(problem: Problem, *more: Utility, X: Any = None) -> tuple[Rival, ...]:
    """All utilities of this task, and further ones, each with its best constant on these rows."""
    known = {own.name: own for own in (*utilities_for(problem.scheme.classes), *more)}
    return tuple(Rival(own, constant_model(problem, own, X)) for own in known.values())


def decides_alike(
    found: Predictions,
    problem: Problem | None = None,
    *,
    utility: Utility | None = None,
    constant: ConstantModel | None = None,
    X: Any = None,
) -> Mark:
    """Whether these predictions do what a constant could do as well: the mark that they get, empty if none.

    ``ALIKE``: the decisions are the same for everyone; with a utility that looks at scores, or of numbers, the scores.
    (What a scorer looks at is told by its value: one that finds them better than the constant does not mark them.)
    ``NO_BETTER``: the utility is not above that of the constant model by more than chance, that is, the 95 % interval
    of the difference, whose rows are paired, reaches down to 0 (without an interval: the difference is not above 0).
    Without outcomes only the first can be told.

    >>> decides_alike(Predictions(np.array([0.6, 0.7]), np.array([1, 1]), "probability"))
    'decides the same for everyone'
    """
    scores = found.kind == "number" or (utility is not None and utility.needs == "scores")
    values = found.score if scores else found.decision
    alike = bool(len(values) and (values == values[:1]).all())
    if problem is None or constant is None or utility is None:
        return ALIKE if alike else ""
    own, other = utility.of(found, problem, X), utility.of(constant.predictions(len(problem)), problem, X)
    if own is None or other is None:
        return ALIKE if alike else ""
    gain, margin = utility.worth(own.value) - utility.worth(other.value), 0.0
    if own.influence is not None and other.influence is not None:
        error = measures.error_of(own.influence - other.influence, problem.weight)
        margin = _WIDTH * max(error, own.chance)
    return "" if gain > margin else ALIKE if alike else NO_BETTER


UTILITIES: Mapping[str, Utility] = {
    own.name: own
    for own in (
        Utility("accuracy", "Accuracy", least=0.0, most=1.0, measure=measures.accuracy),
        Utility("balanced_accuracy", "Balanced accuracy", least=0.0, most=1.0, measure=measures.balanced_accuracy),
        Utility("auc", "AUC", needs="scores", least=0.0, most=1.0, measure=measures.auc),
        Utility("log_loss", "Log loss", larger_is_better=False, needs="scores", least=0.0, measure=measures.log_loss),
        Utility("brier", "Brier score", larger_is_better=False, needs="scores", least=0.0, measure=measures.brier),
        Utility("r2", "R²", needs="numbers", most=1.0, measure=measures.r2),
        Utility(
            "mean_absolute_error",
            "Mean absolute error",
            larger_is_better=False,
            needs="numbers",
            least=0.0,
            measure=measures.absolute_error,
        ),
        Utility(
            "mean_squared_error",
            "Mean squared error",
            larger_is_better=False,
            needs="numbers",
            least=0.0,
            measure=measures.squared_error,
        ),
    )
}


def _scored(name: str, scorer: Callable[..., float], *, coded: bool = False) -> Utility:
    """A scorer, asked about predictions that are there already.

    ``coded``: of two classes the positive one is called 1 and the other 0, as scikit-learn's own scorers expect, which
    know no other positive class. A scorer of the user's own sees the labels as they are.
    """
    taken = inspect.signature(scorer).parameters
    weighted = "sample_weight" in taken or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())

    def measure(found: Predictions, problem: Problem, X: Any) -> Measured:
        two = coded and len(problem.scheme.classes) == 2
        answers: Any = Decided(found, problem, coded=two) if problem.scheme.classes else Predicted(found, problem)
        labels: Any = np.where(problem.labels == problem.scheme.positive, 1, 0) if two else problem.values
        more: dict[str, Any] = {} if problem.weight is None or not weighted else {"sample_weight": problem.weight}
        try:
            return Measured(float(scorer(answers, X, labels, **more)))
        except (AttributeError, TypeError, ValueError) as error:
            raise DataError(f"the scorer {name!r} cannot judge these models: {error}") from error

    return Utility(name, name.replace("_", " ").capitalize(), measure=measure)
