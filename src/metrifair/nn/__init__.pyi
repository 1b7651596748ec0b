from .distributed import global_mean
from .penalty import UnfairnessPenalty
from .samplers import CoveringBatch, StratifiedBatchSampler, covering

__all__ = [
    "CoveringBatch",
    "StratifiedBatchSampler",
    "UnfairnessPenalty",
    "covering",
    "global_mean",
]
