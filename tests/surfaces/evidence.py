"""The README of evidence, and what verification says of it, also after changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from metrifair import DataError, audit
from metrifair.evidence import verify
from tests.surfaces.commands import run
from tests.surfaces.frontiers import made
from tests.surfaces.origins import without_figures, without_origin
from tests.surfaces.rows import QUICK, people, table

ROWS = people()


def texts() -> dict[str, str]:
    """Evidence of audits and of a search, as it is and changed."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        found = {
            **small_cells(folder / "small"),
            **of_a_file(folder / "file"),
            **of_a_search(folder / "search"),
            **small_cells_of_a_search(folder / "small search"),
        }
        return {
            title: without_origin(text.replace(name, "FOLDER")) for title, text in found.items()
        }


def small_cells(folder: Path) -> dict[str, str]:
    """Evidence whose small cells are withheld."""
    folder.mkdir()
    region = np.where(np.arange(len(ROWS.score)) < 12, "islands", ROWS.region)
    result = audit(ROWS.outcome, ROWS.score, sensitive_features={"region": region}, options=QUICK)
    place = folder / "evidence"
    result.to_evidence(place, min_cell=10, pdf=False)
    return {
        "withheld cells: README": (place / "README.txt").read_text(),
        "withheld cells: verified": str(verify(place)),
    }


def of_a_file(folder: Path) -> dict[str, str]:
    """Evidence of a file with a search for groups, verified with the file and with others.

    Verification of other figures shows all their digits, the last of which differ between processors.
    """
    folder.mkdir()
    rows, others = folder / "people.csv", folder / "others.csv"
    table(ROWS).write_csv(rows)
    table(people(seed=1)).write_csv(others)
    place = folder / "evidence"
    searched = "--find-groups selected --among region"
    run(f"evidence {rows} --score score --group sex {searched} --out {place} --no-pdf")
    found = {
        "a file: README": (place / "README.txt").read_text(),
        "a file: verified with its data": str(verify(place, data=rows)),
        "a file: verified with other data": str(verify(place, data=others)),
    }
    changed = {f"a file, changed: {name}": after(place, change) for name, change in CHANGES}
    return found | {title: without_figures(text) for title, text in changed.items()}


def of_a_search(folder: Path) -> dict[str, str]:
    """Evidence of a search for a model, with and without what it leaves out."""
    folder.mkdir()
    front = made(strengths=[0.0, 0.5, 1.0])
    front.select(max_unfairness=0.25)
    scores, place = folder / "scores.csv", folder / "evidence"
    front.to_evidence(place, reason="It is fair enough.", scores=scores)
    return {
        "a search: README": (place / "README.txt").read_text(),
        "a search: verified": str(verify(place)),
        "a search: verified with its scores": str(verify(place, scores=scores)),
    }


def small_cells_of_a_search(folder: Path) -> dict[str, str]:
    """Evidence of a search by a minimum accuracy whose counts are merged."""
    folder.mkdir()
    front = made(strengths=[0.0, 0.5, 1.0])
    front.select(min_accuracy=0.75)
    place = folder / "evidence"
    front.to_evidence(place, reason="It is fair enough.", min_cell=5)
    return {
        "a search with merged counts: README": (place / "README.txt").read_text(),
        "a search with merged counts: verified": str(verify(place)),
        "a search with merged counts: again": refused(
            lambda: front.to_evidence(folder / "again", reason="Once more.", min_cell=4)
        ),
    }


def refused(write: Callable[[], object]) -> str:
    """The message of a refusal to release the same rows again."""
    try:
        write()
    except DataError as error:
        return str(error)
    return "no error"


def after(folder: Path, change: Callable[[Path], object]) -> str:
    """What verification says of evidence after a change, which is undone."""
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    change(folder)
    said = str(verify(folder))
    for path in folder.rglob("*"):
        if path.is_file() and path not in kept:
            path.unlink()
    for path, content in kept.items():
        path.write_bytes(content)
    return said


def _reword(folder: Path) -> None:
    readme = folder / "README.txt"
    readme.write_text(readme.read_text().replace("gap", "gain"))


def _embellish(folder: Path) -> None:
    path = folder / "audit.json"
    content = json.loads(path.read_text())
    content["findings"][0]["value"] /= 2
    path.write_text(json.dumps(content))


CHANGES: list[tuple[str, Callable[[Path], object]]] = [
    ("another word", _reword),
    ("another figure", _embellish),
    ("a file less", lambda folder: (folder / "tables" / "rates.csv").unlink()),
    ("a file more", lambda folder: (folder / "notes.txt").write_text("Nothing to see.")),
    ("a signature", lambda folder: (folder / "MANIFEST.json.sig").write_text("signed")),
]
