"""The result of an audit: findings and notes in words, as tables, JSON and pages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from metrifair import report
from metrifair.api.audit_tables import (
    audit_fields,
)
from metrifair.api.group_metrics import GroupMetrics
from metrifair.api.pages import ResultPage
from metrifair.api.rate_tests import RateTest, StrataTest, rate_tests, strata_tests
from metrifair.auditing.audit_record import AuditedRows, record_with_rates
from metrifair.auditing.group_measures import (
    GroupMetric,
    PredictionKind,
    audited_by_group,
    metrics_by_group,
)
from metrifair.auditing.groups.same_rows import check_same_rows
from metrifair.auditing.measure.r2_correction import gap_bracket
from metrifair.auditing.ranking import headline_finding, worst_finding
from metrifair.auditing.records import AuditRecord, Decisions, Finding, Note
from metrifair.auditing.request import Reference
from metrifair.errors import PYTHON, ArgumentNames, DataError, Remedy
from metrifair.figures.estimator_scores import estimator_scores
from metrifair.figures.selection_rates import HIGHEST, MIN_GROUP_SHARE, StandardName
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.tables import Backend, Table, make_frame
from metrifair.support.files import write_json
from metrifair.support.provenance import Provenance
from metrifair.wording.findings import Description, describe, rank_text
from metrifair.wording.metrics import metric_words
from metrifair.wording.notes import note_text
from metrifair.wording.numbers import count_text, figure_text, interval_text, noun, percent_text
from metrifair.wording.rates import STANDARD_WORDS, ratio_text
from metrifair.wording.summary import audit_summary
from metrifair.wording.tables import FrameColumns, finding_table, rate_frame, rate_term
from metrifair.wording.terms import term_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from metrifair.api.find_groups import GroupSearch
    from metrifair.auditing.groups.search_counts import SearchCounts
    from metrifair.wording.frontier_view import FrontierView


class Viewable(Protocol):
    """A Frontier, as far as a page needs it."""

    def view(self) -> FrontierView:
        """The content of the page."""


def _view(frontier: Viewable | FrontierView) -> FrontierView:
    if hasattr(frontier, "view"):
        return frontier.view()
    return frontier


def _optional_view(frontier: Viewable | FrontierView | None) -> FrontierView | None:
    return None if frontier is None else _view(frontier)


@dataclass(frozen=True, eq=False, repr=False)
class Audit(ResultPage):
    """The result of an audit: findings, decisions, notes and a summary.

    Parameters
    ----------
    record : AuditRecord
        The result as plain values. ``audit`` and ``audit_file`` return it.
    rows : AuditedRows, default=None
        The audited rows or their counts, for ``rates`` and ``compare``. No file contains them, and
        copies of the audit drop them.
    library : str, default=None
        Library of the audited data frames, which ``to_frame`` also uses.
    search_counts : SearchCounts, default=None
        The counts of the search for groups that ``with_groups`` added, for evidence. Copies of the
        audit drop them.

    Examples
    --------
    >>> from metrifair import audit
    >>> found = audit(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> found.worst().value, found.worst("wasserstein").groups
    (0.5, ('a', 'b'))
    >>> found
    Audit of 4 rows: 3 findings, 1 table of decisions, 1 note
    no significant gap
    """

    page_title = "Fairness audit"
    # a notebook keeps all of a page
    _in_notebooks: ClassVar[Mapping[str, Any]] = {"most_bytes": 400_000}

    record: AuditRecord
    rows: AuditedRows | None = None
    library: Backend | None = None
    search_counts: SearchCounts | None = None

    def __reduce__(self) -> tuple[type[Audit], tuple[AuditRecord, None, Backend | None]]:
        return Audit, (self.record, None, self.library)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Table,
        y: Table | None,
        *,
        sensitive_features: Table | GroupProbabilities,
        **options: Any,
    ) -> Any:
        """Audit a fitted model: compute its scores for rows, and pass them to ``audit``.

        The scores are the probabilities of ``predict_proba``, or else the values of
        ``decision_function``, or else the predictions. Use rows that did not train the model.

        Parameters
        ----------
        estimator : estimator
            Estimator to use: a fitted classifier or regressor.
        X : array-like or data frame of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or None
            Labels, or a regression target. None if there are no outcomes.
        sensitive_features : array-like, table or GroupProbabilities
            The group of each sample, as in ``audit``. The estimator receives it too, if it needs
            the group to predict.
        **options : object
            Further options, as in ``audit``.

        Returns
        -------
        Audit
            The audit of these scores.

        Examples
        --------
        >>> import numpy as np
        >>> from metrifair import Audit
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y, sex = np.arange(8.0)[:, None], [0, 0, 1, 1, 0, 1, 1, 1], list("ffffmmmm")
        >>> model = LogisticRegression().fit(X, y)
        >>> Audit.from_estimator(model, X, y, sensitive_features=sex).worst().value
        1.0
        """
        audit = import_module("metrifair.api.audit").audit  # by name: it imports this class
        scores = estimator_scores(
            estimator,
            X,
            sensitive_features,
            pos_label=options.get("pos_label"),
            low=options.get("favorable") == "low",
        )
        return audit(y, scores, sensitive_features=sensitive_features, **options)

    @property
    def provenance(self) -> Provenance:
        """Where the audit comes from: files with hashes, columns, the call, the seed, versions,
        the time.
        """
        return self.record.provenance

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
        """Caveats, as kinds and facts. ``note_texts`` has them in sentences."""
        return self.record.notes

    def note_texts(self, names: ArgumentNames = PYTHON) -> list[str]:
        """The notes in sentences.

        Parameters
        ----------
        names : ArgumentNames, default=PYTHON
            How the notes name arguments: as Python does by default.

        Returns
        -------
        list of str
            One text for each note.

        Examples
        --------
        >>> from metrifair import audit
        >>> print(audit(None, [1, 2, 3, 4], sensitive_features=["a", "a", "b", "b"], random_state=0).note_texts()[0])
        No selection rates: the scores are not probabilities of a label, so 0.5 is no natural threshold. \
Pass threshold=... to compute them.
        """
        return [note_text(note, names) for note in self.notes]

    @property
    def summary(self) -> str:
        """The answer in a few sentences, the most important first, and the notes in full."""
        notes = (f"Note: {text}" for text in self.note_texts())
        return "\n".join([*audit_summary(self.record), *notes])

    def describe(self, finding: Finding | None = None) -> Description:
        """One finding as sentences.

        Parameters
        ----------
        finding : Finding, default=None
            One of the findings; by default the worst one.

        Returns
        -------
        Description
            Its ``sentence`` (where the gap is largest) and its ``meaning`` (an explanation of the
            value).

        Examples
        --------
        >>> from metrifair import audit
        >>> print(audit(None, [0, 1, 1, 1], sensitive_features=list("aabb"), random_state=0).describe().sentence)
        The decision is 1 for 50.0% of “a” and 100.0% of “b”.
        """
        return describe(self.worst() if finding is None else finding)

    @property
    def headline(self) -> Finding | None:
        """The finding whose joint confidence interval is furthest above 0; None if all include
        0.
        """
        return headline_finding(self.findings)

    def worst(self, metric: str | None = None, criterion: str | None = None) -> Finding:
        """The finding with the largest value, significant or not; act on ``headline``.

        Findings about a group whose name says that it is not known are left out (see
        ``AuditOptions.known_names``).

        Parameters
        ----------
        metric : str, default=None
            Distance between distributions; by default kolmogorov, or else the first one audited.
        criterion : str, default=None
            Fairness criterion; by default all that were audited.

        Returns
        -------
        Finding
            The worst one.

        Raises
        ------
        DataError
            If the audit has no such finding.

        Examples
        --------
        >>> from metrifair import audit
        >>> audit(None, [0, 1, 1, 1], sensitive_features=list("aabb"), random_state=0).worst("wasserstein").value
        0.5
        """
        worst = worst_finding(self.findings, metric, criterion)
        if worst is not None:
            return worst
        conditions = [
            f"{name}={value!r}"
            for name, value in (("metric", metric), ("criterion", criterion))
            if value
        ]
        if any(finding.unknown_name for finding in self.findings):
            raise DataError(
                f"no finding{' with ' if conditions else ''}{', '.join(conditions)} compares "
                "groups that are known by "
                "their names",
                remedy=Remedy("known_names", detail=" for names of real groups"),
            )
        metrics = sorted({finding.metric for finding in self.findings})
        criteria = sorted({finding.criterion for finding in self.findings})
        raise DataError(
            f"no finding{' with ' if conditions else ''}{', '.join(conditions)}; this audit has "
            f"the metrics {metrics} "
            f"and the criteria {criteria}"
        )

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The findings as a data frame, one row each.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            Library of the data frame. By default that of the audited data, else polars if it is
            installed, else pandas.

        Returns
        -------
        DataFrame
            With the fields of ``Finding`` as columns; unknown values are missing.

        Examples
        --------
        >>> from metrifair import audit
        >>> found = audit(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> found.to_frame("pandas")[["metric", "value"]].to_dict("list")["metric"]
        ['kolmogorov', 'wasserstein', 'energy']
        """
        return make_frame(*self.rows_and_columns(), backend or self.library)

    def rows_and_columns(self) -> tuple[Sequence[Any], FrameColumns]:
        """The findings as a table, without a library of data frames.

        Returns
        -------
        tuple
            The findings, and of each column its type and the function that gives its value.
        """
        return self.findings, finding_table(self.record).frame()

    def rates(
        self,
        standard: StandardName | None = None,
        *,
        reference: Reference = HIGHEST,
        min_group_share: float = MIN_GROUP_SHARE,
    ) -> RateTable:
        """Selection rates and impact ratios by group, optionally as a standard requires.

        Parameters
        ----------
        standard : {"ll144", "four-fifths", "credit"}, default=None
            The rule whose table to compute (docs/standards.md). The table makes no statement about
            any law.
        reference : str or dict, default="highest"
            The reference group of impact ratios: the group with the highest rate, a named group, or
            a group for each attribute.
        min_group_share : float, default=0.02
            Groups with a smaller share of the rows have no impact ratio.

        Returns
        -------
        RateTable
            The tables; as a data frame, JSON and page.

        Raises
        ------
        DataError
            If an argument cannot be used, or the rows of the audit are no longer available.

        Examples
        --------
        >>> from metrifair import audit
        >>> result = audit(None, [0, 1, 1, 1], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> result.rates(standard="four-fifths").to_frame("pandas")[["group", "ratio"]].values.tolist()
        [['a', 0.5], ['b', 1.0]]
        """
        if self.rows is None:
            if (standard, reference, min_group_share) == (None, HIGHEST, MIN_GROUP_SHARE):
                return RateTable(self)
            raise DataError(
                "this audit was copied or read from a file, without its rows; call rates(...) on "
                "the result of audit"
            )
        request = self.rows.request.by_standard(standard, reference, min_group_share)
        if request == self.rows.request:
            return RateTable(self)
        record = record_with_rates(self.record, self.rows.sample, request)
        return RateTable(replace(self, record=record, rows=self.rows._replace(request=request)))

    def by_group(
        self,
        metrics: Mapping[str, GroupMetric] | None = None,
        *,
        y_pred: PredictionKind = "decisions",
    ) -> GroupMetrics:
        """Compute metrics by group: your own, or those that every audit has.

        Each metric is computed on the rows of each group, within each stratum of
        ``control_features``. Rows with a missing group are counted and left out. The confidence
        interval is a percentile bootstrap of the group's rows, with ``resamples`` and
        ``confidence`` of the audit. Groups of fewer than 5 rows have no interval.

        Parameters
        ----------
        metrics : dict of str to callable, default=None
            Functions ``metric(y_true, y_pred)`` that return a number, by name, such as ``{"f1":
            f1_score}``. An audit with weights passes ``sample_weight=`` too. By default the figures
            that every audit computes.
        y_pred : {"decisions", "scores"}, default="decisions"
            What metrics receive as ``y_pred``. Labels in ``y_true`` are 1 (positive) and 0.
            Decisions are 1 (favorable) and 0; scores come with 1 for the label that high scores
            predict. Three or more labels are passed as they are, with the most probable label or
            all probabilities. A numeric target comes with the predictions.

        Returns
        -------
        GroupMetrics
            Values, intervals, differences and ratios. ``to_frame()`` has one row for each metric
            and group. A value is missing where the metric is undefined, because the group lacks a
            label or the metric divides by zero.

        Raises
        ------
        DataError
            If the audit has no ``y_true`` or no decisions, if its rows are not in memory, if a
            metric does not take the weights of the audit, or if a metric raises an error.

        Examples
        --------
        >>> from metrifair import audit
        >>> result = audit([0, 1, 0, 1], [0, 1, 1, 1], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> by_group = result.by_group({"accuracy": lambda y_true, y_pred: (y_true == y_pred).mean()})
        >>> by_group.to_frame("pandas")[["group", "rows", "value"]].values.tolist()
        [['a', 2, 1.0], ['b', 2, 0.5]]
        """
        if metrics is None:
            return GroupMetrics(audited_by_group(self.record), self.library)
        if self.rows is None or not self.rows.ordered:
            raise DataError(
                "need rows in memory, and this audit has none: it is of counts, of a file read out "
                "of core, or a copy",
                argument="metrics",
                remedy="audit arrays, or a file with a larger in_memory_rows",
            )
        generator = np.random.default_rng(self.provenance.seed)
        return GroupMetrics(metrics_by_group(self.rows, metrics, y_pred, generator), self.library)

    def with_groups(self, group_search: GroupSearch) -> Audit:
        """Add a search for groups of the same rows and scores.

        The page, the JSON, the summary and the evidence of the audit then show which groups are
        worse, without anybody having named them.

        Parameters
        ----------
        group_search : GroupSearch
            What ``find_groups`` returned for the labels and predictions of this audit.

        Returns
        -------
        Audit
            The audit with the search, as ``record.group_search``.

        Raises
        ------
        DataError
            If the search has other rows, clusters or labels, or another threshold.

        Examples
        --------
        >>> from metrifair import audit, find_groups
        >>> X = {"region": ["north", "south"] * 200, "shift": ["day", "day", "night", "night"] * 100}
        >>> y_pred = [1, 1, 1, 0] * 100
        >>> result = audit(None, y_pred, sensitive_features=X["region"], random_state=0)
        >>> found = result.with_groups(find_groups(None, y_pred, X))
        >>> [part.rows for part in found.record.group_search.listed]
        [100]
        """
        check_same_rows(self.record, group_search.record)
        record = replace(self.record, group_search=group_search.record)
        return replace(self, record=record, search_counts=group_search.counts)

    def to_json(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        about: Mapping[str, str] | None = None,
        frontier: Viewable | FrontierView | None = None,
    ) -> str:
        """The whole audit as strict JSON text.

        An object with ``kind`` ("metrifair audit"), ``version`` (1) and the fields of the record by
        their names: ``rows``, ``left_out``, ``score_range`` [low, high], ``confidence``,
        ``findings`` (objects with the fields of Finding; ``interval`` and ``bracket`` are {"low",
        "high"}), ``decisions``, ``distributions``, ``notes`` (kind and facts), ``settings`` and
        ``provenance``. An audit ``with_groups`` has ``group_search`` too. Missing values are null;
        there is no NaN. ``summary`` and the ``text`` of each note are for people; no reader uses
        them. ``metrifair audit --json`` adds ``limits``: the ``option``, ``metric`` and ``value``
        of each limit of the command, and whether it is ``broken``.

        Parameters
        ----------
        path : str or path-like, default=None
            The file, if the text is to be written too.
        title : str, default=None
            Title of the report.
        about : dict of str, default=None
            Metadata shown in the report, such as the date and source of the data.
        frontier : Frontier or FrontierView, default=None
            Frontier to report, as ``alternatives``: its ``best`` model, and the ``models`` that are
            as good, within its interval, and less unfair.

        Returns
        -------
        str
            The text.

        Raises
        ------
        DataError
            If nothing can be written there.

        Examples
        --------
        >>> from metrifair import audit
        >>> import json
        >>> json.loads(audit(None, [0, 1, 1, 1], sensitive_features=list("aabb"), random_state=0).to_json())["rows"]
        4
        """
        record = replace(self.record, provenance=self.provenance.described(title, about))
        content = audit_fields(record)
        if frontier is not None:
            best, models = _view(frontier).alternatives
            content["alternatives"] = {
                "best": asdict(best),
                "models": [asdict(model) for model in models],
            }
        return write_json(content, path)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        about: Mapping[str, str] | None = None,
        frontier: Viewable | FrontierView | None = None,
        by_group: GroupMetrics | Mapping[str, GroupMetric] | None = None,
    ) -> None:
        """Write the audit as one HTML page that needs nothing but a browser.

        Parameters
        ----------
        path : str or path-like
            The file.
        title : str, default=None
            Title of the page; by default "Fairness audit".
        about : dict of str, default=None
            Metadata shown in the report, such as the date and source of the data.
        frontier : Frontier or FrontierView, default=None
            Frontier to report, or its ``view()``: the page then shows what fairer models would
            cost.
        by_group : GroupMetrics or dict of str to callable, default=None
            Adds a section with metrics by group: what ``by_group`` returned, or the metrics to pass
            to it.

        Raises
        ------
        DataError
            If nothing can be written there.

        Examples
        --------
        >>> from metrifair import audit
        >>> import tempfile, pathlib
        >>> found = audit(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found.to_html(pathlib.Path(folder, "audit.html"))
        """
        if by_group is not None and not isinstance(by_group, GroupMetrics):
            by_group = self.by_group(by_group)
        tables = () if by_group is None else by_group.record
        self._write_page(
            path, title, about, frontier=_optional_view(frontier), group_metrics=tables
        )

    def to_evidence(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        about: Mapping[str, str] | None = None,
        min_cell: int = 1,
        score_digits: int | None = None,
        crosswalks: str | Sequence[str] = (),
        sign: str | os.PathLike[str] | None = None,
        pdf: bool = True,
        again: bool = False,
    ) -> None:
        """Write evidence that others can verify: report, tables, figures, counts and a manifest.

        The rows are counted by group, stratum, label and score. All figures are computed from the
        counts, so that ``metrifair.evidence.verify`` can recompute them. With more than 4,096
        distinct scores, each distance has a lower and an upper bound. A search ``with_groups`` is
        part of the evidence with the counts of its groups, unless ``min_cell`` is above 1.

        Parameters
        ----------
        path : str or path-like
            The folder of evidence: a new one, or a .zip file.
        title : str, default=None
            Title of the report.
        about : dict of str, default=None
            Metadata shown in the report, such as who made the audit and why. The manifest contains
            it too.
        min_cell : int, default=1
            Minimum number of rows in a cell: a group with a stratum and a label. Rows of groups
            with a smaller cell are withheld. Scores are replaced by intervals of a public grid,
            which are merged until each count has so many rows. By default, a score that only one
            person has is a count of one row.
        score_digits : int, default=None
            Number of decimal digits to which the counted scores are rounded. By default, every
            distinct score is counted, up to 4,096 of them.
        crosswalks : str or sequence of str, default=()
            Public schemes whose items are listed with the figures for them: "dpia", "eu-ai-act",
            "iso-12791", "ll144", "naic", "nist-ai-rmf", "nj-13-16", "pren-18283" or "sr-26-2".
            They are not legal advice.
        sign : str or path-like, default=None
            Private SSH key with which ``ssh-keygen`` signs the manifest.
        pdf : bool, default=True
            Whether to write the report as PDF too, if Chromium or Google Chrome is installed.
        again : bool, default=False
            Whether to release the same rows again with other parameters, such as another threshold.
            Two such releases can show more than either. By default, they are refused.
            ``metrifair-releases.json`` beside the evidence lists the releases.

        Raises
        ------
        DataError
            If the rows of the audit are no longer in memory, the figures cannot be computed from
            counts, the rows were released with other parameters, or ``path`` cannot be written.

        Examples
        --------
        >>> from metrifair import audit
        >>> import tempfile, pathlib
        >>> found = audit(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found.to_evidence(pathlib.Path(folder, "evidence"), pdf=False)
        ...     sorted(path.name for path in pathlib.Path(folder, "evidence").iterdir())
        ['MANIFEST.json', 'README.txt', 'audit.json', 'counts.state', 'report.html', 'tables']
        """
        from metrifair.api.evidence_writer import write_evidence  # noqa: PLC0415  (an audit needs none)

        write_evidence(
            replace(self.record, provenance=self.provenance.described(title, about)),
            self.rows,
            path,
            min_cell=min_cell,
            score_digits=score_digits,
            crosswalks=crosswalks,
            sign_with=sign,
            pdf=pdf,
            again=again,
            search_counts=self.search_counts,
        )

    def __repr__(self) -> str:
        counts = count_text(len(self.findings), "finding"), count_text(len(self.notes), "note")
        tables = f"{count_text(len(self.decisions), 'table')} of decisions"
        first = (
            f"Audit of {count_text(self.record.rows, 'row')}: {counts[0]}, {tables}, {counts[1]}"
        )
        finding = self.headline
        if finding is None or finding.joint_interval is None:
            if self.findings:
                return f"{first}\nno significant gap"
            return first
        first_group, second_group = map(repr, finding.groups)
        groups = f"{finding.attribute} {first_group} vs {second_group}, {finding.within} ({finding.criterion})"
        bracket = gap_bracket(finding, self.record)
        low = figure_text(finding.joint_interval.low)
        value = (
            figure_text(finding.value) if bracket is None else interval_text(bracket, figure_text)
        )
        rank = rank_text(finding, self.findings)
        metric = metric_words(finding.metric).name
        return f"{first}\n{rank}: {metric} {value}, at least {low}: {groups}"

    def plot(
        self, kind: report.AuditChartKind = "distributions", *, ax: Axes | None = None
    ) -> report.ChartDisplay:
        """Draw a chart with matplotlib.

        Parameters
        ----------
        kind : {"distributions", "densities", "findings", "roc", "reliability"}, \
default="distributions"
            Share of each group below each score, with the largest gap; densities of the scores;
            distances with intervals that hold for all of them; or curves by group, which need labels.
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
        DataError
            If the audit has nothing of this kind to draw.

        Examples
        --------
        >>> from metrifair import audit
        >>> found = audit(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> found.plot("findings").ax_.get_xlabel()
        'Kolmogorov distance'
        """
        return report.audit_chart(self.record, kind, ax)

    @property
    def _origin(self) -> Provenance:
        return self.provenance

    def _document(self, origin: Provenance, title: str, **options: Any) -> str:
        record = replace(self.record, provenance=origin)
        return report.audit_html(record, title=title, **options)


