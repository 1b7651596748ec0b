"""Fits that models of one frontier share are made once, and change no figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from torch import nn

import metrifair
from metrifair import BarycenterPostprocessor, FairClassifier, Frontier, SearchOptions, frontier
from metrifair.stacking import FairStackingClassifier
from tests.seams.support import reused, reusing_results
from tests.seams.tradeoff import frontier as frontiers

RNG = np.random.default_rng(0)
A = RNG.integers(0, 2, 240)
X = RNG.normal(size=(240, 2)) + np.c_[A, 0 * A]
Y = (X.sum(1) + RNG.logistic(size=240) > 0.5).astype(int)
SEARCH = SearchOptions(
    families=["stack", "small_trees", "stack_with_features", "barycenter", "thresholds"],
    tolerances=[0, 1],
    needs_group=True,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How many plain LightGBM classifiers are fitted, by what they learn."""
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    found: Counter[str] = Counter()
    whole = lightgbm.LGBMClassifier.fit

    def counted(self: Any, *arguments: Any, **more: Any) -> Any:
        found[type(self).__name__] += 1
        return whole(self, *arguments, **more)

    monkeypatch.setattr(lightgbm.LGBMClassifier, "fit", counted)
    return found


def swept() -> Frontier:
    return frontier(
        "auto",
        X,
        Y,
        sensitive_features=A,
        strengths=[0, 1, 10],
        random_state=3,
        test=0.25,
        search=SEARCH,
    )


@pytest.mark.slow
def test_sharing_fits_changes_no_figure(
    fits: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = swept()
    few = fits.copy()
    fits.clear()
    monkeypatch.setattr(frontiers, "reusing_results", nullcontext)
    apart = swept()
    assert shared.points == apart.points
    # In each of five folds, three folds of the group model: once instead of at each of two
    # strengths above 0.
    assert few["LGBMClassifier"] == 5 * 3
    assert fits["LGBMClassifier"] == 5 * 6
    # Models of label and group serve both stacks, and base stacks serve barycenter and thresholds.
    assert few["FairLGBMClassifier"] < 0.55 * fits["FairLGBMClassifier"]


@pytest.mark.extended
@pytest.mark.parametrize("parameter", ["strength", "learning_rate"])
def test_each_search_warns_once_of_a_module_that_returns_probabilities(parameter: str) -> None:
    module = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
    for _ in range(2):
        with pytest.warns(
            metrifair.errors.MetrifairWarning, match="returns numbers between 0 and 1"
        ) as caught:
            frontier(
                FairClassifier(model=module, epochs=1),
                X,
                Y,
                sensitive_features=A,
                parameter=parameter,
                strengths=[0.01, 0.1],
                random_state=3,
                folds=2,
            )
        assert (
            len([warning for warning in caught if "returns numbers" in str(warning.message)]) == 1
        )


def test_a_result_is_shared_for_equal_inputs_of_one_owner_only() -> None:
    calls = []

    def compute() -> int:
        calls.append(1)
        return len(calls)

    template = FairStackingClassifier(folds=3)
    with reusing_results():
        assert reused(compute, "owner", template, X) == 1
        assert reused(compute, "owner", clone(template), X.copy()) == 1
        assert reused(compute, "owner", clone(template).set_params(folds=4), X) == 2
        assert reused(compute, "owner", template, X + np.eye(*X.shape)) == 3
        assert reused(compute, "another", template, X) == 4
        # a local function has no content to compare
        assert reused(compute, "owner", lambda: 0) == 5
        assert reused(compute, "owner", lambda: 0) == 6
    assert reused(compute, "owner", template, X) == 7  # nothing outlasts the block


def test_models_of_two_frontiers_share_nothing(fits: Counter[str]) -> None:
    trees = metrifair.FairLGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1)
    for _ in range(2):
        frontier(trees, X, Y, sensitive_features=A, strengths=[1, 2], random_state=0, test=0.25)
    assert fits["LGBMClassifier"] == 2 * 3 * 5  # folds


@pytest.mark.filterwarnings("ignore:scores are tied")
@pytest.mark.parametrize("seeded", [True, False])
def test_a_base_without_a_seed_differs_between_seeds(seeded: bool) -> None:
    forest = RandomForestClassifier(3, max_depth=2, random_state=0 if seeded else None)
    front = frontier(
        BarycenterPostprocessor(forest),
        X,
        Y,
        sensitive_features=A,
        test=0.25,
        random_state=0,
        search=SearchOptions(seeds=3, tolerances=[1]),
    )
    assert (len({point.unfairness for point in front.points}) == 1) == seeded
