"""Audits of files: all formats agree, and counting agrees with holding."""

import io
import math
import os
import re
import subprocess
import sys
import threading
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair import AuditState, DataError, audit, audit_file
from metrifair.criteria import EQUALIZED_ODDS
from metrifair.errors import MetrifairWarning
from tests.flat_options import flat
from tests.seams.auditing import FileRows, Roles, audit_record, count_file
from tests.seams.auditing import cells as counted_cells
from tests.seams.auditing import file_tables as files
from tests.seams.auditing import table_rows as tables
from tests.seams.wording import finding_sentence, note_text, note_topic

WRITERS = {
    "csv": lambda table, path: table.write_csv(path),
    "tsv": lambda table, path: table.write_csv(path, separator="\t"),
    "parquet": lambda table, path: table.write_parquet(path),
    "arrow": lambda table, path: table.write_ipc(path),
    "ndjson": lambda table, path: table.write_ndjson(path),
}
STREAMED = {"in_memory_rows": 10}
QUICK = {"random_state": 0, "resamples": 20, "permutations": 9}


def table(n=1500, seed=0):
    generator = np.random.default_rng(seed)
    sex = generator.choice(["f", "m"], n, p=[0.4, 0.6])
    label = (generator.random(n) < np.where(sex == "m", 0.5, 0.4)).astype(int)
    return pl.DataFrame(
        {
            "p": np.clip(0.3 * label + 0.7 * generator.random(n) + 0.03 * (sex == "m"), 0, 1),
            "sex": sex,
            "region": generator.choice(["north", "south", "west"], n),
            "y": label,
            "w": generator.integers(1, 4, n).astype(float),
            "age": generator.integers(20, 23, n),
        }
    )


@pytest.fixture
def scores(tmp_path):
    path = tmp_path / "scores.parquet"
    table().write_parquet(path)
    return path


def same(first, second):
    return all(
        (a is None and b is None)
        or a == b
        or (isinstance(a, float) and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12))
        for a, b in zip(first, second, strict=True)
    )


def check_equal(streamed, held, *, precision=1e-5, located=True):
    """Everything that a large file's audit says, against the same rows in memory.

    ``located``: also where the gap is largest, which is not told if two gaps are equally large in
    few bins.
    """
    assert (streamed.record.rows, streamed.record.left_out) == (
        held.record.rows,
        held.record.left_out,
    )
    assert len(streamed.findings) == len(held.findings) > 0
    for ours, exact in zip(streamed.findings, held.findings, strict=True):
        named = ("attribute", "criterion", "within", "groups", "sizes", "metric")
        assert [getattr(ours, name) for name in named] == [getattr(exact, name) for name in named]
        assert ours.bracket.low - 1e-11 <= exact.value <= ours.bracket.high + 1e-11
        assert ours.bracket.low <= ours.value <= ours.bracket.high
        known = ours.bracket.high - ours.bracket.low < 1e-12
        if ours.metric == "kolmogorov" and known:
            assert ours.value == pytest.approx(exact.value, abs=1e-12)
            assert finding_sentence(ours) == finding_sentence(exact) or not located
        wide = 2 * precision + ours.bracket.high - ours.bracket.low
        for name in ("value", "unbiased", "certified", "certified_jointly"):
            assert (getattr(ours, name) is None) == (getattr(exact, name) is None), name
            if getattr(ours, name) is not None:
                assert getattr(ours, name) == pytest.approx(getattr(exact, name), abs=wide), name
        assert ours.certified is None or ours.certified >= exact.certified - 1e-12
        if ours.interval is not None:
            assert ours.interval.low <= ours.value + wide
            assert ours.interval.high >= ours.value - wide
    assert len(streamed.decisions) == len(held.decisions)
    for ours, exact in zip(streamed.decisions, held.decisions, strict=True):
        plain = [replace(one, rates=(), selection_ratio_interval=None) for one in (ours, exact)]
        assert same(*(vars(one).values() for one in plain))
        for a, b in zip(ours.rates, exact.rates, strict=True):
            known = (
                {} if a.selected is not None else {"interval": None, "ratio_interval": None}
            )  # the spread of weights
            assert same(vars(a).values(), vars(replace(b, **known)).values())
    for ours, exact in zip(streamed.record.distributions, held.record.distributions, strict=True):
        assert (ours.attribute, ours.within, ours.curves.grid) == (
            exact.attribute,
            exact.within,
            exact.curves.grid,
        )
        for name, curve in exact.curves.cumulative.items():
            assert np.allclose(ours.curves.cumulative[name], curve, atol=2e-3)


