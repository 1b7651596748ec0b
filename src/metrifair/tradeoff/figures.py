"""What a frontier was made of, while it is in memory, and what it reached: points, Pareto line and area; as a table, a
page and a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from metrifair.errors import DataError
from metrifair.figures.curves import Curves
from metrifair.figures.measures import Predictions
from metrifair.figures.utility import UTILITIES, Utility, rivals
from metrifair.problem.tables import Backend, Column, columns, frame
from metrifair.report.frontier.page import frontier_chart, frontier_html, save_picture
from metrifair.report.frontier.view import FrontierView
from metrifair.report.html import framed, write_html
from metrifair.support.provenance import Provenance
from metrifair.tradeoff.evaluate import Judge, predictions, worth_of
from metrifair.tradeoff.ledger import Job, Outcome  # Job: for the examples
from metrifair.tradeoff.points import Point, area, pareto
from metrifair.tradeoff.split import HeldOut, Rows
from metrifair.tradeoff.sweep import Family, RowsToTrain, fitted_at


@dataclass(frozen=True, eq=False)
class Source:
    """Rows, and the families that were trained on some of them."""

    judge: Judge
    test: Rows  # of the table, by number from 0
    families: tuple[Family, ...] = ()  # none where fitted models were handed over
    table: RowsToTrain | None = None  # with all its rows

    def measured(self, outcome: Outcome, utility: Utility) -> Outcome:
        """The outcome with one more utility."""
        if outcome.model is None or outcome.validation.failed:
            return outcome
        base = self.judge.training or self.judge.choosing
        against = rivals(base.problem, utility, X=base.X)[-1:]

        def with_it(own: Point, found: Predictions | None, part: HeldOut) -> Point:
            if found is None:
                return own
            worth = worth_of(found, part, against)
            return replace(
                own,
                more={**own.more, **worth.values},
                intervals={**own.intervals, **worth.intervals},
                errors={**own.errors, **worth.errors},
                marks={**own.marks, **worth.marks},
            )

        return replace(
            outcome,
            validation=with_it(outcome.validation, self.judge.seen(outcome.model, outcome.job), self.judge.choosing),
            test=with_it(outcome.test, predictions(outcome.model, self.judge.judging), self.judge.judging),
        )

    def held_out(self, model: Any) -> dict[str, Column]:
        """What a model says of the test rows: their numbers, groups, labels, predictions and probabilities."""
        part = self.judge.judging
        found = predictions(model, part)
        return {"row": self.test, **held_out_columns(found, part)}

    def refitted(self, job: Job) -> Any:
        """The job's estimator at its value and seed, trained on all rows."""
        if not self.families or self.table is None:
            raise DataError("fitted models were handed over, and nothing is known of how to train them")
        family = next(one for one in self.families if one.name == job.family)
        return fitted_at(family.estimator, family.parameter, job, self.table)


def held_out_columns(found: Predictions, part: HeldOut) -> dict[str, Column]:
    """Groups, labels and predictions of rows that a model was not trained on, by name; what ``audit`` asks for."""
    scheme = part.problem.scheme
    named: dict[str, Column] = {}

    def add(name: str, column: Column) -> None:
        while name in named:  # an attribute may have this name
            name += "'"
        named[name] = column

    for name, column in columns("sensitive_features", part.sensitive_features).items():
        add(name, column)
    add("label", np.asarray(part.problem.values))
    classes = np.asarray(scheme.classes)
    add("prediction", classes[found.decision] if scheme.classes else found.score)
    if found.kind == "probability":
        if found.score.ndim == 1:
            add("probability", found.score)
        else:
            for place, label in enumerate(scheme.classes):
                add(f"probability of {label}", found.score[:, place])
    elif found.kind == "output":
        add("score", found.score)
    return named


