"""Rows with scores that are multiples of 1/64: sums of them are exact on every processor."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from metrifair import AuditOptions

QUICK = AuditOptions(resamples=50, permutations=99)
GRID = 64
ROWS = 400


class Rows(NamedTuple):
    """Labels, scores, and what is known of each row."""

    outcome: NDArray[np.int_]
    score: NDArray[np.float64]
    sex: NDArray[np.str_]
    region: NDArray[np.str_]
    age: NDArray[np.int_]


def people(rows: int = ROWS, seed: int = 0) -> Rows:
    """People of two sexes, three regions and many ages; men have higher scores."""
    rng = np.random.default_rng(seed)
    is_man = rng.integers(2, size=rows)
    points = rng.integers(4, 49, size=rows) + 12 * is_man
    outcome = (points + rng.integers(-16, 17, size=rows) > GRID // 2).astype(int)
    region = np.array(["north", "south", "west"])[rng.integers(3, size=rows)]
    age = rng.integers(18, 81, size=rows)
    return Rows(outcome, points / GRID, np.where(is_man, "men", "women"), region, age)


def table(rows: Rows) -> pl.DataFrame:
    """The rows as a table, with the favorable decision as a word, and cells that are missing."""
    columns: dict[str, list[Any]] = {
        "outcome": np.where(rows.outcome == 1, "hired", "rejected").tolist(),
        "score": rows.score.tolist(),
        "sex": rows.sex.tolist(),
        "region": rows.region.tolist(),
        "age": rows.age.tolist(),
    }
    columns["score"][:2] = [None, None]
    columns["outcome"][:3] = [None, None, None]
    return pl.DataFrame(columns)
