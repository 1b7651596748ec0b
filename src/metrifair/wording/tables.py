"""The tables of audits, comparisons and series: one description of each column.

Terminals, pages, Markdown and data frames read the same columns. A new figure of a table is one
``Column`` here, and its name in ``wording.terms``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, TypeAlias

from metrifair.auditing.ranking import reference_pair
from metrifair.auditing.records import (
    FIGURES_OF_GROUPS,
    AuditRecord,
    ByGroup,
    Decisions,
    Finding,
    Measure,
    MeasuresByGroup,
    ProxyEstimate,
)
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import FOUR_FIFTHS, STANDARDS, is_below
from metrifair.figures.two_rates import odds_ratio, odds_ratio_interval, standard_deviations
from metrifair.wording.compare import VERDICTS, topic_name
from metrifair.wording.findings import (
    OTHERS,
    TESTS,
    describe,
    measure_text,
    significance_text,
    test_draws,
)
from metrifair.wording.metrics import criterion_name, metric_words
from metrifair.wording.numbers import (
    NO_NUMBER,
    figure_text,
    interval_text,
    listed,
    name_text,
    number_text,
    p_text,
    percent_text,
    quoted,
)
from metrifair.wording.rates import STANDARD_WORDS
from metrifair.wording.terms import term_name

ColumnType: TypeAlias = Literal["", "String", "Int64", "Float64", "Boolean", "Ends"]

FrameColumns: TypeAlias = dict[str, tuple[str, Callable[[Any], Any]]]
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


def field_of(row: Any, path: str | Callable[[Any], Any]) -> Any:
    """A field of a field, by the path to it, or a function of the row; None if a part is None."""
    if callable(path):
        return path(row)
    return reduce(lambda part, name: getattr(part, name, None), path.split("."), row)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    key
        Its name in data frames, followed by ``_low`` and ``_high`` for the ends of an interval.
    kind
        Its type in data frames; "Ends": an interval, of which they have both ends; empty: only
        people read it.
    value
        The path to its value in a row, or a function of the row; by default the key.
    show
        The text of a value.
    interval
        The path to the interval of the value, or a function of the row. ``ends`` makes the text of
        either end.
    note
        The small print of a row, instead of its interval.
    term
        The key of its heading in ``wording.terms``; by default its own key.
    title
        A heading that the user gave, such as the name of an audit.
    is_text
        Whether it contains words, which may break into lines, and no numbers.
    """

    key: str
    kind: ColumnType = "Float64"
    value: str | Callable[[Any], Any] = ""
    show: Callable[[Any], str] = number_text
    interval: str | Callable[[Any], Interval | None] = ""
    ends: Callable[[float], str] = number_text
    note: Callable[[Any], str] | None = None
    term: str = ""
    title: str = ""
    is_text: bool = False

    @property
    def heading(self) -> str:
        """The name that people read."""
        return self.title or term_name(self.term or self.key)

    def value_in(self, row: Any) -> Any:
        """Its value in a row; None if it is missing."""
        return field_of(row, self.value or self.key)

    def interval_in(self, row: Any) -> Interval | None:
        """The interval of its value in a row."""
        interval: Interval | None = field_of(row, self.interval) if self.interval else None
        return interval

    def cell(self, row: Any) -> Cell:
        """What it shows of a row."""
        value = self.value_in(row)
        text = NO_NUMBER if value is None else self.show(value)
        small = "" if self.note is None else self.note(row)
        interval = self.interval_in(row)
        if interval is not None and not small:
            small = interval_text(interval, self.ends)
        return Cell(text, small)

    def frame(self) -> FrameColumns:
        """Its columns in a data frame."""
        if not self.kind:
            return {}
        if self.kind == "Ends":
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
    kind: ColumnType = "String",
    **facts: Any,
) -> Column:
    """A column of names or words."""
    return Column(key, kind, value, show, is_text=True, **facts)


def count_column(key: str, value: str | Callable[[Any], Any] = "", **facts: Any) -> Column:
    """A column of counts."""
    return Column(key, "Int64", value, "{:,}".format, **facts)


class ColumnTable(dict[str, Column]):
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

