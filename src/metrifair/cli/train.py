"""`metrifair train` and `frontier`: a fair model from a file of raw columns, and models of all
penalty strengths.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from metrifair.cli.help_sections import SectionedCommand
from metrifair.cli.options import (
    READING,
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
    Sweep,
    Training,
    TrainingOptions,
)

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.api.frontier import Frontier
    from metrifair.cli.training_file import TrainingFile
    from metrifair.estimators.table_model import TableModel

# Options of train for a choice among many models, and those for one model: parameter and option.
_OF_SWEEP = ("families", "budget", "utility")
_OF_MANY_MODELS = {name: name for name in _OF_SWEEP} | {
    "confidence": "confidence",
    "best_effort": "best-effort",
}
_OF_ONE_MODEL = {
    "strength": "strength",
    "validation": "validation",
    "threshold": "threshold",
    "rule": "choose-threshold",
    "costs": "cost",
    "refit": "refit",  # the model within a limit is always trained on all rows
}
_CHOICE_OF_TRAIN = ("max_unfairness", "confidence", "best_effort", "output", "held_out")


@click.command(cls=SectionedCommand, short_help="Train a fair model on a file.")
@click.argument("file")
@command_options("train")
@READING
@TRAINING
@REPORTS
@gather_options("training", Training, Training._fields)
@gather_options("sweep", Sweep, _OF_SWEEP)
@gather_options("choice", ChoiceOptions, _CHOICE_OF_TRAIN)
@click.pass_context
def train_command(
    ctx: click.Context,
    /,
    *,
    options: TrainingOptions,
    strength: float,
    training: Training,
    sweep: Sweep,
    choice: ChoiceOptions,
    reports: Reports,
) -> None:
    """Train a fair model on FILE (csv, tsv, parquet, arrow, ndjson or Excel), and evaluate it on
    rows that did not train it.

    The model encodes text, dates and missing values itself. It uses the groups for training, not
    for prediction.

    With --max-unfairness, it tries families of models that suit the data, and trains the best model
    within the limit on all rows, as metrifair frontier does, which has more options. Only then
    --families, --budget, --utility, --confidence and --best-effort apply.

    Without it, --model is trained with the penalty --strength, and evaluated on held-out rows. They
    have the same mix of groups and labels as the training rows.

    \b
    Example: train the best model within an unfairness limit
      metrifair train people.csv --label income --group sex --max-unfairness 0.1 \\
        --output model.metrifair

    \b
    Example: train, and audit rows that the model never saw
      metrifair train people.csv --label income --group sex --output model.metrifair \\
        --held-out held-out.csv
      metrifair audit held-out.csv --score probability --group sex --label income --html report.html
    """
    _check_limit(ctx, choice.max_unfairness)
    if choice.max_unfairness is None:
        _check_training(training, choice, reports)
    elif training.test == 0:
        raise click.UsageError("--test 0 leaves no test rows; leave it out")
    check_paths([options.file], [choice.held_out, choice.output, *reports])
    if choice.max_unfairness is not None:
        _sweep(
            ctx, options, sweep._replace(folds=training.folds, test=training.test), choice, reports
        )
        return
    table, files = options.table()
    from metrifair.cli import training as steps
    from metrifair.cli.console import command_text, console, say, write_json, write_pages
    from metrifair.cli.training_file import training_file

    out = console(stderr=reports.json_to == STANDARD_OUTPUT)
    source = training_file(options, table, files, strength=strength)
    result = steps.train_model(source, training)
    output = choice.output
    if output is not None:
        result.model.save(output)
    written = []
    if choice.held_out is not None:
        written = steps.write_held_out(
            source,
            result.evaluated,
            result.parts.test,
            choice.held_out,
            final=result.model,
            predictions=result.predictions,
        )
    steps.show_model(out, source, result, written)
    say(
        out,
        "The model is not saved: name a file with --output."
        if output is None
        else f"Model: {output}",
    )
    origin = steps.training_provenance(source, command_text(ctx))
    write_pages(
        out, partial(steps.write_model_page, source, result, origin), reports.html, reports.pdf
    )
    if reports.json_to is not None:
        write_json(steps.figures(source, result) | {"provenance": asdict(origin)}, reports.json_to)


def _check_training(training: Training, choice: ChoiceOptions, reports: Reports) -> None:
    """Raise a usage error if options of ``train`` exclude each other."""
    if training.test is not None and training.folds is not None:
        raise click.UsageError("--test and --folds exclude each other; leave one of them out")
    outputs = {"--held-out": choice.held_out, "--html": reports.html, "--pdf": reports.pdf}
    for option, path in outputs.items():
        if path is not None and training.test == 0:
            raise click.UsageError(f"{option} needs held-out rows; leave --test 0 out")
    if training.refit and choice.output is None:
        raise click.UsageError("--refit trains the model that is saved: name a file with --output")
    if training.threshold is not None and training.rule is not None:
        raise click.UsageError(
            "--threshold and --choose-threshold exclude each other; leave one of them out"
        )
    if (training.costs is None) == (training.rule == "cost"):
        raise click.UsageError(
            "--cost and --choose-threshold cost must be combined; use both or neither"
        )


def _check_limit(ctx: click.Context, limit: float | None) -> None:
    """Raise a usage error for options of ``train`` that exclude an unfairness limit, or need
    one.
    """
    for name, option in (_OF_MANY_MODELS if limit is None else _OF_ONE_MODEL).items():
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
@READING
@TRAINING
@REPORTS
@gather_options("sweep", Sweep, Sweep._fields)
@gather_options("choice", ChoiceOptions, ChoiceOptions._fields)
@click.pass_context
def frontier_command(
    ctx: click.Context,
    /,
    *,
    options: TrainingOptions,
    sweep: Sweep,
    choice: ChoiceOptions,
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
    """
    if sweep.costs is not None and sweep.utility != "auto":
        raise click.UsageError("--cost is a utility of its own; leave --utility out")
    _check_choice(choice)
    check_paths([options.file], [choice.output, choice.held_out, sweep.ledger, *reports])
    _sweep(ctx, options, sweep, choice, reports)


