"""The exact test of unchanged scores: against pairs by hand, its level in null streams, its
power, where it applies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm

from metrifair import AuditOptions, AuditSeries, AuditState, monitor
from tests.auditing.test_monitor_oracles import ALPHA, METRICS, THREE, record
from tests.seams.auditing import AuditRecord, ChangeTest, series_record

QUICK = AuditOptions(resamples=0, permutations=0)
KEY = ("sex", "statistical_parity", (), frozenset({"f", "m"}))


def state(
    scores: Mapping[str, np.ndarray], labels: np.ndarray | None = None, **options: object
) -> AuditState:
    groups = np.repeat(list(scores), [len(rows) for rows in scores.values()])
    return AuditState().add(
        labels, np.concatenate([*scores.values()]), sensitive_features={"sex": groups}, **options
    )  # type: ignore[arg-type]


def change_test(*states: AuditState, seed: int = 0) -> ChangeTest:
    return ChangeTest.of(
        [one.audit(criteria="statistical_parity", options=QUICK).rows for one in states], seed
    )


def energy_utility(left: np.ndarray, right: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The mean distance to one sample less that to the other: the witness of the energy
    distance, up to its scale.
    """
    return np.abs(at[:, None] - right).mean(1) - np.abs(at[:, None] - left).mean(1)


