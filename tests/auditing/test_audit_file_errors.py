"""Files that cannot be audited: one sentence that names what is wrong, and nothing of polars'
own.
"""

import gzip
import io
import os
import pathlib
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from metrifair import AuditOptions, DataError, ReadOptions, audit_file
from tests.expected_errors import Refusals
from tests.flat_options import flat
from tests.seams.auditing import _column_remedy

STREAMED = {"in_memory_rows": 1}
GOOD = "p,sex,y,w\n0.1,f,0,1\n0.2,m,1,1\n0.3,f,1,2\n0.4,m,0,1\n"


def refused(path, match, **options):
    with pytest.raises(DataError, match=match) as raised:
        audit_file(path, **flat(**{"score": "p", "group": "sex", "random_state": 0, **options}))
    assert "polars" not in str(raised.value)
    assert raised.value.__cause__ is None
    return str(raised.value)


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.csv"
    path.write_text(GOOD)
    return path


def test_several_files_are_named_by_a_pattern(good):
    refused(
        [good, good],
        r"path must be the path of a file, got a list; .* pattern such as 'scores-\*.csv'",
    )
    refused(None, "got a NoneType")


@pytest.mark.parametrize(
    ("role", "options"),
    [
        ("score", {"score": "q"}),
        ("group", {"group": ["sex", "q"]}),
        ("label", {"label": "q"}),
        ("control", {"control": "q"}),
        ("weight", {"weight": "q"}),
    ],
)
def test_a_missing_column_is_named_and_the_others_are_listed(role, options, good):
    said = refused(good, "has no column 'q'", **options)
    assert f"given as {role}" in said
    assert "'p', 'sex', 'y', 'w'" in said


@pytest.mark.parametrize("how", [{}, STREAMED])
@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is empty"),
        ("p,sex\n", "has no rows"),
        (
            "p;sex\n0.1;f\n0.2;m\n",
            r"pass reading=ReadOptions\(separator=';'\) if .* its only column is 'p;sex'",
        ),
        ("p,sex\n0.1,f\nhigh,m\n0.3,m\n", "score column 'p' must contain numbers, got 'high'"),
        ("p,sex\n0.1,f\n0.2,f\n0.3,f\n", "at least two groups, got 1"),
        ("p,sex\n0.1,f\ninf,m\n0.3,m\n", "contains an infinite value"),
        ("p,sex\n0.1,f\n0.2,m,x\n0.3,m\n", "more fields than its header"),
        ("p,sex\n,f\nNA,m\nnan,m\n", "no row of .* has a score"),
    ],
)
def test_text_that_is_no_table_of_scores(text, match, how, tmp_path):
    (tmp_path / "bad.csv").write_text(text)
    refused(tmp_path / "bad.csv", match, **how)


@pytest.mark.parametrize("how", [{}, STREAMED])
def test_bytes_that_are_no_text(how, tmp_path):
    (tmp_path / "latin.csv").write_bytes(GOOD.replace("f", "é").encode("latin-1"))
    refused(tmp_path / "latin.csv", "is not UTF-8 text", **how)
    (tmp_path / "junk.csv").write_bytes(bytes(range(256)) * 20)
    refused(tmp_path / "junk.csv", "is not text", **how)
    (tmp_path / "junk.ndjson").write_bytes(bytes(range(1, 256)) * 20)
    refused(tmp_path / "junk.ndjson", "is not UTF-8 text|cannot be read", **how)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_junk_and_damaged_files(ending, tmp_path):
    path = tmp_path / f"junk.{ending}"
    path.write_bytes(np.random.default_rng(0).bytes(5000))
    refused(path, "cannot be read")
    frame = pl.DataFrame({"p": np.random.default_rng(0).random(5000), "sex": ["f", "m"] * 2500})
    (frame.write_parquet if ending == "parquet" else frame.write_ipc)(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "cannot be read")


