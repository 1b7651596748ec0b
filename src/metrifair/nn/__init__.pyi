from .distributed import global_mean
from .penalty import UnfairnessPenalty
from .samplers import StratifiedBatchSampler
from .streams import CoveringBatch, covering

__all__ = ["CoveringBatch", "StratifiedBatchSampler", "UnfairnessPenalty", "covering", "global_mean"]
