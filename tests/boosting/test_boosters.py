"""The four estimators: plain boosters at strength 0, fair ones above; everything else a booster
is used with.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from lightgbm.basic import _ConfigAliases
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from metrifair import (
    FairLGBMClassifier,
    FairLGBMRegressor,
    FairXGBClassifier,
    FairXGBRegressor,
    SearchOptions,
    load,
    unfairness,
)
from metrifair.criteria import Criterion
from metrifair.errors import DataError, Diverged, TooFewSamples
from metrifair.metrics import energy_distance, kolmogorov_distance
from tests.expected_errors import Refusals
from tests.flat_options import with_penalty
from tests.one_split import frontier

pytestmark = pytest.mark.extended

METRIC_NAME = "penalized_risk"

LGBM: dict[str, Any] = {"n_jobs": 1, "verbose": -1, "n_estimators": 30, "min_child_samples": 5}
XGB: dict[str, Any] = {
    "n_jobs": 1,
    "n_estimators": 30,
    "enable_categorical": True,
    "learning_rate": 0.1,
}
KINDS: dict[type, tuple[type, dict[str, Any]]] = {
    FairLGBMClassifier: (lightgbm.LGBMClassifier, LGBM),
    FairLGBMRegressor: (lightgbm.LGBMRegressor, LGBM),
    FairXGBClassifier: (xgboost.XGBClassifier, XGB),
    FairXGBRegressor: (xgboost.XGBRegressor, XGB),
}
CLASSIFIERS = (FairLGBMClassifier, FairXGBClassifier)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
every_classifier = pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)


@cache
def data(n: int = 500) -> tuple[pd.DataFrame, pd.Series, pd.Series, pd.Series]:
    """Features with categories and gaps, a binary and a real target, groups."""
    generator = np.random.default_rng(0)
    a = pd.Series(np.array(["f", "m"])[generator.integers(2, size=n)], name="sex")
    X = pd.DataFrame(
        {
            "skill": generator.normal(size=n) + (a == "m"),
            "town": pd.Categorical(np.array(["u", "v", "w"])[generator.integers(3, size=n)]),
            "gaps": np.where(generator.random(n) < 0.2, np.nan, generator.normal(size=n)),
        }
    )
    value = X.skill + (X.town == "v") + X.gaps.fillna(-1) / 2 + generator.normal(size=n) / 2
    return X, (value > 0.5).astype(int), 40 + 7 * value, a


def target(kind: type) -> pd.Series:
    return data()[1] if kind in CLASSIFIERS else data()[2]


def scores(model: Any, X: Any) -> np.ndarray:
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X) / 7


def made(kind: type, strength: float = 5.0, **changes: Any) -> Any:
    return kind(strength, **with_penalty(**{**KINDS[kind][1], **changes}))


def fitted(kind: type, strength: float = 5.0, **changes: Any) -> Any:
    return made(kind, strength, **with_penalty(**changes)).fit(
        data()[0], target(kind), sensitive_features=data()[3]
    )


@every_kind
def test_strength_0_is_the_plain_booster(kind: type) -> None:
    X, _, _, a = data()
    plain, settings = KINDS[kind]
    settings = settings | {"subsample": 0.7, "random_state": 3, "n_estimators": 15}
    weight = np.random.default_rng(1).random(len(X))
    arguments = (
        {"eval_set": [(X[:100], target(kind)[:100])]}
        if plain.__module__.startswith("xgboost")
        else {}
    )
    arguments |= {"verbose": False} if arguments else {}
    theirs = plain(**settings).fit(X, target(kind), sample_weight=weight, **arguments)
    ours = kind(0.0, **with_penalty(**settings)).fit(
        X, target(kind), sample_weight=weight, **arguments
    )
    with_groups = kind(0, **with_penalty(**settings)).fit(
        X, target(kind), sample_weight=weight, sensitive_features=a
    )
    for method in ("predict", "predict_proba") if kind in CLASSIFIERS else ("predict",):
        expected = getattr(theirs, method)(X)
        assert np.array_equal(getattr(ours, method)(X), expected)
        assert np.array_equal(getattr(with_groups, method)(X), expected)
    assert ours.score(X, target(kind)) == theirs.score(X, target(kind))


@every_kind
@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_a_parameter_that_is_misspelt_is_refused_with_the_nearest_name(
    kind: type, strength: float
) -> None:
    library = "XGBoost" if kind.__name__.startswith("FairXGB") else "LightGBM"
    for wrong, meant in {
        "learning_rat": "learning_rate",
        "strenght": "strength",
        "max_dept": "max_depth",
    }.items():
        model = made(kind, strength).set_params(**{wrong: 1})
        with pytest.raises(
            DataError, match=f"'{wrong}' is not a parameter of {library}; did you mean '{meant}'"
        ):
            model.fit(data()[0], target(kind), sensitive_features=data()[3])


def test_lightgbm_parameters_may_go_by_any_of_their_names(refused: Refusals) -> None:
    given = {
        "shrinkage_rate": 0.1,
        "min_data_in_leaf": 3,
        "lambda_l2": 1.0,
        "num_threads": 1,
        "bagging_seed": 3,
    }
    settings = {
        name: value for name, value in LGBM.items() if name not in ("min_child_samples", "n_jobs")
    }
    model = FairLGBMClassifier(1.0, **with_penalty(**given, **settings)).fit(
        data()[0], data()[1], sensitive_features=data()[3]
    )
    assert model.booster_.params["lambda_l2"] == 1.0
    with refused(DataError):
        model.set_params(of_another_library=1).fit(
            data()[0], data()[1], sensitive_features=data()[3]
        )


@pytest.mark.extended
@every_kind
def test_more_strength_means_less_unfairness(kind: type) -> None:
    X, _, _, a = data()
    found = [
        unfairness(
            None,
            scores(fitted(kind, strength, n_estimators=60), X),
            sensitive_features=a,
            metric="energy",
        )
        for strength in (0.0, 0.3, 3.0, 30.0, 1_000.0)
    ]
    assert found[0] > found[1] > 5 * found[2] > 25 * found[3]
    assert found[4] < 0.005 * found[0]


@every_kind
def test_the_largest_strengths_stay_useful(kind: type) -> None:
    """Neither diverged nor constant: better than the best constant by a fair model's margin."""
    X, y, *_ = data()
    for strength in (100.0, 1_000.0):
        model = fitted(kind, strength, n_estimators=100)
        assert np.abs(scores(model, X)).max() < 20
        least = max(y.mean(), 1 - y.mean()) if kind in CLASSIFIERS else 0.0
        assert model.score(X, target(kind)) > least + 0.15


