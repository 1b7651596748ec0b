"""What options may hold, checked before any work is done and before anything heavy is imported."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from glob import has_magic
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import click

from metrifair.auditing.files import matching
from metrifair.auditing.formats import ReadOptions
from metrifair.errors import DataError
from metrifair.support.checks import check_known, share_hint


def finite_numbers(text: str) -> list[float]:
    """The numbers between commas; a ValueError where one is not finite.

    >>> finite_numbers("0.5,2")
    [0.5, 2.0]
    """
    numbers = [float(part) for part in text.split(",")]
    if not all(map(math.isfinite, numbers)):
        raise ValueError(text)
    return numbers


def parse_cuts(text: str) -> tuple[str, list[float]]:
    """COLUMN=NUMBERS: the column, "" where it is not named, and its cuts; or a usage error."""
    column, _, listed = text.rpartition("=")
    try:
        return column, finite_numbers(listed)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers, such as 25,40,60 or age=25,40,60") from None


def cuts_text(column: str, cuts: Sequence[float]) -> str:
    """Cuts as one types them.

    >>> cuts_text("age", [25.0, 40.5]), cuts_text("", [0.1])
    ('age=25,40.5', '0.1')
    """
    listed = ",".join(repr(float(cut)).removesuffix(".0") for cut in cuts)
    return f"{column}={listed}" if column else listed


def cuts_asked(cuts: Sequence[tuple[str, list[float]]]) -> list[float] | dict[str, list[float]] | None:
    """The cuts, by column where it is named; None: nothing is cut.

    >>> cuts_asked([("", [25.0, 60.0])]), cuts_asked([("age", [25.0])]), cuts_asked([])
    ([25.0, 60.0], {'age': [25.0]}, None)
    """
    return cuts[0][1] if len(cuts) == 1 and not cuts[0][0] else dict(cuts) or None


def continuous_asked(columns: Sequence[str], group: Sequence[str]) -> Any:
    """Which groups are numbers, as functions take it: columns, False for none of them, or "auto"."""
    if columns == ("none",) and "none" not in group:
        return False
    return list(columns) or "auto"


Option: TypeAlias = Callable[[Any], Any]
"""A decorator that adds one option or several to a command."""

STANDARD_OUTPUT = Path("-")
TABLES = (".csv", ".tsv", ".parquet", ".arrow", ".ndjson")
# The names of `metrifair.metrics.registry` and `metrifair.problem.criteria`, known here without importing them.
METRIC_NAMES = ("energy", "kolmogorov", "wasserstein", "cramer", "lp", "mmd", "total_variation")
CRITERION_NAMES = (
    "statistical_parity",
    "equal_opportunity",
    "predictive_equality",
    "equalized_odds",
    "risk_parity",
    "conditional_statistical_parity",
)
OTHER_CRITERION_NAMES = (
    "demographic_parity",
    "independence",
    "separation",
    "true_positive_rate_parity",
    "false_positive_rate_parity",
)
METRICS_HELP = f"{', '.join(METRIC_NAMES[:-1])} or {METRIC_NAMES[-1]}"
CRITERIA_HELP = f"{', '.join(CRITERION_NAMES[:-1])} or {CRITERION_NAMES[-1]} (with --control)"


def check_paths(inputs: Iterable[str | Path], outputs: Iterable[Path | None]) -> None:
    """Raise an error where a command reads or writes a file twice, would write over one that it reads, or lacks one."""
    given = [str(one) for one in inputs]
    if len(set(map(os.path.realpath, given))) < len(given):
        raise click.UsageError("one of these files is named twice; name different ones")
    read = {one: matching(one) for one in given}
    uses = {os.path.realpath(name): "read" for found in read.values() for name in found}
    for path in outputs:
        if path is not None and path != STANDARD_OUTPUT:
            target = os.path.realpath(path)  # unlike Path.resolve, also of a link to itself
            if target in uses:
                raise click.UsageError(
                    f"{str(path)!r} cannot be written, as it is {uses[target]} too; name another file"
                )
            uses[target] = "written"
    for one, found in read.items():
        if not found and one != "-" and not (Path(one).exists() or has_magic(one)):  # others have their own words
            raise DataError(f"there is no file {one}")


def known(names: Sequence[str], others: Sequence[str] = ()) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that refuses what is not among these names; ``others`` are taken and not advertised."""

    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:  # noqa: ARG001
        for one in (value,) if isinstance(value, str) else value or ():
            if one in others:
                continue
            check_known(param.opts[0], one, names)
        return value

    return check


