"""Stacking: what the last model sees, where the theory ends, files and ONNX."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import metrifair.stacking
from metrifair import FairClassifier, FairRegressor, load, unfairness
from metrifair.errors import DataError, ModelFileError
from metrifair.estimators import fit_stack
from metrifair.stacking import FairStackingClassifier, FairStackingRegressor
from tests.expected_errors import Refusals
from tests.flat_options import with_penalty
from tests.seams.saving import make_content, read, read_model, to_bytes

LINES: dict[str, Any] = {
    name: [FairClassifier(0.0, model="linear")] for name in ("outcome_models", "group_models")
}
NUMBERS: dict[str, Any] = {**LINES, "outcome_models": [FairRegressor(0.0, model="linear")]}
pytestmark = [
    pytest.mark.extended,
    pytest.mark.filterwarnings("ignore:the model predicts the same"),
]


def population(rows: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Two groups that a feature tells apart, and labels that depend on it."""
    generator = np.random.default_rng(seed)
    a = generator.integers(2, size=rows)
    X = generator.normal(size=(rows, 3))
    X[:, 0] += 2 * a
    return X, (X.sum(1) + generator.logistic(size=rows) > 0.5).astype(int), a


X, Y, A = population(500)
TASKS = {
    "two classes": (FairStackingClassifier(2.0, random_state=0), Y),
    "names": (
        FairStackingClassifier(2.0, criterion="equalized_odds", random_state=0),
        np.array(["no", "yes"])[Y],
    ),
    "features too": (FairStackingClassifier(2.0, passthrough=True, random_state=0), Y),
    "no penalty": (FairStackingClassifier(0.0, random_state=0), Y),
    "own models": (FairStackingClassifier(2.0, **with_penalty(**LINES), model="linear"), Y),
    "three classes": (FairStackingClassifier(1.0, random_state=0), np.digitize(X.sum(1), [0, 1])),
    "a number": (FairStackingRegressor(1.0, random_state=0), X.sum(1)),
}


@pytest.fixture(scope="module", params=TASKS)
def fitted(request: pytest.FixtureRequest) -> Any:
    model, y = TASKS[request.param]
    return clone(model).fit(X, y, sensitive_features=A)


def test_the_last_model_sees_predictions_by_models_that_have_not_seen_the_row() -> None:
    """A neighbor that is the row itself would tell its label and its group: labels and groups
    are noise here.
    """
    generator = np.random.default_rng(3)
    noise, label, group = (
        generator.normal(size=(400, 4)),
        generator.integers(2, size=400),
        generator.integers(2, size=400),
    )
    nearest = {name: [KNeighborsClassifier(1)] for name in ("outcome_models", "group_models")}
    model = FairStackingClassifier(
        0.0, model="linear", **with_penalty(**nearest), random_state=0
    ).fit(noise, label)
    # By the row's own label the probability would be 0 or 1; out of fold there is nothing to learn.
    assert np.ptp(model.predict_proba(noise)[:, 1]) < 0.15
    assert (
        FairStackingClassifier(0.1, model="linear", **with_penalty(**nearest), random_state=0)
        .fit(noise, label, sensitive_features=group)
        .score(noise, label)
        < 0.65
    )


def test_predictions_are_calibrated() -> None:
    """The last model takes the right log-odds, whatever those of the base model are."""
    X, y, _ = population(20_000)
    timid = FairClassifier(0.0, model="linear", weight_decay=0.2)
    model = FairStackingClassifier(0.0, outcome_models=[timid], model="linear").fit(X, y)
    new, truth, _ = population(20_000, seed=1)
    log_odds = model.predictor_.outcome(new)[:, 0]
    slope = LogisticRegression(C=1e9).fit(log_odds[:, None], truth).coef_.item()
    assert slope == pytest.approx(1, abs=0.06)
    assert (
        LogisticRegression(C=1e9)
        .fit(timid.fit(X, y).decision_function(new)[:, None], truth)
        .coef_.item()
        > 1.3
    )


def test_for_equal_opportunity_the_group_is_predicted_among_positive_rows() -> None:
    X, _, a = population(4_000)
    y = (
        X.sum(1) + (2 * a - 1) * X[:, 1] + np.random.default_rng(5).logistic(size=len(X)) > 0.5
    ).astype(int)
    model = FairStackingClassifier(
        1.0, **with_penalty(**LINES), criterion="equal_opportunity", random_state=0
    )
    model.fit(X, y, sensitive_features=a)
    other = a != np.bincount(a[y == 1]).argmax()  # than the group with the most positive rows
    expected = LogisticRegression(C=1e9).fit(X[y == 1], other[y == 1]).decision_function(X)
    assert np.corrcoef(model.predictor_.group(X)[:, 0], expected)[0, 1] > 0.999
    everyone = LogisticRegression(C=1e9).fit(X, a).decision_function(X)
    assert np.corrcoef(model.predictor_.group(X)[:, 0], everyone)[0, 1] < 0.99


