"""Fair KDE: worked numbers, properties of the penalty, and what training with it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair.baselines import FairKDEClassifier
from metrifair.errors import DataError
from metrifair.estimators import FairClassifier
from tests.flat_options import with_penalty
from tests.seams.baselines import SmoothedRates, compared_cells, members, smoothed_acceptance
from tests.seams.training import BINARY, Network

SCORES, GROUPS = (0.2, 0.4, 0.6, 0.9), (0, 0, 1, 1)


def simulated(n: int = 240, *, groups: int = 2, seed: int = 0) -> tuple[Any, Any, Any]:
    """Features with the group among them, labels that depend on it, and the group."""
    rng = np.random.default_rng(seed)
    a = rng.integers(groups, size=n)
    x = np.c_[rng.normal(size=(n, 2)) + 0.8 * a[:, None], a]
    return x, (x[:, :2].sum(1) + rng.normal(size=n) > 0.8).astype(int), a


def gap(predicted: Any, a: Any) -> float:
    return float(abs(predicted[a == 1].mean() - predicted[a == 0].mean()))


def kde_penalty(
    scores: Any,
    a: Any,
    *,
    y: Any = None,
    criterion: str = "statistical_parity",
    bandwidth: float = 0.1,
    delta: float = 1.0,
    groups: str = "all",
) -> Any:
    """What training adds to the loss, of scores instead of outputs."""
    score = torch.as_tensor(scores, dtype=torch.float64)
    cells = compared_cells(criterion, np.unique(a).tolist())
    rows = torch.arange(len(score))
    objective = SmoothedRates(
        BINARY,
        cells.comparisons,
        estimate="batch",
        bandwidth=bandwidth,
        threshold=0.5,
        delta=delta,
        tail="exact",
        cell=torch.as_tensor(cells.of(np.asarray(a)[:, None], labels=y)),
        member=members(cells, len(np.unique(a)), groups=groups),
    )
    return objective.cost(score[None, None], rows[None], torch.ones(1, 1, len(score)).double())[
        0, 0
    ]


# --- the penalty
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("exact", (0.001350, 0.158655, 0.841345, 0.999968)),
        ("approx", (0.0015286, 0.1394569, 0.8605431, 0.9999634)),
    ],
)
def test_smoothed_acceptance_of_the_worked_example(tail: str, expected: tuple[float, ...]) -> None:
    found = smoothed_acceptance(torch.tensor(SCORES, dtype=torch.float64), tail=tail)
    assert found.numpy() == pytest.approx(expected, abs=1e-6)


def test_penalty_and_gradient_of_the_worked_example() -> None:
    accepted = smoothed_acceptance(torch.tensor(SCORES, dtype=torch.float64), tail="exact").numpy()
    rates = accepted[:2].mean(), accepted[2:].mean(), accepted.mean()
    assert rates == pytest.approx((0.0800026, 0.9206565, 0.5003296), abs=1e-7)
    score = torch.tensor(SCORES, dtype=torch.float64, requires_grad=True)
    value = kde_penalty(score, GROUPS, groups="first")
    value.backward()
    assert value.item() == pytest.approx(0.0883374, abs=1e-7)
    assert score.grad is not None
    assert score.grad.numpy() == pytest.approx(
        (-0.0046571, -0.2542671, 0.2542671, 0.0001406), abs=1e-7
    )
    # groups of one size
    assert float(kde_penalty(SCORES, GROUPS)) == pytest.approx(2 * 0.0883374, abs=2e-7)


def test_the_approximate_tail_enters_the_value_but_not_the_slope() -> None:
    score = torch.tensor([*SCORES, 0.5, 0.4999], dtype=torch.float64, requires_grad=True)
    accepted = smoothed_acceptance(score, tail="approx")
    assert accepted[4].item() == 0.5
    assert accepted[5].item() == pytest.approx(0.304, abs=1e-3)  # the formula jumps there
    accepted.sum().backward()
    assert score.grad is not None
    normal = torch.distributions.Normal(0.5, 0.1).log_prob(score.detach()).exp()
    # the law has single precision
    torch.testing.assert_close(score.grad, normal.double(), rtol=1e-5, atol=1e-6)


def by_hand(
    score: Any, a: Any, y: Any, criterion: str, delta: float, *, first: bool = False
) -> float:
    """Loops over sets and groups, with hard-coded formulas."""

    def rate(rows: Any) -> float:
        return float(torch.special.ndtr((torch.as_tensor(score[rows]) - 0.5) / 0.1).mean())

    sets = {
        "statistical_parity": [y >= 0],
        "equal_opportunity": [y == 1],
        "equalized_odds": [y == 0, y == 1],
    }
    total = 0.0
    for rows in sets[criterion]:
        for group in [0] if first else np.unique(a):
            off = abs(rate(rows & (a == group)) - rate(rows))
            total += off**2 / 2 if off < delta else delta * (off - delta / 2)
    return total


@pytest.mark.pairwise
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("criterion", ["statistical_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("delta", [1.0, 0.05])
def test_penalty_against_loops(criterion: str, groups: int, delta: float) -> None:
    rng = np.random.default_rng(groups)
    a, y, score = rng.integers(groups, size=60), rng.integers(2, size=60), rng.random(60)
    found = kde_penalty(score, a, y=y, criterion=criterion, delta=delta)
    assert float(found) == pytest.approx(by_hand(score, a, y, criterion, delta), rel=1e-9)
    only = kde_penalty(score, a, y=y, criterion=criterion, delta=delta, groups="first")
    assert float(only) == pytest.approx(
        by_hand(score, a, y, criterion, delta, first=True), rel=1e-9
    )
    assert torch.autograd.gradcheck(
        lambda s: kde_penalty(s, a, y=y, criterion=criterion, delta=delta),
        torch.tensor(score, requires_grad=True),
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_equal_scores_in_both_groups_cost_nothing(values: list[float]) -> None:
    score = torch.tensor([*values, *reversed(values)], dtype=torch.float64, requires_grad=True)
    value = kde_penalty(score, [0] * len(values) + [1] * len(values))
    value.backward()
    assert score.grad is not None
    assert value.item() == pytest.approx(0, abs=1e-30)
    assert float(score.grad.abs().max()) == pytest.approx(0, abs=1e-14)


def test_a_narrow_kernel_gives_hard_rates() -> None:
    score, a = np.array([0.1, 0.6, 0.7, 0.8, 0.4]), np.array([0, 0, 0, 1, 1])
    off = (2 / 3 - 3 / 5) ** 2 / 2 + (1 / 2 - 3 / 5) ** 2 / 2
    assert float(kde_penalty(score, a, bandwidth=1e-6)) == pytest.approx(off, abs=1e-12)


# --- training
# -----------------------------------------------------------------------------------------------------

QUICK: dict[str, Any] = {
    "hidden": (4,),
    "epochs": 8,
    "learning_rate": 0.02,
    "random_state": 3,
    "device": "cpu",
}


@pytest.mark.parametrize("batch_size", [64, 1000], ids=["batches", "whole"])
def test_strength_0_is_plain_training_bit_for_bit(batch_size: int) -> None:
    x, y, a = simulated()
    # Our networks begin near the constant and cool down; without hidden layers, at a given decay,
    # nothing differs.
    same = QUICK | {"hidden": (), "batch_size": batch_size, "learning_rate_decay": 1.0}
    plain = FairClassifier(0.0, **with_penalty(**same)).fit(x, y, sensitive_features=a)
    fair = FairKDEClassifier(0.0, **same).fit(x, y, sensitive_features=a)
    for name, value in plain.predictor_.parameters.items():
        assert torch.equal(value, fair.predictor_.parameters[name]), name


def plain_loop(x: Any, y: Any, penalty: Callable[[Any], Any], strength: float) -> Any:
    """Features standardized by NumPy, (1 - strength) x CE + strength x penalty, PyTorch's Adam."""
    start = Network(3).initial(1)
    weight, bias = (start[name].clone().requires_grad_() for name in ("weight0", "bias0"))
    features = torch.as_tensor((x - x.mean(0)) / x.std(0))
    target = torch.as_tensor(y, dtype=torch.float64)
    adam = torch.optim.Adam([weight, bias], lr=0.05)
    for _ in range(20):
        adam.zero_grad()
        output = features @ weight[0] + bias[0, 0]
        entropy = torch.nn.functional.binary_cross_entropy_with_logits(output, target)
        ((1 - strength) * entropy + strength * penalty(output.sigmoid())).backward()
        adam.step()
    return (features @ weight[0] + bias[0, 0]).detach().numpy()


