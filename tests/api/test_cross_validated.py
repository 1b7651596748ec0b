"""`FairClassifierCV` and `FairRegressorCV`: scikit-learn's checks, and what `frontier` would do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from metrifair import (
    DataError,
    FairClassifier,
    FairClassifierCV,
    FairLGBMClassifier,
    FairLGBMRegressor,
    FairRegressor,
    FairRegressorCV,
    FairXGBClassifier,
    FairXGBRegressor,
    SearchOptions,
    frontier,
    load,
)
from metrifair.errors import MetrifairWarning
from tests.expected_errors import Refusals
from tests.seams.tradeoff import Goal, needs_group
from tests.seams.tradeoff import frontier as sweeping

LINEAR = {"families": ["linear"], "random_state": 0}


def rows(count: int = 600, seed: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    sex = draw.integers(2, size=count)
    X = draw.normal(size=(count, 3)) + sex[:, None]
    y = (X.sum(1) + draw.normal(size=count) > 1.5).astype(int)
    return {"X": X, "y": y, "sensitive_features": sex}


# Some checks fit a handful of rows that a column parts by label.
@pytest.mark.filterwarnings("ignore:columns? .* separates? the classes")
@parametrize_with_checks([FairClassifierCV(max_unfairness=1), FairRegressorCV(max_unfairness=1)])
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_it_is_frontier_and_select() -> None:
    given = rows()
    model = FairClassifierCV(max_unfairness=0.3, confidence=0.8, **LINEAR).fit(**given)
    search = SearchOptions(families=["linear"])
    front = frontier("auto", **given, random_state=0, search=search)
    same = front.select(max_unfairness=0.3, confidence=0.8, needs_group=False)
    np.testing.assert_array_equal(model.predict_proba(given["X"]), same.predict_proba(given["X"]))
    assert model.unfairness_ == front.chosen.unfairness
    assert model.utility_ == front.chosen.more["auc"]
    assert model.frontier_.points == front.points


def test_the_default_predicts_without_the_group() -> None:
    given = rows()
    families = ["linear", "barycenter"]
    blind = FairClassifierCV(max_unfairness=0.3, families=families[:1], random_state=0)
    assert blind.fit(**given).predict(given["X"]).shape == (600,)
    aware = FairClassifierCV(
        max_unfairness=0.3, families=families, needs_group=True, random_state=0
    ).fit(**given)
    assert aware.frontier_.chosen.needs_group
    groups = {"sensitive_features": given["sensitive_features"]}
    assert aware.predict_proba(given["X"], **groups).shape == (600, 2)
    right = aware.predict(given["X"], **groups) == given["y"]
    assert aware.score(given["X"], given["y"], **groups) == pytest.approx(right.mean())
    weight = np.arange(600.0)
    weighted = aware.score(given["X"], given["y"], **groups, sample_weight=weight)
    assert weighted == pytest.approx(np.average(right, weights=weight))
    with pytest.raises(DataError, match="sensitive_features"):
        aware.predict(given["X"])


@pytest.mark.parametrize("estimator", [FairClassifierCV, FairRegressorCV])
def test_a_wrong_argument_is_an_error_that_names_the_class(estimator: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{estimator.__name__}.__init__\(\) got an unexpected"):
        estimator(max_unfairness=0.3, strength=1)
    with pytest.raises(TypeError, match=rf"^{estimator.__name__}.__init__\(\) missing"):
        estimator()


def test_a_subclass_can_have_arguments_of_its_own() -> None:
    class Named(FairClassifierCV):
        def __init__(self, *, max_unfairness: float, name: str = "") -> None:
            super().__init__(max_unfairness=max_unfairness)
            self.name = name

    class Further(Named):
        pass

    assert Further(max_unfairness=0.3, name="a").get_params() == {
        "max_unfairness": 0.3,
        "name": "a",
    }
    with pytest.raises(TypeError, match="max_unfairness"):
        Further()


def test_a_limit_needs_groups(refused: Refusals) -> None:
    given = rows()
    with refused(DataError):
        FairClassifierCV(max_unfairness=0.3).fit(given["X"], given["y"])


def test_an_unmet_limit_is_an_error_and_best_effort_delivers(refused: Refusals) -> None:
    given = rows(200)
    model = FairClassifierCV(max_unfairness=0.01, **LINEAR)
    with refused(DataError):
        model.fit(**given)
    with pytest.warns(MetrifairWarning, match="not significantly better than a constant"):
        least = clone(model).set_params(best_effort=True).fit(**given)
    assert least.frontier_.record.is_best_effort


def test_a_limit_that_no_rows_verify_is_refused_before_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the error that the choice raises after training."""
    given = rows(200)
    early = FairClassifierCV(max_unfairness=0.01, **LINEAR)
    front = frontier("auto", **given, random_state=0, search=SearchOptions(families=["linear"]))
    call = "frontier('auto', ..., ..., sensitive_features=..., search=SearchOptions(families=['linear']))"
    assert front.record.provenance.call == call
    with pytest.raises(DataError) as late:
        front.select(max_unfairness=0.01)
    monkeypatch.setattr(sweeping, "sweep", lambda *_, **__: pytest.fail("it trained"))
    with pytest.raises(DataError) as refused:
        early.fit(**given)
    assert str(refused.value) == str(late.value)


