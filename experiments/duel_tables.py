"""The duel's rule of choice, its verdicts and its page, made of what models predict for
held-out rows.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from math import hypot, pi, sqrt
from pathlib import Path
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from experiments import peers
from experiments.comparisons import sampling_floor
from experiments.duel_record import OURS, OURS_BLIND, DuelRecord, Entry
from experiments.page import Page, TextTable
from metrifair.metrics import kolmogorov_distance

PROTOCOL_FILE = Path(__file__).with_name("duel_protocol.toml")
RESAMPLES = 50  # of test rows that all splits of a data set share


class Judged(NamedTuple):
    """Figures of one model on some rows."""

    accuracy: float
    auc: float
    rates: float
    kolmogorov: float


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
    *,
    resamples: int = 0,
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
        resampled = _resampled(model, rows.y[unseen], rows.a[unseen], contest, resamples)
        yield Entry(*place, number, utility, gap, excess, resampled)


def _resampled(
    model: Any, y: Any, a: Any, contest: Mapping[str, Any], resamples: int
) -> Sequence[Sequence[float]]:
    """Utility and gap of a model on resamples of the test rows, the same ones for every model."""
    if not resamples:
        return ()
    draw = np.random.default_rng(0)
    figures = []
    for _ in range(resamples):
        rows = draw.integers(len(y), size=len(y))
        on_rows = judged(model[0][rows], model[1][rows], y[rows], a[rows])
        figures.append([getattr(on_rows, contest[name]) for name in ("utility", "gap")])
    return np.round(figures, 6).T.tolist()  # type: ignore[no-any-return]


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


def duel_page(
    record: DuelRecord, protocol: Mapping[str, Any], *, notes: Sequence[str] = ()
) -> Page:
    """Verdicts, and tables of all methods and of our families, made of the recorded entries."""
    faults = [f"{method} has missing entries: {fault}." for method, fault in record.faults.items()]
    whole = record.whole_splits(protocol)
    found = [one for one in record.entries if (one.data, one.split) in whole]
    families = f"{OURS}: "
    verdicts = verdict_table(found, protocol)
    corrected = verdict_table(found, protocol, record.test_ratio)
    tables = {"Verdicts: our one model against the best other method": verdicts}
    for place, contest in enumerate(protocol["contests"]):
        own = [one for one in found if one.contest == place]
        tables[contest["title"]] = contest_table(
            [one for one in own if not one.method.startswith(families)], protocol
        )
        apart = [one for one in own if one.method.startswith(families)]
        if apart:
            tables[f"Our families apart. {contest['title']}"] = contest_table(apart, protocol)
    summary = (
        f'In {len(verdicts) - 1} comparisons, the one model of `frontier("auto")` and the best '
        f"other method are compared on test rows. Ours is {_counts(verdicts)}. "
        "[The protocol](protocol.md) was fixed before the run."
    )
    overlap = (
        "Random splits of one data set share rows, so that differences of splits vary too little. "
        "With the correction of Nadeau and Bengio (2003) for this, ours is "
        f"{_counts(corrected)}."
    )
    notes = [summary, overlap, *protocol["text"][-2:], *faults, *notes]
    return Page(title="Comparison with other libraries", notes=notes, tables=tables, charts={})


def _counts(verdicts: TextTable) -> str:
    """How often each verdict was reached."""
    words = [line[-1] for line in verdicts[1:]]
    return ", ".join(f"{word} in {words.count(word)}" for word in ("ahead", "even", "behind"))


def verdict_table(
    found: Sequence[Entry],
    protocol: Mapping[str, Any],
    test_ratio: Mapping[str, float] = MappingProxyType({}),
) -> TextTable:
    """For each contest and set, without and with the group: our one model, the best other one,
    and the differences.

    ``test_ratio`` has, for data sets whose splits overlap, the test rows for each training row:
    standard errors are then those of Nadeau and Bengio.
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
                overlap = test_ratio.get(name, 0.0)
                line = _verdict(_by_split(own, ours), others, contest, protocol, overlap)
                if line is not None:
                    lines.append([contest["gap"], name, "known" if needs else "", *line])
    heading = ["gap", "data", "group", "best other", "utility, points", "gap, points", "verdict"]
    return [heading, *lines]


