"""The utility function that shows an unfairness: where two score distributions differ most.

Each metric is the largest difference of expected utility between two samples over a family of
utilities (sqrt of it for energy, Cramer and MMD, which are squares); the witness is the utility
that attains it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metrifair.errors import DataError
from metrifair.metrics import line
from metrifair.metrics.kernels import Bandwidth, KernelFunction, KernelName
from metrifair.metrics.namespaces import host_values, namespace_for, no_warnings
from metrifair.metrics.pair import Pair, Values, WitnessFunction, to_pair
from metrifair.metrics.registry import facts


@dataclass(frozen=True)
class Witness:
    """A utility, as a function of the score, with its mean in each sample.

    Made by ``witness``. Calling it with a score, or an array of scores, gives their utility.

    Parameters
    ----------
    metric : str
        The metric that it shows.
    expected : tuple of float
        The mean utility of the first sample and of the second.
    utility : callable
        From an array of scores to their utilities.
    vector : bool, default=False
        Whether a score is a row of numbers.

    Attributes
    ----------
    gap : float
        The difference of the expected utilities: the metric itself, or its square root for energy,
        cramer and mmd.

    Examples
    --------
    >>> # falls with slope 1: the lower sample gains
    >>> utility = witness([0.0, 1.0], [1.0, 3.0], metric="wasserstein")
    >>> utility([0.0, 1.0, 3.0]), utility.expected, utility.gap
    (array([ 0., -1., -3.]), (-0.5, -2.0), 1.5)
    """

    metric: str
    expected: tuple[float, float]
    utility: WitnessFunction = field(repr=False)
    vector: bool = False

    @property
    def gap(self) -> float:
        """Difference of the two expected utilities."""
        return abs(self.expected[0] - self.expected[1])

    def __call__(self, score: ArrayLike) -> Any:
        """The utility of a score, or of an array of scores."""
        scores = np.asarray(score, dtype=np.float64)
        if self.vector:
            values = self.utility(np.atleast_2d(scores))
            if scores.ndim > 1:
                return values
            return float(values[0])
        values = self.utility(np.atleast_1d(scores))
        if scores.ndim:
            return values.reshape(scores.shape)
        return float(values[0])


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
    vector: bool = False,
) -> Witness:
    """The utility whose means differ most between the two samples, within the family of the metric.

    Parameters
    ----------
    u, v : array-like of shape (n,) and (m,), or (n, d) and (m, d) with ``vector``
        The two samples.
    metric : str, default="energy"
        Distance between distributions: a name such as ``"energy"`` or ``"kolmogorov"``, of those in
        the documentation on distances.
    p : float, default=2.0
        Exponent of ``"lp"``, at least 1.
    kernel : str or callable, default="gaussian"
        Kernel of the discrepancy, for ``"mmd"``, as in ``mmd_squared``.
    bandwidth : float, sequence of floats or "median", default=1.0
        Bandwidth of the kernel.
    u_weights, v_weights : array-like of shape (n,) and (m,), default=None
        Weight of each score. Only ratios within a sample matter. None weights all scores equally.
    vector : bool, default=False
        Compare vectors along one more, last axis: for energy and mmd.

    Returns
    -------
    Witness
        The utility as a function of the score, its mean in each sample, and the gap between the
        two.

    Raises
    ------
    DataError
        If the metric is not known or has no witness, the samples are not numbers, or the utility
        exceeds the largest float.

    Examples
    --------
    >>> step = witness([0.1, 0.1, 0.2, 0.6], [0.5, 0.7, 0.8, 0.9], metric="kolmogorov")
    >>> step.gap, step([0.1, 0.2, 0.3])           # three of four u, no v at 0.2 or below
    (0.75, array([1., 1., 0.]))
    """
    row = facts(metric)
    best = row.vector_witness if vector else row.witness
    if best is None:
        of_what = ""
        if vector:
            of_what = " of vectors"
        raise DataError(
            f"the metric {metric!r} has no witness{of_what}: no utility is known that attains it"
        )
    line.check_exponent(p)
    pair = to_pair(
        u,
        v,
        u_weights,
        v_weights,
        vector=vector,
    )
    dimensions = 2 if vector else 1
    if pair.values.ndim != dimensions:
        raise DataError(
            "a witness belongs to two samples: one-dimensional u and v, or rows of vectors with "
            "vector=True"
        )
    own_kernel = kernel
    if callable(kernel):
        own_kernel = namespace_for(pair.values).on_arrays(kernel)
    weights = None
    if pair.weights is not None:
        weights = host_values(pair.weights)
    pair = Pair(
        host_values(pair.values).astype(np.float64),
        pair.left,
        pair.right,
        weights,
    )
    options = {"p": p, "kernel": own_kernel, "bandwidth": bandwidth}
    with no_warnings():
        utility = best(
            pair if vector else line.merged(pair),
            **{name: options[name] for name in row.witness_options},
        )
        values = utility(pair.values)
        cut = pair.samples[0]
        weight = np.ones(len(values)) if weights is None else weights
        left, right = (
            np.average(values[part], weights=weight[part])
            for part in (slice(cut), slice(cut, None))
        )
    if not np.isfinite([left, right]).all():
        raise DataError(
            "the witness exceeds the largest floating-point number; divide all scores by a constant"
        )
    return Witness(
        metric,
        (float(left), float(right)),
        utility,
        vector,
    )
