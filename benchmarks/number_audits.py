"""What an audit says of a number, held against the truth: `python -m benchmarks.number_audits
[--jobs 4] [RECORD]`.

How often intervals of the dependence hold that of the population, and how often the p-values of the
worst cut and of the dependence are at most 0.05 where scores know nothing of the number. Pieces of
work are kept in a record and are not done again; the table goes to docs/results/numeric-audits.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from math import asin, pi, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair import AuditOptions, audit
from metrifair.metrics import energy_dependence
from metrifair.support.parallel import run_parallel

Floats = NDArray[np.float64]
Drawn = tuple[Floats, Floats]
SIZES = (50, 100, 200, 1_000, 4_000)
PIECES, PIECE = 20, 50  # pieces of work for each line, and data sets in each
_MANY = 1_000_000  # rows whose dependence stands for that of a population without a formula


def _normal(n: int, generator: np.random.Generator, r: float) -> Drawn:
    number = generator.normal(size=n)
    return r * number + sqrt(1 - r * r) * generator.normal(size=n), number


def _ages(n: int, generator: np.random.Generator, fall: float) -> Drawn:
    """Integers, and probabilities with two decimals that fall at 60."""
    age = generator.integers(18, 90, n).astype(np.float64)
    return np.clip(generator.beta(2, 2, n) - fall * (age > 60), 0, 1).round(2), age


def _incomes(n: int, generator: np.random.Generator, slope: float) -> Drawn:
    """A heavy tail, and decisions that are likelier far up in it."""
    income = generator.lognormal(size=n)
    return (generator.random(n) < 0.3 + slope * income / (1 + income)).astype(np.float64), income


POPULATIONS: dict[str, Callable[[int, np.random.Generator], Drawn]] = {
    "normal, correlation 0": partial(_normal, r=0.0),
    "normal, correlation 0.2": partial(_normal, r=0.2),
    "normal, correlation 0.5": partial(_normal, r=0.5),
    "normal, correlation 0.9": partial(_normal, r=0.9),
    "ages, no fall": partial(_ages, fall=0.0),
    "ages, fall of 0.1": partial(_ages, fall=0.1),
    "ages, fall of 0.3": partial(_ages, fall=0.3),
    "incomes and decisions, slope 0": partial(_incomes, slope=0.0),
    "incomes and decisions, slope 0.4": partial(_incomes, slope=0.4),
}


@cache
def true_dependence(name: str) -> float:
    """The dependence of a population.

    >>> true_dependence("ages, no fall"), round(true_dependence("normal, correlation 0.5"), 3)
    (0.0, 0.731)
    """
    draw = POPULATIONS[name]
    if not next(iter(draw.keywords.values())):  # type: ignore[attr-defined]
        return 0.0
    if name.startswith("normal"):
        return normal_dependence(draw.keywords["r"])  # type: ignore[attr-defined]
    return float(energy_dependence(*draw(_MANY, np.random.default_rng(0))))


def normal_dependence(r: float) -> float:
    """That of two normal variables of variance 1 with correlation r."""

    def covariance(r: float) -> float:
        return 4 / pi * (r * asin(r) + sqrt(1 - r * r) - r * asin(r / 2) - sqrt(4 - r * r) + 1)

    return 2 * covariance(r) * sqrt(pi) / covariance(1.0)


class Tally(NamedTuple):
    """Of so many data sets: who had an interval, whose held the truth, and whose p-values were
    at most 0.05.
    """

    intervals: int
    held: int
    cut: int  # of the worst cut
    dependence: int


def tally(name: str, size: int, piece: int, sets: int = PIECE) -> Tally:
    """One piece of work: data sets drawn from a seed of their own."""
    generator = np.random.default_rng([list(POPULATIONS).index(name), size, piece])
    truth, intervals, covered, small = true_dependence(name), 0, 0, [0, 0]
    for _ in range(sets):
        score, number = POPULATIONS[name](size, generator)
        result = audit(
            None,
            score,
            sensitive_features={"number": number},
            continuous=True,
            metrics=("kolmogorov", "energy"),
            threshold=None,
            random_state=generator,
            options=AuditOptions(resamples=200, permutations=199),
        )
        cut, dependence = result.findings
        interval = dependence.interval
        if interval is not None:
            intervals += 1
            covered += interval.low <= truth * (1 + 1e-9) and truth <= interval.high * (1 + 1e-9)
        for place, finding in enumerate((cut, dependence)):
            small[place] += finding.p_value is not None and finding.p_value <= 0.05
    return Tally(intervals, covered, *small)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.number_audits")
    parser.add_argument("record", type=Path, nargs="?", default=Path("build/number_audits.jsonl"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, default=600.0, help="begin nothing new after so long"
    )
    args = parser.parse_args()
    args.record.parent.mkdir(parents=True, exist_ok=True)
    lines = args.record.read_text().splitlines() if args.record.exists() else []
    done = {
        (entry["population"], entry["size"], entry["piece"]) for entry in map(json.loads, lines)
    }
    work = [
        (name, size, piece)
        for piece in range(PIECES)
        for name in POPULATIONS
        for size in SIZES
        if (name, size, piece) not in done
    ]
    start = time.perf_counter()

    def some(place: int) -> tuple[int, Tally | None]:
        late = time.perf_counter() - start > 60 * args.minutes
        return place, None if late else tally(*work[place])

    with args.record.open("a") as record:
        for place, counts in run_parallel(
            some, range(len(work)), args.jobs, in_order=False, threads=1
        ):
            if counts is not None:
                key = dict(zip(("population", "size", "piece"), work[place], strict=True))
                record.write(json.dumps({**key, "sets": PIECE, **counts._asdict()}) + "\n")
                record.flush()
    print("\n".join(table(args.record)))


def table(record: Path) -> Iterator[str]:
    """The lines of a table in Markdown."""
    yield "| population | rows | data sets | intervals that hold | cut: p <= 0.05 | dependence: p <= 0.05 |"
    yield "|---|---|---|---|---|---|"
    entries = [json.loads(line) for line in record.read_text().splitlines()]
    for name in POPULATIONS:
        for size in SIZES:
            matching = [
                entry for entry in entries if (entry["population"], entry["size"]) == (name, size)
            ]
            if matching:
                sums = {
                    what: sum(entry[what] for entry in matching)
                    for what in ("sets", *Tally._fields)
                }
                sets, intervals = sums["sets"], sums["intervals"]
                coverage = f"{100 * sums['held'] / intervals:.1f} %" if intervals else "no interval"
                shares = " | ".join(
                    f"{100 * sums[what] / sets:.1f} %" for what in ("cut", "dependence")
                )
                yield f"| {name} | {size:,} | {sets:,} | {coverage} | {shares} |"


if __name__ == "__main__":  # other processes know the module by its own name
    from benchmarks.number_audits import main as run

    run()
