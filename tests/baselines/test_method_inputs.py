"""What every method refuses, by laws over all of them: tables, labels, groups, parameters,
learners.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.cluster import KMeans
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from test_method_checks import KNOBS, METHODS, method_class

import metrifair
from metrifair.errors import DataError

REGRESSORS = {name for name in METHODS if is_regressor(method_class(name)())}
Faulty = Callable[[dict[str, Any]], dict[str, Any]]


def sample(name: str) -> dict[str, Any]:
    """What ``fit`` takes, with every group and label in it."""
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, 60)
    X = rng.normal(size=(60, 2)) + a[:, None]
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    return {"X": X, "y": y * 1.5 if name in REGRESSORS else y, "sensitive_features": a}


def changed(**changes: Callable[[Any], Any]) -> Faulty:
    return lambda given: given | {name: change(given[name]) for name, change in changes.items()}


def holed(value: float) -> Callable[[Any], Any]:
    return lambda table: np.where(table == table[0], value, table)


FAULTS: dict[str, tuple[Faulty, str]] = {
    "fewer labels than rows": (changed(y=lambda y: y[:-1]), "the same length|inconsistent"),
    "fewer groups than rows": (changed(sensitive_features=lambda a: a[:-1]), "sensitive_features"),
    "one-dimensional X": (changed(X=lambda X: X[:, 0]), "Expected 2D"),
    "nan in X": (changed(X=holed(np.nan)), "X contains NaN"),
    "infinity in X": (changed(X=holed(np.inf)), "X contains infinity"),
    "nan in y": (changed(y=holed(np.nan)), "y contains NaN"),
    "no rows": (
        changed(X=lambda X: X[:0], y=lambda y: y[:0], sensitive_features=lambda a: a[:0]),
        r"0 sample",
    ),
    "no groups": (changed(sensitive_features=lambda _: None), "sensitive_features"),
    "one group": (changed(sensitive_features=lambda a: 0 * a), "sensitive_features"),
}
OF_GROUPS: dict[str, tuple[Faulty, str]] = {
    "a missing group": (changed(sensitive_features=lambda a: [None, *a[1:]]), "sensitive_features"),
    "two columns of groups": (
        changed(sensitive_features=lambda a: np.c_[a, a]),
        "sensitive_features",
    ),
}
OF_LABELS: dict[str, tuple[Faulty, str]] = {
    "one class": (changed(y=lambda y: 0 * y), "one class|2 classes"),
    "continuous labels": (changed(y=lambda y: y + np.linspace(0, 0.1, 60)), "continuous"),
}
OF_TWO_CLASSES: dict[str, tuple[Faulty, str]] = {
    "labels 1 and 2": (changed(y=lambda y: y + 1), "in y"),
    "labels no and yes": (changed(y=lambda y: np.where(y == 1, "yes", "no")), "in y"),
    "three classes": (changed(y=lambda y: y + (np.arange(60) < 20) * y), "y contains 3 classes"),
}
THREE_GROUPS: dict[str, tuple[Faulty, str]] = {
    "three groups": (
        changed(sensitive_features=lambda a: a + (np.arange(60) < 20) * a),
        "two groups",
    ),
}
# several attributes, unknown groups, any two labels
OURS = {"BarycenterPostprocessor", "ThresholdPostprocessor"}
ANY_CLASSES = {"XianPostprocessor", "ReweighingClassifier"}
ANY_GROUPS = ANY_CLASSES | OURS
ANY_GROUPS |= {"BerkRegressor", "ChzhenPostprocessor", "FairKDEClassifier", "LabelBiasClassifier"}


def faults(name: str) -> dict[str, tuple[Faulty, str]]:
    """Those of 0.5 of the specification that can happen to a method."""
    of_two = {"three classes": OF_TWO_CLASSES["three classes"]} if name in OURS else OF_TWO_CLASSES
    of_labels = {} if name in REGRESSORS else OF_LABELS | ({} if name in ANY_CLASSES else of_two)
    of_groups = {} if name in OURS else OF_GROUPS
    return FAULTS | of_groups | of_labels | ({} if name in ANY_GROUPS else THREE_GROUPS)


@pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for name in METHODS for fault in faults(name)]
)
def test_it_refuses_what_it_cannot_use_and_names_it(name: str, fault: str) -> None:
    spoil, message = faults(name)[fault]
    with pytest.raises(ValueError, match=message):
        method_class(name)(**METHODS[name]).fit(**spoil(sample(name)))


@pytest.mark.parametrize("name", sorted(ANY_GROUPS))
def test_it_takes_three_groups(name: str) -> None:
    spoil, _ = THREE_GROUPS["three groups"]
    assert method_class(name)(**METHODS[name]).fit(**spoil(sample(name))).groups_ == (0, 1, 2)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("spelling", [("m", "f"), (7, 3), (True, False)])
def test_groups_may_be_any_two_values(name: str, spelling: tuple[Any, Any]) -> None:
    """The one of code 0 first, and they are stored."""
    given = sample(name)
    named = given | {"sensitive_features": [spelling[code] for code in given["sensitive_features"]]}
    fitted = method_class(name)(**METHODS[name]).fit(**named)
    assert fitted.groups_ == tuple(sorted(spelling))


@pytest.mark.parametrize("name", sorted(METHODS.keys() - REGRESSORS))
@pytest.mark.parametrize("spelling", [(-1, 1), (False, True)])
def test_labels_may_be_signs_or_booleans(name: str, spelling: tuple[Any, Any]) -> None:
    given = sample(name)
    plain, spelt = (
        method_class(name)(**METHODS[name]).fit(**given | {"y": np.array(labels)[given["y"]]})
        for labels in ((0, 1), spelling)
    )
    asked = {key: given[key] for key in inspect.signature(plain.predict).parameters}
    np.testing.assert_array_equal(
        spelt.predict(**asked), np.array(spelling)[plain.predict(**asked)]
    )


@pytest.mark.parametrize("name", METHODS)
def test_predicting_is_refused_before_fit_and_for_other_columns_or_groups(name: str) -> None:
    given = sample(name)
    model = method_class(name)(**METHODS[name])
    asked = {key: given[key] for key in inspect.signature(model.predict).parameters}
    with pytest.raises(NotFittedError):
        model.predict(**asked)
    model.fit(**given)
    with pytest.raises(ValueError, match="features"):
        model.predict(**asked | {"X": given["X"][:, :1]})
    if "sensitive_features" in asked:
        with pytest.raises(ValueError, match="sensitive_features"):
            model.predict(**asked | {"sensitive_features": given["sensitive_features"] + 1})


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_model(name: str) -> None:
    given = sample(name)
    kind, parameters = method_class(name), METHODS[name]
    if "random_state" in inspect.signature(kind).parameters:
        parameters = parameters | {"random_state": 3}
    first, second = (kind(**parameters).fit(**given) for _ in range(2))
    asked = {key: given[key] for key in inspect.signature(first.predict).parameters}
    np.testing.assert_array_equal(first.predict(**asked), second.predict(**asked))


CELLS = {"equal_opportunity": (1,), "equalized_odds": (0, 1), "predictive_equality": (0,)}
CONDITIONAL = {
    "ZafarClassifier": tuple(CELLS),
    "FairKDEClassifier": ("equal_opportunity", "equalized_odds"),
    "SinkhornClassifier": ("equal_opportunity",),
    "LabelBiasClassifier": ("equal_opportunity", "equalized_odds"),
    "FairBatchClassifier": ("equal_opportunity", "equalized_odds"),
}


@pytest.mark.parametrize(
    ("name", "criterion", "label"),
    [
        (name, one, label)
        for name, criteria in CONDITIONAL.items()
        for one in criteria
        for label in CELLS[one]
    ],
)
def test_a_cell_on_which_the_criterion_conditions_must_not_be_empty(
    name: str, criterion: str, label: int
) -> None:
    given = sample(name)
    y, a = given["y"], given["sensitive_features"]
    y[(a == 1) & (y == label)] = 1 - label
    bound = {"gamma": None, "tau": 0.1} if name == "ZafarClassifier" else {}
    with pytest.raises(ValueError, match=f"no row with label {label}"):
        method_class(name)(**METHODS[name] | bound | {"criterion": criterion}).fit(**given)


@pytest.mark.parametrize(
    "name", [name for name in METHODS if hasattr(method_class(name)(), "criterion")]
)
def test_a_criterion_is_taken_by_the_name_of_other_texts(name: str) -> None:
    given = sample(name)
    asked = {key: given[key] for key in inspect.signature(method_class(name)().predict).parameters}
    first, second = (
        method_class(name)(**METHODS[name] | {"criterion": criterion}).fit(**given).predict(**asked)
        for criterion in ("statistical_parity", "demographic_parity")
    )
    np.testing.assert_array_equal(first, second)


def wrong_values(parameter: inspect.Parameter) -> list[Any]:
    """What no parameter with such a default takes; where the default says nothing, nothing is
    known.
    """
    default = 1.0 if parameter.name in ("gamma", "tau") else parameter.default
    if isinstance(default, bool):
        return ["yes", 2]
    if isinstance(default, str):
        return ["nonsense"]
    fractions = [1.5] if parameter.annotation == "int" else []
    return [-1, np.nan, "1", *fractions] if isinstance(default, (int, float)) else []


WRONG = [
    (name, parameter.name, value)
    for name in METHODS
    for parameter in inspect.signature(method_class(name)).parameters.values()
    for value in wrong_values(parameter)
]


@pytest.mark.parametrize(("name", "parameter", "value"), WRONG)
def test_a_parameter_out_of_its_range_is_named(name: str, parameter: str, value: object) -> None:
    instead = {"gamma": None} if parameter == "tau" else {}
    with pytest.raises(DataError, match=rf"\b{parameter}\b"):
        method_class(name)(**METHODS[name] | instead | {parameter: value}).fit(**sample(name))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_fits_with_its_defaults(name: str) -> None:
    """Of the knobs, that is: fewer steps, and a quicker base, do no harm here."""
    knobs = {KNOBS[name][0]} if name in KNOBS else set()
    given = sample(name)
    quick = {
        key: value
        for key, value in METHODS[name].items()
        if key not in knobs | {"ridge", "penalty"}
    }
    model = method_class(name)(**quick).fit(**given)
    asked = {key: given[key] for key in inspect.signature(model.predict).parameters}
    assert len(model.predict(**asked)) == len(given["X"])


ASKED = ["XianPostprocessor", "ChzhenPostprocessor", *sorted(OURS)]


@pytest.mark.parametrize("name", ASKED)
def test_a_score_needs_the_groups_and_weighs_the_rows(name: str) -> None:
    given = sample(name)
    X, y, a = given.values()
    model = method_class(name)(**METHODS[name]).fit(**given)
    weight = np.random.default_rng(0).uniform(0, 2, len(y))
    predicted = model.predict(X, sensitive_features=a)
    metric = r2_score if name in REGRESSORS else accuracy_score
    assert model.score(X, y, sensitive_features=a) == metric(y, predicted)
    weighted = model.score(X, y, sensitive_features=a, sample_weight=weight)
    assert weighted == metric(y, predicted, sample_weight=weight) != metric(y, predicted)
    with pytest.raises(DataError, match="needs sensitive_features"):
        model.score(X, y)


@pytest.mark.parametrize("name", ASKED)
def test_a_grid_search_routes_groups_to_the_score(name: str) -> None:
    given = sample(name)
    knob, free, fair = KNOBS[name]
    with sklearn.config_context(enable_metadata_routing=True):
        model = method_class(name)(**METHODS[name])
        model = model.set_fit_request(sensitive_features=True).set_score_request(
            sensitive_features=True
        )
        search = GridSearchCV(
            model, {knob: [free, fair]}, cv=2, error_score="raise", refit=False
        ).fit(**given)
        scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert scores[0] != scores[1]


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_last_step_of_a_pipeline(routing: bool) -> None:
    given = sample("BarycenterPostprocessor")
    with sklearn.config_context(enable_metadata_routing=routing):
        last = metrifair.FairClassifier(model="linear")
        last = last.set_fit_request(sensitive_features=True) if routing else last
        around = metrifair.BarycenterPostprocessor(make_pipeline(StandardScaler(), last)).fit(
            **given
        )
        found = around.predict_proba(given["X"], sensitive_features=given["sensitive_features"])
    assert np.isfinite(found).all()


class Asking(GaussianNB):
    """A classifier with groups of its own."""

    def fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any = None) -> Any:
        self.seen_ = X, sensitive_features
        return super().fit(X, y, sample_weight)


class AskingForNoWeights(GaussianNB):
    """The same without weights."""

    def fit(self, X: Any, y: Any, sensitive_features: Any) -> Any:
        self.seen_ = X, sensitive_features
        return super().fit(X, y)


STACKING = StackingClassifier([("plain", GaussianNB())], cv=2)
WRAPPING: dict[str, tuple[str, dict[str, Any]]] = {
    "XianPostprocessor": ("estimator", {}),
    "XianPostprocessor, prefit": ("estimator", {"prefit": True}),
    "ChzhenPostprocessor": ("estimator", {}),
    "BarycenterPostprocessor": ("estimator", {}),
    "ThresholdPostprocessor": ("estimator", {}),
    "ThresholdPostprocessor, prefit": ("estimator", {"prefit": True}),
    "ThresholdPostprocessor, group": ("group_model", {"needs_group": False}),
    "LabelBiasClassifier": ("estimator", {}),
    "LabelBiasClassifier, warm": ("estimator", {"warm_start": True}),
    "MassagingClassifier": ("estimator", {}),
    "MassagingClassifier, ranker": ("ranker", {}),
    "ReweighingClassifier": ("estimator", {}),
}
NO_LEARNERS = {
    "class": LogisticRegression,
    "name": "logistic",
    "number": 3,
    "clusterer": KMeans(2),
    "transformer": StandardScaler(),
}


def learner_refused(case: str, learner: object) -> None:
    name = case.partition(",")[0]
    argument, others = WRAPPING[case]
    with pytest.raises(DataError, match=argument):
        method_class(name)(**METHODS[name] | others | {argument: learner}).fit(**sample(name))


@pytest.mark.parametrize("case", WRAPPING)
@pytest.mark.parametrize("learner", NO_LEARNERS)
def test_what_is_no_learner_is_refused(case: str, learner: str) -> None:
    learner_refused(case, NO_LEARNERS[learner])


# takes either
@pytest.mark.parametrize("case", [case for case in WRAPPING if case != "BarycenterPostprocessor"])
def test_a_learner_of_the_other_kind_is_refused(case: str) -> None:
    """Or the predictions of a regressor would be cut to whole numbers and pass for classes."""
    learner_refused(
        case, LogisticRegression() if case == "ChzhenPostprocessor" else LinearRegression()
    )


@pytest.mark.parametrize(
    "case", ["XianPostprocessor", *sorted(OURS), "MassagingClassifier, ranker"]
)
def test_a_learner_without_probabilities_is_refused_where_they_are_needed(case: str) -> None:
    learner_refused(case, LinearSVC())


@pytest.mark.parametrize(
    "name", ["LabelBiasClassifier", "MassagingClassifier", "ReweighingClassifier"]
)
@pytest.mark.parametrize("learner", [GaussianNB(), LinearSVC(), KNeighborsClassifier(), STACKING])
def test_any_classifier_serves(name: str, learner: object) -> None:
    """With weights or without, with probabilities or without, with a method that is there only
    after fit.
    """
    given = sample(name)
    fitted = method_class(name)(**METHODS[name] | {"estimator": learner}).fit(**given)
    assert (fitted.predict(given["X"]) == given["y"]).mean() > 0.6
    assert hasattr(fitted, "predict_proba") == hasattr(fitted.estimator_, "predict_proba")


@pytest.mark.parametrize(
    "name", ["LabelBiasClassifier", "MassagingClassifier", "ReweighingClassifier"]
)
@pytest.mark.parametrize("by_weights", [True, False])
def test_a_learner_that_asks_for_groups_gets_those_of_its_rows(name: str, by_weights: bool) -> None:
    given = sample(name)
    table = np.c_[given["X"], given["sensitive_features"]]
    learner = Asking() if by_weights else AskingForNoWeights()
    fitted = method_class(name)(**METHODS[name] | {"estimator": learner}).fit(
        **given | {"X": table}
    )
    x, groups = fitted.estimator_.seen_
    np.testing.assert_array_equal(groups, x[:, -1])
    # else rows are drawn
    assert (len(np.unique(x, axis=0)) == 60) == (by_weights or name == "MassagingClassifier")


class ReversedClasses(ClassifierMixin, BaseEstimator):
    """A logistic regression whose classes, and with them its columns, descend."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ReversedClasses:
        self.model_ = LogisticRegression().fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_[::-1]
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.model_.predict_proba(X)[:, ::-1]


WRAPPERS = [
    "LabelBiasClassifier",
    "MassagingClassifier",
    "ReweighingClassifier",
    "XianPostprocessor",
    *sorted(OURS),
]


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("prefit", [False, True])
def test_columns_of_a_wrapped_model_are_matched_by_its_classes(name: str, prefit: bool) -> None:
    given, found = sample(name), []
    for learner in (LogisticRegression(), ReversedClasses()):
        options = METHODS[name] | {"estimator": learner}
        if prefit:
            if "prefit" not in inspect.signature(method_class(name)).parameters:
                pytest.skip("it trains its learner")
            options |= {"estimator": learner.fit(given["X"], given["y"]), "prefit": True}
        model = method_class(name)(**options).fit(**given)
        asked = {key: given[key] for key in inspect.signature(model.predict).parameters}
        found.append(model.predict(**asked))
        if hasattr(model, "predict_proba"):
            columns = np.argsort(model.classes_)
            found[-1] = np.column_stack([found[-1], model.predict_proba(**asked)[:, columns]])
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)
