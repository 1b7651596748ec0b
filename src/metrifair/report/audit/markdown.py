"""An audit as Markdown: its summary, tables by group and the first distances; and a head in YAML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from metrifair.auditing.ranking import most_certain_first, shown_findings
from metrifair.auditing.records import AuditRecord, Measure
from metrifair.figures.intervals import Interval
from metrifair.support.provenance import Provenance
from metrifair.wording.findings import measure_text
from metrifair.wording.glossary import FIGURES
from metrifair.wording.metrics import criterion_name, metric_words
from metrifair.wording.numbers import confidence_text, interval_text, number_text, percent_text
from metrifair.wording.provenance import provenance_lines
from metrifair.wording.proxies import HEADINGS, estimate_row
from metrifair.wording.summary import audit_summary

Value: TypeAlias = "str | int | float | Mapping[str, Value] | Sequence[Value]"

MOST_TABLES = 4
_MOST_FINDINGS = 10


def audit_markdown(record: AuditRecord) -> Iterable[str]:
    """The summary, tables by group, and the distances with the most evidence."""
    yield "\n".join(f"- {markdown_text(sentence)}" for sentence in audit_summary(record))
    if record.proxy is not None and record.proxy.estimates:
        yield f"**Weighted by {markdown_text(record.proxy.attribute)}**"
        yield markdown_table(HEADINGS, map(estimate_row, record.proxy.estimates))
    for found in record.by_group[:MOST_TABLES]:
        known = [key for key in FIGURES if any(getattr(one, key) is not None for one in found.groups)]
        yield f"**{markdown_text(f'{found.attribute}, {found.within}')}** (intervals of single figures)"
        rows = ((one.group, f"{one.size:,}", *(_measure(getattr(one, key)) for key in known)) for one in found.groups)
        yield markdown_table(("Group", "Rows", *(FIGURES[key] for key in known)), rows)
    for table in record.decisions[:MOST_TABLES]:
        named = markdown_text(f"{table.attribute}, {table.within}")
        yield f"**Decisions at {number_text(table.threshold)}: {named}**"
        rates = []
        for own in table.rates:
            selected = percent_text(own.selection_rate) + _bounds(own.interval, percent_text)
            rates.append((own.group, f"{own.size:,}", selected, number_text(own.ratio) + _bounds(own.ratio_interval)))
        yield markdown_table(("Group", "Rows", "Selection rate", "Impact ratio"), rates)
    findings = shown_findings(record.findings)
    shown = most_certain_first(findings)[:_MOST_FINDINGS]
    if shown:
        yield (
            f"**Distances**, those with the most evidence first ({len(shown)} of {len(findings)}), with joint "
            f"{confidence_text(record.confidence)} confidence intervals."
        )
        distances = []
        for one in shown:
            bounds = _bounds(one.joint_interval) if one.enough else " (too few rows)"
            place = f"{one.attribute}: {' / '.join(one.groups)}", one.within, criterion_name(one.criterion)
            distances.append((*place, metric_words(one.metric).name, number_text(one.value) + bounds))
        yield markdown_table(("Groups", "Among", "Criterion", "Distance", "Value (interval)"), distances)
    yield from origin_markdown(record.provenance)


def origin_markdown(provenance: Provenance) -> Iterable[str]:
    """Where figures come from."""
    if lines := provenance_lines(provenance):
        yield from ("**Where this comes from**", markdown_table(("", ""), lines))


def _measure(found: Measure | None) -> str:
    return measure_text(found) + _bounds(None if found is None else found.interval)


def _bounds(interval: Interval | None, show: Callable[[float], str] = number_text) -> str:
    return "" if interval is None else f" ({interval_text(interval, show)})"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; whatever the data call things is text."""
    lines = [head, ["---"] * len(head), *(tuple(markdown_text(cell) for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_text(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    >>> print(markdown_text("a|b <i>\n*c*"))
    a\|b \<i\> \*c\*
    """
    plain = re.sub(r"([\\`*_\[\]<>&|~$@]|:(?=//)|(?<=www)\.|^[#+=-])", r"\\\1", " ".join(text.split()))
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", plain)  # else a list begins


def yaml_lines(value: Mapping[str, Value], indent: str = "") -> Iterable[str]:
    """Lines of YAML; every text is quoted, what is empty left out.

    >>> print(*yaml_lines({"name": 'no: "x"', "tags": ["yes"], "z": [], "of": [{"value": 1e-05, "type": "f"}]}), sep="")
    name: "no: \\"x\\""
    tags:
    - "yes"
    of:
    - value: 1.0e-05
      type: "f"
    <BLANKLINE>
    """
    for key, inner in value.items():
        if isinstance(inner, str | int | float):
            yield f"{indent}{key}: {_scalar(inner)}\n"
        elif isinstance(inner, Mapping):
            yield f"{indent}{key}:\n"
            yield from yaml_lines(inner, indent + "  ")
        elif inner:
            yield f"{indent}{key}:\n"
            for one in inner:
                lines = list(yaml_lines(one, indent + "  ")) if isinstance(one, Mapping) else [f"  {_scalar(one)}\n"]
                yield f"{indent}- {lines[0].strip()}\n"
                yield from lines[1:]


def _scalar(value: Value) -> str:
    """A number, or text in quotes with everything escaped that a reader of YAML could take for something else."""
    if not isinstance(value, str):
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")  # else YAML 1.1 reads a text
    plain = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(sign if sign.isprintable() else f"\\U{ord(sign):08x}" for sign in plain) + '"'
