"""Synthetic populations whose answers are known: each samples rows and states optima, risks and distances exactly.

Every population is a value (a frozen dataclass) with ``sample(n, seed)`` giving ``(X, y, a)`` and
``optimal_prediction(X)``; where they are known in closed form, also with ``fair_prediction(X)``, ``optimal_risk``,
``fair_risk`` and ``optimal_distances``.

========================  =============================================================================================
OnlineRegression          the stream of the paper's section on online regression
HiddenExperience          Example 1: enforcing statistical parity can reduce accuracy and fairness
IndependentLabels         Example 2: labels independent of the group do not make the optimum fair
BiasedRegression          theorem "SP improves accuracy", least squares: where it holds, and where the bias is too large
BiasedClassification      the same theorem, cross entropy
OffsetRegression          normal scores with the whole trade-off curve
========================  =============================================================================================
"""

from metrifair.datasets.synthetic.biased import BiasedClassification, BiasedRegression, fair_by_sorting
from metrifair.datasets.synthetic.closed_forms import (
    Distances,
    Normal,
    atomic_distances,
    normal_distances,
    normal_mmd_squared,
    uniform_distances,
)
from metrifair.datasets.synthetic.examples import HiddenExperience, IndependentLabels
from metrifair.datasets.synthetic.offset import OffsetRegression
from metrifair.datasets.synthetic.online import Chunk, OnlineRegression, RegimeEstimate, reference_slopes
from metrifair.datasets.synthetic.population import Sample, TradeOffPoint, unrestricted_tradeoff

__all__ = [
    "BiasedClassification",
    "BiasedRegression",
    "Chunk",
    "Distances",
    "HiddenExperience",
    "IndependentLabels",
    "Normal",
    "OffsetRegression",
    "OnlineRegression",
    "RegimeEstimate",
    "Sample",
    "TradeOffPoint",
    "atomic_distances",
    "fair_by_sorting",
    "normal_distances",
    "normal_mmd_squared",
    "reference_slopes",
    "uniform_distances",
    "unrestricted_tradeoff",
]
