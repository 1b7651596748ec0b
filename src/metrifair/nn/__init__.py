"""Fairness in a PyTorch loop of one's own: a penalty, and batches that hold every group."""

from metrifair.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
