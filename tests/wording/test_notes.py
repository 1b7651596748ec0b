"""Every kind of note as a table: kind and facts in, sentences out."""

# ruff: noqa: E501 (sentences)

import inspect
from typing import Any

import pytest

from metrifair.auditing import notes
from metrifair.auditing.records import Note
from metrifair.cli.option_names import OPTION_NAMES
from metrifair.metrics.registry import METRICS
from metrifair.wording.metrics import CRITERIA, METRIC_WORDS
from metrifair.wording.notes import NOTES, TOPICS, note_text

TRAINED = (
    "These rows trained or selected the model. Confidence intervals and p-values describe these rows only; gaps on "
    "other rows may be larger. "
)
PAIRS = [["a", "b", "label=1"], ["a", "rest", "everyone"]]
SENTENCES: dict[str, tuple[dict[str, Any], str]] = {
    "constant_scores": (
        {"score": 0.62},
        "Every score is 0.62, so no gap can appear. This is no evidence of fairness.",
    ),
    "constant_probabilities": (
        {},
        "All rows have the same class probabilities, so no gap can appear. This is no evidence of fairness.",
    ),
    "same_decision": (
        {"threshold": 2.0, "selected": False},
        (
            "At threshold 2, nobody is selected. Equal selection rates are then no evidence of fairness. Pass "
            "threshold=... to compare decisions that differ."
        ),
    ),
    "nearly_all_selected": (
        {
            "threshold": 0.5,
            "selected_by": "threshold",
            "favorable": "high",
            "favorable_decision": None,
            "share": 0.99,
            "low": 0.25,
            "high": 100.0,
        },
        (
            "At threshold 0.5, at least 99.0% of every group are selected, so impact ratios say little. Check the "
            "threshold: the scores range from 0.25 to 100."
        ),
    ),
    "positive_label": (
        {"classes": ["approved", "denied"], "positive": "denied"},
        "Positive label: 'denied' (the last of 'approved', 'denied'). Pass pos_label=... to change it.",
    ),
    "reversed_score": (
        {"auc": 0.3, "favorable": "high"},
        (
            "The score ranks the positive label lower than the negative one (AUC 0.30). The score or the positive "
            "label may be reversed."
        ),
    ),
    "groups_are_labels": (
        {"attribute": "sex"},
        "The groups of sex are a one-to-one encoding of the label. Accurate scores are then unfair by construction.",
    ),
    "uninformative_score": (
        {"attribute": "sex", "uninformative": {"f": -0.01}, "informative": {"m": 0.6}},
        (
            "By sex, the correlation of score and outcome is near 0 within “f” (−0.01), but not within “m” (0.60). Equal "
            "score distributions would then assign scores at random and help nobody. The first group needs features that "
            "predict its outcome."
        ),
    ),
    "absent_groups": (
        {"groups": [["c", "team", "label=1"]]},
        "Not compared, because they have no rows: “c” of team in label=1.",
    ),
    "small_groups": (
        {"groups": [["c", "team", "everyone", 4]], "min_group_size": 30, "fewest": 5},
        (
            "Below the minimum group size of 30 rows: “c” of team (4 rows in everyone). Groups with fewer than 5 rows have "
            "no confidence interval."
        ),
    ),
    "few_rows_for_dependence": (
        {"sets": [["age", "everyone"]], "fewest": 100},
        (
            "No confidence interval for the dependence of the scores, because there are fewer than 100 rows: age in "
            "everyone."
        ),
    ),
    "undetectable_gaps": (
        {"pairs": PAIRS, "gap": 0.2},
        (
            "Too few rows to rule out a gap of 20 percentage points: “a” and “b” in label=1, “a” and the other groups in "
            "everyone."
        ),
    ),
    "left_out_rows": ({"rows": 1}, "Excluded: 1 row with a missing value that the audit needs, such as the score."),
    "suppressed_groups": (
        {"column": "race", "groups": ["Native", "Other"], "min_cell": 10},
        "Suppressed: race “Native”, “Other”. A cell (group, stratum, label and decision) has fewer than 10 rows, or a total would reveal such a cell. Rows of suppressed groups count as rows with a missing group. Rows of suppressed strata are withheld.",
    ),
    "merged_scores": (
        {"min_cell": 10},
        "Neighboring scores of a cell are merged into their mean until each count has at least 10 rows. Decisions at a threshold use the original scores. All other figures use the merged scores.",
    ),
    "rounded_scores": (
        {"digits": 2},
        "Decisions at a threshold use the original scores. All other figures use scores rounded to 2 digits.",
    ),
    "withheld_rows": (
        {"rows": 2},
        "Withheld: 2 rows in cells (group, stratum and label) below the minimum group size when the counts were saved.",
    ),
    "missing_groups": (
        {"attribute": "sex", "rows": 2, "of": 1304},
        "sex is missing in 2 of 1,304 rows; its findings exclude them.",
    ),
    "missing_or_suppressed_groups": (
        {"attribute": "sex", "rows": 40, "of": 1304},
        "sex is missing or suppressed in 40 of 1,304 rows; its findings exclude them.",
    ),
    "missing_all_groups": ({"rows": 1}, "All findings exclude 1 row without any group."),
    "name_like_missing": (
        {"attribute": "sex", "group": "NA"},
        (
            "sex: 'NA' is treated as a group. If it marks missing values, leave these cells empty, or read the file with "
            "reading=ReadOptions(missing='NA')."
        ),
    ),
    "names_alike": (
        {"attribute": "sex", "groups": ["F", "f"]},
        "sex: the groups 'F' and 'f' differ only in spelling. If they are one group, use one spelling.",
    ),
    "undecided": (
        {},
        (
            "No selection rates: the scores are not probabilities, so 0.5 is no natural threshold. Pass threshold=... to "
            "compute them."
        ),
    ),
    "binned_attribute": (
        {"attribute": "age", "levels": 256},
        (
            "age has very many distinct values and is binned into 256 levels of about equal size. Its figures are exact "
            "for these levels."
        ),
    ),
    "binned_counts": (
        {"rows": 1000, "complete": False},
        (
            "The 1,000 rows were counted in bins. Every distance lies in a proven bracket, and the value shown is its "
            "midpoint. Some brackets are wider than the tolerance, because the rows could not be counted in finer bins."
        ),
    ),
    "median_bracket": (
        {"low": 0.25, "high": 0.5},
        "By the binned counts, the median score lies between 0.25 and 0.5. The nearer end replaces it.",
    ),
    "weighted_rows": (
        {"in_memory": True},
        "The rows are weighted. Certified bounds and p-values need equal weights and are omitted.",
    ),
    "group_probabilities": (
        {"attribute": "P(race)"},
        (
            "The audit uses P(race) instead of known groups: group sizes are expected numbers of rows, p-values come "
            "from a bootstrap, and certified bounds are omitted."
        ),
    ),
    "labels_unused": (
        {"attribute": "P(race)"},
        (
            "Figures by label are omitted, because they need a further assumption about P(race). Pass "
            "GroupProbabilities(with_labels=...) to state it."
        ),
    ),
    "few_known_rows": (
        {"groups": [["white", 1], ["black", 4]], "fewest": 5},
        "Not corrected, because fewer than 5 rows are known to be in the group: “white” (1 row), “black” (4 rows).",
    ),
    "few_effective_rows": (
        {"pairs": PAIRS[:1], "fewest": 5},
        "No confidence interval, because the weights leave an effective sample size below 5: “a” and “b” in label=1.",
    ),
    "training_rows": (
        {"dimension": 3},
        TRAINED + "The bounds by the VC dimension 3 hold for every model of its class. Audit held-out rows for tighter "
        "bounds.",
    ),
    "training_rows_too_few": (
        {"dimension": 3},
        TRAINED + "Bounds by the VC dimension need more than 3 rows of each group.",
    ),
    "training_rows_bounded": (
        {
            "dimension": 3,
            "confidence": 0.95,
            "threshold": 0.5,
            "attribute": "sex",
            "accuracy": 0.8,
            "unfairness": 0.1,
        },
        TRAINED + "By the VC dimension 3, with 95% confidence, decisions at 0.5 are correct for at least 80.0% and "
        "differ between the groups of sex by at most 10.0 points. Audit held-out rows for tighter bounds.",
    ),
}


