"""Methods of other authors, as estimators."""
