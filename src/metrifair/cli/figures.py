"""What models reach, as tables for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console

from metrifair.cli.terminal import decimals, printable, show_table
from metrifair.points import Point
from metrifair.tabular import TableModel
from metrifair.tradeoff.frontier import Frontier

_SHOWN = 8  # strengths in a table
_LABELS = {
    "auc": "AUC",
    "log_loss": "log loss",
    "four_fifths": "four-fifths ratio",
    "mean_absolute_error": "mean absolute error",
}


def show_frontier(out: Console, front: Frontier) -> None:
    """A few strengths, mean over seeds."""
    figures: dict[str, Callable[[Point], float | None]] = {
        front.accuracy_name: lambda point: point.accuracy,
        "unfairness of scores": lambda point: point.unfairness,
        "of decisions": lambda point: point.decision_unfairness,
        "four-fifths ratio": lambda point: point.more.get("four_fifths"),
    }
    strengths = sorted({point.strength for point in front.points})
    rows = []
    for strength in strengths[:: max(1, len(strengths) // _SHOWN)]:
        own = [point for point in front.points if point.strength == strength and not point.failed]
        rows.append([f"{strength:g}", *(_mean(figure, own) for figure in figures.values())])
    for note in front.notes:
        out.print(printable(note), soft_wrap=True)
    out.print(str(front), soft_wrap=True)
    show_table(out, [front.parameter, *figures], rows)


def frontier_json(front: Frontier) -> dict[str, Any]:
    """All figures of a frontier, as JSON."""
    return {
        "accuracy_name": front.accuracy_name,
        "groups": list(front.groups),
        "sizes": front.sizes,
        "points": [asdict(point) for point in front.points],
        "area": front.area,
        "notes": list(front.notes),
        "chosen": None if front.chosen is None else asdict(front.chosen),
    }


def keep(model: TableModel, path: Path | None, out: Console) -> None:
    """Say which model was chosen, and write it where there is a path."""
    out.print(f"Chosen: strength {model.estimator.strength:g}, the most accurate within the limit.")
    if path is not None:
        model.save(path)
        out.print(f"Model: {printable(path)}", soft_wrap=True)


def show_point(out: Console, point: Point, accuracy_name: str) -> None:
    """What one model reaches on rows that it was not trained on, with intervals."""
    named = {
        accuracy_name: (point.accuracy, "accuracy"),
        "unfairness of scores": (point.unfairness, "unfairness"),
        "unfairness of decisions": (point.decision_unfairness, "decision_unfairness"),
    } | {_LABELS.get(name, name): (value, name) for name, value in point.more.items()}
    rows = []
    for label, (value, name) in named.items():
        if value is not None:
            interval = point.intervals.get(name)
            rows.append([label, decimals(value), f"{interval.low:.3f} to {interval.high:.3f}" if interval else ""])
    show_table(out, ["on held-out rows", "value", "95 % interval"], rows)


def _mean(figure: Callable[[Point], float | None], points: list[Point]) -> str:
    known = [value for value in map(figure, points) if value is not None]
    return decimals(fmean(known)) if known else "-"