@pytest.mark.parametrize("how", [{}, STREAMED])
@pytest.mark.parametrize(
    ("weight", "match"),
    [
        ("-1", "not negative"),
        ("inf", "finite"),
        ("heavy", "weight column 'w' must contain numbers, got 'heavy'"),
    ],
)
def test_weights_that_are_none(weight, match, how, tmp_path):
    (tmp_path / "weights.csv").write_text(GOOD.replace("f,1,2", f"f,1,{weight}"))
    refused(tmp_path / "weights.csv", match, weight="w", **how)


def test_columns_that_hold_no_numbers(tmp_path):
    frame = pl.DataFrame({"p": ["2020-01-01", "2020-01-02"], "sex": ["f", "m"]}).with_columns(
        pl.col("p").str.to_date()
    )
    frame.write_parquet(tmp_path / "dates.parquet")
    refused(tmp_path / "dates.parquet", "score column 'p' must contain numbers, got '2020-01-01'")
    pl.DataFrame({"p": ["0.1", "much"], "sex": ["f", "m"]}).write_parquet(tmp_path / "text.parquet")
    refused(tmp_path / "text.parquet", "must contain numbers, got 'much'")


def test_too_many_groups(tmp_path):
    frame = pl.DataFrame({"p": np.linspace(0, 1, 20_002), "sex": np.arange(20_002)})
    frame.write_parquet(tmp_path / "many.parquet")
    assert "20,002" in refused(tmp_path / "many.parquet", "sex")
    assert "or more" in refused(tmp_path / "many.parquet", "groups 'sex' have", **STREAMED)


def test_paths_that_lead_nowhere(tmp_path, good):
    refused(tmp_path / "none.csv", "there is no file")
    refused(tmp_path / "*.parquet", "no file matches")
    refused(tmp_path, "is a folder")
    (tmp_path / "scores.xlsx").write_text(GOOD)
    refused(tmp_path / "scores.xlsx", "cannot be read as an Excel file")
    (tmp_path / "scores").write_text(GOOD)
    refused(tmp_path / "scores", "has no ending")
    refused(good, "format must be one of", format="word")
    assert (
        audit_file(
            tmp_path / "scores",
            score="p",
            group="sex",
            random_state=0,
            reading=ReadOptions(format="csv"),
        ).record.rows
        == 4
    )


def test_no_permission(good, monkeypatch):
    real = pathlib.Path.open

    def closed(self, *args, **kwargs):
        if self == good:
            raise PermissionError(13, "Permission denied")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(pathlib.Path, "open", closed)
    refused(good, "cannot be read: no permission")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_no_permission_of_the_system(good):
    good.chmod(0)
    refused(good, "no permission")


def test_files_of_a_pattern_that_do_not_go_together(tmp_path, good):
    (tmp_path / "more.csv").write_text(GOOD.replace("sex", "gender"))
    refused(tmp_path / "*.csv", "different columns: only one of them has 'gender'")
    (tmp_path / "more.csv").write_text(GOOD.replace(",", "\t"))
    (tmp_path / "more.csv").rename(tmp_path / "more.tsv")
    refused(tmp_path / "*.?sv", "several formats: csv, tsv")


@pytest.mark.parametrize("how", [{}, STREAMED])
def test_a_column_may_change_its_type_between_files(how, tmp_path):
    pl.DataFrame({"p": [0.5, 0.25, 0.1], "sex": [1, 2, 1]}).write_parquet(tmp_path / "a.parquet")
    frame = pl.DataFrame(
        {"p": [0.5, 0.75, 0.1], "sex": ["1", "2", "2"]}, schema={"p": pl.Float32, "sex": pl.String}
    )
    frame.write_parquet(tmp_path / "b.parquet")
    found = audit_file(
        tmp_path / "*.parquet", score="p", group="sex", random_state=0, **flat(**how)
    )
    assert found.worst().groups == ("1", "2")
    assert found.worst().sizes == (3, 3)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"group": []}, "group must name at least one column"),
        ({"score": 5}, "score must be a name, or a sequence of names, got 5"),
        ({"score": [5]}, r"score must be a name, or a sequence of names, got \[5\]"),
        ({"group": 5}, "group must be a name, or a sequence of names, got 5"),
        ({"label": 5}, "label must be the name of a column, got 5"),
        ({"metrics": 5}, "metrics must be a name, or a sequence of names, got 5"),
        ({"criteria": 5}, "criteria must be a name, or a sequence of names, got 5"),
        ({"header": "no"}, "header must be True or False, got 'no'"),
        ({"group": ["sex", "sex"]}, "group must name different columns"),
        ({"metrics": "mmd", **STREAMED}, "metrics must be one of .* or a smaller file, got 'mmd'"),
        (
            {"label": "y", "criteria": "risk_parity", "loss": "log_loss", **STREAMED},
            "risk_parity compares other scores",
        ),
        ({"threshold": "half", **STREAMED}, "threshold must be a finite number"),
        ({"contrast": "all", **STREAMED}, "contrast"),
        ({"pos_label": "maybe", "label": "y", **STREAMED}, "pos_label must be one of the classes"),
        ({"score_range": (0.2, 1.0), **STREAMED}, "score_range must contain all scores"),
    ],
)
def test_options_that_cannot_be_met(options, match, good):
    refused(good, match, **options)


