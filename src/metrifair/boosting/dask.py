"""Fair XGBoost on the workers of a Dask cluster: features never leave their worker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from metrifair.boosting.objective import (
    METRIC_NAME,
    PLACES,
    Descent,
    Expansion,
    loss_terms,
    nearest_places,
)
from metrifair.boosting.problem import (
    BoostingProblem,
    boosting_problem,
    columns_of_sets,
    evaluation_rows,
    evaluation_sets,
    is_penalized,
)
from metrifair.errors import DataError
from metrifair.metrics.pair import Pair
from metrifair.metrics.penalty_options import penalty_options
from metrifair.metrics.registry import training_metric, warn_without_estimate
from metrifair.problem.attributes import group_codes
from metrifair.problem.cells import Comparison, Dependence
from metrifair.problem.criteria import criterion_named
from metrifair.problem.missing_groups import warn_of_groups
from metrifair.problem.problem import Inputs, read_weights, warn_of_labels
from metrifair.problem.tables import Table, as_features, columns, one_column
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import require
from metrifair.training.objective import BINARY, Objective, scores


def is_dask(table: Table) -> bool:
    """Whether a table is a Dask collection; imports nothing."""
    dask = sys.modules.get("dask")
    return dask is not None and dask.is_dask_collection(table)


def map_rows(function: Callable[..., Any], X: Table, *, like: NDArray[Any], **kwargs: Any) -> Any:
    """Apply a function to the rows of X; for a Dask collection, to each partition where it is
    stored.

    ``like`` is an empty example of the result.
    """
    if not is_dask(X):
        return function(as_features(X), **kwargs)
    delayed = _dask("dask").delayed(function)
    lengths = None
    if isinstance(X, _dask("dask.array").Array):
        lengths = X.chunks[0]
    parts = [delayed(part, **kwargs) for part in _partitions("X", X)]
    return _concatenate(parts, like, lengths)


def _concatenate(
    parts: Sequence[Any], like: NDArray[Any], lengths: Sequence[float] | None = None
) -> Any:
    """A Dask array of delayed parts, with the columns and the type of ``like``."""
    array = _dask("dask.array")
    if lengths is None:
        lengths = [np.nan] * len(parts)
    arrays = []
    for part, length in zip(parts, lengths, strict=True):
        shape = (length, *like.shape[1:])
        arrays.append(array.from_delayed(part, shape=shape, dtype=like.dtype))
    return array.concatenate(arrays, allow_unknown_chunksizes=True)


def _dask(module: str) -> Any:
    return require(module, extra="distributed", purpose="Dask collections")


class Partitions(NamedTuple):
    """The partitions of each argument, as delayed tables; None if the argument was left out."""

    y: list[Any]
    sensitive_features: list[Any] | None = None
    control_features: list[Any] | None = None
    sample_weight: list[Any] | None = None

    def with_all(self, function: Callable[..., Any], *more: Any) -> list[Any]:
        """Delayed results of the function for every partition."""
        delayed = _dask("dask").delayed
        empty: list[Any] = [None] * len(self.y)
        return [
            delayed(function)(*part, *more)
            for part in zip(*(table or empty for table in self), strict=True)
        ]


def fit_on_cluster(
    booster: Any,
    inputs: Inputs,
    eval_set: Sequence[tuple[Table, Table]],
    lists: Mapping[str, Sequence[Any] | None],
    arguments: Mapping[str, Any],
) -> None:
    """Fit an XGBoost estimator on Dask collections; the fitted estimator is in this process.

    ``lists`` are groups, strata and weights, with one entry for each set of ``eval_set``.
    """
    xgboost_dask = _dask("xgboost.dask")
    client = _client()
    unknown = arguments.keys() - {"verbose", "sample_weight_eval_set", "sample_weight", "eval_set"}
    if unknown:
        raise DataError(f"{min(unknown)} is not supported for Dask collections; leave it out")
    penalized = is_penalized(booster)
    if eval_set and penalized:
        evaluation_sets(eval_set, **lists)  # validates the lists
    X: Any = inputs.rows["X"]
    entries = columns_of_sets(lists, len(eval_set))
    training_tables = (
        X,
        inputs.y,
        inputs.sensitive_features,
        inputs.control_features,
        inputs.sample_weight,
    )
    eval_tables = [(*pair, *more) for pair, *more in zip(eval_set, *entries, strict=True)]
    tables = [training_tables, *eval_tables]
    parts = [_parts("", *training_tables), *(_parts("eval_", *table) for table in eval_tables)]
    params: dict[str, Any] = booster.get_xgb_params()
    objective: dict[str, Any] = {}
    if penalized:
        columns, objective = _penalized(booster, params, parts)
    else:
        columns = [{"label": label, "weight": weight} for _, label, *_, weight in tables]
    names = None
    if hasattr(X, "columns"):
        names = list(map(str, X.columns))
    matrix = partial(
        xgboost_dask.DaskDMatrix,
        client,
        missing=booster.missing,
        enable_categorical=booster.enable_categorical,
        # Dask may leave a worker without a partition, which cannot read the names from its rows.
        feature_names=names,
    )
    training, *evaluated = (
        matrix(rows, **kwargs) for (rows, *_), kwargs in zip(tables, columns, strict=True)
    )
    evals = [(entry, f"validation_{place}") for place, entry in enumerate(evaluated)]
    with _explain_lost_workers(client):
        result = xgboost_dask.train(
            client,
            params,
            training,
            num_boost_round=booster._pace()[0],
            early_stopping_rounds=booster.early_stopping_rounds,
            verbose_eval=arguments.get("verbose", False),
            callbacks=booster.callbacks,
            evals=evals,
            **objective,
        )
    booster._Booster = result["booster"]
    booster.evals_result_ = result["history"]
    if hasattr(booster, "predict_proba"):
        booster.n_classes_ = 2


def _penalized(
    booster: Any, params: dict[str, Any], parts: Sequence[Partitions]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The columns of each set's matrix besides features, the objective and its metric;
    completes ``params``.
    """
    if booster.expected_groups:
        remedy = "pass expected_groups=False to use the observed groups, or use arrays"
        raise DataError(
            "expected_groups=True is not computed where X is a Dask collection", remedy=remedy
        )
    options = penalty_options(booster)
    warn_without_estimate(booster.metric, options.estimate, default="rows")
    rows_of_all = _representative_rows(booster, parts[0])
    problem = boosting_problem(booster, rows_of_all)
    if problem.scheme.classes not in ((), (0, 1)):
        raise DataError(
            "y must contain 0 and 1 where X is a Dask collection, got "
            f"{list(problem.scheme.classes)}"
        )
    rows = problem.training
    warn_of_labels(rows.problem, rows.weight)
    warn_of_groups(rows.problem, rows.weight)
    booster.left_out_ = problem.trainable.left_out
    plan = ClusterPlan(booster, problem)
    check_summable(plan.objective, weighted=parts[0].sample_weight is not None)
    has_no_metric = booster.eval_metric in (None, [None], (None,))
    params["disable_default_eval_metric"] = has_no_metric
    if params.get("base_score") is None:
        start = problem.start  # XGBoost takes the prediction instead of the margin
        params["base_score"] = start
        if problem.scheme.classes:
            params["base_score"] = 1 / (1 + np.exp(-start))
    columns = []
    for partitions in parts:
        prepared = partitions.with_all(_prepared, problem)
        columns.append(_matrix_columns(prepared, partitions))
    metric = plan.metric if len(parts) > 1 else None
    return columns, {"obj": plan, "custom_metric": metric}


