"""A fitted fair booster <-> its record and arrays; the class names the booster.

The trees are kept in the booster's own format, but always as written here, from numbers that were
checked.
"""

from __future__ import annotations

import contextlib
import os
import re
import reprlib
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.validation import check_is_fitted

from metrifair.errors import DataError, ModelFileError
from metrifair.problem.criteria import criterion_named
from metrifair.saving.estimators import check_own_class, shared_fields
from metrifair.saving.modelfile import Content
from metrifair.saving.records import (
    BoosterRecord,
    file_errors,
    plain,
    read_classes,
    read_record,
    read_value,
)
from metrifair.saving.scoring import (
    TREES,
    lightgbm_booster,
    output_count,
    safe_trees,
    trees_text,
    xgboost_booster,
)

BOOSTER = "booster"  # of the file; the record names the booster

# Allowed text of a parameter: without "=", which would begin another one.
_WORD = re.compile(r"[\w.,:;+\-/ ()\[\]{}'\"]{0,1000}")
# contain labels of any text, and are not passed to the booster
_LABELS = ("pos_label", "class_weight")
# Parameters by which a booster would read or write files, talk to other machines, or predict
# something else.
_FOREIGN = re.compile(
    r".*(file|machine|listen|model_in|model_out|input_|output_model|output_result|snapshot|callback|convert).*"
    r"|(is_)?save_.*|(is_)?predict.*|.*_predict|(start|num)_iteration|raw_score|leaf_index|contrib"
    r"|config|data|(train|test|valid)(_data)?|mlist|workers|nodes|(local_)?port|time_out|task(_type)?|fs|forced_.*"
)
_THREADS = ("n_jobs", "num_threads", "num_thread", "nthread", "nthreads")
_MOST_NUMBER = 2**32


def make_content(estimator: Any) -> Content:
    """The content of a fitted booster's file."""
    kind = type(estimator)
    check_own_class(kind)
    check_is_fitted(estimator)
    shared = shared_fields(estimator)
    best = None
    if hasattr(estimator, "booster_"):
        objective = estimator.objective_
        text = estimator.booster_.model_to_string(num_iteration=-1)
        # -1 in a deep copy: all trees, as 0 means elsewhere
        best = max(int(estimator.booster_.best_iteration), 0)
    else:
        objective = estimator.objective
        text = bytes(estimator.get_booster().save_raw("json")).decode()
    if not getattr(estimator, "_fitted_with_feature_names", False):
        # LightGBM's own: Column_0 and so on; those of XGBoost are in the JSON
        shared["features"].names = None
    record = BoosterRecord(
        **shared,
        objective=str(plain("objective", objective)),
        best_iteration=best,
        left_out=list(estimator.left_out_),
    )
    try:
        classes = None if record.classes is None else read_classes(record.classes)
        safe = safe_trees(text, record.features.count, classes, lightgbm=_is_lightgbm(kind))
        _restore(kind, record, safe, classes)  # what could not be read again is not written
    except ModelFileError as error:
        raise DataError(f"this {kind.__name__} cannot be saved: {error}") from error
    return Content(BOOSTER, record.as_json(), {TREES: np.frombuffer(safe.encode(), dtype=np.uint8)})


def read_booster(kind: type, content: Content) -> Any:
    """The booster of this class that ``make_content`` took apart; parts that do not fit are a
    ModelFileError.
    """
    record = read_record(BoosterRecord, content.meta)
    classes = read_classes(record.classes) if hasattr(kind, "predict_proba") else None
    trees = safe_trees(
        trees_text(content), record.features.count, classes, lightgbm=_is_lightgbm(kind)
    )
    return _restore(kind, record, trees, classes)


def _restore(kind: type, record: BoosterRecord, trees: str, classes: NDArray[Any] | None) -> Any:
    """A booster of these trees, which are safe, that has predicted once."""
    # From the checks of a user's own arguments.
    with file_errors("the file does not describe a model", DataError, TypeError):
        estimator: Any = kind(**_parameters(record.parameters, output_count(classes)))
        estimator._check_parameters()
        criterion_named(estimator.criterion)
        restore = _restore_lightgbm if _is_lightgbm(kind) else _restore_xgboost
        restore(estimator, trees, record, classes)
        estimator.left_out_ = tuple(record.left_out)
    _try(estimator, record.features.count)
    return estimator


