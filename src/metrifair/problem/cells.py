"""What flows through metrifair: samples in cells, the comparisons between these, and how a criterion makes both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.errors import DataError
from metrifair.problem.criteria import EVERYONE, Booleans, Conditions, Criterion, Integers, Strata, sets_of, stratum_of
from metrifair.problem.values import number_name
from metrifair.support.checks import check_known

Contrast: TypeAlias = Literal["pairs", "rest", "independence"]
CONTRASTS: tuple[Contrast, ...] = ("pairs", "rest", "independence")
Combine: TypeAlias = Literal["mean", "sum"]

REST = "the rest"
"""The name of all groups but one."""

_LARGEST_TABLE = 2_000_000


@dataclass(frozen=True, eq=False)
class Samples:
    """Observations: a data set, a split, a batch or a single one alike.

    >>> some = Samples(torch.zeros(3, 2), torch.ones(3), torch.tensor([0, 1, 1]), torch.ones(3))
    >>> len(some), some.take(torch.tensor([2, 0])).cell
    (3, tensor([1, 0]))
    """

    x: Tensor  # (n, features)
    y: Tensor  # (n,): label codes or regression targets
    cell: Tensor  # (n,) integers: samples of one cell are told apart by no comparison
    weight: Tensor  # (n,): what the sample's loss counts in the mean
    value: Tensor | None = None  # (n, attributes): numbers, or codes of names; None: only groups are compared

    def __len__(self) -> int:
        return self.cell.shape[0]  # torch's own len takes ten times as long

    def take(self, rows: Tensor | slice) -> Samples:
        """The samples in these rows, in this order."""
        value = None if self.value is None else self.value[rows]
        return Samples(self.x[rows], self.y[rows], self.cell[rows], self.weight[rows], value)

    def with_weight(self, weight: Tensor) -> Samples:
        """The same samples with other loss weights."""
        return Samples(self.x, self.y, self.cell, weight, self.value)


def joined(parts: Sequence[Samples]) -> Samples:
    """All samples of the parts, one part after the other."""
    fields = ["x", "y", "cell", "weight"] + (["value"] if parts[0].value is not None else [])
    return Samples(*(torch.cat([getattr(part, field) for part in parts]) for field in fields))


@dataclass(frozen=True)
class Comparison:
    """Two disjoint collections of cells whose score distributions should agree.

    The other fields say, for messages and reports, what the cells stand for.

    >>> str(Comparison((0,), (1,), attribute="sex", within="y=1", groups=("f", "m")))
    "sex 'f' against 'm', y=1"
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    attribute: str = "group"
    within: str = "everyone"
    groups: tuple[str, str] = ("left", "right")
    labels: str = "everyone"  # the set of labels among which it is made; ``within`` names the control stratum too
    conditions: Conditions = ()  # what ``within`` names, as values
    values: tuple[object, ...] = ()  # of the two groups; the parts of an intersection are a tuple, the rest is None

    @property
    def sides(self) -> tuple[tuple[int, ...], ...]:
        """The cells of both sides; of a dependence, there is one."""
        return tuple(side for side in (self.left, self.right) if side or not isinstance(self, Dependence))

    def needs(self, usual: int) -> int:
        """Rows of each kind that a batch needs, where comparisons usually need so many."""
        return usual

    def __str__(self) -> str:
        return f"{self.attribute} {self.groups[0]!r} against {self.groups[1]!r}, {self.within}"


@dataclass(frozen=True)
class Dependence(Comparison):
    """A collection of cells, ``left``, in which scores should not depend on an attribute's values; nothing is right.

    The values are a column of the samples: numbers, or codes of names. ``scale`` makes an energy distance of their
    distance covariance: a constant of the first rows; None: of the rows at hand.

    >>> str(Dependence((0,), attribute="age", within="y=1"))
    'age, y=1'
    """

    right: tuple[int, ...] = ()
    groups: tuple[str, str] = ("any", "")
    column: int = 0
    levels: int = 0  # how many names there are; 0: numbers
    scale: float | None = None

    def __str__(self) -> str:
        return self.attribute if self.within == "everyone" else f"{self.attribute}, {self.within}"

    def needs(self, usual: int) -> int:
        """Four rows, where other comparisons need two."""
        return usual if usual < 2 else 2 * usual


