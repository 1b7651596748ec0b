"""Sentences on selection rates name the groups that they compare."""

from __future__ import annotations

from metrifair.auditing.records import AuditSettings, Decisions
from metrifair.figures.selection_rates import GroupRates
from metrifair.wording.rates import ratio_text


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
