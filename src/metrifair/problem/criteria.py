"""What an output means (loss and link), and what is compared between groups (a score, sets of samples); as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, pairwise
from math import log
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from metrifair.errors import DataError
from metrifair.problem.values import number_name
from metrifair.support.arrays import Booleans, Integers
from metrifair.support.checks import check_known

ScoreName: TypeAlias = Literal["prediction", "output", "loss", "log_prediction"]
ScoreFunction: TypeAlias = Callable[[Tensor, Tensor], Tensor]  # (prediction, y) -> score
Penalize: TypeAlias = Literal["prediction", "output"]

_ROUNDINGS = 16.0  # of the last digit, that a loss may be off
_SMALLEST_PROBABILITY = 1e-12  # so that a prediction of 0 or 1 has a finite output


@dataclass(frozen=True)
class Task:
    """Loss and link; both act along the sample axis and keep leading (model) axes."""

    name: str
    loss: Callable[[Tensor, Tensor], Tensor]  # (output, y) -> loss per sample (..., n), never averaged
    prediction: Callable[[Tensor], Tensor]  # output -> what a person receives
    log_prediction: Callable[[Tensor], Tensor]
    output: Callable[[Tensor], Tensor]  # prediction -> output
    vector: bool = False  # outputs and predictions are (..., n, classes)


def _log_loss(output: Tensor, y: Tensor) -> Tensor:
    # softplus(-output) if y = 1, softplus(output) if y = 0: one stable function for both.
    return functional.softplus(output) - y * output


def _softmax_loss(output: Tensor, y: Tensor) -> Tensor:
    chosen = y.long().expand(output.shape[:-1]).unsqueeze(-1)
    return -functional.log_softmax(output, -1).gather(-1, chosen).squeeze(-1)


def _logit(prediction: Tensor) -> Tensor:
    return torch.logit(prediction, eps=max(_SMALLEST_PROBABILITY, torch.finfo(prediction.dtype).eps))


def _log_clipped(prediction: Tensor) -> Tensor:
    return prediction.clamp_min(_SMALLEST_PROBABILITY).log()


def _same(values: Tensor) -> Tensor:
    return values


def _squared_error(output: Tensor, y: Tensor) -> Tensor:
    return (output - y).square()


def _absolute_error(output: Tensor, y: Tensor) -> Tensor:
    return (output - y).abs()


def _huber(output: Tensor, y: Tensor) -> Tensor:
    """Quadratic within 1 of the target (which estimators standardize), linear beyond."""
    error = (output - y).abs()
    return torch.where(error <= 1, error.square() / 2, error - 0.5)


BINARY = Task("binary", _log_loss, torch.sigmoid, functional.logsigmoid, _logit)
MULTICLASS = Task(
    "multiclass",
    _softmax_loss,
    partial(functional.softmax, dim=-1),
    partial(functional.log_softmax, dim=-1),
    _log_clipped,
    vector=True,
)
REGRESSION_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "squared_error": _squared_error,
    "absolute_error": _absolute_error,
    "huber": _huber,
}


def regression(loss: str = "squared_error") -> Task:
    """A regression task with one of the three losses.

    >>> regression("huber").loss(torch.tensor([0.5, 3.0]), torch.zeros(2))
    tensor([0.1250, 2.5000])
    """
    check_known("loss", loss, REGRESSION_LOSSES)
    return Task("regression", REGRESSION_LOSSES[loss], _same, _log_clipped, _same)


def constant_output(task: Task, y: Tensor, weight: Tensor, outputs: int, *, added: float = 0.5) -> Tensor:
    """The output that a model which knows nothing else gives for these samples, (outputs,): base rates, or the mean.

    Half a sample of every class is added, or another part of one, so that no class is certain or impossible.

    >>> constant_output(BINARY, torch.tensor([1.0, 1.0, 1.0, 0.0]), torch.ones(4), 1).sigmoid()     # 3.5 of 5
    tensor([0.7000])
    """
    share = weight / weight.mean()
    if task.name == "regression":
        return (share * y).mean().unsqueeze(0)
    counts = torch.zeros(max(2, outputs), dtype=share.dtype).index_add_(0, y.long(), share) + added
    logs = (counts / counts.sum()).log()
    return logs - logs.mean() if outputs > 1 else (logs[1] - logs[0]).unsqueeze(0)


def tied(losses: Tensor, loss: str, size: float) -> Tensor:
    """Losses (n,), where those that only rounding tells apart are equal; ``size`` is that of the largest number given.

    A prediction of 0.3 for the label 1 is as wrong as one of 0.7 for the label 0, but 1 - 0.7 is not 0.3 to the last
    digit, and its logarithm magnifies the difference. Comparing distributions asks which losses are equal.

    >>> tied(torch.tensor([0.5, 2.0, 0.5 + 1e-16], dtype=torch.float64), "absolute_error", 2.0)
    tensor([0.5000, 2.0000, 0.5000], dtype=torch.float64)
    """
    distinct, place = losses.unique(return_inverse=True)
    slope = {"log_loss": distinct.exp(), "squared_error": 2 * distinct.sqrt()}.get(loss, torch.ones_like(distinct))
    off = slope * size + (-log(_SMALLEST_PROBABILITY) if loss == "log_loss" else distinct)
    apart = distinct.diff() > _ROUNDINGS * torch.finfo(losses.dtype).eps * off[1:]
    first = torch.cat([torch.ones(1, dtype=torch.bool), apart])
    merged: Tensor = distinct[first][first.cumsum(0) - 1]
    return merged[place]


@dataclass(frozen=True)
class Criterion:
    """A score, and the sets of samples within which its distribution should not depend on the group.

    Parameters
    ----------
    name : str
        What it is called in messages and reports.
    score : {"prediction", "output", "loss", "log_prediction"} or callable, default="prediction"
        What is compared. A function is given the prediction and the outcome: of two classes the positive one's
        probability, and 1 where the label is the positive one.
    labels : {"positive", "negative", "every"}, default=None
        The sets by label, "every" being one set for each; without it there is one set, everyone.
    bins : tuple of float, default=None
        Cuts a regression target into labels; the highest bin is the positive one.
    sets : callable, default=None
        Maps the outcomes, an array (n,), to a boolean membership (n, J).
    set_names : tuple of str, default=()
        A name for each of the J columns of ``sets``.
    strata : bool, default=False
        Asks for ``control_features``, with which the sets of any criterion can be intersected.

    Examples
    --------
    >>> EQUAL_OPPORTUNITY == Criterion("equal_opportunity", labels="positive")
    True
    >>> from dataclasses import replace
    >>> replace(EQUALIZED_ODDS, bins=(10.0,)).needs_labels
    True
    """

    name: str
    score: ScoreName | ScoreFunction = "prediction"
    labels: Literal["positive", "negative", "every"] | None = None
    bins: tuple[float, ...] | None = None
    sets: Callable[[NDArray[Any]], NDArray[np.bool_]] | None = None
    set_names: tuple[str, ...] = ()
    strata: bool = False

    @property
    def needs_labels(self) -> bool:
        """True where the sets depend on the label."""
        return self.labels is not None or self.sets is not None


STATISTICAL_PARITY = Criterion("statistical_parity")
EQUAL_OPPORTUNITY = Criterion("equal_opportunity", labels="positive")
PREDICTIVE_EQUALITY = Criterion("predictive_equality", labels="negative")
EQUALIZED_ODDS = Criterion("equalized_odds", labels="every")
RISK_PARITY = Criterion("risk_parity", score="loss")
CONDITIONAL_STATISTICAL_PARITY = Criterion("conditional_statistical_parity", strata=True)

CRITERIA = {
    criterion.name: criterion
    for criterion in (
        STATISTICAL_PARITY,
        EQUAL_OPPORTUNITY,
        PREDICTIVE_EQUALITY,
        EQUALIZED_ODDS,
        RISK_PARITY,
        CONDITIONAL_STATISTICAL_PARITY,
    )
}


OTHER_NAMES = {
    "demographic_parity": "statistical_parity",
    "independence": "statistical_parity",
    "separation": "equalized_odds",
    "true_positive_rate_parity": "equal_opportunity",
    "false_positive_rate_parity": "predictive_equality",
}
"""What other libraries and texts call the criteria; taken wherever a criterion is named."""


def usual_name(name: str) -> str:
    """The name by which `CRITERIA` knows a criterion that others call so; any other text is itself.

    >>> usual_name("demographic_parity"), usual_name("equal_opportunity")
    ('statistical_parity', 'equal_opportunity')
    """
    return OTHER_NAMES.get(name, name) if isinstance(name, str) else name


def criterion_named(criterion: str | Criterion) -> Criterion:
    """The criterion of that name, or of one of `OTHER_NAMES`; a criterion is itself.

    Parameters
    ----------
    criterion : str or Criterion
        A name, or a criterion.

    Returns
    -------
    Criterion
        The criterion.

    Raises
    ------
    DataError
        If no criterion has this name.

    Examples
    --------
    >>> criterion_named("equal_opportunity").labels
    'positive'
    >>> criterion_named("demographic_parity") == STATISTICAL_PARITY
    True
    """
    if isinstance(criterion, Criterion):
        return criterion
    name = usual_name(criterion)
    check_known("criterion", name, CRITERIA, otherwise="a Criterion")
    return CRITERIA[name]


def scores(criterion: Criterion, task: Task, output: Tensor, y: Tensor, *, penalize: Penalize = "prediction") -> Tensor:
    """What the criterion compares, from what the model returns: (..., n), or (..., n, classes)."""
    check_known("penalize", penalize, ("prediction", "output"))
    if not callable(criterion.score):
        check_known("score", criterion.score, ("prediction", "output", "loss", "log_prediction"))
    if criterion.score != "prediction" and penalize != "prediction":
        raise DataError(
            f"penalize={penalize!r} applies where the score is the prediction; {criterion.name} compares "
            f"{criterion.score if isinstance(criterion.score, str) else 'a score of its own'}: leave penalize as it is"
        )
    if callable(criterion.score):
        return criterion.score(task.prediction(output), y)
    if criterion.score == "loss":
        return task.loss(output, y)
    if criterion.score == "log_prediction":
        return task.log_prediction(output)
    return output if "output" in (criterion.score, penalize) else task.prediction(output)


_MOST_OVERLAPPING_SETS = 12


Conditions: TypeAlias = tuple[tuple[str, object], ...]
"""What the samples of a set have in common: pairs of a column, or "label", and its value; a tuple: one of its values.

