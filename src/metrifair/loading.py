"""Model files -> models: which class a file's kind stands for."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias

import torch
from numpy.typing import NDArray

from metrifair.boosting.booster import FairBooster
from metrifair.boosting.keeping import KIND as BOOSTER
from metrifair.boosting.keeping import rebuilt as rebuilt_booster
from metrifair.encoding.table_model import TABLE_MODEL, TableModel, table_model_of
from metrifair.errors import ModelFileError
from metrifair.estimators import BY_NAME, Estimator
from metrifair.saving.keeping import KIND, rebuilt
from metrifair.saving.modelfile import Content, Json, PathLike, read
from metrifair.tradeoff.frontier_file import FRONTIER, frontier_from
from metrifair.tradeoff.result import Frontier

Loaded: TypeAlias = Estimator | FairBooster | Frontier | TableModel


def load(path: PathLike, *, module: torch.nn.Module | None = None) -> Loaded:
    """The estimator, frontier or table model that ``.save(path)`` wrote: bit-equal predictions, ready to learn on.

    Loading runs no code from the file. A file that is damaged, hostile or of a later format is a ModelFileError.

    Parameters
    ----------
    path : the file.
    module : for a model that is a ``torch.nn.Module`` of your own: one with the same parameters, whose values do not
        matter. It is copied, and buffers of the copy are set as saved.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from metrifair import FairRegressor
    >>> model = FairRegressor(0.0, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "line.model")
    ...     again = load(Path(folder) / "line.model")
    >>> again
    FairRegressor(random_state=0, strength=0.0)
    >>> bool((again.predict([[1.5]]) == model.predict([[1.5]])).all())
    True
    """
    content = read(path)
    try:
        return _made_of(content, module)
    except ModelFileError as error:
        raise ModelFileError(f"cannot read {os.fspath(path)!r}: {error}") from error


def _made_of(content: Content, module: torch.nn.Module | None) -> Loaded:
    if content.kind == FRONTIER:
        return frontier_from(content, Frontier, module)
    if content.kind == TABLE_MODEL:
        return table_model_of(content, partial(_made_of, module=module))
    if content.kind == BOOSTER:
        booster: FairBooster = rebuilt_booster(content.meta, content.arrays)
        return booster
    if content.kind != KIND:
        raise ModelFileError(f"it holds a {reprlib.repr(content.kind)}, which this metrifair does not know; upgrade it")
    return from_parts(content.meta, content.arrays, module=module)


def from_parts(
    meta: Mapping[str, Json], arrays: Mapping[str, NDArray[Any]], *, module: torch.nn.Module | None = None
) -> Estimator:
    """The estimator that ``keeping.to_parts`` took apart.

    >>> from_parts({"kind": "Oracle"}, {})
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: kind must be FairClassifier or FairRegressor, got 'Oracle'
    """
    kind = meta.get("kind")
    if not isinstance(kind, str) or kind not in BY_NAME:
        raise ModelFileError(f"kind must be {' or '.join(BY_NAME)}, got {reprlib.repr(kind)}")
    estimator: Estimator = rebuilt(BY_NAME[kind], meta, arrays, module)
    return estimator