def _sweep(
    ctx: click.Context,
    options: TrainingOptions,
    sweep: Sweep,
    choice: ChoiceOptions,
    reports: Reports,
) -> None:
    """Train the models of a frontier, show them, and save the chosen one."""
    table, files = options.table()
    from metrifair.cli.console import command_text, console, say, write_json, write_pages
    from metrifair.cli.training import show_frontier, training_provenance
    from metrifair.cli.training_file import training_file
    from metrifair.tradeoff.portfolio import AUTO

    out = console(stderr=reports.json_to == STANDARD_OUTPUT)
    source = training_file(options, table, files, strength=1.0)
    if sweep.strengths is None and ctx.get_parameter_source("model") is ParameterSource.DEFAULT:
        sweep = sweep._replace(families=sweep.families or (AUTO,))
    front = source.frontier(sweep)
    front = replace(front, provenance=training_provenance(source, command_text(ctx)))
    say(out, *source.description(source.encoder(source.data.rows)))
    try:
        if choice.max_unfairness is not None:
            chosen, unfinished = source.select(front, choice)
    finally:  # if no model is within the limit, the report still shows what is possible
        show_frontier(out, front)
        if sweep.costs is not None and front.chosen is not None and not front.parameters:
            say(
                out,
                "Costs are those of decisions at a probability of 0.5. To choose another "
                "threshold: metrifair "
                f"train --strength {front.chosen.strength:g} --choose-threshold cost --cost ...",
            )
        write_pages(out, partial(front.to_html, title=source.title), reports.html, reports.pdf)
        if reports.json_to is not None:
            write_json(_frontier_figures(front), reports.json_to)
    if choice.max_unfairness is not None:
        say(out, *unfinished)
        _save(out, source, front, chosen, choice)


def _check_choice(choice: ChoiceOptions) -> None:
    """Raise a usage error for options of a choice without a limit."""
    for name in ("output", "held_out", "without_group", "confidence", "best_effort"):
        if choice.max_unfairness is None and getattr(choice, name):
            raise click.UsageError(
                f"--{name.replace('_', '-')} needs --max-unfairness, by which a model is chosen"
            )


def _frontier_figures(front: Frontier) -> dict[str, Any]:
    """All figures: ``points`` are those by which models were compared, ``chosen`` those expected
    of the chosen model on new rows, or its figures on test rows.
    """
    same = (
        "accuracy_name",
        "unfairness_of",
        "groups",
        "sizes",
        "folds",
        "noise",
        "constant_value",
        "area",
        "area_with_constant",
        "is_best_effort",
    )
    return {name: getattr(front, name) for name in same} | {
        "utility": front.utility.name,
        "points": [asdict(point) for point in front.points],
        "constant": None if front.constant is None else asdict(front.constant),
        "notes": list(front.view().notes),
        "chosen": None if front.chosen is None else asdict(front.chosen),
        "goal": None if front.goal is None else asdict(front.goal),
        "unmet": None if front.unmet is None else asdict(front.unmet),
        "provenance": asdict(front.provenance),
    }


def _save(
    out: Console, source: TrainingFile, front: Frontier, model: TableModel, choice: ChoiceOptions
) -> None:
    """Write predictions of rows by models that were trained without them, and the chosen model."""
    from metrifair.cli.console import say
    from metrifair.cli.training import write_held_out

    context = front.source
    assert context is not None
    final = None if choice.output is None else model
    rows, predictions = context.rows, front.chosen_predictions
    if context.test_rows is not None:
        rows, predictions = context.test_rows, None  # the chosen model makes them
    if choice.held_out is not None:
        path = choice.held_out
        say(out, *write_held_out(source, model, rows, path, final=final, predictions=predictions))
    if choice.output is None:
        return
    model.save(choice.output)
    columns = ", ".join(map(repr, model.sensitive)) if model.needs_group else ""
    needed = f" (new rows need their groups: {columns})" if columns else ""
    which = f"all {len(context.rows):,} rows"
    if context.test_rows is not None:
        which = f"the {len(context.rows):,} rows that are not test rows"
    say(out, f"The saved model was trained on {which}.", f"Model: {choice.output}{needed}")
