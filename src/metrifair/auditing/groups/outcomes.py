"""Labels and predictions -> how bad the outcome of each row is, from 0 to 1."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np

from metrifair.auditing.measure.selection import at_or_above, threshold_for
from metrifair.auditing.request import Request, ThresholdChoice
from metrifair.auditing.search_records import SearchedOutcome
from metrifair.errors import DataError, Remedy
from metrifair.problem.predictions import check_not_swapped, numbers_or_none, read_predictions
from metrifair.problem.problem import Inputs, Problem, make_problem
from metrifair.problem.tables import Table, as_array, one_column
from metrifair.problem.values import canonical
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.checks import check_known

_NAMES = tuple(name for name in get_args(SearchedOutcome) if name != "metric")


class OutcomeRows(NamedTuple):
    """The rows that an outcome counts, by place in the input, and how bad each is."""

    outcome: SearchedOutcome
    places: Integers
    bad: Floats  # from 0 to 1
    higher_is_worse: bool
    weight: Floats | None  # None: every row counts once
    clusters: Integers | None
    threshold: float | None = None
    positive: str = ""

    @property
    def is_binary(self) -> bool:
        """Whether every value is 0 or 1."""
        return bool(np.isin(self.bad, (0.0, 1.0)).all())


def outcome_rows(
    y_true: Table | None,
    y_pred: Table | None,
    outcome: Any,
    *,
    X_audit: Table,
    threshold: ThresholdChoice,
    pos_label: object,
    sample_weight: Table | None,
    clusters: Table | None,
) -> OutcomeRows:
    """The rows that the outcome counts: all, or those with one label."""
    is_metric = not isinstance(outcome, str)
    rows = {"y_pred": y_pred, "y_true": y_true, "X_audit": X_audit}
    if is_metric:
        rows["outcome"] = outcome
    else:
        check_known("outcome", outcome, _NAMES, otherwise="numbers from 0 to 1, one for each row")
    uses_labels = not is_metric and outcome not in ("selected", "score")
    inputs = Inputs(
        y_true if uses_labels else None,
        sample_weight=sample_weight,
        rows=rows,
        label="y_true",
        clusters=clusters,
    )
    # Of labels that the outcome does not use, none needs to be positive.
    is_unused = y_true is not None and not uses_labels
    positive_class = None if is_unused else pos_label
    problem = make_problem(inputs, compared=False, pos_label=positive_class, target="labels")
    name: SearchedOutcome = "metric"
    higher_is_worse = True
    limit = None
    if is_metric:
        bad = _metric(outcome, problem)
    else:
        name = outcome
        scores, precision = _scores(y_pred, y_true, problem, pos_label)
        bad, limit = _bad(outcome, scores, precision, threshold)
        higher_is_worse = outcome not in ("selected", "score")
    counted, positive = _counted_rows(outcome, problem)
    places = np.arange(_row_count(problem, bad))
    kept = problem.kept_rows(places)
    weight = _used_weight(problem.weight, counted)
    clusters_of_rows = None
    if problem.clusters is not None:
        clusters_of_rows = problem.clusters[counted]
    return OutcomeRows(
        name,
        kept[counted],
        bad[counted],
        higher_is_worse,
        weight,
        clusters_of_rows,
        limit,
        positive,
    )


def _row_count(problem: Problem, bad: Floats) -> int:
    """The rows of the input; those without weight are not among the values."""
    if problem.kept is None:
        return len(bad)
    return len(problem.kept) if problem.kept.dtype == bool else int(problem.kept.max()) + 1


def _used_weight(weight: Floats | None, counted: Booleans) -> Floats | None:
    """The weights of these rows; None if all are equal."""
    if weight is None:
        return None
    used = weight[counted]
    if len(used) == 0 or used.min() == used.max():
        return None
    return np.asarray(used / used.max(), np.float64)


def _scores(
    y_pred: Table | None, y_true: Table | None, problem: Problem, pos_label: object
) -> tuple[Floats, np.dtype[Any]]:
    if y_pred is None:
        raise DataError("must contain predictions for this outcome", argument="y_pred")
    scores, _, precision = read_predictions(y_pred, problem, pos_label=pos_label)
    if scores.ndim > 1:
        raise DataError(
            "has the probabilities of three classes or more, and a search needs one score for each "
            "row",
            argument="y_pred",
            remedy="pass the column of one class",
        )
    outcomes = numbers_or_none("y_true", y_true)
    check_not_swapped(None if outcomes is None else problem.kept_rows(outcomes), scores)
    return scores, precision


def _bad(
    outcome: str, scores: Floats, precision: np.dtype[Any], threshold: ThresholdChoice
) -> tuple[Floats, float | None]:
    """How bad each row is, and the threshold; None without decisions."""
    within = bool((scores >= 0).all() and (scores <= 1).all())
    if outcome == "score":
        _check_within(scores, "y_pred", "use a rank or a probability")
        return 1 - scores, None
    decisions = bool(np.isin(scores, (0.0, 1.0)).all())
    source = threshold_for(Request(threshold=threshold), decisions=decisions, probabilities=within)
    if source is None or source[0] == "median":
        raise DataError(
            "compares decisions, and these scores have no threshold",
            argument="outcome",
            received=outcome,
            remedy=Remedy("threshold", detail=", the lowest score that is selected"),
        )
    limit = float(source[0])
    selected = at_or_above(scores, limit, precision)
    bad = selected if outcome == "false positives" else ~selected
    return bad.astype(np.float64), limit


def _metric(outcome: Table, problem: Problem) -> Floats:
    """Numbers from 0 to 1 of the rows that remain."""
    values = as_array("outcome", one_column("outcome", outcome)).astype(np.float64)
    values = problem.kept_rows(values)
    _check_within(values, "outcome", "divide it by the largest value that is possible")
    return values


def _check_within(values: Floats, argument: str, remedy: str) -> None:
    """Raise a DataError for numbers outside 0 and 1: their means have no bound."""
    outside = values[~((values >= 0) & (values <= 1))]
    if len(outside):
        raise DataError(
            "must contain numbers from 0 to 1, because bounds of means need known ends",
            argument=argument,
            received=float(outside[0]),
            remedy=remedy,
        )


def _counted_rows(outcome: object, problem: Problem) -> tuple[Booleans, str]:
    """The rows that count, and the name of the positive label, if it matters."""
    if not isinstance(outcome, str) or outcome in ("selected", "score"):
        return np.ones(len(problem), dtype=bool), ""
    positive = problem.is_positive
    if positive is None:
        raise DataError(
            f"of {outcome} needs the true labels", argument="outcome", remedy=Remedy("y_true")
        )
    counted = positive if outcome == "missed positives" else ~positive
    return counted, str(canonical(problem.scheme.classes[problem.scheme.positive]))
