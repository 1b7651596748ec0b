"""`metrifair find-groups`: search a file for groups that a model treats worse."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from metrifair.cli import options
from metrifair.cli.audit import WRITTEN, Written, check_columns, write_results
from metrifair.cli.help_sections import SectionedCommand

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.api.find_groups import GroupSearch
    from metrifair.auditing.sources.file_formats import ReadOptions


@click.command(
    "find-groups",
    cls=SectionedCommand,
    short_help="Find the groups that a model treats worse.",
)
@click.argument("file")
@options.command_options("find-groups")
@options.REPORT_ABOUT
@WRITTEN
@options.READING_OPTIONS
@click.pass_context
def find_groups_command(
    ctx: click.Context,
    /,
    *,
    file: str,
    written: Written,
    about: options.About,
    reading: ReadOptions,
    outcome: str,
    **arguments: Any,
) -> None:
    """Search FILE for groups that are worse than the other rows, without naming them first.

    A group is a conjunction of conditions on the columns --among and --group, such as job=Sales and
    age ≤25. All claims hold jointly, however many groups are searched. The rows must fit into
    memory.

    \b
    Example:
      metrifair find-groups scores.csv --score p --label y --outcome missed-positives \\
        --among job --among age --group sex --html groups.html
    """
    if not (arguments["among"] or arguments["group"]):
        raise click.UsageError("pass the columns to search: --among COLUMN, or --group COLUMN")
    options.check_paths([file], written)
    check_columns(
        file,
        reading,
        **{role: arguments[role] for role in ("score", "label", "weight", "clusters")},
        group=(*arguments["among"], *arguments["group"]),
        control=(),
    )
    from metrifair.cli.console import command_text, console, working_with_notes

    out = console(stderr=written.json_to == options.STANDARD_OUTPUT)
    with working_with_notes(out, f"Searching {file}"):
        search = _search(file, reading, outcome.replace("-", " "), arguments)
    origin = replace(search.provenance, call=command_text(ctx)).described(*about)
    search = replace(search, provenance=origin)
    _show(out, search)
    write_results(out, search, written, search.to_html)


def _search(
    file: str, reading: ReadOptions, outcome: str, arguments: dict[str, Any]
) -> GroupSearch:
    from metrifair.api.search_file import search_file

    columns = {name: arguments[name] for name in ("score", "label", "weight", "clusters", "among")}
    options = {
        name: arguments[name]
        for name in (
            "pos_label",
            "max_conditions",
            "min_rows",
            "search_rows",
            "confidence",
            "random_state",
        )
    }
    return search_file(
        file,
        reading,
        **columns,
        protected=arguments["group"],
        outcome=outcome,
        threshold="auto" if arguments["threshold"] is None else arguments["threshold"],
        **options,
    )


def _show(out: Console, search: GroupSearch) -> None:
    """The sentences, the listed groups and the bounds of all gaps."""
    from metrifair.cli.console import say
    from metrifair.cli.show import show_search

    say(out, *search.summary.splitlines())
    show_search(out, search.record)
