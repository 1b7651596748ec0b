"""The tables and the JSON of an audit, from its record."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from metrifair.auditing.records import AuditRecord
from metrifair.wording.notes import note_text
from metrifair.wording.summary import audit_summary

JSON_VERSION = 1


def audit_fields(record: AuditRecord) -> dict[str, Any]:
    """The fields of the JSON of an audit, with its notes in words, and its search for groups if it
    has one.
    """
    notes = [{**asdict(note), "text": note_text(note)} for note in record.notes]
    fields = {
        "kind": "metrifair audit",
        "version": JSON_VERSION,
        "summary": audit_summary(record),
        **asdict(record),
        "notes": notes,
    }
    if record.group_search is None:
        del fields["group_search"]
    return fields
