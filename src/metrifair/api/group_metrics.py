"""The result of ``Audit.by_group``: metrics by group, as a data frame and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metrifair import report
from metrifair.auditing.records import MeasuresByGroup
from metrifair.problem.tables import Backend, make_frame
from metrifair.wording.numbers import number_text
from metrifair.wording.tables import FrameColumns, metric_frame


@dataclass(frozen=True, eq=False, repr=False)
class GroupMetrics:
    """Metrics by group: values with confidence intervals, and the difference and ratio between
    groups.

    Parameters
    ----------
    record : sequence of MeasuresByGroup
        One table for each attribute and set of rows, as plain values. ``Audit.by_group`` returns
        it.
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

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The metrics as a data frame, one row for each metric and group.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            Library of the data frame. By default that of the audited data, else polars if it is
            installed, else pandas.

        Returns
        -------
        DataFrame
            The columns are attribute, within (the stratum), metric, group, rows, value,
            interval_low, interval_high, and the difference and ratio of all groups. Undefined
            values are missing.
        """
        return make_frame(*self.rows_and_columns(), backend or self.library)

    def rows_and_columns(self) -> tuple[Sequence[Any], FrameColumns]:
        """One row for each metric and group, and the columns of a data frame of them."""
        return metric_frame(self.record)

    def __repr__(self) -> str:
        lines = []
        for table in self.record:
            for metric, difference in table.differences.items():
                known = [
                    (row.group, row.measures[metric])
                    for row in table.groups
                    if not row.unknown_name
                ]
                figures = {group: measure.value for group, measure in known if measure is not None}
                ends = [
                    f"{number_text(figures[name])} ({name})"
                    for name in sorted(figures, key=lambda name: figures[name])
                ]
                gap = f"difference {number_text(difference)}, ratio {number_text(table.ratios[metric])}"
                values = (
                    f"{ends[0]} to {ends[-1]}, {gap}"
                    if len(ends) > 1
                    else ", ".join(ends) or "undefined"
                )
                lines.append(f"{metric} by {table.attribute}, {table.within}: {values}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return str(report.group_metrics_section(self.record))
