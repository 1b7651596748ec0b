"""The utility function that shows an unfairness: where two score distributions differ most.

Each metric is the largest difference of expected utility between two samples over a family of utilities
(sqrt of it for energy, Cramer and MMD, which are squares); the witness is the utility that attains it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from metrifair.errors import DataError
from metrifair.metrics import cdf
from metrifair.metrics.kernel import Bandwidth, KernelFunction, KernelName, kernel_function
from metrifair.metrics.order import block_weights
from metrifair.metrics.registry import facts
from metrifair.metrics.scores import Pair, Values, paired

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Witness:
    """A utility, as a function of the score, with what each sample expects of it.

    ``gap``, the difference of the expected utilities, is the metric (its square root for energy, cramer, mmd).

    >>> utility = witness([0.0, 1.0], [1.0, 3.0], metric="wasserstein")    # falls with slope 1: the lower sample gains
    >>> utility([0.0, 1.0, 3.0]), utility.expected, utility.gap
    (array([ 0., -1., -3.]), (-0.5, -2.0), 1.5)
    """

    metric: str
    expected: tuple[float, float]
    utility: Callable[[Floats], Floats] = field(repr=False)

    @property
    def gap(self) -> float:
        """Difference of the two expected utilities."""
        return abs(self.expected[0] - self.expected[1])

    def __call__(self, score: ArrayLike) -> Any:
        """The utility of a score, or of an array of scores."""
        scores = np.asarray(score, dtype=np.float64)
        values = self.utility(np.atleast_1d(scores))
        return values.reshape(scores.shape) if scores.ndim else float(values[0])


def witness(
    u: Values,
    v: Values,
    *,
    metric: str = "energy",
    p: float = 2.0,
    kernel: KernelName | KernelFunction = "gaussian",
    bandwidth: Bandwidth = 1.0,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
) -> Witness:
    """The utility that tells the two samples apart best, within the family of the metric.

    ``p`` belongs to ``lp``; ``kernel`` and ``bandwidth`` to ``mmd``.

    >>> step = witness([0.1, 0.1, 0.2, 0.6], [0.5, 0.7, 0.8, 0.9], metric="kolmogorov")
    >>> step.gap, step([0.1, 0.2, 0.3])           # three of four u, no v at 0.2 or below
    (0.75, array([1., 1., 0.]))
    """
    facts(metric)
    cdf.check_exponent(p)
    pair = paired(u, v, u_weights, v_weights)
    if pair.values.ndim != 1:
        raise DataError("a witness belongs to two samples of numbers; pass one-dimensional u and v")
    weights = None if pair.weights is None else pair.weights.cpu()
    pair = Pair(pair.values.detach().cpu().double(), pair.left, pair.right, weights)
    if metric == "mmd":
        utility = _mean_embedding(pair, kernel_function(kernel, bandwidth, pair.values))
    else:
        utility = utility_on_the_line(metric, cdf.merged(pair), p)
    return Witness(metric, _means(utility, pair), utility)


def _means(utility: Callable[[Floats], Floats], pair: Pair) -> tuple[float, float]:
    values, cut = utility(pair.values.numpy()), pair.samples[0]
    weights = np.ones(len(values)) if pair.weights is None else pair.weights.numpy()
    left, right = (np.average(values[part], weights=weights[part]) for part in (slice(cut), slice(cut, None)))
    return float(left), float(right)


def utility_on_the_line(metric: str, both: cdf.Merged, p: float = 2.0) -> Callable[[Floats], Floats]:
    """The utility that tells two merged samples apart best; of every metric but mmd, which needs their pairs."""
    points, difference = both.points.numpy(), both.difference.numpy()
    last = np.append(points[1:] != points[:-1], True)
    points, difference = points[last], difference[last]
    if metric == "kolmogorov":
        threshold = points[np.abs(difference).argmax()]
        return lambda score: (score <= threshold).astype(np.float64)
    if metric == "total_variation":
        heights = np.sign(np.diff(difference, prepend=0.0)) / 2
        return lambda score: _at_atoms(score, points, heights)
    # Between scores the utility falls where F0 > F1: then sample u, which lies lower, expects more of it.
    power = {"wasserstein": 1.0, "lp": p}.get(metric, 2.0)
    norm = float(cdf.lp(both, power))
    slopes = np.zeros(len(points) - 1)
    if norm > 0:
        slopes = -np.sign(difference[:-1]) * (np.abs(difference[:-1]) / norm) ** (power - 1)
    if metric == "energy":
        slopes *= np.sqrt(2.0)
    heights = np.append(0.0, np.cumsum(slopes * np.diff(points)))
    return lambda score: np.interp(score, points, heights)


def _at_atoms(score: Floats, atoms: Floats, heights: Floats) -> Floats:
    place = np.minimum(np.searchsorted(atoms, score), len(atoms) - 1)
    return np.where(atoms[place] == score, heights[place], 0.0)


def _mean_embedding(pair: Pair, kernel: KernelFunction) -> Callable[[Floats], Floats]:
    """Difference of the mean kernels, over its norm."""
    weights = block_weights(pair, pair.samples)
    shares = weights / weights.sum(-1, keepdim=True)
    signed, rows = shares[0] - shares[1], max(1, 2**22 // len(pair.values))

    def difference(score: Floats) -> Floats:
        blocks: tuple[Tensor, ...] = torch.as_tensor(score).split(rows)
        return np.concatenate([(kernel(block.unsqueeze(-1), pair.values) @ signed).numpy() for block in blocks])

    left, right = _means(difference, pair)
    norm = np.sqrt(max(left - right, 0.0))
    return lambda score: difference(score) / norm if norm > 0 else np.zeros_like(score)
