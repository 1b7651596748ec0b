"""Measure, explain and certify the unfairness of scores, wherever they come from.

inputs (what was given, checked) -> comparing (who is compared with whom, as atoms) -> findings_of (numbers and words of
one comparison: atoms, intervals, explaining) and decisions (rates at a threshold) -> remarks (notes and summary) ->
audit (the result, and its ways out). Atoms are all that a comparison needs of its samples: the distinct scores in
ascending order with the weight of either side, so that scores in memory and scores counted from a file share one path.
"""
