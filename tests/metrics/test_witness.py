"""The witness lies in the metric's family of utilities, attains the metric, and nothing in the
family does better.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from oracles import KERNELS, Case, Floats, cases, proven

from metrifair.errors import DataError
from metrifair.metrics import lp_distance, median_distance, mmd_squared, witness
from tests.seams.metrics import METRICS

Norm = Callable[[Floats, Floats], float]  # of a utility, from its values at the ascending points


def slope_norm(q: float, scale: float = 1.0) -> Norm:
    """L^q norm of the slope between the points."""

    def norm(heights: Floats, points: Floats) -> float:
        gaps = np.diff(points)
        slopes = np.abs(np.diff(heights) / gaps)
        if q == np.inf:
            return float(slopes.max(initial=0.0)) / scale
        return float((slopes**q * gaps).sum() ** (1 / q)) / scale

    return norm


def kernel_norm(kernel: str, length: float) -> Norm:
    """Norm of the smallest function of the kernel's space with these values."""

    def norm(heights: Floats, points: Floats) -> float:
        matrix = KERNELS[kernel](points[:, None] - points, length)
        return float(np.sqrt(heights @ np.linalg.solve(matrix, heights)))

    return norm


# Metric and options, and the norm whose unit ball is the family.
FAMILIES: list[tuple[str, dict[str, Any], Norm]] = [
    ("kolmogorov", {}, lambda heights, points: float(np.abs(np.diff(heights)).sum())),
    ("total_variation", {}, lambda heights, points: float(2 * np.abs(heights).max())),
    ("wasserstein", {}, slope_norm(np.inf)),
    ("energy", {}, slope_norm(2, np.sqrt(2))),
    ("cramer", {}, slope_norm(2)),
    ("lp", {}, slope_norm(2)),
    ("lp", {"p": 1}, slope_norm(np.inf)),
    ("lp", {"p": 1.5}, slope_norm(3)),
    ("lp", {"p": 4.0}, slope_norm(4 / 3)),
    ("mmd", {}, kernel_norm("gaussian", 1.0)),
    ("mmd", {"kernel": "laplace", "bandwidth": 0.5}, kernel_norm("laplace", 0.5)),
    (
        "mmd",
        {"kernel": "inverse_multiquadric", "bandwidth": 2.0},
        kernel_norm("inverse_multiquadric", 2.0),
    ),
]
each_family = pytest.mark.parametrize(
    ("metric", "options", "norm"),
    FAMILIES,
    ids=[" ".join(map(str, [name, *of.values()])) for name, of, _ in FAMILIES],
)
on_the_line = cases(scales=(1.0,)) | cases(weighted=True, scales=(1.0,))


def distance(metric: str, options: dict[str, Any], case: Case) -> float:
    """The integral probability metric: the root of those that are squares."""
    if metric == "lp":
        return lp_distance(case.u, case.v, **options, **case.weights)
    if metric == "mmd":
        return max(mmd_squared(case.u, case.v, **options, **case.weights), 0.0) ** 0.5
    value = METRICS[metric].plug_in(case.pair).item()
    return value**0.5 if METRICS[metric].squared else value


def gap(utility: Callable[[Floats], Floats], case: Case) -> float:
    left, right = (
        np.average(utility(z), weights=w) for z, w in ((case.u, case.a), (case.v, case.b))
    )
    return float(abs(left - right))


def test_every_metric_has_a_family_here() -> None:
    assert {name for name, _, _ in FAMILIES} == set(METRICS)


@pytest.mark.oracle("WitnessCurve.utility")
@each_family
@settings(proven, max_examples=20)
@given(case=on_the_line)
def test_the_witness_attains_the_metric(
    metric: str, options: dict[str, Any], norm: Norm, case: Case
) -> None:
    shown = witness(case.u, case.v, metric=metric, **options, **case.weights)
    extent = max(case.extent, 1.0)
    assert shown.gap == pytest.approx(distance(metric, options, case), abs=1e-7 * extent)
    assert gap(shown, case) == pytest.approx(shown.gap, abs=1e-12 * extent)
    assert shown.metric == metric


SPREAD = [
    Case(np.array([0.0, 1.0, 1.0, 2.5, 4.0]), np.array([0.5, 1.0, 3.0, 3.0])),
    Case(
        np.array([-3.0, 3.0]),
        np.array([-1.0, 0.0, 1.0]),
        np.array([1.0, 2.0]),
        np.array([3.0, 0.0, 1.0]),
    ),
    Case(np.array([0.0]), np.array([2.0])),
]
each_spread = pytest.mark.parametrize("case", SPREAD, ids=["tied", "weighted", "points"])


@each_family
@each_spread
def test_the_witness_lies_on_the_edge_of_its_family(
    metric: str, options: dict[str, Any], norm: Norm, case: Case
) -> None:
    shown = witness(case.u, case.v, metric=metric, **options, **case.weights)
    points = oracles.steps(case.u, case.v).points
    assert norm(shown(points), points) == pytest.approx(1.0, abs=1e-9)


