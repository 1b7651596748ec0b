"""Convert labels, groups and weights to a booster's objective; the features stay untouched.

The slope of a row is a function of its score times its group. The part of the group that features
do not explain is noise, and trees fit it as they fit the noise of labels: leaves move training rows
together, but not test rows. The mean of the slope given the features has no such noise. It needs
the probability of each group, from a model that was not trained on the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.validation import assert_all_finite

from metrifair.batches.samples import Batch, Samples, sides_by_row, tensor_sides
from metrifair.boosting.objective import PenalizedRisk, Shares, on_grid
from metrifair.errors import DataError
from metrifair.estimators.settings import (
    Aim,
    Trainable,
    check_class_labels,
    check_range,
    objective_for,
    trainable,
)
from metrifair.metrics.penalty_options import penalty_options
from metrifair.problem.cells import Comparison, Dependence, Sides
from metrifair.problem.problem import (
    Inputs,
    Problem,
    Scheme,
    problem_with_probabilities,
    problem_with_scheme_and_probabilities,
)
from metrifair.problem.tables import Table, as_labels
from metrifair.support.arrays import Floats, Integers, distinct_codes
from metrifair.support.checks import check_switches
from metrifair.training import weighted_moments
from metrifair.training.objective import BINARY, MULTICLASS, Objective, Task, regression

FOLDS_OF_GROUP_MODELS = 3
MOST_ROWS_OF_GROUP_MODELS = (
    10_000  # that train a model of groups; two folds of more rows hold as many
)
_NOTABLE = 0.01  # share of the variation of labels, below which groups add nothing to features
FEWEST_ROWS = 500  # of each kind, before it is thinned


class GroupSample(NamedTuple):
    """Rows that train a model of groups."""

    rows: Integers
    kind: Integers  # of each row, numbered from 0
    weight: Floats


Chances = Callable[[GroupSample, Integers], Floats]
"""The chances (n, kinds) that a model fitted to a sample gives other rows (n,)."""


def expected_shares(
    problem: Problem,
    comparisons: Sequence[Comparison],
    chances: Chances,
    random: np.random.RandomState,
) -> tuple[Shares, ...] | None:
    """For each comparison, the fraction of every row that is expected on the left and on the right.

    Only the row's group is uncertain; its label and its stratum are known. Rows of unknown group
    have no expectation. None if features determine the group of every row, such as when the group
    is a feature.
    """
    shares: dict[int, Shares] = {}
    revealed = True  # whether features reveal the group of every row
    for column, attribute in enumerate(problem.scheme.attributes):
        group = problem.groups[:, column]
        cells = []
        for code in range(len(attribute.groups)):
            groups = problem.groups.copy()
            groups[:, column] = code
            cells.append(replace(problem, groups=groups).cell)
        in_group = np.stack(cells, 1)  # the cell of each row if it were in each group
        sides = {
            place: (np.isin(in_group, comparison.left), np.isin(in_group, comparison.right))
            for place, comparison in enumerate(comparisons)
            if comparison.attribute == attribute.name
        }
        if not sides:
            continue
        # which comparisons a row is in
        context = [(left | right).any(1).astype(np.float64) for left, right in sides.values()]
        counts = np.any(context, axis=0) & (group >= 0)
        # scores depend on labels, and the group depends on labels
        if problem.scheme.criterion.score != "prediction":
            context.append(np.asarray(problem.labels, dtype=np.float64))
        weight = np.where(counts, problem.row_weights, 0.0)
        weight *= counts.sum() / weight.sum()  # boosters depend on the scale of weights
        chance = _group_probabilities(
            group,
            distinct_codes(np.stack(context, 1), axis=0),
            groups=len(attribute.groups),
            weight=weight,
            chances=chances,
            random=random,
        )
        is_group = chance.argmax(1) == group
        revealed = revealed and bool(is_group[counts].all())
        for place, (left, right) in sides.items():
            on_left = (chance * left).sum(1)
            on_right = (chance * right).sum(1)
            shares[place] = (on_left, on_right)
    if revealed:
        return None
    return tuple(shares[place] for place in range(len(comparisons)))


def _group_probabilities(
    group: Integers,
    context: Integers,
    *,
    groups: int,
    weight: Floats,
    chances: Chances,
    random: np.random.RandomState,
) -> Floats:
    """The probability (n, groups) of each group among rows of the same context, by models of
    other rows.
    """
    rows = np.flatnonzero(weight > 0)
    own = np.zeros((len(group), groups))
    own[rows, group[rows]] = 1.0
    kind_of_row = context * groups + group
    kinds, kind = np.unique(kind_of_row[rows], return_inverse=True)
    if len(kinds) == 1:
        return own
    count = len(rows)
    at_random = random.random(count)
    order = np.lexsort((at_random, kind))
    folds = 2
    if count < 2 * MOST_ROWS_OF_GROUP_MODELS:
        folds = FOLDS_OF_GROUP_MODELS
    fold = np.empty(count, dtype=np.int64)
    fold[order] = np.arange(count) % folds
    chance = np.zeros((len(group), groups))
    for held_out in range(folds):
        others = order[fold[order] != held_out]
        learned, copies = _thinned(others, kind)
        present, code = np.unique(kind[learned], return_inverse=True)
        learned = rows[learned]
        sample = GroupSample(learned, code, weight[learned] * copies)
        predicted = rows[fold == held_out]
        fold_chances = chances(sample, predicted)
        for column, place in enumerate(kinds[present]):
            context_of_kind, group_of_kind = divmod(place, groups)
            same_context = context[predicted] == context_of_kind
            chance[predicted[same_context], group_of_kind] = fold_chances[same_context, column]
    total = chance.sum(1, keepdims=True)
    np.divide(chance, total, out=own, where=total > 0)
    return own


def _thinned(order: Integers, kind: Integers) -> tuple[Integers, Floats]:
    """At most about ``MOST_ROWS_OF_GROUP_MODELS`` of these rows, which are in order of their kinds,
    and how many rows each represents. Rare kinds keep more of their rows.
    """
    kind = kind[order]
    counts = np.bincount(kind)
    largest_step = np.ceil(len(order) / MOST_ROWS_OF_GROUP_MODELS)
    steps_of_kinds = np.clip(counts // FEWEST_ROWS, 1, largest_step)
    step = steps_of_kinds.astype(np.int64)[kind]
    firsts = np.cumsum(counts) - counts
    place = np.arange(len(order)) - firsts[kind]
    kept = place % step == 0
    return order[kept], step[kept].astype(np.float64)


@dataclass(frozen=True, eq=False)
class BoostingRows:
    """The rows of a training or evaluation set: all of them, since a booster keeps those
    without weight too.
    """

    problem: Problem  # the rows that count
    targets: Floats  # (n,): 1 at the later of two classes, or numbers; 0 in rows without weight
    weight: Floats  # (n,)

    @classmethod
    def of(cls, problem: Problem) -> BoostingRows:
        """The rows of a problem, with those of weight 0 in their places."""
        weight = problem.row_weights
        targets = np.asarray(problem.labels, dtype=np.float64)
        return cls(problem, expand_rows(problem, targets), expand_rows(problem, weight))

    @property
    def cell(self) -> Integers:
        """The cell of each row; rows without weight are in a cell that is not compared."""
        unnamed = 1 + max(
            (max(comparison.left + comparison.right) for comparison in self.problem.comparisons),
            default=0,
        )
        return expand_rows(self.problem, self.problem.cell, otherwise=unnamed)

    @property
    def values(self) -> Floats | None:
        """Values of numeric attributes; 0 in rows without weight."""
        numbers = self.problem.attribute_values
        if numbers is None:
            return None
        return expand_rows(self.problem, numbers)

    def sides_by_probabilities(self, comparisons: Sequence[Comparison]) -> tuple[Sides, ...]:
        """The rows of each comparison, each once for each group of positive probability."""
        sides = sides_by_row(comparisons, self.problem)
        every_row = torch.ones(2, dtype=torch.float64)
        place = torch.arange(len(self.weight))
        if self.problem.kept is not None:
            place = place[torch.as_tensor(self.problem.kept)]
        return tuple(replace(side, rows=place[side.rows], fraction=every_row) for side in sides)


def expand_rows(problem: Problem, values: NDArray[Any], *, otherwise: int = 0) -> NDArray[Any]:
    """Values of the rows that count, in their places among all rows; ``otherwise`` in rows
    without weight.
    """
    if problem.kept is None:
        return values.copy()  # torch may write to it
    full = np.full((len(problem.kept), *values.shape[1:]), otherwise, dtype=values.dtype)
    full[problem.kept] = values
    return full


def is_penalized(booster: Any) -> bool:
    """True if the strength is not 0; a parameter of ours that is out of range is a DataError."""
    check_range("strength", booster.strength)
    penalty_options(booster).check()
    check_switches(intersectional=booster.intersectional, expected_groups=booster.expected_groups)
    return bool(booster.strength > 0)


@dataclass(frozen=True, eq=False)
class BoostingProblem:
    """The comparisons, fixed by the training rows; makes the objective of these and of
    evaluation sets.
    """

    booster: Aim
    training: BoostingRows
    task: Task
    center: float = 0.0
    spread: float = 1.0

    @property
    def scheme(self) -> Scheme:
        """The meaning of the values."""
        return self.training.problem.scheme

    @cached_property
    def trainable(self) -> Trainable:
        """The comparisons of the penalty, and the cells that are too small for them."""
        return trainable(self.booster, self.training.problem)

    @property
    def start(self) -> float | Floats:
        """The best constant output: the log-odds of the mean label, of several classes the
        logarithm of the share of each, or the mean of the target.
        """
        if not self.scheme.classes:
            return self.center
        labels = self.training.targets.astype(np.int64)
        weight = self.training.weight
        amounts = np.bincount(labels, weight, minlength=len(self.scheme.classes))
        share = amounts / weight.sum()
        return np.log(share) if self.task.vector else math.log(share[1] / share[0])

    def shares(self, chances: Chances, random: np.random.RandomState) -> tuple[Shares, ...] | None:
        """The fraction of each training row that is expected on either side; None if the observed
        groups are used.

        They are used if the score needs a numeric target, if a user-defined metric might not accept
        weights, and if scores should not depend on a number. They are used too if attributes have
        so many combinations of groups that only those that occur have cells. Probabilities of the
        user are used as they are.
        """
        problem = self.training.problem
        uses_numbers = problem.scheme.criterion.score != "prediction" and not problem.scheme.classes
        cells = problem.scheme.cells
        dependent = any(
            isinstance(comparison, Dependence) for comparison in self.trainable.comparisons
        )
        if (
            uses_numbers
            or callable(self.booster.metric)
            or dependent
            or problem.probabilities is not None
            or (cells is not None and cells.combinations is not None)
        ):
            return None

        places = problem.passed_rows

        def chances_of_kept(sample: GroupSample, predicted: Integers) -> Floats:
            rows = places[sample.rows]
            return chances(sample._replace(rows=rows), places[predicted])

        # A row may be expected in a cell that no row has.
        shares = expected_shares(problem, self.trainable.complete, chances_of_kept, random)
        if shares is None:
            return None
        return tuple(
            (expand_rows(problem, left), expand_rows(problem, right)) for left, right in shares
        )

    def objective(self) -> Objective:
        """The objective with the comparisons of the penalty."""
        return objective_for(self.booster, self.scheme, self.task, self.trainable.comparisons)

    def make_objective(
        self,
        rows: BoostingRows,
        risk_weight: Floats | None = None,
        shares: tuple[Shares, ...] | None = None,
    ) -> PenalizedRisk:
        """The objective for rows; ``risk_weight`` multiplies the weight of each in the risk."""
        weight = rows.weight
        total = float(weight.sum())
        in_risk = weight
        if risk_weight is not None:
            in_risk = weight * risk_weight
        label_noise = None
        if shares is not None:
            label_noise = self._label_noise(rows, shares, in_risk)
        # Places on a grid need single precision only. Other scores need more: in a standardized
        # target with an outlier, all other values are so close together that single precision would
        # tie them.
        precision = torch.float64
        if on_grid(self.task, len(weight)):
            precision = torch.float32
        targets = (rows.targets - self.center) / self.spread
        risk_weights = in_risk * (len(weight) / total)
        samples = Samples(
            torch.zeros(len(weight), 0),
            torch.as_tensor(targets, dtype=precision),
            torch.as_tensor(rows.cell),
            torch.as_tensor(risk_weights, dtype=precision),
            None if rows.values is None else torch.as_tensor(rows.values),
        )
        is_even = (weight == weight[0]).all()
        uneven = None if is_even else torch.as_tensor(weight)
        if shares is not None:
            shares = _weighted_shares(shares, None if is_even else weight, precision)
        comparisons = self.trainable.comparisons
        if rows.problem.probabilities is None:
            sides = tensor_sides(comparisons, samples.cell, uneven, drawn_from=samples.cell)
        else:
            sides = rows.sides_by_probabilities(comparisons)
        curvature_of = getattr(self.booster, "_class_curvature", lambda _: 2.0)
        curvature = curvature_of(len(self.scheme.classes))
        return PenalizedRisk(
            self.objective(),
            Batch(samples, sides),
            total,
            self.center,
            self.spread,
            shares,
            label_noise,
            curvature,
        )

    def _label_noise(
        self, rows: BoostingRows, shares: tuple[Shares, ...], in_risk: Floats
    ) -> Floats | None:
        """The part of each label, times its weight in the risk, that groups explain beyond their
        expected shares; None if that is little.
        """
        targets = rows.targets
        if self.task.vector:
            targets = np.eye(len(self.scheme.classes))[targets.astype(np.int64)]
        cell = rows.cell
        columns = []
        for comparison, share in zip(self.trainable.comparisons, shares, strict=True):
            for cells, expected in zip(comparison.sides, share, strict=True):
                columns.append(np.isin(cell, cells) - expected)
        surprise = np.stack(columns, axis=1)
        return explained(surprise, targets, in_risk)


def _weighted_shares(
    shares: tuple[Shares, ...], weight: Floats | None, precision: torch.dtype
) -> tuple[Shares, ...]:
    """The shares times the weights of rows, if these differ, in the precision of scores."""
    width = np.dtype(np.float32 if precision is torch.float32 else np.float64)
    if weight is not None:
        shares = tuple((left * weight, right * weight) for left, right in shares)
    narrowed = [(left.astype(width), right.astype(width)) for left, right in shares]
    return tuple(narrowed)


def explained(surprise: Floats, targets: Floats, weight: Floats) -> Floats | None:
    """The weighted part of targets (n,) or (n, classes) that is linear in the columns of
    ``surprise``, by least squares; None if it is little.

    >>> explained(np.array([[0.5], [-0.5], [0.5], [-0.5]] * 9), np.array([1.0, 0, 1, 0] * 9), np.full(36, 2.0))[:4]
    array([ 1., -1.,  1., -1.])
    """
    share = weight / weight.sum()
    centered = targets - share @ targets
    moments = surprise.T @ (share[:, None] * surprise)
    products = surprise.T @ (share * centered.T).T
    fitted = surprise @ (np.linalg.pinv(moments, hermitian=True) @ products)
    explained_variance = (share @ fitted**2).sum()
    variance = (share @ centered**2).sum()
    if explained_variance <= _NOTABLE * variance:
        return None
    part: Floats = (fitted.T * weight).T
    return part


def boosting_problem(booster: Any, inputs: Inputs) -> BoostingProblem:
    """The problem of a classifier, or of a regressor, whose target the objective standardizes."""
    settings = {
        "criterion": booster.criterion,
        "intersectional": booster.intersectional,
        "continuous": booster.continuous,
        "contrast": penalty_options(booster).contrast,
    }
    if not hasattr(booster, "predict_proba"):
        if booster.pos_label is not None:
            raise DataError(
                "pos_label is for classifiers; leave it out of a regressor, got "
                f"{booster.pos_label!r}"
            )
        numeric = _with_outcome(booster, inputs, labels=False)
        problem = problem_with_probabilities(numeric, target="numbers", **settings)
        rows = BoostingRows.of(problem)
        targets = torch.as_tensor(rows.targets).unsqueeze(1)
        moments = weighted_moments(targets, torch.as_tensor(rows.weight))
        center, spread = (moment.item() for moment in moments)
        return BoostingProblem(booster, rows, regression(), center, spread)
    labeled = _with_outcome(booster, inputs, labels=True)
    classes = np.unique(np.asarray(labeled.y))
    if len(classes) < 2:
        raise DataError(
            f"y must contain two classes or more if strength > 0, got one: {classes.tolist()}"
        )
    settings |= {"pos_label": booster.pos_label, "classes": classes.tolist()}
    problem = problem_with_probabilities(labeled, target="labels", **settings)
    rows_by_class = np.bincount(np.asarray(problem.labels), minlength=len(classes))
    if not rows_by_class.all():
        missing = classes[rows_by_class == 0].tolist()
        raise DataError(
            f"no sample with a sample_weight above 0 is of class {missing[0]!r}; leave such rows "
            "out of y"
        )
    task = MULTICLASS
    if len(classes) == 2:
        task = BINARY
    return BoostingProblem(booster, BoostingRows.of(problem), task)


def evaluation_rows(problem: BoostingProblem, inputs: Inputs) -> BoostingRows:
    """An evaluation set, whose values have the meaning of the training rows."""
    scheme = problem.scheme
    prepared = _with_outcome(problem.booster, inputs, labels=bool(scheme.classes))
    rows = problem_with_scheme_and_probabilities(prepared, scheme)
    return BoostingRows.of(rows)


def evaluation_sets(
    eval_set: Sequence[tuple[Table, Table]], **lists: Sequence[Any] | None
) -> list[Inputs]:
    """Evaluation sets with their groups, strata and weights: three lists with one entry for
    each set.
    """
    for name, entries in lists.items():
        if entries is not None and (
            not isinstance(entries, (list, tuple)) or len(entries) != len(eval_set)
        ):
            if isinstance(entries, (list, tuple)):
                count = f"{len(entries)}"
            else:
                count = f"a {type(entries).__name__}"
            raise DataError(
                f"{name} must be a list with one entry for each of {len(eval_set)} eval sets, got "
                f"{count}"
            )
    if lists["eval_sensitive_features"] is None:
        raise DataError(
            "eval_set is evaluated by risk + strength x unfairness; pass eval_sensitive_features, "
            "a list with the "
            "groups of each eval set"
        )
    columns = columns_of_sets(lists, len(eval_set))
    return [
        Inputs(y, groups, strata, weight, rows={"eval_X": X}, label="eval_y", prefix="eval_")
        for (X, y), groups, strata, weight in zip(eval_set, *columns, strict=True)
    ]


def columns_of_sets(lists: Mapping[str, Sequence[Any] | None], count: int) -> list[Sequence[Any]]:
    """Each of the lists; None for each evaluation set where a list was not passed."""
    return [[None] * count if entries is None else entries for entries in lists.values()]


def _with_outcome(booster: Any, inputs: Inputs, *, labels: bool) -> Inputs:
    """The same with labels, or numbers, that scikit-learn has checked."""
    precision = None if labels else np.float64
    y: NDArray[Any] = column_or_1d(as_labels(inputs.y), dtype=precision)
    assert_all_finite(y, input_name="y")
    if labels:
        check_class_labels(booster, y)
    return replace(inputs, y=y, rows={**inputs.rows, inputs.label: inputs.y})
