"""What a newcomer gets wrong first: each error names the argument and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from metrifair import (
    AuditOptions,
    BarycenterPostprocessor,
    FairClassifier,
    FairLGBMClassifier,
    FairRegressor,
    FairXGBClassifier,
    FairXGBRegressor,
    TableEncoder,
    audit,
    frontier,
    load,
)
from metrifair.baselines import ZafarClassifier
from metrifair.errors import DataError, MetrifairWarning
from tests.flat_options import flat, flat_audit
from tests.seams.auditing import Note
from tests.seams.wording import note_topic
from tests.surfaces.errors import CASES

_X = np.random.default_rng(0).normal(size=(40, 2))
_Y = np.arange(40) % 2
_A = np.where(np.arange(40) % 4 < 2, "a", "b")
_RAW = pd.DataFrame({"town": ["south", "north"] * 20, "age": [np.nan, *range(39)], "pay": _X[:, 0]})


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_of_newcomers_is_an_error_of_ours(case: str) -> None:
    """Its message is in tests/approved/errors.txt."""
    with pytest.raises((DataError, NotFittedError)):
        CASES[case]()


def test_text_in_the_X_of_a_booster_names_the_column_and_a_pipeline() -> None:
    """With what XGBoost says of it."""
    with pytest.raises(DataError, match=r"make_pipeline\(.*FairXGBClassifier.*town"):
        FairXGBClassifier(n_jobs=1).fit(_RAW, _Y, sensitive_features=_A)


def test_a_model_file_that_is_not_there_is_a_file_not_found() -> None:
    with pytest.raises(FileNotFoundError):
        load("nope.metrifair")


def test_the_pipeline_that_the_error_names_works() -> None:
    model = make_pipeline(TableEncoder(), FairClassifier(epochs=1, random_state=0, model="mlp"))
    assert model.fit(_RAW, _Y, fairclassifier__sensitive_features=_A).predict(_RAW).shape == (40,)


def _labels(**given: Any) -> list[Note]:
    found = flat_audit(
        given.pop("score", _Y / 2), sensitive_features=_A, resamples=0, permutations=0, **given
    )
    return [note for note in found.notes if note_topic(note) == "labels"]


def test_the_positive_label_is_told_unless_it_is_plain_or_given() -> None:
    words = np.where(_Y == 1, "denied", "approved")
    (note,) = _labels(y_true=words)
    assert (note.kind, note.facts["positive"]) == ("positive_label", "denied")
    assert _labels(y_true=words, pos_label="denied") == []
    for plain in (_Y, _Y == 1, 2 * _Y - 1, None):
        assert _labels(y_true=plain) == []
    (note,) = _labels(y_true=_Y + 1)
    assert (note.kind, note.facts["positive"]) == ("positive_label", 2)


def test_scores_that_rank_worse_than_chance_are_told() -> None:
    (note,) = _labels(y_true=1 - _Y)
    assert (note.kind, note.facts["auc"]) == ("reversed_score", 0.0)
    assert _labels(y_true=_Y, score=np.full(40, 0.5)) == []
    noise = np.random.default_rng(2).random(40)
    assert _labels(y_true=_Y, score=noise) == []


def test_an_unfairness_in_percent_is_refused() -> None:
    front = frontier(
        FairClassifier(model="linear"),
        _X,
        _Y,
        sensitive_features=_A,
        strengths=[0.0],
        random_state=0,
    )
    with pytest.raises(DataError) as refused:
        front.select(max_unfairness=20)
    assert (refused.value.argument, refused.value.received) == ("max_unfairness", 20)


def test_groups_that_are_the_label_are_told() -> None:
    given = {"resamples": 0, "permutations": 0, "random_state": 0}
    renamed = np.where(_Y == 1, "good", "bad")
    for groups, said in ((_Y, True), (renamed, True), (_A, False), (np.arange(40) % 4, False)):
        found = audit(_Y, _X[:, 0], sensitive_features=groups, **flat(**given))
        assert ("groups_are_labels" in _kinds(found)) is said
    few = audit(
        [0, 1, 0, 1], [0.1, 0.9, 0.2, 0.8], sensitive_features=list("abab"), **flat(**given)
    )
    assert "groups_are_labels" not in _kinds(few)


def _kinds(found: Any) -> list[str]:
    return [note.kind for note in found.notes]


_ROWS = (
    np.repeat(_X, 3, 0),
    np.repeat(_Y, 3),
    np.repeat(np.where(_Y == 1, "good", "bad"), 3),
    np.repeat(_A, 3),
)


@pytest.mark.parametrize(
    "model",
    [
        FairClassifier(0.1, model="linear"),
        FairRegressor(0.1, model="linear"),
        FairLGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1),
        FairXGBClassifier(n_estimators=2, n_jobs=1),
        FairXGBRegressor(n_estimators=2, n_jobs=1),
        BarycenterPostprocessor(LogisticRegression()),
        ZafarClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_fit_tells_of_groups_that_are_the_label(model: Any) -> None:
    X, y, renamed, others = _ROWS
    with pytest.warns(
        MetrifairWarning,
        match="copy the label: correct scores are then unfair",
    ):
        model.fit(X, y, sensitive_features=renamed)
    model.fit(X, y, sensitive_features=others)  # warnings are errors


def test_a_frontier_tells_of_groups_that_are_the_label() -> None:
    X, y, renamed, _ = _ROWS
    front = frontier(
        [LogisticRegression().fit(X, y)], X, y, sensitive_features=renamed, random_state=0
    )
    assert [note.kind for note in front.record.notes].count("label_groups") == 1


def test_a_threshold_that_nearly_everyone_passes_is_told() -> None:
    rng = np.random.default_rng(0)
    score, group = np.r_[0.2, rng.uniform(1, 100, 399)], np.arange(400) % 2
    found = audit(
        None,
        score,
        sensitive_features=group,
        threshold=0.5,
        random_state=0,
        options=AuditOptions(resamples=0, permutations=0),
    )
    (note,) = [note for note in found.notes if note.kind == "nearly_all_selected"]
    assert (note.facts["threshold"], note.facts["low"]) == (0.5, 0.2)
    assert note.facts["share"] == pytest.approx(0.99, abs=0.006)
    found = audit(
        None,
        score,
        sensitive_features=group,
        threshold=0.1,
        random_state=0,
        options=AuditOptions(resamples=0, permutations=0),
    )
    assert "same_decision" in _kinds(found)
    # a ratio of 1, which says nothing
    assert "four fifths" not in found.summary
    assert "0.80" not in found.summary
    found = audit(
        None,
        score,
        sensitive_features=group,
        threshold=50,
        random_state=0,
        options=AuditOptions(resamples=0, permutations=0),
    )
    assert "nearly_all_selected" not in _kinds(found)
    assert "may be above or below 0.80" in found.summary
