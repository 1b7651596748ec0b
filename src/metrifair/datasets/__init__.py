"""Where samples come from: the public data sets of the paper, and the mortgage applications of the
demo.

>>> names()
('adult', 'communities', 'compas', 'drug', 'mortgage', 'student-math', 'student-portuguese')
"""

from metrifair.datasets.dataset import Dataset
from metrifair.datasets.registry import describe, load, names

__all__ = ["Dataset", "describe", "load", "names"]


def __dir__() -> list[str]:
    return __all__
