"""All sentences about a frontier: what was found, what the choice costs, what is noise, what the words mean.

Pages, terminals and the record itself only place them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from metrifair.report.frontier.view import FrontierView, figure_texts
from metrifair.report.numbers import figure_text, percent_text
from metrifair.results import Point, few_text

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

    >>> view = FrontierView([Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)], chosen=Point(1, 0, 0.8, 0.1))
    >>> for highlight in highlights(view):
    ...     print(f"{highlight.heading}: {highlight.sentence}")
    Most accurate: The best of 2 models in accuracy.
    Chosen, least unfair: Accuracy 10.0 points lower, unfairness 75% lower.
    """
    if not view.front:
        return ()
    top, fairest, count = view.front[-1], view.front[0], len(view.usable)
    best = f"The best of {count} models in {_noun(view.label('accuracy'))}."
    found = [Highlight("Most accurate", top, best if count > 1 else "The only model.")]
    if view.choice is not None:
        found.append(Highlight("Chosen", view.choice, _against(view, view.choice, top)))
    found.append(Highlight("Least unfair", fairest, _against(view, fairest, top)))
    return _merged(found)


def _merged(found: Iterable[Highlight]) -> tuple[Highlight, ...]:
    """A model that stands out in several ways is shown once, under all its headings."""
    merged: list[Highlight] = []
    for highlight in found:
        same = next((number for number, other in enumerate(merged) if other.point == highlight.point), None)
        if same is None:
            merged.append(highlight)
        else:
            heading = f"{merged[same].heading}, {_noun(highlight.heading)}"
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
    sentences = [f"The most accurate model {_reaches(view, top)}."]
    if view.choice is None:
        sentences.append("No model has been chosen yet: move the slider to see what each strength costs.")
    elif view.choice == top:
        sentences.append("It is also the chosen model.")
    else:
        named = f"{_noun(view.label('strength'))} {_strength(view, view.choice)}"
        sentences.append(
            f"The chosen model ({named}) {_reaches(view, view.choice)}. "
            f"Against the most accurate: {_noun(_against(view, view.choice, top))}"
        )
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
    'The chosen one is the most accurate with an unfairness of at most 0.1 on the rows for choosing; on those for \
these figures it misses this limit.'
    """
    if view.limit is None:
        return ""
    asked = f"an {_noun(view.label(view.gap_key))} of at most {view.limit:g} on the rows for choosing"
    if view.choice is None:
        return f"No model has {asked}."
    verdict = "keeps" if view.choice.gap(view.on) <= view.limit else "misses"
    return f"The chosen one is the most accurate with {asked}; on those for these figures it {verdict} this limit."


def choice_sentences(view: FrontierView) -> tuple[str, ...]:
    """Which model was chosen by a limit, what it reaches on test rows, and whether it keeps the limit there.

    >>> chosen = Point(1, 0, 0.8, 0.12)
    >>> for sentence in choice_sentences(FrontierView([chosen], chosen=chosen, limit=0.1)):
    ...     print(sentence)
    Chosen: strength 1, the most accurate with an unfairness of at most 0.1 on the rows for choosing.
    On test rows it has accuracy 0.800, unfairness 0.120.
    It misses the limit on test rows (0.120 is above 0.1): to keep it more surely, choose with a lower limit, or hold \
