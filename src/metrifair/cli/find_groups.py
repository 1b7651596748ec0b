"""`metrifair find-groups`: search a file for groups that a model treats worse."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from metrifair.cli import options
from metrifair.cli.audit import WRITTEN, Written, check_columns, write_results
from metrifair.cli.help_sections import SectionedCommand
from metrifair.errors import DataError

if TYPE_CHECKING:
    import polars as pl
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
@options.READING
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
    show_search(out, search)
    write_results(out, search, written, search.to_html)


def _search(
    file: str, reading: ReadOptions, outcome: str, arguments: dict[str, Any]
) -> GroupSearch:
    """The search of the rows that have a score, a label and a weight."""
    from metrifair.api.find_groups import find_groups
    from metrifair.auditing.sources.typed_tables import typed_table

    roles = {
        role: [arguments[role]]
        for role in ("score", "label", "weight", "clusters")
        if arguments[role] is not None
    }
    names = {"among": arguments["among"], "group": arguments["group"]}
    texts = [arguments["clusters"]] if arguments["clusters"] else []
    table, files = typed_table(file, reading, texts=texts, roles={**roles, **names})
    needed = [name for role, (name,) in roles.items() if role != "clusters"]
    used = _with_values(table, needed, arguments["label"])
    label, weight, clusters = (
        None if arguments[role] is None else used[arguments[role]]
        for role in ("label", "weight", "clusters")
    )
    protected = None
    if arguments["group"]:
        protected = used.select(arguments["group"])
    search = find_groups(
        label,
        used[arguments["score"]],
        used.select(arguments["among"] or arguments["group"]),
        outcome=outcome,
        sensitive_features=protected,
        threshold="auto" if arguments["threshold"] is None else arguments["threshold"],
        pos_label=arguments["pos_label"],
        sample_weight=weight,
        clusters=clusters,
        **{
            name: arguments[name]
            for name in ("max_conditions", "min_rows", "search_rows", "confidence", "random_state")
        },
    )
    left_out = {"missing_score": len(table) - len(used)} if len(used) < len(table) else {}
    origin = replace(
        search.provenance,
        files=files,
        source="",
        rows_read=len(table),
        left_out=left_out,
        reading=reading.changed,
    )
    return replace(search, provenance=origin)


def _with_values(table: pl.DataFrame, needed: list[str], label: str | None) -> pl.DataFrame:
    """The rows with a value in each of these columns; a word such as NA is none in a label."""
    from metrifair.problem.spelling import MISSING

    used = table.drop_nulls(needed)
    if label is not None and str(used[label].dtype) == "String":
        words = used[label].str.strip_chars().str.to_lowercase()
        used = used.filter(~words.is_in(MISSING))
    if not len(used):
        raise DataError(f"no row has a value in each of {', '.join(needed)}")
    return used


def show_search(out: Console, search: GroupSearch) -> None:
    """The sentences, the listed groups and the bounds of all gaps."""
    from metrifair.cli.console import say, show_columns
    from metrifair.wording.groups import GROUP_KEYS, gap_columns, group_table

    say(out, *search.summary)
    record = search.record
    if record.listed:
        show_columns(out, group_table(record).pick(*GROUP_KEYS), record.listed)
    if any(group.is_protected for group in record.listed):
        say(out, "* Has a condition on a protected attribute.")
    show_columns(out, gap_columns(record), record.largest_gaps)
