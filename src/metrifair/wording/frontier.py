"""All sentences about a frontier: notes, marks, the summary, the choice and the glossary.

Pages, terminals and cards place them. A note has one template for its kind, whose parameters are its facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metrifair.auditing.records import ProxyRecord
from metrifair.figures.intervals import FEW, Interval
from metrifair.figures.utility import CONSTANT, NO_BETTER, Mark, Utility
from metrifair.problem.proxies import Assumption
from metrifair.tradeoff.points import Change, FrontierNote, Point  # noqa: F401  # Change: for the examples
from metrifair.wording.frontier_view import MARKS, FrontierRow, FrontierView, RowFigure, figure_name
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

_PARTS = {"training": "training rows", "validation": "validation rows", "test": "test rows"}
_SAME, _THRESHOLD = "the same for everyone", "metrifair train --choose-threshold"


def note_text(note: FrontierNote) -> str:
    """The sentences of a note; empty if its facts need no words.

    >>> note_text(FrontierNote("split", {"training": 1000, "validation": 500, "test": 500, "folds": 0}))
    '1,000 training rows, 500 validation rows, 500 test rows.'
    """
    return NOTES[note.kind](**note.facts)


def _split(training: int, validation: int, test: int, folds: int) -> str:
    if folds:
        return f"{training:,} training rows, {folds}-fold cross-validation to choose a model, {test:,} test rows."
    first = f"{training:,} training rows" if training else "Fitted models"
    return f"{first}, {validation:,} validation rows, {test:,} test rows."


def _cross_fitted(training: int, validation: int, test: int, test_folds: int, folds: int) -> str:
    chosen = f"{folds}-fold cross-validation" if folds else f"{validation:,} validation rows"
    return (
        f"All {test:,} rows are test rows, in {test_folds} folds. Models that score a fold were trained and chosen "
        f"without its rows ({training:,} training rows, {chosen}). The models to use were fitted on all rows."
    )


def _families(tried: Sequence[str], untried: Sequence[str], budget: float | None, *, trees: bool) -> str:
    texts = [f"Families tried, in this order: {'; '.join(tried)}."]
    if untried and budget is not None:
        texts.append(f"Not started within {budget:g} seconds: {'; '.join(untried)}. Set a larger budget to try them.")
    if not trees:
        texts.append(
            "LightGBM is not installed, so the frontier has no trees with the penalty. Stacks use scikit-learn's trees "
            'and cannot be saved as a model file. Install "metrifair[boosting]".'
        )
    return " ".join(texts)


def _weighted() -> str:
    return "Rows count by their sample weights. Intervals are omitted: their proof does not cover weighted samples."


def _probabilities(attribute: str, assumption: Assumption, source: str | None, *, strata: bool) -> str:
    """As audits say it."""
    assumed = assumption_sentence(ProxyRecord(attribute, assumption, source=source, strata=strata))
    return f"{assumed} Intervals of unfairness are omitted: their proof requires the group of each row."


def _clusters(clusters: int, rows: int) -> str:
    return (
        f"The {rows:,} rows form {count_text(clusters, 'cluster')}, which stay together in every split and fold. "
        "Confidence intervals treat rows as independent: they are too narrow if rows of one cluster are similar."
    )


_OPTIMISTIC = "If they describe the same people, figures on test rows are too optimistic."


def _repeated_rows(repeated: int, rows: int) -> str:
    return (
        f"{_shares(repeated, rows)} equal rows that train or select models, in all features, label and groups. "
        f"{_OPTIMISTIC} Remove duplicates, or pass ids as clusters (--cluster) to keep them together in every split."
    )


def _repeated_ids(column: str, repeated: int, rows: int) -> str:
    return (
        f"{_shares(repeated, rows)} have the same {quoted(column)} as other rows that train or select models. "
        f"{_OPTIMISTIC} Pass {quoted(column)} as clusters (--cluster) to keep them together in every split."
    )


def _shares(repeated: int, rows: int) -> str:
    return f"{repeated:,} of {rows:,} test rows ({percent_text(repeated / rows)})"


def _small_groups(groups: Sequence[Mapping[str, Any]], left_out: bool) -> str:
    small = []
    for group in groups:
        within = "" if group["within"] == "everyone" else f", {group['within']}"
        size = f"{group['rows']} in {_PARTS[group['part']]}{within}"
        small.append(f"{quoted(group['group'])} of {group['attribute']} ({size})")
    consequence = (
        f"Unfairness excludes them, and the four-fifths ratio excludes groups with fewer than {FEW} rows in all. "
        "Tables by group show them."
        if left_out
        else "There are no larger groups to compare, so that chance alone may explain the unfairness."
    )
    few = f"Fewer than {FEW} samples say little about a group: {listed(list(dict.fromkeys(small)))}."
    return f"{few} {consequence} Merge small groups, mark them as missing, or hold more rows out."


def chance_text(unfairness: float, comparisons: int = 1, unfairness_of: str = "scores") -> str:
    """The unfairness that chance alone would show.

    >>> chance_text(0.1993, 7)
    'Groups with equal distributions would show an unfairness of about 0.199 by chance alone (the largest of 7 \
comparisons). An unfairness up to it does not show that groups differ.'
    """
    about = "up to about" if unfairness_of == "decisions" else "about"
    largest = f" (the largest of {comparisons:,} comparisons)" if comparisons > 1 else ""
    return (
        f"Groups with equal distributions would show an unfairness of {about} {figure_text(unfairness)} by chance alone"
        f"{largest}. An unfairness up to it does not show that groups differ."
    )


def _overfit(
    *,
    models: int,
    trained: int,
    family: str,
    parameter: str,
    value: float,
    training: float,
    validation: float,
    test: float,
) -> str:
    at = f"{f'{family}, ' if family else ''}{parameter} {strength_texts([value])[0]}"
    return (
        f"Unfairness is significantly smaller on training rows than on others for {models} of {trained} models "
        f"(most at {at}: {figure_text(training)} on training rows, {figure_text(validation)} on validation rows, "
        f"{figure_text(test)} on test rows). {overfit_remedy(parameter)}"
    )


def overfit_remedy(parameter: str) -> str:
    """What helps against models whose fairness does not carry over to new rows."""
    turn = {"strength": ", more rows or a larger strength", "tolerance": ", more rows or a smaller tolerance"}
    return f"A simpler model{turn.get(parameter, ' or more rows')} can help."


def _constant_models(family: str, strengths: Sequence[float], constant: Sequence[float]) -> str:
    last = [value for value in strengths if value >= min(constant)]
    where = f"at strength {listed([f'{value:g}' for value in constant])}"
    if len(last) > 1 and last == list(constant):
        where = f"from strength {last[0]:g} on"
    return (
        f"{f'{family}: models' if family else 'Models'} predict {_SAME} {where} ({len(constant)} of {len(strengths)} "
        "strengths): training found nothing with a lower objective there. Use smaller strengths or longer training to "
        "see the trade-off."
    )


def _same_decisions(models: int, of: int) -> str:
    decide, their, they = ("decides", "its", "it ranks") if models == 1 else ("decide", "their", "they rank")
    return (
        f"{models} of {of} models {decide} {_SAME} at {their} threshold, however well {they} people. Equal decision "
        f"rates and a four-fifths ratio of 1 are then no sign of fairness. Choose another threshold ({_THRESHOLD})."
    )


NOTES: Mapping[str, Callable[..., str]] = {
    "split": _split,
    "cross_fitted": _cross_fitted,
    "families": _families,
    "positive_label": positive_text,
    "weighted": _weighted,
    "label_groups": lambda attribute: (
        f"The groups of {attribute} are the label in other words: scores that are right are then unfair by design."
    ),
    "missing_groups": lambda attribute, rows, of: (
        f"{attribute} is missing in {rows:,} of {of:,} rows. They are used for training, and comparisons of "
        f"{attribute} exclude them."
    ),
    "probabilities": _probabilities,
    "clusters": _clusters,
    "repeated_rows": _repeated_rows,
    "repeated_ids": _repeated_ids,
    "small_groups": _small_groups,
    "chance": chance_text,
    "overfit": _overfit,
    "constant_models": _constant_models,
    "same_decisions": _same_decisions,
    "message": lambda text: text,  # of a caller that has its own words, such as the command line
}


def mark_text(mark: Mark) -> str:
    """The meaning of a mark, with its verb.

    >>> mark_text("constant"), mark_text("not_significantly_better")
    ('decides the same for everyone', 'is not significantly better than a constant predictor')
    """
    return MARKS[mark] if mark == CONSTANT else f"is {MARKS[mark]}"


def mark_warning(utility: Utility, mark: Mark, part: str = "test") -> str:
    """A warning about a chosen model that a constant predictor could replace.

    >>> from metrifair.figures.utility import UTILITIES
    >>> mark_warning(UTILITIES["accuracy"], "constant")
    'The chosen model decides the same for everyone (on test rows): allow more unfairness, or train with other \
strengths; a utility of scores, such as AUC, may still distinguish models'
    """
    rows = _PARTS[part]
    name = noun(figure_name(utility.name))
    where = f"on {rows}" if mark == CONSTANT else f"by {name} on {rows}, within its 95 % interval"
    scores = "; a utility of scores, such as AUC, may still distinguish models" if utility.needs == "decisions" else ""
    return f"The chosen model {mark_text(mark)} ({where}): allow more unfairness, or train with other strengths{scores}"


def choice_warning(validation: Point, test: Point, utility: Utility) -> str:
    """A warning about a chosen model that a constant predictor could replace; or empty."""
    for part, point in (("test", test), ("validation", validation)):
        if mark := point.marks.get(utility.key):
            return mark_warning(utility, mark, part)
    if test.marks.get("accuracy") != CONSTANT:
        return ""
    return (
        f"The chosen model ranks people, but decides {_SAME} at its threshold (on test rows): equal decision rates are "
        f"then no sign of fairness; choose another threshold ({_THRESHOLD})"
    )


def constant_text(value: object) -> str:
    """The prediction of the constant predictor.

    >>> constant_text("yes"), constant_text(3.14159)
    ('“yes” for everyone', '3.142 for everyone')
    """
    text = f"{value:.4g}".replace("-", MINUS) if isinstance(value, float) else f"“{value}”"
    return f"{text} for everyone"


UNSCRIPTED = "This report is drawn by its own script: allow JavaScript for this file to see it."
_KOLMOGOROV = "the Kolmogorov distance, the largest difference between the groups' shares below any score"


@dataclass(frozen=True)
class Highlight:
    """A model worth a glance: a heading, the model, and one sentence about it."""

    heading: str
    point: Point
    sentence: str


def highlights(view: FrontierView) -> tuple[Highlight, ...]:
    """The most accurate model, the chosen one if there is one, and the least unfair; none if all failed.

    Models that are not significantly better than a constant are not shown as the least unfair, and named as such.

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
    entries = [Highlight(_capital(_best(view).removeprefix("the ")), top, best)]
    choice, model = view.choice, view.chosen_model
    repeated = f" {_without_folds(view, choice)}." if choice and view.fold_choices else ""
    if model is not None:
        entries.append(Highlight("Chosen", model, _against(view, model, top)))
    # A constant predictor is useless: choose the least unfair model that is better than it.
    fairest = next((point for point in view.front if not view.mark(point)), None)
    if fairest is not None:
        lower = sum(view.gap(point) < view.gap(fairest) for point in view.usable if view.mark(point))
        more = f" {count_text(lower, 'model')} with less unfairness {_are(lower)} {MARKS[NO_BETTER]}." if lower else ""
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
            sentence = f"{warning}{entry.sentence}{repeated if entry.point == model else ''}"
            merged.append(Highlight(heading, entry.point, sentence))
    return tuple(merged)


