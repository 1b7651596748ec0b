"""How far apart two samples of scores are.

distances: the functions that users call; pair: two samples, and a metric over comparisons; order: ranks and ties; line:
distances from distribution functions; quadratic, kernels: energy distance and MMD; witness: the utility that
shows a distance; dependence, covariance, dominance: attributes that are numbers; registry: every metric by name, with all its facts in one row.
"""
