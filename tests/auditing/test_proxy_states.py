"""States of group probabilities: they add up, and their audit is that of all rows, with its
intervals.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from forging import described, hostile, load_hostile
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.proxies import SETTINGS, count_coverage
from metrifair import (
    AuditOptions,
    AuditState,
    DataError,
    GroupProbabilities,
    audit,
    audit_file,
    compare,
    load,
    monitor,
)
from metrifair.errors import MetrifairWarning, ModelFileError
from tests.expected_errors import Refusals
from tests.seams.auditing import (
    DatabaseTable,
    Roles,
    count_file,
    count_table,
    state_counts,
    state_file,
)
from tests.seams.saving import from_bytes, to_bytes

CLOSE = 1e-12
ROWS = 600
RANDOM = np.random.default_rng(5)
PLACE = RANDOM.normal(size=ROWS)
SHARES = np.exp(PLACE[:, None] * [1.0, -0.5, 0.0])
SHARES /= SHARES.sum(1, keepdims=True)
SHARES[::20] = np.nan
SHARES[1::30] = [0.0, 1.0, 0.0]
SCORE = np.clip(RANDOM.normal(0.45 + 0.12 * PLACE, 0.2), 0, 1)
LABEL = (RANDOM.uniform(size=ROWS) < SCORE).astype(int)
WEIGHT = RANDOM.lognormal(0, 0.5, ROWS)
REGION = RANDOM.choice(["north", "south"], ROWS)
OPTIONS = AuditOptions(resamples=200, permutations=1, min_group_size=5)
COUNTED = ("cell", "bin", "low", "high", "rows", "within")
SUMS = ("weight", "moment", "share", "products")


def race(rows: Any = slice(None), **further: Any) -> GroupProbabilities:
    table = dict(zip("abc", SHARES[rows].T, strict=True))
    return GroupProbabilities(table, **{"attribute": "race", "with_labels": "included"} | further)


def added(
    state: AuditState, rows: Any = slice(None), *, score: Any = SCORE, **further: Any
) -> AuditState:
    given = {name: value[rows] for name, value in further.items()}
    return state.add(LABEL[rows], score[rows], sensitive_features=race(rows), **given)


def bytes_of(state: AuditState) -> bytes:
    return to_bytes(state_file.state_content(state))


CASES: dict[str, dict[str, Any]] = {
    "labels": {},
    "weights": {"sample_weight": WEIGHT},
    "strata": {"control_features": REGION},
}


@pytest.mark.parametrize("digits", [2, 9])
@pytest.mark.parametrize("contrast", ["pairs", "rest"])
@pytest.mark.parametrize("case", CASES)
def test_the_audit_of_a_state_is_that_of_its_rows(case: str, contrast: Any, digits: int) -> None:
    """Figures are equal.

    So are intervals and p-values by the same draws, but for the skewness within ties.
    """
    score, further = SCORE.round(digits), CASES[case]
    options = AuditOptions(resamples=200, permutations=1, min_group_size=5, contrast=contrast)
    exact = audit(
        LABEL, score, sensitive_features=race(), options=options, random_state=0, **further
    )
    found = added(AuditState(), score=score, **further).audit(options=options, random_state=0)
    assert (
        (found.record.rows, found.record.left_out)
        == (exact.record.rows, exact.record.left_out)
        == (570, 30)
    )
    for ours, theirs in zip(found.findings, exact.findings, strict=True):
        named = (
            "attribute",
            "criterion",
            "within",
            "groups",
            "sizes",
            "metric",
            "unbiased",
            "certified",
        )
        assert [getattr(ours, name) for name in named] == [getattr(theirs, name) for name in named]
        assert ours.value == pytest.approx(theirs.value, abs=CLOSE)
        assert ours.p_value == pytest.approx(theirs.p_value, abs=0.02)
        for mine, other in (
            (ours.interval, theirs.interval),
            (ours.joint_interval, theirs.joint_interval),
        ):
            near = 0.2 * (other.high - other.low)
            assert [mine.low, mine.high] == pytest.approx([other.low, other.high], abs=near)
    assert found.record.proxy is not None
    for mine, other in zip(found.record.proxy.estimates, exact.record.proxy.estimates, strict=True):
        assert (mine.figure, mine.groups) == (other.figure, other.groups)
        values = (
            [one.value, *vars(one.interval).values()] for one in (mine.weighted, other.weighted)
        )
        assert next(values) == pytest.approx(next(values), abs=1e-9)
    for mine, other in zip(found.record.by_group, exact.record.by_group, strict=True):
        for a, b in zip(mine.groups, other.groups, strict=True):
            assert [a.auc.value, a.auc.interval.low] == pytest.approx(
                [b.auc.value, b.auc.interval.low], abs=1e-9
            )
    assert found.summary.splitlines()[1] == exact.summary.splitlines()[1]
    assert found.summary.splitlines()[1].startswith(
        "The figures weight each row by P(race). They are valid"
    )


def test_planted_fault_independent_groups_give_other_intervals() -> None:
    """Without the products of two groups, their errors would be those of different rows."""
    state = added(AuditState())
    honest = state.audit(options=OPTIONS, random_state=0).worst("wasserstein").interval
    products = state.counts.products
    own = np.array(["abc".find(str(cell[0])) for cell in state.cells])[state.counts.cell]
    products[...] = np.where(own[:, None] == np.arange(3), products, 0.0)
    forged = state.audit(options=OPTIONS, random_state=0).worst("wasserstein").interval
    assert forged.high - forged.low > 1.2 * (honest.high - honest.low)


@pytest.mark.extended
@pytest.mark.parametrize("name", ["strong, weights", "strong, few rows (200)"])
def test_intervals_of_counts_cover_about_as_often_as_they_say(name: str) -> None:
    """Three standard errors of 150 data sets are 5 %.

    With half of the products, 83 % would be covered.
    """
    for figure, share in count_coverage(SETTINGS[name], 150, counted=True).items():
        assert share >= 0.9, figure


@pytest.mark.parametrize("weighted", [False, True])
def test_products_are_sums_over_the_rows_of_a_bin(weighted: bool) -> None:
    """By a loop over rows, which shares no code with the counts."""
    score, weight = SCORE.round(1), WEIGHT if weighted else np.ones(ROWS)
    state = AuditState().add(
        None,
        score,
        sensitive_features=race(with_labels=None),
        sample_weight=WEIGHT if weighted else None,
    )
    expected: dict[tuple[float, str, str], float] = {}
    for value, shares, amount in zip(score, SHARES, weight, strict=True):
        for g, h in combinations_with_replacement(range(3), 2):
            if not np.isnan(shares[0]):
                key = float(value), "abc"[g], "abc"[h]
                expected[key] = expected.get(key, 0.0) + amount**2 * shares[g] * shares[h]
    counts, seen = state.counts, 0
    for cell, low, products in zip(counts.cell, counts.low, counts.products, strict=True):
        group = state.cells[cell][0]
        for place, other in enumerate("abc"):
            sum_of = 0.0 if group is None else expected[(float(low), *sorted([group, other]))]
            assert products[place] == pytest.approx(sum_of, rel=CLOSE, abs=1e-15)
            seen += group is not None
    assert seen == 9 * len(np.unique(score[~np.isnan(SHARES[:, 0])]))


@given(st.data(), st.sampled_from([2**12, 50]), st.booleans())
@settings(max_examples=10, deadline=None)
def test_merging_in_any_order_gives_the_state_of_all_rows(
    data: st.DataObject, atoms: int, weighted: bool
) -> None:
    further = {"sample_weight": WEIGHT} if weighted else {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_counts, "MOST_ATOMS", atoms)
        whole = added(AuditState(), **further)
        number = np.random.default_rng(data.draw(st.integers(0, 2**32))).permutation(ROWS) % 4
        parts = [added(AuditState(), number == one, **further) for one in range(4)]
        step_by_step = parts[0]
        for one in parts[1:]:
            step_by_step = one.merge(step_by_step)
        for found in (step_by_step, parts[0].merge(*parts[1:])):
            assert (found.cells, found.rows, found.shape) == (whole.cells, ROWS, whole.shape)
            for name in COUNTED:
                np.testing.assert_array_equal(
                    getattr(found.counts, name), getattr(whole.counts, name)
                )
            for name in SUMS:
                np.testing.assert_allclose(
                    getattr(found.counts, name), getattr(whole.counts, name), rtol=CLOSE
                )
            np.testing.assert_allclose(found.selected, whole.selected, rtol=CLOSE)


def test_bins_of_several_scores_bracket_the_figures_of_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Few, wide bins: values lie in their brackets, and intervals are those of the same bins."""
    monkeypatch.setattr(state_counts, "MOST_ATOMS", 50)
    exact = audit(LABEL, SCORE, sensitive_features=race(), options=OPTIONS, random_state=0)
    state = added(AuditState(score_range=(-1000, 1000)))
    found = state.audit(options=OPTIONS, random_state=0)
    assert not state.exact
    assert len(np.unique(state.counts.bin)) < 40
    for ours, theirs in zip(found.findings, exact.findings, strict=True):
        assert ours.bracket.low - CLOSE <= theirs.value <= ours.bracket.high + CLOSE
        assert ours.bracket.high > ours.bracket.low
        if ours.metric == "wasserstein":  # which moves least within bins
            width = theirs.interval.high - theirs.interval.low
            assert ours.interval.high - ours.interval.low == pytest.approx(width, rel=0.1)


