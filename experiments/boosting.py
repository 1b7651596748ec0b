"""Boosted trees against the network, with the same penalty, splits and measures; and another
library's reduction.
"""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import product
from math import isnan
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold

from experiments.baselines import Baseline, baseline_runs
from experiments.comparisons import sampling_floor
from experiments.data import Source, Splits, source
from experiments.page import Page, TextTable, circumstances, tradeoff_chart, write_page
from experiments.results import ModelResult, results_of, write_csv
from experiments.runs import Run, all_results, finished
from experiments.settings import DATA, Case, Effort, Protocol
from metrifair.estimators import FairClassifier, FairRegressor, fit_stack
from metrifair.metrics import kolmogorov_distance
from metrifair.support.checks import require

SETS = (
    "adult",
    "compas",
    "drug",
    "communities",
    "communities-regression",
    "mortgage",
    "student-math",
    "student-portuguese",
)
WITH_GROUP = ("adult", "compas", "drug", "communities")  # whose group is among the features
BLIND, OWN_GROUPS = ", blind", ", own groups"  # without that feature; expected_groups=False
CHOSEN = ", chosen for "  # a distance
STRENGTHS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1_000.0)
# for Adult's boosters: around the targets of docs/results/boosting-notes.md
FINE = (2.0, 2.5, 3.5, 4.0, 5.0, 7.0)
WITHIN = (0.045, 0.04)  # Kolmogorov distances that a strength is chosen for, on Adult
BOUNDS = (0.1, 0.05, 0.02)  # of the reduction: the demographic parity it is asked for
TREES = ("LightGBM", "XGBoost")
NETWORK, REDUCTION = "network", "fairlearn on LightGBM"
GAPS = (1.0, 10.0, 100.0)  # strengths at which training rows and test rows are compared
_MODELS = 15  # that the reduction trains for each bound

_SETTINGS = (
    "The paper has no boosted trees: there are no printed values, and both protocols mean the same "
    "here. The network "
    "(FairClassifier, FairRegressor) and the boosters have their defaults but for what is said "
    "here: the penalty is "
    "the energy distance of the training rows' predictions. Inputs are unscaled, splits the "
    "paper's; one thread for "
    "each fit. Blind: without the group among the features (Adult, COMPAS, Drug and Communities "
    "have it). Own groups: "
    "expected_groups=False."
)
_ENTRIES = (
    "Entries: accuracy (or R²) / Kolmogorov distance of the scores, test rows, mean over seeds; in "
    "brackets its "
    "standard error in units of the last digit. Seconds of one fit; the network trains all "
    "strengths at once, and has "
    "its share of that."
)
_FLOOR = (
    "Floor: the mean distance of two samples of one distribution, as large as the groups among the "
    "test rows. Lowest: "
    "the smallest of the mean distances over all strengths, test rows."
)


EITHER = Protocol("both", "prediction", floored=False, inputs=("raw",))


class Pace(NamedTuple):
    """How boosters are trained, and what their names say of it."""

    rounds: int
    learning_rate: float
    suffix: str = ""
    columns: float = 1.0  # the share that each tree sees

    def __str__(self) -> str:
        drawn = f", {self.columns:g} of the columns for each tree" if self.columns < 1 else ""
        return f"{self.rounds} rounds, learning rate {self.learning_rate:g}{drawn}"

    @property
    def parameters(self) -> dict[str, Any]:
        """One thread: sums of several threads, and with them the points, would depend on the
        machine.
        """
        drawn = {"colsample_bytree": self.columns} if self.columns < 1 else {}
        return {
            "n_estimators": self.rounds,
            "learning_rate": self.learning_rate,
            "n_jobs": 1,
            **drawn,
        }


USUAL, SLOWER, _QUICK = Pace(100, 0.1), Pace(200, 0.05, ", slower"), Pace(20, 0.1)
LONGER = Pace(400, 0.05, ", longer", columns=0.5)


def run(_: Protocol, effort: Effort, out: Path, *, n_jobs: int = 1) -> None:
    """Write the points, their figure and their page: one page, whatever the protocol."""
    modules = [
        require(name, extra="boosting", purpose="the experiment")
        for name in ("lightgbm", "xgboost")
    ]
    results = all_results(finished(runs(source(effort), effort), out / "ledger.db", n_jobs=n_jobs))
    write_csv(out / "boosting.csv", results)
    settings = (
        f"Boosters: {_QUICK if effort.quick else USUAL}; slower: {SLOWER}; longer: {LONGER}. "
        f"Reduction: {_MODELS} "
        "models for each bound. "
        f"{', '.join(f'{module.__name__} {module.__version__}' for module in modules)}."
    )
    page = boosting_page(results, notes=[settings, *circumstances(effort, processes=n_jobs)])
    write_page(page, out, "boosting")


