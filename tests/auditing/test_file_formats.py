"""One table in every format, encoding and spelling gives one audit; what cannot be read is one
kind sentence.
"""

from __future__ import annotations

import datetime as dt
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair import AuditState, DataError, ReadOptions, audit, audit_file
from metrifair.errors import MetrifairWarning, MissingExtra
from tests.expected_errors import Refusals
from tests.flat_options import flat
from tests.seams.auditing import Roles, canonical_cells, count_file, open_files

NAMES = {"score": "p", "group": ["sex", "band"], "label": "y", "control": "day", "weight": "w"}
QUICK = {"random_state": 0, "resamples": 0, "permutations": 0}
NUMBERED = {"score": "1", "group": ["2", "3"], "label": "4", "control": "5", "weight": "6"}


def in_text(frame: pl.DataFrame, *, comma: bool = False, day_first: bool = False) -> pl.DataFrame:
    """The table as text, numbers and dates as some people write them."""
    day = pl.col("day").dt.strftime("%d.%m.%Y" if day_first else "%Y-%m-%d")
    texts = [pl.col(name).cast(pl.String) for name in ("p", "w")]
    texts = [one.str.replace(".", ",", literal=True) for one in texts] if comma else texts
    return frame.with_columns(day, *texts)


def written(frame: pl.DataFrame, folder: Path) -> dict[str, tuple[Path, dict[str, object]]]:
    """The table in every way, and how it is to be read."""
    plain, comma, both = (
        in_text(frame), in_text(frame, comma=True), in_text(frame, comma=True, day_first=True)
    )  # fmt: skip
    found: dict[str, tuple[Path, dict[str, object]]] = {}

    def add(name: str, content: bytes | None = None, **options: object) -> Path:
        found[name] = folder / name, options
        if content is not None:
            (folder / name).write_bytes(content)
        return folder / name

    add("plain.csv", plain.write_csv().encode())
    add("quoted.csv", comma.write_csv(quote_style="always").encode(), decimal=",", separator=",")
    add("comma.csv", comma.write_csv(separator=";").encode(), decimal=",")
    add(
        "days.tsv",
        both.write_csv(separator="\t").encode("cp1252"),
        decimal=",",
        day_first=True,
        encoding="cp1252",
    )
    add("wide.csv", plain.write_csv().encode("utf-16"), encoding="utf-16")
    add("bare.csv", plain.write_csv(include_header=False).encode(), header=False)
    add(
        "lines.txt",
        both.write_ndjson().encode("latin-1"),
        format="ndjson",
        decimal=",",
        day_first=True,
        encoding="l1",
    )
    frame.write_parquet(add("typed.parquet"))
    both.write_ipc(add("texts.arrow", decimal=",", day_first=True))
    frame.write_excel(add("typed.xlsx"))
    both.write_excel(add("texts.xlsx", decimal=",", day_first=True))
    frame.write_excel(add("bare.xlsx", header=False), include_header=False)
    return found


ROW = st.tuples(
    st.none() | st.integers(0, 10**6).map(lambda number: number / 10**6),
    st.sampled_from(["Zoë", "m", "NA", None]),
    st.sampled_from([9, 10, 20]),
    st.integers(0, 1),
    st.sampled_from([dt.date(2026, 1, 31), dt.date(2025, 12, 1)]),
    st.sampled_from([0.5, 1.0, 2.25]),
)

DAY = dt.date(2026, 1, 31)


