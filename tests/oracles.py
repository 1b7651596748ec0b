"""Slow formulas that are obviously right, and samples hard enough to tell wrong ones apart.

Everything here is NumPy on float64, written from the definitions: distribution functions counted
score by score, and quadratic forms summed pair by pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from tests.seams.metrics import Pair, to_pair

Floats = NDArray[np.float64]


# --- distribution functions
# -------------------------------------------------------------------------------------


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _ones(values: ArrayLike, weights: ArrayLike | None) -> Floats:
    return np.ones(len(_floats(values))) if weights is None else _floats(weights)


def distribution(values: ArrayLike, weights: ArrayLike | None, at: ArrayLike) -> Floats:
    """Share of the weight at or below each of the points.

    >>> distribution([1, 2, 2, 5], None, [0, 1, 2, 9]).tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    w = _ones(values, weights)
    return (_floats(values)[None, :] <= _floats(at)[:, None]) @ w / w.sum()


class Steps(NamedTuple):
    """The distinct scores of two samples, and what the distribution functions differ by from
    each to the next.
    """

    points: Floats
    difference: Floats

    @property
    def gaps(self) -> Floats:
        return np.diff(self.points)


def steps(
    u: ArrayLike, v: ArrayLike, a: ArrayLike | None = None, b: ArrayLike | None = None
) -> Steps:
    points = np.unique(np.concatenate([_floats(u), _floats(v)]))
    return Steps(points, distribution(u, a, points) - distribution(v, b, points))


def kolmogorov(
    u: ArrayLike, v: ArrayLike, a: ArrayLike | None = None, b: ArrayLike | None = None
) -> float:
    return float(np.abs(steps(u, v, a, b).difference).max())


def integral(
    u: ArrayLike, v: ArrayLike, a: ArrayLike | None = None, b: ArrayLike | None = None, p: float = 1
) -> float:
    """Integral of |F0 - F1|^p.

    >>> integral([0, 1], [1, 3]), integral([0, 1], [1, 3], p=2)
    (1.5, 0.75)
    """
    both = steps(u, v, a, b)
    return float((np.abs(both.difference[:-1]) ** p * both.gaps).sum())


def lp(
    u: ArrayLike, v: ArrayLike, a: ArrayLike | None = None, b: ArrayLike | None = None, p: float = 2
) -> float:
    return integral(u, v, a, b, p) ** (1 / p)


def total_variation(
    u: ArrayLike, v: ArrayLike, a: ArrayLike | None = None, b: ArrayLike | None = None
) -> float:
    """Half the sum over distinct scores of the differences of their probabilities."""
    (x, y), (p, q) = (_floats(u), _floats(v)), (_ones(u, a), _ones(v, b))
    atoms = set(x) | set(y)
    return float(sum(abs(p[x == z].sum() / p.sum() - q[y == z].sum() / q.sum()) for z in atoms) / 2)


def binned_variation(u: Sequence[float], v: Sequence[float], bins: int) -> Fraction:
    """Total variation of the shares between quantiles of the even mixture, in exact fractions.

    >>> binned_variation([1, 2, 3, 4], [3, 4, 5, 6], 2)      # (-oo, 3] and beyond: 3/4 against 1/4
    Fraction(1, 2)
    """

    def up_to(sample: Sequence[float], t: float) -> Fraction:
        return Fraction(sum(z <= t for z in sample), len(sample))

    def edge(level: Fraction) -> float:
        return min(t for t in (*u, *v) if (up_to(u, t) + up_to(v, t)) / 2 >= level)

    edges = [-math.inf, *(edge(Fraction(k, bins)) for k in range(1, bins)), math.inf]
    shares = [[up_to(s, high) - up_to(s, low) for low, high in pairwise(edges)] for s in (u, v)]
    return sum(abs(p - q) for p, q in zip(*shares, strict=True)) / 2


# --- quadratic forms
# --------------------------------------------------------------------------------------------

Distance = Callable[[Floats], Floats]  # a kernel, as a function of z - z' or of its length