@dataclass(eq=False)
class FrontierFigures:
    """What a sweep reached, and how it is shown; :class:`metrifair.Frontier` adds the choice."""

    outcomes: Sequence[Outcome]
    on: Literal["scores", "decisions"]
    accuracy_name: str
    groups: tuple[str, ...]
    sizes: dict[str, int]
    notes: tuple[str, ...] = ()
    comparisons: int = 1
    parameter: str = "strength"
    floor: float | None = None
    small: str = ""
    utility: Utility = UTILITIES["accuracy"]
    constant: Point | None = None
    constant_text: str = ""
    tried: int | None = None
    source: Source | None = None
    knobs: dict[str, str] = field(default_factory=dict)
    library: Backend | None = None  # of the data frames that were given
    provenance: Provenance = field(default_factory=Provenance)
    chosen: Point | None = field(default=None, init=False)
    limit: float | None = field(default=None, init=False)
    chosen_by: Utility | None = field(default=None, init=False)
    certified: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.accuracy_name == "R2" and self.utility.name == "accuracy":
            self.utility = UTILITIES["r2"]

    @property
    def points(self) -> tuple[Point, ...]:
        """What each model reaches on test data."""
        return tuple(outcome.test for outcome in self.outcomes)

    @property
    def validation_points(self) -> tuple[Point, ...]:
        """What each model reaches on validation data."""
        return tuple(outcome.validation for outcome in self.outcomes)

    @property
    def training_points(self) -> tuple[Point | None, ...]:
        """What each model reaches on the rows that it was trained on; None where a fitted model was handed over."""
        return tuple(outcome.training for outcome in self.outcomes)

    @property
    def models(self) -> tuple[Any, ...]:
        """The fitted models; None where training failed."""
        return tuple(outcome.model for outcome in self.outcomes)

    @property
    def pareto(self) -> tuple[Point, ...]:
        """The test points that no other beats."""
        return pareto(self.points, on=self.on, worth=self._share)

    @property
    def area(self) -> float:
        """Share of the unit box that the test points dominate; of a loss, what it saves of the constant model's."""
        return area(self.points, on=self.on, worth=self._share)

    @property
    def area_with_constant(self) -> float:
        """The same, with the constant model as one of the points."""
        constant = () if self.constant is None else (self.constant,)
        return area((*self.points, *constant), on=self.on, worth=self._share)

    def _share(self, point: Point) -> float:
        own = self.utility
        return own.share(point.figure(own.name), None if self.constant is None else self.constant.figure(own.name))

    def view(self, title: str | None = None) -> FrontierView:
        """What the pictures and the page show: one seed's distributions for each strength.

        Parameters
        ----------
        title : str, default=None
            Headline of the report; by default that of ``provenance``, or "Accuracy and fairness".

        Returns
        -------
        FrontierView
            Numbers and texts, ready to be drawn.
        """
        curves: dict[float | tuple[str, float], Curves] = {}
        for outcome in self.outcomes:
            if outcome.curves is not None:
                curves.setdefault(outcome.test.place, outcome.curves)
        own, constant, text = self.chosen_by or self.utility, self.constant, self.constant_text
        if self.source is not None and own is not self.utility:
            constant, text = self.source.judge.constant(own)
        return FrontierView(
            self.points,
            curves,
            self.chosen,
            title or self.provenance.title or "Accuracy and fairness",
            self.accuracy_name,
            self.on,
            self.groups,
            self.notes,
            {} if self.parameter == "strength" else {"strength": self.parameter},
            knobs=self.knobs,
            floor=self.floor,
            limit=self.limit,
            utility=own,
            constant=constant,
            constant_text=text,
            areas=(self.area, self.area_with_constant),
            training=self.training_points,
            validation=self.validation_points,
            provenance=self.provenance,
        )

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The test points as a data frame, one row each.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            The library of the frame. None: that of the data, else polars where it is installed, else pandas.

        Returns
        -------
        data frame
            Strength, seed, figures with the ends of their intervals, unfairness on training and validation rows, the
            mark of models that are no better than a constant, which are overfit, and which point is chosen. Of several
            families also theirs, the parameter that "strength" is of, and whether the group is needed to predict.

        Examples
        --------
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = FrontierFigures([Outcome(Job(0.5, 0), point, point)], "scores", "accuracy", ("a", "b"), {})
        >>> front.to_frame("pandas")[["strength", "accuracy", "unfairness"]].to_dict("records")
        [{'strength': 0.5, 'accuracy': 0.9, 'unfairness': 0.4}]
        """
        rows = [_figures(outcome, self.utility) | {"chosen": outcome.test == self.chosen} for outcome in self.outcomes]
        if self.knobs:
            rows = [
                {"family": point.family, "parameter": self.knobs[point.family], "needs_group": point.needs_group} | row
                for point, row in zip(self.points, rows, strict=True)
            ]
        kinds = {"seed": nw.Int64, "failed": nw.Boolean, "overfit": nw.Boolean, "chosen": nw.Boolean, "mark": nw.String}
        kinds |= {"family": nw.String, "parameter": nw.String, "needs_group": nw.Boolean}
        names = dict.fromkeys(name for row in rows for name in row)
        schema = {name: kinds.get(name, nw.Float64) for name in names}
        return frame({name: [row.get(name) for row in rows] for name in names}, schema, backend or self.library)

    def plot(self) -> Any:
        """An altair chart: points, Pareto line, chosen model.

        Returns
        -------
        altair.LayerChart
            To be shown in a notebook, or changed further.

        Raises
        ------
        MissingExtra
            If altair is not installed.
        DataError
            If every model failed.

        Examples
        --------
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = FrontierFigures([Outcome(Job(0.5, 0), point, point)], "scores", "accuracy", ("a", "b"), {})
        >>> len(front.plot().layer)                                    # points and Pareto line
        2
        """
        return frontier_chart(self.view())

    def _repr_html_(self) -> str:
        """The page, shortened, in a frame of its own: no style leaves it."""
        return framed(frontier_html(self.view(), most_numbers=20_000), height=720, title="Accuracy and fairness")

    def to_html(self, path: str | Path, *, title: str | None = None) -> None:
        """Write a self-contained page with a slider over the strengths.

        Parameters
        ----------
        path : str or Path
            The file to write, in one step.
        title : str, default=None
            Headline of the page; by default what the frontier was given, or "Accuracy and fairness".

        Raises
        ------
        DataError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = FrontierFigures([Outcome(Job(0.5, 0), point, point)], "scores", "accuracy", ("a", "b"), {})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     front.to_html(Path(folder, "report.html"), title="Who is hired")
        ...     "Who is hired" in Path(folder, "report.html").read_text()
        True
        """
        write_html(path, frontier_html(self.view(title)))

    def to_picture(self, path: str | Path) -> None:
        """Write the chart as a picture.

        Parameters
        ----------
        path : str or Path
            The file to write; it ends in .png or .svg.

        Raises
        ------
        MissingExtra
            If altair or vl-convert-python is not installed.
        DataError
            If the path ends otherwise, cannot be written, or every model failed.
        """
        save_picture(self.plot(), path)

    def __repr__(self) -> str:
        failed = sum(point.failed for point in self.points)
        usable = [point for point in self.points if not point.failed]
        if not usable:
            return f"Frontier({len(self.points)} models, all failed)"
        least, lost, own = min(p.gap(self.on) for p in usable), f", {failed} failed" if failed else "", self.utility
        values = [value for point in usable if (value := point.figure(own.name)) is not None]
        best = f"{(max if own.larger_is_better else min)(values, default=math.nan):.3f}"
        name = self.accuracy_name if own.key == "accuracy" else own.label
        rest = "" if self.constant is None else f", {self.area_with_constant:.3f} with the constant model"
        return (
            f"Frontier({len(self.points)} models{lost}: {name} {'up' if own.larger_is_better else 'down'} to {best}, "
            f"unfairness of {self.on} down to {least:.3f}, area {self.area:.3f}{rest})"
        )


def _figures(outcome: Outcome, utility: Utility) -> dict[str, Any]:
    """A model's figures by name, each with the ends of its interval; those of a failed model mean nothing."""
    point = outcome.test
    named = {name: getattr(point, name) for name in ("accuracy", "unfairness", "decision_unfairness")} | {**point.more}
    found: dict[str, Any] = {"strength": float(point.strength), "seed": point.seed, "failed": point.failed}
    for name, value in named.items():
        found[name] = None if point.failed else value
        if name in point.intervals:
            found |= {f"{name}_low": point.intervals[name].low, f"{name}_high": point.intervals[name].high}
    for part, own in (("training", outcome.training), ("validation", outcome.validation)):
        found[f"{part}_unfairness"] = None if own is None or own.failed else own.unfairness
    return found | {"mark": point.marks.get(utility.key, ""), "overfit": point.overfit}
