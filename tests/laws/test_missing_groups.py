"""`fit`, `partial_fit` and `predict` warn once of rows without a group, in the words of a
frontier's note, and name a positive label that no word shows.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from metrifair import (
    BarycenterPostprocessor,
    FairClassifier,
    FairLGBMClassifier,
    ThresholdPostprocessor,
    frontier,
    unfairness,
)
from metrifair.errors import MetrifairWarning
from metrifair.stacking import FairStackingClassifier

N = 200
MISSING = 20
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
LABEL = (X.sum(1) + RNG.normal(size=N) > 0).astype(int)
SEX = RNG.choice(["f", "m"], N).astype(object)
SEX[:MISSING] = None
KNOWN = np.where(np.arange(N) % 2, "f", "m")
TEXT = (
    f"sex is missing in {MISSING} of {N} rows. They are used for training, and comparisons of sex "
    "exclude them"
)
LINEAR = FairClassifier(model="linear", random_state=0)
MODELS = {
    "FairClassifier": LINEAR,
    "FairLGBMClassifier": FairLGBMClassifier(n_estimators=3),
    "FairStackingClassifier": FairStackingClassifier(1.0, random_state=0),
    "BarycenterPostprocessor": BarycenterPostprocessor(LogisticRegression()),
    "of a fair model": BarycenterPostprocessor(LINEAR),
}


def warned(model: Any, sex: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, LABEL, sensitive_features={"sex": sex})
    return [str(warning.message) for warning in caught if "missing" in str(warning.message)]


@pytest.mark.parametrize("name", MODELS)
def test_fit_warns_once(name: str) -> None:
    assert warned(MODELS[name], SEX) == [TEXT]
    assert warned(MODELS[name], np.where(np.arange(N) % 2, "f", "m")) == []


GROUP_AWARE = {
    "BarycenterPostprocessor": BarycenterPostprocessor(LogisticRegression()),
    "ThresholdPostprocessor": ThresholdPostprocessor(LogisticRegression()),
}


@pytest.mark.parametrize("name", GROUP_AWARE)
def test_prediction_by_group_warns_too_and_a_frontier_does_not(name: str) -> None:
    """Rows without a group are predicted by the rule for all groups together, and count."""
    groups = {"sensitive_features": {"sex": KNOWN}}
    model = clone(GROUP_AWARE[name]).fit(X, LABEL, **groups)

    def texts(sex: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.predict(X, sensitive_features={"sex": sex})
        return [str(warning.message) for warning in caught]

    with_nan = KNOWN.astype(object)
    with_nan[:MISSING] = np.nan
    expected = (
        f"sex is missing in {MISSING} of {N} rows. They are predicted by the rule for all groups "
        "together"
    )
    assert texts(SEX) == texts(with_nan) == [expected]
    assert texts(KNOWN) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frontier([model], X, LABEL, sensitive_features={"sex": SEX}, random_state=0)


def test_a_frontier_notes_it_and_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        front = frontier(
            LINEAR, X, LABEL, sensitive_features={"sex": SEX}, strengths=[0, 1], random_state=0
        )
    assert f"{TEXT}." in front.summary


def test_partial_fit_warns_once_of_a_stream() -> None:
    """Of the first chunk in which groups are missing, and not of every later one."""
    model = FairClassifier(random_state=0)
    texts: list[str] = []
    for rows in (slice(100, 200), slice(0, 50), slice(0, 100)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.partial_fit(X[rows], LABEL[rows], sensitive_features={"sex": SEX[rows]})
        texts += [str(warning.message) for warning in caught]
    assert texts == [TEXT.replace("200 rows", "50 rows")]


DENIED = np.where(LABEL == 1, "denied", "approved")
SAID = "'denied' counts as positive (alphabetical default); pass pos_label=... to change it"
BY_LABEL: dict[str, Any] = {
    "FairClassifier": FairClassifier(criterion="equal_opportunity", random_state=0),
    "FairLGBMClassifier": FairLGBMClassifier(criterion="predictive_equality", n_estimators=3),
    "ThresholdPostprocessor": ThresholdPostprocessor(
        LogisticRegression(), criterion="equal_opportunity"
    ),
}


@pytest.mark.parametrize("name", BY_LABEL)
def test_fit_says_which_label_is_positive_if_it_matters_and_no_word_shows_it(name: str) -> None:
    def texts(model: Any, labels: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clone(model).fit(X, labels, sensitive_features=KNOWN)
        return [str(warned.message) for warned in caught if "positive" in str(warned.message)]

    model = BY_LABEL[name]
    assert texts(model, DENIED) == [SAID]
    assert texts(clone(model).set_params(pos_label="denied"), DENIED) == []
    assert texts(model, np.where(LABEL == 1, "yes", "no")) == []
    if name == "FairClassifier":
        assert texts(clone(model).set_params(criterion="equalized_odds"), DENIED) == []


def test_streams_and_unfairness_say_it_too_and_a_frontier_notes_it() -> None:
    groups: dict[str, Any] = {"sensitive_features": KNOWN}
    with pytest.warns(MetrifairWarning, match=re.escape(SAID)):
        FairClassifier(criterion="equal_opportunity").partial_fit(X, DENIED, **groups)
    with pytest.warns(MetrifairWarning, match=re.escape(SAID)):
        unfairness(DENIED, X[:, 0], criterion="equal_opportunity", **groups)
    model = FairClassifier(criterion="equal_opportunity", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        front = frontier(model, X, DENIED, **groups, strengths=[0, 1], random_state=0)
        front.select(max_unfairness=1)
    assert "'denied' counts as positive (alphabetical default)" in front.summary
