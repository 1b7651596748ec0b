"""A training file: its features, label and groups, and the estimator to fit."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

import metrifair
from metrifair.api.frontier import Frontier
from metrifair.auditing.notes import naming_notes
from metrifair.auditing.sources.file_formats import DAY_OR_MONTH
from metrifair.auditing.sources.typed_tables import typed_text
from metrifair.auditing.sources.used_rows import probabilities_in
from metrifair.cli.columns import prediction_columns
from metrifair.cli.console import collected_warnings, working
from metrifair.cli.options import continuous_argument, cuts_argument
from metrifair.cli.tables import (
    PredictionTable,
    check_leakage,
    free_name,
    strip_texts,
    with_plain_words,
    with_predictions,
)
from metrifair.cli.training_options import ChoiceOptions, Sweep, TrainingOptions
from metrifair.encoding.coders import level_name, strays_in, typed
from metrifair.encoding.encoder import TableEncoder
from metrifair.errors import DataError, MetrifairWarning, Remedy
from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.estimators.convergence import training_slack
from metrifair.estimators.table_model import UTILITY_OF_RULE, TableModel
from metrifair.figures.utility import Predictions, UtilityLike
from metrifair.problem.attributes import cuts_by_column, in_groups, number_facts, numbers_among
from metrifair.problem.criteria import criterion_named
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.predictions import value_counts
from metrifair.problem.problem import classes_in, positive_by_name, positive_place
from metrifair.problem.tables import (
    MOST_CLASSES,
    CodedColumn,
    ColumnArray,
    coded_columns,
    columns,
    is_missing,
    take_rows,
)
from metrifair.problem.values import place_among
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_known
from metrifair.support.provenance import CUTS, Provenance, SourceFile, made_now
from metrifair.tradeoff.family_names import POSTPROCESSORS
from metrifair.tradeoff.frontier import (
    FrontierRequest,
    group_notes,
    positive_label_note,
    trade_off,
)
from metrifair.tradeoff.points import FrontierNote
from metrifair.tradeoff.portfolio import AUTO
from metrifair.tradeoff.repeats import repeat_notes
from metrifair.tradeoff.result import TradeOff
from metrifair.tradeoff.split import DataSet, data_set
from metrifair.tradeoff.sweep import SearchOptions
from metrifair.tradeoff.thresholds import Threshold
from metrifair.wording.frontier import note_text, note_texts
from metrifair.wording.numbers import count_text, listed

_MOST_LEVELS = 50  # more distinct values are neither groups nor classes
# LightGBM would write to standard output, where results may go.
_BOOSTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lightgbm": ("LGBM", {"verbosity": -1}),
    "xgboost": ("XGB", {}),
}


@dataclass(frozen=True, eq=False)
class TrainingFile:
    """Training data and estimator of a file."""

    options: TrainingOptions
    table: pl.DataFrame  # all columns of the rows with a label
    numbers: Integers  # of these rows in the file, from 1
    features: pl.DataFrame
    data: DataSet  # X contains the features unencoded
    arguments: dict[str, Any]  # further arguments of ``fit``
    estimator: Any
    left_out: int  # rows without a label
    files: tuple[SourceFile, ...] = ()
    notes: tuple[FrontierNote, ...] = ()  # caveats about the columns

    @property
    def labels(self) -> pl.Series:
        """The labels, under the name of their column."""
        return pl.Series(self.options.label, self.data.y)

    @property
    def clusters(self) -> pl.Series | None:
        """The cluster of each row, which is never split; None if there are no clusters."""
        return None if self.options.cluster is None else self.table.get_column(self.options.cluster)

    @property
    def title(self) -> str:
        """The title of a report."""
        return self.options.title or f"{self.options.label} by {', '.join(self.options.attributes)}"

    def encoder(self, rows: Integers) -> TableEncoder:
        """An encoder fitted to these rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the notes contain it, for all rows
            return TableEncoder().fit(self.features[rows])

    def predictions(
        self, model: TableModel, rows: Integers, predictions: Predictions | None = None
    ) -> PredictionTable:
        """Predictions for these rows, beside their ids (or numbers in the file) and the columns
        that an audit needs.

        The model makes them, unless ``predictions`` of models without the rows are passed.
        """
        options = self.options
        frame = self.table[rows]
        shown_roles = ("id", "group", "control", "weight", "label")
        names = list(dict.fromkeys(name for role in shown_roles for name in options.roles[role]))
        # As the model names them: in csv the label 1 is read as 1.0.
        shown = frame.select(names).with_columns(pl.Series(options.label, self.data.y[rows]))
        if not options.ids:
            numbers = pl.Series(free_name("row", names), self.numbers[rows])
            shown = shown.select(numbers, pl.all())
        result = with_predictions(shown, model, frame, predictions)
        if model.classes is None or len(model.classes) > 2 or model.has_probabilities:
            return result
        decided = (
            result.table.get_column(result.columns[-1]).to_numpy() == model.classes[model.positive]
        )
        name = free_name("decision", result.table.columns)
        table = result.table.with_columns(pl.Series(name, decided.astype(np.int64)))
        return PredictionTable(table, (*result.columns, name))

    def frontier(self, sweep: Sweep, call: str, *, limit: float | None = None) -> Frontier:
        """The frontier of families, or of the options' model, for the command ``call``.

        A ``limit`` of unfairness that these rows cannot verify is refused before training.
        """
        families = sweep.families or ()
        automatic = bool(families) and families[0] == AUTO
        estimator: Any = AUTO
        if not automatic:
            # each model has an encoder of its own training rows
            estimator = {name: _with_encoder(self._family(name)) for name in families}
            estimator = estimator or _with_encoder(self.estimator)
        search = SearchOptions(seeds=sweep.seeds, budget=sweep.budget, ledger=sweep.ledger)
        if automatic and families[1:]:
            search = replace(search, families=families[1:])
        request = FrontierRequest(
            estimator,
            self.features,
            self.labels,
            **self.arguments,
            clusters=self.clusters,
            strengths=sweep.strengths,
            folds=sweep.folds,
            test=sweep.test,
            utility=_utility(sweep),
            unfairness_of=sweep.unfairness_of,
            random_state=self.options.seed,
            search=search,
            template=self.estimator if automatic else None,
            threshold=self._threshold(sweep),
            limit=limit,
        )
        with _training(self.options.model) as warned:
            # the notes have it
            warnings.filterwarnings("ignore", message=".*make it a category to have names")
            found = trade_off(request)
        notes = [*self.repeats(self._parts_of(found)), *self.notes, *warned.notes]
        found.record = replace(
            found.record,
            notes=(
                *self._unexpected(found.record.notes),
                *_new_notes(notes, known=note_texts(found.record)),
            ),
            provenance=self._provenance(call),
        )
        return Frontier(_needing_the_group(found) if self.options.use_group else found)

    def _unexpected(self, notes: Iterable[FrontierNote]) -> Iterator[FrontierNote]:
        """The notes, but none on a feature that shows the group where the user wants it."""
        wanted = set(self.options.keep)
        if self.options.use_group:
            wanted.update(self.options.group)
        for note in notes:
            if note.kind != "group_feature" or note.facts["column"] not in wanted:
                yield note

    def _provenance(self, call: str) -> Provenance:
        """The provenance of the figures: the files, their rows and columns, and the command."""
        options = self.options
        return Provenance(
            title=options.title or "",
            about=options.statements,
            files=self.files,
            rows_read=len(self.table) + self.left_out,
            left_out={
                "missing_label": self.left_out,
                "zero_weight": len(self.table) - len(self.data.rows),
            },
            columns={
                **{
                    role: options.roles[role]
                    for role in ("label", "group", "control", "weight", "cluster", "id")
                },
                "feature": self.features.columns,
            },
            reading=self._reading(),
            call=call,
            seed=options.seed,
            **made_now(),
        )

    def _reading(self) -> dict[str, Any]:
        """How the file was read, and where its groups were cut, if not by default."""
        options = self.options
        reading = options.reading.changed
        if options.cuts and options.proxy is None:
            reading[CUTS] = cuts_by_column(cuts_argument(options.cuts), options.group)
        return reading

    def _threshold(self, sweep: Sweep) -> Threshold | None:
        """The threshold of the decisions; None: the models decide."""
        if sweep.threshold is None and sweep.rule is None:
            return None
        classes = len(self.data.problem.scheme.classes)
        if classes != 2:
            raise DataError(
                f"a threshold decides between two classes, which {self.options.label!r} does not "
                "have"
            )
        if sweep.costs is not None and len(sweep.costs) != classes:
            raise DataError(
                "--cost must be 2 rows of 2 costs, by label and decision, in ascending order of "
                "the classes"
            )
        return Threshold(sweep.threshold, sweep.rule or "accuracy", sweep.costs)

    def _parts_of(self, found: TradeOff) -> Integers:
        """The fold of each row; test rows have a number of their own."""
        source = found.source
        assert source is not None
        part = np.full(len(self.data.rows), found.record.folds)
        part[np.searchsorted(self.data.rows, source.rows)] = source.fold
        return part

    def select(self, front: Frontier, choice: ChoiceOptions) -> tuple[TableModel, list[str]]:
        """The chosen model, or the only one without a limit; and warnings that its training has not
        converged.

        Other warnings are those of the frontier, which ``show_frontier`` prints.
        """
        with _training(self.options.model) as warned:
            warnings.simplefilter("ignore", MetrifairWarning)
            if choice.max_unfairness is None:
                best = front._trade_off.choose_only().model
            else:
                best = front.select(
                    max_unfairness=choice.max_unfairness,
                    needs_group=False if choice.without_group else None,
                    confidence=choice.confidence,
                    best_effort=choice.best_effort,
                )
        encoder, estimator = (step for _, step in best.steps)
        model = self.model(encoder, estimator, front._trade_off.threshold)
        source = front._trade_off.source
        assert source is not None
        texts = [*warned.unfinished, *self._slack_texts(model, source.rows)]
        known = note_texts(front.record)
        return model, [text for text in texts if text not in known]

    def _slack_texts(self, model: TableModel, rows: Integers) -> Iterator[str]:
        """A warning if the model is far from the optimum of its training rows."""
        # A stack's last model is trained on predictions for held-out rows, which are not available
        # here.
        is_plain = type(model.estimator) in (FairClassifier, FairRegressor)
        if not is_plain or self.options.proxy is not None:
            return
        arguments = {name: take_rows(table, rows) for name, table in self.arguments.items()}
        X = model.encoder.transform(self.features[rows])
        slack = training_slack(model.estimator, X, self.labels[rows], **arguments)
        if slack.unfinished:
            yield (
                "training has not converged: rescaling the outputs would lower the objective on "
                "training rows from "
                f"{slack.objective:.4g} to {slack.attainable:.4g} (a constant predictor has "
                f"{slack.constant:.4g}). "
                "Lower --strength, or train longer in Python, with more epochs."
            )

    def repeats(self, part: Integers) -> Iterator[FrontierNote]:
        """Notes on rows that rows of other folds repeat, or their ids; ``part`` is the fold of each
        row, or -1 if no figure is of it.
        """
        ids = {
            name: columns(name, self.table.get_column(name))[name][self.data.rows]
            for name in self.options.ids
        }
        return repeat_notes(self.data, part, ids)

    def _family(self, name: str) -> Any:
        """The estimator of a family; post-processors are around the model of the options,
        trained without penalty.
        """
        options = self.options
        regression = not self.data.problem.scheme.classes
        positive = None if regression else self.estimator.pos_label
        numbers = self.estimator.continuous or ()
        settings: dict[str, Any] = {
            "regression": regression,
            "positive": positive,
            "continuous": numbers,
        }
        if name not in POSTPROCESSORS:
            return _estimator(replace(options, model=name), strength=1.0, **settings)
        if numbers:
            raise DataError(
                f"--families {name} needs groups, and {numbers[0]!r} is a number; cut it with "
                "--cuts"
            )
        base = _estimator(options, strength=0.0, **settings)
        if not regression and len(self.data.problem.scheme.classes) > 2:
            raise DataError(f"--families {name} is for two classes or a number; leave it out")
        if name == "thresholds":
            if regression:
                raise DataError(
                    "--families thresholds decides between two classes, and a number is predicted; "
                    "leave it out"
                )
            return metrifair.ThresholdPostprocessor(
                base, criterion=options.criterion, pos_label=positive
            )
        if criterion_named(options.criterion).name != "statistical_parity":
            raise DataError(
                f"--families barycenter is for statistical_parity, not for {options.criterion}; "
                "use thresholds instead"
            )
        return metrifair.BarycenterPostprocessor(base)

    def model(
        self, encoder: TableEncoder, estimator: Any, threshold: float | None = None
    ) -> TableModel:
        """A fitted estimator that takes raw tables."""
        options = self.options
        hashes = tuple(file.sha256 for file in self.files)
        return TableModel(
            encoder,
            estimator,
            options.label,
            tuple(options.roles["group"]),
            options.ids,
            threshold,
            training_files=hashes,
        )

    def description(self, encoder: TableEncoder) -> list[str]:
        """A description of the file, line by line."""
        label = repr(self.options.label)
        scheme = self.data.problem.scheme
        if scheme.classes:
            what = f"{label}: {', '.join(map(str, scheme.classes))}"
        else:
            what = f"the number {label}"
        groups = "; ".join(
            f"{attribute.name}: {', '.join(map(str, attribute.groups))}"
            + (" (a number, shown in bands)" if attribute.cuts else "")
            for attribute in scheme.attributes
        )
        names = [repr(name) for name in encoder.coders_]
        numbers = len(encoder.get_feature_names_out())
        lines = [
            f"Learned {what} (groups: {groups}).",
            (
                f"Features: {listed(names)} ({count_text(len(names), 'column')}, as "
                f"{count_text(numbers, 'number')})."
            ),
        ]
        lines += [
            f"Left out: column {name!r} {reason}." for name, reason in encoder.dropped_.items()
        ]
        if self.left_out:
            lines.append(f"Left out: {count_text(self.left_out, 'row')} without a label.")
        return lines


