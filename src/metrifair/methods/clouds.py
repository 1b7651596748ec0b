"""Clouds of points with weights that sum to 1: checked, made of rows, brought to one size, and their distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from metrifair.errors import DataError
from metrifair.methods.inputs import Floats


class Points(NamedTuple):
    """Rows and the weight of each."""

    rows: Floats  # (n, columns)
    weight: Floats  # (n,), positive, of sum 1

    def __len__(self) -> int:
        return len(self.rows)

    def padded(self, size: int) -> Points:
        """The same measure on so many points: copies of the last one share its weight."""
        copies = np.ones(len(self), dtype=np.int64)
        copies[-1] += size - len(self)
        return Points(np.repeat(self.rows, copies, 0), np.repeat(self.weight / copies, copies))


def distinct(rows: Floats) -> Points:
    """The uniform measure on some rows, as a weighted one on those that differ, in order of appearance.

    >>> distinct(np.array([[2.0], [1.0], [2.0], [2.0]])).weight
    array([0.75, 0.25])
    """
    _, first, count = np.unique(rows, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    return Points(rows[first[order]], count[order] / len(rows))


def stacked_points(clouds: Sequence[Points]) -> tuple[Tensor, Tensor]:
    """Rows (clouds, n, columns) and weights (clouds, n), all of the size of the largest."""
    size = max(map(len, clouds))
    same = [cloud.padded(size) for cloud in clouds]
    return torch.as_tensor(np.stack([one.rows for one in same])), torch.as_tensor(
        np.stack([one.weight for one in same])
    )


def checked_cloud(name: str, values: Tensor | ArrayLike) -> Tensor:
    """Points (..., n, d) of numbers (n,) or points; a DataError unless there is one and all are finite."""
    cloud = values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values, dtype=np.float64))
    cloud = cloud if cloud.dtype in (torch.float32, torch.float64) else cloud.double()
    cloud = cloud.unsqueeze(-1) if cloud.ndim == 1 else cloud
    if cloud.ndim < 2 or cloud.shape[-2] == 0 or not bool(cloud.isfinite().all()):
        raise DataError(f"{name} must hold at least one point, all finite, got shape {tuple(cloud.shape)}")
    return cloud


def checked_weight(name: str, values: Tensor | ArrayLike | None, cloud: Tensor) -> Tensor:
    """A weight for each point of a cloud, with sum 1; equal ones where none are given."""
    if values is None:
        return uniform(cloud)
    weight = values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values, dtype=np.float64))
    weight, n = weight.to(cloud), cloud.shape[-2]
    if weight.shape not in ((n,), cloud.shape[:-1]):
        raise DataError(f"{name} must hold one weight for each of the {n} points, got shape {tuple(weight.shape)}")
    weight = weight / weight.amax(-1, keepdim=True)  # so that the sum of large ones is finite
    share: Tensor = weight / weight.sum(-1, keepdim=True)
    if not bool(((share > 0) & share.isfinite()).all()):
        raise DataError(f"{name} must be positive and finite; leave points of weight 0 out")
    return share


def uniform(cloud: Tensor) -> Tensor:
    """Equal weights (n,) for the points of a cloud."""
    n = cloud.shape[-2]
    return cloud.new_full((n,), 1 / n)


def distances(x: Tensor, y: Tensor) -> Tensor:
    """How far each point of x is from each of y, (..., n, m); exactly 0 where they are equal."""
    if x.device.type == "cpu":
        # By matrix products a point would lie at a distance from itself.
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    return by_coordinate(x, y)  # on CUDA, cdist takes 256 threads for every pair, whose coordinates are few


def by_coordinate(x: Tensor, y: Tensor) -> Tensor:
    """The same distances, by one pass over all pairs for each coordinate."""
    total = x.new_zeros(*x.shape[:-1], y.shape[-2])
    for here, there in zip(x.unbind(-1), y.unbind(-1), strict=True):
        difference = here.unsqueeze(-1) - there.unsqueeze(-2)
        total.addcmul_(difference, difference)
    return total.sqrt_()
