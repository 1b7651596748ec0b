"""The accuracy-fairness trade-off.

holdout: rows kept apart; sweep: train all, with a ledger; evaluation: judge; choosing: choose, show, save;
frontier: all of it in one call.
"""
