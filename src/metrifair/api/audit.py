"""``audit(...)``: measure the gaps between groups for any model's scores, with confidence
intervals.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Required, Unpack, overload

import numpy as np

from metrifair.api.audit_result import Audit
from metrifair.auditing.audit_record import AuditedRows, audit_source
from metrifair.auditing.records import AuditRecord, Favorable
from metrifair.auditing.request import (
    AuditArguments,
    AuditOptions,
    Criteria,
    Request,
    RequestArguments,
    ThresholdChoice,
)
from metrifair.auditing.sources.memory import MemorySource
from metrifair.errors import DataError
from metrifair.problem.attributes import Continuous, in_groups
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.predictions import favorable_decisions
from metrifair.problem.tables import Columns, Table, table_library
from metrifair.support.checks import make_seed
from metrifair.support.provenance import call_text

if TYPE_CHECKING:
    from metrifair.api.compare import AuditDifference


class _RowArguments(AuditArguments, total=False):
    sensitive_features: Required[Table | GroupProbabilities]
    control_features: Table | None
    sample_weight: Table | None
    clusters: Table | None
    continuous: Continuous | None
    confidence: float | None


@overload
def audit(
    y_true: Table | None, y_pred: Mapping[str, Columns], **others: Unpack[_RowArguments]
) -> AuditDifference: ...
@overload
def audit(y_true: Table | None, y_pred: Columns, **others: Unpack[_RowArguments]) -> Audit: ...
def audit(
    y_true: Table | None,
    y_pred: Columns | Mapping[str, Columns],
    *,
    sensitive_features: Table | GroupProbabilities,
    control_features: Table | None = None,
    sample_weight: Table | None = None,
    clusters: Table | None = None,
    criteria: Criteria = None,
    metrics: Sequence[str] | str | None = None,
    threshold: ThresholdChoice = "auto",
    pos_label: object = None,
    favorable: Favorable = "high",
    favorable_decision: object = None,
    intersectional: bool = False,
    continuous: Continuous | None = None,
    confidence: float | None = None,
    random_state: Any = 0,
    options: AuditOptions | None = None,
) -> Audit | AuditDifference:
    """Measure the gaps between groups for any model's scores, with confidence intervals.

    The audit compares the score distributions of each pair of groups, for every attribute,
    criterion and metric. Each finding has the distance, an unbiased estimate where one exists, a
    bootstrap interval, certified upper bounds and a permutation p-value. With a threshold, the
    audit also reports decision rates by group.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Outcomes: labels, or a regression target. Pass None if there are no outcomes.
    y_pred : array-like of shape (n_samples,) or (n_samples, n_classes), or dict of them
        Predictions of one model: probabilities, scores of any scale, decisions, or class
        probabilities. Named columns are matched to the labels by name. Of two classes the audit
        uses the positive one; of more it audits each class. A dict contains the predictions of
        several models; each is compared with the first.
    sensitive_features : array-like, table or GroupProbabilities
        The group of each sample. A table contains several attributes. Rows with a missing group are
        excluded. If groups are not in the data, pass their probabilities as ``GroupProbabilities``.
    control_features : array-like or table, default=None
        Strata within which groups are compared.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each sample. Samples with weight 0 are ignored.
    clusters : array-like of shape (n_samples,), default=None
        The cluster of each row, such as a person. Intervals and p-values then allow for dependent
        rows of a cluster, and ``min_group_size`` counts clusters. A missing value is a cluster of
        its own.
    criteria : str, Criterion or sequence of them, default=None
        Fairness criteria. By default statistical parity (within strata, if given). With two labels
        also equal opportunity and predictive equality, with more labels equalized odds.
    metrics : str or sequence of str, default=None
        Distances between score distributions; by default kolmogorov, wasserstein and energy.
    threshold : float, "auto", "median" or None, default="auto"
        Scores at or above the threshold count as positive decisions. "auto" is 0.5 for
        probabilities and no threshold for other scores. "median" selects scores above the median.
        None reports no decisions. Scores of 0 and 1 are decisions themselves.
    pos_label : object, default=None
        The positive label; by default the last one in ascending order.
    favorable : {"high", "low"}, default="high"
        Which scores are favorable. With "low", scores below the threshold count as favorable
        decisions, and the positive label is by default the first one.
    favorable_decision : object, default=None
        The favorable decision, for predictions that are decisions such as "Approved". All other
        values are unfavorable.
    intersectional : bool, default=False
        Compare the intersections of several attributes instead of each attribute. All attributes
        are combined, so that each group has few rows. ``find_groups`` searches combinations of any
        size, and compares each with the other rows.
    continuous : "auto", bool or list of str, default=None
        Numeric attributes, such as age. By default that of ``options`` ("auto").
    confidence : float, default=None
        Confidence level of intervals and certified upper bounds. By default that of ``options``
        (0.95).
    random_state : int, Generator, RandomState or None, default=0
        Seed of the resampling: the same rows give the same intervals. None draws a new seed.
    options : AuditOptions, default=None
        Further options, such as ``AuditOptions(min_group_size=50, resamples=2000)``.

    Returns
    -------
    Audit or AuditDifference
        One model's findings, decisions, notes and summary. For a dict of models, their comparison
        with the audit of each.

    Raises
    ------
    DataError
        If an argument cannot be used. The message names the argument and the remedy.

    See Also
    --------
    find_groups : Searches for groups that are worse than the other rows. ``Audit.with_groups`` adds
        a search to an audit.

    Examples
    --------
    >>> result = audit(None, [0.1, 0.4, 0.6, 0.7, 0.5, 0.8], sensitive_features=list("aaabbb"), random_state=0)
    >>> print(result.describe().sentence)
    At a cutoff just above 0.4, 33.3% of “a” and 100.0% of “b” pass it.
    >>> result.decisions[0].selection_ratio
    0.3333333333333333
    """
    measured = RequestArguments(
        criteria=criteria,
        metrics=metrics,
        threshold=threshold,
        pos_label=pos_label,
        favorable=favorable,
        favorable_decision=favorable_decision,
        intersectional=intersectional,
    )
    request = Request.of(options, continuous=continuous, confidence=confidence, **measured)
    call = call_text(
        audit,
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        control_features=control_features,
        sample_weight=sample_weight,
        clusters=clusters,
        continuous=continuous,
        confidence=confidence,
        options=options,
        **measured,
    )
    seed = make_seed(random_state)
    generator = np.random.default_rng(seed)
    models = _models(y_pred)
    groups = sensitive_features
    if request.cuts is not None:
        groups = in_groups(sensitive_features, request.cuts)
    audits = {}
    origin = object()  # audits of one call share their rows
    for name, prediction in models.items():
        scores = prediction
        if favorable_decision is not None:
            scores = favorable_decisions(prediction, favorable_decision)
        source = MemorySource(
            scores, groups, y_true, control_features, sample_weight, clusters=clusters
        )
        record, rows = audit_source(
            source,
            request,
            generator,
            origin=origin,
            call=call,
            seed=seed,
            source="rows in memory",
        )
        library = table_library(
            prediction, sensitive_features, y_true, control_features, sample_weight
        )
        audits[name] = Audit(_with_columns(record, rows, name), rows, library)
    return only_or_comparison(audits, several=isinstance(y_pred, Mapping))


def _with_columns(record: AuditRecord, rows: AuditedRows, model: str) -> AuditRecord:
    """The record with the names of the model, the attributes and the clusters."""
    attributes = [attribute.name for attribute in rows.sample.problem.scheme.attributes]
    columns = {"score": [model] if model else [], "group": attributes}
    if record.clusters is not None:
        columns["cluster"] = [record.clusters.column]
    return replace(record, provenance=replace(record.provenance, columns=columns))


def only_or_comparison(audits: Mapping[str, Audit], *, several: bool) -> Audit | AuditDifference:
    """Return the only audit, or all of them compared with the first."""
    if not several:
        return next(iter(audits.values()))
    from metrifair.api.compare import compare_named  # noqa: PLC0415 (one audit needs no comparison)

    return compare_named(audits, same_rows=True)


def _models(y_pred: Columns | Mapping[str, Columns]) -> dict[str, Columns]:
    """Predictions by model; those of a single model have no name."""
    if isinstance(y_pred, str | os.PathLike):
        raise DataError(
            f"audit takes predictions; for the file {os.fspath(y_pred)!r} use audit_file(path, "
            "score=..., group=...)"
        )
    if not isinstance(y_pred, Mapping):
        return {"": y_pred}
    if len(y_pred) < 2:
        raise DataError(
            f"is a dict, which contains the predictions of several models, and has {len(y_pred)}",
            argument="y_pred",
            remedy="pass the predictions of a single model as an array or a table",
        )
    return {str(name): prediction for name, prediction in y_pred.items()}
