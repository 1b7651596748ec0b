"""A fitted model of any kind <-> its file content; classes are looked up by name, since their
rooms are above.
"""

from __future__ import annotations

import importlib
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Literal

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from metrifair.encoding.encoder import TableEncoder
from metrifair.errors import DataError, ModelFileError
from metrifair.saving import boosters, estimators
from metrifair.saving.estimators import check_own_class, file_name, shared_fields
from metrifair.saving.modelfile import Content, add_prefix, strip_prefix
from metrifair.saving.records import (
    Arrays,
    EncoderParameters,
    EncoderRecord,
    InnerRecord,
    PipelineRecord,
    PostprocessorRecord,
    StackRecord,
    file_errors,
    read_classes,
    read_record,
    read_scheme,
    read_value,
    scheme_record,
)
from metrifair.saving.scoring import read_coders
from metrifair.support.checks import check_known, make_seed

_MODULES = {  # of the classes that a file may name; the boosters' libraries are optional
    "FairClassifier": "metrifair.estimators",
    "FairRegressor": "metrifair.estimators",
    "FairStackingClassifier": "metrifair.stacking",
    "FairStackingRegressor": "metrifair.stacking",
    "FairLGBMClassifier": "metrifair.boosting.lightgbm",
    "FairLGBMRegressor": "metrifair.boosting.lightgbm",
    "FairXGBClassifier": "metrifair.boosting.xgboost",
    "FairXGBRegressor": "metrifair.boosting.xgboost",
    "BarycenterPostprocessor": "metrifair.postprocessing.barycenter",
    "ThresholdPostprocessor": "metrifair.postprocessing.threshold",
}
# kinds of files; the record names the class
PIPELINE = "pipeline"
POSTPROCESSOR = "postprocessor"
STACK = "stack"
KINDS = (estimators.ESTIMATOR, boosters.BOOSTER, POSTPROCESSOR, PIPELINE, STACK)


def class_named(name: object) -> Any:
    """The metrifair class that a file may name, or a post-processor of the user's own that is
    imported already; None for others.
    """
    if not isinstance(name, str):
        return None
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    postprocessing = importlib.import_module("metrifair.postprocessing")
    base: type = postprocessing.ScorePostprocessor
    own = {file_name(kind): kind for kind in _subclasses(base)}
    return own.get(name)


def _subclasses(base: type) -> Iterator[type]:
    below: list[type] = base.__subclasses__()
    for kind in below:
        yield kind
        yield from _subclasses(kind)


def model_classes(content: Content) -> Iterator[str]:
    """The names of the classes of the model in a file, and of all models within it.

    >>> inner = {"kind": "booster", "meta": {"kind": "FairLGBMClassifier"}}
    >>> list(model_classes(Content("stack", {"kind": "FairStackingClassifier", "outcome": [inner]}, {})))
    ['FairStackingClassifier', 'FairLGBMClassifier']
    """
    name = content.meta.get("kind")
    if isinstance(name, str):  # table models and pipelines name no class
        yield name
    for inner in _inner_records(content.meta):
        yield from model_classes(Content(inner.kind, inner.meta, {}))


def tree_libraries(content: Content) -> list[str]:
    """The libraries that read the trees in a file: of the model, and of all models within it.

    >>> tree_libraries(Content("booster", {"kind": "FairXGBRegressor"}, {}))
    ['xgboost']
    """
    modules = {_MODULES.get(name, "") for name in model_classes(content)}
    return sorted(
        module.rpartition(".")[2] for module in modules if module.startswith("metrifair.boosting.")
    )


def _inner_records(part: object) -> Iterator[InnerRecord]:
    """The records of models within a record, wherever it holds them: alone, by name or in a
    list.
    """
    values: Iterable[object] = ()
    if isinstance(part, dict) and part.keys() == {"kind", "meta"}:
        yield read_record(InnerRecord, part)
    elif isinstance(part, dict):
        values = part.values()
    elif isinstance(part, list | tuple):
        values = part
    for value in values:
        yield from _inner_records(value)


