"""All sentences about a frontier: notes, marks, the summary, the choice and the glossary.

Pages, terminals and cards place them. A note has one template for its kind, whose parameters are
its facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metrifair.auditing.records import ProxyRecord
from metrifair.figures.intervals import FEW, Interval
from metrifair.figures.utility import CONSTANT, NO_BETTER, Mark, Utility
from metrifair.problem.memberships import Assumption
from metrifair.problem.missing_groups import missing_groups_text
from metrifair.problem.unknown_names import MARK_AS_MISSING, unknown_name_text
from metrifair.tradeoff.goal import Goal
from metrifair.tradeoff.points import Change, FrontierNote, Point  # noqa: F401  # Change: for the examples
from metrifair.tradeoff.record import FrontierRecord
from metrifair.wording.frontier_view import (
    MARKS,
    WITH_ALLOWANCE,
    FrontierRow,
    FrontierView,
    figure_texts,
)
from metrifair.wording.glossary import CURVES
from metrifair.wording.numbers import (
    MINUS,
    count_text,
    figure_text,
    interval_text,
    listed,
    noun,
    percent_text,
    positive_text,
    quoted,
    strength_texts,
)
from metrifair.wording.proxies import assumption_sentence
from metrifair.wording.terms import TERMS, glossary_entries, term_name
from metrifair.wording.training_file import TRAINING_FILE_NOTES

# what a row of a part is called
_PARTS = {
    "all": "row",
    "training": "training row",
    "validation": "validation row",
    "test": "test row",
}
_SAME = "the same for everyone"
_THRESHOLD = "metrifair train --choose-threshold"


def note_text(note: FrontierNote) -> str:
    """The sentences of a note; empty if its facts need no words.

    >>> note_text(FrontierNote("cross_validation", {"rows": 1000, "folds": 5, "test": 0}))
    'Models are compared by 5-fold cross-validation of 1,000 rows.'
    """
    return FRONTIER_NOTES[note.kind](**note.facts)


def note_texts(record: FrontierRecord) -> list[str]:
    """The sentences of all notes of a frontier."""
    return list(filter(None, map(note_text, record.all_notes)))


def _cross_validation(rows: int, folds: int, test: int) -> str:
    compared = f"Models are compared by {folds}-fold cross-validation of {rows:,} rows."
    if not folds:
        compared = (
            f"Fitted models are compared on {rows:,} rows. If these rows trained them, the figures "
            "are too optimistic."
        )
    if not test:
        return compared
    return f"{compared} The choice did not see the {count_text(test, 'test row')}."


def _unlike_folds(family: str, parameter: str, value: float, seed: int) -> str:
    configuration = _capital(_configuration(family, parameter, value))
    if seed:
        configuration = f"{configuration}, seed {seed},"
    return (
        f"{configuration} meets the limit in "
        "cross-validation. It was passed over, because the model trained on all rows behaves "
        "differently."
    )


def _configuration(family: str, parameter: str, value: float) -> str:
    name = f"{parameter} {strength_texts([value])[0]}"
    return f"{family}, {name}" if family else name


def _families(
    tried: Sequence[str],
    untried: Sequence[str],
    budget: float | None,
    *,
    trees: bool,
    few_rows: bool = False,
) -> str:
    texts = [f"Families tried, in this order: {'; '.join(tried)}."]
    if untried and budget is not None:
        texts.append(
            f"Not started within {budget:g} seconds: {'; '.join(untried)}. Set a larger budget to "
            "try them. With a budget in seconds, the result depends on the speed of the machine."
        )
    elif untried:
        texts.append(
            f"Not tried, to save time: {'; '.join(untried)}. Name them in families to try them."
        )
    if few_rows:
        texts.append("Trees and stacks were left out: too few rows train a model.")
    if not trees:
        stacks = ""
        if any("stack" in name for name in tried):
            stacks = " Stacks use scikit-learn's trees and cannot be saved as a model file."
        texts.append(
            "LightGBM is not installed, so the frontier has no trees with the penalty."
            f'{stacks} Install "metrifair[boosting]".'
        )
    return " ".join(texts)


def _probabilities(
    attribute: str,
    assumption: Assumption,
    source: str | None,
    *,
    strata: bool,
    r2: Mapping[str, float],
) -> str:
    """As audits say it."""
    assumed = assumption_sentence(
        ProxyRecord(attribute, assumption, source=source, strata=strata, r2=r2)
    )
    return f"{assumed} Limits and choices use the weighted figures."


def _clusters(clusters: int, rows: int) -> str:
    return (
        f"The {rows:,} rows form {count_text(clusters, 'cluster')}, which stay together in every "
        "fold and resample."
    )


_OPTIMISTIC = "If they describe the same people, the figures are too optimistic."


def _group_feature(column: str, attribute: str, equal: bool, rows: int) -> str:
    verb = "names" if equal else "determines"
    return (
        f"The feature {column!r} {verb} the group of {attribute} in all {rows:,} rows that have "
        "both, so models can treat groups differently. Leave it out if decisions must not depend "
        "on the group."
    )


def _repeated_rows(repeated: int, rows: int) -> str:
    return (
        f"{_shares(repeated, rows)} equal rows of another part, in all features, label and "
        f"groups. {_OPTIMISTIC} Remove duplicates, or pass ids as clusters (--cluster) to keep "
        "them together."
    )


def _repeated_ids(column: str, repeated: int, rows: int) -> str:
    return (
        f"{_shares(repeated, rows)} have the same {quoted(column)} as rows of another part. "
        f"{_OPTIMISTIC} Pass {quoted(column)} as clusters (--cluster) to keep them together."
    )


def _shares(repeated: int, rows: int) -> str:
    return f"{repeated:,} of {rows:,} tested rows ({percent_text(repeated / rows)})"


def _small_groups(groups: Sequence[Mapping[str, Any]], left_out: bool) -> str:
    small = []
    for group in groups:
        within = "" if group["within"] == "everyone" else f", {group['within']}"
        size = f"{count_text(group['rows'], _PARTS[group['part']])}{within}"
        small.append(f"{quoted(group['group'])} of {group['attribute']} ({size})")
    consequence = (
        "There are no larger groups to compare, so that chance alone may explain the unfairness."
    )
    if left_out:
        consequence = (
            "Unfairness excludes them, and the four-fifths ratio excludes groups with fewer than "
            f"{FEW} rows in all. "
            "Tables by group show them."
        )
    few = (
        f"Fewer than {FEW} samples say little about a group: {listed(list(dict.fromkeys(small)))}."
    )
    return f"{few} {consequence} Merge small groups, or mark them as missing."


def chance_text(unfairness: float, comparisons: int = 1) -> str:
    """The unfairness that chance alone explains.

    >>> chance_text(0.1993, 7)
    'With these rows, an unfairness below 0.199 can be chance (the largest of 7 comparisons).'
    """
    largest = f" (the largest of {comparisons:,} comparisons)" if comparisons > 1 else ""
    return f"With these rows, an unfairness below {figure_text(unfairness)} can be chance{largest}."


def _overfit(
    *,
    models: int,
    trained: int,
    family: str,
    parameter: str,
    value: float,
    training: float,
    left_out: float,
) -> str:
    return (
        "Unfairness is significantly smaller on training rows than on the rows left out for "
        f"{models} of {count_text(trained, 'model')} (most at "
        f"{_configuration(family, parameter, value)}: {figure_text(training)} on training rows, "
        f"{figure_text(left_out)} on rows left out). {overfit_remedy(parameter)}"
    )


def overfit_remedy(parameter: str) -> str:
    """What helps against models whose fairness does not carry over to new rows."""
    turn = {
        "strength": ", more rows or a larger strength",
        "tolerance": ", more rows or a smaller tolerance",
    }
    return f"A simpler model{turn.get(parameter, ' or more rows')} can help."


def _constant_models(family: str, strengths: Sequence[float], constant: Sequence[float]) -> str:
    last = [value for value in strengths if value >= min(constant)]
    where = f"at strength {listed([f'{value:g}' for value in constant])}"
    if len(last) > 1 and last == list(constant):
        where = f"from strength {last[0]:g} on"
    who = f"{family}: {where}" if family else where[:1].upper() + where[1:]
    return f"{who}, models are constant. Use smaller strengths to see the trade-off."


def _same_decisions(models: int, of: int) -> str:
    decide, their, they = (
        ("decides", "its", "it ranks") if models == 1 else ("decide", "their", "they rank")
    )
    return (
        f"{models} of {count_text(of, 'model')} {decide} {_SAME} at {their} threshold, however "
        f"well {they} people. "
        "Equal decision rates and a four-fifths ratio of 1 are then no sign of fairness. Choose "
        "another threshold "
        f"({_THRESHOLD})."
    )


FRONTIER_NOTES: Mapping[str, Callable[..., str]] = {
    "cross_validation": _cross_validation,
    "unlike_folds": _unlike_folds,
    "only_unlike_folds": lambda: (
        "The model trained on all rows behaves differently from those of the folds, so its "
        "figures may differ from these. Use fewer folds, or merge small groups."
    ),
    "families": _families,
    "positive_label": positive_text,
    "weighted": lambda: "Rows count by their sample weights.",
    "label_groups": lambda attribute: (
        f"The groups of {attribute} copy the label: correct scores are then unfair by design."
    ),
    "unknown_name": lambda attribute, group, rows, of: (
        f"{unknown_name_text(attribute, group, rows, of)} It is compared as a group. "
        f"{MARK_AS_MISSING}"
    ),
    "missing_groups": missing_groups_text,
    "probabilities": _probabilities,
    "clusters": _clusters,
    "repeated_rows": _repeated_rows,
    "group_feature": _group_feature,
    "repeated_ids": _repeated_ids,
    "small_groups": _small_groups,
    "chance": chance_text,
    "overfit": _overfit,
    "constant_models": _constant_models,
    "same_decisions": _same_decisions,
    **TRAINING_FILE_NOTES,
}


def mark_text(mark: Mark) -> str:
    """The meaning of a mark, with its verb.

    >>> mark_text("constant"), mark_text("not_significantly_better")
    ('decides the same for everyone', 'is not significantly better than a constant predictor')
    """
    return MARKS[mark] if mark == CONSTANT else f"is {MARKS[mark]}"


def mark_warning(utility: Utility, mark: Mark) -> str:
    """A warning about a chosen model that a constant predictor could replace.

    >>> from metrifair.figures.utility import UTILITIES
    >>> mark_warning(UTILITIES["accuracy"], "constant")
    'The chosen model decides the same for everyone: allow more unfairness, or train with other strengths; a utility \
of scores, such as AUC, may still distinguish models'
    """
    measure = ""
    if mark != CONSTANT:
        measure = f" (by {noun(term_name(utility.name))}, within its 95 % interval)"
    scores = ""
    if utility.needs == "decisions":
        scores = "; a utility of scores, such as AUC, may still distinguish models"
    return (
        f"The chosen model {mark_text(mark)}{measure}: allow more unfairness, or train with other "
        f"strengths{scores}"
    )


def choice_warning(chosen: Point, utility: Utility) -> str:
    """A warning about a chosen model that a constant predictor could replace; or empty."""
    if mark := chosen.marks.get(utility.key):
        return mark_warning(utility, mark)
    if chosen.marks.get("accuracy") != CONSTANT:
        return ""
    return (
        f"The chosen model ranks people, but decides {_SAME} at its threshold: equal decision "
        f"rates are then no sign of fairness; choose another threshold ({_THRESHOLD})"
    )


def constant_text(value: object) -> str:
    """The prediction of the constant predictor.

    >>> constant_text("yes"), constant_text(3.14159)
    ('“yes” for everyone', '3.142 for everyone')
    """
    text = f"{value:.4g}".replace("-", MINUS) if isinstance(value, float) else f"“{value}”"
    return f"{text} for everyone"


UNSCRIPTED = "This report is drawn by its own script: allow JavaScript for this file to see it."
_KOLMOGOROV = (
    "the largest difference between the groups' shares at or above a score, over all scores"
)


@dataclass(frozen=True)
class Highlight:
    """A model worth a glance: a heading, the model, and one sentence about it."""

    heading: str
    point: Point
    sentence: str


def highlights(view: FrontierView) -> tuple[Highlight, ...]:
    """The most accurate model, the chosen one if there is one, and the least unfair; none if all
    failed.

    Models that are not significantly better than a constant are not shown as the least unfair, and
    named as such.

    >>> points = [Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)]
    >>> for highlight in highlights(FrontierView(points, chosen=points[1], goal=Goal(0.2))):
    ...     print(f"{highlight.heading}: {highlight.sentence}")
    Most accurate: The best of 2 models in accuracy.
    Chosen, least unfair: Within the limit of 0.2.
    """
    if not view.front:
        return ()
    top = view.front[-1]
    count = len(view.usable)
    best = "The only model."
    if count > 1:
        best = f"The best of {count} models in {noun(view.label(view.key))}."
    entries = [Highlight(_capital(_best(view).removeprefix("the ")), top, best)]
    choice = view.choice
    if choice is not None:
        entries.append(
            Highlight("Chosen", choice, verdict(view) or _cost(view) or _against(view, choice, top))
        )
    # A constant predictor is useless: choose the least unfair model that is better than it.
    fairest = next((point for point in view.front if not view.mark(point)), None)
    if fairest is not None:
        lower = sum(
            view.gap(point) < view.gap(fairest) for point in view.usable if view.mark(point)
        )
        more = ""
        if lower:
            more = f" {count_text(lower, 'model')} with less unfairness {_are(lower)} {MARKS[NO_BETTER]}."
        entries.append(Highlight("Least unfair", fairest, _against(view, fairest, top) + more))
    # A model with several highlights is shown once, under all its headings.
    merged: list[Highlight] = []
    for entry in entries:
        first = next(other for other in entries if other.point == entry.point)
        if entry is first:
            headings = [other.heading for other in entries if other.point == entry.point]
            heading = ", ".join([headings[0], *map(noun, headings[1:])])
            mark = entry.point.marks.get(view.key)
            warning = f"{_capital(mark_text(mark))}. " if mark else ""
            merged.append(Highlight(heading, entry.point, f"{warning}{entry.sentence}"))
    return tuple(merged)


def headline(view: FrontierView) -> tuple[str, ...]:
    """The chosen model with its figures, what it costs, and whether it keeps the limit.

    >>> none, chosen = Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)
    >>> change = Change(none, -0.1, -0.3, {"unfairness": Interval(-0.35, -0.25)})
    >>> for sentence in headline(FrontierView([none, chosen], chosen=chosen, goal=Goal(0.2), change=change)):
    ...     print(sentence)
    Chosen: strength 1. Expected on new data: accuracy 0.800, unfairness 0.100.
    Compared with no penalty: accuracy 0.100 lower, unfairness 0.300 lower (0.250 to 0.350).
    Within the limit of 0.2.
    """
    if not view.front:
        return (
            (
                f"None of the {len(view.points)} trained models can be shown: training diverged or "
                "gave no figures."
            ),
            "A smaller learning rate or smaller strengths usually help.",
        )
    if view.choice is None:
        none = "No model has been chosen yet. Choose how much unfairness you accept."
        best = f"The best model in {view.label(view.key)}"
        if view.key == "accuracy":
            best = "The most accurate model"
        return f"{best} {_reaches(view, view.front[-1])}.", unmet_sentence(view) or none
    lines = [_chosen(view, view.choice), _cost(view), verdict(view)]
    if view.unmet is not None:
        lines.append(f"{unmet_sentence(view)} The earlier choice remains.")
    return tuple(filter(None, lines))


def named_places(view: FrontierView) -> set[float | tuple[str, float]]:
    """The places of the models that the headline names: the choice and the model without the
    penalty, or the best.
    """
    if view.choice is None:
        return {point.place for point in view.front[-1:]}
    reference = [] if view.change is None else [view.change.reference.place]
    return {view.choice.place, *reference}


def unmet_sentence(view: FrontierView) -> str:
    """What was asked last, if no model meets it; empty if the last request was met.

    >>> points = [Point(0, 0, 0.9, 0.088), Point(0, 0, 0.9, 0.4, family="moved", needs_group=True)]
    >>> unmet_sentence(FrontierView(points, unmet=Goal(max_unfairness=0.25, needs_group=True)))
    'No model that needs the group has an unfairness of at most 0.25.'
    """
    goal = view.unmet
    if goal is None:
        return ""
    if goal.needs_group is not None and all(
        point.needs_group != goal.needs_group for point in view.points
    ):
        return f"No model of this frontier {_GROUP[goal.needs_group]}."
    if _cannot_be_verified(view, goal):
        return _unverified(view, goal)
    return f"No model{_which(goal)} has {_condition(view, goal)}."


_GROUP = {True: "needs the group", False: "predicts without the group"}


def _which(goal: Goal) -> str:
    """The models among which the goal chooses; empty for all."""
    return "" if goal.needs_group is None else f" that {_GROUP[goal.needs_group]}"


def _condition(view: FrontierView, goal: Goal) -> str:
    """What a model must have to meet the goal."""
    if goal.max_unfairness is None:
        name = noun(view.label("accuracy"))
        return f"{_article(name)} {name} of at least {goal.min_accuracy:g}"
    gap = noun(view.label(view.gap_key))
    return f"{_article(gap)} {gap} of at most {goal.max_unfairness:g}{_confidence(goal)}"


def _confidence(goal: Goal) -> str:
    return "" if goal.confidence is None else f" with a confidence of {goal.confidence:g}"


def _cannot_be_verified(view: FrontierView, goal: Goal) -> bool:
    """Whether the limit is below what these rows can distinguish from 0."""
    limit = goal.max_unfairness
    return limit is not None and view.noise is not None and limit < view.noise


def _unverified(view: FrontierView, goal: Goal) -> str:
    return (
        f"A limit of {goal.max_unfairness:g} cannot be verified with these rows: equal groups can "
        f"differ by {figure_text(view.noise)} by chance."
    )


def page_headline(view: FrontierView) -> str:
    """The answer of a page: the chosen model with one pair of figures, without their intervals.

    >>> none, chosen = Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)
    >>> page_headline(FrontierView([none, chosen], chosen=chosen))
    'Chosen: strength 1. Expected on new data: accuracy 0.800, unfairness 0.100.'
    """
    if view.choice is None:
        return headline(view)[0]
    figures = [
        f"{noun(view.label(key))} {view.text(view.choice, key)}" for key in (view.key, view.gap_key)
    ]
    return f"{_choice_name(view, view.choice)}: {', '.join(figures)}."


def _chosen(view: FrontierView, choice: Point) -> str:
    """The chosen model with its figures."""
    return f"{_choice_name(view, choice)}: {', '.join(_reached(view, choice))}."


def _choice_name(view: FrontierView, choice: Point) -> str:
    """The chosen model, and the rows that its figures are about."""
    model = _model(view, choice)
    if choice.marks.get(view.key) == CONSTANT:
        model = f"{model}, a constant predictor"
    first = f"Chosen: {model}"
    if view.goal is None and len(view.points) == 1:
        first = f"Trained: {model}"
    if view.is_best_effort and view.goal is not None:
        first = f"{_effort(view, view.goal)}: {model}"
    where = "Expected on new data"
    if view.test_rows:
        where = f"On {count_text(view.test_rows, 'test row')}"
    return f"{first}. {where}"


def _effort(view: FrontierView, goal: Goal) -> str:
    """Why the chosen model is a best effort."""
    if _cannot_be_verified(view, goal):
        return f"{_unverified(view, goal)} Chosen as a best effort"
    return f"No model{_which(goal)} has {_condition(view, goal)}. The least unfair one is chosen"


def _model(view: FrontierView, point: Point) -> str:
    """A model by its strength; of several families, by the family too."""
    if view.parameters:
        return view.strength_text(point)
    return f"{noun(view.label('strength'))} {view.strength_text(point)}"


def _cost(view: FrontierView) -> str:
    changes = ", ".join(_changes(view))
    return f"Compared with no penalty: {changes}." if changes else ""


def compared_note(view: FrontierView) -> str:
    """Which figures the models that are not chosen have; empty without a choice.

    >>> points = [Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)]
    >>> print(compared_note(FrontierView(points, chosen=points[1])))
    Only the chosen model's figures are corrected for choosing the best of many; the others look too good.
    """
    if view.choice is None or len(view.points) < 2:
        return ""
    return (
        "Only the chosen model's figures are corrected for choosing the best of many; the others "
        "look too good."
    )


def allowance_note(view: FrontierView) -> str:
    """Which figure the choice compared with its limit; empty without a choice within a limit."""
    if not view.gaps_with_allowance or view.limit is None:
        return ""
    return "The limit applies to the unfairness plus an allowance for chance."


def _reached(view: FrontierView, point: Point) -> tuple[str, str]:
    """Utility and unfairness of a point."""
    return _with_interval(view, point, view.key), _with_interval(view, point, view.gap_key)


def _with_interval(view: FrontierView, point: Point, key: str) -> str:
    """The name of a figure, and the figure with its interval."""
    name = noun(view.label(key))
    if view.below(point, key) is None:
        return f"{name} {figure_texts(view, point)[key]}"
    return f"{name} {view.text(point, key)} (not distinguishable from 0 with these rows)"


def _has_cost(view: FrontierView) -> bool:
    """Whether the chosen model has a penalty, and the same model without one is known."""
    if view.choice is None or view.change is None:
        return False
    return view.choice.job != view.change.reference.job


def _differences(view: FrontierView) -> tuple[str, str]:
    """By how much utility and unfairness of the chosen model differ from those without the
    penalty.
    """
    change = view.change
    assert change is not None
    assert view.choice is not None
    utility = _difference(change.utility, change.intervals.get("utility"))
    unfairness = _difference(
        change.unfairness,
        change.intervals.get("unfairness"),
        only_ends=view.below(view.choice, view.gap_key) is not None,
    )
    return utility, unfairness


def _difference(change: float, interval: Interval | None, *, only_ends: bool = False) -> str:
    """A difference with its interval; ``only_ends`` where its value is not known."""
    sign = -1 if change < 0 else 1
    way = "lower" if change < 0 else "higher"
    if interval is None:
        return f"{figure_text(abs(change))} {way}"
    ends = sorted((sign * interval.low, sign * interval.high))
    between = interval_text(Interval(*ends), figure_text)
    return f"{between} {way}" if only_ends else f"{figure_text(abs(change))} {way} ({between})"


def _changes(view: FrontierView) -> list[str]:
    """The differences with the names of the figures; none if the chosen model has no penalty."""
    if not _has_cost(view):
        return []
    utility, unfairness = _differences(view)
    return [
        f"{noun(view.label(view.key))} {utility}",
        f"{noun(view.label(view.gap_key))} {unfairness}",
    ]


def verdict(view: FrontierView) -> str:
    """Whether the chosen model keeps the limit; empty without a limit, and for a best effort,
    which the headline names.

    >>> points = [Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)]
    >>> verdict(FrontierView(points, chosen=points[1], goal=Goal(0.2, confidence=0.9)))
    'Within the limit of 0.2 with a confidence of 0.9.'
    """
    goal = view.goal
    if view.choice is None or goal is None or view.is_best_effort:
        return ""
    if goal.max_unfairness is None:
        return f"It is the least unfair model with {_condition(view, goal)}, up to noise."
    return _limit_verdict(view, view.choice, goal.max_unfairness, _confidence(goal))


def _limit_verdict(view: FrontierView, choice: Point, limit: float, confidence: str) -> str:
    """Whether the chosen model keeps a limit of unfairness."""
    gap = noun(view.label(view.gap_key))
    where = " on the test rows" if view.test_rows else ""
    if view.gap(choice) > limit:
        exceeded = f"It exceeds the {gap} limit of {limit:g}{where}"
        if not view.test_rows:
            exceeded = (
                f"It was within the {gap} limit of {limit:g} when models were compared, but is "
                "expected to exceed it"
            )
        return (
            f"{exceeded}: choose with a confidence of 0.9, or a lower limit, to keep it more "
            "surely."
        )
    kept = f"Within the limit of {limit:g}{where}{confidence}"
    interval = choice.intervals.get(view.gap_key)
    if confidence or interval is None or interval.high <= limit:
        return f"{kept}."
    return f"{kept}; the true value may be above it."


def summary(view: FrontierView) -> tuple[str, ...]:
    """The headline, then remarks on the models.

    >>> view = FrontierView([Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)])
    >>> for sentence in summary(view):
    ...     print(sentence)
    The most accurate model is right in 90.0% of cases; its unfairness is 0.400.
    No model has been chosen yet. Choose how much unfairness you accept.
    """
    return (*headline(view), *remarks(view))


def remarks(view: FrontierView) -> tuple[str, ...]:
    """Sentences behind the headline: marks of the chosen model, the constant, families,
    failures.
    """
    sentences = []
    if view.choice is not None and (mark := view.choice.marks.get(view.key)):
        sentences.append(f"{mark_warning(view.utility, mark)}.")
    sentences += [constant_sentence(view), families_sentence(view)]
    if view.front and (failed := sum(row.failed for row in view.rows)):
        models = count_text(len(view.points), "model")
        sentences.append(
            f"{failed} of {models} failed; the table lists them, the plot leaves them out."
        )
    return tuple(filter(None, sentences))


def constant_sentence(view: FrontierView) -> str:
    """Figures of the constant predictor, and how many models are not significantly better; empty if
    it is not known.

    >>> constant = Point(0, 0, 0.7, 0.0)
    >>> constant_sentence(FrontierView([Point(0, 0, 0.9, 0.4)], constant=constant, constant_value="yes"))
    'The constant predictor (“yes” for everyone) has accuracy 0.700 and unfairness 0.000.'
    """
    constant = view.baseline
    if constant is None:
        return ""
    value = "" if view.constant_value is None else f" ({constant_text(view.constant_value)})"
    reached = (
        f"The constant predictor{value} has {noun(view.label(view.key))} "
        f"{figure_text(view.value(constant))} and "
        f"{noun(view.label(view.gap_key))} {figure_text(view.gap(constant))}"
    )
    alike = sum(bool(view.mark(point)) for point in view.usable)
    if not alike:
        return f"{reached}."
    return f"{reached}; {alike} of {count_text(len(view.usable), 'model')} {_are(alike)} not significantly better."


def area_sentence(view: FrontierView) -> str:
    """The covered share of the possible area; empty if it is unknown.

    >>> area_sentence(FrontierView([Point(0, 0, 0.9, 0.4)], areas=(0.54, 0.78), constant=Point(0, 0, 0.6, 0.0)))
    'Area below the Pareto front: 0.540, with the constant predictor 0.780.'
    """
    if view.areas is None:
        return ""
    with_it = ""
    if view.baseline is not None:
        with_it = f", with the constant predictor {figure_text(view.areas[1])}"
    return f"Area below the Pareto front: {figure_text(view.areas[0])}{with_it}."


def overfit_sentence(view: FrontierView, row: FrontierRow) -> str:
    """That unfairness at one strength is smaller on training rows by more than chance, and what
    to do; or empty.
    """
    if not row.overfit:
        return ""
    return (
        f"The {noun(view.label(view.gap_key))} is significantly smaller on training rows than on "
        f"others. {overfit_remedy(view.parameter_of(row))}"
    )


def families_sentence(view: FrontierView) -> str:
    """Which families need the group at prediction, and which do not; empty if there is one family.

    >>> points = [Point(0, 0, 0.9, 0.4, family="linear"), Point(0, 0, 0.9, 0.1, family="moved", needs_group=True)]
    >>> families_sentence(FrontierView(points, parameters={"linear": "strength", "moved": "tolerance"}))
    'Families: linear (1 model), moved (1 model; needs the group of each row at prediction).'
    """
    parts = []
    for family in view.parameters:
        points = [point for point in view.points if point.family == family]
        needs = ""
        if any(point.needs_group for point in points):
            needs = "; needs the group of each row at prediction"
        parts.append(f"{family} ({count_text(len(points), 'model')}{needs})")
    return f"Families: {', '.join(parts)}." if parts else ""


def curve_notes(view: FrontierView, *, gap_differs: bool) -> tuple[str, ...]:
    """What the score distributions on a page are of."""
    notes = ["Shown for one of the seeds."] if any(len(row.points) > 1 for row in view.rows) else []
    if gap_differs:
        notes.append("This gap can differ from the unfairness, which has comparisons of its own.")
    return tuple(notes)


def row_note(row: FrontierRow) -> str:
    """The remark of a table on a strength."""
    overfit = "overfitted" if row.overfit else ""
    return "; ".join(filter(None, (row.mark, overfit)))


def row_notes(view: FrontierView, rows: Sequence[FrontierRow]) -> tuple[str, ...]:
    """Each note of these rows once, after the rows that it belongs to, which a star marks."""
    by_text: dict[str, list[str]] = {}
    for row in rows:
        if note := row_note(row):
            by_text.setdefault(note, []).append(row.text)
    name = "" if view.parameters else f"{noun(view.label('strength'))} "
    return tuple(
        f"* {name}{('; ' if view.parameters else ', ').join(texts)}: {note}."
        for note, texts in by_text.items()
    )


def shown_note(view: FrontierView, shown: int) -> str:
    """How much of a frontier a short table shows, and what its figures are.

    >>> shown_note(FrontierView([Point(0, 0, 0.9, 0.4), Point(0, 1, 0.8, 0.1)]), 1)
    "Means of 2 seeds. Unfairness is the largest difference between the groups' shares at or above a score, over all \
scores."
    """
    sentences = [f"Unfairness is {_KOLMOGOROV}.", compared_note(view), allowance_note(view)]
    if (seeds := len({point.seed for point in view.points})) > 1:
        sentences.insert(0, f"Means of {seeds} seeds.")
    if shown < len(view.rows):
        total = count_text(len(view.rows), "model" if view.parameters else "strength")
        sentences.insert(0, f"Shown: {shown} of {total}.")
    return " ".join(filter(None, sentences))


def _best(view: FrontierView) -> str:
    if view.key == "accuracy":
        return "the most accurate"
    return f"the best in {noun(view.label(view.key))}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _article(name: str) -> str:
    """The indefinite article of a figure's name: an accuracy, an R², a Brier score."""
    if name[:1].isupper():
        return "an" if name[:1] in "AEFR" else "a"
    return "an" if name[:1] in "aeiou" else "a"