def _utility(sweep: Sweep) -> UtilityLike:
    """The measure of quality: costs, the one that is named, or that of the threshold's rule."""
    if sweep.costs is not None:
        return sweep.costs
    if sweep.rule is not None and sweep.utility == "auto":
        return UTILITY_OF_RULE[sweep.rule]
    return sweep.utility


def _with_encoder(estimator: Any) -> Pipeline:
    return Pipeline([("encoder", TableEncoder()), ("model", estimator)])


def _needing_the_group(found: TradeOff) -> TradeOff:
    """The frontier of models that all need the group, which is one of their features."""
    source = found.source
    assert source is not None
    outcomes = [
        replace(outcome, point=replace(outcome.point, needs_group=True))
        for outcome in found.outcomes
    ]
    source = replace(source, group_aware=frozenset(source.jobs))
    return replace(found, outcomes=outcomes, source=source)


def training_file(
    options: TrainingOptions, table: pl.DataFrame, files: Sequence[SourceFile], *, strength: float
) -> TrainingFile:
    """Read labels, groups and features of a table, and make the estimator."""
    with_words = with_plain_words(table, options.label)
    numbers = 1 + np.flatnonzero(with_words.get_column(options.label).is_not_null().to_numpy())
    labeled = with_words.drop_nulls(options.label)
    labels, regression = _labels(options, labeled)
    positive = None if regression else _positive(options, labels)
    sensitive, continuous, of_numbers = _sensitive(options, labeled)
    arguments: dict[str, Any] = {"sensitive_features": sensitive}
    if options.control:
        controls = {
            name: _groups("--control", labeled.get_column(name)) for name in options.control
        }
        arguments["control_features"] = controls
    if options.weight is not None:
        arguments["sample_weight"] = _weights(labeled.get_column(options.weight))
    labeled = strip_texts(labeled, [*options.group, *options.ids])
    groups = () if options.use_group else options.roles["group"]
    roles = ("label", "weight", "cluster", "ignore", "id")
    features = labeled.drop({*groups, *(name for role in roles for name in options.roles[role])})
    if not features.columns:
        raise DataError("no column is left as a feature; ignore fewer columns")
    data = data_set(
        features,
        {options.label: labels},
        arguments["sensitive_features"],
        arguments.get("control_features"),
        regression=regression,
        criterion=options.criterion,
        contrast=options.contrast,
        continuous=continuous,
        pos_label=positive,
        sample_weight=arguments.get("sample_weight"),
        clusters=None if options.cluster is None else labeled.get_column(options.cluster),
    )
    label = labeled.get_column(options.label)
    leaks = check_leakage(features, label, keep=options.keep, number=regression)
    estimator = _estimator(
        options, regression=regression, strength=strength, positive=positive, continuous=continuous
    )
    notes = (*leaks, *of_numbers, *_notes(options, data, features))
    left_out = len(table) - len(labeled)
    return TrainingFile(
        options,
        labeled,
        numbers,
        features,
        data,
        arguments,
        estimator,
        left_out,
        tuple(files),
        notes,
    )


