"""Distances between two samples of scores, and the dependence of scores on a numeric attribute.

>>> from metrifair.metrics import energy_distance
>>> energy_distance([0.0, 1.0], [1.0, 3.0])
1.5
"""

from metrifair.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
