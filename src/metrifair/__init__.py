"""Train and audit predictors whose scores are distributed alike across demographic groups."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
