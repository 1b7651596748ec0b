"""Pipelines of scikit-learn in files: the same to the last bit and of the same steps, or
refused by the step's name.
"""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from forging import described
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from metrifair import (
    BarycenterPostprocessor,
    FairClassifier,
    FairLGBMClassifier,
    FairRegressor,
    FairXGBRegressor,
    PenaltyOptions,
    TableEncoder,
    ThresholdPostprocessor,
    load,
    save,
)
from metrifair.baselines import ReweighingClassifier
from metrifair.errors import DataError, ModelFileError
from tests.expected_errors import Refusals
from tests.frontier_parts import outcomes_of
from tests.one_split import frontier
from tests.seams.saving import Content, from_bytes

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

RNG = np.random.default_rng(0)
N = 150
SEX = RNG.choice(["f", "m"], N)
TABLE = pd.DataFrame(
    {
        "income": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N) + (SEX == "m")),
        "town": RNG.choice(["Bern", "Chur"], N),
        "since": pd.Timestamp("2026-01-01") + pd.to_timedelta(RNG.integers(900, size=N), "D"),
    }
)
VALUE = TABLE["income"].fillna(0) + RNG.normal(size=N)
YES = np.where(VALUE > 0.5, "yes", "no")
LINE = FairClassifier(
    1.0, epochs=1, hidden=(), penalty=PenaltyOptions(solver="sgd"), random_state=0, model="mlp"
)
STEPS: dict[str, tuple[list[tuple[str, Any]], Any]] = {
    "a classifier": ([("encode", TableEncoder()), ("model", LINE)], YES),
    "a regressor": (
        [
            ("encode", TableEncoder()),
            ("model", FairRegressor(1.0, epochs=2, random_state=0, model="mlp")),
        ],
        VALUE,
    ),
    "lightgbm": (
        [
            ("e", TableEncoder(max_levels=1)),
            ("trees", FairLGBMClassifier(n_jobs=1, verbose=-1, n_estimators=3)),
        ],
        YES,
    ),
    "xgboost": (
        [("e", TableEncoder()), ("trees", FairXGBRegressor(0.0, n_jobs=1, n_estimators=3))],
        VALUE,
    ),
    "a step that does nothing": (
        [("encode", TableEncoder()), ("nothing", "passthrough"), ("model", LINE)],
        YES,
    ),
    "two encoders": ([("one", TableEncoder()), ("two", TableEncoder()), ("model", LINE)], YES),
    "frames between the steps": (
        [("encode", TableEncoder().set_output(transform="pandas")), ("model", LINE)],
        YES,
    ),
    "a model alone": ([("encode", None), ("model", LINE)], YES),
    "a post-processor": (
        [
            ("encode", TableEncoder()),
            ("model", BarycenterPostprocessor(FairClassifier(0.0, model="linear"), folds=1)),
        ],
        YES,
    ),
}


@cache
def fitted(name: str) -> Pipeline:
    steps, target = STEPS[name]
    return Pipeline(steps).fit(rows(name), target, **{f"{steps[-1][0]}__sensitive_features": SEX})


def rows(name: str) -> Any:
    return TABLE[["income"]].fillna(0) if name == "a model alone" else TABLE


@pytest.mark.parametrize("name", STEPS)
def test_a_loaded_pipeline_says_the_same_by_the_same_steps(name: str, tmp_path: Path) -> None:
    pipeline, given = fitted(name), rows(name)
    save(pipeline, tmp_path / "pipeline.metrifair")
    again = load(tmp_path / "pipeline.metrifair")
    assert isinstance(again, Pipeline)
    assert [step for step, _ in again.steps] == [step for step, _ in pipeline.steps]
    assert [type(step) for step in again.named_steps.values()] == [
        str if step is None else type(step) for step in pipeline.named_steps.values()
    ]
    if not isinstance(again[0], str):  # of which scikit-learn asks for the names
        assert again.feature_names_in_.tolist() == given.columns.tolist()
    asked = {"sensitive_features": SEX} if name == "a post-processor" else {}
    for method in (
        ("predict", "predict_proba") if hasattr(pipeline, "predict_proba") else ("predict",)
    ):
        np.testing.assert_array_equal(
            getattr(again, method)(given, **asked), getattr(pipeline, method)(given, **asked)
        )
    again.fit(given, STEPS[name][1], **{f"{again.steps[-1][0]}__sensitive_features": SEX})


def test_a_post_processor_of_a_pipeline_is_read_again(tmp_path: Path) -> None:
    wrapped = make_pipeline(TableEncoder(), FairClassifier(0.0, model="linear"))
    model = ThresholdPostprocessor(wrapped, folds=1).fit(TABLE, YES, sensitive_features=SEX)
    for write in (model.save, lambda path: save(model, path)):
        write(tmp_path / "model")
        again = load(tmp_path / "model")
        assert repr(again) == repr(model)
        np.testing.assert_array_equal(
            *(one.predict(TABLE, sensitive_features=SEX) for one in (again, model))
        )


def test_a_pipeline_is_routed_again_after_its_requests_are_set_again(tmp_path: Path) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        asking = FairClassifier(1.0, model="linear").set_fit_request(sensitive_features=True)
        pipeline = Pipeline(
            [("encode", TableEncoder()), ("model", asking)], verbose=True, transform_input=["X_val"]
        )
        save(
            Pipeline(pipeline.steps)
            .fit(TABLE, YES, sensitive_features=SEX)
            .set_params(verbose=True),
            tmp_path / "m",
        )
        again = load(tmp_path / "m")
        assert again.verbose is True
        again["model"].set_fit_request(sensitive_features=True)  # files contain no requests
        again.set_params(verbose=False).fit(TABLE, YES, sensitive_features=SEX)
        save(pipeline.set_params(verbose=False), tmp_path / "m")  # its steps are fitted
        assert load(tmp_path / "m").transform_input == ["X_val"]