def _verdict(
    own: Mapping[int, Entry],
    others: Mapping[str, Mapping[int, Entry]],
    contest: Mapping[str, Any],
    protocol: Mapping[str, Any],
    test_ratio: float,
) -> list[str] | None:
    """The best other method, the differences in utility and gap, and who is ahead; None where
    there is no entry.
    """
    if not own or not others:
        return None
    errors = float(protocol["verdict"]["standard_errors"])

    def keeps(entries: Mapping[int, Entry]) -> bool:
        mean, error = _mean([one.excess for one in entries.values()], test_ratio)
        error = hypot(error, _test_error(own, entries, "gap", alone=True))
        return mean - errors * error <= float(contest["limit"])

    able = {
        method: entries
        for method, entries in others.items()
        if keeps(entries) and own.keys() <= entries.keys()
    }
    if not able:
        return ["none keeps the limit", "", "", "ahead" if keeps(own) else "even"]
    best = max(able, key=lambda method: fmean(one.utility for one in able[method].values()))
    theirs = able[best]
    leads = [100 * (one.utility - theirs[split].utility) for split, one in own.items()]
    gaps = [100 * (one.gap - theirs[split].gap) for split, one in own.items()]
    lead, error = _mean(leads, test_ratio)
    gap, gap_error = _mean(gaps, test_ratio)
    error = hypot(error, 100 * _test_error(own, theirs, "utility"))
    gap_error = hypot(gap_error, 100 * _test_error(own, theirs, "gap"))
    if not keeps(own):
        word = "behind"
    elif len(leads) == 1:
        word = "one split"
    else:
        word = _word(lead, errors * error)
    return [best, f"{lead:+.2f} ± {error:.2f}", f"{gap:+.2f} ± {gap_error:.2f}", word]


def _word(lead: float, needed: float) -> str:
    """Who is ahead.

    >>> _word(0.3, 0.2), _word(-0.1, 0.2), _word(-0.3, 0.2)
    ('ahead', 'even', 'behind')
    """
    if lead > needed:
        return "ahead"
    return "behind" if lead < -needed else "even"


def _test_error(
    own: Mapping[int, Entry],
    theirs: Mapping[int, Entry],
    field: Literal["utility", "gap"],
    *,
    alone: bool = False,
) -> float:
    """What the draw of test rows that all splits share adds to the standard error of the mean
    difference (``alone``: of their mean); 0 if each split has test rows of its own.

    Where their entries have no resamples, their errors are taken for independent of ours, and as
    large.
    """
    ours = _resampled_means(own, field)
    if not ours.size:
        return 0.0
    others = _resampled_means(theirs, field)
    if alone:
        return float(np.std(others if others.size else ours, ddof=1))
    if others.size:
        return float(np.std(ours - others, ddof=1))
    return sqrt(2) * float(np.std(ours, ddof=1))


def _resampled_means(entries: Mapping[int, Entry], field: Literal["utility", "gap"]) -> Any:
    """The mean over splits on each resample of the test rows."""
    place = ("utility", "gap").index(field)
    rows = [one.resampled[place] for _, one in sorted(entries.items()) if one.resampled]
    return np.mean(rows, axis=0) if len(rows) == len(entries) else np.empty(0)


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


def _mean(values: Sequence[float], test_ratio: float = 0.0) -> tuple[float, float]:
    """The mean and its standard error, 0 for one value.

    ``test_ratio`` are the test rows for each training row where the values are those of random
    splits of the same rows (Nadeau and Bengio, 2003).

    >>> [round(_mean([1.0, 3.0], ratio)[1], 4) for ratio in (0.0, 0.5)]
    [1.0, 1.4142]
    """
    if len(values) < 2:
        return fmean(values), 0.0
    return fmean(values), stdev(values) * sqrt(1 / len(values) + test_ratio)


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
