"""A frontier as numbers and texts: rows by strength, names of figures and points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean

from metrifair.errors import DataError
from metrifair.figures.curves import Curves
from metrifair.figures.intervals import Interval
from metrifair.figures.utility import CONSTANT, NO_BETTER, UTILITIES, Utility
from metrifair.support.checks import check_known
from metrifair.tradeoff.points import Job, Point, pareto
from metrifair.tradeoff.record import FrontierRecord
from metrifair.wording.numbers import NO_NUMBER, figure_text, interval_text, noun, strength_texts
from metrifair.wording.terms import term_name

MARKS = {
    CONSTANT: "decides the same for everyone",
    NO_BETTER: "not significantly better than a constant predictor",
}

WITH_ALLOWANCE = "with_allowance"
"""The key of the figure that a choice compared with its limit."""

# unless they are the utility
_LEFT_TO_FRAMES = ("balanced_accuracy", "brier", "mean_squared_error")


@dataclass(frozen=True)
class FrontierView(FrontierRecord):
    """A frontier's record with everything else that a report on it is made of.

    Parameters
    ----------
    points
        The figures by which models were compared, one point each. Failed ones are listed, not
        drawn.
    curves
        Score distributions of the groups by strength, or by family and strength; may lack
        strengths, or be empty.
    title
        Headline of the report.
    labels
        What to call a figure, by its key: "strength", "accuracy", "unfairness", "auc" ...
    utility
        The utility: the figure that is drawn against unfairness.
    areas
        Share of the unit box that the models dominate, without and with the constant predictor.
    gaps_with_allowance
        The unfairness of each model that the choice compared with its limit; empty without one.

    Examples
    --------
    >>> view = FrontierView([Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)], groups=("a", "b"))
    >>> [row.text for row in view.rows]
    ['0', '1']
    >>> view.label("four_fifths"), view.gap_key
    ('Four-fifths ratio', 'unfairness')
    """

    points: Sequence[Point]
    curves: Mapping[float | tuple[str, float], Curves] = field(default_factory=dict)
    title: str = "Accuracy and fairness"
    labels: Mapping[str, str] = field(default_factory=dict)
    utility: Utility = UTILITIES["accuracy"]
    areas: tuple[float, float] | None = None
    gaps_with_allowance: Mapping[Job, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.points:
            raise DataError(
                "points must contain at least one Point, got none; train at least one model first"
            )
        check_known("accuracy_name", self.accuracy_name, ("accuracy", "R2"))
        check_known("unfairness_of", self.unfairness_of, ("scores", "decisions"))

    @property
    def gap_key(self) -> str:
        """Key of the unfairness that is drawn: decisions only if there are any."""
        decided = any(point.decision_unfairness is not None for point in self.points)
        return (
            "decision_unfairness" if self.unfairness_of == "decisions" and decided else "unfairness"
        )

    @property
    def key(self) -> str:
        """Key of the utility that is drawn."""
        return self.utility.key

    def value(self, point: Point) -> float:
        """The utility of a point that can be drawn."""
        figure = point.figure(self.key)
        return math.nan if figure is None else figure

    def gap(self, point: Point) -> float:
        """The unfairness of a point that is drawn."""
        return point.gap(self.unfairness_of)

    def quality(self, point: Point) -> float:
        """The utility, so that larger is better."""
        return self.utility.quality(self.value(point))

    @property
    def alternatives(self) -> tuple[Point, tuple[Point, ...]]:
        """The best model, and those that are as good, within its interval, and less unfair: the
        least unfair first.

        Models that are not significantly better than a constant are none.

        >>> best = Point(0, 0, 0.9, 0.4, intervals={"accuracy": Interval(0.86, 0.93)})
        >>> view = FrontierView([best, Point(1, 0, 0.88, 0.2), Point(2, 0, 0.8, 0.1)])
        >>> [point.strength for point in view.alternatives[1]]
        [1]
        """
        usable = [
            point for point in self.shown if not point.failed and point.figure(self.key) is not None
        ]
        usable = [point for point in usable if not self.mark(point)] or usable or list(self.shown)
        best = max(usable, key=self.quality)
        interval = best.intervals.get(self.key)
        least = self.quality(best)
        if interval is not None:
            least = min(self.utility.quality(end) for end in (interval.low, interval.high))
        candidates = [
            point
            for point in usable
            if self.quality(point) >= least and self.gap(point) < self.gap(best)
        ]
        return best, tuple(sorted(candidates, key=self.gap))

    def mark(self, point: Point) -> str:
        """How a point that a constant predictor could replace is called; empty for others."""
        return MARKS.get(point.marks.get(self.key, ""), "")

    def label(self, key: str) -> str:
        """The name of a figure."""
        if key in self.labels:
            return self.labels[key]
        if key == "strength" and self.parameters:
            return "Model"
        if key == "accuracy":
            return term_name(self.accuracy_name.lower())
        name = term_name(key)
        if name == key:  # a utility of the user's
            return key.replace("_", " ").capitalize()
        return name

    def parameter_of(self, row: FrontierRow) -> str:
        """The parameter that was varied in the family of a row, in the middle of a sentence."""
        return self.parameters.get(row.family, noun(self.label("strength")))

    def strength_text(self, point: Point) -> str:
        """The strength of a point, as its row shows it."""
        texts = (row.text for row in self.rows if row.place == point.place)
        return next(texts, strength_texts([point.strength])[0])

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        """The groups that have curves or were named, each once, in the order of their colors."""
        names = (name for curves in self.curves.values() for name in curves.cumulative)
        return tuple(dict.fromkeys([*self.groups, *names]))

    @cached_property
    def shown(self) -> tuple[Point, ...]:
        """The points as everything shows them: the chosen model has its own figures.

        >>> view = FrontierView([Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)], chosen=Point(1, 0, 0.7, 0.2))
        >>> [point.accuracy for point in view.shown]
        [0.9, 0.7]
        """
        choice = self.choice
        if choice is None:
            return tuple(self.points)
        return tuple(choice if point.job == choice.job else point for point in self.points)

    @cached_property
    def usable(self) -> tuple[Point, ...]:
        """The points that can be drawn: not failed, both figures finite."""
        return tuple(point for point in self.shown if self._drawable(point))

    def _drawable(self, point: Point) -> bool:
        return (
            not point.failed and math.isfinite(self.value(point)) and math.isfinite(self.gap(point))
        )

    @property
    def choice(self) -> Point | None:
        """The chosen model, if there is one and it can be drawn."""
        return self.chosen if self.chosen is not None and self._drawable(self.chosen) else None

    def below(self, point: Point, key: str) -> float | None:
        """The upper end of an unfairness that cannot be distinguished from 0; None for other
        figures.
        """
        if not point.is_noise or key != self.gap_key:
            return None
        interval = point.intervals.get(key)
        return self.noise if interval is None else interval.high

    def text(self, point: Point, key: str) -> str:
        """A figure of a point as it is shown, without its interval.

        >>> point = Point(1, 0, 0.8, 0.0, intervals={"unfairness": Interval(0.0, 0.062)}, is_noise=True)
        >>> FrontierView([point]).text(point, "unfairness")
        'below 0.062'
        """
        return RowFigure(point.figure(key), below=self.below(point, key)).text

    @property
    def baseline(self) -> Point | None:
        """The constant predictor, if it is known and can be drawn."""
        return (
            self.constant if self.constant is not None and self._drawable(self.constant) else None
        )

    @cached_property
    def front(self) -> tuple[Point, ...]:
        """The points no other beats, in ascending order of unfairness."""
        return pareto(self.usable, unfairness_of=self.unfairness_of, quality=self.quality)

    @cached_property
    def front_without_groups(self) -> tuple[Point, ...]:
        """The same among the models that need no group at prediction."""
        return pareto(
            [point for point in self.usable if not point.needs_group],
            unfairness_of=self.unfairness_of,
            quality=self.quality,
        )

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Keys of the figures that are shown, in the order of the columns; frames and JSON have
        all of them.
        """
        decided = any(point.decision_unfairness is not None for point in self.points)
        more = dict.fromkeys(
            key for point in self.points for key in point.more if key not in _LEFT_TO_FRAMES
        )
        order = (
            self.key,
            "accuracy",
            "unfairness",
            *(["decision_unfairness"] if decided else []),
            *more,
        )
        return tuple(dict.fromkeys(order))

    @cached_property
    def rows(self) -> tuple[FrontierRow, ...]:
        """One row per distinct strength, ascending; family by family where there are several."""
        rows: list[FrontierRow] = []
        for family in self.parameters or ("",):
            strengths = sorted({point.strength for point in self.points if point.family == family})
            texts = strength_texts(strengths)
            label = f"{family}, {self.parameters[family]} " if self.parameters else ""
            rows += (
                self._row(family, strength, f"{label}{text}")
                for strength, text in zip(strengths, texts, strict=True)
            )
        return tuple(rows)

    def _row(self, family: str, strength: float, text: str) -> FrontierRow:
        points = tuple(
            point for point in self.shown if point.strength == strength and point.family == family
        )
        usable = tuple(point for point in points if self._drawable(point))
        # of several seeds, the chosen one represents its row
        chosen = tuple(point for point in usable if point is self.choice)
        figures = {key: self._row_figure(key, chosen or usable) for key in self.keys}
        needed = [
            self.gaps_with_allowance[point.job]
            for point in chosen or usable
            if point.job in self.gaps_with_allowance
        ]
        figures[WITH_ALLOWANCE] = RowFigure(fmean(needed) if needed else None)
        marks = [kind for point in usable if (kind := point.marks.get(self.key))]
        mark = ""
        if marks:
            few = f"{len(marks)} of {len(usable)}: " if len(marks) < len(usable) else ""
            mark = few + MARKS[CONSTANT if set(marks) == {CONSTANT} else NO_BETTER]
        return FrontierRow(
            strength,
            text,
            points,
            len(points) - len(usable),
            figures,
            on_front=any(point in self.front for point in usable),
            mark=mark,
            overfit=any(point.overfit for point in usable),
            family=family,
            is_chosen=bool(chosen),
        )

    def _row_figure(self, key: str, points: Iterable[Point]) -> RowFigure:
        """The figure over the seeds of one strength; a single model keeps its own interval."""
        known = [point for point in points if point.figure(key) is not None]
        values = [value for point in known if (value := point.figure(key)) is not None]
        if not values:
            return RowFigure(None)
        ends = [end for point in known if (end := self.below(point, key)) is not None]
        below = max(ends) if len(ends) == len(known) else None
        if len(values) > 1:
            bounds = Interval(min(values), max(values))
            return RowFigure(fmean(values), bounds, over_seeds=True, below=below)
        return RowFigure(values[0], known[0].intervals.get(key), below=below)


