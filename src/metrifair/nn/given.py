"""What a PyTorch loop hands over, checked: numbers of groups and labels, and the cells they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from metrifair.errors import DataError
from metrifair.problem.cells import Attribute, Cells, Contrast, Integers, compiled
from metrifair.problem.criteria import Criterion
from metrifair.problem.tables import UNKNOWN


def integer_cells(criterion: Criterion, groups: Sequence[int], classes: int, contrast: Contrast = "pairs") -> Cells:
    """Cells of groups and labels that are numbers from 0 upwards; the last label is the positive one."""
    names = ["group"] if len(groups) == 1 else [f"group {k}" for k in range(len(groups))]
    attributes = [Attribute(name, tuple(range(count))) for name, count in zip(names, groups, strict=True)]
    return compiled(criterion, attributes, classes=range(classes), positive=classes - 1, contrast=contrast)


def check_lengths(what: str, **parts: Any) -> None:
    """Raise a DataError where parts that were given differ in length."""
    lengths = {name: len(part) for name, part in parts.items() if part is not None}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{what} must have one length, got {lengths}")


def numbers(name: str, given: Tensor | ArrayLike) -> Tensor:
    """Numbers as a tensor, whatever holds them."""
    if isinstance(given, Tensor):
        return given
    values = np.array(given)
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"{name} must be numbers, got {values.ravel()[:1].tolist()} and the like; "
            "numpy.unique(..., return_inverse=True) numbers other values from 0 upwards"
        )
    return torch.as_tensor(values)


def label_codes(targets: Tensor | ArrayLike | None) -> NDArray[Any] | None:
    """Labels, or targets, as an array."""
    return None if targets is None else numbers("targets", targets).detach().cpu().numpy()


def codes_of(groups: Tensor | ArrayLike) -> Integers:
    """Group numbers (n, attributes)."""
    given = numbers("groups", groups).detach().cpu()
    if given.ndim not in (1, 2):
        raise DataError(f"groups must be (n,) or (n, attributes), got the shape {tuple(given.shape)}")
    codes: Integers = given.long().numpy()
    _check_whole("groups", given.numpy())
    if codes.min(initial=0) < UNKNOWN:
        raise DataError(f"groups must be numbers from 0 upwards, or {UNKNOWN} where not known, got {codes.min()}")
    return codes[:, None] if codes.ndim == 1 else codes


def class_count(criterion: Criterion, labels: NDArray[Any] | None) -> int:
    """How many labels there are, two at least; targets that a criterion puts into bins or sets are no labels."""
    if labels is None or not criterion.needs_labels or criterion.bins is not None or criterion.sets is not None:
        return 2
    _check_whole("targets", labels)
    return int(labels.max(initial=1)) + 1


def _check_whole(name: str, given: NDArray[Any]) -> None:
    if given.dtype.kind != "f":
        return
    whole = np.isfinite(given) & (np.rint(given) == given)
    if not whole.all():
        raise DataError(f"{name} must be whole numbers, got {given[~whole][0]}")


def check_below(what: str, limits: Sequence[int], seen: Sequence[int]) -> None:
    """Raise a DataError where more numbers were seen than were declared."""
    if any(count > limit for count, limit in zip(seen, limits, strict=True)):
        raise DataError(f"{what} numbers must be below {list(limits)}, got {[count - 1 for count in seen]}")