def runs(arrays: Source, effort: Effort) -> list[Run]:
    """All methods on all data sets, one split per seed; where a split is prescribed there is
    one seed.
    """
    code, jobs = inspect.getsource(sys.modules[__name__]), []
    for name in ("compas", "student-math") if effort.quick else SETS:
        case = Case("boosting", EITHER, "raw", name, DATA[name])
        jobs += baseline_runs(case, methods(name, quick=effort.quick), arrays, effort, code=code)
    return jobs


def methods(name: str, *, quick: bool) -> list[Baseline]:
    """What is trained on one data set; Adult's boosters at more strengths and at three paces,
    and the reduction.
    """
    strengths: Sequence[float] = (0.0, 1.0, 10.0) if quick else STRENGTHS
    paces = [_QUICK if quick else USUAL]
    works: dict[str, Any] = {NETWORK: partial(_network, strengths=strengths)}
    if name == "adult":
        strengths, paces = sorted((*STRENGTHS, *FINE)), [USUAL, SLOWER, LONGER]
    for library, pace in product(TREES, paces):
        train = partial(_boosted, library=library, strengths=strengths, pace=pace)
        works[library + pace.suffix] = train
        if name in WITH_GROUP and not quick:
            works[library + pace.suffix + BLIND] = partial(train, blind=True)
        if pace is LONGER:
            chosen = partial(_chosen, library=library, pace=pace)
            works[library + pace.suffix + CHOSEN] = partial(chosen, blind=False)
            works[library + pace.suffix + BLIND + CHOSEN] = partial(chosen, blind=True)
    blind = BLIND if name in WITH_GROUP else ""  # where features tell all there is no difference
    works[TREES[0] + blind + OWN_GROUPS] = partial(
        _boosted,
        library=TREES[0],
        strengths=strengths,
        pace=paces[0],
        blind=bool(blind),
        expected_groups=False,
    )
    if name == "adult" and find_spec("fairlearn") is not None:  # needed for nothing else
        works[REDUCTION] = _reduction
    return [
        Baseline(method, work, one_by_one=True, seedless=True) for method, work in works.items()
    ]


def _network(
    case: Case, splits: Splits, effort: Effort, *, strengths: Sequence[float]
) -> list[ModelResult]:
    kind = FairClassifier if case.classify else FairRegressor
    model = kind(model="mlp")
    results = []
    for seed in effort.seeds:
        start, train = time.perf_counter(), splits.train[seed]
        X, y, group = splits.x[train], splits.y[train], splits.a[train]
        models = fit_stack(model, X, y, strengths=strengths, seeds=[seed], sensitive_features=group)
        seconds = (time.perf_counter() - start) / len(strengths)
        scores = [fitted and _scores(fitted, case, splits, seed) for fitted in models]
        results += results_of(
            case, splits, NETWORK, seed, strengths=strengths, scores=scores, seconds=seconds
        )
    return results


def _boosted(
    case: Case,
    splits: Splits,
    effort: Effort,
    *,
    library: str,
    strengths: Sequence[float],
    pace: Pace,
    blind: bool = False,
    expected_groups: bool = True,
) -> list[ModelResult]:
    make_model = _maker(library, pace, classify=case.classify, expected_groups=expected_groups)
    name = (
        library + pace.suffix + (BLIND if blind else "") + ("" if expected_groups else OWN_GROUPS)
    )
    seen = replace(splits, x=splits.without_group) if blind else splits
    results = []
    for seed in effort.seeds:
        train = splits.train[seed]
        for strength in strengths:
            model = make_model(strength, random_state=seed)
            start = time.perf_counter()
            model.fit(seen.x[train], seen.y[train], sensitive_features=seen.a[train])
            seconds = time.perf_counter() - start
            test, training = (
                results_of(
                    case,
                    rows,
                    name,
                    seed,
                    strengths=[strength],
                    scores=[_scores(model, case, rows, seed)],
                    seconds=seconds,
                )[0]
                for rows in (seen, replace(seen, test=seen.train))
            )
            results.append(replace(test, training=training.kolmogorov))
    return results


def _maker(library: str, pace: Pace, *, classify: bool, expected_groups: bool = True) -> Any:
    """Fair boosters of a library at a pace, by strength and seed."""
    import metrifair  # noqa: PLC0415  (the boosters are an extra)

    short, silent = {"LightGBM": ("LGBM", {"verbose": -1}), "XGBoost": ("XGB", {})}[library]
    kind = getattr(metrifair, f"Fair{short}{'Classifier' if classify else 'Regressor'}")
    return partial(kind, expected_groups=expected_groups, **pace.parameters, **silent)


