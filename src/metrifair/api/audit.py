"""``audit(...)``: how unfair any scores are, for whom, in which sense, and how sure one can be."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Required, Unpack, overload

import numpy as np
from narwhals.stable.v2.typing import IntoDataFrame

from metrifair.api.audit_result import Audit
from metrifair.api.compare import AuditDifference, compare_named
from metrifair.auditing.request import AuditOptions, Request
from metrifair.auditing.source import MemorySource, audit_source
from metrifair.errors import DataError
from metrifair.problem.attributes import in_groups
from metrifair.problem.predictions import models_of
from metrifair.problem.tables import Table, library_of
from metrifair.support.checks import seed_of
from metrifair.support.signatures import as_in


class _RowOptions(AuditOptions, total=False):
    sensitive_features: Required[Table]
    y_true: Table | None
    control_features: Table | None
    sample_weight: Table | None


@overload
def audit(y_pred: Mapping[str, Table] | IntoDataFrame, **options: Unpack[_RowOptions]) -> Audit | AuditDifference: ...
@overload
def audit(y_pred: Table, **options: Unpack[_RowOptions]) -> Audit: ...
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
    max_groups : int, default=None
        Groups that an attribute may have, up to 10,000. Without it, more than 1,000 are refused, and so are more than
        30 with fewer than two samples each on average: such a column holds ids or measurements.
    min_group_size : int, default=30
        Groups of fewer rows are listed apart, as too few to tell, and are never the headline.
    vc_dimension : int, default=None
        Say so where these rows trained the model, or chose it: the VC dimension of its class (d + 1 for linear models
        of d features). Then only the paper's theorem proves anything, and the other certified bounds are left out.
    standard : {"ll144", "four-fifths", "credit"}, default=None
        The table that a rule asks for, computed and shown (docs/standards.md); nothing is said about any law.
    reference : str or dict, default="highest"
        Whose selection rate others are divided by: the highest, a group, or a group for each attribute.
    favorable : {"high", "low"}, default="high"
        Which scores are good to have. With "low", those below the threshold or the median are selected, and the
        positive label, by default the first one then, is the one that low scores are of.
    min_group_share : float, default=0.02
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
    >>> print(found.describe().sentence)
    The gap is largest at score 0.4: 66.7% of “a” and 0.0% of “b” score at or below it.
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
    groups = sensitive_features if request.cuts is None else in_groups(sensitive_features, request.cuts)
    models = models_of(y_pred, y_true)
    library = library_of(y_pred, sensitive_features, y_true, control_features, sample_weight)
    audits, origin = {}, object()
    for name, one in ({"": y_pred} if models is None else models).items():
        result = audit_source(
            MemorySource(one, groups, y_true, control_features, sample_weight), request, generator, origin
        )
        attributes = () if result.rows is None else result.rows.sample.problem.scheme.attributes
        columns = {"score": [name] if name else [], "group": [attribute.name for attribute in attributes]}
        result = result.with_provenance(audit, given, seed=seed, columns=columns, source="rows in memory")
        audits[name] = Audit(result.record, result.rows, library)
    return audits[""] if models is None else compare_named(audits, same_rows=True)
