"""Synonyms of criteria.

No NumPy here: ``metrifair --help`` needs these words.
"""

OTHER_NAMES = {
    "demographic_parity": "statistical_parity",
    "independence": "statistical_parity",
    "separation": "equalized_odds",
    "true_positive_rate_parity": "equal_opportunity",
    "false_positive_rate_parity": "predictive_equality",
}
"""Synonyms of the criteria in other libraries and texts; accepted wherever a criterion is named."""
