"""What `train` and `frontier` take: a file, and what is to be learned from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from metrifair.auditing.out_of_core.formats import FileOptions
from metrifair.cli.options import (
    CONTRAST,
    CRITERIA_HELP,
    CRITERION_NAMES,
    GROUP,
    METRIC_NAMES,
    METRICS_HELP,
    NUMBER_OPTIONS,
    OTHER_CRITERION_NAMES,
    WEIGHT,
    Function,
    about_options,
    file_options,
    known,
    together,
)
from metrifair.errors import DataError
from metrifair.support.checks import check_known

if TYPE_CHECKING:
    import polars as pl

    from metrifair.support.provenance import SourceFile

FAMILIES = ("barycenter", "threshold", "linear", "mlp", "lightgbm", "xgboost")  # the first two around --model


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


class Families(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """Names of families, separated by commas."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """The names, each once, or an error."""
        if not isinstance(value, str):
            return value
        names = tuple(dict.fromkeys(part.strip() for part in value.split(",")))
        for name in names:
            check_known("--families", name, FAMILIES)
        return names


class Costs(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """Rows of numbers, between semicolons: what each decision (column) costs at each label (row)."""

    name = "costs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The rows, or a usage error."""
        if not isinstance(value, str):
            return value
        try:
            rows = [[float(part) for part in row.split(",")] for row in value.split(";")]
        except ValueError:
            rows = []
        if not rows or {len(row) for row in rows} != {len(rows)} or not all(math.isfinite(c) for r in rows for c in r):
            self.fail(
                f"{value!r} is not a square of numbers such as '0,1;5,0': one row for each label, between semicolons, "
                "and in it what each decision costs, both in ascending order of the classes",
                param,
                ctx,
            )
        return rows


_TRAINING_OPTIONS = (
    click.argument("file"),
    click.option("--label", required=True, metavar="COLUMN", help="What is to be predicted."),
    GROUP,
    *NUMBER_OPTIONS,
    click.option("--control", multiple=True, metavar="COLUMN", help="Be fair within each of its values. Repeatable."),
    WEIGHT,
    click.option(
        "--criterion",
        default="statistical_parity",
        show_default=True,
        callback=known(CRITERION_NAMES, OTHER_CRITERION_NAMES),
        help=f"What is compared: {CRITERIA_HELP}.",
    ),
    click.option(
        "--metric",
        default="energy",
        show_default=True,
        callback=known(METRIC_NAMES),
        help=f"How it is compared: {METRICS_HELP}.",
    ),
    CONTRAST,
    click.option(
        "--combine",
        type=click.Choice(["mean", "sum"]),
        default="mean",
        show_default=True,
        help="The penalty is the mean over pairs of groups and values of --control, or their sum.",
    ),
    click.option(
        "--estimate",
        type=click.Choice(["rows", "population", "batch"]),
        default="rows",
        show_default=True,
        help="What batches estimate: the distance of the training rows, of the population, or their own.",
    ),
    click.option(
        "--model",
        type=click.Choice(["mlp", "linear", "lightgbm", "xgboost"]),
        default="mlp",
        show_default=True,
        help="What is trained; mlp is a network.",
    ),
    click.option("--ignore", multiple=True, metavar="COLUMN", help="Not a feature. Repeatable."),
    click.option(
        "--keep",
        multiple=True,
        metavar="COLUMN",
        help="A feature even though it is the label in other words. Repeatable.",
    ),
    click.option(
        "--id", "ids", multiple=True, metavar="COLUMN", help="Tells rows apart; predict copies it. Repeatable."
    ),
    click.option("--use-group", is_flag=True, help="Take the columns with the groups as features too."),
    click.option(
        "--classification/--regression",
        "classification",
        default=None,
        help="Whether the label is a class or a number.  [default: a number, if it takes more than 10 values]",
    ),
    click.option("--positive", metavar="CLASS", help="The class that counts as a yes.  [default: the last]"),
)
_SEED = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of split, weights and batches."
)


def training_options(function: Function) -> Function:
    """Add the file and the options of TrainingOptions."""
    return together(_TRAINING_OPTIONS)(about_options(file_options(_SEED(function))))


@dataclass(frozen=True)
class TrainingOptions:
    """What the user asked to learn; the fields are the options of ``train`` and ``frontier``."""

    file: str
    label: str
    group: tuple[str, ...]
    continuous: tuple[str, ...]
    cuts: tuple[tuple[str, list[float]], ...]
    control: tuple[str, ...]
    weight: str | None
    criterion: str
    metric: str
    contrast: Literal["pairs", "rest", "independence"]
    combine: str
    estimate: str
    model: str
    ignore: tuple[str, ...]
    keep: tuple[str, ...]
    ids: tuple[str, ...]
    use_group: bool
    classification: bool | None
    positive: str | None
    reading: FileOptions
    seed: int
    title: str | None
    about: tuple[tuple[str, str], ...]

    def table(self) -> tuple[pl.DataFrame, list[SourceFile]]:
        """The columns, and the files they are from; a name of none is an error before anything heavy is imported."""
        from metrifair.cli.tables import read

        for option, names in (("--group", self.group), ("--weight", (self.weight,))):
            if self.label in names:
                raise DataError(f"--label and {option} both name {self.label!r}; they must be two columns")
        for name in self.keep:
            if name in (self.label, *self.ignore):
                raise DataError(f"--keep names {name!r}, which --label or --ignore names too; leave one of them out")
        weight = () if self.weight is None else (self.weight,)
        return read(
            self.file,
            self.reading,
            # Ids are copied as they are written: a float holds no more than 15 digits of them.
            texts=[*self.group, *self.control, *(name for name in self.ids if name != self.label)],
            roles={
                "label": [self.label],
                "group": self.group,
                "control": self.control,
                "weight": weight,
                "ignore": self.ignore,
                "keep": self.keep,
                "id": self.ids,
            },
        )