def make_content(model: Any) -> Content:
    """The content of a fitted model's file: a fair estimator or booster, a post-processor or a
    pipeline of them.
    """
    if isinstance(model, Pipeline):
        return _pipeline_content(model)
    room = _room(type(model))
    if room == "postprocessing":
        return _postprocessor_content(model)
    if room == "stacking":
        return _stack_content(model)
    return boosters.make_content(model) if room == "boosting" else estimators.make_content(model)


def read_model(content: Content, module: torch.nn.Module | None = None) -> Any:
    """The model in the content of a file, of the class that its record names.

    >>> read_model(Content("estimator", {"kind": "Oracle"}, {}))
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: it contains a model of the kind 'Oracle', which this version cannot read
    """
    if content.kind == PIPELINE:
        return _pipeline(content, module)
    name = content.meta.get("kind")
    kind = class_named(name)
    if kind is None:
        raise ModelFileError(
            f"it contains a model of the kind {reprlib.repr(name)}, which this version cannot read"
        )
    room = _room(kind)
    if room == "postprocessing":
        return _postprocessor(kind, content, module)
    if room == "stacking":
        return _stack(kind, content, module)
    if room == "boosting":
        return boosters.read_booster(kind, content)
    return estimators.read_estimator(kind, content, module)


def _wrapped_model(content: Content, module: torch.nn.Module | None) -> Any:
    """The model within a post-processor, which is not a post-processor itself: nesting is
    bounded.
    """
    wrapped = content
    if content.kind == PIPELINE:
        last = read_record(PipelineRecord, content.meta, "a pipeline").model
        wrapped = Content(last.kind, last.meta, {})
    kind = class_named(wrapped.meta.get("kind"))
    if wrapped.kind not in (estimators.ESTIMATOR, boosters.BOOSTER, STACK) or (
        kind is not None and _room(kind) == "postprocessing"
    ):
        raise ModelFileError("a post-processor wraps no other")
    return read_model(content, module)


def _room(kind: type) -> str:
    """The subpackage of a metrifair class."""
    ours = [
        base.__module__.split(".")[1]
        for base in kind.__mro__
        if base.__module__.startswith("metrifair.")
    ]
    return next(
        (room for room in ours if room in ("boosting", "postprocessing", "stacking")), "estimators"
    )


def _pipeline_content(pipeline: Pipeline) -> Content:
    """The content of a fitted pipeline's file."""
    # a plain one would be read again, which may do something else
    if type(pipeline) is not Pipeline:
        raise DataError(
            f"a {type(pipeline).__name__} is a pipeline of another class than scikit-learn's own, "
            "which a model file "
            "cannot contain; put its steps into a sklearn.pipeline.Pipeline, or save its parts "
            "yourself"
        )
    *before, (last, model) = pipeline.steps
    for name, step in before:
        if step not in (None, "passthrough") and type(step) is not TableEncoder:
            raise DataError(
                f"step {name!r} of the pipeline is a {type(step).__name__}, which a model file "
                "cannot contain: before "
                "the model it contains TableEncoder only, which also scales; save the other steps "
                "yourself"
            )
    if class_named(file_name(type(model))) is not type(model):
        raise DataError(
            f"step {last!r} of the pipeline is a {type(model).__name__}, which a model file cannot "
            "contain; end with a "
            "metrifair model, such as FairClassifier(0) or FairLGBMClassifier(0)"
        )
    inner = make_content(model)
    transform_input = None
    if pipeline.transform_input is not None:
        transform_input = list(pipeline.transform_input)
    record = PipelineRecord(
        steps=[name for name, _ in pipeline.steps],
        encoders=[
            encoder_record(step) if isinstance(step, TableEncoder) else None for _, step in before
        ],
        model=inner_record(inner),
        verbose=bool(pipeline.verbose),
        transform_input=transform_input,
    )
    return Content(PIPELINE, record.as_json(), inner.arrays)


