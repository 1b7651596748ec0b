"""Read models and frontiers from model files, by the kind of the file."""

from __future__ import annotations

import os
import reprlib
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from metrifair.api.state import AuditState
from metrifair.auditing.sources.state_file import STATE
from metrifair.errors import DataError, ModelFileError
from metrifair.saving.modelfile import Content, PathLike, read, write
from metrifair.saving.records import in_one_line
from metrifair.support.checks import require

if TYPE_CHECKING:
    import torch
    from sklearn.pipeline import Pipeline

    from metrifair.api.frontier import Frontier
    from metrifair.boosting.booster import FairBooster
    from metrifair.estimators import FairEstimator
    from metrifair.estimators.table_model import TableModel
    from metrifair.postprocessing.calibration import ScorePostprocessor

    Loaded: TypeAlias = (
        FairEstimator
        | FairBooster
        | ScorePostprocessor
        | Pipeline
        | Frontier
        | TableModel
        | AuditState
    )


def save(model: Loaded, path: PathLike) -> None:
    """Write a fitted model to one file, which ``load`` reads without running any code.

    A model with a method ``save`` is saved by it. For a scikit-learn pipeline the file contains the
    names of the steps, the encoder and the final model. It does not keep ``memory``.

    Parameters
    ----------
    model : Pipeline, or any metrifair model
        Fitted model. A pipeline ends with a metrifair model; the steps before it are TableEncoder
        or "passthrough".
    path : str or os.PathLike
        The file. An existing file is replaced, in one step.

    Raises
    ------
    DataError
        If the model cannot be saved, or the file cannot be written; the message names the step of a
        pipeline.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from metrifair import FairRegressor, TableEncoder
    >>> from sklearn.pipeline import Pipeline
    >>> table = {"size": [30.0, 50.0, 80.0, 90.0], "town": ["A", "B", "A", "B"]}
    >>> steps = [("encode", TableEncoder(min_frequency=1)), ("model", FairRegressor(0.0, model="linear"))]
    >>> pipeline = Pipeline(steps).fit(table, [3.0, 5.0, 8.0, 9.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(pipeline, Path(folder) / "rent.metrifair")
    ...     again = load(Path(folder) / "rent.metrifair")
    >>> list(again.named_steps), bool((again.predict(table) == pipeline.predict(table)).all())
    (['encode', 'model'], True)
    """
    if type(model).__module__.startswith("metrifair.") and hasattr(model, "save"):
        model.save(path)
    elif hasattr(model, "named_steps"):  # a pipeline of scikit-learn
        from metrifair.saving.models import make_content  # noqa: PLC0415  (imports torch)

        require("sklearn.utils.validation", extra="train", purpose="a pipeline").check_is_fitted(
            model
        )
        write(path, make_content(model))
    else:
        raise DataError(
            f"a {type(model).__name__} cannot be saved; pass a fitted metrifair model, or a "
            "pipeline that ends with one"
        )


def load(path: PathLike, *, module: torch.nn.Module | None = None) -> Loaded:
    """The estimator, booster, post-processor, pipeline, frontier or table model that ``save``
    wrote.

    Predictions are the same to the last bit, and ``partial_fit`` continues where it stopped.
    Loading runs no code from the file; see docs/untrusted-input.md.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    module : torch.nn.Module, optional
        Module of the saved model, if it is a ``torch.nn.Module`` of your own: one with the same
        parameters, whose values do not matter. It is copied, and buffers of the copy are set as
        saved.

    Returns
    -------
    FairClassifier, FairRegressor, a fair booster, a post-processor, a Pipeline, Frontier or
    TableModel
        The saved object.

    Raises
    ------
    ModelFileError
        If the file is damaged, hostile, of a later format, or not a model file. MissingModelFile,
        which is one too and a FileNotFoundError, if there is none.

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
        return _build(content, module)
    except ModelFileError as error:
        raise ModelFileError(f"cannot read {os.fspath(path)!r}: {error}") from error


def _check_notes(front: Frontier) -> Frontier:
    """The frontier, if its notes are of known kinds with the facts that their sentences need."""
    from metrifair.wording.frontier import note_text  # noqa: PLC0415  (imports torch)

    for note in front.record.all_notes:
        try:
            note_text(note)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            problem = in_one_line(f"note {note.kind!r}: {error}")
            raise ModelFileError(f"the file does not describe a frontier: {problem}") from error
    return front


def _build(content: Content, module: torch.nn.Module | None) -> Loaded:
    if content.kind == STATE:
        return AuditState.of_content(content)
    require("torch", extra="train", purpose="a file of a model")
    from metrifair.estimators.table_model import read_table_model  # noqa: PLC0415  (imports torch)
    from metrifair.saving.models import KINDS, read_model  # noqa: PLC0415
    from metrifair.saving.scoring import TABLE_MODEL  # noqa: PLC0415
    from metrifair.tradeoff.frontier_file import FRONTIER, read_frontier  # noqa: PLC0415

    build_model = partial(read_model, module=module)
    if content.kind == FRONTIER:
        from metrifair.api.frontier import Frontier  # noqa: PLC0415

        return _check_notes(Frontier(read_frontier(content, build_model)))
    if content.kind == TABLE_MODEL:
        return read_table_model(content, build_model)
    if content.kind not in KINDS:
        kind = reprlib.repr(content.kind)
        raise ModelFileError(f"it contains a {kind}, which this version cannot read; upgrade it")
    loaded: Loaded = build_model(content)
    return loaded