CASES = {
    "plain": {},
    "labels": {"label": "y"},
    "strata": {"label": "y", "control": "region"},
    "attributes": {"group": ["sex", "region"], "label": "y"},
    "crossed": {"group": ["sex", "region"], "intersectional": True},
    "against the rest": {
        "group": "region",
        "contrast": "rest",
        "metrics": ["kolmogorov", "energy", "lp", "cramer"],
    },
    "weights": {"label": "y", "weight": "w"},
    "numbers as groups": {"group": "age", "threshold": 0.3},
    "margins": {"score_range": (-1.0, 2.0), "metrics": "wasserstein"},
    "other criteria": {
        "label": "y",
        "criteria": [EQUALIZED_ODDS, "statistical_parity"],
        "pos_label": 0,
    },
    "bins of a target": {"label": "age", "criteria": replace(EQUALIZED_ODDS, bins=(21.0,))},
}


@pytest.mark.parametrize("case", CASES)
def test_counting_agrees_with_holding(case, scores):
    options = {"score": "p", "group": "sex", **QUICK, **CASES[case]}
    check_equal(
        audit_file(scores, **flat(**options, **STREAMED)), audit_file(scores, **flat(**options))
    )


def test_holding_agrees_with_audit(scores):
    frame = table()
    found = audit_file(
        scores, score="p", group="sex", label="y", weight="w", control="region", **flat(**QUICK)
    )
    direct = audit(
        frame["y"],
        frame["p"],
        sensitive_features={"sex": frame["sex"]},
        control_features={"region": frame["region"]},
        sample_weight=frame["w"],
        **flat(**QUICK),
    )
    assert found.record == direct.record


@pytest.mark.parametrize("most_bins", [8, 64])
def test_few_bins_widen_the_brackets_but_hold(most_bins, scores, monkeypatch):
    monkeypatch.setattr(tables, "_MOST_BINS", most_bins)
    monkeypatch.setattr(tables, "_HEAVY", 1.0)
    options = {"score": "p", "group": ["sex", "region"], "label": "y", **QUICK}
    counted = audit_file(scores, **flat(**options, **STREAMED))
    held = audit_file(scores, **flat(**options))
    for ours, exact in zip(counted.findings, held.findings, strict=True):
        assert ours.bracket.low - 1e-12 <= exact.value <= ours.bracket.high + 1e-12
        assert ours.bracket.low <= ours.value <= ours.bracket.high
    assert (
        max(
            one.bracket.high - one.bracket.low
            for one in counted.findings
            if one.metric == "kolmogorov"
        )
        > 1e-2
    )


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("how", [pytest.param({}, marks=pytest.mark.extended), STREAMED])
def test_formats_agree(kind, how, tmp_path):
    frame = table(800)
    WRITERS[kind](frame, tmp_path / f"scores.{kind}")
    frame.write_parquet(tmp_path / "same.pq")
    options = {
        "score": "p",
        "group": ["sex", "age"],
        "label": "y",
        "control": "region",
        "weight": "w",
    }
    found = audit_file(tmp_path / f"scores.{kind}", **flat(**options, **QUICK, **how))
    expected = audit_file(tmp_path / "same.pq", **flat(**options, **QUICK, **how))
    assert found.record == expected.record


@pytest.mark.parametrize("how", [{}, STREAMED])
def test_a_pattern_is_all_its_files(how, tmp_path):
    frame = table(900)
    frame.write_csv(tmp_path / "all.csv")
    for place in range(3):
        frame[place * 300 : place * 300 + 300].write_csv(tmp_path / f"part-{place}.csv")
    options = {"score": "p", "group": "sex", "label": "y", **QUICK}
    pattern, whole = (
        audit_file(tmp_path / name, **flat(**options, **how)) for name in ("part-*.csv", "all.csv")
    )
    assert pattern.record == whole.record


