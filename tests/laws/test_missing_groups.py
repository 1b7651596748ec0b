"""`fit` warns once of rows without a group, in the words of a frontier's note."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from metrifair import (
    BarycenterPostprocessor,
    FairClassifier,
    FairLGBMClassifier,
    frontier,
)
from metrifair.stacking import FairStackingClassifier

N = 200
MISSING = 20
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
LABEL = (X.sum(1) + RNG.normal(size=N) > 0).astype(int)
SEX = RNG.choice(["f", "m"], N).astype(object)
SEX[:MISSING] = None
TEXT = (
    f"sex is missing in {MISSING} of {N} rows. They are used for training, and comparisons of sex "
    "exclude them"
)
LINEAR = FairClassifier(model="linear", random_state=0)
MODELS = {
    "FairClassifier": LINEAR,
    "FairLGBMClassifier": FairLGBMClassifier(n_estimators=3),
    "FairStackingClassifier": FairStackingClassifier(1.0, random_state=0),
    "BarycenterPostprocessor": BarycenterPostprocessor(LogisticRegression()),
    "of a fair model": BarycenterPostprocessor(LINEAR),
}


def warned(model: Any, sex: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, LABEL, sensitive_features={"sex": sex})
    return [str(warning.message) for warning in caught if "missing" in str(warning.message)]


@pytest.mark.parametrize("name", MODELS)
def test_fit_warns_once(name: str) -> None:
    assert warned(MODELS[name], SEX) == [TEXT]
    assert warned(MODELS[name], np.where(np.arange(N) % 2, "f", "m")) == []


def test_a_frontier_notes_it_and_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        front = frontier(
            LINEAR, X, LABEL, sensitive_features={"sex": SEX}, strengths=[0, 1], random_state=0
        )
    assert f"{TEXT}." in front.summary
