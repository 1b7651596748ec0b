"""Distance covariance, correlation and energy dependence: known answers, brute force, dcor,
unbiasedness, gradients.
"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations, permutations, product
from math import asin, pi, sqrt

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from torch import Tensor

from metrifair import DataError
from metrifair.errors import TooFewSamples
from metrifair.metrics import (
    distance_correlation,
    distance_covariance,
    energy_dependence,
    energy_distance,
)
from tests.expected_errors import Refusals
from tests.seams.metrics import (
    AttributeValues,
    covariance_form,
    covariance_value,
    dependence_and_correlation,
    distance_sums,
    dominance,
    drawn_form,
    namespace_for,
    plug_in_form,
    signed_sums,
    weighted_form,
    with_scale,
)
from tests.seams.problem import Dependence, Sides

TORCH = namespace_for(torch.zeros(1))


def brute(s, a, weights=None, *, names: bool = False) -> float:
    """The definition, by pairs."""
    s, a = np.asarray(s, dtype=np.float64), np.asarray(a)
    w = np.full(len(s), 1 / len(s)) if weights is None else np.asarray(weights) / np.sum(weights)
    far = np.abs(s[:, None] - s)
    apart = (a[:, None] != a).astype(float) if names else np.abs(a[:, None] - a)
    return float(
        w @ (far * apart) @ w - 2 * (w * (far @ w)) @ (apart @ w) + (w @ far @ w) * (w @ apart @ w)
    )


def omega(s, a) -> float:
    """The unbiased estimate, by U-centered matrices."""
    n = len(s)
    centered = []
    for values in (np.asarray(s, float), np.asarray(a, float)):
        far = np.abs(values[:, None] - values)
        rows = far.sum(1)
        inner = far - rows[:, None] / (n - 2) - rows / (n - 2) + rows.sum() / ((n - 1) * (n - 2))
        np.fill_diagonal(inner, 0)
        centered.append(inner)
    return float((centered[0] * centered[1]).sum() / (n * (n - 3)))


@pytest.fixture(params=["by pairs", "by ranks"])
def way(request, monkeypatch):
    """Small samples both ways."""
    monkeypatch.setattr(dominance, "PAIRED", 10**9 if request.param == "by pairs" else 1)


# ------------------------------------------------------------------ known answers


def test_scores_that_are_the_attribute_have_twice_its_mean_ratio() -> None:
    a = np.array([1.0, 2.0, 4.0, 8.0, 8.0])
    far = np.abs(a[:, None] - a)
    assert energy_dependence(a, a) == pytest.approx(2 * (far**2).mean() / far.mean(), rel=1e-12)
    assert distance_correlation(a, 3 - 2 * a) == pytest.approx(1.0, abs=1e-12)


def test_both_figures_of_one_covariance_are_those_of_their_functions() -> None:
    generator = np.random.default_rng(4)
    s, a, weights = (
        generator.normal(size=50),
        generator.integers(20, 60, 50).astype(float),
        generator.uniform(size=50),
    )
    both = dependence_and_correlation(s, a, None)
    assert both == (energy_dependence(s, a), distance_correlation(s, a))
    assert dependence_and_correlation(s, a, weights) == (
        energy_dependence(s, a, weights=weights),
        None,
    )


def test_every_score_at_every_age_is_no_dependence() -> None:
    s, a = zip(*product([0.1, 0.4, 0.7], [20, 30, 70, 71]), strict=True)
    for function in (distance_covariance, distance_correlation, energy_dependence):
        assert function(s, a) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("r", [0.3, -0.8])
def test_normal_scores_and_ages_have_the_closed_form(r: float) -> None:
    # A grid of quantiles in both of two independent normals: no chance, and an error that shrinks
    # with the grid.
    q = ndtri((np.arange(80) + 0.5) / 80)
    first, second = (part.ravel() for part in np.meshgrid(q, q))
    found = distance_covariance(r * first + sqrt(1 - r * r) * second, first)
    expected = 4 / pi * (r * asin(r) + sqrt(1 - r * r) - r * asin(r / 2) - sqrt(4 - r * r) + 1)
    assert found == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("coding", [(0, 1), (3, 13), (1e6, -1e6), ("m", "f"), (True, False)])
def test_two_values_give_the_energy_distance_in_any_coding(coding, way) -> None:
    generator = np.random.default_rng(0)
    s, second = generator.normal(size=41).round(1), generator.random(41) < 0.3
    weights = generator.random(41)
    a = [coding[int(one)] for one in second]
    assert energy_dependence(s, a) == pytest.approx(
        energy_distance(s[second], s[~second]), rel=1e-12
    )
    weighted = energy_distance(
        s[second], s[~second], u_weights=weights[second], v_weights=weights[~second]
    )
    assert energy_dependence(s, a, weights=weights) == pytest.approx(weighted, rel=1e-12)


def test_neither_units_nor_origin_of_the_attribute_matter_and_those_of_the_score_do() -> None:
    generator = np.random.default_rng(1)
    s, a = generator.normal(size=(2, 50))
    plain = energy_dependence(s, a)
    assert energy_dependence(s, -7 * a + 1e5) == pytest.approx(plain, rel=1e-9)
    assert energy_dependence(-3 * s + 2, a) == pytest.approx(3 * plain, rel=1e-12)
    assert distance_covariance(s, -7 * a) == pytest.approx(7 * distance_covariance(s, a), rel=1e-12)
    for unit in (2.0**1000, 2.0**-1000):
        assert energy_dependence(s, unit * a) == pytest.approx(plain, rel=1e-12)


def test_an_origin_far_away_costs_no_digit(way) -> None:
    s, ages = (
        np.array([0.3, -1.0, 0.3, 2.0, 0.9, -0.4]),
        np.array([20.0, 31.0, 31.0, 47.0, 20.0, 66.0]),
    )
    assert energy_dependence(s, 2.0**45 + ages) == pytest.approx(
        energy_dependence(s, ages), rel=1e-12
    )


def test_several_names_are_the_weighted_distances_from_everyone() -> None:
    generator = np.random.default_rng(2)
    s, a = generator.normal(size=60), generator.integers(4, size=60)
    p = np.bincount(a) / 60
    from_all = sum(p[k] ** 2 * energy_distance(s[a == k], s) for k in range(4))
    names = a.astype(str)
    assert distance_covariance(s, names) == pytest.approx(from_all, rel=1e-11)
    variance = (p**2).sum() - 2 * (p**3).sum() + (p**2).sum() ** 2
    assert energy_dependence(s, names) == pytest.approx(2 * from_all / variance, rel=1e-11)


# ------------------------------------------------------------------ brute force and dcor

few = st.integers(-3, 3).map(float)
number = st.floats(-1e3, 1e3, allow_subnormal=False)
rows = st.lists(
    st.tuples(st.one_of(few, number), st.one_of(few, number), st.floats(0.01, 9)),
    min_size=4,
    max_size=40,
)


@settings(max_examples=30, deadline=None)
@given(rows, st.sampled_from([1, 10**9]), st.sampled_from([1.0, 1e-150, 1e150]))
def test_the_definition_by_pairs(table, paired, huge) -> None:
    s, a, w = (np.array(column) for column in zip(*table, strict=True))
    size = max(1e-3, np.abs(s).max() * np.abs(a).max())
    before = dominance.PAIRED
    dominance.PAIRED = paired
    try:
        assert distance_covariance(huge * s, a / huge) == pytest.approx(
            brute(s, a), abs=1e-10 * size
        )
        assert distance_covariance(s, a, weights=w) == pytest.approx(
            brute(s, a, w), abs=1e-10 * size
        )
        assert distance_covariance(s, a, unbiased=True) == pytest.approx(
            omega(s, a), abs=1e-10 * size
        )
        names = np.array([f"{value}" for value in a])
        named = brute(s, names, w, names=True)
        assert distance_covariance(s, names, weights=w) == pytest.approx(
            named, abs=1e-10 * max(1, np.abs(s).max())
        )
    finally:
        dominance.PAIRED = before


@pytest.mark.parametrize("n", [600, 1025])
def test_long_samples_with_ties_by_ranks_and_many_models_at_once(n: int, monkeypatch) -> None:
    generator = torch.Generator().manual_seed(n)
    z = torch.randn(2, 3, n, generator=generator, dtype=torch.float64)
    z[:, 1] = (2 * z[:, 1]).round()
    a = (5 * torch.randn(2, 1, n, generator=generator, dtype=torch.float64)).round()
    columns, others = (
        torch.rand(2, 1, 2, n, generator=generator).double(),
        torch.rand(n, generator=generator).double(),
    )
    for attribute in (AttributeValues(a), AttributeValues(a - a.min(), "names")):
        found = []
        for paired in (1, 10**9):
            monkeypatch.setattr(dominance, "PAIRED", paired)
            sums = distance_sums(attribute, columns)
            found.append([sums, *signed_sums(z, attribute, columns, others.unsqueeze(0), sums)])
        for by_ranks, by_pairs in zip(*found, strict=True):
            torch.testing.assert_close(by_ranks, by_pairs.expand_as(by_ranks), rtol=0, atol=1e-8)


def test_the_passes_of_a_device_are_those_of_the_processor() -> None:
    rank = torch.cat([torch.randperm(64), torch.randperm(64)])
    a, weights = torch.randn(128).double(), torch.rand(128).double()
    there = dominance._passes_on_device(rank, a, weights, 32)
    here = dominance._passes(rank.numpy(), a.numpy(), weights.numpy(), half=32)
    torch.testing.assert_close(there, torch.from_numpy(here), rtol=0, atol=1e-12)


THEIRS = """
import json, sys
import dcor, numpy as np
s, a, both = (np.array(values) for values in json.load(sys.stdin))
print(json.dumps([dcor.distance_covariance_sqr(s, a), dcor.u_distance_covariance_sqr(s, a),
                  dcor.distance_correlation(s, a), dcor.distance_covariance_sqr(s[:, None], both)]))
