"""The built site in a real browser: header, sidebar, copying, search, and pages that show names
and code whole.
"""

import os
import re
import sys
from pathlib import Path

import pytest

import metrifair

if "METRIFAIR_SITE" not in os.environ:
    pytest.skip("the site is built and tested by make docs", allow_module_level=True)
ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))

from search_terms import PAGES  # noqa: E402

WIDE, TELEPHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
READ = (
    "index.html",
    "guides.html",
    "baselines.html",
    "beyond-one-machine.html",
    "choosing.html",
    "coming-from.html",
    "concepts/criteria.html",
    "gallery/index.html",
    "gallery/3_choose/plot_frontier.html",
    "reference/index.html",
    "reference/generated/metrifair.Audit.html",
    "reference/generated/metrifair.frontier.html",
    "reference/generated/metrifair.metrics.sliced_wasserstein_distance.html",
    "results/benchmarks.html",
    "tutorials/audit-for-a-regulator.html",
    "tutorials/first-fair-model.html",
)
# Names in code, tables, signatures and the sidebar whose letters are on more than one line.
BROKEN = r"""() => [...document.querySelectorAll("code, td a, .sig-name, .bd-docs-nav a")]
  .filter((element) => element.checkVisibility() && /^[\w.]+(\(\))?$/.test(element.textContent.trim()))
  .filter((element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const tops = [...range.getClientRects()].filter((box) => box.width > 1).map((box) => box.top);
    return Math.max(...tops) - Math.min(...tops) > 9;
  })
  .map((element) => element.textContent.trim())"""
# Lines of code that end beyond the right edge of their block.
CUT = """() => [...document.querySelectorAll(".bd-article pre")]
  .filter((block) => block.offsetParent && block.scrollWidth > block.clientWidth + 1)
  .map((block) => block.textContent.slice(0, 60))"""


@pytest.mark.parametrize("path", READ)
def test_names_and_lines_of_code_are_shown_whole(opened, path: str) -> None:
    page = opened(path, size=WIDE)
    assert page.evaluate(BROKEN) == []
    assert page.evaluate(CUT) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDE["width"]
    page.set_viewport_size(TELEPHONE)
    assert page.evaluate(BROKEN) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= TELEPHONE["width"]


def test_planted_fault_a_broken_name_and_a_cut_line_are_noticed(opened) -> None:
    page = opened("reference/index.html", size=WIDE)
    broken = "white-space: normal !important; overflow-wrap: anywhere; display: inline-block; max-width: 4rem;"
    page.add_style_tag(
        content=f".bd-article table.autosummary td:first-child code .pre {{ {broken} }}"
    )
    assert "FairLGBMClassifier" in page.evaluate(BROKEN)
    page = opened("gallery/3_choose/plot_frontier.html", size=WIDE)
    page.add_style_tag(content=".bd-article pre { white-space: pre !important; max-width: 20rem; }")
    assert page.evaluate(CUT)


def test_the_header_has_the_version_and_a_link_to_the_source(opened) -> None:
    for path in ("index.html", "reference/generated/metrifair.audit.html"):
        header = opened(path, size=WIDE).locator(".bd-header")
        assert header.locator(".mf-version").inner_text() == metrifair.__version__
        address = header.locator(".mf-repository").get_attribute("href")
        assert re.match(r"https://|(\.\./)*_modules/index\.html$", address)


def test_the_reference_links_to_source_code(opened) -> None:
    page = opened("reference/generated/metrifair.audit.html", size=WIDE)
    page.locator("dt .viewcode-link, dt a:has(.viewcode-link)").first.click()
    page.wait_for_url("**/_modules/metrifair/api/audit.html#*")
    assert "def audit(" in page.locator("pre").inner_text()


