"""The paper's tables as data: area (mean and standard error over ten seeds) and seconds of one
fit on an i7-10700.
"""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    """One entry of a table."""

    area: float
    error: float
    seconds: float


METHODS = {
    "mfl-nn": "MFL NN",
    "mfl-linear": "MFL linear",
    "mfl-nn-decay": "MFL NN, rate decaying",
    "mfl-linear-decay": "MFL linear, rate decaying",
    "berk-individual": "Berk individual",
    "berk-group": "Berk group",
    "fair-kde": "Cho (fair KDE)",
    "sinkhorn": "Oneto (Sinkhorn)",
    "zafar": "Zafar",
    "label-bias": "Jiang (label bias)",
    "fairbatch": "FairBatch",
    "massaging": "Massaging",
    "reweighing": "Reweighing",
    "xian": "Xian",
}
"""Names of the methods in tables and figures."""

LABELS_ONLY = ("xian",)
"""Methods that return labels, and no scores that could be compared."""

_REGRESSION = ("berk-individual", "berk-group", "mfl-linear", "mfl-nn")
_CLASSIFICATION = ("fair-kde", "sinkhorn", "mfl-nn", "zafar", "mfl-linear")
# fmt: off
_TABLES: dict[str, dict[str, tuple[tuple[float, float, float] | None, ...]]] = {
    "regression": {
        "student-math": ((0.531, 0.042, 1.48), (0.430, 0.055, 0.21), (0.624, 0.029, 4.07), (0.634, 0.034, 4.69)),
        "student-portuguese": ((0.679, 0.013, 4.67), (0.642, 0.029, 1.10), (0.733, 0.012, 6.12), (0.704, 0.016, 7.06)),
        "communities-regression": (
            (0.357, 0.008, 710.23), (0.503, 0.009, 168.49), (0.517, 0.007, 11.39), (0.541, 0.005, 16.54),
        ),
    },
    "classification": {
        "drug": (
            (0.786, 0.008, 10.54), (0.825, 0.005, 416.18), (0.823, 0.005, 6.66), (0.668, 0.013, 0.35),
            (0.814, 0.004, 5.89),
        ),
        "communities": (
            (0.817, 0.004, 13.52), (0.829, 0.004, 217.27), (0.829, 0.003, 8.39), (0.787, 0.004, 81.05),
            (0.812, 0.003, 5.93),
        ),
        "compas": (
            (0.667, 0.004, 17.33), (0.666, 0.003, 2299.37), (0.661, 0.003, 9.99), (0.625, 0.006, 0.44),
            (0.605, 0.004, 9.87),
        ),
        "adult": (
            (0.769, 0.002, 141.35), None, (0.842, 0.000, 149.61), (0.799, 0.000, 29.45), (0.820, 0.001, 159.80),
        ),
    },
    "equal-opportunity": {
        "drug": (
            (0.789, 0.013, 12.29), (0.823, 0.005, 57.78), (0.815, 0.005, 1.97), (0.653, 0.021, 0.10),
            (0.795, 0.004, 1.63),
        ),
        "communities": (
            (0.821, 0.006, 16.38), (0.829, 0.01, 152.36), (0.830, 0.008, 2.41), (0.749, 0.006, 26.12),
            (0.812, 0.004, 2.09),
        ),
        "compas": (
            (0.656, 0.004, 18.71), (0.666, 0.004, 1703.84), (0.660, 0.004, 3.14), (0.616, 0.008, 0.12),
            (0.599, 0.004, 2.89),
        ),
        "adult": (
            (0.765, 0.004, 154.44), None, (0.841, 0.001, 29.93), (0.740, 0.000, 7.94), (0.788, 0.004, 26.60),
        ),
    },
}
# fmt: on


def printed(experiment: str, data: str, method: str) -> Printed | None:
    """What the paper prints there; None where it prints nothing.

    >>> printed("classification", "adult", "mfl-nn")
    Printed(area=0.842, error=0.0, seconds=149.61)
    """
    methods = _REGRESSION if experiment == "regression" else _CLASSIFICATION
    line = _TABLES.get(experiment, {}).get(data)
    entry = line[methods.index(method)] if line and method in methods else None
    return None if entry is None else Printed(*entry)
