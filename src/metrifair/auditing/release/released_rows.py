"""The counts of the rows of an audit, from which evidence is made."""

from __future__ import annotations

import math

from metrifair.auditing.audit_record import AuditedRows
from metrifair.auditing.sources.memory import ColumnSource, MemorySource
from metrifair.auditing.sources.state_parts import StateParts
from metrifair.auditing.sources.state_rows import add_rows
from metrifair.auditing.sources.state_source import StateRows
from metrifair.errors import DataError, Remedy


def parts_of_rows(
    rows: AuditedRows, score_digits: int | None = None, *, coarse: bool = False
) -> StateParts:
    """The counts of the rows of an audit.

    Without ``score_range``, the range of the scores is rounded outwards to ``score_digits``, or to
    the leading digit of its length if ``coarse``.
    """
    source = rows.source
    request = rows.request
    if rows.sample.problem.members is not None:
        raise DataError(
            "the groups of this audit are probabilities: each row counts in several cells, and "
            "suppressing small cells "
            "would not hide it",
            remedy="write the report with to_html or to_json",
        )
    if isinstance(source, StateRows):
        return source.parts
    if isinstance(source, ColumnSource):
        source = source.in_memory()
    if not isinstance(source, MemorySource):
        raise DataError(
            "the rows of this audit are not in memory",
            remedy="count them with AuditState or metrifair count, or use metrifair evidence, "
            "which counts files",
        )
    if request.threshold is None or request.threshold == "median":
        raise DataError(
            "does not apply to counts",
            argument="threshold",
            received=request.threshold,
            remedy=Remedy(
                "threshold",
                detail=", a number; a standard such as 'll144' uses the median itself",
            ),
        )
    score_range = request.score_range
    if score_range is None:
        score_range = _score_range(*rows.sample.scores.ends, score_digits, coarse=coarse)
    parts = StateParts(None, score_range, request.threshold)
    add_rows(parts, source)
    return parts


def _score_range(
    low: float, high: float, digits: int | None, *, coarse: bool
) -> tuple[float, float]:
    """The range that is published for scores between these ends."""
    if coarse:
        digits = _leading_digit(high - low)
    low, high = _rounded_outwards(low, high, digits)
    if low == high:
        high += 1.0
    return low, high


def _leading_digit(length: float) -> int | None:
    """The place of the first digit of a number after the decimal point; None for 0.

    >>> _leading_digit(0.034), _leading_digit(342.0)
    (2, -2)
    """
    if length > 0:
        return -math.floor(math.log10(length))
    return None


def _rounded_outwards(low: float, high: float, digits: int | None) -> tuple[float, float]:
    """Round both ends outwards to ``digits``, because the smallest and the largest score belong to
    single rows.

    >>> _rounded_outwards(411.386, 753.301, 1), _rounded_outwards(0.5, 2.0, 0)
    ((411.3, 753.4), (0.0, 2.0))
    """
    if digits is None:
        return low, high
    unit = 10.0**-digits
    start = round(low, digits)
    if start > low:
        start = round(start - unit, digits)
    end = round(high, digits)
    if end < high:
        end = round(end + unit, digits)
    return start, end
