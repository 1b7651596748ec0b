"""Results to tables: areas of every case with the printed value beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import nan
from statistics import fmean, stdev
from typing import NamedTuple

from experiments.page import TextTable
from experiments.printed import LABELS_ONLY, METHODS, Printed, printed
from experiments.results import ModelResult, dominated_area, trapezoid
from experiments.settings import CLASSIFICATION, DATA, REGRESSION

FULL = 10  # seeds of a whole run; a mean of fewer says so


class Mean(NamedTuple):
    """Mean and standard error over seeds; a single seed has no error."""

    value: float
    error: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Of the values of all seeds."""
        error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else nan
        return cls(fmean(values), error, len(values))

    def __str__(self) -> str:
        few = f" ({self.seeds} seeds)" if self.seeds < FULL else ""
        return (
            f"{self.value:.3f} (1 seed)"
            if self.seeds == 1
            else f"{self.value:.3f} ± {self.error:.3f}{few}"
        )


class Curve(NamedTuple):
    """All results of one method on one case."""

    experiment: str
    protocol: str
    input: str
    data: str
    method: str
    results: tuple[ModelResult, ...]

    @property
    def seconds(self) -> float:
        """Of one fit, on average."""
        return fmean(result.seconds for result in self.results)

    @property
    def seeds(self) -> list[tuple[ModelResult, ...]]:
        """The results of each seed that has at least one model."""
        parts = groupby(
            sorted(self.results, key=lambda result: result.seed), key=lambda result: result.seed
        )
        by_seed = [tuple(result for result in part if not result.failed) for _, part in parts]
        return [part for part in by_seed if part]

    def exact(self, on: str, *, constant: bool = False) -> Mean:
        """The dominated area; ``constant`` gives every method the best constant model, which is
        fair.
        """
        utility = DATA[self.data].majority if constant else 0.0
        return Mean.of([dominated_area(part, on=on, constant=utility) for part in self.seeds])

    def published(self, on: str = "labels", *, anchor_last: bool = False) -> Mean:
        """The area as the authors computed it."""
        return Mean.of(
            [
                trapezoid(
                    [result.gap(on) for result in part],
                    [result.accuracy for result in part],
                    anchor_last=anchor_last,
                )
                for part in self.seeds
            ]
        )

    def as_printed(self) -> Mean:
        """The area as it was printed: under equal opportunity, our linear model was scored by
        parity by mistake.
        """
        return self.published("parity" if self.mistaken else "labels")

    @property
    def mistaken(self) -> bool:
        """Whether the printed area is of another criterion than the table says."""
        return self.experiment == "equal-opportunity" and self.method == "mfl-linear"


def curves(results: Iterable[ModelResult]) -> list[Curve]:
    """Results by case and method, in the order of the paper's tables; experiments that share a
    figure are mixed.
    """
    names, methods = [*CLASSIFICATION, *REGRESSION, "drug-heroin"], list(METHODS)

    def key(result: ModelResult) -> tuple[str, str, str, str, str]:
        return (result.experiment, result.protocol, result.input, result.data, result.method)

    def place(result: ModelResult) -> tuple[object, ...]:
        return (
            result.protocol,
            result.input,
            names.index(result.data),
            methods.index(result.method),
            result.experiment,
        )

    return [
        Curve(*case, tuple(part)) for case, part in groupby(sorted(results, key=place), key=key)
    ]


def close(value: float, target: Printed) -> bool:
    """Within two printed standard errors, or 0.01 if that is more."""
    return abs(value - target.area) <= max(2 * target.error, 0.01)


def published_table(all_curves: Sequence[Curve]) -> TextTable:
    """Areas as the authors computed them, with theirs beside."""
    heading = [
        "data",
        "method",
        "printed",
        "ours",
        "difference",
        "close",
        "s per fit, printed",
        "s per fit, ours",
    ]
    lines = []
    for curve in all_curves:
        target = printed(curve.experiment, curve.data, curve.method)
        areas = [("", curve.as_printed())]
        if curve.experiment == "regression":
            areas.append((" (anchor last)", curve.published(anchor_last=True)))
        if curve.mistaken:
            areas = [
                (" (scored by parity, as printed)", curve.as_printed()),
                ("", curve.published()),
            ]
        for name, area in areas:
            lines.append(
                [
                    DATA[curve.data].title,
                    METHODS[curve.method] + name,
                    _printed_area(target),
                    str(area),
                    f"{area.value - target.area:+z.3f}" if target else "",
                    ("yes" if close(area.value, target) else "no") if target else "",
                    f"{target.seconds:g}" if target else "",
                    f"{curve.seconds:.3g}",
                ]
            )
    return without_empty([heading, *lines])


def _printed_area(target: Printed | None) -> str:
    return f"{target.area:.3f} ± {target.error:.3f}" if target else ""


def without_empty(table: TextTable) -> TextTable:
    """The table without the columns that hold nothing.

    >>> without_empty([["data", "close", "area"], ["Drug", "", "0.8"]])
    [['data', 'area'], ['Drug', '0.8']]
    """
    full = [any(cells) for cells in zip(*table[1:], strict=True)] or [True] * len(table[0])
    return [[text for text, is_full in zip(line, full, strict=True) if is_full] for line in table]


def corrected_table(all_curves: Sequence[Curve], *, marked: bool = True) -> TextTable:
    """Exact areas of scores and of labels, and the printed ones, which are other areas of other
    models.

    ``marked``: in bold the best of each data set and input, of the most seeds.
    """
    kinds = ["area, scores", "scores, constant allowed", "area, labels", "labels, constant allowed"]
    heading = ["data", "input", "method", *kinds, "printed (published protocol)", "s per fit"]
    lines = []
    for (inputs, data), part in groupby(all_curves, key=lambda curve: (curve.input, curve.data)):
        group = list(part)
        areas = [_corrected_areas(curve) for curve in group]
        best = [_best(column) if marked else nan for column in zip(*areas, strict=True)]
        for curve, line in zip(group, areas, strict=True):
            texts = [
                "" if area is None else f"**{area}**" if area.value == top else str(area)
                for area, top in zip(line, best, strict=True)
            ]
            texts.append(_printed_area(printed(curve.experiment, data, curve.method)))
            lines.append(
                [DATA[data].title, inputs, METHODS[curve.method], *texts, f"{curve.seconds:.3g}"]
            )
    return without_empty([heading, *lines])


def _corrected_areas(curve: Curve) -> list[Mean | None]:
    """Of scores, alone and beside a constant, then of labels; None where there are no such."""
    if DATA[curve.data].task == "regression":
        return [curve.exact("scores"), None, None, None]
    on = {"scores": curve.method not in LABELS_ONLY, "labels": True}
    return [
        curve.exact(name, constant=c) if has_area else None
        for name, has_area in on.items()
        for c in (False, True)
    ]


def _best(areas: Sequence[Mean | None]) -> float:
    """The largest area among those of the most seeds: means over other splits do not compare."""
    present = [area for area in areas if area]
    most = max((area.seeds for area in present), default=0)
    return max((area.value for area in present if area.seeds == most), default=nan)
