"""Distances from counts in bins: true values lie in their brackets, whatever the scores,
however few the bins.
"""

from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair import AuditOptions, AuditState
from metrifair.metrics import distances
from tests.seams.auditing import (
    BinCounter,
    BinnedScores,
    CellSides,
    Entries,
    Scale,
    bracket_distances,
    state_counts,
)
from tests.seams.metrics import METRICS as ALL

LARGEST = 4e307  # the energy distance, up to twice the span of the scores, is still a float
METRICS = [name for name, row in ALL.items() if row.bracket is not None]
ALL_SCORES = 2**20  # bins: each score has its own


def in_bins(scores, cell, weight=None, *, most_bins):
    """The rows in bins of about equally many distinct scores."""
    scores = scores + 0.0
    distinct, place = np.unique(scores, return_inverse=True)
    number = place * min(most_bins, len(distinct)) // len(distinct)
    scale = Scale.between(distinct[0], distinct[-1])
    moment = scale.positions(scores) * (1.0 if weight is None else weight)
    counter = BinCounter(number.max() + 1, cell.max() + 1, weighted=weight is not None)
    counter.add(
        number, cell, Entries(np.ones(len(scores), np.int64), scores, scores, moment, weight)
    )
    return BinnedScores(counter.bins(scale))


def out_of_core(scores, cell, weight=None, *, metrics=METRICS, most_bins):
    mass = np.ones(len(scores)) if weight is None else weight
    sides = CellSides(np.array([0]), np.array([1]), (mass[cell == 0].sum(), mass[cell == 1].sum()))
    (found,) = bracket_distances(
        in_bins(scores, cell, weight, most_bins=most_bins), [sides], metrics
    )
    return found


def in_memory(scores, cell, weight=None):
    weights = (
        {} if weight is None else {"u_weights": weight[cell == 0], "v_weights": weight[cell == 1]}
    )
    return distances(scores[cell == 0], scores[cell == 1], METRICS, **weights)


def check_brackets(found, scores, exact, widths=None):
    """Exact distances lie in their brackets; ``widths`` are the largest allowed, as shares of
    the range.
    """
    length = max(float(np.ptp(scores)), np.finfo(float).tiny)
    degree = {"kolmogorov": 0, "total_variation": 0, "lp": 0.5}
    for metric in METRICS:
        bracket = found.bracket(metric)
        unit = length ** degree.get(metric, 1)
        rounding = 1e-6 if metric == "lp" else 1e-12  # a root: its rounding is that of the square's
        allowed = 10 * rounding * unit if metric != "lp" else rounding * unit
        assert bracket.low - allowed <= exact[metric] <= bracket.high + allowed, metric
        if widths is not None and metric in widths:
            assert bracket.high - bracket.low <= (widths[metric] + rounding) * unit, metric


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
        "every scale": (
            10.0 ** generator.uniform(-300, 300, n) * generator.choice([-1, 1], n),
            cell,
        ),
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
@pytest.mark.parametrize("most_bins", [4, 40, 512])
def test_brackets_hold_however_few_the_bins(name, most_bins):
    scores, cell = adversarial()[name]
    check_brackets(out_of_core(scores, cell, most_bins=most_bins), scores, in_memory(scores, cell))


@pytest.mark.parametrize("name", adversarial())
def test_bins_of_one_score_are_exact(name):
    scores, cell = adversarial()[name]
    found = out_of_core(scores, cell, most_bins=ALL_SCORES)
    check_brackets(found, scores, in_memory(scores, cell), dict.fromkeys(METRICS, 1e-10))


values = st.one_of(
    st.floats(-LARGEST, LARGEST, allow_nan=False, allow_subnormal=True),
    st.floats(-1, 1),
    st.integers(-3, 3).map(float),
)
rows = st.lists(st.tuples(values, st.integers(0, 2), st.floats(0.01, 9)), min_size=2, max_size=60)


@given(rows, st.booleans(), st.integers(2, 16))
@settings(max_examples=150, deadline=None)
def test_true_distances_lie_in_their_brackets(table, weighted, most_bins):
    scores, cell, weight = (np.array(column) for column in zip(*table, strict=True))
    cell[:2] = 0, 1
    weights = weight if weighted else None
    found = out_of_core(scores, cell, weights, most_bins=most_bins)
    check_brackets(found, scores, in_memory(scores, cell, weights))


@pytest.mark.parametrize("most_bins", [32, ALL_SCORES])
def test_the_largest_gap_at_the_end_of_a_bin_is_located(most_bins):
    generator = np.random.default_rng(2)
    cell = (np.arange(4000) % 2).astype(np.int64)
    scores = generator.random(4000) ** (1 + 0.3 * cell)
    found = out_of_core(scores, cell, most_bins=most_bins)
    shares = [float((scores[cell == side] <= found.gap.score).mean()) for side in (0, 1)]
    assert found.gap.shares == pytest.approx(shares, abs=1e-15)
    exact = in_memory(scores, cell)["kolmogorov"]
    assert abs(shares[0] - shares[1]) == pytest.approx(
        exact, abs=1e-15 if most_bins == ALL_SCORES else 2 / 32
    )
    assert found.bracket("kolmogorov").low <= exact <= found.bracket("kolmogorov").high


