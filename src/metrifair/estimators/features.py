"""Features that are not numbers, named in an error that says what to do about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from metrifair.errors import DataError
from metrifair.problem.tables import Table, columns, is_missing, wrapped

_LISTED = 5


@contextmanager
def numbers_explained(estimator: Any, X: Table) -> Iterator[None]:
    """Where features are not numbers, the error says which, and what to do about it."""
    frame = wrapped("X", X)
    try:
        yield
    except ValueError as error:
        name, found = type(estimator).__name__, _not_numbers(X) if isinstance(frame, nw.DataFrame) else ""
        if not found:
            raise
        raise DataError(
            f"X holds {found}; encode it first with make_pipeline(TableEncoder(), {name}()), fitted with "
            f"{name.lower()}__sensitive_features=..., or train on the file with 'metrifair train'"
        ) from error


def _not_numbers(X: Table) -> str:
    """The columns of a data frame that hold anything but numbers; "" where there are none."""
    found = []
    for name, values in columns("X", X).items():
        missing = is_missing(values)
        present = values[~missing] if missing.any() else values
        try:
            present.astype(np.float64)
        except (TypeError, ValueError):
            found.append(f"{present[0]!r} in {name!r}")
        else:
            found += [f"missing values (NaN) in {name!r}"] if missing.any() else []
    return ", ".join(found[:_LISTED]) + (f" and {len(found) - _LISTED} more columns" if len(found) > _LISTED else "")
