"""`frontier` and `Frontier`: the accuracy-fairness trade-off, shown, chosen from and saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from metrifair.api.audit_tables import result_fields
from metrifair.api.pages import ResultPage
from metrifair.figures.curves import Curves
from metrifair.figures.utility import Utility, UtilityLike
from metrifair.problem.criteria import Criterion
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.tables import Backend, Table, frame, make_frame
from metrifair.report.display import ChartDisplay
from metrifair.report.frontier import frontier_html
from metrifair.report.frontier_chart import frontier_chart
from metrifair.saving.modelfile import PathLike
from metrifair.support.files import write_json
from metrifair.support.provenance import Provenance, call_text
from metrifair.support.user_warnings import warn_user
from metrifair.tradeoff.frontier import FrontierRequest, trade_off
from metrifair.tradeoff.frontier_file import write_frontier
from metrifair.tradeoff.goal import Goal
from metrifair.tradeoff.points import Job, Outcome, Point  # noqa: F401  # Job and Outcome: for the examples
from metrifair.tradeoff.record import FrontierRecord
from metrifair.tradeoff.result import TradeOff
from metrifair.tradeoff.sweep import SearchOptions, search_options
from metrifair.wording.frontier import choice_warning, headline, note_text, note_texts, summary
from metrifair.wording.frontier_tables import point_table
from metrifair.wording.frontier_view import FrontierView
from metrifair.wording.numbers import count_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def frontier(
    estimator: Any,
    X: Table,
    y: Table,
    *,
    sensitive_features: Table | GroupProbabilities,
    control_features: Table | None = None,
    sample_weight: Table | None = None,
    clusters: Table | None = None,
    parameter: str | None = None,
    strengths: Sequence[float] | Literal["auto"] | None = None,
    folds: int | None = None,
    test: float | None = None,
    unfairness_of: Literal["scores", "decisions"] = "scores",
    utility: UtilityLike = "auto",
    criterion: str | Criterion | None = None,
    pos_label: Any = None,
    random_state: Any = None,
    search: SearchOptions | None = None,
) -> Frontier:
    """The trade-off between accuracy and fairness: models of every strength and seed, scored on
    rows that did not train them.

    Each configuration (a family of models at one strength) is trained once for each fold, without
    the rows of the fold, and scores them. These scores of all rows compare the configurations.
    ``select`` chooses one and trains it on all rows. Seeds change only initial weights and batches.

    FairClassifier and FairRegressor train all models of a fold at once, post-processors fit their
    estimator once, and other scikit-learn estimators are fitted value by value. In a pipeline the
    last step is varied and receives the groups; the steps before it are fitted once, to the
    training rows.

    Parameters
    ----------
    estimator : "auto", estimator, list or dict of estimators, or list of fitted models
        Estimator to use, with a parameter that trades accuracy for fairness. "auto" tries families
        that suit the data, linear models first, as many as a fixed amount of work allows, or until
        the budget in seconds of ``SearchOptions`` is spent. "auto" treats integers with at most 20
        distinct values as labels, unless ``utility`` is one of regression, and encodes text, dates
        and missing values in X. Several estimators are families on one frontier. Each family varies
        its own parameter, and is named by the key of a dict or by its class. Fitted models are only
        evaluated. If they are of one kind and their strengths differ, results show these.
        Otherwise, results show their numbers in the list, from 1.
    X : table of shape (n, features)
        Features: an array, a data frame, or whatever the estimator takes.
    y : array of shape (n,)
        Labels, or a regression target.
    sensitive_features : array of shape (n,), table, dict of columns or GroupProbabilities
        The group of each sample. A table holds several attributes. Rows with a missing group are
        used for accuracy only. If groups are not in the data, pass their probabilities as
        ``GroupProbabilities``.
    control_features : array of shape (n,) or table, default=None
        Strata within which groups are compared.
    sample_weight : array of shape (n,), default=None
        Weight of each sample, in training and in every figure. Rows of weight 0 are ignored.
    clusters : array of shape (n,), default=None
        The cluster of each row, such as a person. Rows of one cluster stay together in every fold
        and resample. A row with a missing value is a separate cluster. None treats all rows as
        independent.
    parameter : str, default=None
        Parameter of the estimator, or of a pipeline's last step, to vary. None selects "strength",
        or "tolerance" if there is no "strength".
    strengths : list of float, "auto" or None, default=None
        Values of the parameter; repeated values are used once. None: 0, 21 values from 0.03 to
        1,000 and three up to a million; for tolerances 21 values from 0 to 1. "auto" adds values
        where the curve bends.
    folds : int, default=None
        Number of cross-validation folds. None: 5; 3 beyond 20,000 rows; fewer if a label is too rare for that.
    test : float, default=None
        Share of the rows that neither train nor compare models. The model that ``select`` returns
        is then evaluated on them. None: no rows are set apart, and the figures of the choice are
        those expected on new rows: its own, corrected for the luck of choosing it.
    unfairness_of : {"scores", "decisions"}, default="scores"
        What unfairness compares across groups: score distributions, or decisions.
    utility : "auto", str, table of costs or scorer, default="auto"
        Measure of quality: "accuracy", "balanced_accuracy", "auc", "log_loss" or "brier"; for
        regression "r2", "mean_absolute_error" or "mean_squared_error". A table of costs by label
        and decision, in ascending order of the classes, is the expected cost. A scikit-learn scorer
        or its name works too. "auto" is the AUC if ``unfairness_of`` is "scores" and the accuracy
        if it is "decisions"; R2 for regression.
    criterion : str or Criterion, default=None
        Fairness criterion of the unfairness. None: that of the estimator, or statistical parity.
    pos_label : int, str or bool, default=None
        The positive label of the models of "auto"; by default the last one in ascending order.
        Other estimators have a ``pos_label`` of their own.
    random_state : int, NumPy generator or None, default=None
        Seed of the folds. None draws one, which ``provenance.seed`` records.
    search : SearchOptions, default=None
        Options of the search, such as seeds, processes, devices and a ledger.

    Returns
    -------
    Frontier
        Models with their figures. The positive class is the estimator's ``pos_label``, or the last
        one.

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
    request = FrontierRequest(
        estimator=estimator,
        X=X,
        y=y,
        sensitive_features=sensitive_features,
        control_features=control_features,
        sample_weight=sample_weight,
        clusters=clusters,
        parameter=parameter,
        strengths=strengths,
        folds=folds,
        test=test,
        unfairness_of=unfairness_of,
        utility=utility,
        criterion=criterion,
        pos_label=pos_label,
        random_state=random_state,
        search=search_options(search),
    )
    return requested_frontier(request, search)


