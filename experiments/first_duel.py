"""The tables of the first duel (docs/results/duel/duel.md), made of its kept entries.

Its protocol was another one; ``experiments.duel`` runs the next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from experiments.duel_tables import Judged
from experiments.page import TextTable

NEEDS_GROUP = frozenset(
    {"fairlearn ThresholdOptimizer", "error-parity", "equipy", "ours, barycenter", "ours, thresholds"}
)
PLAIN = "logistic regression"


class Contest(NamedTuple):
    """What is asked for: the best utility with a gap of at most so much."""

    title: str
    utility: str
    gap: str
    bound: float


CONTESTS = (
    Contest("Decisions: accuracy, where the groups' rates differ by at most 0.05", "accuracy", "rates", 0.05),
    Contest("Scores: AUC, where the Kolmogorov distance is at most 0.1", "auc", "kolmogorov", 0.1),
)


class Entry(NamedTuple):
    """What a method reached in a contest on the test rows of one split, chosen on its validation rows."""

    data: str
    seed: int
    method: str
    contest: Contest
    test: Judged
    most: float  # that the gap may be on these rows


Reached = dict[tuple[str, str], dict[str, dict[int, Judged]]]
"""Figures of test rows: by data set and method, by strength, by split."""


def first_duel_tables(path: Path) -> dict[str, TextTable]:
    """Tables of both contests, and who won, made of the entries in a file."""
    entries, figures = read_entries(path)
    tables: dict[str, TextTable] = {contest.title: contest_table(entries, contest) for contest in CONTESTS}
    tables["Who won: our best against the best other, in points of a hundredth"] = winners_table(entries)
    tables["Who would win if strengths were chosen by the test rows"] = winners_table(best_strengths(entries, figures))
    return tables


def read_entries(path: Path) -> tuple[list[Entry], Reached]:
    """The entries of chosen strengths, and figures of all strengths."""
    content = json.loads(path.read_bytes())
    by_method: Reached = {}
    for place, strengths in content["tried"].items():
        data, method = place.split("/")
        by_method[data, method] = {
            strength: {int(seed): Judged(*figures) for seed, figures in by_seed.items()}
            for strength, by_seed in strengths.items()
        }
    entries = [
        Entry(data, seed, method, CONTESTS[contest], Judged(*figures), most)
        for data, seed, method, contest, *figures, most in content["entries"]
    ]
    return entries, by_method


def contest_table(entries: Sequence[Entry], contest: Contest) -> TextTable:
    """A line for each method, a column for each set; the best of each column that keeps to the bound in bold."""
    in_contest = [entry for entry in entries if entry.contest == contest]
    sets = list(dict.fromkeys(entry.data for entry in in_contest))
    lines = []
    for method in dict.fromkeys(entry.method for entry in in_contest):
        texts = []
        for name in sets:
            tests = [entry.test for entry in in_contest if (entry.method, entry.data) == (method, name)]
            figures = [_mean([getattr(test, key) for test in tests]) for key in (contest.utility, contest.gap)]
            texts.append(" / ".join(figures) if tests else "–")
        lines.append([method, "needed" if method in NEEDS_GROUP else "", *texts])
    return [["method", "group at prediction", *sets], *sorted(lines, key=lambda line: line[1])]


def best_strengths(entries: Sequence[Entry], figures: Reached) -> list[Entry]:
    """The entries of the strengths that are best on test rows, among those that keep to the bound there on average."""
    best = []
    for contest in CONTESTS:
        most = {(entry.data, entry.seed): entry.most for entry in entries if entry.contest == contest}
        for (data, method), strengths in figures.items():
            seeds = [seed for name, seed in most if name == data]
            bound = fmean(most[data, seed] for seed in seeds)
            complete = [by_seed for by_seed in strengths.values() if set(by_seed) == set(seeds)]
            keep = [
                by_seed
                for by_seed in complete
                if fmean(getattr(test, contest.gap) for test in by_seed.values()) <= bound
            ]
            if keep:
                by_seed = max(
                    keep, key=lambda by_seed: fmean(getattr(test, contest.utility) for test in by_seed.values())
                )
                best += [Entry(data, seed, method, contest, test, most[data, seed]) for seed, test in by_seed.items()]
    return best


def winners_table(entries: Sequence[Entry]) -> TextTable:
    """For each contest and set, and for models with and without the group: both bests, and how far they are apart.

    Best is who has the highest mean utility among those whose gap on test rows keeps to the bound on average; the
    difference is paired by split.
    """
    lines = []
    for contest in CONTESTS:
        for name in dict.fromkeys(entry.data for entry in entries):
            for asks in (False, True):
                in_contest = [entry for entry in entries if (entry.data, entry.contest) == (name, contest)]
                by = _by_method([entry for entry in in_contest if (entry.method in NEEDS_GROUP) == asks], contest)
                most = fmean(entry.most for entry in in_contest)
                keep = {method: utility for method, (utility, gap) in by.items() if fmean(gap.values()) <= most}
                ours = {method: value for method, value in keep.items() if method.startswith("ours")}
                theirs = {method: value for method, value in keep.items() if method not in ours and method != PLAIN}
                if not ours or not theirs:
                    continue
                means = [
                    {method: fmean(utility.values()) for method, utility in part.items()} for part in (ours, theirs)
                ]
                first, second = (max(part, key=part.__getitem__) for part in means)
                apart = [
                    100 * (ours[first][seed] - theirs[second][seed]) for seed in ours[first] if seed in theirs[second]
                ]
                if len(apart) == 1:
                    difference, word = f"{apart[0]:+.2f}", "one split"
                else:
                    error = stdev(apart) / len(apart) ** 0.5
                    word = "ours" if fmean(apart) > error else "theirs" if fmean(apart) < -error else "even"
                    difference = f"{fmean(apart):+.2f} ± {error:.2f}"
                lines.append([contest.gap, name, "needed" if asks else "", first, second, difference, word])
    return [["gap", "data", "group at prediction", "our best", "best other", "difference", "won by"], *lines]


def _by_method(entries: Sequence[Entry], contest: Contest) -> Mapping[str, tuple[dict[int, float], dict[int, float]]]:
    """By method: utility and gap, each by seed."""
    by: dict[str, tuple[dict[int, float], dict[int, float]]] = {}
    for entry in entries:
        utility, gap = by.setdefault(entry.method, ({}, {}))
        utility[entry.seed], gap[entry.seed] = (getattr(entry.test, key) for key in (contest.utility, contest.gap))
    return by


def _mean(values: Sequence[float]) -> str:
    """The mean, and in brackets its standard error in units of the last digit."""
    error = f"({1_000 * stdev(values) / len(values) ** 0.5:.0f})" if len(values) > 1 else ""
    return f"{fmean(values):.3f}{error}" if values else "–"
