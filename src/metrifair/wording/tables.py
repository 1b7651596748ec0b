"""The tables of audits, comparisons and series: one description of each column.

Terminals, pages, Markdown and data frames read the same columns. A new figure of a table is one
``Column`` here, and its name in ``wording.terms``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeAlias

from metrifair.auditing.records import AuditRecord, Finding
from metrifair.figures.intervals import Interval
from metrifair.wording.findings import TESTS, describe, significance_text, test_draws
from metrifair.wording.metrics import criterion_name, metric_words
from metrifair.wording.numbers import (
    MISSING,
    interval_text,
    name_text,
    number_text,
    p_text,
)
from metrifair.wording.terms import term_name

Kind: TypeAlias = Literal["", "String", "Int64", "Float64", "Boolean", "Interval"]

FrameColumns: TypeAlias = dict[str, tuple[str, Callable[[Any], object]]]
"""The type and the value of each column of a data frame, by name."""


class Cell(NamedTuple):
    """What a table shows in one place: a text, and a second one in small print."""

    text: str
    small: str = ""

    @property
    def line(self) -> str:
        """Both on one line.

        >>> Cell("0.500", "0.400 to 0.600").line
        '0.500 (0.400 to 0.600)'
        """
        return f"{self.text} ({self.small})" if self.small else self.text


def field_of(row: Any, path: str) -> Any:
    """A field of a field, by the path to it; None if one on the way is None."""
    return reduce(lambda part, name: getattr(part, name, None), path.split("."), row)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    key
        Its name in data frames. An interval has two columns there, with ``_low`` and ``_high``.
    kind
        Its type in data frames; empty: only people read it.
    value
        The path to its value in a row, or a function of the row; by default the key.
    show
        The text of a value.
    interval
        The path to the interval of the value. ``ends`` makes the text of either end.
    note
        The small print of a row, instead of its interval.
    term
        The key of its name in ``wording.terms``; by default its own key.
    is_text
        Whether it contains words, which may break into lines, and no numbers.
    """

    key: str
    kind: Kind = "Float64"
    value: str | Callable[[Any], Any] = ""
    show: Callable[[Any], str] = number_text
    interval: str = ""
    ends: Callable[[float], str] = number_text
    note: Callable[[Any], str] | None = None
    term: str = ""
    is_text: bool = False

    @property
    def heading(self) -> str:
        """The name that people read."""
        return term_name(self.term or self.key)

    def value_in(self, row: Any) -> Any:
        """Its value in a row; None if it is missing."""
        if callable(self.value):
            return self.value(row)
        return field_of(row, self.value or self.key)

    def interval_in(self, row: Any) -> Interval | None:
        """The interval of its value in a row."""
        interval: Interval | None = field_of(row, self.interval) if self.interval else None
        return interval

    def cell(self, row: Any) -> Cell:
        """What it shows of a row."""
        value = self.value_in(row)
        text = MISSING if value is None else self.show(value)
        small = "" if self.note is None else self.note(row)
        interval = self.interval_in(row)
        if interval is not None and not small:
            small = interval_text(interval, self.ends)
        return Cell(text, small)

    def frame(self) -> FrameColumns:
        """Its columns in a data frame."""
        if not self.kind:
            return {}
        if self.kind == "Interval":
            return interval_columns(self.key, self.value_in)
        columns: FrameColumns = {self.key: (self.kind, self.value_in)}
        if self.interval:
            columns |= interval_columns(self.key, self.interval_in)
        return columns


def interval_columns(key: str, interval_in: Callable[[Any], Interval | None]) -> FrameColumns:
    """The ends of an interval as two columns of a data frame."""
    ends = ("low", "high")
    return {f"{key}_{end}": ("Float64", partial(_end, interval_in, end)) for end in ends}


def _end(interval_in: Callable[[Any], Interval | None], end: str, row: Any) -> float | None:
    value: float | None = getattr(interval_in(row), end, None)
    return value


def text_column(
    key: str,
    value: str | Callable[[Any], Any] = "",
    show: Callable[[Any], str] = str,
    kind: Kind = "String",
    **facts: Any,
) -> Column:
    """A column of names or words."""
    return Column(key, kind, value, show, is_text=True, **facts)


