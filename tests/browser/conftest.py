"""A real browser, and pages in it that are watched. The builder of frontiers lives beside the tests of the report."""

import sys
from pathlib import Path

import pytest

from metrifair.report.page import frontier_html, write_html

sys.path.append(str(Path(__file__).parent.parent / "report"))

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is in the extra dev")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no browser: {CHROMIUM} is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a view as a page; afterwards no request may have left it and nothing may have been complained about."""
    pages, trouble = [], []

    def opener(view, **options):
        path = write_html(tmp_path / f"report{len(pages)}.html", frontier_html(view))
        page = browser.new_page(**({"viewport": WIDE} | options))
        page.on(
            "request", lambda request: request.url != path.as_uri() and trouble.append(f"request {request.url[:99]}")
        )
        page.on("console", lambda said: trouble.append(f"console {said.type}: {said.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error {error}"))
        page.on("dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.set_default_timeout(5000)
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield opener
    for page in pages:
        page.close()
    assert [said for said in trouble if not said.startswith("request data:")] == []
