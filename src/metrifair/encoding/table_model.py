"""A fitted encoder and a fitted estimator as one model: raw tables in, predictions out, one file."""

from __future__ import annotations

import reprlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from metrifair.encoding.encoder import TableEncoder
from metrifair.errors import DataError, ModelFileError
from metrifair.problem.tables import Table
from metrifair.saving.encoders import encoder_meta, encoder_of
from metrifair.saving.modelfile import Content, Json, PathLike, prefixed, read, under, write
from metrifair.saving.plain import Fields

TABLE_MODEL = "table model"


@dataclass(frozen=True, eq=False)
class TableModel:
    """An estimator that takes raw tables: text, dates and missing values too.

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
    target: str = "y"  # name of the column that is predicted
    sensitive: tuple[str, ...] = ()  # names of the columns with the groups
    ids: tuple[str, ...] = ()  # names of the columns that tell rows apart

    def __post_init__(self) -> None:
        check_is_fitted(self.encoder, "coders_")
        if not hasattr(self.estimator, "n_features_in_"):
            raise DataError(f"the estimator must be a fitted one, got {reprlib.repr(self.estimator)}")
        encoded, taken = len(self.encoder.get_feature_names_out()), self.estimator.n_features_in_
        if encoded != taken:
            raise DataError(f"the encoder makes {encoded} columns, and the estimator takes {taken}; fit them together")

    @property
    def classes(self) -> NDArray[Any] | None:
        """The classes, or None where a number is predicted."""
        return getattr(self.estimator, "classes_", None)

    def predict(self, table: Table) -> NDArray[Any]:
        """The most probable class of each row, or its number."""
        predicted: NDArray[Any] = self.estimator.predict(self.encoder.transform(table))
        return predicted

    def predict_proba(self, table: Table) -> NDArray[np.float64]:
        """Probabilities of the classes, (n, classes)."""
        if self.classes is None:
            raise DataError(f"the model predicts the number {self.target!r}, which has no probability; use predict")
        probability: NDArray[np.float64] = self.estimator.predict_proba(self.encoder.transform(table))
        return probability

    def save(self, path: PathLike) -> None:
        """Write both to one file, which ``metrifair.load`` reads without running any code."""
        inner = _content_of(self.estimator)
        own: dict[str, Json] = {
            "encoder": encoder_meta(self.encoder),
            "estimator": {"kind": inner.kind, "meta": inner.meta},
            "target": self.target,
            "sensitive": list(self.sensitive),
            "ids": list(self.ids),
        }
        write(path, Content(TABLE_MODEL, own, prefixed("estimator/", inner.arrays)))


def _content_of(estimator: Any) -> Content:
    """What the estimator's own file would hold, whatever kind of estimator it is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "estimator")
        estimator.save(path)
        return read(path)


def table_model_of(content: Content, made_of: Callable[[Content], Any]) -> TableModel:
    """The model that ``TableModel.save`` wrote; ``made_of`` makes the estimator of what its own file would hold."""
    meta = Fields.of("model file", content.meta).only("encoder", "estimator", "target", "sensitive", "ids")
    arrays = under("estimator/", content.arrays)
    if len(arrays) < len(content.arrays):
        raise ModelFileError("the file holds arrays that belong to no part of the model")
    inner = meta.inner("estimator").only("kind", "meta")
    try:
        estimator = made_of(Content(inner.text("kind"), dict(inner.inner("meta").values), arrays))
        names = meta.text("target"), tuple(meta.texts("sensitive")), tuple(meta.texts("ids"))
        return TableModel(encoder_of(meta.inner("encoder")), estimator, *names)
    except ModelFileError:
        raise
    except DataError as error:
        raise ModelFileError(f"the file describes no model: {error}") from error
