"""Notes of a frontier: a table of kinds and facts, and the sentences that they become."""

from __future__ import annotations

from typing import Any

import pytest

from metrifair.tradeoff.points import FrontierNote
from metrifair.wording.frontier import NOTES, note_text

FEW = {"group": "north", "attribute": "region", "part": "validation", "within": "everyone", "rows": 4}
OVERFIT = {"models": 1, "trained": 2, "family": "", "parameter": "strength", "value": 1.0}
TABLE: list[tuple[str, dict[str, Any], str]] = [
    (
        "split",
        {"training": 1000, "validation": 500, "test": 500, "folds": 0},
        "1,000 training rows, 500 validation rows, 500 test rows.",
    ),
    (
        "split",
        {"training": 0, "validation": 50, "test": 50, "folds": 0},
        "Fitted models, 50 validation rows, 50 test rows.",
    ),
    (
        "split",
        {"training": 1500, "validation": 1500, "test": 500, "folds": 5},
        "1,500 training rows, 5-fold cross-validation to choose a model, 500 test rows.",
    ),
    (
        "cross_fitted",
        {"training": 550, "validation": 250, "test": 1000, "test_folds": 5, "folds": 0},
        (
            "All 1,000 rows are test rows, in 5 folds. Models that score a fold were trained and chosen without its "
            "rows (550 training rows, 250 validation rows). The models to use were fitted on all rows."
        ),
    ),
    (
        "cross_fitted",
        {"training": 800, "validation": 800, "test": 1000, "test_folds": 5, "folds": 4},
        (
            "All 1,000 rows are test rows, in 5 folds. Models that score a fold were trained and chosen without its "
            "rows (800 training rows, 4-fold cross-validation). The models to use were fitted on all rows."
        ),
    ),
    ("positive_label", {"labels": ["no", "yes"], "positive": 1}, ""),
    (
        "positive_label",
        {"labels": ["approved", "denied"], "positive": 1},
        "Positive label: 'denied' (the last of 'approved', 'denied'); name another positive label to change it.",
    ),
    (
        "weighted",
        {},
        "Rows count by their sample weights. Intervals are omitted: their proof does not cover weighted samples.",
    ),
    (
        "probabilities",
        {"attribute": "P(race)", "assumption": "scores", "source": "BISG", "strata": False},
        (
            "The figures weight each row by P(race) (BISG). They are valid for the true groups only if score and group "
            "are independent given the inputs of P(race). Otherwise, the true gaps can be larger. Intervals of "
            "unfairness are omitted: their proof requires the group of each row."
        ),
    ),
    (
        "clusters",
        {"clusters": 1200, "rows": 3000},
        (
            "The 3,000 rows form 1,200 clusters, which stay together in every split and fold. Confidence intervals "
            "treat rows as independent: they are too narrow if rows of one cluster are similar."
        ),
    ),
    (
        "repeated_rows",
        {"repeated": 30, "rows": 1000},
        (
            "30 of 1,000 test rows (3.0%) equal rows that train or select models, in all features, label and groups. "
            "If they describe the same people, figures on test rows are too optimistic. Remove duplicates, or pass ids "
            "as clusters (--cluster) to keep them together in every split."
        ),
    ),
    (
        "repeated_ids",
        {"column": "person", "repeated": 250, "rows": 1000},
        (
            "250 of 1,000 test rows (25.0%) have the same “person” as other rows that train or select models. If they "
            "describe the same people, figures on test rows are too optimistic. Pass “person” as clusters (--cluster) "
            "to keep them together in every split."
        ),
    ),
    (
        "label_groups",
        {"attribute": "sex"},
        "The groups of sex are the label in other words: scores that are right are then unfair by design.",
    ),
    (
        "missing_groups",
        {"attribute": "sex", "rows": 1350, "of": 6000},
        "sex is missing in 1,350 of 6,000 rows. They are used for training, and comparisons of sex exclude them.",
    ),
    (
        "small_groups",
        {"groups": [FEW], "left_out": False},
        (
            "Fewer than 30 samples say little about a group: “north” of region (4 in validation rows). There are "
            "no larger groups to compare, so that chance alone may explain the unfairness. Merge small groups, "
            "mark them as missing, or hold more rows out."
        ),
    ),
    (
        "chance",
        {"unfairness": 0.1993, "comparisons": 1, "unfairness_of": "decisions"},
        (
            "Groups with equal distributions would show an unfairness of up to about 0.199 by chance alone. "
            "An unfairness up to it does not show that groups differ."
        ),
    ),
    (
        "overfit",
        {**OVERFIT, "training": 0.018, "validation": 0.15, "test": 0.17},
        (
            "Unfairness is significantly smaller on training rows than on others for 1 of 2 models (most at "
            "strength 1: 0.018 on training rows, 0.150 on validation rows, 0.170 on test rows). A simpler "
            "model, more rows or a larger strength can help."
        ),
    ),
    (
        "constant_models",
        {"family": "linear", "strengths": [0, 1, 10], "constant": [1]},
        (
            "linear: models predict the same for everyone at strength 1 (1 of 3 strengths): training found "
            "nothing with a lower objective there. Use smaller strengths or longer training to see the trade-off."
        ),
    ),
    (
        "same_decisions",
        {"models": 1, "of": 2},
        (
            "1 of 2 models decides the same for everyone at its threshold, however well it ranks people. Equal "
            "decision rates and a four-fifths ratio of 1 are then no sign of fairness. Choose another threshold "
            "(metrifair train --choose-threshold)."
        ),
    ),
    (
        "families",
        {"tried": ["stack", "linear"], "untried": ["network"], "budget": 15.0, "trees": True},
        (
            "Families tried, in this order: stack; linear. Not started within 15 seconds: network. Set a larger "
            "budget to try them."
        ),
    ),
    (
        "families",
        {"tried": ["stack"], "untried": [], "budget": None, "trees": False},
        (
            "Families tried, in this order: stack. LightGBM is not installed, so the frontier has no trees with the "
            "penalty. Stacks use scikit-learn's trees and cannot be saved as a model file. Install "
            '"metrifair[boosting]".'
        ),
    ),
    ("message", {"text": "Dates are months."}, "Dates are months."),
]


@pytest.mark.parametrize(("kind", "facts", "sentence"), TABLE)
def test_a_note_becomes_its_sentence(kind: str, facts: dict[str, Any], sentence: str) -> None:
    assert note_text(FrontierNote(kind, facts)) == sentence


def test_every_kind_of_note_stands_in_the_table() -> None:
    assert {kind for kind, *_ in TABLE} == set(NOTES)