class ClusterPlan:
    """The objective and the metric of a training on a cluster: sent to every worker, which keeps a
    state.

    All decisions rest on sums over workers, so that every worker takes the same.
    """

    def __init__(self, booster: Any, problem: BoostingProblem) -> None:
        self.objective = problem.objective()
        self.strength = float(booster.strength)
        self.rounds, self.learning_rate = booster._pace()
        self.total_weight = float(problem.training.weight.sum())
        self.center = problem.center
        self.spread = problem.spread
        self.positive_weight = float(getattr(booster, "scale_pos_weight", None) or 1.0)
        self.descent: Descent | None = None  # on a worker, after the first round
        self.evaluations: dict[int, SummedRisk] = {}

    def __call__(self, output: Floats, matrix: Any) -> tuple[Floats, Floats]:
        """Slope and curvature of the rows of this worker."""
        if self.descent is None:
            risk: Any = self._make_risk(
                matrix, total=self.total_weight, positive_weight=self.positive_weight
            )
            self.descent = Descent(
                risk, self.strength, rounds=self.rounds, learning_rate=self.learning_rate
            )
        return self.descent.step(output)

    def metric(self, output: Floats, matrix: Any) -> tuple[str, float]:
        """The penalized risk of an evaluation set: of its rows on all workers."""
        risk: Any = self.evaluations.get(id(matrix))
        if risk is None:
            risk = self._make_risk(matrix, total=None, positive_weight=1.0)
            self.evaluations[id(matrix)] = risk
        assert self.descent is not None
        return METRIC_NAME, self.descent.report(risk, output)

    def _make_risk(self, matrix: Any, *, total: float | None, positive_weight: float) -> SummedRisk:
        targets = matrix.get_label().astype(np.float64)
        weight = matrix.get_weight().astype(np.float64)
        if not len(weight):
            weight = np.ones(len(targets))
        cell = matrix.get_float_info("label_lower_bound").astype(np.int64)
        in_risk = weight
        if positive_weight != 1:
            in_risk = weight * np.where(targets == 1, positive_weight, 1.0)
        together = xgboost_together()
        if total is None:
            own_total = np.array([weight.sum()])
            total = float(together.sum(own_total)[0])
        return SummedRisk(
            self.objective,
            LocalRows(targets, cell, weight, in_risk),
            together,
            total,
            self.center,
            self.spread,
        )


