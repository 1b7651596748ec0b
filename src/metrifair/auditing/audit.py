"""``audit(...)``: how unfair any scores are, for whom, in which sense, and how sure one can be; ``unfairness(...)``:
one number, in the shape of a scikit-learn metric."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Literal, Unpack, overload

import numpy as np
import torch
from narwhals.stable.v2.typing import IntoDataFrame
from torch import Tensor

from metrifair.auditing.compare import AuditDifference, compared_audits
from metrifair.auditing.decisions import selection_of
from metrifair.auditing.record import audit_record
from metrifair.auditing.request import AuditOptions, Request
from metrifair.auditing.result import Audit, HeldRows, traced
from metrifair.auditing.sample import AuditSample, sample_in_memory
from metrifair.errors import DataError
from metrifair.metrics.dependence import dependence_of
from metrifair.metrics.pair import TOO_FAR, between
from metrifair.metrics.registry import MetricLike, acts_on_vectors, measured
from metrifair.problem.attributes import Continuous, in_groups
from metrifair.problem.bands import in_bands
from metrifair.problem.cells import Contrast
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.problem.predictions import models_of, predictions_of, scores_of
from metrifair.problem.problem import Given, Problem, problem_of
from metrifair.problem.tables import Table, library_of
from metrifair.support.checks import check_known, seed_of
from metrifair.support.signatures import as_in
from metrifair.training.objective import check_dependences


@overload
def audit(
    y_pred: Mapping[str, Table] | IntoDataFrame,
    *,
    sensitive_features: Table,
    y_true: Table | None = None,
    control_features: Table | None = None,
    sample_weight: Table | None = None,
    **options: Unpack[AuditOptions],
) -> Audit | AuditDifference: ...
@overload
def audit(
    y_pred: Table,
    *,
    sensitive_features: Table,
    y_true: Table | None = None,
    control_features: Table | None = None,
    sample_weight: Table | None = None,
    **options: Unpack[AuditOptions],
) -> Audit: ...
@as_in(Request)
def audit(
    y_pred: Table,
    *,
    sensitive_features: Table,
    y_true: Table | None = None,
    control_features: Table | None = None,
    sample_weight: Table | None = None,
    **options: Unpack[AuditOptions],
) -> Audit | AuditDifference:
    """How unfair scores are, for whom, in which sense, and how sure one can be of it.

    For every attribute, criterion, set and pair of groups (each against the rest, where there are more than 30), and
    for every metric: the distance of the samples, an unbiased value where there is one, a bootstrap interval, upper
    bounds certified for scores that were not trained on, a permutation p-value, the utility that shows the gap (in
    audits of up to 1,000 comparisons), and words. Further, rates of decisions at the threshold.

    Parameters
    ----------
    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes)
        Predictions: probabilities, or scores of any scale; or class probabilities, whose rows sum to 1: of two classes
        the positive one's counts, of more each class is audited by itself. Named columns whose rows do not sum to 1, of
        a dict or a data frame, are several models: each is audited, and compared with the first.
    sensitive_features : array-like or table
        The group of each sample; a table holds several attributes. Missing values are unknown groups, left out.
    y_true : array-like of shape (n_samples,), default=None
        Outcomes: labels, or a regression target.
    control_features : array-like or table, default=None
        Strata; every comparison is made within each of them.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights. A sample of weight 0 is as if it were not there.
    criteria : str, Criterion or sequence of them, default=None
        What is compared. By default statistical parity (within the strata, if given), with two labels also equal
        opportunity and predictive equality (together they are equalized odds), with more labels equalized odds.
    metrics : str or sequence of str, default=None
        How distributions are compared; by default kolmogorov, wasserstein and energy.
    threshold : float, "auto", "median" or None, default="auto"
        Scores from here on are decisions for. "auto" is 0.5 for probabilities, and no decisions for scores of another
        scale; None: no decisions. "median": scores above the median of all samples. Scores 0 and 1 are decisions
        themselves, at any threshold between them.
    confidence : float, default=0.95
        Of intervals and certified bounds.
    random_state : int, Generator, RandomState or None, default=None
        What resampling draws from.
    contrast : {"pairs", "rest", "independence"}, default="pairs"
        Compare all pairs of groups, each group with the rest, or ask how much scores depend on the group: one
        finding of all groups together, whose energy is ``energy_dependence``.
    intersectional : bool, default=False
        Cross several attributes into one.
    continuous : "auto", bool or list of str, default="auto"
        Which of the attributes are numbers, such as ages: those columns, all or none. Of a number the audit tells how
        much scores depend on it (the energy finding), and the worst of up to 100 cuts in two; decisions are shown in
        five bands. ``"auto"`` takes columns of numbers with more than 20 different values, and says so in a warning.
    cuts : dict of lists of float, or list of float, default=None
        Makes groups of numbers instead: ``{"age": [25, 60]}`` are the groups ≤25, (25,60] and >60; a
        list are the cuts of the only attribute.
    pos_label : object, default=None
        The positive label; by default the last one in ascending order.
    loss : {"log_loss", "squared_error", "absolute_error", "huber"}, default=None
        The loss that the criterion ``risk_parity`` compares.
    score_range : tuple of float, default=None
        Lowest and highest score that can occur; [0, 1] for probabilities. Without it only the Kolmogorov distance is
        certified.
    resamples : int, default=500
        How many, for intervals; 0: none. Groups of fewer than 5 samples have none (docs/intervals.md).
    permutations : int, default=999
        How many at most, for p-values; 0: none. Fewer are drawn where a p-value is clearly above 0.05.
    most_groups : int, default=None
        Groups that an attribute may have, up to 10,000. Without it, more than 1,000 are refused, and so are more than
        30 with fewer than two samples each on average: such a column holds ids or measurements.
    least_count : int, default=30
        Groups of fewer rows are listed apart, as too few to tell, and are never the headline.
    vc_dimension : int, default=None
        Say so where these rows trained the model, or chose it: the VC dimension of its class (d + 1 for linear models
        of d features). Then only the paper's theorem proves anything, and the other certified bounds are left out.
    standard : {"ll144", "four-fifths", "credit"}, default=None
        The table that a rule asks for, computed and shown (docs/standards.md); nothing is said about any law.
    reference : str or dict, default="highest"
        Whose selection rate others are divided by: the highest, a group, or a group for each attribute.
    favourable : {"high", "low"}, default="high"
        Which scores are good to have. With "low", those below the threshold or the median are selected, and the
        positive label, by default the first one then, is the one that low scores are of.
    least_share : float, default=0.02
        Groups of a smaller share of all rows are shown, and left out of ratios.
    title : str, default=None
        What stands on top of the report.
    about : dict of str, default=None
        What is to be known of the data, such as its date and source: part of the report.

    Returns
    -------
    Audit
        Findings, decisions, notes and a summary, and ways to hand them on. Of several models an ``AuditDifference``,
        which has the audit of each.

    Raises
    ------
    DataError
        Where an argument cannot be used as it is; the message says which, and what to do.

    Examples
    --------
    >>> found = audit([0.1, 0.4, 0.6, 0.7, 0.5, 0.8], sensitive_features=["a", "a", "a", "b", "b", "b"], random_state=0)
    >>> print(found.worst().sentence)
    At score 0.4 the gap is largest: 66.7% of “a” but 0.0% of “b” have this score or less.
    >>> found.decisions[0].selection_ratio
    0.3333333333333333
    """
    given = {**locals(), **options}
    request = Request.of(audit, options)
    seed = seed_of(request.random_state)
    if isinstance(y_pred, str | os.PathLike):
        raise DataError(
            f"audit takes predictions; for the file {os.fspath(y_pred)!r} use audit_file(path, score=..., group=...)"
        )
    generator = np.random.default_rng(seed)
    rows = {
        "sensitive_features": sensitive_features
        if request.cuts is None
        else in_groups(sensitive_features, request.cuts),
        "y_true": y_true,
        "control_features": control_features,
        "sample_weight": sample_weight,
    }
    models = models_of(y_pred)
    library = library_of(y_pred, sensitive_features, y_true, control_features, sample_weight)
    audits, origin = {}, object()
    for name, one in ({"": y_pred} if models is None else models).items():
        sample = sample_in_memory(one, request, **rows)
        columns = {"score": [name] if name else [], "group": [own.name for own in sample.problem.scheme.attributes]}
        found = replace(audit_of_rows(sample, request, generator, origin), library=library)
        audits[name] = traced(found, audit, given, seed=seed, columns=columns, source="rows in memory")
    return audits[""] if models is None else compared_audits(audits, same_rows=True)


def audit_of_rows(
    sample: AuditSample, request: Request, generator: np.random.Generator, origin: object = None
) -> Audit:
    """The audit of rows that are held in memory."""
    request = request.completed(sample.problem, *sample.ends, probabilities=sample.probabilities)
    record = audit_record(sample, request, generator, selection_of(sample, request))
    return Audit(record, HeldRows(sample, request, origin))


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
    score = scores_of(kind, predictions_of(y_pred, problem), problem, loss=loss)
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
