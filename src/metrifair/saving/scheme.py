"""What codes of classes, groups and strata stand for, and a learner in the middle of its stream <-> records and arrays.

Cells are compiled from a scheme, never stored; learning goes on bit by bit the same."""

from __future__ import annotations

import math
import reprlib
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.batches import Coverage
from metrifair.checks import check_known
from metrifair.errors import DataError, ModelFileError
from metrifair.metrics.registry import METRICS
from metrifair.problem.cells import Attribute, Dependence, Samples
from metrifair.problem.criteria import (
    BINARY,
    MULTICLASS,
    REGRESSION_LOSSES,
    Criterion,
    Strata,
    Task,
    overlapping_strata,
    regression,
    separate_strata,
)
from metrifair.problem.problem import Scheme
from metrifair.saving.schema import (
    Arrays,
    AttributeRecord,
    Classes,
    LearnerRecord,
    SchemeRecord,
    StrataRecord,
    plain,
    scalar_of,
    value_of,
)
from metrifair.training import Predictor
from metrifair.training.models import Moments
from metrifair.training.objective import Objective
from metrifair.training.online import Learner

_MOST_CHARACTERS = 2**22  # of all class labels together
_MOST_COMPARISONS = 20_000
_MOST_WORK = 10**7  # table entries x comparisons: what compiling takes time for


def classes_record(classes: NDArray[Any]) -> Classes:
    """Class labels, with their type.

    >>> classes_record(np.array(["no", "yes"]))
    Classes(dtype='U3', values=['no', 'yes'])
    """
    dtype = f"U{classes.dtype.itemsize // 4}" if classes.dtype.kind == "U" else classes.dtype.name
    if classes.dtype.kind not in "UbiufO" or classes.dtype.itemsize > 4 * 9999 or dtype == "float128":
        raise DataError(f"class labels of type {classes.dtype} cannot be saved; use numbers, strings or booleans")
    return Classes(dtype=dtype, values=[plain("y", value) for value in classes.tolist()])


def classes_of(record: Classes | None) -> NDArray[Any]:
    """The labels, ascending, in the very type they had."""
    if record is None:
        raise ModelFileError("the file does not describe a model: classes are missing")
    values, dtype = [scalar_of("classes", value) for value in record.values], record.dtype
    if dtype.startswith("U") and int(dtype[1:]) * len(values) > _MOST_CHARACTERS:
        raise ModelFileError(f"the classes take more than {_MOST_CHARACTERS} characters")
    try:
        with np.errstate(all="ignore"):
            classes = np.array(values, dtype=dtype)
        again = np.unique(classes).tolist()
    except (TypeError, ValueError, OverflowError):
        again = []
    if len(values) < 2 or [(type(a), a) for a in again] != [(type(a), a) for a in values]:
        raise ModelFileError(
            f"classes must be two or more different labels of type {dtype} in ascending order, got "
            f"{reprlib.repr(values)}"
        )
    return classes


def scheme_record(scheme: Scheme) -> SchemeRecord:
    """A scheme, as the facts that it is compiled from."""
    strata = None
    if scheme.strata is not None:
        values = scheme.strata.values
        strata = StrataRecord(
            names=list(scheme.strata.names),
            overlapping=values is None,
            values=None if values is None else [plain("control_features", value) for value in values],
        )
    return SchemeRecord(
        criterion=plain("criterion", scheme.criterion),
        attributes=[
            AttributeRecord(
                name=one.name, groups=[plain(one.name, group) for group in one.groups], is_number=one.is_number
            )
            for one in scheme.attributes
        ],
        intersectional=bool(scheme.intersectional),
        strata=strata,
        compared=scheme.cells is not None,
        contrast=scheme.contrast,
        positive=scheme.positive,
    )


