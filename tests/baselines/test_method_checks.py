"""Every check that scikit-learn has for estimators, on all methods, with the group taken from
the first column.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples

import metrifair
from tests.seams.problem import is_missing

QUICK = {"epochs": 25, "learning_rate": 0.1, "random_state": 0}
METHODS: dict[str, dict[str, Any]] = {
    "BerkRegressor": {"strength": 0.1, "penalty": "group"},
    "ZafarClassifier": {"gamma": 0.01, "ridge": 0.1},
    "XianPostprocessor": {"estimator": LogisticRegression(), "alpha": 0.5},
    "ChzhenPostprocessor": {"estimator": LinearRegression(), "tolerance": 0.9},
    "BarycenterPostprocessor": {"estimator": LogisticRegression(), "tolerance": 0.9, "folds": 1},
    "ThresholdPostprocessor": {"estimator": LogisticRegression(), "tolerance": 0.9, "folds": 1},
    "FairKDEClassifier": {"strength": 0.1, **QUICK},
    "SinkhornClassifier": {"strength": 0.01, "tol": 1e-2, **QUICK},
    "LabelBiasClassifier": {"estimator": LogisticRegression(), "rounds": 2},
    "FairBatchClassifier": {**QUICK},
    "MassagingClassifier": {"estimator": LogisticRegression()},
    "ReweighingClassifier": {"estimator": LogisticRegression()},
}
"""Parameters with which a method does well on the checks' data, whose groups are half the label."""

KNOBS: dict[str, tuple[str, float, float]] = {
    "BerkRegressor": ("strength", 0.0, 100.0),
    "ZafarClassifier": ("gamma", 0.0, 1.0),
    "XianPostprocessor": ("alpha", 1.0, 0.0),
    "ChzhenPostprocessor": ("tolerance", 1.0, 0.0),
    "BarycenterPostprocessor": ("tolerance", 1.0, 0.0),
    "ThresholdPostprocessor": ("tolerance", 1.0, 0.0),
    "FairKDEClassifier": ("strength", 0.0, 0.9),
    "SinkhornClassifier": ("strength", 0.0, 5.0),
}
"""What trades accuracy for fairness, a value that asks for none and one that asks for much."""


def method_class(name: str) -> type[Any]:
    """The class of this public name."""
    return getattr(metrifair.baselines if name in metrifair.baselines.__all__ else metrifair, name)


class ByFirstColumn:
    """Two groups by the first column, and labels of any kind as 0 and 1."""

    def fit(self, X: Any, y: Any, **weights: Any) -> Any:
        coded, classes = zero_and_one(y)
        groups = groups_within(
            X, np.zeros(_num_samples(X)) if is_regressor(self) else coded, **weights
        )
        super().fit(X, coded, sensitive_features=groups, **weights)  # type: ignore[misc]
        if classes is not None:
            self.classes_ = classes
        return self


class WeightedByFirstColumn(ByFirstColumn):
    """The same for methods that take weights."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return super().fit(X, y, sample_weight=sample_weight)


class AskedByFirstColumn:
    """The same for methods that need groups to predict, so that these must not depend on the
    label.
    """

    def fit(self, X: Any, y: Any, **weights: Any) -> Any:
        first, weight = first_column(X), np.asarray(weights.get("sample_weight"))
        self.middle_ = middle(first[weight > 0] if weight.shape == first.shape else first)
        return super().fit(X, y, sensitive_features=groups_of(X, self.middle_), **weights)  # type: ignore[misc]

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        groups = groups_of(X, getattr(self, "middle_", 0.0))
        return super().predict(X, sensitive_features=groups)  # type: ignore[misc]

    @available_if(lambda self: hasattr(super(), "predict_proba"))
    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Any:
        groups = groups_of(X, getattr(self, "middle_", 0.0))
        return super().predict_proba(X, sensitive_features=groups)  # type: ignore[misc]


class AskedAndWeightedByFirstColumn(AskedByFirstColumn):
    """The same with weights."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return super().fit(X, y, sample_weight=sample_weight)


