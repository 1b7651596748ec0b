"""A learner in the middle of its stream <-> arrays + JSON, so that learning goes on bit by bit the same."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.batches import Coverage
from metrifair.checks import check_known
from metrifair.errors import ModelFileError
from metrifair.metrics.registry import METRICS
from metrifair.problem.criteria import Criterion
from metrifair.problem.samples import Comparison, Samples
from metrifair.problem.tasks import BINARY, MULTICLASS, REGRESSION_LOSSES, Task, regression
from metrifair.saving.modelfile import Json
from metrifair.saving.plain import Arrays, Fields, plain
from metrifair.training.models import Model, Parameters
from metrifair.training.objective import Objective
from metrifair.training.online import Learner, Moments

_ADAM = ("vector", "gradient", "moments", "powers", "learning_rate")  # in the order of Adam.snapshot
_SAMPLES = ("x", "y", "cell", "weight")
_WORDS = 624  # of the generator's state, which lies behind its seed, two positions and a flag


class Setting(NamedTuple):
    """What a learner shares with its estimator."""

    model: Model
    parameters: Parameters  # leading axes (1, 1)
    criterion: Criterion
    comparisons: tuple[Comparison, ...]
    cells: int
    features: int
    classes: int  # 0: regression


def learner_parts(learner: Learner) -> tuple[dict[str, Json], dict[str, NDArray[Any]]]:
    """All that the next samples of the stream depend on, but for the Setting."""
    objective, rule = learner.objective, learner.rule
    losses = [name for name, loss in REGRESSION_LOSSES.items() if loss is objective.task.loss]
    meta: dict[str, Json] = {
        "strength": plain("strength", learner.strength),
        "standardize": bool(learner.standardize),
        "size": int(rule.size),
        "least": int(rule.least),
        "weight_decay": plain("weight_decay", learner.adam.weight_decay),
        "loss": losses[0] if losses else None,
        "metric": plain("metric", objective.metric),
        "unbiased": bool(objective.unbiased),
        "compare": objective.compare,
        "slices": objective.slices,
        "moments": learner.moments is not None,
        "waiting": learner.waiting is not None,
    }
    tensors = {f"adam/{name}": part for name, part in zip(_ADAM, learner.adam.snapshot(), strict=True)}
    tensors["generator"] = objective.generator.get_state()
    if learner.moments is not None:
        tensors |= {f"moments/{name}": part for name, part in learner.moments._asdict().items()}
    if learner.waiting is not None:
        tensors |= {f"waiting/{name}": getattr(learner.waiting, name) for name in _SAMPLES}
    return meta, {name: tensor.numpy() for name, tensor in tensors.items()}


def restored_learner(meta: Fields, arrays: Arrays, setting: Setting) -> Learner:
    """The learner that ``learner_parts`` took apart."""
    objective = _objective(meta, arrays, setting)
    learner = Learner(
        setting.model,
        objective,
        Coverage(setting.comparisons, size=meta.whole("size", least=1), least=meta.whole("least", least=1)),
        strength=meta.number("strength"),
        weight_decay=meta.number("weight_decay"),
        standardize=meta.flag("standardize"),
        start=setting.parameters,
    )
    now = learner.adam.snapshot()
    learner.adam.restore(tuple(arrays.take(f"adam/{name}", part.shape) for name, part in zip(_ADAM, now, strict=True)))
    if meta.flag("moments"):
        learner.moments = restored_moments(arrays, setting.features)
    if meta.flag("waiting"):
        learner.waiting = _waiting(arrays, setting, objective.task)
    return learner


def _objective(meta: Fields, arrays: Arrays, setting: Setting) -> Objective:
    metric, compare = meta.text("metric"), meta.text("compare")
    check_known("metric", metric, METRICS)
    check_known("compare", compare, ("prediction", "output"))
    return Objective(
        _task(meta, setting.classes),
        setting.comparisons,
        setting.criterion,
        metric,
        unbiased=meta.flag("unbiased"),
        compare="output" if compare == "output" else "prediction",
        slices=meta.whole("slices", least=1, most=2**16),
        generator=_generator(arrays.take("generator", (None,), "uint8")),
    )


def _task(meta: Fields, classes: int) -> Task:
    if not classes:
        return regression(meta.text("loss"))
    return BINARY if classes == 2 else MULTICLASS


def _generator(state: Tensor) -> torch.Generator:
    """A generator in this state, whose positions PyTorch would believe even where they lie outside of its words."""
    generator = torch.Generator()
    raw, known = state.numpy(), generator.get_state()
    if state.shape != known.shape:
        raise ModelFileError(f"array 'generator' must have {len(known)} bytes, got {len(raw)}; upgrade PyTorch")
    left, following = int(raw[8:12].view(np.int32)[0]), int(raw[16:24].view(np.uint64)[0])
    untouched = (left, following) == (1, 0)
    if not untouched and not (1 <= left <= _WORDS and left + following == _WORDS + 1):
        raise ModelFileError("array 'generator' is not the state of a random number generator")
    try:
        return generator.set_state(state)
    except RuntimeError as error:
        raise ModelFileError("array 'generator' is not the state of a random number generator") from error


def restored_moments(arrays: Arrays, features: int) -> Moments:
    """The running moments that arrays hold, checked."""
    shapes: dict[str, tuple[int, ...]] = {"weight": (), "mean": (features,), "squares": (features,)}
    found = Moments(*(arrays.take(f"moments/{name}", shape) for name, shape in shapes.items()))
    if bool(found.weight < 0) or bool((found.squares < 0).any()):
        raise ModelFileError("the running moments of the features are negative")
    return found


def _waiting(arrays: Arrays, setting: Setting, task: Task) -> Samples:
    n = math.prod(arrays.shape("waiting/cell")[:1])
    found = Samples(
        arrays.take("waiting/x", (n, setting.features)),
        arrays.take("waiting/y", (n,), "int64" if task.vector else "float64"),
        arrays.take("waiting/cell", (n,), "int64"),
        arrays.take("waiting/weight", (n,)),
    )
    known = bool(((found.cell >= 0) & (found.cell < setting.cells)).all())
    if setting.classes:
        known &= bool(((found.y >= 0) & (found.y < setting.classes) & (found.y == found.y.round())).all())
    if not known or bool((found.weight <= 0).any()):
        raise ModelFileError("the samples that wait for their batch have labels, cells or weights that do not exist")
    return found
