"""Padded batches of a stream against the library's own covering batches, weights and energy
distance.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import convergence, online, theory
from experiments.populations import Normal, normal_distances
from experiments.streams import (
    Learners,
    batches,
    covering_ends,
    covering_weights,
    energy,
    fixed_ends,
)
from metrifair.batches import Coverage, covering
from metrifair.metrics import energy_distance
from tests.seams.batches import Samples
from tests.seams.problem import Comparison
from tests.seams.training import Network, regression

RULE = (Comparison((0,), (1,)),)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([4, 5, 9]), st.floats(0.1, 0.9))
def test_covering_batches_and_their_weights_are_the_library_s(
    seed: int, size: int, share: float
) -> None:
    group = (np.random.default_rng(seed).random(150) < share).astype(np.int64)
    group[:4] = [0, 0, 1, 1]
    ends = covering_ends(group, size)
    cell = torch.as_tensor(group)
    stream = Samples(
        torch.arange(150.0)[:, None], torch.zeros(150), cell, torch.ones(150, dtype=torch.float64)
    )
    expected = list(covering([stream], Coverage(RULE, size=size)))
    assert np.diff([0, *ends]).tolist() == [len(batch.samples) for batch in expected]
    for batch, own in zip(batches([ends]), expected, strict=True):
        weight = covering_weights(cell[batch.place], batch, size)
        torch.testing.assert_close(weight[0], own.samples.weight)
        assert batch.place[0].tolist() == own.samples.x[:, 0].int().tolist()


def test_published_weights_apply_to_batches_that_did_not_overshoot() -> None:
    group = np.array([0, 1, 1, 0])
    (batch,) = batches([covering_ends(group, 4)])
    assert covering_weights(torch.as_tensor(group)[None], batch, 4).tolist() == [[1.0] * 4]
    # all four are critical: 4/3 x (1 - 1/4)
    assert covering_weights(torch.as_tensor(group)[None], batch, 4, always=True).tolist() == [
        [pytest.approx(1.0)] * 4
    ]
    group = np.array([0, 1, 1, 0, 1])
    (batch,) = batches([covering_ends(group, 5)])
    weight = covering_weights(torch.as_tensor(group)[None], batch, 5, always=True)
    assert weight[0].tolist() == pytest.approx([0.625, 1.25, 1.25, 0.625, 1.25])


def test_replications_of_unequal_batches_are_padded() -> None:
    found = list(batches([np.array([2, 6]), np.array([3, 4, 9])]))
    assert [batch.sizes.tolist() for batch in found] == [[2, 3], [4, 1], [0, 5]]
    assert [batch.counted.tolist() for batch in found] == [
        [[True, True, False], [True, True, True]],
        [[True] * 4, [True, False, False, False]],
        [[False] * 5, [True] * 5],
    ]
    assert fixed_ends(10, 4).tolist() == [4, 8]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_energy_of_padded_batches(seed: int, unbiased: bool) -> None:
    rng = np.random.default_rng(seed)
    score = torch.as_tensor(rng.normal(size=(3, 2, 9)).round(1))
    group = torch.as_tensor(rng.integers(2, size=(3, 9)))
    group[:, :4] = torch.tensor([0, 0, 1, 1])
    counted = torch.arange(9) < torch.as_tensor(rng.integers(4, 10, size=(3, 1)))
    found = energy(score, group, counted, unbiased=unbiased)
    for at in range(3):
        sides = [score[at][:, counted[at] & (group[at] == code)] for code in (0, 1)]
        torch.testing.assert_close(found[at], energy_distance(*sides, unbiased=unbiased))


def test_a_batch_without_one_of_the_groups_has_no_penalty() -> None:
    score = torch.randn(1, 1, 4, dtype=torch.float64)
    assert (
        energy(score, torch.zeros(1, 4), torch.ones(1, 4, dtype=torch.bool), unbiased=False).item()
        == 0.0
    )


# --- the problem with known constants
# ---------------------------------------------------------------------------


def objective(w: np.ndarray) -> float:
    apart = normal_distances(Normal(w[1] + w[2], abs(w[0])), Normal(w[2], abs(w[0]))).energy
    risk = (w[0] - 1) ** 2 + ((w[1] - convergence.OFFSET + w[2]) ** 2 + w[2] ** 2) / 2
    return float(risk + convergence.STRENGTH * apart)


@pytest.mark.parametrize("w", [(0.7, -0.4, 0.2), (-1.2, 0.9, -0.3), (0.5, 2.0, 0.0)])
def test_the_exact_gradient_is_that_of_the_closed_form(w: tuple[float, float, float]) -> None:
    at, step = np.array(w), 1e-5
    slopes = [(objective(at + step * e) - objective(at - step * e)) / (2 * step) for e in np.eye(3)]
    assert convergence.gradient(at) == pytest.approx(slopes, abs=1e-6)


def test_one_estimate_is_unbiased_and_the_other_is_not() -> None:
    w = np.tile([0.7, -0.4, 0.2], (100_000, 1))
    x = np.random.default_rng(0).standard_normal((100_000, 2 * convergence.EACH))
    true = convergence.gradient(w[0])
    unbiased, biased = (convergence.estimate(w, x, unbiased=kind) for kind in (True, False))
    error = unbiased.std(0) / len(w) ** 0.5
    assert (np.abs(unbiased.mean(0) - true) < 4 * error).all()
    assert abs(biased.mean(0)[0] - true[0]) > 50 * error[0]


def test_the_rate_of_the_theorem() -> None:
    """Sixteen times the steps: a quarter of the squared gradient; the biased estimate gains
    next to nothing.
    """
    unbiased = [
        np.mean([one["norm"] for one in convergence.norms(t, unbiased=True)]) for t in (128, 2048)
    ]
    biased = [
        np.mean([one["norm"] for one in convergence.norms(t, unbiased=False)]) for t in (128, 2048)
    ]
    assert unbiased[0] / unbiased[1] == pytest.approx(4, rel=0.15)
    assert biased[0] / biased[1] < 1.6


# --- tables
# ------------------------------------------------------------------------------------------------------


def test_the_fitted_exponent_is_that_of_the_power() -> None:
    means = {
        kind: [{"steps": t, "norm": 3.0 * t**power} for t in (64, 128, 4096)]
        for kind, power in (("unbiased", -0.5), ("biased", -0.1))
    }
    assert convergence.rate_table(means)[1:] == [
        ["unbiased", "-0.50", "-0.50"],
        ["biased", "none", "-0.10"],
    ]


def test_the_paper_s_examples_beside_the_exact_values() -> None:
    lines = {line[0]: line[1:] for line in theory.values_table(theory.exact_values(9))[1:]}
    assert lines["Example 1: least fair risk"] == ["0.365", "0.0625", "no"]
    assert lines["Example 2: positive decisions in group 0, in group 1"] == [
        "0.8, 0.2",
        "0.8, 0.2",
        "yes",
    ]
    assert lines["Example 2: share of group 1 that has label 1 with probability 0.4"] == [
        "0.2",
        "0.8",
        "no",
    ]
    assert lines["Proposition: unfairness of the optimum without bias"] == ["0, 0", "0, 0", "yes"]
    assert lines["Theorem, shift: the fair risk is no larger"][1:] == [
        "up to 0.95, all tested biases",
        "yes",
    ]
    assert lines["Theorem, shrink: the fair risk is no larger"][1:] == ["below 0.59", "yes"]


def test_a_fair_hypothesis_that_loses_at_once_contradicts_the_theorem() -> None:
    risks = [
        {"x": x, "what": what, "value": x * (what == "fair")}
        for x in (0.0, 0.1, 0.2)
        for what in ("fair", "unpenalized")
    ]
    assert theory._no_worse(risks) == ("below 0.10", False)


def test_a_replication_whose_stream_is_over_learns_no_more() -> None:
    """Together with a longer one it ends where it ends alone, although momentum would carry it
    on.
    """
    rng = np.random.default_rng(0)
    group = torch.as_tensor(np.concatenate([np.tile([0, 1], 20), np.repeat([0, 1], 20)]))
    samples = Samples(
        torch.as_tensor(rng.normal(size=(80, 2))).float(), torch.zeros(80), group, torch.ones(80)
    )
    order = torch.arange(80).reshape(2, 40)
    assert len(covering_ends(group[40:].numpy(), 4)) < len(covering_ends(group[:40].numpy(), 4))

    def learned(rows: list[int], seeds: list[int]) -> torch.Tensor:
        learners = Learners(
            Network(2, (3,)), regression(), seeds=seeds, strengths=[1.0], learning_rate=0.1
        )
        for _ in learners.follow(
            samples, order[rows], size=4, unbiased=True, covering=True, weighting="exact"
        ):
            pass
        return learners.predictions(samples.x[:5])

    torch.testing.assert_close(learned([0, 1], [3, 4])[1:], learned([1], [4]))


def test_online_tables() -> None:
    curves = [
        {"size": size, "kind": kind, "replication": at, "seen": seen, "objective": 0.5 + at + seen}
        for size in online.REGRESSION_SIZES
        for kind in online.REGRESSION_KINDS
        for at in (0, 1)
        for seen in (10, 20, 40)
    ]
    curves.append({**curves[0], "seen": 30})  # a look that one replication had alone
    ends = online.end_table(online.mean_curves(curves))
    assert ends[:2] == [
        ["batch size", "penalty", "before 20 samples", "after all 40"],
        ["4", "unbiased", "11.000 ± 0.500", "41.000 ± 0.500"],
    ]
    points = [
        {"size": size, "kind": kind, "accuracy": 0.8 + at / 10, "label_gap": 0.1, "kolmogorov": 0.2}
        for size in (16, 4)
        for kind in online.KINDS
        for at in (0, 1)
    ]
    means = online.means_table(points)
    assert [line[:3] for line in means[1:]] == [
        [str(size), kind, "0.850 ± 0.050"] for size in (4, 16) for kind in online.KINDS
    ]
