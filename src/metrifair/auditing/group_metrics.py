"""Metrics by group: those that users pass, with bootstrap intervals, and those that every audit computes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.decisions import selection_for
from metrifair.auditing.records import (
    AuditRecord,
    ByGroup,
    Decisions,
    GroupFigures,
    GroupMeasures,
    Measure,
    MeasuresByGroup,
)
from metrifair.auditing.request import Request
from metrifair.auditing.sample import members_in, sets_for
from metrifair.auditing.source import AuditedRows
from metrifair.errors import DataError, Remedy
from metrifair.figures.intervals import FEWEST, Interval
from metrifair.figures.selection_rates import GroupRates
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_known

Metric: TypeAlias = Callable[..., float]
"""``metric(y_true, y_pred)``, or ``metric(y_true, y_pred, sample_weight=...)`` for audits with weights."""
PredictionKind: TypeAlias = Literal["decisions", "scores"]

_MAX_UNDEFINED = 0.05  # the largest share of resamples on which a metric with an interval may be undefined
_RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")
_FIGURES = ("base_rate", "auc", "accuracy", "log_loss", "calibration_error")


class _MetricRows(NamedTuple):
    """The arguments of a metric, with one entry for each row."""

    y_true: NDArray[Any]
    y_pred: NDArray[Any]
    weight: Floats | None
    classes: int  # of y_true; 0: it is numeric

    def at(self, rows: Integers) -> _MetricRows:
        """Some of the rows, in this order."""
        weight = None if self.weight is None else self.weight[rows]
        return _MetricRows(self.y_true[rows], self.y_pred[rows], weight, self.classes)

    def value(self, metric: Metric) -> float:
        """The metric of these rows, NaN or infinite where the metric is; errors of the metric are not caught."""
        weight = {} if self.weight is None else {"sample_weight": self.weight}
        return float(metric(self.y_true, self.y_pred, **weight))


def metrics_by_group(
    audited: AuditedRows, metrics: Mapping[str, Metric], y_pred: PredictionKind, generator: np.random.Generator
) -> list[MeasuresByGroup]:
    """The metrics of every attribute's groups within each stratum. Rows with a missing group are only counted."""
    problem = audited.sample.problem
    rows = _metric_rows(audited, y_pred)
    _check_metrics(metrics, weighted=rows.weight is not None)
    tables = []
    for within, conditions, inside in sets_for(STATISTICAL_PARITY, problem):
        for place, attribute in enumerate(problem.scheme.attributes):
            units, codes, present = members_in(problem, inside, place)
            groups = []
            for code in present:
                group, members = str(attribute.groups[code]), rows.at(units[codes == code])
                where = f"the group {group!r} of {attribute.name!r}"
                measures = _measures(members, metrics, audited.request, generator, where)
                groups.append(GroupMeasures(group, audited.sample.size(units[codes == code]), measures))
            missing = audited.sample.size(inside) - audited.sample.size(units)
            tables.append(_table(attribute.name, within, groups, missing=missing, conditions=conditions))
    return tables


def _metric_rows(audited: AuditedRows, y_pred: PredictionKind) -> _MetricRows:
    """Outcomes and predictions in the form that metrics of scikit-learn accept.

    Two labels are 1 (positive) and 0. More labels are themselves, predictions then the most probable label or the
    probabilities of all. A numeric target is compared with the predictions.
    """
    check_known("y_pred", y_pred, get_args(PredictionKind))
    sample, problem = audited.sample, audited.sample.problem
    weight = None if sample.weight is None else np.ldexp(sample.weight, sample.weight_exponent)
    classes, prediction = problem.scheme.classes, sample.prediction
    if problem.values is None or prediction is None:
        raise DataError("is missing, and metrics by group compare predictions with outcomes", argument="y_true")
    if not classes or y_pred == "scores":
        y_true = sample.outcome if sample.outcome is not None else problem.values
        return _MetricRows(y_true.astype(np.int64) if len(classes) == 2 else y_true, prediction, weight, len(classes))
    if prediction.ndim > 1:
        most_probable = np.asarray(sample.classes)[prediction.argmax(1)]
        return _MetricRows(problem.values, most_probable, weight, len(classes))
    selection = selection_for(sample, audited.request) if len(classes) == 2 else None
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
        problem.is_positive.astype(np.int64), (selection.amount > 0).astype(np.int64), weight, len(classes)
    )


