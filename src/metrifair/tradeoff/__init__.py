"""The accuracy-fairness trade-off, as records of values.

search: the options of a search; split: rows for training, validation and test; sweep: train all families; folds:
cross-validation; evaluate: figures on held-out rows; ledger: outcomes on disk; selection: which model suits; points and
result: the records; frontier: all of it in one call; frontier_file: its file.
"""
