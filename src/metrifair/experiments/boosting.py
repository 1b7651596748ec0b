"""Boosted trees against the network, with the same penalty, splits and measures; and another library's reduction."""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair import datasets
from metrifair.choices import require
from metrifair.datasets.record import Dataset
from metrifair.estimators import FairClassifier, FairRegressor, fit_stack
from metrifair.measuring import unfairness
from metrifair.progress import Progress
from metrifair.report.charts import save_picture
from metrifair.writing import replace_file

STRENGTHS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1_000.0)
FINE = (2.0, 3.5, 4.0, 5.0, 7.0)  # of Adult's boosters besides: around the targets of docs/boosting.md
BOUNDS = (0.1, 0.05, 0.02)  # of the reduction: the demographic parity it is asked for
SETS: dict[str, tuple[str, dict[str, str]]] = {
    "adult": ("adult", {}),
    "compas": ("compas", {}),
    "drug": ("drug", {"target": "cannabis"}),
    "communities": ("communities", {}),
    "communities (regression)": ("communities", {"task": "regression"}),
    "student-math": ("student-math", {}),
    "student-portuguese": ("student-portuguese", {}),
}
REDUCTION = "fairlearn on LightGBM"

_THREADS = max(1, int(os.environ.get("OMP_NUM_THREADS", "0")) or (os.cpu_count() or 1))


@dataclass(frozen=True)
class Row:
    """One model on the test rows of its split."""

    data: str
    method: str
    strength: float  # of the penalty; of the reduction, the bound
    seed: int
    accuracy: float  # or R2
    unfairness: float  # Kolmogorov distance of the scores
    decision_unfairness: float  # of the decisions; of a regressor, that of its predictions


class Pace(NamedTuple):
    """How boosters are trained, and what their names say of it."""

    rounds: int
    learning_rate: float
    suffix: str = ""


USUAL, SLOWER, _QUICK = Pace(100, 0.1), Pace(200, 0.05, ", slower"), Pace(20, 0.1)


class Case(NamedTuple):
    """A data set cut into training and test rows."""

    name: str
    regression: bool
    X: NDArray[Any]
    y: NDArray[Any]
    a: NDArray[Any]
    train: NDArray[Any]
    test: NDArray[Any]


def run(out: Path, *, seeds: int = 3, quick: bool = False) -> None:
    """Train everything, and write ``boosting.csv``, ``boosting.md`` and ``boosting.svg`` into the folder ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    rows = list(points(seeds=1 if quick else seeds, quick=quick))
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    replace_file(out / "boosting.csv", text.getvalue().encode())
    replace_file(out / "boosting.md", table(rows).encode())
    save_picture(figure(rows), out / "boosting.svg")


def points(*, seeds: int, quick: bool = False) -> Iterator[Row]:
    """All models on all data sets, one split per seed; where a split is prescribed there is one seed."""
    names = ["compas", "student-math"] if quick else list(SETS)
    strengths = (0.0, 1.0, 10.0) if quick else STRENGTHS
    pace = _QUICK if quick else USUAL
    with Progress("boosting", total=len(names)) as progress:
        for done, name in enumerate(names):
            progress.show(done)
            data = datasets.load(SETS[name][0], **SETS[name][1])
            for seed in range(seeds if data.prescribed is None else 1):
                case = _case(name, data, seed)
                yield from _network(case, strengths, seed)
                if name == "adult":
                    yield from adult_boosted(case, seed)
                    yield from _reduction(case, pace)
                else:
                    yield from _boosted(case, strengths, seed, pace)


def adult_boosted(case: Case, seed: int) -> Iterator[Row]:
    """Adult's boosters: more strengths, at two paces."""
    for pace in (USUAL, SLOWER):
        yield from _boosted(case, sorted((*STRENGTHS, *FINE)), seed, pace)


def _case(name: str, data: Dataset, seed: int) -> Case:
    X, y, a = (np.asarray(part) for part in (data.X, data.y, data.sensitive_features))
    return Case(name, data.task == "regression", X, y, a, *data.split(seed))


def _network(case: Case, strengths: Sequence[float], seed: int) -> Iterator[Row]:
    kind = FairRegressor if case.regression else FairClassifier
    X, y, a = (part[case.train] for part in (case.X, case.y, case.a))
    models = fit_stack(kind(), X, y, strengths=strengths, seeds=[seed], sensitive_features=a)
    for strength, model in zip(strengths, models, strict=True):
        if model is not None:
            yield _judged(case, "network", strength, seed, model)


def _boosted(case: Case, strengths: Sequence[float], seed: int, pace: Pace) -> Iterator[Row]:
    from metrifair.boosting.lgbm import FairLGBMClassifier, FairLGBMRegressor  # noqa: PLC0415  (an extra)
    from metrifair.boosting.xgb import FairXGBClassifier, FairXGBRegressor  # noqa: PLC0415

    common: dict[str, Any] = {"n_estimators": pace.rounds, "learning_rate": pace.learning_rate}
    common |= {"n_jobs": _THREADS, "random_state": seed}
    lgbm, xgb = (FairLGBMRegressor, FairXGBRegressor) if case.regression else (FairLGBMClassifier, FairXGBClassifier)
    kinds = {"LightGBM": partial(lgbm, verbose=-1, **common), "XGBoost": partial(xgb, **common)}
    for method, kind in kinds.items():
        for strength in strengths:
            model = kind(strength=strength).fit(
                case.X[case.train], case.y[case.train], sensitive_features=case.a[case.train]
            )
            yield _judged(case, method + pace.suffix, strength, seed, model)


