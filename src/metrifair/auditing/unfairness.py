"""``unfairness(...)``: the distance between groups as one number, in the shape of a
scikit-learn metric.
"""

from __future__ import annotations

from functools import partial
from math import isfinite
from typing import Literal

import numpy as np

from metrifair.errors import DataError
from metrifair.metrics.dependence import dependence_value
from metrifair.metrics.pair import TOO_FAR, between
from metrifair.metrics.registry import (
    MetricLike,
    acts_on_vectors,
    plug_in_metric,
)
from metrifair.problem.attributes import Continuous
from metrifair.problem.bands import in_bands
from metrifair.problem.cells import Contrast, check_dependences
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.predictions import (
    check_groups_not_swapped,
    check_not_swapped,
    criterion_scores,
    numbers_or_none,
    read_predictions,
)
from metrifair.problem.problem import Inputs, Problem, problem_by_membership, warn_of_positive_label
from metrifair.problem.tables import Table
from metrifair.problem.unknown_names import warn_of_unknown_names
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_known


def unfairness(
    y_true: Table | None,
    y_pred: Table,
    *,
    sensitive_features: Table | GroupProbabilities,
    metric: MetricLike = "kolmogorov",
    criterion: str | Criterion = "statistical_parity",
    control_features: Table | None = None,
    sample_weight: Table | None = None,
    reduce: Literal["max", "sum"] = "max",
    pos_label: object = None,
    contrast: Contrast = "pairs",
    intersectional: bool = False,
    continuous: Continuous = "auto",
    loss: str | None = None,
) -> float:
    """Distance between the groups' score distributions: the worst comparison, or the sum of all.

    The value is that of the empirical distributions. Metrics that compare numbers take the
    probabilities of three or more classes one class at a time.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Outcomes: labels, or a regression target. Needed if the criterion uses labels or losses.
    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes)
        Predictions, or class probabilities, whose rows sum to 1. Of two columns the positive class
        is used.
    sensitive_features : array-like, table or GroupProbabilities
        The group of each sample. A table contains several attributes. Rows with a missing group are
        excluded. If groups are not in the data, pass their probabilities as ``GroupProbabilities``.
        The value is then the weighted one, which can be far too small: ``audit`` also reports the
        one divided by R2.
    metric : str or callable, default="kolmogorov"
        Distance between distributions: a name such as ``kolmogorov`` or ``energy``, of those in
        the documentation on distances, or a function of two samples.
    criterion : str or Criterion, default="statistical_parity"
        Fairness criterion.
    control_features : array-like or table, default=None
        Strata within which groups are compared.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each sample. Samples of weight 0 are ignored.
    reduce : {"max", "sum"}, default="max"
        The worst comparison, or the sum of all.
    pos_label : object, default=None
        The positive label; by default the last one in ascending order.
    contrast : {"pairs", "rest"}, default="pairs"
        Which groups are compared: all pairs, or each group with the rest.
    intersectional : bool, default=False
        Compare the intersections of several attributes instead of each attribute.
    continuous : "auto", bool or list of str, default="auto"
        Numeric attributes, such as age: the named columns, all, or none. For a numeric attribute,
        ``"energy"`` measures how much scores depend on it (``energy_dependence``). Any other metric
        compares rows up to and above a cut: the worst of up to 100 cuts that leave 5 % on either
        side. ``"auto"`` selects numeric columns with more than 20 different values and warns.
    loss : {"log_loss", "squared_error", "absolute_error", "huber"}, default=None
        Loss that ``risk_parity`` compares.

    Returns
    -------
    float
        The distance.

    Raises
    ------
    DataError
        If an argument is invalid; the message names it and a remedy.

    Examples
    --------
    >>> unfairness(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"])
    0.5
    >>> unfairness([0, 1, 1, 1], [0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"],
    ...            criterion="equal_opportunity", metric="wasserstein")
    0.25
    """
    kind = criterion_named(criterion)
    check_known("reduce", reduce, ("max", "sum"))
    if kind.score == "loss" and loss is None:
        raise DataError(
            f"{kind.name} compares losses; pass loss=...: 'log_loss' for probabilities, or "
            "'squared_error', "
            "'absolute_error', 'huber'"
        )
    uses_labels = kind.needs_labels or kind.score == "loss" or callable(kind.score)
    numeric = kind.bins is not None or loss not in (None, "log_loss")
    labels = None
    positive = None
    if uses_labels:
        labels = y_true
    if uses_labels and not numeric:
        positive = pos_label
    problem = problem_by_membership(
        Inputs(
            labels,
            sensitive_features,
            control_features,
            sample_weight,
            rows={"y_pred": y_pred, "y_true": y_true},
            label="y_true",
        ),
        criterion=kind,
        contrast=contrast,
        intersectional=intersectional,
        continuous=continuous,
        pos_label=positive,
        target="numbers" if numeric else "either",
    )
    prediction = read_predictions(y_pred, problem, pos_label=pos_label).values
    if not numeric:
        check_not_swapped(numbers_or_none("y_true", y_true), prediction)
    if continuous == "auto":
        check_groups_not_swapped(problem, prediction)
    warn_of_positive_label(problem, pos_label)
    warn_of_unknown_names(problem)
    score = criterion_scores(kind, prediction, problem, loss=loss)
    distances, problem = _distances(metric, score, problem)
    if reduce == "sum":
        distances = _worst_cuts(distances, problem).sum()
    value = float(distances.max())
    if not callable(metric) and not isfinite(value):
        raise DataError(TOO_FAR)
    return value


def _distances(metric: MetricLike, score: Floats, problem: Problem) -> tuple[Floats, Problem]:
    """The distance of each comparison, and the problem with these comparisons: numbers in
    bands, except for energy.
    """
    if metric != "energy":
        problem = in_bands(problem)
        check_dependences(problem.comparisons, metric)
    values = problem.attribute_values
    vector = score.ndim == 2 and acts_on_vectors(metric) and values is None
    distances = between(
        plug_in_metric(metric, vector=vector),
        score if vector or score.ndim == 1 else score.T,
        problem.sides(),
        names=problem.comparisons,
        reduce="all",
        vector=vector,
        dependent=partial(dependence_value, values=values),
    )
    return distances, problem


def _worst_cuts(distances: Floats, problem: Problem) -> Floats:
    """Distances (..., comparisons), with all cuts of a numeric attribute within one set
    replaced by the largest.
    """
    cut = {attribute.name for attribute in problem.scheme.attributes if attribute.cuts}
    merged: dict[object, list[int]] = {}
    for place, comparison in enumerate(problem.comparisons):
        merged.setdefault(
            (comparison.attribute, comparison.within) if comparison.attribute in cut else place,
            [],
        ).append(place)
    return np.stack([distances[..., places].max(-1) for places in merged.values()], -1)
