"""Where a feature's zero lies and what unit it is counted in change nothing: years, cents and timestamps fit alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone

from metrifair import frontier
from metrifair.errors import DataError
from metrifair.estimators import FairClassifier, FairRegressor, fit_stack
from metrifair.problem.samples import Comparison, Samples
from metrifair.problem.tasks import BINARY
from metrifair.training import Schedule, train, weighted_moments
from metrifair.training.models import Network
from metrifair.training.objective import Objective
from metrifair.training.scaling import Moments, Scaling, in_units

Floats = NDArray[np.float64]

N = 240
RNG = np.random.default_rng(3)
A = RNG.integers(2, size=N)
X = np.round(1024 * (RNG.normal(size=(N, 3)) + 0.8 * A[:, None])) / 1024  # so few bits that any shift leaves them all
Y = (X.sum(1) + RNG.normal(size=N) > 1.2).astype(int)
AMOUNT = X.sum(1) + RNG.normal(size=N)

UNITS = {
    "years": (2e4, 1.0),
    "timestamps": (1e9, 1.0),
    "cents": (1e6, 1e2),
    "small and far": (-1e9, 1e-3),
    "large": (0.0, 1e6),
    "tiny": (1e6, 1e-12),
}


def moved(x: Floats, units: str) -> Floats:
    """Every second feature with another zero, and in another unit."""
    shift, scale = UNITS[units]
    return np.where(np.arange(x.shape[1]) % 2 == 0, (x + shift) * scale, x)


class Small(torch.nn.Module):
    """A network of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.layers(x)
        return output


def output(model: Any, x: Floats) -> Floats:
    found: Floats = model.predict(x) if isinstance(model, FairRegressor) else model.decision_function(x)
    return found


def by_fit(model: Any, x: Floats, y: Any) -> list[Floats]:
    return [output(model.fit(x, y, sensitive_features=A), x)]


def by_stream(model: Any, x: Floats, y: Any) -> list[Floats]:
    for chunk in np.array_split(np.arange(N), 5):
        model.partial_fit(x[chunk], y[chunk], sensitive_features=A[chunk])
    return [output(model, x)]


def by_both(model: Any, x: Floats, y: Any) -> list[Floats]:
    half = N // 2
    model.fit(x[:half], y[:half], sensitive_features=A[:half])
    return [output(model.partial_fit(x[half:], y[half:], sensitive_features=A[half:]), x)]


def by_stack(model: Any, x: Floats, y: Any) -> list[Floats]:
    fits = fit_stack(model, x, y, strengths=[0.0, 2.0], seeds=[0, 5], sensitive_features=A)
    return [output(one, x) for one in fits]


def by_frontier(model: Any, x: Floats, y: Any) -> list[Floats]:
    front = frontier(model, x, y, sensitive_features=A, strengths=[0, 1.0])
    return [output(one, x) for one in front.models] + [np.array([point.accuracy for point in front.points])]


WAYS: dict[str, Callable[[Any, Floats, Any], list[Floats]]] = {
    "fit": by_fit,
    "partial_fit": by_stream,
    "fit, then partial_fit": by_both,
    "stack": by_stack,
    "frontier": by_frontier,
}
OPTIONS: dict[str, Any] = {"epochs": 8, "learning_rate": 0.02, "random_state": 0, "device": "cpu"}
MODELS: dict[str, tuple[Any, Any]] = {
    "linear": (FairClassifier(1.0, model="linear", **OPTIONS), Y),
    "network": (FairClassifier(1.0, hidden=(6,), **OPTIONS), Y),
    "module": (FairClassifier(1.0, model=Small(), **OPTIONS), Y),
    "regressor": (FairRegressor(1.0, hidden=(6,), **OPTIONS), AMOUNT),
}


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", ["auto", 40], ids=["full batch", "minibatch"])
def test_units_of_the_features_change_nothing(model: str, size: Any, units: str) -> None:
    """Each way of training; single precision alone, from other roundings, explains 1e-4 but not the 1e-2 of a cast."""
    estimator, y = MODELS[model]
    for name, way in WAYS.items():
        plain, other = (
            way(clone(estimator).set_params(batch_size=size if size != "auto" or "partial" not in name else 16), x, y)
            for x in (X, moved(X, units))
        )
        for one, again in zip(plain, other, strict=True):
            np.testing.assert_allclose(again, one, rtol=0, atol=2e-4, err_msg=name)
        assert all(np.ptp(one) > 1e-3 for one in plain[:1])  # and something was learnt


