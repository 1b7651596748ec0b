"""States that add up: in any order to the same counts, whose audit is that of all rows within
its brackets.
"""

import contextlib
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from forging import described, hostile, load_hostile
from hypothesis import given, settings
from hypothesis import strategies as st
from test_audit_file import same, table

from metrifair import AuditState, DataError, audit, load
from metrifair.errors import MetrifairWarning, ModelFileError
from tests.flat_options import flat, flat_audit
from tests.seams.auditing import Roles, StateGrid, count_file, state_counts, state_file
from tests.seams.saving import from_bytes, to_bytes

QUICK = {"random_state": 0, "resamples": 0, "permutations": 0}
KEYS = {"sensitive_features": ["sex", "region"], "y_true": "y", "control_features": "age"}


def added(state, frame, *, weight=False, keys=("sensitive_features", "y_true", "control_features")):
    given = {name: frame.select(KEYS[name]) for name in keys}
    y_true = given.pop("y_true", None)
    return state.add(
        y_true, frame["p"], **given, **({"sample_weight": frame["w"]} if weight else {})
    )


def bytes_of(state):
    return to_bytes(state_file.state_content(state))


def splits(frame, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(frame)), min_size=1, max_size=4)))
    ends = [0, *cuts, len(frame)]
    return [frame[a:b] for a, b in pairwise(ends) if b > a]


@given(st.data(), st.sampled_from([2**12, 50]), st.booleans())
@settings(max_examples=15, deadline=None)
def test_merging_is_associative_and_commutative_and_loses_nothing(data, atoms, weighted):
    frame = table(300)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_counts, "MOST_ATOMS", atoms)
        whole = added(AuditState(), frame, weight=weighted)
        parts = [added(AuditState(), part, weight=weighted) for part in splits(frame, data)]
        mixed = data.draw(st.permutations(parts))
        forwards, backwards = mixed[0], mixed[-1]
        for one in mixed[1:]:
            forwards = forwards.merge(one)
        for one in mixed[-2::-1]:
            backwards = one.merge(backwards)
        one_by_one = AuditState()
        for part in splits(frame, data):
            added(one_by_one, part, weight=weighted)
        at_once = AuditState().merge(*parts)
        assert whole.exact == (atoms > 300)
        for found in (forwards, backwards, one_by_one, at_once):
            if not weighted:  # sums of weights are rounded; those of rows are not
                assert bytes_of(found) == bytes_of(whole)
            assert found.cells == whole.cells
            assert found.counts.exact == whole.counts.exact
            for name in ("cell", "bin", "low", "high", "rows", "within"):
                np.testing.assert_array_equal(
                    getattr(found.counts, name), getattr(whole.counts, name)
                )
            for name in ("weight", "moment"):
                np.testing.assert_allclose(
                    getattr(found.counts, name), getattr(whole.counts, name), rtol=1e-12
                )
            np.testing.assert_allclose(found.selected, whole.selected, rtol=1e-12)


def test_a_column_that_is_numbers_in_one_file_and_text_in_another_is_text():
    days = [
        AuditState().add(None, [0.1, 0.9], sensitive_features={"race": race})
        for race in ([1, 2], ["1", "unknown"], [2.0, np.nan])
    ]
    orders = [
        days[0].merge(*days[1:]),
        days[2].merge(days[0]).merge(days[1]),
        days[1].merge(days[2], days[0]),
    ]
    assert orders[0].cells == [(None,), ("1",), ("2",), ("unknown",)]
    assert {bytes_of(one) for one in orders} == {bytes_of(orders[0])}
    np.testing.assert_array_equal(orders[0].selected, [1, 0, 1, 1])
    spelled = days[0].merge(AuditState().add(None, [0.2], sensitive_features={"race": ["1.0"]}))
    assert "'1' and '1.0' differ only in" in " ".join(spelled.audit(**flat(**QUICK)).note_texts())


