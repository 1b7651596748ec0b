"""All results with a page share one base: title, metadata, origin, JSON and the frame of notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from metrifair import AuditOptions, DataError, Frontier, audit, compare, find_groups, monitor
from tests.expected_errors import Refusals
from tests.seams.api import RecordedPage, ResultPage
from tests.seams.tradeoff import Outcome, Point, TradeOff


def results() -> dict[str, ResultPage]:
    """One result of each class."""
    generator = np.random.default_rng(5)
    sex = np.repeat(["women", "men"], 100)
    score = generator.random(200)
    options = AuditOptions(resamples=20, permutations=0)
    found = audit(
        None, score, sensitive_features={"sex": sex}, threshold=0.5, random_state=0, options=options
    )
    point = Point(0.5, 0, 0.9, 0.4)
    found_all: list[ResultPage] = [
        found,
        found.rates(),
        compare(found, found),
        monitor({"May": found, "June": found}),
        find_groups(None, (score > 0.5).astype(int), {"sex": sex}),
        Frontier(TradeOff([Outcome(point.job, point)])),
    ]
    return {type(result).__name__: result for result in found_all}


def leaves(base: type) -> Iterator[str]:
    for part in base.__subclasses__():
        if part.__subclasses__():
            yield from leaves(part)
        else:
            yield part.__name__


RESULTS = results()


def test_every_result_with_a_page_is_tested() -> None:
    assert set(RESULTS) == set(leaves(ResultPage))


@pytest.mark.parametrize("name", RESULTS)
def test_the_file_of_the_other_method_is_refused(
    name: str, tmp_path: Path, refused: Refusals
) -> None:
    result = RESULTS[name]
    with refused(DataError):
        result.to_html(tmp_path / "x.PDF")
    with refused(DataError):
        result.to_pdf(str(tmp_path / "x.html"))
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_path_is_refused(refused: Refusals) -> None:
    for write in (RESULTS["Audit"].to_html, RESULTS["Audit"].to_pdf):
        with refused(DataError):
            write(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", RESULTS)
def test_a_page_has_its_title_metadata_and_origin(name: str, tmp_path: Path) -> None:
    result = RESULTS[name]
    path = tmp_path / "page.html"
    result.to_html(path)
    assert f'<h1 id="title">{result.page_title}</h1>' in path.read_text()
    result.to_html(path, title="Who is hired", about={"reason": "a yearly check"})
    page = path.read_text()
    assert '<h1 id="title">Who is hired</h1>' in page
    assert result.page_title not in page.partition("<body>")[0]
    assert "a yearly check" in page
    assert f'title="{result.page_title}"' in result._repr_html_()


@pytest.mark.parametrize("name", RESULTS)
def test_json_names_its_kind_and_version(name: str) -> None:
    result = RESULTS[name]
    content = json.loads(result.to_json())  # type: ignore[attr-defined]
    assert content["kind"].startswith("metrifair ")
    assert content["version"] == 1
    assert content["summary"]
    if isinstance(result, RecordedPage):
        assert content["kind"] == f"metrifair {result.kind}"
        assert "\n".join(content["summary"]) == result.summary


@pytest.mark.parametrize("name", ["RateTable", "AuditDifference", "AuditSeries", "GroupSearch"])
def test_a_page_without_drawings_has_no_script(name: str, tmp_path: Path) -> None:
    RESULTS[name].to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert '<script type="module"></script>' in page
    assert "application/json" not in page


def test_the_page_of_a_standard_says_what_it_is(tmp_path: Path) -> None:
    found = audit(None, [0, 1, 1, 1], sensitive_features=list("aabb"), random_state=0)
    for standard, title in (
        ("ll144", "Figures for a bias audit under New York City Local Law 144"),
        ("four-fifths", "Selection rates and impact ratios"),
    ):
        path = tmp_path / f"{standard}.html"
        found.rates(standard).to_html(path)
        assert f'<h1 id="title">{title}</h1>' in path.read_text()
