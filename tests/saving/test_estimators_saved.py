"""Models that were saved and loaded: the same to the last bit, or refused; and loading runs no
code.
"""

from __future__ import annotations

import contextlib
import copy
import datetime as dt
import json
import subprocess
import sys
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from forging import bent, damages, described, lies, sealed
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import proven
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from metrifair import load
from metrifair.criteria import EQUALIZED_ODDS, STATISTICAL_PARITY, Criterion
from metrifair.errors import DataError, MetrifairWarning, ModelFileError
from metrifair.estimators import FairClassifier, FairEstimator, FairRegressor, fit_stack
from tests.flat_options import with_penalty
from tests.seams.saving import (
    Classes,
    Content,
    add_prefix,
    classes_record,
    from_bytes,
    make_content,
    read_classes,
    read_model,
    strip_prefix,
    to_bytes,
)

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

GENERATOR = np.random.default_rng(0)
N = 90
SEX = np.array(["f", "m"])[GENERATOR.integers(2, size=N)]
AGE = np.array([30.0, np.nan, 50.0])[GENERATOR.integers(3, size=N)]
REGION = np.array(["north", "south"])[GENERATOR.integers(2, size=N)]
X = GENERATOR.normal(size=(N, 3)) + (SEX == "m")[:, None]
TARGET = X.sum(1) + GENERATOR.normal(size=N)
BINARY = (TARGET > 1).astype(int)
TERNARY = np.array(["no", "perhaps", "yes"])[np.digitize(TARGET, [0.0, 2.0])]
BOTH = pd.DataFrame({"sex": SEX, "age": AGE})
NAMED = pd.DataFrame(X, columns=["income", "größe", "a b"]).astype({"a b": "float32"})
BINNED = replace(EQUALIZED_ODDS, bins=(0, 1.5))

QUICK: dict[str, Any] = {"model": "mlp", "epochs": 2, "random_state": 0, "hidden": (4,)}
STREAM: dict[str, Any] = {"model": "mlp", "batch_size": 16, "random_state": 0, "hidden": (4,)}


class Parts(NamedTuple):
    """A model taken apart."""

    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]


def to_parts(model: FairEstimator) -> Parts:
    return Parts(*make_content(model)[1:])


def from_parts(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> FairEstimator:
    return read_model(Content("estimator", meta, arrays))


class Net(torch.nn.Module):
    """A module of a user's own, with a buffer that matters."""

    def __init__(self, units: int = 5, shift: float = 0.0) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(3, units), torch.nn.Linear(units, 1)
        self.register_buffer("shift", torch.full((units,), shift))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.first(x) + self.shift))


def classifier(
    y: Any = BINARY, x: Any = X, groups: Any = SEX, control: Any = None, **options: Any
) -> FairClassifier:
    model = FairClassifier(**with_penalty(**(QUICK | options)))
    return model.fit(x, y, sensitive_features=groups, control_features=control)


def regressor(**options: Any) -> FairRegressor:
    return FairRegressor(**with_penalty(**(QUICK | options))).fit(X, TARGET, sensitive_features=SEX)


def streaming(y: Any, control: Any = None, **options: Any) -> FairEstimator:
    kind = FairRegressor if y is TARGET else FairClassifier
    return kind(**with_penalty(**(STREAM | options))).partial_fit(
        X, y, sensitive_features=SEX, control_features=control
    )


