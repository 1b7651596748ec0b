"""``compare(before, after)``: what got better or worse between audits, and what cannot be told apart.

JSON files hold figures and intervals, which is all that audits of different rows take; rows in memory also tell what
two audits of the same rows have in common.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec
import narwhals.stable.v2 as nw

from metrifair.api.audit_result import JSON_VERSION, Audit
from metrifair.auditing.compare import compare_audits
from metrifair.auditing.records import AuditRecord, Difference, DifferenceRecord
from metrifair.auditing.source import AuditResult
from metrifair.errors import DataError
from metrifair.problem.tables import Backend, frame_of
from metrifair.report.audit.difference import difference_html, difference_summary
from metrifair.report.html import framed, write_html
from metrifair.support.files import reason_of, write_json
from metrifair.support.provenance import Provenance, call_text, made_now, said_of

_COLUMNS: dict[str, tuple[Any, Callable[[Difference], object]]] = {
    "model": (nw.String, lambda one: one.model),
    "attribute": (nw.String, lambda one: one.attribute),
    "criterion": (nw.String, lambda one: one.criterion),
    "within": (nw.String, lambda one: one.within),
    "groups": (nw.String, lambda one: " / ".join(one.groups)),
    "metric": (nw.String, lambda one: one.metric),
    "before": (nw.Float64, lambda one: one.before),
    "after": (nw.Float64, lambda one: one.after),
    "difference": (nw.Float64, lambda one: one.difference),
    "interval_low": (nw.Float64, lambda one: one.interval.low if one.interval else None),
    "interval_high": (nw.Float64, lambda one: one.interval.high if one.interval else None),
    "p_value": (nw.Float64, lambda one: one.p_value),
    "p_jointly": (nw.Float64, lambda one: one.p_jointly),
    "verdict": (nw.String, lambda one: one.verdict),
}


@dataclass(frozen=True, eq=False, repr=False)
class AuditDifference:
    """Audits compared: every figure of each with the same figure of the first, the baseline.

    Parameters
    ----------
    audits : mapping of str to Audit
        The audits by name, the baseline first.
    record : DifferenceRecord
        Everything that was found, as plain values; ``compare`` makes it.

    Examples
    --------
    >>> from metrifair import audit
    >>> group = ["a", "a", "a", "b", "b", "b"] * 20
    >>> found = audit({"old": [0.1, 0.2, 0.3, 0.7, 0.8, 0.9] * 20, "new": [0.1, 0.4, 0.7, 0.2, 0.5, 0.8] * 20},
    ...               sensitive_features=group, random_state=0)
    >>> found.differences[0].verdict, list(found.audits)
    ('better', ['old', 'new'])
    """

    audits: Mapping[str, Audit]
    record: DifferenceRecord

    @property
    def differences(self) -> Sequence[Difference]:
        """One for each figure and audit but the first."""
        return self.record.differences

    @property
    def summary(self) -> Sequence[str]:
        """The comparison in plain sentences; one of them says how rows were taken together."""
        return self.record.summary

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The differences as a data frame, one row each.

        Parameters
        ----------
        backend : {"polars", "pandas"}, default=None
            Whose frame; by default that of the data that were audited, else polars where it is installed.

        Returns
        -------
        DataFrame
            With the fields of ``Difference`` as columns; what is not known is missing.
        """
        known = (one.library for one in self.audits.values())
        chosen = backend or next((one for one in known if one), None)
        return frame_of(self.differences, _COLUMNS, chosen)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The comparison as strict JSON text: ``kind`` ("metrifair comparison"), ``version`` and the record's fields.

        Parameters
        ----------
        path : str or path-like, default=None
            Where the text is written as well.

        Returns
        -------
        str
            The text.
        """
        return write_json({"kind": "metrifair comparison", "version": 1, **asdict(self.record)}, path)

    def to_html(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write one page with all audits and their differences.

        Parameters
        ----------
        path : str or path-like
            The file.
        title : str, default=None
            What stands on top; by default the title of the audits, or "Audits compared".
        """
        write_html(path, self._page(title))

    def _page(self, title: str | None = None) -> str:
        title = self.record.origin.title or "Audits compared" if title is None else title
        return difference_html(self.record, {name: one.record for name, one in self.audits.items()}, title=title)

    def __repr__(self) -> str:
        return "\n".join(self.summary)

    def _repr_html_(self) -> str:
        return framed(self._page(), height=640, title="Audits compared")


