"""Batches by probabilities of groups, and their penalty: means over all possible batches,
exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from metrifair import GroupProbabilities, unfairness
from metrifair.errors import DataError, TooFewSamples
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty
from tests.expected_errors import Refusals
from tests.seams.nn import samplers

RANDOM = np.random.default_rng(2)
ROWS = 15
TABLE = np.tile(
    [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.6, 0.1, 0.3], [0.4, 0.3, 0.3]], (3, 1)
)
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


def every_batch(
    sampler: StratifiedBatchSampler, *, by_weight: bool = True
) -> Iterator[tuple[list[int], float]]:
    """All batches of rows that can be drawn, and their probabilities."""
    assert sampler.probable is not None
    places = []
    for entries, count in zip(sampler.rows, sampler.layout.counts, strict=True):
        weight = np.ones(len(entries))
        if by_weight and sampler.sample_weight is not None:
            weight = sampler.sample_weight[entries.numpy()]
        rows = sampler.probable.row[entries].tolist()
        places += [list(zip(rows, weight / weight.sum(), strict=True))] * count
    for batch in product(*places):
        rows, probabilities = zip(*batch, strict=True)
        yield list(rows), float(np.prod(probabilities))


class Means(NamedTuple):
    """The risk, the penalty and its slopes, in the mean over batches."""

    risk: float
    penalty: float
    slopes: Tensor


def means(
    penalty: UnfairnessPenalty, batches: Iterable[tuple[list[int], float]], labels: Tensor
) -> Means:
    """The means over these batches, weighted by their probabilities."""
    sampler = penalty.sampler
    assert sampler is not None
    risk = value = total = 0.0
    slopes = torch.zeros(len(labels), dtype=torch.float64)
    for rows, probability in batches:
        score = SCORE[: len(labels)].clone().requires_grad_()
        part = penalty(score[rows], sampler.batch_groups, labels[rows])
        part.backward()
        assert score.grad is not None
        value += probability * part.item()
        slopes += probability * score.grad
        losses = SCORE[rows].square()
        risk += probability * float((sampler.weights.double()[rows] * losses).mean())
        total += probability
    return Means(risk / total, value / total, slopes / total)


@pytest.mark.parametrize("metric", ["energy", "cramer", "mmd"])
@pytest.mark.parametrize(
    ("criterion", "contrast", "weighted"),
    [
        ("statistical_parity", "pairs", False),
        ("statistical_parity", "rest", True),
        ("equal_opportunity", "pairs", True),
    ],
)
def test_the_mean_over_all_batches_is_the_value_of_all_rows(
    metric: str, criterion: str, contrast: Any, weighted: bool
) -> None:
    few = 4
    labels = np.array([1, 1, 0, 1])
    table = np.array([[0.4, 0.3, 0.3], [0.0, 0.8, 0.2], [0.5, 0.5, 0.0], [0.6, 0.0, 0.4]])
    weights = np.array([2.0, 1.0, 1.0, 3.0]) if weighted else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samplers, "_FEWEST_EXPECTED", 0.2)  # expected rows, in so few
        sampler = StratifiedBatchSampler(
            race(table=table),
            labels,
            batch_size=7 if criterion == "equal_opportunity" else 6,
            criterion=criterion,
            contrast=contrast,
            estimate="rows",
            sample_weight=weights,
        )
    penalty = UnfairnessPenalty(criterion, metric, "rows", contrast, sampler=sampler)
    found = means(penalty, every_batch(sampler), torch.as_tensor(labels))
    counted = np.ones(few) if weights is None else weights
    score = SCORE[:few].clone().requires_grad_()
    inside = table * (counted * (labels if criterion == "equal_opportunity" else 1))[:, None]
    expected = by_pairs(score, inside, metric, contrast)
    expected.backward()
    assert found.penalty == pytest.approx(expected.item(), rel=1e-12)
    torch.testing.assert_close(found.slopes, score.grad, rtol=1e-12, atol=1e-12)
    loss = SCORE[:few].square()
    # single precision
    assert found.risk == pytest.approx(
        float(torch.as_tensor(counted) @ loss / counted.sum()), rel=1e-6
    )


def two_groups() -> UnfairnessPenalty:
    table = np.array([[0.5, 0.5], [0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]])
    proxy = GroupProbabilities(dict(zip("ab", table.T, strict=True)), attribute="race")
    sampler = StratifiedBatchSampler(proxy, batch_size=4)
    return UnfairnessPenalty(estimate="rows", sampler=sampler)


def test_planted_fault_rows_that_are_drawn_alike_for_all_groups_are_biased() -> None:
    penalty = two_groups()
    assert penalty.sampler is not None
    labels = torch.zeros(5)
    right = means(penalty, every_batch(penalty.sampler), labels)
    wrong = means(penalty, every_batch(penalty.sampler, by_weight=False), labels)
    assert abs(wrong.penalty / right.penalty - 1) > 0.3
    assert float((wrong.slopes - right.slopes).abs().max()) > 0.03


def test_planted_fault_batches_with_no_row_on_both_sides_are_biased() -> None:
    penalty = two_groups()
    assert penalty.sampler is not None
    groups = penalty.sampler.batch_groups
    assert groups is not None
    assert groups.tolist() == [0, 0, 1, 1]
    apart = [
        (rows, probability)
        for rows, probability in every_batch(penalty.sampler)
        if not {*rows[:2]} & {*rows[2:]}
    ]
    assert sum(probability for _, probability in apart) < 0.6
    labels = torch.zeros(5)
    right = means(penalty, every_batch(penalty.sampler), labels)
    wrong = means(penalty, apart, labels)
    assert abs(wrong.penalty / right.penalty - 1) > 0.1
    assert float((wrong.slopes - right.slopes).abs().max()) > 0.03


def test_batches_are_drawn_by_probabilities_and_repeat_from_the_seed() -> None:
    table = RANDOM.dirichlet([0.4, 0.4, 0.4], 200)
    options: dict[str, Any] = {
        "batch_size": 51,
        "sample_weight": np.r_[0.0, RANDOM.integers(1, 4, 199)],
        "random_state": 3,
    }
    sampler = StratifiedBatchSampler(race(table=table), **options)
    again = StratifiedBatchSampler(race(table=table), **options)
    batches = [rows for _ in range(300) for rows in sampler]
    assert batches[:3] == list(again)[:3]
    assert len(sampler) == 199 // 51
    assert {len(rows) for rows in batches} == {51}
    assert sampler.batch_groups is not None
    drawn = np.array(batches)
    for group in range(3):
        rows = drawn[:, sampler.batch_groups.numpy() == group].ravel()
        counts = np.bincount(rows, minlength=200)
        assert counts[0] == 0
        odds = table[:, group] * options["sample_weight"]
        expected = odds / odds.sum() * counts.sum()
        usual = expected > 5
        square = ((counts - expected) ** 2 / np.maximum(expected, 1e-300))[usual].sum()
        assert square < usual.sum() + 5 * np.sqrt(2 * usual.sum())


def test_rows_of_missing_probabilities_and_of_other_labels_have_no_group() -> None:
    table = np.r_[TABLE, np.full((5, 3), np.nan)]
    labels = np.r_[LABEL, np.zeros(5, dtype=int)]
    sampler = StratifiedBatchSampler(
        race(table=table), labels, batch_size=12, criterion="equal_opportunity"
    )
    assert sampler.batch_groups is not None
    assert set(sampler.batch_groups.tolist()) == {-1, 0, 1, 2}
    for rows in sampler:
        assert (labels[rows] == 1).tolist() == (sampler.batch_groups >= 0).tolist()


def test_ranks_share_the_batches_of_one_process() -> None:
    options: dict[str, Any] = {"batch_size": 9, "random_state": 0}
    alone = StratifiedBatchSampler(race(), **options)
    parts = [StratifiedBatchSampler(race(), **options, rank=rank, world_size=2) for rank in (0, 1)]

    def drawn(*samplers: StratifiedBatchSampler) -> list[list[tuple[int, int]]]:
        """The rows of each batch with their groups, over all ranks."""
        groups = [sampler.batch_groups.tolist() for sampler in samplers]  # type: ignore[union-attr]
        return [
            sorted(
                pair
                for rows, by_place in zip(batch, groups, strict=True)
                for pair in zip(rows, by_place, strict=True)
            )
            for batch in zip(*samplers, strict=True)
        ]

    assert drawn(*parts) == drawn(alone)


def test_probabilities_of_0_and_1_are_groups() -> None:
    group = np.arange(ROWS) % 3
    options: dict[str, Any] = {"batch_size": 9, "random_state": 0}
    known = StratifiedBatchSampler(group, **options)
    certain = StratifiedBatchSampler(race(table=np.eye(3)[group]), **options)
    batches = list(known)
    assert list(certain) == batches
    assert torch.equal(certain.weights, known.weights)
    for estimate in ("rows", "population"):
        penalties = [UnfairnessPenalty(estimate=estimate, sampler=one) for one in (known, certain)]  # type: ignore[arg-type]
        for rows in batches:
            expected = penalties[0](SCORE[rows], torch.as_tensor(group)[rows])
            assert penalties[1](SCORE[rows], certain.batch_groups) == expected


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
        sampler = StratifiedBatchSampler(proxy, batch_size=100, random_state=0)
        model = torch.nn.Linear(3, 1)
        penalty = UnfairnessPenalty(
            sampler=sampler, **{"estimate": "batch" if "metric" in further else "rows"} | further
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for rows in [rows for _ in range(25) for rows in sampler]:
            output = model(x[rows]).squeeze(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                output, y[rows], sampler.weights[rows]
            )
            optimizer.zero_grad()
            (loss + strength * penalty(output.sigmoid(), sampler.batch_groups)).backward()
            optimizer.step()
        score = model(x).squeeze(1).sigmoid().detach().numpy()
        gaps.append(unfairness(None, score, sensitive_features=proxy))
    assert gaps[1] < 0.6 * gaps[0]


def test_what_cannot_be_drawn_or_compared_is_refused_in_words(refused: Refusals) -> None:
    sampler = StratifiedBatchSampler(race(), batch_size=6)
    penalty = UnfairnessPenalty(estimate="rows", sampler=sampler)
    with refused(DataError):
        UnfairnessPenalty(sampler=sampler)
    with refused(DataError):
        UnfairnessPenalty("equal_opportunity", estimate="rows", sampler=sampler)
    with refused(DataError):
        UnfairnessPenalty(contrast="rest", estimate="rows", sampler=sampler)
    with refused(DataError):
        penalty(SCORE[:2], sampler.batch_groups)
    with pytest.raises(DataError, match="leave weights out here"):
        penalty(SCORE[:6], sampler.batch_groups, weights=torch.ones(6))
    with refused(TooFewSamples):
        StratifiedBatchSampler(
            race(table=np.c_[np.full((10, 2), 0.45), np.full(10, 0.1)]), batch_size=2
        )
    with refused(DataError):
        UnfairnessPenalty()(SCORE, race())  # type: ignore[arg-type]
