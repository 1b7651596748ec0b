from .distributed import global_mean
from .penalty import UnfairnessPenalty
from .samplers import CoveringBatch, ProbabilityBatchSampler, StratifiedBatchSampler, covering

__all__ = [
    "CoveringBatch",
    "ProbabilityBatchSampler",
    "StratifiedBatchSampler",
    "UnfairnessPenalty",
    "covering",
    "global_mean",
]