def _chosen(
    case: Case, splits: Splits, effort: Effort, *, library: str, pace: Pace, blind: bool
) -> list[ModelResult]:
    """For each distance the smallest strength that keeps to it on training rows, scored by models
    without them.

    These models are of five folds; a model of all training rows is then judged on test rows.
    ``training`` is the distance that the choice was made by.
    """
    make_model, grid = _maker(library, pace, classify=True), sorted({*FINE, 3.0})
    seen = replace(splits, x=splits.without_group) if blind else splits
    results = []
    for seed in effort.seeds:
        rows = seen.train[seed]
        X, y, a = seen.x[rows], seen.y[rows], seen.a[rows]
        kind = 2 * y + a
        folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, kind))
        start, distances = time.perf_counter(), {}
        for strength in grid:
            score = np.zeros(len(rows))
            for inner, held_out in folds:
                model = make_model(strength, random_state=seed).fit(
                    X[inner], y[inner], sensitive_features=a[inner]
                )
                score[held_out] = model.predict_proba(X[held_out])[:, 1]
            distances[strength] = float(kolmogorov_distance(score[a == 0], score[a == 1]))
        for bound in WITHIN:
            fair = [strength for strength, distance in distances.items() if distance <= bound] or [
                max(distances)
            ]
            model = make_model(min(fair), random_state=seed).fit(X, y, sensitive_features=a)
            (result,) = results_of(
                case,
                seen,
                f"{library}{pace.suffix}{BLIND if blind else ''}{CHOSEN}{bound:g}",
                seed,
                strengths=[min(fair)],
                scores=[_scores(model, case, seen, seed)],
                seconds=time.perf_counter() - start,
            )
            results.append(replace(result, training=distances[min(fair)]))
    return results


def _scores(model: Any, case: Case, splits: Splits, seed: int) -> Any:
    X = splits.x[splits.test[seed]]
    return model.predict_proba(X)[:, 1] if case.classify else model.predict(X)


def _reduction(case: Case, splits: Splits, effort: Effort) -> list[ModelResult]:
    """Exponentiated gradient, which reweights a plain booster again and again."""
    reductions: Any = require("fairlearn.reductions", extra="dev", purpose="the comparison")
    lightgbm: Any = require("lightgbm", extra="boosting", purpose="the comparison")
    results = []
    for seed in effort.seeds:
        train, unseen = splits.train[seed], splits.x[splits.test[seed]]
        for bound in BOUNDS:
            plain = lightgbm.LGBMClassifier(**USUAL.parameters, verbose=-1)
            parity = reductions.DemographicParity(difference_bound=bound)
            model = reductions.ExponentiatedGradient(plain, parity, max_iter=_MODELS)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of versions between fairlearn and pandas
                start = time.perf_counter()
                model.fit(splits.x[train], splits.y[train], sensitive_features=splits.a[train])
                seconds = time.perf_counter() - start
                chance = model._pmf_predict(unseen)[:, 1]  # its decisions are drawn with these
                decisions = model.predict(unseen, random_state=0)
            # Its decisions are judged as they were drawn, its scores by the chances.
            scores = [chance, decisions]
            scored, decided = results_of(
                case, splits, REDUCTION, seed, strengths=[bound] * 2, scores=scores, seconds=seconds
            )
            results.append(replace(decided, kolmogorov=scored.kolmogorov))
    return results


# --- the page
# ---------------------------------------------------------------------------------------------------


