"""Models of raw tables that predict with NumPy, or with a booster's own predictor: no PyTorch,
no scikit-learn.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.encoding.coders import Coder, Levels, Numbers, column_names, encoded, named_columns
from metrifair.errors import DataError, ModelFileError
from metrifair.problem.predictions import check_outputs
from metrifair.problem.problem import positive_place
from metrifair.problem.tables import Table, columns, spelled_as
from metrifair.saving.lightgbm_trees import lightgbm_trees
from metrifair.saving.modelfile import Content, strip_prefix
from metrifair.saving.records import (
    Arrays,
    BoosterRecord,
    EncoderRecord,
    EstimatorRecord,
    NetworkRecord,
    TableModelRecord,
    file_errors,
    read_classes,
    read_record,
    read_scheme,
    read_value,
)
from metrifair.saving.xgboost_trees import xgboost_trees
from metrifair.support.arrays import Floats
from metrifair.support.checks import require

TABLE_MODEL = "table model"  # the kind of the file
TREES = "trees"  # the array of a booster's file

_LIGHTGBM = ("FairLGBMClassifier", "FairLGBMRegressor")
_XGBOOST = ("FairXGBClassifier", "FairXGBRegressor")


@dataclass(frozen=True, eq=False)
class TableScorer:
    """A fitted encoder and a fitted estimator as one model: raw tables in, predictions out.

    ``TableModel`` is one, with an encoder and an estimator of scikit-learn.
    """

    encoder: Any
    estimator: Any
    target: str = "y"
    sensitive: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    threshold: float | None = None
    training_files: tuple[str, ...] = ()

    @property
    def classes(self) -> NDArray[Any] | None:
        """The classes, or None if a number is predicted."""
        return getattr(self.estimator, "classes_", None)

    @property
    def positive(self) -> int:
        """The place of the positive class: the one that was chosen at training, else the last."""
        classes = ()
        if self.classes is not None:
            classes = self.classes.tolist()
        return positive_place(classes, getattr(self.estimator, "pos_label", None))

    def predict(self, table: Table) -> NDArray[Any]:
        """The most probable class of each row, or its number; with a threshold, the class that it
        decides for.

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
            predicted: NDArray[Any] = self.estimator.predict(
                self.encoder.transform(table), **self._groups(table)
            )
            return predicted
        is_positive = self.predict_proba(table)[:, self.positive] >= self.threshold
        code = np.where(is_positive, self.positive, 1 - self.positive)
        decided: NDArray[Any] = self.classes[code]
        return decided

    def predict_proba(self, table: Table) -> Floats:
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
            If the model predicts a number.
        """
        if self.classes is None:
            raise DataError(
                f"the model predicts the number {self.target!r}, which has no probability; use "
                "predict"
            )
        if not self.has_probabilities:
            raise DataError(
                f"a {type(self.estimator).__name__} predicts decisions without probabilities; use "
                "predict"
            )
        encoded = self.encoder.transform(table)
        probability: Floats = self.estimator.predict_proba(encoded, **self._groups(table))
        return probability

    @property
    def has_probabilities(self) -> bool:
        """Whether the estimator has probabilities: classifiers do, except post-processors that
        decide.
        """
        return hasattr(self.estimator, "predict_proba")

    @property
    def needs_group(self) -> bool:
        """Whether rows must come with the columns of ``sensitive``, even where these are no
        features.
        """
        return bool(getattr(self.estimator, "needs_group", False))

    def _groups(self, table: Table) -> dict[str, Any]:
        """The groups as an argument, if the estimator needs them, spelled as they were at its
        fit.
        """
        if not self.needs_group:
            return {}
        table_columns = columns("table", table)
        if missing := [name for name in self.sensitive if name not in table_columns]:
            raise DataError(
                f"the table has no column {missing[0]!r}, whose groups this model needs to predict"
            )
        groups: dict[str, Any] = {}
        for attribute, name in zip(
            self.estimator.crossed_.scheme.attributes, self.sensitive, strict=True
        ):
            groups[name] = spelled_as(attribute.groups, table_columns[name])
        return {"sensitive_features": groups}


def table_scorer(content: Content) -> TableScorer | None:
    """The model of tables in a file; None if another kind of model, or its state, takes PyTorch
    to read.
    """
    if content.kind != TABLE_MODEL:
        return None
    record = table_model_record(content)
    inner = Content(
        record.estimator.kind, record.estimator.meta, strip_prefix("estimator/", content.arrays)
    )
    readers: dict[str, Callable[[Content], FittedNetwork | FittedTrees | None]] = {
        "estimator": _network,
        "booster": _trees,
    }
    reader = readers.get(inner.kind)
    if reader is None or record.encoder.names is None:
        return None
    estimator = reader(inner)
    if estimator is None:
        return None
    encoder = FittedEncoder(read_coders(record.encoder))
    produced = len(column_names(encoder.coders_.items()))
    expected = estimator.n_features_in_
    if produced != expected:
        raise ModelFileError(
            f"the encoder makes {produced} columns, and the estimator takes {expected}"
        )
    names = (tuple(record.sensitive), tuple(record.ids))
    files = tuple(record.training_files)
    return TableScorer(encoder, estimator, record.target, *names, record.threshold, files)


def table_model_record(content: Content) -> TableModelRecord:
    """The record of a table model, whose arrays are all its estimator's."""
    if len(strip_prefix("estimator/", content.arrays)) < len(content.arrays):
        raise ModelFileError("the file contains arrays that belong to no part of the model")
    return read_record(TableModelRecord, content.meta)


