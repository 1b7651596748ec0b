"""A fitted fair classifier or regressor <-> its record and arrays.

Nothing in a file is taken on trust: a part that does not fit the others is a ModelFileError. Cells are compiled from
the record, never stored; a learner's state is whole, so that a stream goes on bit by bit the same.
"""

from __future__ import annotations

import copy
import math
import reprlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from metrifair.batches import Coverage
from metrifair.checks import check_known
from metrifair.errors import DataError, ModelFileError
from metrifair.metrics.registry import METRICS
from metrifair.problem.cells import Attribute, Strata, compiled, overlapping_strata, separate_strata
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.problem.problem import Scheme
from metrifair.problem.samples import Samples
from metrifair.problem.tasks import BINARY, MULTICLASS, REGRESSION_LOSSES, Task, regression
from metrifair.saving.modelfile import Content, prefixed, under
from metrifair.saving.schema import (
    AttributeRecord,
    Classes,
    EstimatorRecord,
    Features,
    LearnerRecord,
    ModuleRecord,
    NetworkRecord,
    SchemeRecord,
    StrataRecord,
    in_one_line,
    plain,
    record_of,
    scalar_of,
    value_of,
)
from metrifair.training import Predictor, Scaling
from metrifair.training.models import Model, Network, StackedModule
from metrifair.training.objective import Objective
from metrifair.training.online import Learner, Moments

KIND = "estimator"  # of the file; which one it is, the record says

_SWITCHES = ("unbiased", "intersectional", "standardize")
_METHODS = ("fit", "partial_fit", "score")  # those that take metadata
_ADAM = ("vector", "gradient", "moments", "powers", "learning_rate")  # in the order of Adam.snapshot
_SAMPLES = ("x", "y", "cell", "weight")
_WORDS = 624  # of the generator's state, which lies behind its seed, two positions and a flag
_MOST_CHARACTERS = 2**22  # of all class labels together
_MOST_COMPARISONS = 20_000
_MOST_WORK = 10**8  # table entries x comparisons: what compiling takes time for


