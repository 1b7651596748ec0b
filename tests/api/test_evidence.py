"""Evidence: what was written agrees, and whatever is changed afterwards is found."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import reduce
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from metrifair import (
    AuditOptions,
    AuditState,
    ReadOptions,
    __version__,
    audit,
    audit_file,
    audit_table,
)
from metrifair.errors import DataError
from metrifair.evidence import verify
from tests.evidence_outcomes import outcomes
from tests.expected_errors import Refusals
from tests.programs import has_printer
from tests.seams.api import read_audit, verification
from tests.seams.wording import crosswalk_named, crosswalk_names

OPTIONS = AuditOptions(resamples=20, permutations=19)
COLUMNS = {"score": "p", "group": "sex", "label": "y"}
FAST: dict[str, Any] = {
    "metrics": ["kolmogorov", "wasserstein"],
    "options": OPTIONS,
    "random_state": 3,
}


def people(rows: int = 400, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    sex, y = rng.choice(["f", "m"], rows), rng.integers(0, 2, rows)
    race = rng.choice(["a", "b", "c", "d"], rows, p=[0.6, 0.3, 0.07, 0.03])
    score = np.clip(0.45 + 0.1 * (sex == "m") + 0.1 * y + rng.normal(0, 0.2, rows), 0, 1).round(2)
    return pl.DataFrame(
        {
            "id": [f"person-{number}" for number in range(rows)],
            "p": score,
            "sex": sex,
            "race": race,
            "y": y,
        }
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "scores.csv"
    people().write_csv(path)
    return path


@pytest.fixture(scope="module")
def honest(data: Path) -> Path:
    folder = data.parent / "honest"
    found = audit_file(data, **COLUMNS, **FAST)
    found.rates("four-fifths").to_evidence(
        folder,
        title="Hiring",
        about={"who": "A. Auditor", "why": "review"},
        crosswalks=["ll144"],
        pdf=False,
    )
    return folder


@pytest.fixture
def folder(honest: Path, tmp_path: Path) -> Path:
    shutil.copytree(honest, tmp_path / "evidence")
    return tmp_path / "evidence"


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())


def rewrite_hash(folder: Path, name: str) -> None:
    """Let the manifest have the hash of a file that was changed, as a careful forger would."""
    manifest = read_json(folder / "MANIFEST.json")
    manifest["files"][name] = sha256((folder / name).read_bytes()).hexdigest()
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))


def test_honest_evidence_agrees_with_its_counts_and_its_data(honest: Path, data: Path) -> None:
    found = verify(honest, data=data)
    assert found.agrees is True
    assert {check.outcome for check in found.checks} == {"agrees"}
    assert (
        found.summary.splitlines()[0] == f"The evidence agrees in all {len(found.checks)} checks."
    )
    assert (
        verify(honest).summary.splitlines()[0].endswith("they do not detect a consistent forgery.")
    )


def test_no_row_and_no_identifier_is_inside(honest: Path, data: Path) -> None:
    content = b"".join(path.read_bytes() for path in honest.rglob("*") if path.is_file())
    assert b"person-" not in content
    assert str(data.parent).encode() not in content


def test_the_manifest_says_how_the_evidence_was_made(honest: Path, data: Path) -> None:
    manifest = read_json(honest / "MANIFEST.json")
    files = {
        path.relative_to(honest).as_posix(): path for path in honest.rglob("*") if path.is_file()
    }
    assert manifest["files"] == {
        name: sha256(path.read_bytes()).hexdigest()
        for name, path in files.items()
        if name != "MANIFEST.json"
    }
    provenance = manifest["provenance"]
    assert provenance["files"][0]["sha256"] == sha256(data.read_bytes()).hexdigest()
    assert provenance["about"] == {"who": "A. Auditor", "why": "review"}
    assert provenance["seed"] == 3
    assert {"resamples": 20, "confidence": 0.95, "standard": "four-fifths"}.items() <= manifest[
        "parameters"
    ].items()
    assert provenance["call"].startswith("audit_file('scores.csv'")


def path_of(place: str) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in place.split("/")]


def changed(value: Any) -> Any:
    """A value like the given one, and another."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 1.001 + 0.001 if isinstance(value, float) else value + 1
    if isinstance(value, list):
        return [*value, "one more"]
    if isinstance(value, dict):
        return {**value, "one more": 1}
    return "other" if value is None else f"{value}!"


