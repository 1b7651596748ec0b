"""What every synthetic population gives back, checks of common parameters, the trade-off over all hypotheses, and the
SP-fair ones on a finite space, by enumeration (the paper's proposition on the geometry of H_fair)."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.checks import check_integer
from metrifair.errors import DataError

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Seed: TypeAlias = int | np.random.Generator


class Sample(NamedTuple):
    """Rows drawn from a population: features, targets and groups, as NumPy arrays.

    Parameters
    ----------
    X
        Features of shape (n, d), 64-bit floats; the group, where it is a feature, is the last column.
    y
        Targets of shape (n,): floats for regression, integers 0 and 1 for classification.
    a
        Groups of shape (n,), integers 0 and 1.

    Examples
    --------
    >>> Sample(np.zeros((2, 1)), np.ones(2), np.array([0, 1])).a
    array([0, 1])
    """

    X: Floats
    y: NDArray[np.float64 | np.int64]
    a: Integers


@dataclass(frozen=True)
class TradeOffPoint:
    """The best hypothesis of a class at one strength: its parameters, its risk, and how far apart the groups are.

    Parameters
    ----------
    strength
        Weight of the energy distance in the objective (the paper's lambda).
    parameters
        What singles the hypothesis out in its class, by name; empty for the class of all hypotheses.
    risk
        Expected loss.
    energy
        Energy distance of the groups' predictions, twice the squared L2 distance of their CDFs.
    kolmogorov
        Kolmogorov distance of the groups' predictions.

    Examples
    --------
    >>> TradeOffPoint(2.0, {}, risk=0.25, energy=0.5, kolmogorov=0.1).objective
    1.25
    """

    strength: float
    parameters: dict[str, float]
    risk: float
    energy: float
    kolmogorov: float

    @property
    def objective(self) -> float:
        """Risk plus strength times energy distance: what the hypothesis minimises."""
        # At infinite strength the energy is zero and the product would be a silent NaN.
        return self.risk if self.energy == 0 else self.risk + self.strength * self.energy


def generator(seed: Seed, purpose: int = 0) -> np.random.Generator:
    """The generator itself, or a new one for this seed; other purposes of one seed give independent numbers.

    Examples
    --------
    >>> generator(0).random() == np.random.default_rng(0).random()
    True
    >>> generator(0).random() == generator(0, purpose=1).random()
    False
    """
    if isinstance(seed, np.random.Generator):
        return seed
    check_integer("seed", seed, least=0)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose,) if purpose else ()))


def last_column_as_group(X: Floats, width: int) -> Integers:
    """The groups in the last column of the features, which must have the given number of columns."""
    if X.ndim != 2 or X.shape[1] != width:
        raise DataError(
            f"X must have {width} columns, the group last, got shape {X.shape}; pass rows as sample() returns"
        )
    if not np.isin(X[:, -1], (0.0, 1.0)).all():
        found = np.unique(X[:, -1])
        raise DataError(f"the last column of X must be the group, 0 or 1, got {found}; pass rows as sample() returns")
    return X[:, -1].astype(np.int64)


def table_values(table: Floats, X: Floats) -> Floats:
    """The entries of a hypothesis on rows (x1, a) of integers, given as a table: row = group, column = x1.

    Examples
    --------
    >>> table_values(np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([0.2, 0.3])
    """
    group, m = last_column_as_group(X, width=2), table.shape[1]
    if not np.isin(X[:, 0], np.arange(m)).all():
        found = np.unique(X[:, 0])
        raise DataError(f"the first column of X must hold 0 to {m - 1}, got {found}; pass rows as sample() returns")
    return np.asarray(table[group, X[:, 0].astype(np.int64)], dtype=np.float64)


def check_probability(name: str, value: float) -> None:
    """Refuse a share that is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise DataError(f"{name} must lie strictly between 0 and 1, got {value!r}; choose a share such as 0.5")


def check_strength(value: float) -> None:
    """Refuse a negative strength; infinity asks for the best SP-fair hypothesis."""
    if not value >= 0:
        raise DataError(
            f"strength must be 0 or more, got {value!r}; choose 0 for no penalty, infinity for exact parity"
        )


_HALVINGS = 100  # beyond the 53 bits of a float, whatever the width of the bracket


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """The point between low and high where an increasing function changes sign, by bisection.

    Examples
    --------
    >>> root(lambda x: x * x - 2, 0, 2).__round__(12)
    1.414213562373
    """
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return (low + high) / 2


def unrestricted_tradeoff(
    cdf0: Callable[[Floats], Floats],
    cdf1: Callable[[Floats], Floats],
    *,
    p1: float,
    strength: float,
    support: tuple[float, float],
    points: int = 4001,
) -> TradeOffPoint:
    """Smallest excess risk + strength x energy distance over **all** hypotheses, for squared loss and the group in X.

    Only the distribution of the unpenalised optimum E[Y|X] in each group matters. Let F0, F1 be the CDFs of the
    predictions. Risk and energy are both integrals over thresholds z of a convex function of (F0(z), F1(z)), so the
    problem falls apart into one equation for each z: with v = 2 strength (F0(z) - F1(z)), whoever has the optimum
    z - v/p0 in group 0 or z + v/p1 in group 1 receives z, that is cdf0(z - v/p0) - cdf1(z + v/p1) = v / (2 strength).

    Parameters
    ----------
    cdf0, cdf1
        CDFs of E[Y|X] in the two groups, on arrays.
    p1
        Share of group 1.
    strength
        Weight of the energy distance; infinity gives the best SP-fair hypothesis.
    support
        Smallest and largest value of E[Y|X] (all but a negligible part of it).
    points
        Number of thresholds; the error is of order 1 / points^2 for smooth CDFs.

    Returns
    -------
    TradeOffPoint
        Its risk is the excess over the risk of E[Y|X].

    Examples
    --------
    Group 0 is always 0, group 1 always 1, equally many: parity costs 1/4.

    >>> step0, step1 = (lambda z: (z >= 0) * 1.0), (lambda z: (z >= 1) * 1.0)
    >>> unrestricted_tradeoff(step0, step1, p1=0.5, strength=np.inf, support=(-0.1, 1.1)).risk.__round__(3)
    0.25
    """
    check_probability("p1", p1)
    check_strength(strength)
    p0 = 1 - p1
    z = np.linspace(*support, points)
    low, high = _bracket(cdf0, cdf1, z, p1, strength)
    shift = (low + high) / 2
    gap = cdf0(z) - cdf1(z) if strength == 0 else shift / (2 * strength)
    # On an atom the bracket straddles a jump of a CDF: the level lies inside the jump, where the gap puts it.
    level0 = np.clip(gap + cdf1(z + low / p1), cdf0(z - high / p0), cdf0(z - low / p0))
    level1 = level0 - gap
    between = (shift[1:] ** 2 + shift[:-1] ** 2) / 2
    risk = float((between * (np.diff(level0) / p0 + np.diff(level1) / p1)).sum())
    energy = float((gap[1:] ** 2 + gap[:-1] ** 2).sum()) * (support[1] - support[0]) / (points - 1)
    return TradeOffPoint(strength, {}, risk, energy, float(np.abs(gap).max()))


def _bracket(
    cdf0: Callable[[Floats], Floats], cdf1: Callable[[Floats], Floats], z: Floats, p1: float, strength: float
) -> tuple[Floats, Floats]:
    """Lower and upper bounds of v at each threshold, equal to the last bit."""
    if strength == 0:
        return np.zeros_like(z), np.zeros_like(z)
    p0, width = 1 - p1, float(z[-1] - z[0])
    low, high = np.full_like(z, -p1 * width), np.full_like(z, p0 * width)
    slope = 0.0 if math.isinf(strength) else 1 / (2 * strength)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        too_large = cdf0(z - middle / p0) - cdf1(z + middle / p1) < slope * middle
        low, high = np.where(too_large, low, middle), np.where(too_large, middle, high)
    return low, high


Partition: TypeAlias = tuple[tuple[int, ...], ...]

_MOST_ATOMS = 12  # 22,482 partitions for six atoms in each group of equal mass; eight would have ten million
_TOLERANCE = 1e-9  # masses are sums of a dozen floats near 1


class FairFit(NamedTuple):
    """The best SP-fair hypothesis: the blocks on which it is constant, its values, and its excess risk.

    Parameters
    ----------
    partition
        Blocks of atoms on which the hypothesis is constant.
    prediction
        Its value on each atom.
    excess_risk
        Its risk less that of the unpenalised optimum.

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
    """Finitely many feature values (atoms) with their joint mass in the two groups and the optimum E[Y|X] on each.

    A hypothesis is SP-fair iff each of its level sets has the same conditional mass in both groups. So the SP-fair
    hypotheses are a union of linear subspaces, one for each partition of the atoms into such blocks: the functions
    that are constant on the blocks.

    Parameters
    ----------
    masses
        One pair (P[X = x, A = 0], P[X = x, A = 1]) for each atom; all together sum to 1.
    optimum
        E[Y | X = x] for each atom.

    Examples
    --------
    Two atoms in each group, all of mass 1/4. Parity pairs the small with the small and the large with the large.

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
                f"masses must hold one pair for each of the {len(self.optimum)} values of optimum, "
                f"got shape {masses.shape}; give (P[X = x, A = 0], P[X = x, A = 1]) for each atom"
            )
        if not (masses >= 0).all() or not (masses.sum(axis=0) > 0).all() or abs(masses.sum() - 1) > _TOLERANCE:
            raise DataError(
                f"masses must be non-negative, sum to 1 and leave no group empty, got group sums {masses.sum(axis=0)}; "
                "divide by the total"
            )
        # Tuples make the space a value: printable, comparable, hashable.
        object.__setattr__(self, "masses", tuple((float(m0), float(m1)) for m0, m1 in masses))
        object.__setattr__(self, "optimum", tuple(float(value) for value in self.optimum))

    def fair_partitions(self) -> Iterator[Partition]:
        """All partitions of the atoms into blocks of equal conditional mass in both groups; at most 12 atoms."""
        atoms = len(self.optimum)
        subsets = _subsets(atoms)
        masses = np.asarray(self.masses)
        conditional = masses / masses.sum(axis=0)
        balance = subsets @ (conditional[:, 0] - conditional[:, 1])
        balanced = np.flatnonzero(np.abs(balance) < _TOLERANCE)[1:]
        blocks = {atom: [int(mask) for mask in balanced if mask & -mask == 1 << atom] for atom in range(atoms)}
        yield from _partitions(2**atoms - 1, blocks)

    def is_fair(self, prediction: Floats) -> bool:
        """Whether the predictions, one for each atom, have the same distribution in both groups."""
        masses = np.asarray(self.masses)
        _, level = np.unique(np.round(prediction, 12), return_inverse=True)
        by_level = np.array([np.bincount(level, masses[:, a]) / masses[:, a].sum() for a in (0, 1)])
        return bool(np.allclose(by_level[0], by_level[1], rtol=0, atol=_TOLERANCE))

    def worst_attribute(self, prediction: Floats) -> tuple[tuple[int, ...], float]:
        """The attribute, among all that the features can form, whose groups' predictions are furthest apart.

        An attribute is a set of atoms; the distance is Kolmogorov's, between those inside and those outside. For a
        hypothesis that is not constant it is 1 (take those predicted low): only constants are fair to everyone.

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
            below @ (inside / inside.sum(1, keepdims=True)).T - below @ (outside / outside.sum(1, keepdims=True)).T
        ).max(0)
        worst = int(gaps.argmax())
        return tuple(np.flatnonzero(subsets[worst]).tolist()), float(gaps[worst])

    def best_fair(self) -> FairFit:
        """The SP-fair hypothesis of least squared loss: block means of the optimum on the best of all partitions."""
        optimum, mass = np.asarray(self.optimum), np.asarray(self.masses).sum(axis=1)
        costs: dict[tuple[int, ...], float] = {}

        def mean(block: tuple[int, ...]) -> float:
            weights = mass[list(block)]
            return float(weights @ optimum[list(block)] / weights.sum())

        def cost(block: tuple[int, ...]) -> float:
            if block not in costs:  # the same few hundred blocks make up thousands of partitions
                costs[block] = float(mass[list(block)] @ (optimum[list(block)] - mean(block)) ** 2)
            return costs[block]

        best = min(self.fair_partitions(), key=lambda partition: sum(cost(block) for block in partition))
        prediction = {atom: mean(block) for block in best for atom in block}
        values = tuple(prediction[atom] for atom in range(len(optimum)))
        return FairFit(best, values, sum(cost(block) for block in best))


def _subsets(atoms: int) -> NDArray[np.int64]:
    """All sets of atoms, (sets, atoms) of 0 and 1, in the order of the numbers they spell."""
    if atoms > _MOST_ATOMS:
        raise DataError(
            f"enumeration serves at most {_MOST_ATOMS} atoms, got {atoms}; merge atoms or use the sorting rule"
        )
    return (np.arange(2**atoms)[:, None] >> np.arange(atoms)) & 1


def _partitions(remaining: int, blocks: dict[int, list[int]]) -> Iterator[Partition]:
    """Partitions of the set bits of ``remaining`` into blocks, given by bit masks under their smallest atom."""
    if not remaining:
        yield ()
        return
    first = (remaining & -remaining).bit_length() - 1
    for mask in blocks[first]:
        if mask & ~remaining == 0:
            block = tuple(atom for atom in range(mask.bit_length()) if mask >> atom & 1)
            for rest in _partitions(remaining & ~mask, blocks):
                yield (block, *rest)
