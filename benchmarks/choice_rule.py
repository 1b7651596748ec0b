"""The rule of choice on models that cost nothing to train: how often limits are kept, models named,
and intervals right.

``python -m benchmarks.choice_rule [--splits 40] [--rows 600] [--first 700]``; a second a split,
with METRIFAIR_DATA. ``benchmarks.choice`` runs the whole path on fewer splits.

A logistic regression has 16 configurations: nine lose a part of their weights along the difference
of the groups' means, and seven map the scores of each group towards the common barycenter. Up to
20,000 of the other rows stand for the population. Limits are in units of the gap that chance
explains (``noise``). Columns: the share of requests for which a model is *named*, of these models
that *keep* the limit (+ 0.01) with the standard error over splits, their utility, the reported
utility less the true one and how often its interval covers it, and the same of gaps; a gap that is
reported as "below x" has no difference, and is covered if it is below x.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from benchmarks.choice import SLACK, Rows, load, true_gap
from metrifair.figures.fold_gaps import FoldSides
from metrifair.tradeoff.choice import NOTHING, Chooser, Rule
from metrifair.tradeoff.points import Job
from metrifair.tradeoff.resamples import draw_rows, resampled_gaps, resampled_utilities

PARTS = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
TOLERANCES = (0.0, 0.03, 0.06, 0.1, 0.2, 0.3, 0.5)
MULTIPLES = (1.5, 2.0, 3.0, 5.0)
FOLDS = 5
NEW_ROWS = 20_000
KINDS = ("scores", "decisions")


class Truth(NamedTuple):
    """A choice among configurations, and what each is worth on new rows."""

    chooser: Chooser
    gaps: NDArray[np.float64]
    utilities: NDArray[np.float64]


class Result(NamedTuple):
    """What one request delivered; NaN where no model is named or the gap has no difference."""

    split: int
    is_named: bool
    is_kept: float = np.nan
    utility: float = np.nan
    utility_error: float = np.nan
    utility_covered: float = np.nan
    gap_error: float = np.nan
    gap_covered: float = np.nan


class Models:
    """All configurations, trained on some rows."""

    def __init__(self, rows: Rows) -> None:
        fitted = LogisticRegression(max_iter=200).fit(rows.X, rows.y)
        self._weights = fitted.coef_[0]
        self._intercept = float(fitted.intercept_[0])
        means = [rows.X[rows.group == side].mean(axis=0) for side in (0, 1)]
        self._direction = means[1] - means[0]
        output = rows.X @ self._weights + self._intercept
        self._of_groups = [np.sort(output[rows.group == side]) for side in (0, 1)]
        self._share = float(rows.group.mean())

    def scores(self, rows: Rows) -> NDArray[np.float64]:
        """The probabilities of all configurations: (configurations, n)."""
        direction = self._direction
        along = (direction @ self._weights) / (direction @ direction) * direction
        outputs = [rows.X @ (self._weights - part * along) + self._intercept for part in PARTS]
        moved = self._barycenter(outputs[0], rows.group)
        outputs += [keep * outputs[0] + (1 - keep) * moved for keep in TOLERANCES]
        return 1 / (1 + np.exp(-np.array(outputs)))

    def _barycenter(
        self, output: NDArray[np.float64], group: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The mean of both groups' quantiles at the rank of each row within its group."""
        ranks = [np.searchsorted(own, output) / len(own) for own in self._of_groups]
        rank = np.where(group == 0, *ranks).clip(0, 1)
        low, high = (np.quantile(own, rank) for own in self._of_groups)
        # equal ranks stay apart
        return np.asarray((1 - self._share) * low + self._share * high + 1e-9 * output)


def auc_by_rows(scores: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """What each row adds to the AUC."""
    sides = [np.sort(scores[y == label]) for label in (0, 1)]
    below = [
        (np.searchsorted(side, scores, "left") + np.searchsorted(side, scores, "right"))
        / (2 * len(side))
        for side in sides
    ]
    placed = np.where(y == 1, below[0], 1 - below[1])
    share = np.where(y == 1, y.mean(), 1 - y.mean())
    return np.asarray((placed - placed[y == 1].mean()) / share)


def truths(data: Rows, size: int, split: int) -> dict[str, Truth]:
    """The choices among scores and among decisions of one split."""
    order = np.random.default_rng(split).permutation(len(data.y))
    rows = data.take(order[:size])
    new = data.take(order[size : size + NEW_ROWS])
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=split)
    fold = np.empty(size, dtype=np.int64)
    scores = np.empty((len(PARTS) + len(TOLERANCES), size))
    for place, (others, own) in enumerate(folds.split(rows.X, 2 * rows.y + rows.group)):
        fold[own] = place
        scores[:, own] = Models(rows.take(others)).scores(rows.take(own))
    on_new = Models(rows).scores(new)
    sides = FoldSides(
        (rows.group[None] == 0) * 1.0, (rows.group[None] == 1) * 1.0, fold, None, rows.y
    )
    found = {}
    for kind in KINDS:
        if kind == "decisions":
            scores = (scores >= 0.5) * 1.0
            on_new = (on_new >= 0.5) * 1.0
        found[kind] = Truth(
            _chooser(kind, scores, rows, sides, split),
            np.array([true_gap(new, score) for score in on_new]),
            np.array([_utility(kind, score, new.y) for score in on_new]),
        )
    return found


