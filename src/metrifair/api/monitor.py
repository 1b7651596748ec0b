"""``monitor(states)``: the distances of each period, and a test for change that is valid for
repeated looks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from metrifair import report
from metrifair.api.audit_result import Audit
from metrifair.api.compare import read_audit
from metrifair.api.pages import RecordedPage
from metrifair.api.state import AuditState
from metrifair.auditing.changes.change_test import ChangeTest
from metrifair.auditing.changes.series import Pool, series_record
from metrifair.auditing.records import AuditRecord, Look, SeriesRecord
from metrifair.auditing.request import AuditOptions, Criteria, Request
from metrifair.errors import DataError
from metrifair.problem.tables import Backend, make_frame
from metrifair.support.checks import make_seed
from metrifair.support.provenance import (
    Provenance,
    call_text,
    distinct_files,
    distinct_names,
    made_now,
    names_of_files,
)
from metrifair.support.signatures import as_in
from metrifair.wording.compare import series_sentences
from metrifair.wording.tables import LOOKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class AuditSeries(RecordedPage):
    """Distances over time, and which of them have changed significantly since their baselines.

    Parameters
    ----------
    record : SeriesRecord
        The values of the series, as ``monitor`` returns them.

    Examples
    --------
    >>> from metrifair import AuditState
    >>> day = AuditState().add(None, [0.2, 0.8] * 50, sensitive_features=list("fm") * 50)
    >>> monitor({"Monday": day, "Tuesday": day}, random_state=0).alarms
    []
    """

    kind = "series"
    page_title = "Audits over time"

    record: SeriesRecord

    @property
    def alarms(self) -> list[Look]:
        """The distances that have changed significantly, at each look that shows it."""
        return [row for row in self.record.series if row.alarm in ("better", "worse")]

    def _sentences(self) -> Sequence[str]:
        return series_sentences(self.record)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The series as a data frame, one row for each distance and look.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            Library of the data frame. By default polars if it is installed, else pandas.

        Returns
        -------
        DataFrame
            The fields of ``Look`` as columns.
        """
        return make_frame(self.record.series, LOOKS.frame(), backend)

    def plot(self, *, ax: Axes | None = None) -> report.ChartDisplay:
        """Draw the distances of the main metric at each look, with their intervals and alarms.

        The seven distances with the smallest p-values are drawn, or all if there are fewer.

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

        Examples
        --------
        >>> from metrifair import AuditState
        >>> day = AuditState().add(None, [0.2, 0.8] * 50, sensitive_features=list("fm") * 50)
        >>> series = monitor({"Monday": day, "Tuesday": day}, random_state=0)
        >>> [tick.get_text() for tick in series.plot().ax_.get_xticklabels()]
        ['Monday', 'Tuesday']
        """
        return report.series_chart(self.record, ax)

    @property
    def _origin(self) -> Provenance:
        return self.record.origin

    def _document(self, origin: Provenance, title: str, **options: Any) -> str:
        return report.series_html(replace(self.record, origin=origin), title=title, **options)


