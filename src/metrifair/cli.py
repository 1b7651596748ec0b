"""The command line. Heavy imports wait until a command needs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from metrifair.errors import DataError, MissingExtra


class _Refusal(click.ClickException):
    """One clear line and exit code 2, for input that cannot be used."""

    exit_code = 2


class _Commands(click.Group):
    """Commands whose typed errors reach the user as one line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (DataError, MissingExtra) as error:
            raise _Refusal(" ".join([str(error), *getattr(error, "__notes__", [])])) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="metrifair")
def main() -> None:
    """Train and audit predictors whose scores are distributed alike across demographic groups."""


@main.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder for the report, the picture and the model.",
)
@click.option("--seeds", type=click.IntRange(1, 20), default=3, show_default=True, help="Models of each strength.")
@click.option(
    "--max-unfairness",
    type=click.FloatRange(0, 1),
    default=0.15,
    show_default=True,
    help="Limit for the model that is chosen and saved.",
)
def demo(output: Path, seeds: int, max_unfairness: float) -> None:
    """Fair mortgages: the whole trade-off on 1,989 applications in Boston, by race, with a report."""
    from metrifair import FairClassifier, datasets, frontier
    from metrifair.choices import require

    require("rich", extra="cli", purpose="the table")
    if not 0 <= max_unfairness <= 1:  # click lets nan through
        raise DataError(f"'--max-unfairness' must be a number from 0 to 1, got {max_unfairness}")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write to the folder {output}: {error.strerror}; name another --output") from error
    data = datasets.load("mortgage")
    names = {0: "white", 1: "not white"}
    click.echo(
        f"{len(data.y):,} mortgage applications, {data.X.shape[1]} features. Who is approved, and is it fair by race?"
    )
    front = frontier(
        FairClassifier(verbose=True),
        data.X,
        data.y,
        sensitive_features=data.sensitive_features.map(names).rename("race"),
        seeds=seeds,
    )
    model = front.select(max_unfairness=max_unfairness)
    _print_table(front)
    files = {
        "report": output / "demo-report.html",
        "picture": output / "demo-frontier.png",
        "model": output / "demo-model.metrifair",
    }
    front.to_html(files["report"], title="Mortgage approvals in Boston, by race")
    front.to_picture(files["picture"])
    model.save(files["model"])
    click.echo(
        f"Chosen: strength {model.strength:g}, the most accurate model with unfairness at most {max_unfairness:g}."
    )
    for what, path in files.items():
        click.echo(f"{what:>8}: {path.resolve()}")


def _print_table(front: Any) -> None:
    """A few strengths, mean over seeds."""
    from statistics import fmean

    from rich.console import Console
    from rich.table import Table

    table = Table("strength", "accuracy", "unfairness of scores", "of decisions", "four-fifths ratio", title=str(front))
    strengths = sorted({point.strength for point in front.points})
    figures: list[Callable[[Any], float | None]] = [
        lambda point: point.accuracy,
        lambda point: point.unfairness,
        lambda point: point.decision_unfairness,
        lambda point: point.more.get("four_fifths"),
    ]
    for strength in strengths[:: max(1, len(strengths) // 8)]:
        own = [point for point in front.points if point.strength == strength and not point.failed]
        cells = []
        for figure in figures:
            known = [value for value in map(figure, own) if value is not None]
            cells.append(f"{fmean(known):.3f}" if known else "-")
        table.add_row(f"{strength:g}", *cells)
    Console().print(table)
