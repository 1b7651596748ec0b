"""The data sets as text and as files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console

from metrifair import datasets
from metrifair.cli.tables import write_table
from metrifair.cli.terminal import show_table

TARGET = "target"


def overview(out: Console, rows: Mapping[str, int]) -> None:
    """One line for each data set."""
    listed = []
    for name in datasets.names():
        lines = datasets.describe(name).splitlines()
        (citation,) = (line.removeprefix("Citation: ") for line in lines if line.startswith("Citation: "))
        title, year = re.split(r"[:(]", lines[0])[0].strip(), re.search(r"^.*?\(\d{4}\)", citation)
        listed.append([name, title, year.group() if year else citation, f"{rows[name]:,}"])
    show_table(out, ["name", "what", "citation", "rows"], listed, left=3)
    out.print("metrifair datasets NAME tells more; with --output NAME.csv it writes the table.")


def describe(out: Console, name: str) -> None:
    """All that is known without the data."""
    out.print(datasets.describe(name), soft_wrap=True)


def export(out: Console, name: str, path: Path) -> None:
    """Write features, target and groups as one table."""
    data = datasets.load(name)
    attribute = str(data.sensitive_features.name)
    table: dict[str, Any] = {str(column): data.X[column].to_numpy() for column in data.X.columns}
    table |= {TARGET: data.y.to_numpy(), attribute: [data.names[group] for group in data.sensitive_features]}
    write_table(pl.DataFrame(table), path)
    out.print(f"{len(data.y):,} rows, {data.X.shape[1]} features, the groups {attribute}: {', '.join(data.names)}.")
    out.print(f"Next: metrifair train {path} --target {TARGET} --sensitive {attribute}", soft_wrap=True)
