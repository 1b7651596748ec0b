"""What does not take probabilities of groups refuses them in words; nothing ever trains on the most probable groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import metrifair
from metrifair import GroupProbabilities, baselines
from metrifair.errors import DataError
from metrifair.stacking import FairStackingClassifier, FairStackingRegressor

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(200, 2))
P = 1 / (1 + np.exp(-X[:, 0]))
NUMBER = X.sum(1) + RANDOM.normal(size=200)
Y = (NUMBER > 0).astype(int)
RACE = GroupProbabilities({"a": P, "b": 1 - P}, attribute="race")
REFUSED = r"probabilities of race, which this function does not accept|P\(race\) has probabilities"


def estimators() -> dict[str, Any]:
    boosters = ("FairLGBMClassifier", "FairLGBMRegressor", "FairXGBClassifier", "FairXGBRegressor")
    wrapped = {
        f"{name}, needs_group={asks}": getattr(metrifair, name)(LogisticRegression(), needs_group=asks)
        for name in ("BarycenterPostprocessor", "ThresholdPostprocessor")
        for asks in (True, False)
    }
    of_others = {
        name: getattr(baselines, name)(LinearRegression() if "Chzhen" in name else LogisticRegression())
        if name.endswith("Postprocessor")
        else getattr(baselines, name)()
        for name in baselines.__all__
    }
    stacks = {"stack": FairStackingClassifier(1.0, folds=2), "stack of numbers": FairStackingRegressor(1.0, folds=2)}
    return {name: getattr(metrifair, name)(1.0) for name in boosters} | wrapped | of_others | stacks


@pytest.mark.parametrize("name", estimators())
def test_an_estimator_that_needs_groups_refuses_probabilities(name: str) -> None:
    numeric = "Regressor" in name or "Chzhen" in name or "numbers" in name
    with pytest.raises(DataError, match=REFUSED):
        estimators()[name].fit(X, NUMBER if numeric else Y, sensitive_features=RACE)
