"""A warning names the line of the user's code that led to it, whatever entry point it called."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from lightgbm import LGBMClassifier
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrifair import (
    BarycenterPostprocessor,
    FairClassifier,
    FairClassifierCV,
    FairLGBMClassifier,
    FairRegressor,
    ReadOptions,
    TableEncoder,
    ThresholdPostprocessor,
    audit_file,
    frontier,
    nn,
    unfairness,
)
from metrifair.baselines import FairKDEClassifier

N = 240
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + RNG.normal(size=N) > 0).astype(int)
SEX = np.where(np.arange(N) % 2 == 0, "f", "m").astype(object)
GAPS = SEX.copy()
GAPS[:20] = None
UNKNOWN = SEX.copy()
UNKNOWN[:20] = "Unknown"


PROBABILITIES = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Sigmoid())


def of_a_file(folder: Path) -> Any:
    pl.DataFrame({"sex": SEX.tolist(), "p": X[:, 0]}).write_csv(folder / "rows.csv")
    reading = ReadOptions(replace={"woman": "f"})
    return audit_file(folder / "rows.csv", score="p", group="sex", reading=reading)


def in_a_pipeline(_: Path) -> Any:
    pipeline = make_pipeline(StandardScaler(), FairClassifier())
    return pipeline.fit(X, Y, fairclassifier__sensitive_features=GAPS)


def in_folds(_: Path) -> Any:
    with config_context(enable_metadata_routing=True):
        model = FairClassifier().set_fit_request(sensitive_features=True)
        return cross_val_score(model, X, Y, cv=2, params={"sensitive_features": GAPS})


CALLS: dict[str, Callable[[Path], Any]] = {
    "classifier": lambda _: FairClassifier().fit(X, Y, sensitive_features=GAPS),
    "unknown name": lambda _: FairClassifier().fit(X, Y, sensitive_features=UNKNOWN),
    "constant": lambda _: FairClassifier(1e9).fit(X, Y, sensitive_features=X[:, 0] > 0),
    "numeric group": lambda _: FairRegressor().fit(X, X[:, 1], sensitive_features=X[:, 2] * 1e3),
    "metric": lambda _: FairClassifier(
        metric="kolmogorov",
        model="mlp",
        epochs=1,
    ).fit(X, Y, sensitive_features=SEX),
    "stream": lambda _: (
        FairClassifier()
        .partial_fit(X[:4], Y[:4], sensitive_features=["f", "m", "f", "f"], classes=[0, 1])
        .predict(X)
    ),
    "booster": lambda _: FairLGBMClassifier(n_estimators=2, verbosity=-1).fit(
        X, Y, sensitive_features=GAPS
    ),
    "barycenter": lambda _: BarycenterPostprocessor(LogisticRegression()).fit(
        X, Y, sensitive_features=GAPS
    ),
    "threshold": lambda _: ThresholdPostprocessor(LGBMClassifier(n_estimators=2, verbosity=-1)).fit(
        X, Y, sensitive_features=GAPS
    ),
    "baseline": lambda _: FairKDEClassifier(2.0, epochs=1, variant="reference").fit(
        X, Y, sensitive_features=SEX
    ),
    "encoder": lambda _: TableEncoder().fit(pl.DataFrame({"n": ["7"] * 60 + ["1,234"]})),
    "sampler": lambda _: nn.StratifiedBatchSampler(SEX == "f", batch_size=1),
    "module": lambda _: FairClassifier(model=PROBABILITIES, epochs=1).fit(
        X, Y, sensitive_features=SEX
    ),
    "unfairness": lambda _: unfairness(None, X[:, 0], sensitive_features=UNKNOWN),
    "file": of_a_file,
    "pipeline": in_a_pipeline,
    "folds": in_folds,
    "frontier": lambda _: frontier(
        FairClassifier(), X, Y, sensitive_features=UNKNOWN, strengths=[0.0], folds=2
    ),
    "choice": lambda _: FairClassifierCV(
        max_unfairness=0.5, families=["linear"], folds=2, random_state=0
    ).fit(X, Y, sensitive_features=UNKNOWN),
}


@pytest.mark.parametrize("entry", CALLS)
def test_a_warning_names_the_line_of_the_user(entry: str, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[entry](tmp_path)
    assert caught
    for warned in caught:
        assert warned.filename == __file__, (warned.filename, str(warned.message))