def requested_frontier(request: FrontierRequest, search: SearchOptions | None) -> Frontier:
    """The frontier of a request, with the call of :func:`frontier` that has these arguments;
    ``search`` are the options as they were passed.
    """
    front = Frontier(trade_off(request))
    arguments = {name: getattr(request, name) for name in signature(frontier).parameters}
    call = call_text(frontier, **arguments | {"search": search})
    provenance = replace(front.record.provenance, call=call)
    front._trade_off.record = replace(front.record, provenance=provenance)
    for note in front.record.notes:
        # No strength is left at which models vary: the trade-off does not show.
        if note.kind == "constant_models" and set(note.facts["constant"]) == set(
            note.facts["strengths"]
        ) - {0.0}:
            warn_user(note_text(note).rstrip("."))
    return front


class Frontier(ResultPage):
    """Models with their accuracy and unfairness on rows that did not train them.

    :func:`metrifair.frontier` and :func:`metrifair.load` return it.

    Parameters
    ----------
    trade_off : TradeOff
        The configurations with their figures and models.

    Attributes
    ----------
    chosen : Point or None
        The figures that are expected of the selected model on new rows; with ``test=``, its figures
        on the test rows. ``points`` has the figures by which configurations were compared.
    record : FrontierRecord
        All other facts: groups and their sizes, notes, the noise of a gap, the goal and the cost of
        the choice, and the provenance.

    Examples
    --------
    >>> points = [Point(0.0, 0, 0.9, 0.4), Point(1.0, 0, 0.8, 0.1)]
    >>> Frontier(TradeOff([Outcome(Job(point.strength, 0), point) for point in points]))
    Frontier of 2 models. The most accurate model is right in 90.0% of cases; its unfairness is 0.400.
    """

    page_title = "Accuracy and fairness"
    _in_notebooks: ClassVar[Mapping[str, Any]] = {"most_numbers": 20_000}
    _height = 720

    def __init__(self, trade_off: TradeOff) -> None:
        self._trade_off = trade_off

    @property
    def _origin(self) -> Provenance:
        return self.record.provenance

    def _document(self, origin: Provenance, title: str, **options: Any) -> str:
        return frontier_html(replace(self.view(), provenance=origin, title=title), **options)

    @property
    def record(self) -> FrontierRecord:
        """The facts of the frontier and of its choice."""
        return self._trade_off.record

    @property
    def points(self) -> tuple[Point, ...]:
        """Figures of each configuration, as they are compared."""
        return self._trade_off.points

    @property
    def models(self) -> tuple[Any, ...]:
        """The models of all rows, trained when they are first asked for; None if training failed."""
        self._trade_off.train_missing()
        return tuple(outcome.model for outcome in self._trade_off.outcomes)

    @property
    def pareto(self) -> tuple[Point, ...]:
        """The points that no other beats."""
        return self._trade_off.pareto

    @property
    def area(self) -> float:
        """Area below the Pareto front, which the paper calls AUC: the share of the unit box that
        points dominate.

        Of a loss, what it saves of the constant predictor's.
        """
        return self._trade_off.area

    @property
    def utility(self) -> Utility:
        """The measure of quality."""
        return self._trade_off.utility

    @property
    def chosen(self) -> Point | None:
        """The figures of the selected model; None if none is selected."""
        return self.record.chosen

    @property
    def constant(self) -> Point | None:
        """Figures of the best constant predictor; its strength and seed mean nothing."""
        return self.record.constant

    def select(
        self,
        *,
        max_unfairness: float | None = None,
        min_accuracy: float | None = None,
        utility: UtilityLike | None = None,
        needs_group: bool | None = None,
        confidence: float | None = None,
        best_effort: bool = False,
    ) -> Any:
        """Choose a configuration and train it on all rows.

        Pass exactly one of ``max_unfairness`` and ``min_accuracy``. Of the configurations within
        the limit, those within one standard error of the best count as equally good, and the
        simplest of them is chosen: without a penalty before with one, without the group before with
        it, then the simpler family, then the smaller strength. Constant predictors come last.

        ``chosen`` has the figures that are expected on new rows: the choice is repeated on resamples
        of the rows and evaluated on the rows that each leaves out.

        Parameters
        ----------
        max_unfairness : float, default=None
            Unfairness limit: select the best configuration within it.
        min_accuracy : float, default=None
            Minimum accuracy: select the least unfair configuration that reaches it.
        utility : str, table of costs or scorer, default=None
            Measure of quality, as in :func:`metrifair.frontier`. None: the utility of the frontier.
        needs_group : bool, default=None
            Whether prediction needs the group. False selects only models that predict without it,
            True only models that need it. None: all.
        confidence : float, default=None
            Confidence level. With ``max_unfairness``: require that the model keeps the limit in the
            population with this confidence, approximately. None: require that the estimated
            unfairness, plus an allowance for choosing among many models, is within the limit. The
            allowance takes at most half of the room that the fairest model leaves below the limit.
        best_effort : bool, default=False
            Whether to return the least unfair model if no model meets the limit. The first line of
            ``summary`` and of the representation then says so, and ``is_best_effort`` is True.

        Returns
        -------
        estimator
            Trained on all rows but the test rows.

        Raises
        ------
        DataError
            If no model meets the limit, or if these rows are too few to verify it.

        Warns
        -----
        MetrifairWarning
            If the model is not significantly better than a constant predictor, or does not meet
            the limit.

        Examples
        --------
        >>> import numpy as np
        >>> from metrifair import FairClassifier, frontier
        >>> generator = np.random.default_rng(0)
        >>> a = generator.integers(2, size=800)
        >>> X = generator.normal(size=(800, 3)) + a[:, None]
        >>> y = (X.sum(1) + generator.normal(size=800) > 1.5).astype(int)
        >>> linear = FairClassifier(model="linear")
        >>> front = frontier(linear, X, y, sensitive_features=a, strengths=[0, 1, 10], random_state=0)
        >>> front.select(max_unfairness=0.9).strength, front.select(max_unfairness=0.2).strength
        (0.0, 10.0)
        """
        goal = Goal(max_unfairness, min_accuracy, needs_group, confidence, best_effort)
        best = self._trade_off.choose(goal, utility)
        assert self.chosen is not None
        if warning := choice_warning(self.chosen, self._trade_off.chosen_by or self.utility):
            warn_user(warning)
        return best.model

    def held_out(self, backend: Backend | None = None) -> Any:
        """Predictions for rows that did not train the model that makes them.

        With ``test=``, those of the selected model for the test rows. Otherwise those of the
        selected configuration for all rows, each by a model that was trained without it.

        Parameters
        ----------
        backend : {"polars", "pandas"}, default=None
            Library of the data frame. None: polars if it is installed, else pandas.

        Returns
        -------
        data frame
            Each row's number (from 0), groups, label, prediction and probability, as ``audit``
            takes them.

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
        columns = self._trade_off.held_out()
        return frame({name: column.tolist() for name, column in columns.items()}, None, backend)

    @property
    def summary(self) -> str:
        """The chosen model and the notes, one statement per line.

        The chosen model with its figures, or the best one; its cost, whether it keeps the limit,
        the constant predictor, and the notes.

        Examples
        --------
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = Frontier(TradeOff([Outcome(Job(0.5, 0), point)]))
        >>> front.summary.splitlines()[0]
        'The most accurate model is right in 90.0% of cases; its unfairness is 0.400.'
        """
        view = self.view()
        return "\n".join((*summary(view), *note_texts(view)))

    def view(
        self, title: str | None = None, about: Mapping[str, str] | None = None
    ) -> FrontierView:
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
        trade_off = self._trade_off
        curves: dict[float | tuple[str, float], Curves] = {}
        for outcome in trade_off.outcomes:
            if outcome.curves is not None:
                curves.setdefault(outcome.point.place, outcome.curves)
        provenance = self.record.provenance.described(title, about)
        utility = trade_off.chosen_by or self.utility
        constant, constant_value = trade_off.constant_by(utility)
        record = replace(
            self.record, provenance=provenance, constant=constant, constant_value=constant_value
        )
        parameter = record.parameter
        return FrontierView(
            self.points,
            curves,
            title=provenance.title or self.page_title,
            labels={} if parameter == "strength" else {"strength": parameter},
            utility=utility,
            areas=(self.area, trade_off.area_with_constant),
            gaps_with_allowance=trade_off.gaps_with_allowance,
            **vars(record),
        )

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The points as a data frame, one row each.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            Library of the data frame. None: that of the data, else polars if it is installed, else
            pandas.

        Returns
        -------
        data frame
            Strength, seed, figures with the ends of their intervals, whether the unfairness cannot
            be distinguished from 0, the mark of models that are not significantly better than a
            constant, which are overfit, and which model is chosen. It has its own figures, as in
            ``chosen``; the others have those by which they were compared. Of several families also
            theirs, the parameter that "strength" is of, and whether the group is needed to predict.

        Examples
        --------
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = Frontier(TradeOff([Outcome(Job(0.5, 0), point)]))
        >>> front.to_frame("pandas")[["strength", "accuracy", "unfairness"]].to_dict("records")
        [{'strength': 0.5, 'accuracy': 0.9, 'unfairness': 0.4}]
        """
        view = self.view()
        library = backend or self._trade_off.library
        return make_frame(view.shown, point_table(view).frame(), library)

    def plot(self, *, title: str | None = None, ax: Axes | None = None) -> ChartDisplay:
        """Draw models, Pareto front, the chosen model and its limit with matplotlib.

        Parameters
        ----------
        title : str, default=None
            Title of the chart. None: "Accuracy and fairness".
        ax : matplotlib.axes.Axes, default=None
            The axes to draw on. None: those of a new figure.

        Returns
        -------
        ChartDisplay
            With the axes ``ax_`` and the figure ``figure_``, to restyle and to save.

        Raises
        ------
        MissingExtra
            If matplotlib is not installed.
        DataError
            If every model failed.

        Examples
        --------
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = Frontier(TradeOff([Outcome(Job(0.5, 0), point)]))
        >>> display = front.plot()                          # display.figure_.savefig("front.png")
        >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
        ('Unfairness', 'Accuracy')
        """
        return frontier_chart(self.view(title), ax)

    def to_json(self, path: str | Path | None = None) -> str:
        """The figures of all models and the record as strict JSON text.

        An object with ``kind`` ("metrifair frontier"), ``version`` (1), ``utility``, ``points``
        (those by which models were compared), ``area``, ``threshold`` (of the decisions of the
        selected model, if it was chosen) and the fields of the record by their names. Missing
        values are null; there is no NaN. ``summary`` and the ``text`` of each note are for people;
        no reader uses them.

        Parameters
        ----------
        path : str or Path, default=None
            The file, if the text is to be written too.

        Returns
        -------
        str
            The text.

        Examples
        --------
        >>> import json
        >>> point = Point(0.5, 0, 0.9, 0.4)
        >>> front = Frontier(TradeOff([Outcome(Job(0.5, 0), point)]))
        >>> json.loads(front.to_json())["points"][0]["accuracy"]
        0.9
        """
        view = self.view()
        notes = [
            {"kind": note.kind, "facts": note.facts, "text": note_text(note)}
            for note in view.all_notes
        ]
        fields = {
            "utility": view.utility.name,
            "points": [asdict(point) for point in self.points],
            "area": self.area,
            "area_with_constant": self._trade_off.area_with_constant,
            "threshold": self._trade_off.threshold,
            **asdict(replace(self.record, notes=(), choice_notes=())),
            "notes": notes,
        }
        del fields["choice_notes"]
        return write_json(result_fields("frontier", list(summary(view)), **fields), path)

    def to_evidence(
        self,
        path: PathLike,
        *,
        reason: str,
        title: str | None = None,
        about: Mapping[str, str] | None = None,
        model: PathLike | None = None,
        scores: PathLike | None = None,
        min_cell: int = 1,
        sign: PathLike | None = None,
        again: bool = False,
    ) -> None:
        """Write the search as evidence that others can verify: every configuration, the Pareto
        front, the limit, the choice and its reason.

        The out-of-fold scores of every configuration are counted by fold, group and label, in
        intervals of a public grid. All figures are computed from the counts, with bounds between
        which those of the scores lie. ``metrifair.evidence.verify`` recomputes them, and the choice
        from these and the recorded standard errors.

        Parameters
        ----------
        path : str or path-like
            The folder of evidence: a new one, or a .zip file.
        reason : str
            Why this model was chosen and no other, in a sentence of yours.
        title : str, default=None
            Title of the report.
        about : dict of str, default=None
            Metadata shown in the report. The manifest contains it too.
        model : str or path-like, default=None
            The file of the delivered model. The evidence contains its name and its sha256.
        scores : str or path-like, default=None
            A csv file for the out-of-fold scores of all rows, which is not part of the evidence.
            With it, ``verify`` also recomputes the standard errors and the expected figures.
        min_cell : int, default=1
            Minimum number of rows in a cell: a group with a fold, a stratum and a label. Rows of
            groups with a smaller cell are withheld, and intervals are merged until each count has
            so many rows.
        sign : str or path-like, default=None
            Private SSH key with which ``ssh-keygen`` signs the manifest.
        again : bool, default=False
            Whether to release the same rows again with other parameters, which can show more than
            either release. ``metrifair-releases.json`` beside the evidence lists the releases.

        Raises
        ------
        DataError
            If no model is selected, the frontier comes from a file, counts cannot show its figures
            (weights, clusters, group probabilities, test rows, more than two classes, or scores
            that are not probabilities), the rows were released with other parameters, or ``path``
            cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from metrifair import FairClassifier, frontier
        >>> from metrifair.evidence import verify
        >>> generator = np.random.default_rng(0)
        >>> a = generator.integers(2, size=600)
        >>> X = generator.normal(size=(600, 3)) + a[:, None]
        >>> y = (X.sum(1) + generator.normal(size=600) > 1.5).astype(int)
        >>> linear = FairClassifier(model="linear")
        >>> front = frontier(linear, X, y, sensitive_features=a, strengths=[0, 1, 3], random_state=0)
        >>> model = front.select(max_unfairness=0.4)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     front.to_evidence(Path(folder, "search"), reason="The best model within our limit.")
        ...     verify(Path(folder, "search")).agrees
        True
        """
        from metrifair.api.search_evidence import write_search_evidence  # noqa: PLC0415  (a search needs none)

        provenance = self.record.provenance.described(title, about)
        trade_off = copy(self._trade_off)
        trade_off.record = replace(self.record, provenance=provenance)
        write_search_evidence(
            trade_off,
            path,
            reason=reason,
            model=model,
            scores=scores,
            min_cell=min_cell,
            sign_with=sign,
            again=again,
        )

    def save(self, path: PathLike) -> None:
        """Write figures and models to one file, which ``metrifair.load`` reads without running any
        code.

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
        >>> front = Frontier(TradeOff([Outcome(Job(0.5, 0), point)]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     front.save(Path(folder, "front.metrifair"))
        ...     load(Path(folder, "front.metrifair")).points == front.points
        True
        """
        write_frontier(path, self._trade_off)

    def __repr__(self) -> str:
        view = self.view()
        failed = sum(row.failed for row in view.rows)
        lost = f" ({failed} failed)" if failed else ""
        answer = headline(view)[0]
        return f"Frontier of {count_text(len(self.points), 'model')}{lost}. {answer}"