@pytest.mark.parametrize("atoms", [2**12, 50])
@pytest.mark.parametrize("weight", [False, True])
@pytest.mark.parametrize(
    "keys", [("sensitive_features",), ("sensitive_features", "y_true", "control_features")]
)
def test_the_audit_of_states_is_that_of_all_rows_within_its_brackets(
    atoms, weight, keys, monkeypatch
):
    monkeypatch.setattr(state_counts, "MOST_ATOMS", atoms)
    frame = table(900)
    parts = [
        added(AuditState(), part, weight=weight, keys=keys) for part in (frame[:200], frame[200:])
    ]
    given = {name: frame.select(KEYS[name]) for name in keys}
    exact = flat_audit(frame["p"], sample_weight=frame["w"] if weight else None, **given, **QUICK)
    found = parts[0].merge(parts[1]).audit(**flat(**QUICK))
    assert (found.record.rows, found.record.left_out) == (exact.record.rows, exact.record.left_out)
    assert len(found.findings) == len(exact.findings) > 0
    for ours, theirs in zip(found.findings, exact.findings, strict=True):
        named = ("attribute", "criterion", "within", "groups", "sizes", "metric")
        assert [getattr(ours, name) for name in named] == [getattr(theirs, name) for name in named]
        assert ours.bracket.low - 1e-9 <= theirs.value <= ours.bracket.high + 1e-9
        assert ours.bracket.high - ours.bracket.low <= (1e-12 if atoms == 2**12 else 0.1)
        assert ours.certified is None or ours.certified >= theirs.certified - 1e-12
    for ours, theirs in zip(found.decisions, exact.decisions, strict=True):
        for a, b in zip(ours.rates, theirs.rates, strict=True):
            known = (
                {} if a.selected is not None else {"interval": None, "ratio_interval": None}
            )  # the spread of weights
            assert same(vars(a).values(), vars(replace(b, **known)).values())


def test_brackets_of_many_rows_are_narrow():
    generator = np.random.default_rng(0)
    group = generator.integers(0, 2, 50_000)
    score = generator.beta(2 + 0.2 * group, 3)
    state = AuditState()
    for part in np.array_split(np.arange(50_000), 5):
        state = state.merge(AuditState().add(None, score[part], sensitive_features=group[part]))
    assert not state.exact
    exact = audit(None, score, sensitive_features=group, **flat(**QUICK))
    for ours, theirs in zip(state.audit(**flat(**QUICK)).findings, exact.findings, strict=True):
        assert ours.bracket.low - 1e-12 <= theirs.value <= ours.bracket.high + 1e-12
        assert ours.bracket.high - ours.bracket.low <= (
            1e-3 if ours.metric == "kolmogorov" else 1e-7
        )


@given(
    st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.lists(st.floats(0, 1), min_size=1, max_size=50)
)
@settings(max_examples=50, deadline=None)
def test_bins_are_intervals_and_few(low, width, shares):
    high = low + width
    grid = StateGrid.between(low, high)
    scores = np.sort(np.clip(low + width * np.array([0.0, *shares, 1.0]), low, high))
    bins, within = grid.places(scores)
    assert (np.diff(bins) >= 0).all()
    assert bins.min() >= 0
    assert 2**14 <= bins.max() <= 2**16
    assert ((within >= 0) & (within <= 2**28)).all()
    positions = grid.scale.positions(scores)
    np.testing.assert_allclose(
        grid.moments(bins, np.ones_like(bins), within), positions, atol=2.0**-44
    )


