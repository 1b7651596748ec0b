"""Choosing a model within a limit: how often the chosen one keeps it, and how true its figures are.

``python -m benchmarks.choice [--splits 16] [--first 600] [--rows 2000] [--blind] [--auto] [--decisions]``;
minutes, with METRIFAIR_DATA for Adult and COMPAS. Up to 6,000 of the other rows stand for the population. Splits
from 600 on belong to no other experiment; a rule is reported on others than those that served to find it.

"rule" is ``frontier(...).select(max_unfairness=...)`` with two simple families, linear models and
maps of their scores ("--auto": those of "auto"), and "rule .9" the same with ``confidence=0.9``.
"plain" stands beside them: half of the rows train the simple families, a quarter chooses by the raw
gap, and the model of half of the rows is delivered.

Limits are 0.05, 0.1 and 0.2, and 1.5, 2 and 3 times the gap that chance explains ("1.5 v"). Columns:
the share of requests for which a model within the limit is *named*, the share of these models that
*keep* it (their gap on new rows, without chance, is at most 0.01 above) with its standard error, and
the AUC of all requests; with --decisions, the accuracy. Where no model is named, the least unfair
one counts for the AUC. Then the figures that are *reported*, less the true ones, and how often the
intervals *cover* the true ones. A gap that is reported as "below x" counts as covered if it is below
x, and has no difference. The last lines pool all sets, at limits of 1.5, 2 and 3 times chance.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from metrifair import (
    BarycenterPostprocessor,
    DataError,
    FairClassifier,
    Frontier,
    SearchOptions,
    datasets,
    frontier,
)
from metrifair.estimators import fit_stack
from metrifair.figures.fold_gaps import FoldSides, gap_without_chance
from metrifair.metrics import kolmogorov_distance
from metrifair.support.checks import groups_if_accepted

STRENGTHS = (0.0, 0.1, 0.3, 0.6, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
TOLERANCES = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3)
LIMITS = (0.05, 0.1, 0.2)
MULTIPLES = (1.5, 2.0, 3.0)  # of the gap that chance explains
CONFIDENCES = {"rule": None, "rule .9": 0.9}
FIRST_SPLIT = 600
NEW_ROWS = 6_000
SLACK = 0.01


class Rows(NamedTuple):
    """Features, labels and groups, the latter two as 0 and 1."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    group: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64]) -> Rows:
        return Rows(self.X[rows], self.y[rows], self.group[rows])


class Result(NamedTuple):
    """What one request delivered, on new rows."""

    is_named: bool
    is_kept: bool
    utility: float  # AUC, or accuracy of decisions
    utility_error: float = np.nan  # reported less true
    utility_covered: float = np.nan
    gap_error: float = np.nan
    gap_covered: float = np.nan


@dataclass(frozen=True)
class Setting:
    """The families that are compared."""

    is_blind: bool = False  # only models that need no group
    is_automatic: bool = False
    decides: bool = False  # decisions are compared, not scores

    def families(self, rows: int) -> Any:
        """The estimators for so many rows."""
        if self.is_automatic:
            return "auto"
        return {
            "linear": FairClassifier(model="linear", weight_decay=1 / rows),
            "barycenter": BarycenterPostprocessor(
                FairClassifier(0.0, model="linear", weight_decay=1 / rows),
                needs_group=not self.is_blind,
            ),
        }

    def frontier(self, rows: Rows, split: int) -> Frontier:
        """The frontier of these rows."""
        tolerances = None if self.is_automatic else TOLERANCES
        needs_group = self.is_automatic and not self.is_blind
        return frontier(
            self.families(len(rows.y)),
            rows.X,
            rows.y,
            sensitive_features=rows.group,
            strengths=None if self.is_automatic else STRENGTHS,
            unfairness_of="decisions" if self.decides else "scores",
            random_state=split,
            search=SearchOptions(tolerances=tolerances, needs_group=needs_group),
        )

    def figures(self, model: Any, rows: Rows) -> tuple[float, float]:
        """Utility and gap of a model on these rows."""
        if not self.decides:
            score = scores(model, rows)
            return float(roc_auc_score(rows.y, score)), true_gap(rows, score)
        method = model.predict
        decision = np.asarray(method(rows.X, **groups_if_accepted(method, rows.group)), dtype=float)
        return float((decision == rows.y).mean()), true_gap(rows, decision)


