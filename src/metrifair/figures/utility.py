"""The utility of a model, by name, by costs or by a scorer, with each row's influence on the value;
the constant predictor, and the models that are not significantly better than it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError
from metrifair.figures.clusters import by_cluster, design_effect, share_size
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import wilson_interval
from metrifair.problem.problem import Problem
from metrifair.support.arrays import Booleans, Floats, distinct_codes
from metrifair.support.checks import check_known, require
from metrifair.support.special import normal_quantile

Mark: TypeAlias = Literal["", "constant", "not_significantly_better"]
UtilityLike: TypeAlias = "str | Utility | Sequence[Sequence[float]] | Callable[..., float]"
"""A utility's name, costs by label and decision, or a scikit-learn scorer, by name or itself."""

CONFIDENCE = 0.95
# the decisions (or, by a utility of scores, the scores) are the same for everyone
CONSTANT: Mark = "constant"
NO_BETTER: Mark = "not_significantly_better"  # than the constant predictor, by the utility
_WIDTH = normal_quantile((1 + CONFIDENCE) / 2)


class Predictions(NamedTuple):
    """Scores and decisions of a model for some rows."""

    # (n,): of the positive of two classes, or a number; (n, classes): of each of several
    score: Floats
    decision: NDArray[Any]  # codes of the classes; of a regressor, the score
    kind: str  # "number", "probability", "output" (a margin) or "decision"

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        """The predictions for several parts of the rows, one after the other."""
        score, decision, kinds = zip(*parts, strict=True)
        return cls(np.concatenate(score), np.concatenate(decision), kinds[0])


class UtilityEstimate(NamedTuple):
    """A utility on some rows, with the contribution of each to its error."""

    value: float
    # (n,), of mean 0: the value is the truth plus their mean; None: not known
    influence: Floats | None = None
    # standard error for a model without information, where the influences do not give it
    chance: float = 0.0

    def error(self, problem: Problem) -> float | None:
        """Standard error of the value on these rows; None if it is not known."""
        if self.influence is None:
            return None
        return _standard_error(self.influence, problem)


UtilityMeasure: TypeAlias = Callable[[Predictions, Problem, Any], UtilityEstimate | None]
"""Predictions, their rows and the features -> the utility; None if such rows do not determine
it.
"""


@dataclass(frozen=True)
class Utility:
    """A measure of a model's quality: its name, which direction is better, how it is computed.

    >>> from metrifair.problem.problem import Inputs, make_problem
    >>> rows = make_problem(Inputs(["no", "yes", "yes"], sensitive_features=["f", "m", "f"]))
    >>> found = Predictions(np.array([0.2, 0.9, 0.4]), np.array([0, 1, 0]), "probability")
    >>> (round(UTILITIES["accuracy"].of(found, rows).value, 3),
    ...  UTILITIES["auc"].of(found, rows).value)
    (0.667, 1.0)
    """

    name: str
    larger_is_better: bool = True
    needs: Literal["decisions", "scores", "numbers"] = "decisions"
    least: float = -inf
    most: float = inf
    # None: a name from a file
    measure: UtilityMeasure | None = field(
        default=None,
        compare=False,
        repr=False,
    )

    def of(
        self,
        predictions: Predictions,
        problem: Problem,
        X: Any = None,
    ) -> UtilityEstimate | None:
        """The utility of these predictions; None if they do not determine it, such as the AUC
        of one class.
        """
        if self.measure is None:
            raise DataError(
                f"how {self.name} is measured is not known here; pass the utility itself"
            )
        return self.measure(predictions, problem, X)

    @property
    def key(self) -> str:
        """Its name in points: accuracy and R2 are the first figure of all."""
        if self.name == "r2":
            return "accuracy"
        return self.name

    def share(self, value: float | None, constant: float | None) -> float:
        """The height in a frontier's area, at most 1: the value; for losses, the share saved of
        the constant's.
        """
        if value is None:
            return 0.0
        if self.larger_is_better:
            return value
        if constant is not None and constant > 0:
            return 1 - value / constant
        return 0.0

    @property
    def sign(self) -> float:
        """1 if larger is better, -1 if less is better."""
        if self.larger_is_better:
            return 1.0
        return -1.0

    def quality(self, value: float) -> float:
        """The value, or its negative if less is better: larger is better in any case."""
        return self.sign * value

    def interval(self, estimate: UtilityEstimate, problem: Problem) -> Interval | None:
        """The 95 % confidence interval: Wilson's for accuracy, a normal approximation for
        others.
        """
        if self.name == "accuracy" and problem.weight is None and estimate.influence is not None:
            size: float = len(problem)
            if problem.clusters is not None:
                size = share_size(estimate.influence > 0, np.ones(len(problem)), problem.clusters)
            return wilson_interval(estimate.value, size, CONFIDENCE)
        error = estimate.error(problem)
        if error is None:
            return None
        margin = _WIDTH * error
        return Interval(
            max(self.least, estimate.value - margin), min(self.most, estimate.value + margin)
        )

    def change(
        self,
        before: Predictions,
        after: Predictions,
        problem: Problem,
        X: Any = None,
    ) -> Interval | None:
        """The 95 % confidence interval of the difference of two models on the same rows; None
        if it is not known.
        """
        old = self.of(before, problem, X)
        new = self.of(after, problem, X)
        if old is None or new is None or old.influence is None or new.influence is None:
            return None
        margin = _WIDTH * _standard_error(new.influence - old.influence, problem)
        return Interval(new.value - old.value - margin, new.value - old.value + margin)