def _check_metrics(metrics: Mapping[str, Metric], *, weighted: bool) -> None:
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


def _takes_weights(metric: Metric) -> bool:
    try:
        parameters = inspect.signature(metric).parameters
    except ValueError:  # of a function that is not written in Python
        return False
    any_name = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    return "sample_weight" in parameters or any_name


def _measures(
    rows: _MetricRows, metrics: Mapping[str, Metric], request: Request, generator: np.random.Generator, where: str
) -> dict[str, Measure | None]:
    """The metrics of one group. All metrics see the same resamples, so that none changes another's interval."""
    values = {name: _group_value(name, metric, rows, where) for name, metric in metrics.items()}
    replicates: dict[str, list[float]] = {name: [] for name, value in values.items() if value is not None}
    size = len(rows.y_true)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the whole group have been shown
        for _ in range(request.resamples if size >= FEWEST and replicates else 0):
            resample = rows.at(generator.integers(size, size=size))
            for name, resampled in replicates.items():
                resampled.append(_value_or_nan(metrics[name], resample))
    return {
        name: None if value is None else Measure(value, _percentiles(replicates[name], request.confidence))
        for name, value in values.items()
    }


def _group_value(name: str, metric: Metric, rows: _MetricRows, where: str) -> float | None:
    """The metric of a whole group; None if it is undefined, such as an AUC without positive rows."""
    try:
        value = rows.value(metric)
    except Exception as error:
        lacks_class = len(np.unique(rows.y_true)) < rows.classes
        if isinstance(error, ZeroDivisionError) or (isinstance(error, ValueError) and lacks_class):
            return None
        raise DataError(f"the metric {name!r} raised {type(error).__name__} for {where}: {error}") from error
    return value if np.isfinite(value) else None


def _value_or_nan(metric: Metric, rows: _MetricRows) -> float:
    try:
        return rows.value(metric)
    except Exception:
        return float("nan")


def _percentiles(values: Sequence[float], confidence: float) -> Interval | None:
    """The percentile interval; None if too many values are undefined, or all are equal and show no spread.

    >>> _percentiles([1.0, 2.0, 3.0], 0.5), _percentiles([1.0, float("nan")], 0.5), _percentiles([1.0, 1.0], 0.5)
    (Interval(low=1.5, high=2.5), None, None)
    """
    defined = np.asarray(values)[np.isfinite(values)]
    if not len(defined) or len(defined) < (1 - _MAX_UNDEFINED) * len(values) or defined.min() == defined.max():
        return None
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def _table(attribute: str, within: str, groups: Sequence[GroupMeasures], **facts: Any) -> MeasuresByGroup:
    differences: dict[str, float | None] = {}
    ratios: dict[str, float | None] = {}
    for name in groups[0].measures if groups else ():
        values = [measure.value for group in groups if (measure := group.measures[name]) is not None]
        low, high = (min(values), max(values)) if len(values) > 1 else (None, None)
        differences[name] = None if low is None or high is None else high - low
        ratios[name] = None if low is None or high is None or low < 0 or high == 0 else low / high
    return MeasuresByGroup(attribute, within, groups, differences, ratios, **facts)


def audited_by_group(record: AuditRecord) -> list[MeasuresByGroup]:
    """The default metrics by group: rates of decisions, and base rate, AUC, accuracy and calibration."""
    rates = [
        _audited_table(table, table.rates, _RATES, 0 if table.unknown is None else table.unknown.size)
        for table in record.decisions
    ]
    return rates + [_audited_table(table, table.groups, _FIGURES, None) for table in record.by_group]


def _audited_table(
    source: Decisions | ByGroup,
    groups: Sequence[GroupRates] | Sequence[GroupFigures],
    names: Sequence[str],
    missing: int | None,
) -> MeasuresByGroup:
    """Without the measures that no group has."""
    used = [name for name in names if any(getattr(group, name) is not None for group in groups)]
    rows = [
        GroupMeasures(group.group, group.size, {name: _audited_measure(group, name) for name in used})
        for group in groups
    ]
    return _table(source.attribute, source.within, rows, missing=missing, conditions=source.conditions)


def _audited_measure(group: GroupRates | GroupFigures, name: str) -> Measure | None:
    value: Measure | float | None = getattr(group, name)
    if not isinstance(value, float):
        return value
    return Measure(value, group.interval if isinstance(group, GroupRates) and name == "selection_rate" else None)
