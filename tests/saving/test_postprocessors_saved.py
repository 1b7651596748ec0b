"""Post-processors in files: the same predictions to the last bit, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from metrifair import (
    BarycenterPostprocessor,
    FairClassifier,
    FairRegressor,
    ThresholdPostprocessor,
    load,
)
from metrifair.errors import DataError, ModelFileError
from tests.expected_errors import Refusals
from tests.seams.saving import Content, from_bytes, make_content, read_model, to_bytes

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

RNG = np.random.default_rng(0)
A = RNG.integers(0, 2, 300)
X = RNG.normal(size=(300, 2)) + A[:, None]
Y = np.where(X.sum(1) + RNG.normal(size=300) > 1, "yes", "no")
GROUPS = {"sex": np.array(["f", "m"])[A], "old": RNG.integers(0, 2, 300)}
BASE = FairClassifier(0.0, model="linear")
MODELS: dict[str, Any] = {
    "scores": BarycenterPostprocessor(BASE, folds=1, tolerance=0.25),
    "scores without groups": BarycenterPostprocessor(BASE, folds=1, needs_group=False),
    "scores drawn": BarycenterPostprocessor(BASE, folds=1, randomized=True, random_state=3),
    "numbers": BarycenterPostprocessor(FairRegressor(0.0, model="linear"), folds=1),
    "decisions": ThresholdPostprocessor(
        BASE, folds=1, tolerance=0.1, pos_label="no", utility=[[0, 1], [2, 0]]
    ),
    "decisions drawn": ThresholdPostprocessor(
        BASE, folds=1, randomized=True, random_state=3, criterion="equalized_odds"
    ),
    "decisions without groups": ThresholdPostprocessor(
        BASE, folds=1, needs_group=False, criterion="equal_opportunity", group_model=BASE
    ),
}


def fitted(name: str) -> Any:
    return MODELS[name].fit(X, X.sum(1) if name == "numbers" else Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_one_predicts_the_same(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.groups_ == model.groups_
    kept = {
        key: value
        for key, value in model.get_params(deep=False).items()
        if key not in ("estimator", "group_model")
    }
    assert kept.items() <= again.get_params(deep=False).items()
    assert repr(again) == repr(model)
    asked = {} if "without" in name else {"sensitive_features": GROUPS}
    np.testing.assert_array_equal(again.predict(X, **asked), model.predict(X, **asked))
    again.fit(X, X.sum(1) if name == "numbers" else Y, sensitive_features=GROUPS)


@pytest.mark.parametrize(
    ("criterion", "without"),
    [("predictive_equality", ("m", "yes")), ("equal_opportunity", ("f", "no"))],
)
def test_a_guess_of_groups_that_lack_a_label_is_read_again(
    criterion: str, without: tuple[str, str], tmp_path: Path
) -> None:
    """The criterion does not look at the label that the last or the first group lacks."""
    sex, label = without
    y = np.where(GROUPS["sex"] == sex, {"yes": "no", "no": "yes"}[label], Y)
    model = ThresholdPostprocessor(BASE, needs_group=False, criterion=criterion, folds=1)
    model.fit(X, y, sensitive_features=GROUPS["sex"]).save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.rates_, model.rates_)


def test_costs_may_be_an_array(tmp_path: Path) -> None:
    model = ThresholdPostprocessor(BASE, folds=1, utility=np.array([[0, 1], [2, 0]]))
    model.fit(X, Y, sensitive_features=A).save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.utility == [[0, 1], [2, 0]]
    np.testing.assert_array_equal(*(one.predict(X, sensitive_features=A) for one in (again, model)))


def test_another_librarys_model_cannot_be_kept(tmp_path: Path, refused: Refusals) -> None:
    model = BarycenterPostprocessor(LogisticRegression(), folds=1).fit(X, Y, sensitive_features=A)
    with refused(DataError):
        model.save(tmp_path / "model")
    blind = BarycenterPostprocessor(
        BASE, needs_group=False, group_model=LogisticRegression(), folds=1
    )
    with pytest.raises(DataError, match="wraps a LogisticRegression"):
        blind.fit(X, Y, sensitive_features=A).save(tmp_path / "model")


def changed(array: str, change: Callable[[Any], Any]) -> Callable[[Any, Any], None]:
    def spoil(_: Any, arrays: Any) -> None:
        arrays[array] = change(arrays[array])

    return spoil


def said(change: Callable[[Any], object]) -> Callable[[Any, Any], None]:
    return lambda meta, _: change(meta)


LIES: dict[str, tuple[str, Callable[[Any, Any], None]]] = {
    "scores that fall": ("scores", changed("state/values0", lambda values: values[::-1].copy())),
    "weights that fall": ("scores", changed("state/upto1", lambda upto: -upto)),
    "scores beyond probabilities": (
        "scores",
        changed("state/values0", lambda values: values * 1e260),
    ),
    "scores below probabilities": ("scores", changed("state/values0", lambda values: values - 1)),
    "shares of more than all": ("scores", changed("state/shares", lambda shares: shares * 1e300)),
    "shares below 0": ("scores", changed("state/shares", lambda shares: shares - 0.5)),
    "a regression said to classify": ("numbers", said(lambda meta: meta["wraps"].clear())),
    "a group twice": (
        "scores",
        changed("state/seen", lambda seen: seen[[0, 0, *range(2, len(seen))]]),
    ),
    "another group": ("scores", changed("state/seen", lambda seen: seen + 7)),
    "no scores": ("scores", changed("state/values0", lambda values: values[:0])),
    "numbers without end": ("scores", changed("state/shares", lambda shares: shares * np.inf)),
    "an array too many": ("scores", lambda _, arrays: arrays.update({"other/x": np.zeros(1)})),
    "a state too many": ("scores", lambda _, arrays: arrays.update({"state/x": np.zeros(1)})),
    "a state too few": ("decisions", lambda _, arrays: arrays.pop("state/rates")),
    "chances that are none": (
        "decisions drawn",
        changed("state/probability0", lambda chance: chance + 1),
    ),
    "a threshold that is none": (
        "decisions",
        changed("state/threshold0", lambda cut: cut * np.nan),
    ),
    "a width of 0": ("scores without groups", changed("state/width", lambda width: 0 * width)),
    "a step of width below 0": (
        "decisions without groups",
        changed("state/width", lambda width: width - 1),
    ),
    "a step that is none": (
        "decisions without groups",
        changed("state/least", lambda least: least * np.nan),
    ),
    "too few cells": ("decisions without groups", changed("state/bias", lambda bias: bias[1:])),
    "a tolerance above 1": ("scores", said(lambda meta: meta["parameters"].update(tolerance=2))),
    "an unknown parameter": ("scores", said(lambda meta: meta["parameters"].update(estimator=1))),
    "no base": ("scores", said(lambda meta: meta["inner"].pop("base"))),
    "a guess that is missing": (
        "scores",
        said(lambda meta: meta["parameters"].update(needs_group=False)),
    ),
    "other classes": ("scores", said(lambda meta: meta["classes"].update(values=["a", "yes"]))),
    "other features": ("scores", said(lambda meta: meta["features"].update(count=3))),
    "itself within": (
        "scores",
        said(lambda meta: meta["inner"]["base"]["meta"].update(kind="BarycenterPostprocessor")),
    ),
    "an odd seed": ("scores", said(lambda meta: meta["parameters"].update(random_state="x"))),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_does_not_fit_is_refused(lie: str) -> None:
    name, spoil = LIES[lie]
    kind, meta, arrays = from_bytes(to_bytes(make_content(fitted(name))))
    read_model(Content(kind, meta, dict(arrays)))  # the truth is taken
    arrays = dict(arrays)
    spoil(meta, arrays)
    with pytest.raises(ModelFileError):
        read_model(Content(kind, meta, arrays))
