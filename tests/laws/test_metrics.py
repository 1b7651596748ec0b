"""What holds of every metric in the table METRICS, whatever it computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import oracles
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import Case, Floats, cases, counts, eighths, in_torch, pair_of, proven
from torch import Tensor

from metrifair.errors import TooFewSamples
from metrifair.metrics import distance_covariance, distances, energy_dependence, energy_distance
from tests.seams.metrics import METRICS, Pair, merged, training_metric

Metric = Callable[..., Any]

PLUG_IN = {name: row.plug_in for name, row in METRICS.items()}
UNBIASED = {name: row.unbiased for name, row in METRICS.items() if row.unbiased}
TRAINED = {name: training_metric(name, estimate="batch") for name in METRICS}
ESTIMATES = {**PLUG_IN, **{f"unbiased {name}": metric for name, metric in UNBIASED.items()}}
EVERY = {
    **ESTIMATES,
    **{f"trained {name}": metric for name, metric in TRAINED.items() if METRICS[name].in_training},
}
SMOOTHED = [name for name, row in METRICS.items() if row.gradient == "smoothed"]
DIFFERENTIABLE = {name: metric for name, metric in ESTIMATES.items() if name not in SMOOTHED}


def each(metrics: dict[str, Metric]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "metric", [pytest.param(metric, id=name) for name, metric in metrics.items()]
    )


def each_name(names: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", names)


def value(
    metric: Metric, u: Floats, v: Floats, a: Floats | None = None, b: Floats | None = None
) -> float:
    return metric(pair_of(u, v, a, b)).item()


def ipm(name: str, u: Floats, v: Floats) -> float:
    """The integral probability metric itself: the root where the table holds the square."""
    found = value(PLUG_IN[name], u, v)
    return math.sqrt(max(found, 0.0)) if METRICS[name].squared else found


def near(expected: float) -> object:
    return pytest.approx(expected, rel=1e-10, abs=1e-12)


# --- distances
# --------------------------------------------------------------------------------------------------


@each(ESTIMATES)
@proven
@given(cases(least=2, weighted=True, scales=(1.0,)))
def test_swapping_the_samples_changes_nothing(metric: Metric, case: Case) -> None:
    swapped = Case(case.v, case.u, case.b, case.a)
    assert metric(swapped.pair).item() == near(metric(case.pair).item())


@each(PLUG_IN)
@proven
@given(eighths(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_samples_of_one_distribution_are_at_distance_zero(
    metric: Metric, u: Floats, times: int, random
) -> None:
    again = np.tile(u, times)
    random.shuffle(again)
    assert value(metric, u, again) == pytest.approx(0.0, abs=1e-14)


@each(PLUG_IN)
@pytest.mark.parametrize(
    ("u", "v"),
    [
        pytest.param([0.0], [1.0], id="points"),
        pytest.param([-1.0, 1.0], [-2.0, 2.0], id="of one mean"),
        pytest.param([-1.0, -1.0, 2.0], [1.0, 1.0, -2.0], id="of one mean and variance"),
        pytest.param([0.0, 1.0], [0.0, 1.0, 1.0], id="on the same points"),
    ],
)
def test_samples_of_different_distributions_are_apart(
    metric: Metric, u: list[float], v: list[float]
) -> None:
    assert value(metric, np.array(u), np.array(v)) > 0.01


@each_name(list(METRICS))
@proven
@given(eighths(), eighths(), eighths())
def test_a_detour_is_never_shorter(name: str, u: Floats, v: Floats, w: Floats) -> None:
    assert ipm(name, u, w) <= ipm(name, u, v) + ipm(name, v, w) + 1e-7


@each(ESTIMATES)
@proven
@given(cases(least=2, weighted=True, scales=(1.0,)), st.randoms(use_true_random=False))
def test_the_order_of_the_scores_does_not_matter(metric: Metric, case: Case, random) -> None:
    i, j = list(range(len(case.u))), list(range(len(case.v)))
    random.shuffle(i)
    random.shuffle(j)
    moved = Case(case.u[i], case.v[j], case.a[i], case.b[j])
    assert metric(moved.pair).item() == near(metric(case.pair).item())


@each(ESTIMATES)
@proven
@given(eighths(least=2), eighths(least=2), st.sampled_from([-1024, -3, 1, 2**20]))
def test_moving_both_samples_alike_changes_nothing(
    metric: Metric, u: Floats, v: Floats, shift: int
) -> None:
    assert value(metric, u + shift, v + shift) == near(value(metric, u, v))


@each(ESTIMATES)
@proven
@given(eighths(least=2), eighths(least=2))
def test_a_mirror_changes_nothing(metric: Metric, u: Floats, v: Floats) -> None:
    assert value(metric, -u, -v) == near(value(metric, u, v))


@pytest.mark.parametrize(
    ("metric", "degree"),
    [
        pytest.param(metric, row.degree, id=name)
        for name, metric in ESTIMATES.items()
        if not math.isnan((row := METRICS[name.removeprefix("unbiased ")]).degree)
    ],
)
@proven
@given(eighths(least=2), eighths(least=2), st.sampled_from([2.0**-400, 1 / 3, 8.0, 1e150]))
def test_the_distance_scales_with_its_degree(
    metric: Metric, degree: float, u: Floats, v: Floats, factor: float
) -> None:
    expected = factor**degree * value(metric, u, v)
    assert value(metric, factor * u, factor * v) == pytest.approx(
        expected, rel=1e-10, abs=1e-12 * factor**degree
    )


@each_name(list(METRICS))
@proven
@given(cases(weighted=True))
def test_the_distance_stays_within_its_bounds(name: str, case: Case) -> None:
    assert -1e-14 <= METRICS[name].plug_in(case.pair).item() <= METRICS[name].maximum * (1 + 1e-12)


@each_name([name for name, row in METRICS.items() if row.maximum < math.inf])
def test_the_upper_bound_is_reached_by_points_far_apart(name: str) -> None:
    assert value(PLUG_IN[name], np.zeros(2), np.full(3, 100.0)) == pytest.approx(
        METRICS[name].maximum, abs=1e-12
    )


@pytest.mark.parametrize("shift", [0.5, 1.0, 2.0])
@each(ESTIMATES)
def test_the_distance_of_a_shift_grows_with_the_shift(metric: Metric, shift: float) -> None:
    u = np.linspace(-2, 2, 9)  # steps of 1/2: the shifted samples have atoms in common
    assert value(metric, u, u + shift) < value(metric, u, u + 2 * shift)


# --- weights
# ----------------------------------------------------------------------------------------------------


def repeated(values: Floats, weights: Floats) -> Floats:
    return np.repeat(values, weights.astype(int))


@each({name: metric for name, metric in EVERY.items() if not name.startswith("unbiased")})
@proven
@given(cases(weighted=True, scales=(1.0,)))
def test_weights_are_repetition(metric: Metric, case: Case) -> None:
    plain = value(metric, repeated(case.u, case.a), repeated(case.v, case.b))
    assert metric(case.pair).item() == near(plain)


@each(UNBIASED)
def test_weights_are_not_repetition_for_unbiased_estimates(metric: Metric) -> None:
    u, v, a = np.array([0.0, 1.0]), np.array([1.0, 3.0]), np.array([2.0, 2.0])
    assert value(metric, u, v, a) == near(value(metric, u, v))
    assert abs(value(metric, u, v, a) - value(metric, repeated(u, a), v)) > 0.05


@each(ESTIMATES)
@proven
@given(cases(least=2, weighted=True, scales=(1.0,)), st.sampled_from([1e-100, 1 / 3, 1e100]))
def test_only_the_ratios_of_weights_matter(metric: Metric, case: Case, factor: float) -> None:
    scaled = Case(case.u, case.v, case.a * factor, case.b)
    assert metric(scaled.pair).item() == near(metric(case.pair).item())


@each(ESTIMATES)
@proven
@given(cases(least=2, weighted=True, scales=(1.0,)))
def test_scores_of_weight_zero_do_not_count(metric: Metric, case: Case) -> None:
    i, j = case.a > 0, case.b > 0
    assert metric(Case(case.u[i], case.v[j], case.a[i], case.b[j]).pair).item() == near(
        metric(case.pair).item()
    )


@each(ESTIMATES)
@proven
@given(eighths(least=2), eighths(least=2))
def test_equal_weights_are_no_weights(metric: Metric, u: Floats, v: Floats) -> None:
    plain = value(metric, u, v)
    assert value(metric, u, v, np.full(len(u), 0.7), np.full(len(v), 3.0)) == near(plain)
    assert value(metric, u, v, None, np.ones(len(v))) == near(plain)


# --- arrays and tensors
# -----------------------------------------------------------------------------------------


HOLDERS = [
    pytest.param(lambda values: values.tolist(), 1e-12, id="list"),
    pytest.param(lambda values: values.astype(np.float32), 1e-12, id="NumPy float32"),
    pytest.param(lambda values: values.astype(np.float64), 1e-12, id="NumPy float64"),
    pytest.param(
        lambda values: torch.tensor(values, dtype=torch.float32), 1e-5, id="torch float32"
    ),
    pytest.param(
        lambda values: torch.tensor(values, dtype=torch.float64), 1e-12, id="torch float64"
    ),
    pytest.param(array_api_strict.asarray, 1e-12, id="array API"),
]


@pytest.mark.parametrize(("hold", "rounding"), HOLDERS)
@proven
@given(eighths(least=4), eighths(least=4))
def test_what_holds_the_scores_does_not_matter(
    hold: Callable[[Floats], Any], rounding: float, left: Floats, right: Floats
) -> None:
    """Scores are eighths: exact in single precision."""
    case = Case(left, right, *(1.0 + np.arange(len(side)) % 3 for side in (left, right)))
    u, v, a, b = map(hold, case)
    ages = hold(np.arange(len(case.u)) % 3 / 2)
    measured = {
        **distances(u, v, list(METRICS), u_weights=a, v_weights=b),
        "unbiased energy": energy_distance(u, v, unbiased=True),
        "energy dependence": energy_dependence(u, ages, weights=a),
        "distance covariance": distance_covariance(u, ages, unbiased=True),
    }
    expected = {
        **{name: metric(in_torch(case.pair)).item() for name, metric in PLUG_IN.items()},
        "unbiased energy": oracles.quadratic(
            case.u, case.v, lambda far: -np.abs(far), unbiased=True
        ),
        "energy dependence": energy_dependence(
            torch.tensor(case.u), np.arange(len(case.u)) % 3, weights=case.a
        ).item(),
        "distance covariance": distance_covariance(
            torch.tensor(case.u), np.arange(len(case.u)) % 3 / 2, unbiased=True
        ),
    }
    assert {type(value) for value in measured.values()} == {
        Tensor if isinstance(u, Tensor) else float
    }
    for name, value in measured.items():
        assert float(value) == pytest.approx(float(expected[name]), rel=rounding, abs=rounding), (
            name
        )


@each(EVERY)
@proven
@given(cases(least=2, weighted=True, scales=(1.0,)))
def test_arrays_and_tensors_have_one_distance(metric: Metric, case: Case) -> None:
    here, there = metric(case.pair), metric(in_torch(case.pair))
    assert isinstance(here, np.ndarray | np.float64)
    assert here.item() == pytest.approx(there.item(), rel=1e-12, abs=1e-13)


@each(EVERY)
def test_arrays_and_tensors_of_many_models_have_one_distance(metric: Metric) -> None:
    z, weights = tied_draws(2, 3, 11), 1 + tied_draws(3, 11, seed=1).abs()
    for some in (None, weights[0], weights):
        there = metric(Pair(z, (6,), (5,), some))
        here = metric(Pair(z.numpy(), (6,), (5,), None if some is None else some.numpy()))
        np.testing.assert_allclose(here, there, rtol=1e-12, atol=1e-13)


@each(UNBIASED)
def test_arrays_and_tensors_of_drawn_strata_have_one_distance(metric: Metric) -> None:
    z, weights, drawn = (
        tied_draws(3, 11),
        1 + tied_draws(11, seed=1).abs(),
        torch.tensor([0.5, 0.2, 1.0, 0.7]),
    )
    there = metric(Pair(z, (3, 3), (3, 2), weights, drawn))
    np.testing.assert_allclose(
        metric(Pair(z.numpy(), (3, 3), (3, 2), weights.numpy(), drawn.numpy())),
        there,
        rtol=1e-12,
        atol=1e-13,
    )


# --- many models at once
# ----------------------------------------------------------------------------------------


def tied_draws(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(-6, 7, shape, generator=torch.Generator().manual_seed(seed)).double() / 4


def one_by_one(metric: Metric, lead: tuple[int, ...], *parts: Tensor | None) -> Tensor:
    """The metric of scores u, v with weights a, b, for each place of the leading axes alone."""
    found = torch.zeros(lead, dtype=torch.float64)
    for place in np.ndindex(*lead):
        found[place] = metric(
            pair_of(*(None if part is None else part.expand(*lead, -1)[place] for part in parts))
        )
    return found


LEADS = [
    pytest.param((3,), (3,), id="one axis"),
    pytest.param((2, 3), (2, 3), id="two axes"),
    pytest.param((2, 1), (1, 3), id="crossed"),
    pytest.param((2, 3), (), id="against one"),
    pytest.param((), (4,), id="one against"),
    pytest.param((2, 1), (3,), id="axes of unequal number"),
]


@pytest.mark.pairwise
@pytest.mark.parametrize(("left", "right"), LEADS)
@pytest.mark.parametrize("weighted", ["neither", "shared", "own"])
@each(EVERY)
def test_many_models_at_once_are_each_model_alone(
    metric: Metric, left: tuple[int, ...], right: tuple[int, ...], weighted: str
) -> None:
    lead = torch.broadcast_shapes(left, right)
    a, b = {
        "neither": (None, None),
        "shared": (torch.tensor([1.0, 2, 0, 1, 3]), None),
        "own": (1 + tied_draws(*left, 5, seed=2).abs(), 1 + tied_draws(*right, 4, seed=3).abs()),
    }[weighted]
    parts = tied_draws(*left, 5), tied_draws(*right, 4, seed=1), a, b
    found = metric(pair_of(*parts))
    assert found.shape == lead
    torch.testing.assert_close(
        found, one_by_one(metric, tuple(lead), *parts), rtol=1e-12, atol=1e-13
    )


@each(EVERY)
def test_one_sample_may_be_weighted_in_many_ways_at_once(metric: Metric) -> None:
    parts = tied_draws(5), tied_draws(4, seed=1), 1 + tied_draws(3, 5, seed=2).abs()
    torch.testing.assert_close(
        metric(pair_of(*parts)), one_by_one(metric, (3,), *parts), rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("weighted", ["neither", "shared", "own"])
@each(EVERY)
def test_the_gradients_of_many_models_are_those_of_each_alone(
    metric: Metric, weighted: str
) -> None:
    u, v = tied_draws(3, 5), tied_draws(3, 4, seed=1)
    own = 1 + tied_draws(3, 5, seed=2).abs()
    a = {"neither": None, "shared": own[0], "own": own}[weighted]
    each_a = {"neither": [None] * 3, "shared": [own[0]] * 3, "own": own}[weighted]
    together = gradient(lambda u, v: metric(pair_of(u, v, a)).sum(), u, v)
    alone = [
        gradient(lambda u, v, w=w: metric(pair_of(u, v, w)), *row)
        for *row, w in zip(u, v, each_a, strict=True)
    ]
    for side in (0, 1):
        torch.testing.assert_close(
            together[side], torch.stack([one[side] for one in alone]), rtol=1e-12, atol=1e-13
        )


# --- gradients
# --------------------------------------------------------------------------------------------------


def gradient(
    function: Callable[[Tensor, Tensor], Tensor], u: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradient by both samples; zero where there is none to follow."""
    u, v = u.detach().clone().requires_grad_(), v.detach().clone().requires_grad_()
    found = function(u, v)
    if not found.requires_grad:
        return torch.zeros_like(u), torch.zeros_like(v)
    return torch.autograd.grad(found, (u, v))


