"""What every synthetic population gives back, and the checks of the parameters they have in common."""

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
