"""Show a frontier in a terminal, and write predictions of held-out rows."""

from __future__ import annotations

import warnings as python_warnings
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from metrifair.cli.console import say, show_columns
from metrifair.cli.options import cuts_text, probabilities_text
from metrifair.cli.training_file import TrainingFile
from metrifair.cli.training_options import Sweep, TrainingOptions
from metrifair.errors import MetrifairWarning
from metrifair.estimators.table_model import TableModel
from metrifair.figures.utility import Predictions
from metrifair.saving.modelfile import fingerprint
from metrifair.tradeoff.split import RowNumbers
from metrifair.wording import frontier as wording
from metrifair.wording.frontier_tables import constant_row, short_columns
from metrifair.wording.numbers import count_text

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.api.frontier import Frontier


_NARROW = 100  # columns of a terminal without room for every figure
_SHOWN = 8  # strengths in a table, about
# beside "Unfairness"
_GAPS = ("decision_unfairness", "four_fifths")


def threshold_text(model: TableModel, sweep: Sweep) -> str:
    """The threshold of the decisions, and where it comes from; empty if the model has none."""
    threshold = model.threshold
    if threshold is None or model.classes is None:
        return ""
    origin = "as requested"
    if sweep.rule is not None:
        origin = "chosen by scores out of fold, for each fold without it"
    label = model.classes[model.positive]
    return (
        f"Decisions: “{label}” at a probability of at least {threshold:.4g}, {origin}; predict "
        "uses it too."
    )


def write_held_out(
    source: TrainingFile,
    model: TableModel,
    rows: RowNumbers,
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
    options = source.options
    shown = source.predictions(model, rows, predictions)
    table = shown.table
    own = fingerprint(model._content())
    refit = None if predictions is None or final is None else own
    shown.write(
        path,
        model=own if predictions is None else None,
        rows="held_out",
        sources=source.files,
        refit=refit,
    )
    which = "by models that have not seen them"
    if predictions is None:
        which = "that the model has not seen"
    lines = [f"Held-out predictions: {path} ({count_text(len(rows), 'row')} {which})."]
    several = model.classes is not None and len(model.classes) > 2
    if several and not model.has_probabilities:
        return lines
    place = model.positive - len(model.classes) if several and model.classes is not None else -1
    is_stated = several or options.positive is not None or model.positive == 0
    positive = []
    if model.classes is not None and is_stated:
        positive = [str(model.classes[model.positive])]
    threshold = []
    if model.threshold is not None:
        threshold = [repr(model.threshold)]
    audit_options = {
        "--score": [table.columns[place]],
        "--group": options.group,
        **_proxy_words(options),
        # With fewer rows, a number might be classified as groups.
        "--continuous": options.continuous or source.estimator.continuous or (),
        "--cuts": [cuts_text(column, cuts) for column, cuts in options.cuts],
        **{f"--{role}": options.roles[role] for role in ("control", "weight", "label")},
        "--positive": positive,
        "--threshold": threshold,
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
    named = wording.named_places(view)
    step = max(1, len(view.rows) // _SHOWN)
    shown = [
        row
        for place, row in enumerate(view.rows)
        if row.place in named or (row.on_front if view.parameters else place % step == 0)
    ]
    keys = [key for key in dict.fromkeys((view.key, "accuracy", "auc")) if key in view.keys]
    gaps = [key for key in _GAPS if key in view.keys]
    if out.width < _NARROW:  # room for the most important ones only
        gaps = []
    constant = constant_row(view)
    rows = shown if constant is None else [*shown, constant]
    show_columns(out, short_columns(view, [*keys, "unfairness", *gaps]), rows)
    say(out, *wording.row_notes(view, shown))
    say(
        out,
        wording.shown_note(view, len(shown)),
        *wording.remarks(view),
        *wording.note_texts(view),
    )
