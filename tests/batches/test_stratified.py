"""Stratified batches: counts, weights, and means over all possible batches, exactly."""

from __future__ import annotations

from itertools import combinations, islice, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from stratified_pass import stratified
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from tests.expected_errors import Refusals
from tests.seams.batches import (
    Batch,
    DevicePasses,
    Layout,
    Samples,
    StratifiedPasses,
    layout,
    rows_by_cell,
    sampling_odds,
)
from tests.seams.problem import Comparison
from tests.seams.training import Objective, Terms, regression

reproducible = settings(deadline=None, derandomize=True, database=None)
# of shuffling: host and device
both_places = pytest.mark.parametrize("kind", [StratifiedPasses, DevicePasses])
PAIR = (Comparison((0,), (1,), "sex", "y=1", ("f", "m")),)
REST = (Comparison((0,), (1, 2)), Comparison((1,), (0, 2)), Comparison((2,), (0, 1)))


def data(cells: list[int], weight: list[float] | None = None) -> Samples:
    """Rows with targets of 0 and distinct inputs, which are the outputs of the model."""
    n = len(cells)
    x = torch.as_tensor(np.random.default_rng(n).normal(size=n)) + torch.tensor(cells)
    weights = torch.ones(n).double() if weight is None else torch.tensor(weight).double()
    return Samples(x[:, None], torch.zeros(n).double(), torch.tensor(cells), weights)


# Layout


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[int], tuple[Comparison, ...], int, int]:
    least = draw(st.integers(1, 3))
    comparisons = draw(
        st.sampled_from([(), PAIR, REST, (Comparison((0, 2), (1,)), Comparison((3,), (0,)))])
    )
    compared = {cell for one in comparisons for cell in (*one.left, *one.right)}
    sizes = [draw(st.integers(least if cell in compared else 0, 60)) for cell in range(5)]
    return sizes, comparisons, draw(st.integers(1, 80)), least


@reproducible
@given(plans().filter(lambda plan: sum(plan[0]) > 0))
def test_counts_are_as_near_to_proportional_as_whole_numbers_and_floors_allow(plan: tuple) -> None:
    sizes, comparisons, size, least = plan
    counts = layout(sizes, comparisons, size=size, least=least).counts
    compared = {cell for one in comparisons for cell in (*one.left, *one.right)}
    floors = [min(n, least if cell in compared else 1) for cell, n in enumerate(sizes)]
    aim = min(size, sum(sizes))
    quota = [aim * n / sum(sizes) for n in sizes]
    assert sum(counts) == max(aim, sum(floors))
    assert all(floor <= count <= n for floor, count, n in zip(floors, counts, sizes, strict=True))
    for count, floor, share in zip(counts, floors, quota, strict=True):
        assert count < share + 1 or count == floor
    if all(floor <= share for floor, share in zip(floors, quota, strict=True)):
        assert all(abs(count - share) < 1 for count, share in zip(counts, quota, strict=True))
    # nobody could give a sample to a cell that is further behind
    spare = [
        count - share
        for count, floor, share in zip(counts, floors, quota, strict=True)
        if count > floor
    ]
    behind = [count - share for count, share in zip(counts, quota, strict=True)]
    assert max(spare, default=0) - min(behind) <= 1 + 1e-9


@reproducible
@given(plans().filter(lambda plan: sum(plan[0]) > 0))
def test_weights_give_each_cell_exactly_its_share(plan: tuple) -> None:
    sizes, comparisons, size, least = plan
    found = layout(sizes, comparisons, size=size, least=least)
    shares = torch.tensor(sizes).double() / sum(sizes)
    by_cell = found.weights(shares).split(list(found.counts))
    sums = torch.stack([part.sum() for part in by_cell]) / found.size
    torch.testing.assert_close(sums, shares, rtol=0, atol=1e-12)
    assert all((part == part[0]).all() for part in by_cell if len(part))


def test_weights_of_many_data_sets_at_once_are_those_of_each() -> None:
    shares = torch.tensor([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]]).double()
    found = Layout((2, 3, 2))
    assert torch.equal(found.weights(shares), torch.stack([found.weights(row) for row in shares]))


