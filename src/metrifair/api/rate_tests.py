"""Tests of selection rates against a reference: of one table, and of all strata together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metrifair.auditing.ranking import reference_pair
from metrifair.auditing.records import Decisions
from metrifair.errors import DataError
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import GroupRates
from metrifair.figures.two_rates import (
    RatePair,
    common_odds,
    odds_ratio,
    odds_ratio_interval,
    standard_deviations,
)


@dataclass(frozen=True)
class RateTest:
    """The selection rate of a group tested against that of the reference; ``RateTable.tests``
    returns it.

    Parameters
    ----------
    attribute, within : str
        The attribute, and the stratum.
    group, reference : str
        The groups that are compared.
    difference : float
        The selection rate of the group less that of the reference.
    standard_deviations : float or None
        The difference in standard deviations of equal rates: the two-sample z. None: all or no rows
        are selected.
    p_value : float
        Fisher's exact p-value, two-sided.
    odds_ratio : float or None
        The odds of selection in the group divided by those in the reference. None: not determined.
    odds_ratio_interval : Interval or None
        Its confidence interval (Woolf). None: a count is 0.
    """

    attribute: str
    within: str
    group: str
    reference: str
    difference: float
    standard_deviations: float | None
    p_value: float
    odds_ratio: float | None
    odds_ratio_interval: Interval | None


@dataclass(frozen=True)
class StrataTest:
    """The odds of selection of a group against the reference, over all strata;
    ``RateTable.over_strata`` returns it.

    Parameters
    ----------
    attribute : str
        The attribute.
    group, reference : str
        The groups that are compared.
    strata : int
        Number of strata with rows of both groups.
    odds_ratio : float or None
        The common odds ratio of Mantel and Haenszel; infinite without a row to divide by. None:
        not determined.
    interval : Interval or None
        Its confidence interval (Robins, Breslow and Greenland).
    statistic, p_value : float or None
        The test of Cochran, Mantel and Haenszel that the odds ratio is 1, without continuity
        correction. None: all or no rows of each stratum are selected.
    """

    attribute: str
    group: str
    reference: str
    strata: int
    odds_ratio: float | None
    interval: Interval | None
    statistic: float | None
    p_value: float | None


def rate_tests(tables: Iterable[Decisions], confidence: float) -> list[RateTest]:
    """The tests of all groups that are compared with the reference of their table."""
    found = []
    for table in tables:
        for rate in table.rates:
            pair = reference_pair(table, rate)
            if pair is None or rate.p_value is None:
                continue
            found.append(
                RateTest(
                    attribute=table.attribute,
                    within=table.within,
                    group=rate.group,
                    reference=table.reference or "",
                    difference=pair.selected / pair.rows - pair.other_selected / pair.other_rows,
                    standard_deviations=standard_deviations(pair),
                    p_value=rate.p_value,
                    odds_ratio=odds_ratio(pair),
                    odds_ratio_interval=odds_ratio_interval(pair, confidence),
                )
            )
    return found


def strata_tests(
    tables: Sequence[Decisions], reference: str, confidence: float
) -> list[StrataTest]:
    """The tests over the strata of each attribute that has the reference group."""
    strata = [table for table in tables if table.within != "everyone"] or list(tables)
    if any(rate.selected is None or rate.clusters is not None for rate in _rates(strata)):
        raise DataError("tests over strata need rows without weights and clusters")
    by_group: dict[tuple[str, str], list[RatePair]] = {}
    for table in strata:
        rates = {rate.group: rate for rate in table.rates}
        base = rates.pop(reference, None)
        for name, rate in rates.items():
            if base is None or base.selected is None or rate.selected is None:
                continue
            pair = RatePair(rate.selected, rate.size, base.selected, base.size)
            by_group.setdefault((table.attribute, name), []).append(pair)
    if not by_group:
        raise DataError("is not a group of any stratum", argument="reference", received=reference)
    return [
        StrataTest(attribute, name, reference, len(pairs), *common_odds(pairs, confidence))
        for (attribute, name), pairs in by_group.items()
    ]


def _rates(tables: Iterable[Decisions]) -> list[GroupRates]:
    return [rate for table in tables for rate in table.rates]