def groups_within(X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Whether the first column is above the middle of its range among rows that count and have
    the same label.
    """
    first, labels, weight = first_column(X), np.asarray(y).ravel(), np.asarray(sample_weight)
    if labels.shape != first.shape or is_missing(labels).any():
        return groups_of(X, np.inf)
    counts = weight > 0 if weight.shape == first.shape else np.full(len(first), True)
    cuts = {label: middle(first[counts & (labels == label)]) for label in set(labels.tolist())}
    return first > np.array([cuts[label] for label in labels.tolist()])


def groups_of(X: Any, cut: float) -> Any:
    """Rows in turn where there is no first column: what is wrong with X, the method is to say."""
    above = first_column(X) > cut
    return above if len(above) and np.isfinite(cut) else np.arange(_num_samples(X)) % 2 == 0


def middle(values: Any) -> float:
    return float((values.min() + values.max()) / 2) if len(values) else np.inf


def first_column(X: Any) -> Any:
    try:
        first = np.asarray(X)[:, 0]
        return np.empty(0) if np.iscomplexobj(first) else first.astype(np.float64)
    except (TypeError, ValueError, IndexError):
        return np.empty(0)


def zero_and_one(y: Any) -> Any:
    """The codes of two labels, and the labels; the labels themselves where they are not two.

    The methods take 0 and 1, -1 and 1 and booleans only, so that none is taken for positive by
    chance.
    """
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind == "f" or len(set(labels.tolist())) != 2:
        return y, None
    classes, codes = np.unique(labels, return_inverse=True)
    return codes, classes


def grouped(name: str) -> type[BaseEstimator]:
    kind = method_class(name)
    asked = "sensitive_features" in inspect.signature(kind.predict).parameters
    weighted = "sample_weight" in inspect.signature(kind.fit).parameters
    mixin = (
        (AskedAndWeightedByFirstColumn if weighted else AskedByFirstColumn)
        if asked
        else (WeightedByFirstColumn if weighted else ByFirstColumn)
    )
    return type(
        f"Grouped{name}", (mixin, kind), {"__module__": __name__, "__init__": kind.__init__}
    )


GROUPED = {name: grouped(name) for name in METHODS}
globals().update({kind.__name__: kind for kind in GROUPED.values()})  # where pickle looks for them


def expected_failures(estimator: BaseEstimator) -> dict[str, str]:
    if isinstance(estimator, metrifair.baselines.ReweighingClassifier):
        return {
            "check_sample_weight_equivalence_on_dense_data": "its fifteen rows leave a cell empty",
        }
    if isinstance(estimator, metrifair.BarycenterPostprocessor):
        return {
            "check_sample_weight_equivalence_on_sparse_data": "groups of sparse rows are taken in "
            "turn",
        }
    return {}


@parametrize_with_checks(
    [
        *(GROUPED[name](**parameters) for name, parameters in METHODS.items()),
        GROUPED["BarycenterPostprocessor"](LinearRegression(), tolerance=0.9, folds=1),
        GROUPED["ThresholdPostprocessor"](
            LogisticRegression(),
            tolerance=0.9,
            folds=1,
            needs_group=False,
            group_model=LogisticRegression(),
        ),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)


@pytest.mark.parametrize("name", METHODS)
def test_the_checks_do_compare_groups(name: str) -> None:
    """Or all of the above would be vacuous."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 1] + rng.normal(size=60) > 0, "yes", "no")
    labels = (y == "yes").astype(float) if is_regressor(GROUPED[name]()) else y
    fitted = GROUPED[name](**METHODS[name]).fit(X, labels)
    assert fitted.groups_ == (False, True)
    assert set(fitted.predict(X)) == {"no", "yes"} or is_regressor(fitted)


@pytest.mark.parametrize("name", METHODS)
def test_it_is_public_and_its_parameters_are_only_stored(name: str) -> None:
    kind = method_class(name)
    assert name in {*metrifair.__all__, *metrifair.baselines.__all__}
    odd = {parameter: object() for parameter in inspect.signature(kind).parameters}
    assert kind(**odd).get_params(deep=False) == odd


@pytest.mark.parametrize("name", KNOBS)
def test_its_knob_makes_a_frontier(name: str) -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 3)) + np.outer(a, [2.0, 0.0, 0.0])
    y = X.sum(1) + rng.normal(size=400) - 1
    model = method_class(name)(**METHODS[name])
    y = y if is_regressor(model) else (y > 0).astype(int)
    knob, *values = KNOBS[name]
    front = metrifair.frontier(
        model,
        X,
        y,
        sensitive_features=a,
        parameter=knob,
        strengths=values,
        unfairness_of="decisions",
        random_state=0,
    )
    free, fair = sorted(front.points, key=lambda point: values.index(point.strength))
    assert fair.gap("decisions") < free.gap("decisions") - 0.05
    assert fair.accuracy < free.accuracy + 0.05
