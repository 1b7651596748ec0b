"""Sentences of comparisons and series: each kind of record, made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
COMPARISONS: dict[str, DifferenceRecord] = {
    "no difference": PAIRED,
    "differences": replace(PAIRED, differences=[BETTER, SAME, UNTESTED]),
    "most significant": replace(PAIRED, differences=[BETTER]),
    "probabilities": replace(PAIRED, r2=[{"a": 0.2, "b": 0.2}, {"a": 0.3, "b": 0.3}]),
    "paired": PAIRED,
    "independent": replace(PAIRED, pairing="independent"),
    "could be paired": replace(PAIRED, pairing="independent", can_pair=True),
    "any correlation": replace(PAIRED, pairing="unknown"),
    "unmatched": replace(PAIRED, unmatched=7),
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
SERIES_TABLE: dict[str, SeriesRecord] = {
    "unchanged": SERIES,
    "not tested": replace(SERIES, series=[LOOK]),
    "worse": replace(SERIES, series=[LOOK, replace(JUNE, alarm="worse")]),
    "error rate": SERIES,
    "exact error rate": replace(SERIES, series=[LOOK, replace(JUNE, exact=True)]),
    "one approximate distance": replace(SERIES, series=[LOOK, replace(JUNE, exact=True), JUNE]),
    "pooled": replace(SERIES, baselines=[replace(BASELINE, looks=["May", "June"])]),
    "late": replace(SERIES, baselines=[replace(BASELINE, looks=["June"])]),
    "too small": replace(SERIES, baselines=[replace(BASELINE, enough=False)]),
    "untested looks": replace(SERIES, baselines=[replace(BASELINE, untested=["June"])]),
}


def texts() -> dict[str, str]:
    """All sentences of each record."""
    compared = {
        f"comparison: {kind}": difference_sentences(record) for kind, record in COMPARISONS.items()
    }
    series = {f"series: {kind}": series_sentences(record) for kind, record in SERIES_TABLE.items()}
    return {kind: "\n".join(sentences) for kind, sentences in (compared | series).items()}