def slopes(metric: Metric, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return gradient(lambda u, v: metric(pair_of(u, v)), u, v)


def weighted_slopes(metric: Metric, case: Case) -> tuple[Tensor, Tensor]:
    u, v = torch.tensor(case.u), torch.tensor(case.v)
    return gradient(lambda u, v: metric(pair_of(u, v, case.a, case.b)), u, v)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@each(DIFFERENTIABLE)
def test_the_gradient_is_the_derivative(metric: Metric, weighted: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    z = (torch.randperm(22, generator=generator).double() / 5 + 0.01).reshape(2, 11)
    a = torch.tensor([1.0, 2, 0.5, 0, 1, 3]) if weighted else None
    u, v = z[:, :6].clone().requires_grad_(), z[:, 6:].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda u, v: metric(pair_of(u, v, a)), (u, v))


@each(DIFFERENTIABLE)
@proven
@given(eighths(least=2), eighths(least=2))
def test_the_gradient_sums_to_zero_as_shifts_change_nothing(
    metric: Metric, u: Floats, v: Floats
) -> None:
    left, right = slopes(metric, torch.tensor(u), torch.tensor(v))
    assert (left.sum() + right.sum()).item() == pytest.approx(0.0, abs=1e-12)


@each(EVERY)
@proven
@given(cases(least=2, scales=(1.0, 1e-150, 1e100)))
def test_the_gradient_is_finite_at_ties(metric: Metric, case: Case) -> None:
    for side in slopes(metric, torch.tensor(case.u), torch.tensor(case.v)):
        assert torch.isfinite(side).all()


@each(DIFFERENTIABLE)
def test_the_gradient_is_zero_where_all_scores_tie(metric: Metric) -> None:
    left, right = slopes(metric, torch.full((3,), 0.7), torch.full((4,), 0.7))
    assert not left.any()
    assert not right.any()


@each(EVERY)
@proven
@given(cases(least=2, weighted=True, scales=(1.0,)), st.randoms(use_true_random=False))
def test_the_gradient_goes_with_the_scores_whatever_their_order(
    metric: Metric, case: Case, random
) -> None:
    """Also at ties, where a sort may put equal scores in any order."""
    i, j = list(range(len(case.u))), list(range(len(case.v)))
    random.shuffle(i)
    random.shuffle(j)
    left, right = weighted_slopes(metric, case)
    moved = weighted_slopes(metric, Case(case.u[i], case.v[j], case.a[i], case.b[j]))
    torch.testing.assert_close(moved[0], left[i], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(moved[1], right[j], rtol=1e-9, atol=1e-9)


@each(EVERY)
@proven
@given(cases(least=3, weighted=True, scales=(1.0,)))
def test_scores_of_weight_zero_do_not_count_in_the_gradient(metric: Metric, case: Case) -> None:
    i, j = case.a > 0, case.b > 0
    if min(i.sum(), j.sum()) < 2:
        return
    alone = weighted_slopes(metric, Case(case.u[i], case.v[j], case.a[i], case.b[j]))
    for side, own, counted in zip(weighted_slopes(metric, case), alone, (i, j), strict=True):
        torch.testing.assert_close(side[counted], own, rtol=1e-9, atol=1e-9)
        assert side[~counted].abs().sum() < 1e-12


@each(EVERY)
def test_equal_weights_are_no_weights_in_the_gradient(metric: Metric) -> None:
    u, v = tied_draws(7).numpy(), 1 + 3 * tied_draws(5, seed=1).numpy()
    weighted = weighted_slopes(metric, Case(u, v, np.full(7, 0.7), np.full(5, 3.0)))
    for side, plain in zip(weighted, slopes(metric, torch.tensor(u), torch.tensor(v)), strict=True):
        torch.testing.assert_close(side, plain, rtol=1e-12, atol=1e-13)


# without bins it has no gradient
@each({name: metric for name, metric in EVERY.items() if name != "total_variation"})
@pytest.mark.parametrize("shift", [-1.5, 0.75])
def test_a_gradient_step_brings_shifted_samples_nearer(metric: Metric, shift: float) -> None:
    u = torch.linspace(-2, 2, 81, dtype=torch.float64)
    v = torch.linspace(-2, 2, 61, dtype=torch.float64) + shift
    left, right = slopes(metric, u, v)
    assert left.sum() * shift < 0 < right.sum() * shift
    step = 0.1 / max(left.abs().max(), right.abs().max())
    before, after = metric(pair_of(u, v)), metric(pair_of(u - step * left, v - step * right))
    assert after < before


@each_name(list(SMOOTHED))
def test_the_smoothed_gradient_leaves_the_value_as_it_is(name: str) -> None:
    u, v = tied_draws(7), tied_draws(5, seed=1)
    metric = TRAINED[name]
    moving = metric(pair_of(u.clone().requires_grad_(), v))
    assert moving.requires_grad
    assert moving.item() == pytest.approx(metric(pair_of(u, v)).item(), abs=1e-15)


# --- numbers and machines
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@each(EVERY)
def test_the_dtype_is_kept(metric: Metric, dtype: torch.dtype) -> None:
    u, v = tied_draws(5).to(dtype).requires_grad_(), tied_draws(4, seed=1).to(dtype)
    weighted = metric(pair_of(u, v, torch.rand(5, dtype=torch.float64)))
    assert metric(pair_of(u, v)).dtype == weighted.dtype == dtype
    assert slopes(metric, u, v)[0].dtype == dtype


@each(EVERY)
def test_single_precision_agrees_with_double_far_from_zero(metric: Metric) -> None:
    u, v = 1000 + tied_draws(50), 1001 + tied_draws(40, seed=1)  # eighths: exact in both
    single, double = metric(pair_of(u.float(), v.float())), metric(pair_of(u, v))
    assert single.item() == pytest.approx(double.item(), abs=1e-5)


# --- the other columns of the table
# -----------------------------------------------------------------------------


@each_name([name for name, row in METRICS.items() if row.of_merged])
@proven
@given(cases(weighted=True))
def test_a_shared_sort_gives_the_plug_in(name: str, case: Case) -> None:
    row = METRICS[name]
    shared, own = row.of_merged(merged(case.pair)).item(), row.plug_in(case.pair).item()
    assert shared == pytest.approx(own, rel=1e-10, abs=1e-12 * case.extent**row.degree)


@proven
@given(cases(weighted=True, scales=(1.0,)))
def test_all_distances_at_once_are_each_alone(case: Case) -> None:
    found = distances(case.u, case.v, list(METRICS), u_weights=case.a, v_weights=case.b)
    assert found == {name: near(metric(case.pair).item()) for name, metric in PLUG_IN.items()}


@each_name([name for name, row in METRICS.items() if row.of_vectors])
@proven
@given(cases(weighted=True, scales=(1.0,)))
def test_vectors_of_one_number_are_numbers(name: str, case: Case) -> None:
    row, pair = METRICS[name], case.pair
    wide = Pair(pair.values[..., None], pair.left, pair.right, pair.weights)
    assert row.of_vectors(wide).item() == near(row.plug_in(pair).item())


@each(UNBIASED)
@pytest.mark.parametrize(("n", "m"), [(1, 2), (2, 1), (1, 1)])
def test_one_score_is_too_few_for_an_unbiased_estimate(metric: Metric, n: int, m: int) -> None:
    with pytest.raises(TooFewSamples) as caught:
        value(metric, np.zeros(n), np.ones(m))
    assert str(caught.value) == (
        f"an unbiased distance needs 2 scores of each kind on each side, got {n} and {m}; "
        "use a larger batch size, or the biased distance (estimate='batch' of a penalty, "
        "unbiased=False of a function)"
    )


@each(UNBIASED)
@proven
@given(counts(3))
def test_weights_that_leave_one_score_are_too_few_for_an_unbiased_estimate(
    metric: Metric, a: Floats
) -> None:
    if np.count_nonzero(a) > 1:
        assert math.isfinite(value(metric, np.arange(3.0), np.arange(2.0), a))
    else:
        with pytest.raises(TooFewSamples):
            value(metric, np.arange(3.0), np.arange(2.0), a)