"""


@pytest.mark.slow
def test_dcor_agrees() -> None:
    """In a process of its own: it compiles for half a minute when imported, which on ARM may
    fail beside torch.
    """
    generator = np.random.default_rng(3)
    s, a = generator.normal(size=700), generator.integers(20, 90, size=700).astype(float)
    s = s + a / 50
    both = np.stack([a, generator.normal(size=700)], 1)
    values = json.dumps([s.tolist(), a.tolist(), ((both - both.mean(0)) / both.std(0)).tolist()])
    done = subprocess.run(
        [sys.executable, "-c", THEIRS], input=values, capture_output=True, text=True, check=True
    )
    ours = [
        distance_covariance(s, a),
        distance_covariance(s, a, unbiased=True),
        distance_correlation(s, a),
        distance_covariance(s, both),
    ]
    assert ours == pytest.approx(json.loads(done.stdout), rel=1e-10)


def test_several_numbers_are_one_standardized_vector() -> None:
    generator = np.random.default_rng(4)
    s, a = generator.normal(size=30), generator.normal(size=(30, 2)) * [1, 100]
    standard = (a - a.mean(0)) / a.std(0)
    far, apart = np.abs(s[:, None] - s), np.linalg.norm(standard[:, None] - standard, axis=2)
    centered = [d - d.mean(0) - d.mean(1)[:, None] + d.mean() for d in (far, apart)]
    expected = float((centered[0] * centered[1]).mean())
    assert distance_covariance(s, {"height": a[:, 0], "income": a[:, 1]}) == pytest.approx(
        expected, rel=1e-10
    )
    assert distance_covariance(s, torch.tensor(a)) == pytest.approx(expected, rel=1e-10)


# ------------------------------------------------------------------ unbiased, by exhaustion

S7 = torch.tensor([0.3, -1.0, 0.3, 2.0, 0.9, -0.4, 1.1], dtype=torch.float64)
A7 = torch.tensor([20.0, 31.0, 31.0, 47.0, 20.0, 66.0, 52.0], dtype=torch.float64)


def mean_over(batches: list, form, s: Tensor = S7, a: Tensor = A7) -> float:
    chosen = torch.tensor(batches)
    return float(covariance_value(s[chosen], AttributeValues(a[chosen]), form).mean())


@pytest.mark.parametrize("n", [4, 5])
def test_the_mean_over_all_batches_is_the_value_of_the_rows_or_of_the_population(
    n: int, way
) -> None:
    without = list(combinations(range(7), n))
    of_rows = drawn_form((n,), torch.tensor([7.0]), None, TORCH)
    assert mean_over(without, of_rows) == pytest.approx(brute(S7, A7), rel=1e-11)
    fresh = drawn_form((n,), None, None, TORCH)
    assert mean_over(without, fresh) == pytest.approx(omega(S7, A7), rel=1e-11)
    assert mean_over(without, plug_in_form(n, None, TORCH)) > 1.2 * brute(S7, A7)
    independent = list(product(range(5), repeat=n))  # of a population of five
    assert mean_over(independent, fresh) == pytest.approx(brute(S7[:5], A7[:5]), rel=1e-11)


@pytest.mark.parametrize("shares", [(6.0, 5.0, 3.0), (0.5, 0.2, 0.3)])
def test_stratified_batches_estimate_all_rows_without_bias(shares, way) -> None:
    """Blocks of 6, 5 and 3 rows, of which 4, 4 and all are drawn."""
    generator = torch.Generator().manual_seed(0)
    s, a = torch.randn(2, 14, generator=generator, dtype=torch.float64)
    batches = [
        [*first, *(6 + row for row in second), 11, 12, 13]
        for first, second in product(combinations(range(6), 4), combinations(range(5), 4))
    ]
    totals, share = torch.tensor([6.0, 5.0, 3.0]), torch.tensor(shares)
    weights = torch.repeat_interleave(share / totals, totals.long())
    counts = torch.tensor([4, 4, 3])
    side = Sides(
        slice(0, 11),
        (4, 4, 3),
        (),
        torch.repeat_interleave(share / counts, counts),
        counts / totals,
    )
    for form in (drawn_form((4, 4, 3), totals, share, TORCH), covariance_form(side, "rows", TORCH)):
        assert mean_over(batches, form, s, a) == pytest.approx(
            brute(s, a, weights.double().numpy()), rel=1e-6
        )


def test_stratified_fresh_rows_estimate_the_mixture() -> None:
    batches = [
        [*x, *(3 + k for k in y)]
        for x in product(range(3), repeat=4)
        for y in product(range(2), repeat=4)
    ]
    shares = torch.tensor([0.7, 0.3], dtype=torch.float64)
    side = Sides(
        slice(0, 8), (4, 4), (), torch.repeat_interleave(shares / 4, 4), torch.tensor([0.5, 0.5])
    )
    expected = brute(S7[:5], A7[:5], [0.7 / 3] * 3 + [0.15] * 2)
    for form in (
        drawn_form((4, 4), None, shares, TORCH),
        covariance_form(side, "population", TORCH),
    ):
        assert mean_over(batches, form) == pytest.approx(expected, rel=1e-11)


def test_even_weights_are_no_weights() -> None:
    even = covariance_value(S7, AttributeValues(A7), weighted_form(torch.full((7,), 3.0)))
    assert float(even) == pytest.approx(omega(S7, A7), rel=1e-11)


def test_unbiased_weights_are_means_over_distinct_rows(way) -> None:
    weights = [1.0, 2.0, 0.5, 0.0, 3.0, 1.0, 1.5]
    far, apart = (np.abs(np.subtract.outer(part, part)) for part in (S7.numpy(), A7.numpy()))
    products = {
        2: lambda i, j: apart[i, j],
        3: lambda i, j, k: apart[i, k],
        4: lambda i, j, k, m: apart[k, m],
    }
    means = [
        np.average(
            [far[rows[:2]] * product_of(*rows) for rows in permutations(range(7), order)],
            weights=[
                np.prod([weights[row] for row in rows]) for rows in permutations(range(7), order)
            ],
        )
        for order, product_of in products.items()
    ]
    one_block = Sides(slice(0, 7), (7,), (), torch.tensor(weights))
    found = covariance_value(
        S7, AttributeValues(A7), covariance_form(one_block, "population", TORCH)
    )
    assert float(found) == pytest.approx(means[0] - 2 * means[1] + means[2], rel=1e-11)


# ------------------------------------------------------------------ gradients, devices, input


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize(
    "a", [A7.tolist(), ["a", "b", "b", "c", "a", "c", "a"], torch.stack([A7, A7**2], 1)]
)
def test_gradients(a, unbiased: bool, way) -> None:
    z = torch.tensor(
        [[0.3, -1.0, 0.4, 2.0, 0.9, -0.4, 1.1], [1.0, 2, 3, 4, 5, 7, 6]], dtype=torch.float64
    )
    z.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: energy_dependence(z, a, unbiased=unbiased), z)
    assert torch.autograd.gradcheck(lambda z: distance_correlation(z, a), z)


def test_equal_scores_pull_nowhere(way) -> None:
    z = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    value = energy_dependence(z, [20, 30, 40, 50, 60, 70])
    value.backward()
    assert value.item() == 0
    assert z.grad.tolist() == [0.0] * 6


def test_the_scale_of_a_dependence_is_that_of_the_rows_whatever_their_weights_sum_to() -> None:
    one, weights = Dependence((0,)), np.arange(1.0, 8.0)
    unit = with_scale(one, A7.numpy(), weights).scale
    assert unit == with_scale(one, A7.numpy(), weights / weights.sum()).scale
    covariance = distance_covariance(S7.numpy(), A7.numpy(), weights=weights)
    assert unit * covariance == pytest.approx(
        energy_dependence(S7.numpy(), A7.numpy(), weights=weights)
    )
    for values in ([], [40.0, 40.0, 40.0]):
        assert with_scale(one, torch.tensor(values)).scale is None


def test_constants_are_independent_of_everything() -> None:
    for function in (distance_covariance, distance_correlation, energy_dependence):
        assert function([1.0, 2.0, 3.0, 4.0], [5, 5, 5, 5]) == 0.0
        assert function([1.0, 1.0, 1.0, 1.0], [5, 6, 7, 8]) == 0.0
    assert distance_covariance([1.0, 1.0, 1.0, 1.0], [5, 6, 7, 8], unbiased=True) == 0.0


def test_single_precision_and_frames() -> None:
    pandas = pytest.importorskip("pandas")
    z = torch.randn(50)
    found = energy_dependence(z, pandas.Series(range(50), name="age"))
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(energy_dependence(z.tolist(), list(range(50))), rel=1e-5)


@pytest.mark.parametrize(
    ("x", "a", "message"),
    [
        ([1.0, 2.0], [1], "x contains 2 scores and a 1 values; pass one per score"),
        ([], [], "x contains no scores; pass at least one"),
        ([1.0, 2.0], [1, None], "a misses values; leave those rows out"),
        ([1.0, 2.0], [1, float("inf")], "a contains infinite values; leave those rows out"),
        (
            [1.0, 2.0],
            {"age": [1, 2], "sex": ["f", "m"]},
            "a contains several columns, and 'sex' is not one of numbers; pass one column of names",
        ),
    ],
)
def test_what_cannot_be_used_is_said(x, a, message: str) -> None:
    with pytest.raises(DataError) as error:
        energy_dependence(x, a)
    assert str(error.value) == message


def test_four_rows_are_needed(refused: Refusals) -> None:
    with refused(TooFewSamples):
        distance_covariance([1, 2, 3], [1, 2, 3], unbiased=True)


def test_categories_are_names_and_dates_are_refused(refused: Refusals) -> None:
    numbers = np.random.default_rng(0).integers(0, 30, 400)
    s = np.random.default_rng(1).normal(size=400)
    named = energy_dependence(s, [f"region {code}" for code in numbers])
    assert energy_dependence(s, pd.Series(numbers).astype("category")) == pytest.approx(
        named, abs=1e-12
    )
    assert energy_dependence(s, numbers) != pytest.approx(named, abs=1e-3)
    days = np.datetime64("1960-01-01") + numbers
    for dates in (days, pd.Series(days), days.astype(object)):
        with refused(DataError):
            energy_dependence(s, dates)
