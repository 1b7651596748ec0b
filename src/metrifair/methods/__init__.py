"""Methods of other authors, one file each, as scikit-learn estimators with ``sensitive_features``."""
