"""Train a model on some rows of a file and evaluate it on others; show the results, and write them as JSON."""

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
from metrifair.cli.options import cuts_text
from metrifair.cli.training_file import TrainingFile, TrainingWarnings
from metrifair.cli.training_options import Training, TrainingOptions
from metrifair.errors import DataError, MetrifairWarning
from metrifair.estimators.table_model import ChosenThreshold, TableModel, choose_threshold
from metrifair.figures.utility import CONSTANT, NO_BETTER, UTILITIES, Predictions, Utility
from metrifair.report.frontier import frontier_html
from metrifair.report.html import write_html
from metrifair.saving.modelfile import fingerprint
from metrifair.support.provenance import Provenance, made_now
from metrifair.tradeoff.evaluate import Evaluation, evaluate_predictions, predict, small_groups_note
from metrifair.tradeoff.frontier import automatic_test_folds
from metrifair.tradeoff.points import Job
from metrifair.tradeoff.result import in_row_order
from metrifair.tradeoff.split import HeldOut, Split, outer_splits, with_common_comparisons
from metrifair.wording import frontier as wording
from metrifair.wording.frontier_view import FrontierView, figure_name, figure_texts
from metrifair.wording.numbers import figure_text

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.api.frontier import Frontier

Rows = NDArray[np.int64]

