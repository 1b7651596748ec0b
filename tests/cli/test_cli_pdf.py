"""Reports of train and frontier: the page and its PDF, with the figures of the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_cli_training import TRAIN, shorten

import metrifair
from tests.seams.report import pdf

COMMANDS = {
    "train": ("--strength", "0.5", "--test", "0.25"),
    "frontier": ("--strengths", "0,1", "--max-unfairness", "0.9"),
}
MOST_PAGES = {"train": 3, "frontier": 4}


@pytest.fixture(autouse=True)
def _few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        metrifair.FairClassifier, "__init__", shorten(metrifair.FairClassifier.__init__)
    )


@pytest.mark.extended
@pytest.mark.parametrize("command", COMMANDS)
def test_a_report_is_a_page_and_a_pdf_of_few_pages(
    command: str, csv: Path, tmp_path: Path, call: Any
) -> None:
    pypdf = pytest.importorskip("pypdf", reason="pypdf is in the extra dev")
    if not any(map(pdf.shutil.which, pdf.BROWSERS)):
        pytest.skip("no browser is installed")
    page, printed = tmp_path / "report.html", tmp_path / "report.pdf"
    done = call(
        command,
        csv,
        *TRAIN,
        *COMMANDS[command],
        "--html",
        page,
        "--pdf",
        printed,
        "--json",
        tmp_path / "j",
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.count("Report: ") == 2
    sheets = [" ".join(sheet.extract_text().split()) for sheet in pypdf.PdfReader(printed).pages]
    assert 1 <= len(sheets) <= MOST_PAGES[command]
    figures = json.loads((tmp_path / "j").read_text())
    chosen = figures["chosen"]
    for name in ("accuracy", "unfairness"):
        assert f"{chosen[name]:.3f}" in " ".join(sheets)
    assert "hired by sex" in sheets[0]
    assert ("On 60 test rows: AUC" in sheets[0]) == (command == "train")
    assert figures["provenance"]["files"][0]["sha256"] in "".join(sheets).replace(" ", "").replace(
        "\ufb00", "ff"
    )
    assert "metrifair" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pdf_needs_a_browser_before_anything_is_trained(
    command: str, csv: Path, tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    done = call(command, csv, *TRAIN, "--pdf", tmp_path / "report.pdf")
    assert done.exit_code == 2
    assert "a PDF file needs Chromium or Google Chrome" in done.stderr
    assert not (tmp_path / "report.pdf").exists()
