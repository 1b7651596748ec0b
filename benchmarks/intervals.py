"""How often the intervals of an audit hold the distance of the populations: `python -m
benchmarks.intervals`.

Data sets are drawn from populations whose distances are known, and each is given its intervals by
what an audit calls. The table goes to docs/results/intervals.md. Finished pieces of work are kept in
build/intervals.jsonl and are not done again: the page is made from that record.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy import stats

from metrifair import __version__
from metrifair.auditing.measure.plug_in import plug_in_distances
from metrifair.auditing.measure.resampling import Rows, bootstrap, merge_scores
from metrifair.auditing.measure.two_samples import RESOLUTION, TwoSamples
from metrifair.figures.intervals import FEWEST, Interval
from metrifair.support.arrays import Floats
from metrifair.support.files import replace_file
from metrifair.support.parallel import run_parallel

USUAL = ("kolmogorov", "wasserstein", "energy")
OTHERS = ("cramer", "lp", "mmd", "total_variation")
SIZES = ((10, 1000), (50, 50), (100, 100), (500, 50), (200, 200), (2000, 2000))
SIZES_OF_OTHERS = ((10, 100), (50, 50), (100, 100))  # kernels compare all pairs of scores
WEIGHTS = ("none", "mild", "heavy")
# resamples: half of what an audit draws, to end in hours
CONFIDENCE, RESAMPLES, AT_LEAST = 0.95, 250, 0.93
STORE = Path("build/intervals.jsonl")
PIECE = 100  # data sets that are drawn, and kept, at a time
# of a continuous population, to compute its distances; kernels compare all pairs of cells
_CELLS = 6000
_CELLS_OF_KERNELS = 600


class Law(NamedTuple):
    """One side of a population: a continuous law, rounded or not, with a share of it moved to 0."""

    continuous: object  # frozen, of scipy.stats
    decimals: int | None = None
    at_zero: float = 0.0

    def draw(self, size: int, generator: np.random.Generator) -> Floats:
        """A sample."""
        values = self.continuous.rvs(size, random_state=generator)
        values = values if self.decimals is None else np.round(values, self.decimals)
        return np.where(generator.random(size) < self.at_zero, 0.0, values)

    def cells(self, ends: Floats) -> Floats:
        """The probability of each cell between ascending ends, of which 0 is a cell of its own
        in the middle of one.
        """
        return (1 - self.at_zero) * np.diff(self.continuous.cdf(ends))


UNIFORM, BETA = stats.uniform(), (stats.beta(2, 3), stats.beta(3, 2))
POPULATIONS: dict[str, tuple[Law, Law]] = {
    "null": (Law(UNIFORM), Law(UNIFORM)),
    "null, skew": (Law(stats.lognorm(1)), Law(stats.lognorm(1))),
    "ties": (Law(BETA[0], decimals=1), Law(BETA[1], decimals=1)),
    "shift 0.5": (Law(stats.norm(0, 1)), Law(stats.norm(0.5, 1))),
    "shift 2": (Law(stats.norm(0, 1)), Law(stats.norm(2, 1))),
    "beta": (Law(BETA[0]), Law(BETA[1])),
    "lognormal": (Law(stats.lognorm(1)), Law(stats.lognorm(1, scale=np.exp(0.5)))),
    "spike": (Law(UNIFORM, at_zero=0.3), Law(UNIFORM, at_zero=0.5)),
    "binary": (Law(stats.bernoulli(0.3), decimals=0), Law(stats.bernoulli(0.5), decimals=0)),
    "rare": (Law(stats.bernoulli(0.05), decimals=0), Law(stats.bernoulli(0.3), decimals=0)),
}


@cache
def true_distances(population: tuple[Law, Law], metrics: tuple[str, ...]) -> dict[str, float]:
    """The distances of the populations: exact where scores are few, of many narrow cells where
    they are continuous.
    """
    left, right = population
    if left.decimals is not None:
        values = np.arange(0, 10**left.decimals + 1) / 10**left.decimals
        half = 0.5 / 10**left.decimals
        ends = np.concatenate([values - half, values[-1:] + half])
    else:
        cells = _CELLS_OF_KERNELS if "mmd" in metrics else _CELLS
        tails = np.geomspace(1e-10, 1e-3, cells // 12, endpoint=False)
        shares = np.concatenate([tails, np.linspace(1e-3, 1 - 1e-3, cells), 1 - tails[::-1]])
        ends = np.unique(np.concatenate([side.continuous.ppf(shares) for side in population]))
        values = (ends[1:] + ends[:-1]) / 2
    masses = [side.cells(ends) for side in population]
    if left.at_zero or right.at_zero:
        values, masses = (
            np.insert(values, 0, 0.0),
            [
                np.insert(mass, 0, side.at_zero)
                for mass, side in zip(masses, population, strict=True)
            ],
        )
    return {
        name: float(value) for name, value in plug_in_distances(values, *masses, metrics).items()
    }


def draw_weights(kind: str, size: int, generator: np.random.Generator) -> Floats | None:
    """Weights that say nothing of the score; heavy ones leave about 37 in 100 samples."""
    if kind == "none":
        return None
    return (
        generator.uniform(0.5, 1.5, size) if kind == "mild" else generator.lognormal(0.0, 1.0, size)
    )


class Scenario(NamedTuple):
    """One line of the table."""

    population: str
    sizes: tuple[int, int]
    weights: str
    metrics: tuple[str, ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """Total variation is looked at where scores repeat; elsewhere it is 1 between any two
        samples.
        """
        repeats = POPULATIONS[self.population][0].decimals is not None
        return tuple(metric for metric in self.metrics if repeats or metric != "total_variation")

    def key(self, piece: int) -> str:
        """What a finished piece of work is known by."""
        return json.dumps([__version__, RESAMPLES, *self, piece])


class Tally(NamedTuple):
    """What became of the intervals of one metric in some data sets."""

    data_sets: int = 0
    given: int = 0  # data sets that have an interval
    above: int = 0  # intervals that lie above the truth
    below: int = 0
    width: float = 0.0  # their sum, in units of the truth (of a truth of 0: as it is)

    @property
    def covered(self) -> float:
        """The share of intervals that hold the truth."""
        return 1 - (self.above + self.below) / self.given if self.given else float("nan")


def tally(ends: Sequence[Interval | None], truth: float) -> Tally:
    """How often the truth lies between the ends; the last digits of a truth that is itself
    computed are let pass.
    """
    bounds = np.array(
        [(interval.low, interval.high) for interval in ends if interval is not None]
    ).reshape(-1, 2)
    above = int((bounds[:, 0] > truth * (1 + 1e-6) + 1e-12).sum())
    below = int((bounds[:, 1] < truth * (1 - 1e-6) - 1e-12).sum())
    return Tally(
        len(ends),
        len(bounds),
        above,
        below,
        float(np.diff(bounds).sum()) / (truth if truth > 1e-9 else 1.0),
    )


def added(tallies: Iterable[Tally]) -> Tally:
    """One tally of them all."""
    return Tally(*(sum(column) for column in zip(*tallies, strict=True)))


def piece_of_work(scenario: Scenario, piece: int) -> dict[str, Tally]:
    """The intervals of ``PIECE`` data sets, by metric."""
    torch.set_num_threads(1)
    seed = [
        piece,
        *scenario.sizes,
        list(POPULATIONS).index(scenario.population),
        WEIGHTS.index(scenario.weights),
    ]
    generator = np.random.default_rng(seed)
    intervals: dict[str, list[Interval | None]] = {metric: [] for metric in scenario.shown}
    on_left = np.arange(sum(scenario.sizes)) < scenario.sizes[0]
    for _ in range(PIECE):
        laws = zip(POPULATIONS[scenario.population], scenario.sizes, strict=True)
        values, place = np.unique(
            np.concatenate([law.draw(size, generator) for law, size in laws]), return_inverse=True
        )
        weight = draw_weights(scenario.weights, len(place), generator)
        amount = np.ones(len(place)) if weight is None else weight
        sides = [
            np.bincount(place[side], amount[side], len(values)) for side in (on_left, ~on_left)
        ]
        rows = None if weight is None else Rows.single(place, weight * on_left, weight * ~on_left)
        few, few_rows = merge_scores(TwoSamples(values, *sides), rows, RESOLUTION)
        resampled = bootstrap(
            few,
            scenario.shown,
            confidence=CONFIDENCE,
            resamples=RESAMPLES,
            generator=generator,
            rows=few_rows,
        )
        for metric, ends in intervals.items():
            ends.append(resampled.alone.get(metric))
    truth = true_distances(POPULATIONS[scenario.population], scenario.shown)
    return {metric: tally(ends, truth[metric]) for metric, ends in intervals.items()}


def scenarios() -> Iterator[Scenario]:
    """All of them, the quick ones first."""
    for metrics, sizes in ((USUAL, SIZES), (OTHERS, SIZES_OF_OTHERS)):
        for pair in sizes:
            for weights in WEIGHTS:
                yield from (Scenario(name, pair, weights, metrics) for name in POPULATIONS)


def work(store: Path, data_sets: int, others: int, jobs: int) -> dict[Scenario, dict[str, Tally]]:
    """What the store holds, and what is missing from it computed and added to it."""
    store.parent.mkdir(exist_ok=True)
    done = _finished(store)
    pieces = {
        case: -(-(data_sets if case.metrics == USUAL else others) // PIECE) for case in scenarios()
    }
    tasks = [
        (case, piece)
        for piece in range(max(pieces.values()))
        for case in pieces
        if piece < pieces[case]
    ]
    missing = [pair for pair in tasks if pair[0].key(pair[1]) not in done]
    with store.open("a") as file:
        results = run_parallel(lambda pair: piece_of_work(*pair), missing, jobs)
        for (case, piece), tallies in zip(missing, results, strict=True):
            done[case.key(piece)] = tallies
            file.write(json.dumps([case.key(piece), tallies]) + "\n")
            file.flush()
    return {
        case: {
            metric: added(done[case.key(piece)][metric] for piece in range(count))
            for metric in case.shown
        }
        for case, count in pieces.items()
        if count
    }


def _finished(store: Path) -> dict[str, dict[str, Tally]]:
    if not store.exists():
        return {}
    lines = store.read_text().split("\n")[:-1]  # a killed process leaves a last one that has no end
    store.write_text("".join(f"{line}\n" for line in lines))
    return {
        key: {metric: Tally(*numbers) for metric, numbers in tallies.items()}
        for key, tallies in map(json.loads, lines)
    }


_ABOUT = f"""# Coverage of confidence intervals

