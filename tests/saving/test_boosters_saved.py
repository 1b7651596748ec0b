"""Fair boosters in files: the same to the last bit, or refused; and no text of trees reaches
the booster unseen.
"""

from __future__ import annotations

import contextlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
from forging import bent, damages, described, lies, sealed
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from metrifair import (
    FairLGBMClassifier,
    FairLGBMRegressor,
    FairXGBClassifier,
    FairXGBRegressor,
    SearchOptions,
    load,
)
from metrifair.criteria import Criterion
from metrifair.errors import DataError, ModelFileError
from tests.expected_errors import Refusals
from tests.one_split import frontier
from tests.seams.saving import (
    Content,
    from_bytes,
    lightgbm_trees,
    make_content,
    read_model,
    to_bytes,
    xgboost_trees,
)

pytestmark = pytest.mark.extended

N = 200
GENERATOR = np.random.default_rng(0)
A = GENERATOR.integers(2, size=N)
X = pd.DataFrame(
    {
        "größe": GENERATOR.normal(size=N) + A,
        "a b": pd.Categorical(np.array(["ü", "v", "w w"])[GENERATOR.integers(3, size=N)]),
        "c": np.where(GENERATOR.random(N) < 0.2, np.nan, GENERATOR.normal(size=N)),
    }
)
VALUE = X["größe"] + (X["a b"] == "v") + GENERATOR.normal(size=N) / 2
LGBM: dict[str, Any] = {"n_jobs": 1, "verbose": -1, "n_estimators": 4, "min_child_samples": 5}
XGB: dict[str, Any] = {"n_jobs": 1, "n_estimators": 4, "enable_categorical": True, "max_depth": 3}
MODELS: dict[str, tuple[type, dict[str, Any], Any]] = {
    "lgbm": (FairLGBMClassifier, LGBM, np.array(["no", "yes"])[(VALUE > 0.5).astype(int)]),
    "lgbm categories only": (
        FairLGBMClassifier,
        LGBM | {"min_data_per_group": 1, "cat_l2": 0.0},
        (VALUE > 0.5) * 1,
    ),
    "lgbm plain": (FairLGBMClassifier, LGBM | {"strength": 0.0}, (VALUE > 0.5) * 1),
    "lgbm of three": (FairLGBMClassifier, LGBM | {"strength": 0.0}, np.digitize(VALUE, [0, 1])),
    "lgbm weights": (
        FairLGBMClassifier,
        LGBM | {"class_weight": {0: 1.0, 1: 2.0}},
        (VALUE > 0.5) * 1,
    ),
    "lgbm regression": (FairLGBMRegressor, LGBM | {"criterion": "risk_parity"}, VALUE),
    "lgbm dart": (FairLGBMRegressor, LGBM | {"boosting_type": "dart", "strength": 0.0}, VALUE),
    "xgb": (FairXGBClassifier, XGB, (VALUE > 0.5) * 1),
    "xgb plain": (FairXGBClassifier, XGB | {"strength": 0.0}, (VALUE > 0.5) * 1),
    "xgb of three": (FairXGBClassifier, XGB | {"strength": 0.0}, np.digitize(VALUE, [0, 1])),
    "xgb regression": (
        FairXGBRegressor,
        XGB | {"metric": "wasserstein", "max_cat_to_onehot": 1},
        VALUE,
    ),
    "xgb dart": (FairXGBRegressor, XGB | {"booster": "dart", "rate_drop": 0.5}, VALUE),
}
every_model = pytest.mark.parametrize("name", MODELS)


@cache
def fitted(name: str) -> Any:
    kind, parameters, target = MODELS[name]
    return kind(**{"strength": 2.0, **parameters}).fit(X, target, sensitive_features=A)


