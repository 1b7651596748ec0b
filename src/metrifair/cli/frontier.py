"""`metrifair frontier`: the whole trade-off between accuracy and fairness from a file of raw columns."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from metrifair.cli.options import (
    STANDARD_OUTPUT,
    Number,
    Output,
    Strengths,
    TrainingOptions,
    check_paths,
    training_options,
)


@click.command(short_help="What does fairness cost? Train, compare and choose.")
@training_options
@click.option(
    "--strengths",
    type=Strengths(),
    help="Such as 0,0.1,1,10, or auto to add some where the curve bends.  [default: 0 and 24 from 0.001 to 100]",
)
@click.option("--seeds", type=click.IntRange(1, 100), default=1, show_default=True, help="Models of each strength.")
@click.option(
    "--max-unfairness",
    type=Number(0, 1),
    help="Choose the most accurate model whose unfairness (Kolmogorov distance of the scores) is at most this.",
)
@click.option("--output", type=Output(), help="File for the chosen model; needs --max-unfairness.")
@click.option("--html", type=Output(".html", ".htm"), help="File for a report with a slider over the strengths.")
@click.option("--json", "json_to", type=Output(stdout=True), help="File for the figures; - is standard output.")
def command(
    *,
    strengths: Any,
    seeds: int,
    max_unfairness: float | None,
    output: Path | None,
    html: Path | None,
    json_to: Path | None,
    **given: Any,
) -> None:
    """Train models of many strengths on FILE at once, show what fairness costs, and choose one of them.

    Half of the rows train, a quarter chooses, and the last quarter tells what the models reach.

    \b
    Example:
      metrifair frontier people.csv --label income --group sex --html report.html
    """
    if output is not None and max_unfairness is None:
        raise click.UsageError("--output needs --max-unfairness, which says which model is written")
    options = TrainingOptions(**given)
    check_paths([options.file], [output, html, json_to])
    table = options.table()
    from metrifair.cli.console import console, printable, selected, show_frontier
    from metrifair.cli.tables import write_json
    from metrifair.cli.training_file import training_file

    out = console(stderr=json_to == STANDARD_OUTPUT)
    source = training_file(options, table, strength=1.0)
    encoder, front = source.frontier(strengths=strengths, seeds=seeds)
    for line in source.description(encoder):
        out.print(printable(line))
    try:
        chosen = None if max_unfairness is None else selected(front, max_unfairness=max_unfairness)
    finally:  # where no model keeps the limit, the report still shows what is possible
        show_frontier(out, front)
        if html is not None:
            front.to_html(html, title=f"{options.label} by {', '.join(options.group)}")
            out.print(f"Report: {printable(html)}", soft_wrap=True)
        if json_to is not None:
            figures = {
                "accuracy_name": front.accuracy_name,
                "groups": list(front.groups),
                "sizes": front.sizes,
                "utility": front.utility.name,
                "points": [asdict(point) for point in front.points],
                "validation": [asdict(point) for point in front.validation_points],
                "training": [None if point is None else asdict(point) for point in front.training_points],
                "constant": None if front.constant is None else asdict(front.constant),
                "constant_text": front.constant_text,
                "area": front.area,
                "area_with_constant": front.area_with_constant,
                "notes": list(front.notes),
                "chosen": None if front.chosen is None else asdict(front.chosen),
            }
            write_json(figures, json_to)
    if chosen is not None and output is not None:
        source.model(encoder, chosen).save(output)
        out.print(f"Model: {printable(output)}", soft_wrap=True)
