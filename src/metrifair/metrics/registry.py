"""The metrics by name, with the facts that training, auditing and the tests need of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from metrifair.checks import check_known
from metrifair.metrics import cdf
from metrifair.metrics.quadratic import energy_between, mmd_between, vector_energy_between
from metrifair.metrics.scores import Metric, Pair, Values, paired, result
from metrifair.metrics.sliced import random_directions, sliced_energy_between

TRAINING_BINS = 10


@dataclass(frozen=True)
class MetricFacts:
    """One metric: how to compute it, and what holds of it."""

    plug_in: Metric  # of the two empirical distributions
    unbiased: Metric | None = None  # whose mean over samples is the distance of the populations
    of_vectors: Metric | None = None  # plug-in for scores in R^d
    of_merged: Callable[[cdf.Merged], Tensor] | None = None  # from a sort shared with others
    trained: Metric | None = None  # what training uses where the plug-in has no useful gradient
    squared: bool = False  # the square of an integral probability metric, not one itself
    degree: float = 0.0  # distance of (a u, a v) = a^degree x distance of (u, v); nan: no such law
    most: float = float("inf")


def _of_merged(function: Callable[[cdf.Merged], Tensor]) -> Metric:
    return lambda pair: function(cdf.merged(pair))


METRICS: dict[str, MetricFacts] = {
    "energy": MetricFacts(
        energy_between,
        unbiased=partial(energy_between, unbiased=True),
        of_vectors=vector_energy_between,
        of_merged=lambda both: 2 * cdf.cramer(both),
        squared=True,
        degree=1.0,
    ),
    "kolmogorov": MetricFacts(cdf.kolmogorov_between, of_merged=cdf.kolmogorov, most=1.0),
    "wasserstein": MetricFacts(_of_merged(cdf.wasserstein), of_merged=cdf.wasserstein, degree=1.0),
    "cramer": MetricFacts(_of_merged(cdf.cramer), of_merged=cdf.cramer, squared=True, degree=1.0),
    "lp": MetricFacts(_of_merged(cdf.lp), of_merged=cdf.lp, degree=0.5),
    "mmd": MetricFacts(
        mmd_between,
        unbiased=partial(mmd_between, unbiased=True),
        of_vectors=partial(mmd_between, vector=True),
        squared=True,
        degree=float("nan"),
        most=2.0,
    ),
    "total_variation": MetricFacts(
        cdf.total_variation_between,
        of_merged=cdf.atoms_variation,
        trained=partial(cdf.total_variation_between, bins=TRAINING_BINS),
        most=1.0,
    ),
}

MetricLike: TypeAlias = "str | Callable[..., Tensor]"
"""A metric's name, or a function of two tensors (and, where samples have weights, u_weights and v_weights)."""


def facts(name: str) -> MetricFacts:
    """The row of the table, or an error that lists the names."""
    check_known("metric", name, METRICS, otherwise="a function")
    return METRICS[name]


def measured(metric: MetricLike, *, vector: bool = False) -> Metric:
    """The metric as it is reported: the plug-in value."""
    if callable(metric):
        return _calling(metric)
    row = facts(metric)
    return (row.of_vectors or row.plug_in) if vector else row.plug_in


def trained(metric: MetricLike, *, unbiased: bool) -> Metric:
    """The metric as it is trained on: unbiased where asked for and where there is such an estimate."""
    if callable(metric):
        return _calling(metric)
    row = facts(metric)
    return (row.unbiased if unbiased else None) or row.trained or row.plug_in


def trained_on_vectors(metric: MetricLike, *, unbiased: bool, slices: int, generator: torch.Generator) -> Metric | None:
    """The metric for vector scores in training, or None where it acts on one coordinate at a time.

    Energy is sliced, with directions drawn anew at each call; MMD goes by pairs.
    """
    if metric == "energy":

        def sliced(pair: Pair) -> Tensor:
            directions = random_directions(slices, pair.values.shape[-1], generator, dtype=pair.values.dtype)
            return sliced_energy_between(pair, directions, unbiased=unbiased)

        return sliced
    if metric == "mmd":
        return partial(mmd_between, unbiased=unbiased, vector=True)
    return None


def acts_on_vectors(metric: MetricLike) -> bool:
    """True where scores in R^d are compared as they are, not one coordinate at a time."""
    return not callable(metric) and facts(metric).of_vectors is not None


def _calling(function: Callable[..., Tensor]) -> Metric:
    def metric(pair: Pair) -> Tensor:
        u, v = pair.values.split(pair.samples, -1)
        if pair.weights is None:
            return function(u, v)
        u_weights, v_weights = pair.weights.split(pair.samples, -1)
        return function(u, v, u_weights=u_weights, v_weights=v_weights)

    return metric


def distances(
    u: Values,
    v: Values,
    metrics: Sequence[str] = ("kolmogorov", "wasserstein", "energy"),
    *,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
) -> dict[str, Any]:
    """Several plug-in distances between two samples, by name, from one sort.

    >>> distances([0.0, 1.0], [1.0, 3.0])
    {'kolmogorov': 0.5, 'wasserstein': 1.5, 'energy': 1.5}
    """
    rows = {name: facts(name) for name in metrics}
    pair = paired(u, v, u_weights, v_weights)
    both = cdf.merged(pair)
    return {
        name: result(row.of_merged(both) if row.of_merged else row.plug_in(pair), u, v) for name, row in rows.items()
    }
