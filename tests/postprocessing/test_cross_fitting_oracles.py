"""Predictions by models that have not seen their rows, and ties, against loops over rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from tests.seams.postprocessing import (
    TrainingRows,
    assign_folds,
    fit_group_model,
    out_of_fold,
    overfits,
    postprocessor,
    with_ties,
)

reproducible = settings(deadline=None, derandomize=True, database=None)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_no_row_is_predicted_by_a_model_that_has_seen_it(count: int) -> None:
    rows, labels = np.arange(23), np.arange(23) % 2
    folds = assign_folds(count, labels, rows % 3, seed=0)
    assert set(folds) == set(range(count))

    def predict(seen: frozenset[int], own: np.ndarray) -> np.ndarray:
        return np.array([[one in seen, len(seen), one] for one in own], dtype=float)

    found = out_of_fold(lambda own: frozenset(own.tolist()), predict, folds)
    for row in rows:
        others = int((folds != folds[row]).sum()) if count > 1 else len(rows)
        assert found[row].tolist() == [count == 1, others, row]


@pytest.mark.parametrize("count", [2, 3])
def test_a_group_model_is_calibrated_on_rows_that_it_has_not_seen(count: int) -> None:
    """One that knows its rows by heart and nothing else is as unsure of them as of others."""
    generator = np.random.default_rng(0)
    features, group = generator.normal(size=(120, 2)), np.arange(120) % 2
    given_rows = TrainingRows(features, group, None)
    folds = assign_folds(count, group, group, seed=0)
    model, chances = fit_group_model(
        given_rows, KNeighborsClassifier(1), cells=2, weight=np.ones(120), folds=folds
    )
    assert model.model.score(features, group) == 1
    assert abs(np.mean(chances.argmax(1) == group) - 0.5) < 0.2
    assert chances.max() < 0.9


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("closer", [0.5, 0.9, 1.1, 2.0])
def test_scores_overfit_from_a_share_of_the_variation_on(closer: float, weighted: bool) -> None:
    generator = np.random.default_rng(1)
    truth, unseen = generator.normal(3.0, 1.0, 40), generator.normal(size=40)
    weight = generator.integers(1, 5, 40).astype(float) if weighted else np.ones(40)
    mean = sum(w * t for w, t in zip(weight, truth, strict=True)) / sum(weight)
    own = unseen + closer * postprocessor._OVERFIT * (truth - mean)
    assert overfits(own, unseen, truth, weight) == (closer > 1)


def expected_ties(own: Sequence[float], unseen: Sequence[float]) -> list[float]:
    return [
        mine if list(own).count(mine) > 1 else other
        for mine, other in zip(own, unseen, strict=True)
    ]


@reproducible
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=12))
def test_tied_rows_keep_the_score_of_the_final_model(values: list[int]) -> None:
    own, unseen = [one / 4 for one in values], [10.0 + place for place in range(len(values))]
    assert with_ties(np.array(own), np.array(unseen)).tolist() == expected_ties(own, unseen)