def _pipeline(content: Content, module: torch.nn.Module | None) -> Pipeline:
    """The pipeline in the content of a file."""
    record = read_record(PipelineRecord, content.meta, "a pipeline")
    if len(record.steps) != len(record.encoders) + 1:
        raise ModelFileError(
            "the file does not describe a pipeline: its steps are not those that it names"
        )
    if record.model.kind == PIPELINE:
        raise ModelFileError(
            "the file does not describe a pipeline: it ends with another, not with a model"
        )
    encoders = ["passthrough" if step is None else read_encoder(step) for step in record.encoders]
    model = read_model(Content(record.model.kind, record.model.meta, content.arrays), module)
    fitted = [step for step in (*encoders, model) if not isinstance(step, str)]
    for encoder, after in pairwise(fitted):
        produced = len(encoder.get_feature_names_out())
        expected = after.n_features_in_
        if produced != expected:
            raise ModelFileError(
                f"the encoder makes {produced} columns, and the next step takes {expected}"
            )
    steps = list(zip(record.steps, [*encoders, model], strict=True))
    pipeline = Pipeline(steps, verbose=record.verbose, transform_input=record.transform_input)
    with file_errors("the file does not describe a pipeline", ValueError, TypeError):
        pipeline._validate_steps()  # unique names, which are no parameters
    return pipeline


def encoder_record(encoder: TableEncoder) -> EncoderRecord:
    """The content of an encoder in a file.

    >>> record = encoder_record(TableEncoder().fit({"age": [20, 40]}))
    >>> record.coders["age"]
    {'kind': 'number', 'median': 30.0, 'center': 30.0, 'spread': 10.0, 'flagged': False}
    >>> read_encoder(record).transform({"age": [50]})
    array([[2.]])
    """
    check_is_fitted(encoder, "coders_")
    names = getattr(encoder, "feature_names_in_", None)
    return EncoderRecord(
        parameters=EncoderParameters(
            **{name: int(value) for name, value in encoder.get_params().items()}
        ),
        count=int(encoder.n_features_in_),
        names=None if names is None else [str(name) for name in names],
        coders={name: msgspec.to_builtins(coder) for name, coder in encoder.coders_.items()},
        dropped=dict(encoder.dropped_),
        output=getattr(encoder, "_sklearn_output_config", {}).get("transform"),
    )


def read_encoder(record: EncoderRecord) -> TableEncoder:
    """The encoder, or a ModelFileError if the record does not describe one."""
    coders = read_coders(record)
    encoder = TableEncoder(
        min_frequency=record.parameters.min_frequency, max_levels=record.parameters.max_levels
    )
    encoder.n_features_in_ = record.count
    encoder.dropped_ = record.dropped
    encoder.coders_ = coders
    if record.names is not None:
        encoder.feature_names_in_ = np.array(record.names, dtype=object)
    encoder.set_output(transform=record.output)  # None changes nothing
    return encoder


_WRAPPED: tuple[Literal["estimator", "group_model"], ...] = ("estimator", "group_model")


def _postprocessor_content(model: Any) -> Content:
    """The content of a fitted post-processor's file; the models that it wraps are kept as their own
    files would be.

    Its class writes (``state``) and checks (``restore``) its maps and thresholds.
    """
    kind = type(model)
    if class_named(file_name(kind)) is not kind:
        raise DataError(f"{file_name(kind)} names another class now; fit the model again")
    check_is_fitted(model, "base_")
    parts = {"base": model.base_} | (
        {} if model.needs_group else {"guess": model.group_model_.model}
    )
    inner = {name: _inner_content(model, part) for name, part in parts.items()}
    record = PostprocessorRecord(
        **shared_fields(model, besides=_WRAPPED),
        wraps=[name for name in _WRAPPED if getattr(model, name) is not None],
        scheme=scheme_record(model.crossed_.scheme),
        inner={name: inner_record(content) for name, content in inner.items()},
    )
    arrays = add_prefix(
        "state/", {"seen": model.crossed_.seen.astype(np.float64), **model._file_arrays()}
    )
    for name, content in inner.items():
        arrays |= add_prefix(f"{name}/", content.arrays)
    return Content(POSTPROCESSOR, record.as_json(), arrays)


def _inner_content(model: Any, part: Any) -> Content:
    """The file content of a model within this one."""
    if not (type(part).__module__.startswith("metrifair.") or isinstance(part, Pipeline)):
        raise DataError(
            f"{type(model).__name__} wraps a {type(part).__name__}, which a model file cannot "
            "contain; wrap "
            "a metrifair model, such as FairClassifier(0) or FairLGBMClassifier(0), or save its "
            "parts yourself"
        )
    return make_content(part)


