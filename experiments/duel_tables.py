"""The duel's rule of choice, its verdicts and its page, made of what models predict for
held-out rows.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from math import pi, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from experiments import peers
from experiments.comparisons import sampling_floor
from experiments.page import Page, TextTable
from metrifair.metrics import kolmogorov_distance

PROTOCOL_FILE = Path(__file__).with_name("duel_protocol.toml")
OURS, OURS_BLIND, CONSTANT = "ours", "ours, without the group", "constant"


class Judged(NamedTuple):
    """Figures of one model on some rows."""

    accuracy: float
    auc: float
    rates: float
    kolmogorov: float


class Entry(NamedTuple):
    """What a method's chosen model reaches on the test rows of one split, in one contest."""

    data: str
    split: int
    method: str
    contest: int
    utility: float
    gap: float  # as it is
    excess: float  # the gap without what chance adds to it


def judged(score: Any, decision: Any, y: Any, a: Any) -> Judged:
    """Figures of scores and decisions; equal scores for all have an AUC of a half.

    >>> y, a = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    >>> judged(np.array([0.1, 0.9, 0.2, 0.4]), np.array([0, 1, 0, 0]), y, a)
    Judged(accuracy=0.75, auc=1.0, rates=0.5, kolmogorov=0.5)
    """
    return Judged(
        float((decision == y).mean()),
        float(roc_auc_score(y, score)),
        abs(float(decision[a == 0].mean() - decision[a == 1].mean())),
        float(kolmogorov_distance(score[a == 0], score[a == 1])),
    )


def without_chance(gap: float, kind: str, a: Any) -> float:
    """A gap without what chance adds to it, in quadrature, where the groups are as large as these.

    >>> without_chance(0.05, "rates", np.arange(200) % 2), round(without_chance(0.5, "rates", np.arange(200) % 2), 3)
    (0.0, 0.497)
    """
    left, right = (int((a == group).sum()) for group in (0, 1))
    chance = (
        sampling_floor(left, right)
        if kind == "kolmogorov"
        else sqrt(2 / pi * 0.25 * (1 / left + 1 / right))
    )
    return sqrt(max(gap**2 - chance**2, 0.0))


def entries_of(
    place: tuple[str, int, str],
    rows: peers.Rows,
    contests: Sequence[tuple[int, Mapping[str, Any]]],
    said: Any,
    pooled: Any = None,
) -> Iterator[Entry]:
    """The entry of a method in each of the contests; ``place`` is data set, split and method.

    ``said`` (models, 2, test rows) are scores and decisions, ``pooled`` those for training rows by
    models of the other folds, which choose among the models; None: there is one.
    """
    known, unseen = rows.train, ~rows.train
    constant = np.full((1, 2, int(unseen.sum())), float(rows.y[known].mean() >= 0.5))
    for number, contest in contests:
        model = (
            said[0]
            if pooled is None
            else np.concatenate([said, constant])[chosen(pooled, contest, rows)]
        )
        figures = judged(model[0], model[1], rows.y[unseen], rows.a[unseen])
        utility, gap = (float(getattr(figures, contest[name])) for name in ("utility", "gap"))
        excess = without_chance(gap, contest["gap"], rows.a[unseen])
        yield Entry(*place, number, utility, gap, excess)


def chosen(pooled: Any, contest: Mapping[str, Any], rows: peers.Rows) -> int:
    """The place of the best model within the limit, by the pooled folds; -1: none, so that the
    constant is chosen.
    """
    y, a = rows.y[rows.train], rows.a[rows.train]
    best, utility = -1, -np.inf
    for place, (score, decision) in enumerate(pooled):
        figures = judged(score, decision, y, a)
        within = (
            without_chance(getattr(figures, contest["gap"]), contest["gap"], a) <= contest["limit"]
        )
        if within and getattr(figures, contest["utility"]) > utility:
            best, utility = place, getattr(figures, contest["utility"])
    return best


# --- the page
# -------------------------------------------------------------------------------------------------------


def duel_page(path: Path, protocol: Mapping[str, Any], *, notes: Sequence[str] = ()) -> Page:
    """Verdicts, and tables of all methods and of our families, made of the entries in a file."""
    content = json.loads(path.read_bytes())
    found = [Entry(*one) for one in content["entries"]]
    faults = [
        f"{method} has missing entries: {fault}." for method, fault in content["faults"].items()
    ]
    families = f"{OURS}: "
    verdicts = verdict_table(found, protocol)
    tables = {"Verdicts: our one model against the best other method": verdicts}
    for place, contest in enumerate(protocol["contests"]):
        own = [one for one in found if one.contest == place]
        tables[contest["title"]] = contest_table(
            [one for one in own if not one.method.startswith(families)], protocol
        )
        apart = [one for one in own if one.method.startswith(families)]
        if apart:
            tables[f"Our families apart. {contest['title']}"] = contest_table(apart, protocol)
    words = [line[-1] for line in verdicts[1:]]
    counts = ", ".join(f"{word} in {words.count(word)}" for word in ("ahead", "even", "behind"))
    summary = (
        f'In {len(words)} comparisons, the one model of `frontier("auto")` and the best other '
        "method are compared on "
        f"test rows. Ours is {counts}. [The protocol](protocol.md) was fixed before the run."
    )
    notes = [summary, *protocol["text"][-2:], *faults, *notes]
    return Page(title="Comparison with other libraries", notes=notes, tables=tables, charts={})


