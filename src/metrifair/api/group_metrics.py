"""The result of ``Audit.by_group``: metrics by group, as a data frame and as HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from metrifair import report
from metrifair.api.pages import Summarized
from metrifair.auditing.records import Measure, MeasuresByGroup
from metrifair.problem.tables import Backend, frame, make_frame
from metrifair.support.checks import check_known
from metrifair.wording.numbers import number_text
from metrifair.wording.tables import FrameColumns, metric_frame

_COLUMNS = {
    **dict.fromkeys(("attribute", "within", "metric", "group"), "String"),
    "rows": "Int64",
    **dict.fromkeys(("value", "interval_low", "interval_high", "difference", "ratio"), "Float64"),
}
_FIGURE = {name: _COLUMNS[name] for name in ("attribute", "within", "metric", "value")}
_OVERALL = _FIGURE | {name: _COLUMNS[name] for name in ("interval_low", "interval_high")}
_EXTREME = _OVERALL | {"group": "String"}

Method: TypeAlias = Literal["between_groups", "to_overall"]
_Figure: TypeAlias = Measure | float | tuple[str, Measure] | None


def _known_measures(table: MeasuresByGroup, metric: str) -> list[tuple[str, Measure]]:
    """The groups with a value, except those whose names say that the group is not known."""
    pairs = [(row.group, row.measures[metric]) for row in table.groups if not row.unknown_name]
    return [(group, measure) for group, measure in pairs if measure is not None]


def _extreme(
    table: MeasuresByGroup, metric: str, choose: Callable[..., tuple[str, Measure]]
) -> tuple[str, Measure] | None:
    measures = _known_measures(table, metric)
    if not measures:
        return None
    return choose(measures, key=lambda pair: pair[1].value)


def _ends(measure: Measure | float | None) -> tuple[float | None, float | None]:
    """The ends of the interval of a measure, if it has one."""
    if not isinstance(measure, Measure) or measure.interval is None:
        return None, None
    return measure.interval.low, measure.interval.high


def _difference(table: MeasuresByGroup, metric: str, method: Method) -> float | None:
    check_known("method", method, ("between_groups", "to_overall"))
    if method == "between_groups":
        return table.differences[metric]
    overall = table.overall.get(metric)
    measures = _known_measures(table, metric)
    if overall is None or not measures:
        return None
    return max(abs(measure.value - overall.value) for _, measure in measures)


def _ratio(table: MeasuresByGroup, metric: str, method: Method) -> float | None:
    check_known("method", method, ("between_groups", "to_overall"))
    if method == "between_groups":
        return table.ratios[metric]
    overall = table.overall.get(metric)
    values = [measure.value for _, measure in _known_measures(table, metric)]
    if overall is None or not values or overall.value <= 0 or min(values) < 0:
        return None
    ratios = [value / overall.value for value in values]
    return min(min(ratio, 1 / ratio) if ratio > 0 else 0.0 for ratio in ratios)


@dataclass(frozen=True, eq=False, repr=False)
class GroupMetrics(Summarized):
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

    @property
    def by_group(self) -> Any:
        """The metrics of each group as a data frame, as ``to_frame`` returns it."""
        return self.to_frame()

    @property
    def overall(self) -> Any:
        """The metrics of the rows of all groups together, with their intervals, as a data frame.

        Each attribute and stratum has a row for each metric. Values are missing for the metrics
        that every audit has.
        """
        return self._figures(lambda table, metric: table.overall.get(metric), _OVERALL)

    def difference(self, method: Method = "between_groups") -> Any:
        """The largest difference between groups, or between a group and all rows.

        Parameters
        ----------
        method : {"between_groups", "to_overall"}, default="between_groups"
            What is compared: the largest and the smallest value of the groups, or each group and
            the rows of all groups together.

        Returns
        -------
        DataFrame
            One row for each attribute, stratum and metric, with its ``value``.

        Examples
        --------
        >>> from metrifair import audit
        >>> result = audit([0, 1, 0, 1], [0, 1, 1, 1], sensitive_features=["a", "a", "b", "b"])
        >>> by_group = result.by_group({"accuracy": lambda y_true, y_pred: (y_true == y_pred).mean()})
        >>> by_group.difference().to_dict(as_series=False)["value"]
        [0.5]
        """
        return self._figures(lambda table, metric: _difference(table, metric, method))

    def ratio(self, method: Method = "between_groups") -> Any:
        """The smallest ratio between groups, or between a group and all rows, at most 1.

        Parameters
        ----------
        method : {"between_groups", "to_overall"}, default="between_groups"
            What is compared: the largest and the smallest value of the groups, or each group and
            the rows of all groups together.

        Returns
        -------
        DataFrame
            One row for each attribute, stratum and metric, with its ``value``. It is missing for
            negative values.
        """
        return self._figures(lambda table, metric: _ratio(table, metric, method))

    def group_min(self) -> Any:
        """The smallest value of the groups, with its group and interval, as a data frame.

        Returns
        -------
        DataFrame
            One row for each attribute, stratum and metric.
        """
        return self._figures(lambda table, metric: _extreme(table, metric, min), _EXTREME)

    def group_max(self) -> Any:
        """The largest value of the groups, with its group and interval, as a data frame.

        Returns
        -------
        DataFrame
            One row for each attribute, stratum and metric.
        """
        return self._figures(lambda table, metric: _extreme(table, metric, max), _EXTREME)

    def _figures(
        self,
        figure: Callable[[MeasuresByGroup, str], _Figure],
        columns: Mapping[str, str] = _FIGURE,
    ) -> Any:
        """A figure of each metric of each table, as a data frame."""
        rows = []
        for table in self.record:
            for metric in table.differences:
                found = figure(table, metric)
                group, measure = found if isinstance(found, tuple) else (None, found)
                value = measure.value if isinstance(measure, Measure) else measure
                low, high = _ends(measure)
                rows.append(
                    {
                        "attribute": table.attribute,
                        "within": table.within,
                        "metric": metric,
                        "group": group,
                        "value": value,
                        "interval_low": low,
                        "interval_high": high,
                    }
                )
        return frame({name: [row[name] for row in rows] for name in columns}, columns, self.library)

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

    @property
    def summary(self) -> str:
        """Each metric with its smallest and largest group, difference and ratio, one line each."""
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
                if len(ends) > 1:
                    values = f"{ends[0]} to {ends[-1]}, {gap}"
                else:
                    values = ", ".join(ends) or "undefined"
                lines.append(f"{metric} by {table.attribute}, {table.within}: {values}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return str(report.group_metrics_section(self.record))
