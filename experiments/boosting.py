"""Boosted trees against the network, with the same penalty, splits and measures; and another library's reduction."""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.data import Source, Splits, source
from experiments.page import Page, Table, circumstances, tradeoff_chart, write_page
from experiments.results import ModelResult, measured, write_csv
from experiments.runs import Run, all_results, finished
from experiments.settings import DATA, Effort, Protocol
from metrifair.checks import require
from metrifair.estimators import FairClassifier, FairRegressor, fit_stack
from metrifair.tradeoff.ledger import fingerprint

SETS = ("adult", "compas", "drug", "communities", "communities-regression", "student-math", "student-portuguese")
STRENGTHS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1_000.0)
FINE = (2.0, 3.5, 4.0, 5.0, 7.0)  # of Adult's boosters besides: around the targets of docs/boosting.md
BOUNDS = (0.1, 0.05, 0.02)  # of the reduction: the demographic parity it is asked for
TREES = ("LightGBM", "XGBoost")
NETWORK, REDUCTION = "network", "fairlearn on LightGBM"
_MODELS = 15  # that the reduction trains for each bound

_SETTINGS = (
    "The paper has no boosted trees: there are no printed values, and both protocols mean the same here. The penalty "
    "is the unbiased energy distance of predictions; inputs are unscaled, splits the paper's. The network "
    "(FairClassifier, FairRegressor) and the boosters have their defaults but for what is said here; one thread for "
    "each fit."
)
_ENTRIES = (
    "Entries: accuracy (or R²) / Kolmogorov distance of the scores, test rows, mean over seeds. Seconds of one fit; "
    "the network trains all strengths at once, and has its share of that."
)


class Pace(NamedTuple):
    """How boosters are trained, and what their names say of it."""

    rounds: int
    learning_rate: float
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.rounds} rounds, learning rate {self.learning_rate:g}"

    @property
    def parameters(self) -> dict[str, Any]:
        """One thread: sums of several threads, and with them the points, would depend on the machine."""
        return {"n_estimators": self.rounds, "learning_rate": self.learning_rate, "n_jobs": 1}


USUAL, SLOWER, _QUICK = Pace(100, 0.1), Pace(200, 0.05, ", slower"), Pace(20, 0.1)


@dataclass(frozen=True)
class Sweep:
    """What is one run: one method on one split, at several strengths."""

    data: str
    method: str
    seed: int
    strengths: tuple[float, ...]  # of the reduction, its bounds
    pace: Pace

    @property
    def regression(self) -> bool:
        """Whether amounts are predicted."""
        return DATA[self.data].task == "regression"


class Predictions(NamedTuple):
    """What a model says of the test rows."""

    strength: float
    score: NDArray[Any]
    decided: NDArray[Any]  # of a regressor, the scores
    seconds: float


def run(_: Protocol, effort: Effort, out: Path, *, n_jobs: int = 1) -> None:
    """Write the points, their figure and their page: one page, whatever the protocol."""
    modules = [require(name, extra="boosting", purpose="the experiment") for name in ("lightgbm", "xgboost")]
    results = all_results(finished(runs(source(effort), effort), out / "ledger.db", n_jobs=n_jobs))
    write_csv(out / "boosting.csv", results)
    settings = (
        f"Boosters: {_QUICK if effort.quick else USUAL}; slower: {SLOWER}. Reduction: {_MODELS} models for each bound. "
        f"{', '.join(f'{module.__name__} {module.__version__}' for module in modules)}."
    )
    page = boosting_page(results, notes=[settings, *circumstances(effort, processes=n_jobs)])
    write_page(page, out, "boosting")


