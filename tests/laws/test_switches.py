"""A parameter that is on or off takes nothing else, in every estimator: "no" would otherwise
count as true.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import metrifair
from metrifair.errors import DataError

RNG = np.random.default_rng(0)
A = np.arange(60) % 2
X = RNG.normal(size=(60, 3)) + A[:, None]
AMOUNT = X[:, 0] + RNG.normal(size=60)
WRAPPED = {
    "XianPostprocessor": LogisticRegression(),
    "BarycenterPostprocessor": LogisticRegression(),
    "ThresholdPostprocessor": LogisticRegression(),
    "MassagingClassifier": LogisticRegression(),
    "ReweighingClassifier": LogisticRegression(),
    "LabelBiasClassifier": LogisticRegression(),
    "ChzhenPostprocessor": LinearRegression(),
}
MORE = {"early_stopping": "True, False, or the share of rows to judge by, between 0 and 1"}
OF_OTHERS = {"enable_categorical"}  # XGBoost's own, and its to check
THREE_VALUES = {"FairClassifierCV.needs_group", "FairRegressorCV.needs_group"}  # None: either


def estimators() -> Iterator[Any]:
    """One of each public estimator."""
    public = [
        (package, name) for package in (metrifair, metrifair.baselines) for name in dir(package)
    ]
    for package, name in public:
        kind = getattr(package, name)
        if isinstance(kind, type) and hasattr(kind, "fit") and hasattr(kind, "get_params"):
            if name in WRAPPED:
                yield kind(WRAPPED[name])
            elif name.endswith("CV"):
                yield kind(max_unfairness=0.5)
            else:
                yield kind()


SWITCHES = [
    pytest.param(model, name, id=f"{type(model).__name__}.{name}")
    for model in estimators()
    for name, value in model.get_params(deep=False).items()
    if isinstance(value, bool)
    and name not in OF_OTHERS
    and f"{type(model).__name__}.{name}" not in THREE_VALUES
]


def test_the_table_is_not_empty() -> None:
    assert len({type(case.values[0]) for case in SWITCHES}) >= 10


@pytest.mark.parametrize("value", ["no", None, 0.0])
@pytest.mark.parametrize(("model", "name"), SWITCHES)
def test_a_switch_takes_nothing_but_on_and_off(model: Any, name: str, value: object) -> None:
    changed = type(model)(**{**model.get_params(deep=False), name: value})
    numeric = "Regressor" in type(model).__name__ or isinstance(
        getattr(model, "estimator", None), LinearRegression
    )
    with pytest.raises(DataError) as caught:
        changed.fit(X, AMOUNT if numeric else (AMOUNT > 0.5).astype(int), sensitive_features=A)
    assert str(caught.value) == f"{name} must be {MORE.get(name, 'True or False')}, got {value!r}"
