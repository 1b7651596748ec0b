"""All sentences about a frontier: what was found, what the choice costs, what is noise, what the words mean.

Pages, terminals and the record itself only place them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from metrifair.report.frontier.view import FrontierView, Row, figure_texts
from metrifair.report.numbers import few_text, figure_text, percent_text
from metrifair.results import Point
from metrifair.utility import ALIKE, NO_BETTER, UTILITIES, Utility  # noqa: F401  # UTILITIES: for the examples

UNSCRIPTED = "This report is drawn by its own script: allow JavaScript for this file to see it."
WEIGHTED = (
    "Rows count by their weights. There are no intervals: those that are proven do not hold for weighted samples."
)
_KOLMOGOROV = "the Kolmogorov distance, the largest difference between the groups' shares below any score"


@dataclass(frozen=True)
class Highlight:
    """A model worth a glance: a heading, the model, and one sentence about it."""

    heading: str
    point: Point
    sentence: str


def highlights(view: FrontierView) -> tuple[Highlight, ...]:
    """The most accurate model, the chosen one where there is one, and the least unfair; none if all failed.

    Models that are no better than deciding the same for everyone are not shown as the least unfair, and named as such.

    >>> view = FrontierView([Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)], chosen=Point(1, 0, 0.8, 0.1))
    >>> for highlight in highlights(view):
    ...     print(f"{highlight.heading}: {highlight.sentence}")
    Most accurate: The best of 2 models in accuracy.
    Chosen, least unfair: Accuracy 10.0 points lower, unfairness 75% lower.
    """
    if not view.front:
        return ()
    top, count = view.front[-1], len(view.usable)
    best = f"The best of {count} models in {noun(view.label(view.key))}." if count > 1 else "The only model."
    found = [Highlight(_capital(_best(view).removeprefix("the ")), top, best)]
    if view.choice is not None:
        found.append(Highlight("Chosen", view.choice, _against(view, view.choice, top)))
    # A constant is fair to nobody's use: the least unfair is one that does better.
    fairest = next((point for point in view.front if not view.mark(point)), None)
    if fairest is not None:
        lower = sum(point.gap(view.on) < fairest.gap(view.on) for point in view.usable if view.mark(point))
        more = f" {_models(lower)} with less unfairness {_are(lower)} {NO_BETTER}." if lower else ""
        found.append(Highlight("Least unfair", fairest, _against(view, fairest, top) + more))
    return _merged(
        replace(one, sentence=f"{_capital(_is(mark))}. {one.sentence}") if (mark := view.mark(one.point)) else one
        for one in found
    )


def _merged(found: Iterable[Highlight]) -> tuple[Highlight, ...]:
    """A model that stands out in several ways is shown once, under all its headings."""
    merged: list[Highlight] = []
    for highlight in found:
        same = next((number for number, other in enumerate(merged) if other.point == highlight.point), None)
        if same is None:
            merged.append(highlight)
        else:
            heading = f"{merged[same].heading}, {noun(highlight.heading)}"
            merged[same] = replace(merged[same], heading=heading)
    return tuple(merged)


def summary(view: FrontierView) -> tuple[str, ...]:
    """The findings in a few sentences.

    >>> view = FrontierView([Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)], chosen=Point(1, 0, 0.8, 0.1))
    >>> for sentence in summary(view):
    ...     print(sentence)
    The most accurate model is right in 90.0% of cases; its unfairness is 0.400.
    The chosen model (strength 1) is right in 80.0% of cases; its unfairness is 0.100. \