def _is_lightgbm(kind: type) -> bool:
    return any(base.__module__.startswith("lightgbm") for base in kind.__mro__)


def _parameters(stored: Mapping[str, Any], outputs: int) -> dict[str, Any]:
    """Parameters of a booster: allowed values, and none that affect anything outside the model.

    A number of threads above that of the processors here becomes that: a file from a larger
    machine, or a hostile one.
    """
    parameters: dict[str, Any] = {name: read_value(name, json) for name, json in stored.items()}
    for name, value in parameters.items():
        if (
            not name.isidentifier()
            or len(name) > 60
            or (_FOREIGN.fullmatch(name) and value is not None)
        ):
            raise ModelFileError(
                f"a booster from a file cannot have the parameter {reprlib.repr(name)}"
            )
        if name in ("num_class", "num_classes") and value not in (None, outputs):
            # LightGBM makes a table of so many rows and columns at each prediction.
            raise ModelFileError(f"{name} must be {outputs}, got {reprlib.repr(value)}")
        if name not in _LABELS:
            _check_value(name, value)
    threads = {name: parameters[name] for name in _THREADS if parameters.get(name) is not None}
    for name, value in threads.items():
        if not isinstance(value, int):
            raise ModelFileError(f"{name} must be an integer or None, got {reprlib.repr(value)}")
    return parameters | {name: min(value, os.cpu_count() or 1) for name, value in threads.items()}


def _check_value(name: str, value: object) -> None:
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple)):
        for item in value:
            _check_value(name, item)
    elif isinstance(value, str):
        if not _WORD.fullmatch(value):
            raise ModelFileError(f"{name} cannot be {reprlib.repr(value)}")
    elif isinstance(value, int) and not -_MOST_NUMBER <= value <= _MOST_NUMBER:
        raise ModelFileError(f"{name} cannot be {value}")


def _restore_lightgbm(
    estimator: Any, text: str, record: BoosterRecord, classes: NDArray[Any] | None
) -> None:
    count = record.features.count
    names = record.features.names
    booster = lightgbm_booster(text, record)
    state: dict[str, Any] = {
        "_Booster": booster,
        "_n_features": count,
        "_n_features_in": count,
        "_objective": record.objective,
        "_best_iteration": booster.best_iteration,
        "_fitted_with_feature_names": names is not None,
        "fitted_": True,
    }
    if classes is not None:
        codes = dict(zip(classes, range(len(classes)), strict=True))
        encoder = LabelEncoder().fit(classes)
        state |= {
            "_le": encoder,
            "_classes": classes,
            "_n_classes": len(classes),
            "_class_map": codes,
        }
    estimator.__dict__.update(state)


def _restore_xgboost(
    estimator: Any, text: str, _: BoosterRecord, classes: NDArray[Any] | None
) -> None:
    if estimator.booster not in (None, "gbtree", "dart"):
        raise ModelFileError(
            f"the trees are not those of the booster {reprlib.repr(estimator.booster)}"
        )
    estimator._Booster = xgboost_booster(text)
    if classes is not None:
        if not np.array_equal(classes, np.arange(len(classes))):
            raise ModelFileError(
                f"classes of XGBoost are numbered from 0, got {classes.tolist()[:10]}"
            )
        estimator.n_classes_ = len(classes)


def _try(estimator: Any, features: int) -> None:
    """Predict once: parameters that were not checked above reach the booster with every prediction.

    XGBoost sets some of them for the whole process, before it refuses them: all its other models
    would fail, too.
    """
    row = np.zeros((1, features))
    settings: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if not _is_lightgbm(type(estimator)):
        from xgboost import config_context  # noqa: PLC0415  (this module serves LightGBM where XGBoost is absent)

        settings = config_context()
    # On any error: a file that cannot predict is not a model.
    with file_errors("the model cannot predict", Exception), settings, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns without names
        predicted = [estimator.predict(row)]
        if hasattr(estimator, "predict_proba"):
            predicted.append(estimator.predict_proba(row))
    if any(len(prediction) != 1 for prediction in predicted):
        raise ModelFileError("the model cannot predict: it gives more than one row for one")
    if not all(
        np.isfinite(prediction).all() for prediction in predicted if prediction.dtype.kind == "f"
    ):
        raise ModelFileError("the model cannot predict: its outputs are not finite")
