"""Samples -> batches: covering (streams), stratified (data sets), shuffled (the plain way)."""

from metrifair.batches.covering import Coverage, covering, cut, overshoot_weights, resampled
from metrifair.batches.shuffled import shuffled, whole
from metrifair.batches.stratified import Layout, layout, odds_of, rows_by_cell, stratified, stratified_pass

__all__ = [
    "Coverage",
    "Layout",
    "covering",
    "cut",
    "layout",
    "odds_of",
    "overshoot_weights",
    "resampled",
    "rows_by_cell",
    "shuffled",
    "stratified",
    "stratified_pass",
    "whole",
]
