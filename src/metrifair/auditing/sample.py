"""What an audit looks at, rows in memory or cells of a file; who is compared with whom in it, and how far apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, groupby, product
from typing import Any, NamedTuple

import numpy as np

from metrifair.auditing.distribution import (
    CountedScores,
    Floats,
    Integers,
    LargestGap,
    TwoSamples,
    counted_rows,
    distances_of,
    largest_gap,
)
from metrifair.auditing.records import Favourable
from metrifair.auditing.request import MOST_PAIRED, Request, check_groups
from metrifair.auditing.resampling import Rows
from metrifair.auditing.rest import Everyone, is_known
from metrifair.errors import DataError
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import STANDARDS
from metrifair.problem.attributes import group_codes
from metrifair.problem.bands import BANDS, in_bands
from metrifair.problem.cells import Attribute, Contrast
from metrifair.problem.criteria import EVERYONE, Criterion
from metrifair.problem.predictions import FLOAT64, predictions_of, scores_of
from metrifair.problem.problem import Given, Problem, problem_of
from metrifair.problem.tables import Table, columns
from metrifair.report.audit.words import REST

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
    withheld: int = 0  # of those, rows of cells that whoever counted them found too small to show
    levels: Mapping[str, int] = field(default_factory=dict)  # into how many numbers were cut, to be counted
    rated: Problem | None = None  # with the attributes whose rates a standard asks for; None: those of the problem
    favourable: Favourable = "high"  # whether high scores are, or low ones
    classes: tuple[object, ...] = ()  # whose probabilities the predictions are, where there are three or more
    precision: np.dtype[Any] = FLOAT64  # in which scores are compared with a threshold
    order: Integers | None = None  # the place of each row among those handed over; None: as they stand

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
        """The outcome as a number: the target, or 1 at the label that high scores are of; None for several classes."""
        if self.problem.labels is None or len(self.problem.scheme.classes) > 2:
            return None
        positive = self.problem.is_positive
        if positive is not None and self.favourable == "low":
            positive = ~positive  # scores are of the other label
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
        return _by_class(self.prediction, self.classes, self.weight)

    def scores(self, criterion: Criterion, problem: Problem, loss: str | None) -> dict[str, CountedScores]:
        """What a criterion compares; ``problem`` holds outcomes as the criterion takes them."""
        if criterion.score == "prediction":
            return self.predicted
        if self.prediction is None:
            raise DataError(
                f"{criterion.name} compares other scores than the predictions, which is not done for files too large "
                "to hold; write those scores to the file, as a column of their own"
            )
        found = scores_of(criterion, self.prediction, _scored(problem, self.favourable), loss=loss).numpy()
        return _by_class(found, self.classes, self.weight)


def _by_class(scores: Floats, classes: Sequence[object], weight: Floats | None) -> dict[str, CountedScores]:
    if scores.ndim == 1:
        return {"": counted_rows(scores, weight)}
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
    precision: np.dtype[Any] | None = None,
) -> AuditSample:
    """Rows that are held in memory, checked; ``precision`` is that of the column they were read from."""
    rows = {"y_pred": y_pred, "y_true": y_true}
    given = Given(y_true, sensitive_features, control_features, sample_weight, rows, "y_true")
    problem = problem_of(
        given,
        intersectional=request.intersectional,
        continuous=request.numbers,
        pos_label=None if y_true is None else request.pos_label,
        compared=False,
    )
    problem = favoured(with_bands(problem, request.least_count), request)
    check_groups(problem, most=request.most_groups)
    predicted = predictions_of(y_pred, _scored(problem, request.favourable), pos_label=request.pos_label)
    prediction = predicted.values
    rated, weight, order = rated_by(problem, sensitive_features, request), problem.weight, None
    if weight is not None:
        # Sums of weights are rounded, and resamples are drawn by place: neither may depend on how rows were handed
        # over. Multiplying by a power of two changes no ratio of weights, and keeps sums from overflowing.
        columns = [prediction] if prediction.ndim == 1 else list(prediction.T)
        others = [one for one in (problem.labels, problem.strata) if one is not None]
        order = np.lexsort([*others, *problem.groups.T, *columns, weight])
        weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))[order]
        problem, prediction = replace(problem.take(order), weight=weight), prediction[order]
        rated = None if rated is None else replace(rated.take(order), weight=weight)
    ends = float(prediction.min()), float(prediction.max())
    return AuditSample(
        problem,
        ends,
        prediction,
        weight=weight,
        weighted=weight is not None,
        rated=rated,
        favourable=request.favourable,
        classes=predicted.classes,
        precision=predicted.precision if precision is None else precision,
        order=order,
    )


def favoured(problem: Problem, request: Request) -> Problem:
    """With the favourable label as the positive one: where low scores are, unless told, the first of two."""
    if request.favourable == "high" or request.pos_label is not None or len(problem.scheme.classes) != 2:
        return problem
    return replace(problem, scheme=replace(problem.scheme, positive=0))


def _scored(problem: Problem, favourable: Favourable) -> Problem:
    """With the label that high scores are of as the positive one: the other one, where low scores are favourable."""
    if favourable == "high" or len(problem.scheme.classes) != 2:
        return problem
    return replace(problem, scheme=replace(problem.scheme, positive=1 - problem.scheme.positive))


def rated_by(problem: Problem, sensitive_features: Table, request: Request) -> Problem | None:
    """The same rows by each attribute and, of those that are no numbers, by their crossing, where a standard asks."""
    if not STANDARDS[request.standard or ""].crossed:
        return None
    given = columns("sensitive_features", sensitive_features)
    if len(given) < 2:
        return None
    attributes, groups = list(problem.scheme.attributes), [problem.groups]
    named = {name: given[name] for name in given if not any(one.cuts for one in attributes if one.name == name)}
    apart = group_codes(named, intersectional=not request.intersectional)
    if request.intersectional:
        attributes, groups = [*apart.attributes, *attributes], [problem.of_kept(apart.codes), *groups]
    elif len(named) > 1:
        attributes, groups = [*attributes, *apart.attributes], [*groups, problem.of_kept(apart.codes)]
    scheme = replace(problem.scheme, attributes=tuple(attributes), intersectional=False)
    return replace(problem, scheme=scheme, groups=np.concatenate(groups, axis=1), numbers=None)


def with_bands(
    problem: Problem, least_count: int, *, weight: Floats | None = None, rows: Integers | None = None
) -> Problem:
    """Attributes that are numbers as bands of about equal weight, for decisions by group; the numbers stay there too.

    Where rows were counted, ``weight`` and ``rows`` say what each unit holds.
    """
    if problem.numbers is None:
        return problem
    return replace(in_bands(problem, BANDS, weight=weight, rows=rows, least=least_count), numbers=problem.numbers)


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
        if attribute.cuts or contrast == "independence":  # whose worst cut is looked for
            continue
        units, codes, present = members_of(sample.problem, part.units, place)
        size = np.bincount(codes, None if sample.rows is None else sample.rows[units]).astype(np.int64)
        paired = len(present) <= 2 or (contrast == "pairs" and len(attribute.groups) <= MOST_PAIRED)
        pairs = combinations(present, 2) if paired else product(present, [None])
        for left, right in pairs:
            sizes = int(size[left]), int(size.sum() - size[left] if right is None else size[right])
            found.append(Compared(sample.problem, part, place, left, right, sizes))
    return found


class Proven(NamedTuple):
    """What counting a file proves of a comparison: where the gap is largest, and bounds of each distance."""

    gap: LargestGap
    values: Mapping[str, float]
    brackets: Mapping[str, Interval]


class Measured(NamedTuple):
    """One comparison: the scores of both sides, as far as they are told apart, and its distances."""

    found: TwoSamples
    dealt: TwoSamples  # groups are dealt anew to scores in bins that no group had a say in
    gap: LargestGap
    values: Mapping[str, float]
    brackets: Mapping[str, Interval] = {}  # none where rows are held
    rows: tuple[Rows, ...] = ()  # of either side, where they have weights and are held
    own: tuple[Floats, Floats] | None = None  # all scores of the left side and its rows at each; None: as found


def counted(compared: Sequence[Compared], sample: AuditSample, proven: Sequence[Proven]) -> Iterator[Measured]:
    """Of rows that were counted in bins."""
    for one, (gap, values, brackets) in zip(compared, proven, strict=True):
        dealt, _ = one.two_samples(one.sides)
        found = _split_at(dealt, gap, whole=not sample.weighted)
        yield Measured(found, dealt, gap, values, brackets)


def held(compared: Sequence[Compared], sample: AuditSample, metrics: Sequence[str]) -> Iterator[Measured]:
    """Of rows in memory; what is the same for many groups, each against the rest, is counted once."""
    for _, some in groupby(compared, lambda one: (id(one.part), one.place)):
        several = list(some)
        part, place = several[0].part, several[0].place
        many = len(several) > MOST_PAIRED and several[0].right is None and not sample.weighted
        if many and all(map(is_known, metrics)):
            members = members_of(sample.problem, part.units, place)
            everyone = Everyone(part.scores, members.units, members.codes)
            for one in several:
                dealt, own, gap, values = everyone.against_rest(one.left, metrics)
                yield Measured(_split_at(dealt, gap, whole=True), dealt, gap, values, own=own)
            continue
        for one in several:
            found, rows = one.two_samples(one.sides)
            values = {name: float(value) for name, value in distances_of(*found, metrics).items()}
            yield Measured(found, found, largest_gap(found), values, rows=rows)


def _split_at(found: TwoSamples, gap: LargestGap, *, whole: bool) -> TwoSamples:
    """The same with the bin that holds the largest gap cut in two there, where shares are exact."""
    at = int(np.searchsorted(found.values, gap.score))
    if at == len(found.values) or found.values[at] == gap.score:
        return found
    halves = []
    for side, share in zip(found[1:], gap.shares, strict=True):
        first = np.clip(share * side.sum() - side[:at].sum(), 0.0, side[at])
        first = np.rint(first) if whole else first
        halves.append(np.concatenate([side[:at], [first, side[at] - first], side[at + 1 :]]))
    used = (halves[0] > 0) | (halves[1] > 0)
    return TwoSamples(np.insert(found.values, at, gap.score)[used], halves[0][used], halves[1][used])
