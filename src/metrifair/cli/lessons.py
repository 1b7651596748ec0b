"""A file as something to learn from: features, target, groups and the estimator that is to learn it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console

import metrifair
from metrifair.checks import check_known
from metrifair.cli.learning import Request
from metrifair.cli.reading import read, without_missing_words
from metrifair.cli.terminal import printable, working
from metrifair.encoding.column_types import level_name, strays_in, typed
from metrifair.encoding.encoder import TableEncoder
from metrifair.encoding.table_model import TableModel
from metrifair.errors import DataError
from metrifair.metrics.registry import METRICS
from metrifair.problem.criteria import criterion_named
from metrifair.problem.tables import Column, columns, is_missing
from metrifair.tradeoff.frontier import Frontier
from metrifair.tradeoff.holdout import DataSet, data_set, rows_of

_MOST_CLASSES = 10  # more different numbers are a quantity, unless the user says otherwise
_MOST_LEVELS = 50  # more different values are neither groups nor classes
# LightGBM would write to standard output, where results may go.
_BOOSTERS: dict[str, tuple[str, dict[str, Any]]] = {"lightgbm": ("LGBM", {"verbosity": -1}), "xgboost": ("XGB", {})}


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is learned from a file."""

    request: Request
    features: pl.DataFrame
    data: DataSet  # X holds the features as they are
    groups: dict[str, Column]
    control: dict[str, Column] | None
    estimator: Any
    left_out: int  # rows without a target
    notes: tuple[str, ...] = ()  # what to know of the columns

    @property
    def regression(self) -> bool:
        """True where the target is a number."""
        return not self.data.classes

    @property
    def accuracy_name(self) -> str:
        """What the first figure of a point is called."""
        return "R2" if self.regression else "accuracy"

    def encoder(self, rows: NDArray[np.int64]) -> TableEncoder:
        """An encoder that has seen these rows only."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the notes say it, of all rows
            return TableEncoder().fit(self.features[rows])

    def fitted(self, encoder: TableEncoder, rows: NDArray[np.int64]) -> TableModel:
        """The model trained on these rows."""
        given = {"sensitive_features": self.groups, "control_features": self.control}
        others = {name: rows_of(table, rows) for name, table in given.items() if table is not None}
        with _training(self.request.model):
            self.estimator.fit(encoder.transform(self.features[rows]), self.data.y[rows], **others)
        return self.model(encoder, self.estimator)

    def frontier(self, *, strengths: Any, seeds: int) -> tuple[TableEncoder, Frontier]:
        """Models of all strengths and seeds; the encoder has seen their training rows only."""
        share, seed = 0.25, self.request.seed
        encoder = self.encoder(self.data.split(share, share, seed).train)  # ``frontier`` makes the same split
        with _training(self.request.model):
            front = metrifair.frontier(
                self.estimator,
                encoder.transform(self.features),
                self.data.y,
                sensitive_features=self.groups,
                control_features=self.control,
                strengths=strengths,
                seeds=seeds,
                validation=share,
                test=share,
                random_state=seed,
            )
        return encoder, replace(front, notes=(*front.notes, *self.notes))

    def model(self, encoder: TableEncoder, estimator: Any) -> TableModel:
        """A fitted estimator that takes raw tables."""
        return TableModel(encoder, estimator, self.request.target, self.request.sensitive, self.request.ids)

    def introduce(self, out: Console, encoder: TableEncoder) -> None:
        """Say what was found in the file."""
        target = repr(self.request.target)
        what = f"the number {target}" if self.regression else f"{target}: {', '.join(map(str, self.data.classes))}"
        groups = "; ".join(
            f"{attribute.name}: {', '.join(map(str, attribute.groups))}" for attribute in self.data.groups.attributes
        )
        out.print(f"Learned {printable(what)} (groups: {printable(groups)}).")
        out.print(f"Features: {len(encoder.coders_)} columns, as {len(encoder.get_feature_names_out())} numbers.")
        for name, reason in encoder.dropped_.items():
            out.print(f"Left out: column {printable(repr(name))} {reason}.")
        if self.left_out:
            out.print(f"Left out: {self.left_out:,} row{'' if self.left_out == 1 else 's'} without a target.")


def lesson_of(request: Request, *, strength: float) -> Lesson:
    """Read the file and find out what is to be learned."""
    criterion = criterion_named(request.criterion)
    check_known("--metric", request.metric, METRICS)
    roles = {"target": [request.target], "sensitive": request.sensitive, "control": request.control}
    frame = read(
        request.file,
        separator=request.separator,
        format=request.format,
        texts=[*request.sensitive, *request.control],
        roles=roles | {"ignore": request.ignore, "id": request.ids},
    )
    if request.target in request.sensitive:
        raise DataError(f"--target and --sensitive both name {request.target!r}; they must be two columns")
    known = without_missing_words(frame, request.target).drop_nulls(request.target)
    labels, regression = _target(request, known)
    positive = None if regression else _positive(request, labels)
    groups = {name: _groups("--sensitive", known.get_column(name)) for name in request.sensitive}
    control = {name: _groups("--control", known.get_column(name)) for name in request.control} or None
    sensitive = () if request.use_sensitive else request.sensitive
    features = known.drop({request.target, *sensitive, *request.ignore, *request.ids})
    if not features.columns:
        raise DataError("no column is left to learn from; ignore fewer of them")
    data = data_set(
        features,
        labels,
        groups,
        control,
        regression=regression,
        criterion=criterion,
        contrast="pairs",
        pos_label=positive,
    )
    estimator = _estimator(request, regression=regression, strength=strength, positive=positive)
    notes = tuple(
        f"{strays.note(column.name)}, or leave it out with --ignore."
        for column in features.select(pl.selectors.string())
        if (strays := strays_in(without_missing_words(features, column.name)[column.name])) is not None
    )
    return Lesson(request, features, data, groups, control, estimator, len(frame) - len(known), notes)


def _target(request: Request, frame: pl.DataFrame) -> tuple[Column, bool]:
    """The target, and whether it is a number."""
    name, wanted = request.target, request.classification
    (column,) = columns(name, frame.get_column(name)).values()
    kind, values = typed(name, column)
    if kind is None or kind == "date":
        raise DataError(f"--target {name!r} holds {'dates' if kind else 'no values'}; name classes or numbers")
    if kind != "number":
        if wanted is False:
            strays = strays_in(values)
            example = values[0] if strays is None else strays.example
            raise DataError(f"--target {name!r} is no number, but such as {example!r}; leave --regression out")
        _check_classes(name, values, wanted)
        return (values.astype(str) if kind == "text" else column.astype(np.bool_)), False
    different = np.unique(values)
    whole = bool((different == different.round()).all())
    if wanted and (not whole or len(different) > _MOST_LEVELS):
        raise DataError(f"--target {name!r} takes {len(different):,} values, too many for classes; use --regression")
    if wanted or (wanted is None and whole and len(different) <= _MOST_CLASSES):
        return values.astype(np.int64), False
    return values, True


def _check_classes(name: str, values: Column, wanted: bool | None) -> None:
    """Raise a DataError where text can be no classes: many different values, or numbers with a few other cells."""
    different, strays = len(set(values.tolist())), strays_in(values)
    if strays is not None and wanted is None and different > _MOST_CLASSES:
        raise DataError(
            f"--target {name!r} holds numbers, but for {strays.cells:,} of its {strays.known:,} values, such as "
            f"{strays.example!r}; correct or empty these cells, or use --classification"
        )
    if different > _MOST_LEVELS:
        raise DataError(
            f"--target {name!r} takes {different:,} different texts, too many for classes; name another column, or "
            "merge them"
        )


def _positive(request: Request, labels: Column) -> object:
    """The class of that name."""
    if request.positive is None:
        return None
    classes = {str(label): label for label in sorted(set(labels.tolist()))}
    check_known("--positive", request.positive, classes)
    return classes[request.positive]


def _groups(option: str, series: pl.Series) -> Column:
    """The name of each row's group, None where it is not known."""
    (column,) = columns(series.name, series).values()
    missing = is_missing(column)
    found = np.full(len(column), None, dtype=object)
    found[~missing] = [level_name(value) for value in column[~missing].tolist()]
    different = len(set(found[~missing].tolist()))
    if different > _MOST_LEVELS:
        raise DataError(
            f"{option} {series.name!r} takes {different:,} values, more than {_MOST_LEVELS}; cut it into ranges first"
        )
    return found


def _estimator(request: Request, *, regression: bool, strength: float, positive: object) -> Any:
    options: dict[str, Any] = {"criterion": request.criterion, "metric": request.metric, "random_state": request.seed}
    if not regression:
        options["pos_label"] = positive
    family, more = _BOOSTERS.get(request.model, ("", {"model": request.model, "verbose": True}))
    kind = getattr(metrifair, f"Fair{family}{'Regressor' if regression else 'Classifier'}")
    return kind(strength, **options, **more)


@contextmanager
def _training(model: str) -> Iterator[None]:
    """Shows that boosting goes on, where networks have a bar of their own; what an estimator refuses is a DataError."""
    try:
        with working("Boosting") if model in _BOOSTERS else nullcontext():
            yield
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"--model {model} cannot learn this: {error}") from error