def headline(view: FrontierView) -> tuple[str, ...]:
    """The chosen model, its figures on test rows, whether they keep the limit, and whether rows can show that.

    >>> none, chosen = Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)
    >>> change = Change(none, -0.1, -0.3, {"unfairness": Interval(-0.35, -0.25)})
    >>> for sentence in headline(FrontierView([none, chosen], chosen=chosen, limit=0.2, change=change)):
    ...     print(sentence)
    Chosen: strength 1, with accuracy 0.800 and unfairness 0.100 on test rows; compared with no penalty, accuracy is \
0.100 lower and unfairness 0.300 lower (0.250 to 0.350).
    It keeps the unfairness limit of 0.2 on test rows.
    """
    if not view.front:
        return (
            f"None of the {len(view.points)} trained models can be shown: training diverged or gave no figures.",
            "A smaller learning rate or smaller strengths usually help.",
        )
    if view.choice is None:
        name = "The most accurate model" if view.key == "accuracy" else f"The best model in {view.label(view.key)}"
        unmet = f"No model has an {noun(view.label(view.gap_key))} of at most {view.limit} on validation rows."
        none = "No model has been chosen yet: set a limit with select(max_unfairness=...) or --max-unfairness."
        lines = [f"{name} {_reaches(view, view.front[-1])}.", none if view.limit is None else unmet]
    else:
        lines = [*_chosen(view, view.choice), verdict(view)]
    return tuple(filter(None, (*lines, _limit_below_chance(view))))


