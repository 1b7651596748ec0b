"""Forged files of models that could predict nothing sensible, and predictions that are never
NaN.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forging import described

from metrifair import (
    DataError,
    FairClassifier,
    FairLGBMClassifier,
    FairLGBMRegressor,
    FairRegressor,
    FairXGBClassifier,
    FairXGBRegressor,
    TableEncoder,
    load,
)
from metrifair.errors import ModelFileError
from tests.expected_errors import Refusals
from tests.seams.estimators import TableModel
from tests.seams.saving import Content, _trees, make_content, read, table_scorer

RNG = np.random.default_rng(0)
A = RNG.integers(2, size=120)
X = RNG.normal(size=(120, 2)) + A[:, None]
Y = (X.sum(1) + RNG.normal(size=120) > 1).astype(int)
XGB: dict[str, Any] = {"n_jobs": 1, "n_estimators": 2, "max_depth": 2}
LGBM: dict[str, Any] = {"n_jobs": 1, "n_estimators": 2, "num_leaves": 4, "verbose": -1}


def loaded(path: Path, content: Content) -> Any:
    path.write_bytes(described(content.meta, content.arrays, content.kind))
    return load(path)


def with_trees(content: Content, text: str) -> Content:
    return content._replace(arrays={"trees": np.frombuffer(text.encode(), np.uint8)})


def trees(content: Content) -> str:
    return content.arrays["trees"].tobytes().decode()


@pytest.mark.parametrize("name", ["reg:squarederror", "binary:logitraw", "count:poisson"])
def test_a_classifier_of_xgboost_has_an_objective_of_probabilities(
    name: str, tmp_path: Path
) -> None:
    content = make_content(FairXGBClassifier(0.0, **XGB).fit(X, Y))
    model = json.loads(trees(content))
    model["learner"]["objective"] = {"name": name} | (
        {"poisson_regression_param": {"max_delta_step": "0.7"}}
        if name == "count:poisson"
        else {"reg_loss_param": {"scale_pos_weight": "1"}}
    )
    with pytest.raises(ModelFileError, match="no probabilities"):
        loaded(tmp_path / "m", with_trees(content, json.dumps(model)))
    regression = make_content(FairXGBRegressor(0.0, objective=name, **XGB).fit(X, Y))
    assert loaded(tmp_path / "m", regression).predict(X).shape == (120,)


@pytest.mark.parametrize("name", ["regression", "poisson", "cross_entropy_lambda", ""])
def test_a_classifier_of_lightgbm_has_an_objective_of_probabilities(
    name: str, tmp_path: Path
) -> None:
    content = make_content(FairLGBMClassifier(0.0, **LGBM).fit(X, Y))
    line = f"objective={name}\n" if name else ""
    changed = trees(content).replace("objective=binary sigmoid:1\n", line)
    assert changed != trees(content)
    with pytest.raises(ModelFileError, match="no probabilities"):
        loaded(tmp_path / "m", with_trees(content, changed))
    if name in ("regression", "poisson"):
        regression = make_content(FairLGBMRegressor(0.0, objective=name, **LGBM).fit(X, Y))
        assert loaded(tmp_path / "m", regression).predict(X).shape == (120,)


def test_a_leaf_of_xgboost_is_no_split_by_categories(tmp_path: Path) -> None:
    content = make_content(FairXGBClassifier(0.0, **XGB).fit(X, Y))
    model = json.loads(trees(content))
    tree = model["learner"]["gradient_booster"]["model"]["trees"][0]
    leaf = tree["left_children"].index(-1)
    tree["split_type"][leaf] = 1
    found = loaded(tmp_path / "m", with_trees(content, json.dumps(model)))
    found.save(tmp_path / "again")
    np.testing.assert_array_equal(load(tmp_path / "again").predict_proba(X), found.predict_proba(X))


def changed_array(name: str, change: Callable[[np.ndarray], np.ndarray], kind: Any) -> Content:
    target = Y if kind is FairClassifier else X.sum(1)
    content = make_content(kind(0.0, model="linear").fit(X, target))
    return content._replace(arrays=content.arrays | {name: change(content.arrays[name])})


@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("scaling/scale", lambda array: np.full_like(array, 5e-324)),
        ("parameters/weight0", lambda array: np.full_like(array, 1e308) * np.sign(array)),
        ("parameters/bias0", lambda array: np.full_like(array, 1.7e308)),
    ],
    ids=["scale", "weights", "bias"],
)
def test_parameters_without_a_finite_output_are_refused(
    kind: Any, name: str, change: Callable[[np.ndarray], np.ndarray], tmp_path: Path
) -> None:
    content = changed_array(name, change, kind)
    if name == "parameters/bias0":
        weights = content.arrays["parameters/weight0"]
        content = content._replace(
            arrays=content.arrays | {"parameters/weight0": np.full_like(weights, 1e308)}
        )
    with pytest.raises(ModelFileError, match="finite"):
        loaded(tmp_path / "m", content)


def test_a_row_without_a_finite_prediction_is_named(refused: Refusals) -> None:
    model = FairClassifier(0.0, model="linear").fit(1e-100 * X, Y)
    row = [[0.0, 0.0], [1e300, -1e300], [0.0, 0.0]]
    with refused(DataError):
        model.predict_proba(row)
    assert np.isfinite(model.predict_proba([row[0]])).all()


THREE = np.digitize(X.sum(1), [0.5, 1.5])
SOFTMAX = "multi:softmax"


ROWS = {"a": X[:, 0], "b": X[:, 1]}
ENCODER = TableEncoder().fit(ROWS)
ENCODED = ENCODER.transform(ROWS)


def table_file(path: Path, content: Content) -> Path:
    """A model of a table whose estimator is in ``content``."""
    TableModel(ENCODER, FairXGBClassifier(0.0, **XGB).fit(ENCODED, THREE), "y").save(path)
    whole = read(path)
    meta = whole.meta | {"estimator": whole.meta["estimator"] | {"meta": content.meta}}
    arrays = whole.arrays | {"estimator/trees": content.arrays["trees"]}
    path.write_bytes(described(meta, arrays, whole.kind))
    return path


def with_softmax(content: Content) -> Content:
    model = json.loads(trees(content))
    assert model["learner"]["objective"]["name"] == "multi:softprob"
    model["learner"]["objective"]["name"] = SOFTMAX
    return with_trees(content, json.dumps(model))


@pytest.mark.parametrize("forged", [False, True])
def test_an_objective_that_predicts_classes_gives_probabilities_from_every_file(
    forged: bool, tmp_path: Path
) -> None:
    """XGBoost's multi:softmax predicts the class, 0 to 2, of the margins whose softmax is the
    probability.
    """
    honest = FairXGBClassifier(0.0, **XGB).fit(ENCODED, THREE)
    content = with_softmax(make_content(honest))
    if not forged:
        content = make_content(FairXGBClassifier(0.0, objective=SOFTMAX, **XGB).fit(ENCODED, THREE))
    margins = honest.predict(ENCODED, output_margin=True).astype(np.float64)
    expected = np.exp(margins) / np.exp(margins).sum(1, keepdims=True)
    model = loaded(tmp_path / "m", content)
    np.testing.assert_allclose(model.predict_proba(ENCODED), expected, atol=1e-6)
    np.testing.assert_array_equal(model.predict(ENCODED), expected.argmax(1))
    scorer = table_scorer(read(table_file(tmp_path / "table", content)))
    assert scorer is not None
    np.testing.assert_allclose(scorer.predict_proba(ROWS), expected, atol=1e-6)
    np.testing.assert_array_equal(scorer.predict(ROWS), expected.argmax(1))


XGB_OBJECTIVES = [
    *(
        "binary:logistic",
        "binary:logitraw",
        "binary:hinge",
        "reg:squarederror",
        "reg:squaredlogerror",
        "reg:logistic",
    ),
    *(
        "reg:pseudohubererror",
        "reg:absoluteerror",
        "reg:quantileerror",
        "reg:gamma",
        "reg:tweedie",
        "count:poisson",
    ),
    *("multi:softmax", "multi:softprob", "rank:pairwise", "survival:cox"),
]
PARAMETERS = {
    "reg:pseudohubererror": {"pseudo_huber_param": {"huber_slope": "1"}},
    "reg:quantileerror": {"quantile_loss_param": {"quantile_alpha": "0.5"}},
    "reg:tweedie": {"tweedie_regression_param": {"tweedie_variance_power": "1.5"}},
    "count:poisson": {"poisson_regression_param": {"max_delta_step": "0.7"}},
    "multi:softmax": {"softmax_multiclass_param": {"num_class": "3"}},
    "multi:softprob": {"softmax_multiclass_param": {"num_class": "3"}},
}
SCALED = {"reg_loss_param": {"scale_pos_weight": "1"}}
LGBM_OBJECTIVES = [
    *(
        "binary sigmoid:1",
        "cross_entropy",
        "cross_entropy_lambda",
        "regression",
        "regression sqrt",
        "poisson",
    ),
    *(
        "gamma",
        "tweedie",
        "quantile",
        "huber",
        "fair",
        "mape",
        "lambdarank",
        "rank_xendcg",
        "multiclass num_class:3",
    ),
    *(
        "multiclassova num_class:3 sigmoid:1",
        "multiclass num_class:2",
        "binary sigmoid:1 sqrt",
        "cross_entropy sqrt",
    ),
]


def with_xgboost_objective(content: Content, name: str) -> Content:
    model = json.loads(trees(content))
    model["learner"]["objective"] = {"name": name} | PARAMETERS.get(name, SCALED)
    return with_trees(content, json.dumps(model))


def with_lightgbm_objective(content: Content, name: str) -> Content:
    text = re.sub("(?m)^objective=.*$", f"objective={name}", trees(content))
    return with_trees(content, text)


@pytest.mark.parametrize("target", [Y, THREE], ids=["two", "three"])
@pytest.mark.parametrize(
    ("kind", "options", "objectives", "forge"),
    [
        (FairXGBClassifier, XGB, XGB_OBJECTIVES, with_xgboost_objective),
        (FairLGBMClassifier, LGBM, LGBM_OBJECTIVES, with_lightgbm_objective),
    ],
    ids=["xgboost", "lightgbm"],
)
def test_a_forged_objective_is_refused_or_gives_probabilities(
    kind: Any,
    options: dict[str, Any],
    objectives: list[str],
    forge: Any,
    target: np.ndarray,
    tmp_path: Path,
) -> None:
    content = make_content(kind(0.0, **options).fit(X, target))
    classes = len(np.unique(target))
    accepted = []
    for objective in objectives:
        forged = forge(content, objective)
        models: list[Any] = []
        with contextlib.suppress(ModelFileError):
            models.append(loaded(tmp_path / "m", forged))
        with contextlib.suppress(ModelFileError):
            models.append(_trees(forged))
        assert len(models) in (0, 2), objective  # both readers accept it, or neither
        for model in models:
            probability = np.asarray(model.predict_proba(X))
            assert probability.shape == (len(X), classes), objective
            assert probability.min() >= 0, objective
            assert probability.max() <= 1, objective
            # one probability for each class against all others
            if not objective.startswith("multiclassova"):
                np.testing.assert_allclose(probability.sum(1), 1.0, atol=1e-6)
        accepted += [objective] * bool(models)
    assert 1 <= len(accepted) <= 4
