"""The data sets as plain arrays with every seed's rows: what training needs, wherever it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.settings import DATA, Effort, Input
from metrifair import datasets
from metrifair.tradeoff.ledger import fingerprint

_QUICK_ROWS = 600  # of either part in a sketch


@dataclass(frozen=True, eq=False)
class Splits:
    """Features, targets, groups, and for each seed the training rows and the test rows."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    a: NDArray[np.int64]
    train: NDArray[np.int64]  # (seeds, rows)
    test: NDArray[np.int64]  # (seeds, rows)

    @property
    def without_group(self) -> NDArray[np.float64]:
        """Features without the column that is the group itself."""
        return self.x[:, ~(self.x == self.a[:, None]).all(0)]

    @property
    def prescribed(self) -> bool:
        """Whether all seeds have the same rows."""
        return bool((self.train == self.train[0]).all())

    def fingerprint(self, seeds: Sequence[int]) -> str:
        """A name for all that results of these seeds depend on."""
        own = list(seeds)
        return fingerprint([self.x, self.y, self.a, self.train[own], self.test[own]])


Source = Callable[[str, Input], Splits]
"""Where the arrays of a data set come from."""


def source(effort: Effort, arrays: Path | None = None) -> Source:
    """The data sets from a file of arrays or, without one, from their raw files; first rows
    only for a sketch.
    """
    known = {} if arrays is None else read_arrays(arrays)

    @cache
    def splits(name: str, inputs: Input) -> Splits:
        found = (
            load(name, inputs, seeds=len(effort.seeds)) if arrays is None else known[name, inputs]
        )
        if not effort.quick:
            return found
        return replace(found, train=found.train[:, :_QUICK_ROWS], test=found.test[:, :_QUICK_ROWS])

    return splits


def dataset(name: str, inputs: Input) -> datasets.Dataset:
    """A data set of the experiments as the library loads it."""
    options: dict[str, Any] = dict(DATA[name].options)
    if name == "adult" and inputs == "standard":
        options["encoding"] = "onehot"
    return datasets.load(DATA[name].source, **options)


def load(name: str, inputs: Input, *, seeds: int) -> Splits:
    """A data set of the experiments; the splits are those of the paper."""
    data = dataset(name, inputs)
    splits = [data.split(seed) for seed in range(seeds)]
    return Splits(
        np.array(data.X, dtype=np.float64),
        np.array(data.y, dtype=np.float64),
        np.array(data.group_codes, dtype=np.int64),
        *(np.stack([split[part] for split in splits]).astype(np.int64) for part in (0, 1)),
    )


def write_arrays(path: Path, *, seeds: int) -> None:
    """All data sets and inputs in one compressed file of arrays."""
    arrays: dict[str, Any] = {}
    for name in DATA:
        for inputs in ("raw", "standard"):
            own = asdict(load(name, "raw" if inputs == "raw" else "standard", seeds=seeds))
            arrays |= {f"{name}/{inputs}/{field}": values for field, values in own.items()}
    np.savez_compressed(path, **arrays)


def read_arrays(path: Path) -> dict[tuple[str, str], Splits]:
    """The data sets that ``write_arrays`` kept; the file can hold nothing but arrays."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    with np.load(path) as arrays:
        for key in arrays.files:
            name, inputs, field = key.split("/")
            found.setdefault((name, inputs), {})[field] = arrays[key]
    return {key: Splits(**fields) for key, fields in found.items()}