def _new_notes(notes: Iterable[FrontierNote], known: Iterable[str]) -> list[FrontierNote]:
    """The notes whose sentences are not ``known``, each once."""
    new: list[FrontierNote] = []
    texts = {"", *known}
    for note in notes:
        text = note_text(note)
        if text not in texts:
            texts.add(text)
            new.append(note)
    return new


def _notes(
    options: TrainingOptions, data: DataSet, features: pl.DataFrame
) -> Iterator[FrontierNote]:
    """Caveats about the label, the groups and the features."""
    scheme = data.problem.scheme
    if not options.positive and len(scheme.classes) == 2:
        yield positive_label_note(scheme)
    yield from group_notes(data.problem)
    yield from _odd_columns(features)
    for name in features.select(pl.selectors.temporal()).columns:
        yield FrontierNote("dates", {"column": name})
    predictions = [name for name in prediction_columns(features) if name not in options.keep]
    if predictions:
        yield FrontierNote("predictions", {"columns": predictions})
    for attribute in scheme.attributes:
        for note in naming_notes(attribute.name, attribute.groups):
            yield FrontierNote(note.kind, note.facts)


def _odd_columns(features: pl.DataFrame) -> Iterator[FrontierNote]:
    """Caveats about columns of text that are numbers except for a few cells, or dates."""
    texts = [
        with_plain_words(features, name)[name]
        for name in features.select(pl.selectors.string()).columns
    ]
    for text in texts:
        if (strays := strays_in(text)) is not None:
            yield FrontierNote("stray_cells", {"column": text.name, **strays._asdict()})
    for days in (text.drop_nulls() for text in texts):
        if len(days) and days.str.contains(DAY_OR_MONTH).all():
            yield FrontierNote("dates_as_text", {"column": days.name, "example": days[0]})


