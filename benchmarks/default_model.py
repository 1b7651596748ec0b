"""`python -m benchmarks.default_model`: linear models against networks, the two that could be the
default, on features in the units of their files; some ten minutes, with METRIFAIR_DATA.

Splits begin at 450: no other experiment uses those. A model of each kind is trained at five
strengths; on the test rows, the utility (AUC, or R²) is a function of the gap. The figure that
decides is the mean difference of the two curves over the gaps that both reach.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score, roc_auc_score

from benchmarks.defaults import SETS
from metrifair import FairClassifier, FairRegressor, datasets, unfairness

STRENGTHS = (0.0, 0.3, 1.0, 3.0, 10.0)
MODELS = ("linear", "mlp")
FIRST_SPLIT = 450
LARGE = {"adult": 3}  # of large data sets, so many subsamples of 80 % of the training rows
_GAPS = 20  # at which two curves are compared


class Fitted(NamedTuple):
    """What one model says of the test rows."""

    gap: float
    utility: float
    seconds: float


def splits(name: str, data: Any, count: int) -> Iterator[tuple[Any, Any]]:
    """Training rows and test rows."""
    for seed in range(FIRST_SPLIT, FIRST_SPLIT + LARGE.get(name, count)):
        train, test = data.split(seed)
        if name in LARGE:
            drawn = np.random.default_rng(seed).choice(train, int(0.8 * len(train)), replace=False)
            train = np.sort(drawn)
        yield train, test


def fitted(data: Any, train: Any, test: Any, model: str, strength: float) -> Fitted:
    """A model of this kind, at one strength."""
    X = data.X.to_numpy()
    y = data.y.to_numpy()
    groups = data.group_codes.to_numpy()
    regression = data.task == "regression"
    kind = FairRegressor if regression else FairClassifier
    start = time.process_time()
    trained = kind(strength, model=model, random_state=0)
    trained.fit(X[train], y[train], sensitive_features=groups[train])
    seconds = time.process_time() - start
    if regression:
        scores = trained.predict(X[test])
        utility = r2_score(y[test], scores)
    else:
        scores = trained.predict_proba(X[test])[:, 1]
        utility = roc_auc_score(y[test], scores)
    gap = unfairness(None, scores, sensitive_features=groups[test])
    return Fitted(gap, float(utility), seconds)


def curve(points: list[Fitted]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gaps in ascending order, and the best utility up to each."""
    ordered = sorted(points)
    gaps = np.array([point.gap for point in ordered])
    return gaps, np.maximum.accumulate([point.utility for point in ordered])


def difference(network: list[Fitted], linear: list[Fitted]) -> float | None:
    """The utility of the network less that of the linear model, over the gaps that both reach."""
    ours, theirs = curve(network), curve(linear)
    low = max(ours[0][0], theirs[0][0])
    high = min(ours[0][-1], theirs[0][-1])
    if low >= high:
        return None
    gaps = np.linspace(low, high, _GAPS)
    return float(np.mean(np.interp(gaps, *ours) - np.interp(gaps, *theirs)))


def compare(name: str, options: dict[str, str], count: int) -> str:
    """A row of the table: figures at strength 1, and the difference at equal gaps."""
    data = datasets.load(name, **options)
    found: dict[str, list[list[Fitted]]] = {model: [] for model in MODELS}
    for train, test in splits(name, data, count):
        for model in MODELS:
            by_strength = [fitted(data, train, test, model, value) for value in STRENGTHS]
            found[model].append(by_strength)
    cells = [f"{name} ({data.task})"]
    at = STRENGTHS.index(1.0)
    for model in MODELS:
        points = [by_strength[at] for by_strength in found[model]]
        utility = mean(point.utility for point in points)
        gap = mean(point.gap for point in points)
        seconds = mean(point.seconds for point in points)
        cells.append(f"{utility:.3f} / {gap:.3f} ({seconds:.2f} s)")
    pairs = zip(found["mlp"], found["linear"], strict=True)
    differences = [value for pair in pairs if (value := difference(*pair)) is not None]
    error = stdev(differences) / len(differences) ** 0.5
    cells.append(f"{mean(differences):+.3f} ± {error:.3f}")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.default_model")
    parser.add_argument("--splits", type=int, default=20)
    count = parser.parse_args().splits
    print("| data | linear, strength 1 | network, strength 1 | network less linear, equal gaps |")
    print("|---|---|---|---|")
    for name, options in SETS:
        print(compare(name, options, count), flush=True)


if __name__ == "__main__":
    main()