@dataclass(frozen=True)
class FittedEncoder:
    """The transformation of a fitted TableEncoder, on the named columns of a table."""

    coders_: Mapping[str, Coder]

    def transform(self, table: Table) -> Floats:
        """The table as numbers, (n, columns)."""
        return encoded(self.coders_, named_columns(table) or {})


def read_coders(record: EncoderRecord) -> dict[str, Coder]:
    """The encoding of each column; a ModelFileError if the record does not describe it."""
    # Before a list of so many names is made: the number comes from the file.
    if record.count != len(record.coders) + len(record.dropped):
        raise ModelFileError(f"the encoder has {record.count} columns, and describes others")
    names = record.names
    if names is None:
        names = [f"x{place}" for place in range(record.count)]
    if sorted([*record.coders, *record.dropped]) != sorted(names):
        raise ModelFileError(
            f"the encoder describes other columns than it names: {reprlib.repr(names)}"
        )
    coders: dict[str, Coder] = {}
    for name, json in record.coders.items():
        kind: type[Coder] = Levels if "levels" in json else Numbers
        coders[name] = coder = read_record(kind, json, f"column {name!r}")
        if isinstance(coder, Levels) and len(set(coder.levels)) < len(coder.levels):
            raise ModelFileError(
                f"column {reprlib.repr(name)} names a level twice: {reprlib.repr(coder.levels)}"
            )
        if not coder.names(""):
            raise ModelFileError(f"column {reprlib.repr(name)} becomes no column")
    if not coders:
        raise ModelFileError("the encoder has no columns")
    return coders


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """A fitted linear model or network of ours: features in their own units to predictions."""

    layers: tuple[tuple[Floats, Floats], ...]  # weights (units, inputs) and biases (units,)
    scaling: tuple[Floats, Floats]  # mean and scale of the features
    classes_: NDArray[Any] | None
    positive: int
    pos_label: object
    target_scaling: tuple[float, float]

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return len(self.scaling[0])

    def output(self, x: Floats) -> Floats:
        """Outputs (n,), or (n, outputs), before any link."""
        mean, scale = self.scaling
        outputs = (x - mean) / scale
        for place, (weight, bias) in enumerate(self.layers):
            if place:
                outputs = np.maximum(outputs, 0.0)
            outputs = outputs @ weight.T + bias
        if outputs.shape[1] == 1:
            outputs = outputs[:, 0]
        check_outputs(outputs)
        return outputs

    def predict_proba(self, x: Floats) -> Floats:
        """Probabilities of the classes, (n, classes)."""
        output = self.output(x)
        if output.ndim == 1:
            output = np.stack([np.zeros(len(output)), output], axis=1)
        odds = np.exp(output - output.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def predict(self, x: Floats) -> NDArray[Any]:
        """The most probable class, or the number."""
        output = self.output(x)
        if self.classes_ is None:
            center, spread = self.target_scaling
            return output * spread + center
        if output.ndim == 2:
            return np.asarray(self.classes_[output.argmax(1)])
        if self.positive == 1:
            is_positive = output >= 0
        else:
            is_positive = output > 0
        return np.asarray(self.classes_[is_positive.astype(int)])


def _network(content: Content) -> FittedNetwork | None:
    record = read_record(EstimatorRecord, content.meta)
    is_supported = record.kind in ("FairClassifier", "FairRegressor")
    # A stream without a step warns that it is not trained, which is up to the model itself.
    if not is_supported or record.updates == 0 or "hidden" not in record.model:
        return None
    classes = read_classes(record.classes) if record.kind == "FairClassifier" else None
    arrays = Arrays(content.arrays)
    target = record.target_scaling or (0.0, 1.0)
    scaling = scaling_arrays(arrays, record.features.count)
    weights = network_arrays(record, arrays, output_count(classes))
    layers = [
        (weights[f"weight{k}"][0, 0], weights[f"bias{k}"][0, 0, :, 0])
        for k in range(len(weights) // 2)
    ]
    positive = read_scheme(record.scheme, classes).positive
    label = read_value("pos_label", record.parameters.get("pos_label"))
    return FittedNetwork(
        tuple(layers), (scaling[0][0], scaling[1][0]), classes, positive, label, target
    )


def output_count(classes: NDArray[Any] | None) -> int:
    """Number of outputs of a model: 1 for a number and for two classes."""
    if classes is None or len(classes) == 2:
        return 1
    return len(classes)


def scaling_arrays(arrays: Arrays, features: int) -> tuple[Floats, Floats]:
    """Mean and scale of the features, each (1, features)."""
    mean, scale = (arrays.take(f"scaling/{name}", (1, features)) for name in ("mean", "scale"))
    with np.errstate(divide="ignore", over="ignore"):
        if (scale <= 0).any() or not np.isfinite(1 / scale).all():
            raise ModelFileError("array 'scaling/scale' must be positive and have a finite inverse")
    return mean, scale


def network_arrays(record: EstimatorRecord, arrays: Arrays, outputs: int) -> dict[str, Floats]:
    """Weights (1, 1, units, inputs) and biases (1, 1, units, 1) by name, with finite outputs
    near the mean.
    """
    widths = (record.features.count, *read_record(NetworkRecord, record.model).hidden, outputs)
    by_name: dict[str, Floats] = {}
    largest = np.ones((widths[0], 1))  # output at one standard deviation from the mean
    with np.errstate(over="ignore", invalid="ignore"):
        for layer, (before, after) in enumerate(pairwise(widths)):
            shapes = {f"weight{layer}": (1, 1, after, before), f"bias{layer}": (1, 1, after, 1)}
            layer_arrays = {
                name: arrays.take(f"parameters/{name}", shape) for name, shape in shapes.items()
            }
            weight, bias = (np.abs(part[0, 0]) for part in layer_arrays.values())
            largest = weight @ largest + bias
            by_name |= layer_arrays
        center, spread = record.target_scaling or (0.0, 1.0)
        if not np.isfinite(largest * spread + abs(center)).all():
            raise ModelFileError("the parameters are so large that the model has no finite output")
    return by_name


@dataclass(frozen=True, eq=False)
class FittedTrees:
    """The trees of a fair booster, which its library evaluates."""

    # numbers or probabilities: (n,), or (n, classes) of several
    scores: Callable[[Floats], NDArray[Any]]
    n_features_in_: int
    classes_: NDArray[Any] | None
    pos_label: object

    def predict_proba(self, x: Floats) -> NDArray[Any]:
        """Probabilities of the classes, (n, classes)."""
        scores = self.scores(x)
        if scores.ndim == 1:
            return np.stack([1 - scores, scores], axis=1)
        return scores

    def predict(self, x: Floats) -> NDArray[Any]:
        """The most probable class, or the number."""
        if self.classes_ is None:
            return self.scores(x)
        return np.asarray(self.classes_[self.predict_proba(x).argmax(1)])


def _trees(content: Content) -> FittedTrees | None:
    record = read_record(BoosterRecord, content.meta)
    if record.kind not in (*_LIGHTGBM, *_XGBOOST):
        return None
    classes = read_classes(record.classes) if record.kind.endswith("Classifier") else None
    count = record.features.count
    lightgbm = record.kind in _LIGHTGBM
    text = safe_trees(trees_text(content), count, classes, lightgbm=lightgbm)
    if lightgbm:
        scores = _lightgbm_scores(text, record)
    else:
        scores = _xgboost_scores(text)
    if not np.isfinite(scores(np.zeros((1, count)))).all():
        raise ModelFileError("the model cannot predict: its outputs are not finite")
    return FittedTrees(
        scores, count, classes, read_value("pos_label", record.parameters.get("pos_label"))
    )


def trees_text(content: Content) -> str:
    """The trees in a booster's own format, as the file has them: not yet safe."""
    arrays = Arrays(content.arrays)
    trees = arrays.take(TREES, (None,), "uint8").tobytes()
    arrays.check_all_taken()
    with file_errors("the file does not describe a model", UnicodeDecodeError):
        return trees.decode()


def safe_trees(text: str, features: int, classes: NDArray[Any] | None, *, lightgbm: bool) -> str:
    """The trees as written anew, from numbers that were checked."""
    outputs = output_count(classes)
    probabilities = classes is not None
    if lightgbm:
        return lightgbm_trees(
            text, features=features, classes=outputs, probabilities=probabilities
        ).text()
    return xgboost_trees(text, features=features, classes=outputs, probabilities=probabilities)


def lightgbm_booster(text: str, record: BoosterRecord) -> Any:
    """LightGBM's predictor of safe trees."""
    basic = require("lightgbm.basic", extra="boosting", purpose="a file of a LightGBM model")
    with file_errors("LightGBM cannot read the trees", basic.LightGBMError, ValueError):
        booster = basic.Booster(model_str=text)
    best = record.best_iteration or 0
    if best > booster.current_iteration():
        raise ModelFileError("best_iteration or the names of the features do not fit the trees")
    booster.best_iteration = best
    return booster


def xgboost_booster(text: str) -> Any:
    """XGBoost's predictor of safe trees."""
    core = require("xgboost.core", extra="boosting", purpose="a file of an XGBoost model")
    booster = core.Booster()
    with file_errors("XGBoost cannot read the trees", core.XGBoostError, ValueError, TypeError):
        booster.load_model(bytearray(text.encode()))
    return booster


def _lightgbm_scores(text: str, record: BoosterRecord) -> Callable[[Floats], NDArray[Any]]:
    predict: Callable[[Floats], NDArray[Any]] = lightgbm_booster(text, record).predict
    return predict


def _xgboost_scores(text: str) -> Callable[[Floats], NDArray[Any]]:
    booster = xgboost_booster(text)
    best = booster.attr("best_iteration")
    rounds = (0, 0)  # all
    if best is not None:
        rounds = (0, int(best) + 1)
    return partial(booster.inplace_predict, iteration_range=rounds, validate_features=False)
