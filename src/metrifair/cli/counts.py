"""`metrifair count` and `merge`: the counts of a file's scores, and the audit of the counts of
many files together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from metrifair.auditing.sources.file_formats import ReadOptions
from metrifair.cli import options
from metrifair.cli.audit import (
    WRITTEN,
    Written,
    audit_arguments,
    check_columns,
    report_audit,
    table_at,
)
from metrifair.cli.help_sections import SectionedCommand
from metrifair.cli.proxies import take_probabilities
from metrifair.cli.rules import LIMITS, RATES_OPTIONS, Rates, with_rates


@click.command(
    cls=SectionedCommand, short_help="Count the scores in a file, to audit many files together."
)
@click.argument("file")
@options.command_options("count")
@options.READING_OPTIONS
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
    """Count the scores in FILE by group, label and bin. The output contains no rows; counts of many
    files add up.

    FILE is a file or a database, as for audit. The output has the number of rows in each cell, and
    the smallest and largest score in each bin. Up to 4,096 distinct scores are written one by one.

    \b
    Example:
      metrifair count monday.csv --score p --group sex --label y --name Monday --output monday.state
    """
    proxy = take_probabilities(columns)
    place = table_at(file, table, query, reading, [output])
    check_columns(file, reading, **columns | {**proxy.columns})
    from metrifair.api.state import AuditState
    from metrifair.auditing.sources.column_roles import Roles
    from metrifair.auditing.sources.state_rows import count_file, count_table
    from metrifair.cli.console import console, say, working_with_notes
    from metrifair.wording.numbers import count_text

    state = AuditState(
        list(criteria) or None,
        score_range=score_range,
        threshold="auto" if threshold is None else threshold,
        name=name,
    )
    roles = Roles.from_names(**columns | {**proxy.arguments}, cuts=options.cuts_argument(cuts))
    out = console()
    counted = file if place is None else place.name
    with working_with_notes(out, f"Counting {counted}"):
        if place is None:
            count_file(state, file, roles, reading)
        else:
            count_table(state, place, roles, missing=reading.missing)
    released = state.without(min_group_size)
    released.save(output)
    say(out, f"{released!r}; {count_text(released.left_out, 'row')} left out.", f"Counts: {output}")


@click.command(
    cls=SectionedCommand, short_help="Merge the counts of several files and audit them together."
)
@click.argument("files", nargs=-1, required=True)
@options.command_options("merge")
@LIMITS
@RATES_OPTIONS
@options.REPORT_ABOUT
@WRITTEN
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
    **arguments: Any,
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
    from metrifair.wording.numbers import count_text

    out = console(stderr=written.json_to == options.STANDARD_OUTPUT)
    with working_with_notes(out, f"Adding up {count_text(len(files), 'file')}"):
        first, *others = audits_in("merge", files, counts_only=True).values()
        state = first.merge(*others)
        columns = () if state.shape is None else state.shape.groups
        result = with_rates(
            state.audit(**audit_arguments(ctx, arguments, columns)), standard, columns
        )
    if save_to is not None:
        state.save(save_to)
        say(out, f"Counts: {save_to}")
    write_rates(out, result, rates)
    report_audit(ctx, out, result, written, about=about, files=files, details=standard.details)
