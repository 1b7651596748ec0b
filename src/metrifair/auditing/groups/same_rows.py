"""Whether a search for groups is one of the rows and decisions of an audit."""

from __future__ import annotations

from metrifair.auditing.records import AuditRecord
from metrifair.auditing.search_records import SearchRecord
from metrifair.errors import DataError
from metrifair.problem.values import canonical

_REMEDY = "pass the labels, predictions and rows of the audit to find_groups"


def check_same_rows(audit: AuditRecord, search: SearchRecord) -> None:
    """Raise a DataError if the search is of other rows, decisions or labels than the audit."""
    if audit.settings.favorable == "low":
        raise DataError(
            "compares high scores as favorable, and this audit low ones",
            argument="group_search",
            remedy="audit scores whose high values are favorable",
        )
    _check_rows(audit, search)
    if (audit.clusters is None) != (search.clusters is None):
        raise DataError(
            "must have the clusters of the audit, or neither may have any",
            argument="group_search",
            remedy=_REMEDY,
        )
    thresholds = {table.threshold for table in audit.decisions}
    threshold = search.settings.threshold
    if threshold is not None and thresholds and threshold not in thresholds:
        raise DataError(
            f"must have the threshold of the audit, {min(thresholds):g}",
            argument="group_search",
            received=threshold,
            remedy=_REMEDY,
        )
    positive = search.settings.positive
    if positive and audit.settings.pos_label is not None:
        label = audit.settings.pos_label
        if canonical(positive) != label:
            raise DataError(
                f"must have the positive label of the audit, {label!r}",
                argument="group_search",
                received=positive,
                remedy=_REMEDY,
            )


def _check_rows(audit: AuditRecord, search: SearchRecord) -> None:
    """Rows with a missing group count in a search, and are excluded from an audit."""
    rows = search.rows + (search.search_rows or 0)
    has_label = search.outcome in ("missed positives", "false positives")
    least = 0 if has_label else audit.rows
    if least <= rows <= audit.rows + audit.left_out:
        return
    raise DataError(
        f"must have the {audit.rows:,} rows of the audit",
        argument="group_search",
        received=rows,
        remedy=_REMEDY,
    )
