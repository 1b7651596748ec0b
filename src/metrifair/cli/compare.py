"""`metrifair compare` and `monitor`: what got better or worse between audits, and over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

import click

from metrifair.cli import options
from metrifair.cli.audit import (
    WRITTEN,
    Written,
    audit_arguments,
    report_audit,
    with_origin,
    write_results,
)
from metrifair.cli.help_sections import SectionedCommand

_CHANGED = 1  # the exit code


@click.command(cls=SectionedCommand, short_help="Compare two audits: what got better or worse.")
@click.argument("files", nargs=-1, required=True, metavar="BEFORE AFTER...")
@options.command_options("compare")
@options.REPORT_ABOUT
@WRITTEN
@click.pass_context
def compare_command(
    ctx: click.Context,
    /,
    *,
    files: tuple[str, ...],
    about: options.About,
    written: Written,
    fail_worse: bool,
    seed: int,
    clusters: str | None,
) -> None:
    """Compare audits with the first of them. The files come from metrifair audit --json or
    metrifair count.

    These files contain no rows. The comparison treats the rows of two files as different, as in two
    periods. To compare two models on the same rows, audit them together: metrifair audit FILE
    --score a --score b. If the audits have clusters, such as persons, a cluster may have rows in
    both.

    \b
    Example:
      metrifair compare january.json february.json --html changes.html --fail-worse
    """
    if len(files) < 2:
        raise click.UsageError(
            "compare takes two files or more: the baseline, and the files to compare with it"
        )
    options.check_paths(files, written)
    from metrifair.api.audit_result import Audit
    from metrifair.api.compare import compare_named
    from metrifair.cli.console import console, working_with_notes
    from metrifair.support.provenance import Provenance, made_now

    out = console(stderr=written.json_to == options.STANDARD_OUTPUT)
    with working_with_notes(out, f"Comparing {len(files)} audits"):
        audits = {
            name: audit if isinstance(audit, Audit) else audit.audit(random_state=seed)
            for name, audit in audits_in("compare", files).items()
        }
        origin = Provenance(seed=seed, **made_now())
        compared = compare_named(audits, clusters=clusters, origin=origin)
    report_audit(ctx, out, compared, written, about=about, files=files)
    if fail_worse:
        verdicts = [(difference.model, difference.verdict) for difference in compared.differences]
        _exit_if_worse(ctx, verdicts, last=compared.record.names[-1])


def audits_in(command: str, files: Sequence[str], *, counts_only: bool = False) -> dict[str, Any]:
    """The audits that were written as JSON, and the counts, by the names that counts have or
    those of their files.
    """
    from metrifair.api.compare import read_audit
    from metrifair.api.state import AuditState
    from metrifair.auditing.sources.file_formats import SUFFIXES
    from metrifair.errors import DataError, ModelFileError
    from metrifair.saving.modelfile import NotAModelFile
    from metrifair.support.provenance import names_of_files

    also_json = "" if counts_only else "an audit's .json or "
    audits: list[Any] = []
    for file in files:
        try:
            if file.endswith(".json") and not counts_only:
                audits.append(read_audit(file))
            else:
                audits.append(AuditState.load(file))
        except ModelFileError as error:
            is_table = file.lower().endswith((*SUFFIXES, ".gz", ".zst"))
            if is_table or isinstance(error, NotAModelFile):
                rows = quote(file) if is_table else "ROWS.csv"
                other = "" if is_table else ", which is something else or was cut short"
                example = f"metrifair {'count' if counts_only else 'audit'} {rows} ..."
                example += " --output FILE.state" if counts_only else " --json FILE.json"
                raise DataError(
                    f"{command} takes {also_json}counts of metrifair count, got {file!r}{other}; "
                    f"first {example}"
                ) from None
            raise DataError(
                f"{command} takes {also_json}counts of metrifair count; {error}"
            ) from None
    first_files: dict[str, int] = {}  # the first file of each name
    for place, audit in enumerate(audits):
        if isinstance(audit, AuditState) and audit.names:
            first_files.setdefault(", ".join(audit.names), place)
    nameless = [place for place in range(len(files)) if place not in first_files.values()]
    stems = names_of_files([files[place] for place in nameless], taken=first_files)
    names = {place: name for name, place in first_files.items()} | dict(
        zip(nameless, stems, strict=True)
    )
    return {names[place]: audit for place, audit in enumerate(audits)}


@click.command(cls=SectionedCommand, short_help="Monitor distances between groups over time.")
@click.argument("files", nargs=-1, required=True)
@options.command_options("monitor")
@options.REPORT_ABOUT
@WRITTEN
@click.pass_context
def monitor_command(
    ctx: click.Context,
    /,
    *,
    files: tuple[str, ...],
    written: Written,
    about: options.About,
    fail_worse: bool,
    **arguments: Any,
) -> None:
    """Compare each of FILES with the first. FILES are counts of metrifair count, in the order of
    time.

    The test allows for repeated looks. If no scores change, the probability of any alarm is at most
    5% (1 - confidence), for any number of files. FILES can also be JSON files of metrifair audit,
    or have weights: the probability is then approximate.

    \b
    Example:
      metrifair monitor monday.state tuesday.state wednesday.state --html week.html
    """
    options.check_paths(files, written)
    from metrifair.api.monitor import monitor
    from metrifair.cli.console import console, working_with_notes
    from metrifair.cli.show import show_alarms

    out = console(stderr=written.json_to == options.STANDARD_OUTPUT)
    with working_with_notes(out, f"Looking at {len(files)} files"):
        series = monitor(audits_in("monitor", files), **audit_arguments(ctx, arguments, ()))
    series = replace(series, record=with_origin(ctx, series.record, files, about))
    show_alarms(out, series)
    write_results(out, series, written, series.to_html)
    if fail_worse:
        verdicts = [(look.look, look.alarm) for look in series.record.series]
        _exit_if_worse(ctx, verdicts, last=series.record.looks[-1])


def _exit_if_worse(ctx: click.Context, verdicts: Sequence[tuple[str, str]], *, last: str) -> None:
    """Exit with code 1 if a figure got worse.

    If no figure of the last audit was tested, raise an error.
    """
    from metrifair.errors import DataError

    if any(verdict == "worse" for _, verdict in verdicts):
        ctx.exit(_CHANGED)
    if all(verdict == "not_tested" for name, verdict in verdicts if name == last):
        raise DataError(
            "--fail-worse: no figure of the last file could be tested: its groups differ, are too "
            "small, or have no "
            "interval"
        )
