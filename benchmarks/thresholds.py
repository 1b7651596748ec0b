"""Thresholds of a fitted model: `ThresholdPostprocessor.fit` against fairlearn's
`ThresholdOptimizer`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.linear_model import LogisticRegression

from benchmarks.timing import Claim, print_table, shrunk
from metrifair import ThresholdPostprocessor

SIZES = (45_000, 1_000_000)
FEATURES = 10
ROUNDS = 3
CRITERIA = ("demographic_parity", "equalized_odds")


def data(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first feature shifts with the group; labels depend on three features."""
    generator = np.random.default_rng(0)
    group = (generator.random(rows) < 0.35).astype(int)
    X = generator.normal(size=(rows, FEATURES))
    X[:, 0] += 0.5 * group
    noise = generator.logistic(size=rows)
    y = (X[:, :3].sum(1) + noise > 0.5).astype(int)
    return X, y, group


def seconds(model: Any, X: np.ndarray, y: np.ndarray, group: np.ndarray) -> float:
    """Processor time of a fit."""
    start = time.process_time()
    model.fit(X, y, sensitive_features=group)
    return time.process_time() - start


def against_fairlearn(rows: int) -> list[Claim]:
    """Fits on a model that is trained already, in turns; the quickest of each counts."""
    X, y, group = data(shrunk(rows))
    model = LogisticRegression().fit(X, y)
    claims = []
    for criterion in CRITERIA:
        fair = ThresholdPostprocessor(model, prefit=True, criterion=criterion)
        peer = ThresholdOptimizer(
            estimator=model,
            constraints=criterion,
            prefit=True,
            predict_method="predict_proba",
        )
        ours = []
        theirs = []
        for _ in range(ROUNDS):
            ours.append(seconds(fair, X, y, group))
            theirs.append(seconds(peer, X, y, group))
        ratio = min(theirs) / min(ours)
        name = criterion.replace("_", " ")
        claim = f"thresholds, {name}, {rows:,} rows: fairlearn's ThresholdOptimizer against ours"
        measured = f"{ratio:.1f}x ({min(theirs):.2f} s, {min(ours):.2f} s)"
        claims.append(Claim(claim, measured, ">= 1x", ratio >= 1))
    return claims


def main() -> None:
    torch.set_num_threads(1)
    claims = [claim for rows in SIZES for claim in against_fairlearn(rows)]
    print_table("Thresholds (one thread)", claims)


if __name__ == "__main__":
    main()