FITTED = {
    "two classes": classifier,
    "a linear model": lambda: classifier(model="linear", hidden=[]),
    "no hidden units in a network": lambda: classifier(hidden=()),
    "two hidden layers": lambda: classifier(hidden=[4, np.int64(3)]),
    "labels that are booleans": lambda: classifier(BINARY.astype(bool)),
    "labels of half precision": lambda: classifier(BINARY.astype(np.float16) * 3),
    "small integers": lambda: classifier(
        BINARY.astype(np.int8) - 1, pos_label=-1, criterion="equal_opportunity"
    ),
    "labels that are objects": lambda: classifier(TERNARY.astype(object)),
    "three classes": lambda: classifier(TERNARY, criterion="equalized_odds"),
    "a longer type than the labels need": lambda: classifier(TERNARY.astype("U40"), metric="mmd"),
    "several attributes": lambda: classifier(groups=BOTH, criterion="equalized_odds"),
    "their crossing": lambda: classifier(groups=BOTH, intersectional=True, contrast="rest"),
    "strata": lambda: classifier(control=REGION, criterion="conditional_statistical_parity"),
    "strata of booleans": lambda: classifier(
        control=np.stack([REGION == "north", X[:, 0] > 0], axis=1)
    ),
    "names from pandas": lambda: classifier(x=NAMED),
    "names from polars": lambda: classifier(
        x=pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    ),
    "labels from pandas": lambda: classifier(pd.Series(TERNARY)),
    "labels that are a category": lambda: classifier(pd.Series(TERNARY).astype("category")),
    "no groups": lambda: FairClassifier(0.0, **with_penalty(**QUICK)).fit(X, BINARY),
    "a strength of NumPy's": lambda: classifier(strength=np.float64(0.1), random_state=np.int64(3)),
    "outputs compared": lambda: classifier(
        penalize="output", estimate="batch", combine="sum", metric="kolmogorov"
    ),
    "a regression": regressor,
    "an absolute error": lambda: regressor(loss="absolute_error", standardize=False),
    "labels that are bins": lambda: regressor(criterion=BINNED),
    "a criterion that is a value": lambda: classifier(criterion=STATISTICAL_PARITY),
    "a criterion of one's own": lambda: classifier(
        criterion=Criterion("mine", score="output", labels="every")
    ),
    "one of a stack": lambda: fit_stack(
        FairClassifier(**with_penalty(**QUICK)),
        X,
        BINARY,
        strengths=[0.0, 1.0],
        seeds=[0, 1],
        sensitive_features=SEX,
    )[-1],
}
STREAMED = {
    "a stream": lambda: streaming(BINARY),
    "a stream of three classes": lambda: streaming(
        TERNARY, criterion="equalized_odds", strength=0.3
    ),
    "a stream of targets": lambda: streaming(TARGET, loss="huber", weight_decay=0.01),
    "a stream not standardized": lambda: streaming(BINARY, standardize=False, metric="wasserstein"),
    "a stream within strata": lambda: streaming(BINARY, control=REGION),
    "a stream that has not begun": lambda: streaming(BINARY, batch_size=200),
    "a stream after a fit": lambda: classifier().partial_fit(
        X[:50], BINARY[:50], sensitive_features=SEX[:50]
    ),
    "a stream that ends with a batch": lambda: FairClassifier(
        0.0, **with_penalty(**STREAM)
    ).partial_fit(X[:32], BINARY[:32]),
}


def assert_same(model: FairEstimator, again: FairEstimator) -> None:
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert sorted(vars(again)) == sorted(vars(model))
    x = (
        NAMED.set_axis(list(model.feature_names_in_), axis=1)
        if hasattr(model, "feature_names_in_")
        else X
    )
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            before, after = (getattr(one, method)(x) for one in (model, again))
            assert after.dtype == before.dtype
            assert after.tolist() == before.tolist()
    for name in ("classes_", "feature_names_in_"):
        if hasattr(model, name):
            assert getattr(again, name).dtype == getattr(model, name).dtype
            assert getattr(again, name).tolist() == getattr(model, name).tolist()
    for name in ("n_features_in_", "n_iter_", "target_scaling_"):
        assert getattr(again, name, None) == getattr(model, name, None)
    assert again.scheme_.comparisons == model.scheme_.comparisons
    assert again.scheme_.attributes == model.scheme_.attributes


def saved_and_loaded(model: FairEstimator, folder: Any) -> FairEstimator:
    model.save(folder / "m")
    return load(folder / "m")


# What is loaded is what was saved


@pytest.mark.parametrize("name", FITTED)
def test_a_loaded_model_is_the_saved_one(name, tmp_path):
    model = FITTED[name]()
    assert_same(model, saved_and_loaded(model, tmp_path))


