"""A model trained on some rows of a file, judged on others, and, where that is asked for, trained again on all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.cli.training_file import Told, TrainingFile
from metrifair.errors import DataError
from metrifair.provenance import Provenance, SourceFile, made_now
from metrifair.table_model import TableModel
from metrifair.thresholds import ChosenThreshold, Costs, ThresholdRule, choose_threshold
from metrifair.tradeoff.evaluate import Judgement, judged, predictions, small_groups

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Training:
    """What is asked of a training beside the file: shares of rows kept apart, the threshold, whether to train again."""

    test: float  # to judge the model on; 0: none
    validation: float  # to choose the threshold on, where a rule is given
    threshold: float | None = None
    rule: ThresholdRule | None = None
    costs: Costs | None = None
    refit: bool = False


class Parts(NamedTuple):
    """Rows to train on, to choose the threshold on, and to judge the model on; the last two may be empty."""

    train: Rows
    validation: Rows
    test: Rows


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model, what it reaches on rows kept apart, and what to know of them."""

    model: TableModel  # the one to keep
    measured: TableModel  # the one whose figures these are: the same, unless it was trained again
    parts: Parts
    judgement: Judgement | None  # None: no row was kept apart
    chosen: ChosenThreshold | None
    notes: tuple[str, ...]
    unfinished: tuple[str, ...]  # what says that training has not converged


def trained(source: TrainingFile, asked: Training) -> TrainedModel:
    """The model that was asked for."""
    data, seed = source.data, source.options.seed
    parts = _parts(source, asked)
    if len(data.problem.scheme.classes) != 2 and (asked.rule is not None or asked.threshold is not None):
        raise DataError(f"a threshold decides between two classes, which {source.options.label!r} does not have")
    if asked.costs is not None and len(asked.costs) != 2:
        raise DataError("--cost must be 2 rows of 2 costs, by label and decision, in ascending order of the classes")
    notes = list(source.notes)
    held_out = data.held_out(parts.test) if len(parts.test) else None
    if held_out is not None:
        notes.append(small_groups(held_out, "the rows kept apart"))  # refuses rows that lack a group
    (measured, told), chosen = source.fitted(parts.train), None
    if asked.rule is not None:
        part = data.held_out(parts.validation)
        score = predictions(measured, part).score
        chosen = choose_threshold(score, part.problem, rule=asked.rule, costs=asked.costs)
    measured = replace(measured, threshold=asked.threshold if chosen is None else chosen.threshold)
    judgement = None
    if held_out is not None:
        training = data.held_out(parts.train)
        utility = None if chosen is None else chosen.utility
        judgement = judged(measured, held_out, training, strength=source.estimator.strength, seed=seed, utility=utility)
    model = measured
    if asked.refit and len(parts.train) < len(data.rows):
        again, more = source.fitted(data.rows)
        model = replace(again, threshold=measured.threshold)
        told = Told(*(list(dict.fromkeys([*one, *other])) for one, other in zip(told, more, strict=True)))
    known = tuple(note for note in (*notes, *told.notes) if note)
    return TrainedModel(model, measured, parts, judgement, chosen, known, tuple(told.unfinished))


def _parts(source: TrainingFile, asked: Training) -> Parts:
    """All three parts have the same mix of groups and labels where their numbers allow it."""
    data, seed = source.data, source.options.seed
    none = data.rows[:0]
    validation = 0.0 if asked.rule is None else asked.validation
    if validation and asked.test:
        if validation + asked.test >= 1:
            raise DataError(f"--test {asked.test:g} and --validation {validation:g} leave no rows to train on")
        return Parts(*data.split(validation, asked.test, seed))
    apart = validation or asked.test
    if not apart:
        return Parts(data.rows, none, none)
    _, train, others = data.split(1 - apart, apart, seed, train=False)
    return Parts(train, others, none) if validation else Parts(train, none, others)


def provenance_of(source: TrainingFile, files: Sequence[SourceFile], call: str) -> Provenance:
    """Where figures come from: the files, their rows and columns, and the command."""
    options = source.options
    return Provenance(
        title=options.title or "",
        about=dict(options.about),
        files=files,
        rows_read=len(source.table) + source.left_out,
        left_out={
            "without a label": source.left_out,
            "of weight 0": len(source.table) - len(source.data.rows),
        },
        columns={
            "label": [options.label],
            "group": options.group,
            "control": options.control,
            "weight": [options.weight] if options.weight else [],
            "id": options.ids,
            "feature": source.features.columns,
        },
        call=call,
        seed=options.seed,
        **made_now(),
    )
