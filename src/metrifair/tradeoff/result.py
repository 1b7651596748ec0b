"""What a sweep reached, and the choice of a model from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Literal

import narwhals.stable.v2 as nw

from metrifair.certificates import dkw_radius
from metrifair.checks import check_known, check_switches, is_number
from metrifair.errors import DataError
from metrifair.problem.tables import Backend, frame
from metrifair.report.frontier.page import frontier_chart, frontier_html, save_picture
from metrifair.report.frontier.view import FrontierView
from metrifair.report.html import write_html
from metrifair.results import Curves, Point, area, pareto
from metrifair.saving.modelfile import PathLike
from metrifair.tradeoff.ledger import Job, Outcome, write_frontier  # noqa: F401  # Job: for the examples


@dataclass(eq=False)
class Frontier:
    """Trained models and what they reach: points on data that were used neither for training nor for choosing.

    Made by :func:`metrifair.frontier`, or read by :func:`metrifair.load`.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Every model with what it reaches.
    on : {"scores", "decisions"}
        Whose distributions unfairness compares.
    accuracy_name : {"accuracy", "R2"}
        What the first figure of a point is.
    groups : tuple of str
        Names of the groups.
    sizes : dict of str to int
        Test rows by group.
    notes : tuple of str, default=()
        What to know of the figures, in sentences.
    comparisons : int, default=1
        Distances behind each unfairness: comparisons, times classes where there are several.
    parameter : str, default="strength"
        The parameter of the estimator that was varied.
    floor : float, default=None
        The unfairness that chance alone would show on these rows.
    small : str, default=""
        Which groups have few rows to choose on, and what to do.

    Attributes
    ----------
    chosen : Point or None
        The test point of the last selection.
    limit : float or None
        The unfairness that it asked for.

    Examples
    --------
    >>> points = [Point(0.0, 0, 0.9, 0.4), Point(1.0, 0, 0.8, 0.1)]
    >>> outcomes = [Outcome(Job(point.strength, 0), point, point) for point in points]
    >>> Frontier(outcomes, "scores", "accuracy", ("a", "b"), {"a": 100, "b": 100})
    Frontier(2 models: accuracy up to 0.900, unfairness of scores down to 0.100, area 0.780)
    """

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
    chosen: Point | None = field(default=None, init=False)
    limit: float | None = field(default=None, init=False)

    @property
    def points(self) -> tuple[Point, ...]:
        """What each model reaches on test data."""
        return tuple(outcome.test for outcome in self.outcomes)

    @property
    def validation_points(self) -> tuple[Point, ...]:
        """What each model reaches on validation data."""
        return tuple(outcome.validation for outcome in self.outcomes)

    @property
    def models(self) -> tuple[Any, ...]:
        """The fitted models; None where training failed."""
        return tuple(outcome.model for outcome in self.outcomes)

    @property
    def pareto(self) -> tuple[Point, ...]:
        """The test points that no other beats."""
        return pareto(self.points, on=self.on)

    @property
    def area(self) -> float:
        """Share of the unit box that the test points dominate."""
        return area(self.points, on=self.on)

    def select(
        self,
        *,
        max_unfairness: float | None = None,
        min_accuracy: float | None = None,
        rule: Literal["donini"] | None = None,
        certified: bool = False,
    ) -> Any:
        """The fitted model that suits best, judged on validation data.

        Give exactly one of ``max_unfairness``, ``min_accuracy`` and ``rule``. ``chosen`` is then the model's point on
        test data.

        Parameters
        ----------
        max_unfairness : float, default=None
            The most accurate among the models that are at most so unfair.
        min_accuracy : float, default=None
            The least unfair among the models that are at least so accurate.
        rule : {"donini"}, default=None
            The least unfair among the models with 97 % of the best accuracy.
        certified : bool, default=False
            With ``max_unfairness``: not the unfairness but its proven upper bound must be at most that, jointly for all
            models.

        Returns
        -------
        estimator
            One of ``models``.

        Raises
        ------
        DataError
            If no model suits; if the limit is not a number; or if bounds are asked for that weighted samples do not
            have.

        Examples
        --------
        >>> points = [Point(0.0, 0, 0.9, 0.4), Point(1.0, 0, 0.8, 0.1)]
        >>> outcomes = [Outcome(Job(one.strength, 0), one, one, model=f"model {one.strength}") for one in points]
        >>> front = Frontier(outcomes, "scores", "accuracy", ("a", "b"), {"a": 100, "b": 100})
        >>> front.select(max_unfairness=0.2), front.select(min_accuracy=0.85)
        ('model 1.0', 'model 0.0')
        """
        _check_asked(max_unfairness, min_accuracy, rule, certified=certified)
        self.chosen, self.limit = None, max_unfairness
        candidates = [outcome for outcome in self.outcomes if not outcome.validation.failed]
        if not candidates:
            raise DataError("no model to select from: training failed at every strength; lower the learning rate")
        if rule is not None:
            best_accuracy = max(one.validation.accuracy for one in candidates)
            min_accuracy = min(best_accuracy, 0.97 * best_accuracy)  # a negative R2 has no 97 %
        found = self._suitable(candidates, max_unfairness, min_accuracy, certified=certified)
        by_accuracy = max_unfairness is not None
        figures = [(one.validation.accuracy, -one.validation.gap(self.on)) for one in found]
        best = found[max(range(len(found)), key=lambda at: figures[at] if by_accuracy else figures[at][::-1])]
        if best.model is None:
            raise DataError(
                "the ledger kept this model's figures but not the model; fit it with "
                f"{self.parameter}={best.job.value:g} and random_state={best.job.seed}"
            )
        self.chosen = best.test
        return best.model

    def _suitable(
        self, candidates: list[Outcome], at_most: float | None, at_least: float | None, *, certified: bool
    ) -> list[Outcome]:
        """The candidates within the limit; where there are none, an error says what there is."""
        points, hint = [one.validation for one in candidates], ""
        if at_most is not None:
            figures = [self._bound(one, len(points)) if certified else one.gap(self.on) for one in points]
            wanted = f"{'certified ' if certified else ''}unfairness at most {at_most:g}"
            usual = ": ask for more, train with larger strengths, or hold more data out"
            hint = f". {self.small}" if self.small else usual
        else:
            figures = [one.accuracy for one in points]
            wanted = f"{self.accuracy_name} at least {at_least:g}"
        low, high = -inf if at_least is None else at_least, inf if at_most is None else at_most
        found = [one for one, figure in zip(candidates, figures, strict=True) if low <= figure <= high]
        if not found:
            raise DataError(
                f"no model has {wanted} on validation data; it ranges from {min(figures):.4f} to "
                f"{max(figures):.4f}{hint}"
            )
        return found

    def _bound(self, point: Point, models: int) -> float:
        """Upper bound of the unfairness that holds for all models at once, so also for the one that is chosen."""
        name = "unfairness" if self.on == "scores" or point.decision_unfairness is None else "decision_unfairness"
        if name not in point.intervals:
            raise DataError(
                "no bound is certified, as what is proven does not hold for weighted samples; select without "
                "certified, or make the frontier without sample_weight"
            )
        gap, interval = point.gap(self.on), point.intervals[name]
        if interval.high >= 1:  # cut off there: the sample proves nothing
            return 1.0
        # Radii grow with the number of functions as sqrt(log(2 m / delta)).
        cdfs = 2 * self.comparisons
        return gap + (interval.high - gap) * dkw_radius(1, cdfs=cdfs * models) / dkw_radius(1, cdfs=cdfs)

    def view(self, title: str = "Accuracy and fairness") -> FrontierView:
        """What the pictures and the page show: one seed's distributions for each strength.

        Parameters
        ----------
        title : str, default="Accuracy and fairness"
            Headline of the report.

        Returns
        -------
        FrontierView
            Numbers and texts, ready to be drawn.
        """
        curves: dict[float, Curves] = {}
        for outcome in self.outcomes:
            if outcome.curves is not None:
                curves.setdefault(outcome.job.value, outcome.curves)
        return FrontierView(
            self.points,
            curves,
            self.chosen,
            title,
            self.accuracy_name,
            self.on,
            self.groups,
            self.notes,
            {} if self.parameter == "strength" else {"strength": self.parameter},
            floor=self.floor,
            limit=self.limit,
        )

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The test points as a data frame, one row each.

        Parameters
        ----------
        backend : {"polars", "pandas"}, default=None
            The library of the frame. None: polars where it is installed, else pandas.

        Returns
        -------
        data frame
            Strength, seed, figures with the ends of their intervals, and which point is chosen.

        Examples
        --------
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = Frontier([Outcome(Job(0.5, 0), point, point)], "scores", "accuracy", ("a", "b"), {})
        >>> front.to_frame("pandas")[["strength", "accuracy", "unfairness"]].to_dict("records")
        [{'strength': 0.5, 'accuracy': 0.9, 'unfairness': 0.4}]
        """
        rows = [_figures(point) | {"chosen": point == self.chosen} for point in self.points]
        own = {"seed": nw.Int64, "failed": nw.Boolean, "chosen": nw.Boolean}
        names = dict.fromkeys(name for row in rows for name in row)
        schema = {name: own.get(name, nw.Float64) for name in names}
        return frame({name: [row.get(name) for row in rows] for name in names}, schema, backend)

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
        >>> front = Frontier([Outcome(Job(0.5, 0), point, point)], "scores", "accuracy", ("a", "b"), {})
        >>> len(front.plot().layer)                                    # points and Pareto line
        2
        """
        return frontier_chart(self.view())

    def to_html(self, path: str | Path, *, title: str = "Accuracy and fairness") -> None:
        """Write a self-contained page with a slider over the strengths.

        Parameters
        ----------
        path : str or Path
            The file to write, in one step.
        title : str, default="Accuracy and fairness"
            Headline of the page.

        Raises
        ------
        DataError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = Frontier([Outcome(Job(0.5, 0), point, point)], "scores", "accuracy", ("a", "b"), {})
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

    def save(self, path: PathLike) -> None:
        """Write figures and models to one file, which ``metrifair.load`` reads without running any code.

        Parameters
        ----------
        path : str or Path
            The file to write, in one step.

        Raises
        ------
        DataError
            If a model cannot be kept, or the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from metrifair import load
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = Frontier([Outcome(Job(0.5, 0), point, point)], "scores", "accuracy", ("a", "b"), {})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     front.save(Path(folder, "front.metrifair"))
        ...     load(Path(folder, "front.metrifair")).points == front.points
        True
        """
        write_frontier(path, self)

    def __repr__(self) -> str:
        failed = sum(point.failed for point in self.points)
        usable = [point for point in self.points if not point.failed]
        if not usable:
            return f"Frontier({len(self.points)} models, all failed)"
        least, best = min(p.gap(self.on) for p in usable), max(p.accuracy for p in usable)
        lost = f", {failed} failed" if failed else ""
        return (
            f"Frontier({len(self.points)} models{lost}: {self.accuracy_name} up to {best:.3f}, "
            f"unfairness of {self.on} down to {least:.3f}, area {self.area:.3f})"
        )