@pytest.mark.parametrize("kind", NOTES)
def test_each_kind_of_note_has_its_sentence(kind: str) -> None:
    facts, sentence = SENTENCES[kind]
    assert note_text(Note(kind, facts)) == sentence
    assert NOTES[kind].topic in TOPICS


def test_audits_make_no_other_kinds() -> None:
    source = inspect.getsource(notes)
    made = {name for name in SENTENCES if f'"{name}"' in source}
    assert made == set(NOTES) == set(SENTENCES)


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("undecided", "Use --threshold NUMBER to compute them."),
        ("same_decision", "Use --threshold NUMBER to compare decisions that differ."),
        ("positive_label", "Use --positive CLASS to change it."),
        ("name_like_missing", "If it marks missing values, leave these cells empty, or use --missing NA."),
    ],
)
def test_the_command_line_names_options(kind: str, remedy: str) -> None:
    assert note_text(Note(kind, SENTENCES[kind][0]), OPTION_NAMES).endswith(remedy)


def test_every_metric_and_criterion_has_words() -> None:
    assert set(METRIC_WORDS) == set(METRICS)
    for words in METRIC_WORDS.values():
        assert words.about.endswith(".")
        assert words.meaning.endswith(".")
    assert all(text.endswith(".") for text in CRITERIA.values())
