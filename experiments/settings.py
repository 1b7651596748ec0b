"""What the experiments train, as values: data sets with their settings, the two protocols, the
cases of each table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from metrifair.problem.criteria import EQUAL_OPPORTUNITY, STATISTICAL_PARITY, Criterion, Penalize

Input = Literal["raw", "standard"]  # unscaled; or one-hot where there is a choice, and standardized


@dataclass(frozen=True)
class Data:
    """A data set of the paper, and how its models are trained."""

    title: str
    source: str  # what datasets.load is asked for
    options: Mapping[str, str]
    task: Literal["classification", "regression"]
    batch_size: int
    epochs: int
    learning_rate: float
    hidden: int
    strengths: tuple[float, float, int]  # lowest, highest, how many; log-spaced
    # test rows of each group, to the nearest integer on average over splits
    test_groups: tuple[int, int]
    test_positives: tuple[int, int] | None = None  # those of them with label 1

    @property
    def majority(self) -> float:
        """Accuracy of the best constant label, or R2 of the best constant."""
        if self.test_positives is None:
            return 0.0
        share = sum(self.test_positives) / sum(self.test_groups)
        return max(share, 1 - share)


def _classifier(
    title: str,
    source: str,
    batch_size: int,
    *,
    groups: tuple[int, int],
    positives: tuple[int, int],
    **options: str,
) -> Data:
    grid = (1e-5, 1e2, 25)
    about = MappingProxyType(options)
    return Data(
        title, source, about, "classification", batch_size, 500, 5e-4, 16, grid, groups, positives
    )


def _regressor(
    title: str,
    source: str,
    *,
    epochs: int,
    rate: float,
    highest: float,
    groups: tuple[int, int],
    **options: str,
) -> Data:
    grid = (1e-5, highest, 50)
    return Data(
        title, source, MappingProxyType(options), "regression", 128, epochs, rate, 20, grid, groups
    )


DATA = MappingProxyType(
    {
        "drug": _classifier(
            "Drug", "drug", 128, groups=(41, 431), positives=(15, 89), target="cannabis"
        ),
        "communities": _classifier(
            "CC", "communities", 128, groups=(256, 243), positives=(40, 138), task="classification"
        ),
        "compas": _classifier("COMPAS", "compas", 2048, groups=(794, 526), positives=(415, 206)),
        "adult": _classifier("Adult", "adult", 2048, groups=(5421, 10860), positives=(590, 3256)),
        "student-math": _regressor(
            "Student Math", "student-math", epochs=2000, rate=1e-3, highest=1e3, groups=(47, 52)
        ),
        "student-portuguese": _regressor(
            "Student Portuguese",
            "student-portuguese",
            epochs=2000,
            rate=1e-3,
            highest=1e3,
            groups=(67, 96),
        ),
        "communities-regression": _regressor(
            "CC",
            "communities",
            epochs=1000,
            rate=1e-4,
            highest=1e2,
            groups=(256, 243),
            task="regression",
        ),
        # not in the paper
        "mortgage": _classifier("Mortgage", "mortgage", 128, groups=(421, 77), positives=(382, 55)),
        "drug-heroin": _classifier(
            "Drug (heroin)", "drug", 128, groups=(41, 431), positives=(35, 367), target="heroin"
        ),
    }
)
CLASSIFICATION = ("drug", "communities", "compas", "adult")
REGRESSION = ("student-math", "student-portuguese", "communities-regression")
_SMALL_BATCH = 128
_EQUAL_OPPORTUNITY_BATCH = 512  # instead of the small one, so that enough samples have label 1


@dataclass(frozen=True)
class Protocol:
    """What differs between the runs that were published and those that the text means.

    The highest strength of classification is that of the published runs in both: on predictions,
    which lie between 0 and 1, the text's limit of 10 ends before the trade-off does.
    """

    name: str
    penalize: Penalize  # what the penalty acts on in classification
    floored: bool  # batches of floor(share x size) samples of each group, all of equal weight
    inputs: tuple[Input, ...]
    heroin: bool = False


PUBLISHED = Protocol("published", "output", floored=True, inputs=("raw",))
CORRECTED = Protocol(
    "corrected", "prediction", floored=False, inputs=("raw", "standard"), heroin=True
)
PROTOCOLS = {protocol.name: protocol for protocol in (PUBLISHED, CORRECTED)}


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

    def some(self, strengths: Sequence[float]) -> list[float]:
        """These strengths; four of them in a sketch."""
        return list(strengths[:: -(-len(strengths) // 4)] if self.quick else strengths)

    def epochs(self, whole: int) -> int:
        """Passes over the data."""
        return max(1, whole // 100) if self.quick else whole


@dataclass(frozen=True)
class Case:
    """One case of a table of the paper: a data set with its settings, a protocol, an input and
    a criterion.
    """

    experiment: str
    protocol: Protocol
    input: Input
    name: str
    data: Data
    criterion: Criterion = STATISTICAL_PARITY

    @property
    def classify(self) -> bool:
        """Whether labels are predicted."""
        return self.data.task == "classification"

    @property
    def published(self) -> bool:
        """Whether it is run as the authors' code ran it."""
        return self.protocol.name == "published"

    @property
    def standardize(self) -> bool:
        """Whether features are centered and scaled."""
        return self.input == "standard"


def cases(experiment: str, protocol: Protocol, effort: Effort) -> list[Case]:
    """All cases of one table: data sets x inputs."""
    names: tuple[str, ...] = REGRESSION if experiment == "regression" else CLASSIFICATION
    if experiment == "classification" and protocol.heroin:
        names = (*names, "drug-heroin")
    criterion = EQUAL_OPPORTUNITY if experiment == "equal-opportunity" else STATISTICAL_PARITY
    found = []
    for inputs in protocol.inputs:
        for name in names:
            data = replace(DATA[name], epochs=effort.epochs(DATA[name].epochs))
            if criterion is EQUAL_OPPORTUNITY and data.batch_size == _SMALL_BATCH:
                data = replace(data, batch_size=_EQUAL_OPPORTUNITY_BATCH)
            found.append(Case(experiment, protocol, inputs, name, data, criterion))
    return found
