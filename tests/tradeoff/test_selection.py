"""Which model is chosen: by any utility, never a constant in silence, and by its ranking where
noise leaves a tie.
"""

from __future__ import annotations

import numpy as np
import pytest

from metrifair import FairClassifier, Frontier, SearchOptions
from metrifair.errors import MetrifairWarning
from tests.frontier_parts import outcomes_of
from tests.one_split import frontier
from tests.seams.tradeoff import FrontierNote

N = 400
RNG = np.random.default_rng(5)
A = RNG.integers(2, size=N)
X = RNG.normal(size=(N, 3)) + 0.7 * A[:, None]
Y = (X.sum(1) + RNG.normal(size=N) > 1.0).astype(int)


# ---- the case
# -------------------------------------------------------------------------------------------


# ---- utilities
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def front() -> Frontier:
    return frontier(
        FairClassifier(epochs=40, model="mlp"),
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0, 0.3, 1.0, 3.0],
        random_state=0,
        search=SearchOptions(seeds=2),
    )


# ---- the constant model
# -----------------------------------------------------------------------------------------


def test_a_constant_has_unequal_losses() -> None:
    """Risk parity compares losses: those of a constant are the base rates."""
    rng = np.random.default_rng(99)
    unequal = (A + rng.random(N) > 1.1).astype(int)
    found = frontier(
        FairClassifier(epochs=2, criterion="risk_parity", model="mlp"),
        X,
        unequal,
        sensitive_features=A,
        strengths=[0],
        random_state=0,
    )
    assert found.constant is not None
    assert found.constant.unfairness > 0.5


# ---- held-out rows, and all rows
# --------------------------------------------------------------------------------


# ---- what is proven
# ---------------------------------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore:.*models are constant")  # after one epoch
def test_strengths_are_added_for_every_seed() -> None:
    found = frontier(
        FairClassifier(epochs=1, hidden=(2,), model="mlp"),
        X,
        Y,
        sensitive_features=A,
        strengths="auto",
        random_state=0,
        search=SearchOptions(seeds=2),
    )
    first = 25
    assert len(outcomes_of(found)) == 2 * (first + 8)


def test_a_model_that_ranks_but_decides_alike_is_told_whatever_the_utility() -> None:
    """Nine of ten are positive: the model ranks them, and says yes to everyone."""
    rng = np.random.default_rng(0)
    a, skill = rng.integers(2, size=1200), rng.normal(size=1200)
    y = (rng.random(1200) < 1 / (1 + np.exp(-(2.9 + 0.7 * skill)))).astype(int)
    front = frontier(
        FairClassifier(model="linear"),
        np.c_[skill, a],
        y,
        sensitive_features=a,
        strengths=[0.0, 1.0],
        utility="auc",
        random_state=0,
    )
    assert all(
        point.marks.get("accuracy") == "constant" and "auc" not in point.marks
        for point in front.points
    )
    assert FrontierNote("same_decisions", {"models": 2, "of": 2}) in front.record.notes
    assert "2 of 2 models decide the same for everyone at their threshold" in front.summary
    with pytest.warns(MetrifairWarning, match="ranks people, but decides the same for everyone"):
        front.select(max_unfairness=1.0)
    # By scikit-learn's own AUC it is no constant either, as by ours.
    with pytest.warns(MetrifairWarning, match="ranks people, but decides the same for everyone"):
        front.select(max_unfairness=1.0, utility="roc_auc")
    assert front.chosen is not None
    assert "roc_auc" not in front.chosen.marks
    assert front.chosen.more["roc_auc"] == pytest.approx(front.chosen.more["auc"])
    with pytest.warns(MetrifairWarning, match="decides the same for everyone"):
        front.select(max_unfairness=1.0, utility="f1")  # which looks at decisions
    assert front.chosen.marks["f1"] == "constant"