def test_states_that_differ_say_how(tmp_path):
    state = AuditState(name="a").add(None, [0.1, 0.9], sensitive_features=["f", "m"])
    for other, match in (
        (
            AuditState(score_range=(0, 2)),
            (
                r"^score_range must be equal in .* merged, got \(0.0, 1.0\) and \(0.0, 2.0\); "
                r"count "
                r"the rows"
            ),
        ),
        (AuditState(threshold=0.3), "^threshold must be equal in .* merged, got auto and 0.3"),
        (AuditState("equal_opportunity"), "^criteria must be equal in states that are merged"),
        (
            AuditState().add(None, [0.1], sensitive_features={"sex": ["f"]}),
            r"different columns do not add up: groups \['sensitive_features'\]",
        ),
        (
            AuditState().add([1], [0.1], sensitive_features=["f"]),
            "label 'y_true'; count the same ones in both",
        ),
        (AuditState().add(None, [0.1], sensitive_features=["f"], sample_weight=[2.0]), "weights"),
    ):
        with pytest.raises(DataError, match=match):
            state.merge(other)
    for call, match in (
        (
            lambda: AuditState().add(None, [1.5], sensitive_features=["f"]),
            "the score 1.5 lies beyond the range from 0 to 1; pass score_range=...",
        ),
        (
            lambda: AuditState(score_range=(1, 0)),
            "range must be two finite numbers, the lower one first",
        ),
        (lambda: AuditState(score_range=1), "range must be two numbers, lowest and highest, got 1"),
        (
            lambda: AuditState(threshold="high"),
            "threshold must be a finite number or 'auto', got 'high'",
        ),
        (lambda: AuditState(name=3), "name must be text, got 3"),
        (
            lambda: AuditState().audit(),
            "this state contains no rows; add some, or merge it with others",
        ),
        (
            lambda: state.save(tmp_path / "x", min_group_size=0),
            "min_group_size must be an integer from 1 upwards",
        ),
        (lambda: state.audit(metrics="mmd"), "metrics must be one of"),
    ):
        with pytest.raises(DataError, match=match):
            call()


def test_two_columns_of_probabilities_are_of_the_last_label(tmp_path, refused):
    """A label of another sign would turn every figure round, and nobody can turn the counts
    round any more.
    """
    both = np.array([[0.8, 0.2], [0.4, 0.6], [0.7, 0.3], [0.1, 0.9]])
    state = (
        AuditState()
        .add([0, 1, 0, 1], both, sensitive_features=list("ffmm"))
        .merge(AuditState().add([1], [0.5], sensitive_features=["f"]))
    )
    state.save(tmp_path / "a.state")
    for one in (state, AuditState.load(tmp_path / "a.state")):
        for asked in ({"pos_label": 0}, {"pos_label": 1, "favorable": "low"}):
            with refused(DataError):
                one.audit(**flat(**asked, **QUICK))
        for asked in (
            {"pos_label": 1},
            {},
            {"favorable": "low"},
            {"favorable": "low", "pos_label": 0},
        ):
            assert one.audit(**flat(**asked, **QUICK)).record.rows == 5
    alone = AuditState().add([0, 1, 0, 1], both[:, 0], sensitive_features=list("ffmm"))
    turned = audit(
        [0, 1, 0, 1], both, sensitive_features=list("ffmm"), pos_label=0, **flat(**QUICK)
    )
    assert [one.value for one in alone.audit(pos_label=0, **flat(**QUICK)).findings] == [
        one.value for one in turned.findings
    ]


def test_small_cells_are_withheld_on_export(tmp_path):
    frame = table(300).with_columns(
        sex=pl.when(pl.int_range(300) < 3).then(pl.lit("x")).otherwise("sex")
    )
    state = added(AuditState(name="site"), frame, keys=("sensitive_features",))
    state.save(tmp_path / "site.state", min_group_size=5)
    found = AuditState.load(tmp_path / "site.state")
    assert "x" in {cell[0] for cell in state.cells}
    assert "x" not in {cell[0] for cell in found.cells}
    assert (found.rows, found.left_out) == (297, 3)
    assert b'"x"' not in (tmp_path / "site.state").read_bytes()
    assert found.audit(**flat(**QUICK)).record.left_out == 3


def test_a_state_survives_its_file(tmp_path):
    frame = table(300)
    for state in (
        AuditState(),
        AuditState(
            ["equalized_odds", "separation"], score_range=(-1, 7), threshold=0.25, name="Söndag"
        ),
        added(AuditState(), frame, weight=True),
        AuditState().add([True, False, True], [0.1, 0.2, 0.3], sensitive_features=["a", None, "b"]),
    ):
        state.save(tmp_path / "a.state")
        for found in (AuditState.load(tmp_path / "a.state"), load(tmp_path / "a.state")):
            assert bytes_of(found) == bytes_of(state)
            assert repr(found) == repr(state)


