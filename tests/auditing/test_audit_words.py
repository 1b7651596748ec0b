"""Sentences, meanings, notes and the summary: what a reader without statistics is told, and
when.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.populations import HiddenExperience
from experiments.populations.synthetic import OffsetRegression
from metrifair import AuditOptions, AuditState, audit
from tests.flat_options import flat
from tests.seams.auditing import direction_notes
from tests.seams.metrics import METRICS
from tests.seams.wording import (
    finding_meaning,
    finding_sentence,
    note_topic,
    points_text,
)

QUICK: dict[str, Any] = {"resamples": 100, "permutations": 99, "random_state": 0}
RANDOM = np.random.default_rng(3)
SEX = RANDOM.choice(["men", "women"], 800)
SCORE = RANDOM.beta(np.where(SEX == "men", 3, 2), 3)


def topics(found: Any) -> list[str]:
    return [note_topic(note) for note in found.notes]


def test_the_sentence_says_where_the_gap_is_and_for_whom() -> None:
    found = audit(
        None,
        [0.1, 0.2, 0.3, 0.9, 0.3, 0.9, 0.9, 0.9],
        sensitive_features=list("aaaabbbb"),
        **flat(**QUICK),
    )
    assert found.worst().groups == ("a", "b")
    for text in found.describe():
        assert "“a” and " in text
        assert "“b”" in text
        assert "at a cutoff just above 0.2" in text.lower()
        assert "50.0" in text


def test_scores_at_a_cutoff_pass_it_where_scores_repeat() -> None:
    decile, group = np.array([3, 6, 6, 7, 6, 7, 7, 10]), np.repeat(["a", "b"], 4)
    found = audit(None, decile, sensitive_features=group, **flat(**QUICK))
    shares = " and ".join(f"{(decile[group == one] >= 7).mean():.1%} of “{one}”" for one in "ab")
    assert found.describe().sentence == f"At a cutoff just above 6, {shares} pass it."


def test_decisions_are_told_as_decisions_and_have_no_curves() -> None:
    decided, groups = [0, 0, 0, 1, 0, 1, 1, 1], list("aaaabbbb")
    found = audit(None, decided, sensitive_features=groups, **flat(**QUICK))
    (sentence,) = {finding_sentence(one) for one in found.findings}
    assert "decision is 1" in sentence
    assert re.findall(r"([\d.]+)% of “(\w)”", sentence) == [("25.0", "a"), ("75.0", "b")]
    assert "with decision 1" in found.describe().meaning
    assert "50.0 points" in found.describe().meaning
    assert not found.record.distributions
    assert {one.witness for one in found.findings} == {None}
    counted = (
        AuditState().add(None, decided, sensitive_features={"sex": groups}).audit(**flat(**QUICK))
    )
    assert counted.describe() == found.describe()
    errors = audit(
        [0, 1] * 4,
        decided,
        sensitive_features=groups,
        criteria="risk_parity",
        **flat(loss="squared_error", **QUICK),
    )
    assert "The decision is" not in finding_sentence(errors.findings[0])  # these scores are losses


def test_the_shares_of_the_sentence_differ_by_the_kolmogorov_distance() -> None:
    finding = audit(
        None, SCORE, sensitive_features=SEX, metrics="kolmogorov", **flat(**QUICK)
    ).findings[0]
    score, women, men = (
        float(part.strip("%,")) for part in finding_sentence(finding).split() if part[0].isdigit()
    )
    assert men - women == pytest.approx(100 * finding.value, abs=0.11)
    assert women == pytest.approx(100 * (SCORE[SEX == "women"] > score).mean(), abs=0.6)


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_has_a_meaning_that_names_both_groups(metric: str) -> None:
    finding = audit(None, SCORE, sensitive_features=SEX, metrics=metric, **flat(**QUICK)).findings[
        0
    ]
    meaning = finding_meaning(finding)
    assert "“men”" in meaning
    assert "“women”" in meaning
    assert meaning.endswith(".")


def test_what_energy_means_is_true_of_pairs_of_people() -> None:
    finding = audit(
        None, SCORE, sensitive_features=SEX, metrics="energy", **flat(**QUICK)
    ).findings[0]
    u, v = SCORE[SEX == "men"], SCORE[SEX == "women"]
    between = np.abs(u[:, None] - v).mean()
    within = (np.abs(u[:, None] - u).mean() + np.abs(v[:, None] - v).mean()) / 2
    assert f"lie {between - within:.3g} further apart" in finding_meaning(finding)


def test_the_mean_scores_are_told_with_the_wasserstein_distance() -> None:
    finding = audit(
        None, SCORE, sensitive_features=SEX, metrics="wasserstein", **flat(**QUICK)
    ).findings[0]
    men, women = (SCORE[name == SEX].mean() for name in ("men", "women"))
    assert finding_sentence(finding).startswith(
        f"The mean score is {men:.3g} for “men” and {women:.3g} for “women”."
    )


def test_parity_is_warned_of_in_the_papers_first_example_only() -> None:
    population = HiddenExperience(p1=0.5)
    X, y, group = population.sample(3000, seed=1)
    for prediction in (population.optimal_prediction(X), population.fair_prediction(X)):
        found = audit(y, prediction, sensitive_features=group, **flat(**QUICK))
        (note,) = [note for note in found.notes if note_topic(note) == "parity"]
        assert note.kind == "uninformative_score"
        assert (set(note.facts["uninformative"]), set(note.facts["informative"])) == ({"0"}, {"1"})
    told = OffsetRegression()
    X, y, group = told.sample(3000, seed=1)
    assert "parity" not in topics(
        audit(y, told.optimal_prediction(X), sensitive_features=group, **flat(**QUICK))
    )


def test_parity_is_not_warned_of_for_a_few_samples_or_where_no_group_is_told_apart() -> None:
    rng = np.random.default_rng(99)
    label = rng.integers(0, 2, 800)
    noise = rng.random(800)
    assert "parity" not in topics(audit(label, noise, sensitive_features=SEX, **flat(**QUICK)))
    telling = np.where(SEX == "men", 0.3 + 0.4 * label + 0.1 * noise, noise)
    assert "parity" in topics(audit(label, telling, sensitive_features=SEX, **flat(**QUICK)))
    few = slice(60)
    assert "parity" not in topics(
        audit(label[few], telling[few], sensitive_features=SEX[few], **flat(**QUICK))
    )


def test_small_groups_are_named() -> None:
    group = np.array(["many"] * 500 + ["few"] * 12 + ["some"] * 100)
    score = np.random.default_rng(0).random(len(group))
    small, undetectable = audit(None, score, sensitive_features=group, **flat(**QUICK)).notes
    assert (small.kind, undetectable.kind) == ("small_groups", "undetectable_gaps")
    (few,) = small.facts["groups"]
    assert tuple(few) == ("few", "sensitive_features", "everyone", 12)
    assert small.facts["min_group_size"] == 30
    (pair,) = undetectable.facts["pairs"]
    assert tuple(pair) == ("many", "some", "everyone")
    large = np.random.default_rng(0).random(4000)
    assert not audit(None, large, sensitive_features=np.arange(4000) % 2, **flat(**QUICK)).notes


def test_the_summary_begins_with_what_is_certain_and_tells_chance_from_more() -> None:
    unfair = audit(np.arange(800) % 2, SCORE, sensitive_features=SEX, **flat(**QUICK))
    certain = [one for one in unfair.findings if one.metric == "kolmogorov" and one.certain]
    head = max(certain, key=lambda one: one.joint_interval.low)
    assert unfair.headline == head
    assert "largest significant gap" in unfair.summary.splitlines()[0]
    assert f"{100 * head.value:.1f} points" in unfair.summary.splitlines()[0]
    assert finding_sentence(head) in unfair.summary.splitlines()[0]
    assert unfair.summary.splitlines()[1].startswith("95% interval: ")
    assert 2 <= len(unfair.summary.splitlines()) <= 8
    fair = audit(
        None, np.random.default_rng(0).random(800), sensitive_features=SEX, **flat(**QUICK)
    )
    assert fair.summary.splitlines()[0] == "No significant gap."
    assert "is statistically significant" not in fair.summary


@pytest.mark.parametrize("apart", [True, False])
def test_many_comparisons_are_told_from_chance_by_joint_bounds(apart: bool) -> None:
    """55 pairs: no p-value of 999 permutations is below 0.05 / 55."""
    group = np.repeat(np.arange(11), 150)
    score = np.random.default_rng(4).random(len(group)) + 2.0 * group * apart
    found = audit(
        None,
        score,
        sensitive_features=group,
        metrics="kolmogorov",
        random_state=0,
        options=AuditOptions(resamples=0),
    )
    assert ("All 55 gaps" in found.summary) == apart
    assert ("No significant gap" in found.summary) != apart
    assert {(one.significant, one.tested_by) for one in found.findings} == {(apart, "joint_bounds")}
    other = audit(
        None,
        score,
        sensitive_features=group,
        metrics="wasserstein",
        random_state=0,
        options=AuditOptions(resamples=0),
    )
    numbers = re.findall(r"999|55 gaps|1,100", other.summary)
    assert numbers == ["999", "55 gaps", "1,100"]


def test_the_largest_of_many_gaps_is_not_given_the_interval_of_one() -> None:
    """Without any difference nothing is certain, and the groups of the most rows are told of."""
    sizes, alone = [60, 60, 60, 61, 60, 62, 60, 60], []
    for seed, metric in enumerate(("kolmogorov", "wasserstein", "energy", "kolmogorov")):
        group, score = (
            np.repeat(np.arange(8), sizes),
            np.random.default_rng(seed).random(sum(sizes)),
        )
        found = audit(
            None,
            score,
            sensitive_features=group,
            metrics=metric,
            random_state=0,
            options=AuditOptions(resamples=60, permutations=0),
        )
        assert "28 comparisons" in found.summary.splitlines()[0]
        assert not any(one.significant for one in found.findings)
        assert found.headline is None
        assert found.summary.splitlines()[1].startswith("“3” and “5” ")
        assert "95% interval: 0" in found.summary.splitlines()[1]
        alone.append(any(one.interval.low > 0 for one in found.findings))
    assert any(alone)


def test_groups_of_too_few_rows_are_no_headline() -> None:
    group = ["few"] * 3 + ["many"] * 400
    found = audit(
        None, np.random.default_rng(0).random(403), sensitive_features=group, **flat(**QUICK)
    )
    assert found.summary.splitlines()[0].startswith("No gap can be assessed")
    assert "fewer than 30 rows" in found.summary.splitlines()[0]
    asked = audit(
        None,
        np.random.default_rng(0).random(403),
        sensitive_features=group,
        **flat(min_group_size=3, **QUICK),
    )
    assert "fewer than" not in asked.summary.lower()


def test_scores_are_told_in_as_many_digits_as_tell_them_apart() -> None:
    score = 0.9996 + 0.0004 * SCORE
    for scale, offset in ((1.0, 0.0), (1000.0, 50_000.0)):
        finding = audit(
            None,
            offset + scale * score,
            sensitive_features=SEX,
            metrics="kolmogorov",
            **flat(**QUICK),
        ).findings[0]
        sentence = finding_sentence(finding)
        told = float(sentence.partition(", ")[0].split()[-1])
        shown = [
            100 * (offset + scale * score[name == SEX] > told).mean() for name in ("women", "men")
        ]
        shares = [float(part.strip("%")) for part in sentence.split() if part.endswith("%")]
        assert shown == pytest.approx(shares, abs=3)
        assert "e+" not in sentence


def test_parity_is_not_warned_of_where_the_outcome_of_a_group_is_constant() -> None:
    label = np.where(SEX == "men", np.random.default_rng(9).random(800) < SCORE, 0)
    found = audit(
        label, SCORE, sensitive_features=SEX, criteria="statistical_parity", **flat(**QUICK)
    )
    assert "parity" not in topics(found)


def test_the_summary_speaks_of_four_fifths() -> None:
    score = np.where(SEX == "men", np.arange(800) % 2, np.arange(800) % 4 == 0)
    (sentence,) = [
        text
        for text in audit(None, score, sensitive_features=SEX, **flat(**QUICK)).summary.splitlines()
        if "selected" in text
    ]
    rates = [score[name == SEX].mean() for name in ("women", "men")]
    assert sentence.endswith(f"impact ratio {rates[0] / rates[1]:.2f}, below four fifths.")


# --- the same for everyone
# --------------------------------------------------------------------------------------


def test_constant_scores_are_named_as_such_and_not_praised() -> None:
    found = audit(None, np.full(800, 0.62), sensitive_features=SEX, **flat(**QUICK))
    assert "Every score is 0.62" in found.summary.splitlines()[0]
    (note,) = [note for note in found.notes if note_topic(note) == "constant"]
    assert (note.kind, note.facts) == ("constant_scores", {"score": 0.62})
    assert found.worst().value == 0.0


def test_constant_probabilities_of_several_classes_are_named() -> None:
    found = audit(None, np.tile([0.2, 0.3, 0.5], (800, 1)), sensitive_features=SEX, **flat(**QUICK))
    assert topics(found).count("constant") == 1
    differing = np.tile([0.2, 0.3, 0.5], (800, 1))
    differing[0] = [0.5, 0.3, 0.2]
    assert "constant" not in topics(audit(None, differing, sensitive_features=SEX, **flat(**QUICK)))


@pytest.mark.parametrize(("threshold", "who"), [(-1.0, "everyone is"), (2.0, "nobody is")])
@pytest.mark.parametrize("weight", [None, RANDOM.random(800) + 0.1], ids=["equal", "weighted"])
def test_decisions_that_are_the_same_for_everyone_are_named(
    threshold: float, who: str, weight: Any
) -> None:
    found = audit(
        None,
        SCORE,
        sensitive_features=SEX,
        threshold=threshold,
        sample_weight=weight,
        **flat(**QUICK),
    )
    (note,) = [note for note in found.notes if note_topic(note) == "constant"]
    facts = {"threshold": threshold, "selected": who == "everyone is"}
    assert (note.kind, note.facts) == ("same_decision", facts)
    assert f"{who} selected" in found.summary.splitlines()[0]


@pytest.mark.parametrize("threshold", ["auto", None, 0.8])
def test_scores_that_tell_people_apart_are_not_called_constant(threshold: Any) -> None:
    found = audit(None, SCORE, sensitive_features=SEX, threshold=threshold, **flat(**QUICK))
    assert "constant" not in topics(found)
    assert found.summary.splitlines()[0].startswith("The gap is ")


def test_rates_of_one_that_not_all_groups_have_are_not_constant() -> None:
    everyone_of_men = np.where(SEX == "men", 0.9, SCORE / 2)
    assert "constant" not in topics(
        audit(None, everyone_of_men, sensitive_features=SEX, **flat(**QUICK))
    )


@pytest.mark.parametrize("sizes", [(50, 200), (200, 50), (5_000, 5_000)])
def test_scores_are_reversed_from_four_standard_errors_below_one_half_on(
    sizes: tuple[int, int],
) -> None:
    """All positive rows have the lower of two scores: the AUC is half the share of negative
    rows that have it, too.
    """
    positive, negative = sizes
    error = np.sqrt((positive + negative + 1) / (12 * positive * negative))
    for beyond, reversed_there in ((-0.01, True), (0.01, False)):
        lower = np.round(2 * negative * (0.5 - max(4 * error, 0.02) + beyond))
        notes = direction_notes(
            np.array([positive, 0.0]), np.array([lower, negative - lower]), sizes
        )
        assert [one.facts["auc"] for one in notes] == [
            pytest.approx(lower / negative / 2)
        ] * reversed_there
    assert direction_notes(np.array([0, 0]), np.array([3, 4]), (0, 7)) == []
    assert direction_notes(np.array([1]), np.array([0]), (1, 0)) == []


@cache
def pairs_in_order(first: int, second: int) -> np.ndarray:
    """In how many orders of rows of two kinds each number of pairs is in order.

    The last row is of the first kind, and in order with all of the second, or of the second kind.
    """
    if not first or not second:
        return np.ones(1)
    orders = np.zeros(first * second + 1)
    orders[second:] += pairs_in_order(first - 1, second)
    orders[: first * (second - 1) + 1] += pairs_in_order(first, second - 1)
    return orders


@pytest.mark.parametrize("sizes", [(10, 12), (11, 11), (12, 10), (11, 12), (9, 16)])
def test_few_rows_are_reversed_by_the_error_of_all_their_orders(sizes: tuple[int, int]) -> None:
    """Scores that are in reverse order throughout, an AUC of 0: 4 errors are just more than one
    half for 22 rows, and just less for 23 and 25.
    """
    positive, negative = sizes
    orders = pairs_in_order(*sizes)
    auc = np.arange(len(orders)) / (len(orders) - 1)
    error = np.sqrt(np.average((auc - 0.5) ** 2, weights=orders))
    assert 0.49 < 4 * error < 0.51
    low, high = np.array([positive, 0]), np.array([0, negative])
    assert bool(direction_notes(low, high, sizes)) == (4 * error <= 0.5)


def test_a_headline_that_is_not_the_largest_gap_names_that_one(tmp_path: Path) -> None:
    """Of few rows, a larger gap is less precise."""
    generator = np.random.default_rng(0)
    group = np.repeat(["many", "others", "few"], [3000, 3000, 60])
    score = generator.normal(size=len(group)) + np.repeat([0.0, 1.0, -0.4], [3000, 3000, 60])
    found = audit(None, score, sensitive_features={"team": group}, random_state=0)
    headline, sure, larger, *_ = found.summary.splitlines()
    assert headline.startswith("The clearest gap is ")
    assert "“many” and “others” of team" in headline
    assert sure.startswith("95% interval: ")
    assert sure.endswith(" points (valid for all 3 comparisons together).")
    one = max(found.record.findings, key=lambda one: one.value * (one.metric == "kolmogorov"))
    assert one.joint_interval is not None
    size = f"{100 * one.value:.1f} points"
    assert larger == (
        f"A larger gap, {size} between “few” and “others” of team, is less precise: "
        f"its interval begins at {points_text(one.joint_interval.low)}."
    )
    found.to_html(tmp_path / "page.html")
    assert larger in (tmp_path / "page.html").read_text(encoding="utf-8")
