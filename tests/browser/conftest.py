"""A real browser, and pages in it that are watched.

The builder of frontiers lives beside the tests of the report.
"""

import re
import sys
from pathlib import Path

import pytest

from metrifair.report import write_html
from tests.programs import require_chromium
from tests.seams.report import frontier_html

sys.path.append(str(Path(__file__).parent.parent / "report"))

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
    path = require_chromium()
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a view, or the text of a page; then no request may have left it, nothing been
    complained about.
    """
    pages, trouble = [], []

    def opener(shown, *, folded=False, **options):
        text = shown if isinstance(shown, str) else frontier_html(shown)
        path = write_html(tmp_path / f"report{len(pages)}.html", text)
        page = browser.new_page(**({"viewport": WIDE} | options))
        page.on(
            "request",
            lambda request: (
                request.url != path.as_uri() and trouble.append(f"request {request.url[:99]}")
            ),
        )
        page.on("console", lambda said: trouble.append(f"console {said.type}: {said.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error {error}"))
        page.on(
            "dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss())
        )
        page.set_default_timeout(5000)
        page.goto(path.as_uri())
        if not folded:  # what tests look at
            page.evaluate("document.querySelectorAll('.fold').forEach(part => part.open = true)")
        pages.append(page)
        return page

    yield opener
    for page in pages:
        page.close()
    assert [said for said in trouble if not said.startswith("request data:")] == []


@pytest.fixture
def contrast():
    return contrast_of


def contrast_of(*colors):
    """Ratio of luminances as WCAG defines it; 4.5 is what it asks of text."""

    def luminance(color):
        parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted(map(luminance, colors))
    return (high + 0.05) / (low + 0.05)
