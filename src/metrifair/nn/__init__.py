"""Fairness in your own PyTorch loop: a penalty, and batches that contain every group."""

from metrifair.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
