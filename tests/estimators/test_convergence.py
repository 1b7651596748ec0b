"""Whether training has come to an end: exact constants, long and short trainings, few rows of
many.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from metrifair import FairClassifier, FairRegressor, PenaltyOptions
from metrifair.errors import MetrifairWarning
from tests.seams.estimators import Slack, convergence, training_slack
from tests.seams.training import thin_rows

RNG = np.random.default_rng(0)
N = 300
GROUP = RNG.integers(2, size=N)
X = RNG.normal(size=(N, 3)) + GROUP[:, None]
TARGET = X @ [1.0, -0.5, 0.3] + RNG.normal(0, 0.5, N)
CASES: dict[str, tuple[Any, Any]] = {
    "two classes": (FairClassifier, np.where(TARGET > 1, "yes", "no")),
    "three classes": (FairClassifier, np.digitize(TARGET, [0, 1])),
    "a number": (FairRegressor, TARGET),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_a_long_training_is_finished_and_a_short_one_is_not(case: str, strength: float) -> None:
    kind, y = CASES[case]
    found = {}
    for epochs in (2, 400):
        model = kind(strength, model="mlp", epochs=epochs, learning_rate=0.01, random_state=0)
        model.fit(X, y, sensitive_features=GROUP)
        found[epochs] = training_slack(model, X, y, sensitive_features=GROUP)
        assert found[epochs].attainable <= found[epochs].objective
        # all outputs times 0 is a constant
        assert found[epochs].attainable <= found[epochs].constant
    assert found[2].unfinished
    assert not found[400].unfinished
    assert found[400].objective < found[2].objective


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("settings", [{"model": "linear"}, {"epochs": 3}], ids=["solver", "steps"])
def test_a_fit_that_ends_at_the_constant_says_so_and_what_to_do(
    case: str, settings: dict[str, Any]
) -> None:
    kind, y = CASES[case]
    told = (
        "Lower the strength, or train for more than 3 epochs"
        if "epochs" in settings
        else "Lower the strength$"
    )
    with pytest.warns(
        MetrifairWarning, match=f"the same for everyone: at strength 1e\\+06 .* {told}"
    ):
        model = kind(1e6, random_state=0, **settings).fit(X, y, sensitive_features=GROUP)
    predicted = model.predict(X) if kind is FairRegressor else model.predict_proba(X)
    assert np.ptp(predicted, axis=0).max() < 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = kind(0.1, random_state=0, model="linear").fit(X, y, sensitive_features=GROUP)
    assert (
        np.ptp(model.predict(X) if kind is FairRegressor else model.predict_proba(X), axis=0).max()
        > 0.1
    )


def test_the_constant_is_the_entropy_of_the_base_rate_or_the_variance() -> None:
    _, y = CASES["two classes"]
    model = FairClassifier(1.0, model="mlp", epochs=2, random_state=0).fit(
        X, y, sensitive_features=GROUP
    )
    rate = (y == "yes").mean()
    entropy = -rate * np.log(rate) - (1 - rate) * np.log(1 - rate)
    assert training_slack(model, X, y, sensitive_features=GROUP).constant == pytest.approx(
        entropy, abs=1e-6
    )
    line = FairRegressor(1.0, model="mlp", epochs=2, random_state=0).fit(
        X, TARGET, sensitive_features=GROUP
    )
    assert training_slack(line, X, TARGET, sensitive_features=GROUP).constant == pytest.approx(
        1.0, abs=1e-6
    )


def test_weights_are_repetitions() -> None:
    rng = np.random.default_rng(99)
    _, y = CASES["two classes"]
    weight = rng.integers(1, 4, N)
    rows = np.repeat(np.arange(N), weight)
    model = FairClassifier(0.0, model="mlp", epochs=5, random_state=0).fit(
        X, y, sensitive_features=GROUP
    )
    weighted = training_slack(model, X, y, sensitive_features=GROUP, sample_weight=weight)
    repeated = training_slack(model, X[rows], y[rows], sensitive_features=GROUP[rows])
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)
    assert weighted.constant == pytest.approx(repeated.constant, rel=1e-6)


def test_a_group_that_was_too_small_to_train_on_is_left_out_here_too() -> None:
    _, y = CASES["two classes"]
    tribe = np.where(np.arange(N) == 7, "one", np.where(GROUP == 1, "many", "more"))
    with pytest.warns(MetrifairWarning):
        model = FairClassifier(
            1.0,
            model="mlp",
            epochs=2,
            random_state=0,
            penalty=PenaltyOptions(estimate="population"),
        ).fit(X, y, sensitive_features=tribe)
    assert training_slack(model, X, y, sensitive_features=tribe).unfinished


def test_of_many_rows_some_of_each_cell_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence, "_WORK", 40)
    cell = torch.tensor([0] * 90 + [2] * 9 + [1])
    rows = thin_rows(cell, 100, 40)
    counts = torch.bincount(cell[rows])
    assert counts.tolist()[1] == 1
    assert 30 <= counts.tolist()[0] <= 32
    assert 3 <= counts.tolist()[2] <= 5
    kind, y = CASES["two classes"]
    model = kind(1.0, model="mlp", epochs=2, random_state=0).fit(X, y, sensitive_features=GROUP)
    assert training_slack(model, X, y, sensitive_features=GROUP).unfinished


@pytest.mark.parametrize(
    ("slack", "unfinished"),
    [
        (Slack(0.50, 0.49, 0.69), False),  # networks are stopped early, and leave a little
        (Slack(0.60, 0.50, 0.69), True),
        (Slack(0.72, 0.69, 0.69), True),  # worse than a constant on the rows that taught it
        (Slack(0.50, float("nan"), 0.69), False),
    ],
)
def test_much_is_five_percent_of_the_constant_s(slack: Slack, *, unfinished: bool) -> None:
    assert slack.unfinished is unfinished
