"""`--standard`: the answer on the first screen, the rest on request, one person makes no
headline, PDF files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.seams.report import pdf

sys.path.append(str(Path(__file__).parent.parent / "report"))
from hiring import SELECTED, rate, write_decisions

SCREEN = 40  # lines of a terminal
ASKED = ("--score", "Decision", "--favorable-decision", "Advanced", "--missing", "Pending")
GROUPS = ("--group", "Sex", "--group", "Race")


@pytest.fixture
def decisions(tmp_path: Path) -> Path:
    return write_decisions(tmp_path / "decisions.csv")


@pytest.fixture
def asked(call: Callable[..., Result], decisions: Path) -> Callable[..., Result]:
    """The LL144 audit of hiring decisions, with further options."""

    def run(*further: object) -> Result:
        return call("audit", decisions, *ASKED, *GROUPS, *further, env={"COLUMNS": "120"})

    return run


def test_every_missing_reference_is_named_at_once(
    call: Callable[..., Result], decisions: Path
) -> None:
    arguments = ("audit", decisions, *ASKED, *GROUPS, "--standard", "credit")
    refused = call(*arguments, "--reference", "Sex=Male")
    assert refused.exit_code == 2
    words = " ".join(refused.output.split())
    assert "use --reference Sex=Male --reference Race=CATEGORY, one of the groups of Race:" in words
    words = " ".join(call(*arguments).output.split())
    assert "--reference Sex=CATEGORY --reference Race=CATEGORY, one of the groups of Sex:" in words
    assert "; of Race: " in words
    done = call(*arguments, "--reference", "Sex=Male", "--reference", "Race=White")
    assert done.exit_code == 0, done.output


def test_the_tables_fill_the_first_screen_and_nothing_else_follows(
    asked: Callable[..., Result],
) -> None:
    found = asked("--standard", "ll144")
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    men, women = (rate(set(SELECTED), {sex}) for sex in ("Male", "Female"))
    assert "Local Law 144" in lines[0]
    assert lines[1].startswith(
        f"Sex: “Female” is selected {women / men:.2f} times as often as “Male” "
        f"({100 * women:.1f}% and {100 * men:.1f}%)."
    )
    assert f"Smallest impact ratio {women / men:.3f}" in " ".join(lines[1:3])
    rows = {line: at for at, line in enumerate(lines) if line.startswith(("  Sex ", "  Race "))}
    assert max(rows.values()) < SCREEN
    table = "\n".join(lines[:SCREEN])
    for sex, share in (("Female", women), ("Male", men)):
        (row,) = [line.split() for line in lines if line.split()[:2] == ["Sex", sex]]
        assert row[-2:] == [f"{100 * share:.1f}%", f"{share / men:.3f}"]
        assert int(row[-3]) == round(share * int(row[-4]))
    assert "(too few rows)" in table
    for word in ("Kolmogorov", "Wasserstein", "Energy", "sampling noise", "p-value"):
        assert word not in found.stdout
    assert "--details" in lines[-1]


def test_details_follow_the_tables_on_request(asked: Callable[..., Result], tmp_path: Path) -> None:
    found = asked("--standard", "ll144", "--details", "--html", tmp_path / "whole.html")
    text = found.stdout
    assert text.index("impact ratio") < text.index("gap") < text.index("Kolmogorov")
    assert "Wasserstein" not in text, (
        "of decisions, all distances are functions of the difference of rates"
    )
    page = (tmp_path / "whole.html").read_text()
    assert page.index('id="ratios"') < page.index('id="findings"')
    asked("--standard", "ll144", "--html", tmp_path / "rates.html")
    assert 'id="findings"' not in (tmp_path / "rates.html").read_text()


def test_one_person_breaks_no_limit_on_rates(asked: Callable[..., Result]) -> None:
    """The only Pacific Islander is selected; groups with enough rows differ by less than 20
    points.
    """
    assert asked("--standard", "ll144", "--fail-above", "selection_difference=0.25").exit_code == 0
    found = asked("--standard", "ll144", "--fail-above", "selection_difference=0.1")
    assert found.exit_code == 1
    assert "Unfair: selection_difference" in found.output


def test_a_pdf_needs_a_browser_and_says_so_before_reading(
    asked: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    found = asked("--standard", "ll144", "--pdf", tmp_path / "rates.pdf")
    assert found.exit_code == 2
    assert "a PDF file needs Chromium or Google Chrome" in found.stderr
    assert "By Sex" not in found.stdout
    assert not (tmp_path / "rates.pdf").exists()


@pytest.mark.extended
def test_pages_are_printed_where_a_browser_is(asked: Callable[..., Result], tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf", reason="pypdf is in the extra dev")
    if not any(map(pdf.shutil.which, pdf.BROWSERS)):
        pytest.skip("no browser is installed")
    found = asked("--standard", "ll144", "--pdf", tmp_path / "rates.pdf")
    assert (
        f"Report: {tmp_path / 'rates.pdf'}" in "".join(found.stdout.split("\n"))
        or "rates.pdf" in found.stdout
    )
    assert len(pypdf.PdfReader(tmp_path / "rates.pdf").pages) == 2