Against the most accurate: accuracy 10.0 points lower, unfairness 75% lower.
    """
    if not view.front:
        return (
            f"None of the {len(view.points)} trained models can be shown: training diverged or gave no figures.",
            "A smaller learning rate or smaller strengths usually help.",
        )
    top = view.front[-1]
    name = "The most accurate model" if view.key == "accuracy" else f"The best model in {view.label(view.key)}"
    sentences = [f"{name} {_reaches(view, top)}."]
    sentences += [constant] if (constant := constant_sentence(view)) else []
    sentences += [families] if (families := families_sentence(view)) else []
    if view.choice is None:
        sentences.append("No model has been chosen yet: move the slider to see what each strength costs.")
    elif view.choice == top:
        sentences.append("It is also the chosen model.")
    else:
        named = f"{noun(view.label('strength'))} {_strength(view, view.choice)}"
        sentences.append(
            f"The chosen model ({named}) {_reaches(view, view.choice)}. "
            f"Against {_best(view)}: {noun(_against(view, view.choice, top))}"
        )
    if view.choice is not None and view.mark(view.choice):
        sentences.append(f"The chosen model {_is(view.mark(view.choice))}.")
    sentences += [asked] if (asked := limit_sentence(view)) else []
    failed = sum(row.failed for row in view.rows)
    if failed:
        sentences.append(
            f"{failed} of {len(view.points)} models failed; the table lists them, the plot leaves them out."
        )
    return tuple(sentences)


def limit_sentence(view: FrontierView) -> str:
    """What was asked of the chosen model, and whether it is kept on the rows behind the figures; empty if nothing was.

    >>> limit_sentence(FrontierView([Point(1, 0, 0.8, 0.12)], chosen=Point(1, 0, 0.8, 0.12), limit=0.1))
    'The chosen one is the most accurate, up to noise, with an unfairness of at most 0.1 on the rows for choosing; on \
those for these figures it misses this limit.'
    """
    if view.limit is None:
        return ""
    asked = f"an {noun(view.label(view.gap_key))} of at most {view.limit:g} on the rows for choosing"
    if view.choice is None:
        return f"No model has {asked}."
    verdict = "keeps" if view.choice.gap(view.on) <= view.limit else "misses"
    asked = f"{_best(view)}, up to noise, with {asked}"
    return f"The chosen one is {asked}; on those for these figures it {verdict} this limit."


def choice_sentences(view: FrontierView) -> tuple[str, ...]:
    """Which model was chosen by a limit, what it reaches on test rows, and whether it keeps the limit there.

    >>> chosen = Point(1, 0, 0.8, 0.12)
    >>> for sentence in choice_sentences(FrontierView([chosen], chosen=chosen, limit=0.1)):
    ...     print(sentence)
    Chosen: strength 1, the most accurate, up to noise, with an unfairness of at most 0.1 on the rows for choosing.
    On test rows it has accuracy 0.800, unfairness 0.120.
    It misses the limit on test rows (0.120 is above 0.1): to keep it more surely, choose with a lower limit, or hold \
