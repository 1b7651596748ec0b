"""Samples of vectors: the Wasserstein distance by a linear program and by slices, total variation on atoms.

Energy distance and MMD of vectors are in ``quadratic``. For each of these metrics, the utility that shows it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metrifair.errors import DataError
from metrifair.metrics import line
from metrifair.metrics.kernels import Bandwidth, KernelFunction, KernelName, kernel_function
from metrifair.metrics.namespaces import Array, host_values, namespace_for
from metrifair.metrics.pair import Pair, Utility, Values, evaluate, to_pair
from metrifair.metrics.quadratic import mean_kernel_difference, projected_pair, sliced_energy_between, with_gradient
from metrifair.support.arrays import Floats
from metrifair.support.checks import is_integer, make_seed, require

if TYPE_CHECKING:
    import scipy.sparse

MOST_PAIRS = 250_000
"""A linear program over so many pairs takes some seconds, over four times as many, a minute."""


class Transport(NamedTuple):
    """The cheapest way to move one sample of vectors onto another."""

    cost: float
    plan: scipy.sparse.coo_array  # (n, m): the mass that moves from each point to each other
    prices: Floats  # (m,) of the right sample: no x gets there cheaper than distance - price allows


def transport(u: Floats, v: Floats, u_weights: Floats, v_weights: Floats) -> Transport:
    """Solve the transport problem between weighted points, (n, d) and (m, d), each with weights that sum to 1."""
    n, m = len(u), len(v)
    if n * m > MOST_PAIRS:
        raise DataError(
            f"the Wasserstein distance of vectors is a linear program over all pairs, here {n} x {m}, and at most "
            f"{MOST_PAIRS} are taken; use sliced_wasserstein_distance, or fewer rows"
        )
    optimize, sparse = _scipy("optimize"), _scipy("sparse")
    lengths = _scipy("spatial.distance").cdist(u, v)
    longest = float(lengths.max())
    if longest == 0 or not np.isfinite(longest):  # beyond the largest float the caller scales down and tries again
        return Transport(longest, sparse.coo_array((n, m)), np.zeros(m))
    pairs = np.arange(n * m)
    marginals = sparse.csr_array(
        (np.ones(2 * n * m), (np.concatenate([pairs // m, n + pairs % m]), np.concatenate([pairs, pairs]))),
    )
    # The last column's sum follows from the others; without it rounding could leave no solution at all.
    solution = optimize.linprog(
        lengths.ravel() / longest,
        A_eq=marginals[:-1],
        b_eq=np.concatenate([u_weights, v_weights])[:-1],
        method="highs-ds",
    )
    if solution.status != 0:
        raise DataError(f"the linear program of the Wasserstein distance found no solution: {solution.message}")
    plan = sparse.coo_array(np.maximum(solution.x, 0.0).reshape(n, m))
    prices = longest * np.append(solution.eqlin.marginals[n:], 0.0)
    return Transport(float(plan.data @ lengths[plan.coords]), plan, prices)


def _scipy(module: str) -> Any:
    """A part of SciPy, which only the transport problem needs."""
    return require(f"scipy.{module}", extra="train", purpose="the Wasserstein distance of vectors")


def vector_wasserstein_between(pair: Pair) -> Array:
    """Wasserstein distance of vectors, exactly; its gradient is that of the cheapest plan, as a constant."""
    z = pair.values
    *lead, rows, d = z.shape
    points = host_values(z).astype(np.float64).reshape(-1, rows, d)
    weights = np.broadcast_to(np.abs(_signed(pair)), (*lead, rows)).reshape(-1, rows)
    cut, costs, gradients = pair.samples[0], [], []
    for model, weight in zip(points, weights, strict=True):
        plan = transport(model[:cut], model[cut:], weight[:cut], weight[cut:])
        costs.append(plan.cost)
        gaps = model[:cut][plan.plan.row] - model[cut:][plan.plan.col]
        length = np.linalg.norm(gaps, axis=-1, keepdims=True)
        slopes = np.divide(gaps, length, out=np.zeros_like(gaps), where=length > 0) * plan.plan.data[:, None]
        gradient = np.zeros((rows, d))
        np.add.at(gradient, plan.plan.row, slopes)
        np.add.at(gradient, cut + plan.plan.col, -slopes)
        gradients.append(gradient)
    value, gradient = (_like(z, part) for part in (np.reshape(costs, lead), np.reshape(gradients, z.shape)))
    return with_gradient(value, gradient, z, vector=True)


def _like(z: Array, values: Floats) -> Array:
    """Values in the library, on the device and in the precision of z."""
    xp = namespace_for(z)
    return xp.astype(xp.to_device(values), z.dtype)


def sliced_wasserstein_between(pair: Pair, directions: Array) -> Array:
    """Mean Wasserstein distance of the projections on ``directions`` (slices, d): another metric, at most the exact."""
    on_the_line, _ = projected_pair(pair, directions)
    return line.wasserstein(line.merged(on_the_line)).mean(-1)


def vector_variation_between(pair: Pair) -> Array:
    """Half the sum of the differences of the shares at all vectors that occur."""
    z = pair.values
    *lead, rows, d = z.shape
    models = host_values(z).reshape(-1, rows, d)
    signed = np.broadcast_to(_signed(pair), (*lead, rows)).reshape(-1, rows)
    variations = []
    for points, weight in zip(models, signed, strict=True):
        _, atom = np.unique(points, axis=0, return_inverse=True)
        left, right = (np.bincount(atom.ravel(), side) for side in (np.maximum(weight, 0.0), np.maximum(-weight, 0.0)))
        variations.append(line.share_variation(left, right))
    return _like(z, np.reshape(variations, lead))


def _signed(pair: Pair) -> Floats:
    """The left sample's shares and, below zero, the right one's, (..., n)."""
    sizes = pair.samples
    shares = np.repeat([1 / size for size in sizes], sizes) if pair.weights is None else host_values(pair.weights)
    signed: Floats = np.repeat([1.0, -1.0], sizes) * shares
    return signed


def potential_utility(pair: Pair) -> Utility:
    """The least distance less price: it grows by at most 1 per unit of distance, and attains the transport's cost."""
    signed, cut, points = _signed(pair), pair.samples[0], pair.values
    right = points[cut:]
    prices = transport(points[:cut], right, signed[:cut], -signed[cut:]).prices
    cdist = _scipy("spatial.distance").cdist
    return lambda scores: np.asarray((cdist(scores, right) - prices).min(-1))


