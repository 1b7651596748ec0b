"""`metrifair count` and `merge`: the counts of a file's scores, and the audit of the counts of many files together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from metrifair.auditing.out_of_core.formats import ReadOptions
from metrifair.cli import options
from metrifair.cli.audit import (
    Written,
    audit_arguments,
    check_columns,
    hand_over,
    measure_options,
    result_options,
    table_at,
)
from metrifair.cli.help_sections import SectionedCommand
from metrifair.cli.rules import Rates, by_standard, rate_options


@click.command(cls=SectionedCommand, short_help="Count the scores in a file, to audit many files together.")
@click.argument("file")
@options.column("--score", "Column with the scores: probabilities, or any numbers.", required=True)
@options.GROUP
@options.CUTS
@options.LABEL
@options.CONTROL
@options.WEIGHT
@click.option(
    "--score-range",
    type=options.Number(),
    nargs=2,
    default=(0.0, 1.0),
    metavar="LOW HIGH",
    help="Smallest and largest possible score, the same for all files that are merged.",
)
@click.option(
    "--threshold",
    type=options.Number(),
    help="Scores at or above it count as positive decisions.  [default: 0.5 for probabilities]",
)
@options.FAVORABLE_DECISION
@options.criteria_option("all that the columns allow")
@click.option("--name", default="", help="Name of the counted rows, such as a day or a site.")
@click.option(
    "--min-group-size",
    type=click.IntRange(1),
    default=1,
    help="Minimum number of rows in a cell. Smaller cells are not written.",
)
@click.option("--output", type=options.Output(), required=True, help="File for the counts.")
@options.file_options
@options.TABLE
def count_command(
    *,
    file: str,
    cuts: tuple[tuple[str, list[float]], ...],
    score_range: tuple[float, float],
    threshold: float | None,
    criteria: tuple[str, ...],
    name: str,
    min_group_size: int,
    output: Path,
    reading: ReadOptions,
    table: str | None,
    query: str | None,
    **columns: Any,
) -> None:
    """Count the scores in FILE by group, label and bin. The output contains no rows; counts of many files add up.

    FILE is a file or a database, as for audit. The output has the number of rows in each cell, and the smallest and
    largest score in each bin. Up to 4,096 distinct scores are written one by one.

    \b
    Example:
      metrifair count monday.csv --score p --group sex --label y --name Monday --output monday.state
    """
    place = table_at(file, table, query, reading, [output])
    check_columns(file, reading, **columns)
    from metrifair.api.count_file import count_file
    from metrifair.api.state import AuditState
    from metrifair.auditing.out_of_core.columns import Roles
    from metrifair.cli.console import console, say, working_with_notes

    state = AuditState(
        list(criteria) or None, score_range=score_range, threshold="auto" if threshold is None else threshold, name=name
    )
    roles = Roles.named(**columns, cuts=options.cuts_asked(cuts))
    out = console()
    with working_with_notes(out, f"Counting {file if place is None else place.name}"):
        if place is None:
            count_file(state, file, roles, reading)
        else:
            from metrifair.api.audit_table import count_table

            count_table(state, place, roles, missing=reading.missing)
    kept = state.without(min_group_size)
    kept.save(output)
    say(out, f"{kept!r}; {kept.left_out:,} rows left out.", f"Counts: {output}")


@click.command(cls=SectionedCommand, short_help="Merge the counts of several files and audit them together.")
@click.argument("files", nargs=-1, required=True)
@options.POSITIVE
@options.criteria_option("as counted")
@options.CONTINUOUS
@measure_options
@rate_options
@result_options
@click.option("--save", "save_to", type=options.Output(), help="File for the merged counts.")
@click.option("--max-groups", type=click.IntRange(2, 10_000), help="Maximum number of groups in a column.")
@options.SEED
@click.pass_context
def merge_command(
    ctx: click.Context,
    /,
    *,
    files: tuple[str, ...],
    rates: Path | None,
    standard: Rates,
    written: Written,
    about: options.About,
    save_to: Path | None,
    **asked: Any,
) -> None:
    """Merge the counts in FILES, the output of metrifair count, and audit all rows together.

    \b
    Example:
      metrifair merge monday.state tuesday.state --html report.html
    """
    options.check_paths(files, [*written, save_to, rates])
    from metrifair.cli.compare import audits_in
    from metrifair.cli.console import console, say, working_with_notes
    from metrifair.cli.show import write_rates

    out = console(stderr=written.json_to == options.STANDARD_OUTPUT)
    with working_with_notes(out, f"Adding up {len(files)} files"):
        first, *others = audits_in("merge", files, counts_only=True).values()
        state = first.merge(*others)
        columns = () if state.shape is None else state.shape.groups
        found = by_standard(state.audit(**audit_arguments(ctx, asked, columns)), standard, columns)
    if save_to is not None:
        state.save(save_to)
        say(out, f"Counts: {save_to}")
    write_rates(out, found, rates)
    hand_over(ctx, out, found, written, about=about, files=files, details=standard.details)
