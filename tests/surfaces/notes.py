"""The notes of audits and of frontiers: every kind, with the facts that its sentence shows."""

from __future__ import annotations

from typing import Any

from tests.seams.auditing import Note
from tests.seams.cli import OPTION_NAMES
from tests.seams.tradeoff import FrontierNote
from tests.seams.wording import frontier_note_text, note_text

PAIRS = [["a", "b", "label=1"], ["a", "rest", "everyone"]]
AUDIT_NOTES: list[tuple[str, dict[str, Any]]] = [
    ("constant_scores", {"score": 0.62}),
    ("constant_probabilities", {}),
    ("same_decision", {"threshold": 2.0, "selected": False}),
    (
        "nearly_all_selected",
        {
            "threshold": 0.5,
            "selected_by": "threshold",
            "favorable": "high",
            "favorable_decision": None,
            "share": 0.99,
            "low": 0.25,
            "high": 100.0,
        },
    ),
    ("positive_label", {"classes": ["approved", "denied"], "positive": "denied"}),
    ("reversed_score", {"auc": 0.3, "favorable": "high"}),
    ("groups_are_labels", {"attribute": "sex"}),
    (
        "uninformative_score",
        {"attribute": "sex", "uninformative": {"f": -0.01}, "informative": {"m": 0.6}},
    ),
    ("absent_groups", {"groups": [["c", "team", "label=1"]]}),
    ("small_groups", {"groups": [["c", "team", "everyone", 4]], "min_group_size": 30, "fewest": 5}),
    ("few_rows_for_dependence", {"sets": [["age", "everyone"]], "fewest": 100}),
    ("undetectable_gaps", {"pairs": PAIRS, "gap": 0.2}),
    ("left_out_rows", {"rows": 1}),
    ("suppressed_groups", {"column": "race", "groups": ["Native", "Other"], "min_cell": 10}),
    ("withheld_search", {"min_cell": 10}),
    ("merged_scores", {"min_cell": 10}),
    ("unresolved_groups", {"column": "race", "groups": ["Native"]}),
    ("rates_on_grid", {"column": "sex", "errors": [["f", 0.012], ["m", 0.2]]}),
    (
        "distances_on_grid",
        {"column": "sex", "errors": [[f"g{number}", 0.1] for number in range(11)]},
    ),
    ("rounded_grid", {"digits": 2}),
    ("rounded_scores", {"digits": 2}),
    ("withheld_rows", {"rows": 2}),
    ("missing_groups", {"attribute": "sex", "rows": 2, "of": 1304}),
    ("missing_or_suppressed_groups", {"attribute": "sex", "rows": 40, "of": 1304}),
    ("missing_all_groups", {"rows": 1}),
    (
        "unknown_name",
        {"attribute": "sex", "group": "NA", "rows": 64, "of": 2344, "in_tables": True},
    ),
    ("names_alike", {"attribute": "sex", "groups": ["F", "f"]}),
    ("undecided", {}),
    ("binned_attribute", {"attribute": "age", "levels": 256}),
    ("binned_counts", {"rows": 1000, "errors": {"kolmogorov": 0.000061, "wasserstein": 2e-16}}),
    ("median_bracket", {"low": 0.25, "high": 0.5}),
    ("weighted_rows", {"in_memory": True}),
    ("clustered_rows", {"column": "person", "clusters": 120, "rows": 600}),
    ("single_clusters", {"column": "person", "rows": 600}),
    ("repeated_ids", {"column": "person_id", "values": 120, "rows": 600}),
    ("group_probabilities", {"attribute": "P(race)"}),
    ("labels_unused", {"attribute": "P(race)"}),
    ("few_known_rows", {"groups": [["white", 1], ["black", 4]], "fewest": 5}),
    ("few_effective_rows", {"pairs": PAIRS[:1], "fewest": 5}),
]

EXCLUDED = {
    "one reason": {"missing_label": 3},
    "several reasons": {"missing_score": 2, "missing_weight": 1},
    "counts": {"unusable": 3},
}
AUDIT_NOTES += [
    ("undetectable_gaps", {"pairs": [["a", "b", "label=1"], ["a", "c", "label=1"]], "gap": 0.2}),
    *(("left_out_rows", {"rows": 3, "reasons": reasons}) for reasons in EXCLUDED.values()),
    (
        "unknown_name",
        {"attribute": "sex", "group": "NA", "rows": 64, "of": 2344, "in_tables": False},
    ),
    ("weighted_rows", {"in_memory": False}),
]

