"""Samples -> batches: covering (streams), stratified (data sets), epochs (shuffled passes, and those of a stack)."""

from metrifair.batches.covering import Coverage, covering, cut, resampled
from metrifair.batches.epochs import shuffled, whole
from metrifair.batches.stratified import stratified

__all__ = ["Coverage", "covering", "cut", "resampled", "shuffled", "stratified", "whole"]
