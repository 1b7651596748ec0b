"""A fitted model of any kind <-> what its file holds; classes are found by name, since they stand above this room."""

from __future__ import annotations

import contextlib
import importlib
import reprlib
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import torch
from sklearn.pipeline import Pipeline

from metrifair.errors import DataError, ModelFileError
from metrifair.files import write_file
from metrifair.saving import boosters, estimators, pipelines, postprocessors
from metrifair.saving.modelfile import Content, PathLike, to_bytes, write
from metrifair.saving.onnx import onnx_model
from metrifair.saving.schema import PipelineRecord, record_of

_MODULES = {  # of the classes that a file may name; the boosters' libraries are optional
    "FairClassifier": "metrifair.estimators",
    "FairRegressor": "metrifair.estimators",
    "FairLGBMClassifier": "metrifair.boosting.lightgbm",
    "FairLGBMRegressor": "metrifair.boosting.lightgbm",
    "FairXGBClassifier": "metrifair.boosting.xgboost",
    "FairXGBRegressor": "metrifair.boosting.xgboost",
    "BarycentrePostprocessor": "metrifair.methods.barycentre",
    "ThresholdPostprocessor": "metrifair.methods.threshold",
}
_PLAIN = (estimators.KIND, boosters.KIND)
KINDS = (*_PLAIN, postprocessors.KIND, pipelines.KIND)


class Saved:
    """How every fitted model leaves: to a file of ours, or to ONNX."""

    def save(self, path: PathLike) -> None:
        """Write the fitted model to one file, which ``metrifair.load`` reads without running any code.

        The file holds parameters, weights or trees, names of classes, groups and features, what metadata scikit-learn
        is asked to route, the state of ``partial_fit``, and the models that a post-processor wraps, which must be ours
        too. It cannot hold functions (a metric, score, callback or sets of your own: a DataError), and of a
        ``torch.nn.Module`` holds the weights only. A ``random_state`` that is a generator is saved as None. A crash
        leaves the old file.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced, in one step.
        """
        write(path, self._content())

    def to_onnx(self, path: PathLike) -> None:
        """Write the fitted model as an ONNX graph, which runs without Python and without metrifair.

        Inputs: ``X`` of doubles (n, n_features); of a model that takes tables one input (n, 1) for each column by its
        name: doubles for numbers and booleans (1, 0), NaN where one is missing, and strings for text, empty where one
        is missing. Levels that were not seen at ``fit`` count as in Python. Outputs: ``label`` (n,) and
        ``probabilities`` (n, n_classes), or ``prediction`` (n,). A positive label and a threshold that were chosen
        decide here too. docs/deploy.md says how close the numbers are, and what ONNX cannot refuse.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced, in one step.

        Raises
        ------
        DataError
            For what ONNX cannot say: dates, categories that a booster splits by, post-processors, a module of your own.
            The message names it, and what to do.
        MissingExtra
            Where onnx is not installed.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> import onnxruntime
        >>> from metrifair import FairClassifier
        >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["no", "yes", "no", "yes"])
        >>> model = FairClassifier(0.0, model="linear").fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.to_onnx(Path(folder) / "model.onnx")
        ...     session = onnxruntime.InferenceSession(Path(folder) / "model.onnx")
        >>> label, probabilities = session.run(None, {"X": X})
        >>> label.tolist(), bool(abs(probabilities - model.predict_proba(X)).max() < 1e-12)
        (['no', 'no', 'yes', 'yes'], True)
        """
        about = {}
        with contextlib.suppress(DataError):  # a model that no file can hold has no hash
            about["sha256"] = sha256(to_bytes(self._content())).hexdigest()
        try:
            graph = onnx_model(self, about)
        except UnicodeEncodeError as error:  # half of a character, as some files hold
            raise DataError(
                f"the text {error.object!r} cannot be written as ONNX; correct it, and fit again"
            ) from error
        write_file(path, graph)

    def _content(self) -> Content:
        return content_of(self)


def class_named(name: str) -> Any:
    """The class of ours that a file may name; None of others."""
    return getattr(importlib.import_module(_MODULES[name]), name) if name in _MODULES else None


def content_of(model: Any) -> Content:
    """What the file of a fitted model holds: a fair estimator or booster, a post-processor or a pipeline of them."""
    if isinstance(model, Pipeline):
        return pipelines.content_of(model, content_of, lambda last: class_named(type(last).__name__) is type(last))
    room = _room(type(model))
    if room == "methods":
        return postprocessors.content_of(model, content_of)
    return boosters.content_of(model) if room == "boosting" else estimators.content_of(model)


def model_of(content: Content, class_named: Callable[[str], type | None], module: torch.nn.Module | None = None) -> Any:
    """The model that ``content_of`` took apart, of the class that its record names.

    >>> model_of(Content("estimator", {"kind": "Oracle"}, {}), {}.get)
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: it holds a model of the kind 'Oracle', which this metrifair does not know
    """
    if content.kind == pipelines.KIND:
        return pipelines.pipeline_of(content, lambda inner: model_of(inner, class_named, module))
    name = content.meta.get("kind")
    kind = class_named(name) if isinstance(name, str) else None
    if kind is None:
        raise ModelFileError(f"it holds a model of the kind {reprlib.repr(name)}, which this metrifair does not know")
    room = _room(kind)
    if room == "methods":
        return postprocessors.postprocessor_of(kind, content, lambda inner: _wrapped(inner, class_named, module))
    return boosters.booster_of(kind, content) if room == "boosting" else estimators.estimator_of(kind, content, module)


def _wrapped(content: Content, class_named: Callable[[str], type | None], module: torch.nn.Module | None) -> Any:
    """The model within a post-processor, which is not one itself: no file is to be nested without end."""
    found = content
    if content.kind == pipelines.KIND:
        last = record_of(PipelineRecord, content.meta, "a pipeline").model
        found = Content(last.kind, last.meta, {})
    name = found.meta.get("kind")
    kind = class_named(name) if isinstance(name, str) else None
    if found.kind not in _PLAIN or (kind is not None and _room(kind) == "methods"):
        raise ModelFileError("a post-processor wraps no other")
    return model_of(content, class_named, module)


def _room(kind: type) -> str:
    """The room of ours that a class comes from."""
    ours = [base.__module__.split(".")[1] for base in kind.__mro__ if base.__module__.startswith("metrifair.")]
    return next((room for room in ours if room in ("boosting", "methods")), "estimators")
