"""A fitted fair booster <-> arrays + JSON metadata; the trees are in the booster's own text or JSON."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.validation import check_is_fitted

from metrifair.boosting.problem import is_penalised
from metrifair.boosting.trees import safe_lightgbm_text, safe_xgboost_json
from metrifair.errors import DataError, ModelFileError
from metrifair.problem.criteria import criterion_named
from metrifair.saving.codebook import classes_meta, classes_of
from metrifair.saving.modelfile import Content, Json, PathLike, write
from metrifair.saving.plain import Arrays, Fields, plain, value_of
from metrifair.saving.requests import requests_meta, restore_requests

KIND = "booster"  # of the file; which one it is, its meta says
MODULES = {
    "FairLGBMClassifier": "metrifair.boosting.lightgbm",
    "FairLGBMRegressor": "metrifair.boosting.lightgbm",
    "FairXGBClassifier": "metrifair.boosting.xgboost",
    "FairXGBRegressor": "metrifair.boosting.xgboost",
}

_FIELDS = ("kind", "parameters", "features", "classes", "objective", "best_iteration")
_REQUESTS = "requests"  # only where there are any: older files have no such field
_TREES = "trees"
_LONGEST_MESSAGE = 500


class Parts(NamedTuple):
    """A booster taken apart."""

    meta: dict[str, Json]
    arrays: dict[str, NDArray[Any]]


def save(estimator: Any, path: PathLike) -> None:
    """Write a fitted booster to one file."""
    write(path, Content(KIND, *to_parts(estimator)))


def to_parts(estimator: Any) -> Parts:
    """What the file of a fitted booster holds."""
    kind = type(estimator).__name__
    if type(estimator).__module__ != MODULES.get(kind):
        raise DataError(f"{kind} is a class of your own, and a model file holds no code; save its parts yourself")
    check_is_fitted(estimator)
    take = _lightgbm_trees if hasattr(estimator, "booster_") else _xgboost_trees
    text, names, best = take(estimator)
    classifies = hasattr(estimator, "predict_proba")
    objective = estimator.objective_ if hasattr(estimator, "booster_") else estimator.objective
    parameters = estimator.get_params(deep=False)
    if isinstance(parameters.get("random_state"), (np.random.RandomState, np.random.Generator)):
        parameters["random_state"] = None
    meta: dict[str, Json] = {
        "kind": kind,
        "parameters": {name: plain(name, value) for name, value in parameters.items()},
        "features": {"count": int(estimator.n_features_in_), "names": names},
        "classes": classes_meta(estimator.classes_) if classifies else None,
        "objective": plain("objective", objective),
        "best_iteration": best,
    }
    if requests := requests_meta(estimator):
        meta[_REQUESTS] = requests
    parts = Parts(meta, {_TREES: np.frombuffer(text.encode(), dtype=np.uint8)})
    try:
        rebuilt(*parts)  # what could not be read again is not written
    except ModelFileError as error:
        raise DataError(f"this {kind} cannot be saved: {error}") from error
    return parts


def rebuilt(meta: Mapping[str, Json], arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The booster that ``to_parts`` took apart; parts that do not fit are a ModelFileError."""
    fields = Fields(meta, "model file").only(*_FIELDS, *([_REQUESTS] if _REQUESTS in meta else []))
    check_kind(fields.get("kind"))
    try:
        return _put_together(fields, Arrays(arrays))
    except ModelFileError:
        raise
    except (DataError, TypeError) as error:  # from the checks that a user's own arguments go through
        raise ModelFileError(f"the file describes no model: {str(error)[:_LONGEST_MESSAGE]}") from error


def check_kind(kind: Json) -> None:
    """Raise a ModelFileError unless it names a fair booster.

    >>> check_kind("Oracle")
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: kind must be one of FairLGBMClassifier, FairLGBMRegressor, FairXGBClassifier, ...
    """
    if not isinstance(kind, str) or kind not in MODULES:
        raise ModelFileError(f"kind must be one of {', '.join(MODULES)}, got {str(kind)[:50]!r}")


