"""A fitted model on held-out data: its point, and the groups' score distributions."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.certificates import dkw_radius
from metrifair.errors import TooFewSamples
from metrifair.metrics.pair import between
from metrifair.metrics.registry import measured
from metrifair.problem.cells import Cells
from metrifair.problem.criteria import scores
from metrifair.problem.samples import Sides, sides_of
from metrifair.problem.tables import Groups, Table
from metrifair.problem.tasks import BINARY, MULTICLASS, regression
from metrifair.results import Curves, Interval, Point

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
_GRID = 101


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Samples that were not trained on, with everything needed to judge a model on them."""

    X: Table
    y: NDArray[Any]  # as given
    labels: NDArray[Any]  # class codes, or targets
    classes: tuple[object, ...]  # empty for regression
    sensitive_features: Table
    groups: Groups
    cells: Cells
    cell: NDArray[np.int64]

    @property
    def regression(self) -> bool:
        """True where the target is a number."""
        return not self.classes

    @cached_property
    def members(self) -> dict[str, dict[str, NDArray[np.bool_]]]:
        """Who is in which group, by attribute; where there are several, groups bear the names of theirs."""
        several = len(self.groups.attributes) > 1
        return {
            attribute.name: {
                f"{attribute.name}: {group}" if several else str(group): codes == place
                for place, group in enumerate(attribute.groups)
            }
            for attribute, codes in zip(self.groups.attributes, self.groups.codes.T, strict=True)
        }

    @cached_property
    def sides(self) -> tuple[Sides, ...]:
        """The rows of each comparison."""
        found = sides_of(self.cells.comparisons, torch.as_tensor(self.cell))
        for comparison, side in zip(self.cells.comparisons, found, strict=True):
            if min(side.counts) == 0:
                raise TooFewSamples(
                    f"comparing {comparison}: the held-out data have {side.counts[0]} and {side.counts[1]} samples; "
                    "hold more data out, merge small groups, or mark them as missing"
                )
        return found


def point_of(model: Any, part: HeldOut, *, strength: float, seed: int) -> Point:
    """Accuracy and unfairness of a model, with intervals."""
    score, decision = predictions(model, part)
    if not np.isfinite(score).all():
        return Point(strength, seed, 0.0, 1.0, failed=True)
    gap, radius = _worst_distance(_compared(score, model, part), part)
    if part.regression:
        accuracy, margin = _r2(part.labels, score)
        return Point(
            strength,
            seed,
            accuracy,
            gap,
            more={"mean_absolute_error": float(np.abs(part.labels - score).mean())},
            intervals={
                "accuracy": Interval(accuracy - margin, accuracy + margin),
                "unfairness": Interval(max(0.0, gap - radius), min(1.0, gap + radius)),
            },
        )
    right = decision == part.labels
    decided, decided_radius = _decision_unfairness(decision, part)
    return Point(
        strength,
        seed,
        float(right.mean()),
        gap,
        decided,
        more=_classification_figures(score, decision, part),
        intervals={
            "accuracy": _wilson(int(right.sum()), len(right)),
            "unfairness": Interval(max(0.0, gap - radius), min(1.0, gap + radius)),
            "decision_unfairness": Interval(max(0.0, decided - decided_radius), min(1.0, decided + decided_radius)),
        },
    )


def predictions(model: Any, part: HeldOut) -> tuple[Floats, NDArray[Any]]:
    """Scores (n,) or (n, classes), and decisions as class codes; groups are handed to models that ask for them."""
    if part.regression:
        values = np.asarray(_asked(model.predict, part), dtype=np.float64)
        return values, values
    decided = np.searchsorted(np.asarray(part.classes), np.asarray(_asked(model.predict, part)))
    if hasattr(model, "predict_proba"):
        probability = np.asarray(_asked(model.predict_proba, part), dtype=np.float64)
        return (probability[:, 1] if probability.shape[1] == 2 else probability), decided
    if hasattr(model, "decision_function"):
        return np.asarray(_asked(model.decision_function, part), dtype=np.float64), decided
    return decided.astype(np.float64), decided


def _asked(method: Any, part: HeldOut) -> Any:
    if "sensitive_features" in inspect.signature(method).parameters:
        return method(part.X, sensitive_features=part.sensitive_features)
    return method(part.X)


def _compared(score: Floats, model: Any, part: HeldOut) -> Tensor:
    """What the criterion compares of a model's scores."""
    task = regression() if part.regression else BINARY if score.ndim == 1 else MULTICLASS
    criterion = part.cells.criterion
    values = torch.as_tensor(score)
    if criterion.score != "prediction":
        are_outputs = not part.regression and not hasattr(model, "predict_proba")
        output = values if are_outputs else task.output(values)
        values = scores(criterion, task, output, torch.as_tensor(part.labels))
    return values


