"""``compare(before, after)``: which figures differ significantly between audits."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from metrifair import report
from metrifair.api.audit_result import Audit
from metrifair.api.audit_tables import JSON_VERSION
from metrifair.api.pages import RecordedPage
from metrifair.auditing.changes.differences import compare_audits
from metrifair.auditing.records import AuditRecord, Difference, DifferenceRecord
from metrifair.errors import DataError
from metrifair.problem.tables import Backend, make_frame
from metrifair.support.files import error_reason
from metrifair.support.json_bounds import check_json
from metrifair.support.provenance import Provenance, call_text, made_now
from metrifair.wording.compare import difference_sentences
from metrifair.wording.tables import DIFFERENCES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class AuditDifference(RecordedPage):
    """A comparison of audits: each figure with the same figure of the first audit, the baseline.

    Parameters
    ----------
    audits : mapping of str to Audit
        The audits by name, the baseline first.
    record : DifferenceRecord
        The values of the comparison, as ``compare`` returns them.

    Examples
    --------
    >>> from metrifair import audit
    >>> group = ["a", "a", "a", "b", "b", "b"] * 20
    >>> found = audit(None, {"old": [0.1, 0.2, 0.3, 0.7, 0.8, 0.9] * 20, "new": [0.1, 0.4, 0.7, 0.2, 0.5, 0.8] * 20},
    ...               sensitive_features=group, random_state=0)
    >>> found.differences[0].verdict, list(found.audits)
    ('better', ['old', 'new'])
    """

    kind = "comparison"
    page_title = "Audits compared"

    audits: Mapping[str, Audit]
    record: DifferenceRecord

    @property
    def differences(self) -> Sequence[Difference]:
        """The differences, one for each figure and audit but the first."""
        return self.record.differences

    def _sentences(self) -> Sequence[str]:
        return difference_sentences(self.record)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The differences as a data frame, one row each.

        Parameters
        ----------
        backend : {"polars", "pandas"}, default=None
            Library of the data frame. By default that of the audited data, else polars if it is
            installed.

        Returns
        -------
        DataFrame
            The fields of ``Difference`` as columns; unknown values are missing.
        """
        libraries = (audit.library for audit in self.audits.values())
        chosen = backend or next((library for library in libraries if library), None)
        return make_frame(self.differences, DIFFERENCES.frame(), chosen)

    def plot(self, *, ax: Axes | None = None) -> report.ChartDisplay:
        """Draw the differences of the main metric with their joint intervals.

        The 20 most significant ones are drawn, or all if there are fewer.

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
        >>> from metrifair import audit, compare
        >>> old, new = (audit(None, scores, sensitive_features=list("aabb") * 30, random_state=0)
        ...             for scores in ([0.1, 0.2, 0.8, 0.9] * 30, [0.1, 0.8, 0.2, 0.9] * 30))
        >>> compare(old, new).plot().ax_.get_xlabel()
        'Difference: Kolmogorov distance'
        """
        return report.difference_chart(self.record, ax)

    @property
    def _origin(self) -> Provenance:
        return self.record.origin

    def _document(self, origin: Provenance, title: str, **options: Any) -> str:
        record = replace(self.record, origin=origin)
        audits = {name: audit.record for name, audit in self.audits.items()}
        return report.difference_html(record, audits, title=title, **options)


def compare(
    before: Audit | str | os.PathLike[str],
    after: Audit | str | os.PathLike[str],
    *,
    paired: bool | None = None,
    clusters: str | None = None,
) -> AuditDifference:
    """Compare two audits: which figures are better, worse or not distinguishable from sampling
    noise.

    Each figure that both audits have is compared, with an interval of the difference and a p-value.
    Groups, labels and strata match by value: True, 1 and "true" are one group, unless an audit has
    several of them. Verdicts are adjusted for all differences (Bonferroni). Two models on the same
    rows are paired, so that errors in common cancel.

    Parameters
    ----------
    before, after : Audit or path of a JSON file
        The baseline, and the audit that is compared with it. A JSON file of ``to_json`` contains no
        rows.
    paired : bool, default=None
        Whether both audits have the same rows, in the same order. By default only audits of one
        call are paired. Audits of one file whose rows are not in memory get intervals for any
        correlation. False treats the rows as different. True raises an error unless the rows are in
        memory. Different rows in clusters also get intervals for any correlation, as a cluster may
        have rows in both audits; False treats clusters as different.
    clusters : str, default=None
        The name of the clusters of all audits, such as ``"person"``. An error is raised if an audit
        was made without them, and treats rows as independent.

    Returns
    -------
    AuditDifference
        The differences; as sentences, table, JSON and one page with both audits.

    Raises
    ------
    DataError
        If the audits have no figure in common, or differ in a setting that changes a figure, such
        as the threshold.

    Examples
    --------
    >>> from metrifair import audit
    >>> group = ["a", "b"] * 50
    >>> one = audit(None, [0.1, 0.6] * 50, sensitive_features=group, random_state=0)
    >>> print(compare(one, one))
    No figure of “after” differs significantly from “before” (4 tested).
    Both audits have the same 100 rows: errors in common cancel (paired).
    """
    call = call_text(compare, before, after, paired=paired, clusters=clusters)
    origin = Provenance(call=call, **made_now())
    audits = {"before": read_audit(before), "after": read_audit(after)}
    return compare_named(audits, paired=paired, clusters=clusters, origin=origin)


def compare_named(audits: Mapping[str, Audit], **options: Any) -> AuditDifference:
    """Compare each audit with the first; ``options`` are those of ``compare_audits``."""
    return AuditDifference(audits, compare_audits(audits, **options))


def read_audit(audit: Audit | str | os.PathLike[str]) -> Audit:
    """Return an audit as it is, or read that of a JSON file."""
    if isinstance(audit, Audit):
        return audit
    if not isinstance(audit, str | os.PathLike):
        raise DataError(
            "compare takes audits, or JSON files that Audit.to_json wrote, got "
            f"{type(audit).__name__}"
        )
    path = os.fspath(audit)
    try:
        with open(path, "rb") as file:  # noqa: PTH123  (a path of any kind)
            content = file.read()
        check_json(content)
        head = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
        kind, version = (
            msgspec.json.decode(head.get(name, b"null")) for name in ("kind", "version")
        )
        if kind != "metrifair audit":
            raise DataError(
                f"{path} is not the JSON of an audit; write one with metrifair audit --json"
            )
        if not isinstance(version, int) or version > JSON_VERSION:
            raise DataError(
                f"{path} has the version {version} of an audit's JSON, and this metrifair reads up "
                "to "
                f"{JSON_VERSION}; read it with a newer metrifair, or audit the rows again with "
                "this one"
            )
        return Audit(msgspec.json.decode(content, type=AuditRecord))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error_reason(error)}") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise DataError(f"{path} is not the JSON of an audit: {error}") from None
