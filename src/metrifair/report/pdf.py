"""Pages as PDF files: Chromium prints them, with a temporary profile and without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from metrifair.errors import DataError, MissingBrowser
from metrifair.support.files import write_file

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)
"""The programs that can print, in the order of the search on the path."""

_SECONDS = 120
_OPTIONS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # no name of a server can be looked up
    "--no-pdf-header-footer",  # the pages have their own
)


_LONGEST = 32  # characters: the browser's socket is two folders below, and its path may have 107


def _short_folder() -> str | None:
    """A place for temporary folders with a short path; None: the usual place is short."""
    return "/tmp" if len(tempfile.gettempdir()) > _LONGEST and os.access("/tmp", os.W_OK) else None


def find_browser() -> str:
    """The path of the browser that prints; a MissingBrowser error if there is none."""
    for name in BROWSERS:
        path = shutil.which(name)
        if path is not None:
            return path
    raise MissingBrowser(
        "a PDF file needs Chromium or Google Chrome, and neither is on the PATH",
        remedy="install chromium, or write the HTML page and print it in any browser",
    )


def print_pdf(write_page: Callable[[Path], object], path: str | os.PathLike[str]) -> Path:
    """Print the page that ``write_page`` writes to a given path, and return the path of the PDF
    file.
    """
    browser = find_browser()
    with tempfile.TemporaryDirectory(
        prefix="metrifair-", dir=_short_folder(), ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        page = folder / "page.html"
        printed = folder / "page.pdf"
        write_page(page)
        # root has no sandbox
        sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command = [
            browser,
            *_OPTIONS,
            *sandbox,
            f"--user-data-dir={folder / 'profile'}",
            f"--print-to-pdf={printed}",
        ]
        places = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), name)
        try:
            subprocess.run(
                [*command, page.as_uri()],
                env=os.environ | places,
                capture_output=True,
                timeout=_SECONDS,
                check=True,
            )
            content = printed.read_bytes()
        except (OSError, subprocess.SubprocessError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(
                f"the page could not be printed by {Path(browser).name}: {reason}",
                remedy="write the HTML page and print it in any browser",
            ) from error
    return write_file(path, content)
