"""Training with probabilities of groups: each row counts for every group in proportion to its
probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from metrifair import FairClassifier, FairRegressor, GroupProbabilities, PenaltyOptions, unfairness
from metrifair.errors import DataError, MetrifairWarning
from tests.expected_errors import Refusals
from tests.flat_options import with_penalty

RANDOM = np.random.default_rng(3)
ROWS = 300
Z = RANDOM.normal(size=ROWS)
X = np.c_[Z, RANDOM.normal(size=(ROWS, 2))]
P = 1 / (1 + np.exp(-2 * Z))
TABLE = np.stack([(1 - P) * 0.8, P, (1 - P) * 0.2], 1)
LABEL = (X.sum(1) + RANDOM.logistic(size=ROWS) > 0).astype(int)
NUMBER = X @ [1.0, 2.0, -1.0] + RANDOM.normal(size=ROWS)
WEIGHT = RANDOM.integers(0, 4, ROWS).astype(float)
REGION = RANDOM.choice(["north", "south"], ROWS)


def race(table: Any = TABLE, **further: Any) -> GroupProbabilities:
    return GroupProbabilities(
        dict(zip("abc", np.asarray(table).T, strict=True)), attribute="race", **further
    )


def by_entries(weight: Any = None) -> dict[str, Any]:
    """Each row once for each group, with that share of its weight: groups are known, and
    weights do the rest.
    """
    share = TABLE if weight is None else TABLE * weight[:, None]
    row, group = np.nonzero(share > 0)
    return {
        "rows": row,
        "sensitive_features": np.array(list("abc"))[group],
        "sample_weight": share[row, group],
    }


CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "linear": (FairClassifier(2.0, model="linear"), LABEL, {}),
    "linear, weights": (FairClassifier(2.0, model="linear"), LABEL, {"sample_weight": WEIGHT}),
    "linear, strata": (FairClassifier(2.0, model="linear"), LABEL, {"control_features": REGION}),
    "linear, wasserstein, rest": (
        FairRegressor(
            1.0, model="linear", metric="wasserstein", penalty=PenaltyOptions(contrast="rest")
        ),
        NUMBER,
        {},
    ),
    "labels": (FairClassifier(2.0, model="linear", criterion="equalized_odds"), LABEL, {}),
    "network": (FairClassifier(2.0, epochs=30, random_state=0, model="mlp"), LABEL, {}),
    "network, mmd, weights": (
        FairRegressor(2.0, metric="mmd", epochs=30, random_state=0, model="mlp"),
        NUMBER,
        {"sample_weight": WEIGHT},
    ),
    "network, kolmogorov": (
        FairClassifier(0.3, metric="kolmogorov", epochs=30, random_state=0, model="mlp"),
        LABEL,
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fit_is_that_of_rows_in_every_group_with_weights(case: str) -> None:
    model, y, given = CASES[case]
    entries = by_entries(given.get("sample_weight"))
    rows = entries.pop("rows")
    entries |= {"control_features": REGION[rows]} if "control_features" in given else {}
    expected = _copy(model).fit(X[rows], y[rows], **entries)
    found = _copy(model).fit(X, y, sensitive_features=race(with_labels="included"), **given)
    # the solver stops at kinks
    np.testing.assert_allclose(_scores(found), _scores(expected), rtol=0, atol=2e-3)
    plain = _copy(model).set_params(strength=0.0).fit(X, y, **given)
    assert np.abs(_scores(found) - _scores(plain)).max() > 0.05


def _copy(model: Any) -> Any:
    return type(model)(**model.get_params())


def _scores(model: Any) -> Any:
    return model.predict_proba(X)[:, 1] if isinstance(model, FairClassifier) else model.predict(X)


@pytest.mark.parametrize(
    "further",
    [{"model": "linear"}, {"model": "mlp", "epochs": 3, "batch_size": 64, "random_state": 0}],
)
def test_probabilities_of_0_and_1_are_groups(further: dict[str, Any]) -> None:
    group = RANDOM.choice(np.array([*"abc"], dtype=object), ROWS)
    group[::20] = None
    table = np.stack([np.where(np.equal(group, None), np.nan, group == name) for name in "abc"], 1)
    found, expected = (
        FairClassifier(2.0, **with_penalty(**further)).fit(X, LABEL, sensitive_features=groups)
        for groups in (race(table), group)
    )
    assert np.array_equal(_scores(found), _scores(expected))


@pytest.mark.parametrize(
    "further",
    [
        {},
        {"metric": "mmd"},
        {"metric": "wasserstein"},
        {"estimate": "batch"},
        {"early_stopping": 0.25},
        {"model": "linear", "solver": "sgd"},
    ],
    ids=str,
)
def test_batches_lower_the_unfairness_by_probabilities(further: dict[str, Any]) -> None:
    plain, fair = (
        FairClassifier(
            strength,
            batch_size=64,
            epochs=60,
            random_state=0,
            **with_penalty(**({"model": "mlp"} | further)),
        ).fit(X, LABEL, sensitive_features=race(), sample_weight=WEIGHT)
        for strength in (0.0, 5.0)
    )
    gaps = [
        unfairness(None, _scores(model), sensitive_features=race(), sample_weight=WEIGHT)
        for model in (plain, fair)
    ]
    assert gaps[1] < 0.5 * gaps[0]


def test_batches_of_several_classes_lower_the_unfairness_by_probabilities() -> None:
    y = np.digitize(NUMBER, [-1.0, 1.0])
    models = [
        FairClassifier(strength, batch_size=64, epochs=30, random_state=0, model="mlp").fit(
            X, y, sensitive_features=race()
        )
        for strength in (0.0, 10.0)
    ]
    gaps = [
        unfairness(None, model.predict_proba(X)[:, 2], sensitive_features=race())
        for model in models
    ]
    assert gaps[1] < 0.6 * gaps[0]


def test_a_row_of_missing_probabilities_counts_for_the_risk_only() -> None:
    table = TABLE.copy()
    table[::7] = np.nan
    known = np.flatnonzero(~np.isnan(table[:, 0]))
    model = FairClassifier(2.0, model="linear").fit(X, LABEL, sensitive_features=race(table))
    only_known = FairClassifier(2.0, model="linear").fit(
        X[known], LABEL[known], sensitive_features=race(TABLE[known])
    )
    assert np.abs(_scores(model) - _scores(only_known)).max() > 1e-4
    gap = unfairness(
        None, _scores(model)[known], sensitive_features=race(TABLE[known]), metric="energy"
    )
    plain = FairClassifier(0.0, model="linear").fit(X, LABEL)
    assert gap < 0.5 * unfairness(
        None, _scores(plain)[known], sensitive_features=race(TABLE[known]), metric="energy"
    )


def test_groups_with_fewer_than_two_expected_rows_are_left_out() -> None:
    table = np.stack([P * 0.999, (1 - P) * 0.999, np.full(ROWS, 0.001)], 1)
    with pytest.warns(
        MetrifairWarning, match=r"too small to train on: P\(race\) 'c' \(0\.3 rows\)"
    ):
        model = FairClassifier(2.0, model="linear").fit(X, LABEL, sensitive_features=race(table))
    assert model.left_out_ == ("P(race) 'c' (0.3 rows)",)


@pytest.mark.parametrize(
    ("further", "given", "message"),
    [
        ({"estimate": "population"}, {}, "estimate: 'population' needs the group of each row"),
        (
            {"criterion": "equal_opportunity"},
            {},
            r"uses labels, which needs a further assumption about P\(race\)",
        ),
        ({}, {"confusion": np.eye(3)}, "corrects audits only"),
    ],
    ids=str,
)
def test_what_training_does_not_take_is_refused_in_words(
    further: Any, given: Any, message: str
) -> None:
    table = np.eye(3)[TABLE.argmax(1)] if given else TABLE
    with pytest.raises(
        DataError, match=message.replace("estimate: ", ".*").replace("contrast: ", ".*")
    ):
        FairClassifier(1.0, **with_penalty(**further)).fit(
            X, LABEL, sensitive_features=race(table, **given)
        )


def test_a_stream_refuses_probabilities(refused: Refusals) -> None:
    for further in ({}, {"groups": [*"abc"]}):
        with refused(DataError):
            FairClassifier(1.0, model="mlp").partial_fit(
                X, LABEL, sensitive_features=race(), **further
            )


def test_probabilities_train_for_the_true_groups_as_groups_do_and_thresholding_does_not() -> None:
    """A population in which P(group | x) is known: figures of the true groups, on rows that
    were not trained on.
    """

    def drawn(rows: int, seed: int) -> tuple[Any, Any, Any, Any]:
        random = np.random.default_rng(seed)
        place = random.normal(size=rows)
        features = np.c_[place, random.normal(size=(rows, 2))]
        share = 1 / (1 + np.exp(-1.7 * place))
        chance = 1 / (1 + np.exp(-features @ [1.0, 1.2, 0.8]))
        return (
            features,
            (random.uniform(size=rows) < chance).astype(int),
            share,
            random.uniform(size=rows) < share,
        )

    features, y, share, group = drawn(4000, 0)
    test, test_y, _, test_group = drawn(20_000, 1)
    proxy = GroupProbabilities({"no": 1 - share, "yes": share}, attribute="group")
    gaps, areas = {}, {}
    for name, strength, groups in (
        ("plain", 0.0, group),
        ("true", 3.0, group),
        ("proxy", 3.0, proxy),
        ("cut", 3.0, share > 0.5),
    ):
        model = FairClassifier(strength, model="linear").fit(features, y, sensitive_features=groups)
        score = model.predict_proba(test)[:, 1]
        gaps[name], areas[name] = (
            unfairness(None, score, sensitive_features=test_group),
            roc_auc_score(test_y, score),
        )
    assert gaps["plain"] > 0.22
    assert gaps["proxy"] < 0.1
    assert abs(gaps["proxy"] - gaps["true"]) < 0.02
    assert abs(areas["proxy"] - areas["true"]) < 0.01
    assert areas["plain"] > areas["proxy"] > areas["cut"] + 0.005  # the wrong groups cost more