def runs(arrays: Source, effort: Effort) -> list[Run]:
    """All methods on all data sets, one split per seed; where a split is prescribed there is one seed."""
    code, found = inspect.getsource(sys.modules[__name__]), []
    for name in ("compas", "student-math") if effort.quick else SETS:
        splits = arrays(name, "raw")
        for seed in effort.seeds[:1] if splits.prescribed else effort.seeds:
            for one in sweeps(name, seed, quick=effort.quick):
                key = fingerprint([splits.fingerprint([seed]), repr(one), code])
                title = f"boosting {name} {one.method}{one.pace.suffix} seed {seed} {key[:16]}"
                found.append(Run(title, partial(trained, one, splits), size=len(splits.x)))
    return found


def sweeps(name: str, seed: int, *, quick: bool) -> list[Sweep]:
    """What is trained on one split; Adult's boosters at more strengths and at two paces, and the reduction."""
    strengths, pace = ((0.0, 1.0, 10.0), _QUICK) if quick else (STRENGTHS, USUAL)
    found = [Sweep(name, NETWORK, seed, strengths, pace)]
    if name != "adult":
        return found + [Sweep(name, method, seed, strengths, pace) for method in TREES]
    finer = tuple(sorted((*STRENGTHS, *FINE)))
    found += [Sweep(name, method, seed, finer, own) for own in (USUAL, SLOWER) for method in TREES]
    if find_spec("fairlearn") is not None:  # needed for nothing else: without it the comparison is left out
        found.append(Sweep(name, REDUCTION, seed, BOUNDS, USUAL))
    return found


def trained(sweep: Sweep, splits: Splits) -> list[ModelResult]:
    """The results of all models of a sweep."""
    train, test = splits.train[sweep.seed], splits.test[sweep.seed]
    known = [part[train] for part in (splits.x, splits.y, splits.a)]
    fit = {NETWORK: _network, REDUCTION: _reduction}.get(sweep.method, _boosted)
    found = []
    for one in fit(sweep, known, splits.x[test]):
        both = np.stack([one.score, one.decided]).astype(np.float64)
        figures = measured(both, splits.y[test], splits.a[test], classify=not sweep.regression)
        found.append(
            ModelResult(
                "boosting",
                "both",
                "raw",
                sweep.data,
                sweep.method + sweep.pace.suffix,
                one.strength,
                sweep.seed,
                accuracy=float(figures["accuracy"][1]),
                label_gap=float(figures["label_gap"][1]),
                kolmogorov=float(figures["kolmogorov"][0]),
                seconds=one.seconds,
            )
        )
    return found


def _predictions(model: Any, X: NDArray[Any], sweep: Sweep, strength: float, seconds: float) -> Predictions:
    decided = model.predict(X)
    return Predictions(strength, decided if sweep.regression else model.predict_proba(X)[:, 1], decided, seconds)


def _network(sweep: Sweep, known: Sequence[NDArray[Any]], unseen: NDArray[Any]) -> Iterator[Predictions]:
    kind = FairRegressor if sweep.regression else FairClassifier
    X, y, a = known
    start = time.perf_counter()
    models = fit_stack(kind(), X, y, strengths=sweep.strengths, seeds=[sweep.seed], sensitive_features=a)
    seconds = (time.perf_counter() - start) / len(sweep.strengths)
    for strength, model in zip(sweep.strengths, models, strict=True):
        if model is not None:  # one that diverged has no result
            yield _predictions(model, unseen, sweep, strength, seconds)


def _boosted(sweep: Sweep, known: Sequence[NDArray[Any]], unseen: NDArray[Any]) -> Iterator[Predictions]:
    import metrifair  # noqa: PLC0415  (the boosters are an extra)

    library = {"LightGBM": "LGBM", "XGBoost": "XGB"}[sweep.method]
    kind = getattr(metrifair, f"Fair{library}{'Regressor' if sweep.regression else 'Classifier'}")
    silent = {"verbose": -1} if sweep.method == "LightGBM" else {}
    X, y, a = known
    for strength in sweep.strengths:
        model = kind(strength, random_state=sweep.seed, **sweep.pace.parameters, **silent)
        start = time.perf_counter()
        model.fit(X, y, sensitive_features=a)
        yield _predictions(model, unseen, sweep, strength, time.perf_counter() - start)


