"""The options of the commands, from ``options.ini``: checked before any work is done and
anything heavy is imported.
"""

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

from metrifair.auditing.sources.file_formats import ReadOptions
from metrifair.auditing.sources.file_tables import matching_files
from metrifair.cli.option_table import command_entries
from metrifair.errors import DataError
from metrifair.problem.criterion_names import OTHER_NAMES
from metrifair.support.checks import check_known, did_you_mean, share_hint
from metrifair.support.provenance import STATEMENTS
from metrifair.tradeoff.family_names import AUTO_FAMILIES, COMMAND_FAMILIES
from metrifair.wording.crosswalks import crosswalk_names
from metrifair.wording.metrics import CRITERION_MEANINGS, METRIC_WORDS


class NearChoice(click.Choice):  # type: ignore[type-arg]  # generic from click 8.2 on only
    """A choice whose error names the nearest value, as errors of Python do."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The chosen value, or a usage error."""
        try:
            chosen: str = super().convert(value, param, ctx)
        except click.BadParameter as error:
            hint = did_you_mean(value, self.choices)
            if not hint:
                raise
            message = f"{error.message.rstrip('.')}; {hint}"
            raise click.BadParameter(message, ctx=ctx, param=param) from error
        return chosen


def finite_numbers(text: str) -> list[float]:
    """The numbers between commas; a ValueError if one is not finite.

    >>> finite_numbers("0.5,2")
    [0.5, 2.0]
    """
    numbers = [float(part) for part in text.split(",")]
    if not all(map(math.isfinite, numbers)):
        raise ValueError(text)
    return numbers


def parse_cuts(text: str) -> tuple[str, list[float]]:
    """COLUMN=NUMBERS: the column, "" if it is not named, and its cuts; or a usage error."""
    column, _, numbers = text.rpartition("=")
    try:
        return column, finite_numbers(numbers)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a list of numbers, such as 25,40,60 or age=25,40,60"
        ) from None


def cuts_text(column: str, cuts: Sequence[float]) -> str:
    """Cuts as typed on the command line.

    >>> cuts_text("age", [25.0, 40.5]), cuts_text("", [0.1])
    ('age=25,40.5', '0.1')
    """
    numbers = ",".join(repr(float(cut)).removesuffix(".0") for cut in cuts)
    return f"{column}={numbers}" if column else numbers


def cuts_argument(
    cuts: Sequence[tuple[str, list[float]]],
) -> list[float] | dict[str, list[float]] | None:
    """The cuts, by column where it is named; None: nothing is cut.

    >>> cuts_argument([("", [25.0, 60.0])]), cuts_argument([("age", [25.0])]), cuts_argument([])
    ([25.0, 60.0], {'age': [25.0]}, None)
    """
    return cuts[0][1] if len(cuts) == 1 and not cuts[0][0] else dict(cuts) or None


def parse_probabilities(text: str) -> tuple[str, dict[str, str]]:
    """An attribute and the columns of its groups' probabilities, or a usage error.

    >>> parse_probabilities("race=white:p_white,p_black")
    ('race', {'white': 'p_white', 'p_black': 'p_black'})
    """
    attribute, _, columns_text = text.partition("=")
    parts = [(part.partition(":"), part) for part in columns_text.split(",") if part]
    columns = {group: column or part for (group, _, column), part in parts}
    if not attribute or len(columns) < 2 or len(columns) < len(parts):
        raise click.BadParameter(
            f"must be NAME=COLUMNS, such as race=p_white,p_black, got {text!r}"
        )
    return attribute, columns


def probabilities_text(attribute: str, columns: Mapping[str, str]) -> str:
    """Columns of group probabilities as typed on the command line.

    >>> probabilities_text("race", {"white": "p_white", "p_black": "p_black"})
    'race=white:p_white,p_black'
    """
    parts = (
        column if group == column else f"{group}:{column}" for group, column in columns.items()
    )
    return f"{attribute}={','.join(parts)}"


def continuous_argument(columns: Sequence[str], group: Sequence[str]) -> Any:
    """The value of ``continuous``: names of columns, False for none of them, or "auto"."""
    if columns == ("none",) and "none" not in group:
        return False
    return list(columns) or "auto"


def parse_strengths(text: str) -> list[float] | str:
    """Numbers from 0 upwards between commas, in ascending order, or ``auto``; or a usage error."""
    if text == "auto":
        return text
    try:
        numbers = sorted(set(finite_numbers(text)))
    except ValueError:
        numbers = [-1.0]
    if numbers[0] < 0:
        raise click.BadParameter(
            f"{text!r} is not a list of numbers from 0 upwards, such as 0,0.1,1,10"
        )
    return numbers


def parse_families(text: str) -> list[str]:
    """Names of families between commas, each once; or an error.

    The portfolio checks the text after ``auto``.
    """
    names = list(dict.fromkeys(part.strip() for part in text.split(",")))
    if names[0] == "auto":
        return names
    for name in names:
        if name == "auto":
            raise click.BadParameter("'auto' must come first; the names after it are its families")
        if name in AUTO_FAMILIES and name not in COMMAND_FAMILIES:
            raise click.BadParameter(f"{name!r} is a family of auto; use auto,{name}")
        check_known("families", name, ("auto", *COMMAND_FAMILIES))
    return names


