"""What to know of a sweep before anything is shown of it: rows, chance, small groups, models that say nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from metrifair.figures.intervals import FEW
from metrifair.figures.utility import ALIKE, UTILITIES, Utility  # noqa: F401  # UTILITIES: for the examples
from metrifair.tradeoff.points import Point
from metrifair.wording.numbers import few_text, figure_text, listed, noun

WEIGHTED = (
    "Rows count by their weights. There are no intervals: those that are proven do not hold for weighted samples."
)
_SAME, _THRESHOLD = "the same for everyone", "metrifair train --choose-threshold"


def marked_sentence(utility: Utility, mark: str, rows: str = "test rows") -> str:
    """What to know of a chosen model that is no better than a constant, and what to do.

    >>> marked_sentence(UTILITIES["accuracy"], "decides the same for everyone")
    'The chosen model decides the same for everyone (on test rows): allow more unfairness, or train with other \
strengths; a utility that looks at scores, such as AUC, may still tell models apart'
    """
    measured = f"on {rows}" if mark == ALIKE else f"by {noun(utility.label)} on {rows}, within its 95 % interval"
    scores = "; a utility that looks at scores, such as AUC, may still tell models apart"
    return (
        f"The chosen model {is_text(mark)} ({measured}): allow more unfairness, or train with other strengths"
        f"{scores if utility.needs == 'decisions' else ''}"
    )


def same_decisions_note(points: Sequence[Point], utility: Utility) -> str:
    """How many models a utility of scores tells apart that decide the same for everyone; or empty.

    >>> alike = Point(1, 0, 0.9, 0.1, marks={"accuracy": "decides the same for everyone"})
    >>> same_decisions_note([alike, Point(0, 0, 0.9, 0.1)], UTILITIES["auc"])
    '1 of 2 models decides the same for everyone at its threshold, however well it ranks people: equal decision rates \
and a four-fifths ratio of 1 are then no sign of fairness. Choose another threshold (metrifair train \
--choose-threshold).'
    """
    alike = sum(point.marks.get("accuracy") == ALIKE and not point.marks.get(utility.key) for point in points)
    if not alike:
        return ""
    who, verb = ("its", "decides") if alike == 1 else ("their", "decide")
    ranks = "it ranks" if alike == 1 else "they rank"
    return (
        f"{alike} of {len(points)} models {verb} {_SAME} at {who} threshold, however well {ranks} people: equal "
        "decision rates and a four-fifths ratio of 1 are then no sign of fairness. Choose another threshold "
        f"({_THRESHOLD})."
    )


def same_decisions_warning(point: Point, utility: Utility) -> str:
    """The same of the model that was chosen; empty where its decisions differ, or its mark says so already."""
    if point.marks.get("accuracy") != ALIKE or point.marks.get(utility.key):
        return ""
    return (
        f"The chosen model ranks people, but decides {_SAME} at its threshold (on test rows): equal decision rates are "
        f"then no sign of fairness; choose another threshold ({_THRESHOLD})"
    )


def overfit_note(parts: Iterable[tuple[Point | None, Point, Point]], knobs: Mapping[str, str]) -> str:
    """At how many models (on training, validation and test rows) unfairness grows by more than chance; or empty.

    ``knobs`` are the parameters that trade accuracy for fairness, by family.

    >>> seen = (Point(1, 0, 0.9, 0.018), Point(1, 0, 0.8, 0.15), Point(1, 0, 0.8, 0.17, overfit=True))
    >>> overfit_note([seen], {"": "strength"})
    'Unfairness is smaller on training rows than on others, by more than chance, at 1 of 1 models (most at strength 1: \
0.018, against 0.150 on the rows for choosing and 0.170 on test rows): they have learnt the fairness of single rows. \
Fewer leaves, a smaller network, more rows or a larger strength help.'
    """
    known = [(trained, *others) for trained, *others in parts if trained is not None]
    parted = [own for own in known if own[-1].overfit]
    if not parted:
        return ""
    trained, seen, tested = max(parted, key=lambda own: own[1].unfairness + own[2].unfairness - 2 * own[0].unfairness)
    knob = knobs.get(tested.family, "strength")
    return (
        "Unfairness is smaller on training rows than on others, by more than chance, at "
        f"{len(parted)} of {len(known)} models (most at {f'{tested.family}, ' if tested.family else ''}"
        f"{knob} {tested.strength:g}: "
        f"{figure_text(trained.unfairness)}, against {figure_text(seen.unfairness)} on the rows for choosing and "
        f"{figure_text(tested.unfairness)} on test rows): they have learnt the fairness of single rows. "
        f"Fewer leaves, {helps(knob)}"
    )


def constant_note(values: Sequence[float], constant: Collection[float], *, family: str = "") -> str:
    """At which of these strengths models predict the same for everyone; or empty.

    >>> constant_note([0, 1, 10, 100], {10, 100})
    'Models predict the same for everyone from strength 10 on (2 of 4 strengths): training found nothing with a lower \
objective there, so that smaller strengths, or longer training, show the trade-off.'
    >>> constant_note([0, 1, 10], {1})
    'Models predict the same for everyone at strength 1 (1 of 3 strengths): training found nothing with a lower \
objective there, so that smaller strengths, or longer training, show the trade-off.'
    """
    if not constant:
        return ""
    last = [value for value in sorted(values) if value >= min(constant)]
    where = f"from strength {last[0]:g} on" if len(last) > 1 and set(last) == set(constant) else ""
    where = where or f"at strength {listed([f'{value:g}' for value in sorted(constant)])}"
    return (
        f"{f'{family}: models' if family else 'Models'} predict {_SAME} {where} ({len(set(constant))} of "
        f"{len(set(values))} strengths): training found nothing with a lower objective there, so that smaller "
        "strengths, or longer training, show the trade-off."
    )


def helps(knob: str) -> str:
    """What helps against models whose fairness is that of single rows, after "fewer leaves"."""
    turn = {"strength": "a larger strength", "tolerance": "a smaller tolerance"}.get(knob)
    return "a smaller network or more rows help." if turn is None else f"a smaller network, more rows or {turn} help."


def split_note(train: int, validation: int, test: int, folds: int = 0) -> str:
    """How many rows serve what.

    >>> split_note(1000, 500, 500)
    '1,000 rows for training, 500 for choosing, 500 for these figures.'
    >>> split_note(1500, 1500, 500, 5)
    '1,500 rows for training and, in 5 folds, for choosing by models of the others, 500 for these figures.'
    """
    if folds:
        choosing = f"in {folds} folds, for choosing by models of the others"
        return f"{train:,} rows for training and, {choosing}, {test:,} for these figures."
    counts = f"{train:,} rows for training, " if train else "Fitted models were given: "
    return f"{counts}{validation:,} for choosing, {test:,} for these figures."


def small_groups_note(groups: Iterable[tuple[str, str, str, int]], *, left_out: bool) -> str:
    """Which of these (group, attribute, set, samples) are so small that a figure may be chance; empty if none.

    ``left_out``: unfairness is that of other groups; otherwise all are so small.
    """
    if not (found := few_text(groups)):
        return ""
    meant = (
        f"Unfairness leaves them out (the four-fifths ratio groups with fewer than {FEW} rows in all): theirs would be "
        "mostly chance. Tables by group show them."
        if left_out
        else "There is nothing larger to compare, so that chance alone may explain the unfairness."
    )
    return f"{found} {meant} Merge small groups, mark them as missing, or hold more rows out."


def floor_note(floor: float, comparisons: int = 1, *, on: str = "scores") -> str:
    """The unfairness that chance alone would show, as a sentence.

    >>> floor_note(0.1993, 7)
    'Between groups of equal distributions chance alone would show an unfairness of about 0.199 (the largest of 7 \
comparisons): below it, differences between models are noise.'
    """
    about = "up to about" if on == "decisions" else "about"
    largest = f" (the largest of {comparisons:,} comparisons)" if comparisons > 1 else ""
    return (
        f"Between groups of equal distributions chance alone would show an unfairness of {about} {figure_text(floor)}"
        f"{largest}: below it, differences between models are noise."
    )


def is_text(mark: str) -> str:
    """What a mark says of a model, with its verb."""
    return mark if mark == ALIKE else f"is {mark}"