def _put_together(fields: Fields, arrays: Arrays) -> Any:
    name = fields.text("kind")
    kind = getattr(importlib.import_module(MODULES[name]), name)
    given = fields.inner("parameters").values
    estimator = kind(**{key: value_of(key, json) for key, json in given.items()})
    is_penalised(estimator)
    criterion_named(estimator.criterion)
    features = fields.inner("features").only("count", "names")
    classes = classes_of(fields.inner("classes")) if hasattr(kind, "predict_proba") else None
    text = _text(arrays)
    restore = _restore_lightgbm if MODULES[name].endswith("lgbm") else _restore_xgboost
    restore(estimator, text, fields, features, classes)
    if _REQUESTS in fields.values:
        restore_requests(estimator, fields.inner(_REQUESTS))
    return estimator


def _text(arrays: Arrays) -> str:
    data = arrays.take(_TREES, (None,), "uint8").numpy().tobytes()
    arrays.check_all_taken()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ModelFileError("the trees are no text") from error


def _lightgbm_trees(estimator: Any) -> tuple[str, Json, int | None]:
    booster = estimator.booster_
    named = [*estimator.feature_names_in_] if estimator._fitted_with_feature_names else None
    best = max(int(booster.best_iteration), 0)  # -1 in a deep copy: all trees, as 0 says elsewhere
    return booster.model_to_string(num_iteration=-1), named, best


def _xgboost_trees(estimator: Any) -> tuple[str, Json, int | None]:
    return bytes(estimator.get_booster().save_raw("json")).decode(), None, None  # names and best are in the JSON


def _restore_lightgbm(
    estimator: Any, text: str, fields: Fields, features: Fields, classes: NDArray[Any] | None
) -> None:
    from lightgbm import Booster  # noqa: PLC0415  (this module serves XGBoost where LightGBM is absent)
    from lightgbm.basic import LightGBMError  # noqa: PLC0415

    count, objective = features.whole("count", least=1), fields.text("objective")
    trees = 1 if classes is None or len(classes) == 2 else len(classes)
    safe = safe_lightgbm_text(text, features=count, classes=trees)
    try:
        booster = Booster(model_str=safe)
    except (LightGBMError, ValueError) as error:
        raise ModelFileError(f"LightGBM cannot read the trees: {str(error)[:_LONGEST_MESSAGE]}") from error
    booster.best_iteration = fields.whole("best_iteration", most=booster.current_iteration())
    state: dict[str, Any] = {
        "_Booster": booster,
        "_n_features": count,
        "_n_features_in": count,
        "_objective": objective,
        "_best_iteration": booster.best_iteration,
        "_fitted_with_feature_names": features.get("names") is not None,
        "fitted_": True,
    }
    if classes is not None:
        encoder = LabelEncoder().fit(classes)
        codes = dict(zip(classes, range(len(classes)), strict=True))
        state |= {"_le": encoder, "_classes": classes, "_n_classes": len(classes), "_class_map": codes}
    estimator.__dict__.update(state)


def _restore_xgboost(estimator: Any, text: str, _: Fields, features: Fields, classes: NDArray[Any] | None) -> None:
    from xgboost import Booster  # noqa: PLC0415  (this module serves LightGBM where XGBoost is absent)
    from xgboost.core import XGBoostError  # noqa: PLC0415

    safe = safe_xgboost_json(text, features=features.whole("count", least=1))
    booster = Booster()
    try:
        booster.load_model(bytearray(safe))
    except (XGBoostError, ValueError, TypeError) as error:
        raise ModelFileError(f"XGBoost cannot read the trees: {str(error)[:_LONGEST_MESSAGE]}") from error
    estimator._Booster = booster
    if classes is not None:
        if not np.array_equal(classes, np.arange(len(classes))):
            raise ModelFileError(f"classes of XGBoost are numbered from 0, got {classes.tolist()[:10]}")
        estimator.n_classes_ = len(classes)
