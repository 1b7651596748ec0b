"""The text of audits of several kinds, as ``print`` shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from metrifair import AuditState, GroupProbabilities, audit, audit_table, find_groups
from tests.surfaces.rows import QUICK, people, table

ROWS = people()
SEX = {"sex": ROWS.sex}
KNOWN = np.where(np.arange(400) % 2 == 0, ROWS.sex, None)


def probabilities(sure: float = 0.75, **options: Any) -> GroupProbabilities:
    """Probabilities of both groups: that of the true one is always the same."""
    is_man = ROWS.sex == "men"
    table = {
        "men": np.where(is_man, sure, 1 - sure),
        "women": np.where(is_man, 1 - sure, sure),
    }
    return GroupProbabilities(table, attribute="sex", source="names", **options)


KINDS: dict[str, dict[str, Any]] = {
    "probabilities with labels": {"y_true": ROWS.outcome},
    "probabilities without labels": {"y_true": None},
    "labels in words": {"y_true": np.where(ROWS.outcome == 1, "yes", "no")},
    "labels in words, the positive one by default": {
        "y_true": np.where(ROWS.outcome == 1, "denied", "approved")
    },
    "decisions": {"y_true": None, "y_pred": (ROWS.score > 0.5).astype(int)},
    "scores of any scale": {"y_true": None, "y_pred": 100 * ROWS.score},
    "scores at a threshold": {"y_true": None, "y_pred": 100 * ROWS.score, "threshold": 50},
    "low scores are favorable": {"y_true": ROWS.outcome, "favorable": "low"},
    "numbers to predict": {"y_true": 64 * ROWS.score, "y_pred": 60 * ROWS.score + 1},
    "several attributes": {
        "y_true": ROWS.outcome,
        "sensitive_features": {"sex": ROWS.sex, "region": ROWS.region},
    },
    "intersections": {
        "y_true": ROWS.outcome,
        "sensitive_features": {"sex": ROWS.sex, "region": ROWS.region},
        "intersectional": True,
    },
    "many groups": {
        "y_true": None,
        "sensitive_features": {"town": [f"town {row % 12}" for row in range(400)]},
    },
    "many groups against the rest": {
        "y_true": None,
        "sensitive_features": {"town": [f"town {row % 12}" for row in range(400)]},
        "options": replace(QUICK, contrast="rest"),
    },
    "a numeric attribute": {
        "y_true": ROWS.outcome,
        "sensitive_features": {"age": ROWS.age},
        "continuous": ["age"],
    },
    "a number cut into groups": {
        "y_true": ROWS.outcome,
        "sensitive_features": {"age": ROWS.age},
        "options": replace(QUICK, cuts={"age": [30, 60]}),
    },
    "strata": {"y_true": ROWS.outcome, "control_features": {"region": ROWS.region}},
    "weights": {"y_true": ROWS.outcome, "sample_weight": 1 + np.arange(400) % 2},
    "clusters": {"y_true": ROWS.outcome, "clusters": np.arange(400) // 2},
    "a group without a name, and a small one": {
        "y_true": ROWS.outcome,
        "sensitive_features": {"sex": ["Unknown"] * 40 + ["diverse"] * 4 + ROWS.sex[44:].tolist()},
    },
    "missing groups": {
        "y_true": ROWS.outcome,
        "sensitive_features": {"sex": [None] * 10 + ROWS.sex[10:].tolist()},
    },
    "the same score for everyone": {"y_true": ROWS.outcome, "y_pred": np.full(400, 0.75)},
    "everyone is selected": {"y_true": ROWS.outcome, "threshold": 0.0},
    "groups that are the label": {
        "y_true": ROWS.outcome,
        "sensitive_features": {"sex": np.where(ROWS.outcome == 1, "good", "bad")},
    },
    "no interval and no test": {
        "y_true": ROWS.outcome,
        "options": replace(QUICK, resamples=0, permutations=0),
    },
    "few rows": {
        "y_true": ROWS.outcome[:12],
        "y_pred": ROWS.score[:12],
        "sensitive_features": {"sex": ROWS.sex[:12]},
    },
    "probabilities of groups": {
        "y_true": None,
        "sensitive_features": probabilities(),
    },
    "probabilities of groups, with known groups": {
        "y_true": None,
        "sensitive_features": probabilities(known_groups=KNOWN),
    },
    "probabilities of groups, with cells": {
        "y_true": None,
        "sensitive_features": probabilities(cells=ROWS.region),
    },
    "probabilities of groups, with labels": {
        "y_true": ROWS.outcome,
        "sensitive_features": probabilities(with_labels="included"),
        "control_features": {"region": ROWS.region},
    },
    "probabilities of groups that say little": {
        "y_true": None,
        "sensitive_features": probabilities(sure=0.5625),
    },
    "observed groups that can be wrong": {
        "y_true": None,
        "sensitive_features": probabilities(sure=1.0, confusion=[[0.875, 0.125], [0.125, 0.875]]),
    },
    "groups without a difference": {
        "y_true": None,
        "y_pred": np.repeat(ROWS.score[:200], 2),
        "sensitive_features": {"side": ["left", "right"] * 200},
    },
    "two models": {
        "y_true": ROWS.outcome,
        "y_pred": {"old": ROWS.score, "new": np.where(ROWS.sex == "men", 0.5, 0.5625)},
    },
}


def texts() -> dict[str, str]:
    """What ``print`` shows of each kind of audit."""
    usual = {"y_pred": ROWS.score, "sensitive_features": SEX, "options": QUICK}
    shown = {kind: str(audit(**(usual | given))) for kind, given in KINDS.items()}
    return shown | {
        "a column of a table": _of_a_table(),
        "counts": str(_counts().audit(options=QUICK)),
        "counts without small cells": str(_counts().without(40).audit(options=QUICK)),
        "a search for groups": _with_groups(),
        **findings(),
    }


def _of_a_table() -> str:
    """The same rows by names of columns, with cells that are missing."""
    roles = {"score": "score", "group": "sex", "label": "outcome"}
    return str(audit_table(table(ROWS), **roles, pos_label="hired", options=QUICK))


def _counts() -> AuditState:
    """Counts of the rows, some of which have a rare region."""
    region = np.where(np.arange(400) < 20, "islands", ROWS.region)
    state = AuditState(score_range=(0.0, 1.0))
    return state.add(ROWS.outcome, ROWS.score, sensitive_features={"region": region})


def _with_groups() -> str:
    """An audit with a search for groups that nobody named."""
    result = audit(ROWS.outcome, ROWS.score, sensitive_features=SEX, options=QUICK)
    found = find_groups(ROWS.outcome, ROWS.score, {"sex": ROWS.sex, "region": ROWS.region})
    return str(result.with_groups(found))


def findings() -> dict[str, str]:
    """The sentences of single findings: of each distance, and of a numeric attribute."""
    metrics = ["energy", "kolmogorov", "wasserstein", "cramer", "lp", "mmd", "total_variation"]
    names = {"sensitive_features": SEX, "metrics": metrics, "options": QUICK}
    numbers = {"sensitive_features": {"age": ROWS.age}, "continuous": ["age"], "options": QUICK}
    results = {
        "groups": audit(None, ROWS.score, **names),
        "decisions": audit(None, (ROWS.score > 0.5).astype(int), **names),
        "a number": audit(None, ROWS.score, **numbers),
    }
    return {
        f"finding of {kind}: {finding.metric}": "\n".join(result.describe(finding))
        for kind, result in results.items()
        for finding in result.findings
    }