def _reduction(sweep: Sweep, known: Sequence[NDArray[Any]], unseen: NDArray[Any]) -> Iterator[Predictions]:
    """Exponentiated gradient, which reweights a plain booster again and again."""
    reductions: Any = require("fairlearn.reductions", extra="dev", purpose="the comparison")
    lightgbm: Any = require("lightgbm", extra="boosting", purpose="the comparison")
    X, y, a = known
    for bound in sweep.strengths:
        plain = lightgbm.LGBMClassifier(**sweep.pace.parameters, verbose=-1)
        parity = reductions.DemographicParity(difference_bound=bound)
        model = reductions.ExponentiatedGradient(plain, parity, max_iter=_MODELS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions between fairlearn and pandas
            start = time.perf_counter()
            model.fit(X, y, sensitive_features=a)
            seconds = time.perf_counter() - start
            chance = model._pmf_predict(unseen)[:, 1]  # its decisions are drawn with these
            yield Predictions(bound, chance, model.predict(unseen, random_state=0), seconds)


# --- the page ---------------------------------------------------------------------------------------------------


def boosting_page(results: Sequence[ModelResult], *, notes: Sequence[str] = ()) -> Page:
    """Tables and figure."""
    penalised = [one for one in results if one.method != REDUCTION]
    tables = {"Boosters and network": means_table([one for one in penalised if one.strength in STRENGTHS])}
    if finer := [one for one in penalised if one.strength in FINE]:
        tables["Further strengths"] = means_table(finer)
    if reduced := [one for one in results if one.method == REDUCTION]:
        title = f"{REDUCTION} (exponentiated gradient): a bound on the decisions' gap, not on the scores'"
        heading = ["bound", "accuracy", "Kolmogorov of the scores", "gap of the decisions", "s"]
        lines = [
            [f"{r.strength:g}", f"{r.accuracy:.3f}", f"{r.kolmogorov:.3f}", f"{r.label_gap:.3f}", f"{r.seconds:.0f}"]
            for r in reduced
        ]
        tables[title] = [heading, *lines]
    sets = dict.fromkeys(one.data for one in results)
    seeds = {name: len({one.seed for one in results if one.data == name}) for name in sets}
    most = max(seeds.values())
    fewer = [f"{name} {count}" for name, count in seeds.items() if count < most]
    told = f"Seeds: {most}" + (f"; {', '.join(fewer)}, whose split is prescribed." if fewer else ".")
    return Page(
        title="Boosted trees",
        notes=[_SETTINGS, *notes, told, _ENTRIES],
        tables=tables,
        charts={"Accuracy against unfairness of the scores": tradeoff_chart(results, on="scores")},
    )


def means_table(results: Sequence[ModelResult]) -> Table:
    """Means over seeds: accuracy (or R2) / Kolmogorov distance of the scores.

    >>> one = ModelResult("boosting", "both", "raw", "adult", "LightGBM", 1.0, 0, 0.87, 0.1, 0.1, seconds=2.0)
    >>> two = ModelResult("boosting", "both", "raw", "adult", "LightGBM", 1.0, 1, 0.85, 0.1, 0.2, seconds=4.0)
    >>> means_table([one, two])[1]
    ['adult', 'LightGBM', '0.860 / 0.150', '3.00']
    """
    strengths = sorted({one.strength for one in results})
    lines = []
    for name, method in dict.fromkeys((one.data, one.method) for one in results):
        own = [one for one in results if (one.data, one.method) == (name, method)]
        texts = []
        for strength in strengths:
            part = [one for one in own if one.strength == strength]
            figures = f"{fmean(p.accuracy for p in part):.3f} / {fmean(p.kolmogorov for p in part):.3f}" if part else ""
            texts.append(figures or "–")
        lines.append([name, method, *texts, f"{fmean(one.seconds for one in own):.2f}"])
    return [["data", "method", *(f"strength {value:g}" for value in strengths), "s per fit"], *lines]