@dataclass(frozen=True)
class RowFigure:
    """One figure at one strength: the mean over its seeds, and between which bounds it lies."""

    value: float | None
    bounds: Interval | None = None
    # the bounds are the least and the largest seed, not an interval of one model
    over_seeds: bool = False
    below: float | None = None  # of an unfairness that cannot be distinguished from 0

    @property
    def text(self) -> str:
        """The value as shown.

        >>> RowFigure(0.013, below=0.062).text
        'below 0.062'
        """
        if self.below is not None and self.value is not None:
            return f"below {figure_text(self.below)}"
        return figure_text(self.value)

    @property
    def ends(self) -> Interval | None:
        """The bounds if both are known."""
        if self.bounds is None or not math.isfinite(self.bounds.low + self.bounds.high):
            return None
        return self.bounds

    @property
    def bounds_text(self) -> str:
        """The bounds as shown; empty if there are none, or if the value names its upper one.

        >>> RowFigure(0.5, Interval(0.4, 0.6)).bounds_text
        '0.400 to 0.600'
        """
        if self.ends is None or self.below is not None:
            return ""
        return interval_text(self.ends, figure_text)


@dataclass(frozen=True)
class FrontierRow:
    """All models of one strength."""

    strength: float
    text: str
    points: tuple[Point, ...]
    failed: int
    figures: Mapping[str, RowFigure]
    on_front: bool
    # "decides the same for everyone" ...; with the number of models, where it is not all of them
    mark: str = ""
    overfit: bool = False
    family: str = ""
    is_chosen: bool = False  # its figures are those of the chosen model

    @property
    def place(self) -> float | tuple[str, float]:
        """What its points share."""
        return self.points[0].place

    @property
    def needs_group(self) -> bool:
        """Whether its models need the group to predict."""
        return any(point.needs_group for point in self.points)

    @property
    def usable(self) -> bool:
        """Whether any of its models can be shown."""
        return self.failed < len(self.points)

    @property
    def state(self) -> str:
        """How training went, in a word or two.

        >>> FrontierRow(1.0, "1", (Point(1, 0, 0.9, 0.1), Point(1, 1, 0, 0, failed=True)), 1, {}, False).state
        '1 of 2 failed'
        """
        if not self.failed:
            return "ok"
        return f"{self.failed} of {len(self.points)} failed" if self.usable else "failed"