def _standard_error(influence: Floats, problem: Problem) -> float:
    """Standard error of a mean of such influences; clusters of rows are independent."""
    weight = _weights(problem)
    errors = weight * influence
    if problem.clusters is not None:
        errors = by_cluster(errors, problem.clusters)
    return float(np.sqrt((errors**2).sum()) / weight.sum())


def _mean(each: Floats, problem: Problem) -> UtilityEstimate:
    """The mean of the rows' contributions."""
    value = float(np.average(each, weights=problem.weight))
    return UtilityEstimate(value, each - value)


def _accuracy(predictions: Predictions, problem: Problem, _: Any) -> UtilityEstimate:
    """Share of right decisions."""
    return _mean((predictions.decision == problem.labels).astype(np.float64), problem)


def _balanced_accuracy(predictions: Predictions, problem: Problem, _: Any) -> UtilityEstimate:
    """Mean over the classes of the share of correct decisions."""
    labels = _labels(problem)
    weight = _weights(problem)
    correct = (predictions.decision == labels).astype(np.float64)
    rows = np.bincount(labels, weight, minlength=len(problem.scheme.classes))
    present = rows > 0
    rates = np.divide(
        np.bincount(labels, weight * correct, minlength=len(rows)),
        rows,
        where=present,
        out=np.zeros_like(rows),
    )
    share = present.sum() * rows[labels] / weight.sum()
    return UtilityEstimate(float(rates[present].mean()), (correct - rates[labels]) / share)


def _columns(predictions: Predictions, problem: Problem) -> tuple[Floats, Booleans]:
    """One column of scores for each class that has one, and the rows of that class."""
    score = predictions.score
    if score.ndim == 2:
        classes = np.arange(score.shape[1])
    else:
        score = score[:, None]
        classes = np.array([problem.scheme.positive])
    return score, _labels(problem)[:, None] == classes


def _auc(predictions: Predictions, problem: Problem, _: Any) -> UtilityEstimate | None:
    """Share of pairs (in the class, not in it) that the score puts in order, ties half; mean over
    the classes.

    With the influences of DeLong, DeLong and Clarke-Pearson (1988), and Mann and Whitney's error
    under chance, times the design effect of clusters on ranks.
    """
    score, is_label = _columns(predictions, problem)
    if (
        not is_label.any(0).all()
        or is_label.all(0).any()
        or (predictions.kind == "decision" and score.shape[1] > 1)
    ):
        return None
    weight = _weights(problem)
    parts = []
    for column, positive in zip(score.T, is_label.T, strict=True):
        place = distinct_codes(column)
        high, low = (np.bincount(place, weight * side) for side in (positive, ~positive))
        # share of the negative rows below each place
        above = (np.cumsum(low) - low / 2) / low.sum()
        below = (high.sum() - np.cumsum(high) + high / 2) / high.sum()
        value = float(high @ above / high.sum())
        shares = np.where(positive, high.sum(), low.sum()) / weight.sum()
        influence = (np.where(positive, above[place], below[place]) - value) / shares
        first, second = (
            weight[side].sum() ** 2 / (weight[side] ** 2).sum() for side in (positive, ~positive)
        )
        chance = sqrt((first + second + 1) / (12 * first * second))
        if problem.clusters is not None:
            both = high + low
            rank = ((np.cumsum(both) - both / 2) / both.sum())[place]
            ranks = _within(rank, positive, weight) / np.where(positive, shares, -shares)
            chance *= sqrt(design_effect(ranks, weight, problem.clusters))
        parts.append(UtilityEstimate(value, influence, chance))
    values, influences, chances = zip(*parts, strict=True)
    return UtilityEstimate(float(np.mean(values)), np.mean(influences, axis=0), max(chances))


