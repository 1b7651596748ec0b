"""A fitted post-processor of ours <-> its record and arrays; the model that it wraps is kept as its own file would be.

What its maps and thresholds hold, its class says (``_state``) and checks (``_restore``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from metrifair.checks import check_known, seed_of
from metrifair.errors import DataError, ModelFileError
from metrifair.saving.estimators import check_own_class, requests_of, restore_requests
from metrifair.saving.modelfile import Content, prefixed, under
from metrifair.saving.schema import (
    Arrays,
    Features,
    InnerRecord,
    PostprocessorRecord,
    in_one_line,
    plain,
    record_of,
    value_of,
)
from metrifair.saving.scheme import classes_of, classes_record, scheme_of, scheme_record

KIND = "postprocessor"  # of the file; which one it is, the record says

_WRAPPED: tuple[Literal["estimator", "group_model"], ...] = ("estimator", "group_model")


def content_of(model: Any, inner_of: Callable[[Any], Content]) -> Content:
    """What the file of a fitted post-processor holds; ``inner_of`` takes the models apart that it wraps."""
    check_own_class(type(model))
    check_is_fitted(model, "base_")
    parts = {"base": model.base_} | ({} if model.needs_group else {"guess": model.group_model_.model})
    inner = {}
    for name, part in parts.items():
        if not (type(part).__module__.startswith("metrifair.") or isinstance(part, Pipeline)):
            raise DataError(
                f"{type(model).__name__} wraps a {type(part).__name__}, which a model file cannot hold; wrap one of "
                "ours, such as FairClassifier(0) or FairLGBMClassifier(0), or save its parts yourself"
            )
        inner[name] = inner_of(part)
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name not in _WRAPPED}
    if isinstance(parameters["random_state"], (np.random.RandomState, np.random.Generator)):
        parameters["random_state"] = None
    if isinstance(parameters.get("utility"), np.ndarray):
        parameters["utility"] = parameters["utility"].tolist()
    names = getattr(model, "feature_names_in_", None)
    record = PostprocessorRecord(
        kind=type(model).__name__,
        parameters={name: plain(name, value) for name, value in parameters.items()},
        wraps=[name for name in _WRAPPED if getattr(model, name) is not None],
        features=Features(
            count=int(model.n_features_in_), names=None if names is None else [str(one) for one in names]
        ),
        classes=classes_record(model.classes_) if hasattr(model, "classes_") else None,
        scheme=scheme_record(model.crossed_.scheme),
        inner={name: InnerRecord(kind=own.kind, meta=own.meta) for name, own in inner.items()},  # type: ignore[arg-type]
        requests=requests_of(model),
    )
    arrays = prefixed("state/", {"seen": model.crossed_.seen.astype(np.float64), **model._state()})
    for name, own in inner.items():
        arrays |= prefixed(f"{name}/", own.arrays)
    return Content(KIND, record.as_json(), arrays)


def postprocessor_of(kind: type, content: Content, model_of: Callable[[Content], Any]) -> Any:
    """The post-processor that ``content_of`` took apart; ``model_of`` makes the models that it wraps."""
    record = record_of(PostprocessorRecord, content.meta)
    if set(record.inner) not in ({"base"}, {"base", "guess"}):
        raise ModelFileError("the file does not describe a model: a post-processor wraps a base, and at most a guess")
    if sum(len(under(f"{name}/", content.arrays)) for name in (*record.inner, "state")) < len(content.arrays):
        raise ModelFileError("the file holds arrays that belong to no part of the model")
    inner = {
        name: model_of(Content(own.kind, own.meta, under(f"{name}/", content.arrays)))
        for name, own in record.inner.items()
    }
    try:
        return _put_together(_constructed(kind, record, inner), record, inner, Arrays(under("state/", content.arrays)))
    except ModelFileError:
        raise
    except (DataError, TypeError, ValueError, OverflowError) as error:  # from the checks of a user's own arguments
        raise ModelFileError(f"the file does not describe a model: {in_one_line(error)}") from error


def _put_together(model: Any, record: PostprocessorRecord, inner: Mapping[str, Any], state: Arrays) -> Any:
    base, classes = inner["base"], None
    model.n_features_in_ = record.features.count
    if record.features.names is not None:
        model.feature_names_in_ = np.array(record.features.names, dtype=object)
    if record.classes is not None:
        model.classes_ = classes = classes_of(record.classes)
    if not (classes is None) == is_regressor(base) == is_regressor(model):
        raise ModelFileError("classes are of classifiers, and only of them")
    if classes is not None and (len(classes) != 2 or list(base.classes_) != list(classes)):
        raise ModelFileError("the classes are not the two of the model that is wrapped")
    count = record.features.count  # a pipeline whose first step passes on what it gets does not say its own
    if any(getattr(one, "n_features_in_", count) != count for one in inner.values()):
        raise ModelFileError("a model that is wrapped takes another number of features")
    scheme = scheme_of(record.scheme, classes)
    model.base_, model.positive_ = base, scheme.positive
    seen = state.take("seen", (None, len(scheme.attributes))).numpy()
    model._restore(scheme, seen.astype(np.int64), inner.get("guess"), state)
    state.check_all_taken()
    restore_requests(model, record.requests)
    model.generator_ = np.random.RandomState(seed_of(model.random_state))
    return model


def _constructed(kind: type, record: PostprocessorRecord, inner: Mapping[str, Any]) -> Any:
    """With its parameters; an estimator that was given is one like the model that is wrapped, not fitted."""
    known = {name for name in kind().get_params(deep=False) if name not in _WRAPPED}
    for name in record.parameters:
        check_known("a parameter", name, known)
    values = {name: value_of(name, json) for name, json in record.parameters.items()}
    model = kind(**values)
    wrapped = {"estimator": inner["base"], "group_model": inner.get("guess")}
    for name in record.wraps:
        if wrapped[name] is None:
            raise ModelFileError(f"{name} is missing")
        setattr(model, name, wrapped[name] if name == "estimator" and model.prefit else clone(wrapped[name]))
    model._check_parameters()
    if model.needs_group != ("guess" not in inner):
        raise ModelFileError("a post-processor guesses the group where it does not need it, and nowhere else")
    if model.random_state is not None and not isinstance(model.random_state, int):
        raise ModelFileError("random_state must be an integer or None")
    return model
