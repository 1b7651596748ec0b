"""Metrics by name: which estimate is reported, which is trained on, and functions in their
place.
"""

from __future__ import annotations

from itertools import product
from math import isnan

import numpy as np
import pytest
import torch
from oracles import Floats, pair_of
from torch import Tensor

from metrifair.errors import DataError, MetrifairWarning, TooFewSamples
from metrifair.metrics import distances, energy_distance, mmd_squared, witness
from tests.seams.metrics import (
    METRICS,
    PENALTY_ESTIMATES,
    Integral,
    Pair,
    acts_on_vectors,
    facts,
    is_largest_gap,
    least_samples,
    plug_in_metric,
    random_directions,
    sliced_energy_between,
    training_metric,
    vector_metric,
    warn_without_estimate,
)

NAMES = f"one of {', '.join(map(repr, METRICS))} or a function"
UNKNOWN = [
    ("enrgy", f"metric must be {NAMES}, got 'enrgy'; did you mean 'energy'?"),
    ("", f"metric must be {NAMES}, got ''"),
]
VECTORS = torch.tensor(
    [[0.0, 1.0], [2.0, 2.0], [1.0, 0.0], [3.0, 1.0], [0.0, 0.0]], dtype=torch.float64
)


@pytest.mark.parametrize(("name", "message"), UNKNOWN)
def test_an_unknown_metric_is_refused_with_the_nearest_name(name: str, message: str) -> None:
    for use in (
        facts,
        plug_in_metric,
        lambda n: training_metric(n, estimate="rows"),
        acts_on_vectors,
    ):
        with pytest.raises(DataError) as caught:
            use(name)
        assert str(caught.value) == message
    for use in (
        lambda: distances([0.0], [1.0], [name]),
        lambda: witness([0.0], [1.0], metric=name),
    ):
        with pytest.raises(DataError) as caught:
            use()
        assert str(caught.value) == message


@pytest.mark.parametrize("name", list(METRICS))
def test_the_plug_in_is_reported_and_the_best_estimate_trained_on(name: str) -> None:
    row = METRICS[name]
    assert plug_in_metric(name) is row.plug_in
    assert plug_in_metric(name, vector=True) is (row.of_vectors or row.plug_in)
    assert training_metric(name, estimate="rows") is (
        row.unbiased or row.in_training or row.plug_in
    )
    assert training_metric(name, estimate="batch") is (row.in_training or row.plug_in)
    assert acts_on_vectors(name) == (row.of_vectors is not None)


U, V = np.array([-1.0, 0.0, 0.0, 2.5]), np.array([0.0, 0.5, 3.0, 3.0])


def plug_in(name: str, u: Floats, v: Floats) -> float:
    return facts(name).plug_in(pair_of(u, v)).item()


@pytest.mark.parametrize("name", list(METRICS))
def test_what_the_table_says_of_a_metric_holds_of_its_values(name: str) -> None:
    row, value = facts(name), plug_in(name, U, V)
    # a maximum over scores sees their order alone
    assert row.is_maximum == (plug_in(name, U**3, V**3) == value)
    assert row.is_share == (row.maximum == 1)
    if not isnan(row.degree):
        assert plug_in(name, 8 * U, 8 * V) == pytest.approx(8**row.degree * value)
    assert row.survives_bins == (plug_in(name, np.arange(9.0), np.arange(9.0) + 1e-9) < 0.2)
    assert row.compares_means == (plug_in(name, U, U + 4.0) == pytest.approx(4.0))
    # Halfway between two distributions an integral probability metric is half as large.
    halfway = plug_in(name, U, np.concatenate([U, V]))
    assert halfway == pytest.approx(value / (4 if row.squared else 2)) != 0


@pytest.mark.parametrize("name", list(METRICS))
def test_the_distribution_functions_give_what_counts_in_bins_prove_bounds_of(name: str) -> None:
    points = np.unique(np.concatenate([U, V]))
    gap = np.array([np.mean(point >= U) - np.mean(point >= V) for point in points])
    bracket = facts(name).bracket
    if isinstance(bracket, Integral):
        integral = (bracket.convex(gap[:-1]) * np.diff(points)).sum()
        assert plug_in(name, U, V) == pytest.approx((bracket.factor * integral) ** bracket.power)
    assert (
        (bracket == "largest gap")
        == is_largest_gap(name)
        == (plug_in(name, U, V) == np.abs(gap).max())
    )
    assert not is_largest_gap("a metric of your own")


