"""A learner in the middle of its stream <-> its record and arrays: learning goes on bit by bit the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrifair.batches import Coverage
from metrifair.batches.samples import Samples
from metrifair.errors import ModelFileError
from metrifair.metrics.registry import METRICS
from metrifair.problem.cells import Dependence
from metrifair.problem.losses import REGRESSION_LOSSES
from metrifair.problem.problem import Scheme
from metrifair.saving.records import Arrays, LearnerRecord, plain
from metrifair.support.checks import check_known
from metrifair.training.losses import BINARY, MULTICLASS, Task, regression
from metrifair.training.models import Moments
from metrifair.training.objective import Objective
from metrifair.training.online import Learner

_ADAM = ("vector", "gradient", "moments", "powers", "learning_rate")  # in the order of Adam.snapshot
_OBJECTIVE = ("estimate", "combine", "penalize", "slices")  # fields of the objective that the record holds as they are
_WORDS = 624  # of the generator's state, which lies behind its seed, two positions and a flag


def learner_parts(learner: Learner) -> tuple[LearnerRecord, dict[str, Tensor]]:
    """All that the next samples of the stream depend on, but for what the estimator holds anyway."""
    objective, rule = learner.objective, learner.rule
    losses = [name for name, loss in REGRESSION_LOSSES.items() if loss is objective.task.loss]
    record = LearnerRecord(
        strength=float(learner.strength),
        standardize=bool(learner.standardize),
        size=int(rule.size),
        least=int(rule.least),
        weight_decay=float(learner.adam.weight_decay),
        loss=losses[0] if losses else None,
        metric=str(plain("metric", objective.metric)),
        updates=learner.updates,
        fresh=learner.fresh,
        **{name: getattr(objective, name) for name in _OBJECTIVE},
        moments=learner.moments is not None,
        waiting=learner.waiting is not None,
        scales=dict(learner.scales),
        class_weight=list(objective.class_weight),
    )
    tensors = {f"adam/{name}": part for name, part in zip(_ADAM, learner.adam.snapshot(), strict=True)}
    tensors["generator"] = objective.generator.get_state()
    if learner.moments is not None:
        tensors |= moment_parts(learner.moments)
    if learner.waiting is not None:
        tensors |= {f"waiting/{name}": part for name, part in vars(learner.waiting).items() if part is not None}
    return record, tensors


def learner_of(record: LearnerRecord, arrays: Arrays, estimator: Any) -> Learner:
    """The learner of this estimator that ``learner_parts`` took apart."""
    scheme, predictor = estimator.scheme_, estimator.predictor_
    classes = len(scheme.classes)
    check_known("metric", record.metric, METRICS)
    if len(record.class_weight) not in (0, classes):
        raise ModelFileError(f"the file does not describe a model: class weights of {len(record.class_weight)} classes")
    task: Task = BINARY if classes == 2 else MULTICLASS
    if not classes:
        task = regression(record.loss or "")
    objective = Objective(
        task,
        scheme.comparisons,
        scheme.criterion,
        record.metric,
        **{name: getattr(record, name) for name in _OBJECTIVE},
        generator=_generator(tensor_of(arrays, "generator", (None,), "uint8")),
        class_weight=tuple(record.class_weight),
    )
    learner = Learner(
        predictor.model,
        objective,
        Coverage(scheme.comparisons, size=record.size, least=record.least),
        strength=record.strength,
        weight_decay=record.weight_decay,
        standardize=record.standardize,
        start=predictor.parameters,
    )
    now = learner.adam.snapshot()
    learner.adam.restore(
        tuple(tensor_of(arrays, f"adam/{name}", part.shape) for name, part in zip(_ADAM, now, strict=True))
    )
    if record.fresh and (record.updates or record.moments):
        raise ModelFileError(
            "the file does not describe a model: a learner that has learnt has not its start before it"
        )
    learner.updates, learner.fresh = record.updates, record.fresh
    if record.moments:
        learner.moments = moments_of(arrays, estimator.n_features_in_)
    dependent = {str(one) for one in scheme.comparisons if isinstance(one, Dependence)}
    if not set(record.scales) <= dependent:
        raise ModelFileError("the learner's scales are of attributes that are not compared")
    learner.scales = dict(record.scales)
    if record.waiting:
        learner.waiting = _waiting(arrays, scheme, estimator.n_features_in_, task)
    return learner


def tensor_of(arrays: Arrays, name: str, shape: Sequence[int | None], dtype: str = "float64") -> Tensor:
    """An array of the file as a tensor."""
    return torch.from_numpy(arrays.take(name, shape, dtype))


def moment_parts(moments: Moments) -> dict[str, Tensor]:
    """The running moments of the features, as ``moments_of`` reads them."""
    return {f"moments/{name}": torch.as_tensor(np.asarray(part)) for name, part in moments._asdict().items()}


def moments_of(arrays: Arrays, features: int) -> Moments:
    """The running moments of the features."""
    shapes: dict[str, tuple[int, ...]] = {"weight": (), "mean": (features,), "squares": (features,)}
    weight, mean, squares = (arrays.take(f"moments/{name}", shape) for name, shape in shapes.items())
    if weight < 0 or (squares < 0).any():
        raise ModelFileError("the running moments of the features are negative")
    return Moments(float(weight), mean, squares)


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


def _waiting(arrays: Arrays, scheme: Scheme, features: int, task: Task) -> Samples:
    cell = tensor_of(arrays, "waiting/cell", (None,), "int64")
    value, attributes = None, scheme.attributes
    if any(isinstance(one, Dependence) for one in scheme.comparisons):
        value = tensor_of(arrays, "waiting/value", (len(cell), len(attributes)))
        numbers = torch.tensor([attribute.is_number for attribute in attributes])
        levels = torch.tensor([attribute.codes for attribute in attributes])
        codes = (value == value.round()) & (value >= -1) & (value < levels)
        if not bool((codes | numbers).all()):
            raise ModelFileError("the samples that wait for their batch have groups that do not exist")
    found = Samples(
        tensor_of(arrays, "waiting/x", (len(cell), features)),
        tensor_of(arrays, "waiting/y", (len(cell),), "int64" if task.vector else "float64"),
        cell,
        tensor_of(arrays, "waiting/weight", (len(cell),)),
        value,
    )
    cells = 1 if scheme.cells is None else scheme.cells.count
    known = bool(((cell >= 0) & (cell < cells)).all())
    if scheme.classes:
        known &= bool(((found.y >= 0) & (found.y < len(scheme.classes)) & (found.y == found.y.round())).all())
    if not known or bool((found.weight <= 0).any()):
        raise ModelFileError("the samples that wait for their batch have labels, cells or weights that do not exist")
    return found
