"""Measure, explain and certify the unfairness of the scores of any model.

request (the options) and source (rows in memory, or rows of a file, table or state, counted where they are) -> sample
(units and counts of their scores, which groups are compared, distances) -> decisions (who is selected, rates by group)
and resampling (intervals and p-values) -> record (all findings, and notes). ``source.audit_source`` is the one audit.
Out of core, scores are counted in bins, bins that matter are refined, and distances come with brackets.
"""
