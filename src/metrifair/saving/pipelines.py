"""A fitted scikit-learn pipeline of our encoder and a model of ours <-> its record and arrays."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from metrifair.encoding.encoder import Levels, TableEncoder
from metrifair.errors import DataError, ModelFileError
from metrifair.saving.modelfile import Content
from metrifair.saving.schema import (
    EncoderParameters,
    EncoderRecord,
    InnerRecord,
    PipelineRecord,
    in_one_line,
    record_of,
)

KIND = "pipeline"  # of the file


def content_of(pipeline: Pipeline, inner_of: Callable[[Any], Content], is_ours: Callable[[Any], bool]) -> Content:
    """What the file of a fitted pipeline holds; ``inner_of`` takes its last step apart, which ``is_ours`` must know."""
    if type(pipeline) is not Pipeline:  # a plain one would be read again, which may do something else
        raise DataError(
            f"a {type(pipeline).__name__} is a pipeline of another class than scikit-learn's own, which a model file "
            "cannot hold; put its steps into a sklearn.pipeline.Pipeline, or save its parts yourself"
        )
    *before, (last, model) = pipeline.steps
    for name, step in before:
        if step not in (None, "passthrough") and type(step) is not TableEncoder:
            raise DataError(
                f"step {name!r} of the pipeline is a {type(step).__name__}, which a model file cannot hold: before the "
                "model it holds TableEncoder only, which also scales; save the other steps yourself"
            )
    if not is_ours(model):
        raise DataError(
            f"step {last!r} of the pipeline is a {type(model).__name__}, which a model file cannot hold; end with a "
            "model of ours, such as FairClassifier(0) or FairLGBMClassifier(0)"
        )
    inner = inner_of(model)
    record = PipelineRecord(
        steps=[name for name, _ in pipeline.steps],
        encoders=[encoder_record(step) if isinstance(step, TableEncoder) else None for _, step in before],
        model=InnerRecord(kind=inner.kind, meta=inner.meta),  # type: ignore[arg-type]
        verbose=bool(pipeline.verbose),
        transform_input=None if pipeline.transform_input is None else list(pipeline.transform_input),
    )
    return Content(KIND, record.as_json(), inner.arrays)


def pipeline_of(content: Content, model_of: Callable[[Content], Any]) -> Pipeline:
    """The pipeline that ``content_of`` took apart; ``model_of`` makes the model at its end."""
    record = record_of(PipelineRecord, content.meta, "a pipeline")
    if len(record.steps) != len(record.encoders) + 1:
        raise ModelFileError("the file does not describe a pipeline: its steps are not those that it names")
    if record.model.kind == KIND:
        raise ModelFileError("the file does not describe a pipeline: it ends with another, not with a model")
    encoders = ["passthrough" if one is None else encoder_of(one) for one in record.encoders]
    model = model_of(Content(record.model.kind, record.model.meta, content.arrays))
    fitted = [step for step in (*encoders, model) if not isinstance(step, str)]
    for encoder, after in pairwise(fitted):
        made, taken = len(encoder.get_feature_names_out()), after.n_features_in_
        if made != taken:
            raise ModelFileError(f"the encoder makes {made} columns, and the next step takes {taken}")
    steps = list(zip(record.steps, [*encoders, model], strict=True))
    found = Pipeline(steps, verbose=record.verbose, transform_input=record.transform_input)
    try:
        found._validate_steps()  # unique names, which are no parameters
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"the file does not describe a pipeline: {in_one_line(error)}") from error
    return found


def encoder_record(encoder: TableEncoder) -> EncoderRecord:
    """What a file holds of an encoder.

    >>> record = encoder_record(TableEncoder().fit({"age": [20, 40]}))
    >>> record.coders["age"]
    {'kind': 'number', 'median': 30.0, 'centre': 30.0, 'spread': 10.0, 'flagged': False}
    >>> encoder_of(record).transform({"age": [50]})
    array([[2.]])
    """
    check_is_fitted(encoder, "coders_")
    names = getattr(encoder, "feature_names_in_", None)
    return EncoderRecord(
        parameters=EncoderParameters(**{name: int(value) for name, value in encoder.get_params().items()}),
        count=int(encoder.n_features_in_),
        names=None if names is None else [str(name) for name in names],
        coders={name: msgspec.to_builtins(coder) for name, coder in encoder.coders_.items()},
        dropped=dict(encoder.dropped_),
        output=getattr(encoder, "_sklearn_output_config", {}).get("transform"),
    )


def encoder_of(record: EncoderRecord) -> TableEncoder:
    """The encoder, or a ModelFileError where the record does not describe one."""
    # Before any list of so many names is made: the number is whatever the file says.
    if record.count != len(record.coders) + len(record.dropped):
        raise ModelFileError(f"the encoder has {record.count} columns, and describes others")
    encoder = TableEncoder(min_frequency=record.parameters.min_frequency, max_levels=record.parameters.max_levels)
    encoder.n_features_in_, encoder.dropped_ = record.count, record.dropped
    known = [f"x{place}" for place in range(record.count)] if record.names is None else record.names
    if record.names is not None:
        encoder.feature_names_in_ = np.array(known, dtype=object)
    if sorted([*record.coders, *record.dropped]) != sorted(known):
        raise ModelFileError(f"the encoder describes other columns than it names: {reprlib.repr(known)}")
    encoder.coders_ = record.columns()
    for name, coder in encoder.coders_.items():
        if isinstance(coder, Levels) and len(set(coder.levels)) < len(coder.levels):
            raise ModelFileError(f"column {reprlib.repr(name)} names a level twice: {reprlib.repr(coder.levels)}")
        if not coder.names(""):
            raise ModelFileError(f"column {reprlib.repr(name)} becomes no column")
    if not encoder.coders_:
        raise ModelFileError("the encoder has no columns")
    encoder.set_output(transform=record.output)  # None changes nothing
    return encoder