def vector_atoms_utility(pair: Pair) -> Utility:
    """1/2 at vectors that the left sample has more of, -1/2 at those of the right one, 0 at all others."""
    atoms, place = np.unique(pair.values, axis=0, return_inverse=True)
    heights = np.sign(np.bincount(place.ravel(), _signed(pair))) / 2
    height_by_atom = {tuple(atom): height for atom, height in zip(atoms.tolist(), heights.tolist(), strict=True)}
    return lambda scores: np.array([height_by_atom.get(tuple(score), 0.0) for score in scores.tolist()])


def vector_kernel_utility(
    pair: Pair, kernel: KernelName | KernelFunction = "gaussian", bandwidth: Bandwidth = 1.0
) -> Utility:
    """Difference of the mean kernels of two samples of vectors, over its norm."""
    function = kernel_function(kernel, bandwidth, pair.values, vector=True)
    return mean_kernel_difference(pair.values, _signed(pair), function, vector=True)


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
    """Energy distance of vector scores, (n, d), estimated from random projections in O(slices x n log n).

    Its mean over the random directions is ``energy_distance(u, v, vector=True)``.

    Parameters
    ----------
    u, v : array-like of shape (n, d) and (m, d), or tensors of shape (..., n, d) and (..., m, d)
        The two samples. Leading axes of tensors are many models at once.
    slices : int, default=64
        Number of projections, 1 or more. More projections are more exact.
    unbiased : bool, default=False
        Estimate without bias: leave i = j out of the means within a sample. The value can then be negative; its mean
        over random samples is the distance of the populations.
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
        If slices is not a positive integer, the vectors have different lengths, a sample is empty or contains something
        else than finite numbers, or the distance exceeds the largest float.

    Examples
    --------
    >>> round(sliced_energy_distance([[0.0, 0.0]], [[3.0, 4.0]], slices=5000, random_state=0))      # 2 x 5
    10
    """
    pair = to_pair(u, v, u_weights, v_weights, vector=True)
    directions = _directions(slices, random_state, pair)
    return evaluate(partial(sliced_energy_between, directions=directions, unbiased=unbiased), pair, 1.0, u, v)


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

    Another metric than ``wasserstein_distance(u, v, vector=True)``, and never larger: projections shorten. It is 0 for
    equal distributions only, if all directions are taken.

    Parameters
    ----------
    u, v : array-like of shape (n, d) and (m, d), or tensors of shape (..., n, d) and (..., m, d)
        The two samples. Leading axes of tensors are many models at once.
    slices : int, default=64
        Number of projections, 1 or more. More projections come closer to the mean over all directions.
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
        If slices is not a positive integer, the vectors have different lengths, a sample is empty or contains something
        else than finite numbers, or the distance exceeds the largest float.

    Examples
    --------
    >>> round(sliced_wasserstein_distance([[0.0, 0.0]], [[3.0, 4.0]], slices=5000, random_state=0), 1)      # 5 x E|cos|
    3.2
    """
    pair = to_pair(u, v, u_weights, v_weights, vector=True)
    directions = _directions(slices, random_state, pair)
    return evaluate(partial(sliced_wasserstein_between, directions=directions), pair, 1.0, u, v)


def _directions(slices: int, random_state: Any, pair: Pair) -> Array:
    """Uniform points of the unit sphere: the same for arrays and tensors, on every device."""
    if not is_integer(slices):
        raise DataError(f"slices must be an integer from 1 upwards, got {slices!r}")
    normal = np.random.default_rng(make_seed(random_state)).standard_normal((slices, pair.values.shape[-1]))
    return _like(pair.values, normal / np.linalg.norm(normal, axis=-1, keepdims=True))
