"""The accuracy-fairness trade-off, as records of values.

split: folds and test rows; portfolio: the families of "auto"; sweep: train a family, and the
options of a search; out_of_fold: what fold models predict; ledger: finished predictions on disk;
configurations: predictions -> what a choice compares; resamples: figures on resampled rows; choice:
the rule; result: the delivered model; evaluate: figures on held-out rows; points: the records;
frontier: all of it in one call; frontier_file: its file; search_facts and possible_choices: what
evidence of a search states, and the choices that its bounds allow.
"""
