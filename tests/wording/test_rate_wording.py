"""Sentences on selection rates name the groups that they compare, and ratios with enough digits."""

from __future__ import annotations

import pytest

from tests.seams.auditing import AuditRecord, AuditSettings, Decisions, Finding
from tests.seams.figures import GroupRates
from tests.seams.wording import audit_summary, highlights, ratio_text


def test_the_smallest_ratio_is_that_of_a_group_with_a_ratio_however_large() -> None:
    rates = [
        GroupRates("excluded", 2, 0.5, left_out="small_share", few=True),
        GroupRates("lowest", 20, 0.5, ratio=2.5, few=True),
        GroupRates("highest", 20, 0.8, ratio=4.0, few=True),
    ]
    table = Decisions("sex", "everyone", 0.5, rates, 0.3, 2.5, reference="named")
    assert "of “lowest” to “named”" in ratio_text(table, AuditSettings())


def test_of_equal_ratios_the_one_of_enough_rows_is_named() -> None:
    rates = [
        GroupRates("few", 4, 0.5, ratio=0.5, few=True),
        GroupRates("reference", 20, 1.0, ratio=1.0, few=True),
        GroupRates("many", 90, 0.5, ratio=0.5),
    ]
    table = Decisions("sex", "everyone", 0.5, rates, 0.5, 0.5, reference="reference")
    assert "of “many” to “reference”" in ratio_text(table, AuditSettings())


@pytest.mark.parametrize(
    ("ratio", "short", "long"),
    [
        (0.798, "0.798", "0.798"),
        (0.79996, "0.79996", "0.79996"),
        (0.8, "0.80", "0.800"),
        (0.75, "0.75", "0.750"),
    ],
)
def test_no_ratio_below_four_fifths_looks_equal_to_them(
    ratio: float, short: str, long: str
) -> None:
    rates = [GroupRates("f", 90, ratio / 2, ratio=ratio), GroupRates("m", 90, 0.5, ratio=1.0)]
    table = Decisions("sex", "everyone", 0.5, rates, 0.1, ratio, reference="m")
    finding = Finding(
        "sex", "statistical_parity", "everyone", ("f", "m"), (90, 90), "kolmogorov", 0.3
    )
    record = AuditRecord(180, 0, (0, 1), 0.95, [finding], decisions=[table])
    side = "below four fifths." if ratio < 0.8 else "not below four fifths."
    assert any(text.endswith(f"impact ratio {short}, {side}") for text in audit_summary(record))
    assert ratio_text(table, AuditSettings()) == f"Four-fifths ratio {long}: {side}"
    assert ("Four-fifths ratio", long) in [highlight.figures[0] for highlight in highlights(record)]
