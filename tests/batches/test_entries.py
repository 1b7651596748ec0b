"""Batches of entries, one for each row and group of positive probability: means over all possible
batches, exactly, and the faults that would bias them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from metrifair import GroupProbabilities
from tests.seams.batches import Batch, Samples, sides_by_row
from tests.seams.problem import Inputs, problem_with_probabilities
from tests.seams.training import EpochSource, Objective, regression, stratified_epochs

EXACT = {"rel": 1e-12, "abs": 1e-12}
# The first row is as probable in all groups: it is often on both sides of a comparison.
TABLES = {
    "two groups": [[0.5, 0.5], [0.9, 0.1], [0.3, 0.7], [0.2, 0.8]],
    "certain rows": [[0.5, 0.5], [1.0, 0.0], [0.3, 0.7], [0.0, 1.0]],
    "three groups": [[0.3, 0.3, 0.4], [0.7, 0.1, 0.2], [0.0, 0.8, 0.2]],
}
OUTPUT = torch.tensor([0.3, -1.0, 0.8, 2.0], dtype=torch.float64)
TARGET = torch.tensor([1.0, 0.0, -0.5, 0.2], dtype=torch.float64)


class Population(NamedTuple):
    """Rows and their entries, with what is drawn from them."""

    problem: Any
    entries: Samples
    row: Tensor  # of each entry
    objective: Objective
    source: EpochSource


def population(
    table: str, *, metric: Any = "energy", contrast: Any = "pairs", weighted: bool = False
) -> Population:
    shares = np.array(TABLES[table])
    rows = len(shares)
    proxy = GroupProbabilities(dict(zip("abc", shares.T, strict=False)), attribute="race")
    weight = np.array([2.0, 1.0, 3.0, 1.0])[:rows] if weighted else None
    problem = problem_with_probabilities(
        Inputs(TARGET[:rows].numpy(), proxy, sample_weight=weight),
        contrast=contrast,
        target="numbers",
    )
    entries = problem.entries
    row = torch.as_tensor(problem.row_of_entry)
    samples = Samples(
        OUTPUT[row, None],
        TARGET[row],
        torch.as_tensor(entries.cell),
        torch.as_tensor(entries.weight),
    )
    objective = Objective(regression(), problem.comparisons, metric=metric)
    source = stratified_epochs(
        samples,
        [torch.arange(len(samples))],
        objective,
        batch_size=2 * shares.shape[1],
        device="cpu",
    )
    return Population(problem, samples, row, objective, source)


def signed_form(data: Population, output: Tensor) -> Tensor:
    """The mean over comparisons of the quadratic form of signed weights, pair by pair: a row's
    share of the left side less its share of the right side.
    """
    apart = (output[:, None] - output).abs()
    kernels = {"energy": -apart, "cramer": -apart / 2, "mmd": torch.exp(-apart.square() / 2)}
    kernel = kernels[str(data.objective.metric)]
    assert data.problem.probabilities is not None
    weight = np.ones(len(output)) if data.problem.weight is None else data.problem.weight
    shares = torch.as_tensor(data.problem.probabilities.values * weight[:, None])
    total = output.new_zeros(())
    for comparison in data.problem.comparisons:
        left = shares[:, list(comparison.left)].sum(1)
        right = shares[:, list(comparison.right)].sum(1)
        signed = left / left.sum() - right / right.sum()
        total = total + signed @ kernel @ signed
    return total / len(data.problem.comparisons)


def every_batch(data: Population, *, by_weight: bool = True) -> Iterator[tuple[list[int], float]]:
    """All batches of entries, and their probabilities: each place is drawn from its cell, with
    replacement.
    """
    cell, weight = data.entries.cell, data.entries.weight
    (counts,) = {tuple(np.bincount(cell[rows].numpy()).tolist()) for rows in _one_epoch(data)}
    decks: list[Sequence[int]] = []
    for number, count in enumerate(counts):
        decks += [torch.nonzero(cell == number)[:, 0].tolist()] * count
    odds = weight.clone() if by_weight else torch.ones_like(weight)
    for number in range(len(counts)):
        odds[cell == number] /= odds[cell == number].sum()
    for batch in product(*decks):
        yield list(batch), float(odds[list(batch)].prod())


def _one_epoch(data: Population) -> Tensor:
    return data.source.draw([torch.Generator().manual_seed(0)], lambda: torch.zeros(0)).rows[0]


def means(
    data: Population, batches: Iterator[tuple[list[int], float]]
) -> tuple[float, float, Tensor]:
    """Risk, unfairness and its gradient by each row's output, in the mean over these batches."""
    loss_weight = (
        data.source.draw([torch.Generator()], lambda: torch.zeros(0)).weight[0, 0].double()
    )
    risk = unfairness = total = 0.0
    gradient = torch.zeros(len(data.problem), dtype=torch.float64)
    for chosen, probability in batches:
        output = OUTPUT[: len(data.problem)].clone().requires_grad_()
        samples = data.entries.take(torch.tensor(chosen)).with_weight(loss_weight)
        terms = data.objective(output[data.row[chosen]], Batch(samples, data.source.sides))
        terms.unfairness.sum().backward()
        assert output.grad is not None
        risk += probability * terms.risk.item()
        unfairness += probability * terms.unfairness.item()
        gradient += probability * output.grad
        total += probability
    return risk / total, unfairness / total, gradient / total


def of_all_rows(data: Population) -> tuple[float, float, Tensor]:
    """The same of all rows."""
    output = OUTPUT[: len(data.problem)].clone().requires_grad_()
    value = signed_form(data, output)
    value.backward()
    assert output.grad is not None
    weight = np.ones(len(output)) if data.problem.weight is None else data.problem.weight
    losses = (output.detach() - TARGET[: len(output)]).square().numpy()
    return float(weight @ losses / weight.sum()), value.item(), output.grad