KERNELS: dict[str, Callable[[Floats, float], Floats]] = {
    "gaussian": lambda far, length: np.exp(-(far**2) / (2 * length**2)),
    "laplace": lambda far, length: np.exp(-np.abs(far) / length),
    "inverse_multiquadric": lambda far, length: 1 / np.sqrt(1 + far**2 / length**2),
    # anchors cancel: all coefficients of one score sum to 0
    "distance": lambda far, length: -np.abs(far) / 2,
}

SLOPES: dict[str, Callable[[Floats, float], Floats]] = {  # derivatives by far, with sign(0) = 0
    "gaussian": lambda far, length: -far / length**2 * KERNELS["gaussian"](far, length),
    "laplace": lambda far, length: -np.sign(far) / length * KERNELS["laplace"](far, length),
    "inverse_multiquadric": lambda far, length: -far / length**2 * (1 + far**2 / length**2) ** -1.5,
    "distance": lambda far, length: -np.sign(far) / 2,
}


def pair_coefficients(
    left: Sequence[ArrayLike], right: Sequence[ArrayLike], *, unbiased: bool = False
) -> NDArray[np.float64]:
    """What each pair (i, j) of all samples is multiplied by; each side is a list of strata, these
    of weights.

    Within a side, w_i w_j / W^2; across sides, minus that. Unbiased: within a stratum i = j is left
    out, and the others are scaled so that the stratum keeps its share: w_i w_j / (W^2 - sum w^2)
    for a side of one stratum.

    >>> pair_coefficients([[1, 1]], [[1]], unbiased=False)
    array([[ 0.25,  0.25, -0.5 ],
           [ 0.25,  0.25, -0.5 ],
           [-0.5 , -0.5 ,  1.  ]])
    >>> pair_coefficients([[1, 1]], [[1, 1]], unbiased=True)[:2]
    array([[ 0.  ,  0.5 , -0.25, -0.25],
           [ 0.5 ,  0.  , -0.25, -0.25]])
    """
    # sign of the side, stratum, weight as a share of the side; what leaving out i = j keeps
    rows, kept = [], {}
    for sign, side in ((1, left), (-1, right)):
        total = sum(_floats(stratum).sum() for stratum in side)
        for c, stratum in enumerate(side):
            shares = _floats(stratum) / total
            rows += [(sign, (sign, c), share) for share in shares.tolist()]
            kept[sign, c] = 1 - (shares**2).sum() / shares.sum() ** 2
    found = np.zeros((len(rows), len(rows)))
    for (i, (side, stratum, w)), (j, (other_side, other, x)) in product(enumerate(rows), repeat=2):
        found[i, j] = side * other_side * w * x
        if unbiased and stratum == other:
            found[i, j] = 0.0 if i == j else found[i, j] / kept[stratum]
    return found


def coefficients_of(pair: Pair, *, unbiased: bool = False) -> NDArray[np.float64]:
    """The same, from two samples as the metrics take them."""
    weights = _ones(pair.values, pair.weights)
    strata = np.split(weights, np.cumsum(pair.left + pair.right)[:-1])
    return pair_coefficients(strata[: len(pair.left)], strata[len(pair.left) :], unbiased=unbiased)


def quadratic(
    u: ArrayLike,
    v: ArrayLike,
    kernel: Distance,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    unbiased: bool = False,
) -> float:
    """Sum over all pairs of coefficient x kernel; vectors lie along the last axis.

    >>> quadratic([0, 1], [1, 3], lambda far: -np.abs(far))      # 3 - 1/2 - 1
    1.5
    """
    z = np.concatenate([_floats(u), _floats(v)])
    far = z[:, None] - z[None, :]
    far = np.sqrt((far**2).sum(-1)) if far.ndim == 3 else far
    return float(
        (pair_coefficients([_ones(u, a)], [_ones(v, b)], unbiased=unbiased) * kernel(far)).sum()
    )


def energy(
    u: ArrayLike,
    v: ArrayLike,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    unbiased: bool = False,
) -> float:
    """2 E|U - V| - E|U - U'| - E|V - V'|, pair by pair."""
    return quadratic(u, v, lambda far: -np.abs(far), a, b, unbiased=unbiased)


# --- closed forms
# -----------------------------------------------------------------------------------------------


def quantile_grid(inverse: Callable[[Floats], Floats], n: int) -> Floats:
    """n scores that stand for a distribution: its quantiles at the middles of n equal steps."""
    return _floats(inverse((np.arange(n) + 0.5) / n))