def _chosen(view: FrontierView, choice: Point) -> tuple[str, ...]:
    """The chosen model with its figures; with test folds, those of the model apart from those of the choice."""
    which = f"{'One model' if len(view.points) == 1 else 'Chosen'}: {_strength(view, choice)}"
    changed = f"; compared with no penalty, {text}" if (text := " and ".join(_changes(view, "is "))) else ""
    reached = " and ".join(_reached(view, view.chosen_model or choice))
    if not view.fold_choices:
        return (f"{which}, with {reached} on test rows{changed}.",)
    return (
        f"{which}, with {reached} in cross-validation, by which it was chosen.",
        f"{_without_folds(view, choice)}{changed}.",
    )


def _without_folds(view: FrontierView, choice: Point) -> str:
    """The figures of the choice, of models that were chosen without each test fold."""
    return f"Repeated without each test fold, the choice has {' and '.join(_reached(view, choice))} on test rows"


def _reached(view: FrontierView, point: Point) -> tuple[str, str]:
    """Utility and unfairness of a point."""
    return _with_interval(view, point, view.key), _with_interval(view, point, view.gap_key)


def _limit_below_chance(view: FrontierView) -> str:
    """That chance alone exceeds the limit on these rows; empty if it does not."""
    if view.limit is None or view.floor is None or view.limit >= view.floor:
        return ""
    sentence = (
        f"The limit of {view.limit:g} is below {figure_text(view.floor)}, the unfairness that groups with equal "
        "distributions would show by chance alone: on so few rows, a fair model can miss it too."
    )
    known = view.choice is not None and view.limit_confidence is not None
    return f"{sentence} The confidence accounts for chance." if known else sentence