def load(name: str) -> Rows:
    """A data set with standardized features."""
    data = datasets.load(name, include_protected=False)
    X = np.asarray(data.X, dtype=np.float64)
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    y = np.asarray(data.y)
    group = np.asarray(data.group_codes)
    return Rows(
        (X - X.mean(axis=0)) / spread,
        (y == y.max()).astype(int),
        (group == group.max()).astype(int),
    )


def scores(model: Any, rows: Rows) -> NDArray[np.float64]:
    """The model's probability of each row; a model that only decides has its decisions."""
    method = getattr(model, "predict_proba", model.predict)
    predicted = np.asarray(method(rows.X, **groups_if_accepted(method, rows.group)), dtype=float)
    return predicted[:, 1] if predicted.ndim == 2 else predicted


def true_gap(rows: Rows, score: NDArray[np.float64]) -> float:
    """The Kolmogorov distance of the groups, without the part that chance explains."""
    fold = np.zeros(len(rows.y), dtype=np.int64)
    sides = FoldSides((rows.group[None] == 0) * 1.0, (rows.group[None] == 1) * 1.0, fold)
    return gap_without_chance(score[None], sides)


def ruled(
    setting: Setting, front: Frontier, new: Rows, limit: float, confidence: float | None
) -> Result:
    """What ``select`` delivers within a limit; the least unfair model if it names none."""
    request = {"max_unfairness": limit, "confidence": confidence}
    needs_group = False if setting.is_blind else None
    is_named = True
    try:
        model = front.select(**request, needs_group=needs_group)
    except DataError:
        is_named = False
        model = front.select(**request, needs_group=needs_group, best_effort=True)
    utility, gap = setting.figures(model, new)
    is_kept = gap <= limit + SLACK
    point = front.chosen
    if not is_named or point is None:
        return Result(is_named, is_kept, utility)
    name = "accuracy" if setting.decides else "auc"
    kind = "decision_unfairness" if setting.decides else "unfairness"
    of_utility = point.intervals[name]
    of_gap = point.intervals[kind]
    reported = point.figure(name)
    reported_gap = point.figure(kind)
    assert reported is not None
    assert reported_gap is not None
    return Result(
        is_named,
        is_kept,
        utility,
        reported - utility,
        of_utility.low <= utility <= of_utility.high,
        np.nan if point.is_noise else reported_gap - gap,
        of_gap.low <= gap <= of_gap.high,
    )


def plain_choices(
    setting: Setting, rows: Rows, new: Rows, split: int, limits: Sequence[float]
) -> list[Result]:
    """Half of the rows train, a quarter chooses by the raw gap, and the model of half of the rows
    is delivered.
    """
    order = np.random.default_rng(split).permutation(len(rows.y))
    half, three_quarters = len(order) // 2, 3 * len(order) // 4
    train, compare = rows.take(order[:half]), rows.take(order[half:three_quarters])
    families = Setting(setting.is_blind).families(len(train.y))
    models = [
        *fit_stack(
            families["linear"],
            train.X,
            train.y,
            strengths=STRENGTHS,
            seeds=[0],
            sensitive_features=train.group,
        ),
        *families["barycenter"].fit_path(
            train.X, train.y, sensitive_features=train.group, tolerances=list(TOLERANCES)
        ),
    ]
    figures = [setting.figures(model, compare) for model in models]
    utilities = np.array([utility for utility, _ in figures])
    gaps = np.array([_raw_gap(setting, model, compare) for model in models])
    results = []
    for limit in limits:
        feasible = gaps <= limit
        best = int(np.argmin(gaps))
        if feasible.any():
            best = int(np.where(feasible, utilities, -1.0).argmax())
        utility, gap = setting.figures(models[best], new)
        results.append(Result(bool(feasible.any()), gap <= limit + SLACK, utility))
    return results


