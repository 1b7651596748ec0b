"""Which model suits: what is asked of it, and what noise does not tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from metrifair.errors import DataError
from metrifair.figures.certificates import dkw_radius
from metrifair.figures.utility import UTILITIES, Utility
from metrifair.support.checks import check_known, check_switches, is_number
from metrifair.tradeoff.points import Outcome, Point

if TYPE_CHECKING:
    from metrifair.tradeoff.result import TradeOff


@dataclass(frozen=True)
class Wish:
    """What is asked of a model: exactly one of ``max_unfairness``, ``min_accuracy`` and ``rule``."""

    max_unfairness: float | None
    min_accuracy: float | None
    rule: str | None
    certified: bool

    def __post_init__(self) -> None:
        limits = {"max_unfairness": self.max_unfairness, "min_accuracy": self.min_accuracy}
        if sum(given is not None for given in (*limits.values(), self.rule)) != 1:
            raise DataError("select needs exactly one of max_unfairness, min_accuracy and rule")
        for name, limit in limits.items():
            if not (limit is None or is_number(limit)):
                raise DataError(f"{name} must be a finite number, got {limit!r}")
        if self.max_unfairness is not None and self.max_unfairness > 1:
            raise DataError(
                f"max_unfairness must be at most 1, as it is a distance between shares, got {self.max_unfairness!r}"
            )
        if self.rule is not None:
            check_known("rule", self.rule, ("donini",))
        check_switches(certified=self.certified)
        if self.certified and self.max_unfairness is None:
            raise DataError("certified goes with max_unfairness: it is the unfairness that is certified")
        if self.certified and self.max_unfairness == 1:
            raise DataError("certified with max_unfairness=1 proves nothing, as no unfairness is larger; ask for less")


def suitable(front: TradeOff, candidates: Sequence[Outcome], wish: Wish, utility: Utility) -> list[Outcome]:
    """The candidates that keep to the wish on validation data; where there are none, an error says what there is."""
    points, hint, low, high = [one.validation for one in candidates], "", -inf, inf
    if wish.max_unfairness is not None:
        high = wish.max_unfairness
        figures = [one.gap(front.unfairness_of) for one in points]
        if wish.certified:
            models = max(front.tried or 0, len(front.outcomes))
            figures = [
                bound(one, unfairness_of=front.unfairness_of, cdfs=2 * front.comparisons, models=models)
                for one in points
            ]
        wanted = f"{'certified ' if wish.certified else ''}unfairness at most {high:g}"
        hint = " (1 proves nothing: no unfairness is larger)" if wish.certified and max(figures) >= 1 else ""
        larger = "merge small groups, mark them as missing" if front.all_small else "train with larger strengths"
        hint += f": ask for more, {larger}, or hold more data out"
    elif wish.min_accuracy is not None:
        low = wish.min_accuracy
        figures, wanted = [one.accuracy for one in points], f"{front.accuracy_name} at least {low:g}"
    else:  # Donini et al.: 97 % of the best; a loss may be 1 / 97 % of the least; a negative R2 has no 97 %
        figures = [_worth(one, utility) for one in candidates]
        best, wanted = max(figures), f"97 % of the best {utility.name}"
        low = 0.97 * best if best > 0 else best if utility.larger_is_better else best / 0.97
    found = [one for one, figure in zip(candidates, figures, strict=True) if low <= figure <= high]
    if not found:
        raise DataError(
            f"no model has {wanted} on validation data; it ranges from {min(figures):.4f} to {max(figures):.4f}{hint}"
        )
    return found


def nearest(front: TradeOff, candidates: Sequence[Outcome], wish: Wish) -> Outcome:
    """The candidate that misses a limit by least on validation data."""
    if wish.min_accuracy is not None:
        return max(candidates, key=lambda one: one.validation.accuracy)
    return min(candidates, key=lambda one: one.validation.gap(front.unfairness_of))


def best_of(front: TradeOff, found: Sequence[Outcome], wish: Wish, utility: Utility) -> Outcome:
    """The best of those that suit, on validation data.

    Models that are no better than a constant come last. By a limit of unfairness, models equal the best in utility
    where they are within its standard error; by a limit of accuracy, they equal the least unfair where both are below
    what chance alone would show. Among equals the better ranking decides, then the utility, then the unfairness.
    """
    better = [one for one in found if not one.validation.marks.get(utility.key)] or list(found)
    if wish.max_unfairness is not None:
        top = max(better, key=lambda one: _worth(one, utility))
        noise = top.validation.errors.get(utility.key, 0.0)
        equal = [one for one in better if _worth(one, utility) >= _worth(top, utility) - noise]  # or all lack it
    else:
        level = max(min(one.validation.gap(front.unfairness_of) for one in better), front.floor or 0.0)
        equal = [one for one in better if one.validation.gap(front.unfairness_of) <= level]
    ranking = [utility] if utility.needs == "scores" or utility.name == "r2" else [UTILITIES[name] for name in _RANKING]
    known = next((own for own in ranking if all(one.validation.figure(own.name) is not None for one in equal)), utility)
    return max(
        equal, key=lambda one: (_worth(one, known), _worth(one, utility), -one.validation.gap(front.unfairness_of))
    )


_RANKING = ("auc", "log_loss", "mean_squared_error")


def _worth(outcome: Outcome, utility: Utility) -> float:
    value = outcome.validation.figure(utility.name)
    return -inf if value is None else utility.worth(value)


def bound(point: Point, *, unfairness_of: str, cdfs: int, models: int) -> float:
    """Upper bound of the unfairness that holds for so many models at once, so also for the one that is chosen."""
    name = "unfairness" if unfairness_of == "scores" or point.decision_unfairness is None else "decision_unfairness"
    if name not in point.intervals:
        raise DataError(
            "no bound is certified, as what is proven does not hold for weighted samples, nor for folds; select "
            "without certified, or make the frontier without sample_weight and without folds"
        )
    gap, interval = point.gap(unfairness_of), point.intervals[name]
    if interval.high >= 1:  # cut off there: the sample proves nothing
        return 1.0
    # Radii grow with the number of functions as sqrt(log(2 m / delta)).
    wider = dkw_radius(1, cdfs=cdfs * models) / dkw_radius(1, cdfs=cdfs)
    return min(1.0, gap + (interval.high - gap) * wider)
