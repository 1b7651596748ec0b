"""Which features make the gap: how much each adds to the difference between two groups' mean outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from metrifair.errors import DataError
from metrifair.problem.problem import positive_of
from metrifair.problem.tables import (
    Backend,
    Table,
    codes,
    columns,
    frame,
    levels,
    library_of,
    one_column,
    same_rows,
    wrapped,
)
from metrifair.problem.values import place_among
from metrifair.support.arrays import Booleans, Floats
from metrifair.support.checks import check_integer, seed_of

How = Literal["linear", "trees", "permutation"]


@dataclass(frozen=True)
class FeatureContribution:
    """What one feature adds to the gap.

    Parameters
    ----------
    feature : str
        Its name.
    contribution : float
        How much larger it makes the mean output of the first group than that of the second.
    error : float, default=None
        Standard error over permutations; None where the contribution is exact.

    Examples
    --------
    >>> FeatureContribution("income", 0.3).contribution
    0.3
    """

    feature: str
    contribution: float
    error: float | None = None


@dataclass(frozen=True)
class GapContributions:
    """What every feature adds to the gap between two groups, the largest first.

    Parameters
    ----------
    groups : tuple of str
        The two groups.
    gap : float
        The mean output of the first less that of the second.
    of : str
        What the output is: "decision function", "prediction" or "probability".
    how : {"linear", "trees", "permutation"}
        How contributions were found. Those of linear models and trees add up to the gap.
    features : sequence of FeatureContribution
        One for each feature.
    library : str, default=None
        Of the data frames that were given, which ``to_frame`` uses too.

    Examples
    --------
    >>> found = GapContributions(("a", "b"), 0.3, "prediction", "linear", [FeatureContribution("income", 0.3)])
    >>> found.features[0].feature
    'income'
    """

    groups: tuple[str, str]
    gap: float
    of: str
    how: How
    features: Sequence[FeatureContribution]
    library: Backend | None = None

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row for each feature.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow", "modin", "cudf"}, default=None
            Whose frame; by default that of the data that were given.

        Returns
        -------
        DataFrame
            With the columns feature, contribution and error.
        """
        fields = {"feature": nw.String, "contribution": nw.Float64, "error": nw.Float64}
        rows = {name: [getattr(one, name) for one in self.features] for name in fields}
        return frame(rows, fields, backend or self.library)


def gap_contributions(
    model: Any,
    X: Table,
    *,
    sensitive_features: Table,
    groups: tuple[object, object] | None = None,
    repeats: int = 10,
    random_state: Any = None,
) -> GapContributions:
    """How much each feature adds to the difference between two groups' mean outputs, the largest first.

    A model that adds up contributions of its features is taken at its word: a linear one (``coef_``), LightGBM and
    XGBoost (Shapley values of their trees), and the trees, forests and gradient boosting of scikit-learn (what each
    split of a row's path adds), where these add up to the model's own output on every row.
    The mean difference of a feature's contribution between the groups is what it adds to
    the gap; these add up to the gap. Of any other model a feature is dealt anew to all rows, and what the gap loses by
    that is said to be its: such losses need not add up.

    Parameters
    ----------
    model : fitted estimator
        With ``predict_proba``, of two classes, or ``predict``.
    X : array-like or table of shape (n_samples, n_features)
        What the model predicts from.
    sensitive_features : array-like of shape (n_samples,)
        The group of each sample; one attribute.
    groups : tuple of two groups, default=None
        Which are compared; by default those whose mean outputs are furthest apart, the higher one first.
    repeats : int, default=10
        How often a feature is dealt anew.
    random_state : int, Generator, RandomState or None, default=None
        What permutations are drawn from.

    Returns
    -------
    GapContributions
        The gap, how it was taken apart, and one row for each feature.

    Raises
    ------
    DataError
        Where an argument cannot be used as it is.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [5.0, 0.0], [6.0, 1.0]])
    >>> model = LinearRegression().fit(X, X @ [2.0, 1.0])
    >>> found = gap_contributions(model, X, sensitive_features=["a", "a", "b", "b"])
    >>> found.groups, round(found.gap, 6), [(one.feature, round(one.contribution, 6)) for one in found.features]
    (('b', 'a'), 8.0, [('X 0', 8.0), ('X 1', 0.0)])
    """
    check_integer("repeats", repeats, least=1)
    same_rows(X=X, sensitive_features=sensitive_features)
    column = one_column("sensitive_features", sensitive_features)
    known = levels("sensitive_features", column)
    code = codes("sensitive_features", column, known)
    names = list(columns("X", X))
    exact = _exact(model, X)
    output = _output(model)
    values = exact[0].sum(1) if exact is not None else output[0](X)
    pair = _pair(values, code, known, groups)
    sides = [code == one for one in pair]
    if exact is not None:
        parts, how, of = exact
        if parts.shape[1] != len(names):
            raise DataError(
                f"the model has {parts.shape[1]} features, and X {len(names)} columns; pass X as it was trained on"
            )
        found = [FeatureContribution(name, _gap(part, sides)) for name, part in zip(names, parts.T, strict=True)]
    else:
        generator = np.random.default_rng(seed_of(random_state))
        how, of = "permutation", output[1]
        found = [_dealt_anew(X, at, output[0], sides, repeats=repeats, generator=generator) for at in range(len(names))]
    first, second = (str(known[one]) for one in pair)
    ordered = sorted(found, key=lambda one: -abs(one.contribution))
    return GapContributions((first, second), _gap(values, sides), of, how, ordered, library_of(X))


