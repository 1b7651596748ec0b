"""Batches of a data set that contain every group; and groups and labels of a batch as codes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from metrifair.batches import Coverage
from metrifair.batches.samples import (
    StratifiedPasses,
    check_patience,
    layout,
    overshoot_weights,
    rows_by_cell,
)
from metrifair.errors import DataError, Remedy, TooFewSamples
from metrifair.metrics.registry import PENALTY_ESTIMATES, Estimate
from metrifair.nn.distributed import common_seed, find_ranks
from metrifair.problem.cells import CONTRASTS, Attribute, Contrast
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.problem import (
    Inputs,
    Problem,
    Scheme,
    positive_place,
    problem_with_probabilities,
    read_weights,
)
from metrifair.problem.tables import (
    MOST_CLASSES,
    UNKNOWN,
    CodedColumn,
    same_length,
    unmasked,
    without_boolean_objects,
)
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import (
    check_integer,
    check_known,
    check_switches,
    is_integer,
    rows_or_none,
)
from metrifair.support.user_warnings import warn_user

_FEWEST_EXPECTED = 2  # expected rows of a group that is compared


def _read_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """The rank and the number of processes; by default those of ``torch.distributed``."""
    if (rank is None) != (world_size is None):
        raise DataError(
            f"rank and world_size belong together, got {rank!r} and {world_size!r}; give both or "
            "neither"
        )
    if rank is None or world_size is None:
        ranks = find_ranks("auto")
        rank = 0
        world_size = 1
        if ranks is not None:
            rank = ranks.rank
            world_size = ranks.count
    check_integer("world_size", world_size, least=1)
    if not is_integer(rank, least=0) or rank >= world_size:
        raise DataError(
            f"rank must be an integer from 0 to world_size - 1 = {world_size - 1}, got {rank!r}"
        )
    return rank, world_size


class EpochSampler(torch.utils.data.Sampler[list[int]]):
    """Batches of rows by epoch: each rank gets its part of every batch, and training can be
    resumed.
    """

    size: int  # rows of a batch, of all ranks together

    def __init__(self, random_state: Any, rank: int | None, world_size: int | None) -> None:
        self.rank, self.world_size = _read_rank(rank, world_size)
        self.random_state = common_seed(random_state, several=self.world_size > 1)
        # the start of the next iteration
        self.epoch = 0
        self._first = 0
        # epoch and place of the next batch, within an iteration
        self._under_way: tuple[int, int] | None = None

    def _epoch_rows(self, generator: torch.Generator) -> Tensor:
        """The rows of all batches of an epoch, (batches, size)."""
        raise NotImplementedError

    def _check_size(self) -> None:
        """Raise a DataError if batches have too few rows for all ranks."""
        if self.size < self.world_size:
            raise DataError(
                f"batches of {self.size} rows leave some of {self.world_size} ranks without any; "
                "raise batch_size"
            )

    def __iter__(self) -> Iterator[list[int]]:
        epoch = self.epoch
        first = self._first
        self._under_way = epoch, first
        self.epoch = epoch + 1
        self._first = 0
        seed = int(np.random.SeedSequence([self.random_state, epoch]).generate_state(1)[0])
        batches = self._epoch_rows(torch.Generator().manual_seed(seed))
        # Rows are ordered by cell and distributed in turn, so that ranks get as many of each, or
        # one more.
        for place, rows in enumerate(
            batches[:, self.rank :: self.world_size].tolist()[first:], first + 1
        ):
            self._under_way = None
            if place < len(batches):
                self._under_way = (epoch, place)
            yield rows

    def set_epoch(self, epoch: int) -> None:
        """Draw this epoch next; not needed if epochs follow each other.

        Parameters
        ----------
        epoch : int
            Its number, from 0 upwards.
        """
        check_integer("epoch", epoch, least=0)
        if epoch != self.epoch:
            self._first = 0  # a loaded state is kept
        self.epoch = epoch
        self._under_way = None

    def state_dict(self) -> dict[str, int]:
        """The position in the batches: the same on every rank.

        Returns
        -------
        dict
            ``epoch`` and ``step`` of the next batch. A loader with workers draws batches ahead of
            training: save the step of the training loop instead of this one then.
        """
        epoch, step = self._under_way or (self.epoch, self._first)
        return {"epoch": epoch, "step": step}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Continue from a position: the next iteration draws the rest of its epoch.

        Parameters
        ----------
        state : dict
            The position that ``state_dict`` returned.
        """
        if set(state) != {"epoch", "step"} or not all(
            is_integer(number, least=0) for number in state.values()
        ):
            raise DataError(
                f"state must contain the integers 'epoch' and 'step', from 0 upwards, got {state!r}"
            )
        epochs, self._first = divmod(int(state["step"]), max(1, len(self)))
        self.epoch = int(state["epoch"]) + epochs
        self._under_way = None

    def __len__(self) -> int:
        raise NotImplementedError


