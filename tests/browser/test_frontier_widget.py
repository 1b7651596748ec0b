"""The notebook's slider in a real browser: its own module, a model as notebooks give it, Python
at the other end.
"""

import base64
import json
import os
import sys
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from frontiers import HOSTILE, curves_of, point_of, strengths_of

from metrifair import DataError, FairClassifier, Frontier, frontier
from metrifair.errors import MissingExtra
from metrifair.tradeoff.goal import Goal
from metrifair.tradeoff.points import Job, Outcome
from metrifair.tradeoff.record import FrontierRecord
from metrifair.tradeoff.result import TradeOff

pytest.importorskip("anywidget", reason="anywidget is in the extra notebook")
SHOTS = os.environ.get("METRIFAIR_SHOTS")  # a folder: keep screenshots there, for people to look at

# A page with names and styles that a notebook might have, and a model as anywidget hands it to
# `render`.
NOTEBOOK = """<!doctype html><html><head><meta charset="utf-8"><link rel="icon" href="data:,"><style>
body { font: 30px monospace; color: rgb(200, 0, 0); text-align: right; } h2 { color: rgb(0, 200, 0); margin: 90px; }
.card, .plot { display: none; } :root { --ink: red; --card: red; } label { text-transform: uppercase; }
</style></head><body><h2 id="slider" class="card">of the notebook</h2><p id="strength" class="brief">also</p>
<div id="first"></div><div id="second"></div>
<script type="module">
const module = await import("data:text/javascript;base64,SCRIPT");
window.views = {};
window.mount = (name, state) => {
  const listeners = {};
  const changed = {};
  const told = [];
  const update = (values) => {
    const fresh = Object.keys(values).filter((key) => state[key] !== values[key]);
    Object.assign(state, values);
    for (const key of fresh) for (const listener of [...(listeners[`change:${key}`] ?? [])]) listener();
  };
  const model = {
    get: (key) => state[key],
    set: (key, value) => { changed[key] = value; update({ [key]: value }); },
    save_changes: () => { told.push({ ...changed }); for (const key of Object.keys(changed)) delete changed[key]; },
    on: (event, listener) => { (listeners[event] ??= []).push(listener); },
    off: (event, listener) => { listeners[event] = listeners[event].filter((one) => one !== listener); },
  };
  const leave = module.default.render({ model, el: document.getElementById(name) });
  window.views[name] = { told, update, leave, listeners };
};
window.ready = true;
</script></body></html>"""


def front_of(groups=("Black", "White"), seeds=2):
    """A frontier of 12 strengths."""
    outcomes = []
    for strength in strengths_of(12):
        for seed in range(seeds):
            point = point_of(strength, seed)
            curves, model = curves_of(strength, groups), f"model {strength:.3g}, {seed}"
            outcomes.append(Outcome(Job(strength, seed), point, curves, model))
    record = FrontierRecord(groups=groups, sizes=dict.fromkeys(groups, 250))
    return Frontier(TradeOff(outcomes, record))


class Notebook:
    """A widget, its view in a page, and the wire between them."""

    def __init__(self, opened, widget, name="first", page=None, **options):
        self.widget, self.name = widget, name
        self.page = page or opened(self.text(widget), **options)
        self.page.wait_for_function("window.ready")
        self.page.evaluate("([name, state]) => mount(name, state)", [name, self.state()])
        self.inside = self.page.locator(f"#{name}")

    @staticmethod
    def text(widget):
        return NOTEBOOK.replace("SCRIPT", base64.b64encode(widget._esm.encode()).decode())

    def state(self):
        names = ("content", "row", "message", "max_unfairness")
        return json.loads(json.dumps({name: getattr(self.widget, name) for name in names}))

    def carry(self):
        """What the view told goes to Python, and Python's answer back; gives what was told."""
        told = self.page.evaluate(f"views.{self.name}.told.splice(0)")
        for values in told:
            self.widget.set_state(values)
        self.push()
        return told

    def push(self):
        self.page.evaluate(f"state => views.{self.name}.update(state)", self.state())

    def shown(self, place):
        return self.inside.locator(place).inner_text()

    def shoot(self, name):
        if SHOTS:
            self.inside.screenshot(path=Path(SHOTS, f"{name}.png"))


