"""Methods of other authors, as scikit-learn estimators named after them or after what they do.

>>> from metrifair.baselines import ReweighingClassifier
"""

from metrifair.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
