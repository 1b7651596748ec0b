"""A fitted model of either kind <-> what its file holds; its class is given, since classes stand above this room."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any

import torch

from metrifair.errors import ModelFileError
from metrifair.saving import boosters, estimators
from metrifair.saving.modelfile import Content


def content_of(model: Any) -> Content:
    """What the file of a fitted model holds: of a fair estimator, or of a fair booster."""
    return boosters.content_of(model) if _is_booster(type(model)) else estimators.content_of(model)


def model_of(content: Content, class_named: Callable[[str], type | None], module: torch.nn.Module | None = None) -> Any:
    """The model that ``content_of`` took apart, of the class that its record names.

    >>> model_of(Content("estimator", {"kind": "Oracle"}, {}), {}.get)
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: it holds a model of the kind 'Oracle', which this metrifair does not know
    """
    name = content.meta.get("kind")
    kind = class_named(name) if isinstance(name, str) else None
    if kind is None:
        raise ModelFileError(f"it holds a model of the kind {reprlib.repr(name)}, which this metrifair does not know")
    return boosters.booster_of(kind, content) if _is_booster(kind) else estimators.estimator_of(kind, content, module)


def _is_booster(kind: type) -> bool:
    return any(base.__module__.startswith("metrifair.boosting.") for base in kind.__mro__)
