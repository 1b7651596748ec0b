"""The file of a frontier: figures and models of all outcomes, and the figures that a choice needs.

It has no rows, and reading it runs no code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import ModelFileError
from metrifair.figures.curves import Curves
from metrifair.figures.utility import UTILITIES, Utility
from metrifair.saving.estimators import ESTIMATOR
from metrifair.saving.modelfile import Content, PathLike, add_prefix, strip_prefix, write
from metrifair.saving.models import make_content
from metrifair.saving.records import (
    Amount,
    Arrays,
    Count,
    Positive,
    Record,
    read_record,
)
from metrifair.tradeoff.choice import Chooser
from metrifair.tradeoff.points import ROUNDED_ONE, Job, Outcome, Point
from metrifair.tradeoff.record import FrontierRecord
from metrifair.tradeoff.resamples import ResampledGaps, ResampledUtilities
from metrifair.tradeoff.result import TradeOff

FRONTIER = "frontier"  # the kind of the file


class OutcomeRecord(Record):
    """One configuration and its figures; ``model`` is the content of its own file.

    ``resembles_folds`` and ``tested`` are known of the model, as in ``Outcome``.
    """

    point: Point
    curves: Curves | None
    value: float
    seed: Count
    model: dict[str, Any] | None
    kind: str = ESTIMATOR  # of that file
    resembles_folds: bool = False
    tested: Point | None = None

    def __post_init__(self) -> None:
        """Raise a ValueError for impossible figures, and for curves off their grid."""
        self.point.check()
        if self.tested is not None:
            self.tested.check()
        if self.curves is None:
            return
        density = self.curves.density
        cumulative = self.curves.cumulative
        curves = (*density.values(), *cumulative.values())
        lengths = {len(curve) for curve in curves}
        # small groups have no density
        if not density.keys() <= cumulative.keys() or not lengths <= {len(self.curves.grid)}:
            raise ValueError("its curves do not match their grid")


class UtilityRecord(Record):
    """The utility of a frontier's file; the code has its measure."""

    name: str
    larger_is_better: bool

    def utility(self) -> Utility:
        """The utility of that name, or one with figures only."""
        return UTILITIES.get(self.name) or Utility(self.name, self.larger_is_better)


class ChoiceRecord(Record):
    """What a choice needs beside the arrays ``_ARRAYS``, by configuration."""

    rows: Positive
    noise: Amount
    outcomes: list[Count]  # the place of each configuration among the outcomes
    simplicity: list[Count]
    tier: list[Count]

    def __post_init__(self) -> None:
        """Raise a ValueError for ranks that are none, and for configurations that occur twice."""
        count = len(self.outcomes)
        if len(set(self.outcomes)) < count or sorted(self.simplicity) != list(range(count)):
            raise ValueError("its configurations are not distinct")
        if count == 0 or len(self.tier) != count:
            raise ValueError("its configurations do not have one tier each")


class FrontierFile(Record):
    """The content of a frontier's file, except for its arrays."""

    record: FrontierRecord
    outcomes: list[OutcomeRecord]
    utility: UtilityRecord
    chosen_by: UtilityRecord | None
    choice: ChoiceRecord | None

    def __post_init__(self) -> None:
        change = self.record.change
        reference = None
        if change is not None:
            reference = change.reference
        for point in filter(None, (self.record.constant, self.record.chosen, reference)):
            point.check()
        if self.choice is None:
            return
        for place in self.choice.outcomes:
            if place >= len(self.outcomes) or self.outcomes[place].point.failed:
                raise ValueError("a configuration to choose has no figures")


def _utility_record(utility: Utility) -> UtilityRecord:
    return UtilityRecord(name=utility.name, larger_is_better=utility.larger_is_better)


def write_frontier(path: PathLike, front: TradeOff) -> None:
    """Write figures and models to one file. Models that have not been trained are trained first."""
    front.train_missing()
    arrays: dict[str, NDArray[Any]] = {}
    outcomes = []
    for place, outcome in enumerate(front.outcomes):
        kind = ESTIMATOR
        model = None
        if outcome.model is not None:
            kind, model, model_arrays = make_content(outcome.model)
            arrays |= add_prefix(f"{place}/", model_arrays)
        outcomes.append(
            OutcomeRecord(
                point=outcome.point,
                curves=outcome.curves,
                value=outcome.job.value,
                seed=outcome.job.seed,
                model=model,
                kind=kind,
                resembles_folds=outcome.resembles_folds,
                tested=outcome.tested,
            )
        )
    choice = None
    chooser = front.own_chooser
    if chooser is not None:
        choice = _choice_record(chooser, front)
        arrays |= add_prefix(_CHOICE_ARRAYS, _choice_arrays(chooser))
    file = FrontierFile(
        record=front.record,
        outcomes=outcomes,
        utility=_utility_record(front.utility),
        chosen_by=None if front.chosen_by is None else _utility_record(front.chosen_by),
        choice=choice,
    )
    write(path, Content(FRONTIER, file.as_json(), arrays))