def _within(values: Floats, positive: Booleans, weight: Floats) -> Floats:
    """The values less the mean of their side."""
    means = [np.average(values[side], weights=weight[side]) for side in (~positive, positive)]
    return values - np.array(means)[positive.astype(np.int64)]


def _log_loss(predictions: Predictions, problem: Problem, _: Any) -> UtilityEstimate | None:
    """Mean of minus the logarithm of the probability of the outcome.

    By hand, as all of these: of 500 rows, scikit-learn's checks would take 5 ms a model, a fifth of
    a frontier.
    """
    if predictions.kind != "probability":
        return None
    score, is_label = _columns(predictions, problem)
    if score.shape[1] > 1:
        likelihood = score[is_label]
    else:
        likelihood = np.where(is_label, score, 1 - score)[:, 0]
    return _mean(-np.log(likelihood.clip(min=np.finfo(np.float64).eps)), problem)


def _brier(predictions: Predictions, problem: Problem, _: Any) -> UtilityEstimate | None:
    """Mean squared distance of the probabilities from the outcomes; for two classes, of the
    positive one.
    """
    if predictions.kind != "probability":
        return None
    score, is_label = _columns(predictions, problem)
    return _mean(((score - is_label) ** 2).sum(1), problem)


def _r2(predictions: Predictions, problem: Problem, _: Any) -> UtilityEstimate:
    """R2, with the influence of each row on it; 0 if the outcomes are all equal."""
    labels = _labels(problem)
    weight = _weights(problem)
    if np.ptp(labels) == 0:
        return UtilityEstimate(0.0, np.zeros(len(labels)))
    errors = (labels - predictions.score) ** 2
    spread = (labels - np.average(labels, weights=weight)) ** 2
    share = float(np.average(errors, weights=weight) / np.average(spread, weights=weight))
    return UtilityEstimate(
        1 - share, (share * spread - errors) / np.average(spread, weights=weight)
    )


def _absolute_error(predictions: Predictions, problem: Problem, _: Any) -> UtilityEstimate:
    """Mean distance of the predictions from the outcomes."""
    return _mean(np.abs(_labels(problem) - predictions.score), problem)


def _squared_error(predictions: Predictions, problem: Problem, _: Any) -> UtilityEstimate:
    """Mean squared distance of the predictions from the outcomes."""
    return _mean((_labels(problem) - predictions.score) ** 2, problem)


def _labels(problem: Problem) -> NDArray[Any]:
    if problem.labels is None:
        raise DataError("y is required to evaluate models")
    return problem.labels


def _weights(problem: Problem) -> Floats:
    if problem.weight is None:
        return np.ones(len(problem))
    return problem.weight


UTILITIES: Mapping[str, Utility] = {
    utility.name: utility
    for utility in (
        Utility(
            "accuracy",
            least=0.0,
            most=1.0,
            measure=_accuracy,
        ),
        Utility(
            "balanced_accuracy",
            least=0.0,
            most=1.0,
            measure=_balanced_accuracy,
        ),
        Utility(
            "auc",
            needs="scores",
            least=0.0,
            most=1.0,
            measure=_auc,
        ),
        Utility(
            "log_loss",
            larger_is_better=False,
            needs="scores",
            least=0.0,
            measure=_log_loss,
        ),
        Utility(
            "brier",
            larger_is_better=False,
            needs="scores",
            least=0.0,
            measure=_brier,
        ),
        Utility(
            "r2",
            needs="numbers",
            most=1.0,
            measure=_r2,
        ),
        Utility(
            "mean_absolute_error",
            larger_is_better=False,
            needs="numbers",
            least=0.0,
            measure=_absolute_error,
        ),
        Utility(
            "mean_squared_error",
            larger_is_better=False,
            needs="numbers",
            least=0.0,
            measure=_squared_error,
        ),
    )
}


def utilities_for(classes: Sequence[object]) -> tuple[Utility, ...]:
    """The named utilities of such a task; the first is the default."""
    return tuple(
        utility for utility in UTILITIES.values() if (utility.needs == "numbers") != bool(classes)
    )


