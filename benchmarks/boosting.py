"""Fair boosting: what a round with the penalty takes, against the plain booster's."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from benchmarks.timing import Claim, print_table
from metrifair import FairLGBMClassifier, FairXGBClassifier

ROWS, FEATURES = 100_000, 20
SHORT, LONG = 10, 50


def round_seconds(make: Any, arguments: dict[str, Any], X: Any, y: Any) -> float:
    """Processor time of one round: the difference between a long and a short training, which read the table alike."""
    times = []
    for rounds in (SHORT, LONG):
        model = make(n_estimators=rounds, n_jobs=1)
        start = time.process_time()
        model.fit(X, y, **arguments)
        times.append(time.process_time() - start)
    return (times[1] - times[0]) / (LONG - SHORT)


def main() -> None:
    torch.set_num_threads(1)
    generator = np.random.default_rng(0)
    X = generator.normal(size=(ROWS, FEATURES))
    a = (generator.random(ROWS) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    y = (X[:, :3].sum(1) + generator.normal(size=ROWS) > 0).astype(int)
    rows = []
    for name, kind, settings in (
        ("LightGBM", FairLGBMClassifier, {"verbose": -1}),
        ("XGBoost", FairXGBClassifier, {}),
    ):
        pairs = []
        for _ in range(5):  # in turns; the quickest counts, since a busy machine only ever adds
            plain = round_seconds(lambda kind=kind, settings=settings, **more: kind(0.0, **settings, **more), {}, X, y)
            fair = round_seconds(
                lambda kind=kind, settings=settings, **more: kind(3.0, **settings, **more),
                {"sensitive_features": a},
                X,
                y,
            )
            pairs.append((plain, fair))
        plain, fair = (min(column) for column in zip(*pairs, strict=True))
        ratio = fair / plain
        claim = f"{name}, {ROWS:,} rows x {FEATURES}: a round with the penalty"
        measured = f"{1e3 * fair:.1f} ms against {1e3 * plain:.1f} ms plain: {ratio:.2f}x"
        rows.append(Claim(claim, measured, "at most 1.5x", ratio <= 1.5))
    print_table("Fair boosting (one thread)", rows)


if __name__ == "__main__":
    main()