def penalty_weights(comparisons: Sequence[Comparison], combine: Combine) -> tuple[float, ...]:
    """What each comparison counts in the penalty, where they are summed or averaged.

    The mean is over pairs of groups and control strata: a strength means the same however many of them there are. Sets
    of labels and attributes, which ask for different things, are summed.

    >>> three = [Comparison((a,), (b,), "race") for a, b in ((0, 1), (0, 2), (1, 2))]
    >>> penalty_weights([*three, Comparison((3,), (4,), "sex")], "mean")
    (0.3333333333333333, 0.3333333333333333, 0.3333333333333333, 1.0)
    """
    check_known("combine", combine, ("mean", "sum"))
    if combine == "sum":
        return (1.0,) * len(comparisons)
    averaged = Counter((one.attribute, one.labels) for one in comparisons)
    return tuple(1 / averaged[one.attribute, one.labels] for one in comparisons)


@dataclass(frozen=True, eq=False)
class Sides:
    """The rows of a batch that a comparison uses: those of its left side, then those of its right side.

    ``left`` and ``right`` are the sizes of consecutive blocks of rows that were drawn with fixed counts (one block:
    ordinary independent samples); ``weights`` give the blocks their true shares. ``fraction`` is how much of the data's
    rows of each block is here, drawn without replacement: 1 is all of them; None: they are fresh, or were drawn with
    replacement.
    """

    rows: Tensor | slice
    left: tuple[int, ...]
    right: tuple[int, ...]
    weights: Tensor | None = None  # (..., n)
    fraction: Tensor | None = None  # (..., blocks)
    dependence: Dependence | None = None  # of the rows' scores on their attribute; nothing is on the right then

    @property
    def counts(self) -> tuple[int, ...]:
        """Samples on the left and on the right; of a dependence, samples."""
        return (sum(self.left), sum(self.right)) if self.dependence is None else (sum(self.left),)


def sides_of(
    comparisons: Sequence[Comparison],
    cell: Tensor,
    weight: Tensor | None = None,
    *,
    drawn_from: Tensor | None = None,
) -> tuple[Sides, ...]:
    """The rows of each comparison among samples in these cells; ``weight`` is one number per sample.

    ``drawn_from`` are the cells of the data set that the samples were drawn from without replacement.
    """
    known = 1 + max((max(one.left + one.right) for one in comparisons), default=-1)
    own = rows_by_cell(cell, known)  # sorted once, however many comparisons there are

    def rows(side: tuple[int, ...]) -> Tensor:
        return own[side[0]] if len(side) == 1 else torch.cat([own[one] for one in side]).sort().values

    found = [
        dependence_at(one, rows(one.left), weight)
        if isinstance(one, Dependence)
        else sides_at(rows(one.left), rows(one.right), weight)
        for one in comparisons
    ]
    if drawn_from is None:
        return tuple(found)
    sizes = torch.bincount(drawn_from, minlength=known)
    everyone = [torch.stack([sizes[list(side)].sum() for side in one.sides]) for one in comparisons]
    return tuple(
        replace(side, fraction=torch.tensor(side.counts, device=cell.device) / total.double())
        for side, total in zip(found, everyone, strict=True)
    )


def sides_at(left: Tensor, right: Tensor, weight: Tensor | None = None) -> Sides:
    """The sides whose rows are these; ``weight`` is one number per sample."""
    both = torch.cat([left, right])
    return Sides(both, (len(left),), (len(right),), None if weight is None else weight[both])


def dependence_at(dependence: Dependence, rows: Tensor, weight: Tensor | None = None) -> Sides:
    """The rows among which scores should not depend on the attribute."""
    return Sides(rows, (len(rows),), (), None if weight is None else weight[rows], dependence=dependence)


def rows_by_cell(cell: Tensor, cells: int) -> list[Tensor]:
    """For each cell the rows of its samples."""
    order = cell.argsort(stable=True)
    return list(order.split(torch.bincount(cell, minlength=cells).tolist()))


@dataclass(frozen=True, eq=False)
class Batch:
    """Samples for one step, and for each comparison the rows that it may use."""

    samples: Samples
    sides: tuple[Sides, ...]  # one for each comparison


class Attribute(NamedTuple):
    """A protected attribute and its groups, in the order of their codes; a number has none, and code 0 if known.

    With ``cuts`` groups are the bands of a number between them: whoever is up to a cut is compared with all above it.
    An intersection of several columns has a tuple of their values for each group, where rows showed them.
    """

    name: str
    groups: tuple[object, ...]
    is_number: bool = False
    cuts: tuple[float, ...] = ()
    columns: tuple[str, ...] = ()
    parts: tuple[tuple[object, ...], ...] = ()

    @property
    def codes(self) -> int:
        """How many there are."""
        return 1 if self.is_number else len(self.groups)

    @property
    def values(self) -> tuple[object, ...]:
        """What each group stands for: of an intersection, the tuple of its parts."""
        return self.parts or self.groups


