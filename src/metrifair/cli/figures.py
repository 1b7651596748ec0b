"""What models reach, as tables for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console

from metrifair.cli.terminal import decimals, printable, show_table
from metrifair.encoding.table_model import TableModel
from metrifair.results import Point
from metrifair.tradeoff.frontier import Frontier

_SHOWN = 8  # strengths in a table, about
UNFAIRNESS = "the Kolmogorov distance, the largest difference between the groups' shares below any score"
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
    chosen = None if front.chosen is None else front.chosen.strength
    shown = sorted({*strengths[:: max(1, len(strengths) // _SHOWN)], *([] if chosen is None else [chosen])})
    rows = []
    for strength in shown:
        own = [point for point in front.points if point.strength == strength and not point.failed]
        mark = " (chosen)" if strength == chosen else ""
        rows.append([f"{strength:g}{mark}", *(_mean(figure, own) for figure in figures.values())])
    for note in front.notes:
        out.print(printable(note), soft_wrap=True)
    out.print(str(front), soft_wrap=True)
    show_table(out, [front.parameter, *figures], rows)
    means = f", means of {seeds} seeds" if (seeds := len({point.seed for point in front.points})) > 1 else ""
    out.print(f"Shown: {len(shown)} of {len(strengths)} strengths{means}. Unfairness is {UNFAIRNESS}.", soft_wrap=True)


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


def show_choice(out: Console, front: Frontier) -> None:
    """Which model was chosen by a limit, what it reaches on test rows, and whether it keeps the limit there."""
    point, limit = front.chosen, front.limit
    if point is None or limit is None:
        return
    out.print(
        f"Chosen: strength {point.strength:g}, the most accurate with an unfairness of at most {limit:g} on the rows "
        "for choosing.",
        soft_wrap=True,
    )
    reached = {front.accuracy_name: (point.accuracy, "accuracy"), "unfairness": (point.unfairness, "unfairness")}
    figures = (f"{label} {decimals(value)}{_between(point, name)}" for label, (value, name) in reached.items())
    out.print(f"On test rows it has {', '.join(figures)}, with 95 % intervals.", soft_wrap=True)
    if point.unfairness > limit:
        out.print(
            f"It misses the limit on test rows ({decimals(point.unfairness)} is above {limit:g}): to keep it more "
            "surely, choose with a lower limit, or hold more rows out.",
            soft_wrap=True,
        )


def _between(point: Point, name: str) -> str:
    interval = point.intervals.get(name)
    return f" ({interval.low:.3f} to {interval.high:.3f})" if interval else ""


def keep(model: TableModel, path: Path | None, out: Console) -> None:
    """Write the chosen model where there is a path."""
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
    kind = "Wilson's" if accuracy_name == "accuracy" else "an approximation for many rows"
    out.print(
        f"Unfairness is {UNFAIRNESS}. Its intervals are proven, for all comparisons at once "
        f"(Dvoretzky-Kiefer-Wolfowitz); that of {accuracy_name} is {kind}.",
        soft_wrap=True,
    )


def _mean(figure: Callable[[Point], float | None], points: list[Point]) -> str:
    known = [value for value in map(figure, points) if value is not None]
    return decimals(fmean(known)) if known else "-"
