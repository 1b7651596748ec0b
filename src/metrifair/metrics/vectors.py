"""Samples of vectors: distances by random projections, and the utility that shows a distance of
kernels.

Energy distance and MMD of vectors are in ``quadratic``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from metrifair.errors import DataError
from metrifair.metrics import line
from metrifair.metrics.kernels import Bandwidth, KernelFunction, KernelName, kernel_function
from metrifair.metrics.namespaces import Array, host_values, namespace_for
from metrifair.metrics.pair import Pair, Values, WitnessFunction, evaluate, to_pair
from metrifair.metrics.quadratic import (
    mean_kernel_difference,
    projected_pair,
    sliced_energy_between,
)
from metrifair.support.arrays import Floats
from metrifair.support.checks import is_integer, make_seed


def _like(z: Array, values: Floats) -> Array:
    """Values in the library, on the device and in the precision of z."""
    xp = namespace_for(z)
    return xp.astype(xp.to_device(values), z.dtype)


def sliced_wasserstein_between(pair: Pair, directions: Array) -> Array:
    """Mean Wasserstein distance of the projections on ``directions`` (slices, d): another
    metric, at most the exact.
    """
    on_the_line, _ = projected_pair(pair, directions)
    return line.wasserstein(line.merged(on_the_line)).mean(-1)


def _signed(pair: Pair) -> Floats:
    """The left sample's shares and, below zero, the right one's, (..., n)."""
    sizes = pair.samples
    if pair.weights is None:
        shares = np.repeat([1 / size for size in sizes], sizes)
    else:
        shares = host_values(pair.weights)
    signed: Floats = np.repeat([1.0, -1.0], sizes) * shares
    return signed


def vector_kernel_utility(
    pair: Pair, kernel: KernelName | KernelFunction = "gaussian", bandwidth: Bandwidth = 1.0
) -> WitnessFunction:
    """Difference of the mean kernels of two samples of vectors, over its norm."""
    function = kernel_function(
        kernel,
        bandwidth,
        pair.values,
        vector=True,
    )
    return mean_kernel_difference(
        pair.values,
        _signed(pair),
        function,
        vector=True,
    )


def sliced_energy_distance(
    u: Values,
    v: Values,
    *,
    slices: int = 64,
    unbiased: bool = False,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
    random_state: Any = None,
) -> Any:
    """Energy distance of vector scores, (n, d), estimated from random projections in O(slices x n
    log n).

    Its mean over the random directions is ``energy_distance(u, v, vector=True)``.

    Parameters
    ----------
    u, v : array-like of shape (n, d) and (m, d), or tensors of shape (..., n, d) and (..., m, d)
        The two samples. Leading axes of tensors are many models at once.
    slices : int, default=64
        Number of projections, 1 or more. More projections are more exact.
    unbiased : bool, default=False
        Estimate without bias: leave i = j out of the means within a sample. The value can then be
        negative; its mean over random samples is the distance of the populations.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Weight of each score. Only ratios within a sample matter. None weights all scores equally.
    random_state : int, NumPy generator or None, default=None
        Seed of the directions. None draws one.

    Returns
    -------
    float or Tensor
        A float; if u or v is a tensor, a differentiable tensor of the leading axes.

    Raises
    ------
    TooFewSamples
        If ``unbiased`` and a sample has less than two scores of positive weight.
    DataError
        If slices is not a positive integer, the vectors have different lengths, a sample is empty
        or contains something else than finite numbers, or the distance exceeds the largest float.

    Examples
    --------
    >>> # 2 x 5
    >>> round(sliced_energy_distance([[0.0, 0.0]], [[3.0, 4.0]], slices=5000, random_state=0))
    10
    """
    pair = to_pair(u, v, u_weights, v_weights, vector=True)
    directions = _directions(slices, random_state, pair)
    between = partial(sliced_energy_between, directions=directions, unbiased=unbiased)
    return evaluate(between, pair, 1.0, u, v)


def sliced_wasserstein_distance(
    u: Values,
    v: Values,
    *,
    slices: int = 64,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
    random_state: Any = None,
) -> Any:
    """Mean Wasserstein distance of random projections of vectors, (n, d), in O(slices x n log n).

    Another metric than the Wasserstein distance of vectors, and never larger: projections shorten.
    It is 0 for equal distributions only, if all directions are taken.

    Parameters
    ----------
    u, v : array-like of shape (n, d) and (m, d), or tensors of shape (..., n, d) and (..., m, d)
        The two samples. Leading axes of tensors are many models at once.
    slices : int, default=64
        Number of projections, 1 or more. More projections come closer to the mean over all
        directions.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Weight of each score. Only ratios within a sample matter. None weights all scores equally.
    random_state : int, NumPy generator or None, default=None
        Seed of the directions. None draws one.

    Returns
    -------
    float or Tensor
        A float; if u or v is a tensor, a differentiable tensor of the leading axes.

    Raises
    ------
    DataError
        If slices is not a positive integer, the vectors have different lengths, a sample is empty
        or contains something else than finite numbers, or the distance exceeds the largest float.

    Examples
    --------
    >>> round(sliced_wasserstein_distance([[0.0, 0.0]], [[3.0, 4.0]], slices=5000, random_state=0), 1)
    3.2
    """
    pair = to_pair(u, v, u_weights, v_weights, vector=True)
    directions = _directions(slices, random_state, pair)
    between = partial(sliced_wasserstein_between, directions=directions)
    return evaluate(between, pair, 1.0, u, v)


def _directions(slices: int, random_state: Any, pair: Pair) -> Array:
    """Uniform points of the unit sphere: the same for arrays and tensors, on every device."""
    if not is_integer(slices):
        raise DataError(f"slices must be an integer from 1 upwards, got {slices!r}")
    normal = np.random.default_rng(make_seed(random_state)).standard_normal(
        (slices, pair.values.shape[-1])
    )
    return _like(pair.values, normal / np.linalg.norm(normal, axis=-1, keepdims=True))
