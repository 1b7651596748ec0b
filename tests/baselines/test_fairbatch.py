"""FairBatch: worked counts and moves, what batches hold, and what training with them does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_fairkde import gap, simulated

from metrifair.baselines import FairBatchClassifier
from metrifair.errors import DataError
from tests.seams.baselines import (
    Sampler,
    TrainingData,
    batch_counts,
    cell_losses,
    cyclic,
    update_shares,
)

SIZES = np.array([[20.0, 40.0], [30.0, 10.0]])  # (label, group)
CRITERIA = ["statistical_parity", "equal_opportunity", "equalized_odds"]


# --- counts and moves
# -----------------------------------------------------------------------------------------------


def test_worked_counts() -> None:
    start = np.array([2 / 3, 0.25])
    assert batch_counts(start, SIZES, 50).tolist() == [[10, 20], [15, 5]]
    more = update_shares(start, np.array([[0.5, 0.5], [0.2, 0.9]]), "equal_opportunity", 0.1)
    assert more.tolist() == pytest.approx([2 / 3, 0.35])
    assert batch_counts(more, SIZES, 50).tolist() == [[10, 20], [13, 7]]
    fewer = update_shares(start, np.array([[0.2, 0.9], [0.3, 0.5]]), "statistical_parity", 0.1)
    assert fewer.tolist() == pytest.approx([2 / 3 - 0.1, 0.25])
    assert batch_counts(fewer, SIZES, 50).tolist() == [[13, 17], [15, 5]]


@pytest.mark.parametrize(
    ("criterion", "losses", "moved"),
    [
        # the negative ones never move
        ("equal_opportunity", [[9.0, 0.0], [0.4, 0.1]], [0.0, -0.1]),
        ("equalized_odds", [[0.5, 0.4], [0.2, 0.9]], [0.0, 0.1]),
        ("equalized_odds", [[0.5, 1.4], [0.2, 0.9]], [0.1, 0.0]),
        ("equalized_odds", [[1.4, 0.5], [0.2, 0.9]], [-0.1, 0.0]),
        ("statistical_parity", [[0.5, 0.4], [0.9, 0.2]], [0.0, -0.1]),
        ("statistical_parity", [[0.2, 0.9], [0.5, 0.5]], [-0.1, 0.0]),
        ("statistical_parity", [[0.9, 0.2], [0.5, 0.5]], [0.1, 0.0]),  # against the larger loss
        # a tie moves the negative ones
        ("statistical_parity", [[0.9, 0.2], [0.7, 0.0]], [0.1, 0.0]),
    ],
)
def test_which_share_moves_where(criterion: str, losses: Any, moved: Any) -> None:
    found = update_shares(np.array([0.5, 0.5]), np.array(losses), criterion, 0.1)
    assert (found - 0.5).tolist() == pytest.approx(moved)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=2),
    st.lists(st.floats(0, 5), min_size=4, max_size=4),
    st.sampled_from(CRITERIA),
    st.floats(0, 1),
    st.lists(st.integers(1, 500), min_size=4, max_size=4),
    st.integers(4, 300),
)
def test_shares_stay_within_bounds_and_counts_near_the_batch_size(
    shares: Any, losses: Any, criterion: str, step: float, sizes: Any, batch_size: int
) -> None:
    cells = np.array(sizes, dtype=float).reshape(2, 2)
    moved = update_shares(np.array(shares), np.array(losses).reshape(2, 2), criterion, step)
    assert ((moved >= 0) & (moved <= 1)).all()
    for half_to_even in (False, True):
        counts = batch_counts(moved, cells, batch_size, half_to_even=half_to_even)
        assert counts.min() >= 0
        assert 1 <= counts.sum() <= batch_size + 2
    still = update_shares(np.array(shares), np.array(losses).reshape(2, 2), criterion, 0.0)
    assert still.tolist() == shares


def test_losses_of_cells_against_loops() -> None:
    rng = np.random.default_rng(0)
    y, a, output = rng.integers(2, size=50), rng.integers(2, size=50), rng.normal(size=50)
    member = np.array([[(y == k) & (a == g) for g in (0, 1)] for k in (0, 1)])
    score = 1 / (1 + np.exp(-output))
    for criterion in CRITERIA:
        found = cell_losses(
            torch.as_tensor(output),
            torch.as_tensor(member, dtype=torch.float64),
            torch.as_tensor(y),
            criterion,
        ).numpy()
        for k in (0, 1):
            for g in (0, 1):
                inside, likely = member[k, g], -np.log(score if k else 1 - score)
                expected = likely[inside].mean()
                if criterion == "statistical_parity":
                    expected = -np.log(score)[inside].sum() / (a == g).sum()
                assert found[k, g] == pytest.approx(expected)


def test_rows_come_in_shuffled_passes() -> None:
    own = torch.arange(100, 107)
    rows = cyclic(own, 3, 7, torch.Generator().manual_seed(0)).flatten().tolist()
    assert len(rows) == 21
    for start in (0, 7, 14):
        assert sorted(rows[start : start + 7]) == own.tolist()
    assert rows[:7] != rows[7:14]  # shuffled anew
    # more than there are: wraps around in a batch
    wide = cyclic(own, 10, 2, torch.Generator().manual_seed(0))
    assert wide.shape == (2, 10)
    assert set(wide[0].tolist()) == set(own.tolist())


def test_the_reference_goes_on_from_the_wrong_row() -> None:
    """Seven rows in threes: after (6, 0, 1) it should go on from 2, and goes on from 1, the
    number of leftovers.
    """
    own = torch.arange(7)
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(0))
    found = cyclic(own, 3, 5, generator, repeating=True)
    places = [[0, 1, 2], [3, 4, 5], [6, 0, 1], [1, 2, 3], [4, 5, 6]]
    assert found.tolist() == [order[place].tolist() for place in places]


def table(n: int, seed: int) -> TrainingData:
    x, y, a = simulated(n, seed=seed)
    return TrainingData(x, y, a, (0, 1), np.ones(n))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("reference", [False, True])
def test_every_row_of_a_batch_belongs_to_its_cell(criterion: str, reference: bool) -> None:
    rows = table(200, 0)
    sampler = Sampler(rows, batch_size=40, criterion=criterion, step=0.1, reference=reference)
    generators = [torch.Generator().manual_seed(0)]
    output = torch.randn(1, 1, 200, generator=torch.Generator().manual_seed(2))
    for epoch in range(12):
        drawn = sampler.draw(generators, lambda: output)
        assert drawn.rows.shape == (1, 5, 42)
        counts = batch_counts(sampler.shares, sampler.sizes, 40, half_to_even=reference)
        if not epoch and not reference:
            np.testing.assert_allclose(
                sampler.shares, sampler.sizes[..., 1] / sampler.sizes.sum(-1)
            )
        real = drawn.weight[0, 0] > 0
        assert int(real.sum()) == counts.sum()
        assert float(drawn.weight.sum()) == pytest.approx(42)  # the mean over real rows
        for batch in drawn.rows[0]:
            chosen = batch[real].numpy()
            for y in (0, 1):
                for a in (0, 1):
                    held = ((rows.y[chosen] == y) & (rows.group[chosen] == a)).sum()
                    assert held == counts[y, a]
    assert ((sampler.shares >= 0) & (sampler.shares <= 1)).all()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_reference_s_batches_are_those_of_the_authors_loop(criterion: str) -> None:
    """Their sampler, told again row by row: labels -1 and 1, losses of (tanh f + 1) / 2, moved
    before every epoch.
    """
    rows, size, step, epochs = table(60, 3), 20, 0.07, 8
    sampler = Sampler(rows, batch_size=size, criterion=criterion, step=step, reference=True)
    # What the network says grows from epoch to epoch, so that shares turn round.
    outputs = [torch.as_tensor(np.linspace(2, -3, 60) * (epoch - 3.2)) for epoch in range(epochs)]
    label, group = 2 * rows.y - 1, rows.group
    cells = {(y, a): np.flatnonzero((label == y) & (group == a)) for y in (-1, 1) for a in (0, 1)}
    usual = {key: size * len(own) / 60 for key, own in cells.items()}
    share = {y: usual[y, 1] / (usual[y, 0] + usual[y, 1]) for y in (1, -1)}
    moved = set()
    for output in outputs:
        chance = (np.tanh(output.numpy()) + 1) / 2
        told = np.ones(60) if criterion == "statistical_parity" else (label + 1) / 2
        loss = -np.where(told == 1, np.log(chance), np.log(1 - chance))
        mean = {}
        for (y, a), own in cells.items():
            people = (group == a).sum() if criterion == "statistical_parity" else len(own)
            mean[y, a] = loss[own].sum() / people
        gap = {y: abs(mean[y, 1] - mean[y, 0]) for y in (-1, 1)}
        which = 1 if criterion == "equal_opportunity" or gap[1] > gap[-1] else -1
        up = mean[which, 1] > mean[which, 0]
        if criterion == "statistical_parity" and which == -1:
            up = not up
        share[which] = min(1.0, max(0.0, share[which] + (step if up else -step)))
        moved.add((which, up))

        drawn = sampler.draw(
            [torch.Generator().manual_seed(0)], lambda output=output: 2 * output[None, None]
        )
        np.testing.assert_allclose(sampler.shares, [share[-1], share[1]], atol=1e-12)
        batch = drawn.rows[0, 0][drawn.weight[0, 0] > 0].numpy()
        for (y, a), own in cells.items():
            of_label = usual[y, 0] + usual[y, 1]
            count = round((share[y] if a else 1 - share[y]) * of_label)
            assert np.isin(batch, own).sum() == count
    assert len(moved) > 1


# --- training
# -----------------------------------------------------------------------------------------------------


def shifted(n: int = 3000) -> tuple[Any, Any, Any]:
    """Three features, shifted by 0.8 in group 1, which is a feature, too; labels from a
    logistic model.
    """
    rng = np.random.default_rng(1)
    a = rng.integers(2, size=n)
    x = rng.normal(size=(n, 3)) + 0.8 * a[:, None]
    y = (rng.random(n) < 1 / (1 + np.exp(-(x.sum(1) - 1.2)))).astype(int)
    return np.c_[x, a], y, a


LOGISTIC: dict[str, Any] = {
    "model": "linear",
    "batch_size": 300,
    "epochs": 120,
    "learning_rate": 0.015,
    "random_state": 0,
    "device": "cpu",
}


def test_behavior_on_shifted_features() -> None:
    x, y, a = shifted()
    predicted = {
        name: FairBatchClassifier(criterion=name, step=step, **LOGISTIC)
        .fit(x, y, sensitive_features=a)
        .predict(x)
        for name, step in [
            ("statistical_parity", 0.005),
            ("equal_opportunity", 0.005),
            ("equalized_odds", 0.005),
        ]
    }
    plain = FairBatchClassifier(step=0.0, **LOGISTIC).fit(x, y, sensitive_features=a).predict(x)
    assert gap(plain, a) > 0.5
    assert gap(plain[y == 1], a[y == 1]) > 0.33
    assert gap(predicted["statistical_parity"], a) < 0.05
    assert gap(predicted["equal_opportunity"][y == 1], a[y == 1]) < 0.05
    for label in (0, 1):
        assert gap(predicted["equalized_odds"][y == label], a[y == label]) < 0.06


QUICK: dict[str, Any] = {
    "hidden": (4,),
    "epochs": 6,
    "batch_size": 40,
    "step": 0.05,
    "device": "cpu",
}


def test_the_reference_counts_the_output_twice() -> None:
    """One step from the same start: the loss of twice the output has other slopes, and its
    score is steeper.
    """
    x, y, a = simulated(80)
    options = {**QUICK, "epochs": 1, "learning_rate": 1e-12, "random_state": 0, "batch_size": 80}
    method, reference = (
        FairBatchClassifier(variant=variant, **options).fit(x, y, sensitive_features=a)
        for variant in ("method", "reference")
    )
    np.testing.assert_allclose(
        reference.decision_function(x), 2 * method.decision_function(x), atol=1e-6
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"criterion": "risk_parity"}, "criterion"),
        ({"step": -0.1}, "step"),
        ({"variant": "paper"}, "variant"),
        ({"batch_size": 3}, "batch_size"),
        ({"epochs": 0}, "epochs"),
    ],
)
def test_fit_refuses(options: dict[str, Any], named: str) -> None:
    x, y, a = simulated(40)
    with pytest.raises(DataError, match=named):
        FairBatchClassifier(**{**QUICK, **options}).fit(x, y, sensitive_features=a)


@pytest.mark.parametrize(
    ("criterion", "label"), [("statistical_parity", 0), ("equal_opportunity", 1)]
)
def test_an_empty_cell_is_named(criterion: str, label: int) -> None:
    x, y, a = simulated(40)
    y[a == 1] = 1 - label
    with pytest.raises(DataError, match="group 1"):
        FairBatchClassifier(criterion=criterion, **QUICK).fit(x, y, sensitive_features=a)


def test_equal_opportunity_needs_positive_cells_only() -> None:
    x, y, a = simulated(40)
    y[a == 1] = 1
    model = FairBatchClassifier(criterion="equal_opportunity", **QUICK).fit(
        x, y, sensitive_features=a
    )
    assert np.isfinite(model.decision_function(x)).all()