FEW = {
    "group": "north",
    "attribute": "region",
    "part": "all",
    "within": "everyone",
    "rows": 4,
}
OVERFIT = {"models": 1, "trained": 2, "family": "", "parameter": "strength", "value": 1.0}
FRONTIER_NOTES: list[tuple[str, dict[str, Any]]] = [
    ("cross_validation", {"rows": 1000, "folds": 5, "test": 0}),
    ("cross_validation", {"rows": 800, "folds": 3, "test": 200}),
    ("cross_validation", {"rows": 1000, "folds": 0, "test": 0}),
    ("unlike_folds", {"family": "", "parameter": "strength", "value": 10.0, "seed": 0}),
    ("unlike_folds", {"family": "linear", "parameter": "strength", "value": 0.5, "seed": 2}),
    ("only_unlike_folds", {}),
    ("positive_label", {"labels": ["no", "yes"], "positive": 1}),
    ("positive_label", {"labels": ["approved", "denied"], "positive": 1}),
    ("weighted", {}),
    (
        "probabilities",
        {
            "attribute": "P(race)",
            "assumption": "scores",
            "source": "BISG",
            "strata": False,
            "r2": {"b": 0.15, "w": 0.15},
        },
    ),
    ("clusters", {"clusters": 1200, "rows": 3000}),
    ("repeated_rows", {"repeated": 30, "rows": 1000}),
    ("repeated_ids", {"column": "person", "repeated": 250, "rows": 1000}),
    ("label_groups", {"attribute": "sex"}),
    ("unknown_name", {"attribute": "sex", "group": "Undisclosed", "rows": 40, "of": 6000}),
    ("missing_groups", {"attribute": "sex", "rows": 1350, "of": 6000}),
    ("small_groups", {"groups": [FEW], "left_out": False}),
    (
        "small_groups",
        {"groups": [{**FEW, "part": "test", "rows": 1, "within": "age 18"}], "left_out": True},
    ),
    ("chance", {"unfairness": 0.1993, "comparisons": 1}),
    ("chance", {"unfairness": 0.1993, "comparisons": 7}),
    ("overfit", {**OVERFIT, "training": 0.018, "left_out": 0.15}),
    ("overfit", {**OVERFIT, "family": "linear", "training": 0.018, "left_out": 0.15}),
    ("constant_models", {"family": "linear", "strengths": [0, 1, 10], "constant": [1]}),
    ("same_decisions", {"models": 1, "of": 2}),
    (
        "families",
        {"tried": ["stack", "linear"], "untried": ["network"], "budget": 15.0, "trees": True},
    ),
    ("families", {"tried": ["stack"], "untried": [], "budget": None, "trees": False}),
    ("determined_label", {"column": "end reason", "label": "hired", "rows": 60}),
    ("group_feature", {"column": "gender", "attribute": "sex", "equal": True, "rows": 6000}),
    ("group_feature", {"column": "title", "attribute": "sex", "equal": False, "rows": 60}),
    ("stray_cells", {"column": "pay", "cells": 1, "known": 40, "example": "1,234"}),
    ("dates_as_text", {"column": "since", "example": "01.01.2026"}),
    ("dates", {"column": "since"}),
    ("predictions", {"columns": ["old score", "decision"]}),
    ("names_alike", {"attribute": "sex", "groups": ["f", "F"]}),
    ("numbers", {"columns": {"age": 70, "debt": 400}, "integers": ["age"], "shares": []}),
    ("training_warning", {"message": "Dates are months."}),
    ("not_converged", {"message": "Train longer."}),
]


def audit_texts() -> dict[str, str]:
    """The sentences of each kind of note, with arguments as Python and as commands name them."""
    texts = {}
    for number, (kind, facts) in enumerate(AUDIT_NOTES):
        note = Note(kind, facts)
        lines = dict.fromkeys([note_text(note), note_text(note, OPTION_NAMES)])
        texts[title(AUDIT_NOTES, number)] = "\n".join(lines)
    return texts


def frontier_texts() -> dict[str, str]:
    """The sentences of each kind of note of a frontier; some facts need none."""
    return {
        title(FRONTIER_NOTES, number): frontier_note_text(FrontierNote(kind, facts)) or "(no text)"
        for number, (kind, facts) in enumerate(FRONTIER_NOTES)
    }


def title(notes: list[tuple[str, dict[str, Any]]], number: int) -> str:
    """The kind of a note, numbered where an earlier one has the same kind."""
    kind = notes[number][0]
    earlier = sum(other == kind for other, _ in notes[:number])
    return f"{kind} ({earlier + 1})" if earlier else kind
