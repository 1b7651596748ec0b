"""Figures of docs/results/defaults.md (networks) and docs/results/boosting-notes.md (Adult) on splits from 400 on.

``python -m experiments.fresh_splits networks FILE.jsonl`` trains networks at 25 strengths, with the default epochs and
with three times as many, and prints how often a larger strength is worse. ``... boosters FILE.jsonl`` trains boosters
on parts of Adult's training rows (its test rows are not looked at) and prints accuracy and Kolmogorov distance of the
rest. What the same sources have written into FILE is not done again. ``--splits`` and ``--sets`` choose less.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split

from experiments.data import Splits, load
from experiments.runs import sources
from experiments.settings import DATA, Input
from metrifair import (
    FairClassifier,
    FairLGBMClassifier,
    FairRegressor,
    FairXGBClassifier,
    energy_distance,
    kolmogorov_distance,
)
from metrifair.estimators import fit_stack
from metrifair.estimators.settings import schedule_for
from metrifair.tradeoff.ledger import fingerprint

Floats = NDArray[np.float64]

FIRST = 400
STRENGTHS = (0.0, *np.geomspace(0.03, 1_000, 21).tolist(), 1e4, 1e5, 1e6)
OPPORTUNITY = ("compas", "drug", "communities", "adult")  # sets that are asked for equal opportunity as well
SETS = (*OPPORTUNITY, "drug-heroin", "student-math", "student-portuguese", "communities-regression")
EPOCHS = {"as it is": 1, "three times the epochs": 3}
FIGURES = ("risk", "energy", "accuracy", "kolmogorov")  # of training rows and of test rows, for each strength
_HALF: dict[str, Any] = {"colsample_bytree": 0.5}
_FEW: dict[str, Any] = {"num_leaves": 15, "subsample": 0.7, "subsample_freq": 1}
BOOSTERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "LightGBM, 100 rounds at 0.1": (FairLGBMClassifier, {"n_estimators": 100, "learning_rate": 0.1}),
    "LightGBM, 1,000 at 0.02": (FairLGBMClassifier, {"n_estimators": 1_000, "learning_rate": 0.02, **_HALF}),
    "the same, 15 leaves": (FairLGBMClassifier, {"n_estimators": 1_000, "learning_rate": 0.02, **_HALF, **_FEW}),
    "LightGBM, 2,000 at 0.01": (
        FairLGBMClassifier,
        {"n_estimators": 2_000, "learning_rate": 0.01, "colsample_bytree": 0.3},
    ),
    "XGBoost, 400 at 0.05": (FairXGBClassifier, {"n_estimators": 400, "learning_rate": 0.05, **_HALF}),
}
_FEWER = 0.002  # accuracy that counts as less, where it is also two standard errors


def once(file: Path, jobs: Sequence[dict[str, Any]], work: Callable[..., Any]) -> list[dict[str, Any]]:
    """What ``work`` found of each job, beside the job; what the same sources have written into the file stays."""
    made = fingerprint([sources(), inspect.getsource(sys.modules[__name__])])[:16]
    lines = file.read_text().splitlines() if file.exists() else []
    known = {json.dumps(one["job"]): one for one in map(json.loads, lines) if one["sources"] == made}
    with file.open("a") as kept:
        for place, job in enumerate(jobs, 1):
            if (key := json.dumps(job)) not in known:
                known[key] = {"sources": made, "job": job, "found": work(**job)}
                kept.write(json.dumps(known[key]) + "\n")
                kept.flush()
                sys.stderr.write(f"{place} of {len(jobs)}: {key}\n")
    return [{**job, "found": known[json.dumps(job)]["found"]} for job in jobs]


# --- networks -------------------------------------------------------------------------------------------------------


def network_jobs(sets: Sequence[str], splits: Sequence[int]) -> list[dict[str, Any]]:
    """Every set, input and criterion, split and number of epochs."""
    return [
        {"data": name, "input": inputs, "criterion": criterion, "split": split, "epochs": epochs}
        for split, name, inputs, criterion, epochs in product(
            splits, sets, ("standard", "raw"), ("statistical_parity", "equal_opportunity"), EPOCHS.values()
        )
        if criterion == "statistical_parity" or name in OPPORTUNITY
    ]


def networks(data: str, input: Input, criterion: str, split: int, epochs: int) -> list[list[list[float]]]:  # noqa: A002
    """The figures of training rows and of test rows for each strength."""
    own, classify = load(data, input, seeds=1), DATA[data].task == "classification"
    rows = own.train[0] if data == "adult" else np.arange(len(own.y))  # its test rows are not looked at
    train, test = train_test_split(rows, test_size=0.25, random_state=split)
    model = (FairClassifier if classify else FairRegressor)(criterion=criterion, standardize=input == "standard")
    if epochs != 1:
        model = clone(model).set_params(epochs=epochs * schedule_for(model, len(train)).epochs)
    y = own.y.astype(int) if classify else own.y
    found = fit_stack(
        model, own.x[train], y[train], strengths=STRENGTHS, seeds=[split], sensitive_features=own.a[train]
    )
    return [[_figures(one, own, part, train, criterion, classify=classify) for part in (train, test)] for one in found]


def _figures(
    model: Any, own: Splits, rows: NDArray[Any], train: NDArray[Any], criterion: str, *, classify: bool
) -> list[float]:
    """Risk and energy distance as training sees them; accuracy or R2, and the Kolmogorov distance."""
    y, a = own.y[rows], own.a[rows]
    if classify:
        score = model.predict_proba(own.x[rows])[:, 1]
        chance = np.clip(np.where(y == 1, score, 1 - score), 1e-12, None)
        risk, accuracy = -np.log(chance).mean(), ((score > 0.5) == y).mean()
    else:
        center, spread = own.y[train].mean(), own.y[train].std()
        score, target = ((part - center) / spread for part in (model.predict(own.x[rows]), y))
        risk = ((score - target) ** 2).mean()
        accuracy = 1 - risk / target.var()
    meant = (y == 1) if criterion == "equal_opportunity" else np.ones(len(y), dtype=bool)
    sides = [score[meant & (a == group)] for group in (0, 1)]
    return [float(risk), float(energy_distance(*sides)), float(accuracy), float(kolmogorov_distance(*sides))]


def falls(accuracy: Floats, distance: Floats) -> list[float]:
    """Of (splits, strengths): by how much each strength but the first is worse than some smaller one, or 0.

    Worse is: less accurate by more than two paired standard errors and 0.002, at a distance that is no smaller.

    >>> [round(one, 2) for one in falls(np.array([[0.8, 0.9, 0.7]] * 2), np.array([[0.3, 0.2, 0.2]] * 2))]
    [0.0, 0.2]
    """
    found = [0.0] * (accuracy.shape[1] - 1)
    for larger in range(1, accuracy.shape[1]):
        for smaller in range(larger):
            less = accuracy[:, smaller] - accuracy[:, larger]
            error = less.std(ddof=1) / len(less) ** 0.5
            closer = (distance[:, smaller] - distance[:, larger]).mean() > 0
            if not closer and less.mean() > max(2 * error, _FEWER):
                found[larger - 1] = max(found[larger - 1], float(less.mean()))
    return found


def falls_table(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """How often a larger strength is worse, by either distance of the test rows; as trained, and chosen afterwards."""
    cases = dict.fromkeys((one["data"], one["input"], one["criterion"]) for one in records)
    yield "| | task | falls by Kolmogorov | by energy | of | largest fall by either |\n|---|---|---|---|---|---|"
    for (name, epochs), lowest, task in product(EPOCHS.items(), (False, True), ("classification", "regression")):
        by: dict[str, list[float]] = {"kolmogorov": [], "energy": []}
        for case in cases:
            own = [
                np.array(one["found"])
                for one in records
                if (one["data"], one["input"], one["criterion"], one["epochs"]) == (*case, epochs)
            ]
            if DATA[case[0]].task == task and len(own) > 1:
                test = np.stack([(_lowest(one) if lowest else one)[:, 1] for one in own])  # splits, strengths, figures
                for metric in by:
                    by[metric] += falls(test[..., FIGURES.index("accuracy")], test[..., FIGURES.index(metric)])
        counts = [sum(one > 0 for one in found) for found in by.values()]
        most = " / ".join(f"{max(found, default=0.0):.3f}" for found in by.values())
        how = f"{name}, the lowest of all strengths" if lowest else name
        yield f"| {how} | {task} | {counts[0]} | {counts[1]} | {len(by['energy'])} | {most} |"


def _lowest(found: Floats) -> Floats:
    """For each strength the model of any strength whose objective on the training rows is the lowest."""
    risk, energy = found[:, 0, FIGURES.index("risk")], found[:, 0, FIGURES.index("energy")]
    chosen: Floats = found[(risk + np.array(STRENGTHS)[:, None] * energy).argmin(1)]
    return chosen


# --- boosters -------------------------------------------------------------------------------------------------------


def boosters(booster: str, strength: float, split: int, folds: int) -> list[float]:
    """Accuracy and Kolmogorov distance of the rows kept aside or, with folds, of the others by models without them."""
    own = load("adult", "raw", seeds=1)
    rows, (kind, options) = own.train[0], BOOSTERS[booster]
    x, y, a = own.x[rows], own.y[rows].astype(int), own.a[rows]
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=split)
    parts = [(train, test)]
    if folds:
        cut = StratifiedKFold(folds, shuffle=True, random_state=split).split(train, 2 * y[train] + a[train])
        parts, test = [(train[one], train[other]) for one, other in cut], train
    score = np.empty(len(y))
    for known, unseen in parts:
        model = kind(strength, random_state=split, n_jobs=1, **options)
        model.fit(x[known], y[known], sensitive_features=a[known])
        score[unseen] = model.predict_proba(x[unseen])[:, 1]
    sides = [score[test][a[test] == group] for group in (0, 1)]
    return [float(((score > 0.5) == y)[test].mean()), float(kolmogorov_distance(*sides))]


def boosters_table(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Means of rows kept aside and, in brackets, of the folds."""
    strengths = sorted({one["strength"] for one in records})
    yield "| | " + " | ".join(f"strength {one:g}" for one in strengths) + " |\n|---|" + "---|" * len(strengths)
    for name in dict.fromkeys(one["booster"] for one in records):
        cells = []
        for strength in strengths:
            own = [one for one in records if (one["booster"], one["strength"]) == (name, strength)]
            aside, folds = ([one["found"] for one in own if (one["folds"] > 0) == kept] for kept in (False, True))
            means = ["{:.4f} / {:.4f}".format(*np.mean(part, 0)) for part in (aside, folds) if part]
            cells.append(means[0] + (f" ({means[1]})" if len(means) > 1 else ""))
        yield f"| {name} | " + " | ".join(cells) + " |"


def main(arguments: Sequence[str]) -> None:
    """The command line of this module."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.fresh_splits", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("what", choices=["networks", "boosters"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--splits", type=int, help="how many (10 of networks, 4 of boosters)")
    parser.add_argument("--sets", default=",".join(SETS), help="of networks, with commas between")
    parser.add_argument("--boosters", type=int, default=len(BOOSTERS), help="the first so many")
    parser.add_argument("--folds", type=int, default=5, help="of the other rows (5; 0: none)")
    given = parser.parse_args(arguments)
    splits = range(FIRST, FIRST + (given.splits or {"networks": 10, "boosters": 4}[given.what]))
    if given.what == "networks":
        lines = falls_table(once(given.file, network_jobs(given.sets.split(","), splits), networks))
    else:
        parts = product(splits, (2.0, 3.0), list(BOOSTERS)[: given.boosters], dict.fromkeys((0, given.folds)))
        jobs = [{"booster": name, "strength": at, "split": split, "folds": folds} for split, at, name, folds in parts]
        lines = boosters_table(once(given.file, jobs, boosters))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
