"""Decisions of an audit at a threshold: rates by group, and the gaps between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metrifair.report.charts import Json
from metrifair.report.numbers import MISSING, number_text, percent_text, shown_number, strength_texts
from metrifair.results import Decisions, GroupRates

FOUR_FIFTHS = 0.8
_ROUNDING = 1e-12  # a ratio of exactly four fifths is not below them, whatever its last digits
_MOST_GROUPS = 40
_SHARES: dict[str, Callable[[GroupRates], float | None]] = {
    "Selection rate": lambda one: one.selection_rate,
    "Accuracy": lambda one: one.accuracy,
    "True positive rate": lambda one: one.true_positive_rate,
    "False positive rate": lambda one: one.false_positive_rate,
}


def decisions_json(found: Decisions, number: Callable[[str, str], int]) -> Json:
    """One table of rates with its gaps; of very many groups those with the lowest and highest selection rates.

    ``number`` gives the place of a group, by attribute and name, among the colours.
    """
    shown = shown_rates(found.rates)
    shares = {name: share for name, share in _SHARES.items() if any(share(one) is not None for one in found.rates)}
    return {
        "attribute": found.attribute,
        "within": found.within,
        "threshold": strength_texts([found.threshold])[0],
        "columns": ["Group", "Rows", *shares],
        "rates": [
            {
                "group": number(found.attribute, one.group),
                "rows": f"{one.size:,}",
                "selected": shown_number(one.selection_rate),
                "cells": [share_text(share(one)) for share in shares.values()],
            }
            for one in shown
        ],
        "left_out": len(found.rates) - len(shown),
        "gaps": [
            [name, points_text(gap)]
            for name, gap in (
                ("Selection rates", found.selection_difference),
                ("True positive rates", found.true_positive_difference),
                ("False positive rates", found.false_positive_difference),
                ("Accuracies", found.accuracy_difference),
            )
            if gap is not None
        ],
        "ratio": _ratio(found),
    }


def shown_rates(rates: Sequence[GroupRates]) -> Sequence[GroupRates]:
    """All groups, or of very many the lowest and the highest selection rates, in ascending order."""
    if len(rates) <= _MOST_GROUPS:
        return rates
    ordered = sorted(rates, key=lambda one: one.selection_rate)
    return [*ordered[: _MOST_GROUPS // 2], *ordered[-_MOST_GROUPS // 2 :]]


def share_text(share: float | None) -> str:
    """A share in percent, an en dash where it is not known.

    >>> share_text(0.415), share_text(None)
    ('41.5%', '–')
    """
    return MISSING if share is None else percent_text(share)


def points_text(gap: float) -> str:
    """A difference of shares in percentage points.

    >>> points_text(0.21)
    '21.0 points'
    """
    return f"{percent_text(gap).rstrip('%')} points"


def _ratio(found: Decisions) -> Json:
    """The four-fifths ratio with its interval, in numbers and in a sentence."""
    ratio, interval = found.selection_ratio, found.selection_ratio_interval
    if ratio is None:
        return {"value": None, "low": None, "high": None, "text": "Nobody is selected, so there is no ratio."}
    bounds = "" if interval is None else f" ({number_text(interval.low)} to {number_text(interval.high)})"
    return {
        "value": shown_number(ratio),
        "low": None if interval is None else shown_number(interval.low),
        "high": None if interval is None else shown_number(interval.high),
        "text": f"Four-fifths ratio {number_text(ratio)}{bounds}: {_verdict(found)}",
    }


def _verdict(found: Decisions) -> str:
    side = "below" if is_below(found.selection_ratio or 0.0) else "not below"
    return f"{side} four fifths, but the sample leaves both possible." if is_open(found) else f"{side} four fifths."


def is_below(ratio: float) -> bool:
    """Whether a ratio is below four fifths.

    >>> is_below(0.79), is_below(0.8), is_below(0.7999999999999999)
    (True, False, False)
    """
    return ratio < FOUR_FIFTHS * (1 - _ROUNDING)


def is_open(found: Decisions) -> bool:
    """Whether the interval of the four-fifths ratio holds values on both sides."""
    interval = found.selection_ratio_interval
    return interval is not None and is_below(interval.low) and not is_below(interval.high)