SPELLINGS = {
    "0.0": ({"0": "0.0", "1": "1.0"}, {"0": "0", "1": "1"}),
    "2.50": ({"0": "2.50", "1": "3.00"}, {"0": "2.5", "1": "3.0"}),
    "true": ({"0": "true", "1": "false"}, {"0": "True", "1": "FALSE"}),
    "beside a name": ({"0": "0.0", "1": "none of them"}, {"0": "0", "1": "none of them"}),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("role", ["group", "control", "label"])
@pytest.mark.parametrize("how", ["memory", "beyond", "states"])
def test_files_may_write_a_number_or_boolean_in_different_ways(how, role, spelling, tmp_path):
    """The figures are those of files that all write it as the first one."""
    columns = {"group": "sex", "control": "region", "label": "y", role: "value"}
    frame = table(800)
    bits = np.random.default_rng(1).integers(0, 2, len(frame)).astype(str)
    found = []
    for name, last in (("alike", 0), ("different", 1)):
        folder = tmp_path / name
        folder.mkdir()
        for place, cells in enumerate((SPELLINGS[spelling][0], SPELLINGS[spelling][last])):
            half = slice(place * 400, place * 400 + 400)
            values = pl.Series("value", [cells[bit] for bit in bits[half]])
            frame[half].with_columns(values).write_csv(folder / f"part-{place}.csv")
        if how == "states":
            states = [AuditState(), AuditState()]
            for state, path in zip(states, sorted(folder.iterdir()), strict=True):
                count_file(state, path, Roles.from_names(score="p", **columns))
            result = states[0].merge(states[1]).audit(**flat(**QUICK))
        else:
            options = STREAMED if how == "beyond" else {}
            result = audit_file(
                folder / "part-*.csv", score="p", **columns, **flat(**QUICK, **options)
            )
        found.append(result.record)
    values = [[(one.metric, one.sizes, one.value) for one in record.findings] for record in found]
    assert len(values[0]) > 0
    assert sorted(values[0]) == sorted(values[1])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_standard_input(kind, tmp_path, monkeypatch):
    frame, buffer = table(500), io.BytesIO()
    WRITERS[kind](frame, buffer)
    buffer.seek(0)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=buffer))
    frame.write_parquet(tmp_path / "same.parquet")
    options = {"score": "p", "group": "sex", **QUICK}
    found = audit_file("-", **flat(format=None if kind == "csv" else kind, **options, **STREAMED))
    assert (
        found.record == audit_file(tmp_path / "same.parquet", **flat(**options, **STREAMED)).record
    )


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        for content in (table(400).write_csv().encode(), b""):  # who opens it again finds nothing
            pipe.write_bytes(content)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert (
        audit_file(
            pipe, score="p", group="sex", **flat(in_memory_rows=5, format="csv", **QUICK)
        ).record.rows
        == 400
    )
    # lets the writer go, which waits for whoever opens it again
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer.join(timeout=60)
    os.close(reader)
    assert not writer.is_alive()


@pytest.mark.parametrize(
    "kinds", [(pl.Float64, pl.Int64), (pl.Int64, pl.Float64), (pl.Int8, pl.UInt16)], ids=str
)
def test_groups_are_numbers_of_one_kind_in_all_files(kinds, tmp_path):
    """Floats in one file and integers in the next are the same groups as in one file of floats."""
    frame = table(400).with_columns(pl.col("age").cast(pl.Float64))
    frame.write_parquet(tmp_path / "all.parquet")
    for place, kind in enumerate(kinds):
        part = frame[place * 200 : place * 200 + 200].with_columns(pl.col("age").cast(kind))
        part.write_parquet(tmp_path / f"part-{place}.parquet")
    options = {"score": "p", "group": "age", "continuous": False, **QUICK}
    for how in ({}, STREAMED):
        whole, parts = (
            audit_file(tmp_path / name, **flat(**options, **how))
            for name in ("all.parquet", "part-*.parquet")
        )
        figures = [
            [([float(name) for name in one.groups], one.sizes, one.value) for one in found.findings]
            for found in (parts, whole)
        ]
        assert figures[0] == figures[1]
    roles, states = Roles.from_names(score="p", group="age"), [AuditState(), AuditState()]
    for state, name in zip(states, ("all.parquet", "part-*.parquet"), strict=True):
        count_file(state, tmp_path / name, roles)
    assert states[0].cells == states[1].cells
    np.testing.assert_array_equal(states[0].counts.rows, states[1].counts.rows)


@pytest.mark.parametrize("how", [{}, STREAMED])
def test_long_integers_beside_floats_in_another_file_are_refused(how, tmp_path, refused):
    pl.DataFrame({"p": [0.1, 0.2] * 20, "g": [2**53 + 1, 7] * 20}).write_parquet(
        tmp_path / "part-0.parquet"
    )
    pl.DataFrame({"p": [0.1, 0.2] * 20, "g": [1.5, 7.0] * 20}).write_parquet(
        tmp_path / "part-1.parquet"
    )
    with refused(DataError):
        audit_file(tmp_path / "part-*.parquet", score="p", group="g", **flat(**QUICK, **how))


