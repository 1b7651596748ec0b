"""The metrics by name, each with all its facts in one row: adding a metric is one function and one
row here.

Training, audits, files of any size, certificates, reports and tests use only the row of a metric,
never its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf, nan, sqrt
from types import ModuleType
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from metrifair.metrics import line
from metrifair.metrics.kernels import euclidean
from metrifair.metrics.namespaces import Array, host_values, is_tensor
from metrifair.metrics.pair import Bound, Metric, Pair, WitnessFunction
from metrifair.metrics.quadratic import (
    energy_between,
    energy_spread,
    kernel_spread,
    kernel_utility,
    mean_kernel,
    mmd_between,
    sliced_energy_between,
    vector_energy_between,
)
from metrifair.metrics.vectors import vector_kernel_utility
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_known, require
from metrifair.support.user_warnings import warn_user

if TYPE_CHECKING:
    import torch
    from torch import Tensor

TRAINING_BINS = 10
USUAL_METRICS = ("kolmogorov", "wasserstein", "energy")
"""The metrics that are measured if none is named."""

Convex: TypeAlias = Callable[[Floats], Floats]
"""An even, convex function of the difference of two distribution functions."""


@dataclass(frozen=True)
class Integral:
    """A distance that is (factor x integral of convex(F0 - F1)) ** power, 0 < power <= 1."""

    convex: Convex
    factor: float = 1.0
    power: float = 1.0


@dataclass(frozen=True)
class MetricFacts:
    """One metric: how to compute it, and its properties. Its words are in ``wording.metrics``.

    The consequence of an omitted value is stated beside the field.
    """

    # Of the two empirical distributions; differentiable.
    plug_in: Metric

    # --- computed from other things than a pair of samples of numbers
    # From a sort that is shared with other metrics. None: it sorts for itself.
    of_merged: Callable[[line.Merged], Array] | None = None
    # From distinct scores (k,) and signed shares at them (..., k), such as the left sample's less
    # the right one's. None, and no of_merged either: no bootstrap interval.
    of_shares: Callable[[Array, Array], Array] | None = None
    # (pair, unbiased=...) of scores in R^d. None: one coordinate at a time.
    of_vectors: Callable[..., Array] | None = None
    # (pair, directions, unbiased=...): for training on new projections at each step. None: training
    # on the vectors.
    of_slices: Callable[..., Array] | None = None

    # --- training
    # Whether the gradient is that of the value itself, or of a smoothed version, which trains
    # poorly.
    gradient: Literal["exact", "smoothed"] = "exact"
    # Whether its time grows with the square of the rows.
    by_pairs: bool = False
    # The training estimate in place of the plug-in. None: the plug-in.
    in_training: Metric | None = None
    # The estimate whose mean over samples is the distance of the populations, or of the rows of
    # which a fraction was drawn. None: training uses the plug-in, which is biased, and every
    # estimate means "batch".
    unbiased: Metric | None = None

    # --- properties
    # The square of an integral probability metric, not one itself.
    squared: bool = False
    # Distance of (a u, a v) = a^degree x distance of (u, v). nan: no such law.
    degree: float = 0.0
    maximum: float = inf
    # A maximum over scores, or sets of them: resamples show too little of its bias.
    is_maximum: bool = False
    # Whether close scores may be merged. False: without an interval and a p-value if they have to
    # be.
    survives_bins: bool = True
    # Of one sample, from its distinct scores (k,) and its shares at them: the unbiased value is the
    # plug-in less spread / (n - 1) of either sample. None: an audit shows no unbiased value.
    spread: Callable[[Floats, Floats], float] | None = None
    # The quantity that counts in bins bound: an integral, the largest gap, or the sum of the
    # differences at distinct scores. None: an audit of a file larger than memory rejects the
    # metric.
    bracket: Integral | Literal["largest gap", "atoms"] | None = None
    # None: held-out samples certify nothing.
    certificate: Bound | None = None

    # --- how it is shown
    # The best utility, from line.Merged and the options below. None: no curve, and no bootstrap
    # interval.
    witness: Callable[..., WitnessFunction] | None = None
    # The best utility of vectors, from a Pair and the same options. None: none is known.
    vector_witness: Callable[..., WitnessFunction] | None = None
    # The parameters of metrifair.metrics.witness that apply to this metric.
    witness_options: tuple[str, ...] = ()
    # A share of people, shown in percentage points.
    is_share: bool = False
    # Whether the groups' mean scores are shown with it.
    compares_means: bool = False


def _of_merged(function: Callable[[line.Merged], Array]) -> Metric:
    return lambda pair: function(line.merged(pair))


METRICS: dict[str, MetricFacts] = {
    "energy": MetricFacts(
        energy_between,
        of_merged=lambda pooled: 2 * line.cramer(pooled),
        of_vectors=vector_energy_between,
        of_slices=sliced_energy_between,
        unbiased=partial(energy_between, unbiased=True),
        squared=True,
        degree=1.0,
        spread=energy_spread,
        bracket=Integral(np.square, factor=2.0),
        certificate=line.norm_bound(2, factor=2.0, power=2),
        witness=partial(line.slope_utility, scale=sqrt(2.0)),
        vector_witness=partial(vector_kernel_utility, kernel=lambda a, b: -euclidean(a, b)),
    ),
    "kolmogorov": MetricFacts(
        line.kolmogorov_between,
        of_merged=line.kolmogorov,
        gradient="smoothed",
        maximum=1.0,
        is_maximum=True,
        bracket="largest gap",
        certificate=line.norm_bound(inf),
        witness=line.step_utility,
        is_share=True,
    ),
    "wasserstein": MetricFacts(
        _of_merged(line.wasserstein),
        of_merged=line.wasserstein,
        degree=1.0,
        bracket=Integral(np.abs),
        certificate=line.norm_bound(1),
        witness=partial(line.slope_utility, p=1.0),
        compares_means=True,
    ),
    "cramer": MetricFacts(
        _of_merged(line.cramer),
        of_merged=line.cramer,
        unbiased=lambda pair: energy_between(pair, unbiased=True) / 2,
        squared=True,
        degree=1.0,
        bracket=Integral(np.square),
        certificate=line.norm_bound(2, power=2),
        witness=line.slope_utility,
    ),
    "lp": MetricFacts(
        _of_merged(line.lp),
        of_merged=line.lp,
        degree=0.5,
        bracket=Integral(np.square, power=0.5),
        certificate=line.norm_bound(2),
        witness=line.slope_utility,
        witness_options=("p",),
    ),
    "mmd": MetricFacts(
        mmd_between,
        of_shares=mean_kernel,
        of_vectors=partial(mmd_between, vector=True),
        by_pairs=True,
        unbiased=partial(mmd_between, unbiased=True),
        squared=True,
        degree=nan,
        maximum=2.0,
        spread=kernel_spread,
        witness=kernel_utility,
        vector_witness=vector_kernel_utility,
        witness_options=("kernel", "bandwidth"),
    ),
    "total_variation": MetricFacts(
        line.total_variation_between,
        of_merged=line.atoms_variation,
        gradient="smoothed",
        in_training=partial(line.total_variation_between, bins=TRAINING_BINS),
        maximum=1.0,
        is_maximum=True,
        survives_bins=False,
        bracket="atoms",
        witness=line.atoms_utility,
        is_share=True,
    ),
}

Estimate: TypeAlias = Literal["rows", "population", "batch"]
"""The estimand of a batch's penalty: the distance of the training rows, or of the population they
are drawn from, without bias; or just the distance within the batch.
"""
PENALTY_ESTIMATES: tuple[Estimate, ...] = ("rows", "population", "batch")

MetricLike: TypeAlias = "str | Callable[..., Tensor]"
"""A metric's name, or a function of two tensors (and, where samples have weights, u_weights and
v_weights). Functions that also take arrays measure these without torch.
"""


def facts(name: str) -> MetricFacts:
    """The row of the table, or an error that lists the names."""
    check_known(
        "metric",
        name,
        METRICS,
        otherwise="a function",
    )
    return METRICS[name]


def facts_for(metric: MetricLike) -> MetricFacts:
    """The row of a metric; a user's function has no known properties, and its gradient may be a
    poor guide.
    """
    if callable(metric):
        return MetricFacts(_calling(metric), gradient="smoothed", by_pairs=True)
    return facts(metric)


def is_largest_gap(name: str) -> bool:
    """True for the metric of the headline, the largest gap: it is attained at one score, and
    the radius bounds it.
    """
    return name in METRICS and METRICS[name].bracket == "largest gap"


def plug_in_metric(metric: MetricLike, *, vector: bool = False) -> Metric:
    """The metric in reports: the plug-in value."""
    row = facts_for(metric)
    if vector:
        return row.of_vectors or row.plug_in
    return row.plug_in


def has_estimates(metric: MetricLike) -> bool:
    """True if a batch can estimate the distance of more rows than its own without bias; else
    all mean "batch".
    """
    return facts_for(metric).unbiased is not None


def warn_without_estimate(metric: MetricLike, estimate: Estimate, *, default: Estimate) -> None:
    """Warn if an estimate other than the default was requested, and the metric has none."""
    if estimate not in (default, "batch") and not has_estimates(metric):
        name = metric
        if callable(metric):
            name = getattr(metric, "__name__", "a metric of your own")
        others = ", ".join(name for name, row in METRICS.items() if row.unbiased is not None)
        warn_user(
            f"estimate={estimate!r} has no effect: {name} can only be measured within each batch "
            "(estimate='batch'), "
            f"which is biased; {others} have estimates without bias"
        )


def least_samples(metric: MetricLike, estimate: Estimate) -> int:
    """Samples of each kind that a batch needs."""
    if estimate != "batch" and has_estimates(metric):
        return 2
    return 1


def training_metric(metric: MetricLike, *, estimate: Estimate) -> Metric:
    """The metric in training: the requested estimate, if there is one, else the distance within
    the batch.
    """
    row = facts_for(metric)
    if estimate == "batch" or row.unbiased is None:
        return row.in_training or row.plug_in
    if estimate == "population":
        return _of_fresh_rows(row.unbiased)
    return row.unbiased


def _of_fresh_rows(metric: Metric) -> Metric:
    """The metric of samples from infinitely many rows."""
    return lambda pair: metric(
        Pair(
            pair.values,
            pair.left,
            pair.right,
            pair.weights,
        )
    )


def vector_metric(
    metric: MetricLike,
    *,
    estimate: Estimate,
    slices: int,
    generator: torch.Generator,
) -> Metric | None:
    """The metric for vector scores in training, or None if it acts on one coordinate at a time.

    Energy is sliced, with new directions at each call; MMD uses pairs.
    """
    row = facts_for(metric)
    if row.of_vectors is None:
        return None
    of_vectors = row.of_vectors
    of_slices = row.of_slices
    unbiased = estimate != "batch"

    def on_vectors(pair: Pair) -> Array:
        if of_slices is None:
            return of_vectors(pair, unbiased=unbiased)
        directions = _torch_namespace().random_directions(
            slices, pair.values.shape[-1], generator, dtype=pair.values.dtype
        )
        return of_slices(pair, directions, unbiased=unbiased)

    if estimate == "population":
        return _of_fresh_rows(on_vectors)
    return on_vectors


def acts_on_vectors(metric: MetricLike) -> bool:
    """True if scores in R^d are compared as vectors, not one coordinate at a time."""
    return facts_for(metric).of_vectors is not None


def _calling(function: Callable[..., Tensor]) -> Metric:
    """The metric of a user's function."""

    def metric(pair: Pair) -> Array:
        cut = pair.samples[0]
        u = pair.values[..., :cut]
        v = pair.values[..., cut:]
        call = function if is_tensor(u) else partial(_call_with_arrays, function)
        if pair.weights is None:
            return call(u, v)
        return call(
            u,
            v,
            u_weights=pair.weights[..., :cut],
            v_weights=pair.weights[..., cut:],
        )

    return metric


def _call_with_arrays(
    function: Callable[..., Tensor], *arrays: Floats, **weights: Floats
) -> Floats:
    """Call a user's function with arrays, or with tensors if it accepts only these."""
    try:
        return host_values(function(*arrays, **weights))
    except (AttributeError, TypeError):
        values: Floats = _torch_namespace().TorchNamespace.on_arrays(function)(*arrays, **weights)
        return values


def _torch_namespace() -> ModuleType:
    require("torch", extra="train", purpose="a metric that takes tensors")
    return importlib.import_module("metrifair.metrics.torch_namespace")
