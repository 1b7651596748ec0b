"""``audit(...)``: how unfair any scores are, for whom, in which sense, and how sure one can be."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.decisions import are_decisions, threshold_for
from metrifair.auditing.record import record_of
from metrifair.auditing.request import Criteria, Request, Threshold
from metrifair.auditing.result import Audit, traced
from metrifair.auditing.sample import AuditSample, sample_in_memory
from metrifair.checks import seed_of
from metrifair.errors import DataError
from metrifair.problem.attributes import Continuous
from metrifair.problem.cells import Contrast
from metrifair.problem.tables import Table
from metrifair.results import FEW


def audit(
    y_pred: Table,
    *,
    sensitive_features: Table,
    y_true: Table | None = None,
    control_features: Table | None = None,
    sample_weight: Table | None = None,
    criteria: Criteria = None,
    metrics: Sequence[str] | str | None = None,
    threshold: Threshold = "auto",
    confidence: float = 0.95,
    random_state: Any = None,
    contrast: Contrast = "pairs",
    intersectional: bool = False,
    continuous: Continuous = "auto",
    pos_label: object = None,
    loss: str | None = None,
    score_range: tuple[float, float] | None = None,
    resamples: int = 500,
    permutations: int = 999,
    most_groups: int | None = None,
    least_count: int = FEW,
    vc_dimension: int | None = None,
    title: str | None = None,
    about: Mapping[str, str] | None = None,
) -> Audit:
    """How unfair scores are, for whom, in which sense, and how sure one can be of it.

    For every attribute, criterion, set and pair of groups (each against the rest, where there are more than 30), and
    for every metric: the distance of the samples, an unbiased value where there is one, a bootstrap interval, upper
    bounds certified for scores that were not trained on, a permutation p-value, the utility that shows the gap (in
    audits of up to 1,000 comparisons), and words. Further, rates of decisions at the threshold.

    Parameters
    ----------
    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes)
        Predictions: probabilities, or scores of any scale; or class probabilities, whose rows sum to 1: of two classes
        the positive one's counts, of more each class is audited by itself.
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
    threshold : float, "auto" or None, default="auto"
        Scores from here on are decisions for. "auto" is 0.5 for probabilities, and no decisions for scores of another
        scale; None: no decisions. Scores 0 and 1 are decisions themselves.
    confidence : float, default=0.95
        Of intervals and certified bounds.
    random_state : int, Generator, RandomState or None, default=None
        What resampling draws from.
    contrast : {"pairs", "rest"}, default="pairs"
        Compare all pairs of groups, or each group with the rest.
    intersectional : bool, default=False
        Cross several attributes into one.
    continuous : "auto", bool or list of str, default="auto"
        Which of the attributes are numbers, such as ages: those columns, all or none. Of a number the audit tells how
        much scores depend on it (the energy finding), and the worst of up to 100 cuts in two; decisions are shown in
        five bands. ``"auto"`` takes columns of numbers with more than 20 different values, and says so in a warning.
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
    title : str, default=None
        What stands on top of the report.
    about : dict of str, default=None
        What is to be known of the data, such as its date and source: part of the report.

    Returns
    -------
    Audit
        Findings, decisions, notes and a summary, and ways to hand them on.

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
    given = dict(locals())
    request, seed = Request.among(given), seed_of(random_state)
    if isinstance(y_pred, str | os.PathLike):
        raise DataError(
            f"audit takes predictions; for the file {os.fspath(y_pred)!r} use audit_file(path, score=..., group=...)"
        )
    sample = sample_in_memory(
        y_pred,
        request,
        sensitive_features=sensitive_features,
        y_true=y_true,
        control_features=control_features,
        sample_weight=sample_weight,
    )
    found = audit_of_rows(sample, request, np.random.default_rng(seed))
    columns = {"group": [attribute.name for attribute in sample.problem.scheme.attributes]}
    return traced(found, audit, given, seed=seed, columns=columns, source="rows in memory")


def audit_of_rows(sample: AuditSample, request: Request, generator: np.random.Generator) -> Audit:
    """The audit of rows that are held in memory."""
    request = request.completed(sample.problem, *sample.ends, probabilities=sample.probabilities)
    score, threshold = sample.score, None
    selected: NDArray[Any] | None = None
    if score is not None:
        binary = are_decisions(score)
        threshold = threshold_for(request.threshold, decisions=binary, probabilities=sample.probabilities)
    if score is not None and threshold is not None:
        selected = score >= threshold if sample.weight is None else (score >= threshold) * sample.weight
    return Audit(record_of(sample, request, generator, threshold=threshold, selected=selected))