def _figures(point: Point) -> dict[str, Any]:
    """A point's figures by name, each with the ends of its interval; those of a failed model mean nothing."""
    named = {name: getattr(point, name) for name in ("accuracy", "unfairness", "decision_unfairness")} | {**point.more}
    found: dict[str, Any] = {"strength": float(point.strength), "seed": point.seed, "failed": point.failed}
    for name, value in named.items():
        found[name] = None if point.failed else value
        if name in point.intervals:
            found |= {f"{name}_low": point.intervals[name].low, f"{name}_high": point.intervals[name].high}
    return found


def _check_asked(
    max_unfairness: float | None, min_accuracy: float | None, rule: str | None, *, certified: bool
) -> None:
    """Raise a DataError unless this says which model to select."""
    if sum(given is not None for given in (max_unfairness, min_accuracy, rule)) != 1:
        raise DataError("select needs exactly one of max_unfairness, min_accuracy and rule")
    for name, limit in (("max_unfairness", max_unfairness), ("min_accuracy", min_accuracy)):
        if not (limit is None or is_number(limit)):
            raise DataError(f"{name} must be a finite number, got {limit!r}")
    if rule is not None:
        check_known("rule", rule, ("donini",))
    check_switches(certified=certified)
    if certified and max_unfairness is None:
        raise DataError("certified goes with max_unfairness: it is the unfairness that is certified")
