"""Sentences of comparisons and series: a table of facts and the sentence that each of them
makes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.seams.auditing import Baseline, Difference, DifferenceRecord, Look, SeriesRecord
from tests.seams.figures import Interval
from tests.seams.wording import difference_sentences, series_sentences

PLACE: tuple[Any, ...] = ("sex", "statistical_parity", "everyone", ("f", "m"), "energy")
BETTER = Difference(
    "new",
    *PLACE,
    0.2,
    0.1,
    -0.1,
    Interval(-0.13, -0.07),
    Interval(-0.15, -0.05),
    0.001,
    0.002,
    "better",
)
SAME = replace(BETTER, p_value=0.4, p_adjusted=0.4, verdict="not_distinguishable")
UNTESTED = Difference("new", *PLACE, 0.2, 0.1, -0.1)
PAIRED = DifferenceRecord(("old", "new"), [1000, 1000], "rows", 0.95, [SAME])

COMPARISONS: dict[str, tuple[DifferenceRecord, str]] = {
    "no difference": (PAIRED, "No figure of “new” differs significantly from “old” (1 tested)."),
    "differences": (
        replace(PAIRED, differences=[BETTER, SAME, UNTESTED]),
        (
            "“new” is better than “old” in 1 and worse in 0 of 2 figures; not distinguishable: 1. "
            "1 figure has no interval or too few rows and is not tested."
        ),
    ),
    "most significant": (
        replace(PAIRED, differences=[BETTER]),
        (
            "Most significantly better: Energy distance of “f” and “m” of sex (everyone, Statistical "
            "parity), from 0.200 to "
            "0.100 (−0.100, −0.150 to −0.050)."
        ),
    ),
    "probabilities": (
        replace(PAIRED, r2=[{"a": 0.2, "b": 0.2}, {"a": 0.3, "b": 0.3}]),
        (
            "Figures are weighted by probabilities of groups. If score and probabilities are "
            "independent given the "
            "group, differences of distances are too small by R2 (0.200 to 0.300), and a change of "
            "R2 looks like one "
            "of the distances."
        ),
    ),
    "paired": (PAIRED, "Both audits have the same 1,000 rows: errors in common cancel (paired)."),
    "independent": (
        replace(PAIRED, pairing="independent"),
        (
            "Both audits are treated as having different rows (independent). If their rows are the "
            "same, audit the "
            "scores together: intervals are then narrower."
        ),
    ),
    "could be paired": (
        replace(PAIRED, pairing="independent", can_pair=True),
        (
            "Both audits are treated as having different rows (independent). If their rows are the "
            "same, pass "
            "paired=True, or audit the scores together: intervals are then narrower."
        ),
    ),
    "any correlation": (
        replace(PAIRED, pairing="unknown"),
        (
            "Both audits have the same rows, not all of which are in memory. The intervals hold "
            "for any correlation "
            "between audits, and are wider than those of paired rows."
        ),
    ),
    "unmatched": (
        replace(PAIRED, unmatched=7),
        "7 figures are not compared: only one of the audits has them, or their groups differ.",
    ),
}

LOOK = Look("May", *PLACE, (90, 80), 0.1)
JUNE = replace(
    LOOK,
    look="June",
    value=0.3,
    difference=0.2,
    p_value=0.2,
    level=0.025,
    alarm="not_distinguishable",
)
BASELINE = Baseline(*PLACE, ["May"], (90, 80), True)
SERIES = SeriesRecord(("May", "June"), [170, 170], 0.95, 30, [LOOK, JUNE], [BASELINE])

SERIES_TABLE: dict[str, tuple[SeriesRecord, str]] = {
    "unchanged": (
        SERIES,
        "No distance has changed significantly since its baseline, over 2 looks.",
    ),
    "not tested": (
        replace(SERIES, series=[LOOK]),
        "No distance was tested: no group has a baseline and a later look of 30 rows.",
    ),
    "worse": (
        replace(SERIES, series=[LOOK, replace(JUNE, alarm="worse")]),
        (
            "Worse than the baseline: 1 distance, at 1 look. Most significant is Energy distance of “f” and "
            "“m” of sex "
            "(everyone, Statistical parity) at “June”: 0.300 (+0.200)."
        ),
    ),
    "error rate": (
        SERIES,
        (
            "The probability of any false alarm is approximately at most 5%, however many looks "
            "follow "
            "(Bonferroni over looks, "
            "alpha / (k (k + 1)), and over distances)."
        ),
    ),
    "exact error rate": (
        replace(SERIES, series=[LOOK, replace(JUNE, exact=True)]),
        (
            "If no scores change, the probability of any alarm is at most 5%, however many looks "
            "follow (an exact test "
            "of each pair of groups; Bonferroni over looks, alpha / (k (k + 1)), and over pairs). "
            "If scores change and "
            "a distance does not, the probability of an alarm is approximate."
        ),
    ),
    "one approximate distance": (
        replace(SERIES, series=[LOOK, replace(JUNE, exact=True), JUNE]),
        (
            "The probability of any false alarm is approximately at most 5%, however many looks "
            "follow (Bonferroni "
            "over looks, alpha / (k (k + 1)), and over distances)."
        ),
    ),
    "pooled": (
        replace(SERIES, baselines=[replace(BASELINE, looks=["May", "June"])]),
        (
            "The baseline of 1 distance pools several looks, until both groups reach the minimum "
            "group size of 30 "
            "rows: 2 looks for “f” and “m” of sex (everyone, Statistical parity)."
        ),
    ),
    "late": (
        replace(SERIES, baselines=[replace(BASELINE, looks=["June"])]),
        "The baseline of 1 distance begins after the first look: “f” and “m” of sex (from “June”).",
    ),
    "too small": (
        replace(SERIES, baselines=[replace(BASELINE, enough=False)]),
        (
            "The baseline of 1 distance is below the minimum group size of 30 rows, so that no "
            "look is tested: “f” and "
            "“m” of sex (from “May”)."
        ),
    ),
    "untested looks": (
        replace(SERIES, baselines=[replace(BASELINE, untested=["June"])]),
        (
            "Some distances are not tested at “June”: a group is missing or below the minimum "
            "group size of 30 rows, "
            "or the labels or strata differ."
        ),
    ),
}


@pytest.mark.parametrize("kind", COMPARISONS)
def test_sentences_of_comparisons(kind: str) -> None:
    record, sentence = COMPARISONS[kind]
    assert sentence in difference_sentences(record)


@pytest.mark.parametrize("kind", SERIES_TABLE)
def test_sentences_of_series(kind: str) -> None:
    record, sentence = SERIES_TABLE[kind]
    assert sentence in series_sentences(record)
