"""Distances from counts in bins: true values lie in their brackets, whatever the scores, however few the bins."""

from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair import AuditOptions, AuditState, distances
from metrifair.auditing import bins
from metrifair.auditing.bins import BinnedScores, Scale, bins_for
from metrifair.auditing.brackets import CellSides, bracket_distances
from metrifair.auditing.counting import Block, FilePasses, Survey, fit_grid, keys_to_scores, ordered_keys
from metrifair.metrics.registry import METRICS as ALL

LARGEST = 4e307  # the energy distance, up to twice the span of the scores, is still a float
METRICS = [name for name, row in ALL.items() if row.bracket is not None]


def surveyed(scores, chunk=1000):
    survey = Survey()
    for start in range(0, len(scores), chunk):
        survey.add(scores[start : start + chunk])
    return survey


def passes_over(scores, cell, weight=None, chunk=1000):
    count = []

    def read():
        count.append(1)
        for start in range(0, len(scores), chunk):
            part = slice(start, start + chunk)
            yield Block(scores[part], cell[part], None if weight is None else weight[part])

    return read, count


def base_of(read, survey, cells, most_bins=None, *, weighted=False):
    grid = fit_grid(survey.sample, survey.low, survey.high, most_bins or bins_for(cells))
    passes = FilePasses(read, grid)
    return passes, passes.count_bins(cells, weighted=weighted)


def out_of_core(scores, cell, weight=None, *, metrics=METRICS, chunk=1000, most_bins=None, precision=1e-5, **limits):
    read, count = passes_over(scores, cell, weight, chunk)
    mass = np.ones(len(scores)) if weight is None else weight
    sides = CellSides(np.array([0]), np.array([1]), (mass[cell == 0].sum(), mass[cell == 1].sum()))
    finer, base = base_of(read, surveyed(scores, chunk), int(cell.max()) + 1, most_bins, weighted=weight is not None)
    binned = BinnedScores(base, finer.grid.scale, finer, precision=precision)
    return bracket_distances(binned, [sides], metrics, **limits), len(count)


def in_memory(scores, cell, weight=None):
    weights = {} if weight is None else {"u_weights": weight[cell == 0], "v_weights": weight[cell == 1]}
    return distances(scores[cell == 0], scores[cell == 1], METRICS, **weights)


def check_brackets(found, scores, exact, precision=None):
    length = max(float(np.ptp(scores)), np.finfo(float).tiny)
    degree = {"kolmogorov": 0, "total_variation": 0, "lp": 0.5}
    for metric in METRICS:
        bracket = found.comparisons[0].bracket(metric, found.scale)
        unit = length ** degree.get(metric, 1)
        rounding = 1e-6 if metric == "lp" else 1e-12  # a root: its rounding is that of the square's
        allowed = 10 * rounding * unit if metric != "lp" else rounding * unit
        assert bracket.low - allowed <= exact[metric] <= bracket.high + allowed, metric
        if precision is not None and metric != "total_variation":
            assert bracket.high - bracket.low <= (precision + rounding) * unit, metric
    if found.complete:
        assert found.comparisons[0].bracket("kolmogorov", found.scale).low == pytest.approx(
            exact["kolmogorov"], abs=1e-12
        )


def adversarial(n=6000):
    generator = np.random.default_rng(5)
    cell = (generator.random(n) < 0.3).astype(np.int64)
    normal = generator.normal(size=n) + 0.2 * cell
    one_huge_group = np.zeros(n, np.int64)
    one_huge_group[-3:] = 1
    return {
        "normal": (normal, cell),
        "all ties": (np.full(n, 0.3), cell),
        "two values": ((generator.random(n) < 0.4 + 0.1 * cell).astype(float), cell),
        "one bin": (1.0 + 2**-40 * generator.random(n), cell),
        "one bin and an outlier": (np.append(1.0 + 1e-9 * normal[1:], 1e12), cell),
        "every scale": (10.0 ** generator.uniform(-300, 300, n) * generator.choice([-1, 1], n), cell),
        "denormal": (generator.random(n) * 1e-318, cell),
        "largest": (generator.choice([-LARGEST, 0.0, LARGEST], n), cell),
        "both zeros": (generator.choice([-0.0, 0.0, 1.0], n), cell),
        "sorted": (np.sort(normal), cell),
        "reversed": (np.sort(normal)[::-1].copy(), cell),
        "sorted by group": (np.concatenate([normal[cell == 0], normal[cell == 1]]), np.sort(cell)),
        "one huge group": (normal, one_huge_group),
        "whole numbers": (generator.integers(-50, 50, n).astype(float), cell),
        "single precision": (normal.astype(np.float32).astype(float), cell),
        "an offset": (1e12 + normal, cell),
        "clusters": (generator.choice([0.1, 1e3, 1e9], n) * (1 + 1e-7 * generator.random(n)), cell),
    }


