"""Audits of fitted models in one call, and seeds that nobody passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.svm import LinearSVC

from metrifair import (
    Audit,
    AuditState,
    BarycenterPostprocessor,
    DataError,
    FairClassifier,
    FairClassifierCV,
    audit,
)
from tests.expected_errors import Refusals

RNG = np.random.default_rng(0)
SEX = RNG.choice(["f", "m"], 400)
X = RNG.normal(size=(400, 2)) + 0.5 * (SEX == "m")[:, None]
TARGET = X.sum(1) + RNG.normal(size=400)
LABEL = np.where(TARGET > 0.5, "good", "bad")  # the last class is good


def figures(result: Any) -> list[tuple[Any, ...]]:
    return [
        (one.criterion, one.metric, one.groups, one.value, one.interval) for one in result.findings
    ]


@pytest.mark.parametrize("pos_label", [None, "bad", "good"])
@pytest.mark.parametrize("favorable", ["high", "low"])
def test_probabilities_of_the_positive_class_are_audited(pos_label: Any, favorable: Any) -> None:
    model = LogisticRegression().fit(X, LABEL)
    options: dict[str, Any] = {"sensitive_features": SEX, "favorable": favorable}
    if pos_label is not None:
        options["pos_label"] = pos_label
    scored = "good"
    if pos_label is not None:
        scored = pos_label
        if favorable == "low":
            scored = {"bad": "good", "good": "bad"}[pos_label]
    score = model.predict_proba(X)[:, list(model.classes_).index(scored)]
    expected = audit(LABEL, score, **options)
    found = Audit.from_estimator(model, X, LABEL, **options)
    assert figures(found) == figures(expected)
    assert found.decisions == expected.decisions


def test_outputs_and_predictions_are_audited() -> None:
    margins = LinearSVC(random_state=0).fit(X, LABEL)
    found = Audit.from_estimator(margins, X, LABEL, sensitive_features=SEX)
    assert figures(found) == figures(
        audit(LABEL, margins.decision_function(X), sensitive_features=SEX)
    )
    turned = Audit.from_estimator(margins, X, LABEL, sensitive_features=SEX, pos_label="bad")
    assert figures(turned) == figures(
        audit(LABEL, -margins.decision_function(X), sensitive_features=SEX, pos_label="bad")
    )
    numbers = LinearRegression().fit(X, TARGET)
    found = Audit.from_estimator(numbers, X, TARGET, sensitive_features=SEX)
    assert figures(found) == figures(audit(TARGET, numbers.predict(X), sensitive_features=SEX))


def test_a_model_that_needs_the_group_receives_it() -> None:
    model = BarycenterPostprocessor(LogisticRegression()).fit(X, LABEL, sensitive_features=SEX)
    found = Audit.from_estimator(model, X, LABEL, sensitive_features=SEX)
    score = model.predict_proba(X, sensitive_features=SEX)[:, 1]
    assert figures(found) == figures(audit(LABEL, score, sensitive_features=SEX))
    plain = Audit.from_estimator(model.base_, X, LABEL, sensitive_features=SEX)
    assert found.worst().value < plain.worst().value


def test_what_is_no_model_is_refused(refused: Refusals) -> None:
    with refused(DataError):
        Audit.from_estimator("model", X, LABEL, sensitive_features=SEX)
    model = RidgeClassifier().fit(X, LABEL)
    with refused(DataError):
        Audit.from_estimator(model, X, LABEL, sensitive_features=SEX, pos_label="yes")


def test_the_same_rows_have_the_same_intervals_unless_a_seed_is_drawn() -> None:
    score = LogisticRegression().fit(X, LABEL).predict_proba(X)[:, 1]
    state = AuditState(score_range=(0, 1)).add(LABEL, score, sensitive_features=SEX)
    for run in (
        lambda **seed: audit(LABEL, score, sensitive_features=SEX, **seed),
        state.audit,
    ):
        assert figures(run()) == figures(run()) == figures(run(random_state=0))
        assert figures(run(random_state=None)) != figures(run(random_state=None))


def test_print_shows_the_answer_and_the_notes() -> None:
    result = audit(LABEL, (X.sum(1) > 0).astype(float), sensitive_features=SEX)
    lines = str(result).splitlines()
    notes = [f"Note: {text}" for text in result.note_texts()]
    assert lines[-len(notes) :] == notes
    assert lines == result.summary.splitlines()
    assert " points between " in lines[0]
    assert "interval" in lines[1]


@pytest.mark.parametrize("needs_group", [None, True])
def test_a_search_whose_model_needs_groups_gets_them(needs_group: bool | None) -> None:
    families = ["barycenter", "linear"]
    model = FairClassifierCV(
        max_unfairness=0.3, families=families, needs_group=needs_group, random_state=0
    ).fit(X, LABEL, sensitive_features=SEX)
    score = model.predict_proba(X, sensitive_features=SEX)[:, 1]
    found = Audit.from_estimator(model, X, LABEL, sensitive_features=SEX)
    assert figures(found) == figures(audit(LABEL, score, sensitive_features=SEX))


def test_a_class_derived_from_ours_gets_the_groups_that_it_needs() -> None:
    class Shifted(FairClassifier):
        """Raises the scores of one group."""

        def predict_proba(self, X: Any, *, sensitive_features: Any) -> np.ndarray:
            score = super().predict_proba(X)[:, 1] / (1 + (np.asarray(sensitive_features) == "f"))
            return np.c_[1 - score, score]

    model = Shifted(0.0, model="linear").fit(X, LABEL)
    score = model.predict_proba(X, sensitive_features=SEX)[:, 1]
    found = Audit.from_estimator(model, X, LABEL, sensitive_features=SEX)
    assert figures(found) == figures(audit(LABEL, score, sensitive_features=SEX))