@pytest.mark.parametrize(
    "case", ["the least limit", "decisions", "a feature of two values", "families that decide"]
)
def test_no_limit_is_refused_early_that_could_be_met(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chance depends on the number of positive decisions, which no row says."""
    given = rows(200)
    options: dict[str, Any] = {"max_unfairness": 0.01, **LINEAR}
    if case == "the least limit":
        search = SearchOptions(families=["linear"])
        front = frontier("auto", **given, random_state=0, search=search)
        options["max_unfairness"] = front.record.noise
    elif case == "decisions":
        options["unfairness_of"] = "decisions"
    elif case == "a feature of two values":
        given["X"] = given["X"][:, :1] > 0
    else:
        options |= {"families": ["thresholds"], "needs_group": True}

    class Training(Exception):
        pass

    def trains(*_: Any, **__: Any) -> None:
        raise Training

    monkeypatch.setattr(sweeping, "sweep", trains)
    with pytest.raises(Training):
        FairClassifierCV(**options).fit(**given)


def test_the_positive_label_can_be_named() -> None:
    """Of two words, the last one is positive by default; the summary says which it was."""
    data = rows()
    X, Y, A = data.values()
    word = np.where(Y == 1, "approved", "denied")
    given = {"max_unfairness": 1.0, "families": ["linear"], "random_state": 0}
    by_default = FairClassifierCV(**given).fit(X, word, sensitive_features=A)
    assert "'denied' counts as positive" in by_default.frontier_.summary
    named = FairClassifierCV(**given, pos_label="approved").fit(X, word, sensitive_features=A)
    assert "counts as positive" not in named.frontier_.summary
    np.testing.assert_array_equal(named.predict(X), by_default.predict(X))


def test_a_regressor_predicts_numbers_even_of_few_integers() -> None:
    given = rows()
    counts = {**given, "y": np.round(given["X"].sum(1)).clip(-3, 3)}
    model = FairRegressorCV(max_unfairness=0.5, **LINEAR).fit(**counts)
    assert len(np.unique(model.predict(given["X"]))) > 100
    assert model.utility_ == model.frontier_.chosen.accuracy


def test_it_works_in_a_pipeline_and_a_saved_model_predicts_alike(tmp_path: Any) -> None:
    given = rows()
    model = FairClassifierCV(max_unfairness=0.4, **LINEAR)
    pipeline = make_pipeline(StandardScaler(), model)
    groups = {"fairclassifiercv__sensitive_features": given["sensitive_features"]}
    pipeline.fit(given["X"], given["y"], **groups)
    fitted = pipeline[-1]
    fitted.save(tmp_path / "model.metrifair")
    scaled = pipeline[0].transform(given["X"])
    np.testing.assert_allclose(
        load(tmp_path / "model.metrifair").predict_proba(scaled),
        pipeline.predict_proba(given["X"]),
    )


@pytest.mark.parametrize("family", ["linear", "small_trees", "barycenter"])
def test_a_loaded_model_takes_the_groups_as_the_saved_one_did(family: str, tmp_path: Any) -> None:
    """A table with text is saved as a pipeline, whose last step gets the groups."""
    given = rows(400)
    sex = given["sensitive_features"]
    table = pd.DataFrame({"size": given["X"].sum(1), "town": np.where(sex, "A", "B")})
    model = FairClassifierCV(
        max_unfairness=0.5, families=[family], needs_group=family == "barycenter", random_state=0
    )
    model.fit(table, given["y"], sensitive_features=sex).save(tmp_path / "model.metrifair")
    again = load(tmp_path / "model.metrifair")
    assert isinstance(again, Pipeline)
    for method in ("predict", "predict_proba"):
        np.testing.assert_array_equal(
            getattr(again, method)(table, sensitive_features=sex),
            getattr(model, method)(table, sensitive_features=sex),
        )


@pytest.mark.parametrize(
    "model",
    [
        FairClassifier(random_state=0),
        FairRegressor(random_state=0),
        FairLGBMClassifier(n_estimators=2, verbose=-1),
        FairLGBMRegressor(n_estimators=2, verbose=-1),
        FairXGBClassifier(n_estimators=2),
        FairXGBRegressor(n_estimators=2),
    ],
)
def test_groups_at_prediction_change_nothing_where_none_are_needed(model: Any) -> None:
    given = rows(200)
    fitted = model.fit(**given)
    assert not needs_group(fitted)
    for name in ("predict", "predict_proba", "decision_function"):
        if hasattr(fitted, name):
            predict = getattr(fitted, name)
            groups = given["sensitive_features"]
            np.testing.assert_array_equal(
                predict(given["X"], sensitive_features=groups), predict(given["X"])
            )


def test_figures_before_fitting_are_refused() -> None:
    with pytest.raises(NotFittedError):
        _ = FairClassifierCV(max_unfairness=0.3).unfairness_


def test_a_family_that_is_no_list_and_numbers_for_labels_are_refused_before_training(
    refused: Refusals,
) -> None:
    X, group = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    with refused(DataError):
        FairClassifierCV(max_unfairness=0.3, families="linear").fit(
            X, X[:, 0] > 0, sensitive_features=group
        )
    with refused(DataError):
        FairClassifierCV(max_unfairness=0.3).fit(X, X[:, 0], sensitive_features=group)


@pytest.mark.parametrize("model", [FairLGBMClassifier(), FairXGBClassifier(), FairClassifier()])
def test_numbers_for_labels_name_the_regressor(model: Any) -> None:
    X, group = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    regressor = type(model).__name__.replace("Classifier", "Regressor")
    with pytest.raises(DataError, match=f"use {regressor}"):
        model.fit(X, X[:, 0], sensitive_features=group)


def test_a_limit_and_families_that_are_missing_are_named_with_a_remedy(refused: Refusals) -> None:
    given = rows(60)
    with refused(DataError):
        FairClassifierCV(max_unfairness=None).fit(**given)  # type: ignore[arg-type]
    with refused(DataError):
        FairClassifierCV(max_unfairness=0.3, families=[]).fit(**given)
    with refused(DataError):
        SearchOptions(families=[])
    with refused(DataError):
        Goal()
    with refused(DataError):
        Goal(max_unfairness=0.1, min_accuracy=0.7)


@pytest.mark.parametrize(
    ("argument", "value"), [("families", None), ("families", 5), ("search", {"budget": 10})]
)
def test_arguments_of_the_wrong_kind_are_refused(argument: str, value: object) -> None:
    given: dict[str, Any] = {"max_unfairness": 0.3, argument: value}
    with pytest.raises(DataError, match=argument):
        FairClassifierCV(**given).fit(**rows())


def test_the_positive_label_holds_without_groups() -> None:
    given = rows()
    labels = np.where(given["y"] == 1, "bad", "good")
    model = FairClassifierCV(max_unfairness=1.0, pos_label="bad").fit(given["X"], labels)
    assert model.classes_[model.estimator_.scheme_.positive] == "bad"
    with pytest.raises(DataError, match="pos_label"):
        FairClassifierCV(max_unfairness=1.0, pos_label="other").fit(given["X"], labels)
