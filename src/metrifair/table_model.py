"""A fitted encoder and a fitted estimator as one model: raw tables in, predictions out, one file."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from metrifair.checks import is_number
from metrifair.encoding.column_types import level_name
from metrifair.encoding.encoder import TableEncoder
from metrifair.errors import DataError, ModelFileError
from metrifair.problem.bands import BANDS, in_bands
from metrifair.problem.problem import Given, problem_of
from metrifair.problem.tables import Table, columns, is_missing
from metrifair.results import FEW
from metrifair.saving.modelfile import Content, prefixed, under
from metrifair.saving.models import content_of
from metrifair.saving.pipelines import encoder_of, encoder_record
from metrifair.saving.saved import Saved
from metrifair.saving.schema import InnerRecord, TableModelRecord, record_of
from metrifair.thresholds import Costs, ThresholdRule, choose_threshold

TABLE_MODEL = "table model"  # the kind of the file


@dataclass(frozen=True, eq=False)
class TableModel(Saved):
    """An estimator that takes raw tables: text, dates and missing values too.

    Parameters
    ----------
    encoder : TableEncoder
        A fitted encoder.
    estimator : FairClassifier, FairRegressor, a fair booster or a post-processor
        Fitted on what the encoder returns; one that needs groups takes them from the columns of ``sensitive``.
    target : str, default="y"
        Name of the column that is predicted.
    sensitive : tuple of str, optional
        Names of the columns with the groups.
    ids : tuple of str, optional
        Names of the columns that tell rows apart.
    threshold : float, default=None
        Of two classes, the probability of the positive one from which on ``predict`` decides for it; None: the
        estimator's own rule.

    Raises
    ------
    DataError
        Where the estimator is not fitted, or takes another number of columns than the encoder makes, or the threshold
        is not a probability, or there are not two classes to decide between.

    Examples
    --------
    >>> from metrifair import FairRegressor, TableEncoder
    >>> table = {"size": [30.0, 50.0, 80.0, 90.0], "town": ["A", "B", "A", "B"]}
    >>> encoder = TableEncoder(min_frequency=1).fit(table)
    >>> line = FairRegressor(0.0, model="linear", random_state=0)
    >>> model = TableModel(encoder, line.fit(encoder.transform(table), [3.0, 5.0, 8.0, 9.0]), target="rent")
    >>> model.predict({"town": ["B"], "size": [60.0]}).round(1)
    array([6.])
    """

    encoder: TableEncoder
    estimator: Any
    target: str = "y"
    sensitive: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    threshold: float | None = None

    def __post_init__(self) -> None:
        check_is_fitted(self.encoder, "coders_")
        if not hasattr(self.estimator, "n_features_in_"):
            raise DataError(f"the estimator must be a fitted one, got {reprlib.repr(self.estimator)}")
        encoded, taken = len(self.encoder.get_feature_names_out()), self.estimator.n_features_in_
        if encoded != taken:
            raise DataError(f"the encoder makes {encoded} columns, and the estimator takes {taken}; fit them together")
        if self.threshold is None:
            return
        if not is_number(self.threshold) or not 0 <= self.threshold <= 1:
            raise DataError(f"threshold must be a probability, from 0 to 1, got {self.threshold!r}")
        if self.classes is None or len(self.classes) != 2:
            raise DataError(f"threshold={self.threshold!r} decides between two classes, which are not predicted here")

    @property
    def classes(self) -> NDArray[Any] | None:
        """The classes, or None where a number is predicted."""
        return getattr(self.estimator, "classes_", None)

    @property
    def positive(self) -> int:
        """Place of the class that counts as a yes: the one that was chosen at training, else the last."""
        chosen, classes = getattr(self.estimator, "pos_label", None), [] if self.classes is None else list(self.classes)
        return len(classes) - 1 if chosen is None else classes.index(chosen)

    def predict(self, table: Table) -> NDArray[Any]:
        """The most probable class of each row, or its number; with a threshold, the class that it decides for.

        Parameters
        ----------
        table : data frame or dict of columns
            Rows with the columns that the encoder was fitted with.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes, or numbers.
        """
        if self.threshold is None or self.classes is None:
            predicted: NDArray[Any] = self.estimator.predict(self.encoder.transform(table), **self._groups(table))
            return predicted
        chosen = self.predict_proba(table)[:, self.positive] >= self.threshold
        decided: NDArray[Any] = self.classes[np.where(chosen, self.positive, 1 - self.positive)]
        return decided

    def predict_proba(self, table: Table) -> NDArray[np.float64]:
        """Probabilities of the classes.

        Parameters
        ----------
        table : data frame or dict of columns
            Rows with the columns that the encoder was fitted with.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes``.

        Raises
        ------
        DataError
            Where the model predicts a number.
        """
        if self.classes is None:
            raise DataError(f"the model predicts the number {self.target!r}, which has no probability; use predict")
        if not self.has_probabilities:
            raise DataError(f"a {type(self.estimator).__name__} decides, and tells no probabilities; use predict")
        encoded = self.encoder.transform(table)
        probability: NDArray[np.float64] = self.estimator.predict_proba(encoded, **self._groups(table))
        return probability

    @property
    def has_probabilities(self) -> bool:
        """Whether the estimator tells them: those of classes do, but for post-processors that decide."""
        return hasattr(self.estimator, "predict_proba")

    @property
    def needs_group(self) -> bool:
        """Whether rows must come with the columns of ``sensitive``, even where these are no features."""
        return bool(getattr(self.estimator, "needs_group", False))

    def _groups(self, table: Table) -> dict[str, Any]:
        """The groups as an argument, where the estimator asks for them: text where they were text at its fit."""
        if not self.needs_group:
            return {}
        given = columns("table", table)
        if missing := [name for name in self.sensitive if name not in given]:
            raise DataError(f"the table has no column {missing[0]!r}, whose groups this model needs to predict")
        found: dict[str, Any] = {}
        for attribute, name in zip(self.estimator.crossed_.scheme.attributes, self.sensitive, strict=True):
            column = given[name]
            texts = all(isinstance(group, str) for group in attribute.groups)
            values = zip(column.tolist(), is_missing(column), strict=True)
            found[name] = [None if gone else level_name(value) if texts else value for value, gone in values]
        return {"sensitive_features": found}

    def choose_threshold(
        self,
        table: Table,
        y: Table,
        *,
        rule: ThresholdRule = "accuracy",
        costs: Costs | None = None,
        sensitive_features: Table | None = None,
        control_features: Table | None = None,
        sample_weight: Table | None = None,
    ) -> TableModel:
        """The same model with the threshold that is best on these rows, which it should not have been trained on.

        Parameters
        ----------
        table : data frame or dict of columns
            Rows with the columns that the encoder was fitted with.
        y : array-like of shape (n_samples,)
            Their labels.
        rule : {"accuracy", "cost", "parity"}, default="accuracy"
            "accuracy": most right decisions. "cost": least mean cost. "parity": the least gap between the groups'
            decision rates (those that the estimator's criterion compares), among the thresholds whose balanced
            accuracy is within noise of the best one's.
        costs : array-like of shape (2, 2), default=None
            For "cost": ``costs[label][decision]``, by the classes in ascending order.
        sensitive_features, control_features, sample_weight : array-like, default=None
            Groups (for "parity"), strata and weights, as in ``fit``.

        Returns
        -------
        TableModel
            With another ``threshold``; this one stays as it is.

        Raises
        ------
        DataError
            Where there are not two classes, or the rule lacks its costs or groups.

        Examples
        --------
        >>> from metrifair import FairClassifier, TableEncoder
        >>> table, y = {"size": [1.0, 2.0, 3.0, 4.0]}, ["no", "yes", "no", "yes"]
        >>> encoder = TableEncoder().fit(table)
        >>> line = FairClassifier(0.0, model="linear", random_state=0).fit(encoder.transform(table), y)
        >>> model = TableModel(encoder, line)
        >>> eager = model.choose_threshold(table, y, rule="cost", costs=[[0, 0.1], [1, 0]])
        >>> eager.threshold <= 0.5, eager.predict(table).tolist()[-1]
        (True, 'yes')
        """
        if self.classes is None:
            raise DataError(f"the model predicts the number {self.target!r}, which needs no threshold; use predict")
        problem = problem_of(
            Given(y, sensitive_features, control_features, sample_weight, rows={"table": table}),
            criterion=self.estimator.criterion if sensitive_features is not None else "statistical_parity",
            contrast=getattr(self.estimator, "contrast", "pairs"),
            intersectional=getattr(self.estimator, "intersectional", False),
            continuous=getattr(self.estimator, "continuous", False),
            pos_label=self.classes.tolist()[self.positive],
            target="labels",
            classes=self.classes.tolist(),
            compared=rule == "parity",
        )
        score, problem = (
            problem.of_kept(self.predict_proba(table)[:, self.positive]),
            in_bands(problem, BANDS, least=FEW),
        )
        return replace(self, threshold=choose_threshold(score, problem, rule=rule, costs=costs).threshold)

    def _content(self) -> Content:
        inner = content_of(self.estimator)
        record = TableModelRecord(
            encoder=encoder_record(self.encoder),
            estimator=InnerRecord(kind=inner.kind, meta=inner.meta),  # type: ignore[arg-type]
            target=self.target,
            sensitive=list(self.sensitive),
            ids=list(self.ids),
            threshold=None if self.threshold is None else float(self.threshold),
        )
        return Content(TABLE_MODEL, record.as_json(), prefixed("estimator/", inner.arrays))


def table_model_of(content: Content, model_of: Callable[[Content], Any]) -> TableModel:
    """The model that ``TableModel.save`` wrote; ``model_of`` makes the estimator of what its own file would hold."""
    record = record_of(TableModelRecord, content.meta)
    arrays = under("estimator/", content.arrays)
    if len(arrays) < len(content.arrays):
        raise ModelFileError("the file holds arrays that belong to no part of the model")
    estimator = model_of(Content(record.estimator.kind, record.estimator.meta, arrays))
    try:
        encoder = encoder_of(record.encoder)
        columns = tuple(record.sensitive), tuple(record.ids)
        return TableModel(encoder, estimator, record.target, *columns, threshold=record.threshold)
    except ModelFileError:
        raise
    except DataError as error:
        raise ModelFileError(f"the file does not describe a model: {error}") from error
