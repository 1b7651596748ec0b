"""Copies of rows, and ids, on both sides of a split: reported with their share, and not where
chance explains them.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

import metrifair
from metrifair import FairClassifier
from tests.seams.tradeoff import data_set, repeat_notes

N = 1_000


def table(kind: str, rng: np.random.Generator, n: int = N) -> pl.DataFrame:
    """Rows of different people: measured numbers, or few values that depend on each other."""
    skill = rng.normal(size=n)
    if kind == "measured":
        return pl.DataFrame(
            {"income": np.exp(skill), "height": rng.normal(size=n), "town": rng.integers(5, size=n)}
        )
    age = np.clip(40 + 10 * skill, 18, 70).astype(int)
    return pl.DataFrame(
        {
            "age": age,
            "school": np.clip(skill + rng.normal(size=n), -2, 2).astype(int).astype(str),
            "married": age + rng.integers(-10, 10, size=n) > 35,
            "town": rng.choice(["north", "south", "west"], size=n),
        }
    )


def notes(X: pl.DataFrame, part: Any, *, ids: Any = None, clusters: Any = None) -> list[Any]:
    y = np.unique(X["town"].to_numpy(), return_inverse=True)[1] % 2
    named: dict[str, Any] = {
        "regression": False,
        "criterion": "statistical_parity",
        "contrast": "pairs",
    }
    return list(repeat_notes(data_set(X, y, y, None, clusters=clusters, **named), part, ids))


@pytest.mark.parametrize("folds", [1, 2, 5])
def test_copies_of_measured_rows_are_counted(folds: int) -> None:
    """Every row is a test row of one of several folds; with one split, a part of the rows is."""
    rng = np.random.default_rng(1)
    rows = np.concatenate([np.arange(N), rng.choice(N, size=100, replace=False)])
    part = rng.integers(-1 if folds == 1 else 0, folds, size=len(rows))
    (note,) = notes(table("measured", rng)[rows], part)
    tested = [row for row in range(len(rows)) if part[row] >= 0]
    by_hand = sum(
        any(rows[row] == rows[other] and part[row] != part[other] for other in range(len(rows)))
        for row in tested
    )
    assert note.kind == "repeated_rows"
    assert note.facts == {"repeated": by_hand, "rows": len(tested)}
    assert not notes(table("measured", rng)[rows], part, clusters=rows)


@pytest.mark.parametrize(
    ("kind", "n"), list(product(["measured", "few values"], [300, 3_000, 20_000]))
)
def test_rows_of_different_people_raise_no_alarm(kind: str, n: int) -> None:
    rng = np.random.default_rng(2)
    X = table(kind, rng, n)
    assert (kind == "measured") == (X.unique().height == n)  # few values repeat by chance
    assert not notes(X, rng.integers(2, size=n) - 1)


def test_few_copies_are_not_worth_a_note() -> None:
    rng = np.random.default_rng(3)
    rows = np.concatenate([np.arange(N), np.arange(8)])
    assert not notes(table("measured", rng)[rows], np.repeat([-1, 0], [100, N - 92]))
    assert notes(table("measured", rng)[rows], np.repeat([-1, 0], [N - 100, 108]))


IDS = {
    "id": True,
    "person_id": True,
    "Patient ID": True,
    "uuid": True,
    "paid": False,
    "width": False,
    "bid_price": False,
}


@pytest.mark.parametrize("name", IDS)
def test_ids_are_columns_with_such_names(name: str) -> None:
    rng = np.random.default_rng(4)
    person = rng.permutation(np.repeat(np.arange(N // 4), 4))
    X, part = (
        table("measured", rng).with_columns(pl.Series(name, person)),
        rng.integers(2, size=N) - 1,
    )
    shared = sum(bool((part[person == one] == -1).any()) for one in person[part == 0])
    expected = {"column": name, "repeated": shared, "rows": int((part == 0).sum())}
    assert [note.facts for note in notes(X, part)] == ([expected] if IDS[name] else [])
    # A column that the caller calls an id is one, whatever its name.
    given = notes(X.drop(name), part, ids={"whoever": person})
    assert [note.facts["column"] for note in given] == ["whoever"]


@pytest.mark.parametrize("code", [np.arange(N), np.arange(N) % 3], ids=["distinct", "categories"])
def test_ids_that_identify_rows_or_categories_raise_no_alarm(code: Any) -> None:
    rng = np.random.default_rng(5)
    X = table("measured", rng).with_columns(state_id=pl.Series(code))
    assert not notes(X, rng.integers(2, size=N) - 1)


def test_features_that_are_no_columns_are_left_alone() -> None:
    part = np.arange(60) % 2
    named: dict[str, Any] = {
        "regression": False,
        "criterion": "statistical_parity",
        "contrast": "pairs",
    }
    for X in (csr_array(np.ones((60, 3))), np.ones((60, 2, 2))):
        assert not list(repeat_notes(data_set(X, part, part, None, **named), part))


def test_a_frontier_reports_copies_unless_clusters_keep_them_together() -> None:
    rng = np.random.default_rng(6)
    rows = np.concatenate([np.arange(400), np.arange(200)])
    a = rng.integers(2, size=400)
    X = rng.normal(size=(400, 2)) + a[:, None]
    y = (X.sum(1) + rng.normal(size=400) > 1).astype(int)
    given = {"sensitive_features": a[rows], "strengths": [0], "random_state": 0}
    for test, clusters in product((0.25, None), (None, rows)):
        front = metrifair.frontier(
            FairClassifier(model="linear"),
            X[rows],
            y[rows],
            **given,
            test=test,
            clusters=clusters,
        )
        kinds = [note.kind for note in front.record.notes]
        repeated = [
            note.facts["rows"] for note in front.record.notes if note.kind == "repeated_rows"
        ]
        assert repeated == ([600] if clusters is None else [])
        assert ("clusters" in kinds) == (clusters is not None)
