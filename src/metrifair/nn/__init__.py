"""Fairness in a PyTorch loop of one's own: a penalty, and batches that hold every group."""

from metrifair.nn.penalty import UnfairnessPenalty
from metrifair.nn.samplers import CoveringBatch, StratifiedBatchSampler, covering

__all__ = ["CoveringBatch", "StratifiedBatchSampler", "UnfairnessPenalty", "covering"]


def __dir__() -> list[str]:
    return __all__
