"""Fair boosting: a round with the penalty and a whole default fit, against the plain booster's."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np
import torch

from benchmarks.timing import Claim, print_table, shrunk
from metrifair import FairLGBMClassifier, FairXGBClassifier

ROWS, FEATURES = 100_000, 20
SHORT, LONG = 10, 50
KINDS: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("LightGBM", FairLGBMClassifier, {"verbose": -1}),
    ("XGBoost", FairXGBClassifier, {}),
)
WHOLE_FITS = (30_000, 23), (171_067, 142)


def fit_seconds(model: Any, X: Any, y: Any, **arguments: Any) -> float:
    """Processor time of a training."""
    start = time.process_time()
    model.fit(X, y, **arguments)
    return time.process_time() - start


def data(rows: int, features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first feature tells a part of the group; labels depend on three features."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(rows, features))
    group = (generator.random(rows) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    y = (X[:, :3].sum(1) + generator.normal(size=rows) > 0).astype(int)
    return X, y, group


def whole_fits() -> list[Claim]:
    """Fits with all defaults, the estimated probabilities of groups included."""
    claims = []
    for rows, features in WHOLE_FITS:
        X, y, group = data(shrunk(rows), features)
        for name, kind, settings in KINDS:
            plain = []
            fair = []
            for _ in range(3):  # in turns
                plain.append(fit_seconds(kind(0.0, n_jobs=1, **settings), X, y))
                model = kind(3.0, n_jobs=1, **settings)
                fair.append(fit_seconds(model, X, y, sensitive_features=group))
            ratio = min(fair) / min(plain)
            claim = f"{name}, {rows:,} rows x {features}: a whole default fit"
            measured = f"{min(fair):.2f} s against {min(plain):.2f} s plain: {ratio:.2f}x"
            claims.append(Claim(claim, measured, "at most 1.5x", ratio <= 1.5))
    return claims


def main() -> None:
    torch.set_num_threads(1)
    X, y, a = data(ROWS, FEATURES)
    rows = []
    for name, kind, settings in KINDS:
        times: dict[tuple[float, int], list[float]] = {}
        for _ in range(5):  # in turns
            for strength, rounds in product((0.0, 3.0), (SHORT, LONG)):
                model = kind(strength, n_estimators=rounds, n_jobs=1, **settings)
                took = fit_seconds(model, X, y, **({"sensitive_features": a} if strength else {}))
                times.setdefault((strength, rounds), []).append(took)
        # Long and short trainings read the table alike. The quickest of each counts: a busy machine
        # only ever adds.
        plain, fair = (
            (min(times[strength, LONG]) - min(times[strength, SHORT])) / (LONG - SHORT)
            for strength in (0.0, 3.0)
        )
        ratio = fair / plain
        claim = f"{name}, {ROWS:,} rows x {FEATURES}: a round with the penalty"
        measured = f"{1e3 * fair:.1f} ms against {1e3 * plain:.1f} ms plain: {ratio:.2f}x"
        rows.append(Claim(claim, measured, "at most 1.5x", ratio <= 1.5))
    print_table("Fair boosting (one thread)", [*rows, *whole_fits()])


if __name__ == "__main__":
    main()