This page shows how often the {100 * CONFIDENCE:.0f} % intervals of an audit contain the true distance.
`python -m benchmarks.intervals` draws data sets from populations with known distances and audits them
({RESAMPLES} resamples). Every cell has the share of intervals that contain the true distance, then their mean width in
units of that distance (in score units if it is 0).
Each share should be at least {100 * AT_LEAST:.0f} %; smaller ones are in bold.

There is no interval if a group has fewer than {FEWEST} samples, or weights w with an effective size (sum w)² / sum w²
below that. The share of data sets with an interval is then given in brackets.

Populations: *null* uniform, both equal; *null, skew* lognormal, both equal; *ties* beta(2, 3) and beta(3, 2) rounded
to one decimal; *shift* normal, shifted by 0.5 or 2; *beta* the same, not rounded; *lognormal* shifted by 0.5 on the
logarithmic scale; *spike* uniform with 30 % and 50 % at 0; *binary* 30 % and 50 % ones; *rare* 5 % and 30 % ones.
Weights are independent of the score: *mild* uniform from 0.5 to 1.5, *heavy* lognormal (100 samples are worth 37)."""


def page(result: dict[Scenario, dict[str, Tally]]) -> str:
    """The tables in Markdown."""
    lines = [_ABOUT]
    for metrics, title in ((USUAL, "The usual metrics"), (OTHERS, "The other metrics")):
        rows = {
            case: tallies for case, tallies in result.items() if case.metrics == metrics and tallies
        }
        if not rows:
            continue
        count = {cell.data_sets for tallies in rows.values() for cell in tallies.values()}
        error = 100 * (CONFIDENCE * (1 - CONFIDENCE) / min(count)) ** 0.5
        lines += ["", f"## {title}", ""]
        lines += [
            f"{min(count):,} data sets each: the standard error of a share is {error:.1f} points."
        ]
        lines += [
            "",
            f"| sizes | weights | population | {' | '.join(metrics)} |",
            "|---" * (3 + len(metrics)) + "|",
        ]
        for case, tallies in rows.items():
            cells = [_cell(tallies.get(metric)) for metric in metrics]
            lines.append(
                f"| {case.sizes[0]}/{case.sizes[1]} | {case.weights} | {case.population} | "
                f"{' | '.join(cells)} |"
            )
        covered = [
            cell.covered for tallies in rows.values() for cell in tallies.values() if cell.given
        ]
        below = f"Cells below {100 * AT_LEAST:.0f} %: {sum(share < AT_LEAST for share in covered)} of {len(covered)}."
        lines += ["", f"Lowest: {100 * min(covered, default=1.0):.1f} %. {below}"]
    return "\n".join(lines) + "\n"


def _cell(tally: Tally | None) -> str:
    if tally is None or not tally.given:
        return "-" if tally is None else "no interval"
    share = f"{100 * tally.covered:.1f} %"
    share_given = (
        "" if tally.given == tally.data_sets else f" [{100 * tally.given / tally.data_sets:.0f} %]"
    )
    return f"{share if tally.covered >= AT_LEAST else f'**{share}**'}, {tally.width / tally.given:.2f}{share_given}"


def main() -> None:
    """Compute what is missing and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intervals", description=__doc__)
    parser.add_argument(
        "--data-sets", type=int, default=2000, help="for each of the usual metrics' cells (2,000)"
    )
    parser.add_argument(
        "--others", type=int, default=2000, help="for each of the other metrics' cells (2,000)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--store", type=Path, default=STORE, help="finished pieces of work")
    parser.add_argument(
        "--out", type=Path, default=Path("docs/results/intervals.md"), help="the page"
    )
    args = parser.parse_args()
    replace_file(args.out, page(work(args.store, args.data_sets, args.others, args.jobs)).encode())
    print(f"Written: {args.out.resolve()}")


if __name__ == "__main__":
    from benchmarks import intervals  # noqa: PLW0406  # workers find what lies in a module by its name, not what is run

    intervals.main()
