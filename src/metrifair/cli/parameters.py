"""What options may hold, checked before any work is done and before anything heavy is imported."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import click

from metrifair.auditing.reading import matching

STANDARD_OUTPUT = Path("-")
TABLES = (".csv", ".tsv", ".parquet", ".arrow", ".ndjson")


_SPOKEN = {
    "pass separator=": "use --separator ",
    "pass format": "use --format",
    "pass most_groups=": "use --most-groups ",
    "Pass threshold=...": "Use --threshold",
    "y_true holds": "--label holds",
    "leave y_true out": "leave --label out",
    "pos_label must be": "--positive must be",
    "pass pos_label= to": "use --positive to",
    "separator must be": "--separator must be",
    "say which: loss=": "say which: --loss ",
}


def as_options(text: str) -> str:
    """The advice of a function to its caller, as advice to whoever types a command.

    >>> as_options("are the columns separated by ';'? pass separator=';'")
    "are the columns separated by ';'? use --separator ';'"
    """
    for argument, option in _SPOKEN.items():
        text = text.replace(argument, option)
    return text


def refuse_clashes(inputs: Iterable[str | Path], outputs: Iterable[Path | None]) -> None:
    """Raise a usage error where a command would write over a file that it reads, or one file twice."""
    uses = {Path(name).resolve(): "read" for given in inputs for name in matching(str(given))}
    for path in outputs:
        if path is not None and path != STANDARD_OUTPUT:
            if path.resolve() in uses:
                raise click.UsageError(
                    f"{str(path)!r} cannot be written, as it is {uses[path.resolve()]} too; name another file"
                )
            uses[path.resolve()] = "written"


class Number(click.FloatRange):
    """A finite number from ``least`` on, at most ``most``; ``between`` leaves both ends out."""

    name = "number"

    def __init__(self, least: float | None = None, most: float | None = None, *, between: bool = False) -> None:
        super().__init__(least, most, min_open=between, max_open=between)

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


class Limit(NamedTuple):
    """The largest value of a metric that passes."""

    metric: str
    value: float


class Limited(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """Parses METRIC=VALUE; whether the metric exists is asked later, without slowing --help down."""

    name = "metric=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Limit:
        """The limit, or a usage error."""
        if isinstance(value, Limit):
            return value
        metric, sign, number = str(value).partition("=")
        try:
            limit = float(number)
        except ValueError:
            limit = math.nan
        if not sign or not metric or not (0 <= limit < math.inf):
            self.fail(f"{value!r} is not METRIC=VALUE with a number from 0 upwards, such as kolmogorov=0.1", param, ctx)
        return Limit(metric.strip(), limit)


class Strengths(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """Numbers from 0 upwards, separated by commas, or ``auto``."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The numbers in ascending order, or a usage error."""
        if not isinstance(value, str) or value == "auto":
            return value
        try:
            numbers = sorted({float(part) for part in value.split(",")})
        except ValueError:
            numbers = [-1.0]
        if not all(0 <= number < float("inf") for number in numbers):
            self.fail(f"{value!r} is not a list of numbers from 0 upwards, such as 0,0.1,1,10", param, ctx)
        return numbers


def _problem(path: Path) -> str:
    """Why no file can be put there, as far as one can tell without trying."""
    try:
        if not path.parent.is_dir():
            return f"the folder {str(path.parent)!r} does not exist"
        if path.exists() and not path.is_file():
            return "it is not a plain file"  # a device that is replaced by a file is lost for the whole machine
        if not os.access(path.parent, os.W_OK | os.X_OK):
            return f"no permission to write in the folder {str(path.parent)!r}"
    except (OSError, ValueError) as error:
        return str(error)
    return ""