_TEST = 0.25  # share of held-out rows
_NARROW = 100  # columns of a terminal without room for every figure
_SHOWN = 8  # strengths in a table, about
_SHORT = {"decision_unfairness": "of decisions", "four_fifths": "four-fifths"}  # beside "Unfairness"


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model, its figures on held-out rows, and the caveats."""

    model: TableModel  # the one to keep
    measured: TableModel  # the one whose figures these are: the same, unless it was trained again
    parts: Split  # validation, on which the threshold is chosen, and test may be empty
    evaluation: Evaluation | None  # None: no rows are held out
    chosen: ChosenThreshold | None
    notes: tuple[str, ...]
    unfinished: tuple[str, ...]  # warnings that training has not converged
    test_folds: int = 0  # 0: one split
    unseen: Predictions | None = None  # with test folds: predictions for all rows

    @property
    def utility(self) -> Utility:
        """The utility by which the threshold was chosen, or the accuracy."""
        return _utility(self.chosen) or UTILITIES["accuracy"]


def trained(source: TrainingFile, asked: Training) -> TrainedModel:
    """The model that was asked for."""
    data, seed = source.data, source.options.seed
    if len(data.problem.scheme.classes) != 2 and (asked.rule is not None or asked.threshold is not None):
        raise DataError(f"a threshold decides between two classes, which {source.options.label!r} does not have")
    if asked.costs is not None and len(asked.costs) != 2:
        raise DataError("--cost must be 2 rows of 2 costs, by label and decision, in ascending order of the classes")
    automatic = 0 if asked.test is not None else automatic_test_folds(data, _TEST)
    if count := asked.test_folds or automatic:
        return _cross_fitted(source, asked, count)
    asked = asked._replace(test=_TEST if asked.test is None else asked.test)
    parts = _parts(source, asked)
    # Rows that lack a group are refused here.
    both = (data.held_out(parts.test), data.held_out(parts.train)) if len(parts.test) else ()
    apart = with_common_comparisons(*both) if both else []
    measured, warned, chosen = _fitted(source, asked, parts)
    evaluation = None
    if apart:
        outside, inside = (predict(measured, part) for part in apart)
        job = Job(source.estimator.strength, seed)
        evaluation = evaluate_predictions(outside, inside, apart[0], apart[1], job=job, utility=_utility(chosen))
    model = measured
    if asked.refit and len(parts.train) < len(data.rows):
        again, more = source.fitted(data.rows)
        model = replace(again, threshold=measured.threshold)
        warned = warned.with_others(more)
    test_part = np.isin(data.rows, parts.test) - 1
    notes = _notes(source, warned, dict(zip(("test", "training"), apart, strict=False)), test_part)
    return TrainedModel(model, measured, parts, evaluation, chosen, notes, tuple(warned.unfinished))


def _fitted(
    source: TrainingFile, asked: Training, parts: Split
) -> tuple[TableModel, TrainingWarnings, ChosenThreshold | None]:
    """A model of the training rows, with its threshold, which validation rows choose where a rule is given."""
    (model, warned), chosen = source.fitted(parts.train), None
    if asked.rule is not None:
        part = source.data.held_out(parts.validation)
        chosen = _chosen(asked, predict(model, part).score, part)
    return replace(model, threshold=asked.threshold if chosen is None else chosen.threshold), warned, chosen


def _chosen(asked: Training, score: Any, part: HeldOut) -> ChosenThreshold | None:
    return None if asked.rule is None else choose_threshold(score, part.problem, rule=asked.rule, costs=asked.costs)


def _notes(
    source: TrainingFile, warned: TrainingWarnings, parts: Mapping[str, HeldOut], test_part: Rows
) -> tuple[str, ...]:
    """The caveats about the file, rows on both sides of the split, small groups and training, each once."""
    small = small_groups_note(parts) if parts else None
    repeated = source.repeat_texts(test_part) if parts else ()
    texts = (*source.notes, *repeated, "" if small is None else wording.note_text(small), *warned.notes)
    return tuple(dict.fromkeys(filter(None, texts)))


def _cross_fitted(source: TrainingFile, asked: Training, count: int) -> TrainedModel:
    """A model of all rows; its figures, and its threshold, are by models that were trained without each fold."""
    data, seed = source.data, source.options.seed
    (everyone,) = with_common_comparisons(data.held_out(data.rows))
    splits = [split for split, _ in outer_splits(data, count, asked.validation, seed, folds=None)]
    if asked.rule is None:
        splits = [Split(np.sort(np.concatenate(one[:2])), data.rows[:0], one.test) for one in splits]
    parts, warned = [], TrainingWarnings([], [])
    for split in splits:
        model, more, _ = _fitted(source, asked, split)
        parts.append(predict(model, data.held_out(split.test)))
        warned = warned.with_others(more)
    unseen = in_row_order(parts, [split.test for split in splits])
    model, more = source.fitted(data.rows)
    warned, chosen = warned.with_others(more), _chosen(asked, unseen.score, everyone)
    model = replace(model, threshold=asked.threshold if chosen is None else chosen.threshold)
    fold = np.repeat(np.arange(count), [len(split.test) for split in splits])
    fold = fold[np.argsort(np.concatenate([split.test for split in splits]))]
    evaluation = evaluate_predictions(
        unseen,
        predict(model, everyone),
        everyone,
        everyone,
        job=Job(source.estimator.strength, seed),
        utility=_utility(chosen),
        test_fold=fold,
    )
    notes = _notes(source, warned, {"test": everyone}, fold)
    used = splits[-1]._replace(validation=splits[0].validation, test=data.rows)
    return TrainedModel(model, model, used, evaluation, chosen, notes, tuple(warned.unfinished), count, unseen)


def _utility(chosen: ChosenThreshold | None) -> Utility | None:
    """The utility by which a threshold was chosen."""
    return None if chosen is None else chosen.utility


def _parts(source: TrainingFile, asked: Training) -> Split:
    """All three parts have the same mix of groups and labels where their numbers allow it."""
    data, seed = source.data, source.options.seed
    none = data.rows[:0]
    validation = 0.0 if asked.rule is None else asked.validation
    if validation and asked.test:
        if validation + asked.test >= 1:
            raise DataError(f"--test {asked.test:g} and --validation {validation:g} leave no rows to train on")
        return data.split(validation, asked.test, seed)
    apart = validation or asked.test
    if not apart:
        return Split(data.rows, none, none)
    _, train, others = data.split(1 - apart, apart, seed, train=False)
    return Split(train, others, none) if validation else Split(train, none, others)


_HEADINGS = {
    "base_rate": "base rate",
    "mean_score": "mean score",
    "decision_rate": "decided for",
    "accuracy": "right",
    "auc": "AUC",
    "mean_outcome": "mean outcome",
    "mean_prediction": "mean prediction",
    "r2": "R2",
}


def show_trained(out: Console, source: TrainingFile, found: TrainedModel, written: Sequence[str]) -> None:
    """Print the file, the model's figures on held-out rows, the caveats, and what was ``written``."""
    say(out, *source.description(found.measured.encoder), *(f"Note: {note}" for note in found.notes))
    say(out, _rows_sentence(source, found))
    evaluation = found.evaluation
    if evaluation is not None:
        _show_point(out, found, evaluation, source.accuracy_name)
        say(out, wording.chance_text(evaluation.chance, evaluation.comparisons))
        if evaluation.with_small is not None:
            gap, chance = map(figure_text, evaluation.with_small.values())
            say(
                out,
                f"With the groups that were left out, unfairness would be {gap}, and that of chance alone {chance}.",
            )
        _show_groups(out, evaluation)
    say(out, *_threshold_sentences(found), *(f"Warning: {text}" for text in warnings(source, found)), *written)
    if found.model is not found.measured:
        whose = "" if evaluation is None else ": the figures above are those of the held-out fit, not its own"
        say(out, f"The model that is kept was trained again on all {len(source.data.rows):,} rows (--refit){whose}.")