def figure_lines(view: FrontierView, point: Point) -> tuple[tuple[str, str], ...]:
    """Name and text of everything known about one point, intervals included.

    >>> figure_lines(FrontierView([Point(0.5, 3, 0.9, 0.4)]), Point(0.5, 3, 0.9, 0.4))
    (('Strength', '0.5'), ('Seed', '3'), ('Accuracy', '0.900'), ('Unfairness', '0.400'))
    """
    figures = ((view.label(key), text) for key, text in figure_texts(view, point).items())
    group = (
        [(term_name("needs_group"), needs_group_text(point.needs_group))] if view.parameters else []
    )
    return (
        (view.label("strength"), view.strength_text(point)),
        *group,
        (view.label("seed"), str(point.seed)),
        *figures,
    )


def needs_group_text(needs_group: bool) -> str:
    """Whether a model needs the group to predict."""
    return "needed" if needs_group else "not needed"


def figure_texts(view: FrontierView, point: Point) -> dict[str, str]:
    """A point's figures as text by their keys, each with its interval where it has one.

    >>> point = Point(0.5, 3, 0.9, 0.4, intervals={"accuracy": Interval(0.85, 0.95)})
    >>> figure_texts(FrontierView([point]), point)
    {'accuracy': '0.900 (0.850 to 0.950)', 'unfairness': '0.400'}
    """
    texts = {}
    for key in view.keys:
        figure = RowFigure(
            point.figure(key), point.intervals.get(key), below=view.below(point, key)
        )
        between = "" if figure.text == NO_NUMBER else figure.bounds_text
        texts[key] = f"{figure.text} ({between})" if between else figure.text
    return texts
