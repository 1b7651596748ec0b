"""Boosters on attributes that are numbers; many rows counted by levels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from metrifair import FairLGBMClassifier, FairXGBRegressor
from metrifair.errors import MetrifairWarning
from metrifair.metrics import energy_dependence
from tests.seams.boosting import objective
from tests.seams.metrics import dependence_slopes, dependence_value
from tests.seams.problem import Dependence, Sides


def ages(n: int):
    generator = np.random.default_rng(0)
    age = generator.integers(18, 90, n).astype(float)
    X = generator.normal(size=(n, 3))
    X[:, 0] += (age - 50) / 20
    return X, age, X.sum(1) + generator.normal(size=n)


@pytest.mark.parametrize("weighted", [False, True])
def test_levels_are_exact_for_scores_on_the_grid(weighted: bool) -> None:
    generator = np.random.default_rng(0)
    places = np.append(generator.integers(2**13, size=600), [0, 2**13 - 1])
    a = np.append(np.round(places[:-2] / 300 + generator.normal(size=600) * 9) % 72, [0, 71])
    scores, values = torch.as_tensor(places / (2**13 - 1)), torch.as_tensor(a)[:, None]
    weights = torch.as_tensor(generator.random(602)) if weighted else None
    one = Dependence((0,), scale=0.3)
    side = Sides(torch.arange(602), (602,), (), weights, torch.ones(1).double(), dependence=one)
    value, slopes = objective.leveled_dependence(side, values, "rows").at(scores.numpy())
    exact = {"values": values, "estimate": "rows"}
    assert value == pytest.approx(float(dependence_value(scores, side, **exact)), rel=1e-9)
    np.testing.assert_allclose(slopes, dependence_slopes(scores, side, **exact), atol=1e-12)


def test_many_values_are_cut_and_that_is_said() -> None:
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(5000, 1, generator=generator).double()
    scores = torch.sigmoid(a[:, 0] + torch.randn(5000, generator=generator))
    side = Sides(
        torch.arange(5000),
        (5000,),
        (),
        None,
        torch.ones(1).double(),
        dependence=Dependence((0,), scale=1.0),
    )
    with pytest.warns(
        MetrifairWarning,
        match="group is cut into 256 levels of about equal size: there are 5,000 rows",
    ):
        found = objective.leveled_dependence(side, a, "rows")
    exact = float(dependence_value(scores, side, values=a, estimate="rows"))
    assert found.at(scores.numpy())[0] == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("many", [10**9, 1])
def test_boosting_lowers_the_dependence(many: int, monkeypatch) -> None:
    monkeypatch.setattr(objective, "MANY_ROWS", many)
    X, age, target = ages(500)
    found = []
    for strength in (0, 5):
        model = FairLGBMClassifier(strength, n_estimators=30, verbose=-1, n_jobs=1, continuous=True)
        score = model.fit(X, (target > 0).astype(int), sensitive_features=age).predict_proba(X)[
            :, 1
        ]
        found.append(energy_dependence(score, age))
    assert found[1] < found[0] / 5


def test_boosting_a_regression_on_a_number() -> None:
    X, age, target = ages(400)
    model = FairXGBRegressor(5, n_estimators=30, n_jobs=1, continuous=True).fit(
        X, target, sensitive_features=age
    )
    assert energy_dependence(model.predict(X), age) < energy_dependence(target, age) / 5