def test_other_steps_are_refused_by_name(tmp_path: Path, refused: Refusals) -> None:
    numbers, path = TABLE[["income"]].fillna(0), tmp_path / "m"
    scaled = Pipeline([("scale", StandardScaler()), ("model", LINE)]).fit(
        numbers, YES, model__sensitive_features=SEX
    )
    with refused(DataError):
        save(scaled, path)
    for last in (LogisticRegression(), ReweighingClassifier(LogisticRegression(), random_state=0)):
        named = {} if isinstance(last, LogisticRegression) else {"last__sensitive_features": SEX}
        other = Pipeline([("encode", TableEncoder()), ("last", last)]).fit(TABLE, YES, **named)
        with pytest.raises(
            DataError,
            match=f"step 'last' of the pipeline is a {type(last).__name__}.*metrifair model",
        ):
            save(other, path)
    own = type("Encoder", (TableEncoder,), {})()
    mine = Pipeline([("mine", own), ("model", LINE)]).fit(TABLE, YES, model__sensitive_features=SEX)
    with refused(DataError):
        save(mine, path)
    other_kind = type("Sampling", (Pipeline,), {})(
        fitted("a classifier").steps
    )  # may do something else than a plain one
    with refused(DataError):
        save(other_kind, path)
    with refused(DataError):
        save(LogisticRegression(), path)  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        save(make_pipeline(TableEncoder(), LINE), path)
    assert not path.exists()


def test_a_file_that_lies_is_refused(tmp_path: Path) -> None:
    save(fitted("a classifier"), tmp_path / "m")
    content = from_bytes((tmp_path / "m").read_bytes())
    post = tmp_path / "post"
    save(fitted("a post-processor"), post)
    nested = from_bytes(post.read_bytes())
    # it does not tell how many columns it takes
    alone = copy.deepcopy(content.meta) | {"encoders": [None]}
    lies: list[tuple[tuple[Any, ...], Any, str]] = [
        (("steps",), ["model"], "its steps are not those that it names"),
        (("steps",), ["a", "a"], "Names provided are not unique"),
        (("steps",), ["a__b", "model"], "must not contain __"),
        (("steps",), ["verbose", "model"], "conflict with constructor arguments"),
        (("steps",), [7, "model"], "Expected `str`, got `int` - at `$.steps[0]`"),
        (("encoders",), [None], "its steps are not those that it names"),
        (
            ("encoders", 0, "coders", "town", "levels"),
            ["Bern"],
            "the encoder makes 4 columns, and the next step takes 5",
        ),
        (
            ("encoders", 0, "output"),
            "pickle",
            "Invalid enum value 'pickle' - at `$.encoders[0].output`",
        ),
        (("model", "kind"), "table model", "Invalid enum value 'table model'"),
        (("model", "meta", "kind"), "Oracle", "a model of the kind 'Oracle'"),
        (("memory",), "/tmp", "unknown field `memory`"),
        (("model",), {"kind": "pipeline", "meta": alone}, "it ends with another, not with a model"),
    ]
    for place, value, message in lies:
        meta = copy.deepcopy(content.meta)
        node: Any = meta
        for key in place[:-1]:
            node = node[key]
        node[place[-1]] = value
        meta = meta if place[-1] != "encoders" else meta | {"steps": ["a", "b", "c"]}
        assert message in refusal(tmp_path / "m", Content(content.kind, meta, content.arrays)), (
            place
        )
    for kind, meta in (
        ("pipeline", nested.meta),
        ("estimator", nested.meta["model"]["meta"]),  # the name of a post-processor is enough
    ):
        inside = copy.deepcopy(nested.meta)
        inside["model"]["meta"]["inner"]["base"] = {"kind": kind, "meta": meta}  # type: ignore[index, call-overload]
        arrays = nested.arrays | {f"base/{name}": array for name, array in nested.arrays.items()}
        assert "a post-processor wraps no other" in refusal(
            tmp_path / "m", Content(nested.kind, inside, arrays)
        )


def refusal(path: Path, content: Content) -> str:
    path.write_bytes(described(content.meta, content.arrays, content.kind))
    with pytest.raises(ModelFileError) as caught:
        load(path)
    return str(caught.value)


@pytest.mark.filterwarnings("ignore:.*models are constant")  # after one epoch
def test_a_frontier_of_pipelines_is_loaded_again(tmp_path: Path) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        line = FairClassifier(
            epochs=1, hidden=(), penalty=PenaltyOptions(solver="sgd"), random_state=0, model="mlp"
        ).set_fit_request(sensitive_features=True)
        steps = make_pipeline(TableEncoder(), line)
        asked: Any = {
            "strengths": [0.0, 1.0],
            "parameter": "fairclassifier__strength",
            "random_state": 0,
        }
        front = frontier(steps, TABLE, YES, sensitive_features=SEX, **asked)
    front.save(tmp_path / "front.metrifair")
    for before, after in zip(
        outcomes_of(front),
        outcomes_of(load(tmp_path / "front.metrifair")),
        strict=True,
    ):
        assert isinstance(after.model, Pipeline)
        assert (after.model.predict_proba(TABLE) == before.model.predict_proba(TABLE)).all()
