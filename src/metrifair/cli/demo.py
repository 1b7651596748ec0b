"""`metrifair demo`: the whole trade-off on real data, from nothing to three files."""

from __future__ import annotations

from pathlib import Path

import click

from metrifair.cli.options import Number
from metrifair.errors import DataError


@click.command(short_help="The whole trade-off on mortgage applications, with a report.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder for the report, the picture and the model.",
)
@click.option("--seeds", type=click.IntRange(1, 20), default=3, show_default=True, help="Models of each strength.")
@click.option(
    "--max-unfairness",
    type=Number(0, 1),
    default=0.15,
    show_default=True,
    help="Largest unfairness (Kolmogorov distance of the scores) of the model that is chosen and saved.",
)
def command(output: Path, seeds: int, max_unfairness: float) -> None:
    """Fair mortgages: the whole trade-off on 1,989 applications in Boston, by race, with a report."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write to the folder {output}: {error.strerror}; name another --output") from error
    from metrifair import FairClassifier, datasets, frontier
    from metrifair.cli.console import console, selected, show_frontier

    out = console()
    data = datasets.load("mortgage")
    click.echo(
        f"{len(data.y):,} mortgage applications, {data.X.shape[1]} features. Who is approved, and is it fair by race?"
    )
    front = frontier(
        FairClassifier(verbose=True),
        data.X,
        data.y,
        sensitive_features=data.sensitive_features,
        seeds=seeds,
    )
    selected(front, max_unfairness=max_unfairness)
    show_frontier(out, front)
    files = {
        "report": output / "demo-report.html",
        "picture": output / "demo-frontier.png",
        "model": output / "demo-model.metrifair",
    }
    front.to_html(files["report"], title="Mortgage approvals in Boston, by race")
    front.to_picture(files["picture"])
    front.refit().save(files["model"])
    for what, path in files.items():
        click.echo(f"{what:>8}: {path.resolve()}")
    click.echo(
        f"The model was trained again on all {len(data.y):,} applications; the figures are those of the first fit."
    )
    click.echo('In Python: metrifair.load("demo-model.metrifair").predict_proba(X)')
