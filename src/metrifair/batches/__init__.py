"""Samples -> batches: covering (streams), stratified (data sets), shuffled (the plain way)."""

from metrifair.batches.covering import Coverage, covering, cut, overshoot_weights, resampled
from metrifair.batches.epochs import shuffled, whole
from metrifair.batches.stratified import Layout, layout, odds_of, small_groups_named, stratified, stratified_pass

__all__ = [
    "Coverage",
    "Layout",
    "covering",
    "cut",
    "layout",
    "odds_of",
    "overshoot_weights",
    "resampled",
    "shuffled",
    "small_groups_named",
    "stratified",
    "stratified_pass",
    "whole",
]