def assert_equal(found: tuple[float, float, Tensor], expected: tuple[float, float, Tensor]) -> None:
    # loss weights are in single precision
    assert found[0] == pytest.approx(expected[0], rel=1e-6)
    assert found[1] == pytest.approx(expected[1], **EXACT)
    torch.testing.assert_close(found[2], expected[2], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("metric", ["energy", "cramer", "mmd"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("table", TABLES)
def test_the_mean_over_all_batches_is_the_value_of_all_rows(
    metric: str, weighted: bool, table: str
) -> None:
    data = population(table, metric=metric, weighted=weighted)
    assert_equal(means(data, every_batch(data)), of_all_rows(data))


def test_sides_of_several_groups_are_unbiased() -> None:
    data = population("three groups", contrast="rest", weighted=True)
    assert_equal(means(data, every_batch(data)), of_all_rows(data))


def test_a_row_is_on_both_sides_of_a_comparison_and_batches_without_it_are_biased() -> None:
    """The planted fault: batches are drawn again until no row is on both sides."""
    data = population("two groups")
    cell, row = data.entries.cell, data.row
    apart = []
    for chosen, probability in every_batch(data):
        places = torch.tensor(chosen)
        left = set(row[places[cell[places] == 0]].tolist())
        right = set(row[places[cell[places] == 1]].tolist())
        if not left & right:
            apart.append((chosen, probability))
    shared = 1 - sum(probability for _, probability in apart)
    assert shared > 0.4
    _, expected, slopes = of_all_rows(data)
    _, found, wrong = means(data, iter(apart))
    assert abs(found / expected - 1) > 0.3
    assert float((wrong - slopes).abs().max()) > 0.05


def test_planted_fault_draws_that_ignore_the_probabilities_are_found() -> None:
    data = population("two groups")
    _, expected, slopes = of_all_rows(data)
    _, found, wrong = means(data, every_batch(data, by_weight=False))
    assert abs(found / expected - 1) > 0.3
    assert float((wrong - slopes).abs().max()) > 0.05


def test_planted_fault_rows_of_a_side_that_never_repeat_are_found() -> None:
    """Weighted rows that are drawn without replacement."""
    data = population("two groups")
    batches = [
        (chosen, probability)
        for chosen, probability in every_batch(data)
        if len(set(chosen)) == len(chosen)
    ]
    _, expected, _ = of_all_rows(data)
    _, found, _ = means(data, iter(batches))
    assert abs(found / expected - 1) > 0.1


def test_epochs_draw_entries_by_their_weights() -> None:
    data = population("three groups", weighted=True)
    epochs = [_one_epoch(data)]
    generator = [torch.Generator().manual_seed(1)]
    epochs += [data.source.draw(generator, lambda: torch.zeros(0)).rows[0] for _ in range(2_000)]
    drawn = torch.cat(epochs).flatten()
    counts = torch.bincount(drawn, minlength=len(data.entries)).double()
    for cell in range(3):
        inside = data.entries.cell == cell
        odds = data.entries.weight[inside] / data.entries.weight[inside].sum()
        expected = odds * counts[inside].sum()
        deviation = (counts[inside] - expected) / expected.sqrt()
        assert float(deviation.abs().max()) < 4.5


@pytest.mark.parametrize("metric", ["energy", "mmd", "cramer"])
@pytest.mark.parametrize("contrast", ["pairs", "rest"])
def test_all_rows_at_once_are_the_distance_itself(metric: str, contrast: str) -> None:
    data = population("three groups", metric=metric, contrast=contrast, weighted=True)
    objective = Objective(regression(), data.problem.comparisons, metric=metric, estimate="batch")
    output = OUTPUT[:3].clone().requires_grad_()
    sides = sides_by_row(data.problem.comparisons, data.problem)
    value = objective.unfairness_of_scores(output, sides, None, vector=False)
    value.backward()
    _, expected, slopes = of_all_rows(data)
    assert value.item() == pytest.approx(expected, **EXACT)
    torch.testing.assert_close(output.grad, slopes, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("metric", ["energy", "mmd", "wasserstein", "kolmogorov", "cramer"])
def test_probabilities_of_0_and_1_have_the_sides_of_groups(metric: str) -> None:
    random = np.random.default_rng(5)
    group = random.integers(0, 3, 40)
    score = torch.as_tensor(random.normal(size=40))
    values = []
    for certainty in (1.0, 1 - 1e-15):
        table = np.where(np.eye(3)[group] > 0, certainty, (1 - certainty) / 2)
        proxy = GroupProbabilities(dict(zip("abc", table.T, strict=True)), attribute="race")
        problem = problem_with_probabilities(Inputs(sensitive_features=proxy))
        assert (problem.probabilities is None) == (certainty == 1)
        objective = Objective(regression(), problem.comparisons, metric=metric, estimate="batch")
        sides = sides_by_row(problem.comparisons, problem)
        values.append(objective.unfairness_of_scores(score, sides, None, vector=False).item())
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_entries_have_the_rows_groups_and_weights_of_their_probabilities() -> None:
    data = population("certain rows", weighted=True)
    found = zip(
        data.row.tolist(), data.entries.cell.tolist(), data.entries.weight.tolist(), strict=True
    )
    assert list(chain(*found)) == pytest.approx(
        [0, 0, 1.0, 0, 1, 1.0, 1, 0, 1.0, 2, 0, 0.9, 2, 1, 2.1, 3, 1, 1.0]
    )
