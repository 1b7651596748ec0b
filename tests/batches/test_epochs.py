"""All rows as one batch, and an error that says which group is missing."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair.batches import whole
from metrifair.errors import TooFewSamples
from tests.seams.batches import Samples, tensor_sides
from tests.seams.metrics import between, training_metric
from tests.seams.problem import Comparison

reproducible = settings(deadline=None, derandomize=True, database=None)
SEXES = Comparison((0, 2), (1,), "sex", "y=1", ("f", "m"))


def data(cells: list[int]) -> Samples:
    n = len(cells)
    rows = torch.arange(n, dtype=torch.float64)
    return Samples(rows[:, None], 10 * rows, torch.tensor(cells, dtype=torch.long), 1 + rows)


@reproducible
@given(st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_sides_are_the_rows_in_their_cells(cells: list[int]) -> None:
    samples = data(cells)
    (sides,) = whole(samples, [SEXES]).sides
    left, right = torch.arange(len(cells))[sides.rows].split(sides.counts)
    assert left.tolist() == [i for i, cell in enumerate(cells) if cell in (0, 2)]
    assert right.tolist() == [i for i, cell in enumerate(cells) if cell == 1]
    assert (len(sides.left), len(sides.right), sides.weights) == (1, 1, None)
    (weighted,) = tensor_sides([SEXES], samples.cell, samples.weight)
    assert torch.equal(weighted.weights, samples.weight[weighted.rows])


def test_samples_take_the_precision_of_a_tensor_and_keep_what_they_lack() -> None:
    like, plain = torch.zeros(1, dtype=torch.float32), data([0, 1, 2])
    moved = plain.to(like)
    assert moved.value is None
    assert {part.dtype for part in (moved.x, moved.y, moved.weight)} == {torch.float32}
    assert torch.equal(moved.cell, plain.cell)
    value = torch.tensor([4.0, 5.0, 6.0], dtype=torch.float64)
    both = Samples(plain.x, plain.cell, plain.cell, plain.weight, value).to(like)
    assert both.y.dtype == plain.cell.dtype  # labels stay integers
    assert torch.equal(both.value, value)


def test_without_comparisons_there_are_no_sides() -> None:
    assert tensor_sides([], torch.tensor([0, 1])) == ()
    assert whole(data([0, 1]), ()).sides == ()


TOO_FEW = [
    (
        "energy",
        [0, 1, 1],
        (
            "an unbiased distance needs 2 scores of each kind on each side, got 1 and 2; use a "
            "larger batch size, or "
            "the biased distance (estimate='batch' of a penalty, unbiased=False of a function)"
        ),
    ),
    (
        "energy",
        [1, 1, 1],
        (
            "a comparison has 0 and 3 samples on its sides; use a larger batch size, or batches "
            "that "
            "contain every group"
        ),
    ),
    (
        "kolmogorov",
        [0, 2],
        (
            "a comparison has 2 and 0 samples on its sides; use a larger batch size, or batches "
            "that "
            "contain every group"
        ),
    ),
]


@pytest.mark.parametrize(("metric", "cells", "message"), TOO_FEW)
def test_a_batch_that_lacks_a_group_is_refused_with_a_note_that_names_the_comparison(
    metric: str, cells: list[int], message: str
) -> None:
    batch = whole(data(cells), [SEXES])
    with pytest.raises(TooFewSamples) as caught:
        between(
            training_metric(metric, estimate="population"),
            batch.samples.x[:, 0],
            batch.sides,
            names=[SEXES],
        )
    assert str(caught.value) == message
    assert caught.value.__notes__ == ["comparing sex 'f' against 'm', y=1"]