def story(view: FrontierView) -> tuple[str, ...]:
    """Three lines: without the penalty, with it, and its cost, with 95 % intervals; none if one is missing.

    >>> none, chosen = Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)
    >>> for line in story(FrontierView([none, chosen], chosen=chosen, limit=0.2, change=Change(none, -0.1, -0.3))):
    ...     print(line)
    Without the penalty: accuracy 0.900, unfairness 0.400.
    With the penalty:    accuracy 0.800, unfairness 0.100, within the limit of 0.2.
    What it costs:       accuracy 0.100 lower, unfairness 0.300 lower.
    """
    point, change = view.choice, view.change
    if point is None or change is None:
        return ()
    before, after = (", ".join(_reached(view, model_point)) for model_point in (change.reference, point))
    limit = ""
    if view.limit is not None:
        limit = f", {'within' if view.gap(point) <= view.limit else 'above'} the limit of {view.limit:g}"
    costs = ", ".join(_changes(view, ""))
    return (
        f"Without the penalty: {before}.",
        f"With the penalty:    {after}{limit}.",
        f"What it costs:       {costs or 'nothing'}.",
    )


def _with_interval(view: FrontierView, point: Point, key: str) -> str:
    interval = RowFigure(None, point.intervals.get(key)).bounds_text
    return f"{noun(view.label(key))} {figure_text(point.figure(key))}{f' ({interval})' if interval else ''}"


