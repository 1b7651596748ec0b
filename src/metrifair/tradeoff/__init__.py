"""The accuracy-fairness trade-off.

holdout: rows kept apart; sweep: train all, with a ledger; evaluation: judge; frontier: choose, show, save.
"""
