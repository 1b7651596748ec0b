"""The messages of what newcomers get wrong first, at the main entry points.

Each line has the type of the error, its argument, and the message as Python and as commands say it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

from metrifair import (
    AuditOptions,
    BarycenterPostprocessor,
    FairClassifier,
    FairRegressor,
    FairXGBClassifier,
    GroupProbabilities,
    SearchOptions,
    TableEncoder,
    audit,
    audit_file,
    compare,
    find_groups,
    frontier,
    load,
    monitor,
)
from metrifair.errors import DataError, MetrifairWarning
from tests.seams.cli import OPTION_NAMES
from tests.seams.estimators import TableModel

X = np.random.default_rng(0).normal(size=(40, 2))
Y = np.arange(40) % 2
GROUPS = np.where(np.arange(40) % 4 < 2, "a", "b")
LONELY = ["a"] * 39 + ["b"]
RAW = pd.DataFrame({"town": ["south", "north"] * 20, "age": [np.nan, *range(39)], "pay": X[:, 0]})
SEX = {"sensitive_features": GROUPS}
MODEL = FairClassifier(model="linear", random_state=0)


def chosen(**limits: Any) -> Any:
    """A choice of a model that predicts the same for everyone."""
    models = [DummyClassifier().fit(X, Y)]
    return frontier(models, X, Y, **SEX, random_state=0).select(**limits)


def chosen_by_neighbors(**limits: Any) -> Any:
    """A choice of a model that predicts the label of each row."""
    models = [KNeighborsClassifier(1).fit(X, Y)]
    return frontier(models, X, Y, **SEX, random_state=0).select(**limits)


CASES: dict[str, Callable[[], Any]] = {
    # --- training
    "text in X": lambda: FairClassifier(model="mlp").fit(RAW, Y, sensitive_features=GROUPS),
    "decisions as words": lambda: audit(
        None, np.where(Y == 1, "yes", "no"), sensitive_features=GROUPS
    ),
    "the name of a column in an audit": lambda: audit(Y, X[:, 0], sensitive_features="region"),
    "the name of a column in a fit": lambda: FairClassifier(model="mlp").fit(
        X, Y, sensitive_features="region"
    ),
    "the name of a column in a frontier": lambda: frontier(
        FairClassifier(model="mlp"), X, Y, sensitive_features="region"
    ),
    "missing values in an array": lambda: FairClassifier(model="mlp").fit(
        np.where(X > 1, np.nan, X), Y, sensitive_features=GROUPS
    ),
    "text labels of plain XGBoost": lambda: FairXGBClassifier(0, n_jobs=1).fit(
        X, np.where(Y == 1, "yes", "no")
    ),
    "a table model with its parts exchanged": lambda: TableModel(FairClassifier(), TableEncoder()),
    "no groups where the model asks for them": lambda: (
        BarycenterPostprocessor(FairClassifier(0, model="linear"))
        .fit(X, Y, sensitive_features=GROUPS)
        .predict(X)
    ),
    "a label that is missing": lambda: FairClassifier(model="mlp").fit(
        X, [None, *GROUPS[1:]], sensitive_features=GROUPS
    ),
    "an audit of no column": lambda: audit(None, {}, sensitive_features=GROUPS),
    "a monitor of nothing": lambda: monitor(None),
    "text in the X of a frontier": lambda: frontier(
        FairRegressor(model="mlp"), RAW, X[:, 1], sensitive_features=GROUPS, random_state=0
    ),
    "text in y": lambda: FairRegressor(model="mlp").fit(X, GROUPS, sensitive_features=GROUPS),
    "a stream of one class": lambda: FairClassifier(model="mlp").partial_fit(
        X, Y * 0, sensitive_features=GROUPS
    ),
    "a stream of one group": lambda: FairClassifier(model="mlp").partial_fit(
        X, Y, sensitive_features=["a"] * 40
    ),
    "a group of one": lambda: FairClassifier(model="mlp").fit(X, Y, sensitive_features=LONELY),
    "a group of one, boosted": lambda: FairXGBClassifier(n_estimators=1).fit(
        X, Y, sensitive_features=LONELY
    ),
    "a file to audit": lambda: audit(None, "scores.csv", sensitive_features=GROUPS),
    "a lazy table": lambda: audit(None, pl.LazyFrame({"p": X[:, 0]}), sensitive_features=GROUPS),
    "no model file": lambda: load("nope.metrifair"),
    "a strength below 0": lambda: FairClassifier(-1.0, model="linear").fit(X, Y, **SEX),
    "a model that is not known": lambda: FairClassifier(model="forest").fit(X, Y, **SEX),
    "a metric that is not known": lambda: FairClassifier(metric="kolmogorof").fit(X, Y, **SEX),
    "a criterion that is not known": lambda: FairClassifier(criterion="parity").fit(X, Y, **SEX),
    "no groups for a penalty": lambda: FairClassifier(model="linear").fit(X, Y),
    "groups of another length": lambda: FairClassifier(model="linear").fit(
        X, Y, sensitive_features=GROUPS[:39]
    ),
    "a prediction before the fit": lambda: FairClassifier(model="linear").predict(X),
    # --- audits
    "scores that are missing": lambda: audit(None, np.where(Y, np.nan, 0.5), **SEX),
    "columns of different lengths": lambda: audit(Y[:39], X[:, 0], **SEX),
    "an audit of one group": lambda: audit(Y, X[:, 0], sensitive_features=["a"] * 40),
    "a group for each row": lambda: audit(Y, X[:, 0], sensitive_features=list(map(str, range(40)))),
    "a metric of audits that is not known": lambda: audit(Y, X[:, 0], **SEX, metrics="wassertein"),
    "a criterion of audits that is not known": lambda: audit(
        Y, X[:, 0], **SEX, criteria="equal_odds"
    ),
    "a criterion without labels": lambda: audit(None, X[:, 0], **SEX, criteria="equal_opportunity"),
    "a positive label that is none": lambda: audit(Y, X[:, 0], **SEX, pos_label="yes"),
    "a confidence in percent": lambda: audit(Y, X[:, 0], **SEX, confidence=95),
    "a threshold as text": lambda: audit(Y, X[:, 0], **SEX, threshold="high"),
    "a threshold that is missing": lambda: audit(Y, X[:, 0], **SEX, threshold=float("nan")),
    "weights below 0": lambda: audit(Y, X[:, 0], **SEX, sample_weight=-np.ones(40)),
    "a favorable side that is not known": lambda: audit(Y, X[:, 0], **SEX, favorable="highest"),
    "cuts of names": lambda: audit(Y, X[:, 0], **SEX, options=AuditOptions(cuts=[1.0])),
    "resamples below 0": lambda: audit(Y, Y, **SEX, options=AuditOptions(resamples=-1)),
    "probabilities that do not sum to 1": lambda: audit(
        None,
        Y / 2,
        sensitive_features=GroupProbabilities({"a": Y / 2, "b": Y / 2}, attribute="race"),
    ),
    "a file that is not there": lambda: audit_file("nobody.csv", score="p", group="sex"),
    "a standard that is not known": lambda: audit(Y, Y, **SEX).rates("eeoc"),
    "audits of different groups": lambda: compare(
        audit(None, Y, sensitive_features={"sex": GROUPS}),
        audit(None, Y, sensitive_features={"race": GROUPS}),
    ),
    "a search for an unknown outcome": lambda: find_groups(None, Y, RAW, outcome="rejected"),
    # --- frontiers and choices
    "no limit": chosen,
    "two limits": lambda: chosen(max_unfairness=0.1, min_accuracy=0.5),
    "an unfairness in percent": lambda: chosen(max_unfairness=20),
    "an accuracy in percent": lambda: chosen(min_accuracy=80),
    "a limit that rows cannot verify": lambda: chosen_by_neighbors(max_unfairness=0.03),
    "a limit that no model meets": lambda: chosen(min_accuracy=0.99),
    "a utility that is not known": lambda: chosen(max_unfairness=0.5, utility="acuracy"),
    "one fold": lambda: frontier(MODEL, X, Y, **SEX, folds=1),
    "more folds than rows": lambda: frontier(MODEL, X, Y, **SEX, folds=100),
    "all rows as test rows": lambda: frontier(MODEL, X, Y, **SEX, test=1.0),
    "strengths below 0": lambda: frontier(MODEL, X, Y, **SEX, strengths=[-1.0]),
    "no strengths": lambda: frontier(MODEL, X, Y, **SEX, strengths=[]),
    "a family that is not known": lambda: frontier(
        "auto", X, Y, **SEX, search=SearchOptions(families=["forest"])
    ),
    "a frontier of text": lambda: frontier("linear", X, Y, **SEX),
}


def message(case: str) -> str:
    """The type of an error, its argument, and its message in Python and on the command line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetrifairWarning)
        try:
            CASES[case]()
        except (DataError, NotFittedError) as error:
            argument = getattr(error, "argument", None)
            named = f" about {argument}" if argument else ""
            lines = [f"{type(error).__name__}{named}", str(error)]
            if isinstance(error, DataError):
                lines.append(error.text(OPTION_NAMES))
            return "\n".join(dict.fromkeys(lines))
    return "no error"


def texts() -> dict[str, str]:
    """Each mistake with its message."""
    return {case: message(case) for case in CASES}