A boolean mask, or a set of a criterion's own, is a column whose value is True. Everyone has no conditions.
"""


class Strata(NamedTuple):
    """Sets given by the user: which ones each stratum belongs to. Stratum -1 belongs to none."""

    member: Booleans  # (strata, sets)
    names: tuple[str, ...]
    values: tuple[object, ...] | None = None  # what a sample of each stratum shows; None: its membership of the sets
    conditions: tuple[Conditions, ...] = ()  # of each set


def separate_strata(
    names: Sequence[str],
    values: Sequence[object] | None = None,
    conditions: Sequence[Conditions] | None = None,
) -> Strata:
    """Strata that are themselves the sets."""
    return Strata(
        np.eye(len(names), dtype=np.bool_),
        tuple(names),
        None if values is None else tuple(values),
        tuple(((name, True),) for name in names) if conditions is None else tuple(conditions),
    )


def overlapping_strata(names: Sequence[str]) -> Strata:
    """Every combination of sets that may overlap; stratum numbers are ``stratum_of`` their membership."""
    if len(names) > _MOST_OVERLAPPING_SETS:
        raise DataError(f"at most {_MOST_OVERLAPPING_SETS} overlapping sets can be told apart, got {len(names)}")
    patterns = np.arange(2 ** len(names))[:, None] >> np.arange(len(names))
    return Strata((patterns & 1).astype(np.bool_), tuple(names), conditions=tuple(((name, True),) for name in names))


def stratum_of(membership: Booleans) -> Integers:
    """The number of the combination of overlapping sets that each row (n, sets) belongs to."""
    code: Integers = membership.astype(np.int64) @ (2 ** np.arange(membership.shape[1]))
    return code


EVERYONE = separate_strata(["everyone"], conditions=[()])
LABEL = "label"
"""The name of the outcome in conditions."""


def sets_of(criterion: Criterion, classes: Sequence[object], positive: int) -> Strata:
    """The sets within which a criterion compares, by label."""
    if criterion.sets is not None:
        return overlapping_strata(criterion.set_names)
    if criterion.labels is None:
        return EVERYONE
    if criterion.bins is not None:
        every = _sets_by_bin([number_name(cut) for cut in criterion.bins])
        positive = len(criterion.bins)  # the highest values
    else:
        labels = [((LABEL, label),) for label in classes]
        every = separate_strata([f"y={label}" for label in classes], conditions=labels)
    if criterion.labels == "every":
        return every
    chosen = (np.arange(len(every.names)) == positive) == (criterion.labels == "positive")
    if chosen.sum() == 1:
        place = int(chosen.argmax())
        name, conditions = every.names[place], every.conditions[place]
    elif criterion.bins is not None:
        highest = number_name(criterion.bins[-1])
        name, conditions = f"y<{highest}", ((LABEL, f"<{highest}"),)
    else:
        name, conditions = f"y≠{classes[positive]}", ((LABEL, tuple(compress(classes, chosen))),)
    return Strata(chosen[:, None], (name,), conditions=(conditions,))


def _sets_by_bin(cuts: Sequence[str]) -> Strata:
    """One set for each interval between the cuts, which includes its lower cut."""
    names = [f"y<{cuts[0]}", *(f"{low}≤y<{high}" for low, high in pairwise(cuts)), f"y≥{cuts[-1]}"]
    values = [f"<{cuts[0]}", *(f"[{low},{high})" for low, high in pairwise(cuts)), f"≥{cuts[-1]}"]
    return separate_strata(names, conditions=[((LABEL, value),) for value in values])