class Number(click.FloatRange):
    """A finite number in a range."""

    name = "number"

    def _describe_range(self) -> str:
        return "any number" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or a usage error; click itself lets nan through."""
        try:
            number = super().convert(value, param, ctx)
        except click.BadParameter as error:
            if self.max == 1 and (hint := share_hint(value)):
                self.fail(f"{error.message.rstrip('.')}; {hint}", param, ctx)
            raise
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class Output(click.Path):
    """A file to write: its folder exists, nothing but a plain file is in the way, its ending is a known one."""

    def __init__(self, *endings: str, stdout: bool = False) -> None:
        super().__init__(dir_okay=False, path_type=Path)
        self.endings = endings
        self.stdout = stdout

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path, or a usage error."""
        path = Path(value).expanduser()
        if path == STANDARD_OUTPUT:
            if self.stdout:
                return path
            self.fail("standard output is not possible here; name a file", param, ctx)
        if self.endings and path.suffix.lower() not in self.endings:
            self.fail(f"{str(path)!r} must end in {', '.join(self.endings)}", param, ctx)
        problem = _problem(path)
        if problem:
            self.fail(f"cannot write {str(path)!r}: {problem}", param, ctx)
        return path


def pair_option(name: str, metavar: str, text: str, *, example: str, split: Callable[[str, str], Any]) -> Option:
    """An option of two texts, of which ``split`` says at which "=" one ends; or a usage error."""

    def parse(given: str) -> tuple[str, str]:
        left, _, right = (part.strip() for part in split(given, "="))
        if not left or not right:
            raise click.BadParameter(f"{given!r} is not {metavar}, such as {example!r}")
        return left, right

    return click.option(name, multiple=True, type=parse, metavar=metavar, help=f"{text} Repeatable.")


def _problem(path: Path) -> str:
    """Why no file can be put there, as far as one can tell without trying."""
    try:
        if path.parent.exists() and not path.parent.is_dir():
            return f"{str(path.parent)!r} is not a folder"
        if not path.parent.is_dir():
            return f"the folder {str(path.parent)!r} does not exist"
        if path.exists() and not path.is_file():
            return "it is not a plain file"  # a device that is replaced by a file is lost for the whole machine
        if not os.access(path.parent, os.W_OK | os.X_OK):
            return f"no permission to write in the folder {str(path.parent)!r}"
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def choice(name: str, values: Sequence[str], text: str, *, optional: bool = False) -> Option:
    """An option with these values; the first is the default, unless there is none."""
    named = click.Choice(values, case_sensitive=False)
    return click.option(name, type=named, default=None if optional else values[0], help=text)


def column(name: str, text: str, *, several: bool = False, required: bool = False) -> Option:
    """An option that names a column, or several."""
    return click.option(name, metavar="COLUMN", multiple=several, required=required, help=text)


def table_option(name: str, text: str) -> Option:
    """An option that names a file for a table."""
    return click.option(name, type=Output(*TABLES), help=f"File for {text} (csv, tsv, parquet, arrow or ndjson).")


def criteria_option(default: str) -> Option:
    """The criteria, any number of them."""
    return click.option(
        "--criterion",
        "criteria",
        multiple=True,
        callback=known(CRITERION_NAMES, OTHER_CRITERION_NAMES),
        help=f"Fairness criterion: {CRITERIA_HELP}. Repeatable.  [default: {default}]",
    )


