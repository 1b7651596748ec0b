"""Clusters: rows that belong together, such as those of one person, and stay on one side of
every split.
"""

from __future__ import annotations

import re

import numpy as np

from metrifair.problem.tables import ColumnArray, distinct, is_missing
from metrifair.support.arrays import Booleans, Integers, distinct_codes

_MOST_PER_ID = 20  # rows of one id on average: beyond, a column such as state_id is a category
_IS_ID = re.compile(r"(.*[_\W])?(id|ids|uuid|guid)", re.IGNORECASE)


def is_id_name(column: str) -> bool:
    """Whether the name of a column says that it identifies rows, or persons with several rows.

    >>> [is_id_name(name) for name in ("id", "person_id", "Customer ID", "paid")]
    [True, True, True, False]
    """
    return _IS_ID.fullmatch(column) is not None


def repeats(rows: int, values: int) -> bool:
    """Whether an id with so many different values in so many rows repeats, as that of a person with
    several rows.

    >>> repeats(10, 10), repeats(10, 5), repeats(1000, 5)
    (False, True, False)
    """
    return values > 0 and 1 < rows / values <= _MOST_PER_ID


def cluster_codes(column: ColumnArray) -> Integers:
    """The cluster of each row; a row whose value is missing is its own cluster.

    Clusters are numbered by their first rows: splits are then the same for every spelling and type
    of the values.

    >>> cluster_codes(np.array(["ann", None, "ann", None], dtype=object))
    array([0, 1, 0, 2])
    >>> cluster_codes(np.array([True, False])), cluster_codes(np.array(["yes", "no"]))
    (array([0, 1]), array([0, 1]))
    """
    missing = is_missing(column)
    values, present = distinct(column[~missing])
    codes = np.empty(len(column), dtype=np.int64)
    codes[~missing] = present
    codes[missing] = len(values) + np.arange(missing.sum())
    _, first_rows, numbers = np.unique(codes, return_index=True, return_inverse=True)
    by_first_row = np.argsort(np.argsort(first_rows))
    return by_first_row[numbers]


def cluster_folds(count: int, clusters: Integers, kinds: Integers, seed: int) -> Integers:
    """The fold of each row, one of ``count``; rows of one cluster are in one fold, and folds have
    one mix of kinds.

    >>> cluster_folds(2, np.array([7, 7, 8, 9, 9, 3]), np.zeros(6, dtype=np.int64), 0)
    array([1, 1, 1, 0, 0, 0])
    """
    order, of_row = _cluster_order(clusters, kinds, seed)
    return order[of_row] % count


def cluster_share(share: float, clusters: Integers, kinds: Integers, seed: int) -> Booleans:
    """True for the rows of about this share of the clusters, which are like the others in kinds
    and in sizes.
    """
    order, of_row = _cluster_order(clusters, kinds, seed)
    start = np.random.RandomState(seed).random()
    selected: Booleans = np.diff(np.floor(share * np.arange(len(order) + 1) + start)) > 0
    return selected[order[of_row]]


def _cluster_order(clusters: Integers, kinds: Integers, seed: int) -> tuple[Integers, Integers]:
    """The place of each cluster in an order for sampling, and the number of each row's cluster.

    A cluster has the rarest kind among its rows: frequent kinds are similar on both sides anyway.
    Neighbors have the same kind and about the same size, so that every n-th cluster is a sample of
    all.
    """
    of_row = distinct_codes(clusters)
    sizes = np.bincount(of_row)
    _, kind, frequency = np.unique(kinds, return_inverse=True, return_counts=True)
    rarity = np.argsort(np.argsort(frequency, kind="stable"))
    rarest = np.full(len(sizes), len(frequency))
    np.minimum.at(rarest, of_row, rarity[kind.reshape(-1)])
    place = np.empty(len(sizes), dtype=np.int64)
    place[np.lexsort((np.random.RandomState(seed).random(len(sizes)), sizes, rarest))] = np.arange(
        len(sizes)
    )
    return place, of_row