def scheme_of(record: SchemeRecord, classes: NDArray[Any] | None) -> Scheme:
    """The scheme, compiled anew."""
    criterion = value_of("scheme.criterion", record.criterion)
    if not isinstance(criterion, Criterion):
        raise ModelFileError(f"scheme.criterion must be a criterion, got {reprlib.repr(criterion)}")
    attributes = tuple(
        Attribute(one.name, tuple(scalar_of("a group", group) for group in one.groups), one.is_number)
        for one in record.attributes
    )
    for one in attributes:
        if one.is_number and one.groups:
            raise ModelFileError(f"{reprlib.repr(one.name)} is a number and has groups: {reprlib.repr(one.groups)}")
        if len(set(one.groups)) < len(one.groups):
            raise ModelFileError(f"{reprlib.repr(one.name)} names a group twice: {reprlib.repr(one.groups)}")
    strata = None if record.strata is None else _strata(record.strata)
    labels = () if classes is None else tuple(classes.tolist())
    positive = record.positive if labels else -1  # files of format 1 name one where there are no classes
    if not -1 < positive < len(labels) and labels:
        raise ModelFileError(f"scheme.positive must be the place of a class, got {positive}")
    if record.compared:
        _check_size(criterion, attributes, len(labels), strata)
    elif attributes:
        raise ModelFileError("the scheme has attributes that are not compared")
    found = Scheme(criterion, labels, positive, attributes, record.intersectional, strata, record.contrast)
    _ = found.cells  # compiled now, so that what cannot be is refused
    return found


def _strata(record: StrataRecord) -> Strata:
    names, most = record.names, math.isqrt(_MOST_WORK)
    if not 1 <= len(names) <= most:
        raise ModelFileError(f"there must be between 1 and {most} strata, got {len(names)}")
    if record.overlapping:
        return overlapping_strata(names)
    # Files of 0.1 have no values: their strata were matched as the text that the names end with.
    values = [name.partition(" = ")[2] for name in names] if record.values is None else record.values
    if len(values) != len(names):
        raise ModelFileError(f"there must be a value for each stratum, got {len(values)} for {len(names)}")
    return separate_strata(names, [scalar_of("a stratum", value) for value in values])


def _check_size(criterion: Criterion, attributes: tuple[Attribute, ...], classes: int, strata: Strata | None) -> None:
    """Refuse what would take the compiler long, before it begins."""
    patterns = 1
    if criterion.labels is not None:
        patterns = classes if criterion.bins is None else len(criterion.bins) + 1
    rows, columns = (1, 1) if strata is None else strata.member.shape
    sets = columns * (patterns if criterion.labels == "every" else 1)
    table = patterns * (rows + 1) * math.prod(attribute.codes + 1 for attribute in attributes)
    comparisons = sets * sum(
        1 if attribute.is_number else math.comb(len(attribute.groups), 2) for attribute in attributes
    )
    work = max(table * max(comparisons, sets), patterns**2 * rows * columns)
    if not attributes or comparisons > _MOST_COMPARISONS or work > _MOST_WORK:
        raise ModelFileError(
            f"the scheme compares {len(attributes)} attributes in {comparisons} ways; a model file has at least one, "
            f"and at most {_MOST_COMPARISONS} ways"
        )


_ADAM = ("vector", "gradient", "moments", "powers", "learning_rate")  # in the order of Adam.snapshot
_SAMPLES = ("x", "y", "cell", "weight")
_WORDS = 624  # of the generator's state, which lies behind its seed, two positions and a flag


class Setting(NamedTuple):
    """What a learner shares with its estimator."""

    predictor: Predictor
    scheme: Scheme
    features: int
    classes: int  # 0: regression


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
        estimate=objective.estimate,
        combine=objective.combine,
        compare=objective.compare,
        slices=objective.slices,
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
        tensors |= {f"waiting/{name}": getattr(learner.waiting, name) for name in _SAMPLES}
        if learner.waiting.value is not None:
            tensors["waiting/value"] = learner.waiting.value
    return record, tensors