@pytest.mark.parametrize("how", [{}, STREAMED])
def test_rows_that_miss_something_are_left_out_and_counted(how, tmp_path):
    frame = table(300)
    holes = pl.DataFrame(
        {
            "p": [None, float("nan"), 0.5, 0.5, 0.5, 0.25],
            "sex": ["f", "m", None, "m", "f", "f"],
            "region": ["north"] * 6,
            "y": [1, 1, 1, None, 1, 0],
            "w": [1.0, 1.0, 1.0, 1.0, None, 1.0],
            "age": [20] * 6,
        },
        schema=frame.schema,
    )
    pl.concat([holes, frame, holes]).write_parquet(tmp_path / "holes.parquet")
    pl.concat([holes, frame, holes]).write_csv(tmp_path / "holes.csv")
    pl.concat([frame, holes[-1:], holes[-1:]]).write_parquet(tmp_path / "whole.parquet")
    options = {"score": "p", "group": "sex", "label": "y", "weight": "w", **QUICK}
    whole = audit_file(tmp_path / "whole.parquet", **flat(**options, **how))
    for name in ("holes.parquet", "holes.csv"):
        found = audit_file(tmp_path / name, **flat(**options, **how))
        assert (found.record.rows, found.record.left_out) == (302, 10)
        assert [one.value for one in found.findings] == pytest.approx(
            [one.value for one in whole.findings], abs=1e-9
        )
        assert any("8 rows" in text for text in found.note_texts())
        assert any("sex is missing in 2 of 304 rows" in text for text in found.note_texts())


def test_one_unknown_attribute_of_two_leaves_a_row_in(tmp_path):
    frame = table(600).with_columns(
        sex=pl.when(pl.int_range(600) % 10 == 0).then(None).otherwise(pl.col("sex"))
    )
    frame.write_parquet(tmp_path / "some.parquet")
    options = {"score": "p", "group": ["sex", "region"], **QUICK}
    counted = audit_file(tmp_path / "some.parquet", **flat(**options, **STREAMED))
    assert counted.record.left_out == 0
    check_equal(counted, audit_file(tmp_path / "some.parquet", **flat(**options)))


def test_a_group_without_rows_in_a_set_is_noted(tmp_path):
    frame = table(600).filter((pl.col("region") != "west") | (pl.col("sex") != "f"))
    frame.write_parquet(tmp_path / "some.parquet")
    options = {"score": "p", "group": "sex", "control": "region", **QUICK}
    counted = audit_file(tmp_path / "some.parquet", **flat(**options, **STREAMED))
    held = audit_file(tmp_path / "some.parquet", **flat(**options))
    check_equal(counted, held)
    assert [note for note in counted.notes if note.kind == "absent_groups"] == [
        note for note in held.notes if note.kind == "absent_groups"
    ]
    assert any("“f” of sex in region=west" in text for text in counted.note_texts())


def test_decisions_in_the_file_are_decisions(tmp_path):
    generator = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"d": generator.integers(0, 2, 500), "g": generator.choice(["a", "b", "c"], 500)}
    )
    frame.write_parquet(tmp_path / "decisions.parquet")
    options = {"score": "d", "group": "g", **QUICK, "metrics": ["kolmogorov", "total_variation"]}
    for threshold, selected in ((0.1, True), (7.0, False)):  # beyond 1 nobody is selected
        held = audit_file(
            tmp_path / "decisions.parquet", **flat(**options | {"threshold": threshold})
        )
        counted = audit_file(
            tmp_path / "decisions.parquet", **flat(**options | {"threshold": threshold}, **STREAMED)
        )
        check_equal(counted, held)
        assert (counted.decisions[0].rates[0].selection_rate > 0) == selected


