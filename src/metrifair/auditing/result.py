"""The audit of rows in memory: its record, and the rows that a comparison of two models looks at again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from metrifair.auditing.decisions import selection_of
from metrifair.auditing.record import audit_record
from metrifair.auditing.records import AuditRecord
from metrifair.auditing.request import Request
from metrifair.auditing.sample import AuditSample
from metrifair.support.provenance import call_text, made_now, said_of


class AuditedRows(NamedTuple):
    """Rows in memory, and what was asked of them."""

    sample: AuditSample
    request: Request
    origin: object = None  # the call they were passed to: audits of one call share their rows


@dataclass(frozen=True, eq=False)
class AuditResult:
    """The record of an audit, and its rows where they are in memory."""

    record: AuditRecord
    rows: AuditedRows | None = None

    def with_provenance(self, function: Callable[..., Any], arguments: Mapping[str, Any], **facts: Any) -> AuditResult:
        """Add the call, the versions, the time and further ``facts`` to the record's provenance."""
        provenance = replace(
            self.record.provenance,
            **said_of(arguments.get("title"), arguments.get("about")),
            call=call_text(function, arguments),
            **facts,
            **made_now(),
        )
        return replace(self, record=replace(self.record, provenance=provenance))


def audit_rows(
    sample: AuditSample, request: Request, generator: np.random.Generator, origin: object = None
) -> AuditResult:
    """Audit rows that are in memory."""
    request = request.completed(sample.problem, *sample.ends, probabilities=sample.probabilities)
    record = audit_record(sample, request, generator, selection_of(sample, request))
    return AuditResult(record, AuditedRows(sample, request, origin))
