"""The penalty in a loop of one's own, on attributes that are numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from metrifair import DataError
from metrifair.errors import TooFewSamples
from metrifair.metrics import energy_dependence, energy_distance
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty, covering
from tests.expected_errors import Refusals


def batch(n: int = 60):
    generator = torch.Generator().manual_seed(0)
    age = 20 + 50 * torch.rand(n, generator=generator).double()
    return torch.randn(n, generator=generator).double() + age / 40, age, torch.arange(n) % 2


def test_the_penalty_is_the_energy_dependence_of_the_batch() -> None:
    scores, age, sex = batch()
    assert UnfairnessPenalty(estimate="batch", random_state=0)(scores, age).item() == pytest.approx(
        energy_dependence(scores, age).item()
    )
    unbiased = energy_dependence(scores, age, unbiased=True).item()
    assert UnfairnessPenalty(random_state=0)(scores, age).item() == pytest.approx(unbiased)
    whole = UnfairnessPenalty(estimate="batch", continuous=[0], random_state=0)
    both = whole(scores, torch.stack([age.round(), sex.double()], 1)).item()
    apart = energy_distance(scores[sex == 0], scores[sex == 1]).item()
    assert both == pytest.approx(energy_dependence(scores, age.round()).item() + apart)


def test_the_scale_is_that_of_the_first_batch_or_of_the_sampler() -> None:
    scores, age, _ = batch()
    penalty = UnfairnessPenalty(estimate="batch", random_state=0)
    penalty(scores, age)
    assert penalty(scores, 10 * age).item() == pytest.approx(
        10 * energy_dependence(scores, age).item()
    )
    sampler = StratifiedBatchSampler(age, batch_size=60, random_state=0)
    with_sampler = UnfairnessPenalty(estimate="rows", sampler=sampler)
    rows = next(iter(sampler))
    assert with_sampler(scores[rows], age[rows]).item() == pytest.approx(
        energy_dependence(scores, age).item()
    )


def test_batches_of_a_sampler_estimate_all_rows_without_bias() -> None:
    scores, age, sex = batch(30)
    groups = torch.stack([age, sex.double()], 1)
    sampler = StratifiedBatchSampler(groups, batch_size=12, random_state=1)
    penalty = UnfairnessPenalty(estimate="rows", sampler=sampler)
    found = np.array(
        [penalty(scores[rows], groups[rows]).item() for _ in range(100) for rows in sampler]
    )
    apart = energy_distance(scores[sex == 0], scores[sex == 1]).item()
    expected = energy_dependence(scores, age).item() + apart
    assert abs(found.mean() - expected) < 4 * found.std() / len(found) ** 0.5
    assert found.std() / len(found) ** 0.5 < 0.06 * expected


def test_gradients_pull_scores_together_and_unknown_numbers_count_for_nothing() -> None:
    scores, age, _ = batch()
    age[5] = float("nan")
    scores.requires_grad_()
    UnfairnessPenalty(random_state=0)(scores, age).backward()
    assert scores.grad[5] == 0
    assert (
        torch.corrcoef(
            torch.stack([scores.grad[torch.arange(60) != 5], age[torch.arange(60) != 5]])
        )[0, 1]
        > 0.5
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"continuous": [3]},
            "continuous names column 3; columns of groups have numbers here, 0 to 0",
        ),
        ({"continuous": False}, "groups must be integers, got"),
        (
            {"metric": "mmd"},
            "how much scores depend on group is measured by metric='energy' only, got 'mmd'",
        ),
    ],
)
def test_what_cannot_be_used_is_said(options, message: str) -> None:
    scores, age, _ = batch(8)
    with pytest.raises(DataError) as error:
        UnfairnessPenalty(**options)(scores, age)
    assert message in str(error.value)


def test_many_integers_are_groups_or_numbers_as_the_user_says() -> None:
    scores, age, _ = batch()
    ages = age.round().long()
    message = (
        f"groups contains {len(ages.unique())} different integers, which may be groups or numbers; "
        "pass "
        "continuous=True if they are numbers, such as ages, or pass continuous=False if each is a "
        "group"
    )
    for refused in (
        lambda: UnfairnessPenalty(random_state=0)(scores, ages),
        lambda: StratifiedBatchSampler(ages, batch_size=8, random_state=0),
    ):
        with pytest.raises(DataError) as error:
            refused()
        assert str(error.value) == message
    numbers = UnfairnessPenalty(continuous=True, estimate="batch", random_state=0)(scores, ages)
    assert numbers.item() == pytest.approx(energy_dependence(scores, ages.double()).item())


def test_missing_and_declared_groups_are_not_taken_for_numbers(refused: Refusals) -> None:
    """Twenty groups beside missing ones, and more groups than that if the user says how many."""
    scores = batch(400)[0]
    twenty = torch.where(torch.arange(400) < 40, -1, torch.arange(400) % 20)
    assert UnfairnessPenalty(random_state=0)(scores, twenty).isfinite()
    assert StratifiedBatchSampler(twenty, batch_size=80, random_state=0).values.numbers == ()
    assert UnfairnessPenalty(n_groups=30, random_state=0)(scores, torch.arange(400) % 30).isfinite()
    with refused(TooFewSamples):
        UnfairnessPenalty(random_state=0)(scores[:8], torch.arange(8) % 5)


def test_batches_of_a_stream_wait_for_no_group_but_for_four_in_every_set() -> None:
    generator = np.random.default_rng(0)
    age, label = generator.uniform(18, 90, 60), generator.integers(2, size=60)
    age[3] = np.nan
    samples = [
        (torch.tensor([float(place)]), float(y), a)
        for place, (y, a) in enumerate(zip(label, age, strict=True))
    ]
    plain = list(covering(samples, batch_size=4, continuous=True))
    # the first holds one whose number is not known
    assert [len(one.y) for one in plain] == [5] + [4] * 13
    within = list(covering(samples, batch_size=4, criterion="equalized_odds", continuous=True))
    seen = 0
    for one in within:
        known = one.y[~torch.isnan(one.group)]
        counts = [int((known == value).sum()) for value in (0, 1)]
        assert min(counts) == 4 or len(one.y) == 4
        assert torch.equal(
            one.group.nan_to_num(),
            torch.tensor(age[seen : seen + len(one.y)]).to(one.group).nan_to_num(),
        )
        seen += len(one.y)
        UnfairnessPenalty("equalized_odds", continuous=True, random_state=0)(
            torch.randn(len(one.y)), one.group, one.y
        )
    with pytest.raises(DataError, match="infinite"):
        next(covering([(torch.zeros(1), 0.0, float("inf"))] * 4, batch_size=4, continuous=True))


def test_the_dependence_of_such_batches_has_no_bias() -> None:
    """Scores that know nothing of the number: the unbiased estimate is 0 in the mean, that of
    each batch is not.
    """
    generator = np.random.default_rng(1)
    stream = (
        (torch.tensor([x]), 0.0, a)
        for x, a in zip(generator.normal(size=2000), generator.normal(size=2000), strict=True)
    )
    penalties = {
        "population": UnfairnessPenalty(random_state=0),
        "batch": UnfairnessPenalty(estimate="batch", random_state=0),
    }
    found = {name: [] for name in penalties}
    for batch_of_stream in covering(stream, batch_size=8, continuous=True):
        for name, penalty in penalties.items():
            found[name].append(penalty(batch_of_stream.x[:, 0], batch_of_stream.group).item())
    z = {
        name: np.mean(values) / (np.std(values) / len(values) ** 0.5)
        for name, values in found.items()
    }
    assert abs(z["population"]) < 3.5
    assert z["batch"] > 10
