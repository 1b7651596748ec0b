"""Audits of tables where they are: every engine finds what audit_file finds, and only counts
leave it.
"""

import contextlib
import math
import warnings

import dask.dataframe as dd
import duckdb
import ibis
import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_audit_file import CASES, check_equal, table
from test_audit_out_of_core import METRICS, adversarial, check_brackets, in_memory

from metrifair import AuditState, DataError, ReadOptions, audit_file, audit_table, compare
from tests.flat_options import flat
from tests.seams.auditing import (
    CellSides,
    DatabaseTable,
    Roles,
    TableRows,
    bracket_distances,
    count_file,
    count_table,
    state_counts,
)
from tests.seams.auditing import state_rows as counting_tables
from tests.seams.auditing import table_rows as tables

COUNTED = {"in_memory_rows": 10}


def incomplete(n=1500):
    """Rows that miss scores, groups, labels and weights, each in several ways."""
    place = pl.int_range(n)
    return table(n).with_columns(
        p=pl.when(place % 31 == 0)
        .then(None)
        .when(place % 37 == 0)
        .then(float("nan"))
        .otherwise("p"),
        sex=pl.when(place % 41 == 0)
        .then(None)
        .when(place % 43 == 0)
        .then(pl.lit(" "))
        .otherwise("sex"),
        y=pl.when(place % 47 == 0).then(None).otherwise("y"),
        w=pl.when(place % 53 == 0).then(None).when(place % 59 == 0).then(0.0).otherwise("w"),
    )


ENGINES = {
    "polars": lambda frame, connection: frame,
    "polars, lazy": lambda frame, connection: frame.lazy(),
    "pandas": lambda frame, connection: frame.to_pandas(),
    "pyarrow": lambda frame, connection: frame.to_arrow(),
    "DuckDB": lambda frame, connection: connection.register("scores", frame.to_arrow()).table(
        "scores"
    ),
    "Ibis": lambda frame, connection: ibis.memtable(frame),
    "Dask": lambda frame, connection: dd.from_pandas(frame.to_pandas(), npartitions=2),
}


@contextlib.contextmanager
def held_by(engine, frame):
    with warnings.catch_warnings(), duckdb.connect() as connection:
        warnings.simplefilter("ignore")
        yield ENGINES[engine](frame, connection)


EVERYTHING = {
    "score": "p",
    "group": ["sex", "old"],
    "label": "y",
    "control": "old",
    "criteria": "equal_opportunity",
}
QUICKER = {"random_state": 0, "resamples": 0, "permutations": 0}


SIMPLER = {"group": "sex", "control": None, "metrics": "kolmogorov"}  # Dask is slow to start
CHANGES = [
    *((engine, {}) for engine in ENGINES if engine != "Dask"),
    ("DuckDB", {"weight": None}),
    ("Dask", SIMPLER),
]


@pytest.mark.parametrize(
    ("favorable", "other"), [("yes", "no"), (True, False), (False, True), (2, 1), (0.5, 1.5)]
)
@pytest.mark.parametrize("how", [{}, COUNTED], ids=["held", "counted"])
def test_rows_with_the_favorable_decision_are_those_selected(favorable, other, how, tmp_path):
    """One in five of the women, three in five of the men; decisions of no row are refused, or
    select nobody.
    """
    sex = np.repeat(["f", "m"], [40, 60])
    chosen = np.arange(100) % 5 < np.where(sex == "f", 1, 3)
    frame = pl.DataFrame(
        {"d": [favorable if one else other for one in chosen], "sex": sex, "w": 1.0 + chosen}
    )
    frame.write_parquet(tmp_path / "decisions.parquet")
    asked = {"score": "d", "group": "sex", "favorable_decision": favorable, **QUICKER, **how}
    for weight, rates in ((None, {"f": 1 / 5, "m": 3 / 5}), ("w", {"f": 2 / 6, "m": 6 / 8})):
        for audited, place in ((audit_table, frame), (audit_file, tmp_path / "decisions.parquet")):
            (table_of_rates,) = audited(place, **flat(weight=weight, **asked)).decisions
            assert {
                rate.group: rate.selection_rate for rate in table_of_rates.rates
            } == pytest.approx(rates)