class StratifiedBatchSampler(EpochSampler):
    """Row numbers of batches that contain a fixed number of rows of every group (in every set of
    the criterion).

    Use it as ``DataLoader(batch_sampler=...)`` (not ``sampler=``, which treats a batch as one row)
    or in a plain loop. Pass it to ``UnfairnessPenalty(sampler=...)`` too, so that groups that
    consist of several strata have the right weight (with several attributes, or with each group
    against the rest). Each iteration is another epoch, reproducible from ``random_state``. If
    ``batch_size`` is too small for two rows of every group (one row for ``estimate="batch"``),
    batches are larger, with a warning.

    If several processes train one model, each has its own sampler with its ``rank`` and the same
    ``world_size`` (both known from ``torch.distributed``, once it is initialized) and
    ``random_state``. All draw the same batch, and each takes an equal part of every group, up to
    one row. Together they see the batches that one process would see.

    Parameters
    ----------
    groups : tensor or array-like of shape (n,) or (n, attributes), or GroupProbabilities
        Group of each sample: integers, with -1 for a missing group. For numeric attributes, see
        ``continuous``. If groups are not in the data, their probabilities: each row is drawn for
        every group in proportion to its probability, with replacement. Pass ``batch_groups`` to
        the penalty then, in place of the groups of the rows.
    targets : tensor or array-like of shape (n,), default=None
        Labels, or a regression target. Needed if the criterion uses them.
    batch_size : int
        Rows per batch.
    criterion : str or Criterion, default="statistical_parity"
        Fairness criterion. Every batch contains its sets.
    contrast : {"pairs", "rest"}, default="pairs"
        Which groups are compared.
    continuous : "auto", bool or list of int, default="auto"
        Numeric attributes, such as age: the given columns of ``groups``, all, or none. NaN is then
        a missing value, and batches need not contain particular values. ``"auto"`` selects columns
        with numbers that are not integers. More than 20 different integers then raise an error,
        because they may be groups or numbers.
    pos_label : int, default=None
        The positive label; by default the last one.
    estimate : {"population", "rows", "batch"}, default="population"
        Distance that the penalty estimates. For ``"population"`` and ``"rows"`` a batch contains
        two rows of every group. A group of one row works with ``"rows"``, but not with
        ``"population"``.
    sample_weight : array-like of shape (n,), default=None
        Weight of each sample. Rows are then drawn with replacement, in proportion to the weights;
        rows of weight 0 are never drawn.
    random_state : int, NumPy generator or None, default=None
        Seed of the batches. None draws one, or is 0 with several processes, which must all draw the
        same batches.
    rank : int, default=None
        Rank of this process. By default that of ``torch.distributed`` if it is initialized, else 0.
    world_size : int, default=None
        Number of processes that train together. By default that of ``torch.distributed`` if it is
        initialized, else 1. ``batch_size`` counts the rows of all of them.

    Attributes
    ----------
    epoch : int
        The epoch that the next iteration draws.
    weights : Tensor of shape (n,)
        Loss weight of each row of the data set: ``mean(weights[rows] * loss)`` over a batch is an
        unbiased estimate of the (weighted) mean loss, despite the rounding of group counts.
    batch_groups : Tensor of shape (rows of a batch,) or None
        With ``GroupProbabilities``: the group that each place of a batch is drawn for, as the
        number of its column; -1 where no comparison uses the row. It is the same for every batch.
        None if groups are known.

    Examples
    --------
    >>> sampler = StratifiedBatchSampler([0, 0, 0, 0, 0, 0, 1, 1, 1], batch_size=4, random_state=0)
    >>> [len(rows) for rows in sampler], sampler.weights[[0, 8]]
    ([4, 4], tensor([1.3333, 0.6667]))
    >>> one, other = (
    ...     StratifiedBatchSampler([0] * 6 + [1] * 3, batch_size=4, rank=rank, world_size=2) for rank in (0, 1)
    ... )
    >>> sampler.set_epoch(0)
    >>> [sorted(mine + yours) for mine, yours in zip(one, other)] == [sorted(rows) for rows in sampler]
    True

    Groups that have probabilities: each place of a batch is drawn for one group, and the penalty
    receives these groups.

    >>> from metrifair import GroupProbabilities, unfairness
    >>> from metrifair.nn import UnfairnessPenalty
    >>> x = torch.linspace(-2, 2, 200)
    >>> race = GroupProbabilities({"a": x.sigmoid(), "b": 1 - x.sigmoid()}, attribute="race")
    >>> sampler = StratifiedBatchSampler(race, batch_size=50, random_state=0)
    >>> sampler.batch_groups.bincount()
    tensor([25, 25])
    >>> penalty = UnfairnessPenalty(estimate="rows", sampler=sampler)
    >>> values = [penalty(x[rows], sampler.batch_groups) for epoch in range(100) for rows in sampler]
    >>> print(f"{torch.stack(values).mean():.1f} {unfairness(None, x, sensitive_features=race, metric='energy'):.1f}")
    0.8 0.8
    """

    def __init__(
        self,
        groups: Tensor | ArrayLike | GroupProbabilities,
        targets: Tensor | ArrayLike | None = None,
        *,
        batch_size: int,
        criterion: str | Criterion = "statistical_parity",
        contrast: Contrast = "pairs",
        continuous: ContinuousColumns = "auto",
        pos_label: Any = None,
        estimate: Estimate = "population",
        sample_weight: ArrayLike | None = None,
        random_state: Any = None,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        kind = criterion_named(criterion)
        super().__init__(random_state, rank, world_size)
        check_known("contrast", contrast, CONTRASTS)
        check_known("estimate", estimate, PENALTY_ESTIMATES)
        self.probable: _ProbableRows | None = None
        if isinstance(groups, GroupProbabilities):
            self.probable = _probable_rows(
                groups,
                targets,
                sample_weight,
                criterion=kind,
                contrast=contrast,
                pos_label=pos_label,
            )
            self.values = self.probable.values
            self.sample_weight = self.probable.weight
        else:
            self.values = BatchValues(kind, groups, targets, continuous)
            self.sample_weight = read_weights("sample_weight", sample_weight, self.values.length)
        self._weight = torch.ones(self.values.length)
        if self.sample_weight is not None:
            self._weight = torch.tensor(self.sample_weight)
        scheme = make_scheme(
            kind,
            *self.values.seen(),
            contrast=contrast,
            pos_label=pos_label,
            numbers=self.values.numbers,
        )
        self.problem = self.values.problem(scheme, self.sample_weight)
        self._set_layout(batch_size, estimate)
        if self.layout.size > batch_size:
            warn_user(
                f"batch_size={batch_size} is too small to contain enough of every group: batches "
                "have "
                f"{self.layout.size} rows",
                UserWarning,
            )
        self.size = self.layout.size
        self._check_size()
        odds = None
        if self.sample_weight is not None:
            odds = [[self._weight[rows] for rows in self.rows]]
        self._passes = StratifiedPasses([self.rows], self.layout, len(self), odds=odds)
        self.weights = self._loss_weights()
        self.batch_groups: Tensor | None = None
        if self.probable is not None:
            self.weights = self.probable.row_weights(self.weights)
            self.batch_groups = self._groups_by_place()[self.rank :: self.world_size]

    def _set_layout(self, batch_size: int, estimate: Estimate) -> None:
        """Set the rows of each cell, and how many of them a batch has."""
        cells = self.problem.scheme.cells
        by_cell = rows_by_cell(torch.as_tensor(self.problem.cell), cells.count if cells else 1)
        self.rows = [rows[self._weight[rows] > 0] for rows in by_cell]
        least = 1 if estimate == "batch" else 2
        fewest = 2 if estimate == "population" else 1
        self.layout = layout(
            [len(rows) for rows in self.rows],
            self.problem.scheme.comparisons,
            size=batch_size,
            least=least,
            fewest=fewest,
        )

    def _loss_weights(self) -> Tensor:
        """The loss weight of each row, with which the mean over batches is that of the data."""
        totals = torch.stack([self._weight[rows].sum() for rows in self.rows])
        shares = totals / self._weight.sum()
        per_cell = shares * self.layout.size / torch.tensor(self.layout.counts).clamp_min(1)
        return per_cell[torch.as_tensor(self.problem.cell)].float()

    def _groups_by_place(self) -> Tensor:
        """The group of each place of a batch; -1 in cells that are not compared."""
        compared = {
            cell
            for comparison in self.problem.comparisons
            for cell in (*comparison.left, *comparison.right)
        }
        groups = torch.full((len(self.rows),), UNKNOWN)
        for cell in compared:
            if len(self.rows[cell]):
                groups[cell] = int(self.values.groups[self.rows[cell][0], 0])
        return groups.repeat_interleave(torch.tensor(self.layout.counts))

    def __len__(self) -> int:
        if self.probable is not None:
            return max(1, self.probable.row_count // self.size)
        return sum(map(len, self.rows)) // self.size

    def __repr__(self) -> str:
        strata = sum(count > 0 for count in self.layout.counts)
        kinds = "1 stratum"
        if strata > 1:
            kinds = f"{strata} strata"
        return f"StratifiedBatchSampler({len(self)} batches of {self.size} rows of {kinds}, epoch={self.epoch})"

    def _epoch_rows(self, generator: torch.Generator) -> Tensor:
        entries = self._passes([generator])[0]
        if self.probable is None:
            return entries
        return self.probable.row[entries]


class _ProbableRows(NamedTuple):
    """Rows whose groups have probabilities: an entry for each group of positive probability."""

    values: BatchValues  # of the entries
    row: Tensor  # (entries,): the row of the data set
    share: Tensor  # (entries,): the probability of the group
    weight: Floats | None  # (entries,); None: all probabilities are 0 or 1
    row_count: int  # rows of positive weight
    length: int  # rows of the data set
    uncertain: bool  # whether some probability is neither 0 nor 1

    def row_weights(self, entry_weights: Tensor) -> Tensor:
        """The loss weight of each row of the data set, (n,), from those of its entries.

        A row is drawn for each of its groups. With the harmonic mean of the weights of its entries,
        it counts in the mean over batches as in the data.
        """
        inverse = torch.zeros(self.length, dtype=torch.float64)
        inverse.index_add_(0, self.row, self.share / entry_weights)
        return torch.where(inverse > 0, 1 / inverse, 0.0).float()


def _probable_rows(
    groups: GroupProbabilities,
    targets: Tensor | ArrayLike | None,
    sample_weight: ArrayLike | None,
    *,
    criterion: Criterion,
    contrast: Contrast,
    pos_label: Any,
) -> _ProbableRows:
    """The entries of rows whose groups have probabilities, checked."""
    labels = None
    if targets is not None:
        labels = as_column("targets", targets).cpu().numpy()
    if not criterion.needs_labels:
        labels = None
        pos_label = None
    problem = problem_with_probabilities(
        Inputs(labels, groups, sample_weight=sample_weight, label="targets"),
        criterion=criterion,
        contrast=contrast,
        pos_label=pos_label,
    )
    _check_expected_sizes(problem)
    row = problem.row_of_entry
    length = len(problem)
    if problem.kept is not None:
        row = problem.passed_rows[row]
        length = len(problem.kept)
    entries = problem.entries
    share = np.ones(len(entries))
    if entries.members is not None:
        share = entries.members.share
    return _ProbableRows(
        BatchValues(criterion, entries.groups, rows_or_none(labels, row)),
        torch.as_tensor(row),
        torch.as_tensor(share),
        entries.weight,
        len(problem),
        length,
        uncertain=problem.probabilities is not None,
    )


def _check_expected_sizes(problem: Problem) -> None:
    """Raise TooFewSamples if a group that is compared has less than two expected rows."""
    sizes = problem.cell_sizes
    for comparison in problem.comparisons:
        for cells, group in zip(comparison.sides, comparison.groups, strict=True):
            expected = float(sizes[list(cells)].sum())
            if expected < _FEWEST_EXPECTED:
                raise TooFewSamples(
                    f"comparing {comparison}: group {group!r} has {expected:.2g} expected rows "
                    f"there, and {_FEWEST_EXPECTED} are needed; merge small groups"
                )


def as_tensor(name: str, values: Tensor | ArrayLike) -> Tensor:
    """Numbers of any array type as a tensor."""
    if isinstance(values, Tensor):
        return values
    if isinstance(values, Mapping):
        raise DataError(
            f"{name} must be one tensor, got a dict of {', '.join(map(repr, values))}; make "
            "columns of its values with "
            "torch.stack([...], 1)"
        )
    array = without_boolean_objects(np.array(unmasked(values, as_numbers=True)))
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"{name} must be numbers, got {array.ravel()[:1].tolist()} and the like; "
            "numpy.unique(..., return_inverse=True) numbers other values from 0 upwards"
        )
    return torch.as_tensor(array)


def as_column(name: str, values: Tensor | ArrayLike) -> Tensor:
    """Numbers of any array type as a tensor (n,), also from a table with one column."""
    column = as_tensor(name, values).detach()
    if column.ndim == 2 and column.shape[1] == 1:
        return column.squeeze(1)
    if column.ndim != 1:
        raise DataError(
            f"{name} must have one entry for each row, got the shape {tuple(column.shape)}"
        )
    return column


ContinuousColumns: TypeAlias = "Literal['auto'] | bool | Sequence[int]"
"""The numeric attributes among the columns of groups: these, all, none, or those with numbers
that are no integers.
"""


class BatchValues:
    """The groups and targets of samples, checked; -1 or NaN is a missing group, NaN a missing
    number.
    """

    def __init__(
        self,
        criterion: Criterion,
        groups: Tensor | ArrayLike,
        targets: Tensor | ArrayLike | None,
        continuous: ContinuousColumns = False,
        **others: Any,
    ) -> None:
        table = as_tensor("groups", groups).detach().cpu().numpy()
        if table.ndim not in (1, 2):
            raise DataError(
                f"groups must be (n,) or (n, attributes), got the shape {tuple(table.shape)}"
            )
        if table.ndim == 1:
            table = table[:, None]
        self.table = table  # numbers
        self.numbers = _number_columns(table, continuous)
        self.groups = as_codes("groups", self._integers())
        if self.groups.min(initial=0) < UNKNOWN:
            raise DataError(
                f"groups must be integers from 0 upwards, or {UNKNOWN} where not known, got "
                f"{self.groups.min()}"
            )
        self.targets: NDArray[Any] | None = None
        if targets is not None:
            self.targets = as_column("targets", targets).cpu().numpy()
        self.by_label = criterion.labels is not None and criterion.bins is None
        if self.targets is not None and self.by_label:
            self.targets = as_codes("targets", self.targets)
        if criterion.needs_labels and self.targets is None:
            raise DataError(f"{criterion.name} compares groups within labels; pass the true labels")
        self.length = same_length(**others, groups=self.groups, targets=self.targets)

    def _integers(self) -> NDArray[Any]:
        """The groups with -1 where they are missing; 0 for each number."""
        known = np.ones_like(self.table, dtype=np.bool_)
        integers = self.table
        if integers.dtype.kind == "f":
            known = ~np.isnan(integers)
            integers = np.nan_to_num(integers, nan=UNKNOWN)
        if not self.numbers:
            return integers
        is_number = np.isin(np.arange(self.table.shape[1]), list(self.numbers))
        if not np.isfinite(self.table[:, is_number][known[:, is_number]]).all():
            raise DataError("groups contains infinite numbers; leave those rows out")
        return np.where(is_number, np.where(known, 0, UNKNOWN), integers)

    def seen(self) -> tuple[list[set[int]], set[int]]:
        """The groups of each attribute, and the labels, that occur here."""
        groups = [set(np.unique(column).tolist()) - {UNKNOWN} for column in self.groups.T]
        if self.by_label and self.targets is not None:
            labels = set(np.unique(self.targets).tolist())
        else:
            labels = set()
        return groups, labels

    def problem(self, scheme: Scheme, weight: Floats | None = None) -> Problem:
        """The record of the samples, by the codes of the scheme."""
        columns = []
        for attribute, column in zip(scheme.attributes, self.groups.T, strict=True):
            if attribute.is_number:
                columns.append(column)
                continue
            coded = np.full(len(column), UNKNOWN, dtype=np.int64)
            known = column != UNKNOWN
            coded[known] = CodedColumn(attribute.name, column[known]).places(attribute.groups)
            columns.append(coded)
        labels = self.targets
        if labels is not None and self.by_label:
            labels = CodedColumn("targets", labels).places(scheme.classes)
        values = None
        if self.numbers:
            values = np.nan_to_num(self.table.astype(np.float64))
        return Problem(scheme, labels, np.stack(columns, axis=1), weight=weight, numbers=values)


def make_scheme(
    criterion: Criterion,
    groups: Sequence[Iterable[int]],
    labels: Iterable[int],
    *,
    contrast: Contrast,
    pos_label: object,
    numbers: Collection[int] = (),
) -> Scheme:
    """The scheme of these groups of each attribute and these labels; ``numbers`` are the
    numeric attributes.
    """
    if len(groups) > 1:
        names = [f"group {place}" for place in range(len(groups))]
    else:
        names = ["group"]
    attributes = [
        Attribute(name, (), is_number=True)
        if place in numbers
        else Attribute(name, at_least_two(values))
        for place, (name, values) in enumerate(zip(names, groups, strict=True))
    ]
    by_label = criterion.labels is not None and criterion.bins is None
    classes = at_least_two(labels) if by_label else ()
    positive = positive_place(classes, pos_label if classes else None)
    return Scheme(criterion, classes, positive, tuple(attributes), contrast=contrast)


def at_least_two(values: Iterable[int]) -> tuple[int, ...]:
    """The values in order; a single one is completed by its usual counterpart.

    >>> at_least_two({2, 1}), at_least_two({0}), at_least_two({-1})
    ((1, 2), (0, 1), (-1, 1))
    """
    distinct = set(values)
    for usual in ((0, 1), (-1, 1)):
        if distinct <= set(usual):
            return usual
    return tuple(sorted(distinct))


def _number_columns(table: NDArray[Any], continuous: ContinuousColumns) -> tuple[int, ...]:
    """The places of the columns that are numeric attributes."""
    places = range(table.shape[1])
    if isinstance(continuous, bool):
        if continuous:
            return tuple(places)
        return ()
    if isinstance(continuous, str):
        check_known(
            "continuous", continuous, ("auto",), otherwise="True, False or a list of columns"
        )
        columns = []
        for place, column in enumerate(table.T):
            if column.dtype.kind == "f" and (np.isfinite(column) & (column % 1 != 0)).any():
                columns.append(place)
            # without missing groups
            elif (count := len(np.unique(column[column >= 0]))) > MOST_CLASSES:
                raise DataError(
                    f"contains {count} different integers, which may be groups or numbers",
                    argument="groups",
                    remedy=[
                        Remedy("continuous", True, detail=" if they are numbers, such as ages"),
                        Remedy("continuous", False, detail=" if each is a group"),
                    ],
                )
        return tuple(columns)
    unknown = [place for place in continuous if place not in places]
    if unknown:
        raise DataError(
            f"continuous names column {unknown[0]!r}; columns of groups have numbers here, 0 to "
            f"{len(places) - 1}"
        )
    return tuple(continuous)


def as_codes(name: str, values: NDArray[Any]) -> Integers:
    """Integers of any type as int64; a DataError for fractions, and for integers that int64 does
    not contain.

    >>> as_codes("groups", np.array([0, 255], dtype=np.uint8)), as_codes("groups", np.array([1.0, -1.0]))
    (array([  0, 255]), array([ 1, -1]))
    """
    wrong = values[:0]
    if values.dtype.kind == "f":
        wrong = values[~(np.isfinite(values) & (np.rint(values) == values))]
    if len(wrong):
        raise DataError(f"{name} must be integers, got {wrong.flat[0]}")
    if values.dtype.kind == "f":
        beyond = values[(values >= 2.0**63) | (values < -(2.0**63))]
    else:
        beyond = values[:0]
    if values.dtype.kind == "u":
        beyond = values[values > np.iinfo(np.int64).max]
    if len(beyond):
        raise DataError(
            f"{name} contains {beyond.flat[0]}, and the largest possible integer is 2^63 - 1",
            remedy="number the values from 0 upwards",
        )
    return values.astype(np.int64)


_MOST_KNOWN = 10_000  # groups and labels of a stream that are remembered


class CoveringBatch(NamedTuple):
    """A batch of a stream with enough samples of every group; ``mean(weight * loss)`` estimates the
    risk.

    Parameters
    ----------
    x, y, group : Tensor of shape (n, ...)
        Features, labels and groups of the samples.
    weight : Tensor of shape (n,)
        Loss weights.

    Examples
    --------
    >>> CoveringBatch(torch.zeros(1, 2), torch.ones(1), torch.zeros(1), torch.ones(1)).weight
    tensor([1.])
    """

    x: Tensor
    y: Tensor
    group: Tensor
    weight: Tensor


def covering(
    stream: Iterable[tuple[Tensor, Tensor | float, Tensor | float]],
    *,
    batch_size: int,
    criterion: str | Criterion = "statistical_parity",
    groups: int = 2,
    classes: int = 2,
    least: int = 2,
    continuous: bool = False,
) -> Iterator[CoveringBatch]:
    """Batches of an endless stream of (x, y, group), with enough samples of every group.

    A batch contains at least ``batch_size`` samples, and at least ``least`` of every group in every
    set of the criterion. The loss weights remove the bias of waiting for the last sample.

    Parameters
    ----------
    stream : iterable of (x, y, group)
        Stream of samples. Samples with group -1 (missing) are used for the risk only.
    batch_size : int
        Rows per batch, at least.
    criterion : str or Criterion, default="statistical_parity"
        Fairness criterion. Every batch contains its sets.
    groups : int, default=2
        All groups, as their number: groups are coded from 0 upwards.
    classes : int, default=2
        All classes, as their number: labels are coded from 0 upwards.
    least : int, default=2
        Minimum number of samples of every group in every set of the criterion.
    continuous : bool, default=False
        Numeric attributes, such as age: the group is a number, and NaN is a missing value. Batches
        then wait for no groups. Unbiased estimates of the dependence need four samples in every
        set.

    Yields
    ------
    CoveringBatch
        The next batch, with ``x``, ``y``, ``group`` and ``weight``.

    Examples
    --------
    >>> stream = ((torch.zeros(2), 1.0, group) for group in (0, 0, 0, 0, 1, 1, 0, 1, 0, 1))
    >>> [batch.group.tolist() for batch in covering(stream, batch_size=4)]
    [[0, 0, 0, 0, 1, 1], [0, 1, 0, 1]]
    """
    kind = criterion_named(criterion)
    check_switches(continuous=continuous)
    numbers_at = (0,) if continuous else ()
    scheme = make_scheme(
        kind, [range(groups)], range(classes), contrast="pairs", pos_label=None, numbers=numbers_at
    )
    rule = Coverage(scheme.comparisons, size=batch_size, least=least)
    lookup = _SampleLookup(kind, scheme, rule, continuous=continuous)
    pending: list[tuple[Tensor, Any, Any]] = []
    cells: list[int] = []
    needed = np.tile(rule.needs, 2).tolist()  # of every side
    missing = list(needed)
    left = sum(needed)
    for x, y, group in stream:
        pending.append((torch.as_tensor(x), y, group))
        cell, sides = lookup(y, group)
        cells.append(cell)
        for side in sides:
            if missing[side] > 0:
                missing[side] -= 1
                left -= 1
        if len(cells) < rule.size or (left and len(cells) <= rule.patience):
            continue
        member = rule.member(np.array(cells))
        check_patience(len(cells), member, rule)
        features, labels, values = zip(*pending, strict=True)
        weight = torch.from_numpy(overshoot_weights(member.reshape(len(cells), -1), rule)).float()
        yield CoveringBatch(
            torch.stack(features), join_numbers("y", labels), join_numbers("group", values), weight
        )
        pending = []
        cells = []
        missing = list(needed)
        left = sum(needed)


class _SampleLookup:
    """The cell of a sample and the sides that it is on, looked up if its group and label
    occurred before.
    """

    def __init__(
        self, criterion: Criterion, scheme: Scheme, rule: Coverage, *, continuous: bool = False
    ) -> None:
        self.criterion = criterion
        self.scheme = scheme
        self.rule = rule
        self.continuous = continuous
        self.known: dict[object, tuple[int, tuple[int, ...]]] = {}

    def __call__(self, y: Tensor | float, group: Tensor | float) -> tuple[int, tuple[int, ...]]:
        """Both, checked the first time."""
        label = None
        if self.criterion.needs_labels:
            if isinstance(y, Tensor):
                label = y.item()
            else:
                label = y
        if isinstance(group, Tensor):
            value = group.item()
        else:
            value = group
        # all known numbers are in the same cells
        if self.continuous and isinstance(value, int | float):
            group = value = 0.0 if abs(value) < inf else value
        key = label, str(value) if self.continuous else value
        place = self.known.get(key)
        if place is None:
            labels = as_tensor("y", y).reshape(1)
            groups = as_tensor("group", group).reshape(1, 1)
            cell = (
                BatchValues(self.criterion, groups, labels, self.continuous)
                .problem(self.scheme)
                .cell
            )
            place = int(cell[0]), tuple(np.flatnonzero(self.rule.member(cell)[0]).tolist())
            # a target that is cut into bins differs in every sample
            if len(self.known) < _MOST_KNOWN:
                self.known[key] = place
        return place


def join_numbers(name: str, values: Sequence[Any]) -> Tensor:
    """Numbers, or tensors of one, as one tensor (n,)."""
    if isinstance(values[0], Tensor):
        return torch.stack(
            [value if isinstance(value, Tensor) else as_tensor(name, value) for value in values]
        )
    return as_tensor(name, values)