def verdict_table(found: Sequence[Entry], protocol: Mapping[str, Any]) -> TextTable:
    """For each contest and set, without and with the group: our one model, the best other one,
    and the differences.
    """
    lines = []
    for place, contest in enumerate(protocol["contests"]):
        for name in dict.fromkeys(one.data for one in found):
            own = [one for one in found if (one.data, one.contest) == (name, place)]
            for ours, needs in ((OURS_BLIND, False), (OURS, True)):
                theirs = [
                    method for method, about in protocol["methods"].items() if about[2] == needs
                ]
                others = {
                    method: entries for method in theirs if (entries := _by_split(own, method))
                }
                line = _verdict(_by_split(own, ours), others, contest, protocol)
                if line is not None:
                    lines.append([contest["gap"], name, "known" if needs else "", *line])
    heading = ["gap", "data", "group", "best other", "utility, points", "gap, points", "verdict"]
    return [heading, *lines]


def _verdict(
    own: Mapping[int, Entry],
    others: Mapping[str, Mapping[int, Entry]],
    contest: Mapping[str, Any],
    protocol: Mapping[str, Any],
) -> list[str] | None:
    """The best other method, the differences in utility and gap, and who is ahead; None where
    there is no entry.
    """
    if not own or not others:
        return None
    errors = float(protocol["verdict"]["standard_errors"])

    def keeps(entries: Mapping[int, Entry]) -> bool:
        mean, error = _mean([one.excess for one in entries.values()])
        return mean - errors * error <= float(contest["limit"])

    able = {
        method: entries
        for method, entries in others.items()
        if keeps(entries) and own.keys() <= entries.keys()
    }
    if not able:
        return ["none keeps the limit", "", "", "ahead" if keeps(own) else "even"]
    best = max(able, key=lambda method: fmean(one.utility for one in able[method].values()))
    apart = [
        (one.utility - able[best][split].utility, one.gap - able[best][split].gap)
        for split, one in own.items()
    ]
    (lead, error), (gap, gap_error) = (
        _mean([100 * value for value in values]) for values in zip(*apart, strict=True)
    )
    word = "ahead" if lead > errors * error else "behind" if lead < -errors * error else "even"
    if not keeps(own):
        word = "behind"
    elif len(apart) == 1:
        word = "one split"
    return [best, f"{lead:+.2f} ± {error:.2f}", f"{gap:+.2f} ± {gap_error:.2f}", word]


def contest_table(found: Sequence[Entry], protocol: Mapping[str, Any]) -> TextTable:
    """A line for each method, a column for each set: utility and gap with standard errors."""
    sets = list(dict.fromkeys(one.data for one in found))
    needs = {OURS: True} | {method: about[2] for method, about in protocol["methods"].items()}
    lines = []
    for method in dict.fromkeys(one.method for one in found):
        texts = []
        for name in sets:
            own = list(_by_split([one for one in found if one.data == name], method).values())
            texts.append(
                " / ".join(_text([getattr(one, key) for one in own]) for key in ("utility", "gap"))
            )
        lines.append(
            [
                method,
                "known" if needs.get(method) else "",
                *(text if text != "– / –" else "–" for text in texts),
            ]
        )
    return [["method", "group", *sets], *lines]


def _by_split(found: Sequence[Entry], method: str) -> dict[int, Entry]:
    return {one.split: one for one in found if one.method == method}


def _mean(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error, 0 for one value."""
    return fmean(values), stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def _text(values: Sequence[float]) -> str:
    """The mean, and in brackets its standard error in units of the last digit."""
    if not values:
        return "–"
    mean, error = _mean(values)
    return f"{mean:.3f}({1_000 * error:.0f})" if len(values) > 1 else f"{mean:.3f}"


def protocol_page(text: str) -> str:
    """The protocol as a page in Markdown: its words, and its file."""
    words = tomllib.loads(text)["text"]
    data = text.partition("[data]")[2]
    return "\n\n".join(
        ["# Protocol of the comparison with other libraries", *words, f"```toml\n[data]{data}```\n"]
    )
