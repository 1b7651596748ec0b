"""What `train` and `frontier` take: a file, and what is to be learned from it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from metrifair.auditing.formats import ReadOptions
from metrifair.cli import options
from metrifair.errors import DataError
from metrifair.support.checks import check_known

if TYPE_CHECKING:
    import polars as pl

    from metrifair.estimators.table_model import Costs, ThresholdRule
    from metrifair.support.provenance import SourceFile

FAMILIES = ("barycenter", "threshold", "linear", "mlp", "lightgbm", "xgboost")  # the first two around --model


def parse_strengths(text: str) -> list[float] | str:
    """Numbers from 0 upwards between commas, in ascending order, or ``auto``; or a usage error."""
    if text == "auto":
        return text
    try:
        numbers = sorted(set(options.finite_numbers(text)))
    except ValueError:
        numbers = [-1.0]
    if numbers[0] < 0:
        raise click.BadParameter(f"{text!r} is not a list of numbers from 0 upwards, such as 0,0.1,1,10")
    return numbers


def parse_families(text: str) -> list[str]:
    """Names of families between commas, each once; or an error."""
    names = list(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        check_known("families", name, FAMILIES)
    return names


def parse_costs(text: str) -> list[list[float]]:
    """Rows of numbers, between semicolons: what each decision (column) costs at each label (row); or a usage error."""
    try:
        rows = [options.finite_numbers(row) for row in text.split(";")]
    except ValueError:
        rows = []
    if {len(row) for row in rows} != {len(rows)}:
        raise click.BadParameter(
            f"{text!r} is not a square of numbers such as '0,1;5,0': one row for each label, between semicolons, and "
            "in it what each decision costs, both in ascending order of the classes"
        )
    return rows


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
    reading: ReadOptions
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


class Training(NamedTuple):
    """What is asked of a training beside the file: shares of rows kept apart, the threshold, whether to train again."""

    test: float | None  # to judge the model on; 0: none; None: a quarter, or test folds where that is little
    test_folds: int | None
    validation: float  # to choose the threshold on, where a rule is given
    threshold: float | None
    rule: ThresholdRule | None
    costs: Costs | None
    refit: bool


class Choice(NamedTuple):
    """Which model of a frontier is chosen, what is written of it, and whether it is trained again on all rows."""

    max_unfairness: float | None
    without_group: bool
    certified: bool
    output: Path | None
    held_out: Path | None
    refit: bool | None  # None: unless it is certified

    @property
    def is_refitted(self) -> bool:
        """Whether the model that is kept is trained again."""
        return self.output is not None and (not self.certified if self.refit is None else self.refit)


training_options = options.together(
    click.argument("file"),
    options.column("--label", "Column to predict.", required=True),
    options.GROUP,
    options.CONTINUOUS,
    options.CUTS,
    options.column(
        "--control", "Column with strata. Groups are compared within each stratum. Repeatable.", several=True
    ),
    options.WEIGHT,
    click.option(
        "--criterion",
        default="statistical_parity",
        callback=options.known(options.CRITERION_NAMES, options.OTHER_CRITERION_NAMES),
        help=f"Fairness criterion: {options.CRITERIA_HELP}.",
    ),
    click.option(
        "--metric",
        default="energy",
        callback=options.known(options.METRIC_NAMES),
        help=f"Distance between score distributions: {options.METRICS_HELP}.",
    ),
    options.CONTRAST,
    options.choice(
        "--combine",
        ["mean", "sum"],
        "Penalize the mean or the sum over pairs of groups and strata.",
    ),
    options.choice(
        "--estimate",
        ["rows", "population", "batch"],
        "The distance that a batch estimates: of the training rows, of the population, or of the batch itself.",
    ),
    options.choice("--model", ["mlp", "linear", "lightgbm", "xgboost"], "Model to train; mlp is a neural network."),
    options.column("--ignore", "Column that is not a feature. Repeatable.", several=True),
    options.column("--keep", "Column to use as a feature although it encodes the label. Repeatable.", several=True),
    click.option(
        "--id",
        "ids",
        multiple=True,
        metavar="COLUMN",
        help="Column that identifies rows. predict copies it to its output. Repeatable.",
    ),
    click.option("--use-group", is_flag=True, help="Use the --group columns as features too."),
    click.option(
        "--classification/--regression",
        "classification",
        default=None,
        help="Predict a class or a number.  [default: a number, if the label has more than 20 different numbers]",
    ),
    click.option(
        "--positive",
        metavar="CLASS",
        help="The positive label. Required for two texts that are no obvious pair such as no and yes.",
    ),
    options.about_options,
    options.file_options,
    click.option(
        "--seed", type=click.IntRange(0), default=0, help="Seed of the split, the initial weights and the batches."
    ),
    options.gathered("options", TrainingOptions, [field.name for field in fields(TrainingOptions)]),
)
"""The file and what is learned from it; the command gets all of it as ``options``."""
