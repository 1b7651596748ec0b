"""What a sweep reached, and the choice of a model from it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from metrifair.errors import DataError, MetrifairWarning
from metrifair.figures.utility import UTILITIES, Utility, UtilityLike, utility_of
from metrifair.problem.tables import Backend, frame
from metrifair.report.frontier.notes import marked_sentence, same_decisions_warning
from metrifair.saving.modelfile import PathLike
from metrifair.support.checks import check_switches, require
from metrifair.tradeoff.figures import FrontierFigures, Source
from metrifair.tradeoff.ledger import Job, Outcome, write_frontier  # noqa: F401  # Outcome: for the examples
from metrifair.tradeoff.points import Point  # noqa: F401  # for the examples
from metrifair.tradeoff.selection import Wish, best_of, suitable


@dataclass(eq=False, repr=False)
class Frontier(FrontierFigures):
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
    utility : Utility, default=accuracy
        What makes a model good.
    constant : Point, default=None
        What a model reaches on test rows that decides the same for everyone; its strength and seed say nothing.
    constant_text : str, default=""
        What that model says.
    tried : int, default=None
        Models that could have been trained, where which ones were depends on the rows for choosing.
    source : Source, default=None
        Rows and estimators, while they are in memory; files do not keep them.
    knobs : dict of str to str, default={}
        The parameter that was varied, by family, where there are several.
    library : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
        Of the data frames that were given; tables of figures are of that library too.
    provenance : Provenance, default=Provenance()
        Where it comes from: rows, columns, the call, seed, versions and time; with a title, and what is to be known.

    Attributes
    ----------
    chosen : Point or None
        The test point of the last selection.
    limit : float or None
        The unfairness that it asked for.
    chosen_by : Utility or None
        What it was judged by.
    certified : bool
        Whether the limit is proven to be kept, between the groups that are compared: ``notes`` name those of few rows.

    Examples
    --------
    >>> points = [Point(0.0, 0, 0.9, 0.4), Point(1.0, 0, 0.8, 0.1)]
    >>> outcomes = [Outcome(Job(point.strength, 0), point, point) for point in points]
    >>> Frontier(outcomes, "scores", "accuracy", ("a", "b"), {"a": 100, "b": 100})
    Frontier(2 models: accuracy up to 0.900, unfairness of scores down to 0.100, area 0.780)
    """

    def select(
        self,
        *,
        max_unfairness: float | None = None,
        min_accuracy: float | None = None,
        rule: Literal["donini"] | None = None,
        utility: UtilityLike | None = None,
        certified: bool = False,
        needs_group: bool | None = None,
    ) -> Any:
        """The fitted model that suits best, judged on validation data.

        Give exactly one of ``max_unfairness``, ``min_accuracy`` and ``rule``. ``chosen`` is then the model's point on
        test data. Models that are no better than deciding the same for everyone are chosen only where no other suits,
        with a warning; among models that noise does not tell apart the one with the better ranking is.

        Parameters
        ----------
        max_unfairness : float, default=None
            The best among the models that are at most so unfair; those within a standard error of it are as good.
        min_accuracy : float, default=None
            The least unfair among the models that are at least so accurate; below what chance shows, all are as fair.
        rule : {"donini"}, default=None
            The least unfair among the models with 97 % of the best utility.
        utility : str, table of costs or scorer, default=None
            What makes a model good, as in :func:`metrifair.frontier`. None: what the frontier was made with.
        certified : bool, default=False
            With ``max_unfairness``: not the unfairness but its proven upper bound must be at most that, jointly for all
            models that were or could have been trained, of all families; between groups that are not left out, as those
            of few rows are (``notes`` name them).
        needs_group : bool, default=None
            False: only models that predict without the group; True: only those that ask for it. None: all.

        Returns
        -------
        estimator
            One of ``models``.

        Raises
        ------
        DataError
            If no model suits; if the limit is not a number; or if bounds are asked for that weighted samples do not
            have.

        Warns
        -----
        MetrifairWarning
            If the model is no better than deciding the same for everyone.

        Examples
        --------
        >>> points = [Point(0.0, 0, 0.9, 0.4), Point(1.0, 0, 0.8, 0.1)]
        >>> outcomes = [Outcome(Job(one.strength, 0), one, one, model=f"model {one.strength}") for one in points]
        >>> front = Frontier(outcomes, "scores", "accuracy", ("a", "b"), {"a": 100, "b": 100})
        >>> front.select(max_unfairness=0.2), front.select(min_accuracy=0.85)
        ('model 1.0', 'model 0.0')
        """
        wish = Wish(max_unfairness, min_accuracy, rule, certified)
        self.chosen, self.limit, self.chosen_by, self.certified = None, max_unfairness, None, False
        own = self.utility if utility is None else self._known(utility)
        candidates = [outcome for outcome in self.outcomes if not outcome.validation.failed]
        if not candidates:
            raise DataError("no model to select from: training failed at every strength; lower the learning rate")
        if needs_group is not None:
            check_switches(needs_group=needs_group)
            candidates = [outcome for outcome in candidates if outcome.test.needs_group == needs_group]
            if not candidates:
                asked = "asks for the group" if needs_group else "predicts without the group"
                raise DataError(f"no model of this frontier {asked}; leave needs_group out, or train other families")
        found = suitable(
            candidates,
            wish,
            own,
            on=self.on,
            accuracy_name=self.accuracy_name,
            cdfs=2 * self.comparisons,
            models=max(self.tried or 0, len(self.outcomes)),
            small=self.small,
        )
        best = best_of(found, wish, own, on=self.on, floor=self.floor)
        if best.model is None:
            raise DataError(
                f"the ledger kept this model's figures but not the model; fit {best.job.family or 'it'} with "
                f"{self.knobs.get(best.job.family, self.parameter)}={best.job.value:g} and random_state={best.job.seed}"
            )
        self.chosen, self.chosen_by, self.certified = best.test, own, certified
        for point, rows in ((best.test, "test rows"), (best.validation, "the rows for choosing")):
            if mark := point.marks.get(own.key):
                warnings.warn(marked_sentence(own, mark, rows), MetrifairWarning, stacklevel=2)
                break
        else:
            if told := same_decisions_warning(best.test, own):
                warnings.warn(told, MetrifairWarning, stacklevel=2)
        return best.model

    def _known(self, utility: UtilityLike) -> Utility:
        """The utility, with its figure in every point; one that is not there is measured, where rows are at hand."""
        names = {name for one in self.outcomes for name in one.validation.more}
        if self.source is None:
            if isinstance(utility, str) and utility in names | {"accuracy", "r2"} & {self.utility.name}:
                return UTILITIES.get(utility) or self.utility
            known = ", ".join(map(repr, sorted(names & set(UTILITIES))))
            raise DataError(f"this frontier's points have no utility {utility!r}, but {known}; make it anew to add one")
        own = utility_of(utility, classes=self.source.judge.judging.problem.scheme.classes)
        if own.key != "accuracy" and (own.name not in names or own.name not in UTILITIES):
            self.outcomes = [self.source.measured(outcome, own) for outcome in self.outcomes]
        return own

    def held_out(self, backend: Backend | None = None) -> Any:
        """What the chosen model says of the test rows, which were used neither for training nor for choosing.

        Parameters
        ----------
        backend : {"polars", "pandas"}, default=None
            The library of the frame. None: polars where it is installed, else pandas.

        Returns
        -------
        data frame
            Each row's number (from 0), groups, label, prediction and probability: what ``audit`` asks for.

        Raises
        ------
        DataError
            If no model is chosen, or the frontier comes from a file, which keeps no rows.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> from metrifair import frontier
        >>> X = np.linspace(-1, 1, 400)[:, None]
        >>> y, sex = (X[:, 0] > 0).astype(int), np.arange(400) % 2
        >>> front = frontier([LogisticRegression().fit(X, y)], X, y, sensitive_features={"sex": sex})
        >>> model = front.select(max_unfairness=1.0)
        >>> front.held_out("pandas").columns.tolist()
        ['row', 'sex', 'label', 'prediction', 'probability']
        """
        job, source = self._choice()
        model = next(one.model for one in self.outcomes if one.job == job)
        columns = {name: column.tolist() for name, column in source.held_out(model).items()}
        return frame(columns, None, backend)

    def refit(self) -> Any:
        """The chosen strength and seed, trained on all rows.

        More rows make a better model, of which no row is left to tell: its figures are those of the held-out fit. A
        certificate is of the model that was judged: here it is withdrawn, and ``certified`` becomes False.

        Returns
        -------
        estimator
            Fitted on training, validation and test rows together.

        Raises
        ------
        DataError
            If no model is chosen, fitted models were handed over, or the frontier comes from a file.

        Examples
        --------
        >>> import numpy as np
        >>> from metrifair import FairClassifier, frontier
        >>> X = np.linspace(-1, 1, 400)[:, None]
        >>> y, sex = (X[:, 0] > 0).astype(int), np.arange(400) % 2
        >>> front = frontier(FairClassifier(epochs=60), X, y, sensitive_features=sex, strengths=[0.0])
        >>> half, whole = front.select(max_unfairness=1.0), front.refit()
        >>> whole.score(X, y) > 0.9
        True
        """
        job, source = self._choice()
        model = source.refitted(job)
        self.certified = False
        return model

    def _choice(self) -> tuple[Job, Source]:
        if self.chosen is None:
            raise DataError("no model is chosen; call select first")
        if self.source is None:
            raise DataError("a frontier from a file keeps no rows; make it anew with metrifair.frontier")
        return Job(self.chosen.strength, self.chosen.seed, self.chosen.family), self.source

    def widget(self) -> Any:
        """A slider over the strengths, for notebooks, that Python can read and move.

        It is the page of :meth:`to_html` without the table, drawn inside a shadow root, so that no style leaves it. A
        limit that is typed into its box is a call of :meth:`select`.

        Returns
        -------
        anywidget.AnyWidget
            ``chosen`` is the test point at the slider, ``points`` are those of all its seeds, ``model`` is the fitted
            one. ``strength``, ``row`` (its place on the slider) and ``max_unfairness`` can be set and observed.

        Raises
        ------
        MissingExtra
            If anywidget is not installed.

        Examples
        --------
        >>> points = [Point(0.0, 0, 0.9, 0.4), Point(1.0, 0, 0.8, 0.1)]
        >>> outcomes = [Outcome(Job(one.strength, 0), one, one, model=f"model {one.strength}") for one in points]
        >>> front = Frontier(outcomes, "scores", "accuracy", ("a", "b"), {"a": 100, "b": 100})
        >>> slider = front.widget()
        >>> slider.strength = 1.0                                      # or move it in the notebook
        >>> slider.chosen.unfairness, slider.model
        (0.1, 'model 1.0')
        >>> slider.max_unfairness = 0.5                                # front.select(max_unfairness=0.5)
        >>> slider.strength
        0.0
        """
        require("anywidget", extra="notebook", purpose="a slider in a notebook")
        return import_module("metrifair.tradeoff.widget").FrontierWidget(self)

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
        >>> from pathlib import Path
        >>> from metrifair import load
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = Frontier([Outcome(Job(0.5, 0), point, point)], "scores", "accuracy", ("a", "b"), {})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     front.save(Path(folder, "front.metrifair"))
        ...     load(Path(folder, "front.metrifair")).points == front.points
        True
        """
        write_frontier(path, self)
