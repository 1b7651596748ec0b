"""The law of batches: whatever sampler, criterion, attributes, contrast and weights, the penalty's
mean is the truth.

On tiny populations all batches that a sampler can draw are gone through, so nothing is left to
chance. The truth, for rows drawn without replacement, is the distance of the rows, or, as an
estimate of the population's, the one in which no row is compared with itself: of each stratum the
U-statistic, strata by their shares. For rows drawn by weight it is the distance of the weighted
rows, whatever is estimated.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
import torch
from torch import Tensor

from metrifair.criteria import criterion_named
from metrifair.metrics import cramer_distance, energy_distance, mmd_squared
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty
from tests.expected_errors import Refusals

SCORES = torch.tensor(
    [0.1, 0.9, 0.4, 0.35, 0.8, 0.2, 0.6, 0.55, 0.05, 0.7, 0.95, 0.3], dtype=torch.float64
)
LABELS = torch.tensor([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
ONE = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1])
THREE = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
TWO = torch.tensor([[0, 0]] * 3 + [[0, 1]] * 2 + [[1, 0]] * 3 + [[1, 1]] * 4)
MIXED = torch.tensor([0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0])
WEIGHTS = torch.tensor(
    [1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 2.0, 1.0], dtype=torch.float64
)

CASES = [
    pytest.param("statistical_parity", ONE, "pairs", id="two groups"),
    pytest.param("statistical_parity", THREE, "pairs", id="three groups"),
    pytest.param("statistical_parity", THREE, "rest", id="each against the rest"),
    pytest.param("statistical_parity", TWO, "pairs", id="two attributes"),
    pytest.param("equal_opportunity", ONE, "pairs", id="within a label"),
    pytest.param("predictive_equality", ONE, "pairs", id="within the other label"),
    pytest.param("equalized_odds", ONE, "pairs", id="within both labels"),
]


def every_batch(sampler: StratifiedBatchSampler) -> list[tuple[float, list[int]]]:
    """All batches that the sampler can draw, with their probabilities: so many rows of every
    cell.
    """
    choices = []
    for rows, count in zip(sampler.rows, sampler.layout.counts, strict=True):
        own = rows.tolist()
        if sampler.sample_weight is None:
            drawn = [(1.0, list(chosen)) for chosen in combinations(own, count)]
        else:
            sampling_odds: Counter[tuple[int, ...]] = Counter()  # of rows in any order
            for chosen in product(own, repeat=count):
                sampling_odds[tuple(sorted(chosen))] += float(
                    np.prod(sampler.sample_weight[list(chosen)])
                )
            drawn = [(weight, list(chosen)) for chosen, weight in sampling_odds.items()]
        total = sum(weight for weight, _ in drawn)
        choices.append([(weight / total, chosen) for weight, chosen in drawn])
    return [
        (
            float(np.prod([odds for odds, _ in parts])),
            [row for _, chosen in parts for row in chosen],
        )
        for parts in product(*choices)
    ]


def mean_distance(
    u: Tensor, v: Tensor, u_strata: Tensor, v_strata: Tensor, *, same: bool
) -> Tensor:
    """Mean distance of a row of one sample from one of the other; from another row, where both
    are the same sample.
    """
    apart, total = (u[:, None] - v).abs(), torch.zeros((), dtype=torch.float64)
    for a, b in product(u_strata.unique(), v_strata.unique()):
        rows = (u_strata[:, None] == a) & (v_strata == b)
        pairs = rows & ~torch.eye(len(u), dtype=torch.bool) if same and a == b else rows
        share = float((u_strata == a).double().mean() * (v_strata == b).double().mean())
        total = total + share * apart[pairs].mean()
    return total


def sides(groups: Tensor, inside: list[Tensor], contrast: str) -> list[tuple[Tensor, Tensor]]:
    found = []
    for column in groups.reshape(len(groups), -1).T:
        values = sorted(set(column.tolist()))
        pairs = [(column == a, column == b) for a, b in combinations(values, 2)]
        if contrast == "rest" and len(values) > 2:
            pairs = [(column == a, column != a) for a in values]
        found += [(left & part, right & part) for left, right in pairs for part in inside]
    return found


def truth(scores: Tensor, strata: Tensor, compared: list[tuple[Tensor, Tensor]]) -> Tensor:
    """The sum over all comparisons, written down a second time."""
    total = torch.zeros((), dtype=torch.float64)
    for u, v in compared:
        both, own = (scores[u], scores[v]), (strata[u], strata[v])
        across = mean_distance(*both, *own, same=False)
        within = [
            mean_distance(one, one, part, part, same=True)
            for one, part in zip(both, own, strict=True)
        ]
        total = total + 2 * across - within[0] - within[1]
    return total


def weighted_truth(compared: list[tuple[Tensor, Tensor]], weights: Tensor) -> float:
    return sum(
        float(energy_distance(SCORES[u], SCORES[v], u_weights=weights[u], v_weights=weights[v]))
        for u, v in compared
    )


def sets_of(criterion: str, labels: Tensor) -> list[Tensor]:
    everyone = torch.ones(len(labels), dtype=torch.bool)
    return {
        "statistical_parity": [everyone],
        "equal_opportunity": [labels == 1],
        "predictive_equality": [labels == 0],
        "equalized_odds": [labels == 0, labels == 1],
    }[criterion]


def mean_penalty(
    penalty: UnfairnessPenalty, sampler: StratifiedBatchSampler, groups: Tensor, labels: Tensor
) -> tuple[float, Tensor]:
    """The mean of value and gradient over every batch."""
    scores = SCORES.clone().requires_grad_()
    parts = [
        odds * penalty(scores[rows], groups[rows], labels[rows])
        for odds, rows in every_batch(sampler)
    ]
    total = torch.stack(parts).sum()
    total.backward()
    return total.item(), scores.grad


@pytest.mark.filterwarnings("ignore:batch_size")
@pytest.mark.parametrize("metric", ["energy", "cramer", "mmd"])
@pytest.mark.parametrize("estimate", ["rows", "population"])
@pytest.mark.parametrize(("criterion", "groups", "contrast"), CASES)
def test_the_mean_over_all_batches_is_the_distance_of_the_rows(
    criterion: str, groups: Tensor, contrast: str, estimate: str, metric: str
) -> None:
    if (metric, estimate) == ("mmd", "population"):
        pytest.skip("the truth below is written down for distances")
    labels = LABELS if criterion == "statistical_parity" else MIXED
    options = {"criterion": criterion, "contrast": contrast}
    sampler = StratifiedBatchSampler(groups, labels, batch_size=4, **options)
    penalty = UnfairnessPenalty(
        **options, metric=metric, estimate=estimate, combine="sum", sampler=sampler
    )
    value, gradient = mean_penalty(penalty, sampler, groups, labels)
    scores = SCORES.clone().requires_grad_()
    compared = sides(groups, sets_of(criterion, labels), contrast)
    if estimate == "rows":
        plug_in = {"energy": energy_distance, "cramer": cramer_distance, "mmd": mmd_squared}[metric]
        expected = torch.stack([plug_in(scores[u], scores[v]) for u, v in compared]).sum()
    else:
        energies = 2 if metric == "cramer" else 1  # Cramér distances in one energy distance
        expected = truth(scores, torch.tensor(sampler.problem.cell), compared) / energies
    expected.backward()
    assert value == pytest.approx(expected.item(), abs=1e-12)
    torch.testing.assert_close(gradient, scores.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.filterwarnings("ignore:batch_size")
@pytest.mark.parametrize(
    ("groups", "contrast"),
    [(THREE, "rest"), (TWO, "pairs")],
    ids=["each against the rest", "two attributes"],
)
@pytest.mark.parametrize("weighed", [False, True])
def test_planted_fault_a_penalty_that_does_not_know_the_strata_is_biased(
    groups: Tensor, contrast: str, weighed: bool
) -> None:
    sampler = StratifiedBatchSampler(groups, batch_size=4, contrast=contrast, random_state=0)
    compared = sides(groups, [torch.ones(12, dtype=torch.bool)], contrast)
    expected = truth(SCORES, torch.tensor(sampler.problem.cell), compared)
    penalty = UnfairnessPenalty(contrast=contrast, combine="sum", random_state=0)
    found = [
        odds
        * penalty(SCORES[rows], groups[rows], weights=sampler.weights[rows] if weighed else None)
        for odds, rows in every_batch(sampler)
    ]
    assert abs(float(torch.stack(found).sum() - expected)) > 1e-3


@pytest.mark.pairwise
@pytest.mark.parametrize(
    "criterion", ["statistical_parity", "equal_opportunity", "predictive_equality"]
)
@pytest.mark.parametrize(
    ("groups", "contrast"),
    [(ONE, "pairs"), pytest.param(THREE, "rest", marks=pytest.mark.extended), (TWO, "pairs")],
)
def test_batches_drawn_for_a_finer_criterion_serve_any_other(
    criterion: str, groups: Tensor, contrast: str
) -> None:
    """Batches held by group and label, the penalty of another criterion: its sides are unions
    of strata.
    """
    labels = torch.tensor([0, 1] * 24)
    several = groups.repeat(4) if groups.ndim == 1 else groups.repeat(4, 1)
    scores = torch.rand(48, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    sampler = StratifiedBatchSampler(
        several, labels, batch_size=24, criterion="equalized_odds", random_state=1
    )
    penalty = UnfairnessPenalty(criterion, contrast=contrast, combine="sum", sampler=sampler)
    found = torch.stack(
        [penalty(scores[rows], several[rows], labels[rows]) for _ in range(150) for rows in sampler]
    )
    compared = sides(several, sets_of(criterion, labels), contrast)
    expected = truth(scores, torch.tensor(sampler.problem.cell), compared)
    z = float(found.mean() - expected) / (float(found.std()) / len(found) ** 0.5)
    assert abs(z) < 4


@pytest.mark.extended
@pytest.mark.pairwise
@pytest.mark.parametrize("estimate", ["rows", "population"])
@pytest.mark.parametrize(("groups", "contrast"), [(ONE, "pairs"), (THREE, "rest"), (TWO, "pairs")])
def test_rows_drawn_by_weight_estimate_the_distance_of_the_weighted_rows(
    groups: Tensor, contrast: str, estimate: str
) -> None:
    sampler = StratifiedBatchSampler(
        groups, batch_size=8, contrast=contrast, sample_weight=WEIGHTS.numpy(), random_state=0
    )
    # few enough batches to go through them all
    few = tuple(min(2, len(rows)) for rows in sampler.rows)
    sampler.layout = sampler.layout._replace(counts=few)
    penalty = UnfairnessPenalty(
        contrast=contrast, estimate=estimate, combine="sum", sampler=sampler
    )
    value, _ = mean_penalty(penalty, sampler, groups, LABELS)
    compared = sides(groups, [torch.ones(12, dtype=torch.bool)], contrast)
    assert value == pytest.approx(weighted_truth(compared, WEIGHTS), abs=1e-12)
    assert abs(value - weighted_truth(compared, torch.ones(12))) > 1e-3  # weights matter here


def test_loss_weights_of_weighted_rows_estimate_the_weighted_mean() -> None:
    sampler = StratifiedBatchSampler(
        ONE, batch_size=5, sample_weight=WEIGHTS.numpy(), random_state=0
    )
    found = sum(
        odds * float((sampler.weights[rows] * SCORES[rows]).mean())
        for odds, rows in every_batch(sampler)
    )
    # weights are single
    assert found == pytest.approx(float((WEIGHTS * SCORES).sum() / WEIGHTS.sum()), abs=1e-6)


def test_what_a_sampler_draws_by_weight_is_not_weighed_again(refused: Refusals) -> None:
    sampler = StratifiedBatchSampler(ONE, batch_size=4, random_state=0)
    rows = next(iter(sampler))
    with refused(ValueError):
        UnfairnessPenalty(sampler=sampler)(SCORES[rows], ONE[rows], weights=torch.ones(len(rows)))


def test_bins_of_a_target_are_strata_too() -> None:
    target = torch.arange(12.0)
    criterion = replace(criterion_named("equal_opportunity"), bins=(2.0, 6.0))
    sampler = StratifiedBatchSampler(
        MIXED, target, batch_size=8, criterion=criterion, random_state=0
    )
    value, _ = mean_penalty(UnfairnessPenalty(criterion, sampler=sampler), sampler, MIXED, target)
    expected = truth(
        SCORES, torch.tensor(sampler.problem.cell), sides(MIXED, [target >= 6], "pairs")
    )
    assert value == pytest.approx(float(expected), abs=1e-12)


def test_rows_of_unknown_group_are_compared_with_nobody_though_the_sampler_saw_none() -> None:
    sampler = StratifiedBatchSampler(ONE, batch_size=6, random_state=0)
    rows = next(iter(sampler))
    penalty = UnfairnessPenalty(sampler=sampler)
    expected = penalty(SCORES[rows], ONE[rows])
    more = penalty(
        torch.cat([SCORES[rows], SCORES.new_tensor([9.0])]),
        torch.cat([ONE[rows], torch.tensor([-1])]),
    )
    torch.testing.assert_close(more, expected, rtol=0, atol=0)
