"""P-values by random permutations of the groups, or of whole clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import tee
from typing import Literal

import numpy as np

from metrifair.auditing.measure.cluster_errors import (
    ClusterRows,
    cluster_permutations,
)
from metrifair.auditing.measure.permutations import (
    SharedPermutations,
    largest_size,
)
from metrifair.auditing.measure.plug_in import (
    plug_in_distances,
)
from metrifair.auditing.measure.resampling import BLOCK, blocks_of
from metrifair.auditing.measure.two_samples import TwoSamples
from metrifair.support.arrays import Floats

_MOST_PERMUTED = 10**9  # NumPy's limit for drawing without replacement
_MOST_SHUFFLED = 2**22  # samples, of which each is a number in memory then
_CACHED = 2**16
_FEWEST_BEYOND = 20  # permutations with at least the observed distance that end a test early


def permutation_p_values(
    pair: TwoSamples,
    metrics: Sequence[str],
    *,
    permutations: int,
    generator: np.random.Generator,
    shared: SharedPermutations | None = None,
) -> dict[str, float | None]:
    """The p-value of a permutation test of the distance: (1 + times) / (1 + permutations).

    Permutations stop early where the answer is clear (Besag and Clifford): as soon as a twentieth
    of them, h and at least 20, have at least the observed distance after d permutations, the
    p-value is h / d. In both cases, it is at most t with probability at most t if both sides have
    one distribution. For counts, not for weights. Bins of scores must not depend on the groups: see
    ``pooled_bins``. Then the distribution of the permuted distance depends on the sizes only:
    groups of one size have the same permutations, if they are ``shared``.
    """
    if pair.left.sum() + pair.right.sum() >= _MOST_PERMUTED:
        return dict.fromkeys(metrics)
    counts = blocks_of(
        permutations,
        max(len(pair.values), BLOCK // (2 * _enough_beyond(permutations))),
    )
    blocks = _permuted_distances(
        pair,
        metrics,
        counts,
        permutations=permutations,
        generator=generator,
        shared=shared,
    )
    if shared is not None:
        key = int(pair.left.sum()), tuple(metrics)
        shared.distances[key], blocks = tee(shared.distances.get(key, blocks))
    return _p_values_by(blocks, pair, metrics, permutations)


def cluster_p_values(
    pair: TwoSamples,
    metrics: Sequence[str],
    *,
    permutations: int,
    generator: np.random.Generator,
    rows: ClusterRows,
) -> dict[str, float | None]:
    """The p-value of a permutation test of whole clusters, each of which is on one side, as
    ``permutation_p_values``.

    It is at most t with probability at most t if the clusters of both sides have one distribution,
    sizes included.
    """
    blocks = cluster_permutations(pair, rows, list(metrics), permutations, generator)
    return _p_values_by(blocks, pair, metrics, permutations)


def _enough_beyond(permutations: int) -> int:
    """The number of permutations with at least the observed distance that ends a test early."""
    return max(_FEWEST_BEYOND, -(-permutations // 20))


def _p_values_by(
    blocks: Iterable[Mapping[str, Floats]],
    pair: TwoSamples,
    metrics: Sequence[str],
    permutations: int,
) -> dict[str, float | None]:
    """P-values by blocks of permuted distances."""
    observed = plug_in_distances(pair.values, pair.left, pair.right, metrics)
    enough = _enough_beyond(permutations)
    at_least = {metric: np.zeros(0, np.bool_) for metric in metrics}
    for permuted in blocks:
        for metric in metrics:
            # Equal values may differ in their last digits, being sums in another order.
            beyond = permuted[metric] >= observed[metric] * (1 - 1e-12)
            at_least[metric] = np.append(at_least[metric], beyond)
        if all(np.count_nonzero(beyond) >= enough for beyond in at_least.values()):
            break
    p_values: dict[str, float | None] = {}
    for metric, beyond in at_least.items():
        times = np.flatnonzero(beyond)
        stopped = len(times) >= enough
        if stopped:
            p_values[metric] = enough / float(times[enough - 1] + 1)
        else:
            p_values[metric] = (1 + len(times)) / (1 + permutations)
    return p_values


def _permuted_distances(
    pair: TwoSamples,
    metrics: Sequence[str],
    counts: Iterable[int],
    *,
    permutations: int,
    generator: np.random.Generator,
    shared: SharedPermutations | None,
) -> Iterator[dict[str, Floats]]:
    """Distances by metric after random permutations of the groups, in blocks of so many."""
    pooled = (pair.left + pair.right).astype(np.int64)
    left_size = int(pair.left.sum())
    total = int(pooled.sum())
    start = 0
    # Shuffling is faster if few samples are on one side, above all if all fit into the cache. Many
    # samples share scores, and are drawn by score.
    limit = (16 if total <= _CACHED else 2) * len(pooled)
    shuffled = min(left_size, total - left_size) <= limit and total <= _MOST_SHUFFLED
    method: Literal["count", "marginals"] = "marginals"
    if shuffled:
        method = "count"
    for count in counts:
        if shared is not None and left_size <= largest_size(permutations):
            left = shared.left_counts(
                left_size, slice(start, start + count), permutations, generator
            )
        else:
            left = generator.multivariate_hypergeometric(
                pooled, left_size, size=count, method=method
            )
        start += count
        distances = plug_in_distances(pair.values, left, pooled - left, metrics)
        del left  # groups of one size share this generator, which would keep it
        yield distances
