"""Batches by probabilities of groups: means over all possible batches, exactly, and the faults that would bias them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
import torch
from torch import Tensor

from metrifair.batches.memberships import Drawing
from metrifair.batches.samples import Batch, Samples, plug_in_sides, side_weights
from metrifair.problem.cells import Comparison, Sides, SignedDraws
from metrifair.training.objective import Objective, regression
from metrifair.training.stack import batch_side, membership_epochs

ROWS, SIZE = 4, 3
EXACT = {"rel": 1e-12, "abs": 1e-12}
GROUPS = {
    "two groups": (Comparison((0,), (1,)),),
    "three groups": (Comparison((0,), (1,)), Comparison((0,), (2,)), Comparison((1,), (2,))),
    "the rest": (Comparison((0,), (1, 2)), Comparison((2,), (0, 1))),
}


def population(comparisons: tuple[Comparison, ...], *, weighted: bool = False, rows: int = ROWS) -> Samples:
    """Rows whose features are the outputs of the model."""
    random = np.random.default_rng(5)
    cells = 1 + max(max(one.left + one.right) for one in comparisons)
    shares = random.dirichlet(np.full(cells, 0.7), rows)
    weight = random.integers(1, 4, rows).astype(float) if weighted else np.ones(rows)
    x = random.normal(size=(rows, 1)) + shares[:, :1]
    parts = x, random.normal(size=rows), shares.argmax(1), weight
    found = [torch.as_tensor(part) for part in parts]
    return Samples(*found, shares=torch.as_tensor(shares * weight[:, None]))


def unfairness_by_pairs(data: Samples, comparisons: tuple[Comparison, ...], metric: str, score: Tensor) -> Tensor:
    """The mean over comparisons of the quadratic form of signed weights, pair by pair."""
    assert data.shares is not None
    apart = (score[:, None] - score).abs()
    kernel = {"energy": -apart, "cramer": -apart / 2, "mmd": torch.exp(-apart.square() / 2)}[metric]
    total = score.new_zeros(())
    for one in comparisons:
        left, right = (data.shares[:, list(side)].sum(1) for side in (one.left, one.right))
        c = left / left.sum() - right / right.sum()
        total = total + c @ kernel @ c
    return total / len(comparisons)


def batch_of(data: Samples, way: Drawing, chosen: list[int]) -> Batch:
    rows = torch.tensor(chosen)
    sides = [Sides(slice(0, len(chosen)), (len(chosen),), (), own[rows], signed=way.draws) for own in way.signed]
    return Batch(data.take(rows).with_weight(way.loss_weight[rows]), tuple(sides))


def every_batch(way: Drawing) -> Iterator[tuple[list[int], float]]:
    """All batches, and their probabilities."""
    if way.odds is None:
        batches = list(combinations(range(ROWS), SIZE))
        yield from ((list(batch), 1 / len(batches)) for batch in batches)
    else:
        yield from ((list(batch), float(way.odds[list(batch)].prod())) for batch in product(range(ROWS), repeat=SIZE))


def means(data: Samples, way: Drawing, objective: Objective) -> tuple[float, float, Tensor]:
    """Risk, unfairness and its gradient by each row's score, in the mean over all batches."""
    risk, unfairness, gradient = 0.0, 0.0, torch.zeros(ROWS, dtype=torch.float64)
    for chosen, probability in every_batch(way):
        score = data.x[:, 0].clone().requires_grad_()
        terms = objective(score[chosen], batch_of(data, way, chosen))
        terms.unfairness.backward()
        assert score.grad is not None
        risk += probability * terms.risk.item()
        unfairness += probability * terms.unfairness.item()
        gradient += probability * score.grad
    return risk, unfairness, gradient


def of_all_rows(data: Samples, objective: Objective) -> tuple[float, float, Tensor]:
    """The same of all rows, by pairs."""
    score = data.x[:, 0].clone().requires_grad_()
    value = unfairness_by_pairs(data, objective.comparisons, str(objective.metric), score)
    value.backward()
    assert score.grad is not None
    losses = (data.x[:, 0] - data.y).square()
    return float((data.weight * losses).sum() / data.weight.sum()), value.item(), score.grad