def check_every_format(rows: list[tuple[object, ...]]) -> None:
    schema = {
        "p": pl.Float64,
        "sex": pl.String,
        "band": pl.Int64,
        "y": pl.Int64,
        "day": pl.Date,
        "w": pl.Float64,
    }
    frame = pl.DataFrame(
        [(0.25, "m", 9, 0, DAY, 1.0), (0.75, "Zoë", 10, 1, DAY, 1.0), *rows], schema, orient="row"
    )
    with tempfile.TemporaryDirectory() as name:
        audits, states = {}, {}
        for kind, (path, options) in written(frame, Path(name)).items():
            named = NAMES if options.get("header", True) else NUMBERED
            found = audit_file(path, **flat(**named, **options, **QUICK))
            # Nothing but the names of columns may differ.
            text = found.to_frame("polars").write_csv()
            audits[kind] = (
                text if named is NAMES else renamed(text),
                found.record.rows,
                found.record.left_out,
            )
            state = AuditState()
            count_file(state, path, Roles.from_names(**named), ReadOptions(**options))
            states[kind] = state.rows, state.left_out, len(state.cells)
        assert {kind for kind, other in audits.items() if other != audits["plain.csv"]} == set()
        assert {kind for kind, other in states.items() if other != states["plain.csv"]} == set()


def renamed(text: str) -> str:
    frame = pl.read_csv(text.encode(), infer_schema=False)
    names = dict(zip(["2", "3", "5"], ["sex", "band", "day"], strict=True))
    change = [pl.col("attribute").replace(names)]
    change.append(
        pl.col("within")
        .str.replace_all("5=", "day=", literal=True)
        .str.replace_all("4=", "y=", literal=True)
    )
    return frame.with_columns(change).write_csv()


@settings(max_examples=3, deadline=None, derandomize=True, database=None)
@given(st.lists(ROW, max_size=25))
def test_one_table_in_every_format_gives_one_audit(rows):
    check_every_format(rows)


@pytest.mark.slow(rotate=False)
@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(ROW, max_size=60))
def test_many_tables_in_every_format(rows):
    check_every_format(rows)


def refused(path: Path, match: str, **options: object) -> None:
    with pytest.raises(DataError, match=match):
        audit_file(path, score="p", group="sex", **flat(**QUICK, **options))


def test_what_is_written_otherwise_says_how_to_read_it(tmp_path: Path) -> None:
    path, text = tmp_path / "s.csv", "p;sex\n0,5;Zoë\n0,25;m\n"
    path.write_bytes(text.encode("cp1252"))
    refused(
        path,
        r"s\.csv is not UTF-8 text; pass reading=ReadOptions\(encoding='cp1252'\) \(Windows\), or",
        separator=";",
    )
    refused(
        path,
        r"is not ascii text; pass reading=ReadOptions\(encoding=...\), the one in which",
        separator=";",
        encoding="ascii",
    )
    refused(
        path,
        "encoding must be one that Python supports, such as 'cp1252'.* got 'klingon'",
        encoding="klingon",
    )
    refused(path, "encoding must be one that Python supports", encoding="base64")
    refused(
        path,
        r"score column 'p' must contain numbers, got '0,5'; pass "
        r"reading=ReadOptions\(decimal=','\)",
        separator=";",
        encoding="l1",
    )
    refused(path, "decimal must be one of '.', ',', got ';'", decimal=";")
    path.write_text("p;sex\n0,5;f\n1.234;m\n")
    refused(
        path,
        "column 'p' contains '0,5' and '1.234': numbers with a comma and with a point; write all",
        decimal=",",
    )
    pl.DataFrame({"p": [0.5, 0.6], "sex": ["f", "m"]}).write_parquet(tmp_path / "s.parquet")
    for options, what in (
        ({"encoding": "cp1252"}, "is parquet, which has no encoding; leave encoding out"),
        ({"header": False}, "is parquet, which always names its columns; leave header out"),
        ({"sheet": "a"}, "is parquet, which has no sheets; leave sheet out"),
    ):
        refused(tmp_path / "s.parquet", what, **options)


def test_day_first_dates_are_iso_dates_and_nothing_else_is_touched() -> None:
    given = ["31.12.2026", "1/2/2026", "03-04-2026 12:30", "12/31/2026", "2026-01-02", "1.5", None]
    found = canonical_cells(ReadOptions(day_first=True), pl.DataFrame({"d": given}))["d"].to_list()
    assert found == [
        "2026-12-31",
        "2026-02-01",
        "2026-04-03 12:30",
        "12/31/2026",
        "2026-01-02",
        "1.5",
        None,
    ]


