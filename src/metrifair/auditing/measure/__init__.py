"""The figures of an audit: distances, intervals, tests and rates, from counts of scores."""
