"""Evidence of an audit with a search for groups: its counts, forgeries, and small cells."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from metrifair import AuditOptions, audit, find_groups
from metrifair.cli import main
from metrifair.errors import ModelFileError
from metrifair.evidence import verify
from tests.evidence_outcomes import outcomes
from tests.seams.auditing import GroupFinder, counts_content, read_counts
from tests.seams.saving import Content, from_bytes, to_bytes

ROWS = 1_500
FAST = AuditOptions(resamples=20, permutations=19)
OPTIONS = (
    "--score", "p", "--label", "y", "--group", "sex", "--find-groups", "missed-positives",
    "--among", "job", "--among", "age", "--no-pdf",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Farm workers are rarely selected; two rows have no score, and labels are numbers."""
    rng = np.random.default_rng(0)
    job = rng.choice(["Sales", "Tech", "Farm"], ROWS)
    selected = rng.random(ROWS) < np.where(job == "Farm", 0.3, 0.7)
    score = [None, None, *np.where(selected, 0.75, 0.25)[2:].tolist()]
    table = pl.DataFrame(
        {
            "job": job,
            "age": rng.integers(18, 70, ROWS),
            "sex": rng.choice(["f", "m"], ROWS),
            "y": rng.integers(0, 2, ROWS),
            "p": score,
        }
    )
    path = tmp_path_factory.mktemp("data") / "scores.csv"
    table.write_csv(path)
    return path


@pytest.fixture(scope="module")
def honest(data: Path) -> Path:
    folder = data.parent / "honest"
    options = [str(data), *OPTIONS, "--out", str(folder)]
    done = CliRunner().invoke(main, ["evidence", *options])
    assert done.exit_code == 0, done.output
    assert "Search for groups: of " in done.output
    return folder


@pytest.fixture
def folder(honest: Path, tmp_path: Path) -> Path:
    shutil.copytree(honest, tmp_path / "evidence")
    return tmp_path / "evidence"


def rewrite(folder: Path, name: str, content: bytes) -> None:
    """Replace a file, and its hash in the manifest, as a careful forger would."""
    (folder / name).write_bytes(content)
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    manifest["files"][name] = sha256(content).hexdigest()
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))


def test_honest_evidence_agrees_with_its_counts_and_its_data(honest: Path, data: Path) -> None:
    found = verify(honest, data=data)
    assert found.agrees is True, found
    assert outcomes(honest, data=data)["search_recount"] == "agrees"
    content = json.loads((honest / "audit.json").read_text())
    listed = [group for group in content["group_search"]["worse"] if group["is_listed"]]
    assert [part["value"] for part in listed[0]["conditions"]] == ["Farm"]
    worse = pl.read_csv(honest / "tables" / "groups.csv")
    assert len(worse) == len(content["group_search"]["worse"]) > 0
    assert 'id="group-search"' in (honest / "report.html").read_text()
    readme = (honest / "README.txt").read_text()
    assert "differences of their counts can be of a single row" in readme


def test_data_with_other_attributes_differ(honest: Path, data: Path, tmp_path: Path) -> None:
    table = pl.read_csv(data)
    other = tmp_path / "scores.csv"
    table.with_columns(pl.col("job").reverse()).write_csv(other)
    found = outcomes(honest, data=other)
    assert found["recount"] == "agrees"
    assert found["search_recount"] == "differs"


def forged_bound(folder: Path) -> None:
    content = json.loads((folder / "audit.json").read_text())
    content["group_search"]["worse"][0]["at_least"] /= 2
    rewrite(folder, "audit.json", json.dumps(content).encode())


def forged_counts(folder: Path) -> None:
    content = from_bytes((folder / "groups.state").read_bytes())
    content.arrays["sums"][0, 2] -= 5
    rewrite(folder, "groups.state", to_bytes(content))


def forged_parents(folder: Path) -> None:
    """Every group is a parent of itself."""
    content = from_bytes((folder / "groups.state").read_bytes())
    content.arrays["parents"][:, 0] = np.arange(len(content.arrays["parents"]))
    rewrite(folder, "groups.state", to_bytes(content))


@pytest.mark.parametrize(
    ("forge", "kind"),
    [(forged_bound, "figures"), (forged_counts, "figures"), (forged_parents, "unusable")],
)
def test_forged_figures_and_counts_differ(
    forge: Callable[[Path], None], kind: str, folder: Path
) -> None:
    forge(folder)
    assert outcomes(folder)[kind] == "differs"


