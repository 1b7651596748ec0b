"""What an audit found, as Markdown: sentences, tables by group, and the distances that are most certain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from metrifair.provenance import Provenance
from metrifair.report.audit.by_group import FIGURES, measure_text
from metrifair.report.audit.glossary import criterion_name, metric_words
from metrifair.report.audit.words import most_certain_first
from metrifair.report.numbers import number_text, percent_text
from metrifair.results import AuditRecord, Interval, Measure

MOST_TABLES = 4
_MOST_FINDINGS = 10


def audit_markdown(record: AuditRecord) -> Iterable[str]:
    """What an audit found: in sentences, by group, and the distances that are most certain."""
    yield "\n".join(f"- {markdown_text(sentence)}" for sentence in record.summary)
    for found in record.by_group[:MOST_TABLES]:
        known = [key for key in FIGURES if any(getattr(one, key) is not None for one in found.groups)]
        yield f"**{markdown_text(f'{found.attribute}, {found.within}')}** (each interval of one figure by itself)"
        rows = ((one.group, f"{one.size:,}", *(_measure(getattr(one, key)) for key in known)) for one in found.groups)
        yield markdown_table(("Group", "Rows", *(FIGURES[key] for key in known)), rows)
    for table in record.decisions[:MOST_TABLES]:
        named = markdown_text(f"{table.attribute}, {table.within}")
        yield f"**Decisions at {number_text(table.threshold)}: {named}**"
        rates = []
        for own in table.rates:
            selected = percent_text(own.selection_rate) + _bounds(own.interval, percent_text)
            rates.append((own.group, f"{own.size:,}", selected, number_text(own.ratio) + _bounds(own.ratio_interval)))
        yield markdown_table(("Group", "Rows", "Selected", "Ratio to the reference"), rates)
    shown = most_certain_first(record.findings)[:_MOST_FINDINGS]
    if shown:
        yield (
            f"**Distances**, the most certain first ({len(shown)} of {len(record.findings)}); intervals hold for all "
            f"comparisons at once, with {percent_text(record.confidence)} confidence."
        )
        distances = []
        for one in shown:
            who, bounds = (
                " / ".join(one.groups),
                _bounds(one.joint_interval) if one.enough else " (too few rows to tell)",
            )
            place = f"{one.attribute}: {who}", one.within, criterion_name(one.criterion)
            distances.append((*place, metric_words(one.metric).name, number_text(one.value) + bounds))
        yield markdown_table(("Groups", "Among", "Criterion", "Distance", "Value (interval)"), distances)
    yield from origin_markdown(record.provenance)


def origin_markdown(provenance: Provenance) -> Iterable[str]:
    """Where figures come from, as far as it is known."""
    if lines := provenance.lines():
        yield from ("**Where this comes from**", markdown_table(("", ""), lines))


def _measure(found: Measure | None) -> str:
    return measure_text(found) + _bounds(None if found is None else found.interval)


def _bounds(interval: Interval | None, show: Callable[[float], str] = number_text) -> str:
    return "" if interval is None else f" ({show(interval.low)} to {show(interval.high)})"


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
