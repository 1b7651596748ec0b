"""The built site: every public name has a page, links lead somewhere, a browser finds nothing to complain about.

``make docs`` builds the site and runs these tests on it; elsewhere they are skipped.
"""

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

import metrifair
from metrifair.datasets import synthetic

SITE = Path(os.environ.get("METRIFAIR_SITE", ""))
if "METRIFAIR_SITE" not in os.environ:
    pytest.skip("the site is built and tested by make docs", allow_module_level=True)
bs4 = pytest.importorskip("bs4", reason="beautifulsoup4 comes with the extra docs")
MODULES = ("batches", "criteria", "datasets", "errors", "nn")


def public_names() -> list[str]:
    """Every name that users may write, as they write it."""
    names = [f"metrifair.{name}" for name in metrifair.__all__ if name not in {*MODULES, *dir_of("errors")}]
    names += [f"metrifair.{room}.{name}" for room in MODULES if room != "criteria" for name in dir_of(room)]
    return names + [f"metrifair.datasets.synthetic.{name}" for name in synthetic.__all__]


def dir_of(room: str) -> list[str]:
    """What a module says is public; errors are all that it defines."""
    module = getattr(metrifair, room)
    return getattr(module, "__all__", None) or [name for name, value in vars(module).items() if isinstance(value, type)]


@pytest.fixture(scope="session")
def pages() -> dict[str, "bs4.BeautifulSoup"]:
    """All pages, by their path in the site."""
    return {
        path.relative_to(SITE).as_posix(): bs4.BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        for path in sorted(SITE.rglob("*.html"))
        if "_static" not in path.parts  # pieces of the theme
    }


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_has_a_page_with_an_example(name: str) -> None:
    page = bs4.BeautifulSoup((SITE / f"reference/generated/{name}.html").read_text(encoding="utf-8"), "html.parser")
    assert page.find(id=name), "the page does not describe the name"
    error = isinstance(value := eval_name(name), type) and issubclass(value, Exception)
    assert error or ">>>" in page.find("article").get_text(), "no example"


def eval_name(name: str) -> object:
    value: object = metrifair
    for part in name.split(".")[1:]:
        value = synthetic if part == "synthetic" else getattr(value, part)
    return value


def test_every_criterion_is_told_of(pages) -> None:
    told = pages["reference/index.html"].get_text()
    assert [name for name in metrifair.criteria.CRITERIA if name not in told] == []


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
    assert [name for name in examples if not pages[name].select("article img.sphx-glr-single-img")] == []


def test_every_link_leads_to_a_place_in_the_site(pages) -> None:
    places = {name: {tag["id"] for tag in page.find_all(id=True)} for name, page in pages.items()}
    broken = set()
    for name, page in pages.items():
        for tag, attribute in (("a", "href"), ("img", "src"), ("link", "href"), ("script", "src")):
            for found in page.find_all(tag, attrs={attribute: True}):
                address, place = urldefrag(found[attribute])
                if urlsplit(address).scheme in {"http", "https", "mailto", "data"}:
                    continue
                target = urlsplit(urljoin(f"/{name}", unquote(address)) if address else f"/{name}").path.lstrip("/")
                if not (SITE / target).is_file() or (
                    place
                    and target in places
                    and unquote(place) not in places[target]
                    and place != "documentation_options"
                ):
                    broken.add(f"{name}: {found[attribute]}")
    assert "\n".join(sorted(broken)) == ""


def test_nothing_is_fetched_from_elsewhere(pages) -> None:
    fetched = [
        f"{name}: {found[attribute]}"
        for name, page in pages.items()
        for tag, attribute in (("img", "src"), ("script", "src"), ("iframe", "src"), ("source", "src"))
        for found in page.find_all(tag, attrs={attribute: True})
        if urlsplit(found[attribute]).scheme in {"http", "https"} or found[attribute].startswith("//")
    ]
    fetched += [
        f"{name}: {found['href']}"
        for name, page in pages.items()
        for found in page.find_all("link", href=True)
        if urlsplit(found["href"]).netloc
        and set(found.get("rel", [])) & {"stylesheet", "preload", "icon", "preconnect"}
    ]
    assert fetched == []


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *said: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is in the extra dev")
    if not Path("/usr/bin/chromium").exists():
        pytest.skip("no browser: /usr/bin/chromium is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def opened(browser, address):
    """Opens pages of the site; then none may have asked for anything elsewhere, or complained."""
    trouble: list[str] = []
    context = browser.new_context()
    context.route("**/*", lambda route: route.continue_() if route.request.url.startswith(address) else route.abort())
    context.on("request", lambda request: request.url.startswith((address, "data:")) or trouble.append(request.url))
    context.on("console", lambda said: said.type in {"error", "warning"} and trouble.append(said.text))
    context.on("weberror", lambda error: trouble.append(str(error.error)))

    def opener(path: str, **options: object):
        page = context.new_page()
        page.set_viewport_size(options.get("size", {"width": 1280, "height": 900}))
        page.goto(address + path, wait_until="load", timeout=30_000)
        return page

    yield opener
    context.close()
    assert trouble == []


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
    colours = []
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1]
