"""Kernels between scores, and their bandwidths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from metrifair.errors import DataError, TooFewSamples
from metrifair.metrics.namespaces import Array, host_values, namespace_for
from metrifair.metrics.pair import Pair, Values, evaluate, sample_array
from metrifair.support.checks import check_known

KernelFunction: TypeAlias = Callable[[Array, Array], Array]
"""A symmetric kernel, broadcasting: k(a, b) for scores, or for vectors along the last axis, of
the inputs' library.
"""
KernelName: TypeAlias = Literal["gaussian", "laplace", "inverse_multiquadric", "distance"]
Bandwidth: TypeAlias = "float | Sequence[float] | Literal['median']"


def kernel_function(
    kernel: KernelName | KernelFunction,
    bandwidth: Bandwidth,
    scores: Array,
    *,
    unbiased: bool = False,
    vector: bool = False,
) -> KernelFunction:
    """The kernel as a function; several bandwidths add up.

    ``scores`` give the median bandwidth, if requested.
    """
    if callable(kernel):
        return kernel
    xp = namespace_for(scores)
    distance: KernelFunction = euclidean if vector else lambda a, b: abs(a - b)
    if kernel == "distance":
        return lambda a, b: (distance(a, 0.0) + distance(b, 0.0) - distance(a, b)) / 2
    shapes: dict[str, Callable[[Array], Array]] = {
        "gaussian": lambda far: xp.exp(-(far**2) / 2),
        "inverse_multiquadric": lambda far: xp.rsqrt(1 + far**2),
        "laplace": lambda far: xp.exp(-far),
    }
    check_known(
        "kernel",
        kernel,
        [*shapes, "distance"],
        otherwise="a function of two arrays",
    )
    shape = shapes[kernel]
    lengths = bandwidths(
        bandwidth,
        scores,
        unbiased=unbiased,
        vector=vector,
    )
    if len(lengths) == 1:
        return lambda a, b: shape(distance(a, b) / lengths[0])
    return lambda a, b: xp.stack([shape(distance(a, b) / length) for length in lengths]).sum(0)


def euclidean(a: Array, b: Array | float) -> Array:
    """Euclidean distance along the last axis, with derivative 0 if it is 0."""
    xp = namespace_for(a)
    squared = ((a - b) ** 2).sum(-1)
    differs = squared > 0
    return xp.sqrt(xp.where(differs, squared, 1.0)) * differs


def bandwidths(
    bandwidth: Bandwidth,
    scores: Array,
    *,
    unbiased: bool,
    vector: bool = False,
) -> list[float]:
    """The bandwidth as a list of positive numbers."""
    if isinstance(bandwidth, str) and bandwidth == "median":
        if unbiased:
            raise DataError(
                "bandwidth='median' would change with every batch, and the estimate would be "
                "biased; "
                "compute it once, median_distance(scores), and pass the number"
            )
        return [median_distance(scores, vector=vector)]
    values: object = bandwidth
    try:
        lengths: list[float] = []
        if not isinstance(values, str):
            lengths = [float(length) for length in np.atleast_1d(np.asarray(values))]
    except (TypeError, ValueError):
        lengths = []
    if not lengths or not all(0 < length < float("inf") for length in lengths):
        raise DataError(
            f"bandwidth must be a positive number, several of them, or 'median', got {bandwidth!r}"
        )
    return lengths


def median_distance(scores: Values, *, vector: bool = False, most: int = 1000) -> float:
    """Median distance between two of the scores: a bandwidth to compute once and then keep.

    Parameters
    ----------
    scores : array-like of shape (n,), or (n, d) with ``vector``
        Scores: two or more.
    vector : bool, default=False
        Compare vectors along one more, last axis.
    most : int, default=1000
        Above so many scores, an evenly spaced sample (in order, on the line) is used.

    Returns
    -------
    float
        The median, or 1.0 if more than half of the pairs are equal.

    Raises
    ------
    TooFewSamples
        If there are less than two scores.
    DataError
        If the scores are not finite numbers, or the median exceeds the largest float.

    Examples
    --------
    >>> median_distance([0.0, 1.0, 4.0])                 # 1, 3, 4
    3.0
    """
    z = host_values(sample_array("scores", scores, 2 if vector else 1)).astype(np.float64)
    z = z.reshape(-1, z.shape[-1]) if vector else np.sort(z, axis=None)[:, None]
    if len(z) < 2:
        raise TooFewSamples(f"the median distance needs 2 scores, got {len(z)}")
    z = z[np.linspace(0, len(z) - 1, min(most, len(z))).round().astype(np.int64)]
    median = evaluate(_median_of_pairs, Pair(z, (), ()), 1.0)
    if median > 0:
        return float(median)
    return 1.0


def _median_of_pairs(points: Pair) -> Array:
    """The median distance of all pairs of rows, each pair once; of an even count the lower of
    the two.
    """
    first, second = np.triu_indices(len(points.values), 1)
    far = np.sqrt(((points.values[first] - points.values[second]) ** 2).sum(-1))
    middle = (len(far) - 1) // 2
    return np.partition(far, middle)[middle]
