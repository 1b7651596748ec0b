"""Unbiasedness by exhaustion: the mean over every batch from a tiny population is the population's
value.

All batches go through the metric at once, along a leading axis; nothing is drawn, nothing is left
to chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import permutations, product

import pytest
import torch
from oracles import pair_of
from torch import Tensor

from metrifair.errors import TooFewSamples
from tests.expected_errors import Refusals
from tests.seams.metrics import (
    Pair,
    energy_between,
    mmd_between,
    random_directions,
    sliced_energy_between,
    vector_energy_between,
)

Estimate = Callable[..., Tensor]

ESTIMATES: dict[str, Estimate] = {
    "energy": energy_between,
    **{
        name: partial(mmd_between, kernel=name)
        for name in ("gaussian", "laplace", "inverse_multiquadric", "distance")
    },
    "two bandwidths": partial(mmd_between, kernel="laplace", bandwidth=[0.5, 2.0]),
    "a function": partial(mmd_between, kernel=lambda a, b: (1 + a * b) ** 2),
}
each_estimate = pytest.mark.parametrize("estimate", ESTIMATES.values(), ids=list(ESTIMATES))
THETA = (0.3, 1.1)


def tensor(values: Sequence[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


# with ties, within and across
P, Q = tensor([0.0, 0.4, 0.4, 1.5, -2.0]), tensor([0.4, 1.0, 3.0, -0.5])


def score(theta: Tensor, x: Tensor) -> Tensor:
    """A model of two parameters."""
    return torch.tanh(theta[0] + theta[1] * x) + 0.1 * theta[1] * x**2


def with_replacement(population: Tensor, n: int) -> Tensor:
    return torch.stack([torch.stack(batch) for batch in product(population, repeat=n)])


def without_replacement(population: Tensor, n: int) -> Tensor:
    return torch.stack([torch.stack(batch) for batch in permutations(population, n)])


def crossed(*draws: Tensor) -> list[Tensor]:
    """Every choice of one row from each."""
    rows = torch.cartesian_prod(*(torch.arange(len(draw)) for draw in draws))
    return [draw[rows[:, k]] for k, draw in enumerate(draws)]


def value_and_gradient(metric: Callable[[Tensor], Tensor]) -> Tensor:
    """The mean of the metric over its leading axes, and its gradient by the parameters of the
    model.
    """
    theta = tensor(THETA).requires_grad_()
    value = metric(theta).mean()
    return torch.cat([value.detach().reshape(1), torch.autograd.grad(value, theta)[0]])


def sample(u: Tensor, v: Tensor, estimate: Estimate, *, unbiased: bool) -> Tensor:
    return value_and_gradient(
        lambda theta: estimate(pair_of(score(theta, u), score(theta, v)), unbiased=unbiased)
    )


@each_estimate
@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 2), (2, 4)])
def test_batches_with_replacement_have_the_mean_of_the_population(
    estimate: Estimate, n: int, m: int
) -> None:
    u, v = crossed(with_replacement(P, n), with_replacement(Q, m))
    population = sample(P, Q, estimate, unbiased=False)
    torch.testing.assert_close(
        sample(u, v, estimate, unbiased=True), population, rtol=0, atol=1e-12
    )
    # The control: plug-in values of batches are too large on average, and their gradients point
    # elsewhere.
    assert (sample(u, v, estimate, unbiased=False) - population).abs().min() > 1e-3


@each_estimate
@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 2), (2, 4)])
def test_batches_without_replacement_have_the_mean_of_the_populations_unbiased_value(
    estimate: Estimate, n: int, m: int
) -> None:
    u, v = crossed(without_replacement(P, n), without_replacement(Q, m))
    population = sample(P, Q, estimate, unbiased=True)
    torch.testing.assert_close(
        sample(u, v, estimate, unbiased=True), population, rtol=0, atol=1e-12
    )
    biased = sample(u, v, estimate, unbiased=False)
    assert (biased - population).abs().max() > 1e-3


@each_estimate
@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 2), (2, 4), (5, 3), (5, 4)])
def test_batches_of_a_fraction_of_the_rows_have_the_mean_of_the_rows(
    estimate: Estimate, n: int, m: int
) -> None:
    """Of 5 and 4 rows: the plug-in of all of them, whatever the size of the batch; diagonal of
    the kernel included.
    """
    u, v = crossed(without_replacement(P, n), without_replacement(Q, m))
    rows = sample(P, Q, estimate, unbiased=False)
    fraction = tensor([n / len(P), m / len(Q)])

    def batches(theta: Tensor, fraction: Tensor) -> Tensor:
        return estimate(
            pair_of(score(theta, u), score(theta, v))._replace(fraction=fraction), unbiased=True
        )

    found = value_and_gradient(lambda theta: batches(theta, fraction))
    torch.testing.assert_close(found, rows, rtol=0, atol=1e-12)
    # The control: one row more than there are.
    wrong = value_and_gradient(
        lambda theta: batches(theta, tensor([n / (len(P) + 1), m / (len(Q) + 1)]))
    )
    assert (wrong - rows).abs().max() > 1e-3


@each_estimate
def test_fractions_may_differ_from_model_to_model(estimate: Estimate) -> None:
    """As the rows of two seeds do: each as if it were alone."""
    z, sizes = torch.stack([torch.cat([P, Q]), torch.cat([P, Q]) ** 2]), ((5,), (4,))
    fractions = tensor([[0.5, 0.25], [1.0, 0.8]])
    together = estimate(
        Pair(z.unsqueeze(1), *sizes, fraction=fractions.unsqueeze(1)), unbiased=True
    )
    alone = [
        estimate(Pair(one, *sizes, fraction=own), unbiased=True)
        for one, own in zip(z, fractions, strict=True)
    ]
    torch.testing.assert_close(together, torch.stack(alone).unsqueeze(1), rtol=0, atol=1e-13)
    assert (together[0] - together[1]).abs() > 1e-3


@each_estimate
@pytest.mark.parametrize("weighted", [False, True])
def test_all_rows_at_once_are_the_plug_in(estimate: Estimate, weighted: bool) -> None:
    weights = torch.arange(1, 10).double() if weighted else None
    pair = Pair(torch.cat([P, Q]), (5,), (4,), weights)
    found = estimate(pair._replace(fraction=torch.ones(2).double()), unbiased=True)
    torch.testing.assert_close(found, estimate(pair), rtol=0, atol=1e-14)


@each_estimate
def test_one_row_that_is_all_there_is_can_be_compared_and_one_of_many_cannot(
    estimate: Estimate,
    refused: Refusals,
) -> None:
    pair = Pair(torch.cat([P, Q[:1]]), (5,), (1,), fraction=tensor([0.5, 1.0]))
    (alone,) = without_replacement(Q[:1], 1)
    batches = torch.stack([torch.cat([own, alone]) for own in without_replacement(P, 3)])
    found = estimate(Pair(batches, (3,), (1,), fraction=tensor([0.6, 1.0])), unbiased=True).mean()
    torch.testing.assert_close(found, estimate(pair), rtol=0, atol=1e-12)
    for fraction in (tensor([0.5, 0.5]), None):
        with refused(TooFewSamples):
            estimate(pair._replace(fraction=fraction), unbiased=True)


# --- sides of several cells, drawn with fixed counts
# ------------------------------------------------------------

LEFT = [(0.3, tensor([0.0, 0.4, 1.5]), 2), (0.7, tensor([0.4, 2.0]), 3)]  # share, population, draws
RIGHT = [(0.6, tensor([1.0, 0.4]), 2), (0.4, tensor([-1.0, 3.0, 0.4]), 2)]


def cells(theta: Tensor, sides: Sequence[Sequence[tuple[float, Tensor]]]) -> Pair:
    """Two mixtures of cells: each cell's share is spread evenly over its rows, (..., n)."""
    parts = [
        (
            score(theta, torch.cat([x for _, x in side], -1)),
            torch.cat(
                [torch.full(x.shape[-1:], p / x.shape[-1], dtype=torch.float64) for p, x in side]
            ),
            tuple(x.shape[-1] for _, x in side),
        )
        for side in sides
    ]
    (u, a, left), (v, b, right) = parts
    return pair_of(u, v, a, b, left=left, right=right)