def test_many_groups_are_compared_with_the_rest(tmp_path):
    generator = np.random.default_rng(0)
    frame = pl.DataFrame({"p": generator.random(4000), "g": generator.integers(0, 40, 4000)})
    frame.write_parquet(tmp_path / "many.parquet")
    options = {"score": "p", "group": "g", **QUICK}
    counted = audit_file(tmp_path / "many.parquet", **flat(continuous=False, **options, **STREAMED))
    assert {one.groups[1] for one in counted.findings} == {"rest"}
    check_equal(counted, audit_file(tmp_path / "many.parquet", **flat(continuous=False, **options)))
    for more in ({}, STREAMED):  # left to us, both take it as a number, and say so
        with pytest.warns(
            MetrifairWarning, match=re.escape("'g' (40 different values) is taken as a number")
        ):
            number = audit_file(tmp_path / "many.parquet", **flat(**options, **more))
        assert {one.groups[0][:1] for one in number.findings if one.metric == "kolmogorov"} == {"≤"}


def test_text_that_looks_like_numbers(tmp_path):
    """Labels and groups that are whole numbers in a csv are whole numbers; codes with leading
    zeros stay text.
    """
    (tmp_path / "codes.csv").write_text(
        "p,g,y\n0.1,007,1\n0.2,7,0\n0.3,007,1\n0.4,7,NA\n0.5,7,1\nNA,7,1\n 0.6 ,,1\n"
    )
    found = audit_file(
        tmp_path / "codes.csv", score="p", group="g", label="y", pos_label="1", **flat(**QUICK)
    )
    assert (found.record.rows, found.record.left_out) == (4, 3)
    assert {one.groups for one in found.findings} == {("007", "7")}
    assert {one.within for one in found.findings} == {"everyone", "y=1"}


@pytest.mark.parametrize("how", [{}, STREAMED])
@pytest.mark.parametrize("kind", ["csv", "ndjson"])
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["02139", "10001"], ("02139", "10001")),
        (["18_25", "26_40"], ("18_25", "26_40")),
        (["1.50", "2.50"], ("1.50", "2.50")),
        (["1e3", "2e3"], ("1e3", "2e3")),
        (["nan", "inf"], ("inf", "nan")),
        (["true", "false"], ("false", "true")),
        (["10", "9"], ("9", "10")),
        (["-0.5", "0.25"], ("-0.5", "0.25")),
    ],
)
def test_groups_and_controls_keep_their_names(names, expected, kind, how, tmp_path):
    frame = pl.DataFrame(
        {"p": np.arange(40) / 40, "g": names * 20, "c": [names[0]] * 20 + [names[1]] * 20}
    )
    WRITERS[kind](frame, tmp_path / f"names.{kind}")
    found = audit_file(
        tmp_path / f"names.{kind}", score="p", group="g", control="c", **flat(**QUICK, **how)
    )
    assert {one.groups for one in found.findings} == {expected}
    assert {one.within for one in found.findings} == {f"c={name}" for name in names}


@pytest.mark.parametrize("how", [{}, STREAMED])
def test_labels_are_numbers_only_where_they_look_like_numbers(how, tmp_path):
    for labels, within in {
        ("01", "02"): {"y=01", "y=02"},
        ("1_0", "2_0"): {"y=1_0", "y=2_0"},
        ("0", "1"): {"y=0", "y=1"},
        ("True", "false"): {"y=True", "y=False"},
        ("0", "?"): set(),
    }.items():
        frame = pl.DataFrame(
            {
                "p": np.arange(40) / 40,
                "g": ["a", "b"] * 20,
                "y": [labels[0]] * 20 + [labels[1]] * 20,
            }
        )
        frame.write_csv(tmp_path / "labels.csv")
        found = audit_file(
            tmp_path / "labels.csv", score="p", group="g", label="y", **flat(**QUICK, **how)
        )
        assert {one.within for one in found.findings} - {"everyone"} == within, labels
        assert found.record.left_out == (20 if "?" in labels else 0)
    target = [f"{k}.50" if k % 2 else f"{k}.5" for k in range(20)] * 2
    pl.DataFrame({"p": np.arange(40) / 40, "g": ["a", "b"] * 20, "y": target}).write_csv(
        tmp_path / "target.csv"
    )
    found = audit_file(
        tmp_path / "target.csv", score="p", group="g", label="y", **flat(**QUICK, **how)
    )
    assert {one.within for one in found.findings} == {"everyone"}  # a measurement, not 20 names


def test_only_as_many_rows_are_read_as_are_held(tmp_path, monkeypatch):
    for place in range(5):
        table(100, seed=place).write_csv(tmp_path / f"part-{place}.csv")
    read, uniform = [], files.FileTable._uniform

    def noted(self, batch):
        read.append(len(batch))
        return uniform(self, batch)

    monkeypatch.setattr(files.FileTable, "_uniform", noted)
    with files.open_files(tmp_path / "part-*.csv") as source:
        head = source.head(("p", "sex"), 150)
    assert read == [100, 50]
    expected = pl.concat([table(100, seed=0), table(100, seed=1)[:50]])
    assert head["p"].cast(float).to_list() == expected["p"].to_list()


