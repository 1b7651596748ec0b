"""What flows through metrifair: samples in cells, the comparisons between these, and how a criterion makes both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.checks import check_known
from metrifair.errors import DataError
from metrifair.problem.criteria import Criterion

Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]
Contrast: TypeAlias = Literal["pairs", "rest"]
Combine: TypeAlias = Literal["mean", "sum"]

_LARGEST_TABLE = 2_000_000
_MOST_OVERLAPPING_SETS = 12


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

    def __len__(self) -> int:
        return len(self.cell)

    def take(self, rows: Tensor | slice) -> Samples:
        """The samples in these rows, in this order."""
        return Samples(self.x[rows], self.y[rows], self.cell[rows], self.weight[rows])

    def with_weight(self, weight: Tensor) -> Samples:
        """The same samples with other loss weights."""
        return Samples(self.x, self.y, self.cell, weight)


def joined(parts: Sequence[Samples]) -> Samples:
    """All samples of the parts, one part after the other."""
    fields = ("x", "y", "cell", "weight")
    return Samples(*(torch.cat([getattr(part, field) for part in parts]) for field in fields))


@dataclass(frozen=True)
class Comparison:
    """Two disjoint collections of cells whose score distributions should agree.

    The other fields say, for messages and reports, what the cells stand for.

    >>> str(Comparison((0,), (1,), attribute="sex", within="y = 1", groups=("f", "m")))
    "sex 'f' against 'm', y = 1"
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    attribute: str = "group"
    within: str = "everyone"
    groups: tuple[str, str] = ("left", "right")
    labels: str = "everyone"  # the set of labels among which it is made; ``within`` names the control stratum too

    def __str__(self) -> str:
        return f"{self.attribute} {self.groups[0]!r} against {self.groups[1]!r}, {self.within}"


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

    @property
    def counts(self) -> tuple[int, int]:
        """Samples on the left and on the right."""
        return sum(self.left), sum(self.right)


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

    found = [sides_at(rows(one.left), rows(one.right), weight) for one in comparisons]
    if drawn_from is None:
        return tuple(found)
    sizes = torch.bincount(drawn_from, minlength=known)
    everyone = [torch.stack([sizes[list(side)].sum() for side in (one.left, one.right)]) for one in comparisons]
    return tuple(
        replace(side, fraction=torch.tensor(side.counts, device=cell.device) / total.double())
        for side, total in zip(found, everyone, strict=True)
    )


def sides_at(left: Tensor, right: Tensor, weight: Tensor | None = None) -> Sides:
    """The sides whose rows are these; ``weight`` is one number per sample."""
    both = torch.cat([left, right])
    return Sides(both, (len(left),), (len(right),), None if weight is None else weight[both])


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
    """A protected attribute and its groups, in the order of their codes."""

    name: str
    groups: tuple[object, ...]


class Strata(NamedTuple):
    """Sets given by the user: which ones each stratum belongs to. Stratum -1 belongs to none."""

    member: Booleans  # (strata, sets)
    names: tuple[str, ...]
    values: tuple[object, ...] | None = None  # what a sample of each stratum shows; None: its membership of the sets


def separate_strata(names: Sequence[str], values: Sequence[object] | None = None) -> Strata:
    """Strata that are themselves the sets."""
    return Strata(np.eye(len(names), dtype=np.bool_), tuple(names), None if values is None else tuple(values))


def overlapping_strata(names: Sequence[str]) -> Strata:
    """Every combination of sets that may overlap; stratum numbers are ``stratum_of`` their membership."""
    if len(names) > _MOST_OVERLAPPING_SETS:
        raise DataError(f"at most {_MOST_OVERLAPPING_SETS} overlapping sets can be told apart, got {len(names)}")
    patterns = np.arange(2 ** len(names))[:, None] >> np.arange(len(names))
    return Strata((patterns & 1).astype(np.bool_), tuple(names))


def stratum_of(membership: Booleans) -> Integers:
    """The number of the combination of overlapping sets that each row (n, sets) belongs to."""
    code: Integers = membership.astype(np.int64) @ (2 ** np.arange(membership.shape[1]))
    return code


EVERYONE = separate_strata(["everyone"])


def _sets(criterion: Criterion, classes: Sequence[object], positive: int) -> Strata:
    if criterion.sets is not None:
        return overlapping_strata(criterion.set_names)
    if criterion.labels is None:
        return EVERYONE
    if criterion.bins is not None:
        cuts = criterion.bins
        middle = [f"{low} <= y < {high}" for low, high in pairwise(cuts)]
        every = separate_strata([f"y < {cuts[0]}", *middle, f"y >= {cuts[-1]}"])
    else:
        every = separate_strata([f"y = {label}" for label in classes])
    if criterion.labels == "every":
        return every
    if criterion.bins is not None:
        positive = len(criterion.bins)  # the highest values
    chosen = np.arange(len(every.names)) == positive
    if criterion.labels == "positive":
        return Strata(chosen[:, None], (every.names[positive],))
    name = every.names[1 - positive] if len(every.names) == 2 else f"not {every.names[positive]}"
    return Strata(~chosen[:, None], (name,))


