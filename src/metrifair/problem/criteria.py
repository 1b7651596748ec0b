"""What is compared between groups: a score, and sets of samples; as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from metrifair.checks import check_known
from metrifair.errors import DataError
from metrifair.problem.tasks import Task

ScoreName: TypeAlias = Literal["prediction", "output", "loss", "log_prediction"]
ScoreFunction: TypeAlias = Callable[[Tensor, Tensor], Tensor]  # (prediction, y) -> score
Compare: TypeAlias = Literal["prediction", "output"]


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
"""What other libraries and texts call the criteria."""


def criterion_named(criterion: str | Criterion) -> Criterion:
    """The criterion of that name; a criterion is itself.

    >>> criterion_named("equal_opportunity").labels
    'positive'
    >>> criterion_named("demographic_parity")
    Traceback (most recent call last):
    metrifair.errors.DataError: criterion 'demographic_parity' is called 'statistical_parity' here
    """
    if isinstance(criterion, Criterion):
        return criterion
    if isinstance(criterion, str) and criterion in OTHER_NAMES:
        raise DataError(f"criterion {criterion!r} is called {OTHER_NAMES[criterion]!r} here")
    check_known("criterion", criterion, CRITERIA, otherwise="a Criterion")
    return CRITERIA[criterion]


def scores(criterion: Criterion, task: Task, output: Tensor, y: Tensor, *, compare: Compare = "prediction") -> Tensor:
    """What the criterion compares, from what the model returns: (..., n), or (..., n, classes)."""
    check_known("compare", compare, ("prediction", "output"))
    if not callable(criterion.score):
        check_known("score", criterion.score, ("prediction", "output", "loss", "log_prediction"))
    if criterion.score != "prediction" and compare != "prediction":
        raise DataError(
            f"compare={compare!r} applies where the score is the prediction; {criterion.name} compares "
            f"{criterion.score if isinstance(criterion.score, str) else 'a score of its own'}: leave compare as it is"
        )
    if callable(criterion.score):
        return criterion.score(task.prediction(output), y)
    if criterion.score == "loss":
        return task.loss(output, y)
    if criterion.score == "log_prediction":
        return task.log_prediction(output)
    return output if "output" in (criterion.score, compare) else task.prediction(output)
