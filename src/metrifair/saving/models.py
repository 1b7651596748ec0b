"""A fitted model of any kind <-> what its file holds; classes are found by name, since they stand above this room."""

from __future__ import annotations

import importlib
import reprlib
from collections.abc import Callable
from typing import Any

import torch
from sklearn.pipeline import Pipeline

from metrifair.errors import ModelFileError
from metrifair.saving import boosters, estimators, pipelines, postprocessors
from metrifair.saving.modelfile import Content
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
