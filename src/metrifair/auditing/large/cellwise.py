"""Decisions, distributions and notes of a file that is too large to hold, from what its cells hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from metrifair.auditing.comparing import MOST_PAIRED
from metrifair.auditing.curves import curves_of
from metrifair.auditing.decisions import Threshold, are_decisions, deciding, decisions_of, ratio_interval
from metrifair.auditing.evidence import Plan
from metrifair.auditing.explaining import quoted
from metrifair.auditing.inputs import Given, Part, strata_of
from metrifair.auditing.large.counting import Bins
from metrifair.auditing.large.grids import Floats, Integers
from metrifair.auditing.large.passes import Result
from metrifair.auditing.large.rows import Tally
from metrifair.auditing.remarks import (
    absent_note,
    direction_notes,
    label_notes,
    missing_notes,
    parity_notes,
    small_notes,
)
from metrifair.results import Decisions, Distribution, Finding, Note

_SAMPLE = 100_000  # rows that stand for all of them where a correlation is looked at
_WEIGHTED = (
    "Samples have weights: certified bounds and p-values hold for equal weights only, intervals need all rows at hand; "
    "they are left out."
)


class Cells(NamedTuple):
    """The cells of a file as if each were a sample, and what they hold."""

    data: Given
    tally: Tally
    weighted: bool


def present_in(cells: Cells, part: Part, place: int) -> list[int]:
    """Codes of the groups of an attribute that have weight in a part."""
    codes = cells.data.groups.codes[part.rows, place]
    found: list[int] = np.unique(codes[(codes >= 0) & (cells.tally.weight[part.rows] > 0)]).tolist()
    return found


def _are_decisions(base: Bins) -> bool:
    return bool(base.single.all()) and are_decisions(base.high)


def threshold_of(cells: Cells, threshold: Threshold, base: Bins) -> tuple[float | None, list[Note]]:
    """The threshold at which decisions are made, if any."""
    return deciding(threshold, decisions=_are_decisions(base), probabilities=cells.data.probabilities)


def decisions_from(
    cells: Cells, base: Bins, threshold: float, plan: Plan, generator: np.random.Generator
) -> list[Decisions]:
    """Decisions by attribute within each stratum."""
    data, tally = cells.data, cells.tally
    selected = base.counts[base.high == 1].sum(0) if _are_decisions(base) else tally.selected
    outcome = None if data.has_target else data.outcome
    label = np.zeros(len(data), np.int64) if outcome is None else outcome.astype(np.int64)
    by_decision = np.stack([tally.weight - selected, selected], axis=1)
    found = []
    for name, inside in strata_of(data):
        for place, attribute in enumerate(data.groups.attributes):
            code = data.groups.codes[:, place]
            used = inside & (code >= 0)
            counts = np.zeros((len(attribute.groups), 1 if outcome is None else 2, 2))
            np.add.at(counts, (code[used], label[used]), by_decision[used])
            present = counts.sum((1, 2)) > 0
            if present.sum() < 2:
                continue
            interval = None
            if plan.resamples:
                groups = [table.sum(0) for table in counts[present]]
                interval = ratio_interval(
                    groups, confidence=plan.confidence, resamples=plan.resamples, generator=generator
                )
            sizes = np.zeros(len(attribute.groups), np.int64)
            np.add.at(sizes, code[used], tally.rows[used])
            names = [str(group) for group in attribute.groups]
            found.append(
                decisions_of(
                    counts,
                    names,
                    sizes.tolist(),
                    attribute=attribute.name,
                    within=name,
                    threshold=threshold,
                    ratio_interval=interval,
                )
            )
    return found


def distributions_from(
    cells: Cells, within: Sequence[Part], base: Bins, ends: tuple[float, float]
) -> list[Distribution]:
    """Distributions to draw: of each attribute within each set, where there are few enough groups to tell apart."""
    found: dict[tuple[str, str], Distribution] = {}
    for part in within:
        for place, attribute in enumerate(cells.data.groups.attributes):
            present, key = present_in(cells, part, place), (attribute.name, part.within)
            if key in found or not 2 <= len(present) <= MOST_PAIRED:
                continue
            code = cells.data.groups.codes[part.rows, place]
            own = {str(attribute.groups[group]): part.rows[code == group] for group in present}
            masses = {name: base.counts[:, rows].sum(1).astype(np.float64) for name, rows in own.items()}
            sizes = {name: int(cells.tally.rows[rows].sum()) for name, rows in own.items()}
            found[key] = Distribution(*key, curves_of(base.high, masses, sizes, ends))
    return list(found.values())


def _absent(cells: Cells, within: Sequence[Part]) -> list[str]:
    """Groups without a row in some set."""
    found: dict[str, None] = {}
    for part in within:
        for place, attribute in enumerate(cells.data.groups.attributes):
            present = present_in(cells, part, place)
            for group in (group for code, group in enumerate(attribute.groups) if code not in present):
                found[f"{quoted(str(group))} of {attribute.name} in {part.within}"] = None
    return list(found)


def notes_from(
    cells: Cells, within: Sequence[Part], result: Result, findings: Sequence[Finding], *, confidence: float
) -> list[Note]:
    """What to know before acting on the figures."""
    data, tally = cells.data, cells.tally
    unknown = {
        attribute.name: int(tally.rows[code < 0].sum())
        for attribute, code in zip(data.groups.attributes, data.groups.codes.T, strict=True)
    }
    rows = int(tally.rows.sum())
    notes = label_notes(data.classes, data.positive, assumed=data.positive_assumed)
    notes += missing_notes(unknown, rows) + absent_note(_absent(cells, within)) + small_notes(findings, confidence)
    notes += _exactness_notes(result, rows)
    if cells.weighted:
        notes.append(Note("weights", _WEIGHTED))
    if data.outcome is not None:
        score, cell = _stand_ins(result.base)
        if data.classes:
            notes += direction_notes(score, data.outcome[cell])
        notes += parity_notes(score, data.outcome[cell], data.groups.codes[cell], data.groups.attributes)
    return notes


def left_out_notes(left_out: int) -> list[Note]:
    """That some rows could not be used.

    >>> left_out_notes(3)[0].text
    'Left out: 3 rows without a score, or without a label, weight or group that was asked for.'
    """
    if not left_out:
        return []
    rows = f"{left_out:,} row{'' if left_out == 1 else 's'}"
    return [
        Note("missing", f"Left out: {rows} without a score, or without a label, weight or group that was asked for.")
    ]


def _exactness_notes(result: Result, rows: int) -> list[Note]:
    text = (
        f"The {rows:,} rows were counted, not held: every distance lies in a proven bracket and is given as its middle."
    )
    if result.complete:
        return [Note("exactness", text)]
    return [
        Note("exactness", f"{text} Some brackets are wider than the tolerance, the passes over the file being used up.")
    ]


def _stand_ins(base: Bins) -> tuple[Floats, Integers]:
    """Scores and cells of some rows, in proportion to all of them."""
    share = min(1.0, _SAMPLE / float(base.counts.sum())) if not base.weighted else _SAMPLE / float(base.counts.sum())
    taken = np.diff(np.floor(np.cumsum(base.counts, axis=0) * share), axis=0, prepend=0.0).astype(np.int64)
    bin_of, cell = np.nonzero(taken)
    repeats = taken[bin_of, cell]
    return np.repeat(base.high[bin_of], repeats), np.repeat(cell, repeats)
