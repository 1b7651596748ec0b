"""Both ends of an audit by group probabilities: the weighted figure, and the one divided by R2.

The oracles draw groups, signals and scores, and compute true figures and R2 from the drawn groups
alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from metrifair import AuditOptions, AuditState, GroupProbabilities, audit, unfairness
from tests.seams.metrics import METRICS

QUICK: dict[str, Any] = {
    "options": AuditOptions(resamples=60, permutations=0),
    "metrics": "kolmogorov",
}
UNSURE = AuditOptions(resamples=0, permutations=0)
SIZE = 60_000


class People:
    """Groups with normal scores, and posterior probabilities by a signal that behaves like a
    name or like a place.
    """

    def __init__(
        self,
        kind: str,
        *,
        apart: float = 1.0,
        shares: Any = (0.7, 0.3),
        rows: int = SIZE,
        seed: int = 0,
    ):
        random = np.random.default_rng(seed)
        self.shares = np.array(shares)
        self.group = random.choice(len(shares), rows, p=self.shares)
        signal = random.normal(apart * self.group, 1.0)
        noise = random.normal(size=rows)
        # A name says nothing of the score but the group; of a place, the score says nothing but the
        # place.
        self.score = stats.norm.cdf(
            0.9 * (self.group % 2) + noise if kind == "names" else 0.7 * signal + noise
        )
        likelihood = (
            stats.norm.pdf(signal[:, None], apart * np.arange(len(shares)), 1.0) * self.shares
        )
        self.share = likelihood / likelihood.sum(1, keepdims=True)

    def race(self, **further: Any) -> GroupProbabilities:
        return GroupProbabilities(
            {f"g{at}": part for at, part in enumerate(self.share.T)}, attribute="race", **further
        )

    def true(self) -> float:
        return float(
            stats.ks_2samp(self.score[self.group == 0], self.score[self.group == 1]).statistic
        )

    @property
    def r2(self) -> float:
        """The difference in the mean probability between the members and the others."""
        inside = self.group == 1
        return float(self.share[inside, 1].mean() - self.share[~inside, 1].mean())


NAMES, PLACES = People("names"), People("places")


@pytest.mark.oracle("Finding.divided")
def test_the_weighted_figure_of_names_is_the_true_one_times_r2() -> None:
    found = audit(
        None, NAMES.score, sensitive_features=NAMES.race(), **QUICK, random_state=0
    ).findings[0]
    assert found.value == pytest.approx(NAMES.r2 * NAMES.true(), abs=0.01)
    assert found.value < 0.3 * NAMES.true()
    assert found.divided is not None
    assert found.divided.r2 == pytest.approx(NAMES.r2, abs=0.01)
    assert found.divided.value == pytest.approx(NAMES.true(), abs=0.03)


def test_the_weighted_figure_of_places_is_the_true_one() -> None:
    found = audit(
        None, PLACES.score, sensitive_features=PLACES.race(), **QUICK, random_state=0
    ).findings[0]
    assert found.value == pytest.approx(PLACES.true(), abs=0.015)
    assert found.divided is not None
    assert found.divided.value == pytest.approx(min(1.0, PLACES.true() / PLACES.r2), abs=0.05)


@pytest.mark.oracle("Divided.value")
@pytest.mark.parametrize("metric", METRICS)
def test_every_distance_of_names_is_divided_to_the_true_one(metric: str) -> None:
    people = People("names", apart=2.0, rows=40_000, seed=3)
    people.score = people.score.round(2)
    found = audit(
        None, people.score, sensitive_features=people.race(), options=UNSURE, metrics=metric
    ).findings[0]
    q = people.share[:, 1].mean()
    r2 = people.share[:, 1].var() / (q * (1 - q))
    power = 2 if metric in ("energy", "cramer", "mmd") else 1
    assert found.divided is not None
    assert found.divided.value == pytest.approx(
        min(found.value / r2**power, METRICS[metric].maximum), rel=1e-9
    )
    if not METRICS[metric].is_maximum:  # noise enlarges these
        groups = people.group.astype(str)
        true = audit(
            None, people.score, sensitive_features=groups, options=UNSURE, metrics=metric
        ).findings[0]
        assert found.divided.value == pytest.approx(true.value, rel=0.15)


@pytest.mark.oracle("Divided.interval", "Divided.joint_interval")
def test_ends_of_intervals_are_divided_as_well() -> None:
    people = People("names", rows=4_000, seed=2)
    found = audit(None, people.score, sensitive_features=people.race(), random_state=0).findings
    for one in found:
        assert one.divided is not None
        factor = one.divided.r2 ** (2 if METRICS[one.metric].squared else 1)
        most = {"kolmogorov": 1.0, "wasserstein": one.span, "energy": 2 * one.span}[one.metric]
        for kind in ("interval", "joint_interval"):
            weighted, divided = getattr(one, kind), getattr(one.divided, kind)
            assert divided.low == pytest.approx(weighted.low / factor, rel=1e-12)
            assert divided.high == pytest.approx(min(most, weighted.high / factor), rel=1e-12)


def test_the_divided_distance_is_a_possible_one() -> None:
    """A place is divided as if it was a name: beyond the largest distance there is."""
    people = People("places", rows=3_000, apart=0.8)
    people.score = (people.share[:, 1] > 0.3) * 4.0
    found = audit(
        None,
        people.score,
        sensitive_features=people.race(),
        options=UNSURE,
        metrics=list(METRICS),
        random_state=0,
    ).findings
    most = {
        "kolmogorov": 1,
        "wasserstein": 4,
        "energy": 8,
        "cramer": 4,
        "lp": 2,
        "mmd": 2,
        "total_variation": 1,
    }
    for one in found:
        assert one.divided is not None
        assert one.divided.value is not None
        assert one.value <= one.divided.value <= most[one.metric]
    reached = {
        one.metric
        for one in found
        if one.divided and one.divided.value == pytest.approx(most[one.metric])
    }
    assert {"kolmogorov", "wasserstein", "energy", "cramer", "lp", "total_variation"} <= reached


def pair(found: Any, *names: str) -> Any:
    return next(one for one in found.findings if set(one.groups) == set(names))


THREE = People("names", apart=1.3, shares=(0.5, 0.3, 0.2), rows=120_000, seed=1)


@pytest.mark.parametrize("names", [("g0", "g1"), ("g0", "g2"), ("g1", "g2")])
def test_pairs_of_three_groups_are_unmixed(names: tuple[str, str]) -> None:
    """The weighted difference of two groups contains the third; no single factor makes the true
    one of it.
    """
    found = pair(
        audit(None, THREE.score, sensitive_features=THREE.race(), **QUICK, random_state=0), *names
    )
    inside = [THREE.score[THREE.group == int(name[1])] for name in names]
    true = stats.ks_2samp(*inside).statistic
    assert found.divided is not None
    assert found.divided.value == pytest.approx(true, abs=0.06)
    assert found.divided.interval.low <= true + 0.01
    assert found.divided.interval.high >= true - 0.01


def test_the_unmixed_pair_is_that_of_the_solved_distribution_functions() -> None:
    people = People("names", apart=1.5, shares=(0.5, 0.3, 0.2), rows=600, seed=4)
    people.score = people.score.round(2)
    weight = np.random.default_rng(0).integers(1, 4, 600).astype(float)
    options = AuditOptions(resamples=50, permutations=0)
    shared: dict[str, Any] = {"options": options, "sample_weight": weight, "random_state": 0}
    found = audit(None, people.score, sensitive_features=people.race(), **shared)
    amounts = people.share * weight[:, None]
    mixing = amounts.T @ people.share / amounts.sum(0)[:, None]
    steps = np.unique(people.score)
    below = np.array(
        [[part[people.score <= step].sum() / part.sum() for step in steps] for part in amounts.T]
    )
    true = np.linalg.solve(mixing, below)
    for names in (("g0", "g1"), ("g0", "g2"), ("g1", "g2")):
        gap = (true[int(names[0][1])] - true[int(names[1][1])])[:-1]
        expected = {
            "kolmogorov": min(1.0, np.abs(gap).max()),
            "wasserstein": min(steps[-1] - steps[0], float(np.abs(gap) @ np.diff(steps))),
            "energy": min(2 * (steps[-1] - steps[0]), float(2 * gap**2 @ np.diff(steps))),
        }
        for one in found.findings:
            if set(one.groups) == set(names):
                assert one.divided is not None
                assert one.divided.value == pytest.approx(expected[one.metric], rel=1e-9)


@pytest.mark.oracle("ProxyRecord.r2")
def test_a_group_against_the_rest_has_an_r2_of_its_own() -> None:
    options = AuditOptions(resamples=0, permutations=0, contrast="rest")
    found = audit(
        None, THREE.score, sensitive_features=THREE.race(), options=options, metrics="wasserstein"
    )
    for code, one in enumerate(found.findings):
        q = THREE.share[:, code].mean()
        r2 = THREE.share[:, code].var() / (q * (1 - q))
        assert one.divided is not None
        assert one.divided.r2 == pytest.approx(r2, rel=1e-9)
        assert one.divided.value == pytest.approx(one.value / r2, rel=1e-9)
        assert found.record.proxy is not None
        assert found.record.proxy.r2[f"g{code}"] == pytest.approx(r2, rel=1e-9)


@pytest.mark.oracle("Divided.r2")
def test_r2_is_that_within_the_labels_and_strata_that_are_compared() -> None:
    random = np.random.default_rng(5)
    label, stratum = random.integers(0, 2, SIZE), random.choice(["north", "south"], SIZE)
    race = NAMES.race(with_labels="independent")
    shared: dict[str, Any] = {"control_features": {"region": stratum}, **QUICK, "random_state": 0}
    found = audit(label, NAMES.score, sensitive_features=race, **shared)
    seen = set()
    for one in found.findings:
        given = dict(one.conditions)
        inside = stratum == given["region"]
        for name, value in given.items():
            inside &= np.ones(SIZE, bool) if name == "region" else label == value
        share = NAMES.share[inside, 1]
        expected = share.var() / (share.mean() * (1 - share.mean()))
        assert one.divided is not None
        assert one.divided.r2 == pytest.approx(expected, rel=1e-9)
        seen.add(len(given))
    assert seen == {1, 2}


def test_sample_weights_are_repeated_rows() -> None:
    people = People("names", rows=500, seed=6)
    times = np.random.default_rng(0).integers(1, 4, 500)
    rows = np.repeat(np.arange(500), times)
    shared: dict[str, Any] = {"options": UNSURE, "metrics": list(METRICS), "random_state": 0}
    weighted = audit(
        None, people.score, sensitive_features=people.race(), sample_weight=times, **shared
    )
    repeated = audit(
        None, people.score[rows], sensitive_features=people.race().at_rows(rows), **shared
    )
    for one, other in zip(weighted.findings, repeated.findings, strict=True):
        assert one.divided is not None
        assert other.divided is not None
        assert one.divided.r2 == pytest.approx(other.divided.r2, rel=1e-12)
        assert one.divided.value == pytest.approx(other.divided.value, rel=1e-9)
    mine, theirs = weighted.decisions[0].divided, repeated.decisions[0].divided
    assert mine is not None
    assert theirs is not None
    assert mine.selection_ratio == pytest.approx(theirs.selection_ratio, rel=1e-9)


@pytest.mark.parametrize("weight", [None, np.linspace(0.5, 2.0, 2000)], ids=["rows", "weights"])
@pytest.mark.parametrize("shares", [(0.6, 0.4), (0.5, 0.3, 0.2)])
def test_states_have_both_ends_too(weight: np.ndarray | None, shares: Any) -> None:
    people = People("names", apart=1.5, shares=shares, rows=2000, seed=7)
    people.score = people.score.round(2)
    shared: dict[str, Any] = {
        "options": AuditOptions(resamples=60, permutations=0),
        "random_state": 0,
    }
    exact = audit(
        None, people.score, sensitive_features=people.race(), sample_weight=weight, **shared
    )
    states = []
    for rows in (np.arange(800), np.arange(800, 2000)):
        part = None if weight is None else weight[rows]
        one = AuditState().add(
            None,
            people.score[rows],
            sensitive_features=people.race().at_rows(rows),
            sample_weight=part,
        )
        states.append(one)
    merged = states[0].merge(states[1]).audit(**shared)
    assert exact.record.proxy is not None
    assert merged.record.proxy is not None
    assert merged.record.proxy.r2 == pytest.approx(exact.record.proxy.r2, rel=1e-9)
    for one, other in zip(merged.findings, exact.findings, strict=True):
        assert one.divided is not None
        assert other.divided is not None
        assert one.divided.r2 == pytest.approx(other.divided.r2, rel=1e-9)
        assert one.divided.value == pytest.approx(other.divided.value, rel=1e-6, abs=1e-9)
        assert one.divided.interval.low == pytest.approx(other.divided.interval.low, abs=0.06)
        assert one.divided.interval.high == pytest.approx(other.divided.interval.high, abs=0.06)
    mine, theirs = merged.decisions[0].divided, exact.decisions[0].divided
    assert mine is not None
    assert theirs is not None
    assert mine.selection_ratio == pytest.approx(theirs.selection_ratio, rel=1e-9)


def test_below_two_percent_there_is_no_second_end() -> None:
    weak = People("names", apart=0.2, rows=20_000)
    assert weak.r2 < 0.02
    found = audit(None, weak.score, sensitive_features=weak.race(), **QUICK, random_state=0)
    divided = found.findings[0].divided
    assert divided is not None
    assert 0 < divided.r2 < 0.02
    assert (divided.value, divided.interval, divided.joint_interval) == (None, None, None)
    assert found.decisions[0].divided is None
    assert "below 0.02" in found.summary


def test_known_groups_as_probabilities_have_one_end() -> None:
    hard = np.eye(2)[NAMES.group[:3000]]
    race = GroupProbabilities({"g0": hard[:, 0], "g1": hard[:, 1]}, attribute="race")
    found = audit(None, NAMES.score[:3000], sensitive_features=race, **QUICK, random_state=0)
    known = audit(
        None,
        NAMES.score[:3000],
        sensitive_features=np.where(NAMES.group[:3000], "g1", "g0"),
        **QUICK,
    )
    assert found.record.proxy is not None
    assert found.record.proxy.r2 == {"g0": 1.0, "g1": 1.0}
    assert found.findings[0].divided is None
    assert found.decisions[0].divided is None
    gap = f"{100 * known.findings[0].value:.1f} points"
    assert gap in found.summary.splitlines()[0]
    assert gap in known.summary.splitlines()[0]
    assert "R2" not in found.summary


@pytest.mark.oracle("Decisions.divided")
@pytest.mark.parametrize("shares", [(0.7, 0.3), (0.5, 0.3, 0.2)])
def test_rates_of_names_are_divided_to_the_true_ones(shares: Any) -> None:
    people = People("names", apart=1.3, shares=shares, rows=120_000, seed=8)
    table = audit(
        None, people.score, sensitive_features=people.race(), options=UNSURE, random_state=0
    ).decisions[0]
    selected = people.score >= 0.5
    true = {f"g{code}": float(selected[people.group == code].mean()) for code in range(len(shares))}
    divided = table.divided
    assert divided is not None
    assert divided.selection_difference == pytest.approx(
        max(true.values()) - min(true.values()), abs=0.04
    )
    assert divided.selection_ratio == pytest.approx(
        min(true.values()) / true[str(table.reference)], abs=0.06
    )
    assert table.selection_ratio is not None
    assert divided.selection_ratio < table.selection_ratio - 0.05
    for name, rate in true.items():
        assert divided.rates[name].value == pytest.approx(rate, abs=0.04)


@pytest.mark.oracle(
    "DividedRates.r2",
    "DividedRates.rates",
    "DividedRates.ratios",
    "DividedRates.selection_difference",
    "DividedRates.selection_ratio",
    "ProxyEstimate.divided",
)
def test_divided_rates_and_ratios_keep_the_mean_and_their_bounds() -> None:
    """By hand: two groups whose weighted rates are .35 and .55 of a mean .45, and R2 = 0.36."""
    share = np.array([0.2] * 100 + [0.8] * 100)
    score = np.array([1.0] * 20 + [0.0] * 80 + [1.0] * 70 + [0.0] * 30)
    race = GroupProbabilities({"a": 1 - share, "b": share}, attribute="race")
    table = audit(None, score, sensitive_features=race, **QUICK, random_state=0).decisions[0]
    assert [rate.selection_rate for rate in table.rates] == pytest.approx([0.3, 0.6])
    divided = table.divided
    assert divided is not None
    assert divided.r2 == pytest.approx({"a": 0.36, "b": 0.36})
    rates = 0.45 - 0.15 / 0.36, 0.45 + 0.15 / 0.36
    assert [divided.rates[name].value for name in "ab"] == pytest.approx(rates)
    assert divided.selection_ratio == pytest.approx(rates[0] / rates[1])
    assert divided.selection_difference == pytest.approx(0.3 / 0.36)
    assert divided.ratios["a"].value == pytest.approx(rates[0] / rates[1])
    assert divided.ratios["b"].value == 1
    estimates = audit(None, score, sensitive_features=race, **QUICK, random_state=0).record.proxy
    assert estimates is not None
    shown = {(one.figure, one.groups): one.divided for one in estimates.estimates}
    assert shown["selection_rate", ("a",)] == divided.rates["a"]
    assert shown["selection_ratio", ("a", "b")] == divided.ratios["a"]
    score[:20], score[100:] = 0.0, 1.0
    table = audit(None, score, sensitive_features=race, **QUICK, random_state=0).decisions[0]
    assert table.divided is not None
    assert [table.divided.rates[name].value for name in "ab"] == [0.0, 1.0]
    assert (table.divided.selection_ratio, table.divided.selection_difference) == (0.0, 1.0)


@pytest.mark.oracle("DividedRates.selection_ratio_interval")
def test_intervals_of_rates_and_ratios_are_divided_at_their_ends() -> None:
    """The mean of all rows stays; a weighted ratio and this mean give both weighted rates."""
    people = People("names", apart=1.6, rows=3000, seed=9)
    table = audit(
        None, people.score, sensitive_features=people.race(), **QUICK, random_state=0
    ).decisions[0]
    assert table.divided is not None
    share = people.share.mean(0)
    r2 = people.share[:, 1].var() / (share[0] * share[1])
    mean = float((people.score >= 0.5).mean())
    for rate in table.rates:
        ends = [
            np.clip(mean + (end - mean) / r2, 0, 1)
            for end in (rate.interval.low, rate.interval.high)
        ]
        found = table.divided.rates[rate.group].interval
        assert found is not None
        assert (found.low, found.high) == pytest.approx(tuple(ends), rel=1e-9)
    lowest = int(table.reference == "g0")
    ends = []
    for ratio in (table.selection_ratio_interval.low, table.selection_ratio_interval.high):  # type: ignore[union-attr]
        base = mean / (share[lowest] * ratio + share[1 - lowest])
        low, high = (np.clip(mean + (one - mean) / r2, 0, 1) for one in (ratio * base, base))
        ends.append(low / high)
    found = table.divided.selection_ratio_interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(ends), rel=1e-9)
    assert found.low <= table.divided.selection_ratio <= found.high


def test_a_smaller_r2_gives_a_larger_second_end() -> None:
    """The same weighted distance, of which the probabilities keep less and less."""
    ends = []
    for keep in (1.0, 0.9, 0.7, 0.5, 0.3):
        share = 0.5 + np.where(np.arange(400) % 2 == 0, 0.5, -0.5) * keep
        race = GroupProbabilities({"a": 1 - share, "b": share}, attribute="race")
        score = 0.5 + np.where(np.arange(400) % 2 == 0, 0.01, -0.01) * (np.arange(400) % 5 > 0)
        found = audit(None, score, sensitive_features=race, **QUICK, random_state=0).findings[0]
        ends.append(found.value if found.divided is None else found.divided.value)
        r2 = 1.0 if found.divided is None else found.divided.r2
        assert r2 == pytest.approx(keep**2)
        assert ends[-1] >= found.value
    assert ends == sorted(ends)


@pytest.mark.parametrize("more", ["known_groups", "cells", "confusion"])
def test_what_decides_between_the_ends_leaves_no_bracket_in_the_headline(more: str) -> None:
    people = People("names", rows=4000, seed=2)
    known = np.where(
        np.arange(4000) % 4 == 0, np.array([f"g{code}" for code in people.group]), None
    )
    further = {"known_groups": known, "cells": np.arange(4000) % 20}
    if more == "confusion":
        hard = np.eye(2)[people.group]
        matrix = np.array([[0.9, 0.1], [0.2, 0.8]])
        race = GroupProbabilities(
            {"g0": hard[:, 0], "g1": hard[:, 1]}, attribute="race", confusion=matrix
        )
    else:
        race = people.race(**{more: further[more]})
    free = audit(None, people.score, sensitive_features=people.race(), **QUICK, random_state=0)
    found = audit(None, people.score, sensitive_features=race, **QUICK, random_state=0)
    assert " to 3" in free.summary.splitlines()[0]
    # Known groups contradict figures that are weighted by names: the other end may be right.
    assert (" to 3" in found.summary.splitlines()[0]) == (more == "known_groups")
    assert (found.findings[0].divided is None) == (more == "confusion")


@pytest.mark.parametrize(("kind", "decides"), [("places", True), ("names", False)])
def test_known_groups_decide_only_for_figures_that_they_do_not_contradict(
    kind: str, decides: bool
) -> None:
    people = People(kind, rows=4000, seed=2)
    names = np.array([f"g{code}" for code in people.group])
    known = np.where(np.arange(4000) % 4 == 0, names, None)
    found = audit(
        None,
        people.score,
        sensitive_features=people.race(known_groups=known),
        **QUICK,
        random_state=0,
    )
    assert found.record.proxy.checked is decides
    assert found.record.proxy.known == 1000


def test_rows_with_few_digits_are_divided_by_their_sum() -> None:
    share = np.array([0.3333, 0.2501, 0.504])
    others = np.array([0.3333, 0.2501, 0.504])
    third = np.array([0.3333, 0.4999, 0.002])
    score = [0.2, 0.9, 0.4]
    given = GroupProbabilities({"a": share, "b": others, "c": third}, attribute="race")
    total = share + others + third
    exact = GroupProbabilities(
        {"a": share / total, "b": others / total, "c": third / total}, attribute="race"
    )
    assert unfairness(None, score, sensitive_features=given) == unfairness(
        None, score, sensitive_features=exact
    )
