"""``audit(...)``: how unfair any scores are, for whom, in which sense, and how sure one can be."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.decisions import are_decisions, threshold_for
from metrifair.auditing.record import record_of
from metrifair.auditing.request import Criteria, Request, Threshold
from metrifair.auditing.sample import AuditSample, sample_in_memory
from metrifair.checks import seed_of
from metrifair.errors import DataError
from metrifair.files import write_file
from metrifair.problem.attributes import Continuous, Cuts, in_groups
from metrifair.problem.cells import Contrast
from metrifair.problem.tables import Backend, Table, frame
from metrifair.report.audit.page import audit_html
from metrifair.report.audit.words import worst_of
from metrifair.report.frontier.view import FrontierView
from metrifair.report.html import write_html
from metrifair.report.numbers import MISSING, figure_text
from metrifair.results import FEW, AuditRecord, Decisions, Finding, Note

JSON_VERSION = 1
_SHOWN = 20  # findings in a notebook

_COLUMNS: dict[str, tuple[Any, Callable[[Finding], object]]] = {
    "attribute": (nw.String, lambda one: one.attribute),
    "criterion": (nw.String, lambda one: one.criterion),
    "within": (nw.String, lambda one: one.within),
    "group": (nw.String, lambda one: one.groups[0]),
    "other_group": (nw.String, lambda one: one.groups[1]),
    "size": (nw.Int64, lambda one: one.sizes[0]),
    "other_size": (nw.Int64, lambda one: one.sizes[1]),
    "metric": (nw.String, lambda one: one.metric),
    "value": (nw.Float64, lambda one: one.value),
    "lower": (nw.Float64, lambda one: one.bracket.low if one.bracket else one.value),
    "upper": (nw.Float64, lambda one: one.bracket.high if one.bracket else one.value),
    "unbiased": (nw.Float64, lambda one: one.unbiased),
    "interval_low": (nw.Float64, lambda one: one.interval.low if one.interval else None),
    "interval_high": (nw.Float64, lambda one: one.interval.high if one.interval else None),
    "certified": (nw.Float64, lambda one: one.certified),
    "certified_jointly": (nw.Float64, lambda one: one.certified_jointly),
    "paper_bound": (nw.Float64, lambda one: one.paper_bound),
    "p_value": (nw.Float64, lambda one: one.p_value),
    "sentence": (nw.String, lambda one: one.sentence),
    "meaning": (nw.String, lambda one: one.meaning),
}


class Viewable(Protocol):
    """A Frontier, of which this room knows nothing but that a page can show it."""

    def view(self) -> FrontierView:
        """What the page shows."""


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What an audit found: findings, decisions, notes and a summary, and ways to hand them on.

    Parameters
    ----------
    record : AuditRecord
        Everything that was found, as plain values; ``audit`` and ``audit_file`` make it.

    Examples
    --------
    >>> found = audit([0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> found.worst().value, found.worst("wasserstein").groups
    (0.5, ('a', 'b'))
    >>> found
    Audit of 4 samples: 3 findings, 1 table of decisions, 1 note
    largest kolmogorov distance 0.500: sensitive_features 'a' against 'b', everyone (statistical_parity)
    """

    record: AuditRecord

    @property
    def findings(self) -> Sequence[Finding]:
        """Distances between groups, by attribute, criterion, set and metric."""
        return self.record.findings

    @property
    def decisions(self) -> Sequence[Decisions]:
        """Rates at the threshold, by attribute and stratum."""
        return self.record.decisions

    @property
    def notes(self) -> Sequence[Note]:
        """What to know before acting on the figures."""
        return self.record.notes

    @property
    def summary(self) -> Sequence[str]:
        """The audit in plain sentences, the most important first."""
        return self.record.summary

    def worst(self, metric: str | None = None, criterion: str | None = None) -> Finding:
        """The finding with the largest value.

        Parameters
        ----------
        metric : str, default=None
            Among the findings by this metric; by default by Kolmogorov, or else by the first one audited.
        criterion : str, default=None
            Among the findings of this criterion; by default of all.

        Returns
        -------
        Finding
            The worst one.

        Raises
        ------
        DataError
            Where the audit has no such finding.

        Examples
        --------
        >>> audit([0, 1, 1, 1], sensitive_features=["a", "a", "b", "b"], random_state=0).worst("wasserstein").value
        0.5
        """
        found = worst_of(self.findings, metric, criterion)
        if found is not None:
            return found
        asked = [f"{name}={value!r}" for name, value in (("metric", metric), ("criterion", criterion)) if value]
        metrics = sorted({finding.metric for finding in self.findings})
        criteria = sorted({finding.criterion for finding in self.findings})
        raise DataError(
            f"no finding{' with ' if asked else ''}{', '.join(asked)}; this audit has the metrics {metrics} and the "
            f"criteria {criteria}"
        )

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The findings as a data frame, one row each.

        Parameters
        ----------
        backend : {"polars", "pandas"}, default=None
            Whose frame; by default polars where it is installed, else pandas.

        Returns
        -------
        DataFrame
            With the fields of ``Finding`` as columns; what is not known is missing.

        Examples
        --------
        >>> found = audit([0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> found.to_frame("pandas")[["metric", "value"]].to_dict("list")["metric"]
        ['kolmogorov', 'wasserstein', 'energy']
        """
        columns = {name: [value(one) for one in self.findings] for name, (_, value) in _COLUMNS.items()}
        return frame(columns, {name: kind for name, (kind, _) in _COLUMNS.items()}, backend)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The whole audit as strict JSON text.

        An object with ``kind`` ("metrifair audit"), ``version`` (1) and the fields of the record by their names:
        ``rows``, ``left_out``, ``score_range`` [low, high], ``confidence``, ``findings`` (objects with the fields of
        Finding; ``interval`` and ``bracket`` are {"low", "high"}), ``decisions``, ``distributions``, ``notes`` and
        ``summary``. What is not known is null; there is no NaN.

        Parameters
        ----------
        path : str or path-like, default=None
            Where the text is written as well.

        Returns
        -------
        str
            The text.

        Raises
        ------
        DataError
            Where nothing can be written there.

        Examples
        --------
        >>> import json
        >>> json.loads(audit([0, 1, 1, 1], sensitive_features=["a", "a", "b", "b"], random_state=0).to_json())["rows"]
        4
        """
        content = {"kind": "metrifair audit", "version": JSON_VERSION, **asdict(self.record)}
        text = json.dumps(content, allow_nan=False, indent=1)
        if path is not None:
            write_file(path, text.encode())
        return text

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        title: str = "Fairness audit",
        frontier: Viewable | FrontierView | None = None,
    ) -> None:
        """Write the audit as one HTML page that needs nothing but a browser.

        Parameters
        ----------
        path : str or path-like
            The file.
        title : str, default="Fairness audit"
            What stands on top.
        frontier : Frontier or FrontierView, default=None
            Adds what fairer models would cost: a ``Frontier``, or its ``view()``.

        Raises
        ------
        DataError
            Where nothing can be written there.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> found = audit([0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found.to_html(pathlib.Path(folder, "audit.html"))
        """
        view = frontier if frontier is None or isinstance(frontier, FrontierView) else frontier.view()
        write_html(path, audit_html(self.record, title=title, frontier=view))

    def __repr__(self) -> str:
        counts = (
            (len(self.findings), "finding", ""),
            (len(self.decisions), "table", " of decisions"),
            (len(self.notes), "note", ""),
        )
        listed = ", ".join(f"{count} {name}{'' if count == 1 else 's'}{more}" for count, name, more in counts)
        first = f"Audit of {self.record.rows:,} samples: {listed}"
        worst = worst_of(self.findings)
        if worst is None:
            return first
        who = f"{worst.attribute} {worst.groups[0]!r} against {worst.groups[1]!r}, {worst.within} ({worst.criterion})"
        return f"{first}\nlargest {worst.metric} distance {figure_text(worst.value)}: {who}"

    def _repr_html_(self) -> str:
        """The summary and the first findings; everything from the data escaped."""
        names = ("Attribute", "Criterion", "Within", "Groups", "Metric", "Value", "Interval", "Certified", "p")
        rows = []
        for one in self.findings[:_SHOWN]:
            ends = () if one.interval is None else (figure_text(one.interval.low), figure_text(one.interval.high))
            figures = (
                figure_text(one.value),
                " to ".join(ends) or MISSING,
                *map(figure_text, (one.certified, one.p_value)),
            )
            rows.append((one.attribute, one.criterion, one.within, " / ".join(one.groups), one.metric, *figures))
        head = "".join(f"<th>{name}</th>" for name in names)
        lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        left = len(self.findings) - len(rows)
        more = f"<p>and {left} more: to_frame() has them all</p>" if left > 0 else ""
        told = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.summary)
        return f"<div>{told}<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>{more}</div>"


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
    cuts: Cuts = None,
    pos_label: object = None,
    loss: str | None = None,
    score_range: tuple[float, float] | None = None,
    resamples: int = 500,
    permutations: int = 999,
    most_groups: int | None = None,
    least_count: int = FEW,
    vc_dimension: int | None = None,
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
        Makes groups of numbers instead: ``{"age": [25, 60]}`` are those up to 25, above 25 up to 60, and above 60; a
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
    request = Request.among(locals())
    if isinstance(y_pred, str | os.PathLike):
        raise DataError(
            f"audit takes predictions; for the file {os.fspath(y_pred)!r} use audit_file(path, score=..., group=...)"
        )
    sample = sample_in_memory(
        y_pred,
        request,
        sensitive_features=sensitive_features if cuts is None else in_groups(sensitive_features, cuts),
        y_true=y_true,
        control_features=control_features,
        sample_weight=sample_weight,
    )
    return audit_of_rows(sample, request, np.random.default_rng(seed_of(random_state)))


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