def test_a_button_copies_code_without_prompts_and_outputs(opened) -> None:
    page = opened("tutorials/first-fair-model.html", size=WIDE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block = page.locator("div.highlight", has_text="def evaluate(score)")
    button = block.get_by_role("button", name="Copy")
    assert button.is_visible()
    button.click()
    page.wait_for_selector(".mf-copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("from sklearn.linear_model import LogisticRegression\n")
    assert "\n    gap = unfairness(" in copied
    assert "AUC 0." not in copied
    assert ">>>" not in copied
    compile(copied, "copied", "exec")


def test_code_in_guides_and_the_reference_has_a_button(opened) -> None:
    for path in ("choosing.html", "reference/generated/metrifair.frontier.html"):
        page = opened(path, size=WIDE)
        blocks = page.locator(".bd-article div.highlight").count()
        assert page.locator(".bd-article div.highlight > button.mf-copy").count() == blocks > 0


def test_the_sidebar_of_the_reference_is_grouped_by_subject(opened) -> None:
    page = opened("reference/generated/metrifair.frontier.html", size=WIDE)
    groups = page.locator(".bd-sidebar-primary li.toctree-l0")
    titles = [
        title.strip() for title in page.locator(".bd-sidebar-primary p.caption").all_inner_texts()
    ]
    headings = opened("reference/index.html", size=WIDE).locator("h2").all_inner_texts()
    assert titles == [heading.rstrip("#").strip() for heading in headings]
    assert groups.count() == len(titles)
    visible = [link for link in page.locator(".bd-docs-nav a").all() if link.is_visible()]
    assert [link.inner_text().strip() for link in visible] == [
        "frontier",
        "Frontier",
        "SearchOptions",
    ]
    assert page.locator(".bd-docs-nav a").count() > 80  # every name, inside its group


def test_every_guide_has_a_picture_and_a_sentence(opened) -> None:
    page = opened("guides.html", size=WIDE)
    cards = page.locator("ul.mf-guides > li")
    linked = {link.get_attribute("href") for link in page.locator(".bd-docs-nav a").all()}
    assert linked == {card.locator("strong a").get_attribute("href") for card in cards.all()}
    for card in cards.all():
        image = card.locator("img")
        image.scroll_into_view_if_needed()
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
        assert image.get_attribute("alt")
        assert card.inner_text().rstrip().endswith(".")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "tutorials").glob("[!i]*.md")), ids=lambda path: path.stem
)
def test_every_tutorial_has_a_picture_of_its_own_data(path: Path) -> None:
    page = (Path(os.environ["METRIFAIR_SITE"]) / "tutorials" / f"{path.stem}.html").read_text(
        encoding="utf-8"
    )
    assert re.search(
        rf"_images/tutorials-{path.stem}-\d\.png|_static/reports/tutorials-{path.stem}-\d\.html",
        page,
    )
    assert not re.search(r"^True$", path.read_text(encoding="utf-8"), re.MULTILINE)


def test_a_report_in_a_tutorial_opens(opened) -> None:
    page = opened("tutorials/reading-a-report.html", size=WIDE)
    page.locator("iframe.mf-report").scroll_into_view_if_needed()
    frame = page.frame_locator("iframe.mf-report")
    frame.locator("h1").first.wait_for(timeout=30_000)
    assert " points" in frame.locator("body").inner_text()


# Search as the page does it, without drawing the results; they are drawn from the last to the
# first.
SEARCH = """query => Search._performSearch(...Search._parseQuery(query)).reverse().map((result) => result[0] + ".html")"""  # noqa: E501


NAMES = {
    "FairClassifier": "reference/generated/metrifair.FairClassifier.html",
    "frontier": "reference/generated/metrifair.frontier.html",
    "audit": "reference/generated/metrifair.audit.html",
    "unfairness": "reference/generated/metrifair.unfairness.html",
    "StratifiedBatchSampler": "reference/generated/metrifair.nn.StratifiedBatchSampler.html",
}


def test_search_finds_the_page_that_readers_mean_first(opened) -> None:
    page = opened("search.html?q=fairness", size=WIDE)
    page.wait_for_selector("#search-results li a", timeout=30_000)
    meant = NAMES | {term: f"{name}.html" for name, terms in PAGES.items() for term in terms}
    first = {query: [*page.evaluate(SEARCH, query), ""][0] for query in meant}
    assert {
        query: (first[query], meant[query]) for query in meant if first[query] != meant[query]
    } == {}


@pytest.mark.parametrize(
    ("query", "path"), {"four-fifths": "standards", "age": "numbers", "onnx": "deploy"}.items()
)
def test_the_page_of_results_shows_the_best_page_first(opened, query: str, path: str) -> None:
    page = opened(f"search.html?q={query}", size=WIDE)
    page.wait_for_selector("#search-results li a", timeout=30_000)
    assert (
        page.locator("#search-results li a").first.get_attribute("href").split("#")[0]
        == f"{path}.html"
    )


def test_search_lists_pages_for_readers_before_notes_for_developers(opened) -> None:
    page = opened("search.html?q=fairness", size=WIDE)
    page.wait_for_selector("#search-results li a", timeout=30_000)
    for query in (
        "lightgbm categories",
        "impact ratio interval",
        "penalty strength",
        "score distribution",
    ):
        assert not re.match(
            r"(results|changelog|architecture|releasing)", page.evaluate(SEARCH, query)[0]
        ), query
