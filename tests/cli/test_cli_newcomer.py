"""Files as newcomers have them: what is right works, what is wrong is one clear line."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refusal

from tests.cli.conftest import texts_of
from tests.expected_errors import Refusals
from tests.seams.api import read_audit
from tests.seams.report import audit_markdown

TRAIN = ("--label", "hired", "--group", "sex", "--model", "linear")
AUDIT = ("--score", "wage", "--group", "sex")


@pytest.fixture
def text(csv: Path) -> str:
    return csv.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.encode("utf-8-sig"), id="BOM"),
        pytest.param(lambda text: text.replace("\n", "\r\n").encode(), id="Windows"),
        pytest.param(lambda text: text.replace("wage", "monthly wage").encode(), id="spaces"),
    ],
)
def test_what_is_right_works(csv: Path, text: str, call: Any, change: Any) -> None:
    csv.write_bytes(change(text))
    assert call("train", csv, *TRAIN).exit_code == 0
    score = "monthly wage" if "monthly" in csv.read_text() else "wage"
    assert call("audit", csv, "--score", score, "--group", "sex").exit_code == 0


@pytest.mark.parametrize("command", ["train", "audit"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(lambda text: b"", "is empty", id="empty"),
        pytest.param(lambda text: b"\n\n", "is empty", id="blank"),
        pytest.param(lambda text: text.split("\n")[0].encode(), "has no rows", id="header only"),
        pytest.param(
            lambda text: text.replace("south", "süd").encode("latin-1"), "is not UTF-8", id="latin"
        ),
        pytest.param(
            lambda text: text.encode("utf-16"), "is UTF-16 text; use --encoding utf-16", id="utf-16"
        ),
        pytest.param(
            lambda text: text.replace(",", ";").encode(), "use --separator ';' if that", id="semi"
        ),
        pytest.param(
            lambda text: text.replace("sex", " Sex ").encode(), "did you mean ' Sex '?", id="name"
        ),
        pytest.param(
            lambda text: text.replace("town", "wage").encode(),
            "several columns 'wage'; rename",
            id="twice",
        ),
        pytest.param(lambda text: text.replace("women", "men").encode(), "group", id="one group"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line(
    csv: Path, text: str, call: Any, command: str, change: Any, words: str
) -> None:
    csv.write_bytes(change(text))
    assert words in refusal(call(command, csv, *(TRAIN if command == "train" else AUDIT)))


def test_columns_that_share_a_name_do_not_matter_to_an_audit_of_others(
    csv: Path, text: str, call: Any
) -> None:
    csv.write_text(text.replace("town", "code"))
    assert call("audit", csv, *AUDIT).exit_code == 0


def test_a_column_may_have_the_name_that_polars_would_invent(
    csv: Path, people: pl.DataFrame, call: Any
) -> None:
    people.with_columns(wage_duplicated_0=pl.col("wage")).write_csv(csv)
    assert call("audit", csv, *AUDIT).exit_code == 0


@pytest.mark.parametrize("sign", [";;", "", "é", '"'])
def test_a_separator_that_is_none_is_refused(
    csv: Path, call: Any, sign: str, refused: Refusals
) -> None:
    refused.said(refusal(call("audit", csv, *AUDIT, "--separator", sign)))


def test_a_tab_can_be_typed_as_the_message_writes_it(csv: Path, text: str, call: Any) -> None:
    csv.write_text(text.replace(",", "\t"))
    assert "use --separator '\\t'" in refusal(call("audit", csv, *AUDIT))
    assert call("audit", csv, *AUDIT, "--separator", "\\t").exit_code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--score", "wage", "--group", "number"),
            "the groups 'number' have 240 different values in 240 samples",
        ),
        (("--score", "wage", "--group", "number"), "use --max-groups 240 if each value is a group"),
        (
            ("--score", "wage", "--group", "sex", "--label", "wage"),
            "--score and --label both name the column",
        ),
        (("--score", "wage", "--group", "sex", "--label", "number"), "--label contains 240 labels"),
        (
            ("--score", "wage", "--group", "sex", "--label", "hired", "--positive", "x"),
            "--positive must be one of",
        ),
    ],
)
def test_a_column_that_was_picked_by_mistake_is_named(
    csv: Path, call: Any, options: Any, words: str
) -> None:
    assert words in refusal(call("audit", csv, *options))


def test_decimal_commas_are_named(csv: Path, people: pl.DataFrame, call: Any) -> None:
    people.with_columns(
        pl.col("wage").cast(pl.String).str.replace(".", ",", literal=True)
    ).write_csv(csv)
    assert refusal(call("audit", csv, *AUDIT)).endswith("use --decimal ,")


def test_a_spreadsheet_of_another_kind_is_refused(
    tmp_path: Path, call: Any, refused: Refusals
) -> None:
    (tmp_path / "people.ods").write_bytes(b"PK")
    refused.said(refusal(call("audit", tmp_path / "people.ods", *AUDIT)))


def test_whoever_names_a_threshold_of_one_half_gets_it(csv: Path, call: Any) -> None:
    for options, decisions in (((), 0), (("--threshold", "0.5"), 1)):
        done = call("audit", csv, *AUDIT, *options, "--json", "-")
        assert len(json.loads(done.stdout)["decisions"]) == decisions


# --- numbers with a few other cells
# --------------------------------------------------------------------------


@pytest.fixture
def stray(csv: Path, people: pl.DataFrame) -> Path:
    """The wages, one of them with a comma; in a row that is always among the others of its kind."""
    wage = (
        pl.when(pl.int_range(pl.len()) == 7)
        .then(pl.lit("1,234"))
        .otherwise(pl.col("wage").cast(pl.String))
    )
    people.with_columns(wage=wage).write_csv(csv)
    return csv


def test_a_column_of_numbers_with_another_cell_is_noted(stray: Path, call: Any) -> None:
    done = call("train", stray, *TRAIN, "--json", "-")
    (note,) = (text for text in texts_of(json.loads(done.stdout)) if "'wage'" in text)
    assert note.startswith(
        "column 'wage' is taken for text, not for numbers, because of 1 of its 240 values, such as"
    )
    assert note in done.stderr
    assert note.endswith("or leave it out with --ignore.")


def test_a_column_of_plain_numbers_is_not(csv: Path, call: Any) -> None:
    done = call("train", csv, *TRAIN, "--json", "-")
    assert not any("wage" in note for note in texts_of(json.loads(done.stdout)))


def test_the_page_of_a_frontier_says_so_once(stray: Path, tmp_path: Path, call: Any) -> None:
    done = call("frontier", stray, *TRAIN, "--strengths", "0,1", "--html", tmp_path / "page.html")
    assert done.stdout.count("column 'wage' is taken for text") == 1
    assert "is taken for text, not for numbers" in (tmp_path / "page.html").read_text()


def test_a_target_of_numbers_with_another_cell_is_refused(
    stray: Path, call: Any, refused: Refusals
) -> None:
    said = refusal(call("train", stray, "--label", "wage", "--group", "sex"))
    refused.said(said)


def test_a_target_of_very_many_texts_is_refused(csv: Path, call: Any, refused: Refusals) -> None:
    said = refusal(call("train", csv, "--label", "number", "--group", "sex"))
    refused.said(said)


@pytest.mark.parametrize("command", ["train", "frontier"])
def test_the_positive_label_is_told_where_the_labels_do_not_tell_it(
    csv: Path, people: pl.DataFrame, call: Any, tmp_path: Path, command: str
) -> None:
    asked = (
        "--label",
        "hired",
        "--group",
        "sex",
        "--model",
        "linear",
        "--json",
        tmp_path / "found.json",
    )
    asked += ("--strengths", "0") if command == "frontier" else ()
    people.with_columns(pl.col("hired").replace({"yes": "ja", "no": "nein"})).write_csv(csv)
    done, rows = call(command, csv, *asked), people["hired"].to_list()
    counts = sorted(
        [("'nein'", rows.count("no")), ("'ja'", rows.count("yes"))], key=lambda pair: -pair[1]
    )
    listed = ", ".join(f"{name} ({count})" for name, count in counts)
    assert refusal(done) == (
        f"the positive value of the label 'hired' must be named: {listed}; use --positive CLASS"
    )
    assert "counts as positive" not in call(command, csv, *asked, "--positive", "ja").stdout
    # In Python the last label is positive, so no command may take the first by its word.
    words = pl.col("hired").replace({"yes": "Approved", "no": "Declined"})
    people.with_columns(words).write_csv(csv)
    assert "must be named: " in refusal(call(command, csv, *asked))
    said = (
        "'good' counts as positive (alphabetical default); name another positive label to change "
        "it."
    )
    people.with_columns(pl.col("hired").replace({"yes": "good", "no": "bad"})).write_csv(csv)
    assert call(command, csv, *asked).stdout.count(said) == 1
    assert said in texts_of(json.loads((tmp_path / "found.json").read_text()))
    people.write_csv(csv)  # "yes" needs no explanation
    assert "counts as positive" not in call(command, csv, *asked).stdout


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (
            ("--fail-above", "kolmogorov=10"),
            "'kolmogorov=10' is never broken, as this figure is at most 1; 10 percent",
        ),
        (("--fail-certain-above", "total_variation=5"), "is never broken"),
        (("--fail-above", "selection_difference=20"), "20 percent is 0.2"),
        (
            ("--fail-below", "selection_ratio=80"),
            "is always broken, as this figure is at most 1; 80 percent is 0.8",
        ),
    ],
)
def test_a_limit_in_percent_is_refused(
    csv: Path, call: Any, gate: tuple[str, str], words: str
) -> None:
    assert words in refusal(call("audit", csv, *AUDIT, *gate))


def test_a_column_that_would_play_two_parts_is_refused(csv: Path, call: Any) -> None:
    for asked, words in (
        (("--score", "wage", "--group", "wage"), "--score and --group both name the column"),
        (
            ("--score", "wage", "--group", "sex", "--control", "wage"),
            "--score and --control both name the column",
        ),
        (
            ("--score", "wage", "--group", "hired", "--label", "hired"),
            "--label and --group both name the column",
        ),
    ):
        assert words in refusal(call("audit", csv, *asked))
        if "--control" not in asked:
            output = ("--score-range", 0, 9000, "--output", csv.parent / "x.state")
            assert words in refusal(call("count", csv, *asked, *output))


def test_every_figure_beyond_a_limit_is_named_with_its_groups(
    csv: Path, people: pl.DataFrame, call: Any
) -> None:
    people.with_columns(
        p=pl.col("member").cast(float), half=pl.col("number").str.slice(4)
    ).write_csv(csv)
    done = call(
        "audit",
        csv,
        "--score",
        "p",
        "--group",
        "member",
        "--group",
        "half",
        "--fail-below",
        "selection_ratio=0.8",
    )
    assert done.exit_code == 1
    told = [line for line in done.stdout.splitlines() if line.startswith("Unfair: ")]
    assert (
        told[0] == "Unfair: selection_ratio is 0, below 0.8: false against true (member, everyone)"
    )
    assert len(told) == 2
    assert told[1].endswith("(half, everyone; too few rows)")


def test_advice_is_in_the_words_of_the_command(csv: Path, call: Any) -> None:
    for asked, words in (
        (
            ("--criterion", "equal_opportunity"),
            "equal_opportunity needs the true labels; use --label COLUMN",
        ),
        (
            ("--group", "income", "--intersectional"),
            "cut it into groups, or leave --intersectional out",
        ),
        (
            (
                "--group",
                "member",
                "--intersectional",
                "--reference",
                "sex=men",
                "--threshold",
                "3000",
            ),
            (
                "--reference names 'sex', which is none of ['sex x member']; name a group of each "
                "attribute"
            ),
        ),
    ):
        assert words in refusal(call("audit", csv, *AUDIT, *asked))


def test_why_there_is_no_ratio_is_told(csv: Path, people: pl.DataFrame, call: Any) -> None:
    people.with_columns(
        sex=pl.when(pl.int_range(240) < 3).then(pl.lit("other")).otherwise("sex")
    ).write_csv(csv)
    asked = ("--standard", "credit", "--reference", "other", "--threshold", "3000")
    assert "sex: There is no impact ratio: " in call("audit", csv, *AUDIT, *asked).stdout


def test_a_table_of_many_groups_is_cut_on_the_terminal(
    csv: Path, people: pl.DataFrame, call: Any
) -> None:
    people.with_columns(
        p=0.1 + 0.8 * pl.col("member"), day=pl.col("number").str.slice(1).cast(int) // 3
    ).write_csv(csv)
    told = call(
        "audit", csv, "--score", "p", "--group", "day", "--continuous", "none", "--label", "hired"
    ).stdout
    assert "... and 20 more groups: --rates or --html" in told
    assert len(told.splitlines()) < 160


@pytest.mark.extended
@pytest.mark.parametrize("families", [(), ("--families", "thresholds")])
def test_the_command_that_audits_held_out_rows_runs_as_it_is_told(
    csv: Path, people: pl.DataFrame, call: Any, tmp_path: Path, families: tuple[str, ...]
) -> None:
    """Also where the model tells no probabilities, a column has their name, or few rows are
    left of a number.
    """
    people = people.with_columns(
        probability=pl.lit("a") + pl.col("code"), age=pl.int_range(240) % 24
    )
    people.write_csv(csv)
    asked = (
        "--label",
        "hired",
        "--group",
        "sex",
        "--id",
        "probability",
        "--held-out",
        tmp_path / "held out.csv",
    )
    if families:
        asked += (*families, "--model", "linear", "--max-unfairness", 1, "--strengths", 0)
    else:
        asked += ("--group", "age", "--model", "linear", "--test", 0.05)
    done = call("frontier" if families else "train", csv, *asked)
    (line,) = [
        line for line in done.stdout.splitlines() if line.startswith("Audit them: metrifair ")
    ]
    words = shlex.split(line.removeprefix("Audit them: metrifair "))
    assert words[words.index("--score") + 1] == ("decision" if families else "probability'")
    assert call(*words).exit_code == 0
    if not families:
        assert len(set(pl.read_csv(tmp_path / "held out.csv")["age"])) < 20
        assert words[words.index("--continuous") + 1] == "age"


def test_groups_that_differ_by_a_blank_at_an_end_look_different(tmp_path: Path, call: Any) -> None:
    rows = pl.DataFrame(
        {
            "p": np.linspace(0, 1, 120),
            "sex": ["Male", "Male ", "Female"] * 40,
            "y": [0, 1, 1, 0] * 30,
        }
    )
    rows.write_csv(tmp_path / "x.csv")
    files = ["--json", tmp_path / "x.json", "--html", tmp_path / "x.html"]
    done = call(
        "audit", tmp_path / "x.csv", "--score", "p", "--group", "sex", "--label", "y", *files
    )
    assert done.exit_code == 0, done.output
    assert "Male vs “Male ”" in done.stdout  # distances
    # rates, and figures by group
    assert len(re.findall(r"^  sex +“Male ”   ", done.stdout, re.MULTILINE)) == 2
    assert len(re.findall(r"^  sex +Male     ", done.stdout, re.MULTILINE)) == 2
    lines = "\n".join(audit_markdown(read_audit(tmp_path / "x.json").record)).splitlines()
    assert len([line for line in lines if line.startswith("| “Male ” |")]) >= 2
    assert any("Male vs “Male ” (sex) |" in line for line in lines)
    page = (tmp_path / "x.html").read_text()
    assert '<th scope="row">“Male ”</th>' in page
    assert not re.search(r">Male <|\bMale  vs|vs Male <", page)
    assert '"groups":["Female","Male","“Male ”"]' in page