class Arrays:
    """The arrays of a model file, each taken once, as tensors of their own.

    >>> Arrays({"mean": np.zeros(3)}).take("mean", (1, 3))
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: array 'mean' must be float64 of shape (1, 3), got float64 of shape (3,)
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._left = dict(arrays)

    def take(self, name: str, shape: Sequence[int | None], dtype: str = "float64", *, finite: bool = True) -> Tensor:
        """The array of this name, of this shape; None stands for any length."""
        array = self._left.pop(name, None)
        if array is None:
            raise ModelFileError(f"array {name!r} is missing")
        wanted = tuple(shape)
        fits = array.ndim == len(wanted) and all(b in (None, a) for a, b in zip(array.shape, wanted, strict=True))
        if array.dtype.name != dtype or not fits:
            raise ModelFileError(
                f"array {name!r} must be {dtype} of shape {wanted}, got {array.dtype} of shape {array.shape}"
            )
        if finite and not np.isfinite(array).all():
            raise ModelFileError(f"array {name!r} holds numbers that are not finite")
        return torch.from_numpy(np.array(array, order="C"))

    def check_all_taken(self) -> None:
        """Raise a ModelFileError if the file holds more than the model."""
        if self._left:
            raise ModelFileError(f"the model has no use for the arrays {reprlib.repr(sorted(self._left))}")


# Writing


def content_of(estimator: BaseEstimator) -> Content:
    """What the file of a fitted estimator holds; many estimators can share a file, their arrays ``prefixed``.

    >>> from metrifair.estimators import FairRegressor
    >>> model = FairRegressor(0.0, model="linear").fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> sorted(content_of(model).arrays)
    ['parameters/bias0', 'parameters/weight0', 'scaling/mean', 'scaling/scale']
    """
    kind = type(estimator)
    check_own_class(kind)
    check_is_fitted(estimator, ["predictor_", "scheme_"])
    content = _taken_apart(estimator)
    module = getattr(estimator.predictor_.model, "module", None)
    if module is None and isinstance(estimator.model, torch.nn.Module):
        module = estimator.model
    try:
        again = estimator_of(kind, content, module)  # what could not be read again is not written
    except ModelFileError as error:
        raise DataError(f"this {kind.__name__} cannot be saved: {error}") from error
    before, after = estimator.scheme_.cells, again.scheme_.cells
    if before is not None and after is not None:
        same_cells = np.array_equal(before.table, after.table)
        if not same_cells or before.comparisons != after.comparisons:
            raise DataError("contrast or pos_label was changed after fitting; set it back, or fit again, before saving")
    return content


def check_own_class(kind: type) -> None:
    """Raise a DataError where the class is one that a loader would not find."""
    if not kind.__module__.startswith("metrifair."):
        raise DataError(
            f"{kind.__name__} is a class of your own, and a model file holds no code; save its parts yourself"
        )


def _taken_apart(estimator: BaseEstimator) -> Content:
    fitted, predictor = vars(estimator), estimator.predictor_
    classes, names = fitted.get("classes_"), fitted.get("feature_names_in_")
    positive = 1
    if classes is not None:
        known = classes.tolist()
        positive = known.index(estimator.pos_label) if estimator.pos_label in known else len(known) - 1
    tensors: dict[str, Tensor] = {f"parameters/{name}": value for name, value in predictor.parameters.items()}
    tensors |= {f"scaling/{name}": part for name, part in predictor.scaling._asdict().items()}
    model: NetworkRecord | ModuleRecord
    if isinstance(predictor.model, Network):
        model = NetworkRecord(hidden=[int(units) for units in predictor.model.hidden])
    elif isinstance(predictor.model, StackedModule):
        buffers = dict(predictor.model.module.named_buffers())
        tensors |= {f"buffers/{name}": value for name, value in buffers.items()}
        called = type(predictor.model.module).__name__
        model = ModuleRecord(module=called, names=list(predictor.parameters), buffers=list(buffers))
    else:
        raise DataError(f"a model of type {type(predictor.model).__name__} cannot be saved")
    learner = None
    if "learner_" in fitted:
        learner, state = _learner_parts(estimator.learner_)
        tensors |= {f"learner/{name}": part for name, part in state.items()}
    seen = fitted.get("weight_seen_")
    record = EstimatorRecord(
        kind=type(estimator).__name__,
        parameters={name: _parameter(name, value) for name, value in estimator.get_params(deep=False).items()},
        features=Features(count=estimator.n_features_in_, names=None if names is None else [str(one) for one in names]),
        classes=None if classes is None else classes_record(classes),
        target_scaling=tuple(map(float, fitted["target_scaling_"])) if classes is None else None,  # type: ignore[arg-type]
        iterations=fitted.get("n_iter_"),
        weight_seen=None if seen is None else float(seen),
        scheme=_scheme_record(estimator.scheme_, contrast=estimator.contrast, positive=positive),
        model=model.as_json(),
        learner=learner,
        requests=requests_of(estimator),
    )
    return Content(KIND, record.as_json(), {name: part.detach().cpu().numpy() for name, part in tensors.items()})


def _parameter(name: str, value: object) -> Any:
    if name == "random_state" and isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, torch.nn.Module):
        return {"module": type(value).__name__}
    return plain(name, value)


def classes_record(classes: NDArray[Any]) -> Classes:
    """Class labels, with their type.

    >>> classes_record(np.array(["no", "yes"]))
    Classes(dtype='U3', values=['no', 'yes'])
    """
    dtype = f"U{classes.dtype.itemsize // 4}" if classes.dtype.kind == "U" else classes.dtype.name
    if classes.dtype.kind not in "UbiufO" or classes.dtype.itemsize > 4 * 9999 or dtype == "float128":
        raise DataError(f"class labels of type {classes.dtype} cannot be saved; use numbers, strings or booleans")
    return Classes(dtype=dtype, values=[plain("y", value) for value in classes.tolist()])


def _scheme_record(scheme: Scheme, *, contrast: str, positive: int) -> SchemeRecord:
    strata = None
    if scheme.strata is not None:
        names = list(scheme.strata.names)
        strata = StrataRecord(names=names, overlapping=len(scheme.strata.member) == 2 ** len(names))
    return SchemeRecord(
        criterion=plain("criterion", scheme.criterion),
        attributes=[
            AttributeRecord(name=one.name, groups=[plain(one.name, group) for group in one.groups])
            for one in scheme.attributes
        ],
        intersectional=bool(scheme.intersectional),
        strata=strata,
        compared=scheme.cells is not None,
        contrast=contrast,  # type: ignore[arg-type]
        positive=positive,
    )


def _learner_parts(learner: Learner) -> tuple[LearnerRecord, dict[str, Tensor]]:
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
        unbiased=bool(objective.unbiased),
        compare=objective.compare,
        slices=objective.slices,
        moments=learner.moments is not None,
        waiting=learner.waiting is not None,
    )
    tensors = {f"adam/{name}": part for name, part in zip(_ADAM, learner.adam.snapshot(), strict=True)}
    tensors["generator"] = objective.generator.get_state()
    if learner.moments is not None:
        tensors |= {f"moments/{name}": part for name, part in learner.moments._asdict().items()}
    if learner.waiting is not None:
        tensors |= {f"waiting/{name}": getattr(learner.waiting, name) for name in _SAMPLES}
    return record, tensors


def requests_of(estimator: BaseEstimator) -> dict[str, dict[str, bool | str]]:
    """For each method the metadata that scikit-learn was asked to route to it, or not to; empty where nothing was."""
    routing = estimator.get_metadata_routing()
    said = {method: getattr(routing, method).requests for method in _METHODS}
    given = {method: {name: alias for name, alias in own.items() if alias is not None} for method, own in said.items()}
    return {method: own for method, own in given.items() if own}


# Reading


def estimator_of(
    kind: type[BaseEstimator], content: Content, module: torch.nn.Module | None = None
) -> BaseEstimator:
    """The estimator of this class that ``content_of`` took apart; parts that do not fit are a ModelFileError."""
    record = record_of(EstimatorRecord, content.meta)
    try:
        return _put_together(kind, record, content.arrays, copy.deepcopy(module))
    except ModelFileError:
        raise
    except DataError as error:  # from the checks that a user's own arguments go through
        raise ModelFileError(f"the file does not describe a model: {in_one_line(error)}") from error


def _put_together(
    kind: type[BaseEstimator],
    record: EstimatorRecord,
    arrays: Mapping[str, NDArray[Any]],
    module: torch.nn.Module | None,
) -> BaseEstimator:
    estimator = _constructed(kind, record.parameters, module)
    if module is not None and estimator.model is not module and "module" not in record.model:
        raise ModelFileError("the model needs no module; leave module out")
    count, names = record.features.count, record.features.names
    estimator.n_features_in_ = count
    if names is not None:
        if len(names) != count:
            raise ModelFileError(f"there are {count} features, and {len(names)} names for them")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    classes = None
    if hasattr(kind, "predict_proba"):
        estimator.classes_ = classes = classes_of(record.classes)
    elif record.target_scaling is None:
        raise ModelFileError("the file does not describe a model: target_scaling is missing")
    else:
        estimator.target_scaling_ = record.target_scaling
    estimator.scheme_ = scheme = _scheme_of(record.scheme, classes)
    outputs = 1 if classes is None or len(classes) == 2 else len(classes)
    own = Arrays({name: array for name, array in arrays.items() if not name.startswith("learner/")})
    estimator.predictor_ = predictor = _predictor(record, own, outputs, module)
    own.check_all_taken()
    if record.iterations is not None:
        estimator.n_iter_ = record.iterations
    if record.weight_seen is not None:
        estimator.weight_seen_ = record.weight_seen
    state = Arrays(under("learner/", arrays))
    if record.learner is not None:
        labels = 0 if classes is None else len(classes)
        estimator.learner_ = _learner(record.learner, state, _Setting(predictor, scheme, count, labels))
    state.check_all_taken()
    restore_requests(estimator, record.requests)
    return estimator


def _constructed(
    kind: type[BaseEstimator], given: Mapping[str, Any], module: torch.nn.Module | None
) -> BaseEstimator:
    """An estimator with these parameters; those the file does not have keep their default."""
    known = kind().get_params(deep=False)
    values: dict[str, Any] = {}
    for name, json in given.items():
        check_known("a parameter", name, known)
        if isinstance(json, dict) and "module" in json:
            values["model"] = _given(module, json["module"])
        else:
            values[name] = value_of(name, json)
    values |= {name: bool(values[name]) for name in _SWITCHES if values.get(name) in (0, 1)}  # as older files may say
    estimator = kind(**values)
    estimator._check_parameters()
    criterion_named(estimator.criterion)
    check_known("metric", estimator.metric, METRICS)
    check_known("contrast", estimator.contrast, ("pairs", "rest"))
    if "loss" in known:
        check_known("loss", estimator.loss, REGRESSION_LOSSES)
    if not isinstance(estimator.model, torch.nn.Module):
        check_known("model", estimator.model, ("linear", "mlp"))
    state, hidden = estimator.random_state, estimator.hidden
    fits = {
        "device": isinstance(estimator.device, str),
        "random_state": state is None or isinstance(state, int),
        "hidden": hidden is None or (isinstance(hidden, (list, tuple)) and all(isinstance(u, int) for u in hidden)),
    }
    for name in (name for name, good in fits.items() if not good):
        raise ModelFileError(f"{name} cannot be {reprlib.repr(getattr(estimator, name))}")
    return estimator


def _given(module: torch.nn.Module | None, name: object) -> torch.nn.Module:
    """The module that the caller must have passed."""
    if module is None:
        called = name if isinstance(name, str) and name.isidentifier() and len(name) < 80 else "..."
        raise ModelFileError(
            f"the model is your own module {called!r}, of which the file holds the weights, not the code; pass it, as "
            f"in load(path, module={called}())"
        )
    return module


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


def _scheme_of(record: SchemeRecord, classes: NDArray[Any] | None) -> Scheme:
    """The scheme, compiled anew."""
    criterion = value_of("scheme.criterion", record.criterion)
    if not isinstance(criterion, Criterion):
        raise ModelFileError(f"scheme.criterion must be a criterion, got {reprlib.repr(criterion)}")
    attributes = tuple(
        Attribute(one.name, tuple(scalar_of("a group", group) for group in one.groups)) for one in record.attributes
    )
    for one in attributes:
        if len(set(one.groups)) < len(one.groups):
            raise ModelFileError(f"{reprlib.repr(one.name)} names a group twice: {reprlib.repr(one.groups)}")
    strata = None
    if record.strata is not None:
        names, most = record.strata.names, math.isqrt(_MOST_WORK)
        if not 1 <= len(names) <= most:
            raise ModelFileError(f"there must be between 1 and {most} strata, got {len(names)}")
        strata = overlapping_strata(names) if record.strata.overlapping else separate_strata(names)
    if not record.compared:
        return Scheme(criterion, attributes, record.intersectional, strata)
    labels = () if classes is None else tuple(classes.tolist())
    patterns = 1
    if criterion.labels is not None:
        patterns = len(labels) if criterion.bins is None else len(criterion.bins) + 1
        if criterion.labels != "every" and record.positive >= patterns:
            raise ModelFileError(f"scheme.positive must be below {patterns}, got {record.positive}")
    _check_size(criterion, attributes, patterns, strata)
    cells = compiled(
        criterion, attributes, classes=labels, positive=record.positive, strata=strata, contrast=record.contrast
    )
    return Scheme(criterion, attributes, record.intersectional, strata, cells)


def _check_size(criterion: Criterion, attributes: tuple[Attribute, ...], patterns: int, strata: Strata | None) -> None:
    """Refuse what would take the compiler long, before it begins."""
    rows, columns = (1, 1) if strata is None else strata.member.shape
    sets = columns * (patterns if criterion.labels == "every" else 1)
    table = patterns * (rows + 1) * math.prod(len(attribute.groups) + 1 for attribute in attributes)
    comparisons = sets * sum(math.comb(len(attribute.groups), 2) for attribute in attributes)
    work = max(table * max(comparisons, sets), patterns**2 * rows * columns)
    if not attributes or comparisons > _MOST_COMPARISONS or work > _MOST_WORK:
        raise ModelFileError(
            f"the scheme compares {len(attributes)} attributes in {comparisons} ways; a model file has at least one, "
            f"and at most {_MOST_COMPARISONS} ways"
        )


def _predictor(record: EstimatorRecord, arrays: Arrays, outputs: int, module: torch.nn.Module | None) -> Predictor:
    """The predictor; a module's buffers are set in place."""
    features = record.features.count
    mean, scale = (arrays.take(f"scaling/{name}", (1, features)) for name in ("mean", "scale"))
    if bool((scale <= 0).any()):
        raise ModelFileError("array 'scaling/scale' must be positive")
    model: Model
    shapes: dict[str, tuple[int, ...]] = {}
    if "hidden" in record.model:
        network = Network(features, tuple(record_of(NetworkRecord, record.model).hidden), outputs)
        for layer, (before, after) in enumerate(pairwise(network.widths)):
            shapes |= {f"weight{layer}": (after, before), f"bias{layer}": (after, 1)}
        model = network
    else:
        saved = record_of(ModuleRecord, record.model)
        own = _given(module, saved.module)
        parameters, buffers = dict(own.named_parameters()), dict(own.named_buffers())
        for what, names, there in (("parameters", saved.names, parameters), ("buffers", saved.buffers, buffers)):
            if sorted(names) != sorted(there):
                raise ModelFileError(
                    f"{type(own).__name__} has the {what} {reprlib.repr(sorted(there))}, the file has "
                    f"{reprlib.repr(sorted(names))}; pass a module like the one that was fitted"
                )
        shapes = {name: tuple(parameters[name].shape) for name in saved.names}  # in the order of the learner's vector
        for name, buffer in buffers.items():
            dtype = str(buffer.dtype).removeprefix("torch.")
            buffer.copy_(arrays.take(f"buffers/{name}", buffer.shape, dtype, finite=False))
        model = StackedModule(own, outputs)
    weights = {name: arrays.take(f"parameters/{name}", (1, 1, *shape)) for name, shape in shapes.items()}
    return Predictor(model, weights, Scaling(mean, scale))


