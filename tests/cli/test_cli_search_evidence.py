"""`metrifair frontier --evidence` and `metrifair verify`: a search from a file, and its checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.seams.cli import TrainingFile

BASE = ["--label", "hired", "--group", "sex", "--model", "linear", "--strengths", "0,1,3"]
LIMIT = ["--max-unfairness", "0.5", "--seed", "0"]


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People, two of them without a label: numbers of rows differ from places in the search."""
    rng = np.random.default_rng(3)
    sex = rng.integers(2, size=600)
    skill = rng.normal(size=600) + 0.5 * sex
    hired = np.where(skill + 0.6 * rng.normal(size=600) > 0, "yes", "no").astype(object)
    hired[[3, 100]] = None
    table = {"sex": np.where(sex, "men", "women"), "skill": skill.round(5), "hired": hired.tolist()}
    path = tmp_path_factory.mktemp("people") / "people.csv"
    pl.DataFrame(table).write_csv(path)
    return path


def test_a_search_is_written_and_verified_with_all_that_was_kept(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    folder = tmp_path / "search"
    kept = ["--output", tmp_path / "m.metrifair", "--scores", tmp_path / "scores.csv"]
    about = ["--about", "who=A. Validator", "--title", "Hiring"]
    reason = "The best within the limit"
    done = call(
        "frontier", csv, *BASE, *LIMIT, *kept, *about, "--evidence", folder, "--reason", reason
    )
    assert done.exit_code == 0, done.output
    assert f"Evidence: {folder}" in done.output.replace("\n", "")
    readme = (folder / "README.txt").read_text()
    assert readme.startswith("Hiring\n")
    assert "who: A. Validator" in readme
    assert f"Reason: {reason}" in readme
    whole = [
        "--data",
        csv,
        "--scores",
        tmp_path / "scores.csv",
        "--model",
        tmp_path / "m.metrifair",
    ]
    done = call("verify", folder, *whole)
    assert done.exit_code == 0, done.output
    for text in (
        "The groups and labels of scores.csv are those of the data.",
        "The model in m.metrifair gives the scores of the delivered model.",
        "gives the standard errors, the choice and the expected figures",
    ):
        assert text in " ".join(done.output.split())

    other = tmp_path / "other.csv"
    # one of the five has no label, so that it was not in the search
    other.write_text(csv.read_text().replace("women", "men", 5))
    done = call("verify", folder, "--data", other, "--scores", tmp_path / "scores.csv")
    assert done.exit_code == 1
    assert "differ from those of the data in 4 rows" in " ".join(done.output.split())


def test_data_are_compared_as_the_search_read_them(tmp_path: Path, call: Any) -> None:
    """With numbers that are cut, words for missing values, and replacements."""
    rng = np.random.default_rng(3)
    age = rng.integers(18, 80, 700)
    skill = rng.normal(size=700) + age / 60
    hired = np.where(skill + 0.6 * rng.normal(size=700) > 0.8, "Approved", "Declined")
    sex = rng.choice(["f", "m", "-"], 700, p=[0.45, 0.45, 0.1])
    csv = tmp_path / "people.csv"
    table = {"age": age, "sex": sex, "skill": skill.round(5), "hired": hired}
    pl.DataFrame(table).write_csv(csv)
    folder = tmp_path / "search"
    reading = ["--missing", "-", "--replace", "Approved=1", "--replace", "Declined=0"]
    scores = ["--scores", tmp_path / "scores.csv"]
    groups = ["--label", "hired", "--group", "sex", "--group", "age", "--cuts", "age=30,50"]
    models = ["--model", "linear", "--strengths", "0,1", "--max-unfairness", "0.9", "--seed", "0"]
    done = call(
        *("frontier", csv, *groups, *models, *reading, *scores),
        *("--evidence", folder, "--reason", "because"),
    )
    assert done.exit_code == 0, done.output
    done = call("verify", folder, "--data", csv, *scores)
    assert done.exit_code == 0, done.output
    assert "groups and labels of scores.csv are those of the data" in " ".join(done.output.split())

    other = tmp_path / "other.csv"
    changed = age.copy()
    changed[5] = 25 if age[5] >= 30 else 60
    pl.DataFrame(table | {"age": changed}).write_csv(other)
    done = call("verify", folder, "--data", other, *scores)
    assert "differ from those of the data in 1 rows" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([*LIMIT, "--evidence", "e"], "--evidence needs --reason"),
        (["--evidence", "e", "--reason", "because"], "--evidence needs --max-unfairness"),
        ([*LIMIT, "--reason", "because"], "--reason needs --evidence"),
        ([*LIMIT, "--scores", "s.csv"], "--scores needs --evidence"),
        ([*LIMIT, "--min-cell", "10"], "--min-cell needs --evidence"),
    ],
)
def test_options_that_need_each_other(options: list[str], words: str, csv: Path, call: Any) -> None:
    done = call("frontier", csv, *BASE, *options)
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "contains files, which would mix with the evidence"),
        (["--weight", "skill_2"], "cannot show the figures of weights"),
        (["--cluster", "household"], "cannot show the figures of clusters"),
        (["--test", "0.3"], "cannot show the figures of test rows"),
        (["--utility", "f1"], "do not determine the utility"),
        (["--unfairness-of", "decisions", "--utility", "auc"], "do not determine the utility"),
    ],
)
def test_evidence_that_cannot_be_written_is_refused_before_the_training(
    options: list[str], words: str, tmp_path: Path, call: Any, monkeypatch: Any
) -> None:
    rng = np.random.default_rng(3)
    table = {
        "sex": rng.choice(["f", "m"], 200),
        "skill": rng.normal(size=200),
        "skill_2": rng.uniform(1, 2, 200),
        "household": rng.integers(0, 100, 200),
        "hired": rng.integers(0, 2, 200),
    }
    pl.DataFrame(table).write_csv(tmp_path / "people.csv")
    folder = tmp_path / "search"
    if not options:
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")

    def train(*_: object) -> None:
        raise AssertionError("models were trained")

    monkeypatch.setattr(TrainingFile, "frontier", train)
    about = ["--evidence", folder, "--reason", "because"]
    done = call("frontier", tmp_path / "people.csv", *BASE, *LIMIT, *about, *options)
    assert done.exit_code not in (0, None)
    assert words in " ".join(done.output.split())
