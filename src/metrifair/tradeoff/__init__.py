"""The accuracy-fairness trade-off.

split: rows kept apart; sweep: train all; ledger: outcomes, kept on disk; evaluate: judge, and what chance would show;
result: choose and show; frontier: all of it in one call.
"""
