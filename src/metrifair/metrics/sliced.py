"""Energy distance of vector scores by random projections onto the line."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from metrifair.checks import is_integer
from metrifair.errors import DataError
from metrifair.metrics.pair import Pair, Values, distance_of, paired
from metrifair.metrics.quadratic import energy_between


def sliced_energy_between(pair: Pair, directions: Tensor, *, unbiased: bool = False) -> Tensor:
    """Mean energy distance of the projections on ``directions`` (slices, d), on the scale of the one in R^d.

    For directions uniform on the sphere the mean projected distance is c_d = G(d/2) / (sqrt(pi) G((d+1)/2))
    times the distance in R^d: dividing by c_d makes any number of slices, drawn without looking at the
    scores, an unbiased estimate of it.
    """
    d = pair.values.shape[-1]
    shrinkage = math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
    projections = directions @ pair.values.transpose(-2, -1)  # (..., slices, n)
    weights = pair.weights if pair.weights is None or pair.weights.ndim == 1 else pair.weights.unsqueeze(-2)
    on_the_line = Pair(projections, pair.left, pair.right, weights)
    return energy_between(on_the_line, unbiased=unbiased).mean(-1) / shrinkage


def random_directions(
    slices: int, dimension: int, generator: torch.Generator, *, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Independent uniform points of the unit sphere, (slices, dimension), on the generator's device."""
    normal = torch.randn(slices, dimension, generator=generator, dtype=dtype, device=generator.device)
    return torch.nn.functional.normalize(normal, dim=-1)


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
    if not is_integer(slices):
        raise DataError(f"slices must be an integer from 1 upwards, got {slices!r}")
    pair = paired(u, v, u_weights, v_weights, vector=True)
    generator = torch.Generator(device=pair.values.device).manual_seed(random_state)
    directions = random_directions(slices, pair.values.shape[-1], generator, dtype=pair.values.dtype)
    return distance_of(partial(sliced_energy_between, directions=directions, unbiased=unbiased), pair, 1.0, u, v)