def figures(source: TrainingFile, found: TrainedModel) -> dict[str, Any]:
    """All figures for JSON; those of the point only if rows are held out."""
    parts, evaluation = found.parts._asdict(), found.evaluation
    rows = {name: len(own) for name, own in parts.items() if len(own) or name != "validation"}
    measured: dict[str, Any] = {}
    if evaluation is not None:
        measured = asdict(evaluation)
        measured["with_small_groups"] = measured.pop("with_small")
        del measured["comparisons"]
        measured = measured.pop("point") | measured
    chosen = found.chosen
    return measured | {
        "rows": rows,
        "threshold": found.model.threshold,
        "chosen_by": None if chosen is None else chosen.utility.name,
        "refit": len(source.data.rows) if found.model is not found.measured else None,
        "test_folds": found.test_folds or None,
        "notes": list(found.notes),
        "warnings": list(warnings(source, found)),
    }


def _rows_sentence(source: TrainingFile, found: TrainedModel) -> str:
    parts, strength = found.parts, source.estimator.strength
    if found.test_folds:
        chosen = " and choose its threshold" if len(parts.validation) else ""
        return (
            f"Trained on all {len(parts.test):,} rows with strength {strength:g}. Figures are of all rows, in "
            f"{found.test_folds} folds: models that train{chosen} without a fold evaluate it."
        )
    trained = f"Trained on {len(parts.train):,} rows with strength {strength:g}"
    if len(parts.validation):
        trained += f", threshold chosen on {len(parts.validation):,} others"
    if found.evaluation is None:
        return f"{trained}. No rows were held out (--test 0), so the model has no figures."
    return f"{trained}, measured on {len(parts.test):,} others."


def _show_point(out: Console, found: TrainedModel, evaluation: Evaluation, accuracy_name: str) -> None:
    """Figures on held-out rows, with intervals, next to those on training rows."""
    point, utility = evaluation.point, found.utility
    view, taught = (
        FrontierView([one], accuracy_name=accuracy_name, utility=utility) for one in (point, evaluation.training)
    )
    ((row,), (own,)) = view.rows, taught.rows
    show_table(
        out,
        ["on held-out rows", "value", "95 % interval", "on training rows"],
        [
            [view.label(key), row.figures[key].text, row.figures[key].bounds_text, own.figures[key].text]
            for key in view.keys
        ],
    )
    say(out, wording.interval_note(view, point))


def write_model_page(source: TrainingFile, found: TrainedModel, origin: Provenance, path: Path) -> None:
    """Write the report of one model: the page of a frontier with one point."""
    evaluation = found.evaluation
    if evaluation is None:
        return
    view = FrontierView(
        [evaluation.point],
        chosen=evaluation.point,
        title=source.title,
        accuracy_name=source.accuracy_name,
        notes=[_rows_sentence(source, found), *found.notes, *warnings(source, found)],
        utility=found.utility,
        floor=evaluation.chance,
        constant=evaluation.constant,
        constant_value=evaluation.constant_value,
        training=[evaluation.training],
        provenance=origin,
    )
    write_html(path, frontier_html(view))


