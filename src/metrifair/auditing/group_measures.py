"""Metrics by group: those that users pass, with bootstrap intervals, and those that every audit
computes.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.audit_record import AuditedRows
from metrifair.auditing.measure.parts import members_in, sets_for
from metrifair.auditing.measure.selection import selection_for
from metrifair.auditing.records import (
    FIGURES_OF_GROUPS,
    AuditRecord,
    ByGroup,
    Decisions,
    GroupFigures,
    GroupMeasures,
    Measure,
    MeasuresByGroup,
)
from metrifair.auditing.request import Request
from metrifair.errors import DataError, Remedy
from metrifair.figures.intervals import FEWEST, Interval
from metrifair.figures.selection_rates import GroupRates
from metrifair.problem.cells import rows_by_cell
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.problem.unknown_names import are_unknown
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_known, rows_or_none

GroupMetric: TypeAlias = Callable[..., float]
"""``metric(y_true, y_pred)``, or ``metric(y_true, y_pred, sample_weight=...)`` for audits with
weights.
"""
PredictionKind: TypeAlias = Literal["decisions", "scores"]

# the largest share of resamples on which a metric with an interval may be undefined
_MAX_UNDEFINED = 0.05
_RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")


class _MetricRows(NamedTuple):
    """The arguments of a metric, with one entry for each row."""

    y_true: NDArray[Any]
    y_pred: NDArray[Any]
    weight: Floats | None
    classes: int  # of y_true; 0: it is numeric
    clusters: Integers | None = None  # None: rows are independent

    def at(self, rows: Integers) -> _MetricRows:
        """Some of the rows, in this order."""
        weight = rows_or_none(self.weight, rows)
        clusters = rows_or_none(self.clusters, rows)
        return _MetricRows(self.y_true[rows], self.y_pred[rows], weight, self.classes, clusters)

    def value(self, metric: GroupMetric) -> float:
        """The metric of these rows, NaN or infinite where the metric is; errors of the metric
        are not caught.
        """
        weight = {}
        if self.weight is not None:
            weight = {"sample_weight": self.weight}
        return float(metric(self.y_true, self.y_pred, **weight))


def _numbered(clusters: Integers) -> tuple[Integers, int]:
    """The clusters by their first rows, so that draws do not depend on their names; and their
    number.
    """
    _, first, number = np.unique(clusters, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))
    return place[number.reshape(-1)], len(first)


def metrics_by_group(
    audited: AuditedRows,
    metrics: Mapping[str, GroupMetric],
    y_pred: PredictionKind,
    generator: np.random.Generator,
) -> list[MeasuresByGroup]:
    """The metrics of every attribute's groups within each stratum.

    Rows with a missing group are only counted.
    """
    problem = audited.sample.problem
    rows = _metric_rows(audited, y_pred)
    _check_metrics(metrics, weighted=rows.weight is not None)
    tables = []
    for within, conditions, inside in sets_for(STATISTICAL_PARITY, problem):
        for place, attribute in enumerate(problem.scheme.attributes):
            units, codes, present = members_in(problem, inside, place)
            groups = []
            unknown = audited.sample.unknown_names[attribute.name]
            for code in present:
                group = str(attribute.groups[code])
                members = rows.at(units[codes == code])
                where = f"the group {group!r} of {attribute.name!r}"
                measures = _measures(members, metrics, audited.request, generator, where)
                size = audited.sample.units.size(units[codes == code])
                groups.append(GroupMeasures(group, size, measures, bool(unknown[code])))
            missing = audited.sample.units.size(inside) - audited.sample.units.size(units)
            own_draws = generator.spawn(1)[0]  # those of the groups stay the same
            overall = _measures(
                rows.at(units),
                metrics,
                audited.request,
                own_draws,
                f"all groups of {attribute.name!r}",
            )
            tables.append(
                _table(
                    attribute.name,
                    within,
                    groups,
                    missing=missing,
                    conditions=conditions,
                    overall=overall,
                )
            )
    return tables


def _metric_rows(audited: AuditedRows, y_pred: PredictionKind) -> _MetricRows:
    """Outcomes and predictions in the form that metrics of scikit-learn accept.

    Two labels are 1 (positive) and 0. More labels are themselves, predictions then the most
    probable label or the probabilities of all. A numeric target is compared with the predictions.
    """
    check_known("y_pred", y_pred, get_args(PredictionKind))
    sample = audited.sample
    problem = audited.sample.problem
    weight = None
    if sample.units.weight is not None:
        weight = np.ldexp(sample.units.weight, sample.units.exponent)
    clusters = problem.clusters
    classes = problem.scheme.classes
    prediction = sample.scores.prediction
    if problem.values is None or prediction is None:
        raise DataError(
            "is missing, and metrics by group compare predictions with outcomes",
            argument="y_true",
        )
    if not classes or y_pred == "scores":
        y_true = sample.outcome if sample.outcome is not None else problem.values
        return _MetricRows(
            y_true.astype(np.int64) if len(classes) == 2 else y_true,
            prediction,
            weight,
            len(classes),
            clusters,
        )
    if prediction.ndim > 1:
        most_probable = np.asarray(sample.scores.classes)[prediction.argmax(1)]
        return _MetricRows(problem.values, most_probable, weight, len(classes), clusters)
    selection = None
    if len(classes) == 2:
        selection = selection_for(sample, audited.request)
    if selection is None or problem.is_positive is None:
        raise DataError(
            "'decisions' needs an audit with decisions, and this one has none",
            argument="y_pred",
            remedy=[
                *([Remedy("threshold", detail=" to audit")] if len(classes) == 2 else []),
                Remedy("y_pred", "scores"),
            ],
        )
    return _MetricRows(
        problem.is_positive.astype(np.int64),
        (selection.amount > 0).astype(np.int64),
        weight,
        len(classes),
        clusters,
    )


def _check_metrics(metrics: Mapping[str, GroupMetric], *, weighted: bool) -> None:
    pairs = metrics.items() if isinstance(metrics, Mapping) else ()
    if not pairs or not all(isinstance(name, str) and callable(metric) for name, metric in pairs):
        raise DataError(
            "must be a dict that maps names to functions, such as {'f1': f1_score}",
            argument="metrics",
            received=metrics,
        )
    for name, metric in metrics.items():
        if weighted and not _takes_weights(metric):
            raise DataError(
                f"{name!r} has no argument sample_weight, and this audit has weights",
                argument="metrics",
                remedy="pass a function that takes weights, or audit without them",
            )


def _takes_weights(metric: GroupMetric) -> bool:
    try:
        parameters = inspect.signature(metric).parameters
    except ValueError:  # of a function that is not written in Python
        return False
    any_name = any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()
    )
    return "sample_weight" in parameters or any_name


def _measures(
    rows: _MetricRows,
    metrics: Mapping[str, GroupMetric],
    request: Request,
    generator: np.random.Generator,
    where: str,
) -> dict[str, Measure | None]:
    """The metrics of one group.

    All metrics see the same resamples, so that none changes another's interval.
    """
    values = {name: _group_value(name, metric, rows, where) for name, metric in metrics.items()}
    replicates: dict[str, list[float]] = {
        name: [] for name, value in values.items() if value is not None
    }
    clusters = None
    if rows.clusters is not None:
        clusters = rows_by_cell(*_numbered(rows.clusters))
    size = len(rows.y_true) if clusters is None else len(clusters)
    resamples = request.resamples
    if size < FEWEST or not replicates:
        resamples = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the whole group have been shown
        for _ in range(resamples):
            drawn = generator.integers(size, size=size)
            resample = rows.at(
                drawn if clusters is None else np.concatenate([clusters[at] for at in drawn])
            )
            for name, resampled in replicates.items():
                resampled.append(_value_or_nan(metrics[name], resample))
    return {
        name: None
        if value is None
        else Measure(value, _percentiles(replicates[name], request.confidence))
        for name, value in values.items()
    }


def _group_value(name: str, metric: GroupMetric, rows: _MetricRows, where: str) -> float | None:
    """The metric of a whole group; None if it is undefined, such as an AUC without positive
    rows.
    """
    try:
        value = rows.value(metric)
    except Exception as error:
        lacks_class = len(np.unique(rows.y_true)) < rows.classes
        if isinstance(error, ZeroDivisionError) or (isinstance(error, ValueError) and lacks_class):
            return None
        raise DataError(
            f"the metric {name!r} raised {type(error).__name__} for {where}: {error}"
        ) from error
    if np.isfinite(value):
        return value
    return None


def _value_or_nan(metric: GroupMetric, rows: _MetricRows) -> float:
    try:
        return rows.value(metric)
    except Exception:
        return float("nan")


def _percentiles(values: Sequence[float], confidence: float) -> Interval | None:
    """The percentile interval; None if too many values are undefined, or all are equal and show no
    spread.

    >>> undefined = [1.0, float("nan")]
    >>> [_percentiles(some, 0.5) for some in ([1.0, 2.0, 3.0], undefined, [1.0, 1.0])]
    [Interval(low=1.5, high=2.5), None, None]
    """
    defined = np.asarray(values)[np.isfinite(values)]
    if (
        not len(defined)
        or len(defined) < (1 - _MAX_UNDEFINED) * len(values)
        or defined.min() == defined.max()
    ):
        return None
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def _table(
    attribute: str, within: str, groups: Sequence[GroupMeasures], **facts: Any
) -> MeasuresByGroup:
    compared = [group for group in groups if not group.unknown_name]
    differences: dict[str, float | None] = {}
    ratios: dict[str, float | None] = {}
    names: Iterable[str] = ()
    if groups:
        names = groups[0].measures
    for name in names:
        values = [
            measure.value for group in compared if (measure := group.measures[name]) is not None
        ]
        differences[name] = None
        ratios[name] = None
        if len(values) < 2:
            continue
        low = min(values)
        high = max(values)
        differences[name] = high - low
        if low >= 0 and high != 0:
            ratios[name] = low / high
    return MeasuresByGroup(attribute, within, groups, differences, ratios, **facts)


def audited_by_group(record: AuditRecord) -> list[MeasuresByGroup]:
    """The default metrics by group: rates of decisions, and base rate, AUC, accuracy and
    calibration.
    """
    tables = []
    for table in record.decisions:
        of_unknown = [rate.left_out == "unknown_name" for rate in table.rates]
        missing = 0
        if table.unknown is not None:
            missing = table.unknown.size
        tables.append(_audited_table(table, table.rates, _RATES, of_unknown, missing))
    for figures in record.by_group:
        unknown = are_unknown(
            [group.group_value for group in figures.groups],
            record.settings.known_names,
        )
        tables.append(
            _audited_table(figures, figures.groups, FIGURES_OF_GROUPS, unknown.tolist(), None)
        )
    return tables


def _audited_table(
    source: Decisions | ByGroup,
    groups: Sequence[GroupRates] | Sequence[GroupFigures],
    names: Sequence[str],
    unknown_names: Sequence[bool],
    missing: int | None,
) -> MeasuresByGroup:
    """Without the measures that no group has."""
    used = [name for name in names if any(getattr(group, name) is not None for group in groups)]
    pairs: Iterable[tuple[GroupRates | GroupFigures, bool]] = zip(
        groups, unknown_names, strict=True
    )
    rows = [
        GroupMeasures(
            group.group,
            group.size,
            {name: _audited_measure(group, name) for name in used},
            is_unknown,
        )
        for group, is_unknown in pairs
    ]
    return _table(
        source.attribute,
        source.within,
        rows,
        missing=missing,
        conditions=source.conditions,
    )


def _audited_measure(group: GroupRates | GroupFigures, name: str) -> Measure | None:
    value: Measure | float | None = getattr(group, name)
    if not isinstance(value, float):
        return value
    interval = None
    if isinstance(group, GroupRates) and name == "selection_rate":
        interval = group.interval
    return Measure(value, interval)
