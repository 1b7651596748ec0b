"""Methods of other authors, and post-processors of ours, as scikit-learn estimators with ``sensitive_features``."""
