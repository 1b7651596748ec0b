"""Rates and ratios on the command line: the options that audit and merge share, and the table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metrifair.cli.options import TABLES, Number, Output, together
from metrifair.errors import DataError

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.auditing.compare import AuditDifference
    from metrifair.auditing.result import Audit
    from metrifair.results import AuditRecord

_SHOWN = 12  # tables of rates on the terminal
SEVERAL_RATES = "--rates is the table of one audit; name one --score, got several"

rate_options = together(
    [
        click.option(
            "--standard",
            type=click.Choice(["ll144", "four-fifths", "credit"]),
            help="Show the tables of rates and ratios that a rule asks for; nothing is said about any law.",
        ),
        click.option(
            "--reference",
            "references",
            multiple=True,
            metavar="CATEGORY",
            help="Whose rate others are divided by; of several columns COLUMN=CATEGORY each.  [default: the highest]",
        ),
        click.option(
            "--favourable",
            type=click.Choice(["high", "low"]),
            default="high",
            show_default=True,
            help="Which scores are good to have; low for risks. The positive label is then, unless told, the first.",
        ),
        click.option(
            "--least-share",
            type=Number(0, 1),
            default=0.02,
            show_default=True,
            help="Groups of a smaller share of the rows are in no ratio.",
        ),
        click.option(
            "--rates",
            type=Output(*TABLES),
            help="File for the table of rates and ratios (csv, tsv, parquet, arrow or ndjson).",
        ),
    ]
)
"""How rates are compared, and where their table goes."""


def reference_asked(references: Sequence[str], columns: Sequence[str]) -> str | dict[str, str]:
    """What others are divided by, as an argument of an audit of these columns.

    >>> reference_asked(["sex=male"], ["sex", "race"]), reference_asked(["a=b"], ["sex"]), reference_asked([], ["sex"])
    ({'sex': 'male'}, 'a=b', 'highest')
    """
    parts = [one.partition("=") for one in references]
    named = {name: rest for name, sign, rest in parts if sign and name in (*columns, " x ".join(columns))}
    if not named and len(references) <= 1:
        return references[0] if references else "highest"
    if len(named) < len(references):
        raise DataError(f"--reference must be COLUMN=CATEGORY for each of several columns, got {list(references)}")
    return named


class NumberOrMedian(Number):
    """A finite number, or the word median."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number or the word, or a usage error."""
        return value if value == "median" else super().convert(value, param, ctx)


def write_rates(out: Console, found: Audit | AuditDifference, path: Path | None) -> None:
    """Write the table of rates and ratios, where a file is named."""
    from metrifair.auditing.compare import AuditDifference
    from metrifair.cli.console import printable
    from metrifair.cli.tables import write_table

    if path is None:
        return
    if isinstance(found, AuditDifference):
        raise DataError(SEVERAL_RATES)
    write_table(found.rates_to_frame("polars"), path)
    out.print(f"Rates: {printable(path)}")


def show_rates(out: Console, record: AuditRecord) -> None:
    """Rates by group, with the ratio to the reference; of a standard, what its table is; and what else is by group."""
    from metrifair.cli.console import printable, show_table
    from metrifair.report.audit.by_group import measure_text
    from metrifair.standards import NO_VERDICT, STANDARDS

    asked = [one for one in record.decisions if one.standard and one.within == "everyone"] or record.decisions
    if asked and asked[0].standard:
        out.print(printable(STANDARDS[asked[0].standard].title), soft_wrap=True)
    rows = []
    for table in asked[:_SHOWN]:
        for rate in [*table.rates, *([table.unknown] if table.unknown else [])]:
            ratio = "left out" if rate.left_out else "-" if rate.ratio is None else f"{rate.ratio:.3f}"
            shares = rate.selection_rate, rate.accuracy, rate.true_positive_rate, rate.false_positive_rate
            told = ["-" if share is None else f"{share:.3f}" for share in shares]
            rows.append([f"{table.attribute}: {rate.group}", table.within, f"{rate.size:,}", told[0], ratio, *told[1:]])
    headings = ["group", "within", "rows", "selected", "ratio", "right", "of positives", "of negatives"]
    if rows:
        show_table(out, headings, rows, left=2)
    if asked and asked[0].standard:
        out.print(NO_VERDICT, soft_wrap=True)
    if record.by_group:
        figures = [
            [f"{found.attribute}: {one.group}", found.within, f"{one.size:,}", *map(measure_text, measures)]
            for found in record.by_group[:_SHOWN]
            for one in found.groups
            for measures in [(one.base_rate, one.auc, one.log_loss, one.calibration_error)]
        ]
        headings = ["group", "within", "rows", "base rate", "AUC", "log loss", "calibration error"]
        show_table(out, headings, figures, left=2)
