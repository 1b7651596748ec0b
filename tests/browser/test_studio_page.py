"""The studio in a real browser: steps by mouse and by keyboard, on a desk and on a phone, in
light and in dark.
"""

import os
import re
from pathlib import Path

import pytest

from metrifair.evidence import verify
from tests.studio.driver import PATIENCE, Studio, write_loans

pytest.importorskip("uvicorn", reason="uvicorn is in the extra studio")
# A folder: keep screenshots there, for people to look at. The pictures of docs/studio.md are the
# tops of some.
SHOTS = os.environ.get("METRIFAIR_SHOTS")
TEXTS = (
    "h1",
    ".hint",
    "label",
    "label code",
    "td",
    "nav a[aria-current]",
    "button.primary",
    "small",
)


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    file = write_loans(folder / "loans.csv")
    running = Studio(str(file), cwd=folder, kept=folder / "kept")
    running.file = file
    running.idle()
    yield running
    assert "Traceback" not in running.stop()


@pytest.fixture
def visit(browser, studio):
    """Opens the page of the studio; then nothing may have been complained about, and no request
    left the machine.
    """
    contexts, trouble = [], []

    def visitor(**options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "request",
            lambda asked: f"127.0.0.1:{studio.port}/" in asked.url or trouble.append(asked.url),
        )
        page.on("console", lambda said: trouble.append(f"console {said.type}: {said.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error {error}"))
        page.on(
            "dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss())
        )
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
                "e => { const color = getComputedStyle(e).color; while "
                "(getComputedStyle(e).backgroundColor === "
                "'rgba(0, 0, 0, 0)') e = e.parentElement; return [color, "
                "getComputedStyle(e).backgroundColor]; }"
            )
            assert contrast(color, ground) >= 4.5, (text, color, ground)
    nameless = page.locator("input:visible, select:visible").evaluate_all(
        "all => all.filter(e => !e.labels?.length && !e.getAttribute('aria-label')).map(e => e.id "
        "|| e.name)"
    )
    assert nameless == []


def role_of(column):
    """The drop-down with the role of a column."""
    return f"#columns select[data-column='{column}']"


def keep(page, name):
    if SHOTS:
        page.screenshot(path=Path(SHOTS, f"studio-{name}.png"), full_page=True)


def test_two_tabs_by_keyboard_and_on_a_phone(visit, studio, contrast):
    page = visit(viewport={"width": 1280, "height": 900})
    page.wait_for_selector("#found:not([hidden])")
    assert "token" not in page.url
    assert page.input_value(role_of("score")) == "score"
    assert "because the name contains “score”" in page.inner_text(
        "td:has(> div > select[data-column='score'])"
    )
    assert page.input_value("#positive") == "yes"
    assert "because the values are no and yes" in page.inner_text("#positive-why")
    check_shape(page, contrast, 1280)
    keep(page, "inspect-1280-light")

    page.focus("#positive")
    page.keyboard.press("n")  # a drop-down takes the first letter: suggestions can be changed
    assert page.input_value("#positive") == "no"
    page.select_option("#positive", "yes")
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

    # a second visitor sees the same
    phone = visit(viewport={"width": 390, "height": 844}, color_scheme="dark")
    phone.wait_for_selector("#found:not([hidden])")
    check_shape(phone, contrast, 390)
    keep(phone, "inspect-390-dark")
    for step in ("audit", "train", "choose", "download"):
        phone.click(f"nav a[href='#{step}']")
        check_shape(phone, contrast, 390)
        keep(phone, f"{step}-390-dark")
    assert "metrifair audit" in phone.text_content("#downloads pre >> nth=0")
    phone.click("#downloads summary")
    phone.context.grant_permissions(["clipboard-read", "clipboard-write"])
    phone.click("button[aria-label='Copy: Python, Audit']")
    phone.wait_for_selector("button:text('Copied')")
    assert (
        phone.evaluate("navigator.clipboard.readText()")
        == studio.state()["done"]["audit"]["python"]
    )
    check_shape(phone, contrast, 390)

    # live: the first visitor moves the slider, and both see the new report
    page.locator("#threshold-slider").focus()
    shown = phone.get_attribute("#audit-result iframe", "src")
    page.keyboard.press("ArrowRight")
    phone.wait_for_function(
        "old => document.querySelector('#audit-result iframe')?.src.endsWith(old) === false",
        arg=shown,
    )
    assert "--threshold=0.51" in phone.text_content("#downloads pre >> nth=0")


