"""Batches by probabilities of groups, and their penalty: means over all possible batches, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from metrifair import GroupProbabilities, unfairness
from metrifair.errors import DataError, TooFewSamples
from metrifair.nn import ProbabilityBatchSampler, StratifiedBatchSampler, UnfairnessPenalty

RANDOM = np.random.default_rng(2)
ROWS, SIZE = 15, 2
TABLE = np.tile([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.6, 0.1, 0.3], [0.4, 0.3, 0.3]], (3, 1))
LABEL = RANDOM.permutation(np.arange(ROWS) % 3 > 0).astype(int)
WEIGHT = RANDOM.integers(1, 4, ROWS).astype(float)
SCORE = torch.as_tensor(RANDOM.normal(size=ROWS))


def race(table: Any = TABLE) -> GroupProbabilities:
    columns = dict(zip("abc", table.T, strict=True))
    return GroupProbabilities(columns, attribute="race", with_labels="included")


def by_pairs(score: Tensor, inside: Any, metric: str, contrast: str) -> Tensor:
    """The mean over comparisons of the quadratic form of signed weights, pair by pair."""
    apart = (score[:, None] - score).abs()
    kernel = {"energy": -apart, "cramer": -apart / 2, "mmd": torch.exp(-apart.square() / 2)}[metric]
    masks: list[Any] = [((0,), (1,)), ((0,), (2,)), ((1,), (2,))]
    if contrast == "rest":
        masks = [((0,), (1, 2)), ((1,), (0, 2)), ((2,), (0, 1))]
    values = []
    for left, right in masks:
        sides = [torch.as_tensor(inside[:, list(side)].sum(1)) for side in (left, right)]
        signed = sides[0] / sides[0].sum() - sides[1] / sides[1].sum()
        values.append(signed @ kernel @ signed)
    return torch.stack(values).mean()


def every_batch(sampler: ProbabilityBatchSampler, present: list[int]) -> Iterator[tuple[list[int], float]]:
    """All batches of rows that can be drawn, and their probabilities."""
    odds = sampler.drawing.odds
    if odds is None:
        batches = list(combinations(present, SIZE))
        yield from ((list(batch), 1 / len(batches)) for batch in batches)
        return
    for places in product(range(len(present)), repeat=SIZE):
        yield [present[place] for place in places], float(odds[list(places)].prod())


@pytest.mark.parametrize("metric", ["energy", "cramer", "mmd"])
@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize(
    ("criterion", "contrast", "weights"),
    [
        ("statistical_parity", "pairs", None),
        pytest.param("statistical_parity", "rest", WEIGHT, marks=pytest.mark.extended),
        ("equal_opportunity", "pairs", WEIGHT * (np.arange(ROWS) != 3)),
    ],
)
def test_the_mean_over_all_batches_is_the_value_of_all_rows(
    metric: str, replacement: bool, criterion: str, contrast: Any, weights: Any
) -> None:
    sampler = ProbabilityBatchSampler(
        race(),
        LABEL,
        batch_size=SIZE,
        criterion=criterion,
        contrast=contrast,
        replacement=replacement,
        sample_weight=weights,
    )
    penalty = UnfairnessPenalty(criterion, metric, "rows", contrast, sampler=sampler)
    counted = np.ones(ROWS) if weights is None else weights
    present, loss = np.flatnonzero(counted).tolist(), SCORE.square()
    found, risk, slopes = 0.0, 0.0, torch.zeros(ROWS, dtype=torch.float64)
    for rows, probability in every_batch(sampler, present):
        score = SCORE.clone().requires_grad_()
        value = penalty(score[rows], torch.tensor(rows))
        value.backward()
        assert score.grad is not None
        found, slopes = found + probability * value.item(), slopes + probability * score.grad
        risk += probability * float((sampler.weights.double()[rows] * loss[rows]).mean())
    score = SCORE.clone().requires_grad_()
    inside = TABLE * (counted * (LABEL if criterion == "equal_opportunity" else 1))[:, None]
    expected = by_pairs(score, inside, metric, contrast)
    expected.backward()
    assert found == pytest.approx(expected.item(), rel=1e-12)
    torch.testing.assert_close(slopes, score.grad, rtol=1e-12, atol=1e-12)
    assert risk == pytest.approx(float(torch.as_tensor(counted) @ loss / counted.sum()), rel=1e-6)  # single precision


def test_planted_fault_batches_that_hold_no_row_twice_are_biased() -> None:
    sampler = ProbabilityBatchSampler(race(), batch_size=SIZE)
    penalty = UnfairnessPenalty(estimate="rows", sampler=sampler)
    odds = sampler.drawing.odds
    assert odds is not None
    batches = [(list(rows), float(odds[list(rows)].prod())) for rows in permutations(range(ROWS), SIZE)]
    total = sum(probability for _, probability in batches)
    found = sum(p * penalty(SCORE[rows], rows).item() for rows, p in batches) / total
    expected = by_pairs(SCORE, TABLE, "energy", "pairs").item()
    assert abs(found / expected - 1) > 0.05


def test_batches_are_drawn_by_their_odds_and_repeat_from_the_seed() -> None:
    table = RANDOM.dirichlet([0.4, 0.4, 0.4], 200)
    options: dict[str, Any] = {"batch_size": 50, "sample_weight": np.r_[0.0, np.ones(199)], "random_state": 3}
    sampler = ProbabilityBatchSampler(race(table=table), **options)
    again = ProbabilityBatchSampler(race(table=table), **options)
    batches = [rows for _ in range(200) for rows in sampler]
    assert batches[:3] == list(again)[:3]
    assert {len(rows) for rows in batches} == {50}
    counts = np.bincount(np.concatenate(batches), minlength=200)
    assert counts[0] == 0
    assert sampler.drawing.odds is not None
    expected = sampler.drawing.odds.numpy() * counts.sum()
    assert ((counts[1:] - expected) ** 2 / expected).sum() < 199 + 5 * np.sqrt(2 * 199)
    without = ProbabilityBatchSampler(race(table=table), replacement=False, **options)
    drawn = [row for rows in without for row in rows]
    assert len(set(drawn)) == len(drawn) == 150
    assert 0 not in drawn


def test_ranks_share_the_batches_of_one_process() -> None:
    options: dict[str, Any] = {"batch_size": 4, "random_state": 0}
    alone = list(ProbabilityBatchSampler(race(), **options))
    parts = [list(ProbabilityBatchSampler(race(), **options, rank=rank, world_size=2)) for rank in (0, 1)]
    assert [sorted(one + other) for one, other in zip(*parts, strict=True)] == [sorted(rows) for rows in alone]


def test_a_batch_of_all_rows_has_the_distance_of_audits_and_probabilities_of_0_and_1_are_groups() -> None:
    certain = np.eye(3)[np.arange(ROWS) % 3]
    for table, groups in ((TABLE, race()), (certain, np.array([*"abc"])[np.arange(ROWS) % 3])):
        sampler = ProbabilityBatchSampler(race(table=table), batch_size=99, replacement=False)
        penalty = UnfairnessPenalty(estimate="rows", combine="sum", sampler=sampler)
        (rows,) = list(sampler)
        expected = unfairness(None, SCORE.numpy(), sensitive_features=groups, metric="energy", reduce="sum")
        assert penalty(SCORE[rows], rows).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "further", [{}, {"metric": "wasserstein", "estimate": "batch"}, {"estimate": "batch"}], ids=str
)
def test_a_loop_lowers_the_unfairness_by_probabilities(further: dict[str, Any]) -> None:
    torch.manual_seed(0)
    x = torch.randn(400, 3)
    share = (2 * x[:, 0]).sigmoid().numpy()
    proxy = GroupProbabilities({"a": share, "b": 1 - share}, attribute="race")
    y = ((x.sum(1) + torch.randn(400)) > 0).float()
    gaps = []
    for strength in (0.0, 3.0):
        sampler = ProbabilityBatchSampler(proxy, batch_size=100, random_state=0)
        model = torch.nn.Linear(3, 1)
        penalty = UnfairnessPenalty(
            sampler=sampler, **{"estimate": "batch" if "metric" in further else "rows"} | further
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for rows in [rows for _ in range(25) for rows in sampler]:
            output = model(x[rows]).squeeze(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(output, y[rows], sampler.weights[rows])
            optimizer.zero_grad()
            (loss + strength * penalty(output.sigmoid(), rows)).backward()
            optimizer.step()
        score = model(x).squeeze(1).sigmoid().detach().numpy()
        gaps.append(unfairness(None, score, sensitive_features=proxy))
    assert gaps[1] < 0.6 * gaps[0]


def test_what_cannot_be_drawn_or_compared_is_refused_in_words() -> None:
    sampler = ProbabilityBatchSampler(race(), batch_size=4)
    penalty = UnfairnessPenalty(estimate="rows", sampler=sampler)
    with pytest.raises(DataError, match="'population' needs the group of each row"):
        UnfairnessPenalty(sampler=sampler)
    with pytest.raises(DataError, match="criterion must be that of the sampler, 'statistical_parity'"):
        UnfairnessPenalty("equal_opportunity", estimate="rows", sampler=sampler)
    with pytest.raises(DataError, match="groups must be row numbers of the sampler, integers from 0 to 14"):
        penalty(SCORE[:4], torch.tensor([0, 1, 2, 15]))
    with pytest.raises(DataError, match="groups must be the rows of a whole batch of the sampler, 4, got 2"):
        penalty(SCORE[:2], [0, 1])
    with pytest.raises(DataError, match="leave weights out here"):
        penalty(SCORE[:4], [0, 1, 2, 3], weights=torch.ones(4))
    with pytest.raises(DataError, match="groups must be GroupProbabilities, got a ndarray"):
        ProbabilityBatchSampler(np.zeros(4), batch_size=2)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="'independence' needs the group of each row"):
        ProbabilityBatchSampler(race(), batch_size=2, contrast="independence")
    with pytest.raises(TooFewSamples, match=r"group 'c' has 1 expected rows there, and 2 are needed"):
        ProbabilityBatchSampler(race(table=np.c_[np.full((10, 2), 0.45), np.full(10, 0.1)]), batch_size=2)
    with pytest.raises(DataError, match="probabilities of race, which this function does not accept"):
        StratifiedBatchSampler(race(), batch_size=2)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="probabilities of race, which this function does not accept"):
        UnfairnessPenalty()(SCORE, race())  # type: ignore[arg-type]
