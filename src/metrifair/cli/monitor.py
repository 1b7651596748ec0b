"""`metrifair monitor`: distances over time, and whether they have changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import click

from metrifair.cli.audit import measure_options, output_options, write_asked
from metrifair.cli.options import (
    SEED,
    STANDARD_OUTPUT,
    about_options,
    check_paths,
    criteria_option,
)

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
    from metrifair.auditing.state import AuditState
    from metrifair.cli.console import command_text, console, printable, show_table, working
    from metrifair.provenance import files_of, names_of_files, with_files
    from metrifair.report.numbers import figure_text, number_text, p_text

    out = console(stderr=json_to == STANDARD_OUTPUT)
    with working(f"Looking at {len(files)} files"):
        found = monitor(
            {
                name: file if file.endswith(".json") else AuditState.load(file)
                for name, file in zip(names_of_files(files), files, strict=True)
            },
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
    for sentence in found.summary:
        out.print(printable(sentence), soft_wrap=True)
    alarms = sorted(found.alarms, key=lambda one: one.p_value or 0.0)
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
        for one in alarms[:_SHOWN]
    ]
    if rows:
        headings = ["groups", "compared", "look", "distance", "value", "since the first", "p-value", "alarm"]
        show_table(out, headings, rows, left=4)
    write_asked(out, found, html=html, json_to=json_to, output=output)
    if fail_worse and any(one.alarm == "worse" for one in alarms):
        ctx.exit(_CHANGED)