def hard(groups: Any) -> GroupProbabilities:
    is_known = np.array([group is not None for group in groups])
    table = {name: np.where(is_known, (groups == name) * 1.0, np.nan) for name in "abc"}
    return GroupProbabilities(table, attribute="race", with_labels="included")


@pytest.mark.parametrize("case", CASES)
def test_probabilities_of_0_and_1_are_the_counts_of_groups(case: str) -> None:
    groups = np.where(RANDOM.uniform(size=ROWS) < 0.03, "c", RANDOM.choice(["a", "b", None], ROWS))
    further: dict[str, Any] = CASES[case]
    ours, theirs = (
        AuditState().add(LABEL, SCORE, sensitive_features=features, **further)
        for features in (hard(groups), {"P(race)": groups})
    )
    assert (ours.cells, ours.rows, ours.left_out) == (theirs.cells, theirs.rows, theirs.left_out)
    for name in COUNTED:
        np.testing.assert_array_equal(getattr(ours.counts, name), getattr(theirs.counts, name))
    np.testing.assert_allclose(ours.selected, theirs.selected, rtol=CLOSE)
    found, exact = (state.audit(options=OPTIONS, random_state=0) for state in (ours, theirs))
    assert len(found.findings) == len(exact.findings) > 0
    for mine, other in zip(found.findings, exact.findings, strict=True):
        assert (mine.groups, mine.within, mine.metric, mine.sizes) == (
            other.groups,
            other.within,
            other.metric,
            other.sizes,
        )
        assert mine.value == pytest.approx(other.value, abs=CLOSE)
        assert mine.p_value is None


