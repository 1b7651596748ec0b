"""The paper's examples, proposition and theorem as figures: exact values of synthetic
populations.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product
from math import log, log1p, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.page import Page, TextTable, circumstances, line_chart, side_by_side, write_page
from experiments.populations import (
    BiasedClassification,
    BiasedRegression,
    Example1,
    FiniteSpace,
    IndependentLabels,
    ShiftedTarget,
    atomic_distances,
    table_distances,
)
from experiments.results import write_csv
from experiments.runs import Records
from experiments.settings import Effort, Protocol
from metrifair.errors import DataError
from metrifair.figures.certificates import check_confidence
from metrifair.metrics.pair import Pair
from metrifair.metrics.registry import facts
from metrifair.support.checks import check_number

_NOTES = (
    (
        "Example 1: parity costs p0 p1 / 12. The printed formula exceeds even the risk 1/12 of a "
        "constant."
    ),
    (
        "Example 2: the labels are independent of the group, and the optimum is still unfair "
        "(Kolmogorov distance 0.6)."
    ),
    (
        "Proposition: if the target depends on the group only through the features (bias 0), the "
        "optimum is fair."
    ),
    (
        "Theorem: trained on a biased target, the fair hypothesis has the smaller true risk if the "
        "bias is small."
    ),
    (
        "It has the larger one if the bias reverses the order of the targets of a group (shrink, "
        "beyond 1/2)."
    ),
    (
        "Converse: if the target is the group, the optimum is fair for features that are "
        "independent "
        "of the group."
    ),
    "If a feature is the group, the unfairness of the optimum is the largest possible.",
    (
        "Every attribute: a hypothesis that is not constant has distance 1 for some attribute, a "
        "function of the features."
    ),
    (
        "(It separates low from high predictions.) Therefore, only constants are fair for every "
        "attribute."
    ),
    (
        "Other losses: the theorem requires strong convexity, which the absolute error lacks "
        "without "
        "noise."
    ),
    (
        "Its fair hypothesis follows the larger group, right or wrong. Huber's loss, or noise, "
        "corrects small biases."
    ),
    "A Tikhonov term of weight t divides the gain of parity by 1 + t.",
    (
        "Covering batches without weights contain the rarer group too often, by the factor of the "
        "paper's lemma."
    ),
    "Nothing is trained: every value is exact. Both protocols mean the same here.",
    (
        "Where we differ: two printed values are wrong, the fair risk of Example 1 and one share "
        "in "
        "Example 2."
    ),
)


_TITLES = {
    "example 1": ("Example 1: risk of parity", "share of group 1"),
    "example 2": ("Example 2: 0-1 risk", "share of group 1"),
    "proposition": ("Proposition: unfairness of the optimum", "size of the bias"),
    "theorem, shift": ("Theorem, bias that shifts", "size of the bias"),
    "theorem, shrink": ("Theorem, bias that shrinks", "size of the bias"),
    "theorem, classification": ("Theorem, cross-entropy", "size of the bias"),
    "other losses": ("Gain of parity, 60% in group 1", "size of the bias"),
    "tikhonov": ("Gain of parity, with a Tikhonov term", "its weight"),
    "batches": ("Bias of a group's share in a batch", "share of the group"),
}


def run(protocol: Protocol, effort: Effort, out: Path) -> None:
    """Write the values, their figures and their page; nothing is trained, both protocols mean
    the same.
    """
    start, name = time.perf_counter(), f"theory-{protocol.name}"
    figures = exact_values(9 if effort.quick else 49)
    seconds = time.perf_counter() - start
    write_csv(
        out / f"{name}.csv",
        [{"figure": name} | record for name, part in figures.items() for record in part],
    )
    notes = [f"All values took {seconds:.1f} s.", *circumstances(effort)]
    write_page(theory_page(figures, notes=notes), out, name)


def exact_values(count: int) -> dict[str, Records]:
    """What each figure shows, by its name: ``count`` points ``x`` with the ``value`` of several
    quantities ``what``.
    """
    figures: dict[str, Records] = {name: [] for name in _TITLES}

    def add(name: str, x: float, **values: float) -> None:
        figures[name] += [
            {"x": x, "what": what.replace("_", " "), "value": value}
            for what, value in values.items()
        ]

    for p1 in np.linspace(0.3, 0.98, count).tolist():
        first = Example1(p1=p1)
        risks = {"optimum": first.optimal_risk, "best_fair": first.fair_risk, "constant": 1 / 12}
        add("example 1", p1, **risks, printed_formula=first.printed_fair_risk)
    for p1 in np.linspace(0.02, 0.98, count).tolist():
        second = IndependentLabels(p1=p1)
        add("example 2", p1, optimum=second.optimal_risk, best_fair=second.fair_risk)
    # the bias: without any, the unpenalized optimum is fair
    for delta in np.linspace(0.0, 0.95, count).tolist():
        classifier = table_distances(
            BiasedClassification(delta=delta, m=51).optimal_table
        ).kolmogorov
        regressor = table_distances(
            BiasedRegression("shift", delta=delta, m=51).optimal_table
        ).kolmogorov
        add("proposition", delta, classification=classifier, regression=regressor)
        # True risks of the unpenalized optimum and of the best fair hypothesis, both found on the
        # biased target.
        for name, population in (
            ("theorem, shift", BiasedRegression("shift", delta=delta, sigma=0.0)),
            ("theorem, shrink", BiasedRegression("shrink", delta=delta, sigma=0.0)),
            ("theorem, classification", BiasedClassification(delta=delta)),
        ):
            add(
                name,
                delta,
                unpenalized=population.optimal_true_risk,
                fair=population.fair_true_risk,
            )
        add(
            "other losses",
            delta,
            **{name: _gain(**case, bias=delta, p1=0.6) for name, case in _LOSSES.items()},
        )
    for weight in np.linspace(0.0, 4.0, count).tolist():
        add("tikhonov", weight, gain=_gain(bias=0.5, tikhonov=weight))
    for share in np.linspace(0.02, 0.98, count).tolist():
        add(
            "batches",
            share,
            **{f"size_{size}": covering_bias(share, size) for size in (4, 8, 16, 50)},
        )
    return figures


_LOSSES: dict[str, dict[str, Any]] = {
    "squared": {"loss": "squared_error"},
    "huber": {"loss": "huber"},
    "absolute,_with_noise": {"loss": "absolute_error", "sigma": 0.3},
    "absolute,_without_noise": {"loss": "absolute_error"},
}


def _gain(**case: Any) -> float:
    """By how much the fair hypothesis, trained on a shifted target, is closer to the truth than
    the unpenalized one.
    """
    population = ShiftedTarget(**case)
    return population.optimal_true_risk - population.fair_true_risk


def theory_page(figures: dict[str, Records], *, notes: Sequence[str] = ()) -> Page:
    """Figures and table."""
    charts = [
        line_chart(
            part,
            x="x",
            y="value",
            color="what",
            title=_TITLES[name][0],
            x_title=_TITLES[name][1],
            y_title="",
        )
        for name, part in figures.items()
    ]
    return Page(
        title="The paper's theory, exactly",
        notes=[*_NOTES, *notes],
        tables={"Values": values_table(figures)},
        charts={"Exact values": side_by_side(charts)},
    )


def values_table(figures: dict[str, Records]) -> TextTable:
    """The printed and the exact values; groups of equal size."""
    first, second = Example1(p1=0.5), IndependentLabels(p1=0.5)
    mass = np.array([0.8, 0.2])  # of X1 = 0 and of X1 = 1 in Example 2, in either group
    unsure = float(mass @ np.isclose(second.probability_table[1], 0.4))
    fair = [record["value"] for record in figures["proposition"] if record["x"] == 0]
    printed: list[tuple[str, Sequence[float], Sequence[float]]] = [
        ("Example 1: least risk", [0.5 / 12], [first.optimal_risk]),
        ("Example 1: least fair risk", [first.printed_fair_risk], [first.fair_risk]),
        (
            "Example 2: positive decisions in group 0, in group 1",
            [0.8, 0.2],
            (second.optimal_table @ mass).tolist(),
        ),
        ("Example 2: share of group 1 that has label 1 with probability 0.4", [0.2], [unsure]),
        ("Proposition: unfairness of the optimum without bias", [0.0, 0.0], fair),
        (
            "Converse, Y = A: unfairness of the optimum, A no feature, A a feature",
            [0.0, 1.0],
            _target_is_group(),
        ),
        (
            (
                "Every attribute: least distance of hypotheses that are not constant, each for its "
                "worst attribute"
            ),
            [1.0],
            [_least_worst()],
        ),
        (
            "Tikhonov term of weight 1: gain of parity, relative to the gain without the term",
            [0.5],
            [_gain(bias=0.5, tikhonov=1.0) / _gain(bias=0.5)],
        ),
        (
            "Absolute error without noise, 60% in group 1: gain of parity at a bias of 0.1",
            [-0.04],
            [_gain(loss="absolute_error", bias=0.1, p1=0.6)],
        ),
        (
            "Covering batches of 4 and 8, a group of 20%: bias of its share",
            [0.357070, 0.174542],
            [covering_bias(0.2, 4), covering_bias(0.2, 8)],
        ),
    ]
    lines = []
    for what, known, exact in printed:
        texts = [", ".join(f"{value:.3g}" for value in values) for values in (known, exact)]
        lines.append([what, *texts, "yes" if np.allclose(known, exact, rtol=1e-5) else "no"])
    for name, part in figures.items():
        if name.startswith("theorem"):
            biases, agrees = _no_worse(part)
            statement = f"{name.capitalize()}: the fair risk is no larger"
            lines.append([statement, "for small biases", biases, "yes" if agrees else "no"])
    return [["statement", "printed, or known", "exact", "agrees"], *lines]


def _target_is_group() -> list[float]:
    """Kolmogorov distance of the optimum for Y = A if two atoms are independent of the group,
    and if they equal it.
    """
    distances = []
    for masses, optimum in (
        (((0.2, 0.2), (0.3, 0.3)), (0.5, 0.5)),
        (((0.5, 0.0), (0.0, 0.5)), (0.0, 1.0)),
    ):
        space = FiniteSpace(masses, optimum)
        groups = 2 * np.array(space.masses)
        distance = atomic_distances(
            optimum, groups[:, 0].tolist(), optimum, groups[:, 1].tolist()
        ).kolmogorov
        distances.append(distance)
    return distances


def _least_worst() -> float:
    """Over all hypotheses of up to four values on four atoms: how fair the fairest is to the
    worst attribute.
    """
    space = FiniteSpace([(0.1, 0.2), (0.25, 0.05), (0.1, 0.1), (0.15, 0.05)], [0.0, 1.0, 2.0, 3.0])
    values = (
        np.array(hypothesis, dtype=np.float64)
        for hypothesis in product(range(4), repeat=4)
        if len(set(hypothesis)) > 1
    )
    return min(space.worst_attribute(hypothesis)[1] for hypothesis in values)


def _no_worse(records: Records) -> tuple[str, bool]:
    """Up to which of the biases tried the fair hypothesis has at most the other's risk; whether
    for any at all.
    """
    risks: dict[float, dict[str, float]] = {}
    for record in records:
        risks.setdefault(record["x"], {})[record["what"]] = record["value"]
    worse = [bias for bias, risk in risks.items() if risk["fair"] > risk["unpenalized"] + 1e-12]
    text = f"below {min(worse):.2f}" if worse else f"up to {max(risks):.2f}, all tested biases"
    return text, not worse or min(worse) > sorted(risks)[1]


def covering_bias(share: float, size: int) -> float:
    """How much too large a group's share of a covering batch is on average: E[n / N] = share x (1 +
    bias).

    The paper's lemma, for two groups and two samples of each: what the plain mean over a batch gets
    wrong, as whoever is rare is waited for. ``size`` is the fewest samples of a batch; below 4 the
    same as 4.

    >>> round(covering_bias(0.2, 4), 4), round(covering_bias(0.2, 16), 4)
    (0.3571, 0.0317)
    """
    p, q, size = share, 1 - share, max(size, 4)

    def log_tail(x: float) -> float:
        """Sum of x^N / N over all N beyond size; -log(1 - x) less the rest would cancel where x
        is small.
        """
        if x < 0.5:
            beyond = np.arange(size + 1, size + 61)
            return float((x**beyond / beyond).sum())
        upto = np.arange(1, size + 1)
        return max(0.0, -log1p(-x) - float((x**upto / upto).sum()))

    return (
        q ** (size - 1)
        - q * p ** (size - 2)
        - 2 * p / q**2 * log_tail(q)
        + 2 * q**2 / p**3 * log_tail(p)
    )


def vc_radius(samples: int, *, confidence: float = 0.95, dimension: int = 1) -> float | None:
    """The same by the paper's bound for decisions of this VC dimension; far wider. None if n <=
    dimension.

    sqrt(E(V, n, delta / 3)) / 2 with E(V, n, delta) = (4 / n) (V (log(2 n / V) + 1) - log(delta /
    4)); the third of delta is for the accuracy, whose bound in the paper is simultaneous.
    Thresholds on a score have V = 1.

    >>> round(vc_radius(1000), 4)
    0.1187
    """
    if samples < 1 or dimension < 1:
        raise DataError(f"samples and dimension must be at least 1, got {samples} and {dimension}")
    check_confidence(confidence)
    if samples <= dimension:
        return None
    third = (1 - confidence) / 3
    return sqrt(4 / samples * (dimension * (log(2 * samples / dimension) + 1) - log(third / 4))) / 2


class GeneralizationBounds(NamedTuple):
    """Bounds for the population, simultaneous for every model of the class.

    Parameters
    ----------
    accuracy : float
        The share of right decisions is at least this.
    unfairness : float
        The distance between the two groups' decisions is at most this.

    Examples
    --------
    >>> GeneralizationBounds(accuracy=0.7, unfairness=0.3).accuracy
    0.7
    """

    accuracy: float
    unfairness: float


def generalization_bounds(
    accuracy: float,
    unfairness: float,
    *,
    samples: tuple[int, int],
    dimension: int,
    metric: str = "kolmogorov",
    confidence: float = 0.95,
) -> GeneralizationBounds | None:
    """Bounds for the population from decisions on the training rows themselves: the paper's
    theorem.

    It is valid for all models of a class at once, so also for the model that was trained on these
    rows. For rows that trained nothing, ``dkw_radius`` gives far narrower bounds.

    Parameters
    ----------
    accuracy, unfairness : float
        Values on these rows: the share of right decisions, and the distance between the groups'
        decisions (0 and 1).
    samples : tuple of int
        Number of rows of each group.
    dimension : int
        The VC dimension of the class: d + 1 for linear models of d features with an intercept.
    metric : str, default="kolmogorov"
        The distance that ``unfairness`` is.
    confidence : float, default=0.95
        The probability, over training sets, that both bounds are valid for all models of the class.

    Returns
    -------
    GeneralizationBounds or None
        None if a group has no more rows than the dimension: then there is no bound.

    Raises
    ------
    DataError
        If a number is out of its range, or the metric is not known.

    Examples
    --------
    >>> generalization_bounds(0.8, 0.1, samples=(50_000, 60_000), dimension=8)
    GeneralizationBounds(accuracy=0.77..., unfairness=0.18...)
    """
    for name, value in (("accuracy", accuracy), ("unfairness", unfairness)):
        check_number(name, value)
    row = facts(metric)
    total_radius = vc_radius(sum(samples), confidence=confidence, dimension=dimension)
    radii = [vc_radius(count, confidence=confidence, dimension=dimension) for count in samples]
    if total_radius is None or None in radii:
        return None
    power = 2 if row.squared else 1
    # The paper's alpha, by how much a utility may differ between the decisions: their distance, and
    # no two samples of decisions are further apart.
    furthest = float(row.plug_in(Pair(np.array([0.0, 1.0]), (1,), (1,)))) ** (1 / power)
    root = max(0.0, unfairness) ** (1 / power) + furthest * sum(
        radius for radius in radii if radius is not None
    )
    return GeneralizationBounds(max(0.0, accuracy - total_radius), min(root, furthest) ** power)
