"""How far apart two samples of scores are.

cdf: distances on the line; quadratic, kernel, sliced: energy distance and MMD; witness: the utility that shows a
distance; catalog: all of them by name; between: over a list of comparisons.
"""