def _reaches(view: FrontierView, point: Point) -> str:
    gap = f"its {noun(view.label(view.gap_key))} is {view.text(point, view.gap_key)}"
    if view.key == "accuracy" and view.accuracy_name == "accuracy":
        return f"is right in {percent_text(point.accuracy)} of cases; {gap}"
    name = view.label(view.key)
    return f"reaches {_article(name)} {noun(name)} of {figure_text(view.value(point))}; {gap}"


def _against(view: FrontierView, point: Point, top: Point) -> str:
    """Costs and gains of a model against the best one."""
    cost = view.value(top) - view.value(point)
    gain = view.gap(top) - view.gap(point)
    if cost == 0 and gain == 0:
        return f"As good as {_best(view)} in both."
    points = view.key == "accuracy" and view.accuracy_name == "accuracy"
    by = f"{figure_text(100 * abs(cost), digits=1)} points" if points else figure_text(abs(cost))
    price = f"{view.label(view.key)} {by} {'higher' if cost < 0 else 'lower'}"
    name = noun(view.label(view.gap_key))
    if view.below(point, view.gap_key) is not None:
        return f"{price}, {name} not distinguishable from 0."
    share = f"{abs(gain) / view.gap(top):.0%}" if view.gap(top) > 0 else figure_text(abs(gain))
    return f"{price}, {name} {share} {'higher' if gain < 0 else 'lower'}."


