"""A data set whose parts are kept apart: rows to train on, to choose on, and to judge the choice on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from metrifair.checks import is_number
from metrifair.errors import DataError
from metrifair.problem.cells import Cells, Contrast, compiled
from metrifair.problem.criteria import Criterion
from metrifair.problem.tables import (
    Groups,
    Table,
    array_of,
    codes,
    columns,
    group_codes,
    levels,
    same_length,
    same_rows,
    stratum_codes,
)
from metrifair.tradeoff.evaluation import HeldOut


class Parts(NamedTuple):
    """Row numbers of the three parts."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]

    def __str__(self) -> str:
        counts = f"{len(self.train):,} rows for training, " if len(self.train) else "Fitted models were given: "
        return f"{counts}{len(self.validation):,} for choosing, {len(self.test):,} for these figures."


@dataclass(frozen=True, eq=False)
class DataSet:
    """A table with its targets, groups and cells."""

    X: Table
    y: NDArray[Any]
    labels: NDArray[Any]  # class codes, or targets
    classes: tuple[object, ...]  # empty for regression
    sensitive_features: Table
    groups: Groups
    cells: Cells
    cell: NDArray[np.int64]

    def held_out(self, rows: NDArray[np.int64]) -> HeldOut:
        """These rows, to judge models on."""
        return HeldOut(
            _safe_indexing(self.X, rows),
            self.y[rows],
            self.labels[rows],
            self.classes,
            rows_of(self.sensitive_features, rows),
            Groups(self.groups.codes[rows], self.groups.attributes),
            self.cells,
            self.cell[rows],
        )

    def split(self, validation: float, test: float, seed: int, *, train: bool = True) -> Parts:
        """Rows of the three parts, each with the same mix of cells and labels where their numbers allow it."""
        shares = (validation, test)
        if not all(is_number(share) and share > 0 for share in shares) or sum(shares) >= (1 if train else 1.0000001):
            raise DataError(
                f"validation and test must be shares above 0 that leave rows for training, got "
                f"{validation!r} and {test!r}"
            )
        everything, kinds = np.arange(len(self.y)), self._kinds()
        if not train:
            validation, test = validation / (validation + test), test / (validation + test)
            chosen, judged = _halves(everything, kinds, test, seed)
            return Parts(everything[:0], chosen, judged)
        rest, judged = _halves(everything, kinds, test, seed)
        own, chosen = _halves(rest, kinds[rest], validation / (1 - test), seed)
        return Parts(own, chosen, judged)

    def _kinds(self) -> NDArray[np.int64]:
        parts = [self.cell, *self.groups.codes.T, *([self.labels] if self.classes else [])]
        return np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def _halves(
    rows: NDArray[np.int64], kinds: NDArray[np.int64], share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    enough = np.bincount(kinds)[kinds].min() >= 2 and len(np.unique(kinds)) <= min(share, 1 - share) * len(rows)
    first, second = train_test_split(rows, test_size=share, random_state=seed, stratify=kinds if enough else None)
    return np.sort(first), np.sort(second)


def rows_of(table: Table, rows: NDArray[np.int64]) -> Table:
    """These rows of a table, an array, or a dictionary of columns."""
    if isinstance(table, Mapping):
        return {name: _safe_indexing(column, rows) for name, column in table.items()}
    return _safe_indexing(table, rows)


def data_set(
    X: Table,
    y: Table,
    sensitive_features: Table,
    control_features: Table | None,
    *,
    regression: bool,
    criterion: Criterion,
    contrast: Contrast,
    pos_label: object = None,
    intersectional: bool = False,
    sample_weight: Table | None = None,
) -> DataSet:
    """The data with everything that judging a model asks for."""
    same_rows(
        y=y,
        X=X,
        sensitive_features=sensitive_features,
        control_features=control_features,
        sample_weight=sample_weight,
    )
    ((name, column), *others) = columns("y", y).items()
    if others:
        raise DataError(f"y must be one column, got {len(others) + 1}")
    classes = () if regression else levels(name, column)
    labels = array_of(name, column).astype(np.float64) if regression else codes(name, column, classes)
    groups = group_codes(sensitive_features, intersectional=intersectional)
    strata, sets = (None, None) if control_features is None else stratum_codes(control_features)
    same_length(
        y=labels,
        X=range(_num_samples(X)),
        sensitive_features=groups.codes,
        control_features=strata,
        sample_weight=sample_weight,
    )
    missing = int((np.isnan(labels) if regression else labels < 0).sum())
    if missing:
        raise DataError(f"y misses {missing} of {len(labels)} values; leave those samples out")
    if pos_label is not None and pos_label not in classes:
        raise DataError(f"pos_label must be one of the classes {list(classes)}, got {pos_label!r}")
    positive = len(classes) - 1 if pos_label is None else classes.index(pos_label)
    cells = compiled(criterion, groups.attributes, classes=classes, positive=positive, strata=sets, contrast=contrast)
    cell = cells.of(groups.codes, labels=labels, strata=strata)
    return DataSet(X, column, labels, classes, sensitive_features, groups, cells, cell)