def _client() -> Any:
    try:
        return _dask("distributed").get_client()
    except ValueError:
        raise DataError(
            "X is a Dask collection, and there is no cluster; make one first: client = "
            "dask.distributed.Client()"
        ) from None


@contextmanager
def _explain_lost_workers(client: Any) -> Iterator[None]:
    """Raise a DataError in place of the traces of XGBoost and Dask if a worker stopped."""
    workers = set(client.nthreads())
    try:
        yield
    except Exception:
        if lost := workers - set(client.nthreads()):
            stopped = (
                f"{len(lost)} of {len(workers)} workers of the Dask cluster stopped during training"
            )
            raise DataError(
                stopped, remedy="check their memory and logs, then call fit again"
            ) from None
        raise


def _parts(prefix: str, X: Table, *tables: Table | None) -> Partitions:
    """The partitions; a DataError unless all tables have those of X."""
    count = len(_partitions(f"{prefix}X", X))
    partitions: list[Any] = []
    for name, table in zip(Partitions._fields, tables, strict=True):
        if table is None:
            partitions.append(None)
            continue
        if not is_dask(table):
            raise DataError(
                f"{prefix}{name} must be a Dask collection, as X is, got a {type(table).__name__}"
            )
        pieces = _partitions(f"{prefix}{name}", table)
        if len(pieces) != count:
            raise DataError(
                f"{prefix}{name} has {len(pieces)} partitions, and {prefix}X {count}; repartition "
                "one like the other, "
                "or persist() their common table, because Dask joins partitions when it reads some "
                "columns only"
            )
        partitions.append(pieces)
    return Partitions(*partitions)


def _partitions(name: str, table: Any) -> list[Any]:
    delayed: NDArray[Any] = np.asarray(table.to_delayed(), dtype=object)
    if delayed.ndim > 1 and delayed.shape[1] > 1:
        raise DataError(f"{name} is cut across its columns; pass {name}.rechunk({{1: -1}})")
    return list(delayed.reshape(-1))


def _representative_rows(booster: Any, parts: Partitions) -> Inputs:
    """A small table with the labels, groups, strata, weights and moments of all rows, as input of
    ``make_problem``.

    It contains two rows of each combination that occurs, or the only one, with the weight of all.
    Two numbers with the same mean and deviation replace numeric values.
    """
    labels = hasattr(booster, "predict_proba")
    if not labels and criterion_named(booster.criterion).needs_labels:
        raise DataError(
            "criteria that use a numeric target are not trained on a cluster; use arrays"
        )
    tallies = [
        tally
        for tally in _dask("dask").compute(*parts.with_all(_tally, labels))
        if tally is not None
    ]
    if not tallies:
        raise DataError("y contains no rows of positive weight; pass at least one of each class")
    merged: dict[tuple[Any, ...], Floats] = {}
    for tally in tallies:
        for combination, sums in tally.sums.items():
            merged[combination] = merged.get(combination, 0.0) + sums
    rows: list[tuple[Any, ...]] = []
    for (label, *others), sums in merged.items():
        targets = _targets_with_moments(*sums)
        if labels:
            targets = [label] * len(targets)
        weight = sums[1] / len(targets)
        rows += [(target, *others, weight) for target in targets]
    y, *values, weights = (list(column) for column in zip(*rows, strict=True))
    group_names, stratum_names = tallies[0].names
    groups = dict(zip(group_names, values, strict=False))
    strata = dict(zip(stratum_names, values[len(group_names) :], strict=True))
    return Inputs(y, groups or None, strata or None, np.array(weights), rows={})