@pytest.mark.parametrize("write", ["write_parquet", "write_ipc", "write_csv"])
def test_batches_are_small_and_hold_every_row_once_in_order(write, tmp_path, monkeypatch):
    frame = table(100)
    path = tmp_path / f"some.{write.removeprefix('write_').replace('ipc', 'arrow')}"
    getattr(frame, write)(path)
    monkeypatch.setattr(files, "_STRETCH", 32)
    monkeypatch.setattr(files, "_BATCH", 10)
    with files.open_files(path) as source:
        batches = list(source.batches(("sex", "p")))
    assert max(map(len, batches)) == 10
    assert pl.concat(batches)["p"].cast(float).to_list() == frame["p"].to_list()


def test_combinations_of_many_levels_take_no_more_memory_than_there_are(tmp_path):
    generator = np.random.default_rng(0)
    # 3.4e9 combinations, 3,000 of them met
    levels = {name: generator.integers(0, 1500, 3000) for name in "abc"}
    frame = pl.DataFrame({"p": generator.random(3000), **levels})
    frame.write_parquet(tmp_path / "many.parquet")
    with files.open_files(tmp_path / "many.parquet") as source:
        found = FileRows.of_file(source, Roles("p", tuple("abc")))
        tally = found.survey(0.5)
        counts = found.count().bins.counts.sum(0)
    met = frame.group_by("a", "b", "c").len()
    assert (found.used, len(found.cells), int(tally.rows.max())) == (
        3000,
        len(met),
        met["len"].max(),
    )
    np.testing.assert_array_equal(counts, tally.rows)
    named = [
        tuple(level.values[code - 1] for level, code in zip(found.levels, cell, strict=True))
        for cell in found.cells
    ]
    assert dict(zip(named, tally.rows.tolist(), strict=True)) == {
        row[:3]: row[3] for row in met.rows()
    }


def test_witnesses_are_drawn_for_as_many_comparisons_as_of_a_small_file(scores, monkeypatch):
    options = {"score": "p", "group": "region", "metrics": "energy", **QUICK, **STREAMED}
    assert all(one.witness is not None for one in audit_file(scores, **flat(**options)).findings)
    monkeypatch.setattr(audit_record, "_MOST_CURVES", 2)
    assert all(one.witness is None for one in audit_file(scores, **flat(**options)).findings)


