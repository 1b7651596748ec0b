"""The page of a standard's tables in a real browser: the answer is on the first screen, also on
a phone and in dark.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from hiring import SELECTED, rate, write_decisions

from metrifair import ReadOptions, audit, audit_file
from metrifair.report import audit_html, rates_html
from tests.flat_options import flat

SHOTS = os.environ.get("METRIFAIR_SHOTS")  # a folder: keep screenshots there, for people to look at
SIZES = {1280: 900, 390: 844}


@pytest.fixture(scope="module")
def hiring(tmp_path_factory):
    path = write_decisions(tmp_path_factory.mktemp("hiring") / "decisions.csv")
    return audit_file(
        path,
        score="Decision",
        group=["Sex", "Race"],
        favorable_decision="Advanced",
        reading=ReadOptions(missing=("Pending",)),
        **flat(resamples=20, permutations=0, random_state=0),
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", SIZES)
def test_the_answer_is_on_the_first_screen(opened, contrast, hiring, width, scheme):
    record = hiring.rates("ll144").audit.record
    page = opened(
        rates_html(record, title="Screening"),
        viewport={"width": width, "height": SIZES[width]},
        color_scheme=scheme,
    )
    men, women = (rate(set(SELECTED), {sex}) for sex in ("Male", "Female"))
    lead = page.locator("#audit-summary")
    assert f"Smallest impact ratio {women / men:.3f}" in lead.inner_text()
    first = page.locator("#ratios table").first
    box = first.bounding_box()
    assert box["y"] + box["height"] <= SIZES[width]
    assert f"{100 * women:.1f}%" in first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # no table hides it behind a scroll bar
    for ratio in page.locator("#ratios tbody tr td:last-child").all():
        assert ratio.bounding_box()["x"] + ratio.bounding_box()["width"] <= width
    assert page.locator("#ratios table").count() == 3
    assert page.locator("#scored, #told, #findings, svg.plot").count() == 0
    for text in (".lead", ".hint", "#ratios td", "#ratios td small", "#words dd"):
        color = page.locator(text).first.evaluate("e => getComputedStyle(e).color")
        ground = page.evaluate(
            "s => { let e = document.querySelector(s); while (getComputedStyle(e).backgroundColor "
            "=== "
            "'rgba(0, 0, 0, 0)') e = e.parentElement; return getComputedStyle(e).backgroundColor; "
            "}",
            text,
        )
        assert contrast(color, ground) >= 4.5, text
    if SHOTS:
        page.screenshot(path=Path(SHOTS, f"rates-{width}-{scheme}.png"), full_page=True)


def test_one_person_makes_no_headline(hiring):
    """The Pacific Islander's rate is 100 %: groups with enough rows differ by far less."""
    table = next(one for one in hiring.rates("ll144").tables if one.attribute == "Race")
    rates = {race: rate({race}, {"Male", "Female"}) for race in SELECTED}
    enough = [rates[race] for race, counts in SELECTED.items() if counts[0] + counts[2] >= 30]
    assert max(rates.values()) - min(rates.values()) > 0.5
    assert table.selection_difference == pytest.approx(max(enough) - min(enough))
    assert table.selection_difference < 0.2


def test_decisions_have_no_curves_no_benefit_and_one_distance(opened, hiring):
    """With details, and without a standard: rates say what distances of two values would repeat."""
    for found in (hiring, hiring.rates("ll144").audit):
        page = opened(audit_html(found.record))
        assert not page.locator("#scored").is_visible()
        assert not page.locator("#told").is_visible()
        assert page.locator("#findings tbody tr[data-row]").count() > 0
        assert not page.locator("#metric-choice").is_visible()
        assert page.locator("#ratios table").count() == len(found.record.decisions)
    assert {one.metric for one in hiring.findings} == {"kolmogorov", "wasserstein", "energy"}


def test_printing_unfolds_everything(opened):
    """Every details element of a page shows its content on paper."""
    generator = np.random.default_rng(0)
    age = generator.integers(18, 90, 400).astype(float)
    groups = {"age": age} | {
        f"column {at}": generator.choice(["a", "b", "NA"], 400) for at in range(5)
    }
    found = audit(
        None,
        generator.random(400),
        sensitive_features=groups,
        continuous=["age"],
        **flat(resamples=0, permutations=0),
    )
    page = opened(audit_html(found.record), folded=True)
    inside = page.locator("details > :not(summary)")
    assert page.locator("details").count() >= 2
    assert not any(one.is_visible() for one in inside.all())
    page.emulate_media(media="print")
    assert all(one.bounding_box()["height"] > 0 for one in inside.all())