@each_family
@each_spread
def test_no_other_utility_of_the_family_shows_more(
    metric: str, options: dict[str, Any], norm: Norm, case: Case
) -> None:
    shown = witness(case.u, case.v, metric=metric, **options, **case.weights)
    points = oracles.steps(case.u, case.v).points
    best, draws = shown(points), np.random.default_rng(0)
    rivals = [
        *draws.normal(size=(100, len(points))),
        *draws.normal(size=(100, len(points))).cumsum(-1),
        *(points[None] <= points[:, None]).astype(float),
        *(
            best + draws.normal(scale=s, size=len(points))
            for s in np.repeat([0.3, 0.03, 0.003], 50)
        ),
    ]
    for heights in rivals:
        if (size := norm(heights, points)) > 1e-9:
            rival = gap(lambda z, heights=heights: heights[np.searchsorted(points, z)], case)
            assert rival / size <= shown.gap + 1e-9


@each_family
@pytest.mark.parametrize(
    "u", [[0.3], [0.0, 1.0, 1.0, 5.0], [0.1, 0.2, 0.7]], ids=["one", "tied", "distinct"]
)
def test_identical_samples_have_a_witness_without_a_gap(
    metric: str, options: dict[str, Any], norm: Norm, u: list[float]
) -> None:
    shown = witness(u, u * 3, metric=metric, **options)
    assert shown.gap == pytest.approx(0.0, abs=1e-7)
    assert np.isfinite(shown(np.linspace(-1, 6, 50))).all()


@pytest.mark.parametrize("metric", ["wasserstein", "energy", "cramer", "lp", "mmd", "kolmogorov"])
def test_the_sample_that_lies_lower_expects_more_of_the_witness(metric: str) -> None:
    shown = witness([0.0, 1.0], [2.0, 3.0], metric=metric)
    assert shown.expected[0] - shown.expected[1] == pytest.approx(shown.gap)


def test_a_witness_takes_a_score_or_an_array_of_any_shape() -> None:
    shown = witness([0.0], [2.0], metric="wasserstein")
    assert isinstance(shown(1.0), float)
    # flat beyond the scores
    assert shown([[0.0, 1.0], [2.0, 3.0]]).tolist() == [[0.0, -1.0], [-2.0, -2.0]]
    assert shown(-7) == 0.0


def test_utilities_of_the_kernel_of_distances_are_zero_at_zero() -> None:
    """All functions of its space are: the kernel itself is 0 there."""
    assert witness([1.0, 2.0, 4.0], [-2.0, 3.0], metric="mmd", kernel="distance")(
        0.0
    ) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("vector", [False, True], ids=["numbers", "vectors"])
def test_the_median_is_a_bandwidth_of_a_witness(vector: bool) -> None:
    u, v = np.array([[0.0, 1.0], [2.0, 5.0], [4.0, 0.0]]), np.array([[1.0, 1.0], [3.0, 7.0]])
    if not vector:
        u, v = u[:, 0], v[:, 0]
    length = median_distance(np.concatenate([u, v]), vector=vector)
    by_name, by_length = (
        witness(u, v, metric="mmd", bandwidth=bandwidth, vector=vector)
        for bandwidth in ("median", length)
    )
    assert by_name(u).tolist() == by_length(u).tolist()
    assert len(by_name(u)) == 3


def test_of_equal_gaps_the_witness_shows_the_lowest_whatever_rounding_adds() -> None:
    assert 1 - 1 / 3 > 2 / 3  # as floats
    assert witness([0, 1, 3], [2, 4, 5], metric="kolmogorov")([1, 2, 3]).tolist() == [1.0, 0.0, 0.0]


def test_the_witness_of_total_variation_says_nothing_off_the_atoms() -> None:
    shown = witness([0, 0, 1], [1, 2], metric="total_variation")
    assert shown([0, 0.5, 1, 2, 9]).tolist() == [0.5, 0.0, -0.5, -0.5, 0.0]


def test_the_witness_of_tensors_is_that_of_their_numbers() -> None:
    u, v = torch.tensor([0.0, 1.0], requires_grad=True), torch.tensor([0.5, 3.0])
    for metric in METRICS:
        assert (
            witness(u, v, metric=metric).gap == witness([0.0, 1.0], [0.5, 3.0], metric=metric).gap
        )


REFUSED = [
    pytest.param(
        {"u": torch.zeros(2, 2), "v": [1.0]},
        "a witness belongs to two samples: one-dimensional u and v, or rows of vectors with "
        "vector=True",
        id="many models",
    ),
    *(
        pytest.param(
            {"u": [0.0, 1.0], "v": [2.0, 0.5], "metric": "lp", "p": p},
            f"p must be a number from 1 upwards, got {p!r}; for p = infinity use "
            "kolmogorov_distance",
            id=f"p = {p}",
        )
        for p in (0.5, float("inf"), float("nan"))
    ),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_a_witness_that_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as caught:
        witness(arguments.pop("u"), arguments.pop("v"), **arguments)
    assert str(caught.value) == message
