"""`metrifair train` and `frontier`: a fair model from a file of raw columns, and models of all penalty strengths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from metrifair.cli.help_sections import SectionedCommand
from metrifair.cli.options import READING, STANDARD_OUTPUT, check_paths, command_options, gather_options
from metrifair.cli.training_options import REPORTS, TRAINING, Choice, Reports, Sweep, Training, TrainingOptions

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.api.frontier import Frontier
    from metrifair.cli.training_file import TrainingFile
    from metrifair.estimators.table_model import TableModel

# Options of train for a choice among many models, and those for one model: parameter and option.
_OF_MANY_MODELS = ("families", "budget", "utility")
_OF_ONE_MODEL = {
    "strength": "strength",
    "test": "test",
    "validation": "validation",
    "threshold": "threshold",
    "rule": "choose-threshold",
    "costs": "cost",
    "refit": "refit",  # the model within a limit is always trained on all rows
}


@click.command(cls=SectionedCommand, short_help="Train a fair model on a file.")
@click.argument("file")
@command_options("train")
@READING
@TRAINING
@REPORTS
@gather_options("training", Training, Training._fields)
@gather_options("sweep", Sweep, _OF_MANY_MODELS)
@click.pass_context
def train_command(
    ctx: click.Context,
    /,
    *,
    options: TrainingOptions,
    strength: float,
    max_unfairness: float | None,
    training: Training,
    sweep: Sweep,
    held_out: Path | None,
    output: Path | None,
    reports: Reports,
) -> None:
    """Train a fair model on FILE (csv, tsv, parquet, arrow, ndjson or Excel), and evaluate it on held-out rows.

    The model encodes text, dates and missing values itself. It uses the groups for training, not for prediction. The
    held-out rows have the same mix of groups and labels as the training rows.

    With --max-unfairness, it tries families of models that suit the data, and keeps the best model within the limit, as
    metrifair frontier does, which has more options. Only then --families, --budget and --utility apply. Without it,
    --model is trained with the penalty --strength.

    \b
    Example: train the best model within an unfairness limit
      metrifair train people.csv --label income --group sex --max-unfairness 0.1 --output model.metrifair

    \b
    Example: train, and audit rows that the model never saw
      metrifair train people.csv --label income --group sex --output model.metrifair --held-out held-out.csv
      metrifair audit held-out.csv --score probability --group sex --label income --html report.html
    """
    _check_training(training, {"--held-out": held_out, "--html": reports.html, "--pdf": reports.pdf}, output)
    check_paths([options.file], [held_out, output, *reports])
    _check_limit(ctx, max_unfairness)
    if max_unfairness is not None:
        choice = Choice(max_unfairness, output=output, held_out=held_out)
        _sweep(ctx, options, sweep._replace(test_folds=training.test_folds), choice, reports)
        return
    table, files = options.table()
    from metrifair.cli import training as steps
    from metrifair.cli.console import command_text, console, say, write_json, write_pages
    from metrifair.cli.training_file import training_file

    out = console(stderr=reports.json_to == STANDARD_OUTPUT)
    source = training_file(options, table, files, strength=strength)
    result = steps.train_model(source, training)
    if output is not None:
        result.model.save(output)
    written = []
    if held_out is not None:
        model, rows, predictions = result.evaluated, result.parts.test, result.predictions
        written = steps.write_held_out(source, model, rows, held_out, final=result.model, predictions=predictions)
    steps.show_model(out, source, result, written)
    say(out, "The model is not saved: name a file with --output." if output is None else f"Model: {output}")
    origin = steps.training_provenance(source, command_text(ctx))
    write_pages(out, partial(steps.write_model_page, source, result, origin), reports.html, reports.pdf)
    if reports.json_to is not None:
        write_json(steps.figures(source, result) | {"provenance": asdict(origin)}, reports.json_to)


def _check_training(training: Training, outputs: Mapping[str, Path | None], output: Path | None) -> None:
    """Raise a usage error if options of ``train`` exclude each other."""
    if training.test is not None and training.test_folds is not None:
        raise click.UsageError("--test and --test-folds exclude each other; leave one of them out")
    for option, path in outputs.items():
        if path is not None and training.test == 0:
            raise click.UsageError(f"{option} needs held-out rows; leave --test 0 out")
    if training.refit and output is None:
        raise click.UsageError("--refit trains the model that is saved: name a file with --output")
    if training.threshold is not None and training.rule is not None:
        raise click.UsageError("--threshold and --choose-threshold exclude each other; leave one of them out")
    if (training.costs is None) == (training.rule == "cost"):
        raise click.UsageError("--cost and --choose-threshold cost must be combined; use both or neither")


def _check_limit(ctx: click.Context, limit: float | None) -> None:
    """Raise a usage error for options of ``train`` that exclude an unfairness limit, or need one."""
    many = {name: name for name in _OF_MANY_MODELS}
    for name, option in (many if limit is None else _OF_ONE_MODEL).items():
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            if limit is None:
                raise click.UsageError(f"--{option} needs --max-unfairness, by which a model is chosen")
            raise click.UsageError(f"--max-unfairness chooses among many models; leave --{option} out")


@click.command(
    cls=SectionedCommand, short_help="Train the trade-off between accuracy and fairness, and choose a model."
)
@click.argument("file")
@command_options("frontier")
@READING
@TRAINING
@REPORTS
@gather_options("sweep", Sweep, Sweep._fields)
@gather_options("choice", Choice, Choice._fields)
@click.pass_context
def frontier_command(
    ctx: click.Context, /, *, options: TrainingOptions, sweep: Sweep, choice: Choice, reports: Reports
) -> None:
    """Train models with many penalty strengths on FILE, show what fairness costs, and choose a model.

    Without --model, --families or --strengths, it tries families of models that suit the data, linear models and
    trees first, within a time budget. The result names the families that were tried.

    Half of the rows are training rows, a quarter validation rows, and a quarter test rows. If the smallest group has
    few rows, every row is a test row in one of five folds. All parts have the same mix of groups and labels. The model
    that is written is trained on all rows; its figures are of rows that models like it never saw.

    \b
    Example: choose a model, and audit rows that it never saw
      metrifair frontier people.csv --label income --group sex --html report.html
      metrifair frontier people.csv --label income --group sex --max-unfairness 0.1 --held-out held-out.csv
      metrifair audit held-out.csv --score probability --group sex --label income

    \b
    Example: repeat a result with the families that were tried
      metrifair frontier people.csv --label income --group sex --families auto,stack,small_trees --max-unfairness 0.1

    \b
    Example: compare with post-processing, which needs the group at prediction
      metrifair frontier people.csv --label income --group sex --families mlp,linear,barycenter --html report.html
    """
    if sweep.costs is not None and sweep.utility != "auto":
        raise click.UsageError("--cost is a utility of its own; leave --utility out")
    _check_choice(choice, sweep.test_folds)
    check_paths([options.file], [choice.output, choice.held_out, sweep.ledger, *reports])
    _sweep(ctx, options, sweep, choice, reports)


def _sweep(ctx: click.Context, options: TrainingOptions, sweep: Sweep, choice: Choice, reports: Reports) -> None:
    """Train the models of a frontier, show them, and save the chosen one."""
    table, files = options.table()
    from metrifair.cli.console import command_text, console, say, write_json, write_pages
    from metrifair.cli.training import select_model, show_frontier, training_provenance
    from metrifair.cli.training_file import training_file
    from metrifair.tradeoff.portfolio import AUTO

    out = console(stderr=reports.json_to == STANDARD_OUTPUT)
    source = training_file(options, table, files, strength=1.0)
    if sweep.strengths is None and ctx.get_parameter_source("model") is ParameterSource.DEFAULT:
        sweep = sweep._replace(families=sweep.families or (AUTO,))
    encoder, front = source.frontier(sweep, test=0.25 if choice.certified else None)  # test folds have no certificate
    front = replace(front, provenance=training_provenance(source, command_text(ctx)))
    say(out, *source.description(encoder))
    try:
        if choice.max_unfairness is not None:
            names = ("max_unfairness", "confidence", "certified")
            limits = {name: getattr(choice, name) for name in names}
            best = select_model(front, **limits, needs_group=False if choice.without_group else None)
            chosen = source.model(*(step for _, step in best.steps))
    finally:  # if no model is within the limit, the report still shows what is possible
        show_frontier(out, front)
        if sweep.costs is not None and front.chosen is not None and not front.parameters:
            say(
                out,
                "Costs are those of decisions at a probability of 0.5. To choose another threshold: metrifair "
                f"train --strength {front.chosen.strength:g} --choose-threshold cost --cost ...",
            )
        write_pages(out, partial(front.to_html, title=source.title), reports.html, reports.pdf)
        if reports.json_to is not None:
            write_json(_frontier_figures(front, refitted=choice.is_refitted), reports.json_to)
    if choice.max_unfairness is not None:
        _save(out, source, front, chosen, choice)


def _check_choice(choice: Choice, test_folds: int | None) -> None:
    """Raise a usage error if options of the choice cannot be combined."""
    if choice.refit is not None and choice.output is None:
        raise click.UsageError("--refit and --no-refit apply to the model that is saved: name a file with --output")
    if choice.certified and test_folds is not None:
        raise click.UsageError("--certified needs one split; leave --test-folds out")
    for name in ("output", "held_out", "without_group", "confidence", "certified"):
        if choice.max_unfairness is None and getattr(choice, name):
            raise click.UsageError(f"--{name.replace('_', '-')} needs --max-unfairness, by which a model is chosen")


def _frontier_figures(front: Frontier, *, refitted: bool) -> dict[str, Any]:
    """All figures; ``validation`` and ``training`` in the order of ``points``."""
    same = ("accuracy_name", "unfairness_of", "groups", "sizes", "constant_value", "area", "area_with_constant")
    return {name: getattr(front, name) for name in same} | {
        "utility": front.utility.name,
        "points": [asdict(point) for point in front.points],
        "validation": [asdict(point) for point in front.validation_points],
        "training": [None if point is None else asdict(point) for point in front.training_points],
        "constant": None if front.constant is None else asdict(front.constant),
        "notes": list(front.view().notes),
        "chosen": None if front.chosen is None else asdict(front.chosen),
        "fold_choices": front.fold_choices,
        "certified": front.certified and not refitted,
        "limit_confidence": front.limit_confidence,
        "refitted": refitted and front.chosen is not None,
        "provenance": asdict(front.provenance),
    }


def _save(out: Console, source: TrainingFile, front: Frontier, model: TableModel, choice: Choice) -> None:
    """Write the chosen model's predictions of test rows, and the model itself, refitted if requested."""
    from metrifair.cli.console import say
    from metrifair.cli.training import write_held_out

    if front.chosen is None or front.source is None:
        return
    if choice.certified:
        part = front.source.evaluator.validation
        among = " between groups that were not left out" if len(part.comparisons) < len(part.all_comparisons) else ""
        say(out, f"Certified, with 95 % confidence: its unfairness{among} is at most {choice.max_unfairness:g}.")
    final, notes, predictions = model, [], front.chosen_predictions if front.test_folds else None
    if front.test_folds and choice.output is not None:
        count = f"{len(source.data.rows):,}"
        notes = [f"The saved model was trained on all {count} rows; the figures are of models without each fold."]
    elif choice.is_refitted:
        job = front.chosen.job
        family = next(member for member in front.source.families if member.name == job.family)
        final, warned = source.fit(source.data.rows, job, family)
        notes = [*warned.notes, *warned.unfinished, *_refit_sentences(source, certified=choice.certified)]
    if choice.held_out is not None:
        rows, path = front.source.test, choice.held_out
        say(out, *write_held_out(source, model, rows, path, final=final, predictions=predictions))
    say(out, *notes)
    if choice.output is None:
        return
    final.save(choice.output)
    columns = ", ".join(map(repr, final.sensitive)) if final.needs_group else ""
    needed = f" (new rows need their groups: {columns})" if columns else ""
    say(out, f"Model: {choice.output}{needed}")


def _refit_sentences(source: TrainingFile, *, certified: bool) -> Iterator[str]:
    """Sentences on figures and certificate after a refit."""
    yield (
        f"The saved model was trained again, on all {len(source.data.rows):,} rows: the figures above are those of the "
        "fit on training rows only."
    )
    if certified:
        yield "The certificate is withdrawn: it is of that fit, not of the saved model."
