"""What to know before acting on an audit: which notes apply, and their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.distribution import Floats, Integers, stand_ins
from metrifair.auditing.out_of_core.formats import LIKE_MISSING
from metrifair.auditing.records import Decisions, Favourable, Finding, Note
from metrifair.auditing.request import Plan
from metrifair.auditing.resampling import spread_of
from metrifair.auditing.sample import AuditSample, Part, members_of
from metrifair.figures.certificates import dkw_radius, generalisation_bounds
from metrifair.figures.intervals import FEWEST, FEWEST_DEPENDENT
from metrifair.metrics.registry import is_largest_gap
from metrifair.problem.attributes import label_notes
from metrifair.problem.cells import Attribute
from metrifair.report.audit.words import confidence_text, points_text, quoted, score_text, selected_text
from metrifair.wording.numbers import few_text, listed, percent_text, positive_text

_NEARLY_ALL = 0.99  # selected
_BLIND = 0.2  # a gap this large should not go unseen
_TELLING = 0.2  # a correlation of score and outcome that is worth having
_CLEARLY = 4.0  # standard deviations below chance
_SLIGHT = 0.02  # below chance: of no interest, however many the samples
_STAND_INS = 100_000  # rows that stand for all rows of a file where a correlation is looked at


def notes_of(
    sample: AuditSample,
    parts: Sequence[Part],
    findings: Sequence[Finding],
    decisions: Sequence[Decisions],
    plan: Plan,
    *,
    decided: bool,
    between: tuple[float, float] | None,
    assumed: bool,
    complete: bool | None,
) -> list[Note]:
    """All notes; ``assumed``: nobody said which label is the positive one; ``between``: where the median lies.

    ``complete`` says of rows that were counted whether every bracket is narrow enough; None: rows are held.
    """
    problem, classes = sample.problem, sample.problem.scheme.classes
    notes = left_out_notes(sum(sample.left_out.values()), sample.withheld) + constant_notes(sample, decisions)
    if not decided:
        notes.append(UNDECIDED)
    if assumed and (text := positive_text(classes, problem.scheme.positive)):
        notes.append(Note("labels", text))
    counted, outcome = sample.predicted.get(""), sample.outcome  # None: of several classes
    if counted is not None and outcome is not None and classes:
        positive, negative = (np.flatnonzero(outcome == label) for label in (1, 0))
        sizes = sample.size(positive), sample.size(negative)
        notes += direction_notes(counted.at(positive), counted.at(negative), sizes, sample.favourable)
    units = np.arange(len(problem))
    notes += missing_notes(sample)
    for attribute in problem.scheme.attributes:
        notes += naming_notes(attribute.name, attribute.groups)
    notes += [Note("parity", text) for text in label_notes(problem, sample.rows)]
    notes += [level_note(*one) for one in sample.levels.items()]
    notes += absent_notes(_absent(sample, parts)) + small_notes(findings, plan.confidence, plan.least_count)
    notes += [] if complete is None else [exactness_note(sample.size(units), complete=complete)]
    if sample.weighted:
        notes.append(weight_note(held=complete is None))
        notes += unequal_notes(findings) if plan.resamples else []
    if counted is not None and outcome is not None:
        score, unit = stand_ins(counted, _STAND_INS)
        notes += parity_notes(score, outcome[unit], problem.groups[unit], problem.scheme.attributes)
    notes += [] if between is None else [median_note(between)]
    if plan.vc_dimension is None:
        return notes
    return [*notes, training_note(decisions, plan.vc_dimension, plan.confidence, weighted=sample.weighted)]


def level_note(name: str, levels: int) -> Note:
    """That a number was cut so that its rows could be counted."""
    text = (
        f"{name} has very many different values and is cut into {levels} levels of about as many rows each, to be "
        "counted: what is said of it is exact for these."
    )
    return Note("exactness", text)


def constant_notes(sample: AuditSample, decisions: Sequence[Decisions]) -> list[Note]:
    """That scores, or the decisions at the threshold, are the same for everyone: gaps of 0 then praise nothing."""
    if sample.ends[0] == sample.ends[1]:
        return [constant_note(sample.ends[0])]
    if sample.prediction is not None and sample.prediction.ndim > 1 and not np.ptp(sample.prediction, axis=0).any():
        return [constant_note(None)]
    rates = {rate.selection_rate for found in decisions for rate in found.rates}
    if len(rates) == 1 and rates <= {0.0, 1.0}:
        return [alike_note(decisions[0].threshold, selected=rates == {1.0})]
    if rates and min(rates) >= _NEARLY_ALL:
        return [nearly_all_note(decisions[0], sample.ends)]
    return []


def _absent(sample: AuditSample, parts: Sequence[Part]) -> list[str]:
    """Groups without a row in some set."""
    found: dict[str, None] = {}
    for part in parts:
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            present = set(members_of(sample.problem, part.units, place).present)
            for code, group in enumerate(attribute.groups):
                if code not in present:
                    found[f"{quoted(str(group))} of {attribute.name} in {part.within}"] = None
    return list(found)


def direction_notes(
    positive: NDArray[Any], negative: NDArray[Any], sizes: tuple[int, int], favourable: Favourable = "high"
) -> list[Note]:
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
    return [] if auc > 0.5 - max(_CLEARLY * chance, _SLIGHT) else [direction_note(auc, favourable)]


def parity_notes(score: Floats, outcome: Floats, codes: Integers, attributes: Sequence[Attribute]) -> list[Note]:
    """Groups for whom the score says nothing about the outcome, while for others it does (the paper's Example 1).

    ``codes`` are (n, attributes). There, equal distributions are reached by dealing scores to such a group by lot.
    """
    notes = []
    for attribute, code in zip(attributes, codes.T, strict=True):
        found = {}
        order = np.argsort(code, kind="stable")
        starts = np.searchsorted(code[order], np.arange(len(attribute.groups) + 1))
        for place, name in enumerate(attribute.groups):
            own = order[starts[place] : starts[place + 1]]
            if not _is_constant(outcome[own]):  # else there is nothing to tell
                correlation = 0.0
                if not _is_constant(score[own]):  # numbers may be of any size
                    both = (of[own] / np.abs(of[own]).max() for of in (score, outcome))
                    correlation = float(np.corrcoef(*both)[0, 1])
                found[str(name)] = correlation, 2 / np.sqrt(len(own))
        blind = {name: r for name, (r, error) in found.items() if abs(r) < error < _TELLING}
        told = {name: r for name, (r, error) in found.items() if r - error > 0 and r >= _TELLING}
        if blind and told:
            notes.append(parity_note(attribute.name, blind, told))
    return notes


def _is_constant(values: Floats) -> bool:
    """Whether there is no spread but that of rounding errors."""
    return len(values) < 2 or spread_of(values) <= 1e-12 * float(np.abs(values).max())


# --- their words ------------------------------------------------------------------------------------------------


def left_out_notes(left_out: int, withheld: int = 0) -> list[Note]:
    """That some rows could not be used, or were withheld by whoever counted them.

    >>> print(*(note.text for note in left_out_notes(3, 2)), sep="\\n")
    Left out: 1 row without a score, or without a label, weight or group that was asked for.
    Withheld: 2 rows in cells (group, stratum and label) of fewer rows than least_count, when counts were saved.
    """
    reasons = {
        "Left out: {} without a score, or without a label, weight or group that was asked for.": left_out - withheld,
        "Withheld: {} in cells (group, stratum and label) of fewer rows than least_count, when counts were saved.": (
            withheld
        ),
    }
    return [
        Note("missing", text.format(f"{rows:,} row{'' if rows == 1 else 's'}"))
        for text, rows in reasons.items()
        if rows
    ]


def naming_notes(attribute: str, groups: Sequence[object]) -> list[Note]:
    """That a group has the name of a missing value, or two names differ only by case, spaces or ".0".

    >>> print(*(note.text for note in naming_notes("sex", ["Female", "female ", "NA", "male"])), sep="\\n")
    sex: 'NA' is taken for the name of a group; if it stands for a missing value, leave these cells empty, or read the \
file with missing='NA'.
    sex: the groups 'Female' and 'female ' differ only by how they are written; if they are one, write them in one way.
    """
    alike: dict[str, list[str]] = {}
    for group in filter(lambda one: isinstance(one, str), groups):
        alike.setdefault(_one_word(str(group)).removesuffix(".0"), []).append(str(group))
    found = [
        f"{attribute}: {name!r} is taken for the name of a group; if it stands for a missing value, leave these cells "
        f"empty, or read the file with missing={name!r}."
        for word in map(_one_word, LIKE_MISSING)
        for name in alike.get(word, ())
    ]
    found += [
        f"{attribute}: the groups {' and '.join(map(repr, names))} differ only by how they are written; if they "
        "are one, write them in one way."
        for names in alike.values()
        if len(names) > 1
    ]
    return [Note("missing", text) for text in found]


def _one_word(name: str) -> str:
    return "".join(name.split()).casefold()


UNDECIDED = Note(
    "exactness",
    "No decisions were looked at: the scores are not probabilities, so 0.5 is not a natural threshold for them. "
    "Pass threshold=... to see selection rates.",
)


def constant_note(score: float | None) -> Note:
    """That all scores are equal; None: those of each class."""
    what = "The probabilities are those of everyone" if score is None else f"Every score is {score_text(score)}"
    text = f"{what}: nobody is told apart, so that no gap can show. That is no proof of fairness, and of no use."
    return Note("constant", text)


def alike_note(threshold: float, *, selected: bool) -> Note:
    """That scores differ, and decisions do not."""
    who = "everyone is" if selected else "nobody is"
    text = f"At threshold {score_text(threshold)} {who} selected: equal rates and a ratio of 1 then say nothing."
    return Note("constant", f"{text} Pass threshold=... to look at decisions that differ.")


def nearly_all_note(found: Decisions, ends: tuple[float, float]) -> Note:
    """That hardly anybody is not selected, as where the threshold is in other units than the scores."""
    low, high = (score_text(end, ends[1] - ends[0]) for end in ends)
    text = f"{selected_text(found)} nearly everyone is selected, {percent_text(_NEARLY_ALL)} of each group or more: "
    text += "ratios of rates so near to 1 say little. "
    return Note("constant", f"{text}Is it the threshold of these scores, which reach from {low} to {high}?")


def direction_note(auc: float, favourable: Favourable = "high") -> Note:
    """That scores are on the wrong side where the label is positive."""
    side = "lower" if favourable == "high" else "higher"
    return Note(
        "labels",
        f"The score ranks the positive label {side} than the other (AUC {auc:.2f}, worse than chance): the score or "
        "the positive label may be turned round.",
    )


def median_note(ends: tuple[float, float]) -> Note:
    """That the median of rows that were counted is known up to a bin."""
    low, high = (score_text(end, ends[1] - ends[0]) for end in ends)
    text = f"The median score lies between {low} and {high}: counts tell no more, so the nearer end stands for it."
    return Note("exactness", text)


def missing_notes(sample: AuditSample) -> list[Note]:
    """Samples whose group is not known, of each attribute; of several, those of whom none is."""
    known, attributes = sample.problem.groups >= 0, sample.problem.scheme.attributes
    texts, rows = [], sample.size(np.arange(len(known)))
    for attribute, own in zip(attributes, known.T, strict=True):
        if unknown := sample.size(np.flatnonzero(~own)):
            said = f"{attribute.name} is not known for {unknown:,} of {rows:,} samples"
            texts.append(f"{said}: they are left out of its findings.")
    if len(attributes) > 1 and (nobody := sample.size(np.flatnonzero(~known.any(1)))):
        texts.append(f"Left out of all findings, being of no known group at all: {nobody:,} of them.")
    return [Note("missing", text) for text in texts]


def absent_notes(absent: Sequence[str]) -> list[Note]:
    """Groups that have no sample in some set."""
    return [Note("small", f"Not compared, having no sample there: {listed(absent)}.")] if absent else []


def small_notes(findings: Sequence[Finding], confidence: float, least_count: int) -> list[Note]:
    """Groups with so few samples that no figure of theirs says much, or that a large gap would go unseen."""
    few = few_text(
        (
            (group, finding.attribute, finding.within, size)
            for finding in findings
            for group, size in zip(finding.groups, finding.sizes, strict=True)
        ),
        least_count,
    )
    blind: dict[str, None] = {}
    for finding in findings:
        radius = sum(dkw_radius(size, confidence=confidence) for size in finding.sizes)
        if is_largest_gap(finding.metric) and min(finding.sizes) >= least_count and radius > max(finding.value, _BLIND):
            blind[f"{quoted(finding.groups[0])} against {quoted(finding.groups[1])} in {finding.within}"] = None
    if any(min(finding.sizes) < FEWEST for finding in findings):
        few += f" Below {FEWEST} there is no interval."
    notes = [Note("small", few)] if few else []
    unsure = dict.fromkeys(
        f"{one.attribute} in {one.within}"
        for one in findings
        if one.cuts and one.metric == "energy" and sum(one.sizes) < FEWEST_DEPENDENT
    )
    if unsure:
        text = f"Below {FEWEST_DEPENDENT} rows there is no interval of how much scores depend on an attribute"
        notes.append(Note("small", f"{text}: {listed(list(unsure))}."))
    if blind:
        text = f"Too few samples to rule out a gap of {100 * _BLIND:.0f} points or more: {listed(list(blind))}."
        notes.append(Note("small", text))
    return notes


def exactness_note(rows: int, *, complete: bool) -> Note:
    """How exact distances of rows are that were counted."""
    text = (
        f"The {rows:,} rows were counted, not held: every distance lies in a proven bracket and is given as its middle."
    )
    wide = " Some brackets are wider than the tolerance: the rows could not be looked at any closer."
    return Note("exactness", text if complete else text + wide)


def weight_note(*, held: bool) -> Note:
    """What weights rule out, of rows that are held in memory, or were counted."""
    what = "Samples have weights: certified bounds and p-values hold for equal weights only"
    return Note("weights", f"{what}, {'and' if held else 'intervals need all rows at hand; they'} are left out.")


def unequal_notes(findings: Sequence[Finding]) -> list[Note]:
    """Comparisons of weighted samples without an interval, although there are enough samples."""
    unequal = dict.fromkeys(
        f"{quoted(one.groups[0])} against {quoted(one.groups[1])} in {one.within}"
        for one in findings
        if one.interval is None and is_largest_gap(one.metric) and one.value > 0 and min(one.sizes) >= FEWEST
    )
    text = f"No interval, since weights leave a group with what fewer than {FEWEST} equal samples would say"
    return [Note("weights", f"{text}: {listed(list(unequal))}.")] if unequal else []


def training_note(decisions: Sequence[Decisions], dimension: int, confidence: float, *, weighted: bool) -> Note:
    """What rows that trained the model prove, and what they do not."""
    text = (
        "These rows trained the model, or chose it: intervals and p-values describe them alone, and others may fare "
        f"worse. The paper's bound holds all the same, for every model of its class (VC dimension {dimension})"
    )
    first = next((one for one in decisions if len(one.rates) == 2 and one.accuracy_difference is not None), None)
    sizes = [] if first is None or weighted else [rate.size for rate in first.rates]
    if first is None or not sizes:
        return Note("training", f"{text}; audit rows that the model never saw to prove more.")
    right = sum(rate.size * (rate.accuracy or 0.0) for rate in first.rates) / sum(sizes)
    bounds = generalisation_bounds(
        right, first.selection_difference, samples=(sizes[0], sizes[1]), dimension=dimension, confidence=confidence
    )
    if bounds is None:
        return Note("training", f"{text}, but needs more than {dimension} rows of each group.")
    return Note(
        "training",
        f"{text}: with {confidence_text(confidence)} confidence decisions at {score_text(first.threshold)} are right "
        f"for at least {percent_text(bounds.accuracy)} and differ between the groups of {first.attribute} by at most "
        f"{points_text(bounds.unfairness)}; audit rows that the model never saw to prove more.",
    )


def parity_note(attribute: str, blind: Mapping[str, float], told: Mapping[str, float]) -> Note:
    """Groups for whom the score says nothing, and others, each with the correlation of score and outcome."""
    nothing, much = (listed([f"{quoted(name)} ({r:.2f})" for name, r in groups.items()]) for groups in (blind, told))
    return Note(
        "parity",
        f"By {attribute}, the score says nothing about the outcome within {nothing}, but does within {much} (in "
        "brackets: correlation of score and outcome). Enforcing equal distributions here would deal out scores by lot "
        "and help nobody; what the first group lacks is information that bears on its outcome.",
    )
