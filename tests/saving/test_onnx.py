"""Models as ONNX graphs: onnxruntime says what Python says, for every estimator, task and kind
of column.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from metrifair import (
    BarycenterPostprocessor,
    FairClassifier,
    FairLGBMClassifier,
    FairLGBMRegressor,
    FairRegressor,
    FairXGBClassifier,
    FairXGBRegressor,
    TableEncoder,
)
from metrifair.errors import DataError, MissingExtra
from tests.expected_errors import Refusals
from tests.flat_options import with_penalty
from tests.seams.estimators import TableModel
from tests.seams.saving import make_forest, onnx_model

pytestmark = [
    pytest.mark.extended,
    # trained for a moment
    pytest.mark.filterwarnings("ignore:(the model predicts the same|.*models are constant)"),
]

N = 200
RNG = np.random.default_rng(0)
A = RNG.integers(2, size=N)
X = RNG.normal(size=(N, 3)) * [1, 20, 3] + [0, 1e4, 0] + A[:, None]
X[:, 2] = X[:, 2].round()
GAPS = np.where(RNG.random(X.shape) < 0.15, np.nan, X)
VALUE = X[:, 0] + (X[:, 1] - 1e4) / 20 + RNG.normal(size=N)
YES = np.where(VALUE > 1, "yes", "no")
THREE = np.digitize(VALUE, [0, 1.5]) * 10
LGBM: dict[str, Any] = {
    "n_jobs": 1,
    "verbose": -1,
    "n_estimators": 6,
    "min_child_samples": 5,
    "expected_groups": False,
}
XGB: dict[str, Any] = {"n_jobs": 1, "n_estimators": 6, "max_depth": 4, "expected_groups": False}
NET: dict[str, Any] = {"model": "mlp", "epochs": 2, "random_state": 0}
ODD = {"zero_as_missing": True}
# class, parameters beside a strength of 1, X, y
MODELS: dict[str, tuple[type, dict[str, Any], Any, Any]] = {
    "linear": (FairClassifier, {"model": "linear"}, X, YES),
    "linear, the first class positive": (
        FairClassifier,
        {"model": "linear", "pos_label": "no"},
        X,
        YES,
    ),
    "network": (FairClassifier, NET | {"hidden": (5, 4)}, X, VALUE > 1),
    "network of three": (FairClassifier, NET, X, THREE),
    "one column of integers": (
        FairClassifier,
        NET,
        X[:, [2]].astype(int),
        (VALUE > 1).astype(float),
    ),
    "single precision": (
        FairClassifier,
        NET | {"standardize": False},
        X[:, [0, 2]].astype(np.float32),
        YES,
    ),
    "regression": (FairRegressor, {"model": "linear"}, X, 1e3 * VALUE),
    "regression by a network": (FairRegressor, NET, X, VALUE),
    "lgbm": (FairLGBMClassifier, LGBM, X, YES),
    "lgbm with gaps": (FairLGBMClassifier, LGBM, GAPS, YES),
    "lgbm of three": (FairLGBMClassifier, LGBM | {"strength": 0.0}, GAPS, THREE),
    "lgbm one against all": (
        FairLGBMClassifier,
        LGBM | {"strength": 0.0, "objective": "multiclassova"},
        X,
        THREE,
    ),
    "lgbm without zeros": (FairLGBMClassifier, LGBM | {"strength": 0.0} | ODD, GAPS, THREE),
    "lgbm regression": (FairLGBMRegressor, LGBM, GAPS, VALUE),
    "lgbm of roots": (FairLGBMRegressor, LGBM | {"strength": 0.0, "reg_sqrt": True}, X, VALUE),
    "lgbm of counts": (
        FairLGBMRegressor,
        LGBM | {"strength": 0.0, "objective": "poisson"},
        X,
        np.abs(VALUE),
    ),
    "lgbm that is constant": (
        FairLGBMRegressor,
        LGBM | {"strength": 0.0, "min_child_samples": 500},
        X,
        VALUE,
    ),
    "xgb": (FairXGBClassifier, XGB, X, (VALUE > 1) * 1),
    "xgb with gaps": (FairXGBClassifier, XGB, GAPS, (VALUE > 1) * 1),
    "xgb of three": (FairXGBClassifier, XGB | {"strength": 0.0}, GAPS, THREE // 10),
    "xgb regression": (FairXGBRegressor, XGB, GAPS, VALUE),
    "xgb dart": (FairXGBRegressor, XGB | {"booster": "dart", "rate_drop": 0.5}, X, VALUE),
    "xgb pruned, in threes": (
        FairXGBRegressor,
        XGB | {"strength": 0.0, "gamma": 4.0, "num_parallel_tree": 3},
        X,
        VALUE,
    ),
    "xgb without minus one": (FairXGBRegressor, XGB | {"strength": 0.0, "missing": -1.0}, X, VALUE),
    "xgb of counts": (
        FairXGBRegressor,
        XGB | {"strength": 0.0, "objective": "count:poisson"},
        X,
        np.abs(VALUE),
    ),
}
TREES = [name for name in MODELS if name.startswith(("lgbm", "xgb"))]


@cache
def fitted(name: str) -> Any:
    kind, parameters, x, y = MODELS[name]
    return kind(**with_penalty(**{"strength": 1.0, **parameters})).fit(x, y, sensitive_features=A)


@cache
def session(name: str) -> Any:
    return onnxruntime.InferenceSession(onnx_model(fitted(name), {}))


def check_alike(model: Any, rows: Any, found: list[Any], *, close: float) -> None:
    """The outputs of a graph are what Python says of these rows; decisions where these are not
    a matter of rounding.
    """
    if not hasattr(model, "predict_proba"):
        expected = model.predict(rows)
        assert found[0].shape == expected.shape
        np.testing.assert_allclose(found[0], expected, rtol=close, atol=close)
        return
    expected = model.predict_proba(rows)
    np.testing.assert_allclose(found[1], expected, rtol=0, atol=close)
    clear = np.abs(np.diff(np.sort(expected)[:, -2:])[:, 0]) > 2 * close
    assert clear.mean() > 0.9
    assert (found[0][clear] == model.predict(rows)[clear]).all()


def tolerance(name: str) -> float:
    """The difference from Python that docs/deploy.md allows.

    Measured with 500 trees: 6e-16 for networks, 2e-16 for LightGBM, and 2e-7 for XGBoost, which
    adds up in single precision.
    """
    return 3e-6 if name.startswith("xgb") else 1e-10


@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_says_what_python_says(name: str) -> None:
    rows = MODELS[name][2]
    assert [one.name for one in session(name).get_inputs()] == ["X"]
    outputs = (
        ["label", "probabilities"] if hasattr(fitted(name), "predict_proba") else ["prediction"]
    )
    assert [one.name for one in session(name).get_outputs()] == outputs
    check_alike(
        fitted(name),
        rows,
        session(name).run(None, {"X": rows.astype(float)}),
        close=tolerance(name),
    )


@pytest.mark.parametrize("name", TREES)
def test_trees_take_values_at_and_beside_every_split_and_missing_ones_to_the_same_leaf(
    name: str,
) -> None:
    model = fitted(name)
    several = len(getattr(model, "classes_", ())) > 2
    forest, rows = make_forest(model, 3 if several else 1), []
    for tree in forest.trees:
        for feature, split in zip(tree.feature, tree.split, strict=True):
            for value in (
                split,
                np.nextafter(split, -np.inf),
                np.nextafter(split, np.inf),
                np.nan,
                0.0,
                -1.0,
            ):
                row = X[len(rows) % N].copy()
                row[feature] = value
                rows.append(row)
    wild = np.random.default_rng(1).choice(
        [np.nan, 0.0, -0.0, 1e-40, 1e30, -1e30, 1e4, -1.0], size=(60, 3)
    )
    data = np.vstack([*rows, wild, np.full(3, np.nan), np.zeros(3)])
    found = session(name).run(None, {"X": data})
    expected = model.predict_proba(data) if hasattr(model, "predict_proba") else model.predict(data)
    np.testing.assert_allclose(found[-1], expected, rtol=tolerance(name), atol=tolerance(name))


def test_trees_after_the_best_round_are_left_out() -> None:
    model = FairLGBMRegressor(0.0, **with_penalty(**LGBM)).fit(X, VALUE)
    every = model.predict(X)
    # as early stopping leaves it in a booster that goes on training
    model.booster_.best_iteration = 2
    assert np.abs(model.predict(X) - every).max() > 0.1
    early = FairXGBRegressor(0.0, **with_penalty(**XGB), early_stopping_rounds=3)
    # the opposite of what is learnt: the first is the best
    early.fit(X, VALUE, eval_set=[(X, -VALUE)], verbose=False)
    assert early.get_booster().num_boosted_rounds() > early.best_iteration + 1
    for one in (model, early):
        found = onnxruntime.InferenceSession(onnx_model(one, {})).run(None, {"X": X})
        check_alike(one, X, found, close=3e-6)


def test_ties_are_decided_as_in_python() -> None:
    balanced = np.array(["no", "yes"] * (N // 2))
    for positive in ("no", "yes"):
        model = FairClassifier(0.0, model="linear", pos_label=positive).fit(X, balanced)
        for part in model.predictor_.parameters.values():
            part.zero_()
        assert set(model.predict(X)) == {positive}
        label, probability = onnxruntime.InferenceSession(onnx_model(model, {})).run(None, {"X": X})
        assert set(label) == {positive}
        assert (probability == 0.5).all()
    model = FairLGBMClassifier(0.0, **with_penalty(**(LGBM | {"min_child_samples": 500}))).fit(
        X, balanced
    )
    label = onnxruntime.InferenceSession(onnx_model(model, {})).run(["label"], {"X": X})[0]
    assert (label == model.predict(X)).all()


# Tables

TABLE = pd.DataFrame(
    {
        "age": GAPS[:, 0],
        "pay": X[:, 1],
        "town": RNG.choice(np.array(["ü b", "c", "it's", None], dtype=object), N),
        "job": ["clerk"] * (N - 6) + [f"rare {place}" for place in range(6)],
        "owns": RNG.choice(np.array([True, False, None], dtype=object), N),
        "ill": np.arange(N) % 40 == 0,
        "said": np.where(RNG.random(N) < 0.5, np.nan, 7.0),
        "id": np.arange(N),
        "label": RNG.normal(size=N),
    }
)


@cache
def table_model(kind: type, threshold: float | None = None, **parameters: Any) -> TableModel:
    encoder = TableEncoder().fit(TABLE)
    assert list(encoder.dropped_) == ["id"]
    target = YES if hasattr(kind, "predict_proba") else VALUE
    estimator = kind(1.0, **with_penalty(**parameters)).fit(
        encoder.transform(TABLE), target, sensitive_features=A
    )
    return TableModel(encoder, estimator, "y", threshold=threshold)


def as_inputs(model: TableModel, table: Any) -> dict[str, Any]:
    """Columns as the page on deployment says."""
    inputs = {}
    for name, coder in model.encoder.coders_.items():
        column = pd.Series(list(table[name]), dtype=object)
        if coder.kind == "text":
            inputs[name] = column.where(column.notna(), "").to_numpy()[:, None]
        else:
            inputs[name] = column.astype(float).to_numpy()[:, None]
    return inputs


TABLE_MODELS: tuple[tuple[type, dict[str, Any]], ...] = (
    (FairClassifier, {"model": "linear"}),
    (FairClassifier, {"model": "linear", "pos_label": "no", "threshold": 0.3}),
    (FairRegressor, NET),
    (FairLGBMClassifier, LGBM | {"threshold": 0.3}),
    (FairXGBRegressor, XGB),
)


@pytest.mark.parametrize(("kind", "parameters"), TABLE_MODELS)
def test_a_table_model_takes_the_columns_as_they_are(
    kind: type, parameters: dict[str, Any], tmp_path: Path
) -> None:
    model = table_model(kind, **parameters)
    model.to_onnx(tmp_path / "model.onnx")
    run = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert [one.name for one in run.get_inputs()] == [
        "age",
        "pay",
        "town",
        "job",
        "owns",
        "ill",
        "said",
        "label",
    ]
    outputs = ["label_", "probabilities"] if hasattr(kind, "predict_proba") else ["prediction"]
    assert [one.name for one in run.get_outputs()] == outputs
    found = run.run(None, as_inputs(model, TABLE))
    close = 3e-6 if kind is FairXGBRegressor else 1e-10
    if "threshold" in parameters:
        score = found[1][:, model.positive]
        np.testing.assert_allclose(score, model.predict_proba(TABLE)[:, model.positive], atol=1e-10)
        clear = np.abs(score - 0.3) > 1e-9
        assert (found[0] == model.predict(TABLE))[clear].all()
        assert (found[0] != model.estimator.predict(model.encoder.transform(TABLE))).sum() > 0
    else:
        check_alike(model.estimator, model.encoder.transform(TABLE), found, close=close)


@pytest.mark.parametrize("kind", [FairLGBMClassifier, FairXGBClassifier, FairClassifier])
def test_rows_whose_score_is_the_threshold_are_accepted(kind: type) -> None:
    """As many metrics choose one: a score that some row has."""
    encoder = TableEncoder().fit({"x": X[:, 2]})
    parameters = {
        FairLGBMClassifier: LGBM,
        FairXGBClassifier: XGB,
        FairClassifier: {"model": "linear"},
    }[kind]
    estimator = kind(0.0, **with_penalty(**parameters)).fit(
        encoder.transform({"x": X[:, 2]}), (VALUE > 1) * 1
    )
    plain = TableModel(encoder, estimator, "y")
    for score in np.unique(plain.predict_proba({"x": X[:, 2]})[:, 1]):
        model = TableModel(encoder, estimator, "y", threshold=float(score))
        run = onnxruntime.InferenceSession(onnx_model(model, {}))
        assert (run.run(["label"], {"x": X[:, [2]]})[0] == model.predict({"x": X[:, 2]})).all()


WORDS = st.one_of(
    st.none(),
    st.sampled_from(["ü b", "c", "it's", "clerk", "rare 0"]),
    st.text("abc' é\n0", min_size=1),
)
NUMBERS = st.one_of(
    st.none(), st.floats(-1e6, 1e6), st.sampled_from([0.0, -0.0, 1e100, -1e-300, 7.0])
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            **dict.fromkeys(("age", "pay", "said", "label"), NUMBERS),
            **dict.fromkeys(("town", "job"), WORDS),
            **dict.fromkeys(("owns", "ill"), st.sampled_from([True, False, None])),
        }
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=15, deadline=None)
@given(ROWS)
def test_any_row_of_a_table_gets_the_prediction_of_python(rows: list[dict[str, Any]]) -> None:
    model = table_model(FairRegressor, **NET)
    table = {name: [row[name] for row in rows] for name in rows[0]}
    found = table_session().run(["prediction"], as_inputs(model, table))[0]
    expected = model.predict(table)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@cache
def table_session() -> Any:
    return onnxruntime.InferenceSession(onnx_model(table_model(FairRegressor, **NET), {}))


def test_columns_may_have_the_names_of_steps() -> None:
    columns = {
        "constant 0": X[:, 0],
        "step 3": X[:, 1],
        "step 0": X[:, 2],
        "prediction": X[:, 0] ** 2,
    }
    encoder = TableEncoder().fit(columns)
    model = TableModel(
        encoder, FairRegressor(0.0, model="linear").fit(encoder.transform(columns), VALUE)
    )
    run = onnxruntime.InferenceSession(onnx_model(model, {}))
    assert [one.name for one in run.get_inputs()] == list(columns)
    found = run.run(["prediction_"], as_inputs(model, columns))[0]
    np.testing.assert_allclose(found, model.predict(columns), atol=1e-9)


# What is noted, and what is refused


def test_the_file_says_what_it_holds(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b b", "ü"])
    model = FairClassifier(1.0, model="linear").fit(frame, YES, sensitive_features=A)
    model.to_onnx(tmp_path / "model.onnx")
    model.save(tmp_path / "model.metrifair")
    written = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(written, full_check=True)
    about = {one.key: one.value for one in written.metadata_props}
    assert json.loads(about["classes"]) == ["no", "yes"]
    assert json.loads(about["features"]) == ["a", "b b", "ü"]
    assert about["model"] == "FairClassifier"
    assert about["metrifair"] == written.producer_version
    assert about["sha256"] == sha256((tmp_path / "model.metrifair").read_bytes()).hexdigest()
    assert {one.domain for one in written.opset_import} == {""}
    assert (tmp_path / "model.onnx").stat().st_size < 3_000
    names = {
        one.key for one in onnx.load_from_string(onnx_model(fitted("lgbm"), {})).metadata_props
    }
    assert names == {"metrifair", "model", "classes"}


def test_a_model_that_no_file_can_hold_has_no_hash(tmp_path: Path) -> None:
    model = FairClassifier(
        1.0, metric=lambda u, v: (u.mean(-1) - v.mean(-1)).abs(), **with_penalty(**NET)
    )
    model.fit(X, YES, sensitive_features=A).to_onnx(tmp_path / "model.onnx")
    assert "sha256" not in {one.key for one in onnx.load(tmp_path / "model.onnx").metadata_props}


def test_what_onnx_cannot_say_is_refused_by_name(tmp_path: Path) -> None:
    def refuses(model: Any, message: str) -> None:
        with pytest.raises(DataError, match=message):
            model.to_onnx(tmp_path / "model.onnx")
        assert not list(tmp_path.iterdir())

    def with_table(columns: dict[str, Any]) -> TableModel:
        encoder = TableEncoder(min_frequency=1).fit(columns)
        return TableModel(
            encoder, FairRegressor(0.0, model="linear").fit(encoder.transform(columns), VALUE)
        )

    dates = np.datetime64("2026-01-01") + np.random.default_rng(1).integers(900, size=N).astype(
        "timedelta64[D]"
    )
    refuses(
        with_table({"since": dates}),
        "column 'since' contains dates, which ONNX does not support; make a number of it",
    )
    refuses(
        with_table({"town": np.array(["", "b"])[A]}),
        "column 'town' has the empty text among its levels",
    )
    refuses(with_table({"": X[:, 0]}), "a column of the table has no name")
    refuses(
        with_table({"town": np.array(["a", "\ud800"])[A]}),
        "the text '.ud800' cannot be written as ONNX",
    )
    large = FairClassifier(0.0, model="linear").fit(X, np.array([1, 2**63 + 1], dtype=np.uint64)[A])
    refuses(
        large,
        "classes such as .*9223372036854775809.* cannot be written as ONNX; fit with integers or "
        "strings",
    )
    ended = FairClassifier(0.0, model="linear").fit(
        X, np.array(["a", "a\0"], dtype=object)[(VALUE > 1) * 1]
    )
    refuses(ended, "classes such as .* cannot be written as ONNX")
    base = FairClassifier(0.0, model="linear")
    moved = BarycenterPostprocessor(base, folds=1).fit(X, YES, sensitive_features=A)
    refuses(
        moved,
        "a BarycenterPostprocessor cannot be written as ONNX; export the model that it wraps, "
        "base_",
    )
    moved.base_.to_onnx(tmp_path / "base.onnx")
    (tmp_path / "base.onnx").unlink()
    own = FairClassifier(0.0, model=torch.nn.Linear(3, 1), epochs=1).fit(X, YES)
    refuses(own, r"a module of your own.*torch.onnx.export\(model.module\(\)")
    frame = pd.DataFrame(
        {"x": X[:, 0], "town": pd.Categorical(np.array(["a", "b", "c"])[X[:, 2].astype(int) % 3])}
    )
    value = VALUE + 9 * (frame["town"] == "b")
    for booster in (
        FairLGBMRegressor(0.0, **with_penalty(**LGBM), min_data_per_group=1),
        FairXGBRegressor(0.0, **with_penalty(**XGB), enable_categorical=True),
    ):
        refuses(
            booster.fit(frame, value),
            "splits column 'town' by its categories.*TableEncoder before fitting",
        )
    hinge = FairXGBRegressor(0.0, **with_penalty(**(XGB | {"objective": "binary:hinge"}))).fit(X, A)
    refuses(
        hinge,
        "the objective 'binary:hinge' of this FairXGBRegressor cannot be written as ONNX; those "
        "that can",
    )
    with pytest.raises(NotFittedError):
        FairClassifier(model="mlp").to_onnx(tmp_path / "model.onnx")
    with pytest.raises(DataError, match="does not exist"):
        fitted("linear").to_onnx(tmp_path / "no" / "model.onnx")
    with pytest.raises(DataError, match="embedded null"):
        fitted("linear").to_onnx("a\0b")
    (tmp_path / "real.onnx").touch()
    (tmp_path / "link.onnx").symlink_to(tmp_path / "real.onnx")
    fitted("linear").to_onnx(tmp_path / "link.onnx")
    assert (tmp_path / "link.onnx").is_symlink()
    assert (tmp_path / "real.onnx").stat().st_size > 0


def test_the_package_is_asked_for_when_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refused: Refusals
) -> None:
    model = fitted("linear")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with refused(MissingExtra):
        model.to_onnx(tmp_path / "model.onnx")
