"""A copy of the label is refused; by a rule that few rows do not fool, in either direction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import left_behind, refusal

from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.seams.cli import check_leakage

RNG = np.random.default_rng(0)
N = 60
LABEL = pl.Series("hired", np.where(RNG.random(N) < 0.5, "yes", "no"))
WAGE = pl.Series("wage", RNG.lognormal(3, 1, N))
NOISE = {
    "age": RNG.normal(size=N),
    "town": np.array(["a", "b"])[RNG.integers(2, size=N)],
    "id": np.arange(N),
}

RENAMED = {
    "equal": LABEL,
    "codes": (LABEL == "yes").cast(pl.Int64),
    "turned": (LABEL == "no").cast(pl.Float64),
    "booleans": LABEL == "yes",
    "one of them missing": pl.Series([None if value == "no" else "reason" for value in LABEL]),
}
IN_ANOTHER_UNIT = {
    "equal": WAGE,
    "cents": (100 * WAGE).round(2),
    "logarithm": WAGE.log(),
    "falling": -WAGE,
    "rank": WAGE.rank(),
}


@pytest.mark.parametrize("how", RENAMED)
def test_a_renaming_of_a_class_is_refused_by_name(how: str) -> None:
    table = pl.DataFrame(NOISE).with_columns(RENAMED[how].alias("so called"))
    with pytest.raises(DataError) as caught:
        check_leakage(table, LABEL, number=False)
    assert str(caught.value) == (
        "column 'so called' copies the label 'hired' (one-to-one in all 60 rows): "
        "exclude it with --ignore 'so called', or keep it with --keep 'so called'"
    )
    assert check_leakage(table, LABEL, keep=["so called"], number=False) == []


@pytest.mark.parametrize("how", IN_ANOTHER_UNIT)
def test_a_number_in_another_unit_is_refused(how: str, refused: Refusals) -> None:
    table = pl.DataFrame(NOISE).with_columns(IN_ANOTHER_UNIT[how].alias("pay"))
    with refused(DataError):
        check_leakage(table, WAGE, number=True)


def test_what_only_hints_at_the_label_is_not_refused() -> None:
    rng = np.random.default_rng(99)
    nearly = LABEL.to_list()
    nearly[0] = "no" if nearly[0] == "yes" else "yes"
    table = pl.DataFrame(NOISE | {"nearly": nearly, "score": WAGE + rng.normal(0, 1e-3, N)})
    assert check_leakage(table, LABEL, number=False) == []
    assert check_leakage(table.drop("score"), WAGE, number=True) == []


def test_every_row_its_own_value_is_no_leakage() -> None:
    """An id tells the label of every row, and so does any measurement; of numbers, each is
    one-to-one with another.
    """
    rng = np.random.default_rng(99)
    table = pl.DataFrame({"id": [f"P{k}" for k in range(N)], "measured": rng.normal(size=N)})
    assert check_leakage(table, LABEL, number=False) == []
    assert check_leakage(table, WAGE, number=True) == []


def test_a_column_that_tells_the_label_in_every_row_is_named() -> None:
    reason = [None if value == "yes" else "abc"[k % 3] for k, value in enumerate(LABEL)]
    (note,) = check_leakage(pl.DataFrame(NOISE | {"reason": reason}), LABEL, number=False)
    assert note.kind == "determined_label"
    assert note.facts == {"column": "reason", "label": "hired", "rows": 60}


@pytest.mark.parametrize("rows", [4, 8, 12])
def test_in_a_tiny_file_one_to_one_may_be_chance(rows: int) -> None:
    label = pl.Series("y", [0, 1] * (rows // 2))
    assert check_leakage(pl.DataFrame({"x": label}), label, number=False) == []


def test_a_rare_label_is_matched_by_chance() -> None:
    """One yes among 200 rows: any column with one odd row has it there by chance in 1 of 200."""
    label = pl.Series("y", [1] + [0] * 199)
    assert check_leakage(pl.DataFrame({"odd": label}), label, number=False) == []


@pytest.mark.extended
def test_chance_makes_no_false_alarm_and_copies_are_found() -> None:
    """Of 2,000 files of 14 rows with a random binary column hardly any is refused; with a copy
    of 20 rows all are.
    """
    rng = np.random.default_rng(99)
    refused = 0
    for _ in range(2000):
        frame = pl.DataFrame({"x": rng.integers(2, size=14)})
        try:
            check_leakage(frame, pl.Series("y", rng.permutation([0, 1] * 7)), number=False)
        except DataError:
            refused += 1
    assert refused == 0
    for _ in range(20):
        label = pl.Series("y", rng.permutation([0, 1] * 10))
        with pytest.raises(DataError):
            check_leakage(pl.DataFrame({"x": 1 - label}), label, number=False)


@pytest.mark.parametrize("command", ["train", "frontier"])
def test_a_copy_of_the_label_stops_the_command_line(
    people: pl.DataFrame, tmp_path: Path, call: Any, command: str, refused: Refusals
) -> None:
    people.with_columns(contract=pl.when(pl.col("hired") == "yes").then(1).otherwise(0)).write_csv(
        tmp_path / "p.csv"
    )
    asked = ("--label", "hired", "--group", "sex", "--model", "linear", "--ignore", "wage")
    done = call(command, tmp_path / "p.csv", *asked)
    refused.said(refusal(done))
    assert left_behind(tmp_path) == ["p.csv"]


def test_a_copy_of_the_label_is_taken_where_it_is_named(
    people: pl.DataFrame, tmp_path: Path, call: Any, refused: Refusals
) -> None:
    people.with_columns(contract=pl.col("hired") == "yes").write_csv(tmp_path / "p.csv")
    asked = (
        "--label",
        "hired",
        "--group",
        "sex",
        "--model",
        "linear",
        "--ignore",
        "wage",
        "--strength",
        "0",
    )
    assert "copies the label" in refusal(call("train", tmp_path / "p.csv", *asked))
    done = call("train", tmp_path / "p.csv", *asked, "--keep", "contract")
    assert done.exit_code == 0, done.output
    done = call("train", tmp_path / "p.csv", *asked, "--ignore", "contract")
    assert done.exit_code == 0, done.output
    said = refusal(
        call("train", tmp_path / "p.csv", *asked, "--keep", "contract", "--ignore", "contract")
    )
    refused.said(said)


@pytest.mark.parametrize("command", ["train", "frontier"])
def test_features_that_may_be_predictions_of_another_model_are_noted(
    people: pl.DataFrame, tmp_path: Path, call: Any, command: str
) -> None:
    predictions = {
        "old score": RNG.random(len(people)),
        "decision": RNG.integers(2, size=len(people)),
    }
    people.with_columns(**predictions, age=RNG.integers(20, 70, len(people))).write_csv(
        tmp_path / "p.csv"
    )
    asked = (
        "--label",
        "hired",
        "--group",
        "sex",
        "--model",
        "linear",
        "--ignore",
        "wage",
        "--ignore",
        "number",
    )
    asked += {"train": ("--strength", "0.5"), "frontier": ("--strengths", "0,0.5")}[command]
    said = " ".join(call(command, tmp_path / "p.csv", *asked).output.split())
    assert (
        "The features include 'old score', 'decision'. If these are scores or decisions of another "
        "model, leave them "
        "out with --ignore 'old score' --ignore decision."
    ) in said
    assert "(7 columns, as" in said  # the note changes nothing
    chosen = ("--ignore", "old score", "--keep", "decision")
    assert (
        "scores or decisions of another model"
        not in call(command, tmp_path / "p.csv", *asked, *chosen).output
    )


@pytest.mark.parametrize("command", ["train", "frontier"])
def test_a_group_that_is_the_label_is_told_once(
    people: pl.DataFrame, tmp_path: Path, call: Any, command: str
) -> None:
    people.with_columns(outcome=pl.col("hired").str.to_uppercase()).write_csv(tmp_path / "p.csv")
    asked = ("--label", "hired", "--model", "linear", "--ignore", "wage", "--ignore", "number")
    asked += {"train": ("--strength", "0.5"), "frontier": ("--strengths", "0,0.5")}[command]
    done = call(command, tmp_path / "p.csv", *asked, "--group", "outcome", "--group", "sex")
    assert done.exit_code == 0, done.output
    assert done.output.count("copy the label: correct scores are then unfair by design.") == 1
    assert "The groups of outcome copy the label" in done.output