@pytest.mark.parametrize(("name", "estimate"), list(product(METRICS, PENALTY_ESTIMATES)))
def test_a_batch_needs_no_more_and_no_fewer_samples_than_its_estimate(
    name: str, estimate: str
) -> None:
    least, metric = least_samples(name, estimate), training_metric(name, estimate=estimate)
    assert metric(pair_of(U[:least], V[:least])).item() > -1
    if least > 1:
        with pytest.raises(TooFewSamples):
            metric(pair_of(U[: least - 1], V))


@pytest.mark.parametrize("name", list(METRICS))
def test_an_estimate_that_a_metric_lacks_is_warned_of_with_those_that_have_it(name: str) -> None:
    if METRICS[name].unbiased:
        # a warning would be an error here
        warn_without_estimate(name, "population", default="rows")
        return
    with pytest.warns(
        MetrifairWarning, match="biased; energy, cramer, mmd have estimates without bias$"
    ):
        warn_without_estimate(name, "population", default="rows")


@pytest.mark.parametrize("name", [name for name, row in METRICS.items() if row.unbiased])
def test_fresh_rows_have_no_fraction_and_keep_their_weights(name: str) -> None:
    weights, drawn = np.array([0.1, 0.2, 0.3, 0.4, 0.4, 0.3, 0.2, 0.1]), np.array([0.5, 0.8])
    pair = Pair(np.concatenate([U, V]), (4,), (4,), weights, drawn)
    of_weights = training_metric(name, estimate="population")(pair)
    assert of_weights == METRICS[name].unbiased(Pair(pair.values, (4,), (4,), weights))
    assert of_weights != training_metric(name, estimate="rows")(pair)
    assert of_weights != METRICS[name].unbiased(pair_of(U, V))


def test_a_function_stands_for_itself() -> None:
    def gap_of_means(u: Tensor, v: Tensor) -> Tensor:
        return (u.mean(-1) - v.mean(-1)).abs()

    pair = pair_of([0.0, 1.0, 5.0], [1.0, 3.0])
    for metric in (
        plug_in_metric(gap_of_means),
        plug_in_metric(gap_of_means, vector=True),
        training_metric(gap_of_means, estimate="rows"),
    ):
        assert metric(pair).item() == 0.0
    assert not acts_on_vectors(gap_of_means)
    assert (
        vector_metric(gap_of_means, estimate="rows", slices=2, generator=torch.Generator()) is None
    )


def test_a_function_is_given_the_weights_where_there_are_any() -> None:
    seen = {}

    def metric(u: Tensor, v: Tensor, **weights: Tensor) -> Tensor:
        seen.update(u=u, v=v, **weights)
        return energy_distance(u, v, **weights)

    found = plug_in_metric(metric)(pair_of([0.0, 1.0, 5.0], [1.0, 3.0], [1.0, 2.0, 1.0]))
    assert found.item() == pytest.approx(
        energy_distance([0.0, 1.0, 5.0], [1.0, 3.0], u_weights=[1, 2, 1])
    )
    assert [len(seen[name]) for name in ("u", "v", "u_weights", "v_weights")] == [3, 2, 3, 2]


@pytest.mark.parametrize("estimate", PENALTY_ESTIMATES)
def test_energy_of_vectors_is_trained_on_slices_drawn_anew_and_mmd_on_pairs(estimate: str) -> None:
    pair, generator = Pair(VECTORS, (3,), (2,)), torch.Generator().manual_seed(0)
    sliced = vector_metric("energy", estimate=estimate, slices=4, generator=generator)
    first, second = sliced(pair), sliced(pair)
    directions = random_directions(
        4, VECTORS.shape[-1], torch.Generator().manual_seed(0), dtype=VECTORS.dtype
    )
    expected = sliced_energy_between(pair, directions, unbiased=estimate != "batch")
    assert first == expected != second
    by_pairs = vector_metric("mmd", estimate=estimate, slices=4, generator=generator)
    assert by_pairs(pair) == mmd_squared(
        VECTORS[:3], VECTORS[3:], unbiased=estimate != "batch", vector=True
    )
    assert vector_metric("lp", estimate=estimate, slices=4, generator=generator) is None


def test_distances_of_tensors_are_tensors_by_name_in_the_order_asked_for() -> None:
    found = distances(torch.zeros(3, 2), torch.ones(4), ["mmd", "energy"])
    assert list(found) == ["mmd", "energy"]
    assert found["energy"].tolist() == [2.0, 2.0, 2.0]
    assert list(distances([0.0], [1.0])) == ["kolmogorov", "wasserstein", "energy"]
