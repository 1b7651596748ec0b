"""The audit of a sample, from one end to the other: comparisons, findings, decisions, distributions, notes, summary.

Which notes apply is decided here; their words stand in report/audit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.decisions import decisions_of
from metrifair.auditing.distribution import Floats, Integers, stand_ins
from metrifair.auditing.findings import Plan, Proven, findings_of
from metrifair.auditing.request import MOST_PAIRED, Request
from metrifair.auditing.resampling import spread_of
from metrifair.auditing.sample import Compared, Part, Sample, compared_in, members_of, parts_of
from metrifair.curves import curves_of
from metrifair.problem.cells import Attribute
from metrifair.report.audit import words
from metrifair.results import AuditRecord, Distribution, Finding, Note

_TELLING = 0.2  # a correlation of score and outcome that is worth having
_TELLING_LABELS = ({0, 1}, {-1, 1})  # False and True equal 0 and 1
_CLEARLY = 4.0  # standard deviations below chance
_SLIGHT = 0.02  # below chance: of no interest, however many the samples
_STAND_INS = 100_000  # rows that stand for all rows of a file where a correlation is looked at

Prove: TypeAlias = Callable[[Sequence[Compared]], tuple[Sequence[Proven], bool]]
"""What passes over a file prove of comparisons, and whether all of it is as exact as was asked for."""


def record_of(
    sample: Sample,
    request: Request,
    generator: np.random.Generator,
    *,
    threshold: float | None,
    selected: NDArray[Any] | None,
    prove: Prove | None = None,
) -> AuditRecord:
    """The whole audit; ``selected`` is how much of each unit is selected at the threshold, None: nothing is decided."""
    parts = list(parts_of(sample, request.named_criteria(), request.loss))
    compared = [one for part in parts for one in compared_in(sample, part, request.contrast)]
    proven, complete = (None, None) if prove is None else prove(compared)
    sampled = prove is None or not sample.weighted  # weighted rows are resampled one by one
    ends = request.score_range
    plan = Plan(
        request.named_metrics(),
        request.confidence,
        request.resamples if sampled else 0,
        request.permutations if sampled else 0,
        len(compared),
        _distribution_functions(compared),
        None if ends is None else ends[1] - ends[0],
    )
    findings = [
        finding
        for place, one in enumerate(compared)
        for finding in findings_of(one, sample, plan, generator, None if proven is None else proven[place])
    ]
    decisions = []
    if threshold is not None and selected is not None:
        options: dict[str, Any] = {"threshold": threshold, "confidence": plan.confidence, "resamples": plan.resamples}
        decisions = decisions_of(sample, selected, **options, generator=generator)
    notes = notes_of(
        sample,
        parts,
        findings,
        confidence=plan.confidence,
        decided=selected is not None or request.threshold != "auto" or "" not in sample.predicted,
        assumed=request.pos_label is None,
        complete=complete,
    )
    known = (sample.problem.groups >= 0).any(1)
    unknown = sample.size(np.flatnonzero(~known))
    return AuditRecord(
        rows=sample.size(np.flatnonzero(known)),
        left_out=sample.left_out + unknown,
        score_range=ends or sample.ends,
        confidence=plan.confidence,
        findings=findings,
        decisions=decisions,
        distributions=_distributions(sample, parts, ends),
        notes=notes,
        summary=words.summary_of(findings, decisions, notes, plan.confidence, permutations=plan.permutations),
    )


def _distribution_functions(compared: Sequence[Compared]) -> int:
    """How many different ones the comparisons look at."""
    return len(
        {
            (id(one.part), one.place, side)
            for one in compared
            for side in ((one.left, None), (one.right, one.left if one.right is None else None))
        }
    )


def _distributions(
    sample: Sample, parts: Sequence[Part], score_range: tuple[float, float] | None
) -> list[Distribution]:
    """Distributions to draw: of each attribute within each set, where there are few enough groups to tell apart."""
    found: dict[tuple[str, str], Distribution] = {}
    for part in parts or ():
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            key = attribute.name, part.within
            if key in found or not part.of_predictions:
                continue
            members = members_of(sample.problem, part.units, place)
            if not 2 <= len(members.present) <= MOST_PAIRED:
                continue
            units = {str(attribute.groups[group]): members.of(group) for group in members.present}
            masses = {name: part.scores.at(own).astype(np.float64) for name, own in units.items()}
            sizes = {name: sample.size(own) for name, own in units.items()}
            ends = score_range or sample.ends
            if score_range is None and sample.counted is None:
                used = part.scores.values[np.flatnonzero(part.scores.at(part.units))[[0, -1]]]
                ends = float(used[0]), float(used[1])
            found[key] = Distribution(*key, curves_of(part.scores.values, masses, sizes, ends))
    return list(found.values())


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