def _labels(options: TrainingOptions, frame: pl.DataFrame) -> tuple[ColumnArray, bool]:
    """The labels, and whether they are numbers; `problem` decides where the user does not."""
    name = options.label
    classification = options.classification
    (column,) = columns(name, frame.get_column(name)).values()
    kind, values = typed(name, column)
    if kind is None or kind == "date":
        raise DataError(
            f"--label {name!r} contains {'dates' if kind else 'no values'}; name classes or numbers"
        )
    different = CodedColumn(name, values).levels()
    if kind == "number":
        is_whole = bool((values == values.round()).all())
        if classification is False or (
            classification is None and not (is_whole and classes_in("y", different))
        ):
            return values, True
        if not is_whole or len(different) > _MOST_LEVELS:
            raise DataError(
                f"--label {name!r} takes {len(different):,} values, too many for classes; use "
                "--regression"
            )
        return values.astype(np.int64), False
    strays = strays_in(values)
    if classification is False:
        example = values[0] if strays is None else strays.example
        raise DataError(
            f"--label {name!r} is not a number, but contains {example!r}; leave --regression out"
        )
    if strays is not None and classification is None and len(different) > MOST_CLASSES:
        raise DataError(
            f"--label {name!r} contains numbers, except for {strays.cells:,} of its "
            f"{strays.known:,} values, such as "
            f"{strays.example!r}; correct or empty these cells, or use --classification"
        )
    if len(different) > _MOST_LEVELS:
        raise DataError(
            f"--label {name!r} takes {len(different):,} different texts, too many for classes; "
            "name another column, or "
            "merge them"
        )
    return (values.astype(str) if kind == "text" else column.astype(np.bool_)), False


