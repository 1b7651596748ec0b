"""The paper's examples, proposition and theorem as figures: exact values of synthetic populations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.figures import line_chart, side_by_side, write_report
from experiments.jobs import Records
from experiments.pagenotes import circumstances
from experiments.rows import write_records
from experiments.settings import Effort, Protocol
from experiments.tables import Table
from metrifair.datasets.synthetic import BiasedClassification, BiasedRegression, HiddenExperience, IndependentLabels

_NOTES = (
    "Example 1: parity costs p0 p1 / 12. The printed formula exceeds even the risk 1/12 of a constant.",
    "Example 2: labels independent of the group, and still the optimum is unfair (Kolmogorov distance 0.6).",
    "Proposition: where the target depends on the group through the features only (bias 0), the optimum is fair.",
    "Theorem: trained on a biased target, judged by the true one, the fair hypothesis wins while the bias is small.",
    "It loses where the bias turns the order of a group round (shrink, beyond 1/2).",
    "Nothing is trained: every value is exact. Both protocols mean the same here.",
    "Where we differ: two printed values are wrong, the fair risk of Example 1 and one share in Example 2.",
)


def run(protocol: Protocol, effort: Effort, out: Path) -> None:
    """Write the values, their figures and their page; nothing is trained, both protocols mean the same."""
    count, start = 9 if effort.quick else 49, time.perf_counter()
    figures = {
        "example 1": example_1(count),
        "example 2": example_2(count),
        "proposition": proposition(count),
        "theorem, shift": theorem(count, "shift"),
        "theorem, shrink": theorem(count, "shrink"),
        "theorem, classification": theorem_classification(count),
    }
    records = [{"figure": name} | record for name, part in figures.items() for record in part]
    write_records(out / f"theory-{protocol.name}.csv", records)
    titles = {
        "example 1": ("Example 1: risk of parity", "share of group 1"),
        "example 2": ("Example 2: 0-1 risk", "share of group 1"),
        "proposition": ("Proposition: unfairness of the optimum", "size of the bias"),
        "theorem, shift": ("Theorem, bias that shifts", "size of the bias"),
        "theorem, shrink": ("Theorem, bias that shrinks", "size of the bias"),
        "theorem, classification": ("Theorem, cross-entropy", "size of the bias"),
    }
    charts = [
        line_chart(part, x="x", y="value", colour="what", title=titles[name][0], x_title=titles[name][1], y_title="")
        for name, part in figures.items()
    ]
    seconds = time.perf_counter() - start
    write_report(
        out,
        f"theory-{protocol.name}",
        title="The paper's theory, exactly",
        notes=[*_NOTES, f"All values took {seconds:.1f} s.", *circumstances(effort)],
        tables={"Values": values_table(figures)},
        charts={"Exact values": side_by_side(charts)},
    )


def values_table(figures: dict[str, Records]) -> Table:
    """What the paper prints, and what is so; groups of equal size."""
    first, second = HiddenExperience(p1=0.5), IndependentLabels(p1=0.5)
    mass = np.array([0.8, 0.2])  # of X1 = 0 and of X1 = 1 in Example 2, in either group
    unsure = float(mass @ np.isclose(second.probability_table[1], 0.4))
    fair = [record["value"] for record in figures["proposition"] if record["x"] == 0]
    printed: list[tuple[str, Sequence[float], Sequence[float]]] = [
        ("Example 1: least risk", [0.5 / 12], [first.optimal_risk]),
        ("Example 1: least fair risk", [first.printed_fair_risk], [first.fair_risk]),
        ("Example 2: positive decisions in group 0, in group 1", [0.8, 0.2], (second.optimal_table @ mass).tolist()),
        ("Example 2: share of group 1 that has label 1 with probability 0.4", [0.2], [unsure]),
        ("Proposition: unfairness of the optimum without bias", [0.0, 0.0], fair),
    ]
    lines = [[what, _text(known), _text(exact), _agrees(np.allclose(known, exact))] for what, known, exact in printed]
    for name, part in figures.items():
        if name.startswith("theorem"):
            found, holds = _no_worse(part)
            lines.append([f"{name.capitalize()}: fair is no worse", "for small biases", found, _agrees(holds)])
    return [["statement", "printed", "exact", "agrees"], *lines]


def _text(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def _agrees(holds: bool) -> str:
    return "yes" if holds else "no"


def _no_worse(records: Records) -> tuple[str, bool]:
    """Up to which of the biases tried the fair hypothesis has at most the other's risk; whether for any at all."""
    risks: dict[float, dict[str, float]] = {}
    for record in records:
        risks.setdefault(record["x"], {})[record["what"]] = record["value"]
    worse = [bias for bias, risk in risks.items() if risk["fair"] > risk["unpenalised"] + 1e-12]
    found = f"below {min(worse):.2f}" if worse else f"up to {max(risks):.2f}, all that were tried"
    return found, not worse or min(worse) > sorted(risks)[1]


def _lines(x: float, **values: float) -> Records:
    return [{"x": x, "what": what.replace("_", " "), "value": value} for what, value in values.items()]


def example_1(count: int) -> Records:
    """Risks against the share of group 1: the optimum, the best fair hypothesis, the printed formula."""
    found: Records = []
    for p1 in np.linspace(0.3, 0.98, count).tolist():
        one = HiddenExperience(p1=p1)
        found += _lines(p1, optimum=one.optimal_risk, best_fair=one.fair_risk, constant=1 / 12)
        found += _lines(p1, printed_formula=one.printed_fair_risk)
    return found


def example_2(count: int) -> Records:
    """0-1 risks against the share of group 1."""
    found: Records = []
    for p1 in np.linspace(0.02, 0.98, count).tolist():
        one = IndependentLabels(p1=p1)
        found += _lines(p1, optimum=one.optimal_risk, best_fair=one.fair_risk)
    return found


def proposition(count: int) -> Records:
    """Kolmogorov distance of the unpenalised optimum against the bias: 0 without it."""
    found: Records = []
    for delta in np.linspace(0.0, 0.95, count).tolist():
        classifier = BiasedClassification(delta=delta, m=51)
        regressor = BiasedRegression("shift", delta=delta, m=51)
        found += _lines(
            delta,
            classification=classifier.optimal_distances.kolmogorov,
            regression=regressor.optimal_distances.kolmogorov,
        )
    return found


def theorem(count: int, kind: Any) -> Records:
    """True risks of the unpenalised optimum and of the best fair hypothesis, both found on the biased target."""
    found: Records = []
    for delta in np.linspace(0.0, 0.95, count).tolist():
        one = BiasedRegression(kind, delta=delta, sigma=0.0)
        found += _lines(delta, unpenalised=one.optimal_true_risk, fair=one.fair_true_risk)
    return found


def theorem_classification(count: int) -> Records:
    """The same for cross-entropy."""
    found: Records = []
    for delta in np.linspace(0.0, 0.95, count).tolist():
        one = BiasedClassification(delta=delta)
        found += _lines(delta, unpenalised=one.optimal_true_risk, fair=one.fair_true_risk)
    return found
