"""Cells of samples, the comparisons between them, and how a criterion compiles to both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations as pairs_of
from itertools import pairwise, product
from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError
from metrifair.problem.criteria import (
    EVERYONE,
    LABEL,
    Criterion,
    SetConditions,
    Strata,
    label_sets,
    membership_codes,
)
from metrifair.problem.values import number_name
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.checks import check_known, rows_or_none

Contrast: TypeAlias = Literal["pairs", "rest"]
CONTRASTS: tuple[Contrast, ...] = ("pairs", "rest")
Combine: TypeAlias = Literal["mean", "sum"]

THE_REST = "the rest"
"""The name of all groups but one."""

_LARGEST_TABLE = 2_000_000
"""Entries in a table of all combinations of groups; beyond it, only the combinations that occur
in rows have cells.
"""


@dataclass(frozen=True)
class Comparison:
    """Two disjoint collections of cells whose score distributions should agree.

    The other fields describe the cells, for messages and reports.

    >>> str(Comparison((0,), (1,), attribute="sex", within="label=1", groups=("f", "m")))
    "sex 'f' against 'm', label=1"
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    attribute: str = "group"
    within: str = "everyone"
    groups: tuple[str, str] = ("left", "right")
    # the set of labels among which it is made; ``within`` names the control stratum too
    labels: str = "everyone"
    conditions: SetConditions = ()  # what ``within`` names, as values
    # of the two groups; the parts of an intersection are a tuple, the rest is None
    values: tuple[object, ...] = ()

    @property
    def sides(self) -> tuple[tuple[int, ...], ...]:
        """The cells of both sides; of a dependence, there is one."""
        return tuple(
            side for side in (self.left, self.right) if side or not isinstance(self, Dependence)
        )

    def needs(self, usual: int) -> int:
        """Rows of each kind that a batch needs, where comparisons usually need so many."""
        return usual

    def __str__(self) -> str:
        return f"{self.attribute} {self.groups[0]!r} against {self.groups[1]!r}, {self.within}"


@dataclass(frozen=True)
class Dependence(Comparison):
    """A collection of cells, ``left``, in which scores should not depend on a numeric attribute;
    nothing is right.

    The numbers are a column of the samples. ``scale`` makes an energy distance of their distance
    covariance: a constant of the first rows; None: of the rows at hand.

    >>> str(Dependence((0,), attribute="age", within="label=1"))
    'age, label=1'
    """

    right: tuple[int, ...] = ()
    groups: tuple[str, str] = ("any", "")
    column: int = 0
    scale: float | None = None

    def __str__(self) -> str:
        if self.within == "everyone":
            return self.attribute
        return f"{self.attribute}, {self.within}"

    def needs(self, usual: int) -> int:
        """Four rows, where other comparisons need two."""
        if usual < 2:
            return usual
        return 2 * usual


def penalty_weights(comparisons: Sequence[Comparison], combine: Combine) -> tuple[float, ...]:
    """The weight of each comparison in the penalty, whether they are summed or averaged.

    The mean is over pairs of groups and control strata: a strength means the same however many of
    them there are. Sets of labels and attributes, which measure different things, are summed.

    >>> three = [Comparison((a,), (b,), "race") for a, b in ((0, 1), (0, 2), (1, 2))]
    >>> penalty_weights([*three, Comparison((3,), (4,), "sex")], "mean")
    (0.3333333333333333, 0.3333333333333333, 0.3333333333333333, 1.0)
    """
    check_known("combine", combine, ("mean", "sum"))
    if combine == "sum":
        return (1.0,) * len(comparisons)
    averaged = Counter((comparison.attribute, comparison.labels) for comparison in comparisons)
    return tuple(
        1 / averaged[comparison.attribute, comparison.labels] for comparison in comparisons
    )


def check_dependences(comparisons: Sequence[Comparison], metric: object) -> None:
    """Raise a DataError if a comparison is a dependence on an attribute, and the metric cannot
    measure that.
    """
    dependent = next(
        (comparison for comparison in comparisons if isinstance(comparison, Dependence)), None
    )
    if dependent is not None and metric != "energy":
        name = getattr(metric, "__name__", "a function") if callable(metric) else repr(metric)
        raise DataError(
            f"how much scores depend on {dependent.attribute} is measured by metric='energy' only, "
            f"got {name}; cut "
            "numbers into groups for other metrics, and use contrast='pairs'"
        )


