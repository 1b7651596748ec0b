"""The tables and the JSON of an audit, from its record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial, reduce
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, TypeAlias

from metrifair.auditing.records import AuditRecord
from metrifair.wording.findings import TESTS, describe, significance_text
from metrifair.wording.notes import note_text
from metrifair.wording.summary import audit_summary

JSON_VERSION = 1

FrameColumns: TypeAlias = dict[str, tuple[str, Callable[[Any], object]]]
"""The type and the value of each column of a data frame, by name."""


def field_columns(kind: str, *names: str) -> FrameColumns:
    """Columns of the fields of a record, under their names."""
    return {name: (kind, attrgetter(name)) for name in names}


def interval_columns(name: str, field: str) -> FrameColumns:
    """The ends of a field that is an interval or None, as two columns."""
    return {
        f"{name}_low": ("Float64", lambda row: getattr(getattr(row, field), "low", None)),
        f"{name}_high": ("Float64", lambda row: getattr(getattr(row, field), "high", None)),
    }


def attrgetter_or_none(path: str) -> Callable[[Any], Any]:
    """A field of a field, by the path to it; None where one on the way is None."""
    return lambda row: reduce(lambda part, name: getattr(part, name, None), path.split("."), row)


_DIVIDED = {
    "r2": "r2",
    "divided": "value",
    "divided_low": "interval.low",
    "divided_high": "interval.high",
    "divided_joint_low": "joint_interval.low",
    "divided_joint_high": "joint_interval.high",
}
"""The columns of the second end of a distance by group probabilities, and their fields in
``Divided``.
"""

FINDING_COLUMNS: FrameColumns = {
    **field_columns("String", "attribute", "criterion", "within"),
    "group": ("String", lambda finding: finding.groups[0]),
    "other_group": ("String", lambda finding: finding.groups[1]),
    "size": ("Int64", lambda finding: finding.sizes[0]),
    "other_size": ("Int64", lambda finding: finding.sizes[1]),
    **field_columns("String", "metric"),
    **field_columns("Float64", "value"),
    "lower": ("Float64", lambda finding: finding.bracket.low if finding.bracket else finding.value),
    "upper": (
        "Float64",
        lambda finding: finding.bracket.high if finding.bracket else finding.value,
    ),
    **field_columns("Float64", "unbiased"),
    **interval_columns("interval", "interval"),
    **field_columns("Float64", "certified", "certified_jointly", "p_value"),
    **interval_columns("joint", "joint_interval"),
    **{name: ("Float64", attrgetter_or_none(f"divided.{path}")) for name, path in _DIVIDED.items()},
    "significance": ("String", lambda finding: significance_text(finding) or None),
    "tested_by": ("String", lambda finding: TESTS[finding.tested_by] or None),
    **field_columns("Float64", "detectable"),
    "sentence": ("String", lambda finding: describe(finding).sentence),
    "meaning": ("String", lambda finding: describe(finding).meaning),
}


_RATE_COLUMNS: FrameColumns = {
    "standard": ("String", lambda row: row.standard or None),
    **field_columns("String", "attribute", "within", "group"),
    "rows": ("Int64", attrgetter("size")),
    **field_columns("Float64", "share"),
    **field_columns("Int64", "selected"),
    "rate": ("Float64", attrgetter("selection_rate")),
    **interval_columns("rate", "interval"),
    **field_columns("String", "reference"),
    **field_columns("Float64", "ratio"),
    **interval_columns("ratio", "ratio_interval"),
    "fisher_p": ("Float64", attrgetter("p_value")),
    **field_columns("Int64", "shortfall"),
    "left_out": ("String", lambda row: row.left_out or None),
    "too_few": ("Boolean", attrgetter("few")),
    **field_columns(
        "Float64", "mean_difference", "accuracy", "true_positive_rate", "false_positive_rate"
    ),
    **field_columns("String", "selected_by"),
    **field_columns("Float64", "threshold"),
    **field_columns("String", "favorable"),
}
"""Of the fields of a table and of one of its groups together."""


def _decile_ratio(at: int, row: Any) -> float | None:
    return row.decile_ratios[at] if row.decile_ratios else None


def rates_table(record: AuditRecord) -> tuple[Sequence[Any], FrameColumns]:
    """One row for each group of each table of decisions, and the columns of a data frame of them."""
    rows = [
        SimpleNamespace(**vars(table), **vars(rate))
        for table in record.decisions
        for rate in (*table.rates, table.unknown)
        if rate is not None
    ]
    columns = dict(_RATE_COLUMNS)
    if any(row.decile_ratios for row in rows):
        for at in range(9):
            columns[f"ratio_at_{10 * (at + 1)}"] = "Float64", partial(_decile_ratio, at)
    return rows, columns


def audit_fields(record: AuditRecord) -> dict[str, Any]:
    """The fields of the JSON of an audit, with its notes in words."""
    notes = [{**asdict(note), "text": note_text(note)} for note in record.notes]
    return {
        "kind": "metrifair audit",
        "version": JSON_VERSION,
        "summary": audit_summary(record),
        **asdict(record),
        "notes": notes,
    }
