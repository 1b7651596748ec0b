"""A metric over a list of comparisons."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from metrifair.metrics import energy_distance
from tests.seams.metrics import METRICS, between, training_metric
from tests.seams.problem import Sides

ENERGY = METRICS["energy"].plug_in
SCORES = torch.tensor([[0.0, 1.0, 1.0, 3.0, 7.0], [2.0, 2.0, 5.0, 1.0, 0.0]], dtype=torch.float64)
COMPARISONS = [
    Sides(slice(0, 5), (2,), (3,)),
    Sides(torch.tensor([4, 0, 2]), (1,), (2,)),
    Sides(slice(1, 4), (2,), (1,), torch.tensor([1.0, 3.0, 1.0])),
]


def by_hand(scores: Tensor) -> Tensor:
    weighted = energy_distance(scores[..., 1:3], scores[..., 3:4], u_weights=[1.0, 3.0])
    plain = [
        energy_distance(scores[..., :2], scores[..., 2:]),
        energy_distance(scores[..., 4:], scores[..., [0, 2]]),
    ]
    return torch.stack([*plain, weighted], -1)


@pytest.mark.parametrize("scores", [SCORES, SCORES[0]], ids=["many models", "one model"])
def test_each_comparison_is_measured_on_its_rows(scores: Tensor) -> None:
    expected = by_hand(scores)
    torch.testing.assert_close(between(ENERGY, scores, COMPARISONS, reduce="all"), expected)
    torch.testing.assert_close(between(ENERGY, scores, COMPARISONS, reduce="sum"), expected.sum(-1))
    torch.testing.assert_close(
        between(ENERGY, scores, COMPARISONS, reduce="max"), expected.amax(-1)
    )


def test_rows_of_vectors_are_taken_along_the_last_axis_but_one() -> None:
    vectors = torch.stack([SCORES, SCORES.flip(-1)], -1)  # (models, n, 2)
    metric = METRICS["energy"].of_vectors
    found = between(metric, vectors, COMPARISONS[:2], reduce="all", vector=True)
    expected = [
        energy_distance(vectors[:, left], vectors[:, right], vector=True)
        for left, right in ([[0, 1], [2, 3, 4]], [[4], [0, 2]])
    ]
    torch.testing.assert_close(found, torch.stack(expected, -1))


def test_all_strata_reach_the_metric() -> None:
    sides = Sides(slice(0, 5), (1, 2), (2,))
    with pytest.raises(TooFewSamples) as caught:
        between(
            training_metric("energy", estimate="population"),
            SCORES,
            [COMPARISONS[0], sides],
            names=["first", "second"],
        )
    assert str(caught.value) == (
        "an unbiased distance needs 2 scores of each kind on each side, got 1 + 2 and 2; "
        "use a larger batch size, or the biased distance (estimate='batch' of a penalty, "
        "unbiased=False of a function)"
    )
    assert caught.value.__notes__ == ["comparing second"]


def test_a_comparison_with_an_empty_side_is_refused_by_place() -> None:
    with pytest.raises(TooFewSamples) as caught:
        between(ENERGY, SCORES, [Sides(torch.tensor([0, 1]), (2,), (0,))])
    assert str(caught.value) == (
        "a comparison has 2 and 0 samples on its sides; use a larger batch size, or batches that "
        "contain every group"
    )
    assert caught.value.__notes__ == ["comparing the sides of comparison 0"]


def test_no_comparison_at_all_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        between(ENERGY, SCORES, [])
    assert str(caught.value) == "there is nothing to compare: the list of comparisons is empty"
