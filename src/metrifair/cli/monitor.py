"""`metrifair monitor`: distances over time, and whether they have changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from metrifair.cli.audit import measure_options, output_options, write_asked
from metrifair.cli.options import (
    SEED,
    STANDARD_OUTPUT,
    about_options,
    check_paths,
    criteria_option,
)

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.auditing.monitor import AuditSeries

_CHANGED = 1  # the exit code
_SHOWN = 20


@click.command(short_help="Have distances changed over time?")
@click.argument("files", nargs=-1, required=True)
@criteria_option("as counted")
@measure_options
@about_options
@output_options
@click.option("--fail-worse", is_flag=True, help="Exit with code 1 where a distance has grown.")
@SEED
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    files: tuple[str, ...],
    criteria: tuple[str, ...],
    metrics: tuple[str, ...],
    contrast: Literal["pairs", "rest", "independence"],
    confidence: float,
    least_count: int,
    title: str | None,
    about: tuple[tuple[str, str], ...],
    html: Path | None,
    json_to: Path | None,
    output: Path | None,
    fail_worse: bool,
    seed: int,
) -> None:
    """Compare each of FILES, counts of metrifair count in the order of time, with the first of them.

    The test holds for repeated looks: with no change, the chance of any false alarm is at most 5% (1 - confidence), in
    however many files. JSON of metrifair audit is taken too.

    \b
    Example:
      metrifair monitor monday.state tuesday.state wednesday.state --html week.html
    """
    check_paths(files, [html, json_to, output])
    from metrifair.auditing.monitor import monitor
    from metrifair.cli.compare import audits_in
    from metrifair.cli.console import command_text, console, working
    from metrifair.provenance import files_of, with_files

    out = console(stderr=json_to == STANDARD_OUTPUT)
    with working(f"Looking at {len(files)} files"):
        found = monitor(
            audits_in("monitor", files),
            criteria=list(criteria) or None,
            metrics=list(metrics) or None,
            contrast=contrast,
            confidence=confidence,
            least_count=least_count,
            random_state=seed,
            title=title,
            about=dict(about),
        )
    origins = with_files(found.record.provenance, files)
    whole = replace(found.record.origin, call=command_text(ctx), files=files_of(origins))
    found = replace(found, record=replace(found.record, origin=whole, provenance=origins))
    show_alarms(out, found)
    write_asked(out, found, html=html, json_to=json_to, output=output)
    if fail_worse and any(one.alarm == "worse" for one in found.alarms):
        ctx.exit(_CHANGED)


def show_alarms(out: Console, found: AuditSeries) -> None:
    """Sentences first, then the distances that have changed, the most certain on top."""
    from metrifair.cli.console import printable, show_table
    from metrifair.report.numbers import figure_text, number_text, p_text

    for sentence in found.summary:
        out.print(printable(sentence), soft_wrap=True)
    rows = [
        [
            f"{one.attribute}: {', '.join(one.groups)}",
            f"{one.within}: {one.criterion.replace('_', ' ')}",
            one.look,
            one.metric,
            number_text(one.value),
            figure_text(one.difference, signed=True),
            p_text(one.p_value),
            one.alarm,
        ]
        for one in sorted(found.alarms, key=lambda one: one.p_value or 0.0)[:_SHOWN]
    ]
    if rows:
        headings = ["groups", "compared", "look", "distance", "value", "since the first", "p-value", "alarm"]
        show_table(out, headings, rows, left=4)
