"""What held-out rows cannot tell: the unfairness that chance alone would show, and groups too small to judge."""

from __future__ import annotations

import torch
from torch import Tensor

from metrifair.results import few_text
from metrifair.tradeoff.evaluation import HeldOut, distances_of

_FEWEST_DRAWS, _MOST_DRAWS = 20, 200
_WORK = 5_000_000  # scores that are sorted, about


def unfairness_by_chance(part: HeldOut, on: str = "scores") -> float:
    """Mean unfairness on these rows of models whose scores, or decisions, have nothing to do with the groups.

    Like the figure itself it is the largest over all comparisons and classes, of which many share rows: so it is drawn,
    with a fixed seed. Scores have no ties and decisions equal shares; with others chance shows less, not more.
    """
    classes = len(part.classes) if len(part.classes) > 2 and part.cells.criterion.score != "loss" else 1
    work = classes * sum(sum(side.counts) for side in part.sides)
    draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _WORK // work))
    scores = _random_scores(draws, classes, len(part.labels))
    decided = on == "decisions" and not part.regression
    return float(distances_of(_decisions(scores) if decided else scores, part).amax((1, 2)).mean())


def _random_scores(draws: int, classes: int, rows: int) -> Tensor:
    """Uniform scores; of several classes, uniform among all probabilities: (draws, classes, rows)."""
    uniform = torch.rand(draws, classes, rows, generator=torch.Generator().manual_seed(0))
    if classes == 1:
        return uniform
    waiting = -(1 - uniform).log()
    return waiting / waiting.sum(1, keepdim=True)


def _decisions(scores: Tensor) -> Tensor:
    if scores.shape[1] == 1:
        return (scores > 0.5).float()
    return (scores == scores.amax(1, keepdim=True)).float()


def small_groups(part: HeldOut, rows: str) -> str:
    """Groups with so few of these rows that any figure of theirs may be chance, and what to do; empty if none."""
    found = few_text(
        (group, comparison.attribute, rows if comparison.within == "everyone" else f"{rows}, {comparison.within}", size)
        for comparison, side in zip(part.cells.comparisons, part.sides, strict=True)
        for group, size in zip(comparison.groups, side.counts, strict=True)
    )
    return f"{found} Merge small groups, mark them as missing, or hold more rows out." if found else ""
