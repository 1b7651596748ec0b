"""Samples -> batches: covering (streams), stratified (data sets: by cell, or whole)."""

from metrifair.batches.samples import Coverage, covering, cut, whole

__all__ = ["Coverage", "covering", "cut", "whole"]


def __dir__() -> list[str]:
    return __all__
