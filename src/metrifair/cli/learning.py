"""Options that say what is learned from which columns: those of `train` and `frontier`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

METRICS = "energy, kolmogorov, wasserstein, cramer, lp, mmd or total_variation"
CRITERIA = (
    "statistical_parity, equal_opportunity, predictive_equality, equalized_odds, risk_parity or "
    "conditional_statistical_parity (with --control)"
)
MODELS = ("mlp", "linear", "lightgbm", "xgboost")

_FILE_OPTIONS = (
    click.option("--separator", metavar="SIGN", help="What stands between columns of a csv file, such as ';'."),
    click.option(
        "--format",
        type=click.Choice(["csv", "tsv", "parquet", "arrow", "ndjson"]),
        help="What FILE is, where its name does not say it.",
    ),
)

_OPTIONS = (
    click.argument("file"),
    click.option("--target", required=True, metavar="COLUMN", help="What is to be predicted."),
    click.option(
        "--sensitive", required=True, multiple=True, metavar="COLUMN", help="The groups. Repeat it for several."
    ),
    click.option("--control", multiple=True, metavar="COLUMN", help="Be fair within each of its values. Repeatable."),
    click.option("--criterion", default="statistical_parity", show_default=True, help=f"What is compared: {CRITERIA}."),
    click.option("--metric", default="energy", show_default=True, help=f"How it is compared: {METRICS}."),
    click.option(
        "--model",
        type=click.Choice(MODELS),
        default="mlp",
        show_default=True,
        help="What is trained; mlp is a network.",
    ),
    click.option("--ignore", multiple=True, metavar="COLUMN", help="Not a feature. Repeatable."),
    click.option(
        "--id", "ids", multiple=True, metavar="COLUMN", help="Tells rows apart; predict copies it. Repeatable."
    ),
    click.option("--use-sensitive", is_flag=True, help="Take the sensitive columns as features too."),
    click.option(
        "--classification/--regression",
        "classification",
        default=None,
        help="Whether the target is a class or a number.  [default: a number, if it takes more than 10 values]",
    ),
    click.option("--positive", metavar="CLASS", help="The class that equal opportunity is about.  [default: the last]"),
    *_FILE_OPTIONS,
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of split, weights and batches."),
)


def learning_options(function: Function) -> Function:
    """The file and the options of a Request."""
    return _with(_OPTIONS, function)


def file_options(function: Function) -> Function:
    """How FILE is read."""
    return _with(_FILE_OPTIONS, function)


def _with(options: Sequence[Callable[[Function], Function]], function: Function) -> Function:
    for option in reversed(options):
        function = option(function)
    return function


@dataclass(frozen=True)
class Request:
    """What the user asked to learn; the fields are the options."""

    file: str
    target: str
    sensitive: tuple[str, ...]
    control: tuple[str, ...]
    criterion: str
    metric: str
    model: str
    ignore: tuple[str, ...]
    ids: tuple[str, ...]
    use_sensitive: bool
    classification: bool | None
    positive: str | None
    separator: str | None
    format: str | None
    seed: int
