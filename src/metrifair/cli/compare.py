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
    hand_over,
    with_origin,
    write_asked,
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
) -> None:
    """Compare audits with the first of them. The files come from metrifair audit --json or metrifair count.

    These files contain no rows. The comparison treats the rows of two files as different, as in two periods. To compare
    two models on the same rows, audit them together: metrifair audit FILE --score a --score b.

    \b
    Example:
      metrifair compare january.json february.json --html changes.html --fail-worse
    """
    if len(files) < 2:
        raise click.UsageError("compare takes two files or more: the baseline, and what is compared with it")
    options.check_paths(files, written)
    from metrifair.api.audit_result import Audit
    from metrifair.api.compare import compare_named
    from metrifair.cli.console import console, working_with_notes
    from metrifair.support.provenance import Provenance, made_now

    out = console(stderr=written.json_to == options.STANDARD_OUTPUT)
    with working_with_notes(out, f"Comparing {len(files)} audits"):
        audits = {
            name: one if isinstance(one, Audit) else one.audit(random_state=seed)
            for name, one in audits_in("compare", files).items()
        }
        origin = Provenance(seed=seed, **made_now())
        found = compare_named(audits, origin=origin)
    hand_over(ctx, out, found, written, about=about, files=files)
    if fail_worse and any(one.verdict == "worse" for one in found.differences):
        ctx.exit(_CHANGED)


def audits_in(command: str, files: Sequence[str], *, counts_only: bool = False) -> dict[str, Any]:
    """The audits that were written as JSON, and the counts, by the names that counts have or those of their files."""
    from metrifair.api.compare import read_audit
    from metrifair.api.state import AuditState
    from metrifair.auditing.formats import SUFFIXES
    from metrifair.errors import DataError, ModelFileError
    from metrifair.support.provenance import names_of_files

    taken = "" if counts_only else "an audit's .json or "
    found: list[Any] = []
    for file in files:
        try:
            found.append(read_audit(file) if file.endswith(".json") and not counts_only else AuditState.load(file))
        except ModelFileError as error:
            if any(file.lower().endswith(ending) for ending in (*SUFFIXES, ".html", ".gz", ".zst")):
                made = f"metrifair {'count' if counts_only else 'audit'} {quote(file)} ..."
                made += " --output FILE.state" if counts_only else " --json FILE.json"
                raise DataError(
                    f"{command} takes {taken}counts of metrifair count, got {file!r}; first {made}"
                ) from None
            raise DataError(f"{command} takes {taken}counts of metrifair count; {error}") from None
    own: dict[str, int] = {}  # the first file of each name
    for place, one in enumerate(found):
        if isinstance(one, AuditState) and one.names:
            own.setdefault(", ".join(one.names), place)
    nameless = [place for place in range(len(files)) if place not in own.values()]
    stems = names_of_files([files[place] for place in nameless], taken=own)
    names = {place: name for name, place in own.items()} | dict(zip(nameless, stems, strict=True))
    return {names[place]: one for place, one in enumerate(found)}


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
    **asked: Any,
) -> None:
    """Compare each of FILES with the first. FILES are counts of metrifair count, in the order of time.

    The test allows for repeated looks. Without any change, the probability of a false alarm is about 5% (1 -
    confidence) at most, for any number of files. FILES can also be JSON files of metrifair audit.

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
        found = monitor(audits_in("monitor", files), **audit_arguments(ctx, asked, ()))
    found = replace(found, record=with_origin(ctx, found.record, files, about))
    show_alarms(out, found)
    write_asked(out, found, written, found.to_html)
    if fail_worse and any(one.alarm == "worse" for one in found.alarms):
        ctx.exit(_CHANGED)