class _Setting(NamedTuple):
    """What a learner shares with its estimator."""

    predictor: Predictor
    scheme: Scheme
    features: int
    classes: int  # 0: regression


def _learner(record: LearnerRecord, arrays: Arrays, setting: _Setting) -> Learner:
    """The learner that ``_learner_parts`` took apart."""
    check_known("metric", record.metric, METRICS)
    task: Task = BINARY if setting.classes == 2 else MULTICLASS
    if not setting.classes:
        task = regression(record.loss or "")
    objective = Objective(
        task,
        setting.scheme.comparisons,
        setting.scheme.criterion,
        record.metric,
        unbiased=record.unbiased,
        compare=record.compare,
        slices=record.slices,
        generator=_generator(arrays.take("generator", (None,), "uint8")),
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
    if record.moments:
        shapes: dict[str, tuple[int, ...]] = {"weight": (), "mean": (setting.features,), "squares": (setting.features,)}
        learner.moments = Moments(*(arrays.take(f"moments/{name}", shape) for name, shape in shapes.items()))
        if bool(learner.moments.weight < 0) or bool((learner.moments.squares < 0).any()):
            raise ModelFileError("the running moments of the features are negative")
    if record.waiting:
        learner.waiting = _waiting(arrays, setting, task)
    return learner


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


def _waiting(arrays: Arrays, setting: _Setting, task: Task) -> Samples:
    cell = arrays.take("waiting/cell", (None,), "int64")
    found = Samples(
        arrays.take("waiting/x", (len(cell), setting.features)),
        arrays.take("waiting/y", (len(cell),), "int64" if task.vector else "float64"),
        cell,
        arrays.take("waiting/weight", (len(cell),)),
    )
    cells = 1 if setting.scheme.cells is None else setting.scheme.cells.count
    known = bool(((cell >= 0) & (cell < cells)).all())
    if setting.classes:
        known &= bool(((found.y >= 0) & (found.y < setting.classes) & (found.y == found.y.round())).all())
    if not known or bool((found.weight <= 0).any()):
        raise ModelFileError("the samples that wait for their batch have labels, cells or weights that do not exist")
    return found


def restore_requests(estimator: BaseEstimator, requests: Mapping[str, Mapping[str, bool | str]]) -> None:
    """Ask scikit-learn again for the metadata that ``requests_of`` found."""
    routing = estimator.get_metadata_routing()
    for method, said in requests.items():
        known = getattr(routing, method).requests if method in _METHODS else {}
        for name, alias in said.items():
            if name not in known or not (isinstance(alias, bool) or alias.isidentifier()):
                raise ModelFileError(f"the requests of {in_one_line(method)} cannot be {reprlib.repr({name: alias})}")
        with sklearn.config_context(enable_metadata_routing=True):  # else nothing may be asked for
            getattr(estimator, f"set_{method}_request")(**said)
