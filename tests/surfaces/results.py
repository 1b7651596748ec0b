"""The text of results beside audits and frontiers."""

from __future__ import annotations

import numpy as np

from metrifair import Audit, AuditState, audit, compare, find_groups, monitor
from metrifair.evidence import refute_linear
from tests.surfaces.rows import GRID, QUICK, Rows, people

ROWS = people()
TABLE = {"sex": ROWS.sex, "region": ROWS.region}


def texts() -> dict[str, str]:
    """What ``print`` shows of each kind of result."""
    return comparisons() | series() | rate_tables() | searches() | by_group()


def audit_of(rows: Rows, shift: int = 0) -> Audit:
    """The audit of rows by sex, the scores of men lower by a shift in steps of the grid."""
    score = np.where(rows.sex == "men", rows.score - shift / GRID, rows.score)
    return audit(rows.outcome, score, sensitive_features={"sex": rows.sex}, options=QUICK)


def comparisons() -> dict[str, str]:
    """Two audits of the same rows, and of other rows."""
    old, fairer = audit_of(ROWS), audit_of(ROWS, shift=12)
    later = audit_of(people(seed=1))
    return {
        "comparison: the same rows, smaller gaps": str(compare(old, fairer)),
        "comparison: the same rows, larger gaps": str(compare(fairer, old)),
        "comparison: other rows": str(compare(old, later)),
        "comparison: equal audits": str(compare(old, old)),
        "comparison: clusters": str(compare(of_clusters(ROWS), of_clusters(people(seed=1)))),
        "comparison: few rows of a group": str(compare(of_few(ROWS), of_few(people(seed=1)))),
        "comparison: other groups": str(compare(of_regions(ROWS), of_regions(ROWS, "east"))),
    }


def of_clusters(rows: Rows) -> Audit:
    """An audit whose rows are two for each person."""
    persons = {"person": np.arange(len(rows.score)) // 2}
    return audit(
        rows.outcome,
        rows.score,
        sensitive_features={"sex": rows.sex},
        clusters=persons,
        options=QUICK,
    )


def of_few(rows: Rows) -> Audit:
    """An audit of a small group, and of one whose name says that it is not known."""
    sex = np.where(np.arange(len(rows.sex)) < 20, "diverse", rows.sex)
    sex = np.where(np.arange(len(rows.sex)) > 340, "Unknown", sex)
    return audit(None, rows.score, sensitive_features={"sex": sex}, options=QUICK)


def of_regions(rows: Rows, west: str = "west") -> Audit:
    """An audit by region, one of which may have another name."""
    region = np.where(rows.region == "west", west, rows.region)
    return audit(None, rows.score, sensitive_features={"region": region}, options=QUICK)


def series() -> dict[str, str]:
    """Three months without a change, and three with one."""
    months = [people(seed=seed) for seed in range(3)]
    calm = [audit_of(month) for month in months]
    changed = [*calm[:2], audit_of(months[2], shift=12)]
    counts = [
        AuditState(score_range=(0.0, 1.0)).add(
            month.outcome, month.score, sensitive_features={"sex": month.sex}
        )
        for month in months
    ]
    return {
        "monitoring: no change": str(monitor(calm, options=QUICK)),
        "monitoring: a change": str(monitor(changed, options=QUICK)),
        "monitoring: counts": str(monitor(counts, options=QUICK)),
        "monitoring: clusters": str(monitor([of_clusters(month) for month in months])),
        "monitoring: few rows of a group": str(monitor([of_few(month) for month in months])),
        "monitoring: a group appears": str(
            monitor([of_regions(months[0], "east"), *map(of_regions, months[1:])])
        ),
        "monitoring: one group is not known": str(monitor([_unknown(month) for month in months])),
        "counts": repr(counts[0]),
    }


def _unknown(rows: Rows) -> Audit:
    """An audit of two groups, one of which is not known."""
    sex = np.where(rows.sex == "men", "Unknown", rows.sex)
    return audit(None, rows.score, sensitive_features={"sex": sex}, options=QUICK)


def rate_tables() -> dict[str, str]:
    """Rates by group, as each standard asks for them."""
    result = audit(ROWS.outcome, ROWS.score, sensitive_features=TABLE, options=QUICK)
    undecided = audit(None, 9 * ROWS.score, sensitive_features=TABLE, options=QUICK)
    return {
        "rates": str(result.rates()),
        "rates: four fifths": str(result.rates("four-fifths")),
        "rates: New York": str(result.rates("ll144")),
        "rates: credit": str(result.rates("credit", reference={"sex": "men", "region": "north"})),
        "rates: a reference group": str(result.rates(reference={"sex": "women"})),
        "rates: no decisions": str(undecided.rates()),
    }


def searches() -> dict[str, str]:
    """Searches for groups that find some, and that find none."""
    found = find_groups(ROWS.outcome, ROWS.score, TABLE)
    noise = find_groups(ROWS.outcome, ROWS.score, {"region": ROWS.region})
    outcomes = ("missed positives", "false positives", "score")
    others = {
        f"search for groups: {outcome}": str(
            find_groups(ROWS.outcome, ROWS.score, TABLE, outcome=outcome)
        )
        for outcome in outcomes
    }
    apart = find_groups(ROWS.outcome, ROWS.score, TABLE, search_rows=0.5)
    return {
        "search for groups": str(found),
        "search for groups: none is worse": str(noise),
        "search for groups: on other rows": str(apart),
        **others,
    }


def by_group() -> dict[str, str]:
    """Figures by group, and linear models that cannot exist."""
    result = audit(ROWS.outcome, ROWS.score, sensitive_features={"sex": ROWS.sex}, options=QUICK)
    limits = {"sensitive_features": ROWS.sex, "max_gap": 0.125}
    features = np.column_stack([ROWS.score, ROWS.age])
    return {
        "metrics by group": str(result.by_group()),
        "linear models: excluded": str(
            refute_linear(features, ROWS.outcome, max_risk=0.25, **limits)
        ),
        "linear models: few rows": str(
            refute_linear(
                features[:40],
                ROWS.outcome[:40],
                max_risk=0.5,
                max_gap=0.125,
                sensitive_features=ROWS.sex[:40],
            )
        ),
        "linear models: not excluded": str(
            refute_linear(features, ROWS.outcome, max_risk=0.75, **limits)
        ),
    }
