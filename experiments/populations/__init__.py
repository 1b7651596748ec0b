"""The paper's populations, whose optima, risks and distances are known exactly.

synthetic: offset regression, and what all populations share; the others hold what the paper's
theory and tests use.
"""

from experiments.populations.biased import (
    BiasedClassification,
    BiasedRegression,
    ShiftedTarget,
    fair_by_sorting,
    table_distances,
)
from experiments.populations.closed_forms import (
    Distances,
    Normal,
    atomic_distances,
    normal_distances,
    normal_mmd_squared,
    uniform_distances,
)
from experiments.populations.examples import Example1, HiddenExperience, IndependentLabels
from experiments.populations.finite_space import FiniteSpace
from experiments.populations.offset import ExactOffset, SlopeRegression
from experiments.populations.online import (
    OnlineRegression,
    reference_slopes,
    regime_estimate,
    regime_tradeoff,
)
from experiments.populations.tradeoff import unrestricted_tradeoff

__all__ = [
    "BiasedClassification",
    "BiasedRegression",
    "Distances",
    "ExactOffset",
    "Example1",
    "FiniteSpace",
    "HiddenExperience",
    "IndependentLabels",
    "Normal",
    "OnlineRegression",
    "ShiftedTarget",
    "SlopeRegression",
    "atomic_distances",
    "fair_by_sorting",
    "normal_distances",
    "normal_mmd_squared",
    "reference_slopes",
    "regime_estimate",
    "regime_tradeoff",
    "table_distances",
    "uniform_distances",
    "unrestricted_tradeoff",
]