def test_no_cell_of_probabilities_is_withheld(tmp_path: Path, refused: Refusals) -> None:
    """The probabilities of the other groups would show it."""
    state = AuditState().add(
        None, SCORE, sensitive_features=hard(np.array(["a", "b"])[np.arange(ROWS) % 2])
    )
    with refused(DataError):
        state.save(tmp_path / "a.state", min_group_size=5)
    assert not (tmp_path / "a.state").exists()


def test_days_with_equal_decisions_and_other_probabilities_are_not_the_same_rows() -> None:
    """Decisions of the same number of rows have the same scores in every cell."""
    decision = np.arange(200) % 2 * 1.0
    days = []
    for _ in range(2):
        share = RANDOM.uniform(0.1, 0.9, 200)
        proxy = GroupProbabilities({"a": share, "b": 1 - share}, attribute="race")
        days.append(AuditState().add(None, decision, sensitive_features=proxy))
    days[0].merge(days[1])  # warnings are errors
    with pytest.warns(MetrifairWarning, match="two of the states have the same counts"):
        days[0].merge(days[0])


def test_files_and_tables_are_counted_as_they_are_audited(tmp_path: Path) -> None:
    """Also where scores, weights and probabilities are missing."""
    missing = np.arange(ROWS)
    table = {f"p_{name}": share for name, share in zip("abc", SHARES.T, strict=True)}
    frame = pl.DataFrame(
        {"p": SCORE, "y": LABEL, "w": np.where(missing % 9 == 0, 0.0, WEIGHT), "r": REGION, **table}
    )
    frame = frame.with_columns(pl.col(f"p_{name}").fill_nan(None) for name in "abc")
    frame = frame.with_columns(p=pl.when(missing % 50 == 7).then(None).otherwise("p"))
    named = GroupProbabilities(
        {name: f"p_{name}" for name in "abc"}, attribute="race", with_labels="independent"
    )
    columns: dict[str, Any] = {
        "score": "p",
        "group": named,
        "label": "y",
        "control": "r",
        "weight": "w",
    }
    shared: dict[str, Any] = {"options": OPTIONS, "random_state": 0}
    states = []
    for ending in ("csv", "parquet"):
        path = tmp_path / f"scores.{ending}"
        (frame.write_csv if ending == "csv" else frame.write_parquet)(path)
        states.append(AuditState())
        count_file(states[-1], path, Roles.from_names(**columns))
    states.append(AuditState())
    count_table(
        states[-1],
        DatabaseTable("scores", duckdb.sql("select * from frame")),
        Roles.from_names(**columns),
    )
    exact = audit_file(tmp_path / "scores.csv", **columns, **shared)
    for state in states:
        found = state.audit(**shared)
        assert (found.record.rows, found.record.left_out) == (
            exact.record.rows,
            exact.record.left_out,
        )
        for ours, theirs in zip(found.findings, exact.findings, strict=True):
            assert (ours.groups, ours.within, ours.metric) == (
                theirs.groups,
                theirs.within,
                theirs.metric,
            )
            assert ours.value == pytest.approx(theirs.value, abs=CLOSE)