def learner_of(record: LearnerRecord, arrays: Arrays, setting: Setting) -> Learner:
    """The learner that ``learner_parts`` took apart."""
    check_known("metric", record.metric, METRICS)
    if (record.estimate is None) == (record.unbiased is None):
        raise ModelFileError("the file does not describe a model: the learner's estimate is missing, or there twice")
    estimate = record.estimate or ("population" if record.unbiased else "batch")
    if len(record.class_weight) not in (0, setting.classes):
        raise ModelFileError(f"the file does not describe a model: class weights of {len(record.class_weight)} classes")
    task: Task = BINARY if setting.classes == 2 else MULTICLASS
    if not setting.classes:
        task = regression(record.loss or "")
    objective = Objective(
        task,
        setting.scheme.comparisons,
        setting.scheme.criterion,
        record.metric,
        estimate=estimate,
        combine=record.combine,
        compare=record.compare,
        slices=record.slices,
        generator=_generator(arrays.take("generator", (None,), "uint8")),
        class_weight=tuple(record.class_weight),
    )
    learner = Learner(
        setting.predictor.model,
        objective,
        Coverage(setting.scheme.comparisons, size=record.size, least=record.least),
        strength=record.strength,
        weight_decay=record.weight_decay,
        standardize=record.standardize,
        start=setting.predictor.parameters,
    )
    now = learner.adam.snapshot()
    learner.adam.restore(tuple(arrays.take(f"adam/{name}", part.shape) for name, part in zip(_ADAM, now, strict=True)))
    if record.fresh and (record.updates or record.moments):
        raise ModelFileError(
            "the file does not describe a model: a learner that has learnt has not its start before it"
        )
    learner.updates, learner.fresh = record.updates or 0, record.fresh
    if record.moments:
        learner.moments = moments_of(arrays, setting.features)
    dependent = {str(one) for one in setting.scheme.comparisons if isinstance(one, Dependence)}
    if not set(record.scales) <= dependent:
        raise ModelFileError("the learner's scales are of attributes that are not compared")
    learner.scales = dict(record.scales)
    if record.waiting:
        learner.waiting = _waiting(arrays, setting, task)
    return learner


def moment_parts(moments: Moments) -> dict[str, Tensor]:
    """The running moments of the features, as ``moments_of`` reads them."""
    return {f"moments/{name}": torch.as_tensor(np.asarray(part)) for name, part in moments._asdict().items()}


def moments_of(arrays: Arrays, features: int) -> Moments:
    """The running moments of the features."""
    shapes: dict[str, tuple[int, ...]] = {"weight": (), "mean": (features,), "squares": (features,)}
    weight, mean, squares = (arrays.take(f"moments/{name}", shape).numpy() for name, shape in shapes.items())
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


def _waiting(arrays: Arrays, setting: Setting, task: Task) -> Samples:
    cell = arrays.take("waiting/cell", (None,), "int64")
    value, attributes = None, setting.scheme.attributes
    if any(isinstance(one, Dependence) for one in setting.scheme.comparisons):
        value = arrays.take("waiting/value", (len(cell), len(attributes)))
        numbers = torch.tensor([attribute.is_number for attribute in attributes])
        levels = torch.tensor([attribute.codes for attribute in attributes])
        codes = (value == value.round()) & (value >= -1) & (value < levels)
        if not bool((codes | numbers).all()):
            raise ModelFileError("the samples that wait for their batch have groups that do not exist")
    found = Samples(
        arrays.take("waiting/x", (len(cell), setting.features)),
        arrays.take("waiting/y", (len(cell),), "int64" if task.vector else "float64"),
        cell,
        arrays.take("waiting/weight", (len(cell),)),
        value,
    )
    cells = 1 if setting.scheme.cells is None else setting.scheme.cells.count
    known = bool(((cell >= 0) & (cell < cells)).all())
    if setting.classes:
        known &= bool(((found.y >= 0) & (found.y < setting.classes) & (found.y == found.y.round())).all())
    if not known or bool((found.weight <= 0).any()):
        raise ModelFileError("the samples that wait for their batch have labels, cells or weights that do not exist")
    return found