def test_another_test_than_that_of_the_data_differs(folder: Path, data: Path) -> None:
    content = from_bytes((folder / "groups.state").read_bytes())
    meta = {**content.meta, "is_exact": False}
    rewrite(folder, "groups.state", to_bytes(content._replace(meta=meta)))
    assert outcomes(folder, data=data)["search_recount"] == "differs"


def test_a_search_of_fewer_rows_than_the_audit_is_no_evidence(folder: Path) -> None:
    content = from_bytes((folder / "groups.state").read_bytes())
    meta = {**content.meta, "outcome": "selected"}
    rewrite(folder, "groups.state", to_bytes(content._replace(meta=meta)))
    assert outcomes(folder)["unusable"] == "differs"


def test_missing_and_hidden_counts_differ(folder: Path) -> None:
    (folder / "groups.state").unlink()
    found = outcomes(folder)
    assert found["missing_file"] == found["unusable"] == "differs"
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    manifest["search"] = ""
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))
    assert outcomes(folder)["figures"] == "differs"


def test_a_minimum_of_cells_withholds_the_search(data: Path, tmp_path: Path, call: Any) -> None:
    out = tmp_path / "evidence"
    done = call("evidence", data, *OPTIONS, "--min-cell", "10", "--out", out)
    assert done.exit_code == 0, done.output
    assert not (out / "groups.state").exists()
    assert "group_search" not in json.loads((out / "audit.json").read_text())
    everything = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert b"Farm" not in everything
    found = verify(out, data=data)
    assert found.agrees is True, found
    assert outcomes(out)["withheld_search"] == "withheld"
    assert "The search for groups is not part of this release" in " ".join(
        (out / "README.txt").read_text().split()
    )


def searched(**options: Any) -> Any:
    rng = np.random.default_rng(4)
    X = {"job": rng.choice(["Sales", "Farm"], ROWS), "age": rng.integers(18, 70, ROWS)}
    bad = rng.random(ROWS) < np.where(X["job"] == "Farm", 0.6, 0.2)
    return find_groups(None, None, X, outcome=bad.astype(float), **options)


def test_evidence_of_rows_in_memory_has_the_search_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    y_pred = rng.integers(0, 2, ROWS)
    X = {"job": rng.choice(["Sales", "Farm"], ROWS)}
    result = audit(None, y_pred, sensitive_features=rng.choice(["f", "m"], ROWS), options=FAST)
    search = find_groups(None, y_pred, X, search_rows=0.3)
    result.with_groups(search).to_evidence(tmp_path / "evidence.zip", pdf=False)
    assert verify(tmp_path / "evidence.zip").agrees is True


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sample_weight": np.linspace(0.5, 1.5, ROWS)},
        {"clusters": np.arange(ROWS) // 2},
        {"search_rows": 0.4},
        {"cuts": {"age": [30, 50]}},
    ],
)
def test_the_record_of_a_search_is_recomputed_from_its_file(options: dict[str, Any]) -> None:
    search = searched(**options)
    again = read_counts(from_bytes(to_bytes(counts_content(search.counts))))
    assert GroupFinder(again).record() == search.record
    assert search.record.worse


def changed(**arrays: Any) -> Callable[[Content], Content]:
    return lambda content: content._replace(arrays={**content.arrays, **arrays})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content._replace(kind="audit state"), "not the counts of a search"),
        (
            lambda content: content._replace(meta={**content.meta, "columns": []}),
            "a condition or a group that it does not contain",
        ),
        (
            lambda content: content._replace(meta={**content.meta, "largest": -1.0}),
            "the file does not describe the counts of a search",
        ),
        (
            lambda content: content._replace(meta={**content.meta, "weighted": True}),
            "exact tests need rows without weights and clusters",
        ),
        (changed(whole=np.zeros(5)), "more than all rows"),
        (changed(whole=np.full(5, 1e200)), "no search has so many groups or rows"),
        (changed(sums=np.zeros((3, 5))), "array 'sums' must be float64"),
        (changed(rows=np.zeros(3)), "no use for the arrays"),
    ],
)
def test_impossible_counts_are_refused(change: Callable[[Content], Content], message: str) -> None:
    content = counts_content(searched().counts)
    with pytest.raises(ModelFileError) as error:
        read_counts(change(content))
    assert message in str(error.value)