def test_moving_the_slider_tells_python_and_shows_that_model(opened):
    book = Notebook(opened, front_of().widget())
    book.inside.locator("#slider").fill("7")
    assert book.carry() == [{"row": 7}]
    point = book.widget.chosen
    assert point.strength == strengths_of(12)[7] == book.widget.strength
    assert book.widget.model == f"model {point.strength:.3g}, 0"
    assert [one.seed for one in book.widget.points] == [0, 1]
    assert f"{point.strength:.3g}" in book.shown("#strength")
    assert book.inside.locator("#frontier .dot.mine").count() == 2
    assert book.inside.locator("#density path.group").count() == 2
    book.inside.locator("#frontier .dot").nth(2).click(force=True)
    assert book.carry() == [{"row": 1}]


@pytest.mark.slow
def test_python_moves_the_slider(opened):
    book = Notebook(opened, front_of().widget())
    before = book.inside.locator("#frontier .now").get_attribute("cx")
    book.widget.strength = strengths_of(12)[10]
    book.push()
    assert book.inside.locator("#slider").input_value() == "10"
    assert book.inside.locator("#frontier .now").get_attribute("cx") != before
    assert book.carry() == []  # nothing is told back that Python said


@pytest.fixture(scope="module")
def trained():
    """A frontier that can choose: of models that are trained on the spot."""
    generator = np.random.default_rng(0)
    group = generator.integers(2, size=400)
    X = generator.normal(size=(400, 3)) + group[:, None]
    y = (X.sum(1) + generator.normal(size=400) > 1.5).astype(int)
    linear = FairClassifier(model="linear")
    return frontier(
        linear, X, y, sensitive_features=group, strengths=[0, 1, 3, 10], folds=3, random_state=0
    )


def test_a_limit_is_a_selection(opened, trained):
    front = copy(trained)
    book = Notebook(opened, front.widget())
    assert book.inside.locator("#frontier .chosen").count() == 0
    book.inside.locator("#limit").fill("0.3")
    book.inside.locator("#limit").blur()
    assert book.carry() == [{"max_unfairness": 0.3}]
    assert front.record.limit == 0.3
    assert book.widget.chosen is front.chosen
    assert book.widget.model.strength == front.chosen.strength
    assert book.inside.locator("#frontier .chosen").count() == 1
    assert int(book.inside.locator("#slider").input_value()) == book.widget.row > 0
    assert f"{front.chosen.unfairness:.3f}" in book.shown("#current")
    assert "by which they were compared" in book.shown("#frontier-hint")
    assert book.carry() == []
    kept = front.chosen
    book.inside.locator("#limit").fill("0.0001")
    book.inside.locator("#limit").blur()
    book.carry()
    assert front.chosen is kept  # the error is shown, and the earlier choice remains
    assert "to be verified with these" in book.shown("#message") == book.widget.message
    assert book.inside.locator("#frontier .chosen").count() == 1


def test_the_model_of_another_strength_is_trained_when_it_is_read(trained):
    front = copy(trained)
    front.select(max_unfairness=0.3)
    slider = front.widget()
    slider.row = 0
    assert slider.chosen == front.points[0]
    assert slider.model.strength == 0.0
    slider.strength = front.chosen.strength
    assert slider.chosen is front.chosen


LOOKS = """place => { const style = getComputedStyle(place); return Object.fromEntries(
  ["color", "fontFamily", "fontSize", "display", "margin", "textAlign", "backgroundColor", "textTransform"]
    .map((name) => [name, style[name]])
)}"""


