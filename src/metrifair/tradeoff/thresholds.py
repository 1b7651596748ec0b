"""The threshold of decisions: fixed, or chosen by a rule on out-of-fold scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrifair.estimators.table_model import Costs, ThresholdRule, choose_threshold
from metrifair.figures.utility import Predictions
from metrifair.problem.problem import Problem
from metrifair.support.arrays import Booleans, Floats, Integers


@dataclass(frozen=True)
class Threshold:
    """A probability of the positive class at which it is decided for; None: a rule of
    ``choose_threshold`` chooses it.
    """

    value: float | None = None
    rule: ThresholdRule = "accuracy"
    costs: Costs | None = None

    def choose(self, score: Floats, problem: Problem) -> float:
        """The threshold by the scores of these rows."""
        if self.value is not None:
            return self.value
        return choose_threshold(score, problem, rule=self.rule, costs=self.costs).threshold

    def out_of_fold(
        self, predictions: Predictions, problem: Problem, fold: Integers
    ) -> Predictions:
        """The predictions, whose decisions in each fold are at the threshold of the other folds."""
        decision = predictions.decision.copy()
        for number in np.unique(fold):
            rows = fold == number
            others = np.flatnonzero(~rows)
            threshold = self.choose(predictions.score[others], problem.take(others))
            decision[rows] = _decisions(predictions.score[rows] >= threshold, problem)
        return predictions._replace(decision=decision)


def decided_at(threshold: float, predictions: Predictions, problem: Problem) -> Predictions:
    """The predictions with decisions at this threshold."""
    return predictions._replace(decision=_decisions(predictions.score >= threshold, problem))


def _decisions(selected: Booleans, problem: Problem) -> Integers:
    """The codes of two classes, by whether a row is selected."""
    positive = problem.scheme.positive
    return np.where(selected, positive, 1 - positive)
