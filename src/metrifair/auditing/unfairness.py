"""``unfairness(...)``: the distance between groups as one number, in the shape of a scikit-learn metric."""

from __future__ import annotations

from functools import partial
from math import isfinite
from typing import Literal

import torch
from torch import Tensor

from metrifair.errors import DataError
from metrifair.metrics.dependence import dependence_of
from metrifair.metrics.pair import TOO_FAR, between
from metrifair.metrics.registry import MetricLike, acts_on_vectors, measured
from metrifair.problem.attributes import Continuous
from metrifair.problem.bands import in_bands
from metrifair.problem.cells import Contrast
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.problem.predictions import predictions_of, scores_of
from metrifair.problem.problem import Given, Problem, problem_of
from metrifair.problem.tables import Table
from metrifair.support.checks import check_known
from metrifair.training.objective import check_dependences


def unfairness(
    y_true: Table | None,
    y_pred: Table,
    *,
    sensitive_features: Table,
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

    The value is that of the empirical distributions. Metrics that compare numbers take the probabilities of three or
    more classes one class at a time.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Outcomes: labels, or a regression target. Needed where the criterion looks at labels or losses.
    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes)
        Predictions, or class probabilities, whose rows sum to 1. Of two columns the positive class's counts.
    sensitive_features : array-like or table
        The group of each sample; a table holds several attributes. Missing values are unknown groups, left out.
    metric : str or callable, default="kolmogorov"
        How distributions are compared: one of ``kolmogorov``, ``wasserstein``, ``energy``, ``cramer``, ``lp``, ``mmd``,
        ``total_variation``, or a function of two samples.
    criterion : str or Criterion, default="statistical_parity"
        What is compared, and within which sets of samples.
    control_features : array-like or table, default=None
        Strata; comparisons are made within each.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights. A sample of weight 0 is as if it were not there.
    reduce : {"max", "sum"}, default="max"
        The worst comparison, or the sum of all.
    pos_label : object, default=None
        The positive label; by default the last one in ascending order.
    contrast : {"pairs", "rest", "independence"}, default="pairs"
        Compare all pairs of groups, or each group with the rest; or ask how much scores depend on the group (for
        ``metric="energy"``).
    intersectional : bool, default=False
        Cross several attributes into one.
    continuous : "auto", bool or list of str, default="auto"
        Which sensitive features are numbers, such as ages: those columns, all or none. Of a number ``"energy"`` says
        how much scores depend on it (``energy_dependence``), any other metric compares people up to and above a cut:
        the worst of up to 100 that leave 5 % on either side. ``"auto"`` takes columns of numbers with more than 20
        different values, and says so in a warning.
    loss : {"log_loss", "squared_error", "absolute_error", "huber"}, default=None
        The loss that ``risk_parity`` compares.

    Returns
    -------
    float
        The distance.

    Raises
    ------
    DataError
        Where an argument cannot be used as it is; the message says which, and what to do.

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
            f"{kind.name} compares losses; pass loss=...: 'log_loss' for probabilities, or 'squared_error', "
            "'absolute_error', 'huber'"
        )
    looked_at = kind.needs_labels or kind.score == "loss" or callable(kind.score)
    numeric = kind.bins is not None or loss not in (None, "log_loss")
    problem = problem_of(
        Given(
            y_true if looked_at else None,
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
        pos_label=pos_label if looked_at and not numeric else None,
        target="numbers" if numeric else "either",
    )
    score = scores_of(kind, predictions_of(y_pred, problem, pos_label=pos_label).values, problem, loss=loss)
    if metric != "energy":
        problem = in_bands(problem)
        check_dependences(problem.comparisons, metric)
    values = problem.attribute_values
    vector = score.ndim == 2 and acts_on_vectors(metric) and values is None
    found = between(
        measured(metric, vector=vector),
        score if vector or score.ndim == 1 else score.T,
        problem.sides(),
        names=problem.comparisons,
        reduce="all",
        vector=vector,
        dependent=partial(dependence_of, values=None if values is None else torch.as_tensor(values)),
    )
    if reduce == "sum":
        found = _worst_cuts(found, problem).sum()
    value = float(found.max())
    if not callable(metric) and not isfinite(value):
        raise DataError(TOO_FAR)
    return value


def _worst_cuts(found: Tensor, problem: Problem) -> Tensor:
    """Distances (..., comparisons), of which those of a number's cuts in one set are one: the largest."""
    cut = {attribute.name for attribute in problem.scheme.attributes if attribute.cuts}
    together: dict[object, list[int]] = {}
    for place, one in enumerate(problem.comparisons):
        together.setdefault((one.attribute, one.within) if one.attribute in cut else place, []).append(place)
    return torch.stack([found[..., places].amax(-1) for places in together.values()], -1)
