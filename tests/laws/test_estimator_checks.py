"""Every check that scikit-learn has for estimators, without groups and with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    parametrize_with_checks,
)

from metrifair.estimators import FairClassifier, FairRegressor
from tests.flat_options import with_penalty

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)


class ByFirstColumn:
    """The group is whether the first column lies above the middle of its range; fair where both
    have two members.
    """

    strength: float

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return self._with_groups(super().fit, X, y, sample_weight=sample_weight)  # type: ignore[misc]

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, **declared: Any) -> Any:
        return self._with_groups(super().partial_fit, X, y, sample_weight=sample_weight, **declared)  # type: ignore[misc]

    def _with_groups(self, learn: Callable[..., Any], X: Any, y: Any, **others: Any) -> Any:
        groups, strength = above_the_middle(X, others["sample_weight"]), self.strength
        try:
            self.strength = 0.0 if groups is None else strength
            return learn(X, y, sensitive_features=groups, **others)
        finally:
            self.strength = strength


def above_the_middle(X: Any, sample_weight: Any) -> Any:
    """Groups that repeating or removing rows does not change; None where there are no two
    groups of two.
    """
    try:
        first = np.asarray(X)[:, 0]
        first = first if first.dtype.kind == "c" else first.astype(np.float64)
        counted = first if sample_weight is None else first[np.asarray(sample_weight) > 0]
        groups = first > (counted.min() + counted.max()) / 2
    # what the estimator is to refuse, with a message of its own
    except (TypeError, ValueError, IndexError):
        return None
    above = int((groups if sample_weight is None else groups[np.asarray(sample_weight) > 0]).sum())
    return groups if 2 <= above <= len(counted) - 2 else None


class GroupedClassifier(ByFirstColumn, FairClassifier):
    """A fair classifier that scikit-learn's checks can call."""


class GroupedRegressor(ByFirstColumn, FairRegressor):
    """A fair regressor that scikit-learn's checks can call."""


QUICK = {"model": "mlp", "epochs": 30, "learning_rate": 0.1, "random_state": 0}


# Some checks fit a handful of rows that a column parts by label, of which linear models rightly
# warn.
parted = pytest.mark.filterwarnings("ignore:columns? .* separates? the classes")


@parted
@parametrize_with_checks(
    [
        # by the solver; one check asks for accuracy on groups like labels
        GroupedClassifier(0.1, model="linear"),
        GroupedRegressor(0.1, model="linear"),
    ],
)
def test_scikit_learn_check(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)


@pytest.mark.extended
@parted
@parametrize_with_checks(
    [
        FairClassifier(0.0, **with_penalty(**QUICK)),
        FairRegressor(0.0, **with_penalty(**QUICK)),
        GroupedClassifier(0.1, **QUICK | {"model": "linear"}),
        GroupedRegressor(0.5, **QUICK | {"model": "linear"}),
    ],
)
def test_scikit_learn_check_of_models_trained_by_steps(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)


@pytest.mark.slow
@parted
@parametrize_with_checks(
    [
        FairClassifier(0.0, random_state=0, model="mlp"),
        FairRegressor(0.0, random_state=0, model="mlp"),
        # one check asks for accuracy on groups that are half the label
        GroupedClassifier(0.1, random_state=0),
        GroupedRegressor(0.1, random_state=0),
    ],
)
def test_scikit_learn_check_with_default_parameters(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)


@pytest.mark.parametrize("kind", [GroupedClassifier, GroupedRegressor])
def test_weights_are_repetitions_for_the_penalty_of_rows_and_not_for_that_of_a_population(
    kind: type[BaseEstimator],
) -> None:
    check_sample_weight_equivalence_on_dense_data(
        kind.__name__, kind(0.5, **with_penalty(estimate="batch", **QUICK))
    )
    with pytest.raises(AssertionError):  # it tells one sample of weight two from two samples
        check_sample_weight_equivalence_on_dense_data(
            kind.__name__, kind(0.5, **with_penalty(estimate="population", **QUICK))
        )


def test_the_checks_with_groups_do_compare_groups() -> None:
    """Or the fallback to strength 0 would make all of the above vacuous."""
    rng = np.random.RandomState(42)
    X = rng.rand(15, 30)
    y = rng.randint(0, 3, size=15)
    fitted = GroupedClassifier(0.5, **QUICK).fit(X, y, rng.randint(0, 5, size=15))
    assert len(fitted.scheme_.comparisons) == 1
    assert fitted.strength == 0.5