def _gap(values: Floats, sides: Sequence[Booleans]) -> float:
    return float(values[sides[0]].mean() - values[sides[1]].mean())


def _pair(
    values: Floats, code: np.ndarray, known: Sequence[object], groups: tuple[object, object] | None
) -> tuple[int, int]:
    if groups is not None:
        places = [place_among(group, known) for group in groups]
        if len(places) != 2 or places[0] is None or places[1] is None or places[0] == places[1]:
            raise DataError(f"groups must be two of {list(known)}, got {groups!r}")
        return places[0], places[1]
    if len(known) < 2:
        raise DataError(f"sensitive_features must hold at least two groups, got {len(known)}")
    means = [float(values[code == one].mean()) for one in range(len(known))]
    pair = max(combinations(range(len(known)), 2), key=lambda two: abs(means[two[0]] - means[two[1]]))
    return pair if means[pair[0]] >= means[pair[1]] else (pair[1], pair[0])


def _output(model: Any) -> tuple[Callable[[Table], Floats], str]:
    """What the model says of each row, and what that is."""
    if not hasattr(model, "predict_proba"):
        return lambda X: np.asarray(model.predict(X), np.float64), "prediction"

    def probability(X: Table) -> Floats:
        found = np.asarray(model.predict_proba(X), np.float64)
        if found.ndim != 2 or found.shape[1] != 2:
            raise DataError(f"the model must tell two classes apart, got probabilities of shape {found.shape}")
        return found[:, _positive_column(model)]

    return probability, "probability"


def _positive_column(model: Any) -> int:
    """The place of the positive class among the model's own classes."""
    classes = np.asarray(getattr(model, "classes_", (0, 1))).tolist()
    ascending = sorted(classes)
    return int(classes.index(ascending[positive_of(ascending, getattr(model, "pos_label", None))]))


