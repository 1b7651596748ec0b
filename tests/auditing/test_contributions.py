"""Which features make the gap: exact sums for linear models and trees; the planted one first, for any model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, RidgeClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from metrifair import DataError, FairClassifier, FairLGBMClassifier, FairXGBClassifier, gap_contributions

GENERATOR = np.random.default_rng(0)
A = np.repeat(["f", "m"], [160, 140])
X = GENERATOR.normal(size=(300, 3)) + np.outer(A == "m", [1.0, 0.0, -0.5])
Y = (X @ [1.0, 0.5, 0.2] + 0.5 * GENERATOR.normal(size=300) > 0.3).astype(int)
NAMES = ["income", "noise", "debt"]

MODELS: dict[str, tuple[Any, str, str]] = {
    "logistic": (LogisticRegression(), "linear", "decision function"),
    "least squares": (LinearRegression(), "linear", "prediction"),
    "ours": (FairClassifier(0.1, model="linear", random_state=0), "linear", "decision function"),
    "tree": (DecisionTreeClassifier(max_depth=4, random_state=0), "trees", "probability"),
    "forest": (RandomForestRegressor(10, random_state=0), "trees", "prediction"),
    "gradient boosting": (GradientBoostingClassifier(n_estimators=10, random_state=0), "trees", "decision function"),
    "lightgbm": (
        FairLGBMClassifier(0.1, n_estimators=8, expected_groups=False, n_jobs=1, verbose=-1),
        "trees",
        "decision function",
    ),
    "xgboost": (FairXGBClassifier(0.1, n_estimators=8, expected_groups=False, n_jobs=1), "trees", "decision function"),
    "histograms": (HistGradientBoostingClassifier(max_iter=10), "permutation", "probability"),
    "neighbors": (KNeighborsRegressor(), "permutation", "prediction"),
}


def outputs(model: Any, of: str) -> Any:
    if of == "prediction":
        return model.predict(X)
    probability = model.predict_proba(X)[:, 1]
    return probability if of == "probability" else np.log(probability / (1 - probability))


@pytest.mark.parametrize("name", MODELS)
def test_contributions_add_up_to_the_gap_or_lose_it_by_permutation(name: str) -> None:
    model, how, of = MODELS[name]
    model.fit(X, Y, **({"sensitive_features": A} if "Fair" in type(model).__name__ else {}))
    found = gap_contributions(model, X, sensitive_features=A, repeats=3, random_state=0)
    assert (found.how, found.of, found.groups) == (how, of, ("m", "f"))
    values = outputs(model, of)
    assert found.gap == pytest.approx(values[A == "m"].mean() - values[A == "f"].mean(), rel=1e-4)
    if how != "permutation":
        assert sum(one.contribution for one in found.features) == pytest.approx(found.gap, rel=1e-4)
        assert all(one.error is None for one in found.features)
    assert found.features[0].feature == "X 0"  # income, by which the groups differ most
    sizes = [abs(one.contribution) for one in found.features]
    assert sizes == sorted(sizes, reverse=True)


def test_by_hand_for_a_linear_model() -> None:
    model = LinearRegression().fit(X, X @ [2.0, 1.0, -3.0])
    found = gap_contributions(model, X, sensitive_features=A, groups=("f", "m"))
    apart = X[A == "f"].mean(0) - X[A == "m"].mean(0)
    by_name = {one.feature: one.contribution for one in found.features}
    assert [by_name[f"X {at}"] for at in range(3)] == pytest.approx(apart * [2.0, 1.0, -3.0])


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_tables_keep_their_names_and_library(library: Any) -> None:
    table = library(dict(zip(NAMES, X.T, strict=True)))
    if library is pd.DataFrame:
        table.index = table.index[::-1]  # rows are taken by position, whatever they are called
    for model in (LogisticRegression(), KNeighborsRegressor()):
        found = gap_contributions(model.fit(table, Y), table, sensitive_features=A, repeats=2, random_state=0)
        plain = gap_contributions(model.fit(X, Y), X, sensitive_features=A, repeats=2, random_state=0)
        assert [NAMES[int(one.feature[-1])] for one in plain.features] == [one.feature for one in found.features]
        assert [one.contribution for one in found.features] == pytest.approx(
            [one.contribution for one in plain.features]
        )
        assert isinstance(found.to_frame(), library)


def test_what_cannot_be_taken_apart_is_refused() -> None:
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(DataError, match="groups must be two of"):
        gap_contributions(model, X, sensitive_features=A, groups=("f", "x"))
    with pytest.raises(DataError, match="at least two groups"):
        gap_contributions(model, X, sensitive_features=np.zeros(300))
    three = LogisticRegression().fit(X, np.arange(300) % 3)
    with pytest.raises(DataError, match="two classes"):
        gap_contributions(three, X, sensitive_features=A)


TREE = DecisionTreeClassifier(max_depth=2, random_state=0)


@pytest.mark.parametrize(
    "model",
    [
        AdaBoostClassifier(n_estimators=5, random_state=0),
        BaggingClassifier(TREE, 5, max_features=0.5, random_state=0),
        VotingClassifier([("a", TREE), ("b", DecisionTreeClassifier(random_state=0))], voting="soft", weights=[3, 1]),
        RandomForestClassifier(5, random_state=0),
        IsolationForest(n_estimators=5, random_state=0),
        PoissonRegressor(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_does_not_add_up_to_the_models_own_output_is_not_called_exact(model: Any) -> None:
    table = X.copy()
    if isinstance(model, RandomForestClassifier):
        table[::3, 0] = np.nan
    model.fit(table, Y)
    found = gap_contributions(model, table, sensitive_features=A, groups=("m", "f"), repeats=1, random_state=0)
    values = model.predict_proba(table)[:, 1] if hasattr(model, "predict_proba") else model.predict(table)
    assert found.how == "permutation"
    assert found.gap == pytest.approx(values[A == "m"].mean() - values[A == "f"].mean())


@pytest.mark.parametrize("model", [LinearSVC(), RidgeClassifier()], ids=lambda model: type(model).__name__)
def test_margins_are_not_called_predictions(model: Any) -> None:
    found = gap_contributions(model.fit(X, Y), X, sensitive_features=A)
    values = model.decision_function(X)
    assert (found.how, found.of) == ("linear", "decision function")
    assert found.gap == pytest.approx(values[A == "m"].mean() - values[A == "f"].mean())


class Swapped:
    """A model whose first class is the larger one."""

    def __init__(self, model: Any, *, pos_label: object = None) -> None:
        self.model, self.pos_label, self.classes_ = model, pos_label, model.classes_[::-1]

    def predict_proba(self, table: Any) -> Any:
        return self.model.predict_proba(table)[:, ::-1]


def test_the_gap_is_that_of_the_positive_class_wherever_its_column_is() -> None:
    model = LogisticRegression().fit(X, Y)
    given = {"sensitive_features": A, "groups": ("m", "f"), "repeats": 2, "random_state": 0}
    probability = model.predict_proba(X)[:, 1]
    gap = probability[A == "m"].mean() - probability[A == "f"].mean()
    assert gap_contributions(Swapped(model), X, **given).gap == pytest.approx(gap, abs=1e-12)
    assert gap_contributions(Swapped(model, pos_label="0"), X, **given).gap == pytest.approx(-gap, abs=1e-12)


def test_exact_contributions_are_those_of_the_positive_class() -> None:
    given = {"sensitive_features": A, "groups": ("m", "f")}
    one, other = (
        gap_contributions(
            FairLGBMClassifier(0.0, pos_label=label, n_estimators=8, n_jobs=1, verbose=-1).fit(X, Y), X, **given
        )
        for label in (1, 0)
    )
    assert one.how == other.how == "trees"
    assert other.gap == pytest.approx(-one.gap, rel=0.2)


def test_groups_are_looked_up_by_value() -> None:
    model, codes = LogisticRegression().fit(X, Y), (A == "m").astype(int)
    found = gap_contributions(model, X, sensitive_features=codes, groups=("0", True))
    assert found.groups == ("0", "1")
