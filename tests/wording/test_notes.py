"""Every kind of note as a table: kind and facts in, sentences out."""

import inspect
from typing import Any

import pytest

from tests.seams.auditing import Note, notes
from tests.seams.cli import OPTION_NAMES
from tests.seams.metrics import METRICS
from tests.seams.wording import CRITERION_MEANINGS, METRIC_WORDS, NOTES, TOPICS, note_text

PAIRS = [["a", "b", "label=1"], ["a", "rest", "everyone"]]
SENTENCES: dict[str, tuple[dict[str, Any], str]] = {
    "constant_scores": (
        {"score": 0.62},
        "Every score is 0.62, so no gap can appear. This is no evidence of fairness.",
    ),
    "constant_probabilities": (
        {},
        (
            "All rows have the same class probabilities, so no gap can appear. This is no evidence "
            "of "
            "fairness."
        ),
    ),
    "same_decision": (
        {"threshold": 2.0, "selected": False},
        (
            "At threshold 2, nobody is selected. Equal selection rates are then no evidence of "
            "fairness. Pass "
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
            "At threshold 0.5, at least 99.0% of every group are selected, so impact ratios say "
            "little. Check the "
            "threshold: the scores range from 0.25 to 100."
        ),
    ),
    "positive_label": (
        {"classes": ["approved", "denied"], "positive": "denied"},
        ("'denied' counts as positive (alphabetical default). Pass pos_label=... to change it."),
    ),
    "reversed_score": (
        {"auc": 0.3, "favorable": "high"},
        (
            "The score ranks the positive label lower than the negative one (AUC 0.30). The score "
            "or the positive "
            "label may be reversed."
        ),
    ),
    "groups_are_labels": (
        {"attribute": "sex"},
        (
            "The groups of sex are a one-to-one encoding of the label. Accurate scores are then "
            "unfair "
            "by construction."
        ),
    ),
    "uninformative_score": (
        {"attribute": "sex", "uninformative": {"f": -0.01}, "informative": {"m": 0.6}},
        (
            "By sex, the correlation of score and outcome is near 0 within “f” (−0.01), but not "
            "within “m” (0.60). Equal "
            "score distributions would then assign scores at random and help nobody. The first "
            "group needs features that "
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
            "Below the minimum group size of 30 rows: “c” of team (4 rows in everyone). Groups "
            "with fewer than 5 rows have "
            "no confidence interval."
        ),
    ),
    "few_rows_for_dependence": (
        {"sets": [["age", "everyone"]], "fewest": 100},
        (
            "No confidence interval for the dependence of the scores, because there are fewer than "
            "100 rows: age in "
            "everyone."
        ),
    ),
    "undetectable_gaps": (
        {"pairs": PAIRS, "gap": 0.2},
        (
            "Too few rows to rule out a gap of 20 points: “a” and “b” among label=1, “a” and the "
            "other groups among everyone."
        ),
    ),
    "left_out_rows": (
        {"rows": 1},
        "Excluded: 1 row with a missing score, label or weight.",
    ),
    "suppressed_groups": (
        {"column": "race", "groups": ["Native", "Other"], "min_cell": 10},
        (
            "Suppressed: race “Native”, “Other”. A cell (group, stratum and label) has fewer than "
            "10 "
            "rows, or a total would reveal such a cell. All rows of suppressed groups are "
            "withheld, "
            "and their number is rounded up to a power of two."
        ),
    ),
    "withheld_search": (
        {"min_cell": 10},
        (
            "The search for groups is not part of this release: its groups overlap, and differences "
            "of their counts would show cells with fewer than 10 rows."
        ),
    ),
    "merged_scores": (
        {"min_cell": 10},
        (
            "Each score is known to an interval of a public grid. Neighboring intervals are merged "
            "until each count has at least 10 rows. counts.state has the mean score of each count, "
            "rounded to the grid. Figures spread a count over its interval as the rows of all "
            "groups "
            "are."
        ),
    ),
    "unresolved_groups": (
        {"column": "race", "groups": ["Native"]},
        (
            "Not compared: race “Native”. The threshold is within intervals that contain at least "
            "half "
            "of their rows."
        ),
    ),
    "rates_on_grid": (
        {"column": "sex", "errors": [["f", 0.012], ["m", 0.2]]},
        (
            "The threshold is within an interval of the grid. Selection rates may therefore differ "
            "from those of the original scores, by sex by at most: “m” 20.0 points, “f” 1.2 points."
        ),
    ),
    "distances_on_grid": (
        {"column": "sex", "errors": [[f"g{number}", 0.1] for number in range(11)]},
        "A Kolmogorov distance of the original scores differs by at most the sum of these shares "
        "of both groups, by sex: "
        + "".join(f"“g{number}” 10.0 points, " for number in range(10))
        + "and 1 more group, at most as much.",
    ),
    "rounded_grid": ({"digits": 2}, "All figures use grid scores rounded to 2 digits."),
    "rounded_scores": (
        {"digits": 2},
        (
            "Decisions at a threshold use the original scores. All other figures use scores "
            "rounded to "
            "2 digits."
        ),
    ),
    "withheld_rows": (
        {"rows": 2},
        (
            "Withheld: 2 rows in cells (group, stratum and label) below the minimum group size "
            "when "
            "the counts were saved."
        ),
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
    "unknown_name": (
        {"attribute": "sex", "group": "NA", "rows": 64, "of": 2344, "in_tables": True},
        (
            "sex: 64 of 2,344 rows are named 'NA', which says that the group is not known. It is a "
            "group, but never the "
            "reference group or the headline. If it is a real group, pass "
            "options=AuditOptions(known_names='NA'). If it "
            "marks missing values, pass None instead. In a file, leave these cells empty, or read "
            "it with reading=ReadOptions(missing='NA')."
        ),
    ),
    "names_alike": (
        {"attribute": "sex", "groups": ["F", "f"]},
        (
            "sex: the groups 'F' and 'f' differ only in spelling. If they are one group, use one "
            "spelling."
        ),
    ),
    "undecided": (
        {},
        (
            "No selection rates: the scores are not probabilities of a label, so 0.5 is no natural threshold. "
            "Pass threshold=... to "
            "compute them."
        ),
    ),
    "binned_attribute": (
        {"attribute": "age", "levels": 256},
        (
            "age has very many distinct values and is binned into 256 levels of about equal size. "
            "Its figures are exact "
            "for these levels."
        ),
    ),
    "binned_counts": (
        {"rows": 1000, "errors": {"kolmogorov": 0.000061, "wasserstein": 2e-16}},
        (
            "The 1,000 rows were counted in bins. Distances are known to these errors: Kolmogorov "
            "distance 0.00007, "
            "Wasserstein distance 0.000001."
        ),
    ),
    "median_bracket": (
        {"low": 0.25, "high": 0.5},
        (
            "By the binned counts, the median score lies between 0.25 and 0.5. The nearer end "
            "replaces "
            "it."
        ),
    ),
    "weighted_rows": (
        {"in_memory": True},
        "The rows are weighted. Certified bounds and p-values need equal weights and are omitted.",
    ),
    "clustered_rows": (
        {"column": "person", "clusters": 120, "rows": 600},
        (
            "The 600 rows form 120 clusters by “person”. Intervals and p-values allow for any "
            "dependence within a cluster. "
            "The minimum group size counts clusters. Certified bounds, unbiased estimates, "
            "detectable gaps and Fisher's test "
            "need independent rows. They are omitted where clusters have several rows."
        ),
    ),
    "single_clusters": (
        {"column": "person", "rows": 600},
        (
            "Each of the 600 rows is a cluster of its own by “person”. So rows are treated as "
            "independent."
        ),
    ),
    "repeated_ids": (
        {"column": "person_id", "values": 120, "rows": 600},
        (
            "600 rows have only 120 different values of “person_id”, and the audit treats all rows "
            "as independent. If rows "
            "with one value depend on each other, confidence intervals are too narrow. Pass "
            "clusters=... to allow for it."
        ),
    ),
    "group_probabilities": (
        {"attribute": "P(race)"},
        (
            "The audit uses P(race) instead of known groups: group sizes are expected numbers of "
            "rows, p-values come "
            "from a bootstrap, and certified bounds are omitted."
        ),
    ),
    "labels_unused": (
        {"attribute": "P(race)"},
        (
            "Figures by label are omitted, because they need a further assumption about P(race). "
            "Pass "
            "GroupProbabilities(with_labels=...) to state it."
        ),
    ),
    "few_known_rows": (
        {"groups": [["white", 1], ["black", 4]], "fewest": 5},
        (
            "Not corrected, because fewer than 5 rows are known to be in the group: “white” (1 "
            "row), "
            "“black” (4 rows)."
        ),
    ),
    "few_effective_rows": (
        {"pairs": PAIRS[:1], "fewest": 5},
        (
            "No confidence interval, because the weights leave an effective sample size below 5: "
            "“a” and “b” among label=1."
        ),
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
        (
            "unknown_name",
            "If it marks missing values, leave these cells empty, or use --missing NA.",
        ),
    ],
)
def test_the_command_line_names_options(kind: str, remedy: str) -> None:
    assert note_text(Note(kind, SENTENCES[kind][0]), OPTION_NAMES).endswith(remedy)


def test_the_tables_of_a_standard_count_unknown_names_separately() -> None:
    facts = {**SENTENCES["unknown_name"][0], "in_tables": False}
    assert "The tables of rates count it separately, and not as a group." in note_text(
        Note("unknown_name", facts)
    )


def test_every_metric_and_criterion_has_words() -> None:
    assert set(METRIC_WORDS) == set(METRICS)
    for words in METRIC_WORDS.values():
        assert words.about.endswith(".")
        assert words.meaning.endswith(".")
    assert all(text.endswith(".") for text in CRITERION_MEANINGS.values())


def test_gaps_that_few_rows_hide_are_listed_once_for_each_set() -> None:
    pairs = [("a", "b", "label=1"), ("a", "c", "label=1")]
    among = note_text(Note("undetectable_gaps", {"pairs": pairs, "gap": 0.2}))
    assert among == (
        "Among label=1, too few rows to rule out a gap of 20 points between “a” and “b”, “a” and “c”."
    )


@pytest.mark.parametrize(
    ("reasons", "lacking"),
    [
        ({"missing_label": 3}, "3 rows with a missing label."),
        (
            {"missing_score": 2, "missing_weight": 1},
            "3 rows with a missing value: score or decision (2), weight (1).",
        ),
        ({"unusable": 3}, "3 rows with a missing score, label or weight."),
    ],
)
def test_excluded_rows_are_counted_by_what_they_lack(reasons: dict[str, int], lacking: str) -> None:
    note = Note("left_out_rows", {"rows": 3, "reasons": reasons})
    assert note_text(note) == f"Excluded: {lacking}"
