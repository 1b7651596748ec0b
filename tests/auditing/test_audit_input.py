"""Input that an audit refuses: one typed error that names the argument, what came, and what to
do.
"""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest

from metrifair import DataError, audit
from tests.expected_errors import Refusals
from tests.flat_options import flat_audit

GOOD: dict[str, Any] = {"y_pred": [0.1, 0.4, 0.6, 0.9], "sensitive_features": list("aabb")}

REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"y_pred": [0.1, np.nan, 0.2, 0.3]},
        "y_pred contains NaN or infinite values; remove or replace them",
    ),
    (
        {"y_pred": [0.1, np.inf, 0.2, 0.3]},
        "y_pred contains NaN or infinite values; remove or replace them",
    ),
    ({"y_pred": []}, "arguments must have the same length, got y_pred 0, sensitive_features 4"),
    ({"y_pred": list("abcd")}, "y_pred must contain numbers"),
    (
        {"y_pred": [-1e308, 1e308, 0.0, 1.5e308]},
        "y_pred spans more than floating-point numbers can",
    ),
    (
        {"y_pred": [0.1, 0.2]},
        "arguments must have the same length, got y_pred 2, sensitive_features 4",
    ),
    (
        {"sensitive_features": list("aaaa")},
        "sensitive_features must contain at least two groups, got 1",
    ),
    (
        {"sensitive_features": [None] * 4},
        "sensitive_features must contain at least two groups, got 0",
    ),
    ({"sensitive_features": [1, "a", 2, "b"]}, "mixes values that cannot be ordered"),
    ({"y_true": [0, 1, None, 1]}, "y_true has no value in 1 of 4 rows; leave those samples out"),
    ({"y_true": np.zeros((4, 2))}, "y_true must be one column, got 2"),
    ({"y_true": [0, 1]}, "arguments must have the same length"),
    (
        {"y_true": [0.5, 1.5, np.inf, 2.5]},
        "y_true contains infinite values; leave those samples out",
    ),
    (
        {"y_true": [date(2020, 1, day) for day in (1, 2, 3, 4)]},
        "got date values such as 2020-01-01; turn them into",
    ),
    (
        {"y_pred": np.full((4, 2), 0.5), "y_true": [0, 1, 2, 0]},
        "y_pred must have one column for each label, got 2 columns for the labels [0, 1, 2]",
    ),
    (
        {"y_pred": np.full((4, 2), 0.5), "y_true": ["yes"] * 4, "pos_label": "yes"},
        "pos_label cannot be matched to a column, as the only outcome is 'yes', got 'yes'",
    ),
    ({"sample_weight": [1, 1, -1, 1]}, "sample_weight must be finite and not negative"),
    ({"sample_weight": [1, 1, 1]}, "arguments must have the same length"),
    (
        {"pos_label": 7, "y_true": [0, 1, 0, 1]},
        "pos_label must be one of the classes [0, 1], got 7",
    ),
    ({"criteria": "fairness"}, "criterion must be one of 'statistical_parity'"),
    ({"criteria": []}, "criteria must name at least one criterion"),
    ({"criteria": "equal_opportunity"}, "equal_opportunity needs the true labels; pass y_true=..."),
    ({"criteria": "conditional_statistical_parity"}, "needs control_features"),
    (
        {"criteria": "risk_parity", "y_true": [0, 1, 0, 1]},
        "risk_parity compares losses; pass options=AuditOptions(loss=...)",
    ),
    ({"metrics": "kolmogorow"}, "did you mean 'kolmogorov'?"),
    ({"metrics": []}, "metrics must name at least one metric, got none"),
    ({"metrics": [abs]}, "metrics must be a name, or a sequence of names"),
    ({"threshold": np.nan}, "threshold must be a finite number, 'auto', 'median' or None, got nan"),
    (
        {"threshold": 10**400},
        "threshold must be a finite number, 'auto', 'median' or None, got 1000",
    ),
    ({"threshold": 1j}, "threshold must be a finite number, 'auto', 'median' or None, got 1j"),
    (
        {"threshold": "half"},
        "threshold must be a finite number, 'auto', 'median' or None, got 'half'",
    ),
    ({"confidence": 95}, "confidence must lie between 0 and 1, got 95; 95 percent is 0.95"),
    ({"contrast": "all"}, "contrast must be one of 'pairs', 'rest', got 'all'"),
    ({"intersectional": "yes"}, "intersectional must be True or False, got 'yes'"),
    ({"resamples": 5}, "resamples must be 0 or an integer from 20 upwards, got 5"),
    ({"permutations": 1.5}, "permutations must be 0 or an integer from 1 upwards, got 1.5"),
    (
        {"random_state": "one"},
        "random_state must be None, an integer or a NumPy generator, got 'one'",
    ),
    (
        {"score_range": (0.2, 1.0)},
        "score_range must contain all scores, got (0.2, 1.0) for scores from 0.1 to 0.9",
    ),
    ({"score_range": (1.0, 0.0)}, "score_range must be two finite numbers, the lower one first"),
    ({"score_range": (1.0, 1.0)}, "score_range must be two finite numbers, the lower one first"),
    ({"score_range": 1.0}, "score_range must be two numbers, lowest and highest, got 1.0"),
]


@pytest.mark.parametrize(
    ("changed", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED]
)
def test_bad_input_is_refused_with_a_clear_message(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as refusal:
        flat_audit(**{**GOOD, **changed})
    assert message in str(refusal.value)


def test_ten_thousand_groups_are_the_most(refused: Refusals) -> None:
    n = 10_001
    with refused(DataError):
        audit(None, np.zeros(n), sensitive_features=np.arange(n))


def test_twenty_labels_are_the_most(refused: Refusals) -> None:
    n = 25
    with refused(DataError):
        audit([f"label {k}" for k in range(n)], np.zeros(n), sensitive_features=np.arange(n) % 2)


def test_the_good_input_is_good() -> None:
    assert flat_audit(**GOOD, random_state=0).worst().value == 1.0


def test_names_may_come_from_a_generator() -> None:
    found = flat_audit(
        **GOOD,
        metrics=(name for name in ("energy", "lp")),
        criteria=(one for one in ["statistical_parity"]),
    )
    assert [one.metric for one in found.findings] == ["energy", "lp"]