def p_values_by_hand(
    before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Those of many ways to pair rows."""
    generator = np.random.default_rng(1)
    pooled = [np.concatenate([before[group], after[group]]) for group in "fm"]
    found = []
    for _ in range(100):
        differences = []
        for group, sign in (("f", 1.0), ("m", -1.0)):
            pairs = min(len(before[group]), len(after[group]))
            old, new = (
                energy_utility(*pooled, generator.permutation(rows[group])[:pairs])
                for rows in (before, after)
            )
            differences.append(sign * (new - old) / pairs)
        every = np.concatenate(differences)
        found.append(
            min(
                1.0,
                2 * norm.sf(abs(every.sum()) / np.sqrt((every**2).sum())) / (4 * norm.sf(2**0.5)),
            )
        )
    return np.array(found)


@pytest.mark.oracle("exact test of unchanged scores")
@pytest.mark.parametrize(
    "sizes", [(80, 60, 80, 60), (150, 40, 60, 90)], ids=["equal sizes", "other sizes"]
)
@pytest.mark.parametrize("shift", [0.05, 0.2])
def test_the_p_value_is_that_of_randomly_paired_rows(sizes: tuple[int, ...], shift: float) -> None:
    generator = np.random.default_rng(int(100 * shift))
    # Scores in the middles of the state's bins: the test has them as they are.
    rows = [(np.floor(2**10 * generator.random(size)) + 0.5) / 2**11 for size in sizes]
    before, after = {"f": rows[0], "m": rows[1]}, {"f": rows[2], "m": rows[3] + shift}
    by_hand = p_values_by_hand(before, after)
    found = np.array(
        [
            change_test(state(before), state(after), seed=seed).p_value(KEY, 0, 0, 1)
            for seed in range(12)
        ]
    )
    assert np.log(found).mean() == pytest.approx(
        np.log(by_hand).mean(), abs=5 * np.log(by_hand).std() / np.sqrt(12) + 0.02
    )
    assert by_hand.min() / 3 <= found.min() <= found.max() <= min(1.0, 3 * by_hand.max())


def test_the_baseline_is_all_of_its_looks_and_groups_are_told_apart() -> None:
    """Exchanging the looks of a baseline changes nothing; a look that equals it in all rows has
    no change.
    """
    generator = np.random.default_rng(5)
    looks = [
        state({"f": generator.random(60), "m": generator.random(50), "x": generator.random(40)})
        for _ in range(3)
    ]
    same = looks[0].merge(looks[1])
    pooled = change_test(*looks, same)
    for pair in combinations("fmx", 2):
        key = (*KEY[:-1], frozenset(pair))
        assert pooled.p_value(key, 0, 1, 3) == pytest.approx(
            change_test(looks[1], looks[0], looks[2], same).p_value(key, 0, 1, 3)
        )
        assert pooled.p_value(key, 0, 1, 3) > 0.5
    alone, with_more = change_test(*looks), change_test(*looks, same)
    assert alone.p_value(KEY, 0, 0, 2) == with_more.p_value(KEY, 0, 0, 2)


HARD = {
    "rare decisions": lambda generator, rows: (generator.random(rows) < 0.03).astype(float),
    "mostly zeros": lambda generator, rows: np.where(
        generator.random(rows) < 0.8, 0.0, generator.random(rows)
    ),
    "skewed": lambda generator, rows: generator.random(rows) ** 8,
}


@pytest.mark.extended
@pytest.mark.parametrize("kind", HARD)
def test_the_level_is_kept_in_unchanged_streams_and_changes_are_found(kind: str) -> None:
    """Groups differ, and have few rows: normal approximations would not be exact."""
    streams, level, draw = 100, 0.2, HARD[kind]
    below = found = 0
    for number in range(streams):
        generator = np.random.default_rng([number, len(kind)])
        looks = [
            state({"f": draw(generator, 40), "m": draw(generator, 60) / 2 + 0.3}) for _ in range(2)
        ]
        p_value = change_test(*looks, seed=number).p_value(KEY, 0, 0, 1)
        assert p_value is not None
        below += p_value <= level
        changed = state({"f": draw(generator, 40), "m": 1 - draw(generator, 60) / 2})
        found += (change_test(looks[0], changed, seed=number).p_value(KEY, 0, 0, 1) or 0.0) <= level
    assert below <= binom.isf(1e-4, streams, level)
    assert found > 0.95 * streams


@dataclass
class Fixed:
    """A test whose p-values are known."""

    p_values: Sequence[float]
    compared: set[object] = field(
        default_factory=lambda: {("race", "statistical_parity", (), frozenset("ab"))}
    )

    def p_value(self, key: object, first: int, last: int, look: int) -> float | None:
        assert (first, last) == (0, 0)
        return self.p_values[look] if key in self.compared else None


def test_an_alarm_needs_both_p_values_at_a_level_that_distances_of_two_groups_share() -> None:
    values = (0.2, 0.2, 0.9, 0.9, 0.9)
    audits = {f"look {k}": record(THREE, value) for k, value in enumerate(values)}
    pairs = [frozenset(pair) for pair in combinations("abc", 2)]
    p_values = (1.0, 1e-9, 1e-9, ALPHA / 12 / (1 + 2 * len(METRICS)) * 1.001, 0.5)
    for exact in (1, 3):
        test = Fixed(p_values, {("race", "statistical_parity", (), pair) for pair in pairs[:exact]})
        found = series_record(audits, confidence=1 - ALPHA, min_group_size=30, change_test=test)  # type: ignore[arg-type]
        tests = exact + (3 - exact) * len(METRICS)
        plain = series_record(audits, confidence=1 - ALPHA, min_group_size=30)
        for look, approximate in zip(found.series, plain.series, strict=True):
            number, is_exact = (
                int(look.look.split()[1]),
                frozenset(look.group_values) in pairs[:exact],
            )
            if number == 0:
                assert (look.level, look.exact) == (None, False)
                continue
            assert look.level == pytest.approx(ALPHA / (number * (number + 1)) / tests)
            assert look.exact == is_exact
            assert look.interval == approximate.interval
            p_value = max(approximate.p_value or 0.0, p_values[number] if is_exact else 0.0)
            assert look.p_value == pytest.approx(p_value)
            assert look.alarm == ("worse" if p_value <= look.level else "not_distinguishable")
        assert {look.alarm for look in found.series} == {
            "not_tested",
            "not_distinguishable",
            "worse",
        }


@dataclass
class Asked:
    """A test that keeps which looks it was asked to compare."""

    comparisons: set[tuple[int, int, int]] = field(default_factory=set)
    compared: set[object] = field(default_factory=set)

    def p_value(self, key: object, first: int, last: int, look: int) -> float | None:
        self.comparisons.add((first, last, look))
        return 0.5


def test_a_look_is_compared_with_the_rows_of_all_looks_of_its_baseline() -> None:
    """The third look has the thirtieth row of the smaller group: three looks are one baseline."""
    looks = [{"a": 100, "b": 12} for _ in range(5)]
    looks[3:] = [{"a": 100, "b": 40}] * 2
    audits = {f"look {number}": record(sizes) for number, sizes in enumerate(looks)}

    def pool(first: int, last: int) -> AuditRecord:
        return record({name: sum(look[name] for look in looks[first : last + 1]) for name in "ab"})

    asked = Asked()
    series_record(
        audits,
        confidence=1 - ALPHA,
        min_group_size=30,
        pool=pool,
        change_test=asked,  # type: ignore[arg-type]
    )
    assert asked.comparisons == {(0, 2, 3), (0, 2, 4)}


def exact(series: AuditSeries) -> set[bool]:
    return {look.exact for look in series.record.series if look.level is not None}


def test_only_counts_of_rows_without_weights_have_an_exact_test(tmp_path: Path) -> None:
    generator, options = np.random.default_rng(0), AuditOptions(resamples=40, permutations=0)
    looks = [{"f": generator.random(60), "m": generator.random(60)} for _ in range(3)]
    labels = generator.random(120) < 0.5
    states = [state(look, labels) for look in looks]
    audits = [one.audit(options=options) for one in states]
    files = [tmp_path / f"{number}.json" for number in range(3)]
    for audit, file in zip(audits, files, strict=True):
        audit.to_json(file)
    weighted = [state(look, labels, sample_weight=generator.random(120)) for look in looks]
    assert exact(monitor(states, random_state=0, options=options)) == {True}
    assert exact(monitor(audits)) == {True}
    assert exact(monitor(files)) == {False}
    assert exact(monitor([*audits[:2], files[2]])) == {False}
    assert "approximately" in monitor(files).summary
    assert change_test(*weighted).compared == set()
    wider = AuditState(score_range=(0.0, 2.0)).add(
        None, looks[0]["f"], sensitive_features={"sex": ["f", "m"] * 30}
    )
    assert change_test(states[0], wider).compared == set()


@pytest.mark.parametrize(
    ("rows", "exact"), [(1_000, True), (6_000, False)], ids=["scores", "few bins"]
)
def test_scores_in_a_small_part_of_the_range_are_tested_by_themselves_or_not_at_all(
    rows: int, *, exact: bool
) -> None:
    """Bins of a range that is far too wide hide a change: few distinct scores need none, and
    many are not tested.
    """
    generator = np.random.default_rng(1)
    groups = np.repeat(["f", "m"], rows)

    def look(factor: float) -> AuditState:
        scores = generator.gamma(2, 20, 2 * rows) * np.where(groups == "m", factor, 1.0)
        return AuditState(score_range=(0, 1e7)).add(None, scores, sensitive_features=groups)

    series = [row for row in monitor([look(1.0), look(1.5)]).record.series if row.level is not None]
    assert {row.exact for row in series} == {exact}
    if exact:
        assert {row.alarm for row in series} == {"worse"}
