"""Figures of docs/results/defaults.md (networks) and docs/results/boosting-notes.md (Adult) on
splits from 400 on.

``python -m experiments.fresh_splits networks FILE.jsonl`` trains networks at 25 strengths, with the
default epochs and with three times as many, and prints how often a larger strength is worse. ``...
boosters FILE.jsonl`` trains boosters on parts of Adult's training rows (its test rows are not
looked at) and prints accuracy and Kolmogorov distance of the rest. What the same sources have
written into FILE is not done again. ``--splits`` and ``--sets`` choose less.
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
    PenaltyOptions,
)
from metrifair.estimators import fit_stack
from metrifair.estimators.settings import schedule_for
from metrifair.metrics import energy_distance, kolmogorov_distance
from metrifair.tradeoff.ledger import fingerprint

Floats = NDArray[np.float64]

FIRST = 400
STRENGTHS = (0.0, *np.geomspace(0.03, 1_000, 21).tolist(), 1e4, 1e5, 1e6)
# sets that are asked for equal opportunity as well
OPPORTUNITY = ("compas", "drug", "communities", "adult")
SETS = (*OPPORTUNITY, "drug-heroin", "student-math", "student-portuguese", "communities-regression")
EPOCHS = {"as it is": 1, "three times the epochs": 3}
# of training rows and of test rows, for each strength
FIGURES = ("risk", "energy", "accuracy", "kolmogorov")
_HALF: dict[str, Any] = {"colsample_bytree": 0.5}
_FEW: dict[str, Any] = {"num_leaves": 15, "subsample": 0.7, "subsample_freq": 1}
BOOSTERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "LightGBM, 100 rounds at 0.1": (
        FairLGBMClassifier,
        {"n_estimators": 100, "learning_rate": 0.1},
    ),
    "LightGBM, 1,000 at 0.02": (
        FairLGBMClassifier,
        {"n_estimators": 1_000, "learning_rate": 0.02, **_HALF},
    ),
    "the same, 15 leaves": (
        FairLGBMClassifier,
        {"n_estimators": 1_000, "learning_rate": 0.02, **_HALF, **_FEW},
    ),
    "LightGBM, 2,000 at 0.01": (
        FairLGBMClassifier,
        {"n_estimators": 2_000, "learning_rate": 0.01, "colsample_bytree": 0.3},
    ),
    "XGBoost, 400 at 0.05": (
        FairXGBClassifier,
        {"n_estimators": 400, "learning_rate": 0.05, **_HALF},
    ),
}
_FEWER = 0.002  # accuracy that counts as less, where it is also two standard errors


def once(
    file: Path, jobs: Sequence[dict[str, Any]], work: Callable[..., Any]
) -> list[dict[str, Any]]:
    """Each job with the result of ``work``; results that the same sources have written into the
    file are reused.
    """
    version = fingerprint([sources(), inspect.getsource(sys.modules[__name__])])[:16]
    lines = file.read_text().splitlines() if file.exists() else []
    records = {
        json.dumps(record["job"]): record
        for record in map(json.loads, lines)
        if record["sources"] == version
    }
    with file.open("a") as output:
        for place, job in enumerate(jobs, 1):
            if (key := json.dumps(job)) not in records:
                records[key] = {"sources": version, "job": job, "found": work(**job)}
                output.write(json.dumps(records[key]) + "\n")
                output.flush()
                sys.stderr.write(f"{place} of {len(jobs)}: {key}\n")
    return [{**job, "found": records[json.dumps(job)]["found"]} for job in jobs]


# --- networks
# -------------------------------------------------------------------------------------------------------


def network_jobs(sets: Sequence[str], splits: Sequence[int]) -> list[dict[str, Any]]:
    """Every set, input and criterion, split and number of epochs."""
    return [
        {"data": name, "input": inputs, "criterion": criterion, "split": split, "epochs": epochs}
        for split, name, inputs, criterion, epochs in product(
            splits,
            sets,
            ("standard", "raw"),
            ("statistical_parity", "equal_opportunity"),
            EPOCHS.values(),
        )
        if criterion == "statistical_parity" or name in OPPORTUNITY
    ]


def networks(
    data: str,
    input: Input,  # noqa: A002
    criterion: str,
    split: int,
    epochs: int,
) -> list[list[list[float]]]:
    """The figures of training rows and of test rows for each strength."""
    splits, classify = load(data, input, seeds=1), DATA[data].task == "classification"
    # its test rows are not looked at
    rows = splits.train[0] if data == "adult" else np.arange(len(splits.y))
    train, test = train_test_split(rows, test_size=0.25, random_state=split)
    model = (FairClassifier if classify else FairRegressor)(
        model="mlp", criterion=criterion, penalty=PenaltyOptions(standardize=input == "standard")
    )
    if epochs != 1:
        model = clone(model).set_params(epochs=epochs * schedule_for(model, len(train)).epochs)
    y = splits.y.astype(int) if classify else splits.y
    models = fit_stack(
        model,
        splits.x[train],
        y[train],
        strengths=STRENGTHS,
        seeds=[split],
        sensitive_features=splits.a[train],
    )
    return [
        [
            _figures(fitted, splits, part, train, criterion, classify=classify)
            for part in (train, test)
        ]
        for fitted in models
    ]


def _figures(
    model: Any,
    splits: Splits,
    rows: NDArray[Any],
    train: NDArray[Any],
    criterion: str,
    *,
    classify: bool,
) -> list[float]:
    """Risk and energy distance as training sees them; accuracy or R2, and the Kolmogorov
    distance.
    """
    y, a = splits.y[rows], splits.a[rows]
    if classify:
        score = model.predict_proba(splits.x[rows])[:, 1]
        chance = np.clip(np.where(y == 1, score, 1 - score), 1e-12, None)
        risk, accuracy = -np.log(chance).mean(), ((score > 0.5) == y).mean()
    else:
        center, spread = splits.y[train].mean(), splits.y[train].std()
        score, target = ((part - center) / spread for part in (model.predict(splits.x[rows]), y))
        risk = ((score - target) ** 2).mean()
        accuracy = 1 - risk / target.var()
    compared = (y == 1) if criterion == "equal_opportunity" else np.ones(len(y), dtype=bool)
    sides = [score[compared & (a == group)] for group in (0, 1)]
    return [
        float(risk),
        float(energy_distance(*sides)),
        float(accuracy),
        float(kolmogorov_distance(*sides)),
    ]


def falls(accuracy: Floats, distance: Floats) -> list[float]:
    """Of (splits, strengths): by how much each strength but the first is worse than some smaller
    one, or 0.

    Worse is: less accurate by more than two paired standard errors and 0.002, at a distance that is
    no smaller.

    >>> [round(one, 2) for one in falls(np.array([[0.8, 0.9, 0.7]] * 2), np.array([[0.3, 0.2, 0.2]] * 2))]
    [0.0, 0.2]
    """
    largest = [0.0] * (accuracy.shape[1] - 1)
    for larger in range(1, accuracy.shape[1]):
        for smaller in range(larger):
            less = accuracy[:, smaller] - accuracy[:, larger]
            error = less.std(ddof=1) / len(less) ** 0.5
            closer = (distance[:, smaller] - distance[:, larger]).mean() > 0
            if not closer and less.mean() > max(2 * error, _FEWER):
                largest[larger - 1] = max(largest[larger - 1], float(less.mean()))
    return largest


def falls_table(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """How often a larger strength is worse, by either distance of the test rows; as trained,
    and chosen afterwards.
    """
    cases = dict.fromkeys(
        (record["data"], record["input"], record["criterion"]) for record in records
    )
    yield "| | task | falls by Kolmogorov | by energy | of | largest fall by either |\n|---|---|---|---|---|---|"
    for (name, epochs), lowest, task in product(
        EPOCHS.items(), (False, True), ("classification", "regression")
    ):
        by: dict[str, list[float]] = {"kolmogorov": [], "energy": []}
        for case in cases:
            figures = [
                np.array(record["found"])
                for record in records
                if (record["data"], record["input"], record["criterion"], record["epochs"])
                == (*case, epochs)
            ]
            if DATA[case[0]].task == task and len(figures) > 1:
                # axes: splits, strengths, figures
                test = np.stack([(_lowest(part) if lowest else part)[:, 1] for part in figures])
                for metric in by:
                    by[metric] += falls(
                        test[..., FIGURES.index("accuracy")], test[..., FIGURES.index(metric)]
                    )
        counts = [sum(loss > 0 for loss in losses) for losses in by.values()]
        most = " / ".join(f"{max(losses, default=0.0):.3f}" for losses in by.values())
        how = f"{name}, the lowest of all strengths" if lowest else name
        yield f"| {how} | {task} | {counts[0]} | {counts[1]} | {len(by['energy'])} | {most} |"


def _lowest(figures: Floats) -> Floats:
    """For each strength the model of any strength whose objective on the training rows is the
    lowest.
    """
    risk, energy = figures[:, 0, FIGURES.index("risk")], figures[:, 0, FIGURES.index("energy")]
    chosen: Floats = figures[(risk + np.array(STRENGTHS)[:, None] * energy).argmin(1)]
    return chosen


# --- boosters
# -------------------------------------------------------------------------------------------------------


def boosters(booster: str, strength: float, split: int, folds: int) -> list[float]:
    """Accuracy and Kolmogorov distance of the rows kept aside or, with folds, of the others by
    models without them.
    """
    splits = load("adult", "raw", seeds=1)
    rows, (kind, options) = splits.train[0], BOOSTERS[booster]
    x, y, a = splits.x[rows], splits.y[rows].astype(int), splits.a[rows]
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=split)
    parts = [(train, test)]
    if folds:
        cut = StratifiedKFold(folds, shuffle=True, random_state=split).split(
            train, 2 * y[train] + a[train]
        )
        parts, test = [(train[inner], train[outer]) for inner, outer in cut], train
    score = np.empty(len(y))
    for fit_rows, unseen in parts:
        model = kind(strength, random_state=split, n_jobs=1, **options)
        model.fit(x[fit_rows], y[fit_rows], sensitive_features=a[fit_rows])
        score[unseen] = model.predict_proba(x[unseen])[:, 1]
    sides = [score[test][a[test] == group] for group in (0, 1)]
    return [float(((score > 0.5) == y)[test].mean()), float(kolmogorov_distance(*sides))]


def boosters_table(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Means of rows kept aside and, in brackets, of the folds."""
    strengths = sorted({record["strength"] for record in records})
    yield (
        "| | "
        + " | ".join(f"strength {value:g}" for value in strengths)
        + " |\n|---|"
        + "---|" * len(strengths)
    )
    for name in dict.fromkeys(record["booster"] for record in records):
        cells = []
        for strength in strengths:
            part_records = [
                record
                for record in records
                if (record["booster"], record["strength"]) == (name, strength)
            ]
            aside, folds = (
                [record["found"] for record in part_records if (record["folds"] > 0) == is_fold]
                for is_fold in (False, True)
            )
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
    options = parser.parse_args(arguments)
    splits = range(FIRST, FIRST + (options.splits or {"networks": 10, "boosters": 4}[options.what]))
    if options.what == "networks":
        lines = falls_table(
            once(options.file, network_jobs(options.sets.split(","), splits), networks)
        )
    else:
        parts = product(
            splits,
            (2.0, 3.0),
            list(BOOSTERS)[: options.boosters],
            dict.fromkeys((0, options.folds)),
        )
        jobs = [
            {"booster": name, "strength": at, "split": split, "folds": folds}
            for split, at, name, folds in parts
        ]
        lines = boosters_table(once(options.file, jobs, boosters))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
