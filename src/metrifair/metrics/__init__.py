"""Distances between two samples of scores, and the dependence of scores on a numeric attribute.

The names that most people need are at the top of the package (``metrifair.energy_distance``). Here
are the others: the distances of vectors, the median rule for a kernel's bandwidth, and the type of
a witness.

>>> from metrifair.metrics import sliced_energy_distance
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
