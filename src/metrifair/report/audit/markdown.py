"""An audit as Markdown: its summary, tables by group and the first distances; and a head in
YAML.
"""

from __future__ import annotations

import re
from collections.abc import (
    Iterable,
    Mapping,
    Sequence,
)
from typing import Any, TypeAlias

from metrifair.auditing.ranking import shown_findings, sort_findings
from metrifair.auditing.records import FIGURES_OF_GROUPS, AuditRecord
from metrifair.support.provenance import Provenance
from metrifair.wording.groups import GROUP_KEYS, group_table
from metrifair.wording.notes import note_text
from metrifair.wording.numbers import (
    confidence_text,
    number_text,
)
from metrifair.wording.provenance import provenance_lines
from metrifair.wording.summary import audit_summary
from metrifair.wording.tables import (
    FIGURES_BY_GROUP,
    Column,
    estimate_rows,
    figure_rows,
    filled,
    finding_table,
    rate_columns,
    rate_rows,
)

YamlValue: TypeAlias = "str | int | float | Mapping[str, YamlValue] | Sequence[YamlValue]"

MOST_TABLES = 4
_MOST_FINDINGS = 10
_FINDING_KEYS = (
    "groups",
    "within",
    "metric",
    "value",
    "divided",
    "joint",
    "significance",
)


def audit_markdown(record: AuditRecord) -> Iterable[str]:
    """The summary, the notes, tables by group, and the distances with the most evidence."""
    yield _listed(audit_summary(record))
    if record.notes:
        yield from ("**Notes**", _listed(map(note_text, record.notes)))
    if record.proxy is not None and record.proxy.estimates:
        yield f"**Weighted by {markdown_text(record.proxy.attribute)}**"
        yield markdown_table(*estimate_rows(record.proxy.estimates))
    for part in record.by_group[:MOST_TABLES]:
        yield f"**{markdown_text(f'{part.attribute}, {part.within}')}** (intervals of single figures)"
        groups = figure_rows(part)
        yield table_markdown(
            filled(FIGURES_BY_GROUP.pick("group", "rows", *FIGURES_OF_GROUPS), groups), groups
        )
    for table in record.decisions[:MOST_TABLES]:
        place_name = markdown_text(f"{table.attribute}, {table.within}")
        yield f"**Decisions at {number_text(table.threshold)}: {place_name}**"
        yield table_markdown(rate_columns(table), rate_rows(table))
    search = record.group_search
    if search is not None and search.worse:
        yield "**Groups that are worse**, found by a search"
        yield table_markdown(group_table(search).pick(*GROUP_KEYS), search.listed)
    findings = shown_findings(record.findings)
    ranked = sort_findings(findings)[:_MOST_FINDINGS]
    if ranked:
        yield (
            f"**Distances**, those with the most evidence first ({len(ranked)} of "
            f"{len(findings)}), with joint "
            f"{confidence_text(record.confidence)} confidence intervals."
        )
        yield table_markdown(filled(finding_table(record).pick(*_FINDING_KEYS), ranked), ranked)
    yield from origin_markdown(record.provenance)


def _listed(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {markdown_text(sentence)}" for sentence in sentences)


def origin_markdown(provenance: Provenance) -> Iterable[str]:
    """Where figures come from."""
    if lines := provenance_lines(provenance):
        yield from ("**Where this comes from**", markdown_table(("", ""), lines))


def table_markdown(columns: Sequence[Column], rows: Iterable[Any]) -> str:
    """The columns of some rows as a table in Markdown."""
    lines = ([column.cell(row).line for column in columns] for row in rows)
    return markdown_table([column.heading for column in columns], lines)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; names from the data are escaped."""
    lines = [
        head,
        ["---"] * len(head),
        *(tuple(markdown_text(cell) for cell in row) for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_text(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    >>> print(markdown_text("a|b <i>\n*c*"))
    a\|b \<i\> \*c\*
    """
    plain = re.sub(
        r"([\\`*_\[\]<>&|~$@]|:(?=//)|(?<=www)\.|^[#+=-])", r"\\\1", " ".join(text.split())
    )
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", plain)  # else a list begins


def yaml_lines(value: Mapping[str, YamlValue], indent: str = "") -> Iterable[str]:
    """Lines of YAML; every text is quoted, and empty values are omitted.

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
            for line in inner:
                if isinstance(line, Mapping):
                    lines = list(yaml_lines(line, indent + "  "))
                else:
                    lines = [f"  {_scalar(line)}\n"]
                yield f"{indent}- {lines[0].strip()}\n"
                yield from lines[1:]


def _scalar(value: YamlValue) -> str:
    """A number, or text in quotes with everything escaped that a reader of YAML could take for
    something else.
    """
    if not isinstance(value, str):
        text = repr(value)
        # else YAML 1.1 reads a text
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    plain = value.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"' + "".join(sign if sign.isprintable() else f"\\U{ord(sign):08x}" for sign in plain) + '"'
    )