def glossary(view: FrontierView) -> tuple[tuple[str, str], ...]:
    """The terms of the report with their definitions.

    >>> [word for word, _ in glossary(FrontierView([Point(0, 0, 0.9, 0.4)]))]
    ['Strength', 'Accuracy', 'Unfairness', 'Pareto front', 'Share below', 'Density']
    """
    shown = ("accuracy", view.key, "unfairness", "decision_unfairness")
    keys = [key for key in dict.fromkeys(shown) if key in view.keys]
    parameter = view.label("strength")
    about = _FAMILIES if view.parameters else _PARAMETERS.get(parameter, _PARAMETER)
    terms = []
    if view.gaps_with_allowance:
        terms.append(WITH_ALLOWANCE)
    if view.baseline is not None:
        terms.append("constant")
    terms.append("pareto")
    return (
        (parameter, about),
        *((view.label(key), _figure_meaning(view, key)) for key in keys),
        *glossary_entries(*terms),
        *CURVES,
    )


def _figure_meaning(view: FrontierView, key: str) -> str:
    """The definition of a figure; that of a utility of the user's is not known."""
    term = TERMS.get(view.accuracy_name.lower() if key == "accuracy" else key)
    return term.about if term is not None and term.about else "How good a model is."


_PARAMETERS = {
    term_name("strength"): "Weight of the unfairness penalty in training. 0 means no penalty; "
    "at 1, a gap of 0.1 at every score costs as much as 0.02 of log loss.",
    "tolerance": "Unfairness that post-processing allows. 0 means parity.",
    "model": "The number of the model in the list of fitted models.",
}
_PARAMETER = "Value of the parameter that trades accuracy for fairness."
_FAMILIES = (
    "A family, and the value of the parameter by which it trades accuracy for fairness: of a "
    "strength 0 means none, of "
    "a tolerance 0 means parity. Where the group is needed, nothing can be predicted for rows "
    "without it."
)
