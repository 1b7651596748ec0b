"""The studio in a real browser: steps by mouse and by keyboard, on a desk and on a phone, in light and in dark."""

import os
from pathlib import Path

import pytest

from tests.studio.driver import PATIENCE, ROLES, Studio, write_loans

pytest.importorskip("uvicorn", reason="uvicorn is in the extra studio")
SHOTS = os.environ.get("METRIFAIR_SHOTS")  # a folder: keep screenshots there, for people to look at
TEXTS = ("h1", ".hint", "label", "label code", "td", "nav a[aria-current]", "button.primary", "small")


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    running = Studio(str(write_loans(folder / "loans.csv")), cwd=folder, kept=folder / "kept")
    running.idle()
    yield running
    assert "Traceback" not in running.stop()


@pytest.fixture
def visit(browser, studio):
    """Opens the page of the studio; then nothing may have been complained about, and no request left the machine."""
    contexts, trouble = [], []

    def visitor(**options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda asked: f"127.0.0.1:{studio.port}/" in asked.url or trouble.append(asked.url))
        page.on("console", lambda said: trouble.append(f"console {said.type}: {said.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error {error}"))
        page.on("dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(studio.address)
        return page

    yield visitor
    for context in contexts:
        context.close()
    assert [said for said in trouble if not said.startswith("data:")] == []


def check_shape(page, contrast, width):
    """Nothing sticks out, every text has contrast, every control has a name."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for text in TEXTS:
        for found in page.locator(f"{text}:visible").all()[:3]:
            color, ground = found.evaluate(
                "e => { const color = getComputedStyle(e).color; while (getComputedStyle(e).backgroundColor === "
                "'rgba(0, 0, 0, 0)') e = e.parentElement; return [color, getComputedStyle(e).backgroundColor]; }"
            )
            assert contrast(color, ground) >= 4.5, (text, color, ground)
    nameless = page.locator("input:visible, select:visible").evaluate_all(
        "all => all.filter(e => !e.labels?.length && !e.getAttribute('aria-label')).map(e => e.id || e.name)"
    )
    assert nameless == []


def keep(page, name):
    if SHOTS:
        page.screenshot(path=Path(SHOTS, f"studio-{name}.png"), full_page=True)


def test_two_tabs_by_keyboard_and_on_a_phone(visit, studio, contrast):
    page = visit(viewport={"width": 1280, "height": 900})
    page.wait_for_selector("#found:not([hidden])")
    assert "token" not in page.url
    assert page.input_value("#score") == "score"
    assert "because the name contains “score”" in page.inner_text("#score-why")
    assert page.input_value("#positive") == ""  # nothing is assumed: the user says which label is positive
    check_shape(page, contrast, 1280)
    keep(page, "inspect-1280-light")

    page.focus("#positive")
    page.keyboard.press("y")  # a drop-down takes the first letter
    page.focus("#roles-form button[type=submit]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#audit-form", state="visible")
    assert studio.state()["choices"]["roles"]["positive"] == "yes"
    assert page.evaluate("document.activeElement.id") == "main"
    page.focus("#audit-form button[type=submit]")
    page.keyboard.press("Enter")
    report = page.frame_locator("#audit-result iframe")
    report.locator("#audit-summary").wait_for()
    assert "women" in report.locator("#audit-summary").inner_text()
    check_shape(page, contrast, 1280)
    keep(page, "audit-1280-light")

    phone = visit(viewport={"width": 390, "height": 844}, color_scheme="dark")  # a second visitor sees the same
    phone.wait_for_selector("#found:not([hidden])")
    check_shape(phone, contrast, 390)
    keep(phone, "inspect-390-dark")
    for step in ("audit", "train", "choose", "download"):
        phone.click(f"nav a[href='#{step}']")
        check_shape(phone, contrast, 390)
        keep(phone, f"{step}-390-dark")
    assert "metrifair audit" in phone.inner_text("#downloads pre >> nth=0")

    page.locator("#threshold-slider").focus()  # live: the first visitor moves the slider, and both see the new report
    shown = phone.get_attribute("#audit-result iframe", "src")
    page.keyboard.press("ArrowRight")
    phone.wait_for_function(
        "old => document.querySelector('#audit-result iframe')?.src.endsWith(old) === false", arg=shown
    )
    assert "--threshold=0.51" in phone.inner_text("#downloads pre >> nth=0")


@pytest.mark.slow
def test_the_five_steps_end_to_end(visit, studio, contrast, tmp_path):
    page = visit(viewport={"width": 1280, "height": 900})
    page.wait_for_selector("#found:not([hidden])")
    page.select_option("#positive", ROLES["positive"])
    page.click("#roles-form button[type=submit]")
    page.wait_for_selector("#audit-form", state="visible")
    page.click("nav a[href='#train']")
    page.uncheck("#train-form input[value=mlp]")
    page.click("#train-form button[type=submit]")
    page.wait_for_selector("#rounds li")
    page.reload()  # in the middle of training
    page.wait_for_function(
        "() => document.querySelectorAll('#rounds li').length === 3 && !document.querySelector('#cancel:not([hidden])')"
    )
    keep(page, "train-1280-light")
    page.click("nav a[href='#choose']")
    page.frame_locator("#choose iframe").locator("#slider").wait_for()
    page.fill("input[name=max_unfairness]", "0.2")
    page.click("#choose-form button[type=submit]")
    page.frame_locator("#choose iframe[title^=Audit]").locator("#audit-summary").wait_for()
    check_shape(page, contrast, 1280)
    keep(page, "choose-1280-light")
    page.click("nav a[href='#download']")
    with page.expect_download() as downloads:
        page.click("#downloads a[download='model.metrifair']")
    downloads.value.save_as(tmp_path / "model.metrifair")
    assert (tmp_path / "model.metrifair").stat().st_size > 1_000
    keep(page, "take-1280-light")