def test_decimal_commas_are_points_and_nothing_else_is_touched() -> None:
    given = ["0,5", " -1,25e-3", ",5", "1,2,3", "a,b", "1.234,5", "7", None]
    found = canonical_cells(ReadOptions(decimal=","), pl.DataFrame({"d": given}))["d"].to_list()
    assert found == ["0.5", " -1.25e-3", ".5", "1,2,3", "a,b", "1.234,5", "7", None]


def test_words_are_replaced_in_all_columns_and_nothing_else_is_touched(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "d": ["Approved", " Declined ", "N/A", "approved", None],
            "sex": ["f", "?", "N/A", "m", "m"],
        }
    )
    options = ReadOptions(replace={"Approved": 1, "Declined": "0", "?": "x"})
    assert canonical_cells(options, table).to_dict(as_series=False) == {
        "d": ["1", "0", "N/A", "approved", None],
        "sex": ["f", "x", "N/A", "m", "m"],
    }
    words = ["Approved", "Declined", "Declined", "Approved"]
    frame = pl.DataFrame({"d": words * 20, "sex": ["f", "f", "m", "N/A"] * 20})
    for path, write in (
        (tmp_path / "s.csv", "write_csv"),
        (tmp_path / "s.parquet", "write_parquet"),
    ):
        getattr(frame, write)(path)
        found = audit_file(
            path,
            score="d",
            group="sex",
            reading=ReadOptions(replace={"Approved": 1, "Declined": 0}, missing="N/A"),
        )
        assert {one.group: one.selection_rate for one in found.decisions[0].rates} == {
            "f": 0.5,
            "m": 0.0,
        }
    with pytest.raises(
        DataError,
        match=r"got 'Approved'; pass favorable_decision=\.\.\. if these values are decisions: "
        r"'Approved' \(4",
    ):
        audit_file(tmp_path / "s.csv", score="d", group="sex")
    frame.with_columns(p=pl.lit("43.0%")).write_csv(tmp_path / "s.csv")
    refused(
        tmp_path / "s.csv",
        "must contain numbers, got '43.0%'; write shares as numbers, such as 0.25 for 25%",
    )
    for wrong in (["Approved"], {"N/A": ""}, {}, {1: 2}):
        refused(tmp_path / "s.csv", "replace must map text to its replacement", replace=wrong)
    for absent in (None, float("nan")):
        message = r"must not read 'N/A' as .*; pass reading=ReadOptions\(missing='N/A'\) instead"
        refused(tmp_path / "s.csv", message, replace={"f": 1, "N/A": absent})
    refused(tmp_path / "s.csv", "replace names 'f' twice", replace={"f": 1, " f ": 0})


