"""The choices that bounds allow, against the rule itself on figures between the bounds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.seams.tradeoff import BoundedFigures, choose


def ends(rng: np.random.Generator, count: int, width: float) -> tuple[np.ndarray, np.ndarray]:
    middle = rng.random(count)
    return middle - width * rng.random(count), middle + width * rng.random(count)


@pytest.mark.parametrize("seed", range(40))
def test_every_choice_of_figures_between_the_bounds_is_possible(seed: int) -> None:
    """And, the other way round, each possible one is chosen for some of many figures."""
    rng = np.random.default_rng(seed)
    count = 4
    needed = ends(rng, count, 0.2)
    quality = ends(rng, count, 0.2)
    root = rng.normal(size=(count, count)) * 0.1
    errors = np.abs(root + root.T) * (1 - np.eye(count))
    among: Any = SimpleNamespace(simplicity=rng.permutation(count), tier=rng.integers(0, 2, count))
    limit = float(rng.random())
    figures = BoundedFigures(
        *needed,
        *quality,
        errors,
        among.simplicity,
        among.tier,
        np.ones(count, bool),
        limit,
    )
    draws = 20_000
    corners = rng.random((2, draws, count))
    some = rng.random((2, draws, 1)) < 0.6
    corners = np.where(some, corners.round(), corners)
    drawn = [
        low + part * (high - low)
        for part, (low, high) in zip(corners, (needed, quality), strict=True)
    ]
    chosen = choose(among, drawn[1], drawn[0], limit, errors)
    seen = set(chosen[chosen >= 0].tolist())
    possible = set(np.flatnonzero(figures.possible()).tolist())
    assert seen <= possible
    assert len(possible - seen) <= 1  # a small region that no draw meets


def test_without_bounds_the_rule_chooses_one() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        needed = rng.random(5)
        quality = rng.random(5)
        among: Any = SimpleNamespace(simplicity=rng.permutation(5), tier=np.zeros(5, int))
        errors = np.full((5, 5), 0.1) * (1 - np.eye(5))
        chosen = int(choose(among, quality[None], needed[None], 0.6, errors)[0])
        figures = BoundedFigures(
            needed,
            needed,
            quality,
            quality,
            errors,
            among.simplicity,
            among.tier,
            np.ones(5, bool),
            0.6,
        )
        assert np.flatnonzero(figures.possible()).tolist() == ([chosen] if chosen >= 0 else [])