def compare(
    before: Audit | str | os.PathLike[str],
    after: Audit | str | os.PathLike[str],
    *,
    paired: bool | None = None,
    title: str | None = None,
    about: Mapping[str, str] | None = None,
) -> AuditDifference:
    """What got better or worse from one audit to another, and what cannot be told apart.

    Every finding that both audits have is compared, with an interval of the difference and a p-value. Two models on the
    same rows are compared by these rows (paired), if one call of ``audit`` made both, or ``paired=True`` says so; then
    what both have in common cancels. Otherwise the rows are taken for different ones, such as those of two periods.
    What counts as better or worse holds for all differences at once (Holm).

    Parameters
    ----------
    before, after : Audit or path of a JSON file
        The baseline, and what is compared with it. A JSON file that ``to_json`` wrote holds no rows.
    paired : bool, default=None
        Whether both are about the same rows, in the same order; by default only audits that one call made are: equal
        groups and labels do not tell. Of one file whose rows are not at hand, intervals hold however both audits
        depend on each other; False takes them for different rows. True is an error where rows are not at hand.
    title : str, default=None
        What stands on top of the report.
    about : dict of str, default=None
        What is to be known, such as why both are compared: part of the report.

    Returns
    -------
    AuditDifference
        The differences, in sentences, tables, JSON and one page with both audits.

    Raises
    ------
    DataError
        Where the audits have no finding in common, or cannot be compared.

    Examples
    --------
    >>> from metrifair import audit
    >>> group = ["a", "b"] * 50
    >>> one = audit([0.1, 0.6] * 50, sensitive_features=group, random_state=0)
    >>> print(compare(one, one))
    None of the 4 figures of “after” can be told apart from those of “before”.
    Both audits are of the same 100 rows: what they have in common cancels (paired).
    """
    origin = Provenance(call=call_text(compare, dict(locals())), **said_of(title, about), **made_now())
    return compared({"before": audit_in(before), "after": audit_in(after)}, paired=paired, origin=origin)


def compare_models(audits: Mapping[str, Audit]) -> AuditDifference:
    """Compare audits of the same rows, which one call made, with the first of them."""
    return compared(audits, same_rows=True)


def one_or_compared(audits: Mapping[str, Audit]) -> Audit | AuditDifference:
    """Return the only audit, or all of them compared with the first."""
    return next(iter(audits.values())) if len(audits) == 1 else compare_models(audits)


def compared(audits: Mapping[str, Audit], **how: Any) -> AuditDifference:
    """Compare each audit with the first; ``how`` is what ``compare_audits`` takes."""
    results = {name: AuditResult(one.record, one.rows) for name, one in audits.items()}
    record, at_hand = compare_audits(results, **how)
    summary = difference_summary(record, [one.record for one in audits.values()], at_hand=at_hand)
    return AuditDifference(audits, replace(record, summary=summary))


def audit_in(given: Audit | str | os.PathLike[str]) -> Audit:
    """The audit itself, or that of a JSON file."""
    if isinstance(given, Audit):
        return given
    if not isinstance(given, str | os.PathLike):
        raise DataError(f"compare takes audits, or JSON files that Audit.to_json wrote, got {type(given).__name__}")
    try:
        with open(given, "rb") as file:  # noqa: PTH123  (a path of any kind)
            content = file.read()
        head = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
        kind, version = (msgspec.json.decode(head.get(name, b"null")) for name in ("kind", "version"))
        if kind != "metrifair audit":
            raise DataError(f"{os.fspath(given)} is not the JSON of an audit; write one with metrifair audit --json")
        if not isinstance(version, int) or version > JSON_VERSION:
            raise DataError(
                f"{os.fspath(given)} has the version {version} of an audit's JSON, and this metrifair reads up to "
                f"{JSON_VERSION}; read it with a newer metrifair, or audit the rows again with this one"
            )
        return Audit(msgspec.json.decode(content, type=AuditRecord))
    except OSError as error:
        raise DataError(f"cannot read {os.fspath(given)}: {reason_of(error)}") from None
    except msgspec.DecodeError as error:
        raise DataError(f"{os.fspath(given)} is not the JSON of an audit: {error}") from None
