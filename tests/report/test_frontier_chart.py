"""The chart of a frontier: what it draws, and that the page draws the same."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import replace
from io import BytesIO

import matplotlib.pyplot as plt
import numpy as np
import pytest
from frontiers import HOSTILE, demo_view
from matplotlib import rc_context
from matplotlib.figure import Figure

from metrifair.errors import DataError, MissingExtra
from metrifair.report import ChartDisplay
from tests.expected_errors import Refusals
from tests.seams.report import front_line, frontier_chart, page_content
from tests.seams.tradeoff import Change, Goal, Point
from tests.seams.wording import FrontierView

Places = list[tuple[float, float]]


def drawn(view: FrontierView) -> ChartDisplay:
    """The chart on axes that no window shows."""
    return frontier_chart(view, Figure().subplots())


def points_by_kind(display: ChartDisplay) -> dict[str, Places]:
    """The places of the points, by what the legend calls them."""
    return {
        str(marks.get_label()): [(float(x), float(y)) for x, y in np.asarray(marks.get_offsets())]
        for marks in display.ax_.collections
        if not str(marks.get_label()).startswith("_")
    }


def line_called(display: ChartDisplay, name: str) -> Places:
    (line,) = (line for line in display.ax_.lines if line.get_label() == name)
    return [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]


def legend_of(display: ChartDisplay) -> list[str]:
    legend = display.ax_.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def places(view: FrontierView, points: Iterable[Point]) -> Places:
    return sorted((point.unfairness, point.accuracy) for point in points)


def test_the_chart_has_the_front_every_model_and_the_choice() -> None:
    view = demo_view()
    display = drawn(view)
    assert line_called(display, "Pareto front") == list(front_line(view))
    points = points_by_kind(display)
    others = [point for point in view.usable if point != view.chosen]
    assert sorted(points["Model"]) == places(view, others)
    assert points["Chosen model"] == places(view, [view.chosen])


def test_the_axes_are_those_of_the_page() -> None:
    view = demo_view()
    axes = drawn(view).ax_
    page = page_content(view)["frontier"]
    low, high = axes.get_xlim()
    assert low < page["x"]["low"] == 0
    assert high == page["x"]["high"]
    assert axes.get_ylim() == (page["y"]["low"], page["y"]["high"])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Unfairness", "Accuracy")


def test_the_legend_lists_what_is_drawn_and_nothing_else() -> None:
    view = demo_view()
    none = view.usable[0]
    change = Change(
        none, view.chosen.accuracy - none.accuracy, view.chosen.unfairness - none.unfairness
    )
    marked = [
        replace(p, marks={"accuracy": "not_significantly_better"}) if p.strength > 50 else p
        for p in view.points
    ]
    view = replace(view, chosen=marked[marked.index(view.chosen)], goal=Goal(0.2))
    display = drawn(replace(view, points=marked, constant=Point(0, 0, 0.7, 0.0), change=change))
    kinds = [
        "Model",
        "Not significantly better than a constant",
        "Constant predictor",
        "Without the penalty",
        "Chosen model",
    ]
    assert list(points_by_kind(display)) == kinds
    assert legend_of(display) == ["Pareto front", "Limit", *kinds]
    assert legend_of(drawn(demo_view())) == ["Pareto front", "Model", "Chosen model"]
    assert points_by_kind(display)["Constant predictor"] == [(0.0, 0.7)]
    assert points_by_kind(display)["Without the penalty"] == places(view, [none])


def test_every_model_is_drawn_once() -> None:
    view = demo_view()
    none = view.usable[0]
    change = Change(none, 0.0, 0.0)
    points = points_by_kind(drawn(replace(view, change=change)))
    assert sorted(place for kind in points.values() for place in kind) == places(view, view.usable)


def test_picture_and_page_mark_the_same_point_and_draw_the_same_limit() -> None:
    view = demo_view(goal=Goal(0.15))
    chosen = replace(view.chosen, accuracy=0.8, unfairness=0.12, intervals={})
    view = replace(view, chosen=chosen)
    page = page_content(view)["frontier"]
    display = drawn(view)
    ((x, y),) = points_by_kind(display)["Chosen model"]
    assert {"x": x, "y": y} == page["chosen"] == {"x": 0.12, "y": 0.8}
    assert {x for x, _ in line_called(display, "Limit")} == {page["limit"]} == {0.15}
    compared = next(point for point in view.points if point.job == chosen.job)
    every = [place for kind in points_by_kind(display).values() for place in kind]
    assert (compared.unfairness, compared.accuracy) not in every
    assert "Limit" not in legend_of(drawn(replace(view, goal=Goal(min_accuracy=0.8))))


def test_the_chosen_model_has_a_cross_of_its_intervals() -> None:
    view = demo_view()
    across, up = view.chosen.intervals["unfairness"], view.chosen.intervals["accuracy"]
    segments = [
        [(float(x), float(y)) for x, y in segment]
        for lines in drawn(view).ax_.collections
        if hasattr(lines, "get_segments")
        for segment in lines.get_segments()
    ]
    x, y = view.chosen.unfairness, view.chosen.accuracy
    assert [(across.low, y), (across.high, y)] in segments
    assert [(x, up.low), (x, up.high)] in segments


def test_the_title_has_a_note_which_figures_the_other_models_have() -> None:
    view = demo_view()
    note = page_content(view)["compared"]
    assert note
    assert " ".join(drawn(view).ax_.get_title().split()) == f"{view.title} {note}"
    assert drawn(replace(view, chosen=None)).ax_.get_title() == view.title


def test_nothing_to_draw_is_an_error(refused: Refusals) -> None:
    with refused(DataError):
        drawn(demo_view(count=2, failed=2))


@pytest.mark.parametrize("title", [HOSTILE, "$x^2$ for $5", "50 % of 100 \\$"])
def test_titles_are_text_in_a_picture(title: str) -> None:
    """A formula between dollar signs would be drawn as one, or fail."""
    picture = BytesIO()
    display = drawn(replace(demo_view(), title=title, chosen=None))
    with rc_context({"svg.fonttype": "none"}):
        display.figure_.savefig(picture, format="svg")
    tree = ET.fromstring(picture.getvalue())
    assert title in [text.strip() for text in tree.itertext()]
    assert not [part for part in tree.iter() if part.tag.endswith("script")]


def test_without_matplotlib_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, refused: Refusals
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with refused(MissingExtra):
        frontier_chart(demo_view(count=2))


def test_axes_of_ones_own_are_drawn_on_and_a_new_figure_otherwise(refused: Refusals) -> None:
    before: Sequence[int] = plt.get_fignums()
    left, _ = Figure().subplots(1, 2)
    assert frontier_chart(demo_view(count=2), left).ax_ is left
    assert plt.get_fignums() == before
    display = frontier_chart(demo_view(count=2))
    assert plt.get_fignums() != before
    plt.close(display.figure_)
    assert plt.get_fignums() == before
    with refused(DataError):
        frontier_chart(demo_view(count=2), Figure().subplots(1, 2))  # type: ignore[arg-type]