@every_kind
def test_a_very_weak_penalty_is_almost_the_plain_booster(kind: type) -> None:
    X, *_ = data()
    weak, plain = scores(fitted(kind, 1e-9), X), scores(fitted(kind, 0.0), X)
    # XGBoost keeps the constant it starts from in single precision
    assert weak == pytest.approx(plain, abs=2e-3)


@every_kind
def test_the_booster_itself_gives_the_same_predictions(kind: type) -> None:
    """Link and starting constant are part of it: whoever takes the booster out needs nothing of
    ours.
    """
    X, *_ = data()
    model = fitted(kind)
    if kind in (FairLGBMClassifier, FairLGBMRegressor):
        alone = lightgbm.Booster(model_str=model.booster_.model_to_string()).predict(X)
    else:
        alone = model.get_booster().predict(xgboost.DMatrix(X, enable_categorical=True))
    ours = model.predict_proba(X)[:, 1] if kind in CLASSIFIERS else model.predict(X)
    assert alone == pytest.approx(ours)


@every_classifier
def test_probabilities_labels_and_log_odds_agree(kind: type) -> None:
    X, *_ = data()
    model = fitted(kind)
    p = model.predict_proba(X)
    assert p.sum(1) == pytest.approx(1)
    assert ((p >= 0) & (p <= 1)).all()
    assert np.array_equal(model.predict(X), (p[:, 1] > 0.5).astype(int))
    raw = model.predict(
        X, **({"raw_score": True} if kind is FairLGBMClassifier else {"output_margin": True})
    )
    assert 1 / (1 + np.exp(-raw)) == pytest.approx(p[:, 1], rel=1e-5)


@every_kind
def test_the_first_round_starts_from_the_mean(kind: type) -> None:
    """One round of a vanishing learning rate: predictions are the base rate, or the mean of the
    target.
    """
    model = fitted(kind, learning_rate=1e-9, n_estimators=1)
    X, *_ = data()
    expected = target(kind).mean() / (1 if kind in CLASSIFIERS else 7)
    assert scores(model, X) == pytest.approx(expected, rel=1e-5)


def test_labels_of_any_type_with_lightgbm() -> None:
    X, y, _, a = data()
    words = np.array(["no", "yes"])[y]
    model = made(FairLGBMClassifier).fit(X, words, sensitive_features=a)
    assert np.array_equal(model.predict_proba(X), fitted(FairLGBMClassifier).predict_proba(X))
    assert set(model.predict(X)) == {"no", "yes"}
    assert list(model.classes_) == ["no", "yes"]


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_labels_that_xgboost_does_not_take_are_refused_in_our_words(strength: float) -> None:
    X, y, _, a = data()
    with pytest.raises(DataError) as caught:
        made(FairXGBClassifier, strength).fit(X, np.array(["no", "yes"])[y], sensitive_features=a)
    assert str(caught.value) == (
        "y must contain the labels 0 and 1, as XGBoost requires, got 'no' and 'yes'; pass (y == "
        "positive).astype(int), "
        "or use FairLGBMClassifier, which takes any labels"
    )


