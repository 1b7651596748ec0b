"""Cells that are looked up are those that are compiled, or none are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from metrifair.criteria import criterion_named
from tests.seams.batches import tensor_sides
from tests.seams.nn import BatchRows, BatchValues, CellLookup, make_scheme, plain_sides
from tests.seams.problem import Comparison

RANDOM = np.random.default_rng(0)
N = 50


@pytest.mark.parametrize(
    "criterion",
    ["statistical_parity", "equal_opportunity", "predictive_equality", "equalized_odds"],
)
@pytest.mark.parametrize("attributes", [1, 2])
@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (0, 1, 5)])
@pytest.mark.parametrize("as_float", [False, True])
def test_cells_are_those_of_the_problem(
    criterion: str, attributes: int, labels: tuple[int, ...], as_float: bool
) -> None:
    rng = np.random.default_rng(99)
    kind = criterion_named(criterion)
    scheme = make_scheme(
        kind, [{0, 2, 3}, {1, 4}][:attributes], labels, contrast="rest", pos_label=None
    )
    columns = [rng.choice([0, 2, 3, -1], N), rng.choice([1, 4, -1], N)][:attributes]
    groups, targets = torch.as_tensor(np.stack(columns, 1)), torch.as_tensor(rng.choice(labels, N))
    expected = BatchValues(kind, groups, targets).problem(scheme).cell
    given: tuple[Any, Any] = (groups.double(), targets.float()) if as_float else (groups, targets)
    np.testing.assert_array_equal(CellLookup(scheme).cells(*given), expected)


UNKNOWN = {
    "a group not met before": ([0, 1, 2], [0, 1, 1]),
    "a group far out": ([0, 1, 10**6], [0, 1, 1]),
    "a group below": ([0, 1, -2], [0, 1, 1]),
    "half a group": ([0.0, 1.0, 0.5], [0, 1, 1]),
    "no group": ([0.0, 1.0, float("nan")], [0, 1, 1]),
    "a label not met before": ([0, 1, 1], [0, 1, 2]),
    "half a label": ([0, 1, 1], [0.0, 1.0, 0.5]),
    "too few labels": ([0, 1, 1], [0, 1]),
    "two columns": ([[0, 1], [1, 1]], [0, 1]),
    "nobody": ([], []),
}


@pytest.mark.parametrize(("groups", "targets"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_new_or_wrong_is_left_to_the_checks(groups: Any, targets: Any) -> None:
    scheme = make_scheme(
        criterion_named("equalized_odds"), [{0, 1}], (0, 1), contrast="pairs", pos_label=None
    )
    assert CellLookup(scheme).cells(torch.tensor(groups), torch.tensor(targets)) is None
    assert CellLookup(scheme).cells(groups, targets) is None  # lists are checked each time
    assert CellLookup(scheme).cells(torch.tensor([0, 1]), None) is None


@pytest.mark.parametrize("laid_out", [False, True])
def test_rows_of_a_batch_are_those_of_its_cells(laid_out: bool) -> None:
    rng = np.random.default_rng(99)
    cell = rng.integers(4, size=N)
    cell = np.sort(cell) if laid_out else cell
    comparisons = [Comparison((0,), (1,)), Comparison((0, 2), (1,)), Comparison((3,), (0,))]
    weight = torch.rand(N, dtype=torch.float64)
    found = plain_sides(comparisons, BatchRows(cell, 4), weight, torch.device("cpu"))
    expected = tensor_sides(comparisons, torch.as_tensor(cell), weight)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.left, ours.right) == (theirs.left, theirs.right)
        for mine, other in zip(
            torch.arange(N)[ours.rows].split(ours.counts),
            theirs.rows.split(theirs.counts),
            strict=True,
        ):
            assert sorted(mine.tolist()) == sorted(other.tolist())
        assert torch.equal(ours.weights, weight[ours.rows])
    assert isinstance(found[0].rows, slice) == laid_out
