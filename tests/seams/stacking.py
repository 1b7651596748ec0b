"""Internal names of `metrifair.stacking` that tests use."""

from metrifair.stacking import has_lightgbm