@every_classifier
@pytest.mark.parametrize(
    "criterion",
    [
        "equal_opportunity",
        "predictive_equality",
        "equalized_odds",
        "risk_parity",
        "statistical_parity",
    ],
)
def test_every_criterion_lowers_its_own_unfairness(kind: type, criterion: str) -> None:
    X, y, _, a = data()
    options = {"sensitive_features": a, "criterion": criterion, "metric": "energy", "reduce": "sum"}
    options |= {"loss": "log_loss"} if criterion == "risk_parity" else {}
    before, after = (
        unfairness(
            y, scores(fitted(kind, strength, criterion=criterion, max_depth=2), X), **options
        )
        for strength in (0.0, 20.0)
    )
    assert after < 0.35 * before


@every_classifier
def test_the_positive_label_can_be_the_first(kind: type) -> None:
    positive = fitted(kind, criterion="equal_opportunity", pos_label=0)
    negative = fitted(kind, criterion="predictive_equality")
    X, *_ = data()
    assert np.array_equal(positive.predict_proba(X), negative.predict_proba(X))


@pytest.mark.extended
@every_kind
def test_control_features_several_attributes_and_unknown_groups(kind: type) -> None:
    X, _, _, a = data()
    both = pd.DataFrame({"sex": a.where(np.arange(len(a)) % 10 > 0), "town": X.town.astype(str)})
    two = made(kind).fit(X, target(kind), sensitive_features=both)
    crossed = made(kind, intersectional=True, contrast="rest").fit(
        X, target(kind), sensitive_features=both
    )
    within = made(kind, criterion="conditional_statistical_parity").fit(
        X, target(kind), sensitive_features=a, control_features=X.town.astype(str)
    )
    plain = fitted(kind, 0.0)

    def gap(model: Any, groups: Any, **options: Any) -> float:
        return unfairness(
            None, scores(model, X), sensitive_features=groups, metric="energy", **options
        )

    assert gap(two, both) < 0.2 * gap(plain, both)
    assert gap(crossed, both) < 0.2 * gap(plain, both)
    conditional = {
        "criterion": "conditional_statistical_parity",
        "control_features": X.town.astype(str),
    }
    assert gap(within, a, **conditional) < 0.2 * gap(plain, a, **conditional)


@every_kind
def test_only_the_ratio_of_weights_matters(kind: type) -> None:
    X, _, _, a = data()
    weight = np.random.default_rng(2).integers(1, 4, size=len(X)) * 1.0
    # Small trees: of a large one's last splits many are equally good, and the scale's rounding
    # would decide.
    free = {
        "min_child_weight": 0.0,
        "reg_lambda": 0.0,
        "n_estimators": 3,
        "learning_rate": 0.3,
        "max_depth": 2,
    }
    # LightGBM estimates the samples of a leaf from their weight, and the plain one too feels the
    # scale by that.
    free |= (
        {"cat_l2": 0.0, "min_child_samples": 1}
        if kind in (FairLGBMClassifier, FairLGBMRegressor)
        else {}
    )

    def scored(weight: Any, *, expected: bool) -> np.ndarray:
        model = made(kind, expected_groups=expected, **with_penalty(**free))
        return scores(model.fit(X, target(kind), sensitive_features=a, sample_weight=weight), X)

    # With expected groups, the last digit of a weight may decide which part of a row's own group
    # cancels noise.
    for expected, close in ((False, 1e-5), (True, 2e-4)):
        unscaled = scored(weight, expected=expected)
        for factor in (8, 3):
            scaled = scored(factor * weight, expected=expected)
            assert scaled == pytest.approx(unscaled, abs=close)
        assert np.abs(unscaled - scored(None, expected=expected)).max() > 0.02


@pytest.mark.parametrize("kind", [FairLGBMClassifier, FairXGBClassifier])
def test_weights_of_classes_move_the_predictions(kind: type) -> None:
    X, _, _, a = data()
    change = (
        {"class_weight": {0: 1, 1: 6}} if kind is FairLGBMClassifier else {"scale_pos_weight": 6}
    )
    heavy, even = scores(fitted(kind, 20.0, **change), X), scores(fitted(kind, 20.0), X)
    assert heavy.mean() > even.mean() + 0.1
    plain = scores(fitted(kind, 0.0), X)
    assert unfairness(None, heavy, sensitive_features=a) < 0.7 * unfairness(
        None, plain, sensitive_features=a
    )


