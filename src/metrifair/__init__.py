"""Train and audit predictors whose scores are distributed alike across demographic groups."""

from metrifair.support.lazy import attach

from metrifair import errors as errors  # a module that users catch errors from, and light

__version__ = "0.2.0.dev0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)