@dataclass(frozen=True, eq=False)
class Cells:
    """A criterion compiled with attributes and strata: who is in which cell, and which cells are compared.

    >>> from metrifair.problem.criteria import EQUAL_OPPORTUNITY
    >>> cells = compiled(EQUAL_OPPORTUNITY, [Attribute("sex", ("f", "m"))], classes=("no", "yes"))
    >>> [str(comparison) for comparison in cells.comparisons]
    ["sex 'f' against 'm', y = yes"]
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
    _check(criterion, attributes, classes, strata, contrast)
    sets, within = _sets(criterion, classes, positive), strata or EVERYONE
    member = np.einsum("ij,kl->ikjl", sets.member, np.vstack([within.member, np.zeros_like(within.member[:1])]))
    member = member.reshape(*member.shape[:2], -1)  # (label patterns, strata + 1, sets)
    named = [
        (labels, [one for one in (labels, name) if one != "everyone"])
        for labels, name in product(sets.names, within.names)
    ]
    names = [(labels, " and ".join(parts) or "everyone") for labels, parts in named]
    shape = *member.shape[:2], *(len(attribute.groups) + 1 for attribute in attributes)
    if np.prod(shape) * member.shape[-1] > _LARGEST_TABLE:
        raise DataError(
            f"{len(attributes)} attributes, {member.shape[-1]} sets and their groups make more than {_LARGEST_TABLE} "
            "combinations; use fewer attributes, coarser groups or fewer strata"
        )
    role = _roles(member, [len(attribute.groups) for attribute in attributes])
    signatures = role.reshape(-1, role.shape[-1] * role.shape[-2])
    # Cells are numbered as they are met, the one that no comparison names last.
    _, first, inverse = np.unique(signatures, axis=0, return_index=True, return_inverse=True)
    idle = (signatures[first] < 0).all(1)
    number = np.argsort(np.lexsort((first, idle)))
    table = number[inverse.reshape(-1)].reshape(shape)
    comparisons = []
    for (a, attribute), (j, (labels, within_set)) in product(enumerate(attributes), enumerate(names)):
        own, groups = np.broadcast_to(role[..., a, j], shape), list(map(str, attribute.groups))
        of_group = [tuple(np.unique(table[own == code]).tolist()) for code in range(len(groups))]
        if contrast == "pairs" or len(groups) == 2:
            opponents = [(g, of_group[h], groups[h]) for g, h in combinations(range(len(groups)), 2)]
        else:
            opponents = [
                (g, tuple(np.unique(table[(own >= 0) & (own != g)]).tolist()), "the rest") for g in range(len(groups))
            ]
        comparisons += [
            Comparison(of_group[g], cells, attribute.name, within_set, (groups[g], name), labels)
            for g, cells, name in opponents
        ]
    return Cells(criterion, table, tuple(comparisons), has_strata=strata is not None)


def _check(
    criterion: Criterion,
    attributes: Sequence[Attribute],
    classes: Sequence[object],
    strata: Strata | None,
    contrast: str,
) -> None:
    check_known("contrast", contrast, ("pairs", "rest"))
    if criterion.strata and strata is None:
        raise DataError(f"{criterion.name} needs control_features; pass a column or a boolean mask")
    if criterion.labels is not None and criterion.bins is None and len(classes) < 2:
        raise DataError(
            f"{criterion.name} compares groups within labels, and there are {len(classes)} classes; for a regression "
            "target cut it with bins, as in dataclasses.replace(EQUALIZED_ODDS, bins=(...))"
        )
    if criterion.bins is not None and (not criterion.bins or any(a >= b for a, b in pairwise(criterion.bins))):
        raise DataError(f"the bins of {criterion.name} must be ascending numbers, got {criterion.bins}")
    for attribute in attributes:
        if len(attribute.groups) < 2:
            raise DataError(
                f"{attribute.name} has {len(attribute.groups)} group(s): {list(attribute.groups)}; fairness between "
                "groups needs at least two"
            )


def _roles(member: Booleans, groups: Sequence[int]) -> Integers:
    """Group code in each set, -1 outside it: (label patterns, strata + 1, groups + 1, ..., attributes, sets)."""
    axes = len(groups)
    inside = member.reshape(*member.shape[:2], *[1] * axes, member.shape[2])
    roles = []
    for a, count in enumerate(groups):
        codes = np.append(np.arange(count), -1)
        code = codes.reshape([1, 1] + [count + 1 if b == a else 1 for b in range(axes)] + [1])
        roles.append(np.where(inside, code, -1))
    shape = np.broadcast_shapes(*(role.shape for role in roles))
    return np.stack([np.broadcast_to(role, shape) for role in roles], axis=-2)
