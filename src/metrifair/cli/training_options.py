"""What `train` and `frontier` take: a file, and what is to be learned from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from metrifair.auditing.out_of_core.formats import FileOptions
from metrifair.cli.options import (
    CONTRAST,
    CRITERIA_HELP,
    CRITERION_NAMES,
    METRIC_NAMES,
    METRICS_HELP,
    NUMBER_OPTIONS,
    OTHER_CRITERION_NAMES,
    Function,
    file_options,
    known,
    together,
)
from metrifair.errors import DataError

if TYPE_CHECKING:
    import polars as pl

_TRAINING_OPTIONS = (
    click.argument("file"),
    click.option("--label", required=True, metavar="COLUMN", help="What is to be predicted."),
    click.option(
        "--group",
        required=True,
        multiple=True,
        metavar="COLUMN",
        help="The groups, or a number. Repeat it for several.",
    ),
    *NUMBER_OPTIONS,
    click.option("--control", multiple=True, metavar="COLUMN", help="Be fair within each of its values. Repeatable."),
    click.option("--weight", metavar="COLUMN", help="How often each row counts."),
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
    return together(_TRAINING_OPTIONS)(file_options(_SEED(function)))


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

    def table(self) -> pl.DataFrame:
        """The file's columns; one that is not there is an error before anything heavier than polars is imported."""
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
