"""The penalty in a loop of one's own, on attributes that are numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from metrifair import DataError, energy_dependence, energy_distance
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty


def batch(n: int = 60):
    generator = torch.Generator().manual_seed(0)
    age = 20 + 50 * torch.rand(n, generator=generator).double()
    return torch.randn(n, generator=generator).double() + age / 40, age, torch.arange(n) % 2


def test_the_penalty_is_the_energy_dependence_of_the_batch() -> None:
    scores, age, sex = batch()
    assert UnfairnessPenalty(estimate="batch")(scores, age).item() == pytest.approx(
        energy_dependence(scores, age).item()
    )
    unbiased = energy_dependence(scores, age, unbiased=True).item()
    assert UnfairnessPenalty()(scores, age).item() == pytest.approx(unbiased)
    whole = UnfairnessPenalty(estimate="batch", continuous=[0])
    both = whole(scores, torch.stack([age.round(), sex.double()], 1)).item()
    apart = energy_distance(scores[sex == 0], scores[sex == 1]).item()
    assert both == pytest.approx(energy_dependence(scores, age.round()).item() + apart)


def test_the_scale_is_that_of_the_first_batch_or_of_the_sampler() -> None:
    scores, age, _ = batch()
    penalty = UnfairnessPenalty(estimate="batch")
    penalty(scores, age)
    assert penalty(scores, 10 * age).item() == pytest.approx(10 * energy_dependence(scores, age).item())
    sampler = StratifiedBatchSampler(age, batch_size=60)
    with_sampler = UnfairnessPenalty(estimate="rows", sampler=sampler)
    rows = next(iter(sampler))
    assert with_sampler(scores[rows], age[rows]).item() == pytest.approx(energy_dependence(scores, age).item())


def test_batches_of_a_sampler_estimate_all_rows_without_bias() -> None:
    scores, age, sex = batch(30)
    groups = torch.stack([age, sex.double()], 1)
    sampler = StratifiedBatchSampler(groups, batch_size=12, random_state=1)
    penalty = UnfairnessPenalty(estimate="rows", sampler=sampler)
    found = np.array([penalty(scores[rows], groups[rows]).item() for _ in range(100) for rows in sampler])
    apart = energy_distance(scores[sex == 0], scores[sex == 1]).item()
    expected = energy_dependence(scores, age).item() + apart
    assert abs(found.mean() - expected) < 4 * found.std() / len(found) ** 0.5
    assert found.std() / len(found) ** 0.5 < 0.06 * expected


def test_gradients_pull_scores_together_and_unknown_numbers_count_for_nothing() -> None:
    scores, age, _ = batch()
    age[5] = float("nan")
    scores.requires_grad_()
    UnfairnessPenalty()(scores, age).backward()
    assert scores.grad[5] == 0
    assert torch.corrcoef(torch.stack([scores.grad[torch.arange(60) != 5], age[torch.arange(60) != 5]]))[0, 1] > 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"continuous": [3]}, "continuous names column 3, and groups has columns 0 to 0"),
        ({"continuous": False}, "groups must be integers, got"),
        ({"metric": "mmd"}, "how much scores depend on group is measured by metric='energy' only, got 'mmd'"),
    ],
)
def test_what_cannot_be_used_is_said(options, message: str) -> None:
    scores, age, _ = batch(8)
    with pytest.raises(DataError) as error:
        UnfairnessPenalty(**options)(scores, age)
    assert message in str(error.value)