def change_json(name: str, place: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content, (*parents, last) = read_json(folder / name), path_of(place)
        inside = reduce(lambda value, key: value[key], parents, content)
        inside[last] = changed(inside[last])
        (folder / name).write_text(json.dumps(content, indent=1))

    return change


def change_text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return change


def change_cell(name: str, column: str) -> Callable[[Path], None]:
    """Change the first number of a column."""

    def change(folder: Path) -> None:
        table = pl.read_csv(folder / name, infer_schema=False)
        at = next(row for row, cell in enumerate(table[column]) if cell)
        cells = table[column].to_list()
        cells[at] = str(float(cells[at]) + 0.01)
        table.with_columns(pl.Series(column, cells)).write_csv(folder / name)

    return change


FIGURES = [
    *(
        f"findings/0/{name}"
        for name in ("value", "sizes/0", "unbiased", "interval/low", "certified", "p_value", "at")
    ),
    *(
        f"findings/1/{name}"
        for name in ("joint_interval/high", "significant", "groups/0", "metric", "shares/0")
    ),
    *(
        f"decisions/0/rates/0/{name}"
        for name in ("selection_rate", "ratio", "selected", "p_value", "interval/high")
    ),
    *(
        "decisions/0/selection_ratio",
        "decisions/0/threshold",
        "by_group/0/groups/0/auc/value",
        "rows",
        "left_out",
    ),
    *("distributions/0/curves/grid/3", "summary/0", "settings/min_group_size", "confidence"),
]
MANIFEST = [
    *(
        "files/report.html",
        "provenance/call",
        "provenance/time",
        "provenance/seed",
        "provenance/about/who",
    ),
    *(
        "provenance/versions/numpy",
        "provenance/files/0/sha256",
        "provenance/rows_read",
        "parameters/confidence",
    ),
    *("parameters/resamples", "parameters/max_groups", "parameters/standard"),
    *("parameters/threshold", "platform", "min_cell", "crosswalks"),
]
TAMPERED: dict[str, tuple[str, Callable[[Path], None]]] = {
    **{
        f"audit.json {place}": ("audit.json", change_json("audit.json", place)) for place in FIGURES
    },
    **{
        f"manifest {place}": ("MANIFEST.json", change_json("MANIFEST.json", place))
        for place in MANIFEST
    },
    **{
        f"{table} {column}": (f"tables/{table}.csv", change_cell(f"tables/{table}.csv", column))
        for table, columns in {
            "findings": ("value", "joint_low"),
            "rates": ("rate", "ratio"),
            "by_group": ("value",),
        }.items()
        for column in columns
    },
    "crosswalk": (
        "tables/crosswalk-ll144.csv",
        change_text("tables/crosswalk-ll144.csv", "ratio", "RATIO"),
    ),
    "page number": (
        "report.html",
        change_text("report.html", "percentage points", "percentage point"),
    ),
    "page data": ("report.html", change_text("report.html", '"value"', '"values"')),
    "readme": ("README.txt", change_text("README.txt", "400 read", "401 read")),
}


def test_there_are_fifty_ways_of_tampering() -> None:
    assert len(TAMPERED) >= 50


@pytest.mark.extended
@pytest.mark.parametrize("name", TAMPERED)
def test_tampering_is_found_even_with_a_new_hash(name: str, folder: Path) -> None:
    file, change = TAMPERED[name]
    change(folder)
    if file != "MANIFEST.json":
        rewrite_hash(folder, file)
    assert verify(folder).agrees is False


@pytest.mark.parametrize(("times", "agrees"), [(1 + 1e-6, False), (1 + 1e-12, True)])
def test_figures_may_differ_by_rounding_and_no_more(
    times: float, agrees: bool, folder: Path
) -> None:
    content = read_json(folder / "audit.json")
    content["findings"][0]["value"] *= times
    (folder / "audit.json").write_text(json.dumps(content, indent=1))
    rewrite_hash(folder, "audit.json")
    assert (outcomes(folder)["figures"] == "agrees") is agrees


@pytest.mark.parametrize(
    "name", ["report.html", "audit.json", "counts.state", "tables/rates.csv", "README.txt"]
)
def test_a_file_that_is_changed_removed_or_added_is_named(name: str, folder: Path) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] + b"?")
    (folder / "notes.txt").write_text("added")
    found = verify(folder)
    assert {check.facts["name"] for check in found.checks if check.kind == "changed_file"} == {name}
    assert {check.facts["name"] for check in found.checks if check.kind == "unlisted_file"} == {
        "notes.txt"
    }
    (folder / name).unlink()
    assert outcomes(folder)["missing_file"] == "differs"


