"""The automatic choice on each data set of ``metrifair.datasets``, beside the best single
family in hindsight.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import r2_score, roc_auc_score

from experiments.duel_tables import without_chance
from experiments.page import Page, TextTable, circumstances, write_page
from experiments.settings import Effort, Protocol
from metrifair import DataError, Frontier, SearchOptions, datasets, frontier
from metrifair.metrics import kolmogorov_distance
from metrifair.support.files import write_file
from metrifair.support.parallel import run_parallel
from metrifair.tradeoff.portfolio import AUTO, STRENGTHS

LIMITS = (0.1, 0.15, 0.2)
FIRST_SEED = 460
ROWS = 2_000
TEST = 0.4
DAY = 86_400.0  # seconds

_PROTOCOL = (
    '`frontier("auto")` with all its group-blind families and without a time budget. Of larger '
    f"data sets, {ROWS:,} "
    f"rows are drawn. {TEST:.0%} of the rows are test rows, which the frontier does not see. "
    "`select` chooses at each limit, by AUC or R2 of out-of-fold scores of the other rows, and "
    "trains the choice on all of them. Splits are drawn from seed "
    f"{FIRST_SEED} on, which nothing else uses."
)
_COLUMNS = (
    "*Auto*: means over splits of the utility and the unfairness on test rows, and the families "
    "that were chosen. "
    "Unfairness is without what chance adds in quadrature. *Best family*: each family alone "
    "chooses its strength "
    "in the same way; the one with the best mean utility on test rows is shown, among those whose "
    "mean unfairness "
    "there is within the limit. It is known only afterwards. *Difference*: auto less the best "
    "family in utility, "
    "in hundredths, with its standard error if there are several splits; *missed*: the mean "
    "unfairness of auto is "
    "above the limit. If a frontier has no model within the limit, a constant counts. "
    "Few splits show little: most differences are noise."
)


class Chosen(NamedTuple):
    """The figures on test rows of the model that was chosen at one limit, on one split."""

    data: str
    seed: int
    limit: float
    among: str  # a family, or all of them: "auto"
    family: str  # of the model; empty: the constant predictor
    utility: float
    gap: float
    excess: float  # the gap without what chance adds to it


def run(_: Protocol, effort: Effort, out: Path, *, n_jobs: int = 1) -> None:
    """Train all families on every split, and write the choices and the page."""
    folder = out / "hindsight"
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [(name, FIRST_SEED + seed) for name in datasets.names() for seed in effort.seeds]
    work = partial(choices, rows=300 if effort.quick else ROWS, strengths=effort.some(STRENGTHS))
    records = [choice for part in run_parallel(work, jobs, n_jobs, threads=1) for choice in part]
    write_file(folder / "points.json", json.dumps(records).encode())
    notes = circumstances(effort, processes=n_jobs)
    write_page(hindsight_page(folder / "points.json", notes=notes), folder, "hindsight")


def choices(job: tuple[str, int], *, rows: int, strengths: Sequence[float]) -> list[Chosen]:
    """The models that are chosen on one split of a data set: among all families, and in each
    family.
    """
    name, seed = job
    data = datasets.load(name)
    sampled = np.random.default_rng(seed).permutation(len(data.y))[:rows]
    parts = (
        np.sort(sampled[round(TEST * len(sampled)) :]),
        np.sort(sampled[: round(TEST * len(sampled))]),
    )
    training, unseen = (
        Rows(data.X.iloc[part], data.y.iloc[part], data.sensitive_features.iloc[part])
        for part in parts
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model that comes out constant is one of the results
        front = frontier(
            AUTO,
            training.X,
            training.y,
            sensitive_features=training.groups,
            strengths=list(strengths),
            utility="r2" if data.task == "regression" else "auc",
            random_state=seed,
            search=SearchOptions(budget=DAY),  # enough for all families
        )
        return [
            Chosen(name, seed, limit, among, *_figures(front, among, limit, unseen))
            for limit in LIMITS
            for among in (AUTO, *front.record.parameters)
        ]


class Rows(NamedTuple):
    """Features, labels and groups."""

    X: Any
    y: Any
    groups: Any


def _figures(
    front: Frontier, among: str, limit: float, unseen: Rows
) -> tuple[str, float, float, float]:
    """Family, utility and unfairness of the choice among all families or in one, on test rows."""
    part = front if among == AUTO else front_of_family(front, among)
    try:
        model = part.select(max_unfairness=limit)
    except DataError:  # no model is within the limit
        return "", 0.0 if front.utility.name == "r2" else 0.5, 0.0, 0.0
    if front.utility.name == "r2":
        score = model.predict(unseen.X)
        utility = r2_score(unseen.y, score)
    else:
        score = model.predict_proba(unseen.X)[:, 1]
        utility = roc_auc_score(unseen.y, score)
    group = np.unique(unseen.groups, return_inverse=True)[1]
    gap = float(kolmogorov_distance(score[group == 0], score[group == 1]))
    excess = without_chance(gap, "kolmogorov", group)
    chosen: Any = part.chosen
    return chosen.family, float(utility), gap, excess


def front_of_family(front: Frontier, name: str) -> Frontier:
    """The frontier of the configurations of one family, on the same rows."""
    found = front._trade_off
    assert found.source is not None
    outcomes = [outcome for outcome in found.outcomes if outcome.job.family == name]
    return Frontier(replace(found, outcomes=outcomes, source=found.source.of_family(name)))


def hindsight_page(path: Path, *, notes: Sequence[str] = ()) -> Page:
    """The table of all data sets, made of the choices in a file."""
    records = [Chosen(*record) for record in json.loads(path.read_text("utf-8"))]
    splits = {
        name: len({record.seed for record in records if record.data == name})
        for name in dict.fromkeys(c.data for c in records)
    }
    done = "; ".join(f"{name}: {count}" for name, count in splits.items())
    lines = [
        _line([record for record in records if (record.data, record.limit) == (name, limit)])
        for name in splits
        for limit in LIMITS
    ]
    heading = [
        "data",
        "limit",
        "auto",
        "chosen families",
        "best family",
        "its figures",
        "difference",
    ]
    table: TextTable = [heading, *lines]
    return Page(
        title="The automatic choice, beside the best family in hindsight",
        notes=[_PROTOCOL, _COLUMNS, f"Splits of each data set: {done}.", *notes],
        tables={"Utility / unfairness on test rows": table},
        charts={},
    )


def _line(records: Sequence[Chosen]) -> list[str]:
    """One data set and limit."""
    by_name: dict[str, dict[int, Chosen]] = {}
    for record in records:
        by_name.setdefault(record.among, {})[record.seed] = record
    auto = by_name.pop(AUTO)
    able = {
        name: by_seed
        for name, by_seed in by_name.items()
        if fmean(record.excess for record in by_seed.values()) <= records[0].limit
    }
    first = [records[0].data, f"{records[0].limit:g}", _text(auto), _families(auto)]
    missed = "missed" if fmean(record.excess for record in auto.values()) > records[0].limit else ""
    if not able:
        return [*first, "none keeps the limit", "", missed]
    best = max(able, key=lambda name: fmean(record.utility for record in able[name].values()))
    apart = [100 * (record.utility - able[best][seed].utility) for seed, record in auto.items()]
    error = f" ± {stdev(apart) / len(apart) ** 0.5:.1f}" if len(apart) > 1 else ""
    return [*first, best, _text(able[best]), f"{fmean(apart):+.1f}{error} {missed}".rstrip()]


def _text(chosen: dict[int, Chosen]) -> str:
    return " / ".join(
        f"{fmean(getattr(record, name) for record in chosen.values()):.3f}"
        for name in ("utility", "excess")
    )


def _families(chosen: dict[int, Chosen]) -> str:
    """The families that were chosen, the most frequent first, with the number of splits."""
    names = [record.family or "constant" for record in chosen.values()]
    return ", ".join(
        f"{name} {names.count(name)}"
        for name in sorted(set(names), key=lambda name: (-names.count(name), name))
    )
