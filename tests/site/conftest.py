"""A server of the built site, and a real browser that opens its pages."""

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.programs import require_chromium

SITE = Path(os.environ.get("METRIFAIR_SITE", ""))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *parts: object) -> None:
        """Print nothing."""


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
    path = require_chromium()
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


@pytest.fixture
def opened(browser, address):
    """Opens pages of the site; then none may have asked for anything elsewhere, or complained."""
    trouble: list[str] = []
    context = browser.new_context()
    context.route(
        "**/*",
        lambda route: route.continue_() if route.request.url.startswith(address) else route.abort(),
    )
    context.on(
        "request",
        lambda request: request.url.startswith((address, "data:")) or trouble.append(request.url),
    )
    context.on(
        "console", lambda said: said.type in {"error", "warning"} and trouble.append(said.text)
    )
    context.on("weberror", lambda error: trouble.append(str(error.error)))

    def opener(path: str, **options: object):
        page = context.new_page()
        page.set_viewport_size(options.get("size", {"width": 1280, "height": 900}))
        page.goto(address + path, wait_until="load", timeout=30_000)
        return page

    yield opener
    context.close()
    assert trouble == []
