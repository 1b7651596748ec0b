"""The result of ``Audit.by_group``: metrics by group, as a data frame and as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw

from metrifair.auditing.records import Measure, MeasuresByGroup
from metrifair.figures.intervals import Interval
from metrifair.problem.tables import Backend, frame_of
from metrifair.report.audit.by_group import group_metrics_section
from metrifair.wording.numbers import number_text


class _MetricOfGroup(NamedTuple):
    """A row of the frame: the metric of one group."""

    table: MeasuresByGroup
    group: str
    size: int
    metric: str
    measure: Measure | None

    @property
    def interval(self) -> Interval | None:
        return None if self.measure is None else self.measure.interval


_COLUMNS = {
    "attribute": (nw.String, lambda row: row.table.attribute),
    "within": (nw.String, lambda row: row.table.within),
    "metric": (nw.String, lambda row: row.metric),
    "group": (nw.String, lambda row: row.group),
    "rows": (nw.Int64, lambda row: row.size),
    "value": (nw.Float64, lambda row: None if row.measure is None else row.measure.value),
    "interval_low": (nw.Float64, lambda row: None if row.interval is None else row.interval.low),
    "interval_high": (nw.Float64, lambda row: None if row.interval is None else row.interval.high),
    "difference": (nw.Float64, lambda row: row.table.differences[row.metric]),
    "ratio": (nw.Float64, lambda row: row.table.ratios[row.metric]),
}


@dataclass(frozen=True, eq=False, repr=False)
class GroupMetrics:
    """Metrics by group: values with confidence intervals, and the difference and ratio between groups.

    Parameters
    ----------
    record : sequence of MeasuresByGroup
        One table for each attribute and set of rows, as plain values. ``Audit.by_group`` returns it.
    library : str, default=None
        The library of the audited data frames, which ``to_frame`` uses too.

    Examples
    --------
    >>> from metrifair import audit
    >>> sex = {"sex": ["f", "f", "m", "m"]}
    >>> result = audit([0, 1, 1, 1], [0.2, 0.8, 0.4, 0.9], sensitive_features=sex, random_state=0)
    >>> result.by_group({"accuracy": lambda y_true, y_pred: (y_true == y_pred).mean()})
    accuracy by sex, everyone: 0.500 (m) to 1.000 (f), difference 0.500, ratio 0.500
    """

    record: Sequence[MeasuresByGroup]
    library: Backend | None = None

    def _rows(self) -> Iterator[_MetricOfGroup]:
        for table in self.record:
            for metric in table.differences:
                for group in table.groups:
                    yield _MetricOfGroup(table, group.group, group.size, metric, group.measures[metric])

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The metrics as a data frame, one row for each metric and group.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            The library of the frame; by default that of the audited data, else polars if installed, else pandas.

        Returns
        -------
        DataFrame
            The columns are attribute, within (the stratum), metric, group, rows, value, interval_low, interval_high,
            and the difference and ratio of all groups. Undefined values are missing.
        """
        return frame_of(list(self._rows()), _COLUMNS, backend or self.library)

    def __repr__(self) -> str:
        lines = []
        for table in self.record:
            for metric, difference in table.differences.items():
                known = {one.group: found.value for one in table.groups if (found := one.measures[metric]) is not None}
                ends = [f"{number_text(known[name])} ({name})" for name in sorted(known, key=lambda name: known[name])]
                gap = f"difference {number_text(difference)}, ratio {number_text(table.ratios[metric])}"
                values = f"{ends[0]} to {ends[-1]}, {gap}" if len(ends) > 1 else ", ".join(ends) or "undefined"
                lines.append(f"{metric} by {table.attribute}, {table.within}: {values}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return str(group_metrics_section(self.record))