@every_kind
def test_early_stopping_follows_the_penalized_risk(kind: type) -> None:
    X, _, _, a = data()
    t, train, rest = target(kind), slice(0, 300), slice(300, None)
    sets = {
        "eval_set": [(X[rest], t[rest])],
        "eval_sensitive_features": [a[rest]],
        "sensitive_features": a[train],
    }
    if kind in (FairLGBMClassifier, FairLGBMRegressor):
        stop = {"callbacks": [lightgbm.early_stopping(5, verbose=False)]}
        model = made(kind, n_estimators=400, learning_rate=0.3).fit(
            X[train], t[train], **sets, **stop
        )
        best, log = model.best_iteration_ - 1, model.evals_result_["valid_0"][METRIC_NAME]
    else:
        model = made(kind, n_estimators=400, learning_rate=0.3, early_stopping_rounds=5)
        model.fit(X[train], t[train], verbose=False, **sets)
        best, log = model.best_iteration, model.evals_result()["validation_0"][METRIC_NAME]
    assert len(log) == best + 6 < 400
    assert best == int(np.argmin(log))
    assert best >= 13  # log(50) / 0.3: not while the strength was rising
    # What predicts is the best round: its figures are those of the log.
    y, groups, own = t[rest].to_numpy(), a[rest].to_numpy(), scores(model, X[rest])
    if kind in CLASSIFIERS:
        risk = -np.log(np.where(y == 1, own, 1 - own)).mean()
    else:
        own, y = own * 7 / t[train].std(ddof=0), y / t[train].std(ddof=0)
        risk = np.square(own - y).mean()
    penalty = energy_distance(own[groups == "f"], own[groups == "m"])
    assert log[best] == pytest.approx(risk + 5.0 * penalty, rel=1e-4)


STOPS: dict[str, dict[str, Any]] = {
    "callback": {"callbacks": [lightgbm.early_stopping(5, verbose=False)]},
    "parameter": {"early_stopping_round": 5},
    "alias": {"n_iter_no_change": 5},
}


@pytest.mark.parametrize("metrics", ["auc", ["average_precision", "auc"]])
@pytest.mark.parametrize("stop", STOPS)
def test_further_metrics_are_logged_and_stop_nothing_in_lightgbm(stop: str, metrics: Any) -> None:
    X, y, _, a = data()
    sets = {
        "eval_set": [(X[300:], y[300:])],
        "eval_sensitive_features": [a[300:]],
        "sensitive_features": a[:300],
    }
    sets |= {name: value for name, value in STOPS[stop].items() if name == "callbacks"}
    own = {name: value for name, value in STOPS[stop].items() if name != "callbacks"}
    alone, more = (
        made(FairLGBMClassifier, n_estimators=400, **with_penalty(**own)).fit(
            X[:300], y[:300], **sets, **extra
        )
        for extra in ({}, {"eval_metric": metrics})
    )
    log = more.evals_result_["valid_0"]
    assert set(log) == {METRIC_NAME, *([metrics] if isinstance(metrics, str) else metrics)}
    # it would have stopped far earlier
    assert int(np.argmax(log["auc"])) + 5 < more.best_iteration_ - 1
    assert (
        more.best_iteration_ == alone.best_iteration_ == int(np.argmin(log[METRIC_NAME])) + 1 < 400
    )
    assert log[METRIC_NAME] == alone.evals_result_["valid_0"][METRIC_NAME]


def test_xgboost_3_0_trains_classes_from_its_own_constant_and_refuses_further_metrics(
    monkeypatch: pytest.MonkeyPatch,
    refused: Refusals,
) -> None:
    """Run with 3.0.5 too, where the rest of this file passes but for these metrics."""
    monkeypatch.setattr(f"{FairXGBClassifier.__module__}._FROM_3_1", False)
    X, classes, a = (part[:1_000] for part in three_classes())
    fair = made(FairXGBClassifier, 30.0).fit(X, classes, sensitive_features=a).predict_proba(X)
    plain = made(FairXGBClassifier, 0.0).fit(X, classes).predict_proba(X)
    apart = [
        np.abs(found[a == "f"].mean(0) - found[a == "m"].mean(0)).max() for found in (fair, plain)
    ]
    assert apart[0] < apart[1] / 3
    sets = {"eval_set": [(X, classes)], "eval_sensitive_features": [a]}
    with refused(DataError):
        made(FairXGBClassifier, eval_metric="auc").fit(X, classes, sensitive_features=a, **sets)


