"""The page in a real browser: slider, table, hover, keyboard, hostile names; no request, no
error.
"""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from frontiers import HOSTILE, curves_of, demo_view, point_of

from metrifair.report import write_html
from tests.seams.figures import UTILITIES
from tests.seams.report import frontier_html
from tests.seams.tradeoff import Change, FrontierNote, Goal, Point
from tests.seams.wording import FrontierView

PHONE = {"width": 390, "height": 844}
SHOTS = os.environ.get("METRIFAIR_SHOTS")  # a folder: keep screenshots there, for people to look at


def shoot(page, name, **options):
    if SHOTS:
        page.screenshot(path=Path(SHOTS, f"{name}.png"), **options)


def current_row(page):
    return page.locator("tbody tr[aria-current] th").inner_text()


def marker(page):
    now = page.locator("#frontier .now")
    return float(now.get_attribute("cx")), float(now.get_attribute("cy"))


def state(page):
    """Everything the slider moves."""
    return {
        "strength": page.locator("#strength").inner_text(),
        "row": current_row(page),
        "marker": marker(page),
        "figures": page.locator("#current").inner_text(),
        "gap": page.locator("#gap").inner_text(),
        "density": page.locator("#density path.group").first.get_attribute("d"),
        "shares": page.locator("#cumulative path.group").first.get_attribute("d"),
    }


def test_the_page_opens_on_the_chosen_model(opened):
    page = opened(demo_view())
    assert page.title() == "Mortgage approvals in Boston – metrifair"
    assert page.locator("h1").inner_text() == "Mortgage approvals in Boston"
    assert page.locator("#strength").inner_text() == current_row(page) == "1.82"
    assert page.locator("#frontier .dot").count() == 48
    assert page.locator("#frontier .chosen").count() == 1
    assert page.locator("tbody tr").count() == 25
    shoot(page, "wide-light", full_page=True)