@pytest.mark.extended
@pytest.mark.parametrize(("engine", "changes"), CHANGES)
def test_every_engine_finds_what_audit_file_finds(engine, changes, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_MOST_BINS", 1024)
    # pandas: 1.0 beside gaps
    frame = incomplete().with_columns(pl.col("y").cast(pl.String), old=pl.col("age") > 21)
    assert min(frame.select("p", "sex", "y", "w").null_count().row(0)) > 20
    frame.write_parquet(tmp_path / "scores.parquet")
    options = EVERYTHING | QUICKER | {"weight": "w"} | changes
    held = audit_file(tmp_path / "scores.parquet", **flat(**options))
    with held_by(engine, frame) as found:
        assert audit_table(found, **flat(**options)).record == held.record
        check_equal(audit_table(found, **flat(**options, **COUNTED)), held, located=False)


MARKED = ["N/A", "not Known", "-9"]


def marked(n=600):
    """Rows with gaps, and the same rows with what stands for a gap: in text, integers and
    numbers.
    """
    place, columns = pl.int_range(n), ["p", "sex", "y", "region", "w"]
    gaps = table(n).select(columns).with_columns(
        p=pl.when(place % 31 == 0).then(None).otherwise("p"),
        sex=pl.when(place % 7 == 0).then(None).otherwise("sex"),
        y=pl.when(place % 47 == 0).then(None).otherwise("y"),
        region=pl.when(place % 11 == 0).then(None).otherwise("region"),
        w=pl.when(place % 53 == 0).then(None).otherwise("w"),
    )  # fmt: skip
    words = pl.Series(["N/A", " n/a", "not known "] * n)[:n]
    filled = [pl.col(name).fill_null(words) for name in ("sex", "region")]
    return gaps, gaps.with_columns(
        *filled, *(pl.col(name).fill_null(-9) for name in ("p", "y", "w"))
    )


@pytest.mark.parametrize("limit", [{}, COUNTED], ids=["held", "counted"])
def test_what_stands_for_a_missing_value_is_missing_in_files_and_every_engine(
    limit, tmp_path, refused
):
    gaps, full = marked()
    gaps.write_parquet(tmp_path / "gaps.parquet")
    full.write_parquet(tmp_path / "full.parquet")
    full.with_columns(pl.col("sex", "region").cast(pl.Categorical)).write_parquet(
        tmp_path / "few.parquet"
    )
    full.write_csv(tmp_path / "full.csv")
    asked = {
        "score": "p",
        "group": "sex",
        "label": "y",
        "control": "region",
        "weight": "w",
        **QUICKER,
        **limit,
    }
    expected = audit_file(tmp_path / "gaps.parquet", **flat(**asked))
    assert expected.record.left_out > 100
    for name in ("full.parquet", "few.parquet", "full.csv"):
        found = audit_file(tmp_path / name, **flat(missing=MARKED, **asked))
        assert found.record == expected.record, name
        assert "missing=['N/A', 'not Known', '-9']" in found.provenance.call
    simpler = asked | {"label": None}  # integers with gaps are 1.0 to Dask
    for engine in ENGINES:
        own = simpler if engine == "Dask" else asked
        with held_by(engine, full) as found:
            told = audit_table(found, missing=MARKED, **flat(**own)).record
        assert (
            told
            == (
                audit_file(tmp_path / "gaps.parquet", **flat(**simpler))
                if engine == "Dask"
                else expected
            ).record
        ), engine
    with refused(DataError):
        audit_table(full, **flat(**asked))


def test_counts_know_what_stands_for_a_missing_value(tmp_path):
    (gaps, full), roles = marked(), Roles.from_names(score="p", group=["sex", "region"], label="y")
    full.write_csv(tmp_path / "full.csv")
    states = [AuditState(score_range=(-1, 2)) for _ in range(3)]
    count_table(states[0], DatabaseTable("the table", gaps), roles)
    count_table(states[1], DatabaseTable("the table", full), roles, missing=MARKED)
    count_file(states[2], tmp_path / "full.csv", roles, ReadOptions(missing=MARKED))
    assert len({(state.rows, state.left_out, len(state.cells)) for state in states}) == 1


def test_only_text_stands_for_a_missing_value(refused):
    with refused(DataError):
        audit_table(pl.DataFrame({"p": [0.1], "sex": ["f"]}), score="p", group="sex", missing=[-9])


@pytest.mark.parametrize("atoms", [2**12, 50])
@pytest.mark.parametrize("engine", ["polars, lazy", "DuckDB", "Ibis", "Dask"])
def test_every_engine_counts_what_a_file_counts(engine, atoms, tmp_path, monkeypatch):
    for module in (state_counts, counting_tables):
        monkeypatch.setattr(module, "MOST_ATOMS", atoms)
    frame = incomplete(600)
    frame.write_parquet(tmp_path / "scores.parquet")
    weight = None if engine == "Dask" else "w"
    roles = Roles.from_names(score="p", group=["sex", "region"], label="y", weight=weight)
    by_file, by_engine = AuditState(score_range=(-1, 2)), AuditState(score_range=(-1, 2))
    count_file(by_file, tmp_path / "scores.parquet", roles)
    with held_by(engine, frame) as found:
        count_table(by_engine, DatabaseTable("the table", found), roles)
    assert by_file.exact == (atoms == 2**12)
    assert (by_engine.shape, by_engine.cells, by_engine.left_out) == (
        by_file.shape,
        by_file.cells,
        by_file.left_out,
    )
    np.testing.assert_allclose(by_engine.selected, by_file.selected, rtol=1e-12)
    for name in ("cell", "bin", "low", "high", "rows", "within", "exact"):
        np.testing.assert_array_equal(
            getattr(by_engine.counts, name), getattr(by_file.counts, name)
        )
    for name in ("weight", "moment"):
        np.testing.assert_allclose(
            getattr(by_engine.counts, name), getattr(by_file.counts, name), rtol=1e-12
        )


def test_a_table_with_scores_beyond_the_range_is_not_counted(refused):
    roles = Roles.from_names(score="p", group="sex")
    with refused(DataError):
        count_table(
            AuditState(),
            DatabaseTable("the table", pl.DataFrame({"p": [1.5], "sex": ["f"]})),
            roles,
        )


@pytest.mark.parametrize("case", CASES)
def test_counting_in_the_engine_agrees_with_counting_a_file(case, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_MOST_BINS", 1024)
    frame = incomplete()
    frame.write_parquet(tmp_path / "scores.parquet")
    options = {"score": "p", "group": "sex", **QUICKER, **CASES[case]}
    by_engine = audit_table(frame.lazy(), **flat(**options, **COUNTED))
    by_file = audit_file(tmp_path / "scores.parquet", **flat(**options, **COUNTED))
    check_equal(
        by_engine, audit_file(tmp_path / "scores.parquet", **flat(**options)), located=False
    )
    assert [note.kind for note in by_engine.notes] == [note.kind for note in by_file.notes]
    for ours, theirs in zip(by_engine.findings, by_file.findings, strict=True):
        assert (
            max(ours.bracket.low, theirs.bracket.low)
            <= min(ours.bracket.high, theirs.bracket.high) + 1e-12
        )


def table_rows(scores, cell, weight=None):
    columns = {"p": scores, "g": cell} | ({} if weight is None else {"w": weight})
    roles = Roles("p", ("g",), weight=None if weight is None else "w")
    return TableRows.of(DatabaseTable("the table", pl.LazyFrame(columns)), roles)


def by_table(scores, cell, weight=None):
    rows = table_rows(scores, cell, weight)
    tally = rows.survey(0.5)
    binned = rows.count()
    sides = CellSides(np.array([0]), np.array([1]), (tally.weight[0], tally.weight[1]))
    (found,) = bracket_distances(binned, [sides], METRICS)
    return found, binned.bins


# The gap of scores at every scale, or of a few rows, needs more bins than there are.
COARSE = {"every scale": 1.0, "denormal": 1.0, "one huge group": 1.0, "clusters": 0.5}


@pytest.mark.parametrize("name", adversarial())
@pytest.mark.parametrize("most_bins", [pytest.param(2**15, marks=pytest.mark.extended), 256])
def test_adversarial_scores_lie_in_their_brackets(name, most_bins, monkeypatch):
    monkeypatch.setattr(tables, "_MOST_BINS", most_bins)
    monkeypatch.setattr(tables, "_MOST_RANGES", 16)
    scores, cell = adversarial()[name]
    found, base = by_table(scores, cell)
    assert base.rows.sum() == len(scores)
    assert (base.high[:-1] < base.low[1:]).all()
    check_brackets(
        found,
        scores,
        in_memory(scores, cell),
        {"kolmogorov": COARSE.get(name, 2e-2), "wasserstein": 1e-3},
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_a_bin_with_much_of_the_weight_is_cut_before_anything_is_drawn(weighted):
    """Otherwise intervals and curves of skewed scores would be those of a few bins."""
    generator = np.random.default_rng(0)
    scores = np.append(generator.lognormal(-8, 1, 20_000), 50.0)
    cell = np.arange(len(scores)) % 2
    _, base = by_table(scores, cell, np.ones(len(scores)) if weighted else None)
    assert base.rows.max() <= len(scores) / 4000
    assert len(base) >= 1000
    assert base.rows.sum() == len(scores)
    assert (base.high[:-1] < base.low[1:]).all()
    np.testing.assert_array_equal(base.before, np.cumsum(base.counts, 0) - base.counts)


values = st.one_of(
    st.floats(-1e6, 1e6), st.integers(-2, 2).map(float), st.just(None), st.just(float("nan"))
)
rows = st.tuples(
    values,
    st.sampled_from(["a", "b", "c", None, ""]),
    st.sampled_from([0, 1, None]),
    st.floats(0, 5),
)


@given(st.lists(rows, min_size=1, max_size=40), st.booleans())
@settings(max_examples=25, deadline=None)
def test_counted_rows_are_held_rows(table_of, weighted):
    columns = dict(zip("pgyw", zip(*table_of, strict=True), strict=True))
    kinds = {"p": pl.Float64, "g": pl.String, "y": pl.Int64, "w": pl.Float64}
    frame = pl.DataFrame({name: list(column) for name, column in columns.items()}, schema=kinds)
    options = {"score": "p", "group": "g", "label": "y", **QUICKER}
    options |= {"weight": "w"} if weighted else {}
    outcomes = []
    for how in ({}, {"in_memory_rows": 0}):
        try:
            outcomes.append(audit_table(frame, **flat(**options, **how)))
        except DataError as error:
            outcomes.append(str(error))
    held, counted = outcomes
    if isinstance(held, str) or isinstance(counted, str):
        assert type(held) is type(counted)
        return
    assert (held.record.rows, held.record.left_out) == (
        counted.record.rows,
        counted.record.left_out,
    )
    span = float(np.ptp(held.record.score_range))
    for exact, ours in zip(held.findings, counted.findings, strict=True):
        assert (ours.groups, ours.sizes) == (exact.groups, exact.sizes)
        assert ours.bracket.low - 1e-9 * span <= exact.value <= ours.bracket.high + 1e-9 * span


@pytest.mark.parametrize("engine", ["polars, lazy", "DuckDB"])
def test_columns_of_many_levels_have_more_combinations_than_64_bits(engine):
    """Seven columns of 900 levels: 4.8e20 combinations, 2,000 of which have rows."""
    generator = np.random.default_rng(0)
    levels = {
        name: np.arange(2000) % 900 if name == "a" else generator.integers(0, 900, 2000)
        for name in "abcdefg"
    }
    frame = pl.DataFrame({"p": generator.random(2000), **levels})
    roles = Roles("p", tuple("abcdefg"))
    with held_by(engine, frame) as found:
        rows = TableRows.of(DatabaseTable("the table", found), roles)
        tally = rows.survey(0.5)
        counts = rows.count().bins.counts.sum(0)
    assert len(rows.cells) == 2000
    np.testing.assert_array_equal(counts, tally.rows)


def test_no_row_leaves_the_engine(monkeypatch):
    """Of 5,000 rows with as many scores, each answer has fewer entries than there are cells and
    bins.
    """
    answers, answer = [], TableRows.run
    monkeypatch.setattr(
        TableRows, "run", lambda self, query: answers.append(answer(self, query)) or answers[-1]
    )
    monkeypatch.setattr(tables, "_MOST_BINS", 64)
    monkeypatch.setattr(tables, "_HEAVY", 0.02)
    frame = pl.LazyFrame({"p": np.random.default_rng(0).random(5000) ** 8, "g": ["a", "b"] * 2500})
    audit_table(frame, score="p", group="g", **flat(**QUICKER, **COUNTED))
    assert len(answers) > 3
    assert max(map(len, answers)) <= 300


def test_a_table_that_changes_while_it_is_counted_is_refused(monkeypatch):
    monkeypatch.setattr(tables, "_MOST_BINS", 64)
    monkeypatch.setattr(tables, "_HEAVY", 0.01)
    frame = table(500)
    rows = TableRows.of(DatabaseTable("the table", frame), Roles("p", ("sex",)))
    rows.survey(0.5)
    bins_before = rows.count().bins
    rows.frame = rows.frame.head(250)
    changes = r"the table changed while it was counted; audit a copy or a snapshot of it"
    with pytest.raises(DataError, match=changes):
        rows._cut_bins(bins_before, np.flatnonzero(~bins_before.single), 64)
    rows.frame = TableRows.of(
        DatabaseTable("the table", frame.with_columns(sex=pl.lit("x"))), rows.roles
    ).frame
    with pytest.raises(DataError, match=changes):
        rows.count()


@pytest.mark.parametrize("how", [{}, COUNTED])
def test_dates_categories_and_booleans_are_groups_as_in_files(how, tmp_path):
    frame = table(300).with_columns(
        pl.col("sex").cast(pl.Categorical),
        day=pl.lit("2026-11-16").str.to_date() + pl.duration(days=pl.col("age") - 20),
        old=pl.col("age") > 20,
    )
    frame.write_parquet(tmp_path / "typed.parquet")
    options = {"score": "p", "group": ["sex", "day", "old"], **QUICKER, **how}
    ours, theirs = (
        audit_table(frame.lazy(), **flat(**options)),
        audit_file(tmp_path / "typed.parquet", **flat(**options)),
    )
    named = ("attribute", "groups", "sizes", "criterion")
    assert [[getattr(one, name) for name in named] for one in ours.findings] == [
        [getattr(one, name) for name in named] for one in theirs.findings
    ]


@pytest.mark.parametrize("how", [{}, COUNTED])
@pytest.mark.parametrize(
    ("change", "options", "match"),
    [
        (
            {},
            {"score": "q"},
            r"^the table has no column 'q' \(given as score\); its columns are 'p', 'sex'",
        ),
        (
            {},
            {"label": "P"},
            r"^the table has no column 'P' \(given as label\); did you mean 'p'\?",
        ),
        (
            {},
            {"score": "region"},
            (
                r"^the score column 'region' of the table contains String, not numbers; pass "
                r"favorable_decision=... if"
            ),
        ),
        (
            {},
            {"weight": "region"},
            "^the weight column 'region' of the table contains String, not numbers",
        ),
        ({}, {"weight": "sex"}, "^weight and group both name the column 'sex'; name two columns"),
        ({}, {"label": "p"}, "^score and label both name the column 'p'"),
        (
            {"p": pl.lit(None, pl.Float64)},
            {},
            "^no row of the table has a score in 'p' and a value in every other",
        ),
        (
            {"p": pl.when(pl.col("p") > 0.9).then(math.inf).otherwise("p")},
            {},
            "^the score column 'p' contains an infinite",
        ),
        (
            {"w": -pl.col("w")},
            {"weight": "w"},
            "^the weight column 'w' must contain finite numbers that are not negative",
        ),
        ({"sex": pl.lit("f")}, {}, "at least two groups, got 1"),
        (
            {"sex": pl.int_range(pl.len())},
            {},
            "as an id or a measurement does: too many to compare",
        ),
    ],
)
def test_refusals_name_what_is_wrong(how, change, options, match):
    frame = table(1500).with_columns(**change)
    with pytest.raises(DataError, match=match):
        audit_table(
            frame.lazy(), **flat(**{"score": "p", "group": "sex", **QUICKER, **options, **how})
        )


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ("scores.csv", "got str; for a file use audit_file"),
        ([0.1], "got list"),
        (pl.LazyFrame({"p": []}), "no column"),
    ],
)
def test_what_is_not_a_table_is_refused(given, match):
    with pytest.raises(DataError, match=match):
        audit_table(given, score="p", group="g")


def test_a_table_without_rows_is_refused(refused):
    with refused(DataError):
        audit_table(table(10).clear(), score="p", group="sex")


def test_what_an_engine_finds_wrong_is_one_sentence(refused):
    with duckdb.connect() as connection:
        relation = connection.sql(
            "SELECT CAST(x AS DOUBLE) AS p, 'a' AS g FROM (VALUES ('1'), ('one')) AS v(x)"
        )
        with refused(DataError) as raised:
            audit_table(relation, score="p", group="g")
    assert raised.value.__context__ is None
    assert "\n" not in str(raised.value)


def test_frames_of_narwhals_are_tables_too():
    frame = table(100)
    options = {"score": "p", "group": "sex", **QUICKER}
    assert (
        audit_table(nw.from_native(frame), **flat(**options)).record
        == audit_table(frame, **flat(**options)).record
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_probabilities_of_classes_are_no_models_in_any_way_in(engine, tmp_path, refused):
    p = np.round(np.random.default_rng(0).dirichlet([1, 1, 1], 60), 3)
    frame = pl.DataFrame(p, list("abc")).with_columns(
        sex=pl.Series(["m", "w"] * 30), d=1 - pl.col("a") / 2
    )
    frame = frame.with_columns(a=pl.when(pl.int_range(60) % 7 > 0).then("a"), s=1 - pl.col("d"))
    frame.write_csv(tmp_path / "p.csv")
    asked = {"group": "sex", "resamples": 0, "permutations": 0}
    with held_by(engine, frame) as rows:
        ways = [(audit_table, rows)] + (
            [(audit_file, tmp_path / "p.csv")] if engine == "polars" else []
        )
        for (audited, place), limit in ((way, limit) for way in ways for limit in (10, 100)):
            for scores in (["a", "b", "c"], ["d", "s"]):
                with refused(DataError):
                    audited(place, score=scores, **flat(**asked, in_memory_rows=limit))
            if engine in {"polars", "DuckDB"}:
                audited(place, score=["a", "b", "d"], **flat(**asked, in_memory_rows=limit))
                alone = [
                    audited(place, score=one, **flat(**asked, in_memory_rows=limit))
                    for one in ("d", "s")
                ]
                assert len(compare(*alone).record.differences)
