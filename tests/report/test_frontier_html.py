"""The page as a file: self-contained, escaped, small, written in one step."""

import base64
import hashlib
import html
import json
import math
import os
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from frontiers import curves_of, demo_view
from pages import HOSTILE_NAMES, Parsed, embedded, outside_references, strings, without_figures

from metrifair.errors import DataError
from metrifair.report import write_html
from tests.seams.figures import Curves, Interval
from tests.seams.report import embedded_json, frontier_html
from tests.seams.tradeoff import Change, FrontierNote, Goal, Point
from tests.seams.wording import FrontierView

VIEWS = {
    "demo": demo_view(),
    "one point": demo_view(count=1, seeds=1, failed=0),
    "one strength, many seeds": demo_view(count=1, seeds=9, failed=0),
    "all failed": demo_view(count=3, failed=3),
    "regression": demo_view(decisions=False, accuracy_name="R2", unfairness_of="decisions"),
    "no curves, no choice, no noise": demo_view(
        curves={}, chosen=None, noise=None, notes=(), groups=()
    ),
    "not numbers": FrontierView(
        [
            Point(0, 0, 0.9, 0.4, None, {"auc": math.nan}),
            Point(1, 0, math.nan, 0.3),
            Point(2, 0, 0.5, math.inf),
        ],
        curves={0: Curves([0, 1], {"a": [math.nan, 1.0]}, {"a": [0, 1], "b": [math.nan, 1]})},
        chosen=Point(1, 0, math.nan, 0.3),
    ),
    "numpy": demo_view(
        curves={
            0.0: Curves(np.linspace(0, 1, 400), {"a": np.ones(400)}, {"a": np.linspace(0, 1, 400)})
        }
    ),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_the_page_refers_to_nothing_outside_itself(view):
    assert outside_references(frontier_html(view)) == []


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_no_text_of_the_page_is_nan(view):
    text = frontier_html(view)
    shown = strings(embedded(text))
    assert shown
    assert without_figures(shown) == []


@pytest.mark.parametrize("chosen", range(3))
def test_the_whole_page_shows_the_chosen_model_with_its_own_figures(chosen):
    """Headline, tile, row, dot, mark and table: not the figures by which it was compared."""
    points = [Point(0, 0, 0.9, 0.4), Point(2, 0, 0.85, 0.1), Point(4, 0, 0.8, 0.05)]
    choice = replace(points[chosen], accuracy=0.7, unfairness=0.06)
    content = embedded(frontier_html(FrontierView(points, chosen=choice)))
    (tile,) = [tile for tile in content["highlights"] if "chosen" in tile["heading"].lower()]
    row = content["rows"][chosen]
    (dot,) = [dot for dot in content["frontier"]["points"] if dot["row"] == chosen]
    assert (tile["row"], content["start"]) == (chosen, chosen)
    assert tile["figures"][:2] == [["Accuracy", "0.700"], ["Unfairness", "0.060"]]
    assert [figure["text"] for figure in row["figures"]] == ["0.700", "0.060"]
    assert [line[1] for line in dot["lines"]][-2:] == ["0.700", "0.060"]
    assert content["frontier"]["chosen"] == {"x": 0.06, "y": 0.7}
    assert (row["x"], row["y"]) == (dot["x"], dot["y"]) == (0.06, 0.7)
    assert [cell["value"] for cell in content["table"]["rows"][chosen][1:3]] == [0.7, 0.06]
    compared = [cell["value"] for cell in content["table"]["rows"][chosen - 1][1:3]]
    assert compared == [points[chosen - 1].accuracy, points[chosen - 1].unfairness]
    assert content["compared"] == (
        "Only the chosen model's figures are corrected for choosing the best of many; the others look "
        "too good."
    )


def test_the_page_has_the_limit_and_the_noise():
    points = [Point(0, 0, 0.9, 0.4), Point(2, 0, 0.85, 0.1)]
    change = Change(points[0], -0.05, -0.3)
    view = FrontierView(points, chosen=points[1], change=change, goal=Goal(0.2), noise=0.07)
    content = embedded(frontier_html(view))
    assert (content["frontier"]["limit"], content["frontier"]["noise"]) == (0.2, 0.07)
    bare = embedded(frontier_html(FrontierView(points)))
    assert (bare["compared"], bare["frontier"]["limit"]) == ("", None)


def test_a_page_reports_noise_as_below_its_bound_and_never_as_0():
    interval = {"unfairness": Interval(0.0, 0.062)}
    noise = Point(2, 0, 0.85, 0.0, intervals=interval, is_noise=True)
    view = FrontierView([Point(0, 0, 0.9, 0.4), noise], chosen=noise)
    content = embedded(frontier_html(view))
    assert content["rows"][1]["figures"][1]["text"] == "below 0.062"
    assert content["rows"][1]["spread"][0] == [0.0, 0.062]  # the whisker of its dot
    assert "Unfairness below 0.062" in content["rows"][1]["spoken"]
    assert [cell["text"] for cell in content["table"]["rows"][1]][2] == "below 0.062"
    assert not [text for text in strings(content) if "0.000" in text]


@pytest.mark.parametrize(
    ("families", "stops"),
    [(("linear",), ["strength 0", "strength 2"]), (("linear", "mlp"), ["linear"] * 2)],
)
def test_labels_of_the_slider_name_strengths_unless_there_are_several_families(families, stops):
    points = [
        Point(strength, 0, 0.9, 0.4, family=family) for family in families for strength in (0, 2)
    ]
    view = FrontierView(points, parameters=dict.fromkeys(families, "strength"))
    assert [row["stop"] for row in embedded(frontier_html(view))["rows"]][:2] == stops


def test_the_policy_allows_exactly_the_inline_script_and_style():
    text = frontier_html(demo_view())
    (policy,) = [
        a["content"]
        for tag, a in Parsed(text).elements
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    for part, content in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{part} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert not [
        name
        for _, attributes in Parsed(text).elements
        for name in attributes
        if name.startswith("on") or name == "style"
    ]


def test_the_script_never_parses_text_as_markup_or_code():
    script = frontier_html(demo_view()).partition('<script type="module">')[2]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(|fetch|XMLHttp",
        script,
    )


def elements_of(text):
    """The page's elements; the digest of its style, which holds the title that printed pages
    repeat, is taken out.
    """
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert text.count(digest) == 1
    return Parsed(text.replace(digest, "")).elements


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_from_the_data_arrive_unchanged_and_as_text(name):
    plain = elements_of(frontier_html(demo_view(count=3)))
    keys = ("strength", "seed", "accuracy", "unfairness", "decision_unfairness", "auc")
    view = demo_view(
        count=3,
        title=name,
        groups=(name, "b"),
        notes=(FrontierNote("label_groups", {"attribute": name}),),
        labels=dict.fromkeys(keys, name),
    )
    text = frontier_html(view)
    assert elements_of(text) == plain  # no element more, no attribute changed
    data = embedded(text)
    assert data["title"] == name
    assert data["groups"] == [name, "b"]
    assert data["table"]["columns"][0] == name
    assert html.escape(name) in text  # in the notes


def test_embedded_json_holds_no_sign_that_could_end_its_element():
    text = embedded_json({"a": "<>&\u2028\u2029"})
    assert text == '{"a":"\\u003c\\u003e\\u0026\\u2028\\u2029"}'
    assert json.loads(text) == {"a": "<>&\u2028\u2029"}


@pytest.mark.extended
def test_a_usual_page_is_small_and_the_largest_stays_below_its_bound():
    assert len(frontier_html(demo_view()).encode()) < 250_000
    large = demo_view(
        count=200, seeds=3, groups=tuple(f"group number {n}" for n in range(6)), curves={}
    )
    shapes = curves_of(0.37, large.groups, size=2000)
    huge = replace(large, curves={row.strength: shapes for row in large.rows})
    assert len(frontier_html(huge).encode()) < 1_500_000


def test_the_slider_starts_on_the_chosen_model_and_failed_rows_are_listed():
    data = embedded(frontier_html(demo_view()))
    assert data["rows"][data["start"]]["text"] == "1.82"
    assert [row["state"] for row in data["rows"]] == ["ok"] * 24 + ["failed"]
    assert len(data["frontier"]["points"]) == 48
    assert data["table"]["rows"][-1][1] == {"text": "–", "value": None}


def test_changes_are_against_the_first_usable_strength():
    points = [Point(0, 0, 0.0, 0.0, failed=True), Point(1, 0, 0.9, 0.4), Point(2, 0, 0.8, 0.1)]
    rows = embedded(frontier_html(FrontierView(points)))["rows"]
    assert [figure["change"] for figure in rows[2]["figures"]] == ["−0.100", "−0.300"]
    assert [figure["trend"] for figure in rows[2]["figures"]] == ["worse", "better"]
    assert rows[2]["against"] == "strength 1"
    assert rows[1]["against"] == ""


@pytest.mark.parametrize("needs_group", [False, True])
def test_the_table_names_rows_in_words_and_groups_only_where_a_model_needs_them(needs_group):
    points = [
        Point(0, 0, 0.9, 0.4, family="a"),
        Point(0, 0, 0.8, 0.1, family="b", needs_group=needs_group),
    ]
    view = FrontierView(points, parameters={"a": "strength", "b": "tolerance"})
    assert embedded(frontier_html(view))["table"]["columns"] == [
        "Model",
        *(["Group at prediction"] if needs_group else []),
        "Accuracy",
        "Unfairness",
        "Pareto front",
    ]


def test_curves_stand_beside_the_strength_they_belong_to():
    view = demo_view(count=5, failed=0)
    kept = dict(list(view.curves.items())[1:3])
    rows = embedded(frontier_html(replace(view, curves=kept)))["distributions"]["rows"]
    assert [found is not None for found in rows] == [False, True, True, False, False]
    assert rows[1]["gap"]["size"] != rows[2]["gap"]["size"]
    assert rows[1]["cumulative"][0][80] == pytest.approx(
        view.curves[view.rows[1].strength].cumulative["Black"][80], abs=1e-4
    )


def test_the_page_needs_no_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "</html>" in frontier_html(demo_view(count=2))


def test_writing_replaces_an_older_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    assert write_html(str(path), "new ü") == path
    assert path.read_bytes() == "new ü".encode()
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_others_may_read_the_report_as_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    write_html(tmp_path / "report.html", "x")
    assert (tmp_path / "report.html").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_half_a_sign_in_a_name_does_not_stop_the_writing(tmp_path):
    text = frontier_html(demo_view(count=2, groups=("caf\udce9", "b")))
    assert "caf?" in write_html(tmp_path / "report.html", text).read_text(encoding="utf-8")


def test_a_path_that_cannot_be_written_is_named(tmp_path, refused):
    missing = tmp_path / "no" / "report.html"
    with pytest.raises(DataError) as told:
        write_html(missing, "x")
    assert str(told.value) == (
        f"cannot write {missing}: the folder {missing.parent} does not exist; create it, or name "
        "another path"
    )
    with refused(DataError):
        write_html("/proc/r.html", "x")  # the folder is there
    with pytest.raises(DataError, match=re.escape(f"cannot write {tmp_path}: ")):
        write_html(tmp_path, "x")
    (tmp_path / "file").touch()
    with refused(DataError):
        write_html(tmp_path / "file" / "report.html", "x")
    with refused(DataError):
        write_html(None, "x")
    with refused(DataError):
        write_html("/", "x")
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_a_failed_write_keeps_the_older_file(tmp_path, monkeypatch, refused):
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with refused(DataError):
        write_html(path, "new")
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]
