"""--cluster: rows of one person are all held out, or none of them is; without it, their
repetition is reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from metrifair import audit_file
from tests.cli.conftest import texts_of

TRAIN = ("--label", "hired", "--group", "sex", "--model", "linear")


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(300), 4)
    sex = rng.integers(2, size=300)[person]
    skill = rng.normal(size=300)[person] + sex
    path = tmp_path / "visits.csv"
    pl.DataFrame(
        {
            "person": [f"0{one}" for one in person],
            "visit": np.arange(len(person)),
            "skill": skill.round(3),
            "mood": rng.normal(size=len(person)).round(3),
            "sex": np.where(sex == 1, "men", "women"),
            "hired": np.where(skill + rng.normal(size=len(person)) > 0.5, "yes", "no"),
        }
    ).sample(fraction=1.0, shuffle=True, seed=0).write_csv(path)
    return path


def held_out_persons(path: Path, visits: Path) -> tuple[set[str], set[str]]:
    """Persons with a held-out visit, and persons with another one."""
    table = pl.read_csv(visits, schema_overrides={"person": pl.String})
    held_out = set(pl.read_csv(path)["visit"])
    inside = table.filter(pl.col("visit").is_in(list(held_out)))
    return set(inside["person"]), set(
        table.filter(~pl.col("visit").is_in(list(held_out)))["person"]
    )


@pytest.mark.extended
@pytest.mark.parametrize("cluster", [True, False])
def test_train_holds_out_all_rows_of_a_person_or_none(
    shell: Callable[..., Any], visits: Path, tmp_path: Path, *, cluster: bool
) -> None:
    kept = tmp_path / "held-out.csv"
    more = ("--cluster", "person") if cluster else ("--ignore", "person")
    done = shell(
        "train",
        visits,
        *TRAIN,
        "--id",
        "visit",
        "--test",
        0.25,
        "--held-out",
        kept,
        "--json",
        "-",
        *more,
    )
    assert done.returncode == 0, done.stderr
    inside, outside = held_out_persons(kept, visits)
    assert bool(inside & outside) != cluster
    assert len(inside) >= 60
    assert json.loads(done.stdout)["provenance"]["columns"]["cluster"] == ["person"] * cluster


@pytest.mark.extended
def test_repeated_ids_are_reported_with_the_option_that_helps(
    call: Callable[..., Any], visits: Path, tmp_path: Path
) -> None:
    said = " ".join(call("train", visits, *TRAIN, "--id", "person", "--test", 0.25).output.split())
    assert "have the same “person” as rows of another part" in said
    assert "Pass “person” as clusters (--cluster)" in said
    said = call("train", visits, *TRAIN, "--cluster", "person", "--test", 0.25).output
    assert "as rows of another part" not in " ".join(said.split())
    result = tmp_path / "front.json"
    options = ("--strengths", "0,1", "--folds", 2, "--json", result)
    for more, repeated in ((("--id", "person"), True), (("--cluster", "person"), False)):
        done = call("frontier", visits, *TRAIN, *options, *more)
        assert done.exit_code == 0, done.output
        notes = " ".join(texts_of(json.loads(result.read_text())))
        assert ("have the same “person” as rows of another part" in notes) == repeated
        assert ("1,200 rows form 300 clusters" in notes) != repeated


def test_a_cluster_column_must_exist_and_is_no_label(
    call: Callable[..., Any], visits: Path
) -> None:
    missing = call("train", visits, *TRAIN, "--cluster", "persons")
    assert missing.exit_code == 2
    assert "persons" in missing.output
    both = call("train", visits, *TRAIN, "--cluster", "hired")
    assert both.exit_code == 2
    assert "--label and --cluster both name 'hired'; they must be two columns" in " ".join(
        both.output.split()
    )


def test_an_audit_by_clusters_is_that_of_python_and_names_them(
    visits: Path, call: Any, tmp_path: Path
) -> None:
    roles = ("--score", "skill", "--group", "sex", "--cluster", "person")
    done = call(
        "audit",
        visits,
        *roles,
        "--json",
        tmp_path / "a.json",
        "--html",
        tmp_path / "a.html",
        "--seed",
        1,
    )
    assert done.exit_code == 0, done.output
    assert "form 300 clusters by “person”" in " ".join(done.output.split())
    written = json.loads((tmp_path / "a.json").read_text())
    direct = json.loads(
        audit_file(visits, score="skill", group="sex", clusters="person", random_state=1).to_json()
    )
    assert written["findings"] == direct["findings"]
    assert written["clusters"] == {"column": "person", "count": 300}
    assert written["provenance"]["columns"]["cluster"] == ["person"]
    page = (tmp_path / "a.html").read_text()
    assert "300 (person)" in page
    assert "form 300 clusters" in page


def test_comparisons_and_series_of_clusters_refuse_what_has_none(
    visits: Path, call: Any, tmp_path: Path
) -> None:
    scores = ("--score", "mood", "--group", "sex")
    clustered, plain, counts = (
        tmp_path / name for name in ("clustered.json", "plain.json", "counts.state")
    )
    assert call("audit", visits, *scores, "--cluster", "person", "--json", clustered).exit_code == 0
    assert call("audit", visits, *scores, "--json", plain).exit_code == 0
    assert (
        call("count", visits, *scores, "--score-range", "-9", "9", "--output", counts).exit_code
        == 0
    )
    again = tmp_path / "again.json"
    again.write_text(clustered.read_text())
    for command in ("compare", "monitor"):
        assert call(command, clustered, again, "--cluster", "person").exit_code == 0
        for other, words in (
            (plain, "treats rows as independent"),
            (counts, "counts contain no clusters"),
        ):
            done = call(command, clustered, other, "--cluster", "person")
            assert done.exit_code == 2
            assert words in " ".join(done.output.split())
            assert "Traceback" not in done.output
        assert "--cluster must be 'person'" in " ".join(
            call(command, clustered, again, "--cluster", "id").output.split()
        )
    for refused in (
        ("count", visits, *scores),
        ("merge", counts),
        ("evidence", visits, *scores),
    ):
        done = call(*refused, "--cluster", "person")
        assert done.exit_code == 2
        words = " ".join(done.output.split())
        assert "No such option '--cluster'. Counts of scores contain no clusters" in words


def test_an_unknown_cluster_column_is_one_line(visits: Path, call: Any) -> None:
    done = call("audit", visits, "--score", "skill", "--group", "sex", "--cluster", "persons")
    assert done.exit_code == 2
    assert "has no column 'persons' (given as cluster)" in " ".join(done.output.split())
