"""`metrifair merge`: the audit of counts that were made one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from metrifair.cli.audit import hand_over, measure_options, metrics_asked, result_options
from metrifair.cli.limits import limits_of
from metrifair.cli.options import (
    CONTINUOUS,
    SEED,
    STANDARD_OUTPUT,
    Output,
    check_paths,
    continuous_asked,
    criteria_option,
)
from metrifair.cli.rates import rate_options, reference_asked, write_rates


@click.command(short_help="Add up the counts of several files, and audit all of them together.")
@click.argument("files", nargs=-1, required=True)
@click.option("--positive", metavar="CLASS", help="The label that counts as a yes.  [default: the last]")
@criteria_option("as counted")
@CONTINUOUS
@measure_options
@rate_options
@result_options
@click.option("--save", "save_to", type=Output(), help="File for all counts together.")
@click.option("--most-groups", type=click.IntRange(2, 10_000), help="Groups that a column may have.")
@SEED
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    files: tuple[str, ...],
    positive: str | None,
    criteria: tuple[str, ...],
    continuous: tuple[str, ...],
    metrics: tuple[str, ...],
    contrast: str,
    confidence: float,
    least_count: int,
    standard: Literal["ll144", "four-fifths", "credit"] | None,
    references: tuple[str, ...],
    favourable: Literal["high", "low"],
    least_share: float,
    rates: Path | None,
    title: str | None,
    about: tuple[tuple[str, str], ...],
    html: Path | None,
    json_to: Path | None,
    output: Path | None,
    save_to: Path | None,
    most_groups: int | None,
    seed: int,
) -> None:
    """Add up the counts in FILES, which metrifair count wrote, and audit all rows together.

    \b
    Example:
      metrifair merge monday.state tuesday.state --html report.html
    """
    check_paths(files, [html, json_to, output, save_to, rates])
    from metrifair.auditing.state import AuditState
    from metrifair.cli.console import console, printable, warnings_told, working

    out = console(stderr=json_to == STANDARD_OUTPUT)
    with warnings_told(out), working(f"Adding up {len(files)} files"):
        first, *others = (AuditState.load(file) for file in files)
        state = first.merge(*others)
        found = state.audit(
            criteria=list(criteria) or None,
            continuous=continuous_asked(continuous, () if state.shape is None else state.shape.groups),
            metrics=metrics_asked(metrics, limits_of(ctx)),
            contrast=contrast,  # type: ignore[arg-type]
            confidence=confidence,
            random_state=seed,
            pos_label=positive,
            most_groups=most_groups,
            least_count=least_count,
            standard=standard,
            reference=reference_asked(references, () if state.shape is None else state.shape.groups),
            favourable=favourable,
            least_share=least_share,
            title=title,
            about=dict(about) or None,
        )
    if save_to is not None:
        state.save(save_to)
        out.print(f"Counts: {printable(save_to)}")
    write_rates(out, found, rates)
    hand_over(ctx, out, found, html=html, json_to=json_to, output=output, files=files)
