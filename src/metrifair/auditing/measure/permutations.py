"""Random permutations that the comparisons of many groups with the rest share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from metrifair.support.arrays import Floats, Integers

_MOST_ORDERED = 2**22  # rows of all permutations that are kept


class SharedPermutations:
    """Random orders of all rows, given their number in each bin: a group of n rows takes the
    first n of each order.
    """

    def __init__(self, counts: Floats) -> None:
        self._counts = counts.astype(np.int64)
        self._orders: NDArray[np.uint16] | None = None  # (permutations, rows): the bin of each row
        self.distances: dict[tuple[int, tuple[str, ...]], Iterator[dict[str, Floats]]] = {}
        """Blocks of distances, by the size of the group and the metrics."""

    def left_counts(
        self,
        size: int,
        chosen: slice,
        permutations: int,
        generator: np.random.Generator,
    ) -> Integers:
        """The rows in each bin of a group of this size, (chosen, k), after the chosen
        permutations.
        """
        if self._orders is None:
            bin_index = np.repeat(np.arange(len(self._counts), dtype=np.uint16), self._counts)
            rows = min(len(bin_index), largest_size(permutations))
            orders = (
                generator.choice(len(bin_index), rows, replace=False) for _ in range(permutations)
            )
            self._orders = np.stack([bin_index[order] for order in orders])
        group = self._orders[chosen, :size]
        width = len(self._counts)
        cell = group + width * np.arange(len(group))[:, None]
        return np.bincount(cell.ravel(), minlength=width * len(group)).reshape(-1, width)


def largest_size(permutations: int) -> int:
    """The size of the largest group that takes its rows from shared orders; larger ones are
    drawn faster alone.
    """
    return _MOST_ORDERED // permutations
