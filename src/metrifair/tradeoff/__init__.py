"""The accuracy-fairness trade-off, as records of values.

split: rows for training, validation and test; portfolio: the families of "auto"; sweep: train a family, and the options
of a search; evaluate: figures on held-out rows; ledger: outcomes on disk; points and result: the records, and which
model suits; frontier: all of it in one call; frontier_file: its file.
"""