def inner_record(content: Content) -> InnerRecord:
    """The record of a model within another file."""
    return InnerRecord(kind=content.kind, meta=content.meta)  # type: ignore[arg-type]


def _postprocessor(kind: type, content: Content, module: torch.nn.Module | None) -> Any:
    """The post-processor in the content of a file."""
    record = read_record(PostprocessorRecord, content.meta)
    if set(record.inner) not in ({"base"}, {"base", "guess"}):
        raise ModelFileError(
            "the file does not describe a model: a post-processor wraps a base, and at most a guess"
        )
    if sum(
        len(strip_prefix(f"{name}/", content.arrays)) for name in (*record.inner, "state")
    ) < len(content.arrays):
        raise ModelFileError("the file contains arrays that belong to no part of the model")
    inner = {
        name: _wrapped_model(
            Content(part.kind, part.meta, strip_prefix(f"{name}/", content.arrays)), module
        )
        for name, part in record.inner.items()
    }
    # From the checks of a user's own arguments.
    with file_errors(
        "the file does not describe a model", DataError, TypeError, ValueError, OverflowError
    ):
        return _assemble(
            _construct(kind, record, inner),
            record,
            inner,
            Arrays(strip_prefix("state/", content.arrays)),
        )


def _assemble(
    model: Any, record: PostprocessorRecord, inner: Mapping[str, Any], state: Arrays
) -> Any:
    base = inner["base"]
    classes = None
    model.n_features_in_ = record.features.count
    if record.features.names is not None:
        model.feature_names_in_ = np.array(record.features.names, dtype=object)
    if record.classes is not None:
        model.classes_ = classes = read_classes(record.classes)
    if not (classes is None) == is_regressor(base) == is_regressor(model):
        raise ModelFileError("classes are of classifiers, and only of them")
    if classes is not None and (len(classes) != 2 or list(base.classes_) != list(classes)):
        raise ModelFileError("the classes are not the two of the model that is wrapped")
    # a pipeline whose first step is "passthrough" has no count of its own
    count = record.features.count
    if any(getattr(part, "n_features_in_", count) != count for part in inner.values()):
        raise ModelFileError("a model that is wrapped takes another number of features")
    scheme = read_scheme(record.scheme, classes)
    model.base_ = base
    model.positive_ = scheme.positive
    seen = state.take("seen", (None, len(scheme.attributes)))
    model._restore(scheme, seen.astype(np.int64), inner.get("guess"), state)
    state.check_all_taken()
    model.generator_ = np.random.RandomState(make_seed(model.random_state))
    return model


def _construct(kind: type, record: PostprocessorRecord, inner: Mapping[str, Any]) -> Any:
    """A post-processor with its parameters; an estimator that was passed is an unfitted copy of
    the wrapped model.
    """
    names = {name for name in kind().get_params(deep=False) if name not in _WRAPPED}
    for name in record.parameters:
        check_known("a parameter", name, names)
    values = {name: read_value(name, json) for name, json in record.parameters.items()}
    model = kind(**values)
    wrapped = {"estimator": inner["base"], "group_model": inner.get("guess")}
    for name in record.wraps:
        if wrapped[name] is None:
            raise ModelFileError(f"{name} is missing")
        setattr(
            model,
            name,
            wrapped[name] if name == "estimator" and model.prefit else clone(wrapped[name]),
        )
    model._check_parameters()
    if model.needs_group != ("guess" not in inner):
        raise ModelFileError(
            "a post-processor guesses the group where it does not need it, and nowhere else"
        )
    if model.random_state is not None and not isinstance(model.random_state, int):
        raise ModelFileError("random_state must be an integer or None")
    return model


_STACKED: tuple[Literal["outcome_models", "group_models"], ...] = ("outcome_models", "group_models")
# that a stack has too
_OF_LAST = ("classes_", "target_scaling_", "scheme_", "left_out_", "moments_", "n_iter_")