def to_parts(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    content = make_content(model)
    return content.meta, content.arrays


def rebuilt(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    return read_model(Content("booster", meta, arrays))


def predictions(model: Any) -> np.ndarray:
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def as_bytes(name: str) -> bytes:
    return to_bytes(Content("booster", *to_parts(fitted(name))))


@every_model
def test_a_loaded_model_is_the_same(name: str, tmp_path: Path) -> None:
    model, path = fitted(name), tmp_path / "some.model"
    model.save(path)
    again = load(path)
    assert type(again) is type(model)
    assert np.array_equal(predictions(again), predictions(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.predict(X).dtype == model.predict(X).dtype
    assert repr(again.get_params()) == repr(model.get_params())
    assert again.n_features_in_ == 3
    assert list(again.feature_names_in_) == list(model.feature_names_in_)
    again.save(path)
    twice = load(path)
    assert np.array_equal(predictions(twice), predictions(model))
    refitted = clone(again).fit(X, MODELS[name][2], sensitive_features=A)
    assert np.array_equal(predictions(refitted), predictions(model))


def test_labels_of_any_text_are_kept(tmp_path: Path) -> None:
    labels = np.array(["<=50K", "> 50 % = \n"])[(VALUE > 0.5).astype(int)]
    weights = {"<=50K": 1.0, "> 50 % = \n": 2.0}
    model = FairLGBMClassifier(2.0, pos_label="<=50K", class_weight=weights, **LGBM).fit(
        X, labels, sensitive_features=A
    )
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert (again.pos_label, again.class_weight) == ("<=50K", weights)


def test_constraints_are_kept(tmp_path: Path) -> None:
    constraints = [["größe", "c"]]
    model = FairXGBRegressor(
        0.0, interaction_constraints=constraints, monotone_constraints=(1, 0, 0), **XGB
    )
    model.fit(X, VALUE).save(tmp_path / "m")
    assert load(tmp_path / "m").get_params()["interaction_constraints"] == constraints
    model = FairLGBMRegressor(
        0.0, interaction_constraints=[[0, 2], [1]], monotone_constraints=[1, 0, 0], **LGBM
    )
    model.fit(X, VALUE).save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict(X), model.predict(X))


def test_trees_that_xgboost_pruned_are_kept(tmp_path: Path) -> None:
    rows = X[["größe", "c"]]
    model = FairXGBRegressor(
        0.0, n_jobs=1, n_estimators=3, tree_method="exact", gamma=5.0, max_depth=4
    ).fit(rows, VALUE)
    trees = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]["gradient_booster"][
        "model"
    ]["trees"]
    assert any(tree["tree_param"]["num_deleted"] != "0" for tree in trees)
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict(rows), model.predict(rows))
    assert np.array_equal(load(tmp_path / "m").apply(rows), model.apply(rows))


@pytest.mark.parametrize(
    "objective",
    [
        *("reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror", "reg:quantileerror"),
        *("reg:gamma", "reg:tweedie", "count:poisson"),
    ],
)
def test_every_objective_of_xgboost_is_kept(objective: str, tmp_path: Path) -> None:
    more = {"quantile_alpha": 0.3} if objective == "reg:quantileerror" else {}
    model = FairXGBRegressor(0.0, objective=objective, **XGB, **more).fit(X, np.exp(VALUE / 4))
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict(X), model.predict(X))


@pytest.mark.parametrize(
    "objective",
    ["regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma", "tweedie"],
)
def test_every_objective_of_lightgbm_is_kept(objective: str, tmp_path: Path) -> None:
    model = FairLGBMRegressor(0.0, objective=objective, **LGBM).fit(X, np.exp(VALUE / 4))
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict(X), model.predict(X))


@pytest.mark.parametrize("name", ["lgbm", "xgb"])
def test_the_best_round_is_kept(name: str, tmp_path: Path) -> None:
    kind, parameters, target = MODELS[name]
    sets = {"eval_set": [(X[100:], target[100:])], "eval_sensitive_features": [A[100:]]}
    model = kind(2.0, **parameters).set_params(n_estimators=200, learning_rate=0.5)
    if name == "xgb":
        model.set_params(early_stopping_rounds=2).fit(
            X[:100], target[:100], sensitive_features=A[:100], verbose=0, **sets
        )
    else:
        stop = [lightgbm.early_stopping(2, verbose=False)]
        model.fit(X[:100], target[:100], sensitive_features=A[:100], callbacks=stop, **sets)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert np.array_equal(predictions(again), predictions(model))
    of = "best_iteration" if name == "xgb" else "best_iteration_"
    assert getattr(again, of) == getattr(model, of) < 150


@pytest.mark.parametrize("name", ["lgbm", "xgb"])
def test_a_frontier_of_boosters_is_saved_and_resumed(name: str, tmp_path: Path) -> None:
    kind, parameters, target = MODELS[name]
    search = SearchOptions(ledger=tmp_path / "ledger")
    arguments = {"sensitive_features": A, "strengths": [0, 3], "random_state": 0, "search": search}
    front = frontier(kind(**parameters), X, target, **arguments)
    front.save(tmp_path / "front")
    for again in (load(tmp_path / "front"), frontier(kind(**parameters), X, target, **arguments)):
        assert [point.unfairness for point in again.points] == [
            point.unfairness for point in front.points
        ]
        for mine, other in zip(front.models, again.models, strict=True):
            assert np.array_equal(predictions(other), predictions(mine))


