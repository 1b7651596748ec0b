"""Fairness in a PyTorch loop of one's own: a penalty, and batches that hold every group."""

from metrifair.nn.distributed import global_mean
from metrifair.nn.penalty import UnfairnessPenalty
from metrifair.nn.samplers import StratifiedBatchSampler
from metrifair.nn.streams import CoveringBatch, covering

__all__ = ["CoveringBatch", "StratifiedBatchSampler", "UnfairnessPenalty", "covering", "global_mean"]


def __dir__() -> list[str]:
    return __all__