more rows out.
    """
    point, limit = view.choice, view.limit
    if point is None or limit is None:
        return ()
    gap, value = _noun(view.label(view.gap_key)), point.gap(view.on)
    shown = {key: text for key, text in figure_texts(view, point).items() if key in ("accuracy", view.gap_key)}
    reached = ", ".join(f"{_noun(view.label(key))} {text}" for key, text in shown.items())
    intervals = ", with 95 % intervals" if set(shown) & set(point.intervals) else ""
    named = f"{_noun(view.label('strength'))} {_strength(view, point)}"
    sentences = [
        f"Chosen: {named}, the most accurate with an {gap} of at most {limit:g} on the rows for choosing.",
        f"On test rows it has {reached}{intervals}.",
    ]
    if value > limit:
        sentences.append(
            f"It misses the limit on test rows ({figure_text(value)} is above {limit:g}): to keep it more surely, "
            "choose with a lower limit, or hold more rows out."
        )
    return tuple(sentences)


def shown_note(view: FrontierView, shown: int) -> str:
    """How much of a frontier a short table shows, and what its unfairness is.

    >>> shown_note(FrontierView([Point(0, 0, 0.9, 0.4), Point(0, 1, 0.8, 0.1)]), 1)
    "Shown: 1 of 1 strengths, means of 2 seeds. Unfairness is the Kolmogorov distance, the largest difference between \
the groups' shares below any score."
    """
    seeds = len({point.seed for point in view.points})
    means = f", means of {seeds} seeds" if seeds > 1 else ""
    return f"Shown: {shown} of {len(view.rows)} strengths{means}. Unfairness is {_KOLMOGOROV}."


def interval_note(view: FrontierView, point: Point) -> str:
    """What the unfairness of one model is, and what its intervals are worth."""
    meaning = f"Unfairness is {_KOLMOGOROV}."
    if "unfairness" not in point.intervals:
        return f"{meaning} {WEIGHTED}"
    kind = "Wilson's" if view.accuracy_name == "accuracy" else "an approximation for many rows"
    return (
        f"{meaning} Its intervals are proven, for all comparisons at once (Dvoretzky-Kiefer-Wolfowitz); that of "
        f"{_noun(view.label('accuracy'))} is {kind}."
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


def glossary(view: FrontierView) -> tuple[tuple[str, str], ...]:
    """The words of the report and what they mean.

    >>> [word for word, _ in glossary(FrontierView([Point(0, 0, 0.9, 0.4)]))]
    ['Strength', 'Accuracy', 'Unfairness', 'Pareto line', 'Density', 'Share below']
    """
    explained = [
        (view.label("strength"), "How much training weighs fairness against accuracy. 0 means: not at all."),
        (view.label("accuracy"), _ACCURACY[view.accuracy_name]),
        (view.label("unfairness"), _UNFAIRNESS),
        (view.label("decision_unfairness"), _DECISIONS),
        ("Pareto line", "The best accuracy that is to be had at each unfairness. No model lies above it."),
        ("Density", "Where the scores of a group lie: the higher the curve, the more of its members have that score."),
        ("Share below", "The share of a group whose score is at most this one, the group's distribution function."),
    ]
    return tuple(pair for pair in explained if pair[1] is not _DECISIONS or "decision_unfairness" in view.keys)


_ACCURACY = {
    "accuracy": "The share of right decisions.",
    "R2": "The share of the outcome's variance that the predictions explain: 1 is perfect, 0 no better than the mean.",
}
_UNFAIRNESS = (
    "The Kolmogorov distance: the largest difference between the groups' shares below any score, over all pairs of "
    "groups that are compared. 0 means equal distributions, 1 that the groups do not overlap at all."
)
_DECISIONS = "The largest difference between the groups' shares of positive decisions. 0 means equal shares."


def _strength(view: FrontierView, point: Point) -> str:
    texts = {row.strength: row.text for row in view.rows}
    return texts.get(point.strength, f"{point.strength:g}")


def _reaches(view: FrontierView, point: Point) -> str:
    gap = f"its {_noun(view.label(view.gap_key))} is {figure_text(point.gap(view.on))}"
    if view.accuracy_name == "accuracy":
        return f"is right in {percent_text(point.accuracy)} of cases; {gap}"
    return f"reaches an {view.label('accuracy')} of {figure_text(point.accuracy)}; {gap}"


def _against(view: FrontierView, point: Point, top: Point) -> str:
    """What a model costs and gains against the most accurate one."""
    cost, gain = top.accuracy - point.accuracy, top.gap(view.on) - point.gap(view.on)
    if cost == 0 and gain == 0:
        return "As good as the most accurate in both."
    points = view.accuracy_name == "accuracy"
    by = f"{figure_text(100 * abs(cost), digits=1)} points" if points else figure_text(abs(cost))
    price = f"{view.label('accuracy')} {by} {'higher' if cost < 0 else 'lower'}"
    share = f"{abs(gain) / top.gap(view.on):.0%}" if top.gap(view.on) > 0 else figure_text(abs(gain))
    return f"{price}, {_noun(view.label(view.gap_key))} {share} {'higher' if gain < 0 else 'lower'}."


def _noun(label: str) -> str:
    """A label in the middle of a sentence: its capital goes, unless it is an abbreviation or a name of the user's.

    >>> _noun("Unfairness of decisions"), _noun("AUC"), _noun("<b>")
    ('unfairness of decisions', 'AUC', '<b>')
    """
    return label[0].lower() + label[1:] if label[:1].isupper() and label[1:2].islower() else label
