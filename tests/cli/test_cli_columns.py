"""`metrifair columns`: facts of every column, suggestions with their reasons, caveats; and a
ledger of a frontier.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refusal

from tests.expected_errors import Refusals
from tests.seams.tradeoff import sweep


@pytest.fixture
def table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "number": [f"P{row}" for row in range(60)],
            "count": [None, 3, *([5] * 58)],
            "applicantSex": ["f"] * 50 + ["m"] * 10,
            "risk_score": [row / 60 for row in range(60)],
            "decision": ["yes", "no"] * 30,
            "outcome": [1, 0] * 30,
            "when": ["2026-01-31"] * 60,
            "member": [True, False] * 30,
        }
    )


def facts(call: Any, path: Path) -> dict[str, Any]:
    done = call("columns", path, "--json", path.with_suffix(".json"))
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())
    return found


def test_the_facts_are_those_of_the_table(table: pl.DataFrame, tmp_path: Path, call: Any) -> None:
    table.write_csv(tmp_path / "table.csv")
    found = facts(call, tmp_path / "table.csv")
    columns = {one["name"]: one for one in found["columns"]}
    assert found["rows"] == 60
    assert list(columns) == table.columns
    for name, column in columns.items():
        values = [value for value in table[name].to_list() if value is not None]
        assert column["missing"] == 60 - len(values)
        assert column["distinct"] == len(set(values))
        if len(set(values)) <= 20:
            assert sum(count for _, count in column["values"]) == len(values)
    kinds = [one["kind"] for one in found["columns"]]
    assert kinds == ["text", "number", "text", "number", "text", "number", "date", "boolean"]
    assert (columns["count"]["low"], columns["count"]["high"]) == (3, 5)
    assert columns["count"]["values"] == [["5", 58], ["3", 1]]
    assert len(found["head"]) == 8
    assert found["head"][0][:3] == ["P0", None, "f"]


def test_roles_are_suggested_with_a_reason(table: pl.DataFrame, tmp_path: Path, call: Any) -> None:
    table.write_csv(tmp_path / "table.csv")
    found = facts(call, tmp_path / "table.csv")
    roles = {one["name"]: (one["role"], one["reason"]) for one in found["columns"] if one["role"]}
    assert roles == {
        "number": ("id", "every value is different"),
        "applicantSex": ("group", "the name contains “sex”"),
        "risk_score": ("score", "the name contains “risk”"),
        "decision": ("decision", "the name contains “decision”"),
        "outcome": ("label", "the name contains “outcome”"),
    }


def test_probabilities_of_groups_are_not_suggested_as_scores(tmp_path: Path, call: Any) -> None:
    numbers = [row / 60 for row in range(60)]
    groups = [
        "p_white",
        "p_black",
        "p_other",
        "pred.whi",
        "prob_hispanic",
        "pFemale",
        "probability of men",
    ]
    scores = ["p", "p_yes", "pred_1", "probability of default", "risk_score"]
    pl.DataFrame(dict.fromkeys([*groups, *scores], numbers)).write_csv(tmp_path / "table.csv")
    roles = {
        column["name"]: column["role"] for column in facts(call, tmp_path / "table.csv")["columns"]
    }
    assert roles == dict.fromkeys(groups) | dict.fromkeys(scores, "score")


def test_each_column_says_what_a_model_of_it_would_predict(tmp_path: Path, call: Any) -> None:
    """As ``frontier`` reads a label: up to 20 whole numbers are classes, and so is text."""
    columns = {
        "grade": [row % 20 for row in range(63)],
        "points": [row % 21 for row in range(63)],
        "half": [0.5, 1.0, 1.5] * 21,
        "town": [f"town {row}" for row in range(63)],
        "member": [True, False, True] * 21,
        "when": ["2026-01-31"] * 63,
    }
    pl.DataFrame(columns).write_csv(tmp_path / "table.csv")
    found = {one["name"]: one["target"] for one in facts(call, tmp_path / "table.csv")["columns"]}
    assert found == {
        "grade": "classes",
        "points": "number",
        "half": "number",
        "town": "classes",
        "member": "classes",
        "when": None,
    }


@pytest.mark.parametrize(
    "values", [[3.0, 1.0, 1.0, None, 2.0], ["b", "a", "b", None], [True, False, True]]
)
def test_the_most_frequent_values_come_first_and_then_the_smallest(
    values: list[Any], tmp_path: Path, call: Any
) -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"x": rng.choice(np.array(values, dtype=object), 500).tolist()})
    table.write_parquet(tmp_path / "table.parquet")
    (found,) = facts(call, tmp_path / "table.parquet")["columns"]
    counts = Counter(value for value in table["x"].to_list() if value is not None)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    assert [count for _, count in found["values"]] == [count for _, count in ordered]
    assert [value.lower() for value, _ in found["values"]] == [
        f"{value:g}" if isinstance(value, float) else str(value).lower() for value, _ in ordered
    ]


def test_caveats_name_small_groups_duplicates_and_leakage(
    table: pl.DataFrame, tmp_path: Path, call: Any
) -> None:
    pl.concat([table, table.head(2)]).write_csv(tmp_path / "table.csv")
    notes = "\n".join(facts(call, tmp_path / "table.csv")["notes"])
    assert "2 of 62 rows repeat an earlier row in every column." in notes
    assert "Column 'applicantSex' has groups with fewer than 30 rows: m (10)." in notes
    assert "Column 'decision' copies the label 'outcome'" in notes
    table.drop("decision", "member").write_csv(tmp_path / "clean.csv")
    assert len(facts(call, tmp_path / "clean.csv")["notes"]) == 1  # the small group


def test_a_file_that_cannot_be_read_is_refused_in_a_line(tmp_path: Path, call: Any) -> None:
    (tmp_path / "empty.csv").write_text("")
    refusal(call("columns", tmp_path / "empty.csv"))
    refusal(call("columns", tmp_path / "none.csv"))


def test_a_frontier_with_a_ledger_trains_nothing_twice(
    csv: Path, tmp_path: Path, call: Any, monkeypatch: Any
) -> None:
    arguments = [
        "frontier",
        csv,
        "--label",
        "hired",
        "--group",
        "sex",
        "--ignore",
        "number",
        "--model",
        "linear",
    ]
    arguments += [
        "--strengths",
        "0,1",
        "--ledger",
        tmp_path / "models.ledger",
        "--json",
        tmp_path / "found.json",
    ]
    first = call(*arguments)
    assert first.exit_code == 0, first.output
    points = json.loads((tmp_path / "found.json").read_text())["points"]

    def no_training(*_: object, **__: object) -> None:
        raise AssertionError("a model is trained again")

    monkeypatch.setattr(sweep, "fit_stack", no_training)
    again = call(*arguments)
    assert again.exit_code == 0, again.output
    assert json.loads((tmp_path / "found.json").read_text())["points"] == points


@pytest.mark.extended
def test_progress_is_lines_of_json_for_programs(csv: Path, tmp_path: Path) -> None:
    asked = [
        "frontier",
        str(csv),
        "--label",
        "hired",
        "--group",
        "sex",
        "--ignore",
        "number",
        "--strengths",
        "0,1",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "metrifair", *asked, "--families", "auto,linear,blind_barycenter"],
        env=os.environ | {"METRIFAIR_PROGRESS": "json"},
        capture_output=True,
        text=True,
        check=True,
    )
    events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [(one["item"], one["done"], one["total"]) for one in events] == [
        ("linear", 0, 2),
        ("blind_barycenter", 1, 2),
        ("", 2, 2),
    ]
    times = [one["seconds"] for one in events]
    assert times == sorted(times)


def test_columns_between_commas_are_refused_with_the_repeated_option(
    tmp_path: Path, call: Any, refused: Refusals
) -> None:
    path = tmp_path / "table.csv"
    path.write_text("p,y,sex,age band\n" + "0.2,0,f,old\n0.7,1,m,young\n" * 30)
    for command in (["audit", path, "--score", "p"], ["train", path, "--label", "y"]):
        text = refusal(call(*command, "--group", "sex, age band"))
        refused.said(text)


def test_values_that_may_be_one_value_or_missing_come_with_the_option_that_joins_them(
    tmp_path: Path, call: Any
) -> None:
    """The options that the notes name, given to the command, leave one spelling and no note."""
    path = tmp_path / "table.csv"
    path.write_text("sex,paid\n" + "Male,1\nMale ,0\nmale,1\nMale,1\nFemale,0\nN/A,0\n" * 10)
    found = facts(call, path)
    assert [value for value, _ in found["columns"][0]["values"]] == [
        "Male",
        "Female",
        "Male ",
        "N/A",
        "male",
    ]
    offers = {one["option"]: one["values"] for one in found["spellings"]}
    assert offers == {"missing": ["N/A"], "replace": ["Male =Male", "male=Male"]}
    words = [
        word
        for option, values in offers.items()
        for value in values
        for word in (f"--{option}", value)
    ]
    said = call("columns", path).output
    assert (
        "“Male ” and “male” may mean the same as “Male”. If so, use --replace 'Male =Male' "
        "--replace male=Male." in said
    )
    done = call("columns", path, *words, "--json", tmp_path / "again.json")
    assert "Note: Column 'sex': " not in done.output
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["columns"][0]["values"] == [["Male", 40], ["Female", 10]]
    assert again["spellings"] == []


@pytest.mark.parametrize(
    ("values", "positive"),
    [
        ("01", "1"),
        (("no", "yes"), "yes"),
        (("Denied", "Approved"), "Approved"),
        (("false", "true"), "True"),
        (("blue", "red"), None),
        ("12", None),
        ("012", None),
    ],
)
def test_the_positive_label_is_suggested_only_where_the_values_show_it(
    values: Any, positive: str | None, tmp_path: Path, call: Any
) -> None:
    (tmp_path / "table.csv").write_text("\n".join(["label", *values]) + "\n")
    (column,) = facts(call, tmp_path / "table.csv")["columns"]
    assert column["positive"] == positive


def test_a_suggested_label_with_blanks_around_it_can_be_trained_on(
    tmp_path: Path, call: Any
) -> None:
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.normal():.3f},{group}, {label}"
        for group in "fm"
        for label in ("no", "yes")
        for _ in range(60)
    ]
    (tmp_path / "table.csv").write_text("\n".join(["x,sex,repaid", *rows]) + "\n")
    column = facts(call, tmp_path / "table.csv")["columns"][2]
    train = [
        "train",
        tmp_path / "table.csv",
        "--label",
        "repaid",
        "--group",
        "sex",
        "--model",
        "linear",
    ]
    done = call(*train, f"--positive={column['positive']}", "--json", tmp_path / "figures.json")
    assert done.exit_code == 0, done.output


def test_no_option_is_suggested_for_values_that_it_could_not_name(
    tmp_path: Path, call: Any
) -> None:
    (tmp_path / "table.csv").write_text("sex\n" + "a=B\nA=b\n" * 10)
    assert facts(call, tmp_path / "table.csv")["spellings"] == []


def test_the_few_cells_that_make_text_of_numbers_are_named(tmp_path: Path, call: Any) -> None:
    path = tmp_path / "table.csv"
    path.write_text(
        "\n".join(["income,code,word", *["7,02139,x"] * 40, '"41,200",none,y', "NA,02139,z"]) + "\n"
    )
    done = call("columns", path)
    assert (
        "Column 'income' is read as text because of 1 of its 41 values, such as '41,200'."
        in done.output
    )
    assert done.output.count("is read as text") == 1


def test_moments_beyond_the_last_year_are_text(tmp_path: Path, call: Any) -> None:
    (tmp_path / "table.csv").write_text("until\n9999-12-31T23:59:59-05:00\n2020-01-01T00:00:00\n")
    assert facts(call, tmp_path / "table.csv")["columns"][0]["kind"] == "text"


def test_a_file_with_decimal_commas_is_shown_with_the_option_that_reads_them(
    tmp_path: Path, call: Any
) -> None:
    path = tmp_path / "table.csv"
    path.write_text("income;sex\n" + "31,5;f\n40;m\n28,25;f\n" * 20)
    done = call("columns", path, "--separator", ";")
    assert done.exit_code == 0, done.output
    assert "such as '31,5', and is read as text. Use --decimal , to read numbers." in done.output
    done = call("columns", path, "--decimal", ",", "--json", tmp_path / "c.json")
    assert "comma" not in done.output
    assert json.loads((tmp_path / "c.json").read_text())["columns"][0]["kind"] == "number"


def test_one_repeated_row_is_no_plural(call: Any, tmp_path: Path) -> None:
    rows = pl.DataFrame({"x": [1, 2, 3, 4], "sex": ["f", "m", "f", "m"]})
    for repeated, expected in ((1, "1 of 5 rows repeats"), (2, "2 of 6 rows repeat ")):
        pl.concat([rows, rows.head(repeated)]).write_csv(tmp_path / "rows.csv")
        assert expected in " ".join(call("columns", tmp_path / "rows.csv").output.split())