@pytest.mark.parametrize("metrics", ["auc", ["logloss", "auc"]])
@pytest.mark.parametrize("by_callback", [False, True])
def test_further_metrics_are_logged_and_stop_nothing_in_xgboost(
    metrics: Any, by_callback: bool
) -> None:
    X, y, _, a = data()
    sets = {
        "eval_set": [(X[300:], y[300:])],
        "eval_sensitive_features": [a[300:]],
        "sensitive_features": a[:300],
    }

    def stopped(**extra: Any) -> Any:
        early = (
            {"callbacks": [xgboost.callback.EarlyStopping(rounds=5)]}
            if by_callback
            else {"early_stopping_rounds": 5}
        )
        model = made(FairXGBClassifier, **with_penalty(n_estimators=400, **early, **extra))
        return model.fit(X[:300], y[:300], verbose=False, **sets)

    alone, more = stopped(), stopped(eval_metric=metrics)
    log = more.evals_result()["validation_0"]
    assert set(log) == {METRIC_NAME, *([metrics] if isinstance(metrics, str) else metrics)}
    assert int(np.argmax(log["auc"])) + 5 < more.best_iteration
    assert more.best_iteration == alone.best_iteration == int(np.argmin(log[METRIC_NAME])) < 394


@every_kind
def test_several_eval_sets_are_judged_each_by_its_own_groups(kind: type) -> None:
    """The training set itself among them, which boosters evaluate out of turn where they
    recognize it.
    """
    X, _, _, a = data()
    t, swapped = target(kind), a.sample(frac=1.0, random_state=0).to_numpy()
    sets = [(X, t), (X[:200], t[:200]), (X, t)]
    groups = [swapped, a[:200], a]
    quiet = {} if hasattr(kind, "booster_") else {"verbose": False}
    quiet |= {"eval_metric": "auc"} if kind is FairLGBMClassifier else {}
    model = made(
        kind,
        n_estimators=10,
        **(with_penalty(**{"eval_metric": ["rmse"]} if kind is FairXGBRegressor else {})),
    )
    model.fit(X, t, sensitive_features=a, eval_set=sets, eval_sensitive_features=groups, **quiet)
    log = model.evals_result_
    last = [log[name][METRIC_NAME][-1] for name in log]
    alone = []
    for (Xi, yi), gi in zip(sets, groups, strict=True):
        single = made(kind, n_estimators=10)
        single.fit(
            X,
            t,
            sensitive_features=a,
            eval_set=[(Xi, yi)],
            eval_sensitive_features=[gi],
            **({} if hasattr(kind, "booster_") else {"verbose": False}),
        )
        alone.append(next(iter(single.evals_result_.values()))[METRIC_NAME][-1])
    assert last == pytest.approx(alone)
    assert len(set(np.round(last, 6))) == 3


@every_kind
def test_parameters_are_stored_cloned_and_reachable(kind: type) -> None:
    plain, _ = KINDS[kind]
    model = kind(2.0, criterion="risk_parity", metric="wasserstein", max_depth=3, gpu_use_dp=False)
    params = model.get_params()
    assert set(plain().get_params()) < set(params)
    assert (params["strength"], params["criterion"], params["max_depth"]) == (2.0, "risk_parity", 3)
    assert params["gpu_use_dp"] is False
    again = clone(model).get_params()
    assert {name: again[name] for name in again if name != "missing"} == {
        k: params[k] for k in params if k != "missing"
    }
    changed = clone(model).set_params(strength=0.5, max_depth=2, metric="energy")
    assert (changed.strength, changed.max_depth, changed.metric) == (0.5, 2, "energy")
    assert clone(changed).get_params()["metric"] == "energy"


@pytest.mark.extended
@every_kind
def test_other_metrics_train_too(kind: type) -> None:
    X, _, _, a = data()
    before = kolmogorov_distance(*(scores(fitted(kind, 0.0), X)[a == group] for group in "fm"))
    for metric, strength, left in (("wasserstein", 20.0, 0.5), ("mmd", 50.0, 0.7)):
        model = fitted(kind, strength, metric=metric)
        assert (
            kolmogorov_distance(*(scores(model, X)[a == group] for group in "fm")) < left * before
        )


@every_kind
def test_pickled_models_and_equal_fits_predict_the_same(kind: type) -> None:
    X, *_ = data()
    model = fitted(kind)
    for again in (
        pickle.loads(pickle.dumps(model)),
        fitted(kind),
        model.fit(X, target(kind), sensitive_features=data()[3]),
    ):
        assert np.array_equal(scores(again, X), scores(model, X))
    assert not [name for name in vars(model) if name in ("_plan", "_descent")]


