"""Methods of other authors, as scikit-learn estimators named after them or after what they do.

>>> from metrifair.baselines import ReweighingClassifier
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
