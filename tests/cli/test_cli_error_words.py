"""Laws of errors: Python names the parameter, the command line names its option, from the same
parts.
"""

from __future__ import annotations

import inspect
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import polars as pl
import pytest
from click.testing import Result
from refusals import refusal

from metrifair import AuditState, audit, audit_file, audit_table
from metrifair.cli import main
from metrifair.errors import DataError, MetrifairWarning, Remedy
from tests.expected_errors import Refusals
from tests.flat_options import flat, flat_audit
from tests.seams.cli import OPTION_NAMES, PLACEHOLDERS, RENAMED
from tests.seams.errors import remedy_text

_ROWS = 60
_SCORES = np.linspace(0.01, 0.99, _ROWS).round(3)
_TABLE = pl.DataFrame(
    {
        "p": _SCORES,
        "other": (1 - _SCORES).round(3),
        "raw": _SCORES * 100,
        "sex": ["f", "m"] * 30,
        "y": [0, 1, 1] * 20,
        "decision": ["Approved", "Declined", "Declined"] * 20,
        "age": [20 + 0.5 * (row // 2) for row in range(_ROWS)],
        "word": [f"label {row}" for row in range(_ROWS)],
        "number": [f"n{row}" for row in range(_ROWS)],
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows in files of several kinds."""
    made = tmp_path_factory.mktemp("files")
    _TABLE.write_csv(made / "people.csv")
    _TABLE.write_csv(made / "semicolons.csv", separator=";")
    _TABLE.write_parquet(made / "people.parquet")
    text = (made / "people.csv").read_text()
    (made / "people").write_text(text)
    (made / "latin.csv").write_bytes(text.replace("Approved", "Bewährt").encode("latin-1"))
    (made / "wide.csv").write_bytes(text.encode("utf-16"))
    (made / "binary.csv").write_bytes(b"p,sex\0\0\1\2")
    (made / "commas.csv").write_text(
        text.replace("0.", '"0,').replace(",f,", '",f,').replace(",m,", '",m,')
    )
    return made


class Case(NamedTuple):
    """One mistake, made in Python by arguments of ``audit_file`` and in the shell by options."""

    file: str
    arguments: dict[str, Any]
    options: str
    names: str  # in Python
    option: str  # in the shell


CASES = {
    "an unknown separator": Case(
        "people.csv", {"separator": "ab"}, "--separator ab", "separator must", "--separator"
    ),
    "another separator": Case(
        "semicolons.csv", {}, "", "pass reading=ReadOptions(separator=';')", "use --separator ';'"
    ),
    "an unknown encoding": Case(
        "people.csv", {"encoding": "no"}, "--encoding no", "encoding must", "--encoding must"
    ),
    "another encoding": Case(
        "latin.csv", {}, "", "pass reading=ReadOptions(encoding='cp1252')", "use --encoding cp1252"
    ),
    "the wrong encoding": Case(
        "latin.csv",
        {"encoding": "ascii"},
        "--encoding ascii",
        "pass reading=ReadOptions(encoding=...)",
        "use --encoding NAME",
    ),
    "UTF-16": Case(
        "wide.csv", {}, "", "pass reading=ReadOptions(encoding='utf-16')", "use --encoding utf-16"
    ),
    "no ending": Case(
        "people", {}, "", "pass reading=ReadOptions(format=...)", "use --format NAME"
    ),
    "not text": Case(
        "binary.csv", {}, "", "pass reading=ReadOptions(format=...)", "use --format NAME"
    ),
    "an encoding of parquet": Case(
        "people.parquet",
        {"encoding": "cp1252"},
        "--encoding cp1252",
        "leave encoding out",
        "leave --encoding out",
    ),
    "no header of parquet": Case(
        "people.parquet",
        {"header": False},
        "--no-header",
        "leave header out",
        "leave --no-header out",
    ),
    "a sheet of csv": Case(
        "people.csv", {"sheet": "a"}, "--sheet a", "leave sheet out", "leave --sheet out"
    ),
    "decisions as words": Case(
        "people.csv",
        {"score": "decision"},
        "--score decision",
        "pass favorable_decision=... if these values are decisions: '",
        "use --favorable-decision VALUE if these values are decisions: '",
    ),
    "a word both missing and replaced": Case(
        "people.csv",
        {"missing": "f", "replace": {"f": "m"}},
        "--missing f --replace f=m",
        "replace and missing both",
        "--replace and --missing both",
    ),
    "a number to replace": Case(
        "people.parquet",
        {"label": "y", "replace": {"1": "0"}},
        "--label y --replace 1=0",
        "replace is for text",
        "--replace is for text",
    ),
    "too many groups": Case(
        "people.csv",
        {"group": "number"},
        "--group number",
        "pass options=AuditOptions(max_groups=60)",
        "use --max-groups 60",
    ),
    "many groups to cut": Case(
        "people.csv",
        {"group": "number"},
        "--group number",
        "pass options=AuditOptions(cuts=...)",
        "use --cuts",
    ),
    "a criterion without labels": Case(
        "people.csv",
        {"criteria": "equal_opportunity"},
        "--criterion equal_opportunity",
        "pass y_true=...",
        "use --label COLUMN",
    ),
    "no such class": Case(
        "people.csv",
        {"label": "y", "pos_label": 7},
        "--label y --positive 7",
        "pos_label must be one of the classes",
        "--positive must be one of the classes",
    ),
    "a class of a number": Case(
        "people.csv",
        {"label": "raw", "pos_label": 1},
        "--label raw --positive 1",
        "pos_label names a class",
        "--positive names a class",
    ),
    "too many classes": Case(
        "people.csv", {"label": "word"}, "--label word", "leave y_true out", "leave --label out"
    ),
    "no loss": Case(
        "people.csv",
        {"label": "y", "criteria": "risk_parity"},
        "--label y --criterion risk_parity",
        "pass options=AuditOptions(loss=...)",
        "use --loss NAME",
    ),
    "no such reference": Case(
        "people.csv",
        {"reference": "x"},
        "--reference x",
        "reference must be",
        "--reference must be",
    ),
    "a standard without its reference": Case(
        "people.csv",
        {"standard": "credit"},
        "--standard credit",
        "pass reference=...",
        "use --reference CATEGORY",
    ),
    "a reference that a standard has": Case(
        "people.csv",
        {"standard": "ll144", "reference": "f"},
        "--standard ll144 --reference f",
        "leave reference out",
        "leave --reference out",
    ),
    "a standard without decisions": Case(
        "people.csv",
        {"score": "raw", "standard": "four-fifths"},
        "--score raw --standard four-fifths",
        "pass threshold=...",
        "use --threshold NUMBER",
    ),
    "a number to cross": Case(
        "people.csv",
        {"group": ["sex", "age"], "intersectional": True, "continuous": ["age"]},
        "--group sex --group age --intersectional --continuous age",
        "leave intersectional out",
        "leave --intersectional out",
    ),
    "one column in two roles": Case(
        "people.csv",
        {"label": "p"},
        "--label p",
        "score and label both",
        "--score and --label both",
    ),
    "probabilities of two classes": Case(
        "people.csv",
        {"score": ["p", "other"]},
        "--score p --score other",
        "pass pos_label=...",
        "use --positive CLASS",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_python_names_the_parameter_and_the_command_line_its_option(
    name: str, folder: Path, call: Callable[..., Result]
) -> None:
    case = CASES[name]
    arguments = {"score": "p", "group": "sex"} | case.arguments
    with pytest.raises(DataError) as caught:
        flat_audit(folder / case.file, audit_file, **arguments)
    text = str(caught.value)
    assert case.names in text
    assert "--" not in text
    typed = case.options.split()
    typed += [] if "--score" in typed else ["--score", "p"]
    typed += [] if "--group" in typed else ["--group", "sex"]
    line = refusal(call("audit", folder / case.file, *typed))
    assert case.option in line
    assert _python_spellings(line) == []
    assert len(re.split(r"[.;] ", line)) <= 3


def _python_spellings(line: str) -> list[str]:
    """Parameters that a line writes as Python does, ``name=``."""
    functions = (audit, audit_file, audit_table, AuditState.__init__, AuditState.audit)
    names = {name for function in functions for name in inspect.signature(function).parameters}
    return [name for name in names if re.search(rf"(?<![\w-]){name}=", line)] + re.findall(
        r"\b(?:y_true|y_pred|pos_label|sensitive_features|control_features|sample_weight|max_groups)\b",
        line,
    )


def test_a_range_that_does_not_hold_the_scores(
    folder: Path, call: Callable[..., Result], refused: Refusals
) -> None:
    with refused(DataError):
        AuditState(score_range=(0, 0.5)).add(None, _SCORES, sensitive_features=_TABLE["sex"])
    given = ["--score", "p", "--group", "sex", "--output", folder / "a.state"]
    line = refusal(call("count", folder / "people.csv", *given, "--score-range", 0, 0.5))
    refused.said(line)
    assert _python_spellings(line) == []


def test_states_that_differ_in_a_setting(
    folder: Path, call: Callable[..., Result], refused: Refusals
) -> None:
    given = ["--score", "p", "--group", "sex"]
    for threshold in (0.5, 0.7):
        output = folder / f"at {threshold}.state"
        done = call(
            "count", folder / "people.csv", *given, "--threshold", threshold, "--output", output
        )
        assert done.exit_code == 0, done.stderr
    line = refusal(call("merge", folder / "at 0.5.state", folder / "at 0.7.state"))
    refused.said(line)


def test_a_database_without_a_table(
    folder: Path, call: Callable[..., Result], refused: Refusals
) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = folder / "scores.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table scores as select 0.5 as p, 'f' as sex")
    line = refusal(call("audit", f"duckdb:{path}", "--score", "p", "--group", "sex"))
    refused.said(line)


def test_warnings_have_the_same_parts(folder: Path, call: Callable[..., Result]) -> None:
    arguments: dict[str, Any] = {"score": "p", "group": "age", "replace": {"nobody": "0"}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        audit_file(folder / "people.csv", **flat(**arguments))
    messages = [str(one.message) for one in caught if issubclass(one.category, MetrifairWarning)]
    assert any(
        "pass continuous=['age'] if the values are numbers, or pass continuous=False" in one
        for one in messages
    )
    assert any(one.startswith("replace names 'nobody'") for one in messages)
    done = call(
        "audit", folder / "people.csv", "--score", "p", "--group", "age", "--replace", "nobody=0"
    )
    assert "use --continuous age if the values are numbers, or use --continuous none" in done.stdout
    assert "Note: --replace names 'nobody'" in done.stdout
    assert _python_spellings(done.stdout) == []


def test_no_remedy_decides_what_words_mean(folder: Path) -> None:
    """The first word of a file may be the unfavorable decision: which one is favorable is left
    open.
    """
    with pytest.raises(DataError) as caught:
        audit_file(folder / "people.csv", score="decision", group="sex")
    assert caught.value.remedy == Remedy(
        "favorable_decision",
        ...,
        " if these values are decisions: 'Declined' (40), 'Approved' (20)",
    )


def test_parts_survive_another_process() -> None:
    error = DataError(
        "must be text", argument="title", received=3, remedy=Remedy("title", leave_out=True)
    )
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.problem, copy.argument, copy.received, copy.remedy) == (
        "must be text",
        "title",
        3,
        error.remedy,
    )
    assert str(copy) == "title must be text, got 3; leave title out"
    assert copy.text(OPTION_NAMES) == "--title must be text, got 3; leave --title out"


def test_every_option_that_an_error_names_exists() -> None:
    context = click.Context(main)
    commands = [main.get_command(context, name) for name in main.list_commands(context)]
    exist = {
        name for command in commands if command for param in command.params for name in param.opts
    }
    assert {f"--{option}" for option in (*PLACEHOLDERS, *RENAMED.values())} <= exist


@pytest.mark.parametrize(
    ("remedy", "python", "option"),
    [
        (
            Remedy("missing", "not known"),
            "pass reading=ReadOptions(missing='not known')",
            "use --missing 'not known'",
        ),
        (
            Remedy("continuous", ["a b", "c"]),
            "pass continuous=['a b', 'c']",
            "use --continuous 'a b' --continuous c",
        ),
        (Remedy("intersectional", True), "pass intersectional=True", "use --intersectional"),
        (Remedy("header", False), "pass header=False", "use --no-header"),
        (
            Remedy("replace", {"it's": 1}),
            """pass reading=ReadOptions(replace={"it's": 1})""",
            """use --replace 'it'"'"'s=1'""",
        ),
        (Remedy("gamma", 0.5), "pass gamma=0.5", "use gamma=0.5"),
        (
            ["merge groups", Remedy("threshold")],
            "merge groups, or pass threshold=...",
            "merge groups, or use --threshold NUMBER",
        ),
    ],
)
def test_a_remedy_in_both_styles(remedy: Any, python: str, option: str) -> None:
    assert (remedy_text(remedy), remedy_text(remedy, OPTION_NAMES)) == (python, option)
