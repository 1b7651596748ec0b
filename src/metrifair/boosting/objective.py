"""Risk + strength x unfairness for boosters: a slope and a curvature for each row, in each
round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from metrifair.batches.samples import Batch, join_samples
from metrifair.errors import Diverged
from metrifair.metrics.dependence import covariance_form, dependence_slopes
from metrifair.metrics.namespaces import namespace_for
from metrifair.metrics.quadratic import energy_coefficients, energy_slopes, projected
from metrifair.metrics.registry import Estimate
from metrifair.metrics.torch_namespace import random_directions
from metrifair.problem.cells import Sides
from metrifair.support.arrays import AnyFloats, Floats, Integers, distinct_codes
from metrifair.support.user_warnings import warn_user
from metrifair.training.objective import BINARY, MULTICLASS, Objective, Task, scores

Shares = tuple[Floats, Floats]
"""Weights of (n,) rows on the left and on the right of a comparison."""

METRIC_NAME = "penalized_risk"
FIRST_STRENGTH = 0.1  # at the start of boosting, if the requested strength is larger
# largest step of a leaf for the penalty: log-odds, or standard deviations of the target
WIDEST = 3.0
# the limit after a round that raised the objective, and after one that did not
_NARROWED = 0.5
_WIDENED = 1.05
MANY = 2**14  # rows: with more, probabilities are counted on a grid
PLACES = 2**14  # of the grid: its tables fit into the processor's first cache
_LEAST_CURVATURE = 1e-16
_NOT_YET = 1e9  # reported for each round in which the strength still rises
_LIGHT = 1e-4  # weight of rows that are added to a distribution


def cancelling(noise: Floats, label_noise: Floats | None) -> Floats:
    """The part of the penalty's noise that cancels the noise of labels, whose slopes are
    ``-label_noise``.

    >>> cancelling(np.array([0.5, 2.0, -0.5]), np.array([1.0, 1.0, 1.0]))
    array([0.5, 1. , 0. ])
    """
    if label_noise is None:
        return np.zeros_like(noise)
    least = np.minimum(label_noise, 0.0)
    most = np.maximum(label_noise, 0.0)
    return np.clip(noise, least, most)


def on_grid(task: Task, rows: int) -> bool:
    """True if scores are counted on a grid: many probabilities.

    Scores with heavy tails would share few grid points.
    """
    return task.name in (BINARY.name, MULTICLASS.name) and rows >= MANY


class Expansion(NamedTuple):
    """The objective at the outputs of a round, and its derivatives.

    ``risk`` and ``unfairness`` are means, on the scale of FairClassifier and FairRegressor. Slopes
    and curvature are those of their sum over the rows, on the scale of the plain booster: its
    parameters keep their meaning. They are (n,), of several classes (n, classes), the curvature
    being that of each class alone. ``own_slope`` is the unfairness's slope if every row counts for
    its own group; None if that is not needed.
    """

    risk: float
    unfairness: float
    risk_slope: Floats
    risk_curvature: Floats
    unfairness_slope: Floats
    own_slope: Floats | None = None


class LossTerms(NamedTuple):
    """The loss of each row on the scale of the plain booster, which halves the squared error of
    targets as they are.
    """

    prediction: Tensor
    slope: Tensor
    curvature: Tensor
    unit: float  # of that scale, a factor of the unfairness


def loss_terms(
    task: Task, output: Tensor, y: Tensor, spread: float, class_curvature: float = 2.0
) -> LossTerms:
    """Those of log-odds and labels, of one class or several, or of standardized outputs and targets
    of this ``spread``.

    The curvature of each of several classes is ``class_curvature`` times p (1 - p).
    """
    if task.vector:
        prediction = torch.softmax(output, 1)
        label = torch.nn.functional.one_hot(y.long(), prediction.shape[1])
        curvature = class_curvature * prediction * (1 - prediction)
        return LossTerms(prediction, prediction - label, curvature, 1.0)
    if task.name == BINARY.name:  # by name: a task from another process is another object
        prediction = torch.sigmoid(output)
        curvature = prediction * (1 - prediction)
        return LossTerms(prediction, prediction - y, curvature, 1.0)
    slope = (output - y) * spread
    return LossTerms(output, slope, torch.ones_like(output), spread / 2)


@dataclass(frozen=True, eq=False)
class PenalizedRisk:
    """Risk and unfairness of outputs for fixed rows.

    ``center`` and ``spread`` are those of a regression target: the objective sees it standardized.
    The unfairness is that of the rows in their own groups. So are its slopes, unless ``shares``
    give the fraction of each row that is expected on either side of each comparison: then a row's
    slope is the mean of its slopes on these sides. ``label_noise`` is the part of the risk's slopes
    that groups explain beyond these fractions. For several classes the unfairness is that of
    projections of their probabilities, the same ones in every round.

    >>> from metrifair.batches.samples import Samples, tensor_sides
    >>> from metrifair.problem.cells import Comparison
    >>> two = Samples(torch.zeros(4, 0), torch.tensor([0.0, 1, 0, 1]), torch.tensor([0, 0, 1, 1]), torch.ones(4))
    >>> groups = (Comparison((0,), (1,)),)
    >>> penalized = PenalizedRisk(Objective(BINARY, groups), Batch(two, tensor_sides(groups, two.cell)), total_weight=4)
    >>> found = penalized.at(np.array([-1.0, 0, 0, 1]))
    >>> print(f"{found.risk:.3f} {found.unfairness:.3f}", found.unfairness_slope.round(2))
    0.503 0.231 [-0.39 -1.    1.    0.39]
    """

    objective: Objective
    batch: Batch
    total_weight: float  # of all rows
    center: float = 0.0
    spread: float = 1.0
    shares: tuple[Shares, ...] | None = None
    label_noise: Floats | None = None
    class_curvature: float = 2.0  # times p (1 - p), of each of several classes

    def at(self, output: ArrayLike) -> Expansion:
        """Both terms for outputs (n,), or (n, classes), of the booster."""
        standard = self._standard(output)
        samples = self.batch.samples
        task = self.objective.task
        share = self.total_weight / len(samples)
        weight = samples.weight
        if task.vector:
            weight = weight.unsqueeze(1)
        loss = loss_terms(task, standard, samples.y, self.spread, self.class_curvature)
        losses = task.loss(standard, samples.y)
        risk = float(samples.weight @ losses) / len(samples)
        if not self._by_counting:
            unfairness, slopes = self._by_autograd(standard)
        elif task.vector:
            unfairness, slopes = self._sliced(loss.prediction)
            mean_slope = (loss.prediction * slopes).sum(-1, keepdim=True)
            slopes = loss.prediction * (slopes - mean_slope)  # from probabilities to outputs
        else:
            unfairness, slopes = self._count_distances(loss.prediction.numpy())
            slopes = slopes * loss.curvature  # which is the slope of the link
        unit = self.total_weight * loss.unit
        slopes_by_row = (slopes * unit).numpy()
        own_slope = None
        if self._needs_own_slopes:
            own_slope = slopes_by_row[1]
        return Expansion(
            risk,
            unfairness,
            (loss.slope * (weight * share)).numpy(),
            (loss.curvature * weight * share).numpy(),
            slopes_by_row[0],
            own_slope,
        )

    @property
    def _needs_own_slopes(self) -> bool:
        return self.shares is not None and self.label_noise is not None

    def _by_autograd(self, output: Tensor) -> tuple[float, Tensor]:
        """The unfairness and its slopes by outputs, for every metric and criterion; then its slopes
        by own groups, if they are needed.
        """
        if self.shares is None:
            distance, slope = self._own_by_autograd(output)
            return distance, slope.unsqueeze(0)
        self.objective.generator.manual_seed(0)  # the same projections at each call
        moving = output.detach().double().requires_grad_()
        objective = self.objective
        y = self.batch.samples.y.double()
        # Computed once: at another place in a vector the last digit may differ, and a row would not
        # tie with its copy.
        score = scores(objective.criterion, objective.task, moving, y, penalize=objective.penalize)
        vector = objective.task.vector and score.ndim == moving.ndim
        doubled = torch.cat([score.detach(), score])
        added = self._with_added
        unfairness = objective.unfairness_of_scores(
            doubled, added.sides, added.samples.value, vector=vector
        )
        (slope,) = torch.autograd.grad(unfairness, moving)
        slopes = [slope / _LIGHT]
        if self._needs_own_slopes:
            _, own_slope = self._own_by_autograd(output)
            slopes.append(own_slope.double())
        return unfairness.item(), torch.stack(slopes)

    def _own_by_autograd(self, output: Tensor) -> tuple[float, Tensor]:
        """The unfairness and its slopes where every row counts for its own group."""
        self.objective.generator.manual_seed(0)  # the same projections at each call
        moving = output.detach().requires_grad_()
        unfairness = self.objective.unfairness(moving, self.batch)
        (slope,) = torch.autograd.grad(unfairness, moving)
        return unfairness.item(), slope

    def _sliced(self, prediction: Tensor) -> tuple[float, Tensor]:
        """The unfairness of probabilities (n, classes), and its slopes by these, by counting
        along each direction.
        """
        generator = torch.Generator().manual_seed(0)  # the same ones in every round
        directions = random_directions(self.objective.slices, prediction.shape[1], generator)
        directions = directions.to(prediction.dtype)
        along, shrinkage = projected(prediction, directions)
        total = len(directions) * shrinkage
        distances = [self._count_distances(projection) for projection in along.numpy()]
        values, slopes = zip(*distances, strict=True)
        slope = torch.stack(slopes, -1) @ directions / total
        return sum(values) / total, slope

    def _standard(self, output: ArrayLike) -> Tensor:
        outputs = np.asarray(output)
        if self.objective.task.vector:
            outputs = outputs.reshape(len(self.batch.samples), -1)
        else:
            outputs = outputs.reshape(-1)
        standardized = torch.as_tensor(outputs)
        if (self.center, self.spread) != (0.0, 1.0):
            standardized = (standardized.double() - self.center) / self.spread
        return standardized.to(self.batch.samples.y.dtype)

    @property
    def _by_counting(self) -> bool:
        """True for the most frequent case: the energy distance of predictions without weights."""
        objective = self.objective
        sides = self.batch.sides
        usual = (
            objective.metric == "energy"
            and objective.criterion.score == objective.penalize == "prediction"
        )
        return usual and all(
            side.dependence is not None
            or (side.weights is None and min(side.counts) >= objective.fewest)
            for side in sides
        )

    @cached_property
    def _with_added(self) -> Batch:
        """The rows, and copies with little weight on all sides where they are expected.

        The distance is that of the former. Its derivative by a score of the latter, over their
        weight, is what adding a row there changes: for every metric, criterion and weight, without
        a second definition of any.
        """
        sides = []
        count = len(self.batch.samples)
        for side, shares in zip(self.batch.sides, self.shares or (), strict=True):
            every = torch.arange(count)[side.rows]
            if side.weights is None:
                weights = torch.ones(len(every)).double()
            else:
                weights = side.weights.double()
            rows = []
            weight = []
            sizes = []
            first = side.counts[0]
            parts = (slice(first), slice(first, None))
            for part, share in zip(parts, shares, strict=True):
                own = every[part]
                added = torch.as_tensor(np.flatnonzero(share))
                light = _LIGHT * torch.as_tensor(share)[added]
                rows += [own, count + added]
                weight += [weights[part], light]
                sizes.append((len(own) + len(added),))
            left, right = sizes
            both_rows = torch.cat(rows)
            both_weights = torch.cat(weight)
            sides.append(Sides(both_rows, left, right, both_weights, side.fraction))
        samples = self.batch.samples
        samples = replace(samples, y=samples.y.double())
        return Batch(join_samples([samples, samples]), tuple(sides))

    def _count_distances(self, prediction: Floats) -> tuple[float, Tensor]:
        """The unfairness and its slopes by predictions, without autograd; then its slopes by own
        groups, if they are needed.
        """
        value = 0.0
        shape = (1 + self._needs_own_slopes, len(prediction))
        slopes = np.zeros(shape, dtype=prediction.dtype)
        fraction = 1.0  # all rows are present
        if self.objective.estimate == "population":
            fraction = 0.0
        places = self._places(prediction)
        for number, side in enumerate(self.batch.sides):
            weight = self.objective.weights[number]
            if side.dependence is not None:
                distance, slope = self._dependence(prediction, number)
                slopes[:, side.rows] += slope * weight
                value += distance * weight
                continue
            rows = _positions(side, len(prediction))
            left = rows[: side.counts[0]]
            right = rows[side.counts[0] :]
            if places is None:
                scores = prediction[rows]
                coefficients, center = energy_coefficients(
                    scores, len(left), fractions=(fraction, fraction)
                )
                slopes[:, rows] += coefficients * weight
                value += float(coefficients @ (scores - center)) * weight
                continue
            place, points = places
            distance, *tables = energy_tables(place, points, left, right, fraction=fraction)
            value += distance * weight
            for number_of_side, group in enumerate((left, right)):
                table = tables[number_of_side] * weight
                by_place = table.astype(prediction.dtype)
                if self.shares is not None:
                    share = self.shares[number][number_of_side]
                    slopes[0] += by_place[place] * share
                if self.shares is None or self._needs_own_slopes:
                    slopes[-1, group] += by_place[place[group]]
        return value, torch.from_numpy(slopes)

    def _places(self, prediction: Floats) -> tuple[NDArray[Any], AnyFloats] | None:
        """The place of each prediction on the grid; None if predictions are sorted instead."""
        if on_grid(self.objective.task, len(prediction)):
            return grid_places(prediction)
        if self.shares is None:
            return None
        points, place = np.unique(prediction, return_inverse=True)
        return place, points.astype(np.float64)

    def _dependence(self, prediction: Floats, place: int) -> tuple[float, Floats]:
        """The dependence of predictions on an attribute, and the slopes of its rows."""
        side = self.batch.sides[place]
        estimate = self.objective.estimate
        leveled = self._leveled.get(place)
        if leveled is not None:
            return leveled.at(prediction[side.rows])
        scores = torch.as_tensor(prediction, dtype=torch.float64)
        slopes = dependence_slopes(
            scores, side, values=self.batch.samples.value, estimate=estimate
        ).numpy()
        side_scores = scores.numpy()[side.rows]
        centered = side_scores - side_scores.mean()
        return float(slopes @ centered), slopes

    @cached_property
    def _leveled(self) -> dict[int, LeveledDependence]:
        """The dependences, by their places, that are counted by levels of the attribute: those
        of many rows.
        """
        samples = self.batch.samples
        if samples.value is None or self.objective.task is not BINARY or len(samples) < MANY_ROWS:
            return {}
        estimate = self.objective.estimate
        by_place = {}
        for place, side in enumerate(self.batch.sides):
            is_leveled = side.weights is None or estimate != "population"
            if side.dependence is not None and is_leveled:
                by_place[place] = leveled_dependence(side, samples.value, estimate)
        return by_place

    def value(self, output: ArrayLike, strength: float) -> float:
        """Risk + strength x unfairness."""
        if self.objective.task.vector:
            terms = self.at(output)
            return terms.risk + strength * terms.unfairness
        with torch.no_grad():
            standard = self._standard(output)
            risk, unfairness = self.objective(standard, self.batch)
        return float(risk + strength * unfairness)


def _positions(side: Sides, count: int) -> Integers:
    """The positions of a side's rows among all."""
    if isinstance(side.rows, slice):
        return np.arange(count)[side.rows]
    positions: Integers = side.rows.numpy()
    return positions