@every_kind
def test_grid_search_and_pipelines_with_routed_groups(kind: type) -> None:
    X, _, _, a = data()
    with config_context(enable_metadata_routing=True):
        model = made(kind, n_estimators=8).set_fit_request(sensitive_features=True)
        pipeline = make_pipeline(FunctionTransformer(), model)
        name = f"{kind.__name__.lower()}__strength"
        search = GridSearchCV(pipeline, {name: [0.0, 2.0]}, cv=2).fit(
            X, target(kind), sensitive_features=a
        )
        assert set(search.cv_results_[f"param_{name}"]) == {0.0, 2.0}
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@every_kind
def test_frontier_in_processes(kind: type) -> None:
    X, _, _, a = data()
    front = frontier(
        made(kind, n_estimators=20),
        X,
        target(kind),
        sensitive_features=a,
        strengths=[0, 20],
        random_state=0,
        search=SearchOptions(n_jobs=2),
    )
    alone = frontier(
        made(kind, n_estimators=20),
        X,
        target(kind),
        sensitive_features=a,
        strengths=[0, 20],
        random_state=0,
    )
    assert [point.unfairness for point in front.points] == [
        point.unfairness for point in alone.points
    ]
    fresh, _, _, groups = data(2_000)  # rows that no tree has seen
    apart = [
        unfairness(None, scores(one, fresh), sensitive_features=groups, metric="energy")
        for one in front.models
    ]
    assert apart[1] < 0.3 * apart[0]


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no groups": ({}, {"sensitive_features": None}, "sensitive_features is missing"),
    "one group": ({}, {"sensitive_features": ["f"] * 500}, "needs at least two"),
    "too short": ({}, {"sensitive_features": ["f", "m"]}, "must have the same length"),
    "criterion": ({"criterion": "parity"}, {}, "criterion must be one of"),
    "metric": ({"metric": "energie"}, {}, "energy"),
    "strata": ({"criterion": "conditional_statistical_parity"}, {}, "needs control_features"),
    "objective": ({"objective": "quantile"}, {}, "objective must be"),
    "weights": ({}, {"sample_weight": -np.ones(500)}, "finite and not negative"),
    "no weight": ({}, {"sample_weight": np.zeros(500)}, "at least one|zero"),
    "eval groups": ({}, {"eval_set": [(0, 0)]}, "pass eval_sensitive_features"),
    "eval list": (
        {},
        {"eval_set": [(0, 0)], "eval_sensitive_features": []},
        "one entry for each of 1 eval sets, got 0",
    ),
    "penalize": ({"criterion": "risk_parity", "penalize": "output"}, {}, "leave penalize as it is"),
    "strength": ({"strength": np.inf}, {}, "strength must be"),
}


@every_kind
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused_by_name(kind: type, case: str) -> None:
    settings, arguments, message = REFUSED[case]
    X, _, _, a = data()
    with pytest.raises(ValueError, match=message):
        made(kind, **with_penalty(**{"strength": 1.0, **settings})).fit(
            X, target(kind), **{"sensitive_features": a, **arguments}
        )


@cache
def three_classes() -> tuple[pd.DataFrame, np.ndarray, pd.Series]:
    """Some rows to learn from, and many fresh ones behind them."""
    X, _, value, a = data(8_000)
    return X, np.digitize(value, [38, 45]), a


def of_three(kind: type, strength: float, **changes: Any) -> Any:
    X, y, a = three_classes()
    return made(kind, strength, n_estimators=40, **with_penalty(**changes)).fit(
        X[:1_000], y[:1_000], sensitive_features=a[:1_000]
    )


@pytest.mark.extended
@every_classifier
def test_several_classes_become_fair_on_fresh_rows(kind: type) -> None:
    """Of every class, at any strength without diverging: still better than the best constant."""
    X, y, a = (part[1_000:] for part in three_classes())
    gaps, right = [], []
    for strength in (0.0, 1.0, 10.0, 1_000.0):
        model = of_three(kind, strength)
        found = model.predict_proba(X)
        assert found.shape == (7_000, 3)
        np.testing.assert_allclose(found.sum(1), 1, atol=1e-5)
        gaps.append(
            max(
                unfairness(None, found[:, k], sensitive_features=a, metric="energy")
                for k in range(3)
            )
        )
        right.append(float((model.predict(X) == y).mean()))
    assert gaps[0] > 1.5 * gaps[1] > 4.5 * gaps[2]
    assert max(gaps[2:]) < 0.1 * gaps[0]
    assert right[0] > right[3] > np.bincount(y).max() / len(y) + 0.05


@every_classifier
def test_several_classes_with_next_to_no_penalty_are_the_plain_booster(kind: type) -> None:
    X, y, _ = three_classes()
    plain, settings = KINDS[kind]
    theirs = plain(**{**settings, "n_estimators": 40}).fit(X[:1_000], y[:1_000]).predict_proba(X)
    apart = np.abs(of_three(kind, 1e-9).predict_proba(X) - theirs).max(1)
    # where two splits are as good, rounding decides for some rows
    assert np.quantile(apart, 0.9) < 1e-4