@pytest.mark.parametrize(
    "name", ["report.html", "tables/rates.csv", "tables/crosswalk-ll144.csv", "README.txt"]
)
def test_a_file_that_the_manifest_was_made_to_forget_is_missing(name: str, folder: Path) -> None:
    (folder / name).unlink()
    manifest = read_json(folder / "MANIFEST.json")
    del manifest["files"][name]
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))
    found = verify(folder)
    assert found.agrees is False
    assert [check.facts["name"] for check in found.checks if check.kind == "missing_file"] == [name]


def test_a_file_that_no_figure_gives_is_named_even_if_the_manifest_lists_it(folder: Path) -> None:
    (folder / "tables" / "summary.csv").write_text("group,rate\nf,1.0\n")
    rewrite_hash(folder, "tables/summary.csv")
    found = verify(folder)
    assert found.agrees is False
    assert "DIFFERS: tables/summary.csv is no file of evidence" in str(found)


@pytest.mark.parametrize(
    ("name", "field"), [("audit.json", "rows_read"), ("MANIFEST.json", "seed")]
)
def test_a_field_that_stands_twice_is_found(name: str, field: str, folder: Path) -> None:
    """People read the first one, and programs the last."""
    text = (folder / name).read_text()
    assert text.count(f'"{field}"') == 1
    (folder / name).write_text(text.replace(f'"{field}"', f'"{field}": 9999, "{field}"'))
    if name != "MANIFEST.json":
        rewrite_hash(folder, name)
    assert outcomes(folder)["unusable"] == "differs"


def test_a_difference_is_shown_with_the_received_and_the_expected_value(
    folder: Path, data: Path
) -> None:
    content = read_json(folder / "audit.json")
    true = content["findings"][0]["value"]
    content["findings"][0]["value"] = 0.987
    (folder / "audit.json").write_text(json.dumps(content))
    said = verify(folder).summary
    assert f"findings[0].value (received 0.987, expected {true!r})" in said
    assert re.search(
        r"tables/findings.csv differs .* received '[^']*', expected '[^']*0\.987", said
    )
    other = folder.parent / "other.csv"
    other.write_text(data.read_text().replace("0", "1", 1))
    (stated,) = (
        one["sha256"] for one in read_json(folder / "MANIFEST.json")["provenance"]["files"]
    )
    assert f", expected {stated}." in verify(folder, data=other).summary


def test_rows_of_suppressed_groups_are_not_called_missing_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sex = np.repeat(["f", "m", "d", "x"], [300, 300, 40, 12])
    made = audit(None, rng.random(652), sensitive_features={"sex": sex}, random_state=0)
    made.to_evidence(tmp_path / "a", min_cell=10, pdf=False)
    text = (tmp_path / "a" / "report.html").read_text()
    assert "sex is missing or suppressed in 12 of 652 rows" in text
    # its 12 rows are in one interval, which the threshold divides
    assert "Not compared: sex “x”" in text
    assert verify(tmp_path / "a").agrees


