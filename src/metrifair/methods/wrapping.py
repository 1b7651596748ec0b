"""A model inside a post-processor: fitted, asked, and the rows that the post-processor is calibrated on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, column_or_1d, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from metrifair.checks import check_switches
from metrifair.errors import DataError
from metrifair.methods.inputs import Integers, check_number, groups_at_fit, groups_at_predict
from metrifair.methods.learners import check_learner, groups_if_asked
from metrifair.problem.tables import Table, same_rows


class Calibration(NamedTuple):
    """A fitted model, and the rows that it is calibrated on."""

    base: Any
    X: Table
    sensitive_features: Table
    group: Integers


def fitted_base(wrapper: Any, default: Callable[[], Any], X: Table, y: Table, sensitive_features: Table) -> Calibration:
    """The wrapper's ``estimator`` (or the default), fitted unless ``prefit``.

    It is calibrated on the rows that it learns from, or on the share ``holdout`` of each group and class, which it then
    does not see.
    """
    if wrapper.estimator is not None:
        check_learner(wrapper.estimator, "classifier" if isinstance(wrapper, ClassifierMixin) else "regressor")
    check_switches(prefit=wrapper.prefit)
    check_number("holdout", wrapper.holdout, low=0, high=0.9)
    same_rows(X=X, y=y, sensitive_features=sensitive_features)
    validate_data(wrapper, X, skip_check_array=True)
    n = _num_samples(X)
    group = groups_at_fit(wrapper, sensitive_features, n)
    if wrapper.prefit:
        if wrapper.estimator is None:
            raise DataError("prefit=True needs a fitted estimator, got None")
        check_is_fitted(wrapper.estimator)
        return _calibration(wrapper, wrapper.estimator, X, sensitive_features, group)
    if y is None:
        name = type(wrapper).__name__
        raise DataError(f"{name} requires y to be passed, but the target y is None; only a prefit estimator needs none")
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    base = default() if wrapper.estimator is None else clone(wrapper.estimator)
    if not wrapper.holdout:
        return _calibration(wrapper, _learnt(base, X, y, sensitive_features), X, sensitive_features, group)
    held = _held_out(group, y, wrapper)
    if len(set(group[held])) < len(wrapper.groups_):
        raise DataError(f"holdout={wrapper.holdout} leaves a group without rows to calibrate on; raise it, or take 0")
    (X, their_X), (y, _), (sensitive_features, their_features) = (
        [_safe_indexing(table, np.flatnonzero(rows)) for rows in (~held, held)] for table in (X, y, sensitive_features)
    )
    return _calibration(wrapper, _learnt(base, X, y, sensitive_features), their_X, their_features, group[held])


def _calibration(wrapper: Any, base: Any, X: Table, sensitive_features: Table, group: Integers) -> Calibration:
    """Some have predict_proba only once they are fitted: it is asked for here."""
    if isinstance(wrapper, ClassifierMixin) and not hasattr(base, "predict_proba"):
        raise DataError(f"estimator must have predict_proba, which {base!r} lacks; pass another one, or None")
    return Calibration(base, X, sensitive_features, group)


def _learnt(base: Any, X: Table, y: Table, sensitive_features: Table) -> Any:
    return base.fit(X, y, **groups_if_asked(base.fit, sensitive_features))


def with_base_tags(tags: Any, base: Any) -> Any:
    """Tags of a wrapper that leaves the features to its base; the default network takes no sparse ones."""
    tags.input_tags.sparse = base is not None and get_tags(base).input_tags.sparse
    tags.input_tags.allow_nan = base is not None and get_tags(base).input_tags.allow_nan
    return tags


def asked(method: Callable[..., Any], X: Table, sensitive_features: Table) -> NDArray[Any]:
    """What a method of the base returns; groups are handed to those that ask for them."""
    return np.asarray(method(X, **groups_if_asked(method, sensitive_features)))


def checked_groups(wrapper: Any, X: Table, sensitive_features: Table) -> Integers:
    """Codes of the groups of new rows; the base checks the features."""
    check_is_fitted(wrapper, "base_")
    return groups_at_predict(wrapper, sensitive_features, _num_samples(X))


def _held_out(group: Integers, y: NDArray[Any], wrapper: Any) -> NDArray[np.bool_]:
    """A share of each group, for classifiers of each class within it, drawn at random."""
    held = np.zeros(len(group), dtype=np.bool_)
    generator = check_random_state(wrapper.random_state)
    labels = np.unique(y, return_inverse=True)[1] if is_classifier(wrapper) else 0
    cell = group + len(wrapper.groups_) * labels
    for code in np.unique(cell):
        own = generator.permutation(np.flatnonzero(cell == code))
        held[own[: int(wrapper.holdout * len(own))]] = True
    return held
