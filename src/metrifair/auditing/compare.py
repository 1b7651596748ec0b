"""Compare audits: every figure of each with the same figure of the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from metrifair.auditing.differences import correlations, counterparts, difference_of, figures_of, judged, meant
from metrifair.auditing.records import AuditRecord, Difference, DifferenceRecord, Pairing
from metrifair.auditing.source import AuditResult
from metrifair.errors import DataError
from metrifair.support.checks import check_switches
from metrifair.support.provenance import Provenance, files_of


def _check_comparable(first: AuditRecord, other: AuditRecord) -> None:
    """Raise a DataError where figures of the same name are of different things; old files lack some."""
    if other.confidence != first.confidence:
        raise DataError(
            f"intervals of confidence {first.confidence} and {other.confidence} cannot be compared; "
            "audit both with the same confidence"
        )
    for argument in ("favourable", "pos_label"):
        told = [getattr(one, argument) for one in (first, other)]
        if None not in told and meant(told[0]) != meant(told[1]):
            raise DataError(
                f"audits with {argument}={told[0]!r} and {argument}={told[1]!r} cannot be compared; audit both "
                f"with the same {argument}"
            )


def compare_audits(
    audits: Mapping[str, AuditResult],
    *,
    paired: bool | None = None,
    same_rows: bool = False,
    origin: Provenance | None = None,
) -> tuple[DifferenceRecord, bool]:
    """Compare each audit with the first, and say whether rows that were not paired are in memory.

    ``same_rows``: one call made all audits, of the same rows, and ``origin`` is theirs.
    """
    if paired is not None:
        check_switches(paired=paired)
    (baseline, first), *others = audits.items()
    differences: list[Difference] = []
    unmatched, pairing, at_hand = 0, set[Pairing](), False
    for name, other in others:
        _check_comparable(first.record, other.record)
        held = first.rows, other.rows
        origins = [None if one is None else one.origin for one in held]
        known_same = same_rows or first.record is other.record or (origins[0] is not None and origins[0] is origins[1])
        mine, theirs = figures_of(first.record), figures_of(other.record)
        pairs = counterparts(mine, theirs)
        common = correlations([first, other], pairs) if paired or (paired is None and known_same) else None
        at_hand |= None not in held
        if common is None and paired:
            raise DataError(
                "paired=True needs the rows of both audits, the same ones in the same order; audit both in memory, "
                "such as audit({'a': scores, 'b': others}, ...)"
            )
        hashes = [{one.sha256 for one in each.record.provenance.files} for each in (first, other)]
        same = same_rows or (paired is None and hashes[0] == hashes[1] != set())  # of one file, whose rows are not here
        how: Pairing = "rows" if common is not None else "unknown" if same else "independent"
        pairing.add(how)
        unmatched += len(mine) + len(theirs) - 2 * len(pairs)
        for key, counterpart in pairs.items():
            by_rows = None if common is None else common.get(key)
            known = by_rows if how == "rows" else 0.0 if how == "independent" else None
            differences.append(difference_of(name, mine[key], theirs[counterpart.key], known, first.record.confidence))
    if not differences:
        raise DataError(
            f"{baseline} and {', '.join(name for name, _ in others)} have no finding in common; audit the same groups, "
            "criteria and metrics in both"
        )
    found = judged(differences, first.record.confidence)
    record = DifferenceRecord(
        tuple(audits),
        next(iter(pairing)) if len(pairing) == 1 else "unknown",
        first.record.confidence,
        found,
        unmatched,
    )
    sources = [one.record.provenance for one in audits.values()]
    whole = replace(origin or sources[0], files=files_of(sources))
    return replace(record, provenance=sources, origin=whole), at_hand and paired is None
