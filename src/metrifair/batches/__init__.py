"""Samples -> batches: covering (streams), stratified (data sets: by cell, shuffled, whole)."""

from metrifair.batches.covering import Coverage, covering, covering_bias, covering_law, cut, resampled
from metrifair.batches.stratified import shuffled, stratified, whole

__all__ = [
    "Coverage",
    "covering",
    "covering_bias",
    "covering_law",
    "cut",
    "resampled",
    "shuffled",
    "stratified",
    "whole",
]
