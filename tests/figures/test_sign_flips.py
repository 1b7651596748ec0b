"""The p-value of sign flips: never below that of all flips, and as small as the theorem allows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.seams.figures import sign_flip_p_value


@pytest.mark.oracle("sign flips")
@pytest.mark.parametrize("seed", range(40))
def test_the_p_value_is_at_least_the_share_of_flips_with_so_large_a_sum(seed: int) -> None:
    """All 2 to the n signs of differences of all kinds: equal ones, one that is large, many
    sizes.
    """
    generator = np.random.default_rng(seed)
    sizes = [
        np.ones(11),
        generator.random(11),
        generator.pareto(1.0, 11),
        np.append(np.ones(10), 5.0),
        generator.integers(0, 3, 11).astype(float),
    ][seed % 5]
    sums = np.array(list(product([-1.0, 1.0], repeat=len(sizes)))) @ sizes
    for signs in (*generator.choice([-1.0, 1.0], (10, len(sizes))), np.ones(len(sizes))):
        share = np.mean(np.abs(sums) >= abs(signs @ sizes) - 1e-9)
        assert sign_flip_p_value(signs * sizes) >= share - 1e-12


def test_the_constant_is_the_best_one() -> None:
    """The signs of two equal differences agree with probability 1/2: the theorem attains its
    bound there.
    """
    assert sign_flip_p_value(np.array([3.0, 3.0])) == pytest.approx(0.5)
    assert sign_flip_p_value(np.array([-3.0, -3.0])) == pytest.approx(0.5)


def test_no_difference_is_no_change() -> None:
    assert sign_flip_p_value(np.zeros(5)) == 1.0
