"""``audit_table(...)``: the audit of scores in a table that lives elsewhere, of which only counts are fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack, overload

import numpy as np

from metrifair.auditing.compare import AuditDifference
from metrifair.auditing.counted import (
    IN_MEMORY_ROWS,
    audit_of_columns,
    audit_of_counts,
    check_tolerance,
    one_or_compared,
    scores_named,
)
from metrifair.auditing.out_of_core.columns import Roles
from metrifair.auditing.out_of_core.connections import Connected
from metrifair.auditing.out_of_core.tables import TableRows
from metrifair.auditing.request import ColumnOptions, Criteria, Reference, Request, Threshold, groups_allowed
from metrifair.auditing.result import Audit, traced
from metrifair.checks import seed_of
from metrifair.errors import DataError
from metrifair.problem.attributes import Continuous, Cuts
from metrifair.problem.cells import Contrast
from metrifair.problem.tables import library_of
from metrifair.provenance import source_files
from metrifair.results import FEW, Favourable
from metrifair.selection_rates import LEAST_SHARE, StandardName


@overload
def audit_table(table: Any, *, score: str, group: str | Sequence[str], **options: Unpack[ColumnOptions]) -> Audit: ...
@overload
def audit_table(
    table: Any, *, score: Sequence[str], group: str | Sequence[str], **options: Unpack[ColumnOptions]
) -> Audit | AuditDifference: ...
def audit_table(
    table: Any,
    *,
    score: str | Sequence[str],
    group: str | Sequence[str],
    label: str | None = None,
    control: str | Sequence[str] | None = None,
    weight: str | None = None,
    criteria: Criteria = None,
    metrics: Sequence[str] | str | None = None,
    threshold: Threshold = "auto",
    confidence: float = 0.95,
    random_state: Any = None,
    tolerance: float = 1e-5,
    contrast: Contrast = "pairs",
    intersectional: bool = False,
    continuous: Continuous = "auto",
    cuts: Cuts = None,
    pos_label: object = None,
    loss: str | None = None,
    score_range: tuple[float, float] | None = None,
    resamples: int = 500,
    permutations: int = 999,
    most_groups: int | None = None,
    least_count: int = FEW,
    vc_dimension: int | None = None,
    standard: StandardName | None = None,
    reference: Reference = "highest",
    favourable: Favourable = "high",
    least_share: float = LEAST_SHARE,
    title: str | None = None,
    about: Mapping[str, str] | None = None,
    in_memory_rows: int = IN_MEMORY_ROWS,
) -> Audit | AuditDifference:
    """The audit of the columns of a table where it is: polars, pandas, DuckDB, Dask, Spark, or any SQL through Ibis.

    Only counts leave the table's engine. Of up to ``in_memory_rows`` rows those that are equal are counted, and the
    audit is that of the rows themselves. More are counted by cell (group, stratum and label) and bin of the score, and
    bins that matter are looked into: the Kolmogorov distance is exact, every other one comes with a proven bracket no
    wider than ``tolerance``; intervals and p-values are those of the counts. Findings are those of ``audit_file``.

    Rows without a score, label, weight or any group are left out and counted.

    Parameters
    ----------
    table : polars, pandas or pyarrow table, polars LazyFrame, DuckDB relation, Ibis table, Dask or Spark data frame
        The rows; anything that narwhals knows. It must not change while it is counted.
    score : str or sequence of str
        The column of the scores; several are those of several models, each audited and compared with the first.
    group : str or sequence of str
        The column of the groups; several are several attributes.
    label : str, default=None
        The column of the outcomes.
    control : str or sequence of str, default=None
        The columns of the strata.
    weight : str, default=None
        The column of the weights.
    criteria : str, Criterion or sequence of them, default=None
        What is compared; by default what the columns allow, as in ``audit``.
    metrics : str or sequence of str, default=None
        How distributions are compared; by default kolmogorov, wasserstein and energy.
    threshold : float, "auto", "median" or None, default="auto"
        Scores from here on are decisions for, as in ``audit``.
    confidence : float, default=0.95
        Of intervals and certified bounds.
    random_state : int, Generator, RandomState or None, default=None
        What resampling draws from.
    tolerance : float, default=1e-5
        How wide the bracket of a distance may be: a share of the range of the scores (in their unit, as the metric).
    contrast : {"pairs", "rest", "independence"}, default="pairs"
        Compare all pairs of groups, each group with the rest, or ask how much scores depend on the group: one
        finding of all groups together, whose energy is ``energy_dependence``.
    intersectional : bool, default=False
        Cross several columns of groups into one.
    continuous : "auto", bool or list of str, default="auto"
        Which of the attributes are numbers, such as ages, as in ``audit_file``.
    cuts : dict of lists of float, or list of float, default=None
        Makes groups of numbers instead: ``{"age": [25, 60]}`` are those up to 25, above 25 up to 60, and above 60; a
        list are the cuts of the only attribute.
    pos_label : object, default=None
        The positive label; by default the last one in ascending order.
    loss : {"log_loss", "squared_error", "absolute_error", "huber"}, default=None
        The loss that the criterion ``risk_parity`` compares; not for tables too large to hold.
    score_range : tuple of float, default=None
        Lowest and highest score that can occur; [0, 1] for probabilities.
    resamples : int, default=500
        How many, for intervals; 0: none.
    permutations : int, default=999
        How many, for p-values; 0: none.
    most_groups : int, default=None
        Groups that a column may have, as in ``audit``.
    least_count : int, default=30
        Groups of fewer rows are listed apart, as too few to tell, and are never the headline.
    vc_dimension : int, default=None
        Where these rows trained the model, as in ``audit``.
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
    in_memory_rows : int, default=2000000
        Up to so many rows are audited as they are; 0: none.

    Returns
    -------
    Audit
        As that of ``audit``; distances of counted rows have a ``bracket``. Of several scores an ``AuditDifference``.

    Raises
    ------
    DataError
        Where the table cannot be read, or an argument not be used as it is.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.LazyFrame({"p": [0.2, 0.8, 0.4, 0.9, None], "sex": list("ffmmm"), "y": [0, 1, 1, 1, 1]})
    >>> found = audit_table(table, score="p", group="sex", label="y", random_state=0)
    >>> found.record.rows, found.record.left_out, found.worst(criterion="statistical_parity").value
    (4, 1, 0.5)
    """
    given = dict(locals())
    request, seed = Request.among(given), seed_of(random_state)
    names: dict[str, Any] = {"group": group, "label": label, "control": control, "weight": weight}
    names |= {"cuts": cuts, "continuous": request.numbers}
    every = {one: Roles.named(score=one, **names) for one in scores_named(score)}
    check_tolerance(tolerance)
    generator = np.random.default_rng(seed)
    place = table if isinstance(table, Connected) else Connected("the table", table)
    files = [] if place.file is None else source_files([place.file])
    source = place.name if place.file is None else place.name.replace(place.file, files[0].name)
    library = library_of(place.table)
    most, scores = groups_allowed(request.most_groups), tuple(every)
    rows = {
        name: TableRows.of(
            place.table,
            roles,
            name=place.name,
            most_groups=most,
            secrets=place.secrets,
            beside=scores[1:] if name == scores[0] else (),
        )
        for name, roles in every.items()
    }
    first = rows[scores[0]]
    if first.rows == 0:
        raise DataError(f"{place.name} has no rows")
    # All scores in one answer: each in an order of its own would pair the scores of different rows.
    held = first.all_rows() if first.rows <= in_memory_rows else None
    audits = {}
    for name, roles in every.items():
        if held is not None:
            found = audit_of_columns(place.name, roles, held, request, generator, is_text=False, scores=scores)
            if len(scores) == 1:  # rows in the order of their scores, which no other audit's are in
                found = replace(found, rows=None)
        else:
            found = audit_of_counts(rows[name], request, generator, tolerance=tolerance)
        told = {"seed": seed, "columns": roles.by_role, "files": files, "source": source}
        audits[name] = replace(traced(found, audit_table, given, **told), library=library)
    return one_or_compared(audits)