def test_nothing_is_left_unreplaced_in_silence(tmp_path: Path, refused: Refusals) -> None:
    frame = pl.DataFrame(
        {"d": ["yes", "no"] * 20, "sex": ["f", "f", "m", "m"] * 10, "k": [1, 2, 2, 9] * 10}
    )
    frame = frame.with_columns(ok=pl.col("k") < 9, day=pl.date(2026, 1, "k"))
    frame.write_csv(tmp_path / "s.csv")
    frame.with_columns(pl.col("sex").cast(pl.Categorical)).write_parquet(tmp_path / "s.parquet")
    said: dict[str, object] = {"yes": True, "no": False}
    for path, rows in ((path, rows) for path in ("s.csv", "s.parquet") for rows in (10, 100)):
        asked: dict[str, Any] = {"score": "d", "group": "sex", "in_memory_rows": rows}
        found = audit_file(tmp_path / path, **flat(replace=said | {"f": "women"}, **asked))
        assert {one.group for one in found.decisions[0].rates} == {"women", "m"}
        with pytest.warns(
            MetrifairWarning,
            match="replace names 'F', 'on', which no cell of the columns that were",
        ):
            audit_file(tmp_path / path, **flat(replace=said | {"F": "women", "on": 1}, **asked))
    for group, old in (("k", "9.0"), ("ok", "False")):
        asked = {"score": "d", "group": group, "continuous": False, "replace": said | {old: "x"}}
        with pytest.raises(
            DataError,
            match=f"replace is for text, and names .* which the column '{group}' contains as",
        ):
            audit_file(tmp_path / "s.parquet", **flat(**asked))
    with open_files(tmp_path / "s.parquet", ReadOptions(replace={"f": "women"})) as source:
        assert source.table()["sex"].to_list() == ["women", "women", "m", "m"] * 10
    with (
        refused(DataError),
        open_files(tmp_path / "s.parquet", ReadOptions(replace={"2026-01-09": "x"})) as source,
    ):
        source.table()


def test_what_is_wrong_with_a_workbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import xlsxwriter  # noqa: PLC0415

    frame = pl.DataFrame({"p": [0.5, 0.6, 0.1], "sex": ["f", "m", "m"]})
    path = tmp_path / "two.xlsx"
    with xlsxwriter.Workbook(path) as book:
        frame.write_excel(book, worksheet="first")
        frame.write_excel(book, worksheet="second")
        book.add_worksheet("nothing")
    refused(
        path,
        r"has several sheets; pass reading=ReadOptions\(sheet=...\), one of 'first', 'second', "
        r"'nothing'",
    )
    refused(path, "sheet must be one of 'first', 'second', 'nothing', got 'third'", sheet="third")
    refused(path, "two.xlsx has no columns", sheet="nothing")
    assert (
        audit_file(path, score="p", group="sex", **flat(sheet="second", **QUICK)).record.rows == 3
    )
    (tmp_path / "bad.xlsx").write_bytes(path.read_bytes()[:200])
    refused(tmp_path / "bad.xlsx", "bad.xlsx cannot be read as an Excel file: ")
    (tmp_path / "old.xls").write_bytes(b"x")
    refused(
        tmp_path / "old.xls",
        "is a spreadsheet of another kind; save it as .xlsx, or its sheet as csv",
    )
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(MissingExtra, match=r'reading Excel files needs .*"metrifair\[cli\]"'):
        audit_file(path, score="p", group="sex", reading=ReadOptions(sheet="first"))


def test_names_that_look_like_mistakes_are_pointed_out() -> None:
    found = audit(
        None,
        [0.1, 0.2, 0.3, 0.4, 0.5],
        sensitive_features={"sex": ["f", "F ", "m", "NA", "n / a"]},
        **flat(**QUICK),
    )
    told = " ".join(found.note_texts())
    assert "sex: 1 of 5 rows is named 'NA', which says that the group is not known." in told
    assert "If it marks missing values, pass None instead." in told
    assert "sex: 1 of 5 rows is named 'n / a'" in told
    assert "sex: the groups 'F ' and 'f' differ only in spelling" in told
    clean = audit(
        None,
        [0.1, 0.2, 0.3],
        sensitive_features={"sex": ["f", "m", None], "n": [1, 1, 2]},
        **flat(**QUICK),
    )
    assert not {"unknown_name", "names_alike"} & {note.kind for note in clean.notes}


def test_provenance_has_the_hash_of_the_file_and_not_of_its_copy_in_utf8(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_bytes("p,sex\n0.1,Männer\n0.4,Frauen\n0.6,Männer\n0.9,Frauen\n".encode("cp1252"))
    found = audit_file(path, score="p", group="sex", reading=ReadOptions(encoding="cp1252"))
    (file,) = found.provenance.files
    assert (file.name, file.sha256) == ("scores.csv", sha256(path.read_bytes()).hexdigest())
