"""Measure, explain and certify the unfairness of scores, wherever they come from.

request (what is asked) and sample (rows in memory, or cells of a file, and who is compared with whom) -> distribution
(the one container: scores counted at ascending values) -> resampling (how sure one can be) and decisions (rates at a
threshold) -> record (all findings, and notes) -> audit, audit_file (the public functions). Rows too many to hold are
counted where they are (counted, out_of_core): only how the container is filled, and that distances come with brackets,
differs then.
"""