@pytest.mark.parametrize("name", adversarial())
@pytest.mark.parametrize("limits", [{}, {"most_bins": 512, "exact_rows": 600}, {"most_bins": 40, "exact_rows": 6000}])
def test_adversarial_scores_are_measured_to_the_precision(name, limits):
    scores, cell = adversarial()[name]
    found, count = out_of_core(scores, cell, **limits)
    assert found.complete
    assert count <= 14
    check_brackets(found, scores, in_memory(scores, cell), precision=1e-5)


@pytest.mark.parametrize("name", adversarial())
def test_brackets_hold_where_there_is_no_room_to_look_closer(name):
    scores, cell = adversarial()[name]
    found, _ = out_of_core(scores, cell, most_bins=4, exact_rows=10)
    check_brackets(found, scores, in_memory(scores, cell))


values = st.one_of(
    st.floats(-LARGEST, LARGEST, allow_nan=False, allow_subnormal=True),
    st.floats(-1, 1),
    st.integers(-3, 3).map(float),
)
rows = st.lists(st.tuples(values, st.integers(0, 2), st.floats(0.01, 9)), min_size=2, max_size=60)


@given(rows, st.booleans(), st.integers(2, 16), st.integers(0, 20), st.sampled_from([0.0, 1e-5, 0.1]))
@settings(max_examples=150, deadline=None)
def test_true_distances_lie_in_their_brackets(table, weighted, most_bins, exact_rows, precision):
    scores, cell, weight = (np.array(column) for column in zip(*table, strict=True))
    cell[:2] = 0, 1
    weights = weight if weighted else None
    found, _ = out_of_core(
        scores, cell, weights, precision=precision, chunk=7, most_bins=most_bins, exact_rows=exact_rows
    )
    check_brackets(found, scores, in_memory(scores, cell, weights), precision if found.complete else None)


def test_the_largest_gap_is_located():
    generator = np.random.default_rng(2)
    cell = (np.arange(4000) % 2).astype(np.int64)
    scores = generator.random(4000) ** (1 + 0.3 * cell)
    found, _ = out_of_core(scores, cell, most_bins=32, exact_rows=500, precision=0.01)
    gap = found.comparisons[0].gap
    shares = [float((scores[cell == side] <= gap.score).mean()) for side in (0, 1)]
    assert gap.shares == pytest.approx(shares, abs=1e-15)
    assert abs(shares[0] - shares[1]) == in_memory(scores, cell)["kolmogorov"]


def test_several_comparisons_share_the_passes():
    generator = np.random.default_rng(3)
    cell = generator.integers(0, 4, 5000)
    scores = generator.normal(0.1 * cell)
    read, count = passes_over(scores, cell)
    cells = [np.array([0]), np.array([1]), np.array([2, 3])]
    pairs = [(cells[0], cells[1]), (cells[0], cells[2]), (cells[1], cells[2])]
    sides = [CellSides(u, v, (np.isin(cell, u).sum(), np.isin(cell, v).sum())) for u, v in pairs]
    finer, base = base_of(read, surveyed(scores), 4, 64)
    binned = BinnedScores(base, finer.grid.scale, finer, precision=1e-4)
    found = bracket_distances(binned, sides, METRICS, exact_rows=3000)
    assert found.complete
    assert len(count) <= 10
    for one, (u, v) in zip(found.comparisons, pairs, strict=True):
        exact = distances(scores[np.isin(cell, u)], scores[np.isin(cell, v)])
        for metric, value in exact.items():
            bracket = one.bracket(metric, found.scale)
            assert bracket.low - 1e-12 <= value <= bracket.high + 1e-12
            assert bracket.high - bracket.low <= 1e-4 * np.ptp(scores)


def test_a_finer_grid_needs_no_second_look():
    """Sums of scores make integrals exact to second order: one count brackets them to a millionth."""
    generator = np.random.default_rng(4)
    cell = (generator.random(200_000) < 0.5).astype(np.int64)
    scores = generator.beta(2 + 0.2 * cell, 3)
    found, count = out_of_core(scores, cell, metrics=("wasserstein", "energy"), precision=1e-6)
    for metric in ("wasserstein", "energy"):
        bracket = found.comparisons[0].bracket(metric, found.scale)
        assert bracket.high - bracket.low <= 1e-6
    assert count <= 2