@pytest.mark.parametrize(
    ("cells", "left", "right", "weights"),
    [
        ((0,), (2,), (3,), None),
        ((1, 2), (3, 2), (2,), [0.1, 0.1, 0.1, 0.1, 0.1, 0.25, 0.25]),
        ((1, 3), (3,), (2,), None),  # cell 3 has no samples
    ],
)
def test_a_side_holds_the_rows_of_its_cells_with_their_shares(
    cells: tuple[int, ...],
    left: tuple[int, ...],
    right: tuple[int, ...],
    weights: list[float] | None,
) -> None:
    opponent = 1 if cells == (0,) else 0
    found = Layout((2, 3, 2, 0)).sides(
        Comparison(cells, (opponent,)), torch.tensor([0.5, 0.3, 0.2, 0.0]).double()
    )
    assert (found.left, found.right) == (left, right)
    starts, counts = (0, 2, 5, 7), (2, 3, 2, 0)
    rows = [
        row
        for cell in (*cells, opponent)
        for row in range(starts[cell], starts[cell] + counts[cell])
    ]
    assert torch.arange(7)[found.rows].tolist() == rows
    assert (found.weights is None) == (weights is None)
    if weights is not None:
        # the shares were single-precision numbers
        np.testing.assert_allclose(found.weights, weights, rtol=1e-6)


def test_sides_whose_cells_alternate_keep_their_order() -> None:
    """Of one row each: the rows lie side by side, and in another order."""
    found = Layout((1, 1, 1, 1)).sides(
        Comparison((0, 2), (1, 3)), torch.full((4,), 0.25, dtype=torch.float64)
    )
    assert torch.arange(4)[found.rows].tolist() == [0, 2, 1, 3]


def test_a_compared_group_that_is_too_small_is_named(refused: Refusals) -> None:
    for sizes, who, count in (((5, 1, 9), "m", "1"), ((0, 3, 9), "f", "no")):
        with pytest.raises(TooFewSamples) as caught:
            layout(sizes, PAIR, size=4)
        assert str(caught.value) == (
            f"comparing sex 'f' against 'm', y=1: group {who!r} has {count} sample(s) there, and 2 "
            "of each kind are "
            "needed; merge small groups, mark them as missing, or use estimate='rows' or 'batch'"
        )
    with refused(TooFewSamples):
        layout((5, 5, 1), REST, size=4)


def test_sizes_below_one_are_refused() -> None:
    with pytest.raises(DataError) as caught:
        layout((5, 5), PAIR, size=0)
    assert str(caught.value) == "the batch size must be at least 1, got 0"


@reproducible
@given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_rows_by_cell_are_the_rows_of_each_cell(cells: list[int]) -> None:
    found = rows_by_cell(torch.tensor(cells), 6)
    assert [own.tolist() for own in found] == [
        [i for i, c in enumerate(cells) if c == cell] for cell in range(6)
    ]


# Exhaustion: every batch that the layout allows, all equally likely


CASES = {
    "two cells, one of which nobody compares": ([0, 0, 0, 1, 1, 1, 1, 2, 2, 2], PAIR, 5),
    "three groups": (
        [0, 0, 0, 0, 1, 1, 2, 2, 2],
        (Comparison((0,), (1,)), Comparison((0,), (2,)), Comparison((1,), (2,))),
        6,
    ),
    "each against the rest": ([0, 0, 0, 0, 1, 1, 1, 2, 2, 2], REST, 6),
    "two attributes": (
        [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3],
        (Comparison((0, 1), (2, 3)), Comparison((0, 2), (1, 3))),
        8,
    ),
}


def every_batch(cells: list[int], plan: Layout, *, replacement: bool) -> Tensor:
    rows = [own.tolist() for own in rows_by_cell(torch.tensor(cells), len(plan.counts))]
    draws = [
        list(product(own, repeat=count) if replacement else combinations(own, count))
        for own, count in zip(rows, plan.counts, strict=True)
    ]
    return torch.tensor([[row for part in parts for row in part] for parts in product(*draws)])


def terms_of_every_batch(name: str, *, replacement: bool, estimate: str) -> tuple[Samples, Terms]:
    cells, comparisons, size = CASES[name]
    samples = data(cells)
    sizes = torch.bincount(samples.cell)
    plan = layout(sizes.tolist(), comparisons, size=size)
    shares = sizes.double() / len(cells)
    every = every_batch(cells, plan, replacement=replacement)
    batch = Batch(
        Samples(
            samples.x[every[0]],
            torch.zeros(plan.size).double(),
            samples.cell[every[0]],
            plan.weights(shares),
        ),
        tuple(plan.sides(one, shares, None if replacement else sizes) for one in comparisons),
    )
    objective = Objective(regression(), comparisons, estimate=estimate, combine="sum")
    return samples, objective(samples.x[every, 0], batch)  # batches as if many models


