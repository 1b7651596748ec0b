"""How far apart two samples of scores are, and how much scores depend on an attribute that is a number.

distances: the functions that users call; pair: two samples, and a metric over comparisons; order: ranks and ties; line:
distances from distribution functions; quadratic, kernels: energy distance and MMD; dependence (which users call),
covariance, dominance: attributes that are numbers; witness: the utility that shows a distance; registry: every metric
by name, with all its facts in one row.
"""
