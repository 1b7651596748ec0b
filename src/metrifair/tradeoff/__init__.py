"""The accuracy-fairness trade-off.

split: rows kept apart; sweep: train all; ledger: outcomes, kept on disk; evaluate: judge, and what chance would show;
source: judge on every part, while rows are at hand; selection: which model suits; figures: points, Pareto line, area,
table and page; result: a frontier, and the choice; frontier: all of it in one call. judgement: of one model.
"""