@pytest.mark.filterwarnings("ignore:the model is not trained yet")
@pytest.mark.parametrize("name", STREAMED)
def test_a_stream_goes_on_from_its_parameters_and_the_moments_of_its_features(name, tmp_path):
    """A file has no samples that wait, and no moments of Adam: it goes on as the model does
    without its learner.
    """
    model = STREAMED[name]()
    again = saved_and_loaded(model, tmp_path)
    del model.learner_
    assert_same(model, again)
    y = (
        TARGET
        if isinstance(model, FairRegressor)
        else TERNARY
        if len(model.classes_) == 3
        else BINARY
    )
    control = REGION if model.scheme_.strata is not None else None
    groups = SEX if model.strength else None
    updates = model.n_updates_
    for one in (model, again):
        for _ in range(3):
            one.partial_fit(X, y, sensitive_features=groups, control_features=control)
    assert_same(model, again)
    assert again.n_updates_ == model.n_updates_ > updates


@pytest.mark.filterwarnings("error:the model is not trained yet")
def test_a_loaded_stream_says_whether_it_has_taken_a_step(tmp_path, refused):
    begun, not_begun = streaming(BINARY), streaming(BINARY, batch_size=200)
    assert (begun.n_updates_ > 0) > (not_begun.n_updates_ > 0)
    saved_and_loaded(begun, tmp_path).predict(X)
    with refused(MetrifairWarning):
        saved_and_loaded(not_begun, tmp_path).predict(X)


def test_a_fit_is_learnt_on_after_loading_as_before(tmp_path):
    model = classifier()
    again = saved_and_loaded(model, tmp_path)
    for one in (model, again):
        one.partial_fit(X, BINARY, sensitive_features=SEX)
    assert_same(model, again)


def test_a_loaded_model_can_be_cloned_and_fitted_anew(tmp_path):
    model = classifier(groups=BOTH)
    again = clone(saved_and_loaded(model, tmp_path)).fit(X, BINARY, sensitive_features=BOTH)
    assert_same(model, again)


@pytest.mark.parametrize("switch", ["intersectional", "standardize"])
def test_a_switch_is_a_boolean(switch):
    meta, arrays = to_parts(classifier())
    changed = {"penalty": {"penalty": {switch: 2}}} if switch == "standardize" else {switch: 2}
    with pytest.raises(ModelFileError, match=f"{switch} must be True or False, got 2"):
        from_parts({**meta, "parameters": meta["parameters"] | changed}, arrays)


def test_a_file_without_requests_has_no_field_for_them():
    assert "requests" not in to_parts(classifier()).meta


@pytest.mark.parametrize(
    "asked",
    [
        {"fit": {"color": True}},
        {"fit": {"sample_weight": "rm -r"}},
        {"fit": {"sample_weight": 3}},
        {"fit": {"sample_weight": None}},
        {"__init__": {"sample_weight": True}},
        {"params": {"strength": True}},
        {"fit": True},
        [],
    ],
    ids=str,
)
def test_requests_that_cannot_be_made_are_refused(asked):
    meta, arrays = to_parts(classifier())
    with pytest.raises(ModelFileError, match="requests"):
        from_parts({**meta, "requests": asked}, arrays)


def test_a_loaded_model_can_be_saved_again_to_the_same_bytes(tmp_path):
    model = streaming(TERNARY)
    model.save(tmp_path / "m")
    load(tmp_path / "m").save(tmp_path / "again")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()