def _exact(model: Any, X: Table) -> tuple[Floats, How, str] | None:
    """Contributions (rows, features) that add up to the model's own output, less a constant; None where they do not."""
    margins = getattr(model, "decision_function", None)
    of = "prediction" if margins is None and not hasattr(model, "predict_proba") else "decision function"
    weights, trees, how = getattr(model, "coef_", None), _trees(model), "trees"
    if hasattr(model, "booster_"):  # LightGBM
        of, parts = "decision function", np.asarray(model.booster_.predict(X, pred_contrib=True))[:, :-1]
        own = model.booster_.predict(X, raw_score=True)
    elif hasattr(model, "get_booster"):  # XGBoost
        import xgboost  # noqa: PLC0415  (whoever has such a model has it)

        booster, rows = model.get_booster(), xgboost.DMatrix(X)
        of, parts = "decision function", np.asarray(booster.predict(rows, pred_contribs=True), np.float64)[:, :-1]
        own = booster.predict(rows, output_margin=True)
    elif trees is not None:
        numbers = np.stack([np.asarray(part, np.float32) for part in columns("X", X).values()], 1)
        parts = sum((scale * _path(tree, numbers, -1) for tree, scale in trees), np.zeros(numbers.shape))
        of = of if margins is not None or of == "prediction" else "probability"
        own = margins(X) if margins is not None else _output(model)[0](X)
    elif weights is not None and np.ndim(weights) <= 2 and (np.ndim(weights) == 1 or len(weights) == 1):
        table = np.stack([np.asarray(part, np.float64) for part in columns("X", X).values()], 1)
        if table.shape[1] != np.size(weights):
            return None
        parts, how = table * np.ravel(weights), "linear"
        own = model.predict(X) if of == "prediction" else margins(X) if margins is not None else _log_odds(model, X)
    else:
        return None
    own = np.asarray(own)
    if own.shape != (len(parts),) or own.dtype.kind != "f":
        return None
    # Rows are compared, not only the gap, which wrong contributions may meet by chance.
    missed, tolerance = parts.sum(1) - own, 1e-6 if own.dtype == np.float64 else 1e-4
    if np.ptp(missed) > tolerance * np.ptp(own):
        return None
    turned = of == "decision function" and _positive_column(model) == 0
    return -parts if turned else parts, how, of  # type: ignore[return-value]


def _log_odds(model: Any, X: Table) -> Floats:
    share = _output(model)[0](X)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(share) - np.log1p(-share))


def _trees(model: Any) -> list[tuple[Any, float]] | None:
    """The trees whose sum or mean a model of scikit-learn is, each with what it is multiplied by."""
    bases = {base.__name__ for base in type(model).__mro__ if base.__module__.startswith("sklearn.")}
    if len(getattr(model, "classes_", (0, 1))) != 2:
        return None
    if "BaseDecisionTree" in bases:
        return [(model.tree_, 1.0)]
    if not bases & {"ForestClassifier", "ForestRegressor", "BaseGradientBoosting"}:
        return None  # other ensembles weigh their members, or show them some columns only
    members = np.ravel(np.array(model.estimators_, dtype=object)).tolist()
    scale = float(model.learning_rate) if "BaseGradientBoosting" in bases else 1 / len(members)
    return [(one.tree_, scale) for one in members]


def _path(tree: Any, X: Any, column: int) -> Floats:
    """What each split of a row's path adds to the value of its node, by the feature that is split."""
    value = tree.value[:, 0, :]
    level = (value / value.sum(1, keepdims=True) if value.shape[1] > 1 else value)[:, column]
    found, node = np.zeros(X.shape), np.zeros(len(X), np.int64)
    inside = tree.children_left[node] >= 0
    while inside.any():
        rows = np.flatnonzero(inside)
        at = node[rows]
        feature = tree.feature[at]
        left = X[rows, feature] <= tree.threshold[at]
        below = np.where(left, tree.children_left[at], tree.children_right[at])
        found[rows, feature] += level[below] - level[at]
        node[rows] = below
        inside = tree.children_left[node] >= 0
    return found


def _dealt_anew(
    X: Table,
    at: int,
    output: Callable[[Table], Floats],
    sides: Sequence[Booleans],
    *,
    repeats: int,
    generator: np.random.Generator,
) -> FeatureContribution:
    """What the gap loses where a feature is dealt anew to all rows."""
    native, whole, lost = wrapped("X", X), _gap(output(X), sides), []
    name = list(columns("X", X))[at]
    for _ in range(repeats):
        order = generator.permutation(len(sides[0]))
        if isinstance(native, nw.DataFrame):
            column = native.get_column(name)
            again = native.with_columns(column[order.tolist()].alias(name)).to_native()
        else:
            again = np.array(X, copy=True)
            again[:, at] = again[order, at]
        lost.append(whole - _gap(output(again), sides))
    error = float(np.std(lost, ddof=1) / np.sqrt(repeats)) if repeats > 1 else None
    return FeatureContribution(name, float(np.mean(lost)), error)