def energy(samples: Samples, comparison: Comparison, *, plug_in: bool) -> float:
    """By definition, cell by cell: pairs of one sample with itself count only in the plug-in."""
    x, cell = samples.x[:, 0], samples.cell

    def mean(first: tuple[int, ...], second: tuple[int, ...]) -> float:
        total = 0.0
        sizes = [sum(int((cell == c).sum()) for c in side) for side in (first, second)]
        for c, d in product(first, second):
            u, v = x[cell == c], x[cell == d]
            pairs = len(u) * len(v) if plug_in or c != d else len(u) * (len(u) - 1)
            total += (
                len(u)
                * len(v)
                / (sizes[0] * sizes[1])
                * float((u[:, None] - v).abs().sum())
                / pairs
            )
        return total

    left, right = comparison.left, comparison.right
    return 2 * mean(left, right) - mean(left, left) - mean(right, right)


@pytest.mark.parametrize("estimate", ["rows", "population"])
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_over_all_batches_risk_and_penalty_have_the_values_of_the_data_set_as_means(
    name: str, replacement: bool, estimate: str
) -> None:
    """The plug-in of the rows; only as an estimate of the population, without replacement,
    their U-statistic.
    """
    samples, terms = terms_of_every_batch(name, replacement=replacement, estimate=estimate)
    risk, plug_in = samples.x.square().mean().item(), replacement or estimate == "rows"
    target = sum(energy(samples, one, plug_in=plug_in) for one in CASES[name][1])
    assert terms.risk.mean().item() == pytest.approx(risk, abs=1e-12)
    assert terms.unfairness.mean().item() == pytest.approx(target, abs=1e-12)
    other = sum(energy(samples, one, plug_in=not plug_in) for one in CASES[name][1])
    assert abs(other - target) > 0.01  # so that the two targets are told apart


@pytest.mark.parametrize("name", CASES)
def test_over_all_batches_their_own_distance_is_too_large(name: str) -> None:
    """The control: what ``estimate="batch"`` says of itself."""
    samples, terms = terms_of_every_batch(name, replacement=False, estimate="batch")
    assert (
        terms.unfairness.mean()
        > sum(energy(samples, one, plug_in=True) for one in CASES[name][1]) + 0.01
    )


@pytest.mark.parametrize("name", CASES)
def test_the_equal_weights_of_the_paper_are_biased_by_rounding(name: str) -> None:
    cells, comparisons, size = CASES[name]
    samples = data(cells)
    plan = layout(torch.bincount(samples.cell).tolist(), comparisons, size=size)
    every = every_batch(cells, plan, replacement=False)
    assert abs(samples.x[every].square().mean() - samples.x.square().mean()) > 1e-3


@pytest.mark.parametrize("replacement", [pytest.param(False, marks=pytest.mark.extended), True])
def test_batches_of_a_pass_have_the_same_means(replacement: bool) -> None:
    """The same law through the generator: 1,500 batches of seeded passes."""
    name = "each against the rest"
    cells, comparisons, size = CASES[name]
    samples = data(cells)
    objective = Objective(regression(), comparisons, estimate="population", combine="sum")
    generator = torch.Generator().manual_seed(4)
    asked = {"size": size, "generator": generator, "replacement": replacement}
    passed = [batch for _ in range(1500) for batch in stratified(samples, comparisons, **asked)]
    assert all(torch.equal(batch.samples.weight, passed[0].samples.weight) for batch in passed)
    values = torch.stack(
        objective(torch.stack([batch.samples.x[:, 0] for batch in passed]), passed[0]), 1
    )
    truth = [
        samples.x.square().mean(),
        sum(energy(samples, one, plug_in=replacement) for one in comparisons),
    ]
    z = (values.mean(0) - torch.tensor(truth)) / (values.std(0) / len(values) ** 0.5)
    assert z.abs().max() < 4
    wrong = sum(energy(samples, one, plug_in=not replacement) for one in comparisons)
    assert abs(values[:, 1].mean() - wrong) > 6 * values[:, 1].std() / len(values) ** 0.5


# Passes


