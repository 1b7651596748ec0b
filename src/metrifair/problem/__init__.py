"""What users hand over -> one checked record -> cells and comparisons: the only place that interprets input."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["criteria"])  # metrifair.criteria
