"""Whoever takes groups either takes their probabilities too, or refuses them in words: a table of
all entry points.

Nothing ever uses the most probable groups in place of probabilities.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression

import metrifair
from metrifair import (
    AuditOptions,
    AuditState,
    BarycenterPostprocessor,
    FairClassifier,
    FairRegressor,
    GroupProbabilities,
    ThresholdPostprocessor,
    audit,
    audit_table,
    baselines,
    frontier,
    monitor,
    nn,
    stacking,
    unfairness,
)
from metrifair.errors import DataError
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty
from metrifair.stacking import FairStackingClassifier, FairStackingRegressor

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(200, 2))
P = 1 / (1 + np.exp(-X[:, 0]))
NUMBER = X.sum(1) + RANDOM.normal(size=200)
Y = (NUMBER > 0).astype(int)
SCORE = 1 / (1 + np.exp(-NUMBER))
RACE = GroupProbabilities({"a": P, "b": 1 - P}, attribute="race")
KNOWN = GroupProbabilities(
    {"a": P, "b": 1 - P}, attribute="race", known_groups=np.where(Y == 1, "a", "b")
)
COLUMNS = {"score": SCORE, "a": P, "b": 1 - P}
NAMED = GroupProbabilities(["a", "b"], attribute="race")
SMALL = {"n_estimators": 3, "n_jobs": 1}


def fitted(estimator: Any, y: Any = Y) -> Callable[[], Any]:
    return lambda: estimator.fit(X, y, sensitive_features=RACE)


def written(folder: Path) -> Path:
    path = folder / "scores.csv"
    rows = zip(*COLUMNS.values(), strict=True)
    path.write_text(
        "\n".join(["score,a,b", *(",".join(map(repr, map(float, row))) for row in rows)])
    )
    return path


# Entry points by what they are called with; those of the same function or class share its name
# before the comma.
TAKES: dict[str, Callable[..., Any]] = {
    "unfairness": lambda: unfairness(None, SCORE, sensitive_features=RACE),
    "audit": lambda: audit(None, SCORE, sensitive_features=RACE, random_state=0),
    "audit_table": lambda: audit_table(
        pl.DataFrame(COLUMNS), score="score", group=NAMED, random_state=0
    ),
    "monitor": lambda: monitor([audit(None, SCORE, sensitive_features=RACE, random_state=0)] * 2),
    "AuditState": lambda: (
        AuditState().add(None, SCORE, sensitive_features=RACE).audit(random_state=0)
    ),
    "monitor, counts": lambda: monitor(
        [AuditState().add(None, SCORE, sensitive_features=RACE)] * 2, random_state=0
    ),
    "FairClassifier": fitted(FairClassifier(1.0, model="linear")),
    "FairRegressor": fitted(FairRegressor(1.0, model="linear"), NUMBER),
    "FairClassifierCV": fitted(metrifair.FairClassifierCV(max_unfairness=1, families=["linear"])),
    "FairRegressorCV": fitted(
        metrifair.FairRegressorCV(max_unfairness=1, families=["linear"]), NUMBER
    ),
    "FairLGBMClassifier": fitted(metrifair.FairLGBMClassifier(1.0, **SMALL, verbose=-1)),
    "FairLGBMRegressor": fitted(metrifair.FairLGBMRegressor(1.0, **SMALL, verbose=-1), NUMBER),
    "FairXGBClassifier": fitted(metrifair.FairXGBClassifier(1.0, **SMALL)),
    "FairXGBRegressor": fitted(metrifair.FairXGBRegressor(1.0, **SMALL), NUMBER),
    "BarycenterPostprocessor, blind": fitted(
        BarycenterPostprocessor(LogisticRegression(), needs_group=False)
    ),
    "ThresholdPostprocessor, blind": fitted(
        ThresholdPostprocessor(LogisticRegression(), needs_group=False)
    ),
    "StratifiedBatchSampler": lambda: next(iter(StratifiedBatchSampler(RACE, batch_size=8))),
    "frontier": lambda: frontier(
        [
            metrifair.FairLGBMClassifier(**SMALL, verbose=-1),
            BarycenterPostprocessor(LogisticRegression(), needs_group=False, folds=2),
        ],
        X,
        Y,
        sensitive_features=RACE,
        strengths=[1.0],
        test=0.25,
        random_state=0,
    ),
}
REFUSES: dict[str, Callable[..., Any]] = {
    "FairClassifier, stream": lambda: FairClassifier(model="mlp").partial_fit(
        X, Y, sensitive_features=RACE, classes=[0, 1]
    ),
    "FairClassifier, stream of declared groups": lambda: FairClassifier(model="mlp").partial_fit(
        X, Y, sensitive_features=RACE, groups=["a", "b"]
    ),
    "AuditState, known groups": lambda: AuditState().add(None, SCORE, sensitive_features=KNOWN),
    "Audit.to_evidence": lambda: audit(
        None, SCORE, sensitive_features=RACE, random_state=0
    ).to_evidence("evidence"),
    "audit, one of several attributes": lambda: audit(
        None, Y, sensitive_features={"race": RACE, "sex": Y}
    ),
    "audit, cuts": lambda: audit(
        None, SCORE, sensitive_features=RACE, options=AuditOptions(cuts=[0.5])
    ),
    "find_groups": lambda: metrifair.find_groups(
        Y, SCORE, {"job": np.asarray(Y).astype(str)}, sensitive_features=RACE
    ),
    "BarycenterPostprocessor": fitted(BarycenterPostprocessor(LogisticRegression())),
    "ThresholdPostprocessor": fitted(ThresholdPostprocessor(LogisticRegression())),
    "UnfairnessPenalty": lambda: UnfairnessPenalty()(torch.zeros(200), RACE),  # type: ignore[arg-type]
    "FairStackingClassifier": fitted(FairStackingClassifier(1.0, folds=2)),
    "FairStackingRegressor": fitted(FairStackingRegressor(1.0, folds=2), NUMBER),
} | {
    name: fitted(
        getattr(baselines, name)(LinearRegression() if "Chzhen" in name else LogisticRegression())
    )
    if name.endswith("Postprocessor")
    else fitted(getattr(baselines, name)())
    for name in baselines.__all__
}
WORDS = (
    r"probabilities of race, which this function does not accept|P\(race\) has probabilities"
    "|known_groups needs rows in memory, and a state stores none"
    "|the groups of this audit are probabilities: each row counts in several cells"
    "|predicts with the group of each row, and sensitive_features are probabilities"
)
ELSEWHERE = {
    "audit_file": "below",
    "covering": "takes rows of a stream",
    "CoveringBatch": "a result",
    "Dataset": "a result",
    "Frontier": "a result",
}


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.filterwarnings("ignore")
def test_who_takes_probabilities(name: str) -> None:
    TAKES[name]()


def test_a_file_of_probabilities_is_taken(tmp_path: Path) -> None:
    assert (
        metrifair.audit_file(
            written(tmp_path), score="score", group=NAMED, random_state=0
        ).record.proxy
        is not None
    )


@pytest.mark.parametrize("name", REFUSES)
def test_everyone_else_refuses_probabilities_in_words(name: str) -> None:
    with pytest.raises(DataError, match=WORDS):
        REFUSES[name]()


def entry_points() -> Iterator[str]:
    """Public functions and classes that take groups, or whose methods do."""
    for module in (metrifair, nn, baselines, stacking):
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, ModuleType):
                continue
            methods = [
                thing,
                *(getattr(thing, method, None) for method in ("fit", "add", "forward")),
            ]
            parameters = {
                one
                for method in methods
                if callable(method)
                for one in inspect.signature(method).parameters
            }
            if parameters & {"sensitive_features", "groups", "group"}:
                yield name


def test_every_entry_point_is_in_the_table() -> None:
    listed = {name.split(",")[0] for name in (*TAKES, *REFUSES, *ELSEWHERE)}
    assert set(entry_points()) <= listed
