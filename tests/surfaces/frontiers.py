"""The text of frontiers, choices and model cards, of models whose figures are exact.

The models are not trained, so that their scores are the same on every processor.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from metrifair import DataError, FairClassifier, Frontier, audit, frontier, to_card
from metrifair.errors import MetrifairWarning
from tests.surfaces.origins import without_figures, without_origin
from tests.surfaces.rows import GRID, QUICK, people

ROWS = people()
IS_MAN = (ROWS.sex == "men").astype(float)
FEATURES = np.column_stack([ROWS.score, IS_MAN])
OUTCOME = np.where(ROWS.outcome == 1, "yes", "no")
SEX = {"sex": ROWS.sex}
ADVANTAGE = 12 / GRID
"""How much higher the scores of men are."""


class GivenScore(ClassifierMixin, BaseEstimator):
    """The score of the first feature; at strength 1 without the advantage of men."""

    def __init__(self, strength: float = 0.0) -> None:
        self.strength = strength

    def fit(self, X: Any, y: Any, **_: Any) -> GivenScore:
        self.classes_ = np.unique(y)
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict_proba(self, X: Any) -> Any:
        score = np.asarray(X)[:, 0] - self.strength * ADVANTAGE * np.asarray(X)[:, 1]
        if self.strength > 1:
            score = np.full(len(X), 0.5)
        return np.column_stack([1 - score, score])

    def predict(self, X: Any) -> Any:
        return self.classes_[(self.predict_proba(X)[:, 1] >= 0.5).astype(int)]


def made(rows: int = len(OUTCOME), **options: Any) -> Frontier:
    """A frontier of three strengths, the last of which predicts the same for everyone."""
    given = {"strengths": [0.0, 0.5, 1.0, 8.0], "random_state": 0}
    groups = {"sex": ROWS.sex[:rows]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetrifairWarning)  # the summary has them as notes
        return frontier(
            GivenScore(),
            FEATURES[:rows],
            OUTCOME[:rows],
            sensitive_features=groups,
            **given | options,
        )


def texts() -> dict[str, str]:
    """Frontiers before and after a choice."""
    found = {
        "no choice yet": str(made()),
        "test rows": str(made(test=0.25)),
        "unfairness of decisions": str(made(unfairness_of="decisions")),
        "equal opportunity": str(made(criterion="equal_opportunity")),
        "weights": str(made(sample_weight=1 + np.arange(len(OUTCOME)) % 2)),
        "clusters": str(made(clusters=np.arange(len(OUTCOME)) // 2)),
        "few rows": str(made(rows=60)),
        "fitted models": _of_fitted_models(),
    }
    return found | choices()


def _of_fitted_models() -> str:
    """Models that were fitted elsewhere."""
    models = [GivenScore(strength).fit(FEATURES, OUTCOME) for strength in (0.0, 1.0)]
    return str(frontier(models, FEATURES, OUTCOME, sensitive_features=SEX, random_state=0))


def choices() -> dict[str, str]:
    """Choices within a limit, beyond all limits, and of a constant predictor."""
    return {
        "choice: within a limit": chosen(max_unfairness=0.25),
        "choice: least unfair of an accuracy": chosen(min_accuracy=0.75),
        "choice: with confidence": chosen(max_unfairness=0.25, confidence=0.9),
        "choice: by AUC": chosen(max_unfairness=0.25, utility="auc"),
        "choice: a constant predictor": chosen(max_unfairness=0.25, strengths=[0.0, 8.0]),
        "choice: no model": chosen(max_unfairness=0.0625, strengths=[0.0, 1.0]),
        "choice: best effort": chosen(
            max_unfairness=0.0625, best_effort=True, strengths=[0.0, 1.0]
        ),
        "choice: on test rows": chosen(max_unfairness=0.375, test=0.25),
    }


def chosen(strengths: list[float] | None = None, test: float | None = None, **limit: Any) -> str:
    """What a choice prints: the summary, and its warnings or its error."""
    front = made(strengths=strengths or [0.0, 0.5, 1.0, 8.0], test=test)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MetrifairWarning)
        try:
            front.select(**limit)
        except DataError as error:
            return f"{front}\n{type(error).__name__}: {error}"
    warned = [f"{type(warning.message).__name__}: {warning.message}" for warning in caught]
    return "\n".join([str(front), *warned])


def card_texts() -> dict[str, str]:
    """Cards of a model alone, with its audit and with its frontier; of a trained model."""
    front = made()
    model = front.select(max_unfairness=0.25)
    score = model.predict_proba(FEATURES)[:, 1]
    result = audit(OUTCOME, score, sensitive_features=SEX, options=QUICK, pos_label="yes")
    trained = FairClassifier(model="linear", random_state=0)
    trained.fit(FEATURES, OUTCOME, sensitive_features=ROWS.sex)
    cards = {
        "a model alone": to_card(model),
        "with an audit": to_card(model, result),
        "with an audit that the author states": to_card(
            model, result, audited_rows="applications of 2025"
        ),
        "with its frontier": to_card(model, frontier=front),
        "with all details": to_card(
            model,
            result,
            front,
            title="Hiring",
            license="mit",
            language="en",
            datasets=["people"],
            tags=["fair"],
            intended_use="To teach.",
        ),
        "a trained model (# stands for numbers)": without_figures(to_card(trained)),
    }
    return {title: without_origin(text) for title, text in cards.items()}
