"""`metrifair frontier`: the whole trade-off between accuracy and fairness from a file of raw columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from metrifair.cli.learning import Request, learning_options
from metrifair.cli.parameters import STANDARD_OUTPUT, Number, Output, Strengths, refuse_clashes


@click.command(short_help="What does fairness cost? Train, compare and choose.")
@learning_options
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
    **options: Any,
) -> None:
    """Train models of many strengths on FILE at once, show what fairness costs, and choose one of them.

    Half of the rows train, a quarter chooses, and the last quarter tells what the models reach.

    \b
    Example:
      metrifair frontier people.csv --target income --sensitive sex --html report.html
    """
    from metrifair.cli.figures import frontier_json, keep, show_choice, show_frontier
    from metrifair.cli.lessons import lesson_of
    from metrifair.cli.tables import write_json
    from metrifair.cli.terminal import console, printable

    if output is not None and max_unfairness is None:
        raise click.UsageError("--output needs --max-unfairness, which says which model is written")
    request = Request(**options)
    refuse_clashes([request.file], [output, html, json_to])
    out = console(stderr=json_to == STANDARD_OUTPUT)
    lesson = lesson_of(request, strength=1.0)
    encoder, front = lesson.frontier(strengths=strengths, seeds=seeds)
    lesson.introduce(out, encoder)
    try:
        chosen = None if max_unfairness is None else front.select(max_unfairness=max_unfairness)
    finally:  # where no model keeps the limit, the report still shows what is possible
        show_frontier(out, front)
        show_choice(out, front)
        if html is not None:
            front.to_html(html, title=f"{lesson.request.target} by {', '.join(lesson.request.sensitive)}")
            out.print(f"Report: {printable(html)}", soft_wrap=True)
        if json_to is not None:
            write_json(frontier_json(front), json_to)
    if chosen is not None:
        keep(lesson.model(encoder, chosen), output, out)
