"""PDF files: the answer on at most two pages, everything unfolded, no network, nothing left
behind.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hiring import SELECTED, rate, write_decisions

from metrifair import ReadOptions, audit, audit_file
from metrifair.errors import DataError, MissingBrowser
from metrifair.report import print_pdf
from tests.expected_errors import Refusals
from tests.flat_options import flat
from tests.seams.api import RateTable
from tests.seams.report import find_browser, pdf

pytestmark = pytest.mark.extended

pypdf = pytest.importorskip("pypdf", reason="pypdf is in the extra dev")


@pytest.fixture
def browser() -> str:
    try:
        return find_browser()
    except MissingBrowser:
        pytest.skip("no browser is installed")


def pages_of(path: Path) -> list[str]:
    return [
        " ".join(page.extract_text().replace("\ufb01", "fi").split())
        for page in pypdf.PdfReader(path).pages
    ]


def hiring_rates(folder: Path) -> RateTable:
    path = write_decisions(folder / "decisions.csv")
    options = flat(resamples=20, permutations=0, random_state=0)
    found = audit_file(
        path,
        score="Decision",
        group=["Sex", "Race"],
        favorable_decision="Advanced",
        reading=ReadOptions(missing=("Pending",)),
        **options,
    )
    return found.rates("ll144")


@pytest.mark.usefixtures("browser")
def test_the_tables_of_a_standard_fill_at_most_two_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rates, exclusions with reasons, dates, source, hash and versions; no distance and no
    curve.
    """
    rates = hiring_rates(tmp_path)
    with tempfile.TemporaryDirectory() as own:  # Chromium needs a short path for its sockets
        monkeypatch.setattr(tempfile, "tempdir", own)
        rates.to_pdf(tmp_path / "rates.pdf", title="Screening", about={"period": "2026-09-30"})
        assert not list(Path(own).iterdir())
    monkeypatch.undo()
    pages = pages_of(tmp_path / "rates.pdf")
    assert len(pages) == 2
    text = " ".join(pages)
    men, women = (rate(set(SELECTED), {sex}) for sex in ("Male", "Female"))
    both = f"{100 * women:.1f}% and {100 * men:.1f}%"
    first = f"Sex: “Female” is selected {women / men:.2f} times as often as “Male” ({both})."
    assert first in pages[0]
    assert f"Smallest impact ratio {women / men:.3f}" in pages[0]
    for race, (own, chosen, others, chosen_others) in SELECTED.items():
        assert race in text
        assert f"{own + others} " in text
        assert f" {chosen + chosen_others} " in text
    assert (
        "under 2% of the rows: “Native Hawaiian or Pacific Islander” (1 row, 0.2%)"
        in text.replace("0.1%", "0.2%")
    )
    assert "its category is missing: “unknown” (6 rows" in text
    assert "2026-09-30" in text
    assert "Distribution date of the tool not given" in text
    (file,) = rates.audit.provenance.files
    assert file.sha256 in text.replace(" ", "").replace("\ufb00", "ff")
    for name, version in rates.audit.provenance.versions.items():
        assert f"{name} {version}" in text
    for word in ("Kolmogorov", "Wasserstein", "energy", "benefit", "sampling noise", "Density"):
        assert word not in text


@pytest.mark.usefixtures("browser")
def test_details_stand_behind_the_tables(tmp_path: Path) -> None:
    rates = hiring_rates(tmp_path)
    rates.to_pdf(tmp_path / "whole.pdf", details=True)
    pages = pages_of(tmp_path / "whole.pdf")
    text = " ".join(pages)
    assert "Sex: “Fe" in pages[0]
    assert (
        text.index("Impact ratio")
        < text.index("Distances between score distributions")
        < text.index("All findings")
    )


@pytest.mark.usefixtures("browser")
def test_printed_pages_unfold_every_note(tmp_path: Path) -> None:
    """Four attributes with a group called NA are four notes, of which the page shows three and
    folds one.
    """
    generator = np.random.default_rng(0)
    groups = {f"column {at}": generator.choice(["a", "b", "NA"], 300) for at in range(5)}
    found = audit(
        None, generator.random(300), sensitive_features=groups, **flat(resamples=0, permutations=0)
    )
    page = tmp_path / "audit.html"
    found.to_html(page)
    assert "2 more" in page.read_text()
    found.to_pdf(tmp_path / "audit.pdf")
    text = " ".join(pages_of(tmp_path / "audit.pdf"))
    for name, values in groups.items():
        rows = int((values == "NA").sum())
        assert f"{name}: {rows} of 300 rows are named 'NA'" in text


@pytest.mark.usefixtures("browser")
def test_a_page_is_printed_where_temporary_folders_have_long_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr(pdf.tempfile, "tempdir", str(long))
    print_pdf(lambda path: path.write_text("<p>printed"), tmp_path / "page.pdf")
    assert pages_of(tmp_path / "page.pdf") == ["printed"]


def test_without_a_browser_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refusals
) -> None:
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    written: list[Path] = []
    with refused(MissingBrowser) as raised:
        print_pdf(written.append, tmp_path / "audit.pdf")
    assert isinstance(raised.value, DataError)
    assert not written
    assert not list(tmp_path.iterdir())


def test_a_browser_that_fails_is_an_error_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf.shutil, "which", lambda name: "/bin/false")
    with pytest.raises(DataError, match="could not be printed by false"):
        print_pdf(lambda path: path.write_text("<p>"), tmp_path / "audit.pdf")
    assert not list(tmp_path.iterdir())