def _stack_content(model: Any) -> Content:
    """The content of a fitted stack's file: its last model, an estimator like any other, and
    those before it.
    """
    check_own_class(type(model))
    check_is_fitted(model, "predictor_")
    predictor = model.predictor_
    last = class_named("FairRegressor" if is_regressor(model) else "FairClassifier")()
    last.set_params(**{name: getattr(model, name) for name in last.get_params()})
    last.__dict__.update({name: value for name, value in vars(model).items() if name in _OF_LAST})
    last.predictor_ = predictor.last
    last.n_features_in_ = predictor.last.scaling.mean.shape[-1]
    parts = {"last0": make_content(last)}
    arrays: dict[str, NDArray[Any]] = {}
    for name, blend in {"outcome": predictor.outcome, "group": predictor.group}.items():
        if blend is not None:
            parts |= {
                f"{name}{place}": _inner_content(model, part)
                for place, part in enumerate(blend.models)
            }
        if blend is not None and blend.correction is not None:
            slope, bias = blend.correction
            arrays |= {f"state/{name}_slope": np.array([slope]), f"state/{name}_bias": bias}
    for name, part in parts.items():
        arrays |= add_prefix(f"{name}/", part.arrays)
    records = {name: inner_record(part) for name, part in parts.items()}
    record = StackRecord(
        **shared_fields(model, besides=(*_STACKED, *last.get_params())),
        last=records.pop("last0"),
        outcome=[part for name, part in records.items() if name.startswith("outcome")],
        group=[part for name, part in records.items() if name.startswith("group")],
        given=[name for name in _STACKED if getattr(model, name) is not None],
    )
    return Content(STACK, record.as_json(), arrays)


def _stack(kind: type, content: Content, module: torch.nn.Module | None) -> Any:
    """The stack in the content of a file."""
    record = read_record(StackRecord, content.meta)
    parts = {"last": [record.last], "outcome": record.outcome, "group": record.group}
    used = len(strip_prefix("state/", content.arrays))
    inner: dict[str, list[Any]] = {name: [] for name in parts}
    for name, records in parts.items():
        for place, part in enumerate(records):
            part_class = class_named(part.meta.get("kind"))
            plain = part_class is not None and _room(part_class) in ("estimators", "boosting")
            if not plain or part.kind == PIPELINE:  # no file is to be nested without end
                raise ModelFileError("a stack takes predictions of estimators and boosters only")
            arrays = strip_prefix(f"{name}{place}/", content.arrays)
            used += len(arrays)
            inner[name].append(
                read_model(
                    Content(part.kind, part.meta, arrays), module if name == "last" else None
                )
            )
    if used < len(content.arrays):
        raise ModelFileError("the file contains arrays that belong to no part of the model")
    # From the checks of a user's own arguments.
    with file_errors(
        "the file does not describe a model", DataError, TypeError, ValueError, OverflowError
    ):
        return _assemble_stack(kind, record, inner, Arrays(strip_prefix("state/", content.arrays)))


def _assemble_stack(
    kind: type, record: StackRecord, inner: Mapping[str, list[Any]], state: Arrays
) -> Any:
    (last,) = inner["last"]
    models = {name: inner[name] for name in ("outcome", "group") if inner[name]}
    numeric = is_regressor(kind())
    ours = "FairRegressor" if numeric else "FairClassifier"
    if type(last) is not class_named(ours):
        raise ModelFileError(f"a {record.kind} does not end with a {type(last).__name__}")
    if any(
        is_regressor(part) != (numeric and name == "outcome")
        for name, parts in models.items()
        for part in parts
    ):
        raise ModelFileError("the models of a stack do not predict the inputs of its last model")
    count = record.features.count
    if any(part.n_features_in_ != count for parts in models.values() for part in parts):
        raise ModelFileError("a model of the stack takes another number of features")
    values = {name: read_value(name, json) for name, json in record.parameters.items()}
    for name in values:
        check_known(
            "a parameter", name, set(kind().get_params(deep=False)) - set(last.get_params())
        )
    model = kind(**last.get_params(deep=False), **values)
    for name in record.given:
        setattr(
            model,
            name,
            [clone(part) for part in models.get(name.removesuffix("_models"), ())] or None,
        )
    model._check_parameters()
    model.n_features_in_ = count
    if record.features.names is not None:
        model.feature_names_in_ = np.array(record.features.names, dtype=object)
    model.__dict__.update({name: value for name, value in vars(last).items() if name in _OF_LAST})
    model.predictor_ = model._restore_predictor(last, models, state, count)
    state.check_all_taken()
    return model