def test_too_many_combinations_are_refused(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(counted_cells, "MOST_CELLS", 5)
    table(200).write_parquet(tmp_path / "some.parquet")
    options = {"score": "p", "group": ["sex", "region"], **QUICK}
    with refused(DataError):
        audit_file(tmp_path / "some.parquet", **flat(**options, **STREAMED))
    assert audit_file(tmp_path / "some.parquet", **flat(**options)).findings


@pytest.mark.parametrize("how", [{}, STREAMED])
def test_the_summary_ends_with_the_notes_in_full(how, tmp_path):
    pl.concat([table(800), table(2).with_columns(p=None)], how="vertical_relaxed").write_parquet(
        tmp_path / "n.parquet"
    )
    found = audit_file(tmp_path / "n.parquet", score="p", group="sex", **flat(**QUICK, **how))
    assert found.note_texts()[0] == "Excluded: 2 rows with a missing score or decision."
    notes = [f"Note: {text}" for text in found.note_texts()]
    assert found.summary.splitlines()[-len(notes) :] == notes


def test_weights_of_a_large_file_say_that_there_are_no_intervals(scores):
    found = audit_file(scores, score="p", group="sex", weight="w", **flat(**QUICK, **STREAMED))
    assert all(
        one.interval is None and one.p_value is None and one.certified is None
        for one in found.findings
    )
    (note,) = [note_text(note) for note in found.notes if note_topic(note) == "weights"]
    assert "Certified bounds and p-values" in note
    assert "intervals" in note


@pytest.mark.parametrize("kind", WRITERS)
def test_a_name_that_looks_like_a_pattern(kind, tmp_path):
    frame = table(40)
    WRITERS[kind](frame, tmp_path / f"scores[1]*.{kind}")
    WRITERS[kind](frame[:20], tmp_path / f"scores1.{kind}")
    found = audit_file(tmp_path / f"scores[1]*.{kind}", score="p", group="sex", **flat(**QUICK))
    assert found.record.rows == 40


def test_the_same_seed_gives_the_same_audit(scores):
    options = {"score": "p", "group": "sex", "label": "y", **QUICK}
    for how in ({}, STREAMED):
        first, second = (audit_file(scores, **flat(**options, **how)).record for _ in range(2))
        assert first == second


def test_notes_say_how_exact_the_figures_are(scores, monkeypatch):
    options = {"score": "p", "group": "sex", **QUICK}
    assert not [
        note
        for note in audit_file(scores, **flat(**options)).notes
        if note_topic(note) == "exactness"
    ]
    counted = audit_file(scores, **flat(**options, **STREAMED))
    (note,) = [note_text(note) for note in counted.notes if note_topic(note) == "exactness"]
    assert note == "The 1,500 rows were counted in bins. Distances are known to 0.000001."
    monkeypatch.setattr(tables, "_MOST_BINS", 4)
    monkeypatch.setattr(tables, "_HEAVY", 1.0)
    coarse = audit_file(scores, **flat(**options, **STREAMED))
    widest = {one.metric: (one.bracket.high - one.bracket.low) / 2 for one in coarse.findings}
    (text,) = [note_text(note) for note in coarse.notes if note_topic(note) == "exactness"]
    stated = dict(re.findall(r"(\w+) distance ([\d.]*\d)", text))
    for name, error in stated.items():
        assert widest[name.lower()] <= float(error) <= max(2e-6, 10 * widest[name.lower()])
    assert len(stated) == len(widest)


def test_a_score_that_says_nothing_of_one_groups_outcome_is_noted(tmp_path):
    generator = np.random.default_rng(1)
    group, label = generator.integers(0, 2, 5000), generator.integers(0, 2, 5000)
    score = np.where(group == 1, 0.5 * label, 0.25) + 0.5 * generator.random(5000)
    pl.DataFrame({"p": score, "g": group, "y": label}).write_parquet(tmp_path / "lot.parquet")
    found = audit_file(
        tmp_path / "lot.parquet", score="p", group="g", label="y", **flat(**QUICK, **STREAMED)
    )
    assert [note.kind for note in found.notes].count("uninformative_score") == 1


values = st.one_of(
    st.floats(-1e6, 1e6), st.integers(-2, 2).map(float), st.just(None), st.just(float("nan"))
)
cells = st.tuples(values, st.sampled_from(["a", "b", None]), st.integers(0, 1), st.floats(0.1, 5))


@given(rows=st.lists(cells, max_size=40), weighted=st.booleans())
@settings(max_examples=25, deadline=None)
def test_any_small_table_gives_the_same_either_way(rows, weighted, tmp_path_factory):
    anchor = [(0.5, "a", 0, 1.0), (0.25, "b", 0, 1.0), (0.125, "a", 1, 2.0), (1.0, "b", 1, 1.0)]
    frame = pl.DataFrame(
        [*anchor, *rows], schema=["p", "g", "y", "w"], orient="row", infer_schema_length=None
    )
    path = tmp_path_factory.mktemp("any") / "any.parquet"
    frame.write_parquet(path)
    options = {
        "score": "p",
        "group": "g",
        "label": "y",
        "weight": "w" if weighted else None,
        "random_state": 0,
    }
    options |= {"resamples": 0, "permutations": 0}
    held, counted = (
        audit_file(path, **flat(**options)),
        audit_file(path, **flat(in_memory_rows=1, **options)),
    )
    assert (held.record.rows, held.record.left_out) == (
        counted.record.rows,
        counted.record.left_out,
    )
    for ours, exact in zip(counted.findings, held.findings, strict=True):
        length = held.record.score_range[1] - held.record.score_range[0]
        unit = 1 if exact.metric == "kolmogorov" else length
        assert ours.bracket.low - 1e-11 * unit <= exact.value <= ours.bracket.high + 1e-11 * unit
        assert (
            ours.bracket.high - ours.bracket.low <= 1e-5 * unit + 1e-12
            or exact.metric == "kolmogorov"
        )


def test_what_counting_holds_does_not_grow_with_the_rows(tmp_path):
    """Counted is what our arrays take; polars' memory, and what allocators give back, differ by
    machine.
    """
    generator, peaks = np.random.default_rng(0), []
    options = {"random_state": 0, "resamples": 0, "permutations": 0, "in_memory_rows": 1}
    for rows in (1_000, 100_000, 400_000):  # the first imports what is imported once
        data = {"score": generator.random(rows), "group": generator.integers(0, 2, rows)}
        pl.DataFrame(data).write_parquet(tmp_path / "some.parquet", row_group_size=rows)
        tracemalloc.start()
        audit_file(tmp_path / "some.parquet", score="score", group="group", **flat(**options))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # 30 MB where this was written: the bins, a batch, the sample of the survey
    assert 2e6 < peaks[2] < 128e6
    assert peaks[2] - peaks[1] < 16e6


LIGHT = """
import sys
from metrifair import AuditOptions, audit_file
options = AuditOptions(in_memory_rows=1, resamples=20, permutations=1)
audit_file(sys.argv[1], score="score", group="group", random_state=0, options=options)
print(sorted({"sklearn", "pandas", "pyarrow"} & set(sys.modules)))
"""


def test_counting_a_file_brings_no_library_along_that_it_does_not_need(tmp_path):
    """They are as large as all that an audit of 10^8 rows holds; a page alone needs them."""
    pl.DataFrame({"score": [0.1, 0.2, 0.3, 0.4] * 8, "group": ["a", "b"] * 16}).write_parquet(
        tmp_path / "s.parquet"
    )
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, tmp_path / "s.parquet"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


PEAK = """
import sys
from pathlib import Path
import polars
from metrifair import AuditOptions, audit_file

def peak():
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024  # ru_maxrss would include the process that started this one

polars.select(1).lazy().collect(engine="streaming")
before = peak()
options = AuditOptions(resamples=0, permutations=0, in_memory_rows=1)
found = audit_file(sys.argv[1], score="score", group="group", random_state=0, options=options)
widths = {one.metric: one.bracket.high - one.bracket.low for one in found.findings}
print(max(widths["kolmogorov"] / 20, widths["wasserstein"], widths["energy"]), peak() - before)
"""


def width_and_peak(path) -> tuple[float, float]:
    """The widest bracket, and bytes beyond what is imported; two threads, so that no machine
    reads further ahead.
    """
    done = subprocess.run(
        [sys.executable, "-c", PEAK, path],
        env=os.environ | {"POLARS_MAX_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    width, peak = map(float, done.stdout.split())
    return width, peak


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("kind", "rows", "most"),
    [
        ("parquet", 6_000_000, 270e6),  # 80 to 140 MB on a busy machine; all rows at once: 380 MB
        # 250 to 290 MB; all rows at once: 670 MB
        pytest.param("csv", 4_000_000, 450e6, marks=pytest.mark.extended),
        pytest.param("parquet", 10_000_000, 300e6, marks=pytest.mark.slow),
        pytest.param("csv", 10_000_000, 800e6, marks=pytest.mark.slow),
    ],
)
def test_an_audit_holds_a_part_of_a_file_at_a_time(kind, rows, most, tmp_path):
    generator = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"score": generator.random(rows), "group": np.where(generator.random(rows) < 0.4, "f", "m")}
    )
    path = tmp_path / f"large.{kind}"
    getattr(frame, f"write_{kind}")(path)
    # How far polars reads ahead depends on the load of the machine; an audit that holds all rows
    # does so each time.
    runs = [width_and_peak(path)]
    while runs[-1][1] >= most and len(runs) < 3:
        runs.append(width_and_peak(path))
    path.unlink()
    width, peak = runs[-1]
    assert width <= 1e-5
    assert 10e6 < peak < most


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("kind", ["continuous", "one bin"])
def test_memory_is_bounded(kind, tmp_path):
    generator = np.random.default_rng(0)
    for place in range(10):
        scores = generator.random(2_000_000)
        scores = scores if kind == "continuous" else 1.0 + 1e-13 * np.floor(1e3 * scores)
        pl.DataFrame({"score": scores, "group": generator.integers(0, 2, 2_000_000)}).write_parquet(
            tmp_path / f"large-{place}.parquet"
        )
    peaks = []
    for path in (tmp_path / "large-0.parquet", tmp_path / "large-*.parquet"):
        width, peak = width_and_peak(path)
        assert width <= 1e-5
        peaks.append(peak)
    # What libraries and allocators take differs by machine; what ten times as many rows add to it
    # is ours.
    assert peaks[1] - peaks[0] < 64e6