@dataclass(frozen=True, eq=False)
class Sides:
    """The rows of a batch that a comparison uses: those of its left side, then those of its right
    side.

    Its arrays are NumPy's, or tensors if the batch has tensors.

    ``left`` and ``right`` are the sizes of consecutive blocks of rows that were drawn with fixed
    counts (one block: ordinary independent samples); ``weights`` give the blocks their true shares.
    ``fraction`` is the share of the data's rows of each block that was drawn without replacement: 1
    is all of them; None: they are fresh, or were drawn with replacement. Where groups have
    probabilities, a row may be on both sides.
    """

    rows: Any  # array or slice
    left: tuple[int, ...]
    right: tuple[int, ...]
    weights: Any = None  # (..., n)
    fraction: Any = None  # (..., blocks)
    # of the rows' scores on their attribute; nothing is on the right then
    dependence: Dependence | None = None

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Samples on the left and on the right; of a dependence, samples."""
        if self.dependence is not None:
            return (sum(self.left),)
        return sum(self.left), sum(self.right)

    def for_coordinates(self) -> Sides:
        """The same rows of scores (..., coordinates, n): weights get an axis for the
        coordinates.
        """
        weights, fraction = (
            part if part is None else part[..., None, :] for part in (self.weights, self.fraction)
        )
        return replace(self, weights=weights, fraction=fraction)


def rows_by_cell(cell: Integers, cells: int) -> list[Integers]:
    """For each cell the rows of its samples.

    >>> rows_by_cell(np.array([1, 0, 1]), 3)
    [array([1]), array([0, 2]), array([], dtype=int64)]
    """
    counts = np.bincount(cell, minlength=cells)
    # which NumPy sorts by their digits
    short = cell
    if len(counts) < 2**16:
        short = cell.astype(np.uint16)
    return np.split(np.argsort(short, kind="stable"), np.cumsum(counts)[:-1])


def make_sides(
    comparisons: Sequence[Comparison],
    cell: Integers,
    weight: Floats | None = None,
    *,
    drawn_from: Integers | None = None,
) -> tuple[Sides, ...]:
    """The rows of each comparison among samples in these cells; ``weight`` is one number per
    sample.

    ``drawn_from`` are the cells of the data set that the samples were drawn from without
    replacement.

    >>> make_sides([Comparison((0,), (1, 2))], np.array([2, 0, 1]))[0].rows
    array([1, 0, 2])
    """
    # pairs share their sides
    distinct = {id(side): side for comparison in comparisons for side in comparison.sides}
    cells = 1 + max((max(side) for side in distinct.values()), default=-1)
    by_cell = rows_by_cell(cell, cells)  # sorted once, however many comparisons there are
    sizes = None
    if drawn_from is not None:
        sizes = np.bincount(drawn_from, minlength=cells)
    rows_of = {}
    for key, side in distinct.items():
        rows_of[key] = by_cell[side[0]]
        if len(side) > 1:
            rows_of[key] = np.sort(np.concatenate([by_cell[place] for place in side]))
    sides = []
    for comparison in comparisons:
        blocks = [rows_of[id(side)] for side in comparison.sides]
        rows = np.concatenate(blocks)
        left, right = [(len(block),) for block in blocks] if len(blocks) > 1 else [(len(rows),), ()]
        fraction = None
        if sizes is not None:
            total = np.array([sizes[list(side)].sum() for side in comparison.sides])
            with np.errstate(invalid="ignore"):  # a side without rows
                fraction = np.array([len(block) for block in blocks]) / total
        weights = rows_or_none(weight, rows)
        dependence = None
        if isinstance(comparison, Dependence):
            dependence = comparison
        sides.append(Sides(rows, left, right, weights, fraction, dependence))
    return tuple(sides)


class Attribute(NamedTuple):
    """A protected attribute and its groups, in the order of their codes; a number has none, and
    code 0 if known.

    With ``cuts``, groups are the bands of a number between them: rows up to a cut are compared with
    all rows above it. An intersection of several columns has a tuple of their values for each
    group, where rows showed them.
    """

    name: str
    groups: tuple[object, ...]
    is_number: bool = False
    cuts: tuple[float, ...] = ()
    columns: tuple[str, ...] = ()
    parts: tuple[tuple[object, ...], ...] = ()

    @property
    def codes(self) -> int:
        """Number of codes."""
        if self.is_number:
            return 1
        return len(self.groups)

    @property
    def values(self) -> tuple[object, ...]:
        """The value of each group: of an intersection, the tuple of its parts."""
        return self.parts or self.groups


@dataclass(frozen=True, eq=False)
class Cells:
    """A criterion compiled with attributes and strata: the cell of each row, and the cells that are
    compared.

    >>> from metrifair.problem.criteria import EQUAL_OPPORTUNITY
    >>> cells = compile_cells(EQUAL_OPPORTUNITY, [Attribute("sex", ("f", "m"))], classes=("no",
    ...     "yes"))
    >>> [str(comparison) for comparison in cells.comparisons]
    ["sex 'f' against 'm', label=yes"]
    >>> # -1: group unknown
    >>> cells.of(np.array([[0], [1], [0], [-1]]), labels=np.array([1, 1, 0, 1]))
    array([0, 1, 2, 2])
    """

    criterion: Criterion
    # (label patterns, strata + 1, groups + 1, ...) -> cell; index -1 is "unknown". With
    # combinations: (label patterns, strata + 1, combinations)
    table: Integers
    comparisons: tuple[Comparison, ...]
    has_strata: bool = False
    # (combinations, attributes): distinct group codes of rows; None: all
    combinations: Integers | None = None

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(self.table.max()) + 1

    def of(
        self,
        groups: Integers,
        *,
        labels: NDArray[Any] | None = None,
        strata: Integers | None = None,
    ) -> Integers:
        """The cell of each sample, from its group codes (n, attributes), label code (or target)
        and stratum.
        """
        pattern = np.zeros(len(groups), dtype=np.int64)
        if self.criterion.needs_labels:
            if labels is None:
                raise DataError(
                    f"{self.criterion.name} compares groups within labels; pass the true labels"
                )
            pattern = _label_pattern(self.criterion, labels)
        if strata is None and self.has_strata:
            raise DataError(
                f"{self.criterion.name} was compiled with strata; pass the stratum of each sample"
            )
        stratum = strata
        if strata is None:
            stratum = np.zeros(len(groups), dtype=np.int64)
        if self.combinations is None:
            return np.asarray(self.table[pattern, stratum, *groups.T])
        return np.asarray(self.table[pattern, stratum, _combination(groups, self.combinations)])


def _combination(groups: Integers, combinations: Integers) -> Integers:
    """The place of the group codes of each row among distinct combinations; a DataError if one is
    not there.

    >>> _combination(np.array([[1, 0], [-1, 2]]), np.array([[-1, 2], [0, 0], [1, 0]]))
    array([2, 0])
    """
    distinct, place = np.unique(np.concatenate([combinations, groups]), axis=0, return_inverse=True)
    if len(distinct) > len(combinations):
        raise DataError(
            "the groups of these rows make combinations that the first rows did not have; use "
            "fewer attributes, or "
            "coarser groups"
        )
    place = place.reshape(-1)
    order = np.empty(len(combinations), dtype=np.int64)
    order[place[: len(combinations)]] = np.arange(len(combinations))
    return np.asarray(order[place[len(combinations) :]])


def needs_combinations(attributes: Sequence[Attribute]) -> bool:
    """Whether the attributes have too many combinations of groups for a cell of each.

    >>> needs_combinations([Attribute("a", tuple(range(40)))] * 3)
    False
    >>> needs_combinations([Attribute("a", tuple(range(40)))] * 4)
    True
    """
    return prod(attribute.codes + 1 for attribute in attributes) > _LARGEST_TABLE


def _label_pattern(criterion: Criterion, labels: NDArray[Any]) -> Integers:
    are_codes = criterion.sets is None and criterion.bins is None
    missing = int((labels < 0).sum() if are_codes else np.isnan(labels).sum())
    if missing:
        raise DataError(
            f"labels are missing in {missing} of {len(labels)} samples; leave those samples out"
        )
    if criterion.sets is not None:
        membership = np.asarray(criterion.sets(labels))
        expected = (len(labels), len(criterion.set_names))
        if membership.dtype != np.bool_ or membership.shape != expected:
            raise DataError(
                f"the sets of {criterion.name} must be booleans of shape {expected}, one column "
                "for each of its "
                f"set_names, got {membership.dtype} of shape {membership.shape}"
            )
        return membership_codes(membership)
    if criterion.bins is not None:
        return np.searchsorted(np.asarray(criterion.bins), labels, side="right").astype(np.int64)
    return labels.astype(np.int64)


def compile_cells(
    criterion: Criterion,
    attributes: Sequence[Attribute],
    *,
    classes: Sequence[object] = (),
    positive: int = 1,
    strata: Strata | None = None,
    contrast: Contrast = "pairs",
    outcome: str = LABEL,
    combinations: Integers | None = None,
) -> Cells:
    """Cells and comparisons of every attribute x set x stratum x pair of groups (or group against
    the rest).

    ``combinations`` are the distinct group codes of the rows, (combinations, attributes); None: all
    that are possible.
    """
    check_known("contrast", contrast, CONTRASTS)
    _check(criterion, attributes, len(classes), strata)
    sets = label_sets(criterion, classes, positive, outcome)
    within = strata or EVERYONE
    member = np.einsum(
        "ij,kl->ikjl", sets.member, np.vstack([within.member, np.zeros_like(within.member[:1])])
    )
    member = member.reshape(*member.shape[:2], -1)  # (label patterns, strata + 1, sets)
    if combinations is None:
        groups = [attribute.codes + 1 for attribute in attributes]
    else:
        groups = [len(combinations)]
    shape = *member.shape[:2], *groups
    if prod(shape) * member.shape[-1] > _LARGEST_TABLE:
        raise DataError(
            f"the attributes, the sets and their groups make more than {_LARGEST_TABLE:,} "
            "combinations (attributes: "
            f"{len(attributes)}, sets: {member.shape[-1]}); use fewer attributes, coarser groups "
            "or fewer strata"
        )
    # Scores should not depend on a number: rows of all its known values share their cells.
    code_roles = [
        np.arange(attribute.codes) * (not attribute.is_number) for attribute in attributes
    ]
    if combinations is None:
        roles = _roles(member, code_roles)
    else:
        roles = _roles_of(combinations, member, code_roles)
    table = _cell_table(roles, shape)
    comparisons: list[Comparison] = []
    for (a, attribute), (j, names) in product(
        enumerate(attributes), enumerate(_named_sets(sets, within))
    ):
        (labels, name, conditions) = names
        role = np.broadcast_to(roles[..., a, j], shape)
        if attribute.is_number:
            cells = _cells_in(table, role == 0)
            dependence = Dependence(
                cells, (), attribute.name, name, ("any", ""), labels, conditions
            )
            comparisons.append(replace(dependence, column=a))
            continue
        comparisons += [
            Comparison(left, right, attribute.name, name, groups, labels, conditions, values)
            for left, right, groups, values in _contrasts(attribute, role, table, contrast)
        ]
    return Cells(
        criterion,
        table,
        tuple(comparisons),
        has_strata=strata is not None,
        combinations=combinations,
    )


def _named_sets(sets: Strata, within: Strata) -> Iterator[tuple[str, str, SetConditions]]:
    """The labels, the name and the conditions of each set within each stratum."""
    strata = list(zip(within.names, within.conditions, strict=True))
    for labels, of_labels in zip(sets.names, sets.conditions, strict=True):
        for stratum, of_stratum in strata:
            name = ",".join(part for part in (labels, stratum) if part != "everyone") or "everyone"
            yield labels, name, of_labels + of_stratum


def _cell_table(roles: Integers, shape: tuple[int, ...]) -> Integers:
    """The cell of each combination of codes, numbered by first occurrence; a cell without
    comparisons is the last.
    """
    signatures = roles.reshape(-1, roles.shape[-1] * roles.shape[-2])
    _, first, inverse = np.unique(signatures, axis=0, return_index=True, return_inverse=True)
    idle = (signatures[first] < 0).all(1)
    number = np.argsort(np.lexsort((first, idle)))
    return np.asarray(number[inverse.reshape(-1)].reshape(shape))


def _cells_in(table: Integers, inside: Booleans) -> tuple[int, ...]:
    return tuple(np.unique(table[inside]).tolist())


def _contrasts(
    attribute: Attribute, role: Integers, table: Integers, contrast: Contrast
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[str, str], tuple[object, object]]]:
    """The cells of both sides, their names and values: of each cut, pair of groups, or group
    and the rest.
    """
    groups = list(map(str, attribute.groups))
    values = attribute.values
    for place, cut in enumerate(attribute.cuts):
        below = _cells_in(table, (role >= 0) & (role <= place))
        above = _cells_in(table, role > place)
        names = f"≤{number_name(cut)}", f">{number_name(cut)}"
        yield below, above, names, names
    if attribute.cuts:
        return
    of_group = [_cells_in(table, role == code) for code in range(len(groups))]
    if contrast == "pairs" or len(groups) == 2:
        for g, h in pairs_of(range(len(groups)), 2):
            yield of_group[g], of_group[h], (groups[g], groups[h]), (values[g], values[h])
    else:
        for g, group in enumerate(groups):
            yield (
                of_group[g],
                _cells_in(table, (role >= 0) & (role != g)),
                (group, THE_REST),
                (values[g], None),
            )


def _check(
    criterion: Criterion, attributes: Sequence[Attribute], classes: int, strata: Strata | None
) -> None:
    if criterion.strata and strata is None:
        raise DataError(f"{criterion.name} needs control_features; pass the stratum of each row")
    if criterion.labels is not None and criterion.bins is None and classes < 2:
        raise DataError(
            f"{criterion.name} compares groups within labels, and there are {classes} classes; for "
            "a regression "
            "target cut it with bins, as in dataclasses.replace(EQUALIZED_ODDS, bins=(...))"
        )
    if criterion.bins is not None and (
        not criterion.bins or any(a >= b for a, b in pairwise(criterion.bins))
    ):
        raise DataError(
            f"the bins of {criterion.name} must be ascending numbers, got {criterion.bins}"
        )
    for attribute in attributes:
        if len(attribute.groups) < 2 and not attribute.is_number:
            raise DataError(
                f"{attribute.name} has {len(attribute.groups)} group(s): {list(attribute.groups)}; "
                "fairness between "
                "groups needs at least two"
            )


def _roles(member: Booleans, code_roles: Sequence[Integers]) -> Integers:
    """The role of each group code in each set, -1 outside it: (label patterns, strata + 1, groups +
    1, ..., attributes, sets).
    """
    axes = len(code_roles)
    inside = member.reshape(*member.shape[:2], *[1] * axes, member.shape[2])
    roles = []
    for a, role in enumerate(code_roles):
        code = np.append(role, -1).reshape(
            [1, 1] + [len(role) + 1 if b == a else 1 for b in range(axes)] + [1]
        )
        roles.append(np.where(inside, code, -1))
    shape = np.broadcast_shapes(*(role.shape for role in roles))
    return np.stack([np.broadcast_to(role, shape) for role in roles], axis=-2)


def _roles_of(combinations: Integers, member: Booleans, code_roles: Sequence[Integers]) -> Integers:
    """The same roles of combinations of group codes: (label patterns, strata + 1, combinations,
    attributes, sets).
    """
    roles = [
        np.append(role, -1)[codes] for role, codes in zip(code_roles, combinations.T, strict=True)
    ]
    code = np.stack(roles, axis=-1)  # (combinations, attributes)
    inside = member[:, :, None, None, :]
    return np.where(inside, code[None, None, :, :, None], -1)