@pytest.mark.parametrize(
    "kinds", [("csv", "csv"), ("parquet", "parquet"), ("csv", "parquet"), ("parquet", "csv")]
)
def test_a_file_is_counted_as_it_is_audited(kinds, tmp_path):
    """Also where values are text in one file and have types in another."""
    frame = table(400).with_columns(
        p=pl.when(pl.int_range(400) % 50 == 0).then(None).otherwise("p")
    )
    parts = frame[:150], frame[150:]
    states = []
    for place, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
        path = tmp_path / f"{place}.{kind}"
        part.write_csv(path) if kind == "csv" else part.write_parquet(path)
        states.append(AuditState())
        count_file(states[-1], path, Roles("p", ("sex", "age"), "y", weight="w"))
    found = states[0].merge(states[1]).audit(**flat(**QUICK))
    present = frame.drop_nulls("p")
    exact = audit(
        present["y"],
        present["p"],
        sensitive_features=present.select("sex", "age"),
        sample_weight=present["w"],
        **flat(**QUICK),
    )
    assert found.record.left_out == 8
    assert [one.groups for one in found.findings] == [one.groups for one in exact.findings]
    assert [one.value for one in found.findings] == pytest.approx(
        [one.value for one in exact.findings], abs=1e-9
    )


def honest():
    return from_bytes(bytes_of(added(AuditState(name="a"), table(60), weight=True)))


HONEST = honest()


@pytest.mark.filterwarnings("ignore:two of the states have the same counts")
@given(st.data())
@settings(max_examples=50, deadline=None)
def test_hostile_files_are_refused_or_audited(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "hostile.state"
    path.write_bytes(data.draw(hostile(HONEST)))
    if (state := load_hostile(path)) is not None:
        # such as a criterion that needs labels, groups that nobody is in
        with contextlib.suppress(DataError):
            state.audit(**flat(**QUICK)).to_json()
            state.merge(state).save(path)


FORGED = {
    "more rows than there are": ("rows", lambda rows: rows * 2**40),
    "no rows": ("rows", lambda rows: rows * 0),
    "a cell that is not there": ("cell", lambda cell: cell + 100),
    "another order": ("cell", lambda cell: cell[::-1].copy()),
    "another bin": ("bin", lambda bins: bins + 1),
    "scores beyond the range": ("high", lambda high: high + 2),
    "an end before its start": ("low", lambda low: low + 0.5),
    "places beyond the bin": ("within", lambda within: within + 2**40),
    "less than nothing": ("weight", lambda weight: -weight),
    "moments beyond all scores": ("moment", lambda moment: moment + 1e6),
    "more selected than there are": ("selected", lambda selected: selected + 1e6),
}


@pytest.mark.parametrize("case", FORGED)
def test_counts_that_no_rows_have_are_refused(case, tmp_path):
    name, change = FORGED[case]
    path = tmp_path / "forged.state"
    path.write_bytes(
        described(HONEST.meta, {**HONEST.arrays, name: change(HONEST.arrays[name])}, HONEST.kind)
    )
    with pytest.raises(ModelFileError, match="cannot read"):
        AuditState.load(path)


def test_other_files_are_no_states(tmp_path, refused):
    (tmp_path / "x").write_bytes(described({}, {}, "estimator"))
    with refused(ModelFileError):
        AuditState.load(tmp_path / "x")


def test_states_without_a_common_label_are_named():
    def state(labels):
        return AuditState().add(labels, [0.2, 0.7], sensitive_features=["f", "m"])

    numbers, words = state([0, 1]), state(["no", "yes"])
    with pytest.warns(
        MetrifairWarning, match=r"no label in common: \[0, 1\] and \['no', 'yes'\]"
    ) as seen:
        merged = numbers.merge(words, words)
    assert len(seen) == 1
    assert merged.rows == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers.merge(state([1, 1]), AuditState())  # a place where all have one label
        state([0, 0]).merge(state([1, 1]))
        state([True, False]).merge(numbers)
        state(["a", "b"]).merge(state(["c", "d"]), state(["b", "c"]))