def shifted_normals(c: float, s: float = 1.0, length: float = 1.0) -> dict[str, float]:
    """Distances of N(c, s^2) and N(0, s^2); the squared MMD of the Gaussian kernel for s = 1."""
    t = c / s
    mean = 2 / math.sqrt(math.pi) * math.exp(-(t**2) / 4) + t * (2 * norm.cdf(t / math.sqrt(2)) - 1)
    spread = length**2 + 2
    return {
        "energy": s * (2 * mean - 4 / math.sqrt(math.pi)),
        "kolmogorov": 2 * norm.cdf(t / 2) - 1,
        "wasserstein": c,
        "mmd": 2 * length / math.sqrt(spread) * (1 - math.exp(-(c**2) / (2 * spread))),
    }


def centered_uniforms(narrow: float, wide: float) -> dict[str, float]:
    """Distances of two uniform distributions of these widths about one center."""
    return {"energy": (wide - narrow) ** 2 / (6 * wide), "kolmogorov": (1 - narrow / wide) / 2}


# --- samples
# ----------------------------------------------------------------------------------------------------

proven = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)


class Case(NamedTuple):
    """Two samples, with weights or without."""

    u: Floats
    v: Floats
    a: Floats | None = None
    b: Floats | None = None

    @property
    def extent(self) -> float:
        """Largest distance of two scores: what an error in a distance is to be compared with."""
        return float(np.ptp(np.concatenate([self.u, self.v])))

    @property
    def weights(self) -> dict[str, Floats | None]:
        return {"u_weights": self.a, "v_weights": self.b}

    @property
    def pair(self) -> Pair:
        return pair_of(*self)


def in_torch(pair: Pair) -> Pair:
    """The same samples as tensors."""
    parts = (
        None if part is None else torch.as_tensor(part) for part in (pair.weights, pair.fraction)
    )
    values = (
        pair.values.clone() if isinstance(pair.values, torch.Tensor) else torch.tensor(pair.values)
    )
    return Pair(values, pair.left, pair.right, *parts)


def pair_of(
    u: Any,
    v: Any,
    a: Any | None = None,
    b: Any | None = None,
    *,
    left: tuple[int, ...] | None = None,
    right: tuple[int, ...] | None = None,
) -> Pair:
    """Two samples as the metrics take them; ``left`` and ``right`` are the sizes of their
    strata.
    """
    pair = to_pair(u, v, a, b)
    return Pair(pair.values, left or pair.left, right or pair.right, pair.weights)


def eighths(least: int = 1, most: int = 6) -> st.SearchStrategy[Floats]:
    """Samples whose sums, shifts and halves are exact, with many ties."""
    return st.lists(st.integers(-8, 8), min_size=least, max_size=most).map(
        lambda k: np.array(k) / 8
    )


def counts(size: int, positive: int = 1) -> st.SearchStrategy[Floats]:
    """Small whole weights, zeros among them, at least ``positive`` of them above 0."""
    whole = st.lists(st.integers(0, 3), min_size=size, max_size=size)
    return whole.filter(lambda w: sum(x > 0 for x in w) >= positive).map(_floats)


SCALES = (1.0, 1e150, 1e-150)


@st.composite
def cases(
    draw: Any,
    least: int = 1,
    most: int = 7,
    weighted: bool = False,
    scales: tuple[float, ...] = SCALES,
) -> Case:
    """Two samples: distinct, tied or constant; of any size; near 0 or far from it; huge or tiny."""
    kind = draw(st.sampled_from(["tied", "real", "constant"]))
    score = {
        "tied": st.integers(-3, 3),
        "real": st.floats(-1, 1, allow_subnormal=False),
        "constant": st.just(1),
    }[kind]
    u, v = (
        np.array(draw(st.lists(score, min_size=least, max_size=most)), dtype=np.float64)
        for _ in "uv"
    )
    scale = draw(st.sampled_from(scales))
    offset = draw(st.sampled_from([0.0, 1000.0])) * scale
    a, b = (draw(counts(len(z), least)) if weighted else None for z in (u, v))
    return Case(u * scale + offset, v * scale + offset, a, b)
