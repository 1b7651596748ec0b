"""The tables and the JSON of an audit, from its record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial, reduce
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, TypeAlias

from metrifair.auditing.records import AuditRecord
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