def as_utility(utility: UtilityLike, *, classes: Sequence[object] = ()) -> Utility:
    """The utility for a task with these classes (none: a number is predicted).

    >>> as_utility("log_loss", classes=("no", "yes")).larger_is_better
    False
    >>> as_utility([[0, 1], [5, 0]], classes=("no", "yes")).name
    'expected_cost'
    >>> as_utility("f1", classes=(0, 1)).name
    'f1'
    >>> as_utility("auto").name
    'r2'
    >>> as_utility("auc")
    Traceback (most recent call last):
    metrifair.errors.DataError: utility 'auc' is of classes, and numbers are predicted here; take
    one of 'r2', ...
    """
    if isinstance(utility, Utility):
        return utility
    if isinstance(utility, str):
        if utility == "auto":
            return utilities_for(classes)[0]
        if utility in UTILITIES:
            names = [name.name for name in utilities_for(classes)]
            if utility not in names:
                of, predicted = ("numbers", "classes") if classes else ("classes", "numbers")
                choices = ", ".join(map(repr, names))
                raise DataError(
                    f"utility {utility!r} is of {of}, and {predicted} are predicted here; take one "
                    f"of {choices}, or a scorer of scikit-learn"
                )
            return UTILITIES[utility]
        scorers = require("sklearn.metrics", extra="train", purpose="a utility of scikit-learn")
        if utility not in scorers.get_scorer_names():
            check_known(
                "utility",
                utility,
                UTILITIES,
                otherwise="a scorer of scikit-learn, or a table of costs",
                also=scorers.get_scorer_names(),
            )
        return _scorer_utility(utility, scorers.get_scorer(utility), coded=True)
    if callable(utility):
        name = getattr(utility, "__name__", None) or getattr(
            getattr(utility, "_score_func", None), "__name__", None
        )
        return _scorer_utility(name or "score", utility)
    return expected_cost(utility, classes)


def expected_cost(costs: Sequence[Sequence[float]], classes: Sequence[object]) -> Utility:
    """The mean cost of the decisions; ``costs[label][decision]``, by the classes in ascending
    order.
    """
    try:
        table = np.array(costs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"utility must be a name, a table of costs or a scorer, got {costs!r}"
        ) from error
    if not classes or table.shape != (len(classes), len(classes)) or not np.isfinite(table).all():
        expected = "a name"
        if classes:
            expected = f"{len(classes)} rows of {len(classes)} finite costs, by label and decision"
        raise DataError(f"utility must be {expected}, got {costs!r}")
    cheapest = (table == table.min(axis=1, keepdims=True)).all(axis=0)
    if cheapest.any():
        decision = classes[int(cheapest.argmax())]
        raise DataError(
            f"costs {table.tolist()!r} make {decision!r} the cheapest decision for every label, so "
            "that no model is "
            "needed; give costs[label][decision], with a wrong decision costing more than a right "
            "one"
        )

    def measure(predictions: Predictions, problem: Problem, _: Any) -> UtilityEstimate:
        return _mean(table[problem.labels, predictions.decision], problem)

    return Utility("expected_cost", larger_is_better=False, measure=measure)


def _scorer_utility(name: str, scorer: Callable[..., float], *, coded: bool = False) -> Utility:
    """A utility that passes predictions to a scorer.

    ``coded``: of two classes the positive one is called 1 and the other 0, as scikit-learn's own
    scorers expect, which have no other positive class. A user's own scorer receives the labels
    unchanged.
    """
    from metrifair.figures.scorers import PredictedClasses, PredictedNumbers  # noqa: PLC0415  (imports scikit-learn)

    parameters = inspect.signature(scorer).parameters
    weighted = "sample_weight" in parameters or any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()
    )

    def measure(predictions: Predictions, problem: Problem, X: Any) -> UtilityEstimate:
        two = coded and len(problem.scheme.classes) == 2
        kind = PredictedClasses if problem.scheme.classes else PredictedNumbers
        labels: Any = problem.values
        if two:
            labels = np.where(problem.labels == problem.scheme.positive, 1, 0)
        more: dict[str, Any] = {}
        if weighted and problem.weight is not None:
            more = {"sample_weight": problem.weight}
        try:
            model = kind(*predictions, problem, coded=two)
            return UtilityEstimate(float(scorer(model, X, labels, **more)))
        except (AttributeError, TypeError, ValueError) as error:
            raise DataError(f"the scorer {name!r} cannot judge these models: {error}") from error

    return Utility(name, measure=measure)