def together(*options: Option) -> Option:
    """One decorator that adds all these options, in their order."""

    def add(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def gathered(name: str, kind: Callable[..., Any], options: Iterable[str]) -> Option:
    """A decorator that passes these options to a command as one argument, the record that ``kind`` makes of them."""

    def decorate(function: Any) -> Any:
        @wraps(function)
        def command(*given: Any, **named: Any) -> Any:
            record = kind(**{option: named.pop(option) for option in options})
            return function(*given, **{name: record}, **named)

        return command

    return decorate


GROUP = column(
    "--group",
    "Column with the groups, or with a numeric attribute such as age. Repeatable.",
    several=True,
    required=True,
)
CONTINUOUS = column(
    "--continuous",
    "Column of --group that is a numeric attribute, such as age; none treats each value as a group. Repeatable.  "
    "[default: columns with more than 20 different numbers]",
    several=True,
)
CUTS = click.option(
    "--cuts",
    type=parse_cuts,
    multiple=True,
    metavar="COLUMN=NUMBERS",
    help="Cut a numeric column into groups: age=25,60 makes ≤25, (25,60] and >60. Repeatable.",
)
LABEL = column("--label", "Column with the true outcomes. Error rates and most criteria need it.")
POSITIVE = click.option(
    "--positive", metavar="CLASS", help="The positive label.  [default: the last in ascending order]"
)
CONTROL = column("--control", "Column with strata. Groups are compared within each stratum. Repeatable.", several=True)
WEIGHT = column("--weight", "Column with the weights of the rows.")
TABLE = together(
    click.option("--table", metavar="NAME", help="Table to read, if FILE is a database."),
    click.option("--query", metavar="SQL", help="Query to read in place of --table, such as 'select * from scores'."),
)
SEED = click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the resampling.")
JSON = click.option(
    "--json", "json_to", type=Output(stdout=True), help="File for all results as JSON; - is standard output."
)
HTML = click.option("--html", type=Output(".html", ".htm"), help="File for the report, one HTML page.")


def _with_browser(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
    """The path of a PDF file; an error before anything is computed where no browser can print it."""
    if path is not None:
        from metrifair.report.pdf import find_browser

        find_browser()
    return path


PDF = click.option(
    "--pdf",
    type=Output(".pdf"),
    callback=_with_browser,
    help="File for the report as PDF, printed by Chromium or Google Chrome.",
)
CONTRAST = choice(
    "--contrast",
    ["pairs", "rest", "independence"],
    "Compare all pairs of groups, compare each group with the rest, or measure how much scores depend on the group.",
)


class About(NamedTuple):
    """What a user says of a report."""

    title: str | None
    about: Mapping[str, str] | None


def _about(*, title: str | None, about: Sequence[tuple[str, str]]) -> About:
    return About(title, dict(about) or None)


about_options = together(
    click.option("--title", metavar="TEXT", help="Title of the report."),
    pair_option(
        "--about",
        "KEY=VALUE",
        "Metadata shown in the report, such as 'source=payroll'.",
        example="date=September 2026",
        split=str.partition,
    ),
)
"""What a user says of a report."""
FAVORABLE_DECISION = click.option(
    "--favorable-decision",
    metavar="VALUE",
    help="The favorable value of a --score column that holds decisions, such as Approved; all others are unfavorable.",
)
report_about = together(about_options, gathered("about", _about, ["title", "about"]))
"""The same; the command gets it as ``about``."""


def _reading(
    *, no_header: bool, missing: Sequence[str], replace: Sequence[tuple[str, str]], **same: Any
) -> ReadOptions:
    olds = [old for old, _ in replace]
    if twice := next((old for old in olds if olds.count(old) > 1), None):
        raise DataError(f"names {twice!r} twice", argument="replace", remedy="name it once")
    words = tuple(word for listed in missing for word in listed.split(","))
    return ReadOptions(header=not no_header, missing=words, replace=dict(replace) or None, **same)


file_options = together(
    click.option("--separator", metavar="SIGN", help="Character between the columns of a csv file, such as ';'."),
    choice(
        "--format",
        ["csv", "tsv", "parquet", "arrow", "ndjson", "excel"],
        "Format of FILE, if its name does not show it.",
        optional=True,
    ),
    choice(
        "--decimal", [".", ","], "Decimal sign of numbers. With a comma, the default separator of csv files is ';'."
    ),
    click.option(
        "--encoding", metavar="NAME", help="Encoding of a text file, such as cp1252 or utf-16.  [default: UTF-8]"
    ),
    click.option("--no-header", is_flag=True, help="FILE has no row of column names. The columns are called 1, 2, ..."),
    click.option("--day-first", is_flag=True, help="Read dates as 31.12.2026 or 31/12/2026."),
    click.option("--sheet", metavar="NAME", help="Sheet of an Excel file, if it has several."),
    click.option(
        "--missing",
        multiple=True,
        metavar="VALUE[,VALUE...]",
        help="Values to read as missing, besides empty cells, such as N/A,unknown,-9. Repeatable.",
    ),
    pair_option(
        "--replace",
        "OLD=NEW",
        "Read cells with the value OLD as NEW, such as W=women.",
        example="W=women",
        split=str.rpartition,
    ),
    gathered("reading", _reading, ["no_header", *(one.name for one in fields(ReadOptions) if one.name != "header")]),
)
"""How FILE is read; the command gets all of it as ``reading``."""