def test_saving_over_a_file_replaces_it(tmp_path):
    regressor().save(tmp_path / "m")
    model = classifier()
    assert_same(model, saved_and_loaded(model, str(tmp_path) and tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_loaded_model_predicts_inside_a_pipeline(tmp_path):
    model = classifier()
    assert (
        make_pipeline(saved_and_loaded(model, tmp_path)).predict(X).tolist()
        == model.predict(X).tolist()
    )


def test_a_loaded_model_refuses_names_that_it_was_not_fitted_with(tmp_path):
    again = saved_and_loaded(classifier(x=NAMED), tmp_path)
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(NAMED.set_axis(["a", "b", "c"], axis=1))


def test_groups_and_criteria_with_infinite_values_are_kept(tmp_path):
    groups = np.where(SEX == "f", np.inf, 1.0)
    model = classifier(groups=groups).set_params(
        criterion=replace(EQUALIZED_ODDS, bins=(0.5, float("inf")))
    )
    assert_same(model, saved_and_loaded(model, tmp_path))


def test_several_models_share_a_file():
    models = [classifier(), regressor(), streaming(TERNARY)]
    parts = [to_parts(model) for model in models]
    del models[2].learner_  # files have none
    arrays = {
        name: array
        for k, part in enumerate(parts)
        for name, array in add_prefix(f"{k}/", part.arrays).items()
    }
    content = from_bytes(
        to_bytes(Content("several", {"members": [part.meta for part in parts]}, arrays))
    )
    for k, model in enumerate(models):
        assert_same(
            model, from_parts(content.meta["members"][k], strip_prefix(f"{k}/", content.arrays))
        )


@pytest.mark.parametrize("random_state", [np.random.RandomState(0), np.random.default_rng(0)])
def test_a_generator_as_random_state_is_saved_as_none(random_state, tmp_path):
    model = streaming(TERNARY, random_state=random_state)
    again = saved_and_loaded(model, tmp_path)
    assert again.random_state is None
    del model.learner_  # files have none
    for one in (model.set_params(random_state=0), again.set_params(random_state=0)):
        one.partial_fit(X, TERNARY, sensitive_features=SEX)
    assert_same(model, again)


# Modules of the user's own


def test_a_module_is_passed_by_the_caller_and_gets_weights_and_buffers(tmp_path):
    model = classifier(model=Net(shift=0.7))
    model.partial_fit(X, BINARY, sensitive_features=SEX)
    model.save(tmp_path / "m")
    del model.learner_  # files have none
    passed = Net()
    again = load(tmp_path / "m", module=passed)
    assert again.predict_proba(X).tolist() == model.predict_proba(X).tolist()
    assert passed.shift.tolist() == [0.0] * 5
    for one in (model, again):
        one.partial_fit(X, BINARY, sensitive_features=SEX)
    assert again.predict_proba(X).tolist() == model.predict_proba(X).tolist()


def test_a_module_must_be_passed_and_must_be_the_one_saved(tmp_path, refused):
    path = tmp_path / "m"
    classifier(model=Net()).save(path)
    assert refusal(path) == (
        f"cannot read '{path}': the model is your own module 'Net', of which the file contains the "
        "weights, not the "
        "code; pass one with the same layers as at fit, as load(path, module=...)"
    )
    assert refusal(path, module=torch.nn.Linear(3, 1)) == (
        f"cannot read '{path}': Linear has the parameters ['bias', 'weight'], the file has "
        "['first.bias', "
        "'first.weight', 'last.bias', 'last.weight']; pass a module like the one that was fitted"
    )
    refused.said(refusal(path, module=Net(units=6)))


def test_a_module_that_the_model_does_not_need_is_refused(tmp_path, refused):
    classifier().save(tmp_path / "m")
    refused.said(refusal(tmp_path / "m", module=Net()))


# What cannot be saved


def refused(model: FairEstimator, folder: Any) -> str:
    with pytest.raises(DataError) as caught:
        model.save(folder / "m")
    assert not (folder / "m").exists()
    return str(caught.value)


def gap(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (u.mean(-1) - v.mean(-1)).abs()


@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_a_model_that_is_not_fitted_cannot_be_saved(kind, tmp_path):
    with pytest.raises(NotFittedError):
        kind().save(tmp_path / "m")


@pytest.mark.parametrize(
    "model", [lambda: classifier(metric=gap), lambda: streaming(BINARY, metric=gap)]
)
def test_a_metric_that_is_a_function_cannot_be_saved(model, tmp_path):
    assert refused(model(), tmp_path) == (
        "metric is a function (gap); a model file contains no code; fit with a named one to save"
    )


def scored(prediction: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    return prediction


def positive(y: np.ndarray) -> np.ndarray:
    return (y > 0)[:, None]


@pytest.mark.parametrize(
    ("criterion", "named"),
    [
        (Criterion("mine", score=scored), "criterion.score is a function (scored)"),
        (
            Criterion("mine", sets=positive, set_names=("positive",)),
            "criterion.sets is a function (positive)",
        ),
    ],
)
def test_a_criterion_with_a_function_cannot_be_saved(criterion, named, tmp_path):
    assert refused(classifier(criterion=criterion), tmp_path) == (
        f"{named}; a model file contains no code; fit with a named one to save"
    )


def test_groups_that_are_dates_cannot_be_saved(tmp_path):
    dates = [dt.date(2000, 1, 1 + (sex == "f")) for sex in SEX]
    assert refused(classifier(groups=pd.Series(dates, name="born")), tmp_path) == (
        "born contains a date, which no model file can; use numbers, text or booleans"
    )


def test_class_labels_that_are_dates_cannot_be_saved(refused):
    with refused(DataError):
        classes_record(np.array(["2000-01-01", "2000-01-02"], dtype="datetime64[D]"))


def test_a_class_of_the_users_own_cannot_be_saved(tmp_path):
    class Mine(FairClassifier):
        pass

    model = Mine(**QUICK).fit(X, BINARY, sensitive_features=SEX)
    assert refused(model, tmp_path) == (
        "Mine is a class of your own, and a model file contains no code; save its parts yourself"
    )


def test_parameters_changed_after_fitting_are_saved_as_they_are_now(tmp_path):
    model = classifier().set_params(
        strength=7.0, hidden=None, model="linear", criterion="equalized_odds"
    )
    assert_same(model, saved_and_loaded(model, tmp_path))


@pytest.mark.parametrize("changed", [{"penalty__contrast": "rest"}, {"pos_label": "no"}])
def test_what_values_stood_for_when_fitted_is_saved_whatever_was_changed_since(changed, tmp_path):
    groups = np.array(["a", "b", "c"])[np.arange(N) % 3]
    model = classifier(np.where(BINARY, "yes", "no"), groups=groups, criterion="equal_opportunity")
    assert_same(model.set_params(**changed), saved_and_loaded(model, tmp_path))


def test_parameters_out_of_their_range_cannot_be_saved(tmp_path):
    assert refused(classifier().set_params(epochs=0), tmp_path) == (
        "this FairClassifier cannot be saved: the file does not describe a model: "
        "epochs must be 'auto' or an integer from 1 upwards, got 0"
    )


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(
        DataError, match=f"^cannot write {tmp_path}/no/m: the folder {tmp_path}/no does not exist"
    ):
        classifier().save(tmp_path / "no" / "m")


# Hostile files


def refusal(path: Any, module: torch.nn.Module | None = None) -> str:
    with pytest.raises(ModelFileError) as caught:
        load(path, module=module)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def parts() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return tuple(to_parts(streaming(TERNARY, control=REGION)))


def changed(meta: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    meta = copy.deepcopy(meta)
    *inner, last = path.split("/")
    node = meta
    for key in inner:
        node = node[int(key) if isinstance(node, list) else key]
    node[last] = value
    return meta


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            "kind",
            "Oracle",
            "it contains a model of the kind 'Oracle', which this version cannot read",
        ),
        ("more", 1, "Object contains unknown field `more`"),
        ("parameters/shell", "rm", "a parameter must be one of 'batch_size', "),
        ("parameters/strength", -1, "strength must be a finite number from 0 upwards, got -1"),
        ("parameters/strength", 10**400, "000000000000000, which takes more than 64 bits"),
        ("parameters/metric", "gap", "metric must be one of 'energy', "),
        (
            "parameters/hidden",
            {"tuple": ["a"]},
            "hidden must be a list of integers from 1 upwards, got ('a',)",
        ),
        ("parameters/model", {"module": "Net"}, "your own module 'Net', of which"),
        ("parameters/model", {"module": "__import__('os')"}, "your own module '...', of which"),
        ("parameters/device", 3, "device cannot be 3"),
        (
            "parameters/pos_label",
            {"object": 1},
            "pos_label contains {'object': 1}, which is no value of a model file",
        ),
        (
            "features/count",
            10**9,
            "must be float64 of shape (1, 1000000000), got float64 of shape (1, 3)",
        ),
        ("features/names", ["a"], "there are 3 features, and 1 names for them"),
        ("classes/dtype", "i4,i4", "{0,3})\\\\Z' - at `$.classes.dtype`"),
        (
            "classes/dtype",
            "int64",
            "must be two or more different labels of type int64 in ascending order",
        ),
        (
            "classes/dtype",
            "U1",
            "must be two or more different labels of type U1 in ascending order",
        ),
        ("classes/values", ["b", "a", "c"], "in ascending order, got ['b', 'a', 'c']"),
        ("classes/values", ["a", "b"], "scheme.positive must be"),
        (
            "scheme/criterion",
            "risk_parity",
            "scheme.criterion must be a criterion, got 'risk_parity'",
        ),
        ("scheme/criterion/criterion/sets", "f", "scheme.criterion is not a criterion: "),
        (
            "scheme/criterion/criterion/bins",
            {"tuple": []},
            "Expected `array` of length >= 1 - at `$.bins`",
        ),
        ("scheme/attributes", [], "compares 0 attributes in 0 ways; a model file has at least one"),
        ("scheme/attributes/0/groups", ["f", "f"], "names a group twice: ('f', 'f')"),
        ("scheme/attributes/0/groups", ["f"], "sensitive_features has 1 group(s): ['f']"),
        (
            "scheme/attributes/0/groups",
            list(range(10**5)),
            "ways; a model file has at least one, and at most 20000",
        ),
        (
            "scheme/strata/values",
            [["a", "b"]],
            "each stratum must have a value for each of the columns",
        ),
        ("scheme/strata/values", [["a"]] * 20_000, "must be between 1 and 3162 strata, got 20000"),
        ("scheme/contrast", "all", "Invalid enum value 'all' - at `$.scheme.contrast`"),
        (
            "model/hidden",
            [5],
            "array 'parameters/weight0' must be float64 of shape (1, 1, 5, 3), got",
        ),
        (
            "model/hidden",
            [4, 4],
            "array 'parameters/weight1' must be float64 of shape (1, 1, 4, 4), got",
        ),
        ("model/hidden", [-4], "Expected `int` >= 1 - at `$.hidden[0]`"),
        ("updates", -1, "Expected `int` >= 0 - at `$.updates`"),
        ("moments", False, "the model has no use for the arrays ['moments/mean', "),
        ("iterations", 1.5, "Expected `int | null`, got `float` - at `$.iterations`"),
    ],
)
def test_a_description_that_lies_is_refused(parts, path, value, said, tmp_path):
    meta, arrays = parts
    (tmp_path / "m").write_bytes(described(changed(meta, path, value), arrays))
    message = refusal(tmp_path / "m")
    assert message.startswith(f"cannot read '{tmp_path / 'm'}': ")
    assert said in message


@pytest.mark.parametrize(
    ("name", "array", "said"),
    [
        ("scaling/scale", np.zeros((1, 3)), "array 'scaling/scale' must be positive"),
        (
            "scaling/mean",
            np.full((1, 3), np.nan),
            "array 'scaling/mean' contains numbers that are not finite",
        ),
        (
            "parameters/bias0",
            np.zeros((1, 1, 4, 1), np.float32),
            "must be float64 of shape (1, 1, 4, 1), got float32",
        ),
        ("more", np.zeros(1), "the model has no use for the arrays ['more']"),
        ("moments/squares", np.full(3, -1.0), "the running moments of the features are negative"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(parts, name, array, said, tmp_path):
    meta, arrays = parts
    (tmp_path / "m").write_bytes(described(meta, arrays | {name: array}))
    assert said in refusal(tmp_path / "m")


def test_a_missing_array_is_named(parts):
    meta, arrays = parts
    for name in arrays:
        with pytest.raises(ModelFileError, match=r"is missing$"):
            from_parts(meta, {other: array for other, array in arrays.items() if other != name})


def test_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / "m").write_bytes(to_bytes(Content("spell", {}, {})))
    assert refusal(tmp_path / "m") == (
        f"cannot read '{tmp_path / 'm'}': it contains a 'spell', which this version cannot read; "
        "upgrade it"
    )


def test_labels_of_absurd_length_are_refused(refused):
    record = Classes(dtype="U9999", values=[f"{k:04}" for k in range(1000)])
    with refused(ModelFileError):
        read_classes(record)


# Any damage at all


FUZZED = {
    "three classes in a stream": lambda: streaming(TERNARY, control=REGION),
    "two attributes": lambda: classifier(groups=BOTH, x=NAMED, criterion="equal_opportunity"),
    "a stream of targets": lambda: streaming(TARGET, criterion=BINNED, batch_size=64),
}


@pytest.fixture(scope="module", params=FUZZED)
def fuzzed(request, tmp_path_factory):
    model = FUZZED[request.param]()
    return model, to_parts(model), tmp_path_factory.mktemp("fuzz") / "m"


def load_or_refuse(data: bytes, path: Any) -> FairEstimator | None:
    path.write_bytes(data)
    try:
        return load(path)
    except ModelFileError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 2000
    return None


def survive_damage(fuzzed, examples: int) -> None:
    model, parts, path = fuzzed
    data = to_bytes(Content("estimator", *parts))
    rows = NAMED if hasattr(model, "feature_names_in_") else X
    expected = model.predict(rows).tolist()

    @settings(proven, max_examples=examples)
    @given(damages(data))
    def run(damaged: bytes) -> None:
        again = load_or_refuse(damaged, path)
        assert again is None or (damaged == data and again.predict(rows).tolist() == expected)
        use(load_or_refuse(sealed(damaged), path))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # features without names
        run()


def use(model: FairEstimator | None) -> None:
    """What an attacker has made of the weights may be wrong, but not wild."""
    if model is not None:
        rows = np.zeros((2, model.n_features_in_))
        assert model.predict(rows).shape == (2,)
        with contextlib.suppress(DataError):  # as where contrast was changed after fitting
            assert json.dumps(to_parts(model).meta)


def survive_lies(fuzzed, examples: int) -> None:
    _, (meta, arrays), path = fuzzed

    @settings(proven, max_examples=examples)
    @given(st.data())
    def run(draw: Any) -> None:
        lied = draw.draw(lies(meta)) if draw.draw(st.booleans()) else meta
        wrong = draw.draw(bent(arrays)) if lied is meta or draw.draw(st.booleans()) else arrays
        use(load_or_refuse(described(lied, wrong), path))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()


def test_damaged_files_are_refused_or_predict_the_same(fuzzed):
    survive_damage(fuzzed, 100)


def test_lies_with_a_right_hash_are_refused_or_harmless(fuzzed):
    survive_lies(fuzzed, 100)


@pytest.mark.slow(rotate=False)
def test_twenty_thousand_damaged_files_are_refused_or_predict_the_same(fuzzed):
    survive_damage(fuzzed, 7_000)


@pytest.mark.slow(rotate=False)
def test_twenty_thousand_lies_are_refused_or_harmless(fuzzed):
    survive_lies(fuzzed, 7_000)


# Loading runs no code


AUDIT = """
import sys
from metrifair import load
from tests.flat_options import with_penalty
from metrifair.errors import ModelFileError
seen = []
files = sys.argv[1:]
load(files[0])                                   # what libraries set up at their first use
sys.addaudithook(lambda event, arguments: seen.append((event, str(arguments[:1]))))
for file in files:
    try:
        load(file)
    except ModelFileError:
        pass
taken = list(seen)
seen.clear()
eval("1 + 1")                                    # the hook does see code run
print(*(f"{event} {arguments}" for event, arguments in taken), sep="\\n")
assert {"compile", "exec"} <= {event for event, _ in seen}, seen
"""
WATCHED = (
    "exec",
    "compile",
    "import",
    "os.",
    "subprocess.",
    "socket.",
    "ctypes.",
    "code.",
    "marshal.",
    "pickle.",
    "shutil.",
)


@pytest.mark.extended
def test_loading_executes_compiles_imports_and_starts_nothing(parts, tmp_path):
    meta, arrays = parts
    hostile = changed(meta, "parameters/model", {"module": "__import__('os').system('true')"})
    files = {
        "honest": to_bytes(Content("estimator", meta, arrays)),
        "hostile": described(hostile, arrays),
        "typed": described(changed(meta, "classes/dtype", "i4,i4"), arrays),
        "pickle": b"\x80\x04cos\nsystem\n(S'true'\ntR.",
        "damaged": to_bytes(Content("estimator", meta, arrays))[:-1],
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    command = [sys.executable, "-c", AUDIT, *(str(tmp_path / name) for name in files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    events = done.stdout.splitlines()
    assert [event for event in events if event.startswith(WATCHED)] == []
    opened = [event for event in events if event.startswith("open ")]
    assert opened == [f"open ({str(tmp_path / name)!r},)" for name in files]