class Descent:
    """The slopes and curvatures of successive rounds, such that boosting lowers the objective at
    any strength.

    Two rules, explained in docs/results/boosting-notes.md. (1) The strength rises geometrically
    from 0.1 to the requested value, by the learning rate each round, within half of the rounds:
    where all outputs are equal, as in the beginning, the energy distance has a kink that a strong
    penalty never leaves. (2) The curvature is that of the risk plus |slope of the penalty| / limit,
    so that the penalty moves no leaf by more than the limit. After a round that raised the
    objective the limit is halved, otherwise it is widened again.
    """

    def __init__(
        self, training: PenalizedRisk, strength: float, *, rounds: int, learning_rate: float
    ) -> None:
        self.training = training
        self.strength = strength
        self.round = 0
        self.limit = WIDEST
        growth = math.log(max(strength / FIRST_STRENGTH, 1.0))
        rounds_to_grow = growth / max(learning_rate, 1e-9)
        self.warm_up = math.ceil(min(rounds_to_grow, rounds / 2))
        self._before: tuple[float, Expansion] | None = None

    def strength_at(self, number: int) -> float:
        """The strength in a round, counted from 0.

        >>> descent = Descent(None, 10.0, rounds=100, learning_rate=0.1)
        >>> [round(descent.strength_at(number), 2) for number in (0, 10, 20, 46, 47, 99)]
        [0.1, 0.27, 0.71, 9.07, 10.0, 10.0]
        """
        if number >= self.warm_up:
            return self.strength
        growth = self.strength / FIRST_STRENGTH
        share_of_rounds = number / self.warm_up
        return float(FIRST_STRENGTH * growth**share_of_rounds)

    def step(self, output: ArrayLike) -> tuple[Floats, Floats]:
        """Slope and curvature of every row for the next tree."""
        terms = self.training.at(output)
        strength = self.strength_at(self.round)
        if not math.isfinite(terms.risk + terms.unfairness):
            problem = f"boosting diverged in round {self.round}: risk {terms.risk}, unfairness {terms.unfairness}"
            remedy = "lower learning_rate, or check the target, and the score of a user-defined criterion"
            raise Diverged(problem, remedy=remedy)
        if self._before is not None:
            earlier, before = self._before
            change_of_unfairness = terms.unfairness - before.unfairness
            change = terms.risk - before.risk + earlier * change_of_unfairness
            if change > 0:
                self.limit *= _NARROWED
            else:
                self.limit = min(WIDEST, self.limit * _WIDENED)
        self._before = strength, terms
        self.round += 1
        pull = strength * terms.unfairness_slope
        if terms.own_slope is not None:
            noise = strength * (terms.own_slope - terms.unfairness_slope)
            pull += cancelling(noise, self.training.label_noise)
        largest_step = self.limit * self.training.spread
        curvature = terms.risk_curvature + np.abs(pull) / largest_step
        return terms.risk_slope + pull, np.maximum(curvature, _LEAST_CURVATURE)

    def report(self, other: PenalizedRisk, output: ArrayLike) -> float:
        """The penalized risk of other rows, for early stopping.

        While the strength rises, no round can be the best: the value is larger than any risk, and
        falls every round.
        """
        rounds_left = self.warm_up - self.round
        if rounds_left > 0:
            return _NOT_YET * rounds_left
        return other.value(output, self.strength)