@every_classifier
def test_several_classes_are_saved_judged_and_refitted(kind: type, tmp_path: Path) -> None:
    X, y, a = three_classes()
    names = np.array(["low", "mid", "top"])[y] if kind is FairLGBMClassifier else y
    late = slice(1_000, 2_000)
    model = made(kind, 3.0, n_estimators=12)
    for _ in range(2):
        model.fit(
            X[:1_000],
            names[:1_000],
            sensitive_features=a[:1_000],
            eval_set=[(X[late], names[late])],
            eval_sensitive_features=[a[late]],
            **({} if kind is FairLGBMClassifier else {"verbose": False}),
        )
    assert model.classes_.tolist() == np.unique(names).tolist()
    history = model.evals_result_ if kind is FairLGBMClassifier else model.evals_result()
    (judged,) = (one[METRIC_NAME] for one in history.values())
    assert judged[-1] < np.log(3)
    model.save(tmp_path / "fair.model")
    again = load(tmp_path / "fair.model")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(again.predict(X), model.predict(X))


def test_classes_that_xgboost_does_not_take_and_metrics_that_lightgbm_cannot_say_are_named(
    refused: Refusals,
) -> None:
    X, y, a = three_classes()
    with refused(DataError):
        made(FairXGBClassifier).fit(X, y + 1, sensitive_features=a)
    evaluated = {"eval_set": [(X, y)], "eval_sensitive_features": [a], "eval_metric": "auc_mu"}
    with refused(DataError):
        made(FairLGBMClassifier).fit(X, y, sensitive_features=a, **evaluated)
    with refused(DataError):
        made(FairLGBMClassifier).fit(X, y, sensitive_features=a, sample_weight=(y < 2) * 1.0)
    with refused(DataError):
        made(FairLGBMClassifier).fit(X, np.ones(len(X), dtype=int), sensitive_features=a)


@every_classifier
def test_a_positive_label_that_does_not_exist_is_refused(kind: type, refused: Refusals) -> None:
    with refused(DataError):
        fitted(kind, pos_label="yes")


@pytest.mark.parametrize("kind", [FairLGBMRegressor, FairXGBRegressor])
def test_regressors_have_no_positive_label(kind: type) -> None:
    with pytest.raises(DataError, match="pos_label is for classifiers"):
        fitted(kind, pos_label=1)


@every_kind
def test_an_eval_set_without_one_of_the_groups_is_named(kind: type) -> None:
    X, _, _, a = data()
    t = target(kind)
    with pytest.raises(TooFewSamples):
        made(kind, n_estimators=60).fit(
            X,
            t,
            sensitive_features=a,
            eval_set=[(X[a == "f"], t[a == "f"])],
            eval_sensitive_features=[a[a == "f"]],
            **({} if hasattr(kind, "booster_") else {"verbose": False}),
        )


@pytest.mark.parametrize("kind", [FairLGBMClassifier, FairLGBMRegressor])
def test_fewer_rows_than_lightgbm_needs_for_two_leaves_are_refused_in_our_words(
    kind: type, refused: Refusals
) -> None:
    X, _, _, a = data(30)
    with refused(DataError):
        made(kind, min_child_samples=40).fit(X[["skill"]], target(kind)[:30], sensitive_features=a)


def names_of(name: str) -> list[str]:
    return sorted(_ConfigAliases.get(name))


ODD = {"linear_tree": True, "is_unbalance": True, "scale_pos_weight": 3.0, "boosting": "dart"}
ODD_BY_ANY_NAME = [(alias, value) for name, value in ODD.items() for alias in names_of(name)]


@pytest.mark.parametrize(
    ("name", "value"), [*ODD_BY_ANY_NAME, ("boosting", "rf"), ("metrics", "auc")]
)
def test_lightgbm_parameters_that_do_not_fit_are_refused_by_any_name(name: str, value: Any) -> None:
    with pytest.raises(DataError, match=f"{name}={value!r} cannot be used"):
        fitted(FairLGBMClassifier, **{name: value})


@pytest.mark.filterwarnings("ignore:Found '")
@pytest.mark.parametrize("name", names_of("objective"))
def test_the_objective_of_lightgbm_is_checked_by_any_name(name: str) -> None:
    with pytest.raises(DataError, match=f"{name} must be one of None, 'binary'"):
        fitted(FairLGBMClassifier, **{name: "cross_entropy"})
    X, *_ = data()
    usual = fitted(FairLGBMClassifier, **{name: "binary"})
    assert np.array_equal(usual.predict_proba(X), fitted(FairLGBMClassifier).predict_proba(X))