def test_many_columns_are_one_list_with_a_search_and_a_role_each(visit, studio, contrast, tmp_path):
    lines = studio.file.read_text().splitlines()
    width = 197
    names = ",".join(f"answer {number}" for number in range(width))
    cells = ",".join(["1.5", "2.5"] * width)[: 4 * width - 1]
    wide = [f"{lines[0]},{names}", *(f"{line},{cells}" for line in lines[1:60])]
    (tmp_path / "wide.csv").write_text("\n".join(wide))
    studio.upload((tmp_path / "wide.csv").read_bytes(), "wide.csv")
    page = visit(viewport={"width": 390, "height": 844})
    page.wait_for_selector("#found:not([hidden])")
    own = lines[0].count(",") + 1
    lists = page.locator("#roles-form select:visible:not([name])")
    assert lists.count() == own + width
    assert page.locator("#columns tbody tr").count() == own + width
    check_shape(page, contrast, 390)
    keep(page, "inspect-wide-390-light")

    page.fill("#find-column", "ANSWER 19")
    page.keyboard.press("Enter")  # confirms nothing
    assert page.locator("#columns tbody tr:visible").count() == 8  # 19 and 190 to 196
    assert page.inner_text("#columns-shown") == f"8 of {own + width} columns"
    page.select_option(role_of("answer 19"), "group")
    page.select_option(role_of("answer 190"), "weight")
    page.select_option(role_of("answer 191"), "weight")  # the only weight
    assert page.input_value(role_of("answer 190")) == ""
    page.fill("#find-column", "")
    page.check("#only-roles")
    shown = page.locator("#columns tbody tr:visible")
    assert {"answer 19", "answer 191", "score"} <= set(
        shown.locator("select").evaluate_all("all => all.map(e => e.dataset.column)")
    )
    # another score: the first output remains no feature
    page.uncheck("#only-roles")
    page.select_option(role_of("answer 7"), "score")
    assert page.input_value(role_of("score")) == "ignore"
    page.select_option(role_of("score"), "score")
    assert page.input_value(role_of("answer 7")) == ""
    assert studio.state()["choices"].get("roles") is None
    page.click("#roles-form button[type=submit]")
    page.wait_for_selector("#audit-form", state="visible")
    roles = studio.state()["choices"]["roles"]
    assert (roles["score"], roles["weight"], roles["label"]) == ("score", "answer 191", "repaid")
    assert "answer 19" in roles["group"]
    page.click("nav a[href='#inspect']")
    page.reload()
    page.wait_for_selector("#found:not([hidden])")
    assert page.input_value(role_of("answer 191")) == "weight"
    studio.upload(studio.file.read_bytes(), "loans.csv")  # for the other tests


def test_look_for_groups_shows_them_in_the_report(visit, studio, contrast):
    page = visit(viewport={"width": 1280, "height": 900})
    page.wait_for_selector("#found:not([hidden])")
    page.click("#roles-form button[type=submit]")
    page.wait_for_selector("#audit-form", state="visible")
    wait_until_idle(page)
    # a standard that compares with a group asks for one
    assert page.is_hidden("#reference-field")
    page.select_option("[name=standard]", "credit")
    assert page.locator("#references option").all_inner_texts() == [
        "choose a value",
        "men",
        "women",
        "N/A",
    ]
    check_shape(page, contrast, 1280)
    page.select_option("[name=standard]", "")
    assert page.is_hidden("#reference-field")
    assert page.is_hidden("#among-field")
    assert "Look for groups" in page.inner_text("#search-field legend")
    page.select_option("#find_groups", "missed-positives")
    page.wait_for_selector("#among-field", state="visible")
    boxes = page.locator("#among input")
    # without the score, the label, the groups and the ids
    assert boxes.evaluate_all("all => all.map(e => [e.value, e.checked])") == [
        ["income", True],
        ["town", True],
    ]
    check_shape(page, contrast, 1280)
    keep(page, "audit-search-1280-light")
    page.click("#audit-form button[type=submit]")
    report = page.frame_locator("#audit-result iframe")
    report.locator("#group-search").wait_for()
    assert "Search for groups" in report.locator("#group-search").inner_text()
    listed = report.locator("#groups tbody th").all_inner_texts()
    assert listed
    assert all("income" in name for name in listed)
    bars = report.locator("#groups .change-bar")
    assert bars.count() == len(listed)
    assert bars.first.bounding_box()["width"] > 0
    assert "--find-groups=missed-positives" in page.text_content("#downloads pre >> nth=0")
    assert studio.state()["choices"]["audit"]["among"] == ["income", "town"]
    # live: without an outcome, the report has no search
    shown = page.get_attribute("#audit-result iframe", "src")
    page.select_option("#find_groups", "")
    page.wait_for_function(
        "old => document.querySelector('#audit-result iframe')?.src.endsWith(old) === false",
        arg=shown,
    )
    wait_until_idle(page)
    assert page.is_hidden("#among-field")
    report.locator("#audit-summary").wait_for()
    assert report.locator("#group-search").count() == 0


