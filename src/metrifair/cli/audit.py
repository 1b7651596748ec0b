"""`metrifair audit`: measure the gaps between groups in the scores of any model, with
confidence intervals.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from metrifair.auditing.sources.connections import DatabaseTable, is_address, open_table
from metrifair.auditing.sources.file_formats import is_utf8
from metrifair.auditing.sources.file_tables import matching_files, open_files
from metrifair.cli import options, rules
from metrifair.cli.group_search import SEARCHED, Searched, with_search
from metrifair.cli.help_sections import SectionedCommand
from metrifair.cli.option_names import OPTION_NAMES
from metrifair.cli.proxies import take_probabilities
from metrifair.errors import DataError

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.api.audit_result import Audit
    from metrifair.api.compare import AuditDifference
    from metrifair.api.find_groups import GroupSearch
    from metrifair.api.monitor import AuditSeries
    from metrifair.auditing.sources.file_formats import ReadOptions

_UNFAIR = 1  # the exit code


class Written(NamedTuple):
    """The requested output files."""

    html: Path | None
    pdf: Path | None
    json_to: Path | None
    output: Path | None


WRITTEN = options.gather_options("written", Written, Written._fields)
"""A command gets the files to write as ``written``."""


@click.command(
    cls=SectionedCommand,
    context_settings={"allow_extra_args": True},
    short_help="Measure the gaps between groups in a file of scores.",
)
@click.argument("file")
@options.command_options("audit")
@rules.LIMITS
@rules.RATES_OPTIONS
@SEARCHED
@options.REPORT_ABOUT
@WRITTEN
@options.READING_OPTIONS
@click.pass_context
def audit_command(
    ctx: click.Context,
    /,
    *,
    file: str,
    score: tuple[str, ...],
    rates: Path | None,
    standard: rules.Rates,
    searched: Searched,
    written: Written,
    about: options.About,
    reading: ReadOptions,
    table: str | None,
    query: str | None,
    **arguments: Any,
) -> None:
    """Measure the gaps between the score distributions of groups in FILE, a table with one row for
    each person.

    FILE is csv, tsv, parquet, arrow, ndjson or Excel, a pattern such as 'scores-*.parquet', or -
    for standard input. It may be larger than memory. FILE can also be a database, such as
    duckdb:scores.db, or an address that Ibis connects to, such as postgres://me@host/db. The
    database counts its own rows; --table names the table, and --query selects rows.

    The exit code is 1 if the audit breaks a limit of --fail-above, --fail-certain-above,
    --fail-below or --fail-certain-below.

    \b
    Examples:
      metrifair audit scores.csv --score p --group sex --label y --html report.html
      metrifair audit duckdb:scores.db --table scores --score p --group sex
      metrifair audit duckdb:scores.db --query "select * from scores where year = 2026" \\
        --score p --group sex
    """
    if rates is not None and len(score) > 1:
        raise DataError(rules.SEVERAL_RATES)
    if ctx.args:
        raise click.UsageError(
            f"audit reads one FILE, got {[file, *ctx.args]}; write an audit of each with --json "
            "and run metrifair "
            "compare, or read files of one table with a pattern such as 'scores-*.csv'"
        )
    proxy = take_probabilities(arguments)
    searched.check(file, score, arguments["group"])
    place = table_at(file, table, query, reading, [*written, rates])
    columns = {**arguments, **proxy.columns}
    columns["group"] = [*columns["group"], *searched.among]
    check_columns(file, reading, score=score, **columns)
    from metrifair.api.audit_columns import audit_file, audit_table
    from metrifair.api.audit_result import Audit
    from metrifair.cli.console import console, working_with_notes
    from metrifair.cli.show import write_rates

    out = console(stderr=written.json_to == options.STANDARD_OUTPUT)
    if place is None:
        name = file
        audit = partial(audit_file, file, reading=reading)
    else:
        name = place.name
        audit = partial(audit_table, place, missing=reading.missing)
    with working_with_notes(out, f"Auditing {name}"):
        scores = score[0] if len(score) == 1 else list(score)
        audited = audit(
            score=scores,
            **audit_arguments(ctx, arguments, arguments["group"]) | {**proxy.arguments},
        )
        result = rules.with_rates(audited, standard, arguments["group"])
        if isinstance(result, Audit):
            result = with_search(result, searched, file, reading, {**arguments, "score": scores})
    write_rates(out, result, rates)
    report_audit(ctx, out, result, written, about=about, details=standard.details)


def audit_arguments(
    ctx: click.Context, values: Mapping[str, Any], columns: Sequence[str]
) -> dict[str, Any]:
    """Options as arguments of an audit of these columns, under the same names."""
    from metrifair.auditing.request import AuditOptions

    arguments = {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }
    for name in {"control", "criteria"} & set(arguments):
        arguments[name] = arguments[name] or None
    if "continuous" in values:
        arguments["continuous"] = options.continuous_argument(values["continuous"], columns)
    if "cuts" in values:
        arguments["cuts"] = options.cuts_argument(values["cuts"])
    if "threshold" in values:
        arguments["threshold"] = "auto" if values["threshold"] is None else values["threshold"]
    arguments["metrics"] = metrics_argument(values["metrics"], rules.typed_limits(ctx))
    extra: dict[str, Any] = {
        field.name: arguments.pop(field.name)
        for field in fields(AuditOptions)
        if field.name in arguments
    }
    return arguments | {"options": AuditOptions(**extra)}


def report_audit(
    ctx: click.Context,
    out: Console,
    result: Audit | AuditDifference,
    written: Written,
    *,
    about: options.About,
    files: Sequence[str] = (),
    details: bool = False,
) -> None:
    """Show the audit, write the requested files, and exit with code 1 if a limit is broken.

    The report names its command, and ``files`` if the audit does not record them. For an audit by a
    standard it shows the tables of rates, and on request ``details``.
    """
    from metrifair.api.audit_result import Audit, RateTable
    from metrifair.cli.console import say
    from metrifair.cli.show import show_audit, show_differences
    from metrifair.support.provenance import source_files

    checks = rules.check_limits(result, rules.typed_limits(ctx))
    if not isinstance(result, Audit):
        record = with_origin(ctx, result.record, files, about)
        audits = {
            name: replace(audit, record=replace(audit.record, provenance=origin))
            for (name, audit), origin in zip(result.audits.items(), record.provenance, strict=True)
        }
        result = replace(result, audits=audits, record=record)
        show_differences(out, result)
    else:
        result = with_provenance(
            ctx, result, about, **({"files": source_files(files)} if files else {})
        )
        show_audit(out, result.record, details=details)
    page: Callable[..., Any] = result.to_html
    if isinstance(result, Audit) and result.record.settings.standard is not None:
        page = partial(RateTable(result).to_html, details=details)
    write_results(out, result, written, page, limits=[check.content for check in checks])
    say(out, *(f"Unfair: {line}" for check in checks for line in check.lines))
    say(
        out,
        *(
            f"Possibly unfair, but no limit is broken: {line}"
            for check in checks
            for line in check.possible
        ),
    )
    if any(check.lines for check in checks):
        ctx.exit(_UNFAIR)


def with_provenance(
    ctx: click.Context, audit: Audit, about: options.About, **sources: Any
) -> Audit:
    """The audit with its command, its title and facts, and these sources in its provenance."""
    from metrifair.cli.console import command_text

    origin = replace(audit.provenance, call=command_text(ctx), **sources).described(*about)
    return replace(audit, record=replace(audit.record, provenance=origin))


def with_origin(ctx: click.Context, record: Any, files: Sequence[str], about: options.About) -> Any:
    """The record of several audits with its command, and with ``files`` if the audits do not
    record theirs.
    """
    from metrifair.cli.console import command_text
    from metrifair.support.provenance import distinct_files, with_files

    origins = with_files(record.provenance, files) if files else record.provenance
    origin = replace(
        record.origin, call=command_text(ctx), files=distinct_files(origins)
    ).described(*about)
    return replace(record, origin=origin, provenance=origins)


def write_results(
    out: Console,
    result: Audit | AuditDifference | AuditSeries | GroupSearch,
    written: Written,
    to_html: Callable[[Path], None],
    *,
    limits: Sequence[Mapping[str, object]] = (),
) -> None:
    """Write the files of the options and print their paths; ``to_html`` writes the page.

    JSON includes ``limits``.
    """
    from metrifair.cli.console import say, write_pages, write_text
    from metrifair.support.files import write_json

    write_pages(out, to_html, written.html, written.pdf)
    if written.output is not None:
        from metrifair.cli.tables import write_table

        write_table(result.to_frame("polars"), written.output)
        say(out, f"Table: {written.output}")
    if written.json_to is not None:
        text = result.to_json()
        write_text(
            write_json({**json.loads(text), "limits": limits}) if limits else text, written.json_to
        )


def table_at(
    file: str,
    table: str | None,
    query: str | None,
    reading: ReadOptions,
    outputs: Iterable[Path | None],
) -> DatabaseTable | None:
    """The table of a database, or the rows of a query; None for a file.

    Names are checked before anything is read.
    """
    if not is_address(file):
        for option, value in (("--table", table), ("--query", query)):
            if value is not None:
                raise DataError(
                    f"{option} reads from a database, and {file} is a file; use duckdb:FILE for a "
                    "database"
                )
        options.check_paths([file], outputs)
        return None
    if reading.replace:
        raise DataError(
            "--replace rewrites cells of files, not of a database; rewrite them with --query SQL, "
            "or name the "
            "favorable value of a decision with --favorable-decision VALUE"
        )
    changed = reading.changed.keys() - {"missing"}
    if changed:
        names = sorted(OPTION_NAMES.argument(name) for name in changed)
        raise DataError(f"these options read files, not databases: leave out {', '.join(names)}")
    options.check_paths([], outputs)
    return open_table(file, table, query)


def check_columns(file: str, reading: ReadOptions, **columns: Any) -> None:
    """Raise an error for an unknown column before heavy imports, if the columns can be read
    without a copy.
    """
    if (
        is_address(file)
        or not matching_files(file)
        or not is_utf8(reading)
        or reading.format == "excel"
        or ".xls" in file.lower()
    ):
        return
    roles = {role: columns[role] for role in ("score", "label", "weight", "group", "control")}
    roles["cluster"] = columns.get("clusters")
    with open_files(file, reading) as source:
        source.check(
            {
                role: [names] if isinstance(names, str) else names or ()
                for role, names in roles.items()
            }
        )


def metrics_argument(metrics: Sequence[str], limits: Iterable[rules.Limit]) -> list[str] | None:
    """The metrics to compute: those that were named, or the usual ones, and those with a limit;
    None: the usual ones.

    >>> metrics_argument(["energy"], [rules.Limit("kolmogorov", 0.1), rules.Limit("accuracy_difference", 0.1)])
    ['energy', 'kolmogorov']
    """
    from metrifair.metrics.registry import USUAL_METRICS

    limited = [limit.metric for limit in limits if limit.metric in options.METRIC_NAMES]
    if not metrics and set(limited) <= set(USUAL_METRICS):
        return None
    return list(dict.fromkeys([*(metrics or USUAL_METRICS), *limited]))