@pytest.mark.parametrize("size", [30, 400], ids=["minibatch", "full batch"])
def test_seeds_with_rows_of_their_own_do_not_see_the_units_either(size: int) -> None:
    """One seed's rows hold a value far out, which must not cost the others their digits."""
    far = X.copy()
    far[7, 0] = 2.0**40
    cell = torch.as_tensor(A)
    alike = (cell == cell[7]).nonzero()[:, 0]
    without = (int(alike[-1]), 7, 7)  # each seed has as many rows of a cell as the others
    rows = [torch.arange(N)[torch.arange(N) != row] for row in without]

    def run(x: Floats, rows: list[torch.Tensor], seeds: list[int]) -> list[Floats]:
        data = Samples(torch.as_tensor(x), torch.as_tensor(Y.astype(float)), cell, torch.ones(N))
        objective = Objective(BINARY, (Comparison((0,), (1,)),))
        schedule = Schedule(size, epochs=6, learning_rate=0.02)
        found = train(data, Network(3, (5,)), objective, strengths=[1.0], seeds=seeds, schedule=schedule, rows=rows)
        return [np.delete(found.predictor(s, 0).output(x), 7) for s in range(len(seeds))]

    together = run(far, rows, [0, 1, 2])
    for seed, (one, own) in enumerate(zip(together, rows, strict=True)):
        (alone,) = run(far, [own], [seed])
        np.testing.assert_allclose(one, alone, rtol=0, atol=1e-4 if size == 30 else 1e-9)
    for one, again in zip(together, run(moved(far, "years"), rows, [0, 1, 2]), strict=True):
        np.testing.assert_allclose(again, one, rtol=0, atol=1e-4 if size == 30 else 1e-7)


def of_a_stream(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    zero = torch.zeros(1, dtype=torch.float64)
    scaling = Moments(zero[0], zero, zero).with_samples(x, weight).scaling
    return scaling.mean[0], scaling.scale[0]


@pytest.mark.parametrize("moments", [weighted_moments, of_a_stream])
def test_moments_keep_their_digits_far_from_zero(moments: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Against whole numbers, which Python adds exactly."""
    steps = RNG.integers(0, 1000, 20_000)
    x, weight = torch.as_tensor(steps + 10**12).double().unsqueeze(1), torch.as_tensor(RNG.integers(1, 9, 20_000) / 8)
    mean, scale = moments(x, weight)
    exact = sum(int(step) * int(8 * own) for step, own in zip(steps, weight, strict=True)) / float(8 * weight.sum())
    assert abs(float(mean[0] - 10**12) - exact) <= 2**-11  # a few of the last digits there
    spread = np.sqrt(np.average((steps - exact) ** 2, weights=weight))
    assert float(scale[0]) == pytest.approx(spread, rel=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1 + 0.2, -1e12, 1e-300])
def test_a_constant_has_unit_spread_wherever_it_lies(value: float) -> None:
    weight = torch.as_tensor(RNG.uniform(0.1, 2, 999))
    mean, scale = weighted_moments(torch.full((999, 1), value, dtype=torch.float64), weight)
    assert scale[0] == 1.0
    assert float(mean[0]) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("size", ["auto", 40], ids=["full batch", "minibatch"])
def test_a_feature_whose_squares_overflow_is_refused(size: Any) -> None:
    wide = X.copy()
    wide[::2, 1] = 1e200
    with pytest.raises(DataError) as caught:
        FairClassifier(0.0, batch_size=size, **OPTIONS).fit(wide, Y)
    assert str(caught.value) == "column 1 of X spreads so far that its square is infinite; rescale it"


def test_a_target_whose_squares_overflow_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        FairRegressor(0.0, **OPTIONS).fit(X, 1e200 * AMOUNT)
    assert str(caught.value) == "y spreads so far that its square is infinite; rescale it"


def test_rounding_comes_last_and_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.as_tensor(moved(X, "timestamps"))
    units = Scaling(*(part.unsqueeze(0) for part in weighted_moments(x, torch.ones(N))))
    expected = ((x - units.mean) / units.scale).float()
    monkeypatch.setattr("metrifair.training.scaling._ROWS_AT_ONCE", 7)
    assert torch.equal(in_units(x, units, torch.device("cpu"), torch.float32), expected)
