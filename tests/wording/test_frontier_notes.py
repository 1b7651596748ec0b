"""Notes of a frontier: a table of kinds and facts, and the sentences that they become."""

from __future__ import annotations

import re
from typing import Any

import click
import pytest

from metrifair.cli import main
from tests.seams.tradeoff import FrontierNote
from tests.seams.wording import FRONTIER_NOTES as NOTES
from tests.seams.wording import frontier_note_text as note_text

FEW = {
    "group": "north",
    "attribute": "region",
    "part": "all",
    "within": "everyone",
    "rows": 4,
}
OVERFIT = {"models": 1, "trained": 2, "family": "", "parameter": "strength", "value": 1.0}
TABLE: list[tuple[str, dict[str, Any], str]] = [
    (
        "cross_validation",
        {"rows": 1000, "folds": 5, "test": 0},
        "Models are compared by 5-fold cross-validation of 1,000 rows.",
    ),
    (
        "cross_validation",
        {"rows": 800, "folds": 3, "test": 200},
        (
            "Models are compared by 3-fold cross-validation of 800 rows. The choice did not see "
            "the 200 test rows."
        ),
    ),
    (
        "cross_validation",
        {"rows": 1000, "folds": 0, "test": 0},
        (
            "Fitted models are compared on 1,000 rows. If these rows trained them, the figures are "
            "too optimistic."
        ),
    ),
    (
        "unlike_folds",
        {"family": "", "parameter": "strength", "value": 10.0, "seed": 0},
        (
            "Strength 10 meets the limit in cross-validation. It was passed over, because the "
            "model trained on all rows behaves differently."
        ),
    ),
    (
        "unlike_folds",
        {"family": "linear", "parameter": "strength", "value": 0.5, "seed": 2},
        (
            "Linear, strength 0.5, seed 2, meets the limit in cross-validation. It was passed "
            "over, because the model trained on all rows behaves differently."
        ),
    ),
    (
        "only_unlike_folds",
        {},
        (
            "The model trained on all rows behaves differently from those of the folds, so its "
            "figures may differ from these. Use fewer folds, or merge small groups."
        ),
    ),
    ("positive_label", {"labels": ["no", "yes"], "positive": 1}, ""),
    (
        "positive_label",
        {"labels": ["approved", "denied"], "positive": 1},
        (
            "'denied' counts as positive (alphabetical default); name another positive label to "
            "change it."
        ),
    ),
    ("weighted", {}, "Rows count by their sample weights."),
    (
        "probabilities",
        {
            "attribute": "P(race)",
            "assumption": "scores",
            "source": "BISG",
            "strata": False,
            "r2": {"b": 0.15, "w": 0.15},
        },
        (
            "The figures weight each row by P(race) (BISG). They are valid for the true groups "
            "only if score and group "
            "are independent given the inputs of P(race), as with most places. If instead score "
            "and P(race) are "
            "independent given the group, as with most surnames, the true gaps are those divided "
            "by R2 (R2 0.150). "
            "Limits and choices use the weighted figures."
        ),
    ),
    (
        "clusters",
        {"clusters": 1200, "rows": 3000},
        ("The 3,000 rows form 1,200 clusters, which stay together in every fold and resample."),
    ),
    (
        "repeated_rows",
        {"repeated": 30, "rows": 1000},
        (
            "30 of 1,000 tested rows (3.0%) equal rows of another part, in all features, label and "
            "groups. If they describe the same people, the figures are too optimistic. Remove "
            "duplicates, or pass ids as clusters (--cluster) to keep them together."
        ),
    ),
    (
        "repeated_ids",
        {"column": "person", "repeated": 250, "rows": 1000},
        (
            "250 of 1,000 tested rows (25.0%) have the same “person” as rows of another part. If "
            "they describe the same people, the figures are too optimistic. Pass “person” as "
            "clusters (--cluster) to keep them together."
        ),
    ),
    (
        "label_groups",
        {"attribute": "sex"},
        ("The groups of sex copy the label: correct scores are then unfair by design."),
    ),
    (
        "unknown_name",
        {"attribute": "sex", "group": "Undisclosed", "rows": 40, "of": 6000},
        (
            "sex: 40 of 6,000 rows are named 'Undisclosed', which says that the group is not "
            "known. It is compared as "
            "a group. If it is none, mark the group of these rows as missing."
        ),
    ),
    (
        "missing_groups",
        {"attribute": "sex", "rows": 1350, "of": 6000},
        (
            "sex is missing in 1,350 of 6,000 rows. They are used for training, and comparisons of "
            "sex "
            "exclude them."
        ),
    ),
    (
        "small_groups",
        {"groups": [FEW], "left_out": False},
        (
            "Fewer than 30 samples say little about a group: “north” of region (4 rows). There are "
            "no larger groups to compare, so that chance alone may explain the unfairness. Merge "
            "small groups, or mark them as missing."
        ),
    ),
    (
        "small_groups",
        {"groups": [{**FEW, "part": "test", "rows": 1, "within": "age 18"}], "left_out": True},
        (
            "Fewer than 30 samples say little about a group: “north” of region (1 test row, age "
            "18). Unfairness excludes them, and the four-fifths ratio excludes groups with fewer "
            "than 30 rows in all. Tables by group show them. Merge small groups, or mark them as "
            "missing."
        ),
    ),
    (
        "chance",
        {"unfairness": 0.1993, "comparisons": 1},
        "With these rows, an unfairness below 0.199 can be chance.",
    ),
    (
        "overfit",
        {**OVERFIT, "training": 0.018, "left_out": 0.15},
        (
            "Unfairness is significantly smaller on training rows than on the rows left out for 1 "
            "of 2 models (most at strength 1: 0.018 on training rows, 0.150 on rows left out). A "
            "simpler model, more rows or a larger strength can help."
        ),
    ),
    (
        "overfit",
        {**OVERFIT, "family": "linear", "training": 0.018, "left_out": 0.15},
        (
            "Unfairness is significantly smaller on training rows than on the rows left out for 1 "
            "of 2 models (most at linear, strength 1: 0.018 on training rows, 0.150 on rows left "
            "out). A simpler model, more rows or a larger strength can help."
        ),
    ),
    (
        "constant_models",
        {"family": "linear", "strengths": [0, 1, 10], "constant": [1]},
        ("linear: at strength 1, models are constant. Use smaller strengths to see the trade-off."),
    ),
    (
        "same_decisions",
        {"models": 1, "of": 2},
        (
            "1 of 2 models decides the same for everyone at its threshold, however well it ranks "
            "people. Equal "
            "decision rates and a four-fifths ratio of 1 are then no sign of fairness. Choose "
            "another threshold "
            "(metrifair train --choose-threshold)."
        ),
    ),
    (
        "families",
        {"tried": ["stack", "linear"], "untried": ["network"], "budget": 15.0, "trees": True},
        (
            "Families tried, in this order: stack; linear. Not started within 15 seconds: network. "
            "Set a larger "
            "budget to try them. With a budget in seconds, the result depends on the speed of the "
            "machine."
        ),
    ),
    (
        "families",
        {"tried": ["stack"], "untried": [], "budget": None, "trees": False},
        (
            "Families tried, in this order: stack. LightGBM is not installed, so the frontier has "
            "no trees with the "
            "penalty. Stacks use scikit-learn's trees and cannot be saved as a model file. Install "
            '"metrifair[boosting]".'
        ),
    ),
    (
        "determined_label",
        {"column": "end reason", "label": "hired", "rows": 60},
        (
            "Column 'end reason' alone determines the label 'hired' in all 60 rows; where it is "
            "written down only after the outcome, leave it out with --ignore 'end reason'."
        ),
    ),
    (
        "group_feature",
        {"column": "gender", "attribute": "sex", "equal": True, "rows": 6000},
        (
            "The feature 'gender' names the group of sex in all 6,000 rows that have both, so models can treat "
            "groups differently. Leave it out if decisions must not depend on the group."
        ),
    ),
    (
        "group_feature",
        {"column": "title", "attribute": "sex", "equal": False, "rows": 60},
        (
            "The feature 'title' determines the group of sex in all 60 rows that have both, so models can treat "
            "groups differently. Leave it out if decisions must not depend on the group."
        ),
    ),
    (
        "stray_cells",
        {"column": "pay", "cells": 1, "known": 40, "example": "1,234"},
        (
            "column 'pay' is taken for text, not for numbers, because of 1 of its 40 values, such "
            "as '1,234': it becomes a column for each frequent value. Correct or empty such cells "
            "to have numbers, or leave it out with --ignore."
        ),
    ),
    (
        "dates_as_text",
        {"column": "since", "example": "01.01.2026"},
        (
            "column 'since' contains dates such as '01.01.2026', and is read as text: use "
            "--day-first where the day comes first, or write them as 2026-12-31."
        ),
    ),
    (
        "dates",
        {"column": "since"},
        (
            "Column 'since' contains dates. `metrifair export` cannot write a model with dates; "
            "leave the column out with --ignore since if you need ONNX."
        ),
    ),
    (
        "predictions",
        {"columns": ["old score", "decision"]},
        (
            "The features include 'old score', 'decision'. If these are scores or decisions of "
            "another model, leave them out with --ignore 'old score' --ignore decision."
        ),
    ),
    (
        "names_alike",
        {"attribute": "sex", "groups": ["f", "F"]},
        (
            "sex: the groups 'f' and 'F' differ only in spelling. If they are one group, use one "
            "spelling."
        ),
    ),
    (
        "numbers",
        {"columns": {"age": 70, "debt": 400}, "integers": ["age"], "shares": []},
        (
            "'age' (70 different values) and 'debt' (400 different values) are taken as numbers: "
            "unfairness is how much scores depend on them, not a gap between groups; integers in "
            "'age' may be codes of groups; use --continuous age --continuous debt if the values "
            "are numbers, or --continuous none if every value is a group, or --cuts for groups."
        ),
    ),
    ("training_warning", {"message": "Dates are months."}, "Dates are months."),
    ("not_converged", {"message": "Train longer."}, "Train longer."),
]


@pytest.mark.parametrize(("kind", "facts", "sentence"), TABLE)
def test_a_note_becomes_its_sentence(kind: str, facts: dict[str, Any], sentence: str) -> None:
    assert note_text(FrontierNote(kind, facts)) == sentence


def test_every_kind_of_note_stands_in_the_table() -> None:
    assert {kind for kind, *_ in TABLE} == set(NOTES)


def test_options_that_notes_name_exist() -> None:
    named = {option for *_, text in TABLE for option in re.findall(r"--[a-z-]+", text)}
    train = main.get_command(click.Context(main), "train")
    assert train is not None
    options = {option for param in train.params for option in param.opts}
    assert {"--ignore", "--continuous", "--cluster"} <= named <= options
