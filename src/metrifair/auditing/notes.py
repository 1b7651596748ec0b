"""What to know before acting on the figures of an audit: which notes apply; their words stand in report/audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.counted import Floats, Integers, stand_ins
from metrifair.auditing.resampling import spread_of
from metrifair.auditing.sample import Part, Sample, members_of
from metrifair.problem.cells import Attribute
from metrifair.report.audit import words
from metrifair.results import Finding, Note

_TELLING = 0.2  # a correlation of score and outcome that is worth having
_TELLING_LABELS = ({0, 1}, {-1, 1})  # False and True equal 0 and 1
_CLEARLY = 4.0  # standard deviations below chance
_SLIGHT = 0.02  # below chance: of no interest, however many the samples
_STAND_INS = 100_000  # rows that stand for all rows of a file where a correlation is looked at


def notes_of(
    sample: Sample,
    parts: Sequence[Part],
    findings: Sequence[Finding],
    *,
    confidence: float,
    decided: bool,
    assumed: bool,
    complete: bool | None = None,
) -> list[Note]:
    """All notes; ``assumed``: nobody said which label is the positive one.

    ``complete`` says of rows that were counted whether every bracket is narrow enough; None: rows are held.
    """
    problem, classes = sample.problem, sample.problem.scheme.classes
    notes = words.left_out_notes(sample.left_out)
    if not decided:
        notes.append(words.undecided_note())
    if assumed and len(classes) == 2 and set(classes) not in _TELLING_LABELS:
        notes.append(words.label_note(classes, problem.scheme.positive))
    counted, outcome = sample.predicted.get(""), sample.outcome  # None: of several classes
    if counted is not None and outcome is not None and classes:
        positive, negative = (np.flatnonzero(outcome == label) for label in (1, 0))
        sizes = sample.size(positive), sample.size(negative)
        notes += direction_notes(counted.at(positive), counted.at(negative), sizes)
    units = np.arange(len(problem))
    for attribute, code in zip(problem.scheme.attributes, problem.groups.T, strict=True):
        unknown = sample.size(np.flatnonzero(code < 0))
        notes += words.missing_notes(attribute.name, unknown, sample.size(units))
    notes += words.absent_notes(_absent(sample, parts)) + words.small_notes(findings, confidence)
    if complete is not None:
        notes.append(words.exactness_note(sample.size(units), complete=complete))
    if sample.weighted:
        notes.append(words.weight_note(held=complete is None))
    if counted is not None and outcome is not None:
        score, unit = stand_ins(counted, _STAND_INS)
        notes += parity_notes(score, outcome[unit], problem.groups[unit], problem.scheme.attributes)
    return notes


def _absent(sample: Sample, parts: Sequence[Part]) -> list[str]:
    """Groups without a row in some set."""
    found: dict[str, None] = {}
    for part in parts:
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            present = set(members_of(sample.problem, part.units, place).present)
            for code, group in enumerate(attribute.groups):
                if code not in present:
                    found[f"{words.quoted(str(group))} of {attribute.name} in {part.within}"] = None
    return list(found)


def direction_notes(positive: NDArray[Any], negative: NDArray[Any], sizes: tuple[int, int]) -> list[Note]:
    """Scores that are clearly higher for the negative label: the score or the label may be the wrong one.

    Rows (or weights) of either label are counted at ascending scores; ``sizes`` are numbers of rows. The area under the
    ROC curve follows from counts that are there already; scikit-learn would sort the scores once more, which takes a
    third of the time of an audit.

    >>> direction_notes(np.repeat([1, 0], 20), np.repeat([0, 1], 20), (20, 20))[0].text[:58]
    'The score ranks the positive label lower than the other (A'
    """
    if min(sizes) == 0:
        return []
    auc = float(positive / positive.sum() @ (np.cumsum(negative) - negative / 2) / negative.sum())
    chance = np.sqrt((sum(sizes) + 1) / (12 * sizes[0] * sizes[1]))  # spread where the score tells nothing
    return [] if auc > 0.5 - max(_CLEARLY * chance, _SLIGHT) else [words.direction_note(auc)]


def parity_notes(score: Floats, outcome: Floats, codes: Integers, attributes: Sequence[Attribute]) -> list[Note]:
    """Groups for whom the score says nothing about the outcome, while for others it does (the paper's Example 1).

    ``codes`` are (n, attributes). There, equal distributions are reached by dealing scores to such a group by lot.
    """
    notes = []
    for attribute, code in zip(attributes, codes.T, strict=True):
        found = {}
        for place, name in enumerate(attribute.groups):
            own = code == place
            if not _is_constant(outcome[own]):  # else there is nothing to tell
                found[str(name)] = _correlation(score[own], outcome[own]), 2 / np.sqrt(own.sum())
        blind = {name: r for name, (r, error) in found.items() if abs(r) < error < _TELLING}
        told = {name: r for name, (r, error) in found.items() if r - error > 0 and r >= _TELLING}
        if blind and told:
            notes.append(words.parity_note(attribute.name, blind, told))
    return notes


def _correlation(score: Floats, outcome: Floats) -> float:
    """Correlation with an outcome that varies, 0 where the score does not; of numbers of any size."""
    if _is_constant(score):
        return 0.0
    return float(np.corrcoef(*(of / np.abs(of).max() for of in (score, outcome)))[0, 1])


def _is_constant(values: Floats) -> bool:
    """Whether there is no spread but that of rounding errors."""
    return len(values) < 2 or spread_of(values) <= 1e-12 * float(np.abs(values).max())
