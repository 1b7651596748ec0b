"""The text of results beside audits and frontiers, and the README of evidence."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from metrifair import Audit, AuditState, audit, compare, find_groups, monitor
from metrifair.evidence import refute_linear, verify
from tests.surfaces.origins import without_origin
from tests.surfaces.rows import GRID, QUICK, Rows, people

ROWS = people()
TABLE = {"sex": ROWS.sex, "region": ROWS.region}


def texts() -> dict[str, str]:
    """What ``print`` shows of each kind of result."""
    return comparisons() | series() | rate_tables() | searches() | by_group() | evidence()


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
    }


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
        "counts": repr(counts[0]),
    }


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
        "linear models: not excluded": str(
            refute_linear(features, ROWS.outcome, max_risk=0.75, **limits)
        ),
    }


def evidence() -> dict[str, str]:
    """The README of evidence whose small cells are withheld, and its verification."""
    region = np.where(np.arange(len(ROWS.score)) < 12, "islands", ROWS.region)
    result = audit(ROWS.outcome, ROWS.score, sensitive_features={"region": region}, options=QUICK)
    with TemporaryDirectory() as name:
        folder = Path(name, "evidence")
        result.to_evidence(folder, min_cell=10, pdf=False)
        readme = (folder / "README.txt").read_text()
        agreement = str(verify(folder))
        (folder / "README.txt").write_text(readme.replace("gap", "gain"))
        disagreement = str(verify(folder))
    return {
        "evidence: README": without_origin(readme),
        "evidence: verified": without_origin(agreement),
        "evidence: changed afterwards": without_origin(disagreement),
    }
