"""Train and audit predictors whose scores are distributed alike across demographic groups."""

import lazy_loader

__version__ = "0.2.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
