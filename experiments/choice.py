"""How often a chosen model keeps its limit on new rows, and what that costs: rules of choice on fresh splits.

Half of the rows are test rows, which no choice sees. Models are chosen by out-of-fold scores of the other half. The
splits are drawn from seeds that nothing else in this repository uses.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from experiments.comparisons import sampling_floor
from experiments.data import Source, Splits, source
from experiments.page import Page, TextTable, circumstances, write_page
from experiments.settings import Effort, Protocol
from metrifair import FairClassifier, FairLGBMClassifier, kolmogorov_distance
from metrifair.support.files import write_file
from metrifair.support.parallel import run_parallel
from metrifair.tradeoff.result import approximate_bound, without_chance

SETS = ("adult", "compas", "communities", "drug", "mortgage")
STRENGTHS = (0.0, 0.03, 0.1, 0.3, 0.6, 1.0, 2.0, 3.0, 6.0, 10.0, 30.0, 100.0)
FAMILIES: dict[str, Callable[[float], Any]] = {
    "linear": lambda strength: FairClassifier(strength, model="linear", random_state=0),
    "trees": lambda strength: FairLGBMClassifier(strength, num_leaves=8, n_estimators=80, n_jobs=1, verbose=-1),
}
LIMITS = (0.1, 0.15, 0.2, 0.3)
FIRST_SEED, FOLDS, ROWS = 440, 5, 6_000

_PROTOCOL = (
    "Half of the rows (of at most 6,000 that are drawn) are test rows. On the other half, linear models and boosted "
    "trees of 8 leaves are fitted at 12 strengths and scored out of fold (5 folds). Among the models that a rule "
    "accepts, the one with the best AUC out of fold is chosen. The rule was found on splits 400 to 419, by the same "
    "protocol; the figures here are of splits 440 to 459, which were run once."
)
_RULES = (
    "Rules: *on validation rows* accepts models whose unfairness out of fold is within the limit. *Confidence* accepts "
    "models whose unfairness in the population is within the limit with this confidence, as "
    "`Frontier.select(max_unfairness=..., confidence=...)` computes it."
)
_COLUMNS = (
    "*Kept*: share of choices whose unfairness on test rows, less what chance adds in quadrature, is within the limit. "
    "Test rows are a sample too: a model exactly at the limit keeps it in about half of the splits. *No model*: share "
    "of splits in which the rule accepts none. *AUC*: of the chosen models on test rows. *Best*: AUC of the strength "
    "that the test rows themselves would choose, in the same splits."
)


@dataclass(frozen=True)
class Sweep:
    """AUC and unfairness of one family at all strengths, on one split: out of fold, and on test rows."""

    data: str
    seed: int
    family: str
    floors: tuple[float, float]  # mean unfairness of fair scores: out of fold, and on test rows
    auc: Sequence[float]
    gap: Sequence[float]
    test_auc: Sequence[float]
    test_gap: Sequence[float]


def run(_: Protocol, effort: Effort, out: Path, *, n_jobs: int = 1) -> None:
    """Fit all models, and write their figures and the page."""
    folder = out / "choice"
    folder.mkdir(parents=True, exist_ok=True)
    seeds = [FIRST_SEED + seed for seed in effort.seeds]
    jobs = [(name, seed, family) for seed in seeds for name in SETS for family in FAMILIES]
    work = partial(sweep, sets=source(effort), strengths=effort.some(STRENGTHS))
    sweeps = list(run_parallel(work, jobs, n_jobs, threads=1))
    write_file(folder / "points.json", json.dumps([vars(result) for result in sweeps]).encode())
    write_page(choice_page(folder / "points.json", notes=circumstances(effort, processes=n_jobs)), folder, "choice")


def sweep(job: tuple[str, int, str], *, sets: Source, strengths: Sequence[float]) -> Sweep:
    """The figures of one family on one split of a data set."""
    name, seed, family = job
    splits = sets(name, "standard")
    train, test, fold = draw_rows(splits, seed)
    features, label = splits.without_group, (splits.y > 0).astype(int)
    spread_out = features.std(0)
    features = (features - features.mean(0)) / np.where(spread_out > 0, spread_out, 1)
    figures: dict[str, list[float]] = {"auc": [], "gap": [], "test_auc": [], "test_gap": []}
    for strength in strengths:
        score_rows = partial(_scores, FAMILIES[family](strength), (features, label, splits.a))
        validated = np.empty(len(train))
        for place in range(FOLDS):
            validated[fold == place] = score_rows(train[fold != place], train[fold == place])
        for key, rows, score in (("", train, validated), ("test_", test, score_rows(train, test))):
            figures[f"{key}auc"].append(float(roc_auc_score(label[rows], score)))
            figures[f"{key}gap"].append(
                float(kolmogorov_distance(*(score[splits.a[rows] == group] for group in (0, 1))))
            )
    floors = tuple(sampling_floor(*np.bincount(splits.a[rows], minlength=2)) for rows in (train, test))
    return Sweep(name, seed, family, (floors[0], floors[1]), **figures)


def draw_rows(splits: Splits, seed: int) -> tuple[Any, Any, Any]:
    """Training rows, test rows, and the fold of each training row, stratified by group and label."""
    generator = np.random.default_rng(seed)
    rows = generator.permutation(len(splits.y))[:ROWS]
    half = len(rows) // 2
    train, fold = rows[:half], np.empty(half, dtype=np.int64)
    cell = 2 * splits.a[train] + (splits.y[train] > 0)
    for value in np.unique(cell):
        places = np.flatnonzero(cell == value)
        fold[generator.permutation(places)] = np.arange(len(places)) % FOLDS
    return train, rows[half:], fold


def _scores(model: Any, data: tuple[Any, Any, Any], fit: Any, predict: Any) -> Any:
    """Scores of the rows ``predict`` by a model that is fitted on the rows ``fit``."""
    features, label, group = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model that comes out constant is one of the results
        model.fit(features[fit], label[fit], sensitive_features=group[fit])
    return model.predict_proba(features[predict])[:, 1]


def choice_page(path: Path, *, notes: Sequence[str] = ()) -> Page:
    """The tables of all rules, made of the points in a file."""
    sweeps = [Sweep(**{**record, "floors": tuple(record["floors"])}) for record in json.loads(path.read_text("utf-8"))]
    rules: dict[str, Callable[[float, float], float]] = {
        "on validation rows": lambda gap, _: gap,
        **{f"confidence {value:g}": partial(approximate_bound, confidence=value) for value in (0.5, 0.9, 0.95)},
    }
    tables: dict[str, TextTable] = {
        "All data sets": [
            _HEADING,
            *(_line(sweeps, limit, name, rule) for limit in LIMITS for name, rule in rules.items()),
        ]
    }
    chosen = rules["confidence 0.9"]
    for name in SETS:
        of_set = [sweep for sweep in sweeps if sweep.data == name]
        tables[f"{name}, confidence 0.9"] = [
            _HEADING,
            *(_line(of_set, limit, "confidence 0.9", chosen) for limit in LIMITS),
        ]
    return Page(
        title="How often a chosen model keeps its limit",
        notes=[_PROTOCOL, _RULES, _COLUMNS, *notes],
        tables=tables,
        charts={},
    )


_HEADING = ("limit", "rule", "kept", "no model", "AUC", "best")


def _line(sweeps: Sequence[Sweep], limit: float, name: str, rule: Callable[[float, float], float]) -> list[str]:
    kept, auc, best = [], [], []
    for result in sweeps:
        accepted = [at for at, gap in enumerate(result.gap) if rule(gap, result.floors[0]) <= limit]
        if not accepted:
            continue
        chosen = max(accepted, key=result.auc.__getitem__)
        true = [without_chance(gap, result.floors[1])[0] for gap in result.test_gap]
        kept.append(true[chosen] <= limit)
        auc.append(result.test_auc[chosen])
        best.append(max((value for value, gap in zip(result.test_auc, true, strict=True) if gap <= limit), default=0.5))
    none = 1 - len(kept) / len(sweeps)
    texts = (
        [f"{100 * fmean(kept):.0f}%", f"{100 * none:.0f}%", f"{fmean(auc):.3f}", f"{fmean(best):.3f}"] if kept else []
    )
    return [f"{limit:g}", name, *(texts or ["–", "100%", "–", "–"])]