def test_weights_that_are_added_in_another_order_are_the_same_counts(tmp_path: Path) -> None:
    """An audit sorts weighted rows, and a recount takes them as they come: sums differ in their
    last digits.
    """
    path, rng = tmp_path / "scores.csv", np.random.default_rng(0)
    people(5000).with_columns(p=pl.col("p").round(1), w=rng.lognormal(5, 3, 5000)).write_csv(path)
    audit_file(path, **COLUMNS, weight="w", **FAST).to_evidence(tmp_path / "evidence", pdf=False)
    assert outcomes(tmp_path / "evidence", data=path)["recount"] == "agrees"
    people(5000).with_columns(p=pl.col("p").round(1), w=rng.lognormal(5, 3, 5000)).write_csv(path)
    assert outcomes(tmp_path / "evidence", data=path)["recount"] == "differs"


def test_other_data_are_found_and_described(honest: Path, data: Path, tmp_path: Path) -> None:
    other = tmp_path / "scores.csv"
    table = people()
    table.with_columns(p=1 - pl.col("p")).write_csv(other)
    assert {"data": "differs", "recount": "differs"}.items() <= outcomes(honest, data=other).items()
    assert (
        "DIFFERS: scores.csv has 400 rows and 0 excluded rows; the evidence has 400 and 0. 4 of 4 "
        "cells" in str(verify(honest, data=other))
    )
    unscored = table.head(1).with_columns(p=pl.lit(None, pl.Float64))
    pl.concat([table, unscored]).write_csv(other)  # an excluded row changes no cell
    assert {"data": "differs", "recount": "differs"}.items() <= outcomes(honest, data=other).items()
    assert "0 of 4 cells" in str(verify(honest, data=other))
    assert "0 of 4 cells" in str(verify(honest, data=other))
    table.write_csv(other, line_terminator="\r\n")  # the same rows in other bytes
    assert {"data": "differs", "recount": "agrees"}.items() <= outcomes(honest, data=other).items()


def test_counts_of_other_rows_are_found_by_the_data_alone(data: Path, tmp_path: Path) -> None:
    """A forger who writes new evidence of other rows, with the sha256 of the real ones, agrees
    with himself.
    """
    forged = tmp_path / "scores.csv"
    people(seed=1).write_csv(forged)
    audit_file(forged, **COLUMNS, **FAST).to_evidence(tmp_path / "forged", pdf=False)
    real = sha256(data.read_bytes()).hexdigest()
    for name in ("audit.json", "report.html", "README.txt", "MANIFEST.json"):
        text = (tmp_path / "forged" / name).read_text()
        (tmp_path / "forged" / name).write_text(
            text.replace(sha256(forged.read_bytes()).hexdigest(), real)
        )
    for name in ("audit.json", "report.html", "README.txt"):
        rewrite_hash(tmp_path / "forged", name)
    found = outcomes(tmp_path / "forged", data=data)
    assert found.pop("recount") == "differs"
    assert found.pop("page") == "differs"  # the head of the printed page has a part of the sha256
    assert set(found.values()) == {"agrees"}