def _targets_with_moments(rows: float, weight: float, first: float, second: float) -> list[float]:
    """Two targets with these moments, or that of the only row."""
    mean = first / weight
    if rows <= 1:
        return [mean]
    variance = second / weight - mean**2
    deviation = float(np.sqrt(max(0.0, variance)))
    return [mean - deviation, mean + deviation]


class _Tally(NamedTuple):
    """Sums of one partition."""

    # of the sensitive features and of the control features
    names: tuple[tuple[str, ...], tuple[str, ...]]
    # by values of label, groups and strata: rows, weight, and moments of y
    sums: dict[tuple[Any, ...], Floats]


def _tally(y: Table, groups: Table, strata: Table, weight: Table, labels: bool) -> _Tally | None:
    """The sums of one partition; None if all its rows have weight 0."""
    if _is_weightless(weight):
        return None
    target = one_column("y", y)
    weights = read_weights("sample_weight", weight, len(target))
    if weights is None:
        weights = np.ones(len(target))
    group_columns = {}
    if groups is not None:
        group_columns = columns("sensitive_features", groups)
    stratum_columns = {}
    if strata is not None:
        stratum_columns = columns("control_features", strata)
    # Rows are summed by label; of a numeric target, the moments are computed.
    zeros = np.zeros(len(target))
    outcome = zeros
    numbers = zeros
    if labels:
        outcome = target
    else:
        numbers = target.astype(np.float64)
    tables = [{"y": outcome}, group_columns, stratum_columns]
    coded = [group_codes(table) for table in tables if table]
    values = [attribute.groups for part in coded for attribute in part.attributes]
    codes = np.hstack([part.codes for part in coded])
    combinations, inverse = np.unique(codes, axis=0, return_inverse=True)
    place = inverse.reshape(-1)
    moments = [
        (weights > 0).astype(np.float64),
        weights,
        weights * numbers,
        weights * numbers**2,
    ]
    of_combinations = [np.bincount(place, moment, len(combinations)) for moment in moments]
    by_values = {}
    for codes_of_row, sums in zip(combinations, np.stack(of_combinations, 1), strict=True):
        if sums[1] > 0:
            row = tuple(
                names[code] if code >= 0 else None
                for names, code in zip(values, codes_of_row, strict=True)
            )
            by_values[row] = sums
    names_of_columns = (tuple(group_columns), tuple(stratum_columns))
    return _Tally(names_of_columns, by_values)


def _prepared(
    y: Table, groups: Table, strata: Table, weight: Table, problem: BoostingProblem
) -> NDArray[np.float32]:
    """Target, cell and weight of each row of a partition."""
    if _is_weightless(weight):
        count = len(one_column("y", y))
        idle = _number_of_cells(problem.scheme.comparisons)
        row = np.array([0, idle, 0], dtype=np.float32)
        return np.tile(row, (count, 1))
    rows = evaluation_rows(problem, Inputs(y, groups, strata, weight, rows={}))
    columns_of_rows = np.stack([rows.targets, rows.cell, rows.weight], 1)
    return columns_of_rows.astype(np.float32)


def _number_of_cells(comparisons: Sequence[Comparison]) -> int:
    """The number of cells that are compared."""
    return 1 + max(max(comparison.left + comparison.right) for comparison in comparisons)


def _is_weightless(weight: Table | None) -> bool:
    """Whether all rows of a partition have weight 0: an error for the whole data set only."""
    return weight is not None and not np.any(one_column("sample_weight", weight))


def _matrix_columns(prepared: Sequence[Any], parts: Partitions) -> dict[str, Any]:
    """Label, cell and weight as collections; cells are passed as a bound of the label, which
    our objectives ignore.
    """
    like = np.zeros((0, 3), dtype=np.float32)
    table = _concatenate(prepared, like).persist()
    by_name = {"label": table[:, 0], "label_lower_bound": table[:, 1]}
    if parts.sample_weight is not None:
        by_name["weight"] = table[:, 2]
    return by_name