def test_what_cannot_be_saved_says_so(tmp_path: Path, refused: Refusals) -> None:
    with pytest.raises(NotFittedError):
        FairLGBMClassifier().save(tmp_path / "m")
    own = Criterion("own", score=lambda prediction, y: prediction)
    with pytest.raises(DataError, match=r"criterion\.score is a function"):
        FairXGBRegressor(1.0, criterion=own, **XGB).fit(X, VALUE, sensitive_features=A).save(
            tmp_path / "m"
        )

    class Mine(FairLGBMRegressor):
        pass

    with refused(DataError):
        Mine(1.0, **LGBM).fit(X, VALUE, sensitive_features=A).save(tmp_path / "m")
    with pytest.raises(DataError, match="the booster"):
        FairXGBRegressor(0.0, booster="gblinear", n_jobs=1).fit(A[:, None], VALUE).save(
            tmp_path / "m"
        )
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", ["lgbm", "lgbm categories only", "xgb regression", "xgb of three"])
@given(st.data())
@settings(max_examples=30, deadline=None)
def test_a_damaged_file_is_refused_or_as_good_as_before(name: str, data: Any) -> None:
    found = data.draw(damages(as_bytes(name)))
    for file in (found, sealed(found)):
        with contextlib.suppress(ModelFileError):
            content = from_bytes(file)
            if content.kind == "booster":
                predictions(rebuilt(content.meta, content.arrays))


@pytest.mark.parametrize("name", ["lgbm", "xgb"])
@given(st.data())
@settings(max_examples=30, deadline=None)
def test_lies_in_the_description_are_refused_or_harmless(name: str, data: Any) -> None:
    meta, arrays = to_parts(fitted(name))
    with contextlib.suppress(ModelFileError):
        told = data.draw(
            st.one_of(
                st.tuples(lies(meta), st.just(arrays)), st.tuples(st.just(meta), bent(arrays))
            )
        )
        content = from_bytes(described(*told, kind="booster"))
        model = rebuilt(content.meta, content.arrays)
        with contextlib.suppress(Exception):  # other columns than those it was fitted with, for one
            predictions(model)


def text_of(name: str) -> str:
    return to_parts(fitted(name))[1]["trees"].tobytes().decode()


TEXT_LIES = {
    "a child beyond": (r"left_child=(-?\d+)", "left_child=77"),
    "a circle": (r"left_child=(-?\d+)", "left_child=0"),
    "a leaf twice": (r"right_child=(.*) -?\d+\n", r"right_child=\1 -1\n"),
    "a feature beyond": (r"split_feature=\d+", "split_feature=3"),
    "a negative feature": (r"split_feature=\d+", "split_feature=-2"),
    "leaves missing": (r"leaf_value=\S+ ", "leaf_value="),
    "leaves of nothing": (r"leaf_value=\S+", "leaf_value=nan"),
    "more leaves": (r"num_leaves=\d+", "num_leaves=1000000"),
    "no number": (r"threshold=\S+", "threshold=many"),
    "linear": (r"is_linear=0", "is_linear=1"),
    "features": (r"max_feature_idx=2", "max_feature_idx=200"),
    "classes": (r"num_class=1", "num_class=1000000000"),
    "trees each round": (r"num_tree_per_iteration=1", "num_tree_per_iteration=7"),
    "names": (r"feature_names=\S+ ", "feature_names="),
    "no end": (r"end of trees", "end of it"),
    "no line": (r"decision_type=.*\n", ""),
}


@pytest.mark.parametrize("lie", TEXT_LIES)
def test_trees_of_lightgbm_that_do_not_hold_together_are_refused(lie: str) -> None:
    text = text_of("lgbm")
    assert lightgbm_trees(text, features=3, classes=1)
    changed = re.sub(*TEXT_LIES[lie], text, count=1)
    assert changed != text
    with pytest.raises(ModelFileError):
        lightgbm_trees(changed, features=3, classes=1)


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        (r"cat_boundaries=0 \d+", "cat_boundaries=0 5000"),
        (r"cat_threshold=\S+", "cat_threshold="),
        (r"num_cat=\d+", "num_cat=0"),
    ],
)
def test_categories_of_lightgbm_that_do_not_exist_are_refused(pattern: str, instead: str) -> None:
    text = text_of("lgbm categories only")
    assert re.search(r"^num_cat=[1-9]", text, re.MULTILINE)
    trees = text.split("Tree=")
    at = next(
        place
        for place, tree in enumerate(trees)
        if re.search(r"^num_cat=[1-9]", tree, re.MULTILINE)
    )
    trees[at] = re.sub(pattern, instead, trees[at], count=1)
    with pytest.raises(ModelFileError):
        lightgbm_trees("Tree=".join(trees), features=3, classes=1)


def lie_to(model: Any, keys: list[Any], value: Any) -> str:
    place = model
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return json.dumps(model)


