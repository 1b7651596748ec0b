"""Group-blind post-processors with probabilities of groups: rows count for each group by its
probability.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from metrifair import (
    BarycenterPostprocessor,
    FairClassifier,
    GroupProbabilities,
    ThresholdPostprocessor,
    load,
    unfairness,
)
from metrifair.errors import DataError, TooFewSamples

RANDOM = np.random.default_rng(5)
ROWS = 400
X = RANDOM.normal(size=(ROWS, 3))
P = 1 / (1 + np.exp(-1.7 * X[:, 0]))
TABLE = np.stack([1 - P, 0.7 * P, 0.3 * P], 1)
LABEL = (X.sum(1) + RANDOM.logistic(size=ROWS) > 0).astype(int)
NUMBER = X @ [1.0, 2.0, -1.0] + RANDOM.normal(size=ROWS)
WEIGHT = RANDOM.integers(1, 4, ROWS).astype(float)


def race(table: Any = TABLE, **further: Any) -> GroupProbabilities:
    return GroupProbabilities(
        dict(zip("abc", np.asarray(table).T, strict=True)), attribute="race", **further
    )


def moved(model: Any) -> Any:
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)


BLIND: dict[str, Any] = {"needs_group": False, "prefit": True, "folds": 1, "random_state": 0}
MODELS: dict[str, tuple[Any, Any]] = {
    "scores": (BarycenterPostprocessor(LogisticRegression().fit(X, LABEL), **BLIND), LABEL),
    "numbers": (BarycenterPostprocessor(LinearRegression().fit(X, NUMBER), **BLIND), NUMBER),
    "decisions": (
        ThresholdPostprocessor(LogisticRegression().fit(X, LABEL), **BLIND, tolerance=0.05),
        LABEL,
    ),
    "true positives, coin": (
        ThresholdPostprocessor(
            LogisticRegression().fit(X, LABEL),
            **BLIND,
            criterion="equal_opportunity",
            randomized=True,
        ),
        LABEL,
    ),
}


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_is_that_of_rows_in_every_group_with_weights(name: str, weight: Any) -> None:
    """Against known groups: each row once for each group, with that share of its weight."""
    model, y = MODELS[name]
    found = _copy(model).fit(
        X, y, sensitive_features=race(with_labels="included"), sample_weight=weight
    )
    share = TABLE if weight is None else TABLE * weight[:, None]
    row, group = np.nonzero(share)
    entries = {"sensitive_features": np.array([*"abc"])[group], "sample_weight": share[row, group]}
    expected = _copy(model).fit(X[row], y[row], **entries)
    np.testing.assert_allclose(
        found.group_model_.chances(X), expected.group_model_.chances(X), rtol=0, atol=1e-3
    )
    if "rates_" in vars(found):
        # one row more or less
        np.testing.assert_allclose(found.rates_, expected.rates_, rtol=0, atol=0.02)
    else:
        # Levels lie between quantiles of the rows' scores, and repeated rows have slightly
        # different ones.
        np.testing.assert_allclose(
            moved(found), moved(expected), rtol=0, atol=0.01 * np.ptp(moved(found))
        )
        np.testing.assert_allclose(found.shares_, share.sum(0) / share.sum(), rtol=1e-12)


def _copy(model: Any) -> Any:
    return type(model)(**model.get_params(deep=False))


def test_rates_are_weighted_by_probabilities() -> None:
    model = _copy(MODELS["decisions"][0]).fit(X, LABEL, sensitive_features=race())
    accepted = model.predict(X) == 1
    np.testing.assert_allclose(model.rates_.ravel(), accepted @ TABLE / TABLE.sum(0), rtol=1e-12)
    assert np.ptp(model.rates_) < 0.08


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_of_0_and_1_are_groups(name: str) -> None:
    model, y = MODELS[name]
    group = np.where(np.arange(ROWS) % 20 == 0, None, RANDOM.choice([*"abc"], ROWS))
    table = np.stack([np.where(np.equal(group, None), np.nan, group == one) for one in "abc"], 1)
    found, expected = (
        _copy(model).fit(X, y, sensitive_features=groups)
        for groups in (race(table, with_labels="included"), group)
    )
    results = [
        moved(model) if name in ("scores", "numbers") else model.rates_
        for model in (found, expected)
    ]
    assert np.array_equal(*results)


def test_scores_of_new_rows_have_one_distribution_in_the_true_groups() -> None:
    """P(group | x) is known; figures are those of the true groups of other rows."""

    def drawn(rows: int, seed: int) -> tuple[Any, Any, Any, Any]:
        random = np.random.default_rng(seed)
        features = random.normal(size=(rows, 3))
        share = 1 / (1 + np.exp(-1.7 * features[:, 0]))
        chance = 1 / (1 + np.exp(-features @ [1.0, 1.2, 0.8]))
        return (
            features,
            (random.uniform(size=rows) < chance).astype(int),
            share,
            random.uniform(size=rows) < share,
        )

    features, y, share, _ = drawn(3000, 0)
    test, _, _, true = drawn(10_000, 1)
    proxy = GroupProbabilities({"no": 1 - share, "yes": share}, attribute="group")
    model = BarycenterPostprocessor(LogisticRegression(), needs_group=False).fit(
        features, y, sensitive_features=proxy
    )
    plain, fair = model.base_.predict_proba(test)[:, 1], model.predict_proba(test)[:, 1]
    gaps = [unfairness(None, score, sensitive_features=true) for score in (plain, fair)]
    assert gaps[0] > 0.22
    assert gaps[1] < 0.06


def test_the_base_receives_the_probabilities_and_the_model_can_be_saved(tmp_path: Path) -> None:
    base = FairClassifier(2.0, model="linear")
    model = BarycenterPostprocessor(base, needs_group=False, folds=2, random_state=0)
    model.fit(X, LABEL, sensitive_features=race())
    expected = FairClassifier(2.0, model="linear").fit(X, LABEL, sensitive_features=race())
    np.testing.assert_allclose(
        model.base_.predict_proba(X), expected.predict_proba(X), rtol=0, atol=1e-9
    )
    model.save(tmp_path / "model")
    assert np.array_equal(moved(load(tmp_path / "model")), moved(model))


@pytest.mark.parametrize(
    ("further", "table", "error", "message"),
    [
        (
            {"needs_group": True},
            TABLE,
            DataError,
            "needs_group predicts with the group of each row.*needs_group=False",
        ),
        (
            {"group_model": KNeighborsClassifier()},
            TABLE,
            DataError,
            "group_model must accept sample_weight in fit",
        ),
        (
            {},
            np.c_[1 - P, P * 0.999, P * 0.001],
            TooFewSamples,
            r"group 'c' of P\(race\) has 0\.\d+ expected rows",
        ),
    ],
    ids=["group", "model", "small"],
)
def test_what_cannot_be_fitted_is_refused_in_words(
    further: Any, table: Any, error: Any, message: str
) -> None:
    model = BarycenterPostprocessor(LogisticRegression(), **{"needs_group": False} | further)
    with pytest.raises(error, match=message):
        model.fit(X, LABEL, sensitive_features=race(table))
