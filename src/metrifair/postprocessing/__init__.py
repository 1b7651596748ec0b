"""Post-processing of any fitted model, and the base class to write your own.

>>> from metrifair.postprocessing import ScorePostprocessor
"""

from metrifair.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
