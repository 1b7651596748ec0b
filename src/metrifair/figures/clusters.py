"""Shares and means of rows that belong to clusters, such as several rows of one person.

Rows of one cluster may depend on each other in any way; clusters are independent. To first order,
the error of a mean is the sum of the influences of the clusters, each of which is the sum over its
rows.
"""

from __future__ import annotations

import numpy as np

from metrifair.support.arrays import Booleans, Floats, Integers, distinct_codes

_ADDED = 4.0  # independent clusters that are added to the spread of a share: "plus four"


def count_clusters(clusters: Integers) -> int:
    """The number of different clusters.

    >>> count_clusters(np.array([3, 5, 3]))
    2
    """
    return len(np.unique(clusters))


def numbered_by_content(clusters: Integers, *values: Integers) -> Integers:
    """Clusters numbered by their size and by sums of these values of their rows, from 0.

    Draws of clusters depend neither on the names of the clusters nor on the order of the rows.

    >>> numbered_by_content(np.array([7, 3, 7, 5]), np.array([1, 9, 1, 2]))
    array([2, 1, 2, 0])
    """
    cluster = distinct_codes(clusters)
    sums = [
        np.bincount(cluster, part.astype(np.float64) ** power)
        for part in values[::-1]
        for power in (2, 1)
    ]
    order = np.lexsort([*sums, np.bincount(cluster)])
    count = len(order)
    number = np.empty(count, np.int64)
    number[order] = np.arange(count)
    return np.asarray(number[cluster])


def by_cluster(values: Floats, clusters: Integers) -> Floats:
    """The sum of the values of each cluster.

    >>> by_cluster(np.array([1.0, 2.0, 4.0]), np.array([3, 5, 3]))
    array([5., 2.])
    """
    cluster = distinct_codes(clusters)
    return np.bincount(cluster, values).astype(np.float64)


def effective_clusters(weights: Floats, clusters: Integers) -> float:
    """The effective number of clusters of equal weight (Kish): the number of clusters if all weigh
    the same.

    >>> even, uneven = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    >>> effective_clusters(np.ones(4), even), round(effective_clusters(np.ones(4), uneven), 3)
    (2.0, 1.6)
    """
    return _kish(by_cluster(weights, clusters))


def mean_variance(values: Floats, weights: Floats, clusters: Integers) -> float:
    """The variance of a weighted mean, from the spread between clusters.

    >>> mean_variance(np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4), np.array([0, 0, 1, 1]))
    0.125
    """
    share = weights / weights.sum()
    parts = share * (values - share @ values)
    sums = by_cluster(parts, clusters)
    return float((sums**2).sum())


def design_effect(values: Floats, weights: Floats, clusters: Integers) -> float:
    """How many times larger the variance of a weighted mean is than that of independent rows, at
    least 1. ``values`` have mean 0; if all are 0, as if the rows of each cluster were alike.

    >>> alike, cluster = np.array([1.0, 1.0, -1.0, -1.0]), np.array([0, 0, 1, 1])
    >>> design_effect(alike, np.ones(4), cluster), design_effect(0 * alike, np.ones(4), cluster)
    (2.0, 2.0)
    """
    errors = weights * values
    of_rows = (errors**2).sum()
    if of_rows == 0:
        return _kish(weights) / effective_clusters(weights, clusters)
    of_clusters = (by_cluster(errors, clusters) ** 2).sum()
    return max(1.0, float(of_clusters / of_rows))


def share_size(is_one: Booleans, weights: Floats, clusters: Integers) -> float:
    """How many independent rows a share of clustered rows is worth: its variance is p (1 - p) over
    this number.

    The variance is that between clusters. Where few rows are of one kind, it is hardly known: four
    clusters of the even kind are added to it. The size is at most the effective number of rows, and
    that of clusters if all rows are alike.

    >>> yes, rows = np.repeat([True, False], 20), np.ones(40)
    >>> share_size(yes, rows, np.arange(40)), round(share_size(yes, rows, np.arange(40) // 4), 1)
    (40.0, 9.4)
    """
    rows = _kish(weights)
    size = effective_clusters(weights, clusters)
    share = float(weights @ is_one / weights.sum())
    spread = share * (1 - share)
    # Rounding may leave a share of all rows just below 1.
    if is_one.all() or not is_one.any() or size == rows:
        return size
    variance = mean_variance(is_one.astype(np.float64), weights, clusters)
    if size > 1:
        variance *= (1 - 1 / rows) / (1 - 1 / size)
    size_with_added = size + _ADDED
    added = (size * share + _ADDED / 2) / size_with_added
    of_added = _ADDED * added * (1 - added) / size
    variance_with_added = (size * variance + of_added) / size_with_added
    fewest = size
    if variance != 0:
        fewest = min(size, spread / variance)
    return float(np.clip(spread / variance_with_added, fewest, rows))


def share_correlations(
    selected: Booleans,
    weights: Floats,
    groups: Integers,
    clusters: Integers,
) -> Floats:
    """The correlations between the shares of several groups, (groups, groups), through clusters
    that they share.

    >>> selected, groups = np.array([True, False, True, False]), np.array([0, 0, 1, 1])
    >>> share_correlations(selected, np.ones(4), groups, np.array([0, 1, 0, 1])).round(6)
    array([[1., 1.],
           [1., 1.]])
    """
    count = int(groups.max()) + 1
    cluster = distinct_codes(clusters)
    width = int(cluster.max()) + 1
    errors = np.zeros((count, width))
    for group in range(count):
        inside = groups == group
        share = weights[inside] / weights[inside].sum()
        values = selected[inside].astype(np.float64)
        parts = share * (values - share @ values)
        errors[group] = np.bincount(cluster[inside], parts, width)
    products = errors @ errors.T
    variances = products.diagonal()
    scale = np.sqrt(np.outer(variances, variances))
    correlations = np.divide(
        products,
        scale,
        out=np.zeros_like(products),
        where=scale > 0,
    )
    np.fill_diagonal(correlations, 1.0)
    return correlations.clip(-1.0, 1.0)


def _kish(weights: Floats) -> float:
    scaled = weights / weights.max()  # squares of tiny weights would be 0
    return float(scaled.sum() ** 2 / (scaled**2).sum())
