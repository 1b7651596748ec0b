"""``find_groups(...)``: search for groups that a model treats worse than the other rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from metrifair import report
from metrifair.api.pages import RecordedPage
from metrifair.auditing.groups.outcomes import OutcomeRows, outcome_rows
from metrifair.auditing.groups.search import GroupFinder
from metrifair.auditing.groups.search_counts import SearchCounts, search_counts
from metrifair.auditing.search_records import (
    GapLimit,
    SearchedOutcome,
    SearchRecord,
    SearchSettings,
    WorseGroup,
)
from metrifair.errors import DataError
from metrifair.figures.certificates import check_confidence
from metrifair.problem.clusters import cluster_share
from metrifair.problem.tables import (
    Backend,
    Columns,
    Table,
    columns,
    make_frame,
    one_column,
    same_rows,
    table_library,
)
from metrifair.support.arrays import Booleans
from metrifair.support.checks import check_integer, is_number, make_seed, share_hint
from metrifair.support.provenance import Provenance, call_text, made_now
from metrifair.wording.groups import group_table, search_sentences

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NumberCuts: TypeAlias = "Literal['quantiles'] | Mapping[str, Sequence[float]]"
"""The cuts of numeric columns: at quartiles, or by column."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupSearch(RecordedPage):
    """Groups that are worse than the other rows, and the largest gap that any group can have.

    Parameters
    ----------
    record : SearchRecord
        The values of the search, as ``find_groups`` returns them.
    provenance : Provenance
        The origin of the search.
    library : str, default=None
        The library of the searched data frames, which ``to_frame`` uses too.
    counts : SearchCounts, default=None
        The counts of all groups, from which evidence is made. No JSON contains them.

    Examples
    --------
    >>> from metrifair import find_groups
    >>> X = {"region": ["north", "south"] * 200, "shift": ["day", "day", "night", "night"] * 100}
    >>> y_pred = [1, 1, 1, 0] * 100
    >>> search = find_groups(None, y_pred, X)
    >>> [len(search.groups), search.groups[0].rows, round(search.groups[0].at_least, 2)]
    [1, 100, 0.9]
    """

    kind = "group search"
    page_title = "Groups that are worse"

    record: SearchRecord
    provenance: Provenance = field(default_factory=Provenance)
    library: Backend | None = None
    counts: SearchCounts | None = None

    @property
    def groups(self) -> Sequence[WorseGroup]:
        """The listed groups, at most 12: those that are worse than each of their parents, or all
        if there is none; and none within another.
        """
        return self.record.listed

    @property
    def largest_gaps(self) -> Sequence[GapLimit]:
        """Upper bounds of the gaps of all groups of the search, by their rows."""
        return self.record.largest_gaps

    def _sentences(self) -> Sequence[str]:
        return search_sentences(self.record)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """All groups that are worse as a data frame, one row each.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            Library of the data frame. By default that of the searched data, else polars if it is
            installed, else pandas.

        Returns
        -------
        DataFrame
            The group, its rows, its figure, that of the other rows, the gap, its lower bound, and
            whether the group is worse than its parents, protected and listed.
        """
        return make_frame(
            self.record.worse, group_table(self.record).frame(), backend or self.library
        )

    def plot(self, *, ax: Axes | None = None) -> report.ChartDisplay:
        """Draw the gaps of the listed groups, from their lower bounds.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            The axes to draw on. None: those of a new figure.

        Returns
        -------
        ChartDisplay
            With the axes ``ax_`` and the figure ``figure_``, to restyle and to save.

        Raises
        ------
        MissingExtra
            If matplotlib is not installed.
        """
        return report.group_search_chart(self.record, ax)

    @property
    def _origin(self) -> Provenance:
        return self.provenance

    def _document(self, origin: Provenance, title: str, **options: Any) -> str:
        return report.group_search_html(
            self.record, title=title, provenance=origin, about=origin.about, **options
        )

    def _fields(self) -> dict[str, Any]:
        return super()._fields() | {"provenance": asdict(self.provenance)}


