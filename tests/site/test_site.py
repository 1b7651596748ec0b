"""The built site: every public name has a page, links lead somewhere, a browser finds nothing to
complain about.

``make docs`` builds the site and runs these tests on it; elsewhere they are skipped.
"""

import os
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

import metrifair
from metrifair.criteria import CRITERIA

SITE = Path(os.environ.get("METRIFAIR_SITE", ""))
if "METRIFAIR_SITE" not in os.environ:
    pytest.skip("the site is built and tested by make docs", allow_module_level=True)
MODULES = ("baselines", "batches", "criteria", "datasets", "errors", "metrics", "mlflow", "nn")


def public_names() -> list[str]:
    """Every name that users may write, as they write it."""
    names = [
        f"metrifair.{name}"
        for name in metrifair.__all__
        if name not in {*MODULES, *dir_of("errors")}
    ]
    names += [
        f"metrifair.{room}.{name}"
        for room in MODULES
        for name in dir_of(room)
        if not name.isupper()
    ]
    return names


def dir_of(room: str) -> list[str]:
    """What a module says is public."""
    return list(import_module(f"metrifair.{room}").__all__)


class Page(HTMLParser):
    """What the tests ask of a page: its places, what it refers to, and its words."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        # tag, address, relation of a link or class of an image
        self.refers: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note places and addresses."""
        told = {name: value or "" for name, value in attrs}
        if "id" in told:
            self.ids.add(told["id"])
        address = told.get("href" if tag in {"a", "link"} else "src", "")
        if address and tag in {"a", "link", "img", "script", "iframe", "source"}:
            self.refers.append((tag, address, told.get("rel", told.get("class", ""))))

    def handle_data(self, data: str) -> None:
        """Note words."""
        self.words.append(data)


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    """All pages, by their path in the site; not the pieces of the theme."""
    paths = [path for path in sorted(SITE.rglob("*.html")) if "_static" not in path.parts]
    return {path.relative_to(SITE).as_posix(): Page(path) for path in paths}


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_has_a_page_with_an_example(name: str) -> None:
    page = Page(SITE / f"reference/generated/{name}.html")
    assert name in page.ids, "the page does not describe the name"
    error = isinstance(value := eval_name(name), type) and issubclass(value, Exception)
    assert error or ">>>" in "".join(page.words), "no example"


def eval_name(name: str) -> object:
    value: object = metrifair
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def test_every_criterion_is_told_of(pages) -> None:
    told = "".join(pages["reference/index.html"].words)
    assert [name for name in CRITERIA if name not in told] == []


def test_what_examples_use_links_back_to_them() -> None:
    used = (
        "audit",
        "FairClassifier",
        "FairLGBMClassifier",
        "frontier",
        "unfairness",
        "nn.UnfairnessPenalty",
        "AuditState",
    )
    for name in used:
        page = (SITE / f"reference/generated/metrifair.{name}.html").read_text(encoding="utf-8")
        assert "Examples using this" in page, name
        assert "sphx-glr-thumbcontainer" in page, name


def test_the_gallery_shows_a_picture_of_every_example(pages) -> None:
    examples = [name for name in pages if name.startswith("gallery/") and "/plot_" in name]
    assert len(examples) >= 20
    pictures = {
        name: [which for tag, _, which in pages[name].refers if tag == "img"] for name in examples
    }
    assert [
        name
        for name, shown in pictures.items()
        if not any("sphx-glr-single-img" in which for which in shown)
    ] == []


def test_every_link_leads_to_a_place_in_the_site(pages) -> None:
    broken = set()
    for name, page in pages.items():
        for _, referred, _ in page.refers:
            address, place = urldefrag(referred)
            if urlsplit(address).scheme in {"http", "https", "mailto", "data"}:
                continue
            target = urlsplit(
                urljoin(f"/{name}", unquote(address)) if address else f"/{name}"
            ).path.lstrip("/")
            known = (
                unquote(place) in pages[target].ids
                if place and target in pages
                else (SITE / target).is_file()
            )
            if not known:
                broken.add(f"{name}: {referred}")
    assert "\n".join(sorted(broken)) == ""


def test_nothing_is_fetched_from_elsewhere(pages) -> None:
    fetched = {"stylesheet", "preload", "icon", "preconnect", "modulepreload"}
    assert [
        f"{name}: {address}"
        for name, page in pages.items()
        for tag, address, relation in page.refers
        if urlsplit(address).netloc
        and tag != "a"
        and (tag != "link" or set(relation.split()) & fetched)
    ] == []


WATCHED = (
    "index.html",
    "tutorials/first-fair-model.html",
    "gallery/1_measure/plot_distances.html",
    "reference/generated/metrifair.audit.html",
)


@pytest.mark.parametrize("path", WATCHED)
def test_a_page_opens_without_complaint_and_fits_a_telephone(opened, path: str) -> None:
    page = opened(path)
    assert page.locator("h1").first.inner_text()
    small = opened(path, size={"width": 390, "height": 844})
    assert small.evaluate("document.documentElement.scrollWidth") <= 390


def test_search_finds_a_page(opened) -> None:
    page = opened("search.html?q=equal+opportunity")
    page.wait_for_selector("#search-results li a", timeout=30_000)
    assert page.locator("#search-results li").count() >= 3
    opened("search.html?q=FairClassifier").wait_for_selector(
        "#search-results a[href*='metrifair.FairClassifier']", timeout=30_000
    )


def test_readers_choose_light_or_dark(opened) -> None:
    page = opened("index.html")
    colors = []
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        colors.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colors[0] != colors[1]


def test_the_reading_list_for_programs_names_pages_that_exist() -> None:
    text = (SITE / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# metrifair\n\n> ")
    addresses = [line.split("](")[1].split(")")[0] for line in text.splitlines() if "](" in line]
    assert {"start.html", "cli.html", "choosing.html"} <= set(addresses)
    assert [address for address in addresses if not (SITE / address).is_file()] == []
