"""Samples -> batches: covering (streams), stratified (data sets: by cell, shuffled, whole)."""

from metrifair.batches.covering import Coverage, covering, cut
from metrifair.batches.stratified import shuffled, stratified, whole

__all__ = [
    "Coverage",
    "covering",
    "cut",
    "shuffled",
    "stratified",
    "whole",
]