def drawn(draw: Callable[[Tensor, int], Tensor], n_right: int) -> list[list[tuple[float, Tensor]]]:
    right = RIGHT[:n_right]
    batches = crossed(*(draw(population, n) for _, population, n in LEFT + right))
    shares = [p for p, _, _ in LEFT + right]
    paired = list(zip(shares, batches, strict=True))
    return [paired[: len(LEFT)], paired[len(LEFT) :]]


@each_estimate
@pytest.mark.parametrize("n_right", [1, 2], ids=["against one cell", "against two cells"])
def test_batches_of_cells_have_the_mean_of_the_mixtures(estimate: Estimate, n_right: int) -> None:
    everyone = [[(p, x) for p, x, _ in side] for side in (LEFT, RIGHT[:n_right])]
    population = value_and_gradient(lambda theta: estimate(cells(theta, everyone)))
    batches = drawn(with_replacement, n_right)
    found = value_and_gradient(lambda theta: estimate(cells(theta, batches), unbiased=True))
    torch.testing.assert_close(found, population, rtol=0, atol=1e-12)

    def as_one_stratum(theta: Tensor) -> Tensor:
        pair = cells(theta, batches)
        return estimate(
            Pair(pair.values, *((n,) for n in pair.samples), pair.weights), unbiased=True
        )

    # The controls: plug-in values, and the weighted estimate that takes a side for one sample.
    for wrong in (
        value_and_gradient(lambda theta: estimate(cells(theta, batches))),
        value_and_gradient(as_one_stratum),
    ):
        assert (wrong - population).abs().max() > 1e-3


