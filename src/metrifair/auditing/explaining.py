"""Findings in words: where and for whom the gap is largest, and what the number says."""

from __future__ import annotations

from math import ceil, floor, log10

import numpy as np

from metrifair.auditing.atoms import Atoms, Gap, largest_gap, utility_of
from metrifair.metrics.registry import facts
from metrifair.report.numbers import percent_text
from metrifair.results import WitnessCurve

_GRID = 100


def score_text(score: float, span: float = 0.0) -> str:
    """A score in plain digits: three, and as many as tell hundredths of the ``span`` of all scores apart.

    >>> score_text(0.43217), score_text(-12345.6), score_text(0.2), score_text(0.99968, 0.0004)
    ('0.432', '-12346', '0.2', '0.99968')
    """
    if score == 0 or not 1e-9 < abs(score) < 1e15:
        return f"{score:.3g}"
    decimals = 2 - floor(log10(abs(score)))
    if span > 0:
        decimals = max(decimals, ceil(2 - log10(span)))
    text = f"{score:.{max(0, decimals)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quoted(name: str) -> str:
    """A group's name, set apart from the sentence around it."""
    return f"“{name}”"


def witness_curve(metric: str, found: Atoms) -> WitnessCurve | None:
    """The utility that shows the gap, on at most 101 scores that include the one of the largest gap; None without."""
    utility = utility_of(metric, found)
    if utility is None:
        return None
    grid = np.union1d(np.linspace(found.values[0], found.values[-1], _GRID), largest_gap(found).score)
    return WitnessCurve(grid.tolist(), utility(grid).tolist(), utility.expected)


def gap_sentence(groups: tuple[str, str], gap: Gap, span: float = 0.0) -> str:
    """Where the shares differ most, and whose are larger.

    >>> gap_sentence(("men", "women"), Gap(0.43, (0.41, 0.62)))
    'At score 0.43 the gap is largest: 62.0% of “women” but 41.0% of “men” have this score or less.'
    >>> gap_sentence(("men", "women"), Gap(0.43, (0.5, 0.5)))
    'No score tells “men” from “women”: their distributions agree.'
    """
    (less, many), (more, few) = sorted(zip(gap.shares, groups, strict=True))
    if less == more:
        return f"No score tells {quoted(groups[0])} from {quoted(groups[1])}: their distributions agree."
    return (
        f"At score {score_text(gap.score, span)} the gap is largest: {percent_text(more)} of {quoted(few)} but "
        f"{percent_text(less)} of {quoted(many)} have this score or less."
    )


def mean_sentence(groups: tuple[str, str], found: Atoms) -> str:
    """Whose scores are higher on average.

    >>> mean_sentence(("a", "b"), Atoms(np.array([0.0, 1.0]), np.array([1.0, 1.0]), np.array([1.0, 3.0])))
    'The mean score is 0.75 for “b” and 0.5 for “a”.'
    """
    means = [float(np.average(found.values, weights=side)) for side in (found.left, found.right)]
    (low, lower), (high, higher) = sorted(zip(means, groups, strict=True))
    texts = [score_text(mean, _span(found)) for mean in (high, low)]
    return f"The mean score is {texts[0]} for {quoted(higher)} and {texts[1]} for {quoted(lower)}."


def _span(found: Atoms) -> float:
    return float(found.values[-1] - found.values[0])


def sentence_of(metric: str, groups: tuple[str, str], found: Atoms) -> str:
    """Where and for whom the gap shows, for one metric."""
    gap = gap_sentence(groups, largest_gap(found), _span(found))
    return f"{mean_sentence(groups, found)} {gap}" if facts(metric).compares_means else gap


def meaning_of(metric: str, value: float, groups: tuple[str, str], gap: Gap, span: float = 0.0) -> str:
    """What the number says; ``span`` is that of the scores.

    >>> meaning_of("kolmogorov", 0.21, ("men", "women"), Gap(0.43, (0.41, 0.62)))
    'However a threshold is chosen, the shares of “men” and “women” above it differ by at most 21.0 percentage points; \
at 0.43 they do.'
    """
    return facts(metric).meaning.format(
        first=quoted(groups[0]),
        second=quoted(groups[1]),
        value=score_text(value),
        half=score_text(value / 2),
        root=score_text(max(0.0, value) ** 0.5),
        points=f"{100 * value:.1f} percentage points",
        score=score_text(gap.score, span),
    )