@reproducible
@given(st.lists(st.integers(0, 2), min_size=12, max_size=60), st.integers(1, 30), st.integers(0, 9))
def test_batches_are_laid_out_by_cell_and_hold_no_row_twice(
    cells: list[int], size: int, seed: int
) -> None:
    cells = [*cells, 0, 0, 1, 1]
    samples = data(cells)
    batches = list(
        stratified(samples, PAIR, size=size, generator=torch.Generator().manual_seed(seed))
    )
    counts = layout(torch.bincount(samples.cell).tolist(), PAIR, size=size).counts
    assert len(batches) == len(cells) // sum(counts) >= 1
    place = {value: row for row, value in enumerate(samples.x[:, 0].tolist())}
    for batch in batches:
        assert batch.samples.cell.tolist() == [
            cell for cell, count in enumerate(counts) for _ in range(count)
        ]
        rows = [place[value] for value in batch.samples.x[:, 0].tolist()]
        assert len(set(rows)) == len(rows)
        assert torch.equal(samples.cell[rows], batch.samples.cell)
        by_cell = (
            torch.zeros(len(counts))
            .double()
            .index_add_(0, batch.samples.cell, batch.samples.weight)
        )
        shares = torch.bincount(samples.cell, minlength=len(counts)).double() / len(cells)
        torch.testing.assert_close(by_cell / len(rows), shares, rtol=0, atol=1e-12)


