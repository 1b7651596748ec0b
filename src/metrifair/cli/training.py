"""Train a model on some rows of a file and evaluate it on others; show the results, and write
them as JSON.
"""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from metrifair.cli.console import say, show_table
from metrifair.cli.options import cuts_text, probabilities_text
from metrifair.cli.training_file import TrainingFile, TrainingWarnings
from metrifair.cli.training_options import Training, TrainingOptions
from metrifair.errors import DataError, MetrifairWarning
from metrifair.estimators.table_model import ChosenThreshold, TableModel, choose_threshold
from metrifair.figures.utility import CONSTANT, NO_BETTER, UTILITIES, Predictions, Utility
from metrifair.problem.problem import Problem
from metrifair.report.frontier import frontier_html
from metrifair.report.html import write_html
from metrifair.saving.modelfile import fingerprint
from metrifair.support.provenance import Provenance, made_now
from metrifair.tradeoff.evaluate import Evaluation, evaluate_predictions, predict, small_groups_note
from metrifair.tradeoff.out_of_fold import pooled
from metrifair.tradeoff.points import Job
from metrifair.tradeoff.split import (
    HeldOut,
    Split,
    automatic_folds,
    make_folds,
    with_common_comparisons,
)
from metrifair.wording import frontier as wording
from metrifair.wording.frontier_view import FrontierView, figure_texts
from metrifair.wording.numbers import count_text, figure_text, name_text
from metrifair.wording.terms import term_name

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.api.frontier import Frontier

Rows = NDArray[np.int64]

