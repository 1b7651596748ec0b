"""Distances between two samples, for users: any arrays in, a float or a differentiable tensor
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import nan
from typing import Any

from metrifair.errors import DataError
from metrifair.metrics import line
from metrifair.metrics.kernels import Bandwidth, KernelFunction, KernelName
from metrifair.metrics.namespaces import no_warnings
from metrifair.metrics.pair import Metric, Values, distance_between, evaluate, to_pair
from metrifair.metrics.quadratic import energy_between, mmd_between, vector_energy_between
from metrifair.metrics.registry import METRICS, USUAL_METRICS, facts
from metrifair.support.checks import is_integer


def kolmogorov_distance(
    u: Values,
    v: Values,
    *,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
) -> Any:
    """Largest gap between the two distribution functions, ``max |F0 - F1|``; between 0 and 1.

    As a function of the scores it is piecewise constant: its gradient is that of a smoothed
    version, and a poor guide. Train on the energy distance instead.

    Parameters
    ----------
    u, v : array-like of shape (n,) and (m,), or tensors of shape (..., n) and (..., m)
        The two samples. Leading axes of tensors are many models at once.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Weight of each score. Only ratios within a sample matter. None weights all scores equally.

    Returns
    -------
    float or Tensor
        A float; if u or v is a tensor, a differentiable tensor of the leading axes.

    Raises
    ------
    DataError
        If a sample is empty, or contains values other than finite numbers that floats distinguish.

    Examples
    --------
    >>> kolmogorov_distance([0.0, 1.0], [1.0, 3.0])      # half of u, none of v below 1
    0.5
    """
    return distance_between(line.kolmogorov_between, u, v, u_weights, v_weights, degree=0.0)


def wasserstein_distance(
    u: Values,
    v: Values,
    *,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
) -> Any:
    """Area between the two distribution functions, the least mean way to move one sample onto the
    other.

    For vectors, ``sliced_wasserstein_distance`` is another metric, of projections.

    Parameters
    ----------
    u, v : array-like of shape (n,) and (m,), or tensors of shape (..., n) and (..., m)
        The two samples. Leading axes of tensors are many models at once.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Weight of each score. Only ratios within a sample matter. None weights all scores equally.

    Returns
    -------
    float or Tensor
        A float; if u or v is a tensor, a differentiable tensor of the leading axes.

    Raises
    ------
    DataError
        If a sample is empty or contains values other than finite numbers, or if the distance
        exceeds the largest float.

    Examples
    --------
    >>> wasserstein_distance([0.0, 1.0], [1.0, 3.0])     # 0 -> 1 and 1 -> 3
    1.5
    """
    return distance_between(METRICS["wasserstein"].plug_in, u, v, u_weights, v_weights)


def lp_distance(
    u: Values,
    v: Values,
    *,
    p: float = 2.0,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
) -> Any:
    """L^p norm of the difference of the two distribution functions, ``(integral of |F0 -
    F1|^p)^(1/p)``.

    Parameters
    ----------
    u, v : array-like of shape (n,) and (m,), or tensors of shape (..., n) and (..., m)
        The two samples. Leading axes of tensors are many models at once.
    p : float, default=2.0
        Exponent, at least 1. 1 is the Wasserstein distance. For infinity use
        ``kolmogorov_distance``.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Weight of each score. Only ratios within a sample matter. None weights all scores equally.

    Returns
    -------
    float or Tensor
        A float; if u or v is a tensor, a differentiable tensor of the leading axes.

    Raises
    ------
    DataError
        If p is below 1 or infinite, a sample is empty or contains values other than finite numbers,
        or the distance exceeds the largest float.

    Examples
    --------
    >>> lp_distance([0.0, 1.0], [1.0, 3.0], p=1.0)
    1.5
    >>> lp_distance([0.0, 0.0], [4.0, 4.0], p=2.0)       # (1 x 4) ** (1 / 2)
    2.0
    """
    line.check_exponent(p)
    return distance_between(
        lambda pair: line.lp(line.merged(pair), p), u, v, u_weights, v_weights, degree=1 / p
    )


def cramer_distance(
    u: Values,
    v: Values,
    *,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
) -> Any:
    """Squared L^2 distance of the two distribution functions; half the energy distance.

    Parameters
    ----------
    u, v : array-like of shape (n,) and (m,), or tensors of shape (..., n) and (..., m)
        The two samples. Leading axes of tensors are many models at once.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Weight of each score. Only ratios within a sample matter. None weights all scores equally.

    Returns
    -------
    float or Tensor
        A float; if u or v is a tensor, a differentiable tensor of the leading axes.

    Raises
    ------
    DataError
        If a sample is empty or contains values other than finite numbers, or if the distance
        exceeds the largest float.

    Examples
    --------
    >>> cramer_distance([0.0, 1.0], [1.0, 3.0])          # 1/4 on [0, 1], 1/4 on [1, 3]
    0.75
    """
    return distance_between(METRICS["cramer"].plug_in, u, v, u_weights, v_weights)


def total_variation(
    u: Values,
    v: Values,
    *,
    bins: int | None = None,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
) -> Any:
    """Half the sum of ``|p0 - p1|`` over the values that occur; between 0 and 1.

    It means something for decisions and other scores with few distinct values. Between samples of
    continuous scores it is always 1: pass ``bins``. The gradient is that of a smoothed version, and
    exists with ``bins`` only. A penalty with ``metric="total_variation"`` is this distance with
    ``bins=10``.

    Parameters
    ----------
    u, v : array-like of shape (n,) and (m,), or tensors of shape (..., n) and (..., m)
        The two samples. Leading axes of tensors are many models at once.
    bins : int, default=None
        Bins of the even mixture of both samples, between its quantiles: their number, 2 or more.
        None compares the shares of every value.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Weight of each score. Only ratios within a sample matter. None weights all scores equally.

    Returns
    -------
    float or Tensor
        A float; if u or v is a tensor, a tensor of the leading axes.

    Raises
    ------
    DataError
        If bins is not an integer from 2 upwards, or if a sample is empty or has something else than
        finite numbers.

    Examples
    --------
    >>> total_variation([0, 0, 1, 1], [0, 1, 1, 1])
    0.25
    >>> total_variation([0.1, 0.2, 0.3, 0.4], [0.15, 0.25, 0.35, 0.45], bins=2)
    0.0
    """
    if bins is not None and not is_integer(bins, least=2):
        raise DataError(f"bins must be an integer from 2 upwards or None, got {bins!r}")
    return distance_between(
        partial(line.total_variation_between, bins=bins), u, v, u_weights, v_weights, degree=0.0
    )


def energy_distance(
    u: Values,
    v: Values,
    *,
    unbiased: bool = False,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
    vector: bool = False,
) -> Any:
    """Energy distance, ``2 E|U - V| - E|U - U'| - E|V - V'|``: twice the squared L^2 distance of
    the CDFs.

    One sort, also for the gradient. Its scale: scipy returns the square root of this, dcor this,
    geomloss half of it.

    Parameters
    ----------
    u, v : array-like of shape (n,) and (m,), or tensors of shape (..., n) and (..., m)
        The two samples. Leading axes of tensors are many models at once.
    unbiased : bool, default=False
        Estimate without bias: leave i = j out of the means within a sample. The value can then be
        negative; its mean over random samples is the distance of the populations.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Weight of each score. Only ratios within a sample matter. None weights all scores equally.
    vector : bool, default=False
        Compare vectors along one more, last axis, with Euclidean distances, by pairs.
        ``sliced_energy_distance`` is faster.

    Returns
    -------
    float or Tensor
        A float; if u or v is a tensor, a differentiable tensor of the leading axes.

    Raises
    ------
    TooFewSamples
        If ``unbiased`` and a sample has less than two scores of positive weight.
    DataError
        If a sample is empty or contains values other than finite numbers, or if the distance
        exceeds the largest float.

    Examples
    --------
    >>> energy_distance([0.0, 1.0], [1.0, 3.0])                   # 3 - 1/2 - 1
    1.5
    >>> energy_distance([0.0, 1.0], [1.0, 3.0], unbiased=True)    # 3 - 1 - 2
    0.0
    """
    between = vector_energy_between if vector else energy_between
    return distance_between(
        partial(between, unbiased=unbiased), u, v, u_weights, v_weights, vector=vector
    )


def mmd_squared(
    u: Values,
    v: Values,
    *,
    kernel: KernelName | KernelFunction = "gaussian",
    bandwidth: Bandwidth = 1.0,
    unbiased: bool = False,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
    vector: bool = False,
) -> Any:
    """Squared maximum mean discrepancy, E k(U, U') + E k(V, V') - 2 E k(U, V).

    Parameters
    ----------
    u, v : array-like of shape (n,) and (m,), or tensors of shape (..., n) and (..., m)
        The two samples. Leading axes of tensors are many models at once.
    kernel : str or callable, default="gaussian"
        Kernel of the discrepancy. ``"gaussian"``: ``exp(-(z - z')^2 / (2 l^2))``. ``"laplace"``:
        ``exp(-|z - z'| / l)``, by one sort. ``"inverse_multiquadric"``: (1 + (z - z')^2 /
        l^2)^(-1/2). ``"distance"``: half the energy distance. Or any symmetric function of two
        broadcasting arrays, which are tensors if u or v is one.
    bandwidth : float, sequence of floats or "median", default=1.0
        Bandwidth of the kernel, l. Several bandwidths add up their kernels. ``"median"`` is the
        median distance of all scores, for plug-in values only (see ``median_distance``).
    unbiased : bool, default=False
        Estimate without bias: leave i = j out of the means within a sample. The value can then be
        negative; its mean over random samples is the squared discrepancy of the populations.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Weight of each score. Only ratios within a sample matter. None weights all scores equally.
    vector : bool, default=False
        Compare vectors along one more, last axis, with Euclidean distances.

    Returns
    -------
    float or Tensor
        A float; if u or v is a tensor, a differentiable tensor of the leading axes.

    Raises
    ------
    TooFewSamples
        If ``unbiased`` and a sample has less than two scores of positive weight.
    DataError
        If the kernel or bandwidth is unknown, or a sample is empty or contains values other than
        finite numbers.

    Examples
    --------
    >>> mmd_squared([0.0], [1.0], kernel="laplace")      # 2 - 2 / e
    1.2642411176571153
    >>> mmd_squared([0.0, 1.0], [1.0, 3.0], kernel="distance")
    0.75
    """
    metric: Metric = partial(
        mmd_between, kernel=kernel, bandwidth=bandwidth, unbiased=unbiased, vector=vector
    )
    return distance_between(
        metric,
        u,
        v,
        u_weights,
        v_weights,
        degree=1.0 if kernel == "distance" else nan,
        vector=vector,
    )


def distances(
    u: Values,
    v: Values,
    metrics: Sequence[str] = USUAL_METRICS,
    *,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
) -> dict[str, Any]:
    """Several plug-in distances between two samples, by name, from one sort.

    Parameters
    ----------
    u, v : array-like of shape (n,) and (m,), or tensors of shape (..., n) and (..., m)
        The two samples. Leading axes of tensors are many models at once.
    metrics : sequence of str, default=("kolmogorov", "wasserstein", "energy")
        Distances between score distributions, by their names in the documentation on distances.
        ``"lp"`` has p = 2, and ``"mmd"`` a Gaussian kernel of bandwidth 1.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Weight of each score. Only ratios within a sample matter. None weights all scores equally.

    Returns
    -------
    dict of str to float or Tensor
        The distances by name, in the requested order; tensors of the leading axes if u or v is a
        tensor.

    Raises
    ------
    DataError
        If a metric is not known, a sample is empty or contains values other than finite numbers, or
        a distance exceeds the largest float.

    Examples
    --------
    >>> distances([0.0, 1.0], [1.0, 3.0])
    {'kolmogorov': 0.5, 'wasserstein': 1.5, 'energy': 1.5}
    """
    rows = {name: facts(name) for name in metrics}
    pair = to_pair(
        u,
        v,
        u_weights,
        v_weights,
    )
    with no_warnings():
        pooled = line.merged(pair)
        values = {
            name: None if row.of_merged is None else row.of_merged(pooled)
            for name, row in rows.items()
        }
    return {
        name: evaluate(
            row.plug_in,
            pair,
            row.degree,
            u,
            v,
            value=values[name],
        )
        for name, row in rows.items()
    }