def _utility(kind: str, score: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    return float(roc_auc_score(y, score) if kind == "scores" else (score == y).mean())


def _chooser(
    kind: str, scores: NDArray[np.float64], rows: Rows, sides: FoldSides, split: int
) -> Chooser:
    """The choice by out-of-fold scores; AUCs are those within folds."""
    drawn = draw_rows(sides, split)
    inside = [sides.fold == place for place in range(FOLDS)]
    values = np.zeros(len(scores))
    influence = np.zeros(scores.shape)
    for place, score in enumerate(scores):
        for own in inside:
            share = own.mean()
            values[place] += share * _utility(kind, score[own], rows.y[own])
            if kind == "scores":
                influence[place, own] = auc_by_rows(score[own], rows.y[own])
        if kind == "decisions":
            influence[place] = (score == rows.y) - values[place]
    utility = resampled_utilities(values, influence, np.ones(len(rows.y)), drawn)
    # no penalty first, then blind configurations, then those that need the group
    simplicity = np.array([*np.argsort(PARTS), *np.argsort(np.argsort(TOLERANCES)[::-1]) + 9])
    constant = np.array([len(np.unique(score)) == 1 for score in scores])
    jobs = tuple(Job(float(place), 0) for place in range(len(scores)))
    gaps = resampled_gaps(scores[:, None], sides, drawn)
    return Chooser(jobs, len(rows.y), gaps, utility, utility, simplicity, 2 * constant)


def delivered(truth: Truth, limit: float, confidence: float | None, split: int) -> Result:
    """What one request delivers."""
    choice = truth.chooser.choose(Rule(limit, confidence))
    chosen = choice.configuration
    expected = choice.expected
    if chosen == NOTHING or expected is None:
        return Result(split, False)
    gap = float(truth.gaps[chosen])
    utility = float(truth.utilities[chosen])
    ends = expected.utility_interval
    between = expected.gap_interval
    return Result(
        split,
        True,
        gap <= limit + SLACK,
        utility,
        expected.utility - utility,
        ends.low <= utility <= ends.high,
        np.nan if expected.is_noise else expected.gap - gap,
        between.low <= gap <= between.high,
    )


def line(title: str, results: Sequence[Result]) -> str:
    """The means over requests; the standard error of what is kept is that of the splits."""
    table = np.array(results, dtype=float)
    by_split = [table[table[:, 0] == split, 2] for split in np.unique(table[:, 0])]
    kept = [np.nanmean(own) for own in by_split if np.isfinite(own).any()]
    error = np.std(kept, ddof=1) / np.sqrt(len(kept)) if len(kept) > 1 else np.nan
    means = [
        float(column[np.isfinite(column)].mean()) if np.isfinite(column).any() else np.nan
        for column in table.T
    ]
    return (
        f"{title:32} {means[1]:5.2f} {means[2]:5.2f} ± {error:.2f} {means[3]:7.3f}   "
        f"{means[4]:+.3f} {means[5]:.2f}   {means[6]:+.3f} {means[7]:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--first", type=int, default=700)
    parser.add_argument("--sets", nargs="*", default=["adult", "compas"])
    given = parser.parse_args()
    print(f"{given.rows:,} rows, {given.splits} splits")
    print(f"{'':32} named  kept         utility   error covered   gap: the same")
    pooled: dict[str, list[Result]] = defaultdict(list)
    for name in given.sets:
        data = load(name)
        found: dict[str, list[Result]] = defaultdict(list)
        for split in range(given.first, given.first + given.splits):
            for kind, truth in truths(data, given.rows, split).items():
                for multiple in MULTIPLES:
                    limit = multiple * truth.chooser.gaps.noise
                    for confidence in (None, 0.9):
                        result = delivered(truth, limit, confidence, split)
                        sure = "" if confidence is None else f" {confidence}"
                        found[f"{name} {kind} {multiple}{sure}"].append(result)
                        pooled[f"all {kind}{sure}"].append(result)
        for title, results in found.items():
            print(line(title, results), flush=True)
    for title, results in pooled.items():
        print(line(title, results), flush=True)


if __name__ == "__main__":
    main()
