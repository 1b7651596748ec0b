"""An audit as a table, as JSON and as a few lines of HTML."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from html import escape
from typing import Any

import narwhals.stable.v2 as nw

from metrifair.problem.tables import Backend, frame
from metrifair.report.numbers import figure_text
from metrifair.results import AuditRecord, Finding

JSON_VERSION = 1

_COLUMNS: dict[str, tuple[Any, Callable[[Finding], object]]] = {
    "attribute": (nw.String, lambda one: one.attribute),
    "criterion": (nw.String, lambda one: one.criterion),
    "within": (nw.String, lambda one: one.within),
    "group": (nw.String, lambda one: one.groups[0]),
    "other_group": (nw.String, lambda one: one.groups[1]),
    "size": (nw.Int64, lambda one: one.sizes[0]),
    "other_size": (nw.Int64, lambda one: one.sizes[1]),
    "metric": (nw.String, lambda one: one.metric),
    "value": (nw.Float64, lambda one: one.value),
    "lower": (nw.Float64, lambda one: one.bracket.low if one.bracket else one.value),
    "upper": (nw.Float64, lambda one: one.bracket.high if one.bracket else one.value),
    "unbiased": (nw.Float64, lambda one: one.unbiased),
    "interval_low": (nw.Float64, lambda one: one.interval.low if one.interval else None),
    "interval_high": (nw.Float64, lambda one: one.interval.high if one.interval else None),
    "certified": (nw.Float64, lambda one: one.certified),
    "certified_jointly": (nw.Float64, lambda one: one.certified_jointly),
    "paper_bound": (nw.Float64, lambda one: one.paper_bound),
    "p_value": (nw.Float64, lambda one: one.p_value),
    "sentence": (nw.String, lambda one: one.sentence),
    "meaning": (nw.String, lambda one: one.meaning),
}


def frame_of(record: AuditRecord, backend: Backend | None) -> Any:
    """One row for each finding; without a backend polars where it is installed, else pandas."""
    columns = {name: [figure(one) for one in record.findings] for name, (_, figure) in _COLUMNS.items()}
    return frame(columns, {name: kind for name, (kind, _) in _COLUMNS.items()}, backend)


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