@as_in(AuditState.audit)
def monitor(
    states: Sequence[AuditState | Audit | str | os.PathLike[str]]
    | Mapping[str, AuditState | Audit | str],
    *,
    criteria: Criteria = None,
    metrics: Sequence[str] | str | None = None,
    confidence: float | None = None,
    clusters: str | None = None,
    random_state: Any = 0,
    options: AuditOptions | None = None,
) -> AuditSeries:
    """Test whether the distances of several periods have changed since their baselines.

    Looks have different rows, such as those of one day each. The k-th look after the first is
    tested at (1 - confidence) / (k (k + 1)), divided by the number of comparisons of two groups.
    These levels add up to at most 1 - confidence, however many looks follow.

    An alarm needs two tests at this level. The first is exact: whether the scores of the two groups
    are distributed as in the baseline. So if no scores change, the probability of any alarm is at
    most 1 - confidence. The second is approximate, by intervals: whether the distance differs. It
    limits alarms where scores change, but a distance does not.

    Audits that were read from JSON, rows with weights and numeric attributes have no exact test,
    nor have scores in fewer than 100 bins of a much wider ``score_range``. Their distances share
    the level, and the probability of any false alarm is approximately at most 1 - confidence.
    Intervals are simultaneous for all looks and distances, and approximate.

    Audits of rows in clusters have no exact test either. One cluster, such as a person, may have
    rows at several looks: differences are tested for any correlation between looks.

    The baseline of a distance is the first look that has it. If a group is smaller than
    ``min_group_size`` there, the following looks are pooled with it until both groups reach that
    size (of audits, which contain no rows, the first look that is large enough is the baseline). A
    group that appears later begins a series with a baseline of its own.

    Parameters
    ----------
    states : sequence of AuditState, Audit or paths of JSON files, or a mapping of names to them
        The periods in their order. States are audited with the options below, without p-values.
    criteria, metrics : as in AuditState.audit
    confidence : float, default=None
        Confidence level: the probability of no false alarm. By default that of ``options`` (0.95).
        Audits must have the same confidence.
    clusters : str, default=None
        The name of the clusters of all audits, such as ``"person"``. An error is raised if a look
        was made without them, as counts of ``AuditState`` are.
    random_state : as in AuditState.audit
    options : AuditOptions, default=None
        Further options. Groups below ``min_group_size`` are not tested; the record and the summary
        list them.

    Returns
    -------
    AuditSeries
        The series and its alarms; as sentences, table, JSON and page.

    Raises
    ------
    DataError
        If there are fewer than two periods, or they have no distance in common.

    Examples
    --------
    >>> import numpy as np
    >>> from metrifair import AuditState
    >>> group, scores = np.repeat(["f", "m"], 400), np.linspace(0, 1, 800) % 0.5
    >>> days = {f"day {k}": AuditState().add(
    ...             None, np.where(group == "m", scores + gap, scores), sensitive_features=group)
    ...         for k, gap in enumerate([0.1, 0.1, 0.3])}
    >>> {(one.look, one.alarm) for one in monitor(days, random_state=0).alarms}
    {('day 2', 'worse')}
    """
    call = call_text(
        monitor,
        states,
        criteria=criteria,
        metrics=metrics,
        confidence=confidence,
        clusters=clusters,
        options=options,
    )
    origin = Provenance(call=call, **made_now())
    if not isinstance(states, Iterable) or isinstance(states, str):
        raise DataError(
            "states must be a sequence or dict of audits or counts, one for each look, got "
            f"{states!r}"
        )
    looks = []
    if not isinstance(states, Mapping):
        looks = list(states)
    named: dict[str, Any] = dict(
        states if isinstance(states, Mapping) else zip(_names(looks), looks, strict=True)
    )
    if len(named) < 2:
        raise DataError(f"monitor needs at least two looks, got {len(named)}")
    seed = make_seed(random_state)
    generator = np.random.default_rng(seed)
    request = Request.of(options, criteria=criteria, metrics=metrics, confidence=confidence)
    look_options = replace(options or AuditOptions(), confidence=request.confidence, permutations=0)
    look = partial(
        AuditState.audit,
        criteria=criteria,
        metrics=metrics,
        random_state=generator,
        options=look_options,
    )
    audits = {
        name: look(state) if isinstance(state, AuditState) else read_audit(state)
        for name, state in named.items()
    }
    record = series_record(
        {name: audit.record for name, audit in audits.items()},
        confidence=request.confidence,
        min_group_size=request.min_group_size,
        pool=_pool(list(named.values()), look),
        change_test=ChangeTest.of([audit.rows for audit in audits.values()], seed),
        clusters=clusters,
    )
    origins = [audit.provenance for audit in audits.values()]
    provenance = replace(origin, seed=seed, files=distinct_files(origins))
    return AuditSeries(replace(record, provenance=origins, origin=provenance))


def _pool(states: Sequence[Any], look: Callable[[AuditState], Audit]) -> Pool | None:
    """A function that audits the rows of several looks together; None unless all looks are
    states.
    """
    if not all(isinstance(state, AuditState) for state in states):
        return None

    def pool(first: int, last: int) -> AuditRecord:
        return look(states[first].merge(*states[first + 1 : last + 1])).record

    return pool


def _names(states: Sequence[Any]) -> list[str]:
    """Distinct names: those of states, or of their files; looks without a name of their own are
    numbered.
    """
    names: dict[int, str] = {}
    unnamed: dict[int, str] = {}
    files = {
        number: path for number, path in enumerate(states) if isinstance(path, str | os.PathLike)
    }
    for number, state in enumerate(states):
        if number in files:
            continue
        name = ""
        if isinstance(state, AuditState):
            name = ", ".join(state.names)
        if name and name not in names.values():
            names[number] = name
        else:
            unnamed[number] = f"{name} look {number + 1}".strip()
    names |= zip(unnamed, distinct_names(unnamed.values(), names.values()), strict=True)
    names |= zip(files, names_of_files(files.values(), names.values()), strict=True)
    return [names[number] for number in range(len(states))]