@given(st.lists(values, min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_keys_keep_the_order_of_scores(scores):
    ascending = np.unique(np.array(scores) + 0.0)
    keys = ordered_keys(ascending)
    assert (keys[1:] > keys[:-1]).all()
    assert (keys_to_scores(keys) == ascending).all()


@given(st.lists(values, min_size=2, max_size=50), st.integers(2, 40))
@settings(max_examples=100, deadline=None)
def test_bins_of_a_grid_are_intervals(scores, most):
    ascending = np.sort(scores)
    grid = fit_grid(ascending, ascending[0], ascending[-1], most)
    number = grid.bin_index.take(grid.pieces(ascending, grid.scale.positions(ascending)), mode="clip")
    assert (np.diff(number) >= 0).all()
    assert number.max() < most


def test_positions_neither_overflow_nor_lose_an_offset():
    assert Scale.between(-1.7e308, 1.7e308).positions(np.array([-1.7e308, 1.7e308])).tolist() == [
        0.0,
        pytest.approx(0.9457, abs=1e-3),
    ]
    spread = Scale.between(1e15, 1e15 + 8).positions(1e15 + np.arange(9.0))
    assert np.diff(spread).tolist() == [spread[1]] * 8


def test_the_sample_is_bounded_and_spread_over_the_file():
    survey = Survey(max_scores=100)
    for start in range(0, 10_000, 7):
        survey.add(np.arange(start, min(start + 7, 10_000), dtype=float))
    assert (survey.low, survey.high, survey.rows) == (0.0, 9999.0, 10_000)
    assert 50 <= len(survey.sample) <= 100
    assert np.diff(np.unique(survey.sample)).max() <= 2 * 10_000 / 50


def exact_distances(scores, cell, weight=None):
    """Distances by rational arithmetic: every float is a fraction."""
    mass = [Fraction(1)] * len(scores) if weight is None else [Fraction(float(one)) for one in weight]
    points = sorted({Fraction(float(score)) for score in scores})
    place = {point: at for at, point in enumerate(points)}
    sides = [[Fraction(0)] * len(points) for _ in range(2)]
    for score, side, amount in zip(scores, cell, mass, strict=True):
        sides[int(side)][place[Fraction(float(score))]] += amount
    left, right = ([amount / sum(side) for amount in side] for side in sides)
    apart = list(accumulate(a - b for a, b in zip(left, right, strict=True)))
    lengths = [after - before for before, after in pairwise(points)]
    square = sum((length * gap**2 for length, gap in zip(lengths, apart[:-1], strict=True)), Fraction(0))
    return {
        "kolmogorov": max(map(abs, apart)),
        "wasserstein": sum((length * abs(gap) for length, gap in zip(lengths, apart[:-1], strict=True)), Fraction(0)),
        "cramer": square,
        "energy": 2 * square,
        "total_variation": sum(abs(a - b) for a, b in zip(left, right, strict=True)) / 2,
    }


@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.extended), True])
@pytest.mark.parametrize("looks", ["none", "some", "all"])
def test_no_bracket_misses_the_exact_value_by_rounding(looks, weighted):
    generator = np.random.default_rng(11)
    for _ in range(60):
        n = int(generator.integers(4, 60))
        kind = generator.integers(3)
        scores = [generator.random(n), np.round(generator.random(n), 1), 1e6 + generator.normal(size=n) / 7][kind]
        cell = np.append([0, 1], generator.integers(2, size=n - 2))
        weight = generator.random(n) + 0.1 if weighted else None
        limits = {"none": {"exact_rows": 0, "precision": 1.0}, "some": {"exact_rows": 0}, "all": {}}[looks]
        found, _ = out_of_core(scores, cell, weight, most_bins=4 if looks != "all" else None, **limits)
        for metric, value in exact_distances(scores, cell, weight).items():
            bracket = found.comparisons[0].bracket(metric, found.scale)
            assert Fraction(bracket.low) <= value <= Fraction(bracket.high), metric
            if looks == "all":
                assert bracket.high - bracket.low <= 1e-12 * max(1.0, float(np.ptp(scores)))
            assert bracket.low <= found.comparisons[0].value(metric, found.scale) <= bracket.high


def test_no_bracket_of_a_state_misses_the_exact_value_by_rounding(monkeypatch):
    generator = np.random.default_rng(12)
    for atoms in (bins.MOST_ATOMS, 0):
        monkeypatch.setattr(bins, "MOST_ATOMS", atoms)
        for _ in range(30):
            scores, cell = generator.random(40), generator.integers(2, size=40)
            state = AuditState().add(None, scores, sensitive_features=cell)
            found = state.audit(
                metrics=list(exact_distances(scores, cell)), options=AuditOptions(resamples=0, permutations=0)
            )
            for finding, value in zip(found.findings, exact_distances(scores, cell).values(), strict=True):
                assert Fraction(finding.bracket.low) <= value <= Fraction(finding.bracket.high), finding.metric
