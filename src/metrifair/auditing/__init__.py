"""Measure, explain and certify the unfairness of the scores of any model.

request (the options) and sources (rows in memory, or rows of a file, table or state, counted where
they are) -> measure (figures of the counts: distances, intervals, tests, rates) -> findings and
notes -> audit_record (all of them; ``audit_source`` is the one audit) -> changes (differences,
series) and release (evidence). Out of core, scores are counted in bins, and distances come with
brackets.
"""
