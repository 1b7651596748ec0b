"""The frontier: all strengths and seeds at once against single fits; growth with the rows."""

from __future__ import annotations

import time

import numpy as np
import torch

from benchmarks.timing import Claim, peak_memory_above, print_table, shrunk
from metrifair import FairClassifier, SearchOptions, frontier


def table(rows: int, features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    a = (generator.random(rows) < 0.7).astype(int)
    X = generator.normal(size=(rows, features))
    X[:, 0] += a
    y = (generator.random(rows) < 1 / (1 + np.exp(-X[:, 0] - X[:, 1]))).astype(int)
    return X, y, a


FOLDS = 2  # half of the rows train the models of each


def timed_frontier(rows: int, batch: int, *, seeds: int, epochs: int) -> float:
    """Seconds of a frontier whose fold models are trained on so many rows."""
    X, y, a = table(FOLDS * shrunk(rows), 12)
    start = time.perf_counter()
    model = FairClassifier(batch_size=batch, epochs=shrunk(epochs, 1), model="mlp")
    search = SearchOptions(seeds=shrunk(seeds, 1))
    frontier(model, X, y, sensitive_features=a, folds=FOLDS, random_state=0, search=search)
    return time.perf_counter() - start


def against_single_fits() -> list[Claim]:
    rows = []
    for name, size, batch, epochs, target in (
        ("Drug", 1_413, 128, 60, 15.0),
        ("Adult", 32_561, 2_048, 10, 1.5),
    ):
        together = timed_frontier(size, batch, seeds=10, epochs=epochs)
        X, y, a = table(shrunk(size), 12)
        start, fits = time.perf_counter(), 5
        for seed in range(fits):
            FairClassifier(
                batch_size=batch, epochs=shrunk(epochs, 1), random_state=seed, model="mlp"
            ).fit(X, y, sensitive_features=a)
        models = 250 * FOLDS
        alone = (time.perf_counter() - start) / fits * models
        claim = (
            f"frontier of 10 seeds x 25 strengths in {FOLDS} folds, {name} shape, against {models} "
            "single fits"
        )
        measured = f"{alone / together:.1f}x ({together:.1f} s against {alone:.0f} s)"
        rows.append(Claim(claim, measured, f">= {target:g}x", alone / together >= target))
    return rows


def growth() -> list[Claim]:
    small, large = (timed_frontier(size, 512, seeds=1, epochs=3) for size in (20_000, 80_000))
    used = [
        peak_memory_above(
            lambda size=size: table(FOLDS * shrunk(size), 12),
            lambda size=size: timed_frontier(size, 512, seeds=1, epochs=1),
        )
        for size in (20_000, 80_000)
    ]
    per_row = (used[1] - used[0]) / 120_000  # bytes for each further row of the table
    return [
        Claim("frontier, 4x the rows: time", f"{large / small:.1f}x", "<= 5x", large / small <= 5),
        Claim(
            "frontier of 25 models: memory for each further row",
            f"{per_row:.0f} bytes",
            "< 25 models x 12 features x 4 bytes",
            per_row < 25 * 12 * 4,
        ),
    ]


def automatic(rows: int) -> tuple[float, float, int]:
    """Seconds, seconds of processor time, and families of ``frontier("auto")`` with its default
    budget.
    """
    X, y, a = table(shrunk(rows), 12)
    start, used = time.perf_counter(), time.process_time()
    # a quick run takes one family
    search = SearchOptions(families=["linear"]) if shrunk(rows) < rows else None
    front = frontier("auto", X, y, sensitive_features=a, random_state=0, search=search)
    return time.perf_counter() - start, time.process_time() - used, len(front.record.parameters)


def portfolio() -> list[Claim]:
    claims = []
    for name, rows, most in (("mortgage", 1_989, 30), ("Adult", 45_222, 180)):
        elapsed, used, families = automatic(rows)
        memory = peak_memory_above(
            lambda rows=rows: table(shrunk(rows), 12), lambda rows=rows: automatic(rows)
        )
        measured = f"{elapsed:.0f} s ({used:.0f} s of processor time, {memory / 1e6:.0f} MB, families: {families})"
        claims.append(
            Claim(f'frontier("auto"), {name} shape', measured, f"<= {most} s", elapsed <= most)
        )
    return claims


def chosen_seconds(rows: int) -> float:
    """Processor time of ``frontier("auto")`` with its default budget, and of the choice of a
    model.
    """
    X, y, a = table(shrunk(rows), 12)
    search = None
    if shrunk(rows) < rows:  # a quick run takes one family
        search = SearchOptions(families=["linear"])
    start = time.process_time()
    front = frontier("auto", X, y, sensitive_features=a, random_state=0, search=search)
    front.select(max_unfairness=0.2, best_effort=True)
    return time.process_time() - start


def chosen() -> list[Claim]:
    claims = []
    for rows, most in ((300, 10), (2_000, 20), (5_000, 30)):
        used = chosen_seconds(rows)
        claim = f'frontier("auto") and select, {rows:,} rows x 12: processor time'
        claims.append(Claim(claim, f"{used:.1f} s", f"<= {most} s", used <= most))
    return claims


def main() -> None:
    torch.set_num_threads(1)
    claims = [*against_single_fits(), *growth(), *portfolio(), *chosen()]
    print_table("Frontier (one thread)", claims)


if __name__ == "__main__":
    main()