_CHOICE_ARRAYS = "choice/"  # before the names of their arrays


def _choice_record(chooser: Chooser, front: TradeOff) -> ChoiceRecord:
    places = {outcome.job: place for place, outcome in enumerate(front.outcomes)}
    return ChoiceRecord(
        rows=chooser.rows,
        noise=chooser.gaps.noise,
        outcomes=[places[job] for job in chooser.jobs],
        simplicity=chooser.simplicity.tolist(),
        tier=chooser.tier.tolist(),
    )


def _choice_arrays(chooser: Chooser) -> dict[str, NDArray[Any]]:
    """The figures of all configurations, on all rows and on resamples."""
    gaps = chooser.gaps
    arrays = {
        "gap": gaps.squares,
        "gap/drawn": gaps.drawn,
        "gap/left_out": gaps.left_out,
        "gap/training_errors": gaps.training_errors,
    }
    for name, utility in {"utility": chooser.utility, "accuracy": chooser.accuracy}.items():
        arrays[name] = utility.values
        arrays[f"{name}/drawn"] = utility.drawn
        arrays[f"{name}/left_out"] = utility.left_out
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _chooser(record: ChoiceRecord, arrays: Arrays, outcomes: Sequence[Outcome]) -> Chooser:
    """The choices by the figures of a file."""
    count = len(record.outcomes)
    drawn = arrays.take("gap/drawn", (None, count))
    on_resamples = (len(drawn), count)
    gaps = ResampledGaps(
        squares=arrays.take("gap", (count,)),
        drawn=drawn,
        left_out=arrays.take("gap/left_out", on_resamples),
        training_errors=arrays.take("gap/training_errors", (count,)),
        noise=record.noise,
    )
    largest = max(gaps.squares.max(), drawn.max(initial=0.0), gaps.left_out.max(initial=0.0))
    if len(drawn) < 2 or largest > ROUNDED_ONE or gaps.training_errors.min() < 0:
        raise ModelFileError("the figures that a choice needs are outside of their range")
    utilities = [_read_utility(name, on_resamples, arrays) for name in ("utility", "accuracy")]
    arrays.check_all_taken()
    return Chooser(
        jobs=tuple(outcomes[place].job for place in record.outcomes),
        rows=record.rows,
        gaps=gaps,
        utility=utilities[0],
        accuracy=utilities[1],
        simplicity=np.array(record.simplicity),
        tier=np.array(record.tier),
    )


def _read_utility(name: str, shape: tuple[int, int], arrays: Arrays) -> ResampledUtilities:
    """A utility of all configurations; one without a value has minus infinity everywhere."""
    utility = ResampledUtilities(
        arrays.take(name, shape[1:], finite=False),
        arrays.take(f"{name}/drawn", shape, finite=False),
        arrays.take(f"{name}/left_out", shape, finite=False),
    )
    known = np.isfinite(utility.values)
    for figures in (utility.values, *utility.drawn, *utility.left_out):
        if not np.isfinite(figures[known]).all() or (figures[~known] != -np.inf).any():
            raise ModelFileError(f"the figures of {name} that a choice needs are not numbers")
    return utility


def read_frontier(content: Content, model_in: Callable[[Content], Any]) -> TradeOff:
    """The frontier that ``write_frontier`` wrote; ``model_in`` makes each model from its content."""
    file = read_record(FrontierFile, content.meta, "a frontier")
    outcomes = []
    for place, outcome in enumerate(file.outcomes):
        arrays = strip_prefix(f"{place}/", content.arrays)
        model = None
        if outcome.model is not None:
            model = model_in(Content(outcome.kind, outcome.model, arrays))
        outcomes.append(
            Outcome(
                job=Job(outcome.value, outcome.seed, outcome.point.family),
                point=outcome.point,
                curves=outcome.curves,
                model=model,
                resembles_folds=outcome.resembles_folds,
                tested=outcome.tested,
            )
        )
    chooser = None
    if file.choice is not None:
        figures = Arrays(strip_prefix(_CHOICE_ARRAYS, content.arrays))
        chooser = _chooser(file.choice, figures, outcomes)
    return TradeOff(
        outcomes,
        file.record,
        file.utility.utility(),
        saved_chooser=chooser,
        chosen_by=None if file.chosen_by is None else file.chosen_by.utility(),
    )
