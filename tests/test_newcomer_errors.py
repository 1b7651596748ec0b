"""What a newcomer gets wrong first: each error names the argument and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
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
    monitor,
)
from metrifair.baselines import ZafarClassifier
from metrifair.errors import DataError, MetrifairWarning, ModelFileError, TooFewSamples
from tests.flat_options import flat, flat_audit
from tests.seams.estimators import TableModel
from tests.seams.wording import note_text, note_topic

_X = np.random.default_rng(0).normal(size=(40, 2))
_Y = np.arange(40) % 2
_A = np.where(np.arange(40) % 4 < 2, "a", "b")
_LONELY = ["a"] * 39 + ["b"]
_RAW = pd.DataFrame({"town": ["south", "north"] * 20, "age": [np.nan, *range(39)], "pay": _X[:, 0]})

CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "text in X": (
        lambda: FairClassifier(model="mlp").fit(_RAW, _Y, sensitive_features=_A),
        DataError,
        (
            r"'south' in 'town', missing values \(NaN\) in 'age'; encode it first with "
            r"make_pipeline\(TableEncoder\(\), FairClassifier\(\)\), fitted with "
            r"fairclassifier__sensitive_features"
        ),
    ),
    "decisions as words": (
        lambda: audit(None, np.where(_Y == 1, "yes", "no"), sensitive_features=_A),
        DataError,
        "y_pred must contain numbers; its values are 'no' .*; write the favorable decision as 1",
    ),
    "the name of a column in an audit": (
        lambda: audit(_Y, _X[:, 0], sensitive_features="region"),
        DataError,
        (
            r"sensitive_features must contain the values of each row, not the name of a column, "
            r"got "
            r"'region'; pass the col"
        ),
    ),
    "the name of a column in a fit": (
        lambda: FairClassifier(model="mlp").fit(_X, _Y, sensitive_features="region"),
        DataError,
        r"sensitive_features must contain .*; pass the column, such as table\['region'\]",
    ),
    "the name of a column in a frontier": (
        lambda: frontier(FairClassifier(model="mlp"), _X, _Y, sensitive_features="region"),
        DataError,
        r"sensitive_features must contain .*; pass the column, such as table\['region'\]",
    ),
    "text in the X of a booster": (
        lambda: FairXGBClassifier(n_jobs=1).fit(_RAW, _Y, sensitive_features=_A),
        DataError,
        (
            r"convert text with astype\('category'\), or encode it first with "
            r".*FairXGBClassifier.*town"
        ),
    ),
    "missing values in an array": (
        lambda: FairClassifier(model="mlp").fit(
            np.where(_X > 1, np.nan, _X), _Y, sensitive_features=_A
        ),
        DataError,
        (
            r"X contains missing values \(NaN\); encode it first with "
            r"make_pipeline\(TableEncoder\(\), "
            r"FairClassifier\("
        ),
    ),
    "text labels of plain XGBoost": (
        lambda: FairXGBClassifier(0, n_jobs=1).fit(_X, np.where(_Y == 1, "yes", "no")),
        DataError,
        (
            r"y must contain the labels 0 and 1, .*got 'no' and 'yes'; pass .*, or use "
            r"FairLGBMClassifier, which takes any"
        ),
    ),
    "a table model with its parts exchanged": (
        lambda: TableModel(FairClassifier(), TableEncoder()),  # type: ignore[arg-type]
        DataError,
        r"the encoder must be a TableEncoder, and comes first, got FairClassifier\(\)",
    ),
    "no groups where the model asks for them": (
        lambda: (
            BarycenterPostprocessor(FairClassifier(0, model="linear"))
            .fit(_X, _Y, sensitive_features=_A)
            .predict(_X)
        ),
        DataError,
        "predict needs sensitive_features: this post-processor uses the group; pass one value per row",
    ),
    "a label that is missing": (
        lambda: FairClassifier(model="mlp").fit(_X, [None, *_A[1:]], sensitive_features=_A),
        DataError,
        "y contains missing values; leave these rows out",
    ),
    "an audit of no column": (
        lambda: audit(None, {}, sensitive_features=_A),
        DataError,
        "y_pred is a dict, which contains the",
    ),
    "a monitor of nothing": (lambda: monitor(None), DataError, "states must be a sequence or dict"),  # type: ignore[arg-type]
    "text in the X of a frontier": (
        lambda: frontier(
            FairRegressor(model="mlp"), _RAW, _X[:, 1], sensitive_features=_A, random_state=0
        ),
        DataError,
        "'(north|south)' in 'town'.*fairregressor__sensitive_features",
    ),
    "text in y": (
        lambda: FairRegressor(model="mlp").fit(_X, _A, sensitive_features=_A),
        DataError,
        "y must contain numbers, got text such as 'a'",
    ),
    "a stream of one class": (
        lambda: FairClassifier(model="mlp").partial_fit(_X, _Y * 0, sensitive_features=_A),
        DataError,
        r"begins with the class \[0\] only; pass classes=",
    ),
    "a stream of one group": (
        lambda: FairClassifier(model="mlp").partial_fit(_X, _Y, sensitive_features=["a"] * 40),
        DataError,
        r"begins with the group \['a'\] of sensitive_features only; pass groups=",
    ),
    "a group of one": (
        lambda: FairClassifier(model="mlp").fit(_X, _Y, sensitive_features=_LONELY),
        TooFewSamples,
        r"too small to train on: sensitive_features 'b' \(1 row\); merge small groups",
    ),
    "a group of one, boosted": (
        lambda: FairXGBClassifier(n_estimators=1).fit(_X, _Y, sensitive_features=_LONELY),
        TooFewSamples,
        r"too small to train on: sensitive_features 'b' \(1 row\); merge small groups",
    ),
    "a file to audit": (
        lambda: audit(None, "scores.csv", sensitive_features=_A),
        DataError,
        r"for the file 'scores.csv' use audit_file\(",
    ),
    "a lazy table": (
        lambda: audit(None, pl.LazyFrame({"p": _X[:, 0]}), sensitive_features=_A),
        DataError,
        r"y_pred is a lazy table; pass y_pred.collect\(\)",
    ),
    "no model file": (
        lambda: load("nope.metrifair"),
        ModelFileError,
        "cannot read 'nope.metrifair'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_error_says_what_to_do(case: str) -> None:
    act, kind, message = CASES[case]
    with pytest.raises(kind, match=message):
        act()


def test_a_model_file_that_is_not_there_is_a_file_not_found() -> None:
    with pytest.raises(FileNotFoundError):
        load("nope.metrifair")


def test_the_pipeline_that_the_error_names_works() -> None:
    model = make_pipeline(TableEncoder(), FairClassifier(epochs=1, random_state=0, model="mlp"))
    assert model.fit(_RAW, _Y, fairclassifier__sensitive_features=_A).predict(_RAW).shape == (40,)


def _labels(**given: Any) -> list[str]:
    found = flat_audit(
        given.pop("score", _Y / 2), sensitive_features=_A, resamples=0, permutations=0, **given
    )
    return [note_text(note) for note in found.notes if note_topic(note) == "labels"]


def test_the_positive_label_is_told_unless_it_is_plain_or_given() -> None:
    words = np.where(_Y == 1, "denied", "approved")
    told = "'denied' counts as positive (alphabetical default). Pass pos_label=... to change it."
    assert _labels(y_true=words) == [told]
    assert _labels(y_true=words, pos_label="denied") == []
    for plain in (_Y, _Y == 1, 2 * _Y - 1, None):
        assert _labels(y_true=plain) == []
    assert _labels(y_true=_Y + 1) == [
        "2 counts as positive (by default the last of 1, 2). Pass pos_label=... to change it."
    ]


def test_scores_that_rank_worse_than_chance_are_told() -> None:
    (note,) = _labels(y_true=1 - _Y)
    assert "(AUC 0.00)" in note
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
    with pytest.raises(
        DataError,
        match=r"max_unfairness must be a finite number, .*at most 1, got 20; 20 percent is 0\.2$",
    ):
        front.select(max_unfairness=20)


def test_groups_that_are_the_label_are_told() -> None:
    told = "The groups of sensitive_features are a one-to-one encoding of the label. Accurate scores are then unfair by "  # noqa: E501
    told += "construction."
    given = {"resamples": 0, "permutations": 0, "random_state": 0}
    renamed = np.where(_Y == 1, "good", "bad")
    for groups, said in ((_Y, True), (renamed, True), (_A, False), (np.arange(40) % 4, False)):
        found = audit(_Y, _X[:, 0], sensitive_features=groups, **flat(**given))
        assert (told in found.note_texts()) is said
    few = audit(
        [0, 1, 0, 1], [0.1, 0.9, 0.2, 0.8], sensitive_features=list("abab"), **flat(**given)
    )
    assert told not in few.note_texts()


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
    first = found.summary.splitlines()[0]
    said = "At threshold 0.5, at least 99.0% of every group are selected"
    assert first == f"{said}: the results are nearly the same for everyone."
    assert any("the scores range from 0.2" in text for text in found.note_texts())
    found = audit(
        None,
        score,
        sensitive_features=group,
        threshold=0.1,
        random_state=0,
        options=AuditOptions(resamples=0, permutations=0),
    )
    assert found.summary.splitlines()[0].startswith("At threshold 0.1, everyone is selected: ")
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
    assert "the true ratio may be above or below 0.80" in found.summary
