"""Thresholds: the best by brute force, noise that is chance, and parity that does not flee into
"yes to everyone".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair.errors import DataError
from tests.seams.estimators import RULES, choose_threshold, decision_gaps
from tests.seams.problem import Inputs, make_problem

GROUPS = np.array(["f", "m"])


def rows(
    n: int, seed: int, *, base: float = 0.5, shift: float = 0.0, **options: Any
) -> tuple[Any, Any]:
    """Scores that tell the label, with groups; ``base`` is the share of the positive label."""
    rng = np.random.default_rng(seed)
    sex, positive = rng.integers(2, size=n), rng.random(n) < base
    sex[:2], positive[:2] = [0, 1], [True, False]
    score = 1 / (1 + np.exp(-rng.normal(2.0 * positive - 1 + shift * (2 * sex - 1), 1.0)))
    return score, make_problem(Inputs(np.where(positive, "yes", "no"), GROUPS[sex]), **options)


def decided(score: Any, problem: Any, threshold: float) -> Any:
    return np.where(score >= threshold, problem.scheme.positive, 1 - problem.scheme.positive)


def every(score: Any) -> Any:
    """Every threshold that decides differently."""
    distinct = np.unique(score)
    return [0.0, *((distinct[:-1] + distinct[1:]) / 2), 1.0]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 60),
    pos_label=st.sampled_from(["no", "yes"]),
    costs=st.sampled_from([[[0, 1], [1, 0]], [[0, 5], [1, 0]], [[-1, 2], [9, 0]]]),
)
def test_accuracy_and_cost_are_the_best_that_any_threshold_reaches(
    seed: int, n: int, pos_label: str, costs: Any
) -> None:
    score, problem = rows(n, seed, pos_label=pos_label)
    right = max((decided(score, problem, t) == problem.labels).mean() for t in every(score))
    found = choose_threshold(score, problem)
    assert found.value == pytest.approx(right)
    assert (decided(score, problem, found.threshold) == problem.labels).mean() == pytest.approx(
        right
    )
    table = np.array(costs)
    least = min(table[problem.labels, decided(score, problem, t)].mean() for t in every(score))
    found = choose_threshold(score, problem, rule="cost", costs=costs)
    assert found.value == pytest.approx(least)
    assert table[problem.labels, decided(score, problem, found.threshold)].mean() == pytest.approx(
        least
    )


def test_among_equals_the_usual_threshold_is_taken() -> None:
    _, problem = rows(40, 0)
    perfect = np.where(problem.is_positive, 0.9, 0.1)
    for rule in ("accuracy", "parity"):
        assert choose_threshold(perfect, problem, rule=rule).threshold == 0.5


def test_a_weight_of_two_is_a_row_twice() -> None:
    score, problem = rows(60, 3)
    weight = np.random.default_rng(0).integers(1, 4, len(score)).astype(float)
    twice = np.repeat(np.arange(len(score)), weight.astype(int))
    for rule, costs in (("accuracy", None), ("cost", [[0, 3], [1, 0]])):
        weighted = choose_threshold(score, replace(problem, weight=weight), rule=rule, costs=costs)
        repeated = choose_threshold(score[twice], problem.take(twice), rule=rule, costs=costs)
        assert (weighted.threshold, weighted.value) == (
            repeated.threshold,
            pytest.approx(repeated.value),
        )


@pytest.mark.parametrize(
    "criterion", ["statistical_parity", "equal_opportunity", "equalized_odds", "risk_parity"]
)
def test_decision_gaps_are_the_largest_difference_of_rates(criterion: str) -> None:
    score, problem = rows(300, 1, shift=0.5, criterion=criterion)
    chosen = np.stack([score >= t for t in (0.2, 0.5, 0.8)])
    sex, positive = problem.groups[:, 0], problem.is_positive
    for row, gap in zip(chosen, decision_gaps(chosen, problem), strict=True):
        value = row != positive if criterion == "risk_parity" else row
        sets = {
            "equal_opportunity": [positive],
            "equalized_odds": [positive, ~positive],
        }.get(criterion, [np.ones(300, dtype=bool)])
        assert gap == pytest.approx(
            max(
                abs(value[inside & (sex == 0)].mean() - value[inside & (sex == 1)].mean())
                for inside in sets
            )
        )


def test_parity_gives_up_no_more_than_noise_and_narrows_the_gap() -> None:
    score, problem = rows(2000, 4, shift=1.0)
    plain, fair = (choose_threshold(score, problem, rule=rule) for rule in ("accuracy", "parity"))
    gap, best = (
        decision_gaps(score >= np.array([[t]]), problem)[0]
        for t in (fair.threshold, plain.threshold)
    )
    assert fair.gap == pytest.approx(gap)
    assert gap < best - 0.02
    right = [
        (decided(score, problem, one.threshold) == problem.labels).mean() for one in (plain, fair)
    ]
    assert right[0] - right[1] < 0.03


def test_parity_does_not_flee_into_a_yes_for_everyone() -> None:
    """Where nine of ten are a yes, a yes for all is as accurate as any threshold and has no
    gap: the trap.
    """
    score, problem = rows(3000, 2, base=0.9, shift=0.4)
    accuracy_of_all = problem.is_positive.mean()
    best = max(
        (decided(score, problem, t) == problem.labels).mean() for t in np.linspace(0, 1, 101)
    )
    assert best - accuracy_of_all < 0.03
    found = choose_threshold(score, problem, rule="parity")
    assert 0.05 < (score < found.threshold).mean() < 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"rule": "fair"},
            "the rule of a threshold must be one of 'accuracy', 'cost', 'parity', got 'fair'",
        ),
        (
            {"rule": "cost"},
            "costs are for the rule 'cost', which needs them; got the rule 'cost' and costs None",
        ),
        (
            {"costs": [[0, 1], [1, 0]]},
            "costs are for the rule 'cost', which needs them; got the rule 'accuracy'",
        ),
        ({"rule": "cost", "costs": [[0, 1]]}, "2 rows of 2 finite costs"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(change: Any, message: str) -> None:
    score, problem = rows(20, 0)
    with pytest.raises(DataError) as caught:
        choose_threshold(score, problem, **change)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("y", "what"), [(list("abc") * 4, "3 classes"), ([0.5, 1.5, 2.5] * 4, "a number")]
)
def test_what_is_not_decided_between_two_classes_has_no_threshold(y: Any, what: str) -> None:
    problem = make_problem(
        Inputs(y, ["f", "m"] * 6), target="numbers" if what == "a number" else "labels"
    )
    for rule in RULES:
        with pytest.raises(
            DataError, match=f"decides between two classes, and {what} is predicted here"
        ):
            choose_threshold(np.linspace(0, 1, 12), problem, rule=rule, costs=[[0, 1], [1, 0]])


@pytest.mark.extended
def test_many_rows_are_tried_at_few_thresholds() -> None:
    score, problem = rows(150_000, 4)
    found = choose_threshold(score, problem, rule="parity")
    assert found.value > 0.8


def test_a_group_of_few_rows_does_not_choose_the_threshold() -> None:
    """Three people of a third group, all refused unless everyone passes: only all of them would
    close that gap.
    """
    score, plain = rows(400, 3, shift=0.4)
    group = np.where(np.arange(400) < 3, "few", GROUPS[plain.groups[:, 0]])
    score[:3] = 0.01
    labels = np.asarray(plain.values)
    three = make_problem(Inputs(labels, group))
    known = np.flatnonzero(np.arange(400) >= 3)
    tried = np.linspace(0, 1, 30)
    assert decision_gaps(score >= tried[:, None], three) == pytest.approx(
        decision_gaps(score[known] >= tried[:, None], plain.take(known))
    )
    few = make_problem(Inputs(labels[:20], group[:20]))  # where nobody is many, all count
    assert decision_gaps(score[:20] >= tried[:, None], few).max() == 1
