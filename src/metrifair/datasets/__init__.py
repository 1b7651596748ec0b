"""Where samples come from: the public data sets of the paper, and the mortgage applications of the demo.

>>> names()
('adult', 'communities', 'compas', 'drug', 'mortgage', 'student-math', 'student-portuguese')
"""

from metrifair.datasets.catalogue import describe, load, names
from metrifair.datasets.record import Dataset

__all__ = ["Dataset", "describe", "load", "names"]