@dataclass(frozen=True, eq=False)
class Cells:
    """A criterion compiled with attributes and strata: who is in which cell, and which cells are compared.

    >>> from metrifair.problem.criteria import EQUAL_OPPORTUNITY
    >>> cells = compiled(EQUAL_OPPORTUNITY, [Attribute("sex", ("f", "m"))], classes=("no", "yes"))
    >>> [str(comparison) for comparison in cells.comparisons]
    ["sex 'f' against 'm', y=yes"]
    >>> cells.of(np.array([[0], [1], [0], [-1]]), labels=np.array([1, 1, 0, 1]))      # -1: group unknown
    array([0, 1, 2, 2])
    """

    criterion: Criterion
    table: Integers  # (label patterns, strata + 1, groups + 1, ...) -> cell; index -1 is "unknown"
    comparisons: tuple[Comparison, ...]
    has_strata: bool = False

    @property
    def count(self) -> int:
        """How many cells there are."""
        return int(self.table.max()) + 1

    def of(self, groups: Integers, *, labels: NDArray[Any] | None = None, strata: Integers | None = None) -> Integers:
        """The cell of each sample, from its group codes (n, attributes), label code (or target) and stratum."""
        pattern = np.zeros(len(groups), dtype=np.int64)
        if self.criterion.needs_labels:
            if labels is None:
                raise DataError(f"{self.criterion.name} compares groups within labels; pass the true labels")
            pattern = _label_pattern(self.criterion, labels)
        if strata is None and self.has_strata:
            raise DataError(f"{self.criterion.name} was compiled with strata; pass the stratum of each sample")
        stratum = np.zeros(len(groups), dtype=np.int64) if strata is None else strata
        cell: Integers = self.table[pattern, stratum, *groups.T]
        return cell


def _label_pattern(criterion: Criterion, labels: NDArray[Any]) -> Integers:
    are_codes = criterion.sets is None and criterion.bins is None
    missing = int((labels < 0).sum() if are_codes else np.isnan(labels).sum())
    if missing:
        raise DataError(f"{missing} of {len(labels)} labels are missing; leave those samples out")
    if criterion.sets is not None:
        membership = np.asarray(criterion.sets(labels))
        expected = (len(labels), len(criterion.set_names))
        if membership.dtype != np.bool_ or membership.shape != expected:
            raise DataError(
                f"the sets of {criterion.name} must be booleans of shape {expected}, one column for each of its "
                f"set_names, got {membership.dtype} of shape {membership.shape}"
            )
        return stratum_of(membership)
    if criterion.bins is not None:
        return np.searchsorted(np.asarray(criterion.bins), labels, side="right").astype(np.int64)
    return labels.astype(np.int64)


