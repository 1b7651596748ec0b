"""All that rows kept apart tell of one model: its figures, those of each group, and what chance alone would show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metrifair.measures import Predictions
from metrifair.results import Point
from metrifair.tradeoff.evaluate import is_overfit, point_of, predictions, unfairness_by_chance
from metrifair.tradeoff.split import HeldOut
from metrifair.utility import UTILITIES, Utility, rivals


@dataclass(frozen=True)
class GroupFigures:
    """What a model reaches within one group."""

    attribute: str
    group: str
    rows: int
    figures: Mapping[str, float | None]  # by name; None where so few rows do not tell it


@dataclass(frozen=True)
class Judgement:
    """A model on rows that it was not trained on, beside those that it was."""

    point: Point
    training: Point
    chance: float  # unfairness of the scores that groups of equal distributions would show on so few rows
    constant: Point  # the best model that says the same of everyone, on the rows kept apart
    constant_text: str  # what it says
    groups: tuple[GroupFigures, ...]


def judged(
    model: Any, held_out: HeldOut, training: HeldOut, *, strength: float, seed: int, utility: Utility | None = None
) -> Judgement:
    """The figures of a model on rows kept apart; ``training`` are those it was trained on.

    ``utility`` is what it has to be good at, if not accuracy: one more figure, and by it the constant is the best.
    """
    more = () if utility is None else (utility,)
    against, chance = rivals(training.problem, *more), unfairness_by_chance(held_out)

    def point(found: Predictions, part: HeldOut) -> Point:
        return point_of(found, part, strength=strength, seed=seed, against=against)

    found, taught = (predictions(model, part) for part in (held_out, training))
    reached = point(found, held_out)
    if not reached.failed and is_overfit(taught, training, found, held_out, least=chance):
        reached = replace(reached, overfit=True)
    constant = next((one.constant for one in against if one.utility == utility), against[0].constant)
    return Judgement(
        point=reached,
        training=point(taught, training),
        chance=chance,
        constant=point(constant.predictions(len(held_out.problem)), held_out),
        constant_text=constant.text,
        groups=group_figures(found, held_out),
    )


def group_figures(found: Predictions, part: HeldOut) -> tuple[GroupFigures, ...]:
    """The figures of every group of every attribute, in the order of its names.

    Of two classes: base rate (share of the positive label), mean score, decision rate (share of decisions for it),
    accuracy and AUC; of more, accuracy and AUC; of numbers, mean outcome, mean prediction and R2.
    """
    return tuple(
        GroupFigures(attribute, group, int(own.sum()), _figures(found, part, own))
        for attribute, groups in part.members.items()
        for group, own in groups.items()
    )


def _figures(found: Predictions, part: HeldOut, own: Any) -> dict[str, float | None]:
    names = ("r2",) if part.regression else ("accuracy", "auc")
    if not own.any():
        return dict.fromkeys(names)
    problem = part.problem.take(np.flatnonzero(own))
    inside = Predictions(found.score[own], found.decision[own], found.kind)
    values: dict[str, Any] = {}
    if part.regression:
        values = {"mean_outcome": problem.labels, "mean_prediction": inside.score}
    elif len(problem.scheme.classes) == 2:
        decided = inside.decision == problem.scheme.positive
        values = {"base_rate": problem.is_positive, "mean_score": inside.score, "decision_rate": decided}
    figures: dict[str, float | None] = {
        name: float(np.average(column, weights=problem.weight)) for name, column in values.items()
    }
    for name in names:
        measured = UTILITIES[name].of(inside, problem)
        figures[name] = None if measured is None else measured.value
    return figures
