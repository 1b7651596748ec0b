"""What held-out rows cannot tell: the unfairness that chance alone would show, and groups too small to judge."""

from __future__ import annotations

import torch

from metrifair.report.frontier.words import small_groups_note
from metrifair.tradeoff.evaluate import distances_of
from metrifair.tradeoff.split import HeldOut

_FEWEST_DRAWS, _MOST_DRAWS = 20, 200
_WORK = 5_000_000  # scores that are sorted, about


def unfairness_by_chance(part: HeldOut, on: str = "scores") -> float:
    """Mean unfairness on these rows of models whose scores, or decisions, have nothing to do with the groups.

    Like the figure itself it is the largest over all comparisons and classes, of which many share rows: so it is drawn,
    with a fixed seed. Scores have no ties and decisions equal shares; with others chance shows less, not more.
    """
    scheme = part.problem.scheme
    classes = len(scheme.classes) if len(scheme.classes) > 2 and scheme.criterion.score != "loss" else 1
    work = classes * sum(sum(side.counts) for side in part.sides)
    draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _WORK // work))
    scores = torch.rand(draws, classes, len(part.problem), generator=torch.Generator().manual_seed(0))
    if classes > 1:  # uniform among all probabilities of several classes
        waiting = -(1 - scores).log()
        scores = waiting / waiting.sum(1, keepdim=True)
    if on == "decisions" and not part.regression:
        scores = (scores >= 0.5 if classes == 1 else scores == scores.amax(1, keepdim=True)).float()
    return float(distances_of(scores, part).amax((1, 2)).mean())


def small_groups(part: HeldOut, rows: str) -> str:
    """Groups with so few of these rows that any figure of theirs may be chance, and what to do; empty if none."""
    return small_groups_note(
        (group, comparison.attribute, rows if comparison.within == "everyone" else f"{rows}, {comparison.within}", size)
        for comparison, side in zip(part.problem.comparisons, part.sides, strict=True)
        for group, size in zip(comparison.groups, side.counts, strict=True)
    )