def drawing(data: Samples, objective: Objective, way: str) -> Drawing:
    assert data.shares is not None
    return getattr(Drawing, way)(data.weight, side_weights(objective.comparisons, data.shares), size=SIZE)


def assert_equal(found: tuple[float, float, Tensor], expected: tuple[float, float, Tensor]) -> None:
    assert found[:2] == pytest.approx(expected[:2], **EXACT)
    torch.testing.assert_close(found[2], expected[2], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("way", ["uniform", "weighted"])
@pytest.mark.parametrize("metric", ["energy", "cramer", "mmd"])
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_over_all_batches_is_the_value_of_all_rows(way: str, metric: str, groups: str, weighted: bool) -> None:
    objective = Objective(regression(), GROUPS[groups], metric=metric)
    data = population(objective.comparisons, weighted=weighted)
    assert_equal(means(data, drawing(data, objective, way), objective), of_all_rows(data, objective))


def test_planted_fault_odds_without_replacement_are_found() -> None:
    """The weights of draws with replacement, on batches that hold no row twice."""
    objective = Objective(regression(), GROUPS["two groups"])
    data = population(objective.comparisons)
    way = drawing(data, objective, "weighted")
    batches = [(batch, p) for batch, p in every_batch(way) if len(set(batch)) == SIZE]
    total = sum(p for _, p in batches)
    found = sum(
        p / total * float(objective.unfairness(data.x[batch, 0], batch_of(data, way, batch))) for batch, p in batches
    )
    _, expected, _ = of_all_rows(data, objective)
    assert abs(found / expected - 1) > 0.1


def test_planted_fault_odds_by_signed_weights_alone_are_found() -> None:
    """Rows whose signed weight is 0 are never drawn: the distance is right, the risk is not."""
    objective = Objective(regression(), GROUPS["two groups"])
    data = population(objective.comparisons)
    assert data.shares is not None
    first = data.shares[0]
    # A row and its mirror image, and rows that are alike in both groups.
    shares = torch.stack([first, first.flip(0), *torch.full((2, 2), 0.5, dtype=torch.float64)])
    data = replace(data, shares=shares)
    right = drawing(data, objective, "weighted")
    signed = right.signed * right.odds
    odds = signed.abs().sum(0) / signed.abs().sum()
    assert bool((odds == 0).any())
    wrong = right._replace(
        odds=odds,
        signed=torch.where(odds > 0, signed / odds, 0.0),
        loss_weight=torch.where(odds > 0, 1 / ROWS / odds, 0.0),
    )
    risk, unfairness, _ = means(data, wrong, objective)
    expected_risk, expected, _ = of_all_rows(data, objective)
    assert unfairness == pytest.approx(expected, **EXACT)
    assert abs(risk / expected_risk - 1) > 0.01
    assert_equal(means(data, right, objective), of_all_rows(data, objective))


def test_all_rows_at_once_are_the_distance_itself() -> None:
    objective = Objective(regression(), GROUPS["three groups"], metric="mmd")
    data = population(objective.comparisons)
    assert data.shares is not None
    way = Drawing.uniform(data.weight, side_weights(objective.comparisons, data.shares), size=ROWS)
    assert way.draws == SignedDraws(1.0, 1.0)
    _, expected, _ = of_all_rows(data, objective)
    assert float(objective.unfairness(data.x[:, 0], batch_of(data, way, [*range(ROWS)]))) == pytest.approx(
        expected, **EXACT
    )


def test_batches_of_two_rows_have_one_pair() -> None:
    """Of n rows, a pair stands for all n (n - 1) / 2 pairs; drawn with replacement, for one over its probability."""
    sides, weight = torch.ones(1, 2, ROWS, dtype=torch.float64), torch.ones(ROWS, dtype=torch.float64)
    assert Drawing.uniform(weight, sides, size=2).draws == SignedDraws(ROWS * (ROWS - 1) / 2, ROWS / 2)
    assert Drawing.weighted(weight, sides, size=2).draws == SignedDraws(0.5, 0.0)


def test_rows_drawn_by_odds_count_as_one_over_their_odds() -> None:
    """The mean of what a drawn row counts is the sum over all rows: of the loss, of each side, of signed weights."""
    generator = torch.Generator().manual_seed(1)
    weight = torch.rand(ROWS, dtype=torch.float64, generator=generator) + 0.1
    sides = torch.rand(2, 2, ROWS, dtype=torch.float64, generator=generator)
    way = Drawing.weighted(weight, sides, size=4)
    assert way.odds is not None
    assert float(way.odds.sum()) == pytest.approx(1.0)
    torch.testing.assert_close((way.odds * way.sides).sum(-1), sides.sum(-1))
    torch.testing.assert_close(way.odds * way.loss_weight, weight / weight.sum())
    shares = sides / sides.sum(-1, keepdim=True)
    torch.testing.assert_close(way.odds * way.signed, shares[:, 0] - shares[:, 1])


def test_batches_that_are_drawn_without_replacement_share_no_row() -> None:
    weight = torch.ones(12, dtype=torch.float64)
    way = Drawing.uniform(weight, torch.ones(1, 2, 12, dtype=torch.float64), size=4)
    drawn = way.rows(2, 4, torch.Generator().manual_seed(0))
    assert drawn.shape == (2, 4)
    assert len({*drawn.flatten().tolist()} & {*range(12)}) == 8
    assert sorted(way.rows(3, 4, torch.Generator().manual_seed(0)).flatten().tolist()) == [*range(12)]
    with_replacement = Drawing.weighted(weight, torch.ones(1, 2, 12, dtype=torch.float64), size=4)
    assert with_replacement.rows(3, 4, torch.Generator().manual_seed(0)).shape == (3, 4)


@pytest.mark.parametrize("metric", ["energy", "mmd", "wasserstein", "kolmogorov", "cramer"])
def test_shares_of_0_and_1_have_the_objective_of_groups(metric: str) -> None:
    comparisons = GROUPS["three groups"]
    data = population(comparisons, weighted=True, rows=40)
    one_hot = torch.nn.functional.one_hot(data.cell, 3) * data.weight[:, None]
    objective = Objective(regression(), comparisons, metric=metric, estimate="batch")
    found, expected = [], []
    for samples, into in ((replace(data, shares=one_hot), found), (replace(data, shares=None), expected)):
        score = data.x[:, 0].clone().requires_grad_()
        terms = objective(score, Batch(samples, plug_in_sides(comparisons, samples)))
        (terms.risk + 2 * terms.unfairness).backward()
        assert score.grad is not None
        into += [terms.risk.item(), terms.unfairness.item(), *score.grad.tolist()]
    assert found == pytest.approx(expected, **EXACT)


@pytest.mark.parametrize("metric", ["energy", "wasserstein"])
def test_epochs_draw_by_the_odds_and_look_weights_up(metric: str) -> None:
    """Two seeds with rows of their own: weights are those of the rows drawn, and 0 beyond a seed's rows."""
    objective = Objective(regression(), GROUPS["two groups"], metric=metric)
    data = population(objective.comparisons, rows=60)
    rows = [torch.arange(0, 40), torch.arange(20, 60)]
    source = membership_epochs(data, rows, objective, batch_size=10)
    generators = [torch.Generator().manual_seed(seed) for seed in range(2)]
    epochs = [source.draw(generators, lambda: torch.zeros(0)) for _ in range(300)]
    chosen = torch.cat([epoch.rows for epoch in epochs], 1)
    for seed, own in enumerate(rows):
        samples = data.take(own)
        assert samples.shares is not None
        way = Drawing.weighted(samples.weight, side_weights(objective.comparisons, samples.shares), size=10)
        assert way.odds is not None
        share = torch.bincount(chosen[seed].flatten() - own[0], minlength=40) / chosen[seed].numel()
        assert float(((share - way.odds) / (way.odds / chosen[seed].numel()).sqrt()).abs().max()) < 4.5
        (side,) = (batch_side(one, chosen[:, 0]) for one in source.sides)
        place = chosen[seed, 0] - own[0]
        expected = way.signed[0, place] if metric == "energy" else way.sides[0][:, place].flatten()
        torch.testing.assert_close(side.weights[seed, 0], expected)
        torch.testing.assert_close(epochs[0].weight[seed, 0], way.loss_weight[place])
