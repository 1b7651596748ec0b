"""`metrifair audit`: how unfair the scores of any model are, for whom, and how sure one can be."""

from __future__ import annotations

from pathlib import Path

import click

from metrifair.cli.options import (
    CRITERIA,
    CRITERIA_HELP,
    METRICS,
    METRICS_HELP,
    STANDARD_OUTPUT,
    TABLES,
    Limit,
    Limited,
    Number,
    Output,
    check_paths,
    file_options,
    known,
)

_UNFAIR = 1  # the exit code


@click.command(short_help="How unfair are the scores in a file, and for whom?")
@click.argument("file")
@click.option("--score", required=True, metavar="COLUMN", help="The score of each row: a probability, or any number.")
@click.option("--group", required=True, multiple=True, metavar="COLUMN", help="The groups. Repeat it for several.")
@click.option("--label", metavar="COLUMN", help="What came true; many criteria need it.")
@click.option("--positive", metavar="CLASS", help="The label that counts as a yes.  [default: the last]")
@click.option("--control", multiple=True, metavar="COLUMN", help="Compare within each of its values. Repeatable.")
@click.option("--weight", metavar="COLUMN", help="How often each row counts.")
@click.option(
    "--threshold", type=Number(), help="Scores from here on are a yes.  [default: 0.5 for probabilities, else none]"
)
@click.option(
    "--criterion",
    "criteria",
    multiple=True,
    callback=known(CRITERIA),
    help=f"{CRITERIA_HELP}. Repeatable.  [default: all that the columns allow]",
)
@click.option(
    "--loss",
    type=click.Choice(["log_loss", "squared_error", "absolute_error", "huber"]),
    help="What risk_parity compares.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    callback=known(METRICS),
    help=f"{METRICS_HELP}. Repeatable.  [default: kolmogorov, wasserstein, energy]",
)
@click.option(
    "--confidence",
    type=Number(0, 1, between=True),
    default=0.95,
    show_default=True,
    help="Of intervals and certificates.",
)
@click.option(
    "--tolerance",
    type=Number(0),
    default=1e-5,
    show_default=True,
    help="Width of the bounds on a distance, for files too large to hold.",
)
@click.option(
    "--fail-above",
    "limits",
    multiple=True,
    type=Limited(),
    help="Exit with code 1 where a distance is larger, such as kolmogorov=0.1. Repeatable.",
)
@click.option("--html", type=Output(".html", ".htm"), help="File for a report to hand on.")
@click.option("--json", "json_to", type=Output(stdout=True), help="File for all findings; - is standard output.")
@click.option(
    "--output",
    type=Output(*TABLES),
    help="File for the table of findings (csv, tsv, parquet, arrow or ndjson).",
)
@click.option(
    "--most-groups",
    type=click.IntRange(2, 10_000),
    help="Groups that a column may have.  [default: 1000, with two rows each on average if there are more than 30]",
)
@file_options
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of resampling.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    file: str,
    score: str,
    group: tuple[str, ...],
    label: str | None,
    positive: str | None,
    control: tuple[str, ...],
    weight: str | None,
    threshold: float | None,
    criteria: tuple[str, ...],
    loss: str | None,
    metrics: tuple[str, ...],
    confidence: float,
    tolerance: float,
    limits: tuple[Limit, ...],
    html: Path | None,
    json_to: Path | None,
    output: Path | None,
    most_groups: int | None,
    seed: int,
    separator: str | None,
    format: str | None,  # noqa: A002
) -> None:
    """Measure how far apart the scores of groups are in FILE, a table with one row for each person.

    FILE is csv, tsv, parquet, arrow or ndjson, a pattern such as 'scores-*.parquet', or - for standard input; it may be
    larger than the memory. The exit code is 1 if a limit of --fail-above is broken.

    \b
    Example:
      metrifair audit scores.csv --score p --group sex --label y --html report.html
    """
    check_paths([file], [html, json_to, output])
    from metrifair.auditing.audit_file import audit_file
    from metrifair.cli.console import console, printable, working
    from metrifair.cli.findings import broken, metrics_asked, show_audit
    from metrifair.cli.tables import write_table, write_text

    out = console(stderr=json_to == STANDARD_OUTPUT)
    with working(f"Auditing {file}"):
        found = audit_file(
            file,
            score=score,
            group=list(group),
            label=label,
            pos_label=positive,
            control=list(control) or None,
            weight=weight,
            criteria=list(criteria) or None,
            loss=loss,
            metrics=metrics_asked(metrics, limits),
            threshold="auto" if threshold is None else threshold,
            confidence=confidence,
            random_state=seed,
            tolerance=tolerance,
            most_groups=most_groups,
            separator=separator,
            format=format,
        )
    verdict = broken(found.record, limits)
    show_audit(out, found.record)
    if html is not None:
        found.to_html(html)
        out.print(f"Report: {printable(html)}")
    if output is not None:
        write_table(found.to_frame("polars"), output)
        out.print(f"Findings: {printable(output)}")
    if json_to is not None:
        write_text(found.to_json(), json_to)
    for line in verdict:
        out.print(f"Unfair: {printable(line)}", soft_wrap=True)
    if verdict:
        ctx.exit(_UNFAIR)
