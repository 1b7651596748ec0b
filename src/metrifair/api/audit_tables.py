"""The JSON of results: of an audit, from its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from metrifair.auditing.records import AuditRecord
from metrifair.wording.notes import note_text
from metrifair.wording.summary import audit_summary

JSON_VERSION = 1
"""The version of the JSON of all results."""


def result_fields(kind: str, summary: Sequence[str], **fields: Any) -> dict[str, Any]:
    """The fields of the JSON of a result.

    >>> result_fields("series", ["No distance has changed."], looks=["May"])
    {'kind': 'metrifair series', 'version': 1, 'summary': ['No distance has changed.'], 'looks': ['May']}
    """
    return {"kind": f"metrifair {kind}", "version": JSON_VERSION, "summary": summary, **fields}


def audit_fields(record: AuditRecord) -> dict[str, Any]:
    """The fields of the JSON of an audit, with its notes in words, and its search for groups if it
    has one.
    """
    notes = [{**asdict(note), "text": note_text(note)} for note in record.notes]
    fields = result_fields("audit", audit_summary(record), **{**asdict(record), "notes": notes})
    if record.group_search is None:
        del fields["group_search"]
    return fields