@pytest.mark.filterwarnings("ignore:Found ")
@pytest.mark.parametrize("name", names_of("num_iterations"))
def test_the_rounds_of_lightgbm_pace_the_strength_by_any_name(name: str) -> None:
    """They win over n_estimators, as in LightGBM; so does the strength have risen halfway."""
    X, *_ = data()
    renamed, usual = (
        fitted(FairLGBMClassifier, 100.0, **{"n_estimators": 100, **rounds})
        for rounds in ({name: 20}, {"n_estimators": 20})
    )
    assert renamed.booster_.num_trees() == 20
    assert np.array_equal(renamed.predict_proba(X), usual.predict_proba(X))


RATES: dict[type, tuple[tuple[dict[str, float], float], ...]] = {
    FairLGBMClassifier: (  # LightGBM's class has a default, which is the name it prefers
        *(
            ({name: 0.02}, 0.02 if name == "learning_rate" else 0.1)
            for name in names_of("learning_rate")
        ),
        ({"learning_rate": 0.3, "eta": 0.02}, 0.3),
    ),
    FairXGBClassifier: (
        ({}, 0.3),
        ({"learning_rate": 0.02}, 0.02),
        ({"eta": 0.02}, 0.02),
        ({"learning_rate": 0.3, "eta": 0.02}, 0.3),
    ),
}


@every_classifier
def test_the_learning_rate_is_the_one_the_booster_uses(kind: type) -> None:
    X, y, *_ = data()
    plain, settings = KINDS[kind]
    settings = {name: value for name, value in settings.items() if name != "learning_rate"}
    for given, expected in RATES[kind]:
        assert kind(**with_penalty(**settings, **given))._pace() == (30, expected)
        named, usual = (
            plain(**settings, **rate).fit(X, y) for rate in (given, {"learning_rate": expected})
        )
        assert np.array_equal(named.predict_proba(X), usual.predict_proba(X))


def test_a_metric_of_lightgbm_that_needs_probabilities_is_refused(refused: Refusals) -> None:
    X, y, _, a = data()
    with refused(DataError):
        made(FairLGBMClassifier).fit(
            X,
            y,
            sensitive_features=a,
            eval_set=[(X, y)],
            eval_sensitive_features=[a],
            eval_metric="logloss",
        )


def test_xgboost_takes_no_other_function_as_metric() -> None:
    X, y, _, a = data()
    model = made(FairXGBClassifier, eval_metric=lambda y, p: 0.0)
    with pytest.raises(DataError, match="eval_metric must be names"):
        model.fit(
            X,
            y,
            sensitive_features=a,
            eval_set=[(X, y)],
            eval_sensitive_features=[a],
            verbose=False,
        )


def test_a_failed_fit_leaves_the_parameters_as_they_were() -> None:
    X, y, _, a = data()
    model = made(FairXGBClassifier, criterion=Criterion("odd", score=lambda p, y: p * float("nan")))
    before = {name: value for name, value in model.get_params().items() if name != "missing"}
    with pytest.raises(Diverged, match="boosting diverged in round 0"):
        model.fit(X, y, sensitive_features=a)
    assert {
        name: value for name, value in model.get_params().items() if name != "missing"
    } == before


@pytest.mark.extended
@pytest.mark.parametrize(("own", "other"), [("lgbm", "xgboost"), ("xgb", "lightgbm")])
def test_each_booster_works_where_the_other_is_absent(own: str, other: str) -> None:
    name = {"lgbm": "FairLGBMRegressor", "xgb": "FairXGBRegressor"}[own]
    code = f"""
import sys
sys.modules[{other!r}] = None
import numpy as np, tempfile, metrifair
model = metrifair.{name}(1.0, n_estimators=2, n_jobs=1).fit(
    np.arange(60.0)[:, None], np.arange(60.0), sensitive_features=np.arange(60) % 2)
with tempfile.TemporaryDirectory() as folder:
    model.save(folder + "/m")
    assert (metrifair.load(folder + "/m").predict([[3.0]]) == model.predict([[3.0]])).all()
try:
    metrifair.{"FairXGBRegressor" if own == "lgbm" else "FairLGBMRegressor"}
except metrifair.errors.MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f'needs {other}: pip install "metrifair[boosting]"' in done.stdout


def test_nobody_is_warned_of_what_nobody_can_avoid() -> None:
    """LightGBM calls eval_set deprecated; the suite turns warnings into errors."""
    a, X, y = (
        np.arange(200) % 2,
        np.random.default_rng(0).normal(size=(200, 2)),
        np.arange(200) // 2 % 2,
    )
    sets = {"eval_set": [(X, y)], "eval_sensitive_features": [a], "sensitive_features": a}
    for strength in (0.0, 1.0):
        model = FairLGBMClassifier(strength, n_estimators=2, n_jobs=1, verbose=-1).fit(X, y, **sets)
        assert model.evals_result_
