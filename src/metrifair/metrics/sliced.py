"""Distances of vectors by random projections: fast, and as many as one likes of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from metrifair.checks import is_integer
from metrifair.errors import DataError
from metrifair.metrics.pair import Pair, Values, distance_of, paired
from metrifair.metrics.quadratic import random_directions, sliced_energy_between
from metrifair.metrics.vectors import sliced_wasserstein_between


def sliced_energy_distance(
    u: Values,
    v: Values,
    *,
    slices: int = 64,
    unbiased: bool = False,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
    random_state: int = 0,
) -> Any:
    """Energy distance of vector scores, (n, d), estimated from random projections in O(slices x n log n).

    Its mean over the random directions is ``energy_distance(u, v, vector=True)``.

    Parameters
    ----------
    u, v : array-like of shape (n, d) and (m, d), or tensors of shape (..., n, d) and (..., m, d)
        The two samples. Leading axes of tensors are many models at once.
    slices : int, default=64
        How many projections, 1 or more; the more, the closer.
    unbiased : bool, default=False
        Leave i = j out of the means within a sample: the value can then be negative, and its mean over random samples
        is the distance of the populations.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        How much each score counts; only the ratios within a sample matter. None: all alike.
    random_state : int, default=0
        Seed of the directions.

    Returns
    -------
    float or Tensor
        A float; where u or v is a tensor, a differentiable tensor of the leading axes.

    Raises
    ------
    TooFewSamples
        If ``unbiased`` and a sample has less than two scores of positive weight.
    DataError
        If slices is not a positive integer, the vectors have different lengths, a sample is empty or holds something
        else than finite numbers, or the distance exceeds the largest float.

    Examples
    --------
    >>> sliced_energy_distance([[0.0, 0.0]], [[3.0, 4.0]], slices=5000)      # 2 x 5
    10.0...
    """
    pair = paired(u, v, u_weights, v_weights, vector=True)
    directions = _directions(slices, random_state, pair)
    return distance_of(partial(sliced_energy_between, directions=directions, unbiased=unbiased), pair, 1.0, u, v)


def sliced_wasserstein_distance(
    u: Values,
    v: Values,
    *,
    slices: int = 64,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
    random_state: int = 0,
) -> Any:
    """Mean Wasserstein distance of random projections of vectors, (n, d), in O(slices x n log n).

    Another metric than ``wasserstein_distance(u, v, vector=True)``, and never larger: projections shorten. It is 0 for
    equal distributions only, if all directions are taken.

    Parameters
    ----------
    u, v : array-like of shape (n, d) and (m, d), or tensors of shape (..., n, d) and (..., m, d)
        The two samples. Leading axes of tensors are many models at once.
    slices : int, default=64
        How many projections, 1 or more; the more, the closer to the mean over all directions.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        How much each score counts; only the ratios within a sample matter. None: all alike.
    random_state : int, default=0
        Seed of the directions.

    Returns
    -------
    float or Tensor
        A float; where u or v is a tensor, a differentiable tensor of the leading axes.

    Raises
    ------
    DataError
        If slices is not a positive integer, the vectors have different lengths, a sample is empty or holds something
        else than finite numbers, or the distance exceeds the largest float.

    Examples
    --------
    >>> round(sliced_wasserstein_distance([[0.0, 0.0]], [[3.0, 4.0]], slices=5000), 1)      # 5 x the mean of |cos|
    3.2
    """
    pair = paired(u, v, u_weights, v_weights, vector=True)
    directions = _directions(slices, random_state, pair)
    return distance_of(partial(sliced_wasserstein_between, directions=directions), pair, 1.0, u, v)


def _directions(slices: int, random_state: int, pair: Pair) -> Tensor:
    if not is_integer(slices):
        raise DataError(f"slices must be an integer from 1 upwards, got {slices!r}")
    generator = torch.Generator(device=pair.values.device).manual_seed(random_state)
    return random_directions(slices, pair.values.shape[-1], generator, dtype=pair.values.dtype)
