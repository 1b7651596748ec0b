"""Forged files of models that could predict nothing sensible, and predictions that are never NaN."""

from __future__ import annotations

import json
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
    load,
)
from metrifair.errors import ModelFileError
from metrifair.saving.modelfile import Content
from metrifair.saving.models import make_content

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
def test_a_classifier_of_xgboost_has_an_objective_of_probabilities(name: str, tmp_path: Path) -> None:
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
def test_a_classifier_of_lightgbm_has_an_objective_of_probabilities(name: str, tmp_path: Path) -> None:
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
        content = content._replace(arrays=content.arrays | {"parameters/weight0": np.full_like(weights, 1e308)})
    with pytest.raises(ModelFileError, match="finite"):
        loaded(tmp_path / "m", content)


def test_a_row_without_a_finite_prediction_is_named() -> None:
    model = FairClassifier(0.0, model="linear").fit(1e-100 * X, Y)
    row = [[0.0, 0.0], [1e300, -1e300], [0.0, 0.0]]
    with pytest.raises(DataError, match="row 1 of X has no finite prediction"):
        model.predict_proba(row)
    assert np.isfinite(model.predict_proba([row[0]])).all()
