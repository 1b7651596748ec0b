"""``monitor(states)``: the distances of each period, and a test for change that holds however often one looks.

The k-th look after the first is tested at alpha / (k (k + 1)), shared out over all distances: these levels add up to
alpha over as many looks as there will ever be (Bonferroni). No tighter sequence of bounds is claimed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.special import ndtri

from metrifair.api.audit_result import Audit
from metrifair.api.compare import audit_in
from metrifair.api.state import AuditState
from metrifair.auditing.differences import Key, counterparts, difference_of, figures_of
from metrifair.auditing.records import Look, SeriesRecord, Verdict
from metrifair.auditing.request import Criteria
from metrifair.errors import DataError
from metrifair.figures.intervals import FEW, Interval
from metrifair.metrics.registry import METRICS
from metrifair.problem.cells import Contrast
from metrifair.problem.tables import Backend, frame_of
from metrifair.report.audit.difference import series_html, series_summary
from metrifair.report.html import framed, write_html
from metrifair.support.checks import seed_of
from metrifair.support.files import write_json
from metrifair.support.provenance import Provenance, call_text, files_of, made_now, names_of_files, said_of
from metrifair.support.signatures import as_in

_COLUMNS: dict[str, tuple[Any, Callable[[Look], object]]] = {
    "look": (nw.String, lambda one: one.look),
    "attribute": (nw.String, lambda one: one.attribute),
    "criterion": (nw.String, lambda one: one.criterion),
    "within": (nw.String, lambda one: one.within),
    "groups": (nw.String, lambda one: " / ".join(one.groups)),
    "metric": (nw.String, lambda one: one.metric),
    "value": (nw.Float64, lambda one: one.value),
    "interval_low": (nw.Float64, lambda one: one.interval.low if one.interval else None),
    "interval_high": (nw.Float64, lambda one: one.interval.high if one.interval else None),
    "difference": (nw.Float64, lambda one: one.difference),
    "p_value": (nw.Float64, lambda one: one.p_value),
    "level": (nw.Float64, lambda one: one.level),
    "alarm": (nw.String, lambda one: one.alarm),
}


@dataclass(frozen=True, eq=False, repr=False)
class AuditSeries:
    """Distances over time, and which of them have changed since the first look.

    Parameters
    ----------
    record : SeriesRecord
        Everything that was found, as plain values; ``monitor`` makes it.

    Examples
    --------
    >>> from metrifair import AuditState
    >>> days = [AuditState(name=name).add([0.2, 0.8] * 50, list("fm") * 50) for name in ("Monday", "Tuesday")]
    >>> monitor(days, random_state=0).alarms
    []
    """

    record: SeriesRecord

    @property
    def alarms(self) -> list[Look]:
        """Distances that have changed, at the looks at which that shows."""
        return [one for one in self.record.series if one.alarm in ("better", "worse")]

    @property
    def summary(self) -> Sequence[str]:
        """The series in plain sentences."""
        return self.record.summary

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The series as a data frame, one row for each distance and look.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            Whose frame; by default polars where it is installed, else pandas.

        Returns
        -------
        DataFrame
            With the fields of ``Look`` as columns.
        """
        return frame_of(self.record.series, _COLUMNS, backend)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The series as strict JSON text: ``kind`` ("metrifair series"), ``version`` and the record's fields.

        Parameters
        ----------
        path : str or path-like, default=None
            Where the text is written as well.

        Returns
        -------
        str
            The text.
        """
        return write_json({"kind": "metrifair series", "version": 1, **asdict(self.record)}, path)

    def to_html(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write the series as one page: a chart for each distance.

        Parameters
        ----------
        path : str or path-like
            The file.
        title : str, default=None
            What stands on top; by default the title of the record, or "Audits over time".
        """
        title = self.record.origin.title or "Audits over time" if title is None else title
        write_html(path, series_html(self.record, title=title))

    def __repr__(self) -> str:
        return "\n".join(self.summary)

    def _repr_html_(self) -> str:
        return framed(series_html(self.record, title="Audits over time"), height=640, title="Audits over time")


