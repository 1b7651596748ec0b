"""All SP-fair hypotheses on a small finite space, by enumeration: the proposition on the
geometry of H_fair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError
from metrifair.support.arrays import Floats

Partition: TypeAlias = tuple[tuple[int, ...], ...]

# 22,482 partitions for six atoms in each group of equal mass; eight would have ten million
_MOST_ATOMS = 12
_TOLERANCE = 1e-9  # masses are sums of a dozen floats near 1


class FairFit(NamedTuple):
    """The best SP-fair hypothesis: the blocks on which it is constant, its values, and its excess
    risk.

    Parameters
    ----------
    partition
        Blocks of atoms on which the hypothesis is constant.
    prediction
        Its value on each atom.
    excess_risk
        Its risk less that of the unpenalized optimum.

    Examples
    --------
    >>> FairFit(((0, 1),), (0.5, 0.5), 0.25).excess_risk
    0.25
    """

    partition: Partition
    prediction: tuple[float, ...]
    excess_risk: float


@dataclass(frozen=True)
class FiniteSpace:
    """Finitely many feature values (atoms) with their joint mass in the two groups and the optimum
    E[Y|X] on each.

    A hypothesis is SP-fair iff each of its level sets has the same conditional mass in both groups.
    So the SP-fair hypotheses are a union of linear subspaces, one for each partition of the atoms
    into such blocks: the functions that are constant on the blocks.

    Parameters
    ----------
    masses
        One pair (P[X = x, A = 0], P[X = x, A = 1]) for each atom; all together sum to 1.
    optimum
        E[Y | X = x] for each atom.

    Examples
    --------
    Two atoms in each group, all of mass 1/4. Parity pairs the small with the small and the large
    with the large.

    >>> space = FiniteSpace(masses=[(0.25, 0), (0.25, 0), (0, 0.25), (0, 0.25)], optimum=[0.0, 1.0, 0.8, 0.2])
    >>> sorted(space.fair_partitions())
    [((0, 1, 2, 3),), ((0, 2), (1, 3)), ((0, 3), (1, 2))]
    >>> space.best_fair().partition
    ((0, 3), (1, 2))
    """

    masses: Sequence[tuple[float, float]]
    optimum: Sequence[float]

    def __post_init__(self) -> None:
        masses = np.asarray(self.masses, dtype=np.float64)
        if masses.ndim != 2 or masses.shape[1] != 2 or masses.shape[0] != len(self.optimum):
            raise DataError(
                f"masses must contain one pair for each of the {len(self.optimum)} values of "
                "optimum, "
                f"got shape {masses.shape}; give (P[X = x, A = 0], P[X = x, A = 1]) for each atom"
            )
        if (
            not (masses >= 0).all()
            or not (masses.sum(axis=0) > 0).all()
            or abs(masses.sum() - 1) > _TOLERANCE
        ):
            raise DataError(
                "masses must be non-negative, sum to 1 and leave no group empty, got group sums "
                f"{masses.sum(axis=0)}; "
                "divide by the total"
            )
        # Tuples make the space a value: printable, comparable, hashable.
        object.__setattr__(self, "masses", tuple((float(m0), float(m1)) for m0, m1 in masses))
        object.__setattr__(self, "optimum", tuple(float(value) for value in self.optimum))

    def fair_partitions(self) -> Iterator[Partition]:
        """All partitions of the atoms into blocks of equal conditional mass in both groups; at
        most 12 atoms.
        """
        atoms = len(self.optimum)
        subsets = _subsets(atoms)
        masses = np.asarray(self.masses)
        conditional = masses / masses.sum(axis=0)
        balance = subsets @ (conditional[:, 0] - conditional[:, 1])
        balanced = np.flatnonzero(np.abs(balance) < _TOLERANCE)[1:]
        blocks = {
            atom: [int(mask) for mask in balanced if mask & -mask == 1 << atom]
            for atom in range(atoms)
        }
        yield from _partitions(2**atoms - 1, blocks)

    def is_fair(self, prediction: Floats) -> bool:
        """Whether the predictions, one for each atom, have the same distribution in both groups."""
        masses = np.asarray(self.masses)
        _, level = np.unique(np.round(prediction, 12), return_inverse=True)
        by_level = np.array([np.bincount(level, masses[:, a]) / masses[:, a].sum() for a in (0, 1)])
        return bool(np.allclose(by_level[0], by_level[1], rtol=0, atol=_TOLERANCE))

    def worst_attribute(self, prediction: Floats) -> tuple[tuple[int, ...], float]:
        """The attribute, among all that the features can form, whose groups' predictions are
        furthest apart.

        An attribute is a set of atoms; the distance is Kolmogorov's, between those inside and those
        outside. For a hypothesis that is not constant it is 1 (take those predicted low): only
        constants are fair to everyone.

        >>> space = FiniteSpace(masses=[(0.25, 0), (0.25, 0), (0, 0.25), (0, 0.25)], optimum=[0.0, 1.0, 0.8, 0.2])
        >>> space.is_fair(np.array([0.0, 1.0, 0.0, 1.0])), space.worst_attribute(np.array([0.0, 1.0, 0.0, 1.0]))
        (True, ((0, 2), 1.0))
        """
        mass = np.asarray(self.masses).sum(axis=1)
        subsets = _subsets(len(mass))
        subsets = subsets[(subsets @ mass > 0) & (subsets @ mass < mass.sum())]
        inside, outside = subsets * mass, (1 - subsets) * mass
        below = prediction <= np.unique(prediction)[:, None]  # (levels, atoms)
        gaps = np.abs(
            below @ (inside / inside.sum(1, keepdims=True)).T
            - below @ (outside / outside.sum(1, keepdims=True)).T
        ).max(0)
        worst = int(gaps.argmax())
        return tuple(np.flatnonzero(subsets[worst]).tolist()), float(gaps[worst])

    def best_fair(self) -> FairFit:
        """The SP-fair hypothesis of least squared loss: block means of the optimum on the best
        of all partitions.
        """
        optimum, mass = np.asarray(self.optimum), np.asarray(self.masses).sum(axis=1)
        costs: dict[tuple[int, ...], float] = {}

        def mean(block: tuple[int, ...]) -> float:
            weights = mass[list(block)]
            return float(weights @ optimum[list(block)] / weights.sum())

        def cost(block: tuple[int, ...]) -> float:
            if block not in costs:  # the same few hundred blocks make up thousands of partitions
                costs[block] = float(mass[list(block)] @ (optimum[list(block)] - mean(block)) ** 2)
            return costs[block]

        best = min(
            self.fair_partitions(), key=lambda partition: sum(cost(block) for block in partition)
        )
        prediction = {atom: mean(block) for block in best for atom in block}
        values = tuple(prediction[atom] for atom in range(len(optimum)))
        return FairFit(best, values, sum(cost(block) for block in best))


def _subsets(atoms: int) -> NDArray[np.int64]:
    """All sets of atoms, (sets, atoms) of 0 and 1, in the order of the numbers they spell."""
    if atoms > _MOST_ATOMS:
        raise DataError(
            f"enumeration serves at most {_MOST_ATOMS} atoms, got {atoms}; merge atoms or use the "
            "sorting rule"
        )
    return (np.arange(2**atoms)[:, None] >> np.arange(atoms)) & 1


def _partitions(remaining: int, blocks: dict[int, list[int]]) -> Iterator[Partition]:
    """Partitions of the set bits of ``remaining`` into blocks, given by bit masks under their
    smallest atom.
    """
    if not remaining:
        yield ()
        return
    first = (remaining & -remaining).bit_length() - 1
    for mask in blocks[first]:
        if mask & ~remaining == 0:
            block = tuple(atom for atom in range(mask.bit_length()) if mask >> atom & 1)
            for rest in _partitions(remaining & ~mask, blocks):
                yield (block, *rest)