def _judged(case: Case, method: str, strength: float, seed: int, model: Any) -> Row:
    X, y = case.X[case.test], case.y[case.test]
    decided = model.predict(X)
    score = decided if case.regression else model.predict_proba(X)[:, 1]
    return Row(case.name, method, strength, seed, float(model.score(X, y)), *_gaps(case, score, decided))


def _gaps(case: Case, *several: Any) -> list[float]:
    groups = case.a[case.test]
    return [unfairness(None, np.asarray(values, dtype=float), sensitive_features=groups) for values in several]


def _reduction(case: Case, pace: Pace) -> Iterator[Row]:
    """Exponentiated gradient, which reweights a plain booster again and again; nothing where fairlearn is absent."""
    try:
        reductions: Any = require("fairlearn.reductions", extra="dev", purpose="the comparison")
    except ImportError:
        return
    lightgbm: Any = require("lightgbm", extra="boosting", purpose="the comparison")
    X, y, a = (part[case.train] for part in (case.X, case.y, case.a))
    for bound in BOUNDS:
        settings = {"n_estimators": pace.rounds, "learning_rate": pace.learning_rate, "n_jobs": _THREADS}
        plain = lightgbm.LGBMClassifier(**settings, verbose=-1)
        parity = reductions.DemographicParity(difference_bound=bound)
        model = reductions.ExponentiatedGradient(plain, parity, max_iter=15)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions between fairlearn and pandas
            model.fit(X, y, sensitive_features=a)
            chance = model._pmf_predict(case.X[case.test])[:, 1]  # its decisions are drawn with these
            decided = model.predict(case.X[case.test], random_state=0)
        right = float((decided == case.y[case.test]).mean())
        yield Row(case.name, REDUCTION, bound, 0, right, *_gaps(case, chance, decided))


def table(rows: Sequence[Row]) -> str:
    """Means over seeds: accuracy (or R2) / Kolmogorov distance of the scores.

    >>> both = [Row("adult", "LightGBM", 1.0, 0, 0.87, 0.1, 0.1), Row("adult", "LightGBM", 1.0, 1, 0.85, 0.2, 0.1)]
    >>> print(table(both))
    Accuracy (or R²) / Kolmogorov distance of the scores, test rows, mean over seeds.
    <BLANKLINE>
    | data | method | strength 1 |
    |---|---|---|
    | adult | LightGBM | 0.860 / 0.150 |
    <BLANKLINE>
    """
    penalised = [row for row in rows if row.method != REDUCTION]
    text = "Accuracy (or R²) / Kolmogorov distance of the scores, test rows, mean over seeds.\n\n"
    text += _grid([row for row in penalised if row.strength in STRENGTHS])
    finer = [row for row in penalised if row.strength in FINE]
    if finer:
        text += (
            f"\nFurther strengths; slower: {SLOWER.rounds} rounds, learning rate {SLOWER.learning_rate}.\n\n"
            + _grid(finer)
        )
    return text + _reduction_table([row for row in rows if row.method == REDUCTION])


def _grid(rows: Sequence[Row]) -> str:
    strengths = sorted({row.strength for row in rows})
    lines = [f"| data | method | {' | '.join(f'strength {value:g}' for value in strengths)} |"]
    lines.append("|---|---|" + "---|" * len(strengths))
    for name, method in dict.fromkeys((row.data, row.method) for row in rows):
        cells = [_cell([r for r in rows if (r.data, r.method, r.strength) == (name, method, s)]) for s in strengths]
        lines.append(f"| {name} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(rows: Sequence[Row]) -> str:
    if not rows:
        return "–"
    return f"{fmean(row.accuracy for row in rows):.3f} / {fmean(row.unfairness for row in rows):.3f}"


def _reduction_table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    lines = [
        "",
        f"{REDUCTION} (exponentiated gradient, 15 models), adult: a bound on the decisions' gap, not on the scores'.",
        "",
        "| bound | accuracy | Kolmogorov of the scores | gap of the decisions |",
        "|---|---|---|---|",
    ]
    lines += [f"| {r.strength:g} | {r.accuracy:.3f} | {r.unfairness:.3f} | {r.decision_unfairness:.3f} |" for r in rows]
    return "\n".join(lines) + "\n"


def figure(rows: Sequence[Row]) -> Any:
    """Accuracy against unfairness, a panel for each data set, a line along the strengths for each method."""
    alt: Any = require("altair", extra="report", purpose="the figure of the experiment")
    keys = dict.fromkeys((row.data, row.method, row.strength) for row in rows)
    records = []
    for name, method, strength in keys:
        own = [row for row in rows if (row.data, row.method, row.strength) == (name, method, strength)]
        gap, accuracy = fmean(row.unfairness for row in own), fmean(row.accuracy for row in own)
        records.append(
            {"data": name, "method": method, "strength": strength, "gap": gap, "accuracy": max(accuracy, -0.2)}
        )
    panels = [
        alt.Chart(alt.Data(values=[record for record in records if record["data"] == name]), title=name)
        .mark_line(point=True)
        .encode(
            x=alt.X("gap:Q", title="Kolmogorov distance of the scores"),
            y=alt.Y("accuracy:Q", title="accuracy or R²", scale=alt.Scale(zero=False)),
            color=alt.Color("method:N", title=None),
            order="strength:Q",
        )
        .properties(width=260, height=190)
        for name in dict.fromkeys(record["data"] for record in records)
    ]
    return alt.concat(*panels, columns=3)
