"""The theorem on the rate: mean squared gradient norm along T steps of size 1/sqrt(T), unbiased and
biased.

The problem is the offset regression of ``experiments.populations``, whose objective and gradient
are known exactly.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from functools import partial
from math import pi, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from experiments.page import Page, TextTable, circumstances, line_chart, side_by_side, write_page
from experiments.results import write_csv
from experiments.runs import Records, remembered
from experiments.settings import Effort, Protocol
from experiments.tables import Mean

Floats = NDArray[np.float64]

OFFSET, STRENGTH = 1.0, 1.0  # Y = X + OFFSET (1 - A), X standard normal, P[A = 1] = 1/2
STEP = 0.2  # over the square root of the number of steps
EACH = 2  # samples of either group in a batch
_START = (0.0, 0.0, 0.0)  # slope, offset of group 0, intercept
_REPLICATIONS = 64
_NOTE = (
    "Offset regression Y = X + (1 - A), X standard normal, linear model, strength 1, batches of "
    "two samples of "
    f"each group, plain stochastic gradient descent with steps of {STEP}/sqrt(T), {_REPLICATIONS} "
    "replications. "
    "The gradient of the objective is known exactly. With the unbiased estimate the mean squared "
    "norm falls like "
    "1/sqrt(T); with the plug-in estimate it stops at the square of the bias. Both protocols mean "
    "the same here."
)
_DIFFERENCE = (
    "Where we differ: the paper states the rate, as a bound, and prints no figures for it. Our "
    "exponents are those "
    "of a line fitted to the logarithms of the means; the constants of the bound are not compared."
)


def run(protocol: Protocol, effort: Effort, out: Path) -> None:
    """Write the norms, their figure and their page; both protocols mean the same here."""
    lengths = [2**k for k in (range(4, 8) if effort.quick else range(6, 15))]
    records: Records = []
    seconds, code = 0.0, inspect.getsource(sys.modules[__name__])
    for unbiased in (True, False):
        for length in lengths:
            name = f"convergence {unbiased} {length} {_REPLICATIONS} {STEP} {STRENGTH}"
            done = remembered(
                out / "ledger.db", name, partial(norms, length, unbiased=unbiased), code=code
            )
            records += done["records"]
            seconds += done["seconds"]
    write_csv(out / f"convergence-{protocol.name}.csv", records)
    page = convergence_page(
        records, notes=[f"All steps took {seconds:.1f} s.", *circumstances(effort)]
    )
    write_page(page, out, f"convergence-{protocol.name}")


def gradient(w: Floats) -> Floats:
    """Exact gradient of the objective E(h - Y)^2 + STRENGTH x energy for h = w0 x + w1 (1 - a) +
    w2, (..., 3).

    With s = |w0| and t = |w1| / s the energy is s g(t), where g'(t) = 2 (2 Phi(t / sqrt 2) - 1).
    """
    slope, offset, intercept = w[..., 0], w[..., 1], w[..., 2]
    s = np.maximum(np.abs(slope), 1e-12)
    t = np.abs(offset) / s
    rise = 2 * erf(t / 2)
    g = 2 * ((2 / sqrt(pi)) * np.exp(-(t**2) / 4) + t * erf(t / 2)) - 4 / sqrt(pi)
    miss = offset - OFFSET + intercept
    return np.stack(
        [
            2 * (slope - 1) + STRENGTH * np.sign(slope) * (g - t * rise),
            miss + STRENGTH * np.sign(offset) * rise,
            miss + intercept,
        ],
        -1,
    )


def estimate(w: Floats, x: Floats, *, unbiased: bool) -> Floats:
    """The gradient from one batch of each replication: x is (replications, 2 EACH), group 0
    first.
    """
    a = np.repeat([0.0, 1.0], EACH)
    # of shape: replications, n, 3
    features = np.stack([x, np.broadcast_to(1 - a, x.shape), np.ones_like(x)], -1)
    h = np.einsum("rnk,rk->rn", features, w)
    error = h - x - OFFSET * (1 - a)
    risk = 2 * np.einsum("rn,rnk->rk", error, features) / x.shape[1]
    within = EACH**2 if not unbiased else EACH * (EACH - 1)
    same = a[:, None] == a
    coefficient = np.where(same, -1 / within, 1 / EACH**2)
    slopes = coefficient * np.sign(h[:, :, None] - h[:, None, :])  # (replications, n, n)
    pairs = np.einsum("rij,rik->rk", slopes, features) - np.einsum("rij,rjk->rk", slopes, features)
    slope: Floats = risk + STRENGTH * pairs
    return slope


def norms(length: int, *, unbiased: bool) -> Records:
    """Mean over the steps of the squared norm of the exact gradient, for each replication."""
    rng = np.random.default_rng(length)
    w = np.tile(np.array(_START), (_REPLICATIONS, 1))
    total = np.zeros(_REPLICATIONS)
    for _ in range(length):
        total += (gradient(w) ** 2).sum(-1)
        w = w - STEP / sqrt(length) * estimate(
            w, rng.standard_normal((_REPLICATIONS, 2 * EACH)), unbiased=unbiased
        )
    return [
        {"unbiased": unbiased, "steps": length, "replication": at, "norm": float(value) / length}
        for at, value in enumerate(total)
    ]


def convergence_page(records: Records, *, notes: Sequence[str] = ()) -> Page:
    """Figure and tables."""
    means = mean_norms(records)
    steps, first = [mean["steps"] for mean in means["unbiased"]], means["unbiased"][0]
    guide = [
        {"steps": t, "norm": first["norm"] * sqrt(steps[0] / t), "kind": "1/sqrt(T)"} for t in steps
    ]
    points = [
        {"steps": mean["steps"], "norm": mean["norm"], "kind": kind}
        for kind in means
        for mean in means[kind]
    ]
    axes = {
        "x": "steps",
        "y": "norm",
        "x_title": "steps T",
        "y_title": "mean squared gradient norm",
    }
    texts = {
        kind: [f"{mean['norm']:.4f} ± {mean['error']:.4f}" for mean in means[kind]]
        for kind in means
    }
    lines = [
        [str(t), *both] for t, *both in zip(steps, texts["unbiased"], texts["biased"], strict=True)
    ]
    return Page(
        title="Convergence: the rate of the theorem",
        notes=[_NOTE, _DIFFERENCE, *notes],
        tables={
            "Exponent of T": rate_table(means),
            "Mean over steps and replications ± standard error": [
                ["T", "unbiased", "biased"],
                *lines,
            ],
        },
        charts={
            "Mean squared gradient norm against the number of steps": side_by_side(
                [line_chart(points + guide, color="kind", log=True, **axes)]
            )
        },
    )


def mean_norms(records: Records) -> dict[str, Records]:
    """Mean and standard error over replications of each number of steps, by the kind of
    estimate.
    """
    means: dict[str, Records] = {"unbiased": [], "biased": []}
    for kind, kind_means in means.items():
        for steps in sorted({record["steps"] for record in records}):
            part = [
                record
                for record in records
                if record["unbiased"] == (kind == "unbiased") and record["steps"] == steps
            ]
            mean = Mean.of([record["norm"] for record in part])
            kind_means.append({"steps": steps, "norm": mean.value, "error": mean.error})
    return means


def rate_table(means: dict[str, Records]) -> TextTable:
    """The power of T by which the means fall, beside the theorem's.

    >>> halved = [{"steps": t, "norm": t**-0.5} for t in (16, 64)]
    >>> rate_table({"unbiased": halved, "biased": halved})[1]
    ['unbiased', '-0.50', '-0.50']
    """
    lines = []
    for kind, stated in (("unbiased", "-0.50"), ("biased", "none")):
        steps, norm = (np.log([mean[name] for mean in means[kind]]) for name in ("steps", "norm"))
        slope = np.polyfit(steps, norm, 1)[0]
        lines.append([kind, stated, f"{slope:.2f}"])
    return [["estimate", "theorem", "ours"], *lines]