@as_in(AuditState.audit)
def monitor(
    states: Sequence[AuditState | Audit | str | os.PathLike[str]] | Mapping[str, AuditState | Audit | str],
    *,
    criteria: Criteria = None,
    metrics: Sequence[str] | str | None = None,
    contrast: Contrast = "pairs",
    confidence: float = 0.95,
    random_state: Any = None,
    resamples: int = 500,
    least_count: int = FEW,
    title: str | None = None,
    about: Mapping[str, str] | None = None,
) -> AuditSeries:
    """The distances of several periods, with intervals, and whether they have changed since the first one.

    Looks are different rows, such as those of one day each. However many looks there will be, the chance of any false
    alarm, over all looks and distances, is at most 1 - confidence: the k-th look after the first is tested at
    (1 - confidence) / (k (k + 1)), divided by the number of distances. Intervals hold for all looks likewise.

    Parameters
    ----------
    states : sequence of AuditState, Audit or paths of JSON files, or a mapping of names to them
        The periods in their order; states are audited, by what follows and without p-values.
    criteria, metrics, contrast : as in AuditState.audit
    confidence : float, default=0.95
        Of no false alarm; audits must have been made with it.
    random_state : int, Generator, RandomState or None, default=None
        What resampling draws from.
    resamples : int, default=500
        How many, for intervals.
    least_count : int, default=30
        Groups of fewer rows are too small to tell, and are left out of the series.
    title, about : as in AuditState.audit

    Returns
    -------
    AuditSeries
        The series, its alarms, and ways to hand them on.

    Raises
    ------
    DataError
        Where there are fewer than two periods, or they have no distance in common.

    Examples
    --------
    >>> import numpy as np
    >>> from metrifair import AuditState
    >>> group, scores = np.repeat(["f", "m"], 400), np.linspace(0, 1, 800) % 0.5
    >>> days = {f"day {k}": AuditState().add(np.where(group == "m", scores + gap, scores), group)
    ...         for k, gap in enumerate([0.1, 0.1, 0.3])}
    >>> {(one.look, one.alarm) for one in monitor(days, random_state=0).alarms}
    {('day 2', 'worse')}
    """
    origin = Provenance(call=call_text(monitor, dict(locals())), **said_of(title, about), **made_now())
    if not isinstance(states, Iterable) or isinstance(states, str):
        raise DataError(f"states must be a sequence or dict of audits or counts, one for each look, got {states!r}")
    looks = [] if isinstance(states, Mapping) else list(states)
    named: dict[str, Any] = dict(states if isinstance(states, Mapping) else zip(_names(looks), looks, strict=True))
    if len(named) < 2:
        raise DataError(f"monitor needs at least two looks, got {len(named)}")
    seed = seed_of(random_state)
    generator = np.random.default_rng(seed)
    options: dict[str, Any] = {
        "criteria": criteria,
        "metrics": metrics,
        "contrast": contrast,
        "confidence": confidence,
        "resamples": resamples,
        "least_count": least_count,
    }
    audits = {
        name: one.audit(**options, permutations=0, random_state=generator)
        if isinstance(one, AuditState)
        else audit_in(one)
        for name, one in named.items()
    }
    series = _series(audits, confidence, least_count)
    if all(one.level is None for one in series):
        raise DataError("the looks have no distance in common; audit the same groups, criteria and metrics in all")
    record = SeriesRecord(tuple(audits), [one.record.rows for one in audits.values()], confidence, series)
    origins = [one.provenance for one in audits.values()]
    whole = replace(origin, seed=seed, files=files_of(origins))
    return AuditSeries(replace(record, summary=series_summary(record), provenance=origins, origin=whole))


def _names(states: Sequence[Any]) -> list[str]:
    """What states are called, or their files; looks without a name of their own are numbered."""
    found: list[str] = []
    for number, one in enumerate(states, 1):
        if isinstance(one, str | os.PathLike):
            continue
        own = ", ".join(one.names) if isinstance(one, AuditState) else ""
        found.append(own if own and own not in found else f"{own} look {number}".strip())
    of_files = iter(names_of_files([one for one in states if isinstance(one, str | os.PathLike)], found))
    of_others = iter(found)
    return [next(of_files if isinstance(one, str | os.PathLike) else of_others) for one in states]


def _series(audits: Mapping[str, Audit], confidence: float, least_count: int) -> list[Look]:
    """Every distance that the first look has, at all looks that have it."""
    first = next(iter(audits.values()))
    if any(one.record.confidence != confidence for one in audits.values()):
        raise DataError(f"audits must have been made with confidence={confidence}, as their intervals are used")
    baseline = figures_of(first.record)
    distances = {key: one for key, one in baseline.items() if one.metric in METRICS}
    found = []
    z = float(ndtri((1 + confidence) / 2))
    for number, (name, one) in enumerate(audits.items()):
        figures = figures_of(one.record)
        pairs = counterparts(baseline, figures)
        sizes: dict[Key, tuple[int, int]] = {
            (each.attribute, each.criterion, each.within, each.groups, each.metric): each.sizes for each in one.findings
        }
        # Intervals: look number 1 is the first; changes: look number 1 is the second.
        share = (1 - confidence) / ((number + 1) * (number + 2)) / len(distances)
        level = None if number == 0 else (1 - confidence) / (number * (number + 1)) / len(distances)
        wider = float(-ndtri(share / 2)) / z
        for key, was in distances.items():
            if key not in pairs:
                continue
            other, turned = pairs[key]
            now = figures[other]
            if min(sizes[now.key]) < least_count:
                continue
            alarm: Verdict = "not tested"
            change = None if number == 0 else difference_of(name, was, now, 0.0, confidence)
            if change is not None and change.p_value is not None and level is not None:
                alarm = change.verdict if change.p_value <= level else "cannot be told apart"
            found.append(
                Look(
                    name,
                    *(was if was.key == key else now).key,  # the cut of a number is another one at each look
                    sizes[now.key][::-1] if turned else sizes[now.key],
                    now.value,
                    None if now.interval is None else _widened(now.value, now.interval, wider),
                    now.value - was.value,
                    None if change is None else change.p_value,
                    level,
                    alarm,
                )
            )
    return found


def _widened(value: float, interval: Interval, times: float) -> Interval:
    return Interval(max(0.0, value - times * (value - interval.low)), value + times * (interval.high - value))
