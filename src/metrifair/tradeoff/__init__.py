"""The accuracy-fairness trade-off.

split: rows kept apart; sweep: train all, with a ledger; evaluate: judge, and what chance would show; result:
choose and show; frontier_file: keep; frontier: all of it in one call.
"""