LOOP: dict[str, Any] = {
    "model": "linear",
    "epochs": 20,
    "learning_rate": 0.05,
    "random_state": 1,
    "device": "cpu",
}


@pytest.mark.parametrize("criterion", ["statistical_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("groups", ["all", "first"])
def test_full_batches_follow_a_plain_pytorch_loop(criterion: str, groups: Any) -> None:
    x, y, a = simulated(90, groups=3)
    fitted = FairKDEClassifier(0.7, criterion=criterion, groups=groups, **LOOP).fit(
        x, y, sensitive_features=a
    )
    expected = plain_loop(
        x, y, lambda score: kde_penalty(score, a, y=y, criterion=criterion, groups=groups), 0.7
    )
    np.testing.assert_allclose(fitted.decision_function(x), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("criterion", ["statistical_parity", "equal_opportunity"])
@pytest.mark.parametrize("strength", [0.9, 1.5])
@pytest.mark.filterwarnings("ignore:strength 1.5")
def test_the_reference_has_the_first_group_the_formula_and_the_rate_of_all_rows(
    criterion: str, strength: float
) -> None:
    x, y, a = simulated(90)
    first = (a == 0) & (y == 1) if criterion == "equal_opportunity" else a == 0

    def penalty(score: Any) -> Any:
        accepted = smoothed_acceptance(score, tail="approx")
        return (accepted[torch.as_tensor(first)].mean() - accepted.mean()).square() / 2

    model = FairKDEClassifier(strength, criterion=criterion, variant="reference", **LOOP)
    found = model.fit(x, y, sensitive_features=a).decision_function(x)
    np.testing.assert_allclose(found, plain_loop(x, y, penalty, strength), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("criterion", ["statistical_parity", "equal_opportunity", "equalized_odds"])
def test_strength_makes_groups_alike(criterion: str) -> None:
    x, y, a = simulated(600)
    among = {
        "statistical_parity": [y >= 0],
        "equal_opportunity": [y == 1],
        "equalized_odds": [y == 0, y == 1],
    }
    gaps = []
    for strength in (0.0, 0.95):
        model = FairKDEClassifier(
            strength, criterion=criterion, learning_rate=0.02, random_state=0, device="cpu"
        )
        predicted = model.fit(x, y, sensitive_features=a).predict(x)
        gaps.append(max(gap(predicted[rows], a[rows]) for rows in among[criterion]))
    assert gaps[0] > 0.12
    assert gaps[1] < 0.06


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8])
def test_rows_are_accepted_from_the_threshold_upwards(threshold: float) -> None:
    x, y, a = simulated()
    model = FairKDEClassifier(0.5, threshold=threshold, **QUICK).fit(
        x, 2 * y - 1, sensitive_features=a
    )
    probability = model.predict_proba(x)[:, 1]
    assert model.predict(x).tolist() == np.where(probability >= threshold, 1, -1).tolist()
    assert (model.predict(x) != np.where(probability >= 0.5, 1, -1)).any() == (threshold != 0.5)


def test_strengths_above_1_are_for_the_reference_only() -> None:
    x, y, a = simulated(60)
    for strength in (1.5, -0.1, float("nan"), "much"):
        with pytest.raises(DataError, match="strength"):
            FairKDEClassifier(strength, **QUICK).fit(x, y, sensitive_features=a)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="raised"):
        FairKDEClassifier(1.5, variant="reference", **QUICK).fit(x, y, sensitive_features=a)


def test_batches_of_the_reference_always_hold_every_group() -> None:
    """Two positive rows of the first group among 200: almost every batch of 8 lacks them, and
    is dealt anew.
    """
    x, y, a = simulated(200)
    y[a == 0] = 0
    y[np.flatnonzero(a == 0)[:2]] = 1
    model = FairKDEClassifier(
        0.5,
        criterion="equal_opportunity",
        variant="reference",
        groups="all",
        batch_size=8,
        hidden=(2,),
        epochs=2,
        random_state=0,
    ).fit(x, y, sensitive_features=a)
    assert np.isfinite(model.decision_function(x)).all()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"delta": -1}, "delta"),
        ({"threshold": 0}, "threshold"),
        ({"threshold": 1}, "threshold"),
        ({"tail": "fat"}, "tail"),
        ({"groups": "second"}, "groups"),
        ({"variant": "paper"}, "variant"),
        ({"criterion": "risk_parity"}, "criterion"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"model": "forest"}, "model"),
    ],
)
def test_fit_refuses(options: dict[str, Any], named: str) -> None:
    x, y, a = simulated(40)
    with pytest.raises(DataError, match=named):
        FairKDEClassifier(**{**QUICK, **options}).fit(x, y, sensitive_features=a)


def test_an_empty_cell_is_named() -> None:
    x, y, a = simulated(40)
    y[a == 1] = 0
    with pytest.raises(DataError, match="group 1"):
        FairKDEClassifier(criterion="equal_opportunity", **QUICK).fit(x, y, sensitive_features=a)