def energy_tables(
    place: NDArray[Any], points: AnyFloats, left: Integers, right: Integers, *, fraction: float
) -> tuple[float, AnyFloats, AnyFloats]:
    """The energy distance between two lists of rows, and the slope of either side at each point.

    The scores of rows are ``points[place]``; counting is enough, and nothing is sorted.
    ``fraction`` is the share of the population in these rows: 1 is the plug-in, 0 the unbiased
    value.

    >>> energy_tables(np.array([0, 1, 1, 2]), np.array([0.0, 1.0, 3.0]), np.array([0, 1]), np.array([2, 3]), fraction=1)
    (1.5, array([-0.5, -1. , -0.5]), array([0.5, 1. , 0.5]))
    """
    count = len(points)
    left_counts = np.bincount(place[left], minlength=count)
    right_counts = np.bincount(place[right], minlength=count)
    n = len(left)
    m = len(right)
    a = 2 * np.cumsum(left_counts) - left_counts - float(n)
    b = 2 * np.cumsum(right_counts) - right_counts - float(m)
    of_left, of_right = energy_slopes(a, b, n, m, fractions=(fraction, fraction))
    # Slopes sum to 0 over all scores: any center gives the same value.
    centered = points - points[count // 2]
    of_scores = left_counts * of_left + right_counts * of_right
    return float(of_scores @ centered), of_left, of_right


def grid_places(scores: AnyFloats) -> tuple[NDArray[np.int32], AnyFloats]:
    """The place of each score on a grid between the smallest and the largest, and the scores at
    all places.
    """
    lowest = float(scores.min())
    highest = float(scores.max())
    last = PLACES - 1
    width = (highest - lowest) / last or 1.0
    precision = scores.dtype.type
    above_lowest = scores - precision(lowest)
    steps = above_lowest * precision(1 / width)
    place = (steps + 0.5).astype(np.int32)
    np.minimum(place, last, out=place)
    return place, lowest + width * np.arange(PLACES)


def nearest_places(scores: AnyFloats, lowest: float, width: float, count: int) -> Integers:
    """The nearest of ``count`` places to each score, from the lowest upwards, one width apart.

    >>> nearest_places(np.array([0.2, 0.7, 2.0]), 0.0, 0.5, 4)
    array([0, 1, 3])
    """
    steps = (scores - lowest) / width
    place = (steps + 0.5).astype(np.int64)
    return np.minimum(place, count - 1)


LEVELS_OF_NUMBERS = 256
MANY_ROWS = 2**17  # with more, counting is faster
_PLACES = 2**13  # of the grid: tables of places x levels


class LeveledDependence(NamedTuple):
    """A dependence counted by levels of the attribute: each value is the mean of its level
    (exact for names).
    """

    level: Integers  # (n,) of each row
    distance: Floats  # (levels, levels)
    weight: Floats | None  # (n,), summing to 1; None: each row counts 1
    factors: tuple[float, float, float]  # of pairs, triples and quadruples; see metrics.covariance
    scale: float

    def at(self, scores: NDArray[np.floating[Any]]) -> tuple[float, Floats]:
        """The dependence of scores (n,), moved to the nearest place of a grid, and its slopes."""
        lowest = float(scores.min())
        highest = float(scores.max())
        width = (highest - lowest) / (_PLACES - 1) or 1.0
        place = nearest_places(scores, lowest, width, _PLACES)
        levels = len(self.distance)
        cell = place * levels + self.level
        cells = _PLACES * levels
        flat = np.bincount(cell, self.weight, minlength=cells).astype(np.float64)
        counts = flat.reshape(_PLACES, levels)
        total = counts.sum(0)
        signed = 2 * np.cumsum(counts, 0) - counts - total  # below less above each place, by level
        sums = self.distance @ total
        pairs, triples, quadruples = self.factors
        plain = signed.sum(1, keepdims=True)
        inside = pairs * (signed @ self.distance) + quadruples * float(total @ sums) * plain
        of_triples = sums * plain + (signed @ sums)[:, None]
        inside += triples / 2 * of_triples
        slopes = 2 * self.scale * inside.reshape(-1)[cell]
        if self.weight is not None:
            slopes *= self.weight
        centered = place - float(place.mean())
        return width * float(slopes @ centered), slopes


def leveled_dependence(side: Sides, values: Tensor, estimate: Estimate) -> LeveledDependence:
    """The dependence of a side; a number with too many distinct values is cut into levels, with
    a warning.
    """
    dependence = side.dependence
    if dependence is None or dependence.scale is None:
        raise ValueError("the side has no dependence, or its scale is not known")
    attribute = values[side.rows, dependence.column].numpy()
    weight = None
    if side.weights is not None:
        weight = side.weights.double().numpy()
    levels, level = np.unique(attribute, return_inverse=True)
    if len(levels) > LEVELS_OF_NUMBERS:
        warn_user(
            f"{dependence.attribute} is cut into {LEVELS_OF_NUMBERS} levels "
            "of about equal size: there are "
            f"{len(attribute):,} "
            f"rows and {len(levels):,} distinct values"
        )
        upto = np.cumsum(np.bincount(level, weight))
        below_one = 1 - 1e-12
        steps = upto / upto[-1] * LEVELS_OF_NUMBERS * below_one
        larger_level = np.minimum(LEVELS_OF_NUMBERS - 1, steps.astype(np.int64))
        level = distinct_codes(larger_level[level])
        if weight is not None:
            attribute = weight * attribute
        sums = np.bincount(level, attribute)
        levels = sums / np.bincount(level, weight)
    if weight is not None:
        weight = weight / weight.sum()
    distances = np.abs(levels[:, None] - levels)
    form = covariance_form(side, estimate, namespace_for(values))
    pairs = float(form.pairs.reshape(()))
    triples = float(form.triples.reshape(()))
    quadruples = float(form.quadruples.reshape(()))
    factors = (pairs, triples, quadruples)
    return LeveledDependence(level, distances, weight, factors, dependence.scale)
