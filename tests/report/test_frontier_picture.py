"""Charts and pictures of them."""

import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from frontiers import HOSTILE, demo_view

from metrifair.errors import DataError, MissingExtra
from metrifair.figures.utility import NO_BETTER
from metrifair.report.frontier import front_line, frontier_chart, page_content, save_picture
from metrifair.tradeoff.goal import Goal
from metrifair.tradeoff.points import Change, Point

pytest.importorskip("altair", reason="altair is in the extra report")
pytest.importorskip("vl_convert", reason="vl-convert-python is in the extra report")


def values(layer):
    return layer["data"]["values"]


def test_the_frontier_has_line_points_and_choice():
    view = demo_view()
    line, *_, dots, chosen = frontier_chart(view).to_dict()["layer"]
    assert [(corner["x"], corner["y"]) for corner in values(line)] == list(front_line(view))
    assert sorted((dot["x"], dot["y"]) for dot in values(dots)) == sorted(
        (p.unfairness, p.accuracy) for p in view.usable if p != view.chosen
    )
    assert [(dot["x"], dot["y"]) for dot in values(chosen)] == [
        (view.chosen.unfairness, view.chosen.accuracy)
    ]


def test_hovering_tells_all_figures_by_their_names():
    tips = frontier_chart(demo_view(labels={"auc": "a.b[c]:Q"})).to_dict()["layer"][-2]["encoding"][
        "tooltip"
    ]
    names = [
        "Strength",
        "Seed",
        "Accuracy",
        "Unfairness",
        "Unfairness of decisions",
        "a.b[c]:Q",
        "Log loss",
        "Four-fifths ratio",
    ]
    assert [tip["title"] for tip in tips] == names
    assert " to " in values(frontier_chart(demo_view()).to_dict()["layer"][-2])[0]["text2"]


def test_everything_that_is_drawn_stands_in_the_legend():
    view = demo_view()
    none = view.usable[0]
    change = Change(
        none, view.chosen.accuracy - none.accuracy, view.chosen.unfairness - none.unfairness
    )
    marked = [
        replace(p, marks={"accuracy": NO_BETTER}) if p.strength > 50 else p for p in view.points
    ]
    view = replace(view, chosen=marked[marked.index(view.chosen)], goal=Goal(0.2))
    chart = frontier_chart(
        replace(view, points=marked, constant=Point(0, 0, 0.7, 0.0), change=change)
    ).to_dict()
    drawn = {one["kind"] for layer in chart["layer"] for one in values(layer) if "kind" in one}
    for layer in chart["layer"]:
        for channel in {"color", "shape"} & set(layer.get("encoding", {})):
            assert set(layer["encoding"][channel]["scale"]["domain"]) == drawn
    assert drawn == {
        "Model",
        "Not significantly better than a constant",
        "Constant predictor",
        "Pareto front",
        "Limit",
        "Without the penalty",
        "Chosen model",
    }


def layers_by_kind(view):
    """The values of each kind in a chart."""
    kinds = {}
    for layer in frontier_chart(view).to_dict()["layer"]:
        for value in values(layer):
            kinds.setdefault(value.get("kind"), []).append(value)
    return kinds


def test_picture_and_page_mark_the_same_point_and_draw_the_same_limit():
    view = demo_view(goal=Goal(0.15))
    chosen = replace(view.chosen, accuracy=0.8, unfairness=0.12, intervals={})
    view = replace(view, chosen=chosen)
    page = page_content(view)["frontier"]
    drawn = layers_by_kind(view)
    (marked,) = drawn["Chosen model"]
    assert {"x": marked["x"], "y": marked["y"]} == page["chosen"] == {"x": 0.12, "y": 0.8}
    assert [limit["x"] for limit in drawn["Limit"]] == [page["limit"]] == [0.15]
    compared = next(point for point in view.points if point.job == chosen.job)
    assert (compared.unfairness, compared.accuracy) not in {
        (dot["x"], dot.get("y")) for dots in drawn.values() for dot in dots
    }
    assert "Limit" not in layers_by_kind(replace(view, goal=Goal(min_accuracy=0.8)))


def test_a_picture_says_which_figures_the_other_models_have():
    view = demo_view()
    title = frontier_chart(view).to_dict()["title"]
    assert title["subtitle"] == page_content(view)["compared"] != ""
    assert frontier_chart(replace(view, chosen=None)).to_dict()["title"] == view.title


def test_nothing_to_draw_is_said():
    with pytest.raises(
        DataError,
        match="all 4 points failed, so there is nothing to draw; train again with a smaller",
    ):
        frontier_chart(demo_view(count=2, failed=2))


def test_pictures_need_no_browser(tmp_path):
    chart = frontier_chart(demo_view(title=HOSTILE, groups=(HOSTILE, "b")))
    assert save_picture(chart, tmp_path / "front.PNG").read_bytes().startswith(b"\x89PNG")
    picture = ET.fromstring(save_picture(chart, tmp_path / "front.svg").read_text())
    assert not [part for part in picture.iter() if part.tag.endswith("script")]
    assert HOSTILE in "".join(picture.itertext())


def test_other_endings_and_folders_are_refused(tmp_path):
    chart = frontier_chart(demo_view(count=2))
    for name in ("front.pdf", "front", ".png"):
        with pytest.raises(
            DataError,
            match=f"path must end in .png or .svg, got '.*{name}'; for a page use to_html",
        ):
            save_picture(chart, tmp_path / name)
    with pytest.raises(DataError, match="does not exist; create it, or name another path"):
        save_picture(chart, tmp_path / "no" / "front.svg")


def test_a_missing_extra_says_how_to_install_it(monkeypatch):
    chart = frontier_chart(demo_view(count=2))
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(
        MissingExtra, match=r'a chart needs altair: pip install "metrifair\[report\]"'
    ):
        frontier_chart(demo_view(count=2))
    with pytest.raises(
        MissingExtra,
        match=r'a picture of a chart needs vl_convert: pip install "metrifair\[report\]"',
    ):
        save_picture(chart, "front.png")
