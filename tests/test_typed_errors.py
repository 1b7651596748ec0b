"""Odd input of every kind ends in an error of ours that says what is wrong, or in a result;
never in a traceback.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from metrifair import (
    AuditOptions,
    AuditState,
    DataError,
    FairClassifier,
    audit,
    audit_file,
    audit_table,
    compare,
    frontier,
    load,
)
from metrifair.cli import main
from metrifair.errors import ModelFileError
from tests.expected_errors import Refusals
from tests.seams.saving import read, write

QUICK = AuditOptions(resamples=0, permutations=0)
RNG = np.random.default_rng(0)
SCORE, GROUP = RNG.random(80).round(2), np.array(["a", "b"] * 40)
X, Y = RNG.normal(size=(80, 2)), RNG.integers(0, 2, 80)


def call(*arguments: object) -> Any:
    found = CliRunner().invoke(main, [str(one) for one in arguments])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found


def written(path: Path, **changes: Any) -> Path:
    """An audit as JSON, with changes; names of groups may be anything."""
    audit(None, SCORE, sensitive_features={"g": GROUP}, options=QUICK).to_json(path)
    content = json.loads(path.read_text())
    for name, change in changes.items():
        change(content[name])
    path.write_text(json.dumps(content))
    return path


def test_curves_of_another_length_than_their_grid(tmp_path: Path, refused: Refusals) -> None:
    def cut(distributions: list[dict[str, Any]]) -> None:
        distributions[0]["curves"]["cumulative"]["a"].pop()

    good, bad = written(tmp_path / "good.json"), written(tmp_path / "bad.json", distributions=cut)
    found = call("compare", good, bad, "--html", tmp_path / "page.html")
    assert found.exit_code == 2
    assert "the cumulative curve of group 'a'" in found.output
    with refused(DataError):
        compare(good, bad).to_html(tmp_path / "page.html")


def test_a_range_too_narrow_for_bins(tmp_path: Path, refused: Refusals) -> None:
    with refused(DataError):
        AuditState(score_range=(0.0, 5e-324))
    state = AuditState(score_range=(0.0, 1e-300)).add(
        None, SCORE * 1e-300, sensitive_features=GROUP
    )
    state.save(tmp_path / "good.state")
    content = read(tmp_path / "good.state")
    write(
        tmp_path / "bad.state", content._replace(meta=content.meta | {"score_range": [0.0, 5e-324]})
    )
    with refused(ModelFileError):
        load(tmp_path / "bad.state")


def test_a_link_to_itself(tmp_path: Path) -> None:
    link = tmp_path / "loop.csv"
    link.symlink_to(link)
    with pytest.raises(DataError):
        audit_file(link, score="p", group="g")
    found = call("audit", link, "--score", "p", "--group", "g")
    assert found.exit_code == 2
    pl.DataFrame({"p": SCORE, "g": GROUP}).write_csv(tmp_path / "good.csv")
    found = call("audit", tmp_path / "good.csv", "--score", "p", "--group", "g", "--json", link)
    assert found.exit_code == 2
    assert "cannot write" in found.output


@pytest.mark.parametrize("estimator", ["text", b"text", 3, None])
def test_a_frontier_of_no_estimator(estimator: Any, refused: Refusals) -> None:
    with refused(DataError):
        frontier(estimator, X, Y, sensitive_features=GROUP)


ESCAPES = "\x1b[31mred\x1b[0m\x07"


def test_a_card_has_no_escape_codes_on_a_terminal(tmp_path: Path) -> None:
    FairClassifier(0.0, model="linear").fit(X, Y).save(tmp_path / "m.metrifair")

    def rename(findings: list[dict[str, Any]]) -> None:
        for one in findings:
            one["attribute"], one["groups"] = ESCAPES, [ESCAPES, "b"]

    bad = written(tmp_path / "bad.json", findings=rename)
    found = call("card", tmp_path / "m.metrifair", "--audit", bad)
    assert found.exit_code == 0, found.output
    assert "\x1b" not in found.output
    assert "\x07" not in found.output


@pytest.mark.extended
@pytest.mark.parametrize("size", [10_000, 10_001])
def test_absurd_names_of_groups(size: int, tmp_path: Path) -> None:
    names = np.where(GROUP == "a", "a" * size, "b")
    frame = pl.DataFrame({"p": SCORE, "g": names})
    frame.write_csv(tmp_path / "names.csv")
    asked: dict[str, Any] = {"score": "p", "group": "g", "options": QUICK}
    if size > 10_000:
        match = "g contains a name of 10,001 characters, and names have at most 10,000"
        for work in (
            lambda: audit_file(tmp_path / "names.csv", **asked),
            lambda: audit_table(frame, **asked),
        ):
            with pytest.raises(DataError, match=match):
                work()
        with pytest.raises(DataError, match=match):
            audit(None, SCORE, sensitive_features={"g": names}, options=QUICK)
        return
    found = call("audit", tmp_path / "names.csv", "--score", "p", "--group", "g")
    assert found.exit_code in (0, 1), found.output
    assert "…" in found.output
    assert max(map(len, found.output.splitlines())) < 3 * size


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-be", "utf-32-le", "utf-16"])
def test_the_encoding_of_a_file_is_named(encoding: str, tmp_path: Path) -> None:
    text = pl.DataFrame({"p": SCORE, "g": GROUP}).write_csv()
    mark = "" if encoding in ("utf-32", "utf-16") else "\ufeff"
    (tmp_path / "wide.csv").write_bytes((mark + text).encode(encoding))
    named = encoding[:6]
    with pytest.raises(DataError, match=f"is {named.upper()} text; pass .*encoding='{named}'"):
        audit_file(tmp_path / "wide.csv", score="p", group="g")


@pytest.mark.parametrize(
    "address", ["http://a.b/c.csv", "https://a.b/c.csv", "s3://bucket/c.parquet", "gs://b/c.csv"]
)
def test_addresses_that_are_no_database(address: str) -> None:
    kind = address.partition(":")[0]
    found = call("audit", address, "--score", "p", "--group", "g")
    assert found.exit_code == 2
    said = " ".join(found.output.split())
    assert f"{kind}:// addresses are not supported; download the file and pass its path" in said


def test_the_address_of_a_file(tmp_path: Path) -> None:
    found = call("audit", f"file://{tmp_path}/c.csv", "--score", "p", "--group", "g")
    assert "pass its path, without file://" in " ".join(found.output.split())
