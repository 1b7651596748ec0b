"""What an audit found, and ways to hand it on: as tables, JSON and pages."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import narwhals.stable.v2 as nw

from metrifair.auditing.records import AuditRecord, Decisions, Finding, Note
from metrifair.auditing.source import AuditedRows
from metrifair.errors import DataError
from metrifair.figures.selection_rates import GroupRates
from metrifair.problem.tables import Backend, frame, frame_of
from metrifair.report.audit.charts import AuditChartKind, audit_chart
from metrifair.report.audit.words import chance_text, headline_of, worst_of
from metrifair.report.html import framed, write_html
from metrifair.report.numbers import figure_text
from metrifair.support.files import write_json
from metrifair.support.provenance import Provenance

if TYPE_CHECKING:
    from metrifair.report.frontier.view import FrontierView

JSON_VERSION = 2
_IN_NOTEBOOKS = 400_000  # bytes of a page inside a notebook, which keeps all of it

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
    "joint_low": (nw.Float64, lambda one: one.joint_interval.low if one.joint_interval else None),
    "joint_high": (nw.Float64, lambda one: one.joint_interval.high if one.joint_interval else None),
    "chance": (nw.String, lambda one: chance_text(one) or None),
    "judged_by": (nw.String, lambda one: one.judged_by or None),
    "sentence": (nw.String, lambda one: one.sentence),
    "meaning": (nw.String, lambda one: one.meaning),
}


RATE_COLUMNS: dict[str, tuple[Any, Callable[[Decisions, GroupRates], object]]] = {
    "standard": (nw.String, lambda table, _: table.standard or None),
    "attribute": (nw.String, lambda table, _: table.attribute),
    "within": (nw.String, lambda table, _: table.within),
    "group": (nw.String, lambda _, rate: rate.group),
    "rows": (nw.Int64, lambda _, rate: rate.size),
    "share": (nw.Float64, lambda _, rate: rate.share),
    "selected": (nw.Int64, lambda _, rate: rate.selected),
    "rate": (nw.Float64, lambda _, rate: rate.selection_rate),
    "rate_low": (nw.Float64, lambda _, rate: rate.interval.low if rate.interval else None),
    "rate_high": (nw.Float64, lambda _, rate: rate.interval.high if rate.interval else None),
    "reference": (nw.String, lambda table, _: table.reference),
    "ratio": (nw.Float64, lambda _, rate: rate.ratio),
    "ratio_low": (nw.Float64, lambda _, rate: rate.ratio_interval.low if rate.ratio_interval else None),
    "ratio_high": (nw.Float64, lambda _, rate: rate.ratio_interval.high if rate.ratio_interval else None),
    "fisher_p": (nw.Float64, lambda _, rate: rate.p_value),
    "shortfall": (nw.Int64, lambda _, rate: rate.shortfall),
    "left_out": (nw.String, lambda _, rate: rate.left_out or None),
    "too_few": (nw.Boolean, lambda _, rate: rate.few),
    "mean_difference": (nw.Float64, lambda _, rate: rate.mean_difference),
    "accuracy": (nw.Float64, lambda _, rate: rate.accuracy),
    "true_positive_rate": (nw.Float64, lambda _, rate: rate.true_positive_rate),
    "false_positive_rate": (nw.Float64, lambda _, rate: rate.false_positive_rate),
    "selected_by": (nw.String, lambda table, _: table.selected_by),
    "threshold": (nw.Float64, lambda table, _: table.threshold),
    "favourable": (nw.String, lambda table, _: table.favourable),
}
"""The table of rates: what each column is of."""


class Viewable(Protocol):
    """A Frontier, of which this room knows nothing but that a page can show it."""

    def view(self) -> FrontierView:
        """What the page shows."""


def _view_of(frontier: Viewable | FrontierView) -> FrontierView:
    return frontier.view() if hasattr(frontier, "view") else frontier


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What an audit found: findings, decisions, notes and a summary, and ways to hand them on.

    Parameters
    ----------
    record : AuditRecord
        Everything that was found, as plain values; ``audit`` and ``audit_file`` make it.
    rows : AuditedRows, default=None
        The rows, where they are in memory: two models are compared by them. They are in no file that is written, and
        are left behind where the audit is copied or sent to another process.
    library : str, default=None
        Of the data frames that were audited, which ``to_frame`` uses too.

    Examples
    --------
    >>> from metrifair import audit
    >>> found = audit([0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> found.worst().value, found.worst("wasserstein").groups
    (0.5, ('a', 'b'))
    >>> found
    Audit of 4 samples: 3 findings, 1 table of decisions, 1 note
    no gap is certain
    """

    record: AuditRecord
    rows: AuditedRows | None = None
    library: Backend | None = None

    def __reduce__(self) -> tuple[type[Audit], tuple[AuditRecord, None, Backend | None]]:
        return Audit, (self.record, None, self.library)

    @property
    def provenance(self) -> Provenance:
        """Where the audit comes from: files with hashes, columns, the call, the seed, versions, the time."""
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
        """What to know before acting on the figures."""
        return self.record.notes

    @property
    def summary(self) -> Sequence[str]:
        """The audit in plain sentences, the most important first."""
        return self.record.summary

    @property
    def headline(self) -> Finding | None:
        """The gap that is largest for certain: by its lower bound, which holds for all comparisons at once; or None."""
        return headline_of(self.findings)

    def worst(self, metric: str | None = None, criterion: str | None = None) -> Finding:
        """The finding with the largest value, certain or not; ``headline`` is the one to act on.

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
        >>> from metrifair import audit
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
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            Whose frame; by default that of the data that were audited, else polars where it is installed, else pandas.

        Returns
        -------
        DataFrame
            With the fields of ``Finding`` as columns; what is not known is missing.

        Examples
        --------
        >>> from metrifair import audit
        >>> found = audit([0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> found.to_frame("pandas")[["metric", "value"]].to_dict("list")["metric"]
        ['kolmogorov', 'wasserstein', 'energy']
        """
        return frame_of(self.findings, _COLUMNS, backend or self.library)

    def rates_to_frame(self, backend: Backend | None = None) -> Any:
        """Rates and ratios as a data frame, one row for each group of each table of decisions.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            Whose frame, as in ``to_frame``.

        Returns
        -------
        DataFrame
            With the fields of ``Decisions`` and ``GroupRates`` as columns; what is not known is missing.

        Examples
        --------
        >>> from metrifair import audit
        >>> found = audit([0, 1, 1, 1], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> found.rates_to_frame("pandas")[["group", "ratio"]].values.tolist()
        [['a', 0.5], ['b', 1.0]]
        """
        rows = [(table, rate) for table in self.decisions for rate in (*table.rates, table.unknown) if rate is not None]
        columns = {name: [value(*row) for row in rows] for name, (_, value) in RATE_COLUMNS.items()}
        for at in range(9) if any(rate.decile_ratios for _, rate in rows) else ():
            columns[f"ratio_at_{10 * (at + 1)}"] = [(*rate.decile_ratios, *[None] * 9)[at] for _, rate in rows]
        kinds = {name: RATE_COLUMNS[name][0] if name in RATE_COLUMNS else nw.Float64 for name in columns}
        library = backend or self.library
        if library not in ("polars", "pyarrow"):  # whose integers can be missing
            kinds |= {name: nw.Float64 for name in ("selected", "shortfall") if None in columns[name]}
        return frame(columns, kinds, library)

    def to_json(
        self, path: str | os.PathLike[str] | None = None, *, frontier: Viewable | FrontierView | None = None
    ) -> str:
        """The whole audit as strict JSON text.

        An object with ``kind`` ("metrifair audit"), ``version`` (2) and the fields of the record by their names:
        ``rows``, ``left_out``, ``score_range`` [low, high], ``confidence``, ``findings`` (objects with the fields of
        Finding; ``interval`` and ``bracket`` are {"low", "high"}), ``decisions``, ``distributions``, ``notes``,
        ``summary`` and ``provenance``. What is not known is null; there is no NaN.

        Parameters
        ----------
        path : str or path-like, default=None
            Where the text is written as well.
        frontier : Frontier or FrontierView, default=None
            Adds ``alternatives``: the ``best`` of its models, and the ``models`` that are as good, within its interval,
            and less unfair.

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
        >>> from metrifair import audit
        >>> import json
        >>> json.loads(audit([0, 1, 1, 1], sensitive_features=["a", "a", "b", "b"], random_state=0).to_json())["rows"]
        4
        """
        content = {"kind": "metrifair audit", "version": JSON_VERSION, **asdict(self.record)}
        if frontier is not None:
            best, models = _view_of(frontier).alternatives
            content["alternatives"] = {"best": asdict(best), "models": [asdict(one) for one in models]}
        return write_json(content, path)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        frontier: Viewable | FrontierView | None = None,
    ) -> None:
        """Write the audit as one HTML page that needs nothing but a browser.

        Parameters
        ----------
        path : str or path-like
            The file.
        title : str, default=None
            What stands on top; by default the title of the audit, or "Fairness audit".
        frontier : Frontier or FrontierView, default=None
            Adds what fairer models would cost: a ``Frontier``, or its ``view()``.

        Raises
        ------
        DataError
            Where nothing can be written there.

        Examples
        --------
        >>> from metrifair import audit
        >>> import tempfile, pathlib
        >>> found = audit([0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found.to_html(pathlib.Path(folder, "audit.html"))
        """
        from metrifair.report.audit.page import audit_html  # noqa: PLC0415 (scikit-learn, pandas: 100 MB for pages only)

        view = None if frontier is None else _view_of(frontier)
        title = title or self.provenance.title or "Fairness audit"
        write_html(path, audit_html(self.record, title=title, frontier=view))

    def __repr__(self) -> str:
        counts = len(self.findings), len(self.decisions), len(self.notes)
        named = zip(counts, ("finding", "table", "note"), ("", " of decisions", ""), strict=True)
        listed = ", ".join(f"{count} {name}{'' if count == 1 else 's'}{more}" for count, name, more in named)
        first = f"Audit of {self.record.rows:,} samples: {listed}"
        one = self.headline
        if one is None or one.joint_interval is None:
            return f"{first}\nno gap is certain" if self.findings else first
        who = f"{one.attribute} {one.groups[0]!r} against {one.groups[1]!r}, {one.within} ({one.criterion})"
        least, value = figure_text(one.joint_interval.low), figure_text(one.value)
        return f"{first}\nlargest for certain: {one.metric} distance {value}, at least {least}: {who}"

    def plot(self, kind: AuditChartKind = "findings") -> Any:
        """An altair chart.

        Parameters
        ----------
        kind : {"findings", "distributions", "roc", "reliability"}, default="findings"
            Distances with their intervals, the most certain first; the share of each group below each score; or curves
            by group, which need labels.

        Returns
        -------
        altair chart
            To be shown in a notebook, or changed further.

        Raises
        ------
        MissingExtra
            If altair is not installed.
        DataError
            Where the audit has nothing of this kind to draw.

        Examples
        --------
        >>> from metrifair import audit
        >>> found = audit([0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> found.plot("distributions").to_dict()["mark"]["type"]
        'line'
        """
        return audit_chart(self.record, kind)

    def _repr_html_(self) -> str:
        """The page, shortened, in a frame of its own: no style leaves it."""
        from metrifair.report.audit.page import audit_html  # noqa: PLC0415

        title = self.provenance.title or "Fairness audit"
        return framed(audit_html(self.record, title=title, most_bytes=_IN_NOTEBOOKS), height=640, title="Audit")