@dataclass(frozen=True)
class ConstantModel:
    """The constant predictor: the base rates with the best class for everyone, or the mean or
    median.

    >>> from metrifair.problem.problem import Inputs, make_problem
    >>> rows = make_problem(Inputs(["no", "yes", "yes"], sensitive_features=["f", "m", "f"]))
    >>> constant = constant_model(rows)
    >>> constant.value, constant.predictions(2).decision
    ('yes', array([1, 1]))
    """

    score: float | Floats
    decision: float
    value: Any  # the label or number that it predicts

    def predictions(self, count: int) -> Predictions:
        """Its predictions for so many rows."""
        if isinstance(self.decision, int):
            score = np.tile(np.asarray(self.score), (count, 1) if np.ndim(self.score) else count)
            return Predictions(score, np.full(count, self.decision), "probability")
        values = np.full(count, float(self.decision))
        return Predictions(values, values, "number")


def constant_model(
    problem: Problem, utility: Utility | None = None, X: Any = None
) -> ConstantModel:
    """The best constant on these rows: the mean or the median; or the base rates, with the best
    decision.

    The median is the constant of least absolute error, the mean that of every other utility of
    numbers. The decision is the most frequent class; of costs and scorers, the class for which they
    are best.
    """
    labels = problem.labels
    classes = problem.scheme.classes
    if labels is None:
        raise DataError("the best constant depends on the outcomes; pass y")
    weight = _weights(problem)
    if not classes:
        order = np.argsort(labels)
        below = np.cumsum(weight[order])
        absolute = utility is not None and "absolute" in utility.name
        middle = float(labels[order][np.searchsorted(below, below[-1] / 2)])
        value = middle
        if not absolute:
            value = float(np.average(labels, weights=weight))
        return ConstantModel(value, value, value)
    shares = np.bincount(labels, weight, minlength=len(classes)) / weight.sum()
    score = shares
    if len(classes) <= 2:
        score = float(shares[problem.scheme.positive])
    constants = [ConstantModel(score, code, label) for code, label in enumerate(classes)]
    # At a tie the most frequent class, and then the positive one: a score at the threshold is a
    # positive decision.
    constants.sort(
        key=lambda model: (shares[int(model.decision)], model.decision == problem.scheme.positive),
        reverse=True,
    )
    if utility is None or utility.name in UTILITIES:
        return constants[0]
    estimates = [utility.of(model.predictions(len(labels)), problem, X) for model in constants]
    return max(
        zip(constants, estimates, strict=True),
        key=lambda pair: -inf if pair[1] is None else utility.quality(pair[1].value),
    )[0]


class Rival(NamedTuple):
    """A utility, and the constant model that is best by it, which a trained model has to beat."""

    utility: Utility
    constant: ConstantModel


def rivals(problem: Problem, *more: Utility, X: Any = None) -> tuple[Rival, ...]:
    """All utilities of this task, and further ones, each with its best constant on these rows."""
    by_name = {utility.name: utility for utility in (*utilities_for(problem.scheme.classes), *more)}
    return tuple(
        Rival(utility, constant_model(problem, utility, X)) for utility in by_name.values()
    )


def constant_mark(
    predictions: Predictions,
    problem: Problem | None = None,
    *,
    utility: Utility | None = None,
    constant: ConstantModel | None = None,
    X: Any = None,
) -> Mark:
    """The mark of predictions that a constant could replace; empty for others.

    ``CONSTANT``: the decisions are the same for everyone; with a utility of scores, or of numbers,
    the scores. (A scorer that rates them above the constant removes the mark.) ``NO_BETTER``: the
    95 % confidence interval of the difference from the constant's utility, over paired rows,
    reaches down to 0 (without an interval: the difference is not above 0). Without outcomes only
    the first is known.

    >>> constant_mark(Predictions(np.array([0.6, 0.7]), np.array([1, 1]), "probability"))
    'constant'
    """
    scores = predictions.kind == "number" or (utility is not None and utility.needs == "scores")
    values = predictions.decision
    if scores:
        values = predictions.score
    mark: Mark = ""
    if len(values) and (values == values[:1]).all():
        mark = CONSTANT
    if problem is None or constant is None or utility is None:
        return mark
    estimate = utility.of(predictions, problem, X)
    baseline = utility.of(constant.predictions(len(problem)), problem, X)
    if estimate is None or baseline is None:
        return mark
    gain = utility.quality(estimate.value) - utility.quality(baseline.value)
    margin = 0.0
    if estimate.influence is not None and baseline.influence is not None:
        error = _standard_error(estimate.influence - baseline.influence, problem)
        margin = _WIDTH * max(error, estimate.chance)
    if gain > margin:
        return ""
    return mark or NO_BETTER
