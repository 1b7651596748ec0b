"""Train and audit predictors whose scores are distributed alike across demographic groups."""

import lazy_loader

from metrifair import errors as errors  # both are light: what they need is imported when it is used
from metrifair import metrics as metrics

__version__ = "0.2.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
