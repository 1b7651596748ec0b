"""The paper's examples, proposition and theorem as figures: exact values of synthetic populations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from metrifair.datasets.synthetic import BiasedClassification, BiasedRegression, HiddenExperience, IndependentLabels
from metrifair.experiments.figures import line_chart, side_by_side, write_report
from metrifair.experiments.rows import write_records
from metrifair.experiments.settings import Effort, Protocol

Records = list[dict[str, Any]]

_NOTES = (
    "Example 1: parity costs p0 p1 / 12. The printed formula exceeds even the risk 1/12 of a constant.",
    "Example 2: labels independent of the group, and still the optimum is unfair (Kolmogorov distance 0.6).",
    "Proposition: where the target depends on the group through the features only (bias 0), the optimum is fair.",
    "Theorem: trained on a biased target, judged by the true one, the fair hypothesis wins while the bias is small.",
    "It loses where the bias turns the order of a group round (shrink, beyond 1/2).",
)


def run(protocol: Protocol, effort: Effort, out: Path) -> None:
    """Write the values, their figures and their page; nothing is trained, both protocols mean the same."""
    count = 9 if effort.quick else 49
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
    write_report(
        out,
        f"theory-{protocol.name}",
        title="The paper's theory, exactly",
        notes=_NOTES,
        tables={},
        charts={"Exact values": side_by_side(charts)},
    )


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
