"""The data sets as plain arrays with every seed's rows: what training needs, wherever it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.settings import DATA, Input
from metrifair import datasets
from metrifair.tradeoff.ledger import fingerprint

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Material:
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

    def first(self, rows: int) -> Material:
        """At most so many training rows and test rows of each seed."""
        return replace(self, train=self.train[:, :rows], test=self.test[:, :rows])

    def fingerprint(self, seeds: Sequence[int]) -> str:
        """A name for all that results of these seeds depend on."""
        own = list(seeds)
        return fingerprint([self.x, self.y, self.a, self.train[own], self.test[own]])


def load(name: str, inputs: Input, *, seeds: int) -> Material:
    """A data set of the experiments; the splits are those of the paper."""
    about = DATA[name]
    options: dict[str, Any] = dict(about.options)
    if name == "adult" and inputs == "standard":
        options["encoding"] = "onehot"
    data = datasets.load(about.source, **options)
    splits = [data.split(seed) for seed in range(seeds)]
    return Material(
        np.array(data.X, dtype=np.float64),
        np.array(data.y, dtype=np.float64),
        np.array(data.sensitive_features, dtype=np.int64),
        *(np.stack([split[part] for split in splits]).astype(np.int64) for part in (0, 1)),
    )


_FIELDS = ("x", "y", "a", "train", "test")


def write(path: Path, materials: Mapping[tuple[str, Input], Material]) -> None:
    """All materials in one compressed file of arrays."""
    arrays = {
        f"{name}/{inputs}/{field}": getattr(one, field)
        for (name, inputs), one in materials.items()
        for field in _FIELDS
    }
    np.savez_compressed(path, **arrays)


def read(path: Path) -> dict[tuple[str, Input], Material]:
    """The materials that ``write`` kept; the file can hold nothing but arrays."""
    with np.load(path) as arrays:
        found: dict[tuple[str, Input], dict[str, Any]] = {}
        for key in arrays.files:
            name, inputs, field = key.split("/")
            found.setdefault((name, "raw" if inputs == "raw" else "standard"), {})[field] = arrays[key]
    return {key: Material(**fields) for key, fields in found.items()}