def find_groups(
    y_true: Table | None,
    y_pred: Columns | None,
    X_audit: Table,
    *,
    outcome: SearchedOutcome | Columns = "selected",
    sensitive_features: Table | None = None,
    threshold: float | Literal["auto"] = "auto",
    pos_label: object = None,
    sample_weight: Table | None = None,
    clusters: Table | None = None,
    max_conditions: int = 3,
    min_rows: int = 30,
    confidence: float = 0.95,
    cuts: NumberCuts = "quantiles",
    search_rows: float | Sequence[bool] | None = None,
    random_state: Any = 0,
) -> GroupSearch:
    """Search for groups that a model treats worse than the other rows, without naming them first.

    A group is a conjunction of conditions, such as ``job=Sales and age ≤25``. The search counts the
    rows of every group with at least ``min_rows`` rows, and as many other rows. It reports the
    groups that are worse than the other rows: the probability that any of these claims, or any of
    their lower bounds, is false is at most one minus the confidence, however the groups overlap.
    Upper bounds for all groups hold at the same confidence. Rows must be independent, unless
    ``clusters`` are passed.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Outcomes: labels, which missed and false positives need.
    y_pred : array-like of shape (n_samples,) or None
        Predictions of one model: probabilities, scores or decisions. None if ``outcome`` contains
        numbers.
    X_audit : table
        The attributes of the conditions: categories, booleans and numbers.
    outcome : str or array-like of shape (n_samples,), default="selected"
        What is compared. "selected": a low share of selected rows is worse. "missed positives": of
        rows with the positive label, a high share that is not selected is worse. "false positives":
        of the other rows, a high share that is selected is worse. "score": a low mean score from 0
        to 1 is worse. Numbers from 0 to 1, one for each row: a high mean is worse.
    sensitive_features : table, default=None
        Protected attributes. They are searched with ``X_audit``, and marked in the result.
    threshold : float or "auto", default="auto"
        Scores at or above the threshold count as positive decisions, which select the row. "auto" is
        0.5 for probabilities.
    pos_label : object, default=None
        The positive label; by default the last one in ascending order.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each sample. Rates are then weighted means, with wider bounds.
    clusters : array-like of shape (n_samples,), default=None
        The cluster of each row, such as a person. Bounds then allow for any dependence between rows
        of a cluster.
    max_conditions : int, default=3
        Maximum number of conditions of a group.
    min_rows : int, default=30
        Minimum number of rows of a group that the outcome counts.
    confidence : float, default=0.95
        Confidence level of all claims, jointly.
    cuts : "quantiles" or dict, default="quantiles"
        Cut points that turn numbers into groups: quartiles, or a dict such as ``{"age": [25, 60]}``.
        Conditions are the bands between cuts, and neighboring bands merged.
    search_rows : float or array-like of bool, default=None
        Rows that select the groups to be tested on the other rows: a share of all rows or clusters,
        or a mask. Figures are then not those of the luckiest groups. None uses all rows for both.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the share of search rows. None draws a new seed.

    Returns
    -------
    GroupSearch
        The groups, bounds and summary.

    Raises
    ------
    DataError
        If an argument cannot be used. The message names the argument and the remedy.

    See Also
    --------
    audit : Compares groups that you name, by the distributions of their scores.

    Examples
    --------
    >>> X = {"region": ["north", "south"] * 200, "shift": ["day", "day", "night", "night"] * 100}
    >>> y_pred = [1, 1, 1, 0] * 100
    >>> print(find_groups(None, y_pred, X).summary.splitlines()[0])
    Of 8 groups, 3 have a lower selection rate than the other rows, with 95% confidence for all at once.
    """
    check_integer("max_conditions", max_conditions, least=1)
    check_integer("min_rows", min_rows, least=2)
    check_confidence(confidence)
    call = call_text(
        find_groups,
        y_true,
        y_pred,
        X_audit,
        outcome=outcome,
        sensitive_features=sensitive_features,
        threshold=threshold,
        pos_label=pos_label,
        sample_weight=sample_weight,
        clusters=clusters,
        max_conditions=max_conditions,
        min_rows=min_rows,
        confidence=confidence,
        cuts=cuts,
        search_rows=search_rows,
    )
    seed = make_seed(random_state)
    tables = dict(columns("X_audit", X_audit))
    protected: dict[str, Any] = {}
    if sensitive_features is not None:
        protected = columns("sensitive_features", sensitive_features)
        same_rows(X_audit=X_audit, sensitive_features=sensitive_features)
    rows = outcome_rows(
        y_true,
        y_pred,
        outcome,
        X_audit=X_audit,
        threshold=threshold,
        pos_label=pos_label,
        sample_weight=sample_weight,
        clusters=clusters,
    )
    counts = search_counts(
        rows,
        {**tables, **protected},
        protected=set(protected),
        cuts=cuts,
        search_rows=_search_rows(search_rows, rows, seed),
        settings=SearchSettings(
            max_conditions, min_rows, confidence, rows.threshold, rows.positive
        ),
    )
    provenance = Provenance(source="rows in memory", call=call, seed=seed, **made_now())
    library = table_library(X_audit, y_pred, sensitive_features, y_true)
    return GroupSearch(GroupFinder(counts).record(), provenance, library, counts)


def _search_rows(
    search_rows: float | Sequence[bool] | None, rows: OutcomeRows, seed: int
) -> Booleans | None:
    """True for the rows that select groups, of those that the outcome counts; None: all do both."""
    if search_rows is None:
        return None
    if isinstance(search_rows, int | float) and is_number(search_rows):
        if not 0 < search_rows < 1:
            raise DataError(
                "must be a share between 0 and 1, or a mask of the rows",
                argument="search_rows",
                received=search_rows,
                remedy=share_hint(search_rows),
            )
        clusters = rows.clusters
        if clusters is None:
            clusters = np.arange(len(rows.bad))
        return cluster_share(search_rows, clusters, np.zeros_like(clusters), seed)
    mask = np.asarray(one_column("search_rows", search_rows))
    if mask.dtype != bool:
        raise DataError(
            "must be a share between 0 and 1, or a mask of True and False for each row",
            argument="search_rows",
        )
    used = mask[rows.places]
    if used.all() or not used.any():
        raise DataError("must leave rows on both sides", argument="search_rows")
    return used