def test_no_style_and_no_name_crosses_the_border(opened):
    page = opened(Notebook.text(front_of().widget()))
    outside = {place: page.locator(place).evaluate(LOOKS) for place in ("body", "h2", "p")}
    book = Notebook(opened, front_of().widget(), page=page)
    assert {place: page.locator(place).first.evaluate(LOOKS) for place in outside} == outside
    # its own element of that name is untouched
    assert page.locator("h2#slider").inner_text() == "of the notebook"
    heading, label = (
        book.inside.locator(place).evaluate(LOOKS) for place in ("#frontier-title", "#slider-label")
    )
    assert heading["color"] == "rgb(27, 27, 31)"
    assert heading["margin"] == "0px"
    assert heading["textAlign"] in ("start", "left")
    assert "monospace" not in heading["fontFamily"]
    assert label["textTransform"] == "none"
    assert book.inside.locator("#frontier").is_visible()


@pytest.mark.slow
def test_two_sliders_on_one_page_know_nothing_of_each_other(opened):
    left = Notebook(opened, front_of().widget())
    right = Notebook(
        opened, front_of(("18 to 25", "over 25"), seeds=1).widget(), "second", left.page
    )
    right.inside.locator("#slider").fill("3")
    assert (left.carry(), right.carry()) == ([], [{"row": 3}])
    assert left.inside.locator("#slider").input_value() == "0"
    assert "over 25" in right.shown("#groups")
    left.page.evaluate("views.first.leave()")
    assert left.page.evaluate("Object.values(views.first.listeners).flat().length") == 0


@pytest.mark.slow
def test_names_from_the_data_are_text(opened):
    book = Notebook(opened, front_of((HOSTILE, "<img src=x onerror=alert(2)>")).widget())
    assert HOSTILE in book.shown("#groups")
    assert book.inside.locator("img").count() == 0


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("dark", 1100),
        *(
            pytest.param(*rest, marks=pytest.mark.slow)
            for rest in (("light", 1100), ("light", 420), ("dark", 420))
        ),
    ],
)
def test_it_is_readable_in_light_and_dark_wide_and_narrow(opened, contrast, scheme, width):
    front = front_of()
    record = replace(front.record, chosen=front.points[14], goal=Goal(0.15))
    front._trade_off.record = record
    book = Notebook(
        opened, front.widget(), color_scheme=scheme, viewport={"width": width, "height": 900}
    )
    assert book.inside.locator("#limit").input_value() == "0.15"
    assert not book.inside.locator("#table").is_visible()
    colors = book.inside.locator(".widget").evaluate(
        "host => ['.limit label', '#slider-label', '#strength', '.hint', '#limit', "
        "'#current-title'].map(s => {"
        "  const e = host.querySelector(s); const card = s === '#limit' ? e : e.closest('.card, "
        ".control') ?? host;"
        "  return [s, getComputedStyle(e).color, getComputedStyle(card).backgroundColor]; })"
    )
    for what, text, ground in colors:
        assert contrast(text, ground) >= 4.5, (what, text, ground)
    assert book.page.evaluate("document.documentElement.scrollWidth") <= width
    book.shoot(f"widget-{scheme}-{width}")


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(
        MissingExtra,
        match=r'a slider in a notebook needs anywidget: pip install "metrifair\[notebook\]"',
    ):
        front_of().widget()


def test_a_strength_that_was_not_trained_is_refused():
    slider = front_of().widget()
    with pytest.raises(DataError, match=r"strength must be one of 0, 0\.01, .*, 100, got 0\.5"):
        slider.strength = 0.5
    with pytest.raises(DataError, match="row must be from 0 to 11, got 12"):
        slider.row = 12
    assert (slider.row, slider.strength) == (0, 0.0)


def test_a_limit_that_the_frontier_has_by_now_is_a_selection_too(trained):
    front = copy(trained)
    slider = front.widget()
    front.select(max_unfairness=0.3)
    slider.max_unfairness = 0.3
    assert slider.row == slider.content["start"] > 0
    assert slider.chosen is front.chosen
    front.select(max_unfairness=0.5)
    kept = front.chosen
    assert front.widget().max_unfairness == 0.5
    assert front.chosen is kept  # to look at a choice is not to choose