@both_places
@reproducible
@given(st.lists(st.integers(1, 12), min_size=1, max_size=3), st.data(), st.integers(1, 9))
def test_a_cell_is_dealt_out_before_it_is_shuffled_anew(
    kind: type[StratifiedPasses], sizes: list[int], choice: st.DataObject, steps: int
) -> None:
    counts = tuple(
        choice.draw(st.integers(0 if len(sizes) > 1 and k else 1, n)) for k, n in enumerate(sizes)
    )
    rows = list(torch.arange(sum(sizes)).split(sizes))
    (drawn,) = kind([rows], Layout(counts), steps)([torch.Generator().manual_seed(0)])
    assert drawn.shape == (steps, sum(counts))
    start = 0
    for own, count in zip(rows, counts, strict=True):
        part = drawn[:, start : start + count]
        start += count
        assert set(part.flatten().tolist()) <= set(own.tolist())
        for deal in part.split(max(1, len(own) // max(1, count))):  # batches between two shuffles
            assert len(deal.unique()) == deal.numel()


@both_places
@pytest.mark.parametrize("weighted", [False, True])
def test_seeds_are_dealt_as_if_each_were_alone(
    kind: type[StratifiedPasses], weighted: bool
) -> None:
    """Whether they share their rows or not, and whatever the sizes of their cells: each has a
    stream of its own.
    """
    shared = [torch.arange(11), torch.arange(20, 27), torch.arange(0)]
    rows = [shared, [torch.arange(30, 39), torch.arange(50, 54), torch.arange(0)], shared]
    odds = (
        [[1 + torch.arange(len(cell)) % 3.0 for cell in seed] for seed in rows]
        if weighted
        else None
    )
    plan, steps = Layout((3, 2, 0)), 7
    together = kind(rows, plan, steps, odds=odds)
    generators = [torch.Generator().manual_seed(seed) for seed in range(3)]
    found = torch.stack([together(generators), together(generators)])
    for seed, own in enumerate(rows):
        alone = kind([own], plan, steps, odds=odds and [odds[seed]])
        generator = torch.Generator().manual_seed(seed)
        assert torch.equal(found[:, seed], torch.cat([alone([generator]), alone([generator])]))
    assert set(found[:, 1, :, :3].flatten().tolist()) <= set(range(30, 39))
    assert not torch.equal(found[:, 0], found[:, 2])
    with pytest.raises(ValueError, match="shorter"):
        kind(rows, plan, steps, odds=odds)(generators[:2])


def test_a_device_shuffles_few_rows_of_many_seeds() -> None:
    rows = list(torch.arange(16).split(4))
    passes = DevicePasses([rows] * 600, Layout((1, 1, 1, 1)), steps=1)
    drawn = passes([torch.Generator().manual_seed(seed) for seed in range(600)])
    assert torch.equal(drawn // 4, torch.arange(4).expand(600, 1, 4))


@both_places
def test_rows_are_drawn_evenly_or_in_proportion_to_their_odds(kind: type[StratifiedPasses]) -> None:
    """800 passes of two seeds: every row is as likely at every place of a batch, or as likely
    as its odds say.
    """
    rows = [torch.arange(6), torch.arange(6, 10)]
    even, by_odds = torch.full((6,), 1 / 6), torch.tensor([0.0, 1, 2, 3, 0, 2]) / 8
    for odds, expected in ((None, even), ([[8 * by_odds, torch.ones(4)]] * 2, by_odds)):
        passes = kind([rows, rows], Layout((3, 2)), 2, odds=odds)
        generators = [torch.Generator().manual_seed(seed) for seed in (0, 1)]
        # of shape: passes, seeds, steps, size
        drawn = torch.stack([passes(generators) for _ in range(800)])
        # of shape: 2, 3, 6
        shares = torch.stack(
            [(drawn[..., :3] == row).double().mean((0, 1)) for row in range(6)], -1
        )
        torch.testing.assert_close(shares, expected.double().expand_as(shares), rtol=0, atol=0.07)
        assert not torch.equal(drawn[:, 0], drawn[:, 1])
        assert len(drawn.flatten(1).unique(dim=0)) > 600  # passes do not repeat each other


def test_a_pass_is_reproduced_by_its_generator_and_differs_from_the_next() -> None:
    samples = data([0, 1] * 30)

    def passed(generator: torch.Generator) -> list[list[float]]:
        return [
            b.samples.x[:, 0].tolist()
            for b in stratified(samples, PAIR, size=8, generator=generator)
        ]

    generator = torch.Generator().manual_seed(2)
    first, second = passed(generator), passed(generator)
    assert first == passed(torch.Generator().manual_seed(2))
    assert first != second
    assert len(first) == 60 // 8


def test_weights_below_one_are_odds_too() -> None:
    assert sampling_odds(torch.tensor([0.0, 0.2, 0.7])).tolist() == pytest.approx([0.0, 0.2, 0.7])
    assert sampling_odds(torch.zeros(2)).tolist() == [1.0, 1.0]


@pytest.mark.extended
def test_sample_weights_are_the_odds_of_a_row_and_the_shares_of_a_cell() -> None:
    weight = [1.0, 3.0, 0.0, 2.0, 2.0, 4.0, 1.0, 1.0, 2.0]
    samples = data([0, 0, 0, 1, 1, 1, 2, 2, 2], weight)
    generator = torch.Generator().manual_seed(6)
    objective = Objective(regression(), REST, combine="sum")
    passed = [
        batch
        for _ in range(1200)
        for batch in stratified(samples, REST, size=7, generator=generator, replacement=True)
    ]
    assert all(torch.equal(batch.samples.weight, passed[0].samples.weight) for batch in passed)
    drawn = torch.stack([batch.samples.x[:, 0] for batch in passed])
    values, x = torch.stack(objective(drawn, passed[0]), 1), samples.x[:, 0]
    apart, target = (x[:, None] - x).abs(), 0.0
    for one in REST:  # of the weighted data set, pairs of a row with itself included
        sides = [
            torch.isin(samples.cell, torch.tensor(side)) * samples.weight
            for side in (one.left, one.right)
        ]
        gap = sides[0] / sides[0].sum() - sides[1] / sides[1].sum()
        target -= float(gap @ apart @ gap)
    truth = torch.tensor([(samples.weight * x.square()).mean(), target])
    assert ((values.mean(0) - truth).abs() < 4 * values.std(0) / len(values) ** 0.5).all()
    assert x[2] not in drawn  # its weight is 0


def test_a_common_weight_scales_the_risk_only() -> None:
    plain, heavy = data([0, 0, 0, 1, 1]), data([0, 0, 0, 1, 1], [3.0] * 5)
    first, second = (
        next(stratified(one, PAIR, size=4, generator=torch.Generator().manual_seed(0)))
        for one in (plain, heavy)
    )
    torch.testing.assert_close(second.samples.weight, 3 * first.samples.weight)
    assert torch.equal(first.samples.x, second.samples.x)


def test_a_batch_may_be_asked_to_hold_more_than_there_is() -> None:
    samples = data([0, 0, 0, 1, 1])
    (batch,) = islice(stratified(samples, PAIR, size=64, generator=torch.Generator()), 5)
    assert torch.equal(batch.samples.x.sort(0).values, samples.x.sort(0).values)
    torch.testing.assert_close(batch.samples.weight, torch.ones(5).double())


def test_without_comparisons_batches_are_stratified_by_cell_all_the_same() -> None:
    batches = list(stratified(data([0, 0, 0, 1, 1, 1]), (), size=2, generator=torch.Generator()))
    assert [batch.samples.cell.tolist() for batch in batches] == [[0, 1]] * 3
    assert all(batch.sides == () for batch in batches)


def test_a_cell_of_weight_zero_is_drawn_all_the_same_or_refused() -> None:
    samples = data([0, 0, 1, 1, 2, 2], [1, 1, 1, 1, 0, 0])
    (batch,) = stratified(samples, PAIR, size=6, generator=torch.Generator(), replacement=True)
    assert batch.samples.weight[batch.samples.cell == 2].sum() == 0