def compiled(
    criterion: Criterion,
    attributes: Sequence[Attribute],
    *,
    classes: Sequence[object] = (),
    positive: int = 1,
    strata: Strata | None = None,
    contrast: Contrast = "pairs",
) -> Cells:
    """Cells and comparisons of every attribute x set x stratum x pair of groups (or group against the rest)."""
    check_known("contrast", contrast, CONTRASTS)
    _check(criterion, attributes, len(classes), strata)
    sets, within = sets_of(criterion, classes, positive), strata or EVERYONE
    member = np.einsum("ij,kl->ikjl", sets.member, np.vstack([within.member, np.zeros_like(within.member[:1])]))
    member = member.reshape(*member.shape[:2], -1)  # (label patterns, strata + 1, sets)
    named = [
        (
            labels,
            ",".join(name for name in (labels, stratum) if name != "everyone") or "everyone",
            of_label + of_stratum,
        )
        for (labels, of_label), (stratum, of_stratum) in product(
            zip(sets.names, sets.conditions, strict=True), zip(within.names, within.conditions, strict=True)
        )
    ]
    shape = *member.shape[:2], *(attribute.codes + 1 for attribute in attributes)
    if np.prod(shape) * member.shape[-1] > _LARGEST_TABLE:
        raise DataError(
            f"{len(attributes)} attributes, {member.shape[-1]} sets and their groups make more than {_LARGEST_TABLE} "
            "combinations; use fewer attributes, coarser groups or fewer strata"
        )
    # Whoever's value is known is alike where scores should not depend on it: no cells by group then.
    whole = [attribute.is_number or contrast == "independence" for attribute in attributes]
    role = _roles(
        member,
        [
            np.zeros(one.codes, int) if alone else np.arange(one.codes)
            for one, alone in zip(attributes, whole, strict=True)
        ],
    )
    signatures = role.reshape(-1, role.shape[-1] * role.shape[-2])
    # Cells are numbered as they are met, the one that no comparison names last.
    _, first, inverse = np.unique(signatures, axis=0, return_index=True, return_inverse=True)
    idle = (signatures[first] < 0).all(1)
    number = np.argsort(np.lexsort((first, idle)))
    table = number[inverse.reshape(-1)].reshape(shape)
    comparisons: list[Comparison] = []
    for (a, attribute), (j, (labels, name, conditions)) in product(enumerate(attributes), enumerate(named)):
        own = np.broadcast_to(role[..., a, j], shape)
        if whole[a]:
            dependence = Dependence(
                _cells_in(table, own == 0), (), attribute.name, name, ("any", ""), labels, conditions
            )
            comparisons.append(replace(dependence, column=a, levels=len(attribute.groups)))
            continue
        comparisons += [
            Comparison(left, right, attribute.name, name, groups, labels, conditions, values)
            for left, right, groups, values in _contrasted(attribute, own, table, contrast)
        ]
    return Cells(criterion, table, tuple(comparisons), has_strata=strata is not None)


def _cells_in(table: Integers, inside: Booleans) -> tuple[int, ...]:
    return tuple(np.unique(table[inside]).tolist())


def _contrasted(
    attribute: Attribute, own: Integers, table: Integers, contrast: Contrast
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[str, str], tuple[object, object]]]:
    """The cells of both sides, their names and values: of each cut of a number, of pairs of groups, of each and the
    rest."""
    groups, values = list(map(str, attribute.groups)), attribute.values
    for place, cut in enumerate(attribute.cuts):
        below, above = _cells_in(table, (own >= 0) & (own <= place)), _cells_in(table, own > place)
        names = f"≤{number_name(cut)}", f">{number_name(cut)}"
        yield below, above, names, names
    if attribute.cuts:
        return
    of_group = [_cells_in(table, own == code) for code in range(len(groups))]
    if contrast == "pairs" or len(groups) == 2:
        for g, h in combinations(range(len(groups)), 2):
            yield of_group[g], of_group[h], (groups[g], groups[h]), (values[g], values[h])
    else:
        for g, group in enumerate(groups):
            yield of_group[g], _cells_in(table, (own >= 0) & (own != g)), (group, REST), (values[g], None)


def _check(criterion: Criterion, attributes: Sequence[Attribute], classes: int, strata: Strata | None) -> None:
    if criterion.strata and strata is None:
        raise DataError(f"{criterion.name} needs control_features; pass a column or a boolean mask")
    if criterion.labels is not None and criterion.bins is None and classes < 2:
        raise DataError(
            f"{criterion.name} compares groups within labels, and there are {classes} classes; for a regression "
            "target cut it with bins, as in dataclasses.replace(EQUALIZED_ODDS, bins=(...))"
        )
    if criterion.bins is not None and (not criterion.bins or any(a >= b for a, b in pairwise(criterion.bins))):
        raise DataError(f"the bins of {criterion.name} must be ascending numbers, got {criterion.bins}")
    for attribute in attributes:
        if len(attribute.groups) < 2 and not attribute.is_number:
            raise DataError(
                f"{attribute.name} has {len(attribute.groups)} group(s): {list(attribute.groups)}; fairness between "
                "groups needs at least two"
            )


def _roles(member: Booleans, own: Sequence[Integers]) -> Integers:
    """The role of each group code in each set, -1 outside it: (label patterns, strata + 1, groups + 1, ..., attributes,
    sets)."""
    axes = len(own)
    inside = member.reshape(*member.shape[:2], *[1] * axes, member.shape[2])
    roles = []
    for a, role in enumerate(own):
        code = np.append(role, -1).reshape([1, 1] + [len(role) + 1 if b == a else 1 for b in range(axes)] + [1])
        roles.append(np.where(inside, code, -1))
    shape = np.broadcast_shapes(*(role.shape for role in roles))
    return np.stack([np.broadcast_to(role, shape) for role in roles], axis=-2)
