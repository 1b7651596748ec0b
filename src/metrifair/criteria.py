"""Fairness criteria: which scores are compared, and between whom.

Every ``criterion`` parameter also accepts the name.

>>> from metrifair import criteria
>>> criteria.criterion_named("demographic_parity") is criteria.STATISTICAL_PARITY
True
"""

from metrifair.problem.criteria import (
    CONDITIONAL_STATISTICAL_PARITY,
    CRITERIA,
    EQUAL_OPPORTUNITY,
    EQUALIZED_ODDS,
    PREDICTIVE_EQUALITY,
    RISK_PARITY,
    STATISTICAL_PARITY,
    Criterion,
    criterion_named,
)
from metrifair.problem.criterion_names import OTHER_NAMES

__all__ = [
    "CONDITIONAL_STATISTICAL_PARITY",
    "CRITERIA",
    "EQUALIZED_ODDS",
    "EQUAL_OPPORTUNITY",
    "OTHER_NAMES",
    "PREDICTIVE_EQUALITY",
    "RISK_PARITY",
    "STATISTICAL_PARITY",
    "Criterion",
    "criterion_named",
]


def __dir__() -> list[str]:
    return __all__