def _positive(options: TrainingOptions, labels: ColumnArray) -> object:
    """The positive class that the user names; None: the last in ascending order, as in Python.

    Two texts must be named unless their words show that the last one is positive.
    """
    classes = {str(label): label for label in sorted(set(labels.tolist()))}
    if options.positive is not None:
        values = list(classes.values())
        if (place := place_among(options.positive, values)) is not None:
            return values[place]
        check_known("--positive", options.positive, classes)
    if len(classes) != 2 or labels.dtype.kind in "bif":
        return None
    if positive_by_name(list(classes)) != positive_place(list(classes), None):
        counts = value_counts(Counter(map(str, labels)).items())
        raise DataError(
            f"the positive value of the label {options.label!r} must be named: {counts}",
            remedy=Remedy("pos_label"),
        )
    return None


def _sensitive(
    options: TrainingOptions, frame: pl.DataFrame
) -> tuple[dict[str, ColumnArray] | GroupProbabilities, list[str], list[FrontierNote]]:
    """The groups; which of them are numeric; and a note where that was decided automatically."""
    if options.proxy is not None:
        return probabilities_in(options.proxy, frame), [], []
    cuts = cuts_by_column(cuts_argument(options.cuts), options.group)
    continuous = continuous_argument(options.continuous, options.group)
    groups = dict[str, ColumnArray]()
    values = dict[str, ColumnArray]()
    for name in options.group:
        column = typed_text(frame.get_column(name))
        if column.dtype.is_numeric():
            values[name] = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        elif name in cuts or (isinstance(continuous, list) and name in continuous):
            other = column.filter(
                column.cast(pl.String).cast(pl.Float64, strict=False).is_null()
            ).drop_nulls()
            raise DataError(
                f"--group {name!r} must be a number, and contains {other[0]!r}",
                remedy="correct its values, or name words for missing values with --missing",
            )
    coded = coded_columns("--group", values)
    numbers = [name for name in numbers_among(coded, continuous) if name not in cuts]
    for name in options.group:
        if name in numbers:
            groups[name] = values[name]
        elif name in cuts:
            groups |= in_groups({name: values[name]}, cuts[name])
        else:
            groups[name] = _groups("--group", frame.get_column(name))
    notes = [FrontierNote("numbers", number_facts(coded, numbers)._asdict())]
    return groups, numbers, notes if numbers and continuous == "auto" else []


