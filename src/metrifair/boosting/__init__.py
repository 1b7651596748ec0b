"""Gradient boosting with the same penalty: LightGBM in ``lgbm``, XGBoost in ``xgb``; neither
imports the other.
"""
