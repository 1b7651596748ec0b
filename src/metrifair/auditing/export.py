"""An audit as a table, as JSON and as a few lines of HTML."""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from typing import Any

import narwhals.stable.v2 as nw

from metrifair.problem.tables import Backend, frame
from metrifair.report.numbers import figure_text
from metrifair.results import AuditRecord, Finding

JSON_VERSION = 1

_COLUMNS: dict[str, Any] = {
    "attribute": nw.String,
    "criterion": nw.String,
    "within": nw.String,
    "group": nw.String,
    "other_group": nw.String,
    "size": nw.Int64,
    "other_size": nw.Int64,
    "metric": nw.String,
    "value": nw.Float64,
    "lower": nw.Float64,
    "upper": nw.Float64,
    "unbiased": nw.Float64,
    "interval_low": nw.Float64,
    "interval_high": nw.Float64,
    "certified": nw.Float64,
    "certified_jointly": nw.Float64,
    "paper_bound": nw.Float64,
    "p_value": nw.Float64,
    "sentence": nw.String,
    "meaning": nw.String,
}


def frame_of(record: AuditRecord, backend: Backend | None) -> Any:
    """One row for each finding; without a backend polars where it is installed, else pandas."""
    rows = [_row(finding) for finding in record.findings]
    return frame({name: [row[name] for row in rows] for name in _COLUMNS}, _COLUMNS, backend)


def _row(finding: Finding) -> dict[str, Any]:
    bracket, interval = finding.bracket, finding.interval
    return {
        "attribute": finding.attribute,
        "criterion": finding.criterion,
        "within": finding.within,
        "group": finding.groups[0],
        "other_group": finding.groups[1],
        "size": finding.sizes[0],
        "other_size": finding.sizes[1],
        "metric": finding.metric,
        "value": finding.value,
        "lower": bracket.low if bracket else finding.value,
        "upper": bracket.high if bracket else finding.value,
        "unbiased": finding.unbiased,
        "interval_low": interval.low if interval else None,
        "interval_high": interval.high if interval else None,
        "certified": finding.certified,
        "certified_jointly": finding.certified_jointly,
        "paper_bound": finding.paper_bound,
        "p_value": finding.p_value,
        "sentence": finding.sentence,
        "meaning": finding.meaning,
    }


def json_of(record: AuditRecord) -> str:
    """Strict JSON: the record's fields by name, None as null, no NaN."""
    content = {"kind": "metrifair audit", "version": JSON_VERSION, **asdict(record)}
    return json.dumps(content, allow_nan=False, indent=1)


def table_of(record: AuditRecord, *, most: int = 20) -> str:
    """The summary and the first findings as a piece of HTML; everything from the data escaped."""
    names = ("Attribute", "Criterion", "Within", "Groups", "Metric", "Value", "Interval", "Certified", "p")
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(one))}</tr>" for one in record.findings[:most]
    )
    left = len(record.findings) - most
    more = f"<p>and {left} more: to_frame() has them all</p>" if left > 0 else ""
    head = "".join(f"<th>{name}</th>" for name in names)
    told = "".join(f"<p>{escape(sentence)}</p>" for sentence in record.summary)
    return f"<div>{told}<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>{more}</div>"


def _cells(finding: Finding) -> tuple[str, ...]:
    interval = finding.interval
    return (
        finding.attribute,
        finding.criterion,
        finding.within,
        " / ".join(finding.groups),
        finding.metric,
        figure_text(finding.value),
        f"{figure_text(interval.low)} to {figure_text(interval.high)}" if interval else figure_text(None),
        figure_text(finding.certified),
        figure_text(finding.p_value),
    )