@pytest.mark.parametrize(("width", "fits"), [(1280, True), (390, False)])
def test_notes_of_strengths_are_read_without_scrolling_sideways(opened, width, fits):
    """At 1,280 px the whole table fits; on a phone only the table scrolls.

    Each note stands once, above the table.
    """
    view = demo_view()
    points = [
        replace(p, marks={"accuracy": "not_significantly_better"}, overfit=p.strength > 30)
        for p in view.points
    ]
    chosen = next(point for point in points if point.job == view.chosen.job)
    view = replace(view, points=points, chosen=chosen)
    page = opened(view, viewport={"width": width, "height": 900})
    shoot(page, f"notes-{width}", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    table = page.evaluate(
        "(() => { const e = document.querySelector('.scroll'); return [e.scrollWidth, "
        "e.clientWidth] })()"
    )
    assert (table[0] <= table[1]) is fits
    assert "Note" not in page.locator("#table thead").inner_text()
    assert page.locator("#table-notes li").count() == 2
    box = page.locator("#table-notes").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    heights = page.evaluate(
        "[...document.querySelectorAll('#table tbody tr')].map((row) => row.offsetHeight)"
    )
    assert max(heights) < 50


def test_the_slider_moves_point_distributions_and_table(opened):
    page = opened(demo_view())
    before = state(page)
    page.locator("#slider").fill("0")
    after = state(page)
    assert after["strength"] == after["row"] == "0"
    assert [part for part in before if before[part] == after[part]] == []
    assert after["marker"][0] > before["marker"][0]  # less fair lies further right,
    assert after["marker"][1] < before["marker"][1]  # and is more accurate, so higher up
    page.locator("#home").click()
    assert state(page) == before


def test_the_marker_stands_where_the_axes_say(opened):
    view = demo_view(seeds=1, failed=0)
    page = opened(view)
    page.locator("#slider").fill("0")
    drawn = page.locator("#frontier .dot")
    places = [
        (float(dot.get_attribute("cx")), float(dot.get_attribute("cy"))) for dot in drawn.all()
    ]
    assert places[0] == pytest.approx(marker(page), abs=0.01)
    ticks = page.locator("#frontier .tick").evaluate_all(
        "all => all.filter(t => t.getAttribute('text-anchor') === 'middle')"
        ".map(t => [+t.textContent, +t.getAttribute('x')])"
    )
    (a, left), (b, right) = ticks[0], ticks[-1]
    for point, (x, _) in zip(view.points, places, strict=True):
        assert a + (x - left) * (b - a) / (right - left) == pytest.approx(
            point.unfairness, abs=1e-4
        )


def test_the_keyboard_moves_the_slider_and_says_where_it_is(opened):
    page = opened(demo_view())
    slider = page.get_by_role("slider", name="Strength")
    slider.focus()
    page.keyboard.press("Home")
    assert current_row(page) == "0"
    page.keyboard.press("ArrowRight")
    assert current_row(page) == "0.01"
    assert re.match(
        r"Strength 0.01: Accuracy 0\.\d{3}, Unfairness 0\.\d{3}, ",
        slider.get_attribute("aria-valuetext"),
    )
    page.keyboard.press("End")
    assert current_row(page) == "100"
    assert "Training failed" in page.locator("#current").inner_text()
    assert page.locator("#frontier .now").count() == 0
    assert page.locator("#gap").inner_text() == "There are no distributions for this model."
    page.keyboard.press("ArrowLeft")
    assert page.locator("#frontier .now").count() == 1


def test_hovering_shows_all_figures_and_clicking_goes_there(opened):
    page = opened(demo_view())
    tip = page.locator("#frontier .tooltip")
    assert not tip.is_visible()
    page.locator("#frontier .dot").nth(20).hover(force=True)
    said = tip.inner_text()
    for name in (
        "Strength",
        "Seed",
        "Accuracy",
        "Unfairness of decisions",
        "AUC",
        "Log loss",
        "Four-fifths ratio",
    ):
        assert name in said
    assert re.search(r"0\.\d{3} \(0\.\d{3} to 0\.\d{3}\)", said)
    shoot(page, "wide-hover")
    strength = re.search(r"Strength\s+(\S+)", said).group(1)
    page.mouse.down()
    page.mouse.up()
    assert current_row(page) == strength
    page.mouse.move(5, 5)
    assert not tip.is_visible()


def test_dots_are_reached_by_the_keyboard(opened):
    page = opened(demo_view())
    page.locator("#frontier .dot[tabindex='0']").focus()
    assert "0" in page.locator("#frontier .tooltip").inner_text()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert page.locator("#frontier .dot[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    assert current_row(page) == "0.0149"
    page.keyboard.press("Escape")
    assert not page.locator("#frontier .tooltip").is_visible()


def test_hovering_the_distributions_shows_every_group(opened):
    view = demo_view(groups=("18 to 25", "26 to 60", "over 60"))
    page = opened(view)
    page.locator("#cumulative svg").hover()
    said = page.locator("#cumulative .tooltip").inner_text()
    assert said.startswith("score 0.")
    shares = dict(re.findall(r"(18 to 25|26 to 60|over 60)\s+(\d+\.\d)%", said))
    curves = view.curves[view.chosen.strength]
    score = float(re.search(r"score (\S+)", said).group(1))
    at = min(range(len(curves.grid)), key=lambda index: abs(curves.grid[index] - score))
    assert {name: float(text) for name, text in shares.items()} == pytest.approx(
        {name: 100 * values[at] for name, values in curves.cumulative.items()}, abs=0.06
    )
    shoot(page, "three-groups", full_page=True)


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_the_table_sorts_and_figures_that_are_missing_come_last(opened, by):
    page = opened(demo_view())
    head = page.locator("thead button", has_text="Log loss")

    def press():
        head.click() if by == "mouse" else head.press("Enter")
        texts = page.locator("tbody tr td:nth-child(6)").all_inner_texts()
        assert texts[-1] == "–"
        return [float(text) for text in texts[:-1]]

    ascending = press()
    assert ascending == sorted(ascending)
    assert page.locator("th[aria-sort='ascending']").inner_text().strip() == "Log loss"
    descending = press()
    assert descending == ascending[::-1]
    assert current_row(page) == "1.82"
    page.locator("tbody th button").nth(3).click()
    assert page.locator("#strength").inner_text() == current_row(page) != "1.82"


def test_names_from_the_data_are_text(opened):
    bold = "<b>bold</b><img src=x onerror=alert(2)>"
    names = dict.fromkeys(("strength", "accuracy", "unfairness", "auc", "seed"), HOSTILE)
    page = opened(
        demo_view(
            title=HOSTILE,
            groups=(HOSTILE, bold),
            notes=(FrontierNote("label_groups", {"attribute": bold}),),
            labels=names,
        )
    )
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("#groups").inner_text().split("\n") == [HOSTILE, bold]
    assert any(bold in text for text in page.locator("#notes li").all_text_contents())
    assert page.locator("thead th").first.inner_text().strip() == HOSTILE
    page.locator("#frontier .dot").nth(3).hover(force=True)
    assert HOSTILE in page.locator("#frontier .tooltip").inner_text()
    page.locator("#density svg").hover()
    assert bold in page.locator("#density .tooltip").inner_text()
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3
    shoot(page, "hostile", full_page=True)


def test_the_policy_stops_scripts_that_are_not_the_pages_own(browser, tmp_path):
    text = frontier_html(demo_view(count=2)).replace(
        "</body>", "<script>window.hurt = 1</script><img src=http://127.0.0.1:9/x></body>"
    )
    page = browser.new_page()
    sent = []
    page.on("requestfinished", lambda request: sent.append(request.url))
    page.goto(write_html(tmp_path / "hurt.html", text).as_uri())
    assert page.evaluate("window.hurt") is None
    assert not [url for url in sent if url.startswith("http")]
    page.close()


VIEWS = {
    "one-model": demo_view(count=1, seeds=1, failed=0),
    "one-strength": demo_view(count=1, seeds=8, failed=0),
    "all-failed": demo_view(count=3, failed=3),
    "regression": demo_view(
        decisions=False, accuracy_name="R2", unfairness_of="decisions", chosen=None, noise=None
    ),
    "bare": demo_view(curves={}, chosen=None, groups=(), notes=()),
    "many-groups": demo_view(groups=tuple(f"region {number}" for number in range(9)), seeds=5),
}


@pytest.mark.parametrize("name", VIEWS)
def test_unusual_frontiers_open_too(opened, name):
    page = opened(VIEWS[name])
    shown = page.locator("body").inner_text()
    assert not re.search(r"\b(NaN|undefined|null|Infinity)\b", shown)
    assert page.locator("[d*='NaN'], [cx*='NaN'], [x*='NaN'], [x1*='NaN']").count() == 0
    assert page.locator("#distributions").is_visible() == bool(VIEWS[name].curves)
    if name == "all-failed":
        assert "None of the 6 trained models can be shown" in shown
    shoot(page, name, full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(opened, contrast, scheme):
    page = opened(demo_view(), color_scheme=scheme)
    colors = page.evaluate(
        "() => ['h1', '.hint', '.notes', '#strength', '.change.better', '.change.worse', "
        "'td'].map(s => {"
        "  const e = document.querySelector(s); const card = e.closest('.card, .control') ?? "
        "document.body;"
        "  return [s, getComputedStyle(e).color, getComputedStyle(card).backgroundColor]; })"
    )
    for what, text, ground in colors:
        assert contrast(text, ground) >= 4.5, (what, text, ground)
    shoot(page, f"wide-{scheme}-top")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_a_phone_needs_no_sideways_scrolling(opened, scheme):
    page = opened(demo_view(), viewport=PHONE, color_scheme=scheme, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    page.locator("#slider").fill("3")
    assert current_row(page) == "0.0223"
    page.locator("#density").scroll_into_view_if_needed()
    # it stays in sight
    assert page.locator("#slider").evaluate("e => e.getBoundingClientRect().top >= 0")
    page.locator("#frontier .dot").nth(30).tap(force=True)
    assert page.locator("#frontier .tooltip").is_visible()
    shoot(page, f"phone-{scheme}", full_page=True)


def test_every_control_has_a_name(opened):
    page = opened(demo_view())
    nameless = page.evaluate(
        "() => [...document.querySelectorAll('button, input, [role=button], "
        "[role=region]')].filter(e => !("
        "e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim() "
        "|| e.labels?.length"
        ")).length"
    )
    assert nameless == 0


def test_the_plots_follow_the_width_of_the_window(opened):
    page = opened(demo_view())
    page.set_viewport_size(PHONE)
    page.wait_for_function("document.querySelector('#frontier svg').viewBox.baseVal.width < 400")
    assert page.locator("#frontier svg").count() == 1
    assert page.locator("#frontier .now").count() == 1


def test_print_shows_everything_on_white_paper(opened):
    page = opened(demo_view(), color_scheme="dark", viewport={"width": 740, "height": 1000})
    page.emulate_media(media="print")
    assert not page.locator("#slider").is_visible()
    assert page.locator("h1").evaluate("e => getComputedStyle(e).color") == "rgb(27, 27, 31)"
    assert (
        page.locator("body").evaluate("e => getComputedStyle(e).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    right = "e => e.getBoundingClientRect().right"
    card = page.locator(".card:has(#table)")
    assert page.locator("#table").evaluate(right) <= card.evaluate(right)
    shoot(page, "print", full_page=True)


def test_only_the_groups_whose_distributions_are_drawn_are_in_the_key(opened):
    """Of several attributes a strength shows the one with the largest gap."""
    sex, region = ("sex: f", "sex: m"), ("region: east", "region: north", "region: west")
    curves = {0.0: curves_of(0.0, region), 1.0: curves_of(1.0, sex)}
    points = [point_of(strength, 0) for strength in curves]
    page = opened(demo_view(points=points, curves=curves, chosen=None, groups=(*sex, *region)))
    for place, names in enumerate((region, sex)):
        page.locator("#slider").fill(str(place))
        assert page.locator("#groups li").all_inner_texts() == list(names)
        assert page.locator("#cumulative path.group").count() == len(names)
        assert f"“{names[0].split(':')[0]}: " in page.locator("#gap").inner_text()


# ---- the constant model, marks, the chosen model
# -------------------------------------------------------------------


def marked_view(**changes):
    """A frontier whose fairest models are no better than a constant, and some are fairer on
    training rows only.
    """
    view = demo_view(seeds=1, failed=0)
    points = [
        replace(
            point,
            marks={"accuracy": "not_significantly_better"} if point.unfairness < 0.06 else {},
            overfit=0.06 <= point.unfairness < 0.09,
            errors={"accuracy": 0.006},
        )
        for point in view.points
    ]
    chosen = next(point for point in points if point.strength == view.chosen.strength)
    given = {
        "points": points,
        "chosen": chosen,
        "constant": Point(
            0.0, 0, 0.74, 0.0, 0.0, {"auc": 0.5, "log_loss": 0.6, "four_fifths": 1.0}
        ),
        "constant_value": "yes",
    }
    return replace(view, **(given | changes))


def boxes(page, selector):
    return page.locator(selector).evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(b => [b.left, b.top, b.right, "
        "b.bottom])"
    )


def apart(one, other):
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_the_constant_model_and_those_that_are_no_better_are_drawn_and_named(opened):
    view = marked_view()
    page = opened(view)
    marked = [point for point in view.points if point.marks]
    assert 3 <= len(marked) < len(view.points)
    assert page.locator("#frontier .dot.alike").count() == len(marked)
    assert page.locator("#frontier rect.constant").count() == 1
    assert page.locator("#frontier .constant-label").text_content() == "constant predictor"
    label = page.locator("#frontier rect.constant").get_attribute("aria-label")
    assert label.startswith(
        "The constant predictor (“yes” for everyone) has accuracy 0.740 and unfairness 0.000; "
    )
    key = page.locator("#frontier-key").inner_text()
    assert "constant predictor: the same for everyone" in key
    assert "not significantly better than it" in key
    page.locator("#frontier").scroll_into_view_if_needed()
    box = page.locator("#frontier rect.constant").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    assert "“yes” for everyone" in page.locator("#frontier .tooltip").inner_text()
    shoot(page, "marked-light", full_page=True)


def test_a_marked_strength_says_so_at_the_slider_and_in_the_table(opened):
    view = marked_view()
    page = opened(view)
    last = len(view.rows) - 1
    page.locator("#slider").fill(str(last))
    assert (
        "Not significantly better than a constant predictor."
        in page.locator("#current .warning").inner_text()
    )
    assert (
        "not significantly better than a constant predictor" in page.locator("#brief").inner_text()
    )
    assert page.locator("#frontier .now.alike").count() == 1
    assert page.locator("tbody tr.alike").count() == sum(bool(row.mark) for row in view.rows)
    assert page.locator("tbody tr[aria-current] th").inner_text().strip().endswith("*")
    assert (
        "not significantly better than a constant predictor"
        in page.locator("#table-notes").inner_text()
    )
    page.locator("#slider").fill("0")
    assert page.locator("#current .warning").count() == 0
    assert page.locator("#frontier .now.alike").count() == 0


def test_the_least_unfair_card_is_no_constant(opened):
    view = marked_view()
    page = opened(view)
    card = page.locator(".highlight", has_text="Least unfair")
    fairest = min(point.unfairness for point in view.points if not point.marks)
    assert f"{fairest:.3f}" in card.inner_text()
    assert (
        "with less unfairness are not significantly better than a constant predictor"
        in card.inner_text()
    )


def test_an_overfitted_strength_says_so_at_the_slider_and_in_the_table(opened):
    view = marked_view()
    page = opened(view)
    at = next(at for at, row in enumerate(view.rows) if row.overfit)
    page.locator("#slider").fill(str(at))
    assert "A simpler model, more rows or a larger strength can help" in (
        page.locator("#current .warning").inner_text()
    )
    assert "overfitted" in page.locator("#table-notes").inner_text()


def costs_view():
    """A chosen model whose own figures differ from those by which it was compared."""
    view = demo_view(seeds=1, failed=0, goal=Goal(0.15))
    chosen = replace(view.chosen, accuracy=0.79, unfairness=0.12, intervals={})
    reference = view.points[0]
    change = Change(reference, 0.79 - reference.accuracy, 0.12 - reference.unfairness)
    return replace(view, chosen=chosen, change=change)


@pytest.mark.parametrize("options", [{}, {"viewport": PHONE}], ids=["wide", "phone"])
def test_the_page_shows_one_number_for_the_chosen_model_everywhere(opened, options):
    view = costs_view()
    page = opened(view, **options)
    shoot(page, f"one-number-{'-'.join(options) or 'wide'}", full_page=True)
    said = "accuracy 0.790, unfairness 0.120."
    assert said in page.locator("#summary").inner_text()
    assert "0.790" in page.locator(".highlight", has_text="Chosen").inner_text()
    assert "0.120" in page.locator(".highlight", has_text="Chosen").inner_text()
    shown = page.locator("#current").inner_text()
    assert "0.790" in shown
    assert "0.120" in shown
    row = page.locator("#table tbody tr[aria-current]").inner_text()
    assert "0.790" in row
    assert "0.120" in row
    assert "Only the chosen model's figures are corrected" in (
        page.locator("#frontier-hint").inner_text()
    )
    mark = page.locator("#frontier path.chosen").get_attribute("d")
    x, y = (float(part) for part in re.match(r"M(\S+) (\S+)L", mark).groups())
    assert marker(page) == pytest.approx((x, y + 13), abs=0.01)
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_limit_is_a_line_and_the_noise_a_strip(opened):
    page = opened(costs_view())
    limit = page.locator("#frontier .limit-line").first
    x = float(limit.get_attribute("x1"))
    assert x == float(limit.get_attribute("x2"))
    assert marker(page)[0] < x  # the chosen model is left of it
    strip = page.locator("#frontier rect.noise")
    right = float(strip.get_attribute("x")) + float(strip.get_attribute("width"))
    assert right < marker(page)[0]
    key = page.locator("#frontier-key").inner_text()
    assert "limit" in key
    assert "not distinguishable from 0" in key
    bare = opened(demo_view(noise=None))
    assert bare.locator("#frontier .limit-line, #frontier .noise").count() == 0


@pytest.mark.parametrize("options", [{}, {"viewport": PHONE}], ids=["wide", "phone"])
def test_the_label_of_the_chosen_model_is_never_covered(opened, options):
    """The slider goes round the chosen model, in steps of a few pixels."""
    chosen = Point(0.0, 0, 0.8, 0.1)
    around = [
        (0.4, 0.86),
        *(
            (0.1 + 0.004 * across, 0.8 + 0.0015 * up)
            for across in range(-9, 10, 3)
            for up in range(-9, 10, 3)
        ),
    ]
    points = [
        chosen,
        *(Point(0.1 + at, 0, accuracy, gap) for at, (gap, accuracy) in enumerate(around)),
    ]
    page = opened(FrontierView(points, chosen=chosen, constant=Point(0, 0, 0.79, 0.06)), **options)
    frame = page.locator("#frontier svg").first.bounding_box()
    places = set()
    for at in range(len(points)):
        page.locator("#slider").fill(str(at))
        (label,) = boxes(page, "#frontier .chosen-label")
        for other in boxes(page, "#frontier .now") + boxes(page, "#frontier .constant-label"):
            assert apart(label, other), points[at]
        assert frame["x"] <= label[0]
        assert label[2] <= frame["x"] + frame["width"]
        places.add(
            tuple(page.locator("#frontier .chosen-label").get_attribute(name) for name in "xy")
        )
    assert len(places) > 1  # it had to give way
    shoot(page, f"label-{'-'.join(map(str, options)) or 'wide'}")


def test_error_bars_and_the_constant_model_lie_within_the_axes(opened):
    view = marked_view()
    page = opened(view)
    (axis,) = boxes(page, "#frontier .axis")
    tops = [box[1] for box in boxes(page, "#frontier .grid")]
    for at, row in enumerate(view.rows):
        page.locator("#slider").fill(str(at))
        lines = page.locator("#frontier .spread").evaluate_all(
            "all => all.map(l => ['x1', 'x2', 'y1', 'y2'].map(k => +l.getAttribute(k)))"
        )
        (x1, x2, *_), (_, _, y1, y2) = lines
        # As long as the interval says, so that nothing was cut off.
        now = marker(page)
        bounds = row.figures["accuracy"].bounds
        up, down = now[1] - min(y1, y2), max(y1, y2) - now[1]
        assert up / down == pytest.approx(
            (bounds.high - row.points[0].accuracy) / (row.points[0].accuracy - bounds.low), rel=0.05
        )
        gap = row.figures["unfairness"].bounds
        assert (x2 - now[0]) / (now[0] - x1) == pytest.approx(
            (gap.high - row.points[0].unfairness) / (row.points[0].unfairness - gap.low), rel=0.05
        )
    (constant,) = boxes(page, "#frontier rect.constant")
    assert min(tops) <= constant[1] <= constant[3] <= axis[3] + 7


def test_a_loss_is_drawn_so_that_up_is_better(opened):
    view = marked_view(utility=UTILITIES["log_loss"])
    page = opened(view)
    assert "Log loss (up is better)" in page.locator("#frontier .axis-title").all_text_contents()
    dots = page.locator("#frontier .dot")
    heights = [float(dot.get_attribute("cy")) for dot in dots.all()]
    losses = [
        point.more["log_loss"] for point in sorted(view.points, key=lambda point: point.strength)
    ]
    best, worst = losses.index(min(losses)), losses.index(max(losses))
    assert heights[best] < heights[worst]


# ---- families
# ---------------------------------------------------------------------------------------------------


def families_view():
    """Two families; the one that needs the group is better everywhere."""
    free = [replace(point_of(strength, 0), family="linear") for strength in (0.0, 0.1, 1.0, 10.0)]
    asking = [
        replace(
            point,
            strength=tolerance,
            accuracy=point.accuracy + 0.02,
            family="moved",
            needs_group=True,
        )
        for tolerance, point in zip((1.0, 0.5, 0.2, 0.0), free, strict=True)
    ]
    points = [*free, *asking]
    curves = {point.place: curves_of(point.strength, ("f", "m")) for point in points}
    parameters = {"linear": "strength", "moved": "tolerance"}
    return demo_view(
        points=points, curves=curves, chosen=asking[1], groups=("f", "m"), parameters=parameters
    )


def test_models_that_need_the_group_can_be_left_out(opened):
    page = opened(families_view())
    assert page.locator("#strength").inner_text() == current_row(page) == "moved, tolerance 0.5"
    assert (
        page.locator("#frontier .dot:not(.off)").count()
        == page.locator("tbody tr:visible").count()
        == 8
    )
    line = page.locator("#frontier path.front").get_attribute("d")
    page.locator("#frontier .dot").nth(6).hover(force=True)
    assert "Group at prediction" in page.locator("#frontier .tooltip").inner_text()
    page.get_by_label("Only models that need no group at prediction").check()
    assert (
        page.locator("#frontier .dot:visible").count()
        == page.locator("tbody tr:visible").count()
        == 4
    )
    assert page.locator("#frontier path.front").get_attribute("d") != line
    assert page.locator("#frontier .dot.best:visible").count() >= 2
    assert current_row(page).startswith("linear, strength ")
    page.locator("#slider").fill("7")  # where a model stands that is left out
    assert page.locator("#strength").inner_text() == current_row(page) == "linear, strength 10"
    shoot(page, "families", full_page=True)
    page.get_by_label("Only models that need no group at prediction").uncheck()
    assert page.locator("#frontier path.front").get_attribute("d") == line
    assert page.locator("tbody tr:visible").count() == 8


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({}, "strength"),
        ({"labels": {"strength": "tolerance"}}, "tolerance"),
        ({"parameters": {"linear": "strength", "svm": "C"}}, "C"),
    ],
)
def test_a_failed_training_names_the_parameter_that_was_varied(opened, changes, parameter):
    families = [*changes.get("parameters", ["", ""])]
    points = [
        Point(at, 0, 0.9, 0.4, failed=at > 0, family=family) for at, family in enumerate(families)
    ]
    page = opened(FrontierView(points, **changes))
    page.locator("#slider").fill("1")
    sentence = f"Training failed at this {parameter}: there are no figures to show."
    assert page.locator("#current").inner_text() == sentence


def test_one_family_has_no_filter(opened):
    page = opened(demo_view())
    assert not page.locator("#without-label").is_visible()


def test_a_telephone_shows_the_chart_first_under_a_short_answer(opened):
    page = opened(costs_view(), folded=True, viewport=PHONE)
    answer = page.locator("#summary").inner_text()
    assert len(answer.split()) <= 25
    assert len(re.findall(r"\d\.\d{3}", answer)) == 2
    box = page.locator("#frontier svg").bounding_box()
    assert box["y"] + box["height"] <= PHONE["height"]
    assert not page.locator("#notes").is_visible()
    page.locator("details summary").first.click()
    assert page.locator("#notes li").first.is_visible()
