"""Rows in memory: as a user passes them, or in the columns of a file or table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metrifair.auditing.measure.sample import (
    AuditSample,
    ReadingFacts,
    SampleScores,
    Units,
    problem_for_scores,
    scores_by_class,
)
from metrifair.auditing.measure.selection import at_or_above, number_or_default
from metrifair.auditing.records import ClusterFacts
from metrifair.auditing.request import MOST_LEVELS, Request
from metrifair.auditing.sources.column_levels import (
    ManyNumbers,
    decode_columns,
    levels_for,
)
from metrifair.auditing.sources.column_roles import Roles
from metrifair.auditing.sources.column_values import (
    check_favorable,
    numbers,
    score_precision,
    scores_in,
)
from metrifair.auditing.sources.problems import audited_problems
from metrifair.auditing.sources.used_rows import check_some, used_rows
from metrifair.errors import DataError, Remedy
from metrifair.figures.clusters import count_clusters
from metrifair.problem.clusters import is_id_name, repeats
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.predictions import read_predictions
from metrifair.problem.problem import Inputs, Problem
from metrifair.problem.tables import Table, columns
from metrifair.support.arrays import Floats, Integers

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class MemorySource:
    """Rows in memory, as a user passes them."""

    y_pred: Table
    sensitive_features: Table | GroupProbabilities
    y_true: Table | None = None
    control_features: Table | None = None
    sample_weight: Table | None = None
    # of the column that the scores were read from; None: that of y_pred
    precision: np.dtype[Any] | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)  # excluded rows, by reason
    clusters: Table | None = None
    # by column: rows and different values
    repeated_ids: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def counts(self, request: Request) -> AuditSample:
        """Each row is a unit, and its score is not binned."""
        rows = {"y_pred": self.y_pred, "y_true": self.y_true}
        inputs = Inputs(
            self.y_true,
            self.sensitive_features,
            self.control_features,
            self.sample_weight,
            rows,
            label="y_true",
            clusters=self.clusters,
        )
        if self.clusters is not None:
            _check_clusters(self.sensitive_features)
        problem, crossed = audited_problems(inputs, request)
        clusters = _cluster_facts(self.clusters, problem)
        if clusters is not None and clusters.count == len(problem):  # then rows are independent
            problem, crossed = _without_clusters(problem, crossed)
        scored = problem_for_scores(problem, request.favorable)
        prediction, classes, precision = read_predictions(
            self.y_pred, scored, pos_label=request.pos_label
        )
        weight = problem.weight
        order = None
        exponent = 0
        if weight is not None and self.sample_weight is not None:
            # Multiplying by a power of two changes no ratio of weights, and keeps sums from
            # overflowing.
            exponent = int(np.frexp(weight.max())[1])
            weight = np.ldexp(weight, -exponent)
        if weight is not None and problem.members is None:
            order = _order_of_rows(problem, prediction, weight)
            weight = weight[order]
            prediction = prediction[order]
            problem = replace(problem.take(order), weight=weight)
            if crossed is not None:
                crossed = replace(crossed.take(order), weight=weight)
        share = None if problem.members is None else problem.members.share
        units = Units(len(problem), share, weight, exponent, order)
        selected = np.zeros(len(prediction))
        if prediction.ndim == 1:
            threshold = number_or_default(request.threshold)
            above = at_or_above(prediction, threshold, self.precision or precision)
            selected = above * (1.0 if weight is None else weight)
        return AuditSample(
            problem,
            SampleScores(
                scores_by_class(prediction, classes, weight),
                (float(prediction.min()), float(prediction.max())),
                selected,
                favorable=request.favorable,
                classes=classes,
            ),
            units,
            ReadingFacts(self.left_out, clusters=clusters, repeated_ids=self.repeated_ids),
            crossed,
            request.known_names,
        )


def _without_clusters(problem: Problem, crossed: Problem | None) -> tuple[Problem, Problem | None]:
    if crossed is not None:
        crossed = replace(crossed, clusters=None)
    return replace(problem, clusters=None), crossed


def _order_of_rows(problem: Problem, prediction: Floats, weight: Floats) -> Integers:
    """The order in which weighted rows are counted.

    Sums of weights are rounded, and resamples are drawn by place: neither may depend on the rows'
    order. Where groups have probabilities, there are several times as many entries, too many to
    sort.
    """
    scores = [prediction] if prediction.ndim == 1 else list(prediction.T)
    others = [codes for codes in (problem.labels, problem.strata) if codes is not None]
    return np.lexsort([*others, *problem.groups.T, *scores, weight])


def repeated_ids(table: Any) -> dict[str, tuple[int, int]]:
    """The columns of a table that are named like ids and repeat, with the rows and the
    different values of each.
    """
    counts = {}
    for name in table.columns:
        if is_id_name(name):
            present = table[name].drop_nulls()
            rows = len(present)
            values = present.n_unique()
            if repeats(rows, values):
                counts[name] = rows, values
    return counts


def _check_clusters(sensitive_features: Table | GroupProbabilities) -> None:
    """Raise a DataError for clusters of rows whose groups have probabilities."""
    if isinstance(sensitive_features, GroupProbabilities):
        raise DataError(
            "do not combine with probabilities of groups: corrections and bounds need independent "
            "rows",
            argument="clusters",
            remedy=Remedy(
                "clusters",
                leave_out=True,
                detail=" if the rows are independent",
            ),
        )


def _cluster_facts(clusters: Table | None, problem: Problem) -> ClusterFacts | None:
    """The name and the number of the clusters; None without clusters."""
    if clusters is None or problem.clusters is None:
        return None
    (name,) = columns("clusters", clusters)
    return ClusterFacts(name, count_clusters(problem.clusters))


@dataclass(frozen=True, eq=False)
class ColumnSource:
    """All rows of a file or table, whose columns are in memory.

    ``scores`` names one column for each model. Rows without a score of every model are excluded
    from all audits.
    """

    name: str
    roles: Roles
    table: pl.DataFrame
    scores: Sequence[str]
    is_text: bool = False
    # by column: rows and different values
    repeated_ids: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def counts(self, request: Request) -> AuditSample:
        """The sample of the usable rows."""
        return self.in_memory().counts(request)

    def in_memory(self) -> MemorySource:
        """The usable rows, as arrays."""
        roles = self.roles
        table = self.table
        if len(self.scores) > 1:
            missing = [np.isnan(scores_in(roles, table[score])) for score in self.scores]
            table = table.filter(~np.any(missing, axis=0))
        # An attribute with too many groups is an error here: naming a million of them takes a
        # minute.
        levels = levels_for(roles, max_values=len(table), max_groups=MOST_LEVELS)
        rows = None
        while rows is None:
            try:
                rows = used_rows(roles, levels, table)
            # each number is a level, looked up by value and not by name
            except ManyNumbers as many:
                values = np.unique(numbers("group", many.level.name, table[many.level.name]))
                values = values[~np.isnan(values)]
                many.level.cut_at(values[:-1], float(values[-1]))
        check_some(self.name, roles, len(rows.scores))
        check_favorable(roles, rows.scores.max(), table[roles.score])
        arguments = decode_columns(roles, levels, rows.codes, is_text=self.is_text)
        if rows.proxy is not None:
            arguments["sensitive_features"] = rows.proxy
        return MemorySource(
            rows.scores,
            **arguments,
            sample_weight=rows.weight,
            precision=score_precision([table[roles.score].dtype]),
            clusters=None if rows.clusters is None else {str(roles.cluster): rows.clusters},
            repeated_ids=self.repeated_ids,
            left_out=rows.left_out + Counter({"missing_other_score": len(self.table) - len(table)}),
        )