FINDING_DETAILS = (
    "value",
    "divided",
    "r2",
    "bracket",
    "unbiased",
    "interval",
    "joint",
    "significance",
    "certified",
    "certified_jointly",
    "p_value",
)
"""The figures of one finding, which a page shows below it, in their order."""


def finding_table(record: AuditRecord) -> ColumnTable:
    """The columns of findings; the permutations of an audit limit its p-values."""
    return ColumnTable(
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
        Column("interval", "Ends", show=interval_text),
        Column("certified"),
        Column("certified_jointly"),
        Column("p_value", show=partial(p_text, draws=test_draws(record))),
        Column("joint", "Ends", "joint_interval", interval_text, term="joint_interval"),
        Column("r2", value="divided.r2", term="probability_r2"),
        Column("divided", value="divided.value", interval="divided.interval"),
        Column("divided_joint", "Ends", "divided.joint_interval", interval_text),
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


# ---- Groups: decisions and rates, figures, metrics ----------------------------------------------


class GroupRow(NamedTuple):
    """A group of a table, as a row."""

    table: Any
    group: Any


def rate_rows(table: Decisions) -> list[GroupRow]:
    """The groups of a table of decisions, and the rows with a missing group."""
    unknown = [] if table.unknown is None else [table.unknown]
    return [GroupRow(table, rate) for rate in (*table.rates, *unknown)]


def _ratio_note(row: GroupRow) -> str:
    """Why a ratio has no interval of its own."""
    if row.group.left_out:
        return "excluded"
    is_reference = row.group.group == row.table.reference and row.group is not row.table.unknown
    return "reference" if is_reference else ""


def _below(row: GroupRow) -> str | None:
    ratio = row.group.ratio
    return "below" if ratio is not None and is_below(ratio) else None


def _deviations(row: GroupRow) -> float | None:
    """The difference from the reference's rate in standard deviations, as Fisher's p tests it."""
    pair = reference_pair(row.table, row.group)
    if pair is None:
        return None
    return standard_deviations(pair)


def _odds_ratio(row: GroupRow) -> float | None:
    """The odds ratio to the reference; none if a count of 0 leaves it without an interval."""
    pair = reference_pair(row.table, row.group)
    if pair is None or odds_ratio_interval(pair, 0.5) is None:
        return None
    return odds_ratio(pair)


RATES = ColumnTable(
    text_column("standard", lambda row: row.table.standard or None),
    text_column("attribute", "table.attribute"),
    text_column("within", "table.within"),
    text_column(
        "group", "group.group", name_text, note=lambda row: "too few rows" if row.group.few else ""
    ),
    count_column("rows", "group.size"),
    Column("share", value="group.share", show=percent_text),
    count_column("selected", "group.selected"),
    Column(
        "rate",
        value="group.selection_rate",
        show=percent_text,
        interval="group.interval",
        ends=percent_text,
        term="selection_rate",
    ),
    text_column("reference", "table.reference"),
    Column(
        "ratio",
        value="group.ratio",
        show=partial(number_text, limit=FOUR_FIFTHS),
        interval="group.ratio_interval",
        note=_ratio_note,
        term="selection_ratio",
    ),
    Column("fisher_p", value="group.p_value", show=p_text),
    Column(
        "standard_deviations",
        value=_deviations,
        show=partial(figure_text, digits=2, signed=True),
    ),
    Column("odds_ratio", value=_odds_ratio, show=partial(figure_text, digits=2)),
    count_column("shortfall", "group.shortfall"),
    text_column("left_out", lambda row: row.group.left_out or None),
    Column("too_few", "Boolean", "group.few"),
    Column(
        "mean_difference",
        value="group.mean_difference",
        show=partial(figure_text, digits=2, signed=True),
    ),
    Column("accuracy", value="group.accuracy", show=percent_text),
    Column("true_positive_rate", value="group.true_positive_rate", show=percent_text),
    Column("false_positive_rate", value="group.false_positive_rate", show=percent_text),
    text_column("selected_by", "table.selected_by"),
    Column("threshold", value="table.threshold"),
    text_column("favorable", "table.favorable"),
    Column("below", "", _below, str),
)
"""The columns of decisions and rates."""


def _decile_ratio(place: int, row: GroupRow) -> float | None:
    ratios: Sequence[float | None] = row.group.decile_ratios
    return ratios[place] if ratios else None


DECILES = ColumnTable(
    *(
        Column(
            f"ratio_at_{percent}",
            value=partial(_decile_ratio, place),
            show=partial(figure_text, digits=2),
            title=f"{percent}%",
        )
        for place, percent in enumerate(range(10, 100, 10))
    )
)
"""The impact ratio if all rows beyond each decile of the score were selected."""

_IF_KNOWN = (
    "selected",
    "fisher_p",
    "standard_deviations",
    "odds_ratio",
    "shortfall",
    "true_positive_rate",
    "false_positive_rate",
)


def rate_term(table: Decisions) -> str:
    """What the rates of a table are called: of standards that count scores beyond the median,
    scoring rates.
    """
    return "scoring_rate" if table.selected_by == "median" else "selection_rate"


def rates_title(tables: Sequence[Decisions]) -> str:
    """The title of the tables of a standard, with the attributes that they have."""
    attributes = list(dict.fromkeys(table.attribute for table in tables))
    rates = f"{term_name(rate_term(tables[0]))}s"
    title = STANDARD_WORDS[tables[0].standard].title
    return title.format(rates=rates, attributes=listed(attributes))


def rate_columns(table: Decisions) -> list[Column]:
    """The columns of a table of decisions that people read, by its standard."""
    columns = RATES.pick(*STANDARDS[table.standard].columns)
    known = filled(columns, rate_rows(table))
    columns = [
        replace(column, term=rate_term(table)) if column.key == "rate" else column
        for column in columns
    ]
    absent = set(_IF_KNOWN) - {column.key for column in known}
    return [column for column in columns if column.key not in absent]


def rate_frame(record: AuditRecord) -> tuple[list[GroupRow], FrameColumns]:
    """One row for each group of each table of decisions, and the columns of a data frame of them."""
    rows = [row for table in record.decisions for row in rate_rows(table)]
    if not any(row.group.decile_ratios for row in rows):
        return rows, RATES.frame()
    return rows, RATES.frame() | DECILES.frame()


def measure_column(key: str, value: str | Callable[[Any], Measure | None]) -> Column:
    """A figure with its interval, or with the proven bounds of its value."""

    def interval(row: Any) -> Interval | None:
        return getattr(field_of(row, value), "interval", None)

    return Column(key, "", value, measure_text, interval)


_GROUP = (
    text_column("attribute", "table.attribute"),
    text_column("within", "table.within"),
    text_column("group", "group.group", name_text),
    count_column("rows", "group.size"),
)

FIGURES_BY_GROUP = ColumnTable(
    *_GROUP, *(measure_column(figure, f"group.{figure}") for figure in FIGURES_OF_GROUPS)
)
"""The columns of figures by group."""


def figure_rows(table: ByGroup | MeasuresByGroup) -> list[GroupRow]:
    """The groups of a table of figures or metrics."""
    return [GroupRow(table, group) for group in table.groups]


def metric_table(table: MeasuresByGroup) -> ColumnTable:
    """The columns of metrics by group: those of the user, or the figures of every audit."""
    return ColumnTable(
        *_GROUP, *(measure_column(name, _measure_of(name)) for name in table.differences)
    )


def _measure_of(name: str) -> Callable[[GroupRow], Measure | None]:
    return lambda row: row.group.measures[name]


def metric_frame(tables: Iterable[MeasuresByGroup]) -> tuple[list[SimpleNamespace], FrameColumns]:
    """One row for each metric and group, and the columns of a data frame of them."""
    rows = [
        SimpleNamespace(
            table=table,
            group=group,
            metric=metric,
            measure=group.measures[metric],
            difference=difference,
            ratio=table.ratios[metric],
        )
        for table in tables
        for metric, difference in table.differences.items()
        for group in table.groups
    ]
    attribute, within, group, size = _GROUP
    columns = ColumnTable(
        attribute,
        within,
        text_column("metric"),
        group,
        size,
        Column("value", value="measure.value"),
        Column("interval", "Ends", "measure.interval"),
        Column("difference"),
        Column("ratio"),
    )
    return rows, columns.frame()


# ---- Comparisons and series of audits -----------------------------------------------------------

_PLACE = (
    text_column("attribute"),
    text_column("criterion"),
    text_column("within", note=lambda row: topic_name(row.criterion)),
    text_column("groups", lambda row: " / ".join(row.groups)),
)
_COMPARED = text_column(
    "compared", "groups", groups_text, "", note=attrgetter("attribute"), term="groups"
)

DIFFERENCES = ColumnTable(
    text_column("model"),
    *_PLACE,
    text_column("metric", show=term_name, term="figure"),
    Column("before"),
    Column("after"),
    Column(
        "difference",
        show=partial(figure_text, signed=True),
        note=lambda row: "" if row.joint_interval is None else interval_text(row.joint_interval),
    ),
    Column("interval", "Ends", show=interval_text),
    Column("joint", "Ends", "joint_interval", interval_text, term="joint_interval"),
    Column("p_value", show=p_text, note=lambda row: f"{p_text(row.p_adjusted)} adjusted"),
    Column("p_adjusted", show=p_text),
    text_column("verdict", show=VERDICTS.__getitem__),
    _COMPARED,
)
"""The columns of differences between audits."""


def difference_columns(before: str, after: str, *keys: str) -> list[Column]:
    """Columns of differences, with the names of the audits as headings of the figures."""
    titles = {"before": before, "after": after}
    return [replace(column, title=titles.get(column.key, "")) for column in DIFFERENCES.pick(*keys)]


LOOKS = ColumnTable(
    text_column("look"),
    *_PLACE,
    text_column("metric", show=lambda metric: metric_words(metric).short),
    Column("value"),
    Column("interval", "Ends", show=interval_text),
    Column("difference", show=partial(figure_text, signed=True), term="since_baseline"),
    Column("p_value", show=p_text),
    Column("level"),
    text_column("alarm", show=lambda alarm: alarm if alarm in ("better", "worse") else NO_NUMBER),
    _COMPARED,
)
"""The columns of a series of audits."""


# ---- Estimates by group probabilities, with their bounds ----------------------------------------

PROXY_ESTIMATES = ("weighted", "divided", "corrected", "bounds")
"""The kinds of estimates, in the order of their columns and colors."""


def _estimate_text(estimate: ProxyEstimate) -> str:
    names = [OTHERS if name == "rest" else quoted(name) for name in estimate.groups]
    return f"{term_name(estimate.figure)}, {' / '.join(names)}"


def estimate_table(figure: str) -> ColumnTable:
    """The columns of estimates of a figure: rates are percentages, other figures are numbers.

    >>> estimate = ProxyEstimate("selection_rate", ("b",), Measure(0.5), bounds=Interval(0.2, 0.9))
    >>> [column.cell(estimate).line for column in estimate_table("selection_rate").values()]
    ['Selection rate, “b”', '50.0%', '–', '–', '20.0 to 90.0%']
    """
    show = percent_text if figure == "selection_rate" else number_text
    between = partial(interval_text, show=show)
    measures = (
        Column(key, "", f"{key}.value", show, f"{key}.interval", show)
        for key in PROXY_ESTIMATES[:-1]
    )
    return ColumnTable(
        text_column("figure", _estimate_text, kind=""),
        *measures,
        Column("bounds", "", show=between, interval="bounds_interval", ends=show),
    )


def estimate_rows(estimates: Sequence[ProxyEstimate]) -> tuple[list[str], list[list[str]]]:
    """The headings and the lines of a table of estimates; of columns that have a value."""
    tables = [estimate_table(estimate.figure) for estimate in estimates]
    pairs = list(zip(estimates, tables, strict=True))
    keys = [
        key
        for key in ("figure", *PROXY_ESTIMATES)
        if any(table[key].value_in(estimate) is not None for estimate, table in pairs)
    ]
    lines = [[table[key].cell(estimate).line for key in keys] for estimate, table in pairs]
    return [term_name(key) for key in keys], lines