def test_a_penalty_lowers_unfairness_on_new_rows() -> None:
    new, truth, group = population(4_000, seed=7)
    gaps = [
        unfairness(truth, own.predict_proba(new)[:, 1], sensitive_features=group)
        for own in fit_stack(
            FairStackingClassifier(), X, Y, strengths=[0.0, 6.0], seeds=[0], sensitive_features=A
        )
        if own is not None
    ]
    assert gaps[0] > 0.25
    assert gaps[1] < 0.15


def small_group(rows: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Two large groups that a feature tells apart, and a small one that no feature tells from
    the second.
    """
    generator = np.random.default_rng(seed)
    a = generator.choice(3, size=rows, p=[0.55, 0.4, 0.05])
    X = generator.normal(size=(rows, 6))
    X[:, 0] += a == 0
    return (
        X,
        (X.sum(1) + generator.logistic(size=rows) > 0.5).astype(int),
        np.array(["n", "s", "islands"])[a],
    )


def test_trees_predict_the_group_only_where_they_help() -> None:
    x, y, a = small_group(800)
    group = (
        FairStackingClassifier(1.0, random_state=0).fit(x, y, sensitive_features=a).predictor_.group
    )
    assert len(group.models) == 1
    signs = (x[:, 0] * x[:, 1] > 0).astype(int)  # a product, which no linear model learns
    group = (
        FairStackingClassifier(1.0, random_state=0)
        .fit(x, y, sensitive_features=signs)
        .predictor_.group
    )
    assert len(group.models) == 2
    listed = FairStackingClassifier(1.0, group_models=[LogisticRegression(), DummyClassifier()])
    assert len(listed.fit(x, y, sensitive_features=a).predictor_.group.models) == 2


def test_log_odds_of_groups_are_against_the_largest() -> None:
    """Only one of the two numbers depends on the probability of the small group, which is the
    first by name.
    """
    x, y, a = small_group(2_000)
    group = (
        FairStackingClassifier(1.0, random_state=0).fit(x, y, sensitive_features=a).predictor_.group
    )
    shares = [(a == name).mean() for name in ("n", "s", "islands")]
    np.testing.assert_allclose(group(x).mean(0), np.log(shares[1:]) - np.log(shares[0]), atol=0.3)


def test_all_strengths_at_once_equal_single_fits() -> None:
    template = FairStackingClassifier(**with_penalty(**LINES))
    stack = fit_stack(template, X, Y, strengths=[1.0, 0.0, 4.0], seeds=[3, 4], sensitive_features=A)
    for model in filter(None, stack):
        single = clone(model).fit(X, Y, sensitive_features=A)
        np.testing.assert_allclose(model.predict_proba(X), single.predict_proba(X), atol=1e-12)


def test_a_missing_group_counts_for_the_label_only() -> None:
    unknown = A.astype(object)
    unknown[::5] = None
    model = FairStackingClassifier(2.0, **with_penalty(**LINES), random_state=0).fit(
        X, Y, sensitive_features=unknown
    )
    known = A != 9
    known[::5] = False
    other = np.bincount(A[known]).argmax() != A  # than the largest group
    expected = LogisticRegression(C=1e9).fit(X[known], other[known]).decision_function(X)
    assert np.corrcoef(model.predictor_.group(X)[:, 0], expected)[0, 1] > 0.999


@pytest.mark.parametrize(
    ("settings", "given", "argument"),
    [
        ({"criterion": "risk_parity"}, {}, "criterion"),
        ({"continuous": True}, {"sensitive_features": X[:, 1]}, "sensitive_features"),
        ({"outcome_models": LogisticRegression()}, {}, "outcome_models"),
        ({"group_models": []}, {}, "group_models"),
    ],
)
def test_what_the_theory_does_not_cover_is_refused(
    settings: dict[str, Any], given: dict[str, Any], argument: str
) -> None:
    with pytest.raises(DataError) as refused:
        FairStackingClassifier(**with_penalty(**settings)).fit(
            X, Y, **({"sensitive_features": A} | given)
        )
    assert refused.value.argument == argument


def test_a_regression_takes_the_squared_error_and_regressors(refused: Refusals) -> None:
    with pytest.raises(DataError, match="squared_error"):
        FairStackingRegressor(loss="huber").fit(X, X.sum(1), sensitive_features=A)
    with refused(DataError):
        FairStackingRegressor(outcome_models=[LogisticRegression()]).fit(
            X, X.sum(1), sensitive_features=A
        )
    near = FairStackingRegressor(0.0, outcome_models=[KNeighborsRegressor()]).fit(X, X.sum(1))
    assert near.score(X, X.sum(1)) > 0.8


def test_streams_modules_and_coefficients_are_not_there() -> None:
    model = FairStackingClassifier(0.0, **with_penalty(**LINES), model="linear").fit(X, Y)
    assert not hasattr(model, "partial_fit")
    assert not hasattr(model, "coef_")
    with pytest.raises(DataError, match="no torch modules"):
        model.module()


def test_a_file_keeps_the_whole_stack(fitted: Any, tmp_path: Path) -> None:
    fitted.save(tmp_path / "stack.metrifair")
    again = load(tmp_path / "stack.metrifair")
    assert repr(again) == repr(fitted)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert to_bytes(make_content(again)) == to_bytes(make_content(fitted))


def test_onnx_predicts_the_same(fitted: Any, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    fitted.to_onnx(tmp_path / "stack.onnx")
    found = onnxruntime.InferenceSession(tmp_path / "stack.onnx").run(None, {"X": X})
    expected = fitted.predict_proba(X) if hasattr(fitted, "predict_proba") else fitted.predict(X)
    np.testing.assert_allclose(found[-1], expected, atol=1e-12)
    assert np.asarray(found[0]).tolist() == fitted.predict(X).tolist() or found[0].dtype.kind == "f"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda meta, arrays: arrays.update({"more/x": np.zeros(1)}), "no part of the model"),
        (lambda meta, arrays: arrays.update({"state/group_bias": np.zeros(3)}), "takes 2"),
        (lambda meta, arrays: arrays.update({"state/outcome_bias": np.zeros(1)}), "other classes"),
        (lambda meta, arrays: meta["outcome"].clear(), "at least|length"),
        (lambda meta, arrays: meta["parameters"].update(strength=1.0), "a parameter"),
        (lambda meta, arrays: meta["parameters"].update(folds=0), "folds"),
        (lambda meta, arrays: meta["features"].update(count=7), "number of features"),
        (lambda meta, arrays: meta.update(kind="FairStackingRegressor"), "does not end with"),
        (
            lambda meta, arrays: meta["outcome"][0].update(kind="pipeline"),
            "estimators and boosters only",
        ),
        (
            lambda meta, arrays: meta["outcome"][0]["meta"].update(kind=meta["kind"]),
            "estimators and boosters only",
        ),
    ],
)
def test_a_forged_file_is_refused(change: Any, message: str) -> None:
    content = make_content(
        FairStackingClassifier(2.0, **with_penalty(**LINES), model="linear").fit(
            X, Y, sensitive_features=A
        )
    )
    change(content.meta, content.arrays)
    with pytest.raises(ModelFileError, match=message):
        read_model(content)


def test_a_file_holds_no_foreign_models(tmp_path: Path, refused: Refusals) -> None:
    model = FairStackingClassifier(0.0, outcome_models=[DummyClassifier()]).fit(X, Y)
    with refused(DataError):
        model.save(tmp_path / "stack.metrifair")
    pytest.importorskip("onnx", reason="onnx is not installed")
    with pytest.raises(DataError, match="contains a DummyClassifier"):
        model.to_onnx(tmp_path / "stack.onnx")


def test_without_lightgbm_the_trees_are_those_of_scikit_learn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrifair.stacking, "find_spec", lambda _: None)
    model = FairStackingClassifier(0.0, random_state=0).fit(X, Y)
    assert isinstance(model.predictor_.outcome.models[1], HistGradientBoostingClassifier)


def test_the_file_reads_as_written(tmp_path: Path) -> None:
    FairStackingRegressor(1.0, **with_penalty(**NUMBERS), model="linear").fit(
        X, X.sum(1), sensitive_features=A
    ).save(tmp_path / "m")
    assert read(tmp_path / "m").kind == "stack"


# A weight is not a repetition: the copies of a row lie in several folds.
EXPECTED = {"check_sample_weight_equivalence_on_dense_data": "copies of a row lie in several folds"}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        FairStackingClassifier(
            0.0,
            model="linear",
            outcome_models=[FairClassifier(0.0, model="linear")],
            random_state=0,
        ),
        FairStackingRegressor(
            0.0, model="linear", outcome_models=[FairRegressor(0.0, model="linear")], random_state=0
        ),
    ],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)


def test_attributes_are_described_as_those_of_the_estimators_without_a_stack() -> None:
    for stack, plain in (
        (FairStackingClassifier, FairClassifier),
        (FairStackingRegressor, FairRegressor),
    ):
        own, others = (inspect.getdoc(kind).partition("Attributes\n")[2] for kind in (stack, plain))
        for name in ("left_out_", "n_features_in_", "feature_names_in_", "n_iter_"):
            (described,) = re.findall(rf"^{name} : .*\n    .*$", own, re.MULTILINE)
            assert described in others
