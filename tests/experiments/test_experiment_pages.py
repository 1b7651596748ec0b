"""The committed pages, rebuilt from the committed points: every number is the same."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from experiments import (
    boosting,
    changes,
    continuous,
    convergence,
    duel_tables,
    online,
    remote,
    summary,
    theory,
)
from experiments.duel_record import DuelRecord
from experiments.results import read_csv

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
TABLES = ("regression", "classification", "equal-opportunity", "preprocessing", "postprocessing")
PROTOCOLS = ("published", "corrected")


def numbers(text: str) -> list[str]:
    """All numbers, in order, as they are printed; signs belong to them."""
    return re.findall(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", text)


def table_lines(text: str) -> list[list[str]]:
    return [
        [part.strip() for part in line.strip("|").split("|")]
        for line in text.splitlines()
        if line[:1] == "|"
    ]


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of all comparisons, made of the raw points, without their pictures."""
    folder = tmp_path_factory.mktemp("pages")
    for name, page in remote.pages(sorted((RESULTS / "raw").glob("*.csv.gz"))):
        (folder / f"{name}.md").write_text(page.markdown(name))
    return folder


@pytest.mark.page(
    "regression-published.md",
    "classification-published.md",
    "equal-opportunity-published.md",
    "preprocessing-published.md",
    "postprocessing-published.md",
    "regression-corrected.md",
    "classification-corrected.md",
    "equal-opportunity-corrected.md",
    "preprocessing-corrected.md",
    "postprocessing-corrected.md",
)
@pytest.mark.parametrize(
    "name", [f"{table}-{protocol}" for table in TABLES for protocol in PROTOCOLS]
)
def test_the_tables_hold_the_committed_figures(name: str, rebuilt: Path) -> None:
    own, kept = ((folder / f"{name}.md").read_text() for folder in (rebuilt, RESULTS))
    assert len(numbers(kept)) > 50
    assert numbers(own) == numbers(kept)
    # of the same cases
    assert [line[:2] for line in table_lines(own)] == [line[:2] for line in table_lines(kept)]


@pytest.mark.page("boosting/boosting.md")
def test_boosted_trees() -> None:
    kept = (RESULTS / "boosting" / "boosting.md").read_text()
    own = boosting.boosting_page(read_csv([RESULTS / "boosting" / "boosting.csv"])).markdown(
        "boosting"
    )
    assert table_lines(own) == table_lines(kept)
    assert next(line for line in own.splitlines() if line.startswith("Seeds")) in kept


@pytest.mark.page("continuous/continuous.md")
def test_attributes_that_are_numbers() -> None:
    kept = (RESULTS / "continuous" / "continuous.md").read_text()
    own = continuous.continuous_page(
        read_csv([RESULTS / "continuous" / "continuous.csv"])
    ).markdown("continuous")
    assert len(table_lines(kept)) > 72
    falls = [list(map(float, line)) for line in table_lines(kept)[-len(continuous.STRENGTHS) :]]
    assert [line[0] for line in falls] == list(continuous.STRENGTHS)
    for dependence in list(zip(*falls, strict=True))[1:]:  # on every data set, at every step
        assert dependence[0] > 0.1
        assert all(before >= after for before, after in pairwise(dependence))
    assert table_lines(own) == table_lines(kept)
    assert next(line for line in own.splitlines() if line.startswith("Seeds")) in kept


@pytest.mark.page("changes.md")
def test_what_changed() -> None:
    assert changes.changes_page(RESULTS).markdown("changes") == (RESULTS / "changes.md").read_text()


@pytest.mark.page("duel/duel.md")
def test_the_comparison_with_other_libraries() -> None:
    kept = (RESULTS / "duel" / "duel.md").read_text()
    protocol = tomllib.loads(duel_tables.PROTOCOL_FILE.read_text(encoding="utf-8"))
    record = DuelRecord.read(RESULTS / "duel" / "entries.json")
    page = duel_tables.duel_page(record, protocol)
    assert len(table_lines(kept)) > 80
    assert table_lines(page.markdown("duel")) == table_lines(kept)
    assert page.notes[0] in kept


@pytest.mark.page(
    "online-regression-published.md",
    "online-classification-published.md",
    "online-regression-corrected.md",
    "online-classification-corrected.md",
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["regression", "classification"])
def test_online_pages_are_those_of_the_kept_records(name: str, protocol: str) -> None:
    title, page = online.kept_page(RESULTS / "raw" / "online" / f"{name}-{protocol}.csv.gz")
    kept = (RESULTS / f"{title}.md").read_text()
    assert len(table_lines(kept)) > 5
    assert table_lines(page.markdown(title)) == table_lines(kept)
    assert next(note for note in page.notes if note.startswith("Replications")) in kept


@pytest.mark.page("theory-corrected.md")
def test_theory_is_computed_anew() -> None:
    own = theory.theory_page(theory.exact_values(49)).markdown("page")
    assert table_lines(own) == table_lines((RESULTS / "theory-corrected.md").read_text())


def convergence_lines(lengths: list[int]) -> list[list[str]]:
    records = [
        one
        for unbiased in (True, False)
        for length in lengths
        for one in convergence.norms(length, unbiased=unbiased)
    ]
    return table_lines(convergence.convergence_page(records).markdown("page"))


def check_convergence(lengths: list[int]) -> list[list[str]]:
    """Sums of many steps may round otherwise on another machine: by one in the last digit."""
    kept = {
        line[0]: line[1:]
        for line in table_lines((RESULTS / "convergence-corrected.md").read_text())
    }
    own = convergence_lines(lengths)
    for line in own[own.index(["T", "unbiased", "biased"]) + 2 :]:
        values, expected = (
            [float(x) for x in numbers(" ".join(part))] for part in (line[1:], kept[line[0]])
        )
        assert values == pytest.approx(expected, abs=2e-4)
    return own


@pytest.mark.page("convergence-corrected.md")
def test_short_runs_of_the_convergence() -> None:
    check_convergence([64, 128, 256, 512])


@pytest.mark.slow(rotate=False)
def test_the_whole_convergence() -> None:
    own = check_convergence([2**k for k in range(6, 15)])
    assert own[:4] == table_lines((RESULTS / "convergence-corrected.md").read_text())[:4]


@pytest.mark.page("README.md")
def test_the_overview_says_what_the_points_say() -> None:
    text = (RESULTS / "README.md").read_text()
    assert summary.summary(RESULTS) == text
    assert "{{" not in text
    for page in re.findall(r"\]\(([^)]+)\)", text):
        assert (RESULTS / page).exists()


def test_a_figure_that_nobody_computed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = tmp_path / "summary.md"
    template.write_text("Zafar has {{printed classification adult sinkhorn}}.")
    monkeypatch.setattr(summary, "_TEMPLATE", template)
    with pytest.raises(KeyError):
        summary.summary(RESULTS)
