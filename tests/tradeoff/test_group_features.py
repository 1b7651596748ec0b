"""Features that show the group: in other words, by finer values, by chance, and where wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from click.testing import CliRunner

from metrifair import FairClassifier, frontier
from metrifair.cli import main
from tests.seams.tradeoff import data_set, group_feature_notes

N = 300
RNG = np.random.default_rng(0)
SEX = RNG.choice(["f", "m"], N)
LABEL = RNG.integers(2, size=N)
SAID = "names the group of sex"


def notes(sex: Any = SEX, **features: Any) -> list[dict[str, Any]]:
    rows = len(sex)
    table = pl.DataFrame({"age": RNG.normal(size=rows), **features})
    named: dict[str, Any] = {
        "regression": False,
        "criterion": "statistical_parity",
        "contrast": "pairs",
    }
    data = data_set(table, LABEL[:rows], {"sex": sex}, None, **named)
    return [dict(note.facts) for note in group_feature_notes(data)]


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(main, [*arguments])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_a_feature_that_names_the_group() -> None:
    facts = {"column": "woman", "attribute": "sex", "equal": True, "rows": N}
    assert notes(woman=SEX == "f") == [facts]
    assert notes(woman=np.where(SEX == "f", 1.0, 0.0)) == [facts]


def test_a_feature_of_finer_values_that_determine_the_group() -> None:
    title = np.where(SEX == "m", "Mr", RNG.choice(["Ms", "Mrs"], N))
    facts = {"column": "title", "attribute": "sex", "equal": False, "rows": N}
    assert notes(title=title) == [facts]


def test_rows_without_a_group_do_not_count() -> None:
    sex = SEX.astype(object)
    sex[:20] = None
    (facts,) = notes(sex, woman=SEX == "f")
    assert facts["rows"] == N - 20


def test_rows_without_the_feature_do_not_count() -> None:
    woman = np.where(SEX == "f", "yes", "no").astype(object)
    woman[::50] = None
    (facts,) = notes(woman=woman)
    assert facts["rows"] == N - 6
    assert notes(woman=np.full(N, None)) == []


def test_one_other_row_and_chance_are_no_such_feature() -> None:
    almost = SEX == "f"
    almost[-1] = not almost[-1]
    assert notes(woman=almost) == []
    number = np.arange(N)
    assert notes(number=number, constant=np.zeros(N)) == []
    few = 8
    assert notes(SEX[:few], woman=SEX[:few] == "f") == []


def test_a_frontier_notes_it_and_the_command_does_not_where_it_is_wanted(
    tmp_path: Path,
) -> None:
    X = np.stack([RNG.normal(size=N), SEX == "f"], axis=1).astype(float)
    front = frontier(
        FairClassifier(model="mlp"),
        X,
        LABEL,
        sensitive_features={"sex": SEX},
        strengths=[0, 1],
        random_state=0,
    )
    (note,) = (note for note in front.record.notes if note.kind == "group_feature")
    assert note.facts["column"] == "X 1"
    assert "The feature 'X 1' names the group of sex in all 300 rows" in front.summary
    file = tmp_path / "people.csv"
    columns = {"age": X[:, 0], "woman": X[:, 1].astype(int), "sex": SEX, "hired": LABEL}
    pl.DataFrame(columns).write_csv(file)
    train = ("train", str(file), "--label", "hired", "--group", "sex", "--model", "linear")
    assert SAID in printed(*train)
    assert SAID not in printed(*train, "--ignore", "woman", "--use-group")
    assert SAID not in printed(*train, "--keep", "woman")