def _changes(view: FrontierView, verb: str) -> list[str]:
    """By how much utility and unfairness of the chosen model differ from those without the penalty."""
    if view.change is None or view.choice == view.change.reference:
        return []
    texts = []
    for key, name in ((view.key, "utility"), (view.gap_key, "unfairness")):
        change, interval = getattr(view.change, name), view.change.intervals.get(name)
        sign, way = (-1, "lower") if change < 0 else (1, "higher")
        text = f"{noun(view.label(key))} {verb}{figure_text(abs(change))} {way}"
        if interval is not None:
            ends = sorted((sign * interval.low, sign * interval.high))
            text += f" ({interval_text(Interval(*ends), figure_text)})"
        texts.append(text)
        verb = ""
    return texts


def verdict(view: FrontierView) -> str:
    """Whether the choice keeps the limit on test rows; without a limit, among how many models it was made; or empty."""
    point = view.choice
    if point is None:
        return ""
    if view.limit is None:
        return f"Of {len(view.usable)} models it suits best on validation rows." if len(view.points) > 1 else ""
    gap, value = noun(view.label(view.gap_key)), view.gap(point)
    figures = [] if value <= view.limit else [figure_text(value)]
    if view.limit_confidence is not None:
        share = min(max(round(100 * view.limit_confidence), 1), 99)
        figures.append(f"about {share}% confidence that the population is within it")
    verb, remedy = "keeps", ""
    if value > view.limit:
        verb, remedy = "misses", ": choose with a confidence of 0.9, or a lower limit, to keep it more surely"
    details = f" ({'; '.join(figures)})" if figures else ""
    subject = "The choice" if view.fold_choices else "It"
    sentence = f"{subject} {verb} the {gap} limit of {view.limit:g} on test rows{details}{remedy}."
    interval = None if view.fold_choices or not details else point.intervals.get(view.gap_key)
    if interval is None or not value <= view.limit < interval.high:
        return sentence
    return f"{sentence} The interval is wider: it is proven for any distributions, and the confidence is approximate."


def summary(view: FrontierView) -> tuple[str, ...]:
    """The headline, then remarks on the models.

    >>> view = FrontierView([Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)])
    >>> for sentence in summary(view):
    ...     print(sentence)
    The most accurate model is right in 90.0% of cases; its unfairness is 0.400.
    No model has been chosen yet: set a limit with select(max_unfairness=...) or --max-unfairness.
    """
    return (*headline(view), *remarks(view))


def remarks(view: FrontierView) -> tuple[str, ...]:
    """Sentences behind the headline: marks of the chosen model, how it was chosen, the constant, families, failures."""
    sentences = []
    if view.choice is not None and (mark := view.choice.marks.get(view.key)):
        sentences.append(f"{mark_warning(view.utility, mark)}.")
    if view.choice is not None and view.limit is not None:
        rows = "in cross-validation" if view.fold_choices else "on validation rows"
        condition = f"with an {noun(view.label(view.gap_key))} of at most {view.limit:g} {rows}"
        sentences.append(f"The chosen model is {_best(view)}, up to noise, {condition}.")
    if view.fold_choices:
        sentences.append(f"The choice without each test fold: {_fold_choices(view)}.")
    sentences += [constant_sentence(view), families_sentence(view)]
    if view.front and (failed := sum(row.failed for row in view.rows)):
        sentences.append(
            f"{failed} of {len(view.points)} models failed; the table lists them, the plot leaves them out."
        )
    return tuple(filter(None, sentences))


def _fold_choices(view: FrontierView) -> str:
    """The strengths chosen in each test fold; of several families, each with its family and parameter."""
    texts = strength_texts(value for _, value in view.fold_choices)
    if not view.parameters:
        return f"{noun(view.label('strength'))} {listed(texts)}"
    families = [family for family, _ in view.fold_choices]
    return "; ".join(
        f"{family}, {view.parameters[family]} {text}" for family, text in zip(families, texts, strict=True)
    )


def constant_sentence(view: FrontierView) -> str:
    """Figures of the constant predictor, and how many models are not significantly better; empty if it is not known.

    >>> constant = Point(0, 0, 0.7, 0.0)
    >>> constant_sentence(FrontierView([Point(0, 0, 0.9, 0.4)], constant=constant, constant_value="yes"))
    'The constant predictor (“yes” for everyone) has accuracy 0.700 and unfairness 0.000.'
    """
    constant = view.baseline
    if constant is None:
        return ""
    value = "" if view.constant_value is None else f" ({constant_text(view.constant_value)})"
    reached = (
        f"The constant predictor{value} has {noun(view.label(view.key))} {figure_text(view.value(constant))} and "
        f"{noun(view.label(view.gap_key))} {figure_text(view.gap(constant))}"
    )
    alike = sum(bool(view.mark(point)) for point in view.usable)
    if not alike:
        return f"{reached}."
    return f"{reached}; {alike} of {len(view.usable)} models {_are(alike)} not significantly better."