def boosting_page(results: Sequence[ModelResult], *, notes: Sequence[str] = ()) -> Page:
    """Tables and figure; a model that diverged is in none."""
    results = [result for result in results if not result.failed]
    chosen = [result for result in results if CHOSEN in result.method]
    penalized = [
        result for result in results if result.method != REDUCTION and result not in chosen
    ]
    tables = {
        "Boosters and network": means_table(
            [result for result in penalized if result.strength in STRENGTHS]
        )
    }
    if finer := [result for result in penalized if result.strength in FINE]:
        tables["Further strengths"] = means_table(finer)
    if chosen:
        heading = [
            "method and distance",
            "strength",
            "Kolmogorov, training rows kept aside",
            "accuracy",
            "Kolmogorov",
        ]
        lines = [
            [
                r.method,
                f"{r.strength:g}",
                *(f"{value:.4f}" for value in (r.training, r.accuracy, r.kolmogorov)),
            ]
            for r in chosen
        ]
        tables[
            "Adult: the strength chosen by cross-validation of the training rows, test rows seen "
            "once"
        ] = [
            heading,
            *lines,
        ]
    if reduced := [result for result in results if result.method == REDUCTION]:
        title = f"{REDUCTION} (exponentiated gradient): a bound on the decisions' gap, not on the scores'"
        heading = ["bound", "accuracy", "Kolmogorov of the scores", "gap of the decisions", "s"]
        lines = [
            [
                f"{r.strength:g}",
                f"{r.accuracy:.3f}",
                f"{r.kolmogorov:.3f}",
                f"{r.label_gap:.3f}",
                f"{r.seconds:.0f}",
            ]
            for r in reduced
        ]
        tables[title] = [heading, *lines]
    if with_training := [result for result in penalized if not isnan(result.training)]:
        tables["Training rows against test rows: Kolmogorov distance of the scores"] = gaps_table(
            with_training
        )
    sets = dict.fromkeys(result.data for result in results)
    seeds = {name: len({result.seed for result in results if result.data == name}) for name in sets}
    most = max(seeds.values())
    fewer = [f"{name} {count}" for name, count in seeds.items() if count < most]
    seeds_text = f"Seeds: {most}" + (
        f"; {', '.join(fewer)}, whose split is prescribed." if fewer else "."
    )
    suffixes = (SLOWER.suffix, LONGER.suffix)
    shown = [
        result for result in results if not any(suffix in result.method for suffix in suffixes)
    ]
    return Page(
        title="Boosted trees",
        notes=[_SETTINGS, *notes, seeds_text, _ENTRIES, _FLOOR],
        tables=tables,
        charts={"Accuracy against unfairness of the scores": tradeoff_chart(shown, on="scores")},
    )


def means_table(results: Sequence[ModelResult]) -> TextTable:
    """Means over seeds: accuracy (or R2) / Kolmogorov distance of the scores.

    >>> one = ModelResult("boosting", "both", "raw", "adult", "LightGBM", 1.0, 0, 0.87, 0.1, 0.1, seconds=2.0)
    >>> two = ModelResult("boosting", "both", "raw", "adult", "LightGBM", 1.0, 1, 0.85, 0.1, 0.2, seconds=4.0)
    >>> means_table([one, two])[1]
    ['adult', 'LightGBM', '0.860(10) / 0.150(50)', '3.00']
    """
    strengths = sorted({result.strength for result in results})
    lines = []
    for name, method in dict.fromkeys((result.data, result.method) for result in results):
        group = [result for result in results if (result.data, result.method) == (name, method)]
        texts = []
        for strength in strengths:
            part = [result for result in group if result.strength == strength]
            figures = (
                [
                    mean_text([result.accuracy for result in part]),
                    mean_text([result.kolmogorov for result in part]),
                ]
                if part
                else ["–"]
            )
            texts.append(" / ".join(figures))
        lines.append([name, method, *texts, f"{fmean(result.seconds for result in group):.2f}"])
    return [
        ["data", "method", *(f"strength {value:g}" for value in strengths), "s per fit"],
        *lines,
    ]


def gaps_table(results: Sequence[ModelResult]) -> TextTable:
    """Means over seeds of the distance on training rows / on test rows, and how low the latter
    gets.
    """
    lines = []
    for name, method in dict.fromkeys((result.data, result.method) for result in results):
        group = [result for result in results if (result.data, result.method) == (name, method)]
        by_strength = {
            strength: [result for result in group if result.strength == strength]
            for strength in {result.strength for result in group}
        }
        texts = [
            " / ".join(
                mean_text([getattr(result, rows) for result in by_strength[strength]])
                for rows in ("training", "kolmogorov")
            )
            if strength in by_strength
            else "–"
            for strength in GAPS
        ]
        lowest = min(
            by_strength.values(), key=lambda part: fmean(result.kolmogorov for result in part)
        )
        floor = sampling_floor(*DATA[name].test_groups)
        lines.append(
            [
                name,
                method,
                *texts,
                mean_text([result.kolmogorov for result in lowest]),
                f"{floor:.3f}",
            ]
        )
    return [
        ["data", "method", *(f"strength {value:g}" for value in GAPS), "lowest", "floor"],
        *lines,
    ]


def mean_text(values: Sequence[float], digits: int = 3) -> str:
    """The mean, and in brackets its standard error in units of the last digit."""
    error = "" if len(values) == 1 else f"({10**digits * stdev(values) / len(values) ** 0.5:.0f})"
    return f"{fmean(values):z.{digits}f}{error}"