def test_one_click_joins_spellings_and_another_marks_missing_values(visit, studio, tmp_path):
    text = studio.file.read_text().replace(",men,0.9", ",Men ,0.9")
    (tmp_path / "loans.csv").write_text(text)
    # Without results: no frame is loaded while the file that it shows is replaced.
    studio.upload(studio.file.read_bytes(), "loans.csv")
    page = visit(viewport={"width": 1280, "height": 900})
    page.set_input_files("#file", tmp_path / "loans.csv")
    page.click("#notes button:text('Read “Men ” as “men”')")
    page.click("#notes button:text('Read “N/A” as missing')")
    page.wait_for_function("() => document.querySelector('#notes button') === null")
    reading = studio.idle()["choices"]["reading"]
    assert (reading["replace"], reading["missing"]) == (["Men =men"], ["N/A"])
    (sex,) = (column for column in studio.state()["columns"]["columns"] if column["name"] == "sex")
    assert {value for value, _ in sex["values"]} == {"women", "men"}
    page.click("summary:text('Options for reading')")
    assert page.input_value("#reading-form [name=replace]") == "Men =men"
    studio.upload(studio.file.read_bytes(), "loans.csv")  # for the other tests


def tab_to(page, selector, key="Tab"):
    """Move the focus with one key until it is on an element; whoever has no mouse must get
    there.
    """
    for _ in range(400):
        if page.evaluate("selector => document.activeElement?.matches(selector)", selector):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{selector} cannot be reached with {key}")


def press(page, selector, key="Enter"):
    tab_to(page, selector)
    page.keyboard.press(key)


def go_to(page, step):
    tab_to(page, f"nav a[href='#{step}']", "Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#{step}", state="visible")


def wait_until_idle(page):
    page.wait_for_function("() => document.querySelector('#cancel').hidden")


LOOKS = {
    "1280-light": {"viewport": {"width": 1280, "height": 900}},
    "1280-dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "390-dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS)
def test_the_five_steps_by_keyboard_alone(visit, studio, contrast, tmp_path, look):
    page, width = visit(**LOOKS[look]), LOOKS[look]["viewport"]["width"]

    def check(step):
        check_shape(page, contrast, width)
        keep(page, f"{step}-{look}")

    page.wait_for_selector("#found:not([hidden])")
    check("inspect")
    press(page, "#roles-form button[type=submit]")
    page.wait_for_selector("#audit-form", state="visible")
    press(page, "#audit-form button[type=submit]")
    page.frame_locator("#audit-result iframe").locator("#audit-summary").wait_for()
    wait_until_idle(page)
    check("audit")

    go_to(page, "train")
    press(page, "#train-form select[name=families]", "l")  # the linear model
    press(page, "#train-form button[type=submit]")
    page.wait_for_selector("#cancel:not([hidden])")
    page.reload()  # in the middle of training
    page.wait_for_function("() => document.querySelector('#choose [data-after]')?.hidden === false")
    wait_until_idle(page)
    check("train")

    go_to(page, "choose")
    page.frame_locator("#choose iframe").locator("#slider").wait_for()
    tab_to(page, "#choose-form input[name=max_unfairness]")
    page.keyboard.press("Control+A")
    page.keyboard.type("0.2")
    page.keyboard.press("Enter")
    page.frame_locator("#choose iframe[title^=Audit]").locator("#audit-summary").wait_for()
    wait_until_idle(page)
    page.frame_locator("#choose iframe[title^=Trade]").locator("#slider").wait_for()
    check("choose")

    go_to(page, "download")
    tab_to(page, "#downloads button[data-runs=evidence]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#downloads a[download='evidence.zip'][href]")
    for name in ("model.metrifair", "evidence.zip"):
        with page.expect_download() as download:
            press(page, f"#downloads a[download='{name}'][href]")
        download.value.save_as(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1_000
    check("download")


class Hands:
    """Counts what a person does on the way: clicks, and characters with the key that ends a
    line.
    """

    def __init__(self, page, *lines):
        self.page, self.clicks, self.typed = page, 0, sum(len(line) + 1 for line in lines)

    def click(self, selector):
        self.page.click(selector)
        self.clicks += 1


def test_the_way_from_an_empty_environment_to_evidence_is_as_long_as_the_guide_says(
    visit, studio, tmp_path
):
    guide = (Path(__file__).parents[2] / "docs" / "studio.md").read_text()
    lines = re.search(r"```text\n(.*?)```", guide, re.DOTALL)[1].splitlines()
    assert lines == ['pip install "metrifair[studio]"', "metrifair studio loans.csv"]
    page = visit(viewport={"width": 1280, "height": 900})
    page.wait_for_selector("#found:not([hidden])")
    hands = Hands(page, *lines)
    hands.click("#roles-form button[type=submit]")
    page.wait_for_selector("#audit-form", state="visible")
    hands.click("#audit-form button[type=submit]")
    page.frame_locator("#audit-result iframe").locator("#audit-summary").wait_for()
    wait_until_idle(page)
    hands.click("nav a[href='#download']")
    hands.click("#downloads button[data-runs=evidence]")
    page.wait_for_selector("#downloads a[download='evidence.zip'][href]")
    with page.expect_download() as download:
        hands.click("#downloads a[download='evidence.zip'][href]")
    download.value.save_as(tmp_path / "evidence.zip")
    assert verify(tmp_path / "evidence.zip", data=studio.file).agrees
    assert f"{hands.clicks} clicks and {hands.typed} typed characters" in " ".join(guide.split())
