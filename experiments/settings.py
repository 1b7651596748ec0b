"""What the experiments train: data sets with their settings, and the two protocols, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from metrifair.checks import check_known
from metrifair.datasets.record import Task
from metrifair.problem.criteria import Compare

Input = Literal["raw", "standard"]  # unscaled; or one-hot where there is a choice, and standardised


@dataclass(frozen=True)
class Data:
    """A data set of the paper, and how its models are trained."""

    title: str
    source: str  # what datasets.load is asked for
    options: Mapping[str, str | bool]
    task: Task
    batch_size: int
    epochs: int
    learning_rate: float
    hidden: int
    strengths: tuple[float, float, int]  # lowest, highest, how many; log-spaced
    test_groups: tuple[int, int]  # test rows of each group, to the nearest whole row on average over splits
    test_positives: tuple[int, int] | None = None  # those of them with label 1

    @property
    def majority(self) -> float:
        """Accuracy of the best constant label, or R2 of the best constant."""
        if self.test_positives is None:
            return 0.0
        share = sum(self.test_positives) / sum(self.test_groups)
        return max(share, 1 - share)


_Pair = tuple[int, int]


def _classifier(title: str, source: str, batch_size: int, *, groups: _Pair, positives: _Pair, **options: str) -> Data:
    grid = (1e-5, 1e2, 25)
    about = MappingProxyType(options)
    return Data(title, source, about, "classification", batch_size, 500, 5e-4, 16, grid, groups, positives)


def _regressor(
    title: str, source: str, *, epochs: int, rate: float, highest: float, groups: _Pair, **options: str
) -> Data:
    grid = (1e-5, highest, 50)
    return Data(title, source, MappingProxyType(options), "regression", 128, epochs, rate, 20, grid, groups)


DATA = MappingProxyType(
    {
        "drug": _classifier("Drug", "drug", 128, groups=(41, 431), positives=(15, 89), target="cannabis"),
        "communities": _classifier(
            "CC", "communities", 128, groups=(256, 243), positives=(40, 138), task="classification"
        ),
        "compas": _classifier("COMPAS", "compas", 2048, groups=(794, 526), positives=(415, 206)),
        "adult": _classifier("Adult", "adult", 2048, groups=(5421, 10860), positives=(590, 3256)),
        "student-math": _regressor(
            "Student Math", "student-math", epochs=2000, rate=1e-3, highest=1e3, groups=(47, 52)
        ),
        "student-portuguese": _regressor(
            "Student Portuguese", "student-portuguese", epochs=2000, rate=1e-3, highest=1e3, groups=(67, 96)
        ),
        "communities-regression": _regressor(
            "CC", "communities", epochs=1000, rate=1e-4, highest=1e2, groups=(256, 243), task="regression"
        ),
        "drug-heroin": _classifier(
            "Drug (heroin)", "drug", 128, groups=(41, 431), positives=(35, 367), target="heroin"
        ),
    }
)
CLASSIFICATION = ("drug", "communities", "compas", "adult")
REGRESSION = ("student-math", "student-portuguese", "communities-regression")


@dataclass(frozen=True)
class Protocol:
    """What differs between the runs that were published and those that the text means.

    The highest strength of classification is that of the published runs in both: on predictions, which lie between 0
    and 1, the text's limit of 10 ends before the trade-off does.
    """

    name: str
    compare: Compare  # what the penalty acts on in classification
    floored: bool  # batches of floor(share x size) samples of each group, all of equal weight
    inputs: tuple[Input, ...]
    on: tuple[str, ...]  # whose unfairness the areas are of: labels, scores
    exact_area: bool  # else the trapezoid with its anchors
    heroin: bool = False


PUBLISHED = Protocol("published", "output", floored=True, inputs=("raw",), on=("labels",), exact_area=False)
CORRECTED = Protocol(
    "corrected",
    "prediction",
    floored=False,
    inputs=("raw", "standard"),
    on=("scores", "labels"),
    exact_area=True,
    heroin=True,
)
PROTOCOLS = {protocol.name: protocol for protocol in (PUBLISHED, CORRECTED)}


def protocol_named(name: str) -> Protocol:
    """The protocol of that name."""
    check_known("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]


@dataclass(frozen=True)
class Effort:
    """How much of an experiment is run: all of it, or a sketch that shows that everything works."""

    seeds: tuple[int, ...]
    quick: bool = False

    @classmethod
    def of(cls, seeds: int, *, quick: bool = False) -> Effort:
        """So many seeds; at most two in a sketch."""
        return cls(tuple(range(min(seeds, 2) if quick else seeds)), quick)

    def strengths(self, lowest: float, highest: float, count: int) -> list[float]:
        """Log-spaced strengths; four of them in a sketch."""
        return [float(value) for value in np.geomspace(lowest, highest, 4 if self.quick else count)]

    def epochs(self, whole: int) -> int:
        """Passes over the data."""
        return max(1, whole // 100) if self.quick else whole

    def shortened(self, data: Data) -> Data:
        """The data set with as many epochs as are wanted."""
        return replace(data, epochs=self.epochs(data.epochs))