@dataclass(frozen=True, eq=False, repr=False)
class RateTable(ResultPage):
    """Selection rates and impact ratios by group; ``Audit.rates`` returns it.

    Parameters
    ----------
    audit : Audit
        The audit whose decisions are these tables.

    Examples
    --------
    >>> from metrifair import audit
    >>> audit(None, [0, 1, 1, 1], sensitive_features=list("aabb"), random_state=0).rates("ll144")
    sensitive_features, everyone: Impact ratio 0.500 (0.072 to 1.000) of “a” to “b”, one with fewer than 30 rows.
      a: 2 rows, selection rate 50.0%, impact ratio 0.500
      b: 2 rows, selection rate 100.0%, impact ratio 1.000
    """

    audit: Audit

    @property
    def page_title(self) -> str:
        """The title of a page without another one, by the standard."""
        standard = self.audit.record.settings.standard or ""
        return STANDARD_WORDS[standard].page_title

    @property
    def tables(self) -> Sequence[Decisions]:
        """The rates by attribute and stratum."""
        return self.audit.decisions

    def tests(self) -> Sequence[RateTest]:
        """Test the selection rate of each group against that of the reference.

        Groups with few rows or without a ratio, and rows with weights or clusters, have no test.

        Returns
        -------
        sequence of RateTest
            The number of standard deviations (two-sample z), Fisher's exact p-value, and the odds
            ratio with its interval, at the confidence level of the audit.

        Examples
        --------
        >>> from metrifair import audit
        >>> hired = [1] * 40 + [0] * 60 + [1] * 60 + [0] * 40
        >>> sex = ["f"] * 100 + ["m"] * 100
        >>> result = audit(None, hired, sensitive_features=sex, random_state=0)
        >>> (test,) = result.rates("four-fifths").tests()
        >>> round(test.standard_deviations, 2), round(test.odds_ratio, 2), round(test.p_value, 4)
        (-2.83, 0.44, 0.0071)
        """
        return rate_tests(self.tables, self.audit.record.confidence)

    def over_strata(self, reference: str) -> Sequence[StrataTest]:
        """Test selection rates over all strata of ``control_features`` together.

        Parameters
        ----------
        reference : str
            The reference group. Each other group of its attribute is compared with it.

        Returns
        -------
        sequence of StrataTest
            The common odds ratio of Mantel and Haenszel with its interval, and the test that it is
            1. Strata without rows of both groups are left out.

        Raises
        ------
        DataError
            If no stratum has the reference group, or rows have weights or clusters.

        Examples
        --------
        >>> from metrifair import audit
        >>> hired = [1] * 40 + [0] * 60 + [1] * 60 + [0] * 40
        >>> sex = ["f"] * 100 + ["m"] * 100
        >>> site = ["a", "b"] * 100
        >>> result = audit(None, hired, sensitive_features=sex, control_features=site, random_state=0)
        >>> (test,) = result.rates().over_strata("m")
        >>> test.strata, round(test.odds_ratio, 3), round(test.p_value, 4)
        (2, 0.444, 0.0049)
        """
        return strata_tests(self.tables, reference, self.audit.record.confidence)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Rates and ratios as a data frame, one row for each group of each table.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            Library of the data frame, as in ``Audit.to_frame``.

        Returns
        -------
        DataFrame
            With the fields of ``Decisions`` and ``GroupRates`` as columns; unknown values are
            missing.

        Examples
        --------
        >>> from metrifair import audit
        >>> result = audit(None, [0, 1, 1, 1], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> result.rates().to_frame("pandas")[["group", "ratio"]].values.tolist()
        [['a', 0.5], ['b', 1.0]]
        """
        rows, columns = self.rows_and_columns()
        library = backend or self.audit.library
        if library not in ("polars", "pyarrow"):  # whose integers can be missing
            for name in ("selected", "shortfall"):
                if any(getattr(row.group, name) is None for row in rows):
                    columns[name] = "Float64", columns[name][1]
        return make_frame(rows, columns, library)

    def rows_and_columns(self) -> tuple[Sequence[Any], FrameColumns]:
        """One row for each group of each table, and the columns of a data frame of them."""
        return rate_frame(self.audit.record)

    def to_json(self, path: str | os.PathLike[str] | None = None, **options: Any) -> str:
        """The audit with these tables as JSON text, as ``Audit.to_json`` writes it.

        Parameters
        ----------
        path : str or path-like, default=None
            The file, if the text is to be written too.
        **options : object
            Further options, as in ``Audit.to_json``.

        Returns
        -------
        str
            The text.
        """
        return self.audit.to_json(path, **options)

    def to_evidence(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the audit with these tables as evidence, as ``Audit.to_evidence`` does.

        Parameters
        ----------
        path : str or path-like
            The folder of evidence: a new one, or a .zip file.
        **options : object
            Further options, as in ``Audit.to_evidence``.
        """
        self.audit.to_evidence(path, **options)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        about: Mapping[str, str] | None = None,
        frontier: Viewable | FrontierView | None = None,
        details: bool = False,
    ) -> None:
        """Write one HTML page with these tables, exclusions, notes and provenance.

        Parameters
        ----------
        path : str or path-like
            The file.
        title : str, default=None
            Title of the page; by default "Selection rates and impact ratios", or for "ll144"
            "Figures for a bias audit under New York City Local Law 144".
        about : dict of str, default=None
            Metadata shown in the report, such as the date and source of the data.
        frontier : Frontier or FrontierView, default=None
            Frontier to report, by its less discriminatory alternatives; only for
            ``standard="credit"``.
        details : bool, default=False
            Whether to add the whole audit below the tables: distances, charts, figures by group and
            all findings.

        Raises
        ------
        DataError
            If nothing can be written there.

        Examples
        --------
        >>> from metrifair import audit
        >>> import tempfile, pathlib
        >>> rates = audit(None, [0, 1, 1, 1], sensitive_features=list("aabb"), random_state=0).rates("ll144")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rates.to_html(pathlib.Path(folder, "rates.html"))
        """
        if details:
            return self.audit.to_html(path, title=title, about=about, frontier=frontier)
        return self._write_page(path, title, about, frontier=_optional_view(frontier))

    @property
    def summary(self) -> str:
        """Each table's impact ratio, and the selection rates of its groups, one line each."""
        lines = []
        for table in self.tables:
            name = noun(term_name(rate_term(table)))
            lines.append(
                f"{table.attribute}, {table.within}: "
                f"{ratio_text(table, self.audit.record.settings)}"
            )
            for rate in table.rates:
                ratio = "excluded"
                if not rate.left_out:
                    ratio = figure_text(rate.ratio)
                rows = count_text(rate.size, "row")
                selected = percent_text(rate.selection_rate)
                lines.append(f"  {rate.group}: {rows}, {name} {selected}, impact ratio {ratio}")
        return "\n".join(lines) or "no decisions: pass threshold=... to audit"

    @property
    def _origin(self) -> Provenance:
        return self.audit.provenance

    def _document(self, origin: Provenance, title: str, **options: Any) -> str:
        record = replace(self.audit.record, provenance=origin)
        return report.rates_html(record, title=title, **options)
