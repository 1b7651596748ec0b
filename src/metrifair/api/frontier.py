"""`frontier` and `Frontier`: the accuracy-fairness trade-off, shown, chosen from and saved."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from metrifair.api.pages import PrintedPage
from metrifair.errors import DataError, MetrifairWarning
from metrifair.figures.curves import Curves
from metrifair.figures.utility import Utility, UtilityLike
from metrifair.problem.criteria import Criterion
from metrifair.problem.proxies import GroupProbabilities
from metrifair.problem.tables import Backend, Table, frame
from metrifair.report.frontier import frontier_chart, frontier_html, save_picture
from metrifair.report.html import framed, write_html
from metrifair.saving.modelfile import PathLike
from metrifair.support.checks import require
from metrifair.support.provenance import call_text
from metrifair.tradeoff.frontier import FrontierRequest, trade_off
from metrifair.tradeoff.frontier_file import write_frontier
from metrifair.tradeoff.points import Job, Outcome, Point  # noqa: F401  # Job and Point: for the examples
from metrifair.tradeoff.result import Goal, TradeOff, held_out_columns
from metrifair.tradeoff.sweep import SearchOptions
from metrifair.wording.frontier import choice_warning, note_text, summary
from metrifair.wording.frontier_view import FrontierView, figure_name


def frontier(
    estimator: Any,
    X: Table,
    y: Table,
    *,
    sensitive_features: Table | GroupProbabilities,
    control_features: Table | None = None,
    sample_weight: Table | None = None,
    parameter: str | None = None,
    strengths: Sequence[float] | Literal["auto"] | None = None,
    validation: float = 0.25,
    test: float | None = None,
    unfairness_of: Literal["scores", "decisions"] = "scores",
    utility: UtilityLike = "auto",
    criterion: str | Criterion | None = None,
    pos_label: Any = None,
    random_state: Any = None,
    search: SearchOptions | None = None,
) -> Frontier:
    """The trade-off between accuracy and fairness: models of every strength and seed, evaluated on held-out rows.

    All models share one split into training, validation and test rows. Seeds change only initial weights and batches.
    FairClassifier and FairRegressor train all models at once, post-processors fit their estimator once, and other
    scikit-learn estimators are fitted value by value. In a pipeline the last step is varied and receives the groups;
    the steps before it are fitted once, to the training rows.

    Parameters
    ----------
    estimator : "auto", estimator, list or dict of estimators, or list of fitted models
        Estimator to use, with a parameter that trades accuracy for fairness. "auto" tries families that suit the data,
        linear models and trees first, until the budget of ``SearchOptions`` is spent. "auto" treats integers with at
        most 20 distinct values as labels, unless ``utility`` is one of regression, and encodes text, dates and missing
        values in X. Several estimators are families on one frontier. Each family varies its own parameter, and is
        named by the key of a dict or by its class. Fitted models are only evaluated. If they are of one kind and their
        strengths differ, results show these. Otherwise, results show their numbers in the list, from 1.
    X : table of shape (n, features)
        Features: an array, a data frame, or whatever the estimator takes.
    y : array of shape (n,)
        Labels, or a regression target.
    sensitive_features : array of shape (n,), table, dict of columns or GroupProbabilities
        The group of each sample. A table holds several attributes. Rows with a missing group are used for accuracy
        only. If groups are not in the data, pass their probabilities as ``GroupProbabilities``.
    control_features : array of shape (n,) or table, default=None
        Strata within which groups are compared.
    sample_weight : array of shape (n,), default=None
        Weight of each sample, in training and in every figure. Intervals and certificates do not hold for weighted
        samples and are left out. Rows of weight 0 are ignored.
    parameter : str, default=None
        Parameter of the estimator, or of a pipeline's last step, to vary. None selects "strength", or "tolerance" if
        there is no "strength".
    strengths : list of float, "auto" or None, default=None
        Values of the parameter; repeated values are used once. None: 0, 21 values from 0.03 to 1,000 and three up to a
        million; for tolerances 21 values from 0 to 1. "auto" adds values where the curve bends.
    validation : float, default=0.25
        Share of the rows on which ``select`` compares models. For cross-validation, use ``SearchOptions(folds=5)``.
    test : float, default=None
        Share of the rows on which ``points`` are computed. None: 0.25, or five test folds where that would leave fewer
        than 200 test rows of the smallest group; ``SearchOptions(test_folds=...)`` has the details.
    unfairness_of : {"scores", "decisions"}, default="scores"
        What unfairness compares across groups: score distributions, or decisions.
    utility : "auto", str, table of costs or scorer, default="auto"
        Measure of quality: "accuracy", "balanced_accuracy", "auc", "log_loss" or "brier"; for regression "r2",
        "mean_absolute_error" or "mean_squared_error". A table of costs by label and decision, in ascending order of the
        classes, is the expected cost. A scikit-learn scorer or its name works too. "auto" is accuracy, or R2 for
        regression.
    criterion : str or Criterion, default=None
        Fairness criterion of the unfairness. None: that of the estimator, or statistical parity.
    pos_label : int, str or bool, default=None
        The positive label of the models of "auto"; by default the last one in ascending order. Other estimators have a
        ``pos_label`` of their own.
    random_state : int, NumPy generator or None, default=None
        Seed of the split. None draws one, which ``provenance.seed`` records.
    search : SearchOptions, default=None
        Options of the search, such as seeds, cross-validation folds, processes, devices and a ledger.

    Returns
    -------
    Frontier
        Models with their figures. The positive class is the estimator's ``pos_label``, or the last one.

    Raises
    ------
    DataError
        If an argument cannot be used, or an estimator lacks the parameter.
    TooFewSamples
        If a group has no validation or test row. Nothing has been trained then.

    See Also
    --------
    Frontier.select : Select a model.

    Examples
    --------
    >>> from metrifair import FairClassifier, frontier
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=600)
    >>> X = generator.normal(size=(600, 3)) + a[:, None]
    >>> y = (X.sum(1) + generator.normal(size=600) > 1.5).astype(int)
    >>> front = frontier(FairClassifier(), X, y, sensitive_features=a, strengths=[0, 1, 2, 4], random_state=0)
    >>> len(front.points), front.points[0].unfairness > 0.4
    (4, True)
    >>> model = front.select(max_unfairness=0.6)
    >>> model.strength > 0
    True

    Families that need the group at prediction beside one that does not:

    >>> from metrifair import BarycenterPostprocessor, SearchOptions
    >>> linear = FairClassifier(model="linear")
    >>> families = {"linear": linear, "barycenter": BarycenterPostprocessor(linear)}
    >>> search = SearchOptions(tolerances=[0, 0.5])
    >>> front = frontier(families, X, y, sensitive_features=a, strengths=[0, 1, 10], random_state=0, search=search)
    >>> [(point.family, point.strength, point.needs_group) for point in front.points][2:4]
    [('linear', 10.0, False), ('barycenter', 0.0, True)]
    >>> front.select(max_unfairness=0.9, needs_group=False).model
    'linear'
    """
    arguments = dict(locals())
    record = trade_off(FrontierRequest(**{**arguments, "search": SearchOptions() if search is None else search}))
    front = Frontier(**{field.name: getattr(record, field.name) for field in fields(record) if field.init})
    front.provenance = replace(record.provenance, call=call_text(frontier, arguments))
    for note in front.notes:
        # No strength is left at which models vary: the trade-off does not show.
        if note.kind == "constant_models" and set(note.facts["constant"]) == set(note.facts["strengths"]) - {0.0}:
            warnings.warn(note_text(note).rstrip("."), MetrifairWarning, stacklevel=2)
    return front


@dataclass(eq=False, repr=False)
class Frontier(PrintedPage, TradeOff):
    """Trained models with their accuracy and unfairness on test rows.

    :func:`metrifair.frontier` and :func:`metrifair.load` return it.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Every model with its figures.
    unfairness_of : {"scores", "decisions"}
        What unfairness compares across groups: score distributions, or decisions.
    accuracy_name : {"accuracy", "R2"}
        Name of the first figure of a point.
    groups : tuple of str
        Names of the groups.
    sizes : dict of str to int
        Test rows by group.
    notes : tuple of FrontierNote, default=()
        Notes on the figures, each a kind with its facts; ``summary`` has the sentences.
    comparisons : int, default=1
        Distances behind each unfairness: comparisons, times classes where there are several.
    parameter : str, default="strength"
        The parameter of the estimator that was varied.
    floor : float, default=None
        Unfairness that sampling noise alone would show on the test rows.
    validation_floor : float, default=None
        The same on the validation rows.
    all_small : bool, default=False
        Whether all groups that are compared have few rows.
    utility : Utility, default=accuracy
        Measure of quality.
    constant : Point, default=None
        Figures of the best constant predictor on test rows; its strength and seed mean nothing.
    constant_value : str or float, default=None
        The label or number that it predicts.
    tried : int, default=None
        Models that could have been trained, where the validation rows decide which ones were.
    source : SweepContext, default=None
        Rows and estimators in memory. Files do not contain them.
    parameters : dict of str to str, default={}
        The parameter that was varied, by family, where there are several.
    library : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
        Library of the data frames that were passed, which ``to_frame`` also uses.
    provenance : Provenance, default=Provenance()
        Rows, columns, the call, seed, versions and time.
    test_folds : int, default=0
        Number of test folds. 0: one split into training, validation and test rows.

    Attributes
    ----------
    chosen : Point or None
        The test point of the last selection. With test folds, its figures are those of the selection, repeated
        without each fold (``fold_choices``). ``points`` has the figures of the selected strength.
    limit : float or None
        Its unfairness limit.
    limit_confidence : float or None
        Approximate confidence that the chosen model keeps the limit in the population, by the test rows.
    chosen_by : Utility or None
        Its measure of quality.
    change : Change or None
        Its figures less those of the model without the penalty, with intervals.
    fold_choices : tuple of (str, float)
        Family and strength that are chosen in each test fold, without its rows. A single family is "". ``chosen`` is
        evaluated by these choices.
    certified : bool
        Whether the limit is certified, between the groups that are compared. ``notes`` name small groups.

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
        confidence: float | None = None,
        certified: bool = False,
        needs_group: bool | None = None,
    ) -> Any:
        """Select the best fitted model on validation rows.

        Pass exactly one of ``max_unfairness``, ``min_accuracy`` and ``rule``. ``chosen`` is then the model's point on
        test rows. With test folds, the model is fitted on all rows, and ``chosen`` repeats the choice without each
        fold. A model that is not significantly better than a constant predictor is selected only if no other model
        qualifies, with a warning. Among models that do not differ beyond noise, the one with the better ranking is
        selected.

        If such models belong to several families, the family with the best mean utility over all unfairness limits is
        selected first, then its best model.

        Parameters
        ----------
        max_unfairness : float, default=None
            Unfairness limit: select the best among the models within it. Models within a standard error of the best
            count as equally good.
        min_accuracy : float, default=None
            Minimum accuracy: select the least unfair among the models that reach it. Unfairness below the level of
            sampling noise counts as equal.
        rule : {"donini"}, default=None
            Selection rule: the least unfair among the models with 97 % of the best utility.
        utility : str, table of costs or scorer, default=None
            Measure of quality, as in :func:`metrifair.frontier`. None: the utility of the frontier.
        confidence : float, default=None
            Confidence level. With ``max_unfairness``: require that the model keeps the limit in the population with
            this confidence, approximately. 0.9 is a good choice where groups are small. None: require that the model
            keeps the limit on validation rows.
        certified : bool, default=False
            With ``max_unfairness``: require that the certified upper bound of the unfairness is within the limit. The
            bound holds jointly for all models of all families that were or could have been trained. It covers the
            groups that are compared; ``notes`` name the small groups that are left out.
        needs_group : bool, default=None
            Whether prediction needs the group. False selects only models that predict without it, True only models that
            need it. None: all.

        Returns
        -------
        estimator
            One of ``models``. With test folds they are fitted on all rows.

        Raises
        ------
        DataError
            If no model qualifies, if the limit is not a number, or if ``certified=True`` with weighted samples, which
            have no bounds.

        Warns
        -----
        MetrifairWarning
            If the model is not significantly better than a constant predictor.

        Examples
        --------
        >>> points = [Point(0.0, 0, 0.9, 0.4), Point(1.0, 0, 0.8, 0.1)]
        >>> outcomes = [Outcome(Job(one.strength, 0), one, one, model=f"model {one.strength}") for one in points]
        >>> front = Frontier(outcomes, "scores", "accuracy", ("a", "b"), {"a": 100, "b": 100})
        >>> front.select(max_unfairness=0.2), front.select(min_accuracy=0.85)
        ('model 1.0', 'model 0.0')
        """
        best = self.choose(Goal(max_unfairness, min_accuracy, rule, certified, confidence), utility, needs_group)
        if warning := choice_warning(best.validation, best.test, self.chosen_by or self.utility):
            warnings.warn(warning, MetrifairWarning, stacklevel=2)
        return best.model

    def held_out(self, backend: Backend | None = None) -> Any:
        """Predictions of the chosen model on the test rows, which were not used to train or select it.

        Parameters
        ----------
        backend : {"polars", "pandas"}, default=None
            Library of the data frame. None: polars if it is installed, else pandas.

        Returns
        -------
        data frame
            Each row's number (from 0), groups, label, prediction and probability, as ``audit`` takes them.

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
        _, context = self.choice()
        if self.chosen_predictions is None:
            raise DataError("no model is chosen; call select first")
        columns = {"row": context.test, **held_out_columns(self.chosen_predictions, context.evaluator.test)}
        return frame({name: column.tolist() for name, column in columns.items()}, None, backend)

    def refit(self) -> Any:
        """Train the chosen strength and seed on all rows.

        More rows make a better model, but no row is left to evaluate it: the figures remain those of the held-out fit.
        A certificate is valid only for the evaluated model, so ``certified`` becomes False.

        Returns
        -------
        estimator
            Fitted on training, validation and test rows together.

        Raises
        ------
        DataError
            If no model is chosen, if fitted models were passed, or if the frontier comes from a file.

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
        job, context = self.choice()
        model = context.refit(job)
        self.certified = False
        return model

    def summary(self) -> str:
        """The findings and notes, one sentence per line.

        Returns
        -------
        str
            The best model, the constant predictor, the choice, and the notes.

        Examples
        --------
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = Frontier([Outcome(Job(0.5, 0), point, point)], "scores", "accuracy", ("a", "b"), {})
        >>> front.summary().splitlines()[0]
        'The most accurate model is right in 90.0% of cases; its unfairness is 0.400.'
        """
        view = self.view()
        return "\n".join((*summary(view), *view.notes))

    def view(self, title: str | None = None, about: Mapping[str, str] | None = None) -> FrontierView:
        """The content of pictures and pages: one seed's distributions for each strength.

        Parameters
        ----------
        title : str, default=None
            Title of the report. None: that of ``provenance``, or "Accuracy and fairness".
        about : dict of str, default=None
            Metadata shown in the report, such as the date and the source of the data.

        Returns
        -------
        FrontierView
            Numbers and texts, ready to be drawn.
        """
        curves: dict[float | tuple[str, float], Curves] = {}
        for outcome in self.outcomes:
            if outcome.curves is not None:
                curves.setdefault(outcome.test.place, outcome.curves)
        provenance = self.provenance.described(title, about)
        utility, constant = self.chosen_by or self.utility, (self.constant, self.constant_value)
        if self.source is not None and utility is not self.utility:
            constant = self.source.evaluator.constant(utility)
        return FrontierView(
            self.points,
            curves,
            self.chosen,
            provenance.title or "Accuracy and fairness",
            self.accuracy_name,
            self.unfairness_of,
            self.groups,
            [text for note in self.notes if (text := note_text(note))],
            {} if self.parameter == "strength" else {"strength": self.parameter},
            parameters=self.parameters,
            floor=self.floor,
            limit=self.limit,
            limit_confidence=self.limit_confidence,
            utility=utility,
            constant=constant[0],
            constant_value=constant[1],
            areas=(self.area, self.area_with_constant),
            training=self.training_points,
            validation=() if self.test_folds else self.validation_points,
            provenance=provenance,
            change=self.change,
            fold_choices=self.fold_choices,
        )

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The test points as a data frame, one row each.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            Library of the data frame. None: that of the data, else polars if it is installed, else pandas.

        Returns
        -------
        data frame
            Strength, seed, figures with the ends of their intervals, unfairness on training and validation rows, the
            mark of models that are not significantly better than a constant, which are overfit, and which point is
            chosen. Of several families also theirs, the parameter that "strength" is of, and whether the group is
            needed to predict.

        Examples
        --------
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = Frontier([Outcome(Job(0.5, 0), point, point)], "scores", "accuracy", ("a", "b"), {})
        >>> front.to_frame("pandas")[["strength", "accuracy", "unfairness"]].to_dict("records")
        [{'strength': 0.5, 'accuracy': 0.9, 'unfairness': 0.4}]
        """
        chosen = None if self.chosen is None else self.chosen.job
        rows = [_figures(outcome, self.utility) | {"chosen": outcome.job == chosen} for outcome in self.outcomes]
        if self.parameters:
            rows = [
                {"family": point.family, "parameter": self.parameters[point.family], "needs_group": point.needs_group}
                | row
                for point, row in zip(self.points, rows, strict=True)
            ]
        kinds = {"seed": "Int64", "failed": "Boolean", "overfit": "Boolean", "chosen": "Boolean", "mark": "String"}
        kinds |= {"family": "String", "parameter": "String", "needs_group": "Boolean"}
        names = dict.fromkeys(name for row in rows for name in row)
        schema = {name: kinds.get(name, "Float64") for name in names}
        return frame({name: [row.get(name) for row in rows] for name in names}, schema, backend or self.library)

    def plot(self, *, title: str | None = None) -> Any:
        """An altair chart: points, Pareto line, chosen model.

        Parameters
        ----------
        title : str, default=None
            Title of the chart. None: "Accuracy and fairness".

        Returns
        -------
        altair.LayerChart
            A chart to show or edit.

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
        return frontier_chart(self.view(title))

    def _repr_html_(self) -> str:
        """The page, shortened, in its own frame: no style leaves it."""
        return framed(frontier_html(self.view(), most_numbers=20_000), height=720, title="Accuracy and fairness")

    def to_html(self, path: str | Path, *, title: str | None = None, about: Mapping[str, str] | None = None) -> None:
        """Write a self-contained page with a slider over the strengths.

        Parameters
        ----------
        path : str or Path
            The file, written in one step.
        title : str, default=None
            Title of the page. None: "Accuracy and fairness".
        about : dict of str, default=None
            Metadata shown in the report, such as the date and the source of the data.

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
        write_html(path, frontier_html(self.view(title, about)))

    def to_picture(self, path: str | Path, *, title: str | None = None) -> None:
        """Write the chart as a picture.

        Parameters
        ----------
        path : str or Path
            The file, which ends in .png or .svg.
        title : str, default=None
            Title of the chart. None: "Accuracy and fairness".

        Raises
        ------
        MissingExtra
            If altair or vl-convert-python is not installed.
        DataError
            If the path ends otherwise, cannot be written, or every model failed.
        """
        save_picture(self.plot(title=title), path)

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
        return import_module("metrifair.api.widget").FrontierWidget(self)

    def save(self, path: PathLike) -> None:
        """Write figures and models to one file, which ``metrifair.load`` reads without running any code.

        Parameters
        ----------
        path : str or Path
            The file, written in one step.

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

    def __repr__(self) -> str:
        failed = sum(point.failed for point in self.points)
        usable = [point for point in self.points if not point.failed]
        if not usable:
            return f"Frontier({len(self.points)} models, all failed)"
        least, utility = min(point.gap(self.unfairness_of) for point in usable), self.utility
        lost = f", {failed} failed" if failed else ""
        values = [value for point in usable if (value := point.figure(utility.name)) is not None]
        best_of, way = (max, "up") if utility.larger_is_better else (min, "down")
        name = self.accuracy_name if utility.key == "accuracy" else figure_name(utility.name)
        with_constant = "" if self.constant is None else f", {self.area_with_constant:.3f} with the constant predictor"
        return (
            f"Frontier({len(self.points)} models{lost}: {name} {way} to {best_of(values, default=math.nan):.3f}, "
            f"unfairness of {self.unfairness_of} down to {least:.3f}, area {self.area:.3f}{with_constant})"
        )


def _figures(outcome: Outcome, utility: Utility) -> dict[str, Any]:
    """A model's figures by name, each with the ends of its interval; None for a failed model."""
    point = outcome.test
    named = {name: getattr(point, name) for name in ("accuracy", "unfairness", "decision_unfairness")} | {**point.more}
    figures: dict[str, Any] = {"strength": float(point.strength), "seed": point.seed, "failed": point.failed}
    for name, value in named.items():
        figures[name] = None if point.failed else value
        if name in point.intervals:
            figures |= {f"{name}_low": point.intervals[name].low, f"{name}_high": point.intervals[name].high}
    for part, own in (("training", outcome.training), ("validation", outcome.validation)):
        figures[f"{part}_unfairness"] = None if own is None or own.failed else own.unfairness
    return figures | {"mark": point.marks.get(utility.key, ""), "overfit": point.overfit}