_TEST = 0.25  # share of held-out rows
_NARROW = 100  # columns of a terminal without room for every figure
_SHOWN = 8  # strengths in a table, about
# beside "Unfairness"
_GAPS = ("decision_unfairness", "four_fifths")


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model, its figures on held-out rows, and the caveats."""

    model: TableModel  # to save
    evaluated: TableModel  # the model of the figures: the same, unless it was trained again
    parts: Split  # validation, on which the threshold is chosen, and test may be empty
    evaluation: Evaluation | None  # None: no rows are held out
    chosen: ChosenThreshold | None
    notes: tuple[str, ...]
    unfinished: tuple[str, ...]  # warnings that training has not converged
    folds: int = 0  # 0: one split
    predictions: Predictions | None = None  # with folds: out of fold, for all rows

    @property
    def utility(self) -> Utility:
        """The utility by which the threshold was chosen, or the accuracy."""
        return _utility(self.chosen) or UTILITIES["accuracy"]


def train_model(source: TrainingFile, training: Training) -> TrainedModel:
    """Train and evaluate the model of the options."""
    data, seed = source.data, source.options.seed
    if len(data.problem.scheme.classes) != 2 and (
        training.rule is not None or training.threshold is not None
    ):
        raise DataError(
            f"a threshold decides between two classes, which {source.options.label!r} does not have"
        )
    if training.costs is not None and len(training.costs) != 2:
        raise DataError(
            "--cost must be 2 rows of 2 costs, by label and decision, in ascending order of the "
            "classes"
        )
    automatic = 0 if training.test is not None else automatic_folds(data, _TEST)
    if count := training.folds or automatic:
        return _cross_fit(source, training, count)
    training = training._replace(test=_TEST if training.test is None else training.test)
    parts = _parts(source, training)
    # This raises an error if a group has no rows.
    both = [parts.test, parts.train] if len(parts.test) else []
    held_out = with_common_comparisons(*map(data.held_out, both))
    evaluated, warned, chosen = _fit(source, training, parts)
    evaluation = None
    if held_out:
        outside, inside = (predict(evaluated, part) for part in held_out)
        job = Job(source.estimator.strength, seed)
        evaluation = evaluate_predictions(
            outside, inside, *held_out, job=job, utility=_utility(chosen)
        )
    model = evaluated
    if training.refit and len(parts.train) < len(data.rows):
        again, more = source.fit(data.rows)
        model = replace(again, threshold=evaluated.threshold)
        warned = warned.with_others(more)
    test_part = np.isin(data.rows, parts.test) - 1
    notes = _notes(
        source, warned, dict(zip(("test", "training"), held_out, strict=False)), test_part
    )
    return TrainedModel(
        model, evaluated, parts, evaluation, chosen, notes, tuple(warned.unfinished)
    )


def _fit(
    source: TrainingFile, training: Training, parts: Split
) -> tuple[TableModel, TrainingWarnings, ChosenThreshold | None]:
    """A model of the training rows, with its threshold; with a rule, it is chosen on validation
    rows.
    """
    (model, warned), chosen = source.fit(parts.train), None
    if training.rule is not None:
        part = source.data.held_out(parts.validation)
        chosen = _choose(training, predict(model, part).score, part.problem)
    return (
        replace(model, threshold=training.threshold if chosen is None else chosen.threshold),
        warned,
        chosen,
    )


def _choose(training: Training, score: Any, problem: Problem) -> ChosenThreshold | None:
    """The threshold that the rule chooses on these rows; None: there is no rule."""
    if training.rule is None:
        return None
    return choose_threshold(score, problem, rule=training.rule, costs=training.costs)


def _notes(
    source: TrainingFile, warned: TrainingWarnings, parts: Mapping[str, HeldOut], test_part: Rows
) -> tuple[str, ...]:
    """The caveats about the file, rows on both sides of the split, small groups and training,
    each once.
    """
    small = small_groups_note(parts) if parts else None
    repeated = source.repeat_texts(test_part) if parts else ()
    texts = (
        *source.notes,
        *repeated,
        "" if small is None else wording.note_text(small),
        *warned.notes,
    )
    return tuple(dict.fromkeys(filter(None, texts)))


def _cross_fit(source: TrainingFile, training: Training, count: int) -> TrainedModel:
    """A model of all rows; its figures and its threshold are of predictions out of fold.

    A rule chooses the threshold of a fold's decisions by the other folds, and that of the model by
    all of them.
    """
    data, seed = source.data, source.options.seed
    (part,) = with_common_comparisons(data.held_out(data.rows))
    all_positions = np.arange(len(data.rows))
    folds = make_folds(data, all_positions, count, seed, "folds")
    parts, warned = [], TrainingWarnings([], [])
    for positions in folds:
        model, more = source.fit(data.rows[np.setdiff1d(all_positions, positions)])
        model = replace(model, threshold=training.threshold)
        parts.append(predict(model, data.held_out(data.rows[positions])))
        warned = warned.with_others(more)
    predictions = pooled(parts, folds)
    chosen = _choose(training, predictions.score, part.problem)
    if chosen is not None:
        predictions = _decided_by_other_folds(training, predictions, part.problem, folds)
    model, more = source.fit(data.rows)
    warned = warned.with_others(more)
    model = replace(model, threshold=training.threshold if chosen is None else chosen.threshold)
    fold = np.empty(len(data.rows), dtype=np.int64)
    for number, positions in enumerate(folds):
        fold[positions] = number
    evaluation = evaluate_predictions(
        predictions,
        predict(model, part),
        part,
        part,
        job=Job(source.estimator.strength, seed),
        utility=_utility(chosen),
        fold=fold,
    )
    notes = _notes(source, warned, {"all": part}, fold)
    used = Split(data.rows, data.rows[:0], data.rows)
    return TrainedModel(
        model, model, used, evaluation, chosen, notes, tuple(warned.unfinished), count, predictions
    )


def _decided_by_other_folds(
    training: Training, predictions: Predictions, problem: Problem, folds: Sequence[Rows]
) -> Predictions:
    """The predictions, with decisions at a threshold that is chosen without the rows of the
    fold.
    """
    positive = problem.scheme.positive
    decision = predictions.decision.copy()
    for positions in folds:
        others = np.setdiff1d(np.arange(len(decision)), positions)
        chosen = _choose(training, predictions.score[others], problem.take(others))
        assert chosen is not None
        selected = predictions.score[positions] >= chosen.threshold
        decision[positions] = np.where(selected, positive, 1 - positive)
    return Predictions(predictions.score, decision, predictions.kind)


def _utility(chosen: ChosenThreshold | None) -> Utility | None:
    """The utility by which a threshold was chosen."""
    return None if chosen is None else chosen.utility


def _parts(source: TrainingFile, training: Training) -> Split:
    """Training, validation and test rows, with the same mix of groups and labels where possible."""
    data, seed = source.data, source.options.seed
    none = data.rows[:0]
    validation = 0.0 if training.rule is None else training.validation
    if validation and training.test:
        if validation + training.test >= 1:
            raise DataError(
                f"--test {training.test:g} and --validation {validation:g} leave no rows to train "
                "on"
            )
        return data.split(validation, training.test, seed)
    share = validation or training.test
    if not share:
        return Split(data.rows, none, none)
    _, train, rest = data.split(1 - share, share, seed, train=False)
    return Split(train, rest, none) if validation else Split(train, none, rest)


_GROUP_FIGURES = (
    "base_rate",
    "mean_score",
    "decision_rate",
    "accuracy",
    "auc",
    "mean_outcome",
    "mean_prediction",
    "r2",
)


def show_model(
    out: Console, source: TrainingFile, result: TrainedModel, written: Sequence[str]
) -> None:
    """Print the file, the model's figures on held-out rows, the caveats, and the lines
    ``written``.
    """
    say(
        out,
        *source.description(result.evaluated.encoder),
        *(f"Note: {note}" for note in result.notes),
    )
    say(out, _rows_sentence(source, result))
    evaluation = result.evaluation
    if evaluation is not None:
        _show_point(out, result, evaluation, source.accuracy_name)
        say(out, wording.chance_text(evaluation.chance, evaluation.comparisons))
        if evaluation.with_small is not None:
            gap, chance = map(figure_text, evaluation.with_small.values())
            say(
                out,
                f"With the groups that were left out, unfairness would be {gap}, and expected by "
                f"chance {chance}.",
            )
        _show_groups(out, evaluation)
    say(
        out,
        *_threshold_sentences(result),
        *(f"Warning: {text}" for text in warnings(source, result)),
        *written,
    )
    if result.model is not result.evaluated:
        fit = (
            ""
            if evaluation is None
            else ": the figures above are those of the fit without held-out rows"
        )
        say(
            out,
            f"The saved model was trained again on all {len(source.data.rows):,} rows "
            f"(--refit){fit}.",
        )


def figures(source: TrainingFile, result: TrainedModel) -> dict[str, Any]:
    """All figures for JSON; those of the point only if rows are held out."""
    parts, evaluation = result.parts._asdict(), result.evaluation
    rows = {
        name: len(numbers)
        for name, numbers in parts.items()
        if len(numbers) or name != "validation"
    }
    values: dict[str, Any] = {}
    if evaluation is not None:
        values = asdict(evaluation)
        values["with_small_groups"] = values.pop("with_small")
        del values["comparisons"]
        values = values.pop("point") | values
    chosen = result.chosen
    return values | {
        "rows": rows,
        "threshold": result.model.threshold,
        "chosen_by": None if chosen is None else chosen.utility.name,
        "refit": len(source.data.rows) if result.model is not result.evaluated else None,
        "folds": result.folds or None,
        "notes": list(result.notes),
        "warnings": list(warnings(source, result)),
    }


def _rows_sentence(source: TrainingFile, result: TrainedModel) -> str:
    parts, strength = result.parts, source.estimator.strength
    if result.folds:
        threshold = (
            "" if result.chosen is None else " The threshold of a fold is chosen without it."
        )
        return (
            f"Trained on all {len(parts.test):,} rows with strength {strength:g}. Figures are of "
            f"all rows: models that were trained without each of {result.folds} folds score its "
            f"rows.{threshold}"
        )
    sentence = f"Trained on {len(parts.train):,} rows with strength {strength:g}"
    if len(parts.validation):
        sentence += f", threshold chosen on {len(parts.validation):,} others"
    if result.evaluation is None:
        return f"{sentence}. No rows were held out (--test 0), so the model has no figures."
    return f"{sentence}, evaluated on {len(parts.test):,} others."


def _show_point(
    out: Console, result: TrainedModel, evaluation: Evaluation, accuracy_name: str
) -> None:
    """Figures on held-out rows, with intervals, next to those on training rows."""
    point, utility = evaluation.point, result.utility
    view, training_view = (
        FrontierView([item], accuracy_name=accuracy_name, utility=utility)
        for item in (point, evaluation.training)
    )
    ((row,), (training_row,)) = view.rows, training_view.rows
    show_table(
        out,
        ["on held-out rows", "value", "95 % interval", "on training rows"],
        [
            [
                view.label(key),
                row.figures[key].text,
                row.figures[key].bounds_text,
                training_row.figures[key].text,
            ]
            for key in view.keys
        ],
    )
    say(out, wording.interval_note(view, point, resampled=bool(result.folds)))


def write_model_page(
    source: TrainingFile, result: TrainedModel, origin: Provenance, path: Path
) -> None:
    """Write the report of one model: the page of a frontier with one point."""
    evaluation = result.evaluation
    if evaluation is None:
        return
    view = FrontierView(
        [evaluation.point],
        chosen=evaluation.point,
        title=source.title,
        accuracy_name=source.accuracy_name,
        notes=[_rows_sentence(source, result), *result.notes, *warnings(source, result)],
        utility=result.utility,
        noise=evaluation.chance,
        constant=evaluation.constant,
        constant_value=evaluation.constant_value,
        test_rows=0 if result.folds else len(result.parts.test),
        provenance=origin,
    )
    write_html(path, frontier_html(view))


def _show_groups(out: Console, evaluation: Evaluation) -> None:
    several = len({group.attribute for group in evaluation.groups}) > 1
    keys = list(dict.fromkeys(key for group in evaluation.groups for key in group.figures))
    keys = [key for key in _GROUP_FIGURES if key in keys]
    show_table(
        out,
        ["Held-out rows of", *map(term_name, ("rows", *keys))],
        [
            [
                name_text(group.group)
                if several
                else f"{group.attribute}: {name_text(group.group)}",
                f"{group.rows:,}",
                *(figure_text(group.figures.get(key)) for key in keys),
            ]
            for group in evaluation.groups
        ],
    )


def warnings(source: TrainingFile, result: TrainedModel) -> Iterator[str]:
    """Warnings about the figures, each with a remedy."""
    yield from result.unfinished
    evaluation = result.evaluation
    if evaluation is None:
        return
    point, constant = evaluation.point, evaluation.constant
    # A threshold that was chosen by another utility than accuracy is evaluated by that utility.
    utility = result.utility
    name = source.accuracy_name if utility.key == "accuracy" else term_name(utility.name).lower()
    decided, ranked = point.marks.get(utility.key, ""), point.marks.get("auc", "")
    auc = f"AUC {figure_text(point.more.get('auc'))}"
    if CONSTANT in (decided, point.marks.get("accuracy")):
        decided = CONSTANT
        yield (
            f"the model {wording.mark_text(CONSTANT)}: equal decision rates and a four-fifths "
            "ratio of 1 are then no "
            "sign of fairness."
        )
    elif decided == NO_BETTER:
        constant_text = wording.constant_text(evaluation.constant_value)
        yield (
            f"by {name}, {figure_text(point.figure(utility.key))}, the model "
            f"{wording.mark_text(NO_BETTER)}: "
            f"{constant_text} has {figure_text(constant.figure(utility.key))}."
        )
    if ranked:
        yield (
            f"its scores rank people no better than chance ({auc}): small gaps between groups are "
            "then no sign of "
            "fairness. Lower --strength, or add features that are related to the outcome."
        )
    elif decided and "auc" in point.more and result.model.threshold is None:
        yield f"its scores do rank people ({auc}): choose another threshold with --choose-threshold."
    if point.overfit:
        yield (
            f"unfairness is {figure_text(point.unfairness)} on held-out rows and "
            f"{figure_text(evaluation.training.unfairness)} on training rows, a significant "
            "difference: the model is "
            "overfit. Use fewer leaves, a smaller network, more rows or a larger strength."
        )


def _threshold_sentences(result: TrainedModel) -> list[str]:
    chosen, threshold = result.chosen, result.model.threshold
    if threshold is None or result.model.classes is None:
        return []
    label = result.model.classes[result.model.positive]
    rule = f"Decisions: “{label}” at a probability of at least {threshold:.4g}"
    if chosen is None:
        return [f"{rule}, as requested; predict uses it too."]
    gap = "" if chosen.gap is None else f", decision gap {figure_text(chosen.gap)}"
    figures = f"{term_name(chosen.utility.name)} {figure_text(chosen.value)}{gap}"
    where = f"{len(result.parts.validation):,} other rows"
    if result.folds:
        where = f"all {len(result.parts.test):,} rows by scores out of fold"
    return [f"{rule}, chosen on {where} ({figures} there); predict uses it too."]


def write_held_out(
    source: TrainingFile,
    model: TableModel,
    rows: Rows,
    path: Path,
    *,
    final: TableModel | None,
    predictions: Predictions | None = None,
) -> list[str]:
    """Write predictions of held-out rows. Return lines with their file and the command that audits
    them.

    ``final`` is the saved model, if any. ``predictions`` are by models that were trained without
    each fold, in place of the model's.
    """
    options, shown = source.options, source.predictions(model, rows, predictions)
    table = shown.table
    again = final is not None and (final is not model or predictions is not None)
    refit = fingerprint(final._content()) if again and final is not None else None
    model_hash = fingerprint(model._content()) if predictions is None else None
    shown.write(path, model=model_hash, rows="held_out", sources=source.files, refit=refit)
    which = (
        "that the model has not seen"
        if predictions is None
        else "by models that have not seen them"
    )
    lines = [f"Held-out predictions: {path} ({count_text(len(rows), 'row')} {which})."]
    several = model.classes is not None and len(model.classes) > 2
    if several and not model.has_probabilities:
        return lines
    place = model.positive - len(model.classes) if several and model.classes is not None else -1
    is_stated = several or options.positive is not None or model.positive == 0
    audit_options = {
        "--score": [table.columns[place]],
        "--group": options.group,
        **_proxy_words(options),
        # With fewer rows, a number might be classified as groups.
        "--continuous": options.continuous or source.estimator.continuous or (),
        "--cuts": [cuts_text(column, cuts) for column, cuts in options.cuts],
        **{f"--{role}": options.roles[role] for role in ("control", "weight", "label")},
        "--positive": [str(model.classes[model.positive])]
        if model.classes is not None and is_stated
        else [],
        "--threshold": [] if model.threshold is None else [repr(model.threshold)],
    }
    words = [
        part
        for option, values in audit_options.items()
        for value in values
        for part in (option, value)
    ]
    likewise = " (and the other classes likewise)" if several else ""
    return [
        *lines,
        f"Audit them{likewise}: metrifair audit {' '.join(map(quote, [str(path), *words]))}",
    ]


def _proxy_words(options: TrainingOptions) -> dict[str, list[str]]:
    """Options of an audit for probabilities in place of groups."""
    if options.group_probabilities is None:
        return {}
    words = {"--known-group": options.known_group, "--proxy-labels": options.proxy_labels}
    return {"--group-probabilities": [probabilities_text(*options.group_probabilities)]} | {
        option: [word] for option, word in words.items() if word is not None
    }


def select_model(front: Frontier, **limits: Any) -> Any:
    """The selected model, without warnings: ``show_frontier`` prints them."""
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore", MetrifairWarning)
        return front.select(**limits)


def show_frontier(out: Console, front: Frontier) -> None:
    """Print the headline, then a table and the notes."""
    say(out, *wording.headline(front.view()))
    show_strengths(out, front)


def show_strengths(out: Console, front: Frontier) -> None:
    """A few strengths, mean over seeds, with the chosen one among them; then the notes."""
    view = front.view()
    chosen = None if view.chosen is None else view.chosen.place
    named = wording.named_places(view)
    step = max(1, len(view.rows) // _SHOWN)
    shown = [
        row
        for place, row in enumerate(view.rows)
        if row.place in named or (row.on_front if view.parameters else place % step == 0)
    ]
    keys = [key for key in dict.fromkeys((view.key, "accuracy", "auc")) if key in view.keys]
    gaps = [key for key in _GAPS if key in view.keys]
    by_group = any(row.needs_group for row in view.rows)
    if out.width < _NARROW:  # room for the most important ones only
        gaps = []
    rows = [
        [
            f"{row.text}{' (chosen)' if row.place == chosen else ''}{' *' if wording.row_note(row) else ''}",
            *(["needed" if row.needs_group else ""] if by_group else []),
            *(row.figures[key].text for key in (*keys, "unfairness")),
            *(row.figures[key].text for key in gaps),
        ]
        for row in shown
    ]
    if view.baseline is not None:
        texts = figure_texts(view, replace(view.baseline, intervals={}))
        cells = [
            *(texts[key] for key in (*keys, "unfairness")),
            *(texts[key] for key in gaps),
        ]
        rows.append(["constant", *([""] if by_group else []), *cells])
    headings = [view.label(key) for key in (*keys, "unfairness", *gaps)]
    first = [
        "on the Pareto front" if view.parameters else front.parameter,
        *(["group"] if by_group else []),
    ]
    show_table(out, [*first, *headings], rows, left=len(first))
    say(out, *wording.row_notes(view, shown))
    say(out, wording.shown_note(view, len(shown)), *wording.remarks(view), *view.notes)


def training_provenance(source: TrainingFile, call: str) -> Provenance:
    """The provenance of the figures: the files, their rows and columns, and the command."""
    options = source.options
    return Provenance(
        title=options.title or "",
        about=dict(options.about),
        files=source.files,
        rows_read=len(source.table) + source.left_out,
        left_out={
            "missing_label": source.left_out,
            "zero_weight": len(source.table) - len(source.data.rows),
        },
        columns={
            **{
                role: options.roles[role]
                for role in ("label", "group", "control", "weight", "cluster", "id")
            },
            "feature": source.features.columns,
        },
        call=call,
        seed=options.seed,
        **made_now(),
    )