def _groups(option: str, series: pl.Series) -> ColumnArray:
    """The name of each row's group; None if it is missing."""
    (column,) = columns(series.name, series).values()
    missing = is_missing(column)
    names = np.full(len(column), None, dtype=object)
    names[~missing] = [level_name(value) for value in column[~missing].tolist()]
    different = len(set(names[~missing].tolist()))
    if different > _MOST_LEVELS:
        advice = "cut it into ranges first"
        if option == "--group":
            advice = "cut a number with --cuts"
        raise DataError(
            f"{option} {series.name!r} takes {different:,} values, more than {_MOST_LEVELS}; "
            f"{advice}"
        )
    return names


def _weights(series: pl.Series) -> Floats:
    """The weight of each row."""
    (column,) = columns(series.name, series).values()
    kind, values = typed(series.name, column)
    if (
        kind != "number"
        or is_missing(column).any()
        or not (np.isfinite(values) & (values >= 0)).all()
    ):
        raise DataError(
            f"--weight {series.name!r} must contain a number from 0 upwards in every row"
        )
    return values.astype(np.float64)


def _estimator(
    options: TrainingOptions,
    *,
    regression: bool,
    strength: float,
    positive: object,
    continuous: Sequence[str],
) -> Any:
    settings: dict[str, Any] = options.aim() | {"random_state": options.seed}
    settings["continuous"] = list(continuous) or False
    if not regression:
        settings["pos_label"] = positive
    family, more = _BOOSTERS.get(options.model, ("", {"model": options.model, "verbose": True}))
    kind = getattr(metrifair, f"Fair{family}{'Regressor' if regression else 'Classifier'}")
    return kind(strength, **settings, **more)


class TrainingWarnings(NamedTuple):
    """The warnings of training."""

    notes: list[FrontierNote]
    unfinished: list[str]  # the words of convergence warnings


@contextmanager
def _training(model: str) -> Iterator[TrainingWarnings]:
    """Show progress of boosters (networks have their own bar), and raise errors of estimators as
    DataError.

    It collects the warnings of metrifair and of convergence; others are emitted.
    """
    warned = TrainingWarnings([], [])
    status = working("Boosting") if model in _BOOSTERS else nullcontext()
    try:
        with status, collected_warnings(MetrifairWarning, ConvergenceWarning) as caught:
            yield warned
        for text, warning in caught.items():
            message = f"{text[0].upper()}{text[1:]}"
            kind = "training_warning"
            if isinstance(warning, ConvergenceWarning):
                kind = "not_converged"
                warned.unfinished.append(message)
            warned.notes.append(FrontierNote(kind, {"message": message}))
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"--model {model} cannot be trained on this: {error}") from error