def count_column(key: str, value: str | Callable[[Any], Any] = "", **facts: Any) -> Column:
    """A column of counts."""
    return Column(key, "Int64", value, "{:,}".format, **facts)


class Table(dict[str, Column]):
    """The columns of a table by their keys."""

    def __init__(self, *columns: Column) -> None:
        super().__init__({column.key: column for column in columns})

    def pick(self, *keys: str) -> list[Column]:
        """Some columns, in this order."""
        return [self[key] for key in keys]

    def frame(self) -> FrameColumns:
        """The columns of a data frame."""
        return {name: facts for column in self.values() for name, facts in column.frame().items()}


def filled(columns: Iterable[Column], rows: Sequence[Any]) -> list[Column]:
    """The columns that have a value in any of the rows."""
    return [column for column in columns if any(column.value_in(row) is not None for row in rows)]


def groups_text(groups: Sequence[str]) -> str:
    """The compared groups.

    >>> groups_text(("women", "men ")), groups_text(())
    ('women vs “men ”', 'all groups')
    """
    return " vs ".join(map(name_text, groups)) or "all groups"


# ---- Findings -----------------------------------------------------------------------------------

FINDING_KEYS = (
    "groups",
    "attribute",
    "within",
    "metric",
    "value",
    "divided",
    "interval",
    "joint",
    "p_value",
    "significance",
    "sizes",
)
"""The columns of findings that people read, in their order."""


def finding_table(record: AuditRecord) -> Table:
    """The columns of findings; the permutations of an audit limit its p-values."""
    return Table(
        text_column("groups", show=groups_text, kind="", note=attrgetter("attribute")),
        text_column("attribute"),
        text_column("criterion"),
        text_column("within", note=lambda finding: criterion_name(finding.criterion)),
        text_column("group", lambda finding: finding.groups[0]),
        text_column("other_group", lambda finding: finding.groups[1]),
        count_column("size", lambda finding: finding.sizes[0]),
        count_column("other_size", lambda finding: finding.sizes[1]),
        text_column("metric", show=lambda metric: metric_words(metric).short),
        Column("value"),
        Column("lower", value=lambda finding: _bracket(finding).low),
        Column("upper", value=lambda finding: _bracket(finding).high),
        Column("bracket", "", show=interval_text),
        Column("unbiased"),
        Column("interval", "Interval", show=interval_text),
        Column("certified"),
        Column("certified_jointly"),
        Column("p_value", show=partial(p_text, draws=test_draws(record))),
        Column("joint", "Interval", "joint_interval", interval_text, term="joint_interval"),
        Column("r2", value="divided.r2", term="probability_r2"),
        Column("divided", value="divided.value", interval="divided.interval"),
        Column("divided_joint", "Interval", "divided.joint_interval", interval_text),
        text_column(
            "significance",
            lambda finding: significance_text(finding) or None,
            note=lambda finding: TESTS[finding.tested_by],
            term="significant",
        ),
        text_column("tested_by", lambda finding: TESTS[finding.tested_by] or None),
        Column("detectable"),
        text_column("sentence", lambda finding: describe(finding).sentence),
        text_column("meaning", lambda finding: describe(finding).meaning),
        Column("sizes", "", "sizes", "{0[0]:,} / {0[1]:,}".format, term="rows"),
    )


def _bracket(finding: Finding) -> Interval:
    """The proven bounds of a value; the value itself if it is exact."""
    return finding.bracket or Interval(finding.value, finding.value)


def finding_columns(record: AuditRecord, findings: Sequence[Finding]) -> list[Column]:
    """The columns of a table of findings: figures that no finding has get none.

    >>> finding = Finding("sex", "statistical_parity", "everyone", ("f", "m"), (90, 90), "energy", 0.3)
    >>> columns = finding_columns(AuditRecord(180, 0, (0, 1), 0.95, [finding]), [finding])
    >>> [(column.heading, column.cell(finding).text) for column in columns[3:]]
    [('Distance', 'Energy'), ('Value', '0.300'), ('Rows', '90 / 90')]
    """
    always = ("groups", "attribute", "within", "metric", "value", "sizes")
    table = finding_table(record)
    shown = {column.key for column in filled(table.pick(*FINDING_KEYS), findings)}
    return table.pick(*(key for key in FINDING_KEYS if key in shown.union(always)))