def test_states_are_compared_and_monitored() -> None:
    days = {str(day): added(AuditState(), slice(day * 200, day * 200 + 200)) for day in range(3)}
    series = monitor(days, options=OPTIONS, random_state=0)
    assert len(series.record.series) > 0
    audits = [state.audit(options=OPTIONS, random_state=0) for state in days.values()]
    rows = [
        audit(LABEL[at], SCORE[at], sensitive_features=race(at), options=OPTIONS, random_state=0)
        for at in (slice(200), slice(200, 400))
    ]
    found, exact = compare(*audits[:2]).differences, compare(*rows).differences
    for ours, theirs in zip(found, exact, strict=True):
        assert ours.difference == pytest.approx(theirs.difference, abs=CLOSE)
        assert ours.verdict == theirs.verdict


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "known groups": (
        lambda: AuditState().add(None, SCORE, sensitive_features=race(known_groups=[None] * ROWS)),
        (
            "known_groups needs rows in memory, and a state stores none; leave known_groups out, "
            "or "
            "audit"
        ),
    ),
    "cells": (
        lambda: AuditState().add(None, SCORE, sensitive_features=race(cells=REGION)),
        "cells needs rows in memory",
    ),
    "confusion": (
        lambda: AuditState().add(
            None,
            SCORE,
            sensitive_features=GroupProbabilities(
                np.eye(2)[LABEL], attribute="race", confusion=[[0.9, 0.1], [0.1, 0.9]]
            ),
        ),
        "confusion needs rows in memory",
    ),
    "groups and probabilities": (
        lambda: added(AuditState()).add(LABEL, SCORE, sensitive_features={"P(race)": REGION}),
        (
            r"different columns do not add up: attribute 'race', groups \('a', 'b', 'c'\), "
            r"with_labels "
            r"'included'"
        ),
    ),
    "other probabilities": (
        lambda: added(AuditState()).add(LABEL, SCORE, sensitive_features=race(source="BISG")),
        "do not add up: .*source 'BISG'",
    ),
    "a long source": (
        lambda: (
            AuditState().add(None, SCORE, sensitive_features=race(source="x" * 10_001)).save("x")
        ),
        "names and values of a state have at most 10,000 characters",
    ),
    "a control of the same name": (
        lambda: AuditState().add(
            None, SCORE, sensitive_features=race(), control_features={"P(race)": REGION}
        ),
        r"must name different columns, got \['P\(race\)', 'P\(race\)'\]",
    ),
    "huge weights": (
        lambda: AuditState().add(
            None, SCORE, sensitive_features=race(), sample_weight=np.full(ROWS, 1e200)
        ),
        (
            "sample_weight has squares beyond the range of floating-point numbers; divide all "
            "weights "
            "by a constant"
        ),
    ),
    "criteria by label": (
        lambda: (
            AuditState("equal_opportunity")
            .add(LABEL, SCORE, sensitive_features=race(with_labels=None))
            .audit()
        ),
        r"equal_opportunity uses labels, which needs a further assumption about P\(race\)",
    ),
    "evidence of counts": (
        lambda: added(AuditState()).audit(options=OPTIONS).to_evidence("x"),
        "the groups of this audit are probabilities: each row counts in several cells",
    ),
    "evidence of rows": (
        lambda: audit(LABEL, SCORE, sensitive_features=race(), options=OPTIONS).to_evidence("x"),
        "the groups of this audit are probabilities",
    ),
    "reported groups": (
        lambda: added(AuditState()).audit(options=OPTIONS).rates("ll144"),
        "does not permit imputed groups",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_state_of_probabilities_cannot_do_is_refused_in_words(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(DataError, match=message):
        call()


def test_labels_without_an_assumption_are_unused_and_said_so() -> None:
    state = AuditState().add(LABEL, SCORE, sensitive_features=race(with_labels=None))
    found = state.audit(options=OPTIONS, random_state=0)
    assert {finding.criterion for finding in found.findings} == {"statistical_parity"}
    assert "Figures by label are omitted" in " ".join(found.note_texts())


@pytest.mark.parametrize("tiny", [1e-150, 1e-160, 1e-200, 5e-324])
def test_tiny_probabilities_are_counted_and_never_certain(tiny: float, tmp_path: Path) -> None:
    shares = np.where(np.arange(40)[:, None] < 20, [1.0, tiny], [1.0, 2 * tiny])
    state = AuditState().add(
        None,
        SCORE[:40],
        sensitive_features=GroupProbabilities(
            {"a": shares[:, 0], "b": shares[:, 1]}, attribute="race"
        ),
    )
    state.save(tmp_path / "a.state")
    found = AuditState.load(tmp_path / "a.state").audit(options=OPTIONS, random_state=0)
    assert (found.findings[0].sizes, found.findings[0].p_value) == ((40, 0), None)
    rate = found.decisions[0].rates[1]
    assert rate.interval.high - rate.interval.low > 0.2
    if tiny < 1e-160:  # squares are 0, so that nobody knows how many rows these are worth
        assert found.findings[0].interval is None
        assert rate.interval.high - rate.interval.low > 0.5


HONEST = from_bytes(bytes_of(added(AuditState(name="a"), slice(90), sample_weight=WEIGHT)))


def test_a_state_survives_its_file(tmp_path: Path) -> None:
    for state in (
        added(AuditState()),
        added(AuditState(name="a"), sample_weight=WEIGHT, control_features=REGION),
    ):
        state.save(tmp_path / "a.state")
        for found in (AuditState.load(tmp_path / "a.state"), load(tmp_path / "a.state")):
            assert bytes_of(found) == bytes_of(state)
            assert repr(found) == repr(state)


FORGED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "shares beyond all rows": ("share", lambda share: share * 100),
    "no shares": ("share", lambda share: share * 0),
    "negative products": ("products", lambda products: -products),
    "too large products": ("products", lambda products: products * 100),
    "too small products": ("products", lambda products: products / 100),
    "products of one order": (
        "products",
        lambda products: products * np.tri(3)[:1] + products * [1, 0, 1],
    ),
    "products of other groups": ("products", lambda products: products[:, ::-1].copy()),
    "fewer groups": ("products", lambda products: products[:, :2].copy()),
    "weights of nobody": ("weight", lambda weight: weight * 1e-9),
}


@pytest.mark.parametrize("case", FORGED)
def test_sums_that_no_rows_have_are_refused(case: str, tmp_path: Path) -> None:
    name, change = FORGED[case]
    arrays = {**HONEST.arrays, name: change(HONEST.arrays[name])}
    (tmp_path / "forged.state").write_bytes(described(HONEST.meta, arrays, HONEST.kind))
    with pytest.raises(ModelFileError, match="cannot read"):
        AuditState.load(tmp_path / "forged.state")


SHAPES: dict[str, dict[str, Any]] = {
    "one group": {"groups": ["a"]},
    "a group twice": {"groups": ["a", "b", "b"]},
    "other groups": {"groups": ["x", "y", "z"]},
    "another attribute": {"attribute": "sex"},
    "another assumption": {"with_labels": "believed"},
    "a later version": {"cells": "tract"},
}


@pytest.mark.parametrize("case", SHAPES)
def test_groups_that_no_state_has_are_refused(case: str, tmp_path: Path) -> None:
    shape: dict[str, Any] = {**HONEST.meta["shape"]}  # type: ignore[dict-item]
    meta = {**HONEST.meta, "shape": shape | {"proxy": shape["proxy"] | SHAPES[case]}}
    (tmp_path / "forged.state").write_bytes(described(meta, HONEST.arrays, HONEST.kind))
    with pytest.raises(ModelFileError, match="cannot read"):
        AuditState.load(tmp_path / "forged.state")


@pytest.mark.filterwarnings("ignore:two of the states have the same counts")
@given(st.data())
@settings(max_examples=40, deadline=None)
def test_hostile_files_are_refused_or_audited(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "hostile.state"
    path.write_bytes(data.draw(hostile(HONEST)))
    if (state := load_hostile(path)) is None:
        return
    with contextlib.suppress(DataError):  # such as a criterion that needs labels
        state.audit(options=OPTIONS, random_state=0).to_json()
        state.merge(state).save(path)
