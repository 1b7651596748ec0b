"""The penalty and the batches for anyone's own PyTorch loop."""

from __future__ import annotations

from metrifair.nn.batching import CoveringBatch, StratifiedBatchSampler, covering
from metrifair.nn.penalty import UnfairnessPenalty

__all__ = ["CoveringBatch", "StratifiedBatchSampler", "UnfairnessPenalty", "covering"]


def __dir__() -> list[str]:
    return __all__