def _show_groups(out: Console, evaluation: Evaluation) -> None:
    several = len({one.attribute for one in evaluation.groups}) > 1
    keys = list(dict.fromkeys(key for one in evaluation.groups for key in one.figures))
    keys = [key for key in _HEADINGS if key in keys]
    show_table(
        out,
        ["held-out rows of", "rows", *(_HEADINGS[key] for key in keys)],
        [
            [
                one.group if several else f"{one.attribute}: {one.group}",
                f"{one.rows:,}",
                *(figure_text(one.figures.get(key)) for key in keys),
            ]
            for one in evaluation.groups
        ],
    )


def warnings(source: TrainingFile, found: TrainedModel) -> Iterator[str]:
    """Warnings about the figures, each with a remedy."""
    yield from found.unfinished
    evaluation = found.evaluation
    if evaluation is None:
        return
    point, constant = evaluation.point, evaluation.constant
    # A threshold that was chosen by another utility than accuracy is evaluated by that utility.
    utility = found.utility
    name = source.accuracy_name if utility.key == "accuracy" else figure_name(utility.name).lower()
    decided, ranked = point.marks.get(utility.key, ""), point.marks.get("auc", "")
    auc = f"AUC {figure_text(point.more.get('auc'))}"
    if CONSTANT in (decided, point.marks.get("accuracy")):
        decided = CONSTANT
        yield (
            f"the model {wording.mark_text(CONSTANT)}: equal decision rates and a four-fifths ratio of 1 are then no "
            "sign of fairness."
        )
    elif decided == NO_BETTER:
        constant_text = wording.constant_text(evaluation.constant_value)
        yield (
            f"by {name}, {figure_text(point.figure(utility.key))}, the model {wording.mark_text(NO_BETTER)}: "
            f"{constant_text} reaches {figure_text(constant.figure(utility.key))}."
        )
    if ranked:
        yield (
            f"its scores rank people no better than chance ({auc}): small gaps between groups then mean nothing. Lower "
            "--strength, or find features that bear on the outcome."
        )
    elif decided and "auc" in point.more and found.model.threshold is None:
        yield f"its scores do rank people ({auc}): move the threshold with --choose-threshold."
    if point.overfit:
        yield (
            f"unfairness is {figure_text(point.unfairness)} on held-out rows and "
            f"{figure_text(evaluation.training.unfairness)} on those that it was trained on, which is more than chance"
            ": it has learned the fairness of single rows. Fewer leaves, a smaller network, more rows or a larger "
            "strength help."
        )


def _threshold_sentences(found: TrainedModel) -> list[str]:
    chosen, threshold = found.chosen, found.model.threshold
    if threshold is None or found.model.classes is None:
        return []
    label = found.model.classes[found.model.positive]
    rule = f"Decisions: “{label}” from a probability of {threshold:.4g} on"
    if chosen is None:
        return [f"{rule}, as requested; predict uses it too."]
    gap = "" if chosen.gap is None else f", decision gap {figure_text(chosen.gap)}"
    reached = f"{figure_name(chosen.utility.name)} {figure_text(chosen.value)}{gap}"
    return [f"{rule}, chosen on {len(found.parts.validation):,} other rows ({reached} there); predict keeps it."]