@each_estimate
def test_batches_of_cells_without_replacement_have_the_mean_of_the_mixtures_unbiased_value(
    estimate: Estimate,
) -> None:
    small = (
        [(0.3, tensor([0.0, 0.4, 1.5]), 2), (0.7, tensor([0.4, 2.0, 1.0, 1.0]), 3)],
        [(1.0, Q, 2)],
    )
    flat = [cell for side in small for cell in side]
    batches = crossed(*(without_replacement(population, n) for _, population, n in flat))
    drawn = [(p, x) for (p, _, _), x in zip(flat, batches, strict=True)]
    found = value_and_gradient(
        lambda theta: estimate(cells(theta, [drawn[:2], drawn[2:]]), unbiased=True)
    )
    everyone = [[(p, x) for p, x, _ in side] for side in small]
    population = value_and_gradient(lambda theta: estimate(cells(theta, everyone), unbiased=True))
    torch.testing.assert_close(found, population, rtol=0, atol=1e-12)


SMALL = (
    [
        (0.3, tensor([0.0, 0.4, 1.5]), 2),
        (0.5, tensor([0.4, 2.0, 1.0, 1.0]), 3),
        (0.2, tensor([5.0]), 1),
    ],
    [(1.0, Q, 2)],
)


@each_estimate
def test_batches_of_a_fraction_of_each_cell_have_the_mean_of_the_rows_mixtures(
    estimate: Estimate,
) -> None:
    """One of the cells has one row, which every batch holds."""
    flat = [cell for side in SMALL for cell in side]
    batches = crossed(*(without_replacement(population, n) for _, population, n in flat))
    drawn = [(p, x) for (p, _, _), x in zip(flat, batches, strict=True)]
    fraction = tensor([n / len(population) for _, population, n in flat])

    def estimated(theta: Tensor) -> Tensor:
        return estimate(
            cells(theta, [drawn[:3], drawn[3:]])._replace(fraction=fraction), unbiased=True
        )

    everyone = [[(p, x) for p, x, _ in side] for side in SMALL]
    rows = value_and_gradient(lambda theta: estimate(cells(theta, everyone)))
    torch.testing.assert_close(value_and_gradient(estimated), rows, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "estimate", [vector_energy_between, partial(mmd_between, vector=True)], ids=["energy", "mmd"]
)
def test_batches_of_vectors_have_the_mean_of_the_rows(estimate: Estimate) -> None:
    u, v = (torch.stack([population, population**2], -1) for population in (P, Q))
    draws = crossed(*(torch.tensor(list(permutations(range(len(own)), 2))) for own in (u, v)))
    values = torch.cat([u[draws[0]], v[draws[1]]], 1)
    fraction = tensor([2 / 5, 2 / 4])
    rows = estimate(Pair(torch.cat([u, v]), (5,), (4,)))
    found = estimate(Pair(values, (2,), (2,), fraction=fraction), unbiased=True).mean()
    torch.testing.assert_close(found, rows, rtol=0, atol=1e-12)
    if estimate is vector_energy_between:
        directions = random_directions(3, 2, torch.Generator().manual_seed(1))
        found = sliced_energy_between(
            Pair(values, (2,), (2,), fraction=fraction), directions, unbiased=True
        ).mean()
        sliced = sliced_energy_between(Pair(torch.cat([u, v]), (5,), (4,)), directions)
        torch.testing.assert_close(found, sliced, rtol=0, atol=1e-12)
