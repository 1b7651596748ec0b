"""What an audit looks at, rows in memory or cells of a file, and who is compared with whom in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from metrifair.auditing.distribution import CountedScores, Floats, Integers, TwoSamples, counted_rows
from metrifair.auditing.request import MOST_PAIRED, Request, check_groups
from metrifair.auditing.resampling import Rows
from metrifair.errors import DataError
from metrifair.problem.bands import in_bands
from metrifair.problem.cells import Attribute, Contrast
from metrifair.problem.criteria import Criterion
from metrifair.problem.predictions import predictions_of, scores_of
from metrifair.problem.problem import Given, Problem, problem_of
from metrifair.problem.strata import EVERYONE
from metrifair.problem.tables import Table
from metrifair.report.audit.words import REST

BANDS = 5  # of an attribute that is a number
_NOBODY = Attribute("nobody", ("one", "other"))


@dataclass(frozen=True, eq=False)
class AuditSample:
    """Units (rows, or cells of a file), what is known of each, and their scores."""

    problem: Problem  # one row for each unit
    ends: tuple[float, float]  # the smallest and the largest score
    prediction: Floats | None = None  # (rows,) or (rows, classes), where rows are held
    counted: CountedScores | None = None  # the predictions, where rows were counted
    rows: Integers | None = None  # in each unit; None: one
    weight: Floats | None = None  # of each unit; None: that of its rows
    weighted: bool = False
    left_out: Mapping[str, int] = field(default_factory=dict)  # rows that could not be used at all, by why

    @property
    def score(self) -> Floats | None:
        """The one prediction of each row; None for several classes, and where rows are not held."""
        return None if self.prediction is None or self.prediction.ndim > 1 else self.prediction

    @property
    def probabilities(self) -> bool:
        """True where all predictions lie in [0, 1] and nothing says that they are measurements."""
        is_target = self.problem.labels is not None and not self.problem.scheme.classes
        return not is_target and self.ends[0] >= 0 and self.ends[1] <= 1

    @property
    def outcome(self) -> Floats | None:
        """The outcome as a number: the target, or 1 at the positive one of two labels; None for several classes."""
        if self.problem.labels is None or len(self.problem.scheme.classes) > 2:
            return None
        positive = self.problem.is_positive
        return np.asarray(self.problem.labels if positive is None else positive, dtype=np.float64)

    def size(self, units: Integers) -> int:
        """How many rows some units hold."""
        return len(units) if self.rows is None else int(self.rows[units].sum())

    @cached_property
    def predicted(self) -> dict[str, CountedScores]:
        """The predictions, by the class whose probability they are; by "" where there is one score."""
        if self.counted is not None:
            return {"": self.counted}
        if self.prediction is None:
            raise DataError("a sample needs predictions")
        return _by_class(self.prediction, self.problem, self.weight)

    def scores(self, criterion: Criterion, problem: Problem, loss: str | None) -> dict[str, CountedScores]:
        """What a criterion compares; ``problem`` holds outcomes as the criterion takes them."""
        if criterion.score == "prediction":
            return self.predicted
        if self.prediction is None:
            raise DataError(
                f"{criterion.name} compares other scores than the predictions, which is not done for files too large "
                "to hold; write those scores to the file, as a column of their own"
            )
        found = scores_of(criterion, self.prediction, problem, loss=loss).numpy()
        return _by_class(found, self.problem, self.weight)


def _by_class(scores: Floats, problem: Problem, weight: Floats | None) -> dict[str, CountedScores]:
    if scores.ndim == 1:
        return {"": counted_rows(scores, weight)}
    classes = problem.scheme.classes
    names = classes if len(classes) == scores.shape[1] else range(scores.shape[1])
    return {
        f"probability of {name}": counted_rows(column, weight) for name, column in zip(names, scores.T, strict=True)
    }


def sample_in_memory(
    y_pred: Table,
    request: Request,
    *,
    sensitive_features: Table,
    y_true: Table | None = None,
    control_features: Table | None = None,
    sample_weight: Table | None = None,
) -> AuditSample:
    """Rows that are held in memory, checked."""
    rows = {"y_pred": y_pred, "y_true": y_true}
    given = Given(y_true, sensitive_features, control_features, sample_weight, rows, "y_true")
    problem = problem_of(
        given,
        intersectional=request.intersectional,
        continuous=request.numbers,
        pos_label=None if y_true is None else request.pos_label,
        compared=False,
    )
    problem = with_bands(problem)
    check_groups(problem, most=request.most_groups)
    prediction = predictions_of(y_pred, problem, pos_label=request.pos_label)
    weight = problem.weight
    if weight is not None:
        # Sums of weights are rounded, and resamples are drawn by place: neither may depend on how rows were handed
        # over. Multiplying by a power of two changes no ratio of weights, and keeps sums from overflowing.
        columns = [prediction] if prediction.ndim == 1 else list(prediction.T)
        others = [one for one in (problem.labels, problem.strata) if one is not None]
        order = np.lexsort([*others, *problem.groups.T, *columns, weight])
        weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))[order]
        problem, prediction = replace(problem.take(order), weight=weight), prediction[order]
    ends = float(prediction.min()), float(prediction.max())
    return AuditSample(problem, ends, prediction, weight=weight, weighted=weight is not None)


def with_bands(problem: Problem, rows: Integers | None = None) -> Problem:
    """Attributes that are numbers as bands of about equal size, for decisions by group; the numbers stay there too."""
    return replace(in_bands(problem, BANDS, rows), numbers=problem.numbers)


class Part(NamedTuple):
    """The scores that one criterion compares within one of its sets."""

    criterion: str
    within: str
    units: Integers  # that are in the set
    scores: CountedScores
    of_predictions: bool = True  # False: of losses or another score, whose range is not that of the predictions


def parts_of(sample: AuditSample, criteria: Sequence[Criterion], loss: str | None) -> Iterator[Part]:
    """Every criterion x set; probabilities of three or more classes one class at a time."""
    for criterion in criteria:
        problem = _as_taken_by(criterion, sample.problem, loss)
        scores = sample.scores(criterion, problem, loss if criterion.score == "loss" else None)
        for name, units in sets_of(criterion, problem):
            for of_class, counted in scores.items():
                within = ", ".join(text for text in (name, of_class) if text)
                yield Part(criterion.name, within, units, counted, criterion.score == "prediction")


def _as_taken_by(criterion: Criterion, problem: Problem, loss: str | None) -> Problem:
    """The problem with numbers for labels where the criterion cuts them, or its loss compares them, as numbers."""
    if problem.labels is None and (criterion.needs_labels or criterion.score == "loss" or callable(criterion.score)):
        raise DataError(f"{criterion.name} looks at the true labels; pass y_true, got None")
    numeric = criterion.bins is not None or (criterion.score == "loss" and loss not in (None, "log_loss"))
    if not numeric or not problem.scheme.classes:
        return problem
    try:
        numbers = np.asarray(problem.values, dtype=np.float64)
    except ValueError:
        raise DataError(
            f"{criterion.name} takes the outcome as a number, got labels such as {problem.scheme.classes[0]!r}"
        ) from None
    return replace(problem, scheme=replace(problem.scheme, classes=(), positive=-1), labels=numbers)


def sets_of(criterion: Criterion, problem: Problem) -> list[tuple[str, Integers]]:
    """Who is in which set: as in training, by cells, of an attribute that tells nobody apart."""
    everyone = criterion.labels is None and criterion.sets is None and problem.strata is None
    if everyone and not criterion.strata:  # finding the cells of a million samples would take longer than counting them
        return [(name, np.arange(len(problem))) for name in EVERYONE.names]
    scheme = replace(problem.scheme, criterion=criterion, attributes=(_NOBODY,), intersectional=False, contrast="pairs")
    alone = replace(problem, scheme=scheme, groups=np.zeros((len(problem), 1), np.int64))
    return [
        (comparison.within, np.flatnonzero(np.isin(alone.cell, comparison.left))) for comparison in alone.comparisons
    ]


class Members(NamedTuple):
    """The units of a set whose group of one attribute is known."""

    units: Integers
    codes: Integers
    present: list[int]  # codes of the groups that have units


def members_of(problem: Problem, units: Integers, place: int) -> Members:
    """Those of the attribute at this place."""
    codes = _codes(problem, units, place)
    if codes.min(initial=0) < 0:
        known = codes >= 0
        units, codes = units[known], codes[known]
    return Members(units, codes, np.flatnonzero(np.bincount(codes)).tolist())


def _codes(problem: Problem, units: Integers, place: int) -> Integers:
    column = problem.groups[:, place]
    found: Integers = column if len(units) == len(column) else column[units]  # everyone need not be copied
    return found


@dataclass(frozen=True, eq=False)
class Compared:
    """Two groups, or one and the rest, within a part. Units are looked up when asked for: there may be many of them."""

    problem: Problem
    part: Part
    place: int  # of the attribute
    left: int
    right: int | None  # None: the rest
    sizes: tuple[int, int]  # rows of both sides

    @property
    def attribute(self) -> Attribute:
        """Whose groups are compared."""
        return self.problem.scheme.attributes[self.place]

    @property
    def groups(self) -> tuple[str, str]:
        """The names of both sides."""
        names = self.attribute.groups
        return str(names[self.left]), REST if self.right is None else str(names[self.right])

    @property
    def sides(self) -> tuple[Integers, Integers]:
        """The units of both sides."""
        units, codes = self.part.units, _codes(self.problem, self.part.units, self.place)
        right = (codes >= 0) & (codes != self.left) if self.right is None else codes == self.right
        return units[codes == self.left], units[right]

    def two_samples(self, sides: tuple[Integers, Integers]) -> tuple[TwoSamples, tuple[Rows, ...]]:
        """The scores of both sides; and the rows of either, where they have weights and are held."""
        counted = self.part.scores
        left, right = (counted.at(units) for units in sides)
        used = (left > 0) | (right > 0)
        found = TwoSamples(*(part[used].astype(np.float64) for part in (counted.values, left, right)))
        if counted.amount is None or counted.starts is not None:
            return found, ()
        place = np.cumsum(used) - 1
        return found, tuple(Rows(place[counted.place[units]], counted.amount[units]) for units in sides)


def compared_in(sample: AuditSample, part: Part, contrast: Contrast) -> list[Compared]:
    """All comparisons of all attributes' groups within a part."""
    found = []
    for place, attribute in enumerate(sample.problem.scheme.attributes):
        if attribute.cuts:  # a number, whose worst cut is looked for
            continue
        units, codes, present = members_of(sample.problem, part.units, place)
        size = np.bincount(codes, None if sample.rows is None else sample.rows[units]).astype(np.int64)
        paired = len(present) <= 2 or (contrast == "pairs" and len(attribute.groups) <= MOST_PAIRED)
        pairs = combinations(present, 2) if paired else product(present, [None])
        for left, right in pairs:
            sizes = int(size[left]), int(size.sum() - size[left] if right is None else size[right])
            found.append(Compared(sample.problem, part, place, left, right, sizes))
    return found
