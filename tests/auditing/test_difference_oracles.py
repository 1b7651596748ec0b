"""Differences of two figures: intervals and p-values written from their definition,
correlations by enumeration.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from tests.seams.auditing import ComparedFigure, _correlation, _Influences, _share_below, change
from tests.seams.figures import Interval

CONFIDENCE = 0.95
Z = float(norm.isf(0.025))
MAXIMA = ("kolmogorov", "total_variation")


def figure(metric: str, value: float, below: float, above: float) -> ComparedFigure:
    return ComparedFigure(
        "sex", "", "everyone", ("f", "m"), metric, value, Interval(value - below, value + above)
    )


def half_width(metric: str, below: float, above: float) -> float:
    """Half an interval; of a maximum, less a quarter of its bias, by which its interval is
    wider than its error.
    """
    bias = max(0.0, (below - above) / 2)
    return (below + above) / 2 - (0.24 * bias if metric in MAXIMA else 0.0)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    metric=st.sampled_from(["kolmogorov", "wasserstein"]),
    ends=st.lists(st.floats(0.01, 0.2), min_size=4, max_size=4),
    correlation=st.sampled_from([-0.5, 0.0, 0.4, 0.8]),
)
def test_distances_away_from_zero_differ_as_correlated_normals(
    metric: str, ends: list[float], correlation: float
) -> None:
    old, new = figure(metric, 0.3, *ends[:2]), figure(metric, 0.5, *ends[2:])
    found = change(old, new, correlation, CONFIDENCE)
    centers = [0.3 + (ends[1] - ends[0]) / 2, 0.5 + (ends[3] - ends[2]) / 2]
    halves = half_width(metric, *ends[:2]), half_width(metric, *ends[2:])
    spread = sqrt(halves[0] ** 2 + halves[1] ** 2 - 2 * correlation * halves[0] * halves[1])
    center = centers[1] - centers[0]
    assert found.interval is not None
    assert found.interval.low == pytest.approx(min(0.2, center - spread))
    assert found.interval.high == pytest.approx(max(0.2, center + spread))
    assert found.p_value == pytest.approx(2 * norm.sf(Z * abs(center) / spread), abs=1e-12)


def test_the_bias_of_a_maximum_cancels_between_two_samples_of_one_size() -> None:
    """Kolmogorov's distance of small samples: the difference of two spreads less than their
    intervals say.

    Intervals of a maximum that is biased by ``bias`` have, in four simulated settings, half widths
    of 1.96 standard errors and a quarter of the bias. With the standard errors of a simulation,
    half widths of differences are 1.96 x sqrt(2) standard errors.
    """
    generator, size, repeats = np.random.default_rng(0), 60, 4000
    scores = (
        np.sort(generator.normal(size=(repeats, size)), axis=1),
        np.sort(generator.normal(0.6, size=(repeats, size))),
    )
    grid = np.linspace(-4, 5, 400)
    below = [(one[:, :, None] <= grid).mean(1) for one in (part[:800] for part in scores)]
    values = np.abs(below[0] - below[1]).max(1)
    truth = float(2 * norm.cdf(0.3) - 1)
    error, bias = float(values.std()), float(values.mean() - truth)
    half = 1.96 * error + 0.24 * bias
    value = truth + bias
    one = ComparedFigure("", "", "", (), "kolmogorov", value, Interval(truth - half, truth + half))
    found = change(one, one, 0.0, CONFIDENCE)
    assert found.interval is not None
    assert found.interval.high == pytest.approx(1.96 * sqrt(2) * error, rel=1e-3)
    differences = values[::2] - values[1::2]
    assert np.mean(np.abs(differences) <= found.interval.high) == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize("metric", ["kolmogorov", "wasserstein"])
def test_errors_that_are_nearly_the_same_leave_the_values_difference(metric: str) -> None:
    """Bias and skewness of intervals cancel: the difference lies in the middle of its interval."""
    old, new = figure(metric, 0.3, 0.12, 0.04), figure(metric, 0.5, 0.05, 0.09)
    correlation = 0.95
    halves = half_width(metric, 0.12, 0.04), half_width(metric, 0.05, 0.09)
    half = sqrt(halves[0] ** 2 + halves[1] ** 2 - 2 * correlation * halves[0] * halves[1])
    found = change(old, new, correlation, CONFIDENCE)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((0.2 - half, 0.2 + half))
    assert found.p_value == pytest.approx(2 * norm.sf(Z * 0.2 / half), abs=1e-12)


@pytest.mark.parametrize("metric", ["energy", "cramer", "mmd"])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
def test_squared_distances_differ_from_the_middle_of_their_roots(
    metric: str, correlation: float
) -> None:
    old, new = (
        ComparedFigure("", "", "", (), metric, ((low + high) / 2) ** 2, Interval(low**2, high**2))
        for low, high in ((0.2, 0.4), (0.5, 0.7))
    )
    found = change(old, new, correlation, CONFIDENCE)
    # halves of 0.04 to 0.16, and of 0.25 to 0.49
    half = sqrt(0.06**2 + 0.12**2 - 2 * correlation * 0.06 * 0.12)
    assert found.difference == pytest.approx(0.6**2 - 0.3**2)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((0.27 - half, 0.27 + half))


@pytest.mark.parametrize("metric", ["kolmogorov", "energy", "wasserstein"])
@pytest.mark.parametrize("places", [(0,), (1,), (0, 1)])
def test_errors_near_zero_do_not_cancel(metric: str, places: tuple[int, ...]) -> None:
    """A value whose interval begins at 0 may be noise alone: a positive correlation makes
    nothing narrower.
    """
    ends = [Interval(0.0, 0.25) if place in places else Interval(0.1, 0.3) for place in (0, 1)]
    old, new = (
        ComparedFigure("", "", "", (), metric, value, interval)
        for value, interval in zip((0.12, 0.2), ends, strict=True)
    )
    apart = change(old, new, 0.0, CONFIDENCE)
    for correlation in (0.3, 0.8, 0.95, 1.0):
        assert change(old, new, correlation, CONFIDENCE) == apart
    assert apart.interval is not None
    if places == (0, 1):  # errors on one side only are added
        assert apart.interval.low == pytest.approx(0.2 - 0.12 - (0.2 + 0.13))
        assert apart.interval.high == pytest.approx(0.2 - 0.12 + (0.05 + 0.12))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    scores=st.lists(st.integers(0, 4), min_size=1, max_size=9),
    others=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5)), min_size=1, max_size=9),
)
def test_the_share_below_a_score_is_that_of_all_pairs(
    scores: list[int], others: list[tuple[int, int]]
) -> None:
    """Ties count half, with weights."""
    values, weights = (np.array(part, dtype=float) for part in zip(*others, strict=True))
    expected = [
        sum(
            w * (1.0 if other < score else 0.5 if other == score else 0.0)
            for other, w in zip(values, weights, strict=True)
        )
        / weights.sum()
        for score in scores
    ]
    assert _share_below(np.array(scores, dtype=float), values, weights) == pytest.approx(expected)


@pytest.mark.oracle("correlation of two audits")
@pytest.mark.parametrize("weighted", [False, True])
def test_the_correlation_of_two_aucs_is_that_of_delong(weighted: bool) -> None:
    """Two models of the same rows, with many ties: placements of every row, by enumeration of
    pairs.
    """
    generator = np.random.default_rng(2)
    label = np.arange(40) % 3 == 0
    weight = generator.integers(1, 4, 40).astype(float) if weighted else np.ones(40)
    hidden = generator.normal(size=40) + label
    models = [np.round(hidden + generator.normal(size=40), 0) for _ in "ab"]

    def placements(score: np.ndarray) -> list[np.ndarray]:
        order = (score[label][:, None] > score[~label]) + 0.5 * (
            score[label][:, None] == score[~label]
        )
        return [
            order @ weight[~label] / weight[~label].sum(),
            weight[label] @ order / weight[label].sum(),
        ]

    sides, moments = [placements(score) for score in models], np.zeros((2, 2))
    for place, own in enumerate((label, ~label)):
        share = weight[own] / weight[own].sum()
        both = np.array([side[place] - share @ side[place] for side in sides]) * share
        moments += both @ both.T
    expected = moments[0, 1] / sqrt(moments[0, 0] * moments[1, 1])
    influences = []
    for score in models:
        below = _share_below(score[label], score[~label], weight[~label])
        above = 1 - _share_below(score[~label], score[label], weight[label])
        rows = np.flatnonzero(label), np.flatnonzero(~label)
        influences.append(_Influences((below, above), (weight[label], weight[~label]), rows))
        assert below == pytest.approx(placements(score)[0])
        assert above == pytest.approx(placements(score)[1])
    assert _correlation(*influences) == pytest.approx(expected)