def test_several_comparisons_share_the_bins():
    generator = np.random.default_rng(3)
    cell = generator.integers(0, 4, 5000)
    scores = generator.normal(0.1 * cell)
    cells = [np.array([0]), np.array([1]), np.array([2, 3])]
    pairs = [(cells[0], cells[1]), (cells[0], cells[2]), (cells[1], cells[2])]
    sides = [CellSides(u, v, (np.isin(cell, u).sum(), np.isin(cell, v).sum())) for u, v in pairs]
    found = bracket_distances(in_bins(scores, cell, most_bins=64), sides, METRICS)
    for one, (u, v) in zip(found, pairs, strict=True):
        exact = distances(scores[np.isin(cell, u)], scores[np.isin(cell, v)])
        for metric, value in exact.items():
            bracket = one.bracket(metric)
            assert bracket.low - 1e-12 <= value <= bracket.high + 1e-12


def test_one_count_is_precise():
    """Sums of scores make integrals exact to second order; the gap is known to the share of a
    bin.
    """
    generator = np.random.default_rng(4)
    cell = (generator.random(200_000) < 0.5).astype(np.int64)
    scores = generator.beta(2 + 0.2 * cell, 3)
    found = out_of_core(
        scores, cell, metrics=("kolmogorov", "wasserstein", "energy"), most_bins=2**14
    )
    for metric, most in (("kolmogorov", 2e-4), ("wasserstein", 1e-5), ("energy", 1e-6)):
        bracket = found.bracket(metric)
        assert bracket.high - bracket.low <= most


def test_positions_neither_overflow_nor_lose_an_offset():
    assert Scale.between(-1.7e308, 1.7e308).positions(np.array([-1.7e308, 1.7e308])).tolist() == [
        0.0,
        pytest.approx(0.9457, abs=1e-3),
    ]
    spread = Scale.between(1e15, 1e15 + 8).positions(1e15 + np.arange(9.0))
    assert np.diff(spread).tolist() == [spread[1]] * 8


def exact_distances(scores, cell, weight=None):
    """Distances by rational arithmetic: every float is a fraction."""
    mass = (
        [Fraction(1)] * len(scores) if weight is None else [Fraction(float(one)) for one in weight]
    )
    points = sorted({Fraction(float(score)) for score in scores})
    place = {point: at for at, point in enumerate(points)}
    sides = [[Fraction(0)] * len(points) for _ in range(2)]
    for score, side, amount in zip(scores, cell, mass, strict=True):
        sides[int(side)][place[Fraction(float(score))]] += amount
    left, right = ([amount / sum(side) for amount in side] for side in sides)
    apart = list(accumulate(a - b for a, b in zip(left, right, strict=True)))
    lengths = [after - before for before, after in pairwise(points)]
    square = sum(
        (length * gap**2 for length, gap in zip(lengths, apart[:-1], strict=True)), Fraction(0)
    )
    return {
        "kolmogorov": max(map(abs, apart)),
        "wasserstein": sum(
            (length * abs(gap) for length, gap in zip(lengths, apart[:-1], strict=True)),
            Fraction(0),
        ),
        "cramer": square,
        "energy": 2 * square,
        "total_variation": sum(abs(a - b) for a, b in zip(left, right, strict=True)) / 2,
    }


@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.extended), True])
@pytest.mark.parametrize("most_bins", [4, ALL_SCORES])
def test_no_bracket_misses_the_exact_value_by_rounding(most_bins, weighted):
    generator = np.random.default_rng(11)
    for _ in range(60):
        n = int(generator.integers(4, 60))
        kind = generator.integers(3)
        scores = [
            generator.random(n),
            np.round(generator.random(n), 1),
            1e6 + generator.normal(size=n) / 7,
        ][kind]
        cell = np.append([0, 1], generator.integers(2, size=n - 2))
        weight = generator.random(n) + 0.1 if weighted else None
        found = out_of_core(scores, cell, weight, most_bins=most_bins)
        for metric, value in exact_distances(scores, cell, weight).items():
            bracket = found.bracket(metric)
            assert Fraction(bracket.low) <= value <= Fraction(bracket.high), metric
            if most_bins == ALL_SCORES:
                assert bracket.high - bracket.low <= 1e-12 * max(1.0, float(np.ptp(scores)))
            assert bracket.low <= found.value(metric) <= bracket.high


def test_no_bracket_of_a_state_misses_the_exact_value_by_rounding(monkeypatch):
    generator = np.random.default_rng(12)
    for atoms in (state_counts.MOST_ATOMS, 0):
        monkeypatch.setattr(state_counts, "MOST_ATOMS", atoms)
        for _ in range(30):
            scores, cell = generator.random(40), generator.integers(2, size=40)
            state = AuditState().add(None, scores, sensitive_features=cell)
            found = state.audit(
                metrics=list(exact_distances(scores, cell)),
                options=AuditOptions(resamples=0, permutations=0),
            )
            for finding, value in zip(
                found.findings, exact_distances(scores, cell).values(), strict=True
            ):
                assert Fraction(finding.bracket.low) <= value <= Fraction(finding.bracket.high), (
                    finding.metric
                )