def parse_costs(text: str) -> list[list[float]]:
    """Rows of numbers, between semicolons: the cost of each decision (column) at each label
    (row); or a usage error.
    """
    try:
        rows = [finite_numbers(row) for row in text.split(";")]
    except ValueError:
        rows = []
    if {len(row) for row in rows} != {len(rows)}:
        raise click.BadParameter(
            f"{text!r} is not a square of numbers such as '0,1;5,0': one row for each label, "
            "between semicolons, and "
            "in it the cost of each decision, both in ascending order of the classes"
        )
    return rows


def alternatives_text(names: Sequence[str]) -> str:
    """Names of which one is used, as a help text lists them.

    >>> alternatives_text(["energy", "lp", "mmd"])
    'energy, lp or mmd'
    """
    return f"{', '.join(names[:-1])} or {names[-1]}"


Option: TypeAlias = Callable[[Any], Any]
"""A decorator that adds one option or several to a command."""

STANDARD_OUTPUT = Path("-")
TABLES = (".csv", ".tsv", ".parquet", ".arrow", ".ndjson")
# The names of `metrifair.metrics.registry` and `metrifair.problem.criteria`, by their words: the
# registries import NumPy.
METRIC_NAMES = tuple(METRIC_WORDS)
CRITERION_NAMES = tuple(CRITERION_MEANINGS)
_LISTS = {
    "metrics": alternatives_text(METRIC_NAMES),
    "criteria": f"{alternatives_text(CRITERION_NAMES)} (with --control)",
    "families": ", ".join(COMMAND_FAMILIES),
    "auto_families": ", ".join(AUTO_FAMILIES),
    "tables": "csv, tsv, parquet, arrow or ndjson",
    "crosswalks": alternatives_text(crosswalk_names()),
}
"""Names that help texts list."""


def check_paths(inputs: Iterable[str | Path], outputs: Iterable[Path | None]) -> None:
    """Raise an error if a command reads or writes a file twice, would write over one that it reads,
    or lacks one.

    A PDF file lacks its browser if none is installed: better said now than after the work.
    """
    names = list(map(str, inputs))
    targets = [path for path in outputs if path is not None and path != STANDARD_OUTPUT]
    if len(set(map(os.path.realpath, names))) < len(names):
        raise click.UsageError("one of these files is named twice; name different ones")
    matches = {name: matching_files(name) for name in names}
    uses = {os.path.realpath(name): "read" for files in matches.values() for name in files}
    for path in targets:
        target = os.path.realpath(path)  # unlike Path.resolve, also of a link to itself
        if target in uses:
            raise click.UsageError(
                f"{str(path)!r} cannot be written, as it is {uses[target]} too; name another file"
            )
        uses[target] = "written"
    for name, files in matches.items():
        # Other paths have their own errors.
        if not files and name != "-" and not (Path(name).exists() or has_magic(name)):
            raise DataError(f"there is no file {name}")
    if any(path.suffix.lower() == ".pdf" for path in targets):
        from metrifair.report.pdf import find_browser

        find_browser()


def check_names(names: Sequence[str], others: Sequence[str] = ()) -> Callable[..., Any]:
    """A callback that raises an error for other names; ``others`` are accepted but not listed."""

    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:  # noqa: ARG001
        given = value or ()
        if isinstance(value, str):
            given = (value,)
        for name in given:
            if name in others:
                continue
            check_known(param.opts[0], name, names)
        return value

    return check


class Number(click.FloatRange):
    """A finite number in a range."""

    name = "number"

    def _describe_range(self) -> str:
        return "any number" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or a usage error; click itself accepts nan."""
        try:
            number = super().convert(value, param, ctx)
        except click.BadParameter as error:
            if self.max == 1 and (hint := share_hint(value)):
                self.fail(f"{error.message.rstrip('.')}; {hint}", param, ctx)
            raise
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class NumberOrMedian(Number):
    """A finite number, or the word median."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number or the word, or a usage error."""
        return value if value == "median" else super().convert(value, param, ctx)


class Output(click.Path):
    """A file to write: its folder exists, its ending is valid, and only a plain file may be
    overwritten.
    """

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


def pair(
    metavar: str, example: str, split: Callable[[str, str], Any]
) -> Callable[[str], tuple[str, str]]:
    """A parser of two texts around the "=" at which ``split`` separates them; or a usage error."""

    def parse(text: str) -> tuple[str, str]:
        left, _, right = (part.strip() for part in split(text, "="))
        if not left or not right:
            raise click.BadParameter(f"{text!r} is not {metavar}, such as {example!r}")
        return left, right

    return parse