MODEL = ["learner", "gradient_booster", "model"]
TREE = [*MODEL, "trees", 0]
JSON_LIES: dict[str, tuple[list[Any], Any]] = {
    "a child beyond": ([*TREE, "left_children", 0], 1000),
    "a circle": ([*TREE, "left_children", 0], 0),
    "half a split": ([*TREE, "right_children", 0], -1),
    "a child of words": ([*TREE, "left_children", 0], "1"),
    "a feature beyond": ([*TREE, "split_indices", 0], 3),
    "few nodes": ([*TREE, "tree_param", "num_nodes"], "1"),
    "many nodes": ([*TREE, "tree_param", "num_nodes"], "1000000"),
    "few weights": ([*TREE, "base_weights"], [0.0]),
    "vectors": ([*TREE, "tree_param", "size_leaf_vector"], "3"),
    "a word": ([*TREE, "split_conditions", 0], "far"),
    "categories": ([*TREE, "categories_nodes"], [0, 0, 0]),
    "tree number": ([*TREE, "id"], 7),
    "class of a tree": ([*MODEL, "tree_info", 0], 5),
    "rounds": ([*MODEL, "iteration_indptr", -1], 400),
    "count": ([*MODEL, "gbtree_model_param", "num_trees"], "9"),
    "no trees": ([*MODEL, "trees"], None),
    "features": (["learner", "learner_model_param", "num_feature"], "900"),
    "classes": (["learner", "learner_model_param", "num_class"], "1000000000"),
    "targets": (["learner", "learner_model_param", "num_target"], "5"),
    "names": (["learner", "feature_names"], ["one"]),
    "letters": ([*MODEL, "cats", "enc", 1, "offsets", -1], 999),
    "segments": ([*MODEL, "cats", "feature_segments", -1], 999),
    "linear": (["learner", "gradient_booster", "name"], "gblinear"),
    "forest": (["learner", "gradient_booster", "name"], "dart"),
}


@pytest.mark.parametrize("lie", JSON_LIES)
def test_trees_of_xgboost_that_do_not_hold_together_are_refused(lie: str) -> None:
    text = text_of("xgb")
    assert xgboost_trees(text, features=3, classes=1)
    with pytest.raises(ModelFileError):
        xgboost_trees(lie_to(json.loads(text), *JSON_LIES[lie]), features=3, classes=1)


def test_categorical_splits_of_xgboost_pass_and_their_lies_do_not() -> None:
    model = json.loads(text_of("xgb regression"))
    trees = model["learner"]["gradient_booster"]["model"]["trees"]
    at = next(place for place, tree in enumerate(trees) if tree["categories_nodes"])
    with pytest.raises(ModelFileError):
        xgboost_trees(
            lie_to(model, [*MODEL, "trees", at, "categories_sizes", 0], 10**6),
            features=3,
            classes=1,
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "FairForest"}, "a model of the kind 'FairForest', which"),
        ({"parameters": {"strength": -1}}, "strength must be"),
        ({"parameters": {"strength": 1.0, "criterion": "none"}}, "criterion must be one of"),
        (
            {"classes": {"dtype": "int64", "values": [0, 1, 2]}},
            "num_class of the model text must be 3",
        ),
        ({"features": {"count": 4, "names": None}}, "max_feature_idx of the model text must be 3"),
        ({"best_iteration": 99}, "best_iteration or the names of the features do not fit"),
        ({"objective": None}, r"Expected `str`, got `null` - at `\$.objective`"),
        ({"more": 1}, "Object contains unknown field `more`"),
    ],
)
def test_a_description_that_does_not_fit_is_refused_by_name(
    change: dict[str, Any], message: str
) -> None:
    meta, arrays = to_parts(fitted("lgbm"))
    with pytest.raises(ModelFileError, match=message):
        rebuilt({**meta, **change}, arrays)


def test_the_file_of_xgboost_needs_classes_from_0() -> None:
    meta, arrays = to_parts(fitted("xgb"))
    with pytest.raises(ModelFileError, match="numbered from 0"):
        rebuilt({**meta, "classes": {"dtype": "int64", "values": [1, 2]}}, arrays)
    with pytest.raises(ModelFileError, match="codec can't decode byte"):
        rebuilt(meta, {"trees": np.array([255, 254], dtype=np.uint8)})


def test_a_column_with_an_equals_sign_in_its_name_can_be_saved(tmp_path):
    """As encoders name the columns of levels."""
    rows = np.random.default_rng(0).normal(size=(60, 2))
    frame = pd.DataFrame(rows, columns=["town = a", "x"])
    model = FairLGBMClassifier(0.0, n_estimators=2, n_jobs=1, verbose=-1).fit(frame, rows[:, 0] > 0)
    model.save(tmp_path / "model.metrifair")
    assert (
        load(tmp_path / "model.metrifair").predict_proba(frame) == model.predict_proba(frame)
    ).all()
