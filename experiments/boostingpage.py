"""The page of the boosted trees: tables and a figure of their points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from experiments.figures import altair, write_report
from experiments.rows import Row
from experiments.tables import Table

STRENGTHS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1_000.0)
FINE = (2.0, 3.5, 4.0, 5.0, 7.0)  # of Adult's boosters besides: around the targets of docs/boosting.md
NETWORK, REDUCTION = "network", "fairlearn on LightGBM"

_SETTINGS = (
    "The paper has no boosted trees: there are no printed values, and both protocols mean the same here. The penalty "
    "is the unbiased energy distance of predictions; inputs are unscaled, splits the paper's. The network "
    "(FairClassifier, FairRegressor) and the boosters have their defaults but for what is said here; one thread for "
    "each fit."
)
_ENTRIES = (
    "Entries: accuracy (or R²) / Kolmogorov distance of the scores, test rows, mean over seeds. Seconds of one fit; "
    "the network trains all strengths at once, and has its share of that."
)


def report(rows: Sequence[Row], out: Path, *, notes: Sequence[str] = ()) -> None:
    """Write tables and figure."""
    penalised = [row for row in rows if row.method != REDUCTION]
    tables = {"Boosters and network": means_table([row for row in penalised if row.strength in STRENGTHS])}
    finer = [row for row in penalised if row.strength in FINE]
    if finer:
        tables["Further strengths"] = means_table(finer)
    reduced = [row for row in rows if row.method == REDUCTION]
    if reduced:
        title = f"{REDUCTION} (exponentiated gradient): a bound on the decisions' gap, not on the scores'"
        tables[title] = _bounds_table(reduced)
    write_report(
        out,
        "boosting",
        title="Boosted trees",
        notes=[_SETTINGS, *notes, _seeds(rows), _ENTRIES],
        tables=tables,
        charts={"Accuracy against unfairness of the scores": figure(rows)},
    )


def _seeds(rows: Sequence[Row]) -> str:
    counts = {name: len({row.seed for row in rows if row.data == name}) for name in dict.fromkeys(r.data for r in rows)}
    most = max(counts.values())
    fewer = [f"{name} {count}" for name, count in counts.items() if count < most]
    return f"Seeds: {most}" + (f"; {', '.join(fewer)}, whose split is prescribed." if fewer else ".")


def means_table(rows: Sequence[Row]) -> Table:
    """Means over seeds: accuracy (or R2) / Kolmogorov distance of the scores.

    >>> one = Row("boosting", "both", "raw", "adult", "LightGBM", 1.0, 0, 0.87, 0.1, 0.1, seconds=2.0)
    >>> two = Row("boosting", "both", "raw", "adult", "LightGBM", 1.0, 1, 0.85, 0.1, 0.2, seconds=4.0)
    >>> means_table([one, two])[1]
    ['adult', 'LightGBM', '0.860 / 0.150', '3.00']
    """
    strengths = sorted({row.strength for row in rows})
    lines = []
    for name, method in dict.fromkeys((row.data, row.method) for row in rows):
        own = [row for row in rows if (row.data, row.method) == (name, method)]
        cells = [_cell([row for row in own if row.strength == strength]) for strength in strengths]
        lines.append([name, method, *cells, f"{fmean(row.seconds for row in own):.2f}"])
    return [["data", "method", *(f"strength {value:g}" for value in strengths), "s per fit"], *lines]


def _cell(rows: Sequence[Row]) -> str:
    if not rows:
        return "–"
    return f"{fmean(row.accuracy for row in rows):.3f} / {fmean(row.kolmogorov for row in rows):.3f}"


def _bounds_table(rows: Sequence[Row]) -> Table:
    heading = ["bound", "accuracy", "Kolmogorov of the scores", "gap of the decisions", "s"]
    lines = [
        [f"{r.strength:g}", f"{r.accuracy:.3f}", f"{r.kolmogorov:.3f}", f"{r.label_gap:.3f}", f"{r.seconds:.0f}"]
        for r in rows
    ]
    return [heading, *lines]


def figure(rows: Sequence[Row]) -> Any:
    """Accuracy against unfairness, a panel for each data set, a line along the strengths for each method."""
    alt = altair()
    panels = []
    for name in dict.fromkeys(row.data for row in rows):
        points = _mean_points([row for row in rows if row.data == name])
        panel = alt.Chart(alt.Data(values=points), title=name).mark_line(point=True)
        panels.append(
            panel.encode(
                x=alt.X("kolmogorov:Q", title="Kolmogorov distance of the scores"),
                y=alt.Y("accuracy:Q", title="accuracy or R²", scale=alt.Scale(zero=False)),
                color=alt.Color("method:N", title=None),
                order="strength:Q",
            ).properties(width=260, height=190)
        )
    return alt.concat(*panels, columns=3)


def _mean_points(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Means over seeds; R2 below -0.2 is drawn there."""
    found = []
    for method, strength in dict.fromkeys((row.method, row.strength) for row in rows):
        own = [row for row in rows if (row.method, row.strength) == (method, strength)]
        accuracy, gap = fmean(row.accuracy for row in own), fmean(row.kolmogorov for row in own)
        found.append({"method": method, "strength": strength, "accuracy": max(accuracy, -0.2), "kolmogorov": gap})
    return found
