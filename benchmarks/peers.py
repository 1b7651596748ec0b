"""Linear models on one 45,000 x 100 table: against fairlearn's reductions approach, and the
solver against steps.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks.timing import Claim, print_table, shrunk
from metrifair import FairClassifier, PenaltyOptions, unfairness
from metrifair.estimators import fit_stack
from metrifair.metrics import energy_distance
from metrifair.tradeoff.sweep import DEFAULT_STRENGTHS


def data(rows: int, features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half of the features shift with the group; labels depend on all of them."""
    generator = np.random.default_rng(0)
    group = (generator.random(rows) < 0.35).astype(int)
    X = generator.normal(size=(rows, features))
    X[:, : features // 2] += 0.25 * group[:, None]
    slope = generator.normal(size=features) / np.sqrt(features)
    slope[: features // 2] = np.abs(slope[: features // 2])
    y = (generator.random(rows) < 1 / (1 + np.exp(-2 * (X @ slope) + 1))).astype(int)
    return StandardScaler().fit_transform(X), y, group


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def against_reductions() -> list[Claim]:
    X, y, a = data(shrunk(60_000, 600), shrunk(100, 5))
    train, test = slice(0, len(X) * 3 // 4), slice(len(X) * 3 // 4, None)
    rows = X[train], y[train]
    reduction = ExponentiatedGradient(LogisticRegression(max_iter=1_000), DemographicParity())
    _, theirs = timed(lambda: reduction.fit(*rows, sensitive_features=a[train]))
    claims = []
    for strength, least in ((1.0, 8), (10.0, 4), (30.0, 1)):
        fair = FairClassifier(strength, model="linear")
        ours = median(
            timed(lambda fair=fair: fair.fit(*rows, sensitive_features=a[train]))[1]
            for _ in range(3)
        )
        claim = f"linear fit on 45,000 x 100, strength {strength:g}: fairlearn's ExponentiatedGradient against ours"
        claims.append(
            Claim(
                claim,
                f"{theirs / ours:.1f}x ({theirs:.2f} s, {ours:.2f} s)",
                f">= {least}x",
                theirs >= least * ours,
            )
        )
    # The score of a randomized classifier is the probability with which it says yes.
    probability = reduction._pmf_predict(X[test])[:, 1]
    gaps = [
        unfairness(y[test], score, sensitive_features=a[test])
        for score in (probability, fair.predict_proba(X[test])[:, 1])
    ]
    accuracies = [float(((probability > 0.5) == y[test]).mean()), fair.score(X[test], y[test])]
    return [
        *claims,
        Claim(
            "Kolmogorov distance of the test scores: theirs, ours at strength 30",
            f"{gaps[0]:.3f}, {gaps[1]:.3f}",
            "ours <= theirs",
            gaps[1] <= gaps[0],
        ),
        Claim(
            "accuracy: theirs, ours at strength 30",
            f"{accuracies[0]:.3f}, {accuracies[1]:.3f}",
            "",
            True,
        ),
    ]


def against_steps() -> list[Claim]:
    """The solver for linear models against the stochastic steps that networks take."""
    X, y, a = data(shrunk(45_000, 400), shrunk(100, 5))
    claims = []
    for strength in (0.1, 1.0, 10.0, 100.0):
        times, heights = [], []
        for solver in ("sgd", "lbfgs"):
            fair = FairClassifier(
                strength, model="linear", penalty=PenaltyOptions(solver=solver), random_state=0
            )
            times.append(timed(lambda fair=fair: fair.fit(X, y, sensitive_features=a))[1])
            score, output = fair.predict_proba(X)[:, 1], fair.decision_function(X)
            risk = float((np.logaddexp(0, output) - y * output).mean())
            heights.append(risk + strength * energy_distance(score[a == 0], score[a == 1]))
        measured = f"{heights[0]:.5f}, {heights[1]:.5f} ({times[0]:.1f} s, {times[1]:.2f} s)"
        claim = f"objective of a linear fit, strength {strength:g}: by steps, by the solver"
        claims.append(Claim(claim, measured, "no higher", heights[1] <= heights[0]))
    grid = {"strengths": DEFAULT_STRENGTHS, "seeds": [0], "sensitive_features": a}
    times = []
    for solver in ("sgd", "lbfgs"):
        fair = FairClassifier(model="linear", penalty=PenaltyOptions(solver=solver))
        times.append(timed(lambda fair=fair: fit_stack(fair, X, y, **grid))[1])
    ratio = times[0] / times[1]
    measured = f"{ratio:.1f}x ({times[0]:.1f} s, {times[1]:.1f} s)"
    claim = f"{len(DEFAULT_STRENGTHS)} linear models of a frontier: steps against the solver"
    return [*claims, Claim(claim, measured, ">= 2x", ratio >= 2)]


def main() -> None:
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print_table("Peers (one thread)", against_reductions())
        print_table("Linear models (one thread)", against_steps())


if __name__ == "__main__":
    main()