def area_sentence(view: FrontierView) -> str:
    """The covered share of the possible area; empty if it is unknown.

    >>> area_sentence(FrontierView([Point(0, 0, 0.9, 0.4)], areas=(0.54, 0.78), constant=Point(0, 0, 0.6, 0.0)))
    'Area below the Pareto front: 0.540, with the constant predictor 0.780.'
    """
    if view.areas is None:
        return ""
    with_it = f", with the constant predictor {figure_text(view.areas[1])}" if view.baseline is not None else ""
    return f"Area below the Pareto front: {figure_text(view.areas[0])}{with_it}."


def overfit_sentence(view: FrontierView, row: FrontierRow) -> str:
    """That unfairness at one strength is smaller on training rows by more than chance, and what to do; or empty."""
    if not row.overfit or "training" not in row.parts:
        return ""
    return (
        f"The {noun(view.label(view.gap_key))} is significantly smaller on training rows than on others. "
        f"{overfit_remedy(view.parameter(row))}"
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
        needs = "; needs the group of each row at prediction" if any(point.needs_group for point in points) else ""
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
    overfit = "significantly less unfair on training rows" if row.overfit else ""
    return "; ".join(filter(None, (row.mark, overfit)))


def row_notes(view: FrontierView, rows: Sequence[FrontierRow]) -> tuple[str, ...]:
    """Each note of these rows once, after the rows that it belongs to, which a star marks."""
    by_text: dict[str, list[str]] = {}
    for row in rows:
        if note := row_note(row):
            by_text.setdefault(note, []).append(row.text)
    name = "" if view.parameters else f"{noun(view.label('strength'))} "
    return tuple(
        f"* {name}{('; ' if view.parameters else ', ').join(texts)}: {note}." for note, texts in by_text.items()
    )


def shown_note(view: FrontierView, shown: int) -> str:
    """How much of a frontier a short table shows, and what its unfairness is.

    >>> shown_note(FrontierView([Point(0, 0, 0.9, 0.4), Point(0, 1, 0.8, 0.1)]), 1)
    "Shown: 1 of 1 strengths, means of 2 seeds, on test rows. Unfairness is the Kolmogorov distance, the largest \
difference between the groups' shares below any score."
    """
    seeds = len({point.seed for point in view.points})
    means = f", means of {seeds} seeds" if seeds > 1 else ""
    parts = ", and in brackets on training and validation rows" if view.rows[0].parts else ""
    kinds = "models" if view.parameters else "strengths"
    return f"Shown: {shown} of {len(view.rows)} {kinds}{means}, on test rows{parts}. Unfairness is {_KOLMOGOROV}."


def interval_note(view: FrontierView, point: Point, *, resampled: bool) -> str:
    """Definitions of the unfairness of one model and of its intervals, which are ``resampled`` with test folds."""
    meaning = f"Unfairness is {_KOLMOGOROV}."
    if "unfairness" not in point.intervals:
        return f"{meaning} {_weighted()}" if not point.intervals else meaning  # a note says it of probabilities
    kind = "Wilson's" if view.accuracy_name == "accuracy" else "an approximation for many rows"
    origin = "come from resampling and are approximate" if resampled else "are proven (Dvoretzky-Kiefer-Wolfowitz)"
    return (
        f"{meaning} Its intervals, for all comparisons at once, {origin}; that of {noun(view.label('accuracy'))} is "
        f"{kind}."
    )


def _strength(view: FrontierView, point: Point) -> str:
    return f"{noun(view.label('strength'))} {view.strength_text(point)}"


def _best(view: FrontierView) -> str:
    return "the most accurate" if view.key == "accuracy" else f"the best in {noun(view.label(view.key))}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _reaches(view: FrontierView, point: Point) -> str:
    gap = f"its {noun(view.label(view.gap_key))} is {figure_text(view.gap(point))}"
    if view.key == "accuracy" and view.accuracy_name == "accuracy":
        return f"is right in {percent_text(point.accuracy)} of cases; {gap}"
    name = view.label(view.key)
    return f"reaches {'an' if name[:1] in 'AEFR' else 'a'} {noun(name)} of {figure_text(view.value(point))}; {gap}"


def _against(view: FrontierView, point: Point, top: Point) -> str:
    """Costs and gains of a model against the best one."""
    cost, gain = view.value(top) - view.value(point), view.gap(top) - view.gap(point)
    if cost == 0 and gain == 0:
        return f"As good as {_best(view)} in both."
    points = view.key == "accuracy" and view.accuracy_name == "accuracy"
    by = f"{figure_text(100 * abs(cost), digits=1)} points" if points else figure_text(abs(cost))
    price = f"{view.label(view.key)} {by} {'higher' if cost < 0 else 'lower'}"
    share = f"{abs(gain) / view.gap(top):.0%}" if view.gap(top) > 0 else figure_text(abs(gain))
    return f"{price}, {noun(view.label(view.gap_key))} {share} {'higher' if gain < 0 else 'lower'}."


def glossary(view: FrontierView) -> tuple[tuple[str, str], ...]:
    """The terms of the report with their definitions.

    >>> [word for word, _ in glossary(FrontierView([Point(0, 0, 0.9, 0.4)]))]
    ['Strength', 'Accuracy', 'Unfairness', 'Pareto front', 'Share below', 'Density']
    """
    explained = [
        (view.label("strength"), _FAMILIES if view.parameters else _PARAMETERS.get(view.label("strength"), _PARAMETER)),
        (view.label("accuracy"), _ACCURACY[view.accuracy_name]),
        *([(view.label(view.key), _UTILITY.get(view.key, "How good a model is."))] if view.key != "accuracy" else []),
        (view.label("unfairness"), _UNFAIRNESS),
        (view.label("decision_unfairness"), _DECISIONS),
        *([("Constant predictor", _CONSTANT)] if view.baseline is not None else []),
        ("Pareto front", "The best utility at each unfairness. No model lies above it."),
        *CURVES,
    ]
    return tuple(pair for pair in explained if pair[1] is not _DECISIONS or "decision_unfairness" in view.keys)


_PARAMETERS = {
    "Strength": "Weight of the unfairness penalty in training. 0 means no penalty.",
    "tolerance": "Unfairness that post-processing allows. 0 means parity.",
    "model": "The number of the model in the list of fitted models.",
}
_PARAMETER = "Value of the parameter that trades accuracy for fairness."
_FAMILIES = (
    "A family, and the value of the parameter by which it trades accuracy for fairness: of a strength 0 means none, of "
    "a tolerance 0 means parity. Where the group is needed, nothing can be predicted for rows without it."
)
_ACCURACY = {
    "accuracy": "The share of right decisions.",
    "R2": "The share of the outcome's variance that the predictions explain: 1 is perfect, 0 no better than the mean.",
}
_UTILITY = {
    "balanced_accuracy": "The share of right decisions of each class, averaged over the classes.",
    "auc": "How often a member of the class has a higher score than another: 1 is perfect, 0.5 is chance.",
    "log_loss": "Minus the logarithm of the probability of what happened, on average: less is better.",
    "brier": "The squared distance of the probabilities from what happened, on average: less is better.",
    "mean_absolute_error": "The distance of the predictions from what happened, on average: less is better.",
    "mean_squared_error": "The squared distance of the predictions from what happened, on average: less is better.",
    "expected_cost": "What the decisions cost, on average: less is better.",
}
_CONSTANT = (
    "Predicts the same for everyone: the base rate or the mean. A model that is not significantly better (by the 95 % "
    "interval of the difference) is marked."
)
_UNFAIRNESS = (
    "The Kolmogorov distance: the largest difference between the groups' shares below any score, over all pairs of "
    "groups that are compared. 0 means equal distributions, 1 that the groups do not overlap at all."
)
_DECISIONS = "The largest difference between the groups' shares of positive decisions. 0 means equal shares."