AUDITS: dict[str, Callable[[Path], Any]] = {
    "arrays": lambda data: audit(
        people()["y"], people()["p"], sensitive_features=people()["sex"].to_list(), **FAST
    ),
    "decisions": lambda data: audit(
        None,
        np.where(people()["p"] > 0.5, "yes", "no"),
        sensitive_features=people()["sex"],
        favorable_decision="yes",
        **FAST,
    ),
    "low scores": lambda data: audit(
        people()["y"],
        700 - 100 * people()["p"],
        sensitive_features=people()["sex"],
        favorable="low",
        threshold=650,
        **FAST,
    ),
    "single precision": lambda data: audit(
        None,
        people()["p"].to_numpy().astype(np.float32),
        sensitive_features=people()["sex"],
        threshold=0.7,
        **FAST,
    ),
    "weights and strata": lambda data: audit(
        people()["y"],
        people()["p"],
        sensitive_features=people()[["sex"]],
        control_features=people()[["race"]],
        sample_weight=np.linspace(0.5, 2, 400),
        **FAST,
    ),
    "intersections of a table": lambda data: audit_table(
        people(), score="p", group=["sex", "race"], label="y", intersectional=True, **FAST
    ),
    "a standard": lambda data: audit_file(data, score="p", group=["sex", "race"], **FAST).rates(
        "credit", reference={"sex": "m", "race": "a"}
    ),
    "counts": lambda data: (
        AuditState(name="Monday")
        .add(people()["y"], people()["p"], sensitive_features=people()[["sex"]])
        .audit(**FAST)
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize("name", AUDITS)
def test_evidence_of_any_audit_agrees_and_has_its_figures(
    name: str, data: Path, tmp_path: Path
) -> None:
    made = AUDITS[name](data)
    made.to_evidence(tmp_path / "evidence.zip", pdf=False)
    found = verify(tmp_path / "evidence.zip")
    assert found.agrees is True, str(found)
    with zipfile.ZipFile(tmp_path / "evidence.zip") as archive:
        content = json.loads(archive.read("audit.json"))
    record = (made.audit if hasattr(made, "audit") else made).record
    assert [one["value"] for one in content["findings"]] == pytest.approx(
        [one.value for one in record.findings]
    )
    published = [rate for table in content["decisions"] for rate in table["rates"]]
    rates = [rate for table in record.decisions for rate in table.rates]
    assert [one["selection_rate"] for one in published] == pytest.approx(
        [one.selection_rate for one in rates]
    )
    assert [one["ratio"] for one in published] == pytest.approx([one.ratio for one in rates])
    assert [table["favorable_decision"] for table in content["decisions"]] == [
        one.favorable_decision for one in record.decisions
    ]


def test_a_file_that_is_not_read_by_default_is_counted_as_it_was_read(tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    table = people().with_columns(pl.col("p").cast(pl.String).str.replace(".", ",", literal=True))
    table.write_csv(path, separator=";")
    reading = ReadOptions(format="csv", decimal=",", missing=["d"])
    age = {"score": "p", "group": "race", "label": "y", "reading": reading}
    audit_file(path, **age, **FAST).to_evidence(tmp_path / "evidence", pdf=False)
    assert verify(tmp_path / "evidence", data=path).agrees is True


def test_another_processor_gives_the_same_figures(honest: Path) -> None:
    """Without vector instructions, sums are rounded otherwise."""
    features = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])  # type: ignore[call-overload, index]
    code = "import sys; from metrifair import evidence; print(evidence.verify(sys.argv[1]).agrees)"
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(features)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(honest)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True"]


@pytest.mark.extended
@pytest.mark.skipif(not has_printer(), reason="there is no browser that prints")
def test_a_print_is_compared_with_the_page(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = audit_file(
        data, score="p", group="sex", metrics=["kolmogorov"], options=OPTIONS, random_state=0
    )
    made.to_evidence(tmp_path / "evidence")
    print_file = tmp_path / "evidence" / "report.pdf"
    assert outcomes(tmp_path / "evidence")["print"] == "agrees"
    content = print_file.read_bytes()
    # as the browser just printed it
    monkeypatch.setattr(verification, "printed_page", lambda _: content)
    for old, new, agrees in (
        (b"/Pages", b"/Paged", False),
        (b"/Producer (Skia", b"/Producer (Skib", None),
    ):
        assert old in content
        print_file.write_bytes(content.replace(old, new, 1))
        rewrite_hash(tmp_path / "evidence", "report.pdf")
        assert verify(tmp_path / "evidence").agrees is agrees


def test_without_a_browser_the_print_is_not_checked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "report.pdf").write_bytes(b"%PDF")
    rewrite_hash(folder, "report.pdf")
    monkeypatch.setenv("PATH", "")
    assert outcomes(folder)["browser"] == "unchecked"


def test_another_version_is_named_and_not_compared(folder: Path) -> None:
    for name in ("MANIFEST.json", "audit.json"):
        content = read_json(folder / name)
        content["provenance"]["versions"]["metrifair"] = "0.0.1"
        (folder / name).write_text(json.dumps(content))
    rewrite_hash(folder, "audit.json")
    found = verify(folder)
    assert found.agrees is None
    assert "report.html was written by metrifair 0.0.1" in str(found)


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("mine", "other"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(command, check=True, capture_output=True)
    return tmp_path / "mine", tmp_path / "other"


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen")
def test_a_signature_shows_who_signed_and_what(
    data: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    mine, other = (key.with_suffix(".pub") for key in keys)
    folder = tmp_path / "evidence"
    audit_file(data, score="p", group="sex", **FAST).to_evidence(folder, sign=keys[0], pdf=False)
    assert verify(folder, key=mine).agrees is True
    assert outcomes(folder, key=other)["signature"] == "differs"
    assert outcomes(folder)["signature"] == "unchecked"
    manifest = (folder / "MANIFEST.json").read_text()
    (folder / "MANIFEST.json").write_text(manifest + "\n")
    assert outcomes(folder, key=mine)["signature"] == "differs"
    with pytest.raises(DataError, match="is not the public key"):
        verify(folder, key=keys[0])
    (folder / "MANIFEST.json.sig").unlink()
    assert outcomes(folder, key=mine)["signature"] == "differs"
    with pytest.raises(DataError, match="ssh-keygen cannot sign"):
        audit_file(data, score="p", group="sex", **FAST).to_evidence(
            tmp_path / "b", sign="no key", pdf=False
        )


def test_without_ssh_keygen_signing_is_refused_with_its_remedy(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DataError, match=r"signatures need ssh-keygen.*install OpenSSH"):
        audit_file(data, score="p", group="sex", **FAST).to_evidence(
            tmp_path / "b", sign="key", pdf=False
        )
    assert not (tmp_path / "b").exists()


@pytest.mark.extended
def test_what_cannot_be_evidence_is_refused(
    honest: Path, data: Path, tmp_path: Path, refused: Refusals
) -> None:
    made = audit_file(data, score="p", group="sex", **FAST)
    with refused(DataError):
        made.to_evidence(honest)
    with pytest.raises(DataError, match="without its rows"):
        read_audit(honest / "audit.json").to_evidence(tmp_path / "a")
    with refused(DataError):
        made.to_evidence(tmp_path / "a", crosswalks="ll145")
    with pytest.raises(DataError, match="min_cell"):
        made.to_evidence(tmp_path / "a", min_cell=0)
    with refused(DataError):
        audit_file(data, score="p", group="sex", threshold="median", **FAST).to_evidence(
            tmp_path / "a"
        )
    large = AuditOptions(in_memory_rows=10)
    with pytest.raises(DataError, match="not in memory"):
        audit_file(data, score="p", group="sex", options=large, random_state=0).to_evidence(
            tmp_path / "a"
        )
    audit(None, [0.1, 0.9], sensitive_features=["a", "b"], random_state=0).to_evidence(
        tmp_path / "a", pdf=False
    )
    with pytest.raises(DataError, match="names no columns"):
        verify(tmp_path / "a", data=data)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (None, "there is no MANIFEST.json"),
        ("[]", "cannot read MANIFEST.json"),
        ('{"kind": "metrifair evidence", "version": 2}', "cannot read MANIFEST.json"),
    ],
)
def test_a_folder_without_a_manifest_is_no_evidence(
    manifest: str | None, words: str, tmp_path: Path
) -> None:
    if manifest is not None:
        (tmp_path / "MANIFEST.json").write_text(manifest)
    with pytest.raises(DataError, match=words):
        verify(tmp_path)


def test_what_is_neither_folder_nor_archive_is_refused(
    data: Path, tmp_path: Path, refused: Refusals
) -> None:
    for path in (data, tmp_path / "nothing"):
        with refused(DataError):
            verify(path)


def test_evidence_of_another_processor_agrees() -> None:
    """Written by ARM code (in an emulator) with ``metrifair evidence scores.csv ... --no-pdf``; CI
    runs on x86-64 too.

    Write it again, on ARM, when the content of ``audit.json`` changes. One sentence of its notes
    has the words of a later version; every figure is of ARM.
    """
    found = verify(Path(__file__).parent / "evidence-aarch64.zip")
    assert {check.kind: check.outcome for check in found.checks if check.kind != "page"} == {
        "files": "agrees",
        "provenance": "agrees",
        "figures": "agrees",
    }
    (figures,) = (check.facts["figures"] for check in found.checks if check.kind == "figures")
    assert figures == "4,011"


def make_of_version(folder: Path, version: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Let another version have written the evidence, with other fields in its audit.json."""
    for name in ("MANIFEST.json", "audit.json"):
        content = read_json(folder / name)
        content["provenance"]["versions"]["metrifair"] = version
        if name == "audit.json":
            change(content)
        (folder / name).write_text(json.dumps(content))
    rewrite_hash(folder, "audit.json")


def add_fields(content: dict[str, Any]) -> None:
    content["median_gap"] = 0.25
    content["findings"][0]["effect_size"] = 1.5
    content["provenance"]["license"] = "none"


def remove_fields(content: dict[str, Any]) -> None:
    del content["by_group"]
    for finding in content["findings"]:
        del finding["detectable"]


@pytest.mark.parametrize(
    ("change", "places"),
    [
        (add_fields, {"median_gap", "findings[0].effect_size", "provenance.license"}),
        (remove_fields, {"by_group", "findings[0].detectable"}),
    ],
)
def test_fields_of_another_version_are_listed_and_the_common_ones_compared(
    change: Callable[[dict[str, Any]], object], places: set[str], folder: Path
) -> None:
    make_of_version(folder, "9.0", change)
    found = verify(folder)
    assert found.agrees is None
    (fields,) = (check for check in found.checks if check.kind == "fields")
    assert places <= set(fields.facts["places"])
    assert "Not checked by this version: " in str(found)
    assert outcomes(folder)["figures"] == outcomes(folder)["provenance"] == "agrees"

    def tamper(content: dict[str, Any]) -> None:
        content["findings"][0]["value"] += 0.01

    make_of_version(folder, "9.0", tamper)
    assert verify(folder).agrees is False


@pytest.mark.parametrize("change", [add_fields, remove_fields])
def test_fields_that_are_added_or_removed_within_a_version_are_found(
    change: Callable[[dict[str, Any]], object], folder: Path
) -> None:
    make_of_version(folder, __version__, change)
    assert outcomes(folder)["figures"] == "differs"


@pytest.mark.extended
def test_crosswalks_are_on_the_page_and_say_what_was_read(data: Path, tmp_path: Path) -> None:
    made = audit_file(
        data, score="p", group="sex", metrics=["kolmogorov"], options=OPTIONS, random_state=0
    )
    made.to_evidence(tmp_path / "evidence", crosswalks=crosswalk_names(), pdf=False)
    assert verify(tmp_path / "evidence").agrees is True
    for file in ("report.html", "README.txt"):
        text = " ".join(html.unescape((tmp_path / "evidence" / file).read_text()).split())
        for table in map(crosswalk_named, crosswalk_names()):
            limits = table.source.limits
            assert "not read" in limits or "could not be read" in limits
            for sentence in (*table.sources, *(item["item"] for item in table.items)):
                assert sentence in text


def test_figures_of_another_version_agree_where_its_words_differ(folder: Path) -> None:
    manifest, published = read_json(folder / "MANIFEST.json"), read_json(folder / "audit.json")
    for content in (manifest, published):
        content["provenance"]["versions"]["metrifair"] = "0.9"
    published["summary"][0] = "The same in other words."
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))
    (folder / "audit.json").write_text(json.dumps(published))
    rewrite_hash(folder, "audit.json")
    found = outcomes(folder)
    assert found == {
        "files": "agrees",
        "provenance": "agrees",
        "figures": "agrees",
        "page": "unchecked",
    }
