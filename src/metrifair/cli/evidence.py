"""`metrifair evidence`, `verify` and `plan`: audits that others can check, and the rows that an
audit needs.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metrifair.auditing.sources.file_formats import ReadOptions
from metrifair.auditing.sources.file_tables import matching_files
from metrifair.cli import options, rules
from metrifair.cli.audit import audit_arguments, check_columns, with_provenance
from metrifair.cli.group_search import SEARCHED, Searched, with_search
from metrifair.cli.help_sections import SectionedCommand
from metrifair.errors import DataError
from metrifair.support.provenance import source_files

if TYPE_CHECKING:
    from metrifair.api.state import AuditState
    from metrifair.auditing.sources.column_roles import Roles

_DIFFERS = 1  # exit codes
_NOT_CHECKED = 2


@click.command(
    cls=SectionedCommand, short_help="Write an audit as evidence that others can verify."
)
@click.argument("file")
@options.command_options("evidence")
@SEARCHED
@options.REPORT_ABOUT
@options.READING_OPTIONS
@click.pass_context
def evidence_command(
    ctx: click.Context,
    /,
    *,
    file: str,
    cuts: tuple[tuple[str, list[float]], ...],
    score_range: tuple[float, float],
    threshold: float | None,
    favorable_decision: str | None,
    standard: Any,
    references: tuple[str, ...],
    min_group_share: float,
    searched: Searched,
    about: options.About,
    reading: ReadOptions,
    out: Path,
    sign: str | None,
    no_pdf: bool,
    again: bool,
    **arguments: Any,
) -> None:
    """Audit the scores in FILE and write evidence: report, tables, all figures, counts and a
    manifest.

    FILE is a file as for audit, of any size. The command counts its rows by group, stratum, label
    and score. All figures are computed from these counts, so that metrifair verify can recompute
    them. The evidence contains no other column. With --find-groups, it contains counts of groups by
    the columns --among, unless --min-cell is above 1.

    \b
    Example:
      metrifair evidence scores.csv --score p --group sex --label y --signed-by "A. Auditor" \\
        --purpose review --out evidence/
    """
    options.check_paths([file], [out])
    _check_has_hash(file)
    columns = {
        name: arguments.pop(name) for name in ("score", "group", "label", "control", "weight")
    }
    searched.check(file, [columns["score"]], columns["group"])
    names = {**columns, "group": [*columns["group"], *searched.among]}
    check_columns(file, reading, **names)
    from metrifair.api.evidence_writer import write_evidence
    from metrifair.auditing.sources.column_roles import Roles
    from metrifair.cli.console import console, say, working_with_notes
    from metrifair.cli.show import show_audit

    released = {name: arguments.pop(name) for name in ("min_cell", "score_digits", "crosswalks")}
    of_rows: dict[str, Any] = {
        "cuts": options.cuts_argument(cuts),
        "favorable_decision": favorable_decision,
    }
    screen = console()
    with working_with_notes(screen, f"Auditing {file}"):
        roles = Roles.from_names(**columns, **of_rows)
        state = _counted(file, roles, reading, score_range, threshold)
        result = state.audit(**audit_arguments(ctx, arguments, columns["group"]))
        reference = rules.reference_argument(references, columns["group"])
        result = result.rates(standard, reference=reference, min_group_share=min_group_share).audit
        search_arguments = {
            **columns,
            "threshold": threshold,
            "pos_label": arguments["pos_label"],
            "cuts": cuts,
            "favorable_decision": favorable_decision,
        }
        sources = {"files": source_files(matching_files(file)), "columns": roles.by_role}
        result = with_provenance(ctx, result, about, reading=reading.changed, **sources)
        result = with_search(result, searched, file, reading, search_arguments)
        published = write_evidence(
            result.record,
            result.rows,
            out,
            **released,
            sign_with=sign,
            pdf=not no_pdf,
            again=again,
            counted_by=of_rows,
            search_counts=result.search_counts,
        )
    show_audit(screen, published, details=True)
    say(screen, f"Evidence: {out}")


def _check_has_hash(file: str) -> None:
    """Raise a DataError for a source that is not a file."""
    if not matching_files(file):
        raise DataError(
            "evidence records the sha256 of its input, so FILE must be a file or a pattern of files"
        )


def _counted(
    file: str,
    roles: Roles,
    reading: ReadOptions,
    score_range: tuple[float, float],
    threshold: float | None,
) -> AuditState:
    """The rows of a file by group, stratum, label and score."""
    from metrifair.api.state import AuditState
    from metrifair.auditing.sources.state_rows import count_file

    state = AuditState(
        score_range=score_range, threshold="auto" if threshold is None else threshold
    )
    count_file(state, file, roles, reading)
    return state


@click.command(short_help="Verify the figures and files of evidence.")
@click.argument("evidence")
@options.command_options("verify")
@click.pass_context
def verify_command(
    ctx: click.Context,
    /,
    *,
    evidence: str,
    data: str | None,
    verify_key: str | None,
    scores: str | None,
    model: str | None,
    json_to: Path | None,
) -> None:
    """Verify EVIDENCE, a folder or .zip file of metrifair evidence or metrifair frontier: recompute
    every figure and compare every file.

    Of a search, it also makes the choice again. Without a signature, this detects accidents and
    careless edits. Only --data, --scores or --verify-key detects counts and files that were
    rewritten consistently.

    The exit code is 0 if all checks agree, 1 if a check found a difference, and 2 if a check could
    not be completed.

    \b
    Example:
      metrifair verify evidence/ --data scores.csv

    \b
    Example: the search of a model
      metrifair verify search/ --data people.csv --scores out-of-fold.csv --model model.metrifair
    """
    from metrifair.api.verification import verify
    from metrifair.cli.console import console, say, working_with_notes, write_json

    screen = console(stderr=json_to == options.STANDARD_OUTPUT)
    with working_with_notes(screen, f"Verifying {evidence}"):
        verification = verify(evidence, data=data, key=verify_key, scores=scores, model=model)
    say(screen, *verification.summary.splitlines())
    if json_to is not None:
        write_json(
            {
                "agrees": verification.agrees,
                "checks": [asdict(check) for check in verification.checks],
            },
            json_to,
        )
    if not verification.agrees:
        ctx.exit(_DIFFERS if verification.agrees is False else _NOT_CHECKED)


@click.command(short_help="Plan how many rows an audit needs.")
@options.command_options("plan")
def plan_command(
    *, gap: float | None, rows: tuple[int, ...], ratio: float, json_to: Path | None, **test: Any
) -> None:
    """Print how many rows of two groups detect a gap of --gap, or the smallest gap that --rows of
    two groups detect.

    \b
    Examples:
      metrifair plan --gap 0.1 --comparisons 3
      metrifair plan --rows 200 --rows 1500 --metric kolmogorov
    """
    from metrifair.cli.console import console, say, write_json
    from metrifair.figures.power import detectable_gap, rows_needed
    from metrifair.wording.evidence import plan_text

    if (gap is None) == (len(rows) == 0) or len(rows) not in (0, 2):
        raise click.UsageError("pass either --gap, or --rows twice, once for each group")
    if gap is None:
        gap = detectable_gap(*rows, **test)
    else:
        rows = rows_needed(gap, ratio=ratio, **test)
    say(console(stderr=json_to == options.STANDARD_OUTPUT), plan_text(gap, rows, test["power"]))
    if json_to is not None:
        write_json({"gap": gap, "rows": rows, **test}, json_to)