@pytest.mark.parametrize(
    "names", [np.array, pl.Series, pd.Index, tuple], ids=lambda one: one.__name__
)
def test_columns_are_named_by_whatever_holds_names(names, good):
    found = audit_file(
        good, score=names(["p"]), group=names(["sex"]), metrics=names(["energy"]), random_state=0
    )
    assert [one.metric for one in found.findings] == ["energy"]
    assert found.provenance.columns["group"] == ("sex",)


def test_standard_input_that_is_empty(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    refused("-", "standard input is empty")


def test_names_with_wildcards_are_names_where_the_file_exists(tmp_path):
    (tmp_path / "scores[1].csv").write_text(GOOD)
    (tmp_path / "scores1.csv").write_text("other,columns\n1,2\n")
    assert (
        audit_file(tmp_path / "scores[1].csv", score="p", group="sex", random_state=0).record.rows
        == 4
    )


def test_compressed_text(tmp_path):
    with gzip.open(tmp_path / "scores.csv.gz", "wt") as stream:
        stream.write(GOOD)
    assert (
        audit_file(tmp_path / "scores.csv.gz", score="p", group="sex", random_state=0).record.rows
        == 4
    )


@pytest.mark.parametrize("damage", ["cut short", "garbled"])
def test_compressed_text_of_another_encoding_that_is_damaged(damage, tmp_path):
    whole = gzip.compress(GOOD.encode("cp1252"))
    path = tmp_path / "scores.csv.gz"
    path.write_bytes(whole[:-12] if damage == "cut short" else whole[:10] + b"\xff" * 20)
    refused(path, r"scores\.csv\.gz cannot be read: ", encoding="cp1252")


@pytest.mark.parametrize("held", [True, False])
def test_a_column_of_ids_is_refused_while_it_is_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, held: bool, refused: Refusals
) -> None:
    """Before its values are listed: to name and sort a million took 20 s."""
    ids = pl.Series([f"id {number}" for number in range(30_000)])
    pl.DataFrame({"p": np.linspace(0, 1, 30_000), "g": ids}).write_parquet(tmp_path / "ids.parquet")
    monkeypatch.setattr(
        pl.Series, "to_list", lambda column: pytest.fail(f"listed {len(column)} values")
    )
    with refused(DataError):
        audit_file(
            tmp_path / "ids.parquet",
            score="p",
            group="g",
            options=AuditOptions(in_memory_rows=10**6 if held else 0),
        )


@pytest.mark.parametrize(
    ("text", "is_text", "remedy"),
    [
        ("a", True, "its only column is 'a'"),
        ("p;sex", True, "separator"),
        ("p;sex", False, "its only column is 'p;sex'"),
    ],
)
def test_a_separator_is_proposed_where_the_only_name_of_a_text_file_holds_one(
    text: str, is_text: bool, remedy: str
) -> None:
    found = _column_remedy("score", [text], is_text=is_text)
    assert (found if isinstance(found, str) else found.argument) == remedy
    assert isinstance(found, str) or found.value == ";"
