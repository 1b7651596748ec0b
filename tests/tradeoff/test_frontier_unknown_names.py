"""Warnings of groups whose names say that they are not known."""

from __future__ import annotations

import warnings

import numpy as np

from metrifair import FairClassifier, frontier


def test_a_frontier_and_its_choice_warn_once() -> None:
    draw = np.random.default_rng(0)
    groups = np.array(["a", "b", "unknown"])[draw.integers(0, 3, 300)]
    X = draw.normal(size=(300, 2))
    y = (X[:, 0] + draw.normal(size=300) > 0).astype(int)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        front = frontier(
            FairClassifier(model="linear"),
            X,
            y,
            sensitive_features=groups,
            strengths=[0.0, 1.0],
            random_state=0,
        )
        front.select(max_unfairness=1.0)
    told = [str(item.message) for item in caught if "is not known" in str(item.message)]
    rows = int((groups == "unknown").sum())
    assert len(told) == 1
    assert f"{rows} of 300 rows" in told[0]
