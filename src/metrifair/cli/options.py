"""What options may hold, checked before any work is done and before anything heavy is imported."""

from __future__ import annotations

import math
import os
import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import wraps
from glob import has_magic
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import click

from metrifair.auditing.out_of_core.files import matching
from metrifair.auditing.out_of_core.formats import FileOptions
from metrifair.errors import DataError
from metrifair.support.checks import check_known


class Cuts(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """COLUMN=NUMBERS, or the numbers alone where there is one column of groups."""

    name = "column=numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The column, "" where it is not named, and its cuts; or a usage error."""
        if not isinstance(value, str):
            return value
        column, _, listed = value.rpartition("=")
        try:
            numbers = [float(part) for part in listed.split(",")]
        except ValueError:
            numbers = [math.nan]
        if not all(map(math.isfinite, numbers)):
            self.fail(f"{value!r} is not a list of numbers, such as 25,40,60 or age=25,40,60", param, ctx)
        return column, numbers


def cuts_text(column: str, cuts: Sequence[float]) -> str:
    """Cuts as one types them.

    >>> cuts_text("age", [25.0, 40.5]), cuts_text("", [0.1])
    ('age=25,40.5', '0.1')
    """
    listed = ",".join(repr(float(cut)).removesuffix(".0") for cut in cuts)
    return f"{column}={listed}" if column else listed


def cuts_asked(cuts: Sequence[tuple[str, list[float]]], group: Sequence[str]) -> dict[str, list[float]] | None:
    """The cuts of each column; None: nothing is cut.

    >>> cuts_asked([("", [25.0, 60.0])], ["age"]), cuts_asked([], ["age"])
    ({'age': [25.0, 60.0]}, None)
    """
    for column, numbers in cuts:
        if not column and len(group) > 1:
            listed = ",".join(f"{number:g}" for number in numbers)
            raise DataError(f"--cuts {listed} must name one of the {len(group)} columns: --cuts {group[0]}={listed}")
        if column and column not in group:
            raise DataError(f"--cuts names {column!r}, which --group does not; the groups are {', '.join(group)}")
    return {column or group[0]: numbers for column, numbers in cuts} or None


def continuous_asked(columns: Sequence[str], group: Sequence[str]) -> Any:
    """Which groups are numbers, as functions take it: columns, False for none of them, or "auto"."""
    if not columns:
        return "auto"
    if columns == ("none",) and "none" not in group:
        return False
    for column in columns:
        if column not in group:
            raise DataError(f"--continuous names {column!r}, which --group does not; the groups are {', '.join(group)}")
    return list(columns)


CONTINUOUS = click.option(
    "--continuous",
    multiple=True,
    metavar="COLUMN",
    help="Groups that are a number, such as an age; none: each value is a group. Repeatable.  [default: columns of "
    "more than 20 different numbers]",
)
CUTS = click.option(
    "--cuts",
    type=Cuts(),
    multiple=True,
    help="Make groups of a number: age=25,60 are ≤25, (25,60] and >60. Repeatable.",
)
NUMBER_OPTIONS = (CONTINUOUS, CUTS)
"""Which groups are numbers, and which numbers are cut into groups."""


Function = TypeVar("Function", bound=Callable[..., Any])

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
RENAMED = {"--sensitive": "--group", "--target": "--label", "--use-sensitive": "--use-group"}

_SPOKEN = {
    "continuous=False where every value is a group": "--continuous none where every value is a group; --cuts makes "
    "groups of it",
    "cut its values into a few ranges first": "cut it with --cuts, as in --cuts 25,40,60",
    "pass separator=": "use --separator ",
    "with its name as pos_label": "with its name as --positive",
    "count with a range that": "use --range LOW HIGH that",
    "pass format": "use --format",
    "pass decimal=": "use --decimal ",
    "replace names": "--replace names",
    "replace is for": "--replace is for",
    "pass encoding=": "use --encoding ",
    "leave encoding out": "leave --encoding out",
    "encoding must be": "--encoding must be",
    "leave header=False out": "leave --no-header out",
    "pass sheet, ": "use --sheet, ",
    "sheet must be": "--sheet must be",
    "leave sheet out": "leave --sheet out",
    "pass table, ": "use --table, ",
    "read the file with missing=": "use --missing ",
    "pass most_groups=": "use --most-groups ",
    "Pass threshold=...": "Use --threshold",
    "y_true holds": "--label holds",
    "pass y_true, got None": "name their column with --label",
    "leave y_true out": "leave --label out",
    "pos_label must be": "--positive must be",
    "pass pos_label= to": "use --positive to",
    "separator must be": "--separator must be",
    "say which: loss=": "say which: --loss ",
    "pass reference=..., ": "use --reference, ",
    "reference must be": "--reference must be",
    "reference names": "--reference names",
    "cut it into groups, or set intersectional=False": "cut it into groups with --cuts, or leave --intersectional out",
    "standard='": "--standard '",
    "pass threshold=..., ": "use --threshold, ",
}


def as_options(text: str) -> str:
    """The advice of a function to its caller, as advice to whoever types a command.

    >>> as_options("are the columns separated by ';'? pass separator=';'")
    "are the columns separated by ';'? use --separator ';'"
    """
    text = re.sub(
        r"""pass replace=\{('.*'|".*"): (.*?)\}""",
        lambda found: f"use --replace {quote(f'{literal_eval(found[1])}={found[2]}')}",
        text,
    )
    text = re.sub(
        r"continuous=\[(.*?)\]",
        lambda found: " ".join(f"--continuous {quote(name)}" for name in literal_eval(f"[{found[1]}]")),
        text,
    )
    for argument, option in _SPOKEN.items():
        # An argument that is spoken of as an option already is left as it is.
        text = re.sub(rf"(?<!-){re.escape(argument)}", option, text)
    return text


def check_paths(inputs: Iterable[str | Path], outputs: Iterable[Path | None]) -> None:
    """Raise an error where a command reads or writes a file twice, would write over one that it reads, or lacks one."""
    given = [str(one) for one in inputs]
    if len({Path(one).resolve() for one in given}) < len(given):
        raise click.UsageError("one of these files is named twice; name different ones")
    read = {one: matching(one) for one in given}
    uses = {Path(name).resolve(): "read" for found in read.values() for name in found}
    for path in outputs:
        if path is not None and path != STANDARD_OUTPUT:
            if path.resolve() in uses:
                raise click.UsageError(
                    f"{str(path)!r} cannot be written, as it is {uses[path.resolve()]} too; name another file"
                )
            uses[path.resolve()] = "written"
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
    """A finite number from ``least`` to ``most``; ``between`` leaves both ends out, ``below`` the upper one."""

    name = "number"

    def __init__(
        self, least: float | None = None, most: float | None = None, *, between: bool = False, below: bool = False
    ) -> None:
        super().__init__(least, most, min_open=between, max_open=between or below)

    def _describe_range(self) -> str:
        return "any number" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or a usage error; click itself lets nan through."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class Output(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """A file to write: its folder exists, nothing but a plain file is in the way, its ending is a known one."""

    name = "file"

    def __init__(self, *endings: str, stdout: bool = False) -> None:
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

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        """Names of files."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class Said(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """KEY=VALUE, both of them text, of which VALUE may hold "="; or OLD=NEW, of which OLD may."""

    def __init__(self, name: str = "key=value", such: str = "date=September 2026") -> None:
        self.name, self.such = name, such
        self.split = str.rpartition if name == "old=new" else str.partition

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """The two, or a usage error."""
        key, _, text = self.split(str(value), "=")
        if not key.strip() or not text.strip():
            self.fail(f"{value!r} is not {self.name.upper()}, such as {self.such!r}", param, ctx)
        return key.strip(), text.strip()


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


_FILE_OPTIONS = (
    click.option("--separator", metavar="SIGN", help="What stands between columns of a csv file, such as ';'."),
    click.option(
        "--format",
        type=click.Choice(["csv", "tsv", "parquet", "arrow", "ndjson", "excel"]),
        help="What FILE is, where its name does not say it.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        default=".",
        show_default=True,
        help="The decimal sign of numbers; with a comma the separator of csv is ';' unless told.",
    ),
    click.option("--encoding", metavar="NAME", help="Of a text file, such as cp1252 or utf-16.  [default: UTF-8]"),
    click.option(
        "--no-header", "header", is_flag=True, flag_value=False, default=True, help="FILE names no columns: 1, 2, ..."
    ),
    click.option("--day-first", is_flag=True, help="Dates are written as 31.12.2026 or 31/12/2026."),
    click.option("--sheet", metavar="NAME", help="Of an Excel file with several."),
    click.option(
        "--missing",
        multiple=True,
        metavar="VALUE[,VALUE...]",
        help="What stands for a missing value besides an empty cell, such as N/A,unknown,-9. Repeatable.",
    ),
    click.option(
        "--replace",
        multiple=True,
        type=Said("old=new", "Approved=1"),
        help="Read NEW where a cell holds OLD: Approved=1 and Declined=0 read decisions. Repeatable.",
    ),
)


GROUP = click.option(
    "--group", required=True, multiple=True, metavar="COLUMN", help="The groups, or a number. Repeat it for several."
)
WEIGHT = click.option("--weight", metavar="COLUMN", help="How often each row counts.")
SEED = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of resampling.")
CONTRAST = click.option(
    "--contrast",
    type=click.Choice(["pairs", "rest", "independence"]),
    default="pairs",
    show_default=True,
    help="Compare all pairs of groups, each group with the rest, or ask how much scores depend on the group.",
)


def criteria_option(default: str) -> Callable[[Function], Function]:
    """The criteria, any number of them."""
    return click.option(
        "--criterion",
        "criteria",
        multiple=True,
        callback=known(CRITERION_NAMES, OTHER_CRITERION_NAMES),
        help=f"{CRITERIA_HELP}. Repeatable.  [default: {default}]",
    )


def together(options: Sequence[Callable[[Any], Any]]) -> Callable[[Function], Function]:
    """One decorator that adds all these options, in their order."""

    def add(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return add


about_options = together(
    [
        click.option("--title", metavar="TEXT", help="What stands on top of the report."),
        click.option(
            "--about",
            multiple=True,
            type=Said(),
            help="What is to be known of the data, such as 'source=payroll'; part of the report. Repeatable.",
        ),
    ]
)
"""What the user says of a report."""


def file_options(function: Function) -> Function:
    """Add the options that say how FILE is read; the command gets them as one, ``reading``."""

    @wraps(function)
    def command(*given: Any, **named: Any) -> Any:
        named["missing"] = tuple(word for words in named["missing"] for word in words.split(","))
        olds = [old for old, _ in named["replace"]]
        if twice := next((old for old in olds if olds.count(old) > 1), None):
            raise DataError(f"--replace names {twice!r} twice; say once what is read in its place")
        named["replace"] = dict(named["replace"]) or None
        reading = FileOptions(**{field.name: named.pop(field.name) for field in fields(FileOptions)})
        return function(*given, reading=reading, **named)

    return together(_FILE_OPTIONS)(command)  # type: ignore[return-value]


number_options = together(NUMBER_OPTIONS)
"""Which groups are numbers, and which numbers are cut into groups."""
