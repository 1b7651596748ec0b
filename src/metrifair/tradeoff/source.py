"""What a frontier was made of, while it is in memory: rows to judge models on, to write out, and to train on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metrifair.errors import DataError
from metrifair.measures import Predictions
from metrifair.problem.tables import Column, columns
from metrifair.results import Point
from metrifair.tradeoff.evaluate import curves_of, is_overfit, point_of, predictions, worth_of
from metrifair.tradeoff.ledger import Job, Outcome
from metrifair.tradeoff.split import HeldOut, Rows
from metrifair.tradeoff.sweep import Family, RowsToTrain, estimator_at, needs_group
from metrifair.utility import Rival, Utility, rivals


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges models on the rows to choose on and on those to judge the choice on, beside those of their training."""

    training: HeldOut | None  # None where fitted models were handed over
    choosing: HeldOut
    judging: HeldOut
    shown: int  # the seed whose distributions are looked at: one is enough
    against: tuple[Rival, ...]
    others: HeldOut  # the rows to choose on, then those to judge on: all that models are not trained on
    floor: float  # the unfairness of scores that chance alone would show on these

    def __call__(self, model: Any, job: Job) -> Outcome:
        """What this model reaches on each part; None is a model whose training failed."""
        if model is None:
            lost = Point(job.value, job.seed, 0.0, 1.0, failed=True, family=job.family)
            return Outcome(job, lost, lost)
        seen, found = predictions(model, self.choosing), predictions(model, self.judging)
        asks = needs_group(model)
        validation, test = self._point(seen, self.choosing, job, asks), self._point(found, self.judging, job, asks)
        training = None
        if validation.failed or test.failed:
            return Outcome(job, validation, test, model=model)
        if self.training is not None:
            own = predictions(model, self.training)
            training = self._point(own, self.training, job, asks)
            apart = Predictions(
                np.concatenate([seen.score, found.score]), np.concatenate([seen.decision, found.decision]), found.kind
            )
            if not training.failed and is_overfit(own, self.training, apart, self.others, least=self.floor):
                test = replace(test, overfit=True)
        curves = curves_of(found, self.judging) if job.seed == self.shown else None
        return Outcome(job, validation, test, curves, model, training)

    def _point(self, found: Predictions, part: HeldOut, job: Job, asks: bool) -> Point:
        reached = point_of(found, part, strength=job.value, seed=job.seed, against=self.against)
        return replace(reached, family=job.family, needs_group=asks)

    def constant(self, utility: Utility) -> tuple[Point, str]:
        """What the constant model that is best by this utility reaches on the rows to judge on, and what it says."""
        base = self.training or self.choosing
        own = next((rival for rival in self.against if rival.utility is utility), None)
        rival = own or rivals(base.problem, utility, X=base.X)[-1]
        found = rival.constant.predictions(len(self.judging.problem))
        against = self.against if own else (*self.against, rival)
        return point_of(found, self.judging, strength=0.0, seed=0, against=against), rival.constant.text


@dataclass(frozen=True, eq=False)
class Source:
    """Rows, and the families that were trained on some of them."""

    judge: Judge
    test: Rows  # of the table, by number from 0
    families: tuple[Family, ...] = ()  # none where fitted models were handed over
    table: RowsToTrain | None = None  # with all its rows

    def measured(self, outcome: Outcome, utility: Utility) -> Outcome:
        """The outcome with one more utility."""
        if outcome.model is None or outcome.validation.failed:
            return outcome
        base = self.judge.training or self.judge.choosing
        against = rivals(base.problem, utility, X=base.X)[-1:]

        def with_it(own: Point, part: HeldOut) -> Point:
            worth = worth_of(predictions(outcome.model, part), part, against)
            return replace(
                own,
                more={**own.more, **worth.values},
                intervals={**own.intervals, **worth.intervals},
                errors={**own.errors, **worth.errors},
                marks={**own.marks, **worth.marks},
            )

        return replace(
            outcome,
            validation=with_it(outcome.validation, self.judge.choosing),
            test=with_it(outcome.test, self.judge.judging),
        )

    def held_out(self, model: Any) -> dict[str, Column]:
        """What a model says of the test rows: their numbers, groups, labels, predictions and probabilities."""
        part = self.judge.judging
        found = predictions(model, part)
        return {"row": self.test, **held_out_columns(found, part)}

    def refitted(self, job: Job) -> Any:
        """The job's estimator at its value and seed, trained on all rows."""
        if not self.families or self.table is None:
            raise DataError("fitted models were handed over, and nothing is known of how to train them")
        family = next(one for one in self.families if one.name == job.family)
        return estimator_at(family.estimator, family.parameter, job).fit(**self.table.arguments())


def held_out_columns(found: Predictions, part: HeldOut) -> dict[str, Column]:
    """Groups, labels and predictions of rows that a model was not trained on, by name; what ``audit`` asks for."""
    scheme = part.problem.scheme
    named: dict[str, Column] = {}

    def add(name: str, column: Column) -> None:
        while name in named:  # an attribute may have this name
            name += "'"
        named[name] = column

    for name, column in columns("sensitive_features", part.sensitive_features).items():
        add(name, column)
    add("label", np.asarray(part.problem.values))
    classes = np.asarray(scheme.classes)
    add("prediction", classes[found.decision] if scheme.classes else found.score)
    if found.kind == "probability":
        if found.score.ndim == 1:
            add("probability", found.score)
        else:
            for place, label in enumerate(scheme.classes):
                add(f"probability of {label}", found.score[:, place])
    elif found.kind == "output":
        add("score", found.score)
    return named
