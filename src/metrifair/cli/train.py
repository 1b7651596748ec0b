"""`metrifair train` and `frontier`: a fair model from a file of raw columns, and models of all
penalty strengths.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from metrifair.cli.help_sections import SectionedCommand
from metrifair.cli.options import (
    READING_OPTIONS,
    STANDARD_OUTPUT,
    check_paths,
    command_options,
    gather_options,
)
from metrifair.cli.training_options import (
    REPORTS,
    TRAINING,
    ChoiceOptions,
    Reports,
    SearchEvidence,
    Sweep,
    TrainingOptions,
)

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.api.frontier import Frontier
    from metrifair.cli.training_file import TrainingFile
    from metrifair.estimators.table_model import TableModel, ThresholdRule

# Options of train for a choice among many models, and those for one model: parameter and option.
_OF_MANY_MODELS = {
    "families": "families",
    "budget": "budget",
    "confidence": "confidence",
    "best_effort": "best-effort",
}
_OF_ONE_MODEL = {
    "strength": "strength",
    "threshold": "threshold",
    "rule": "choose-threshold",
    "costs": "cost",
}
_SWEEP_OF_TRAIN = ("families", "budget", "folds", "test", "utility", "costs")
_SWEEP_OF_FRONTIER = tuple(name for name in Sweep._fields if name not in ("threshold", "rule"))
_CHOICE_OF_TRAIN = ("max_unfairness", "confidence", "best_effort", "output", "held_out")


@click.command(cls=SectionedCommand, short_help="Train a fair model on a file.")
@click.argument("file")
@command_options("train")
@READING_OPTIONS
@TRAINING
@REPORTS
@gather_options("sweep", Sweep, _SWEEP_OF_TRAIN)
@gather_options("choice", ChoiceOptions, _CHOICE_OF_TRAIN)
@click.pass_context
def train_command(
    ctx: click.Context,
    /,
    *,
    options: TrainingOptions,
    strength: float,
    threshold: float | None,
    rule: ThresholdRule | None,
    sweep: Sweep,
    choice: ChoiceOptions,
    reports: Reports,
) -> None:
    """Train a fair model on FILE (csv, tsv, parquet, arrow, ndjson or Excel), with the figures that
    are expected of it on new rows.

    The model encodes text, dates and missing values itself. It uses the groups for training, not
    for prediction. It is trained on all rows, and the figures come from cross-validation or, with
    --test, from rows that did not train it.

    With --max-unfairness, it tries families of models that suit the data, and chooses the best
    model within the limit. Only then --families, --budget, --confidence and --best-effort apply.
    Without it, --model is trained with the penalty --strength.

    It is metrifair frontier for one model. metrifair frontier has more options.

    \b
    Example: train the best model within an unfairness limit
      metrifair train people.csv --label income --group sex --max-unfairness 0.1 \\
        --output model.metrifair

    \b
    Example: train, and audit scores of rows by models that never saw them
      metrifair train people.csv --label income --group sex --output model.metrifair \\
        --held-out held-out.csv
      metrifair audit held-out.csv --score probability --group sex --label income --html report.html
    """
    _check_limit(ctx, choice.max_unfairness)
    _check_threshold(threshold, rule, sweep)
    if choice.max_unfairness is None:
        sweep = sweep._replace(strengths=[strength], threshold=threshold, rule=rule)
    limit = choice.max_unfairness
    _sweep(
        ctx, options, sweep, choice, reports, search=SearchEvidence(), delivers=True, limit=limit
    )


def _check_threshold(threshold: float | None, rule: ThresholdRule | None, sweep: Sweep) -> None:
    """Raise a usage error for options of a threshold that exclude or need each other."""
    if threshold is not None and rule is not None:
        raise click.UsageError(
            "--threshold and --choose-threshold exclude each other; leave one of them out"
        )
    if (sweep.costs is None) == (rule == "cost"):
        raise click.UsageError(
            "--cost and --choose-threshold cost must be combined; use both or neither"
        )


def _check_limit(ctx: click.Context, limit: float | None) -> None:
    """Raise a usage error for options of ``train`` that exclude an unfairness limit, or need
    one.
    """
    excluded = _OF_MANY_MODELS if limit is None else _OF_ONE_MODEL
    for name, option in excluded.items():
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            if limit is None:
                raise click.UsageError(
                    f"--{option} needs --max-unfairness, by which a model is chosen"
                )
            raise click.UsageError(
                f"--max-unfairness chooses among many models; leave --{option} out"
            )


@click.command(
    cls=SectionedCommand,
    short_help="Train the trade-off between accuracy and fairness, and choose a model.",
)
@click.argument("file")
@command_options("frontier")
@READING_OPTIONS
@TRAINING
@REPORTS
@gather_options("sweep", Sweep, _SWEEP_OF_FRONTIER)
@gather_options("choice", ChoiceOptions, ChoiceOptions._fields)
@gather_options("search", SearchEvidence, SearchEvidence._fields)
@click.pass_context
def frontier_command(
    ctx: click.Context,
    /,
    *,
    options: TrainingOptions,
    sweep: Sweep,
    choice: ChoiceOptions,
    search: SearchEvidence,
    reports: Reports,
) -> None:
    """Train models with many penalty strengths on FILE, show what fairness costs, and choose a
    model.

    Without --model, --families or --strengths, it tries families of models that suit the data, as
    many as a fixed amount of work allows. The result names the families that were tried.

    Models are compared by cross-validation: those that were trained without a fold score its rows.
    All folds have the same mix of groups and labels. The chosen model is trained on all rows. Its
    figures are those expected on new rows or, with --test, those on the test rows.

    \b
    Example: choose a model, and audit scores of rows by models that never saw them
      metrifair frontier people.csv --label income --group sex --html report.html
      metrifair frontier people.csv --label income --group sex --max-unfairness 0.1 \\
        --held-out held-out.csv
      metrifair audit held-out.csv --score probability --group sex --label income

    \b
    Example: repeat a result with the families that were tried
      metrifair frontier people.csv --label income --group sex \\
        --families auto,stack,small_trees --max-unfairness 0.1

    \b
    Example: compare with post-processing, which needs the group at prediction
      metrifair frontier people.csv --label income --group sex \\
        --families mlp,linear,barycenter --html report.html

    \b
    Example: write the search as evidence, which metrifair verify recomputes
      metrifair frontier people.csv --label income --group sex --max-unfairness 0.1 \\
        --output model.metrifair --evidence search --reason "The best model within our limit"
    """
    _check_choice(choice)
    _check_search(choice, search)
    limit = choice.max_unfairness
    delivers = limit is not None
    if any(path is not None for path in reports):
        limit = None  # a report is written for any limit, and shows which ones can be met
    _sweep(ctx, options, sweep, choice, reports, search=search, delivers=delivers, limit=limit)


def _sweep(
    ctx: click.Context,
    options: TrainingOptions,
    sweep: Sweep,
    choice: ChoiceOptions,
    reports: Reports,
    *,
    search: SearchEvidence,
    delivers: bool,
    limit: float | None,
) -> None:
    """Train the models of a frontier, show them, and save the chosen one if it ``delivers``.

    A ``limit`` that these rows cannot verify is refused before the training.
    """
    if sweep.costs is not None and sweep.utility != "auto":
        raise click.UsageError("--cost is a utility of its own; leave --utility out")
    written = [choice.output, choice.held_out, sweep.ledger, search.evidence, search.scores]
    check_paths([options.file], [*written, *reports])
    table, files = options.table()
    from metrifair.cli.console import command_text, console, say, write_pages, write_text
    from metrifair.cli.training import show_frontier, threshold_text
    from metrifair.cli.training_file import training_file
    from metrifair.tradeoff.portfolio import AUTO

    out = console(stderr=reports.json_to == STANDARD_OUTPUT)
    source = training_file(options, table, files, strength=1.0)
    _check_evidence(source, sweep, search)
    if sweep.strengths is None and ctx.get_parameter_source("model") is ParameterSource.DEFAULT:
        sweep = sweep._replace(families=sweep.families or (AUTO,))
    early_limit = None if choice.best_effort else limit
    front = source.frontier(sweep, command_text(ctx), limit=early_limit)
    try:
        if delivers:
            chosen, unfinished = source.select(front, choice)
    finally:  # if no model is within the limit, the report still shows what is possible
        show_frontier(out, front)
        say(out, *source.description(source.encoder(source.data.rows)))
        say(out, *filter(None, [_costs_note(front, sweep)]))
        write_pages(out, partial(front.to_html, title=source.title), reports.html, reports.pdf)
        if reports.json_to is not None:
            write_text(front.to_json(), reports.json_to)
    if delivers:
        lines = (threshold_text(chosen, sweep), *(f"Warning: {text}" for text in unfinished))
        say(out, *filter(None, lines))
        _save(out, source, front, chosen, choice)
        _write_search(out, source, front, choice, search)


def _check_search(choice: ChoiceOptions, search: SearchEvidence) -> None:
    """Raise a usage error for options of evidence that need each other."""
    if search.evidence is None:
        for name in ("reason", "scores", "sign", "again"):
            if getattr(search, name):
                raise click.UsageError(f"--{name} needs --evidence, the folder of the evidence")
        if search.min_cell != SearchEvidence().min_cell:
            raise click.UsageError("--min-cell needs --evidence, the folder of the evidence")
        return
    if choice.max_unfairness is None:
        raise click.UsageError("--evidence needs --max-unfairness, by which a model is chosen")
    if search.reason is None:
        raise click.UsageError("--evidence needs --reason, a sentence that says why")


def _check_evidence(source: TrainingFile, sweep: Sweep, search: SearchEvidence) -> None:
    """Raise an error for evidence that could not be written after the training."""
    if search.evidence is None or search.reason is None:
        return
    from metrifair.api.search_counts import check_countable, check_utility
    from metrifair.api.search_evidence import check_request

    check_request(search.evidence, search.reason, search.min_cell)
    data = source.data
    check_countable(
        data.problem,
        data.problem.comparisons,
        clustered=source.clusters is not None,
        tested=sweep.test is not None,
    )
    if sweep.costs is not None:
        check_utility("expected_cost", sweep.unfairness_of)
    elif sweep.utility != "auto":
        check_utility(sweep.utility, sweep.unfairness_of)


def _write_search(
    out: Console,
    source: TrainingFile,
    front: Frontier,
    choice: ChoiceOptions,
    search: SearchEvidence,
) -> None:
    """Write the evidence of the search, if it was asked for."""
    if search.evidence is None or search.reason is None:
        return
    from metrifair.api.search_evidence import write_search_evidence
    from metrifair.cli.console import say

    write_search_evidence(
        front._trade_off,
        search.evidence,
        reason=search.reason,
        model=choice.output,
        scores=search.scores,
        numbers=source.numbers - 1,
        min_cell=search.min_cell,
        sign_with=search.sign,
        again=search.again,
    )
    say(out, f"Evidence: {search.evidence}")
    if search.scores is not None:
        say(out, f"Out-of-fold scores, which are not part of the evidence: {search.scores}")


def _costs_note(front: Frontier, sweep: Sweep) -> str:
    """How to choose a threshold by costs, for a chosen model that has the usual one; or empty."""
    if sweep.costs is None or sweep.rule is not None:
        return ""
    if front.chosen is None or front.record.parameters:
        return ""
    return (
        "Costs are those of decisions at a probability of 0.5. To choose another threshold: "
        f"metrifair train --strength {front.chosen.strength:g} --choose-threshold cost --cost ..."
    )


def _check_choice(choice: ChoiceOptions) -> None:
    """Raise a usage error for options of a choice without a limit."""
    for name in ("output", "held_out", "without_group", "confidence", "best_effort"):
        if choice.max_unfairness is None and getattr(choice, name):
            raise click.UsageError(
                f"--{name.replace('_', '-')} needs --max-unfairness, by which a model is chosen"
            )


def _save(
    out: Console, source: TrainingFile, front: Frontier, model: TableModel, choice: ChoiceOptions
) -> None:
    """Write predictions of rows by models that were trained without them, and the chosen model."""
    from metrifair.cli.console import say
    from metrifair.cli.training import write_held_out

    trade_off = front._trade_off
    context = trade_off.source
    assert context is not None
    final = None if choice.output is None else model
    rows = context.rows
    predictions = trade_off.chosen_predictions
    if context.test_rows is not None:
        rows = context.test_rows
        predictions = None  # the chosen model makes them
    if choice.held_out is not None:
        path = choice.held_out
        say(out, *write_held_out(source, model, rows, path, final=final, predictions=predictions))
    if choice.output is None:
        say(out, "The model is not saved: name a file with --output.")
        return
    model.save(choice.output)
    columns = ", ".join(map(repr, model.sensitive)) if model.needs_group else ""
    needed = f" (new rows need their groups: {columns})" if columns else ""
    which = f"all {len(context.rows):,} rows"
    if context.test_rows is not None:
        which = f"the {len(context.rows):,} rows that are not test rows"
    say(out, f"The saved model was trained on {which}.", f"Model: {choice.output}{needed}")
