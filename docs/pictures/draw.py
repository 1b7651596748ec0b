"""The pictures of README and of the landing page, of the models of ``metrifair demo``.

``python docs/pictures/draw.py`` draws them beside this file.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from metrifair import FairClassifier, Frontier, datasets, frontier
from metrifair.figures.curves import Curves
from metrifair.tradeoff.points import Point
from metrifair.wording.numbers import figure_text

LIMIT = 0.2
COLORS = {"not white": "#d55e00", "white": "#0072b2"}
TITLE = "Mortgage approvals in Boston, by race"
NOTE = (
    "Gap: the largest difference between the groups' shares at or above a score, over all scores.\n"
    "1,989 mortgage applications, each scored by models that were trained without it."
)


def chosen_frontier() -> Frontier:
    """The frontier of the demo, with its choice."""
    data = datasets.load("mortgage")
    front = frontier(
        FairClassifier(model="linear", weight_decay=1e-5),
        data.X,
        data.y,
        sensitive_features=data.sensitive_features,
        strengths=[0, 0.1, 0.2, 0.5, 1, 2, 5, 10],
        random_state=0,
    )
    front.select(max_unfairness=LIMIT)
    return front


def draw_densities(axes: Axes, curves: Curves, point: Point, title: str) -> None:
    """The densities of both groups, with the figures of the model above them."""
    for group, density in curves.density.items():
        axes.fill_between(curves.grid, density, color=COLORS[group], alpha=0.25, linewidth=0)
        axes.plot(curves.grid, density, color=COLORS[group], label=group, linewidth=2)
    gap, auc = figure_text(point.unfairness), figure_text(point.figure("auc"))
    axes.set_title(f"{title}\ngap {gap}, AUC {auc}", loc="left", fontsize=13)
    axes.set_xlabel("predicted probability of approval")
    axes.set_xticks([0, 0.5, 1])
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    axes.set_yticks([])
    axes.spines[["left", "right", "top"]].set_visible(False)


def before_after(front: Frontier) -> Figure:
    """Both models side by side."""
    change, chosen = front.record.change, front.chosen
    curves = front.view().curves
    # small, so that its text can be read on a telephone
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    draw_densities(left, curves[change.reference.place], change.reference, "Without the penalty")
    draw_densities(right, curves[chosen.place], chosen, f"With the penalty, limit {LIMIT:g}")
    left.legend(title="applicants", frameon=False, loc="upper left")
    figure.supxlabel(NOTE, fontsize=9, color="#5a5a63")
    return figure


def trade_off(front: Frontier) -> Figure:
    """All models of the demo, and the one that is chosen."""
    figure = Figure(figsize=(7, 5), layout="constrained")
    front.plot(title=TITLE, ax=figure.subplots())
    return figure


if __name__ == "__main__":
    front = chosen_frontier()
    for name, draw, dpi in (("before-after", before_after, 250), ("frontier", trade_off, 160)):
        draw(front).savefig(Path(__file__).with_name(f"{name}.png"), dpi=dpi)