def _decision_unfairness(decision: NDArray[Any], part: HeldOut) -> tuple[float, float]:
    if part.cells.criterion.score == "loss":
        return _worst_distance(torch.as_tensor(decision != part.labels).double(), part)
    if len(part.classes) == 2:
        return _worst_distance(torch.as_tensor(decision).double(), part)
    return _worst_distance(torch.nn.functional.one_hot(torch.as_tensor(decision), len(part.classes)).double(), part)


def _worst_distance(values: Tensor, part: HeldOut) -> tuple[float, float]:
    """Worst Kolmogorov distance, and the radius within which it is certified."""
    found = distances_of(values if values.ndim == 1 else values.T, part)
    cdfs, sides = 2 * found.numel(), part.sides
    radius = max(sum(dkw_radius(count, confidence=CONFIDENCE, cdfs=cdfs) for count in side.counts) for side in sides)
    return float(found.max()), radius


def distances_of(values: Tensor, part: HeldOut) -> Tensor:
    """Kolmogorov distances of scores (..., n), of each comparison: (..., comparisons)."""
    return between(measured("kolmogorov"), values, part.sides, names=part.cells.comparisons, reduce="all")


def _classification_figures(score: Floats, decision: NDArray[Any], part: HeldOut) -> dict[str, float]:
    figures: dict[str, float] = {}
    if score.ndim == 1 and len(part.classes) > 2:  # bare decisions rank nothing
        return figures
    by_class = score if score.ndim == 2 else np.stack([1 - score, score], axis=1)
    ranked = range(by_class.shape[1]) if score.ndim == 2 else [1]
    curves = [_auc(by_class[:, code], part.labels == code) for code in ranked]
    if not np.isnan(curves).any():
        figures["auc"] = float(np.mean(curves))
    if score.min() >= 0 and score.max() <= 1:
        own = by_class[np.arange(len(by_class)), part.labels]
        figures["log_loss"] = float(-np.log(own.clip(min=np.finfo(np.float64).eps)).mean())
    if len(part.classes) == 2:
        rates = [
            [float(decision[group].mean()) for group in groups.values() if group.any()]
            for groups in part.members.values()
        ]
        ratios = [min(own) / max(own) for own in rates if max(own, default=0.0) > 0]
        if ratios:
            figures["four_fifths"] = min(ratios)
    return figures


def _auc(score: Floats, positive: NDArray[np.bool_]) -> float:
    """Share of pairs (positive, negative) that the score puts in order, ties half; NaN where there are none."""
    high, low = score[positive], np.sort(score[~positive])
    if not len(high) or not len(low):
        return float("nan")
    below = np.searchsorted(low, high, side="left") + np.searchsorted(low, high, side="right")
    return float(below.mean() / (2 * len(low)))


def _wilson(successes: int, n: int) -> Interval:
    """Wilson's interval of a share."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    centre = (successes + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * sqrt(successes * (n - successes) / n + z * z / 4)
    return Interval(centre - half, centre + half)


def _r2(y: Floats, prediction: Floats) -> tuple[float, float]:
    """R2 and half its interval, from the spread of each sample's influence on it."""
    errors, spread = (y - prediction) ** 2, (y - y.mean()) ** 2
    total = spread.mean()
    if total == 0:
        return 0.0, 0.0
    value = 1 - errors.mean() / total
    influence = (errors - (1 - value) * spread) / total
    return float(value), float(NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * influence.std() / sqrt(len(y)))


def curves_of(model: Any, part: HeldOut) -> Curves:
    """Distribution functions and densities of the scores of each group, of the attribute with the largest gap.

    Densities are Gaussian kernel estimates; for several classes, of the last class's probability.
    """
    score, _ = predictions(model, part)
    line = score if score.ndim == 1 else score[:, -1]
    low, high = (0.0, 1.0) if not part.regression and line.min() >= 0 and line.max() <= 1 else (line.min(), line.max())
    grid = np.linspace(low, high if high > low else low + 1.0, _GRID)
    density, cumulative = {}, {}
    for name, member in part.members[_worst_attribute(_compared(score, model, part), part)].items():
        own = np.sort(line[member])
        if not len(own):
            continue
        cumulative[name] = (np.searchsorted(own, grid, side="right") / len(own)).round(5).tolist()
        width = max(own.std() * len(own) ** -0.2, (grid[1] - grid[0]) / 2)
        shown = own if len(own) <= 2_000 else own[np.linspace(0, len(own) - 1, 2_000).astype(int)]
        bumps = np.exp(-(((grid[:, None] - shown) / width) ** 2) / 2)
        density[name] = (bumps.mean(1) / (width * np.sqrt(2 * np.pi))).round(5).tolist()
    return Curves(grid.round(6).tolist(), density, cumulative)


def _worst_attribute(values: Tensor, part: HeldOut) -> str:
    """The attribute that the largest distance is about."""
    if len(part.members) == 1:
        return next(iter(part.members))
    found = distances_of(values if values.ndim == 1 else values.T, part).reshape(-1, len(part.sides))
    return part.cells.comparisons[int(found.amax(0).argmax())].attribute
