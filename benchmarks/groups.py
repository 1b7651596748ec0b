"""Claims and power of the search for groups, and its cost.

`python -m benchmarks groups` measures all of it on few data sets; `python -m benchmarks.groups
[--nulls 1000] [--planted 200]` on as many as asked, which are the tables of docs/results/groups.md.
With `--adult FOLDER`, it searches the rows of the Adult data in that folder for groups whose high
incomes LightGBM misses, and draws docs/results/groups-1.svg.

Three alternatives search the same sets: the cells of a full crossing, a beam search, and the
bootstrap. Each alarms where its largest statistic exceeds a limit, and the limit is the one that 5%
of sets without any gap exceed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from benchmarks.timing import Claim, peak_memory_above, print_table, shrunk
from metrifair import find_groups
from metrifair.api.find_groups import GroupSearch
from metrifair.wording.groups import GROUP_KEYS, gap_columns, group_table

LEVELS = (
    (0.5, 0.5),
    (0.7, 0.2, 0.1),
    (0.4, 0.3, 0.2, 0.1),
    (0.6, 0.3, 0.1),
    (0.25, 0.25, 0.25, 0.25),
)
ROWS = 5_000
RATE = 0.3
GAP = 0.1
SIZES = (200, 500, 1_000)
TARGETS = (0.20, 0.80, 0.95)
LEAST = 30
_BEAM = 20
_SIGNIFICANCE = 0.05


class Data(NamedTuple):
    """Rows with known probabilities of a bad outcome."""

    X: dict[str, Any]
    probability: Any
    bad: Any
    weight: Any = None
    clusters: Any = None
    search_rows: Any = None

    def search(self) -> GroupSearch:
        return find_groups(
            None,
            None,
            self.X,
            outcome=self.bad,
            sample_weight=self.weight,
            clusters=self.clusters,
            search_rows=self.search_rows,
            min_rows=LEAST,
        )


def attributes(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    """Independent categories."""
    return {
        f"c{place}": np.array(list("uvwxyz"))[rng.choice(len(shares), rows, p=shares)]
        for place, shares in enumerate(LEVELS)
    }


def correlated(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    """Categories of one normal variable with a little noise each."""
    latent = rng.normal(size=rows)
    return {
        f"c{place}": np.array(list("uvwxyz"))[
            np.searchsorted(
                stats.norm.ppf(np.cumsum(shares)[:-1]), 0.9 * latent + 0.436 * rng.normal(size=rows)
            )
        ]
        for place, shares in enumerate(LEVELS)
    }


def _drawn(rng: np.random.Generator, X: dict[str, Any], probability: Any, **more: Any) -> Data:
    bad = (rng.random(len(probability)) < probability).astype(float)
    return Data(X, probability, bad, **more)


def thirty_rows(rng: np.random.Generator) -> Data:
    return _drawn(rng, attributes(rng, 1_000), np.full(1_000, RATE))


def rare(rng: np.random.Generator) -> Data:
    return _drawn(rng, attributes(rng, ROWS), np.full(ROWS, 0.02))


def with_correlation(rng: np.random.Generator) -> Data:
    return _drawn(rng, correlated(rng, ROWS), np.full(ROWS, RATE))


def weighted(rng: np.random.Generator) -> Data:
    weight = rng.lognormal(sigma=0.7, size=2_000)
    return _drawn(rng, attributes(rng, 2_000), np.full(2_000, RATE), weight=weight)


def clustered(rng: np.random.Generator) -> Data:
    """Four rows of each person, whose outcomes are often the same."""
    person = np.repeat(np.arange(500), 4)
    X = {name: column[person] for name, column in attributes(rng, 500).items()}
    probability = np.full(2_000, RATE)
    own = (rng.random(500) < RATE)[person]
    bad = np.where(rng.random(2_000) < 0.8, own, rng.random(2_000) < RATE).astype(float)
    return Data(X, probability, bad, clusters=person)


def unequal(rng: np.random.Generator) -> Data:
    """Every level has an effect of its own: many groups are worse, and many claims are true."""
    X = attributes(rng, ROWS)
    odds = np.full(ROWS, stats.logistic.ppf(RATE))
    for column in X.values():
        effects = dict(zip(np.unique(column), rng.normal(scale=0.25, size=6), strict=False))
        odds += np.array([effects[value] for value in column])
    return _drawn(rng, X, stats.logistic.cdf(odds))


def split(rng: np.random.Generator) -> Data:
    return _drawn(rng, attributes(rng, ROWS), np.full(ROWS, RATE), search_rows=0.4)


NULLS: dict[str, Callable[[np.random.Generator], Data]] = {
    "groups of 30 rows": thirty_rows,
    "rare outcomes": rare,
    "correlated attributes": with_correlation,
    "weights": weighted,
    "clusters": clustered,
    "unequal groups": unequal,
    "search rows": split,
}


def members(X: dict[str, Any], conditions: Any) -> Any:
    """True for the rows of a group of categories."""
    return np.logical_and.reduce([X[part.column] == part.value for part in conditions])


def false_claims(data: Data, search: GroupSearch) -> bool:
    """Whether any claim of a search contradicts the probabilities of the rows."""
    weight = np.ones(len(data.bad)) if data.weight is None else data.weight
    if data.search_rows is not None or np.ptp(data.probability) == 0:
        return bool(search.record.worse) or search.largest_gaps[0].gap < 0

    def mean(rows: Any) -> float:
        return float(np.average(data.probability[rows], weights=weight[rows]))

    for group in search.record.worse:
        rows = members(data.X, group.conditions)
        gap = mean(rows) - mean(~rows)
        if gap <= 0 or gap < group.at_least - 1e-12:
            return True
        for parent in group.parents if group.is_worse_than_parents else ():
            others = members(data.X, parent.conditions) & ~rows
            if mean(rows) <= mean(others):
                return True
    largest = search.largest_gaps[0].gap
    return any(
        mean(rows) - mean(~rows) > largest + 1e-12 for rows in _masks(data.X) if rows.sum() >= LEAST
    )


def _masks(X: dict[str, Any]) -> Iterator[Any]:
    """The rows of groups of one and two conditions."""
    single = [(name, column == value) for name, column in X.items() for value in np.unique(column)]
    for _, rows in single:
        yield rows
    for (first, rows), (second, others) in combinations(single, 2):
        if first != second:
            yield rows & others


def false_alarms(name: str, sets: int) -> float:
    """The share of data sets with a false claim."""
    wrong = 0
    for number in range(sets):
        data = NULLS[name](np.random.default_rng([number, 1]))
        wrong += false_claims(data, data.search())
    return wrong / sets


class Counts(NamedTuple):
    """All groups of up to three conditions, counted: an enumeration of its own."""

    names: list[frozenset[tuple[str, str]]]
    rows: Any
    bad: Any
    all_rows: int
    all_bad: float

    @classmethod
    def of(cls, data: Data, most: int = 3) -> Counts:
        names, rows, bad = [], [], []
        codes = {name: np.unique(column, return_inverse=True) for name, column in data.X.items()}
        for size in range(1, most + 1):
            for used in combinations(data.X, size):
                shape = [len(codes[name][0]) for name in used]
                key = np.ravel_multi_index([codes[name][1] for name in used], shape)
                counts = np.bincount(key, minlength=int(np.prod(shape)))
                hits = np.bincount(key, data.bad, minlength=int(np.prod(shape)))
                for cell in np.flatnonzero(counts >= LEAST):
                    places = np.unravel_index(cell, shape)
                    pairs = zip(used, places, strict=True)
                    names.append(frozenset((name, codes[name][0][at]) for name, at in pairs))
                    rows.append(counts[cell])
                    bad.append(hits[cell])
        return cls(names, np.array(rows), np.array(bad), len(data.bad), data.bad.sum())

    @property
    def gaps(self) -> Any:
        others = (self.all_bad - self.bad) / (self.all_rows - self.rows)
        return self.bad / self.rows - others

    @property
    def studentized(self) -> Any:
        rate = self.all_bad / self.all_rows
        error = rate * (1 - rate) * (1 / self.rows + 1 / (self.all_rows - self.rows))
        return self.gaps / np.sqrt(error)


Statistic = Callable[[Data, Counts], tuple[list[Any], Any]]


def full_crossing(data: Data, _: Counts) -> tuple[list[Any], Any]:
    """The cells of all attributes, as a frame of metrics by group has them."""
    cells = Counts.of(data, len(data.X))
    whole = [place for place, name in enumerate(cells.names) if len(name) == len(data.X)]
    return [cells.names[place] for place in whole], cells.gaps[whole]


def beam_search(_: Data, counts: Counts) -> tuple[list[Any], Any]:
    """Depth three, the 20 best groups of each depth, by rows times gap (weighted accuracy)."""
    quality = counts.rows / counts.all_rows * counts.gaps
    beam: list[frozenset[Any]] = [frozenset()]
    visited = []
    for size in (1, 2, 3):
        near = [
            place
            for place, name in enumerate(counts.names)
            if len(name) == size and any(group < name for group in beam)
        ]
        visited += near
        best = sorted(near, key=lambda place: -quality[place])[:_BEAM]
        beam = [counts.names[place] for place in best]
    return [counts.names[place] for place in visited], quality[visited]


def bootstrap(_: Data, counts: Counts) -> tuple[list[Any], Any]:
    """The gap of each group, all with one limit."""
    return counts.names, counts.gaps


def studentized_bootstrap(_: Data, counts: Counts) -> tuple[list[Any], Any]:
    """The gap of each group in its standard errors, all with one limit."""
    return counts.names, counts.studentized


ALTERNATIVES: dict[str, Statistic] = {
    "full crossing": full_crossing,
    "beam search": beam_search,
    "bootstrap of gaps": bootstrap,
    "bootstrap of studentized gaps": studentized_bootstrap,
}


def limits(sets: int) -> dict[str, float]:
    """The limit of each alternative that a share of 5% of sets without a gap exceeds."""
    largest: dict[str, list[float]] = {name: [] for name in ALTERNATIVES}
    for number in range(sets):
        rng = np.random.default_rng([number, 2])
        data = _drawn(rng, attributes(rng, ROWS), np.full(ROWS, RATE))
        counts = Counts.of(data)
        for name, statistic in ALTERNATIVES.items():
            values = statistic(data, counts)[1]
            largest[name].append(float(values.max(initial=-1.0)))
    return {name: float(np.quantile(values, 0.95)) for name, values in largest.items()}


def planted(rng: np.random.Generator, size: int) -> tuple[Data, frozenset[tuple[str, str]]]:
    """Rows with one group of about this size that is worse by 10 points."""
    while True:
        data = _drawn(rng, attributes(rng, ROWS), np.full(ROWS, RATE))
        counts = Counts.of(data)
        near = np.flatnonzero(np.abs(counts.rows / size - 1) < 0.05)
        if len(near):
            break
    group = counts.names[int(rng.choice(near))]
    rows = np.logical_and.reduce([data.X[name] == value for name, value in group])
    return _drawn(rng, data.X, np.where(rows, RATE + GAP, RATE)), group


def power(size: int, sets: int, at_most: dict[str, float]) -> dict[str, float]:
    """The share of sets in which each method finds the planted group itself."""
    found = dict.fromkeys(("find_groups", "Holm, exact tests", *ALTERNATIVES), 0)
    for number in range(sets):
        data, group = planted(np.random.default_rng([number, size]), size)
        search = data.search()
        found["find_groups"] += group in [
            frozenset((part.column, part.value) for part in worse.conditions)
            for worse in search.record.worse
        ]
        counts = Counts.of(data)
        found["Holm, exact tests"] += group in _holm(counts)
        for name, statistic in ALTERNATIVES.items():
            names, values = statistic(data, counts)
            flagged = [names[place] for place in np.flatnonzero(values > at_most[name])]
            # A cell of the crossing has more conditions than the group that it belongs to.
            found[name] += any(
                group <= one if name == "full crossing" else group == one for one in flagged
            )
    return {name: count / sets for name, count in found.items()}


def _holm(counts: Counts) -> list[frozenset[tuple[str, str]]]:
    """Fisher's tests of all groups, with Holm's step-down."""
    p = stats.hypergeom.sf(counts.bad - 1, counts.all_rows, counts.all_bad, counts.rows)
    order = np.argsort(p)
    limit = _SIGNIFICANCE / np.arange(len(p), 0, -1)
    failed = np.flatnonzero(p[order] > limit)
    return [counts.names[place] for place in order[: failed[0] if len(failed) else len(p)]]


def cost() -> list[Claim]:
    """Processor time and memory of a million rows and about 10,000 groups."""
    rows = shrunk(1_000_000, 2_000)
    rng = np.random.default_rng(0)
    X = {
        f"c{place}": np.array(list("abcdefgh"))[rng.integers(levels, size=rows)]
        for place, levels in enumerate((2, 3, 4, 5, 6, 7, 5, 8, 4))
    }
    bad = (rng.random(rows) < RATE).astype(float)
    start = time.process_time()
    search = find_groups(None, None, X, outcome=bad)
    seconds = time.process_time() - start
    memory = peak_memory_above(lambda: None, lambda: find_groups(None, None, X, outcome=bad)) / 1e9
    measured = f"{seconds:.1f} s, {memory:.2f} GB, {search.record.searched:,} groups"
    claim = f"{rows:,} rows: processor time and memory"
    return [Claim(claim, measured, "<= 60 s, <= 1 GB", seconds <= 60 and memory <= 1)]


def alarm_claims(sets: int) -> list[Claim]:
    shares = {name: false_alarms(name, sets) for name in NULLS}
    return [
        Claim(f"sets with a false claim: {name}", f"{share:.1%}", "<= 5%", share <= 0.05)
        for name, share in shares.items()
    ]


def power_claims(nulls: int, sets: int) -> list[Claim]:
    at_most = limits(nulls)
    claims = []
    for size, target in zip(SIZES, TARGETS, strict=True):
        shares = power(size, sets, at_most)
        ours = shares.pop("find_groups")
        rest = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
        claim = f"planted gap of {GAP:.0%} in {size:,} rows found"
        claims.append(Claim(claim, f"{ours:.1%} ({rest})", f">= {target:.0%}", ours >= target))
    return claims


ADULT = (
    "age",
    "workclass",
    "weight",
    "education",
    "years of education",
    "marital status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital gain",
    "capital loss",
    "hours",
    "country",
    "income",
)
SEARCHED = ("age", "workclass", "education", "marital status", "occupation", "hours")


def adult(folder: Path, picture: Path) -> GroupSearch:
    """Groups whose high incomes a model without sex and race misses, among the test rows."""
    import lightgbm  # noqa: PLC0415  (of this example alone)
    import pandas as pd  # noqa: PLC0415  (the same)

    parts = [
        pd.read_csv(
            folder / name, names=ADULT, skipinitialspace=True, na_values="?", skiprows=skipped
        )
        for name, skipped in (("adult.data.gz", 0), ("adult.test.gz", 1))
    ]
    train_rows = len(parts[0])
    people = pd.concat(parts, ignore_index=True)
    income = people["income"].str.rstrip(".")
    X = people.drop(columns=["income", "sex", "race", "weight"])
    for name in X.columns:
        if not pd.api.types.is_numeric_dtype(X[name]):
            X[name] = X[name].astype("category")
    model = lightgbm.LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)
    model.fit(X[:train_rows], income[:train_rows] == ">50K")
    probability = model.predict_proba(X[train_rows:])[:, 1]
    tested = people[train_rows:]
    search = find_groups(
        income[train_rows:].to_numpy(),
        probability,
        tested[list(SEARCHED)],
        sensitive_features=tested[["sex", "race"]],
        outcome="missed positives",
        pos_label=">50K",
    )
    search.plot().figure_.savefig(picture, metadata={"Date": None})
    print(search)
    for columns, rows in (
        (group_table(search.record).pick(*GROUP_KEYS), search.groups),
        (gap_columns(search.record), search.largest_gaps),
    ):
        headings = " | ".join(column.heading for column in columns)
        print(f"\n| {headings} |\n" + "|---" * len(columns) + "|")
        for row in rows:
            print("| " + " | ".join(column.cell(row).text for column in columns) + " |")
    return search


def main(nulls: int = 100, sets: int = 50) -> None:
    nulls = shrunk(1_000 * nulls, 2_000) // 1_000
    sets = shrunk(1_000 * sets, 2_000) // 1_000
    print_table("Groups: false claims", alarm_claims(nulls))
    print_table("Groups: power", power_claims(nulls, sets))
    print_table("Groups: cost", cost())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nulls", type=int, default=1_000)
    parser.add_argument("--planted", type=int, default=200)
    parser.add_argument("--adult", type=Path, help="the folder of adult.data.gz and adult.test.gz")
    given = parser.parse_args()
    if given.adult is not None:
        adult(given.adult, Path("docs/results/groups-1.svg"))
    else:
        main(given.nulls, given.planted)