def write_held_out(
    source: TrainingFile,
    model: TableModel,
    rows: Rows,
    path: Path,
    *,
    kept: TableModel | None,
    unseen: Predictions | None = None,
) -> list[str]:
    """Write predictions of held-out rows. Return where they are, and the command that audits them.

    ``kept`` is the model that is written, None where none is. ``unseen`` are predictions by models that were trained
    without each test fold, in place of the model's.
    """
    options, found = source.options, source.predictions(model, rows, unseen)
    table = found.table
    again = kept is not None and (kept is not model or unseen is not None)
    refit = fingerprint(kept._content()) if again and kept is not None else None
    own = fingerprint(model._content()) if unseen is None else f"{len(rows)} rows of test folds"
    found.write(path, model=own, rows="held_out", sources=source.files, refit=refit)
    seen = "that the model has not seen" if unseen is None else "by models that have not seen them"
    lines = [f"Held-out predictions: {path} ({len(rows):,} rows {seen})."]
    several = model.classes is not None and len(model.classes) > 2
    if several and not model.has_probabilities:
        return lines
    place = model.positive - len(model.classes) if several and model.classes is not None else -1
    stated = several or options.positive is not None or model.positive == 0
    given = {
        "--score": [table.columns[place]],
        "--group": options.group,
        **_proxy_words(options),
        # Of fewer rows, fewer values: what is a number here might be taken for groups there.
        "--continuous": options.continuous or source.estimator.continuous or (),
        "--cuts": [cuts_text(column, cuts) for column, cuts in options.cuts],
        **{f"--{role}": options.roles[role] for role in ("control", "weight", "label")},
        "--positive": [str(model.classes[model.positive])] if model.classes is not None and stated else [],
        "--threshold": [] if model.threshold is None else [repr(model.threshold)],
    }
    words = [part for option, values in given.items() for value in values for part in (option, value)]
    likewise = " (and the other classes likewise)" if several else ""
    return [*lines, f"Audit them{likewise}: metrifair audit {' '.join(map(quote, [str(path), *words]))}"]


def _proxy_words(options: TrainingOptions) -> dict[str, list[str]]:
    """Options of probabilities in place of groups, as an audit takes them."""
    if options.group_probabilities is None:
        return {}
    name, columns = options.group_probabilities
    words = {"--known-group": options.known_group, "--proxy-labels": options.proxy_labels}
    shares = ",".join(f"{group}:{column}" for group, column in columns.items())
    return {"--group-probabilities": [f"{name}={shares}"]} | {
        option: [word] for option, word in words.items() if word is not None
    }


def selected(front: Frontier, **limits: Any) -> Any:
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
    step = max(1, len(view.rows) // _SHOWN)
    shown = [
        row
        for place, row in enumerate(view.rows)
        if row.place == chosen or (row.on_front if view.parameters else place % step == 0)
    ]
    worth = [key for key in dict.fromkeys((view.key, "accuracy", "auc")) if key in view.keys]
    gaps = {key: name for key, name in _SHORT.items() if key in view.keys}
    parts = [name for name in ("training", "validation") if name in view.rows[0].parts]
    if out.width < _NARROW:  # room for the most important ones only
        gaps, parts = {}, parts[:1]
    rows = [
        [
            f"{row.text}{' (chosen)' if row.place == chosen else ''}{' *' if wording.row_note(row) else ''}",
            *(["needed" if row.needs_group else ""] if view.parameters else []),
            *(row.figures[key].text for key in (*worth, "unfairness")),
            *(row.parts[name].text for name in parts),
            *(row.figures[key].text for key in gaps),
        ]
        for row in shown
    ]
    if view.baseline is not None:
        texts = figure_texts(view, replace(view.baseline, intervals={}))
        own = [*(texts[key] for key in (*worth, "unfairness")), *("" for _ in parts), *(texts[key] for key in gaps)]
        rows.append(["constant", *([""] if view.parameters else []), *own])
    headings = [*(view.label(key) for key in (*worth, "unfairness")), *(f"({name})" for name in parts), *gaps.values()]
    first = ["on the Pareto front", "group"] if view.parameters else [front.parameter]
    show_table(out, [*first, *headings], rows, left=len(first))
    say(out, *wording.row_notes(view, shown))
    say(out, wording.shown_note(view, len(shown)), *wording.remarks(view), *view.notes, str(front))


def provenance_of(source: TrainingFile, call: str) -> Provenance:
    """The provenance of the figures: the files, their rows and columns, and the command."""
    options = source.options
    return Provenance(
        title=options.title or "",
        about=dict(options.about),
        files=source.files,
        rows_read=len(source.table) + source.left_out,
        left_out={"missing_label": source.left_out, "zero_weight": len(source.table) - len(source.data.rows)},
        columns={
            **{role: options.roles[role] for role in ("label", "group", "control", "weight", "cluster", "id")},
            "feature": source.features.columns,
        },
        call=call,
        seed=options.seed,
        **made_now(),
    )