def _problem(path: Path) -> str:
    """The reason why no file can be written there, as far as it is known without trying."""
    try:
        if path.parent.exists() and not path.parent.is_dir():
            return f"{str(path.parent)!r} is not a folder"
        if not path.parent.is_dir():
            return f"the folder {str(path.parent)!r} does not exist"
        if path.exists() and not path.is_file():
            # a device that is replaced by a file is lost for the whole machine
            return "it is not a plain file"
        if not os.access(path.parent, os.W_OK | os.X_OK):
            return f"no permission to write in the folder {str(path.parent)!r}"
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def combine_options(*options: Option) -> Option:
    """One decorator that adds all these options, in their order."""

    def add(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def gather_options(name: str, kind: Callable[..., Any], options: Iterable[str]) -> Option:
    """A decorator that passes these options to a command as one argument, the record that
    ``kind`` makes of them.
    """

    def decorate(function: Any) -> Any:
        @wraps(function)
        def command(*args: Any, **kwargs: Any) -> Any:
            record = kind(**{option: kwargs.pop(option) for option in options})
            return function(*args, **{name: record}, **kwargs)

        return command

    return decorate


class About(NamedTuple):
    """The title of a report, and facts about the data."""

    title: str | None
    about: Mapping[str, str] | None


def statements(
    about: Sequence[tuple[str, str]],
    *,
    signed_by: str | None,
    purpose: str | None,
    data_source: str | None,
    period: str | None,
) -> dict[str, str]:
    """The facts about the data: those that have options, then the others."""
    stated = dict(zip(STATEMENTS, (signed_by, purpose, data_source, period), strict=True))
    return {name: text for name, text in stated.items() if text is not None} | dict(about)


def _about(*, title: str | None, about: Sequence[tuple[str, str]], **stated: str | None) -> About:
    return About(title, statements(about, **stated) or None)


_STATED = ("signed_by", "purpose", "data_source", "period")
REPORT_ABOUT = gather_options("about", _about, ["title", "about", *_STATED])
"""A command gets the title and the facts of its report as ``about``."""


def _reading(
    *, no_header: bool, missing: Sequence[str], replace: Sequence[tuple[str, str]], **same: Any
) -> ReadOptions:
    olds = [old for old, _ in replace]
    if twice := next((old for old in olds if olds.count(old) > 1), None):
        raise DataError(f"names {twice!r} twice", argument="replace", remedy="name it once")
    words = tuple(word for text in missing for word in text.split(","))
    return ReadOptions(header=not no_header, missing=words, replace=dict(replace) or None, **same)


READING_OPTIONS = gather_options(
    "reading",
    _reading,
    ["no_header", *(field.name for field in fields(ReadOptions) if field.name != "header")],
)
"""A command gets the reading options of FILE as ``reading``."""

_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "costs": parse_costs,
    "cuts": parse_cuts,
    "fact": pair("KEY=VALUE", "date=September 2026", str.partition),
    "families": parse_families,
    "probabilities": parse_probabilities,
    "replacement": pair("OLD=NEW", "W=women", str.rpartition),
    "strengths": parse_strengths,
}
_CALLBACKS = {
    "criterion": check_names(CRITERION_NAMES, tuple(OTHER_NAMES)),
    "metric": check_names(METRIC_NAMES),
}


def _type(entry: Mapping[str, str]) -> Any:
    """The type of an option by its entry in the table; None: text."""
    kind = entry.get("type", "text")
    span = entry.get("range", "")
    ends: dict[str, Any] = dict(
        zip(("min", "max"), map(int, span.strip("()").split()), strict=False)
    )
    if "choices" in entry:
        return NearChoice(entry["choices"].split(), case_sensitive=False)
    if kind == "integer":
        return click.IntRange(**ends)
    if kind in ("number", "number or median"):
        ends |= {"min_open": span.startswith("("), "max_open": span.endswith(")")}
        return (Number if kind == "number" else NumberOrMedian)(**ends)
    if kind in ("output", "table"):
        endings = TABLES if kind == "table" else entry.get("endings", "").split()
        return Output(*endings, stdout="stdout" in entry)
    if kind in ("folder", "folder or archive"):
        return click.Path(file_okay=kind != "folder", path_type=Path)
    return _PARSERS.get(kind)


def _option(name: str, entry: Mapping[str, str]) -> Option:
    """The option that an entry of the table describes."""
    kind = entry.get("type", "text")
    default = entry.get("default")
    unset = f"  [default: {entry['otherwise']}]" if "otherwise" in entry else ""
    settings: dict[str, Any] = {
        "type": _type(entry),
        "callback": _CALLBACKS.get(kind),
        "multiple": "repeat" in entry,
        "required": "required" in entry,
        "metavar": entry.get("metavar"),
        "help": " ".join(entry["help"].split()).format(**_LISTS) + unset,
    }
    if kind == "flag":
        settings["is_flag"] = True
    elif "count" in entry and default is not None:
        settings |= {"nargs": int(entry["count"]), "default": tuple(map(float, default.split()))}
    elif "repeat" not in entry and "required" not in entry:  # click takes None for a value
        settings["default"] = default
    parameter = entry.get("parameter", name.replace("-", "_"))
    return click.option(entry.get("spelling", f"--{name}"), parameter, **settings)


def command_options(command: str) -> Option:
    """A decorator that adds all options of a command, in the order of the table."""
    return combine_options(
        *(_option(name, entry) for name, entry in command_entries(command).items())
    )
