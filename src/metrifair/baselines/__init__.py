"""Methods of other authors, as scikit-learn estimators named after the authors or the method.

>>> from metrifair.baselines import ReweighingClassifier
"""

from metrifair.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