def _raw_gap(setting: Setting, model: Any, rows: Rows) -> float:
    """The Kolmogorov distance of the groups, chance included."""
    compared = scores(model, rows)
    if setting.decides:
        compared = np.asarray(compared >= 0.5, dtype=float)
    return float(kolmogorov_distance(compared[rows.group == 0], compared[rows.group == 1]))


def one_split(
    setting: Setting, data: Rows, split: int, size: int
) -> tuple[float, dict[tuple[str, str], Result]]:
    """The noise of a split's rows, and what each way delivers at each limit."""
    order = np.random.default_rng(split).permutation(len(data.y))
    rows, new = data.take(order[:size]), data.take(order[size : size + NEW_ROWS])
    front = setting.frontier(rows, split)
    noise = front.record.noise
    assert noise is not None
    limits = {f"{limit}": limit for limit in LIMITS}
    limits |= {f"{multiple} v": multiple * noise for multiple in MULTIPLES}
    plain = plain_choices(setting, rows, new, split, list(limits.values()))
    found = {(label, "plain"): result for label, result in zip(limits, plain, strict=True)}
    for label, limit in limits.items():
        for way, confidence in CONFIDENCES.items():
            found[label, way] = ruled(setting, front, new, limit, confidence)
    return noise, found


def line(label: str, way: str, results: Sequence[Result]) -> str:
    """The means over splits of one way at one limit."""
    named = [result for result in results if result.is_named]

    def mean(name: str, *, error: bool = False) -> str:
        values = np.array([getattr(result, name) for result in named], dtype=float)
        known = values[np.isfinite(values)]
        if not len(known):
            return "     –"
        text = f"{known.mean():+.3f}"
        return f"{text} ± {known.std() / np.sqrt(len(known)):.3f}" if error else text

    return (
        f"  {label:>5} {way:8} {len(named) / len(results):5.2f} {mean('is_kept', error=True)} "
        f"{np.mean([result.utility for result in results]):.3f}   "
        f"{mean('utility_error', error=True)} {mean('utility_covered')}   "
        f"{mean('gap_error', error=True)} {mean('gap_covered')}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--first", type=int, default=FIRST_SPLIT, help="the number of the first")
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--sets", nargs="*", default=["adult", "compas"])
    parser.add_argument("--blind", action="store_true", help="only models that need no group")
    parser.add_argument("--auto", action="store_true", help="the families of auto")
    parser.add_argument("--decisions", action="store_true", help="compare decisions, not scores")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # constant models are among the results
    setting = Setting(given.blind, given.auto, given.decisions)
    pooled: dict[str, list[Result]] = defaultdict(list)
    for name in given.sets:
        data = load(name)
        noise: list[float] = []
        found: dict[tuple[str, str], list[Result]] = defaultdict(list)
        for split in range(given.first, given.first + given.splits):
            of_split, results = one_split(setting, data, split, given.rows)
            noise.append(of_split)
            for key, result in results.items():
                found[key].append(result)
        print(f"{name}, {given.rows:,} rows, {given.splits} splits, noise {np.mean(noise):.3f}")
        print("  limit way      named kept  utility   reported - true, covered   gap: the same")
        for (label, way), of_way in sorted(found.items()):
            print(line(label, way, of_way))
            if label.endswith("v"):
                pooled[way] += of_way
    for way, of_way in sorted(pooled.items()):
        print(line("all v", way, of_way), flush=True)


if __name__ == "__main__":
    main()