more rows out.
    """
    point, limit = view.choice, view.limit
    if point is None or limit is None:
        return ()
    gap, value = noun(view.label(view.gap_key)), point.gap(view.on)
    shown = {
        key: text for key, text in figure_texts(view, point).items() if key in (view.key, "accuracy", view.gap_key)
    }
    reached = ", ".join(f"{noun(view.label(key))} {text}" for key, text in shown.items())
    intervals = ", with 95 % intervals" if set(shown) & set(point.intervals) else ""
    named = f"{noun(view.label('strength'))} {_strength(view, point)}"
    sentences = [
        f"Chosen: {named}, {_best(view)}, up to noise, with an {gap} of at most {limit:g} on the rows for choosing.",
        f"On test rows it has {reached}{intervals}.",
    ]
    if mark := view.mark(point):
        sentences.append(f"{marked_sentence(view.utility, mark)}.")
    if value > limit:
        sentences.append(
            f"It misses the limit on test rows ({figure_text(value)} is above {limit:g}): to keep it more surely, "
            "choose with a lower limit, or hold more rows out."
        )
    return tuple(sentences)


def constant_sentence(view: FrontierView) -> str:
    """What a model reaches that decides the same for everyone, and how many are no better; empty if it is not known.

    >>> constant = Point(0, 0, 0.7, 0.0)
    >>> constant_sentence(FrontierView([Point(0, 0, 0.9, 0.4)], constant=constant, constant_text="“yes” for everyone"))
    'The constant model (“yes” for everyone) has accuracy 0.700 and unfairness 0.000.'
    """
    constant = view.baseline
    if constant is None:
        return ""
    said = f" ({view.constant_text})" if view.constant_text else ""
    reached = (
        f"The constant model{said} has {noun(view.label(view.key))} {figure_text(view.value(constant))} and "
        f"{noun(view.label(view.gap_key))} {figure_text(constant.gap(view.on))}"
    )
    alike = sum(bool(view.mark(point)) for point in view.usable)
    if not alike:
        return f"{reached}."
    return f"{reached}; {alike} of {len(view.usable)} models {_are(alike)} no better."


def area_sentence(view: FrontierView) -> str:
    """How much of what can be had the models cover; empty if it is not known.

    >>> area_sentence(FrontierView([Point(0, 0, 0.9, 0.4)], areas=(0.54, 0.78), constant=Point(0, 0, 0.6, 0.0)))
    'Area below the Pareto line: 0.540, with the constant model 0.780.'
    """
    if view.areas is None:
        return ""
    with_it = f", with the constant model {figure_text(view.areas[1])}" if view.baseline is not None else ""
    return f"Area below the Pareto line: {figure_text(view.areas[0])}{with_it}."


def marked_sentence(utility: Utility, mark: str, rows: str = "test rows") -> str:
    """What to know of a chosen model that is no better than a constant, and what to do.

    >>> marked_sentence(UTILITIES["accuracy"], "decides the same for everyone")
    'The chosen model decides the same for everyone (on test rows): allow more unfairness, or train with other \
strengths; a utility that looks at scores, such as AUC, may still tell models apart'
    """
    measured = f"on {rows}" if mark == ALIKE else f"by {noun(utility.label)} on {rows}, within its 95 % interval"
    scores = "; a utility that looks at scores, such as AUC, may still tell models apart"
    return (
        f"The chosen model {_is(mark)} ({measured}): allow more unfairness, or train with other strengths"
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


_SAME, _THRESHOLD = "the same for everyone", "metrifair train --choose-threshold"


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
        f"Fewer leaves, {_helps(knob)}"
    )


def _helps(knob: str) -> str:
    """What helps against models whose fairness is that of single rows, after "fewer leaves"."""
    turn = {"strength": "a larger strength", "tolerance": "a smaller tolerance"}.get(knob)
    return "a smaller network or more rows help." if turn is None else f"a smaller network, more rows or {turn} help."


def overfit_sentence(view: FrontierView, row: Row) -> str:
    """That unfairness at one strength is smaller on training rows by more than chance, and what to do; or empty."""
    if not row.overfit or "training" not in row.parts:
        return ""
    return (
        f"More than chance lies between the {noun(view.label(view.gap_key))} on training rows and on others: fewer "
        f"leaves, {_helps(view.knobs.get(row.family, 'strength'))}"
    )


def families_sentence(view: FrontierView) -> str:
    """Which families need the group at prediction, and which do not; empty where there is one family.

    >>> points = [Point(0, 0, 0.9, 0.4, family="linear"), Point(0, 0, 0.9, 0.1, family="moved", needs_group=True)]
    >>> families_sentence(FrontierView(points, knobs={"linear": "strength", "moved": "tolerance"}))
    'Families: linear (1 model), moved (1 model; needs the group of each row at prediction).'
    """
    parts = []
    for family in view.knobs:
        own = [point for point in view.points if point.family == family]
        asks = "; needs the group of each row at prediction" if any(point.needs_group for point in own) else ""
        parts.append(f"{family} ({_models(len(own))}{asks})")
    return f"Families: {', '.join(parts)}." if parts else ""


def row_note(row: Row) -> str:
    """What a table says of a strength beside its figures."""
    return "; ".join(
        [
            *([row.mark] if row.mark else []),
            *(["less unfair on training rows, by more than chance"] if row.overfit else []),
        ]
    )


def shown_note(view: FrontierView, shown: int) -> str:
    """How much of a frontier a short table shows, and what its unfairness is.

    >>> shown_note(FrontierView([Point(0, 0, 0.9, 0.4), Point(0, 1, 0.8, 0.1)]), 1)
    "Shown: 1 of 1 strengths, means of 2 seeds, on test rows. Unfairness is the Kolmogorov distance, the largest \
difference between the groups' shares below any score."
    """
    seeds = len({point.seed for point in view.points})
    means = f", means of {seeds} seeds" if seeds > 1 else ""
    parts = ", and in brackets on those for training and for choosing" if view.rows[0].parts else ""
    kinds = "models" if view.knobs else "strengths"
    return f"Shown: {shown} of {len(view.rows)} {kinds}{means}, on test rows{parts}. Unfairness is {_KOLMOGOROV}."


def interval_note(view: FrontierView, point: Point) -> str:
    """What the unfairness of one model is, and what its intervals are worth."""
    meaning = f"Unfairness is {_KOLMOGOROV}."
    if "unfairness" not in point.intervals:
        return f"{meaning} {WEIGHTED}"
    kind = "Wilson's" if view.accuracy_name == "accuracy" else "an approximation for many rows"
    return (
        f"{meaning} Its intervals are proven, for all comparisons at once (Dvoretzky-Kiefer-Wolfowitz); that of "
        f"{noun(view.label('accuracy'))} is {kind}."
    )


def split_note(train: int, validation: int, test: int) -> str:
    """How many rows serve what.

    >>> split_note(1000, 500, 500)
    '1,000 rows for training, 500 for choosing, 500 for these figures.'
    """
    counts = f"{train:,} rows for training, " if train else "Fitted models were given: "
    return f"{counts}{validation:,} for choosing, {test:,} for these figures."


def small_groups_note(groups: Iterable[tuple[str, str, str, int]]) -> str:
    """Which of these (group, attribute, set, samples) are so small that a figure may be chance; empty if none."""
    found = few_text(groups)
    return f"{found} Merge small groups, mark them as missing, or hold more rows out." if found else ""


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


def _strength(view: FrontierView, point: Point) -> str:
    texts = {row.place: row.text for row in view.rows}
    return texts.get(point.place, f"{point.strength:g}")


def _best(view: FrontierView) -> str:
    return "the most accurate" if view.key == "accuracy" else f"the best in {noun(view.label(view.key))}"


def _is(mark: str) -> str:
    return mark if mark == ALIKE else f"is {mark}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _models(count: int) -> str:
    return f"{count} model{'' if count == 1 else 's'}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _reaches(view: FrontierView, point: Point) -> str:
    gap = f"its {noun(view.label(view.gap_key))} is {figure_text(point.gap(view.on))}"
    if view.key == "accuracy" and view.accuracy_name == "accuracy":
        return f"is right in {percent_text(point.accuracy)} of cases; {gap}"
    name = view.label(view.key)
    return f"reaches {'an' if name[:1] in 'AEFR' else 'a'} {noun(name)} of {figure_text(view.value(point))}; {gap}"


def _against(view: FrontierView, point: Point, top: Point) -> str:
    """What a model costs and gains against the best one."""
    cost, gain = view.value(top) - view.value(point), top.gap(view.on) - point.gap(view.on)
    if cost == 0 and gain == 0:
        return f"As good as {_best(view)} in both."
    points = view.key == "accuracy" and view.accuracy_name == "accuracy"
    by = f"{figure_text(100 * abs(cost), digits=1)} points" if points else figure_text(abs(cost))
    price = f"{view.label(view.key)} {by} {'higher' if cost < 0 else 'lower'}"
    share = f"{abs(gain) / top.gap(view.on):.0%}" if top.gap(view.on) > 0 else figure_text(abs(gain))
    return f"{price}, {noun(view.label(view.gap_key))} {share} {'higher' if gain < 0 else 'lower'}."


def noun(label: str) -> str:
    """A label in the middle of a sentence: its capital goes, unless it is an abbreviation or a name of the user's.

    >>> noun("Unfairness of decisions"), noun("AUC"), noun("<b>")
    ('unfairness of decisions', 'AUC', '<b>')
    """
    return label[0].lower() + label[1:] if label[:1].isupper() and label[1:2].islower() else label