class Together(NamedTuple):
    """Sum and maximum over all processes; each gets the same numbers."""

    sum: Callable[[Floats], Floats]
    maximum: Callable[[Floats], Floats]


def xgboost_together() -> Together:
    """The all-reduce of the XGBoost training in this process."""
    from xgboost import collective  # noqa: PLC0415

    def reduced(values: Floats, operation: Any) -> Floats:
        together: Floats = collective.allreduce(values, operation).reshape(values.shape)
        return together

    return Together(
        partial(reduced, operation=collective.Op.SUM),
        partial(reduced, operation=collective.Op.MAX),
    )


class LocalRows(NamedTuple):
    """The rows of one process."""

    targets: Floats  # (n,): 1 at the later of two classes, or numbers
    cell: Integers  # (n,)
    weight: Floats  # (n,): weight of each row in the comparisons
    in_risk: Floats  # (n,): and in the risk


@dataclass(frozen=True, eq=False)
class SummedRisk:
    """Risk and unfairness of all rows, and the slopes of local rows; replaces a ``PenalizedRisk``.

    Each process counts its scores into a grid (cells x places), one sum over processes makes these
    the distributions of all rows, and each reads the slopes of its own rows off them. Scores are
    moved to the nearest of the grid's places, as those of many rows are on one machine; the result
    is the exact one of the moved scores.

    >>> from metrifair.problem.cells import Comparison
    >>> alone = Together(lambda own: own, lambda own: own)
    >>> rows = LocalRows(np.array([0.0, 1, 0, 1]), np.array([0, 0, 1, 1]), np.ones(4), np.ones(4))
    >>> risk = SummedRisk(Objective(BINARY, (Comparison((0,), (1,)),)), rows, alone, total_weight=4.0)
    >>> found = risk.at(np.array([-1.0, 0, 0, 1]))
    >>> print(f"{found.risk:.3f} {found.unfairness:.3f}", found.unfairness_slope.round(2))
    0.503 0.231 [-0.39 -1.    1.    0.39]
    """

    objective: Objective
    rows: LocalRows
    together: Together
    total_weight: float  # of all rows everywhere
    center: float = 0.0
    spread: float = 1.0

    @cached_property
    def _targets(self) -> Tensor:
        return torch.as_tensor((self.rows.targets - self.center) / self.spread)

    @cached_property
    def _sides(self) -> list[list[Integers]]:
        """The rows here on either side of each comparison."""

        def rows_in(cells: Sequence[int]) -> Integers:
            return np.flatnonzero(np.isin(self.rows.cell, cells))

        return [
            [rows_in(comparison.left), rows_in(comparison.right)]
            for comparison in self.objective.comparisons
        ]

    @cached_property
    def _cells(self) -> int:
        return _number_of_cells(self.objective.comparisons)

    def at(self, output: ArrayLike) -> Expansion:
        """Both terms of all rows, and their slopes by the outputs (n,) of the rows here."""
        moving = self._standard(output).requires_grad_()
        score = self._score(moving)
        standard = moving.detach()
        in_risk = self.rows.in_risk
        risk, unfairness, slope = self._terms(standard, score.detach().numpy())
        (by_output,) = torch.autograd.grad(score, moving, torch.as_tensor(slope))
        loss = loss_terms(self.objective.task, standard, self._targets, self.spread)
        unit = self.total_weight * loss.unit
        return Expansion(
            risk,
            unfairness,
            loss.slope.numpy() * in_risk,
            loss.curvature.numpy() * in_risk,
            by_output.numpy() * unit,
        )

    def value(self, output: ArrayLike, strength: float) -> float:
        """Risk + strength x unfairness of all rows."""
        standard = self._standard(output)
        score = self._score(standard).numpy()
        risk, unfairness, _ = self._terms(standard, score)
        return risk + strength * unfairness

    def _standard(self, output: ArrayLike) -> Tensor:
        outputs = np.asarray(output, dtype=np.float64).reshape(-1)
        return (torch.as_tensor(outputs) - self.center) / self.spread

    def _score(self, standard: Tensor) -> Tensor:
        objective = self.objective
        return scores(
            objective.criterion,
            objective.task,
            standard,
            self._targets,
            penalize=objective.penalize,
        )

    def _terms(self, standard: Tensor, score: Floats) -> tuple[float, float, Floats]:
        """The risk, the unfairness, and its slope by the score of each row here."""
        losses = self.objective.task.loss(standard, self._targets)
        own_risk = float(self.rows.in_risk @ losses.numpy())
        # Probabilities fill their range. Other scores may have an outlier, which would leave few
        # places to most.
        objective = self.objective
        bent = (
            objective.task.name != BINARY.name
            or objective.penalize != "prediction"
            or objective.criterion.score != "prediction"
        )
        line = score
        if bent:
            line = score / (1 + np.abs(score))
        own_low = np.min(line, initial=np.inf)
        own_high = np.max(line, initial=-np.inf)
        ends = self.together.maximum(np.array([-own_low, own_high]))
        low = -ends[0]
        high = ends[1]
        width = (high - low) / (PLACES - 1) or 1.0
        place = nearest_places(line, low, width, PLACES)
        points = low + width * np.arange(PLACES)
        if bent:
            points = points / (1 - np.abs(points))
        cells = self._cells
        # Rows without weight, and of groups that are not compared, are beyond the last cell.
        size = cells * PLACES
        compared_cell = np.minimum(self.rows.cell, cells)
        on_grid = compared_cell * PLACES + place
        own_counts = np.bincount(on_grid, self.rows.weight, size + PLACES)[:size]
        summed = self.together.sum(np.append(own_counts, own_risk))
        grid = summed[:-1].reshape(cells, PLACES)
        risk = float(summed[-1]) / self.total_weight
        value = 0.0
        slope = np.zeros(len(score))
        for comparison, sides, factor in zip(
            objective.comparisons, self._sides, objective.weights, strict=True
        ):
            left = grid[list(comparison.left)].sum(0)
            right = grid[list(comparison.right)].sum(0)
            distance, *tables = self._distance(points, left, right)
            value += factor * distance
            for rows, table in zip(sides, tables, strict=True):
                slopes = (factor * table)[place[rows]]
                slope[rows] += slopes * self.rows.weight[rows]
        return risk, value, slope

    def _distance(
        self, points: Floats, left: Floats, right: Floats
    ) -> tuple[float, Floats, Floats]:
        """The distance between two distributions on the grid, and its slope by one unit of
        either at each place.
        """
        if self.objective.metric == "energy":
            return self._energy_distance(points, left, right)
        mass = np.concatenate([left, right])
        there = np.flatnonzero(mass)
        mass = mass[there]
        moving = torch.as_tensor(points[there % PLACES]).requires_grad_()
        n = int((there < PLACES).sum())
        m = len(there) - n
        metric = training_metric(self.objective.metric, estimate="batch")
        distance = metric(Pair(moving, (n,), (m,), torch.as_tensor(mass)))
        (slope,) = torch.autograd.grad(distance, moving)
        table = np.zeros(2 * PLACES)
        table[there] = slope.numpy() / mass
        return distance.item(), table[:PLACES], table[PLACES:]

    def _energy_distance(
        self, points: Floats, left: Floats, right: Floats
    ) -> tuple[float, Floats, Floats]:
        """The energy distance, and its slopes, by counting."""
        n = left.sum()
        m = right.sum()
        fresh = self.objective.estimate == "population"
        a = 2 * np.cumsum(left) - left - n
        b = 2 * np.cumsum(right) - right - m
        across = 2 / (n * m)
        within_left = 2 / (n * (n - fresh))
        within_right = 2 / (m * (m - fresh))
        of_left = across * b - within_left * a
        of_right = across * a - within_right * b
        distance = (left * of_left + right * of_right) @ points
        return float(distance), of_left, of_right


def check_summable(objective: Objective, *, weighted: bool) -> None:
    """Raise a DataError if summed counts do not determine the requested objective."""
    dependent = next(
        (
            comparison.attribute
            for comparison in objective.comparisons
            if isinstance(comparison, Dependence)
        ),
        None,
    )
    if dependent is not None:
        raise DataError(
            f"how much scores depend on {dependent} is not counted on a cluster; cut numbers into "
            "groups and use "
            "contrast='pairs' or 'rest', or pass arrays instead of Dask collections"
        )
    if callable(objective.metric):
        raise DataError(
            "metric must be one of the names on a cluster, where distributions are counted on a "
            "grid"
        )
    if objective.estimate == "population" and (weighted or objective.metric != "energy"):
        raise DataError(
            "estimate='population' on a cluster is for metric='energy' without sample_weight; "
            "leave estimate='rows'"
        )
